// SPDX-License-Identifier: GPL-2.0
/*
 * Reads the log of dm-log-writes. Its format is in the kernel's drivers/md/dm-log-writes.c:
 * a sector with a head, then for each write a sector that tells of it, and its data. All
 * numbers are of sectors of the size that the head names.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <endian.h>
#include "crash.h"

#define MAGIC		0x6a736677736872ull
#define VERSION		1u
#define FLAG_FLUSH	1u
#define FLAG_FUA	2u
#define FLAG_DISCARD	4u
#define FLAG_MARK	8u
#define END		"dm-log-writes-end"

struct log_super {
	uint64_t magic;
	uint64_t version;
	uint64_t nr_entries;
	uint32_t sector_bytes;
};

struct log_entry {
	uint64_t sector;
	uint64_t nr_sectors;
	uint64_t flags;
	uint64_t data_len;
};

/* Of a file, or of a disk. */
static int length(int fd, uint64_t *bytes)
{
	off_t end = lseek(fd, 0, SEEK_END);

	*bytes = (uint64_t)end;
	return end < 0 ? -errno : 0;
}

static int map_log(struct logwr *l, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;
	void *p;

	if (fd < 0)
		return -errno;
	err = length(fd, &l->bytes);
	if (err) {
		close(fd);
		return err;
	}
	p = mmap(NULL, l->bytes, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return -errno;
	l->base = p;
	return 0;
}

/* One entry at *@at, which moves on. */
static bool read_entry(const struct logwr *l, uint64_t *at, uint32_t sector_bytes,
		       struct logwr_entry *e)
{
	struct log_entry m;
	uint64_t flags, len;

	if (sector_bytes > l->bytes - *at)
		return false;
	memcpy(&m, l->base + *at, sizeof(m));
	flags = le64toh(m.flags);
	len = le64toh(m.nr_sectors) * sector_bytes;
	memset(e, 0, sizeof(*e));
	e->flush = flags & FLAG_FLUSH;
	e->fua = flags & FLAG_FUA;
	e->discard = flags & FLAG_DISCARD;
	if (flags & FLAG_MARK) {
		e->mark = (const char *)l->base + *at + sizeof(m);
		e->mark_len = (uint32_t)le64toh(m.data_len);
		if (e->mark_len > sector_bytes - sizeof(m))
			return false;
	}
	*at += sector_bytes;
	e->byte = le64toh(m.sector) * sector_bytes;
	e->len = len;
	if (e->discard || !len)
		return true;
	if (len > l->bytes - *at)
		return false;
	e->data = l->base + *at;
	*at += len;
	return true;
}

int logwr_open(struct logwr *l, const char *path)
{
	struct log_super s;
	const struct logwr_entry *last;
	uint64_t at, i;
	int err;

	memset(l, 0, sizeof(*l));
	err = map_log(l, path);
	if (err)
		return err;
	memcpy(&s, l->base, sizeof(s));
	l->nr = le64toh(s.nr_entries);
	at = le32toh(s.sector_bytes);
	err = -EBADMSG;
	if (le64toh(s.magic) != MAGIC || le64toh(s.version) != VERSION || at < 512 ||
	    l->nr > l->bytes / at || !l->nr)
		goto close;
	l->entries = calloc(l->nr, sizeof(*l->entries));
	if (!l->entries)
		abort();
	for (i = 0; i < l->nr; i++) {
		if (!read_entry(l, &at, le32toh(s.sector_bytes), &l->entries[i]))
			goto close;
	}
	/* Else it ran out of space, or out of memory, and stopped. */
	last = &l->entries[l->nr - 1];
	if (last->mark && last->mark_len == strlen(END) && !memcmp(last->mark, END, strlen(END)))
		return 0;
close:
	logwr_close(l);
	return err;
}

void logwr_close(struct logwr *l)
{
	free(l->entries);
	if (l->base)
		munmap((void *)l->base, l->bytes);
	memset(l, 0, sizeof(*l));
}
