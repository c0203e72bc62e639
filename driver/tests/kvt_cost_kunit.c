// SPDX-License-Identifier: GPL-2.0
/*
 * Cost of reads: what it tends to, what it is not put off by, and what is told.
 */
#include "kvt_kunit.h"
#include "../core/kvt_cost.h"

#define MIB	(1ull << 20)

static void sample_many(struct kvt_cost *c, u64 ns_per_mib, u32 nr)
{
	u64 at = 1000;

	for (; nr--; at += ns_per_mib)
		kvt_cost_sample(c, MIB, at, at + ns_per_mib);
}

/* A device becomes slow, and fast again: known after some reads, to a few percent. */
static void cost_follows_the_device(struct kunit *test)
{
	struct kvt_cost c;

	kvt_cost_init(&c);
	KUNIT_EXPECT_EQ(test, kvt_cost_ns(&c, MIB), (u64)KVT_COST_START_NS);
	sample_many(&c, 200000, 40);
	KUNIT_EXPECT_LT(test, kvt_cost_ns(&c, MIB), 220000ull);
	KUNIT_EXPECT_LT(test, 190000ull, kvt_cost_ns(&c, MIB));
	sample_many(&c, 20000000, 60);
	KUNIT_EXPECT_LT(test, 18000000ull, kvt_cost_ns(&c, MIB));
	KUNIT_EXPECT_LT(test, kvt_cost_ns(&c, MIB), 20100000ull);
	sample_many(&c, 200000, 60);
	KUNIT_EXPECT_LT(test, kvt_cost_ns(&c, MIB), 240000ull);
	sample_many(&c, 0, 400);
	KUNIT_EXPECT_EQ(test, c.ns_per_mib, 1ull);
	sample_many(&c, 5000, 200);
	KUNIT_EXPECT_LT(test, 4900ull, kvt_cost_ns(&c, MIB));
}

/* One read that took an hour, a clock that went back, nothing read. */
static void cost_bears_nonsense(struct kunit *test)
{
	struct kvt_cost c;
	u64 was;

	kvt_cost_init(&c);
	kvt_cost_sample(&c, MIB, 0, 3600ull * 1000 * 1000 * 1000);
	KUNIT_EXPECT_LE(test, kvt_cost_ns(&c, MIB), 2ull * KVT_COST_START_NS);
	was = c.ns_per_mib;
	kvt_cost_sample(&c, MIB, 5000, 4000);
	kvt_cost_sample(&c, MIB, ~0ull, 0);
	kvt_cost_sample(&c, 0, 4000, 5000);
	KUNIT_EXPECT_EQ(test, c.ns_per_mib, was);
}

/* The largest numbers there are. */
static void cost_does_not_overflow(struct kunit *test)
{
	struct kvt_cost c;
	u32 i;

	kvt_cost_init(&c);
	for (i = 0; i < 2000; i++)
		kvt_cost_sample(&c, 1, 0, ~0ull);
	/* Times 2^20, this is nothing. */
	for (i = 0; i < 100; i++)
		kvt_cost_sample(&c, 1, 0, 1ull << 44);
	KUNIT_EXPECT_LE(test, c.ns_per_mib, 1ull << 43);
	KUNIT_EXPECT_LT(test, 1ull << 42, c.ns_per_mib);
	KUNIT_EXPECT_LE(test, kvt_cost_ns(&c, MIB), kvt_cost_ns(&c, ~0ull));
	KUNIT_EXPECT_LE(test, kvt_cost_ns(&c, ~0ull), (1ull << 63) + (1ull << 44));
	kvt_cost_sample(&c, ~0ull, 0, 1);
	KUNIT_EXPECT_LT(test, 0ull, c.ns_per_mib);
}

/* Never less than it is, never half as much again, two steps for a factor of two. */
static void cost_is_rounded(struct kunit *test)
{
	u64 ns, told, last = 0;
	u32 steps = 0;

	KUNIT_EXPECT_EQ(test, kvt_cost_round(0), 0ull);
	KUNIT_EXPECT_EQ(test, kvt_cost_round(1), 1ull);
	KUNIT_EXPECT_EQ(test, kvt_cost_round(~0ull), 1ull << 62);
	for (ns = 1; ns < 1 << 16; ns++) {
		told = kvt_cost_round(ns);
		KUNIT_ASSERT_TRUE(test, told >= ns && (ns < 2 || told * 2 <= ns * 3));
		KUNIT_ASSERT_TRUE(test, told >= last);
		steps += told != last;
		last = told;
	}
	KUNIT_EXPECT_LE(test, steps, 2 * 16u);
}

static struct kunit_case kvt_cost_cases[] = {
	KUNIT_CASE(cost_follows_the_device),
	KUNIT_CASE(cost_bears_nonsense),
	KUNIT_CASE(cost_does_not_overflow),
	KUNIT_CASE(cost_is_rounded),
	{ }
};

static struct kunit_suite kvt_cost_suite = {
	.name = "kvt_cost",
	.test_cases = kvt_cost_cases,
};
kunit_test_suite(kvt_cost_suite);
