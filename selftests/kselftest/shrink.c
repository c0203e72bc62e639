// SPDX-License-Identifier: GPL-2.0
/*
 * Memory tiers give way when the system is short of memory, go on serving meanwhile, and
 * take memory again when there is some. How short it is, is made up: the system is told
 * to shrink what can be shrunk. With time it really is short of it.
 */
#include "kvt_test.h"
#include <stdatomic.h>
#include <sys/wait.h>

#define BLOCK_BYTES	(64 * KVT_KIB)
#define CHAIN		8
#define CHAINS		56	/* of all loaders together: 28 MiB */
#define SET		33
#define TIER_BYTES	(32 * KVT_MIB)
#define KEPT_BYTES	(TIER_BYTES / 8)
#define NAME		"tiers/dram0/absent_bytes"

FIXTURE(shrink)
{
	struct kvt_pool pool;
	struct kvt_client c;
	int tier;
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
TEST_F_TIMEOUT(shrink, gives_and_takes, 120)
{
	long long given;

	ASSERT_EQ(0, put_chains(&self->c, 0, CHAINS));
	EXPECT_TRUE(KVT_UNTIL(20000, ask() == 0 &&
			      absent(&self->pool) >= (long long)(TIER_BYTES / 2)));
	/* With a disk below nothing is lost. */
	EXPECT_LE(variant->disk ? CHAINS * CHAIN : 0, check_chains(&self->c, 0, CHAINS));
	/* Full again: the system has plenty, so it is not asked for long. */
	given = absent(&self->pool);
	EXPECT_TRUE(KVT_UNTIL(60000, put_chains(&self->c, 0, CHAINS) == 0 &&
			      check_chains(&self->c, 0, CHAINS) >= 0 &&
			      absent(&self->pool) < given / 2));
	EXPECT_LE(0, check_chains(&self->c, 0, CHAINS));
}

/* Leases are kept: what holds them stays where it is, and right. */
TEST_F_TIMEOUT(shrink, keeps_what_is_leased, 120)
{
	struct kvtier_block_result res[CHAINS];
	struct kvt_key key;
	int i;

	ASSERT_EQ(0, put_chains(&self->c, 0, CHAINS));
	for (i = 0; i < CHAINS; i++) {
		key = kvt_key(SET, i * CHAIN);
		if (kvt_get(self->c.fd, KVTIER_GET_WAIT, 0, &key, 1, &res[i], KVT_SEC) != 1)
			res[i].handle = 0;
	}
	for (i = 0; i < 5; i++)
		ASSERT_EQ(0, ask());
	for (i = 0; i < CHAINS; i++) {
		key = kvt_key(SET, i * CHAIN);
		if (!res[i].handle)
			continue;
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

/* --- really short --------------------------------------------------------------------------- */

struct load {
	const struct kvt_pool *pool;
	atomic_int *rounds;
};

static int loader(struct kvt_child *me, void *arg)
{
	struct load *l = arg;
	struct kvt_client c;

	KVT_CHILD_CHECK(!kvt_client_open(l->pool, &c, "shrink", BLOCK_BYTES));
	while (kvt_hear(me, 0) == -ETIMEDOUT) {
		KVT_CHILD_CHECK(!put_chains(&c, *l->rounds % CHAINS, 1));
		KVT_CHILD_CHECK(check_chains(&c, 0, CHAINS) >= 0);
		++*l->rounds;
	}
	kvt_client_close(&c);
	return 0;
}

static __u64 available_bytes(void)
{
	char line[64];

	kvt_sh_line(line, sizeof(line), "awk '/^MemAvailable/ { print $2 }' /proc/meminfo || "
		    "sed -n 's/^MemAvailable: *\\([0-9]*\\).*/\\1/p' /proc/meminfo");
	return strtoull(line, NULL, 10) * KVT_KIB;
}

/*
 * Takes memory until the tier has given some, in small steps at the end, when the system
 * begins to look for some. If it finds none this is what has to go.
 */
static int hog(struct kvt_child *me, void *arg)
{
	const struct kvt_pool *p = arg;
	__u64 taken = 0, most = available_bytes() + 128 * KVT_MIB, step;
	char *at;

	KVT_CHILD_CHECK(!kvt_sh("echo 1000 > /proc/%d/oom_score_adj", getpid()));
	for (; taken < most && absent(p) <= 0; taken += step) {
		step = available_bytes() > 128 * KVT_MIB ? 32 * KVT_MIB : 2 * KVT_MIB;
		at = mmap(NULL, step, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		KVT_CHILD_CHECK(at != MAP_FAILED);
		memset(at, 1, step);
	}
	KVT_CHILD_CHECK(!kvt_say(me, absent(p) > 0));
	kvt_hear(me, 60000);
	return 0;
}

TEST_F_TIMEOUT(shrink, under_pressure, 300)
{
	struct kvt_child child[2];
	struct load load;
	int before;

	if (!kvt_env_long())
		SKIP(return, "takes long");
	load.pool = &self->pool;
	load.rounds = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)load.rounds);
	ASSERT_EQ(0, put_chains(&self->c, 0, CHAINS));
	ASSERT_EQ(0, kvt_spawn(&child[0], loader, &load));
	ASSERT_EQ(0, kvt_spawn(&child[1], hog, &self->pool));
	EXPECT_EQ(1, kvt_hear(&child[1], 200000));
	before = *load.rounds;
	EXPECT_TRUE(KVT_UNTIL(60000, *load.rounds >= before + 2));
	kvt_say(&child[1], 0);
	EXPECT_EQ(0, kvt_join(&child[1], 60000));
	kvt_say(&child[0], 0);
	EXPECT_EQ(0, kvt_join(&child[0], 60000));
}

TEST_HARNESS_MAIN
