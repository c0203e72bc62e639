// SPDX-License-Identifier: GPL-2.0
/*
 * Tiers that go while they are used: drained, unbound, unplugged. Readers and fillers
 * go on all the time, and compare every byte; what they may meet is SIGBUS. Pages that a
 * pipe or a ring holds outlive their device, and keep the module.
 *
 * A CXL device of its own is used (serial 2), so that what is unplugged for good is
 * nobody else's.
 *
 * The emulator loses single accesses to emulated CXL memory while the memory map changes, as
 * with each PCI device that comes or goes, or is only told to stop: a load is 0 or all ones, a
 * store does not happen. So nobody has CXL memory mapped when a disk goes.
 */
#include "kvt_test.h"
#include <liburing.h>
#include <linux/pci_regs.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define BLOCK_BYTES	(64 * KVT_KIB)
#define CHAIN		8
#define CHAINS		12	/* of each loader: together more than both memory tiers */
#define LOADERS		3
#define SET		31
#define REGION_BYTES	(256 * KVT_MIB)
#define DAX_BYTES	(4 * KVT_MIB)
#define ZOMBIES		"/sys/module/kvtier/parameters/dax_zombies"

/**
 * struct shared - what the loaders tell
 * @rounds: each one's, finished
 * @caught: how often SIGBUS met any
 */
struct shared {
	atomic_int rounds[LOADERS];
	atomic_int caught;
};

struct load {
	const struct kvt_pool *pool;
	struct shared *shared;
	int nr;
};

FIXTURE(removal)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct shared *shared;
	struct load load[LOADERS];
	struct kvt_child child[LOADERS];
	int loaders;
	char dax_name[32];
	int dax;
	int disk;
};

/* Serial 2's instance, made anew if its device has been away. */
static int find_dax(char *name, size_t len)
{
	return kvt_sh_line(name, len,
			   ". /kvt/guest/cxl.sh && cxl_wait_endpoints 2 && cd $CXL_BUS && "
			   "for r in region*; do [ -e $r/driver ] || [ ! -e $r ] || "
			   "echo $r > decoder0.0/delete_region; done; "
			   "r=$(cat /tmp/kvt-removal 2>/dev/null); "
			   "ls $r/dax_region*/ 2>/dev/null | grep ^dax[0-9] && exit 0; "
			   "r=$(cxl_create_region 2 %llu noautoprobe) || exit 1; "
			   "echo $r > /tmp/kvt-removal; "
			   "ls $r/dax_region*/ | grep ^dax[0-9]",
			   (unsigned long long)REGION_BYTES);
}

static int tier_on(const struct kvt_pool *p, const char *dax)
{
	struct kvtier_tier_attach a;
	int err = kvt_dax_bind(dax, "kvtier");

	if (err)
		return err;
	kvt_tier_args(p, &a, KVTIER_TIER_DAX, 0);
	a.capacity_bytes = DAX_BYTES;
	snprintf(a.path, sizeof(a.path), "%s", dax);
	KVT_UNTIL(10000, (err = kvt_ioctl(p->ctl, KVTIER_OP_TIER_ATTACH, &a)) != -EBUSY);
	return err ? err : (int)a.tier_id;
}

FIXTURE_SETUP(removal)
{
	if (!kvt_env_dax() || access("/kvt/guest/cxl.sh", R_OK))
		SKIP(return, "not on the test machine");
	if (!kvt_env_bdev())
		SKIP(return, "no block device to use (KVT_BDEV)");
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_EQ(0, find_dax(self->dax_name, sizeof(self->dax_name)));
	self->dax = tier_on(&self->pool, self->dax_name);
	ASSERT_LE(0, self->dax);
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 1, 8 * KVT_MIB));
	self->disk = kvt_tier_bdev(&self->pool, 2, 128 * KVT_MIB);
	ASSERT_LE(0, self->disk);
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "removal", BLOCK_BYTES));
	self->shared = mmap(NULL, sizeof(*self->shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)self->shared);
}

FIXTURE_TEARDOWN(removal)
{
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	/* What has been taken out of its slot comes back, under the name it had. */
	EXPECT_EQ(0, kvt_sh("echo 1 > /sys/bus/pci/rescan"));
	EXPECT_TRUE(KVT_UNTIL(30000, !access(kvt_env_bdev(), R_OK)));
	munmap(self->shared, sizeof(*self->shared));
}

/* --- load ------------------------------------------------------------------------------- */

static sigjmp_buf bus_env;

static void bus_handler(int sig)
{
	siglongjmp(bus_env, sig);
}

/* Store a chain, then read all; nothing may be wrong. */
static int load_round(const struct kvt_client *c, int first, int nr)
{
	struct kvt_key keys[CHAIN];
	int i, ret;

	kvt_keys(keys, SET, (first + nr % CHAINS) * CHAIN, CHAIN);
	ret = kvt_put(c, KVTIER_RESERVE_WAIT, 0, keys, NULL, CHAIN);
	for (i = 0; i < CHAINS && ret >= 0; i++) {
		kvt_keys(keys, SET, (first + i) * CHAIN, CHAIN);
		ret = kvt_check(c, 0, keys, CHAIN, 10 * KVT_SEC);
	}
	return ret < 0 ? ret : 0;
}

static int loader(struct kvt_child *me, void *arg)
{
	struct sigaction sa = { .sa_handler = bus_handler };
	static struct kvt_client c;
	struct load *l = arg;
	int ret;

	sigaction(SIGBUS, &sa, NULL);
	KVT_CHILD_CHECK(!kvt_client_open(l->pool, &c, "removal", BLOCK_BYTES));
	while (kvt_hear(me, 0) == -ETIMEDOUT) {
		if (sigsetjmp(bus_env, 1)) {
			/* What it held goes with its file. */
			l->shared->caught++;
			kvt_client_close(&c);
			KVT_CHILD_CHECK(!kvt_client_open(l->pool, &c, "removal", BLOCK_BYTES));
			continue;
		}
		ret = load_round(&c, 1000 * (l->nr + 1), l->shared->rounds[l->nr]);
		if (ret)
			fprintf(stderr, "# child %d: %s\n", l->nr, strerror(-ret));
		KVT_CHILD_CHECK(!ret);
		l->shared->rounds[l->nr]++;
	}
	kvt_client_close(&c);
	return 0;
}

static int start_load(FIXTURE_DATA(removal) *self)
{
	int i, err = 0;

	for (i = 0; i < LOADERS && !err; i++) {
		self->load[i] = (struct load){ &self->pool, self->shared, i };
		err = kvt_spawn(&self->child[i], loader, &self->load[i]);
	}
	return err;
}

/* Every loader finishes @nr rounds from now on. */
static bool load_goes_on(FIXTURE_DATA(removal) *self, int nr)
{
	int i, before[LOADERS];
	bool ok = true;

	for (i = 0; i < LOADERS; i++)
		before[i] = self->shared->rounds[i];
	for (i = 0; i < LOADERS; i++)
		ok = ok && KVT_UNTIL(60000, self->shared->rounds[i] - before[i] >= nr);
	return ok;
}

static int stop_load(FIXTURE_DATA(removal) *self)
{
	int i, ret, bad = 0;

	for (i = 0; i < LOADERS; i++)
		kvt_say(&self->child[i], 0);
	for (i = 0; i < LOADERS; i++) {
		ret = kvt_join(&self->child[i], 60000);
		if (ret)
			bad = ret;
	}
	return bad;
}

/* --- looks ------------------------------------------------------------------------------ */

static bool tier_is(FIXTURE_DATA(removal) *self, int id, __u32 state)
{
	struct kvtier_tier_info tiers[KVTIER_TIERS_MAX];
	struct kvtier_query q;
	int nr = kvt_query(self->c.fd, &q, tiers), i;

	for (i = 0; i < nr; i++)
		if ((int)tiers[i].id == id)
			return tiers[i].state == state;
	return false;
}

static __u64 tier_used(FIXTURE_DATA(removal) *self, int id)
{
	struct kvtier_tier_info tiers[KVTIER_TIERS_MAX];
	struct kvtier_query q;
	int nr = kvt_query(self->c.fd, &q, tiers), i;

	for (i = 0; i < nr; i++)
		if ((int)tiers[i].id == id)
			return tiers[i].used_bytes;
	return ~0ull;
}

static int zombies(void)
{
	char line[16];

	return kvt_sh_line(line, sizeof(line), "cat " ZOMBIES) ? -EIO : atoi(line);
}

static int unload(void)
{
	return syscall(SYS_delete_module, "kvtier", O_NONBLOCK) ? -errno : 0;
}

/* PCI devices as sysfs has them. */
static int pci_of_cxl(char *path, size_t len)
{
	return kvt_sh_line(path, len, "for m in /sys/bus/cxl/devices/mem*; do "
			   "[ $(cat $m/serial) = 0x2 ] && dirname $(readlink -f $m); done");
}

static int pci_of_disk(char *path, size_t len)
{
	const char *node = strrchr(kvt_env_bdev(), '/') + 1;

	return kvt_sh_line(path, len, "s=$(cat /sys/block/%s/device/serial) && "
			   "for c in /sys/class/nvme/nvme*; do [ \"$(cat $c/serial)\" = \"$s\" ] && "
			   "readlink -f $c/device; done", node);
}

/* --- pages that somebody holds -------------------------------------------------------------- */

/**
 * struct held - a reader's page in a pipe, and a filler's block as a ring's buffer
 * @read: leased
 * @fill: reserved
 */
struct held {
	struct kvtier_block_result read;
	struct kvtier_block_result fill;
	struct io_uring ring;
	int line[2];
};

/* Blocks of the tier @dax, which is the fastest and has room. */
static int hold(FIXTURE_DATA(removal) *self, struct held *h)
{
	struct kvt_key key[2] = { kvt_key(SET, 0), kvt_key(SET, 1) };
	struct iovec iov;

	memset(h, 0, sizeof(*h));
	if (kvt_put(&self->c, KVTIER_RESERVE_WAIT, 0, &key[0], NULL, 1) != 1 ||
	    kvt_get(self->c.fd, 0, 0, &key[0], 1, &h->read, 0) != 1 ||
	    kvt_reserve(self->c.fd, 0, 0, &key[1], NULL, 1, &h->fill, 0) != 1 ||
	    (int)h->read.tier != self->dax || (int)h->fill.tier != self->dax)
		return -ENODEV;
	iov.iov_base = kvt_rd(&self->c, h->read.offset);
	iov.iov_len = 4096;
	if (pipe2(h->line, O_CLOEXEC) || vmsplice(h->line[1], &iov, 1, 0) != 4096)
		return -errno;
	iov.iov_base = kvt_wr(&self->c, h->fill.offset);
	iov.iov_len = BLOCK_BYTES;
	return io_uring_queue_init(8, &h->ring, 0) ?: io_uring_register_buffers(&h->ring, &iov, 1);
}

/*
 * The tier is lost. No mapping of held pages is left; the module stays for as long as the
 * pipe or the ring has some, and goes after that.
 */
static int outlive(FIXTURE_DATA(removal) *self, struct held *h)
{
	int err;

	if (kvt_touch_read(kvt_rd(&self->c, h->read.offset)) != SIGBUS ||
	    kvt_touch_write(kvt_wr(&self->c, h->fill.offset), 1) != SIGBUS)
		return -EFAULT;
	kvt_client_close(&self->c);
	err = kvt_pool_destroy(self->pool.ctl, self->pool.id);
	if (err)
		return err;
	close(self->pool.ctl);
	if (zombies() != 1)
		return -ECHILD;
	err = unload();
	if (err != -EBUSY && err != -EAGAIN)
		return -EBADF;
	close(h->line[0]);
	close(h->line[1]);
	/* One has let go; the other has not. */
	kvt_sh("echo; sleep 0.1");
	if (zombies() != 1 || !unload())
		return -EBADFD;
	io_uring_queue_exit(&h->ring);
	if (!KVT_UNTIL(20000, zombies() == 0))
		return -ETIMEDOUT;
	if (!KVT_UNTIL(10000, unload() == 0))
		return -EBUSY;
	return kvt_sh("modprobe kvtier") ? -ENOENT : kvt_setup(&self->pool);
}

static int pull(const void *pci)
{
	return kvt_sh("echo 1 > %s/remove", (const char *)pci);
}

static int pull_child(struct kvt_child *me, void *pci)
{
	(void)me;
	return pull(pci) ? 1 : 0;
}

/* --- tests -------------------------------------------------------------------------------- */

TEST_F_TIMEOUT(removal, drain_under_load, 200)
{
	struct kvtier_tier_op op = {
		.size = sizeof(op), .pool_id = self->pool.id, .tier_id = self->dax,
		.timeout_ns = 60 * KVT_SEC,
	};

	ASSERT_EQ(0, start_load(self));
	ASSERT_TRUE(load_goes_on(self, 1));
	ASSERT_LT(0, tier_used(self, self->dax));
	ASSERT_EQ(0, kvt_ioctl(self->pool.ctl, KVTIER_OP_TIER_DRAIN, &op));
	EXPECT_TRUE(tier_is(self, self->dax, KVTIER_TIER_DRAINING));
	EXPECT_EQ(0, tier_used(self, self->dax));
	EXPECT_TRUE(load_goes_on(self, 1));
	EXPECT_EQ(0, tier_used(self, self->dax));
	EXPECT_EQ(0, stop_load(self));
	/* Nobody's mapping was taken from him. */
	EXPECT_EQ(0, self->shared->caught);
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, self->dax, 0, KVT_SEC));
}

TEST_F_TIMEOUT(removal, unbound_while_pages_are_held, 120)
{
	struct held h;

	ASSERT_EQ(0, hold(self, &h));
	ASSERT_EQ(0, zombies());
	ASSERT_EQ(0, kvt_sh("echo %s > /sys/bus/dax/drivers/kvtier/unbind", self->dax_name));
	EXPECT_TRUE(tier_is(self, self->dax, KVTIER_TIER_FAILED));
	EXPECT_EQ(0, outlive(self, &h));
}

/*
 * CXL memory, and the disk below it as soon as nobody has that mapped: the one is still being
 * taken apart when the other goes.
 */
TEST_F_TIMEOUT(removal, both_at_once_under_load, 200)
{
	char cxl[256] = "", disk[256] = "";
	struct kvt_child puller;
	struct kvtier_stat st;
	struct held h;

	ASSERT_EQ(0, hold(self, &h));
	pci_of_cxl(cxl, sizeof(cxl));
	pci_of_disk(disk, sizeof(disk));
	ASSERT_TRUE(strstr(cxl, "/pci") && strstr(disk, "/pci"));
	ASSERT_EQ(0, start_load(self));
	ASSERT_TRUE(load_goes_on(self, 1));
	ASSERT_EQ(0, kvt_spawn(&puller, pull_child, cxl));
	EXPECT_TRUE(KVT_UNTIL(10000, tier_is(self, self->dax, KVTIER_TIER_FAILED)));
	EXPECT_EQ(0, pull(disk));
	EXPECT_TRUE(KVT_UNTIL(10000, tier_is(self, self->disk, KVTIER_TIER_FAILED)));
	EXPECT_EQ(0, kvt_join(&puller, 60000));
	EXPECT_TRUE(load_goes_on(self, 1));
	EXPECT_EQ(0, stop_load(self));
	EXPECT_EQ(1, kvt_release(self->c.fd, &h.read.handle, 1, NULL));
	ASSERT_EQ(0, kvt_stat(self->c.fd, KVTIER_STAT_POOL, &st));
	EXPECT_EQ(0, st.leases);
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, self->disk, 0, 20 * KVT_SEC));
	EXPECT_EQ(0, outlive(self, &h));
}

/* Memory of the machine's own in its place, so that blocks still move between two tiers of it. */
static int use_no_cxl(FIXTURE_DATA(removal) *self)
{
	int err = kvt_tier_detach(&self->pool, self->dax, 0, KVT_SEC);

	return err ? err : kvt_tier_dram(&self->pool, 0, DAX_BYTES);
}

/* The disk alone: what was there is missed, and what is in memory serves. */
static void lose_the_disk(struct __test_metadata *_metadata, FIXTURE_DATA(removal) *self,
			  int (*lose)(const void *what), const void *what)
{
	ASSERT_EQ(0, start_load(self));
	/* Some of it is there, and moves go both ways. */
	ASSERT_TRUE(KVT_UNTIL(60000, tier_used(self, self->disk) > 0));
	ASSERT_TRUE(load_goes_on(self, 1));
	ASSERT_EQ(0, lose(what));
	EXPECT_TRUE(KVT_UNTIL(60000, !tier_is(self, self->disk, KVTIER_TIER_ONLINE)));
	EXPECT_TRUE(load_goes_on(self, 1));
	EXPECT_EQ(0, stop_load(self));
	/* Nobody has it mapped, so nobody meets it. */
	EXPECT_EQ(0, self->shared->caught);
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, self->disk, KVTIER_DETACH_DISCARD,
				     20 * KVT_SEC));
}

TEST_F_TIMEOUT(removal, disk_pulled_under_load, 200)
{
	char disk[256] = "";

	ASSERT_LE(0, use_no_cxl(self));
	pci_of_disk(disk, sizeof(disk));
	ASSERT_TRUE(strstr(disk, "/pci") != NULL);
	lose_the_disk(_metadata, self, pull, disk);
}

static int put_u32(int fd, off_t at, __u32 value)
{
	return pwrite(fd, &value, sizeof(value), at) == sizeof(value) ? 0 : -EIO;
}

/*
 * It answers nobody any more, as when it is torn out of its slot: its registers are nowhere
 * (base addresses of 0), and it may neither write to memory nor interrupt (command of 0).
 */
static int vanish(const char *pci)
{
	char path[300];
	int fd, err;

	snprintf(path, sizeof(path), "%s/config", pci);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = put_u32(fd, PCI_COMMAND, 0) ?: put_u32(fd, PCI_BASE_ADDRESS_0, 0) ?:
	      put_u32(fd, PCI_BASE_ADDRESS_1, 0);
	close(fd);
	return err;
}

/*
 * Its driver is told to look, as a host does whose slot or error handler notices: what is under
 * way is never answered. It is not left to find out by a request that times out. If that is a
 * flush, its timeout handler holds the flush while it waits for all that was cancelled to be
 * over, which a flush that is held never is (blk-flush.c, flush_end_io()): for ever, whoever uses
 * the device. Until the slot takes the device away, multipath may keep requests back for a path
 * that could come.
 */
static int tear_out(const void *pci)
{
	char line[64] = "";

	if (vanish(pci))
		return -ENXIO;
	/* Says that it failed. */
	kvt_sh("echo 1 > $(echo %s/nvme/nvme*)/reset_controller", (const char *)pci);
	if (kvt_sh_line(line, sizeof(line), "cat %s/nvme/nvme*/state", (const char *)pci) ||
	    strcmp(line, "dead"))
		return -EBUSY;
	return pull(pci);
}

TEST_F_TIMEOUT(removal, disk_torn_out_under_load, 300)
{
	const char *kernel = getenv("KVT_KERNEL");
	char disk[256] = "";

	/* Queues are frozen by one of its workers and thawed by another: lockdep oopses over that. */
	if (kernel && !strcmp(kernel, "debug"))
		SKIP(return, "this kernel's lockdep does not survive its nvme driver's reset");
	ASSERT_LE(0, use_no_cxl(self));
	pci_of_disk(disk, sizeof(disk));
	ASSERT_TRUE(strstr(disk, "/pci") != NULL);
	lose_the_disk(_metadata, self, tear_out, disk);
}

static int fail_all(const void *dm)
{
	return kvt_dm_set(dm, KVT_DM_ERROR);
}

/* It is there still, and does nothing any more. */
TEST_F_TIMEOUT(removal, disk_dies_under_load, 300)
{
	struct kvt_dm dm;

	ASSERT_EQ(0, kvt_tier_detach(&self->pool, self->disk, 0, 20 * KVT_SEC));
	ASSERT_EQ(0, kvt_dm_make(&dm, "dies", 128 * KVT_MIB));
	self->disk = kvt_tier_dm(&self->pool, 2, &dm, 0);
	ASSERT_LE(0, self->disk);
	lose_the_disk(_metadata, self, fail_all, &dm);
	kvt_dm_remove(&dm);
}

/* --- from outside ------------------------------------------------------------------------- */

/* Tell the emulator, if the machine was started with its monitor at hand. */
static int tell_emulator(const char *command)
{
	char port[64] = "/dev/";
	int fd, err = 0;

	kvt_sh_line(port + 5, sizeof(port) - 5, "cd /sys/class/virtio-ports && for p in *; do "
		    "[ \"$(cat $p/name 2>/dev/null)\" = kvt.monitor ] && echo $p; done");
	if (!port[5])
		return -ENODEV;
	fd = open(port, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, command, strlen(command)) != (ssize_t)strlen(command))
		err = -EIO;
	close(fd);
	return err;
}

/* The last test: it does not come back. */
TEST_F_TIMEOUT(removal, unplugged_under_load, 200)
{
	const char *kernel = getenv("KVT_KERNEL");
	char cxl[256] = "";
	struct held h;
	int err;

	if (kernel && !strcmp(kernel, "debug"))
		SKIP(return, "lockdep finds fault with this kernel's pciehp, and is off then");
	pci_of_cxl(cxl, sizeof(cxl));
	ASSERT_TRUE(strstr(cxl, "/pci") != NULL);
	ASSERT_EQ(0, hold(self, &h));
	ASSERT_EQ(0, start_load(self));
	ASSERT_TRUE(load_goes_on(self, 1));
	err = tell_emulator("device_del cxldev1\n");
	if (err == -ENODEV)
		SKIP(return, "no monitor of the emulator");
	ASSERT_EQ(0, err);
	EXPECT_TRUE(KVT_UNTIL(60000, tier_is(self, self->dax, KVTIER_TIER_FAILED)));
	EXPECT_TRUE(KVT_UNTIL(20000, access(cxl, F_OK)));
	EXPECT_TRUE(load_goes_on(self, 1));
	EXPECT_EQ(0, stop_load(self));
	EXPECT_EQ(0, outlive(self, &h));
}

TEST_HARNESS_MAIN
