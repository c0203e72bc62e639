// SPDX-License-Identifier: GPL-2.0
/*
 * Media that fails or lies: a block is right or it is a miss, and the rest of the
 * pool goes on.
 */
#include "kvt_test.h"

#define BLOCK_BYTES	(64 * KVT_KIB)
#define CHAINS		24
#define CHAIN		8
#define SET		29
#define LAYOUT_BYTES	(48 * KVT_MIB)	/* it reaches no further */
#define FAIL		"/sys/kernel/debug/fail_make_request"

FIXTURE(media)
{
	struct kvt_pool pool;
	struct kvt_client c;
	int disk;
	char make_it_fail[64];
};

FIXTURE_SETUP(media)
{
	if (!kvt_env_bdev())
		SKIP(return, "no block device to use (KVT_BDEV)");
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, 4 * KVT_MIB));
	self->disk = kvt_tier_bdev(&self->pool, 1, 0);
	ASSERT_LE(0, self->disk);
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "media", BLOCK_BYTES));
	snprintf(self->make_it_fail, sizeof(self->make_it_fail), "/sys/block/%s/make-it-fail",
		 strrchr(kvt_env_bdev(), '/') + 1);
}

FIXTURE_TEARDOWN(media)
{
	if (!access(self->make_it_fail, W_OK))
		kvt_sh("echo 0 > %s; echo 0 > " FAIL "/probability", self->make_it_fail);
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
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

/* Blocks that are there and right; -EBADMSG if any is wrong. */
static int check_chains(const struct kvt_client *c, int first, int nr)
{
	struct kvt_key keys[CHAIN];
	int i, k, ret, sum = 0;

	for (i = first; i < first + nr; i++) {
		kvt_keys(keys, SET, i * CHAIN, CHAIN);
		/* One by one: a bad one must not hide those behind it. */
		for (k = 0; k < CHAIN; k++) {
			ret = kvt_check(c, 0, &keys[k], 1, 5 * KVT_SEC);
			if (ret < 0)
				return ret;
			sum += ret;
		}
	}
	return sum;
}

/* Somebody scribbles over the device: a page at every @step. */
static int scribble(const char *path, __u64 bytes, __u64 step)
{
	int fd = open(path, O_WRONLY | O_DIRECT | O_CLOEXEC);
	static char page[4096] __attribute__((aligned(4096)));
	__u64 at;
	int nr = 0;

	if (fd < 0)
		return -errno;
	memset(page, 0xa5, sizeof(page));
	for (at = 0; at < bytes; at += step, nr++)
		if (pwrite(fd, page, sizeof(page), at) != sizeof(page))
			nr = -100000;
	close(fd);
	return nr;
}

TEST_F_TIMEOUT(media, corruption_is_a_miss, 300)
{
	int there;

	ASSERT_EQ(CHAINS * CHAIN, put_chains(&self->c, 0, CHAINS));
	ASSERT_LT(0, scribble(kvt_env_bdev(), LAYOUT_BYTES, 256 * KVT_KIB));
	there = check_chains(&self->c, 0, CHAINS);
	ASSERT_LE(0, there);
	EXPECT_LT(CHAINS * CHAIN / 4, there);
	EXPECT_GT(CHAINS * CHAIN, there);
	EXPECT_LT(0, kvt_tier_errors(self->c.fd, self->disk));
	/* The pool goes on; what was lost can be stored again. */
	EXPECT_LE(0, put_chains(&self->c, 0, CHAINS));
	EXPECT_LT(there, check_chains(&self->c, 0, CHAINS));
}

/*
 * A caller is told the difference between "not there" and "there and broken". After three
 * of those in a segment the rest of it is looked at in the background, and not there.
 */
TEST_F_TIMEOUT(media, corruption_is_told, 300)
{
	char *buf = malloc(BLOCK_BYTES);
	int i, ret, broken = 0, gone = 0, missing = 0;
	struct kvt_key key;

	for (i = 0; i < CHAINS * CHAIN; i++) {
		key = kvt_key(SET, 10000 + i);
		ASSERT_EQ(1, kvt_put(&self->c, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1));
	}
	ASSERT_LT(0, scribble(kvt_env_bdev(), LAYOUT_BYTES, 32 * KVT_KIB));
	for (i = 0; i < CHAINS * CHAIN; i++) {
		key = kvt_key(SET, 10000 + i);
		ret = kvt_read1(self->c.fd, 0, &key, buf, BLOCK_BYTES, 5 * KVT_SEC);
		ASSERT_TRUE(ret == KVTIER_ST_HIT || ret == KVTIER_ST_IOERR ||
			    ret == KVTIER_ST_MISS) TH_LOG("%d", ret);
		EXPECT_TRUE(ret != KVTIER_ST_HIT || kvt_bytes_ok(buf, &key, BLOCK_BYTES));
		broken += ret == KVTIER_ST_IOERR;
		gone += ret == KVTIER_ST_MISS;
		missing += kvt_lookup(self->c.fd, 0, &key, 1, NULL) == 0;
	}
	EXPECT_LE(3, broken);
	EXPECT_LT(CHAINS * CHAIN / 2, broken + gone);
	EXPECT_EQ(broken + gone, missing);
	free(buf);
}

/*
 * Is it a store. What was read once is worth more than what is new, and from the high watermark
 * down it leaves by the dozen, so what has just been stored may have gone before it is asked for.
 */
static bool stores_again(const struct kvt_client *c)
{
	int i = 1000;

	return KVT_UNTIL(10000, put_chains(c, ++i, 1) == CHAIN && check_chains(c, i, 1) > 0);
}

/* Every so many-th request of the device fails from now on; 0: none. */
static int fail_requests(FIXTURE_DATA(media) *self, int percent)
{
	return kvt_sh("echo 0 > " FAIL "/verbose && echo -1 > " FAIL "/times && "
		      "echo 1 > " FAIL "/interval && echo %d > " FAIL "/probability && "
		      "echo %d > %s", percent, percent > 0, self->make_it_fail);
}

TEST_F_TIMEOUT(media, reads_fail, 300)
{
	int there;

	if (access(FAIL, F_OK) || access(self->make_it_fail, W_OK))
		SKIP(return, "this kernel has no fault injection");
	ASSERT_EQ(CHAINS * CHAIN, put_chains(&self->c, 0, CHAINS));
	ASSERT_EQ(0, fail_requests(self, 100));
	there = check_chains(&self->c, 0, CHAINS / 2);
	EXPECT_LE(0, there);
	EXPECT_GT(CHAINS * CHAIN / 2, there);
	ASSERT_EQ(0, fail_requests(self, 0));
	EXPECT_LT(0, kvt_tier_errors(self->c.fd, self->disk));
	/* Those nobody asked for meanwhile are still there. */
	EXPECT_LT(0, check_chains(&self->c, CHAINS / 2, CHAINS / 2));
	EXPECT_TRUE(stores_again(&self->c));
}

TEST_F_TIMEOUT(media, writes_fail, 300)
{
	if (access(FAIL, F_OK) || access(self->make_it_fail, W_OK))
		SKIP(return, "this kernel has no fault injection");
	ASSERT_EQ(0, fail_requests(self, 100));
	EXPECT_LE(0, put_chains(&self->c, 0, CHAINS / 2));
	EXPECT_LE(0, check_chains(&self->c, 0, CHAINS / 2));
	EXPECT_LT(0, kvt_tier_errors(self->c.fd, self->disk));
	ASSERT_EQ(0, fail_requests(self, 0));
	EXPECT_LE(0, put_chains(&self->c, 1000, CHAINS));
	EXPECT_LE(0, check_chains(&self->c, 1000, CHAINS));
	EXPECT_TRUE(stores_again(&self->c));
}

TEST_F_TIMEOUT(media, some_requests_fail, 300)
{
	int round;

	if (access(FAIL, F_OK) || access(self->make_it_fail, W_OK))
		SKIP(return, "this kernel has no fault injection");
	ASSERT_EQ(0, fail_requests(self, 20));
	for (round = 0; round < 2; round++) {
		EXPECT_LE(0, put_chains(&self->c, round * 10, CHAINS / 2));
		EXPECT_LE(0, check_chains(&self->c, 0, CHAINS));
	}
	ASSERT_EQ(0, fail_requests(self, 0));
	EXPECT_LT(0, kvt_tier_errors(self->c.fd, self->disk));
}

static __u64 blocks_on(const struct kvt_client *c, int tier)
{
	struct kvtier_tier_stat tiers[KVTIER_TIERS_MAX];
	struct kvtier_stat st;
	int i, nr = kvt_tier_stats(c->fd, &st, tiers);

	for (i = 0; i < nr; i++)
		if ((int)tiers[i].id == tier)
			return tiers[i].nr_blocks;
	return 0;
}

/* A disk in a file system of its own, which can be full: writes fail, and nothing else. */
static int full_make(struct kvt_disk *d)
{
	int err = kvt_sh("mkdir -p /tmp/kvt-%d-full && mount -t tmpfs -o size=16m tmpfs "
			 "/tmp/kvt-%d-full", getpid(), getpid());

	return err ? err : kvt_disk_make(d, "full/disk", 256 * KVT_MIB);
}

static int full_fill(void)
{
	return kvt_sh("! cat /dev/zero > /tmp/kvt-%d-full/rest 2>/dev/null", getpid());
}

static void full_remove(struct kvt_disk *d)
{
	kvt_disk_remove(d);
	kvt_sh("umount /tmp/kvt-%d-full; rmdir /tmp/kvt-%d-full", getpid(), getpid());
}

/* What cannot be written to where it should go is as good as before where it is. */
TEST_F_TIMEOUT(media, destination_fails, 120)
{
	struct kvtier_tier_op op = { .size = sizeof(op), .timeout_ns = 30 * KVT_SEC };
	struct kvt_key keys[CHAIN];
	struct kvt_disk full;
	int low, i;

	ASSERT_EQ(0, full_make(&full));
	/* Few are left, all of them on the first device, so that they fit into memory. */
	ASSERT_EQ(CHAINS * CHAIN, put_chains(&self->c, 0, CHAINS));
	for (i = 1; i < CHAINS; i++) {
		kvt_keys(keys, SET, i * CHAIN, CHAIN);
		ASSERT_EQ(CHAIN, kvt_drop(self->c.fd, 0, keys, CHAIN, NULL));
	}
	ASSERT_EQ(CHAIN, blocks_on(&self->c, self->disk));
	low = kvt_tier_disk(&self->pool, 2, &full);
	ASSERT_LE(0, low);
	ASSERT_EQ(0, full_fill());
	op.pool_id = self->pool.id;
	op.tier_id = self->disk;
	EXPECT_EQ(0, kvt_ioctl(self->pool.ctl, KVTIER_OP_TIER_DRAIN, &op));
	EXPECT_LT(0, kvt_tier_errors(self->c.fd, low));
	EXPECT_EQ(0, kvt_tier_errors(self->c.fd, self->disk));
	EXPECT_EQ(CHAIN, check_chains(&self->c, 0, 1));
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, low, 0, 30 * KVT_SEC));
	full_remove(&full);
}

TEST_HARNESS_MAIN
