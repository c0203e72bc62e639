// SPDX-License-Identifier: GPL-2.0
/*
 * What is on a block device, seen from outside: read with the decoder that a restart
 * would use, while the pool is there and after it.
 */
#include "kvt_test.h"
#include "kvt_medium.h"

#define BLOCK_BYTES	(64 * KVT_KIB)
#define CHAIN		8
#define MANY_SMALL	46	/* times 256 blocks: three quarters of the disk */
#define CHAINS		40
#define SET		33

FIXTURE(log)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvt_medium m;
	int disk;
	bool alive;
};

FIXTURE_SETUP(log)
{
	if (!kvt_env_bdev())
		SKIP(return, "no block device to use (KVT_BDEV)");
	ASSERT_EQ(0, kvt_setup(&self->pool));
	self->alive = true;
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, 4 * KVT_MIB));
	self->disk = kvt_tier_bdev(&self->pool, 1, 64 * KVT_MIB);
	ASSERT_LE(0, self->disk);
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "log", BLOCK_BYTES));
}

FIXTURE_TEARDOWN(log)
{
	kvt_medium_free(&self->m);
	if (!self->alive)
		return;
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

static int end_pool(FIXTURE_DATA(log) *self)
{
	self->alive = false;
	kvt_client_close(&self->c);
	return kvt_teardown(&self->pool);
}

static int put_chains(const struct kvt_client *c, int first, int nr)
{
	struct kvt_key keys[CHAIN];
	int i, ret, sum = 0;

	for (i = first; i < first + nr; i++) {
		kvt_keys(keys, SET, i * CHAIN, CHAIN);
		ret = kvt_put(c, KVTIER_RESERVE_WAIT, 0, keys, NULL, CHAIN);
		if (ret < 0)
			return ret;
		sum += ret;
	}
	return sum;
}

/* Entries, once nothing goes down by itself any more. */
static int settled(const struct kvt_pool *p, const struct kvt_client *c,
		   struct kvtier_entry **all)
{
	struct kvtier_stat st;
	int ret = kvt_settled(p, &st, NULL);

	return ret < 0 ? ret : kvt_iterate_all(c->fd, 4096, all);
}

/* Blocks without parents. */
static int put_roots(const struct kvt_client *c, const struct kvt_key *keys,
			 const struct kvt_key *none, int nr)
{
	struct kvtier_block_result res[256];
	__u64 handle[256];
	int i, n = 0, ret;

	ret = kvt_reserve(c->fd, KVTIER_RESERVE_WAIT | KVTIER_RESERVE_PARENTS, 0, keys, none, nr,
			  res, 10 * KVT_SEC);
	if (ret < 0)
		return ret;
	for (i = 0; i < nr; i++) {
		if (res[i].status != KVTIER_ST_RESERVED)
			continue;
		kvt_fill(kvt_wr(c, res[i].offset), &keys[i], 4096);
		handle[n++] = res[i].handle;
	}
	return n ? kvt_commit(c->fd, 0, handle, n, res) : 0;
}

static int on_tier(const struct kvtier_entry *all, int nr, int tier)
{
	int i, n = 0;

	for (i = 0; i < nr; i++)
		n += (int)all[i].tier == tier;
	return n;
}

/* Is the block there, whole, and what it is said to be. */
static bool found_right(const struct kvt_medium *m, const struct kvtier_entry *e)
{
	const struct kvt_medium_block *b = kvt_medium_find(m, e->key);

	return b && b->good && b->bytes == BLOCK_BYTES &&
	       !memcmp(b->parent, e->parent, sizeof(b->parent));
}

static int not_found(const struct kvt_medium *m, const struct kvtier_entry *all, int nr, int tier)
{
	int i, n = 0;

	for (i = 0; i < nr; i++)
		n += (int)all[i].tier == tier && !found_right(m, &all[i]);
	return n;
}

static bool is_entry(const struct kvtier_entry *all, int nr, const void *key)
{
	int i;

	for (i = 0; i < nr; i++)
		if (!memcmp(all[i].key, key, KVTIER_KEY_BYTES))
			return true;
	return false;
}

/* What is found and was not there. */
static int strangers(const struct kvt_medium *m, const struct kvtier_entry *all, int nr)
{
	__u32 i;
	int n = 0;

	for (i = 0; i < m->nr_blocks; i++)
		n += !is_entry(all, nr, m->blocks[i].key);
	return n;
}

/* A pool that ends leaves all that was on the device in good order. */
TEST_F_TIMEOUT(log, clean_end, 300)
{
	struct kvtier_entry *all;
	int nr;

	ASSERT_EQ(CHAINS * CHAIN, put_chains(&self->c, 0, CHAINS));
	nr = settled(&self->pool, &self->c, &all);
	ASSERT_LE(CHAINS * CHAIN / 2, on_tier(all, nr, self->disk));
	ASSERT_EQ(0, end_pool(self));
	ASSERT_EQ(0, kvt_medium_read(kvt_env_bdev(), &self->m));
	EXPECT_TRUE(self->m.clean);
	EXPECT_EQ(0, self->m.nr_unsealed);
	EXPECT_LT(0, self->m.nr_sealed);
	EXPECT_EQ(0, self->m.nr_bad);
	EXPECT_EQ(1, self->m.nr_ns);
	EXPECT_EQ(1, self->m.nr_members);
	EXPECT_EQ(0, not_found(&self->m, all, nr, self->disk));
	EXPECT_EQ(0, strangers(&self->m, all, nr));
	free(all);
}

static long long tier_number(const struct kvt_pool *p, const char *what)
{
	char name[64], buf[32];

	snprintf(name, sizeof(name), "tiers/bdev1/%s", what);
	return kvt_sysfs_read(p, name, buf, sizeof(buf)) < 0 ? -1 : strtoll(buf, NULL, 10);
}

/* What the device has to write for each hundred bytes that come down to it. */
static long long amplification_percent(const struct kvt_pool *p)
{
	long long down = tier_number(p, "demoted_bytes");

	return down <= 0 ? -1 : (tier_number(p, "write_bytes") + tier_number(p, "log_bytes")) *
				100 / down;
}

/* The same when segments have been cleaned, ended and used again many times. */
TEST_F_TIMEOUT(log, clean_end_after_churn, 300)
{
	int nr, round, rounds = kvt_env_many(2, 12);
	struct kvtier_entry *all;

	for (round = 0; round < rounds; round++)
		ASSERT_LE(0, put_chains(&self->c, round * 5 * CHAINS, 5 * CHAINS));
	nr = settled(&self->pool, &self->c, &all);
	ASSERT_LE(CHAINS * CHAIN, on_tier(all, nr, self->disk));
	TH_LOG("100 bytes that go down make %lld to be written, of these %lld beside blocks",
	       amplification_percent(&self->pool), tier_number(&self->pool, "log_bytes") * 100 /
	       tier_number(&self->pool, "demoted_bytes"));
	EXPECT_LE(100, amplification_percent(&self->pool));
	EXPECT_GE(115, amplification_percent(&self->pool));
	ASSERT_EQ(0, end_pool(self));
	ASSERT_EQ(0, kvt_medium_read(kvt_env_bdev(), &self->m));
	EXPECT_TRUE(self->m.clean);
	EXPECT_EQ(0, self->m.nr_unsealed);
	EXPECT_EQ(0, self->m.nr_bad);
	EXPECT_EQ(0, not_found(&self->m, all, nr, self->disk));
	EXPECT_EQ(0, strangers(&self->m, all, nr));
	free(all);
}

/* Bytes that the device was told to forget since it appeared; -errno. */
static long long disk_discarded(void)
{
	long long sectors = -EIO;
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/block/%s/stat", strrchr(kvt_env_bdev(), '/') + 1);
	f = fopen(path, "r");
	if (!f)
		return -errno;
	/* Read, write: 4 each; in flight, ticks, ticks; discards, merged, sectors. */
	if (fscanf(f, "%*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %lld", &sectors) == 1)
		sectors *= 512;
	fclose(f);
	return sectors;
}

/* What a round of churn adds to what the tier, and its device, have counted. */
static int churn_discards(FIXTURE_DATA(log) *self, int round, long long *tier, long long *disk)
{
	long long before = tier_number(&self->pool, "discarded_bytes");
	long long disk_before = disk_discarded();
	struct kvtier_entry *all;
	int ret;

	ret = put_chains(&self->c, round * 5 * CHAINS, 5 * CHAINS);
	if (ret >= 0)
		ret = settled(&self->pool, &self->c, &all);
	if (ret < 0)
		return ret;
	free(all);
	*tier = tier_number(&self->pool, "discarded_bytes") - before;
	*disk = disk_discarded() - disk_before;
	return disk_before < 0 ? (int)disk_before : 0;
}

/* A device is told what is free, unless the administrator does not want that. */
TEST_F_TIMEOUT(log, discards, 300)
{
	long long tier, disk;

	/* Another policy does not write what is stored once. */
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "policy", "lru"));
	ASSERT_EQ(0, churn_discards(self, 0, &tier, &disk));
	ASSERT_EQ(0, churn_discards(self, 1, &tier, &disk));
	EXPECT_LT(0, tier);
	EXPECT_EQ(0, tier % (2 * (long long)KVT_MIB));
	EXPECT_EQ(tier, disk);
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "discard", "0"));
	ASSERT_EQ(0, churn_discards(self, 2, &tier, &disk));
	EXPECT_EQ(0, tier);
	EXPECT_EQ(0, disk);
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "discard", "1"));
	ASSERT_EQ(0, churn_discards(self, 3, &tier, &disk));
	EXPECT_LT(0, tier);
	EXPECT_EQ(tier, disk);
}

/*
 * Puts @times what the tier holds, a chain every @pace_ns at most. Every third chain is used again
 * ten of those later: *@used of these blocks were there, of *@asked.
 */
static int put_and_use(const FIXTURE_DATA(log) *self, int times, __u64 pace_ns, int *used,
		       int *asked)
{
	long long fits = tier_number(&self->pool, "capacity_bytes"), put_bytes;
	__u64 start = kvt_now_ns();
	struct kvt_key keys[CHAIN];
	int i, ret, again;

	*used = 0;
	*asked = 0;
	for (i = 0, put_bytes = 0; put_bytes < times * fits; i++, put_bytes += CHAIN * BLOCK_BYTES) {
		ret = put_chains(&self->c, i, 1);
		again = i / 3 * 3 - 30;
		if (ret >= 0 && again >= 0) {
			kvt_keys(keys, SET, again * CHAIN, CHAIN);
			ret = kvt_check(&self->c, 0, keys, CHAIN, 10 * KVT_SEC);
			*used += ret;
			*asked += CHAIN;
		}
		/* What is written depends on what is there: not on how fast a machine puts. */
		if (ret >= 0)
			ret = kvt_kept_up(&self->pool);
		if (ret < 0)
			return ret;
		while (kvt_now_ns() < start + i * pace_ns)
			kvt_sleep_ms(1);
	}
	return i;
}

/*
 * Four times what the tier holds: of what is not used again half is not written, and of what
 * was written nothing is written twice for long. What is used again is there.
 */
TEST_F_TIMEOUT(log, gated, 300)
{
	long long fits = tier_number(&self->pool, "capacity_bytes"), put_bytes, was;
	struct kvtier_entry *all;
	int nr, used, asked;
	char name[128];

	/*
	 * What is worth a write goes by time. At one pace it matters less that the machine is busy
	 * for a while.
	 */
	nr = put_and_use(self, 4, 80 * KVT_MSEC, &used, &asked);
	ASSERT_LT(0, nr);
	put_bytes = (long long)nr * CHAIN * BLOCK_BYTES;
	ASSERT_LE(0, settled(&self->pool, &self->c, &all));
	free(all);
	was = tier_number(&self->pool, "demoted_bytes");
	printf("# of %lld MiB that were put %lld went down, %lld blocks were not carried, %d of %d used again, and 100 bytes that went down made %lld\n",
	       put_bytes / (long long)KVT_MIB, was / (long long)KVT_MIB,
	       tier_number(&self->pool, "evicted_worth"), used, asked,
	       amplification_percent(&self->pool));
	EXPECT_GT(put_bytes - (put_bytes - fits) / 4, was);
	EXPECT_LT(fits, was);
	EXPECT_LT(0, tier_number(&self->pool, "evicted_worth"));
	/* Whose they were is known by the same cause. */
	snprintf(name, sizeof(name), "namespaces/%llu/evicted_worth",
		 (unsigned long long)self->c.ns_id);
	EXPECT_LT(0, kvt_sysfs_read(&self->pool, name, name, sizeof(name)));
	EXPECT_LT(asked / 2, used);
	/* 103 to 112 as the machine is idle or not, 135 to 139 where all that is left is carried. */
	EXPECT_GE(125, amplification_percent(&self->pool));
}

/* Bytes that were written to the tier without having come down: carried forward. */
static long long carried(const struct kvt_pool *p)
{
	return tier_number(p, "write_bytes") - tier_number(p, "demoted_bytes");
}

/* Drops all chains but each @keep-th, and of those all but the first @blocks. */
static int drop_most(const FIXTURE_DATA(log) *self, int nr, int keep, int blocks)
{
	struct kvt_key keys[CHAIN];
	int i, first, ret = 0;

	for (i = 0; i < nr && ret >= 0; i++) {
		kvt_keys(keys, SET, i * CHAIN, CHAIN);
		first = i % keep ? 0 : blocks;
		if (first < CHAIN)
			ret = kvt_drop(self->c.fd, 0, keys + first, CHAIN - first, NULL);
	}
	return ret;
}

/*
 * Of a tier most of which was dropped nothing goes, though its segments are emptied for
 * @least to @most chains, and that whether they are cheap to empty or not.
 */
static void hollow(struct __test_metadata *_metadata, FIXTURE_DATA(log) *self, int keep,
		   int blocks, int least, int most)
{
	struct kvtier_entry *all;
	long long before, moved;
	int nr, used, asked, i;

	nr = put_and_use(self, 2, 0, &used, &asked);
	ASSERT_LT(0, nr);
	ASSERT_LE(0, settled(&self->pool, &self->c, &all));
	free(all);
	ASSERT_LE(0, drop_most(self, nr, keep, blocks));
	before = tier_number(&self->pool, "evicted_worth");
	moved = carried(&self->pool);
	for (i = 0; i < least || (i < most && carried(&self->pool) == moved); i += 4) {
		ASSERT_EQ(4 * CHAIN, put_chains(&self->c, 10000 + i, 4));
		ASSERT_LE(0, settled(&self->pool, &self->c, &all));
		free(all);
	}
	printf("# %lld KiB were carried\n", (carried(&self->pool) - moved) / (long long)KVT_KIB);
	EXPECT_EQ(before, tier_number(&self->pool, "evicted_worth"));
	/* Else there was nothing to decide. */
	EXPECT_LT(moved, carried(&self->pool));
}

TEST_F_TIMEOUT(log, hollow_is_room, 300)
{
	hollow(_metadata, self, 16, CHAIN, 4, 240);
}

TEST_F_TIMEOUT(log, thin_is_room, 300)
{
	hollow(_metadata, self, 1, CHAIN / 4, 24, 24);
}

/* Of the blocks that were on the tier before, those that are there and not durable. */
static int undurable(const struct kvtier_entry *before, int nr_before,
		     const struct kvtier_entry *now, int nr, int tier)
{
	int i, k, n = 0;

	for (i = 0; i < nr_before; i++) {
		if ((int)before[i].tier != tier)
			continue;
		for (k = 0; k < nr; k++)
			n += !memcmp(before[i].key, now[k].key, KVTIER_KEY_BYTES) &&
			     (int)now[k].tier == tier && !(now[k].flags & KVTIER_ENTRY_DURABLE);
	}
	return n;
}

/* After fsync all of it is found, as if the machine stopped now. */
TEST_F_TIMEOUT(log, fsync_makes_durable, 300)
{
	struct kvtier_entry *all, *before;
	int nr, nr_before, round;

	/* At once: a moment later it would be durable in any case. */
	for (round = 0; round < 12; round++) {
		ASSERT_EQ(CHAINS * CHAIN / 4, put_chains(&self->c, round * CHAINS, CHAINS / 4));
		nr_before = kvt_iterate_all(self->c.fd, 4096, &before);
		ASSERT_EQ(0, fsync(self->c.fd));
		nr = kvt_iterate_all(self->c.fd, 4096, &all);
		EXPECT_EQ(0, undurable(before, nr_before, all, nr, self->disk));
		free(all);
		free(before);
	}
	nr = settled(&self->pool, &self->c, &all);
	ASSERT_LE(CHAINS * CHAIN / 2, on_tier(all, nr, self->disk));
	ASSERT_EQ(0, fsync(self->c.fd));
	ASSERT_EQ(0, kvt_medium_read(kvt_env_bdev(), &self->m));
	EXPECT_FALSE(self->m.clean);
	EXPECT_EQ(0, self->m.nr_bad);
	EXPECT_EQ(0, not_found(&self->m, all, nr, self->disk));
	EXPECT_EQ(0, strangers(&self->m, all, nr));
	free(all);
}

/* In memory nothing is durable, however often one asks. */
TEST_F(log, memory_is_not_durable)
{
	struct kvtier_entry *all;
	int nr, i;

	ASSERT_EQ(CHAIN, put_chains(&self->c, 0, 1));
	ASSERT_EQ(0, fsync(self->c.fd));
	nr = kvt_iterate_all(self->c.fd, 64, &all);
	ASSERT_EQ(CHAIN, nr);
	for (i = 0; i < nr; i++)
		EXPECT_EQ(0, all[i].flags & KVTIER_ENTRY_DURABLE);
	free(all);
}

/* When DROP has returned, what it dropped is not found again. */
TEST_F_TIMEOUT(log, dropped_stays_dropped, 300)
{
	struct kvt_key keys[CHAIN];
	int i, k, was = 0, back = 0;

	ASSERT_EQ(CHAINS * CHAIN, put_chains(&self->c, 0, CHAINS));
	ASSERT_EQ(0, fsync(self->c.fd));
	ASSERT_EQ(0, kvt_medium_read(kvt_env_bdev(), &self->m));
	for (i = 0; i < CHAINS; i += 6) {
		kvt_keys(keys, SET, i * CHAIN, CHAIN);
		for (k = 0; k < CHAIN; k++)
			was += kvt_medium_find(&self->m, &keys[k]) != NULL;
		ASSERT_EQ(CHAIN, kvt_drop(self->c.fd, 0, keys, CHAIN, NULL));
		kvt_medium_free(&self->m);
		ASSERT_EQ(0, kvt_medium_read(kvt_env_bdev(), &self->m));
		for (k = 0; k < CHAIN; k++)
			back += kvt_medium_find(&self->m, &keys[k]) != NULL;
	}
	EXPECT_LT(CHAIN, was);
	EXPECT_EQ(0, back);
}

/* Also what is brought up, and so leaves the device, before it is dropped. */
TEST_F_TIMEOUT(log, promoted_and_dropped, 300)
{
	struct kvtier_block_result res[CHAIN];
	struct kvt_key keys[CHAIN];
	int i, k, back = 0;

	ASSERT_EQ(CHAINS * CHAIN, put_chains(&self->c, 0, CHAINS));
	ASSERT_EQ(0, fsync(self->c.fd));
	for (i = 0; i < CHAINS / 2; i += 4) {
		kvt_keys(keys, SET, i * CHAIN, CHAIN);
		/* Not waited for. */
		kvt_get(self->c.fd, 0, 0, keys, CHAIN, res, 0);
		for (k = 0; k < CHAIN; k++)
			if (res[k].handle)
				kvt_release(self->c.fd, &res[k].handle, 1, NULL);
		ASSERT_EQ(CHAIN, kvt_drop(self->c.fd, 0, keys, CHAIN, NULL));
		/* A key that is not there any more is promised just as well. */
		ASSERT_EQ(0, kvt_drop(self->c.fd, 0, keys, CHAIN, NULL));
		kvt_medium_free(&self->m);
		ASSERT_EQ(0, kvt_medium_read(kvt_env_bdev(), &self->m));
		for (k = 0; k < CHAIN; k++)
			back += kvt_medium_find(&self->m, &keys[k]) != NULL;
	}
	EXPECT_EQ(0, back);
}

static int attach_to(const struct kvt_pool *p, const char *path, __u64 bytes, __u32 flags)
{
	struct kvtier_tier_attach a;
	int err;

	kvt_tier_args(p, &a, KVTIER_TIER_BDEV, 7);
	a.flags = flags;
	a.capacity_bytes = bytes;
	snprintf(a.path, sizeof(a.path), "%s", path);
	err = kvt_ioctl(p->ctl, KVTIER_OP_TIER_ATTACH, &a);
	return err ? err : (int)a.tier_id;
}

static int attach(const struct kvt_pool *p, __u32 flags)
{
	return attach_to(p, kvt_env_bdev(), 64 * KVT_MIB, flags);
}

/* A member is not overwritten by accident; one that was detached is none any more. */
TEST_F_TIMEOUT(log, members_are_kept, 300)
{
	int id;

	ASSERT_EQ(CHAINS * CHAIN, put_chains(&self->c, 0, CHAINS));
	ASSERT_EQ(0, end_pool(self));
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, 4 * KVT_MIB));
	EXPECT_EQ(-EEXIST, attach(&self->pool, 0));
	ASSERT_EQ(0, kvt_medium_read(kvt_env_bdev(), &self->m));
	EXPECT_TRUE(self->m.clean);
	EXPECT_LT(0, self->m.nr_blocks);
	kvt_medium_free(&self->m);
	id = attach(&self->pool, KVTIER_ATTACH_FORCE);
	ASSERT_LE(0, id);
	/* Nothing of the old one is the new one's. */
	ASSERT_EQ(0, kvt_medium_read(kvt_env_bdev(), &self->m));
	EXPECT_FALSE(self->m.clean);
	EXPECT_EQ(0, self->m.nr_blocks);
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, id, 0, 5 * KVT_SEC));
	EXPECT_EQ(-EMEDIUMTYPE, kvt_medium_read(kvt_env_bdev(), &self->m));
	id = attach(&self->pool, 0);
	EXPECT_LE(0, id);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

/* Blocks so small that there are many more kills than the ring takes. */
TEST_F_TIMEOUT(log, many_small_blocks, 1200)
{
	int nr, i, rounds = kvt_env_many(40, 400), bad = 0;
	struct kvt_key keys[256], none[256];
	struct kvtier_entry *all;
	struct kvt_client small;

	memset(none, 0, sizeof(none));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &small, "small", 4096));
	for (i = 0; i < rounds; i++) {
		kvt_keys(keys, SET + 1, i * 256, 256);
		ASSERT_LE(0, put_roots(&small, keys, none, 256)) TH_LOG("round %d", i);
		kvt_keys(keys, SET + 1, (i - i / 3) * 256, 256);
		/* Half of an older round goes, the other half is looked at. */
		kvt_drop(small.fd, 0, keys, 128, NULL);
		bad += kvt_check(&small, 0, keys + 128, 1, 5 * KVT_SEC) < 0;
	}
	EXPECT_EQ(0, bad);
	nr = settled(&self->pool, &small, &all);
	ASSERT_LE(0, nr);
	kvt_client_close(&small);
	ASSERT_EQ(0, end_pool(self));
	ASSERT_EQ(0, kvt_medium_read(kvt_env_bdev(), &self->m));
	EXPECT_TRUE(self->m.clean);
	EXPECT_EQ(0, self->m.nr_unsealed);
	EXPECT_EQ(0, self->m.nr_bad);
	EXPECT_EQ(0, strangers(&self->m, all, nr));
	for (i = 0; i < nr; i++)
		bad += (int)all[i].tier == self->disk && !kvt_medium_find(&self->m, all[i].key);
	EXPECT_EQ(0, bad);
	free(all);
}

/*
 * Half of very many blocks goes, and segments are full of what says so. Where the end of
 * one of them went would be full of the same: that few are free is no reason to go on for ever.
 */
TEST_F_TIMEOUT(log, comes_to_rest, 600)
{
	struct kvt_key keys[256], none[256];
	struct kvtier_entry *all;
	struct kvt_client small;
	int i, k, nr, was;

	memset(none, 0, sizeof(none));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "policy", "lru"));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &small, "small", 4096));
	for (i = 0; i < MANY_SMALL; i++) {
		kvt_keys(keys, SET + 1, i * 256, 256);
		ASSERT_LE(0, put_roots(&small, keys, none, 256)) TH_LOG("round %d", i);
	}
	was = settled(&self->pool, &small, &all);
	ASSERT_LT(MANY_SMALL * 200, was);
	free(all);
	for (i = 0; i < MANY_SMALL; i++) {
		for (k = 0; k < 128; k++)
			keys[k] = kvt_key(SET + 1, i * 256 + 2 * k);
		kvt_drop(small.fd, 0, keys, 128, NULL);
	}
	nr = settled(&self->pool, &small, &all);
	ASSERT_LE(0, nr);
	EXPECT_GT(was * 2 / 3, nr);
	free(all);
	kvt_client_close(&small);
	ASSERT_EQ(0, end_pool(self));
	ASSERT_EQ(0, kvt_medium_read(kvt_env_bdev(), &self->m));
	EXPECT_TRUE(self->m.clean);
	EXPECT_EQ(0, self->m.nr_bad);
}

/* Blocks go from one device to another, and both know of each other while they are there. */
TEST_F_TIMEOUT(log, two_members, 300)
{
	struct kvtier_entry *all;
	int nr, low, there;

	if (!kvt_env_scratch())
		SKIP(return, "no second block device to use (KVT_SCRATCH)");
	ASSERT_EQ(0, kvt_tier_detach(&self->pool, self->disk, 0, KVT_SEC));
	self->disk = kvt_tier_bdev(&self->pool, 1, 24 * KVT_MIB);
	ASSERT_LE(0, self->disk);
	low = attach_to(&self->pool, kvt_env_scratch(), 128 * KVT_MIB, KVTIER_ATTACH_FORCE);
	ASSERT_LE(0, low);
	/* More than memory and the first device have room for. */
	ASSERT_EQ(640, put_chains(&self->c, 0, 80));
	nr = settled(&self->pool, &self->c, &all);
	there = on_tier(all, nr, low);
	EXPECT_LT(0, there);
	EXPECT_EQ(640, nr);
	free(all);
	ASSERT_EQ(0, kvt_medium_read(kvt_env_scratch(), &self->m));
	EXPECT_EQ(2, self->m.nr_members);
	kvt_medium_free(&self->m);
	ASSERT_EQ(0, kvt_tier_detach(&self->pool, self->disk, 0, 30 * KVT_SEC));
	EXPECT_EQ(-EMEDIUMTYPE, kvt_medium_read(kvt_env_bdev(), &self->m));
	nr = kvt_iterate_all(self->c.fd, 4096, &all);
	EXPECT_EQ(0, on_tier(all, nr, self->disk));
	EXPECT_LT(there, on_tier(all, nr, low));
	EXPECT_EQ(640, nr);
	free(all);
	ASSERT_EQ(0, fsync(self->c.fd));
	nr = settled(&self->pool, &self->c, &all);
	ASSERT_EQ(0, end_pool(self));
	ASSERT_EQ(0, kvt_medium_read(kvt_env_scratch(), &self->m));
	EXPECT_TRUE(self->m.clean);
	EXPECT_EQ(1, self->m.nr_members);
	EXPECT_EQ(0, self->m.nr_unsealed);
	EXPECT_EQ(0, self->m.nr_bad);
	EXPECT_EQ(0, not_found(&self->m, all, nr, low));
	EXPECT_EQ(0, strangers(&self->m, all, nr));
	free(all);
}

/* fsync of a file that is bound to nothing says so. */
TEST_F(log, fsync_unbound)
{
	int fd = kvt_open(&self->pool);

	ASSERT_LE(0, fd);
	EXPECT_EQ(-1, fsync(fd));
	EXPECT_EQ(EBADFD, errno);
	close(fd);
}

/*
 * More namespaces than half of what a segment has room to define: when a segment ends, most
 * of what it says of them must have been said again, or each end would take a segment.
 */
#define CROWD		48
#define FULL_AFTER	20	/* rounds: more than memory and disk take */

FIXTURE(crowd)
{
	struct kvt_pool pool;
	struct kvt_client c[CROWD];
};

FIXTURE_SETUP(crowd)
{
	char name[16];
	int i;

	if (!kvt_env_bdev())
		SKIP(return, "no block device to use (KVT_BDEV)");
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, 8 * KVT_MIB));
	ASSERT_LE(0, kvt_tier_bdev(&self->pool, 1, 20 * KVT_MIB));
	/* Another policy does not write what is stored once. */
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "policy", "lru"));
	for (i = 0; i < CROWD; i++) {
		snprintf(name, sizeof(name), "crowd%d", i);
		ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c[i], name, 4096));
	}
}

FIXTURE_TEARDOWN(crowd)
{
	int i;

	for (i = 0; i < CROWD; i++)
		kvt_client_close(&self->c[i]);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

/* A chain for each. How many bytes came down meanwhile; -errno. */
static long long crowd_round(FIXTURE_DATA(crowd) *self, int round)
{
	long long before = tier_number(&self->pool, "demoted_bytes");
	int i, ret;

	for (i = 0; i < CROWD; i++) {
		ret = put_chains(&self->c[i], round, 1);
		if (ret < 0)
			return ret;
	}
	return tier_number(&self->pool, "demoted_bytes") - before;
}

TEST_F_TIMEOUT(crowd, log_goes_round, 600)
{
	long long down, least = 1LL << 40, all = CROWD * CHAIN * 4096;
	struct kvt_key key;
	int round, i, rounds = kvt_env_many(FULL_AFTER + 4, 60);

	for (round = 0; round < rounds; round++) {
		down = crowd_round(self, round);
		ASSERT_LE(0, down) TH_LOG("round %d: %lld", round, down);
		if (round >= FULL_AFTER && down < least)
			least = down;
	}
	TH_LOG("of %lld KiB in a round at least %lld came down", all / 1024, least / 1024);
	/* Fewer rounds, on a slow kernel, do not fill it. */
	if (rounds > FULL_AFTER)
		EXPECT_LT(all / 4, least);
	kvt_keys(&key, SET, (rounds - 1) * CHAIN, 1);
	for (i = 0; i < CROWD; i++)
		EXPECT_LE(0, kvt_drop(self->c[i].fd, 0, &key, 1, NULL));
}

TEST_HARNESS_MAIN
