// SPDX-License-Identifier: GPL-2.0
/*
 * Clients who are given hardly any processor time: what they are slow at is no reason for
 * others to wait.
 *
 * A child in a cgroup that may run for a millisecond in each second asks for so much memory
 * that wiping it would take it minutes; it is let go on when the others have come back.
 */
#include "kvt_test.h"
#include <sys/stat.h>

#define GROUP		"/sys/fs/cgroup/kvt-starved"
#define BLOCK_BYTES	(64 * KVT_KIB)
#define TIER_BYTES	(320 * KVT_MIB)
#define ASKED_BYTES	(256 * KVT_MIB)
#define NR		64
#define SET		97
#define LIMIT_MS	10000	/* far more than what others do takes */

FIXTURE(starved)
{
	struct kvt_pool pool;
	int spare;		/* a tier that nothing is in */
	struct kvt_client c;	/* which the child asks through, too */
	struct kvt_key keys[NR];
	struct kvt_child child;
	struct kvt_child other;
};

/* How the child asks; negative if it has got nothing. */
FIXTURE_VARIANT(starved)
{
	int (*ask)(const struct kvt_client *c);
};

static int ask_arena(const struct kvt_client *c)
{
	struct kvtier_arena a = { .size = sizeof(a), .nr_slots = ASKED_BYTES / BLOCK_BYTES };

	return kvt_ioctl(c->fd, KVTIER_OP_ARENA, &a);
}

/* As many blocks as that, of which there may be less; how many. */
static int ask_reservations(const struct kvt_client *c)
{
	static struct kvtier_block_result res[ASKED_BYTES / BLOCK_BYTES];
	static struct kvt_key keys[ASKED_BYTES / BLOCK_BYTES];
	__u32 nr = ASKED_BYTES / BLOCK_BYTES;

	kvt_keys(keys, SET + 1, 0, nr);
	return kvt_reserve(c->fd, 0, 0, keys, NULL, nr, res, 0);
}

FIXTURE_VARIANT_ADD(starved, arena) { .ask = ask_arena };
FIXTURE_VARIANT_ADD(starved, reserve) { .ask = ask_reservations };

static int may_run(const char *max)
{
	return kvt_sh("echo %s > " GROUP "/cpu.max", max);
}

static int open_client(const struct kvt_pool *p, struct kvt_client *c, const char *name)
{
	struct kvtier_group group = { .block_bytes = BLOCK_BYTES };
	struct kvtier_ns_open a;
	int err;

	kvt_ns_args(&a, name, &group, 1);
	a.min_bytes = ASKED_BYTES + 16 * KVT_MIB;
	err = kvt_client_bind(c, kvt_open(p), &a);
	if (err)
		kvt_client_close(c);
	return err;
}

/* Memory that somebody has had is wiped for the next. */
static int soil(const struct kvt_pool *p)
{
	struct kvt_client c;
	int err = open_client(p, &c, "before");

	if (err)
		return err;
	err = ask_arena(&c);
	kvt_client_close(&c);
	return err;
}

FIXTURE_SETUP(starved)
{
	if (!kvt_cgroups_have("cpu"))
		SKIP(return, "no cpu controller in the cgroup v2 hierarchy");
	ASSERT_EQ(0, mkdir(GROUP, 0755));
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "reserve_percent", "100"));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, TIER_BYTES));
	ASSERT_EQ(0, soil(&self->pool));
	self->spare = kvt_tier_dram(&self->pool, 10, 4 * KVT_MIB);
	ASSERT_LE(0, self->spare);
	/* As soon as what was guaranteed to the other is not any more. */
	ASSERT_TRUE(KVT_UNTIL(20000, !open_client(&self->pool, &self->c, "starved")));
	kvt_keys(self->keys, SET, 0, NR);
	ASSERT_EQ(NR, kvt_put(&self->c, 0, 0, self->keys, NULL, NR));
}

FIXTURE_TEARDOWN(starved)
{
	EXPECT_EQ(0, may_run("max"));
	kvt_kill_all();
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	EXPECT_TRUE(KVT_UNTIL(5000, !rmdir(GROUP)));
}

struct ask {
	int (*ask)(const struct kvt_client *c);
	const struct kvt_client *c;
};

static int asks(struct kvt_child *me, void *arg)
{
	struct ask *a = arg;
	int err;

	KVT_CHILD_CHECK(!kvt_sh("echo %d > " GROUP "/cgroup.procs", getpid()));
	KVT_CHILD_CHECK(!kvt_say(me, 1));
	KVT_CHILD_CHECK(kvt_hear(me, 60000) == 2);
	err = a->ask(a->c);
	KVT_CHILD_CHECK(err >= 0);
	return 0;
}

/* A thread of the same file; and who takes a tier out. */
static int goes_on(struct kvt_child *me, void *arg)
{
	FIXTURE_DATA(starved) *self = arg;

	(void)me;
	KVT_CHILD_CHECK(kvt_check(&self->c, 0, self->keys, NR, 10 * KVT_SEC) == NR);
	KVT_CHILD_CHECK(!kvt_tier_detach(&self->pool, self->spare, 0, 10 * KVT_SEC));
	return 0;
}

/* Times that it was out of time. */
static int stops(void)
{
	char line[32];

	kvt_sh_line(line, sizeof(line), "sed -n 's/^nr_throttled //p' " GROUP "/cpu.stat");
	return atoi(line);
}

TEST_F_TIMEOUT(starved, others_go_on, 300)
{
	struct ask a = { .ask = variant->ask, .c = &self->c };
	int before;

	ASSERT_EQ(0, kvt_spawn(&self->child, asks, &a));
	ASSERT_EQ(1, kvt_hear(&self->child, 60000));
	ASSERT_EQ(0, may_run("'1000 1000000'"));
	before = stops();
	ASSERT_EQ(0, kvt_say(&self->child, 2));
	/* It has used up what it had for getting here. */
	ASSERT_TRUE(KVT_UNTIL(30000, stops() >= before + 3));

	ASSERT_EQ(0, kvt_spawn(&self->other, goes_on, self));
	EXPECT_EQ(0, kvt_join(&self->other, LIMIT_MS));
	EXPECT_EQ('R', kvt_proc_state(self->child.pid));

	ASSERT_EQ(0, may_run("max"));
	EXPECT_EQ(0, kvt_join(&self->child, 60000));
	EXPECT_EQ(NR, kvt_check(&self->c, 0, self->keys, NR, 10 * KVT_SEC));
}

TEST_HARNESS_MAIN
