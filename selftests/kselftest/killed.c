// SPDX-License-Identifier: GPL-2.0
/*
 * Clients that are killed in the middle of everything. Whatever they were doing, at
 * once after their end nothing of theirs is left but committed blocks, which are
 * right, and the pool works.
 *
 * In half of the rounds the clients are stopped first and the pool is looked at, to
 * be sure that there was something to be cleaned up.
 */
#include "kvt_test.h"
#include <sys/eventfd.h>

#define BLOCK_BYTES	(32 * KVT_KIB)
#define CLIENTS		3
#define CHAINS		64
#define CHAIN		8
#define SET		17

struct shared {
	_Atomic unsigned int ops[8];
};

FIXTURE(killed)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct shared *shared;
};

FIXTURE_VARIANT(killed)
{
	bool bdev;
	bool dax;
};

FIXTURE_VARIANT_ADD(killed, dram) { .bdev = false };
FIXTURE_VARIANT_ADD(killed, dram_dax_bdev) { .bdev = true, .dax = true };

FIXTURE_SETUP(killed)
{
	if (variant->bdev && !kvt_env_bdev())
		SKIP(return, "no block device to use (KVT_BDEV)");
	if (variant->dax && !kvt_env_dax())
		SKIP(return, "no device-dax instance to use (KVT_DAX)");
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, 8 * KVT_MIB));
	if (variant->dax)
		ASSERT_LE(0, kvt_tier_dax(&self->pool, 1, 4 * KVT_MIB));
	if (variant->bdev)
		ASSERT_LE(0, kvt_tier_bdev(&self->pool, 2, 0));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "kill", BLOCK_BYTES));
	self->shared = mmap(NULL, sizeof(*self->shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->shared);
}

FIXTURE_TEARDOWN(killed)
{
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

struct victim {
	const struct kvt_pool *pool;
	struct shared *shared;
	unsigned int seed;
	struct kvt_client c;
	struct kvt_key keys[CHAIN];
	char *buf;
	int efd;
};

static void do_get(struct victim *v)
{
	struct kvtier_block_result res[CHAIN];
	__u64 handle[CHAIN];
	int i, n;

	n = kvt_get(v->c.fd, KVTIER_GET_WAIT, 0, v->keys, CHAIN, res, KVT_SEC);
	for (i = 0; i < n; i++) {
		if (!kvt_bytes_ok(kvt_rd(&v->c, res[i].offset), &v->keys[i], BLOCK_BYTES))
			_exit(99);
		handle[i] = res[i].handle;
	}
	/* Some leases are kept for good. */
	if (n > 1)
		kvt_release(v->c.fd, handle, n - 1, NULL);
}

static void do_put(struct victim *v)
{
	kvt_put(&v->c, KVTIER_RESERVE_WAIT, 0, v->keys, NULL, CHAIN);
}

/* Reserve and leave it at that, half written. */
static void do_reserve(struct victim *v)
{
	struct kvtier_block_result res[CHAIN];
	int i;

	if (kvt_reserve(v->c.fd, 0, 0, v->keys, NULL, CHAIN, res, 0) <= 0)
		return;
	for (i = 0; i < CHAIN; i++)
		if (res[i].status == KVTIER_ST_RESERVED)
			memset(kvt_wr(&v->c, res[i].offset), 0x77, BLOCK_BYTES / 2);
	if (rand_r(&v->seed) % 2) {
		__u64 handle[CHAIN];

		for (i = 0; i < CHAIN; i++)
			handle[i] = res[i].handle;
		kvt_abort(v->c.fd, handle, CHAIN, NULL);
	}
}

static void do_copy(struct victim *v)
{
	kvt_fill(v->buf, &v->keys[0], BLOCK_BYTES);
	kvt_write1(v->c.fd, 0, &v->keys[0], NULL, v->buf, BLOCK_BYTES, KVT_SEC);
	if (kvt_read1(v->c.fd, 0, &v->keys[0], v->buf, BLOCK_BYTES, KVT_SEC) == KVTIER_ST_HIT &&
	    !kvt_bytes_ok(v->buf, &v->keys[0], BLOCK_BYTES))
		_exit(99);
}

static void do_drop(struct victim *v)
{
	kvt_drop(v->c.fd, 0, v->keys, CHAIN, NULL);
}

static void do_async(struct victim *v)
{
	struct kvtier_block_result res[CHAIN];
	struct kvtier_completion comp[4];
	struct kvtier_get a = {
		.size = sizeof(a), .flags = KVTIER_GET_ASYNC, .nr = CHAIN,
		.keys = KVT_U64(v->keys), .results = KVT_U64(res), .eventfd = v->efd,
	};

	kvt_ioctl(v->c.fd, KVTIER_OP_GET, &a);
	kvt_prefetch(v->c.fd, KVTIER_PREFETCH_NOTIFY, 0, v->keys, CHAIN, 1, v->efd);
	if (read(v->c.fd, comp, sizeof(comp)) < 0 && errno != EAGAIN)
		_exit(98);
}

static void do_remap(struct victim *v)
{
	struct kvt_view view;

	if (kvt_map(v->c.fd, PROT_READ, v->c.rd.start, v->c.rd.bytes, &view))
		_exit(97);
	kvt_touch_read(view.base);
	kvt_unmap(&view);
}

/* Wait for what another holds. */
static void do_wait(struct victim *v)
{
	struct kvtier_block_result res[CHAIN];

	kvt_reserve(v->c.fd, KVTIER_RESERVE_WAIT | KVTIER_RESERVE_LEASE, 0, v->keys, NULL, CHAIN,
		    res, 2 * KVT_SEC);
}

static int victim(struct kvt_child *me, void *arg)
{
	static void (*const ops[])(struct victim *v) = {
		do_get, do_put, do_reserve, do_copy, do_drop, do_async, do_remap, do_wait,
	};
	struct victim *v = arg;
	unsigned int op;

	KVT_CHILD_CHECK(!kvt_client_open(v->pool, &v->c, "kill", BLOCK_BYTES));
	fcntl(v->c.fd, F_SETFL, O_NONBLOCK);
	v->buf = malloc(BLOCK_BYTES);
	v->efd = eventfd(0, EFD_NONBLOCK);
	KVT_CHILD_CHECK(!kvt_say(me, 0));
	for (;;) {
		op = rand_r(&v->seed) % KVT_ARRAY(ops);
		kvt_keys(v->keys, SET, rand_r(&v->seed) % CHAINS * CHAIN, CHAIN);
		ops[op](v);
		v->shared->ops[op]++;
	}
	return 0;
}

/* What is held just now: leases, and blocks being filled. */
static int count_held(const struct kvt_client *c, __u64 *leases, int *filling)
{
	struct kvtier_entry *all;
	struct kvtier_stat st;
	int i, nr = kvt_iterate_all(c->fd, 256, &all);

	if (nr < 0 || kvt_stat(c->fd, KVTIER_STAT_POOL, &st))
		return -EIO;
	*leases = st.leases;
	for (i = 0, *filling = 0; i < nr; i++)
		*filling += all[i].status == KVTIER_ST_FILLING;
	free(all);
	return 0;
}

static int stop_and_count(const struct kvt_client *c, struct kvt_child *child, __u64 *leases,
			  int *filling)
{
	int i;

	for (i = 0; i < CLIENTS; i++)
		kvt_kill(&child[i], SIGSTOP);
	for (i = 0; i < CLIENTS; i++)
		if (!KVT_UNTIL(5000, strchr("TtZD", kvt_proc_state(child[i].pid))))
			return -ETIMEDOUT;
	return count_held(c, leases, filling);
}

/* Has every kind of call been made, to its end. */
static bool all_done(const struct shared *s)
{
	size_t i;

	for (i = 0; i < KVT_ARRAY(s->ops) && s->ops[i]; i++)
		;
	return i == KVT_ARRAY(s->ops);
}

TEST_F_TIMEOUT(killed, in_the_middle_of_everything, 900)
{
	int rounds = kvt_env_many(variant->bdev ? 10 : 15, 400), round, i, filling;
	__u64 leases, seen_leases = 0, end = kvt_now_ns() + 120 * KVT_SEC;
	bool seen_all = false;
	struct kvt_child child[CLIENTS];
	struct victim *v = calloc(CLIENTS, sizeof(*v));
	struct kvt_key keys[CHAIN];
	int seen_filling = 0;
	unsigned int seed = 1;

	/* There is something to clean up, and every kind of call is made, or it was no test. */
	for (round = 0; round < rounds || (!seen_all && kvt_now_ns() < end); round++) {
		for (i = 0; i < CLIENTS; i++) {
			v[i].pool = &self->pool;
			v[i].shared = self->shared;
			v[i].seed = round * CLIENTS + i + 1;
			ASSERT_EQ(0, kvt_spawn(&child[i], victim, &v[i]));
			ASSERT_EQ(0, kvt_hear(&child[i], 20000));
		}
		kvt_sleep_ms(rand_r(&seed) % 60 + 1 + (round < rounds ? 0 : 300));
		if (round % 2) {
			ASSERT_EQ(0, stop_and_count(&self->c, child, &leases, &filling));
			seen_leases += leases;
			seen_filling += filling;
		}
		for (i = 0; i < CLIENTS; i++)
			kvt_kill(&child[i], SIGKILL);
		for (i = 0; i < CLIENTS; i++)
			ASSERT_EQ(-SIGKILL, kvt_join(&child[i], 20000)) TH_LOG("round %d", round);
		ASSERT_EQ(0, count_held(&self->c, &leases, &filling));
		EXPECT_EQ(0, leases) TH_LOG("round %d", round);
		EXPECT_EQ(0, filling) TH_LOG("round %d", round);
		kvt_keys(keys, SET, round % CHAINS * CHAIN, CHAIN);
		EXPECT_EQ(CHAIN, kvt_put(&self->c, KVTIER_RESERVE_WAIT, 0, keys, NULL, CHAIN));
		EXPECT_EQ(CHAIN, kvt_check(&self->c, 0, keys, CHAIN, 10 * KVT_SEC));
		seen_all = seen_leases && seen_filling && all_done(self->shared);
	}
	EXPECT_LT(0, seen_leases);
	EXPECT_LT(0, seen_filling);
	for (i = 0; i < 8; i++)
		EXPECT_LT(0, self->shared->ops[i]) TH_LOG("operation %d was never finished", i);
	free(v);
}

/* All that was stored by those who were killed is right, or not there. */
TEST_F_TIMEOUT(killed, what_is_left_is_right, 300)
{
	struct kvt_child child[CLIENTS];
	struct victim *v = calloc(CLIENTS, sizeof(*v));
	struct kvt_key keys[CHAIN];
	int i, ret, there = 0;

	for (i = 0; i < CLIENTS; i++) {
		v[i].pool = &self->pool;
		v[i].shared = self->shared;
		v[i].seed = 1000 + i;
		ASSERT_EQ(0, kvt_spawn(&child[i], victim, &v[i]));
		ASSERT_EQ(0, kvt_hear(&child[i], 20000));
	}
	/* They keep leases and reservations: in the end all of them wait for room. */
	EXPECT_TRUE(KVT_UNTIL(20000, self->shared->ops[1] > 3));
	kvt_sleep_ms(500);
	for (i = 0; i < CLIENTS; i++) {
		kvt_kill(&child[i], SIGKILL);
		EXPECT_EQ(-SIGKILL, kvt_join(&child[i], 20000));
	}
	for (i = 0; i < CHAINS; i++) {
		kvt_keys(keys, SET, i * CHAIN, CHAIN);
		ret = kvt_check(&self->c, 0, keys, CHAIN, 10 * KVT_SEC);
		ASSERT_LE(0, ret) TH_LOG("chain %d: %d", i, ret);
		there += ret;
	}
	EXPECT_LT(0, there);
	free(v);
}

/* A pool can be destroyed the moment its last client has been killed. */
TEST_F_TIMEOUT(killed, then_destroy, 300)
{
	int rounds = kvt_env_many(5, 100), round, i;
	struct kvt_child child[CLIENTS];
	struct victim *v = calloc(CLIENTS, sizeof(*v));

	for (round = 0; round < rounds; round++) {
		struct kvt_pool pool = { 0 };

		ASSERT_EQ(0, kvt_setup(&pool));
		ASSERT_LE(0, kvt_tier_dram(&pool, 0, 4 * KVT_MIB));
		for (i = 0; i < CLIENTS; i++) {
			v[i].pool = &pool;
			v[i].shared = self->shared;
			v[i].seed = 5000 + round * CLIENTS + i;
			ASSERT_EQ(0, kvt_spawn(&child[i], victim, &v[i]));
			ASSERT_EQ(0, kvt_hear(&child[i], 20000));
		}
		kvt_sleep_ms(round * 7);
		EXPECT_EQ(-EBUSY, kvt_pool_destroy(pool.ctl, pool.id));
		for (i = 0; i < CLIENTS; i++)
			kvt_kill(&child[i], SIGKILL);
		for (i = 0; i < CLIENTS; i++)
			EXPECT_EQ(-SIGKILL, kvt_join(&child[i], 20000));
		EXPECT_EQ(0, kvt_teardown(&pool));
	}
	free(v);
}

TEST_HARNESS_MAIN
