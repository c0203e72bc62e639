// SPDX-License-Identifier: GPL-2.0
/*
 * Chains: parents, prefixes stored piece by piece, dropping, and walking over
 * what is there.
 */
#include "kvt_test.h"

#define BLOCK_BYTES	4096
#define SET		5
#define NR		64
#define BUDGET		128	/* bytes of metadata for a block */

FIXTURE(chain)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvt_key keys[NR];
};

FIXTURE_SETUP(chain)
{
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, 64 * KVT_MIB));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "chain", BLOCK_BYTES));
	kvt_keys(self->keys, SET, 0, NR);
}

FIXTURE_TEARDOWN(chain)
{
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

static bool same(const void *a, const void *b)
{
	return !memcmp(a, b, KVTIER_KEY_BYTES);
}

TEST_F(chain, parent_must_be_there)
{
	struct kvtier_block_result res[2];
	char buf[BLOCK_BYTES] = { 0 };

	EXPECT_EQ(0, kvt_reserve(self->c.fd, 0, 0, &self->keys[1], &self->keys[0], 1, res, 0));
	EXPECT_EQ(KVTIER_ST_NOPARENT, res[0].status);
	EXPECT_EQ(0, res[0].handle);
	EXPECT_EQ(KVTIER_ST_NOPARENT, kvt_write1(self->c.fd, 0, &self->keys[1], &self->keys[0],
						 buf, sizeof(buf), 0));
	/* One missing link: what follows it has none either. */
	EXPECT_EQ(0, kvt_reserve(self->c.fd, 0, 0, &self->keys[1], &self->keys[0], 2, res, 0));
	EXPECT_EQ(KVTIER_ST_NOPARENT, res[1].status);
}

/* A key is not its own parent, nor its own grandparent. */
TEST_F(chain, no_rings)
{
	struct kvtier_block_result res[2];
	struct kvt_key ring[2] = { self->keys[1], self->keys[0] };

	kvt_reserve(self->c.fd, 0, 0, &self->keys[0], &self->keys[0], 1, res, 0);
	EXPECT_NE(KVTIER_ST_RESERVED, res[0].status);
	kvt_reserve(self->c.fd, KVTIER_RESERVE_PARENTS, 0, self->keys, ring, 2, res, 0);
	EXPECT_NE(KVTIER_ST_RESERVED, res[0].status);
	EXPECT_NE(KVTIER_ST_RESERVED, res[1].status);
}

TEST_F(chain, stored_in_chunks)
{
	__u32 at, n;

	for (at = 0; at < NR; at += n) {
		n = at % 7 + 1;
		n = at + n > NR ? NR - at : n;
		ASSERT_EQ(n, kvt_put(&self->c, 0, 0, self->keys + at,
				     at ? self->keys + at - 1 : NULL, n));
	}
	EXPECT_EQ(NR, kvt_check(&self->c, 0, self->keys, NR, 0));
	/* Storing it again, overlapping, changes nothing. */
	EXPECT_EQ(NR - 10, kvt_put(&self->c, 0, 0, self->keys + 10, self->keys + 9, NR - 10));
}

/* A tree: every node's parent in an array, zero for the root. */
TEST_F(chain, parents_array)
{
	struct kvtier_block_result res[NR], done[NR];
	struct kvt_key parent[NR];
	struct kvtier_entry *all;
	__u64 handle[NR];
	int i, k, nr;

	memset(&parent[0], 0, sizeof(parent[0]));
	for (i = 1; i < NR; i++)
		parent[i] = self->keys[(i - 1) / 2];
	ASSERT_EQ(NR, kvt_reserve(self->c.fd, KVTIER_RESERVE_PARENTS, 0, self->keys, parent, NR,
				  res, 0));
	for (i = 0; i < NR; i++) {
		kvt_fill(kvt_wr(&self->c, res[i].offset), &self->keys[i], BLOCK_BYTES);
		handle[i] = res[i].handle;
	}
	ASSERT_EQ(NR, kvt_commit(self->c.fd, 0, handle, NR, done));
	nr = kvt_iterate_all(self->c.fd, 16, &all);
	ASSERT_EQ(NR, nr);
	for (i = 0; i < nr; i++)
		for (k = 0; k < NR; k++)
			if (same(all[i].key, &self->keys[k]))
				EXPECT_TRUE(same(all[i].parent, &parent[k])) TH_LOG("key %d", k);
	free(all);
}

TEST_F(chain, commit_needs_the_parent_committed)
{
	struct kvtier_block_result res[3], done[3];
	__u64 order[3];
	int i;

	ASSERT_EQ(3, kvt_reserve(self->c.fd, 0, 0, self->keys, NULL, 3, res, 0));
	for (i = 0; i < 3; i++)
		kvt_fill(kvt_wr(&self->c, res[i].offset), &self->keys[i], BLOCK_BYTES);
	EXPECT_EQ(0, kvt_commit(self->c.fd, 0, &res[1].handle, 1, done));
	EXPECT_EQ(KVTIER_ST_NOPARENT, done[0].status);
	/* In one call: what comes earlier counts, what comes later does not. */
	order[0] = res[2].handle;
	order[1] = res[0].handle;
	order[2] = res[1].handle;
	EXPECT_EQ(2, kvt_commit(self->c.fd, 0, order, 3, done));
	EXPECT_EQ(KVTIER_ST_NOPARENT, done[0].status);
	EXPECT_EQ(KVTIER_ST_DONE, done[1].status);
	EXPECT_EQ(KVTIER_ST_DONE, done[2].status);
	EXPECT_EQ(2, kvt_lookup(self->c.fd, 0, self->keys, 3, NULL));
	/* The reservation stood all the time. */
	EXPECT_EQ(1, kvt_commit(self->c.fd, 0, &res[2].handle, 1, done));
	EXPECT_EQ(3, kvt_check(&self->c, 0, self->keys, 3, 0));
}

/* A parent that was given up: its child cannot be published, and can be aborted. */
TEST_F(chain, aborted_parent)
{
	struct kvtier_block_result res[2], done;
	__s32 gone;

	ASSERT_EQ(2, kvt_reserve(self->c.fd, 0, 0, self->keys, NULL, 2, res, 0));
	kvt_fill(kvt_wr(&self->c, res[1].offset), &self->keys[1], BLOCK_BYTES);
	EXPECT_EQ(1, kvt_abort(self->c.fd, &res[0].handle, 1, &gone));
	EXPECT_EQ(0, kvt_commit(self->c.fd, 0, &res[1].handle, 1, &done));
	EXPECT_EQ(KVTIER_ST_NOPARENT, done.status);
	EXPECT_EQ(1, kvt_abort(self->c.fd, &res[1].handle, 1, &gone));
	EXPECT_EQ(KVTIER_ST_DONE, gone);
	EXPECT_EQ(2, kvt_put(&self->c, 0, 0, self->keys, NULL, 2));
}

TEST_F(chain, drop_from_the_end)
{
	struct kvtier_stat st;
	__s32 res[NR];
	int i;

	ASSERT_EQ(NR, kvt_put(&self->c, 0, 0, self->keys, NULL, NR));
	EXPECT_EQ(0, kvt_drop(self->c.fd, 0, self->keys, 1, res));
	EXPECT_EQ(KVTIER_ST_CHILDREN, res[0]);
	EXPECT_EQ(NR, kvt_check(&self->c, 0, self->keys, NR, 0));
	EXPECT_EQ(NR, kvt_drop(self->c.fd, 0, self->keys, NR, res));
	for (i = 0; i < NR; i++)
		EXPECT_EQ(KVTIER_ST_DONE, res[i]);
	EXPECT_EQ(0, kvt_drop(self->c.fd, 0, self->keys, 1, res));
	EXPECT_EQ(KVTIER_ST_MISS, res[0]);
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(0, st.nr_blocks);
	EXPECT_EQ(0, st.used_bytes);
	EXPECT_EQ(NR, st.drops);
	EXPECT_EQ(NR, st.puts);
}

TEST_F(chain, drop_a_fork)
{
	struct kvt_key twig = kvt_key(SET, 1000);
	__s32 res[2];

	ASSERT_EQ(2, kvt_put(&self->c, 0, 0, self->keys, NULL, 2));
	ASSERT_EQ(1, kvt_put(&self->c, 0, 0, &twig, self->keys, 1));
	EXPECT_EQ(1, kvt_drop(self->c.fd, 0, self->keys, 2, res));
	EXPECT_EQ(KVTIER_ST_CHILDREN, res[0]);
	EXPECT_EQ(KVTIER_ST_DONE, res[1]);
	EXPECT_EQ(1, kvt_drop(self->c.fd, 0, &twig, 1, res));
	EXPECT_EQ(1, kvt_drop(self->c.fd, 0, self->keys, 1, res));
}

TEST_F(chain, drop_while_filling)
{
	struct kvtier_block_result res;
	__s32 gone;

	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, self->keys, NULL, 1, &res, 0));
	EXPECT_EQ(0, kvt_drop(self->c.fd, 0, self->keys, 1, &gone));
	EXPECT_EQ(KVTIER_ST_BUSY, gone);
	EXPECT_EQ(1, kvt_abort(self->c.fd, &res.handle, 1, NULL));
}

/* Every block once, whatever the page size, with what it is. */
TEST_F(chain, iterate)
{
	static const __u32 pages[] = { 1, 3, 64, 4096 };
	struct kvt_key many[1000], zero = { 0 };
	struct kvtier_block_result lease;
	struct kvtier_entry *all;
	int seen[1000], nr, i, k;
	size_t p;

	kvt_keys(many, SET, 5000, 1000);
	ASSERT_EQ(1000, kvt_put(&self->c, 0, 0, many, NULL, 1000));
	ASSERT_EQ(1, kvt_get(self->c.fd, 0, 0, many, 1, &lease, 0));
	for (p = 0; p < KVT_ARRAY(pages); p++) {
		memset(seen, 0, sizeof(seen));
		nr = kvt_iterate_all(self->c.fd, pages[p], &all);
		ASSERT_EQ(1000, nr);
		for (i = 0; i < nr; i++) {
			for (k = 0; k < 1000 && !same(all[i].key, &many[k]); k++)
				;
			ASSERT_GT(1000, k);
			seen[k]++;
			EXPECT_EQ(KVTIER_ST_HIT, all[i].status);
			EXPECT_EQ(0, all[i].group);
			EXPECT_EQ(!k, all[i].leases);
			EXPECT_GT(60 * KVT_SEC, all[i].idle_ns);
			EXPECT_TRUE(same(all[i].parent, k ? &many[k - 1] : &zero));
		}
		for (k = 0; k < 1000; k++)
			EXPECT_EQ(1, seen[k]) TH_LOG("key %d, pages of %u", k, pages[p]);
		free(all);
	}
}

/* Only this namespace's blocks, those being filled too. */
TEST_F(chain, iterate_own)
{
	struct kvtier_block_result res;
	struct kvtier_entry *all;
	struct kvt_client c;

	ASSERT_EQ(0, kvt_client_open(&self->pool, &c, "other", BLOCK_BYTES));
	ASSERT_EQ(10, kvt_put(&c, 0, 0, self->keys, NULL, 10));
	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, self->keys, NULL, 1, &res, 0));
	ASSERT_EQ(1, kvt_iterate_all(self->c.fd, 8, &all));
	EXPECT_EQ(KVTIER_ST_FILLING, all[0].status);
	EXPECT_TRUE(same(all[0].key, &self->keys[0]));
	free(all);
	kvt_client_close(&c);
}

/* The budget: what index, chains and policy cost, with many blocks there. */
TEST_F(chain, metadata_budget)
{
	__u32 nr = kvt_env_long() ? 16000 : 6000, at;
	struct kvt_key *many = calloc(nr, sizeof(*many));
	struct kvtier_stat st;

	/* Nearly all there is room for, and none of it in the background's way. */
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "watermark_high_percent", "100"));
	kvt_keys(many, SET, 100000, nr);
	for (at = 0; at < nr; at += 1000)
		ASSERT_EQ(1000, kvt_put(&self->c, 0, 0, many + at, at ? many + at - 1 : NULL,
					1000));
	ASSERT_EQ(0, kvt_stat(self->c.fd, KVTIER_STAT_POOL, &st));
	EXPECT_EQ(nr, st.nr_blocks);
	EXPECT_LT(0, st.meta_bytes);
	EXPECT_LT(32, st.meta_bytes_per_block);
	EXPECT_GE(BUDGET, st.meta_bytes_per_block)
		TH_LOG("%llu bytes a block", (unsigned long long)st.meta_bytes_per_block);
	EXPECT_LE(st.meta_bytes, st.meta_bytes_per_block * 2 * nr);
	EXPECT_EQ(nr, kvt_check(&self->c, 0, many, nr, 0));
	free(many);
}

/* --- what blocks of a size cost in a memory tier -------------------------------------- */

FIXTURE(budget)
{
	struct kvt_pool pool;
	struct kvt_client c;
};

FIXTURE_VARIANT(budget)
{
	__u64 block_bytes;
	__u64 tier_bytes;
};

FIXTURE_VARIANT_ADD(budget, kib_64) { 64 * KVT_KIB, 64 * KVT_MIB };
FIXTURE_VARIANT_ADD(budget, kib_640) { 640 * KVT_KIB, 320 * KVT_MIB };
FIXTURE_VARIANT_ADD(budget, mib_2) { 2 * KVT_MIB, 512 * KVT_MIB };

FIXTURE_SETUP(budget)
{
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "watermark_high_percent", "100"));
}

FIXTURE_TEARDOWN(budget)
{
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

static __u64 meta_bytes(const struct kvt_pool *p)
{
	int fd = kvt_open(p);
	struct kvtier_stat st = { 0 };

	if (fd < 0 || kvt_stat(fd, KVTIER_STAT_POOL, &st))
		st.meta_bytes = 1ull << 40;
	close(fd);
	return st.meta_bytes;
}

/* A root, of whatever there is in memory: what is in it does not matter. */
static int put_as_it_is(const struct kvt_client *c, const struct kvt_key *key)
{
	struct kvtier_block_result res, done;
	int ret = kvt_reserve(c->fd, 0, 0, key, NULL, 1, &res, 0);

	return ret == 1 ? kvt_commit(c->fd, 0, &res.handle, 1, &done) : ret;
}

/*
 * As many roots as a new tier holds. Neither it nor they are there afterwards.
 * How many, or -errno; @meta: what there was while they were.
 */
static int fill_tier(const struct kvt_pool *p, __u64 tier_bytes, __u64 block_bytes, int max,
		     __u64 *meta)
{
	int tier = kvt_tier_dram(p, 0, tier_bytes), n = 0, ret;
	struct kvt_client c;
	struct kvt_key key;
	char name[32];

	if (tier < 0)
		return tier;
	/* The one of other blocks goes in its own time. */
	snprintf(name, sizeof(name), "budget of %llu", (unsigned long long)block_bytes);
	ret = kvt_client_open(p, &c, name, block_bytes);
	if (ret)
		return ret;
	do {
		key = kvt_key(SET, 200000 + n);
		ret = put_as_it_is(&c, &key);
		n += ret == 1;
	} while (ret == 1 && n < max);
	*meta = meta_bytes(p);
	kvt_client_close(&c);
	ret = ret < 0 ? ret : kvt_tier_detach(p, tier, KVTIER_DETACH_DISCARD, 10 * KVT_SEC);
	return ret ? ret : n;
}

/*
 * A machine that has no room for thousands of large blocks: the part for each entry is
 * measured with many small ones, whose tier has gone; the part for space with as many
 * large ones as there is room for.
 */
TEST_F(budget, of_a_block)
{
	/* Entries come in chunks of 2048; the first is not used, and 64 are kept. */
	int small = (kvt_env_long() ? 8 : 3) * 2048 - 1 - 64, large;
	__u64 entry, space, ignored;
	double a_block;

	ASSERT_EQ(small, fill_tier(&self->pool, 4096ull * 16384, 4096, small, &ignored));
	entry = meta_bytes(&self->pool);
	large = fill_tier(&self->pool, variant->tier_bytes, variant->block_bytes, 1 << 20, &space);
	ASSERT_LT(0, large);
	EXPECT_LE(variant->tier_bytes / 100 * 96, large * variant->block_bytes);
	EXPECT_LT(entry, space);
	/* All of them go with the tier. */
	EXPECT_EQ(entry, meta_bytes(&self->pool));
	a_block = (double)entry / small + (double)(space - entry) / large;
	TH_LOG("%d blocks: %.1f for an entry and %.1f for space, %.1f bytes a block", large,
	       (double)entry / small, (double)(space - entry) / large, a_block);
	EXPECT_LT(104, a_block);
	EXPECT_GE((double)BUDGET, a_block);
}

/* Two groups of one namespace: a key names a block in each. */
TEST_F(chain, groups_are_apart)
{
	struct kvtier_group g[2] = { { .block_bytes = 4096 }, { .block_bytes = 3 * 4096 } };
	struct kvtier_ns_open a;
	struct kvtier_entry *all;
	struct kvt_client c;
	int fd = kvt_open(&self->pool);

	kvt_ns_args(&a, "groups", g, 2);
	ASSERT_EQ(0, kvt_client_bind(&c, fd, &a));
	ASSERT_EQ(4, kvt_put(&c, 0, 0, self->keys, NULL, 4));
	EXPECT_EQ(0, kvt_lookup(c.fd, 1, self->keys, 4, NULL));
	ASSERT_EQ(4, kvt_put(&c, 0, 1, self->keys, NULL, 4));
	EXPECT_EQ(4, kvt_check(&c, 0, self->keys, 4, 0));
	EXPECT_EQ(4, kvt_check(&c, 1, self->keys, 4, 0));
	EXPECT_EQ(8, kvt_iterate_all(c.fd, 3, &all));
	free(all);
	EXPECT_EQ(4, kvt_drop(c.fd, 1, self->keys, 4, NULL));
	EXPECT_EQ(4, kvt_check(&c, 0, self->keys, 4, 0));
	/* Parents are in the same group. */
	EXPECT_EQ(0, kvt_put(&c, 0, 1, self->keys + 1, self->keys, 1));
	kvt_client_close(&c);
}

TEST_HARNESS_MAIN
