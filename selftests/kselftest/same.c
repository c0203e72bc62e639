// SPDX-License-Identifier: GPL-2.0
/*
 * The module decides as the simulator does: the same trace, one client, the trace's clock,
 * room made at the end of each request. Hits, promotions, demotions and evictions are the
 * same numbers.
 *
 * Where the log's segments have to be emptied that changes nothing but what is written: the module
 * carries blocks, and so does the simulator, not the same ones, and all else is the same.
 *
 * "same" is a small trace of its own; "traces" are those that KVT_SAME_TRACE names, a file or
 * a generator's kind as for kvtier-sim, of which it takes the first KVT_SAME_REQUESTS
 * requests, or as many of them as it has a disk for. Tiers hold 2 and 8 percent of the different
 * blocks of these.
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
/*
 * All that is ever written has room: neither memory nor the log makes any by itself. Blocks are
 * demoted one by one, and each has a unit of the log for what is said of it.
 */
#define DRAM_BYTES	(8 * KVT_MIB)
#define DISK_BYTES	(256 * KVT_MIB)
#define LOG_BYTES	(4 * BLOCK_BYTES)	/* for each block written */
/* Or the log has few segments, which are emptied again and again: two fifths of it are in use. */
#define LARGE_BYTES	(64 * KVT_KIB)
#define SMALL_DISK	(16 * KVT_MIB)
#define TIGHT_DISK	(34 * KVT_MIB)	/* with as few segments nearly all that can be is used */

/* A pool, the trace that is replayed on it, and room for one request of that. */
struct store {
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvt_disk disk;
	struct kvt_same_trace t;
	struct kvt_same_how how;
	unsigned int block_bytes;
	unsigned int log_blocks;	/* see kvt_same_how.segment */
	unsigned long long *next_ms;
	struct kvt_key keys[KVTIER_BATCH_MAX];
	struct kvtier_block_result res[KVTIER_BATCH_MAX];
	__u64 handle[KVTIER_BATCH_MAX];
};

static unsigned int rng = 1;

static unsigned int rnd(unsigned int below)
{
	rng = rng * 1664525u + 1013904223u;
	return (rng >> 8) % below;
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

static bool is_test_build(void)
{
	return kvt_hook("settle");
}

/* Tiers of so many blocks, the second one on a disk, if that has any bytes. 0 or -errno */
static int store_open(struct store *s, const char *policy, const unsigned int *blocks,
		      __u64 dram_bytes, __u64 disk_bytes)
{
	char buf[32];
	int err;

	err = kvt_hook_set("hash", "1") ?: kvt_setup(&s->pool);
	err = err ?: kvt_hook_set("hash", "0");
	if (!err)
		err = kvt_tier_dram(&s->pool, 0, dram_bytes);
	if (err >= 0 && disk_bytes) {
		err = kvt_disk_make(&s->disk, "same", disk_bytes);
		err = err ?: kvt_tier_disk(&s->pool, 30, &s->disk);
	}
	if (err < 0)
		return err;
	snprintf(buf, sizeof(buf), "%u,%u", blocks[0], blocks[1]);
	err = kvt_client_open(&s->pool, &s->c, "same", s->block_bytes) ?: kvt_hook_set("blocks", buf);
	/* Nothing else is to make room. */
	err = err ?: kvt_sysfs_write(&s->pool, "watermark_high_percent", "100");
	if (!err && s->how.segment)
		err = kvt_sysfs_write(&s->pool, "copies_percent", "0");
	return err ?: kvt_sysfs_write(&s->pool, "policy", policy);
}

/* 0 or -errno */
static int store_close(struct store *s)
{
	int err;

	kvt_hook_set("now_ms", "0");
	kvt_hook_set("blocks", "0,0");
	kvt_client_close(&s->c);
	err = kvt_teardown(&s->pool);
	if (s->disk.file[0])
		kvt_disk_remove(&s->disk);
	kvt_same_free(&s->t);
	free(s->next_ms);
	free(s);
	return err;
}

static struct store *store_new(void)
{
	struct store *s = calloc(1, sizeof(*s));

	if (s) {
		s->c.fd = -1;
		s->block_bytes = BLOCK_BYTES;
	}
	return s;
}

/* Take what is there of a request. How much, or -errno. */
static int get(struct store *s, __u64 request, unsigned int nr)
{
	struct kvtier_get a = {
		.size = sizeof(a), .flags = KVTIER_GET_WAIT, .nr = nr, .keys = KVT_U64(s->keys),
		.results = KVT_U64(s->res), .request = request, .timeout_ns = 20 * KVT_SEC,
	};
	unsigned int i;
	int err = kvt_ioctl(s->c.fd, KVTIER_OP_GET, &a);

	if (err)
		return err;
	for (i = 0; i < a.nr_prefix; i++)
		s->handle[i] = s->res[i].handle;
	if (a.nr_prefix && kvt_release(s->c.fd, s->handle, a.nr_prefix, NULL) != (int)a.nr_prefix)
		return -ESTALE;
	return a.nr_prefix;
}

/* Store so many from @at on; what is in the blocks does not matter. 0 or -errno */
static int put(struct store *s, __u64 request, unsigned int at, unsigned int nr)
{
	struct kvtier_reserve a = {
		.size = sizeof(a), .nr = nr, .keys = KVT_U64(s->keys + at),
		.parent = at ? KVT_U64(s->keys + at - 1) : 0, .results = KVT_U64(s->res),
		.request = request,
	};
	unsigned int i;
	int ret = kvt_ioctl(s->c.fd, KVTIER_OP_RESERVE, &a);

	if (ret)
		return ret;
	if (a.nr_reserved != a.nr)
		return -ENOSPC;
	for (i = 0; i < a.nr; i++)
		s->handle[i] = s->res[i].handle;
	ret = kvt_commit(s->c.fd, 0, s->handle, a.nr, s->res);
	return ret == (int)a.nr ? 0 : ret < 0 ? ret : -ESTALE;
}

/* What the client knows of the session of request @i, of @nr blocks. 0 or -errno */
static int tell(struct store *s, unsigned int i, unsigned int nr)
{
	__u64 next_ms = s->next_ms[i] ? s->next_ms[i] - s->t.ts_ms[i] : 0;

	return kvt_session(s->c.fd, 0, i + 1, KVTIER_SESSION_DONE, &s->keys[nr - 1],
			   next_ms * KVT_SEC / 1000);
}

/* Request @i, cut to @most blocks. 0 or -errno */
static int replay(struct store *s, unsigned int i, unsigned int most)
{
	__u64 request = s->how.numbered ? i + 1 : 0;
	unsigned int nr = s->t.first[i + 1] - s->t.first[i], k, step;
	int at, err;

	nr = nr < most ? nr : most;
	for (k = 0; k < nr; k++)
		kvt_same_key(s->t.ids[s->t.first[i] + k], s->keys[k].b);
	err = kvt_hook_number("now_ms", s->t.ts_ms[i]);
	at = err ? err : get(s, request, nr);
	if (at < 0)
		return at;
	for (; !err && at < (int)nr; at += step) {
		step = nr - at < s->how.chunk ? nr - at : s->how.chunk;
		err = put(s, request, at, step);
	}
	if (!err && s->how.hints)
		err = tell(s, i, nr);
	/* For a moment the log may have no room, or somebody else a block; then it stays. */
	if (!err)
		KVT_UNTIL(20000, (err = kvt_hook_number("settle", s->pool.id)) != -EBUSY);
	return err;
}

static unsigned long long disk_bytes_of(const struct store *s, const char *what)
{
	char name[64], buf[64];

	snprintf(name, sizeof(name), "tiers/bdev30/%s", what);
	return kvt_sysfs_read(&s->pool, name, buf, sizeof(buf)) > 0 ? strtoull(buf, NULL, 0) : 0;
}

/* A log that had to make room would decide by when it did. */
static void expect_room(struct __test_metadata *_metadata, const struct store *s)
{
	unsigned long long written = disk_bytes_of(s, "write_bytes") +
				     disk_bytes_of(s, "log_bytes");

	EXPECT_LT(0, written);
	EXPECT_GT(disk_bytes_of(s, "capacity_bytes"), written + written / 4);
}

/* It has gone round, and on both sides. */
static void expect_carried(struct __test_metadata *_metadata, const struct store *s,
			   const struct kvt_same *want)
{
	unsigned long long carried = disk_bytes_of(s, "write_bytes") -
				     disk_bytes_of(s, "demoted_bytes");

	TH_LOG("%llu blocks were carried, and %llu of %llu in the simulator",
	       carried / s->block_bytes, want->carried, want->written);
	/* A trace that uses little again leaves segments in which all is dead. */
	if (s->block_bytes == LARGE_BYTES)
		EXPECT_LT(0, carried);
	EXPECT_LT(disk_bytes_of(s, "capacity_bytes"),
		  disk_bytes_of(s, "write_bytes") + disk_bytes_of(s, "log_bytes"));
	EXPECT_LT(2 * (s->log_blocks + 3 * s->how.segment), want->written);
}

static void compare(struct __test_metadata *_metadata, struct store *s,
		    const struct kvt_same *want, unsigned int most)
{
	struct kvtier_stat st;
	unsigned int i;

	for (i = 0; i < s->t.nr; i++)
		ASSERT_EQ(0, replay(s, i, most)) TH_LOG("request %u", i);
	ASSERT_EQ(0, kvt_stat(s->c.fd, 0, &st));
	TH_LOG("%u requests: hits %llu, promotions %llu, demotions %llu, evictions %llu", s->t.nr,
	       want->hits, want->promotions, want->demotions, want->evictions);
	EXPECT_EQ(want->hits, st.hits);
	EXPECT_EQ(want->promotions, st.promotions);
	EXPECT_EQ(want->demotions, st.demotions);
	EXPECT_EQ(want->evictions, st.evictions);
	if (s->disk.file[0])
		EXPECT_EQ((want->written - want->carried) * s->block_bytes,
			  disk_bytes_of(s, "demoted_bytes"));
	if (s->how.segment)
		expect_carried(_metadata, s, want);
	else if (s->disk.file[0])
		expect_room(_metadata, s);
}

/* --- a small trace, with all that happens often --------------------------------------------- */

FIXTURE(same)
{
	struct store *s;
};

FIXTURE_VARIANT(same)
{
	const char *policy;
	unsigned int blocks[TIERS];
	unsigned int nr_tiers;
	struct kvt_same_how how;
};

#define PIECES	{ .chunk = LEN_MAX, .numbered = true }

FIXTURE_VARIANT_ADD(same, lru_one_tier)
{
	.policy = "lru", .blocks = { 60 }, .nr_tiers = 1, .how = PIECES,
};
FIXTURE_VARIANT_ADD(same, reuse_one_tier)
{
	.policy = "reuse", .blocks = { 60 }, .nr_tiers = 1, .how = PIECES,
};
FIXTURE_VARIANT_ADD(same, lru_two_tiers)
{
	.policy = "lru", .blocks = { 20, 40 }, .nr_tiers = 2, .how = PIECES,
};
FIXTURE_VARIANT_ADD(same, reuse_two_tiers)
{
	.policy = "reuse", .blocks = { 20, 40 }, .nr_tiers = 2, .how = PIECES,
};
/* Each block as it comes, as an answer is stored. */
FIXTURE_VARIANT_ADD(same, reuse_block_by_block)
{
	.policy = "reuse", .blocks = { 20, 40 }, .nr_tiers = 2,
	.how = { .chunk = 1, .numbered = true },
};
/* What belongs together is told by time and chain. */
FIXTURE_VARIANT_ADD(same, reuse_without_numbers)
{
	.policy = "reuse", .blocks = { 20, 40 }, .nr_tiers = 2, .how = { .chunk = 2 },
};
FIXTURE_VARIANT_ADD(same, reuse_with_hints)
{
	.policy = "reuse", .blocks = { 20, 40 }, .nr_tiers = 2,
	.how = { .chunk = LEN_MAX, .numbered = true, .hints = true },
};
FIXTURE_VARIANT_ADD(same, lru_segments)
{
	.policy = "lru", .blocks = { 20, 40 }, .nr_tiers = 2,
	.how = { .chunk = LEN_MAX, .numbered = true, .segment = 20 },
};
FIXTURE_VARIANT_ADD(same, reuse_segments)
{
	.policy = "reuse", .blocks = { 20, 40 }, .nr_tiers = 2,
	.how = { .chunk = LEN_MAX, .numbered = true, .segment = 20 },
};

FIXTURE_SETUP(same)
{
	if (!is_test_build())
		SKIP(return, "the module is not a test build");
	self->s = store_new();
	ASSERT_NE(NULL, self->s);
	self->s->how = variant->how;
	self->s->log_blocks = 2 * variant->blocks[1];
	if (variant->how.segment)
		self->s->block_bytes = LARGE_BYTES;
	ASSERT_EQ(0, store_open(self->s, variant->policy, variant->blocks, DRAM_BYTES,
				variant->how.segment ? SMALL_DISK :
				variant->nr_tiers > 1 ? DISK_BYTES : 0));
	make_trace(&self->s->t);
	self->s->next_ms = kvt_same_next(&self->s->t);
	ASSERT_NE(NULL, self->s->next_ms);
}

FIXTURE_TEARDOWN(same)
{
	EXPECT_EQ(0, store_close(self->s));
}

TEST_F_TIMEOUT(same, decisions, 600)
{
	struct kvt_same want;

	ASSERT_EQ(0, kvt_same_run(&self->s->t, variant->policy, variant->blocks, variant->nr_tiers,
				  &variant->how, &want));
	compare(_metadata, self->s, &want, LEN_MAX);
	/* A trace on which there was nothing to decide would show nothing. */
	EXPECT_LT(100, want.hits);
	EXPECT_LT(100, want.evictions);
	if (variant->nr_tiers > 1) {
		EXPECT_LT(40, want.promotions);
		EXPECT_LT(100, want.demotions);
	}
}

/* --- traces of others ----------------------------------------------------------------------- */

#define TRACE_REQUESTS		200
#define TRACE_REQUESTS_LONG	2000
#define WRITTEN_MAX		90000u	/* blocks: the disk is in the machine's memory */
#define FAST_PERCENT		2
#define SLOW_PERCENT		8

FIXTURE(traces)
{
	struct store *s;
	struct kvt_same want;
	unsigned int blocks[TIERS];
};

FIXTURE_VARIANT(traces)
{
	const char *policy;
	bool segments;
};

FIXTURE_VARIANT_ADD(traces, lru) { .policy = "lru" };
FIXTURE_VARIANT_ADD(traces, reuse) { .policy = "reuse" };
FIXTURE_VARIANT_ADD(traces, reuse_segments) { .policy = "reuse", .segments = true };

static unsigned int requests_wanted(void)
{
	const char *nr = getenv("KVT_SAME_REQUESTS");

	return nr ? (unsigned int)atoi(nr) :
		    (unsigned int)kvt_env_rounds(TRACE_REQUESTS, TRACE_REQUESTS_LONG);
}

static unsigned int longest(const struct kvt_same_trace *t)
{
	unsigned int i, nr, max = 0;

	for (i = 0; i < t->nr; i++) {
		nr = t->first[i + 1] - t->first[i];
		max = nr > max ? nr : max;
	}
	return max;
}

static __u64 whole_pieces(__u64 bytes)
{
	return (bytes + KVT_PIECE - 1) / KVT_PIECE * KVT_PIECE;
}

/* What is to come out, of as many requests as there is a disk for. 0 or -errno */
static int foresee(struct store *s, const char *policy, unsigned int distinct,
		   unsigned int *blocks, bool segments, struct kvt_same *want)
{
	int err;

	blocks[0] = distinct * FAST_PERCENT / 100 + 1;
	blocks[1] = distinct * SLOW_PERCENT / 100 + 1;
	s->log_blocks = 2 * blocks[1];
	s->how.segment = segments ? blocks[1] / 4 + 1 : 0;
	do
		err = kvt_same_run(&s->t, policy, blocks, TIERS, &s->how, want);
	while (!err && !segments && want->written > WRITTEN_MAX && (s->t.nr /= 2));
	return err;
}

FIXTURE_SETUP(traces)
{
	const char *name = getenv("KVT_SAME_TRACE");
	__u64 dram_bytes, disk_bytes, tight, round;
	unsigned int most, loaded;
	int distinct;

	if (!is_test_build())
		SKIP(return, "the module is not a test build");
	if (!name)
		SKIP(return, "no trace is given");
	self->s = store_new();
	ASSERT_NE(NULL, self->s);
	distinct = kvt_same_load(name, requests_wanted(), &self->s->t);
	ASSERT_LT(0, distinct);
	self->s->how = (struct kvt_same_how)PIECES;
	loaded = self->s->t.nr;
	ASSERT_EQ(0, foresee(self->s, variant->policy, distinct, self->blocks,
			     variant->segments, &self->want));
	printf("# %s%s: %u requests, %llu blocks written\n", variant->policy,
	       variant->segments ? " in segments" : "", self->s->t.nr, self->want.written);
	/* Of a few there would be nothing to decide. */
	ASSERT_LE(loaded / 4, self->s->t.nr);
	most = longest(&self->s->t);
	ASSERT_GE(KVTIER_BATCH_MAX, most);
	/* A request is all in memory for a moment, beside what was there. */
	dram_bytes = whole_pieces(2ull * (self->blocks[0] + most) * BLOCK_BYTES);
	disk_bytes = DISK_BYTES + whole_pieces(self->want.written * LOG_BYTES);
	if (variant->segments) {
		/*
		 * What the tier holds and a request, for a moment: nothing goes while half is free.
		 * But tight enough that a cleaner that gains nothing is never done.
		 */
		tight = 5ull * (self->blocks[1] + most) * BLOCK_BYTES / 2;
		round = SMALL_DISK + (__u64)self->s->log_blocks * BLOCK_BYTES;
		disk_bytes = round < TIGHT_DISK ? round : TIGHT_DISK;
		disk_bytes = whole_pieces(disk_bytes > tight ? disk_bytes : tight);
	}
	ASSERT_EQ(0, store_open(self->s, variant->policy, self->blocks, DRAM_BYTES + dram_bytes,
				disk_bytes));
}

FIXTURE_TEARDOWN(traces)
{
	EXPECT_EQ(0, store_close(self->s));
}

TEST_F_TIMEOUT(traces, decisions, 3600)
{
	struct kvt_same_how whole = { .segment = self->s->how.segment };
	struct kvt_same same;

	/*
	 * A request in pieces comes to what it does in one; but LRU has them in line one behind
	 * the other for a while, and not always the same blocks in memory.
	 */
	ASSERT_EQ(0, kvt_same_run(&self->s->t, variant->policy, self->blocks, TIERS, &whole, &same));
	EXPECT_EQ(same.hits, self->want.hits);
	if (strcmp(variant->policy, "lru"))
		EXPECT_EQ(same.demotions, self->want.demotions);
	EXPECT_EQ(same.evictions, self->want.evictions);
	compare(_metadata, self->s, &self->want, self->blocks[0] + self->blocks[1]);
	EXPECT_LT(0, self->want.hits);
	EXPECT_LT(0, self->want.demotions);
	EXPECT_LT(0, self->want.evictions);
}

TEST_HARNESS_MAIN
