// SPDX-License-Identifier: GPL-2.0
/*
 * Views are made of real pages: devices read from them and write into them. Direct
 * I/O pins for a moment, an io_uring fixed buffer for as long as it is registered,
 * which is what a GPU does.
 */
#include "kvt_test.h"
#include <liburing.h>
#include <linux/aio_abi.h>
#include <sys/syscall.h>

#define BLOCK_BYTES	(64 * KVT_KIB)
#define SET		11

FIXTURE(direct)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvt_key key;
	int disk;
	char *buf;
};

FIXTURE_VARIANT(direct)
{
	bool dax;
};

FIXTURE_VARIANT_ADD(direct, dram) { .dax = false };
FIXTURE_VARIANT_ADD(direct, dax) { .dax = true };

FIXTURE_SETUP(direct)
{
	if (variant->dax && !kvt_env_dax())
		SKIP(return, "no device-dax instance to use (KVT_DAX)");
	if (!kvt_env_scratch())
		SKIP(return, "no block device to write to (KVT_SCRATCH)");
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, variant->dax ? kvt_tier_dax(&self->pool, 0, 16 * KVT_MIB) :
				    kvt_tier_dram(&self->pool, 0, 16 * KVT_MIB));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "direct", BLOCK_BYTES));
	self->key = kvt_key(SET, 0);
	self->disk = open(kvt_env_scratch(), O_RDWR | O_DIRECT | O_CLOEXEC);
	ASSERT_LE(0, self->disk);
	self->buf = aligned_alloc(4096, BLOCK_BYTES);
	memset(self->buf, 0, BLOCK_BYTES);
	ASSERT_EQ(BLOCK_BYTES, pwrite(self->disk, self->buf, BLOCK_BYTES, 0));
}

FIXTURE_TEARDOWN(direct)
{
	close(self->disk);
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	free(self->buf);
}

TEST_F(direct, write_from_the_read_view)
{
	struct kvtier_block_result res;

	ASSERT_EQ(1, kvt_put(&self->c, 0, 0, &self->key, NULL, 1));
	ASSERT_EQ(1, kvt_get(self->c.fd, 0, 0, &self->key, 1, &res, 0));
	ASSERT_EQ(BLOCK_BYTES, pwrite(self->disk, kvt_rd(&self->c, res.offset), BLOCK_BYTES, 0))
		TH_LOG("errno %d", errno);
	ASSERT_EQ(BLOCK_BYTES, pread(self->disk, self->buf, BLOCK_BYTES, 0));
	EXPECT_TRUE(kvt_bytes_ok(self->buf, &self->key, BLOCK_BYTES));
}

/* A device must not write where the CPU may not. */
TEST_F(direct, read_into_the_read_view_is_refused)
{
	struct kvtier_block_result res;

	ASSERT_EQ(1, kvt_put(&self->c, 0, 0, &self->key, NULL, 1));
	ASSERT_EQ(1, kvt_get(self->c.fd, 0, 0, &self->key, 1, &res, 0));
	EXPECT_EQ(-1, pread(self->disk, kvt_rd(&self->c, res.offset), BLOCK_BYTES, 0));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_TRUE(kvt_bytes_ok(kvt_rd(&self->c, res.offset), &self->key, BLOCK_BYTES));
}

TEST_F(direct, read_into_the_fill_view)
{
	struct kvtier_block_result res, done;

	kvt_fill(self->buf, &self->key, BLOCK_BYTES);
	ASSERT_EQ(BLOCK_BYTES, pwrite(self->disk, self->buf, BLOCK_BYTES, 0));
	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &self->key, NULL, 1, &res, 0));
	ASSERT_EQ(BLOCK_BYTES, pread(self->disk, kvt_wr(&self->c, res.offset), BLOCK_BYTES, 0))
		TH_LOG("errno %d", errno);
	EXPECT_EQ(1, kvt_commit(self->c.fd, 0, &res.handle, 1, &done));
	EXPECT_EQ(KVTIER_ST_DONE, done.status);
	EXPECT_EQ(1, kvt_check(&self->c, 0, &self->key, 1, 0));
}

/* What is not reserved cannot be written by a device either. */
TEST_F(direct, read_into_a_foreign_slot_is_refused)
{
	struct kvtier_block_result res, done;

	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &self->key, NULL, 1, &res, 0));
	EXPECT_NE(BLOCK_BYTES, pread(self->disk, (char *)kvt_wr(&self->c, res.offset) + BLOCK_BYTES,
				     BLOCK_BYTES, 0));
	kvt_fill(kvt_wr(&self->c, res.offset), &self->key, BLOCK_BYTES);
	ASSERT_EQ(1, kvt_commit(self->c.fd, 0, &res.handle, 1, &done));
	EXPECT_EQ(-1, pread(self->disk, kvt_wr(&self->c, res.offset), BLOCK_BYTES, 0));
	EXPECT_EQ(1, kvt_check(&self->c, 0, &self->key, 1, 0));
}

/* Buffered I/O goes through the same pages. */
TEST_F(direct, plain_reads_and_writes)
{
	struct kvtier_block_result res, done, got;
	int mem = memfd_create("kvt", MFD_CLOEXEC);

	ASSERT_LE(0, mem);
	kvt_fill(self->buf, &self->key, BLOCK_BYTES);
	ASSERT_EQ(BLOCK_BYTES, pwrite(mem, self->buf, BLOCK_BYTES, 0));
	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &self->key, NULL, 1, &res, 0));
	ASSERT_EQ(BLOCK_BYTES, pread(mem, kvt_wr(&self->c, res.offset), BLOCK_BYTES, 0));
	ASSERT_EQ(1, kvt_commit(self->c.fd, 0, &res.handle, 1, &done));
	ASSERT_EQ(1, kvt_get(self->c.fd, 0, 0, &self->key, 1, &got, 0));
	ASSERT_EQ(BLOCK_BYTES, pwrite(mem, kvt_rd(&self->c, got.offset), BLOCK_BYTES, BLOCK_BYTES));
	ASSERT_EQ(BLOCK_BYTES, pread(mem, self->buf, BLOCK_BYTES, BLOCK_BYTES));
	EXPECT_TRUE(kvt_bytes_ok(self->buf, &self->key, BLOCK_BYTES));
	close(mem);
}

/* One fixed-buffer read of the block at the start of the disk into @to. */
static int fixed_read(struct io_uring *ring, int disk, void *to)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	struct io_uring_cqe *cqe;
	int ret;

	io_uring_prep_read_fixed(sqe, disk, to, BLOCK_BYTES, 0, 0);
	ret = io_uring_submit_and_wait(ring, 1);
	if (ret < 0)
		return ret;
	ret = io_uring_wait_cqe(ring, &cqe);
	if (ret)
		return ret;
	ret = cqe->res;
	io_uring_cqe_seen(ring, cqe);
	return ret;
}

/* COMMIT, asked again while a pin that was just given up may still be seen. */
static int commit_retry(int fd, __u64 handle, int timeout_ms)
{
	struct kvtier_block_result done = { .status = KVTIER_ST_PINNED };

	KVT_UNTIL(timeout_ms, kvt_commit(fd, 0, &handle, 1, &done) != 0 ||
			      done.status != KVTIER_ST_PINNED);
	return done.status;
}

TEST_F(direct, fixed_buffer_on_the_fill_view)
{
	struct kvtier_block_result res, done;
	struct io_uring ring;
	struct iovec iov;

	kvt_fill(self->buf, &self->key, BLOCK_BYTES);
	ASSERT_EQ(BLOCK_BYTES, pwrite(self->disk, self->buf, BLOCK_BYTES, 0));
	ASSERT_EQ(0, io_uring_queue_init(8, &ring, 0));
	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &self->key, NULL, 1, &res, 0));
	iov.iov_base = kvt_wr(&self->c, res.offset);
	iov.iov_len = BLOCK_BYTES;
	ASSERT_EQ(0, io_uring_register_buffers(&ring, &iov, 1));
	ASSERT_EQ(BLOCK_BYTES, fixed_read(&ring, self->disk, iov.iov_base));
	/* A device could go on writing: the block cannot be published. */
	EXPECT_EQ(0, kvt_commit(self->c.fd, 0, &res.handle, 1, &done));
	EXPECT_EQ(KVTIER_ST_PINNED, done.status);
	EXPECT_EQ(0, io_uring_unregister_buffers(&ring));
	EXPECT_EQ(KVTIER_ST_DONE, commit_retry(self->c.fd, res.handle, 10000));
	EXPECT_EQ(1, kvt_check(&self->c, 0, &self->key, 1, 0));
	io_uring_queue_exit(&ring);
}

/* The ring outlives the reservation: its slot is kept from everybody until it ends. */
TEST_F(direct, fixed_buffer_outlives_its_file)
{
	struct kvtier_block_result res;
	struct kvt_client other;
	struct io_uring ring;
	struct iovec iov;
	struct kvt_key key = kvt_key(SET, 1);

	kvt_fill(self->buf, &self->key, BLOCK_BYTES);
	ASSERT_EQ(BLOCK_BYTES, pwrite(self->disk, self->buf, BLOCK_BYTES, 0));
	ASSERT_EQ(0, io_uring_queue_init(8, &ring, 0));
	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &self->key, NULL, 1, &res, 0));
	iov.iov_base = kvt_wr(&self->c, res.offset);
	iov.iov_len = BLOCK_BYTES;
	ASSERT_EQ(0, io_uring_register_buffers(&ring, &iov, 1));
	kvt_client_close(&self->c);
	ASSERT_EQ(0, kvt_client_open(&self->pool, &other, "direct", BLOCK_BYTES));
	ASSERT_EQ(1, kvt_put(&other, 0, 0, &key, NULL, 1));
	/* The device writes where it always wrote; nobody's block is there. */
	EXPECT_EQ(BLOCK_BYTES, fixed_read(&ring, self->disk, iov.iov_base));
	EXPECT_EQ(1, kvt_check(&other, 0, &key, 1, 0));
	io_uring_queue_exit(&ring);
	kvt_client_close(&other);
}

TEST_F(direct, fixed_buffer_on_the_read_view_is_refused)
{
	struct kvtier_block_result res;
	struct io_uring ring;
	struct iovec iov;

	ASSERT_EQ(0, io_uring_queue_init(8, &ring, 0));
	ASSERT_EQ(1, kvt_put(&self->c, 0, 0, &self->key, NULL, 1));
	ASSERT_EQ(1, kvt_get(self->c.fd, 0, 0, &self->key, 1, &res, 0));
	iov.iov_base = kvt_rd(&self->c, res.offset);
	iov.iov_len = BLOCK_BYTES;
	EXPECT_EQ(-EFAULT, io_uring_register_buffers(&ring, &iov, 1));
	io_uring_queue_exit(&ring);
}

/* --- a device that has not answered yet ------------------------------------------------- */

#define TIER_BYTES	(4 * KVT_MIB)
#define SLOTS		((int)(TIER_BYTES / BLOCK_BYTES))

FIXTURE(in_flight)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvt_client other;
	struct kvt_key key;
	struct kvt_dm dm;
	aio_context_t aio;
	int disk;
};

FIXTURE_SETUP(in_flight)
{
	ASSERT_EQ(0, kvt_dm_make(&self->dm, "flight", 4 * KVT_MIB));
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "watermark_high_percent", "100"));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, TIER_BYTES));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "direct", BLOCK_BYTES));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->other, "neighbour", BLOCK_BYTES));
	ASSERT_EQ(0, syscall(SYS_io_setup, 8, &self->aio));
	self->key = kvt_key(SET, 0);
	self->disk = open(self->dm.disk.dev, O_RDWR | O_DIRECT | O_CLOEXEC);
	ASSERT_LE(0, self->disk);
}

FIXTURE_TEARDOWN(in_flight)
{
	kvt_dm_stop(&self->dm, false);
	syscall(SYS_io_destroy, self->aio);
	close(self->disk);
	kvt_client_close(&self->c);
	kvt_client_close(&self->other);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	kvt_dm_remove(&self->dm);
}

/*
 * The device has the pages, and is stopped. When this returns they have been taken: nobody else
 * submits it, as with a ring.
 */
static int launch(FIXTURE_DATA(in_flight) *self, void *at, bool write)
{
	struct iocb cb = {
		.aio_lio_opcode = write ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD,
		.aio_fildes = self->disk, .aio_buf = KVT_U64(at), .aio_nbytes = BLOCK_BYTES,
	}, *list = &cb;
	int err = kvt_dm_stop(&self->dm, true);

	if (err)
		return err;
	return syscall(SYS_io_submit, self->aio, 1, &list) == 1 ? 0 : -errno;
}

/* It goes on: how the request has ended. */
static int land(FIXTURE_DATA(in_flight) *self)
{
	int err = kvt_dm_stop(&self->dm, false);
	struct io_event event = { 0 };

	if (err)
		return err;
	return syscall(SYS_io_getevents, self->aio, 1, 1, &event, NULL) == 1 ? (int)event.res : -EIO;
}

/* Blocks that the neighbour can store, in all of memory that is to be had. */
static int neighbours(FIXTURE_DATA(in_flight) *self)
{
	struct kvt_key key;
	int i, n = 0;

	for (i = 0; i < SLOTS; i++) {
		key = kvt_key(SET + 1, i);
		n += kvt_put(&self->other, 0, 0, &key, NULL, 1) == 1;
	}
	return n;
}

/* A write of a block that goes meanwhile: what reaches the disk is the block, nobody else's. */
TEST_F(in_flight, write_from_a_block_that_goes)
{
	char *buf = aligned_alloc(4096, BLOCK_BYTES);
	struct kvtier_block_result res;
	struct kvtier_stat st;

	ASSERT_EQ(1, kvt_put(&self->c, 0, 0, &self->key, NULL, 1));
	ASSERT_EQ(1, kvt_get(self->c.fd, 0, 0, &self->key, 1, &res, 0));
	ASSERT_EQ(0, launch(self, kvt_rd(&self->c, res.offset), true));
	ASSERT_EQ(1, kvt_release(self->c.fd, &res.handle, 1, NULL));
	ASSERT_EQ(1, kvt_drop(self->c.fd, 0, &self->key, 1, NULL));
	EXPECT_TRUE(KVT_UNTIL(10000, neighbours(self) >= 0 &&
			      !kvt_stat(self->c.fd, KVTIER_STAT_POOL, &st) &&
			      st.regions_quarantined == 1));
	EXPECT_EQ(SIGBUS, kvt_touch_read(kvt_rd(&self->c, res.offset)));
	EXPECT_EQ(BLOCK_BYTES, land(self));
	ASSERT_EQ(BLOCK_BYTES, pread(self->disk, buf, BLOCK_BYTES, 0));
	EXPECT_TRUE(kvt_bytes_ok(buf, &self->key, BLOCK_BYTES));
	EXPECT_TRUE(KVT_UNTIL(10000, !kvt_stat(self->c.fd, KVTIER_STAT_POOL, &st) &&
			      st.regions_quarantined == 0));
	EXPECT_TRUE(KVT_UNTIL(10000, neighbours(self) == SLOTS));
	free(buf);
}

/* A read into what is being filled: nobody sees the block before the device is done with it. */
TEST_F(in_flight, read_into_a_block_that_is_committed)
{
	char *buf = aligned_alloc(4096, BLOCK_BYTES);
	struct kvtier_block_result res, done;

	kvt_fill(buf, &self->key, BLOCK_BYTES);
	ASSERT_EQ(BLOCK_BYTES, pwrite(self->disk, buf, BLOCK_BYTES, 0));
	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &self->key, NULL, 1, &res, 0));
	ASSERT_EQ(0, launch(self, kvt_wr(&self->c, res.offset), false));
	EXPECT_EQ(0, kvt_commit(self->c.fd, 0, &res.handle, 1, &done));
	EXPECT_EQ(KVTIER_ST_PINNED, done.status);
	EXPECT_EQ(BLOCK_BYTES, land(self));
	EXPECT_EQ(KVTIER_ST_DONE, commit_retry(self->c.fd, res.handle, 10000));
	EXPECT_EQ(1, kvt_check(&self->c, 0, &self->key, 1, 0));
	free(buf);
}

TEST_HARNESS_MAIN
