// SPDX-License-Identifier: GPL-2.0
/*
 * The library with the module itself: what a program gets that uses nothing but libkvtier. (What
 * it answers when something is wrong, lib/test asks of it without a module.)
 */
#include <kvtier/libkvtier.h>
#include "kvt_test.h"

#define BLOCK_BYTES	(64 * KVT_KIB)
#define NR		6
#define SET		71

/* The library's type for the same. */
#define KEYS(keys)	((const struct kvtier_key *)(keys))
_Static_assert(sizeof(struct kvt_key) == sizeof(struct kvtier_key), "keys differ");

FIXTURE(library)
{
	struct kvt_pool pool;
	struct kvtier_pool *store;
	struct kvtier_ns *ns;
	struct kvt_disk disk;	/* if it has a file */
	struct kvt_key keys[NR];
};

static int open_ns(struct kvtier_pool *store, const char *name, uint64_t min_bytes,
		   struct kvtier_ns **ns)
{
	const uint64_t block_bytes = BLOCK_BYTES;
	struct kvtier_ns_params p = KVTIER_NS_PARAMS_INIT;

	p.flags = KVTIER_NS_CREATE;
	p.identity = name;
	p.identity_len = strlen(name);
	p.block_bytes = &block_bytes;
	p.nr_groups = 1;
	p.min_bytes = min_bytes;
	return kvtier_ns_open(store, &p, ns);
}

FIXTURE_SETUP(library)
{
	char path[32];

	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, 32 * KVT_MIB));
	snprintf(path, sizeof(path), "/dev/kvtier%u", self->pool.id);
	ASSERT_EQ(0, kvtier_pool_open_path(path, &self->store));
	/* Each region is a mapping of its own. */
	ASSERT_EQ(-EINVAL, kvtier_pool_set_map_chunk(self->store, KVT_MIB));
	ASSERT_EQ(0, kvtier_pool_set_map_chunk(self->store, 2 * KVT_MIB));
	ASSERT_EQ(0, open_ns(self->store, "library", 0, &self->ns));
	kvt_keys(self->keys, SET, 0, NR);
}

FIXTURE_TEARDOWN(library)
{
	kvtier_ns_unref(self->ns);
	kvtier_pool_unref(self->store);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	if (self->disk.file[0])
		kvt_disk_remove(&self->disk);
}

/* All of the chain, from memory of the caller's. */
static int write_all(FIXTURE_DATA(library) *self, int32_t *results)
{
	static char bytes[NR][BLOCK_BYTES];
	struct kvtier_buf bufs[NR];
	int i;

	for (i = 0; i < NR; i++) {
		kvt_fill(bytes[i], &self->keys[i], BLOCK_BYTES);
		bufs[i] = (struct kvtier_buf){ .addr = (uintptr_t)bytes[i], .bytes = BLOCK_BYTES };
	}
	return kvtier_write(self->ns, NULL, KEYS(self->keys), NULL, NR, bufs, results);
}

/* How many of these slots can be read, and are right. */
static int right(const struct kvt_key *keys, const struct kvtier_slot *slots, int nr)
{
	int i, sum = 0;

	for (i = 0; i < nr; i++)
		sum += slots[i].status == KVTIER_ST_HIT && slots[i].ptr &&
		       kvt_bytes_ok(slots[i].ptr, &keys[i], BLOCK_BYTES);
	return sum;
}

TEST_F(library, by_copy)
{
	static char bytes[NR][BLOCK_BYTES];
	struct kvtier_buf bufs[NR];
	int32_t results[NR];
	int i;

	ASSERT_EQ(NR, write_all(self, results));
	for (i = 0; i < NR; i++) {
		EXPECT_EQ(KVTIER_ST_DONE, results[i]);
		bufs[i] = (struct kvtier_buf){ .addr = (uintptr_t)bytes[i], .bytes = BLOCK_BYTES };
	}
	EXPECT_EQ(0, write_all(self, results));
	EXPECT_EQ(KVTIER_ST_EXISTS, results[NR - 1]);
	ASSERT_EQ(NR, kvtier_read(self->ns, NULL, KEYS(self->keys), NR, bufs, results));
	for (i = 0; i < NR; i++)
		EXPECT_TRUE(kvt_bytes_ok(bytes[i], &self->keys[i], BLOCK_BYTES));
	EXPECT_EQ(2, kvtier_drop(self->ns, NULL, KEYS(self->keys + NR - 2), 2, NULL));
	EXPECT_EQ(NR - 2, kvtier_lookup(self->ns, NULL, KEYS(self->keys), NR, NULL, NULL));
}

/* Filled and read where they are; more of them than one mapping has. */
TEST_F(library, in_place)
{
	enum { MANY = 4 * 2 * KVT_MIB / BLOCK_BYTES };
	struct kvtier_slot slots[MANY], twin[MANY];
	struct kvt_key keys[MANY];
	struct kvtier_ns *other;
	int i;

	kvt_keys(keys, SET + 1, 0, MANY);
	ASSERT_EQ(MANY, kvtier_reserve(self->ns, NULL, KEYS(keys), NULL, MANY, slots));
	for (i = 0; i < MANY; i++)
		kvt_fill(slots[i].ptr, &keys[i], BLOCK_BYTES);
	ASSERT_EQ(0, open_ns(self->store, "library", 0, &other));
	EXPECT_EQ(0, kvtier_get(other, NULL, KEYS(keys), MANY, twin));
	/* The last one is not published. */
	ASSERT_EQ(MANY - 1, kvtier_commit_slots(self->ns, KVTIER_COMMIT_LEASE, slots, MANY - 1));
	EXPECT_EQ(1, kvtier_abort(self->ns, &slots[MANY - 1].handle, 1, NULL));
	EXPECT_EQ(MANY - 1, right(keys, slots, MANY - 1));
	ASSERT_EQ(MANY - 1, kvtier_get(other, NULL, KEYS(keys), MANY, twin));
	EXPECT_EQ(MANY - 1, right(keys, twin, MANY));
	EXPECT_EQ(1, kvtier_release(other, &twin[0].handle, 1, NULL));
	twin[0].handle = 0;
	EXPECT_EQ(MANY - 2, kvtier_release_slots(other, twin, MANY));
	EXPECT_EQ(MANY - 1, kvtier_release_slots(self->ns, slots, MANY - 1));
	kvtier_ns_unref(other);
}

TEST_F(library, session)
{
	const struct kvtier_key *tip = KEYS(&self->keys[NR - 1]);

	EXPECT_EQ(-ENOENT, kvtier_session(self->ns, NULL, 7, KVTIER_SESSION_DECODING, tip, 0));
	ASSERT_EQ(NR, write_all(self, (int32_t[NR]){ 0 }));
	/* As it is known, which it is not. */
	EXPECT_EQ(-EINVAL, kvtier_session(self->ns, NULL, 7, KVTIER_SESSION_IDLE, NULL, 0));
	EXPECT_EQ(0, kvtier_session(self->ns, NULL, 7, KVTIER_SESSION_DECODING, tip, 0));
	EXPECT_EQ(0, kvtier_session(self->ns, NULL, 7, KVTIER_SESSION_IDLE, NULL, KVT_SEC));
	EXPECT_EQ(0, kvtier_session(self->ns, NULL, 7, KVTIER_SESSION_DONE, NULL, 0));
	EXPECT_EQ(-EINVAL, kvtier_session(self->ns, NULL, 7, KVTIER_SESSION_IDLE, NULL, 0));
}

/* Slots of the arena are inside it, and what is in them is read like any other block. */
TEST_F(library, arena)
{
	struct kvtier_opts opts = KVTIER_OPTS_INIT;
	struct kvtier_arena_view *arena;
	struct kvtier_slot slots[NR];
	struct kvtier_ns *ns;
	char *base;
	int i;

	ASSERT_EQ(0, open_ns(self->store, "arena", 8 * KVT_MIB, &ns));
	ASSERT_EQ(0, kvtier_arena_open(ns, 0, NR, &arena));
	EXPECT_LE(BLOCK_BYTES, kvtier_arena_slot_bytes(arena));
	ASSERT_LE(NR, kvtier_arena_nr_slots(arena));
	base = kvtier_arena_base(arena);
	opts.flags = KVTIER_RESERVE_ARENA;
	ASSERT_EQ(NR, kvtier_reserve(ns, &opts, KEYS(self->keys), NULL, NR, slots));
	for (i = 0; i < NR; i++) {
		EXPECT_LE(base, (char *)slots[i].ptr);
		EXPECT_GE(base + kvtier_arena_bytes(arena), (char *)slots[i].ptr + BLOCK_BYTES);
		kvt_fill(slots[i].ptr, &self->keys[i], BLOCK_BYTES);
	}
	ASSERT_EQ(NR, kvtier_commit_slots(ns, 0, slots, NR));
	ASSERT_EQ(NR, kvtier_get(ns, NULL, KEYS(self->keys), NR, slots));
	EXPECT_EQ(NR, right(self->keys, slots, NR));
	EXPECT_EQ(NR, kvtier_release_slots(ns, slots, NR));
	kvtier_ns_unref(ns);
}

/* A dma-buf has the blocks one behind the other, longer than whoever made it. */
TEST_F(library, dma_buf)
{
	struct kvtier_slot slots[NR];
	uint64_t handles[NR], bytes;
	char *map;
	int fd, i;

	ASSERT_EQ(NR, write_all(self, (int32_t[NR]){ 0 }));
	ASSERT_EQ(NR, kvtier_get(self->ns, NULL, KEYS(self->keys), NR, slots));
	for (i = 0; i < NR; i++)
		handles[i] = slots[i].handle;
	fd = kvtier_export(self->ns, handles, NR, &bytes);
	ASSERT_LE(0, fd);
	ASSERT_EQ(NR * BLOCK_BYTES, bytes);
	EXPECT_EQ(NR, kvtier_release_slots(self->ns, slots, NR));
	kvtier_ns_unref(self->ns);
	self->ns = NULL;
	map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	for (i = 0; i < NR; i++)
		EXPECT_TRUE(kvt_bytes_ok(map + i * BLOCK_BYTES, &self->keys[i], BLOCK_BYTES));
	munmap(map, bytes);
	close(fd);
}

/* What is on a slow tier costs something, and is worth that or not. */
TEST_F(library, plan)
{
	struct kvtier_prefill cheap = { .block_ns = 1 }, dear = { .block_ns = 3600 * KVT_SEC };
	struct kvtier_lookup_result found[NR];
	struct kvtier_completion done;
	struct kvtier_opts opts = KVTIER_OPTS_INIT;
	struct kvtier_slot slots[NR];
	struct kvtier_plan plan;
	uint64_t cost_ns;

	ASSERT_EQ(0, kvt_disk_make(&self->disk, "library", 64 * KVT_MIB));
	ASSERT_EQ(NR, write_all(self, (int32_t[NR]){ 0 }));
	ASSERT_EQ(NR, kvtier_lookup(self->ns, NULL, KEYS(self->keys), NR, found, &cost_ns));
	EXPECT_EQ(0, cost_ns);
	ASSERT_EQ(0, kvtier_plan(&cheap, found, NR, &plan));
	EXPECT_EQ(NR, plan.nr_fetch);
	ASSERT_LE(0, kvt_tier_disk(&self->pool, 9, &self->disk));
	ASSERT_EQ(0, kvt_sh("kvtier tier drain %u dram0 >/dev/null", self->pool.id));
	ASSERT_EQ(NR, kvtier_lookup(self->ns, NULL, KEYS(self->keys), NR, found, &cost_ns));
	EXPECT_LT(NR, cost_ns);
	ASSERT_EQ(0, kvtier_plan(&cheap, found, NR, &plan));
	EXPECT_EQ(0, plan.nr_fetch);
	EXPECT_EQ(NR, plan.compute_ns);
	ASSERT_EQ(0, kvtier_plan(&dear, found, NR, &plan));
	EXPECT_EQ(NR, plan.nr_fetch);
	EXPECT_LE(cost_ns, plan.fetch_ns);
	/* It comes up where there is memory for it, and that is told. */
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 1, 8 * KVT_MIB));
	opts.flags = KVTIER_GET_ASYNC;
	opts.user_data = 4711;
	ASSERT_LE(0, kvtier_get(self->ns, &opts, KEYS(self->keys), NR, slots));
	ASSERT_EQ(1, kvtier_completions(self->ns, &done, 1, 20000));
	EXPECT_EQ(4711, done.user_data);
	opts = (struct kvtier_opts)KVTIER_OPTS_INIT;
	opts.flags = KVTIER_GET_WAIT;
	opts.timeout_ns = 20 * KVT_SEC;
	ASSERT_EQ(NR, kvtier_get(self->ns, &opts, KEYS(self->keys), NR, slots));
	EXPECT_EQ(NR, right(self->keys, slots, NR));
	EXPECT_EQ(NR, kvtier_release_slots(self->ns, slots, NR));
}

TEST_HARNESS_MAIN
