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

/* The next stretch of a file from @at on that was ever written: its length, 0: none. */
static ssize_t next_data(int fd, off_t *at)
{
	off_t end;

	*at = lseek(fd, *at, SEEK_DATA);
	if (*at < 0)
		return errno == ENXIO ? 0 : -errno;
	end = lseek(fd, *at, SEEK_HOLE);
	return end < 0 ? -errno : end - *at < (off_t)KVT_MIB ? end - *at : (ssize_t)KVT_MIB;
}

/* The files are what the devices have: these keep nothing back, and most of it are holes. */
int kvt_disk_copy(const struct kvt_disk *to, const struct kvt_disk *from)
{
	int in = open(from->file, O_RDONLY | O_CLOEXEC);
	int out = open(to->file, O_RDWR | O_CLOEXEC);
	char *buf = malloc(KVT_MIB);
	ssize_t n = -EIO;
	off_t at = 0;

	if (in >= 0 && out >= 0 && buf && !ftruncate(out, 0) && !ftruncate(out, from->bytes))
		for (; (n = next_data(in, &at)) > 0; at += n)
			if (pread(in, buf, n, at) != n || pwrite(out, buf, n, at) != n)
				break;
	free(buf);
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return n ? -EIO : 0;
}

__u64 kvt_disk_sum(const struct kvt_disk *d)
{
	int fd = open(d->file, O_RDONLY | O_CLOEXEC);
	__u64 *buf = calloc(1, KVT_MIB), sum = 0;
	ssize_t n, i;
	off_t at = 0;

	for (; buf && fd >= 0 && (n = next_data(fd, &at)) > 0; at += n) {
		if (pread(fd, buf, n, at) != n)
			break;
		sum += at;
		for (i = 0; i < n / (ssize_t)sizeof(*buf); i++)
			sum = (sum ^ buf[i]) * 0x9e3779b97f4a7c15ull + 1;
	}
	free(buf);
	if (fd >= 0)
		close(fd);
	return sum;
}

int kvt_disk_damage(const struct kvt_disk *d, __u64 at)
{
	char *page = aligned_alloc(4096, 4096);
	int err;

	err = kvt_disk_io(d, at, page, 4096, false);
	page[100] ^= 0x10;
	err = err ? err : kvt_disk_io(d, at, page, 4096, true);
	free(page);
	return err;
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
