// SPDX-License-Identifier: GPL-2.0
/*
 * The module decides as the simulator does: the same trace, one client, the trace's clock,
 * room made at the end of each request. Hits, promotions, demotions and evictions are the
 * same numbers.
 *
 * Needs a module built with KVT_TEST=1, whose parameters say what is to be the same.
 */
#include "kvt_test.h"
#include "kvt_same.h"

#define BLOCK_BYTES	4096
#define REQUESTS	100
#define REQUESTS_LONG	1000
#define SESSIONS	24
#define SHARED		3	/* beginnings that sessions have in common */
#define LEN_MAX		32	/* what COMMIT takes in one piece */
#define TIERS		2
#define DISK_BYTES	(96 * KVT_MIB)	/* all that is ever written: the log does not make room */

FIXTURE(same)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvt_disk disk;
	struct kvt_same_trace t;
};

FIXTURE_VARIANT(same)
{
	const char *policy;
	unsigned int blocks[TIERS];
	unsigned int nr_tiers;
};

FIXTURE_VARIANT_ADD(same, lru_one_tier) { .policy = "lru", .blocks = { 60 }, .nr_tiers = 1 };
FIXTURE_VARIANT_ADD(same, reuse_one_tier) { .policy = "reuse", .blocks = { 60 }, .nr_tiers = 1 };
FIXTURE_VARIANT_ADD(same, lru_two_tiers)
{
	.policy = "lru", .blocks = { 20, 40 }, .nr_tiers = 2,
};
FIXTURE_VARIANT_ADD(same, reuse_two_tiers)
{
	.policy = "reuse", .blocks = { 20, 40 }, .nr_tiers = 2,
};

static unsigned int rng = 1;

static unsigned int rnd(unsigned int below)
{
	rng = rng * 1664525u + 1013904223u;
	return (rng >> 8) % below;
}

static int set_param(const char *name, const char *value)
{
	char path[128];
	FILE *f;
	int err;

	snprintf(path, sizeof(path), "/sys/module/kvtier/parameters/test_%s", name);
	f = fopen(path, "w");
	if (!f)
		return -errno;
	err = fputs(value, f) < 0 ? -EIO : 0;
	if (fclose(f))
		err = -errno;
	return err;
}

static int set_number(const char *name, unsigned long long value)
{
	char buf[32];

	snprintf(buf, sizeof(buf), "%llu", value);
	return set_param(name, buf);
}

/* Sessions that go on after some seconds, or never, and begin with what others have, too. */
static void make_trace(struct kvt_same_trace *t)
{
	unsigned int chain[SESSIONS][LEN_MAX], len[SESSIONS] = { 0 }, next = 2 * SHARED, i, k, s;
	unsigned long long now_ms = 1000000;

	t->nr = kvt_env_rounds(REQUESTS, REQUESTS_LONG);
	t->ts_ms = calloc(t->nr, sizeof(*t->ts_ms));
	t->first = calloc(t->nr + 1, sizeof(*t->first));
	t->ids = calloc(t->nr * LEN_MAX, sizeof(*t->ids));
	for (i = 0; i < t->nr; i++) {
		s = rnd(2) ? rnd(SESSIONS / 4) : rnd(SESSIONS);
		k = rnd(SHARED);
		if (len[s] + 6 > LEN_MAX || !rnd(12))
			len[s] = 0;
		if (!len[s]) {
			chain[s][len[s]++] = 2 * k;
			chain[s][len[s]++] = 2 * k + 1;
		}
		for (k = 1 + rnd(5); k; k--)
			chain[s][len[s]++] = next++;
		now_ms += 1500 + (rnd(4) ? rnd(3000) : rnd(60000));
		t->ts_ms[i] = now_ms;
		memcpy(t->ids + t->first[i], chain[s], len[s] * sizeof(chain[s][0]));
		t->first[i + 1] = t->first[i] + len[s];
		/* The last block is partly filled: it is another one in the next turn. */
		len[s] -= rnd(2);
	}
}

static void set_capacities(struct __test_metadata *_metadata, FIXTURE_DATA(same) *self,
			   const FIXTURE_VARIANT(same) *variant)
{
	char buf[32];

	snprintf(buf, sizeof(buf), "%u,%u", variant->blocks[0], variant->blocks[1]);
	ASSERT_EQ(0, set_param("blocks", buf));
	/* Nothing else is to make room. */
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "watermark_high_percent", "100"));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "policy", variant->policy));
}

FIXTURE_SETUP(same)
{
	self->c.fd = -1;
	if (access("/sys/module/kvtier/parameters/test_settle", F_OK))
		SKIP(return, "the module is not a test build");
	ASSERT_EQ(0, set_param("hash", "1"));
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_EQ(0, set_param("hash", "0"));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, 8 * KVT_MIB));
	if (variant->nr_tiers > 1) {
		ASSERT_EQ(0, kvt_disk_make(&self->disk, "same", DISK_BYTES));
		ASSERT_LE(0, kvt_tier_disk(&self->pool, 30, &self->disk));
	}
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "same", BLOCK_BYTES));
	set_capacities(_metadata, self, variant);
	make_trace(&self->t);
}

FIXTURE_TEARDOWN(same)
{
	set_param("now_ms", "0");
	set_param("blocks", "0,0");
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	if (variant->nr_tiers > 1)
		kvt_disk_remove(&self->disk);
	free(self->t.ts_ms);
	free(self->t.first);
	free(self->t.ids);
}

/* Take what is there of a request. How much, or -errno. */
static int get(int fd, __u64 request, const struct kvt_key *keys, unsigned int nr)
{
	struct kvtier_block_result res[LEN_MAX] = { 0 };
	__u64 handle[LEN_MAX];
	struct kvtier_get a = {
		.size = sizeof(a), .flags = KVTIER_GET_WAIT, .nr = nr, .keys = KVT_U64(keys),
		.results = KVT_U64(res), .request = request, .timeout_ns = 20 * KVT_SEC,
	};
	unsigned int i;
	int err = kvt_ioctl(fd, KVTIER_OP_GET, &a);

	if (err)
		return err;
	for (i = 0; i < a.nr_prefix; i++)
		handle[i] = res[i].handle;
	if (a.nr_prefix && kvt_release(fd, handle, a.nr_prefix, NULL) != (int)a.nr_prefix)
		return -ESTALE;
	return a.nr_prefix;
}

/* Store the rest; what is in the blocks does not matter. 0 or -errno */
static int put(int fd, __u64 request, const struct kvt_key *keys, unsigned int at, unsigned int nr)
{
	struct kvtier_block_result res[LEN_MAX] = { 0 };
	__u64 handle[LEN_MAX];
	struct kvtier_reserve a = {
		.size = sizeof(a), .nr = nr - at, .keys = KVT_U64(keys + at),
		.parent = at ? KVT_U64(keys + at - 1) : 0, .results = KVT_U64(res),
		.request = request,
	};
	unsigned int i;
	int ret = kvt_ioctl(fd, KVTIER_OP_RESERVE, &a);

	if (ret)
		return ret;
	if (a.nr_reserved != a.nr)
		return -ENOSPC;
	for (i = 0; i < a.nr; i++)
		handle[i] = res[i].handle;
	ret = kvt_commit(fd, 0, handle, a.nr, res);
	return ret == (int)a.nr ? 0 : ret < 0 ? ret : -ESTALE;
}

static int replay(const FIXTURE_DATA(same) *self, unsigned int i)
{
	unsigned int nr = self->t.first[i + 1] - self->t.first[i], k;
	struct kvt_key keys[LEN_MAX];
	int hits, err;

	for (k = 0; k < nr; k++)
		trace_key(1, self->t.ids[self->t.first[i] + k], keys[k].b);
	err = set_number("now_ms", self->t.ts_ms[i]);
	hits = err ? err : get(self->c.fd, i + 1, keys, nr);
	if (hits < 0)
		return hits;
	err = hits < (int)nr ? put(self->c.fd, i + 1, keys, hits, nr) : 0;
	/* For a moment the log may have no room, or somebody else a block; then it stays. */
	if (!err)
		KVT_UNTIL(20000, (err = set_number("settle", self->pool.id)) != -EBUSY);
	return err;
}

TEST_F_TIMEOUT(same, decisions, 600)
{
	struct kvt_same want;
	struct kvtier_stat st;
	unsigned int i;

	ASSERT_EQ(0, kvt_same_run(&self->t, variant->policy, variant->blocks, variant->nr_tiers,
				  LEN_MAX, &want));
	for (i = 0; i < self->t.nr; i++)
		ASSERT_EQ(0, replay(self, i)) TH_LOG("request %u", i);
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(want.hits, st.hits);
	EXPECT_EQ(want.promotions, st.promotions);
	EXPECT_EQ(want.demotions, st.demotions);
	EXPECT_EQ(want.evictions, st.evictions);
	/* A trace on which there was nothing to decide would show nothing. */
	EXPECT_LT(100, want.hits);
	EXPECT_LT(100, want.evictions);
	if (variant->nr_tiers > 1) {
		EXPECT_LT(40, want.promotions);
		EXPECT_LT(100, want.demotions);
	}
}

TEST_HARNESS_MAIN
