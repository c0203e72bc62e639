// SPDX-License-Identifier: GPL-2.0
/*
 * SESSION: what a decoding session's chain is spared, what it costs, and when that ends.
 */
#include "kvt_test.h"

#define BLOCK_BYTES	(32 * KVT_KIB)
#define TIER_BYTES	(8 * KVT_MIB)
#define SLOTS		((int)(TIER_BYTES / BLOCK_BYTES))
#define LIMIT		(SLOTS / 2)	/* blocks that a namespace may pin */
#define CHAIN		8
#define SET		77
#define PUSHES		(3 * SLOTS / CHAIN / 2)	/* chains: more than memory has room for */
#define REST		1000		/* chains from there on are there to push others out */

FIXTURE(session)
{
	struct kvt_pool pool;
	struct kvt_client c;
};

FIXTURE_SETUP(session)
{
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, TIER_BYTES));
	/* The order in which blocks go is to be known. */
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "policy", "lru"));
	/* As much as may be pinned is stored in one piece, beside others. */
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "reserve_percent", "100"));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "session", BLOCK_BYTES));
}

FIXTURE_TEARDOWN(session)
{
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

/* Block @i of chain @chain. */
static struct kvt_key key_of(int chain, int i)
{
	return kvt_key(SET, (__u64)chain * 4096 + i);
}

/*
 * Store blocks as they come: what is in them is of no interest here. How many are there
 * now, or -errno.
 */
static int store(const struct kvt_client *c, const struct kvt_key *keys,
		 const struct kvt_key *parent, int nr)
{
	struct kvtier_block_result res[2 * LIMIT];
	__u64 handle[2 * LIMIT];
	int i, n = 0, have = 0;
	int ret = kvt_reserve(c->fd, KVTIER_RESERVE_WAIT, 0, keys, parent, nr, res, 10 * KVT_SEC);

	if (ret < 0)
		return ret;
	for (i = 0; i < nr; i++) {
		if (res[i].status == KVTIER_ST_RESERVED)
			handle[n++] = res[i].handle;
		have += res[i].status == KVTIER_ST_EXISTS;
	}
	ret = n ? kvt_commit(c->fd, 0, handle, n, res) : 0;
	return ret < 0 ? ret : have + ret;
}

static int put(const struct kvt_client *c, int chain, int first, int nr)
{
	struct kvt_key keys[2 * LIMIT], parent;

	kvt_keys(keys, SET, (__u64)chain * 4096 + first, nr);
	if (first)
		parent = key_of(chain, first - 1);
	return store(c, keys, first ? &parent : NULL, nr);
}

static int there(const struct kvt_client *c, int chain, int nr)
{
	struct kvt_key keys[2 * LIMIT];

	kvt_keys(keys, SET, (__u64)chain * 4096, nr);
	return kvt_lookup(c->fd, 0, keys, nr, NULL);
}

static int drop(const struct kvt_client *c, int chain, int nr)
{
	struct kvt_key keys[2 * LIMIT];

	kvt_keys(keys, SET, (__u64)chain * 4096, nr);
	return kvt_drop(c->fd, 0, keys, nr, NULL);
}

static int decode(const struct kvt_client *c, __u64 id, int chain, int i)
{
	struct kvt_key tip = key_of(chain, i);

	return kvt_session(c->fd, 0, id, KVTIER_SESSION_DECODING, &tip, 0);
}

static int rest(const struct kvt_client *c, __u64 id, __u32 state)
{
	return kvt_session(c->fd, 0, id, state, NULL, 0);
}

/* Enough to push out all that can go. */
static int push(const struct kvt_client *c, int from)
{
	int i;

	for (i = 0; i < PUSHES; i++) {
		if (put(c, from + i, 0, CHAIN) != CHAIN)
			return -1;
	}
	return 0;
}

/* Can the namespace pin as much as it may: nothing is charged to it any more. */
static int limit_is_free(const struct kvt_client *c)
{
	struct kvt_key keys[LIMIT];
	int n;

	kvt_keys(keys, SET, 999ull * 4096, LIMIT);
	if (store(c, keys, NULL, LIMIT) != LIMIT)
		return -1;
	n = kvt_advise(c->fd, 0, keys, LIMIT, KVTIER_ADV_PIN, 0, NULL);
	kvt_advise(c->fd, 0, keys, LIMIT, KVTIER_ADV_UNPIN, 0, NULL);
	kvt_drop(c->fd, 0, keys, LIMIT, NULL);
	return n == LIMIT;
}

/* Also what was committed on its tip since. */
TEST_F(session, decoding_chain_stays)
{
	ASSERT_EQ(CHAIN, put(&self->c, 0, 0, CHAIN));
	ASSERT_EQ(0, decode(&self->c, 1, 0, CHAIN - 1));
	ASSERT_EQ(CHAIN, put(&self->c, 0, CHAIN, CHAIN));
	ASSERT_EQ(CHAIN, put(&self->c, 1, 0, CHAIN));
	ASSERT_EQ(0, push(&self->c, REST));
	EXPECT_EQ(2 * CHAIN, there(&self->c, 0, 2 * CHAIN));
	EXPECT_EQ(0, there(&self->c, 1, CHAIN));
	ASSERT_EQ(0, rest(&self->c, 1, KVTIER_SESSION_IDLE));
	ASSERT_EQ(0, push(&self->c, 2 * REST));
	EXPECT_EQ(0, there(&self->c, 0, 2 * CHAIN));
	EXPECT_EQ(1, limit_is_free(&self->c));
}

/*
 * Neither does it give way to its own namespace's quota, where the owner's oldest blocks
 * are looked for.
 */
TEST_F(session, stays_within_a_quota)
{
	static const char *const policies[] = { "lru", "reuse" };
	struct kvtier_group g = { .block_bytes = BLOCK_BYTES };
	struct kvtier_ns_open a;
	struct kvt_client few;
	struct kvtier_stat st;
	size_t i;

	kvt_ns_args(&a, "few", &g, 1);
	a.quota_bytes = 4 * CHAIN * BLOCK_BYTES;
	ASSERT_EQ(0, kvt_client_bind(&few, kvt_open(&self->pool), &a));
	for (i = 0; i < KVT_ARRAY(policies); i++) {
		ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "policy", policies[i]));
		ASSERT_EQ(CHAIN, put(&few, i, 0, CHAIN));
		ASSERT_EQ(0, decode(&few, 1, i, CHAIN - 1));
		ASSERT_EQ(0, push(&few, (i + 1) * REST));
		EXPECT_EQ(CHAIN, there(&few, i, CHAIN)) TH_LOG("%s", policies[i]);
	}
	ASSERT_EQ(0, kvt_stat(few.fd, 0, &st));
	EXPECT_LT(2 * SLOTS, (int)st.evictions);
	EXPECT_EQ(4 * CHAIN, (int)st.nr_blocks);
	kvt_client_close(&few);
}

/* Nor to a system that is short of memory. */
TEST_F(session, stays_when_memory_goes)
{
	char buf[32] = "";

	ASSERT_EQ(CHAIN, put(&self->c, 0, 0, CHAIN));
	ASSERT_EQ(0, decode(&self->c, 1, 0, CHAIN - 1));
	ASSERT_EQ(0, push(&self->c, REST));
	EXPECT_TRUE(KVT_UNTIL(20000, kvt_sh("echo 2 > /proc/sys/vm/drop_caches") == 0 &&
			      kvt_sysfs_read(&self->pool, "tiers/dram0/absent_bytes", buf,
					     sizeof(buf)) > 0 &&
			      strtoull(buf, NULL, 10) >= TIER_BYTES / 2));
	EXPECT_EQ(CHAIN, there(&self->c, 0, CHAIN));
}

/*
 * Nor is it thrown away because it is worth little: what goes down past a device that is
 * full is asked for its worth.
 */
TEST_F(session, stays_where_worth_counts)
{
	struct kvt_key tip;
	char left[32] = "";
	int i;

	if (!kvt_env_bdev())
		SKIP(return, "no block device to use (KVT_BDEV)");
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "policy", "reuse"));
	ASSERT_LE(0, kvt_tier_bdev(&self->pool, 1, 24 * KVT_MIB));
	for (i = 0; i < 8; i++) {
		ASSERT_EQ(CHAIN, put(&self->c, i, 0, CHAIN));
		ASSERT_EQ(0, decode(&self->c, i + 1, i, CHAIN - 1));
		tip = key_of(i, CHAIN - 1);
		/* It is over, says another session: worth nothing, and wanted all the same. */
		ASSERT_EQ(0, kvt_session(self->c.fd, 0, 100, KVTIER_SESSION_DONE,
					 &tip, 0));
	}
	/* Until it was, and some was not worth it. */
	for (i = 1; i <= 4 || (i <= 40 && strtoull(left, NULL, 10) == 0); i++) {
		ASSERT_EQ(0, push(&self->c, i * REST));
		ASSERT_LT(0, kvt_sysfs_read(&self->pool, "tiers/dram0/evicted_worth", left,
					    sizeof(left)));
	}
	EXPECT_LT(0, (int)strtoull(left, NULL, 10));
	for (i = 0; i < 8; i++)
		EXPECT_EQ(CHAIN, there(&self->c, i, CHAIN)) TH_LOG("chain %d", i);
}

/* An idle session is known by its number; its tip may be gone. */
TEST_F(session, idle_goes_on)
{
	ASSERT_EQ(CHAIN, put(&self->c, 0, 0, CHAIN));
	ASSERT_EQ(0, decode(&self->c, 1, 0, CHAIN - 1));
	ASSERT_EQ(0, rest(&self->c, 1, KVTIER_SESSION_IDLE));
	ASSERT_EQ(0, kvt_session(self->c.fd, 0, 1, KVTIER_SESSION_DECODING, NULL, 0));
	ASSERT_EQ(0, push(&self->c, REST));
	EXPECT_EQ(CHAIN, there(&self->c, 0, CHAIN));
	ASSERT_EQ(0, kvt_session(self->c.fd, 0, 1, KVTIER_SESSION_IDLE, NULL, KVT_SEC));
	ASSERT_EQ(CHAIN, drop(&self->c, 0, CHAIN));
	EXPECT_EQ(-ENOENT, kvt_session(self->c.fd, 0, 1, KVTIER_SESSION_DECODING, NULL, 0));
	EXPECT_EQ(0, rest(&self->c, 1, KVTIER_SESSION_DONE));
	EXPECT_EQ(-EINVAL, rest(&self->c, 1, KVTIER_SESSION_DONE));
	EXPECT_EQ(-EINVAL, kvt_session(self->c.fd, 0, 1, KVTIER_SESSION_DECODING, NULL, 0));
}

/* Who asks for more than he may pin is refused, and nobody else; what he has, he keeps. */
TEST_F(session, limit)
{
	int i, nr = LIMIT / CHAIN;
	struct kvt_client other;

	ASSERT_EQ(0, kvt_client_open(&self->pool, &other, "other", BLOCK_BYTES));
	for (i = 0; i <= nr; i++)
		ASSERT_EQ(CHAIN, put(&self->c, i, 0, CHAIN));
	for (i = 0; i < nr; i++)
		ASSERT_EQ(0, decode(&self->c, i + 1, i, CHAIN - 1)) TH_LOG("session %d", i);
	EXPECT_EQ(-ENOSPC, decode(&self->c, nr + 1, nr, CHAIN - 1));
	/* The number is not taken by that. */
	EXPECT_EQ(-EINVAL, rest(&self->c, nr + 1, KVTIER_SESSION_DONE));
	/* One that asks for another chain without success keeps its own. */
	ASSERT_EQ(CHAIN, put(&self->c, nr, CHAIN, CHAIN));
	EXPECT_EQ(-ENOSPC, decode(&self->c, 1, nr, 2 * CHAIN - 1));
	ASSERT_EQ(CHAIN, put(&other, 500, 0, CHAIN));
	EXPECT_EQ(0, decode(&other, 1, 500, CHAIN - 1));
	/* What cannot be paid for is no part of it: committing works all the same. */
	EXPECT_EQ(1, put(&self->c, 0, CHAIN, 1));
	/* Who wants to know asks for it by its new end. */
	EXPECT_EQ(-ENOSPC, decode(&self->c, 1, 0, CHAIN));
	ASSERT_EQ(0, push(&other, REST));
	for (i = 0; i < nr; i++)
		EXPECT_EQ(CHAIN, there(&self->c, i, CHAIN)) TH_LOG("chain %d", i);
	EXPECT_EQ(0, there(&self->c, nr, CHAIN));
	EXPECT_EQ(CHAIN, there(&other, 500, CHAIN));
	for (i = 0; i < nr; i++)
		EXPECT_EQ(0, rest(&self->c, i + 1, KVTIER_SESSION_DONE));
	EXPECT_EQ(1, limit_is_free(&self->c));
	kvt_client_close(&other);
}

/* A prefix that sessions share is paid for once, and as long as any of them needs it. */
TEST_F(session, shared_prefix)
{
	int i, prefix = LIMIT / 2, nr = LIMIT - prefix;
	struct kvt_key up = key_of(0, prefix - 1), tip;

	ASSERT_EQ(prefix, put(&self->c, 0, 0, prefix));
	for (i = 0; i <= nr; i++) {
		tip = key_of(i + 1, 0);
		ASSERT_EQ(1, store(&self->c, &tip, &up, 1));
		EXPECT_EQ(i < nr ? 0 : -ENOSPC, decode(&self->c, i + 1, i + 1, 0))
			TH_LOG("session %d", i);
	}
	/* Pinning what is held costs nothing, and taking that back neither. */
	EXPECT_EQ(1, kvt_advise(self->c.fd, 0, &up, 1, KVTIER_ADV_PIN, 0, NULL));
	EXPECT_EQ(1, kvt_advise(self->c.fd, 0, &up, 1, KVTIER_ADV_UNPIN, 0, NULL));
	EXPECT_EQ(-ENOSPC, decode(&self->c, nr + 1, nr + 1, 0));
	for (i = 1; i < nr; i++)
		ASSERT_EQ(0, rest(&self->c, i, KVTIER_SESSION_DONE));
	ASSERT_EQ(0, push(&self->c, REST));
	EXPECT_EQ(prefix, there(&self->c, 0, prefix));
	EXPECT_EQ(1, there(&self->c, nr, 1));
	EXPECT_EQ(0, there(&self->c, 1, 1));
	ASSERT_EQ(0, rest(&self->c, nr, KVTIER_SESSION_DONE));
	EXPECT_EQ(1, limit_is_free(&self->c));
}

/* Its end is not wanted any more; what others' chains go through is. */
TEST_F(session, done_cools_its_own_end)
{
	int chains = SLOTS / CHAIN * 3 / 4, i;
	struct kvt_key up = key_of(0, 3), side[4], keys[CHAIN];

	ASSERT_EQ(CHAIN, put(&self->c, 0, 0, CHAIN));
	kvt_keys(side, SET + 1, 0, 4);
	ASSERT_EQ(4, store(&self->c, side, &up, 4));
	for (i = 1; i < chains; i++)
		ASSERT_EQ(CHAIN, put(&self->c, i, 0, CHAIN));
	/* The youngest of all. */
	kvt_keys(keys, SET, 0, CHAIN);
	ASSERT_EQ(CHAIN, kvt_advise(self->c.fd, 0, keys, CHAIN, KVTIER_ADV_HOT, 0, NULL));
	ASSERT_EQ(4, kvt_advise(self->c.fd, 0, side, 4, KVTIER_ADV_HOT, 0, NULL));
	ASSERT_EQ(0, decode(&self->c, 1, 0, CHAIN - 1));
	ASSERT_EQ(0, rest(&self->c, 1, KVTIER_SESSION_DONE));
	for (i = 0; i < chains / 2; i++)
		ASSERT_EQ(CHAIN, put(&self->c, REST + i, 0, CHAIN));
	EXPECT_EQ(4, there(&self->c, 0, CHAIN));
	EXPECT_EQ(4, kvt_lookup(self->c.fd, 0, side, 4, NULL));
}

/* A session that is over, and will be gone on with: down, but not out. */
TEST_F(session, wanted_again_goes_down)
{
	static const char *const policies[] = { "lru", "reuse" };
	char down[32];
	size_t i;

	if (!kvt_env_bdev())
		SKIP(return, "no block device to use (KVT_BDEV)");
	ASSERT_LE(0, kvt_tier_bdev(&self->pool, 1, 64 * KVT_MIB));
	for (i = 0; i < KVT_ARRAY(policies); i++) {
		ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "policy", policies[i]));
		ASSERT_EQ(CHAIN, put(&self->c, i, 0, CHAIN));
		ASSERT_EQ(0, decode(&self->c, i + 1, i, CHAIN - 1));
		ASSERT_EQ(0, kvt_session(self->c.fd, 0, i + 1, KVTIER_SESSION_DONE, NULL,
					 60 * KVT_SEC));
		ASSERT_EQ(0, push(&self->c, (i + 1) * REST));
		EXPECT_EQ(CHAIN, there(&self->c, i, CHAIN)) TH_LOG("%s", policies[i]);
	}
	ASSERT_LT(0, kvt_sysfs_read(&self->pool, "tiers/dram0/demotions_out", down, sizeof(down)));
	EXPECT_LE(2 * CHAIN, (int)strtol(down, NULL, 10));
}

/* A turn is over, and its chain is wanted again @reuse_ns from now. */
static int turn(const struct kvt_client *c, int chain, __u64 reuse_ns)
{
	if (put(c, chain, 0, CHAIN) != CHAIN || decode(c, 1, chain, CHAIN - 1))
		return -1;
	return kvt_session(c->fd, 0, 1, KVTIER_SESSION_DONE, NULL, reuse_ns);
}

/* More than memory has room for, said to be of no use to anybody. */
static int push_cold(const struct kvt_client *c, int from)
{
	struct kvt_key keys[CHAIN];
	int i;

	for (i = 0; i < PUSHES; i++) {
		if (put(c, from + i, 0, CHAIN) != CHAIN)
			return -1;
		/* Of what has left by then there is nothing to say. */
		kvt_keys(keys, SET, (from + i) * 4096ull, CHAIN);
		if (kvt_advise(c->fd, 0, keys, CHAIN, KVTIER_ADV_COLD, 0, NULL) < 0)
			return -1;
	}
	return 0;
}

/*
 * A disk that is full of what nobody wants, and in memory more of that, and a chain that will be
 * wanted. What is cold is worth nothing at any age, so it does not matter how long this takes.
 */
static int fill_disk(FIXTURE_DATA(session) *self, const char *policy)
{
	char used[32];
	int i;

	if (kvt_tier_bdev(&self->pool, 1, 64 * KVT_MIB) < 0 ||
	    kvt_sysfs_write(&self->pool, "policy", policy))
		return -1;
	for (i = 1; i <= 9; i++) {
		if (push_cold(&self->c, i * REST))
			return -1;
	}
	if (turn(&self->c, 1, 30 * KVT_SEC) || push_cold(&self->c, 10 * REST) ||
	    kvt_ns_set(&self->pool, &self->c, "tier_limits", "dram0 0\n"))
		return -1;
	/* All of it has to leave memory now. */
	return KVT_UNTIL(20000, kvt_sysfs_read(&self->pool, "tiers/dram0/used_bytes", used,
					       sizeof(used)) > 0 && !atoll(used)) ? 0 : -1;
}

/* It goes down all the same, for what is worth less. */
TEST_F_TIMEOUT(session, wanted_again_on_a_full_disk, 300)
{
	struct kvtier_stat st;

	if (!kvt_env_bdev())
		SKIP(return, "no block device to use (KVT_BDEV)");
	ASSERT_EQ(0, fill_disk(self, "lru"));
	EXPECT_EQ(CHAIN, there(&self->c, 1, CHAIN));
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_LT(0, st.evictions);
}

/* And when what is not worth it leaves instead of going down. */
TEST_F_TIMEOUT(session, wanted_again_by_worth, 300)
{
	struct kvtier_stat st;
	int i, n = 0;

	if (!kvt_env_bdev())
		SKIP(return, "no block device to use (KVT_BDEV)");
	ASSERT_EQ(0, fill_disk(self, "reuse"));
	EXPECT_EQ(CHAIN, there(&self->c, 1, CHAIN));
	for (i = 0; i < PUSHES; i++)
		n += there(&self->c, 10 * REST + i, CHAIN);
	EXPECT_GT(PUSHES * CHAIN, n);
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_LT(0, st.evictions);
}

#define DOOM		"/sys/module/kvtier/parameters/test_doom"

/* A disk in small segments, with a chain of LIMIT blocks in some that are full, beside others. */
static int sink(FIXTURE_DATA(session) *self)
{
	if (kvt_tier_bdev(&self->pool, 1, 64 * KVT_MIB) < 0 ||
	    put(&self->c, 0, 0, LIMIT) != LIMIT || push(&self->c, REST) ||
	    push(&self->c, REST + PUSHES))
		return -1;
	return there(&self->c, 0, LIMIT) == LIMIT ? 0 : -1;
}

/* What is in some segment is to leave, as if there were no room to carry it to. */
static bool doom(const struct kvt_pool *p)
{
	return !kvt_sh("echo %u > " DOOM " 2>/dev/null", p->id);
}

/* And leaves. */
static int doom_ends(const struct kvt_pool *p)
{
	return kvt_sh("echo %u > " DOOM "_ends", p->id);
}

/* How many of the chain can be pinned, and which; they are not, afterwards. */
static int can_be_pinned(const struct kvt_client *c, __s32 *status)
{
	struct kvt_key keys[LIMIT];
	int n;

	kvt_keys(keys, SET, 0, LIMIT);
	n = kvt_advise(c->fd, 0, keys, LIMIT, KVTIER_ADV_PIN, 0, status);
	kvt_advise(c->fd, 0, keys, LIMIT, KVTIER_ADV_UNPIN, 0, NULL);
	return n;
}

/* What is about to leave is not held, nor pinned: who is told that he has it keeps it. */
TEST_F(session, not_what_is_about_to_leave)
{
	__s32 status[LIMIT], after[LIMIT];
	struct kvt_key key;
	int i, n, first;

	if (!kvt_env_bdev())
		SKIP(return, "no block device to use (KVT_BDEV)");
	if (access(DOOM, W_OK))
		SKIP(return, "this module cannot be told to doom");
	ASSERT_EQ(0, sink(self));
	for (i = 0; i < 2 * PUSHES; i++)
		ASSERT_EQ(CHAIN, drop(&self->c, REST + i, CHAIN));
	ASSERT_EQ(LIMIT, can_be_pinned(&self->c, status));
	EXPECT_TRUE(doom(&self->pool));
	n = can_be_pinned(&self->c, status);
	EXPECT_GT(LIMIT, n);
	EXPECT_LT(0, n);
	for (first = 0; first < LIMIT - 1 && status[first] != KVTIER_ST_MISS; first++)
		;
	EXPECT_EQ(-ENOENT, decode(&self->c, 1, 0, first));
	EXPECT_EQ(-ENOENT, decode(&self->c, 1, 0, LIMIT - 1));
	ASSERT_EQ(0, doom_ends(&self->pool));
	/* Nothing is held of what is above it either. */
	EXPECT_EQ(1, limit_is_free(&self->c));
	if (first)
		EXPECT_EQ(0, decode(&self->c, 2, 0, first - 1));
	key = key_of(0, first);
	EXPECT_TRUE(KVT_UNTIL(10000, !kvt_lookup(self->c.fd, 0, &key, 1, NULL)));
	EXPECT_EQ(n, can_be_pinned(&self->c, after));
	EXPECT_EQ(0, memcmp(status, after, sizeof(after)));
}

/* Nor does it leave if it is held before. */
TEST_F(session, held_in_time)
{
	int i, n = 0, rounds = kvt_env_brief() ? 15 : 50;

	if (!kvt_env_bdev())
		SKIP(return, "no block device to use (KVT_BDEV)");
	if (access(DOOM, W_OK))
		SKIP(return, "this module cannot be told to doom");
	ASSERT_EQ(0, sink(self));
	ASSERT_EQ(0, decode(&self->c, 1, 0, LIMIT - 1));
	for (i = 0; i < rounds; i++) {
		/* The one before has ended, mostly. */
		n += doom(&self->pool);
		ASSERT_EQ(0, doom_ends(&self->pool));
		usleep(20000);
	}
	EXPECT_LT(0, n);
	EXPECT_EQ(LIMIT, there(&self->c, 0, LIMIT));
}

/* DROP takes what it is told to, and what was above it is not held any more. */
TEST_F(session, dropped_tip)
{
	ASSERT_EQ(LIMIT, put(&self->c, 0, 0, LIMIT));
	ASSERT_EQ(0, decode(&self->c, 1, 0, LIMIT - 1));
	ASSERT_EQ(CHAIN, put(&self->c, 1, 0, CHAIN));
	EXPECT_EQ(-ENOSPC, decode(&self->c, 2, 1, CHAIN - 1));
	EXPECT_EQ(LIMIT, drop(&self->c, 0, LIMIT));
	EXPECT_EQ(0, decode(&self->c, 2, 1, CHAIN - 1));
	EXPECT_EQ(0, rest(&self->c, 1, KVTIER_SESSION_IDLE));
	EXPECT_EQ(0, rest(&self->c, 2, KVTIER_SESSION_IDLE));
	EXPECT_EQ(1, limit_is_free(&self->c));
}

/* @nr blocks of a chain of small blocks, in steps. */
static int put_long(const struct kvt_client *c, int chain, int first, int nr)
{
	int i, n;

	for (i = first; i < first + nr; i += n) {
		n = nr - (i - first) < 2 * LIMIT ? nr - (i - first) : 2 * LIMIT;
		if (put(c, chain, i, n) != n)
			return -1;
	}
	return 0;
}

/*
 * The half of a long chain is let go by the pool's worker. What it has not come to yet is to
 * refuse nobody anything: neither sessions nor pins.
 */
TEST_F(session, lost_long_chains)
{
	enum { SMALL = 4 * KVT_KIB, MAY = TIER_BYTES / 2 / SMALL, LONG = MAY / 5 * 4 };
	int rounds = kvt_env_many(20, 200), i;
	struct kvt_key all[LONG], tip;
	struct kvt_client few;

	ASSERT_EQ(0, kvt_client_open(&self->pool, &few, "small", SMALL));
	ASSERT_EQ(0, put_long(&few, 0, 0, LONG));
	ASSERT_EQ(0, put_long(&few, 1, 0, LONG));
	ASSERT_EQ(0, decode(&few, 1, 0, LONG - 1));
	for (i = 0; i < 2 * rounds; i++) {
		tip = key_of(i % 2, LONG - 1);
		ASSERT_EQ(1, kvt_drop(few.fd, 0, &tip, 1, NULL));
		/* The other: with that one it would be too much. */
		ASSERT_EQ(0, decode(&few, 1, !(i % 2), LONG - 1)) TH_LOG("round %d", i);
		ASSERT_EQ(0, put_long(&few, i % 2, LONG - 1, 1));
	}
	tip = key_of(0, LONG - 1);
	kvt_keys(all, SET, 4096, LONG);
	for (i = 0; i < rounds; i++) {
		ASSERT_EQ(1, kvt_drop(few.fd, 0, &tip, 1, NULL));
		ASSERT_EQ(LONG, kvt_advise(few.fd, 0, all, LONG, KVTIER_ADV_PIN, 0, NULL))
			TH_LOG("round %d", i);
		ASSERT_EQ(LONG, kvt_advise(few.fd, 0, all, LONG, KVTIER_ADV_UNPIN, 0, NULL));
		ASSERT_EQ(0, put_long(&few, 0, LONG - 1, 1));
		ASSERT_EQ(0, decode(&few, 1, 0, LONG - 1));
	}
	kvt_client_close(&few);
}

/* A session is its file's: it means nothing on another, and goes with it. */
TEST_F(session, ends_with_its_file)
{
	struct kvt_client mine;
	int i;

	ASSERT_EQ(0, kvt_client_open(&self->pool, &mine, "session", BLOCK_BYTES));
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(CHAIN, put(&mine, i, 0, CHAIN));
		ASSERT_EQ(0, decode(&mine, i + 1, i, CHAIN - 1));
	}
	EXPECT_EQ(-EINVAL, rest(&self->c, 1, KVTIER_SESSION_DONE));
	ASSERT_EQ(0, push(&self->c, REST));
	for (i = 0; i < 4; i++)
		EXPECT_EQ(CHAIN, there(&self->c, i, CHAIN));
	kvt_client_close(&mine);
	EXPECT_EQ(1, limit_is_free(&self->c));
	ASSERT_EQ(0, push(&self->c, 2 * REST));
	for (i = 0; i < 4; i++)
		EXPECT_EQ(0, there(&self->c, i, CHAIN));
}

TEST_F(session, values)
{
	static const __u32 states[] = { 0, KVTIER_SESSION_DONE + 1, ~0u };
	struct kvt_key tip = key_of(0, 0), none = key_of(1, 0);
	struct kvtier_block_result res;
	struct kvtier_query q;
	int fd = self->c.fd;
	size_t i;

	ASSERT_EQ(1, put(&self->c, 0, 0, 1));
	for (i = 0; i < KVT_ARRAY(states); i++)
		EXPECT_EQ(-EINVAL, kvt_session(fd, 0, 1, states[i], &tip, 0));
	EXPECT_EQ(-EINVAL, kvt_session(fd, 0, 0, KVTIER_SESSION_IDLE, &tip, 0));
	EXPECT_EQ(-EINVAL, kvt_session(fd, 0, 1, KVTIER_SESSION_DECODING, &tip, 1));
	EXPECT_EQ(-EINVAL, kvt_session(fd, 0, 1, KVTIER_SESSION_IDLE, NULL, 0));
	EXPECT_EQ(-ENOENT, kvt_session(fd, 0, 1, KVTIER_SESSION_DECODING, &none, 0));
	EXPECT_EQ(-ENOENT, kvt_session(fd, 0, 1, KVTIER_SESSION_IDLE, &none, 0));
	EXPECT_EQ(1, kvt_reserve(fd, 0, 0, &none, NULL, 1, &res, 0));
	EXPECT_EQ(-ENOENT, kvt_session(fd, 0, 1, KVTIER_SESSION_DECODING, &none, 0));
	EXPECT_EQ(0, kvt_session(fd, 0, ~0ull, KVTIER_SESSION_IDLE, &tip, ~0ull));
	EXPECT_EQ(0, kvt_session(fd, 0, 1, KVTIER_SESSION_DONE, &tip, ~0ull));
	ASSERT_LE(1, kvt_query(fd, &q, NULL));
	EXPECT_LT(0, q.sessions_max);
	for (i = 1; i < q.sessions_max; i++)
		ASSERT_EQ(0, kvt_session(fd, 0, i, KVTIER_SESSION_DECODING, &tip, 0));
	EXPECT_EQ(-ENOSPC, kvt_session(fd, 0, i, KVTIER_SESSION_IDLE, &tip, 0));
	EXPECT_EQ(0, kvt_session(fd, 0, ~0ull, KVTIER_SESSION_DONE, NULL, 0));
	EXPECT_EQ(0, kvt_session(fd, 0, i, KVTIER_SESSION_DECODING, &tip, 0));
	EXPECT_EQ(1, drop(&self->c, 0, 1));
}

TEST_F(session, not_for_readers)
{
	struct kvtier_group g = { .block_bytes = BLOCK_BYTES };
	struct kvt_key tip = key_of(0, 0);
	struct kvt_client reader;
	struct kvtier_ns_open a;

	ASSERT_EQ(1, put(&self->c, 0, 0, 1));
	kvt_ns_args(&a, "session", &g, 1);
	a.flags = KVTIER_NS_RDONLY;
	ASSERT_EQ(0, kvt_client_bind(&reader, kvt_open(&self->pool), &a));
	EXPECT_EQ(-EACCES, kvt_session(reader.fd, 0, 1, KVTIER_SESSION_IDLE, &tip, 0));
	kvt_client_close(&reader);
}

/* Anything at any time, by two files: nobody else notices, and nothing is left of it. */
TEST_F(session, hostile)
{
	int n = kvt_env_many(500, 4000), i, err, ok = 0, refused = 0, chain, len;
	struct kvt_client other, two;
	struct kvt_key tip;
	unsigned int rnd = 1;

	ASSERT_EQ(0, kvt_client_open(&self->pool, &other, "other", BLOCK_BYTES));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &two, "session", BLOCK_BYTES));
	/* What takes hints. */
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "policy", "reuse"));
	ASSERT_EQ(CHAIN, put(&other, 500, 0, CHAIN));
	ASSERT_EQ(0, decode(&other, 1, 500, CHAIN - 1));
	for (i = 0; i < n; i++) {
		chain = rand_r(&rnd) % 8;
		len = rand_r(&rnd) % (LIMIT / 2);
		tip = key_of(chain, len);
		switch (rand_r(&rnd) % 32) {
		case 0:
		case 1:
			put(&self->c, chain, 0, len + 1);
			/* While it is there: what all these hold is more than they may. */
			refused += decode(&self->c, 16 + chain, chain, len) == -ENOSPC;
			break;
		case 2:
			drop(&self->c, chain, len + 1);
			break;
		case 3:
			kvt_advise(self->c.fd, 0, &tip, 1, KVTIER_ADV_PIN + (len & 1), 0, NULL);
			break;
		default:
			err = kvt_session(len & 1 ? self->c.fd : two.fd, 0, rand_r(&rnd) % 16,
					  rand_r(&rnd) % 5, rand_r(&rnd) % 3 ? &tip : NULL,
					  rand_r(&rnd) % 2 ? 0 : (__u64)rand_r(&rnd) << 33);
			ok += !err;
			refused += err == -ENOSPC;
			EXPECT_TRUE(!err || err == -EINVAL || err == -ENOENT || err == -ENOSPC)
				TH_LOG("%d", err);
		}
	}
	EXPECT_LT(0, ok);
	EXPECT_LT(0, refused);
	EXPECT_EQ(CHAIN, there(&other, 500, CHAIN));
	kvt_client_close(&two);
	for (chain = 0; chain < 8; chain++)
		drop(&self->c, chain, LIMIT);
	/* Those of this file have lost their chains. */
	EXPECT_EQ(1, limit_is_free(&self->c));
	EXPECT_EQ(CHAIN, there(&other, 500, CHAIN));
	kvt_client_close(&other);
}

TEST_HARNESS_MAIN
