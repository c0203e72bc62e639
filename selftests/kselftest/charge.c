// SPDX-License-Identifier: GPL-2.0
/*
 * Memory tiers that are charged to cgroups: what a container has there counts against its
 * memory.max, and gives way to it, and nobody else's does.
 */
#include "kvt_test.h"
#include <sys/mman.h>
#include <sys/stat.h>

#define BLOCK_BYTES	(64 * KVT_KIB)
#define IN_MIB		((int)(KVT_MIB / BLOCK_BYTES))
#define SET		91
#define SET_HOST	92
#define GROUPS		"/sys/fs/cgroup"
#define GROUP		GROUPS "/kvt-charge"
#define GROUP_GONE	GROUPS "/kvt-charge-gone"
#define MAX_MIB		64
#define TIER_MIB	128
#define HOST_MIB	8
#define LEASED		16
#define OWNER		1001
#define PROMISED_MIB	24

/* What the container is told: a verb, and a number. */
enum {
	STORE = 1 << 16,
	CHECK = 2 << 16,
	TOUCH = 3 << 16,
	LEASE = 4 << 16,
	DROP = 5 << 16,
	PIN = 6 << 16,
	TRY = 8 << 16,		/* for so long, in ms */
	CLIENT = 7 << 16,	/* go on as another one, see below */
};

enum client {
	NONE = 0,
	PROMISED = 1,		/* PROMISED_MIB are guaranteed to its namespace */
	GUEST,			/* root, of OWNER's namespace */
	OWN,			/* OWNER */
};

struct tenant {
	const struct kvt_pool *pool;
	struct kvt_client *host;	/* fork has left him one */
	struct kvt_client c;
	int stored;		/* the first so many of SET */
	__u64 handle[LEASED];
};

FIXTURE(charge)
{
	struct kvt_pool pool;
	struct kvt_client host;
	struct kvt_child child;
	struct tenant t;
	int tier;
};

FIXTURE_VARIANT(charge)
{
	bool disk;
};

FIXTURE_VARIANT_ADD(charge, alone) { .disk = false };
FIXTURE_VARIANT_ADD(charge, above_a_disk) { .disk = true };

/* Blocks of a set that are there; -1: some have wrong bytes. */
static int there(const struct kvt_client *c, __u32 set, int nr)
{
	struct kvt_key key;
	int i, n, sum = 0;

	for (i = 0; i < nr; i++) {
		key = kvt_key(set, i);
		n = kvt_check(c, 0, &key, 1, 10 * KVT_SEC);
		if (n < 0)
			return -1;
		sum += n;
	}
	return sum;
}

static int store(const struct kvt_client *c, __u32 set, int first, int nr)
{
	struct kvt_key key;
	int i, n = 0;

	for (i = first; i < first + nr; i++) {
		key = kvt_key(set, i);
		n += kvt_put(c, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1) == 1;
	}
	return n;
}

/* The container's own memory: it stays. */
static int touch(int mib)
{
	char *p = mmap(NULL, mib * KVT_MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	if (p == MAP_FAILED)
		return -1;
	memset(p, 0xa5, mib * KVT_MIB);
	return mib;
}

static int lease_first(struct tenant *t, int nr)
{
	struct kvtier_block_result res;
	struct kvt_key key;
	int i;

	for (i = 0; i < nr; i++) {
		key = kvt_key(SET, i);
		if (kvt_get(t->c.fd, 0, 0, &key, 1, &res, 0) != 1)
			return i;
		t->handle[i] = res.handle;
	}
	return nr;
}

static int pin_first(struct tenant *t, int nr)
{
	struct kvt_key keys[LEASED];

	kvt_keys(keys, SET, 0, nr);
	return kvt_advise(t->c.fd, 0, keys, nr, KVTIER_ADV_PIN, 0, NULL);
}

static int drop_all(struct tenant *t)
{
	struct kvt_key key;
	int i, n = 0;

	for (i = 0; i < t->stored; i++) {
		key = kvt_key(SET, i);
		n += kvt_drop(t->c.fd, 0, &key, 1, NULL) == 1;
	}
	return n;
}

static int open_owner(const struct kvt_pool *p, struct kvt_client *c)
{
	struct kvtier_group group = { .block_bytes = BLOCK_BYTES };
	struct kvtier_ns_open a;

	kvt_ns_args(&a, "owner", &group, 1);
	a.mode = 0666;
	return kvt_client_bind(c, kvt_open_as(p, OWNER), &a);
}

/* No file is left when he has gone, nor a process in his cgroup, but a block. */
static int first_owner(struct kvt_child *me, void *arg)
{
	struct kvt_client c;

	(void)me;
	KVT_CHILD_CHECK(!kvt_sh("echo %d > " GROUP_GONE "/cgroup.procs", getpid()));
	KVT_CHILD_CHECK(!open_owner(arg, &c));
	KVT_CHILD_CHECK(store(&c, SET_HOST, 0, 1) == 1);
	kvt_client_close(&c);
	return 0;
}

static int open_guest(const struct kvt_pool *p, struct kvt_client *c)
{
	struct kvtier_group group = { .block_bytes = BLOCK_BYTES };
	struct kvtier_ns_open a;

	kvt_ns_args(&a, "owner", &group, 1);
	a.flags = KVTIER_NS_OWNER;
	a.owner_uid = OWNER;
	return kvt_client_bind(c, kvt_open(p), &a);
}

static int become(struct tenant *t, enum client which)
{
	struct kvtier_group group = { .block_bytes = BLOCK_BYTES };
	struct kvtier_ns_open a;

	kvt_client_close(&t->c);
	t->stored = 0;
	if (which == NONE)
		return 0;
	if (which == OWN)
		return open_owner(t->pool, &t->c);
	if (which == GUEST)
		return open_guest(t->pool, &t->c);
	kvt_ns_args(&a, "promised", &group, 1);
	a.min_bytes = PROMISED_MIB * KVT_MIB;
	return kvt_client_bind(&t->c, kvt_open(t->pool), &a);
}

/* Is there memory for one more, within this time. */
static int try_one(const struct tenant *t, int ms)
{
	struct kvt_key key = kvt_key(SET, t->stored);
	struct kvtier_block_result res;
	int n = kvt_reserve(t->c.fd, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1, &res, ms * KVT_MSEC);

	if (n == 1)
		kvt_abort(t->c.fd, &res.handle, 1, NULL);
	return n;
}

static int told(struct tenant *t, int word)
{
	int nr = word & 0xffff, n;

	switch (word & ~0xffff) {
	case STORE:
		n = store(&t->c, SET, t->stored, nr);
		t->stored += nr;
		return n;
	case CHECK:
		return there(&t->c, SET, nr ? nr : t->stored);
	case TOUCH:
		return touch(nr);
	case LEASE:
		return lease_first(t, nr);
	case PIN:
		return pin_first(t, nr);
	case DROP:
		return drop_all(t);
	case TRY:
		return try_one(t, nr);
	case CLIENT:
		return become(t, nr);
	}
	return -1;
}

static int tenant(struct kvt_child *me, void *arg)
{
	struct tenant *t = arg;
	int word;

	kvt_client_close(t->host);
	KVT_CHILD_CHECK(!kvt_sh("echo %d > " GROUP "/cgroup.procs", getpid()));
	KVT_CHILD_CHECK(!kvt_client_open(t->pool, &t->c, "container", BLOCK_BYTES));
	while ((word = kvt_hear(me, 600000)) > 0)
		kvt_say(me, told(t, word));
	return 0;
}

static int tell(FIXTURE_DATA(charge) *self, int word)
{
	int err = kvt_say(&self->child, word);

	return err ? err : kvt_hear(&self->child, 300000);
}

static long long number(const char *file, const char *name)
{
	char line[32] = "";

	kvt_sh_line(line, sizeof(line), "sed -n 's/^%s//p' " GROUP "/%s", name, file);
	return atoll(line);
}

/* MiB charged to the container. */
static int charged(void)
{
	return number("memory.current", "") / KVT_MIB;
}

static bool ends_well(FIXTURE_DATA(charge) *self)
{
	long long killed = number("memory.events", "oom_kill ");
	int host = there(&self->host, SET_HOST, HOST_MIB * IN_MIB);

	if (!killed && host == HOST_MIB * IN_MIB)
		return true;
	fprintf(stderr, "# %lld killed, %d of the host's blocks\n", killed, host);
	return false;
}

static int attach(FIXTURE_DATA(charge) *self)
{
	struct kvtier_tier_attach a;
	int err;

	kvt_tier_args(&self->pool, &a, KVTIER_TIER_DRAM, 0);
	a.capacity_bytes = TIER_MIB * KVT_MIB;
	a.flags = KVTIER_ATTACH_CHARGE;
	err = kvt_ioctl(self->pool.ctl, KVTIER_OP_TIER_ATTACH, &a);
	return err ? err : (int)a.tier_id;
}

FIXTURE_SETUP(charge)
{
	self->child.pid = -1;
	if (!kvt_cgroups_have("memory"))
		SKIP(return, "no memory controller in the cgroup v2 hierarchy");
	if (variant->disk && !kvt_env_bdev())
		SKIP(return, "no block device to use (KVT_BDEV)");
	ASSERT_EQ(0, mkdir(GROUP, 0755));
	ASSERT_EQ(0, kvt_sh("echo %llu > " GROUP "/memory.max", MAX_MIB * KVT_MIB));
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "watermark_high_percent", "100"));
	self->tier = attach(self);
	ASSERT_LE(0, self->tier);
	if (variant->disk)
		ASSERT_LE(0, kvt_tier_bdev(&self->pool, 1, 256 * KVT_MIB));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->host, "host", BLOCK_BYTES));
	ASSERT_EQ(HOST_MIB * IN_MIB, store(&self->host, SET_HOST, 0, HOST_MIB * IN_MIB));
	self->t.pool = &self->pool;
	self->t.host = &self->host;
	ASSERT_EQ(0, kvt_spawn(&self->child, tenant, &self->t));
}

FIXTURE_TEARDOWN(charge)
{
	if (self->child.pid > 0) {
		kvt_say(&self->child, 0);
		EXPECT_EQ(0, kvt_join(&self->child, 20000));
	}
	kvt_client_close(&self->host);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	EXPECT_TRUE(KVT_UNTIL(5000, !rmdir(GROUP)));
}

/* What is stored is charged, to who stores it, and no more when it has gone. */
TEST_F_TIMEOUT(charge, who_stores_pays, 600)
{
	int before, with;
	char frames[32];

	/* 4 and 8 bytes for each 2 MiB, whatever is in them. */
	ASSERT_LT(0, kvt_sysfs_read(&self->pool, "page_struct_bytes", frames, sizeof(frames)));
	EXPECT_EQ(TIER_MIB / 2 * 12, atoi(frames));
	ASSERT_EQ(IN_MIB, tell(self, STORE | IN_MIB));
	before = charged();
	ASSERT_EQ(24 * IN_MIB, tell(self, STORE | (24 * IN_MIB)));
	with = charged();
	EXPECT_LE(before + 24, with);
	/* Regions that are half empty, and tables. */
	EXPECT_GE(before + 24 + 8, with);
	EXPECT_EQ(25 * IN_MIB, tell(self, CHECK));
	ASSERT_EQ(25 * IN_MIB, tell(self, DROP));
	/* Empty regions stay their owner's until somebody needs memory, he himself too. */
	EXPECT_EQ(40, tell(self, TOUCH | 40));
	EXPECT_TRUE(ends_well(self));
}

/* More than it may have: its own oldest make room, and it is not killed. */
TEST_F_TIMEOUT(charge, own_blocks_make_room, 600)
{
	int nr = (MAX_MIB + 16) * IN_MIB, got;

	ASSERT_EQ(nr, tell(self, STORE | nr));
	EXPECT_LT(0, number("memory.events", "max "));
	EXPECT_GE(MAX_MIB, charged());
	got = tell(self, CHECK);
	/* Without a disk what has left memory is lost. */
	EXPECT_TRUE(variant->disk || got < MAX_MIB * IN_MIB) TH_LOG("%d of %d", got, nr);
	EXPECT_LT(MAX_MIB / 4 * IN_MIB, got);
	EXPECT_TRUE(ends_well(self));
}

/* It needs memory for itself: what it has stored goes, and it is not killed. */
TEST_F_TIMEOUT(charge, other_memory_comes_first, 600)
{
	int nr = (MAX_MIB - 20) * IN_MIB, got;

	ASSERT_EQ(nr, tell(self, STORE | nr));
	EXPECT_EQ(nr, tell(self, CHECK));
	EXPECT_EQ(MAX_MIB / 2, tell(self, TOUCH | (MAX_MIB / 2)));
	EXPECT_GE(MAX_MIB, charged());
	/* No more than was needed; and what is left is right, and there is room for more. */
	got = tell(self, CHECK);
	EXPECT_LT(MAX_MIB / 8 * IN_MIB, got);
	EXPECT_TRUE(variant->disk || got < nr);
	EXPECT_EQ(IN_MIB, tell(self, STORE | IN_MIB));
	EXPECT_TRUE(ends_well(self));
}

/* What it reads just now stays where it is. */
TEST_F_TIMEOUT(charge, leased_blocks_stay, 600)
{
	int nr = (MAX_MIB - 20) * IN_MIB;

	ASSERT_EQ(nr, tell(self, STORE | nr));
	ASSERT_EQ(LEASED, tell(self, LEASE | LEASED));
	EXPECT_EQ(MAX_MIB / 2, tell(self, TOUCH | (MAX_MIB / 2)));
	EXPECT_EQ(LEASED, tell(self, CHECK | LEASED));
	EXPECT_TRUE(ends_well(self));
}

/* What must not go does not keep the rest from going, though it was stored first. */
TEST_F_TIMEOUT(charge, pinned_blocks_stay, 600)
{
	int nr = (MAX_MIB - 20) * IN_MIB;

	ASSERT_EQ(LEASED, tell(self, STORE | LEASED));
	ASSERT_EQ(LEASED, tell(self, PIN | LEASED));
	ASSERT_EQ(nr, tell(self, STORE | nr));
	EXPECT_EQ(MAX_MIB / 2, tell(self, TOUCH | (MAX_MIB / 2)));
	EXPECT_EQ(LEASED, tell(self, CHECK | LEASED));
	EXPECT_TRUE(ends_well(self));
}

/* A tier that is charged can go, whatever is in it. */
TEST_F_TIMEOUT(charge, detach, 600)
{
	ASSERT_EQ(8 * IN_MIB, tell(self, STORE | (8 * IN_MIB)));
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, self->tier, KVTIER_DETACH_DISCARD,
				     20 * KVT_SEC));
	EXPECT_TRUE(KVT_UNTIL(5000, charged() < 8)) TH_LOG("%d MiB", charged());
}

/*
 * Beyond memory.high the kernel holds up whoever gets more. So nobody gets any here, and who
 * detaches the tier need not wait for him.
 */
TEST_F_TIMEOUT(charge, no_more_beyond_high, 600)
{
	int before;

	/* A little: the farther beyond, the longer every call of his takes. */
	ASSERT_EQ(MAX_MIB / 2, tell(self, TOUCH | (MAX_MIB / 2)));
	ASSERT_EQ(0, kvt_sh("echo %llu > " GROUP "/memory.high", (MAX_MIB / 2 - 1) * KVT_MIB));
	before = charged();
	ASSERT_LE(MAX_MIB / 2, before);
	EXPECT_EQ(0, tell(self, TRY | 500));
	/* Not a piece. */
	EXPECT_GE(before + 1, charged());
	ASSERT_EQ(0, kvt_say(&self->child, TRY | 3000));
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, self->tier, KVTIER_DETACH_DISCARD,
				     20 * KVT_SEC));
	EXPECT_LE(0, kvt_hear(&self->child, 300000));
	ASSERT_EQ(0, kvt_sh("echo max > " GROUP "/memory.high"));
}

static long long tier_used(FIXTURE_DATA(charge) *self)
{
	char text[32];

	return kvt_sysfs_read(&self->pool, "tiers/dram0/used_bytes", text, sizeof(text)) <= 0 ?
	       -1 : atoll(text);
}

/* Who gets no more has nobody make room for it, however full the tier is. */
TEST_F_TIMEOUT(charge, no_room_is_made_in_vain, 600)
{
	int nr = (TIER_MIB - HOST_MIB) * IN_MIB, there_before;
	long long used;

	ASSERT_LT(nr / 2, store(&self->host, SET_HOST, HOST_MIB * IN_MIB, nr));
	ASSERT_EQ(MAX_MIB / 2, tell(self, TOUCH | (MAX_MIB / 2)));
	ASSERT_EQ(0, kvt_sh("echo %llu > " GROUP "/memory.high", (MAX_MIB / 2 - 1) * KVT_MIB));
	there_before = there(&self->host, SET_HOST, TIER_MIB * IN_MIB);
	used = tier_used(self);
	EXPECT_EQ(0, tell(self, TRY | 1000));
	EXPECT_EQ(used, tier_used(self));
	EXPECT_EQ(there_before, there(&self->host, SET_HOST, TIER_MIB * IN_MIB));
	ASSERT_EQ(0, kvt_sh("echo max > " GROUP "/memory.high"));
}

/* As if the system were short of memory; more often than it is answered. */
static int ask_for_all(void)
{
	int i, err = 0;

	for (i = 0; i < 20 && !err; i++) {
		err = kvt_sh("echo 2 > /proc/sys/vm/drop_caches");
		usleep(150000);
	}
	return err;
}

/*
 * What is guaranteed to a namespace stays when it is not its own cgroup that is at its limit. What
 * else is charged there may be a little less afterwards.
 */
TEST_F_TIMEOUT(charge, guaranteed_blocks_stay, 600)
{
	int nr = (PROMISED_MIB - 4) * IN_MIB, more = 16 * IN_MIB, before, all;

	ASSERT_EQ(0, tell(self, CLIENT | PROMISED));
	before = charged();
	ASSERT_EQ(nr, tell(self, STORE | nr));
	ASSERT_EQ(0, ask_for_all());
	EXPECT_LE(before + PROMISED_MIB - 4 - 2, charged());
	EXPECT_EQ(nr, tell(self, CHECK));
	/* It gives what it has beyond that, and not one block more. */
	ASSERT_EQ(more, tell(self, STORE | more));
	all = charged();
	ASSERT_EQ(0, ask_for_all());
	EXPECT_GT(all, charged());
	EXPECT_LE(before + PROMISED_MIB - 2, charged());
	/* Its own cgroup's need comes before. */
	EXPECT_EQ(MAX_MIB - 8, tell(self, TOUCH | (MAX_MIB - 8)));
	EXPECT_EQ(0, number("memory.events", "oom_kill "));
}

/* Who may open another's namespace does not come to pay for it. */
TEST_F_TIMEOUT(charge, guests_do_not_pay, 600)
{
	struct kvt_child first;
	int nr = 16 * IN_MIB, before;

	ASSERT_EQ(0, mkdir(GROUP_GONE, 0755));
	ASSERT_EQ(0, kvt_spawn(&first, first_owner, &self->pool));
	EXPECT_EQ(0, kvt_join(&first, 20000));
	EXPECT_TRUE(KVT_UNTIL(5000, !rmdir(GROUP_GONE)));
	/* A moment later the kernel takes it for gone, and there is a place to be had. */
	kvt_sleep_ms(500);
	ASSERT_EQ(0, tell(self, CLIENT | GUEST));
	before = charged();
	EXPECT_EQ(nr, tell(self, STORE | nr));
	EXPECT_GE(before + 1, charged());
	EXPECT_EQ(nr, tell(self, DROP));
	/* Its owner does, when he comes again: for what is new. */
	ASSERT_EQ(0, tell(self, CLIENT | OWN));
	before = charged();
	EXPECT_EQ(nr + nr, tell(self, STORE | (nr + nr)));
	EXPECT_LE(before + 8, charged());
	EXPECT_TRUE(ends_well(self));
}

/* Everything is on the disk, and the pool comes up from there. */
static int come_up_again(FIXTURE_DATA(charge) *self)
{
	struct kvtier_assemble_device dev = { 0 };
	struct kvtier_pool_assemble a = {
		.size = sizeof(a), .pool_id = self->pool.id, .nr_devices = 1,
		.devices = KVT_U64(&dev),
	};
	int err = kvt_tier_detach(&self->pool, self->tier, 0, 60 * KVT_SEC);

	snprintf(dev.path, sizeof(dev.path), "%s", kvt_env_bdev());
	kvt_client_close(&self->host);
	err = err ?: kvt_pool_destroy(self->pool.ctl, self->pool.id) ?:
	      kvt_pool_assemble(&self->pool, &a);
	self->tier = err ? err : attach(self);
	return self->tier < 0 ? self->tier : 0;
}

/* Until the owner has come nobody pays for what is found on a disk; so there is no memory for it. */
TEST_F_TIMEOUT(charge, nobody_pays_after_assembly, 600)
{
	struct kvtier_ns_claim claim = { .size = sizeof(claim), .uid = OWNER, .gid = OWNER };
	struct kvtier_block_result res;
	struct kvt_key key = kvt_key(SET, 0);
	struct kvt_client guest;
	int nr = 8 * IN_MIB;

	if (!variant->disk)
		SKIP(return, "there is nothing without a disk");
	ASSERT_EQ(0, tell(self, CLIENT | OWN));
	ASSERT_EQ(nr, tell(self, STORE | nr));
	ASSERT_EQ(0, tell(self, CLIENT | NONE));
	ASSERT_EQ(0, come_up_again(self));
	ASSERT_EQ(0, open_guest(&self->pool, &guest));
	EXPECT_EQ(1, kvt_lookup(guest.fd, 0, &key, 1, NULL));
	EXPECT_EQ(0, kvt_get(guest.fd, KVTIER_GET_WAIT, 0, &key, 1, &res, KVT_SEC));
	EXPECT_EQ(0, tier_used(self));
	claim.pool_id = self->pool.id;
	claim.ns_id = guest.ns_id;
	ASSERT_EQ(0, kvt_ioctl(self->pool.ctl, KVTIER_OP_NS_CLAIM, &claim));
	ASSERT_EQ(0, tell(self, CLIENT | OWN));
	EXPECT_EQ(nr, tell(self, CHECK | nr));
	EXPECT_LE(8, charged());
	/* Now that he pays it is there for guests, too. */
	EXPECT_EQ(1, kvt_get(guest.fd, KVTIER_GET_WAIT, 0, &key, 1, &res, 10 * KVT_SEC));
	kvt_client_close(&guest);
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->host, "host", BLOCK_BYTES));
}

TEST_HARNESS_MAIN
