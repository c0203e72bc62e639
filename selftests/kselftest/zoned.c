// SPDX-License-Identifier: GPL-2.0
/*
 * Tiers on zoned NVMe namespaces: written at the write pointer only, reclaimed by resets
 * of zones, and found again. Most writes that are out of order fail on the device, and a
 * tier all of whose writes succeed has made none. And on a device of null_blk, some of
 * whose zones fail.
 *
 * Damage is what differs in a copy that is made zone by zone: nothing can be written over.
 */
#include <linux/blkzoned.h>

#include "kvt_test.h"

#define BLOCK_BYTES	(64 * KVT_KIB)
#define CHAIN		8
#define CHAINS		24	/* fit into the tier */
#define SET		61
#define DRAM_BYTES	(8 * KVT_MIB)
#define ZONES_MAX	64
#define FLIPS_MAX	ZONES_MAX
#define GONE		3	/* every so many chains are dropped */
#define MAGIC_BATCH	"KVTBATCH"
#define MAGIC_FOOTER	"KVTSFOOT"

/* Where they say what they are of, and how long. */
#define BATCH_SEGMENT	48
#define BATCH_NUMBER	52
#define BATCH_HEADER	56
#define BATCH_PAYLOAD	60
#define FOOTER_SEGMENT	56

FIXTURE(zoned)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvt_disk disk[2];
	struct kvtier_assemble_device dev;
	struct kvtier_pool_assemble a;
	int dram;
	int tier;
};

static int zones(const struct kvt_disk *d, struct blk_zone *z)
{
	struct blk_zone_report *r = calloc(1, sizeof(*r) + ZONES_MAX * sizeof(*z));
	int fd = open(d->dev, O_RDONLY | O_CLOEXEC), nr;

	r->nr_zones = ZONES_MAX;
	nr = fd < 0 || ioctl(fd, BLKREPORTZONE, r) ? -errno : (int)r->nr_zones;
	if (nr > 0)
		memcpy(z, r->zones, nr * sizeof(*z));
	if (fd >= 0)
		close(fd);
	free(r);
	return nr;
}

static int reset_zones(const struct kvt_disk *d, const struct blk_zone *z, int nr)
{
	struct blk_zone_range range = { .nr_sectors = nr * z->len };
	int fd = open(d->dev, O_RDWR | O_CLOEXEC), err;

	err = fd < 0 || ioctl(fd, BLKRESETZONE, &range) ? -errno : 0;
	if (fd >= 0)
		close(fd);
	return err;
}

/* Zones that are neither empty nor full. */
static int active_zones(const struct kvt_disk *d)
{
	struct blk_zone z[ZONES_MAX];
	int nr = zones(d, z), i, active = 0;

	for (i = 0; i < nr; i++)
		active += z[i].cond != BLK_ZONE_COND_EMPTY && z[i].cond != BLK_ZONE_COND_FULL;
	return nr < 0 ? nr : active;
}

/* Bytes of which a bit is to be another. */
struct flips {
	int nr;
	__u64 at[FLIPS_MAX];
};

static void flip_some(char *buf, __u64 at, size_t len, const struct flips *flips)
{
	int i;

	for (i = 0; flips && i < flips->nr; i++) {
		if (flips->at[i] >= at && flips->at[i] < at + len)
			buf[flips->at[i] - at] ^= 0x10;
	}
}

static int copy_zone(const struct kvt_disk *to, const struct kvt_disk *from,
		     const struct blk_zone *z, char *buf, const struct flips *flips)
{
	__u64 at = z->start << 9, end = z->wp << 9;
	size_t len;
	int err = 0;

	if (z->cond == BLK_ZONE_COND_FULL)
		end = (z->start + z->capacity) << 9;
	for (; at < end && !err; at += len) {
		len = end - at < KVT_MIB ? end - at : KVT_MIB;
		err = kvt_disk_io(from, at, buf, len, false);
		flip_some(buf, at, len, flips);
		if (!err)
			err = kvt_disk_io(to, at, buf, len, true);
	}
	return err;
}

/* What a crash would leave: each zone up to its write pointer. */
static int copy_zones(const struct kvt_disk *to, const struct kvt_disk *from,
		      const struct flips *flips)
{
	char *buf = aligned_alloc(4096, KVT_MIB);
	struct blk_zone z[ZONES_MAX];
	int nr = zones(from, z), i, err;

	err = nr < 0 ? nr : reset_zones(to, z, nr);
	for (i = 0; i < nr && !err; i++)
		err = copy_zone(to, from, &z[i], buf, flips);
	free(buf);
	return err;
}

static int open_client(FIXTURE_DATA(zoned) *self)
{
	return kvt_client_open(&self->pool, &self->c, "zoned", BLOCK_BYTES);
}

static int attach_some(FIXTURE_DATA(zoned) *self, __u32 rank, const struct kvt_disk *d,
		       __u64 capacity_bytes, __u64 segment_bytes, __u32 flags)
{
	struct kvtier_tier_attach a;
	int err;

	kvt_tier_args(&self->pool, &a, KVTIER_TIER_BDEV, rank);
	snprintf(a.path, sizeof(a.path), "%s", d->dev);
	a.capacity_bytes = capacity_bytes;
	a.segment_bytes = segment_bytes;
	a.flags = flags;
	err = kvt_ioctl(self->pool.ctl, KVTIER_OP_TIER_ATTACH, &a);
	return err ? err : (int)a.tier_id;
}

static int attach(FIXTURE_DATA(zoned) *self, __u32 rank, const struct kvt_disk *d,
		  __u64 segment_bytes, __u32 flags)
{
	return attach_some(self, rank, d, 0, segment_bytes, flags);
}

FIXTURE_SETUP(zoned)
{
	int i;

	self->c.fd = -1;
	if (!getenv("KVT_ZONED") || !getenv("KVT_ZONED_COPY"))
		SKIP(return, "no zoned block devices to use (KVT_ZONED, KVT_ZONED_COPY)");
	for (i = 0; i < 2; i++)
		snprintf(self->disk[i].dev, sizeof(self->disk[i].dev), "%s",
			 getenv(i ? "KVT_ZONED_COPY" : "KVT_ZONED"));
	ASSERT_EQ(0, kvt_setup(&self->pool));
	self->dram = kvt_tier_dram(&self->pool, 0, DRAM_BYTES);
	ASSERT_LE(0, self->dram);
	self->tier = attach(self, 30, &self->disk[0], 0, KVTIER_ATTACH_FORCE);
	ASSERT_LE(0, self->tier);
	ASSERT_EQ(0, open_client(self));
}

#define NULLZ		"/sys/kernel/config/nullb/kvtz"
#define NULLZ_ZONES	24
#define NULLZ_ACTIVE	10
#define NULLZ_USED	14	/* by a tier on a part of it */
#define ZONE_BYTES	(2 * KVT_MIB)
#define NULLZ_DEV	"/dev/kvtz"

static int nullz_remove(void)
{
	return kvt_sh("echo 0 > " NULLZ "/power && rmdir " NULLZ);
}

FIXTURE_TEARDOWN(zoned)
{
	if (!self->disk[0].dev[0])
		return;
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	if (!strcmp(self->disk[1].dev, NULLZ_DEV))
		EXPECT_EQ(0, nullz_remove());
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

static int send_down(FIXTURE_DATA(zoned) *self)
{
	int err = kvt_tier_detach(&self->pool, self->dram, 0, 60 * KVT_SEC);

	self->dram = err ? self->dram : -1;
	return err ? err : fsync(self->c.fd) ? -errno : 0;
}

static int end_pool(FIXTURE_DATA(zoned) *self)
{
	kvt_client_close(&self->c);
	return kvt_pool_destroy(self->pool.ctl, self->pool.id);
}

/* For who takes it down, when there is none. */
static int make_pool(FIXTURE_DATA(zoned) *self)
{
	struct kvtier_pool_create any = { .size = sizeof(any), .pool_id = KVTIER_POOL_ANY_ID };
	int err = kvt_ioctl(self->pool.ctl, KVTIER_OP_POOL_CREATE, &any);

	self->pool.id = any.pool_id;
	return err;
}

static int assemble(FIXTURE_DATA(zoned) *self, int disk)
{
	memset(&self->dev, 0, sizeof(self->dev));
	memcpy(self->dev.path, self->disk[disk].dev, sizeof(self->disk[disk].dev));
	self->a = (struct kvtier_pool_assemble) {
		.size = sizeof(self->a),
		.pool_id = KVTIER_POOL_ANY_ID,
		.nr_devices = 1,
		.devices = KVT_U64(&self->dev),
	};
	return kvt_pool_assemble(&self->pool, &self->a);
}

static int open_again(FIXTURE_DATA(zoned) *self)
{
	self->dram = kvt_tier_dram(&self->pool, 0, DRAM_BYTES);
	return self->dram < 0 ? self->dram : open_client(self);
}

static int tier_stat(FIXTURE_DATA(zoned) *self, struct kvtier_tier_stat *out)
{
	struct kvtier_tier_stat tiers[KVTIER_TIERS_MAX];
	struct kvtier_stat st;
	int nr = kvt_tier_stats(self->c.fd, &st, tiers), i;

	for (i = 0; i < nr; i++) {
		if ((int)tiers[i].id != self->tier)
			continue;
		*out = tiers[i];
		return 0;
	}
	return nr < 0 ? nr : -ENOENT;
}

static __u64 capacity(FIXTURE_DATA(zoned) *self)
{
	struct kvtier_tier_info tiers[KVTIER_TIERS_MAX];
	struct kvtier_query q;
	int i, nr = kvt_query(self->c.fd, &q, tiers);

	for (i = 0; i < nr; i++) {
		if ((int)tiers[i].id == self->tier)
			return tiers[i].capacity_bytes;
	}
	return 0;
}

/* Blocks of these chains that are there, without having them read. */
static int count_chains(const struct kvt_client *c, int nr)
{
	struct kvtier_lookup_result res;
	struct kvt_key key;
	int i, sum = 0;

	for (i = 0; i < nr * CHAIN; i++) {
		key = kvt_key(SET, i);
		sum += kvt_lookup(c->fd, 0, &key, 1, &res) == 1;
	}
	return sum;
}

/* Zones are used again and again, and what is there in the end is there after a restart. */
TEST_F_TIMEOUT(zoned, many_times, 900)
{
	struct kvtier_stat pool_st;
	struct kvtier_tier_stat st;
	int chains, there, right;

	chains = (int)(capacity(self) * 3 / 2 / (CHAIN * BLOCK_BYTES));
	ASSERT_LT(CHAINS, chains);
	/* Another policy does not write all that is stored once. */
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "policy", "lru"));
	ASSERT_EQ(chains * CHAIN, put_chains(&self->c, 0, chains));
	ASSERT_EQ(0, send_down(self));
	/* The worker may still be making room, for blocks that are not going to come. */
	ASSERT_LT(0, kvt_settled(&self->pool, &pool_st, NULL));
	there = count_chains(&self->c, chains);
	ASSERT_LT(CHAINS * CHAIN, there);
	ASSERT_GT(chains * CHAIN, there);
	ASSERT_EQ(0, tier_stat(self, &st));
	EXPECT_EQ(0, st.io_errors);
	/* More than fits: some zones were reset and written once more. */
	EXPECT_LT(capacity(self), st.write_bytes);
	EXPECT_GE(10, active_zones(&self->disk[0]));
	ASSERT_EQ(0, end_pool(self));
	EXPECT_GE(2, active_zones(&self->disk[0]));
	ASSERT_EQ(0, assemble(self, 0));
	EXPECT_EQ(KVTIER_MEMBER_CLEAN, self->dev.state);
	EXPECT_EQ(0, self->a.nr_unsealed);
	EXPECT_EQ(0, self->a.nr_bad_bytes + self->a.nr_bad_records + self->a.nr_bad_reads);
	EXPECT_EQ(there, (int)self->a.nr_blocks);
	ASSERT_EQ(0, open_again(self));
	EXPECT_EQ(there, count_chains(&self->c, chains));
	/* What is read comes up, and that may make something go: each is right, or counted. */
	right = check_chains(&self->c, 0, chains);
	EXPECT_LT(there * 3 / 4, right);
	ASSERT_LT(0, kvt_settled(&self->pool, &pool_st, NULL));
	EXPECT_LE(there, right + (int)pool_st.evictions);
}

/* A copy is what a crash leaves, with segments that have no footer yet. */
TEST_F_TIMEOUT(zoned, after_a_crash, 600)
{
	struct kvt_key keys[CHAIN];
	int i;

	ASSERT_EQ(CHAINS * CHAIN, put_chains(&self->c, 0, CHAINS));
	ASSERT_EQ(0, send_down(self));
	for (i = 0; i < CHAINS; i += 3) {
		kvt_keys(keys, SET, i * CHAIN, CHAIN);
		ASSERT_EQ(CHAIN, kvt_drop(self->c.fd, 0, keys, CHAIN, NULL));
	}
	ASSERT_EQ(0, copy_zones(&self->disk[1], &self->disk[0], NULL));
	ASSERT_EQ(0, end_pool(self));
	ASSERT_EQ(0, assemble(self, 1));
	EXPECT_EQ(KVTIER_MEMBER_DIRTY, self->dev.state);
	EXPECT_LT(0, self->a.nr_unsealed);
	EXPECT_EQ(CHAINS * CHAIN * 2 / 3, self->a.nr_blocks);
	ASSERT_EQ(0, open_again(self));
	for (i = 0; i < CHAINS; i++)
		ASSERT_EQ(i % 3 ? CHAIN : 0, check_chains(&self->c, i, 1)) TH_LOG("chain %d", i);
	/* It takes more, and ends in order: what had no footer has got one. */
	ASSERT_EQ(CHAIN, put_chains(&self->c, CHAINS, 1));
	ASSERT_EQ(0, send_down(self));
	ASSERT_EQ(0, end_pool(self));
	ASSERT_EQ(0, assemble(self, 1));
	EXPECT_EQ(KVTIER_MEMBER_CLEAN, self->dev.state);
	EXPECT_EQ(0, self->a.nr_unsealed);
	EXPECT_EQ(CHAINS * CHAIN * 2 / 3 + CHAIN, self->a.nr_blocks);
	ASSERT_EQ(0, open_again(self));
	ASSERT_EQ(CHAINS * CHAIN * 2 / 3 + CHAIN, check_chains(&self->c, 0, CHAINS + 1));
}

/* Segments are whole zones, and members are not overwritten. */
TEST_F_TIMEOUT(zoned, refusals, 300)
{
	struct blk_zone z[ZONES_MAX];

	ASSERT_LT(2, zones(&self->disk[0], z));
	ASSERT_EQ(0, reset_zones(&self->disk[1], z, zones(&self->disk[1], z)));
	EXPECT_EQ(-EINVAL, attach(self, 31, &self->disk[1], z[0].len << 9, 0));
	ASSERT_EQ(0, copy_zones(&self->disk[1], &self->disk[0], NULL));
	EXPECT_EQ(-EEXIST, attach(self, 31, &self->disk[1], 0, 0));
	EXPECT_EQ(-EBUSY, attach(self, 31, &self->disk[0], 0, KVTIER_ATTACH_FORCE));
}

/* --- damage ----------------------------------------------------------------------- */

static int run_fsck(const struct kvt_disk *d, const char *options)
{
	return kvt_sh("kvtier fsck %s %s", options, d->dev);
}

static bool fsck_says(const struct kvt_disk *d, const char *options, const char *text)
{
	return !kvt_sh("kvtier fsck %s %s | grep -q '%s'", options, d->dev, text);
}

/* Chains of which every GONE-th is gone; perhaps the pool still runs. */
static int put_and_drop(FIXTURE_DATA(zoned) *self)
{
	struct kvt_key keys[CHAIN];
	int i;

	if (put_chains(&self->c, 0, CHAINS) != CHAINS * CHAIN || send_down(self))
		return -EIO;
	for (i = 0; i < CHAINS; i += GONE) {
		kvt_keys(keys, SET, i * CHAIN, CHAIN);
		if (kvt_drop(self->c.fd, 0, keys, CHAIN, NULL) != CHAIN)
			return -EIO;
	}
	return 0;
}

static __u32 field(const char *page, int offset)
{
	__u32 value;

	memcpy(&value, page + offset, sizeof(value));
	return value;
}

/* Is the footer of that segment at the end of the zone. */
static bool ends_segment(const struct kvt_disk *d, const struct blk_zone *z, __u32 seg)
{
	char *page = aligned_alloc(4096, 4096);
	bool is;

	is = !kvt_disk_io(d, ((z->start + z->capacity) << 9) - 4096, page, 4096, false) &&
	     !memcmp(page, MAGIC_FOOTER, 8) && field(page, FOOTER_SEGMENT) == seg;
	free(page);
	return is;
}

static void flip_payloads(const char *header, __u64 at, struct flips *flips)
{
	__u32 unit = field(header, BATCH_HEADER), end = unit + field(header, BATCH_PAYLOAD), i;

	/* Of one chain, and of the next: not both of them are gone. */
	for (i = 0; i < 2 && unit < end; i++, unit += CHAIN * BLOCK_BYTES / 4096)
		flips->at[flips->nr++] = at + unit * 4096 + 20;
}

/*
 * Segments, of one zone or two, that have a footer: a byte of the first batch's header, or
 * some of its payload. -errno.
 */
static int flip_segments(const struct kvt_disk *d, bool payload, struct flips *flips)
{
	char *page = aligned_alloc(4096, 4096);
	struct blk_zone z[ZONES_MAX];
	int nr = zones(d, z), i, err = 0;
	__u32 seg;

	flips->nr = 0;
	for (i = 2; i < nr - 1 && !err; i++) {
		err = kvt_disk_io(d, z[i].start << 9, page, 4096, false);
		seg = field(page, BATCH_SEGMENT);
		if (err || memcmp(page, MAGIC_BATCH, 8) || field(page, BATCH_NUMBER) ||
		    (!ends_segment(d, &z[i], seg) && !ends_segment(d, &z[i + 1], seg)))
			continue;
		if (payload)
			flip_payloads(page, z[i].start << 9, flips);
		else
			flips->at[flips->nr++] = (z[i].start << 9) + 300;
	}
	free(page);
	return nr < 0 ? nr : err;
}

/* Those that were dropped are not there; of the others, how many are. -errno. */
static int count_others(FIXTURE_DATA(zoned) *self)
{
	int i, there, sum = 0;

	for (i = 0; i < CHAINS; i++) {
		there = check_chains(&self->c, i, 1);
		if (there < 0 || (there && i % GONE == 0))
			return there < 0 ? there : -EEXIST;
		sum += there;
	}
	return sum;
}

#define OTHERS	(CHAINS * CHAIN * (GONE - 1) / GONE)

/* It takes more, and ends in order. */
static void lives_on(struct __test_metadata *_metadata, FIXTURE_DATA(zoned) *self, int others)
{
	ASSERT_EQ(CHAIN, put_chains(&self->c, CHAINS, 1));
	ASSERT_EQ(0, send_down(self));
	ASSERT_EQ(0, end_pool(self));
	EXPECT_EQ(0, run_fsck(&self->disk[1], "--payload"));
	ASSERT_EQ(0, assemble(self, 1));
	EXPECT_EQ(KVTIER_MEMBER_CLEAN, self->dev.state);
	EXPECT_EQ(others + CHAIN, (int)self->a.nr_blocks);
	ASSERT_EQ(0, open_again(self));
	EXPECT_EQ(others, count_others(self));
}

/*
 * The first header of every segment with a footer: with them would go what they say of others.
 */
static void repair_headers(struct __test_metadata *_metadata, FIXTURE_DATA(zoned) *self,
			   bool crash)
{
	struct flips flips;

	ASSERT_EQ(0, put_and_drop(self));
	if (!crash)
		ASSERT_EQ(0, end_pool(self));
	ASSERT_EQ(0, flip_segments(&self->disk[0], false, &flips));
	ASSERT_LT(1, flips.nr);
	ASSERT_EQ(0, copy_zones(&self->disk[1], &self->disk[0], &flips));
	if (crash)
		ASSERT_EQ(0, end_pool(self));
	EXPECT_EQ(-EUCLEAN, assemble(self, 1));
	EXPECT_EQ(-EUCLEAN, self->dev.error);
	EXPECT_EQ(4, run_fsck(&self->disk[1], ""));
	EXPECT_EQ(1, run_fsck(&self->disk[1], "--repair"));
	EXPECT_EQ(0, run_fsck(&self->disk[1], "--payload --repair"));
	ASSERT_EQ(0, assemble(self, 1));
	EXPECT_EQ(OTHERS, (int)self->a.nr_blocks);
	ASSERT_EQ(0, open_again(self));
	ASSERT_EQ(OTHERS, count_others(self));
	lives_on(_metadata, self, OTHERS);
}

TEST_F_TIMEOUT(zoned, headers_are_repaired, 600)
{
	repair_headers(_metadata, self, false);
}

TEST_F_TIMEOUT(zoned, headers_are_repaired_after_a_crash, 600)
{
	repair_headers(_metadata, self, true);
}

/* Blocks whose bytes are wrong go, and nothing else does. */
TEST_F_TIMEOUT(zoned, payloads_are_repaired, 600)
{
	struct flips flips;
	int others;

	ASSERT_EQ(0, put_and_drop(self));
	/* A pool has it. */
	EXPECT_EQ(8, run_fsck(&self->disk[0], "--repair"));
	ASSERT_EQ(0, end_pool(self));
	ASSERT_EQ(0, flip_segments(&self->disk[0], true, &flips));
	ASSERT_LT(1, flips.nr);
	ASSERT_EQ(0, copy_zones(&self->disk[1], &self->disk[0], &flips));
	EXPECT_EQ(0, run_fsck(&self->disk[1], ""));
	EXPECT_EQ(4, run_fsck(&self->disk[1], "--payload"));
	EXPECT_EQ(1, run_fsck(&self->disk[1], "--payload --repair"));
	EXPECT_EQ(0, run_fsck(&self->disk[1], "--payload --repair"));
	ASSERT_EQ(0, assemble(self, 1));
	others = (int)self->a.nr_blocks;
	EXPECT_LE(OTHERS - flips.nr, others);
	EXPECT_GT(OTHERS, others);
	ASSERT_EQ(0, open_again(self));
	ASSERT_EQ(others, count_others(self));
	lives_on(_metadata, self, others);
}

/* What the newest superblock said is said again, in the zone that it was not in. */
TEST_F_TIMEOUT(zoned, superblocks_are_repaired, 600)
{
	struct blk_zone z[ZONES_MAX];
	struct flips flips = { .nr = 1 };
	int used;

	ASSERT_EQ(0, put_and_drop(self));
	ASSERT_EQ(0, end_pool(self));
	ASSERT_LT(2, zones(&self->disk[0], z));
	/* A member as new as this one has not changed them yet. */
	used = z[1].wp != z[1].start;
	ASSERT_EQ(z[!used].start, z[!used].wp);
	flips.at[0] = (z[used].wp << 9) - 4096 + 60;
	ASSERT_EQ(0, copy_zones(&self->disk[1], &self->disk[0], &flips));
	EXPECT_EQ(4, run_fsck(&self->disk[1], ""));
	EXPECT_EQ(1, run_fsck(&self->disk[1], "--repair"));
	EXPECT_EQ(0, run_fsck(&self->disk[1], "--payload --repair"));
	ASSERT_LT(2, zones(&self->disk[1], z));
	EXPECT_EQ(z[!used].start + 4096 / 512, z[!used].wp);
	ASSERT_EQ(0, assemble(self, 1));
	EXPECT_EQ(OTHERS, (int)self->a.nr_blocks);
	ASSERT_EQ(0, open_again(self));
	ASSERT_EQ(OTHERS, count_others(self));
	lives_on(_metadata, self, OTHERS);
}

/* --- zones that fail -------------------------------------------------------------- */

/* A zoned device in memory, whose zones can be told to fail. */
static int nullz_make(struct kvt_disk *d)
{
	int err = kvt_sh("modprobe -q null_blk nr_devices=0 && "
			 "{ [ -d /sys/kernel/config/nullb ] || "
			 "mount -t configfs none /sys/kernel/config; } && mkdir " NULLZ
			 " && cd " NULLZ " && echo 4096 > blocksize && echo 1 > memory_backed && "
			 "echo 1 > zoned && echo %llu > zone_size && echo %llu > size && "
			 "echo %d > zone_max_active && echo %d > zone_max_open && echo 1 > power",
			 ZONE_BYTES / KVT_MIB, NULLZ_ZONES * ZONE_BYTES / KVT_MIB, NULLZ_ACTIVE,
			 NULLZ_ACTIVE);

	snprintf(d->dev, sizeof(d->dev), NULLZ_DEV);
	if (err)
		return err;
	return KVT_UNTIL(3000, !access(d->dev, W_OK)) ? 0 : -ENOENT;
}

static int nullz_set(const char *attribute, const char *prefix, int zone)
{
	__u64 first = zone * ZONE_BYTES / 512;

	if (!*prefix)
		return kvt_sh("echo %llu > " NULLZ "/%s", first, attribute);
	return kvt_sh("echo %s%llu-%llu > " NULLZ "/%s", prefix, first,
		      first + ZONE_BYTES / 512 - 1, attribute);
}

/* The device in place of the one that the fixture has attached. */
static int use_nullz(FIXTURE_DATA(zoned) *self, __u64 capacity_bytes)
{
	int err = kvt_tier_detach(&self->pool, self->tier, 0, 60 * KVT_SEC);

	if (err)
		return err;
	self->tier = attach_some(self, 30, &self->disk[1], capacity_bytes, 0,
				 KVTIER_ATTACH_FORCE);
	return self->tier < 0 ? self->tier : 0;
}

/* More than the device has room for, and what is left of it is found again. */
static void fill_and_find(struct __test_metadata *_metadata, FIXTURE_DATA(zoned) *self,
			  bool fails)
{
	int chains = (int)(capacity(self) * 5 / 4 / (CHAIN * BLOCK_BYTES)), there;
	struct kvtier_stat pool_st;
	struct kvtier_tier_stat st;

	/* Writes everything, worth it or not: as much stays as there is room for. */
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "policy", "lru"));
	ASSERT_EQ(chains * CHAIN, put_chains(&self->c, 0, chains));
	ASSERT_EQ(0, send_down(self));
	ASSERT_EQ(0, tier_stat(self, &st));
	EXPECT_EQ(fails, st.io_errors > 0);
	EXPECT_GE(NULLZ_ACTIVE, active_zones(&self->disk[1]));
	ASSERT_LT(0, kvt_settled(&self->pool, &pool_st, NULL));
	there = count_chains(&self->c, chains);
	EXPECT_LT(CHAINS * CHAIN, there);
	if (fails)
		ASSERT_EQ(0, nullz_set("badblocks", "-", 5));
	ASSERT_EQ(0, end_pool(self));
	ASSERT_EQ(0, assemble(self, 1));
	/* A segment whose end cannot be written is as after a crash. */
	if (!fails)
		EXPECT_EQ(KVTIER_MEMBER_CLEAN, self->dev.state);
	EXPECT_EQ(there, (int)self->a.nr_blocks);
	ASSERT_EQ(0, open_again(self));
	EXPECT_EQ(there, check_chains(&self->c, 0, chains));
}

/* Zones that can only be read any more are left out, at first and after a restart. */
TEST_F_TIMEOUT(zoned, dead_zones, 300)
{
	ASSERT_EQ(0, nullz_make(&self->disk[1]));
	ASSERT_EQ(0, nullz_set("zone_readonly", "", 7));
	ASSERT_EQ(0, nullz_set("zone_readonly", "", 20));
	ASSERT_EQ(0, use_nullz(self, 0));
	fill_and_find(_metadata, self, false);
}

/* What cannot be read would be missed after a restart: it is refused, and can be left out. */
TEST_F_TIMEOUT(zoned, offline_zone, 60)
{
	ASSERT_EQ(0, nullz_make(&self->disk[1]));
	ASSERT_EQ(0, nullz_set("zone_offline", "", NULLZ_USED + 1));
	EXPECT_EQ(-EIO, attach(self, 31, &self->disk[1], 0, KVTIER_ATTACH_FORCE));
	ASSERT_EQ(0, use_nullz(self, NULLZ_USED * ZONE_BYTES));
	ASSERT_EQ(CHAIN, put_chains(&self->c, 0, 1));
	ASSERT_EQ(0, send_down(self));
	ASSERT_EQ(0, end_pool(self));
	ASSERT_EQ(0, assemble(self, 1));
	EXPECT_EQ(CHAIN, self->a.nr_blocks);
	ASSERT_EQ(0, open_again(self));
	EXPECT_EQ(CHAIN, check_chains(&self->c, 0, 1));
	/* One that goes offline later cannot be made up for, and that is said. */
	ASSERT_EQ(0, end_pool(self));
	EXPECT_EQ(0, run_fsck(&self->disk[1], "--repair"));
	ASSERT_EQ(0, nullz_set("zone_readonly", "", 4));
	EXPECT_EQ(0, run_fsck(&self->disk[1], "--repair"));
	EXPECT_TRUE(fsck_says(&self->disk[1], "--notes", "can only be read any more"));
	ASSERT_EQ(0, nullz_set("zone_offline", "", 5));
	EXPECT_EQ(4, run_fsck(&self->disk[1], "--repair"));
	EXPECT_TRUE(fsck_says(&self->disk[1], "--repair", "zones are offline"));
	EXPECT_EQ(-EIO, assemble(self, 1));
	ASSERT_EQ(0, make_pool(self));
}

/* Zones behind the tier are partly written, as many as may be. */
TEST_F_TIMEOUT(zoned, others_zones, 300)
{
	char *buf;
	int i;

	buf = aligned_alloc(4096, 4096);
	ASSERT_NE(NULL, buf);
	ASSERT_EQ(0, nullz_make(&self->disk[1]));
	memset(buf, 0x55, 4096);
	for (i = 0; i < NULLZ_ZONES - NULLZ_USED; i++)
		ASSERT_EQ(0, kvt_disk_io(&self->disk[1], (NULLZ_USED + i) * ZONE_BYTES, buf, 4096,
					 true));
	ASSERT_EQ(NULLZ_ZONES - NULLZ_USED, active_zones(&self->disk[1]));
	ASSERT_EQ(0, use_nullz(self, NULLZ_USED * ZONE_BYTES));
	fill_and_find(_metadata, self, false);
	/* What was in them is still there. */
	ASSERT_EQ(0, kvt_disk_io(&self->disk[1], NULLZ_USED * ZONE_BYTES, buf, 4096, false));
	EXPECT_EQ(0x55, buf[4095]);
	free(buf);
}

/* A zone that fails while it is written costs no block. */
TEST_F_TIMEOUT(zoned, zone_fails, 300)
{
	ASSERT_EQ(0, nullz_make(&self->disk[1]));
	ASSERT_EQ(0, use_nullz(self, 0));
	ASSERT_EQ(0, nullz_set("badblocks", "+", 5));
	fill_and_find(_metadata, self, true);
}

TEST_HARNESS_MAIN
