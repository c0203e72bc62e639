// SPDX-License-Identifier: GPL-2.0
/*
 * Holds, against a model that counts anew each time: which blocks lie on a way up from a
 * tip. Steps of all lengths, deaths anywhere, and pins on the way.
 */
#include "kvt_kunit.h"
#include "../core/kvt_chain.h"
#include "../core/kvt_hold.h"

#define NR		48u
#define SESSIONS	12u
#define ROOM		8u

struct forest {
	struct kvt_table *t;
	u32 id[NR];
	u32 gen[NR];
	u32 tip[SESSIONS];	/* KVT_NIL: none */
	u32 tip_gen[SESSIONS];
	u32 paid;
	u32 full;	/* how often it was refused */
	u64 rnd;
};

static u32 up_of(const struct forest *f, u32 i)
{
	u32 up = kvt_cold(f->t, f->id[i])->parent, k;

	for (k = 0; k < NR; k++) {
		if (up && f->id[k] == up && kvt_ctl_state(kvt_ctl(kvt_hot(f->t, up))) == KVT_READY)
			return k;
	}
	return NR;
}

/* A new block in place of one that has gone, or never was. */
static void make_block(struct kunit *test, struct forest *f, u32 i)
{
	u32 k = i ? kvt_test_random(&f->rnd) % NR : NR;

	f->id[i] = kvt_test_block(test, f->t, KVT_READY);
	f->gen[i] = kvt_hot(f->t, f->id[i])->gen;
	if (k < NR && k != i && f->id[k])
		kvt_ch_link(f->t, f->id[i], f->id[k]);
}

static u32 index_of(const struct forest *f, u32 id)
{
	u32 k = 0;

	while (k < NR && f->id[k] != id)
		k++;
	return k;
}

static bool session_there(const struct forest *f, u32 s)
{
	return kvt_hold_there(f->t, f->tip[s], f->tip_gen[s]);
}

/* All of it anew: who is held, how often, and how many are paid for. */
static void check(struct kunit *test, struct forest *f)
{
	u32 count[NR] = { 0 }, i, k, s, paid = 0;

	for (s = 0; s < SESSIONS; s++) {
		if (!session_there(f, s))
			continue;
		i = index_of(f, f->tip[s]);
		count[i]++;
		/* The first that holds a block makes it hold the next. */
		for (k = up_of(f, i); count[i] == 1 && k < NR; k = up_of(f, i)) {
			count[k]++;
			i = k;
		}
	}
	for (i = 0; i < NR; i++) {
		const struct kvt_hot *h = kvt_hot(f->t, f->id[i]);
		u32 holds = kvt_cold(f->t, f->id[i])->holds;

		KUNIT_ASSERT_EQ(test, holds & KVT_HOLD_COUNT, count[i]);
		KUNIT_ASSERT_EQ(test, !!(kvt_ctl(h) & KVT_CTL_HELD), count[i] != 0);
		/* One whose parent has died may keep its mark. */
		if (up_of(f, i) < NR || !count[i])
			KUNIT_ASSERT_EQ(test, !!(holds & KVT_HOLD_UP), count[i] != 0);
		paid += count[i] && !(kvt_ctl(h) & KVT_CTL_PINNED);
	}
	KUNIT_ASSERT_EQ(test, f->paid, paid);
}

static u32 some_steps(struct forest *f)
{
	return 1 + kvt_test_random(&f->rnd) % 4;
}

static void put_hold(struct forest *f, u32 id, u32 gen)
{
	struct kvt_hold_walk w = { .id = id, .gen = gen };
	enum kvt_hold_end end;

	do {
		end = kvt_hold_drop(f->t, &w, some_steps(f));
		f->paid -= w.nr;
	} while (end == KVT_HOLD_MORE);
}

static enum kvt_hold_end get_hold(struct forest *f, u32 id, u32 gen)
{
	struct kvt_hold_walk w = { .room = ROOM - f->paid };
	enum kvt_hold_end end = kvt_hold_tip(f->t, &w, id);

	if (end == KVT_HOLD_FULL)
		return end;
	f->paid += w.nr;
	while (end == KVT_HOLD_MORE) {
		w.room = ROOM - f->paid;
		end = kvt_hold_climb(f->t, &w, some_steps(f));
		f->paid += w.nr;
	}
	if (end == KVT_HOLD_FULL)
		put_hold(f, id, gen);
	return end;
}

static void move_session(struct kunit *test, struct forest *f, u32 s)
{
	u32 i = kvt_test_random(&f->rnd) % NR, was = f->tip[s], gen = f->tip_gen[s];
	u32 before = f->paid;

	if (kvt_test_random(&f->rnd) % 3) {
		if (get_hold(f, f->id[i], f->gen[i]) == KVT_HOLD_FULL) {
			KUNIT_ASSERT_EQ(test, f->paid, before);
			f->full++;
			return;
		}
		f->tip[s] = f->id[i];
		f->tip_gen[s] = f->gen[i];
	} else {
		f->tip[s] = KVT_NIL;
	}
	put_hold(f, was, gen);
}

/* Leaves die, and blocks with children, which stay as entries for those. */
static void kill_block(struct kunit *test, struct forest *f, u32 i)
{
	struct kvt_hold_walk w;
	u32 id = f->id[i];

	if (kvt_ctl(kvt_hot(f->t, id)) & KVT_CTL_HELD) {
		kvt_hold_die(f->t, &w, id);
		f->paid -= w.nr;
		put_hold(f, w.id, w.gen);
	}
	kvt_ch_unlink(f->t, id);
	kvt_ctl_update(kvt_hot(f->t, id), 0, 0, KVT_CTL_STATE, KVT_DEAD);
	if (kvt_ch_leaf(f->t, id))
		kvt_table_free(f->t, id);
	make_block(test, f, i);
}

/* As COMMIT does it: a child of a tip, if there is room. */
static void grow_session(struct kunit *test, struct forest *f, u32 s)
{
	u32 i = kvt_test_random(&f->rnd) % NR, tip;

	if (!session_there(f, s) || f->paid == ROOM || f->id[i] == f->tip[s])
		return;
	tip = f->tip[s];
	kill_block(test, f, i);
	if (!session_there(f, s))
		return;
	kvt_ch_unlink(f->t, f->id[i]);
	kvt_ch_link(f->t, f->id[i], tip);
	kvt_hold_grow(f->t, f->id[i]);
	f->paid++;
	f->tip[s] = f->id[i];
	f->tip_gen[s] = f->gen[i];
}

static void toggle_pin(struct forest *f, u32 i)
{
	struct kvt_hot *h = kvt_hot(f->t, f->id[i]);
	bool held = kvt_ctl(h) & KVT_CTL_HELD;

	if (kvt_ctl(h) & KVT_CTL_PINNED) {
		if (held && f->paid == ROOM)
			return;
		f->paid += held;
		kvt_ctl_update(h, 0, 0, KVT_CTL_PINNED, 0);
	} else {
		f->paid -= held;
		kvt_ctl_update(h, 0, 0, 0, KVT_CTL_PINNED);
	}
}

static void holds_are_counted(struct kunit *test)
{
	struct forest *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	u32 i, step;

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->t = kvt_test_table(test, 8);
	f->rnd = 11;
	for (i = 0; i < NR; i++)
		make_block(test, f, i);
	for (step = 0; step < 6000; step++) {
		u32 what = kvt_test_random(&f->rnd) % 8;

		i = kvt_test_random(&f->rnd);
		if (what < 4)
			move_session(test, f, i % SESSIONS);
		else if (what < 5)
			grow_session(test, f, i % SESSIONS);
		else if (what < 6)
			toggle_pin(f, i % NR);
		else
			kill_block(test, f, i % NR);
		KUNIT_ASSERT_TRUE(test, f->paid <= ROOM);
		check(test, f);
	}
	KUNIT_EXPECT_GT(test, f->full, 100u);
}

/* A walk that stops half-way, and the chain is cut before it goes on. */
static void walk_meets_a_gap(struct kunit *test)
{
	struct kvt_table *t = kvt_test_table(test, 1);
	struct kvt_hold_walk w = { .room = 8 }, d;
	u32 id[8], i;

	for (i = 0; i < 8; i++) {
		id[i] = kvt_test_block(test, t, KVT_READY);
		if (i)
			kvt_ch_link(t, id[i], id[i - 1]);
	}
	KUNIT_EXPECT_EQ(test, (int)kvt_hold_tip(t, &w, id[7]), (int)KVT_HOLD_MORE);
	w.room = 7;
	KUNIT_EXPECT_EQ(test, (int)kvt_hold_climb(t, &w, 3), (int)KVT_HOLD_MORE);
	KUNIT_EXPECT_EQ(test, w.nr, 3u);
	/* Where it stands. */
	kvt_hold_die(t, &d, id[4]);
	KUNIT_EXPECT_EQ(test, d.nr, 1u);
	KUNIT_EXPECT_EQ(test, d.id, KVT_NIL);
	kvt_ch_unlink(t, id[4]);
	kvt_ctl_update(kvt_hot(t, id[4]), 0, 0, KVT_CTL_STATE, KVT_DEAD);
	w.room = 4;
	KUNIT_EXPECT_EQ(test, (int)kvt_hold_climb(t, &w, 3), (int)KVT_HOLD_DONE);
	KUNIT_EXPECT_EQ(test, kvt_cold(t, id[3])->holds, 0u);
	d = (struct kvt_hold_walk) { .id = id[7], .gen = kvt_hot(t, id[7])->gen };
	KUNIT_EXPECT_EQ(test, (int)kvt_hold_drop(t, &d, 8), (int)KVT_HOLD_DONE);
	KUNIT_EXPECT_EQ(test, d.nr, 3u);
	for (i = 0; i < 8; i++)
		KUNIT_EXPECT_EQ(test, kvt_cold(t, id[i])->holds, 0u);
}

/* A block's other entry is held by its children, and holds what the block did. */
static void holds_are_passed_on(struct kunit *test)
{
	struct kvt_table *t = kvt_test_table(test, 1);
	u32 top = kvt_test_block(test, t, KVT_READY), was = kvt_test_block(test, t, KVT_READY);
	u32 is = kvt_test_block(test, t, KVT_READY), id[3], i;
	struct kvt_hold_walk w, d;

	kvt_ch_link(t, was, top);
	for (i = 0; i < 3; i++) {
		id[i] = kvt_test_block(test, t, i == 2 ? KVT_FILLING : KVT_READY);
		kvt_ch_link(t, id[i], was);
	}
	kvt_cold(t, id[2])->owner = ~0u;
	/* Two through children, one of which is the tip of two, and one whose tip it is. */
	for (i = 0; i < 4; i++) {
		w = (struct kvt_hold_walk) { .room = 8 };
		kvt_hold_tip(t, &w, i == 3 ? was : id[i / 2]);
		kvt_hold_climb(t, &w, 8);
	}
	KUNIT_ASSERT_EQ(test, kvt_cold(t, was)->holds & KVT_HOLD_COUNT, 3u);
	kvt_ch_link(t, is, top);
	kvt_ch_adopt(t, is, was, 8);
	kvt_hold_pass(t, is, was);
	KUNIT_EXPECT_EQ(test, kvt_cold(t, was)->holds, 0u);
	KUNIT_EXPECT_FALSE(test, kvt_ctl(kvt_hot(t, was)) & KVT_CTL_HELD);
	KUNIT_EXPECT_EQ(test, kvt_cold(t, is)->holds, 2u | KVT_HOLD_UP);
	KUNIT_EXPECT_TRUE(test, kvt_ctl(kvt_hot(t, is)) & KVT_CTL_HELD);
	KUNIT_EXPECT_EQ(test, kvt_cold(t, top)->holds, 1u);
	/* The sessions end. */
	for (i = 0; i < 3; i++) {
		d = (struct kvt_hold_walk) { .id = id[i / 2], .gen = kvt_hot(t, id[i / 2])->gen };
		KUNIT_EXPECT_EQ(test, kvt_cold(t, top)->holds, 1u);
		kvt_hold_drop(t, &d, 8);
	}
	KUNIT_EXPECT_EQ(test, kvt_cold(t, is)->holds, 0u);
	KUNIT_EXPECT_EQ(test, kvt_cold(t, top)->holds, 0u);
}

static u32 leaving;

static bool all_but_one(struct kvt_table *t, u32 id)
{
	return kvt_table_valid(t, id) && id != leaving;
}

/* What will leave is not held, and neither is, in the end, what is below it. */
static void walk_meets_what_leaves(struct kunit *test)
{
	struct kvt_table *t = kvt_test_table(test, 1);
	struct kvt_hold_walk w, d;
	u32 id[8], i;

	for (i = 0; i < 8; i++) {
		id[i] = kvt_test_block(test, t, KVT_READY);
		if (i)
			kvt_ch_link(t, id[i], id[i - 1]);
	}
	leaving = id[7];
	w = (struct kvt_hold_walk) { .room = 8, .stays = all_but_one };
	KUNIT_EXPECT_EQ(test, (int)kvt_hold_tip(t, &w, id[7]), (int)KVT_HOLD_LEAVES);
	KUNIT_EXPECT_EQ(test, w.nr, 0u);
	leaving = id[3];
	w = (struct kvt_hold_walk) { .room = 8, .stays = all_but_one };
	KUNIT_EXPECT_EQ(test, (int)kvt_hold_tip(t, &w, id[7]), (int)KVT_HOLD_MORE);
	KUNIT_EXPECT_EQ(test, (int)kvt_hold_climb(t, &w, 8), (int)KVT_HOLD_LEAVES);
	KUNIT_EXPECT_EQ(test, w.nr, 3u);
	KUNIT_EXPECT_FALSE(test, kvt_ctl(kvt_hot(t, id[3])) & KVT_CTL_HELD);
	d = (struct kvt_hold_walk) { .id = id[7], .gen = kvt_hot(t, id[7])->gen };
	KUNIT_EXPECT_EQ(test, (int)kvt_hold_drop(t, &d, 8), (int)KVT_HOLD_DONE);
	KUNIT_EXPECT_EQ(test, d.nr, 4u);
	for (i = 0; i < 8; i++)
		KUNIT_EXPECT_EQ(test, kvt_cold(t, id[i])->holds, 0u);
}

static struct kunit_case hold_cases[] = {
	KUNIT_CASE(walk_meets_what_leaves),
	KUNIT_CASE(holds_are_passed_on),
	KUNIT_CASE(holds_are_counted),
	KUNIT_CASE(walk_meets_a_gap),
	{ }
};

static struct kunit_suite hold_suite = {
	.name = "kvt_hold",
	.test_cases = hold_cases,
};

kunit_test_suite(hold_suite);
