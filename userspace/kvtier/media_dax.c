// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent dax devices as media; see media.h.
 *
 * They are read and written through a mapping, which only the kernel's own driver,
 * device_dax, gives: one that kvtier's driver has can be read by the kernel alone.
 *
 * A poisoned page ends in SIGBUS. While bytes are copied that is caught, and is an I/O
 * error like a block device's. What is written is durable once the caches are written
 * back and a fence has passed; elsewhere than on x86 this is not attempted.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "media.h"
#include "sysfs.h"

#define LINE_BYTES	64

static sigjmp_buf on_poison;

static void poisoned(int sig)
{
	(void)sig;
	siglongjmp(on_poison, 1);
}

/* memcpy() that gives -EIO instead of dying. One thread at a time. */
static int careful_copy(void *to, const void *from, size_t len)
{
	struct sigaction catch = { .sa_handler = poisoned }, before;

	if (sigaction(SIGBUS, &catch, &before))
		return -errno;
	if (sigsetjmp(on_poison, 1)) {
		sigaction(SIGBUS, &before, NULL);
		return -EIO;
	}
	memcpy(to, from, len);
	sigaction(SIGBUS, &before, NULL);
	return 0;
}

static int dax_read(void *ctx, u64 byte, void *buf, u32 len)
{
	const struct media_dev *d = ctx;

	if (len > d->media.bytes || byte > d->media.bytes - len)
		return -EIO;
	return careful_copy(buf, d->map + byte, len);
}

#ifdef __x86_64__
static void write_back(const u8 *at, u32 len)
{
	const u8 *line = at - ((uintptr_t)at & (LINE_BYTES - 1));

	for (; line < at + len; line += LINE_BYTES)
		__builtin_ia32_clflush(line);
	__builtin_ia32_mfence();
}

static int dax_write(void *ctx, u64 byte, const void *buf, u32 len)
{
	const struct media_dev *d = ctx;
	int ret;

	if (len > d->media.bytes || byte > d->media.bytes - len)
		return -EIO;
	ret = careful_copy(d->map + byte, buf, len);
	if (!ret)
		write_back(d->map + byte, len);
	return ret;
}
#else
static int dax_write(void *ctx, u64 byte, const void *buf, u32 len)
{
	return -EOPNOTSUPP;
}
#endif

static int dax_flush(void *ctx)
{
	(void)ctx;
	return 0;	/* each write is over only when it is durable */
}

const char *media_dev_root(void)
{
	const char *root = secure_getenv("KVTIER_DEV");

	return root ? root : "/dev";
}

bool media_is_dax(const char *path, char name[static MEDIA_NAME_MAX])
{
	unsigned int region, id, major, minor;
	const char *base = strrchr(path, '/');
	char text[64], tail;
	struct stat st;

	base = base ? base + 1 : path;
	if (sscanf(base, "dax%u.%u%c", &region, &id, &tail) != 2 ||
	    strlen(base) >= MEDIA_NAME_MAX ||
	    sysfs_read(text, sizeof(text), "bus/dax/devices/%s/dev", base))
		return false;
	/* Tests have files in place of devices. */
	if (base != path && !stat(path, &st) && S_ISCHR(st.st_mode) &&
	    (sscanf(text, "%u:%u", &major, &minor) != 2 ||
	     st.st_rdev != makedev(major, minor)))
		return false;
	strcpy(name, base);
	return true;
}

bool media_dax_is_persistent(const char *name)
{
	char type[64];

	/* .../regionN/daxN.M/daxN.M: the namespace is within a region of libnvdimm. */
	return !sysfs_read(type, sizeof(type), "bus/dax/devices/%s/../../devtype", name) &&
	       !strcmp(type, "nd_pmem");
}

static int dax_map(struct media_dev *d, const char *name, bool write)
{
	uint64_t bytes;
	void *map;
	int ret;

	ret = sysfs_read_u64(&bytes, "bus/dax/devices/%s/size", name);
	if (ret)
		return ret;
	/* Tools keep out of each other's way; the driver is bound by whoever assembles. */
	if (flock(d->fd, (write ? LOCK_EX : LOCK_SH) | LOCK_NB))
		return -EBUSY;
	map = mmap(NULL, bytes, PROT_READ | (write ? PROT_WRITE : 0), MAP_SHARED, d->fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	d->map = map;
	d->media.bytes = bytes;
	return 0;
}

int media_open_dax(struct media_dev *d, const char *path, const char *name, bool write)
{
	char driver[SYSFS_NAME_MAX];

	if (sysfs_link_name(driver, sizeof(driver), "bus/dax/devices/%s/driver", name))
		return -ENXIO;
	if (strcmp(driver, "device_dax"))
		return -EBUSY;
	d->fd = open(path, (write ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	if (d->fd < 0)
		return -errno;
	d->media.read = dax_read;
	d->media.write = write ? dax_write : NULL;
	d->media.flush = dax_flush;
	d->media.ctx = d;
	return dax_map(d, name, write);
}
