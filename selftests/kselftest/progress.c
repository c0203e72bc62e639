// SPDX-License-Identifier: GPL-2.0
/*
 * How far an assembly is can be seen while it goes on: on a device that is slow enough to
 * look at. However it ends, nothing is under way afterwards.
 */
#include <pthread.h>

#include "kvt_test.h"

#define ASSEMBLING	"/sys/class/kvtier/assembling"
#define BLOCK_BYTES	(64 * KVT_KIB)
#define DISK_BYTES	(48 * KVT_MIB)
#define DRAM_BYTES	(8 * KVT_MIB)
#define NR		64
#define SET		83
#define PASSES		3	/* that each segment is gone through, and counted in */

FIXTURE(progress)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvt_dm dm;
	struct kvtier_assemble_device dev;
	struct kvtier_pool_assemble a;
	int err;
	int over;
};

/* A line of the file. */
struct under_way {
	__u32 id;
	__u64 done, all;
};

/* What has been seen of one assembly. */
struct seen {
	struct under_way last;
	int looks;
	int steps;	/* times that more was done than before */
	int wrong;	/* lines that cannot be */
};

/* Blocks on the disk, and no pool any more. */
FIXTURE_SETUP(progress)
{
	struct kvt_key keys[NR];
	int dram;

	ASSERT_EQ(0, kvt_dm_make(&self->dm, "progress", DISK_BYTES));
	ASSERT_EQ(0, kvt_setup(&self->pool));
	dram = kvt_tier_dram(&self->pool, 0, DRAM_BYTES);
	ASSERT_LE(0, dram);
	ASSERT_LE(0, kvt_tier_disk(&self->pool, 30, &self->dm.disk));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "progress", BLOCK_BYTES));
	kvt_keys(keys, SET, 0, NR);
	ASSERT_EQ(NR, kvt_put(&self->c, KVTIER_RESERVE_WAIT, 0, keys, NULL, NR));
	ASSERT_EQ(0, kvt_tier_detach(&self->pool, dram, 0, 60 * KVT_SEC));
	kvt_client_close(&self->c);
	ASSERT_EQ(0, kvt_pool_destroy(self->pool.ctl, self->pool.id));
	memcpy(self->dev.path, self->dm.disk.dev, sizeof(self->dm.disk.dev));
	self->a = (struct kvtier_pool_assemble) {
		.size = sizeof(self->a),
		.pool_id = KVTIER_POOL_ANY_ID,
		.nr_devices = 1,
		.devices = KVT_U64(&self->dev),
	};
}

FIXTURE_TEARDOWN(progress)
{
	EXPECT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_GOOD));
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	kvt_dm_remove(&self->dm);
}

/* Assemblies that are under way, @u being the first; -EPROTO: that is no such file. */
static int look(struct under_way *u)
{
	unsigned long long done, all;
	FILE *f = fopen(ASSEMBLING, "r");
	char line[128];
	int nr = 0;
	__u32 id;

	if (!f)
		return -errno;
	while (nr >= 0 && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%u %llu %llu\n", &id, &done, &all) != 3)
			nr = -EPROTO;
		else if (!nr++)
			*u = (struct under_way) { id, done, all };
	}
	fclose(f);
	return nr;
}

static void see(struct seen *s)
{
	struct under_way now;
	int nr = look(&now);

	if (!nr)
		return;
	if (nr != 1 || now.done > now.all || now.done < s->last.done ||
	    (s->last.all && now.all != s->last.all) || (s->looks && now.id != s->last.id)) {
		s->wrong++;
		return;
	}
	s->looks++;
	s->steps += now.done > s->last.done;
	s->last = now;
}

static void *assemble(void *arg)
{
	FIXTURE_DATA(progress) *self = arg;

	self->err = kvt_pool_assemble(&self->pool, &self->a);
	__atomic_store_n(&self->over, 1, __ATOMIC_RELEASE);
	return NULL;
}

TEST_F_TIMEOUT(progress, grows, 300)
{
	struct seen s = { 0 };
	struct under_way none;
	pthread_t thread;

	EXPECT_EQ(0, look(&none));
	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_SLOW));
	ASSERT_EQ(0, pthread_create(&thread, NULL, assemble, self));
	while (!__atomic_load_n(&self->over, __ATOMIC_ACQUIRE)) {
		see(&s);
		kvt_sleep_ms(5);
	}
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_EQ(0, self->err);
	EXPECT_EQ(0, look(&none));
	TH_LOG("%d looks, %d steps, up to %llu of %llu", s.looks, s.steps, s.last.done, s.last.all);
	EXPECT_EQ(0, s.wrong);
	EXPECT_EQ(self->a.pool_id, s.last.id);
	EXPECT_EQ(NR, self->a.nr_blocks);
	EXPECT_LT(0, self->a.nr_segments);
	EXPECT_EQ(PASSES * self->a.nr_segments, s.last.all);
	EXPECT_LE(3, s.steps);
	/* More than what is there from the first pass on. */
	EXPECT_LT(s.last.all / PASSES, s.last.done);
}

static int assemble_alone(struct kvt_child *me, void *arg)
{
	FIXTURE_DATA(progress) *self = arg;
	int err = kvt_pool_assemble(&self->pool, &self->a);

	kvt_say(me, err);
	return 1;
}

/* Who is killed while it goes on leaves nothing of it, and all can be had by another. */
TEST_F_TIMEOUT(progress, killed, 300)
{
	struct under_way u = { 0 };
	struct kvt_child child;

	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_SLOW));
	ASSERT_EQ(0, kvt_spawn(&child, assemble_alone, self));
	EXPECT_TRUE(KVT_UNTIL(20000, look(&u) == 1 && u.done));
	EXPECT_LT(u.done, u.all);
	kvt_kill(&child, SIGKILL);
	EXPECT_EQ(-SIGKILL, kvt_join(&child, 60000));
	EXPECT_EQ(0, look(&u));
	ASSERT_EQ(0, kvt_dm_set(&self->dm, KVT_DM_GOOD));
	ASSERT_EQ(0, kvt_pool_assemble(&self->pool, &self->a));
	EXPECT_EQ(NR, self->a.nr_blocks);
	EXPECT_EQ(0, look(&u));
}

TEST_HARNESS_MAIN
