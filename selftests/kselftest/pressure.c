// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that is full, with nothing below it: what goes, what stays, and what the
 * caller is told.
 */
#include "kvt_test.h"

#define BLOCK_BYTES	(32 * KVT_KIB)
#define TIER_BYTES	(8 * KVT_MIB)
#define SLOTS		((int)(TIER_BYTES / BLOCK_BYTES))
#define CHAIN		8
#define SET		15

FIXTURE(pressure)
{
	struct kvt_pool pool;
	struct kvt_client c;
};

FIXTURE_SETUP(pressure)
{
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, TIER_BYTES));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "pressure", BLOCK_BYTES));
}

FIXTURE_TEARDOWN(pressure)
{
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

static int put_chain(const struct kvt_client *c, __u64 chain)
{
	struct kvt_key keys[CHAIN];

	kvt_keys(keys, SET, chain * CHAIN, CHAIN);
	return kvt_put(c, KVTIER_RESERVE_WAIT, 0, keys, NULL, CHAIN);
}

static int check_chain(const struct kvt_client *c, __u64 chain)
{
	struct kvt_key keys[CHAIN];

	kvt_keys(keys, SET, chain * CHAIN, CHAIN);
	return kvt_check(c, 0, keys, CHAIN, 20 * KVT_SEC);
}

/* Every block's parent is there: nothing is left hanging. */
static int count_orphans(const struct kvt_client *c, int *nr_blocks)
{
	static const struct kvt_key zero;
	struct kvtier_lookup_result look;
	struct kvtier_entry *all;
	int nr = kvt_iterate_all(c->fd, 100, &all), i, orphans = 0;

	if (nr < 0)
		return nr;
	for (i = 0; i < nr; i++) {
		if (!memcmp(all[i].parent, &zero, sizeof(zero)))
			continue;
		if (kvt_lookup(c->fd, 0, (struct kvt_key *)all[i].parent, 1, &look) == 1)
			continue;
		/* Both may have gone since they were listed, the child first. */
		orphans += kvt_lookup(c->fd, 0, (struct kvt_key *)all[i].key, 1, &look) == 1;
	}
	free(all);
	*nr_blocks = nr;
	return orphans;
}

TEST_F(pressure, old_chains_leave_from_their_ends)
{
	int chains = kvt_env_rounds(3, 40) * SLOTS / CHAIN, i, ret, there = 0, nr = 0;
	struct kvtier_stat st;

	/* The youngest are to stay. */
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "policy", "lru"));
	for (i = 0; i < chains; i++) {
		ASSERT_EQ(CHAIN, put_chain(&self->c, i)) TH_LOG("chain %d", i);
		if (i % 16 == 15)
			EXPECT_EQ(0, count_orphans(&self->c, &nr));
	}
	for (i = 0; i < chains; i++) {
		ret = check_chain(&self->c, i);
		ASSERT_LE(0, ret) TH_LOG("chain %d: %d", i, ret);
		there += ret;
	}
	ASSERT_EQ(1, kvt_settled(&self->pool, &st, NULL));
	EXPECT_LT(0, st.evictions);
	EXPECT_LT(SLOTS / 2, there);
	EXPECT_GE(SLOTS, there);
	EXPECT_GE(TIER_BYTES, st.used_bytes);
	EXPECT_EQ(0, count_orphans(&self->c, &nr));
	EXPECT_EQ(st.nr_blocks, nr);
	/* The youngest is there in full. */
	EXPECT_EQ(CHAIN, check_chain(&self->c, chains - 1));
}

/* Above the high watermark blocks go, and no more of them than it is to the low one. */
TEST_F(pressure, down_to_the_low_watermark)
{
	int low = SLOTS * 85 / 100, high = SLOTS * 92 / 100, i;
	struct kvtier_stat st;

	for (i = 0; i <= high / CHAIN; i++)
		ASSERT_EQ(CHAIN, put_chain(&self->c, i));
	ASSERT_EQ(1, kvt_settled(&self->pool, &st, NULL));
	EXPECT_LT(0, st.evictions);
	EXPECT_LE(low - 2, st.nr_blocks);
	EXPECT_GE(high, st.nr_blocks);
}

/* What was used lately outlives what was not. */
TEST_F(pressure, recently_used_stays)
{
	int chains = 3 * SLOTS / CHAIN, i;

	/* Another policy may let go what came last first, as long as nothing comes back. */
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "policy", "lru"));
	for (i = 0; i < chains; i++) {
		ASSERT_EQ(CHAIN, put_chain(&self->c, i));
		ASSERT_EQ(CHAIN, check_chain(&self->c, 0)) TH_LOG("after chain %d", i);
		kvt_sleep_ms(4);
	}
	EXPECT_EQ(0, check_chain(&self->c, 1));
}

TEST_F(pressure, cold_goes_first)
{
	int chains = SLOTS / CHAIN * 3 / 4, i;
	struct kvt_key keys[CHAIN];

	/* Another policy may let its neighbour go, too, which nobody has used either. */
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "policy", "lru"));
	for (i = 0; i < chains; i++)
		ASSERT_EQ(CHAIN, put_chain(&self->c, i));
	kvt_keys(keys, SET, (chains - 1) * CHAIN, CHAIN);
	EXPECT_EQ(CHAIN, kvt_advise(self->c.fd, 0, keys, CHAIN, KVTIER_ADV_COLD, 0, NULL));
	for (i = 0; i < chains / 2; i++)
		ASSERT_EQ(CHAIN, put_chain(&self->c, 1000 + i));
	EXPECT_EQ(0, kvt_lookup(self->c.fd, 0, keys, CHAIN, NULL));
	EXPECT_EQ(CHAIN, check_chain(&self->c, chains - 2));
}

/* Who looks why blocks have left sees that nobody has lost anything. */
TEST_F(pressure, expired_goes_for_that)
{
	struct kvt_key keys[CHAIN];
	char name[64], text[32];
	int i;

	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "policy", "lru"));
	ASSERT_EQ(CHAIN, put_chain(&self->c, 0));
	kvt_keys(keys, SET, 0, CHAIN);
	ASSERT_EQ(CHAIN, kvt_advise(self->c.fd, 0, keys, CHAIN, KVTIER_ADV_TTL, 1, NULL));
	EXPECT_TRUE(KVT_UNTIL(6000, check_chain(&self->c, 0) == 0));
	for (i = 1; i <= SLOTS / CHAIN; i++)
		ASSERT_EQ(CHAIN, put_chain(&self->c, i));
	EXPECT_TRUE(KVT_UNTIL(20000, kvt_sysfs_read(&self->pool, "tiers/dram0/evicted_ttl", text,
						    sizeof(text)) > 0 && !strcmp(text, "8\n")));
	snprintf(name, sizeof(name), "namespaces/%llu/evicted_ttl",
		 (unsigned long long)self->c.ns_id);
	ASSERT_LT(0, kvt_sysfs_read(&self->pool, name, text, sizeof(text)));
	EXPECT_STREQ("0 8\n", text);
}

TEST_F(pressure, pinned_stays)
{
	struct kvt_key keys[CHAIN];
	int i, chains = 2 * SLOTS / CHAIN;

	kvt_keys(keys, SET, 0, CHAIN);
	ASSERT_EQ(CHAIN, put_chain(&self->c, 0));
	EXPECT_EQ(CHAIN, kvt_advise(self->c.fd, 0, keys, CHAIN, KVTIER_ADV_PIN, 0, NULL));
	for (i = 1; i < chains; i++)
		ASSERT_EQ(CHAIN, put_chain(&self->c, i));
	EXPECT_EQ(CHAIN, check_chain(&self->c, 0));
	EXPECT_EQ(CHAIN, kvt_advise(self->c.fd, 0, keys, CHAIN, KVTIER_ADV_UNPIN, 0, NULL));
	EXPECT_EQ(CHAIN, kvt_advise(self->c.fd, 0, keys, CHAIN, KVTIER_ADV_COLD, 0, NULL));
	for (i = 1; i < chains; i++)
		ASSERT_EQ(CHAIN, put_chain(&self->c, chains + i));
	EXPECT_EQ(0, kvt_lookup(self->c.fd, 0, keys, CHAIN, NULL));
}

/* Store and pin one after the other; how many could be, up to @nr. */
static int put_pinned(const struct kvt_client *c, int nr)
{
	struct kvt_key key;
	__s32 res;
	int i;

	for (i = 0; i < nr; i++) {
		key = kvt_key(SET, i);
		if (kvt_put(c, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1) != 1)
			break;
		if (kvt_advise(c->fd, 0, &key, 1, KVTIER_ADV_PIN, 0, &res) != 1)
			break;
	}
	return i;
}

/*
 * What one namespace may not have, several cannot have together: three quarters of what is
 * guaranteed to nobody, and of that one user's three quarters. Others still store, and who has a
 * guarantee finds room for it.
 */
TEST_F(pressure, pinned_by_many)
{
	struct kvtier_group g = { .block_bytes = BLOCK_BYTES };
	int fd = kvt_open(&self->pool), n = SLOTS / 4, pinned;
	struct kvt_client sure, hog[2];
	struct kvtier_ns_open a;

	kvt_ns_args(&a, "guaranteed", &g, 1);
	a.min_bytes = TIER_BYTES / 4;
	ASSERT_EQ(0, kvt_client_bind(&sure, fd, &a));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &hog[0], "hog", BLOCK_BYTES));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &hog[1], "accomplice", BLOCK_BYTES));
	EXPECT_EQ(SLOTS * 27 / 64, put_pinned(&hog[0], SLOTS));
	EXPECT_EQ(0, put_pinned(&hog[1], SLOTS));
	EXPECT_EQ(CHAIN, put_chain(&self->c, 0));
	/* And pins what it was promised, too. */
	pinned = put_pinned(&sure, n);
	EXPECT_EQ(n, pinned);
	kvt_client_close(&hog[0]);
	kvt_client_close(&hog[1]);
	kvt_client_close(&sure);
}

/* Nothing can go: the caller waits as long as he said, and is told. */
TEST_F(pressure, all_leased)
{
	struct kvtier_block_result res, done;
	__u64 start, handle[SLOTS];
	struct kvt_key key;
	int n;

	for (n = 0; n < SLOTS; n++) {
		key = kvt_key(SET, n);
		if (kvt_reserve(self->c.fd, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1, &res,
				100 * KVT_MSEC) != 1)
			break;
		kvt_fill(kvt_wr(&self->c, res.offset), &key, BLOCK_BYTES);
		ASSERT_EQ(1, kvt_commit(self->c.fd, KVTIER_COMMIT_LEASE, &res.handle, 1, &done));
		handle[n] = done.handle;
	}
	EXPECT_LE(SLOTS * 9 / 10, n);
	key = kvt_key(SET, SLOTS);
	start = kvt_now_ns();
	EXPECT_EQ(0, kvt_reserve(self->c.fd, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1, &res,
				 300 * KVT_MSEC));
	EXPECT_EQ(KVTIER_ST_NOSPACE, res.status);
	EXPECT_LE(300 * KVT_MSEC, kvt_now_ns() - start);
	/* Without WAIT the time does not count. */
	EXPECT_EQ(0, kvt_reserve(self->c.fd, 0, 0, &key, NULL, 1, &res, KVT_FOREVER));
	EXPECT_EQ(KVTIER_ST_NOSPACE, res.status);
	/* One lease less is one slot more. */
	EXPECT_EQ(1, kvt_release(self->c.fd, handle, 1, NULL));
	EXPECT_EQ(1, kvt_reserve(self->c.fd, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1, &res,
				 10 * KVT_SEC));
	key = kvt_key(SET, 1);
	EXPECT_EQ(1, kvt_check(&self->c, 0, &key, 1, 0));
}

static int late_releaser(struct kvt_child *me, void *arg)
{
	struct kvt_client *c = arg;

	KVT_CHILD_CHECK(kvt_hear(me, 20000) >= 0);
	kvt_sleep_ms(300);
	close(c->fd);
	kvt_unmap(&c->rd);
	kvt_unmap(&c->wr);
	return 0;
}

/* Who waits for room gets it when somebody lets go. */
TEST_F(pressure, waits_for_room)
{
	struct kvtier_block_result res;
	struct kvt_client holder;
	struct kvt_child child;
	struct kvt_key key;
	__u64 start;
	int n;

	ASSERT_EQ(0, kvt_client_open(&self->pool, &holder, "pressure", BLOCK_BYTES));
	for (n = 0; n < SLOTS; n++) {
		key = kvt_key(SET, n);
		if (kvt_reserve(holder.fd, 0, 0, &key, NULL, 1, &res, 0) != 1)
			break;
	}
	ASSERT_LT(SLOTS / 2, n);
	ASSERT_EQ(0, kvt_spawn(&child, late_releaser, &holder));
	kvt_client_close(&holder);
	key = kvt_key(SET, SLOTS);
	start = kvt_now_ns();
	kvt_say(&child, 0);
	EXPECT_EQ(1, kvt_reserve(self->c.fd, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1, &res,
				 100 * KVT_SEC));
	EXPECT_LE(300 * KVT_MSEC, kvt_now_ns() - start);
	EXPECT_EQ(0, kvt_join(&child, 10000));
}

/* All that one request may reserve while others' blocks are there. How many, or -errno. */
static int reserve_much(int fd, struct kvt_key *keys, struct kvtier_block_result *res, int nr)
{
	kvt_keys(keys, SET + 1, 0, nr);
	/* Longer than a test may take. */
	return kvt_reserve(fd, KVTIER_RESERVE_WAIT, 0, keys, NULL, nr, res, 3600 * KVT_SEC);
}

/*
 * A request larger than memory, reserved in one piece: a beginning of it is, and others keep what
 * they have. Once that is committed, it goes on as far as its blocks are worth it.
 */
TEST_F(pressure, one_request_does_not_push_out_all)
{
	struct kvtier_block_result *res = calloc(2 * SLOTS, sizeof(*res));
	struct kvt_key *keys = calloc(2 * SLOTS, sizeof(*keys));
	__u64 *handle = calloc(2 * SLOTS, sizeof(*handle));
	int chains = SLOTS * 6 / 10 / CHAIN, left = 0, n, i;
	struct kvt_client other;

	ASSERT_TRUE(keys && res && handle);
	ASSERT_EQ(0, kvt_client_open(&self->pool, &other, "other", BLOCK_BYTES));
	for (i = 0; i < chains; i++)
		ASSERT_EQ(CHAIN, put_chain(&other, i));
	n = reserve_much(self->c.fd, keys, res, 2 * SLOTS);
	ASSERT_LE(SLOTS / 4, n);
	ASSERT_GT(SLOTS / 2, n);
	EXPECT_EQ(KVTIER_ST_NOSPACE, res[n].status);
	EXPECT_EQ(KVTIER_ST_NOPARENT, res[n + 1].status);
	for (i = 0; i < chains; i++)
		left += check_chain(&other, i);
	TH_LOG("%d of %d reserved, %d of %d left", n, 2 * SLOTS, left, chains * CHAIN);
	EXPECT_LE(chains * CHAIN - SLOTS / 8, left);
	for (i = 0; i < n; i++)
		handle[i] = res[i].handle;
	ASSERT_EQ(n, kvt_commit(self->c.fd, 0, handle, n, res));
	EXPECT_EQ(1, kvt_reserve(self->c.fd, KVTIER_RESERVE_WAIT, 0, keys + n, keys + n - 1, 1, res,
				 20 * KVT_SEC));
	kvt_client_close(&other);
	free(keys);
	free(res);
	free(handle);
}

/* Nor all of its owner's, who is alone: there is no room for it in any case. */
TEST_F(pressure, one_request_does_not_push_out_its_owners)
{
	int nr = SLOTS + CHAIN, chains = SLOTS * 6 / 10 / CHAIN, left = 0, n, more, i;
	struct kvtier_block_result *res = calloc(nr, sizeof(*res));
	struct kvt_key *keys = calloc(nr, sizeof(*keys));
	__u64 *handle = calloc(nr, sizeof(*handle));

	ASSERT_TRUE(keys && res && handle);
	for (i = 0; i < chains; i++)
		ASSERT_EQ(CHAIN, put_chain(&self->c, i));
	n = reserve_much(self->c.fd, keys, res, nr);
	ASSERT_LE(SLOTS / 4, n);
	ASSERT_GT(SLOTS / 2, n);
	EXPECT_EQ(KVTIER_ST_NOSPACE, res[n].status);
	for (i = 0; i < chains; i++)
		left += check_chain(&self->c, i);
	TH_LOG("%d of %d reserved, %d of %d left", n, nr, left, chains * CHAIN);
	EXPECT_LE(chains * CHAIN - SLOTS / 8, left);
	/* What is to come would fit by itself, but not with what it goes on. */
	for (i = 0; i < n; i++)
		handle[i] = res[i].handle;
	ASSERT_EQ(n, kvt_commit(self->c.fd, 0, handle, n, res));
	more = kvt_reserve(self->c.fd, KVTIER_RESERVE_WAIT, 0, keys + n, keys + n - 1, nr - n, res,
			   3600 * KVT_SEC);
	TH_LOG("%d of %d more", more, nr - n);
	EXPECT_LE(SLOTS / 4, more);
	EXPECT_GT(SLOTS / 2, more);
	free(keys);
	free(res);
	free(handle);
}

/* Who is alone has all of it if that will do, and so has anybody if that is said. */
TEST_F(pressure, one_request_may_take_all)
{
	struct kvtier_block_result *res = calloc(SLOTS, sizeof(*res));
	struct kvt_key *keys = calloc(SLOTS, sizeof(*keys));
	int chains = SLOTS * 6 / 10 / CHAIN, i;
	struct kvt_client client;

	ASSERT_TRUE(keys && res);
	for (i = 0; i < chains; i++)
		ASSERT_EQ(CHAIN, put_chain(&self->c, i));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &client, "pressure", BLOCK_BYTES));
	kvt_keys(keys, SET + 1, 0, SLOTS);
	EXPECT_LE(SLOTS * 8 / 10, kvt_reserve(client.fd, KVTIER_RESERVE_WAIT, 0, keys, NULL, SLOTS,
					      res, KVT_SEC));
	kvt_client_close(&client);
	for (i = 0; i < chains; i++)
		ASSERT_EQ(CHAIN, put_chain(&self->c, i));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &client, "other", BLOCK_BYTES));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "reserve_percent", "100"));
	EXPECT_LE(SLOTS * 8 / 10, kvt_reserve(client.fd, KVTIER_RESERVE_WAIT, 0, keys, NULL, SLOTS,
					      res, KVT_SEC));
	kvt_client_close(&client);
	free(keys);
	free(res);
}

/* One chain longer than memory: what is there is a prefix of it, and can be continued. */
TEST_F(pressure, chain_longer_than_memory)
{
	struct kvt_key *keys = calloc(2 * SLOTS, sizeof(*keys));
	struct kvtier_stat st;
	int n, there, nr;

	kvt_keys(keys, SET, 0, 2 * SLOTS);
	n = kvt_put(&self->c, 0, 0, keys, NULL, 2 * SLOTS);
	EXPECT_LE(SLOTS * 8 / 10, n);
	EXPECT_GE(SLOTS, n);
	/* Memory is full, so the worker comes. */
	EXPECT_TRUE(KVT_UNTIL(20000, !kvt_stat(self->c.fd, 0, &st) && st.nr_blocks < SLOTS));
	ASSERT_EQ(1, kvt_settled(&self->pool, &st, NULL));
	there = (int)st.nr_blocks;
	EXPECT_LE(SLOTS / 2, there);
	EXPECT_EQ(there, kvt_check(&self->c, 0, keys, 2 * SLOTS, 0));
	EXPECT_EQ(0, count_orphans(&self->c, &nr));
	EXPECT_EQ(there, nr);
	/* Room for the next is not made by sawing off what it stands on. */
	EXPECT_EQ(1, kvt_put(&self->c, KVTIER_RESERVE_WAIT, 0, keys + there, keys + there - 1, 1));
	EXPECT_EQ(there + 1, kvt_check(&self->c, 0, keys, there + 1, 0));
	free(keys);
}

/* What is within its owner's guarantee is not pushed out by a neighbour's burst. */
TEST_F(pressure, guarantee_is_kept)
{
	struct kvtier_group g = { .block_bytes = BLOCK_BYTES };
	int fd = kvt_open(&self->pool), i, n = SLOTS / 4, there = 0;
	struct kvt_key keys[SLOTS / 4];
	struct kvtier_ns_open a;
	struct kvt_client sure;

	kvt_ns_args(&a, "guaranteed", &g, 1);
	a.min_bytes = TIER_BYTES / 4;
	ASSERT_EQ(0, kvt_client_bind(&sure, fd, &a));
	/* Until it is used it is everybody's. */
	for (i = 0; i < SLOTS / CHAIN; i++)
		ASSERT_LE(0, put_chain(&self->c, 1000 + i));
	for (i = 0; i < SLOTS / CHAIN; i++)
		there += check_chain(&self->c, 1000 + i);
	EXPECT_LT(SLOTS * 8 / 10, there);
	kvt_keys(keys, SET, 0, n);
	ASSERT_EQ(n, kvt_put(&sure, KVTIER_RESERVE_WAIT, 0, keys, NULL, n));
	for (i = 0; i < 2 * SLOTS / CHAIN; i++)
		ASSERT_LE(0, put_chain(&self->c, i));
	EXPECT_EQ(n, kvt_check(&sure, 0, keys, n, 0));
	kvt_client_close(&sure);
}

/* With less memory than was promised nobody's promise stops the others. */
TEST_F(pressure, broken_guarantee)
{
	struct kvtier_group g = { .block_bytes = BLOCK_BYTES };
	int more = kvt_tier_dram(&self->pool, 1, TIER_BYTES), i;
	struct kvtier_ns_open a;
	struct kvt_client all;
	struct kvt_key key;

	ASSERT_LE(0, more);
	kvt_ns_args(&a, "twice of it", &g, 1);
	a.min_bytes = 2 * TIER_BYTES;
	ASSERT_EQ(0, kvt_client_bind(&all, kvt_open(&self->pool), &a));
	ASSERT_EQ(0, kvt_tier_detach(&self->pool, more, 0, 60 * KVT_SEC));
	for (i = 0; i < 2 * SLOTS; i++) {
		key = kvt_key(SET, i);
		ASSERT_EQ(1, kvt_put(&all, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1));
	}
	ASSERT_EQ(CHAIN, put_chain(&self->c, 0));
	kvt_client_close(&all);
}

/* A guarantee is against others: within it the namespace's own groups trade places. */
TEST_F(pressure, guarantee_is_not_against_oneself)
{
	struct kvtier_group g[2] = {
		{ .block_bytes = BLOCK_BYTES }, { .block_bytes = 2 * BLOCK_BYTES },
	};
	struct kvtier_ns_open a;
	struct kvt_client all;
	struct kvt_key key;
	int i;

	kvt_ns_args(&a, "all of it", g, 2);
	a.min_bytes = TIER_BYTES;
	ASSERT_EQ(0, kvt_client_bind(&all, kvt_open(&self->pool), &a));
	for (i = 0; i < 2 * SLOTS; i++) {
		key = kvt_key(SET, i);
		ASSERT_EQ(1, kvt_put(&all, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1));
	}
	for (i = 0; i < SLOTS; i++) {
		key = kvt_key(SET + 1, i);
		ASSERT_EQ(1, kvt_put(&all, KVTIER_RESERVE_WAIT, 1, &key, NULL, 1))
			TH_LOG("block %d", i);
	}
	EXPECT_EQ(1, kvt_check(&all, 1, &key, 1, 0));
	kvt_client_close(&all);
}

/* Two tenants with blocks of different sizes pass memory back and forth. */
TEST_F(pressure, sizes_trade_places)
{
	int round, i, big_chains = TIER_BYTES / (512 * KVT_KIB) / 2, nr, ret, there = 0;
	struct kvt_client big;
	struct kvt_key key;

	ASSERT_EQ(0, kvt_client_open(&self->pool, &big, "big", 512 * KVT_KIB));
	for (round = 0; round < kvt_env_rounds(2, 10); round++) {
		for (i = 0; i < SLOTS / CHAIN; i++)
			ASSERT_EQ(CHAIN, put_chain(&self->c, round * 1000 + i));
		for (i = 0; i < big_chains; i++) {
			key = kvt_key(SET + 1, round * 1000 + i);
			ASSERT_EQ(1, kvt_put(&big, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1));
			/* A policy may let it go again at once, but not each of them. */
			ret = kvt_check(&big, 0, &key, 1, 20 * KVT_SEC);
			EXPECT_LE(0, ret);
			there += ret == 1;
		}
		EXPECT_EQ(0, count_orphans(&self->c, &nr));
	}
	EXPECT_LT(0, there);
	kvt_client_close(&big);
}

/* --- a namespace at its quota ------------------------------------------------------------ */

#define SMALL_BYTES	4096
#define OTHERS		12000	/* blocks, older than any of the one with the quota */
#define QUOTA_BLOCKS	8

/* A chain, of whatever there is in memory: what is in it does not matter. */
static int put_as_they_are(const struct kvt_client *c, const struct kvt_key *keys, int nr)
{
	struct kvtier_block_result res[128], done[128];
	__u64 handle[128];
	int i, n = kvt_reserve(c->fd, 0, 0, keys, NULL, nr, res, 0);

	for (i = 0; i < n; i++)
		handle[i] = res[i].handle;
	return n > 0 ? kvt_commit(c->fd, 0, handle, n, done) : n;
}

FIXTURE(quota)
{
	struct kvt_pool pool;
	struct kvt_client others;
	struct kvt_client c;
};

FIXTURE_SETUP(quota)
{
	struct kvtier_group group = { .block_bytes = SMALL_BYTES };
	struct kvtier_ns_open a;

	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, 64 * KVT_MIB));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->others, "others", SMALL_BYTES));
	kvt_ns_args(&a, "quota", &group, 1);
	a.quota_bytes = QUOTA_BLOCKS * SMALL_BYTES;
	ASSERT_EQ(0, kvt_client_bind(&self->c, kvt_open(&self->pool), &a));
}

FIXTURE_TEARDOWN(quota)
{
	kvt_client_close(&self->c);
	kvt_client_close(&self->others);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

/* The namespace's own oldest blocks make room, however many older ones others have. */
TEST_F(quota, own_blocks_make_room)
{
	struct kvt_key keys[100];
	struct kvtier_stat st;
	int i;

	for (i = 0; i < OTHERS; i += 100) {
		kvt_keys(keys, SET, i, 100);
		ASSERT_EQ(100, put_as_they_are(&self->others, keys, 100));
	}
	for (i = 0; i < 10 * QUOTA_BLOCKS; i++) {
		keys[0] = kvt_key(SET + 1, i);
		ASSERT_EQ(1, kvt_put(&self->c, 0, 0, keys, NULL, 1)) TH_LOG("block %d", i);
	}
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(QUOTA_BLOCKS, st.nr_blocks);
	EXPECT_EQ(9 * QUOTA_BLOCKS, st.evictions);
	/* The youngest are there, the oldest have gone. */
	for (i = 0; i < 10 * QUOTA_BLOCKS; i++) {
		keys[0] = kvt_key(SET + 1, i);
		EXPECT_EQ(i >= 9 * QUOTA_BLOCKS, kvt_check(&self->c, 0, keys, 1, 0));
	}
	ASSERT_EQ(0, kvt_stat(self->others.fd, 0, &st));
	EXPECT_EQ(OTHERS, st.nr_blocks);
}

/* The oldest goes, and using a block saves it, whichever was looked at last. */
TEST_F(quota, used_blocks_stay)
{
	struct kvt_key key, keep = kvt_key(SET + 1, 0), cold;
	int i;

	for (i = 0; i < QUOTA_BLOCKS; i++) {
		key = kvt_key(SET + 1, i);
		ASSERT_EQ(1, kvt_put(&self->c, 0, 0, &key, NULL, 1));
		kvt_sleep_ms(10);	/* the clock's step */
	}
	for (; i < 6 * QUOTA_BLOCKS; i++) {
		/* The one that would be the next to go, and the first one for ever. */
		key = kvt_key(SET + 1, i - QUOTA_BLOCKS + 1);
		ASSERT_EQ(1, kvt_check(&self->c, 0, &keep, 1, 0)) TH_LOG("block %d", i);
		key = kvt_key(SET + 1, i);
		ASSERT_EQ(1, kvt_put(&self->c, 0, 0, &key, NULL, 1)) TH_LOG("block %d", i);
		kvt_sleep_ms(10);
	}
	/* What is to go first does. */
	cold = kvt_key(SET + 1, i - 1);
	ASSERT_EQ(1, kvt_advise(self->c.fd, 0, &cold, 1, KVTIER_ADV_COLD, 0, NULL));
	key = kvt_key(SET + 1, i);
	ASSERT_EQ(1, kvt_put(&self->c, 0, 0, &key, NULL, 1));
	EXPECT_EQ(0, kvt_check(&self->c, 0, &cold, 1, 0));
	EXPECT_EQ(1, kvt_check(&self->c, 0, &keep, 1, 0));
}

/* --- a tier of which every piece is a region of its own ------------------------------------ */

#define PIECES		64	/* a chunk of the directory of regions */

FIXTURE(pieces)
{
	struct kvt_pool pool;
	struct kvt_client c;
};

FIXTURE_SETUP(pieces)
{
	int i, k, nr = PIECES * KVT_PIECE / BLOCK_BYTES;
	struct kvt_key keys[64];

	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, PIECES * KVT_PIECE));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "watermark_high_percent", "100"));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "pieces", BLOCK_BYTES));
	for (i = 0; i < nr; i += 64) {
		for (k = 0; k < 64; k++)
			keys[k] = kvt_key(SET, i + k);
		ASSERT_EQ(64, put_as_they_are(&self->c, keys, 64));
	}
}

FIXTURE_TEARDOWN(pieces)
{
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

/* There is no room and no number for another region, and somebody wants one. */
TEST_F(pieces, another_comes)
{
	struct kvt_key key = kvt_key(SET + 1, 0);
	struct kvt_client other;

	ASSERT_EQ(0, kvt_client_open(&self->pool, &other, "other", BLOCK_BYTES));
	EXPECT_EQ(1, kvt_put(&other, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1));
	EXPECT_EQ(1, kvt_check(&other, 0, &key, 1, 0));
	kvt_client_close(&other);
}

TEST_F(pieces, an_arena_comes)
{
	struct kvtier_arena a = { .size = sizeof(a), .nr_slots = 4 };
	struct kvtier_group g = { .block_bytes = BLOCK_BYTES };
	struct kvtier_ns_open o;
	struct kvt_client other;

	kvt_ns_args(&o, "arena", &g, 1);
	o.min_bytes = 4 * KVT_PIECE;
	ASSERT_EQ(0, kvt_client_bind(&other, kvt_open(&self->pool), &o));
	EXPECT_EQ(-ENOSPC, kvt_ioctl(other.fd, KVTIER_OP_ARENA, &a));
	kvt_client_close(&other);
}

/* --- memory below memory ------------------------------------------------------------------ */

FIXTURE(below)
{
	struct kvt_pool pool;
	struct kvt_client c;
};

FIXTURE_VARIANT(below)
{
	const char *policy;
};

FIXTURE_VARIANT_ADD(below, lru) { .policy = "lru" };
FIXTURE_VARIANT_ADD(below, reuse) { .policy = "reuse" };

FIXTURE_SETUP(below)
{
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, TIER_BYTES));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 7, TIER_BYTES));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "policy", variant->policy));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "below", BLOCK_BYTES));
}

FIXTURE_TEARDOWN(below)
{
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

/* Nearly all of both is full of one chain: what is below cannot go before its end above does. */
TEST_F(below, one_chain_has_all)
{
	int nr = 2 * SLOTS * 9 / 10 / CHAIN * CHAIN, i;
	struct kvt_key *keys = calloc(nr, sizeof(*keys));
	struct kvt_client other;

	ASSERT_NE(NULL, keys);
	kvt_keys(keys, SET, 0, nr);
	for (i = 0; i < nr; i += CHAIN)
		ASSERT_EQ(CHAIN, kvt_put(&self->c, KVTIER_RESERVE_WAIT, 0, keys + i,
					 i ? keys + i - 1 : NULL, CHAIN));
	free(keys);
	ASSERT_EQ(0, kvt_client_open(&self->pool, &other, "other", BLOCK_BYTES));
	for (i = 0; i < SLOTS / CHAIN / 2; i++) {
		ASSERT_EQ(CHAIN, put_chain(&other, i)) TH_LOG("chain %d", i);
		/* What ends a chain may leave again at once: nothing else can. */
		EXPECT_LE(0, check_chain(&other, i)) TH_LOG("chain %d", i);
	}
	kvt_client_close(&other);
}

/* --- a writer that never waits ------------------------------------------------------------ */

FIXTURE(busy)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvt_child writer;
	int lowest;
};

FIXTURE_SETUP(busy)
{
	if (!kvt_env_dax())
		SKIP(return, "no device-dax instance to use (KVT_DAX)");
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, TIER_BYTES));
	/* Moves to it are slow here, so the writer is always ahead of them. */
	ASSERT_LE(0, kvt_tier_dax(&self->pool, 1, 128 * KVT_MIB));
	self->lowest = kvt_tier_dram(&self->pool, 2, TIER_BYTES);
	ASSERT_LE(0, self->lowest);
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "busy", BLOCK_BYTES));
}

FIXTURE_TEARDOWN(busy)
{
	kvt_kill_all();
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

/* Stores as fast as room appears, and does not ask for any to be made. */
static int write_busily(struct kvt_child *me, void *arg)
{
	const struct kvt_pool *pool = arg;
	struct kvtier_block_result res[CHAIN], done[CHAIN];
	struct kvt_key keys[CHAIN];
	__u64 handle[CHAIN], at, busy_after = kvt_env_rounds(400, 2000);
	struct kvt_client c;
	int i, n;

	KVT_CHILD_CHECK(!kvt_client_open(pool, &c, "busy", BLOCK_BYTES));
	for (at = 1; ; at++) {
		kvt_keys(keys, SET + 2, at * CHAIN, CHAIN);
		n = kvt_reserve(c.fd, 0, 0, keys, NULL, CHAIN, res, 0);
		KVT_CHILD_CHECK(n >= 0);
		for (i = 0; i < n; i++)
			handle[i] = res[i].handle;
		/* Reservations end soon; who is held up for so long has none any more. */
		if (n)
			KVT_CHILD_CHECK(kvt_commit(c.fd, 0, handle, n, done) >= 0);
		if (at == busy_after)
			KVT_CHILD_CHECK(!kvt_say(me, 0));
	}
	return 0;
}

/* The worker has its hands full, and still does what depends on time; tiers can go. */
TEST_F(busy, worker_gets_around)
{
	struct kvt_key key = kvt_key(SET, 0);
	struct kvtier_block_result res;
	struct kvtier_stat st;

	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "reservation_timeout_ms", "500"));
	ASSERT_EQ(0, kvt_spawn(&self->writer, write_busily, &self->pool));
	ASSERT_EQ(0, kvt_hear(&self->writer, 60000));
	ASSERT_EQ(1, kvt_reserve(self->c.fd, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1, &res,
				 50 * KVT_SEC));
	/* The writer's may, too, if it is held up for so long. */
	EXPECT_TRUE(KVT_UNTIL(5000, !kvt_stat(self->c.fd, 0, &st) && st.aborts));
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, self->lowest, 0, 10 * KVT_SEC));
}

TEST_HARNESS_MAIN
