// SPDX-License-Identifier: GPL-2.0
/*
 * Block tiers' space: cleaning segments, emptying the tier.
 *
 * Space comes back by whole segments. When few are free the one with the least
 * in it is emptied: its blocks are carried forward into a segment of their own,
 * so that what has survived long stays together. Copies of what is in memory are
 * given up. If too much would have to be carried, blocks leave the tier instead, until
 * it is less: see kvt_log_dense(). And of a segment that is emptied all the same, blocks
 * leave first that the policy does not find worth another write: see kvt_policy_above().
 *
 * Cleaning may move blocks down (KVT_CLEAN_LOWER), and moving blocks down may clean the
 * tiers below, which then must not move any: so no path goes through either twice,
 * however many tiers there are, and the stack has a bound.
 */
#include <linux/random.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "kvt_internal.h"
#include "kvt_mlog.h"
#include "kvt_test.h"
#include "core/kvt_policy_gate.h"
#include "kvt_trace.h"

#define KVT_THIN_STEP	16u	/* blocks that leave before segments are looked at again */
#define KVT_SIFT_STEP	64u	/* blocks looked at before the lock is let go */
#define KVT_SIFT_USED	50u	/* percent: of a tier used less nothing has to go */
#define KVT_RETIRE_FAILS	4u	/* batches that cannot be read, then it is enough */
#define KVT_RETIRE_DELAY	HZ
#define KVT_RETIRE_DELAY_MAX	(64 * HZ)
#define KVT_PROBE_DELAY	((unsigned long)HZ / 2)	/* until a device that cannot be read is tried again */
#define KVT_PROBE_DELAY_MAX	(8ul * HZ)

/*
 * Can a block tier take one more block that displaces none. One that is above the low
 * watermark is on its way to the high one, where the worker makes as much go again.
 */
bool kvt_tier_has_room(struct kvt_pool *p, struct kvt_tier *t)
{
	u32 all, used;
	bool tight;

	spin_lock(&p->meta_lock);
	all = kvt_test_capacity(t);
	used = t->nr_blocks + t->log.copy_units;
	tight = kvt_log_tight(&t->log);
	spin_unlock(&p->meta_lock);
	return all ? used < all :
		     !tight && !kvt_tier_over(p, t, READ_ONCE(p->watermark_low_percent));
}

/* Does a block tier, or one below it, have room: then nothing has to go. */
bool kvt_tier_room_below(struct kvt_pool *p, const struct kvt_tier *from)
{
	struct kvt_tier *t[KVT_TIERS];
	u32 nr = kvt_tier_snapshot(p, t, false), i;
	bool room = false;

	for (i = 0; i < nr; i++)
		room |= t[i]->rank >= from->rank && t[i]->state == KVTIER_TIER_ONLINE &&
			!t[i]->ops->is_mem && kvt_tier_has_room(p, t[i]);
	return room;
}

/* Is the only copy of a block on this tier. One in memory would move from there. */
static bool kvt_log_has(const struct kvt_tier *t, const struct kvt_hot *h)
{
	return (kvt_ctl(h) & (KVT_CTL_LOG | KVT_CTL_MEM)) == KVT_CTL_LOG &&
	       h->log_tier == t->id;
}

static bool kvt_seg_has(const struct kvt_tier *t, u32 seg, const struct kvt_hot *h)
{
	return kvt_log_has(t, h) && kvt_log_seg_of(&t->log, h->log_unit) == seg;
}

/* Claim the next live blocks of a segment from *@pos on. Meta lock held. */
static u32 kvt_seg_claim(struct kvt_pool *p, struct kvt_tier *t, u32 seg, u32 *pos, u32 *ids,
			 u32 max)
{
	struct kvt_seg *s = &t->log.segs[seg];
	u32 nr = 0;

	lockdep_assert_held(&p->meta_lock);
	for (; *pos < s->nr_ids && nr < max; (*pos)++) {
		struct kvt_hot *h = kvt_hot(&p->table, s->ids[*pos]);

		if (kvt_seg_has(t, seg, h) && kvt_move_try(h))
			ids[nr++] = s->ids[*pos];
	}
	return nr;
}

/* May a block of this tier leave, as far as can be seen: not whether something follows it. */
static bool kvt_log_may_refuse(struct kvt_pool *p, struct kvt_tier *t, u32 id)
{
	const struct kvt_hot *h = kvt_hot(&p->table, id);
	u32 ctl = kvt_ctl(h);

	lockdep_assert_held(&p->meta_lock);
	return kvt_log_has(t, h) && kvt_ctl_state(ctl) == KVT_READY &&
	       !(ctl & (KVT_CTL_STAYS | KVT_CTL_MOVING)) && !kvt_ctl_leases(ctl) &&
	       !kvt_policy_above(&p->policy, id) && !kvt_ns_guarded(p, t, h, NULL, 0);
}

/* Whether a block has left. */
static bool kvt_log_refuse(struct kvt_pool *p, struct kvt_tier *t, u32 id)
{
	lockdep_assert_held(&p->meta_lock);
	return kvt_log_may_refuse(p, t, id) && kvt_ch_leaf(&p->table, id) &&
	       kvt_move_try(kvt_hot(&p->table, id)) && kvt_evict_claimed(p, id, KVT_WHY_WORTH);
}

/*
 * Can all go from the end of its chain to @id: else none of them does, in vain. What other
 * chains have in common with this one stays as long as they do.
 */
static bool kvt_chain_may_refuse(struct kvt_pool *p, struct kvt_tier *t, u32 tip, u32 id)
{
	const struct kvt_cold *c;

	lockdep_assert_held(&p->meta_lock);
	for (; tip != id; tip = c->parent) {
		c = kvt_cold(&p->table, tip);
		if (c->sib_prev || c->sib_next || !kvt_log_may_refuse(p, t, tip))
			return false;
	}
	return kvt_log_may_refuse(p, t, id);
}

/*
 * A block of a segment is not to be carried if it and what is left of its chain after it
 * can go. Those before it may have been looked at when it could not. Returns how many
 * blocks were looked at, or half of that.
 */
static u32 kvt_seg_refuse(struct kvt_pool *p, struct kvt_tier *t, u32 seg, u32 id)
{
	u32 steps = KVT_GATE_DEEP, nr = 1, up, tip;
	bool past = false;

	lockdep_assert_held(&p->meta_lock);
	if (!kvt_seg_has(t, seg, kvt_hot(&p->table, id)))
		return nr;
	tip = kvt_gate_tip(&p->policy, id, &steps);
	if (tip == KVT_NIL || !kvt_chain_may_refuse(p, t, tip, id))
		return nr + KVT_GATE_DEEP - steps;
	/* What a long chain has left then comes by itself. */
	for (; tip != KVT_NIL && nr < 2 * KVT_GATE_DEEP; tip = up, nr++) {
		past |= tip == id;
		up = kvt_cold(&p->table, tip)->parent;
		if (!kvt_log_refuse(p, t, tip) ||
		    (past && up != KVT_NIL && !kvt_seg_has(t, seg, kvt_hot(&p->table, up))))
			break;
	}
	return nr + KVT_GATE_DEEP - steps;
}

/*
 * Is it time to refuse: what leaves without room for its kill would stay where it is, and
 * what is carried, or dropped, needs some of that, too.
 */
static bool kvt_may_sift(struct kvt_pool *p, struct kvt_tier *t)
{
	lockdep_assert_held(&p->meta_lock);
	return p->policy.ops->admit && !p->parked.count &&
	       kvt_wlog_kill_room(&t->mlog->w) > t->mlog->w.cfg.ring / 2;
}

/* What the policy does not find worth being written once more leaves the pool. */
static void kvt_seg_sift(struct kvt_tier *t, u32 seg)
{
	const struct kvt_seg *s = &t->log.segs[seg];
	struct kvt_pool *p = t->pool;
	u32 pos = 0, nr, looks;

	/*
	 * Where there is room nothing is refused: below, or here without this segment. Many
	 * segments that have little in them are room as well, though none is cheap to empty.
	 */
	if (!kvt_tier_over(p, t, KVT_SIFT_USED) || kvt_tier_room_below(p, t))
		return;
	do {
		spin_lock(&p->meta_lock);
		kvt_touch_drain(p);
		nr = kvt_may_sift(p, t) ? s->nr_ids : 0;
		for (looks = 0; looks < KVT_SIFT_STEP && pos < nr; pos++)
			looks += kvt_seg_refuse(p, t, seg, s->ids[pos]);
		spin_unlock(&p->meta_lock);
		cond_resched();
	} while (pos < nr);
	kvt_garbage_free(p);
}

/*
 * Carry a batch forward. @spare: see struct kvt_mv. Returns how many got a place;
 * *@full: there is no segment.
 */
static u32 kvt_carry(struct kvt_pool *p, struct kvt_tier *t, const u32 *ids, u32 nr,
		     struct kvt_carry *c, bool spare, bool *full)
{
	struct kvt_mlog_puts puts = { .nr = 0 };
	u32 left = 0, placed, i;

	spin_lock(&p->meta_lock);
	for (i = 0; i < nr; i++) {
		kvt_mv_start(p, &c->mv[i], ids[i]);
		c->mv[i].spare = spare;
	}
	spin_unlock(&p->meta_lock);
	placed = kvt_mlog_place(t, KVT_HEAD_CARRY, c->mv, nr, &puts);
	*full |= puts.full;
	for (i = 0; i < nr; i++)
		left |= c->mv[i].placed ? 0 : 1u << i;
	kvt_mv_run(c->mv, nr);
	kvt_mv_write(p, &puts, c->mv, nr, c);
	spin_lock(&p->meta_lock);
	for (i = 0; i < nr; i++) {
		if (left & 1u << i)
			kvt_mv_cancel(p, &c->mv[i]);
	}
	spin_unlock(&p->meta_lock);
	/* Until that is durable they are nowhere else, and their readers wait. */
	kvt_mlog_progress(t->mlog);
	for (i = 0; i < nr; i++)
		kvt_block_wake(p, ids[i]);
	return placed;
}

/* Nothing of a batch that was carried could be read. */
static bool kvt_carry_unread(const struct kvt_carry *c, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		if (!c->mv[i].x.src_bad || c->mv[i].x.err != -EIO)
			return false;
	}
	return true;
}

static int kvt_probe_at(struct kvt_tier *t, u32 seg, u32 unit, void *buf)
{
	return kvt_mlog_read(t, kvt_geo_byte(&t->mlog->geo, seg, unit), buf, KVT_UNIT_BYTES_MIN);
}

/*
 * Before a segment is emptied: can its device be read at all. Devices fail for a while, and what
 * is done to a segment then costs its blocks, wears it, and frees nothing. Either end
 * will do: one bad sector says nothing of the device. If not, the next is not tried at once.
 */
static bool kvt_seg_probe(struct kvt_tier *t, u32 seg)
{
	struct kvt_mlog *m = t->mlog;
	void *buf = kmalloc(KVT_UNIT_BYTES_MIN, GFP_NOIO | __GFP_NOWARN);
	bool good;

	/* Then nothing is known, and nothing is changed. */
	if (!buf)
		return !READ_ONCE(m->outage);
	good = !kvt_probe_at(t, seg, 0, buf) ||
	       !kvt_probe_at(t, seg, m->geo.seg_units - 1, buf);
	kfree(buf);
	spin_lock(&t->pool->meta_lock);
	kvt_mlog_outage(m, !good);
	WRITE_ONCE(m->probe_delay, good ? 0 : clamp(2 * m->probe_delay, KVT_PROBE_DELAY,
						    KVT_PROBE_DELAY_MAX));
	WRITE_ONCE(m->probe_at, jiffies + m->probe_delay);
	spin_unlock(&t->pool->meta_lock);
	return good;
}

/* A segment with blocks in it, any. Others may be read without asking the media at all. */
static u32 kvt_log_any_sealed(struct kvt_tier *t)
{
	u32 seg = get_random_u32_below(t->nr_segs), i;

	spin_lock(&t->pool->meta_lock);
	for (i = 0; i < t->nr_segs; i++, seg = (seg + 1) % t->nr_segs) {
		u8 state = t->log.segs[seg].state;

		if (state == KVT_SEG_SEALED || state == KVT_SEG_CLEANING)
			break;
	}
	spin_unlock(&t->pool->meta_lock);
	return i < t->nr_segs ? seg : KVT_NO_SEG;
}

/**
 * kvt_log_probe() - can a block tier's device be read now
 * @t: block tier; no spinlock held, sleeps
 * Return: what a segment in use says; if there is none, whether that was so last.
 */
bool kvt_log_probe(struct kvt_tier *t)
{
	u32 seg = kvt_log_any_sealed(t);

	return seg == KVT_NO_SEG ? !READ_ONCE(t->mlog->outage) : kvt_seg_probe(t, seg);
}

/**
 * kvt_log_readable() - can a block tier's device be read, as far as is known
 * @t: block tier; any context
 * Return: false for a while after it could not be when a segment was to be emptied: what leaves
 * the tier then makes no room for others.
 */
bool kvt_log_readable(const struct kvt_tier *t)
{
	return !READ_ONCE(t->mlog->probe_delay) ||
	       !time_before(jiffies, READ_ONCE(t->mlog->probe_at));
}

/* Is it enough, after a batch of which nothing could be read: of some, or as the device is. */
static bool kvt_carry_stops(struct kvt_tier *t, u32 seg, bool spare, u32 *fails)
{
	return spare ? ++*fails == KVT_RETIRE_FAILS : !kvt_seg_probe(t, seg);
}

/*
 * Carry what is in a segment forward. @spare: see kvt_carry(). Whether it ended for want of a
 * free segment: not for want of memory, or because others were faster, or the tier is to be
 * emptied. *@stop: for want of a device that can be read.
 */
static bool kvt_seg_carry(struct kvt_tier *t, u32 seg, bool spare, bool *stop)
{
	u32 pos = 0, nr, placed = 0, fails = 0, ids[KVT_MOVE_BATCH];
	struct kvt_pool *p = t->pool;
	bool full = false;

	*stop = false;

	do {
		struct kvt_carry *c = kvt_carry_alloc(KVT_MOVE_BATCH);

		if (!c)
			break;
		spin_lock(&p->meta_lock);
		nr = kvt_seg_claim(p, t, seg, &pos, ids, KVT_MOVE_BATCH);
		spin_unlock(&p->meta_lock);
		placed = nr ? kvt_carry(p, t, ids, nr, c, spare, &full) : 0;
		*stop = placed && kvt_carry_unread(c, nr);
		kvt_carry_put(p, c);
		kvt_garbage_free(p);
		*stop = *stop && kvt_carry_stops(t, seg, spare, &fails);
	} while (placed && !*stop);
	return full && !*stop;
}

/* Let dead segments be ended, so that they are free again, as far as that pays. */
static bool kvt_log_reap(struct kvt_tier *t)
{
	bool got;

	mutex_lock(&t->mlog->put_lock[KVT_HEAD_CARRY]);
	got = kvt_mlog_reap(t->mlog, false);
	mutex_unlock(&t->mlog->put_lock[KVT_HEAD_CARRY]);
	return got;
}

/* The cleaner is done with a segment that it still has. */
static void kvt_seg_keep(struct kvt_tier *t, u32 seg, bool full)
{
	struct kvt_pool *p = t->pool;

	spin_lock(&p->meta_lock);
	/* What can neither be carried nor go, pinned blocks, must not be tried for ever. */
	if (full)
		kvt_log_pass_over(&t->log, seg);
	kvt_log_clean_end(&t->log, seg);
	spin_unlock(&p->meta_lock);
}

/*
 * Before a segment is cleaned: is it not the time for that. *@less: but blocks have left.
 * If none can leave there is nothing else but to clean.
 */
static bool kvt_log_thin(struct kvt_tier *t, enum kvt_clean how, bool *less)
{
	struct kvt_pool *p = t->pool;
	bool dense, wait;

	spin_lock(&p->meta_lock);
	/* What leaves without room for its kill stays on the log: then that comes first. */
	dense = !t->mlog->w.given_up && !p->parked.count &&
		kvt_wlog_kill_room(&t->mlog->w) >= 2 * KVT_THIN_STEP &&
		kvt_log_dense(&t->log);
	/* What is free will do for a while, in which segments go on dying. */
	wait = t->log.nr_free > t->log.keep[KVT_HEAD_DEMOTE];
	spin_unlock(&p->meta_lock);
	*less = dense && !wait && how == KVT_CLEAN_LOWER && kvt_lower_some(p, t, KVT_THIN_STEP);
	return dense && (wait || *less || how == KVT_CLEAN_SPARE);
}

/* One that cannot be written again gives no room: others do, if that is not in vain. */
static bool kvt_seg_worth_dooming(struct kvt_tier *t, u32 seg)
{
	const struct kvt_wlog *w = &t->mlog->w;
	bool other = false;
	u32 i;

	spin_lock(&t->pool->meta_lock);
	for (i = 0; w->segs[seg].bad && !kvt_mlog_starved(t->mlog) && i < t->nr_segs && !other; i++)
		other = !w->segs[i].bad && t->log.segs[i].state == KVT_SEG_SEALED;
	spin_unlock(&t->pool->meta_lock);
	return !other;
}

/**
 * kvt_log_clean() - empty one segment
 * @t:   block tier; srcu held, may sleep; called by the pool's worker, or by detach
 * @how: KVT_CLEAN_LOWER is the worker's alone; who moves blocks down must not say so
 * Return: whether more segments are free than before, or come nearer to being so.
 */
bool kvt_log_clean(struct kvt_tier *t, enum kvt_clean how)
{
	struct kvt_pool *p = t->pool;
	bool more, full, doomed, shed, stop, pays, carried;
	u32 seg, before;
	u64 room;

	if (kvt_log_reap(t))
		return true;
	/* What leaves then is of no use either; any segment will do to tell. */
	if (!kvt_log_readable(t) || (READ_ONCE(t->mlog->outage) && !kvt_log_probe(t)))
		return false;
	if (kvt_log_thin(t, how, &more))
		return more;
	spin_lock(&p->meta_lock);
	before = t->log.nr_free;
	room = kvt_log_room(&t->log);
	seg = t->mlog->w.given_up ? KVT_NO_SEG : kvt_log_victim(&t->log);
	carried = seg != KVT_NO_SEG && t->log.segs[seg].carried;
	/* Who is in need of a segment has it emptied all the same. */
	pays = how != KVT_CLEAN_LOWER || seg == KVT_NO_SEG ||
	       kvt_wlog_empty_pays(&t->mlog->w, seg);
	spin_unlock(&p->meta_lock);
	if (seg == KVT_NO_SEG)
		return false;
	/* The next time another one. */
	if (!pays || !kvt_seg_probe(t, seg)) {
		kvt_seg_keep(t, seg, true);
		return false;
	}
	shed = kvt_copy_shed(t, seg);
	kvt_seg_sift(t, seg);
	full = kvt_seg_carry(t, seg, false, &stop);
	/* No room for kills of copies, and none will come, is no better. */
	full |= !shed && !stop;
	doomed = full && READ_ONCE(t->log.nr_free) <= 1 && kvt_seg_worth_dooming(t, seg) &&
		 kvt_mlog_doom(t->mlog, seg);
	/* One that is doomed must not be sealed again: the background ends that. */
	if (!doomed)
		kvt_seg_keep(t, seg, full || stop);
	kvt_log_reap(t);
	spin_lock(&p->meta_lock);
	more = t->log.nr_free > before;
	kvt_log_emptied(&t->log, carried, room);
	spin_unlock(&p->meta_lock);
	kvt_garbage_free(p);
	return more;
}

/* Empty one segment that is worn, as far as that goes. Whether it is empty now. *@bad: unreadable. */
static bool kvt_seg_retire_one(struct kvt_tier *t, u32 seg, bool *bad)
{
	struct kvt_pool *p = t->pool;
	bool mine, empty, full, stop;

	spin_lock(&p->meta_lock);
	mine = t->mlog->w.segs[seg].worn && kvt_log_claim(&t->log, seg);
	spin_unlock(&p->meta_lock);
	*bad = mine && !kvt_seg_probe(t, seg);
	if (*bad)
		kvt_seg_keep(t, seg, false);
	if (!mine || *bad)
		return false;
	kvt_copy_shed(t, seg);
	full = kvt_seg_carry(t, seg, true, &stop);
	kvt_seg_keep(t, seg, full);
	spin_lock(&p->meta_lock);
	empty = t->log.segs[seg].state == KVT_SEG_EMPTY;
	spin_unlock(&p->meta_lock);
	return empty;
}

/**
 * kvt_log_retire() - empty segments that are worn
 * @t: block tier; srcu held, may sleep; called by the pool's worker
 *
 * What is left in one is tried again, at ever longer intervals.
 * Return: whether one is empty now that was not.
 */
bool kvt_log_retire(struct kvt_tier *t)
{
	struct kvt_mlog *m = t->mlog;
	struct kvt_pool *p = t->pool;
	bool any = false, bad;
	u32 n, seg = m->retire_seg, nr_bad = 0;

	if (!READ_ONCE(m->w.nr_worn) || READ_ONCE(m->w.given_up) ||
	    time_before(jiffies, READ_ONCE(m->retire_at)))
		return false;
	/* Two that cannot be read at either end: it is the device. Others come next time. */
	for (n = 0; n < t->nr_segs && nr_bad < 2; n++, seg = (seg + 1) % t->nr_segs) {
		if (!READ_ONCE(m->w.segs[seg].worn))
			continue;
		any |= kvt_seg_retire_one(t, seg, &bad);
		nr_bad += bad;
	}
	m->retire_seg = seg;
	spin_lock(&p->meta_lock);
	m->retire_delay = any ? 0 : clamp(2 * m->retire_delay, KVT_RETIRE_DELAY,
					  KVT_RETIRE_DELAY_MAX);
	m->retire_at = jiffies + m->retire_delay;
	spin_unlock(&p->meta_lock);
	kvt_log_reap(t);
	kvt_garbage_free(p);
	return any;
}

/**
 * kvt_log_evacuate() - one pass at emptying a draining block tier
 * @p:       pool; srcu held, may sleep
 * @t:       tier
 * @discard: drop its blocks instead of moving them
 *
 * Draining a tier whose blocks fit nowhere drops the least valuable ones.
 */
void kvt_log_evacuate(struct kvt_pool *p, struct kvt_tier *t, bool discard)
{
	u32 ids[KVT_MOVE_BATCH], nr, i, rounds = t->nr_blocks / KVT_MOVE_BATCH + 2;

	kvt_copy_shed_all(t);
	while (rounds-- && !fatal_signal_pending(current)) {
		nr = kvt_collect(p, t, false, 0, NULL, ids, KVT_MOVE_BATCH);
		if (!nr)
			return;
		if (!discard) {
			kvt_demote(p, t, ids, nr, true);
			continue;
		}
		spin_lock(&p->meta_lock);
		for (i = 0; i < nr; i++)
			kvt_evict_claimed(p, ids[i], KVT_WHY_DETACH);
		spin_unlock(&p->meta_lock);
	}
}
