/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Holds: what is on the chains of decoding sessions.
 *
 * A decoding session holds its tip; a block that is held and has told its parent so (UP)
 * holds that. So a block's count is the number of sessions whose tip it is and of children
 * that hold it, and each block is counted, and paid for, once, however many sessions
 * share it. The ctl word's HELD says that the count is not zero.
 *
 * Only leaves leave the pool to make room, so a tip that is held keeps its chain, even
 * while its ancestors are not counted yet: counting a long chain takes several steps, and
 * the lock is dropped between them. A walk remembers one block and its generation; if that
 * has died meanwhile, nothing is left to do, because who dies gives back what it held. (If the
 * block has another entry by then, the blocks above it stay uncounted, which its tip keeps.)
 * What leaves whoever holds it, and is no leaf, is asked for block by block: @stays.
 *
 * Invariants: HELD is set exactly if the count is not 0. UP is set only if that is so, and
 * the parent counts it, or has died since. A block that is not READY has neither.
 *
 * Lock: the pool's meta lock for everything.
 */
#ifndef KVT_HOLD_H
#define KVT_HOLD_H

#include "kvt_block.h"

#define KVT_HOLD_UP	(1u << 31)	/* of kvt_cold.holds */
#define KVT_HOLD_COUNT	(KVT_HOLD_UP - 1)

enum kvt_hold_end {
	KVT_HOLD_DONE,
	KVT_HOLD_MORE,		/* to be called again */
	KVT_HOLD_FULL,		/* @room is used up */
	KVT_HOLD_LEAVES,	/* a block will leave all the same */
};

/**
 * struct kvt_hold_walk - on the way up a chain
 * @id:   block it has come to, or KVT_NIL
 * @gen:  its generation
 * @room: blocks that may be paid for yet; the caller sets it before each step
 * @nr:   blocks that this step has begun, or ceased, to hold and that are not pinned:
 *        to be charged, or given back, by the caller
 * @stays: for who begins to hold: asked of each block before it is held, under the meta lock:
 *        will it stay if it is. NULL: all do
 */
struct kvt_hold_walk {
	u32 id;
	u32 gen;
	u32 room;
	u32 nr;
	bool (*stays)(struct kvt_table *t, u32 id);
};

enum kvt_hold_end kvt_hold_tip(struct kvt_table *t, struct kvt_hold_walk *w, u32 id);
enum kvt_hold_end kvt_hold_climb(struct kvt_table *t, struct kvt_hold_walk *w, u32 steps);
enum kvt_hold_end kvt_hold_drop(struct kvt_table *t, struct kvt_hold_walk *w, u32 steps);
void kvt_hold_grow(struct kvt_table *t, u32 child);
void kvt_hold_die(struct kvt_table *t, struct kvt_hold_walk *w, u32 id);
void kvt_hold_pass(struct kvt_table *t, u32 to, u32 from);

/* Is a block still the one it was, and in the pool. */
static inline bool kvt_hold_there(const struct kvt_table *t, u32 id, u32 gen)
{
	const struct kvt_hot *h;

	if (!kvt_table_valid(t, id))
		return false;
	h = kvt_hot(t, id);
	return h->gen == gen && kvt_ctl_state(kvt_ctl(h)) == KVT_READY;
}

#endif /* KVT_HOLD_H */
