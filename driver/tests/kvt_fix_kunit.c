// SPDX-License-Identifier: GPL-2.0
/*
 * What is fixed in place: each region once, never more than the limit, and nothing left.
 */
#include "kvt_kunit.h"
#include "../core/kvt_fix.h"

#define NO_LIMIT	INT_MAX
#define NAMESPACES	4	/* two owners with two each */

struct fixture {
	struct kvt_region reg[3];
	struct kvt_region far[64];
	struct kvt_hot hot;
	struct kvt_fix_account ns[NAMESPACES];
	struct kvt_fix_rules rules;
	atomic_t owner[NAMESPACES / 2];
	atomic_t pool;
};

static struct fixture *setup(struct kunit *test)
{
	struct fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, f);
	for (i = 0; i < ARRAY_SIZE(f->reg); i++)
		f->reg[i].nr_pieces = i + 1;
	for (i = 0; i < ARRAY_SIZE(f->far); i++)
		f->far[i].nr_pieces = 1;
	for (i = 0; i < NAMESPACES; i++) {
		f->ns[i].owner = &f->owner[i / 2];
		f->ns[i].pool = &f->pool;
	}
	atomic_set(&f->hot.ctl, KVT_READY | KVT_CTL_MEM);
	return f;
}

static int total(struct fixture *f, u32 ns)
{
	return atomic_read(&f->ns[ns].pieces);
}

/* As a lease or reservation asks. */
static bool fix(struct fixture *f, u32 r, int limit)
{
	struct kvt_fix_rules rules = { .limit = limit, .most = NO_LIMIT };

	return kvt_fix_more(&f->reg[r]) || kvt_fix_first(&f->reg[r], &f->ns[0], &rules);
}

static void fix_each_region_once(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 i, n;

	for (n = 0; n < 3; n++)
		for (i = 0; i < ARRAY_SIZE(f->reg); i++)
			KUNIT_EXPECT_TRUE(test, fix(f, i, NO_LIMIT));
	KUNIT_EXPECT_EQ(test, total(f, 0), 6);
	for (n = 0; n < 3; n++) {
		KUNIT_EXPECT_EQ(test, total(f, 0), 6);
		for (i = 0; i < ARRAY_SIZE(f->reg); i++)
			kvt_fix_put(&f->reg[i], &f->ns[0]);
	}
	KUNIT_EXPECT_EQ(test, total(f, 0), 0);
}

static void fix_up_to_the_limit(struct kunit *test)
{
	struct fixture *f = setup(test);

	KUNIT_EXPECT_FALSE(test, fix(f, 0, 0));
	KUNIT_EXPECT_TRUE(test, fix(f, 0, 3));
	KUNIT_EXPECT_TRUE(test, fix(f, 1, 3));
	KUNIT_EXPECT_FALSE(test, fix(f, 2, 5));
	KUNIT_EXPECT_EQ(test, total(f, 0), 3);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->pool), 3);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->reg[2].fixed), 0);
	/* In what is paid for there is room, whatever the limit is now. */
	KUNIT_EXPECT_TRUE(test, fix(f, 0, 0));
	KUNIT_EXPECT_EQ(test, total(f, 0), 3);
	kvt_fix_force(&f->reg[2], &f->ns[0]);
	KUNIT_EXPECT_EQ(test, total(f, 0), 6);
}

/* Somebody else has fixed the region between the look and the payment. */
static void fix_paid_for_by_another(struct kunit *test)
{
	const struct kvt_fix_rules two = { .limit = 2, .most = NO_LIMIT };
	const struct kvt_fix_rules many = { .limit = NO_LIMIT, .most = NO_LIMIT };
	struct fixture *f = setup(test);

	KUNIT_ASSERT_TRUE(test, fix(f, 1, NO_LIMIT));
	KUNIT_EXPECT_TRUE(test, kvt_fix_first(&f->reg[1], &f->ns[0], &many));
	KUNIT_EXPECT_EQ(test, total(f, 0), 2);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->reg[1].fixed), 2);
	KUNIT_EXPECT_TRUE(test, kvt_fix_first(&f->reg[1], &f->ns[0], &two));
	KUNIT_EXPECT_EQ(test, total(f, 0), 2);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->reg[1].fixed), 3);
}

static void fix_ends_with_the_last_lease(struct kunit *test)
{
	struct fixture *f = setup(test);
	bool first;

	KUNIT_ASSERT_TRUE(test, kvt_lease_try_first(&f->hot, &first));
	KUNIT_EXPECT_TRUE(test, first);
	KUNIT_ASSERT_TRUE(test, fix(f, 0, 1));
	KUNIT_ASSERT_TRUE(test, kvt_lease_try_first(&f->hot, &first));
	KUNIT_EXPECT_FALSE(test, first);
	KUNIT_EXPECT_FALSE(test, kvt_lease_put_fixed(&f->hot, &f->reg[0], &f->ns[0]));
	KUNIT_EXPECT_EQ(test, total(f, 0), 1);
	atomic_set(&f->hot.ctl, (int)(((u32)atomic_read(&f->hot.ctl) & ~KVT_CTL_STATE) | KVT_DEAD));
	KUNIT_EXPECT_TRUE(test, kvt_lease_put_fixed(&f->hot, &f->reg[0], &f->ns[0]));
	KUNIT_EXPECT_EQ(test, total(f, 0), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->reg[0].fixed), 0);
	KUNIT_EXPECT_EQ(test, kvt_ctl_leases((u32)atomic_read(&f->hot.ctl)), 0u);
}

/* A namespace fixes as many of the regions as it gets, the first of them @from. */
static u32 take(struct fixture *f, u32 ns, u32 from, u32 most)
{
	u32 n = 0;

	while (n < most && kvt_fix_first(&f->far[from + n], &f->ns[ns], &f->rules))
		n++;
	return n;
}

static void rules(struct fixture *f, int all, int promised)
{
	f->rules.limit = all;
	f->rules.most = NO_LIMIT;
	f->rules.free = all - promised;
	f->rules.spare = kvt_fix_spare(all, f->rules.free);
}

/* 64: 4 of these for who has little, and 2 for owners who have. */
static void fix_leaves_some_to_others(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 n;

	rules(f, 64, 0);
	KUNIT_EXPECT_EQ(test, f->rules.spare, 4);
	n = take(f, 0, 0, 64);
	KUNIT_EXPECT_EQ(test, n, 60u);
	/* Another namespace of his: no more than it leaves. */
	n += take(f, 1, n, 64);
	KUNIT_EXPECT_EQ(test, n, 62u);
	KUNIT_EXPECT_FALSE(test, take(f, 0, n, 1));
	n += take(f, 2, n, 64);
	KUNIT_EXPECT_EQ(test, n, 63u);
	KUNIT_EXPECT_FALSE(test, take(f, 1, n, 1));
	/* The last one, to who has nothing; an owner's other namespaces have what he has. */
	KUNIT_EXPECT_FALSE(test, take(f, 3, n, 1));
	kvt_fix_put(&f->far[62], &f->ns[2]);
	KUNIT_EXPECT_TRUE(test, take(f, 3, 62, 1));
	KUNIT_EXPECT_EQ(test, atomic_read(&f->owner[0]), 62);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->owner[1]), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->pool), 63);
	/* What comes back is there for all again. */
	for (n = 0; n < 8; n++)
		kvt_fix_put(&f->far[n], &f->ns[0]);
	KUNIT_EXPECT_EQ(test, take(f, 2, 0, 8), 5u);
}

/* Several namespaces of one owner do not get what one does not. */
static void fix_by_many_of_one_owner(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 n = 0, i;

	rules(f, 64, 0);
	f->rules.limit = 20;
	/* Each of them is small enough for the last ones. */
	for (i = 0; i < NAMESPACES; i++)
		f->ns[i].owner = &f->owner[0];
	for (i = 0; i < NAMESPACES; i++)
		n += take(f, i, n, 64);
	KUNIT_EXPECT_EQ(test, n, 62u);
	f->ns[3].owner = &f->owner[1];
	KUNIT_EXPECT_EQ(test, total(f, 3), 2);
}

/* No rule for what is guaranteed, and it counts as given away. */
static void fix_within_a_guarantee(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 i, n;

	f->ns[0].promised = 32;
	atomic_set(&f->owner[0], 32);
	rules(f, 64, 32);
	n = take(f, 1, 0, 64);
	KUNIT_EXPECT_EQ(test, n, 28u);
	n += take(f, 2, n, 64);
	KUNIT_EXPECT_EQ(test, n, 30u);
	KUNIT_EXPECT_EQ(test, take(f, 0, n, 64), 32u);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->owner[0]), 32 + 28);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->pool), 30);
	for (i = 0; i < 32; i++)
		kvt_fix_put(&f->far[n + i], &f->ns[0]);
	KUNIT_EXPECT_EQ(test, total(f, 0), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->owner[0]), 32 + 28);
	/* Beyond it like the others: with a half of the rest, less the last ones. */
	for (i = 0; i < 28; i++)
		kvt_fix_put(&f->far[i], &f->ns[1]);
	KUNIT_EXPECT_EQ(test, take(f, 0, 32, 32) + take(f, 0, 0, 28), 58u);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->pool), 28);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->owner[0]), 32 + 26);
}

/* Who has much guaranteed is not one who has little. */
static void fix_beside_a_guarantee(struct kunit *test)
{
	struct fixture *f = setup(test);

	f->ns[0].promised = 60;
	atomic_set(&f->owner[0], 60);
	rules(f, 64, 60);
	KUNIT_EXPECT_EQ(test, f->rules.spare, 2);
	KUNIT_EXPECT_EQ(test, take(f, 0, 0, 64), 62u);
	KUNIT_EXPECT_FALSE(test, take(f, 0, 62, 1));
	/* A small namespace of his gets half of the rest, and no more. */
	KUNIT_EXPECT_EQ(test, take(f, 1, 62, 2), 1u);
	KUNIT_EXPECT_TRUE(test, take(f, 2, 63, 1));
}

/* With what an owner keeps in other ways, too, he may have no more than that. */
static void fix_up_to_the_most(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 n;

	rules(f, 64, 0);
	f->rules.most = 20;
	n = take(f, 0, 0, 15);
	n += take(f, 1, n, 15);
	KUNIT_EXPECT_EQ(test, n, 20u);
	KUNIT_EXPECT_EQ(test, take(f, 2, n, 15), 15u);
}

/* A region of several pieces leaves as many as it takes, or is not to be had. */
static void fix_large_regions(struct kunit *test)
{
	struct fixture *f = setup(test);

	rules(f, 64, 0);
	KUNIT_ASSERT_EQ(test, take(f, 0, 0, 64), 60u);
	KUNIT_EXPECT_FALSE(test, kvt_fix_first(&f->reg[2], &f->ns[2], &f->rules));
	KUNIT_EXPECT_TRUE(test, kvt_fix_first(&f->reg[1], &f->ns[2], &f->rules));
	f = setup(test);
	rules(f, 64, 0);
	KUNIT_ASSERT_EQ(test, take(f, 0, 0, 64) + take(f, 1, 60, 4), 62u);
	KUNIT_EXPECT_FALSE(test, kvt_fix_first(&f->reg[1], &f->ns[2], &f->rules));
	KUNIT_EXPECT_TRUE(test, kvt_fix_first(&f->reg[0], &f->ns[2], &f->rules));
	KUNIT_EXPECT_EQ(test, atomic_read(&f->owner[1]), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->pool), 63);
}

/* Where there is little to have, there is nothing to be left. */
static void fix_in_a_small_pool(struct kunit *test)
{
	struct fixture *f = setup(test);

	rules(f, 15, 0);
	KUNIT_EXPECT_EQ(test, take(f, 0, 0, 15), 15u);
	f = setup(test);
	rules(f, 16, 0);
	KUNIT_EXPECT_EQ(test, f->rules.spare, 1);
	KUNIT_EXPECT_EQ(test, take(f, 0, 0, 16), 15u);
	KUNIT_EXPECT_EQ(test, take(f, 1, 15, 1), 0u);
	KUNIT_EXPECT_EQ(test, take(f, 2, 15, 1), 1u);
	/* All of it is guaranteed: that was for who had it promised. */
	f = setup(test);
	rules(f, 64, 64);
	KUNIT_EXPECT_EQ(test, f->rules.spare, 1);
	KUNIT_EXPECT_EQ(test, take(f, 0, 0, 1), 0u);
	f->ns[1].promised = 64;
	KUNIT_EXPECT_EQ(test, take(f, 1, 0, 64), 64u);
}

static struct kunit_case fix_cases[] = {
	KUNIT_CASE(fix_each_region_once),
	KUNIT_CASE(fix_up_to_the_limit),
	KUNIT_CASE(fix_paid_for_by_another),
	KUNIT_CASE(fix_ends_with_the_last_lease),
	KUNIT_CASE(fix_leaves_some_to_others),
	KUNIT_CASE(fix_by_many_of_one_owner),
	KUNIT_CASE(fix_within_a_guarantee),
	KUNIT_CASE(fix_beside_a_guarantee),
	KUNIT_CASE(fix_up_to_the_most),
	KUNIT_CASE(fix_large_regions),
	KUNIT_CASE(fix_in_a_small_pool),
	{ }
};

static struct kunit_suite fix_suite = {
	.name = "kvt_fix",
	.test_cases = fix_cases,
};

kunit_test_suite(fix_suite);
