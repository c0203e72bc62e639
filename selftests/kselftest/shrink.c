// SPDX-License-Identifier: GPL-2.0
/*
 * Memory tiers give way when the system is short of memory, go on serving meanwhile, and
 * take memory again when there is some. That it is short is made up: the system is told
 * to shrink what can be shrunk.
 */
#include "kvt_test.h"

#define BLOCK_BYTES	(64 * KVT_KIB)
#define CHAIN		8
#define CHAINS		56	/* 28 MiB */
#define SET		33
#define TIER_BYTES	(32 * KVT_MIB)
#define KEPT_BYTES	(TIER_BYTES / 8)
#define NAME		"tiers/dram0/absent_bytes"

FIXTURE(shrink)
{
	struct kvt_pool pool;
	struct kvt_client c;
	int tier;
	char min_free[16];	/* of the system, KiB; empty: it is as it was */
};

FIXTURE_VARIANT(shrink)
{
	bool disk;
};

FIXTURE_VARIANT_ADD(shrink, alone) { .disk = false };
FIXTURE_VARIANT_ADD(shrink, above_a_disk) { .disk = true };

FIXTURE_SETUP(shrink)
{
	if (variant->disk && !kvt_env_bdev())
		SKIP(return, "no block device to use (KVT_BDEV)");
	if (variant->disk && !kvt_env_long() && strcmp(_metadata->name, "gives_and_takes"))
		SKIP(return, "the disk makes little difference");
	ASSERT_EQ(0, kvt_setup(&self->pool));
	self->tier = kvt_tier_dram(&self->pool, 0, TIER_BYTES);
	ASSERT_LE(0, self->tier);
	if (variant->disk)
		ASSERT_LE(0, kvt_tier_bdev(&self->pool, 1, 128 * KVT_MIB));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "shrink", BLOCK_BYTES));
}

FIXTURE_TEARDOWN(shrink)
{
	if (*self->min_free)
		EXPECT_EQ(0, kvt_sh("cd /proc/sys/vm && echo %s >min_free_kbytes && "
				    "echo 20 >compaction_proactiveness && "
				    "echo 0 >percpu_pagelist_high_fraction && "
				    "{ ! [ -e nr_hugepages ] || echo 0 >nr_hugepages; }",
				    self->min_free));
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

static long long absent(const struct kvt_pool *p)
{
	char buf[32];
	int n = kvt_sysfs_read(p, NAME, buf, sizeof(buf));

	return n < 0 ? n : strtoll(buf, NULL, 10);
}

/* The system asks everybody who can shrink, until little comes of it. */
static int ask(void)
{
	return kvt_sh("echo 2 > /proc/sys/vm/drop_caches");
}

/* What large pieces there are, and who looked for some. */
static void log_memory(void)
{
	kvt_sh("{ cat /proc/buddyinfo; head -n 3 /proc/meminfo; "
	       "grep -E '^(kswapd_|compact_|slabs_scanned)' /proc/vmstat; } >&2");
}

static int put_chains(const struct kvt_client *c, int first, int nr)
{
	struct kvt_key keys[CHAIN];
	int i, ret;

	for (i = first; i < first + nr; i++) {
		kvt_keys(keys, SET, i * CHAIN, CHAIN);
		ret = kvt_put(c, KVTIER_RESERVE_WAIT, 0, keys, NULL, CHAIN);
		if (ret < 0)
			return ret;
	}
	return 0;
}

/* Blocks of these chains that are there, -EBADMSG if any is wrong. */
static int check_chains(const struct kvt_client *c, int first, int nr)
{
	struct kvt_key keys[CHAIN];
	int i, ret, sum = 0;

	for (i = first; i < first + nr; i++) {
		kvt_keys(keys, SET, i * CHAIN, CHAIN);
		ret = kvt_check(c, 0, keys, CHAIN, 10 * KVT_SEC);
		if (ret < 0)
			return ret;
		sum += ret;
	}
	return sum;
}

/* What is free goes at once; no more than may. */
TEST_F(shrink, gives_what_is_free)
{
	ASSERT_EQ(0, put_chains(&self->c, 0, 4));
	ASSERT_EQ(0, absent(&self->pool));
	ASSERT_EQ(0, ask());
	EXPECT_LT(0, absent(&self->pool));
	EXPECT_TRUE(KVT_UNTIL(10000, ask() == 0 &&
			      absent(&self->pool) >= (long long)(TIER_BYTES / 2)));
	EXPECT_GE((long long)(TIER_BYTES - KEPT_BYTES), absent(&self->pool));
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, self->tier, KVTIER_DETACH_DISCARD,
				     10 * KVT_SEC));
}

/* What is in use moves down or goes, and the rest serves; then there is memory again. */
TEST_F_TIMEOUT(shrink, gives_and_takes, 600)
{
	int put = 0, there = 0;
	long long given = 0;

	ASSERT_EQ(0, put_chains(&self->c, 0, CHAINS));
	EXPECT_TRUE(KVT_UNTIL(20000, ask() == 0 &&
			      (given = absent(&self->pool)) >= (long long)(TIER_BYTES / 2)));
	/* With a disk below nothing is lost. Reading may take so long that it grows meanwhile. */
	EXPECT_LE(variant->disk ? CHAINS * CHAIN : 0, check_chains(&self->c, 0, CHAINS));
	/* Full again: the system has plenty, so it is not asked for long. */
	EXPECT_TRUE(KVT_UNTIL(60000, (put = put_chains(&self->c, 0, CHAINS)) == 0 &&
			      (there = check_chains(&self->c, 0, CHAINS)) >= 0 &&
			      absent(&self->pool) <= given / 2)) {
		TH_LOG("put: %d, there: %d, given: %lld, absent: %lld", put, there, given,
		       absent(&self->pool));
		log_memory();
	}
	EXPECT_LE(0, check_chains(&self->c, 0, CHAINS));
}

#define LEASED	(CHAINS / 4)	/* chains whose heads are */

/* Leases are kept: what holds them stays where it is, and right, when all else is given back. */
TEST_F_TIMEOUT(shrink, keeps_what_is_leased, 600)
{
	struct kvtier_block_result res[LEASED];
	struct kvtier_stat st;
	struct kvt_key key;
	int i;

	ASSERT_EQ(0, put_chains(&self->c, 0, CHAINS));
	/* The last ones: there for sure, and side by side. */
	for (i = 0; i < LEASED; i++) {
		key = kvt_key(SET, (CHAINS - LEASED + i) * CHAIN);
		ASSERT_EQ(1, kvt_get(self->c.fd, KVTIER_GET_WAIT, 0, &key, 1, &res[i],
				     20 * KVT_SEC));
	}
	EXPECT_TRUE(KVT_UNTIL(20000, ask() == 0 &&
			      absent(&self->pool) >= (long long)(TIER_BYTES / 2)));
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(LEASED, st.leases);
	for (i = 0; i < LEASED; i++) {
		key = kvt_key(SET, (CHAINS - LEASED + i) * CHAIN);
		EXPECT_EQ(1, kvt_bytes_probe(kvt_rd(&self->c, res[i].offset), &key, BLOCK_BYTES));
		EXPECT_EQ(1, kvt_release(self->c.fd, &res[i].handle, 1, NULL));
	}
}

/* What is guaranteed to a namespace is not given away. */
TEST_F(shrink, keeps_what_is_promised)
{
	struct kvtier_group group = { .block_bytes = BLOCK_BYTES };
	struct kvtier_ns_open a;
	struct kvt_client c;
	int i, fd = kvt_open(&self->pool);

	ASSERT_LE(0, fd);
	kvt_ns_args(&a, "promised", &group, 1);
	a.min_bytes = 24 * KVT_MIB;
	ASSERT_EQ(0, kvt_client_bind(&c, fd, &a));
	for (i = 0; i < 5; i++)
		ASSERT_EQ(0, ask());
	EXPECT_LT(0, absent(&self->pool));
	EXPECT_GE((long long)(8 * KVT_MIB), absent(&self->pool));
	kvt_client_close(&c);
}

static int promise(const struct kvt_pool *p, __u64 bytes, struct kvt_client *c)
{
	struct kvtier_group group = { .block_bytes = BLOCK_BYTES };
	struct kvtier_ns_open a;
	int fd = kvt_open(p), err;

	if (fd < 0)
		return fd;
	kvt_ns_args(&a, "late", &group, 1);
	a.min_bytes = bytes;
	err = kvt_client_bind(c, fd, &a);
	if (err)
		close(fd);
	return err;
}

/* What is not there cannot be promised; that it was needed brings it back. */
TEST_F_TIMEOUT(shrink, promises_what_is_there, 60)
{
	struct kvt_client c;

	ASSERT_TRUE(KVT_UNTIL(10000, ask() == 0 &&
			      absent(&self->pool) >= (long long)(TIER_BYTES / 2)));
	ASSERT_EQ(-ENOSPC, promise(&self->pool, 24 * KVT_MIB, &c));
	ASSERT_TRUE(KVT_UNTIL(30000, promise(&self->pool, 24 * KVT_MIB, &c) == 0));
	EXPECT_GE((long long)(8 * KVT_MIB), absent(&self->pool));
	ASSERT_EQ(0, ask());
	EXPECT_GE((long long)(8 * KVT_MIB), absent(&self->pool));
	kvt_client_close(&c);
}

#define FREE_ENOUGH	(24 * KVT_MIB)
#define HOLE_EVERY	4
#define SCATTERED	(512 * KVT_MIB)
#define HUGE_BYTES	(2 * KVT_MIB)

static size_t mem_bytes(const char *name)
{
	char line[32];

	kvt_sh_line(line, sizeof(line), "awk '/^%s:/ { print $2 }' /proc/meminfo", name);
	return strtoull(line, NULL, 10) * KVT_KIB;
}

/* All but so much of it goes to nobody. Touching it all would do as well, but takes minutes. */
static int set_aside(size_t but)
{
	size_t free = mem_bytes("MemFree");

	if (free <= but || access("/proc/sys/vm/nr_hugepages", W_OK))
		return 0;
	return kvt_sh("echo %llu >/proc/sys/vm/nr_hugepages", (free - but) / HUGE_BYTES);
}

/* Nearly all memory in use, and what is not in single pages far from each other. */
static char *scatter_memory(size_t bytes)
{
	size_t page = getpagesize(), at = 0, step;
	char *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (mem == MAP_FAILED || madvise(mem, bytes, MADV_NOHUGEPAGE))
		return NULL;
	for (step = 64 * KVT_MIB; step >= 4 * KVT_MIB; step /= 2) {
		while (at + step <= bytes && mem_bytes("MemFree") > FREE_ENOUGH + step) {
			if (madvise(mem + at, step, MADV_POPULATE_WRITE))
				return NULL;
			at += step;
		}
	}
	for (bytes = 0; bytes < at; bytes += HOLE_EVERY * page) {
		if (madvise(mem + bytes, page, MADV_DONTNEED))
			return NULL;
	}
	return mem;
}

/* A machine that has been up for long has memory, but none in large pieces. */
TEST_F_TIMEOUT(shrink, takes_scattered_memory, 600)
{
	size_t bytes = mem_bytes("MemTotal");
	long long given;
	char *mem;

	if (variant->disk)
		SKIP(return, "the disk makes little difference");
	kvt_sh_line(self->min_free, sizeof(self->min_free), "cat /proc/sys/vm/min_free_kbytes");
	/* Nobody else makes large pieces, or keeps small ones by, while the test lasts. */
	ASSERT_EQ(0, kvt_sh("cd /proc/sys/vm && echo 4096 >min_free_kbytes && "
			    "echo 0 >compaction_proactiveness && "
			    "echo 10000 >percpu_pagelist_high_fraction"));
	ASSERT_TRUE(KVT_UNTIL(20000, ask() == 0 &&
			      absent(&self->pool) >= (long long)(TIER_BYTES / 2)));
	ASSERT_EQ(0, set_aside(SCATTERED));
	mem = scatter_memory(bytes);
	ASSERT_NE(NULL, mem);
	given = absent(&self->pool);
	log_memory();
	EXPECT_TRUE(KVT_UNTIL(30000, put_chains(&self->c, 0, CHAINS) == 0 &&
			      absent(&self->pool) <= given / 2)) {
		TH_LOG("given: %lld, absent: %lld", given, absent(&self->pool));
		log_memory();
	}
	munmap(mem, bytes);
}

TEST_HARNESS_MAIN
