// SPDX-License-Identifier: GPL-2.0
/*
 * A member across a network: the kernel's own NVMe target, over TCP on the loopback. A
 * connection that comes back in time costs time; one that does not costs what was there.
 */
#include "kvt_test.h"

#define NVMET		"/sys/kernel/config/nvmet"
#define NQN		"kvt-selftest"
#define SUBSYS		NVMET "/subsystems/" NQN
#define PORT		NVMET "/ports/77"
#define LINK		PORT "/subsystems/" NQN
#define TCP_PORT	"47420"
#define BLOCK_BYTES	(64 * KVT_KIB)
#define DISK_BYTES	(32 * KVT_MIB)
#define DRAM_BYTES	(8 * KVT_MIB)
#define NR		32
#define SET		59

FIXTURE(fabric)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvt_disk local;
	struct kvt_disk far;	/* behind the target */
	char node[32];		/* as the host sees it */
	int ctrl;
	int dram;
	int tier;
};

static int target_up(const struct kvt_disk *d)
{
	int ret;

	ret = kvt_sh("mkdir " SUBSYS " && cd " SUBSYS " && mkdir namespaces/1 && "
		     "echo 1 > attr_allow_any_host && echo %s > namespaces/1/device_path && "
		     "echo 1 > namespaces/1/enable", d->dev);
	return ret ? ret :
	       kvt_sh("mkdir " PORT " && cd " PORT " && echo ipv4 > addr_adrfam && "
		      "echo tcp > addr_trtype && echo 127.0.0.1 > addr_traddr && "
		      "echo " TCP_PORT " > addr_trsvcid && ln -s " SUBSYS " " LINK);
}

static void target_down(void)
{
	kvt_sh("rm -f " LINK "; rmdir " PORT " " SUBSYS "/namespaces/1 " SUBSYS
	       " 2>/dev/null");
}

/* The target lets go of the connection, and takes no new one. */
static int drop(void)
{
	return kvt_sh("rm " LINK);
}

/* It takes connections again in a moment, when others wait for it. */
static int back_in_a_moment(void)
{
	/* Whoever has our end of the pipe would be waited for. */
	return kvt_sh("(sleep 1; ln -s " SUBSYS " " LINK ") >/dev/null 2>&1 &");
}

/* The disk of our subsystem, whichever number it has. */
static bool find_node(FIXTURE_DATA(fabric) *self)
{
	char name[32] = "";

	kvt_sh_line(name, sizeof(name), "cd /sys/block; for d in nvme*; do "
		    "[ \"$(cat $d/device/subsysnqn 2>/dev/null)\" = " NQN " ] && "
		    "[ -b /dev/$d ] && echo $d; done");
	snprintf(self->node, sizeof(self->node), "/dev/%s", name);
	return name[0];
}

/* Controller, or -errno. Times in seconds; @fail -1: I/O waits as long as it takes. */
static int connect_host(FIXTURE_DATA(fabric) *self, int loss, int fail)
{
	int fd = open("/dev/nvme-fabrics", O_RDWR | O_CLOEXEC), n, ctrl = -EIO;
	char line[256];

	if (fd < 0)
		return -errno;
	n = snprintf(line, sizeof(line), "transport=tcp,traddr=127.0.0.1,trsvcid=" TCP_PORT
		     ",nqn=" NQN ",nr_io_queues=1,reconnect_delay=1,ctrl_loss_tmo=%d", loss);
	if (fail >= 0)
		n += snprintf(line + n, sizeof(line) - n, ",fast_io_fail_tmo=%d", fail);
	if (write(fd, line, n) != n) {
		ctrl = -errno;
	} else {
		n = read(fd, line, sizeof(line) - 1);
		line[n > 0 ? n : 0] = 0;
		if (sscanf(line, "instance=%d", &ctrl) != 1)
			ctrl = -EPROTO;
	}
	close(fd);
	if (ctrl >= 0 && !KVT_UNTIL(10000, find_node(self)))
		return -ENODEV;
	return ctrl;
}

static bool ctrl_is(int ctrl, const char *state)
{
	char line[32] = "";

	kvt_sh_line(line, sizeof(line), "cat /sys/class/nvme/nvme%d/state 2>/dev/null", ctrl);
	return !strcmp(line, state);
}

static int attach_far(FIXTURE_DATA(fabric) *self)
{
	struct kvtier_tier_attach a;
	int err;

	kvt_tier_args(&self->pool, &a, KVTIER_TIER_BDEV, 20);
	snprintf(a.path, sizeof(a.path), "%s", self->node);
	KVT_UNTIL(10000, (err = kvt_ioctl(self->pool.ctl, KVTIER_OP_TIER_ATTACH, &a)) != -EBUSY);
	return err ? err : (int)a.tier_id;
}

FIXTURE_SETUP(fabric)
{
	self->ctrl = -1;
	self->c.fd = -1;
	if (kvt_sh("modprobe -q -a nvmet nvmet-tcp nvme-tcp") ||
	    (access(NVMET, F_OK) && kvt_sh("mount -t configfs none /sys/kernel/config")) ||
	    access(NVMET, F_OK))
		SKIP(return, "this kernel has no NVMe over TCP");
	target_down();
	ASSERT_EQ(0, kvt_disk_make(&self->local, "local", DISK_BYTES));
	ASSERT_EQ(0, kvt_disk_make(&self->far, "far", DISK_BYTES));
	ASSERT_EQ(0, target_up(&self->far));
	ASSERT_EQ(0, kvt_setup(&self->pool));
	self->dram = kvt_tier_dram(&self->pool, 0, DRAM_BYTES);
	ASSERT_LE(0, self->dram);
	ASSERT_LE(0, kvt_tier_disk(&self->pool, 30, &self->local));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "fabric", BLOCK_BYTES));
}

FIXTURE_TEARDOWN(fabric)
{
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	if (self->ctrl >= 0)
		kvt_sh("echo 1 > /sys/class/nvme/nvme%d/delete_controller 2>/dev/null",
		       self->ctrl);
	target_down();
	kvt_disk_remove(&self->local);
	kvt_disk_remove(&self->far);
}

static int put(FIXTURE_DATA(fabric) *self, int first, int nr)
{
	int i, ret, sum = 0;

	for (i = first; i < first + nr; i++) {
		struct kvt_key key = kvt_key(SET, i);

		ret = kvt_put(&self->c, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1);
		if (ret < 0)
			return ret;
		sum += ret;
	}
	return sum;
}

static int check(FIXTURE_DATA(fabric) *self, int first, int nr)
{
	int i, ret, sum = 0;

	for (i = first; i < first + nr; i++) {
		struct kvt_key key = kvt_key(SET, i);

		ret = kvt_check(&self->c, 0, &key, 1, 30 * KVT_SEC);
		if (ret < 0)
			return ret;
		sum += ret;
	}
	return sum;
}

static int send_down(FIXTURE_DATA(fabric) *self)
{
	int err = kvt_tier_detach(&self->pool, self->dram, 0, 60 * KVT_SEC);

	if (err)
		return err;
	self->dram = kvt_tier_dram(&self->pool, 0, DRAM_BYTES);
	return self->dram < 0 ? self->dram : 0;
}

/* The first NR blocks are on the local disk, the next NR behind the network. */
static int spread(FIXTURE_DATA(fabric) *self, int loss, int fail)
{
	int err;

	if (put(self, 0, NR) != NR)
		return -ENOSPC;
	err = send_down(self);
	if (err)
		return err;
	self->ctrl = connect_host(self, loss, fail);
	if (self->ctrl < 0)
		return self->ctrl;
	self->tier = attach_far(self);
	if (self->tier < 0)
		return self->tier;
	if (put(self, NR, NR) != NR)
		return -ENOSPC;
	return send_down(self);
}

static struct kvtier_tier_stat stat_far(FIXTURE_DATA(fabric) *self)
{
	struct kvtier_tier_stat tiers[KVTIER_TIERS_MAX];
	struct kvtier_stat st;
	int i, nr = kvt_tier_stats(self->c.fd, &st, tiers);

	for (i = 0; i < nr; i++)
		if ((int)tiers[i].id == self->tier)
			return tiers[i];
	return (struct kvtier_tier_stat){ 0 };
}

/* The connection is lost and comes back: everything waits, nothing is lost. */
TEST_F(fabric, short_drop)
{
	int i;

	ASSERT_EQ(0, spread(self, 120, -1));
	ASSERT_EQ(NR, (int)stat_far(self).nr_blocks);
	ASSERT_EQ(0, drop());
	ASSERT_TRUE(KVT_UNTIL(10000, ctrl_is(self->ctrl, "connecting")));
	/* In a moment; reads are waiting by then. */
	ASSERT_EQ(0, back_in_a_moment());
	EXPECT_EQ(NR / 2, check(self, NR, NR / 2));
	EXPECT_TRUE(ctrl_is(self->ctrl, "live"));
	/* The same for writes. */
	ASSERT_EQ(NR, put(self, 2 * NR, NR));
	ASSERT_EQ(0, drop());
	ASSERT_TRUE(KVT_UNTIL(10000, ctrl_is(self->ctrl, "connecting")));
	ASSERT_EQ(0, back_in_a_moment());
	EXPECT_EQ(0, send_down(self));
	EXPECT_LT(NR, (int)stat_far(self).nr_blocks);
	EXPECT_EQ(0, fsync(self->c.fd));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(NR, check(self, i * NR, NR));
	EXPECT_EQ(0, stat_far(self).io_errors);
}

/* It does not come back in time: that tier fails, and nothing else does. */
TEST_F(fabric, lost_and_back)
{
	char state[32] = "";
	int old;

	ASSERT_EQ(0, spread(self, 4, 1));
	ASSERT_EQ(NR, (int)stat_far(self).nr_blocks);
	ASSERT_EQ(0, drop());
	ASSERT_TRUE(KVT_UNTIL(10000, ctrl_is(self->ctrl, "connecting")));
	EXPECT_EQ(0, check(self, NR, 4));
	EXPECT_EQ(NR, check(self, 0, NR));
	EXPECT_EQ(NR, put(self, 2 * NR, NR));
	EXPECT_EQ(0, send_down(self));
	EXPECT_EQ(NR, check(self, 2 * NR, NR));
	EXPECT_TRUE(KVT_UNTIL(30000, kvt_sysfs_read(&self->pool, "tiers/bdev20/state", state,
						    sizeof(state)) > 0 &&
				     !strcmp(state, "failed\n"))) TH_LOG("%s", state);
	EXPECT_EQ(0, check(self, NR, NR));
	EXPECT_EQ(2 * NR, check(self, 0, NR) + check(self, 2 * NR, NR));
	/* And back: as a new member, although it is the old one. */
	old = self->tier;
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, old, 0, 20 * KVT_SEC));
	ASSERT_EQ(0, kvt_sh("ln -s " SUBSYS " " LINK));
	ASSERT_TRUE(KVT_UNTIL(10000, (self->ctrl = connect_host(self, 60, -1)) >= 0));
	self->tier = attach_far(self);
	ASSERT_LE(0, self->tier);
	EXPECT_EQ(0, check(self, NR, NR));
	EXPECT_EQ(NR, put(self, NR, NR));
	EXPECT_EQ(0, send_down(self));
	EXPECT_LT(0, (int)stat_far(self).nr_blocks);
	EXPECT_EQ(3 * NR, check(self, 0, NR) + check(self, NR, NR) + check(self, 2 * NR, NR));
	EXPECT_EQ(0, stat_far(self).io_errors);
}

TEST_HARNESS_MAIN
