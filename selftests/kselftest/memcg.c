// SPDX-License-Identifier: GPL-2.0
/*
 * What the kernel keeps for a client is charged to the client's memory control group: a
 * container that asks for ever more of it comes up against its own memory.max, and neither
 * the host nor other clients notice. And what a container has in the pool has a limit, if
 * the operator gives it one.
 */
#include "kvt_test.h"
#include <sys/resource.h>
#include <sys/stat.h>

#define BLOCK_BYTES	(16 * KVT_KIB)
#define SET		62
#define NR		256
#define GROUPS		"/sys/fs/cgroup"
#define GROUP		GROUPS "/kvt-memcg"
#define MAX_BYTES	(6 * KVT_MIB)

struct storm {
	const struct kvt_pool *pool;
	const struct kvt_key *keys;
	int (*more)(const struct storm *s, int i);
};

FIXTURE(memcg)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvt_key keys[NR];
};

FIXTURE_VARIANT(memcg)
{
	int (*more)(const struct storm *s, int i);
};

/* Another open file. */
static int more_files(const struct storm *s, int i)
{
	int fd = kvt_open(s->pool);

	(void)i;
	return fd < 0 ? fd : 0;
}

static int bound(const struct storm *s, const char *identity)
{
	struct kvtier_group g = { .block_bytes = BLOCK_BYTES };
	struct kvtier_ns_open a;
	int fd = kvt_open(s->pool), err;

	if (fd < 0)
		return fd;
	kvt_ns_args(&a, identity, &g, 1);
	err = kvt_ioctl(fd, KVTIER_OP_NS_OPEN, &a);
	return err ? err : fd;
}

/* Another namespace. */
static int more_namespaces(const struct storm *s, int i)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "storm %d", i);
	fd = bound(s, name);
	return fd < 0 ? fd : 0;
}

/* The same blocks leased once more: another handle for each. */
static int more_leases(const struct storm *s, int i)
{
	static struct kvtier_block_result res[NR];
	static int fd = -1;
	int n;

	(void)i;
	if (fd < 0)
		fd = bound(s, "memcg");
	n = fd < 0 ? fd : kvt_get(fd, 0, 0, s->keys, NR, res, 0);
	if (n == -ENOSPC) {
		fd = -1;	/* its table is full: on with another file */
		n = 0;
	}
	return n < 0 ? n : 0;
}

FIXTURE_VARIANT_ADD(memcg, files) { .more = more_files };
FIXTURE_VARIANT_ADD(memcg, namespaces) { .more = more_namespaces };
FIXTURE_VARIANT_ADD(memcg, leases) { .more = more_leases };

FIXTURE_SETUP(memcg)
{
	if (!kvt_cgroups_have("memory"))
		SKIP(return, "no memory controller in the cgroup v2 hierarchy");
	ASSERT_EQ(0, mkdir(GROUP, 0755));
	ASSERT_EQ(0, kvt_sh("echo %llu > " GROUP "/memory.max", MAX_BYTES));
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, 8 * KVT_MIB));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "memcg", BLOCK_BYTES));
	kvt_keys(self->keys, SET, 0, NR);
	ASSERT_EQ(NR, kvt_put(&self->c, 0, 0, self->keys, NULL, NR));
}

FIXTURE_TEARDOWN(memcg)
{
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	EXPECT_TRUE(KVT_UNTIL(5000, !rmdir(GROUP)));
}

/* In the group, for more and more; the error that ends it, if it is not killed. */
static int storm(struct kvt_child *me, void *arg)
{
	struct storm *s = arg;
	struct rlimit many = { 300000, 300000 };
	int i, err = 0;

	(void)me;
	KVT_CHILD_CHECK(!kvt_sh("echo %d > " GROUP "/cgroup.procs", getpid()));
	setrlimit(RLIMIT_NOFILE, &many);
	for (i = 0; !err; i++)
		err = s->more(s, i);
	fprintf(stderr, "# after %d: %s\n", i, strerror(-err));
	return err == -ENOMEM ? 42 : 43;
}

static long long event(const char *name)
{
	char line[32] = "";

	kvt_sh_line(line, sizeof(line), "sed -n 's/^%s //p' " GROUP "/memory.events", name);
	return atoll(line);
}

TEST_F_TIMEOUT(memcg, storm, 600)
{
	struct storm s = { .pool = &self->pool, .keys = self->keys, .more = variant->more };
	struct kvt_child child;
	int ret;

	ASSERT_EQ(0, kvt_spawn(&child, storm, &s));
	ret = kvt_join(&child, 60000);
	EXPECT_TRUE(ret == -SIGKILL || ret == 42) TH_LOG("it ended with %d", ret);
	/* By its own limit. */
	EXPECT_LT(0, event("max"));
	EXPECT_EQ(NR, kvt_check(&self->c, 0, self->keys, NR, 20 * KVT_SEC));
	/* With it goes what it had. */
	EXPECT_TRUE(KVT_UNTIL(5000, kvt_sh("[ $(cat " GROUP "/memory.current) -lt %llu ]",
					   MAX_BYTES / 2) == 0));
}

/* --- what a cgroup may have in a pool ---------------------------------------------------- */

#define INNER		GROUP "/inner"
#define LIMITS		"cgroup_limits"
#define LIMIT_BYTES	KVT_MIB

FIXTURE(budget)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvt_key keys[NR];
	struct stat st;
};

FIXTURE_SETUP(budget)
{
	if (access(GROUPS "/cgroup.controllers", R_OK))
		SKIP(return, "no cgroup v2 hierarchy");
	ASSERT_EQ(0, mkdir(GROUP, 0755));
	ASSERT_EQ(0, mkdir(INNER, 0755));
	ASSERT_EQ(0, stat(GROUP, &self->st));
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, 16 * KVT_MIB));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "host", BLOCK_BYTES));
	kvt_keys(self->keys, SET, 0, NR);
}

FIXTURE_TEARDOWN(budget)
{
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	EXPECT_TRUE(KVT_UNTIL(5000, !rmdir(INNER)));
	EXPECT_TRUE(KVT_UNTIL(5000, !rmdir(GROUP)));
}

struct tenant {
	const struct kvt_pool *pool;
};

/*
 * Two namespaces of a process in a cgroup below, each with more than both may have: it stores
 * the blocks of the set it is told of.
 */
static int tenant(struct kvt_child *me, void *arg)
{
	struct tenant *t = arg;
	struct kvt_client c[2];
	int i, n;

	KVT_CHILD_CHECK(!kvt_sh("echo %d > " INNER "/cgroup.procs", getpid()));
	KVT_CHILD_CHECK(!kvt_client_open(t->pool, &c[0], "first", BLOCK_BYTES));
	KVT_CHILD_CHECK(!kvt_client_open(t->pool, &c[1], "second", BLOCK_BYTES));
	while ((n = kvt_hear(me, 600000)) > 0) {
		struct kvt_key key;
		int there = 0;

		/* One at a time, roots: the oldest make room. */
		for (i = 0; i < NR; i++) {
			key = kvt_key(SET + n, i);
			there += kvt_put(&c[i % 2], KVTIER_RESERVE_WAIT, 0, &key, NULL, 1) == 1;
		}
		kvt_say(me, there);
	}
	return 0;
}

/* What the file says of our cgroup; false: nothing. */
static bool budget_is(const struct kvt_pool *p, const struct stat *st, __u64 *used, __u64 *limit)
{
	unsigned long long id, u, l;
	char text[4096];
	const char *line;

	if (kvt_sysfs_read(p, LIMITS, text, sizeof(text)) < 0)
		return false;
	for (line = text; line && sscanf(line, "%llu %llu %llu", &id, &u, &l) == 3;
	     line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		*used = u;
		*limit = l;
		if (id == st->st_ino)
			return true;
	}
	return false;
}

static int limit_to(const struct kvt_pool *p, const char *what)
{
	char text[128];

	snprintf(text, sizeof(text), "%s %s\n", GROUP + strlen(GROUPS), what);
	return kvt_sysfs_write(p, LIMITS, text);
}

TEST_F_TIMEOUT(budget, of_all_namespaces, 600)
{
	struct tenant t = { .pool = &self->pool };
	__u64 used = 0, limit = 0;
	struct kvt_child child;
	char bytes[32];
	int there;

	snprintf(bytes, sizeof(bytes), "%llu", LIMIT_BYTES);
	ASSERT_EQ(0, limit_to(&self->pool, bytes));
	ASSERT_EQ(0, kvt_spawn(&child, tenant, &t));
	/* All of it can be stored, each block at the cost of an older one. */
	ASSERT_EQ(0, kvt_say(&child, 1));
	EXPECT_EQ(NR, kvt_hear(&child, 60000));
	ASSERT_TRUE(budget_is(&self->pool, &self->st, &used, &limit));
	EXPECT_EQ(LIMIT_BYTES, limit);
	EXPECT_GE(LIMIT_BYTES, used);
	EXPECT_LE(LIMIT_BYTES / 2, used);
	/* Others are not in it, and nothing of theirs went. */
	EXPECT_EQ(NR, kvt_put(&self->c, 0, 0, self->keys, NULL, NR));
	EXPECT_EQ(NR, kvt_check(&self->c, 0, self->keys, NR, 20 * KVT_SEC));
	/* Without it there is room for all. */
	ASSERT_EQ(0, limit_to(&self->pool, "max"));
	EXPECT_FALSE(budget_is(&self->pool, &self->st, &used, &limit));
	ASSERT_EQ(0, kvt_say(&child, 1));
	EXPECT_EQ(NR, kvt_hear(&child, 60000));
	/* A new one counts what is there. */
	ASSERT_EQ(0, limit_to(&self->pool, bytes));
	ASSERT_TRUE(budget_is(&self->pool, &self->st, &used, &limit));
	EXPECT_EQ(NR * BLOCK_BYTES, used);
	/*
	 * Who has more than he may is brought down to it by what he stores next. One namespace's
	 * blocks make no room for the other's, so the first to store finds none.
	 */
	ASSERT_EQ(0, kvt_say(&child, 2));
	there = kvt_hear(&child, 60000);
	EXPECT_LE(NR / 2, there);
	ASSERT_TRUE(budget_is(&self->pool, &self->st, &used, &limit));
	EXPECT_GE(LIMIT_BYTES, used);
	EXPECT_LE(LIMIT_BYTES / 2, used);
	EXPECT_EQ(NR, kvt_check(&self->c, 0, self->keys, NR, KVT_SEC));
	kvt_say(&child, 0);
	EXPECT_EQ(0, kvt_join(&child, 20000));
}

TEST_F(budget, values)
{
	char text[64];
	int i;

	EXPECT_EQ(-ENOENT, limit_to(&self->pool, "max"));
	EXPECT_EQ(-EINVAL, limit_to(&self->pool, "much"));
	EXPECT_EQ(-EINVAL, kvt_sysfs_write(&self->pool, LIMITS, "/\n"));
	EXPECT_EQ(-EINVAL, kvt_sysfs_write(&self->pool, LIMITS, "0 4096\n"));
	EXPECT_EQ(-ENOENT, kvt_sysfs_write(&self->pool, LIMITS, "/no/such/group 4096\n"));
	for (i = 0; i < 32; i++) {
		snprintf(text, sizeof(text), "%d 4096\n", 1000000 + i);
		EXPECT_EQ(0, kvt_sysfs_write(&self->pool, LIMITS, text));
	}
	EXPECT_EQ(-ENOSPC, kvt_sysfs_write(&self->pool, LIMITS, "2000000 4096\n"));
	EXPECT_EQ(0, kvt_sysfs_write(&self->pool, LIMITS, "1000007 max\n"));
	EXPECT_EQ(0, kvt_sysfs_write(&self->pool, LIMITS, "2000000 4096\n"));
}

TEST_HARNESS_MAIN
