// SPDX-License-Identifier: GPL-2.0
/*
 * Two writers: what a block leaves behind on the member that it was carried from, when the
 * one that it was carried to makes it durable.
 */
#include "kvt_wlog_kunit.h"

#define NR_KILLS	8u	/* as many as the ring takes */

/**
 * struct pair - two members
 * @from: all of its blocks in one sealed segment; its ring of kills is full
 * @to:   takes them
 * @seg:  the segment
 * @unit: of the blocks; those up to NR_KILLS are dead
 */
struct pair {
	struct wf *from;
	struct wf *to;
	u32 seg;
	u32 unit[NR_KILLS + 3];
};

static struct pair pair_new(struct kunit *test)
{
	struct pair p = { .from = wf_new(test), .to = wf_new(test) };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(p.unit); i++)
		p.unit[i] = put(test, p.from, DEMOTE, i + 1, 1, 0);
	kvt_wlog_written(&p.from->w, close_batch(test, p.from, DEMOTE), 0);
	flush(p.from);
	seal(test, p.from, DEMOTE);
	p.seg = p.unit[0] / TM_SEG_UNITS;
	for (i = 0; i < NR_KILLS; i++)
		KUNIT_ASSERT_EQ(test, (u32)kvt_wlog_free(&p.from->w, p.unit[i], 1), (u32)KVT_W_OK);
	KUNIT_ASSERT_EQ(test, kvt_wlog_kill_room(&p.from->w), 0u);
	return p;
}

/* Carry @nr of what lives; it is durable there afterwards. */
static void carry(struct kunit *test, struct pair *p, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++)
		put_from(test, p->to, CARRY, NR_KILLS + i + 1, 1, p->from, p->unit[NR_KILLS + i]);
	kvt_wlog_written(&p->to->w, close_batch(test, p->to, CARRY), 0);
	flush(p->to);
}

static u32 live(const struct pair *p)
{
	return p->from->segs[p->seg].live;
}

static void write_kills(struct kunit *test, struct wf *f)
{
	if (kvt_wlog_start_kills(&f->w, CARRY) == KVT_W_SEGMENT) {
		KUNIT_ASSERT_EQ(test, (u32)open_seg(f, CARRY, false), (u32)KVT_W_OK);
		KUNIT_ASSERT_EQ(test, (u32)kvt_wlog_start_kills(&f->w, CARRY), (u32)KVT_W_OK);
	}
	kvt_wlog_written(&f->w, close_batch(test, f, CARRY), 0);
	flush(f);
}

/* The source has no room for the kill: it tells, once, when it has some. */
static void drain_waits(struct kunit *test)
{
	struct pair p = pair_new(test);

	KUNIT_EXPECT_FALSE(test, kvt_wlog_owes(&p.to->w));
	carry(test, &p, 2);
	KUNIT_EXPECT_EQ(test, live(&p), 3u);
	KUNIT_EXPECT_TRUE(test, kvt_wlog_owes(&p.to->w));
	KUNIT_EXPECT_TRUE(test, p.from->w.nudged);
	KUNIT_EXPECT_FALSE(test, kvt_wlog_wakes(&p.from->w));
	/* Asked again it does not: who is nudged by that asks others again. */
	p.from->w.nudged = false;
	flush(p.to);
	KUNIT_EXPECT_FALSE(test, p.from->w.nudged);
	write_kills(test, p.from);
	KUNIT_EXPECT_EQ(test, live(&p), 3u);
	KUNIT_EXPECT_TRUE(test, kvt_wlog_wakes(&p.from->w));
	KUNIT_EXPECT_FALSE(test, kvt_wlog_wakes(&p.from->w));
	flush(p.to);
	KUNIT_EXPECT_EQ(test, live(&p), 1u);
	KUNIT_EXPECT_EQ(test, p.from->w.nr_pending, 2u);
	KUNIT_EXPECT_FALSE(test, kvt_wlog_owes(&p.to->w));
	KUNIT_EXPECT_FALSE(test, p.from->w.awaited);
}

/* Where there is no room for all, there is for some. */
static void drain_in_parts(struct kunit *test)
{
	struct pair p = pair_new(test);
	u32 seg = p.seg, i;

	carry(test, &p, 3);
	KUNIT_EXPECT_EQ(test, live(&p), 3u);
	write_kills(test, p.from);
	for (i = 0; i < NR_KILLS - 1; i++)
		KUNIT_ASSERT_EQ(test, (u32)kvt_wlog_kill(&p.from->w, seg, p.unit[i] % TM_SEG_UNITS,
						      p.from->w.segs[seg].life), (u32)KVT_W_OK);
	KUNIT_EXPECT_TRUE(test, kvt_wlog_wakes(&p.from->w));
	flush(p.to);
	KUNIT_EXPECT_EQ(test, live(&p), 2u);
	KUNIT_EXPECT_TRUE(test, kvt_wlog_owes(&p.to->w));
	KUNIT_EXPECT_TRUE(test, p.from->w.awaited);
}

/* A source that is given up takes no more kills, and is not waited for. */
static void drain_given_up(struct kunit *test)
{
	struct pair p = pair_new(test);

	carry(test, &p, 2);
	kvt_wlog_give_up(&p.from->w);
	KUNIT_EXPECT_TRUE(test, kvt_wlog_wakes(&p.from->w));
	flush(p.to);
	KUNIT_EXPECT_EQ(test, live(&p), 1u);
	KUNIT_EXPECT_FALSE(test, kvt_wlog_owes(&p.to->w));
}

/* A fence is not over while a target that is given up has kills to bring elsewhere. */
static void drain_target_given_up(struct kunit *test)
{
	struct pair p = pair_new(test);
	struct kvt_wlog_fence fence;

	carry(test, &p, 2);
	kvt_wlog_give_up(&p.to->w);
	kvt_wlog_fence(&p.to->w, &fence);
	KUNIT_EXPECT_FALSE(test, kvt_wlog_fence_passed(&p.to->w, &fence));
	write_kills(test, p.from);
	flush(p.to);
	KUNIT_EXPECT_EQ(test, live(&p), 1u);
	KUNIT_EXPECT_TRUE(test, kvt_wlog_fence_passed(&p.to->w, &fence));
}

/* What leaves a doomed segment needs no room; who waits for that to be empty is told. */
static void drain_doomed(struct kunit *test)
{
	struct pair p = pair_new(test);

	carry(test, &p, 2);
	p.from->w.nudged = false;
	KUNIT_ASSERT_TRUE(test, kvt_log_claim(&p.from->log, p.seg));
	kvt_wlog_doom(&p.from->w, p.seg);
	flush(p.to);
	KUNIT_EXPECT_EQ(test, live(&p), 1u);
	KUNIT_EXPECT_FALSE(test, kvt_wlog_owes(&p.to->w));
	KUNIT_EXPECT_FALSE(test, p.from->w.nudged);
	put_from(test, p.to, CARRY, NR_KILLS + 3, 1, p.from, p.unit[NR_KILLS + 2]);
	kvt_wlog_written(&p.to->w, close_batch(test, p.to, CARRY), 0);
	KUNIT_EXPECT_FALSE(test, p.from->w.nudged);
	flush(p.to);
	KUNIT_EXPECT_EQ(test, live(&p), 0u);
	KUNIT_EXPECT_TRUE(test, p.from->w.nudged);
}

/* A source that waits does not keep another's waiting, which may be what it waits for. */
static void drain_past_each_other(struct kunit *test)
{
	struct pair p = pair_new(test);
	struct wf *other = wf_new(test);
	u32 a = put_durable(test, other, DEMOTE, 20), seg = a / TM_SEG_UNITS;

	seal(test, other, DEMOTE);
	put_from(test, p.to, CARRY, 20, 1, other, a);
	carry(test, &p, 1);
	KUNIT_EXPECT_EQ(test, live(&p), 3u);
	KUNIT_EXPECT_EQ(test, other->segs[seg].live, 0u);
	KUNIT_EXPECT_FALSE(test, other->w.awaited);
}

static struct kunit_case drain_cases[] = {
	KUNIT_CASE(drain_waits),
	KUNIT_CASE(drain_in_parts),
	KUNIT_CASE(drain_given_up),
	KUNIT_CASE(drain_target_given_up),
	KUNIT_CASE(drain_doomed),
	KUNIT_CASE(drain_past_each_other),
	{ }
};

static struct kunit_suite drain_suite = {
	.name = "kvt_drain",
	.test_cases = drain_cases,
};

kunit_test_suite(drain_suite);
