/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Assembling a pool from one member, as the driver does it, on the host: from the bytes
 * of its segments to a table, an index, chains, lists and a log that are complete.
 *
 * The core does here what it does in the driver (core/kvt_life.h, core/kvt_merge.h); what stands
 * between is written anew, step by step as in driver/kvt_assemble_read.c and
 * driver/kvt_assemble_merge.c, with the same locks and the same memory. The records that an
 * assembly keeps besides are the driver's own: kvt_as_records.h is cut out of
 * driver/kvt_assemble.h by the Makefile.
 *
 * What is different: one worker does it all, and what the pool's namespaces have is a few
 * counters. What is not there: members that must agree, segments that were not sealed
 * (their payloads would have to be read), times to live, and whatever is written.
 *
 * All memory is counted by what it is for.
 */
#ifndef KVT_RECOVER_ASSEMBLE_H
#define KVT_RECOVER_ASSEMBLE_H

#include "kvt_env.h"
#include "kvt_merge.h"
#include "recover_media.h"

#include "kvt_as_records.h"

/* What memory is for. Up to USE_STAYS it is the pool's, else it goes when that is there. */
enum as_use {
	USE_ENTRIES,	/* hot and cold records, and where they are */
	USE_INDEX,	/* buckets */
	USE_SEGS,	/* the log's segments, and which blocks are in them */
	USE_STAYS,
	USE_PARENTS = USE_STAYS,	/* key of each block's parent */
	USE_DEAD,	/* a bit for each unit: a kill names it */
	USE_FOUND,	/* a record for each segment */
	USE_OWED,	/* records to be killed */
	USE_NS,		/* namespaces and their definitions */
	USE_BUFFERS,	/* of as many workers as there may be */
	USE_ORDER,	/* for lists and segments, in the end */
	USES,
};

extern const char *const use_names[USES];

/* Steps that are timed. */
enum as_step {
	STEP_LIVES,
	STEP_KILLS,
	STEP_BLOCKS,
	STEP_CHECK,
	STEP_LINK,
	STEP_CUT,
	STEP_ORDER,
	STEP_SEGMENTS,
	STEPS,
};

extern const char *const step_names[STEPS];

/* What the driver's namespace has of this: its index is as in kvt_as_ns. */
struct pool_ns {
	bool there;
	u32 nr_groups;
	u32 group_bytes[KVT_NS_GROUPS];
	u64 nr_blocks;
	u64 used_bytes;
};

/**
 * struct assembly - a pool being assembled
 * @media:   what is read
 * @arena_used: bytes of what is not small
 * @bytes:   of memory now, by use
 * @most:    of all that goes, at most at a time
 * @seconds: of processor time, by step
 * @super:   has no more than its limits and @media's geometry
 * @life:    as the driver's, @ns to @owed likewise
 * @seg:     worker's: being read
 * @ns_id:   worker's: namespace of the last block, and its index
 * @nr_dead: worker's, @batch and @nr_batch likewise: as the driver's
 * @found:   what was found and what became of it; @found.away and later stay 0
 */
struct assembly {
	const struct media *media;
	size_t arena_used;
	u64 bytes[USES];
	u64 most;
	double seconds[STEPS];

	spinlock_t meta_lock;
	struct kvt_table table;
	struct kvt_index index;
	struct kvt_policy policy;
	struct kvt_log log;
	struct pool_ns *pool_ns;

	spinlock_t lock;
	struct kvt_super super;
	struct kvt_life life;
	struct kvt_as_ns **ns;
	struct kvt_as_ns **ns_at;
	u32 nr_ns;
	struct kvt_as_chunk *parents;
	struct kvt_as_chunk *owed;
	u8 *bufs[KVT_AS_WORKERS_MAX];
	u32 seg;
	u64 ns_id;
	u32 ns_idx;
	u64 nr_dead;
	struct kvt_mg_block batch[KVT_MG_BATCH];
	u32 nr_batch;
	u64 max_seq;
	u32 nr_segments;
	struct media_sum found;
};

struct assembly *assembly_new(const struct media *m);
void assembly_run(struct assembly *as);
void assembly_delete(struct assembly *as);

/* recover_merge.c */
void as_block(struct assembly *as, u64 life, const struct kvt_rec *r);
void as_flush(struct assembly *as);
void as_shard_grow(struct assembly *as, struct kvt_shard *s, u32 nr);
void as_merge(struct assembly *as);

/* For the parts of it. What as_take() gives is zeroed. */
void *as_take(struct assembly *as, enum as_use use, size_t bytes);
void *as_take_raw(struct assembly *as, enum as_use use, size_t bytes);
void as_give(struct assembly *as, enum as_use use, void *mem, size_t bytes);
void *as_chunk_add(struct assembly *as, enum as_use use, struct kvt_as_chunk **list, u32 bytes);
void as_owe(struct assembly *as, u32 unit);
struct kvt_as_ns *as_ns_find(struct assembly *as, u64 id);
void as_step_done(struct assembly *as, enum as_step step, double *since);
double as_now_s(void);

static inline u32 as_find(struct assembly *as, u32 ns_group, const u8 *key)
{
	return kvt_mg_find(&as->index, kvt_ix_hash(&as->index, ns_group, key), ns_group, key);
}

#endif /* KVT_RECOVER_ASSEMBLE_H */
