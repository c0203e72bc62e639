// SPDX-License-Identifier: GPL-2.0
/*
 * Segments: heads, sealing, retiring, victims, the cleaner's spare.
 */
#include "kvt_kunit.h"
#include "../core/kvt_log.h"

#define NR_SEGS		6
#define SEG_UNITS	64
#define MAX_IDS		64
#define DEMOTE		KVT_HEAD_DEMOTE
#define CARRY		KVT_HEAD_CARRY

struct fixture {
	struct kvt_log l;
	struct kvt_seg segs[NR_SEGS];
	u32 ids[2 * NR_SEGS][MAX_IDS];	/* arrays to hand in */
	bool taken[2 * NR_SEGS];	/* handed in and not come back */
};

static struct fixture *setup_n(struct kunit *test, u32 nr_segs)
{
	struct fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	kvt_log_init(&f->l, f->segs, nr_segs, SEG_UNITS);
	return f;
}

static struct fixture *setup(struct kunit *test)
{
	return setup_n(test, NR_SEGS);
}

/* What the log returns is one of ours, and was out. */
static void give_back(struct kunit *test, struct fixture *f, u32 *ids)
{
	u32 i;

	if (!ids)
		return;
	for (i = 0; i < ARRAY_SIZE(f->ids); i++) {
		if (ids != f->ids[i])
			continue;
		KUNIT_EXPECT_TRUE(test, f->taken[i]);
		f->taken[i] = false;
		return;
	}
	KUNIT_EXPECT_TRUE(test, false);
}

static bool open_seg(struct kunit *test, struct fixture *f, enum kvt_log_head head,
		     u32 max_ids)
{
	u32 i, *back;

	for (i = 0; f->taken[i]; i++)
		KUNIT_ASSERT_LT(test, i + 1, (u32)ARRAY_SIZE(f->ids));
	f->taken[i] = true;
	back = kvt_log_open(&f->l, head, f->ids[i], max_ids);
	give_back(test, f, back);
	return back != f->ids[i];
}

/* Counters agree with the segments; arrays are where they belong. */
static void log_consistent(struct kunit *test, struct fixture *f)
{
	u32 i, nr_free = 0, nr_empty = 0, nr_ids = 0, taken = 0;
	const struct kvt_seg *s;
	u64 live = 0, copies = 0;

	for (i = 0; i < f->l.nr_segs; i++) {
		s = &f->segs[i];
		live += s->live;
		copies += s->copies;
		KUNIT_ASSERT_TRUE(test, s->copies <= s->live);
		nr_free += s->state == KVT_SEG_FREE;
		nr_empty += s->state == KVT_SEG_EMPTY;
		nr_ids += !!s->ids;
		KUNIT_ASSERT_EQ(test, !!s->ids, s->state != KVT_SEG_FREE);
		KUNIT_ASSERT_TRUE(test, s->live <= s->fill && s->fill <= SEG_UNITS);
		KUNIT_ASSERT_TRUE(test, s->nr_ids <= s->max_ids);
		if (s->state == KVT_SEG_FREE)
			KUNIT_ASSERT_EQ(test, s->live + s->fill + s->writes, 0u);
		if (s->state == KVT_SEG_SEALED)
			KUNIT_ASSERT_TRUE(test, s->live || s->writes);
		KUNIT_ASSERT_EQ(test, s->state == KVT_SEG_OPEN,
				f->l.open[DEMOTE] == i || f->l.open[CARRY] == i);
	}
	for (i = 0; i < ARRAY_SIZE(f->ids); i++)
		taken += f->taken[i];
	KUNIT_ASSERT_EQ(test, nr_ids, taken);
	KUNIT_ASSERT_EQ(test, nr_free, f->l.nr_free);
	KUNIT_ASSERT_EQ(test, nr_empty, f->l.nr_empty);
	KUNIT_ASSERT_EQ(test, live, f->l.live_units);
	KUNIT_ASSERT_EQ(test, copies, f->l.copy_units);
}

/* Writes a block and completes the write. */
static u32 put(struct kunit *test, struct fixture *f, enum kvt_log_head head, u32 units,
	       u32 id)
{
	u32 unit = kvt_log_alloc(&f->l, head, units, id);

	if (unit != KVT_NO_UNIT)
		give_back(test, f, kvt_log_write_done(&f->l, unit));
	return unit;
}

static void del(struct kunit *test, struct fixture *f, u32 unit, u32 units)
{
	give_back(test, f, kvt_log_free(&f->l, unit, units));
}

/* Opens a segment and fills it with blocks of @units. Returns its number. */
static u32 fill_seg(struct kunit *test, struct fixture *f, u32 units)
{
	u32 n;

	KUNIT_ASSERT_TRUE(test, open_seg(test, f, DEMOTE, MAX_IDS));
	for (n = 0; !kvt_log_needs_segment(&f->l, DEMOTE, units); n++)
		KUNIT_ASSERT_NE(test, put(test, f, DEMOTE, units, 1 + n), KVT_NO_UNIT);
	KUNIT_ASSERT_EQ(test, n, SEG_UNITS / units);
	return f->l.open[DEMOTE];
}

/* Both heads write in ascending order, each in a segment of its own. */
static void log_heads_are_apart(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 i, d, c, next[KVT_HEADS];

	KUNIT_EXPECT_TRUE(test, kvt_log_needs_segment(&f->l, DEMOTE, 1));
	KUNIT_EXPECT_EQ(test, kvt_log_alloc(&f->l, DEMOTE, 1, 1), KVT_NO_UNIT);
	KUNIT_ASSERT_TRUE(test, open_seg(test, f, DEMOTE, MAX_IDS));
	KUNIT_EXPECT_TRUE(test, kvt_log_needs_segment(&f->l, CARRY, 1));
	KUNIT_ASSERT_TRUE(test, open_seg(test, f, CARRY, MAX_IDS));
	KUNIT_ASSERT_NE(test, f->l.open[DEMOTE], f->l.open[CARRY]);
	next[DEMOTE] = f->l.open[DEMOTE] * SEG_UNITS;
	next[CARRY] = f->l.open[CARRY] * SEG_UNITS;
	for (i = 0; i < 5; i++) {
		d = put(test, f, DEMOTE, 3, 10 + i);
		c = put(test, f, CARRY, 5, 20 + i);
		KUNIT_EXPECT_EQ(test, d, next[DEMOTE]);
		KUNIT_EXPECT_EQ(test, c, next[CARRY]);
		KUNIT_EXPECT_EQ(test, f->segs[f->l.open[DEMOTE]].ids[i], 10 + i);
		KUNIT_EXPECT_EQ(test, f->segs[f->l.open[CARRY]].ids[i], 20 + i);
		next[DEMOTE] += 3;
		next[CARRY] += 5;
	}
	log_consistent(test, f);
}

/* A segment takes what fits, to the unit, and no more ids than there is room. */
static void log_segment_bounds(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 unit;

	KUNIT_ASSERT_TRUE(test, open_seg(test, f, DEMOTE, 3));
	KUNIT_EXPECT_TRUE(test, kvt_log_needs_segment(&f->l, DEMOTE, SEG_UNITS + 1));
	KUNIT_EXPECT_TRUE(test, kvt_log_needs_segment(&f->l, DEMOTE, U32_MAX));
	unit = put(test, f, DEMOTE, SEG_UNITS - 1, 1);
	KUNIT_EXPECT_TRUE(test, kvt_log_needs_segment(&f->l, DEMOTE, 2));
	KUNIT_EXPECT_EQ(test, put(test, f, DEMOTE, 2, 2), KVT_NO_UNIT);
	KUNIT_EXPECT_EQ(test, put(test, f, DEMOTE, 1, 2), unit + SEG_UNITS - 1);
	KUNIT_EXPECT_TRUE(test, kvt_log_needs_segment(&f->l, DEMOTE, 1));

	KUNIT_ASSERT_TRUE(test, open_seg(test, f, DEMOTE, 3));
	put(test, f, DEMOTE, 1, 1);
	put(test, f, DEMOTE, 1, 2);
	put(test, f, DEMOTE, 1, 3);
	KUNIT_EXPECT_EQ(test, put(test, f, DEMOTE, 1, 4), KVT_NO_UNIT);
	log_consistent(test, f);
}

/* A sealed segment retires when it is dead and no write to it is under way. */
static void log_retires_when_quiet(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 a, b, seg;

	KUNIT_ASSERT_TRUE(test, open_seg(test, f, DEMOTE, MAX_IDS));
	seg = f->l.open[DEMOTE];
	a = put(test, f, DEMOTE, 4, 1);
	b = kvt_log_alloc(&f->l, DEMOTE, 4, 2);
	KUNIT_ASSERT_TRUE(test, open_seg(test, f, DEMOTE, MAX_IDS));
	KUNIT_EXPECT_EQ(test, (u32)f->segs[seg].state, (u32)KVT_SEG_SEALED);
	del(test, f, a, 4);
	del(test, f, b, 4);
	/* Dead, but the device is still writing to it. */
	KUNIT_EXPECT_EQ(test, (u32)f->segs[seg].state, (u32)KVT_SEG_SEALED);
	log_consistent(test, f);
	give_back(test, f, kvt_log_write_done(&f->l, b));
	KUNIT_EXPECT_EQ(test, (u32)f->segs[seg].state, (u32)KVT_SEG_FREE);
	KUNIT_EXPECT_EQ(test, f->l.nr_free, NR_SEGS - 1u);
	log_consistent(test, f);
}

/* An open segment never retires under its head. */
static void log_open_stays(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 unit, seg;

	KUNIT_ASSERT_TRUE(test, open_seg(test, f, DEMOTE, MAX_IDS));
	seg = f->l.open[DEMOTE];
	unit = put(test, f, DEMOTE, 4, 1);
	del(test, f, unit, 4);
	KUNIT_EXPECT_EQ(test, (u32)f->segs[seg].state, (u32)KVT_SEG_OPEN);
	KUNIT_EXPECT_EQ(test, put(test, f, DEMOTE, 4, 2), unit + 4);
	log_consistent(test, f);
}

/* Demotions leave one segment, which only the cleaner gets. */
static void log_keeps_a_spare(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 i;

	for (i = 0; i < NR_SEGS - 1; i++)
		fill_seg(test, f, 8);
	KUNIT_EXPECT_FALSE(test, open_seg(test, f, DEMOTE, MAX_IDS));
	KUNIT_EXPECT_EQ(test, f->l.nr_free, 1u);
	log_consistent(test, f);
	KUNIT_EXPECT_TRUE(test, open_seg(test, f, CARRY, MAX_IDS));
	KUNIT_EXPECT_FALSE(test, open_seg(test, f, DEMOTE, MAX_IDS));
	put(test, f, CARRY, 8, 1);
	KUNIT_EXPECT_FALSE(test, open_seg(test, f, CARRY, MAX_IDS));
	log_consistent(test, f);
}

/*
 * Regression: when only the spare is free, a head whose full segment has died
 * must go on in it, and one whose segment is partly dead must give it up to the
 * cleaner. Both used to be stuck for ever.
 */
static void log_full_head_is_not_stuck(struct kunit *test)
{
	struct fixture *f = setup_n(test, 2);
	u32 seg, first;

	seg = fill_seg(test, f, 32);
	first = seg * SEG_UNITS;
	KUNIT_EXPECT_FALSE(test, open_seg(test, f, DEMOTE, MAX_IDS));
	KUNIT_EXPECT_EQ(test, kvt_log_victim(&f->l), KVT_NO_SEG);
	del(test, f, first, 32);
	KUNIT_EXPECT_EQ(test, kvt_log_victim(&f->l), seg);
	KUNIT_ASSERT_TRUE(test, open_seg(test, f, CARRY, MAX_IDS));
	KUNIT_EXPECT_NE(test, put(test, f, CARRY, 32, 2), KVT_NO_UNIT);
	del(test, f, first + 32, 32);
	give_back(test, f, kvt_log_clean_end(&f->l, seg));
	KUNIT_EXPECT_EQ(test, f->l.nr_free, 1u);
	log_consistent(test, f);

	f = setup_n(test, 2);
	seg = fill_seg(test, f, 32);
	del(test, f, seg * SEG_UNITS, 32);
	del(test, f, seg * SEG_UNITS + 32, 32);
	KUNIT_EXPECT_TRUE(test, open_seg(test, f, DEMOTE, MAX_IDS));
	KUNIT_EXPECT_EQ(test, put(test, f, DEMOTE, 1, 7), seg * SEG_UNITS);
	log_consistent(test, f);
}

/* The victim is the sealed, quiet segment with the least in it, once. */
static void log_victim_is_cheapest(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 a, b, c, unit, open;

	a = fill_seg(test, f, 8);
	b = fill_seg(test, f, 8);
	c = fill_seg(test, f, 8);
	KUNIT_ASSERT_TRUE(test, open_seg(test, f, DEMOTE, MAX_IDS));
	KUNIT_EXPECT_EQ(test, kvt_log_victim(&f->l), KVT_NO_SEG);
	del(test, f, a * SEG_UNITS, 8);
	del(test, f, b * SEG_UNITS, 8);
	del(test, f, b * SEG_UNITS + 8, 8);
	KUNIT_EXPECT_EQ(test, kvt_log_victim(&f->l), b);
	KUNIT_EXPECT_EQ(test, (u32)f->segs[b].state, (u32)KVT_SEG_CLEANING);
	KUNIT_EXPECT_EQ(test, kvt_log_victim(&f->l), a);
	KUNIT_EXPECT_EQ(test, kvt_log_victim(&f->l), KVT_NO_SEG);
	/* Given up half way: sealed again, and a candidate again. */
	give_back(test, f, kvt_log_clean_end(&f->l, b));
	KUNIT_EXPECT_EQ(test, (u32)f->segs[b].state, (u32)KVT_SEG_SEALED);
	KUNIT_EXPECT_EQ(test, kvt_log_victim(&f->l), b);
	/* A segment being written is left alone, the open one in any case. */
	unit = kvt_log_alloc(&f->l, DEMOTE, 8, 1);
	del(test, f, unit, 8);
	KUNIT_EXPECT_EQ(test, kvt_log_victim(&f->l), KVT_NO_SEG);
	KUNIT_EXPECT_EQ(test, (u32)f->segs[c].state, (u32)KVT_SEG_SEALED);
	open = f->l.open[DEMOTE];
	put(test, f, DEMOTE, 8, 2);
	KUNIT_ASSERT_TRUE(test, open_seg(test, f, DEMOTE, MAX_IDS));
	KUNIT_EXPECT_EQ(test, kvt_log_victim(&f->l), KVT_NO_SEG);
	give_back(test, f, kvt_log_write_done(&f->l, unit));
	KUNIT_EXPECT_EQ(test, kvt_log_victim(&f->l), open);
	log_consistent(test, f);
}

/* The victim is looked at and left as it is. */
static u32 victim(struct kunit *test, struct fixture *f)
{
	u32 seg = kvt_log_victim(&f->l);

	if (seg != KVT_NO_SEG)
		give_back(test, f, kvt_log_clean_end(&f->l, seg));
	return seg;
}

/* What has just been carried has little in it: if that gains nothing others come first. */
static void log_victim_after_one_in_vain(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 demoted = fill_seg(test, f, 8), carried, i;
	struct kvt_log *l = &f->l;
	u64 room;

	KUNIT_ASSERT_TRUE(test, open_seg(test, f, DEMOTE, MAX_IDS));
	del(test, f, demoted * SEG_UNITS, 8);
	KUNIT_ASSERT_TRUE(test, open_seg(test, f, CARRY, MAX_IDS));
	carried = l->open[CARRY];
	put(test, f, CARRY, 4, 1);
	room = kvt_log_room(l);
	KUNIT_EXPECT_EQ(test, room, (u64)(l->nr_free + 3) * SEG_UNITS - 4);
	KUNIT_ASSERT_TRUE(test, open_seg(test, f, CARRY, MAX_IDS));
	KUNIT_EXPECT_EQ(test, kvt_log_room(l), room - SEG_UNITS + 4);
	KUNIT_EXPECT_EQ(test, victim(test, f), carried);
	kvt_log_emptied(l, true, kvt_log_room(l) - SEG_UNITS / 8);
	KUNIT_EXPECT_EQ(test, victim(test, f), carried);
	kvt_log_emptied(l, false, kvt_log_room(l));
	KUNIT_EXPECT_EQ(test, victim(test, f), carried);
	kvt_log_emptied(l, true, kvt_log_room(l) - SEG_UNITS / 8 + 1);
	/* What demotions begin meanwhile is neither gained nor lost. */
	put(test, f, DEMOTE, SEG_UNITS, 1);
	room = kvt_log_room(l);
	KUNIT_ASSERT_TRUE(test, open_seg(test, f, DEMOTE, MAX_IDS));
	KUNIT_EXPECT_EQ(test, kvt_log_room(l), room);
	/* Nor does what is in the others matter, or a cheap one would never have its turn again. */
	for (i = 0; i < KVT_LOG_VAIN; i++) {
		KUNIT_EXPECT_EQ(test, victim(test, f), demoted);
		kvt_log_emptied(l, false, kvt_log_room(l));
	}
	KUNIT_EXPECT_EQ(test, victim(test, f), carried);
	/* When there are no others those are as good as any: it is a new round. */
	kvt_log_emptied(l, true, kvt_log_room(l));
	kvt_log_pass_over(l, demoted);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, victim(test, f), carried);
}

/* One that could not be emptied does not keep the cleaner from all others. */
static void log_victim_passed_over(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 a, b;

	a = fill_seg(test, f, 8);
	b = fill_seg(test, f, 8);
	KUNIT_ASSERT_TRUE(test, open_seg(test, f, DEMOTE, MAX_IDS));
	del(test, f, a * SEG_UNITS, 8);
	del(test, f, a * SEG_UNITS + 8, 8);
	del(test, f, b * SEG_UNITS, 8);
	KUNIT_ASSERT_EQ(test, kvt_log_victim(&f->l), a);
	kvt_log_pass_over(&f->l, a);
	give_back(test, f, kvt_log_clean_end(&f->l, a));
	KUNIT_EXPECT_EQ(test, kvt_log_victim(&f->l), b);
	kvt_log_pass_over(&f->l, b);
	give_back(test, f, kvt_log_clean_end(&f->l, b));
	/* Both were: from the beginning. */
	KUNIT_EXPECT_EQ(test, kvt_log_victim(&f->l), a);
	kvt_log_pass_over(&f->l, a);
	give_back(test, f, kvt_log_clean_end(&f->l, a));
	KUNIT_EXPECT_EQ(test, kvt_log_victim(&f->l), b);
	log_consistent(test, f);
}

/* A segment that is not the cleaner's any more is left as it is. */
static void log_clean_end_once(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 seg = fill_seg(test, f, 32), nr_free;

	KUNIT_ASSERT_TRUE(test, open_seg(test, f, DEMOTE, MAX_IDS));
	del(test, f, seg * SEG_UNITS, 32);
	KUNIT_ASSERT_EQ(test, kvt_log_victim(&f->l), seg);
	del(test, f, seg * SEG_UNITS + 32, 32);
	give_back(test, f, kvt_log_clean_end(&f->l, seg));
	nr_free = f->l.nr_free;
	KUNIT_EXPECT_FALSE(test, kvt_log_clean_end(&f->l, seg));
	KUNIT_EXPECT_EQ(test, f->l.nr_free, nr_free);
	KUNIT_EXPECT_EQ(test, (u32)f->segs[seg].state, (u32)KVT_SEG_FREE);
	log_consistent(test, f);
}

/* A segment that dies while it is cleaned is free at the end, not before. */
static void log_cleaning_ends(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 seg = fill_seg(test, f, 32);

	KUNIT_ASSERT_TRUE(test, open_seg(test, f, DEMOTE, MAX_IDS));
	del(test, f, seg * SEG_UNITS, 32);
	KUNIT_ASSERT_EQ(test, kvt_log_victim(&f->l), seg);
	del(test, f, seg * SEG_UNITS + 32, 32);
	KUNIT_EXPECT_EQ(test, (u32)f->segs[seg].state, (u32)KVT_SEG_CLEANING);
	KUNIT_EXPECT_TRUE(test, f->segs[seg].ids);
	give_back(test, f, kvt_log_clean_end(&f->l, seg));
	KUNIT_EXPECT_EQ(test, (u32)f->segs[seg].state, (u32)KVT_SEG_FREE);
	log_consistent(test, f);
}

/*
 * Regression: a tail that no block fits in is not worth a cleaning, or the
 * cleaner would rewrite the device for ever without gaining a unit.
 */
static void log_no_victim_without_gain(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 seg;

	seg = fill_seg(test, f, 20);
	fill_seg(test, f, 20);
	KUNIT_ASSERT_TRUE(test, open_seg(test, f, DEMOTE, MAX_IDS));
	KUNIT_EXPECT_EQ(test, kvt_log_victim(&f->l), KVT_NO_SEG);
	del(test, f, seg * SEG_UNITS + 20, 20);
	KUNIT_EXPECT_EQ(test, kvt_log_victim(&f->l), seg);
}

/* A block's id changes wherever its segment has it, and in no other segment. */
static void log_ids_are_renamed(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 a = fill_seg(test, f, 16), b = fill_seg(test, f, 16);
	u32 was = f->segs[a].ids[1], other = f->segs[b].ids[1], i, nr = 0;

	f->segs[a].ids[2] = was;
	kvt_log_rename(&f->l, a * SEG_UNITS + 16, was, was + 1000);
	for (i = 0; i < f->segs[a].nr_ids; i++) {
		KUNIT_EXPECT_NE(test, f->segs[a].ids[i], was);
		nr += f->segs[a].ids[i] == was + 1000;
	}
	KUNIT_EXPECT_EQ(test, nr, 2u);
	KUNIT_EXPECT_EQ(test, f->segs[b].ids[1], other);
}

/* What is a copy counts as dead when a segment is chosen, and is counted apart. */
static void log_copies_go_first(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 a = fill_seg(test, f, 16), b = fill_seg(test, f, 16);

	KUNIT_ASSERT_TRUE(test, open_seg(test, f, DEMOTE, MAX_IDS));
	KUNIT_EXPECT_EQ(test, kvt_log_victim(&f->l), KVT_NO_SEG);
	kvt_log_copy(&f->l, b * SEG_UNITS, 16, true);
	KUNIT_EXPECT_EQ(test, f->l.copy_units, 16ull);
	KUNIT_EXPECT_EQ(test, kvt_log_used(&f->l), f->l.live_units - 16);
	KUNIT_EXPECT_EQ(test, kvt_seg_needed(&f->segs[b]), SEG_UNITS - 16u);
	KUNIT_EXPECT_EQ(test, kvt_log_victim(&f->l), b);
	give_back(test, f, kvt_log_clean_end(&f->l, b));
	/* The same without a copy is cheaper: nothing is lost. */
	del(test, f, a * SEG_UNITS, 16);
	KUNIT_EXPECT_EQ(test, kvt_log_victim(&f->l), a);
	give_back(test, f, kvt_log_clean_end(&f->l, a));
	kvt_log_copy(&f->l, b * SEG_UNITS, 16, false);
	KUNIT_EXPECT_EQ(test, f->l.copy_units, 0ull);
	KUNIT_EXPECT_EQ(test, kvt_seg_needed(&f->segs[b]), 0u + SEG_UNITS);
	log_consistent(test, f);
}

/* Segments that are bad are no room: what fills the others makes the log dense. */
static void log_dense_without_bad_ones(struct kunit *test)
{
	static const struct kvt_seg bad = { .state = KVT_SEG_BAD };
	struct fixture *f = setup(test);
	u32 i;

	kvt_log_restore(&f->l, 0, &bad);
	kvt_log_restore(&f->l, 1, &bad);
	for (i = 0; i < (NR_SEGS - 2) / 2; i++) {
		KUNIT_EXPECT_FALSE(test, kvt_log_dense(&f->l));
		fill_seg(test, f, 8);
	}
	KUNIT_EXPECT_TRUE(test, kvt_log_dense(&f->l));
}

/* What is dead is as good as free, though it is not to be written yet. */
static void log_dead_are_room(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 seg[NR_SEGS], n, k, i;

	for (n = 0; f->l.nr_free > 1; n++)
		seg[n] = fill_seg(test, f, 8);
	f->l.hold = true;
	for (k = 0; f->l.nr_free + k <= kvt_log_goal(&f->l); k++) {
		KUNIT_EXPECT_TRUE(test, kvt_log_tight(&f->l));
		for (i = 0; i < SEG_UNITS; i += 8)
			del(test, f, seg[k] * SEG_UNITS + i, 8);
		log_consistent(test, f);
	}
	KUNIT_EXPECT_EQ(test, f->l.nr_free, 1u);
	KUNIT_EXPECT_FALSE(test, kvt_log_tight(&f->l));
	for (i = 0; i < k; i++) {
		kvt_log_release(&f->l, seg[i], false);
		KUNIT_EXPECT_FALSE(test, kvt_log_tight(&f->l));
	}
	for (i = 0; i < k; i++)
		give_back(test, f, kvt_log_stale_ids(&f->l));
	log_consistent(test, f);
}

/* As long as much is used and every segment is full of it, nothing is to be carried. */
static void log_dense_is_evicted_from(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 seg[NR_SEGS], n, nr, i;

	KUNIT_EXPECT_FALSE(test, kvt_log_dense(&f->l));
	f->l.keep[DEMOTE] = 1;
	for (n = 0; f->l.nr_free > 1; n++) {
		/* There are segments for the taking, until the cleaner has to see to that. */
		KUNIT_EXPECT_EQ(test, kvt_log_tight(&f->l),
				n > 0 && f->l.nr_free <= kvt_log_goal(&f->l));
		KUNIT_EXPECT_EQ(test, kvt_log_dense(&f->l),
				n > 1 && (u64)n * SEG_UNITS * 100 >
				(u64)(NR_SEGS - min(NR_SEGS / 2, 4)) * SEG_UNITS *
				KVT_LOG_WELL_USED);
		seg[n] = fill_seg(test, f, 8);
	}
	KUNIT_ASSERT_TRUE(test, kvt_log_dense(&f->l));
	KUNIT_EXPECT_TRUE(test, kvt_log_tight(&f->l));
	/* One that is cheap is enough, dead or copies. */
	for (i = 0; i < SEG_UNITS - 8; i += 8) {
		if (SEG_UNITS - i > SEG_UNITS / KVT_SEG_CHEAP)
			KUNIT_EXPECT_TRUE(test, kvt_log_dense(&f->l));
		kvt_log_copy(&f->l, seg[0] * SEG_UNITS + i, 8, true);
	}
	KUNIT_EXPECT_FALSE(test, kvt_log_dense(&f->l));
	/* Nothing has to go for a write then: well used or not. */
	KUNIT_EXPECT_LT(test, (u64)(NR_SEGS - min(NR_SEGS / 2, 4)) * SEG_UNITS *
			KVT_LOG_WELL_USED, kvt_log_used(&f->l) * 100);
	KUNIT_EXPECT_FALSE(test, kvt_log_tight(&f->l));
	for (i = 0; i < SEG_UNITS - 8; i += 8)
		kvt_log_copy(&f->l, seg[0] * SEG_UNITS + i, 8, false);
	KUNIT_ASSERT_TRUE(test, kvt_log_dense(&f->l));
	/* And so is a hole here and there, when there are many. */
	for (nr = n, n = 0; n < nr && kvt_log_dense(&f->l); n++) {
		for (i = 0; i < SEG_UNITS * 3 / 4 && f->segs[seg[n]].state == KVT_SEG_SEALED; i += 8)
			del(test, f, seg[n] * SEG_UNITS + i, 8);
	}
	KUNIT_EXPECT_LT(test, 1u, n);
	KUNIT_EXPECT_FALSE(test, kvt_log_dense(&f->l));
	/* But what is written then has something carried: that is no room. */
	KUNIT_EXPECT_TRUE(test, kvt_log_tight(&f->l));
	KUNIT_EXPECT_TRUE(test, kvt_log_used(&f->l) * 100 <=
			  (u64)(NR_SEGS - min(NR_SEGS / 2, 4)) * SEG_UNITS *
			  KVT_LOG_WELL_USED);
	log_consistent(test, f);
}

/* What is remembered of that is what a look at all segments finds. */
static void dense_is_as_seen(struct kunit *test, struct kvt_log *l)
{
	u32 i, least = ~0u;
	bool none;

	for (i = 0; i < l->nr_segs; i++) {
		if (l->segs[i].state == KVT_SEG_SEALED && !l->segs[i].writes)
			least = min(least, kvt_seg_needed(&l->segs[i]));
	}
	none = least != ~0u && least > l->seg_units / KVT_SEG_CHEAP;
	KUNIT_ASSERT_EQ(test, kvt_log_tight(l), l->nr_free + l->nr_empty <= kvt_log_goal(l) && none);
	KUNIT_ASSERT_EQ(test, kvt_log_dense(l), none &&
			kvt_log_used(l) * 100 >
			(u64)(l->nr_segs - min(l->nr_segs / 2, 4u)) * l->seg_units *
			KVT_LOG_WELL_USED);
}

/* Blocks in the soak below: where, how long. */
struct soak {
	u32 unit[MAX_IDS * NR_SEGS];
	u32 units[MAX_IDS * NR_SEGS];
	u64 live;
	u64 rnd;
};

/* Carries what is live out of a victim, as the cleaner does. False: none. */
static bool soak_clean(struct kunit *test, struct fixture *f, struct soak *s)
{
	u32 seg = kvt_log_victim(&f->l), i, unit;

	if (seg == KVT_NO_SEG)
		return false;
	for (i = 0; i < ARRAY_SIZE(s->unit); i++) {
		if (!s->units[i] || kvt_log_seg_of(&f->l, s->unit[i]) != seg)
			continue;
		if (kvt_log_needs_segment(&f->l, CARRY, s->units[i]))
			KUNIT_ASSERT_TRUE(test, open_seg(test, f, CARRY, MAX_IDS));
		unit = put(test, f, CARRY, s->units[i], i + 1);
		KUNIT_ASSERT_NE(test, unit, KVT_NO_UNIT);
		del(test, f, s->unit[i], s->units[i]);
		s->unit[i] = unit;
	}
	give_back(test, f, kvt_log_clean_end(&f->l, seg));
	KUNIT_ASSERT_EQ(test, (u32)f->segs[seg].state, (u32)KVT_SEG_FREE);
	return true;
}

static void soak_put(struct kunit *test, struct fixture *f, struct soak *s, u32 i, u32 units)
{
	u32 tries;

	for (tries = 0; kvt_log_needs_segment(&f->l, DEMOTE, units); tries++) {
		if (open_seg(test, f, DEMOTE, MAX_IDS))
			continue;
		KUNIT_ASSERT_TRUE(test, soak_clean(test, f, s));
		KUNIT_ASSERT_LT(test, tries, 4u * NR_SEGS);
	}
	s->unit[i] = put(test, f, DEMOTE, units, i + 1);
	KUNIT_ASSERT_NE(test, s->unit[i], KVT_NO_UNIT);
	s->units[i] = units;
	s->live += units;
}

/*
 * Half full with blocks of mixed sizes that die at random, the cleaner always
 * finds room: every victim can be emptied into the carry head and comes free,
 * in a bounded number of rounds, and no block's units are given twice.
 */
static void log_cleaner_never_stuck(struct kunit *test)
{
	struct fixture *f = setup(test);
	struct soak *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	u8 *owned = kunit_kzalloc(test, NR_SEGS * SEG_UNITS, GFP_KERNEL);
	u32 step, i, k, units;

	KUNIT_ASSERT_NOT_NULL(test, s);
	KUNIT_ASSERT_NOT_NULL(test, owned);
	s->rnd = 5;
	for (step = 0; step < 6000; step++) {
		i = kvt_test_random(&s->rnd) % ARRAY_SIZE(s->unit);
		units = 1 + kvt_test_random(&s->rnd) % 20;
		if (s->units[i]) {
			del(test, f, s->unit[i], s->units[i]);
			s->live -= s->units[i];
			s->units[i] = 0;
		} else if (s->live + units <= (NR_SEGS - 2) * SEG_UNITS / 2) {
			soak_put(test, f, s, i, units);
		}
		KUNIT_ASSERT_EQ(test, f->l.live_units, s->live);
		dense_is_as_seen(test, &f->l);
		if (step % 50)
			continue;
		log_consistent(test, f);
		memset(owned, 0, NR_SEGS * SEG_UNITS);
		for (i = 0; i < ARRAY_SIZE(s->unit); i++) {
			for (k = 0; k < s->units[i]; k++)
				KUNIT_ASSERT_EQ(test, owned[s->unit[i] + k]++, 0);
		}
	}
}

#define CHURN_SEGS	14
#define CHURN_UNITS	60
#define CHURN_BLOCKS	((CHURN_SEGS - 3) * CHURN_UNITS * 92 / 100)
#define CHURN_STEPS	(4 * CHURN_SEGS * CHURN_UNITS)
#define CHURN_REUSED	12	/* percent */

/*
 * A cache on a log: @used[i] tells when block i was used last, 0: it is not there; @free
 * are arrays for ids.
 */
struct churn {
	struct kvt_log l;
	struct kvt_seg segs[CHURN_SEGS];
	u32 ids[CHURN_SEGS + 1][CHURN_UNITS];
	u32 *free[CHURN_SEGS + 1];
	u32 nr_free;
	u32 unit[CHURN_BLOCKS];
	u32 used[CHURN_BLOCKS];
	u32 now;
	u32 carried;
	u64 rnd;
};

static void churn_keep(struct churn *c, u32 *ids)
{
	if (ids)
		c->free[c->nr_free++] = ids;
}

static u32 churn_put(struct churn *c, enum kvt_log_head head, u32 id)
{
	u32 *ids, unit;

	if (kvt_log_needs_segment(&c->l, head, 1)) {
		ids = c->free[--c->nr_free];
		churn_keep(c, kvt_log_open(&c->l, head, ids, CHURN_UNITS));
	}
	unit = kvt_log_alloc(&c->l, head, 1, id);
	if (unit != KVT_NO_UNIT)
		churn_keep(c, kvt_log_write_done(&c->l, unit));
	return unit;
}

static void churn_evict(struct churn *c)
{
	u32 i, oldest = 0;

	for (i = 1; i < CHURN_BLOCKS; i++) {
		if (c->used[i] && (!c->used[oldest] || c->used[i] < c->used[oldest]))
			oldest = i;
	}
	c->used[oldest] = 0;
	churn_keep(c, kvt_log_free(&c->l, c->unit[oldest], 1));
}

/* As the driver's cleaner does. */
static void churn_clean(struct kunit *test, struct churn *c)
{
	u32 seg, i, unit;

	dense_is_as_seen(test, &c->l);
	if (kvt_log_dense(&c->l)) {
		churn_evict(c);
		return;
	}
	seg = kvt_log_victim(&c->l);
	KUNIT_ASSERT_NE(test, seg, KVT_NO_SEG);
	for (i = 0; i < CHURN_BLOCKS; i++) {
		if (!c->used[i] || kvt_log_seg_of(&c->l, c->unit[i]) != seg)
			continue;
		unit = churn_put(c, CARRY, i);
		KUNIT_ASSERT_NE(test, unit, KVT_NO_UNIT);
		churn_keep(c, kvt_log_free(&c->l, c->unit[i], 1));
		c->unit[i] = unit;
		c->carried++;
	}
	churn_keep(c, kvt_log_clean_end(&c->l, seg));
}

/* A new block; now and then an old one is used again, and stays where it is. */
static void churn_step(struct kunit *test, struct churn *c)
{
	u32 i, unit;

	for (i = 0; c->used[i]; i++) {
		if (i == CHURN_BLOCKS - 1) {
			churn_evict(c);
			i = 0;
		}
	}
	while ((unit = churn_put(c, DEMOTE, i)) == KVT_NO_UNIT)
		churn_clean(test, c);
	c->unit[i] = unit;
	c->used[i] = ++c->now;
	i = kvt_test_random(&c->rnd) % CHURN_BLOCKS;
	if (kvt_test_random(&c->rnd) % 100 < CHURN_REUSED && c->used[i])
		c->used[i] = ++c->now;
}

/*
 * A cache that evicts what was used longest ago, and finds one block in eight worth
 * keeping, has little to carry, however full its log.
 */
static void log_churn_carries_little(struct kunit *test)
{
	struct churn *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, c);
	kvt_log_init(&c->l, c->segs, CHURN_SEGS, CHURN_UNITS);
	c->l.keep[DEMOTE] = 2;
	for (i = 0; i < ARRAY_SIZE(c->ids); i++)
		churn_keep(c, c->ids[i]);
	c->rnd = 11;
	for (i = 0; i < CHURN_STEPS; i++)
		churn_step(test, c);
	KUNIT_EXPECT_LT(test, 0u, c->carried);
	KUNIT_EXPECT_LT(test, c->carried * 100, 15u * CHURN_STEPS);
	KUNIT_EXPECT_LT(test, (u64)(CHURN_SEGS - 4) * CHURN_UNITS * KVT_LOG_WELL_USED,
			(kvt_log_used(&c->l) + CHURN_UNITS) * 100);
}

/* A sealed segment's ids move to a shorter array; one that is open, or has more, keeps its own. */
static void log_ids_are_fitted(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 shorter[MAX_IDS], i, seg;

	KUNIT_ASSERT_TRUE(test, open_seg(test, f, DEMOTE, MAX_IDS));
	for (i = 0; i < 5; i++)
		kvt_log_alloc(&f->l, DEMOTE, 2, 70 + i);
	seg = f->l.open[DEMOTE];
	KUNIT_EXPECT_PTR_EQ(test, kvt_log_fit(&f->l, seg, shorter, 5), &shorter[0]);
	kvt_log_seal(&f->l, DEMOTE);
	KUNIT_EXPECT_PTR_EQ(test, kvt_log_fit(&f->l, seg, shorter, 4), &shorter[0]);
	KUNIT_EXPECT_PTR_EQ(test, kvt_log_fit(&f->l, seg, shorter, MAX_IDS), &shorter[0]);
	KUNIT_EXPECT_EQ(test, f->segs[seg].max_ids, (u32)MAX_IDS);
	give_back(test, f, kvt_log_fit(&f->l, seg, shorter, 5));
	KUNIT_EXPECT_PTR_EQ(test, f->segs[seg].ids, &shorter[0]);
	KUNIT_EXPECT_EQ(test, f->segs[seg].max_ids, 5u);
	KUNIT_EXPECT_EQ(test, f->segs[seg].nr_ids, 5u);
	for (i = 0; i < 5; i++)
		KUNIT_EXPECT_EQ(test, shorter[i], 70 + i);
}

static struct kunit_case log_cases[] = {
	KUNIT_CASE(log_heads_are_apart),
	KUNIT_CASE(log_segment_bounds),
	KUNIT_CASE(log_retires_when_quiet),
	KUNIT_CASE(log_open_stays),
	KUNIT_CASE(log_keeps_a_spare),
	KUNIT_CASE(log_full_head_is_not_stuck),
	KUNIT_CASE(log_victim_is_cheapest),
	KUNIT_CASE(log_victim_after_one_in_vain),
	KUNIT_CASE(log_victim_passed_over),
	KUNIT_CASE(log_clean_end_once),
	KUNIT_CASE(log_cleaning_ends),
	KUNIT_CASE(log_no_victim_without_gain),
	KUNIT_CASE(log_ids_are_renamed),
	KUNIT_CASE(log_ids_are_fitted),
	KUNIT_CASE(log_copies_go_first),
	KUNIT_CASE(log_dense_is_evicted_from),
	KUNIT_CASE(log_dead_are_room),
	KUNIT_CASE(log_dense_without_bad_ones),
	KUNIT_CASE(log_cleaner_never_stuck),
	KUNIT_CASE(log_churn_carries_little),
	{ }
};

static struct kunit_suite log_suite = {
	.name = "kvt_log",
	.test_cases = log_cases,
};

kunit_test_suite(log_suite);
