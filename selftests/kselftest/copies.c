// SPDX-License-Identifier: GPL-2.0
/*
 * Clean copies: what comes up from a disk stays there as well. It goes down again for
 * nothing, is found after a crash, goes when it is dropped, and is in nobody's way.
 */
#include "kvt_test.h"
#include "kvt_medium.h"

#define BLOCK_BYTES	(64 * KVT_KIB)
#define CHAIN		8
#define CHAINS		12
#define BLOCKS		(CHAINS * CHAIN)
#define MORE		24
#define SET		57
#define DISK_BYTES	(24 * KVT_MIB)
#define DRAM_BYTES	(8 * KVT_MIB)
#define STAY		((int)(DRAM_BYTES / BLOCK_BYTES / 5 + 2))

FIXTURE(copies)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvt_medium m;
	struct kvt_disk disk[2];
	int dram;
	int bdev;
};

static int open_client(FIXTURE_DATA(copies) *self)
{
	self->dram = kvt_tier_dram(&self->pool, 0, DRAM_BYTES);
	return self->dram < 0 ? self->dram :
	       kvt_client_open(&self->pool, &self->c, "copies", BLOCK_BYTES);
}

static int put_chains(const struct kvt_client *c, int first, int nr)
{
	struct kvt_key keys[CHAIN];
	int i, ret, sum = 0;

	for (i = first; i < first + nr; i++) {
		kvt_keys(keys, SET, i * CHAIN, CHAIN);
		ret = kvt_put(c, KVTIER_RESERVE_WAIT, 0, keys, NULL, CHAIN);
		if (ret < 0)
			return ret;
		sum += ret;
	}
	return sum;
}

/* Blocks of these chains that are there; every one must be right. */
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

static int send_down(FIXTURE_DATA(copies) *self)
{
	return kvt_tier_detach(&self->pool, self->dram, 0, 60 * KVT_SEC);
}

static int bring_up(FIXTURE_DATA(copies) *self)
{
	self->dram = kvt_tier_dram(&self->pool, 0, DRAM_BYTES);
	return self->dram < 0 ? self->dram : check_chains(&self->c, 0, CHAINS);
}

static long long on_disk(const FIXTURE_DATA(copies) *self, const char *what)
{
	char name[64], buf[32];

	snprintf(name, sizeof(name), "tiers/bdev30/%s", what);
	return kvt_sysfs_read(&self->pool, name, buf, sizeof(buf)) < 0 ? -1 :
	       strtoll(buf, NULL, 10);
}

/* Blocks in memory that are durable. */
static int durable_above(const FIXTURE_DATA(copies) *self)
{
	struct kvtier_entry *e = NULL;
	int nr = kvt_iterate_all(self->c.fd, 256, &e), i, n = 0;

	for (i = 0; i < nr; i++)
		n += (int)e[i].tier == self->dram && (e[i].flags & KVTIER_ENTRY_DURABLE);
	free(e);
	return nr < 0 ? nr : n;
}

/*
 * Copies give way in the background, while they are counted: what the disk says must be
 * what the blocks say once it is the same before and after.
 */
static int copies_settled(const FIXTURE_DATA(copies) *self)
{
	long long before, after;
	int tries, nr = -1;

	for (tries = 0; tries < 200; tries++) {
		before = on_disk(self, "copy_bytes");
		nr = durable_above(self);
		after = on_disk(self, "copy_bytes");
		if (before == after && after == nr * (long long)BLOCK_BYTES)
			return nr;
		kvt_sleep_ms(50);
	}
	fprintf(stderr, "# %lld bytes of copies, then %lld, %d blocks have one\n", before, after,
		nr);
	return -1;
}

/* All blocks are in memory, and on the disk. */
FIXTURE_SETUP(copies)
{
	char name[] = "copy0";
	int i;

	self->c.fd = -1;
	for (i = 0; i < 2; i++, name[4]++)
		ASSERT_EQ(0, kvt_disk_make(&self->disk[i], name, DISK_BYTES));
	ASSERT_EQ(0, kvt_setup(&self->pool));
	self->bdev = kvt_tier_disk(&self->pool, 30, &self->disk[0]);
	ASSERT_LE(0, self->bdev);
	/* Nothing is to go in the background but for want of room. */
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "watermark_high_percent", "100"));
	ASSERT_EQ(0, open_client(self));
	ASSERT_EQ(BLOCKS, put_chains(&self->c, 0, CHAINS));
	ASSERT_EQ(0, send_down(self));
	ASSERT_EQ(0, fsync(self->c.fd));
	ASSERT_EQ(BLOCKS, on_disk(self, "blocks"));
	ASSERT_EQ(0, on_disk(self, "copy_bytes"));
	ASSERT_EQ(BLOCKS * BLOCK_BYTES, on_disk(self, "demoted_bytes"));
	ASSERT_EQ(0, on_disk(self, "clean_demotions"));
	ASSERT_EQ(BLOCKS, bring_up(self));
	ASSERT_EQ(0, on_disk(self, "blocks"));
	ASSERT_EQ(0, on_disk(self, "used_bytes"));
	ASSERT_EQ(BLOCKS * BLOCK_BYTES, on_disk(self, "copy_bytes"));
	ASSERT_EQ(BLOCKS, durable_above(self));
}

FIXTURE_TEARDOWN(copies)
{
	int i;

	kvt_medium_free(&self->m);
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	for (i = 0; i < 2; i++)
		kvt_disk_remove(&self->disk[i]);
}

TEST_F_TIMEOUT(copies, nothing_is_written, 300)
{
	long long payload, beside;
	struct kvtier_stat st;
	int round;

	ASSERT_EQ(2, kvt_settled(&self->pool, &st, NULL));
	payload = on_disk(self, "write_bytes");
	beside = on_disk(self, "log_bytes");
	for (round = 1; round <= 2; round++) {
		ASSERT_EQ(0, send_down(self));
		EXPECT_EQ(payload, on_disk(self, "write_bytes"));
		EXPECT_EQ(beside, on_disk(self, "log_bytes"));
		EXPECT_EQ(BLOCKS * BLOCK_BYTES, on_disk(self, "demoted_bytes"));
		EXPECT_EQ(round * BLOCKS, on_disk(self, "clean_demotions"));
		EXPECT_EQ((round + 1) * BLOCKS, on_disk(self, "demotions_in"));
		EXPECT_EQ(0, on_disk(self, "copy_bytes"));
		EXPECT_EQ(BLOCKS * BLOCK_BYTES, on_disk(self, "used_bytes"));
		EXPECT_EQ(BLOCKS, on_disk(self, "blocks"));
		ASSERT_EQ(BLOCKS, bring_up(self));
	}
	EXPECT_EQ(0, on_disk(self, "evictions"));
}

/* Up to what is allowed; what has none is written once more. */
TEST_F_TIMEOUT(copies, are_limited, 300)
{
	long long all, had, demoted;
	int percent;
	char buf[8];

	all = on_disk(self, "capacity_bytes");
	for (percent = 10; percent >= 0; percent -= 10) {
		snprintf(buf, sizeof(buf), "%d", percent);
		ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "copies_percent", buf));
		had = on_disk(self, "copy_bytes");
		demoted = on_disk(self, "demoted_bytes");
		ASSERT_EQ(0, send_down(self));
		/* Those that were there served until now. */
		EXPECT_EQ(BLOCKS * BLOCK_BYTES - had, on_disk(self, "demoted_bytes") - demoted);
		ASSERT_EQ(BLOCKS, bring_up(self));
		EXPECT_GE(all * percent / 100, on_disk(self, "copy_bytes"));
		/* Three segments of the disk are its cleaner's, and do not count. */
		EXPECT_LE(all * percent / 200, on_disk(self, "copy_bytes"));
	}
	EXPECT_EQ(0, on_disk(self, "evictions"));
}

/* Of however many there are room for, whichever the policy, also if they are much of the disk. */
TEST_F_TIMEOUT(copies, all_are_kept, 300)
{
	static const char *const policies[] = { "lru", "reuse" };
	size_t i;

	ASSERT_GT(BLOCKS * BLOCK_BYTES, on_disk(self, "capacity_bytes") / 4);
	for (i = 0; i < KVT_ARRAY(policies); i++) {
		ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "policy", policies[i]));
		ASSERT_EQ(0, send_down(self));
		ASSERT_EQ(BLOCKS, bring_up(self));
		EXPECT_EQ(BLOCKS * BLOCK_BYTES, on_disk(self, "copy_bytes")) TH_LOG("%s", policies[i]);
		EXPECT_EQ((int)(i + 1) * BLOCKS, on_disk(self, "clean_demotions"));
	}
	EXPECT_EQ(0, on_disk(self, "evictions"));
	EXPECT_EQ(BLOCKS, check_chains(&self->c, 0, CHAINS));
}

/* What was brought up, and goes again before anybody has read it, is counted. */
TEST_F_TIMEOUT(copies, unread, 300)
{
	static const char unread[] = "tiers/dram0/promotions_unread";
	struct kvt_key keys[CHAIN];
	char buf[32];
	int i;

	ASSERT_EQ(0, send_down(self));
	self->dram = kvt_tier_dram(&self->pool, 0, DRAM_BYTES);
	ASSERT_LE(0, self->dram);
	for (i = 0; i < CHAINS; i++) {
		kvt_keys(keys, SET, i * CHAIN, CHAIN);
		ASSERT_EQ(CHAIN, kvt_prefetch(self->c.fd, 0, 0, keys, CHAIN, 0, -1));
	}
	ASSERT_TRUE(KVT_UNTIL(60000, !on_disk(self, "blocks")));
	/* One chain is read. */
	ASSERT_EQ(CHAIN, check_chains(&self->c, 0, 1));
	ASSERT_LT(0, kvt_sysfs_read(&self->pool, unread, buf, sizeof(buf)));
	EXPECT_EQ(0, atoi(buf));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "watermark_low_percent", "20"));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "watermark_high_percent", "40"));
	/* All but a fifth of what memory has room for, whichever; the disk has room for all. */
	ASSERT_TRUE(KVT_UNTIL(60000, on_disk(self, "blocks") >= BLOCKS - STAY));
	ASSERT_LT(0, kvt_sysfs_read(&self->pool, unread, buf, sizeof(buf)));
	EXPECT_LE(BLOCKS - CHAIN - STAY, atoi(buf));
	EXPECT_GE(BLOCKS - CHAIN, atoi(buf));
}

static int assemble(FIXTURE_DATA(copies) *self, int disk, struct kvtier_pool_assemble *a)
{
	static struct kvtier_assemble_device dev;

	memset(&dev, 0, sizeof(dev));
	memcpy(dev.path, self->disk[disk].dev, sizeof(self->disk[disk].dev));
	*a = (struct kvtier_pool_assemble) {
		.size = sizeof(*a),
		.pool_id = KVTIER_POOL_ANY_ID,
		.nr_devices = 1,
		.devices = KVT_U64(&dev),
	};
	kvt_client_close(&self->c);
	return kvt_pool_destroy(self->pool.ctl, self->pool.id) ?: kvt_pool_assemble(&self->pool, a);
}

/* A copy of the disk is what a crash leaves. */
TEST_F_TIMEOUT(copies, dropped_from_both, 300)
{
	struct kvtier_pool_assemble a;
	struct kvt_key keys[CHAIN];
	int i, k, there = 0, back = 0;

	for (i = 0; i < CHAINS; i += 2) {
		kvt_keys(keys, SET, i * CHAIN, CHAIN);
		ASSERT_EQ(CHAIN, kvt_drop(self->c.fd, 0, keys, CHAIN, NULL));
	}
	ASSERT_EQ(BLOCKS / 2 * BLOCK_BYTES, on_disk(self, "copy_bytes"));
	ASSERT_EQ(BLOCKS / 2, durable_above(self));
	ASSERT_EQ(0, kvt_disk_copy(&self->disk[1], &self->disk[0]));
	ASSERT_EQ(0, kvt_medium_read(self->disk[1].dev, &self->m));
	for (i = 0; i < CHAINS; i++) {
		kvt_keys(keys, SET, i * CHAIN, CHAIN);
		for (k = 0; k < CHAIN; k++)
			*(i % 2 ? &there : &back) += kvt_medium_find(&self->m, &keys[k]) != NULL;
	}
	EXPECT_EQ(BLOCKS / 2, there);
	EXPECT_EQ(0, back);
	ASSERT_EQ(0, assemble(self, 1, &a));
	EXPECT_EQ(BLOCKS / 2, a.nr_blocks);
	ASSERT_EQ(0, open_client(self));
	for (i = 0; i < CHAINS; i++)
		EXPECT_EQ(i % 2 ? CHAIN : 0, check_chains(&self->c, i, 1)) TH_LOG("chain %d", i);
}

/* Memory is lost at the end of a pool, copies are not. */
TEST_F_TIMEOUT(copies, outlive_the_pool, 300)
{
	struct kvtier_pool_assemble a;

	ASSERT_EQ(0, assemble(self, 0, &a));
	EXPECT_EQ(BLOCKS, a.nr_blocks);
	EXPECT_EQ(0, a.nr_unsealed);
	ASSERT_EQ(0, open_client(self));
	EXPECT_EQ(BLOCKS, check_chains(&self->c, 0, CHAINS));
}

/* Half of memory cannot go, and its copies are in the way of others. */
TEST_F_TIMEOUT(copies, go_first, 300)
{
	static struct kvtier_block_result res[BLOCKS];
	static struct kvt_key keys[BLOCKS];
	struct kvtier_stat st;
	__u64 handle[BLOCKS];
	int i, left;

	/* Writes everything, worth it or not: the disk is well used in the end. */
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "policy", "lru"));
	kvt_keys(keys, SET, 0, BLOCKS);
	for (i = 0; i < BLOCKS; i++) {
		ASSERT_EQ(1, kvt_get(self->c.fd, 0, 0, &keys[i], 1, &res[i], 0));
		handle[i] = res[i].handle;
	}
	ASSERT_EQ(MORE * CHAIN, put_chains(&self->c, CHAINS, MORE));
	left = copies_settled(self);
	EXPECT_LE(0, left);
	EXPECT_GT(BLOCKS, left);
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(0, st.evictions);
	EXPECT_EQ(BLOCKS + MORE * CHAIN, st.nr_blocks);
	EXPECT_EQ(BLOCKS, kvt_release(self->c.fd, handle, BLOCKS, NULL));
	EXPECT_EQ(BLOCKS + MORE * CHAIN, check_chains(&self->c, 0, CHAINS + MORE))
		TH_LOG("left the disk: %lld for room, %lld by errors", on_disk(self, "evicted_room"),
		       on_disk(self, "evicted_io"));
	/* What has no copy any more is written when it goes down. */
	EXPECT_EQ(BLOCKS + MORE * CHAIN, check_chains(&self->c, 0, CHAINS + MORE));
}

/* A record that tells of another time to live is not good enough. */
TEST_F_TIMEOUT(copies, time_to_live, 300)
{
	long long payload = on_disk(self, "write_bytes");
	struct kvt_key keys[2 * CHAIN];

	kvt_keys(keys, SET, 0, 2 * CHAIN);
	ASSERT_EQ(CHAIN, kvt_advise(self->c.fd, 0, keys, CHAIN, KVTIER_ADV_TTL, 3600 * KVT_SEC,
				    NULL));
	EXPECT_EQ(BLOCKS - CHAIN, durable_above(self));
	EXPECT_EQ((BLOCKS - CHAIN) * BLOCK_BYTES, on_disk(self, "copy_bytes"));
	ASSERT_EQ(0, send_down(self));
	EXPECT_EQ(payload + CHAIN * BLOCK_BYTES, on_disk(self, "write_bytes"));
	/* Where it is now that changes nothing, but it has no copy when it comes up. */
	ASSERT_EQ(CHAIN, kvt_advise(self->c.fd, 0, keys + CHAIN, CHAIN, KVTIER_ADV_TTL, 0, NULL));
	EXPECT_EQ(BLOCKS, on_disk(self, "blocks"));
	ASSERT_EQ(BLOCKS, bring_up(self));
	EXPECT_EQ((BLOCKS - CHAIN) * BLOCK_BYTES, on_disk(self, "copy_bytes"));
	EXPECT_EQ(BLOCKS - CHAIN, durable_above(self));
	/* Written anew it has. */
	ASSERT_EQ(0, send_down(self));
	EXPECT_EQ(payload + 2 * CHAIN * BLOCK_BYTES, on_disk(self, "write_bytes"));
	ASSERT_EQ(BLOCKS, bring_up(self));
	EXPECT_EQ(BLOCKS * BLOCK_BYTES, on_disk(self, "copy_bytes"));
}

TEST_F_TIMEOUT(copies, disk_leaves, 300)
{
	ASSERT_EQ(0, kvt_tier_detach(&self->pool, self->bdev, 0, 10 * KVT_SEC));
	EXPECT_EQ(0, durable_above(self));
	EXPECT_EQ(BLOCKS, check_chains(&self->c, 0, CHAINS));
	/* And another comes: all of it is written there. */
	self->bdev = kvt_tier_disk(&self->pool, 30, &self->disk[1]);
	ASSERT_LE(0, self->bdev);
	ASSERT_EQ(0, send_down(self));
	EXPECT_EQ(BLOCKS * BLOCK_BYTES, on_disk(self, "demoted_bytes"));
	EXPECT_EQ(0, on_disk(self, "clean_demotions"));
	EXPECT_EQ(BLOCKS, bring_up(self));
}

static int corrupt(const struct kvt_disk *disk, const struct kvt_medium *m, int i)
{
	char *page = aligned_alloc(4096, 4096);
	struct kvt_key key = kvt_key(SET, i);
	const struct kvt_medium_block *b = kvt_medium_find(m, &key);
	int err = b && b->good ? kvt_disk_io(disk, b->byte, page, 4096, false) : -ENOENT;

	page[100] ^= 4;
	if (!err)
		err = kvt_disk_io(disk, b->byte, page, 4096, true);
	free(page);
	return err;
}

static bool scrub_is_over(const struct kvt_pool *p)
{
	char state[32];

	return kvt_sysfs_read(p, "scrub_state", state, sizeof(state)) > 0 &&
	       !strncmp(state, "done", 4);
}

/* A copy that the scrub finds bad is none: the block is written when it goes down. */
TEST_F_TIMEOUT(copies, found_bad, 300)
{
	struct kvtier_pool_scrub s = { .size = sizeof(s), .pool_id = self->pool.id };
	long long payload = on_disk(self, "write_bytes");

	ASSERT_EQ(0, kvt_medium_read(self->disk[0].dev, &self->m));
	ASSERT_EQ(0, corrupt(&self->disk[0], &self->m, 3));
	ASSERT_EQ(0, corrupt(&self->disk[0], &self->m, CHAIN + 1));
	ASSERT_EQ(0, kvt_ioctl(self->pool.ctl, KVTIER_OP_POOL_SCRUB, &s));
	ASSERT_TRUE(KVT_UNTIL(60000, scrub_is_over(&self->pool)));
	EXPECT_EQ(2, on_disk(self, "checksum_errors"));
	EXPECT_EQ((BLOCKS - 2) * BLOCK_BYTES, on_disk(self, "copy_bytes"));
	EXPECT_EQ(BLOCKS, check_chains(&self->c, 0, CHAINS));
	ASSERT_EQ(0, send_down(self));
	EXPECT_EQ(payload + 2 * BLOCK_BYTES, on_disk(self, "write_bytes"));
	EXPECT_EQ(BLOCKS, bring_up(self));
}

/* --- more dead ones than can be written down ----------------------------------------- */

#define SMALL_BYTES	(4 * KVT_KIB)
#define SMALL_SET	58
#define SMALL_CALL	256
#define DROP_CALL	2048
#define DROPPERS	6

static int drop_some(struct kvt_child *me, void *arg)
{
	struct kvt_key keys[DROP_CALL];
	const struct kvt_client *c = arg;
	int first = kvt_hear(me, 10000);

	if (first < 0)
		return 1;
	kvt_keys(keys, SMALL_SET, first, DROP_CALL);
	return kvt_drop(c->fd, 0, keys, DROP_CALL, NULL) == DROP_CALL ? 0 : 2;
}

static long long tier_value(const struct kvt_pool *p, const char *name)
{
	char buf[32];

	return kvt_sysfs_read(p, name, buf, sizeof(buf)) < 0 ? -1 : strtoll(buf, NULL, 10);
}

/* All of them in memory, and on the disk. */
static int small_copies(struct kvt_pool *p, struct kvt_client *c, int dram)
{
	struct kvt_key keys[SMALL_CALL];
	int i, err;

	for (i = 0; i < DROPPERS * DROP_CALL; i += SMALL_CALL) {
		kvt_keys(keys, SMALL_SET, i, SMALL_CALL);
		if (kvt_put(c, KVTIER_RESERVE_WAIT, 0, keys, NULL, SMALL_CALL) != SMALL_CALL)
			return -ENOSPC;
	}
	err = kvt_tier_detach(p, dram, 0, 60 * KVT_SEC);
	if (!err)
		err = kvt_tier_dram(p, 0, 64 * KVT_MIB);
	for (i = 0; err >= 0 && i < DROPPERS * DROP_CALL; i += SMALL_CALL) {
		kvt_keys(keys, SMALL_SET, i, SMALL_CALL);
		if (kvt_check(c, 0, keys, SMALL_CALL, 20 * KVT_SEC) != SMALL_CALL)
			err = -ENODATA;
	}
	return err < 0 ? err : 0;
}

/* The disk takes nothing, not even that they are dead: memory is free all the same. */
TEST(memory_does_not_wait)
{
	struct kvt_child child[DROPPERS];
	struct kvt_client c = { .fd = -1 };
	struct kvt_pool pool;
	struct kvt_dm dm;
	int i, dram;

	if (getenv("KVT_KERNEL") && strcmp(getenv("KVT_KERNEL"), "stock"))
		SKIP(return, "too many blocks for this kernel");
	ASSERT_EQ(0, kvt_dm_make(&dm, "copym", 128 * KVT_MIB));
	ASSERT_EQ(0, kvt_setup(&pool));
	ASSERT_EQ(0, kvt_sysfs_write(&pool, "watermark_high_percent", "100"));
	dram = kvt_tier_dram(&pool, 0, 64 * KVT_MIB);
	ASSERT_LE(0, dram);
	ASSERT_LE(0, kvt_tier_disk(&pool, 30, &dm.disk));
	ASSERT_EQ(0, kvt_client_open(&pool, &c, "small", SMALL_BYTES));
	ASSERT_EQ(0, small_copies(&pool, &c, dram));
	ASSERT_EQ(DROPPERS * DROP_CALL * SMALL_BYTES, tier_value(&pool, "tiers/bdev30/copy_bytes"));
	ASSERT_EQ(0, kvt_dm_stop(&dm, true));
	for (i = 0; i < DROPPERS; i++) {
		EXPECT_EQ(0, kvt_spawn(&child[i], drop_some, &c));
		EXPECT_EQ(0, kvt_say(&child[i], i * DROP_CALL));
	}
	EXPECT_TRUE(KVT_UNTIL(20000, !tier_value(&pool, "tiers/dram0/used_bytes")));
	/* Not all could be written down: some are still on the log. */
	EXPECT_LT(0, tier_value(&pool, "tiers/bdev30/used_bytes") +
		     tier_value(&pool, "tiers/bdev30/copy_bytes"));
	EXPECT_EQ(0, kvt_dm_stop(&dm, false));
	for (i = 0; i < DROPPERS; i++)
		EXPECT_EQ(0, kvt_join(&child[i], 60000));
	EXPECT_TRUE(KVT_UNTIL(20000, !tier_value(&pool, "tiers/bdev30/used_bytes")));
	EXPECT_EQ(0, tier_value(&pool, "tiers/bdev30/copy_bytes"));
	kvt_client_close(&c);
	EXPECT_EQ(0, kvt_teardown(&pool));
	kvt_dm_remove(&dm);
}

TEST_HARNESS_MAIN
