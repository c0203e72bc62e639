// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The system calls the library makes, in one table, and small helpers over it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "internal.h"

static int sys_open(const char *path, int flags)
{
	return open(path, flags);
}

static int sys_ioctl(int fd, unsigned long request, void *arg)
{
	return ioctl(fd, request, arg);
}

struct kvti_sys kvti_sys = {
	.open = sys_open,
	.close = close,
	.ioctl = sys_ioctl,
	.mmap = mmap,
	.munmap = munmap,
	.read = read,
	.poll = poll,
};

int kvti_open(const char *path, int flags)
{
	int fd = kvti_sys.open(path, flags);

	return fd < 0 ? -errno : fd;
}

int kvti_ioctl(int fd, unsigned int op, void *arg)
{
	return kvti_sys.ioctl(fd, KVTIER_IOC(op), arg) < 0 ? -errno : 0;
}

int kvti_copy_params(void *dst, size_t dst_bytes, const void *src,
		     size_t src_bytes, size_t min_bytes)
{
	const unsigned char *bytes = src;
	size_t i;

	if (src_bytes < min_bytes)
		return -EINVAL;
	for (i = dst_bytes; i < src_bytes; i++)
		if (bytes[i])
			return -E2BIG;
	memset(dst, 0, dst_bytes);
	memcpy(dst, src, src_bytes < dst_bytes ? src_bytes : dst_bytes);
	return 0;
}

void kvti_logf(const struct kvti_log *log, int level, const char *fmt, ...)
{
	char text[256];
	va_list args;

	if (!log->fn)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	log->fn(log->data, level, text);
}

void kvti_say(struct kvti_said *said, const struct kvti_log *log, int level,
	      const char *fmt, ...)
{
	va_list args;

	if (!log->fn)
		return;
	said->level = level;
	va_start(args, fmt);
	vsnprintf(said->text, sizeof(said->text), fmt, args);
	va_end(args);
}

void kvti_tell(const struct kvti_log *log, const struct kvti_said *said)
{
	if (said->level)
		log->fn(log->data, said->level, said->text);
}
