/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Space of the simulator's slowest tier: the log of driver/core, in segments.
 *
 * A block is one unit. Three segments are for the log itself: one is open for each of
 * its heads, and one is free for the cleaner. All others may be full of live blocks.
 * When no segment is free the cheapest one is emptied: blocks that are nowhere else are
 * carried forward, which is a write; copies of blocks that are on a faster tier, too,
 * are dropped. If it has much in it, blocks are to be evicted first: sim_log_dense(). And
 * some are let go rather than carried.
 */
#ifndef KVT_SIM_LOG_H
#define KVT_SIM_LOG_H

#include "kvt_log.h"

#define SIM_LOG_OWN	3u	/* segments */

/**
 * struct sim_log - a log
 * @log:        of the core
 * @segs:       its segments
 * @nr_carried: blocks carried forward
 * @nr_dropped: copies dropped
 * @let_go:     whether a block has left the pool instead of being carried; NULL: none does
 * @ctx:        for it
 */
struct sim_log {
	struct kvt_log log;
	struct kvt_seg *segs;
	u64 nr_carried;
	u64 nr_dropped;
	bool (*let_go)(void *ctx, u32 id);
	void *ctx;
};

/* Room for @blocks live ones, at least, in segments of @seg_blocks. */
struct sim_log *sim_log_new(u32 blocks, u32 seg_blocks);
void sim_log_delete(struct sim_log *l);

/* A block without a copy on the tier gets one; its KVT_CTL_LOG is the caller's to set. */
/* Would the next block have a segment emptied that has much in it. */
bool sim_log_dense(struct sim_log *l);
void sim_log_put(struct sim_log *l, struct kvt_table *t, u32 id);

/* A block's copy goes; the same. */
void sim_log_drop(struct sim_log *l, struct kvt_table *t, u32 id);

#endif /* KVT_SIM_LOG_H */
