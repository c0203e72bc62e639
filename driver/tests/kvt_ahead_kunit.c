// SPDX-License-Identifier: GPL-2.0
/*
 * Looking ahead: what is believed of whom, what can be there in time, and nonsense.
 */
#include "kvt_kunit.h"
#include "../core/kvt_ahead.h"

/* Bring up as many as may be, of which @right in eight are read at once. How many. */
static u32 guess(struct kvt_trust *t, u32 now_ms, u32 right)
{
	static u32 count;
	u32 nr = kvt_trust_credit(t, now_ms), i;

	kvt_trust_spend(t, nr);
	for (i = 0; i < nr; i++) {
		if (count++ % 8 < right)
			kvt_trust_earn(t);
	}
	return nr;
}

/* How many in the @nr th period from now, with a call in each eighth of it. *@all: added. */
static u32 periods(struct kvt_trust *t, u32 *now_ms, u32 right, u32 nr, u32 *all)
{
	u32 sum, i;

	do {
		sum = 0;
		for (i = 0; i < 8; i++, *now_ms += KVT_TRUST_PERIOD_MS / 8)
			sum += guess(t, *now_ms, right);
		*all += sum;
	} while (--nr);
	return sum;
}

static u32 period(struct kvt_trust *t, u32 *now_ms, u32 right, u32 nr)
{
	u32 all = 0;

	return periods(t, now_ms, right, nr, &all);
}

/* What is of no use is down to a trickle soon, and what is of use again comes back. */
static void trust_throttles_and_recovers(struct kunit *test)
{
	struct kvt_trust t;
	u32 now_ms = 12345;

	kvt_trust_init(&t, now_ms);
	KUNIT_EXPECT_EQ(test, period(&t, &now_ms, 0, 1), KVT_TRUST_GRANT);
	KUNIT_EXPECT_EQ(test, period(&t, &now_ms, 0, 1), KVT_TRUST_GRANT / 2);
	KUNIT_EXPECT_EQ(test, period(&t, &now_ms, 0, 6), 1u);
	KUNIT_EXPECT_EQ(test, period(&t, &now_ms, 0, 1000), 1u);
	/* One block, read, then two, four, ... */
	KUNIT_EXPECT_EQ(test, period(&t, &now_ms, 8, 1), 255u);
	KUNIT_EXPECT_LT(test, 1000u, period(&t, &now_ms, 8, 1));
	/* And what has been saved up is gone after one period of nonsense. */
	period(&t, &now_ms, 0, 1);
	KUNIT_EXPECT_LE(test, period(&t, &now_ms, 0, 1), KVT_TRUST_GRANT);
}

/* Right half of the time goes on; less than a quarter ends. */
static void trust_by_share(struct kunit *test)
{
	struct kvt_trust half, eighth;
	u32 now_ms = 0, all = 0;

	kvt_trust_init(&half, now_ms);
	KUNIT_EXPECT_LE(test, 8 * KVT_TRUST_GRANT, period(&half, &now_ms, 4, 50));
	now_ms = 0;
	kvt_trust_init(&eighth, now_ms);
	periods(&eighth, &now_ms, 1, 64, &all);
	KUNIT_EXPECT_LE(test, all, 64 * 12u);
}

/* Who does nothing has what everybody begins with, no more. */
static void trust_is_not_saved_up(struct kunit *test)
{
	struct kvt_trust t;
	u32 now_ms = 0, i;

	kvt_trust_init(&t, now_ms);
	for (i = 0; i < 10000; i++)
		kvt_trust_earn(&t);
	KUNIT_EXPECT_EQ(test, kvt_trust_credit(&t, now_ms), KVT_TRUST_MAX);
	KUNIT_EXPECT_EQ(test, kvt_trust_credit(&t, KVT_TRUST_PERIOD_MS), KVT_TRUST_MAX / 2);
	KUNIT_EXPECT_EQ(test, kvt_trust_credit(&t, 0x7fffffff), KVT_TRUST_GRANT);
	/* Blocks that were not brought up after all. */
	kvt_trust_spend(&t, KVT_TRUST_GRANT);
	KUNIT_EXPECT_EQ(test, kvt_trust_credit(&t, 0x7fffffff), 0u);
	kvt_trust_refund(&t, 5);
	KUNIT_EXPECT_EQ(test, kvt_trust_credit(&t, 0x7fffffff), 5u);
	kvt_trust_refund(&t, U32_MAX);
	KUNIT_EXPECT_EQ(test, t.credit, KVT_TRUST_MAX);
	KUNIT_EXPECT_EQ(test, t.spent, 0u);
}

/* A clock that goes back, or round, counters at their ends. */
static void trust_bears_nonsense(struct kunit *test)
{
	struct kvt_trust t;
	u32 now_ms = U32_MAX - 5;

	kvt_trust_init(&t, now_ms);
	kvt_trust_spend(&t, 30);
	KUNIT_EXPECT_EQ(test, kvt_trust_credit(&t, now_ms - 100000), 2u);
	KUNIT_EXPECT_EQ(test, kvt_trust_credit(&t, now_ms), KVT_TRUST_GRANT / 2);
	/* Past the wrap. */
	KUNIT_EXPECT_EQ(test, kvt_trust_credit(&t, now_ms + KVT_TRUST_PERIOD_MS),
			KVT_TRUST_GRANT / 2);
	kvt_trust_spend(&t, U32_MAX);
	kvt_trust_spend(&t, U32_MAX);
	KUNIT_EXPECT_EQ(test, t.credit, 0u);
	KUNIT_EXPECT_EQ(test, t.spent, U32_MAX);
	t.earned = U32_MAX;
	kvt_trust_earn(&t);
	KUNIT_EXPECT_EQ(test, t.earned, U32_MAX);
	kvt_trust_credit(&t, now_ms + 2 * KVT_TRUST_PERIOD_MS);
	KUNIT_EXPECT_EQ(test, t.doubt, 0u);
}

static void pace_is_the_clients(struct kunit *test)
{
	struct kvt_pace p;
	u64 at = 1000;
	u32 i;

	kvt_pace_init(&p);
	kvt_pace_begin(&p, at);
	KUNIT_EXPECT_EQ(test, p.pause_ns[KVT_PACE_LOOKUP], KVT_PACE_START_NS);
	/* A GET follows on a LOOKUP at once, the next LOOKUP takes its time. */
	for (i = 0; i < 100; i++) {
		kvt_pace_begin(&p, at += KVT_PACE_MAX_NS * 50);
		kvt_pace_end(&p, KVT_PACE_LOOKUP, at += 10);
		kvt_pace_begin(&p, at += 4000);
		kvt_pace_end(&p, KVT_PACE_GET, at += 1000000000);
	}
	KUNIT_EXPECT_LE(test, 3990ull, p.pause_ns[KVT_PACE_LOOKUP]);
	KUNIT_EXPECT_LE(test, p.pause_ns[KVT_PACE_LOOKUP], 4010ull);
	KUNIT_EXPECT_LE(test, p.pause_ns[KVT_PACE_GET], KVT_PACE_MAX_NS);
	KUNIT_EXPECT_LE(test, KVT_PACE_MAX_NS - 10, p.pause_ns[KVT_PACE_GET]);
	kvt_pace_begin(&p, 1);
	KUNIT_EXPECT_LE(test, KVT_PACE_MAX_NS - 10, p.pause_ns[KVT_PACE_GET]);
}

/* Of a large number of blocks, so many with nothing but time in the way. */
static u32 in_time_at(u64 due_ns, u64 queue_ns, u64 block_ns, u32 each, u64 pace_ns)
{
	struct kvt_ahead_ask q = {
		.wanted = 1000000, .credit = 1000000, .block_bytes = 4096, .room_bytes = ~0ull,
		.max_bytes = ~0ull, .block_ns = block_ns, .queue_ns = queue_ns,
		.due_ns = due_ns, .pace_ns = pace_ns, .each = each,
	};

	return kvt_ahead_blocks(&q);
}

static u32 in_time(u64 due_ns, u64 queue_ns, u64 block_ns, u32 each)
{
	return in_time_at(due_ns, queue_ns, block_ns, each, due_ns);
}

static void blocks_in_time(struct kunit *test)
{
	/* All are asked for at once. */
	KUNIT_EXPECT_EQ(test, in_time(1000, 0, 10, 0), 100u);
	KUNIT_EXPECT_EQ(test, in_time(1000, 900, 10, 0), 10u);
	KUNIT_EXPECT_EQ(test, in_time(1000, 1000, 10, 0), 0u);
	KUNIT_EXPECT_EQ(test, in_time(1000, 0, 1001, 0), 0u);
	KUNIT_EXPECT_EQ(test, in_time(0, 0, 1, 0), 0u);
	KUNIT_EXPECT_EQ(test, in_time(1000, 0, 0, 0), 1000000u);
	/* Call by call: a tier that is as fast as the client is never late. */
	KUNIT_EXPECT_EQ(test, in_time(1000, 0, 10, 100), 1000000u);
	KUNIT_EXPECT_EQ(test, in_time(1000, 0, 10, 50), 1000000u);
	/* One that is not is ahead for a while only. */
	KUNIT_EXPECT_EQ(test, in_time(1000, 0, 25, 50), 40u);
	KUNIT_EXPECT_EQ(test, in_time_at(1000, 0, 25, 20, 400), 200u);
	KUNIT_EXPECT_EQ(test, in_time_at(1000, 500, 25, 20, 400), 100u);
	KUNIT_EXPECT_EQ(test, in_time_at(1000, 600, 25, 20, 400), 16u);
}

/* No block comes later than it is asked for, spread over its call, and no more would do. */
static void blocks_in_time_by_trying(struct kunit *test)
{
	u64 seed = 7, due, queue, block, pace, left, nr, more;
	u32 i, each;

	for (i = 0; i < 2000; i++) {
		due = kvt_test_random(&seed) % 3000;
		queue = kvt_test_random(&seed) % 1000;
		block = 1 + kvt_test_random(&seed) % 200;
		each = 1 + kvt_test_random(&seed) % 30;
		pace = kvt_test_random(&seed) % 3000;
		nr = in_time_at(due, queue, block, each, pace);
		left = due - min(due, queue);
		more = nr < each ? 0 : pace / each;
		KUNIT_ASSERT_TRUE(test, nr * block <= left + nr * more);
		KUNIT_ASSERT_TRUE(test, nr == 1000000 || nr + 1 == each ||
				  (nr + 1) * block > left + (nr + 1) * more);
	}
}

/* The least of all counts, and the largest numbers are no trouble. */
static void blocks_by_all_limits(struct kunit *test)
{
	struct kvt_ahead_ask q = {
		.wanted = 50, .credit = 40, .block_bytes = 10, .room_bytes = 300,
		.max_bytes = 209, .block_ns = 1, .due_ns = 10,
	};

	KUNIT_EXPECT_EQ(test, kvt_ahead_blocks(&q), 10u);
	q.due_ns = ~0ull;
	KUNIT_EXPECT_EQ(test, kvt_ahead_blocks(&q), 20u);
	q.max_bytes = ~0ull;
	KUNIT_EXPECT_EQ(test, kvt_ahead_blocks(&q), 30u);
	q.room_bytes = ~0ull;
	KUNIT_EXPECT_EQ(test, kvt_ahead_blocks(&q), 40u);
	q.credit = U32_MAX;
	KUNIT_EXPECT_EQ(test, kvt_ahead_blocks(&q), 50u);
	q.wanted = U32_MAX;
	q.each = U32_MAX;
	q.pace_ns = ~0ull;
	KUNIT_EXPECT_EQ(test, kvt_ahead_blocks(&q), U32_MAX);
	q.max_bytes = 0;
	KUNIT_EXPECT_EQ(test, kvt_ahead_blocks(&q), 0u);
}

static struct kunit_case kvt_ahead_cases[] = {
	KUNIT_CASE(trust_throttles_and_recovers),
	KUNIT_CASE(trust_by_share),
	KUNIT_CASE(trust_is_not_saved_up),
	KUNIT_CASE(trust_bears_nonsense),
	KUNIT_CASE(pace_is_the_clients),
	KUNIT_CASE(blocks_in_time),
	KUNIT_CASE(blocks_in_time_by_trying),
	KUNIT_CASE(blocks_by_all_limits),
	{ }
};

static struct kunit_suite kvt_ahead_suite = {
	.name = "kvt_ahead",
	.test_cases = kvt_ahead_cases,
};
kunit_test_suite(kvt_ahead_suite);
