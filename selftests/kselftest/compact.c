// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that is free but scattered: slots between blocks of one owner become regions for
 * another, and nothing has to leave for that.
 */
#include "kvt_test.h"

#define BLOCK_BYTES	(32 * KVT_KIB)
#define TIER_BYTES	(8 * KVT_MIB)
#define SLOTS		((int)(TIER_BYTES / BLOCK_BYTES))
#define PIECES		((int)(TIER_BYTES / KVT_PIECE))
#define EVERY		4	/* of so many blocks one is left */
#define LEFT		(SLOTS / EVERY)
#define SET		72

FIXTURE(compact)
{
	struct kvt_pool pool;
	struct kvt_client a;
	struct kvt_client b;
};

FIXTURE_SETUP(compact)
{
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, TIER_BYTES));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "policy", "lru"));
	/* Nothing goes before somebody needs its place. */
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "watermark_high_percent", "100"));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->a, "holes", BLOCK_BYTES));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->b, "needs", BLOCK_BYTES));
}

FIXTURE_TEARDOWN(compact)
{
	kvt_client_close(&self->a);
	kvt_client_close(&self->b);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

/* Blocks without parents, so that any of them may go. How many were stored, or -errno. */
static int put(const struct kvt_client *c, int first, int nr, __u32 flags)
{
	struct kvt_key key;
	int i, ret;

	for (i = 0; i < nr; i++) {
		key = kvt_key(SET, first + i);
		ret = kvt_put(c, flags, 0, &key, NULL, 1);
		if (ret != 1)
			return i ? i : ret;
	}
	return nr;
}

/* How many of every @step blocks are there and right, or -errno. */
static int right(const struct kvt_client *c, int first, int nr, int step)
{
	struct kvt_key key;
	int i, ret, n = 0;

	for (i = 0; i < nr; i++) {
		key = kvt_key(SET, first + i * step);
		ret = kvt_check(c, 0, &key, 1, 20 * KVT_SEC);
		if (ret < 0)
			return ret;
		n += ret;
	}
	return n;
}

/* Fill memory, and drop all but every fourth block. */
static int scatter(const struct kvt_client *c)
{
	struct kvt_key key;
	int i, ret = put(c, 0, SLOTS, KVTIER_RESERVE_WAIT);

	if (ret != SLOTS)
		return -1;
	for (i = 0; i < SLOTS; i++) {
		key = kvt_key(SET, i);
		if (i % EVERY && kvt_drop(c->fd, 0, &key, 1, NULL) != 1)
			return -1;
	}
	return 0;
}

static long long number(const struct kvt_pool *p, const char *name)
{
	char text[32];

	return kvt_sysfs_read(p, name, text, sizeof(text)) <= 0 ? -1 : atoll(text);
}

static long long evictions(const struct kvt_pool *p)
{
	struct kvtier_stat st;

	return kvt_settled(p, &st, NULL) == 1 ? (long long)st.evictions : -1;
}

TEST_F(compact, holes_are_room)
{
	int nr = SLOTS - SLOTS / PIECES - LEFT;

	ASSERT_EQ(0, scatter(&self->a));
	/* All but one region, which may be half full of what was left. */
	EXPECT_EQ(nr, put(&self->b, 1000, nr, KVTIER_RESERVE_WAIT));
	EXPECT_EQ(LEFT, right(&self->a, 0, LEFT, EVERY));
	EXPECT_EQ(nr, right(&self->b, 1000, nr, 1));
	EXPECT_EQ(0, evictions(&self->pool));
	EXPECT_LE(2, number(&self->pool, "tiers/dram0/compactions"));
}

/* Who does not wait is refused, and finds room when he asks again. */
TEST_F(compact, who_does_not_wait)
{
	struct kvtier_block_result res;
	struct kvt_key key = kvt_key(SET, 1000);

	ASSERT_EQ(0, scatter(&self->a));
	ASSERT_EQ(0, kvt_reserve(self->b.fd, 0, 0, &key, NULL, 1, &res, 0));
	ASSERT_EQ(KVTIER_ST_NOSPACE, res.status);
	EXPECT_TRUE(KVT_UNTIL(20000, put(&self->b, 1000, 1, 0) == 1));
	EXPECT_EQ(LEFT, right(&self->a, 0, LEFT, EVERY));
	EXPECT_EQ(0, evictions(&self->pool));
}

/* Nor does its limit on the tier keep an owner from making room within it. */
TEST_F(compact, at_its_limit)
{
	char limit[32];

	ASSERT_EQ(0, scatter(&self->a));
	snprintf(limit, sizeof(limit), "dram0 %llu\n", (unsigned long long)LEFT * BLOCK_BYTES);
	ASSERT_EQ(0, kvt_ns_set(&self->pool, &self->a, "tier_limits", limit));
	EXPECT_EQ(LEFT, put(&self->b, 1000, LEFT, KVTIER_RESERVE_WAIT));
	EXPECT_EQ(LEFT, right(&self->a, 0, LEFT, EVERY));
	EXPECT_EQ(0, evictions(&self->pool));
	EXPECT_LT(0, number(&self->pool, "tiers/dram0/compactions"));
}

/* What somebody reads stays where it is; when it does not any more, the rest finds room. */
TEST_F(compact, leased_blocks_stay)
{
	struct kvtier_block_result res[PIECES], none;
	__u64 handle[PIECES];
	struct kvt_key key;
	int i;

	ASSERT_EQ(0, scatter(&self->a));
	for (i = 0; i < PIECES; i++) {
		key = kvt_key(SET, i * SLOTS / PIECES);
		ASSERT_EQ(1, kvt_get(self->a.fd, 0, 0, &key, 1, &res[i], 0));
		handle[i] = res[i].handle;
	}
	key = kvt_key(SET, 1000);
	EXPECT_EQ(0, kvt_reserve(self->b.fd, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1, &none,
				 300 * KVT_MSEC));
	EXPECT_EQ(KVTIER_ST_NOSPACE, none.status);
	for (i = 0; i < PIECES; i++) {
		key = kvt_key(SET, i * SLOTS / PIECES);
		EXPECT_TRUE(kvt_bytes_ok(kvt_rd(&self->a, res[i].offset), &key, BLOCK_BYTES));
	}
	ASSERT_EQ(PIECES, kvt_release(self->a.fd, handle, PIECES, NULL));
	EXPECT_EQ(LEFT, put(&self->b, 1000, LEFT, KVTIER_RESERVE_WAIT));
	EXPECT_EQ(LEFT, right(&self->b, 1000, LEFT, 1));
}

/* Nor do they keep what is in other regions from being moved together. */
TEST_F(compact, leased_blocks_are_passed_over)
{
	struct kvtier_block_result res[PIECES / 2];
	int i, nr = SLOTS / PIECES;
	struct kvt_key key;

	ASSERT_EQ(0, scatter(&self->a));
	for (i = 0; i < PIECES / 2; i++) {
		key = kvt_key(SET, i * SLOTS / PIECES);
		ASSERT_EQ(1, kvt_get(self->a.fd, 0, 0, &key, 1, &res[i], 0));
	}
	EXPECT_EQ(nr, put(&self->b, 1000, nr, KVTIER_RESERVE_WAIT));
	EXPECT_EQ(0, evictions(&self->pool));
	EXPECT_LT(0, number(&self->pool, "tiers/dram0/compactions"));
	EXPECT_EQ(LEFT, right(&self->a, 0, LEFT, EVERY));
	EXPECT_EQ(nr, right(&self->b, 1000, nr, 1));
}

/*
 * Who was pushed down to what is guaranteed to it has that in regions which once held more:
 * they are no more its own than what it has lost.
 */
TEST_F(compact, guarantee_is_no_more_than_it_says)
{
	struct kvtier_group g = { .block_bytes = BLOCK_BYTES };
	struct kvt_client sure;
	struct kvtier_ns_open a;

	kvt_ns_args(&a, "sure", &g, 1);
	a.min_bytes = TIER_BYTES / 2;
	ASSERT_EQ(0, kvt_client_bind(&sure, kvt_open(&self->pool), &a));
	ASSERT_EQ(SLOTS, put(&sure, 0, SLOTS, KVTIER_RESERVE_WAIT));
	/* The coldest blocks go, every second one, down to what was promised. */
	ASSERT_EQ(SLOTS / 2, right(&sure, 0, SLOTS / 2, 2));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "watermark_low_percent", "10"));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "watermark_high_percent", "20"));
	ASSERT_TRUE(KVT_UNTIL(20000, evictions(&self->pool) == SLOTS / 2));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "watermark_high_percent", "100"));
	EXPECT_EQ(SLOTS, put(&self->b, 1000, SLOTS, KVTIER_RESERVE_WAIT));
	EXPECT_EQ(SLOTS / 2, right(&sure, 0, SLOTS / 2, 2));
	/* And a third one is not worse off than the second. */
	EXPECT_EQ(SLOTS, put(&self->a, 2000, SLOTS, KVTIER_RESERVE_WAIT));
	EXPECT_EQ(SLOTS / 2, right(&sure, 0, SLOTS / 2, 2));
	kvt_client_close(&sure);
}

/* --- While everybody goes on ---------------------------------------------------------------- */

static int reader(struct kvt_child *me, void *arg)
{
	const struct kvt_client *c = arg;
	int n = 0, bad = 0;

	/* Until somebody says something. */
	while (kvt_hear(me, 0) == -ETIMEDOUT) {
		bad += right(c, 0, LEFT, EVERY) != LEFT;
		n++;
	}
	KVT_CHILD_CHECK(!bad);
	KVT_CHILD_CHECK(n > 0);
	return 0;
}

/* Others' blocks go and come again, so that there are always holes in what is being read. */
TEST_F_TIMEOUT(compact, while_it_is_read, 300)
{
	int rounds = kvt_env_rounds(4, 200), round, i;
	struct kvt_child child;
	struct kvt_client c;
	struct kvt_key key;

	ASSERT_EQ(0, scatter(&self->a));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &c, "holes", BLOCK_BYTES));
	ASSERT_EQ(0, kvt_spawn(&child, reader, &c));
	for (round = 0; round < rounds; round++) {
		EXPECT_EQ(LEFT, put(&self->b, 1000, LEFT, KVTIER_RESERVE_WAIT));
		EXPECT_EQ(LEFT, put(&self->a, 5000, LEFT, KVTIER_RESERVE_WAIT));
		for (i = 0; i < LEFT; i++) {
			key = kvt_key(SET, 1000 + i);
			EXPECT_LE(0, kvt_drop(self->b.fd, 0, &key, 1, NULL));
			key = kvt_key(SET, 5000 + i);
			EXPECT_LE(0, kvt_drop(self->a.fd, 0, &key, 1, NULL));
		}
	}
	kvt_say(&child, 1);
	EXPECT_EQ(0, kvt_join(&child, 60000));
	EXPECT_LT(0, number(&self->pool, "tiers/dram0/compactions"));
	kvt_client_close(&c);
}

TEST_HARNESS_MAIN
