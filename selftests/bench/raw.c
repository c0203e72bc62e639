// SPDX-License-Identifier: GPL-2.0
/*
 * A device itself, from its beginning on: O_DIRECT, as many requests in flight as the
 * store has blocks in a group of moves, each to huge pages of its own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "bench.h"

#define STREAM_BYTES	((size_t)128 << 20)
#define DEPTH		32u
#define HUGE_BYTES	((size_t)2 << 20)

static const size_t sizes[] = { 64 << 10, 1 << 20 };
static struct io_uring ring;
static uint8_t *buffers;

static void start(struct env *e, unsigned int i, bool write)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
	uint8_t *buf = buffers + (i % DEPTH) * e->block_bytes;
	uint64_t at = (uint64_t)i * e->block_bytes;

	if (!sqe)
		die("io_uring: the queue is too short");
	if (write) {
		stamp(e, buf, i);
		io_uring_prep_write(sqe, e->direct, buf, (unsigned int)e->block_bytes, at);
	} else {
		io_uring_prep_read(sqe, e->direct, buf, (unsigned int)e->block_bytes, at);
	}
	io_uring_sqe_set_data64(sqe, i);
}

/* One has ended; the next one takes its buffer. */
static unsigned int end_one(struct env *e, bool write)
{
	struct io_uring_cqe *cqe;
	unsigned int i;
	int ret = io_uring_wait_cqe(&ring, &cqe);

	if (ret || cqe->res != (int)e->block_bytes)
		die("raw device: %s", strerror(ret ? -ret : cqe->res < 0 ? -cqe->res : EIO));
	i = (unsigned int)io_uring_cqe_get_data64(cqe);
	io_uring_cqe_seen(&ring, cqe);
	if (!write)
		check_stamp(e, buffers + (i % DEPTH) * e->block_bytes, i);
	return i;
}

static void stream(struct env *e, bool write)
{
	unsigned int next, done, i;

	for (next = 0; next < DEPTH; next++)
		start(e, next, write);
	io_uring_submit(&ring);
	for (done = 0; done < e->blocks; done++) {
		i = end_one(e, write) + DEPTH;
		if (i >= e->blocks)
			continue;
		start(e, i, write);
		io_uring_submit(&ring);
	}
}

static void write_all(struct env *e)
{
	stream(e, true);
	if (fsync(e->direct))
		die("raw device: %s", strerror(errno));
}

static void read_all(struct env *e)
{
	stream(e, false);
}

/**
 * raw_works() - write and read a device sequentially
 * @e:    sizes are overwritten
 * @path: block device; what is on it is lost
 */
void raw_works(struct env *e, const char *path)
{
	static const struct work writes = { "raw", "seq_write", NULL, write_all, NULL };
	static const struct work reads = { "raw", "seq_read", NULL, read_all, NULL };
	size_t bytes = DEPTH * sizes[1];
	unsigned int i;
	int ret = io_uring_queue_init(DEPTH, &ring, 0);

	if (ret)
		die("io_uring: %s", strerror(-ret));
	e->direct = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
	if (e->direct < 0)
		die("%s: %s", path, strerror(errno));
	buffers = aligned_alloc(HUGE_BYTES, bytes);
	if (!buffers || madvise(buffers, bytes, MADV_HUGEPAGE))
		die("no huge pages: %s", strerror(errno));
	memset(buffers, 0, bytes);
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		e->block_bytes = sizes[i];
		e->blocks = (unsigned int)(STREAM_BYTES / sizes[i]);
		e->batch = DEPTH;
		measure(e, &writes);
		measure(e, &reads);
	}
	/* A first unit that means nothing, so that the device looks empty again. */
	memset(buffers, 0, HUGE_BYTES);
	if (pwrite(e->direct, buffers, HUGE_BYTES, 0) != (ssize_t)HUGE_BYTES)
		die("%s: %s", path, strerror(errno));
	close(e->direct);
	free(buffers);
	io_uring_queue_exit(&ring);
}
