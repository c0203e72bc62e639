// SPDX-License-Identifier: GPL-2.0
/*
 * Reading and writing sysfs.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cmd.h"
#include "sysfs.h"

const char *sysfs_root(void)
{
	const char *root = secure_getenv("KVTIER_SYSFS");

	return root ? root : "/sys";
}

static int make_path(char path[static SYSFS_PATH_MAX], const char *fmt,
		     va_list args)
{
	int len = snprintf(path, SYSFS_PATH_MAX, "%s/", sysfs_root());
	int more;

	if (len >= SYSFS_PATH_MAX)
		return -ENAMETOOLONG;
	more = vsnprintf(path + len, (size_t)(SYSFS_PATH_MAX - len), fmt, args);
	return more < SYSFS_PATH_MAX - len ? 0 : -ENAMETOOLONG;
}

bool sysfs_exists(const char *fmt, ...)
{
	char path[SYSFS_PATH_MAX];
	va_list args;
	int ret;

	va_start(args, fmt);
	ret = make_path(path, fmt, args);
	va_end(args);
	return !ret && !access(path, F_OK);
}

static int read_path(const char *path, char *buf, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return -errno;
	len = read(fd, buf, room - 1);
	if (len < 0)
		len = -errno;
	close(fd);
	if (len < 0)
		return (int)len;
	buf[len] = 0;
	return 0;
}

static int read_line(const char *path, char *buf, size_t room)
{
	int ret = read_path(path, buf, room);

	if (!ret)
		buf[strcspn(buf, "\n")] = 0;
	return ret;
}

int sysfs_read(char *buf, size_t room, const char *fmt, ...)
{
	char path[SYSFS_PATH_MAX];
	va_list args;
	int ret;

	va_start(args, fmt);
	ret = make_path(path, fmt, args);
	va_end(args);
	return ret ? ret : read_line(path, buf, room);
}

int sysfs_read_all(char *buf, size_t room, const char *fmt, ...)
{
	char path[SYSFS_PATH_MAX];
	va_list args;
	int ret;

	va_start(args, fmt);
	ret = make_path(path, fmt, args);
	va_end(args);
	return ret ? ret : read_path(path, buf, room);
}

int sysfs_read_u64(uint64_t *value, const char *fmt, ...)
{
	char path[SYSFS_PATH_MAX], text[64];
	va_list args;
	int ret;

	va_start(args, fmt);
	ret = make_path(path, fmt, args);
	va_end(args);
	if (!ret)
		ret = read_line(path, text, sizeof(text));
	return ret ? ret : cmd_parse_u64(text, UINT64_MAX, value);
}

int sysfs_write(const char *value, const char *fmt, ...)
{
	char path[SYSFS_PATH_MAX];
	va_list args;
	int ret;

	va_start(args, fmt);
	ret = make_path(path, fmt, args);
	va_end(args);
	return ret ? ret : sysfs_write_path(path, value);
}

static int copy_out(char *buf, size_t room, const char *text)
{
	size_t len = strlen(text);

	if (len >= room)
		return -ENAMETOOLONG;
	memcpy(buf, text, len + 1);
	return 0;
}

int sysfs_link_name(char *buf, size_t room, const char *fmt, ...)
{
	char path[SYSFS_PATH_MAX], target[SYSFS_PATH_MAX];
	const char *slash;
	va_list args;
	ssize_t len;
	int ret;

	va_start(args, fmt);
	ret = make_path(path, fmt, args);
	va_end(args);
	if (ret)
		return ret;
	len = readlink(path, target, sizeof(target) - 1);
	if (len < 0)
		return -errno;
	target[len] = 0;
	slash = strrchr(target, '/');
	return copy_out(buf, room, slash ? slash + 1 : target);
}

int sysfs_resolve(char *buf, size_t room, const char *fmt, ...)
{
	char path[SYSFS_PATH_MAX], *real;
	va_list args;
	int ret;

	va_start(args, fmt);
	ret = make_path(path, fmt, args);
	va_end(args);
	if (ret)
		return ret;
	real = realpath(path, NULL);
	if (!real)
		return -errno;
	ret = copy_out(buf, room, real);
	free(real);
	return ret;
}

static bool wanted(const char *name, const char *prefix)
{
	size_t len = strlen(prefix);

	if (name[0] == '.' || strlen(name) >= SYSFS_NAME_MAX)
		return false;
	return !len || (!strncmp(name, prefix, len) &&
			isdigit((unsigned char)name[len]));
}

static int by_number(const void *a, const void *b)
{
	return strverscmp(a, b);
}

static int add_name(struct sysfs_names *list, const char *name)
{
	void *bigger = realloc(list->names,
			       (list->nr + 1) * sizeof(*list->names));

	if (!bigger)
		return -ENOMEM;
	list->names = bigger;
	/* wanted() has seen to its length. */
	memcpy(list->names[list->nr++], name, strlen(name) + 1);
	return 0;
}

int sysfs_list(struct sysfs_names *list, const char *dir, const char *prefix)
{
	char path[SYSFS_PATH_MAX];
	struct dirent *entry;
	int ret = 0;
	DIR *stream;

	memset(list, 0, sizeof(*list));
	if (snprintf(path, sizeof(path), "%s/%s", sysfs_root(), dir) >=
	    (int)sizeof(path))
		return -ENAMETOOLONG;
	stream = opendir(path);
	if (!stream)
		return errno == ENOENT ? 0 : -errno;
	while (!ret && (entry = readdir(stream)))
		if (wanted(entry->d_name, prefix))
			ret = add_name(list, entry->d_name);
	closedir(stream);
	if (ret)
		sysfs_free_names(list);
	else if (list->nr)
		qsort(list->names, list->nr, sizeof(*list->names), by_number);
	return ret;
}

void sysfs_free_names(struct sysfs_names *list)
{
	free(list->names);
	memset(list, 0, sizeof(*list));
}
