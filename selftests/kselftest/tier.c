// SPDX-License-Identifier: GPL-2.0
/*
 * Several tiers: more data than memory goes down and comes back right, in every
 * way a caller may ask for it.
 */
#include "kvt_test.h"
#include <poll.h>

#define BLOCK_BYTES	(64 * KVT_KIB)
#define CHAIN		16
#define SET		13

FIXTURE(tiers)
{
	struct kvt_pool pool;
	struct kvt_client c;
	__u64 mem_bytes;
	int nr_chains;
	int nr_cold;	/* enough to have some at the bottom */
	int top;
	int bottom;
};

FIXTURE_VARIANT(tiers)
{
	__u32 dram_mib;
	__u32 dax_mib;
	__u32 dram2_mib;
	__u32 node_mib;
	bool bdev;
	__u32 data_mib;		/* stored by the tests */
	__u32 long_mib;		/* the same, at full length */
};

FIXTURE_VARIANT_ADD(tiers, dram_bdev) {
	.dram_mib = 8, .bdev = true, .data_mib = 24, .long_mib = 300,
};
FIXTURE_VARIANT_ADD(tiers, dram_dax_bdev) {
	.dram_mib = 4, .dax_mib = 6, .bdev = true, .data_mib = 30, .long_mib = 100,
};
FIXTURE_VARIANT_ADD(tiers, dram_dram_bdev) {
	.dram_mib = 4, .dram2_mib = 8, .bdev = true, .data_mib = 36, .long_mib = 300,
};
FIXTURE_VARIANT_ADD(tiers, dram_node_bdev) {
	.dram_mib = 4, .node_mib = 8, .bdev = true, .data_mib = 36, .long_mib = 300,
};

static int add_tiers(const struct kvt_pool *p, const FIXTURE_VARIANT(tiers) *v, int *top,
		     int *bottom)
{
	int id = kvt_tier_dram(p, 0, v->dram_mib * KVT_MIB);

	*top = id;
	if (id >= 0 && v->dax_mib)
		id = kvt_tier_dax(p, 10, v->dax_mib * KVT_MIB);
	if (id >= 0 && v->dram2_mib)
		id = kvt_tier_dram(p, 20, v->dram2_mib * KVT_MIB);
	if (id >= 0 && v->node_mib)
		id = kvt_tier_node(p, 25, 0, v->node_mib * KVT_MIB);
	if (id >= 0 && v->bdev)
		id = kvt_tier_bdev(p, 30, 0);
	*bottom = id;
	return id < 0 ? id : 0;
}

FIXTURE_SETUP(tiers)
{
	if (variant->dax_mib && !kvt_env_dax())
		SKIP(return, "no device-dax instance to use (KVT_DAX)");
	if (variant->bdev && !kvt_env_bdev())
		SKIP(return, "no block device to use (KVT_BDEV)");
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_EQ(0, add_tiers(&self->pool, variant, &self->top, &self->bottom));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "tiers", BLOCK_BYTES));
	self->mem_bytes = (variant->dram_mib + variant->dax_mib + variant->dram2_mib +
			   variant->node_mib) * KVT_MIB;
	self->nr_chains = kvt_env_rounds(variant->data_mib, variant->long_mib) * KVT_MIB /
			  (CHAIN * BLOCK_BYTES);
	self->nr_cold = self->mem_bytes * 3 / 2 / (CHAIN * BLOCK_BYTES);
}

FIXTURE_TEARDOWN(tiers)
{
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

static int put_chains(const struct kvt_client *c, int nr)
{
	struct kvt_key keys[CHAIN];
	int i, ret;

	for (i = 0; i < nr; i++) {
		kvt_keys(keys, SET, i * CHAIN, CHAIN);
		ret = kvt_put(c, KVTIER_RESERVE_WAIT, 0, keys, NULL, CHAIN);
		if (ret != CHAIN) {
			fprintf(stderr, "# chain %d of %d: %d\n", i, nr, ret);
			return ret < 0 ? ret : i;
		}
	}
	return nr;
}

static int check_one(const struct kvt_client *c, int chain)
{
	struct kvt_key keys[CHAIN];

	kvt_keys(keys, SET, chain * CHAIN, CHAIN);
	return kvt_check(c, 0, keys, CHAIN, 20 * KVT_SEC) == CHAIN;
}

static int check_chains(const struct kvt_client *c, int nr)
{
	struct kvt_key keys[CHAIN];
	int i, ret;

	for (i = 0; i < nr; i++) {
		kvt_keys(keys, SET, i * CHAIN, CHAIN);
		ret = kvt_check(c, 0, keys, CHAIN, 20 * KVT_SEC);
		if (ret != CHAIN) {
			fprintf(stderr, "# chain %d of %d: %d\n", i, nr, ret);
			return ret < 0 ? ret : i;
		}
	}
	return nr;
}

static const struct kvtier_tier_stat *tier_of(const struct kvtier_tier_stat *tiers, int nr, int id)
{
	int i;

	for (i = 0; i < nr; i++)
		if ((int)tiers[i].id == id)
			return &tiers[i];
	return NULL;
}

static __u64 demoted_clean(const struct kvt_pool *p)
{
	char buf[32];

	return kvt_sysfs_read(p, "tiers/bdev30/clean_demotions", buf, sizeof(buf)) < 0 ? 0 :
	       strtoull(buf, NULL, 10);
}

TEST_F_TIMEOUT(tiers, round_trip, 600)
{
	struct kvtier_tier_stat tiers[KVTIER_TIERS_MAX];
	const struct kvtier_tier_stat *top, *bottom;
	__u64 stored = (__u64)self->nr_chains * CHAIN, sum = 0;
	struct kvt_key keys[CHAIN];
	struct kvtier_stat st;
	int nr, i;

	ASSERT_LE(3 * self->mem_bytes, stored * BLOCK_BYTES);
	ASSERT_EQ(self->nr_chains, put_chains(&self->c, self->nr_chains));
	ASSERT_EQ(self->nr_chains, check_chains(&self->c, self->nr_chains));
	/* One that is in memory now: hits above as well as below. */
	kvt_keys(keys, SET, (self->nr_chains - 1) * CHAIN, CHAIN);
	ASSERT_TRUE(KVT_UNTIL(10000, check_one(&self->c, self->nr_chains - 1) == 1 &&
			      kvt_check(&self->c, 0, keys, CHAIN, 0) == CHAIN));
	nr = kvt_settled(&self->pool, &st, tiers);
	ASSERT_LE(2, nr);
	EXPECT_EQ(stored, st.nr_blocks);
	EXPECT_EQ(0, st.evictions);
	EXPECT_EQ(0, st.leases);
	EXPECT_LT(0, st.promotions);
	EXPECT_LT(0, st.demotions);
	top = tier_of(tiers, nr, self->top);
	bottom = tier_of(tiers, nr, self->bottom);
	EXPECT_LT(0, bottom->hits);
	for (i = 0, sum = 0; i < nr; i++)
		sum += tiers[i].hits;
	EXPECT_LT(bottom->hits, sum);
	sum = 0;
	EXPECT_LT(0, top->demotions_out);
	EXPECT_LT(0, top->promotions_in);
	EXPECT_LT(0, bottom->demotions_in);
	EXPECT_LT(0, bottom->promotions_out);
	/* Some had copies there. */
	EXPECT_LE((bottom->demotions_in - demoted_clean(&self->pool)) * BLOCK_BYTES,
		  bottom->write_bytes);
	EXPECT_LE(bottom->promotions_out * BLOCK_BYTES, bottom->read_bytes);
	/* Block tiers are read and written by the device, all of it. */
	EXPECT_LE(bottom->read_bytes + bottom->write_bytes, bottom->dma_bytes);
	for (i = 0; i < nr; i++) {
		EXPECT_EQ(0, tiers[i].io_errors);
		EXPECT_EQ(0, tiers[i].evictions);
		/* None is passed over on the way down. */
		EXPECT_EQ((int)tiers[i].id != self->top, tiers[i].demotions_in > 0);
		EXPECT_GE(tiers[i].capacity_bytes, tiers[i].used_bytes);
		sum += tiers[i].nr_blocks;
	}
	EXPECT_EQ(stored, sum);
	/* Everything was fetched from below; what was read last is found above. */
	EXPECT_LT(0, bottom->hits);
	ASSERT_EQ(1, check_one(&self->c, self->nr_chains - 1));
	nr = kvt_tier_stats(self->c.fd, &st, tiers);
	ASSERT_LE(2, nr);
	for (i = 0, sum = 0; i < nr; i++)
		sum += tiers[i].hits;
	/* In whichever memory tier it has got to. */
	EXPECT_LT(bottom->hits, sum);
}

/* More than memory has room for, and what is to go down by itself has gone. */
static int fill(FIXTURE_DATA(tiers) *self)
{
	struct kvtier_stat st;
	int ret = put_chains(&self->c, self->nr_cold);

	if (ret != self->nr_cold)
		return ret < 0 ? ret : -ENOSPC;
	ret = kvt_settled(&self->pool, &st, NULL);
	return ret < 0 ? ret : 0;
}

/* A block that is on the block tier only. */
static bool find_cold(FIXTURE_DATA(tiers) *self, struct kvt_key *key,
		      struct kvtier_lookup_result *look)
{
	int i;

	for (i = 0; i < self->nr_cold; i++) {
		*key = kvt_key(SET, i * CHAIN);
		if (kvt_lookup(self->c.fd, 0, key, 1, look) == 1 &&
		    (int)look->tier == self->bottom)
			return true;
	}
	return false;
}

TEST_F_TIMEOUT(tiers, get_without_waiting, 300)
{
	struct kvtier_lookup_result look;
	struct kvtier_block_result res;
	struct kvt_key key;

	ASSERT_EQ(0, fill(self));
	ASSERT_TRUE(find_cold(self, &key, &look));
	/* Nothing was ever read here, and yet it is known not to be for nothing. */
	EXPECT_LT(0, look.cost_ns);
	/* What is not in memory is not promised, and with NOPROMOTE it stays there. */
	EXPECT_EQ(0, kvt_get(self->c.fd, KVTIER_GET_NOPROMOTE, 0, &key, 1, &res, 0));
	EXPECT_NE(KVTIER_ST_HIT, res.status);
	kvt_sleep_ms(200);
	EXPECT_EQ(1, kvt_lookup(self->c.fd, 0, &key, 1, &look));
	EXPECT_EQ(self->bottom, look.tier);
	/* Asked for plainly it comes. */
	EXPECT_EQ(0, kvt_get(self->c.fd, 0, 0, &key, 1, &res, 0));
	EXPECT_EQ(KVTIER_ST_PENDING, res.status);
	EXPECT_EQ(0, res.handle);
	ASSERT_TRUE(KVT_UNTIL(10000, kvt_get(self->c.fd, KVTIER_GET_NOPROMOTE, 0, &key, 1, &res,
					     0) == 1));
	EXPECT_TRUE(kvt_bytes_ok(kvt_rd(&self->c, res.offset), &key, BLOCK_BYTES));
	EXPECT_EQ(1, kvt_lookup(self->c.fd, 0, &key, 1, &look));
	EXPECT_EQ(0, look.cost_ns);
}

static int wait_completion(int fd, struct kvtier_completion *comp)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	if (poll(&pfd, 1, KVT_PATIENCE_MS(20000)) != 1)
		return -ETIMEDOUT;
	return read(fd, comp, sizeof(*comp)) == sizeof(*comp) ? 0 : -EIO;
}

TEST_F_TIMEOUT(tiers, prefetch, 300)
{
	struct kvtier_lookup_result look[CHAIN];
	struct kvtier_completion comp;
	struct kvt_key keys[CHAIN];
	int i, k = 0;

	ASSERT_EQ(0, fill(self));
	for (i = 0; i < self->nr_cold && k < 4; i++) {
		kvt_keys(keys, SET, i * CHAIN, CHAIN);
		kvt_lookup(self->c.fd, 0, keys, CHAIN, look);
		for (k = 0; k < 4 && (int)look[k].tier == self->bottom; k++)
			;
	}
	ASSERT_EQ(4, k);
	EXPECT_LT(0, kvt_prefetch(self->c.fd, KVTIER_PREFETCH_NOTIFY, 0, keys, 4, 99, -1));
	ASSERT_EQ(0, wait_completion(self->c.fd, &comp));
	EXPECT_EQ(99, comp.user_data);
	EXPECT_EQ(4, comp.nr_ready);
	EXPECT_EQ(4, kvt_lookup(self->c.fd, 0, keys, 4, look));
	for (i = 0; i < 4; i++)
		EXPECT_EQ(0, look[i].cost_ns);
	EXPECT_EQ(4, kvt_check(&self->c, 0, keys, 4, 0));
}

TEST_F_TIMEOUT(tiers, async_get, 300)
{
	struct kvtier_lookup_result look;
	struct kvtier_completion comp;
	struct kvtier_block_result res;
	struct kvt_key key;
	struct kvtier_get a = {
		.size = sizeof(a), .flags = KVTIER_GET_ASYNC, .nr = 1, .keys = KVT_U64(&key),
		.results = KVT_U64(&res), .user_data = 7, .eventfd = -1,
	};

	ASSERT_EQ(0, fill(self));
	ASSERT_TRUE(find_cold(self, &key, &look));
	ASSERT_EQ(0, kvt_ioctl(self->c.fd, KVTIER_OP_GET, &a));
	EXPECT_EQ(KVTIER_ST_PENDING, res.status);
	ASSERT_EQ(0, wait_completion(self->c.fd, &comp));
	EXPECT_EQ(7, comp.user_data);
	EXPECT_EQ(0, comp.result);
	EXPECT_EQ(1, comp.nr_ready);
	EXPECT_EQ(1, kvt_check(&self->c, 0, &key, 1, 0));
}

TEST_F_TIMEOUT(tiers, read_by_copy, 300)
{
	char *buf = malloc(BLOCK_BYTES);
	struct kvt_key key;
	int i;

	ASSERT_EQ(self->nr_cold, put_chains(&self->c, self->nr_cold));
	for (i = 0; i < self->nr_cold; i++) {
		key = kvt_key(SET, i * CHAIN + i % CHAIN);
		ASSERT_EQ(KVTIER_ST_HIT,
			  kvt_read1(self->c.fd, 0, &key, buf, BLOCK_BYTES, 20 * KVT_SEC));
		EXPECT_TRUE(kvt_bytes_ok(buf, &key, BLOCK_BYTES));
	}
	free(buf);
}

/* DROP reaches blocks wherever they are. */
TEST_F_TIMEOUT(tiers, drop_everywhere, 300)
{
	struct kvtier_tier_stat tiers[KVTIER_TIERS_MAX];
	struct kvt_key keys[CHAIN];
	struct kvtier_stat st;
	int i, nr;

	ASSERT_EQ(self->nr_cold, put_chains(&self->c, self->nr_cold));
	for (i = 0; i < self->nr_cold; i++) {
		kvt_keys(keys, SET, i * CHAIN, CHAIN);
		ASSERT_EQ(CHAIN, kvt_drop(self->c.fd, 0, keys, CHAIN, NULL));
	}
	EXPECT_TRUE(KVT_UNTIL(10000, ({
		nr = kvt_tier_stats(self->c.fd, &st, tiers);
		for (i = 0; i < nr && !tiers[i].used_bytes && !tiers[i].nr_blocks; i++)
			;
		i == nr && !st.nr_blocks;
	})));
}

/* --- everything at once ------------------------------------------------------------------ */

#define LOAD_CHAINS	96
#define LOAD_CHAIN	8

struct load {
	const struct kvt_pool *pool;
	unsigned int seed;
};

static int load_reader(struct kvt_child *me, void *arg)
{
	struct load *l = arg;
	struct kvt_key keys[LOAD_CHAIN];
	struct kvt_client c;
	int ret, nr = 0;

	KVT_CHILD_CHECK(!kvt_client_open(l->pool, &c, "load", BLOCK_BYTES));
	while (kvt_hear(me, 0) == -ETIMEDOUT) {
		kvt_keys(keys, SET + 1, rand_r(&l->seed) % LOAD_CHAINS * LOAD_CHAIN, LOAD_CHAIN);
		ret = kvt_check(&c, 0, keys, LOAD_CHAIN, rand_r(&l->seed) % 4 ? KVT_SEC : 0);
		KVT_CHILD_CHECK(ret >= 0);
		nr += ret;
	}
	KVT_CHILD_CHECK(!kvt_say(me, nr));
	return 0;
}

static int load_writer(struct kvt_child *me, void *arg)
{
	struct load *l = arg;
	struct kvt_key keys[LOAD_CHAIN];
	struct kvt_client c;
	int ret, nr = 0;

	KVT_CHILD_CHECK(!kvt_client_open(l->pool, &c, "load", BLOCK_BYTES));
	while (kvt_hear(me, 0) == -ETIMEDOUT) {
		kvt_keys(keys, SET + 1, rand_r(&l->seed) % LOAD_CHAINS * LOAD_CHAIN, LOAD_CHAIN);
		if (rand_r(&l->seed) % 8 == 0)
			ret = kvt_drop(c.fd, 0, keys, LOAD_CHAIN, NULL);
		else
			ret = kvt_put(&c, KVTIER_RESERVE_WAIT, 0, keys, NULL, LOAD_CHAIN);
		KVT_CHILD_CHECK(ret >= 0);
		nr += ret;
	}
	KVT_CHILD_CHECK(!kvt_say(me, nr));
	return 0;
}

TEST_F_TIMEOUT(tiers, readers_and_writers, 600)
{
	struct kvt_child child[6];
	struct load load[6];
	struct kvtier_stat st;
	int i, word, read = 0, written = 0;

	for (i = 0; i < 6; i++) {
		load[i] = (struct load){ &self->pool, i + 1 };
		ASSERT_EQ(0, kvt_spawn(&child[i], i < 4 ? load_reader : load_writer, &load[i]));
	}
	kvt_sleep_ms(kvt_env_long() ? 60000 : kvt_env_quick() ? 1000 : 2000);
	/* However long that takes: blocks go down and come up. */
	EXPECT_TRUE(KVT_UNTIL(30000, !kvt_stat(self->c.fd, KVTIER_STAT_POOL, &st) &&
			      st.demotions && st.promotions && st.hits > LOAD_CHAINS &&
			      st.puts > LOAD_CHAINS));
	for (i = 0; i < 6; i++)
		kvt_say(&child[i], 0);
	for (i = 0; i < 6; i++) {
		word = kvt_hear(&child[i], 200000);
		EXPECT_LE(0, word);
		*(i < 4 ? &read : &written) += word;
		EXPECT_EQ(0, kvt_join(&child[i], 20000));
	}
	EXPECT_LT(LOAD_CHAINS, read);
	EXPECT_LT(LOAD_CHAINS, written);
	ASSERT_EQ(0, kvt_stat(self->c.fd, KVTIER_STAT_POOL, &st));
	EXPECT_EQ(0, st.leases);
	EXPECT_LT(0, st.demotions);
	EXPECT_LT(0, st.promotions);
}

/* --- memory that no processor is near to, such as CXL memory that the system has taken in ---- */

#define FAR_MIB		32
#define OTHER_MIB	2	/* what the system may have done meanwhile */

FIXTURE(far)
{
	struct kvt_pool pool;
	struct kvt_client c;
	int node;
};

static bool node_is_in(const char *set, int node)
{
	return !kvt_sh("tr , '\\n' < /sys/devices/system/node/%s | while IFS=- read -r a b; do "
		       "[ %d -lt $a ] || [ %d -gt ${b:-$a} ] || exit 7; done; [ $? -eq 7 ]",
		       set, node, node);
}

/* The first node that has memory and no processors; -1: there is none. */
static int far_node(void)
{
	int node;

	for (node = 0; node < 16; node++)
		if (node_is_in("has_normal_memory", node) && !node_is_in("has_cpu", node))
			return node;
	return -1;
}

static long long free_mib(int node)
{
	char line[32];

	kvt_sh_line(line, sizeof(line),
		    "sed -n 's/.*MemFree: *\\([0-9]*\\) kB/\\1/p' /sys/devices/system/node/node%d/meminfo",
		    node);
	return atoll(line) / 1024;
}

FIXTURE_SETUP(far)
{
	self->node = far_node();
	if (self->node < 0)
		SKIP(return, "no node without processors");
	ASSERT_EQ(0, kvt_setup(&self->pool));
}

FIXTURE_TEARDOWN(far)
{
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

/* All of a node tier's memory is of its node, and none of a dram tier's. */
TEST_F_TIMEOUT(far, memory_is_of_the_node, 120)
{
	long long before = free_mib(self->node);
	struct kvt_key keys[CHAIN];
	int far, dram;

	ASSERT_LE(2 * FAR_MIB, before);
	dram = kvt_tier_dram(&self->pool, 0, FAR_MIB * KVT_MIB);
	ASSERT_LE(0, dram);
	EXPECT_LE(before - OTHER_MIB, free_mib(self->node));
	far = kvt_tier_node(&self->pool, 10, self->node, FAR_MIB * KVT_MIB);
	ASSERT_LE(0, far);
	EXPECT_GE(before - FAR_MIB + OTHER_MIB, free_mib(self->node));

	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "far", BLOCK_BYTES));
	kvt_keys(keys, SET, 0, CHAIN);
	ASSERT_EQ(CHAIN, kvt_put(&self->c, KVTIER_RESERVE_WAIT, 0, keys, NULL, CHAIN));
	/* There, and used there: without its processors a node is as good as any. */
	ASSERT_EQ(0, kvt_tier_detach(&self->pool, dram, 0, 20 * KVT_SEC));
	EXPECT_EQ(CHAIN, kvt_check(&self->c, 0, keys, CHAIN, 20 * KVT_SEC));
	EXPECT_EQ(CHAIN, kvt_lookup(self->c.fd, 0, keys, CHAIN, NULL));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, FAR_MIB * KVT_MIB));
	ASSERT_EQ(0, kvt_tier_detach(&self->pool, far, 0, 20 * KVT_SEC));
	EXPECT_LE(before - OTHER_MIB, free_mib(self->node));
	EXPECT_EQ(CHAIN, kvt_check(&self->c, 0, keys, CHAIN, 20 * KVT_SEC));
}

/* More than the node has is refused, though the system has it. */
TEST_F(far, no_more_than_there_is)
{
	long long before = free_mib(self->node);

	EXPECT_EQ(-ENOMEM, kvt_tier_node(&self->pool, 10, self->node, (before + 64) * KVT_MIB));
	EXPECT_LE(before - OTHER_MIB, free_mib(self->node));
}

TEST_HARNESS_MAIN
