// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent memory as a tier: what is on it outlives the machine.
 *
 * The tests run in this order, the first on one machine and the others on the next,
 * which finds the devices as the first has left them. Two namespaces are told by
 * KVT_PMEM0 and KVT_PMEM1: one has its struct pages on the device.
 */
#include <sys/mman.h>

#include "kvt_test.h"
#include "kvt_medium.h"

#define BLOCK_BYTES	(64 * KVT_KIB)
#define CHAIN		8
#define CHAINS		24
#define SET		61
#define WILD		62
#define WILD_SURE	4	/* chains that are known to be durable: */
#define WILD_SAID	40	/* with so many more, of which memory holds sixteen */
#define WILD_MAX	64
#define DRAM_BYTES	(8 * KVT_MIB)
#define MAP_BYTES	(2 * KVT_MIB)
#define SMALL_BYTES	(20 * KVT_MIB)	/* less than there is to be stored */
#define OFFLINE		"/sys/devices/system/memory/hard_offline_page"
#define GOING		"the persistent memory of a tier is going"
#define NR		2

static const char *device(int i)
{
	return getenv(i ? "KVT_PMEM1" : "KVT_PMEM0");
}

struct state {
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvtier_assemble_device dev[NR];
	struct kvtier_pool_assemble a;
};

static int open_client(struct state *s)
{
	return kvt_client_open(&s->pool, &s->c, "pmem", BLOCK_BYTES);
}

static int put_chain(const struct kvt_client *c, __u32 set, int i)
{
	struct kvt_key keys[CHAIN];

	kvt_keys(keys, set, i * CHAIN, CHAIN);
	return kvt_put(c, KVTIER_RESERVE_WAIT, 0, keys, NULL, CHAIN);
}

/* Blocks that are there, which must be right; a bit for each. -EBADMSG: one is not. */
static int check_chain(const struct kvt_client *c, __u32 set, int i)
{
	struct kvt_key key;
	int k, ret, there = 0;

	for (k = 0; k < CHAIN; k++) {
		key = kvt_key(set, i * CHAIN + k);
		ret = kvt_check(c, 0, &key, 1, 10 * KVT_SEC);
		if (ret < 0)
			return ret;
		there |= ret << k;
	}
	return there;
}

static int attach(const struct kvt_pool *p, __u32 type, __u32 rank, const char *name,
		  __u64 bytes, __u32 flags)
{
	struct kvtier_tier_attach a;
	int err = kvt_dax_bind(name, "kvtier");

	if (err)
		return err;
	kvt_tier_args(p, &a, type, rank);
	a.capacity_bytes = bytes;
	a.flags = flags;
	snprintf(a.path, sizeof(a.path), "%s", name);
	err = kvt_ioctl(p->ctl, KVTIER_OP_TIER_ATTACH, &a);
	return err ? err : (int)a.tier_id;
}

static int tier_info(const struct state *s, __u32 rank, struct kvtier_tier_info *info)
{
	struct kvtier_tier_info tiers[KVTIER_TIERS_MAX];
	struct kvtier_query q;
	int i, nr = kvt_query(s->c.fd, &q, tiers);

	for (i = 0; i < nr; i++) {
		if (tiers[i].rank == rank) {
			*info = tiers[i];
			return 0;
		}
	}
	return -ENOENT;
}

/* Through the kernel's own driver: @len bytes at @at are xored with @value. */
static int scribble(const char *name, __u64 at, size_t len, __u8 value)
{
	char path[64];
	__u8 *map;
	size_t i;
	int fd, err = kvt_dax_bind(name, "device_dax");

	if (err)
		return err;
	snprintf(path, sizeof(path), "/dev/%s", name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	map = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		   (off_t)(at / MAP_BYTES * MAP_BYTES));
	err = map == MAP_FAILED ? -errno : 0;
	for (i = 0; !err && i < len; i++)
		map[at % MAP_BYTES + i] ^= value;
	if (!err)
		munmap(map, MAP_BYTES);
	close(fd);
	return err;
}

static int assemble(struct state *s, int first, int nr)
{
	int i, err;

	memset(s->dev, 0, sizeof(s->dev));
	for (i = 0; i < nr; i++) {
		err = kvt_dax_bind(device(first + i), "kvtier");
		if (err)
			return err;
		snprintf(s->dev[i].path, sizeof(s->dev[i].path), "%s", device(first + i));
	}
	s->a = (struct kvtier_pool_assemble) {
		.size = sizeof(s->a),
		.pool_id = KVTIER_POOL_ANY_ID,
		.nr_devices = nr,
		.devices = KVT_U64(s->dev),
	};
	return kvt_pool_assemble(&s->pool, &s->a);
}

/* From the devices alone, with memory to read them in. */
static int bring_up(struct state *s)
{
	int err = kvt_setup(&s->pool);

	s->c.fd = -1;
	if (!err)
		err = kvt_pool_destroy(s->pool.ctl, s->pool.id);
	if (!err)
		err = assemble(s, 0, NR);
	if (!err)
		err = kvt_tier_dram(&s->pool, 0, DRAM_BYTES);
	return err < 0 ? err : open_client(s);
}

static int send_down(struct state *s)
{
	struct kvtier_tier_info dram;
	int err = tier_info(s, 0, &dram);

	if (!err)
		err = kvt_tier_detach(&s->pool, (int)dram.id, 0, 60 * KVT_SEC);
	return err ? err : fsync(s->c.fd) ? -errno : 0;
}

/* Goes on until the machine does not. Tells how many chains are durable. */
static void write_wildly(struct state *s, int line)
{
	int i, fd = open("/dev/null", O_RDWR);

	setsid();
	dup2(fd, 0);
	dup2(fd, 1);
	dup2(fd, 2);
	for (i = 0; i < WILD_MAX; i++) {
		if (put_chain(&s->c, WILD, i) != CHAIN || fsync(s->c.fd))
			_exit(1);
		if (write(line, &i, sizeof(i)) != sizeof(i))
			line = -1;
	}
	pause();
	_exit(0);
}

TEST(before)
{
	struct kvtier_tier_info info;
	struct kvtier_tier_attach d;
	struct state s = { .c.fd = -1 };
	struct kvt_key keys[CHAIN];
	char text[32];
	int i, line[2], said = -1;

	ASSERT_EQ(0, kvt_setup(&s.pool));
	ASSERT_LE(0, kvt_tier_dram(&s.pool, 0, DRAM_BYTES));
	/* What may be somebody's is not taken. */
	ASSERT_EQ(0, scribble(device(0), 5000, 1, 0x55));
	EXPECT_EQ(-EEXIST, attach(&s.pool, KVTIER_TIER_DAX, 30, device(0), SMALL_BYTES, 0));
	ASSERT_EQ(0, scribble(device(0), 5000, 1, 0x55));
	ASSERT_LE(0, attach(&s.pool, KVTIER_TIER_DAX, 30, device(0), SMALL_BYTES, 0));
	ASSERT_LE(0, attach(&s.pool, KVTIER_TIER_PMEM, 31, device(1), 0, 0));
	EXPECT_EQ(-EBUSY, attach(&s.pool, KVTIER_TIER_PMEM, 32, device(1), 0, 0));
	/* It is no memory: nothing is mapped from it, and it ranks behind. */
	kvt_tier_args(&s.pool, &d, KVTIER_TIER_DRAM, 40);
	d.capacity_bytes = DRAM_BYTES;
	EXPECT_EQ(-EINVAL, kvt_ioctl(s.pool.ctl, KVTIER_OP_TIER_ATTACH, &d));
	ASSERT_EQ(0, open_client(&s));
	for (i = 0; i < NR; i++) {
		ASSERT_EQ(0, tier_info(&s, 30 + i, &info));
		EXPECT_EQ(KVTIER_TIER_PMEM, info.type);
		EXPECT_EQ(KVTIER_TIER_ONLINE, info.state);
		EXPECT_EQ(0, info.window_bytes);
		EXPECT_LT(i ? 64 * KVT_MIB : 8 * KVT_MIB, info.capacity_bytes);
	}
	for (i = 0; i < CHAINS; i++)
		ASSERT_EQ(CHAIN, put_chain(&s.c, SET, i));
	ASSERT_EQ(0, send_down(&s));
	/* By the processor, and said so. */
	ASSERT_LT(0, kvt_sysfs_read(&s.pool, "tiers/dax30/write_bytes", text, sizeof(text)));
	EXPECT_LT(0, atoll(text));
	ASSERT_LT(0, kvt_sysfs_read(&s.pool, "tiers/dax30/dma_bytes", text, sizeof(text)));
	EXPECT_EQ(0, atoll(text));
	for (i = 0; i < CHAINS; i += 3) {
		kvt_keys(keys, SET, i * CHAIN, CHAIN);
		ASSERT_EQ(CHAIN, kvt_drop(s.c.fd, 0, keys, CHAIN, NULL));
	}
	ASSERT_LE(0, kvt_tier_dram(&s.pool, 0, DRAM_BYTES));
	ASSERT_EQ(0, pipe(line));
	kvt_client_close(&s.c);
	ASSERT_EQ(0, open_client(&s));
	if (!fork())
		write_wildly(&s, line[1]);
	close(line[1]);
	while (said < WILD_SAID)
		ASSERT_EQ((ssize_t)sizeof(said), read(line[0], &said, sizeof(said)));
	/* Nothing is ended in order: the pool goes with the machine. */
}

TEST(after)
{
	struct kvtier_tier_info info;
	struct state s;
	int i, wild = 0;

	ASSERT_EQ(0, bring_up(&s));
	EXPECT_EQ(NR, s.a.nr_members);
	EXPECT_EQ(NR, s.a.nr_found);
	EXPECT_EQ(1, s.a.nr_namespaces);
	EXPECT_LT(0, s.a.nr_unsealed);
	for (i = 0; i < NR; i++) {
		EXPECT_EQ(0, s.dev[i].error);
		EXPECT_EQ(KVTIER_MEMBER_DIRTY, s.dev[i].state);
		EXPECT_EQ(30 + i, s.dev[i].rank);
		ASSERT_EQ(0, tier_info(&s, 30 + i, &info));
		EXPECT_EQ(KVTIER_TIER_PMEM, info.type);
		EXPECT_LT(0, info.nr_blocks);
	}
	for (i = 0; i < CHAINS; i++)
		EXPECT_EQ(i % 3 ? (1 << CHAIN) - 1 : 0, check_chain(&s.c, SET, i))
			TH_LOG("chain %d", i);
	for (i = 0; i < WILD_MAX; i++) {
		int there = check_chain(&s.c, WILD, i);

		EXPECT_LE(0, there) TH_LOG("wild chain %d", i);
		if (i < WILD_SURE)
			EXPECT_EQ((1 << CHAIN) - 1, there) TH_LOG("wild chain %d", i);
		wild += there != 0;
	}
	EXPECT_LE(WILD_SURE, wild);
	/* It takes more, and ends in order. */
	EXPECT_EQ(CHAIN, put_chain(&s.c, SET, CHAINS));
	EXPECT_EQ(0, send_down(&s));
	kvt_client_close(&s.c);
	EXPECT_EQ(0, kvt_teardown(&s.pool));
}

/* Where the last block of a chain lies, on whichever device. */
static int find_block(int chain, const char **name, __u64 *byte)
{
	struct kvt_key key = kvt_key(SET, chain * CHAIN + CHAIN - 1);
	const struct kvt_medium_block *b;
	struct kvt_medium m;
	char path[64];
	int i, err;

	*name = NULL;
	for (i = 0; i < NR; i++) {
		err = kvt_dax_bind(device(i), "device_dax");
		if (err)
			return err;
		snprintf(path, sizeof(path), "/dev/%s", device(i));
		err = kvt_medium_read(path, &m);
		if (err)
			return err;
		b = kvt_medium_find(&m, &key);
		if (b && b->good) {
			*name = device(i);
			*byte = b->byte;
		}
		kvt_medium_free(&m);
	}
	return *name ? 0 : -ENOENT;
}

TEST(damaged)
{
	const char *name;
	struct state s;
	__u64 byte;

	ASSERT_EQ(0, find_block(1, &name, &byte));
	ASSERT_EQ(0, scribble(name, byte + 12345, 1, 1));
	ASSERT_EQ(0, bring_up(&s));
	EXPECT_EQ(KVTIER_MEMBER_CLEAN, s.dev[0].state);
	/* All but that one. */
	EXPECT_EQ((1 << (CHAIN - 1)) - 1, check_chain(&s.c, SET, 1));
	EXPECT_EQ((1 << CHAIN) - 1, check_chain(&s.c, SET, 2));
	EXPECT_EQ(0, send_down(&s));
	kvt_client_close(&s.c);
	EXPECT_EQ(0, kvt_teardown(&s.pool));
}

/* The tool writes through a mapping: what it has put right is so for the driver. */
TEST(repaired)
{
	const char *name = device(1);
	struct state s;

	ASSERT_EQ(0, kvt_dax_bind(name, "device_dax"));
	ASSERT_EQ(0, kvt_sh("kvtier fsck %s", name));
	ASSERT_EQ(0, scribble(name, 100, 1, 1));
	EXPECT_EQ(4, kvt_sh("kvtier fsck %s", name));
	EXPECT_EQ(1, kvt_sh("kvtier fsck --repair %s", name));
	EXPECT_EQ(0, kvt_sh("kvtier fsck --payload %s", name));
	ASSERT_EQ(0, bring_up(&s));
	EXPECT_EQ((1 << CHAIN) - 1, check_chain(&s.c, SET, 2));
	EXPECT_EQ(0, send_down(&s));
	kvt_client_close(&s.c);
	EXPECT_EQ(0, kvt_teardown(&s.pool));
}

/* Memory that the hardware has given up is an I/O error, not the end. */
TEST(poisoned)
{
	char paddr[32];
	const char *name;
	struct state s;
	__u64 byte;

	if (access(OFFLINE, W_OK))
		SKIP(return, "this kernel cannot poison pages");
	ASSERT_EQ(0, find_block(4, &name, &byte));
	ASSERT_EQ(0, kvt_sh_line(paddr, sizeof(paddr), "cat /sys/bus/dax/devices/%s/resource", name));
	ASSERT_EQ(0, bring_up(&s));
	ASSERT_EQ(0, kvt_sh("echo %#llx > " OFFLINE,
			    strtoull(paddr, NULL, 0) + byte + 8192));
	EXPECT_EQ((1 << (CHAIN - 1)) - 1, check_chain(&s.c, SET, 4));
	EXPECT_EQ((1 << CHAIN) - 1, check_chain(&s.c, SET, 5));
	/* The pool goes on. */
	EXPECT_EQ(CHAIN, put_chain(&s.c, SET, CHAINS + 1));
	EXPECT_EQ(0, send_down(&s));
	kvt_client_close(&s.c);
	EXPECT_EQ(0, kvt_teardown(&s.pool));
}

static int keep_busy(struct kvt_child *me, void *arg)
{
	struct state *s = arg;
	struct kvt_client c;
	int i, ret;

	if (kvt_client_open(&s->pool, &c, "pmem", BLOCK_BYTES))
		return 1;
	for (i = 0; kvt_hear(me, 0) == -ETIMEDOUT; i++) {
		put_chain(&c, WILD, WILD_MAX + i % WILD_MAX);
		ret = check_chain(&c, SET, i % CHAINS);
		if (ret == -EBADMSG)
			return 2;
		if (!i && kvt_say(me, 1))
			return 3;
	}
	return 0;
}

/* A device that is taken away fails its tier, and nothing else. */
TEST(removed)
{
	struct kvtier_tier_info info;
	struct kvt_child busy;
	struct state s;
	int i, there, sum = 0;

	ASSERT_EQ(0, bring_up(&s));
	ASSERT_EQ(0, kvt_spawn(&busy, keep_busy, &s));
	ASSERT_EQ(1, kvt_hear(&busy, 60000));
	ASSERT_EQ(0, kvt_sh("echo %s > /sys/bus/dax/drivers/kvtier/unbind", device(0)));
	ASSERT_EQ(0, tier_info(&s, 30, &info));
	EXPECT_EQ(KVTIER_TIER_FAILED, info.state);
	ASSERT_EQ(0, tier_info(&s, 31, &info));
	EXPECT_EQ(KVTIER_TIER_ONLINE, info.state);
	ASSERT_EQ(0, kvt_say(&busy, 1));
	EXPECT_EQ(0, kvt_join(&busy, 60000));
	/* The pool serves on: what it has is right, and new blocks are taken. */
	for (i = 0; i < CHAINS; i++) {
		there = check_chain(&s.c, SET, i);
		EXPECT_LE(0, there);
		sum += there > 0;
	}
	EXPECT_GT(CHAINS, sum);
	EXPECT_EQ(CHAIN, put_chain(&s.c, SET, CHAINS + 2));
	/* What was on it may have been durable nowhere else. */
	EXPECT_EQ(-1, fsync(s.c.fd));
	EXPECT_EQ(EIO, errno);
	ASSERT_EQ(0, tier_info(&s, 30, &info));
	ASSERT_EQ(0, kvt_tier_detach(&s.pool, (int)info.id, 0, 60 * KVT_SEC));
	EXPECT_EQ(0, send_down(&s));
	kvt_client_close(&s.c);
	EXPECT_EQ(0, kvt_pool_destroy(s.pool.ctl, s.pool.id));
	/* The pool has run without it. */
	EXPECT_EQ(-ESTALE, assemble(&s, 0, NR));
	EXPECT_EQ(-ESTALE, s.dev[0].error);
	EXPECT_EQ(0, s.dev[1].error);
	ASSERT_EQ(0, assemble(&s, 1, 1));
	EXPECT_EQ(1, s.a.nr_members);
	ASSERT_LE(0, kvt_tier_dram(&s.pool, 0, DRAM_BYTES));
	ASSERT_EQ(0, open_client(&s));
	EXPECT_EQ((1 << CHAIN) - 1, check_chain(&s.c, SET, CHAINS + 2));
	/* It was one of them, so it may come back as a new one. */
	EXPECT_LE(0, attach(&s.pool, KVTIER_TIER_DAX, 30, device(0), 0, 0));
	EXPECT_EQ(0, send_down(&s));
	kvt_client_close(&s.c);
	EXPECT_EQ(0, kvt_pool_destroy(s.pool.ctl, s.pool.id));
	EXPECT_EQ(0, assemble(&s, 0, NR));
	EXPECT_EQ(NR, s.a.nr_found);
	EXPECT_EQ(0, kvt_teardown(&s.pool));
}

/*
 * The CXL device itself goes, with all that is on it. That is noticed before its memory
 * answers nobody: from then on nothing is said to be durable. The last test: its region
 * does not come back.
 */
TEST(pulled)
{
	struct kvtier_tier_info info;
	struct kvt_child busy;
	char pci[256] = "", paddr[32];
	struct state s;
	int i;

	ASSERT_EQ(0, kvt_sh_line(paddr, sizeof(paddr), "cat /sys/bus/dax/devices/%s/resource",
				 device(1)));
	ASSERT_EQ(0, bring_up(&s));
	kvt_sh_line(pci, sizeof(pci), "readlink -f /sys/bus/cxl/devices/mem0 | "
		    "sed 's,/mem0$,,'");
	ASSERT_TRUE(strstr(pci, "/pci") != NULL);
	ASSERT_EQ(0, kvt_spawn(&busy, keep_busy, &s));
	ASSERT_EQ(1, kvt_hear(&busy, 60000));
	/* Who reports a bad page looks at it once more when he has let the device go. */
	kvt_sh("test ! -w " OFFLINE " || echo %#llx > " OFFLINE " & echo 1 > %s/remove; wait",
	       strtoull(paddr, NULL, 0) + 8 * KVT_MIB, pci);
	EXPECT_TRUE(KVT_UNTIL(10000, !kvt_sh("dmesg | grep -q '%s'", GOING)));
	for (i = 0; i < NR; i++) {
		ASSERT_EQ(0, tier_info(&s, 30 + i, &info));
		EXPECT_EQ(KVTIER_TIER_FAILED, info.state);
	}
	ASSERT_EQ(0, kvt_say(&busy, 1));
	EXPECT_EQ(0, kvt_join(&busy, 60000));
	/* Memory is full: that by age what came last stays is certain. */
	ASSERT_EQ(0, kvt_sysfs_write(&s.pool, "policy", "lru"));
	EXPECT_EQ(CHAIN, put_chain(&s.c, SET, CHAINS + 3));
	EXPECT_EQ((1 << CHAIN) - 1, check_chain(&s.c, SET, CHAINS + 3));
	EXPECT_EQ(-1, fsync(s.c.fd));
	EXPECT_EQ(EIO, errno);
	for (i = 0; i < NR; i++) {
		ASSERT_EQ(0, tier_info(&s, 30 + i, &info));
		EXPECT_EQ(0, kvt_tier_detach(&s.pool, (int)info.id, 0, 60 * KVT_SEC));
	}
	kvt_client_close(&s.c);
	EXPECT_EQ(0, kvt_teardown(&s.pool));
}

TEST_HARNESS_MAIN
