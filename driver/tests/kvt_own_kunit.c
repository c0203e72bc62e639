// SPDX-License-Identifier: GPL-2.0
/*
 * The policy "reuse": which of one owner's blocks goes when it has to be one of his.
 */
#include "kvt_kunit.h"
#include "../core/kvt_chain.h"
#include "../core/kvt_policy_request.h"

#define TIER	2
#define MINUTE	60000u
#define CHAINS	100

struct fixture {
	struct kvt_policy p;
	struct kvt_table *t;
	u32 nr;
	u32 ns;
};

static struct fixture *setup(struct kunit *test)
{
	struct fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->t = kvt_test_table(test, 1);
	kvt_policy_init(&f->p, &kvt_policy_reuse, f->t);
	kvt_test_mind(test, &f->p);
	f->p.now_ms = 1000;
	return f;
}

/* @nr new blocks under @parent, the last one's id. */
static u32 grow(struct kunit *test, struct fixture *f, u32 parent, u32 nr)
{
	u32 id;

	for (; nr--; parent = id) {
		id = kvt_test_block(test, f->t, KVT_READY | KVT_CTL_MEM);
		kvt_hot(f->t, id)->mem_tier = TIER;
		kvt_hot(f->t, id)->hash = ++f->nr * 2654435761u;
		kvt_hot(f->t, id)->ns_group = kvt_ns_group(f->ns, 0);
		kvt_cold(f->t, id)->touch_ms = f->p.now_ms;
		if (parent)
			kvt_ch_link(f->t, id, parent);
		f->p.ops->insert(&f->p, TIER, id);
	}
	return parent;
}

/* A request for a new chain of so many blocks. Returns its last one. */
static u32 request(struct kunit *test, struct fixture *f, u32 nr)
{
	u32 tip = grow(test, f, KVT_NIL, nr), id;

	for (id = tip; id; id = kvt_cold(f->t, id)->parent)
		f->p.ops->touch(&f->p, TIER, id);
	kvt_policy_request(&f->p, tip);
	return tip;
}

static u32 least(struct fixture *f, u32 ns, bool leaf, u32 spare)
{
	return kvt_policy_least_of(&f->p, TIER, kvt_ns_group(ns, 0), leaf, spare);
}

/* Of one owner's blocks that can go, the one that is worth least. */
static void owners_least(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 tip, first, cold, other;

	f->ns = 1;
	first = request(test, f, 3);
	f->ns = 0;
	other = request(test, f, 2);
	f->p.ops->cool(&f->p, TIER, other);
	f->p.now_ms += 10 * MINUTE;
	f->ns = 1;
	tip = request(test, f, 3);
	/* Nothing is known: the older one. Only its end is a leaf. */
	KUNIT_EXPECT_EQ(test, least(f, 1, true, KVT_NIL), first);
	KUNIT_EXPECT_EQ(test, least(f, 1, true, first), tip);
	kvt_lease_try(kvt_hot(f->t, first));
	KUNIT_EXPECT_EQ(test, least(f, 1, true, KVT_NIL), tip);
	/* What a session holds does not leave the pool, but may go down. */
	kvt_ctl_update(kvt_hot(f->t, tip), 0, 0, 0, KVT_CTL_HELD);
	KUNIT_EXPECT_EQ(test, least(f, 1, true, KVT_NIL), KVT_NIL);
	cold = kvt_cold(f->t, tip)->parent;
	f->p.ops->cool(&f->p, TIER, cold);
	KUNIT_EXPECT_EQ(test, least(f, 1, false, KVT_NIL), cold);
	KUNIT_EXPECT_EQ(test, least(f, 5, false, KVT_NIL), KVT_NIL);
}

/*
 * What others' searches have put aside, since it is guaranteed, is the owner's to give: among a few
 * of it the least, and each time among others.
 */
static void what_is_aside_counts(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 tip[CHAINS], i, n, id, found = 0;

	for (i = 0; i < CHAINS; i++) {
		f->ns = i & 1;
		f->p.now_ms += 1000;
		tip[i] = request(test, f, 2);
	}
	f->p.now_ms += MINUTE;
	/* All but the youngest of each. */
	for (i = 0; i < CHAINS - 2; i++)
		f->p.ops->skip(&f->p, TIER, tip[i]);
	f->p.ops->cool(&f->p, TIER, tip[1]);
	for (n = 0; n < CHAINS; n++) {
		id = least(f, 1, true, KVT_NIL);
		KUNIT_ASSERT_NE(test, id, KVT_NIL);
		KUNIT_EXPECT_EQ(test, kvt_hot(f->t, id)->ns_group, kvt_ns_group(1, 0));
		found += id == tip[1];
	}
	/* There are 98 aside, half of them others', and 16 are looked at. */
	KUNIT_EXPECT_LE(test, CHAINS / 5, (int)found);
	KUNIT_EXPECT_LT(test, (int)found, CHAINS);
	KUNIT_EXPECT_EQ(test, f->p.list[TIER][REUSE_ASIDE].count, CHAINS - 2u);
	/* Of which some cannot go, or are to stay. */
	for (i = 3; i < CHAINS - 2; i++)
		kvt_lease_try(kvt_hot(f->t, tip[i]));
	for (n = 0; n < 4; n++) {
		id = least(f, 1, true, KVT_NIL);
		KUNIT_EXPECT_TRUE(test, !id || id == tip[1]);
		KUNIT_EXPECT_EQ(test, least(f, 1, true, tip[1]), KVT_NIL);
	}
}

static void the_lesser_of_two(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 a = request(test, f, 1), b = request(test, f, 1);

	KUNIT_EXPECT_EQ(test, kvt_policy_lesser(&f->p, KVT_NIL, KVT_NIL), KVT_NIL);
	KUNIT_EXPECT_EQ(test, kvt_policy_lesser(&f->p, a, KVT_NIL), a);
	KUNIT_EXPECT_EQ(test, kvt_policy_lesser(&f->p, KVT_NIL, a), a);
	KUNIT_EXPECT_EQ(test, kvt_policy_lesser(&f->p, a, b), a);
	KUNIT_EXPECT_EQ(test, kvt_policy_lesser(&f->p, b, a), b);
	f->p.ops->cool(&f->p, TIER, b);
	KUNIT_EXPECT_EQ(test, kvt_policy_lesser(&f->p, a, b), b);
	KUNIT_EXPECT_EQ(test, kvt_policy_lesser(&f->p, b, a), b);
}

static struct kunit_case kvt_own_cases[] = {
	KUNIT_CASE(owners_least),
	KUNIT_CASE(what_is_aside_counts),
	KUNIT_CASE(the_lesser_of_two),
	{ }
};

static struct kunit_suite kvt_own_suite = {
	.name = "kvt_own",
	.test_cases = kvt_own_cases,
};
kunit_test_suite(kvt_own_suite);
