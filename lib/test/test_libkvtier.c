// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Unit tests of libkvtier against the stand-in kernel: test_libkvtier [PREFIX]
 * prints "ok NAME" or "not ok NAME" for each, with PREFIX before the names.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "internal.h"
#include "mock.h"
#include "test_log.h"
#include "test_path.h"
#include "test_plan.h"

#define BLOCK		(40 * 1024ULL)
#define SLOT		(40 * 1024ULL)
#define HUGE		(2ULL << 20)
#define NR(array)	(sizeof(array) / sizeof((array)[0]))

#define CHECK(cond) do {						\
	if (!(cond)) {							\
		printf("# line %d: %s\n", __LINE__, #cond);		\
		return false;						\
	}								\
} while (0)

static int fake_pool_id;
static unsigned int logged;

/* Several threads may be in it at once. */
static void count_log(void *data, int level, const char *text)
{
	(void)level;
	(void)text;
	__atomic_fetch_add((unsigned int *)data, 1, __ATOMIC_RELAXED);
}

static void make_keys(struct kvtier_key *keys, unsigned int nr,
		      unsigned int first)
{
	unsigned int i;

	memset(keys, 0, nr * sizeof(*keys));
	for (i = 0; i < nr; i++) {
		unsigned int n = first + i + 1;

		memcpy(&keys[i], &n, sizeof(n));
		keys[i].b[31] = 0xa5;
	}
}

/* A namespace of its own for each test; 0 for defaults. */
static struct kvtier_ns *open_ns(const char *name, uint64_t chunk_bytes,
				 uint64_t min_bytes)
{
	static const uint64_t sizes[] = { BLOCK, 3 * BLOCK };
	struct kvtier_ns_params p = KVTIER_NS_PARAMS_INIT;
	struct kvtier_pool *pool = NULL;
	struct kvtier_ns *ns = NULL;

	p.flags = KVTIER_NS_CREATE;
	p.identity = name;
	p.identity_len = strlen(name);
	p.block_bytes = sizes;
	p.nr_groups = NR(sizes);
	p.min_bytes = min_bytes;
	if (kvtier_pool_open((uint32_t)fake_pool_id, &pool))
		return NULL;
	kvtier_pool_set_log(pool, count_log, &logged);
	if (chunk_bytes && kvtier_pool_set_map_chunk(pool, chunk_bytes))
		abort();
	if (kvtier_ns_open(pool, &p, &ns))
		ns = NULL;
	kvtier_pool_unref(pool);
	return ns;
}

static bool test_names(void)
{
	CHECK(!strcmp(kvtier_status_name(KVTIER_ST_HIT), "hit"));
	CHECK(!strcmp(kvtier_status_name(KVTIER_ST_DONE), "done"));
	CHECK(!strcmp(kvtier_status_name(KVTIER_ST_NOSPACE), "no-space"));
	CHECK(!strcmp(kvtier_status_name(KVTIER_ST_SKIPPED), "skipped"));
	CHECK(!strcmp(kvtier_status_name(99), "unknown"));
	CHECK(!strcmp(kvtier_status_name(-99), "unknown"));
	CHECK(!strcmp(kvtier_status_name(INT32_MIN), "unknown"));
	CHECK(!strcmp(kvtier_tier_type_name(KVTIER_TIER_DAX), "dax"));
	CHECK(!strcmp(kvtier_tier_type_name(KVTIER_TIER_PMEM), "pmem"));
	CHECK(!strcmp(kvtier_tier_type_name(0), "unknown"));
	CHECK(!strcmp(kvtier_tier_state_name(KVTIER_TIER_FAILED), "failed"));
	CHECK(!strcmp(kvtier_version(), KVTIER_VERSION));
	return true;
}

static bool test_copy_params(void)
{
	unsigned char src[16] = { 1, 2, 3, 4 }, dst[8];

	CHECK(kvti_copy_params(dst, 8, src, 3, 4) == -EINVAL);
	memset(dst, 0xff, sizeof(dst));
	CHECK(!kvti_copy_params(dst, 8, src, 4, 4));
	CHECK(dst[3] == 4 && !dst[4] && !dst[7]);
	CHECK(!kvti_copy_params(dst, 8, src, 16, 4));
	src[12] = 1;
	CHECK(kvti_copy_params(dst, 8, src, 16, 4) == -E2BIG);
	return true;
}

static bool test_ctl(void)
{
	struct kvtier_ctl_query q = KVTIER_CTL_QUERY_INIT;
	uint32_t id = 3, id2 = 3, *ids = NULL;
	struct kvtier_ctl *ctl = NULL;

	CHECK(!kvtier_ctl_open(&ctl));
	CHECK(!kvtier_ctl_query(ctl, &q));
	CHECK(q.abi_revision == KVTIER_ABI_REVISION && q.nr_pools == 1);
	CHECK(!kvtier_ctl_pool_create(ctl, &id) && id == 3);
	CHECK(kvtier_ctl_pool_create(ctl, &id2) == -EEXIST);
	id2 = KVTIER_POOL_ANY_ID;
	CHECK(!kvtier_ctl_pool_create(ctl, &id2) && id2 == 1);
	CHECK(kvtier_ctl_pools(ctl, &ids) == 3);
	CHECK(ids[0] == 0 && ids[1] == 1 && ids[2] == 3);
	free(ids);
	CHECK(!kvtier_ctl_pool_destroy(ctl, 1));
	CHECK(!kvtier_ctl_pool_destroy(ctl, 3));
	CHECK(kvtier_ctl_pool_destroy(ctl, 3) == -ENOENT);
	CHECK(kvtier_ctl_ref(ctl) == ctl);
	kvtier_ctl_unref(ctl);
	CHECK(mock.nr_open == 1);
	kvtier_ctl_unref(ctl);
	CHECK(mock.nr_open == 0);
	kvtier_ctl_unref(NULL);
	return true;
}

static bool test_assemble(void)
{
	struct kvtier_assemble_device d[2] = {
		{ .path = "/dev/one" },
		{ .path = "/dev/stale" },
	};
	struct kvtier_pool_assemble a = KVTIER_POOL_ASSEMBLE_INIT;
	struct kvtier_ctl *ctl = NULL;

	CHECK(!kvtier_ctl_open(&ctl));
	a.devices = (uintptr_t)d;
	a.nr_devices = 2;
	CHECK(kvtier_ctl_pool_assemble(ctl, &a) == -ESTALE);
	CHECK(!d[0].error && d[0].state == KVTIER_MEMBER_CLEAN);
	CHECK(d[1].error == -ESTALE && a.nr_found == 1);
	a = (struct kvtier_pool_assemble)KVTIER_POOL_ASSEMBLE_INIT;
	a.devices = (uintptr_t)d;
	a.nr_devices = 1;
	CHECK(!kvtier_ctl_pool_assemble(ctl, &a) && a.pool_id == 1);
	CHECK(!kvtier_ctl_ns_claim(ctl, 1, 1, 1000, 1000));
	CHECK(kvtier_ctl_ns_claim(ctl, 1, 2, 1000, 1000) == -ENOENT);
	CHECK(!kvtier_ctl_pool_destroy(ctl, 1));
	kvtier_ctl_unref(ctl);
	return true;
}

static bool test_scrub(void)
{
	uint32_t pool_id = KVTIER_POOL_ANY_ID;
	struct kvtier_ctl *ctl = NULL;

	CHECK(!kvtier_ctl_open(&ctl));
	CHECK(!kvtier_ctl_pool_create(ctl, &pool_id));
	CHECK(!kvtier_ctl_pool_scrub(ctl, pool_id, 0, 1 << 20));
	CHECK(kvtier_ctl_pool_scrub(ctl, pool_id, 0, 0) == -EBUSY);
	CHECK(kvtier_ctl_pool_scrub(ctl, pool_id, KVTIER_SCRUB_STOP, 1) == -EINVAL);
	CHECK(!kvtier_ctl_pool_scrub(ctl, pool_id, KVTIER_SCRUB_STOP, 0));
	CHECK(kvtier_ctl_pool_scrub(ctl, 200, 0, 0) == -ENOENT);
	CHECK(!kvtier_ctl_pool_destroy(ctl, pool_id));
	kvtier_ctl_unref(ctl);
	return true;
}

static bool test_tiers(void)
{
	struct kvtier_tier_params p = KVTIER_TIER_PARAMS_INIT;
	struct kvtier_tier_info infos[KVTIER_TIERS_MAX];
	struct kvtier_tier_stat stats[KVTIER_TIERS_MAX];
	struct kvtier_stat st = KVTIER_STAT_INIT;
	char path[KVTIER_PATH_MAX + 1];
	struct kvtier_pool *pool = NULL;
	struct kvtier_ctl *ctl = NULL;
	uint32_t id = 9;

	CHECK(!kvtier_ctl_open(&ctl));
	p.type = KVTIER_TIER_DRAM;
	p.name = "dram0";
	p.capacity_bytes = 1 << 20;
	CHECK(!kvtier_ctl_tier_attach(ctl, 0, &p, &id) && id == 0);
	CHECK(kvtier_ctl_tier_attach(ctl, 0, &p, &id) == -EEXIST);
	CHECK(kvtier_ctl_tier_attach(ctl, 7, &p, &id) == -ENOENT);
	p.rank = 1;
	p.name = "a-name-that-is-far-too-long-for-it";
	CHECK(kvtier_ctl_tier_attach(ctl, 0, &p, &id) == -ENAMETOOLONG);
	p.name = "dax";
	memset(path, 'x', KVTIER_PATH_MAX);
	path[KVTIER_PATH_MAX] = 0;
	p.path = path;
	CHECK(kvtier_ctl_tier_attach(ctl, 0, &p, &id) == -ENAMETOOLONG);
	p.path = "dax0.0";
	p.size = 8;
	CHECK(kvtier_ctl_tier_attach(ctl, 0, &p, &id) == -EINVAL);
	p.size = sizeof(p);
	CHECK(!kvtier_ctl_tier_attach(ctl, 0, &p, NULL));
	CHECK(!kvtier_pool_open(0, &pool));
	CHECK(kvtier_pool_tiers(pool, infos) == 2);
	CHECK(!strcmp(infos[1].name, "dax") && infos[1].rank == 1);
	CHECK(kvtier_pool_stat(pool, &st, stats) == 2);
	CHECK(st.meta_bytes_per_block == 120 && stats[0].capacity_bytes);
	CHECK(!kvtier_pool_stat(pool, &st, NULL));
	CHECK(!kvtier_ctl_tier_drain(ctl, 0, 1, 0));
	CHECK(kvtier_pool_tiers(pool, infos) == 2);
	CHECK(infos[1].state == KVTIER_TIER_DRAINING);
	CHECK(!kvtier_ctl_tier_detach(ctl, 0, 1, 0, 0));
	CHECK(!kvtier_ctl_tier_detach(ctl, 0, 0, KVTIER_DETACH_DISCARD, 0));
	CHECK(kvtier_ctl_tier_detach(ctl, 0, 0, 0, 0) == -ENOENT);
	kvtier_pool_unref(pool);
	kvtier_ctl_unref(ctl);
	return true;
}

static bool test_open_errors(void)
{
	struct kvtier_ns_params p = KVTIER_NS_PARAMS_INIT;
	uint64_t other = 2 * BLOCK;
	struct kvtier_pool *pool = NULL;
	struct kvtier_ns *ns = NULL;

	CHECK(kvtier_pool_open(6, &pool) == -ENOENT && !pool);
	CHECK(!kvtier_pool_open(0, &pool));
	CHECK(kvtier_pool_set_map_chunk(pool, 0) == -EINVAL);
	CHECK(kvtier_pool_set_map_chunk(pool, HUGE + 4096) == -EINVAL);
	p.identity = "nobody";
	p.identity_len = 6;
	CHECK(kvtier_ns_open(pool, &p, &ns) == -ENOENT && !ns);
	CHECK(mock.nr_open == 1);
	p.nr_groups = KVTIER_GROUPS_MAX + 1;
	p.block_bytes = &other;
	CHECK(kvtier_ns_open(pool, &p, &ns) == -EINVAL);
	p.nr_groups = 1;
	p.flags = KVTIER_NS_CREATE;
	p.identity_len = KVTIER_IDENTITY_MAX + 1;
	CHECK(kvtier_ns_open(pool, &p, &ns) == -EINVAL);
	p.identity_len = 6;
	p.owner_uid = 1;
	CHECK(kvtier_ns_open(pool, &p, &ns) == -EOPNOTSUPP);
	p.flags = KVTIER_NS_OWNER;
	CHECK(kvtier_ns_open(pool, &p, &ns) == -ENOENT);
	p.flags = KVTIER_NS_CREATE;
	p.owner_uid = 0;
	p.size = 16;
	CHECK(kvtier_ns_open(pool, &p, &ns) == -EINVAL);
	p.size = sizeof(p);
	CHECK(!kvtier_ns_open(pool, &p, &ns) && kvtier_ns_id(ns));
	CHECK(kvtier_ns_fd(ns) >= 0);
	kvtier_ns_unref(ns);
	p.flags |= KVTIER_NS_EXCL;
	CHECK(kvtier_ns_open(pool, &p, &ns) == -EEXIST);
	p.flags = 0;
	other = BLOCK;
	CHECK(kvtier_ns_open(pool, &p, &ns) == -EINVAL);
	p.nr_groups = 0;
	CHECK(!kvtier_ns_open(pool, &p, &ns));
	CHECK(kvtier_ns_ref(ns) == ns);
	kvtier_ns_unref(ns);
	kvtier_ns_unref(ns);
	CHECK(kvtier_pool_ref(pool) == pool);
	kvtier_pool_unref(pool);
	kvtier_pool_unref(pool);
	CHECK(mock.nr_open == 0);
	return true;
}

/* Readers get along with a device node they may not write to. */
static bool test_read_only_node(void)
{
	struct kvtier_ns_params p = KVTIER_NS_PARAMS_INIT;
	struct kvtier_ns *ns = open_ns("readers", 0, 0);
	struct kvtier_pool *pool = NULL;

	CHECK(ns);
	kvtier_ns_unref(ns);
	mock.deny_write = 1;
	CHECK(!kvtier_pool_open(0, &pool));
	p.identity = "readers";
	p.identity_len = 7;
	CHECK(kvtier_ns_open(pool, &p, &ns) == -EACCES);
	p.flags = KVTIER_NS_RDONLY;
	CHECK(!kvtier_ns_open(pool, &p, &ns));
	CHECK(mock.failures == 3);
	kvtier_ns_unref(ns);
	kvtier_pool_unref(pool);
	return true;
}

static bool test_fill_and_read(void)
{
	struct kvtier_ns *ns = open_ns("fill", 0, 0);
	struct kvtier_opts opts = KVTIER_OPTS_INIT;
	struct kvtier_lookup_result found[5];
	struct kvtier_slot slots[5];
	struct kvtier_key keys[5];
	uint64_t cost = 0;
	unsigned int i;

	CHECK(ns);
	make_keys(keys, 5, 0);
	CHECK(kvtier_get(ns, NULL, keys, 4, slots) == 0);
	CHECK(slots[0].status == KVTIER_ST_MISS && !slots[0].ptr);
	CHECK(slots[3].status == KVTIER_ST_SKIPPED && !slots[3].ptr);
	CHECK(kvtier_reserve(ns, NULL, keys, NULL, 4, slots) == 4);
	for (i = 0; i < 4; i++) {
		CHECK(slots[i].status == KVTIER_ST_RESERVED && slots[i].ptr);
		CHECK(kvti_addr(slots[i].ptr) % 4096 == 0);
		memset(slots[i].ptr, 'a' + (int)i, BLOCK);
	}
	CHECK(mock_reservations() == 4);
	CHECK(kvtier_commit_slots(ns, 0, slots, 4) == 4);
	CHECK(mock_reservations() == 0 && mock_leases() == 0);
	CHECK(slots[0].status == KVTIER_ST_DONE && !slots[0].ptr);
	CHECK(kvtier_lookup(ns, NULL, keys, 5, found, &cost) == 4);
	CHECK(found[4].status == KVTIER_ST_MISS && cost == 400);
	CHECK(kvtier_lookup(ns, NULL, keys, 5, NULL, NULL) == 4);
	CHECK(kvtier_get(ns, NULL, keys, 5, slots) == 4);
	CHECK(mock_leases() == 4);
	for (i = 0; i < 4; i++)
		CHECK(((char *)slots[i].ptr)[BLOCK - 1] == 'a' + (int)i);
	CHECK(slots[4].status == KVTIER_ST_MISS && !slots[4].handle);
	CHECK(kvtier_release_slots(ns, slots, 5) == 4);
	CHECK(mock_leases() == 0 && !slots[0].ptr && !slots[0].handle);
	CHECK(kvtier_release_slots(ns, slots, 5) == 0);
	opts.group = 2;
	CHECK(kvtier_get(ns, &opts, keys, 1, slots) == -ENOENT);
	opts.group = 0;
	opts.reserved = 1;
	CHECK(kvtier_get(ns, &opts, keys, 1, slots) == -EOPNOTSUPP);
	CHECK(kvtier_get(ns, NULL, keys, KVTIER_BATCH_MAX + 1, slots) ==
	      -EINVAL);
	/* Two views, one mapping each, all gone with the handle. */
	CHECK(mock.nr_maps == 2);
	kvtier_ns_unref(ns);
	CHECK(mock.nr_open == 0);
	return true;
}

static bool test_reserve_exists(void)
{
	struct kvtier_ns *ns = open_ns("exists", 0, 0);
	struct kvtier_opts opts = KVTIER_OPTS_INIT;
	struct kvtier_key keys[3], parents[3];
	struct kvtier_slot slots[3];

	CHECK(ns);
	make_keys(keys, 3, 0);
	CHECK(kvtier_reserve(ns, NULL, keys, NULL, 1, slots) == 1);
	memset(slots[0].ptr, 7, BLOCK);
	CHECK(kvtier_commit_slots(ns, KVTIER_COMMIT_LEASE, slots, 1) == 1);
	CHECK(slots[0].status == KVTIER_ST_HIT);
	CHECK(*(char *)slots[0].ptr == 7 && mock_leases() == 1);
	CHECK(kvtier_release_slots(ns, slots, 1) == 1);

	CHECK(kvtier_reserve(ns, NULL, keys, NULL, 2, slots) == 1);
	CHECK(slots[0].status == KVTIER_ST_EXISTS && !slots[0].ptr);
	CHECK(slots[1].status == KVTIER_ST_RESERVED);
	CHECK(kvtier_abort_slots(ns, slots, 2) == 1 && !slots[1].handle);

	opts.flags = KVTIER_RESERVE_LEASE | KVTIER_RESERVE_PARENTS;
	memset(parents, 0, sizeof(parents));
	parents[1] = keys[0];
	parents[2] = keys[2];
	CHECK(kvtier_reserve(ns, &opts, keys, parents, 3, slots) == 1);
	CHECK(slots[0].status == KVTIER_ST_EXISTS);
	CHECK(*(char *)slots[0].ptr == 7 && mock_leases() == 1);
	CHECK(slots[2].status == KVTIER_ST_NOPARENT && !slots[2].ptr);
	CHECK(kvtier_abort_slots(ns, slots, 3) == 1);
	CHECK(kvtier_release_slots(ns, slots, 3) == 1);
	CHECK(!mock_leases() && !mock_reservations());
	kvtier_ns_unref(ns);
	return true;
}

static bool test_commit_refused(void)
{
	struct kvtier_ns *ns = open_ns("refused", 0, 0);
	struct kvtier_slot slots[3], results[3];
	struct kvtier_key keys[3];
	uint64_t handles[3];
	int32_t status[3];
	void *ptr;

	CHECK(ns);
	make_keys(keys, 3, 0);
	CHECK(kvtier_reserve(ns, NULL, keys, NULL, 3, slots) == 3);
	ptr = slots[0].ptr;
	mock.commit_pinned = 1;
	CHECK(kvtier_commit_slots(ns, 0, slots, 1) == 0);
	CHECK(slots[0].status == KVTIER_ST_PINNED && slots[0].ptr == ptr);
	mock.commit_pinned = 0;
	handles[0] = slots[0].handle;
	handles[1] = 12345;
	CHECK(kvtier_commit(ns, 0, handles, 2, results) == 1);
	CHECK(results[0].status == KVTIER_ST_DONE);
	CHECK(results[1].status == KVTIER_ST_STALE && !results[1].ptr);
	/* A reservation that is gone behind our back. */
	CHECK(kvtier_abort(ns, &slots[1].handle, 1, NULL) == 1);
	CHECK(kvtier_commit_slots(ns, 0, slots, 3) == 1);
	CHECK(slots[1].status == KVTIER_ST_STALE && !slots[1].handle);
	CHECK(kvtier_abort(ns, handles, 2, status) == 0);
	CHECK(status[0] == KVTIER_ST_STALE);
	CHECK(kvtier_get(ns, NULL, keys, 1, slots) == 1);
	handles[0] = slots[0].handle;
	CHECK(kvtier_release(ns, handles, 1, status) == 1);
	CHECK(status[0] == KVTIER_ST_DONE);
	kvtier_ns_unref(ns);
	return true;
}

/* More slots than one batch of handles, with gaps. */
static bool test_many_slots(void)
{
	enum { COUNT = 1000 };
	struct kvtier_ns *ns = open_ns("many", 0, 0);
	static struct kvtier_slot slots[COUNT];
	static struct kvtier_key keys[COUNT];
	unsigned int i;

	CHECK(ns);
	make_keys(keys, COUNT, 0);
	CHECK(kvtier_reserve(ns, NULL, keys, NULL, 100, slots) == 100);
	CHECK(kvtier_commit_slots(ns, 0, slots, 100) == 100);
	CHECK(kvtier_reserve(ns, NULL, keys, NULL, COUNT, slots) == 900);
	for (i = 100; i < COUNT; i++)
		memcpy(slots[i].ptr, &keys[i], sizeof(keys[i]));
	CHECK(kvtier_commit_slots(ns, KVTIER_COMMIT_LEASE, slots, COUNT) ==
	      900);
	for (i = 100; i < COUNT; i++)
		CHECK(!memcmp(slots[i].ptr, &keys[i], sizeof(keys[i])));
	CHECK(mock_leases() == 900);
	CHECK(kvtier_release_slots(ns, slots, COUNT) == 900);
	CHECK(mock_leases() == 0);
	kvtier_ns_unref(ns);
	return true;
}

/* Slots on, before and behind the border of two chunks, whole each. */
static bool test_chunks(void)
{
	struct kvtier_ns *ns = open_ns("chunks", 4 * HUGE, 0);
	struct kvtier_slot slots[4], again[4];
	struct kvtier_key keys[4];
	unsigned int i;

	CHECK(ns);
	make_keys(keys, 4, 0);
	mock.next_offset = 4 * HUGE - SLOT - 4096;
	CHECK(kvtier_reserve(ns, NULL, keys, NULL, 4, slots) == 4);
	for (i = 0; i < 4; i++)
		memset(slots[i].ptr, (int)i + 1, BLOCK);
	CHECK(mock.nr_maps == 2);
	CHECK(kvtier_commit_slots(ns, 0, slots, 4) == 4);
	CHECK(kvtier_get(ns, NULL, keys, 4, slots) == 4);
	for (i = 0; i < 4; i++) {
		CHECK(((char *)slots[i].ptr)[0] == (char)(i + 1));
		CHECK(((char *)slots[i].ptr)[BLOCK - 1] == (char)(i + 1));
	}
	/* Addresses match offsets modulo 2 MiB. */
	CHECK(kvti_addr(slots[0].ptr) % HUGE == HUGE - SLOT - 4096);
	CHECK(mock.nr_maps == 4);
	CHECK(kvtier_get(ns, NULL, keys, 4, again) == 4);
	CHECK(again[3].ptr == slots[3].ptr && mock.nr_maps == 4);
	kvtier_ns_unref(ns);
	CHECK(mock_leases() == 0);
	return true;
}

/* A pool that grows: the last chunk is mapped again, old pointers stay; also across the old end. */
static bool test_window_grows(void)
{
	struct kvtier_slot first, second, across;
	struct kvtier_key keys[3];
	struct kvtier_ns *ns;

	mock.window_bytes = 3 * HUGE;
	ns = open_ns("grows", 0, 0);
	CHECK(ns);
	make_keys(keys, 3, 0);
	mock.next_offset = HUGE;
	CHECK(kvtier_reserve(ns, NULL, keys, NULL, 1, &first) == 1);
	mock.window_bytes = 8 * HUGE;
	/* Before there is a mapping that goes on there. */
	mock.next_offset = 3 * HUGE - 4096;
	CHECK(kvtier_reserve(ns, NULL, keys + 2, NULL, 1, &across) == 1);
	memset(across.ptr, 3, BLOCK);
	CHECK(kvtier_abort_slots(ns, &across, 1) == 1);
	mock.next_offset = 5 * HUGE;
	CHECK(kvtier_reserve(ns, NULL, keys + 1, NULL, 1, &second) == 1);
	memset(first.ptr, 1, BLOCK);
	memset(second.ptr, 2, BLOCK);
	CHECK(mock.nr_maps == 2);
	CHECK(kvtier_commit_slots(ns, 0, &first, 1) == 1);
	CHECK(kvtier_commit_slots(ns, 0, &second, 1) == 1);
	CHECK(kvtier_get(ns, NULL, keys, 1, &first) == 1);
	CHECK(kvtier_get(ns, NULL, keys + 1, 1, &second) == 1);
	CHECK(((char *)first.ptr)[BLOCK - 1] == 1);
	CHECK(((char *)second.ptr)[BLOCK - 1] == 2);
	kvtier_ns_unref(ns);
	return true;
}

static bool test_slot_outside_window(void)
{
	struct kvtier_ns *ns = open_ns("outside", 0, 0);
	uint64_t window = mock.window_bytes;
	struct kvtier_slot slot;
	struct kvtier_key key;

	CHECK(ns);
	make_keys(&key, 1, 0);
	/* A kernel whose slots lie past the window it admits to. */
	mock.next_offset = 2 * window;
	mock.window_bytes = 4 * window;
	CHECK(kvtier_reserve(ns, NULL, &key, NULL, 1, &slot) == 1);
	CHECK(kvtier_commit_slots(ns, 0, &slot, 1) == 1);
	mock.window_bytes = window;
	atomic_store(&ns->views.window_bytes, window);
	logged = 0;
	CHECK(kvtier_get(ns, NULL, &key, 1, &slot) == -EPROTO);
	CHECK(logged == 1 && mock_leases() == 0);
	kvtier_ns_unref(ns);
	return true;
}

static bool test_map_fails(void)
{
	struct kvtier_ns *ns = open_ns("mapfail", 0, 0);
	struct kvtier_slot slots[2];
	struct kvtier_key keys[2];

	CHECK(ns);
	make_keys(keys, 2, 0);
	mock.fail_maps = 2;
	CHECK(kvtier_reserve(ns, NULL, keys, NULL, 2, slots) == -ENOMEM);
	CHECK(mock.failures == 2 && mock_reservations() == 0);
	CHECK(kvtier_reserve(ns, NULL, keys, NULL, 2, slots) == 2);
	mock.fail_maps = 2;
	CHECK(kvtier_commit_slots(ns, KVTIER_COMMIT_LEASE, slots, 2) == 2);
	CHECK(mock.failures == 4 && mock_leases() == 0);
	CHECK(slots[0].status == KVTIER_ST_DONE && !slots[0].handle);
	mock.fail_maps = 2;
	CHECK(kvtier_get(ns, NULL, keys, 2, slots) == -ENOMEM);
	CHECK(mock.failures == 6 && mock_leases() == 0);
	CHECK(kvtier_get(ns, NULL, keys, 2, slots) == 2);
	kvtier_ns_unref(ns);
	return true;
}

static bool test_copies(void)
{
	struct kvtier_ns *ns = open_ns("copies", 0, 0);
	static char out[BLOCK], in[2][BLOCK];
	struct kvtier_opts opts = KVTIER_OPTS_INIT;
	struct kvtier_key keys[2];
	struct kvtier_buf bufs[2] = {
		{ kvti_addr(in[0]), BLOCK }, { kvti_addr(in[1]), BLOCK },
	};
	int32_t results[2];

	CHECK(ns);
	make_keys(keys, 2, 0);
	memset(in[0], 'x', BLOCK);
	memset(in[1], 'y', BLOCK);
	CHECK(kvtier_write(ns, NULL, keys, NULL, 2, bufs, results) == 2);
	CHECK(kvtier_write(ns, NULL, keys, NULL, 2, bufs, results) == 0);
	CHECK(results[1] == KVTIER_ST_EXISTS);
	bufs[0].addr = kvti_addr(out);
	CHECK(kvtier_read(ns, NULL, keys + 1, 1, bufs, results) == 1);
	CHECK(results[0] == KVTIER_ST_HIT && !memcmp(out, in[1], BLOCK));
	bufs[0].bytes--;
	CHECK(kvtier_write(ns, NULL, keys, NULL, 1, bufs, results) == -EINVAL);
	opts.size = 4;
	CHECK(kvtier_read(ns, &opts, keys, 1, bufs, results) == -EINVAL);
	kvtier_ns_unref(ns);
	return true;
}

static bool test_advise_drop_iterate(void)
{
	struct kvtier_ns *ns = open_ns("drop", 0, 0);
	static char data[BLOCK];
	struct kvtier_stat st = KVTIER_STAT_INIT;
	struct kvtier_buf bufs[20];
	struct kvtier_key keys[20];
	struct kvtier_entry entries[16];
	int32_t results[20];
	uint64_t cursor = 0;
	int i, n, pages = 0, seen = 0;

	CHECK(ns);
	make_keys(keys, 20, 0);
	for (i = 0; i < 20; i++)
		bufs[i] = (struct kvtier_buf){ kvti_addr(data), BLOCK };
	CHECK(kvtier_write(ns, NULL, keys, NULL, 20, bufs, results) == 20);
	do {
		n = kvtier_iterate(ns, &cursor, entries, 16);
		CHECK(n >= 0);
		seen += n;
		pages++;
	} while (cursor);
	CHECK(seen == 20 && pages > 2);
	CHECK(kvtier_advise(ns, NULL, KVTIER_ADV_HOT, 0, keys, 20, NULL) ==
	      20);
	CHECK(kvtier_advise(ns, NULL, 77, 0, keys, 1, NULL) == -EINVAL);
	CHECK(!kvtier_session(ns, NULL, 1, KVTIER_SESSION_DECODING, &keys[19],
			      0));
	CHECK(!kvtier_session(ns, NULL, 1, KVTIER_SESSION_IDLE, &keys[19],
			      1000));
	CHECK(kvtier_session(ns, NULL, 1, 9, &keys[19], 0) == -EINVAL);
	CHECK(kvtier_session(ns, NULL, 1, KVTIER_SESSION_DONE, NULL, 0) ==
	      -EINVAL);
	CHECK(kvtier_drop(ns, NULL, keys, 10, results) == 0);
	CHECK(results[9] == KVTIER_ST_CHILDREN);
	CHECK(kvtier_drop(ns, NULL, keys, 20, NULL) == 20);
	CHECK(kvtier_drop(ns, NULL, keys, 1, results) == 0);
	CHECK(results[0] == KVTIER_ST_MISS);
	CHECK(!kvtier_ns_stat(ns, &st) && st.puts == 20);
	kvtier_ns_unref(ns);
	return true;
}

static bool test_completions(void)
{
	struct kvtier_ns *ns = open_ns("async", 0, 0);
	struct kvtier_opts opts = KVTIER_OPTS_INIT;
	struct kvtier_completion done[2];
	struct kvtier_key keys[3];

	CHECK(ns);
	make_keys(keys, 3, 0);
	CHECK(kvtier_completions(ns, done, 2, 0) == 0);
	CHECK(kvtier_completions(ns, done, 2, 10) == 0);
	CHECK(kvtier_completions(ns, done, 0, 0) == -EINVAL);
	CHECK(kvtier_prefetch(ns, NULL, keys, 3) == 3);
	opts.flags = KVTIER_PREFETCH_NOTIFY;
	for (opts.user_data = 7; opts.user_data < 10; opts.user_data++)
		CHECK(kvtier_prefetch(ns, &opts, keys, 3) == 3);
	CHECK(kvtier_completions(ns, done, 2, -1) == 2);
	CHECK(done[0].user_data == 7 && done[1].user_data == 8);
	CHECK(kvtier_completions(ns, done, 2, 1000) == 1);
	CHECK(done[0].user_data == 9 && done[0].nr_ready == 3);
	kvtier_ns_unref(ns);
	return true;
}

static bool test_arena(void)
{
	struct kvtier_ns *ns = open_ns("arena", 0, 4 * HUGE);
	struct kvtier_opts opts = KVTIER_OPTS_INIT;
	struct kvtier_arena_view *arena = NULL;
	struct kvtier_slot slots[20];
	struct kvtier_key keys[20];
	char *base;
	int i;

	CHECK(ns);
	make_keys(keys, 20, 0);
	CHECK(kvtier_arena_open(ns, 0, 1000, &arena) == -ENOSPC && !arena);
	CHECK(kvtier_arena_open(ns, 5, 10, &arena) == -ENOENT);
	CHECK(!kvtier_arena_open(ns, 0, 60, &arena));
	CHECK(kvtier_arena_nr_slots(arena) >= 60);
	CHECK(kvtier_arena_slot_bytes(arena) == SLOT);
	CHECK(kvtier_arena_bytes(arena) == 2 * HUGE);
	base = kvtier_arena_base(arena);
	memset(base, 0xcc, kvtier_arena_bytes(arena));
	opts.flags = KVTIER_RESERVE_ARENA;
	CHECK(kvtier_reserve(ns, &opts, keys, NULL, 20, slots) == 20);
	for (i = 0; i < 20; i++) {
		CHECK((char *)slots[i].ptr == base + (uint64_t)i * SLOT);
		memset(slots[i].ptr, i, BLOCK);
	}
	CHECK(kvtier_commit_slots(ns, 0, slots, 20) == 20);
	CHECK(kvtier_get(ns, NULL, keys, 20, slots) == 20);
	for (i = 0; i < 20; i++)
		CHECK(((char *)slots[i].ptr)[BLOCK - 1] == (char)i);
	/* Ordinary slots of the same file are elsewhere. */
	make_keys(keys, 1, 100);
	CHECK(kvtier_reserve(ns, NULL, keys, NULL, 1, slots) == 1);
	CHECK((char *)slots[0].ptr < base ||
	      (char *)slots[0].ptr >= base + 2 * HUGE);
	kvtier_ns_unref(ns);
	return true;
}

static bool test_export(void)
{
	struct kvtier_ns *ns = open_ns("export", 0, 0);
	struct kvtier_slot slots[3];
	struct kvtier_key keys[3];
	uint64_t handles[3], bytes = 0;
	int i, fd;

	CHECK(ns);
	make_keys(keys, 3, 0);
	CHECK(kvtier_reserve(ns, NULL, keys, NULL, 3, slots) == 3);
	handles[0] = slots[0].handle;
	CHECK(kvtier_export(ns, handles, 1, NULL) == -EINVAL);
	CHECK(kvtier_commit_slots(ns, 0, slots, 3) == 3);
	CHECK(kvtier_get(ns, NULL, keys, 3, slots) == 3);
	for (i = 0; i < 3; i++)
		handles[i] = slots[i].handle;
	CHECK(kvtier_export(ns, handles, 0, &bytes) == -EINVAL && !bytes);
	fd = kvtier_export(ns, handles, 3, &bytes);
	CHECK(fd >= 0 && bytes == 3 * SLOT);
	CHECK(lseek(fd, 0, SEEK_END) == (off_t)bytes);
	close(fd);
	handles[1] = 0;
	CHECK(kvtier_export(ns, handles, 3, NULL) == -EINVAL);
	kvtier_ns_unref(ns);
	return true;
}

static bool test_ioctl_errors(void)
{
	struct kvtier_ns *ns = open_ns("errors", 0, 0);
	struct kvtier_completion done;
	struct kvtier_slot slot = { 0 };
	struct kvtier_key key;
	uint64_t cursor = 0;

	CHECK(ns);
	make_keys(&key, 1, 0);
	mock.fail_errno = ENXIO;
	mock.fail_op = KVTIER_OP_GET;
	CHECK(kvtier_get(ns, NULL, &key, 1, &slot) == -ENXIO);
	mock.fail_op = KVTIER_OP_RESERVE;
	CHECK(kvtier_reserve(ns, NULL, &key, NULL, 1, &slot) == -ENXIO);
	mock.fail_op = KVTIER_OP_COMMIT;
	slot.handle = 1;
	slot.status = KVTIER_ST_RESERVED;
	CHECK(kvtier_commit_slots(ns, 0, &slot, 1) == -ENXIO);
	CHECK(slot.handle == 1);
	mock.fail_op = KVTIER_OP_ABORT;
	CHECK(kvtier_abort_slots(ns, &slot, 1) == -ENXIO && slot.handle == 1);
	mock.fail_op = KVTIER_OP_ITERATE;
	CHECK(kvtier_iterate(ns, &cursor, NULL, 1) == -ENXIO);
	mock.fail_op = KVTIER_OP_LOOKUP;
	CHECK(kvtier_lookup(ns, NULL, &key, 1, NULL, NULL) == -ENXIO);
	CHECK(mock.failures == 6);
	mock.fail_errno = 0;
	CHECK(kvtier_completions(ns, &done, KVTIER_BATCH_MAX + 1, 0) ==
	      -EINVAL);
	kvtier_ns_unref(ns);
	return true;
}

struct racer {
	pthread_t thread;
	struct kvtier_ns *ns;
	unsigned int seed;
	bool ok;
};

/* Asks for pointers all over the window and checks that everybody agrees. */
static void *race(void *arg)
{
	struct racer *racer = arg;
	struct kvti_views *views = &racer->ns->views;
	const struct kvti_map *hint = NULL;
	unsigned int i;
	void *ptr;

	racer->ok = true;
	for (i = 0; i < 2000; i++) {
		uint64_t slot = rand_r(&racer->seed) % 800, seen;

		if (kvti_view_ptr(views, &views->fill,
				  MOCK_FILL_OFFSET + slot * SLOT, &hint, &ptr))
			racer->ok = false;
		seen = __atomic_exchange_n((uint64_t *)ptr, slot + 1,
					   __ATOMIC_RELAXED);
		if (seen && seen != slot + 1)
			racer->ok = false;
		if (kvti_view_ptr(views, &views->read, slot * SLOT, &hint,
				  &ptr) ||
		    __atomic_load_n((uint64_t *)ptr, __ATOMIC_RELAXED) !=
		    slot + 1)
			racer->ok = false;
		kvtier_ns_unref(kvtier_ns_ref(racer->ns));
	}
	return NULL;
}

static bool test_threads(void)
{
	struct kvtier_ns *ns = open_ns("threads", HUGE, 0);
	struct racer racers[4];
	unsigned int i;
	bool ok = true;

	CHECK(ns);
	for (i = 0; i < NR(racers); i++) {
		racers[i] = (struct racer){ .ns = ns, .seed = i + 1 };
		if (pthread_create(&racers[i].thread, NULL, race, &racers[i]))
			abort();
	}
	for (i = 0; i < NR(racers); i++) {
		pthread_join(racers[i].thread, NULL);
		ok = ok && racers[i].ok;
	}
	CHECK(ok);
	/* 800 slots of 40 KiB touch 16 chunks, each mapped once a view. */
	CHECK(mock.nr_maps == 32);
	kvtier_ns_unref(ns);
	return true;
}

static const struct {
	const char *name;
	bool (*run)(void);
} tests[] = {
	{ "names", test_names },
	{ "copy-params", test_copy_params },
	{ "ctl", test_ctl },
	{ "assemble", test_assemble },
	{ "scrub", test_scrub },
	{ "tiers", test_tiers },
	{ "open-errors", test_open_errors },
	{ "read-only-node", test_read_only_node },
	{ "fill-and-read", test_fill_and_read },
	{ "reserve-exists", test_reserve_exists },
	{ "commit-refused", test_commit_refused },
	{ "many-slots", test_many_slots },
	{ "chunks", test_chunks },
	{ "window-grows", test_window_grows },
	{ "slot-outside-window", test_slot_outside_window },
	{ "map-fails", test_map_fails },
	{ "copies", test_copies },
	{ "advise-drop-iterate", test_advise_drop_iterate },
	{ "completions", test_completions },
	{ "arena", test_arena },
	{ "export", test_export },
	{ "ioctl-errors", test_ioctl_errors },
	{ "threads", test_threads },
	{ "log-unlocked", test_log_unlocked },
	{ "plan-search", test_plan_search },
	{ "path-relative", test_path_relative },
	{ "plan-cases", test_plan_cases },
	{ "plan-limits", test_plan_limits },
};

static bool make_pool(void)
{
	struct kvtier_ctl *ctl = NULL;
	uint32_t id = 0;
	bool ok;

	if (kvtier_ctl_open(&ctl))
		return false;
	ok = !kvtier_ctl_pool_create(ctl, &id);
	kvtier_ctl_unref(ctl);
	return ok;
}

int main(int argc, char **argv)
{
	const char *prefix = argc > 1 ? argv[1] : "lib";
	bool ok, all = true;
	size_t i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; i < NR(tests); i++) {
		mock = (struct mock_knobs){ .window_bytes = 1ULL << 30 };
		mock_install(NULL);
		ok = make_pool() && tests[i].run();
		if (ok && mock.nr_open) {
			printf("# %d files left open\n", mock.nr_open);
			ok = false;
		}
		all = all && ok;
		printf("%s %s/%s\n", ok ? "ok" : "not ok", prefix,
		       tests[i].name);
	}
	return all ? 0 : 1;
}
