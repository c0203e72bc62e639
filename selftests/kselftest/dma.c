// SPDX-License-Identifier: GPL-2.0
/*
 * Moves between memory tiers by a DMA engine: the same test with a provider loaded
 * before the module, and without one.
 */
#include "kvt_test.h"
#include <sys/syscall.h>

#define BLOCK_BYTES	(64 * KVT_KIB)
#define NR		120
#define SET		21

static int unload(const char *name)
{
	return syscall(SYS_delete_module, name, O_NONBLOCK) ? -errno : 0;
}

struct dma_test {
	struct kvt_pool pool;
	struct kvt_client c;
	bool loaded;
};

/* Module anew, with or without an engine; a tier below 4 MiB of DRAM. */
static int setup(struct dma_test *d, bool engine, bool dax)
{
	int ret;

	/* Clears away what a failed test has left, too. */
	ret = kvt_setup(&d->pool) ?: kvt_teardown(&d->pool);
	if (!ret)
		KVT_UNTIL(5000, !(ret = unload("kvtier")));
	if (ret)
		return ret;
	unload("kvt_testdma");
	if (engine && kvt_sh("modprobe kvt_testdma"))
		return -ENODEV;
	d->loaded = engine;
	ret = kvt_setup(&d->pool);
	if (!ret)
		ret = kvt_tier_dram(&d->pool, 0, 4 * KVT_MIB);
	if (ret >= 0)
		ret = dax ? kvt_tier_dax(&d->pool, 1, 32 * KVT_MIB) :
			    kvt_tier_dram(&d->pool, 1, 32 * KVT_MIB);
	if (ret < 0)
		return ret;
	return kvt_client_open(&d->pool, &d->c, "dma", BLOCK_BYTES);
}

static int teardown(struct dma_test *d)
{
	int ret;

	kvt_client_close(&d->c);
	ret = kvt_teardown(&d->pool);
	/* What a late engine still holds goes when it is done. */
	if (!ret)
		KVT_UNTIL(10000, (ret = unload("kvtier")) != -EAGAIN && ret != -EBUSY);
	if (!ret && d->loaded)
		KVT_UNTIL(5000, !(ret = unload("kvt_testdma")));
	return kvt_sh("modprobe kvtier") ? -ENODEV : ret;
}

static bool have_engine(void)
{
	return !kvt_sh("modinfo kvt_testdma >/dev/null 2>&1");
}

FIXTURE(dma)
{
	struct dma_test d;
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
	if (variant->engine && !have_engine())
		SKIP(return, "the test provider kvt_testdma is not installed");
	ASSERT_EQ(0, setup(&self->d, variant->engine, variant->dax));
}

FIXTURE_TEARDOWN(dma)
{
	EXPECT_EQ(0, teardown(&self->d));
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
		ASSERT_EQ(1, kvt_put(&self->d.c, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1));
	}
	for (i = 0; i < NR; i++) {
		key = kvt_key(SET, i);
		ret = kvt_check(&self->d.c, 0, &key, 1, 20 * KVT_SEC);
		ASSERT_EQ(1, ret) TH_LOG("block %d: %d", i, ret);
	}
	ASSERT_LE(0, kvt_query(self->d.c.fd, &q, NULL));
	EXPECT_EQ(variant->engine, !!(q.features & KVTIER_FEAT_DMAENGINE));
	/* What did not fit went below at once, so moves may come later. */
	EXPECT_TRUE(KVT_UNTIL(20000, kvt_tier_stats(self->d.c.fd, &st, tiers) == 2 &&
			      st.demotions));
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

#define PARAM		"/sys/module/%s/parameters/%s"

static long parameter(const char *module, const char *name)
{
	char line[32];

	kvt_sh_line(line, sizeof(line), "cat " PARAM, module, name);
	return atol(line);
}

static int put_all(const struct kvt_client *c)
{
	int i, n = 0;

	for (i = 0; i < NR; i++) {
		struct kvt_key key = kvt_key(SET, i);

		n += kvt_put(c, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1) == 1;
	}
	return n;
}

/* How many blocks are there with the right bytes; -EBADMSG if one is wrong. */
static int check_all(const struct kvt_client *c)
{
	int i, n = 0, ret;

	for (i = 0; i < NR; i++) {
		struct kvt_key key = kvt_key(SET, i);

		ret = kvt_check(c, 0, &key, 1, 20 * KVT_SEC);
		if (ret < 0)
			return ret;
		n += ret;
	}
	return n;
}

/* An engine that misbehaves. */
FIXTURE(engine)
{
	struct dma_test d;
};

FIXTURE_VARIANT(engine)
{
	bool dax;
};

FIXTURE_VARIANT_ADD(engine, dram) { .dax = false };
FIXTURE_VARIANT_ADD(engine, dax) { .dax = true };

FIXTURE_SETUP(engine)
{
	if (variant->dax && !kvt_env_dax())
		SKIP(return, "no device-dax instance to use (KVT_DAX)");
	if (!have_engine())
		SKIP(return, "the test provider kvt_testdma is not installed");
	ASSERT_EQ(0, setup(&self->d, true, variant->dax));
}

FIXTURE_TEARDOWN(engine)
{
	/* One that holds on would keep the modules from going. */
	kvt_sh("echo N > " PARAM, "kvt_testdma", "hold");
	EXPECT_EQ(0, teardown(&self->d));
}

/* An engine that fails some copies, and leaves rubbish where they should have gone. */
TEST_F(engine, fails)
{
	long failed = parameter("kvt_testdma", "failed_descriptors");
	struct kvtier_stat st;

	ASSERT_LE(0, failed);
	ASSERT_EQ(0, kvt_sh("echo 3 > " PARAM, "kvt_testdma", "fail_every"));
	ASSERT_EQ(NR, put_all(&self->d.c));
	EXPECT_EQ(NR, check_all(&self->d.c));
	/* Both happen. What did not fit went below at once, and moves come later. */
	EXPECT_TRUE(KVT_UNTIL(20000, !kvt_stat(self->d.c.fd, KVTIER_STAT_POOL, &st) &&
			      st.moves_dmaengine && st.moves_cpu));
	ASSERT_EQ(0, kvt_sh("echo 0 > " PARAM, "kvt_testdma", "fail_every"));
	EXPECT_LT(failed, parameter("kvt_testdma", "failed_descriptors"));
}

TEST_F(engine, refuses)
{
	long refused = parameter("kvt_testdma", "refused_descriptors");
	struct kvtier_stat st;

	ASSERT_LE(0, refused);
	ASSERT_EQ(0, kvt_sh("echo Y > " PARAM, "kvt_testdma", "refuse"));
	ASSERT_EQ(NR, put_all(&self->d.c));
	EXPECT_EQ(NR, check_all(&self->d.c));
	EXPECT_TRUE(KVT_UNTIL(20000, !kvt_stat(self->d.c.fd, KVTIER_STAT_POOL, &st) &&
			      st.moves_cpu));
	ASSERT_EQ(0, kvt_sh("echo N > " PARAM, "kvt_testdma", "refuse"));
	EXPECT_EQ(0, st.moves_dmaengine);
	EXPECT_LT(refused, parameter("kvt_testdma", "refused_descriptors"));
}

/*
 * An engine that stops, is given up, and goes on with its work much later: where it
 * writes then there must be no block.
 */
TEST_F_TIMEOUT(engine, is_late, 300)
{
	struct kvtier_stat st;
	long copied;

	ASSERT_EQ(0, kvt_sh("echo 300 > " PARAM, "kvtier", "dmaengine_timeout_ms"));
	ASSERT_EQ(0, kvt_sh("echo Y > " PARAM, "kvt_testdma", "hold"));
	copied = parameter("kvt_testdma", "copied_descriptors");
	ASSERT_EQ(NR, put_all(&self->d.c));
	EXPECT_TRUE(KVT_UNTIL(10000, !kvt_stat(self->d.c.fd, KVTIER_STAT_POOL, &st) &&
			      st.moves_cpu));
	EXPECT_EQ(0, st.moves_dmaengine);
	ASSERT_EQ(copied, parameter("kvt_testdma", "copied_descriptors"));
	/* The slot it was given is still spoken for. */
	EXPECT_LT(NR * BLOCK_BYTES, st.used_bytes);
	ASSERT_EQ(0, kvt_sh("echo N > " PARAM, "kvt_testdma", "hold"));
	ASSERT_TRUE(KVT_UNTIL(10000, parameter("kvt_testdma", "copied_descriptors") > copied));
	EXPECT_EQ(NR, check_all(&self->d.c));
	EXPECT_TRUE(KVT_UNTIL(10000, !kvt_stat(self->d.c.fd, KVTIER_STAT_POOL, &st) &&
			      st.used_bytes == NR * BLOCK_BYTES));
}

#define BALLAST		(64 * KVT_MIB)

/* The pool goes before the late engine does: where that writes then is nobody's. */
TEST_F_TIMEOUT(engine, is_later_than_the_pool, 300)
{
	struct kvtier_stat st;
	__u64 *mem, wrong = 0;
	size_t i;
	long copied;

	ASSERT_EQ(0, kvt_sh("echo 300 > " PARAM, "kvtier", "dmaengine_timeout_ms"));
	ASSERT_EQ(0, kvt_sh("echo Y > " PARAM, "kvt_testdma", "hold"));
	copied = parameter("kvt_testdma", "copied_descriptors");
	ASSERT_EQ(NR, put_all(&self->d.c));
	ASSERT_TRUE(KVT_UNTIL(10000, !kvt_stat(self->d.c.fd, KVTIER_STAT_POOL, &st) &&
			      st.moves_cpu));
	kvt_client_close(&self->d.c);
	ASSERT_EQ(0, kvt_pool_destroy(self->d.pool.ctl, self->d.pool.id));
	/* Somebody takes what has been freed. */
	mem = mmap(NULL, BALLAST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, mem);
	memset(mem, 0x5a, BALLAST);
	ASSERT_EQ(0, kvt_sh("echo N > " PARAM, "kvt_testdma", "hold"));
	EXPECT_TRUE(KVT_UNTIL(10000, parameter("kvt_testdma", "copied_descriptors") > copied));
	for (i = 0; i < BALLAST / sizeof(*mem); i++)
		wrong |= mem[i] ^ 0x5a5a5a5a5a5a5a5aull;
	EXPECT_EQ(0, wrong);
	munmap(mem, BALLAST);
	/* For the teardown. */
	close(self->d.pool.ctl);
	ASSERT_EQ(0, kvt_setup(&self->d.pool));
	ASSERT_EQ(0, kvt_client_open(&self->d.pool, &self->d.c, "dma", BLOCK_BYTES));
}

TEST_HARNESS_MAIN
