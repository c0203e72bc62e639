// SPDX-License-Identifier: GPL-2.0
/*
 * What sysfs shows is what the commands say, and what may be written there takes
 * effect or is refused.
 */
#include "kvt_test.h"
#include <dirent.h>
#include <sys/stat.h>

#define BLOCK_BYTES	(64 * KVT_KIB)
#define NR		20
#define SET		25
#define SET_MANY	26
#define MANY		200		/* blocks, more than the first tier has room for */
#define ALICE		1001

FIXTURE(sysfs)
{
	struct kvt_pool pool;
	struct kvt_client c;
	char ns[64];
};

FIXTURE_SETUP(sysfs)
{
	struct kvt_key keys[NR];

	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, 8 * KVT_MIB));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 7, 40 * KVT_MIB));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "sysfs", BLOCK_BYTES));
	kvt_keys(keys, SET, 0, NR);
	ASSERT_EQ(NR, kvt_put(&self->c, 0, 0, keys, NULL, NR));
	ASSERT_EQ(NR, kvt_check(&self->c, 0, keys, NR, 0));
	snprintf(self->ns, sizeof(self->ns), "namespaces/%llu", (unsigned long long)self->c.ns_id);
}

FIXTURE_TEARDOWN(sysfs)
{
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

static long long number(const struct kvt_pool *p, const char *fmt, const char *arg)
{
	char name[128], buf[64], *end;
	long long val;
	int n;

	snprintf(name, sizeof(name), fmt, arg);
	n = kvt_sysfs_read(p, name, buf, sizeof(buf));
	if (n < 0)
		return n;
	val = strtoll(buf, &end, 10);
	return end != buf && !strcmp(end, "\n") ? val : -EINVAL;
}

static bool text_is(const struct kvt_pool *p, const char *name, const char *want)
{
	char buf[256];
	int n = kvt_sysfs_read(p, name, buf, sizeof(buf));

	if (n > 0 && buf[n - 1] == '\n')
		buf[n - 1] = 0;
	if (n >= 0 && !strcmp(buf, want))
		return true;
	fprintf(stderr, "# %s: '%s' (%d) instead of '%s'\n", name, n < 0 ? "" : buf, n, want);
	return false;
}

TEST_F(sysfs, pool)
{
	const struct kvt_pool *p = &self->pool;
	struct kvtier_stat st;

	ASSERT_EQ(0, kvt_stat(self->c.fd, KVTIER_STAT_POOL, &st));
	EXPECT_EQ(48 * KVT_MIB, number(p, "capacity_bytes", NULL));
	EXPECT_EQ(NR * BLOCK_BYTES, number(p, "used_bytes", NULL));
	EXPECT_EQ(st.nr_blocks, number(p, "blocks", NULL));
	EXPECT_EQ(st.hits, number(p, "hits", NULL));
	EXPECT_EQ(NR, st.hits);
	EXPECT_EQ(st.misses, number(p, "misses", NULL));
	EXPECT_EQ(st.promotions, number(p, "promotions", NULL));
	EXPECT_EQ(st.demotions, number(p, "demotions", NULL));
	EXPECT_EQ(st.evictions, number(p, "evictions", NULL));
	EXPECT_EQ(st.meta_bytes_per_block, number(p, "meta_bytes_per_block", NULL));
	/* One client, with room for a power of two of handles; no dax tier, 4 for each 2 MiB. */
	EXPECT_EQ(64 * 16, number(p, "lease_bytes", NULL));
	EXPECT_EQ(48 / 2 * 4, number(p, "page_struct_bytes", NULL));
	kvt_client_close(&self->c);
	EXPECT_TRUE(KVT_UNTIL(5000, number(p, "lease_bytes", NULL) == 0));
	ASSERT_EQ(0, kvt_client_open(p, &self->c, "sysfs", BLOCK_BYTES));
}

TEST_F(sysfs, tiers)
{
	struct kvtier_tier_info info[KVTIER_TIERS_MAX];
	const struct kvt_pool *p = &self->pool;
	struct kvtier_query q;
	int i, nr = kvt_query(self->c.fd, &q, info);

	ASSERT_EQ(2, nr);
	for (i = 0; i < nr; i++) {
		EXPECT_EQ(info[i].id, number(p, "tiers/%s/id", info[i].name));
		EXPECT_EQ(info[i].rank, number(p, "tiers/%s/rank", info[i].name));
		EXPECT_EQ(info[i].capacity_bytes, number(p, "tiers/%s/capacity_bytes",
							 info[i].name));
		EXPECT_EQ(info[i].used_bytes, number(p, "tiers/%s/used_bytes", info[i].name));
		EXPECT_EQ(info[i].nr_blocks, number(p, "tiers/%s/blocks", info[i].name));
		EXPECT_LE(0, number(p, "tiers/%s/hits", info[i].name));
		EXPECT_LE(0, number(p, "tiers/%s/promotions_in", info[i].name));
		EXPECT_LE(0, number(p, "tiers/%s/demotions_out", info[i].name));
		EXPECT_EQ(0, number(p, "tiers/%s/io_errors", info[i].name));
		EXPECT_EQ(0, number(p, "tiers/%s/retired_bytes", info[i].name));
		EXPECT_LE(0, number(p, "tiers/%s/absent_bytes", info[i].name));
		EXPECT_EQ(0, number(p, "tiers/%s/prefetches", info[i].name));
	}
	EXPECT_TRUE(text_is(p, "tiers/dram0/type", "dram"));
	EXPECT_TRUE(text_is(p, "tiers/dram0/state", "online"));
	EXPECT_TRUE(text_is(p, "tiers/dram0/device", "-"));
	EXPECT_EQ(NR, number(p, "tiers/%s/hits", "dram0"));
}

/* What one tier does not have is a hit of the one after it, or missed by both. */
TEST_F(sysfs, misses)
{
	const struct kvt_pool *p = &self->pool;
	struct kvtier_block_result res;
	struct kvtier_tier_info info[KVTIER_TIERS_MAX];
	struct kvt_key keys[MANY + 1];
	struct kvtier_query q;
	const char *slow;

	ASSERT_EQ(2, kvt_query(self->c.fd, &q, info));
	slow = info[1].name;
	EXPECT_EQ(0, number(p, "tiers/%s/misses", "dram0"));
	EXPECT_EQ(0, number(p, "tiers/%s/misses", slow));
	kvt_keys(keys, SET_MANY, 0, MANY + 1);
	ASSERT_EQ(MANY, kvt_put(&self->c, 0, 0, keys, NULL, MANY));
	ASSERT_EQ(MANY, kvt_check(&self->c, 0, keys, MANY, 0));
	EXPECT_EQ(0, kvt_get(self->c.fd, 0, 0, keys + MANY, 1, &res, 0));
	EXPECT_EQ(NR + MANY, number(p, "hits", NULL));
	EXPECT_EQ(1, number(p, "misses", NULL));
	EXPECT_LT(0, number(p, "tiers/%s/hits", slow));
	EXPECT_EQ(number(p, "tiers/%s/hits", slow) + 1, number(p, "tiers/%s/misses", "dram0"));
	EXPECT_EQ(1, number(p, "tiers/%s/misses", slow));
}

TEST_F(sysfs, namespace)
{
	const struct kvt_pool *p = &self->pool;
	char name[128];

	EXPECT_EQ(NR, number(p, "%s/blocks", self->ns));
	EXPECT_EQ(NR * BLOCK_BYTES, number(p, "%s/used_bytes", self->ns));
	EXPECT_EQ(NR, number(p, "%s/hits", self->ns));
	EXPECT_EQ(NR, number(p, "%s/puts", self->ns));
	EXPECT_EQ(0, number(p, "%s/misses", self->ns));
	EXPECT_EQ(0, number(p, "%s/quota_bytes", self->ns));
	snprintf(name, sizeof(name), "%s/groups", self->ns);
	EXPECT_TRUE(text_is(p, name, "65536"));
}

/* Nothing about a namespace is for others to see: not even that there is one. */
TEST_F(sysfs, namespaces_are_private)
{
	char path[160];
	int n;

	snprintf(path, sizeof(path), "%s/hits", self->ns);
	ASSERT_EQ(0, kvt_become(ALICE));
	n = kvt_sysfs_read(&self->pool, path, path, sizeof(path));
	ASSERT_EQ(0, kvt_become(0));
	EXPECT_EQ(-EACCES, n);
}

static const char *const causes[] = { "room", "quota", "ttl", "worth", "io", "lost", "detach" };

/* Blocks that left a tier, DROP left out, by cause. */
static long long evicted(const struct kvt_pool *p, const char *tier)
{
	long long sum = 0, n;
	char name[128];
	size_t i;

	for (i = 0; i < KVT_ARRAY(causes); i++) {
		snprintf(name, sizeof(name), "tiers/%s/evicted_%s", tier, causes[i]);
		n = number(p, "%s", name);
		if (n < 0)
			return n;
		sum += n;
	}
	return sum;
}

/* Of the only namespace, from tier @id, for that cause. */
static long long evicted_ns(const struct kvt_pool *p, const char *ns, int id, const char *cause)
{
	char name[128], buf[512] = "\n", line[32];
	const char *at;
	int n;

	snprintf(name, sizeof(name), "%s/evicted_%s", ns, cause);
	n = kvt_sysfs_read(p, name, buf + 1, sizeof(buf) - 1);
	snprintf(line, sizeof(line), "\n%d ", id);
	at = n < 0 ? NULL : strstr(buf, line);
	return n < 0 ? n : at ? atoll(at + strlen(line)) : 0;
}

/* A tier says of each cause what its only namespace does. */
static bool same_causes(const struct kvt_pool *p, const char *ns, int id, const char *tier)
{
	long long of_tier, own;
	char name[64];
	size_t i;

	for (i = 0; i < KVT_ARRAY(causes); i++) {
		snprintf(name, sizeof(name), "tiers/%s/evicted_%s", tier, causes[i]);
		of_tier = number(p, "%s", name);
		own = evicted_ns(p, ns, id, causes[i]);
		if (of_tier < 0 || of_tier != own) {
			fprintf(stderr, "# %s: %lld of tier %s, %lld of its namespace\n", causes[i],
				of_tier, tier, own);
			return false;
		}
	}
	return true;
}

/* Why blocks left, by tier and by namespace; DROP is no eviction. */
TEST_F(sysfs, causes)
{
	struct kvt_key keys[NR];
	char name[128], buf[64];

	kvt_keys(keys, SET, 0, NR);
	ASSERT_EQ(3, kvt_drop(self->c.fd, 0, keys + NR - 3, 3, NULL));
	EXPECT_EQ(3, number(&self->pool, "tiers/%s/dropped", "dram0"));
	snprintf(name, sizeof(name), "%s/dropped", self->ns);
	ASSERT_LT(0, kvt_sysfs_read(&self->pool, name, buf, sizeof(buf)));
	EXPECT_STREQ("0 3\n", buf);
	EXPECT_EQ(0, evicted(&self->pool, "dram0"));
	/* The rest goes down, and most of it out from there: what is oldest, whatever it is worth. */
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "policy", "lru"));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "watermark_low_percent", "1"));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "watermark_high_percent", "2"));
	EXPECT_TRUE(KVT_UNTIL(20000, number(&self->pool, "tiers/%s/evictions", "dram7") > 0 &&
			      number(&self->pool, "tiers/%s/evictions", "dram7") ==
			      number(&self->pool, "tiers/%s/evicted_room", "dram7")));
	EXPECT_TRUE(KVT_UNTIL(20000, evicted(&self->pool, "dram7") ==
			      number(&self->pool, "tiers/%s/evictions", "dram7")));
	EXPECT_TRUE(KVT_UNTIL(20000, same_causes(&self->pool, self->ns, 1, "dram7")));
	EXPECT_TRUE(same_causes(&self->pool, self->ns, 0, "dram0"));
	EXPECT_EQ(0, number(&self->pool, "tiers/%s/promotions_unread", "dram0"));
}

/* What is learned of a namespace is limited, and shown apart from other memory. */
TEST_F(sysfs, policy_bytes)
{
	long long one = number(&self->pool, "%s/policy_bytes", self->ns);
	struct kvt_client other;

	EXPECT_LT(0, one);
	EXPECT_GE(16384, one);
	EXPECT_EQ(one, number(&self->pool, "policy_bytes", NULL));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &other, "another", BLOCK_BYTES));
	EXPECT_EQ(2 * one, number(&self->pool, "policy_bytes", NULL));
	kvt_client_close(&other);
}

static bool is_among(const char *const *names, size_t nr, const char *name)
{
	while (nr && strcmp(names[nr - 1], name))
		nr--;
	return nr;
}

/* Exactly the tunables can be written, and by root alone. */
TEST_F(sysfs, modes)
{
	static const char *const writable[] = {
		"policy", "watermark_low_percent", "watermark_high_percent",
		"reserve_percent", "copies_percent", "reservation_timeout_ms",
		"prefetch_max_bytes", "discard", "unwiped",
	};
	/* What changes with what others do is for root, and so is who they are. */
	static const char *const writable_secret[] = { "cgroup_limits" };
	static const char *const open_to_all[] = {
		"capacity_bytes", "page_struct_bytes", "degraded", "uuid", "scrub_state",
		"policies", "dev",
	};
	char path[300];
	struct dirent *e;
	struct stat st;
	size_t n = 0;
	mode_t mode;
	DIR *d;

	snprintf(path, sizeof(path), "/sys/class/kvtier/kvtier%u", self->pool.id);
	d = opendir(path);
	ASSERT_NE(NULL, d);
	while ((e = readdir(d))) {
		snprintf(path, sizeof(path), "/sys/class/kvtier/kvtier%u/%.200s", self->pool.id,
			 e->d_name);
		if (lstat(path, &st) || !S_ISREG(st.st_mode) || !strcmp(e->d_name, "uevent"))
			continue;
		mode = 0400;
		if (is_among(writable, KVT_ARRAY(writable), e->d_name))
			mode = 0644;
		else if (is_among(writable_secret, KVT_ARRAY(writable_secret), e->d_name))
			mode = 0600;
		else if (is_among(open_to_all, KVT_ARRAY(open_to_all), e->d_name))
			mode = 0444;
		n += !!(mode & 0200);
		EXPECT_EQ(mode, st.st_mode & 07777)
			TH_LOG("%s", e->d_name);
	}
	closedir(d);
	EXPECT_EQ(KVT_ARRAY(writable) + KVT_ARRAY(writable_secret), n);
}

TEST_F(sysfs, bad_values)
{
	static const struct {
		const char *file;
		const char *value;
	} bad[] = {
		{ "watermark_low_percent", "0" }, { "watermark_low_percent", "-1" },
		{ "watermark_low_percent", "100" }, { "watermark_high_percent", "101" },
		{ "watermark_high_percent", "1" }, { "watermark_high_percent", "x" },
		{ "watermark_high_percent", "" }, { "watermark_high_percent", "9 9" },
		{ "reserve_percent", "0" }, { "reserve_percent", "101" },
		{ "reserve_percent", "-1" }, { "reserve_percent", "" },
		{ "copies_percent", "101" }, { "copies_percent", "-1" }, { "copies_percent", "" },
		{ "reservation_timeout_ms", "0" }, { "reservation_timeout_ms", "4294967296" },
		{ "reservation_timeout_ms", "soon" }, { "policy", "" }, { "policy", "lr" },
		{ "policy", "lruu" }, { "policy", "nonsense" },
		{ "prefetch_max_bytes", "-1" }, { "prefetch_max_bytes", "all" },
		{ "prefetch_max_bytes", "17592186044417" }, { "discard", "2" },
		{ "discard", "always" },
	};
	char before[64], after[64];
	size_t i;

	for (i = 0; i < KVT_ARRAY(bad); i++) {
		ASSERT_LT(0, kvt_sysfs_read(&self->pool, bad[i].file, before, sizeof(before)));
		/* Writing nothing at all is no error of the file's. */
		if (*bad[i].value)
			EXPECT_GT(0, kvt_sysfs_write(&self->pool, bad[i].file, bad[i].value))
				TH_LOG("%s: '%s'", bad[i].file, bad[i].value);
		ASSERT_LT(0, kvt_sysfs_read(&self->pool, bad[i].file, after, sizeof(after)));
		EXPECT_STREQ(before, after);
	}
}

TEST_F(sysfs, policy)
{
	char names[256], one[64], *name, *save = NULL;

	ASSERT_LT(0, kvt_sysfs_read(&self->pool, "policies", names, sizeof(names)));
	EXPECT_STREQ("reuse lru\n", names);
	EXPECT_TRUE(text_is(&self->pool, "policy", "reuse"));
	for (name = strtok_r(names, "\n ", &save); name; name = strtok_r(NULL, "\n ", &save)) {
		snprintf(one, sizeof(one), "%s\n", name);
		EXPECT_EQ(0, kvt_sysfs_write(&self->pool, "policy", one));
		EXPECT_TRUE(text_is(&self->pool, "policy", name));
	}
}

/* Lower marks: what is above them goes down, in its own time. */
TEST_F(sysfs, watermarks_take_effect)
{
	struct kvt_key keys[NR * 4];

	kvt_keys(keys, SET, 1000, NR * 4);
	ASSERT_EQ(NR * 4, kvt_put(&self->c, 0, 0, keys, NULL, NR * 4));
	ASSERT_EQ(NR * 5 * BLOCK_BYTES, number(&self->pool, "tiers/%s/used_bytes", "dram0"));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "watermark_low_percent", "20"));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "watermark_high_percent", "30"));
	EXPECT_TRUE(KVT_UNTIL(10000, number(&self->pool, "tiers/%s/used_bytes", "dram0") <=
			      (long long)(8 * KVT_MIB * 30 / 100)));
	EXPECT_LT(0, number(&self->pool, "tiers/%s/demotions_in", "dram7"));
	EXPECT_EQ(0, number(&self->pool, "evictions", NULL));
	EXPECT_EQ(NR * 4, kvt_check(&self->c, 0, keys, NR * 4, 20 * KVT_SEC));
}

/* Files that are held open do not hold what they show. */
TEST_F(sysfs, open_files_do_not_pin)
{
	char path[128], buf[32];
	int pool_fd, tier_fd, ns_fd;

	snprintf(path, sizeof(path), "/sys/class/kvtier/kvtier%u/used_bytes", self->pool.id);
	pool_fd = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/sys/class/kvtier/kvtier%u/tiers/dram7/hits", self->pool.id);
	tier_fd = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/sys/class/kvtier/kvtier%u/%s/hits", self->pool.id, self->ns);
	ns_fd = open(path, O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, pool_fd);
	ASSERT_LE(0, tier_fd);
	ASSERT_LE(0, ns_fd);
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, 1, 0, 10 * KVT_SEC));
	EXPECT_EQ(-1, pread(tier_fd, buf, sizeof(buf), 0));
	EXPECT_EQ(ENODEV, errno);
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_pool_destroy(self->pool.ctl, self->pool.id));
	EXPECT_EQ(-1, pread(pool_fd, buf, sizeof(buf), 0));
	EXPECT_EQ(-1, pread(ns_fd, buf, sizeof(buf), 0));
	close(pool_fd);
	close(tier_fd);
	close(ns_fd);
	/* For the teardown. */
	ASSERT_EQ(0, kvt_setup(&self->pool));
}

TEST_HARNESS_MAIN
