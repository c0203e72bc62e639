// SPDX-License-Identifier: GPL-2.0
/*
 * Block tiers' space: opening segments, cleaning them, emptying the tier.
 *
 * Space comes back by whole segments. When few are free the one with the least
 * in it is emptied: its blocks are carried forward into a segment of their own,
 * so that what has survived long stays together.
 */
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "kvt_internal.h"
#include "kvt_trace.h"

/**
 * kvt_log_room() - make sure that the next allocation at a head succeeds
 * @t:     block tier; may sleep
 * @head:  which end
 * @units: length
 * Return: 0: it should, but somebody else may be faster; -ENOSPC; -ENOMEM.
 */
int kvt_log_room(struct kvt_tier *t, enum kvt_log_head head, u32 units)
{
	struct kvt_pool *p = t->pool;
	u32 max_ids, *ids, *stale;
	bool ok;

	if (units > t->seg_units)
		return -ENOSPC;
	/* Twice what fits of this size; a segment of smaller blocks is sealed early. */
	max_ids = clamp(2 * (t->seg_units / units), 64u, max(t->seg_units, 64u));
	ids = kvmalloc_array(max_ids, sizeof(*ids), GFP_KERNEL);
	if (!ids)
		return -ENOMEM;
	spin_lock(&p->meta_lock);
	stale = ids;
	if (kvt_log_needs_segment(&t->log, head, units))
		stale = kvt_log_open(&t->log, head, ids, max_ids);
	ok = !kvt_log_needs_segment(&t->log, head, units);
	spin_unlock(&p->meta_lock);
	kvfree(stale);
	return ok ? 0 : -ENOSPC;
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

		if (!(kvt_ctl(h) & KVT_CTL_LOG) || h->log_tier != t->id ||
		    kvt_log_seg_of(&t->log, h->log_unit) != seg)
			continue;	/* stale */
		if (kvt_move_try(h))
			ids[nr++] = s->ids[*pos];
	}
	return nr;
}

/* Carry a batch forward; false when there is no room to. */
static bool kvt_carry(struct kvt_pool *p, struct kvt_tier *t, const u32 *ids, u32 nr,
		      struct kvt_mv *mv)
{
	u32 i, placed = 0;

	spin_lock(&p->meta_lock);
	for (i = 0; i < nr; i++)
		kvt_mv_start(p, &mv[i], ids[i]);
	spin_unlock(&p->meta_lock);
	while (placed < nr && kvt_mv_place_log(p, &mv[placed], t, KVT_HEAD_CARRY))
		placed++;
	kvt_mv_run(mv, placed);
	spin_lock(&p->meta_lock);
	for (i = 0; i < placed; i++)
		kvt_mv_finish(p, &mv[i], false);
	for (; i < nr; i++)
		kvt_mv_cancel(p, &mv[i]);
	spin_unlock(&p->meta_lock);
	for (i = 0; i < nr; i++)
		kvt_block_wake(p, ids[i]);
	return placed == nr;
}

/**
 * kvt_log_clean() - empty one segment
 * @t: block tier; srcu held, may sleep; called by the pool's worker, or by detach
 * Return: whether more segments are free than before.
 */
bool kvt_log_clean(struct kvt_tier *t)
{
	struct kvt_pool *p = t->pool;
	u32 seg, pos = 0, nr, before, ids[KVT_MOVE_BATCH];
	struct kvt_mv *mv = kvmalloc_array(KVT_MOVE_BATCH, sizeof(*mv), GFP_KERNEL);
	bool more = true;

	if (!mv)
		return false;
	spin_lock(&p->meta_lock);
	before = t->log.nr_free;
	seg = kvt_log_victim(&t->log);
	spin_unlock(&p->meta_lock);
	if (seg == KVT_NO_SEG) {
		kvfree(mv);
		return false;
	}
	while (more) {
		spin_lock(&p->meta_lock);
		nr = kvt_seg_claim(p, t, seg, &pos, ids, KVT_MOVE_BATCH);
		spin_unlock(&p->meta_lock);
		more = nr && kvt_carry(p, t, ids, nr, mv);
	}
	kvfree(mv);
	spin_lock(&p->meta_lock);
	kvt_defer_free(p, kvt_log_clean_end(&t->log, seg));
	more = t->log.nr_free > before;
	spin_unlock(&p->meta_lock);
	kvt_garbage_free(p);
	return more;
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
