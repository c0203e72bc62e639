// SPDX-License-Identifier: GPL-2.0
/*
 * Which calls belong to one request, and that one in parts is the same as in one piece.
 */
#include "kvt_kunit.h"
#include "../core/kvt_chain.h"
#include "../core/kvt_policy.h"

#define HINT_UNIT	16u	/* a block in the counts of hints */

#define NR	12u

struct fixture {
	struct kvt_policy p;
	struct kvt_asks *asks;
	struct kvt_table *t;
	u32 now_ms;
	u32 nr_steps;
	u32 id[NR];	/* one chain, head first */
	u32 other[2];	/* leaves it after id[3] */
};

static u32 add(struct kunit *test, struct fixture *f, u32 parent, u32 hash)
{
	u32 id = kvt_test_block(test, f->t, KVT_READY | KVT_CTL_MEM);

	kvt_hot(f->t, id)->mem_tier = 0;
	kvt_hot(f->t, id)->hash = hash * 2654435761u;
	if (parent)
		kvt_ch_link(f->t, id, parent);
	return id;
}

static struct fixture *setup(struct kunit *test)
{
	struct fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->asks = kunit_kzalloc(test, sizeof(*f->asks), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, f->asks);
	f->t = kvt_test_table(test, 1);
	for (i = 0; i < NR; i++)
		f->id[i] = add(test, f, i ? f->id[i - 1] : KVT_NIL, 1 + i);
	f->other[0] = add(test, f, f->id[3], 100);
	f->other[1] = add(test, f, f->other[0], 101);
	f->now_ms = 5000;
	return f;
}

static struct kvt_ask *ask(struct fixture *f, u32 who, u64 request, u32 tip, u32 nr)
{
	struct kvt_call c = { .who = who, .request = request, .tip = tip, .nr = nr };
	struct kvt_ask *e = kvt_ask_of(f->asks, f->t, &c, f->now_ms, &f->nr_steps);
	bool more = e && e->more;

	/* As a policy does. What it was comes back in @known. */
	if (e) {
		e->more = true;
		e->known = more;
	}
	return e;
}

static bool is_part(const struct kvt_ask *e)
{
	return e && e->known;
}

static void numbers_tell(struct kunit *test)
{
	struct fixture *f = setup(test);

	KUNIT_EXPECT_FALSE(test, is_part(ask(f, 1, 7, f->id[3], 4)));
	f->now_ms += 30000;
	KUNIT_EXPECT_TRUE(test, is_part(ask(f, 1, 7, f->id[5], 2)));
	KUNIT_EXPECT_FALSE(test, is_part(ask(f, 1, 8, f->id[7], 2)));
	KUNIT_EXPECT_FALSE(test, is_part(ask(f, 2, 7, f->id[7], 2)));
	KUNIT_EXPECT_FALSE(test, is_part(ask(f, 1, 0, f->id[7], 2)));
	/* It has come further before. */
	KUNIT_EXPECT_NULL(test, ask(f, 1, 7, f->id[2], 3));
	KUNIT_EXPECT_TRUE(test, is_part(ask(f, 1, 7, f->id[5], 1)));
	/* Another chain is another request. */
	KUNIT_EXPECT_FALSE(test, is_part(ask(f, 1, 7, f->other[1], 2)));
	/* And so is the number, after a time. */
	f->now_ms += KVT_ASK_OLD_MS + 1;
	KUNIT_EXPECT_FALSE(test, is_part(ask(f, 1, 7, f->other[1], 2)));
}

static void time_and_chain_tell(struct kunit *test)
{
	struct fixture *f = setup(test);

	KUNIT_EXPECT_FALSE(test, is_part(ask(f, 1, 0, f->id[3], 4)));
	KUNIT_EXPECT_TRUE(test, is_part(ask(f, 1, 0, f->id[5], 2)));
	f->now_ms += KVT_ASK_GAP_MS;
	KUNIT_EXPECT_TRUE(test, is_part(ask(f, 1, 0, f->id[7], 2)));
	/* Another client, too late, or not from where it was. */
	KUNIT_EXPECT_FALSE(test, is_part(ask(f, 2, 0, f->id[9], 2)));
	f->now_ms += KVT_ASK_GAP_MS + 1;
	KUNIT_EXPECT_FALSE(test, is_part(ask(f, 1, 0, f->id[8], 1)));
	KUNIT_EXPECT_FALSE(test, is_part(ask(f, 1, 0, f->id[11], 2)));
	KUNIT_EXPECT_FALSE(test, is_part(ask(f, 1, 0, f->other[1], 2)));
}

/* The next part begins where the last one ended, or overlaps it. */
static void parts_extend(struct kunit *test)
{
	struct fixture *f = setup(test);

	KUNIT_EXPECT_TRUE(test, kvt_ask_extends(f->t, f->id[4], f->id[3], 1));
	KUNIT_EXPECT_TRUE(test, kvt_ask_extends(f->t, f->id[6], f->id[3], 3));
	KUNIT_EXPECT_TRUE(test, kvt_ask_extends(f->t, f->id[6], f->id[3], 7));
	KUNIT_EXPECT_FALSE(test, kvt_ask_extends(f->t, f->id[6], f->id[3], 2));
	KUNIT_EXPECT_FALSE(test, kvt_ask_extends(f->t, f->id[3], f->id[3], 4));
	KUNIT_EXPECT_FALSE(test, kvt_ask_extends(f->t, f->id[3], f->id[4], 4));
	KUNIT_EXPECT_FALSE(test, kvt_ask_extends(f->t, f->other[1], f->id[4], 6));
	KUNIT_EXPECT_TRUE(test, kvt_ask_extends(f->t, f->other[1], f->id[3], 2));
}

/* Two requests of one client at a time, without numbers. */
static void requests_mix(struct kunit *test)
{
	struct fixture *f = setup(test);
	struct kvt_ask *a = ask(f, 1, 0, f->id[5], 6), *b = ask(f, 1, 0, f->other[0], 1);

	KUNIT_ASSERT_TRUE(test, a && b && a != b);
	KUNIT_EXPECT_PTR_EQ(test, ask(f, 1, 0, f->id[7], 2), a);
	KUNIT_EXPECT_PTR_EQ(test, ask(f, 1, 0, f->other[1], 1), b);
}

/* A block that takes the place of the last one is no part of the request. */
static void tips_go(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 tip = f->other[1];

	ask(f, 1, 7, tip, 1);
	ask(f, 1, 0, tip, 1);
	kvt_ch_unlink(f->t, tip);
	atomic_set(&kvt_hot(f->t, tip)->ctl, KVT_DEAD);
	KUNIT_EXPECT_FALSE(test, is_part(ask(f, 1, 0, f->id[5], 10)));
	kvt_table_free(f->t, tip);
	KUNIT_ASSERT_EQ(test, add(test, f, f->other[0], 101), tip);
	KUNIT_EXPECT_FALSE(test, is_part(ask(f, 1, 7, tip, 1)));
	KUNIT_EXPECT_TRUE(test, is_part(ask(f, 1, 7, tip, 1)));
}

/* The latest are remembered; a clock that goes back makes none old. */
static void asks_are_bounded(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 i;

	for (i = 1; i <= 3 * KVT_ASKS; i++, f->now_ms++)
		KUNIT_EXPECT_FALSE(test, is_part(ask(f, i, i, f->id[3], 4)));
	f->now_ms -= 3000;
	for (i = 2 * KVT_ASKS + 1; i <= 3 * KVT_ASKS; i++)
		KUNIT_EXPECT_TRUE(test, is_part(ask(f, i, i, f->id[5], 2)));
	KUNIT_EXPECT_FALSE(test, is_part(ask(f, 1, 1, f->id[5], 2)));
}

/* --- what the policy makes of it ------------------------------------------------------ */

#define TURN_MS	20000u

/*
 * Turn 0, 1, ... of a session, @grow blocks more each time, in calls of @chunk blocks.
 * @hinted: at the end of each it is said when the next one comes.
 */
static void turns(struct kunit *test, struct kvt_policy *p, struct kvt_table *t, u32 grow,
		  u32 chunk, bool hinted)
{
	struct kvt_call c = { .who = 1, .request = 0 };
	u32 turn, i, id = KVT_NIL, at;

	for (turn = 0; turn < 6; turn++) {
		p->now_ms += TURN_MS;
		c.request++;
		c.tip = id;
		for (at = id; at; at = kvt_cold(t, at)->parent)
			p->ops->touch(p, 0, at);
		if (id && chunk < grow)
			kvt_policy_call(p, &c);
		for (i = 1; i <= grow; i++) {
			at = kvt_test_block(test, t, KVT_READY | KVT_CTL_MEM);
			kvt_hot(t, at)->mem_tier = 0;
			kvt_hot(t, at)->hash = (turn * grow + i) * 2654435761u;
			kvt_cold(t, at)->touch_ms = p->now_ms;
			if (id)
				kvt_ch_link(t, at, id);
			p->ops->insert(p, 0, at);
			id = at;
			c.tip = id;
			c.nr = min(chunk, i);
			if (i % chunk == 0 || i == grow)
				kvt_policy_call(p, &c);
		}
		if (hinted)
			p->ops->hint(p, id, TURN_MS);
	}
}

static void parts_are_one(struct kunit *test)
{
	struct kvt_policy *whole = kunit_kzalloc(test, sizeof(*whole), GFP_KERNEL);
	struct kvt_policy *parts = kunit_kzalloc(test, sizeof(*parts), GFP_KERNEL);
	struct kvt_table *tw = kvt_test_table(test, 1), *tp = kvt_test_table(test, 1);
	struct kvt_mind *mw, *mp;
	u32 id;

	KUNIT_ASSERT_NOT_NULL(test, whole);
	KUNIT_ASSERT_NOT_NULL(test, parts);
	kvt_policy_init(whole, &kvt_policy_reuse, tw);
	kvt_policy_init(parts, &kvt_policy_reuse, tp);
	mw = kvt_test_mind(test, whole);
	mp = kvt_test_mind(test, parts);
	turns(test, whole, tw, 10, 10, false);
	turns(test, parts, tp, 10, 3, false);
	KUNIT_EXPECT_EQ(test, mw->nr_requests, 6u);
	KUNIT_EXPECT_EQ(test, mp->nr_requests, 6u);
	KUNIT_EXPECT_EQ(test, mw->learn.total[KVT_CLS_NEW], 5u);
	KUNIT_EXPECT_EQ(test, memcmp(&mw->learn, &mp->learn, sizeof(mw->learn)), 0);
	KUNIT_EXPECT_EQ(test, memcmp(&mw->turns, &mp->turns, sizeof(mw->turns)), 0);
	for (id = 1; id <= 60; id++) {
		const struct kvt_cold *a = kvt_cold(tw, id), *b = kvt_cold(tp, id);

		KUNIT_EXPECT_EQ(test, a->cls, b->cls);
		KUNIT_EXPECT_EQ(test, a->past, b->past);
		KUNIT_EXPECT_EQ(test, a->shared, 0);
		KUNIT_EXPECT_EQ(test, b->shared, 0);
		KUNIT_EXPECT_EQ(test, a->lru_next, b->lru_next);
	}
}

/* A hint comes true once, however many calls its session's next turn is made of. */
static void parts_keep_a_word_once(struct kunit *test)
{
	struct kvt_policy *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	struct kvt_table *t = kvt_test_table(test, 1);
	u32 i, kept = 0, broken = 0;
	struct kvt_mind *m;

	KUNIT_ASSERT_NOT_NULL(test, p);
	kvt_policy_init(p, &kvt_policy_reuse, t);
	m = kvt_test_mind(test, p);
	turns(test, p, t, 10, 1, true);
	for (i = 0; i < KVT_HINTS; i++) {
		kept += m->learn.kept[i];
		broken += m->learn.broken[i];
	}
	/* Of the last one the turn has not come; in the others there are 10 blocks more each time. */
	KUNIT_EXPECT_EQ(test, broken, 60 * HINT_UNIT);
	KUNIT_EXPECT_EQ(test, kept, (10 + 20 + 30 + 40 + 50) * HINT_UNIT);
}

static struct kunit_case kvt_ask_cases[] = {
	KUNIT_CASE(numbers_tell),
	KUNIT_CASE(time_and_chain_tell),
	KUNIT_CASE(parts_extend),
	KUNIT_CASE(requests_mix),
	KUNIT_CASE(tips_go),
	KUNIT_CASE(asks_are_bounded),
	KUNIT_CASE(parts_are_one),
	KUNIT_CASE(parts_keep_a_word_once),
	{ }
};

static struct kunit_suite kvt_ask_suite = {
	.name = "kvt_ask",
	.test_cases = kvt_ask_cases,
};
kunit_test_suite(kvt_ask_suite);
