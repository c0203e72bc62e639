// SPDX-License-Identifier: GPL-2.0
/*
 * What could not be read back.
 *
 * Bytes that do not verify, or cannot be read at all, are never shown: the block is a
 * miss from then on (kvt_move.c, kvt_scrub.c). Here that is counted by cause, traced,
 * and put down to the segment it happened in. A segment with KVT_WLOG_FAULTS_MAX faults
 * in one life is *worn*: nothing more is put there, the pool's worker carries off what
 * can still be read (kvt_log_retire()), and when it is empty it is BAD, until the pool
 * is assembled anew.
 *
 * One device error must not become many: a block that cannot be read while its segment
 * is carried off stays. It goes when somebody asks for it, by a scrub, or when it is
 * evicted. One whose bytes do not verify goes at once.
 */
#include "kvt_internal.h"
#include "kvt_mlog.h"
#include "kvt_trace.h"

/**
 * kvt_fault_cause() - which cause an error counts as
 * @err:   of a transfer, see struct kvt_xfer
 * @write: it was the destination's
 */
static enum kvt_cause kvt_fault_cause(int err, bool write)
{
	switch (err) {
	case -EBADMSG:
		return KVT_CAUSE_SUM;
	case -EHWPOISON:
		return KVT_CAUSE_MEMORY;
	case -EIO:
		return write ? KVT_CAUSE_WRITE : KVT_CAUSE_READ;
	}
	return KVT_CAUSE_OTHER;
}

/**
 * kvt_tier_fault() - count a transfer that failed
 * @t:     tier it is put down to; any context
 * @err:   -EIO (device), -EBADMSG (bytes do not verify), -EHWPOISON (memory), others
 * @write: it was written, not read
 */
void kvt_tier_fault(struct kvt_tier *t, int err, bool write)
{
	atomic64_inc(&t->count.io_errors);
	atomic64_inc(&t->count.faults[kvt_fault_cause(err, write)]);
}

/* It will be emptied, and is not used again. Meta lock held. */
static void kvt_segment_worn(struct kvt_pool *p, struct kvt_tier *t, u32 seg)
{
	lockdep_assert_held(&p->meta_lock);
	trace_kvtier_segment_worn(p->id, t->id, seg);
	t->mlog->retire_at = jiffies;
	t->mlog->retire_delay = 0;
	kvt_mlog_kick(t->mlog);
	kvt_reclaim_kick(p);
}

/* Meta lock held. */
static void kvt_segment_fault(struct kvt_pool *p, struct kvt_tier *t, u32 unit)
{
	u32 seg = kvt_log_seg_of(&t->log, unit);

	if (t->state == KVTIER_TIER_FAILED || !kvt_wlog_fault(&t->mlog->w, seg))
		return;
	pr_warn_ratelimited("kvtier%u: tier %s: segment %u is worn: it could not be read %u times\n",
			    p->id, t->args.name, seg, KVT_WLOG_FAULTS_MAX);
	kvt_segment_worn(p, t, seg);
}

/**
 * kvt_segment_write_fault() - a payload could not be written
 * @p:   pool, meta lock held
 * @t:   block tier, not zoned
 * @seg: where; what is in it is carried off, and it is not used again
 */
void kvt_segment_write_fault(struct kvt_pool *p, struct kvt_tier *t, u32 seg)
{
	if (t->state == KVTIER_TIER_FAILED || !kvt_wlog_write_fault(&t->mlog->w, seg))
		return;
	pr_warn_ratelimited("kvtier%u: tier %s: segment %u is worn: it could not be written\n",
			    p->id, t->args.name, seg);
	kvt_segment_worn(p, t, seg);
}

/**
 * kvt_block_fault() - a block cannot be read where it is
 * @p:    pool, meta lock held
 * @id:   block; it has, and keeps for now, its place there
 * @t:    where
 * @addr: its address: page (memory) or unit (block)
 * @err:  as of kvt_tier_fault(), which has been called
 */
void kvt_block_fault(struct kvt_pool *p, u32 id, struct kvt_tier *t, u32 addr, int err)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);

	lockdep_assert_held(&p->meta_lock);
	trace_kvtier_fault(p->id, kvt_ns_of(p, h->ns_group)->id, h->ns_group & 15, h->key, t->id,
			   kvt_fault_cause(err, false), addr);
	if (!t->ops->is_mem)
		kvt_segment_fault(p, t, addr);
}
