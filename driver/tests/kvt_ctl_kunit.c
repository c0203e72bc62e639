// SPDX-License-Identifier: GPL-2.0
/*
 * The control word: which transitions and leases it lets through.
 *
 * Every combination of state and flags is tried, so a condition that forgets a
 * bit shows.
 */
#include "kvt_kunit.h"

#define FLAG_FIRST	4
#define FLAG_COMBOS	64u	/* MEM LOG MOVING PINNED ARENA HELD */

static u32 ctl_of(u32 state, u32 combo, u32 leases)
{
	return state | (combo << FLAG_FIRST) | (leases << KVT_CTL_LEASE_SHIFT);
}

/* The parts of the word do not overlap and leave no gap. */
static void ctl_layout(struct kunit *test)
{
	u32 flags = KVT_CTL_MEM | KVT_CTL_LOG | KVT_CTL_MOVING | KVT_CTL_PINNED |
		    KVT_CTL_ARENA | KVT_CTL_HELD;

	KUNIT_EXPECT_EQ(test, flags, (FLAG_COMBOS - 1) << FLAG_FIRST);
	KUNIT_EXPECT_EQ(test, flags & KVT_CTL_STATE, 0u);
	KUNIT_EXPECT_EQ(test, flags | KVT_CTL_STATE, KVT_CTL_LEASE_ONE - 1);
	KUNIT_EXPECT_EQ(test, kvt_ctl_leases(ctl_of(KVT_READY, FLAG_COMBOS - 1, KVT_LEASES_MAX)),
			KVT_LEASES_MAX);
	KUNIT_EXPECT_EQ(test, (u32)kvt_ctl_state(ctl_of(KVT_LIMBO, FLAG_COMBOS - 1, KVT_LEASES_MAX)),
			(u32)KVT_LIMBO);
}

/* A lease is to be had exactly in READY with MEM; a refusal changes nothing. */
static void lease_only_ready_in_memory(struct kunit *test)
{
	u32 state, combo, ctl;
	struct kvt_hot h = { 0 };
	bool want;

	for (state = KVT_FREE; state <= KVT_LIMBO; state++) {
		for (combo = 0; combo < FLAG_COMBOS; combo++) {
			ctl = ctl_of(state, combo, 3);
			want = state == KVT_READY && (ctl & KVT_CTL_MEM);
			atomic_set(&h.ctl, (int)ctl);
			KUNIT_EXPECT_EQ(test, kvt_lease_try(&h), want);
			KUNIT_EXPECT_EQ(test, kvt_ctl(&h),
					want ? ctl + KVT_CTL_LEASE_ONE : ctl);
		}
	}
}

/* The counter stops at its maximum and never spills into another field. */
static void lease_count_saturates(struct kunit *test)
{
	u32 ctl = ctl_of(KVT_READY, FLAG_COMBOS - 1, KVT_LEASES_MAX - 1);
	struct kvt_hot h = { 0 };

	atomic_set(&h.ctl, (int)ctl);
	KUNIT_EXPECT_TRUE(test, kvt_lease_try(&h));
	KUNIT_EXPECT_EQ(test, kvt_ctl_leases(kvt_ctl(&h)), KVT_LEASES_MAX);
	KUNIT_EXPECT_FALSE(test, kvt_lease_try(&h));
	KUNIT_EXPECT_FALSE(test, kvt_lease_try(&h));
	KUNIT_EXPECT_EQ(test, kvt_ctl(&h), ctl + KVT_CTL_LEASE_ONE);
	KUNIT_EXPECT_FALSE(test, kvt_lease_put(&h));
	KUNIT_EXPECT_EQ(test, kvt_ctl(&h), ctl);
	KUNIT_EXPECT_TRUE(test, kvt_lease_try(&h));
}

/* The reaper is called for exactly once: by the last lease of a DEAD block. */
static void lease_last_of_dead_reaps(struct kunit *test)
{
	struct kvt_hot h = { 0 };
	u32 combo;

	for (combo = 0; combo < FLAG_COMBOS; combo++) {
		atomic_set(&h.ctl, (int)ctl_of(KVT_DEAD, combo, 3));
		KUNIT_EXPECT_FALSE(test, kvt_lease_put(&h));
		KUNIT_EXPECT_FALSE(test, kvt_lease_put(&h));
		KUNIT_EXPECT_TRUE(test, kvt_lease_put(&h));
		KUNIT_EXPECT_EQ(test, kvt_ctl(&h), ctl_of(KVT_DEAD, combo, 0));
		atomic_set(&h.ctl, (int)ctl_of(KVT_READY, combo, 1));
		KUNIT_EXPECT_FALSE(test, kvt_lease_put(&h));
		KUNIT_EXPECT_EQ(test, kvt_ctl(&h), ctl_of(KVT_READY, combo, 0));
	}
}

/* A block can be claimed exactly if READY, unleased, unmoved, and no arena's. */
static void move_claims_only_idle(struct kunit *test)
{
	u32 state, combo, leases, ctl;
	struct kvt_hot h = { 0 };
	bool want;

	for (state = KVT_FREE; state <= KVT_LIMBO; state++) {
		for (combo = 0; combo < FLAG_COMBOS; combo++) {
			for (leases = 0; leases < 2; leases++) {
				ctl = ctl_of(state, combo, leases);
				want = state == KVT_READY && !leases &&
				       !(ctl & (KVT_CTL_MOVING | KVT_CTL_ARENA));
				atomic_set(&h.ctl, (int)ctl);
				KUNIT_EXPECT_EQ(test, kvt_move_try(&h), want);
				KUNIT_EXPECT_EQ(test, kvt_ctl(&h),
						want ? ctl | KVT_CTL_MOVING : ctl);
			}
		}
	}
}

/* A move does not keep readers away, but a reader keeps it from publishing. */
static void move_void_under_lease(struct kunit *test)
{
	u32 leases = ~0u << KVT_CTL_LEASE_SHIFT;
	struct kvt_hot h = { 0 };

	atomic_set(&h.ctl, KVT_READY | KVT_CTL_MEM);
	KUNIT_ASSERT_TRUE(test, kvt_move_try(&h));
	KUNIT_EXPECT_FALSE(test, kvt_move_try(&h));
	KUNIT_EXPECT_TRUE(test, kvt_lease_try(&h));
	KUNIT_EXPECT_FALSE(test, kvt_ctl_update(&h, KVT_CTL_STATE | leases, KVT_READY,
						KVT_CTL_MEM, KVT_CTL_LOG));
	KUNIT_EXPECT_EQ(test, kvt_ctl(&h),
			KVT_READY | KVT_CTL_MEM | KVT_CTL_MOVING | KVT_CTL_LEASE_ONE);
	KUNIT_EXPECT_FALSE(test, kvt_lease_put(&h));
	KUNIT_EXPECT_TRUE(test, kvt_ctl_update(&h, KVT_CTL_STATE | leases, KVT_READY,
					       KVT_CTL_MEM | KVT_CTL_MOVING, KVT_CTL_LOG));
	KUNIT_EXPECT_EQ(test, kvt_ctl(&h), KVT_READY | KVT_CTL_LOG);
	KUNIT_EXPECT_FALSE(test, kvt_lease_try(&h));
}

/* kvt_ctl_update() does all or nothing, for any words. */
static void update_all_or_nothing(struct kunit *test)
{
	struct kvt_hot h = { 0 };
	u32 i, ctl, mask, need, clear, set;
	u64 rnd = 11;
	bool want;

	for (i = 0; i < 5000; i++) {
		ctl = kvt_test_random(&rnd);
		mask = kvt_test_random(&rnd) & kvt_test_random(&rnd);
		need = ctl & mask;
		if (kvt_test_random(&rnd) % 2)
			need ^= 1u << (kvt_test_random(&rnd) % 32);
		clear = kvt_test_random(&rnd);
		set = kvt_test_random(&rnd);
		want = (ctl & mask) == need;
		atomic_set(&h.ctl, (int)ctl);
		KUNIT_ASSERT_EQ(test, kvt_ctl_update(&h, mask, need, clear, set), want);
		KUNIT_ASSERT_EQ(test, kvt_ctl(&h), want ? (ctl & ~clear) | set : ctl);
	}
}

static struct kunit_case ctl_cases[] = {
	KUNIT_CASE(ctl_layout),
	KUNIT_CASE(lease_only_ready_in_memory),
	KUNIT_CASE(lease_count_saturates),
	KUNIT_CASE(lease_last_of_dead_reaps),
	KUNIT_CASE(move_claims_only_idle),
	KUNIT_CASE(move_void_under_lease),
	KUNIT_CASE(update_all_or_nothing),
	{ }
};

static struct kunit_suite ctl_suite = {
	.name = "kvt_ctl",
	.test_cases = ctl_cases,
};

kunit_test_suite(ctl_suite);
