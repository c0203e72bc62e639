// SPDX-License-Identifier: GPL-2.0
/*
 * Block table, free list and intrusive lists.
 */
#include "kvt_kunit.h"

/* Every id is given once, 0 never, and counts add up until none is left. */
static void table_ids_are_unique(struct kunit *test)
{
	u32 total = 2 * KVT_CHUNK_BLOCKS - 1, nr = 0, id;
	struct kvt_table *t = kvt_test_table(test, 2);
	u8 *seen = kunit_kzalloc(test, total + 1, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, seen);
	KUNIT_EXPECT_EQ(test, t->nr_free, total);
	while ((id = kvt_table_alloc(t)) != KVT_NIL) {
		KUNIT_ASSERT_TRUE(test, id <= total);
		KUNIT_ASSERT_EQ(test, seen[id], 0);
		seen[id] = 1;
		nr++;
		KUNIT_ASSERT_EQ(test, t->nr_free, total - nr);
		KUNIT_ASSERT_EQ(test, t->nr_used, nr);
	}
	KUNIT_EXPECT_EQ(test, nr, total);
	KUNIT_EXPECT_EQ(test, kvt_table_alloc(t), KVT_NIL);
	KUNIT_EXPECT_EQ(test, t->nr_used, total);
}

/* Ids from one fresh chunk ascend, so that neighbours share pages. */
static void table_ids_ascend(struct kunit *test)
{
	struct kvt_table *t = kvt_test_table(test, 1);
	u32 i;

	for (i = 1; i < KVT_CHUNK_BLOCKS; i++)
		KUNIT_ASSERT_EQ(test, kvt_table_alloc(t), i);
}

/* What is new leaves some to what is there. */
static void table_some_are_kept(struct kunit *test)
{
	struct kvt_table *t = kvt_test_table(test, 1);
	u32 i;

	while (kvt_table_take(t) != KVT_NIL)
		KUNIT_ASSERT_TRUE(test, t->nr_used < KVT_CHUNK_BLOCKS);
	KUNIT_EXPECT_EQ(test, t->nr_free, KVT_ENTRIES_KEPT);
	for (i = 0; i < KVT_ENTRIES_KEPT; i++)
		KUNIT_EXPECT_NE(test, kvt_table_alloc(t), KVT_NIL);
	KUNIT_EXPECT_EQ(test, kvt_table_alloc(t), KVT_NIL);
}

static void table_valid_bounds(struct kunit *test)
{
	struct kvt_table *t = kvt_test_table(test, 2);

	KUNIT_EXPECT_FALSE(test, kvt_table_valid(t, KVT_NIL));
	KUNIT_EXPECT_TRUE(test, kvt_table_valid(t, 1));
	KUNIT_EXPECT_TRUE(test, kvt_table_valid(t, 2 * KVT_CHUNK_BLOCKS - 1));
	KUNIT_EXPECT_FALSE(test, kvt_table_valid(t, 2 * KVT_CHUNK_BLOCKS));
	KUNIT_EXPECT_FALSE(test, kvt_table_valid(t, U32_MAX));
}

/* A full table refuses a chunk and is as it was. */
static void table_chunk_limit(struct kunit *test)
{
	struct kvt_table *t = kvt_test_table(test, 2), before;
	struct kvt_cold *cold;
	struct kvt_hot *hot;

	hot = kunit_kzalloc(test, KVT_CHUNK_BLOCKS * sizeof(*hot), GFP_KERNEL);
	cold = kunit_kzalloc(test, KVT_CHUNK_BLOCKS * sizeof(*cold), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, hot);
	KUNIT_ASSERT_NOT_NULL(test, cold);
	before = *t;
	KUNIT_EXPECT_EQ(test, kvt_table_add_chunk(t, hot, cold), -ENOSPC);
	KUNIT_EXPECT_EQ(test, memcmp(&before, t, sizeof(before)), 0);
}

/* Whatever the last user left behind, an entry comes clean and one older. */
static void table_entry_comes_clean(struct kunit *test)
{
	struct kvt_table *t = kvt_test_table(test, 1);
	u32 id = kvt_table_alloc(t), gen = kvt_hot(t, id)->gen;
	struct kvt_cold zero;
	struct kvt_hot *h = kvt_hot(t, id);

	memset(&zero, 0, sizeof(zero));
	memset(kvt_cold(t, id), 0xa5, sizeof(struct kvt_cold));
	h->mem_page = 1;
	h->log_unit = 2;
	h->mem_tier = 3;
	h->log_tier = 4;
	h->hash_next = 5;
	atomic_set(&h->ctl, KVT_DEAD | KVT_CTL_MEM | KVT_CTL_PINNED);
	kvt_table_free(t, id);
	KUNIT_EXPECT_EQ(test, kvt_ctl(h), (u32)KVT_FREE);
	KUNIT_EXPECT_NE(test, h->gen, gen);

	KUNIT_ASSERT_EQ(test, kvt_table_alloc(t), id);
	KUNIT_EXPECT_EQ(test, memcmp(kvt_cold(t, id), &zero, sizeof(zero)), 0);
	KUNIT_EXPECT_EQ(test, kvt_ctl(h), (u32)KVT_FREE);
	KUNIT_EXPECT_EQ(test, h->mem_page, 0u);
	KUNIT_EXPECT_EQ(test, h->log_unit, 0u);
	KUNIT_EXPECT_EQ(test, h->mem_tier, KVT_NO_TIER);
	KUNIT_EXPECT_EQ(test, h->log_tier, KVT_NO_TIER);
	KUNIT_EXPECT_EQ(test, h->hash_next, KVT_NIL);
}

/* A chunk added while entries are in use neither loses nor repeats any. */
static void table_grows_in_use(struct kunit *test)
{
	struct kvt_table *t = kvt_test_table(test, 1);
	struct kvt_cold *colds[2] = { t->cold[0] }, *cold;
	struct kvt_hot *hots[2] = { t->hot[0] }, *hot;
	u32 first = kvt_table_alloc(t), second = kvt_table_alloc(t), i, id;

	t->hot = hots;
	t->cold = colds;
	t->max_chunks = 2;
	kvt_hot(t, first)->key[0] = 0x11;
	hot = kunit_kzalloc(test, KVT_CHUNK_BLOCKS * sizeof(*hot), GFP_KERNEL);
	cold = kunit_kzalloc(test, KVT_CHUNK_BLOCKS * sizeof(*cold), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, hot);
	KUNIT_ASSERT_NOT_NULL(test, cold);
	KUNIT_ASSERT_EQ(test, kvt_table_add_chunk(t, hot, cold), 0);
	KUNIT_EXPECT_EQ(test, kvt_hot(t, first)->key[0], 0x11);
	for (i = 0; i < 2 * KVT_CHUNK_BLOCKS - 3; i++) {
		id = kvt_table_alloc(t);
		KUNIT_ASSERT_NE(test, id, KVT_NIL);
		KUNIT_ASSERT_NE(test, id, first);
		KUNIT_ASSERT_NE(test, id, second);
	}
	KUNIT_EXPECT_EQ(test, kvt_table_alloc(t), KVT_NIL);
}

/* A list against an array: both ways, with all links and ends. */
static void list_equals(struct kunit *test, struct kvt_table *t, struct kvt_list *l,
			const u32 *want, u32 nr)
{
	u32 id = l->head, prev = KVT_NIL, i;

	KUNIT_ASSERT_EQ(test, l->count, nr);
	for (i = 0; i < nr; i++) {
		KUNIT_ASSERT_EQ(test, id, want[i]);
		KUNIT_ASSERT_EQ(test, kvt_cold(t, id)->lru_prev, prev);
		prev = id;
		id = kvt_cold(t, id)->lru_next;
	}
	KUNIT_ASSERT_EQ(test, id, KVT_NIL);
	KUNIT_ASSERT_EQ(test, l->tail, prev);
}

/* Random adds at both ends and removals anywhere, against an array. */
static void list_is_an_array(struct kunit *test)
{
	struct kvt_table *t = kvt_test_table(test, 1);
	struct kvt_list l = { 0 };
	u32 want[24], nr = 0, step, at, id;
	u64 rnd = 7;

	for (step = 0; step < 3000; step++) {
		if (nr < ARRAY_SIZE(want) && kvt_test_random(&rnd) % 2) {
			id = kvt_table_alloc(t);
			KUNIT_ASSERT_NE(test, id, KVT_NIL);
			if (kvt_test_random(&rnd) % 2) {
				memmove(want + 1, want, nr * sizeof(*want));
				want[0] = id;
				kvt_list_add_head(t, &l, id);
			} else {
				want[nr] = id;
				kvt_list_add_tail(t, &l, id);
			}
			nr++;
		} else if (nr) {
			at = kvt_test_random(&rnd) % nr;
			id = want[at];
			kvt_list_del(t, &l, id);
			KUNIT_ASSERT_EQ(test, kvt_cold(t, id)->lru_next, KVT_NIL);
			KUNIT_ASSERT_EQ(test, kvt_cold(t, id)->lru_prev, KVT_NIL);
			kvt_table_free(t, id);
			nr--;
			memmove(want + at, want + at + 1, (nr - at) * sizeof(*want));
		}
		list_equals(test, t, &l, want, nr);
	}
}

static struct kunit_case table_cases[] = {
	KUNIT_CASE(table_ids_are_unique),
	KUNIT_CASE(table_some_are_kept),
	KUNIT_CASE(table_ids_ascend),
	KUNIT_CASE(table_valid_bounds),
	KUNIT_CASE(table_chunk_limit),
	KUNIT_CASE(table_entry_comes_clean),
	KUNIT_CASE(table_grows_in_use),
	KUNIT_CASE(list_is_an_array),
	{ }
};

static struct kunit_suite table_suite = {
	.name = "kvt_table",
	.test_cases = table_cases,
};

kunit_test_suite(table_suite);
