// SPDX-License-Identifier: GPL-2.0
/*
 * Many tenants in little memory: namespaces of three blocks each share a few regions, by
 * way of the block device. A thousand of them at full length, else an eighth of that.
 */
#include "kvt_test.h"
#include <sys/resource.h>

#define BLOCK_BYTES	(64 * KVT_KIB)
#define NS		1000
#define EACH		3
#define SET		23

FIXTURE(many)
{
	struct kvt_pool pool;
	int fd[NS];
};

FIXTURE_SETUP(many)
{
	struct rlimit lim = { .rlim_cur = 4096, .rlim_max = 4096 };
	int i;

	if (!kvt_env_bdev())
		SKIP(return, "no block device to use (KVT_BDEV)");
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &lim));
	for (i = 0; i < NS; i++)
		self->fd[i] = -1;
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, 32 * KVT_MIB));
	ASSERT_LE(0, kvt_tier_bdev(&self->pool, 1, 0));
}

FIXTURE_TEARDOWN(many)
{
	int i;

	for (i = 0; i < NS; i++)
		if (self->fd[i] >= 0)
			close(self->fd[i]);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

static int open_ns(const struct kvt_pool *p, int i)
{
	struct kvtier_group g = { .block_bytes = BLOCK_BYTES };
	struct kvtier_ns_open a;
	char name[24];
	int fd = kvt_open(p), err;

	if (fd < 0)
		return fd;
	snprintf(name, sizeof(name), "tenant %d", i);
	kvt_ns_args(&a, name, &g, 1);
	err = kvt_ioctl(fd, KVTIER_OP_NS_OPEN, &a);
	if (err)
		close(fd);
	return err ? err : fd;
}

static int put_all(int fd, int ns, char *buf)
{
	struct kvt_key keys[EACH];
	int i, ret;

	kvt_keys(keys, SET, ns * EACH, EACH);
	for (i = 0; i < EACH; i++) {
		kvt_fill(buf, &keys[i], BLOCK_BYTES);
		ret = kvt_write1(fd, 0, &keys[i], i ? &keys[i - 1] : NULL, buf, BLOCK_BYTES,
				 20 * KVT_SEC);
		if (ret != KVTIER_ST_DONE)
			return ret ? ret : -ENOENT;
	}
	return 0;
}

static int check_all(int fd, int ns, char *buf)
{
	struct kvt_key keys[EACH];
	int i, ret;

	kvt_keys(keys, SET, ns * EACH, EACH);
	for (i = 0; i < EACH; i++) {
		ret = kvt_read1(fd, 0, &keys[i], buf, BLOCK_BYTES, 20 * KVT_SEC);
		if (ret != KVTIER_ST_HIT)
			return ret ? ret : -ENOENT;
		if (!kvt_bytes_ok(buf, &keys[i], BLOCK_BYTES))
			return -EBADMSG;
	}
	return 0;
}

TEST_F_TIMEOUT(many, thousand_namespaces, 600)
{
	char *buf = malloc(BLOCK_BYTES);
	const int nr = kvt_env_rounds(NS / 8, NS);
	int i, ret;
	struct kvtier_stat st;

	for (i = 0; i < nr; i++) {
		self->fd[i] = open_ns(&self->pool, i);
		ASSERT_LE(0, self->fd[i]) TH_LOG("namespace %d: %d", i, self->fd[i]);
		ret = put_all(self->fd[i], i, buf);
		ASSERT_EQ(0, ret) TH_LOG("namespace %d: %d", i, ret);
	}
	ASSERT_EQ(0, kvt_stat(self->fd[0], KVTIER_STAT_POOL, &st));
	EXPECT_EQ(nr * EACH, st.nr_blocks);
	EXPECT_LT(0, st.demotions);
	for (i = nr - 1; i >= 0; i--) {
		ret = check_all(self->fd[i], i, buf);
		ASSERT_EQ(0, ret) TH_LOG("namespace %d: %d", i, ret);
	}
	ASSERT_EQ(0, kvt_stat(self->fd[0], KVTIER_STAT_POOL, &st));
	EXPECT_EQ(nr * EACH, st.nr_blocks);
	EXPECT_EQ(0, st.evictions);
	EXPECT_LT(0, st.promotions);
	/* And after their files are closed they are still there. */
	for (i = 0; i < nr; i += 97) {
		close(self->fd[i]);
		self->fd[i] = open_ns(&self->pool, i);
		ASSERT_LE(0, self->fd[i]);
		EXPECT_EQ(0, check_all(self->fd[i], i, buf));
	}
	free(buf);
}

TEST_HARNESS_MAIN
