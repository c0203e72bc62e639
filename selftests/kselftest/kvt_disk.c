// SPDX-License-Identifier: GPL-2.0
/*
 * Block devices that a test makes for itself: loop devices over files, which can be
 * copied, compared and damaged behind the kernel's back.
 */
#include "kvt_test.h"
#include <linux/loop.h>
#include <sys/stat.h>

static int loop_free(void)
{
	int ctl, nr;

	if (access("/dev/loop-control", F_OK))
		kvt_sh("modprobe loop");
	ctl = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	if (ctl < 0)
		return -errno;
	nr = ioctl(ctl, LOOP_CTL_GET_FREE);
	if (nr < 0)
		nr = -errno;
	close(ctl);
	return nr;
}

static int loop_attach(struct kvt_disk *d)
{
	int nr = loop_free(), file, err = 0;

	if (nr < 0)
		return nr;
	snprintf(d->dev, sizeof(d->dev), "/dev/loop%d", nr);
	/* udev or devtmpfs may need a moment. */
	KVT_UNTIL(3000, (d->fd = open(d->dev, O_RDWR | O_CLOEXEC)) >= 0);
	file = open(d->file, O_RDWR | O_CLOEXEC);
	if (d->fd < 0 || file < 0 || ioctl(d->fd, LOOP_SET_FD, file))
		err = -errno;
	if (file >= 0)
		close(file);
	return err;
}

int kvt_disk_make(struct kvt_disk *d, const char *name, __u64 bytes)
{
	int fd, err = 0;

	memset(d, 0, sizeof(*d));
	d->fd = -1;
	d->bytes = bytes;
	snprintf(d->file, sizeof(d->file), "/tmp/kvt-%d-%s", getpid(), name);
	fd = open(d->file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, bytes))
		err = -errno;
	if (fd >= 0)
		close(fd);
	return err ? err : loop_attach(d);
}

void kvt_disk_remove(struct kvt_disk *d)
{
	if (d->fd >= 0) {
		ioctl(d->fd, LOOP_CLR_FD);
		close(d->fd);
		d->fd = -1;
	}
	if (d->file[0])
		unlink(d->file);
}

int kvt_disk_io(const struct kvt_disk *d, __u64 at, void *buf, size_t len, bool write)
{
	int fd = open(d->dev, O_RDWR | O_DIRECT | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write ? pwrite(fd, buf, len, at) : pread(fd, buf, len, at);
	n = n == (ssize_t)len ? 0 : n < 0 ? -errno : -EIO;
	close(fd);
	return (int)n;
}

int kvt_disk_copy(const struct kvt_disk *to, const struct kvt_disk *from)
{
	char *buf = aligned_alloc(4096, KVT_MIB);
	int err = buf ? 0 : -ENOMEM;
	__u64 at;

	for (at = 0; at < from->bytes && !err; at += KVT_MIB) {
		err = kvt_disk_io(from, at, buf, KVT_MIB, false);
		if (!err)
			err = kvt_disk_io(to, at, buf, KVT_MIB, true);
	}
	free(buf);
	return err;
}

__u64 kvt_disk_sum(const struct kvt_disk *d)
{
	__u64 *buf = aligned_alloc(4096, KVT_MIB), at, sum = 0;
	size_t i;

	for (at = 0; buf && at < d->bytes; at += KVT_MIB) {
		if (kvt_disk_io(d, at, buf, KVT_MIB, false))
			break;
		for (i = 0; i < KVT_MIB / sizeof(*buf); i++)
			sum = (sum ^ buf[i]) * 0x9e3779b97f4a7c15ull + 1;
	}
	free(buf);
	return sum;
}

static __u32 crc32c(const unsigned char *p, size_t n)
{
	__u32 crc = ~0u;
	int i;

	while (n--) {
		crc ^= *p++;
		for (i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}

int kvt_disk_super(const struct kvt_disk *d, int slot, int at, const void *value, size_t len)
{
	unsigned char *block = aligned_alloc(4096, 4096);
	__u32 crc = 0;
	int err;

	err = kvt_disk_io(d, slot * 512 * KVT_KIB, block, 4096, false);
	if (!err) {
		memcpy(block + at, value, len);
		memcpy(block + 8, &crc, sizeof(crc));
		crc = crc32c(block, 4096);
		memcpy(block + 8, &crc, sizeof(crc));
		err = kvt_disk_io(d, slot * 512 * KVT_KIB, block, 4096, true);
	}
	free(block);
	return err;
}
