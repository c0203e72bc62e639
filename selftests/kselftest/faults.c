// SPDX-License-Identifier: GPL-2.0
/*
 * Devices that fail, lie, go away and come back while the pool is up. A block is right or
 * it is a miss; each fault is counted by its cause and told; what fails too often is not
 * used any more; and the rest of the pool goes on.
 */
#include "kvt_test.h"
#include "kvt_medium.h"
#include <poll.h>

#define TRACEFS		"/sys/kernel/tracing"
#define INSTANCE	TRACEFS "/instances/kvtfaults"
#define BLOCK_BYTES	(64 * KVT_KIB)
#define DISK_BYTES	(48 * KVT_MIB)
#define DRAM_BYTES	(10 * KVT_MIB)
#define SEG_BYTES	(2 * KVT_MIB)
#define FIRST_SEG	KVT_MIB		/* where the first one begins */
#define NR		72
#define WIDE_BYTES	(256 * KVT_KIB)	/* seven in a segment, 28 in four */
#define WIDE_FIRST	34
#define WIDE_THEN	4
#define SET		53
#define ALICE		1001
#define MUCH		((int)(2 * DRAM_BYTES / BLOCK_BYTES))

FIXTURE(faults)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvt_dm dm;
	int dram;
	int tier;
};

FIXTURE_SETUP(faults)
{
	self->c.fd = -1;
	ASSERT_EQ(0, kvt_dm_make(&self->dm, "faults", DISK_BYTES));
	ASSERT_EQ(0, kvt_setup(&self->pool));
	self->dram = kvt_tier_dram(&self->pool, 0, DRAM_BYTES);
	ASSERT_LE(0, self->dram);
	self->tier = kvt_tier_dm(&self->pool, 30, &self->dm, SEG_BYTES);
	ASSERT_LE(0, self->tier);
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "faults", BLOCK_BYTES));
	if (access(TRACEFS "/instances", W_OK))
		return;
	kvt_sh("rmdir " INSTANCE " 2>/dev/null; mkdir " INSTANCE);
	ASSERT_EQ(0, kvt_sh("echo 1 > " INSTANCE "/events/kvtier/enable"));
}

FIXTURE_TEARDOWN(faults)
{
	EXPECT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_GOOD));
	if (!access(INSTANCE, F_OK))
		kvt_sh("echo 0 > " INSTANCE "/events/kvtier/enable; rmdir " INSTANCE);
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	kvt_dm_remove(&self->dm);
}

/* Roots, so that each stands for itself. */
static int put(FIXTURE_DATA(faults) *self, int first, int nr)
{
	int i, ret, sum = 0;

	for (i = first; i < first + nr; i++) {
		struct kvt_key key = kvt_key(SET, i);

		ret = kvt_put(&self->c, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1);
		if (ret < 0)
			return ret;
		sum += ret;
	}
	return sum;
}

/* How many of them are there; -EBADMSG if one is and is wrong. */
static int check(FIXTURE_DATA(faults) *self, int first, int nr)
{
	int i, ret, sum = 0;

	for (i = first; i < first + nr; i++) {
		struct kvt_key key = kvt_key(SET, i);

		ret = kvt_check(&self->c, 0, &key, 1, 10 * KVT_SEC);
		if (ret < 0)
			return ret;
		sum += ret;
	}
	return sum;
}

/* The same by what LOOKUP says: nothing is read. */
static int known(FIXTURE_DATA(faults) *self, int first, int nr)
{
	int i, sum = 0;

	for (i = first; i < first + nr; i++) {
		struct kvt_key key = kvt_key(SET, i);

		sum += kvt_lookup(self->c.fd, 0, &key, 1, NULL) == 1;
	}
	return sum;
}

/* Everything goes to the disk, and memory is there again. */
static int send_down(FIXTURE_DATA(faults) *self)
{
	int err = kvt_tier_detach(&self->pool, self->dram, 0, 60 * KVT_SEC);

	if (err)
		return err;
	self->dram = kvt_tier_dram(&self->pool, 0, DRAM_BYTES);
	return self->dram < 0 ? self->dram : fsync(self->c.fd) ? -errno : 0;
}

/* Whether the kernel has said that since it was asked to forget. */
static int klog_has(const char *text)
{
	return kvt_sh("dmesg | grep -q '%s'", text) == 0;
}

static struct kvtier_tier_stat stat_of(FIXTURE_DATA(faults) *self, int tier)
{
	struct kvtier_tier_stat tiers[KVTIER_TIERS_MAX];
	struct kvtier_stat st;
	int i, nr = kvt_tier_stats(self->c.fd, &st, tiers);

	for (i = 0; i < nr; i++)
		if ((int)tiers[i].id == tier)
			return tiers[i];
	return (struct kvtier_tier_stat){ 0 };
}

static long long number(FIXTURE_DATA(faults) *self, const char *name)
{
	char buf[64];
	int n = kvt_sysfs_read(&self->pool, name, buf, sizeof(buf));

	return n < 0 ? n : strtoll(buf, NULL, 10);
}

static bool sysfs_is(FIXTURE_DATA(faults) *self, const char *name, const char *value)
{
	char buf[64];
	int n = kvt_sysfs_read(&self->pool, name, buf, sizeof(buf));

	return n > 0 && !strncmp(buf, value, strlen(value)) && buf[strlen(value)] == '\n';
}

static int events(const char *event, const char *with)
{
	char line[32] = "0";

	kvt_sh_line(line, sizeof(line), "grep ' kvtier_%s: ' " INSTANCE "/trace | grep -c '%s'",
		    event, with);
	return atoi(line);
}

/* Change a byte of each of these blocks on the disk, behind the pool's back. */
static int corrupt(FIXTURE_DATA(faults) *self, int first, int step, int nr)
{
	char *page = aligned_alloc(4096, 4096);
	struct kvt_medium m;
	int i, err = kvt_medium_read(self->dm.under.dev, &m), done = 0;

	for (i = 0; !err && i < nr; i++) {
		struct kvt_key key = kvt_key(SET, first + i * step);
		const struct kvt_medium_block *b = kvt_medium_find(&m, key.b);

		if (!b || !b->good)
			continue;
		err = kvt_disk_io(&self->dm.under, b->byte + 8192, page, 4096, false);
		page[100] ^= 4;
		if (!err)
			err = kvt_disk_io(&self->dm.under, b->byte + 8192, page, 4096, true);
		done += !err;
	}
	kvt_medium_free(&m);
	free(page);
	return err ? err : done;
}

/* Blocks of the segment that block @first is in. */
static int same_segment(FIXTURE_DATA(faults) *self, int first, int *out, int max)
{
	struct kvt_medium m;
	struct kvt_key key = kvt_key(SET, first);
	const struct kvt_medium_block *b;
	int i, n = 0, err = kvt_medium_read(self->dm.under.dev, &m);
	__u32 seg;

	b = err ? NULL : kvt_medium_find(&m, key.b);
	seg = b ? b->seg : 0;
	for (i = 0; b && i < NR && n < max; i++) {
		const struct kvt_medium_block *o;

		key = kvt_key(SET, i);
		o = kvt_medium_find(&m, key.b);
		if (o && o->seg == seg)
			out[n++] = i;
	}
	kvt_medium_free(&m);
	return err ? err : n;
}

/* --- integrity --------------------------------------------------------------------------- */

TEST_F(faults, one_wrong_byte)
{
	char name[64], text[64], want[64];
	struct kvtier_tier_stat st;

	ASSERT_EQ(NR, put(self, 0, NR));
	ASSERT_EQ(0, send_down(self));
	ASSERT_EQ(1, corrupt(self, 7, 1, 1));
	EXPECT_EQ(0, check(self, 7, 1));
	EXPECT_EQ(0, known(self, 7, 1));
	st = stat_of(self, self->tier);
	EXPECT_EQ(1, st.checksum_errors);
	EXPECT_EQ(0, st.read_errors);
	EXPECT_EQ(0, st.write_errors);
	EXPECT_EQ(1, st.io_errors);
	EXPECT_EQ(0, st.retired_bytes);
	EXPECT_EQ(1, number(self, "tiers/bdev30/checksum_errors"));
	EXPECT_EQ(0, number(self, "tiers/bdev30/read_errors"));
	EXPECT_EQ(1, number(self, "tiers/bdev30/evicted_io"));
	EXPECT_EQ(0, number(self, "tiers/bdev30/evicted_lost"));
	snprintf(name, sizeof(name), "namespaces/%llu/evicted_io", self->c.ns_id);
	EXPECT_LT(0, kvt_sysfs_read(&self->pool, name, text, sizeof(text)));
	snprintf(want, sizeof(want), "%d 1\n", self->tier);
	EXPECT_STREQ(want, text);
	if (!access(INSTANCE, F_OK)) {
		EXPECT_EQ(1, events("fault", " cause=2 "));
		EXPECT_EQ(1, events("fault", ""));
		EXPECT_EQ(0, events("segment_worn", ""));
	}
	/* All others are what they were, and it can be stored again. */
	EXPECT_EQ(NR - 1, check(self, 0, NR));
	EXPECT_EQ(1, put(self, 7, 1));
	EXPECT_EQ(NR, check(self, 0, NR));
}

/* Three faults in one segment: it is emptied, and not used any more. */
TEST_F(faults, worn_segment)
{
	int in[NR], n, i;

	ASSERT_EQ(NR, put(self, 0, NR));
	ASSERT_EQ(0, send_down(self));
	n = same_segment(self, NR / 2, in, NR);
	ASSERT_LE(6, n);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(1, corrupt(self, in[i], 1, 1));
		EXPECT_EQ(0, check(self, in[i], 1));
	}
	EXPECT_EQ(0, stat_of(self, self->tier).retired_bytes);
	ASSERT_EQ(1, corrupt(self, in[2], 1, 1));
	EXPECT_EQ(0, check(self, in[2], 1));
	if (!access(INSTANCE, F_OK))
		EXPECT_EQ(1, events("segment_worn", ""));
	EXPECT_TRUE(KVT_UNTIL(20000, stat_of(self, self->tier).retired_bytes == SEG_BYTES));
	EXPECT_EQ(SEG_BYTES, number(self, "tiers/bdev30/retired_bytes"));
	/* What could be read has been carried off. */
	for (i = 3; i < n; i++)
		EXPECT_EQ(1, check(self, in[i], 1));
	EXPECT_EQ(NR - 3, check(self, 0, NR));
	EXPECT_EQ(3, stat_of(self, self->tier).checksum_errors);
	/* However much is written after that, it is not used. */
	EXPECT_LT(0, put(self, 1000, NR));
	EXPECT_EQ(0, send_down(self));
	EXPECT_LT(0, put(self, 2000, NR));
	EXPECT_EQ(0, send_down(self));
	EXPECT_EQ(SEG_BYTES, number(self, "tiers/bdev30/retired_bytes"));
	EXPECT_LE(0, check(self, 1000, NR));
	EXPECT_LE(0, check(self, 2000, NR));
}

/* Some of a device cannot be written: that segment is not used again, all else is. */
TEST_F(faults, bad_extent)
{
	ASSERT_EQ(0, kvt_dm_bad_extent(&self->dm, FIRST_SEG + SEG_BYTES / 2, BLOCK_BYTES));
	ASSERT_EQ(NR, put(self, 0, NR));
	ASSERT_EQ(0, send_down(self));
	EXPECT_LT(0, (int)stat_of(self, self->tier).write_errors);
	EXPECT_TRUE(sysfs_is(self, "tiers/bdev30/state", "online"));
	EXPECT_TRUE(KVT_UNTIL(20000, stat_of(self, self->tier).retired_bytes == SEG_BYTES));
	EXPECT_EQ(0, number(self, "evictions"));
	EXPECT_EQ(NR, check(self, 0, NR));
	/* However much is written after that, it is not tried again. */
	ASSERT_EQ(0, send_down(self));
	EXPECT_LT(0, put(self, 1000, NR));
	EXPECT_EQ(0, send_down(self));
	EXPECT_LT(0, put(self, 2000, NR));
	EXPECT_EQ(0, send_down(self));
	EXPECT_EQ(SEG_BYTES, number(self, "tiers/bdev30/retired_bytes"));
	EXPECT_GE(2, (int)stat_of(self, self->tier).write_errors);
}

/* A device that cannot be read for a while costs what is asked for, and no more. */
TEST_F(faults, reads_fail_for_a_while)
{
	struct kvtier_tier_stat st;
	int there;

	ASSERT_EQ(NR, put(self, 0, NR));
	ASSERT_EQ(0, send_down(self));
	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_ERROR_READS));
	EXPECT_EQ(0, check(self, 0, NR / 3));
	/* Segments are worn by now, and the pool's worker has tried to empty them. */
	if (!access(INSTANCE, F_OK))
		EXPECT_LT(0, events("segment_worn", ""));
	st = stat_of(self, self->tier);
	EXPECT_LE(NR / 3, st.read_errors);
	EXPECT_EQ(0, st.checksum_errors);
	kvt_sleep_ms(300);
	EXPECT_EQ(0, known(self, 0, NR / 3));
	EXPECT_EQ(NR - NR / 3, known(self, NR / 3, NR - NR / 3));
	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_GOOD));
	EXPECT_EQ(NR - NR / 3, check(self, NR / 3, NR - NR / 3));
	/* And what was worn goes out of use, now that it can be read. */
	EXPECT_TRUE(KVT_UNTIL(20000, stat_of(self, self->tier).retired_bytes >= SEG_BYTES));
	there = check(self, 0, NR);
	EXPECT_EQ(NR - NR / 3, there);
	EXPECT_EQ(NR, put(self, 0, NR));
	EXPECT_EQ(NR, check(self, 0, NR));
}

/*
 * A log that goes round meanwhile comes upon dead segments that hold kills of others, and cannot
 * read them. It must not use them, and must not forget them either: when they can be read
 * again all goes on, and nobody has given the device up.
 */
TEST_F_TIMEOUT(faults, goes_round_and_cannot_be_read, 300)
{
	int all = (int)(DISK_BYTES / BLOCK_BYTES), n;
	__u64 end;

	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "policy", "lru"));
	ASSERT_EQ(all, put(self, 10000, all));
	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_ERROR_READS));
	end = kvt_now_ns() + 10 * KVT_SEC;
	for (n = 0; kvt_now_ns() < end; n += 8)
		ASSERT_EQ(8, put(self, 20000 + n, 8));
	EXPECT_LT(0, klog_has("is dead and cannot be read"));
	/* Evicting what is there would have been of no use. */
	EXPECT_LT(all / 2, known(self, 10000, all));
	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_GOOD));
	EXPECT_TRUE(sysfs_is(self, "tiers/bdev30/state", "online"));
	/* Some attempts later. */
	EXPECT_TRUE(KVT_UNTIL(60000, put(self, 40000 + n, NR) == NR && !send_down(self) &&
			      known(self, 40000 + n, NR) == NR));
	EXPECT_EQ(NR, check(self, 40000 + n, NR));
	EXPECT_TRUE(sysfs_is(self, "tiers/bdev30/state", "online"));
}

/* --- scrub ------------------------------------------------------------------------------- */

static int scrub(FIXTURE_DATA(faults) *self, __u32 flags, __u64 rate)
{
	struct kvtier_pool_scrub s = {
		.size = sizeof(s), .flags = flags, .pool_id = self->pool.id, .rate_bytes = rate,
	};

	return kvt_ioctl(self->pool.ctl, KVTIER_OP_POOL_SCRUB, &s);
}

static bool scrub_over(FIXTURE_DATA(faults) *self)
{
	return KVT_UNTIL(60000, !sysfs_is(self, "scrub_state", "running"));
}

TEST_F(faults, scrub_finds_all)
{
	EXPECT_TRUE(sysfs_is(self, "scrub_state", "never"));
	ASSERT_EQ(NR, put(self, 0, NR));
	ASSERT_EQ(0, send_down(self));
	ASSERT_EQ(0, kvt_sh("kvtier pool scrub %u --wait >/dev/null", self->pool.id));
	EXPECT_TRUE(sysfs_is(self, "scrub_state", "done"));
	EXPECT_EQ(NR, number(self, "scrub_blocks"));
	EXPECT_EQ(NR * BLOCK_BYTES, number(self, "scrub_bytes"));
	EXPECT_EQ(NR * BLOCK_BYTES, number(self, "scrub_total_bytes"));
	EXPECT_EQ(0, number(self, "scrub_checksum_errors"));
	/* Far apart, so that hardly two are in one segment. */
	ASSERT_EQ(4, corrupt(self, 5, 20, 4));
	EXPECT_EQ(NR, known(self, 0, NR));
	ASSERT_EQ(0, scrub(self, 0, 0));
	ASSERT_TRUE(scrub_over(self));
	EXPECT_TRUE(sysfs_is(self, "scrub_state", "done"));
	EXPECT_EQ(4, number(self, "scrub_checksum_errors"));
	EXPECT_EQ(0, number(self, "scrub_read_errors"));
	EXPECT_EQ(4, stat_of(self, self->tier).checksum_errors);
	EXPECT_EQ(NR - 4, known(self, 0, NR));
	EXPECT_EQ(0, known(self, 5, 1));
	EXPECT_EQ(0, known(self, 25, 1));
	EXPECT_EQ(NR - 4, check(self, 0, NR));
}

#define SLOW	(BLOCK_BYTES / 8)

/* It takes its time when told to; everybody else goes on, and it ends when told to. */
TEST_F(faults, scrub_is_slow_and_stops)
{
	int first;

	EXPECT_EQ(-ENOENT, kvt_ioctl(self->pool.ctl, KVTIER_OP_POOL_SCRUB,
				     &(struct kvtier_pool_scrub){
					.size = sizeof(struct kvtier_pool_scrub), .pool_id = 255 }));
	EXPECT_EQ(-EINVAL, scrub(self, KVTIER_SCRUB_STOP, 1));
	ASSERT_EQ(NR, put(self, 0, NR));
	ASSERT_EQ(0, send_down(self));
	ASSERT_EQ(0, scrub(self, 0, SLOW));	/* ten minutes */
	EXPECT_EQ(-EBUSY, scrub(self, 0, 0));
	EXPECT_EQ(SLOW, number(self, "scrub_rate_bytes"));
	EXPECT_EQ(NR, check(self, 0, NR));
	EXPECT_EQ(NR / 2, put(self, NR, NR / 2));
	EXPECT_TRUE(sysfs_is(self, "scrub_state", "running"));
	first = number(self, "scrub_blocks");
	EXPECT_GT(NR / 2, first);
	EXPECT_EQ(0, scrub(self, KVTIER_SCRUB_STOP, 0));
	EXPECT_TRUE(sysfs_is(self, "scrub_state", "stopped"));
	EXPECT_EQ(0, scrub(self, KVTIER_SCRUB_STOP, 0));
	/* Nor does it keep a tier, or the pool, from going. */
	ASSERT_EQ(0, send_down(self));
	ASSERT_EQ(0, scrub(self, 0, 4096));
	ASSERT_TRUE(KVT_UNTIL(10000, number(self, "scrub_bytes") > 0));
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, self->tier, KVTIER_DETACH_DISCARD,
				     20 * KVT_SEC));
	self->tier = kvt_tier_dm(&self->pool, 30, &self->dm, SEG_BYTES);
	ASSERT_LE(0, self->tier);
	EXPECT_EQ(NR, put(self, 0, NR));
	ASSERT_EQ(0, send_down(self));
	EXPECT_EQ(0, scrub(self, KVTIER_SCRUB_STOP, 0));
	ASSERT_EQ(0, scrub(self, 0, 4096));
	ASSERT_TRUE(KVT_UNTIL(10000, number(self, "scrub_bytes") > 0));
	/* The pool is destroyed with it running. */
	EXPECT_TRUE(sysfs_is(self, "scrub_state", "running"));
}

TEST_F(faults, scrub_is_not_for_everybody)
{
	struct kvtier_pool_scrub s = { .size = sizeof(s), .pool_id = self->pool.id };
	int fd = open("/dev/kvtier", O_RDWR | O_CLOEXEC);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, kvt_become(ALICE));
	EXPECT_EQ(-EPERM, kvt_ioctl(fd, KVTIER_OP_POOL_SCRUB, &s));
	s.flags = KVTIER_SCRUB_STOP;
	EXPECT_EQ(-EPERM, kvt_ioctl(fd, KVTIER_OP_POOL_SCRUB, &s));
	ASSERT_EQ(0, kvt_become(0));
	EXPECT_TRUE(sysfs_is(self, "scrub_state", "never"));
	close(fd);
}

/* A device that fails does not lose all that is on it to a scrub. */
TEST_F(faults, scrub_of_a_failing_device)
{
	int lost;

	ASSERT_EQ(NR, put(self, 0, NR));
	ASSERT_EQ(0, send_down(self));
	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_ERROR_READS));
	ASSERT_EQ(0, scrub(self, 0, 0));
	ASSERT_TRUE(scrub_over(self));
	EXPECT_TRUE(sysfs_is(self, "scrub_state", "failed"));
	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_GOOD));
	lost = number(self, "scrub_read_errors");
	EXPECT_LT(0, lost);
	EXPECT_GE(16, lost);
	EXPECT_EQ(NR - lost, check(self, 0, NR));
}

/* --- devices that lie, go and come back -------------------------------------------------- */

static int assemble(FIXTURE_DATA(faults) *self)
{
	struct kvtier_assemble_device dev = { 0 };
	struct kvtier_pool_assemble a = {
		.size = sizeof(a), .pool_id = KVTIER_POOL_ANY_ID, .nr_devices = 1,
		.devices = KVT_U64(&dev),
	};
	int err;

	kvt_client_close(&self->c);
	err = kvt_pool_destroy(self->pool.ctl, self->pool.id);
	if (err && err != -ENOENT)
		return err;
	snprintf(dev.path, sizeof(dev.path), "%s", self->dm.disk.dev);
	KVT_UNTIL(5000, (err = kvt_pool_assemble(&self->pool, &a)) != -EBUSY);
	if (err)
		return err;
	self->tier = dev.tier_id;
	self->dram = kvt_tier_dram(&self->pool, 0, DRAM_BYTES);
	return self->dram < 0 ? self->dram :
	       kvt_client_open(&self->pool, &self->c, "faults", BLOCK_BYTES);
}

/* Writes that are forgotten: misses now, misses after a restart, nothing else. */
TEST_F(faults, dropped_writes)
{
	int now, later, err;

	ASSERT_EQ(NR / 2, put(self, 0, NR / 2));
	ASSERT_EQ(0, send_down(self));
	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_DROP_WRITES));
	ASSERT_EQ(NR / 2, put(self, NR / 2, NR / 2));
	ASSERT_EQ(0, send_down(self));
	/* It says that it has them, and has not. What shares a segment with them is carried off. */
	EXPECT_EQ(NR / 2, known(self, NR / 2, NR / 2));
	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_GOOD));
	now = check(self, NR / 2, NR / 4);
	EXPECT_LE(0, now);
	EXPECT_GT(NR / 4, now);
	EXPECT_LT(0, stat_of(self, self->tier).checksum_errors);
	EXPECT_EQ(NR / 2, check(self, 0, NR / 2));
	ASSERT_EQ(0, send_down(self));
	/* Summaries may have been written of what has no header. */
	err = assemble(self);
	if (err == -EUCLEAN) {
		EXPECT_EQ(1, kvt_sh("kvtier fsck --repair %s", self->dm.disk.dev) & 1);
		err = assemble(self);
	}
	ASSERT_EQ(0, err);
	/* What was written before is there; of the rest, nothing is wrong. */
	EXPECT_EQ(NR / 2, check(self, 0, NR / 2));
	later = check(self, NR / 2, NR / 2);
	EXPECT_LE(0, later);
	EXPECT_GT(NR / 2, later);
}

/* Writes that fail: what comes after them stays where it is. */
TEST_F(faults, failed_writes)
{
	ASSERT_EQ(NR / 2, put(self, 0, NR / 2));
	ASSERT_EQ(0, send_down(self));
	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_ERROR_WRITES));
	/* More than memory has room for. */
	ASSERT_LE(0, put(self, 1000, DRAM_BYTES / BLOCK_BYTES + 20));
	EXPECT_TRUE(KVT_UNTIL(10000, stat_of(self, self->tier).write_errors > 0));
	EXPECT_EQ(0, stat_of(self, self->tier).checksum_errors);
	EXPECT_LT(0, number(self, "tiers/bdev30/write_errors"));
	/* What is on the device can be read; nothing is wrong. */
	EXPECT_EQ(NR / 2, check(self, 0, NR / 2));
	EXPECT_LT(0, check(self, 1000, DRAM_BYTES / BLOCK_BYTES + 20));
	EXPECT_EQ(0, stat_of(self, self->tier).read_errors);
}

static bool writes_under_way(const struct kvt_dm *dm)
{
	int reads, writes = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/block/%s/inflight", strrchr(dm->disk.dev, '/') + 1);
	f = fopen(path, "r");
	if (!f)
		return false;
	if (fscanf(f, "%d %d", &reads, &writes) != 2)
		writes = 0;
	fclose(f);
	return writes > 0;
}

/*
 * A device with room that cannot take a block for the moment: what has been written to
 * as many segments as may be open is not over. Nothing has to leave the pool for that.
 */
TEST_F(faults, slow_writes)
{
	struct kvt_client wide;
	struct kvt_key keys[WIDE_FIRST + WIDE_THEN];
	int i;

	kvt_keys(keys, SET, 2000, WIDE_FIRST + WIDE_THEN);
	ASSERT_EQ(0, kvt_client_open(&self->pool, &wide, "wide", WIDE_BYTES));
	for (i = 0; i < WIDE_FIRST; i++)
		ASSERT_EQ(1, kvt_put(&wide, KVTIER_RESERVE_WAIT, 0, &keys[i], NULL, 1));
	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_SLOW_WRITES));
	/* The worker sends 28 of these down at once, which fills all segments that may be open. */
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "watermark_low_percent", "10"));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "watermark_high_percent", "50"));
	ASSERT_TRUE(KVT_UNTIL(10000, writes_under_way(&self->dm)));
	for (; i < WIDE_FIRST + WIDE_THEN; i++)
		ASSERT_EQ(1, kvt_put(&wide, KVTIER_RESERVE_WAIT, 0, &keys[i], NULL, 1));
	ASSERT_EQ(0, send_down(self));
	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_GOOD));
	EXPECT_EQ(0, number(self, "evictions"));
	for (i = 0; i < WIDE_FIRST + WIDE_THEN; i++)
		EXPECT_EQ(1, kvt_check(&wide, 0, &keys[i], 1, 10 * KVT_SEC))
			TH_LOG("block %d", i);
	kvt_client_close(&wide);
}

/* --- who waits for a device that then fails ---------------------------------------------- */

/*
 * The device is stopped, so that whoever needs it waits for as long as the test likes; then
 * it fails for everything. Calls have no timeout of their own: what ends them is that.
 */
enum call { CALL_GET, CALL_READ, CALL_DROP, CALL_PUT };

struct waiter {
	FIXTURE_DATA(faults) *self;
	enum call call;
	int first;	/* block that it is about */
	int nr;		/* of them, if they are put */
	struct kvt_child child;
};

/* So that no answer is one of kvt_hear()'s own. */
#define ANSWER(status)	((status) + 1000)

static int waiter_call(const struct waiter *w, int block)
{
	FIXTURE_DATA(faults) *self = w->self;
	struct kvt_key key = kvt_key(SET, block);
	struct kvtier_block_result res;
	static char buf[BLOCK_BYTES];
	int err;

	switch (w->call) {
	case CALL_GET:
		err = kvt_get(self->c.fd, KVTIER_GET_WAIT, 0, &key, 1, &res, KVT_FOREVER);
		return err < 0 ? KVT_ERR(-err) : res.status;
	case CALL_READ:
		return kvt_read1(self->c.fd, 0, &key, buf, sizeof(buf), KVT_FOREVER);
	case CALL_DROP:
		return kvt_drop(self->c.fd, 0, &key, 1, NULL);
	default:
		kvt_fill(buf, &key, sizeof(buf));
		return kvt_write1(self->c.fd, 0, &key, NULL, buf, sizeof(buf), KVT_FOREVER);
	}
}

/* The answer to the last call, or to the first one that did not store its block. */
static int waiter_child(struct kvt_child *me, void *arg)
{
	const struct waiter *w = arg;
	int i, ret = 0;

	for (i = 0; i < w->nr; i++) {
		ret = waiter_call(w, w->first + i);
		if (ret != KVTIER_ST_DONE)
			break;
	}
	return kvt_say(me, ANSWER(ret)) != 0;
}

/* Seen in the kernel, and not for a moment only. */
static bool waits(struct waiter *w)
{
	return !kvt_spawn(&w->child, waiter_child, w) && kvt_in_ioctl(w->child.pid) &&
	       kvt_hear(&w->child, 100) == -ETIMEDOUT;
}

static int answer(struct waiter *w)
{
	int word = kvt_hear(&w->child, 20000);

	return kvt_join(&w->child, 10000) ? -ETIMEDOUT : word;
}

static int start_async(FIXTURE_DATA(faults) *self, int block, __u64 user_data)
{
	struct kvt_key key = kvt_key(SET, block);
	struct kvtier_block_result res = { .status = KVTIER_ST_MISS };
	struct kvtier_get a = {
		.size = sizeof(a), .flags = KVTIER_GET_ASYNC, .nr = 1, .keys = KVT_U64(&key),
		.results = KVT_U64(&res), .user_data = user_data, .eventfd = -1,
	};
	int err = kvt_ioctl(self->c.fd, KVTIER_OP_GET, &a);

	return err ? err : res.status;
}

static bool completed(FIXTURE_DATA(faults) *self, int timeout_ms)
{
	struct pollfd pfd = { .fd = self->c.fd, .events = POLLIN };

	return poll(&pfd, 1, KVT_PATIENCE_MS(timeout_ms)) == 1;
}

TEST_F(faults, readers_get_their_answer)
{
	struct waiter get = { .self = self, .call = CALL_GET, .first = 0, .nr = 1 };
	struct waiter copy = { .self = self, .call = CALL_READ, .first = 1, .nr = 1 };
	struct kvt_key key = kvt_key(SET, 3);
	struct kvtier_completion comp;
	int i;

	ASSERT_EQ(NR, put(self, 0, NR));
	ASSERT_EQ(0, send_down(self));
	ASSERT_EQ(0, kvt_dm_stop(&self->dm, true));
	EXPECT_TRUE(waits(&get));
	EXPECT_TRUE(waits(&copy));
	EXPECT_EQ(KVTIER_ST_PENDING, start_async(self, 2, 22));
	EXPECT_EQ(1, kvt_prefetch(self->c.fd, KVTIER_PREFETCH_NOTIFY, 0, &key, 1, 33, -1));
	EXPECT_FALSE(completed(self, 100));
	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_ERROR));
	EXPECT_EQ(ANSWER(KVTIER_ST_IOERR), answer(&get));
	EXPECT_EQ(ANSWER(KVTIER_ST_IOERR), answer(&copy));
	for (i = 0; i < 2; i++) {
		ASSERT_TRUE(completed(self, 20000));
		ASSERT_EQ(sizeof(comp), read(self->c.fd, &comp, sizeof(comp)));
		EXPECT_TRUE(comp.user_data == 22 || comp.user_data == 33);
		EXPECT_EQ(0, comp.result);
		EXPECT_EQ(0, comp.nr_ready);
	}
	EXPECT_LE(4, (int)stat_of(self, self->tier).read_errors);
	EXPECT_EQ(0, known(self, 0, 4));
	/* Memory serves as ever, and the device when it can be read again. */
	EXPECT_EQ(10, put(self, 1000, 10));
	EXPECT_EQ(10, check(self, 1000, 10));
	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_GOOD));
	EXPECT_EQ(NR - 4, check(self, 0, NR));
	EXPECT_EQ(4, put(self, 0, 4));
	EXPECT_EQ(NR, check(self, 0, NR));
}

/* DROP cannot promise anything; who waits for room gets it, from what has no way down. */
TEST_F(faults, writers_get_their_answer)
{
	struct waiter drop = { .self = self, .call = CALL_DROP, .first = 0, .nr = 1 };
	struct waiter room = { .self = self, .call = CALL_PUT, .first = 1000, .nr = MUCH };

	ASSERT_EQ(NR, put(self, 0, NR));
	ASSERT_EQ(0, send_down(self));
	ASSERT_EQ(0, kvt_dm_stop(&self->dm, true));
	EXPECT_TRUE(waits(&drop));
	EXPECT_TRUE(waits(&room));
	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_ERROR));
	EXPECT_EQ(ANSWER(-EIO), answer(&drop));
	EXPECT_EQ(ANSWER(KVTIER_ST_DONE), answer(&room));
	EXPECT_TRUE(KVT_UNTIL(20000, sysfs_is(self, "tiers/bdev30/state", "draining")));
	EXPECT_EQ(-1, fsync(self->c.fd));
	EXPECT_EQ(EIO, errno);
	EXPECT_EQ(0, known(self, 0, 1));
	EXPECT_LT(0, check(self, 1000, MUCH));
	EXPECT_EQ(10, put(self, 3000, 10));
	EXPECT_EQ(10, check(self, 3000, 10));
}

/* --- members that come back --------------------------------------------------------------- */

/* Its own member comes back: it needs no force, and brings nothing back. */
TEST_F(faults, member_comes_back)
{
	struct kvt_key key = kvt_key(SET, NR - 1);
	struct kvt_disk copy;
	int id, i;

	ASSERT_EQ(NR, put(self, 0, NR));
	ASSERT_EQ(0, send_down(self));
	/* A copy of one that is a member is somebody else. */
	ASSERT_EQ(0, kvt_disk_make(&copy, "copy", DISK_BYTES));
	ASSERT_EQ(0, kvt_disk_copy(&copy, &self->dm.under));
	EXPECT_EQ(-EEXIST, kvt_tier_disk(&self->pool, 40, &copy));
	/* Nor one of a member that is given up and still serves: that wipes what is on it. */
	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_ERROR_WRITES));
	EXPECT_GT(1, kvt_drop(self->c.fd, 0, &key, 1, NULL));
	EXPECT_TRUE(KVT_UNTIL(20000, sysfs_is(self, "tiers/bdev30/state", "draining")));
	EXPECT_EQ(-EEXIST, kvt_tier_disk(&self->pool, 40, &copy));
	EXPECT_EQ(10, check(self, 20, 10));
	/* The device fails for everything; it cannot be wiped. */
	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_ERROR));
	EXPECT_EQ(0, check(self, 0, 10));
	EXPECT_LT(0, stat_of(self, self->tier).read_errors);
	EXPECT_EQ(10, put(self, 1000, 10));
	EXPECT_EQ(10, check(self, 1000, 10));
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, self->tier, KVTIER_DETACH_DISCARD,
				     20 * KVT_SEC));
	EXPECT_EQ(10, check(self, 1000, 10));
	/* But for what had come up. */
	EXPECT_EQ(10, known(self, 0, NR));
	for (i = 20; i < 30; i++) {
		key = kvt_key(SET, i);
		EXPECT_EQ(-EIO, kvt_drop(self->c.fd, 0, &key, 1, NULL));
	}
	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_GOOD));
	self->tier = kvt_tier_dm(&self->pool, 30, &self->dm, SEG_BYTES);
	ASSERT_LE(0, self->tier);
	EXPECT_EQ(0, known(self, 0, NR));
	EXPECT_EQ(0, check(self, 0, NR));
	/* It is a member as any other, before and after a restart. */
	EXPECT_EQ(NR / 2, put(self, 0, NR / 2));
	ASSERT_EQ(0, send_down(self));
	EXPECT_EQ(NR / 2, check(self, 0, NR / 2));
	ASSERT_EQ(0, send_down(self));
	ASSERT_EQ(0, assemble(self));
	EXPECT_EQ(NR / 2, check(self, 0, NR / 2));
	EXPECT_EQ(10, check(self, 1000, 10));
	EXPECT_EQ(0, known(self, NR / 2, NR / 2));
	/* The copy is of a member that is one no more: it, too, is taken, and empty. */
	id = kvt_tier_disk(&self->pool, 40, &copy);
	EXPECT_LE(0, id);
	EXPECT_EQ(0, known(self, NR / 2, NR / 2));
	EXPECT_EQ(0, id < 0 ? 0 : kvt_tier_detach(&self->pool, id, 0, 20 * KVT_SEC));
	kvt_disk_remove(&copy);
}

/* Another pool's member is refused as ever. */
TEST_F(faults, member_of_another_pool)
{
	struct kvt_disk disk;
	struct kvt_pool other;

	ASSERT_EQ(0, kvt_disk_make(&disk, "other", DISK_BYTES));
	ASSERT_EQ(0, kvt_setup(&other));
	ASSERT_LE(0, kvt_tier_disk(&other, 30, &disk));
	EXPECT_EQ(0, kvt_teardown(&other));
	EXPECT_EQ(-EEXIST, kvt_tier_disk(&self->pool, 40, &disk));
	kvt_disk_remove(&disk);
}

/* --- a device that is pulled out --------------------------------------------------------- */

/* The PCI function of the controller that has this disk, which may hang off a subsystem. */
static int pci_of(const char *node, char *path, size_t len)
{
	return kvt_sh_line(path, len, "s=$(cat /sys/block/%s/device/serial) && "
			   "for c in /sys/class/nvme/nvme*; do "
			   "[ \"$(cat $c/serial)\" = \"$s\" ] && readlink -f $c/device; done", node);
}

/* The node of the disk with this serial number. */
static bool find_disk(const char *serial, char *path, size_t len)
{
	char name[32] = "";

	kvt_sh_line(name, sizeof(name), "cd /sys/block; for d in nvme*; do "
		    "[ \"$(cat $d/device/serial 2>/dev/null)\" = \"%s\" ] && "
		    "[ -b /dev/$d ] && echo $d; done", serial);
	snprintf(path, len, "/dev/%s", name);
	return name[0];
}

TEST_F(faults, nvme_pulled_and_back)
{
	struct kvtier_tier_attach a;
	char pci[256] = "", node[64], serial[64] = "";
	int id, err;

	if (!kvt_env_bdev())
		SKIP(return, "no block device to use (KVT_BDEV)");
	snprintf(node, sizeof(node), "%s", strrchr(kvt_env_bdev(), '/') + 1);
	pci_of(node, pci, sizeof(pci));
	if (!strstr(pci, "/pci"))
		SKIP(return, "%s is no PCI device", node);
	ASSERT_EQ(0, kvt_sh_line(serial, sizeof(serial), "cat /sys/block/%s/device/serial", node));
	ASSERT_EQ(NR / 2, put(self, 0, NR / 2));
	ASSERT_EQ(0, send_down(self));
	kvt_tier_args(&self->pool, &a, KVTIER_TIER_BDEV, 20);
	a.flags = KVTIER_ATTACH_FORCE;
	snprintf(a.path, sizeof(a.path), "%s", kvt_env_bdev());
	ASSERT_EQ(0, kvt_ioctl(self->pool.ctl, KVTIER_OP_TIER_ATTACH, &a));
	id = a.tier_id;
	ASSERT_EQ(NR / 2, put(self, NR / 2, NR / 2));
	ASSERT_EQ(0, send_down(self));
	ASSERT_EQ(NR / 2, (int)stat_of(self, id).nr_blocks);
	ASSERT_EQ(0, kvt_sh("echo 1 > %s/remove", pci));
	EXPECT_TRUE(KVT_UNTIL(10000, sysfs_is(self, "tiers/bdev20/state", "failed")));
	/* The other tier serves on; what was on this one are misses. */
	EXPECT_EQ(NR / 2, check(self, 0, NR / 2));
	EXPECT_EQ(0, check(self, NR / 2, NR / 2));
	ASSERT_EQ(0, kvt_sh("echo 1 > /sys/bus/pci/rescan"));
	/* The old name may be taken as long as the tier is there. */
	ASSERT_TRUE(KVT_UNTIL(30000, find_disk(serial, a.path, sizeof(a.path))));
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, id, 0, 20 * KVT_SEC));
	a.flags = 0;
	KVT_UNTIL(10000, (err = kvt_ioctl(self->pool.ctl, KVTIER_OP_TIER_ATTACH, &a)) != -EBUSY &&
			 err != -ENOENT && err != -ENXIO);
	ASSERT_EQ(0, err);
	EXPECT_EQ(0, known(self, NR / 2, NR / 2));
	EXPECT_EQ(NR / 2, put(self, NR / 2, NR / 2));
	ASSERT_EQ(0, send_down(self));
	EXPECT_EQ(NR, check(self, 0, NR));
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, a.tier_id, KVTIER_DETACH_DISCARD,
				     20 * KVT_SEC));
}

TEST_HARNESS_MAIN
