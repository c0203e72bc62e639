// SPDX-License-Identifier: GPL-2.0
/*
 * A pool with more namespaces that have ended than an assembly keeps in mind. Nobody is
 * refused for that, and who has blocks is known by name, wherever that is said.
 */
#include "kvt_test.h"
#include "kvt_medium.h"

#define BLOCK_BYTES	(64 * KVT_KIB)
#define DISK_BYTES	(352 * KVT_MIB)
#define DRAM_BYTES	(8 * KVT_MIB)
#define SEG_BYTES	(32 * KVT_MIB)	/* ten of them */
#define KEPT		262144		/* see kvt_assemble.h */
#define SET		62

FIXTURE(crowd)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvt_disk disk;
	int dram;
};

FIXTURE_SETUP(crowd)
{
	struct kvtier_tier_attach a;

	self->c.fd = -1;
	ASSERT_EQ(0, kvt_disk_make(&self->disk, "crowd", DISK_BYTES));
	ASSERT_EQ(0, kvt_setup(&self->pool));
	self->dram = kvt_tier_dram(&self->pool, 0, DRAM_BYTES);
	ASSERT_LE(0, self->dram);
	kvt_tier_args(&self->pool, &a, KVTIER_TIER_BDEV, 30);
	a.segment_bytes = SEG_BYTES;
	snprintf(a.path, sizeof(a.path), "%s", self->disk.dev);
	ASSERT_EQ(0, kvt_ioctl(self->pool.ctl, KVTIER_OP_TIER_ATTACH, &a));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "crowd", BLOCK_BYTES));
}

FIXTURE_TEARDOWN(crowd)
{
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	kvt_disk_remove(&self->disk);
}

/* Whether the block of that namespace is there, and right. */
static int check(FIXTURE_DATA(crowd) *self, const char *identity)
{
	struct kvt_key key = kvt_key(SET, 0);
	int err = kvt_client_open(&self->pool, &self->c, identity, BLOCK_BYTES);

	if (!err)
		err = kvt_check(&self->c, 0, &key, 1, 10 * KVT_SEC);
	kvt_client_close(&self->c);
	return err;
}

TEST_F_TIMEOUT(crowd, who_lives_is_known, 600)
{
	struct kvtier_assemble_device dev = { 0 };
	struct kvtier_pool_assemble a = {
		.size = sizeof(a), .pool_id = KVTIER_POOL_ANY_ID, .nr_devices = 1,
		.devices = KVT_U64(&dev),
	};
	struct kvt_key key = kvt_key(SET, 0);
	uint32_t nr_ended = 0, nr_tails = 0, i;
	char name[16];

	ASSERT_EQ(1, kvt_put(&self->c, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1));
	ASSERT_EQ(0, kvt_tier_detach(&self->pool, self->dram, 0, 60 * KVT_SEC));
	kvt_client_close(&self->c);
	ASSERT_EQ(0, kvt_pool_destroy(self->pool.ctl, self->pool.id));
	ASSERT_EQ(0, kvt_medium_crowd(self->disk.dev, &nr_ended, &nr_tails));
	TH_LOG("%u have ended, %u live", nr_ended, nr_tails + 1);
	ASSERT_LT(KEPT, nr_ended);
	ASSERT_LT(1, nr_tails);
	EXPECT_EQ(0, kvt_sh("kvtier fsck %s", self->disk.dev));
	snprintf(dev.path, sizeof(dev.path), "%s", self->disk.dev);
	ASSERT_EQ(0, kvt_pool_assemble(&self->pool, &a));
	EXPECT_EQ(nr_tails + 1, a.nr_namespaces);
	EXPECT_EQ(nr_tails + 1, a.nr_blocks);
	EXPECT_EQ(0, a.nr_orphans);
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, DRAM_BYTES));
	EXPECT_EQ(1, check(self, "crowd"));
	for (i = 0; i < nr_tails; i++) {
		snprintf(name, sizeof(name), "crowd%u", i);
		EXPECT_EQ(1, check(self, name))
			TH_LOG("%s", name);
	}
}

TEST_HARNESS_MAIN
