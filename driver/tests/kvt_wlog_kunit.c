// SPDX-License-Identifier: GPL-2.0
/*
 * The writer, rule by rule, on a member in memory. That the rules together survive
 * crashes is the crash test's business (selftests/host/crash.h).
 */
#include "kvt_wlog_kunit.h"

/* What recovery finds is what was put, before and after the footer. */
static void wlog_round_trip(struct kunit *test)
{
	struct wf *f = wf_new(test);
	u32 a = put(test, f, DEMOTE, 1, 2, 0), b = put(test, f, DEMOTE, 2, 3, 0);
	u32 seg = a / TM_SEG_UNITS;

	kvt_wlog_written(&f->w, close_batch(test, f, DEMOTE), 0);
	put_durable(test, f, DEMOTE, 3);
	KUNIT_ASSERT_EQ(test, (u32)tm_recover(f->m, seg), (u32)KVT_RC_UNSEALED);
	KUNIT_ASSERT_EQ(test, f->m->nr_blocks, 3u);
	KUNIT_EXPECT_EQ(test, f->m->nr_ns, 1u);
	KUNIT_EXPECT_EQ(test, f->m->block[1].unit, b % TM_SEG_UNITS);
	KUNIT_EXPECT_EQ(test, f->m->block[1].key[0], 2);
	/* Dead before the footer: not in it. */
	KUNIT_EXPECT_EQ(test, (u32)kvt_wlog_free(&f->w, a, 2), (u32)KVT_W_OK);
	seal(test, f, DEMOTE);
	KUNIT_ASSERT_EQ(test, (u32)tm_recover(f->m, seg), (u32)KVT_RC_SEALED);
	KUNIT_ASSERT_EQ(test, f->m->nr_blocks, 2u);
	KUNIT_EXPECT_EQ(test, f->m->block[0].unit, b % TM_SEG_UNITS);
	KUNIT_EXPECT_EQ(test, f->m->found.nr_batches, 2u);
}

/* R3: no footer before a flush that was started after the last batch was written. */
static void wlog_footer_after_flush(struct kunit *test)
{
	struct wf *f = wf_new(test);
	u64 early;
	u32 batch;

	put(test, f, DEMOTE, 1, 1, 0);
	batch = close_batch(test, f, DEMOTE);
	KUNIT_ASSERT_EQ(test, (u32)kvt_wlog_seal(&f->w, DEMOTE), (u32)KVT_W_OK);
	KUNIT_EXPECT_EQ(test, kvt_wlog_footer_bytes(&f->w), 0u);
	early = kvt_wlog_flush_start(&f->w);
	kvt_wlog_written(&f->w, batch, 0);
	kvt_wlog_flush_done(&f->w, early);
	KUNIT_EXPECT_EQ(test, kvt_wlog_footer_bytes(&f->w), 0u);
	KUNIT_EXPECT_TRUE(test, kvt_wlog_work(&f->w) & KVT_WORK_FLUSH);
	flush(f);
	KUNIT_EXPECT_NE(test, kvt_wlog_footer_bytes(&f->w), 0u);
	KUNIT_EXPECT_TRUE(test, kvt_wlog_work(&f->w) & KVT_WORK_FOOTER);
}

/* R5: not durable before the batches in front of it are. */
static void wlog_durable_in_order(struct kunit *test)
{
	struct wf *f = wf_new(test);
	struct kvt_wlog_done d;
	struct kvt_wlog_fence s;
	u32 first, second;

	put(test, f, DEMOTE, 1, 1, 0);
	first = close_batch(test, f, DEMOTE);
	put(test, f, DEMOTE, 2, 1, 0);
	second = close_batch(test, f, DEMOTE);
	kvt_wlog_sync(&f->w, &s);
	kvt_wlog_written(&f->w, second, 0);
	kvt_wlog_flush_done(&f->w, kvt_wlog_flush_start(&f->w));
	KUNIT_EXPECT_FALSE(test, kvt_wlog_advance(&f->w, &d));
	kvt_wlog_written(&f->w, first, 0);
	KUNIT_EXPECT_FALSE(test, kvt_wlog_advance(&f->w, &d));
	KUNIT_EXPECT_FALSE(test, kvt_wlog_fence_passed(&f->w, &s));
	kvt_wlog_flush_done(&f->w, kvt_wlog_flush_start(&f->w));
	KUNIT_ASSERT_TRUE(test, kvt_wlog_advance(&f->w, &d));
	KUNIT_EXPECT_EQ(test, d.err, 0);
	KUNIT_EXPECT_EQ(test, d.nr_ids, 1u);
	KUNIT_EXPECT_EQ(test, f->segs[d.seg].ids[d.first_id], 1u);
	KUNIT_ASSERT_TRUE(test, kvt_wlog_advance(&f->w, &d));
	KUNIT_EXPECT_EQ(test, f->segs[d.seg].ids[d.first_id], 2u);
	KUNIT_EXPECT_FALSE(test, kvt_wlog_advance(&f->w, &d));
	KUNIT_EXPECT_TRUE(test, kvt_wlog_fence_passed(&f->w, &s));
}

/*
 * Regression: what follows a first batch that failed is lost, also when its own write
 * ends well after that has been settled.
 */
static void wlog_first_batch_fails(struct kunit *test)
{
	struct wf *f = wf_new(test);
	u32 a = put(test, f, DEMOTE, 1, 1, 0), first, second, seg = a / TM_SEG_UNITS;
	struct kvt_wlog_done d;

	first = close_batch(test, f, DEMOTE);
	put(test, f, DEMOTE, 2, 1, 0);
	second = close_batch(test, f, DEMOTE);
	kvt_wlog_unput(&f->w, a, 1);
	kvt_wlog_written(&f->w, first, -EIO);
	while (kvt_wlog_advance(&f->w, &d))
		KUNIT_EXPECT_EQ(test, d.err, -EIO);
	kvt_wlog_written(&f->w, second, 0);
	kvt_wlog_flush_done(&f->w, kvt_wlog_flush_start(&f->w));
	KUNIT_ASSERT_TRUE(test, kvt_wlog_advance(&f->w, &d));
	KUNIT_EXPECT_EQ(test, d.err, -EIO);
	KUNIT_EXPECT_EQ(test, f->segs[seg].ids[d.first_id], 2u);
	KUNIT_EXPECT_FALSE(test, kvt_wlog_advance(&f->w, &d));
	KUNIT_EXPECT_EQ(test, f->w.nr_lost, 2ull);
	KUNIT_EXPECT_TRUE(test, f->w.segs[seg].bad);
	KUNIT_EXPECT_EQ(test, kvt_wlog_footer_bytes(&f->w), 0u);
	KUNIT_EXPECT_EQ(test, (u32)f->segs[seg].state, (u32)KVT_SEG_SEALED);
}

static u32 end_one(struct kunit *test, struct wf *f, const struct kvt_kill *k, u32 nr)
{
	u32 seg = kvt_wlog_next_end(&f->w), i;
	enum kvt_wlog_status st;

	KUNIT_ASSERT_NE(test, seg, KVT_NO_SEG);
	st = kvt_wlog_end_start(&f->w, nr, 0);
	if (st == KVT_W_SEGMENT) {
		KUNIT_ASSERT_EQ(test, (u32)open_seg(f, CARRY, true), (u32)KVT_W_OK);
		st = kvt_wlog_end_start(&f->w, nr, 0);
	}
	KUNIT_ASSERT_EQ(test, (u32)st, (u32)KVT_W_OK);
	for (i = 0; i < nr; i++)
		kvt_wlog_end_kill(&f->w, &k[i]);
	KUNIT_ASSERT_EQ(test, (u32)kvt_wlog_end(&f->w, seg), (u32)KVT_W_OK);
	kvt_wlog_written(&f->w, close_batch(test, f, CARRY), 0);
	return seg;
}

/* R1, R2: a dead segment is free when its end is durable, and its kills with it. */
static void wlog_end(struct kunit *test)
{
	struct wf *f = wf_new(test);
	u32 a = put_durable(test, f, DEMOTE, 1), b, seg = a / TM_SEG_UNITS, i;
	struct kvt_kill k = { .seg = seg, .unit = a % TM_SEG_UNITS };
	bool all = false, one = false;

	k.life = f->w.segs[seg].life;
	put_durable(test, f, DEMOTE, 2);
	seal(test, f, DEMOTE);
	/* Another segment gets the kill of @a, and dies. */
	KUNIT_ASSERT_EQ(test, (u32)kvt_wlog_free(&f->w, a, 1), (u32)KVT_W_OK);
	b = put_durable(test, f, DEMOTE, 3);
	KUNIT_EXPECT_EQ(test, f->w.nr_pending, 0u);
	seal(test, f, DEMOTE);
	KUNIT_EXPECT_EQ(test, kvt_wlog_next_end(&f->w), KVT_NO_SEG);
	KUNIT_ASSERT_EQ(test, (u32)kvt_wlog_free(&f->w, b, 1), (u32)KVT_W_OK);
	KUNIT_EXPECT_EQ(test, kvt_wlog_next_end(&f->w), b / TM_SEG_UNITS);
	KUNIT_EXPECT_EQ(test, (u32)f->segs[b / TM_SEG_UNITS].state, (u32)KVT_SEG_EMPTY);
	tm_recover(f->m, b / TM_SEG_UNITS);
	KUNIT_ASSERT_EQ(test, f->m->nr_kills, 1u);
	KUNIT_EXPECT_EQ(test, f->w.segs[b / TM_SEG_UNITS].nr_kills, f->w.segs[seg].nr_killed);
	KUNIT_EXPECT_EQ(test, f->m->kill[0].life, k.life);
	KUNIT_EXPECT_EQ(test, end_one(test, f, &f->m->kill[0], 1), b / TM_SEG_UNITS);
	KUNIT_EXPECT_EQ(test, (u32)f->segs[b / TM_SEG_UNITS].state, (u32)KVT_SEG_EMPTY);
	flush(f);
	KUNIT_EXPECT_EQ(test, (u32)f->segs[b / TM_SEG_UNITS].state, (u32)KVT_SEG_FREE);
	tm_recover(f->m, f->log.open[CARRY]);
	for (i = 0; i < f->m->nr_kills; i++) {
		one |= f->m->kill[i].seg == seg && f->m->kill[i].unit == k.unit;
		all |= f->m->kill[i].seg == b / TM_SEG_UNITS && f->m->kill[i].unit == KVT_KILL_ALL;
	}
	KUNIT_EXPECT_TRUE(test, one && all);
	KUNIT_EXPECT_EQ(test, f->w.obsoleted - f->w.segs[f->log.open[CARRY]].fresh, 1ull);
	/* No longer needed as soon as the life that it names is over. */
	KUNIT_EXPECT_TRUE(test, kvt_wlog_kill_needed(&f->w, &k));
	k.life--;
	KUNIT_EXPECT_FALSE(test, kvt_wlog_kill_needed(&f->w, &k));
}

/* With discards an ended segment is free when it has got its own, or there will be none. */
static void wlog_trim(struct kunit *test)
{
	struct wf *f = wf_new(test);
	u32 seg[2], nr_free, i;

	f->w.cfg.trim = true;
	for (i = 0; i < 2; i++) {
		u32 unit = put_durable(test, f, DEMOTE, i + 1);

		seg[i] = unit / TM_SEG_UNITS;
		seal(test, f, DEMOTE);
		KUNIT_ASSERT_EQ(test, (u32)kvt_wlog_free(&f->w, unit, 1), (u32)KVT_W_OK);
		KUNIT_ASSERT_EQ(test, end_one(test, f, NULL, 0), seg[i]);
		KUNIT_EXPECT_EQ(test, kvt_wlog_next_trim(&f->w), KVT_NO_SEG);
		nr_free = f->log.nr_free;
		flush(f);
		KUNIT_EXPECT_EQ(test, kvt_wlog_next_trim(&f->w), seg[i]);
		KUNIT_EXPECT_TRUE(test, kvt_wlog_work(&f->w) & KVT_WORK_TRIM);
		KUNIT_EXPECT_EQ(test, (u32)f->segs[seg[i]].state, (u32)KVT_SEG_EMPTY);
		KUNIT_EXPECT_EQ(test, kvt_wlog_next_end(&f->w), KVT_NO_SEG);
		KUNIT_EXPECT_EQ(test, f->log.nr_free, nr_free);
		if (i)
			break;
		kvt_wlog_trimmed(&f->w, seg[i]);
		KUNIT_EXPECT_EQ(test, (u32)f->segs[seg[i]].state, (u32)KVT_SEG_FREE);
		KUNIT_EXPECT_EQ(test, f->log.nr_free, nr_free + 1);
		KUNIT_EXPECT_FALSE(test, kvt_wlog_work(&f->w) & KVT_WORK_TRIM);
	}
	/* Nobody is to wait for work that nobody does. */
	kvt_wlog_give_up(&f->w);
	KUNIT_EXPECT_EQ(test, kvt_wlog_work(&f->w), 0u);
	KUNIT_EXPECT_EQ(test, kvt_wlog_next_trim(&f->w), KVT_NO_SEG);
}

/* Is all there that an end would have to carry, of what is on the media now. */
static bool held_all(struct wf *f, u32 seg)
{
	tm_recover(f->m, seg);
	return kvt_wlog_held_all(&f->w, seg, &f->m->found);
}

/* Regression: with its first header damaged a segment looks free, and its kills were lost. */
static void wlog_held_all(struct kunit *test)
{
	struct wf *f = wf_new(test);
	u32 a = put_durable(test, f, DEMOTE, 1), b, c, seg, i;
	u8 *first, *second, *foot;

	put_durable(test, f, DEMOTE, 2);
	seal(test, f, DEMOTE);
	b = put_durable(test, f, DEMOTE, 3);
	seg = b / TM_SEG_UNITS;
	KUNIT_ASSERT_EQ(test, (u32)kvt_wlog_free(&f->w, a, 1), (u32)KVT_W_OK);
	c = put_durable(test, f, DEMOTE, 4);
	KUNIT_ASSERT_EQ(test, c / TM_SEG_UNITS, seg);
	KUNIT_EXPECT_TRUE(test, held_all(f, seg));
	seal(test, f, DEMOTE);
	KUNIT_EXPECT_TRUE(test, held_all(f, seg));
	first = tm_at(f->m, seg, 0);
	second = tm_at(f->m, seg, c % TM_SEG_UNITS - 1);
	foot = tm_at(f->m, seg, TM_SEG_UNITS - 1);
	/* The summary is as good as the headers, or they are as it. */
	second[100] ^= 1;
	KUNIT_EXPECT_TRUE(test, held_all(f, seg));
	foot[40] ^= 1;
	KUNIT_EXPECT_FALSE(test, held_all(f, seg));
	second[100] ^= 1;
	KUNIT_EXPECT_TRUE(test, held_all(f, seg));
	foot[40] ^= 1;
	/* But for the first one. */
	first[100] ^= 1;
	KUNIT_EXPECT_FALSE(test, held_all(f, seg));
	first[100] ^= 1;
	KUNIT_EXPECT_TRUE(test, held_all(f, seg));
	for (i = 0; i < 8; i++)
		first[i] = 0;
	KUNIT_EXPECT_FALSE(test, held_all(f, seg));
}

/* One that cannot be ended does not keep others from being ended. */
static void wlog_no_end(struct kunit *test)
{
	struct wf *f = wf_new(test);
	u32 a, b;

	a = put_durable(test, f, DEMOTE, 1);
	seal(test, f, DEMOTE);
	b = put_durable(test, f, DEMOTE, 2);
	seal(test, f, DEMOTE);
	KUNIT_ASSERT_EQ(test, (u32)kvt_wlog_free(&f->w, a, 1), (u32)KVT_W_OK);
	KUNIT_ASSERT_EQ(test, (u32)kvt_wlog_free(&f->w, b, 1), (u32)KVT_W_OK);
	a /= TM_SEG_UNITS;
	b /= TM_SEG_UNITS;
	KUNIT_EXPECT_EQ(test, kvt_wlog_next_end(&f->w), a);
	f->w.segs[a].no_end = true;
	KUNIT_EXPECT_EQ(test, kvt_wlog_next_end(&f->w), b);
	f->w.segs[b].no_end = true;
	KUNIT_EXPECT_EQ(test, kvt_wlog_next_end(&f->w), KVT_NO_SEG);
}

/*
 * Of a lost batch the caller gives back where carried blocks would have gone, when he
 * is told. Until then fences count it.
 */
static void wlog_lost_not_told(struct kunit *test)
{
	struct wf *f = wf_new(test);
	u32 src = put_durable(test, f, DEMOTE, 3), to, first, second;
	struct kvt_wlog_fence fence;
	struct kvt_wlog_done d;

	seal(test, f, DEMOTE);
	to = put(test, f, CARRY, 1, 1, 0);
	first = close_batch(test, f, CARRY);
	put(test, f, CARRY, 3, 1, src);
	second = close_batch(test, f, CARRY);
	kvt_wlog_unput(&f->w, to, 1);
	kvt_wlog_written(&f->w, second, 0);
	kvt_wlog_written(&f->w, first, -EIO);
	KUNIT_ASSERT_TRUE(test, kvt_wlog_advance(&f->w, &d));
	KUNIT_EXPECT_EQ(test, d.err, -EIO);
	kvt_wlog_fence(&f->w, &fence);
	KUNIT_EXPECT_EQ(test, fence.batch, f->w.ordinal);
	KUNIT_ASSERT_TRUE(test, kvt_wlog_advance(&f->w, &d));
	KUNIT_EXPECT_EQ(test, d.err, -EIO);
	KUNIT_EXPECT_FALSE(test, kvt_wlog_advance(&f->w, &d));
	/* Where it was is not given back. */
	KUNIT_EXPECT_EQ(test, f->segs[src / TM_SEG_UNITS].live, 1u);
}

/* R1: where a block was carried from is live until the copy is durable. */
static void wlog_carry(struct kunit *test)
{
	struct wf *f = wf_new(test);
	u32 a = put_durable(test, f, DEMOTE, 1), seg = a / TM_SEG_UNITS;

	seal(test, f, DEMOTE);
	put(test, f, CARRY, 1, 1, a);
	kvt_wlog_written(&f->w, close_batch(test, f, CARRY), 0);
	KUNIT_EXPECT_EQ(test, f->segs[seg].live, 1u);
	KUNIT_EXPECT_EQ(test, f->w.nr_pending, 0u);
	flush(f);
	KUNIT_EXPECT_EQ(test, f->segs[seg].live, 0u);
	KUNIT_EXPECT_EQ(test, (u32)f->segs[seg].state, (u32)KVT_SEG_EMPTY);
	KUNIT_EXPECT_EQ(test, f->w.nr_pending, 1u);
}

/* The ring is bounded; a kill leaves it when it is durable; a fence tells. */
static void wlog_kills_and_fences(struct kunit *test)
{
	struct wf *f = wf_new(test);
	struct kvt_wlog_fence fence;
	u32 unit[9], i, batch;

	for (i = 0; i < ARRAY_SIZE(unit); i++)
		unit[i] = put(test, f, DEMOTE, i + 1, 1, 0);
	kvt_wlog_written(&f->w, close_batch(test, f, DEMOTE), 0);
	flush(f);
	for (i = 0; i < 8; i++)
		KUNIT_ASSERT_EQ(test, (u32)kvt_wlog_free(&f->w, unit[i], 1), (u32)KVT_W_OK);
	KUNIT_EXPECT_EQ(test, kvt_wlog_kill_room(&f->w), 0u);
	KUNIT_EXPECT_EQ(test, (u32)kvt_wlog_free(&f->w, unit[8], 1), (u32)KVT_W_KILLS);
	KUNIT_EXPECT_TRUE(test, kvt_wlog_work(&f->w) & KVT_WORK_KILLS);
	kvt_wlog_fence(&f->w, &fence);
	KUNIT_EXPECT_FALSE(test, kvt_wlog_fence_passed(&f->w, &fence));
	KUNIT_ASSERT_EQ(test, (u32)kvt_wlog_start_kills(&f->w, DEMOTE), (u32)KVT_W_OK);
	batch = close_batch(test, f, DEMOTE);
	KUNIT_EXPECT_EQ(test, f->w.nr_pending, 0u);
	KUNIT_EXPECT_EQ(test, kvt_wlog_kill_room(&f->w), 0u);
	/* It fails: they wait again, and the segment takes no more. */
	kvt_wlog_written(&f->w, batch, -EIO);
	flush(f);
	KUNIT_EXPECT_EQ(test, f->w.nr_pending, 8u);
	KUNIT_EXPECT_EQ(test, (u32)kvt_wlog_start_kills(&f->w, DEMOTE), (u32)KVT_W_SEGMENT);
	KUNIT_ASSERT_EQ(test, (u32)open_seg(f, DEMOTE, false), (u32)KVT_W_OK);
	KUNIT_ASSERT_EQ(test, (u32)kvt_wlog_start_kills(&f->w, DEMOTE), (u32)KVT_W_OK);
	kvt_wlog_written(&f->w, close_batch(test, f, DEMOTE), 0);
	KUNIT_EXPECT_FALSE(test, kvt_wlog_fence_passed(&f->w, &fence));
	flush(f);
	KUNIT_EXPECT_TRUE(test, kvt_wlog_fence_passed(&f->w, &fence));
	KUNIT_EXPECT_EQ(test, kvt_wlog_kill_room(&f->w), 8u);
}

/* A move that is taken back: before the batch is closed it leaves nothing behind. */
static void wlog_unput(struct kunit *test)
{
	struct wf *f = wf_new(test);
	struct kvt_wlog_fence fence;
	u32 a = put(test, f, DEMOTE, 1, 1, 0), b = put(test, f, DEMOTE, 2, 1, 0), batch;

	kvt_wlog_unput(&f->w, a, 1);
	batch = close_batch(test, f, DEMOTE);
	kvt_wlog_fence(&f->w, &fence);
	kvt_wlog_unput(&f->w, b, 1);
	kvt_wlog_written(&f->w, batch, 0);
	KUNIT_EXPECT_EQ(test, f->log.live_units, 0ull);
	flush(f);
	KUNIT_EXPECT_EQ(test, f->w.nr_pending, 1u);
	KUNIT_EXPECT_FALSE(test, kvt_wlog_fence_passed(&f->w, &fence));
	tm_recover(f->m, a / TM_SEG_UNITS);
	KUNIT_ASSERT_EQ(test, f->m->nr_blocks, 1u);
	KUNIT_EXPECT_EQ(test, f->m->block[0].key[0], 2);
	KUNIT_ASSERT_EQ(test, (u32)kvt_wlog_start_kills(&f->w, DEMOTE), (u32)KVT_W_OK);
	kvt_wlog_written(&f->w, close_batch(test, f, DEMOTE), 0);
	flush(f);
	KUNIT_EXPECT_TRUE(test, kvt_wlog_fence_passed(&f->w, &fence));
}

/* R4, R6: superblocks after a flush, one at a time; nothing is written without. */
static void wlog_super(struct kunit *test)
{
	struct wf *f = wf_new(test);
	u64 generation = f->super.generation;
	u32 slot, first;

	put_durable(test, f, DEMOTE, 1);
	put(test, f, DEMOTE, 2, 1, 0);
	kvt_wlog_written(&f->w, close_batch(test, f, DEMOTE), 0);
	KUNIT_EXPECT_EQ(test, (u32)kvt_wlog_super(&f->w, &f->super, false, &slot),
			(u32)KVT_W_FLUSH);
	flush(f);
	KUNIT_EXPECT_EQ(test, (u32)kvt_wlog_super(&f->w, &f->super, true, &slot),
			(u32)KVT_W_BUSY);
	KUNIT_ASSERT_EQ(test, (u32)kvt_wlog_super(&f->w, &f->super, false, &first), 0u);
	KUNIT_EXPECT_EQ(test, f->super.generation, generation + 1);
	KUNIT_EXPECT_EQ(test, (u32)kvt_wlog_super(&f->w, &f->super, false, &slot),
			(u32)KVT_W_BUSY);
	/* It fails: the same place again, the other one is the good one. */
	kvt_wlog_super_written(&f->w, -EIO);
	flush(f);
	KUNIT_ASSERT_EQ(test, (u32)kvt_wlog_super(&f->w, &f->super, false, &slot), 0u);
	KUNIT_EXPECT_EQ(test, slot, first);
	kvt_wlog_super_written(&f->w, 0);
	KUNIT_EXPECT_EQ(test, (u32)kvt_wlog_super(&f->w, &f->super, false, &slot),
			(u32)KVT_W_FLUSH);
	flush(f);
	seal(test, f, DEMOTE);
	KUNIT_ASSERT_EQ(test, (u32)kvt_wlog_super(&f->w, &f->super, true, &slot), 0u);
	KUNIT_EXPECT_NE(test, slot, first);
	KUNIT_EXPECT_EQ(test, f->super.state, KVT_STATE_CLEAN);
	KUNIT_EXPECT_EQ(test, (u32)open_seg(f, DEMOTE, false), (u32)KVT_W_SUPER);
	kvt_wlog_super_written(&f->w, 0);
	flush(f);
	KUNIT_EXPECT_EQ(test, (u32)open_seg(f, DEMOTE, false), (u32)KVT_W_SUPER);
}

/* In a log what failed stays, and may be found: its generation is used up. */
static void wlog_super_zoned(struct kunit *test)
{
	struct wf *f = wf_new(test);
	u64 generation = f->super.generation;
	u32 slot, i;

	f->m->geo.zone_bytes = TM_SEG_BYTES;
	for (i = 1; i <= 3; i++) {
		KUNIT_ASSERT_EQ(test, (u32)kvt_wlog_super(&f->w, &f->super, false, &slot), 0u);
		KUNIT_EXPECT_EQ(test, f->super.generation, generation + i);
		KUNIT_EXPECT_EQ(test, kvt_wlog_generation(&f->w), generation);
		kvt_wlog_super_written(&f->w, i < 3 ? -EIO : 0);
		KUNIT_EXPECT_EQ(test, kvt_wlog_generation(&f->w), generation);
		flush(f);
	}
	KUNIT_EXPECT_EQ(test, kvt_wlog_generation(&f->w), generation + 3);
	KUNIT_ASSERT_EQ(test, (u32)kvt_wlog_super(&f->w, &f->super, false, &slot), 0u);
	KUNIT_EXPECT_EQ(test, f->super.generation, generation + 4);
	KUNIT_EXPECT_EQ(test, kvt_wlog_generation(&f->w), generation + 3);
}

/* Whatever is put, there is room for the summary; units are given once. */
static void wlog_room_for_summary(struct kunit *test)
{
	struct wf *f = wf_new(test);
	u64 rnd = 9;
	u32 n, seg, last = KVT_NO_SEG, unit, units;

	for (n = 1; n < 60 && f->log.nr_free > 3; n++) {
		units = 1 + kvt_test_random(&rnd) % 5;
		unit = put(test, f, DEMOTE, n, units, 0);
		seg = unit / TM_SEG_UNITS;
		KUNIT_ASSERT_TRUE(test, unit % TM_SEG_UNITS + units < TM_SEG_UNITS - 1);
		if (seg != last) {
			flush(f);
			while (write_footer(test, f))
				flush(f);
		}
		last = seg;
	}
	KUNIT_EXPECT_LE(test, f->log.nr_free, 3u);
	for (seg = 0; seg < TM_SEGS; seg++) {
		if (f->segs[seg].state == KVT_SEG_SEALED)
			KUNIT_EXPECT_EQ(test, (u32)tm_recover(f->m, seg), (u32)KVT_RC_SEALED);
	}
}

/* Longer than any segment; and limits that cannot work. */
static void wlog_limits(struct kunit *test)
{
	struct wf *f = wf_new(test);
	struct kvt_rec r = tm_rec(1, TM_SEG_UNITS);
	struct kvt_wlog_put p = { .rec = &r, .id = 1 };
	struct kvt_wlog_cfg cfg = f->w.cfg;
	struct kvt_wlog *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	u32 unit;

	KUNIT_ASSERT_NOT_NULL(test, w);
	KUNIT_EXPECT_EQ(test, (u32)kvt_wlog_put(&f->w, DEMOTE, &p, &unit), (u32)KVT_W_NEVER);
	KUNIT_EXPECT_EQ(test, (u32)kvt_wlog_end_start(&f->w, 20, 0), (u32)KVT_W_NEVER);
	cfg.ring = 9;
	KUNIT_EXPECT_EQ(test, kvt_wlog_init(w, &cfg, NULL), -EINVAL);
	cfg = f->w.cfg;
	cfg.free_aim = 5;
	KUNIT_EXPECT_EQ(test, kvt_wlog_init(w, &cfg, NULL), -EINVAL);
	cfg = f->w.cfg;
	cfg.max_kills = 10000;
	KUNIT_EXPECT_EQ(test, kvt_wlog_init(w, &cfg, NULL), -EINVAL);
	cfg = f->w.cfg;
	cfg.batch_blocks = KVT_BATCH_BLOCKS + 1;
	KUNIT_EXPECT_EQ(test, kvt_wlog_init(w, &cfg, NULL), -EINVAL);
}

/* Two free segments are left to others, one to the ends, but those take it. */
static void wlog_keeps_segments(struct kunit *test)
{
	struct wf *f = wf_new(test);
	u32 n = 1;

	while (f->log.nr_free > 2) {
		put_durable(test, f, DEMOTE, n++);
		seal(test, f, DEMOTE);
	}
	KUNIT_EXPECT_EQ(test, (u32)open_seg(f, DEMOTE, false), (u32)KVT_W_SPACE);
	put_durable(test, f, CARRY, n++);
	seal(test, f, CARRY);
	KUNIT_EXPECT_EQ(test, f->log.nr_free, 1u);
	KUNIT_EXPECT_EQ(test, (u32)open_seg(f, CARRY, false), (u32)KVT_W_SPACE);
	KUNIT_EXPECT_EQ(test, (u32)open_seg(f, CARRY, true), (u32)KVT_W_OK);
}

/* Blocks leave a doomed segment without a kill each; fences wait for its end. */
static void wlog_doom(struct kunit *test)
{
	struct wf *f = wf_new(test);
	u32 a = put_durable(test, f, DEMOTE, 1), seg = a / TM_SEG_UNITS;
	struct kvt_wlog_fence fence;

	seal(test, f, DEMOTE);
	KUNIT_ASSERT_TRUE(test, kvt_log_claim(&f->log, seg));
	kvt_wlog_doom(&f->w, seg);
	KUNIT_ASSERT_EQ(test, (u32)kvt_wlog_free(&f->w, a, 1), (u32)KVT_W_OK);
	KUNIT_EXPECT_EQ(test, f->w.nr_pending, 0u);
	kvt_log_clean_end(&f->log, seg);
	kvt_wlog_fence(&f->w, &fence);
	KUNIT_EXPECT_FALSE(test, kvt_wlog_fence_passed(&f->w, &fence));
	KUNIT_EXPECT_TRUE(test, kvt_wlog_work(&f->w) & KVT_WORK_END);
	KUNIT_EXPECT_EQ(test, end_one(test, f, NULL, 0), seg);
	KUNIT_EXPECT_FALSE(test, kvt_wlog_fence_passed(&f->w, &fence));
	flush(f);
	KUNIT_EXPECT_TRUE(test, kvt_wlog_fence_passed(&f->w, &fence));
}

/* One write that failed is too many; the footer is written, what is there is to be found. */
static void wlog_write_fault(struct kunit *test)
{
	struct wf *f = wf_new(test);
	u32 a = put_durable(test, f, DEMOTE, 1), seg = a / TM_SEG_UNITS;

	KUNIT_EXPECT_TRUE(test, kvt_wlog_write_fault(&f->w, seg));
	KUNIT_EXPECT_FALSE(test, kvt_wlog_write_fault(&f->w, seg));
	KUNIT_EXPECT_EQ(test, f->w.nr_worn, 1u);
	KUNIT_EXPECT_NE(test, put_durable(test, f, DEMOTE, 2) / TM_SEG_UNITS, seg);
	KUNIT_EXPECT_TRUE(test, write_footer(test, f));
	flush(f);
	KUNIT_ASSERT_EQ(test, (u32)kvt_wlog_free(&f->w, a, 1), (u32)KVT_W_OK);
	KUNIT_EXPECT_EQ(test, kvt_wlog_next_end(&f->w), seg);
}

/* Too many faults: nothing more goes there, and it is BAD as soon as it is empty. */
static void wlog_worn(struct kunit *test)
{
	struct wf *f = wf_new(test);
	u32 a = put_durable(test, f, DEMOTE, 1), b = put_durable(test, f, DEMOTE, 2), c, i;
	u32 seg = a / TM_SEG_UNITS, nr_free;

	KUNIT_ASSERT_EQ(test, b / TM_SEG_UNITS, seg);
	for (i = 1; i < KVT_WLOG_FAULTS_MAX; i++)
		KUNIT_EXPECT_FALSE(test, kvt_wlog_fault(&f->w, seg));
	KUNIT_EXPECT_EQ(test, f->log.open[DEMOTE], seg);
	KUNIT_EXPECT_TRUE(test, kvt_wlog_fault(&f->w, seg));
	KUNIT_EXPECT_FALSE(test, kvt_wlog_fault(&f->w, seg));
	KUNIT_EXPECT_EQ(test, f->w.nr_worn, 1u);
	KUNIT_EXPECT_EQ(test, (u32)f->segs[seg].state, (u32)KVT_SEG_SEALED);
	c = put_durable(test, f, DEMOTE, 3);
	KUNIT_EXPECT_NE(test, c / TM_SEG_UNITS, seg);
	/* It has its footer all the same: what is in it is to be found. */
	KUNIT_EXPECT_TRUE(test, write_footer(test, f));
	flush(f);
	KUNIT_ASSERT_EQ(test, (u32)kvt_wlog_free(&f->w, a, 1), (u32)KVT_W_OK);
	KUNIT_EXPECT_FALSE(test, kvt_wlog_work(&f->w) & KVT_WORK_END);
	KUNIT_ASSERT_EQ(test, (u32)kvt_wlog_free(&f->w, b, 1), (u32)KVT_W_OK);
	/* There are free ones enough. */
	KUNIT_EXPECT_LE(test, f->w.cfg.free_aim, f->log.nr_free);
	KUNIT_EXPECT_TRUE(test, kvt_wlog_work(&f->w) & KVT_WORK_END);
	KUNIT_EXPECT_EQ(test, end_one(test, f, NULL, 0), seg);
	nr_free = f->log.nr_free;
	flush(f);
	KUNIT_EXPECT_EQ(test, (u32)f->segs[seg].state, (u32)KVT_SEG_BAD);
	KUNIT_EXPECT_EQ(test, f->log.nr_free, nr_free);
	KUNIT_EXPECT_EQ(test, f->log.nr_bad, 1u);
	KUNIT_EXPECT_EQ(test, f->w.nr_worn, 0u);
}

/* However many are worn: ends need a free one, and some segments are used on for that. */
static void wlog_worn_all(struct kunit *test)
{
	struct wf *f = wf_new(test);
	u32 unit[TM_SEGS], nr = 0, i, k;

	for (; f->log.nr_free > 2; nr++) {
		unit[nr] = put_durable(test, f, DEMOTE, nr + 1);
		seal(test, f, DEMOTE);
	}
	KUNIT_ASSERT_LT(test, 3u, nr);
	for (i = 0; i < nr; i++) {
		for (k = 0; k < KVT_WLOG_FAULTS_MAX; k++)
			kvt_wlog_fault(&f->w, unit[i] / TM_SEG_UNITS);
		KUNIT_ASSERT_EQ(test, (u32)kvt_wlog_free(&f->w, unit[i], 1), (u32)KVT_W_OK);
	}
	KUNIT_ASSERT_EQ(test, f->w.nr_worn, nr);
	for (i = 0; i < nr; i++) {
		KUNIT_EXPECT_NE(test, end_one(test, f, NULL, 0), KVT_NO_SEG);
		flush(f);
		KUNIT_EXPECT_LT(test, 0u, f->log.nr_free);
	}
	KUNIT_EXPECT_EQ(test, f->w.nr_worn, 0u);
	KUNIT_EXPECT_LT(test, 0u, f->log.nr_bad);
	KUNIT_EXPECT_LE(test, f->w.cfg.log->keep[DEMOTE], f->log.nr_free);
	KUNIT_EXPECT_EQ(test, (u32)open_seg(f, DEMOTE, true), (u32)KVT_W_OK);
}

/* A segment that a crash left unsealed gets its footer later, and only one. */
static void wlog_refill(struct kunit *test)
{
	struct wf *f = wf_new(test), *g;
	u32 a = put_durable(test, f, DEMOTE, 1), seg = a / TM_SEG_UNITS, handle, other, slot, i;
	struct kvt_seg s = { .state = KVT_SEG_SEALED, .live = 1, .placed = 1, .max_ids = TM_IDS };

	g = wf_new(test);
	memcpy(g->m->seg, f->m->seg, TM_SEGS * TM_SEG_BYTES);
	KUNIT_ASSERT_EQ(test, (u32)tm_recover(g->m, seg), (u32)KVT_RC_UNSEALED);
	s.fill = g->m->found.fill;
	s.ids = g->ids[g->nr_ids++];
	kvt_log_restore(&g->log, seg, &s);
	kvt_wlog_restore(&g->w, seg, &g->m->found, 0);
	kvt_wlog_restored(&g->w, &f->super, g->m->found.max_seq);
	KUNIT_EXPECT_FALSE(test, kvt_wlog_quiet(&g->w));
	KUNIT_ASSERT_EQ(test, (u32)kvt_wlog_refill(&g->w, seg, &handle), (u32)KVT_W_OK);
	for (i = 0; i < g->m->nr_ns; i++)
		KUNIT_ASSERT_TRUE(test, kvt_wlog_refill_ns(&g->w, handle, &g->m->ns[i]));
	for (i = 0; i < g->m->nr_blocks; i++)
		KUNIT_ASSERT_TRUE(test, kvt_wlog_refill_block(&g->w, handle, &g->m->block[i]));
	kvt_wlog_refilled(&g->w, handle, g->m->found.nr_batches, true);
	/* Not before what was read is durable; regression: not twice either. */
	KUNIT_EXPECT_FALSE(test, write_footer(test, g));
	KUNIT_EXPECT_EQ(test, (u32)kvt_wlog_refill(&g->w, seg, &other), (u32)KVT_W_BUSY);
	flush(g);
	KUNIT_ASSERT_TRUE(test, write_footer(test, g));
	KUNIT_EXPECT_EQ(test, (u32)kvt_wlog_refill(&g->w, seg, &other), (u32)KVT_W_BUSY);
	flush(g);
	KUNIT_EXPECT_EQ(test, (u32)kvt_wlog_refill(&g->w, seg, &other), (u32)KVT_W_NONE);
	KUNIT_ASSERT_EQ(test, (u32)tm_recover(g->m, seg), (u32)KVT_RC_SEALED);
	KUNIT_EXPECT_EQ(test, g->m->nr_blocks, 1u);
	KUNIT_EXPECT_EQ(test, (u32)kvt_wlog_super(&g->w, &g->super, true, &slot), 0u);
}

/*
 * A member that is given up: blocks leave without kills, fences pass, what is not durable
 * is lost, a carried block stays where it was, and nothing more is taken.
 */
static void wlog_give_up(struct kunit *test)
{
	struct wf *f = wf_new(test);
	struct kvt_rec r = tm_rec(9, 1);
	struct kvt_wlog_put p = { .rec = &r, .id = 9 };
	struct kvt_wlog_fence fence;
	struct kvt_wlog_done d;
	u32 src, a, batch, unit;

	src = put_durable(test, f, DEMOTE, 1);
	a = put(test, f, CARRY, 1, 1, src);
	batch = close_batch(test, f, CARRY);
	kvt_wlog_written(&f->w, batch, 0);
	put(test, f, DEMOTE, 2, 1, 0);
	kvt_wlog_sync(&f->w, &fence);
	KUNIT_EXPECT_FALSE(test, kvt_wlog_fence_passed(&f->w, &fence));
	kvt_wlog_give_up(&f->w);
	KUNIT_EXPECT_TRUE(test, kvt_wlog_fence_passed(&f->w, &fence));
	KUNIT_EXPECT_EQ(test, (u32)kvt_wlog_put(&f->w, DEMOTE, &p, &unit), (u32)KVT_W_NEVER);
	KUNIT_EXPECT_EQ(test, (u32)open_seg(f, DEMOTE, true), (u32)KVT_W_SPACE);
	/* The batch that was open is closed by whom it belongs to. */
	batch = close_batch(test, f, DEMOTE);
	kvt_wlog_written(&f->w, batch, -EIO);
	KUNIT_ASSERT_TRUE(test, kvt_wlog_advance(&f->w, &d));
	KUNIT_EXPECT_EQ(test, d.err, -EIO);
	KUNIT_EXPECT_EQ(test, d.unit, a);
	while (kvt_wlog_advance(&f->w, &d))
		KUNIT_EXPECT_EQ(test, d.err, -EIO);
	KUNIT_EXPECT_EQ(test, (u32)kvt_wlog_free(&f->w, a, 1), (u32)KVT_W_OK);
	KUNIT_EXPECT_EQ(test, (u32)kvt_wlog_free(&f->w, src, 1), (u32)KVT_W_OK);
	KUNIT_EXPECT_EQ(test, f->w.nr_pending, 0u);
	KUNIT_EXPECT_EQ(test, kvt_wlog_work(&f->w), 0u);
}

/* A definition need not be carried once a newer one is durable, but with its own segment. */
static void wlog_home(struct kunit *test)
{
	struct wf *f = wf_new(test);
	u32 a = put_durable(test, f, DEMOTE, 1) / TM_SEG_UNITS, b;
	struct kvt_ns_home *home = &f->home[tm_rec(1, 1).ns];
	struct kvt_nsdef gone = { .life_first = home->life, .life_mark = home->life };

	KUNIT_EXPECT_EQ(test, home->seg, a);
	KUNIT_EXPECT_FALSE(test, kvt_wlog_homed(&f->w, a, home));
	KUNIT_EXPECT_TRUE(test, kvt_wlog_homed(&f->w, a + 1, home));
	KUNIT_EXPECT_TRUE(test, kvt_wlog_ns_needed(&f->w, KVT_NO_SEG, &gone));
	KUNIT_EXPECT_FALSE(test, kvt_wlog_ns_needed(&f->w, a, &gone));
	gone.life_first++;
	gone.life_mark++;
	KUNIT_EXPECT_FALSE(test, kvt_wlog_ns_needed(&f->w, KVT_NO_SEG, &gone));
	KUNIT_EXPECT_EQ(test, kvt_wlog_first_life(&f->w), home->life);
	seal(test, f, DEMOTE);
	KUNIT_EXPECT_EQ(test, kvt_wlog_first_life(&f->w), home->life + 1);
	b = put(test, f, DEMOTE, 2, 1, 0) / TM_SEG_UNITS;
	KUNIT_EXPECT_EQ(test, home->seg, b);
	KUNIT_EXPECT_EQ(test, f->w.segs[a].nr_home, 0u);
	KUNIT_EXPECT_EQ(test, f->w.segs[b].nr_home, 1u);
	KUNIT_EXPECT_FALSE(test, kvt_wlog_homed(&f->w, a, home));
	kvt_wlog_written(&f->w, close_batch(test, f, DEMOTE), 0);
	KUNIT_EXPECT_FALSE(test, kvt_wlog_homed(&f->w, a, home));
	flush(f);
	KUNIT_EXPECT_TRUE(test, kvt_wlog_homed(&f->w, a, home));
	home->member++;
	KUNIT_EXPECT_FALSE(test, kvt_wlog_homed(&f->w, a, home));
}

static struct kunit_case wlog_cases[] = {
	KUNIT_CASE(wlog_round_trip),
	KUNIT_CASE(wlog_footer_after_flush),
	KUNIT_CASE(wlog_durable_in_order),
	KUNIT_CASE(wlog_first_batch_fails),
	KUNIT_CASE(wlog_end),
	KUNIT_CASE(wlog_held_all),
	KUNIT_CASE(wlog_home),
	KUNIT_CASE(wlog_no_end),
	KUNIT_CASE(wlog_lost_not_told),
	KUNIT_CASE(wlog_carry),
	KUNIT_CASE(wlog_kills_and_fences),
	KUNIT_CASE(wlog_unput),
	KUNIT_CASE(wlog_super),
	KUNIT_CASE(wlog_super_zoned),
	KUNIT_CASE(wlog_room_for_summary),
	KUNIT_CASE(wlog_limits),
	KUNIT_CASE(wlog_keeps_segments),
	KUNIT_CASE(wlog_doom),
	KUNIT_CASE(wlog_trim),
	KUNIT_CASE(wlog_write_fault),
	KUNIT_CASE(wlog_worn),
	KUNIT_CASE(wlog_worn_all),
	KUNIT_CASE(wlog_give_up),
	KUNIT_CASE(wlog_refill),
	{ }
};

static struct kunit_suite wlog_suite = {
	.name = "kvt_wlog",
	.test_cases = wlog_cases,
};

kunit_test_suite(wlog_suite);
