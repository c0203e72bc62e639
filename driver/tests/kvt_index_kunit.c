// SPDX-License-Identifier: GPL-2.0
/*
 * The index: exactness, collisions, growth.
 */
#include "kvt_kunit.h"
#include "../core/kvt_index.h"

#define NR	1500

struct fixture {
	struct kvt_table *table;
	struct kvt_index *ix;
	struct kvt_shard *s;
	u32 *first;
};

static void fill_key(u8 *key, u32 n)
{
	memset(key, 0, KVT_KEY_BYTES);
	memcpy(key + KVT_KEY_BYTES - sizeof(n), &n, sizeof(n));
}

/* An index with one shard that is used for everything, whatever the hash. */
static void setup(struct kunit *test, struct fixture *f)
{
	struct kvt_hash_seed seed;

	memset(&seed, 0x5a, sizeof(seed));
	f->table = kvt_test_table(test, 1);
	f->ix = kunit_kzalloc(test, sizeof(*f->ix), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, f->ix);
	kvt_ix_init(f->ix, f->table, &seed);
	f->first = kunit_kzalloc(test, KVT_SHARD_BUCKETS_MIN * sizeof(u32), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, f->first);
	f->s = &f->ix->shards[0];
	kvt_ix_shard_init(f->s, f->first, KVT_SHARD_BUCKETS_MIN);
}

static u32 add(struct kunit *test, struct fixture *f, u32 ns_group, u32 n, u32 hash)
{
	u32 id = kvt_test_block(test, f->table, KVT_READY);
	struct kvt_hot *h = kvt_hot(f->table, id);

	fill_key(h->key, n);
	h->ns_group = ns_group;
	h->hash = hash;
	spin_lock(&f->s->lock);
	kvt_ix_insert(f->ix, f->s, id);
	spin_unlock(&f->s->lock);
	return id;
}

static u32 find(struct fixture *f, u32 ns_group, u32 n, u32 hash)
{
	u8 key[KVT_KEY_BYTES];
	u32 id;

	fill_key(key, n);
	spin_lock(&f->s->lock);
	id = kvt_ix_find(f->ix, f->s, hash, ns_group, key);
	spin_unlock(&f->s->lock);
	return id;
}

static bool del(struct fixture *f, u32 id)
{
	bool was;

	spin_lock(&f->s->lock);
	was = kvt_ix_remove(f->ix, f->s, id);
	spin_unlock(&f->s->lock);
	return was;
}

static u32 *resize(struct kunit *test, struct fixture *f, u32 nr)
{
	u32 *buckets = kunit_kzalloc(test, nr * sizeof(u32), GFP_KERNEL), *old;

	KUNIT_ASSERT_NOT_NULL(test, buckets);
	spin_lock(&f->s->lock);
	old = kvt_ix_resize(f->ix, f->s, buckets, nr);
	spin_unlock(&f->s->lock);
	return old;
}

static u32 hash_of(struct fixture *f, u32 ns_group, u32 n)
{
	u8 key[KVT_KEY_BYTES];

	fill_key(key, n);
	return kvt_ix_hash(f->ix, ns_group, key);
}

/* The name is key and namespace and group, every bit of them. */
static void index_name_is_exact(struct kunit *test)
{
	u32 a = kvt_ns_group(1, 2), id, bit;
	struct fixture f;
	u8 key[KVT_KEY_BYTES];

	setup(test, &f);
	id = add(test, &f, a, 77, 9);
	KUNIT_EXPECT_EQ(test, find(&f, a, 77, 9), id);
	KUNIT_EXPECT_EQ(test, find(&f, kvt_ns_group(1, 3), 77, 9), KVT_NIL);
	KUNIT_EXPECT_EQ(test, find(&f, kvt_ns_group(2, 2), 77, 9), KVT_NIL);
	KUNIT_EXPECT_EQ(test, find(&f, a, 77, 10), KVT_NIL);
	for (bit = 0; bit < 8 * KVT_KEY_BYTES; bit++) {
		fill_key(key, 77);
		key[bit / 8] ^= (u8)(1u << (bit % 8));
		spin_lock(&f.s->lock);
		KUNIT_EXPECT_EQ(test, kvt_ix_find(f.ix, f.s, 9, a, key), KVT_NIL);
		spin_unlock(&f.s->lock);
	}
}

/* Namespaces and groups do not share names. */
static void index_ns_group_is_injective(struct kunit *test)
{
	u32 ns, group, v;

	for (ns = 0; ns < 4096; ns++) {
		for (group = 0; group < 16; group++) {
			v = kvt_ns_group(ns, group);
			KUNIT_ASSERT_EQ(test, v >> 4, ns);
			KUNIT_ASSERT_EQ(test, v & 15, group);
		}
	}
}

/* Full hash collisions: all are found, removal of one leaves the others. */
static void index_survives_collisions(struct kunit *test)
{
	struct fixture f;
	u32 id[12], order[] = { 11, 0, 5, 6, 4, 1, 10, 2, 3, 9, 7, 8 }, i, k;

	setup(test, &f);
	for (i = 0; i < ARRAY_SIZE(id); i++)
		id[i] = add(test, &f, 16, i, 0x123);
	for (k = 0; k < ARRAY_SIZE(order); k++) {
		KUNIT_EXPECT_TRUE(test, del(&f, id[order[k]]));
		KUNIT_EXPECT_FALSE(test, del(&f, id[order[k]]));
		id[order[k]] = KVT_NIL;
		KUNIT_EXPECT_EQ(test, f.s->count, (u32)ARRAY_SIZE(id) - 1 - k);
		for (i = 0; i < ARRAY_SIZE(id); i++)
			KUNIT_ASSERT_EQ(test, find(&f, 16, i, 0x123), id[i]);
	}
}

/* Growing keeps every block findable, in its bucket, once. */
static void index_grows(struct kunit *test)
{
	u32 i, nr, total, b, id, want = KVT_SHARD_BUCKETS_MIN;
	struct fixture f;
	u32 *was;

	setup(test, &f);
	f.s->spread = 127;
	for (i = 0; i < NR; i++) {
		add(test, &f, 16, i, hash_of(&f, 16, i));
		KUNIT_ASSERT_EQ(test, kvt_ix_crowded(f.s), i + 1 >= want + want / 2);
		if (!kvt_ix_crowded(f.s))
			continue;
		want *= 2;
		was = f.s->buckets;
		KUNIT_ASSERT_PTR_EQ(test, resize(test, &f, want), was);
		KUNIT_ASSERT_EQ(test, f.s->mask, want - 1);
		KUNIT_ASSERT_EQ(test, f.s->count, i + 1);
	}
	for (i = 0; i < 2 * NR; i++) {
		nr = find(&f, 16, i, hash_of(&f, 16, i));
		KUNIT_ASSERT_EQ(test, nr != KVT_NIL, i < NR);
	}
	for (b = 0, total = 0; b <= f.s->mask; b++) {
		for (id = f.s->buckets[b]; id; id = kvt_hot(f.table, id)->hash_next) {
			KUNIT_ASSERT_EQ(test, kvt_hot(f.table, id)->hash & f.s->mask, b);
			total++;
		}
	}
	KUNIT_EXPECT_EQ(test, total, (u32)NR);
}

/* An array that is no larger is handed back and nothing has changed. */
static void index_never_shrinks(struct kunit *test)
{
	struct fixture f;
	u32 *buckets;

	setup(test, &f);
	add(test, &f, 16, 1, 5);
	buckets = kunit_kzalloc(test, KVT_SHARD_BUCKETS_MIN * sizeof(u32), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, buckets);
	spin_lock(&f.s->lock);
	KUNIT_EXPECT_PTR_EQ(test, kvt_ix_resize(f.ix, f.s, buckets, KVT_SHARD_BUCKETS_MIN),
			    buckets);
	spin_unlock(&f.s->lock);
	KUNIT_EXPECT_PTR_EQ(test, f.s->buckets, f.first);
	KUNIT_EXPECT_NE(test, find(&f, 16, 1, 5), KVT_NIL);
}

/* SipHash-1-3 of the whole name, computed elsewhere: secret 00..0f, key 00..1f. */
static void index_hash_is_siphash(struct kunit *test)
{
	u8 key[KVT_KEY_BYTES], secret[16];
	struct kvt_hash_seed seed;
	struct fixture f;
	u32 i;

	setup(test, &f);
	for (i = 0; i < sizeof(key); i++)
		key[i] = (u8)i;
	memcpy(secret, key, sizeof(secret));
	BUILD_BUG_ON(sizeof(seed) != sizeof(secret));
	memcpy(&seed, secret, sizeof(seed));
	kvt_ix_init(f.ix, f.table, &seed);
	KUNIT_EXPECT_EQ(test, kvt_ix_hash(f.ix, 0x12345678, key), 0xab410147u);
}

/*
 * The hash depends on the secret and on the whole name, and spreads names that
 * differ little over shards and buckets alike.
 */
static void index_hash_spreads(struct kunit *test)
{
	u32 *shards = NULL, *low = NULL, i, h, worst = 0, names = 64 * KVT_SHARDS;
	struct kvt_hash_seed seed;
	struct kvt_index *other;
	struct fixture f;

	setup(test, &f);
	other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);
	shards = kunit_kzalloc(test, KVT_SHARDS * sizeof(u32), GFP_KERNEL);
	low = kunit_kzalloc(test, KVT_SHARDS * sizeof(u32), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, other);
	KUNIT_ASSERT_NOT_NULL(test, shards);
	KUNIT_ASSERT_NOT_NULL(test, low);
	memset(&seed, 0x5b, sizeof(seed));
	kvt_ix_init(other, f.table, &seed);
	for (i = 0; i < names; i++) {
		u8 key[KVT_KEY_BYTES];

		fill_key(key, i);
		h = kvt_ix_hash(f.ix, 16, key);
		if (h == kvt_ix_hash(other, 16, key))
			worst++;
		if (h == kvt_ix_hash(f.ix, 17, key))
			worst++;
		shards[kvt_ix_shard(f.ix, h) - f.ix->shards]++;
		low[h % KVT_SHARDS]++;
	}
	/* Of 2 * 16384 pairs of 32-bit hashes none is equal but by accident. */
	KUNIT_EXPECT_LE(test, worst, 1u);
	/* 64 expected, deviation 8: six of them leave no room for accidents. */
	for (i = 0; i < KVT_SHARDS; i++) {
		KUNIT_EXPECT_GT(test, shards[i], 64u - 48);
		KUNIT_EXPECT_LT(test, shards[i], 64u + 48);
		KUNIT_EXPECT_GT(test, low[i], 64u - 48);
		KUNIT_EXPECT_LT(test, low[i], 64u + 48);
	}
}

/* As many buckets as growing would have led to, and no more than there may be. */
static void index_buckets_are_enough(struct kunit *test)
{
	static const u32 spread[] = { 0, 127, KVT_SHARDS - 1 };
	struct kvt_shard s;
	u32 nr, i;

	for (i = 0; i < ARRAY_SIZE(spread); i++) {
		memset(&s, 0, sizeof(s));
		s.mask = KVT_SHARD_BUCKETS_MIN - 1;
		s.spread = spread[i];
		for (; s.count < 100000; s.count++) {
			while (kvt_ix_crowded(&s))
				s.mask = 2 * s.mask + 1;
			nr = kvt_ix_buckets_for(&s, (u64)s.count * KVT_SHARDS);
			KUNIT_ASSERT_EQ(test, nr, s.mask + 1);
			KUNIT_ASSERT_LT(test, s.count, 2 * nr);
		}
		KUNIT_EXPECT_EQ(test, kvt_ix_buckets_for(&s, 0), KVT_SHARD_BUCKETS_MIN);
		KUNIT_EXPECT_EQ(test, kvt_ix_buckets_for(&s, U64_MAX / 2), KVT_SHARD_BUCKETS_MAX);
	}
}

/* Of evenly spread blocks there are about as many as buckets, however many these are. */
static void index_has_a_bucket_for_a_block(struct kunit *test)
{
	u64 blocks, buckets;
	struct fixture f;
	u32 i;

	setup(test, &f);
	for (blocks = KVT_SHARDS * 1024; blocks < KVT_SHARDS * 9000; blocks += blocks / 50) {
		for (i = 0, buckets = 0; i < KVT_SHARDS; i++)
			buckets += kvt_ix_buckets_for(&f.ix->shards[i], blocks);
		KUNIT_EXPECT_LT(test, buckets * 98, blocks * 100);
		KUNIT_EXPECT_LT(test, blocks * 98, buckets * 100);
	}
}

/* What is announced is the bucket's first block, of whatever name, and nothing changes. */
static void index_announces_first(struct kunit *test)
{
	struct fixture f;
	u32 a, b;

	setup(test, &f);
	spin_lock(&f.s->lock);
	KUNIT_EXPECT_EQ(test, kvt_ix_prefetch_first(f.ix, f.s, 5), KVT_NIL);
	spin_unlock(&f.s->lock);
	a = add(test, &f, 16, 1, 5);
	b = add(test, &f, 16, 2, 5);
	kvt_ix_prefetch(f.ix, 5);
	spin_lock(&f.s->lock);
	KUNIT_EXPECT_EQ(test, kvt_ix_prefetch_first(f.ix, f.s, 5), b);
	KUNIT_EXPECT_EQ(test, kvt_ix_prefetch_first(f.ix, f.s, 6), KVT_NIL);
	spin_unlock(&f.s->lock);
	KUNIT_EXPECT_EQ(test, find(&f, 16, 1, 5), a);
	KUNIT_EXPECT_EQ(test, find(&f, 16, 2, 5), b);
}

static struct kunit_case index_cases[] = {
	KUNIT_CASE(index_name_is_exact),
	KUNIT_CASE(index_ns_group_is_injective),
	KUNIT_CASE(index_survives_collisions),
	KUNIT_CASE(index_grows),
	KUNIT_CASE(index_never_shrinks),
	KUNIT_CASE(index_hash_is_siphash),
	KUNIT_CASE(index_hash_spreads),
	KUNIT_CASE(index_buckets_are_enough),
	KUNIT_CASE(index_has_a_bucket_for_a_block),
	KUNIT_CASE(index_announces_first),
	{ }
};

static struct kunit_suite index_suite = {
	.name = "kvt_index",
	.test_cases = index_cases,
};

kunit_test_suite(index_suite);
