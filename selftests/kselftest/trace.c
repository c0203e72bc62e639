// SPDX-License-Identifier: GPL-2.0
/*
 * Tracepoints: everything that happens to a block can be followed by its key.
 */
#include "kvt_test.h"

#define TRACEFS		"/sys/kernel/tracing"
#define INSTANCE	TRACEFS "/instances/kvt"
#define BLOCK_BYTES	(64 * KVT_KIB)
#define NR		160
#define SET		27

FIXTURE(trace)
{
	struct kvt_pool pool;
	struct kvt_client c;
};

FIXTURE_SETUP(trace)
{
	if (access(TRACEFS "/instances", W_OK))
		SKIP(return, "no tracefs");
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, 4 * KVT_MIB));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 1, 4 * KVT_MIB));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "trace", BLOCK_BYTES));
	kvt_sh("rmdir " INSTANCE " 2>/dev/null");
	ASSERT_EQ(0, kvt_sh("mkdir " INSTANCE));
	ASSERT_EQ(0, kvt_sh("echo 4096 > " INSTANCE "/buffer_size_kb"));
	ASSERT_EQ(0, kvt_sh("echo 1 > " INSTANCE "/events/kvtier/enable"));
}

FIXTURE_TEARDOWN(trace)
{
	kvt_sh("echo 0 > " INSTANCE "/events/kvtier/enable");
	EXPECT_EQ(0, kvt_sh("rmdir " INSTANCE));
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

/* Events of a kind, in all or about one block. */
static int count_events(const char *event, const struct kvt_key *key)
{
	char line[32], hex[20] = "";
	int i;

	for (i = 0; key && i < 8; i++)
		snprintf(hex + 2 * i, 3, "%02x", key->b[i]);
	kvt_sh_line(line, sizeof(line), "grep ' kvtier_%s: ' " INSTANCE "/trace | grep -c '%s%s'",
		    event, key ? "key=" : "", hex);
	return atoi(line);
}

/* Blocks that left for one reason, as the admin guide numbers them. */
static int count_reason(int why)
{
	char line[32];

	kvt_sh_line(line, sizeof(line), "grep ' kvtier_evict: ' " INSTANCE "/trace | "
		    "grep -c ' why=%d '", why);
	return atoi(line);
}

/* Events of a kind that say what the policy thinks of the block, in such figures. */
static int count_fields(const char *event, const char *idle_ms, const char *class,
			const char *worth)
{
	char line[32];

	kvt_sh_line(line, sizeof(line), "grep ' kvtier_%s: ' " INSTANCE "/trace | "
		    "grep -c ' idle_ms=%s class=%s worth=%s'", event, idle_ms, class, worth);
	return atoi(line);
}

#define ANY	"[0-9]*"
#define SOME	"[1-9][0-9]*"

TEST_F(trace, put_and_get)
{
	struct kvt_key keys[4];
	int i;

	kvt_keys(keys, SET, 0, 4);
	ASSERT_EQ(4, kvt_put(&self->c, 0, 0, keys, NULL, 4));
	EXPECT_EQ(4, count_events("put", NULL));
	EXPECT_EQ(0, count_events("get", NULL));
	ASSERT_EQ(3, kvt_check(&self->c, 0, keys, 3, 0));
	EXPECT_EQ(3, count_events("get", NULL));
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(1, count_events("put", &keys[i]));
		EXPECT_EQ(i < 3, count_events("get", &keys[i]));
	}
}

/* Somewhere below the top there is one to be brought up. */
static bool use_all(const struct kvt_client *c)
{
	struct kvt_key key;
	int i, n = 0;

	for (i = 0; i < NR; i++) {
		key = kvt_key(SET, i);
		n += kvt_check(c, 0, &key, 1, 20 * KVT_SEC) == 1;
	}
	return n;
}

TEST_F(trace, down_up_and_out)
{
	struct kvtier_stat st;
	struct kvt_key key;
	int i;

	for (i = 0; i < NR; i++) {
		key = kvt_key(SET, i);
		ASSERT_EQ(1, kvt_put(&self->c, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1));
		/* Uses below the top are what brings blocks up. */
		if (i > 60) {
			key = kvt_key(SET, i - 60);
			kvt_check(&self->c, 0, &key, 1, 20 * KVT_SEC);
		}
	}
	key = kvt_key(SET, NR - 1);
	EXPECT_EQ(1, kvt_drop(self->c.fd, 0, &key, 1, NULL));
	ASSERT_TRUE(KVT_UNTIL(10000, use_all(&self->c) && !kvt_stat(self->c.fd, 0, &st) &&
			      st.promotions && st.demotions && st.evictions));
	/* As many as are counted, once nothing is running any more. */
	ASSERT_EQ(2, kvt_settled(&self->pool, &st, NULL));
	EXPECT_EQ(st.demotions, count_events("demote", NULL));
	EXPECT_EQ(st.promotions, count_events("promote", NULL));
	EXPECT_EQ(st.evictions + st.drops, count_events("evict", NULL));
	EXPECT_EQ(1, count_events("evict", &key));
	EXPECT_EQ(1, count_reason(1));
	/* For want of room, or not worth a write to the tier below. */
	EXPECT_EQ(st.evictions, count_reason(0) + count_reason(7));
	EXPECT_EQ(st.evictions + st.drops, count_fields("evict", ANY, ANY, "[0-9]"));
	EXPECT_EQ(st.demotions, count_fields("demote", ANY, ANY, "[0-9]"));
	/* Of blocks with a past, none of it is nothing. */
	EXPECT_LT(0, count_fields("demote", SOME, ANY, ANY));
	EXPECT_LT(0, count_fields("demote", ANY, SOME, ANY));
	EXPECT_LT(0, count_fields("demote", ANY, ANY, SOME));
	EXPECT_LT(0, count_fields("evict", SOME, ANY, ANY));
	EXPECT_LT(0, count_fields("evict", ANY, SOME, ANY));
	EXPECT_LT(0, count_fields("evict", ANY, ANY, SOME));
}

#define FEW	8

static int put_few(const struct kvt_client *c)
{
	struct kvt_key keys[FEW];

	kvt_keys(keys, SET, 0, FEW);
	return kvt_put(c, 0, 0, keys, NULL, FEW);
}

TEST_F(trace, detach)
{
	struct kvtier_stat st;

	ASSERT_EQ(FEW, put_few(&self->c));
	ASSERT_EQ(0, kvt_tier_detach(&self->pool, 0, KVTIER_DETACH_DISCARD, 10 * KVT_SEC));
	EXPECT_EQ(FEW, count_reason(5));
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(FEW, st.evictions);
}

/* A device that goes takes its blocks along, and that is told. */
TEST_F(trace, tier_lost)
{
	char name[64], text[64], want[64];
	struct kvtier_stat st;
	int dax;

	if (!kvt_env_dax())
		SKIP(return, "no device-dax instance to use (KVT_DAX)");
	ASSERT_EQ(0, kvt_tier_detach(&self->pool, 0, 0, 10 * KVT_SEC));
	ASSERT_EQ(0, kvt_tier_detach(&self->pool, 1, 0, 10 * KVT_SEC));
	dax = kvt_tier_dax(&self->pool, 0, 4 * KVT_MIB);
	ASSERT_LE(0, dax);
	ASSERT_EQ(FEW, put_few(&self->c));
	ASSERT_EQ(0, kvt_sh("echo %s > /sys/bus/dax/drivers/kvtier/unbind", kvt_env_dax()));
	EXPECT_EQ(FEW, count_reason(4));
	snprintf(name, sizeof(name), "namespaces/%llu/evicted_lost", self->c.ns_id);
	EXPECT_LT(0, kvt_sysfs_read(&self->pool, name, text, sizeof(text)));
	snprintf(want, sizeof(want), "%d %d\n", dax, FEW);
	EXPECT_STREQ(want, text);
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(FEW, st.evictions);
	ASSERT_EQ(0, kvt_tier_detach(&self->pool, dax, 0, 10 * KVT_SEC));
	EXPECT_EQ(0, kvt_dax_bind(kvt_env_dax(), "kvtier"));
}

TEST_HARNESS_MAIN
