// SPDX-License-Identifier: GPL-2.0
/*
 * Pools come back from their devices: whole after an end in order, with all that was
 * durable after one without, and never with wrong bytes, whatever is on the devices.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "kvt_medium.h"
#include "kvt_test.h"

#define BLOCK_BYTES	(64 * KVT_KIB)
#define CHAIN		8
#define CHAINS		15
#define TURN		8	/* chains written before others are dropped */
#define TURNS		10
#define SET		41
#define DISK_BYTES	(24 * KVT_MIB)
#define DRAM_BYTES	(8 * KVT_MIB)
#define ALICE		1001
#define BOB		1002
#define FAIL		"/sys/kernel/debug/fail_make_request"
#define QUOTA		(900 * KVT_MIB)

/* Offsets in a superblock, see the format's description. */
#define SUPER_VERSION	12
#define SUPER_POOL	16
#define SUPER_NR_SEGS	108
#define SUPER_INCOMPAT	72
#define SUPER_NAME	192

FIXTURE(assemble)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvt_disk disk[4];
	struct kvtier_assemble_device dev[4];
	struct kvtier_pool_assemble a;
	int dram;
};

static int open_client(FIXTURE_DATA(assemble) *self, const char *identity)
{
	struct kvtier_group group = { .block_bytes = BLOCK_BYTES };
	struct kvtier_ns_open o;
	int fd = kvt_open(&self->pool);

	if (fd < 0)
		return fd;
	kvt_ns_args(&o, identity, &group, 1);
	o.quota_bytes = QUOTA;
	return kvt_client_bind(&self->c, fd, &o);
}

FIXTURE_SETUP(assemble)
{
	char name[] = "disk0";
	int i;

	self->c.fd = -1;
	for (i = 0; i < 4; i++, name[4]++)
		ASSERT_EQ(0, kvt_disk_make(&self->disk[i], name, DISK_BYTES));
	ASSERT_EQ(0, kvt_setup(&self->pool));
	self->dram = kvt_tier_dram(&self->pool, 0, DRAM_BYTES);
	ASSERT_LE(0, self->dram);
	ASSERT_LE(0, kvt_tier_disk(&self->pool, 30, &self->disk[0]));
	ASSERT_EQ(0, open_client(self, "assemble"));
}

FIXTURE_TEARDOWN(assemble)
{
	int i;

	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	for (i = 0; i < 4; i++)
		kvt_disk_remove(&self->disk[i]);
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

/* Blocks of these chains that are there; every one must be right. */
static int check_chains(const struct kvt_client *c, int first, int nr)
{
	struct kvt_key keys[CHAIN];
	int i, k, ret, sum = 0;

	for (i = first; i < first + nr; i++) {
		kvt_keys(keys, SET, i * CHAIN, CHAIN);
		for (k = 0; k < CHAIN; k++) {
			ret = kvt_check(c, 0, &keys[k], 1, 10 * KVT_SEC);
			if (ret < 0)
				return ret;
			sum += ret;
		}
	}
	return sum;
}

/* Every block goes to the disks. */
static int send_down(FIXTURE_DATA(assemble) *self)
{
	int err = kvt_tier_detach(&self->pool, self->dram, 0, 60 * KVT_SEC);

	self->dram = err ? self->dram : -1;
	return err ? err : fsync(self->c.fd) ? -errno : 0;
}

static int end_pool(FIXTURE_DATA(assemble) *self)
{
	kvt_client_close(&self->c);
	return kvt_pool_destroy(self->pool.ctl, self->pool.id);
}

/* Of disks @first and on; -errno. */
static int assemble(FIXTURE_DATA(assemble) *self, int first, int nr, __u32 flags)
{
	int i;

	memset(self->dev, 0, sizeof(self->dev));
	for (i = 0; i < nr; i++)
		memcpy(self->dev[i].path, self->disk[first + i].dev,
		       sizeof(self->disk[first + i].dev));
	self->a = (struct kvtier_pool_assemble) {
		.size = sizeof(self->a),
		.flags = flags,
		.pool_id = KVTIER_POOL_ANY_ID,
		.nr_devices = nr,
		.devices = KVT_U64(self->dev),
	};
	return kvt_pool_assemble(&self->pool, &self->a);
}

static int open_again(FIXTURE_DATA(assemble) *self)
{
	self->dram = kvt_tier_dram(&self->pool, 0, DRAM_BYTES);
	return self->dram < 0 ? self->dram : open_client(self, "assemble");
}

/* Pools must exist for the teardown. */
static int make_any_pool(FIXTURE_DATA(assemble) *self)
{
	struct kvtier_pool_create c = { .size = sizeof(c), .pool_id = KVTIER_POOL_ANY_ID };
	int err = kvt_ioctl(self->pool.ctl, KVTIER_OP_POOL_CREATE, &c);

	self->pool.id = c.pool_id;
	return err;
}

TEST_F_TIMEOUT(assemble, whole, 300)
{
	struct kvtier_entry *e = NULL;
	struct kvtier_stat st;
	int nr, i, roots = 0;
	struct kvt_key key;

	ASSERT_EQ(CHAINS * CHAIN, put_chains(&self->c, 0, CHAINS));
	ASSERT_EQ(0, send_down(self));
	ASSERT_EQ(0, end_pool(self));
	ASSERT_EQ(0, assemble(self, 0, 1, 0));
	EXPECT_EQ(0, self->dev[0].error);
	EXPECT_EQ(KVTIER_MEMBER_CLEAN, self->dev[0].state);
	EXPECT_EQ(30, self->dev[0].rank);
	EXPECT_STREQ("bdev30", self->dev[0].name);
	EXPECT_EQ(1, self->a.nr_members);
	EXPECT_EQ(1, self->a.nr_found);
	EXPECT_EQ(CHAINS * CHAIN, self->a.nr_blocks);
	EXPECT_EQ(1, self->a.nr_namespaces);
	EXPECT_EQ(1, self->a.nr_unclaimed);
	EXPECT_EQ(0, self->a.nr_unsealed);
	EXPECT_EQ(0, self->a.nr_bad_bytes + self->a.nr_bad_records + self->a.nr_bad_reads);
	EXPECT_EQ(0, self->a.nr_orphans + self->a.nr_cycles);
	EXPECT_LT(0, self->a.nr_segments);
	EXPECT_LT(0, self->a.time_ns);
	ASSERT_EQ(0, open_again(self));
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(CHAINS * CHAIN, st.nr_blocks);
	EXPECT_EQ(CHAINS * CHAIN * BLOCK_BYTES, st.used_bytes);
	ASSERT_EQ(CHAINS * CHAIN, check_chains(&self->c, 0, CHAINS));
	nr = kvt_iterate_all(self->c.fd, 64, &e);
	ASSERT_EQ(CHAINS * CHAIN, nr);
	memset(&key, 0, sizeof(key));
	for (i = 0; i < nr; i++)
		roots += !memcmp(e[i].parent, &key, sizeof(key));
	EXPECT_EQ(CHAINS, roots);
	free(e);
	/* What extends others is still in their way. */
	key = kvt_key(SET, 0);
	EXPECT_EQ(0, kvt_drop(self->c.fd, 0, &key, 1, NULL));
}

TEST_F_TIMEOUT(assemble, again_and_again, 600)
{
	int round;

	for (round = 0; round < 4; round++) {
		ASSERT_EQ(4 * CHAIN, put_chains(&self->c, round * 4, 4));
		ASSERT_EQ(0, send_down(self));
		ASSERT_EQ(0, end_pool(self));
		ASSERT_EQ(0, assemble(self, 0, 1, 0)) TH_LOG("round %d", round);
		EXPECT_EQ((round + 1) * 4 * CHAIN, self->a.nr_blocks);
		ASSERT_EQ(0, open_again(self));
		ASSERT_EQ((round + 1) * 4 * CHAIN, check_chains(&self->c, 0, round * 4 + 4));
	}
}

/* What is durable is found without an end in order; a copy is what a crash leaves. */
TEST_F_TIMEOUT(assemble, after_a_crash, 600)
{
	struct kvt_key keys[CHAIN];
	int i;

	ASSERT_EQ(CHAINS * CHAIN, put_chains(&self->c, 0, CHAINS));
	ASSERT_EQ(0, send_down(self));
	/* A third is dropped: that is so for good when the call returns. */
	for (i = 0; i < CHAINS; i += 3) {
		kvt_keys(keys, SET, i * CHAIN, CHAIN);
		ASSERT_EQ(CHAIN, kvt_drop(self->c.fd, 0, keys, CHAIN, NULL));
	}
	ASSERT_EQ(0, kvt_disk_copy(&self->disk[1], &self->disk[0]));
	ASSERT_EQ(0, end_pool(self));
	ASSERT_EQ(0, assemble(self, 1, 1, 0));
	EXPECT_EQ(KVTIER_MEMBER_DIRTY, self->dev[0].state);
	EXPECT_LT(0, self->a.nr_unsealed);
	EXPECT_EQ(CHAINS * CHAIN * 2 / 3, self->a.nr_blocks);
	EXPECT_LE(CHAINS * CHAIN / 3, self->a.nr_dead);
	ASSERT_EQ(0, open_again(self));
	for (i = 0; i < CHAINS; i++)
		ASSERT_EQ(i % 3 ? CHAIN : 0, check_chains(&self->c, i, 1)) TH_LOG("chain %d", i);
	/* It takes more, and ends in order: what had no footer has got one. */
	ASSERT_EQ(CHAIN, put_chains(&self->c, CHAINS, 1));
	ASSERT_EQ(0, send_down(self));
	ASSERT_EQ(0, end_pool(self));
	ASSERT_EQ(0, assemble(self, 1, 1, 0));
	EXPECT_EQ(KVTIER_MEMBER_CLEAN, self->dev[0].state);
	EXPECT_EQ(0, self->a.nr_unsealed);
	EXPECT_EQ(CHAINS * CHAIN * 2 / 3 + CHAIN, self->a.nr_blocks);
	ASSERT_EQ(0, open_again(self));
	ASSERT_EQ(CHAINS * CHAIN * 2 / 3 + CHAIN, check_chains(&self->c, 0, CHAINS + 1));
}

static int drop_chains(const struct kvt_client *c, int first, int nr)
{
	struct kvt_key keys[CHAIN];
	int i, sum = 0, ret;

	for (i = first; i < first + nr; i++) {
		kvt_keys(keys, SET, i * CHAIN, CHAIN);
		ret = kvt_drop(c->fd, 0, keys, CHAIN, NULL);
		if (ret < 0)
			return ret;
		sum += ret;
	}
	return sum;
}

/* Which blocks of these chains there are, a bit for each. */
static void take_stock(const struct kvt_client *c, __u8 *there, int nr)
{
	struct kvtier_lookup_result res;
	struct kvt_key key;
	int i;

	memset(there, 0, nr * CHAIN);
	for (i = 0; i < nr * CHAIN; i++) {
		key = kvt_key(SET, i);
		there[i] = kvt_lookup(c->fd, 0, &key, 1, &res) == 1;
	}
}

/*
 * Segments are used again and again: what is in them counts, not what was. There is so
 * little room that some blocks are evicted; what was there then is there again.
 */
TEST_F_TIMEOUT(assemble, much_written, 900)
{
	static __u8 before[TURNS * TURN * CHAIN], after[TURNS * TURN * CHAIN];
	struct kvtier_stat st;
	int turn, i, nr = 0;

	for (turn = 0; turn < TURNS; turn++) {
		ASSERT_EQ(TURN * CHAIN, put_chains(&self->c, turn * TURN, TURN));
		ASSERT_EQ(0, send_down(self));
		self->dram = kvt_tier_dram(&self->pool, 0, DRAM_BYTES);
		ASSERT_LE(0, self->dram);
		/* But for one chain of each turn. */
		if (turn)
			ASSERT_LT(0, drop_chains(&self->c, (turn - 1) * TURN + 1, TURN - 1));
	}
	ASSERT_EQ(0, send_down(self));
	/* What is copied while segments are cleaned is nothing that ever was. */
	ASSERT_EQ(1, kvt_settled(&self->pool, &st, NULL));
	take_stock(&self->c, before, TURNS * TURN);
	ASSERT_EQ(0, kvt_disk_copy(&self->disk[1], &self->disk[0]));
	ASSERT_EQ(0, end_pool(self));
	ASSERT_EQ(0, assemble(self, 1, 1, 0));
	ASSERT_EQ(0, open_again(self));
	take_stock(&self->c, after, TURNS * TURN);
	for (i = 0; i < TURNS * TURN * CHAIN; i++) {
		EXPECT_EQ(before[i], after[i]) TH_LOG("block %d of turn %d", i, i / TURN / CHAIN);
		nr += after[i];
	}
	EXPECT_EQ((int)self->a.nr_blocks, nr);
	EXPECT_LT(TURN * CHAIN / 2, nr);
	EXPECT_EQ(nr, check_chains(&self->c, 0, TURNS * TURN));
}

static __u64 blocks_on(FIXTURE_DATA(assemble) *self, __u32 rank)
{
	struct kvtier_tier_info tiers[KVTIER_TIERS_MAX];
	struct kvtier_query q;
	int i, nr = kvt_query(self->c.fd, &q, tiers);

	for (i = 0; i < nr; i++)
		if (tiers[i].rank == rank)
			return tiers[i].nr_blocks;
	return 0;
}

/*
 * Of two records of a block the newer counts, and when that is dropped the older one
 * does not come back. The first disk is as it was before its blocks went to the second.
 */
TEST_F_TIMEOUT(assemble, old_records_stay_dead, 600)
{
	struct kvtier_tier_op op = { .size = sizeof(op), .timeout_ns = 60 * KVT_SEC };
	const int kept = 5;

	ASSERT_LE(0, kvt_tier_disk(&self->pool, 40, &self->disk[1]));
	ASSERT_EQ(CHAINS * CHAIN, put_chains(&self->c, 0, CHAINS));
	ASSERT_EQ(0, send_down(self));
	ASSERT_EQ(CHAINS * CHAIN, blocks_on(self, 30));
	ASSERT_EQ(0, kvt_disk_copy(&self->disk[2], &self->disk[0]));
	/* The second does not get these, so there is something left on the first. */
	ASSERT_EQ(kept * CHAIN, drop_chains(&self->c, 0, kept));
	op.pool_id = self->pool.id;
	op.tier_id = 1;
	ASSERT_EQ(0, kvt_ioctl(self->pool.ctl, KVTIER_OP_TIER_DRAIN, &op));
	ASSERT_EQ((CHAINS - kept) * CHAIN, blocks_on(self, 40));
	ASSERT_EQ(0, kvt_disk_copy(&self->disk[3], &self->disk[1]));
	ASSERT_EQ(0, end_pool(self));
	ASSERT_EQ(0, assemble(self, 2, 2, 0));
	EXPECT_EQ(CHAINS * CHAIN, self->a.nr_blocks);
	EXPECT_EQ((CHAINS - kept) * CHAIN, self->a.nr_superseded);
	ASSERT_EQ(0, open_client(self, "assemble"));
	EXPECT_EQ((CHAINS - kept) * CHAIN, blocks_on(self, 40));
	EXPECT_EQ(kept * CHAIN, blocks_on(self, 30));
	ASSERT_EQ((CHAINS - kept) * CHAIN, drop_chains(&self->c, kept, CHAINS - kept));
	ASSERT_EQ(0, kvt_disk_copy(&self->disk[0], &self->disk[2]));
	ASSERT_EQ(0, kvt_disk_copy(&self->disk[1], &self->disk[3]));
	ASSERT_EQ(0, end_pool(self));
	ASSERT_EQ(0, assemble(self, 0, 2, 0));
	EXPECT_EQ(kept * CHAIN, self->a.nr_blocks);
}

/* Two members with blocks on both, the pool ended. */
static int two_members(FIXTURE_DATA(assemble) *self)
{
	int second = kvt_tier_disk(&self->pool, 40, &self->disk[1]), ret;

	if (second < 0)
		return second;
	ret = put_chains(&self->c, 0, CHAINS);
	if (ret != CHAINS * CHAIN)
		return ret < 0 ? ret : -ENOSPC;
	ret = send_down(self);
	if (ret)
		return ret;
	/* What is on the first goes to the second; then more comes to the first. */
	self->dram = kvt_tier_dram(&self->pool, 0, DRAM_BYTES);
	if (self->dram < 0)
		return self->dram;
	ret = kvt_tier_detach(&self->pool, 1, 0, 60 * KVT_SEC);
	if (ret)
		return ret;
	ret = kvt_tier_disk(&self->pool, 30, &self->disk[0]);
	if (ret < 0)
		return ret;
	ret = put_chains(&self->c, CHAINS, CHAINS);
	if (ret != CHAINS * CHAIN)
		return ret < 0 ? ret : -ENOSPC;
	ret = send_down(self);
	return ret ? ret : end_pool(self);
}

TEST_F_TIMEOUT(assemble, two_disks, 600)
{
	ASSERT_EQ(0, two_members(self));
	ASSERT_EQ(0, assemble(self, 0, 2, 0));
	EXPECT_EQ(2, self->a.nr_members);
	EXPECT_EQ(2, self->a.nr_found);
	EXPECT_EQ(2 * CHAINS * CHAIN, self->a.nr_blocks);
	ASSERT_EQ(0, open_again(self));
	ASSERT_EQ(2 * CHAINS * CHAIN, check_chains(&self->c, 0, 2 * CHAINS));
}

TEST_F_TIMEOUT(assemble, a_disk_is_missing, 600)
{
	char buf[16] = "";
	__u64 sum;
	int there;

	ASSERT_EQ(0, two_members(self));
	sum = kvt_disk_sum(&self->disk[1]);
	EXPECT_EQ(-ENOMEDIUM, assemble(self, 1, 1, 0));
	EXPECT_EQ(0, self->dev[0].error);
	EXPECT_EQ(2, self->a.nr_members);
	EXPECT_EQ(1, self->a.nr_found);
	/* A refusal changes nothing. */
	EXPECT_EQ(sum, kvt_disk_sum(&self->disk[1]));
	ASSERT_EQ(0, assemble(self, 1, 1, KVTIER_ASSEMBLE_DEGRADED));
	EXPECT_LT(0, kvt_sysfs_read(&self->pool, "degraded", buf, sizeof(buf)));
	EXPECT_STREQ("1\n", buf);
	EXPECT_EQ(0, kvt_sh("kvtier pool show %u | grep -q 'given up: *1$'", self->pool.id));
	ASSERT_EQ(0, open_again(self));
	there = check_chains(&self->c, 0, 2 * CHAINS);
	EXPECT_EQ((int)self->a.nr_blocks, there);
	EXPECT_LT(0, there);
	EXPECT_GT(2 * CHAINS * CHAIN, there);
	/* Some have come up to be read. */
	ASSERT_EQ(0, send_down(self));
	ASSERT_EQ(0, end_pool(self));
	/* The one that was given up is of the past, the other is complete without it. */
	EXPECT_EQ(-ESTALE, assemble(self, 0, 2, 0));
	EXPECT_EQ(-ESTALE, self->dev[0].error);
	EXPECT_EQ(0, self->dev[1].error);
	EXPECT_EQ(-ESTALE, assemble(self, 0, 2, KVTIER_ASSEMBLE_DEGRADED));
	ASSERT_EQ(0, assemble(self, 1, 1, 0));
	EXPECT_EQ(1, self->a.nr_members);
	ASSERT_EQ(0, open_again(self));
	EXPECT_EQ(there, check_chains(&self->c, 0, 2 * CHAINS));
}

/* All that is asked of a disk fails, or nothing any more. */
static int make_it_fail(const struct kvt_disk *d, bool fail)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/block/%s/make-it-fail", d->dev + strlen("/dev/"));
	if (access(FAIL, F_OK) || access(path, W_OK))
		return -ENOENT;
	return kvt_sh("echo 0 > " FAIL "/verbose && echo -1 > " FAIL "/times && "
		      "echo 1 > " FAIL "/interval && echo %d > " FAIL "/probability && "
		      "echo %d > %s", fail ? 100 : 0, fail, path);
}

/* A member that is lost is not told what is dropped, so it must stay away. */
TEST_F_TIMEOUT(assemble, a_disk_fails, 600)
{
	ASSERT_LE(0, kvt_tier_disk(&self->pool, 40, &self->disk[1]));
	ASSERT_EQ(CHAINS * CHAIN, put_chains(&self->c, 0, CHAINS));
	ASSERT_EQ(0, send_down(self));
	ASSERT_EQ(CHAINS * CHAIN, blocks_on(self, 30));
	if (make_it_fail(&self->disk[0], true))
		SKIP(return, "a kernel that cannot make a disk fail");
	self->dram = kvt_tier_dram(&self->pool, 0, DRAM_BYTES);
	ASSERT_LE(0, self->dram);
	EXPECT_EQ(CHAIN, put_chains(&self->c, CHAINS, 1));
	kvt_tier_detach(&self->pool, self->dram, 0, 500 * KVT_MSEC);
	/* Until its kills are to be flushed nothing need be noticed. */
	EXPECT_TRUE(KVT_UNTIL(20000, ({
		drop_chains(&self->c, 0, CHAINS);
		fsync(self->c.fd) != 0;
	})));
	/* The other one is told of it. */
	EXPECT_TRUE(KVT_UNTIL(20000, kvt_medium_members(self->disk[1].dev) == 1));
	ASSERT_EQ(0, make_it_fail(&self->disk[0], false));
	ASSERT_EQ(0, kvt_disk_copy(&self->disk[2], &self->disk[0]));
	ASSERT_EQ(0, kvt_disk_copy(&self->disk[3], &self->disk[1]));
	ASSERT_EQ(0, end_pool(self));
	EXPECT_EQ(-ESTALE, assemble(self, 2, 2, 0));
	EXPECT_EQ(-ESTALE, self->dev[0].error);
	EXPECT_EQ(0, self->dev[1].error);
	ASSERT_EQ(0, assemble(self, 3, 1, 0));
	EXPECT_EQ(1, self->a.nr_members);
}

struct lone_disk {
	int ctl;
	struct kvtier_assemble_device dev;
	struct kvtier_pool_assemble a;
	pthread_barrier_t *start;
	int err;
};

static void *assemble_lone_disk(void *arg)
{
	struct lone_disk *l = arg;

	pthread_barrier_wait(l->start);
	l->err = kvt_ioctl(l->ctl, KVTIER_OP_POOL_ASSEMBLE, &l->a);
	return NULL;
}

/* Halves of a pool, each without the other: only one of them comes up. */
TEST_F_TIMEOUT(assemble, only_one_half, 600)
{
	struct lone_disk half[2] = {};
	pthread_barrier_t start;
	pthread_t thread;
	int i, won;

	ASSERT_EQ(0, two_members(self));
	ASSERT_EQ(0, pthread_barrier_init(&start, NULL, 2));
	for (i = 0; i < 2; i++) {
		half[i].ctl = self->pool.ctl;
		half[i].start = &start;
		memcpy(half[i].dev.path, self->disk[i].dev, sizeof(self->disk[i].dev));
		half[i].a = (struct kvtier_pool_assemble) {
			.size = sizeof(half[i].a),
			.flags = KVTIER_ASSEMBLE_DEGRADED,
			.pool_id = KVTIER_POOL_ANY_ID,
			.nr_devices = 1,
			.devices = KVT_U64(&half[i].dev),
		};
	}
	ASSERT_EQ(0, pthread_create(&thread, NULL, assemble_lone_disk, &half[0]));
	assemble_lone_disk(&half[1]);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	pthread_barrier_destroy(&start);
	won = half[1].err == 0;
	EXPECT_EQ(0, half[won].err);
	EXPECT_EQ(-EEXIST, half[!won].err);
	EXPECT_EQ(1, half[won].a.nr_found);
	self->pool.id = half[won].a.pool_id;
}

/* A copy of a member from before the last run; repairs change nothing about what is one. */
TEST_F_TIMEOUT(assemble, an_old_copy, 600)
{
	ASSERT_EQ(0, two_members(self));
	ASSERT_EQ(0, kvt_disk_copy(&self->disk[2], &self->disk[0]));
	ASSERT_EQ(0, kvt_medium_raise(self->disk[0].dev, 1001));
	ASSERT_EQ(0, assemble(self, 0, 2, 0));
	ASSERT_EQ(0, end_pool(self));
	ASSERT_EQ(0, kvt_disk_copy(&self->disk[0], &self->disk[2]));
	EXPECT_EQ(-ESTALE, assemble(self, 0, 2, 0));
	ASSERT_EQ(0, kvt_medium_raise(self->disk[0].dev, 3001));
	EXPECT_EQ(-ESTALE, assemble(self, 0, 2, 0));
	EXPECT_EQ(-ESTALE, self->dev[0].error);
	EXPECT_EQ(0, make_any_pool(self));
}

TEST_F_TIMEOUT(assemble, strangers, 300)
{
	__u8 *page = aligned_alloc(4096, 4096);
	struct kvt_pool other;
	__u8 id;

	ASSERT_EQ(CHAIN, put_chains(&self->c, 0, 1));
	ASSERT_EQ(0, send_down(self));
	ASSERT_EQ(0, kvt_setup(&other));
	ASSERT_LE(0, kvt_tier_disk(&other, 30, &self->disk[1]));
	/* In use, by this pool and by the other one. */
	EXPECT_EQ(-EBUSY, assemble(self, 0, 1, 0));
	EXPECT_EQ(-EBUSY, self->dev[0].error);
	ASSERT_EQ(0, kvt_disk_copy(&self->disk[2], &self->disk[0]));
	EXPECT_EQ(-EEXIST, assemble(self, 2, 1, 0));
	EXPECT_EQ(0, kvt_teardown(&other));
	ASSERT_EQ(0, end_pool(self));
	/* One of another pool; a copy; nothing at all; nothing there. */
	EXPECT_EQ(-EXDEV, assemble(self, 0, 2, 0));
	EXPECT_EQ(0, self->dev[0].error);
	EXPECT_EQ(-EXDEV, self->dev[1].error);
	ASSERT_EQ(0, kvt_disk_copy(&self->disk[1], &self->disk[0]));
	EXPECT_EQ(-ENOTUNIQ, assemble(self, 0, 2, 0));
	EXPECT_EQ(-ENOTUNIQ, self->dev[1].error);
	EXPECT_EQ(-EMEDIUMTYPE, assemble(self, 3, 1, 0));
	/* The id is random: only what it is not is sure to be another's. */
	ASSERT_EQ(0, kvt_disk_io(&self->disk[0], 0, page, 4096, false));
	id = ~page[SUPER_POOL];
	free(page);
	ASSERT_EQ(0, kvt_disk_super(&self->disk[1], 0, SUPER_POOL, &id, 1));
	ASSERT_EQ(0, kvt_disk_super(&self->disk[1], 1, SUPER_POOL, &id, 1));
	EXPECT_EQ(-EXDEV, assemble(self, 0, 2, 0));
	kvt_disk_remove(&self->disk[3]);
	snprintf(self->disk[3].dev, sizeof(self->disk[3].dev), "/dev/no-such-disk");
	EXPECT_EQ(-ENOENT, assemble(self, 3, 1, 0));
	ASSERT_EQ(0, assemble(self, 0, 1, 0));
	EXPECT_EQ(CHAIN, self->a.nr_blocks);
}

static int newer_slot(const struct kvt_disk *d)
{
	__u64 *page = aligned_alloc(4096, 4096), gen[2];
	int i;

	for (i = 0; i < 2; i++) {
		kvt_disk_io(d, i * 512 * KVT_KIB, page, 4096, false);
		gen[i] = page[6];
	}
	free(page);
	return gen[1] > gen[0];
}

TEST_F_TIMEOUT(assemble, superblocks, 300)
{
	__u32 segs = 1u << 20;
	__u64 incompat = 1ull << 40;
	__u16 version = 99;
	char name[32] = "Not/a/Name";
	const struct kvt_disk *d = &self->disk[1];
	int slot;

	ASSERT_EQ(CHAIN, put_chains(&self->c, 0, 1));
	ASSERT_EQ(0, send_down(self));
	ASSERT_EQ(0, end_pool(self));
	slot = newer_slot(&self->disk[0]);
	ASSERT_EQ(0, kvt_disk_copy(d, &self->disk[0]));
	ASSERT_EQ(0, kvt_disk_damage(d, !slot * 512 * KVT_KIB));
	ASSERT_EQ(0, assemble(self, 1, 1, 0));
	ASSERT_EQ(0, kvt_pool_destroy(self->pool.ctl, self->pool.id));
	ASSERT_EQ(0, kvt_disk_copy(d, &self->disk[0]));
	ASSERT_EQ(0, kvt_disk_damage(d, slot * 512 * KVT_KIB));
	ASSERT_EQ(0, assemble(self, 1, 1, 0));
	EXPECT_EQ(CHAIN, self->a.nr_blocks);
	ASSERT_EQ(0, kvt_pool_destroy(self->pool.ctl, self->pool.id));
	ASSERT_EQ(0, kvt_disk_copy(d, &self->disk[0]));
	ASSERT_EQ(0, kvt_disk_damage(d, 0));
	ASSERT_EQ(0, kvt_disk_damage(d, 512 * KVT_KIB));
	EXPECT_EQ(-EUCLEAN, assemble(self, 1, 1, 0));
	ASSERT_EQ(0, kvt_disk_copy(d, &self->disk[0]));
	ASSERT_EQ(0, kvt_disk_super(d, slot, SUPER_VERSION, &version, sizeof(version)));
	EXPECT_EQ(-EPROTONOSUPPORT, assemble(self, 1, 1, 0));
	ASSERT_EQ(0, kvt_disk_copy(d, &self->disk[0]));
	ASSERT_EQ(0, kvt_disk_super(d, slot, SUPER_INCOMPAT, &incompat, sizeof(incompat)));
	EXPECT_EQ(-EPROTONOSUPPORT, assemble(self, 1, 1, 0));
	ASSERT_EQ(0, kvt_disk_copy(d, &self->disk[0]));
	ASSERT_EQ(0, kvt_disk_super(d, slot, SUPER_NR_SEGS, &segs, sizeof(segs)));
	EXPECT_EQ(-ERANGE, assemble(self, 1, 1, 0));
	ASSERT_EQ(0, kvt_disk_copy(d, &self->disk[0]));
	ASSERT_EQ(0, kvt_disk_super(d, slot, SUPER_NAME, name, sizeof(name)));
	EXPECT_EQ(-ERANGE, assemble(self, 1, 1, 0));
	EXPECT_EQ(0, make_any_pool(self));
}

/* Anything may be on the media: what is found is right, and the kernel lives. */
TEST_F_TIMEOUT(assemble, hostile, 900)
{
	int round, rounds = kvt_env_many(5, 200), i, there, up = 0;
	char *page = aligned_alloc(4096, 4096);
	unsigned int seed = 4711;
	__u64 at;

	ASSERT_EQ(CHAINS * CHAIN, put_chains(&self->c, 0, CHAINS));
	ASSERT_EQ(0, send_down(self));
	ASSERT_EQ(0, kvt_disk_copy(&self->disk[2], &self->disk[0]));
	ASSERT_EQ(0, end_pool(self));
	for (round = 0; round < rounds; round++) {
		/* With footers, and without. */
		ASSERT_EQ(0, kvt_disk_copy(&self->disk[1], &self->disk[round % 2 * 2]));
		for (i = 0; i < 1 << round % 8; i++) {
			at = KVT_MIB + rand_r(&seed) % (DISK_BYTES / 4096 - 256) * 4096ull;
			ASSERT_EQ(0, kvt_disk_io(&self->disk[1], at, page, 4096, false));
			page[rand_r(&seed) % 4096] ^= 1 << rand_r(&seed) % 8;
			if (rand_r(&seed) % 4 == 0)
				at = KVT_MIB + rand_r(&seed) % (DISK_BYTES / 4096 - 256) * 4096ull;
			ASSERT_EQ(0, kvt_disk_io(&self->disk[1], at, page, 4096, true));
		}
		if (assemble(self, 1, 1, 0))
			continue;
		up++;
		there = open_again(self);
		ASSERT_EQ(0, there) TH_LOG("round %d: %d", round, there);
		there = check_chains(&self->c, 0, CHAINS);
		ASSERT_LE(0, there) TH_LOG("round %d", round);
		EXPECT_GE((int)self->a.nr_blocks, there);
		ASSERT_EQ(0, end_pool(self));
	}
	free(page);
	EXPECT_LT(0, up);
	EXPECT_EQ(0, make_any_pool(self));
}

static int bind_as(const struct kvt_pool *p, uid_t uid, struct kvtier_ns_open *o)
{
	int fd = kvt_open_as(p, uid), err;

	if (fd < 0)
		return fd;
	err = kvt_ioctl(fd, KVTIER_OP_NS_OPEN, o);
	if (err)
		close(fd);
	return err ? err : fd;
}

/* A block of user @uid, and the id of his namespace. */
static int put_as(const struct kvt_pool *p, uid_t uid, struct kvtier_ns_open *o, __u64 i,
		  __u64 *ns_id)
{
	static char buf[BLOCK_BYTES];
	struct kvt_key key = kvt_key(SET, i);
	int fd = bind_as(p, uid, o), ret;

	if (fd < 0)
		return fd;
	*ns_id = o->ns_id;
	kvt_fill(buf, &key, BLOCK_BYTES);
	ret = kvt_write1(fd, 0, &key, NULL, buf, BLOCK_BYTES, KVT_SEC);
	close(fd);
	return ret == KVTIER_ST_DONE ? 0 : -EIO;
}

static int find_as(const struct kvt_pool *p, uid_t uid, struct kvtier_ns_open *o, __u64 i)
{
	struct kvtier_lookup_result res;
	struct kvt_key key = kvt_key(SET, i);
	int fd, ret;

	o->flags = 0;
	fd = bind_as(p, uid, o);
	if (fd < 0)
		return fd;
	ret = kvt_lookup(fd, 0, &key, 1, &res);
	close(fd);
	return ret;
}

static int claim(const struct kvt_pool *p, __u64 ns_id, uid_t uid)
{
	struct kvtier_ns_claim c = {
		.size = sizeof(c), .pool_id = p->id, .ns_id = ns_id, .uid = uid, .gid = uid,
	};

	return kvt_ioctl(p->ctl, KVTIER_OP_NS_CLAIM, &c);
}

TEST_F_TIMEOUT(assemble, whose_it_is, 300)
{
	struct kvtier_group group = { .block_bytes = BLOCK_BYTES };
	struct kvtier_ns_open open_ns, secret_ns;
	char secret[KVTIER_SECRET_BYTES] = "swordfish", wrong[KVTIER_SECRET_BYTES] = "plaice";
	__u64 open_id, secret_id, other_id, new_id;
	int fd;

	kvt_ns_args(&open_ns, "whose", &group, 1);
	secret_ns = open_ns;
	secret_ns.secret = KVT_U64(secret);
	ASSERT_EQ(0, put_as(&self->pool, ALICE, &open_ns, 1, &open_id));
	ASSERT_EQ(0, put_as(&self->pool, ALICE, &secret_ns, 2, &secret_id));
	ASSERT_EQ(0, put_as(&self->pool, BOB, &open_ns, 3, &other_id));
	ASSERT_EQ(0, send_down(self));
	EXPECT_EQ(-EALREADY, claim(&self->pool, open_id, ALICE));
	ASSERT_EQ(0, end_pool(self));
	ASSERT_EQ(0, assemble(self, 0, 1, 0));
	EXPECT_EQ(3, self->a.nr_namespaces);
	EXPECT_EQ(2, self->a.nr_unclaimed);
	self->dram = kvt_tier_dram(&self->pool, 0, DRAM_BYTES);
	/* Who knows the secret needs nobody's leave; nobody else gets in. */
	EXPECT_EQ(1, find_as(&self->pool, ALICE, &secret_ns, 2));
	EXPECT_EQ(-ENOENT, find_as(&self->pool, BOB, &secret_ns, 2));
	secret_ns.secret = KVT_U64(wrong);
	EXPECT_EQ(-ENOENT, find_as(&self->pool, ALICE, &secret_ns, 2));
	EXPECT_EQ(-ENOENT, find_as(&self->pool, ALICE, &open_ns, 1));
	EXPECT_EQ(-ENOENT, find_as(&self->pool, BOB, &open_ns, 3));
	/* What Alice makes meanwhile is another one, with a new id. */
	open_ns.flags = KVTIER_NS_CREATE;
	fd = bind_as(&self->pool, ALICE, &open_ns);
	ASSERT_LE(0, fd);
	new_id = open_ns.ns_id;
	EXPECT_LT(open_id, new_id);
	EXPECT_LT(secret_id, new_id);
	EXPECT_LT(other_id, new_id);
	EXPECT_EQ(0, find_as(&self->pool, ALICE, &open_ns, 1));
	EXPECT_EQ(-EEXIST, claim(&self->pool, open_id, ALICE));
	EXPECT_EQ(-EALREADY, claim(&self->pool, secret_id, ALICE));
	EXPECT_EQ(-EALREADY, claim(&self->pool, new_id, ALICE));
	EXPECT_EQ(-ENOENT, claim(&self->pool, 1ull << 40, ALICE));
	EXPECT_EQ(-EINVAL, claim(&self->pool, other_id, -1));
	/* By now Bob is Carol. */
	EXPECT_EQ(0, claim(&self->pool, other_id, BOB + 1));
	EXPECT_EQ(1, find_as(&self->pool, BOB + 1, &open_ns, 3));
	EXPECT_EQ(0, find_as(&self->pool, BOB + 1, &open_ns, 1));
	EXPECT_EQ(-ENOENT, find_as(&self->pool, BOB, &open_ns, 3));
	close(fd);
}

TEST_F(assemble, quota_and_owner)
{
	char path[64], buf[40] = "", uuid[40] = "";

	ASSERT_EQ(37, kvt_sysfs_read(&self->pool, "uuid", uuid, sizeof(uuid)));
	ASSERT_EQ(CHAIN, put_chains(&self->c, 0, 1));
	ASSERT_EQ(0, send_down(self));
	snprintf(path, sizeof(path), "namespaces/%llu/quota_bytes",
		 (unsigned long long)self->c.ns_id);
	ASSERT_EQ(0, end_pool(self));
	ASSERT_EQ(0, assemble(self, 0, 1, 0));
	ASSERT_LT(0, kvt_sysfs_read(&self->pool, path, buf, sizeof(buf)));
	EXPECT_EQ(QUOTA, strtoull(buf, NULL, 10));
	snprintf(path, sizeof(path), "namespaces/%llu/unclaimed",
		 (unsigned long long)self->c.ns_id);
	ASSERT_LT(0, kvt_sysfs_read(&self->pool, path, buf, sizeof(buf)));
	EXPECT_STREQ("1\n", buf);
	ASSERT_LT(0, kvt_sysfs_read(&self->pool, "degraded", buf, sizeof(buf)));
	EXPECT_STREQ("0\n", buf);
	ASSERT_EQ(37, kvt_sysfs_read(&self->pool, "uuid", buf, sizeof(buf)));
	EXPECT_STREQ(uuid, buf);
}

/* Time goes on while a pool is not there. */
TEST_F_TIMEOUT(assemble, time_to_live, 300)
{
	struct kvt_key keys[3] = { kvt_key(SET, 0), kvt_key(SET, CHAIN), kvt_key(SET, 2 * CHAIN) };
	struct kvtier_lookup_result res;
	__u64 start;
	bool there;

	ASSERT_EQ(3 * CHAIN, put_chains(&self->c, 0, 3));
	ASSERT_EQ(1, kvt_advise(self->c.fd, 0, &keys[0], 1, KVTIER_ADV_TTL, 3 * KVT_SEC, NULL));
	start = kvt_now_ns();
	ASSERT_EQ(1, kvt_advise(self->c.fd, 0, &keys[1], 1, KVTIER_ADV_TTL, 900 * KVT_SEC, NULL));
	ASSERT_EQ(0, send_down(self));
	/* Not as it was written: it holds until the pool ends. */
	ASSERT_EQ(1, kvt_advise(self->c.fd, 0, &keys[2], 1, KVTIER_ADV_TTL, 1, NULL));
	EXPECT_TRUE(KVT_UNTIL(5000, !kvt_lookup(self->c.fd, 0, &keys[2], 1, &res)));
	ASSERT_EQ(0, end_pool(self));
	/* Unless it took so long that it was over before. */
	there = kvt_now_ns() - start < 3 * KVT_SEC;
	while (kvt_now_ns() - start < 5200 * KVT_MSEC)
		kvt_sleep_ms(50);
	ASSERT_EQ(0, assemble(self, 0, 1, 0));
	EXPECT_GE(1, self->a.nr_expired);
	EXPECT_LE(there ? 1 : 0, self->a.nr_expired);
	ASSERT_EQ(0, open_again(self));
	EXPECT_EQ(0, kvt_lookup(self->c.fd, 0, &keys[0], 1, &res));
	EXPECT_EQ(1, kvt_lookup(self->c.fd, 0, &keys[1], 1, &res));
	EXPECT_EQ(1, kvt_lookup(self->c.fd, 0, &keys[2], 1, &res));
}

/* A result that cannot be told of is none: the pool is not up. */
TEST_F(assemble, nowhere_to_tell)
{
	void *page = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct kvtier_pool_assemble a;
	__u64 sum;

	ASSERT_NE(MAP_FAILED, page);
	ASSERT_GE(65536, (int)sizeof(self->dev[0]));
	ASSERT_EQ(CHAIN, put_chains(&self->c, 0, 1));
	ASSERT_EQ(0, send_down(self));
	ASSERT_EQ(0, end_pool(self));
	sum = kvt_disk_sum(&self->disk[0]);
	memcpy(page, self->disk[0].dev, sizeof(self->disk[0].dev));
	ASSERT_EQ(0, mprotect(page, 65536, PROT_READ));
	a = (struct kvtier_pool_assemble) {
		.size = sizeof(a),
		.pool_id = KVTIER_POOL_ANY_ID,
		.nr_devices = 1,
		.devices = KVT_U64(page),
	};
	EXPECT_EQ(-EFAULT, kvt_ioctl(self->pool.ctl, KVTIER_OP_POOL_ASSEMBLE, &a));
	munmap(page, 65536);
	EXPECT_EQ(sum, kvt_disk_sum(&self->disk[0]));
	ASSERT_EQ(0, assemble(self, 0, 1, 0));
	EXPECT_EQ(CHAIN, self->a.nr_blocks);
}

TEST_F(assemble, arguments)
{
	struct kvtier_pool_assemble a;

	ASSERT_EQ(0, send_down(self));
	ASSERT_EQ(0, end_pool(self));
	EXPECT_EQ(-EINVAL, assemble(self, 0, 0, 0));
	EXPECT_EQ(-EOPNOTSUPP, assemble(self, 0, 1, 2));
	assemble(self, 3, 1, 0);
	a = self->a;
	a.nr_devices = KVTIER_TIERS_MAX + 1;
	EXPECT_EQ(-EINVAL, kvt_pool_assemble(&self->pool, &a));
	memset(self->dev[0].path, 'x', sizeof(self->dev[0].path));
	a.nr_devices = 1;
	EXPECT_EQ(-EINVAL, kvt_pool_assemble(&self->pool, &a));
	a.pool_id = 256;
	EXPECT_EQ(-EINVAL, kvt_pool_assemble(&self->pool, &a));
	EXPECT_EQ(0, make_any_pool(self));
	a.pool_id = self->pool.id;
	EXPECT_EQ(-EEXIST, kvt_pool_assemble(&self->pool, &a));
	EXPECT_EQ(0, kvt_become(ALICE));
	a.pool_id = KVTIER_POOL_ANY_ID;
	EXPECT_EQ(-EPERM, kvt_ioctl(self->pool.ctl, KVTIER_OP_POOL_ASSEMBLE, &a));
	EXPECT_EQ(-EPERM, claim(&self->pool, 1, ALICE));
	EXPECT_EQ(0, kvt_become(0));
}

TEST_HARNESS_MAIN
