// SPDX-License-Identifier: GPL-2.0
/*
 * The device mapper, as far as a log of writes needs it: a device of one target, and
 * messages to it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <linux/dm-ioctl.h>
#include <linux/fs.h>
#include "crash.h"

#define CONTROL	"/dev/mapper/control"

struct call {
	struct dm_ioctl h;
	char data[1024];
};

static int dm_call(unsigned long what, const char *name, struct call *c)
{
	static int fd = -1;

	if (fd < 0)
		fd = open(CONTROL, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	c->h.version[0] = DM_VERSION_MAJOR;
	c->h.data_size = sizeof(*c);
	c->h.data_start = sizeof(c->h);
	snprintf(c->h.name, sizeof(c->h.name), "%s", name);
	return ioctl(fd, what, c) ? -errno : 0;
}

static int device_sectors(const char *dev, uint64_t *sectors)
{
	int fd = open(dev, O_RDONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	if (ioctl(fd, BLKGETSIZE64, sectors))
		err = -errno;
	*sectors /= 512;
	close(fd);
	return err;
}

static int load_table(const char *name, const char *dev, const char *log)
{
	struct call c = { .h.target_count = 1 };
	struct dm_target_spec *spec = (void *)c.data;
	int err = device_sectors(dev, (uint64_t *)&spec->length);

	if (err)
		return err;
	strcpy(spec->target_type, "log-writes");
	snprintf(c.data + sizeof(*spec), sizeof(c.data) - sizeof(*spec), "%s %s", dev, log);
	spec->next = sizeof(*spec) + (strlen(c.data + sizeof(*spec)) + 8) / 8 * 8;
	return dm_call(DM_TABLE_LOAD, name, &c);
}

int dm_log_create(const char *name, const char *dev, const char *log, char *path, size_t len)
{
	struct call c = { 0 };
	int err = dm_call(DM_DEV_CREATE, name, &c);

	if (err)
		return err;
	snprintf(path, len, "/dev/dm-%u", minor(c.h.dev));
	err = load_table(name, dev, log);
	if (!err) {
		memset(&c, 0, sizeof(c));
		err = dm_call(DM_DEV_SUSPEND, name, &c);	/* no flag: resume */
	}
	if (err)
		dm_remove(name);
	return err;
}

int dm_mark(const char *name, const char *text)
{
	struct call c = { 0 };
	struct dm_target_msg *msg = (void *)c.data;
	char *to = msg->message;

	/* A blank ends an argument unless there is a backslash before it. */
	to = stpcpy(to, "mark ");
	for (; *text && to < c.data + sizeof(c.data) - 3; text++) {
		if (*text == ' ')
			*to++ = '\\';
		*to++ = *text;
	}
	*to = 0;
	return dm_call(DM_TARGET_MSG, name, &c);
}

int dm_remove(const char *name)
{
	struct call c = { 0 };

	return dm_call(DM_DEV_REMOVE, name, &c);
}
