// SPDX-License-Identifier: GPL-2.0
/*
 * Block devices and image files; see media.h. Dax devices are media_dax.c's, zones are
 * media_zoned.c's.
 *
 * A reader shares what it reads. A writer has it alone: a block device is opened with
 * O_EXCL, which whoever mounts or assembles it holds too, a file is locked, and must
 * not be behind a loop device.
 *
 * Looking for members opens every block device there is, and most are somebody else's.
 * Theirs must not be claimed, be it for a moment, as that fails who mounts it just then, nor
 * be flushed, as that writes out what is mounted. So superblocks are looked at first, past
 * the buffer cache, and the rest is done to what has one of ours.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "media.h"
#include "sysfs.h"

/* Of who looks at many devices, some of them in use; and of who is after one. */
#define LOOK_TRIES	6
#define USE_TRIES	50

static int dev_read(void *ctx, u64 byte, void *buf, u32 len)
{
	struct media_dev *d = ctx;
	u64 from, left;
	char *at = buf;
	ssize_t n;

	for (; len; len -= (u32)n, at += n, byte += (u64)n) {
		from = kvt_zone_phys(byte, d->media.zone_bytes, d->media.zone_stride, &left);
		n = pread(d->fd, at, min_t(u64, len, left), (off_t)from);
		if (n < 0 && errno == EINTR) {
			n = 0;
			continue;
		}
		if (n <= 0)
			return n ? -errno : -EIO;
	}
	return 0;
}

static int dev_write(void *ctx, u64 byte, const void *buf, u32 len)
{
	struct media_dev *d = ctx;
	const char *at = buf;
	ssize_t n;

	for (; len; len -= (u32)n, at += n, byte += (u64)n) {
		n = pwrite(d->fd, at, len, (off_t)byte);
		if (n < 0 && errno == EINTR) {
			n = 0;
			continue;
		}
		if (n <= 0)
			return n ? -errno : -EIO;
	}
	return 0;
}

static int dev_flush(void *ctx)
{
	return fsync(((struct media_dev *)ctx)->fd) ? -errno : 0;
}

/* Is a loop device made of the file, by whichever name. */
static bool file_is_loop(const struct stat *file)
{
	char backing[PATH_MAX];
	struct sysfs_names list;
	bool found = false;
	struct stat st;
	size_t i;

	if (sysfs_list(&list, "block", "loop"))
		return false;
	for (i = 0; i < list.nr && !found; i++)
		found = !sysfs_read(backing, sizeof(backing), "block/%s/loop/backing_file",
				    list.names[i]) && !stat(backing, &st) &&
			st.st_dev == file->st_dev && st.st_ino == file->st_ino;
	sysfs_free_names(&list);
	return found;
}

static int find_bytes(struct media_dev *d, const struct stat *st)
{
	uint64_t bytes;

	if (S_ISREG(st->st_mode)) {
		d->media.bytes = (u64)st->st_size;
		return 0;
	}
	if (ioctl(d->fd, BLKGETSIZE64, &bytes))
		return -errno;
	d->media.bytes = bytes;
	return media_find_zones(d);
}

/* --- Who has it ------------------------------------------------------------ */

/**
 * struct look - a first look at a block device
 * @fd:  past the buffer cache; -1: cannot be had
 * @buf: aligned, for one superblock
 */
struct look {
	struct media_dev *d;
	int fd;
	void *buf;
};

static int look_read(void *ctx, u64 byte, void *buf, u32 len)
{
	const struct look *l = ctx;
	const struct media *m = &l->d->media;
	u64 left, from = kvt_zone_phys(byte, m->zone_bytes, m->zone_stride, &left);
	ssize_t n = -1;

	if (l->fd >= 0 && l->buf && len == KVT_SUPER_BYTES)
		n = pread(l->fd, l->buf, len, (off_t)from);
	/* Blocks of the device may be larger than a superblock. */
	if (n != (ssize_t)len)
		return dev_read(l->d, byte, buf, len);
	memcpy(buf, l->buf, len);
	return 0;
}

static bool is_ours(struct media_dev *d, const char *path)
{
	struct look l = { .d = d };
	struct media m = d->media;
	struct media_supers s;
	int err;

	l.fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	l.buf = aligned_alloc(KVT_SUPER_BYTES, KVT_SUPER_BYTES);
	m.read = look_read;
	m.ctx = &l;
	err = media_read_supers(&m, &s);
	free(l.buf);
	if (l.fd >= 0)
		close(l.fd);
	return err != -EMEDIUMTYPE && err != -EIO;
}

static bool again(unsigned int *tries, unsigned int max)
{
	const struct timespec moment = { .tv_nsec = 10 * 1000 * 1000 };

	if (++*tries >= max)
		return false;
	nanosleep(&moment, NULL);
	return true;
}

bool media_busy_again(unsigned int *tries)
{
	return again(tries, USE_TRIES);
}

static int open_alone(const char *path, int flags, unsigned int max)
{
	unsigned int tries = 0;
	int fd;

	do
		fd = open(path, flags | O_EXCL | O_CLOEXEC);
	while (fd < 0 && errno == EBUSY && again(&tries, max));
	return fd;
}

/* The driver writes past the cache of the device; what somebody has read before is old. */
static int take_block(struct media_dev *d, const char *path, bool write)
{
	int fd;

	ioctl(d->fd, BLKFLSBUF);
	/* A writer has it already. */
	if (write)
		return 0;
	fd = open_alone(path, O_RDONLY, LOOK_TRIES);
	if (fd < 0 && errno != EBUSY)
		return -errno;
	d->in_use = fd < 0;
	if (fd >= 0)
		close(fd);
	return 0;
}

static int find_user(struct media_dev *d, const char *path, const struct stat *st, bool write)
{
	if (d->is_block)
		return write || is_ours(d, path) ? take_block(d, path, write) : 0;
	d->in_use = flock(d->fd, (write ? LOCK_EX : LOCK_SH) | LOCK_NB) || file_is_loop(st);
	return 0;
}

int media_open(struct media_dev *d, const char *path, bool write)
{
	char name[MEDIA_NAME_MAX], dax[PATH_MAX];
	struct stat st, opened;
	int ret;

	memset(d, 0, sizeof(*d));
	d->fd = -1;
	d->direct = -1;
	if (!strchr(path, '/') && media_is_dax(path, name)) {
		snprintf(dax, sizeof(dax), "%s/%s", media_dev_root(), name);
		path = dax;
	}
	if (stat(path, &st))
		return -errno;
	if (S_ISCHR(st.st_mode) && media_is_dax(path, name)) {
		ret = media_open_dax(d, path, name, write);
		if (ret)
			media_close(d);
		return ret;
	}
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
		return -EINVAL;
	d->is_block = S_ISBLK(st.st_mode);
	d->fd = write && d->is_block ? open_alone(path, O_RDWR | O_NONBLOCK, USE_TRIES) :
		open(path, (write ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);
	if (d->fd < 0)
		return -errno;
	/* It was opened as what it was then. */
	if (fstat(d->fd, &opened) || opened.st_dev != st.st_dev || opened.st_ino != st.st_ino) {
		media_close(d);
		return -ESTALE;
	}
	d->media.read = dev_read;
	d->media.write = write ? dev_write : NULL;
	d->media.flush = dev_flush;
	d->media.ctx = d;
	ret = find_bytes(d, &st);
	if (!ret)
		ret = find_user(d, path, &st, write);
	if (!ret && write && d->in_use)
		ret = -EBUSY;
	if (!ret && write && d->media.zone_bytes)
		ret = media_open_zones(d, path);
	if (ret)
		media_close(d);
	return ret;
}

void media_close(struct media_dev *d)
{
	if (d->map)
		munmap(d->map, d->media.bytes);
	d->map = NULL;
	if (d->direct >= 0)
		close(d->direct);
	d->direct = -1;
	free(d->bounce);
	d->bounce = NULL;
	free(d->zones);
	d->zones = NULL;
	if (d->fd >= 0)
		close(d->fd);
	d->fd = -1;
}
