// SPDX-License-Identifier: GPL-2.0
/*
 * Members that leave a pool and cannot be wiped, because the device has gone or takes no
 * writes, and that are there again later. What was dropped in between stays dropped, or
 * DROP has said that it may come back.
 */
#include "kvt_test.h"
#include "kvt_medium.h"

#define BLOCK_BYTES	(64 * KVT_KIB)
#define DISK_BYTES	(24 * KVT_MIB)
#define DRAM_BYTES	(8 * KVT_MIB)
#define SEG_BYTES	(2 * KVT_MIB)
#define NR		16
#define SET		61

FIXTURE(leavers)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvt_client other;	/* never had a block on any disk */
	struct kvt_dm dm;		/* this one leaves */
	struct kvt_disk disk;
	struct kvtier_assemble_device dev[2];
	int dram;
	int tier;
};

FIXTURE_SETUP(leavers)
{
	self->c.fd = -1;
	self->other.fd = -1;
	ASSERT_EQ(0, kvt_dm_make(&self->dm, "leaver", DISK_BYTES));
	ASSERT_EQ(0, kvt_disk_make(&self->disk, "stays", DISK_BYTES));
	ASSERT_EQ(0, kvt_setup(&self->pool));
	self->dram = kvt_tier_dram(&self->pool, 0, DRAM_BYTES);
	ASSERT_LE(0, self->dram);
	self->tier = kvt_tier_dm(&self->pool, 30, &self->dm, SEG_BYTES);
	ASSERT_LE(0, self->tier);
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "leavers", BLOCK_BYTES));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->other, "other", BLOCK_BYTES));
}

FIXTURE_TEARDOWN(leavers)
{
	EXPECT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_GOOD));
	kvt_client_close(&self->c);
	kvt_client_close(&self->other);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	kvt_dm_remove(&self->dm);
	kvt_disk_remove(&self->disk);
}

static int put(const struct kvt_client *c, int first, int nr)
{
	int i, ret, sum = 0;

	for (i = first; i < first + nr; i++) {
		struct kvt_key key = kvt_key(SET, i);

		ret = kvt_put(c, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1);
		if (ret < 0)
			return ret;
		sum += ret;
	}
	return sum;
}

static int known(FIXTURE_DATA(leavers) *self)
{
	struct kvt_key key;
	int i, sum = 0;

	for (i = 0; i < NR; i++) {
		key = kvt_key(SET, i);
		sum += kvt_lookup(self->c.fd, 0, &key, 1, NULL) == 1;
	}
	return sum;
}

static int drop(const struct kvt_client *c, int i)
{
	struct kvt_key key = kvt_key(SET, i);

	return kvt_drop(c->fd, 0, &key, 1, NULL);
}

/* Everything goes to the disk, and memory is there again. */
static int send_down(FIXTURE_DATA(leavers) *self)
{
	int err = kvt_tier_detach(&self->pool, self->dram, 0, 60 * KVT_SEC);

	if (err)
		return err;
	self->dram = kvt_tier_dram(&self->pool, 0, DRAM_BYTES);
	return self->dram < 0 ? self->dram : fsync(self->c.fd) ? -errno : 0;
}

/* The disk takes nothing any more, and its tier goes as the admin guide says. */
static int leave(FIXTURE_DATA(leavers) *self)
{
	int err = kvt_dm_set(&self->dm, KVT_DM_ERROR);

	return err ? err : kvt_tier_detach(&self->pool, self->tier, KVTIER_DETACH_DISCARD,
					   20 * KVT_SEC);
}

static int unwiped(FIXTURE_DATA(leavers) *self)
{
	char buf[16];
	int n = kvt_sysfs_read(&self->pool, "unwiped", buf, sizeof(buf));

	return n < 0 ? n : atoi(buf);
}

/* The pool ends, the disk works again; of the devices that are wanted one comes of it. */
static int assemble(FIXTURE_DATA(leavers) *self, bool dm, bool disk)
{
	struct kvtier_pool_assemble a = {
		.size = sizeof(a), .pool_id = KVTIER_POOL_ANY_ID, .devices = KVT_U64(self->dev),
	};
	int err;

	kvt_client_close(&self->c);
	kvt_client_close(&self->other);
	err = kvt_pool_destroy(self->pool.ctl, self->pool.id);
	if (err && err != -ENOENT)
		return err;
	err = kvt_dm_set(&self->dm, KVT_DM_GOOD);
	if (err)
		return err;
	memset(self->dev, 0, sizeof(self->dev));
	if (dm)
		snprintf(self->dev[a.nr_devices++].path, KVTIER_PATH_MAX, "%s",
			 self->dm.disk.dev);
	if (disk)
		snprintf(self->dev[a.nr_devices++].path, KVTIER_PATH_MAX, "%s", self->disk.dev);
	KVT_UNTIL(5000, (err = kvt_pool_assemble(&self->pool, &a)) != -EBUSY);
	if (err)
		return err;
	self->dram = kvt_tier_dram(&self->pool, 0, DRAM_BYTES);
	return self->dram < 0 ? self->dram :
	       kvt_client_open(&self->pool, &self->c, "leavers", BLOCK_BYTES);
}

/* For the teardown. */
static int make_any_pool(FIXTURE_DATA(leavers) *self)
{
	struct kvtier_pool_create c = { .size = sizeof(c), .pool_id = KVTIER_POOL_ANY_ID };
	int err = kvt_ioctl(self->pool.ctl, KVTIER_OP_POOL_CREATE, &c);

	self->pool.id = c.pool_id;
	return err;
}

/* The only member: nobody can be told, so nothing is promised; and it is as DROP says. */
TEST_F(leavers, the_only_one)
{
	ASSERT_EQ(NR, put(&self->c, 0, NR));
	ASSERT_EQ(0, send_down(self));
	EXPECT_EQ(0, unwiped(self));
	ASSERT_EQ(0, leave(self));
	EXPECT_EQ(1, unwiped(self));
	EXPECT_EQ(0, known(self));
	EXPECT_EQ(-EIO, drop(&self->c, 0));
	/* Of whoever had nothing there, nothing comes back. */
	EXPECT_EQ(1, put(&self->other, 100, 1));
	EXPECT_EQ(1, drop(&self->other, 100));
	/* Blocks in memory go all the same; and no disk has anything that is not durable. */
	EXPECT_EQ(1, put(&self->c, 1, 1));
	EXPECT_EQ(-EIO, drop(&self->c, 1));
	EXPECT_EQ(0, known(self));
	EXPECT_EQ(0, fsync(self->c.fd));
	ASSERT_EQ(0, assemble(self, true, false));
	EXPECT_EQ(NR, known(self));
}

/* A namespace that ended, and is there anew: the old one has its keys on the disk. */
TEST_F(leavers, a_namespace_made_anew)
{
	char path[80];

	ASSERT_EQ(NR, put(&self->c, 0, NR));
	ASSERT_EQ(0, send_down(self));
	ASSERT_EQ(0, leave(self));
	snprintf(path, sizeof(path), "/sys/class/kvtier/kvtier%u/namespaces/%llu", self->pool.id,
		 self->c.ns_id);
	kvt_client_close(&self->c);
	ASSERT_TRUE(KVT_UNTIL(20000, access(path, F_OK)));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "leavers", BLOCK_BYTES));
	EXPECT_EQ(-EIO, drop(&self->c, 0));
	EXPECT_EQ(0, kvt_sysfs_write(&self->pool, "unwiped", "0"));
	EXPECT_EQ(0, drop(&self->c, 0));
}

/* Nor is anything promised to one that came before the disk had all that there was to say. */
TEST_F(leavers, made_before_kills_were_written)
{
	struct kvt_client late;
	struct kvt_key key;
	int i;

	ASSERT_EQ(NR, put(&self->c, 0, NR));
	ASSERT_EQ(0, send_down(self));
	/* What comes up leaves a record behind, whose end is written some time. */
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "copies_percent", "0"));
	for (i = 0; i < NR; i++) {
		key = kvt_key(SET, i);
		ASSERT_EQ(1, kvt_check(&self->c, 0, &key, 1, 10 * KVT_SEC));
	}
	ASSERT_EQ(0, kvt_client_open(&self->pool, &late, "late", BLOCK_BYTES));
	ASSERT_EQ(0, leave(self));
	EXPECT_EQ(1, put(&self->other, 100, 1));
	EXPECT_EQ(1, drop(&self->other, 100));
	EXPECT_EQ(1, put(&late, 100, 1));
	EXPECT_EQ(-EIO, drop(&late, 100));
	kvt_client_close(&late);
}

/* It is attached again, which wipes it. */
TEST_F(leavers, comes_back)
{
	ASSERT_EQ(NR, put(&self->c, 0, NR));
	ASSERT_EQ(0, send_down(self));
	ASSERT_EQ(0, leave(self));
	EXPECT_EQ(-EIO, drop(&self->c, 0));
	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_GOOD));
	self->tier = kvt_tier_dm(&self->pool, 30, &self->dm, SEG_BYTES);
	ASSERT_LE(0, self->tier);
	EXPECT_EQ(0, unwiped(self));
	EXPECT_EQ(0, drop(&self->c, 0));
	/* It was wiped for good, not only as long as it is there. */
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, self->tier, 0, 20 * KVT_SEC));
	EXPECT_EQ(0, unwiped(self));
	EXPECT_EQ(0, drop(&self->c, 0));
	EXPECT_EQ(-EMEDIUMTYPE, assemble(self, true, false));
	ASSERT_EQ(0, make_any_pool(self));
}

/* The administrator knows better. */
TEST_F(leavers, wiped_elsewhere)
{
	ASSERT_EQ(NR, put(&self->c, 0, NR));
	ASSERT_EQ(0, send_down(self));
	ASSERT_EQ(0, leave(self));
	EXPECT_EQ(-EINVAL, kvt_sysfs_write(&self->pool, "unwiped", "1"));
	EXPECT_EQ(-EINVAL, kvt_sysfs_write(&self->pool, "unwiped", "no"));
	EXPECT_EQ(1, unwiped(self));
	EXPECT_EQ(-EIO, drop(&self->c, 0));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "unwiped", "0"));
	EXPECT_EQ(0, unwiped(self));
	EXPECT_EQ(0, drop(&self->c, 0));
}

/* A member that comes later says that this one is of the past, as long as it is there. */
TEST_F(leavers, another_one_comes)
{
	int id;

	ASSERT_EQ(NR, put(&self->c, 0, NR));
	ASSERT_EQ(0, send_down(self));
	ASSERT_EQ(0, leave(self));
	EXPECT_EQ(-EIO, drop(&self->c, 0));
	id = kvt_tier_disk(&self->pool, 40, &self->disk);
	ASSERT_LE(0, id);
	EXPECT_EQ(1, unwiped(self));
	EXPECT_EQ(0, drop(&self->c, 0));
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, id, 0, 20 * KVT_SEC));
	EXPECT_EQ(-EIO, drop(&self->c, 0));
	ASSERT_LE(0, kvt_tier_disk(&self->pool, 40, &self->disk));
	EXPECT_EQ(0, drop(&self->c, 0));
	EXPECT_EQ(-ESTALE, assemble(self, true, true));
	EXPECT_EQ(-ESTALE, self->dev[0].error);
	EXPECT_EQ(0, self->dev[1].error);
	ASSERT_EQ(0, assemble(self, false, true));
	EXPECT_EQ(0, known(self));
	/* It goes on telling of it, in its next life too. */
	EXPECT_EQ(1, unwiped(self));
	EXPECT_EQ(-ESTALE, assemble(self, true, true));
	EXPECT_EQ(-ESTALE, self->dev[0].error);
	EXPECT_EQ(0, self->dev[1].error);
	ASSERT_EQ(0, assemble(self, false, true));
	self->tier = kvt_tier_dm(&self->pool, 30, &self->dm, SEG_BYTES);
	ASSERT_LE(0, self->tier);
	EXPECT_EQ(0, unwiped(self));
	ASSERT_EQ(0, assemble(self, true, true));
	EXPECT_EQ(0, unwiped(self));
}

/* One that was there all the time is told, also of one that fails when it is to be wiped. */
TEST_F(leavers, another_one_stays)
{
	struct kvt_key key = kvt_key(SET, 0);

	ASSERT_EQ(NR, put(&self->c, 0, NR));
	ASSERT_EQ(0, send_down(self));
	ASSERT_LE(0, kvt_tier_disk(&self->pool, 40, &self->disk));
	ASSERT_EQ(2, kvt_medium_members(self->disk.dev));
	EXPECT_EQ(1, kvt_check(&self->c, 0, &key, 1, 10 * KVT_SEC));
	ASSERT_EQ(0, leave(self));
	EXPECT_EQ(1, unwiped(self));
	EXPECT_LE(0, drop(&self->c, 0));
	EXPECT_EQ(1, kvt_medium_members(self->disk.dev));
	EXPECT_EQ(-ESTALE, assemble(self, true, true));
	EXPECT_EQ(-ESTALE, self->dev[0].error);
	ASSERT_EQ(0, assemble(self, false, true));
	EXPECT_EQ(0, kvt_lookup(self->c.fd, 0, &key, 1, NULL));
}

/* A device that fails while its pool ends, or is being assembled, is as after a crash, and no more. */
TEST_F(leavers, fails_at_the_end)
{
	int tier = kvt_tier_disk(&self->pool, 40, &self->disk);

	ASSERT_LE(0, tier);
	ASSERT_LT(self->tier, tier);
	ASSERT_EQ(NR, put(&self->c, 0, NR));
	ASSERT_EQ(0, send_down(self));
	/* Nothing is open then: all that is left to be written is that it has ended well. */
	ASSERT_EQ(0, assemble(self, true, true));
	kvt_client_close(&self->c);
	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_ERROR));
	ASSERT_EQ(0, kvt_pool_destroy(self->pool.ctl, self->pool.id));
	ASSERT_EQ(0, assemble(self, true, true));
	EXPECT_EQ(NR, known(self));
}

TEST_F(leavers, fails_at_the_beginning)
{
	struct kvtier_pool_assemble a = {
		.size = sizeof(a), .pool_id = KVTIER_POOL_ANY_ID, .devices = KVT_U64(self->dev),
		.nr_devices = 2,
	};
	int err = 0;

	ASSERT_LE(0, kvt_tier_disk(&self->pool, 40, &self->disk));
	ASSERT_EQ(NR, put(&self->c, 0, NR));
	ASSERT_EQ(0, send_down(self));
	kvt_client_close(&self->c);
	kvt_client_close(&self->other);
	ASSERT_EQ(0, kvt_pool_destroy(self->pool.ctl, self->pool.id));
	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_ERROR_WRITES));
	/* The other one has been started when it comes to this. */
	snprintf(self->dev[0].path, KVTIER_PATH_MAX, "%s", self->disk.dev);
	snprintf(self->dev[1].path, KVTIER_PATH_MAX, "%s", self->dm.disk.dev);
	KVT_UNTIL(5000, (err = kvt_pool_assemble(&self->pool, &a)) != -EBUSY);
	EXPECT_EQ(-EIO, err);
	ASSERT_EQ(0, assemble(self, true, true));
	EXPECT_EQ(NR, known(self));
}

TEST_HARNESS_MAIN
