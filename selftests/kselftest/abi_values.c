// SPDX-License-Identifier: GPL-2.0
/*
 * The errno contract, value by value: what each field may hold, what the queries
 * answer, and that a value out of its range is refused and changes nothing.
 */
#include "kvt_test.h"
#include <sys/eventfd.h>

#define BLOCK_BYTES	4096
#define SET		2

FIXTURE(values)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvtier_stat before;
};

FIXTURE_SETUP(values)
{
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, 16 * KVT_MIB));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "values", BLOCK_BYTES));
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &self->before));
}

/* Everything here is refused: the namespace is as empty as it was. */
FIXTURE_TEARDOWN(values)
{
	struct kvtier_stat after;

	EXPECT_EQ(0, kvt_stat(self->c.fd, 0, &after));
	EXPECT_EQ(self->before.nr_blocks, after.nr_blocks);
	EXPECT_EQ(self->before.used_bytes, after.used_bytes);
	EXPECT_EQ(self->before.leases, after.leases);
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

static int try_ns_open(const struct kvt_pool *p, struct kvtier_ns_open *a)
{
	int fd = kvt_open(p), err;

	if (fd < 0)
		return fd;
	err = kvt_ioctl(fd, KVTIER_OP_NS_OPEN, a);
	close(fd);
	return err;
}

TEST_F(values, ns_open_identity)
{
	static const __u32 bad[] = { 0, KVTIER_IDENTITY_MAX + 1, ~0u };
	char identity[2 * KVTIER_IDENTITY_MAX];
	struct kvtier_group g = { .block_bytes = BLOCK_BYTES };
	struct kvtier_ns_open a;
	size_t i;

	memset(identity, 'i', sizeof(identity));
	for (i = 0; i < KVT_ARRAY(bad); i++) {
		kvt_ns_args(&a, "x", &g, 1);
		a.identity = KVT_U64(identity);
		a.identity_len = bad[i];
		EXPECT_EQ(-EINVAL, try_ns_open(&self->pool, &a)) TH_LOG("length %u", bad[i]);
	}
	a.identity_len = KVTIER_IDENTITY_MAX;
	EXPECT_EQ(0, try_ns_open(&self->pool, &a));
	a.identity_len = 1;
	EXPECT_EQ(0, try_ns_open(&self->pool, &a));
}

TEST_F(values, ns_open_groups)
{
	static const __u64 bad[] = { 0, KVTIER_BLOCK_BYTES_MAX + 1, 1ull << 32, ~0ull };
	struct kvtier_group g[KVTIER_GROUPS_MAX] = { 0 };
	struct kvtier_ns_open a;
	size_t i;

	for (i = 0; i < KVT_ARRAY(bad); i++) {
		g[0].block_bytes = bad[i];
		kvt_ns_args(&a, "groups", g, 1);
		EXPECT_EQ(-EINVAL, try_ns_open(&self->pool, &a))
			TH_LOG("%llu bytes", (unsigned long long)bad[i]);
	}
	for (i = 0; i < KVTIER_GROUPS_MAX; i++)
		g[i].block_bytes = BLOCK_BYTES * (i + 1);
	kvt_ns_args(&a, "groups", g, KVTIER_GROUPS_MAX);
	g[KVTIER_GROUPS_MAX - 1].flags = 1;
	EXPECT_EQ(-EOPNOTSUPP, try_ns_open(&self->pool, &a));
	g[KVTIER_GROUPS_MAX - 1].flags = 0;
	g[3].__reserved = 1;
	EXPECT_EQ(-EOPNOTSUPP, try_ns_open(&self->pool, &a));
	g[3].__reserved = 0;
	EXPECT_EQ(0, try_ns_open(&self->pool, &a));
	g[0].block_bytes = KVTIER_BLOCK_BYTES_MAX;
	kvt_ns_args(&a, "largest", g, 1);
	EXPECT_EQ(0, try_ns_open(&self->pool, &a));
}

TEST_F(values, ns_open_mode_and_secret)
{
	static const __u32 bad[] = { 01000, 04600, 010000, 1u << 31 };
	struct kvtier_group g = { .block_bytes = BLOCK_BYTES };
	struct kvtier_ns_open a;
	size_t i;

	kvt_ns_args(&a, "mode", &g, 1);
	for (i = 0; i < KVT_ARRAY(bad); i++) {
		a.mode = bad[i];
		EXPECT_EQ(-EINVAL, try_ns_open(&self->pool, &a)) TH_LOG("mode %#o", bad[i]);
	}
	a.mode = 0600;
	a.secret = 8;
	EXPECT_EQ(-EFAULT, try_ns_open(&self->pool, &a));
}

/* Guarantees that cannot be kept are not given. */
TEST_F(values, ns_open_guarantee)
{
	static const __u64 bad[] = { 17 * KVT_MIB, 1ull << 40, 1ull << 63, ~0ull };
	struct kvtier_group g = { .block_bytes = BLOCK_BYTES };
	struct kvtier_ns_open a;
	int fd = kvt_open(&self->pool);
	size_t i;

	for (i = 0; i < KVT_ARRAY(bad); i++) {
		kvt_ns_args(&a, "guarantee", &g, 1);
		a.min_bytes = bad[i];
		EXPECT_EQ(-ENOSPC, try_ns_open(&self->pool, &a))
			TH_LOG("%#llx bytes", (unsigned long long)bad[i]);
	}
	/* What one has been promised, another cannot be. */
	a.min_bytes = 10 * KVT_MIB;
	EXPECT_EQ(0, kvt_ioctl(fd, KVTIER_OP_NS_OPEN, &a));
	kvt_ns_args(&a, "guarantee 2", &g, 1);
	a.min_bytes = 8 * KVT_MIB;
	EXPECT_EQ(-ENOSPC, try_ns_open(&self->pool, &a));
	close(fd);
}

TEST_F(values, flags_that_exclude_each_other)
{
	struct kvt_key key = kvt_key(SET, 1);
	struct kvtier_block_result res;
	int fd = self->c.fd;

	EXPECT_EQ(-EINVAL, kvt_get(fd, KVTIER_GET_WAIT | KVTIER_GET_ASYNC, 0, &key, 1, &res, 0));
	EXPECT_EQ(-EINVAL, kvt_get(fd, KVTIER_GET_WAIT | KVTIER_GET_NOPROMOTE, 0, &key, 1, &res,
				   0));
	EXPECT_EQ(-EINVAL, kvt_get(fd, KVTIER_GET_FLAGS, 0, &key, 1, &res, 0));
	EXPECT_EQ(-EINVAL, kvt_reserve(fd, KVTIER_RESERVE_WAIT | KVTIER_RESERVE_ASYNC, 0, &key,
				       NULL, 1, &res, 0));
}

/* The all-zero key names no block, wherever it stands. */
TEST_F(values, zero_key)
{
	struct kvtier_block_result res[3];
	struct kvt_key keys[3];
	char buf[BLOCK_BYTES] = { 0 };
	int i;

	for (i = 0; i < 3; i++) {
		kvt_keys(keys, SET, 0, 3);
		memset(&keys[i], 0, sizeof(keys[i]));
		EXPECT_EQ(-EINVAL, kvt_reserve(self->c.fd, 0, 0, keys, NULL, 3, res, 0))
			TH_LOG("at %d", i);
	}
	memset(&keys[0], 0, sizeof(keys[0]));
	EXPECT_EQ(KVT_ERR(EINVAL),
		  kvt_write1(self->c.fd, 0, &keys[0], NULL, buf, sizeof(buf), 0));
}

TEST_F(values, advice)
{
	static const __u32 bad[] = { 0, KVTIER_ADV_TTL + 1, ~0u };
	struct kvt_key key = kvt_key(SET, 1);
	__u32 advice;
	size_t i;
	__s32 res;

	for (i = 0; i < KVT_ARRAY(bad); i++)
		EXPECT_EQ(-EINVAL, kvt_advise(self->c.fd, 0, &key, 1, bad[i], 0, &res))
			TH_LOG("advice %u", bad[i]);
	for (advice = KVTIER_ADV_COLD; advice < KVTIER_ADV_TTL; advice++)
		EXPECT_EQ(-EINVAL, kvt_advise(self->c.fd, 0, &key, 1, advice, 1, &res))
			TH_LOG("advice %u with a value", advice);
	EXPECT_EQ(0, kvt_advise(self->c.fd, 0, &key, 1, KVTIER_ADV_HOT, 0, &res));
	EXPECT_EQ(KVTIER_ST_MISS, res);
}

/* A buffer of another size than the block's: nothing is stored. */
TEST_F(values, write_size)
{
	static const __u64 bad[] = { 0, BLOCK_BYTES - 1, BLOCK_BYTES + 1, 1ull << 40, ~0ull };
	struct kvt_key key = kvt_key(SET, 1);
	char buf[2 * BLOCK_BYTES] = { 0 };
	size_t i;

	for (i = 0; i < KVT_ARRAY(bad); i++)
		EXPECT_EQ(KVT_ERR(EINVAL), kvt_write1(self->c.fd, 0, &key, NULL, buf, bad[i], 0))
			TH_LOG("%#llx bytes", (unsigned long long)bad[i]);
	EXPECT_EQ(KVT_ERR(EINVAL), kvt_read1(self->c.fd, 0, &key, buf, BLOCK_BYTES - 1, 0));
	EXPECT_EQ(KVTIER_ST_MISS, kvt_read1(self->c.fd, 0, &key, buf, sizeof(buf), 0));
}

/* The first key's parent cannot be read, is not there, or is the block itself; READ has none. */
TEST_F(values, copy_parent)
{
	struct kvt_key key = kvt_key(SET, 1), absent = kvt_key(SET, 2);
	char buf[BLOCK_BYTES] = { 0 };
	struct kvtier_buf b = { .addr = KVT_U64(buf), .bytes = sizeof(buf) };
	__s32 status;
	struct kvtier_copy a = {
		.size = sizeof(a), .nr = 1, .keys = KVT_U64(&key), .bufs = KVT_U64(&b),
		.results = KVT_U64(&status), .parent = 8,
	};

	EXPECT_EQ(-EFAULT, kvt_ioctl(self->c.fd, KVTIER_OP_WRITE, &a));
	a.parent = ~0ull;
	EXPECT_EQ(-EFAULT, kvt_ioctl(self->c.fd, KVTIER_OP_WRITE, &a));
	EXPECT_EQ(KVTIER_ST_NOPARENT,
		  kvt_write1(self->c.fd, 0, &key, &absent, buf, sizeof(buf), 0));
	EXPECT_EQ(KVTIER_ST_NOPARENT,
		  kvt_write1(self->c.fd, 0, &key, &key, buf, sizeof(buf), 0));
	a.parent = KVT_U64(&absent);
	EXPECT_EQ(-EINVAL, kvt_ioctl(self->c.fd, KVTIER_OP_READ, &a));
	a.parent = 8;
	EXPECT_EQ(-EINVAL, kvt_ioctl(self->c.fd, KVTIER_OP_READ, &a));
}

TEST_F(values, pool_ids)
{
	struct kvtier_pool_create c = { .size = sizeof(c) };
	__u32 bad[] = { 256, 257, 1u << 20, ~0u - 1 };
	size_t i;

	for (i = 0; i < KVT_ARRAY(bad); i++) {
		c.pool_id = bad[i];
		EXPECT_EQ(-EINVAL, kvt_ioctl(self->pool.ctl, KVTIER_OP_POOL_CREATE, &c))
			TH_LOG("id %u", bad[i]);
		EXPECT_EQ(-ENOENT, kvt_pool_destroy(self->pool.ctl, bad[i]));
	}
	c.pool_id = self->pool.id;
	EXPECT_EQ(-EEXIST, kvt_ioctl(self->pool.ctl, KVTIER_OP_POOL_CREATE, &c));
	EXPECT_EQ(-EBUSY, kvt_pool_destroy(self->pool.ctl, self->pool.id));
	c.pool_id = 255;
	ASSERT_EQ(0, kvt_ioctl(self->pool.ctl, KVTIER_OP_POOL_CREATE, &c));
	EXPECT_EQ(255, c.pool_id);
	EXPECT_EQ(0, access("/dev/kvtier255", F_OK));
	EXPECT_EQ(0, kvt_pool_destroy(self->pool.ctl, 255));
	EXPECT_EQ(-ENOENT, kvt_pool_destroy(self->pool.ctl, 255));
}

static int try_attach(const struct kvt_pool *p, struct kvtier_tier_attach *a)
{
	int err = kvt_ioctl(p->ctl, KVTIER_OP_TIER_ATTACH, a);

	if (!err)
		kvt_tier_detach(p, a->tier_id, 0, KVT_SEC);
	return err;
}

TEST_F(values, attach_ranges)
{
	static const __u32 types[] = { 0, 6, ~0u };
	static const __u32 ranks[] = { 256, 1u << 16, ~0u };
	struct kvtier_tier_attach a;
	size_t i;

	for (i = 0; i < KVT_ARRAY(types); i++) {
		kvt_tier_args(&self->pool, &a, KVTIER_TIER_DRAM, 3);
		a.type = types[i];
		a.capacity_bytes = 4 * KVT_MIB;
		EXPECT_EQ(-EINVAL, try_attach(&self->pool, &a)) TH_LOG("type %u", types[i]);
	}
	for (i = 0; i < KVT_ARRAY(ranks); i++) {
		kvt_tier_args(&self->pool, &a, KVTIER_TIER_DRAM, 3);
		a.rank = ranks[i];
		a.capacity_bytes = 4 * KVT_MIB;
		EXPECT_EQ(-EINVAL, try_attach(&self->pool, &a)) TH_LOG("rank %u", ranks[i]);
	}
	/* Capacity is mandatory here and counts in pieces of 2 MiB. */
	kvt_tier_args(&self->pool, &a, KVTIER_TIER_DRAM, 3);
	EXPECT_EQ(-EINVAL, try_attach(&self->pool, &a));
	a.capacity_bytes = 2 * KVT_MIB - 1;
	EXPECT_EQ(-EINVAL, try_attach(&self->pool, &a));
	a.capacity_bytes = ~0ull;
	EXPECT_EQ(-EINVAL, try_attach(&self->pool, &a));
	a.capacity_bytes = 4 * KVT_MIB + 1;
	EXPECT_EQ(0, try_attach(&self->pool, &a));
	a.pool_id = 254;
	EXPECT_EQ(-ENOENT, try_attach(&self->pool, &a));
}

TEST_F(values, attach_names)
{
	static const char *const bad[] = { "", "Upper", "sp ace", "sl/ash", "dot.", "new\nline" };
	struct kvtier_tier_attach a;
	size_t i;

	for (i = 0; i < KVT_ARRAY(bad); i++) {
		kvt_tier_args(&self->pool, &a, KVTIER_TIER_DRAM, 3);
		a.capacity_bytes = 4 * KVT_MIB;
		memset(a.name, 0, sizeof(a.name));
		strcpy(a.name, bad[i]);
		EXPECT_EQ(-EINVAL, try_attach(&self->pool, &a)) TH_LOG("name '%s'", bad[i]);
	}
	memset(a.name, 'n', sizeof(a.name));
	EXPECT_EQ(-EINVAL, try_attach(&self->pool, &a));
	a.name[KVTIER_NAME_MAX - 1] = 0;
	EXPECT_EQ(0, try_attach(&self->pool, &a));
	memset(a.path, 'p', sizeof(a.path));
	EXPECT_EQ(-EINVAL, try_attach(&self->pool, &a));
}

TEST_F(values, attach_conflicts)
{
	struct kvtier_tier_attach a;

	kvt_tier_args(&self->pool, &a, KVTIER_TIER_DRAM, 0);
	a.capacity_bytes = 4 * KVT_MIB;
	strcpy(a.name, "other");
	EXPECT_EQ(-EEXIST, try_attach(&self->pool, &a));	/* rank */
	a.rank = 3;
	strcpy(a.name, "dram0");
	EXPECT_EQ(-EEXIST, try_attach(&self->pool, &a));	/* name */
	kvt_tier_args(&self->pool, &a, KVTIER_TIER_NODE, 3);
	a.capacity_bytes = 4 * KVT_MIB;
	a.node = -2;
	EXPECT_EQ(-EINVAL, try_attach(&self->pool, &a));
	a.node = 1 << 20;
	EXPECT_EQ(-ENODEV, try_attach(&self->pool, &a));
	a.node = 0;
	EXPECT_EQ(0, try_attach(&self->pool, &a));
}

TEST_F(values, attach_devices)
{
	struct kvtier_tier_attach a;

	kvt_tier_args(&self->pool, &a, KVTIER_TIER_BDEV, 3);
	strcpy(a.path, "/dev/there-is-no-such-device");
	EXPECT_EQ(-ENOENT, try_attach(&self->pool, &a));
	strcpy(a.path, "/dev/null");
	EXPECT_EQ(-ENOTBLK, try_attach(&self->pool, &a));
	strcpy(a.path, "");
	EXPECT_EQ(-EINVAL, try_attach(&self->pool, &a));
	kvt_tier_args(&self->pool, &a, KVTIER_TIER_DAX, 3);
	strcpy(a.path, "dax77.77");
	EXPECT_EQ(-ENODEV, try_attach(&self->pool, &a));
	strcpy(a.path, "../dax0.0");
	EXPECT_EQ(-ENODEV, try_attach(&self->pool, &a));
}

/* Memory ranks above block devices; a block device is in one pool only. */
TEST_F(values, attach_block_device)
{
	struct kvtier_tier_attach a;
	int tier;

	if (!kvt_env_bdev())
		SKIP(return, "no block device to use (KVT_BDEV)");
	tier = kvt_tier_bdev(&self->pool, 5, 0);
	ASSERT_LE(0, tier);
	kvt_tier_args(&self->pool, &a, KVTIER_TIER_DRAM, 6);
	a.capacity_bytes = 4 * KVT_MIB;
	EXPECT_EQ(-EINVAL, try_attach(&self->pool, &a));
	kvt_tier_args(&self->pool, &a, KVTIER_TIER_BDEV, 7);
	strcpy(a.path, kvt_env_bdev());
	EXPECT_EQ(-EBUSY, try_attach(&self->pool, &a));
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, tier, 0, KVT_SEC));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 2, 4 * KVT_MIB));
	kvt_tier_args(&self->pool, &a, KVTIER_TIER_BDEV, 1);
	strcpy(a.path, kvt_env_bdev());
	EXPECT_EQ(-EINVAL, try_attach(&self->pool, &a));
}

/* A device-dax instance is in one place only, too, and has to be bound first. */
TEST_F(values, attach_dax_device)
{
	struct kvtier_tier_attach a;

	if (!kvt_env_dax())
		SKIP(return, "no device-dax instance to use (KVT_DAX)");
	ASSERT_LE(0, kvt_tier_dax(&self->pool, 1, 8 * KVT_MIB));
	kvt_tier_args(&self->pool, &a, KVTIER_TIER_DAX, 2);
	strcpy(a.path, kvt_env_dax());
	EXPECT_EQ(-EBUSY, try_attach(&self->pool, &a));
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, 1, 0, KVT_SEC));
	ASSERT_EQ(0, kvt_sh("echo %s > /sys/bus/dax/drivers/kvtier/unbind", kvt_env_dax()));
	EXPECT_EQ(-ENODEV, try_attach(&self->pool, &a));
}

/* Memory that is known to be bad: what no range can be, too many, and of whom. */
TEST_F(values, attach_bad_ranges)
{
	struct kvtier_range bad[2] = { { .start = 4096, .bytes = 4096 }, { 0 } };
	struct kvtier_tier_attach a;

	kvt_tier_args(&self->pool, &a, KVTIER_TIER_DAX, 2);
	strcpy(a.path, "no such device");
	a.bad = KVT_U64(bad);
	a.nr_bad = 1;
	EXPECT_EQ(-ENODEV, try_attach(&self->pool, &a));
	a.nr_bad = 2;
	EXPECT_EQ(-EINVAL, try_attach(&self->pool, &a));
	bad[1].start = ~0ull;
	bad[1].bytes = 1;
	EXPECT_EQ(-EINVAL, try_attach(&self->pool, &a));
	bad[1].start = 1;
	bad[1].bytes = ~0ull;
	EXPECT_EQ(-EINVAL, try_attach(&self->pool, &a));
	a.nr_bad = KVTIER_BAD_MAX + 1;
	EXPECT_EQ(-EINVAL, try_attach(&self->pool, &a));
	a.nr_bad = ~0u;
	EXPECT_EQ(-EINVAL, try_attach(&self->pool, &a));
	a.nr_bad = 1;
	a.bad = 8;
	EXPECT_EQ(-EFAULT, try_attach(&self->pool, &a));
	kvt_tier_args(&self->pool, &a, KVTIER_TIER_DRAM, 2);
	a.capacity_bytes = 2 * KVT_MIB;
	a.bad = KVT_U64(bad);
	a.nr_bad = 1;
	EXPECT_EQ(-EINVAL, try_attach(&self->pool, &a));
}

TEST_F(values, tier_numbers)
{
	static const __u32 bad[] = { 1, KVTIER_TIERS_MAX - 1, KVTIER_TIERS_MAX, 1u << 31, ~0u };
	struct kvtier_tier_op op = { .size = sizeof(op), .pool_id = self->pool.id };
	size_t i;

	for (i = 0; i < KVT_ARRAY(bad); i++) {
		op.tier_id = bad[i];
		EXPECT_EQ(-ENOENT, kvt_ioctl(self->pool.ctl, KVTIER_OP_TIER_DETACH, &op));
		EXPECT_EQ(-ENOENT, kvt_ioctl(self->pool.ctl, KVTIER_OP_TIER_DRAIN, &op));
	}
	op.pool_id = 254;
	op.tier_id = 0;
	EXPECT_EQ(-ENOENT, kvt_ioctl(self->pool.ctl, KVTIER_OP_TIER_DETACH, &op));
	EXPECT_EQ(-ENOENT, kvt_ioctl(self->pool.ctl, KVTIER_OP_TIER_DRAIN, &op));
}

/* One more tier than there may be. */
TEST_F(values, tiers_max)
{
	struct kvtier_tier_attach a;
	__u32 rank;

	for (rank = 1; rank < KVTIER_TIERS_MAX; rank++)
		ASSERT_LE(0, kvt_tier_dram(&self->pool, rank, 2 * KVT_MIB));
	kvt_tier_args(&self->pool, &a, KVTIER_TIER_DRAM, rank);
	a.capacity_bytes = 2 * KVT_MIB;
	EXPECT_EQ(-ENOSPC, try_attach(&self->pool, &a));
}

TEST_F(values, query_answers)
{
	struct kvtier_tier_info tiers[KVTIER_TIERS_MAX];
	struct kvtier_query q;
	const __u64 later = KVTIER_FEAT_EVENTS | KVTIER_FEAT_URING;
	const __u64 now = KVTIER_FEAT_ASYNC | KVTIER_FEAT_ARENA | KVTIER_FEAT_DURABLE |
			  KVTIER_FEAT_SESSION | KVTIER_FEAT_EXPORT;

	ASSERT_EQ(1, kvt_query(self->c.fd, &q, tiers));
	EXPECT_EQ(KVTIER_ABI_REVISION, q.abi_revision);
	EXPECT_EQ(self->pool.id, q.pool_id);
	EXPECT_EQ(0, q.features & ~KVTIER_FEATURES_ALL);
	EXPECT_EQ(0, q.features & later);
	EXPECT_EQ(now, q.features & now);
	EXPECT_EQ(KVTIER_BATCH_MAX, q.batch_max);
	EXPECT_LT(0, q.leases_max);
	EXPECT_LT(0, q.sessions_max);
	EXPECT_EQ(KVTIER_BLOCK_BYTES_MAX, q.block_bytes_max);
	EXPECT_EQ(KVTIER_TIER_DRAM, tiers[0].type);
	EXPECT_EQ(KVTIER_TIER_ONLINE, tiers[0].state);
	EXPECT_EQ(16 * KVT_MIB, tiers[0].capacity_bytes);
	EXPECT_STREQ("dram0", tiers[0].name);
	EXPECT_LE(tiers[0].window_offset + tiers[0].window_bytes, q.window_bytes);
	EXPECT_LE(tiers[0].capacity_bytes, tiers[0].window_bytes);
	EXPECT_EQ(0, tiers[0].window_offset % KVT_PIECE);
}

/* Too little room: the error, and how much is needed. */
TEST_F(values, array_too_small)
{
	struct kvtier_tier_stat tier_stat;
	struct kvtier_tier_info info[2];
	struct kvtier_query q = { .size = sizeof(q), .tiers = KVT_U64(info), .nr_tiers = 1 };
	struct kvtier_stat st = {
		.size = sizeof(st), .flags = KVTIER_STAT_POOL, .tiers = KVT_U64(&tier_stat),
		.nr_tiers = 1,
	};
	struct kvtier_ctl_query cq = { .size = sizeof(cq), .pools = KVT_U64(info) };

	ASSERT_LE(0, kvt_tier_dram(&self->pool, 1, 2 * KVT_MIB));
	EXPECT_EQ(-EMSGSIZE, kvt_ioctl(self->c.fd, KVTIER_OP_QUERY, &q));
	EXPECT_EQ(2, q.nr_tiers);
	EXPECT_EQ(0, kvt_ioctl(self->c.fd, KVTIER_OP_QUERY, &q));
	EXPECT_EQ(-EMSGSIZE, kvt_ioctl(self->c.fd, KVTIER_OP_STAT, &st));
	EXPECT_EQ(2, st.nr_tiers);
	EXPECT_EQ(-EMSGSIZE, kvt_ioctl(self->pool.ctl, KVTIER_OP_CTL_QUERY, &cq));
	EXPECT_LE(1, cq.nr_pools);
	q.tiers = 0;
	q.nr_tiers = 0;
	EXPECT_EQ(0, kvt_ioctl(self->c.fd, KVTIER_OP_QUERY, &q));
	EXPECT_EQ(2, q.nr_tiers);
}

TEST_F(values, iterate_cursors)
{
	static const __u64 cursors[] = { 1, 77, 1ull << 31, 1ull << 32, 1ull << 63, ~0ull };
	struct kvtier_iterate it = { .size = sizeof(it) };
	struct kvtier_entry entry[4];
	size_t i;
	int ret;

	for (i = 0; i < KVT_ARRAY(cursors); i++) {
		it.cursor = cursors[i];
		it.nr = 4;
		it.entries = KVT_U64(entry);
		ret = kvt_ioctl(self->c.fd, KVTIER_OP_ITERATE, &it);
		EXPECT_TRUE(ret == 0 || ret == -EINVAL);
		EXPECT_TRUE(ret || !it.nr) TH_LOG("%u entries of an empty namespace", it.nr);
	}
}

/* Numbers that are no handles, among them the smallest and the largest. */
TEST_F(values, handles_made_up)
{
	__u64 handle[256];
	struct kvtier_block_result res[256];
	__s32 status[256];
	int i;

	for (i = 0; i < 256; i++)
		handle[i] = i < 64 ? 1ull << i : i < 128 ? ~(1ull << (i - 64)) :
			    (__u64)i * 0x9e3779b97f4a7c15ull;
	handle[255] = 0;
	EXPECT_EQ(0, kvt_commit(self->c.fd, 0, handle, 256, res));
	for (i = 0; i < 256; i++)
		EXPECT_EQ(KVTIER_ST_STALE, res[i].status);
	EXPECT_EQ(0, kvt_abort(self->c.fd, handle, 256, status));
	for (i = 0; i < 256; i++)
		EXPECT_EQ(KVTIER_ST_STALE, status[i]);
	EXPECT_EQ(0, kvt_release(self->c.fd, handle, 256, status));
	for (i = 0; i < 256; i++)
		EXPECT_EQ(KVTIER_ST_STALE, status[i]);
}

/* A descriptor that is no eventfd. */
TEST_F(values, bad_eventfd)
{
	struct kvt_key key = kvt_key(SET, 1);
	struct kvtier_block_result res;
	struct kvtier_get a = {
		.size = sizeof(a), .flags = KVTIER_GET_ASYNC, .nr = 1, .keys = KVT_U64(&key),
		.results = KVT_U64(&res),
	};
	static const int bad[] = { 9999, -2 };
	size_t i;

	for (i = 0; i < KVT_ARRAY(bad); i++) {
		a.eventfd = bad[i];
		EXPECT_EQ(-EBADF, kvt_ioctl(self->c.fd, KVTIER_OP_GET, &a));
		EXPECT_EQ(-EBADF, kvt_prefetch(self->c.fd, KVTIER_PREFETCH_NOTIFY, 0, &key, 1, 0,
					       bad[i]));
	}
	a.eventfd = self->pool.ctl;
	EXPECT_EQ(-EINVAL, kvt_ioctl(self->c.fd, KVTIER_OP_GET, &a));
	EXPECT_EQ(-EINVAL, kvt_prefetch(self->c.fd, KVTIER_PREFETCH_NOTIFY, 0, &key, 1, 0,
					a.eventfd));
}

TEST_HARNESS_MAIN
