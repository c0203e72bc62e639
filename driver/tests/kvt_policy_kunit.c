// SPDX-License-Identifier: GPL-2.0
/*
 * Policy table and LRU.
 */
#include "kvt_kunit.h"
#include "../core/kvt_chain.h"
#include "../core/kvt_policy.h"

#define TIER	3
#define NR	10

struct fixture {
	struct kvt_policy p;
	struct kvt_table *t;
	u32 id[NR];
};

/* NR unrelated blocks, id[0] the oldest; last used a while before that. */
static struct fixture *setup(struct kunit *test)
{
	struct fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->t = kvt_test_table(test, 1);
	kvt_policy_init(&f->p, &kvt_policy_lru, f->t);
	for (i = 0; i < NR; i++) {
		f->p.now_ms = 1000 + i;
		f->id[i] = kvt_test_block(test, f->t, KVT_READY | KVT_CTL_MEM);
		kvt_cold(f->t, f->id[i])->touch_ms = 500 + i;
		f->p.ops->insert(&f->p, TIER, f->id[i]);
	}
	return f;
}

static u32 next(struct fixture *f, bool leaf, u32 budget)
{
	return f->p.ops->next(&f->p, TIER, leaf, &budget);
}

/* Takes block after block out and compares with @want (indices into id[]). */
static void drains_as(struct kunit *test, struct fixture *f, const u32 *want, u32 nr)
{
	u32 i, id;

	for (i = 0; i < nr; i++) {
		id = next(f, false, 1);
		KUNIT_ASSERT_EQ(test, id, f->id[want[i]]);
		f->p.ops->remove(&f->p, TIER, id);
	}
	KUNIT_EXPECT_EQ(test, next(f, false, 1), KVT_NIL);
	KUNIT_EXPECT_EQ(test, f->p.list[TIER][0].count, 0u);
}

static void lru_oldest_first(struct kunit *test)
{
	static const u32 want[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 };
	struct fixture *f = setup(test);
	u32 i;

	/* To change tiers is not to be used. */
	for (i = 0; i < NR; i++)
		KUNIT_EXPECT_EQ(test, kvt_cold(f->t, f->id[i])->touch_ms, 500 + i);
	drains_as(test, f, want, NR);
}

/* Use makes recent, cooling makes first, skipping makes last. */
static void lru_order_follows_use(struct kunit *test)
{
	static const u32 want[] = { 7, 1, 3, 4, 5, 6, 8, 9, 0, 2 };
	struct fixture *f = setup(test);

	f->p.now_ms = 5000;
	f->p.ops->touch(&f->p, TIER, f->id[0]);
	KUNIT_EXPECT_EQ(test, kvt_cold(f->t, f->id[0])->touch_ms, 5000u);
	f->p.ops->skip(&f->p, TIER, f->id[2]);
	KUNIT_EXPECT_EQ(test, kvt_cold(f->t, f->id[2])->touch_ms, 502u);
	f->p.ops->cool(&f->p, TIER, f->id[7]);
	drains_as(test, f, want, NR);
}

/* Asking does not take: the same block is offered until it goes or is skipped. */
static void lru_next_is_stable(struct kunit *test)
{
	struct fixture *f = setup(test);

	KUNIT_EXPECT_EQ(test, next(f, false, 5), f->id[0]);
	KUNIT_EXPECT_EQ(test, next(f, false, 5), f->id[0]);
	f->p.ops->skip(&f->p, TIER, f->id[0]);
	KUNIT_EXPECT_EQ(test, next(f, false, 5), f->id[1]);
}

/* Only leaves are offered for eviction; for demotion everybody is. */
static void lru_leaf_rule(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 seen = 0, id, i;

	/* 0 <- 1 <- 2, and 3 <- 4: leaves are 2 and 4..9. */
	kvt_ch_link(f->t, f->id[1], f->id[0]);
	kvt_ch_link(f->t, f->id[2], f->id[1]);
	kvt_ch_link(f->t, f->id[4], f->id[3]);
	KUNIT_EXPECT_EQ(test, next(f, false, 1), f->id[0]);
	KUNIT_EXPECT_EQ(test, next(f, true, NR), f->id[2]);
	for (i = 0; i < NR; i++) {
		id = next(f, true, NR);
		KUNIT_ASSERT_NE(test, id, KVT_NIL);
		KUNIT_EXPECT_TRUE(test, kvt_ch_leaf(f->t, id));
		/* As eviction does; the parent may become a leaf. */
		f->p.ops->remove(&f->p, TIER, id);
		kvt_ch_unlink(f->t, id);
		seen++;
	}
	KUNIT_EXPECT_EQ(test, seen, (u32)NR);
	KUNIT_EXPECT_EQ(test, f->p.list[TIER][0].count, 0u);
}

/* The search is bounded by its budget, pays for what it looks at, loses none. */
static void lru_budget_bounds_search(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 i, budget, id;

	/* All but the newest have a child elsewhere. */
	for (i = 0; i + 1 < NR; i++)
		kvt_ch_link(f->t, kvt_test_block(test, f->t, KVT_READY), f->id[i]);
	budget = 0;
	KUNIT_EXPECT_EQ(test, f->p.ops->next(&f->p, TIER, false, &budget), KVT_NIL);
	budget = 4;
	KUNIT_EXPECT_EQ(test, f->p.ops->next(&f->p, TIER, true, &budget), KVT_NIL);
	KUNIT_EXPECT_EQ(test, budget, 0u);
	KUNIT_EXPECT_EQ(test, f->p.list[TIER][0].count, (u32)NR);
	/* Rotation made progress: 5 more with children, then the leaf. */
	budget = NR;
	id = f->p.ops->next(&f->p, TIER, true, &budget);
	KUNIT_EXPECT_EQ(test, id, f->id[NR - 1]);
	KUNIT_EXPECT_EQ(test, budget, NR - 6u);
	KUNIT_EXPECT_EQ(test, f->p.list[TIER][0].count, (u32)NR);
}

/* A tier's list is its own. */
static void lru_tiers_are_apart(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 i, budget;

	for (i = 0; i < KVT_TIERS; i++) {
		budget = 1;
		KUNIT_EXPECT_EQ(test, f->p.ops->next(&f->p, i, false, &budget),
				i == TIER ? f->id[0] : KVT_NIL);
	}
	f->p.ops->remove(&f->p, TIER, f->id[0]);
	f->p.ops->insert(&f->p, TIER + 1, f->id[0]);
	KUNIT_EXPECT_EQ(test, next(f, false, 1), f->id[1]);
	budget = 1;
	KUNIT_EXPECT_EQ(test, f->p.ops->next(&f->p, TIER + 1, false, &budget), f->id[0]);
}

/* Names from user space: exact, of the given length, terminated or not. */
static void policy_found_by_exact_name(struct kunit *test)
{
	KUNIT_EXPECT_PTR_EQ(test, kvt_policy_find("lru", 3), &kvt_policy_lru);
	KUNIT_EXPECT_PTR_EQ(test, kvt_policy_find("lru\n", 3), &kvt_policy_lru);
	KUNIT_EXPECT_NULL(test, kvt_policy_find("lru", 2));
	KUNIT_EXPECT_NULL(test, kvt_policy_find("lru", 4));
	KUNIT_EXPECT_NULL(test, kvt_policy_find("lrU", 3));
	KUNIT_EXPECT_NULL(test, kvt_policy_find("", 0));
}

static struct kunit_case policy_cases[] = {
	KUNIT_CASE(lru_oldest_first),
	KUNIT_CASE(lru_order_follows_use),
	KUNIT_CASE(lru_next_is_stable),
	KUNIT_CASE(lru_leaf_rule),
	KUNIT_CASE(lru_budget_bounds_search),
	KUNIT_CASE(lru_tiers_are_apart),
	KUNIT_CASE(policy_found_by_exact_name),
	{ }
};

static struct kunit_suite policy_suite = {
	.name = "kvt_policy",
	.test_cases = policy_cases,
};

kunit_test_suite(policy_suite);
