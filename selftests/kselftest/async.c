// SPDX-License-Identifier: GPL-2.0
/*
 * Calls that do not wait: completions by poll, read and eventfd.
 */
#include "kvt_test.h"
#include <poll.h>
#include <sys/eventfd.h>

#define BLOCK_BYTES	16384
#define SET		7

FIXTURE(async)
{
	struct kvt_pool pool;
	struct kvt_client filler;
	struct kvt_client c;
	struct kvt_key key;
	struct kvtier_block_result fill;	/* reserved by @filler */
	int efd;
};

FIXTURE_SETUP(async)
{
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, 16 * KVT_MIB));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->filler, "async", BLOCK_BYTES));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "async", BLOCK_BYTES));
	ASSERT_EQ(0, fcntl(self->c.fd, F_SETFL, O_NONBLOCK));
	self->key = kvt_key(SET, 0);
	ASSERT_EQ(1, kvt_reserve(self->filler.fd, 0, 0, &self->key, NULL, 1, &self->fill, 0));
	self->efd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	ASSERT_LE(0, self->efd);
}

FIXTURE_TEARDOWN(async)
{
	close(self->efd);
	kvt_client_close(&self->c);
	kvt_client_close(&self->filler);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

static int finish_filling(FIXTURE_DATA(async) *self)
{
	struct kvtier_block_result done;

	kvt_fill(kvt_wr(&self->filler, self->fill.offset), &self->key, BLOCK_BYTES);
	return kvt_commit(self->filler.fd, 0, &self->fill.handle, 1, &done);
}

static int async_get(FIXTURE_DATA(async) *self, __u64 user_data, int efd,
		     struct kvtier_block_result *res)
{
	struct kvtier_get a = {
		.size = sizeof(a), .flags = KVTIER_GET_ASYNC, .nr = 1,
		.keys = KVT_U64(&self->key), .results = KVT_U64(res), .user_data = user_data,
		.eventfd = efd,
	};

	return kvt_ioctl(self->c.fd, KVTIER_OP_GET, &a);
}

static int async_reserve(FIXTURE_DATA(async) *self, __u64 user_data, int efd,
			 struct kvtier_block_result *res)
{
	struct kvtier_reserve a = {
		.size = sizeof(a), .flags = KVTIER_RESERVE_ASYNC, .nr = 1,
		.keys = KVT_U64(&self->key), .results = KVT_U64(res), .user_data = user_data,
		.eventfd = efd,
	};

	return kvt_ioctl(self->c.fd, KVTIER_OP_RESERVE, &a);
}

static int polled(int fd, int timeout_ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, KVT_PATIENCE_MS(timeout_ms)) == 1 && (pfd.revents & POLLIN);
}

TEST_F(async, get_completes)
{
	struct kvtier_block_result res;
	struct kvtier_completion comp;
	__u64 count;

	ASSERT_EQ(0, async_get(self, 0x1234567890abcdefull, self->efd, &res));
	EXPECT_EQ(KVTIER_ST_FILLING, res.status);
	EXPECT_EQ(0, res.handle);
	EXPECT_EQ(-1, read(self->c.fd, &comp, sizeof(comp)));
	EXPECT_EQ(EAGAIN, errno);
	EXPECT_EQ(0, polled(self->c.fd, 100));
	ASSERT_EQ(1, finish_filling(self));
	EXPECT_EQ(1, polled(self->c.fd, 10000));
	EXPECT_EQ(1, polled(self->efd, 10000));
	EXPECT_EQ(sizeof(count), read(self->efd, &count, sizeof(count)));
	EXPECT_EQ(1, count);
	ASSERT_EQ(sizeof(comp), read(self->c.fd, &comp, sizeof(comp)));
	EXPECT_EQ(0x1234567890abcdefull, comp.user_data);
	EXPECT_EQ(0, comp.result);
	EXPECT_EQ(1, comp.nr_ready);
	EXPECT_EQ(0, polled(self->c.fd, 0));
	ASSERT_EQ(1, kvt_get(self->c.fd, 0, 0, &self->key, 1, &res, 0));
	EXPECT_TRUE(kvt_bytes_ok(kvt_rd(&self->c, res.offset), &self->key, BLOCK_BYTES));
}

TEST_F(async, reserve_completes)
{
	struct kvtier_block_result res;
	struct kvtier_completion comp;

	ASSERT_EQ(0, async_reserve(self, 42, self->efd, &res));
	EXPECT_EQ(KVTIER_ST_FILLING, res.status);
	ASSERT_EQ(1, finish_filling(self));
	EXPECT_EQ(1, polled(self->c.fd, 10000));
	ASSERT_EQ(sizeof(comp), read(self->c.fd, &comp, sizeof(comp)));
	EXPECT_EQ(42, comp.user_data);
	ASSERT_EQ(0, kvt_reserve(self->c.fd, KVTIER_RESERVE_LEASE, 0, &self->key, NULL, 1, &res,
				 0));
	EXPECT_EQ(KVTIER_ST_EXISTS, res.status);
	EXPECT_NE(0, res.handle);
}

/* A filling that is given up settles, too. */
TEST_F(async, given_up)
{
	struct kvtier_block_result res;
	struct kvtier_completion comp;

	ASSERT_EQ(0, async_reserve(self, 1, -1, &res));
	EXPECT_EQ(1, kvt_abort(self->filler.fd, &self->fill.handle, 1, NULL));
	EXPECT_EQ(1, polled(self->c.fd, 10000));
	ASSERT_EQ(sizeof(comp), read(self->c.fd, &comp, sizeof(comp)));
	EXPECT_EQ(1, comp.user_data);
	EXPECT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &self->key, NULL, 1, &res, 0));
	EXPECT_EQ(KVTIER_ST_RESERVED, res.status);
}

/* Several at once: each completes, whole structs only. */
TEST_F(async, many)
{
	struct kvtier_completion comp[8];
	struct kvtier_block_result res;
	unsigned int seen = 0;
	int i, nr = 0;
	ssize_t n;

	for (i = 0; i < 8; i++)
		ASSERT_EQ(0, async_get(self, i, self->efd, &res));
	ASSERT_EQ(1, finish_filling(self));
	EXPECT_EQ(1, polled(self->c.fd, 10000));
	EXPECT_EQ(-1, read(self->c.fd, comp, sizeof(comp[0]) - 1));
	EXPECT_NE(EAGAIN, errno);
	while (nr < 8) {
		ASSERT_EQ(1, polled(self->c.fd, 10000));
		n = read(self->c.fd, comp, 3 * sizeof(comp[0]) + 5);
		ASSERT_LT(0, n);
		ASSERT_EQ(0, n % sizeof(comp[0]));
		EXPECT_LE(n, 3 * sizeof(comp[0]));
		for (i = 0; i < (int)(n / sizeof(comp[0])); i++, nr++)
			seen |= 1u << comp[i].user_data;
	}
	EXPECT_EQ(0xff, seen);
}

/* A read that may wait does. */
static int reading_child(struct kvt_child *me, void *arg)
{
	const struct kvt_client *c = arg;
	struct kvtier_completion comp;

	KVT_CHILD_CHECK(!kvt_say(me, 0));
	KVT_CHILD_CHECK(read(c->fd, &comp, sizeof(comp)) == sizeof(comp));
	KVT_CHILD_CHECK(comp.user_data == 5);
	return 0;
}

TEST_F(async, read_waits)
{
	struct kvtier_block_result res;
	struct kvt_child child;

	ASSERT_EQ(0, fcntl(self->c.fd, F_SETFL, 0));
	ASSERT_EQ(0, async_get(self, 5, -1, &res));
	ASSERT_EQ(0, kvt_spawn(&child, reading_child, &self->c));
	ASSERT_EQ(0, kvt_hear(&child, 20000));
	EXPECT_EQ(-ETIMEDOUT, kvt_join(&child, 200));
	ASSERT_EQ(1, finish_filling(self));
	EXPECT_EQ(0, kvt_join(&child, 10000));
}

/* There is a limit to what a file may have outstanding, and reading frees room. */
TEST_F(async, outstanding_limit)
{
	struct kvtier_completion comp;
	struct kvtier_block_result res;
	int i, err = 0;

	for (i = 0; i < 1000000 && !err; i++)
		err = async_get(self, i, -1, &res);
	EXPECT_EQ(-EAGAIN, err) TH_LOG("after %d", i);
	ASSERT_EQ(1, finish_filling(self));
	EXPECT_EQ(1, polled(self->c.fd, 10000));
	EXPECT_EQ(sizeof(comp), read(self->c.fd, &comp, sizeof(comp)));
}

#define WAITERS		34	/* times 64 calls: more than a kernel has workers for */

/* Calls that wait for long keep nobody else's completion from being delivered. */
TEST_F(async, others_calls_do_not_hold_up)
{
	static struct kvt_client waiter[WAITERS];
	struct kvt_key other = kvt_key(SET, 1);
	struct kvtier_block_result res, done;
	struct kvtier_completion comp;
	int i, k, own = self->c.fd;

	ASSERT_EQ(1, kvt_reserve(self->filler.fd, 0, 0, &other, NULL, 1, &done, 0));
	for (i = 0; i < WAITERS; i++) {
		ASSERT_EQ(0, kvt_client_open(&self->pool, &waiter[i], "async", BLOCK_BYTES));
		self->c.fd = waiter[i].fd;
		for (k = 0; k < 64; k++)
			ASSERT_EQ(0, async_get(self, k, -1, &res));
	}
	self->c.fd = own;
	self->key = other;
	ASSERT_EQ(0, async_get(self, 77, -1, &res));
	self->key = kvt_key(SET, 0);
	kvt_fill(kvt_wr(&self->filler, done.offset), &other, BLOCK_BYTES);
	ASSERT_EQ(1, kvt_commit(self->filler.fd, 0, &done.handle, 1, &res));
	EXPECT_EQ(1, polled(self->c.fd, 10000));
	ASSERT_EQ(sizeof(comp), read(self->c.fd, &comp, sizeof(comp)));
	EXPECT_EQ(77, comp.user_data);
	/* The others are still waiting; half of them leave before it comes. */
	EXPECT_EQ(0, polled(waiter[0].fd, 0));
	for (i = 0; i < WAITERS / 2; i++)
		kvt_client_close(&waiter[i]);
	ASSERT_EQ(1, finish_filling(self));
	for (; i < WAITERS; i++) {
		EXPECT_EQ(1, polled(waiter[i].fd, 10000));
		kvt_client_close(&waiter[i]);
	}
}

/* Closing with calls outstanding: they go with the file, the eventfd stays whole. */
TEST_F(async, close_while_outstanding)
{
	struct kvtier_block_result res;
	int i;

	for (i = 0; i < 16; i++)
		ASSERT_EQ(0, async_get(self, i, self->efd, &res));
	kvt_client_close(&self->c);
	ASSERT_EQ(1, finish_filling(self));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "async", BLOCK_BYTES));
	EXPECT_EQ(1, kvt_check(&self->c, 0, &self->key, 1, 0));
	EXPECT_EQ(0, polled(self->c.fd, 0));
}

TEST_HARNESS_MAIN
