// SPDX-License-Identifier: GPL-2.0
/*
 * Segment bookkeeping; see kvt_log.h for the model.
 *
 * Invariants: live_units is the sum of the segments' live, copy_units of their copies;
 * a FREE segment has no id array, no live unit and no write in flight; units are handed out in
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
	l->keep[KVT_HEAD_DEMOTE] = 1;
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
	if (l->hold) {
		s->state = KVT_SEG_EMPTY;
		l->nr_empty++;
		l->nr_stale += !!ids;
		return NULL;
	}
	s->ids = NULL;
	s->nr_ids = 0;
	s->max_ids = 0;
	s->fill = 0;
	s->placed = 0;
	s->state = KVT_SEG_FREE;
	l->nr_free++;
	return ids;
}

static void kvt_seg_start(struct kvt_log *l, u32 seg, enum kvt_log_head head, u32 *ids,
			  u32 max_ids)
{
	l->hint = seg + 1;
	l->segs[seg].state = KVT_SEG_OPEN;
	l->segs[seg].passed = false;
	l->segs[seg].carried = head == KVT_HEAD_CARRY;
	l->segs[seg].ids = ids;
	l->segs[seg].max_ids = max_ids;
	l->nr_free--;
	l->begun += head == KVT_HEAD_DEMOTE;
	l->open[head] = seg;
}

/**
 * kvt_log_take() - open a free segment for a head that has none
 * @l:       log; meta lock held
 * @head:    which end
 * @keep:    free segments that must be left
 * @ids:     room for @max_ids block ids; the log's if this succeeds
 * @max_ids: most blocks the segment will take
 * Return: segment, or KVT_NO_SEG.
 */
u32 kvt_log_take(struct kvt_log *l, enum kvt_log_head head, u32 keep, u32 *ids, u32 max_ids)
{
	u32 i, seg;

	if (l->nr_free <= keep)
		return KVT_NO_SEG;
	for (i = 0; i < l->nr_segs; i++) {
		seg = (l->hint + i) % l->nr_segs;
		/* One whose old array is not collected yet has to wait for that. */
		if (l->segs[seg].state == KVT_SEG_FREE && !l->segs[seg].ids) {
			kvt_seg_start(l, seg, head, ids, max_ids);
			return seg;
		}
	}
	return KVT_NO_SEG;
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
	u32 seg = l->open[head], *stale = NULL;

	if (seg != KVT_NO_SEG) {
		l->segs[seg].state = KVT_SEG_SEALED;
		l->dense_until = 0;
		stale = kvt_seg_retire(l, &l->segs[seg]);
		l->open[head] = KVT_NO_SEG;
	}
	if (stale)
		kvt_seg_start(l, seg, head, ids, max_ids);
	else if (kvt_log_take(l, head, l->keep[head], ids, max_ids) == KVT_NO_SEG)
		return ids;
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
	s->placed += units;
	s->live += units;
	s->writes += !l->hold;
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
	if (s->state == KVT_SEG_SEALED)
		l->dense_until = 0;
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
	l->sunk += units;
	return kvt_seg_retire(l, s);
}

/**
 * kvt_log_copy() - can the log do without a block
 * @l:     log; meta lock held
 * @unit:  its first unit
 * @units: length
 * @copy:  it can from now on, or it cannot any more: also before kvt_log_free()
 */
void kvt_log_copy(struct kvt_log *l, u32 unit, u32 units, bool copy)
{
	struct kvt_seg *s = &l->segs[kvt_log_seg_of(l, unit)];

	if (copy) {
		s->copies += units;
		l->copy_units += units;
		l->sunk += units;
	} else {
		s->copies -= units;
		l->copy_units -= units;
	}
}

/**
 * kvt_log_rename() - a block has got another id
 * @l:    log; meta lock held
 * @unit: its first unit
 * @from: id until now; stale entries with it become stale ones with the other
 * @to:   id from now on
 *
 * Looks at all ids of the segment.
 */
void kvt_log_rename(struct kvt_log *l, u32 unit, u32 from, u32 to)
{
	struct kvt_seg *s = &l->segs[kvt_log_seg_of(l, unit)];
	u32 i;

	for (i = 0; i < s->nr_ids; i++) {
		if (s->ids[i] == from)
			s->ids[i] = to;
	}
}

/*
 * Emptying a segment gains what is dead in it, copies included. A tail too short for the blocks
 * of its time is no gain, it would only come back elsewhere, unless two such
 * segments fit into one.
 */
static bool kvt_seg_gains(const struct kvt_log *l, const struct kvt_seg *s)
{
	u32 needed = kvt_seg_needed(s);

	return needed < s->placed || needed <= l->seg_units / 2;
}

/* Is it one of those that come when no other is left. */
static bool kvt_seg_later(const struct kvt_log *l, const struct kvt_seg *s)
{
	return s->passed || (l->vain && s->carried);
}

static u32 kvt_log_cheapest(const struct kvt_log *l, bool later)
{
	u64 cost, best_cost = ~0ull;
	u32 i, best = KVT_NO_SEG;

	for (i = 0; i < l->nr_segs; i++) {
		const struct kvt_seg *s = &l->segs[i];

		/* Where that is the same, the fewer copies are lost the better. */
		cost = (u64)kvt_seg_needed(s) << 32 | s->copies;
		if (s->state == KVT_SEG_SEALED && !s->writes && cost < best_cost &&
		    kvt_seg_later(l, s) == later && kvt_seg_gains(l, s)) {
			best = i;
			best_cost = cost;
		}
	}
	return best;
}

/**
 * kvt_log_victim() - choose the segment that is cheapest to empty
 * @l: log; meta lock held
 *
 * The sealed one with the fewest live units but copies, if emptying it gains anything.
 * Copies in it are the caller's to give up, or to carry like the rest. Those
 * that were passed over come when no other is left, each once before the next round; so do,
 * after kvt_log_emptied() has found that in vain, those that hold what the cleaner has carried
 * in this one.
 * Return: segment, now CLEANING, or KVT_NO_SEG.
 */
u32 kvt_log_victim(struct kvt_log *l)
{
	u32 best = kvt_log_cheapest(l, false), i;

	if (best == KVT_NO_SEG) {
		best = kvt_log_cheapest(l, true);
		for (i = 0; i < l->nr_segs; i++) {
			l->segs[i].passed = false;
			l->segs[i].carried = false;
		}
	}
	if (best != KVT_NO_SEG)
		l->segs[best].state = KVT_SEG_CLEANING;
	l->dense_until = 0;
	return best;
}

/**
 * kvt_log_room() - what there is to be written to, for the cleaner to compare
 * @l: log; meta lock held
 * Return: units of free segments, of what the carry head has begun, and of all segments that
 * demotions ever began: what they take meanwhile is not the cleaner's loss.
 */
u64 kvt_log_room(const struct kvt_log *l)
{
	u32 seg = l->open[KVT_HEAD_CARRY];

	return (l->nr_free + l->begun) * l->seg_units +
	       (seg == KVT_NO_SEG ? 0 : l->seg_units - l->segs[seg].fill);
}

/**
 * kvt_log_emptied() - a segment was emptied, as far as that went
 * @l:       log; meta lock held
 * @carried: what &kvt_seg.carried said of it when it was chosen
 * @room:    kvt_log_room() before
 *
 * A segment holds more than blocks, and what it holds for others goes to another one when it is
 * ended. Where that is so much that two of them do not go in one, the next is sealed with
 * little else in it, and would be the cheapest again: it would go round for ever, and those
 * because of which it has to be held would never be emptied. So after one of those that gained
 * nothing these have their turn, which is what makes it obsolete. Not for long, and whatever
 * they gain: what has been carried and died since is the cheapest with good reason.
 */
void kvt_log_emptied(struct kvt_log *l, bool carried, u64 room)
{
	if (carried && kvt_log_room(l) < room + l->seg_units / KVT_SEG_CHEAP)
		l->vain = KVT_LOG_VAIN;
	else if (l->vain)
		l->vain--;
}

/* The least that would have to be carried out of any segment. */
static u32 kvt_log_least(const struct kvt_log *l)
{
	u32 i, least = ~0u;

	for (i = 0; i < l->nr_segs; i++) {
		const struct kvt_seg *s = &l->segs[i];

		if (s->state == KVT_SEG_SEALED && !s->writes)
			least = min(least, kvt_seg_needed(s));
	}
	return least;
}

/*
 * Is there something to empty, and none of it cheap. That is asked for each batch, and a log
 * can have 100,000 segments: so it is not looked at again before the one that has least in
 * it can have become cheap, even if all that went since was in that one.
 */
static bool log_none_cheap(struct kvt_log *l)
{
	u32 least, cheap = l->seg_units / KVT_SEG_CHEAP;

	if (l->sunk < l->dense_until)
		return true;
	least = kvt_log_least(l);
	if (least == ~0u || least <= cheap)
		return false;
	l->dense_until = l->sunk + (least - cheap);
	return true;
}

/* Does more than a part of what can be used hold blocks that the log is needed for. */
static bool log_well_used(const struct kvt_log *l)
{
	u32 segs = l->nr_segs - l->nr_bad;
	u64 all = (u64)(segs - min(segs / 2, 4u)) * l->seg_units;

	return kvt_log_used(l) * 100 > all * KVT_LOG_WELL_USED;
}

/**
 * kvt_log_dense() - is it better to evict from the log than to clean it
 * @l: log; meta lock held
 *
 * A cache writes its log in about the order in which it will evict from it. So a segment
 * that is to be emptied soon loses most of what is in it anyway, if only it is waited for;
 * carried, all of that is written once more for a short time. But holes that never close
 * must not take the space for good: of a log that is not well used the rest is carried.
 * Return: whether every segment has more in it than is cheap to carry, and the log is
 * well used: so much that evictions go on until a segment is cheap.
 */
bool kvt_log_dense(struct kvt_log *l)
{
	return log_well_used(l) && log_none_cheap(l);
}

/**
 * kvt_log_tight() - does what is written now make something else go
 * @l: log; meta lock held
 * Return: whether so few segments are free, or dead and about to be, that the cleaner is at
 * work, and none is cheap to empty, be it for the copies that are in it: the next one is had
 * by evictions, or by carrying, which is writing, too.
 */
bool kvt_log_tight(struct kvt_log *l)
{
	return l->nr_free + l->nr_empty <= kvt_log_goal(l) && log_none_cheap(l);
}

/**
 * kvt_log_pass_over() - a segment could not be emptied: others are to be tried first
 * @l:   log; meta lock held
 * @seg: CLEANING
 */
void kvt_log_pass_over(struct kvt_log *l, u32 seg)
{
	l->segs[seg].passed = true;
}

/**
 * kvt_log_claim() - take a certain segment to be emptied, whatever that gains
 * @l:   log; meta lock held
 * @seg: which
 * Return: whether it is CLEANING now; only a SEALED one that is not written can be.
 */
bool kvt_log_claim(struct kvt_log *l, u32 seg)
{
	struct kvt_seg *s = &l->segs[seg];

	if (s->state != KVT_SEG_SEALED || s->writes)
		return false;
	s->state = KVT_SEG_CLEANING;
	l->dense_until = 0;
	return true;
}

/**
 * kvt_log_clean_end() - the cleaner is done with a segment
 * @l:   log; meta lock held
 * @seg: CLEANING segment; SEALED again if something in it is still live. One in any
 *       other state is not the cleaner's, and is left alone
 * Return: an array the caller must free, or NULL.
 */
u32 *kvt_log_clean_end(struct kvt_log *l, u32 seg)
{
	struct kvt_seg *s = &l->segs[seg];

	if (s->state != KVT_SEG_CLEANING)
		return NULL;
	s->state = KVT_SEG_SEALED;
	l->dense_until = 0;
	return kvt_seg_retire(l, s);
}

/**
 * kvt_log_fit() - give a segment to which nothing is added a shorter id array
 * @l:       log; meta lock held
 * @seg:     which
 * @ids:     room for @max_ids block ids; the log's, unless returned
 * @max_ids: as many as the segment was seen to have
 * Return: an array the caller must free: the one that it had, or @ids if it is open, has more
 * ids or less room than that.
 */
u32 *kvt_log_fit(struct kvt_log *l, u32 seg, u32 *ids, u32 max_ids)
{
	struct kvt_seg *s = &l->segs[seg];
	u32 *old = s->ids;

	if ((s->state != KVT_SEG_SEALED && s->state != KVT_SEG_CLEANING) ||
	    s->nr_ids > max_ids || s->max_ids <= max_ids)
		return ids;
	memcpy(ids, old, s->nr_ids * sizeof(*ids));
	s->ids = ids;
	s->max_ids = max_ids;
	return old;
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

/**
 * kvt_log_untake() - give an open segment back in which nothing was written
 * @l:    log; meta lock held
 * @head: whose segment; its id array is collected as a stale one
 */
void kvt_log_untake(struct kvt_log *l, enum kvt_log_head head)
{
	struct kvt_seg *s = &l->segs[l->open[head]];

	l->open[head] = KVT_NO_SEG;
	l->nr_stale += !!s->ids;
	s->state = KVT_SEG_FREE;
	l->nr_free++;
	l->begun -= head == KVT_HEAD_DEMOTE;
}

/**
 * kvt_log_skip() - take units that no block gets
 * @l:     log; meta lock held
 * @head:  which end; its segment has the room
 * @units: how many
 * Return: the first one, within the segment.
 */
u32 kvt_log_skip(struct kvt_log *l, enum kvt_log_head head, u32 units)
{
	struct kvt_seg *s = &l->segs[l->open[head]];

	s->fill += units;
	return s->fill - units;
}

/**
 * kvt_log_seal() - no more goes into a head's segment
 * @l:    log; meta lock held
 * @head: whose segment
 *
 * It counts as being written until kvt_log_write_done(): its footer is.
 */
void kvt_log_seal(struct kvt_log *l, enum kvt_log_head head)
{
	struct kvt_seg *s = &l->segs[l->open[head]];

	l->open[head] = KVT_NO_SEG;
	s->state = KVT_SEG_SEALED;
	s->writes++;
}

/**
 * kvt_log_release() - an EMPTY segment may be used again, or never
 * @l:   log; meta lock held
 * @seg: which
 * @bad: never
 */
void kvt_log_release(struct kvt_log *l, u32 seg, bool bad)
{
	struct kvt_seg *s = &l->segs[seg];

	s->fill = 0;
	s->placed = 0;
	s->nr_ids = 0;
	l->nr_empty -= s->state == KVT_SEG_EMPTY;
	s->state = bad ? KVT_SEG_BAD : KVT_SEG_FREE;
	l->nr_free += !bad;
	l->nr_bad += bad;
}

/**
 * kvt_log_restore() - put a segment into the state in which it was found
 * @l:   log in which @seg is FREE; before anything is allocated
 * @seg: which
 * @s:   SEALED (or EMPTY, in a log that holds): ids, nr_ids, max_ids, fill, placed
 *       and live are taken from it; BAD: nothing else matters
 */
void kvt_log_restore(struct kvt_log *l, u32 seg, const struct kvt_seg *s)
{
	l->segs[seg] = *s;
	l->segs[seg].writes = 0;
	l->dense_until = 0;
	l->nr_free--;
	l->nr_bad += s->state == KVT_SEG_BAD;
	l->live_units += s->live;
	l->nr_empty += s->state == KVT_SEG_EMPTY;
	if (s->state == KVT_SEG_EMPTY)
		l->nr_stale += !!s->ids;
}

/**
 * kvt_log_stale_ids() - collect an id array that is not needed any more
 * @l: log that holds; meta lock held
 * Return: an array the caller must free, or NULL: no more.
 */
u32 *kvt_log_stale_ids(struct kvt_log *l)
{
	u32 i, *ids;

	for (i = 0; l->nr_stale && i < l->nr_segs; i++) {
		struct kvt_seg *s = &l->segs[i];

		if (!s->ids || (s->state != KVT_SEG_EMPTY && s->state != KVT_SEG_FREE &&
				s->state != KVT_SEG_BAD))
			continue;
		ids = s->ids;
		s->ids = NULL;
		s->nr_ids = 0;
		s->max_ids = 0;
		l->nr_stale--;
		return ids;
	}
	return NULL;
}
