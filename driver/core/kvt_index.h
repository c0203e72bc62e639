/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Index: (namespace, group, key) -> block id.
 *
 * A sharded chained hash table. The top bits of the hash choose the shard, its
 * low bits the bucket. Each shard has its own lock and its own bucket array,
 * which doubles at one to two blocks a bucket; so nothing global is
 * taken to find a block, and growing stops one shard for a moment, never all.
 *
 * Each shard has a measure of its own for that. Blocks are spread evenly, so all would double
 * at about the same time, and have two buckets for one that is needed. As it is, there is a
 * bucket for a block, whatever their number.
 *
 * The hash is keyed with a secret of the pool, because keys are chosen by
 * clients.
 *
 * Lock: shard->lock for all of a shard, but for the address that kvt_ix_prefetch() makes of
 * it. It nests inside the meta lock.
 */
#ifndef KVT_INDEX_H
#define KVT_INDEX_H

#include "kvt_block.h"

#define KVT_SHARD_BITS		8
#define KVT_SHARDS		(1u << KVT_SHARD_BITS)
#define KVT_SHARD_BUCKETS_MIN	16u
#define KVT_SHARD_BUCKETS_MAX	(1u << 24)

struct kvt_shard {
	spinlock_t lock;
	u32 mask;		/* buckets - 1 */
	u32 count;		/* blocks in the shard */
	u32 spread;		/* 0 to 255: it doubles at 1 + (1 + this) / 256 blocks a bucket */
	u32 *buckets;
} ____cacheline_aligned_in_smp;

/**
 * struct kvt_index - the whole
 * @table:  where the ids point
 * @seed:   hash secret
 * @shards: KVT_SHARDS of them
 */
struct kvt_index {
	struct kvt_table *table;
	struct kvt_hash_seed seed;
	struct kvt_shard shards[KVT_SHARDS];
};

u32 kvt_ix_hash(const struct kvt_index *ix, u32 ns_group, const u8 *key);

static inline struct kvt_shard *kvt_ix_shard(struct kvt_index *ix, u32 hash)
{
	return &ix->shards[hash >> (32 - KVT_SHARD_BITS)];
}

static inline bool kvt_key_equal(const u8 *a, const u8 *b)
{
	u64 x[4], y[4];

	memcpy(x, a, sizeof(x));
	memcpy(y, b, sizeof(y));
	return !((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3]));
}

void kvt_ix_init(struct kvt_index *ix, struct kvt_table *table,
		 const struct kvt_hash_seed *seed);
void kvt_ix_shard_init(struct kvt_shard *s, u32 *buckets, u32 nr);
u32 kvt_ix_find(struct kvt_index *ix, struct kvt_shard *s, u32 hash, u32 ns_group,
		const u8 *key);
void kvt_ix_insert(struct kvt_index *ix, struct kvt_shard *s, u32 id);
bool kvt_ix_remove(struct kvt_index *ix, struct kvt_shard *s, u32 id);
bool kvt_ix_crowded(const struct kvt_shard *s);
u32 kvt_ix_buckets_for(const struct kvt_shard *s, u64 blocks);
void kvt_ix_prefetch(struct kvt_index *ix, u32 hash);
u32 kvt_ix_prefetch_first(struct kvt_index *ix, struct kvt_shard *s, u32 hash);
u32 *kvt_ix_resize(struct kvt_index *ix, struct kvt_shard *s, u32 *buckets, u32 nr);

#endif /* KVT_INDEX_H */
