// SPDX-License-Identifier: GPL-2.0
/*
 * Orderly ends: pools with users, tiers with data and leases in them, devices taken
 * away, the module.
 */
#include "kvt_test.h"
#include <sys/syscall.h>
#include <sys/uio.h>

#define BLOCK_BYTES	(64 * KVT_KIB)
#define CHAIN		8
#define SET		19

FIXTURE(teardown)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvt_key keys[CHAIN];
	int upper;
	int lower;
};

FIXTURE_SETUP(teardown)
{
	ASSERT_EQ(0, kvt_setup(&self->pool));
	self->upper = kvt_tier_dram(&self->pool, 0, 8 * KVT_MIB);
	ASSERT_LE(0, self->upper);
	self->lower = kvt_tier_dram(&self->pool, 1, 16 * KVT_MIB);
	ASSERT_LE(0, self->lower);
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "teardown", BLOCK_BYTES));
	kvt_keys(self->keys, SET, 0, CHAIN);
}

FIXTURE_TEARDOWN(teardown)
{
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

static int tier_state(const struct kvt_client *c, int id)
{
	struct kvtier_tier_info tiers[KVTIER_TIERS_MAX];
	struct kvtier_query q;
	int nr = kvt_query(c->fd, &q, tiers), i;

	for (i = 0; i < nr; i++)
		if ((int)tiers[i].id == id)
			return (int)tiers[i].state;
	return -ENOENT;
}

static int put_chains(const struct kvt_client *c, int first, int nr)
{
	struct kvt_key keys[CHAIN];
	int i, ret;

	for (i = first; i < first + nr; i++) {
		kvt_keys(keys, SET, i * CHAIN, CHAIN);
		ret = kvt_put(c, KVTIER_RESERVE_WAIT, 0, keys, NULL, CHAIN);
		if (ret != CHAIN)
			return ret < 0 ? ret : -ENOSPC;
	}
	return 0;
}

/* Blocks of these chains that are there, or -errno. */
static int check_chains(const struct kvt_client *c, int first, int nr)
{
	struct kvt_key keys[CHAIN];
	int i, ret, sum = 0;

	for (i = first; i < first + nr; i++) {
		kvt_keys(keys, SET, i * CHAIN, CHAIN);
		ret = kvt_check(c, 0, keys, CHAIN, 10 * KVT_SEC);
		if (ret < 0)
			return ret;
		sum += ret;
	}
	return sum;
}

static int drain(const struct kvt_pool *p, int tier, __u64 timeout_ns)
{
	struct kvtier_tier_op op = {
		.size = sizeof(op), .pool_id = p->id, .tier_id = tier, .timeout_ns = timeout_ns,
	};

	return kvt_ioctl(p->ctl, KVTIER_OP_TIER_DRAIN, &op);
}

TEST_F(teardown, destroy_with_users)
{
	int fd = kvt_open(&self->pool);

	EXPECT_EQ(-EBUSY, kvt_pool_destroy(self->pool.ctl, self->pool.id));
	kvt_client_close(&self->c);
	EXPECT_EQ(-EBUSY, kvt_pool_destroy(self->pool.ctl, self->pool.id));
	close(fd);
	/* A mapping is a user, too. */
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "teardown", BLOCK_BYTES));
	close(self->c.fd);
	self->c.fd = -1;
	EXPECT_EQ(-EBUSY, kvt_pool_destroy(self->pool.ctl, self->pool.id));
}

TEST_F(teardown, detach_moves_blocks)
{
	ASSERT_EQ(0, put_chains(&self->c, 0, 8));
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, self->upper, 0, 10 * KVT_SEC));
	EXPECT_EQ(-ENOENT, tier_state(&self->c, self->upper));
	EXPECT_EQ(8 * CHAIN, check_chains(&self->c, 0, 8));
	/* And the other way round: what was below goes up. */
	self->upper = kvt_tier_dram(&self->pool, 0, 8 * KVT_MIB);
	ASSERT_LE(0, self->upper);
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, self->lower, 0, 10 * KVT_SEC));
	EXPECT_EQ(8 * CHAIN, check_chains(&self->c, 0, 8));
}

TEST_F(teardown, detach_to_the_block_device_and_back)
{
	int disk;

	if (!kvt_env_bdev())
		SKIP(return, "no block device to use (KVT_BDEV)");
	disk = kvt_tier_bdev(&self->pool, 9, 0);
	ASSERT_LE(0, disk);
	ASSERT_EQ(0, put_chains(&self->c, 0, 36));
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, self->lower, 0, 20 * KVT_SEC));
	EXPECT_EQ(36 * CHAIN, check_chains(&self->c, 0, 36));
	self->lower = kvt_tier_dram(&self->pool, 1, 32 * KVT_MIB);
	ASSERT_LE(0, self->lower);
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, disk, 0, 20 * KVT_SEC));
	EXPECT_EQ(-ENOENT, tier_state(&self->c, disk));
	EXPECT_EQ(36 * CHAIN, check_chains(&self->c, 0, 36));
}

TEST_F(teardown, detach_waits_for_leases)
{
	struct kvtier_block_result res;
	__u64 start = kvt_now_ns();

	ASSERT_EQ(CHAIN, kvt_put(&self->c, 0, 0, self->keys, NULL, CHAIN));
	ASSERT_EQ(1, kvt_get(self->c.fd, 0, 0, self->keys, 1, &res, 0));
	ASSERT_EQ(self->upper, res.tier);
	EXPECT_EQ(-EBUSY, kvt_tier_detach(&self->pool, self->upper, 0, 200 * KVT_MSEC));
	EXPECT_LE(200 * KVT_MSEC, kvt_now_ns() - start);
	EXPECT_EQ(KVTIER_TIER_ONLINE, tier_state(&self->c, self->upper));
	EXPECT_EQ(-EBUSY, kvt_tier_detach(&self->pool, self->upper, KVTIER_DETACH_DISCARD,
					  200 * KVT_MSEC));
	EXPECT_TRUE(kvt_bytes_ok(kvt_rd(&self->c, res.offset), self->keys, BLOCK_BYTES));
	EXPECT_EQ(1, kvt_release(self->c.fd, &res.handle, 1, NULL));
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, self->upper, 0, 10 * KVT_SEC));
}

/* A reservation holds a tier as a lease does. */
TEST_F(teardown, detach_waits_for_fillers)
{
	struct kvtier_block_result res, done;

	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, self->keys, NULL, 1, &res, 0));
	ASSERT_EQ(self->upper, res.tier);
	EXPECT_EQ(-EBUSY, kvt_tier_detach(&self->pool, self->upper, 0, 200 * KVT_MSEC));
	kvt_fill(kvt_wr(&self->c, res.offset), self->keys, BLOCK_BYTES);
	EXPECT_EQ(1, kvt_commit(self->c.fd, 0, &res.handle, 1, &done));
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, self->upper, 0, 10 * KVT_SEC));
	EXPECT_EQ(1, kvt_check(&self->c, 0, self->keys, 1, 20 * KVT_SEC));
}

TEST_F(teardown, detach_discards)
{
	struct kvtier_stat st;

	ASSERT_EQ(0, kvt_tier_detach(&self->pool, self->lower, 0, KVT_SEC));
	ASSERT_EQ(0, put_chains(&self->c, 0, 8));
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, self->upper, KVTIER_DETACH_DISCARD,
				     10 * KVT_SEC));
	EXPECT_EQ(0, check_chains(&self->c, 0, 8));
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(0, st.nr_blocks);
}

static __u64 tier_used(const struct kvt_client *c, int id)
{
	struct kvtier_tier_stat tiers[KVTIER_TIERS_MAX];
	struct kvtier_stat st;
	int nr = kvt_tier_stats(c->fd, &st, tiers), i;

	for (i = 0; i < nr; i++) {
		if ((int)tiers[i].id == id)
			return tiers[i].used_bytes;
	}
	return 0;
}

/* The first half of a chain goes with its tier; the rest, which is elsewhere, holds nothing up. */
TEST_F(teardown, detach_discards_parents)
{
	const struct kvt_key *tail = self->keys + CHAIN / 2;
	struct kvtier_stat st;

	ASSERT_EQ(CHAIN / 2, kvt_put(&self->c, 0, 0, self->keys, NULL, CHAIN / 2));
	ASSERT_EQ(0, kvt_tier_detach(&self->pool, self->upper, 0, 10 * KVT_SEC));
	self->upper = kvt_tier_dram(&self->pool, 0, 8 * KVT_MIB);
	ASSERT_LE(0, self->upper);
	ASSERT_EQ(CHAIN / 2, kvt_put(&self->c, 0, 0, tail, tail - 1, CHAIN / 2));
	ASSERT_LT(0, tier_used(&self->c, self->lower));
	ASSERT_LT(0, tier_used(&self->c, self->upper));
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, self->lower, KVTIER_DETACH_DISCARD, KVT_SEC));
	EXPECT_EQ(-ENOENT, tier_state(&self->c, self->lower));
	EXPECT_EQ(0, kvt_lookup(self->c.fd, 0, self->keys, CHAIN / 2, NULL));
	/* What is left of the others is no bytes, and nobody's. */
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(CHAIN / 2, st.nr_blocks);
	EXPECT_EQ(tier_used(&self->c, self->upper), st.used_bytes);
	/* Entry and bytes are given back once each. */
	EXPECT_LE(0, kvt_drop(self->c.fd, 0, tail, CHAIN / 2, NULL));
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(0, st.nr_blocks);
	EXPECT_EQ(0, st.used_bytes);
}

/*
 * The only memory there is: its blocks have nowhere to go, so they leave the pool. While one is
 * leased it stays, and so does the tier, which serves as before.
 */
TEST_F(teardown, detach_the_last)
{
	struct kvtier_block_result res;
	struct kvtier_stat st;

	ASSERT_EQ(0, kvt_tier_detach(&self->pool, self->lower, 0, KVT_SEC));
	ASSERT_EQ(0, put_chains(&self->c, 0, 4));
	ASSERT_EQ(1, kvt_get(self->c.fd, 0, 0, self->keys, 1, &res, 0));
	EXPECT_EQ(-EBUSY, kvt_tier_detach(&self->pool, self->upper, 0, 500 * KVT_MSEC));
	EXPECT_EQ(KVTIER_TIER_ONLINE, tier_state(&self->c, self->upper));
	EXPECT_TRUE(kvt_bytes_ok(kvt_rd(&self->c, res.offset), self->keys, BLOCK_BYTES));
	EXPECT_EQ(1, kvt_check(&self->c, 0, self->keys, 1, 0));
	/* Others may have left before time was up, and can be stored again. */
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(4 * CHAIN, st.nr_blocks + st.evictions);
	ASSERT_EQ(0, put_chains(&self->c, 0, 4));
	EXPECT_EQ(4 * CHAIN, check_chains(&self->c, 0, 4));
	EXPECT_EQ(1, kvt_release(self->c.fd, &res.handle, 1, NULL));
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, self->upper, 0, 10 * KVT_SEC));
	EXPECT_EQ(-ENOENT, tier_state(&self->c, self->upper));
	EXPECT_EQ(0, check_chains(&self->c, 0, 4));
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(0, st.nr_blocks);
	EXPECT_EQ(st.puts, st.evictions);
	/* A pool without memory answers, and takes nothing. */
	EXPECT_EQ(0, kvt_reserve(self->c.fd, 0, 0, self->keys, NULL, 1, &res, 0));
	EXPECT_EQ(KVTIER_ST_NOSPACE, res.status);
}

TEST_F(teardown, drain_keeps_it_out)
{
	struct kvtier_block_result res[CHAIN];
	struct kvtier_tier_stat tiers[KVTIER_TIERS_MAX];
	struct kvtier_stat st;
	const char *mapped;
	int i, nr;

	ASSERT_EQ(0, put_chains(&self->c, 0, 4));
	kvt_keys(self->keys, SET, 0, CHAIN);
	ASSERT_EQ(CHAIN, kvt_get(self->c.fd, 0, 0, self->keys, CHAIN, res, 0));
	ASSERT_EQ(self->upper, res[CHAIN - 1].tier);
	mapped = kvt_rd(&self->c, res[CHAIN - 1].offset);
	ASSERT_EQ(1, kvt_bytes_probe(mapped, &self->keys[CHAIN - 1], BLOCK_BYTES));
	for (i = 0; i < CHAIN; i++)
		ASSERT_EQ(1, kvt_release(self->c.fd, &res[i].handle, 1, NULL));
	EXPECT_EQ(0, kvt_touch_read(mapped));
	EXPECT_EQ(0, drain(&self->pool, self->upper, 10 * KVT_SEC));
	EXPECT_EQ(KVTIER_TIER_DRAINING, tier_state(&self->c, self->upper));
	/* Who reads on in memory that has been drained sees nothing of what comes there next. */
	EXPECT_EQ(SIGBUS, kvt_touch_read(mapped));
	ASSERT_EQ(0, put_chains(&self->c, 100, 4));
	EXPECT_EQ(4 * CHAIN, check_chains(&self->c, 0, 4));
	kvt_keys(self->keys, SET, 100 * CHAIN, CHAIN);
	ASSERT_EQ(CHAIN, kvt_get(self->c.fd, 0, 0, self->keys, CHAIN, res, 0));
	for (i = 0; i < CHAIN; i++)
		EXPECT_EQ(self->lower, res[i].tier);
	nr = kvt_tier_stats(self->c.fd, &st, tiers);
	for (i = 0; i < nr; i++)
		if ((int)tiers[i].id == self->upper)
			EXPECT_EQ(0, tiers[i].used_bytes);
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, self->upper, 0, KVT_SEC));
}

TEST_F(teardown, drain_that_fails_goes_on)
{
	struct kvtier_block_result res;

	ASSERT_EQ(CHAIN, kvt_put(&self->c, 0, 0, self->keys, NULL, CHAIN));
	ASSERT_EQ(1, kvt_get(self->c.fd, 0, 0, self->keys, 1, &res, 0));
	EXPECT_EQ(-EBUSY, drain(&self->pool, self->upper, 200 * KVT_MSEC));
	EXPECT_EQ(KVTIER_TIER_DRAINING, tier_state(&self->c, self->upper));
	EXPECT_EQ(1, kvt_release(self->c.fd, &res.handle, 1, NULL));
	EXPECT_EQ(0, drain(&self->pool, self->upper, 10 * KVT_SEC));
}

struct load {
	const struct kvt_pool *pool;
	int first;
};

/* Stores and reads its own chains until told to stop; nothing may be wrong. */
static int loader(struct kvt_child *me, void *arg)
{
	const struct load *l = arg;
	struct kvt_client c;
	int nr = 0, ret;

	KVT_CHILD_CHECK(!kvt_client_open(l->pool, &c, "teardown", BLOCK_BYTES));
	while (kvt_hear(me, 0) == -ETIMEDOUT) {
		ret = put_chains(&c, l->first + nr % 16, 1);
		KVT_CHILD_CHECK(ret == 0 || ret == -ENOSPC);
		KVT_CHILD_CHECK(check_chains(&c, l->first, 16) >= 0);
		nr++;
	}
	KVT_CHILD_CHECK(!kvt_say(me, nr));
	return 0;
}

TEST_F_TIMEOUT(teardown, detach_under_load, 300)
{
	int rounds = kvt_env_rounds(8, 100), round, i, done = 0, err, loops = 0;
	struct kvt_child child[3];
	struct load load[3];

	for (i = 0; i < 3; i++) {
		load[i] = (struct load){ &self->pool, 1000 * (i + 1) };
		ASSERT_EQ(0, kvt_spawn(&child[i], loader, &load[i]));
	}
	/* Until one can go: what is below may be full of what is in use. */
	for (round = 0; round < rounds || (!done && round < 100); round++) {
		kvt_sleep_ms(50);
		err = kvt_tier_detach(&self->pool, self->upper, 0, 900 * KVT_MSEC);
		ASSERT_TRUE(!err || err == -EBUSY) TH_LOG("round %d: %d", round, err);
		if (err)
			continue;
		done++;
		kvt_sleep_ms(20);
		self->upper = kvt_tier_dram(&self->pool, 0, 8 * KVT_MIB);
		ASSERT_LE(0, self->upper);
	}
	EXPECT_LT(0, done);
	for (i = 0; i < 3; i++)
		kvt_say(&child[i], 0);
	for (i = 0; i < 3; i++) {
		loops = kvt_hear(&child[i], 60000);
		EXPECT_LT(0, loops);
		EXPECT_EQ(0, kvt_join(&child[i], 20000));
	}
}

/* --- the module --------------------------------------------------------------------------- */

static int unload(void)
{
	return syscall(SYS_delete_module, "kvtier", O_NONBLOCK) ? -errno : 0;
}

/* Nobody has it, but who has just let go may still be on his way out. */
static bool unloads(void)
{
	return KVT_UNTIL(5000, unload() == 0);
}

static bool in_use(int err)
{
	return err == -EBUSY || err == -EAGAIN;
}

FIXTURE(module)
{
	struct kvt_pool pool;
};

FIXTURE_SETUP(module)
{
	ASSERT_EQ(0, kvt_setup(&self->pool));
}

FIXTURE_TEARDOWN(module)
{
	EXPECT_EQ(0, kvt_klog_complaints());
	EXPECT_EQ(0, kvt_sh("modprobe kvtier"));
}

TEST_F(module, not_while_in_use)
{
	int ctl;

	EXPECT_TRUE(in_use(unload()));
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	ctl = open("/dev/kvtier", O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, ctl);
	EXPECT_TRUE(in_use(unload()));
	close(ctl);
	EXPECT_TRUE(unloads());
	EXPECT_EQ(-1, access("/dev/kvtier", F_OK));
}

TEST_F_TIMEOUT(module, load_and_unload, 600)
{
	int rounds = kvt_env_rounds(3, 50), i;
	struct kvt_client c;
	struct kvt_key key = kvt_key(SET, 0);

	EXPECT_EQ(0, kvt_teardown(&self->pool));
	for (i = 0; i < rounds; i++) {
		ASSERT_TRUE(unloads()) TH_LOG("round %d", i);
		ASSERT_EQ(0, kvt_setup(&self->pool));
		ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, 4 * KVT_MIB));
		if (kvt_env_dax())
			ASSERT_LE(0, kvt_tier_dax(&self->pool, 1, 4 * KVT_MIB));
		if (kvt_env_bdev())
			ASSERT_LE(0, kvt_tier_bdev(&self->pool, 2, 0));
		ASSERT_EQ(0, kvt_client_open(&self->pool, &c, "module", BLOCK_BYTES));
		EXPECT_EQ(1, kvt_put(&c, 0, 0, &key, NULL, 1));
		EXPECT_EQ(1, kvt_check(&c, 0, &key, 1, 0));
		kvt_client_close(&c);
		ASSERT_EQ(0, kvt_teardown(&self->pool));
	}
}

/* Unloading while pools come and go: one or the other, never half. */
static int pool_maker(struct kvt_child *me, void *arg)
{
	struct kvtier_pool_create a = { .size = sizeof(a), .pool_id = KVTIER_POOL_ANY_ID };
	unsigned int seed = 1;
	int ctl, nr = 0;

	(void)arg;
	while (kvt_hear(me, 0) == -ETIMEDOUT) {
		/* Without a break there is hardly a moment to unload in. */
		kvt_sleep_ms(rand_r(&seed) % 16);
		ctl = open("/dev/kvtier", O_RDWR | O_CLOEXEC);
		if (ctl < 0)
			continue;
		a.pool_id = KVTIER_POOL_ANY_ID;
		KVT_CHILD_CHECK(!kvt_ioctl(ctl, KVTIER_OP_POOL_CREATE, &a));
		KVT_CHILD_CHECK(!kvt_pool_destroy(ctl, a.pool_id));
		close(ctl);
		nr++;
	}
	KVT_CHILD_CHECK(!kvt_say(me, nr));
	return 0;
}

TEST_F_TIMEOUT(module, unload_race, 300)
{
	int rounds = kvt_env_rounds(6, 200), i, err, made, gone = 0, refused = 0;
	__u64 end = kvt_now_ns() + 120 * KVT_SEC;
	struct kvt_child child;

	EXPECT_EQ(0, kvt_teardown(&self->pool));
	ASSERT_EQ(0, kvt_spawn(&child, pool_maker, NULL));
	/* Until both have happened, or it was no race. */
	for (i = 0; i < rounds || ((!gone || !refused) && kvt_now_ns() < end); i++) {
		err = unload();
		ASSERT_TRUE(!err || in_use(err)) TH_LOG("round %d: %d", i, err);
		gone += !err;
		refused += !!err;
		ASSERT_EQ(0, kvt_sh("modprobe kvtier"));
	}
	EXPECT_LT(0, gone);
	EXPECT_LT(0, refused);
	kvt_say(&child, 0);
	made = kvt_hear(&child, 20000);
	EXPECT_EQ(0, kvt_join(&child, 10000));
	EXPECT_LT(0, made);
	/* Nobody holds it now. */
	EXPECT_TRUE(unloads());
	ASSERT_EQ(0, kvt_sh("modprobe kvtier"));
	ASSERT_EQ(0, kvt_setup(&self->pool));
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

/* --- a device that is taken away ------------------------------------------------------------ */

FIXTURE(unbind)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvt_key key;
	struct kvtier_block_result res;		/* leased */
	int dax;
	int dram;
};

FIXTURE_SETUP(unbind)
{
	if (!kvt_env_dax())
		SKIP(return, "no device-dax instance to use (KVT_DAX)");
	ASSERT_EQ(0, kvt_setup(&self->pool));
	self->dax = kvt_tier_dax(&self->pool, 0, 8 * KVT_MIB);
	ASSERT_LE(0, self->dax);
	self->dram = kvt_tier_dram(&self->pool, 1, 8 * KVT_MIB);
	ASSERT_LE(0, self->dram);
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "unbind", BLOCK_BYTES));
	self->key = kvt_key(SET, 0);
	ASSERT_EQ(1, kvt_put(&self->c, 0, 0, &self->key, NULL, 1));
	ASSERT_EQ(1, kvt_get(self->c.fd, 0, 0, &self->key, 1, &self->res, 0));
	ASSERT_EQ(self->dax, self->res.tier);
	ASSERT_EQ(0, kvt_touch_read(kvt_rd(&self->c, self->res.offset)));
}

FIXTURE_TEARDOWN(unbind)
{
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	EXPECT_EQ(0, kvt_dax_bind(kvt_env_dax(), "kvtier"));
}

static int unbind_dax(void)
{
	return kvt_sh("echo %s > /sys/bus/dax/drivers/kvtier/unbind", kvt_env_dax());
}

TEST_F(unbind, while_attached)
{
	struct kvtier_block_result fill;
	struct kvt_key other = kvt_key(SET, 1);

	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &other, NULL, 1, &fill, 0));
	ASSERT_EQ(self->dax, fill.tier);
	EXPECT_EQ(0, kvt_touch_write(kvt_wr(&self->c, fill.offset), 1));
	ASSERT_EQ(0, unbind_dax());
	EXPECT_EQ(KVTIER_TIER_FAILED, tier_state(&self->c, self->dax));
	/* No mapping is left, and none comes back. */
	EXPECT_EQ(SIGBUS, kvt_touch_read(kvt_rd(&self->c, self->res.offset)));
	EXPECT_EQ(SIGBUS, kvt_touch_write(kvt_wr(&self->c, fill.offset), 1));
	/* What was there is a miss; the rest of the pool serves. */
	EXPECT_EQ(0, kvt_lookup(self->c.fd, 0, &self->key, 1, NULL));
	EXPECT_EQ(1, kvt_put(&self->c, 0, 0, &self->key, NULL, 1));
	EXPECT_EQ(1, kvt_check(&self->c, 0, &self->key, 1, 0));
	EXPECT_EQ(1, kvt_release(self->c.fd, &self->res.handle, 1, NULL));
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, self->dax, 0, 5 * KVT_SEC));
	/* The device can be used again. */
	self->dax = kvt_tier_dax(&self->pool, 5, 8 * KVT_MIB);
	EXPECT_LE(0, self->dax);
}

/* Somebody still holds a page: it stays until he lets go, and so does the module. */
TEST_F(unbind, while_a_page_is_held)
{
	struct iovec iov = { .iov_base = kvt_rd(&self->c, self->res.offset), .iov_len = 4096 };
	char page[4096], want[4096];
	int line[2];

	ASSERT_EQ(0, pipe2(line, O_CLOEXEC));
	ASSERT_EQ(4096, vmsplice(line[1], &iov, 1, 0));
	ASSERT_EQ(0, unbind_dax());
	EXPECT_EQ(SIGBUS, kvt_touch_read(kvt_rd(&self->c, self->res.offset)));
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_pool_destroy(self->pool.ctl, self->pool.id));
	close(self->pool.ctl);
	EXPECT_TRUE(in_use(unload()));
	kvt_fill(want, &self->key, sizeof(want));
	EXPECT_EQ(4096, read(line[0], page, sizeof(page)));
	EXPECT_EQ(0, memcmp(page, want, sizeof(page)));
	close(line[0]);
	close(line[1]);
	EXPECT_TRUE(KVT_UNTIL(10000, unload() == 0));
	/* For the teardown. */
	ASSERT_EQ(0, kvt_sh("modprobe kvtier"));
	ASSERT_EQ(0, kvt_setup(&self->pool));
}

static __u64 pool_puts(const struct kvt_client *c)
{
	struct kvtier_stat st;

	return kvt_stat(c->fd, KVTIER_STAT_POOL, &st) ? 0 : st.puts;
}

TEST_F_TIMEOUT(unbind, under_load, 300)
{
	struct load load = { &self->pool, 50 };
	struct kvt_key keys[CHAIN];
	struct kvt_child child;
	struct kvtier_stat st;
	__u64 puts;

	EXPECT_EQ(1, kvt_release(self->c.fd, &self->res.handle, 1, NULL));
	ASSERT_EQ(0, kvt_spawn(&child, loader, &load));
	EXPECT_TRUE(KVT_UNTIL(20000, pool_puts(&self->c) > CHAIN + 1));
	EXPECT_EQ(0, unbind_dax());
	puts = pool_puts(&self->c);
	/* A client in the middle of filling may have met SIGBUS, nothing worse: else it goes on. */
	EXPECT_TRUE(KVT_UNTIL(20000, pool_puts(&self->c) > puts + CHAIN ||
			      kvt_proc_state(child.pid) == 'Z'));
	/* What is stored from now on goes to the memory that is left. */
	puts = pool_puts(&self->c);
	EXPECT_EQ(0, put_chains(&self->c, 200, 4));
	EXPECT_LE(puts + 4 * CHAIN, pool_puts(&self->c));
	kvt_keys(keys, SET, 203 * CHAIN, CHAIN);
	ASSERT_EQ(1, kvt_get(self->c.fd, 0, 0, keys, 1, &self->res, 0));
	EXPECT_EQ(self->dram, self->res.tier);
	EXPECT_TRUE(kvt_bytes_ok(kvt_rd(&self->c, self->res.offset), keys, BLOCK_BYTES));
	EXPECT_EQ(1, kvt_release(self->c.fd, &self->res.handle, 1, NULL));
	kvt_say(&child, 0);
	kvt_hear(&child, 60000);
	EXPECT_TRUE(({
		int ret = kvt_join(&child, 20000);

		ret == 0 || ret == -SIGBUS;
	}));
	ASSERT_EQ(0, kvt_stat(self->c.fd, KVTIER_STAT_POOL, &st));
	EXPECT_EQ(0, st.leases);
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, self->dax, 0, 5 * KVT_SEC));
}

TEST_HARNESS_MAIN
