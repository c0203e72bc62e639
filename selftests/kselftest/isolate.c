// SPDX-License-Identifier: GPL-2.0
/*
 * A tenant who stays within what it is guaranteed has as many hits beside one who scans as
 * with that much memory alone; and so has one with a weight, within its part.
 *
 * ALICE serves conversations: requests that begin with what was said before, and one of a
 * few system prompts. After each of them BOB stores blocks that nobody ever asks for; or that
 * he himself does ask for, so that they seem worth more than hers.
 *
 * The policy "reuse" goes by the time between uses, from a quarter of a second on. Here that
 * would be less, and more beside BOB, who takes time as well. So its clock is set: a module
 * without hooks for tests is asked about the other policy only.
 */
#include "kvt_test.h"

#define CLOCK		"now_ms"
#define BLOCK		(4 * KVT_KIB)
#define GUARANTEE	(24 * KVT_MIB)
#define MORE		(8 * KVT_MIB)
#define PART		(18 * KVT_MIB)	/* of the sum, by weight */
#define PROMPTS		4
#define PROMPT		16		/* blocks */
#define TURN		16		/* that a turn adds */
#define LONGEST		160
#define SESSIONS	64		/* at a time */
#define PAIRS		3		/* of runs that are compared */
#define RECENT		8		/* of these, who are likely to go on */
#define SCAN		64		/* blocks that BOB stores after each request */
#define AGAIN		8		/* times that he asks for some of them */
#define AMONG		48		/* of the last so many requests */
#define PAUSE_MS	2000		/* between ALICE's requests */
#define LARGE		(1 * KVT_MIB)	/* block, one in a region */
#define LARGE_NR	32		/* in the tier */
#define LARGE_CHAIN	4
#define LARGE_BOBS	6		/* chains, below the watermarks */
#define BOBS_NR		16		/* of twice as large ones, of as many */
#define SET_PROMPT	400
#define SET_SESSION	1000
#define SET_SCAN	399

struct session {
	__u32 id;
	__u32 nr;		/* blocks */
};

/* ALICE's conversations, most recent first. The same in each run. */
struct workload {
	unsigned int seed;
	__u32 next_id;
	struct session s[SESSIONS];
};

/* What she has, and what protects it. */
struct room {
	const char *policy;
	__u64 bytes;
	__u64 guaranteed_bytes;
	__u32 block_bytes;	/* 0: BLOCK */
	__u32 weight;
	bool scan;
	bool again;		/* BOB asks for what he has stored */
};

struct result {
	__u64 asked;
	__u64 hits;
	__u64 bobs;		/* BOB's hits */
	__u64 cut_short;
	__u64 failed;
};

FIXTURE(isolate)
{
	struct kvt_key keys[LONGEST + TURN];
	struct kvtier_block_result res[LONGEST + TURN];
	__u64 handle[LONGEST + TURN];
	struct kvt_pool pool;
	struct kvt_client alice;
	struct kvt_client bob;
	bool clock;		/* can be set */
};

FIXTURE_VARIANT(isolate)
{
	const char *policy;
};

FIXTURE_VARIANT_ADD(isolate, lru) { .policy = "lru" };
FIXTURE_VARIANT_ADD(isolate, reuse) { .policy = "reuse" };

FIXTURE_SETUP(isolate)
{
	self->clock = kvt_hook(CLOCK);
	if (!self->clock && !strcmp(variant->policy, "reuse"))
		SKIP(return, "this module's clock cannot be set");
}

FIXTURE_TEARDOWN(isolate)
{
	/* Also if a test has ended in the middle. */
	if (self->clock)
		kvt_hook_number(CLOCK, 0);
}

static void begin(struct workload *w, struct session *s)
{
	s->id = w->next_id++;
	s->nr = PROMPT + TURN;
}

/* Whose turn it is: it comes to the front. */
static struct session *turn(struct workload *w)
{
	int among = rand_r(&w->seed) % 2 ? RECENT : SESSIONS, i = rand_r(&w->seed) % among;
	struct session s = w->s[i];

	memmove(&w->s[1], &w->s[0], i * sizeof(s));
	s.nr += TURN;
	if (s.nr > LONGEST || rand_r(&w->seed) % 12 == 0)
		begin(w, &s);
	w->s[0] = s;
	return &w->s[0];
}

static void ask(FIXTURE_DATA(isolate) *self, const struct session *s, struct result *r)
{
	int hits, stored, i;

	kvt_keys(self->keys, SET_PROMPT + s->id % PROMPTS, 0, PROMPT);
	kvt_keys(self->keys + PROMPT, SET_SESSION + s->id, 0, s->nr - PROMPT);
	hits = kvt_get(self->alice.fd, 0, 0, self->keys, s->nr, self->res, 0);
	for (i = 0; i < hits; i++)
		self->handle[i] = self->res[i].handle;
	if (hits < 0 || (hits && kvt_release(self->alice.fd, self->handle, hits, NULL) != hits)) {
		r->failed++;
		return;
	}
	r->asked += s->nr;
	r->hits += hits;
	stored = kvt_put(&self->alice, KVTIER_RESERVE_WAIT, 0, self->keys, NULL, s->nr);
	r->failed += stored < 0;
	/* What was there may leave before what extends it comes. Then it is missed next time. */
	r->cut_short += stored >= 0 && stored != (int)s->nr;
}

static int set_weight(FIXTURE_DATA(isolate) *self, const char *weight)
{
	return kvt_ns_set(&self->pool, &self->alice, "weight", weight);
}

static int open_both(FIXTURE_DATA(isolate) *self, const struct room *room)
{
	struct kvtier_group group = { .block_bytes = room->block_bytes ?: BLOCK };
	struct kvtier_ns_open a;
	int fd = kvt_open(&self->pool), err;
	char weight[16];

	kvt_ns_args(&a, "alice", &group, 1);
	a.min_bytes = room->guaranteed_bytes;
	err = kvt_client_bind(&self->alice, fd, &a);
	snprintf(weight, sizeof(weight), "%u", room->weight);
	/* What it was before counts no more. */
	if (!err && room->weight)
		err = set_weight(self, "10000") ?: set_weight(self, weight);
	return err ? err : kvt_client_open(&self->pool, &self->bob, "bob", group.block_bytes);
}

/* BOB asks for one of his chains. How many blocks of it he has got; -1: that went wrong. */
static int ask_again(FIXTURE_DATA(isolate) *self, unsigned int i, unsigned int nr)
{
	int hits, k;

	kvt_keys(self->keys, SET_SCAN, (__u64)i * nr, nr);
	hits = kvt_get(self->bob.fd, 0, 0, self->keys, nr, self->res, 0);
	for (k = 0; k < hits; k++)
		self->handle[k] = self->res[k].handle;
	return hits > 0 && kvt_release(self->bob.fd, self->handle, hits, NULL) != hits ? -1 : hits;
}

/* What BOB does after ALICE's request @i. Whether it went well. */
static bool crowd(FIXTURE_DATA(isolate) *self, unsigned int *seed, unsigned int i, bool again,
		  struct result *r)
{
	int n, hits;

	kvt_keys(self->keys, SET_SCAN, (__u64)i * SCAN, SCAN);
	if (kvt_put(&self->bob, KVTIER_RESERVE_WAIT, 0, self->keys, NULL, SCAN) <= 0)
		return false;
	for (n = 0; again && n < AGAIN; n++) {
		hits = ask_again(self, i - rand_r(seed) % (i < AMONG ? i + 1 : AMONG), SCAN);
		if (hits < 0)
			return false;
		r->bobs += hits;
	}
	return true;
}

/* Her requests in so much memory; the first third finds it empty and does not count. */
static int serve(FIXTURE_DATA(isolate) *self, const struct room *room, struct result *r)
{
	int nr = kvt_env_rounds(400, 1500), i;
	struct workload w = { .seed = 7 };
	unsigned int seed = 8;

	for (i = 0; i < SESSIONS; i++)
		begin(&w, &w.s[i]);
	for (i = 0; i < nr; i++) {
		if (i == nr / 3)
			*r = (struct result){ .failed = r->failed, .cut_short = r->cut_short };
		if (self->clock)
			r->failed += kvt_hook_number(CLOCK, (i + 1ULL) * PAUSE_MS) != 0;
		ask(self, turn(&w), r);
		r->failed += room->scan && !crowd(self, &seed, i, room->again, r);
	}
	return r->failed || r->cut_short > (__u64)nr / 50 ? -EIO : 0;
}

/* Hits of a thousand, or -errno. */
static int rate(FIXTURE_DATA(isolate) *self, const struct room *room)
{
	struct result r = { 0 };
	int err = kvt_setup(&self->pool);

	if (!err)
		err = kvt_sysfs_write(&self->pool, "policy", room->policy);
	if (!err && kvt_tier_dram(&self->pool, 0, room->bytes) < 0)
		err = -ENOMEM;
	if (!err)
		err = open_both(self, room);
	if (!err)
		err = serve(self, room, &r);
	kvt_client_close(&self->alice);
	kvt_client_close(&self->bob);
	if (kvt_teardown(&self->pool) && !err)
		err = -EBUSY;
	if (!err && room->again && !r.bobs)
		err = -ENODATA;
	printf("# %s, %llu MiB, %llu guaranteed, weight %u%s: %llu of %llu, %llu cut short, %llu failed\n",
	       room->policy, (unsigned long long)(room->bytes / KVT_MIB),
	       (unsigned long long)(room->guaranteed_bytes / KVT_MIB), room->weight,
	       room->again ? ", beside a crowd" : room->scan ? ", beside a scan" : "",
	       (unsigned long long)r.hits,
	       (unsigned long long)r.asked, (unsigned long long)r.cut_short,
	       (unsigned long long)r.failed);
	fflush(stdout);
	return err ? err : (int)(r.hits * 1000 / r.asked);
}

/*
 * Is it no more than a point worse in @beside than in @alone. The worker does what it does when
 * it does it, so no two runs are the same: they are compared by what several have together.
 */
static bool no_worse(FIXTURE_DATA(isolate) *self, const struct room *alone,
		     const struct room *beside, int *with)
{
	int sum = 0, i, a, b;

	*with = 1000;
	for (i = 0; i < PAIRS; i++) {
		a = rate(self, alone);
		b = rate(self, beside);
		if (a <= 0 || a >= 1000 || b <= 0)
			return false;
		*with = a < *with ? a : *with;
		sum += a - b;
	}
	return sum <= 10 * PAIRS;
}

/* And that it would be, without what protects her. */
static bool else_worse(FIXTURE_DATA(isolate) *self, const struct room *beside, int with)
{
	struct room room = *beside;
	int without;

	room.guaranteed_bytes = 0;
	room.weight = 0;
	without = rate(self, &room);
	return without > 0 && without < with - 10;
}

TEST_F_TIMEOUT(isolate, hits_beside_a_scan, 3000)
{
	const struct room alone = { .policy = variant->policy, .bytes = GUARANTEE };
	const struct room beside = {
		.policy = variant->policy, .bytes = GUARANTEE + MORE,
		.guaranteed_bytes = GUARANTEE, .scan = true,
	};
	int with;

	ASSERT_TRUE(no_worse(self, &alone, &beside, &with));
	/* The other policy knows a scan when it sees one. */
	if (!strcmp(variant->policy, "lru"))
		EXPECT_TRUE(else_worse(self, &beside, with));
}

/* What BOB has is used more often than what she has. */
TEST_F_TIMEOUT(isolate, hits_beside_a_crowd, 3000)
{
	const struct room alone = { .policy = variant->policy, .bytes = GUARANTEE };
	const struct room beside = {
		.policy = variant->policy, .bytes = GUARANTEE + MORE,
		.guaranteed_bytes = GUARANTEE, .scan = true, .again = true,
	};
	int with;

	ASSERT_TRUE(no_worse(self, &alone, &beside, &with));
	EXPECT_TRUE(else_worse(self, &beside, with));
}

/* Weight 300 of 400 is three quarters of what is shared, which is three quarters of all. */
TEST_F_TIMEOUT(isolate, weight_beside_a_scan, 3000)
{
	const struct room alone = { .policy = variant->policy, .bytes = PART };
	const struct room beside = {
		.policy = variant->policy, .bytes = GUARANTEE + MORE, .weight = 300, .scan = true,
	};
	int with;

	ASSERT_TRUE(no_worse(self, &alone, &beside, &with));
	/* The other one sees for itself that a scan is worth nothing. */
	if (!strcmp(variant->policy, "lru"))
		EXPECT_TRUE(else_worse(self, &beside, with));
}

/*
 * One after the other, each of which is there at once; or a beginning of it, where its own
 * beginning is the least there is before what extends it comes. Whether it went well.
 */
static bool store_large(struct kvt_client *c, __u32 set, int chains, int at_least)
{
	struct kvt_key keys[LARGE_CHAIN];
	int i;

	for (i = 0; i < chains; i++) {
		kvt_keys(keys, set, (__u64)i * LARGE_CHAIN, LARGE_CHAIN);
		if (kvt_put(c, KVTIER_RESERVE_WAIT, 0, keys, NULL, LARGE_CHAIN) < at_least)
			return false;
	}
	return true;
}

/* How she comes to what is hers, in blocks. */
struct filling {
	const char *watermark;	/* 100: nothing leaves before somebody waits for its room */
	int first;		/* in the first tier; the rest is in a second one, if there is any */
	int guaranteed;
	int stored;
};

/* Though all that others have is used again and again, and none of hers, she has what is hers. */
static void fill_guarantee(struct __test_metadata *_metadata, FIXTURE_DATA(isolate) *self,
			   const char *policy, const struct filling *f)
{
	const struct room room = {
		.policy = policy, .bytes = LARGE_NR * LARGE, .block_bytes = LARGE,
		.guaranteed_bytes = f->guaranteed * LARGE,
	};
	int i, k;

	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "policy", room.policy));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "watermark_high_percent", f->watermark));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, f->first * LARGE));
	if (f->first < LARGE_NR)
		ASSERT_LE(0, kvt_tier_dram(&self->pool, 1, (LARGE_NR - f->first) * LARGE));
	ASSERT_EQ(0, open_both(self, &room));
	ASSERT_TRUE(store_large(&self->bob, SET_SCAN, LARGE_BOBS, LARGE_CHAIN));
	for (i = 1; i <= 20; i++) {
		if (self->clock)
			ASSERT_EQ(0, kvt_hook_number(CLOCK, (__u64)i * PAUSE_MS));
		for (k = 0; k < LARGE_BOBS; k++)
			ASSERT_LE(0, ask_again(self, k, LARGE_CHAIN));
	}
	ASSERT_TRUE(store_large(&self->alice, SET_SESSION, f->stored / LARGE_CHAIN, 1));
	EXPECT_LE(room.guaranteed_bytes - LARGE,
		  kvt_ns_number(&self->pool, &self->alice, "used_bytes"));
	kvt_client_close(&self->alice);
	kvt_client_close(&self->bob);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

TEST_F(isolate, guarantee_is_filled)
{
	const struct filling f = {
		.watermark = "92", .first = LARGE_NR,
		.guaranteed = LARGE_NR / 2, .stored = LARGE_NR,
	};

	fill_guarantee(_metadata, self, variant->policy, &f);
}

TEST_F(isolate, guarantee_is_filled_when_all_is_full)
{
	const struct filling f = {
		.watermark = "100", .first = LARGE_NR,
		.guaranteed = LARGE_NR / 2, .stored = LARGE_NR,
	};

	fill_guarantee(_metadata, self, variant->policy, &f);
}

/* Beyond it many of hers go down at a time, and as many out: she stores no more here, and below. */
TEST_F(isolate, guarantee_is_filled_when_both_tiers_are_full)
{
	const struct filling f = {
		.watermark = "100", .first = LARGE_NR / 2,
		.guaranteed = LARGE_NR / 2, .stored = LARGE_NR / 2,
	};

	fill_guarantee(_metadata, self, variant->policy, &f);
}

/* The first tier is all hers before she has what is guaranteed to her. */
TEST_F(isolate, guarantee_is_filled_beyond_one_tier)
{
	const struct filling f = {
		.watermark = "100", .first = LARGE_NR / 4,
		.guaranteed = LARGE_NR / 4 * 3, .stored = LARGE_NR / 4 * 3,
	};

	fill_guarantee(_metadata, self, variant->policy, &f);
}

/*
 * She has less than what is guaranteed to her, and all that others have is in use: her own go,
 * though they are of another group.
 */
TEST_F(isolate, own_go_if_others_cannot)
{
	struct kvtier_group group[2] = {
		{ .block_bytes = 2 * LARGE }, { .block_bytes = LARGE },
	};
	struct kvtier_ns_open a;
	int fd, i;

	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "policy", variant->policy));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "watermark_high_percent", "100"));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, LARGE_NR * 2 * LARGE));
	ASSERT_LE(0, fd = kvt_open(&self->pool));
	kvt_ns_args(&a, "alice", group, 2);
	a.min_bytes = (LARGE_NR - BOBS_NR + 5) * 2 * LARGE;
	ASSERT_EQ(0, kvt_client_bind(&self->alice, fd, &a));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->bob, "bob", 2 * LARGE));
	kvt_keys(self->keys, SET_SCAN, 0, BOBS_NR);
	ASSERT_EQ(BOBS_NR, kvt_put(&self->bob, 0, 0, self->keys, NULL, BOBS_NR));
	ASSERT_EQ(BOBS_NR, kvt_get(self->bob.fd, 0, 0, self->keys, BOBS_NR, self->res, 0));
	/* All the rest, each a chain of its own, until one of them goes for the next. */
	for (i = 0; !kvt_ns_number(&self->pool, &self->alice, "evictions"); i++) {
		ASSERT_GT(LARGE_NR, i);
		kvt_keys(self->keys, SET_SESSION + i, 0, 1);
		ASSERT_EQ(1, kvt_put(&self->alice, KVTIER_RESERVE_WAIT, 0, self->keys, NULL, 1));
	}
	EXPECT_EQ(1, kvt_ns_number(&self->pool, &self->alice, "evictions"));
	kvt_keys(self->keys, SET_PROMPT, 0, 1);
	EXPECT_EQ(1, kvt_put(&self->alice, KVTIER_RESERVE_WAIT, 1, self->keys, NULL, 1));
	EXPECT_LE(2, kvt_ns_number(&self->pool, &self->alice, "evictions"));
	kvt_client_close(&self->alice);
	kvt_client_close(&self->bob);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

static int ask_alice(FIXTURE_DATA(isolate) *self, int chain)
{
	int hits, k;

	kvt_keys(self->keys, SET_SESSION + chain, 0, TURN);
	hits = kvt_get(self->alice.fd, 0, 0, self->keys, TURN, self->res, 0);
	for (k = 0; k < hits; k++)
		self->handle[k] = self->res[k].handle;
	return hits > 0 && kvt_release(self->alice.fd, self->handle, hits, NULL) != hits ? -1 : hits;
}

/*
 * She has more than is guaranteed to her, but by less than a region. What is beyond goes for BOB,
 * who waits for one, the oldest first, and not what is beside it in memory. Between watermarks the
 * worker would be before him, or not, as it comes.
 */
TEST_F(isolate, oldest_go_beyond_a_guarantee)
{
	const struct room room = {
		.policy = variant->policy, .bytes = 2 * MORE, .guaranteed_bytes = MORE,
	};
	int chains = (MORE + MORE / 8) / (TURN * BLOCK), hot = 0, i;
	struct result r = { 0 };
	unsigned int seed = 8;

	if (strcmp(variant->policy, "lru"))
		SKIP(return, "one policy is enough");
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "policy", room.policy));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "watermark_high_percent", "100"));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, room.bytes));
	ASSERT_EQ(0, open_both(self, &room));
	for (i = 0; i < chains; i++) {
		kvt_keys(self->keys, SET_SESSION + i, 0, TURN);
		ASSERT_EQ(TURN, kvt_put(&self->alice, KVTIER_RESERVE_WAIT, 0, self->keys, NULL, TURN));
	}
	/* Less than what is guaranteed, and all over her memory. */
	for (i = 0; i < chains; i += 2)
		ASSERT_EQ(TURN, ask_alice(self, i));
	for (i = 0; i < (int)(2 * MORE / (SCAN * BLOCK)); i++)
		ASSERT_TRUE(crowd(self, &seed, i, false, &r));
	for (i = 0; i < chains; i += 2)
		hot += ask_alice(self, i);
	EXPECT_LT(0, kvt_ns_number(&self->pool, &self->alice, "evictions"));
	EXPECT_EQ(TURN * ((chains + 1) / 2), hot);
	kvt_client_close(&self->alice);
	kvt_client_close(&self->bob);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

/* A number up to 10000, and it goes with its namespace. */
TEST_F(isolate, weights)
{
	const struct room room = { .weight = 1, };

	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, GUARANTEE));
	ASSERT_EQ(0, open_both(self, &room));
	EXPECT_EQ(0, set_weight(self, "10000"));
	EXPECT_EQ(-ERANGE, set_weight(self, "10001"));
	EXPECT_EQ(-ERANGE, set_weight(self, "4294967296"));
	EXPECT_EQ(-EINVAL, set_weight(self, "-1"));
	EXPECT_EQ(-EINVAL, set_weight(self, "much"));
	EXPECT_EQ(10000, kvt_ns_number(&self->pool, &self->alice, "weight"));
	kvt_client_close(&self->alice);
	kvt_client_close(&self->bob);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

TEST_HARNESS_MAIN
