// SPDX-License-Identifier: GPL-2.0
/*
 * The block store's side, through libkvtier as any client would.
 *
 * "get" leases and gives back, which makes bytes readable in place; "get_copy"
 * copies them out besides, which is what the peers' reads end with. "put"
 * reserves and commits without a byte written, "put_copy" fills as well.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bench.h"

#define BALLAST		BLOCKS_MAX	/* of 64 KiB */
#define DEMOTE_WAIT_S	60

static const uint64_t group_bytes[] = { 64 << 10, 1 << 20, 4 << 10 };
enum { GROUP_64K, GROUP_1M, GROUP_4K };

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* The @i-th of the keys of that salt. */
void make_key(struct kvtier_key *key, uint64_t salt, uint64_t i)
{
	uint64_t w[4] = { mix(i), mix(i ^ salt), salt, i + 1 };

	memcpy(key->b, w, sizeof(w));
}

/**
 * store_open() - a namespace of pool 0
 * @e:        gets @ns
 * @identity: its name
 */
void store_open(struct env *e, const char *identity)
{
	struct kvtier_ns_params params = KVTIER_NS_PARAMS_INIT;
	struct kvtier_pool *pool;
	int ret = kvtier_pool_open(0, &pool);

	if (ret)
		die("pool 0: %s", strerror(-ret));
	params.flags = KVTIER_NS_CREATE;
	params.identity = identity;
	params.identity_len = strlen(identity);
	params.nr_groups = sizeof(group_bytes) / sizeof(*group_bytes);
	params.block_bytes = group_bytes;
	ret = kvtier_ns_open(pool, &params, &e->ns);
	if (ret)
		die("namespace: %s", strerror(-ret));
	kvtier_pool_unref(pool);
}

static struct kvtier_opts opts_of(const struct env *e)
{
	struct kvtier_opts o = KVTIER_OPTS_INIT;

	o.group = e->group;
	return o;
}

/* What a call is to have done: anything else ends the program. */
void expect(const char *what, int got, unsigned int want)
{
	if (got < 0)
		die("%s: %s", what, strerror(-got));
	if ((unsigned int)got != want)
		die("%s: %d of %u", what, got, want);
}

/* One batch from block @at on; each block's parent is the one before it. */
static void reserve(struct env *e, unsigned int at)
{
	struct kvtier_opts o = opts_of(e);

	expect("reserve", kvtier_reserve(e->ns, &o, e->keys + at, at ? e->keys + at - 1 : NULL,
					 e->batch, e->slots), e->batch);
}

static void put(struct env *e)
{
	unsigned int at;

	for (at = 0; at < e->blocks; at += e->batch) {
		reserve(e, at);
		expect("commit", kvtier_commit_slots(e->ns, 0, e->slots, e->batch), e->batch);
	}
}

static void put_copy(struct env *e)
{
	unsigned int at, i;

	for (at = 0; at < e->blocks; at += e->batch) {
		reserve(e, at);
		for (i = 0; i < e->batch; i++) {
			stamp(e, e->src, at + i);
			memcpy(e->slots[i].ptr, e->src, e->block_bytes);
		}
		expect("commit", kvtier_commit_slots(e->ns, 0, e->slots, e->batch), e->batch);
	}
}

static void get(struct env *e)
{
	struct kvtier_opts o = opts_of(e);
	unsigned int at;

	for (at = 0; at < e->blocks; at += e->batch) {
		expect("get", kvtier_get(e->ns, &o, e->keys + at, e->batch, e->slots), e->batch);
		expect("release", kvtier_release_slots(e->ns, e->slots, e->batch), e->batch);
	}
}

static void get_copy(struct env *e)
{
	struct kvtier_opts o = opts_of(e);
	unsigned int at, i;

	for (at = 0; at < e->blocks; at += e->batch) {
		expect("get", kvtier_get(e->ns, &o, e->keys + at, e->batch, e->slots), e->batch);
		for (i = 0; i < e->batch; i++) {
			memcpy(e->dst, e->slots[i].ptr, e->block_bytes);
			check_stamp(e, e->dst, at + i);
		}
		expect("release", kvtier_release_slots(e->ns, e->slots, e->batch), e->batch);
	}
}

static void lookup(struct env *e)
{
	struct kvtier_lookup_result res[BLOCKS_MAX];
	struct kvtier_opts o = opts_of(e);
	unsigned int at;

	for (at = 0; at < e->blocks; at += e->batch)
		expect("lookup", kvtier_lookup(e->ns, &o, e->keys + at, e->batch, res, NULL),
		       e->batch);
}

/* Last key first, as the kernel takes them. */
void store_drop(struct env *e)
{
	struct kvtier_opts o = opts_of(e);

	expect("drop", kvtier_drop(e->ns, &o, e->keys, e->blocks, NULL), e->blocks);
}

/*
 * Blocks to read, with contents. Keys of their own for each size of batch: what the policy
 * remembers of a key that was there before makes a GET of it cheaper by a tenth.
 */
void store_fill(struct env *e)
{
	unsigned int i;

	e->group = e->block_bytes == group_bytes[GROUP_1M] ? GROUP_1M : GROUP_64K;
	for (i = 0; i < BLOCKS_MAX; i++)
		make_key(&e->keys[i], e->block_bytes | e->batch, i);
	put_copy(e);
}

/**
 * store_works() - all that stays in memory
 * @e: sizes set, blocks filled; they are gone afterwards
 */
void store_works(struct env *e)
{
	static const struct work reads[] = {
		{ "kvtier", "lookup", NULL, lookup, NULL },
		{ "kvtier", "get", NULL, get, NULL },
		{ "kvtier", "get_copy", NULL, get_copy, NULL },
	};
	static const struct work writes[] = {
		{ "kvtier", "put", NULL, put, store_drop },
		{ "kvtier", "put_copy", NULL, put_copy, store_drop },
	};
	unsigned int i;

	store_fill(e);
	for (i = 0; i < sizeof(reads) / sizeof(*reads); i++)
		measure(e, &reads[i]);
	store_drop(e);
	for (i = 0; i < sizeof(writes) / sizeof(*writes); i++)
		measure(e, &writes[i]);
}

/**
 * store_gets() - leases and gives back, and nothing else
 * @e: sizes set; blocks are gone afterwards
 */
void store_gets(struct env *e)
{
	static const struct work w = { "kvtier", "get", NULL, get, NULL };

	store_fill(e);
	measure(e, &w);
	store_drop(e);
}

static const char *sysfs_of_pool;
static uint32_t nvme_tier;

static void set_pool(const char *what, const char *value)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", sysfs_of_pool, what);
	f = fopen(path, "w");
	if (!f || fputs(value, f) < 0 || fclose(f))
		die("%s: %s", path, strerror(errno));
}

/**
 * store_watermarks() - from where to where memory is emptied
 * @low:  percent
 * @high: percent
 */
void store_watermarks(const char *low, const char *high)
{
	/* The low one is always below the high one. */
	set_pool("watermark_low_percent", "1");
	set_pool("watermark_high_percent", high);
	set_pool("watermark_low_percent", low);
}

/* How many of the blocks are on the block tier and nowhere faster. */
static unsigned int on_nvme(struct env *e)
{
	static struct kvtier_lookup_result res[BLOCKS_MAX];
	struct kvtier_opts o = opts_of(e);
	unsigned int i, n = 0;

	expect("lookup", kvtier_lookup(e->ns, &o, e->keys, e->blocks, res, NULL), e->blocks);
	for (i = 0; i < e->blocks; i++)
		n += res[i].tier == nvme_tier;
	return n;
}

/* Blocks used last, so that what the low watermark leaves in memory is these. */
void store_ballast(struct env *e)
{
	static struct kvtier_key keys[BALLAST];
	static struct kvtier_slot slots[BALLAST];
	struct kvtier_opts o = KVTIER_OPTS_INIT;
	unsigned int i;
	int ret;

	for (i = 0; i < BALLAST; i++)
		make_key(&keys[i], 0xba11a57, i);
	ret = kvtier_reserve(e->ns, &o, keys, NULL, BALLAST, slots);
	if (ret < 0)
		die("ballast: %s", strerror(-ret));
	kvtier_commit_slots(e->ns, 0, slots, BALLAST);
	o.flags = KVTIER_GET_WAIT;
	o.timeout_ns = 10000000000u;
	expect("ballast", kvtier_get(e->ns, &o, keys, BALLAST, slots), BALLAST);
	kvtier_release_slots(e->ns, slots, BALLAST);
}

static void demote_all(struct env *e)
{
	uint64_t end = now_ns() + DEMOTE_WAIT_S * 1000000000ull;
	unsigned int n;

	store_ballast(e);
	store_watermarks("1", "2");
	while ((n = on_nvme(e)) < e->blocks) {
		if (now_ns() > end)
			die("only %u of %u blocks went to the block tier", n, e->blocks);
		usleep(2000);
	}
	store_watermarks("90", "95");
}

static void get_nvme(struct env *e)
{
	struct kvtier_opts o = opts_of(e);
	unsigned int at;

	o.flags = KVTIER_GET_WAIT;
	o.timeout_ns = KVTIER_NO_TIMEOUT;
	for (at = 0; at < e->blocks; at += e->batch) {
		expect("get", kvtier_get(e->ns, &o, e->keys + at, e->batch, e->slots), e->batch);
		expect("release", kvtier_release_slots(e->ns, e->slots, e->batch), e->batch);
	}
}

/* They are in memory now: nothing moves, only bytes are compared. */
static void check_all(struct env *e)
{
	if (on_nvme(e))
		die("blocks are still on the block tier after GET");
	get_copy(e);
}

/**
 * store_nvme_tier() - find the pool's block tier
 * @pool_sysfs: folder of the pool in sysfs, for what is to come
 * Return: its id.
 */
uint32_t store_nvme_tier(const char *pool_sysfs)
{
	struct kvtier_tier_info tiers[KVTIER_TIERS_MAX];
	struct kvtier_pool *pool;
	int n, i, ret = kvtier_pool_open(0, &pool);

	if (ret)
		die("pool 0: %s", strerror(-ret));
	n = kvtier_pool_tiers(pool, tiers);
	for (i = 0; i < n; i++)
		if (tiers[i].type == KVTIER_TIER_BDEV)
			break;
	if (i >= n)
		die("no block tier");
	kvtier_pool_unref(pool);
	sysfs_of_pool = pool_sysfs;
	nvme_tier = tiers[i].id;
	return nvme_tier;
}

/**
 * store_nvme_works() - blocks that have to come up from the block tier
 * @e:          sizes set; blocks are gone afterwards
 * @pool_sysfs: folder of the pool in sysfs
 *
 * By age alone, so that of what goes down the ballast is what stays: within a millisecond
 * the default policy may think otherwise.
 */
void store_nvme_works(struct env *e, const char *pool_sysfs)
{
	static const struct work w = { "kvtier", "get_nvme", demote_all, get_nvme, check_all };

	store_nvme_tier(pool_sysfs);
	set_pool("policy", "lru");
	store_fill(e);
	measure(e, &w);
	store_drop(e);
	set_pool("policy", "reuse");
}

static struct kvtier_key *scale_keys;
static unsigned int scale_nr, scale_round;

/* Fresh keys for each sample, all over the index. */
static void pick(struct env *e)
{
	unsigned int i;

	for (i = 0; i < e->blocks; i++)
		e->keys[i] = scale_keys[mix(++scale_round) % scale_nr];
}

static void grow(struct env *e, unsigned int to)
{
	static struct kvtier_slot slots[KVTIER_BATCH_MAX];
	static struct kvtier_key roots[KVTIER_BATCH_MAX];
	struct kvtier_opts o = KVTIER_OPTS_INIT;
	unsigned int n;

	o.group = GROUP_4K;
	o.flags = KVTIER_RESERVE_PARENTS;	/* roots, all of them */
	while (scale_nr < to) {
		n = to - scale_nr < KVTIER_BATCH_MAX ? to - scale_nr : KVTIER_BATCH_MAX;
		expect("reserve",
		       kvtier_reserve(e->ns, &o, scale_keys + scale_nr, roots, n, slots), n);
		expect("commit", kvtier_commit_slots(e->ns, 0, slots, n), n);
		scale_nr += n;
	}
}

/**
 * store_scale() - does the number of blocks in the pool matter
 * @e:    sizes are overwritten
 * @many: how many there are in the end
 */
void store_scale(struct env *e, uint32_t many)
{
	static const struct work few = { "kvtier", "get_1000", pick, get, NULL };
	static const struct work all = { "kvtier", "get_many", pick, get, NULL };
	uint32_t i;

	scale_keys = calloc(many, sizeof(*scale_keys));
	if (!scale_keys)
		die("out of memory");
	for (i = 0; i < many; i++)
		make_key(&scale_keys[i], 0x5ca1e, i);
	e->block_bytes = group_bytes[GROUP_4K];
	e->group = GROUP_4K;
	e->batch = 256;
	e->blocks = 256;
	grow(e, 1000);
	measure(e, &few);
	grow(e, many);
	measure(e, &all);
	free(scale_keys);
}
