// SPDX-License-Identifier: GPL-2.0
/*
 * PREFETCH beside others' reads: what is asked for now comes first.
 *
 * A read takes two seconds here, so what has begun before what is seen from who comes first.
 */
#include "kvt_test.h"

#define BLOCK_BYTES	KVT_MIB
#define MEM_BYTES	(64 * KVT_MIB)
#define DISK_BYTES	(2048 * KVT_MIB)	/* 1 % of it is more than all chains */
#define LONG		16	/* four times as much as is read at a time */
#define WIDE		48	/* more than what is evicted at a time */
#define MOST		60	/* of memory */
#define SET		97
#define READ_MS		2000ull
#define A_MOMENT_MS	500ull

enum { AHEAD, ASKED, LATER, YOUNG, WANTED, LAST, OTHERS };	/* chains */

FIXTURE(prefetch)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvt_dm dm;
	int disk;
};

static void keys_of(struct kvt_key *keys, int chain, int nr)
{
	kvt_keys(keys, SET, (__u64)chain * 4096, nr);
}

/* How many of a chain's first blocks are not in memory. */
static int down(FIXTURE_DATA(prefetch) *self, int chain, int nr)
{
	struct kvtier_lookup_result look[MOST];
	struct kvt_key keys[MOST];
	int i, n = 0;

	keys_of(keys, chain, nr);
	if (kvt_lookup(self->c.fd, 0, keys, nr, look) != nr)
		return -1;
	for (i = 0; i < nr; i++)
		n += (int)look[i].tier == self->disk;
	return n;
}

static int put(FIXTURE_DATA(prefetch) *self, int chain, int nr)
{
	struct kvt_key keys[MOST];

	keys_of(keys, chain, nr);
	return kvt_put(&self->c, KVTIER_RESERVE_WAIT, 0, keys, NULL, nr);
}

static int watermarks(FIXTURE_DATA(prefetch) *self, const char *low, const char *high)
{
	return kvt_sysfs_write(&self->pool, "watermark_low_percent", "1") ?:
	       kvt_sysfs_write(&self->pool, "watermark_high_percent", high) ?:
	       kvt_sysfs_write(&self->pool, "watermark_low_percent", low);
}

FIXTURE_SETUP(prefetch)
{
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, MEM_BYTES));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "policy", "lru"));
	ASSERT_EQ(0, kvt_dm_make(&self->dm, "prefetch", DISK_BYTES));
	self->disk = kvt_tier_disk(&self->pool, 1, &self->dm.disk);
	ASSERT_LE(0, self->disk);
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "prefetch", BLOCK_BYTES));
	ASSERT_EQ(LONG, put(self, AHEAD, LONG));
	ASSERT_EQ(1, put(self, ASKED, 1));
	ASSERT_EQ(1, put(self, LATER, 1));
	/* The youngest stays. */
	ASSERT_EQ(1, put(self, YOUNG, 1));
	ASSERT_EQ(0, watermarks(self, "1", "2"));
	ASSERT_TRUE(KVT_UNTIL(30000, down(self, AHEAD, LONG) == LONG &&
			      down(self, ASKED, 1) == 1 && down(self, LATER, 1) == 1));
	ASSERT_EQ(0, watermarks(self, "85", "92"));
	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_VERY_SLOW));
}

FIXTURE_TEARDOWN(prefetch)
{
	EXPECT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_GOOD));
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	kvt_dm_remove(&self->dm);
}

/* Ask for a chain's first block, which is on its way then. */
static int ask(FIXTURE_DATA(prefetch) *self, int chain)
{
	struct kvtier_block_result res;
	struct kvt_key key;
	int ret;

	keys_of(&key, chain, 1);
	ret = kvt_get(self->c.fd, 0, 0, &key, 1, &res, 0);
	return ret ?: res.status;
}

/* What has just come down may still be on its way for a moment. */
static int ahead(FIXTURE_DATA(prefetch) *self)
{
	struct kvt_key keys[LONG];
	int nr = 0;

	keys_of(keys, AHEAD, LONG);
	KVT_UNTIL(5000, (nr += kvt_prefetch(self->c.fd, 0, 0, keys, LONG, 0, -1)) == LONG);
	return nr;
}

/* Nothing is read ahead of need as long as there is something that was asked for. */
TEST_F_TIMEOUT(prefetch, who_asks_comes_first, 300)
{
	__u64 began;

	ASSERT_EQ(KVTIER_ST_PENDING, ask(self, ASKED));
	ASSERT_EQ(LONG, ahead(self));
	began = kvt_now_ns();
	ASSERT_TRUE(KVT_UNTIL(60000, !down(self, ASKED, 1)));
	/* Had it been begun at once it would be there then. */
	while (kvt_now_ns() < began + (READ_MS + A_MOMENT_MS) * KVT_MSEC)
		kvt_sleep_ms(20);
	EXPECT_EQ(LONG, down(self, AHEAD, LONG));
	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_GOOD));
	EXPECT_TRUE(KVT_UNTIL(60000, !down(self, AHEAD, LONG)));
}

/* Who asks a little later waits for a small part only. */
TEST_F_TIMEOUT(prefetch, a_part_at_a_time, 300)
{
	ASSERT_EQ(LONG, ahead(self));
	ASSERT_TRUE(KVT_UNTIL(60000, down(self, AHEAD, LONG) < LONG));
	/* All that was read together. */
	kvt_sleep_ms((unsigned int)A_MOMENT_MS);
	EXPECT_LE(LONG / 2, down(self, AHEAD, LONG));
	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_GOOD));
	EXPECT_TRUE(KVT_UNTIL(60000, !down(self, AHEAD, LONG)));
}

/* One of its own blocks is asked for: then it does not wait for others. */
TEST_F_TIMEOUT(prefetch, asked_for_itself, 300)
{
	ASSERT_EQ(KVTIER_ST_PENDING, ask(self, ASKED));
	ASSERT_EQ(LONG, ahead(self));
	ASSERT_EQ(KVTIER_ST_PENDING, ask(self, AHEAD));
	/* It would have waited for as long as the first one takes, and for this one. */
	kvt_sleep_ms(1000);
	ASSERT_EQ(KVTIER_ST_PENDING, ask(self, LATER));
	ASSERT_TRUE(KVT_UNTIL(60000, !down(self, LATER, 1)));
	EXPECT_GT(LONG, down(self, AHEAD, LONG));
	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_GOOD));
	EXPECT_TRUE(KVT_UNTIL(60000, !down(self, AHEAD, LONG)));
}

/* More is to come than there is room for in one go: what comes first is not pushed out by the rest. */
TEST_F_TIMEOUT(prefetch, does_not_push_itself_out, 300)
{
	struct kvtier_stat st;
	struct kvt_key keys[WIDE];

	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_GOOD));
	ASSERT_EQ(WIDE, put(self, WANTED, WIDE));
	/* The youngest stay. With less, the disk would be over its watermark as well. */
	ASSERT_EQ(4, put(self, LAST, 4));
	ASSERT_EQ(0, watermarks(self, "4", "5"));
	ASSERT_TRUE(KVT_UNTIL(20000, down(self, WANTED, WIDE) == WIDE));
	/* What has just come down may still be on its way for a moment. */
	ASSERT_LT(0, kvt_settled(&self->pool, &st, NULL));
	/* This one goes by when something was used last, and PREFETCH is no use. */
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "policy", "reuse"));
	/* Nothing goes before somebody needs its place. */
	ASSERT_EQ(0, watermarks(self, "99", "100"));
	ASSERT_EQ(MOST, put(self, OTHERS, MOST));
	keys_of(keys, WANTED, WIDE);
	ASSERT_EQ(WIDE, kvt_prefetch(self->c.fd, 0, 0, keys, WIDE, 0, -1));
	/* On a slow machine not all may find room in time. */
	KVT_UNTIL(20000, !down(self, WANTED, WIDE));
	ASSERT_LT(0, kvt_settled(&self->pool, &st, NULL));
	printf("# %d of %d are not there\n", down(self, WANTED, WIDE), WIDE);
	EXPECT_EQ(0, down(self, WANTED, 1));
}

#define STILL_NR	320	/* more than one queue has workers for */
#define STILL_BYTES	(16 * KVT_KIB)
#define STILL_SET	98

FIXTURE(still)
{
	struct kvt_pool pool;
	struct kvt_client here, there;	/* whose blocks are on the one disk, and on the other */
	struct kvt_dm dm;
	struct kvt_disk disk;
};

/* A namespace's blocks, all of them on one disk: it may have nothing on the other, which is @not. */
static int down_to(FIXTURE_DATA(still) *self, const struct kvt_client *c, const char *not, int nr)
{
	char limit[64];
	int i;

	snprintf(limit, sizeof(limit), "%s 0\n", not);
	if (kvt_ns_set(&self->pool, c, "tier_limits", limit))
		return -1;
	for (i = 0; i < nr; i++) {
		struct kvt_key key = kvt_key(STILL_SET, i);

		if (kvt_put(c, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1) != 1)
			return -1;
	}
	return kvt_ns_set(&self->pool, c, "tier_limits", "dram0 0\n");
}

/* How many of a namespace's blocks are in memory. */
static int still_up(const struct kvt_client *c, int nr)
{
	struct kvtier_lookup_result look;
	int i, n = 0;

	for (i = 0; i < nr; i++) {
		struct kvt_key key = kvt_key(STILL_SET, i);

		if (kvt_lookup(c->fd, 0, &key, 1, &look) != 1)
			return -1;
		n += !look.tier;
	}
	return n;
}

FIXTURE_SETUP(still)
{
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_EQ(0, kvt_tier_dram(&self->pool, 0, 32 * KVT_MIB));
	ASSERT_EQ(0, kvt_dm_make(&self->dm, "still", 64 * KVT_MIB));
	ASSERT_EQ(0, kvt_disk_make(&self->disk, "goes", 64 * KVT_MIB));
	ASSERT_EQ(1, kvt_tier_disk(&self->pool, 1, &self->dm.disk));
	ASSERT_EQ(2, kvt_tier_disk(&self->pool, 2, &self->disk));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->here, "here", STILL_BYTES));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->there, "there", STILL_BYTES));
	ASSERT_EQ(0, down_to(self, &self->here, "bdev2", STILL_NR));
	ASSERT_EQ(0, down_to(self, &self->there, "bdev1", 1));
	ASSERT_TRUE(KVT_UNTIL(30000, !still_up(&self->here, STILL_NR) &&
			      !still_up(&self->there, 1)));
	ASSERT_EQ(0, kvt_ns_set(&self->pool, &self->here, "tier_limits", "dram0 max\n"));
	ASSERT_EQ(0, kvt_ns_set(&self->pool, &self->there, "tier_limits", "dram0 max\n"));
	ASSERT_EQ(0, kvt_dm_stop(&self->dm, true));
}

FIXTURE_TEARDOWN(still)
{
	EXPECT_EQ(0, kvt_dm_stop(&self->dm, false));
	kvt_client_close(&self->here);
	kvt_client_close(&self->there);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	kvt_dm_remove(&self->dm);
	kvt_disk_remove(&self->disk);
}

/* A disk that does not answer keeps nobody from what is on another. */
TEST_F_TIMEOUT(still, others_go_on, 300)
{
	struct kvtier_block_result res;
	struct kvt_key key;
	int i, n = 0;

	for (i = 0; i < STILL_NR; i++) {
		key = kvt_key(STILL_SET, i);
		kvt_get(self->here.fd, 0, 0, &key, 1, &res, 0);
		n += res.status == KVTIER_ST_PENDING;
	}
	ASSERT_EQ(STILL_NR, n);
	key = kvt_key(STILL_SET, 0);
	ASSERT_EQ(1, kvt_get(self->there.fd, KVTIER_GET_WAIT, 0, &key, 1, &res,
			     KVT_PATIENCE_NS(10 * KVT_SEC)));
	kvt_release(self->there.fd, &res.handle, 1, NULL);
	/* It does not answer, indeed. */
	EXPECT_EQ(0, still_up(&self->here, STILL_NR));
	ASSERT_EQ(0, kvt_dm_stop(&self->dm, false));
	EXPECT_TRUE(KVT_UNTIL(30000, still_up(&self->here, STILL_NR) == STILL_NR));
}

/* Blocks that have come to the disk that does not answer. */
static long long still_down(FIXTURE_DATA(still) *self)
{
	char buf[32];

	return kvt_sysfs_read(&self->pool, "tiers/bdev1/demotions_in", buf, sizeof(buf)) < 0 ?
	       -1 : atoll(buf);
}

/*
 * The pool's worker sends blocks down to the disk that does not answer. What is due at its time is
 * seen to all the same: reservations that are too old are others' to make.
 */
TEST_F(still, reservations_expire)
{
	struct kvt_key key = kvt_key(STILL_SET, 1000), one;
	struct kvtier_block_result res;
	struct kvt_client other;
	long long down;
	int i;

	down = still_down(self);
	ASSERT_EQ(0, kvt_ns_set(&self->pool, &self->here, "tier_limits", "bdev2 0\n"));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "watermark_low_percent", "1"));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "watermark_high_percent", "2"));
	for (i = 0; i < STILL_NR / 2; i++) {
		one = kvt_key(STILL_SET, 2000 + i);
		ASSERT_EQ(1, kvt_put(&self->here, 0, 0, &one, NULL, 1));
	}
	/* Until it has begun, and for a while after that. */
	kvt_sleep_ms(1000);
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "reservation_timeout_ms", "2000"));
	ASSERT_EQ(1, kvt_reserve(self->there.fd, 0, 0, &key, NULL, 1, &res, 0));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &other, "there", STILL_BYTES));
	EXPECT_TRUE(KVT_UNTIL(20000, kvt_reserve(other.fd, 0, 0, &key, NULL, 1, &res, 0) == 1 &&
				     res.status == KVTIER_ST_RESERVED));
	EXPECT_EQ(1, kvt_abort(other.fd, &res.handle, 1, NULL));
	kvt_client_close(&other);
	/* Too much is in memory, and nothing has come down: it has been waiting for all that time. */
	EXPECT_EQ(down, still_down(self));
	ASSERT_EQ(0, kvt_dm_stop(&self->dm, false));
	EXPECT_TRUE(KVT_UNTIL(30000, still_down(self) > down));
}

TEST_HARNESS_MAIN
