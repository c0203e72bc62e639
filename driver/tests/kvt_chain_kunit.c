// SPDX-License-Identifier: GPL-2.0
/*
 * Chain links.
 */
#include "kvt_kunit.h"
#include "../core/kvt_chain.h"

#define NR	64

/* Children of @parent by the list, checking every link; fails on a loop. */
static u32 count_children(struct kunit *test, struct kvt_table *t, u32 parent)
{
	u32 id = kvt_cold(t, parent)->first_child, prev = KVT_NIL, nr = 0;

	while (id != KVT_NIL) {
		KUNIT_ASSERT_TRUE(test, nr < NR);
		KUNIT_ASSERT_EQ(test, kvt_cold(t, id)->parent, parent);
		KUNIT_ASSERT_EQ(test, kvt_cold(t, id)->sib_prev, prev);
		prev = id;
		id = kvt_cold(t, id)->sib_next;
		nr++;
	}
	return nr;
}

/* Random forest: links, unlinks of first, middle and last, against an array. */
static void chain_is_a_forest(struct kunit *test)
{
	u32 *id = kunit_kzalloc(test, 3 * NR * sizeof(*id), GFP_KERNEL);
	struct kvt_table *t = kvt_test_table(test, 1);
	u32 *parent = id + NR, *kids = parent + NR, i, k, step;
	u64 rnd = 3;

	KUNIT_ASSERT_NOT_NULL(test, id);
	for (i = 0; i < NR; i++) {
		id[i] = kvt_test_block(test, t, KVT_READY);
		parent[i] = NR;
	}
	for (step = 0; step < 4000; step++) {
		i = 1 + kvt_test_random(&rnd) % (NR - 1);
		if (parent[i] == NR) {
			/* Parents come first, as in the store: no cycles. */
			parent[i] = kvt_test_random(&rnd) % i;
			kvt_ch_link(t, id[i], id[parent[i]]);
		} else {
			KUNIT_ASSERT_EQ(test, kvt_ch_unlink(t, id[i]), id[parent[i]]);
			KUNIT_ASSERT_EQ(test, kvt_cold(t, id[i])->sib_next, KVT_NIL);
			KUNIT_ASSERT_EQ(test, kvt_cold(t, id[i])->sib_prev, KVT_NIL);
			parent[i] = NR;
		}
		memset(kids, 0, NR * sizeof(*kids));
		for (k = 0; k < NR; k++) {
			KUNIT_ASSERT_EQ(test, kvt_cold(t, id[k])->parent,
					parent[k] == NR ? KVT_NIL : id[parent[k]]);
			if (parent[k] != NR)
				kids[parent[k]]++;
		}
		for (k = 0; k < NR; k++) {
			KUNIT_ASSERT_EQ(test, count_children(test, t, id[k]), kids[k]);
			KUNIT_ASSERT_EQ(test, kvt_ch_leaf(t, id[k]), kids[k] == 0);
		}
	}
}

/* Unlinking a root does nothing, its children stay. */
static void chain_root_has_no_parent(struct kunit *test)
{
	struct kvt_table *t = kvt_test_table(test, 1);
	u32 root = kvt_test_block(test, t, KVT_READY);
	u32 kid = kvt_test_block(test, t, KVT_READY);

	kvt_ch_link(t, kid, root);
	KUNIT_EXPECT_EQ(test, kvt_ch_unlink(t, root), KVT_NIL);
	KUNIT_EXPECT_EQ(test, kvt_cold(t, root)->first_child, kid);
	KUNIT_EXPECT_EQ(test, kvt_ch_unlink(t, kid), root);
	KUNIT_EXPECT_EQ(test, kvt_ch_unlink(t, kid), KVT_NIL);
	KUNIT_EXPECT_TRUE(test, kvt_ch_leaf(t, root));
}

static void chain_depth_counts_to_limit(struct kunit *test)
{
	struct kvt_table *t = kvt_test_table(test, 1);
	u32 id[NR], i, limit;

	for (i = 0; i < NR; i++) {
		id[i] = kvt_test_block(test, t, KVT_READY);
		if (i)
			kvt_ch_link(t, id[i], id[i - 1]);
	}
	for (i = 0; i < NR; i++) {
		KUNIT_EXPECT_EQ(test, kvt_ch_depth(t, id[i], U32_MAX), i);
		for (limit = 0; limit < NR; limit++)
			KUNIT_EXPECT_EQ(test, kvt_ch_depth(t, id[i], limit),
					min(i, limit));
	}
}

/* In steps of any length. */
static u32 cut_cycles(struct kvt_table *t, u32 steps)
{
	struct kvt_ch_cut cut;

	kvt_ch_cut_start(&cut);
	while (kvt_ch_cut_step(t, &cut, steps))
		;
	return cut.nr;
}

/* Links at random, each block to any other: afterwards every walk up ends. */
static void chain_cycles_are_cut(struct kunit *test)
{
	struct kvt_table *t = kvt_test_table(test, 1);
	u32 id[NR], i, k, up, links, left, cut, total = 0;
	u64 rnd = 11;

	for (i = 0; i < NR; i++)
		id[i] = kvt_test_block(test, t, KVT_READY);
	for (k = 0; k < 200; k++) {
		for (i = 0, links = 0; i < NR; i++) {
			kvt_ch_unlink(t, id[i]);
			up = id[kvt_test_random(&rnd) % NR];
			if (up != id[i] && kvt_test_random(&rnd) % 4) {
				kvt_ch_link(t, id[i], up);
				links++;
			}
		}
		cut = cut_cycles(t, 1 + kvt_test_random(&rnd) % 7);
		total += cut;
		for (i = 0, left = 0; i < NR; i++) {
			left += kvt_cold(t, id[i])->parent != KVT_NIL;
			KUNIT_ASSERT_LT(test, kvt_ch_depth(t, id[i], NR + 1), (u32)NR);
			KUNIT_ASSERT_EQ(test, kvt_cold(t, id[i])->lru_prev, KVT_NIL);
		}
		/* Not one link too many. */
		KUNIT_ASSERT_EQ(test, left + cut, links);
		KUNIT_ASSERT_EQ(test, cut_cycles(t, U32_MAX), 0u);
	}
	KUNIT_EXPECT_GT(test, total, 50u);
}

/* All of a block's children, and as many of them as are wanted, go to another one. */
static void chain_children_are_adopted(struct kunit *test)
{
	struct kvt_table *t = kvt_test_table(test, 1);
	u32 from = kvt_test_block(test, t, KVT_READY), to[3], id[5], i;

	for (i = 0; i < 3; i++)
		to[i] = kvt_test_block(test, t, KVT_READY);
	kvt_ch_adopt(t, to[0], from, 8);
	KUNIT_EXPECT_TRUE(test, kvt_ch_leaf(t, to[0]));
	for (i = 0; i < 5; i++) {
		id[i] = kvt_test_block(test, t, KVT_READY);
		kvt_ch_link(t, id[i], from);
	}
	kvt_ch_adopt(t, to[1], from, 2);
	KUNIT_EXPECT_EQ(test, count_children(test, t, to[1]), 2u);
	KUNIT_EXPECT_EQ(test, count_children(test, t, from), 3u);
	kvt_ch_adopt(t, to[2], from, 3);
	KUNIT_EXPECT_EQ(test, count_children(test, t, to[2]), 3u);
	KUNIT_EXPECT_TRUE(test, kvt_ch_leaf(t, from));
	for (i = 0; i < 5; i++)
		kvt_ch_unlink(t, id[i]);
	KUNIT_EXPECT_TRUE(test, kvt_ch_leaf(t, to[1]) && kvt_ch_leaf(t, to[2]));
}

static struct kunit_case chain_cases[] = {
	KUNIT_CASE(chain_is_a_forest),
	KUNIT_CASE(chain_root_has_no_parent),
	KUNIT_CASE(chain_depth_counts_to_limit),
	KUNIT_CASE(chain_cycles_are_cut),
	KUNIT_CASE(chain_children_are_adopted),
	{ }
};

static struct kunit_suite chain_suite = {
	.name = "kvt_chain",
	.test_cases = chain_cases,
};

kunit_test_suite(chain_suite);
