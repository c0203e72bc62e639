// SPDX-License-Identifier: GPL-2.0
/*
 * What LOOKUP says that blocks cost: it follows the device, and who waits before, and is no
 * clock for what others do.
 */
#include "kvt_test.h"

#define BLOCK_BYTES	(32 * KVT_KIB)
#define MEM_BYTES	(4 * KVT_MIB)
#define DISK_BYTES	(64 * KVT_MIB)
#define CHAIN		8
#define CHAINS		128
#define SET		78

FIXTURE(cost)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvt_dm dm;
	int disk;
	int next;		/* chain to be looked at next */
	int figures;		/* that were looked at */
	int fine;		/* of these, finer than they are to be told */
};

FIXTURE_SETUP(cost)
{
	struct kvt_key keys[CHAIN];
	int i;

	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, MEM_BYTES));
	/* Everything goes down. */
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "policy", "lru"));
	ASSERT_EQ(0, kvt_dm_make(&self->dm, "cost", DISK_BYTES));
	self->disk = kvt_tier_disk(&self->pool, 1, &self->dm.disk);
	ASSERT_LE(0, self->disk);
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "cost", BLOCK_BYTES));
	for (i = 0; i < CHAINS; i++) {
		kvt_keys(keys, SET, (__u64)i * CHAIN, CHAIN);
		ASSERT_EQ(CHAIN, kvt_put(&self->c, KVTIER_RESERVE_WAIT, 0, keys, NULL, CHAIN));
	}
}

FIXTURE_TEARDOWN(cost)
{
	EXPECT_LT(0, self->figures);
	EXPECT_EQ(0, self->fine) TH_LOG("of %d", self->figures);
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	kvt_dm_remove(&self->dm);
}

/* A power of two, or one and a half times that. */
static bool coarse(__u64 ns)
{
	while (ns && ns % 2 == 0)
		ns /= 2;
	return ns == 1 || ns == 3;
}

/* The first also has what is before it: the sum of two such figures. */
static bool coarse_sum(__u64 ns)
{
	__u64 part;

	for (part = 1; part < ns; part *= 2) {
		if (coarse(ns - part) || (part * 3 < ns && coarse(ns - part * 3)))
			return true;
	}
	return coarse(ns);
}

/* As kvt_lookup() of a chain, with a look at the figures of what is on the disk. */
static int look_up(FIXTURE_DATA(cost) *self, const struct kvt_key *keys,
		   struct kvtier_lookup_result *look)
{
	int n = kvt_lookup(self->c.fd, 0, keys, CHAIN, look), i;
	bool first = true;

	for (i = 0; i < n; i++) {
		if (!look[i].cost_ns)
			continue;
		self->figures++;
		self->fine += first ? !coarse_sum(look[i].cost_ns) : !coarse(look[i].cost_ns);
		first = false;
	}
	return n;
}

/* The next chain that is on the disk as a whole. */
static bool find_cold(FIXTURE_DATA(cost) *self, struct kvt_key *keys,
		      struct kvtier_lookup_result *look)
{
	int i;

	while (self->next < CHAINS) {
		kvt_keys(keys, SET, (__u64)self->next++ * CHAIN, CHAIN);
		if (look_up(self, keys, look) != CHAIN)
			continue;
		for (i = 0; i < CHAIN && (int)look[i].tier == self->disk && look[i].cost_ns; i++)
			;
		if (i == CHAIN)
			return true;
	}
	return false;
}

/* Bring @nr chains up. What a block cost that was still down there, or 0. */
static __u64 cost_after(FIXTURE_DATA(cost) *self, int nr)
{
	struct kvtier_lookup_result look[CHAIN];
	struct kvt_key keys[CHAIN];

	while (nr--) {
		if (!find_cold(self, keys, look) ||
		    kvt_check(&self->c, 0, keys, CHAIN, 20 * KVT_SEC) != CHAIN)
			return 0;
	}
	/* Not the first, which may have others before it. */
	return find_cold(self, keys, look) ? look[1].cost_ns : 0;
}

TEST_F_TIMEOUT(cost, follows_the_device, 300)
{
	/* A chain takes 240 ms at least when it is slow; most of that is to be believed. */
	const __u64 most = 80 * KVT_MSEC / CHAIN;
	__u64 fast = cost_after(self, 4), slow, again;
	int i;

	ASSERT_LT(0, fast);
	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_SLOW));
	/* How soon it is believed depends on what else the machine has to do, both ways. */
	for (i = 0, slow = 0; i < 6 && (slow <= 2 * fast || slow <= most); i++) {
		slow = cost_after(self, 8);
		ASSERT_LT(0, slow);
	}
	EXPECT_LT(2 * fast, slow);
	EXPECT_LT(most, slow);
	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_GOOD));
	for (i = 0, again = slow; i < 8 && again >= slow / 2; i++) {
		again = cost_after(self, 16);
		ASSERT_LT(0, again);
	}
	EXPECT_LT(again, slow / 2);
}

/* What others wait for comes before, and is told with the first; then it is over. */
TEST_F_TIMEOUT(cost, those_before, 300)
{
	struct kvtier_lookup_result look[CHAIN];
	struct kvt_key busy[CHAIN], keys[CHAIN];
	struct kvtier_block_result res[CHAIN];

	ASSERT_TRUE(find_cold(self, busy, look));
	ASSERT_TRUE(find_cold(self, keys, look));
	ASSERT_TRUE(KVT_UNTIL(20000, look_up(self, keys, look) == CHAIN &&
			      look[0].cost_ns == look[1].cost_ns));
	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_VERY_SLOW));
	EXPECT_EQ(0, kvt_get(self->c.fd, 0, 0, busy, CHAIN, res, 0));
	EXPECT_EQ(KVTIER_ST_PENDING, res[0].status);
	ASSERT_EQ(CHAIN, look_up(self, keys, look));
	EXPECT_LE(CHAIN / 2 * look[1].cost_ns, look[0].cost_ns);
	EXPECT_EQ(look[1].cost_ns, look[2].cost_ns);
	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_GOOD));
	EXPECT_TRUE(KVT_UNTIL(20000, look_up(self, keys, look) == CHAIN &&
			      look[0].cost_ns == look[1].cost_ns));
}

TEST_HARNESS_MAIN
