// SPDX-License-Identifier: GPL-2.0
/*
 * Looking ahead: what comes up unasked, when, and what it must not do.
 */
#include "kvt_test.h"
#include <stdarg.h>

#define BLOCK_BYTES	(16 * KVT_KIB)
#define MEM_BYTES	(4 * KVT_MIB)
#define SLOTS		((int)(MEM_BYTES / BLOCK_BYTES))
#define DISK_BYTES	(256 * KVT_MIB)	/* 2 % of it is more than memory holds */
#define CHAIN		8
#define LONG		24
#define SET		91
#define GRANT		32	/* blocks that are believed in at first */

FIXTURE(ahead)
{
	struct kvt_pool pool;
	struct kvt_client c;	/* whose pace is to be known */
	struct kvt_client w;	/* who stores, and looks on */
	struct kvt_dm dm;
	int disk;
};

FIXTURE_SETUP(ahead)
{
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, MEM_BYTES));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "policy", "lru"));
	ASSERT_EQ(0, kvt_dm_make(&self->dm, "ahead", DISK_BYTES));
	self->disk = kvt_tier_disk(&self->pool, 1, &self->dm.disk);
	ASSERT_LE(0, self->disk);
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->w, "ahead", BLOCK_BYTES));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "ahead", BLOCK_BYTES));
}

FIXTURE_TEARDOWN(ahead)
{
	kvt_client_close(&self->c);
	kvt_client_close(&self->w);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	kvt_dm_remove(&self->dm);
}

static long long __attribute__((format(printf, 2, 3)))
number(const struct kvt_pool *p, const char *fmt, ...)
{
	char name[128], buf[64];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(name, sizeof(name), fmt, ap);
	va_end(ap);
	return kvt_sysfs_read(p, name, buf, sizeof(buf)) < 0 ? -1 : atoll(buf);
}

static long long prefetches(FIXTURE_DATA(ahead) *self)
{
	return number(&self->pool, "prefetches");
}

static int ahead_on(FIXTURE_DATA(ahead) *self, bool on)
{
	return kvt_sysfs_write(&self->pool, "prefetch_max_bytes", on ? "67108864" : "0");
}

static void keys_of(struct kvt_key *keys, int chain, int first, int nr)
{
	kvt_keys(keys, SET, (__u64)chain * 4096 + first, nr);
}

static int put(const struct kvt_client *c, int chain, int nr)
{
	struct kvt_key keys[LONG];

	keys_of(keys, chain, 0, nr);
	return kvt_put(c, KVTIER_RESERVE_WAIT, 0, keys, NULL, nr);
}

static bool is_down(FIXTURE_DATA(ahead) *self, int chain, int nr)
{
	struct kvtier_lookup_result look[LONG];
	struct kvt_key keys[LONG];
	int i;

	keys_of(keys, chain, 0, nr);
	if (kvt_lookup(self->w.fd, 0, keys, nr, look) != nr)
		return false;
	for (i = 0; i < nr && (int)look[i].tier == self->disk && look[i].cost_ns; i++)
		;
	return i == nr;
}

/* Store chains, and have them go down; memory is empty then but for a few blocks. */
static int sink(FIXTURE_DATA(ahead) *self, int first, int chains, int nr)
{
	int i;

	for (i = first; i < first + chains; i++) {
		if (put(&self->w, i, nr) != nr)
			return -1;
	}
	/* The youngest stay, of a chain that is new each time. */
	if (put(&self->w, 4000 + first, CHAIN) != CHAIN)
		return -1;
	if (kvt_sysfs_write(&self->pool, "watermark_low_percent", "1") ||
	    kvt_sysfs_write(&self->pool, "watermark_high_percent", "2"))
		return -1;
	for (i = first; i < first + chains; i++) {
		if (!KVT_UNTIL(20000, is_down(self, i, nr)))
			return -1;
	}
	if (kvt_sysfs_write(&self->pool, "watermark_high_percent", "92") ||
	    kvt_sysfs_write(&self->pool, "watermark_low_percent", "85"))
		return -1;
	return 0;
}

static int lookup(const struct kvt_client *c, int chain, int nr)
{
	struct kvt_key keys[LONG];

	keys_of(keys, chain, 0, nr);
	return kvt_lookup(c->fd, 0, keys, nr, NULL);
}

/* As much of it as there is in memory: that is read, and right. */
static int read_mem(const struct kvt_client *c, int chain, int first, int nr)
{
	struct kvtier_block_result res[LONG];
	__u64 handle[LONG];
	struct kvt_key keys[LONG];
	int i, n;

	keys_of(keys, chain, first, nr);
	n = kvt_get(c->fd, KVTIER_GET_NOPROMOTE, 0, keys, nr, res, 0);
	for (i = 0; i < n; i++) {
		handle[i] = res[i].handle;
		if (!kvt_bytes_ok(kvt_rd(c, res[i].offset), &keys[i], BLOCK_BYTES))
			return -EBADMSG;
	}
	if (n > 0)
		kvt_release(c->fd, handle, n, NULL);
	return n;
}

/* Of the pool, of the namespace, of the tier: the same. */
static bool counts_are(FIXTURE_DATA(ahead) *self, const char *name, long long value)
{
	return number(&self->pool, "%s", name) == value &&
	       number(&self->pool, "namespaces/%llu/%s", self->c.ns_id, name) == value &&
	       number(&self->pool, "tiers/dram0/%s", name) == value;
}

/*
 * A look whose blocks would come too late brings none, and on a busy machine that happens:
 * what leads to it is done again, with pauses in which it can be seen.
 */
#define LOOKS_UNTIL(act, pause_ms, cond)			\
	KVT_UNTIL(20000, ({					\
		(void)(act);					\
		kvt_sleep_ms(pause_ms);				\
		cond;						\
	}))

/* Named, and not asked for yet: it is there when it is. */
TEST_F_TIMEOUT(ahead, lookup, 300)
{
	ASSERT_EQ(0, sink(self, 0, 2, CHAIN));
	/* Not if that is not wanted. */
	ASSERT_EQ(CHAIN, lookup(&self->c, 0, CHAIN));
	kvt_sleep_ms(200);
	EXPECT_EQ(0, prefetches(self));
	ASSERT_EQ(0, ahead_on(self, true));
	EXPECT_TRUE(LOOKS_UNTIL(lookup(&self->c, 0, CHAIN), 300,
				counts_are(self, "prefetches", CHAIN)));
	EXPECT_TRUE(counts_are(self, "prefetches_used", 0));
	EXPECT_EQ(CHAIN, read_mem(&self->c, 0, 0, CHAIN));
	EXPECT_TRUE(KVT_UNTIL(20000, counts_are(self, "prefetches_used", CHAIN)));
	/* What nobody reads is counted when it goes. */
	EXPECT_TRUE(LOOKS_UNTIL(lookup(&self->c, 1, CHAIN), 300,
				counts_are(self, "prefetches", 2 * CHAIN)));
	EXPECT_TRUE(counts_are(self, "prefetches_unread", 0));
	ASSERT_EQ(0, ahead_on(self, false));
	ASSERT_EQ(0, sink(self, 10, 1, CHAIN));
	EXPECT_TRUE(KVT_UNTIL(20000, counts_are(self, "prefetches_unread", CHAIN)));
	EXPECT_TRUE(counts_are(self, "prefetches_used", CHAIN));
}

/* A chain that is read piece by piece: the next one is there before it is asked for. */
TEST_F_TIMEOUT(ahead, chain_goes_on, 300)
{
	struct kvt_key keys[CHAIN];

	ASSERT_EQ(0, sink(self, 0, 1, LONG));
	ASSERT_EQ(0, ahead_on(self, true));
	keys_of(keys, 0, 0, CHAIN);
	EXPECT_TRUE(LOOKS_UNTIL(kvt_check(&self->c, 0, keys, CHAIN, 20 * KVT_SEC), 300,
				prefetches(self) == LONG - CHAIN));
	EXPECT_EQ(LONG - CHAIN, read_mem(&self->c, 0, CHAIN, LONG - CHAIN));
	EXPECT_TRUE(KVT_UNTIL(20000, counts_are(self, "prefetches_used", LONG - CHAIN)));
}

/* Of those that begin alike it is the one used last that goes on. */
TEST_F_TIMEOUT(ahead, forks, 300)
{
	struct kvt_key keys[CHAIN], old[CHAIN], new[CHAIN];

	ASSERT_EQ(CHAIN, put(&self->w, 0, CHAIN));
	keys_of(keys, 0, 0, CHAIN);
	keys_of(old, 1, 0, CHAIN);
	keys_of(new, 2, 0, CHAIN);
	ASSERT_EQ(CHAIN, kvt_put(&self->w, 0, 0, new, &keys[CHAIN - 1], CHAIN));
	ASSERT_EQ(CHAIN, kvt_put(&self->w, 0, 0, old, &keys[CHAIN - 1], CHAIN));
	kvt_sleep_ms(50);
	ASSERT_EQ(CHAIN, kvt_check(&self->w, 0, new, CHAIN, 20 * KVT_SEC));
	ASSERT_EQ(0, sink(self, 10, 1, CHAIN));
	ASSERT_TRUE(KVT_UNTIL(20000, is_down(self, 0, CHAIN) && is_down(self, 1, CHAIN) &&
			      is_down(self, 2, CHAIN)));
	ASSERT_EQ(0, ahead_on(self, true));
	EXPECT_TRUE(LOOKS_UNTIL(kvt_check(&self->c, 0, keys, CHAIN, 20 * KVT_SEC), 300,
				prefetches(self) == CHAIN));
	EXPECT_EQ(0, read_mem(&self->c, 1, 0, CHAIN));
	EXPECT_EQ(CHAIN, read_mem(&self->c, 2, 0, CHAIN));
}

static int session(const struct kvt_client *c, __u64 id, __u32 state, int chain, int i,
		   __u64 reuse_ns)
{
	struct kvt_key tip;

	keys_of(&tip, chain, i, 1);
	return kvt_session(c->fd, 0, id, state, &tip, reuse_ns);
}

/* A session decodes: its chain comes up. One that rests: shortly before it goes on. */
TEST_F_TIMEOUT(ahead, sessions, 300)
{
	int i;

	ASSERT_EQ(0, sink(self, 0, 3, CHAIN));
	ASSERT_EQ(0, sink(self, 3, 1, LONG));
	ASSERT_EQ(0, ahead_on(self, true));
	/* More of them, and far off, than are noted. */
	for (i = 0; i < LONG; i++)
		ASSERT_EQ(0, session(&self->c, 10 + i, KVTIER_SESSION_IDLE, 3, i, 900 * KVT_SEC));
	ASSERT_EQ(0, session(&self->c, 1, KVTIER_SESSION_IDLE, 0, CHAIN - 1, 1800 * KVT_SEC));
	ASSERT_EQ(0, session(&self->c, 1, KVTIER_SESSION_IDLE, 0, CHAIN - 1, 0));
	kvt_sleep_ms(300);
	EXPECT_EQ(0, prefetches(self));
	EXPECT_TRUE(LOOKS_UNTIL(session(&self->c, 2, KVTIER_SESSION_DECODING, 1, CHAIN - 1, 0),
				300, prefetches(self) == CHAIN));
	EXPECT_EQ(CHAIN, read_mem(&self->c, 1, 0, CHAIN));
	/* Earlier than the one that is noted already. */
	EXPECT_TRUE(LOOKS_UNTIL(session(&self->c, 3, KVTIER_SESSION_IDLE, 2, CHAIN - 1, KVT_SEC),
				1500, prefetches(self) == 2 * CHAIN));
	EXPECT_EQ(CHAIN, read_mem(&self->c, 2, 0, CHAIN));
	EXPECT_EQ(0, read_mem(&self->c, 0, 0, CHAIN));
}

/* While somebody waits for the disk nothing is read on a guess. */
TEST_F_TIMEOUT(ahead, who_asks_comes_first, 300)
{
	struct kvtier_block_result res[CHAIN];
	struct kvt_key keys[CHAIN];

	ASSERT_EQ(0, sink(self, 0, 3, CHAIN));
	ASSERT_EQ(0, ahead_on(self, true));
	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_VERY_SLOW));
	keys_of(keys, 0, 0, CHAIN);
	ASSERT_EQ(0, kvt_get(self->c.fd, 0, 0, keys, CHAIN, res, 0));
	ASSERT_EQ(KVTIER_ST_PENDING, res[0].status);
	ASSERT_EQ(CHAIN, lookup(&self->c, 1, CHAIN));
	ASSERT_TRUE(KVT_UNTIL(60000, read_mem(&self->c, 0, 0, CHAIN) == CHAIN));
	/* One that had been begun beside it would end about now. */
	EXPECT_FALSE(KVT_UNTIL(900, prefetches(self) > 0));
	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_GOOD));
	/* The disk is free. */
	EXPECT_TRUE(LOOKS_UNTIL(session(&self->c, 1, KVTIER_SESSION_DECODING, 2, CHAIN - 1, 0),
				300, prefetches(self) == CHAIN));
}

#define USELESS	30

/* What is looked for and never read costs less and less; what is read comes back. */
TEST_F_TIMEOUT(ahead, useless_ones_throttle, 600)
{
	long long before;
	int i, next = 0;

	ASSERT_EQ(0, sink(self, 0, USELESS, CHAIN));
	ASSERT_EQ(0, ahead_on(self, true));
	for (i = 0; i < USELESS; i++) {
		ASSERT_EQ(CHAIN, lookup(&self->c, i, CHAIN));
		kvt_sleep_ms(100);
	}
	/* However long that took: twice that, and one for each further two seconds. */
	before = prefetches(self);
	EXPECT_LE(GRANT, before);
	EXPECT_GT(USELESS * CHAIN / 2, before);
	EXPECT_TRUE(KVT_UNTIL(100000, ({
		lookup(&self->c, next % USELESS, CHAIN);
		kvt_sleep_ms(100);
		read_mem(&self->c, next++ % USELESS, 0, CHAIN);
		prefetches(self) >= before + 2 * GRANT;
	})));
	EXPECT_LE(GRANT, number(&self->pool, "prefetches_used"));
}

static long long used(FIXTURE_DATA(ahead) *self)
{
	return number(&self->pool, "tiers/dram0/used_bytes");
}

/* Nothing goes for them, and they leave room for what is asked for. */
TEST_F_TIMEOUT(ahead, nothing_goes_for_them, 300)
{
	const long long half_way = MEM_BYTES / 1000 * 885, high = MEM_BYTES / 100 * 92;
	struct kvt_key keys[CHAIN];
	long long demoted;
	int i, chain;

	ASSERT_EQ(0, sink(self, 0, 4, CHAIN));
	for (chain = 100; high - used(self) > CHAIN * (long long)BLOCK_BYTES; chain++)
		ASSERT_EQ(CHAIN, put(&self->w, chain, CHAIN));
	ASSERT_LT(half_way, used(self));
	demoted = number(&self->pool, "demotions");
	ASSERT_EQ(0, ahead_on(self, true));
	for (i = 0; i < 4; i++)
		ASSERT_EQ(CHAIN, lookup(&self->c, i, CHAIN));
	kvt_sleep_ms(300);
	EXPECT_EQ(0, prefetches(self));
	/* Some room. */
	for (i = 0; i < 2; i++) {
		keys_of(keys, 100 + i, 0, CHAIN);
		ASSERT_EQ(CHAIN, kvt_drop(self->c.fd, 0, keys, CHAIN, NULL));
	}
	ASSERT_GT(half_way, used(self));
	EXPECT_TRUE(LOOKS_UNTIL(lookup(&self->c, i++ % 4, CHAIN), 100, prefetches(self) > 0));
	for (i = 0; i < 4; i++)
		ASSERT_EQ(CHAIN, lookup(&self->c, i, CHAIN));
	kvt_sleep_ms(200);
	EXPECT_GE(half_way, used(self));
	EXPECT_EQ(demoted, number(&self->pool, "demotions"));
	EXPECT_EQ(0, number(&self->pool, "evictions"));
}

/* No more than one look may read. */
TEST_F_TIMEOUT(ahead, limited_by_bytes, 300)
{
	int looks = 0;

	ASSERT_EQ(0, sink(self, 0, 1, LONG));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "prefetch_max_bytes", "50000"));
	EXPECT_TRUE(LOOKS_UNTIL((looks++, lookup(&self->c, 0, LONG)), 500, prefetches(self) > 0));
	EXPECT_EQ(0, prefetches(self) % 3);
	EXPECT_GE(3 * looks, prefetches(self));
	EXPECT_EQ(prefetches(self), read_mem(&self->c, 0, 0, LONG));
}

/* --- under load ----------------------------------------------------------------------- */

struct load {
	const struct kvt_pool *pool;
	unsigned int seed;
};

static int load_client(struct kvt_child *me, void *arg)
{
	static const __u32 states[] = {
		KVTIER_SESSION_DECODING, KVTIER_SESSION_IDLE, KVTIER_SESSION_DONE,
	};
	struct load *l = arg;
	struct kvt_key keys[LONG], tip;
	struct kvt_client c;
	char name[16];
	int i, chain, ret;

	while (kvt_hear(me, 0) == -ETIMEDOUT) {
		/* Namespaces come and go. */
		snprintf(name, sizeof(name), "load%d", rand_r(&l->seed) % 3);
		KVT_CHILD_CHECK(!kvt_client_open(l->pool, &c, name, BLOCK_BYTES));
		for (i = 0; i < 12; i++) {
			chain = 1000 + rand_r(&l->seed) % 24;
			keys_of(keys, chain, 0, LONG);
			if (rand_r(&l->seed) % 2)
				kvt_put(&c, 0, 0, keys, NULL, LONG);
			lookup(&c, chain, 1 + rand_r(&l->seed) % LONG);
			tip = keys[rand_r(&l->seed) % LONG];
			kvt_session(c.fd, 0, chain, states[rand_r(&l->seed) % 3], &tip,
				    rand_r(&l->seed) % 4 ? 0 : rand_r(&l->seed) % 2 ?
				    KVT_SEC / 4 : 3000 * KVT_SEC);
			ret = kvt_check(&c, 0, keys, CHAIN, KVT_SEC / 10);
			KVT_CHILD_CHECK(ret != -EBADMSG);
			if (rand_r(&l->seed) % 8 == 0)
				kvt_drop(c.fd, 0, keys, LONG, NULL);
		}
		if (rand_r(&l->seed) % 4 == 0) {
			for (chain = 1000; chain < 1024; chain++) {
				keys_of(keys, chain, 0, LONG);
				kvt_drop(c.fd, 0, keys, LONG, NULL);
			}
		}
		kvt_client_close(&c);
	}
	return 0;
}

/* Looks that wait, and reads under way, are in nobody's way out. */
TEST_F_TIMEOUT(ahead, everything_goes, 600)
{
	int rounds = kvt_env_many(6, 60), i, ret;
	struct kvt_child child[3];
	struct load load[3];

	ASSERT_EQ(0, ahead_on(self, true));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "watermark_low_percent", "40"));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "watermark_high_percent", "80"));
	for (i = 0; i < 3; i++) {
		load[i] = (struct load){ &self->pool, i + 1 };
		ASSERT_EQ(0, kvt_spawn(&child[i], load_client, &load[i]));
	}
	EXPECT_TRUE(KVT_UNTIL(60000, prefetches(self) > GRANT &&
			      number(&self->pool, "prefetches_used") > 0));
	for (i = 0; i < rounds; i++) {
		kvt_sleep_ms(100);
		ret = kvt_tier_detach(&self->pool, self->disk, i % 2 ? KVTIER_DETACH_DISCARD : 0,
				      60 * KVT_SEC);
		/* Somebody may lease what is there, again and again. */
		ASSERT_TRUE(!ret || ret == -EBUSY);
		if (!ret)
			self->disk = kvt_tier_disk(&self->pool, 1, &self->dm.disk);
		ASSERT_LE(0, self->disk);
	}
	for (i = 0; i < 3; i++)
		kvt_say(&child[i], 0);
	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, kvt_join(&child[i], 60000));
	/* And the pool, with looks that were to be made much later. */
	ASSERT_EQ(CHAIN, put(&self->c, 0, CHAIN));
	EXPECT_EQ(0, session(&self->c, 1, KVTIER_SESSION_IDLE, 0, CHAIN - 1, 1800 * KVT_SEC));
}

TEST_HARNESS_MAIN
