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

void kvt_ch_link(struct kvt_table *t, u32 child, u32 parent);
u32 kvt_ch_unlink(struct kvt_table *t, u32 child);
u32 kvt_ch_depth(const struct kvt_table *t, u32 id, u32 limit);
u32 kvt_ch_cut_cycles(struct kvt_table *t);

static inline bool kvt_ch_leaf(const struct kvt_table *t, u32 id)
{
	return kvt_cold(t, id)->first_child == KVT_NIL;
}

#endif /* KVT_CHAIN_H */
