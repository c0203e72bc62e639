// SPDX-License-Identifier: GPL-2.0
/*
 * The index's shards; see kvt_index.h for the model.
 *
 * Invariant: a block is in its bucket exactly when it is FILLING or READY.
 */
#include "kvt_index.h"

/**
 * kvt_ix_hash() - where a name lives
 * @ix:       index
 * @ns_group: kvt_ns_group()
 * @key:      KVT_KEY_BYTES
 */
u32 kvt_ix_hash(const struct kvt_index *ix, u32 ns_group, const u8 *key)
{
	BUILD_BUG_ON(KVT_KEY_BYTES != 32);
	return kvt_env_hash(key, ns_group, &ix->seed);
}

/**
 * kvt_ix_init() - start an index without shards
 * @ix:    index
 * @table: block entries
 * @seed:  hash secret, copied
 */
void kvt_ix_init(struct kvt_index *ix, struct kvt_table *table,
		 const struct kvt_hash_seed *seed)
{
	u32 i;

	memset(ix, 0, sizeof(*ix));
	ix->table = table;
	ix->seed = *seed;
	BUILD_BUG_ON(KVT_SHARDS != 256);
	for (i = 0; i < KVT_SHARDS; i++)
		ix->shards[i].spread = i;
}

/**
 * kvt_ix_shard_init() - give a shard its first buckets
 * @s:       shard
 * @buckets: zeroed, stays the caller's to free after the shard's last use
 * @nr:      a power of two
 */
void kvt_ix_shard_init(struct kvt_shard *s, u32 *buckets, u32 nr)
{
	spin_lock_init(&s->lock);
	s->buckets = buckets;
	s->mask = nr - 1;
	s->count = 0;
}

/**
 * kvt_ix_find() - find a block by name
 * @ix:       index
 * @s:        shard of @hash, locked
 * @hash:     kvt_ix_hash()
 * @ns_group: name
 * @key:      name
 * Return: id or KVT_NIL. The id names that block as long as the lock is held.
 */
u32 kvt_ix_find(struct kvt_index *ix, struct kvt_shard *s, u32 hash, u32 ns_group,
		const u8 *key)
{
	u32 id;

	lockdep_assert_held(&s->lock);
	for (id = s->buckets[hash & s->mask]; id != KVT_NIL;) {
		const struct kvt_hot *h = kvt_hot(ix->table, id);

		if (h->hash == hash && h->ns_group == ns_group &&
		    kvt_key_equal(h->key, key))
			return id;
		id = h->hash_next;
	}
	return KVT_NIL;
}

/**
 * kvt_ix_prefetch() - a name will be looked for soon
 * @ix:   index
 * @hash: its kvt_ix_hash()
 *
 * Who looks for many waits for memory once if all of them are announced first: this for
 * each, then kvt_ix_prefetch_first() for each. Needs no lock: the bucket is not read.
 */
void kvt_ix_prefetch(struct kvt_index *ix, u32 hash)
{
	const struct kvt_shard *s = kvt_ix_shard(ix, hash);

	prefetch(READ_ONCE(s->buckets) + (hash & READ_ONCE(s->mask)));
}

/**
 * kvt_ix_prefetch_first() - likewise, of the bucket's first block
 * @ix:   index
 * @s:    shard of @hash, locked
 * @hash: kvt_ix_hash()
 * Return: that block, or KVT_NIL. It may have another name.
 */
u32 kvt_ix_prefetch_first(struct kvt_index *ix, struct kvt_shard *s, u32 hash)
{
	u32 id = s->buckets[hash & s->mask];

	lockdep_assert_held(&s->lock);
	if (id != KVT_NIL)
		prefetch(kvt_hot(ix->table, id));
	return id;
}

/**
 * kvt_ix_insert() - make a block findable
 * @ix: index
 * @s:  its shard, locked
 * @id: block with key, ns_group and hash set, whose name is not there yet
 */
void kvt_ix_insert(struct kvt_index *ix, struct kvt_shard *s, u32 id)
{
	struct kvt_hot *h = kvt_hot(ix->table, id);
	u32 *bucket = &s->buckets[h->hash & s->mask];

	lockdep_assert_held(&s->lock);
	h->hash_next = *bucket;
	*bucket = id;
	s->count++;
}

/**
 * kvt_ix_remove() - make a block unfindable
 * @ix: index
 * @s:  its shard, locked
 * @id: block
 * Return: whether it was there.
 */
bool kvt_ix_remove(struct kvt_index *ix, struct kvt_shard *s, u32 id)
{
	struct kvt_hot *h = kvt_hot(ix->table, id);
	u32 *link = &s->buckets[h->hash & s->mask];

	lockdep_assert_held(&s->lock);
	while (*link != KVT_NIL && *link != id)
		link = &kvt_hot(ix->table, *link)->hash_next;
	if (*link == KVT_NIL)
		return false;
	*link = h->hash_next;
	h->hash_next = KVT_NIL;
	s->count--;
	return true;
}

/* With so many blocks in it a shard of so many buckets wants more. */
static u64 kvt_ix_most(const struct kvt_shard *s, u32 buckets)
{
	return buckets + (((u64)buckets * (1 + s->spread)) >> KVT_SHARD_BITS);
}

/**
 * kvt_ix_crowded() - does the shard want twice the buckets
 * @s: shard; the answer may be stale without its lock
 */
bool kvt_ix_crowded(const struct kvt_shard *s)
{
	u32 mask = READ_ONCE(s->mask);

	return READ_ONCE(s->count) >= kvt_ix_most(s, mask + 1) &&
	       mask < KVT_SHARD_BUCKETS_MAX / 2;
}

/**
 * kvt_ix_buckets_for() - what a shard comes to have
 * @s:      shard
 * @blocks: of the whole index
 * Return: buckets with which it is not crowded with its share of them, a power of two.
 */
u32 kvt_ix_buckets_for(const struct kvt_shard *s, u64 blocks)
{
	u64 share = (blocks + KVT_SHARDS - 1) >> KVT_SHARD_BITS;
	u32 nr = KVT_SHARD_BUCKETS_MIN;

	while (nr < KVT_SHARD_BUCKETS_MAX && share >= kvt_ix_most(s, nr))
		nr *= 2;
	return nr;
}

/**
 * kvt_ix_resize() - move a shard to another bucket array
 * @ix:      index
 * @s:       shard, locked
 * @buckets: zeroed
 * @nr:      a power of two
 * Return: the array to free: the old one, or @buckets if it is no larger.
 */
u32 *kvt_ix_resize(struct kvt_index *ix, struct kvt_shard *s, u32 *buckets, u32 nr)
{
	u32 *old = s->buckets, old_nr = s->mask + 1, i, id, next;

	lockdep_assert_held(&s->lock);
	if (nr <= old_nr)
		return buckets;
	for (i = 0; i < old_nr; i++) {
		for (id = old[i]; id != KVT_NIL; id = next) {
			struct kvt_hot *h = kvt_hot(ix->table, id);

			next = h->hash_next;
			h->hash_next = buckets[h->hash & (nr - 1)];
			buckets[h->hash & (nr - 1)] = id;
		}
	}
	WRITE_ONCE(s->buckets, buckets);
	WRITE_ONCE(s->mask, nr - 1);
	return old;
}
