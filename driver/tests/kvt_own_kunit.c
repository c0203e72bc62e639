// SPDX-License-Identifier: GPL-2.0
/*
 * The policy "reuse": which of one owner's blocks goes when it has to be one of his.
 */
#include "kvt_reuse_kunit.h"

#define CHAINS	100

/* A request for a new chain of so many blocks. Returns its last one. */
static u32 request_new(struct kunit *test, struct fixture *f, u32 nr)
{
	u32 tip = grow(test, f, KVT_NIL, nr);

	request(f, tip);
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
	first = request_new(test, f, 3);
	f->ns = 0;
	other = request_new(test, f, 2);
	f->p.ops->cool(&f->p, TIER, other);
	f->p.now_ms += 10 * MINUTE;
	f->ns = 1;
	tip = request_new(test, f, 3);
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
		tip[i] = request_new(test, f, 2);
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
	u32 a = request_new(test, f, 1), b = request_new(test, f, 1);

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
