// SPDX-License-Identifier: GPL-2.0
/*
 * Segment bookkeeping; see kvt_log.h for the model.
 *
 * Invariants: live_units is the sum of the segments' live; a FREE segment has no
 * id array, no live unit and no write in flight; units are handed out in
 * ascending order within a segment.
 */
#include "kvt_log.h"

/**
 * kvt_log_init() - start with all segments free
 * @l:         log
 * @segs:      zeroed, @nr_segs of them; stays the caller's
 * @nr_segs:   segments
 * @seg_units: usable units in each
 */
void kvt_log_init(struct kvt_log *l, struct kvt_seg *segs, u32 nr_segs, u32 seg_units)
{
	memset(l, 0, sizeof(*l));
	l->segs = segs;
	l->nr_segs = nr_segs;
	l->seg_units = seg_units;
	l->nr_free = nr_segs;
	l->open[KVT_HEAD_DEMOTE] = KVT_NO_SEG;
	l->open[KVT_HEAD_CARRY] = KVT_NO_SEG;
}

static bool kvt_seg_fits(const struct kvt_log *l, const struct kvt_seg *s, u32 units)
{
	return units <= l->seg_units - s->fill && s->nr_ids < s->max_ids;
}

/**
 * kvt_log_needs_segment() - must kvt_log_open() come before the next alloc
 * @l:     log; meta lock held
 * @head:  which end
 * @units: what will be asked for
 */
bool kvt_log_needs_segment(const struct kvt_log *l, enum kvt_log_head head, u32 units)
{
	u32 seg = l->open[head];

	return seg == KVT_NO_SEG || !kvt_seg_fits(l, &l->segs[seg], units);
}

/* Free the segment if nothing holds it any more. Returns its id array then. */
static u32 *kvt_seg_retire(struct kvt_log *l, struct kvt_seg *s)
{
	u32 *ids = s->ids;

	if (s->state != KVT_SEG_SEALED || s->live || s->writes)
		return NULL;
	s->ids = NULL;
	s->nr_ids = 0;
	s->max_ids = 0;
	s->fill = 0;
	s->state = KVT_SEG_FREE;
	l->nr_free++;
	return ids;
}

/**
 * kvt_log_open() - seal the head's segment, if any, and open a free one
 * @l:       log; meta lock held
 * @head:    which end
 * @ids:     room for @max_ids block ids; the log's, unless returned
 * @max_ids: most blocks the segment will take
 *
 * The last free segment is kept for the cleaner's head. The head's segment is
 * sealed even when there is no other to open: the cleaner can take it then. One
 * in which nothing is live starts anew, so a dead segment never blocks its head.
 * Return: an array the caller must free: @ids itself when no segment could be
 * opened, that of the segment which started anew, or NULL.
 */
u32 *kvt_log_open(struct kvt_log *l, enum kvt_log_head head, u32 *ids, u32 max_ids)
{
	u32 spare = head == KVT_HEAD_CARRY ? 0 : 1, i, seg = l->open[head];
	u32 *stale = NULL;

	if (seg != KVT_NO_SEG) {
		l->segs[seg].state = KVT_SEG_SEALED;
		stale = kvt_seg_retire(l, &l->segs[seg]);
		l->open[head] = KVT_NO_SEG;
	}
	if (!stale) {
		if (l->nr_free <= spare)
			return ids;
		for (i = 0; i < l->nr_segs; i++) {
			seg = (l->hint + i) % l->nr_segs;
			if (l->segs[seg].state == KVT_SEG_FREE)
				break;
		}
	}
	l->hint = seg + 1;
	l->segs[seg].state = KVT_SEG_OPEN;
	l->segs[seg].ids = ids;
	l->segs[seg].max_ids = max_ids;
	l->nr_free--;
	l->open[head] = seg;
	return stale;
}

/**
 * kvt_log_alloc() - take the next units of a head's segment for a block
 * @l:     log; meta lock held
 * @head:  which end
 * @units: length
 * @id:    block
 *
 * Counts as a write in flight until kvt_log_write_done().
 * Return: first unit, or KVT_NO_UNIT (see kvt_log_needs_segment()).
 */
u32 kvt_log_alloc(struct kvt_log *l, enum kvt_log_head head, u32 units, u32 id)
{
	u32 seg = l->open[head], unit;
	struct kvt_seg *s;

	if (kvt_log_needs_segment(l, head, units))
		return KVT_NO_UNIT;
	s = &l->segs[seg];
	unit = seg * l->seg_units + s->fill;
	s->ids[s->nr_ids++] = id;
	s->fill += units;
	s->live += units;
	s->writes++;
	l->live_units += units;
	return unit;
}

/**
 * kvt_log_write_done() - a write begun by kvt_log_alloc() is over, well or not
 * @l:    log; meta lock held
 * @unit: its first unit
 * Return: an array the caller must free, or NULL.
 */
u32 *kvt_log_write_done(struct kvt_log *l, u32 unit)
{
	struct kvt_seg *s = &l->segs[kvt_log_seg_of(l, unit)];

	s->writes--;
	return kvt_seg_retire(l, s);
}

/**
 * kvt_log_free() - a block is not there any more
 * @l:     log; meta lock held
 * @unit:  its first unit
 * @units: length
 * Return: an array the caller must free, or NULL.
 */
u32 *kvt_log_free(struct kvt_log *l, u32 unit, u32 units)
{
	struct kvt_seg *s = &l->segs[kvt_log_seg_of(l, unit)];

	s->live -= units;
	l->live_units -= units;
	return kvt_seg_retire(l, s);
}

/*
 * Emptying a segment gains what is dead in it. A tail too short for the blocks
 * of its time is no gain, it would only come back elsewhere, unless two such
 * segments fit into one.
 */
static bool kvt_seg_gains(const struct kvt_log *l, const struct kvt_seg *s)
{
	return s->live < s->fill || s->live <= l->seg_units / 2;
}

/**
 * kvt_log_victim() - choose the segment that is cheapest to empty
 * @l: log; meta lock held
 *
 * The sealed one with the fewest live units, if emptying it gains anything.
 * Return: segment, now CLEANING, or KVT_NO_SEG.
 */
u32 kvt_log_victim(struct kvt_log *l)
{
	u32 i, best = KVT_NO_SEG, best_live = ~0u;

	for (i = 0; i < l->nr_segs; i++) {
		const struct kvt_seg *s = &l->segs[i];

		if (s->state == KVT_SEG_SEALED && !s->writes && s->live < best_live &&
		    kvt_seg_gains(l, s)) {
			best = i;
			best_live = s->live;
		}
	}
	if (best != KVT_NO_SEG)
		l->segs[best].state = KVT_SEG_CLEANING;
	return best;
}

/**
 * kvt_log_clean_end() - the cleaner is done with a segment
 * @l:   log; meta lock held
 * @seg: CLEANING segment; SEALED again if something in it is still live
 * Return: an array the caller must free, or NULL.
 */
u32 *kvt_log_clean_end(struct kvt_log *l, u32 seg)
{
	struct kvt_seg *s = &l->segs[seg];

	s->state = KVT_SEG_SEALED;
	return kvt_seg_retire(l, s);
}

/**
 * kvt_log_busy() - is anything under way in the log
 * @l: log; meta lock held
 * Return: whether a segment is being cleaned or written.
 */
bool kvt_log_busy(const struct kvt_log *l)
{
	u32 i;

	for (i = 0; i < l->nr_segs; i++) {
		if (l->segs[i].state == KVT_SEG_CLEANING || l->segs[i].writes)
			return true;
	}
	return false;
}
