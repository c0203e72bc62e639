// SPDX-License-Identifier: GPL-2.0
/*
 * One copy, whoever stores it and whenever: many processes with the same keys,
 * waiting for another's filling, and fillers that die or stop in the middle.
 */
#include "kvt_test.h"

#define BLOCK_BYTES	16384
#define SET		6
#define NR		48
#define PROCS		6

FIXTURE(dedup)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvt_key key;
};

FIXTURE_SETUP(dedup)
{
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, 32 * KVT_MIB));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "dedup", BLOCK_BYTES));
	self->key = kvt_key(SET, 0);
}

FIXTURE_TEARDOWN(dedup)
{
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

/* --- everybody stores everything ------------------------------------------------- */

/* How many entries of the batch a process found there already, or -1. */
static int store_all(const struct kvt_client *c, const struct kvt_key *keys, __u32 nr)
{
	struct kvtier_block_result res[NR], done;
	__u32 at = 0, i;
	int exists = 0, ret;

	while (at < nr) {
		ret = kvt_reserve(c->fd, KVTIER_RESERVE_WAIT, 0, keys + at,
				  at ? keys + at - 1 : NULL, nr - at, res, 20 * KVT_SEC);
		if (ret < 0)
			return ret;
		for (i = 0; at + i < nr; i++) {
			if (res[i].status == KVTIER_ST_EXISTS)
				exists++;
			else if (res[i].status != KVTIER_ST_RESERVED)
				break;
			if (res[i].status == KVTIER_ST_EXISTS)
				continue;
			kvt_fill(kvt_wr(c, res[i].offset), &keys[at + i], BLOCK_BYTES);
			ret = kvt_commit(c->fd, 0, &res[i].handle, 1, &done);
			if (ret != 1)
				return -1;
		}
		/* What was not reached is given back and asked for again. */
		for (ret = i; at + ret < nr; ret++)
			if (res[ret].status == KVTIER_ST_RESERVED)
				kvt_abort(c->fd, &res[ret].handle, 1, NULL);
		at += i;
	}
	return exists;
}

struct storm {
	const struct kvt_pool *pool;
};

static int storm_child(struct kvt_child *me, void *arg)
{
	const struct storm *s = arg;
	struct kvt_key keys[NR];
	struct kvt_client c;
	int ret;

	KVT_CHILD_CHECK(!kvt_client_open(s->pool, &c, "dedup", BLOCK_BYTES));
	kvt_keys(keys, SET, 0, NR);
	KVT_CHILD_CHECK(!kvt_say(me, 0));
	KVT_CHILD_CHECK(kvt_hear(me, 20000) == 0);
	ret = store_all(&c, keys, NR);
	KVT_CHILD_CHECK(ret >= 0);
	KVT_CHILD_CHECK(!kvt_say(me, ret));
	KVT_CHILD_CHECK(kvt_check(&c, 0, keys, NR, 20 * KVT_SEC) == NR);
	return 0;
}

TEST_F(dedup, one_copy)
{
	struct storm s = { .pool = &self->pool };
	struct kvt_child child[PROCS];
	struct kvtier_stat st;
	int i, exists = 0;

	for (i = 0; i < PROCS; i++)
		ASSERT_EQ(0, kvt_spawn(&child[i], storm_child, &s));
	for (i = 0; i < PROCS; i++)
		ASSERT_EQ(0, kvt_hear(&child[i], 20000));
	for (i = 0; i < PROCS; i++)
		kvt_say(&child[i], 0);
	for (i = 0; i < PROCS; i++)
		exists += kvt_hear(&child[i], 60000);
	for (i = 0; i < PROCS; i++)
		EXPECT_EQ(0, kvt_join(&child[i], 60000));
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(NR, st.nr_blocks);
	EXPECT_EQ(NR * BLOCK_BYTES, st.used_bytes);
	EXPECT_EQ(NR, st.puts);
	/* Every process got every block, but NR of all those were filled. */
	EXPECT_EQ(NR * (PROCS - 1), exists);
	EXPECT_LE(exists, st.dedups);
	EXPECT_EQ(0, st.leases);
}

/* --- one waits for another -------------------------------------------------------- */

struct wait_args {
	const struct kvt_pool *pool;
	struct kvt_key key;
	__u64 timeout_ns;
	bool get;
};

/*
 * Waits for the block by RESERVE (or GET) and says what came of it. If filling is
 * left to it, it waits for the word to commit.
 */
static int waiter_child(struct kvt_child *me, void *arg)
{
	const struct wait_args *w = arg;
	struct kvtier_block_result res, done;
	struct kvt_client c;
	int ret;

	KVT_CHILD_CHECK(!kvt_client_open(w->pool, &c, "dedup", BLOCK_BYTES));
	KVT_CHILD_CHECK(!kvt_say(me, 0));
	if (w->get)
		ret = kvt_get(c.fd, KVTIER_GET_WAIT, 0, &w->key, 1, &res, w->timeout_ns);
	else
		ret = kvt_reserve(c.fd, KVTIER_RESERVE_WAIT | KVTIER_RESERVE_LEASE, 0, &w->key,
				  NULL, 1, &res, w->timeout_ns);
	KVT_CHILD_CHECK(ret >= 0);
	KVT_CHILD_CHECK(!kvt_say(me, res.status + 1000));
	if (res.status == KVTIER_ST_RESERVED) {
		KVT_CHILD_CHECK(kvt_hear(me, 30000) == 0);
		kvt_fill(kvt_wr(&c, res.offset), &w->key, BLOCK_BYTES);
		KVT_CHILD_CHECK(kvt_commit(c.fd, KVTIER_COMMIT_LEASE, &res.handle, 1, &done) == 1);
		res = done;
	}
	if (res.status != KVTIER_ST_EXISTS && res.status != KVTIER_ST_HIT)
		return 0;
	KVT_CHILD_CHECK(res.handle);
	KVT_CHILD_CHECK(kvt_bytes_ok(kvt_rd(&c, res.offset), &w->key, BLOCK_BYTES));
	KVT_CHILD_CHECK(kvt_release(c.fd, &res.handle, 1, NULL) == 1);
	return 0;
}

/* Started, and in a call that does not answer. */
static bool is_waiting(struct kvt_child *c)
{
	return kvt_hear(c, 20000) == 0 && kvt_in_ioctl(c->pid) && kvt_hear(c, 0) == -ETIMEDOUT;
}

static int status_of(struct kvt_child *c)
{
	int word = kvt_hear(c, 30000);

	return word < 0 ? word : word - 1000;
}

TEST_F(dedup, second_waits_for_the_first)
{
	struct wait_args w = { &self->pool, self->key, KVT_FOREVER, false };
	struct kvtier_block_result res, done;
	struct kvt_child child;
	struct kvtier_stat st;

	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &self->key, NULL, 1, &res, 0));
	ASSERT_EQ(0, kvt_spawn(&child, waiter_child, &w));
	EXPECT_TRUE(is_waiting(&child));
	kvt_fill(kvt_wr(&self->c, res.offset), &self->key, BLOCK_BYTES);
	ASSERT_EQ(1, kvt_commit(self->c.fd, 0, &res.handle, 1, &done));
	EXPECT_EQ(KVTIER_ST_EXISTS, status_of(&child));
	EXPECT_EQ(0, kvt_join(&child, 10000));
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(1, st.nr_blocks);
	EXPECT_EQ(1, st.puts);
	EXPECT_EQ(1, st.dedups);
	EXPECT_EQ(1, st.dedup_waits);
	EXPECT_EQ(0, st.leases);
}

TEST_F(dedup, get_waits_for_the_filler)
{
	struct wait_args w = { &self->pool, self->key, KVT_FOREVER, true };
	struct kvtier_block_result res, done;
	struct kvt_child child;

	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &self->key, NULL, 1, &res, 0));
	ASSERT_EQ(0, kvt_spawn(&child, waiter_child, &w));
	EXPECT_TRUE(is_waiting(&child));
	kvt_fill(kvt_wr(&self->c, res.offset), &self->key, BLOCK_BYTES);
	ASSERT_EQ(1, kvt_commit(self->c.fd, 0, &res.handle, 1, &done));
	EXPECT_EQ(KVTIER_ST_HIT, status_of(&child));
	EXPECT_EQ(0, kvt_join(&child, 10000));
}

TEST_F(dedup, waiting_ends_in_time)
{
	struct kvtier_block_result res, other;
	struct kvt_client c;
	__u64 start;

	ASSERT_EQ(0, kvt_client_open(&self->pool, &c, "dedup", BLOCK_BYTES));
	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &self->key, NULL, 1, &res, 0));
	start = kvt_now_ns();
	EXPECT_EQ(0, kvt_reserve(c.fd, KVTIER_RESERVE_WAIT, 0, &self->key, NULL, 1, &other,
				 300 * KVT_MSEC));
	EXPECT_EQ(KVTIER_ST_FILLING, other.status);
	EXPECT_LE(200 * KVT_MSEC, kvt_now_ns() - start);
	start = kvt_now_ns();
	EXPECT_EQ(0, kvt_get(c.fd, KVTIER_GET_WAIT, 0, &self->key, 1, &other, 300 * KVT_MSEC));
	EXPECT_EQ(KVTIER_ST_FILLING, other.status);
	EXPECT_LE(200 * KVT_MSEC, kvt_now_ns() - start);
	/* Without WAIT there is none. */
	EXPECT_EQ(0, kvt_reserve(c.fd, 0, 0, &self->key, NULL, 1, &other, KVT_FOREVER));
	EXPECT_EQ(KVTIER_ST_FILLING, other.status);
	kvt_client_close(&c);
}

/* A filler that gives up passes the work on, to one waiter. */
TEST_F(dedup, abort_passes_it_on)
{
	struct wait_args w = { &self->pool, self->key, KVT_FOREVER, false };
	struct kvtier_block_result res;
	struct kvt_child child;

	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &self->key, NULL, 1, &res, 0));
	ASSERT_EQ(0, kvt_spawn(&child, waiter_child, &w));
	EXPECT_TRUE(is_waiting(&child));
	EXPECT_EQ(1, kvt_abort(self->c.fd, &res.handle, 1, NULL));
	EXPECT_EQ(KVTIER_ST_RESERVED, status_of(&child));
	kvt_say(&child, 0);
	EXPECT_EQ(0, kvt_join(&child, 10000));
	EXPECT_EQ(1, kvt_check(&self->c, 0, &self->key, 1, 0));
}

/* Waiting can be ended by a signal that ends the process, and by nothing less. */
TEST_F(dedup, waiter_killed)
{
	struct wait_args w = { &self->pool, self->key, KVT_FOREVER, false };
	struct kvtier_block_result res, done;
	struct kvt_child child;

	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &self->key, NULL, 1, &res, 0));
	ASSERT_EQ(0, kvt_spawn(&child, waiter_child, &w));
	EXPECT_TRUE(is_waiting(&child));
	kvt_kill(&child, SIGKILL);
	EXPECT_EQ(-SIGKILL, kvt_join(&child, 10000));
	kvt_fill(kvt_wr(&self->c, res.offset), &self->key, BLOCK_BYTES);
	EXPECT_EQ(1, kvt_commit(self->c.fd, 0, &res.handle, 1, &done));
	EXPECT_EQ(1, kvt_check(&self->c, 0, &self->key, 1, 0));
}

/* --- fillers that do not finish ------------------------------------------------------ */

/* Reserves, writes half of it, reports, and then sits there. */
static int lame_filler(struct kvt_child *me, void *arg)
{
	const struct wait_args *w = arg;
	struct kvtier_block_result res, done;
	struct kvt_client c;

	KVT_CHILD_CHECK(!kvt_client_open(w->pool, &c, "dedup", BLOCK_BYTES));
	KVT_CHILD_CHECK(kvt_reserve(c.fd, 0, 0, &w->key, NULL, 1, &res, 0) == 1);
	memset(kvt_wr(&c, res.offset), 0xee, BLOCK_BYTES / 2);
	KVT_CHILD_CHECK(!kvt_say(me, 0));
	if (kvt_hear(me, 60000) != 0)
		return 0;
	/* Woken after its reservation has been taken back. */
	KVT_CHILD_CHECK(kvt_commit(c.fd, 0, &res.handle, 1, &done) == 0);
	KVT_CHILD_CHECK(done.status == KVTIER_ST_STALE);
	KVT_CHILD_CHECK(kvt_touch_write(kvt_wr(&c, res.offset), 0xee) == SIGBUS);
	KVT_CHILD_CHECK(kvt_abort(c.fd, &res.handle, 1, NULL) == 0);
	return 0;
}

/* Which of the waiters has been given the block to fill, or -1. */
static int who_fills(const struct kvt_child *waiter, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		if (kvt_hear(&waiter[i], 10) == 1000 + KVTIER_ST_RESERVED)
			return i;
	return -1;
}

TEST_F(dedup, filler_killed)
{
	struct wait_args w = { &self->pool, self->key, KVT_FOREVER, false };
	struct kvt_child filler, waiter[3];
	int i, reserved = -1;

	ASSERT_EQ(0, kvt_spawn(&filler, lame_filler, &w));
	ASSERT_EQ(0, kvt_hear(&filler, 20000));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, kvt_spawn(&waiter[i], waiter_child, &w));
		EXPECT_TRUE(is_waiting(&waiter[i]));
	}
	kvt_kill(&filler, SIGKILL);
	EXPECT_EQ(-SIGKILL, kvt_join(&filler, 10000));
	/* One of them is to fill now, the others go on waiting. */
	ASSERT_TRUE(KVT_UNTIL(20000, (reserved = who_fills(waiter, 3)) >= 0));
	for (i = 0; i < 3; i++)
		if (i != reserved)
			EXPECT_EQ(-ETIMEDOUT, kvt_hear(&waiter[i], 200));
	kvt_say(&waiter[reserved], 0);
	for (i = 0; i < 3; i++)
		if (i != reserved)
			EXPECT_EQ(KVTIER_ST_EXISTS, status_of(&waiter[i]));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, kvt_join(&waiter[i], 20000));
	EXPECT_EQ(1, kvt_check(&self->c, 0, &self->key, 1, 0));
}

TEST_F(dedup, filler_stopped)
{
	struct wait_args w = { &self->pool, self->key, KVT_FOREVER, false };
	struct kvt_child filler, waiter;
	struct kvtier_stat st;

	ASSERT_EQ(0, kvt_spawn(&filler, lame_filler, &w));
	ASSERT_EQ(0, kvt_hear(&filler, 20000));
	kvt_kill(&filler, SIGSTOP);
	ASSERT_TRUE(KVT_UNTIL(5000, kvt_proc_state(filler.pid) == 'T'));
	ASSERT_EQ(0, kvt_spawn(&waiter, waiter_child, &w));
	EXPECT_TRUE(is_waiting(&waiter));
	/* From now on; the waiter is to have the usual time for its own. */
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "reservation_timeout_ms", "1500"));
	EXPECT_TRUE(KVT_UNTIL(20000, !kvt_stat(self->c.fd, 0, &st) && st.aborts == 1));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "reservation_timeout_ms", "60000"));
	EXPECT_EQ(KVTIER_ST_RESERVED, status_of(&waiter));
	EXPECT_EQ('T', kvt_proc_state(filler.pid));
	kvt_say(&waiter, 0);
	EXPECT_EQ(0, kvt_join(&waiter, 15000));
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(1, st.aborts);
	/* It comes back and finds that it has missed its turn. */
	kvt_say(&filler, 0);
	kvt_kill(&filler, SIGCONT);
	EXPECT_EQ(0, kvt_join(&filler, 10000));
	EXPECT_EQ(1, kvt_check(&self->c, 0, &self->key, 1, 0));
}

/* Keeps the pool's worker looking for reservations that have expired. */
static int kicker(struct kvt_child *me, void *arg)
{
	const struct kvt_pool *p = arg;
	int nr = 0;

	while (kvt_hear(me, 0) == -ETIMEDOUT) {
		KVT_CHILD_CHECK(!kvt_sysfs_write(p, "reservation_timeout_ms", "20000"));
		nr++;
	}
	KVT_CHILD_CHECK(!kvt_say(me, nr));
	return 0;
}

/* Nothing is taken back before its time. */
TEST_F_TIMEOUT(dedup, reservations_last, 900)
{
	int i, nr = kvt_env_many(4000, 100000);
	struct kvtier_block_result res, done;
	struct kvt_child child;
	struct kvtier_stat st;

	ASSERT_EQ(0, kvt_spawn(&child, kicker, &self->pool));
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &self->key, NULL, 1, &res, 0));
		*(volatile char *)kvt_wr(&self->c, res.offset) = 1;
		ASSERT_EQ(1, kvt_commit(self->c.fd, 0, &res.handle, 1, &done))
			TH_LOG("reservation %d: status %d", i, done.status);
		ASSERT_EQ(1, kvt_drop(self->c.fd, 0, &self->key, 1, NULL));
	}
	kvt_say(&child, 0);
	EXPECT_LT(10, kvt_hear(&child, 20000));
	EXPECT_EQ(0, kvt_join(&child, 10000));
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(0, st.aborts);
}

/* --- two want the same, each from the other end ---------------------------------------- */

#define CROSSED_ROUNDS	10000
#define CROSSED_ENOUGH	3

struct crossing {
	const struct kvt_pool *pool;
	bool reverse;
	int *arrived;	/* both of them, round after round */
};

/* Stores all of them, from the first on; how many it was that filled, or -1. */
static int crossed_round(const struct kvt_client *c, const struct kvt_key *keys)
{
	struct kvtier_block_result res[NR], done;
	int i, left = NR, filled = 0, calls;
	struct kvt_key roots[NR] = { 0 };

	for (calls = 0; left; calls++) {
		if (calls == 1000 ||
		    kvt_reserve(c->fd, KVTIER_RESERVE_PARENTS | KVTIER_RESERVE_WAIT, 0, keys,
				roots, NR, res, 600 * KVT_SEC) < 0)
			return -1;
		for (i = 0, left = 0; i < NR; i++) {
			left += res[i].status != KVTIER_ST_EXISTS;
			if (res[i].status != KVTIER_ST_RESERVED)
				continue;
			kvt_fill(kvt_wr(c, res[i].offset), &keys[i], BLOCK_BYTES);
			if (kvt_commit(c->fd, 0, &res[i].handle, 1, &done) != 1)
				return -1;
			filled++;
		}
	}
	return filled;
}

static int crossed_child(struct kvt_child *me, void *arg)
{
	const struct crossing *x = arg;
	struct kvt_key keys[NR];
	struct kvt_client c;
	int i, filled, round;

	KVT_CHILD_CHECK(!kvt_client_open(x->pool, &c, "dedup", BLOCK_BYTES));
	for (i = 0; i < NR; i++)
		keys[i] = kvt_key(SET, x->reverse ? NR - 1 - i : i);
	KVT_CHILD_CHECK(!kvt_say(me, 0));
	for (round = 1; kvt_hear(me, 60000) == 0; round++) {
		/* Off at the same moment, as far as there are two processors. */
		__atomic_add_fetch(x->arrived, 1, __ATOMIC_SEQ_CST);
		while (__atomic_load_n(x->arrived, __ATOMIC_SEQ_CST) < 2 * round)
			;
		filled = crossed_round(&c, keys);
		KVT_CHILD_CHECK(filled >= 0);
		KVT_CHILD_CHECK(!kvt_say(me, filled));
	}
	return 0;
}

/*
 * Each holds what the other waits for: nobody may sit until time is up. Again until both have
 * filled some of the same batch, or one was just later than the other.
 */
TEST_F_TIMEOUT(dedup, crossed_batches_do_not_deadlock, 600)
{
	int *arrived = mmap(NULL, sizeof(*arrived), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct crossing x[2] = { { &self->pool, false, arrived }, { &self->pool, true, arrived } };
	int i, round, crossed = 0, filled[2];
	struct kvt_child child[2];
	struct kvt_key keys[NR];
	struct kvtier_stat st;

	ASSERT_NE(MAP_FAILED, arrived);
	kvt_keys(keys, SET, 0, NR);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, kvt_spawn(&child[i], crossed_child, &x[i]));
		ASSERT_EQ(0, kvt_hear(&child[i], 20000));
	}
	for (round = 0; round < CROSSED_ROUNDS && crossed < CROSSED_ENOUGH; round++) {
		for (i = 0; i < 2; i++)
			kvt_say(&child[i], 0);
		for (i = 0; i < 2; i++) {
			filled[i] = kvt_hear(&child[i], 30000);
			ASSERT_LE(0, filled[i]);
		}
		ASSERT_EQ(NR, filled[0] + filled[1]);
		crossed += filled[0] && filled[1];
		ASSERT_EQ(NR, kvt_drop(self->c.fd, 0, keys, NR, NULL));
	}
	TH_LOG("crossed in %d of %d rounds", crossed, round);
	EXPECT_EQ(CROSSED_ENOUGH, crossed);
	for (i = 0; i < 2; i++)
		kvt_say(&child[i], 1);
	for (i = 0; i < 2; i++)
		EXPECT_EQ(0, kvt_join(&child[i], 30000));
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(round * NR, st.puts);
	munmap(arrived, sizeof(*arrived));
}

TEST_HARNESS_MAIN
