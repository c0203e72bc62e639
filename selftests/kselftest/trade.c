// SPDX-License-Identifier: GPL-2.0
/*
 * Two memory tiers, the faster one above its low watermark: what is used below trades places with
 * what is worth less, one for one, and with nothing that is guaranteed to others.
 */
#include "kvt_test.h"

#define BLOCK_BYTES	(64 * KVT_KIB)
#define FAST_BYTES	(32 * KVT_MIB)
#define SLOW_BYTES	(64 * KVT_MIB)
#define SLOTS		((int)(FAST_BYTES / BLOCK_BYTES))
#define PLACES		((int)(KVT_PIECE / BLOCK_BYTES))	/* a region, of who comes up */
#define ABOVE		(SLOTS - PLACES)
#define BELOW		64
#define USED		(PLACES / 2)
#define SET		71

FIXTURE(trade)
{
	struct kvt_pool pool;
	struct kvt_client above;
	struct kvt_client below;
	int fast;
	int slow;
	struct kvt_key old[ABOVE];
	struct kvt_key place[PLACES];
	struct kvt_key key[BELOW];
};

FIXTURE_VARIANT(trade)
{
	__u64 min_bytes;	/* guaranteed to who is above */
};

FIXTURE_VARIANT_ADD(trade, unguarded) { .min_bytes = 0 };
FIXTURE_VARIANT_ADD(trade, guaranteed) { .min_bytes = FAST_BYTES };

/* How many of these are on that tier, or -errno. */
static int on_tier(const struct kvt_client *c, const struct kvt_key *keys, int nr, int tier)
{
	struct kvtier_lookup_result res[SLOTS];
	int i, n = 0, err = kvt_lookup(c->fd, 0, keys, nr, res);

	if (err < 0)
		return err;
	for (i = 0; i < nr; i++)
		n += res[i].status == KVTIER_ST_HIT && (int)res[i].tier == tier;
	return n;
}

static __u64 demotions(const struct kvt_client *c)
{
	struct kvtier_stat st;

	return kvt_stat(c->fd, 0, &st) ? 0 : st.demotions;
}

/* Each of its own, a root, so that any of them may go. */
static int put_each(const struct kvt_client *c, const struct kvt_key *keys, int nr)
{
	int i, n = 0;

	for (i = 0; i < nr; i++)
		n += kvt_put(c, 0, 0, &keys[i], NULL, 1) == 1;
	return n;
}

FIXTURE_SETUP(trade)
{
	struct kvtier_group g = { .block_bytes = BLOCK_BYTES };
	struct kvtier_ns_open a;

	ASSERT_EQ(0, kvt_setup(&self->pool));
	self->fast = kvt_tier_dram(&self->pool, 0, FAST_BYTES);
	self->slow = kvt_tier_dram(&self->pool, 1, SLOW_BYTES);
	ASSERT_LE(0, self->fast);
	ASSERT_LE(0, self->slow);
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "policy", "reuse"));
	/* Nothing is to go down but for what comes up. */
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "watermark_high_percent", "100"));
	kvt_ns_args(&a, "above", &g, 1);
	a.min_bytes = variant->min_bytes;
	ASSERT_EQ(0, kvt_client_bind(&self->above, kvt_open(&self->pool), &a));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->below, "below", BLOCK_BYTES));
	kvt_keys(self->old, SET, 0, ABOVE);
	kvt_keys(self->place, SET + 1, 0, PLACES);
	kvt_keys(self->key, SET + 2, 0, BELOW);
	ASSERT_EQ(PLACES, put_each(&self->below, self->place, PLACES));
	ASSERT_EQ(ABOVE, put_each(&self->above, self->old, ABOVE));
	ASSERT_EQ(BELOW, put_each(&self->below, self->key, BELOW));
	ASSERT_EQ(ABOVE, on_tier(&self->above, self->old, ABOVE, self->fast));
	ASSERT_EQ(BELOW, on_tier(&self->below, self->key, BELOW, self->slow));
	/* One of them stays, and keeps the region. */
	ASSERT_EQ(PLACES - 1, kvt_drop(self->below.fd, 0, self->place + 1, PLACES - 1, NULL));
	/* So they are worth least of all. */
	ASSERT_EQ(ABOVE, kvt_advise(self->above.fd, 0, self->old, ABOVE, KVTIER_ADV_COLD, 0, NULL));
}

FIXTURE_TEARDOWN(trade)
{
	kvt_client_close(&self->below);
	kvt_client_close(&self->above);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

TEST_F_TIMEOUT(trade, one_for_one, 120)
{
	struct kvtier_stat st;
	int up = 0, down;

	ASSERT_EQ(0, demotions(&self->below));
	if (variant->min_bytes) {
		ASSERT_EQ(USED, kvt_check(&self->below, 0, self->key, USED, 0));
		ASSERT_EQ(2, kvt_settled(&self->pool, &st, NULL));
		EXPECT_EQ(0, on_tier(&self->below, self->key, BELOW, self->fast));
		EXPECT_EQ(ABOVE, on_tier(&self->above, self->old, ABOVE, self->fast));
		EXPECT_EQ(0, demotions(&self->above));
		return;
	}
	EXPECT_TRUE(KVT_UNTIL(20000, kvt_check(&self->below, 0, self->key, USED, 0) == USED &&
			      (up = on_tier(&self->below, self->key, USED, self->fast)) == USED))
		TH_LOG("%d of %d went up", up, USED);
	ASSERT_EQ(2, kvt_settled(&self->pool, &st, NULL));
	down = on_tier(&self->above, self->old, ABOVE, self->slow);
	TH_LOG("%d went up, %d down", up, down);
	EXPECT_EQ(USED, down);
	EXPECT_EQ(USED, on_tier(&self->below, self->key, BELOW, self->fast));
	EXPECT_EQ(ABOVE - USED, on_tier(&self->above, self->old, ABOVE, self->fast));
	EXPECT_EQ(USED, kvt_check(&self->below, 0, self->key, USED, 0));
}

TEST_HARNESS_MAIN
