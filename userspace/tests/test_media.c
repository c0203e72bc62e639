// SPDX-License-Identifier: GPL-2.0
/*
 * What is done to a block device that is looked at: nothing that its owner would notice,
 * unless it is ours. A file stands in for the device, and what is asked of it is counted:
 * the calls are wrapped by the linker.
 *
 * The stand-in has a buffer cache, which may have what was on the device before.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "media.h"
#include "unit.h"

#define BYTES	(8u << 20)
#define FDS	64

static char path[32];

static struct {
	bool busy;		/* somebody has it */
	bool stale;		/* the cache has zeroes instead of what is there */
	bool direct[FDS];	/* opened so */
	unsigned int claims, flushes, misaligned;
} dev;

int __real_open(const char *name, int flags, ...);
int __wrap_open(const char *name, int flags, ...);
int __real_stat(const char *name, struct stat *st);
int __wrap_stat(const char *name, struct stat *st);
int __real_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...);
ssize_t __real_pread(int fd, void *buf, size_t len, off_t at);
ssize_t __wrap_pread(int fd, void *buf, size_t len, off_t at);

int __wrap_open(const char *name, int flags, ...)
{
	mode_t mode = 0;
	va_list args;
	int fd;

	va_start(args, flags);
	if (flags & O_CREAT)
		mode = va_arg(args, mode_t);
	va_end(args);
	if (strcmp(name, path))
		return __real_open(name, flags, mode);
	dev.claims += !!(flags & O_EXCL);
	if (flags & O_EXCL && dev.busy) {
		errno = EBUSY;
		return -1;
	}
	/* Not every file can be opened so. */
	fd = __real_open(name, flags & ~(O_EXCL | O_DIRECT), mode);
	if (fd >= FDS)
		abort();
	if (fd >= 0)
		dev.direct[fd] = flags & O_DIRECT;
	return fd;
}

int __wrap_stat(const char *name, struct stat *st)
{
	int ret = __real_stat(name, st);

	if (!ret && !strcmp(name, path))
		st->st_mode = S_IFBLK | 0600;
	return ret;
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	switch (request) {
	case BLKGETSIZE64:
		*(uint64_t *)arg = BYTES;
		return 0;
	case BLKFLSBUF:
		dev.flushes++;
		dev.stale = false;
		return 0;
	}
	return __real_ioctl(fd, request, arg);
}

ssize_t __wrap_pread(int fd, void *buf, size_t len, off_t at)
{
	ssize_t n = __real_pread(fd, buf, len, at);

	if (dev.direct[fd])
		dev.misaligned += ((uintptr_t)buf | len | (uint64_t)at) % 4096 != 0;
	else if (dev.stale && n > 0)
		memset(buf, 0, (size_t)n);
	return n;
}

/* With something at @byte, or nothing at all. */
static void fresh(u64 byte, const void *data, size_t len)
{
	int fd = __real_open(path, O_RDWR | O_TRUNC);

	if (fd < 0 || ftruncate(fd, BYTES) ||
	    (len && pwrite(fd, data, len, (off_t)byte) != (ssize_t)len))
		abort();
	close(fd);
	memset(&dev, 0, sizeof(dev));
}

/* One that does not verify is ours all the same. */
static void fresh_member(u32 slot)
{
	__le64 magic = cpu_to_le64(KVT_MAGIC_SUPER);

	fresh((u64)slot * KVT_SUPER_TWIN_BYTE, &magic, sizeof(magic));
}

/* What there is to say of the superblocks; @in_use: has somebody got it. */
static int look(bool *in_use)
{
	struct media_supers s;
	struct media_dev d;
	int ret = media_open(&d, path, false);

	if (ret)
		return ret;
	*in_use = d.in_use;
	ret = media_read_supers(&d.media, &s);
	media_close(&d);
	return ret;
}

static void test_stranger(void)
{
	static const u8 ext4[] = { 0x53, 0xef };
	bool in_use;

	fresh(1024 + 0x38, ext4, sizeof(ext4));
	CHECK(look(&in_use) == -EMEDIUMTYPE);
	CHECK(!dev.claims && !dev.flushes, "%u claims, %u flushes", dev.claims, dev.flushes);
	dev.busy = true;
	CHECK(look(&in_use) == -EMEDIUMTYPE);
	CHECK(!dev.claims && !dev.flushes, "%u claims, %u flushes", dev.claims, dev.flushes);
	fresh(0, NULL, 0);
	CHECK(look(&in_use) == -EMEDIUMTYPE && !dev.claims && !dev.flushes);
}

static void test_member(void)
{
	bool in_use;

	for (u32 slot = 0; slot < KVT_SUPER_SLOTS; slot++) {
		fresh_member(slot);
		CHECK(look(&in_use) == -EUCLEAN && !in_use);
		CHECK(dev.claims == 1 && dev.flushes == 1);
		dev.busy = true;
		CHECK(look(&in_use) == -EUCLEAN && in_use);
	}
}

/* What the driver has written the cache does not know of. */
static void test_cache(void)
{
	bool in_use;

	fresh_member(0);
	dev.stale = true;
	CHECK(look(&in_use) == -EUCLEAN);
	CHECK(!dev.stale && dev.flushes == 1 && !dev.misaligned);
}

/* Who repairs has it alone, whatever is there. */
static void test_writer(void)
{
	struct media_dev d;

	fresh(0, NULL, 0);
	CHECK(!media_open(&d, path, true));
	CHECK(dev.claims == 1 && dev.flushes == 1);
	media_close(&d);
	dev.busy = true;
	CHECK(media_open(&d, path, true) == -EBUSY);
}

static const struct unit_test tests[] = {
	{ "tool/media-stranger", test_stranger },
	{ "tool/media-member", test_member },
	{ "tool/media-cache", test_cache },
	{ "tool/media-writer", test_writer },
};

int main(void)
{
	int fd, failed;

	strcpy(path, "/tmp/kvtier-media-XXXXXX");
	fd = mkstemp(path);
	if (fd < 0)
		abort();
	close(fd);
	failed = unit_main(tests, ARRAY_SIZE(tests));
	unlink(path);
	return failed;
}
