/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Assembling a pool from its block tiers.
 *
 *   kvt_assemble.c         the command: devices to a published pool, or nothing
 *   kvt_assemble_member.c  superblocks; which members belong together
 *   kvt_assemble_read.c    all segments of all members, by several workers
 *   kvt_assemble_merge.c   from what was read to a pool that works
 *   kvt_assemble_refill.c  footers that a crash has left out
 *
 * The segments are gone through three times, in parallel over segments and members:
 *
 *   lives    the first header of each: which life is in it
 *   kills    kills, at once applied: a bit for each unit, if the life is that one
 *   blocks   namespaces and blocks, from segments that have not ended. A block that
 *            no kill names becomes an entry of the pool's table and index, some at a
 *            time and at the latest when its segment has been read; of two with one
 *            name the record with the higher sequence stays
 *
 * What that decides, and how blocks are put together, is the core's: core/kvt_life.h and
 * core/kvt_merge.h. Here are devices, workers, memory, locks, and what the pool has besides.
 * No kill is kept, and no record beside the entry it becomes. Per unit of a device there is at
 * most one entry, with the key of its parent, and one bit; per segment a struct kvt_life_seg.
 *
 * Namespaces that ended are defined as long as the segments are there in which they were,
 * and are known to have ended, or not, from some other segment: there may be any number.
 * Entered are those that have blocks, up to KVT_RECOVER_NS_MAX, and of the others the first
 * as many. What is defined when there is no room is left out, and looked for once more when
 * it is known who has blocks. Of more than a pool may have, those without are not made.
 *
 * While blocks are read it is not yet known which namespaces exist. A namespace gets
 * its index in the pool when its id is first seen, and is made, or not, at the end.
 *
 * The pool is private meanwhile: it is on no list, and dying for whoever has its
 * number. Its locks are taken all the same where workers run at a time. Nothing is
 * written to any member before the pool is complete in memory.
 *
 * Everything on the media is hostile; see core/kvt_format.h for what is checked
 * there. What is checked here: names and ranks, and that blocks fit their namespace.
 */
#ifndef KVT_ASSEMBLE_H
#define KVT_ASSEMBLE_H

#include "kvt_internal.h"
#include "kvt_mlog.h"
#include "core/kvt_merge.h"

#define KVT_AS_WORKERS_MAX	16
#define KVT_AS_NS_MAX		(2 * KVT_RECOVER_NS_MAX)
#define KVT_AS_NS_BUCKETS	(1u << 16)
#define KVT_AS_BUF_BYTES	(1u << 20)	/* a worker's scratch; most summaries fit */
#define KVT_AS_CHUNK_BYTES	(64u << 10)

/**
 * struct kvt_as_member - a device
 * @dev:   the caller's struct, to be given back
 * @tier:  private until the pool is published
 * @super: newest superblock, if @dev.error is 0
 * @slot:  where it was
 * @life:  of its segments, and what of them is dead
 * @started: by kvt_mlog_start()
 */
struct kvt_as_member {
	struct kvtier_assemble_device dev;
	struct kvt_tier *tier;
	struct kvt_super super;
	u32 slot;
	struct kvt_life life;
	bool started;
};

/*
 * Namespace that some record names. @def: newest definition, NULL: none, or GONE.
 * @used: it had a block when that was read
 */
struct kvt_as_ns {
	struct kvt_as_ns *next;
	u64 id;
	u64 seq;
	u32 idx;
	bool used;
	struct kvt_nsdef *def;
};

/* A growing list without an end: chunks of equal entries. */
struct kvt_as_chunk {
	struct kvt_as_chunk *next;
	u32 nr;
	u8 data[];
};

/* A record that is not used, and that no kill names yet. */
struct kvt_as_owed {
	u32 member;
	u32 seg;
	u32 unit;
};

struct kvt_assembly;

/**
 * struct kvt_as_worker - reads segments, one at a time
 * @buf:     scratch
 * @m:       at work on
 * @seg:     likewise
 * @ns_id:   namespace of the last block
 * @ns_idx:  likewise
 * @nr_dead: units of which it was the first to find a kill
 * @batch:   blocks of @seg that are not entered yet
 * @nr_batch: how many
 * @parents: struct kvt_mg_parent
 * @owed:    struct kvt_as_owed
 */
struct kvt_as_worker {
	struct work_struct work;
	struct kvt_assembly *as;
	u8 *buf;
	struct kvt_as_member *m;
	u32 seg;
	u64 ns_id;
	u32 ns_idx;
	u64 nr_dead;
	struct kvt_mg_block batch[KVT_MG_BATCH];
	u32 nr_batch;
	struct kvt_as_chunk *parents;
	struct kvt_as_chunk *owed;
};

/**
 * struct kvt_assembly - a pool being assembled
 * @p:       the pool, private; NULL before it is there
 * @out:     the caller's struct; counts under @lock
 * @pass:    what workers do with a segment
 * @next:    segment to be done next, counted over all members
 * @total:   segments in the pass, those that shorter members do not have included
 * @done:    segments done, for the curious
 * @all:     segments of all passes
 * @err:     first error; workers stop
 * @lock:    spinlock: @out, @err, namespaces
 * @ns:      namespaces by id
 * @ns_at:   by index, from 1; @nr_ns of them
 * @ns_room: more are not entered for their definitions alone
 * @ns_left_out: some were not
 * @max_seq: highest sequence found
 * @link:    of the list that sysfs shows
 */
struct kvt_assembly {
	struct kvt_pool *p;
	struct kvtier_pool_assemble *out;
	u32 nr_members;
	struct kvt_as_member *members;
	u32 nr_workers;
	struct kvt_as_worker *workers;
	struct workqueue_struct *wq;
	void (*pass)(struct kvt_as_worker *w);
	atomic64_t next;
	u64 total;
	atomic64_t done;
	u64 all;
	int err;
	spinlock_t lock;
	struct kvt_as_ns **ns;
	struct kvt_as_ns **ns_at;
	u32 nr_ns;
	u32 ns_room;
	bool ns_left_out;
	siphash_key_t ns_key;
	u64 max_seq;
	struct list_head link;
};

/* kvt_assemble.c */
int kvt_as_reserve(struct kvt_assembly *as, const u8 *uuid);

/* kvt_assemble_member.c */
int kvt_as_open_all(struct kvt_assembly *as);
int kvt_as_agree(struct kvt_assembly *as);

/* kvt_assemble_read.c */
int kvt_as_read_all(struct kvt_assembly *as);
void kvt_as_read_free(struct kvt_assembly *as);
void kvt_as_fail(struct kvt_assembly *as, int err);
void kvt_as_refuse(struct kvt_as_worker *w, int err);
void *kvt_as_chunk_add(struct kvt_as_chunk **list, u32 bytes);
int kvt_as_owe(struct kvt_as_worker *w, u32 member, u32 seg, u32 unit);
u32 kvt_as_ns_index(struct kvt_assembly *as, u64 id);
void kvt_as_ns_define(struct kvt_assembly *as, const struct kvt_nsdef *def);

/*
 * No member says that it knows of ids from the limit on. Whoever wrote one lies, or the superblock
 * that knew cannot be read, and the other one of its member is from before: such ids would be
 * given to others, who would have the blocks.
 */
static inline bool kvt_as_ns_unknown(const struct kvt_assembly *as, u64 id)
{
	return id >= as->p->ns_limit;
}

static inline bool kvt_as_ns_valid(const struct kvt_assembly *as, u64 id)
{
	return id && !kvt_as_ns_unknown(as, id);
}

static inline bool kvt_as_stopped(struct kvt_assembly *as)
{
	return READ_ONCE(as->err);
}

/* kvt_assemble_merge.c */
void kvt_as_block(struct kvt_as_worker *w, u64 life, const struct kvt_rec *rec);
void kvt_as_flush(struct kvt_as_worker *w);
int kvt_as_merge(struct kvt_assembly *as);
int kvt_as_settle(struct kvt_assembly *as);

#endif /* KVT_ASSEMBLE_H */
