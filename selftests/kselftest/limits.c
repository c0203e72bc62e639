// SPDX-License-Identifier: GPL-2.0
/*
 * What a namespace may have on single tiers: limits are kept by everything that moves blocks,
 * at the cost of its own blocks and of nobody else's, and who waits at one waits; what is
 * guaranteed on a block tier outlives others' bursts.
 */
#include "kvt_test.h"
#include <sys/resource.h>

#define BLOCK_BYTES	(64 * KVT_KIB)
#define DRAM_BYTES	(16 * KVT_MIB)
#define DISK_BYTES	(48 * KVT_MIB)
#define VAIN_MS		2000ull	/* that nobody gives room in */
#define SET		71
#define OTHER		72
#define NR		32		/* blocks at a limit */
#define NR_OTHER	48
#define SOME		(4 * NR)	/* with the others', below the watermark of memory */
#define MANY		(6 * NR)
#define LIMIT		(NR * BLOCK_BYTES)
#define DRAM		"dram0"
#define DISK		"bdev30"

FIXTURE(limits)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvt_client other;
	int disk;
};

FIXTURE_VARIANT(limits)
{
	bool disk;
};

FIXTURE_VARIANT_ADD(limits, memory) { .disk = false, };
FIXTURE_VARIANT_ADD(limits, memory_and_disk) { .disk = true, };

FIXTURE_SETUP(limits)
{
	if (variant->disk && !kvt_env_bdev())
		SKIP(return, "no block device to use (KVT_BDEV)");
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, DRAM_BYTES));
	if (variant->disk) {
		self->disk = kvt_tier_bdev(&self->pool, 30, DISK_BYTES);
		ASSERT_LE(0, self->disk);
	}
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "limited", BLOCK_BYTES));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->other, "other", BLOCK_BYTES));
}

FIXTURE_TEARDOWN(limits)
{
	kvt_client_close(&self->c);
	kvt_client_close(&self->other);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

static int set_to(const struct kvt_pool *p, const struct kvt_client *c, const char *file,
		  const char *tier, __u64 bytes)
{
	char text[64];

	snprintf(text, sizeof(text), "%s %llu\n", tier, bytes);
	return kvt_ns_set(p, c, file, text);
}

static int limit_to(const struct kvt_pool *p, const struct kvt_client *c, const char *tier,
		    __u64 bytes)
{
	return set_to(p, c, "tier_limits", tier, bytes);
}

/* The numbers after a tier's name; how many there are, 0: no such line. */
static int line_of(const struct kvt_pool *p, const struct kvt_client *c, const char *file,
		   const char *tier, __u64 *first, __u64 *second)
{
	unsigned long long a = 0, b = 0;
	char path[128], text[4096], name[64];
	const char *line;
	int n;

	snprintf(path, sizeof(path), "namespaces/%llu/%s", c->ns_id, file);
	if (kvt_sysfs_read(p, path, text, sizeof(text)) <= 0)
		return 0;
	for (line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		n = sscanf(line, "%63s %llu %llu", name, &a, &b);
		if (n < 2 || strcmp(name, tier))
			continue;
		*first = a;
		*second = b;
		return n - 1;
	}
	return 0;
}

/* What the namespace has on a tier; all ones: it does not say. */
static __u64 used(const struct kvt_pool *p, const struct kvt_client *c, const char *tier)
{
	__u64 bytes = ~0ull, none;

	line_of(p, c, "tier_used_bytes", tier, &bytes, &none);
	return bytes;
}

/* On all tiers together, counted on its own. */
static __u64 all_used(const struct kvt_pool *p, const struct kvt_client *c)
{
	return (__u64)kvt_ns_number(p, c, "used_bytes");
}

/* Evicted of it for its quota or limits. */
static __u64 evicted(const struct kvt_pool *p, const struct kvt_client *c, const char *why)
{
	unsigned long long n, tier, sum = 0;
	char path[128], text[512];
	const char *line = text;

	snprintf(path, sizeof(path), "namespaces/%llu/%s", c->ns_id, why);
	if (kvt_sysfs_read(p, path, text, sizeof(text)) <= 0)
		return 0;
	while (line && sscanf(line, "%llu %llu", &tier, &n) == 2) {
		sum += n;
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return sum;
}

/* Roots, one at a time; how many could be stored. */
static int put(const struct kvt_client *c, __u32 of, int first, int nr, __u32 flags)
{
	struct kvt_key key;
	int i, there = 0;

	for (i = 0; i < nr; i++) {
		key = kvt_key(of, first + i);
		there += kvt_put(c, flags, 0, &key, NULL, 1) == 1;
	}
	return there;
}

/* Of these, those that can be found; with @bytes, read and compared. */
static int there(const struct kvt_client *c, __u32 of, int first, int nr, bool bytes)
{
	struct kvt_key key;
	int i, n = 0;

	for (i = 0; i < nr; i++) {
		key = kvt_key(of, first + i);
		n += bytes ? kvt_check(c, 0, &key, 1, 20 * KVT_SEC) == 1 :
			     kvt_lookup(c->fd, 0, &key, 1, NULL) == 1;
	}
	return n;
}

/* Time the processors were busy, in ms. */
static __u64 busy_ms(void)
{
	unsigned long long user, nice, system;
	FILE *f = fopen("/proc/stat", "r");
	int n = f ? fscanf(f, "cpu %llu %llu %llu", &user, &nice, &system) : 0;

	if (f)
		fclose(f);
	return n == 3 ? (user + nice + system) * 1000 / sysconf(_SC_CLK_TCK) : 0;
}

/* RESERVE that cannot have a slot. 1: that is what it says, and when; @busy: 0 or more, in ms */
static int wait_in_vain(const struct kvt_client *c, __u32 flags, __u32 group, int i, __u64 *busy)
{
	struct kvtier_block_result res;
	struct kvt_key key = kvt_key(SET, 1000000 + i);
	__u64 start = kvt_now_ns(), before = busy_ms(), took;
	int ret = kvt_reserve(c->fd, flags | KVTIER_RESERVE_WAIT, group, &key, NULL, 1, &res,
			      VAIN_MS * KVT_MSEC);

	took = (kvt_now_ns() - start) / KVT_MSEC;
	*busy = busy_ms() - before;
	fprintf(stderr, "# %d, status %d after %llu ms, busy for %llu\n", ret, res.status, took,
		*busy);
	return ret == 0 && res.status == KVTIER_ST_NOSPACE && took >= VAIN_MS - 10 &&
	       took < KVT_PATIENCE_MS(2 * VAIN_MS);
}

/*
 * And that nobody is busy meanwhile: if it is the worker it is so each time, something else
 * ends some time. An instrumented kernel is busy with itself.
 */
static int waits_in_vain(const struct kvt_client *c, __u32 flags, __u32 group, int i)
{
	int tries, as_said = 1;
	__u64 busy = VAIN_MS;

	for (tries = 0; as_said && busy >= VAIN_MS / 2 && tries < 5; tries++)
		as_said = wait_in_vain(c, flags, group, i, &busy);
	return as_said && (busy < VAIN_MS / 2 || kvt_env_brief());
}

/* Others' need takes what is beyond a guarantee, and not one block more at a time. */
TEST_F_TIMEOUT(limits, guarantee_is_kept_to_the_block, 600)
{
	struct kvtier_group group = { .block_bytes = BLOCK_BYTES };
	const struct kvt_pool *p = &self->pool;
	int nr = 3 * DRAM_BYTES / BLOCK_BYTES;
	struct kvt_client promised;
	struct kvtier_ns_open a;
	struct kvtier_stat st;

	/* What is oldest goes first, and in the background, before there is no room. */
	ASSERT_EQ(0, kvt_sysfs_write(p, "policy", "lru"));
	ASSERT_EQ(0, kvt_sysfs_write(p, "watermark_low_percent", "50"));
	ASSERT_EQ(0, kvt_sysfs_write(p, "watermark_high_percent", "70"));
	kvt_ns_args(&a, "promised", &group, 1);
	a.min_bytes = LIMIT;
	ASSERT_EQ(0, kvt_client_bind(&promised, kvt_open(p), &a));
	ASSERT_EQ(NR + 2, put(&promised, SET, 0, NR + 2, KVTIER_RESERVE_WAIT));
	ASSERT_EQ(nr, put(&self->other, OTHER, 0, nr, KVTIER_RESERVE_WAIT));
	EXPECT_LT(0, kvt_settled(p, &st, NULL));
	EXPECT_LE(LIMIT, used(p, &promised, DRAM));
	EXPECT_LE(NR, there(&promised, SET, 0, NR + 2, true));
	kvt_client_close(&promised);
}

/* At its limit in memory a namespace's new blocks push out its own, down or out. */
TEST_F_TIMEOUT(limits, of_memory, 600)
{
	const struct kvt_pool *p = &self->pool;
	int i;

	ASSERT_EQ(NR_OTHER, put(&self->other, OTHER, 0, NR_OTHER, KVTIER_RESERVE_WAIT));
	ASSERT_EQ(0, limit_to(p, &self->c, DRAM, LIMIT));
	for (i = 0; i < MANY; i++) {
		ASSERT_EQ(1, put(&self->c, SET, i, 1, KVTIER_RESERVE_WAIT)) TH_LOG("block %d", i);
		ASSERT_GE(LIMIT, used(p, &self->c, DRAM)) TH_LOG("after block %d", i);
	}
	/* It is made use of. */
	EXPECT_LE(LIMIT / 2, used(p, &self->c, DRAM));
	if (variant->disk) {
		EXPECT_EQ(MANY, there(&self->c, SET, 0, MANY, true));
		EXPECT_EQ(0, evicted(p, &self->c, "evicted_quota"));
		EXPECT_LE(MANY * BLOCK_BYTES - LIMIT, used(p, &self->c, DISK));
	} else {
		EXPECT_GE(NR, there(&self->c, SET, 0, MANY, true));
		EXPECT_LE(MANY - NR, evicted(p, &self->c, "evicted_quota"));
	}
	EXPECT_GE(LIMIT, used(p, &self->c, DRAM));
	/* The others' are where they were, though there was no room left by the limit's sum. */
	EXPECT_EQ(NR_OTHER * BLOCK_BYTES, used(p, &self->other, DRAM));
	EXPECT_EQ(NR_OTHER, there(&self->other, OTHER, 0, NR_OTHER, true));
	/* Without it there is room for all. */
	ASSERT_EQ(0, kvt_ns_set(p, &self->c, "tier_limits", DRAM " max\n"));
	EXPECT_EQ(2 * NR, put(&self->c, SET, MANY, 2 * NR, KVTIER_RESERVE_WAIT));
	EXPECT_LT(LIMIT, used(p, &self->c, DRAM));
}

/* Who does not wait finds room, too: it is made before it is needed. */
TEST_F_TIMEOUT(limits, without_waiting, 300)
{
	const struct kvt_pool *p = &self->pool;
	int i;

	ASSERT_EQ(0, limit_to(p, &self->c, DRAM, LIMIT));
	for (i = 0; i < 3 * NR; i++) {
		ASSERT_TRUE(KVT_UNTIL(5000, put(&self->c, SET, i, 1, 0) == 1))
			TH_LOG("block %d", i);
		ASSERT_GE(LIMIT, used(p, &self->c, DRAM));
	}
	/* Also where one block is more than is kept free: the limit has room for two and a half. */
	ASSERT_EQ(0, limit_to(p, &self->c, DRAM, 5 * BLOCK_BYTES / 2));
	for (; i < 3 * NR + 8; i++) {
		ASSERT_TRUE(KVT_UNTIL(5000, put(&self->c, SET, i, 1, 0) == 1))
			TH_LOG("block %d", i);
		EXPECT_GE(5 * BLOCK_BYTES / 2, used(p, &self->c, DRAM));
	}
}

/* Below what is there: it goes, and does not come again. */
TEST_F_TIMEOUT(limits, lowered, 300)
{
	const struct kvt_pool *p = &self->pool;
	__u64 gone;

	ASSERT_EQ(SOME, put(&self->c, SET, 0, SOME, KVTIER_RESERVE_WAIT));
	ASSERT_EQ(NR_OTHER, put(&self->other, OTHER, 0, NR_OTHER, KVTIER_RESERVE_WAIT));
	ASSERT_LT(LIMIT, used(p, &self->c, DRAM));
	ASSERT_EQ(0, limit_to(p, &self->c, DRAM, LIMIT));
	EXPECT_TRUE(KVT_UNTIL(20000, used(p, &self->c, DRAM) <= LIMIT));
	gone = evicted(p, &self->c, "evicted_quota");
	EXPECT_TRUE(variant->disk ? !gone : gone >= SOME - NR)
		TH_LOG("%llu gone", gone);
	ASSERT_EQ(0, limit_to(p, &self->c, DRAM, 0));
	EXPECT_TRUE(KVT_UNTIL(20000, !used(p, &self->c, DRAM)));
	if (variant->disk) {
		/* All of it is down there. */
		EXPECT_TRUE(KVT_UNTIL(20000, used(p, &self->c, DISK) == SOME * BLOCK_BYTES));
		ASSERT_EQ(0, limit_to(p, &self->c, DISK, LIMIT));
		EXPECT_TRUE(KVT_UNTIL(20000, used(p, &self->c, DISK) <= LIMIT));
		ASSERT_EQ(0, limit_to(p, &self->c, DISK, 0));
		EXPECT_TRUE(KVT_UNTIL(20000, !used(p, &self->c, DISK)));
	}
	EXPECT_EQ(0, there(&self->c, SET, 0, SOME, false));
	EXPECT_EQ(NR_OTHER, there(&self->other, OTHER, 0, NR_OTHER, true));
	/* Nothing can be stored, and that is said. */
	EXPECT_EQ(1, waits_in_vain(&self->c, 0, 0, 0));
	ASSERT_EQ(0, kvt_ns_set(p, &self->c, "tier_limits", DRAM " max\n"));
	EXPECT_EQ(NR, put(&self->c, SET, 0, NR, KVTIER_RESERVE_WAIT));
}

/* Nothing of it can go, with room all around: who waits does so, and nobody is busy. */
TEST_F_TIMEOUT(limits, waiting, 300)
{
	const struct kvt_pool *p = &self->pool;
	struct kvtier_block_result res[NR];
	struct kvt_key keys[NR];
	__u64 handles[NR];
	int i, n;

	ASSERT_EQ(0, limit_to(p, &self->c, DRAM, LIMIT));
	/* Few enough to be below the watermark. */
	n = NR * 3 / 4;
	kvt_keys(keys, SET, 0, n);
	ASSERT_EQ(n, put(&self->c, SET, 0, n, KVTIER_RESERVE_WAIT));
	ASSERT_EQ(n, kvt_get(self->c.fd, 0, 0, keys, n, res, KVT_SEC));
	for (i = 0; i < n; i++)
		handles[i] = res[i].handle;
	/* A region with free slots, and free pieces: neither is for it. */
	ASSERT_EQ(0, limit_to(p, &self->c, DRAM, n * BLOCK_BYTES));
	EXPECT_EQ(1, waits_in_vain(&self->c, 0, 0, 0));
	EXPECT_EQ(n * BLOCK_BYTES, used(p, &self->c, DRAM));
	/* Below what is leased, and by less than a block. */
	ASSERT_EQ(0, limit_to(p, &self->c, DRAM, BLOCK_BYTES));
	EXPECT_EQ(1, waits_in_vain(&self->c, 0, 0, 1));
	ASSERT_EQ(0, limit_to(p, &self->c, DRAM, (n + 1) * BLOCK_BYTES - 1));
	EXPECT_EQ(1, waits_in_vain(&self->c, 0, 0, 2));
	EXPECT_EQ(n, there(&self->c, SET, 0, n, true));
	/* Others are not held up. */
	EXPECT_EQ(NR, put(&self->other, OTHER, 0, NR, 0));
	/* As soon as one can go there is room. */
	ASSERT_EQ(n, kvt_release(self->c.fd, handles, n, NULL));
	EXPECT_EQ(1, put(&self->c, SET, 100, 1, KVTIER_RESERVE_WAIT));
	EXPECT_GE((n + 1) * BLOCK_BYTES - 1, used(p, &self->c, DRAM));
}

/* An arena's free slots are no room at the limit, either. */
TEST_F_TIMEOUT(limits, arenas, 300)
{
	struct kvtier_group group = { .block_bytes = BLOCK_BYTES };
	struct kvtier_arena a = { .size = sizeof(a), .nr_slots = NR };
	const struct kvt_pool *p = &self->pool;
	struct kvtier_block_result res;
	struct kvtier_ns_open o;
	struct kvt_client c;
	struct kvt_key key;
	int i;

	kvt_ns_args(&o, "arena", &group, 1);
	o.min_bytes = 4 * LIMIT;
	ASSERT_EQ(0, kvt_client_bind(&c, kvt_open(p), &o));
	ASSERT_EQ(0, limit_to(p, &c, DRAM, LIMIT - 1));
	EXPECT_EQ(-ENOSPC, kvt_ioctl(c.fd, KVTIER_OP_ARENA, &a));
	ASSERT_EQ(0, limit_to(p, &c, DRAM, LIMIT));
	ASSERT_EQ(0, kvt_ioctl(c.fd, KVTIER_OP_ARENA, &a));
	ASSERT_EQ(0, limit_to(p, &c, DRAM, NR / 2 * BLOCK_BYTES));
	for (i = 0; i < NR / 2; i++) {
		key = kvt_key(SET, i);
		EXPECT_EQ(1, kvt_reserve(c.fd, KVTIER_RESERVE_ARENA, 0, &key, NULL, 1, &res, 0));
	}
	/* All that it may have are reservations. */
	EXPECT_EQ(1, waits_in_vain(&c, KVTIER_RESERVE_ARENA, 0, 0));
	EXPECT_EQ(1, waits_in_vain(&c, 0, 0, 1));
	EXPECT_EQ(NR / 2 * BLOCK_BYTES, used(p, &c, DRAM));
	kvt_client_close(&c);
}

/* Blocks of one group make room for another one's: the limit is the namespace's. */
TEST_F_TIMEOUT(limits, groups, 300)
{
	struct kvtier_group group[2] = {
		{ .block_bytes = BLOCK_BYTES }, { .block_bytes = 4 * BLOCK_BYTES },
	};
	const struct kvt_pool *p = &self->pool;
	struct kvtier_ns_open o;
	struct kvt_client c;
	struct kvt_key key;
	int i;

	kvt_ns_args(&o, "groups", group, 2);
	ASSERT_EQ(0, kvt_client_bind(&c, kvt_open(p), &o));
	ASSERT_EQ(0, limit_to(p, &c, DRAM, LIMIT));
	ASSERT_EQ(NR, put(&c, SET, 0, NR, KVTIER_RESERVE_WAIT));
	for (i = 0; i < NR / 2; i++) {
		key = kvt_key(OTHER, i);
		ASSERT_EQ(1, kvt_put(&c, KVTIER_RESERVE_WAIT, 1, &key, NULL, 1))
			TH_LOG("block %d", i);
		ASSERT_GE(LIMIT, used(p, &c, DRAM));
	}
	if (variant->disk)
		EXPECT_EQ(NR, there(&c, SET, 0, NR, true));
	/* And the other way round. */
	EXPECT_EQ(NR, put(&c, SET, NR, NR, KVTIER_RESERVE_WAIT));
	EXPECT_GE(LIMIT, used(p, &c, DRAM));
	/* A slot that never fits pushes nothing out. */
	ASSERT_EQ(0, limit_to(p, &c, DRAM, 0));
	ASSERT_TRUE(KVT_UNTIL(20000, !used(p, &c, DRAM)));
	ASSERT_EQ(0, limit_to(p, &c, DRAM, 4 * BLOCK_BYTES - 1));
	ASSERT_EQ(2, put(&c, SET, 2 * NR, 2, KVTIER_RESERVE_WAIT));
	EXPECT_EQ(1, waits_in_vain(&c, 0, 1, 0));
	EXPECT_EQ(2 * BLOCK_BYTES, used(p, &c, DRAM));
	kvt_client_close(&c);
}

/* --- with a disk below ------------------------------------------------------------------- */

FIXTURE(disk)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvt_client other;
	int id;
};

FIXTURE_SETUP(disk)
{
	if (!kvt_env_bdev())
		SKIP(return, "no block device to use (KVT_BDEV)");
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, DRAM_BYTES));
	self->id = kvt_tier_bdev(&self->pool, 30, DISK_BYTES);
	ASSERT_LE(0, self->id);
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "limited", BLOCK_BYTES));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->other, "other", BLOCK_BYTES));
}

FIXTURE_TEARDOWN(disk)
{
	kvt_client_close(&self->c);
	kvt_client_close(&self->other);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

/* What comes down to a block tier at its limit takes the place of its own. */
TEST_F_TIMEOUT(disk, at_its_limit, 600)
{
	const struct kvt_pool *p = &self->pool;
	int i;

	ASSERT_EQ(0, kvt_sysfs_write(p, "policy", "lru"));
	ASSERT_EQ(NR_OTHER, put(&self->other, OTHER, 0, NR_OTHER, KVTIER_RESERVE_WAIT));
	ASSERT_EQ(0, limit_to(p, &self->other, DRAM, 0));
	ASSERT_TRUE(KVT_UNTIL(20000, used(p, &self->other, DISK) == NR_OTHER * BLOCK_BYTES));
	ASSERT_EQ(0, limit_to(p, &self->c, DRAM, LIMIT));
	ASSERT_EQ(0, limit_to(p, &self->c, DISK, 2 * LIMIT));
	for (i = 0; i < 2 * MANY; i++) {
		ASSERT_EQ(1, put(&self->c, SET, i, 1, KVTIER_RESERVE_WAIT)) TH_LOG("block %d", i);
		ASSERT_GE(LIMIT, used(p, &self->c, DRAM)) TH_LOG("after block %d", i);
		ASSERT_GE(2 * LIMIT, used(p, &self->c, DISK)) TH_LOG("after block %d", i);
	}
	/* It is made use of, and what did not fit is its own loss. */
	EXPECT_LE(LIMIT, used(p, &self->c, DISK));
	EXPECT_LT(0, evicted(p, &self->c, "evicted_quota"));
	EXPECT_LE(2 * NR - NR / 4, there(&self->c, SET, 2 * MANY - 2 * NR, 2 * NR, false));
	EXPECT_GE(NR, there(&self->c, SET, 0, 2 * MANY - 4 * NR, false));
	EXPECT_EQ(0, evicted(p, &self->other, "evicted_room"));
	EXPECT_EQ(NR_OTHER * BLOCK_BYTES, used(p, &self->other, DISK));
	EXPECT_EQ(NR_OTHER, there(&self->other, OTHER, 0, NR_OTHER, false));
	/* What comes up and goes down again has copies there, which change nothing about it. */
	for (i = 0; i < 3; i++) {
		EXPECT_LT(0, there(&self->c, SET, 2 * MANY - 3 * NR, 3 * NR, true));
		EXPECT_GE(LIMIT, used(p, &self->c, DRAM));
		EXPECT_GE(2 * LIMIT, used(p, &self->c, DISK));
	}
}

/* Nothing is allowed below: then it is as if there were nothing. */
TEST_F_TIMEOUT(disk, of_nothing, 600)
{
	const struct kvt_pool *p = &self->pool;

	ASSERT_EQ(0, limit_to(p, &self->c, DISK, 0));
	ASSERT_EQ(0, limit_to(p, &self->c, DRAM, LIMIT));
	EXPECT_EQ(MANY, put(&self->c, SET, 0, MANY, KVTIER_RESERVE_WAIT));
	EXPECT_EQ(0, used(p, &self->c, DISK));
	EXPECT_LE(MANY - NR, evicted(p, &self->c, "evicted_quota"));
	/* Also where the whole tier is full of it. */
	ASSERT_EQ(0, kvt_ns_set(p, &self->c, "tier_limits", DRAM " max\n"));
	EXPECT_EQ(2 * MANY, put(&self->c, SET, MANY, 2 * MANY, KVTIER_RESERVE_WAIT));
	EXPECT_EQ(0, used(p, &self->c, DISK));
}

/*
 * What may not leave the pool goes down as far as the limit there has room, all in one batch,
 * and stays above its limit where it is.
 */
TEST_F_TIMEOUT(disk, pinned, 300)
{
	const __u64 few = 3 * BLOCK_BYTES, all = 2 * LIMIT;
	const struct kvt_pool *p = &self->pool;
	struct kvt_key keys[2 * NR];
	__u64 busy;

	kvt_keys(keys, SET, 0, 2 * NR);
	ASSERT_EQ(2 * NR, put(&self->c, SET, 0, 2 * NR, KVTIER_RESERVE_WAIT));
	ASSERT_EQ(2 * NR, kvt_advise(self->c.fd, 0, keys, 2 * NR, KVTIER_ADV_PIN, 0, NULL));
	ASSERT_EQ(0, limit_to(p, &self->c, DISK, few));
	ASSERT_EQ(0, limit_to(p, &self->c, DRAM, 0));
	EXPECT_TRUE(KVT_UNTIL(20000, used(p, &self->c, DISK) == few));
	/* Nor does it keep anybody busy. */
	busy = busy_ms();
	kvt_sleep_ms(2000);
	EXPECT_GT(1000, busy_ms() - busy);
	EXPECT_EQ(few, used(p, &self->c, DISK));
	EXPECT_EQ(all - few, used(p, &self->c, DRAM));
	EXPECT_EQ(2 * NR, there(&self->c, SET, 0, 2 * NR, false));
	EXPECT_EQ(1, waits_in_vain(&self->c, 0, 0, 0));
	EXPECT_EQ(NR, put(&self->other, OTHER, 0, NR, 0));
	/* As soon as it may leave it does. */
	ASSERT_EQ(2 * NR, kvt_advise(self->c.fd, 0, keys, 2 * NR, KVTIER_ADV_UNPIN, 0, NULL));
	EXPECT_TRUE(KVT_UNTIL(20000, !used(p, &self->c, DRAM)));
	EXPECT_GE(few, used(p, &self->c, DISK));
}

/* A chain longer than all that it may have: its end goes first, and nothing is stuck. */
TEST_F_TIMEOUT(disk, chains, 600)
{
	const struct kvt_pool *p = &self->pool;
	struct kvt_key keys[8], last = { 0 };
	int i;

	/* Another policy may let the end of a chain go as soon as it is stored. */
	ASSERT_EQ(0, kvt_sysfs_write(p, "policy", "lru"));
	ASSERT_EQ(0, limit_to(p, &self->c, DRAM, LIMIT));
	ASSERT_EQ(0, limit_to(p, &self->c, DISK, LIMIT));
	for (i = 0; i < MANY / 8; i++) {
		kvt_keys(keys, SET, i * 8, 8);
		ASSERT_EQ(8, kvt_put(&self->c, KVTIER_RESERVE_WAIT, 0, keys, NULL, 8))
			TH_LOG("chain %d", i);
	}
	EXPECT_GE(LIMIT, used(p, &self->c, DISK));
	EXPECT_GE(LIMIT, used(p, &self->c, DRAM));
	/* One single chain: what it is built on cannot go, so there is an end to it. */
	for (i = 0; i < 4 * NR; i++) {
		struct kvt_key key = kvt_key(OTHER, i);
		struct kvtier_block_result res;
		int ret = kvt_reserve(self->c.fd, KVTIER_RESERVE_WAIT, 0, &key, i ? &last : NULL,
				      1, &res, KVT_SEC);
		__u64 handle = res.handle;

		if (ret != 1)
			break;
		kvt_fill(kvt_wr(&self->c, res.offset), &key, BLOCK_BYTES);
		ASSERT_EQ(1, kvt_commit(self->c.fd, 0, &handle, 1, &res));
		last = key;
	}
	EXPECT_LE(NR / 2, i);
	EXPECT_GE(2 * NR, i);
	EXPECT_GE(LIMIT, used(p, &self->c, DISK));
	EXPECT_GE(LIMIT, used(p, &self->c, DRAM));
}

/* Blocks of A, all on the disk. */
static int settle_on_disk(const struct kvt_pool *p, const struct kvt_client *c)
{
	if (put(c, SET, 0, NR, KVTIER_RESERVE_WAIT) != NR || limit_to(p, c, DRAM, 0))
		return 0;
	return KVT_UNTIL(20000, used(p, c, DISK) == LIMIT);
}

/* More of B than there is room for, all of it younger. */
static int burst(const struct kvt_client *c, int first)
{
	int nr = (DRAM_BYTES + DISK_BYTES) * 3 / 2 / BLOCK_BYTES;

	return put(c, OTHER, first, nr, KVTIER_RESERVE_WAIT) == nr;
}

/* A burst of another tenant leaves what is guaranteed on the disk, and takes the rest. */
TEST_F_TIMEOUT(disk, minimum, 900)
{
	const struct kvt_pool *p = &self->pool;
	__u64 n, min;

	ASSERT_EQ(0, kvt_sysfs_write(p, "policy", "lru"));
	ASSERT_EQ(0, set_to(p, &self->c, "tier_mins", DISK, LIMIT));
	ASSERT_EQ(1, settle_on_disk(p, &self->c));
	ASSERT_EQ(2, line_of(p, &self->c, "tier_mins", DISK, &n, &min));
	EXPECT_EQ(LIMIT, n);
	EXPECT_EQ(LIMIT, min);
	EXPECT_EQ(1, burst(&self->other, 0));
	EXPECT_EQ(NR, there(&self->c, SET, 0, NR, false));
	EXPECT_EQ(LIMIT, used(p, &self->c, DISK));
	EXPECT_EQ(0, evicted(p, &self->c, "evicted_room"));
	/* Without it the same burst takes them: they are the oldest. */
	ASSERT_EQ(0, set_to(p, &self->c, "tier_mins", DISK, 0));
	EXPECT_EQ(0, line_of(p, &self->c, "tier_mins", DISK, &n, &min));
	EXPECT_EQ(1, burst(&self->other, 100000));
	EXPECT_GT(NR, there(&self->c, SET, 0, NR, false));
	EXPECT_LT(0, evicted(p, &self->c, "evicted_room"));
}

/* So does what was guaranteed to it of the pool when it was made. */
TEST_F_TIMEOUT(disk, guarantee, 900)
{
	struct kvtier_group group = { .block_bytes = BLOCK_BYTES };
	const struct kvt_pool *p = &self->pool;
	struct kvtier_ns_open o;
	struct kvt_client c;

	ASSERT_EQ(0, kvt_sysfs_write(p, "policy", "lru"));
	kvt_ns_args(&o, "guaranteed", &group, 1);
	o.min_bytes = LIMIT;
	ASSERT_EQ(0, kvt_client_bind(&c, kvt_open(p), &o));
	ASSERT_EQ(1, settle_on_disk(p, &c));
	/* Another one without comes first, and goes. */
	ASSERT_EQ(1, settle_on_disk(p, &self->c));
	EXPECT_EQ(1, burst(&self->other, 0));
	EXPECT_EQ(NR, there(&c, SET, 0, NR, false));
	EXPECT_GT(NR, there(&self->c, SET, 0, NR, false));
	kvt_client_close(&c);
}

/* And what is within its part, by weight: beyond that its blocks go, as the oldest. */
TEST_F_TIMEOUT(disk, weight, 900)
{
	const struct kvt_pool *p = &self->pool;

	ASSERT_EQ(0, kvt_sysfs_write(p, "policy", "lru"));
	ASSERT_EQ(0, kvt_ns_set(p, &self->c, "weight", "10000"));
	ASSERT_EQ(1, settle_on_disk(p, &self->c));
	EXPECT_EQ(1, burst(&self->other, 0));
	EXPECT_EQ(NR, there(&self->c, SET, 0, NR, false));
	/* 3 in 103 of three quarters of the disk: one MiB of the two that it has. */
	ASSERT_EQ(0, kvt_ns_set(p, &self->c, "weight", "3"));
	EXPECT_EQ(1, burst(&self->other, 100000));
	EXPECT_LT(LIMIT / 4, used(p, &self->c, DISK));
	EXPECT_GT(LIMIT * 3 / 4, used(p, &self->c, DISK));
	ASSERT_EQ(0, kvt_ns_set(p, &self->c, "weight", "0"));
	EXPECT_EQ(1, burst(&self->other, 200000));
	EXPECT_GT(LIMIT / 4, used(p, &self->c, DISK));
}

/* Who comes late, to a disk full of what is worth more, gets what is promised to him as well. */
TEST_F_TIMEOUT(disk, late, 900)
{
	const struct kvt_pool *p = &self->pool;
	struct kvt_key keys[NR];
	int kept[3], i;

	ASSERT_EQ(1, burst(&self->other, 0));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, set_to(p, &self->c, "tier_mins", DISK, i == 1 ? LIMIT : 0));
		ASSERT_EQ(0, kvt_ns_set(p, &self->c, "weight", i == 2 ? "10000" : "0"));
		ASSERT_EQ(NR, put(&self->c, SET, i * NR, NR, KVTIER_RESERVE_WAIT));
		kvt_keys(keys, SET, i * NR, NR);
		ASSERT_EQ(NR, kvt_advise(self->c.fd, 0, keys, NR, KVTIER_ADV_COLD, 0, NULL));
		ASSERT_EQ(0, limit_to(p, &self->c, DRAM, 0));
		EXPECT_TRUE(KVT_UNTIL(20000, !used(p, &self->c, DRAM)));
		EXPECT_EQ(1, burst(&self->other, (i + 1) * 100000));
		kept[i] = there(&self->c, SET, i * NR, NR, false);
		ASSERT_EQ(0, limit_to(p, &self->c, DISK, 0));
		EXPECT_TRUE(KVT_UNTIL(20000, !used(p, &self->c, DISK)));
		ASSERT_EQ(0, kvt_ns_set(p, &self->c, "tier_limits", DRAM " max\n"));
		ASSERT_EQ(0, kvt_ns_set(p, &self->c, "tier_limits", DISK " max\n"));
	}
	EXPECT_GT(NR / 2, kept[0]);
	EXPECT_EQ(NR, kept[1]);
	EXPECT_EQ(NR, kept[2]);
}

/* All that can be promised is: the other one still gets its blocks stored and read. */
TEST_F_TIMEOUT(disk, all_promised, 900)
{
	const struct kvt_pool *p = &self->pool;
	__u64 bytes = DISK_BYTES;
	int nr;

	while (set_to(p, &self->c, "tier_mins", DISK, bytes))
		bytes -= BLOCK_BYTES;
	ASSERT_LE(DISK_BYTES / 2, bytes);
	EXPECT_EQ(-ENOSPC, set_to(p, &self->other, "tier_mins", DISK, BLOCK_BYTES));
	ASSERT_EQ(0, limit_to(p, &self->c, DRAM, 4 * LIMIT));
	nr = bytes / BLOCK_BYTES;
	EXPECT_EQ(nr, put(&self->c, SET, 0, nr, KVTIER_RESERVE_WAIT));
	ASSERT_EQ(0, limit_to(p, &self->c, DRAM, 0));
	EXPECT_TRUE(KVT_UNTIL(20000, !used(p, &self->c, DRAM)));
	nr = there(&self->c, SET, 0, nr, false);
	EXPECT_LT(bytes * 3 / 4 / BLOCK_BYTES, nr);
	EXPECT_EQ(1, burst(&self->other, 0));
	EXPECT_EQ(nr, there(&self->c, SET, 0, bytes / BLOCK_BYTES, false));
	EXPECT_LT(NR, there(&self->other, OTHER, 0, 2000, true));
	/* Its own need is another matter. */
	ASSERT_EQ(0, kvt_ns_set(p, &self->c, "tier_limits", DRAM " max\n"));
	EXPECT_EQ(2 * MANY, put(&self->c, SET, 100000, 2 * MANY, KVTIER_RESERVE_WAIT));
}

/* A tier that goes takes its limits along; the next one by that name has none. */
TEST_F_TIMEOUT(disk, tier_gone, 300)
{
	const struct kvt_pool *p = &self->pool;
	__u64 n, limit;

	ASSERT_EQ(NR, put(&self->c, SET, 0, NR, KVTIER_RESERVE_WAIT));
	ASSERT_EQ(0, limit_to(p, &self->c, DISK, LIMIT));
	ASSERT_EQ(0, set_to(p, &self->c, "tier_mins", DISK, LIMIT));
	ASSERT_EQ(0, limit_to(p, &self->c, DRAM, LIMIT / 2));
	EXPECT_EQ(2, line_of(p, &self->c, "tier_limits", DISK, &n, &limit));
	EXPECT_EQ(LIMIT, limit);
	ASSERT_EQ(0, kvt_tier_detach(p, self->id, 0, 20 * KVT_SEC));
	EXPECT_EQ(0, line_of(p, &self->c, "tier_limits", DISK, &n, &limit));
	EXPECT_EQ(-ENOENT, limit_to(p, &self->c, DISK, LIMIT));
	self->id = kvt_tier_bdev(p, 30, DISK_BYTES);
	ASSERT_LE(0, self->id);
	EXPECT_EQ(0, line_of(p, &self->c, "tier_limits", DISK, &n, &limit));
	EXPECT_EQ(0, line_of(p, &self->c, "tier_mins", DISK, &n, &limit));
	EXPECT_EQ(2, line_of(p, &self->c, "tier_limits", DRAM, &n, &limit));
	EXPECT_EQ(LIMIT / 2, limit);
	/* What the other limit has sent down since, and nothing of what was on the tier before. */
	EXPECT_TRUE(KVT_UNTIL(10000, all_used(p, &self->c) ==
			      used(p, &self->c, DRAM) + used(p, &self->c, DISK)))
		TH_LOG("%llu of %llu", used(p, &self->c, DISK), all_used(p, &self->c));
	EXPECT_EQ(MANY, put(&self->c, SET, 1000, MANY, KVTIER_RESERVE_WAIT));
	EXPECT_GE(LIMIT / 2, used(p, &self->c, DRAM));
	EXPECT_LT(LIMIT, used(p, &self->c, DISK));
}

/* What left a tier is put down to it, and not to the next one by its number. */
TEST_F_TIMEOUT(disk, causes_gone, 120)
{
	const struct kvt_pool *p = &self->pool;

	ASSERT_EQ(NR, put(&self->c, SET, 0, NR, KVTIER_RESERVE_WAIT));
	ASSERT_EQ(0, limit_to(p, &self->c, DRAM, 0));
	ASSERT_TRUE(KVT_UNTIL(20000, !used(p, &self->c, DRAM)));
	ASSERT_EQ(0, kvt_tier_detach(p, self->id, KVTIER_DETACH_DISCARD, 20 * KVT_SEC));
	EXPECT_EQ(NR, evicted(p, &self->c, "evicted_detach"));
	self->id = kvt_tier_bdev(p, 30, DISK_BYTES);
	ASSERT_LE(0, self->id);
	EXPECT_EQ(0, evicted(p, &self->c, "evicted_detach"));
}

/* --- many at once --------------------------------------------------------------------------- */

#define CLIENTS		6

struct worker {
	const struct kvt_pool *pool;
	int nr;
};

/* Stores and reads, never waiting for ever, until it is told to stop. */
static int worker(struct kvt_child *me, void *arg)
{
	struct worker *w = arg;
	struct kvt_client c;
	char name[32];
	int i, ret, stored = 0;

	snprintf(name, sizeof(name), "tenant%d", w->nr / 2);
	KVT_CHILD_CHECK(!kvt_client_open(w->pool, &c, name, BLOCK_BYTES));
	KVT_CHILD_CHECK(!kvt_say(me, (int)c.ns_id));
	for (i = 0; kvt_hear(me, 0) == -ETIMEDOUT; i++) {
		struct kvt_key key = kvt_key(SET + 10 * w->nr, i % 400);

		ret = kvt_put(&c, i % 3 ? KVTIER_RESERVE_WAIT : 0, 0, &key, NULL, 1);
		KVT_CHILD_CHECK(ret == 0 || ret == 1);
		stored += ret == 1;
		key = kvt_key(SET + 10 * w->nr, (i * 7) % 400);
		ret = kvt_check(&c, 0, &key, 1, KVT_SEC);
		KVT_CHILD_CHECK(ret != -EBADMSG);
	}
	KVT_CHILD_CHECK(stored > 10);
	kvt_client_close(&c);
	return 0;
}

TEST_F_TIMEOUT(disk, at_once, 600)
{
	static const __u64 limits[] = { 4 * LIMIT, LIMIT, 2 * LIMIT, LIMIT / 4 };
	const struct kvt_pool *p = &self->pool;
	int rounds = kvt_env_many(40, 600), i, k;
	struct kvt_child child[CLIENTS];
	struct worker w[CLIENTS];
	struct kvt_client ns[CLIENTS];

	for (i = 0; i < CLIENTS; i++) {
		w[i] = (struct worker){ .pool = p, .nr = i };
		ASSERT_EQ(0, kvt_spawn(&child[i], worker, &w[i]));
		ns[i].ns_id = kvt_hear(&child[i], 20000);
		ASSERT_LT(0, (int)ns[i].ns_id);
	}
	for (k = 0; k < rounds; k++) {
		for (i = 0; i < CLIENTS; i += 2) {
			ASSERT_EQ(0, limit_to(p, &ns[i], DRAM, limits[(k + i) % 4]));
			ASSERT_EQ(0, limit_to(p, &ns[i], DISK, limits[(k / 3 + i) % 4] * 2));
		}
		if (k % 5 == 4)
			ASSERT_EQ(0, kvt_ns_set(p, &ns[k % CLIENTS], "tier_limits", DRAM " max\n"));
		kvt_sleep_ms(50);
	}
	for (i = 0; i < CLIENTS; i += 2) {
		ASSERT_EQ(0, limit_to(p, &ns[i], DRAM, LIMIT));
		ASSERT_EQ(0, limit_to(p, &ns[i], DISK, LIMIT));
	}
	/* Down to it while they go on, and never above again. */
	for (i = 0; i < CLIENTS; i += 2)
		EXPECT_TRUE(KVT_UNTIL(20000, used(p, &ns[i], DRAM) <= LIMIT &&
				      used(p, &ns[i], DISK) <= LIMIT));
	for (k = 0; k < 50; k++) {
		for (i = 0; i < CLIENTS; i += 2) {
			ASSERT_GE(LIMIT, used(p, &ns[i], DRAM));
			ASSERT_GE(LIMIT, used(p, &ns[i], DISK));
		}
		kvt_sleep_ms(10);
	}
	for (i = 0; i < CLIENTS; i++)
		kvt_say(&child[i], 1);
	for (i = 0; i < CLIENTS; i++)
		EXPECT_EQ(0, kvt_join(&child[i], 20000));
}

/* --- what may be written ---------------------------------------------------------------------- */

TEST_F_TIMEOUT(disk, values, 300)
{
	static const char *const bad[] = {
		"\n", " \t\n", DRAM "\n", DRAM " \t\n", "4096\n", DRAM " much\n", DRAM " -1\n",
		DRAM " 4096 4096x\n", DRAM " 18446744073709551616\n", DRAM " 4k\n", DRAM " Max\n",
		DRAM " maximum\n", DRAM "\t4096\n", " 4096\n", DRAM " 1e3\n",
	};
	static const char *const unknown[] = {
		"dram 4096\n", "dram00 4096\n", "DRAM0 4096\n", "tier 4096\n", "/ 4096\n",
		"0 4096\n", "dram0 4096 4096\n", "dram0\ndram0 4096\n", "%s%s%n 4096\n",
	};
	static const char *const good[] = {
		DRAM " 4096", DRAM " 4096\n", "  " DRAM "   4096 \t\n", DRAM " 0x1000\n",
		DRAM " 010000\n",
	};
	const struct kvt_pool *p = &self->pool;
	char *page = malloc(4000), path[128];
	__u64 n, limit;
	size_t i;

	for (i = 0; i < KVT_ARRAY(bad); i++) {
		int err = kvt_ns_set(p, &self->c, "tier_limits", bad[i]);

		EXPECT_TRUE(err == -EINVAL || err == -ERANGE || err == -ENOENT)
			TH_LOG("'%s': %d", bad[i], err);
	}
	for (i = 0; i < KVT_ARRAY(unknown); i++)
		EXPECT_EQ(-ENOENT, kvt_ns_set(p, &self->c, "tier_limits", unknown[i]))
			TH_LOG("value %zu", i);
	EXPECT_EQ(0, line_of(p, &self->c, "tier_limits", DRAM, &n, &limit));
	for (i = 0; i < KVT_ARRAY(good); i++) {
		ASSERT_EQ(0, kvt_ns_set(p, &self->c, "tier_limits", DRAM " max\n"));
		EXPECT_EQ(0, kvt_ns_set(p, &self->c, "tier_limits", good[i])) TH_LOG("'%s'", good[i]);
		EXPECT_EQ(2, line_of(p, &self->c, "tier_limits", DRAM, &n, &limit));
		EXPECT_EQ(4096, limit);
	}
	/* The largest numbers there are. */
	EXPECT_EQ(0, kvt_ns_set(p, &self->c, "tier_limits", DRAM " 18446744073709551614\n"));
	EXPECT_EQ(NR, put(&self->c, SET, 0, NR, 0));
	EXPECT_EQ(0, kvt_ns_set(p, &self->c, "tier_limits", DRAM " 18446744073709551615\n"));
	EXPECT_EQ(0, line_of(p, &self->c, "tier_limits", DRAM, &n, &limit));
	memset(page, 'x', 3999);
	page[3999] = 0;
	EXPECT_EQ(-EINVAL, kvt_ns_set(p, &self->c, "tier_limits", page));
	free(page);
	/* Minima: of block tiers, and no more than can be. */
	EXPECT_EQ(-EINVAL, set_to(p, &self->c, "tier_mins", DRAM, 4096));
	EXPECT_EQ(-EINVAL, kvt_ns_set(p, &self->c, "tier_mins", DISK " max\n"));
	EXPECT_EQ(-ENOSPC, set_to(p, &self->c, "tier_mins", DISK, DISK_BYTES));
	EXPECT_EQ(-ENOSPC, set_to(p, &self->c, "tier_mins", DISK, ~0ull));
	EXPECT_EQ(0, set_to(p, &self->c, "tier_mins", DISK, DISK_BYTES / 2));
	EXPECT_EQ(-ENOSPC, set_to(p, &self->other, "tier_mins", DISK, DISK_BYTES / 2));
	EXPECT_EQ(-ENOSPC, set_to(p, &self->c, "tier_mins", DISK, ~0ull));
	/* It is given back by who sets less, and by who goes. */
	EXPECT_EQ(0, set_to(p, &self->c, "tier_mins", DISK, 4096));
	EXPECT_EQ(0, set_to(p, &self->other, "tier_mins", DISK, DISK_BYTES / 2));
	kvt_client_close(&self->other);
	EXPECT_TRUE(KVT_UNTIL(10000, !set_to(p, &self->c, "tier_mins", DISK, DISK_BYTES / 2)));
	/* Nobody but root looks or writes. */
	snprintf(path, sizeof(path), "/sys/class/kvtier/kvtier%u/namespaces/%llu/tier_limits",
		 p->id, self->c.ns_id);
	EXPECT_EQ(0, access(path, R_OK | W_OK));
	ASSERT_EQ(0, kvt_become(1000));
	EXPECT_EQ(-1, open(path, O_RDONLY));
	EXPECT_EQ(-1, open(path, O_WRONLY));
	ASSERT_EQ(0, kvt_become(0));
}

TEST_HARNESS_MAIN
