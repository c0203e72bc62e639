// SPDX-License-Identifier: GPL-2.0
/*
 * What is fixed in place: each region once, never more than the limit, and nothing left.
 */
#include "kvt_kunit.h"
#include "../core/kvt_fix.h"

struct fixture {
	struct kvt_region reg[3];
	struct kvt_hot hot;
	atomic_t total;
};

static struct fixture *setup(struct kunit *test)
{
	struct fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, f);
	for (i = 0; i < ARRAY_SIZE(f->reg); i++)
		f->reg[i].nr_pieces = i + 1;
	atomic_set(&f->hot.ctl, KVT_READY | KVT_CTL_MEM);
	return f;
}

/* As a lease or reservation asks. */
static bool fix(struct fixture *f, u32 r, int limit)
{
	return kvt_fix_more(&f->reg[r]) || kvt_fix_first(&f->reg[r], &f->total, limit);
}

static void fix_each_region_once(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 i, n;

	for (n = 0; n < 3; n++)
		for (i = 0; i < ARRAY_SIZE(f->reg); i++)
			KUNIT_EXPECT_TRUE(test, fix(f, i, KVT_FIX_NO_LIMIT));
	KUNIT_EXPECT_EQ(test, atomic_read(&f->total), 6);
	for (n = 0; n < 3; n++) {
		KUNIT_EXPECT_EQ(test, atomic_read(&f->total), 6);
		for (i = 0; i < ARRAY_SIZE(f->reg); i++)
			kvt_fix_put(&f->reg[i], &f->total);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&f->total), 0);
}

static void fix_up_to_the_limit(struct kunit *test)
{
	struct fixture *f = setup(test);

	KUNIT_EXPECT_FALSE(test, fix(f, 0, 0));
	KUNIT_EXPECT_TRUE(test, fix(f, 0, 3));
	KUNIT_EXPECT_TRUE(test, fix(f, 1, 3));
	KUNIT_EXPECT_FALSE(test, fix(f, 2, 5));
	KUNIT_EXPECT_EQ(test, atomic_read(&f->total), 3);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->reg[2].fixed), 0);
	/* In what is paid for there is room, whatever the limit is now. */
	KUNIT_EXPECT_TRUE(test, fix(f, 0, 0));
	KUNIT_EXPECT_EQ(test, atomic_read(&f->total), 3);
	KUNIT_EXPECT_TRUE(test, fix(f, 2, KVT_FIX_NO_LIMIT));
	KUNIT_EXPECT_EQ(test, atomic_read(&f->total), 6);
}

/* Somebody else has fixed the region between the look and the payment. */
static void fix_paid_for_by_another(struct kunit *test)
{
	struct fixture *f = setup(test);

	KUNIT_ASSERT_TRUE(test, fix(f, 1, KVT_FIX_NO_LIMIT));
	KUNIT_EXPECT_TRUE(test, kvt_fix_first(&f->reg[1], &f->total, KVT_FIX_NO_LIMIT));
	KUNIT_EXPECT_EQ(test, atomic_read(&f->total), 2);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->reg[1].fixed), 2);
	KUNIT_EXPECT_TRUE(test, kvt_fix_first(&f->reg[1], &f->total, 2));
	KUNIT_EXPECT_EQ(test, atomic_read(&f->total), 2);
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
	KUNIT_EXPECT_FALSE(test, kvt_lease_put_fixed(&f->hot, &f->reg[0], &f->total));
	KUNIT_EXPECT_EQ(test, atomic_read(&f->total), 1);
	atomic_set(&f->hot.ctl, (int)(((u32)atomic_read(&f->hot.ctl) & ~KVT_CTL_STATE) | KVT_DEAD));
	KUNIT_EXPECT_TRUE(test, kvt_lease_put_fixed(&f->hot, &f->reg[0], &f->total));
	KUNIT_EXPECT_EQ(test, atomic_read(&f->total), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->reg[0].fixed), 0);
	KUNIT_EXPECT_EQ(test, kvt_ctl_leases((u32)atomic_read(&f->hot.ctl)), 0u);
}

static struct kunit_case fix_cases[] = {
	KUNIT_CASE(fix_each_region_once),
	KUNIT_CASE(fix_up_to_the_limit),
	KUNIT_CASE(fix_paid_for_by_another),
	KUNIT_CASE(fix_ends_with_the_last_lease),
	{ }
};

static struct kunit_suite fix_suite = {
	.name = "kvt_fix",
	.test_cases = fix_cases,
};

kunit_test_suite(fix_suite);
