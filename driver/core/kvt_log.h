/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Space of one block tier: a log in segments.
 *
 * The device is cut in equal *segments*. One is *open* for demotions and one for
 * blocks that the cleaner carries forward; both are filled from start to end.
 * A full segment is *sealed*; it is free again when nothing in it is live.
 * Addresses are in *units* of 4 KiB (or a larger power of two on huge devices)
 * from the start of the log.
 *
 *   FREE -> OPEN -> SEALED -> FREE       CLEANING: sealed, and being emptied
 *                     |        ^         EMPTY: dead, but not to be reused before
 *                     +-> EMPTY +                kvt_wlog says so (@hold)
 *   any  -> BAD (never used again)
 *
 * Some of what is live are *copies*: blocks that are elsewhere as well and that the log
 * can do without (kvt_log_copy()). They are there as long as nobody needs the space:
 * to whoever chooses a segment to be emptied they are as good as dead.
 *
 * Each segment remembers the ids of the blocks written to it, in order; an
 * entry is stale when that block's address is not in the segment any more. The
 * array is handed in when a segment is opened.
 *
 * A log that is written so that it can be recovered belongs to a kvt_wlog, which
 * takes units for headers besides, and decides when a dead segment is free.
 *
 * Lock: the pool's meta lock. Media order within a segment is the caller's.
 */
#ifndef KVT_LOG_H
#define KVT_LOG_H

#include "kvt_block.h"

#define KVT_SEG_CHEAP		8u	/* one part in so many of a segment is cheap to carry */
#define KVT_LOG_FREE_MIN	4u	/* segments that the cleaner sees to that are free */
#define KVT_LOG_VAIN		8u	/* segments after one that was emptied in vain */
#define KVT_LOG_WELL_USED	75u	/* percent of what can be used, see kvt_log_dense() */

#define KVT_NO_SEG	(~0u)
#define KVT_NO_UNIT	(~0u)

enum kvt_seg_state {
	KVT_SEG_FREE = 0,
	KVT_SEG_OPEN,
	KVT_SEG_SEALED,
	KVT_SEG_CLEANING,
	KVT_SEG_BAD,
	KVT_SEG_EMPTY,
};

enum kvt_log_head {
	KVT_HEAD_DEMOTE = 0,
	KVT_HEAD_CARRY = 1,
	KVT_HEADS = 2,
};

/**
 * struct kvt_seg - one segment
 * @ids:    blocks written, in order; owned by the segment while not FREE
 * @nr_ids: entries in it
 * @max_ids: room in it
 * @fill:   units written
 * @placed: of which blocks got
 * @live:   units of blocks still there
 * @copies: of which the log can do without
 * @state:  enum kvt_seg_state
 * @passed: not to be chosen for cleaning while there is another one
 * @carried: begun for what the cleaner carried, in this round of victims
 * @writes: writes submitted and not complete; not freed before they are. In a log
 *          that holds kvt_wlog keeps count of them
 */
struct kvt_seg {
	u32 *ids;
	u32 nr_ids;
	u32 max_ids;
	u32 fill;
	u32 placed;
	u32 live;
	u32 copies;
	u32 writes;
	u8 state;
	bool passed;
	bool carried;
};

/**
 * struct kvt_log - a block tier's space
 * @segs:       @nr_segs of them
 * @seg_units:  usable units in a segment
 * @nr_free:    FREE ones
 * @nr_bad:     BAD ones
 * @nr_empty:   EMPTY ones
 * @live_units: sum over all
 * @copy_units: likewise, of copies
 * @open:       open segment of each head, KVT_NO_SEG: none
 * @hint:       where to look for a free one
 * @keep:       free segments that each head leaves to others
 * @hold:       dead segments become EMPTY, not FREE, and keep their ids until
 *              kvt_log_stale_ids()
 * @nr_stale:   id arrays of EMPTY, FREE and BAD segments
 * @sunk:       units by which what segments are needed for has become less, all together
 * @vain:       how many others are still to be emptied before one that the cleaner has written:
 *              see kvt_log_emptied()
 * @begun:      segments that demotions have begun so far
 * @dense_until: while @sunk is less than this, no segment that may be emptied is cheap;
 *              0: not known
 */
struct kvt_log {
	struct kvt_seg *segs;
	u32 nr_segs;
	u32 seg_units;
	u32 nr_free;
	u32 nr_bad;
	u32 nr_empty;
	u64 live_units;
	u64 copy_units;
	u32 open[KVT_HEADS];
	u32 hint;
	u32 keep[KVT_HEADS];
	bool hold;
	u8 vain;
	u32 nr_stale;
	u64 begun;
	u64 sunk;
	u64 dense_until;
};

void kvt_log_init(struct kvt_log *l, struct kvt_seg *segs, u32 nr_segs, u32 seg_units);
bool kvt_log_needs_segment(const struct kvt_log *l, enum kvt_log_head head, u32 units);
u32 *kvt_log_open(struct kvt_log *l, enum kvt_log_head head, u32 *ids, u32 max_ids);
u32 kvt_log_alloc(struct kvt_log *l, enum kvt_log_head head, u32 units, u32 id);
u32 *kvt_log_write_done(struct kvt_log *l, u32 unit);
u32 *kvt_log_free(struct kvt_log *l, u32 unit, u32 units);
void kvt_log_copy(struct kvt_log *l, u32 unit, u32 units, bool copy);
void kvt_log_rename(struct kvt_log *l, u32 unit, u32 from, u32 to);
u32 kvt_log_victim(struct kvt_log *l);
u64 kvt_log_room(const struct kvt_log *l);
void kvt_log_emptied(struct kvt_log *l, bool carried, u64 room);
bool kvt_log_dense(struct kvt_log *l);
bool kvt_log_tight(struct kvt_log *l);
void kvt_log_pass_over(struct kvt_log *l, u32 seg);
bool kvt_log_claim(struct kvt_log *l, u32 seg);
u32 *kvt_log_fit(struct kvt_log *l, u32 seg, u32 *ids, u32 max_ids);
u32 *kvt_log_clean_end(struct kvt_log *l, u32 seg);
bool kvt_log_busy(const struct kvt_log *l);

/* For kvt_wlog */
u32 kvt_log_take(struct kvt_log *l, enum kvt_log_head head, u32 keep, u32 *ids, u32 max_ids);
void kvt_log_untake(struct kvt_log *l, enum kvt_log_head head);
u32 kvt_log_skip(struct kvt_log *l, enum kvt_log_head head, u32 units);
void kvt_log_seal(struct kvt_log *l, enum kvt_log_head head);
void kvt_log_release(struct kvt_log *l, u32 seg, bool bad);
void kvt_log_restore(struct kvt_log *l, u32 seg, const struct kvt_seg *s);
u32 *kvt_log_stale_ids(struct kvt_log *l);

static inline u32 kvt_log_seg_of(const struct kvt_log *l, u32 unit)
{
	return unit / l->seg_units;
}

/* Units of what the log is needed for: all but copies. Racy without the meta lock. */
static inline u64 kvt_log_used(const struct kvt_log *l)
{
	u64 live = READ_ONCE(l->live_units), copies = READ_ONCE(l->copy_units);

	return live - min(live, copies);
}

/* How many segments the cleaner sees to that are free. */
static inline u32 kvt_log_goal(const struct kvt_log *l)
{
	return min(KVT_LOG_FREE_MIN, l->nr_segs / 2);
}

/* What would have to be carried if the segment were emptied. */
static inline u32 kvt_seg_needed(const struct kvt_seg *s)
{
	return s->live - s->copies;
}

#endif /* KVT_LOG_H */
