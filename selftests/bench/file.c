// SPDX-License-Identifier: GPL-2.0
/*
 * Files: one for each block in tmpfs, and one with all blocks, read past the page
 * cache.
 *
 * Files know no batches. In tmpfs a batch is a loop; O_DIRECT reads of a batch
 * are in flight together through io_uring, each to a buffer of its own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "bench.h"

#define PATH_BYTES	256
#define HUGE_BYTES	((size_t)2 << 20)

static struct io_uring ring;
static uint8_t *buffers;

static const char *path_of(struct env *e, unsigned int i, char *path)
{
	uint64_t w[2];

	memcpy(w, e->keys[i].b, sizeof(w));
	snprintf(path, PATH_BYTES, "%s/%016llx%016llx", e->dir, (unsigned long long)w[0],
		 (unsigned long long)w[1]);
	return path;
}

static void file_write(struct env *e)
{
	char path[PATH_BYTES];
	unsigned int i;
	int fd;

	for (i = 0; i < e->blocks; i++) {
		stamp(e, e->src, i);
		fd = open(path_of(e, i, path), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
		if (fd < 0 || write(fd, e->src, e->block_bytes) != (ssize_t)e->block_bytes)
			die("%s: %s", path, strerror(errno));
		close(fd);
	}
}

static void file_read(struct env *e)
{
	char path[PATH_BYTES];
	unsigned int i;
	int fd;

	for (i = 0; i < e->blocks; i++) {
		fd = open(path_of(e, i, path), O_RDONLY | O_CLOEXEC);
		if (fd < 0 || read(fd, e->dst, e->block_bytes) != (ssize_t)e->block_bytes)
			die("%s: %s", path, strerror(errno));
		check_stamp(e, e->dst, i);
		close(fd);
	}
}

static void unlink_all(struct env *e)
{
	char path[PATH_BYTES];
	unsigned int i;

	for (i = 0; i < e->blocks; i++)
		if (unlink(path_of(e, i, path)) && errno != ENOENT)
			die("%s: %s", path, strerror(errno));
}

/**
 * file_works() - a file for each block in tmpfs
 * @e: sizes, keys and folder set; nothing is left there
 */
void file_works(struct env *e)
{
	static const struct work writes = { "tmpfs", "put_copy", unlink_all, file_write, NULL };
	static const struct work reads = { "tmpfs", "get_copy", NULL, file_read, NULL };

	measure(e, &writes);
	measure(e, &reads);
	unlink_all(e);
}

static uint8_t *buffer_of(struct env *e, unsigned int i)
{
	return buffers + (size_t)(i % e->batch) * e->block_bytes;
}

static void direct_one(struct env *e, unsigned int i)
{
	ssize_t n = pread(e->direct, buffers, e->block_bytes, (off_t)(i * e->block_bytes));

	if (n != (ssize_t)e->block_bytes)
		die("O_DIRECT read: %s", n < 0 ? strerror(errno) : "short");
	check_stamp(e, buffers, i);
}

static void direct_batch(struct env *e, unsigned int at)
{
	struct io_uring_cqe *cqe;
	unsigned int i;
	int ret;

	for (i = at; i < at + e->batch; i++) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

		if (!sqe)
			die("io_uring: the queue is too short");
		io_uring_prep_read(sqe, e->direct, buffer_of(e, i), (unsigned int)e->block_bytes,
				   (uint64_t)i * e->block_bytes);
	}
	ret = io_uring_submit_and_wait(&ring, e->batch);
	if (ret != (int)e->batch)
		die("io_uring: submitted %d of %u", ret, e->batch);
	for (i = at; i < at + e->batch; i++) {
		ret = io_uring_wait_cqe(&ring, &cqe);
		if (ret || cqe->res != (int)e->block_bytes)
			die("io_uring read: %s", strerror(ret ? -ret : -cqe->res));
		io_uring_cqe_seen(&ring, cqe);
	}
	for (i = at; i < at + e->batch; i++)
		check_stamp(e, buffer_of(e, i), i);
}

static void direct_read(struct env *e)
{
	unsigned int at;

	for (at = 0; at < e->blocks; at += e->batch) {
		if (e->batch == 1)
			direct_one(e, at);
		else
			direct_batch(e, at);
	}
}

static void direct_fill(struct env *e, const char *path)
{
	unsigned int i;

	e->direct = open(path, O_CREAT | O_TRUNC | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);
	if (e->direct < 0)
		die("%s: %s", path, strerror(errno));
	for (i = 0; i < e->blocks; i++) {
		stamp(e, e->src, i);
		if (pwrite(e->direct, e->src, e->block_bytes, (off_t)(i * e->block_bytes)) !=
		    (ssize_t)e->block_bytes)
			die("%s: %s", path, strerror(errno));
	}
	fsync(e->direct);
}

/**
 * direct_works() - O_DIRECT reads of a file
 * @e:    sizes set
 * @path: file to write and read
 */
void direct_works(struct env *e, const char *path)
{
	static const struct work w = { "direct", "get_nvme", NULL, direct_read, NULL };
	size_t bytes = ((size_t)e->batch * e->block_bytes + HUGE_BYTES - 1) & ~(HUGE_BYTES - 1);
	int ret = io_uring_queue_init(BLOCKS_MAX, &ring, 0);

	if (ret)
		die("io_uring: %s", strerror(-ret));
	/* Huge pages make O_DIRECT cheap: the best that this way has to offer. */
	buffers = aligned_alloc(HUGE_BYTES, bytes);
	if (!buffers || madvise(buffers, bytes, MADV_HUGEPAGE))
		die("no huge pages: %s", strerror(errno));
	memset(buffers, 0, bytes);
	direct_fill(e, path);
	measure(e, &w);
	close(e->direct);
	free(buffers);
	io_uring_queue_exit(&ring);
}
