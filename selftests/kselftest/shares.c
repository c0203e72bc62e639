// SPDX-License-Identifier: GPL-2.0
/*
 * Of what a pool has only so many, numbers of open files and buffers and namespaces, no user
 * takes so much that others get none: nobody has more than he leaves. A test build is told to
 * have few of them.
 */
#include "kvt_test.h"

#define BLOCK		(64 * KVT_KIB)
#define MOST		16
#define MOST_FILE	"/sys/module/kvtier/parameters/test_most"
#define GREEDY		1001
#define MODEST		1002
#define SET		43

FIXTURE(shares)
{
	struct kvt_pool pool;
	bool few;
	int fd[2 * MOST];
	int nr;
};

/* So many there are, or 0: as many as there should be. */
static int there_are(int nr)
{
	return kvt_sh("[ -w " MOST_FILE " ] && echo %d > " MOST_FILE, nr);
}

FIXTURE_SETUP(shares)
{
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, 64 * KVT_MIB));
	self->few = !there_are(MOST);
}

FIXTURE_TEARDOWN(shares)
{
	int i;

	for (i = 0; i < self->nr; i++)
		close(self->fd[i]);
	if (self->few)
		EXPECT_EQ(0, there_are(0));
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

/* A user opens as many as he gets, up to @nr, and keeps them; @err: what the last one came to. */
static int open_many(FIXTURE_DATA(shares) *self, uid_t uid, int nr, int *err)
{
	int fd, n;

	*err = 0;
	for (n = 0; n < nr; n++) {
		fd = kvt_open_as(&self->pool, uid);
		if (fd < 0) {
			*err = fd;
			break;
		}
		self->fd[self->nr++] = fd;
	}
	return n;
}

TEST_F(shares, open_files)
{
	int err, n, all = 0;
	uid_t uid;

	if (!self->few)
		SKIP(return, "this module has as many numbers as it should");
	n = open_many(self, GREEDY, MOST, &err);
	EXPECT_EQ(MOST / 2, n);
	EXPECT_EQ(-ENOSPC, err);
	/* Who comes later gets less, but something as long as there is anything. */
	for (all = n, uid = MODEST; all < MOST; uid++) {
		n = open_many(self, uid, MOST, &err);
		EXPECT_EQ(-ENOSPC, err);
		ASSERT_LT(0, n);
		EXPECT_GE(all == MOST - 1 ? 1 : (MOST - all) / 2, n);
		all += n;
	}
	EXPECT_EQ(0, open_many(self, uid, 1, &err));
	EXPECT_EQ(-ENOSPC, err);
	/* What has been given back is there again. */
	close(self->fd[0]);
	self->fd[0] = kvt_open_as(&self->pool, uid);
	EXPECT_LE(0, self->fd[0]);
}

/* Root may have all that is left. */
TEST_F(shares, root)
{
	int err;

	if (!self->few)
		SKIP(return, "this module has as many numbers as it should");
	EXPECT_EQ(MOST, open_many(self, 0, 2 * MOST, &err));
	EXPECT_EQ(-ENOSPC, err);
}

static int export_one(const struct kvt_client *c, __u64 handle)
{
	struct kvtier_export x = { .handles = (uintptr_t)&handle, .nr = 1 };
	int err;

	x.size = sizeof(x);
	err = kvt_ioctl(c->fd, KVTIER_OP_EXPORT, &x);
	return err ?: x.fd;
}

/* Buffers have the same numbers. */
TEST_F(shares, buffers)
{
	struct kvtier_group group = { .block_bytes = BLOCK };
	struct kvt_key key = kvt_key(SET, 0);
	struct kvtier_block_result res;
	struct kvtier_ns_open a;
	struct kvt_client c;
	int err, fd = 0;

	if (!self->few)
		SKIP(return, "this module has as many numbers as it should");
	kvt_ns_args(&a, "buffers", &group, 1);
	ASSERT_EQ(0, kvt_client_bind(&c, kvt_open_as(&self->pool, GREEDY), &a));
	ASSERT_EQ(1, kvt_put(&c, 0, 0, &key, NULL, 1));
	ASSERT_EQ(1, kvt_get(c.fd, 0, 0, &key, 1, &res, 0));
	while (self->nr < MOST) {
		fd = export_one(&c, res.handle);
		if (fd < 0)
			break;
		self->fd[self->nr++] = fd;
	}
	EXPECT_EQ(-ENOSPC, fd);
	EXPECT_EQ(MOST / 2 - 1, self->nr);
	EXPECT_EQ(0, open_many(self, GREEDY, 1, &err));
	EXPECT_LT(0, open_many(self, MODEST, MOST, &err));
	kvt_client_close(&c);
}

/* A namespace with a block in it, which keeps it; the file is closed. */
static int make_ns(FIXTURE_DATA(shares) *self, uid_t uid, int i)
{
	struct kvtier_group group = { .block_bytes = BLOCK };
	struct kvt_key key = kvt_key(SET, 0);
	struct kvtier_ns_open a;
	struct kvt_client c;
	char identity[24];
	int err;

	snprintf(identity, sizeof(identity), "shares%d", i);
	kvt_ns_args(&a, identity, &group, 1);
	err = kvt_client_bind(&c, kvt_open_as(&self->pool, uid), &a);
	if (!err && kvt_put(&c, 0, 0, &key, NULL, 1) < 0)
		err = -EIO;
	kvt_client_close(&c);
	return err;
}

TEST_F(shares, namespaces)
{
	int err = 0, n;

	if (!self->few)
		SKIP(return, "this module has as many numbers as it should");
	for (n = 0; n < MOST && !err; n++)
		err = make_ns(self, GREEDY, n);
	EXPECT_EQ(-ENOSPC, err);
	EXPECT_EQ(MOST / 2, n - 1);
	/* His own are there for him as before. */
	EXPECT_EQ(0, make_ns(self, GREEDY, 0));
	EXPECT_EQ(0, make_ns(self, MODEST, 0));
	EXPECT_EQ(-ENOSPC, make_ns(self, GREEDY, n));
}

TEST_HARNESS_MAIN
