/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Chains: the forest of prefixes.
 *
 * A block's parent is the block before it. A child's link keeps its parent's
 * entry (not its bytes) from being freed, so walking up never meets a stranger.
 * A parent may not be evicted or dropped while it has children; an aborted
 * parent stays behind as a DEAD entry until its children have gone too. A block
 * that dies leaves its own parent at once.
 *
 * Lock: the pool's meta lock for everything here.
 */
#ifndef KVT_CHAIN_H
#define KVT_CHAIN_H

#include "kvt_block.h"

/**
 * struct kvt_ch_cut - how far kvt_ch_cut_step() is
 * @from:    block that the walk began at
 * @at:      where it is, KVT_NIL: at the top
 * @last:    where it was before, KVT_NIL: it has only begun
 * @cleared: highest block whose mark is off again
 * @nr:      links cut
 */
struct kvt_ch_cut {
	u32 from;
	u32 at;
	u32 last;
	u32 cleared;
	u32 nr;
};

void kvt_ch_link(struct kvt_table *t, u32 child, u32 parent);
u32 kvt_ch_unlink(struct kvt_table *t, u32 child);
void kvt_ch_adopt(struct kvt_table *t, u32 to, u32 from, u32 max);
u32 kvt_ch_depth(const struct kvt_table *t, u32 id, u32 limit);
void kvt_ch_cut_start(struct kvt_ch_cut *c);
bool kvt_ch_cut_step(struct kvt_table *t, struct kvt_ch_cut *c, u32 steps);

static inline bool kvt_ch_leaf(const struct kvt_table *t, u32 id)
{
	return kvt_cold(t, id)->first_child == KVT_NIL;
}

#endif /* KVT_CHAIN_H */
