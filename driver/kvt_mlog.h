/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A block tier's log as it lies on its device: the member.
 *
 * core/kvt_wlog.h decides what is written where and what must be durable before
 * what; here it is carried out. One struct kvt_mlog for each block tier.
 *
 *   kvt_mlog.c       life of a member: geometry, superblocks, start and stop
 *   kvt_mlog_io.c    batches, flushes, footers, and what follows from their end
 *   kvt_mlog_put.c   places for blocks: records, namespaces, opening segments
 *   kvt_mlog_work.c  in the background: ends of segments, kills, what waits for room
 *   kvt_mlog_sync.c  waiting: fsync, DROP, a namespace's end
 *
 * Locks, outermost first: put_lock[DEMOTE], put_lock[CARRY], io_lock, meta lock. A
 * head has an open batch only while its put_lock is held. Writes of batches are made
 * under none of them; footers, superblocks and flushes under io_lock. Nobody waits
 * for anything under the meta lock.
 *
 * A member that fails a flush, or whose tier FAILED, is given up: nothing is written
 * to it any more, nobody waits for it, and what is there is only read.
 */
#ifndef KVT_MLOG_H
#define KVT_MLOG_H

#include <linux/mutex.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "core/kvt_wlog.h"

struct kvt_tier;

/**
 * struct kvt_mlog - a member
 * @tier:     its tier
 * @w:        the writer. Meta lock
 * @wmem:     the writer's memory
 * @geo:      layout; constant, @w refers to it
 * @super:    superblock as last read or written. io_lock
 * @put_lock: for each head: who adds to its open batch
 * @io_lock:  footer, superblock or flush: one at a time
 * @work:     background; on the pool's log_wq
 */
struct kvt_mlog {
	struct kvt_tier *tier;
	struct kvt_wlog w;
	void *wmem;
	struct kvt_geometry geo;
	struct kvt_super super;
	struct mutex put_lock[KVT_HEADS];
	struct mutex io_lock;
	wait_queue_head_t wait;
	struct work_struct work;
};

int kvt_mlog_rw(struct kvt_tier *t, u64 byte, void *buf, u32 len, bool write, bool fua);
int kvt_mlog_flush_dev(struct kvt_tier *t);

#endif /* KVT_MLOG_H */
