// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that goes while its blocks are on their way down.
 *
 * What is read of it then may be anything, and so may the checksum of that: a record that is on
 * the disk by then must not verify, or the host that goes down next comes up with wrong bytes.
 * Here the bytes are right all the time, since the device is there until the test ends, so what
 * can be seen is whether such a record is believed.
 */
#include "kvt_test.h"

#define BLOCK_BYTES	(64 * KVT_KIB)
#define NR		8
#define SET		88
#define DISK_BYTES	(24 * KVT_MIB)
#define DAX_BYTES	(8 * KVT_MIB)

FIXTURE(vanish)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvt_disk disk;
	struct kvt_disk copy;
	struct kvt_key keys[NR];
	int dax;
};

FIXTURE_SETUP(vanish)
{
	self->c.fd = -1;
	if (!kvt_env_dax())
		SKIP(return, "no device-dax instance to use (KVT_DAX)");
	if (!kvt_hook("hold"))
		SKIP(return, "this module cannot hold batches back");
	ASSERT_EQ(0, kvt_disk_make(&self->disk, "disk", DISK_BYTES));
	ASSERT_EQ(0, kvt_disk_make(&self->copy, "copy", DISK_BYTES));
	ASSERT_EQ(0, kvt_setup(&self->pool));
	self->dax = kvt_tier_dax(&self->pool, 0, DAX_BYTES);
	ASSERT_LE(0, self->dax);
	ASSERT_LE(0, kvt_tier_disk(&self->pool, 30, &self->disk));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "vanish", BLOCK_BYTES));
	kvt_keys(self->keys, SET, 0, NR);
	ASSERT_EQ(NR, kvt_put(&self->c, KVTIER_RESERVE_WAIT, 0, self->keys, NULL, NR));
}

FIXTURE_TEARDOWN(vanish)
{
	kvt_hook_set("hold", "0");
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	kvt_disk_remove(&self->copy);
	kvt_disk_remove(&self->disk);
}

static int detach(struct kvt_child *me, void *arg)
{
	FIXTURE_DATA(vanish) *self = arg;

	(void)me;
	return !!kvt_tier_detach(&self->pool, self->dax, 0, 60 * KVT_SEC);
}

static int take_away(struct kvt_child *me, void *arg)
{
	(void)me;
	(void)arg;
	return kvt_sh("echo %s > /sys/bus/dax/drivers/kvtier/unbind", kvt_env_dax());
}

static bool holds(void)
{
	return !kvt_sh("test $(cat /sys/module/kvtier/parameters/test_hold) = 2");
}

static bool has_failed(const struct kvt_pool *p)
{
	return !kvt_sh("grep -q failed /sys/class/kvtier/kvtier%u/tiers/*/state", p->id);
}

/* How many blocks there are after a crash now; -errno. The pool is that one then. */
static int after_a_crash(FIXTURE_DATA(vanish) *self)
{
	struct kvtier_assemble_device dev = { 0 };
	struct kvtier_pool_assemble a = {
		.size = sizeof(a),
		.pool_id = KVTIER_POOL_ANY_ID,
		.nr_devices = 1,
		.devices = KVT_U64(&dev),
	};
	int err;

	snprintf(dev.path, sizeof(dev.path), "%s", self->copy.dev);
	err = kvt_disk_copy(&self->copy, &self->disk);
	kvt_client_close(&self->c);
	err = err ?: kvt_pool_destroy(self->pool.ctl, self->pool.id) ?:
	      kvt_pool_assemble(&self->pool, &a);
	return err ?: (int)a.nr_blocks;
}

TEST_F_TIMEOUT(vanish, on_the_way_down, 300)
{
	struct kvt_child leave, go;

	ASSERT_EQ(0, kvt_hook_set("hold", "1"));
	ASSERT_EQ(0, kvt_spawn(&leave, detach, self));
	ASSERT_TRUE(KVT_UNTIL(20000, holds()));
	ASSERT_EQ(0, kvt_spawn(&go, take_away, NULL));
	ASSERT_TRUE(KVT_UNTIL(8000, has_failed(&self->pool)));
	ASSERT_EQ(0, kvt_hook_set("hold", "0"));
	EXPECT_LE(0, kvt_join(&leave, KVT_PATIENCE_MS(60000)));
	EXPECT_EQ(0, kvt_join(&go, KVT_PATIENCE_MS(60000)));
	EXPECT_EQ(0, after_a_crash(self));
	ASSERT_EQ(0, kvt_dax_bind(kvt_env_dax(), "kvtier"));
}

TEST_HARNESS_MAIN
