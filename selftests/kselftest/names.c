// SPDX-License-Identifier: GPL-2.0
/*
 * Asking for a namespace takes no longer, and keeps others waiting no longer, the more there are.
 */
#include <sys/resource.h>

#include "kvt_test.h"

#define BLOCK		(64 * KVT_KIB)
#define MANY		600
#define ROUNDS		40
#define GREEDY		1001
#define MODEST		1002
#define NAME		"of the same name"

FIXTURE(names)
{
	struct kvt_pool pool;
	int fd[MANY];
	int nr;
};

FIXTURE_SETUP(names)
{
	struct rlimit lim = { MANY + 256, MANY + 256 };

	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &lim));
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, 64 * KVT_MIB));
}

FIXTURE_TEARDOWN(names)
{
	while (self->nr)
		close(self->fd[--self->nr]);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

/* A user's namespace of that name and a secret of its own, kept open. */
static int make_one(FIXTURE_DATA(names) *self, uid_t uid, __u32 secret)
{
	struct kvtier_group group = { .block_bytes = BLOCK };
	char bytes[KVTIER_SECRET_BYTES] = "secret";
	int fd = kvt_open_as(&self->pool, uid), err;
	struct kvtier_ns_open a;

	if (fd < 0)
		return fd;
	memcpy(bytes + 8, &secret, sizeof(secret));
	kvt_ns_args(&a, NAME, &group, 1);
	a.flags |= KVTIER_NS_EXCL;
	a.secret = KVT_U64(bytes);
	err = kvt_ioctl(fd, KVTIER_OP_NS_OPEN, &a);
	if (err)
		close(fd);
	else
		self->fd[self->nr++] = fd;
	return err;
}

/* Asks for one that there is not; the file stays free. */
static int guess(int fd)
{
	struct kvtier_group group = { .block_bytes = BLOCK };
	static const char wrong[KVTIER_SECRET_BYTES] = "no secret of anybody's";
	struct kvtier_ns_open a;

	kvt_ns_args(&a, NAME, &group, 1);
	a.flags = 0;
	a.secret = KVT_U64(wrong);
	return kvt_ioctl(fd, KVTIER_OP_NS_OPEN, &a);
}

/* The shortest of some. 0: not what was to be expected. */
static __u64 guess_ns(const struct kvt_pool *pool, uid_t uid)
{
	int fd = kvt_open_as(pool, uid), i;
	__u64 best = 0, ns;

	for (i = 0; fd >= 0 && i < ROUNDS; i++) {
		ns = kvt_now_ns();
		if (guess(fd) != -ENOENT) {
			best = 0;
			break;
		}
		ns = kvt_now_ns() - ns;
		best = !best || ns < best ? ns : best;
	}
	close(fd);
	return best;
}

/* Of his own, which have that name, only the secrets differ. */
TEST_F(names, many_cost_what_one_does)
{
	__u64 before, after, others;
	__u32 i;

	ASSERT_EQ(0, make_one(self, GREEDY, 0));
	before = guess_ns(&self->pool, GREEDY);
	for (i = 1; i < MANY; i++)
		ASSERT_EQ(0, make_one(self, GREEDY, i));
	after = guess_ns(&self->pool, GREEDY);
	others = guess_ns(&self->pool, MODEST);
	fprintf(stderr, "# %llu ns beside 1, %llu beside %d, %llu of another user's\n", before, after,
		MANY, others);
	ASSERT_LT(0, before);
	ASSERT_LT(0, after);
	ASSERT_LT(0, others);
	EXPECT_GT(5 * before, after);
	EXPECT_GT(5 * before, others);
}

/* Each is found by its secret, and ends. */
TEST_F(names, each_is_found)
{
	__u32 i;

	for (i = 0; i < 40; i++)
		ASSERT_EQ(0, make_one(self, GREEDY, i));
	for (i = 0; i < 40; i++)
		EXPECT_EQ(-EEXIST, make_one(self, GREEDY, i));
	while (self->nr)
		close(self->fd[--self->nr]);
	EXPECT_TRUE(KVT_UNTIL(5000, !make_one(self, GREEDY, 39)));
	EXPECT_TRUE(KVT_UNTIL(5000, !make_one(self, GREEDY, 0)));
}

TEST_HARNESS_MAIN
