// SPDX-License-Identifier: GPL-2.0
/*
 * Shares of tiers: limits, watermarks below them, minima.
 */
#include "kvt_kunit.h"
#include "../core/kvt_share.h"

#define KIB	1024ull
#define MIB	(1024 * KIB)
#define PIECE	(2u << 20)

static void share_has_no_limit_at_first(struct kunit *test)
{
	struct kvt_share s;

	kvt_share_init(&s);
	s.used = 1ull << 62;
	s.coming = 1ull << 62;
	KUNIT_EXPECT_TRUE(test, kvt_share_fits(&s, U64_MAX));
	KUNIT_EXPECT_EQ(test, kvt_share_room(&s), KVT_SHARE_ALL);
	KUNIT_EXPECT_EQ(test, kvt_share_excess(&s, 1), 0ull);
	KUNIT_EXPECT_EQ(test, kvt_share_to_go(&s, 2, 1), 0ull);
	KUNIT_EXPECT_EQ(test, kvt_share_pieces(&s, 1, 7, PIECE), 7u);
}

static void share_ends_at_its_limit(struct kunit *test)
{
	struct kvt_share s;

	kvt_share_init(&s);
	s.limit = 10 * MIB;
	s.used = 6 * MIB;
	s.coming = 3 * MIB;
	KUNIT_EXPECT_EQ(test, kvt_share_room(&s), MIB);
	KUNIT_EXPECT_TRUE(test, kvt_share_fits(&s, MIB));
	KUNIT_EXPECT_FALSE(test, kvt_share_fits(&s, MIB + 1));
	KUNIT_EXPECT_FALSE(test, kvt_share_fits(&s, U64_MAX));
	/* Lowered below what is there. */
	s.limit = 5 * MIB;
	KUNIT_EXPECT_EQ(test, kvt_share_room(&s), 0ull);
	KUNIT_EXPECT_FALSE(test, kvt_share_fits(&s, 1));
	s.limit = 0;
	KUNIT_EXPECT_FALSE(test, kvt_share_fits(&s, 1));
}

static void share_knows_its_excess(struct kunit *test)
{
	struct kvt_share s;

	kvt_share_init(&s);
	s.limit = 1000;
	s.used = 930;
	KUNIT_EXPECT_EQ(test, kvt_share_excess(&s, 92), 10ull);
	KUNIT_EXPECT_EQ(test, kvt_share_excess(&s, 93), 0ull);
	KUNIT_EXPECT_EQ(test, kvt_share_excess(&s, 100), 0ull);
	s.limit = 0;
	KUNIT_EXPECT_EQ(test, kvt_share_excess(&s, 100), 930ull);
	s.limit = 99;
	KUNIT_EXPECT_EQ(test, kvt_share_excess(&s, 50), 930ull - 49);
	/* The largest limit there is: its part is not worked out modulo 2^64. */
	s.limit = KVT_SHARE_ALL - 1;
	s.used = s.limit;
	KUNIT_EXPECT_EQ(test, kvt_share_excess(&s, 100), 0ull);
	KUNIT_EXPECT_EQ(test, kvt_share_excess(&s, 50) >> 62, 1ull);
}

static void share_goes_down_between_watermarks(struct kunit *test)
{
	struct kvt_share s;

	kvt_share_init(&s);
	s.limit = 1000;
	s.used = 920;
	KUNIT_EXPECT_EQ(test, kvt_share_to_go(&s, 92, 85), 0ull);
	s.used = 921;
	KUNIT_EXPECT_EQ(test, kvt_share_to_go(&s, 92, 85), 71ull);
	/* Once begun it ends at the low one. */
	s.used = 860;
	KUNIT_EXPECT_EQ(test, kvt_share_to_go(&s, 92, 85), 10ull);
	s.used = 850;
	KUNIT_EXPECT_EQ(test, kvt_share_to_go(&s, 92, 85), 0ull);
	s.used = 860;
	KUNIT_EXPECT_EQ(test, kvt_share_to_go(&s, 92, 85), 0ull);
	s.used = 921;
	KUNIT_EXPECT_NE(test, kvt_share_to_go(&s, 92, 85), 0ull);
	kvt_share_give_up(&s);
	s.used = 860;
	KUNIT_EXPECT_EQ(test, kvt_share_to_go(&s, 92, 85), 0ull);
}

/* A slot may be larger than what is between the high watermark and the limit. */
static void share_makes_room_for_what_did_not_fit(struct kunit *test)
{
	struct kvt_share s;

	kvt_share_init(&s);
	s.limit = 450;
	s.used = 400;
	KUNIT_EXPECT_EQ(test, kvt_share_to_go(&s, 92, 85), 0ull);
	kvt_share_want(&s, 100);
	KUNIT_EXPECT_EQ(test, kvt_share_to_go(&s, 92, 85), 50ull);
	/* It is not forgotten before it fits, and is forgotten then. */
	KUNIT_EXPECT_EQ(test, kvt_share_to_go(&s, 92, 85), 50ull);
	s.used = 300;
	KUNIT_EXPECT_EQ(test, kvt_share_to_go(&s, 92, 85), 0ull);
	s.used = 400;
	KUNIT_EXPECT_EQ(test, kvt_share_to_go(&s, 92, 85), 0ull);
	/* What can never fit pushes nothing out. */
	kvt_share_want(&s, 451);
	KUNIT_EXPECT_EQ(test, kvt_share_to_go(&s, 92, 85), 0ull);
	/* Nor is more to go than there is, with most of it on its way. */
	s.used = 10;
	s.coming = 430;
	kvt_share_want(&s, 450);
	KUNIT_EXPECT_EQ(test, kvt_share_to_go(&s, 92, 85), 10ull);
	kvt_share_give_up(&s);
	KUNIT_EXPECT_EQ(test, kvt_share_to_go(&s, 92, 85), 0ull);
}

static void share_bounds_regions(struct kunit *test)
{
	struct kvt_share s;

	kvt_share_init(&s);
	s.limit = 3 * (u64)PIECE + 1;
	KUNIT_EXPECT_EQ(test, kvt_share_pieces(&s, 1, 16, PIECE), 4u);
	KUNIT_EXPECT_EQ(test, kvt_share_pieces(&s, 1, 2, PIECE), 2u);
	KUNIT_EXPECT_EQ(test, kvt_share_pieces(&s, 8, 16, PIECE), 8u);
	s.used = s.limit;
	KUNIT_EXPECT_EQ(test, kvt_share_pieces(&s, 1, 16, PIECE), 1u);
	s.limit = KVT_SHARE_ALL - 1;
	KUNIT_EXPECT_EQ(test, kvt_share_pieces(&s, 1, 128, PIECE), 128u);
}

static void share_promises_what_there_is(struct kunit *test)
{
	struct kvt_share s;

	kvt_share_init(&s);
	KUNIT_EXPECT_EQ(test, kvt_share_promise(100), 75ull);
	KUNIT_EXPECT_TRUE(test, kvt_share_may_promise(&s, 75, 0, 100));
	KUNIT_EXPECT_FALSE(test, kvt_share_may_promise(&s, 76, 0, 100));
	KUNIT_EXPECT_FALSE(test, kvt_share_may_promise(&s, U64_MAX, 0, 100));
	KUNIT_EXPECT_FALSE(test, kvt_share_may_promise(&s, 26, 50, 100));
	KUNIT_EXPECT_TRUE(test, kvt_share_may_promise(&s, 25, 50, 100));
	/* Its own comes in place of what it was. */
	s.min = 50;
	KUNIT_EXPECT_TRUE(test, kvt_share_may_promise(&s, 75, 50, 100));
	KUNIT_EXPECT_FALSE(test, kvt_share_may_promise(&s, U64_MAX, 50, 100));
	/* Never refused: less, also if there is too much of it already. */
	KUNIT_EXPECT_TRUE(test, kvt_share_may_promise(&s, 0, 200, 100));
	KUNIT_EXPECT_TRUE(test, kvt_share_may_promise(&s, 50, 200, 100));
	KUNIT_EXPECT_FALSE(test, kvt_share_may_promise(&s, 51, 200, 100));
}

static void share_is_guarded_up_to_its_minimum(struct kunit *test)
{
	struct kvt_claim c = { .has = 1000, .tier_min = 30, .capacity = 100 };
	struct kvt_share s;

	kvt_share_init(&s);
	s.used = 30;
	KUNIT_EXPECT_FALSE(test, kvt_share_guarded(&s, &c));
	s.min = 30;
	KUNIT_EXPECT_TRUE(test, kvt_share_guarded(&s, &c));
	s.used = 31;
	KUNIT_EXPECT_FALSE(test, kvt_share_guarded(&s, &c));
	/* With more promised than there is, nobody's counts. */
	s.used = 10;
	c.tier_min = 76;
	KUNIT_EXPECT_FALSE(test, kvt_share_guarded(&s, &c));
}

static void share_is_part_of_what_the_pool_guarantees(struct kunit *test)
{
	struct kvt_claim c = { .has = 20, .min = 20, .all_min = 40, .capacity = 100 };
	struct kvt_share s;

	kvt_share_init(&s);
	s.used = 10;
	KUNIT_EXPECT_TRUE(test, kvt_share_guarded(&s, &c));
	c.has = 21;
	KUNIT_EXPECT_FALSE(test, kvt_share_guarded(&s, &c));
	c.has = 20;
	c.tier_min = 36;
	KUNIT_EXPECT_FALSE(test, kvt_share_guarded(&s, &c));
	c.tier_min = 35;
	KUNIT_EXPECT_TRUE(test, kvt_share_guarded(&s, &c));
	/* Small blocks in large units. */
	s.used = 21;
	KUNIT_EXPECT_FALSE(test, kvt_share_guarded(&s, &c));
	s.used = 0;
	c.has = 0;
	c.min = 0;
	KUNIT_EXPECT_FALSE(test, kvt_share_guarded(&s, &c));
}

static struct kunit_case kvt_share_cases[] = {
	KUNIT_CASE(share_has_no_limit_at_first),
	KUNIT_CASE(share_ends_at_its_limit),
	KUNIT_CASE(share_knows_its_excess),
	KUNIT_CASE(share_goes_down_between_watermarks),
	KUNIT_CASE(share_makes_room_for_what_did_not_fit),
	KUNIT_CASE(share_bounds_regions),
	KUNIT_CASE(share_promises_what_there_is),
	KUNIT_CASE(share_is_guarded_up_to_its_minimum),
	KUNIT_CASE(share_is_part_of_what_the_pool_guarantees),
	{ }
};

static struct kunit_suite kvt_share_suite = {
	.name = "kvt_share",
	.test_cases = kvt_share_cases,
};
kunit_test_suite(kvt_share_suite);
