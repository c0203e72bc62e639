// SPDX-License-Identifier: GPL-2.0
/*
 * Media that fails or lies: a block is right or it is a miss, and the rest of the
 * pool goes on.
 */
#include "kvt_test.h"

#define BLOCK_BYTES	(64 * KVT_KIB)
#define CHAINS		40
#define CHAIN		8
#define SET		29
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

static __u64 io_errors(const struct kvt_client *c, int tier)
{
	struct kvtier_tier_stat tiers[KVTIER_TIERS_MAX];
	struct kvtier_stat st;
	int i, nr = kvt_tier_stats(c->fd, &st, tiers);

	for (i = 0; i < nr; i++)
		if ((int)tiers[i].id == tier)
			return tiers[i].io_errors;
	return 0;
}

/* Somebody scribbles over the device: a page in every quarter of a MiB. */
static int scribble(const char *path, __u64 bytes, __u64 step)
{
	int fd = open(path, O_WRONLY | O_DIRECT | O_SYNC | O_CLOEXEC);
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
	/* Whatever the layout is, it starts before this and reaches no further. */
	ASSERT_LT(0, scribble(kvt_env_bdev(), 128 * KVT_MIB, 256 * KVT_KIB));
	there = check_chains(&self->c, 0, CHAINS);
	ASSERT_LE(0, there);
	EXPECT_LT(CHAINS * CHAIN / 4, there);
	EXPECT_GT(CHAINS * CHAIN, there);
	EXPECT_LT(0, io_errors(&self->c, self->disk));
	/* The pool goes on; what was lost can be stored again. */
	EXPECT_LE(0, put_chains(&self->c, 0, CHAINS));
	EXPECT_LT(there, check_chains(&self->c, 0, CHAINS));
}

/* A caller is told the difference between "not there" and "there and broken". */
TEST_F_TIMEOUT(media, corruption_is_told, 300)
{
	char *buf = malloc(BLOCK_BYTES);
	int i, ret, broken = 0, missing = 0;
	struct kvt_key key;

	for (i = 0; i < CHAINS * CHAIN; i++) {
		key = kvt_key(SET, 10000 + i);
		ASSERT_EQ(1, kvt_put(&self->c, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1));
	}
	ASSERT_LT(0, scribble(kvt_env_bdev(), 128 * KVT_MIB, 16 * KVT_KIB));
	for (i = 0; i < CHAINS * CHAIN; i++) {
		key = kvt_key(SET, 10000 + i);
		ret = kvt_read1(self->c.fd, 0, &key, buf, BLOCK_BYTES, 5 * KVT_SEC);
		ASSERT_TRUE(ret == KVTIER_ST_HIT || ret == KVTIER_ST_IOERR) TH_LOG("%d", ret);
		EXPECT_TRUE(ret != KVTIER_ST_HIT || kvt_bytes_ok(buf, &key, BLOCK_BYTES));
		broken += ret == KVTIER_ST_IOERR;
		missing += kvt_lookup(self->c.fd, 0, &key, 1, NULL) == 0;
	}
	EXPECT_LT(CHAINS * CHAIN / 2, broken);
	EXPECT_EQ(broken, missing);
	free(buf);
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
	EXPECT_LT(0, io_errors(&self->c, self->disk));
	/* Those nobody asked for meanwhile are still there. */
	EXPECT_LT(0, check_chains(&self->c, CHAINS / 2, CHAINS / 2));
	EXPECT_LE(0, put_chains(&self->c, 1000, 4));
	EXPECT_LE(0, check_chains(&self->c, 1000, 4));
}

TEST_F_TIMEOUT(media, writes_fail, 300)
{
	if (access(FAIL, F_OK) || access(self->make_it_fail, W_OK))
		SKIP(return, "this kernel has no fault injection");
	ASSERT_EQ(0, fail_requests(self, 100));
	EXPECT_LE(0, put_chains(&self->c, 0, CHAINS / 2));
	EXPECT_LE(0, check_chains(&self->c, 0, CHAINS / 2));
	EXPECT_LT(0, io_errors(&self->c, self->disk));
	ASSERT_EQ(0, fail_requests(self, 0));
	EXPECT_LE(0, put_chains(&self->c, 1000, CHAINS));
	EXPECT_LE(0, check_chains(&self->c, 1000, CHAINS));
}

TEST_F_TIMEOUT(media, some_requests_fail, 300)
{
	int round;

	if (access(FAIL, F_OK) || access(self->make_it_fail, W_OK))
		SKIP(return, "this kernel has no fault injection");
	ASSERT_EQ(0, fail_requests(self, 20));
	for (round = 0; round < 3; round++) {
		EXPECT_LE(0, put_chains(&self->c, round * 10, CHAINS / 2));
		EXPECT_LE(0, check_chains(&self->c, 0, CHAINS));
	}
	ASSERT_EQ(0, fail_requests(self, 0));
	EXPECT_LT(0, io_errors(&self->c, self->disk));
}

/* --- memory ----------------------------------------------------------------------------- */

FIXTURE(poison)
{
	struct kvt_pool pool;
	struct kvt_client c;
	int dax;
};

FIXTURE_SETUP(poison)
{
	if (!kvt_env_dax())
		SKIP(return, "no device-dax instance to use (KVT_DAX)");
	if (access("/sys/devices/system/memory/hard_offline_page", W_OK))
		SKIP(return, "this kernel cannot be told that a page is bad");
	ASSERT_EQ(0, kvt_setup(&self->pool));
	self->dax = kvt_tier_dax(&self->pool, 0, 16 * KVT_MIB);
	ASSERT_LE(0, self->dax);
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "poison", BLOCK_BYTES));
}

FIXTURE_TEARDOWN(poison)
{
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

/* Physical address of a mapped page, or 0. */
static __u64 physical(const void *p)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	__u64 entry = 0;

	if (fd < 0)
		return 0;
	if (pread(fd, &entry, sizeof(entry), (off_t)(KVT_U64(p) / 4096 * sizeof(entry))) !=
	    sizeof(entry))
		entry = 0;
	close(fd);
	return entry >> 63 ? (entry & ((1ull << 55) - 1)) * 4096 : 0;
}

/* One bad page costs one block. */
TEST_F(poison, one_page)
{
	struct kvtier_block_result res[3], fill[64];
	struct kvt_key keys[3], more[64];
	int i, n;
	__u64 bad;

	kvt_keys(keys, SET, 0, 3);
	for (i = 0; i < 3; i++)
		ASSERT_EQ(1, kvt_put(&self->c, 0, 0, &keys[i], NULL, 1));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(1, kvt_get(self->c.fd, 0, 0, &keys[i], 1, &res[i], 0));
		ASSERT_EQ(0, kvt_touch_read(kvt_rd(&self->c, res[i].offset)));
	}
	bad = physical((char *)kvt_rd(&self->c, res[1].offset) + 5 * 4096);
	ASSERT_NE(0, bad);
	signal(SIGBUS, SIG_IGN);
	ASSERT_EQ(0, kvt_sh("echo %#llx > /sys/devices/system/memory/hard_offline_page",
			    (unsigned long long)bad));
	EXPECT_TRUE(KVT_UNTIL(5000, kvt_lookup(self->c.fd, 0, &keys[1], 1, NULL) == 0));
	EXPECT_EQ(SIGBUS, kvt_touch_read((char *)kvt_rd(&self->c, res[1].offset) + 5 * 4096));
	/* Its neighbours are what they were, leased and anew. */
	for (i = 0; i < 3; i += 2) {
		EXPECT_TRUE(kvt_bytes_ok(kvt_rd(&self->c, res[i].offset), &keys[i], BLOCK_BYTES));
		EXPECT_EQ(1, kvt_check(&self->c, 0, &keys[i], 1, 0));
	}
	EXPECT_LT(0, io_errors(&self->c, self->dax));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(1, kvt_release(self->c.fd, &res[i].handle, 1, NULL));
	/* The slot is not used again. */
	kvt_keys(more, SET, 100, 64);
	n = kvt_reserve(self->c.fd, 0, 0, more, NULL, 64, fill, 0);
	EXPECT_LT(0, n);
	for (i = 0; i < n; i++)
		EXPECT_NE(res[1].offset, fill[i].offset - self->c.wr.start);
	EXPECT_EQ(1, kvt_put(&self->c, KVTIER_RESERVE_WAIT, 0, &keys[1], NULL, 1));
	EXPECT_EQ(1, kvt_check(&self->c, 0, &keys[1], 1, 0));
}

TEST_HARNESS_MAIN
