// SPDX-License-Identifier: GPL-2.0
/*
 * Moves between memory tiers by a DMA engine: the same test with a provider loaded
 * before the module, and without one.
 */
#include "kvt_test.h"
#include <sys/syscall.h>

#define BLOCK_BYTES	(64 * KVT_KIB)
#define NR		200
#define SET		21

static int unload(const char *name)
{
	return syscall(SYS_delete_module, name, O_NONBLOCK) ? -errno : 0;
}

FIXTURE(dma)
{
	struct kvt_pool pool;
	struct kvt_client c;
	bool loaded;
};

FIXTURE_VARIANT(dma)
{
	bool engine;
	bool dax;
};

FIXTURE_VARIANT_ADD(dma, cpu) { .engine = false };
FIXTURE_VARIANT_ADD(dma, engine) { .engine = true };
FIXTURE_VARIANT_ADD(dma, engine_dax) { .engine = true, .dax = true };

FIXTURE_SETUP(dma)
{
	if (variant->dax && !kvt_env_dax())
		SKIP(return, "no device-dax instance to use (KVT_DAX)");
	if (variant->engine && kvt_sh("modinfo kvt_testdma >/dev/null 2>&1"))
		SKIP(return, "the test provider kvt_testdma is not installed");
	/* Clears away what a failed test has left, too. */
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_EQ(0, kvt_teardown(&self->pool));
	ASSERT_EQ(0, unload("kvtier"));
	unload("kvt_testdma");
	if (variant->engine)
		ASSERT_EQ(0, kvt_sh("modprobe kvt_testdma"));
	self->loaded = variant->engine;
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, 4 * KVT_MIB));
	ASSERT_LE(0, variant->dax ? kvt_tier_dax(&self->pool, 1, 32 * KVT_MIB) :
				    kvt_tier_dram(&self->pool, 1, 32 * KVT_MIB));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "dma", BLOCK_BYTES));
}

FIXTURE_TEARDOWN(dma)
{
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	EXPECT_EQ(0, unload("kvtier"));
	if (self->loaded)
		EXPECT_EQ(0, unload("kvt_testdma"));
	EXPECT_EQ(0, kvt_sh("modprobe kvtier"));
}

TEST_F(dma, moves)
{
	struct kvtier_tier_stat tiers[KVTIER_TIERS_MAX];
	struct kvt_key key;
	struct kvtier_query q;
	struct kvtier_stat st;
	int i, ret;

	for (i = 0; i < NR; i++) {
		key = kvt_key(SET, i);
		ASSERT_EQ(1, kvt_put(&self->c, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1));
	}
	for (i = 0; i < NR; i++) {
		key = kvt_key(SET, i);
		ret = kvt_check(&self->c, 0, &key, 1, KVT_SEC);
		ASSERT_EQ(1, ret) TH_LOG("block %d: %d", i, ret);
	}
	ASSERT_LE(0, kvt_query(self->c.fd, &q, NULL));
	EXPECT_EQ(variant->engine, !!(q.features & KVTIER_FEAT_DMAENGINE));
	ASSERT_EQ(2, kvt_tier_stats(self->c.fd, &st, tiers));
	EXPECT_LT(0, st.demotions);
	if (variant->engine) {
		EXPECT_LT(0, st.moves_dmaengine);
		EXPECT_EQ(0, st.moves_cpu);
		EXPECT_LT(0, tiers[1].dma_bytes);
	} else {
		EXPECT_EQ(0, st.moves_dmaengine);
		EXPECT_LT(0, st.moves_cpu);
		EXPECT_EQ(0, tiers[1].dma_bytes);
	}
}

TEST_HARNESS_MAIN
