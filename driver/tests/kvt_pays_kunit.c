// SPDX-License-Identifier: GPL-2.0
/*
 * When it pays to end dead segments: kvt_wlog_end_pays(), and which one is next.
 *
 * The writer's tables are made by hand here; that what becomes of an end is right is shown
 * with the writer's other tests.
 */
#include "kvt_kunit.h"
#include "../core/kvt_wlog.h"

#define SEGS	4u
#define USUAL	300u	/* kills in a segment */
#define NAMES	256u	/* namespaces */
#define CARRIED	0u	/* the carry head's place among those that are open */

/* A writer with some dead segments. @w is what is looked at. */
struct pays {
	struct kvt_wlog w;
	struct kvt_geometry geo;
	struct kvt_log log;
	struct kvt_seg segs[SEGS];
	struct kvt_wseg ws[SEGS];
};

/* The first @nr are dead, with so many kills each; none of these is obsolete for certain. */
static struct pays *pays_new(struct kunit *test, u32 nr, const u32 *kills)
{
	struct pays *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, p);
	p->geo.nr_segs = SEGS;
	p->log.segs = p->segs;
	p->log.nr_empty = nr;
	p->w.cfg.geo = &p->geo;
	p->w.cfg.log = &p->log;
	p->w.cfg.max_kills = USUAL / 3 * 4;
	p->w.cfg.max_ns = NAMES;
	p->w.segs = p->ws;
	p->w.obsoleted = 1000;
	p->w.head_open[KVT_HEAD_CARRY] = KVT_WLOG_OPENS;
	for (i = 0; i < SEGS; i++) {
		p->segs[i].state = i < nr ? KVT_SEG_EMPTY : KVT_SEG_SEALED;
		p->ws[i].nr_kills = i < nr ? kills[i] : 0;
		p->ws[i].nr_entries = p->ws[i].nr_kills;
		p->ws[i].fresh = p->w.obsoleted;
	}
	KUNIT_ASSERT_EQ(test, kvt_wlog_usual_kills(&p->w), USUAL);
	return p;
}

static void pays_if_two_go_in_one(struct kunit *test)
{
	struct pays *p = pays_new(test, 3, (const u32[]) { 250, 200, 99 });

	KUNIT_EXPECT_EQ(test, kvt_wlog_next_end(&p->w), 2u);
	KUNIT_EXPECT_FALSE(test, kvt_wlog_end_pays(&p->w));
	p->ws[2].nr_kills = 98;
	KUNIT_EXPECT_TRUE(test, kvt_wlog_end_pays(&p->w));
	/* Namespaces that have ended are no kills; of two that hold as little the order is by them. */
	p->ws[2].nr_entries = 298;
	KUNIT_EXPECT_TRUE(test, kvt_wlog_end_pays(&p->w));
	p->ws[1].nr_kills = 98;
	KUNIT_EXPECT_EQ(test, kvt_wlog_next_end(&p->w), 1u);
	p->ws[2].nr_defs = 200;
	KUNIT_EXPECT_EQ(test, kvt_wlog_next_end(&p->w), 2u);
	p->ws[2].nr_home = 200;
	KUNIT_EXPECT_EQ(test, kvt_wlog_next_end(&p->w), 1u);
	p->ws[1].nr_kills = 200;
	KUNIT_EXPECT_EQ(test, kvt_wlog_next_end(&p->w), 2u);
	/* With those that cannot be ended nothing can be put together. */
	p->ws[1].no_end = true;
	KUNIT_EXPECT_FALSE(test, kvt_wlog_end_pays(&p->w));
	p->ws[1].no_end = false;
	p->ws[1].phase = KVT_WSEG_ENDING;
	KUNIT_EXPECT_FALSE(test, kvt_wlog_end_pays(&p->w));
}

/* Of a segment in use blocks, kills and names are taken together; an eighth is to be gained. */
static void emptying_pays(struct kunit *test)
{
	struct pays *p = pays_new(test, 0, NULL);

	p->log.seg_units = 800;
	KUNIT_EXPECT_TRUE(test, kvt_wlog_empty_pays(&p->w, 0));
	p->segs[0].live = 700;
	KUNIT_EXPECT_TRUE(test, kvt_wlog_empty_pays(&p->w, 0));
	p->segs[0].live = 710;
	KUNIT_EXPECT_FALSE(test, kvt_wlog_empty_pays(&p->w, 0));
	/* Copies are given up. */
	p->segs[0].copies = 10;
	KUNIT_EXPECT_TRUE(test, kvt_wlog_empty_pays(&p->w, 0));
	/* Few blocks among so many kills would come to the next one just like that. */
	p->segs[0].copies = 0;
	p->segs[0].live = 7;
	p->ws[0].nr_kills = USUAL;
	p->ws[0].nr_entries = USUAL;
	KUNIT_EXPECT_FALSE(test, kvt_wlog_empty_pays(&p->w, 0));
	p->ws[0].nr_light = USUAL / 4;
	KUNIT_EXPECT_TRUE(test, kvt_wlog_empty_pays(&p->w, 0));
	p->ws[0].nr_home = NAMES / 4;
	KUNIT_EXPECT_FALSE(test, kvt_wlog_empty_pays(&p->w, 0));
	/* What has become obsolete since need not be carried. */
	p->ws[0].fresh -= USUAL / 2;
	KUNIT_EXPECT_TRUE(test, kvt_wlog_empty_pays(&p->w, 0));
}

static void pays_if_names_fit(struct kunit *test)
{
	struct pays *p = pays_new(test, 2, (const u32[]) { 10, 20 });
	struct kvt_wopen *o = &p->w.opens[CARRIED];

	p->ws[0].nr_home = 100;
	p->ws[1].nr_home = NAMES - 100;
	KUNIT_EXPECT_TRUE(test, kvt_wlog_end_pays(&p->w));
	p->ws[1].nr_home++;
	KUNIT_EXPECT_FALSE(test, kvt_wlog_end_pays(&p->w));
	p->w.head_open[KVT_HEAD_CARRY] = CARRIED;
	o->nr_ns = NAMES - 100;
	KUNIT_EXPECT_TRUE(test, kvt_wlog_end_pays(&p->w));
	o->nr_ns++;
	KUNIT_EXPECT_FALSE(test, kvt_wlog_end_pays(&p->w));
	/* Also if there is nothing else to be carried. */
	p->ws[0].nr_kills = 0;
	p->ws[0].nr_entries = 0;
	KUNIT_EXPECT_FALSE(test, kvt_wlog_end_pays(&p->w));
	p->ws[0].nr_home = 0;
	KUNIT_EXPECT_TRUE(test, kvt_wlog_end_pays(&p->w));
}

/* A namespace that has ended is nobody's to carry, wherever it was defined. */
static void pays_nothing_for_who_has_gone(struct kunit *test)
{
	struct pays *p = pays_new(test, 2, (const u32[]) { 10, 20 });
	struct kvt_ns_home home = { .member = 3, .seg = 1, .life = 9 };

	p->w.cfg.member = 3;
	p->ws[0].nr_home = 100;
	p->ws[1].nr_home = NAMES - 99;
	p->ws[1].life = 9;
	KUNIT_EXPECT_FALSE(test, kvt_wlog_end_pays(&p->w));
	/* Not here, and not in this life. */
	home.member = 2;
	kvt_wlog_unhome(&p->w, &home);
	home = (struct kvt_ns_home) { .member = 3, .seg = 1, .life = 8 };
	kvt_wlog_unhome(&p->w, &home);
	KUNIT_EXPECT_EQ(test, p->ws[1].nr_home, NAMES - 99);
	home.life = 9;
	kvt_wlog_unhome(&p->w, &home);
	KUNIT_EXPECT_TRUE(test, kvt_wlog_end_pays(&p->w));
	/* Once. */
	kvt_wlog_unhome(&p->w, &home);
	KUNIT_EXPECT_EQ(test, p->ws[1].nr_home, NAMES - 100);
}

/* No segment for an end is one thing; that none comes is another. */
static void stuck_if_nothing_comes(struct kunit *test)
{
	struct pays *p = pays_new(test, 2, (const u32[]) { 1, 1 });

	KUNIT_EXPECT_TRUE(test, kvt_wlog_stuck(&p->w));
	p->log.nr_free = 1;
	KUNIT_EXPECT_FALSE(test, kvt_wlog_stuck(&p->w));
	p->log.nr_free = 0;
	p->ws[3].phase = KVT_WSEG_TRIM;
	KUNIT_EXPECT_FALSE(test, kvt_wlog_stuck(&p->w));
	p->ws[3].phase = KVT_WSEG_ENDING;
	KUNIT_EXPECT_FALSE(test, kvt_wlog_stuck(&p->w));
	p->ws[3].phase = KVT_WSEG_NONE;
	p->w.head_open[KVT_HEAD_CARRY] = CARRIED;
	KUNIT_EXPECT_FALSE(test, kvt_wlog_stuck(&p->w));
	p->w.head_open[KVT_HEAD_CARRY] = KVT_WLOG_OPENS;
	KUNIT_EXPECT_TRUE(test, kvt_wlog_stuck(&p->w));
	p->w.given_up = true;
	KUNIT_EXPECT_FALSE(test, kvt_wlog_stuck(&p->w));
}

static void pays_if_it_goes_in_what_is_open(struct kunit *test)
{
	struct pays *p = pays_new(test, 1, (const u32[]) { 200 });
	struct kvt_wopen *o = &p->w.opens[CARRIED];

	KUNIT_EXPECT_FALSE(test, kvt_wlog_end_pays(&p->w));
	p->w.head_open[KVT_HEAD_CARRY] = CARRIED;
	o->nr_kills = 99;
	KUNIT_EXPECT_TRUE(test, kvt_wlog_end_pays(&p->w));
	o->nr_kills = 100;
	KUNIT_EXPECT_FALSE(test, kvt_wlog_end_pays(&p->w));
	o->nr_kills = 0;
	o->broken = true;
	KUNIT_EXPECT_FALSE(test, kvt_wlog_end_pays(&p->w));
	/* What holds nothing for others is always free for the price of its end. */
	p->ws[0].nr_kills = 0;
	p->ws[0].nr_entries = 0;
	KUNIT_EXPECT_TRUE(test, kvt_wlog_end_pays(&p->w));
}

static void pays_if_enough_may_be_obsolete(struct kunit *test)
{
	struct pays *p = pays_new(test, 2, (const u32[]) { 200, 200 });

	/* The same kill is in one of them only. */
	p->w.obsoleted += 101;
	KUNIT_EXPECT_FALSE(test, kvt_wlog_end_pays(&p->w));
	p->w.obsoleted++;
	KUNIT_EXPECT_TRUE(test, kvt_wlog_end_pays(&p->w));
	/* One has been written anew since, with what is needed. */
	p->ws[0].fresh = p->w.obsoleted;
	KUNIT_EXPECT_EQ(test, kvt_wlog_next_end(&p->w), 1u);
	KUNIT_EXPECT_TRUE(test, kvt_wlog_end_pays(&p->w));
	p->ws[1].fresh = p->w.obsoleted;
	KUNIT_EXPECT_FALSE(test, kvt_wlog_end_pays(&p->w));
	p->w.obsoleted += 200;
	KUNIT_EXPECT_TRUE(test, kvt_wlog_end_pays(&p->w));
	p->segs[1].state = KVT_SEG_SEALED;
	KUNIT_EXPECT_TRUE(test, kvt_wlog_end_pays(&p->w));
	p->w.obsoleted--;
	KUNIT_EXPECT_FALSE(test, kvt_wlog_end_pays(&p->w));
	p->segs[0].state = KVT_SEG_SEALED;
	KUNIT_EXPECT_EQ(test, kvt_wlog_next_end(&p->w), KVT_NO_SEG);
	KUNIT_EXPECT_FALSE(test, kvt_wlog_end_pays(&p->w));
}

/* Nothing is known of what a restart has found: it is tried. */
static void pays_after_a_restart(struct kunit *test)
{
	struct kvt_seg_found f = { .state = KVT_RC_SEALED, .life = 7, .nr_kills = 290 };
	struct pays *p = pays_new(test, 2, (const u32[]) { 290, 290 });

	p->w.obsoleted = U32_MAX;
	p->geo.seg_units = 256;
	KUNIT_EXPECT_TRUE(test, kvt_wlog_end_pays(&p->w));
	kvt_wlog_restore(&p->w, 0, &f, 0);
	kvt_wlog_restore(&p->w, 1, &f, 0);
	KUNIT_EXPECT_TRUE(test, kvt_wlog_end_pays(&p->w));
	KUNIT_EXPECT_EQ(test, p->ws[0].nr_kills, 290u);
	KUNIT_EXPECT_EQ(test, p->ws[0].nr_killed, 256u);
}

/* Of its own records, and ends: they take room, and do not count. */
static void pays_counts_what_is_for_others(struct kunit *test)
{
	struct pays *p = pays_new(test, 2, (const u32[]) { 200, 200 });
	struct kvt_kill k = { .seg = 2, .unit = 7 };

	KUNIT_EXPECT_FALSE(test, kvt_wlog_kill_light(1, &k));
	KUNIT_EXPECT_TRUE(test, kvt_wlog_kill_light(2, &k));
	k.unit = KVT_KILL_ALL;
	KUNIT_EXPECT_TRUE(test, kvt_wlog_kill_light(1, &k));
	p->ws[0].nr_light = 101;
	KUNIT_EXPECT_FALSE(test, kvt_wlog_end_pays(&p->w));
	p->ws[0].nr_light = 102;
	KUNIT_EXPECT_TRUE(test, kvt_wlog_end_pays(&p->w));
	/* Nor as names. */
	p->ws[0].nr_kills = 1000;
	p->ws[0].nr_light = 1000;
	p->ws[0].nr_entries = 1000;
	KUNIT_EXPECT_TRUE(test, kvt_wlog_end_pays(&p->w));
}

/* What an end says of a segment need not be said of its records as well. */
static void pays_nothing_for_its_own(struct kunit *test)
{
	struct pays *p = pays_new(test, 2, (const u32[]) { 1, 1 });
	struct kvt_kill k = { .seg = 1, .unit = 7, .life = 5 };

	p->ws[1].life = 5;
	p->ws[1].media_life = 5;
	KUNIT_EXPECT_TRUE(test, kvt_wlog_kill_outlives(&p->w, 0, &k));
	KUNIT_EXPECT_FALSE(test, kvt_wlog_kill_outlives(&p->w, 1, &k));
	/* Of what was there before, and is still to be found. */
	p->ws[1].life = 6;
	KUNIT_EXPECT_TRUE(test, kvt_wlog_kill_outlives(&p->w, 1, &k));
	p->ws[1].media_life = 6;
	KUNIT_EXPECT_FALSE(test, kvt_wlog_kill_outlives(&p->w, 1, &k));
	KUNIT_EXPECT_FALSE(test, kvt_wlog_kill_outlives(&p->w, 0, &k));
}

static struct kunit_case kvt_pays_cases[] = {
	KUNIT_CASE(pays_if_two_go_in_one),
	KUNIT_CASE(emptying_pays),
	KUNIT_CASE(pays_if_names_fit),
	KUNIT_CASE(pays_nothing_for_who_has_gone),
	KUNIT_CASE(stuck_if_nothing_comes),
	KUNIT_CASE(pays_if_it_goes_in_what_is_open),
	KUNIT_CASE(pays_if_enough_may_be_obsolete),
	KUNIT_CASE(pays_after_a_restart),
	KUNIT_CASE(pays_counts_what_is_for_others),
	KUNIT_CASE(pays_nothing_for_its_own),
	{ }
};

static struct kunit_suite kvt_pays_suite = {
	.name = "kvt_pays",
	.test_cases = kvt_pays_cases,
};
kunit_test_suite(kvt_pays_suite);
