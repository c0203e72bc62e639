// SPDX-License-Identifier: GPL-2.0
/*
 * A block device that fails and lies when it is told to: a device-mapper device over a
 * loop device. The tables are those of dmsetup; the ioctls spare the image that program.
 */
#include "kvt_test.h"
#include <linux/dm-ioctl.h>
#include <sys/sysmacros.h>

#define DM_BYTES	4096

static int dm_ctl(void)
{
	static int fd = -1;

	if (fd >= 0)
		return fd;
	kvt_sh("modprobe -q -a dm-mod dm-flakey dm-delay");
	KVT_UNTIL(3000, (fd = open("/dev/mapper/control", O_RDWR | O_CLOEXEC)) >= 0);
	return fd < 0 ? -errno : fd;
}

static struct dm_ioctl *dm_prepare(void *buf, const struct kvt_dm *d, __u32 flags)
{
	struct dm_ioctl *io = buf;

	memset(buf, 0, DM_BYTES);
	io->version[0] = DM_VERSION_MAJOR;
	io->data_size = DM_BYTES;
	io->data_start = sizeof(*io);
	io->flags = flags;
	snprintf(io->name, sizeof(io->name), "%s", d->name);
	return io;
}

static int dm_do(unsigned long cmd, struct dm_ioctl *io)
{
	int fd = dm_ctl();

	if (fd < 0)
		return fd;
	return ioctl(fd, cmd, io) ? -errno : 0;
}

static int dm_load(const struct kvt_dm *d, const char *target, const char *params)
{
	char buf[DM_BYTES] __attribute__((aligned(8)));
	struct dm_ioctl *io = dm_prepare(buf, d, 0);
	struct dm_target_spec *spec = (void *)(buf + sizeof(*io));

	io->target_count = 1;
	spec->length = d->disk.bytes / 512;
	spec->next = DM_BYTES - sizeof(*io);
	snprintf(spec->target_type, sizeof(spec->target_type), "%s", target);
	snprintf((char *)(spec + 1), 256, "%s", params);
	return dm_do(DM_TABLE_LOAD, io);
}

/* Appends a target of [@from, @to) sectors at @at; returns where the next one goes. */
static char *dm_target(char *at, const char *target, __u64 from, __u64 to, const char *params)
{
	struct dm_target_spec *spec = (void *)at;

	spec->sector_start = from;
	spec->length = to - from;
	spec->next = sizeof(*spec) + 256;
	snprintf(spec->target_type, sizeof(spec->target_type), "%s", target);
	snprintf((char *)(spec + 1), 256, "%s", params);
	return at + spec->next;
}

static int dm_load_bad(const struct kvt_dm *d, __u64 from, __u64 to)
{
	char buf[DM_BYTES] __attribute__((aligned(8))), params[256];
	struct dm_ioctl *io = dm_prepare(buf, d, 0);
	char *at = buf + sizeof(*io);

	io->target_count = 3;
	snprintf(params, sizeof(params), "%s 0", d->under.dev);
	at = dm_target(at, "linear", 0, from, params);
	/* With "flakey" flushes of the whole device would fail. */
	at = dm_target(at, "error", from, to, "");
	snprintf(params, sizeof(params), "%s %llu", d->under.dev, to);
	dm_target(at, "linear", to, d->disk.bytes / 512, params);
	return dm_do(DM_TABLE_LOAD, io);
}

static int dm_suspend(const struct kvt_dm *d, bool suspend)
{
	char buf[DM_BYTES] __attribute__((aligned(8)));

	return dm_do(DM_DEV_SUSPEND, dm_prepare(buf, d, suspend ? DM_SUSPEND_FLAG : 0));
}

int kvt_dm_stop(const struct kvt_dm *d, bool stop)
{
	return dm_suspend(d, stop);
}

int kvt_dm_bad_extent(const struct kvt_dm *d, __u64 at, __u64 bytes)
{
	int err = dm_load_bad(d, at / 512, (at + bytes) / 512);

	if (!err)
		err = dm_suspend(d, true);
	return err ? err : dm_suspend(d, false);
}

int kvt_dm_set(const struct kvt_dm *d, enum kvt_dm_mode mode)
{
	static const char *const features[] = {
		[KVT_DM_ERROR_READS] = "error_reads",
		[KVT_DM_ERROR_WRITES] = "error_writes",
		[KVT_DM_DROP_WRITES] = "drop_writes",
	};
	static const char *const targets[] = {
		[KVT_DM_GOOD] = "linear",
		[KVT_DM_ERROR] = "error",
		[KVT_DM_ERROR_READS] = "flakey",
		[KVT_DM_ERROR_WRITES] = "flakey",
		[KVT_DM_DROP_WRITES] = "flakey",
		[KVT_DM_SLOW] = "delay",
		[KVT_DM_VERY_SLOW] = "delay",
		[KVT_DM_SLOW_WRITES] = "delay",
	};
	char params[256];
	int err;

	if (mode == KVT_DM_GOOD)
		snprintf(params, sizeof(params), "%s 0", d->under.dev);
	else if (mode == KVT_DM_ERROR)
		params[0] = 0;
	else if (mode == KVT_DM_SLOW_WRITES)
		snprintf(params, sizeof(params), "%s 0 0 %s 0 2500", d->under.dev, d->under.dev);
	else if (mode == KVT_DM_SLOW || mode == KVT_DM_VERY_SLOW)
		snprintf(params, sizeof(params), "%s 0 %d %s 0 0", d->under.dev,
			 mode == KVT_DM_SLOW ? 240 : 2000, d->under.dev);
	else	/* never up, always down */
		snprintf(params, sizeof(params), "%s 0 0 1000000 1 %s", d->under.dev,
			 features[mode]);
	err = dm_load(d, targets[mode], params);
	if (!err)
		err = dm_suspend(d, true);
	return err ? err : dm_suspend(d, false);
}

int kvt_dm_make(struct kvt_dm *d, const char *name, __u64 bytes)
{
	char buf[DM_BYTES] __attribute__((aligned(8)));
	struct dm_ioctl *io;
	int err;

	memset(d, 0, sizeof(*d));
	d->disk.fd = -1;
	d->disk.bytes = bytes;
	snprintf(d->name, sizeof(d->name), "kvt-%d-%s", getpid(), name);
	err = kvt_disk_make(&d->under, name, bytes);
	if (err)
		return err;
	io = dm_prepare(buf, d, 0);
	err = dm_do(DM_DEV_CREATE, io);
	if (err)
		return err;
	snprintf(d->disk.dev, sizeof(d->disk.dev), "/dev/dm-%u", minor(io->dev));
	d->made = true;
	err = kvt_dm_set(d, KVT_DM_GOOD);
	if (!err && !KVT_UNTIL(3000, !access(d->disk.dev, W_OK)))
		err = -ENOENT;
	return err;
}

void kvt_dm_remove(struct kvt_dm *d)
{
	char buf[DM_BYTES] __attribute__((aligned(8)));

	/* udev may be looking at it. */
	if (d->made && !KVT_UNTIL(5000, dm_do(DM_DEV_REMOVE, dm_prepare(buf, d, 0)) != -EBUSY))
		fprintf(stderr, "# %s is still in use\n", d->name);
	d->made = false;
	kvt_disk_remove(&d->under);
}
