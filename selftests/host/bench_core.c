// SPDX-License-Identifier: GPL-2.0
/*
 * What GET and RELEASE of one block cost in the core, with a thousand blocks in
 * the index and with a million: bench_core OUT.json, or bench_core --count BLOCKS
 * under callgrind (see bench.sh), which counts instructions.
 *
 * The path is the driver's: hash the name, lock the shard, find, lease, unlock;
 * later, by id and generation, give the lease back. Keys are asked for at random,
 * the worst order for caches, and in runs of 256 as they were inserted, as a
 * prefix is.
 */
#include "kvt_env.h"
#include "kvt_block.h"
#include "kvt_index.h"
#include "kvt_log.h"
#include "kvt_mem.h"
#include <inttypes.h>
#include <time.h>

#if defined(__has_include)
#if __has_include("valgrind/callgrind.h")
#include <valgrind/callgrind.h>
#endif
#endif
#ifndef CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_STOP_INSTRUMENTATION
#endif

#define FEW		1000u
#define MANY		1000000u
#define BATCH		256u
#define OPS		(BATCH * 400u)
#define ROUNDS		7
#define META_MAX	128.0
#define NS_GROUP	kvt_ns_group(1, 0)

struct store {
	struct kvt_table table;
	struct kvt_index *index;
	u32 blocks;
};

struct lease {
	u32 id;
	u32 gen;
};

static void *alloc(size_t bytes)
{
	void *p = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

	if (!p)
		kvt_env_die(__FILE__, __LINE__, "out of memory");
	memset(p, 0, bytes);
	return p;
}

static u64 mix(u64 z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* Keys look as an engine's hashes do. */
static void key_of(u32 n, u8 *key)
{
	u32 i;

	for (i = 0; i < KVT_KEY_BYTES / 8; i++) {
		u64 word = mix(n * 4ull + i + 1);

		memcpy(key + 8 * i, &word, sizeof(word));
	}
}

static void add(struct store *st, u32 n)
{
	u32 id = kvt_table_alloc(&st->table), nr;
	struct kvt_hot *h = kvt_hot(&st->table, id);
	struct kvt_shard *s;

	key_of(n, h->key);
	h->ns_group = NS_GROUP;
	h->hash = kvt_ix_hash(st->index, NS_GROUP, h->key);
	atomic_set(&h->ctl, KVT_READY | KVT_CTL_MEM);
	s = kvt_ix_shard(st->index, h->hash);
	spin_lock(&s->lock);
	kvt_ix_insert(st->index, s, id);
	if (kvt_ix_crowded(s)) {
		nr = 2 * (s->mask + 1);
		free(kvt_ix_resize(st->index, s, alloc(nr * sizeof(u32)), nr));
	}
	spin_unlock(&s->lock);
}

static struct store *store_new(u32 blocks)
{
	u32 chunks = DIV_ROUND_UP(blocks + 1, KVT_CHUNK_BLOCKS), i;
	struct store *st = alloc(sizeof(*st));
	struct kvt_hash_seed seed;

	memset(&seed, 0x17, sizeof(seed));
	st->blocks = blocks;
	st->index = alloc(sizeof(*st->index));
	kvt_table_init(&st->table, alloc(chunks * sizeof(void *)),
		       alloc(chunks * sizeof(void *)), chunks);
	for (i = 0; i < chunks; i++)
		kvt_table_add_chunk(&st->table,
				    alloc(KVT_CHUNK_BLOCKS * sizeof(struct kvt_hot)),
				    alloc(KVT_CHUNK_BLOCKS * sizeof(struct kvt_cold)));
	kvt_ix_init(st->index, &st->table, &seed);
	for (i = 0; i < KVT_SHARDS; i++)
		kvt_ix_shard_init(&st->index->shards[i],
				  alloc(KVT_SHARD_BUCKETS_MIN * sizeof(u32)),
				  KVT_SHARD_BUCKETS_MIN);
	for (i = 0; i < blocks; i++)
		add(st, i);
	return st;
}

static bool get_one(struct store *st, const u8 *key, struct lease *l)
{
	u32 hash = kvt_ix_hash(st->index, NS_GROUP, key);
	struct kvt_shard *s = kvt_ix_shard(st->index, hash);
	bool ok = false;

	spin_lock(&s->lock);
	l->id = kvt_ix_find(st->index, s, hash, NS_GROUP, key);
	if (l->id != KVT_NIL) {
		l->gen = kvt_hot(&st->table, l->id)->gen;
		ok = kvt_lease_try(kvt_hot(&st->table, l->id));
	}
	spin_unlock(&s->lock);
	return ok;
}

/* GET a batch, then RELEASE it. Returns how many were hits. */
static u32 batch(struct store *st, const u8 (*keys)[KVT_KEY_BYTES], struct lease *leases)
{
	u32 i, hits = 0;

	for (i = 0; i < BATCH; i++)
		hits += get_one(st, keys[i], &leases[i]);
	for (i = 0; i < BATCH; i++) {
		struct kvt_hot *h = kvt_hot(&st->table, leases[i].id);

		if (kvt_table_valid(&st->table, leases[i].id) && h->gen == leases[i].gen)
			kvt_lease_put(h);
	}
	return hits;
}

/* @run: blocks that follow each other; 1: all at random. */
static void choose(struct store *st, u8 (*keys)[KVT_KEY_BYTES], u32 nr, u32 run)
{
	u64 rnd = 1;
	u32 i, n = 0;

	for (i = 0; i < nr; i++) {
		n = i % run ? (n + 1) % st->blocks : (u32)(mix(rnd++) % st->blocks);
		key_of(n, keys[i]);
	}
}

static u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000000000ull + (u64)ts.tv_nsec;
}

/* Nanoseconds a block, best of some rounds: the machine is not ours alone. */
static double time_ns(struct store *st, u8 (*keys)[KVT_KEY_BYTES], u32 run)
{
	struct lease leases[BATCH];
	u64 best = ~0ull, t;
	u32 round, i, hits;

	choose(st, keys, OPS, run);
	for (round = 0; round < ROUNDS; round++) {
		t = now_ns();
		for (i = 0, hits = 0; i < OPS; i += BATCH)
			hits += batch(st, (const u8 (*)[KVT_KEY_BYTES])(keys + i), leases);
		t = now_ns() - t;
		if (hits != OPS)
			kvt_env_die(__FILE__, __LINE__, "a block was not found");
		best = t < best ? t : best;
	}
	return (double)best / OPS;
}

/* Distinct cache lines of the store that a GET touches: walks as the find does. */
static double lines_per_get(struct store *st)
{
	u64 total = 0;
	u32 i, id, hash;
	u8 key[KVT_KEY_BYTES];

	for (i = 0; i < st->blocks; i++) {
		struct kvt_shard *s;

		key_of(i, key);
		hash = kvt_ix_hash(st->index, NS_GROUP, key);
		s = kvt_ix_shard(st->index, hash);
		total += 3;	/* shard, bucket, chunk pointer */
		for (id = s->buckets[hash & s->mask]; id; id = kvt_hot(&st->table, id)->hash_next) {
			total++;
			if (!memcmp(kvt_hot(&st->table, id)->key, key, sizeof(key)))
				break;
		}
	}
	return (double)total / st->blocks;
}

struct meta {
	double table;
	double index;
	double slot;
	double log_id;
};

/* DRAM of the store's own structures for a block, from what is allocated. */
static struct meta meta_bytes(struct store *st)
{
	u64 buckets = sizeof(*st->index);
	u32 i;

	for (i = 0; i < KVT_SHARDS; i++)
		buckets += (st->index->shards[i].mask + 1) * sizeof(u32);
	return (struct meta){
		.table = (double)st->table.nr_chunks *
			 (KVT_CHUNK_BLOCKS * (sizeof(struct kvt_hot) + sizeof(struct kvt_cold)) +
			  2 * sizeof(void *)) / st->blocks,
		.index = (double)buckets / st->blocks,
		.slot = sizeof(u32),
		.log_id = sizeof(u32),
	};
}

/* One more region of an owner that has room for as many as it likes. */
static void region_get(struct kvt_mem *m, struct kvt_owner *o, struct kvt_region *reg,
		       u32 slot_pages, u32 pieces)
{
	bool got;

	while (kvt_pieces_low(&m->pieces))
		kvt_pieces_add(&m->pieces, alloc(sizeof(union kvt_split)));
	if (kvt_mem_dir_full(m))
		kvt_mem_dir_add(m, alloc(KVT_DIR_ENTRIES * sizeof(union kvt_dirent)));
	got = kvt_mem_region_alloc(m, o, reg, 1, 1, slot_pages, pieces);
	if (!got)
		kvt_env_die(__FILE__, __LINE__, "there is no room for a region");
	/* Full: it is not to be found again. */
	o->partial = KVT_NO_REGION;
}

static void space_free(struct kvt_mem *m, u64 *map, union kvt_dirent **dir)
{
	union kvt_split *split;
	u32 i, at = 0;

	while ((split = kvt_pieces_end(&m->pieces, &at)))
		free(split);
	for (i = 0; i < m->nr_chunks; i++)
		free(dir[i]);
	free(dir);
	free(map);
}

/*
 * What a memory tier full of @blocks blocks of this size costs for each, but for the
 * slot's entry: the map of pieces, the directory, regions' records as one owner that
 * grows block by block gets them.
 */
static double space_bytes(u32 slot_pages, u32 blocks)
{
	u32 nr = (u32)((u64)slot_pages * blocks / KVT_PIECE_PAGES * 21 / 20) + 256;
	union kvt_dirent **dir = alloc(kvt_mem_dir_chunks(nr) * sizeof(*dir));
	u64 *map = alloc(KVT_PIECES_WORDS(nr) * sizeof(*map));
	u32 slots = 0, regions = 0, pieces, most = 0;
	struct kvt_owner o = { .partial = KVT_NO_REGION };
	struct kvt_region *reg;
	struct kvt_mem m;
	double bytes;

	kvt_mem_init(&m, map, dir, nr, KVT_PIECE_CLEAN);
	for (; slots < blocks; regions++) {
		pieces = kvt_mem_growth(&o, slot_pages, KVT_REGION_PIECES_MAX);
		reg = alloc(sizeof(*reg) + kvt_run_slots(pieces, slot_pages) * sizeof(u32));
		region_get(&m, &o, reg, slot_pages, pieces);
		slots += kvt_region_slots(reg);
		most = max(most, reg->first + pieces);
		free(reg);
	}
	/* The part of the map that is used. */
	m.pieces.nr = most;
	/* Nothing between them was left, but in front of the first whole stretches. */
	if (most > o.nr_pieces + KVT_REGION_PIECES_MAX)
		kvt_env_die(__FILE__, __LINE__, "regions leave holes");
	bytes = (double)kvt_pieces_bytes(&m.pieces) +
		kvt_mem_dir_chunks(most) * sizeof(*dir) +
		(double)m.nr_chunks * KVT_DIR_ENTRIES * sizeof(**dir) +
		(double)regions * sizeof(*reg);
	m.pieces.nr = nr;
	space_free(&m, map, dir);
	return bytes / slots;
}

/*
 * Prints each size; returns the total of the worst up to 10 MiB, with a copy in a log, which has
 * an entry there.
 */
static double print_sizes(FILE *f, double base)
{
	static const u32 kib[] = { 64, 640, 1100, 2048, 2560, 5120, 9728, 10240, 34816 };
	double space, worst = 0;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(kib); i++) {
		space = space_bytes(kib[i] / 4, MANY);
		fprintf(f, "%s    { \"block_kib\": %u, \"region_bytes\": %.2f, "
			"\"total_bytes\": %.2f }", i ? ",\n" : "", kib[i], space, base + space);
		printf("# with blocks of %u KiB: %.1f bytes\n", kib[i], base + space);
		if (kib[i] <= 10240)
			worst = max(worst, base + space);
	}
	return worst;
}

static int report(const char *path)
{
	u8 (*keys)[KVT_KEY_BYTES] = alloc((size_t)OPS * KVT_KEY_BYTES);
	struct store *few = store_new(FEW), *many = store_new(MANY);
	double f1 = time_ns(few, keys, 1), m1 = time_ns(many, keys, 1);
	double fr = time_ns(few, keys, BATCH), mr = time_ns(many, keys, BATCH);
	struct meta meta = meta_bytes(many);
	double total = meta.table + meta.index + meta.slot + meta.log_id;
	FILE *f = fopen(path, "w");

	if (!f) {
		perror(path);
		return 1;
	}
	fprintf(f, "{\n  \"blocks\": [%u, %u],\n", FEW, MANY);
	fprintf(f, "  \"get_release_ns_random\": [%.1f, %.1f], \"ratio_random\": %.2f,\n", f1, m1,
		m1 / f1);
	fprintf(f, "  \"get_release_ns_prefix\": [%.1f, %.1f], \"ratio_prefix\": %.2f,\n", fr, mr,
		mr / fr);
	fprintf(f, "  \"cache_lines_per_get\": [%.2f, %.2f],\n", lines_per_get(few),
		lines_per_get(many));
	fprintf(f, "  \"metadata_bytes_per_block\": {\n    \"entry\": %.2f, \"index\": %.2f, "
		"\"slot\": %.2f, \"log_id\": %.2f, \"total\": %.2f },\n  \"with_regions\": [\n",
		meta.table, meta.index, meta.slot, meta.log_id, total);
	printf("# metadata of a block: %.1f bytes at %u blocks\n", total, MANY);
	total = print_sizes(f, total);
	fprintf(f, "\n  ]\n}\n");
	fclose(f);
	printf("%sok bench/metadata_bytes\n", total <= META_MAX ? "" : "not ");
	return total > META_MAX;
}

/* For callgrind: nothing but batches is counted. Prints how many blocks it did. */
static int count(u32 blocks)
{
	static struct lease leases[BATCH];
	u8 (*keys)[KVT_KEY_BYTES] = alloc((size_t)OPS * KVT_KEY_BYTES);
	struct store *st = store_new(blocks);
	u32 i, hits = 0, ops = OPS / 8;

	choose(st, keys, ops, 1);
	CALLGRIND_START_INSTRUMENTATION;
	for (i = 0; i < ops; i += BATCH)
		hits += batch(st, (const u8 (*)[KVT_KEY_BYTES])(keys + i), leases);
	CALLGRIND_STOP_INSTRUMENTATION;
	if (hits != ops)
		kvt_env_die(__FILE__, __LINE__, "a block was not found");
	printf("%u\n", ops);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--count"))
		return count((u32)strtoul(argv[2], NULL, 0));
	if (argc == 2)
		return report(argv[1]);
	fprintf(stderr, "usage: %s OUT.json | --count BLOCKS\n", argv[0]);
	return 2;
}
