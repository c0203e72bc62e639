// SPDX-License-Identifier: GPL-2.0
/*
 * Damage that could bring back what was dropped: a member that has it is refused, with
 * an errno that says that it can be repaired, and is whole again when it was.
 */
#include <sys/syscall.h>
#include <sys/wait.h>
#include "kvt_medium.h"
#include "kvt_test.h"

#define BLOCK_BYTES	(64 * KVT_KIB)
#define NR		96
#define GONE		3	/* every so many of them are dropped */
#define SET		87
#define DISK_BYTES	(24 * KVT_MIB)
#define DRAM_BYTES	(8 * KVT_MIB)
#define UNIT_BYTES	4096

/* Offsets in a superblock, see the format's description. */
#define SUPER_GENERATION	48
#define SUPER_LIFE_LIMIT	112
#define SUPER_SEQ_LIMIT		120
#define SUPER_NS_LIMIT		128

/* Of a pool that is made: numbers are reserved in steps. */
#define KVT_FIRST_NS_LIMIT	1024

FIXTURE(damaged)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvt_disk disk;
	struct kvt_disk copy;
	struct kvt_disk second;
	struct kvtier_assemble_device dev[2];
	struct kvtier_pool_assemble a;
};

FIXTURE_VARIANT(damaged)
{
	bool crash;
};

FIXTURE_VARIANT_ADD(damaged, in_order) { .crash = false };
FIXTURE_VARIANT_ADD(damaged, after_a_crash) { .crash = true };

/* A disk whose blocks are on it, some of them dropped, with the pool gone. */
FIXTURE_SETUP(damaged)
{
	struct kvt_key keys[NR];
	int dram, i;

	self->c.fd = -1;
	self->second.fd = -1;
	ASSERT_EQ(0, kvt_disk_make(&self->disk, "disk", DISK_BYTES));
	ASSERT_EQ(0, kvt_disk_make(&self->copy, "copy", DISK_BYTES));
	ASSERT_EQ(0, kvt_setup(&self->pool));
	dram = kvt_tier_dram(&self->pool, 0, DRAM_BYTES);
	ASSERT_LE(0, dram);
	ASSERT_LE(0, kvt_tier_disk(&self->pool, 30, &self->disk));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "damaged", BLOCK_BYTES));
	kvt_keys(keys, SET, 0, NR);
	for (i = 0; i < NR; i++)
		ASSERT_EQ(1, kvt_put(&self->c, KVTIER_RESERVE_WAIT, 0, &keys[i], NULL, 1));
	ASSERT_EQ(0, kvt_tier_detach(&self->pool, dram, 0, 60 * KVT_SEC));
	for (i = 0; i < NR; i += GONE)
		ASSERT_EQ(1, kvt_drop(self->c.fd, 0, &keys[i], 1, NULL));
	if (variant->crash)
		ASSERT_EQ(0, kvt_disk_copy(&self->copy, &self->disk));
	kvt_client_close(&self->c);
	ASSERT_EQ(0, kvt_pool_destroy(self->pool.ctl, self->pool.id));
	if (!variant->crash)
		ASSERT_EQ(0, kvt_disk_copy(&self->copy, &self->disk));
}

FIXTURE_TEARDOWN(damaged)
{
	struct kvtier_pool_create any = { .size = sizeof(any), .pool_id = KVTIER_POOL_ANY_ID };

	kvt_client_close(&self->c);
	/* It ends one that is there. */
	if (self->pool.id == KVTIER_POOL_ANY_ID) {
		ASSERT_EQ(0, kvt_ioctl(self->pool.ctl, KVTIER_OP_POOL_CREATE, &any));
		self->pool.id = any.pool_id;
	}
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	kvt_disk_remove(&self->second);
	kvt_disk_remove(&self->copy);
	kvt_disk_remove(&self->disk);
}

/* From the copy, and another disk; -errno. There is no pool then. */
static int assemble_with(FIXTURE_DATA(damaged) *self, const struct kvt_disk *other)
{
	int err;

	memset(self->dev, 0, sizeof(self->dev));
	snprintf(self->dev[0].path, sizeof(self->dev[0].path), "%s", self->copy.dev);
	if (other)
		snprintf(self->dev[1].path, sizeof(self->dev[1].path), "%s", other->dev);
	self->a = (struct kvtier_pool_assemble) {
		.size = sizeof(self->a),
		.pool_id = KVTIER_POOL_ANY_ID,
		.nr_devices = other ? 2 : 1,
		.devices = KVT_U64(self->dev),
	};
	err = kvt_pool_assemble(&self->pool, &self->a);
	if (err)
		self->pool.id = KVTIER_POOL_ANY_ID;
	return err;
}

static int assemble(FIXTURE_DATA(damaged) *self)
{
	return assemble_with(self, NULL);
}

/* Where the newer of the two superblocks is; it is in @page then. */
static int newer_slot(const struct kvt_disk *d, __u64 *page)
{
	__u64 gen[2];
	int slot;

	for (slot = 0; slot < 2; slot++) {
		if (kvt_disk_io(d, slot * 512 * KVT_KIB, page, 4096, false))
			return -EIO;
		gen[slot] = page[SUPER_GENERATION / 8];
	}
	slot = gen[1] > gen[0];
	return kvt_disk_io(d, slot * 512 * KVT_KIB, page, 4096, false) ? -EIO : slot;
}

/* How many of the blocks are there, of those that were dropped and of the others. */
static void count(FIXTURE_DATA(damaged) *self, int *dropped, int *others)
{
	struct kvt_key key;
	int i;

	*dropped = 0;
	*others = 0;
	for (i = 0; i < NR; i++) {
		key = kvt_key(SET, i);
		*(i % GONE ? others : dropped) += kvt_check(&self->c, 0, &key, 1, 10 * KVT_SEC) == 1;
	}
}

/* Where the segment begins of which blocks are found first. */
static __u64 some_segment(FIXTURE_DATA(damaged) *self)
{
	struct kvt_medium m;
	__u64 at = 0;

	if (kvt_medium_read(self->copy.dev, &m))
		return 0;
	if (m.nr_blocks)
		at = m.blocks[0].byte - (__u64)m.blocks[0].unit * UNIT_BYTES;
	kvt_medium_free(&m);
	return at;
}

/* The first header of a segment says what counts in it, and of kills elsewhere. */
TEST_F_TIMEOUT(damaged, first_header, 300)
{
	__u64 at = some_segment(self);
	int dropped, others;

	ASSERT_NE(0, at);
	ASSERT_EQ(0, kvt_disk_damage(&self->copy, at));
	if (variant->crash) {
		/* Whether it had a footer depends on which one it is. */
		if (assemble(self) == -EUCLEAN)
			return;
		ASSERT_EQ(0, self->dev[0].error);
	} else {
		EXPECT_EQ(-EUCLEAN, assemble(self));
		EXPECT_EQ(-EUCLEAN, self->dev[0].error);
		EXPECT_EQ(1, kvt_sh("kvtier fsck --repair %s", self->copy.dev));
		ASSERT_EQ(0, assemble(self));
	}
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, DRAM_BYTES));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "damaged", BLOCK_BYTES));
	count(self, &dropped, &others);
	EXPECT_EQ(0, dropped);
	EXPECT_EQ(NR - NR / GONE, others);
}

/* Numbers higher than any that the superblock knows of were not given out by a writer. */
TEST_F_TIMEOUT(damaged, limits, 300)
{
	static const int offsets[] = { SUPER_LIFE_LIMIT, SUPER_SEQ_LIMIT };
	__u64 *page = aligned_alloc(4096, 4096), low = 2, old;
	unsigned int i;
	int slot;

	slot = newer_slot(&self->copy, page);
	ASSERT_LE(0, slot);
	for (i = 0; i < 2; i++) {
		old = page[offsets[i] / 8];
		ASSERT_LT(low, old);
		ASSERT_EQ(0, kvt_disk_super(&self->copy, slot, offsets[i], &low, sizeof(low)));
		EXPECT_EQ(-EUCLEAN, assemble(self));
		EXPECT_EQ(-EUCLEAN, self->dev[0].error);
		ASSERT_EQ(0, kvt_disk_super(&self->copy, slot, offsets[i], &old, sizeof(old)));
	}
	free(page);
	EXPECT_EQ(0, assemble(self));
	EXPECT_EQ(NR - NR / GONE, (int)self->a.nr_blocks);
}

/* Blocks on the disk of a namespace that has come after the pool was assembled; 0 or -errno. */
static int store_more(FIXTURE_DATA(damaged) *self, const char *who)
{
	int dram = kvt_tier_dram(&self->pool, 0, DRAM_BYTES), err;
	struct kvt_key key = kvt_key(SET, 1000);

	err = kvt_client_open(&self->pool, &self->c, who, BLOCK_BYTES);
	if (!err && kvt_put(&self->c, 0, 0, &key, NULL, 1) != 1)
		err = -EPROTO;
	err = err ? err : kvt_tier_detach(&self->pool, dram, 0, 60 * KVT_SEC);
	kvt_client_close(&self->c);
	return err ? err : kvt_pool_destroy(self->pool.ctl, self->pool.id);
}

/*
 * Nor are namespaces' numbers that no superblock knows of: the older superblock does not, of those
 * that have come since the pool was assembled, and would give them to others, with the blocks.
 */
TEST_F_TIMEOUT(damaged, numbers_of_namespaces, 300)
{
	__u64 *page = aligned_alloc(4096, 4096), known, all, low = KVT_FIRST_NS_LIMIT;
	int slot;

	ASSERT_EQ(0, assemble(self));
	ASSERT_EQ(0, store_more(self, "later"));
	slot = newer_slot(&self->copy, page);
	ASSERT_LE(0, slot);
	all = page[SUPER_NS_LIMIT / 8];
	ASSERT_LT(low, all);
	/* As if it was the one before. */
	ASSERT_EQ(0, kvt_disk_super(&self->copy, slot, SUPER_NS_LIMIT, &low, sizeof(low)));
	EXPECT_EQ(-EUCLEAN, assemble(self));
	EXPECT_EQ(-EUCLEAN, self->dev[0].error);
	ASSERT_EQ(0, kvt_disk_super(&self->copy, slot, SUPER_NS_LIMIT, &all, sizeof(all)));
	free(page);
	ASSERT_EQ(0, assemble(self));
	known = NR - NR / GONE + 1;
	EXPECT_EQ(known, self->a.nr_blocks);
}

/* Nor is there one that leaves no room for those to come. */
TEST_F_TIMEOUT(damaged, no_numbers_left, 300)
{
	static const int offsets[] = { SUPER_GENERATION, SUPER_LIFE_LIMIT, SUPER_SEQ_LIMIT };
	static const __u64 forged[] = { 1ull << 61, (1ull << 62) - 2, ~0ull - 1 };
	__u64 *page = aligned_alloc(4096, 4096);
	unsigned int i, k;
	int slot;

	slot = newer_slot(&self->copy, page);
	ASSERT_LE(0, slot);
	for (i = 0; i < 3; i++) {
		for (k = 0; k < 3; k++) {
			__u64 value = forged[k] + (i ? 0 : slot);

			ASSERT_EQ(0, kvt_disk_super(&self->copy, slot, offsets[i], &value, 8));
			EXPECT_EQ(-ERANGE, assemble(self)) TH_LOG("%d: %#llx", offsets[i], value);
		}
		ASSERT_EQ(0, kvt_disk_super(&self->copy, slot, offsets[i],
					    page + offsets[i] / 8, 8));
	}
	free(page);
	EXPECT_EQ(0, assemble(self));
}

/* Sequences are the pool's: one member must not take the numbers away from the others. */
TEST_F_TIMEOUT(damaged, far_ahead_of_others, 300)
{
	__u64 *page = aligned_alloc(4096, 4096), far = 1ull << 60;
	const struct kvt_disk *second = &self->second;
	int slot;

	ASSERT_EQ(0, kvt_disk_make(&self->second, "second", DISK_BYTES));
	ASSERT_EQ(0, assemble(self));
	ASSERT_LE(0, kvt_tier_disk(&self->pool, 40, second));
	ASSERT_EQ(0, kvt_pool_destroy(self->pool.ctl, self->pool.id));
	slot = newer_slot(second, page);
	ASSERT_LE(0, slot);
	ASSERT_EQ(0, kvt_disk_super(second, slot, SUPER_SEQ_LIMIT, &far, sizeof(far)));
	EXPECT_EQ(-ERANGE, assemble_with(self, second));
	EXPECT_EQ(0, self->dev[0].error);
	EXPECT_EQ(-ERANGE, self->dev[1].error);
	ASSERT_EQ(0, kvt_disk_super(second, slot, SUPER_SEQ_LIMIT,
				    page + SUPER_SEQ_LIMIT / 8, 8));
	EXPECT_EQ(0, assemble_with(self, second));
	free(page);
}

/* The next one would be written over the only one that there is. */
TEST_F_TIMEOUT(damaged, superblock_out_of_place, 300)
{
	char *page = aligned_alloc(4096, 4096);
	int slot;

	slot = newer_slot(&self->copy, (__u64 *)page);
	ASSERT_LE(0, slot);
	ASSERT_EQ(0, kvt_disk_io(&self->copy, !slot * 512 * KVT_KIB, page, 4096, true));
	ASSERT_EQ(0, kvt_disk_damage(&self->copy, slot * 512 * KVT_KIB));
	EXPECT_EQ(-ERANGE, assemble(self));
	EXPECT_EQ(-ERANGE, self->dev[0].error);
	ASSERT_EQ(0, kvt_disk_io(&self->copy, slot * 512 * KVT_KIB, page, 4096, true));
	ASSERT_EQ(0, kvt_disk_damage(&self->copy, !slot * 512 * KVT_KIB));
	EXPECT_EQ(0, assemble(self));
	free(page);
}

/* Records that verify, each of them, and that no driver has written. */
TEST_F_TIMEOUT(damaged, forged_records, 300)
{
	int dropped, others, round;

	ASSERT_EQ(0, kvt_medium_forge(self->copy.dev));
	for (round = 0; round < 3; round++) {
		ASSERT_EQ(0, assemble(self)) TH_LOG("round %d", round);
		/* What is not used is dead after the first time. */
		EXPECT_EQ(round ? 0 : 5, (int)self->a.nr_orphans);
		EXPECT_EQ(round ? 0 : 1, (int)self->a.nr_superseded);
		EXPECT_EQ(1, (int)self->a.nr_cycles);
		EXPECT_EQ(NR - NR / GONE + 7, (int)self->a.nr_blocks);
		ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, DRAM_BYTES));
		ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "damaged", BLOCK_BYTES));
		count(self, &dropped, &others);
		EXPECT_EQ(0, dropped);
		EXPECT_EQ(NR - NR / GONE, others);
		kvt_client_close(&self->c);
		ASSERT_EQ(0, kvt_pool_destroy(self->pool.ctl, self->pool.id));
	}
	self->pool.id = KVTIER_POOL_ANY_ID;
}

/* Does that process wait for time to pass? */
static bool waits(pid_t pid)
{
	char path[64], text[128] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	f = fopen(path, "r");
	if (!f)
		return false;
	if (!fgets(text, sizeof(text), f))
		text[0] = 0;
	fclose(f);
	return atoi(text) == SYS_clock_nanosleep;
}

/*
 * The exit status of a command, while somebody has @dev to himself, as who looks at it has: until
 * the command is seen to wait.
 */
static int meanwhile(const char *dev, const char *const *command)
{
	int fd = open(dev, O_RDONLY | O_EXCL | O_CLOEXEC), status = -1;
	pid_t pid, ended = 0;

	if (fd < 0)
		return -1;
	pid = fork();
	if (!pid) {
		execvp(command[0], (char *const *)command);
		_exit(127);
	}
	while (pid > 0 && !waits(pid)) {
		ended = waitpid(pid, &status, WNOHANG);
		if (ended)
			break;
		usleep(1000);
	}
	close(fd);
	if (pid > 0 && !ended)
		ended = waitpid(pid, &status, 0);
	return ended == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Nothing is given up because somebody looks at it, such as udev when it has appeared. */
TEST_F_TIMEOUT(damaged, while_it_is_looked_at, 300)
{
	char spec[128];

	ASSERT_EQ(0, kvt_disk_make(&self->second, "second", DISK_BYTES));
	snprintf(spec, sizeof(spec), "bdev:rank=40,path=%s", self->second.dev);
	EXPECT_EQ(0, meanwhile(self->copy.dev, (const char *[]) {
			"kvtier", "fsck", "--repair", self->copy.dev, NULL }));
	ASSERT_EQ(0, meanwhile(self->copy.dev, (const char *[]) {
			"kvtier", "pool", "assemble", "--id", "9", self->copy.dev, NULL }));
	EXPECT_EQ(0, meanwhile(self->second.dev, (const char *[]) {
			"kvtier", "tier", "attach", "9", spec, NULL }));
	EXPECT_EQ(0, kvt_sh("kvtier pool destroy 9"));
	self->pool.id = KVTIER_POOL_ANY_ID;
}

TEST_HARNESS_MAIN
