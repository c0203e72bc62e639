// SPDX-License-Identifier: GPL-2.0
/*
 * A member's segments that are doomed: what is in one can neither be carried nor stay where it
 * is, so its blocks leave the pool, one by one as they can, and without kills. The end of the
 * segment tells of all of them. One at a time; none in which something is pinned or held.
 *
 * Looking whether there is takes steps. From before the first one, and for as long as it is
 * doomed if it is, what is in it and not in memory cannot be pinned or held any more (who tries
 * is refused). So what was, stays, and nobody keeps a segment from being doomed by trying.
 */
#include "kvt_internal.h"
#include "kvt_mlog.h"
#include "kvt_test.h"

#define KVT_DOOM_STEP	256u	/* blocks under one hold of the meta lock */

/* Does the segment have a block that may not go. In steps: there may be many. */
static bool kvt_seg_pinned(struct kvt_mlog *m, u32 seg)
{
	const struct kvt_seg *s = &m->tier->log.segs[seg];
	struct kvt_pool *p = m->tier->pool;
	u32 mask = KVT_CTL_LOG | KVT_CTL_MEM, pos = 0, end, nr;
	bool pinned = false;

	do {
		spin_lock(&p->meta_lock);
		nr = s->state == KVT_SEG_CLEANING ? s->nr_ids : 0;
		for (end = min(nr, pos + KVT_DOOM_STEP); pos < end && !pinned; pos++) {
			const struct kvt_hot *h = kvt_hot(&p->table, s->ids[pos]);
			u32 ctl = kvt_ctl(h);

			/* One that is dead goes, pinned or not; of one in memory only a copy. */
			pinned = (ctl & mask) == KVT_CTL_LOG && (ctl & KVT_CTL_STAYS) &&
				 kvt_ctl_state(ctl) == KVT_READY &&
				 h->log_tier == m->tier->id &&
				 kvt_log_seg_of(&m->tier->log, h->log_unit) == seg;
		}
		spin_unlock(&p->meta_lock);
		cond_resched();
	} while (!pinned && pos < nr);
	return pinned;
}

/**
 * kvt_mlog_doom() - there is no room to carry what is in a segment: it has to go
 * @m:   member; no spinlock held, sleeps
 * @seg: CLEANING, by the caller
 * Return: whether it is doomed: the background does the rest then, and it is not the
 * caller's any more.
 */
bool kvt_mlog_doom(struct kvt_mlog *m, u32 seg)
{
	struct kvt_pool *p = m->tier->pool;
	bool doomed, pinned;

	spin_lock(&p->meta_lock);
	m->w.segs[seg].closing = true;
	spin_unlock(&p->meta_lock);
	pinned = kvt_seg_pinned(m, seg);
	spin_lock(&p->meta_lock);
	m->w.segs[seg].closing = false;
	/* One at a time: when it has ended there is room. */
	doomed = !pinned && !m->w.given_up && !m->w.nr_doomed &&
		 m->tier->log.segs[seg].state == KVT_SEG_CLEANING;
	if (doomed) {
		kvt_wlog_doom(&m->w, seg);
		/* Blocks that were carried out of it need no room in the ring any more. */
		kvt_mlog_wake_others(m);
	}
	spin_unlock(&p->meta_lock);
	if (!pinned)
		kvt_mlog_kick(m);
	return doomed;
}

/**
 * kvt_doom_spares() - somebody is about to pin or hold a block
 * @p:  pool, meta lock held until he has
 * @id: block, READY
 * Return: whether it stays then. If not it is on its way out, or about to be.
 */
bool kvt_doom_spares(struct kvt_pool *p, u32 id)
{
	const struct kvt_hot *h = kvt_hot(&p->table, id);
	const struct kvt_wseg *ws;
	const struct kvt_tier *t;

	lockdep_assert_held(&p->meta_lock);
	if ((kvt_ctl(h) & (KVT_CTL_LOG | KVT_CTL_MEM)) != KVT_CTL_LOG ||
	    (kvt_ctl(h) & KVT_CTL_STAYS))
		return true;
	t = p->tiers[h->log_tier];
	ws = &t->mlog->w.segs[kvt_log_seg_of(&t->log, h->log_unit)];
	return !ws->doom && !ws->closing;
}

/**
 * kvt_doom_look() - a block stays on a block tier that was about to leave it
 * @p:  pool, meta lock held
 * @id: block, not MOVING any more
 *
 * If its segment is doomed it may be what is left of that, and is to go now.
 */
void kvt_doom_look(struct kvt_pool *p, u32 id)
{
	const struct kvt_hot *h = kvt_hot(&p->table, id);
	struct kvt_tier *t;

	lockdep_assert_held(&p->meta_lock);
	if (!(kvt_ctl(h) & KVT_CTL_LOG))
		return;
	t = p->tiers[h->log_tier];
	if (t->mlog->w.segs[kvt_log_seg_of(&t->log, h->log_unit)].doom)
		kvt_mlog_kick(t->mlog);
}

/* Evict from @pos on. Meta lock held. Returns where it stopped. */
static u32 kvt_doom_step(struct kvt_mlog *m, u32 seg, u32 pos)
{
	struct kvt_log *log = &m->tier->log;
	struct kvt_pool *p = m->tier->pool;
	struct kvt_seg *s = &log->segs[seg];
	u32 end = min(s->nr_ids, pos + KVT_DOOM_STEP);

	lockdep_assert_held(&p->meta_lock);
	for (; pos < end; pos++) {
		u32 id = s->ids[pos];
		struct kvt_hot *h = kvt_hot(&p->table, id);

		if (!(kvt_ctl(h) & KVT_CTL_LOG) || h->log_tier != m->tier->id ||
		    kvt_log_seg_of(log, h->log_unit) != seg)
			continue;
		if (kvt_ctl(h) & KVT_CTL_MEM) {
			kvt_copy_drop(p, id);
			continue;
		}
		if (!kvt_move_try(h))
			continue;
		kvt_ctl_update(h, 0, 0, KVT_CTL_MOVING, 0);
		kvt_block_lose(p, id, KVT_WHY_ROOM);
		kvt_block_wake(p, id);
	}
	return pos;
}

/* Go on with one doomed segment. Whether it is dead now. */
static bool kvt_doom_seg(struct kvt_mlog *m, u32 seg)
{
	struct kvt_log *log = &m->tier->log;
	struct kvt_pool *p = m->tier->pool;
	bool dead = false;
	u32 pos = 0, nr;

	do {
		spin_lock(&p->meta_lock);
		nr = log->segs[seg].nr_ids;
		pos = kvt_doom_step(m, seg, pos);
		spin_unlock(&p->meta_lock);
		cond_resched();
	} while (pos < nr);
	spin_lock(&p->meta_lock);
	if (!log->segs[seg].live) {
		kvt_log_clean_end(log, seg);
		dead = true;
	}
	spin_unlock(&p->meta_lock);
	return dead;
}

/**
 * kvt_mlog_dooms() - go on with what is doomed
 * @m: member; none of its locks held, sleeps
 * Return: whether a segment is dead now.
 */
bool kvt_mlog_dooms(struct kvt_mlog *m)
{
	struct kvt_pool *p = m->tier->pool;
	bool any = false, doomed;
	u32 seg;

	if (kvt_test_doom_waits(p))
		return false;
	for (seg = 0; READ_ONCE(m->w.nr_doomed) && seg < m->geo.nr_segs; seg++) {
		spin_lock(&p->meta_lock);
		doomed = m->w.segs[seg].doom &&
			 m->tier->log.segs[seg].state == KVT_SEG_CLEANING;
		spin_unlock(&p->meta_lock);
		if (doomed)
			any |= kvt_doom_seg(m, seg);
	}
	return any;
}
