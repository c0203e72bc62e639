// SPDX-License-Identifier: GPL-2.0
/*
 * Every allocation and every copy from or to user space fails once, on the path of
 * every command: the command fails cleanly or gets by without, and nothing is left
 * behind. Needs a kernel with fault injection.
 */
#include "abi_rows.h"

#define DEBUGFS		"/sys/kernel/debug"
#define FAILS_MAX	5000	/* chances to fail of one command */

static int fail_fd = -1;
static int said_fd = -1;	/* the kernel's log */

/* Commands that allocate nothing: all others are to be seen to fail in that. */
static const char *const no_allocations[] = {
	"ABORT", "RELEASE", "NS_CLAIM", "POOL_SCRUB", "TIER_DETACH", "TIER_DRAIN",
};

/* So many are taken one by one, then ever fewer: all at full length. */
static int fails_each(void)
{
	return kvt_env_long() ? FAILS_MAX : 2;
}

static int next_fail(int nth)
{
	return nth + (nth < fails_each() ? 1 : nth * 3 / 4);
}

static int arm(int nth)
{
	char buf[16];

	if (fail_fd < 0)
		fail_fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	snprintf(buf, sizeof(buf), "%d", nth);
	return pwrite(fail_fd, buf, strlen(buf), 0) < 0 ? -errno : 0;
}

/* Whether the failure that was asked for happened; disarms it. */
static bool happened(void)
{
	char buf[16] = "";

	if (pread(fail_fd, buf, sizeof(buf) - 1, 0) < 0)
		return false;
	arm(0);
	return atoi(buf) == 0;
}

/* Sleeping allocations are to fail as well, and quietly. */
static bool prepare_injection(void)
{
	if (access("/proc/self/fail-nth", W_OK) || access(DEBUGFS "/failslab", F_OK))
		return false;
	return !kvt_sh("echo N > " DEBUGFS "/failslab/ignore-gfp-wait && "
		       "echo N > " DEBUGFS "/fail_page_alloc/ignore-gfp-wait && "
		       "echo N > " DEBUGFS "/fail_page_alloc/ignore-gfp-highmem && "
		       "echo 0 > " DEBUGFS "/fail_page_alloc/min-order && "
		       "for d in " DEBUGFS "/fail*; do "
		       "[ ! -e $d/verbose ] || echo 0 > $d/verbose; done");
}

FIXTURE(failnth)
{
	struct abi a;
	char arg[ABI_ARG_MAX];
};

FIXTURE_SETUP(failnth)
{
	if (!prepare_injection())
		SKIP(return, "this kernel has no fault injection");
	ASSERT_EQ(0, abi_open(&self->a));
}

FIXTURE_TEARDOWN(failnth)
{
	EXPECT_EQ(0, abi_close(&self->a));
}

/* The kernel is to say where copies from and to user space are when they fail. */
static int say_which_copy(bool say)
{
	return kvt_sh("echo %d > " DEBUGFS "/fail_usercopy/verbose", say ? 2 : 0);
}

/* What was said before is of no interest. */
static void listen(void)
{
	if (said_fd < 0)
		said_fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	lseek(said_fd, 0, SEEK_END);
}

/* What has failed was a copy from or to the caller: without a word of the kernel's it was not. */
struct said {
	bool copy;
	bool out;
};

static struct said heard(void)
{
	struct said said = { 0 };
	char record[4096];
	ssize_t n;

	do {
		n = read(said_fd, record, sizeof(record) - 1);
		record[n > 0 ? n : 0] = 0;
		said.copy |= strstr(record, "name fail_usercopy") != NULL;
		/* What the unwinder is not sure of has a question mark. */
		said.out |= strstr(record, " _copy_to_user+") && !strchr(record, '?');
	} while (n > 0 || (n < 0 && errno == EPIPE));
	return said;
}

static bool allocates(const struct abi_row *row)
{
	size_t i;

	for (i = 0; i < KVT_ARRAY(no_allocations); i++)
		if (!strcmp(row->name, no_allocations[i]))
			return false;
	return true;
}

static bool expected_error(int err)
{
	return err == 0 || err == -ENOMEM || err == -EFAULT || err == -ENOSPC || err == -EINVAL ||
	       err == -EAGAIN || err == -EIO || err == -EMFILE;
}

/* Is everything as before, but that what was begun and taken back has been counted. */
static bool undone(struct abi *a, const struct abi_snap *before)
{
	struct abi_snap after;

	abi_snap(a, &after);
	after.st.aborts = before->st.aborts;
	after.st.dedups = before->st.dedups;
	return abi_unchanged(before, &after);
}

/*
 * One command with its first, second, ... chance to fail taken; how many there were.
 * @inside: plus failures that were no copy from or to the caller
 */
static int sweep(struct abi *a, const struct abi_row *row, char *arg, int *inside)
{
	struct abi_snap before;
	struct said said;
	bool hit, kept;
	int nth, ret;

	for (nth = 1; nth < FAILS_MAX; nth = next_fail(nth)) {
		ret = abi_begin(a, row, arg, true);
		if (ret) {
			fprintf(stderr, "# %s cannot be prepared: %d\n", row->name, ret);
			return -1;
		}
		abi_snap(a, &before);
		listen();
		if (arm(nth))
			return -1;
		ret = abi_call(a, row, arg);
		hit = happened();
		said = heard();
		/* Where results could not be written what was done before stands. */
		kept = !ret || (ret == -EFAULT && said.out) ||
		       KVT_UNTIL(5000, undone(a, &before));
		abi_end(a, row);
		if (!kept) {
			fprintf(stderr, "# %s, failure %d: %d, and something has changed\n",
				row->name, nth, ret);
			return -1;
		}
		if (!hit)
			return nth - 1;
		*inside += !said.copy;
		if (!expected_error(ret)) {
			fprintf(stderr, "# %s, failure %d: %d\n", row->name, nth, ret);
			return -1;
		}
	}
	return nth;
}

/* A slot whose pages somebody seems to refer to is looked at once more, a little later. */
static bool only_base(struct abi *a)
{
	struct kvtier_stat st;

	return KVT_UNTIL(5000, !kvt_stat(a->main.fd, KVTIER_STAT_POOL, &st) && !st.leases &&
			       st.nr_blocks == 1);
}

TEST_F_TIMEOUT(failnth, every_command, 5000)
{
	int nr, inside, sum = 0, rows = 0, with = 0;
	const struct abi_row *row;

	ASSERT_EQ(0, say_which_copy(true));
	EACH_ABI_ROW(row) {
		inside = 0;
		nr = sweep(&self->a, row, self->arg, &inside);
		/* There is at least the copy of the argument to fail. */
		EXPECT_LT(0, nr) TH_LOG("%s", row->name);
		EXPECT_GT(FAILS_MAX, nr) TH_LOG("%s", row->name);
		ASSERT_TRUE(only_base(&self->a)) TH_LOG("%s", row->name);
		if (nr > fails_each())
			TH_LOG("%s: some %d chances to fail, not each of them taken", row->name,
			       nr);
		EXPECT_TRUE(inside || !allocates(row)) TH_LOG("%s: no allocation failed", row->name);
		sum += inside;
		rows++;
		with += inside > 0;
	}
	ASSERT_EQ(0, say_which_copy(false));
	TH_LOG("%d commands, allocations failed in %d: %d of them", rows, with, sum);
	EXPECT_EQ(1, kvt_check(&self->a.main, 0, &self->a.base, 1, 0));
}

/* A write to a file of the pool in sysfs, all of whose chances to fail are taken. */
static int sweep_file(struct abi *a, const char *name, const char *value)
{
	char path[128], before[64], after[64];
	int fd, nth, n, b;
	bool hit = true;

	snprintf(path, sizeof(path), "/sys/class/kvtier/kvtier%u/%s", a->pool.id, name);
	for (nth = 1; nth < FAILS_MAX && hit; nth++) {
		b = kvt_sysfs_read(&a->pool, name, before, sizeof(before));
		/* Opened anew: what the file keeps from one write to the next would not fail. */
		fd = open(path, O_WRONLY | O_CLOEXEC);
		if (b < 0 || fd < 0 || arm(nth))
			return -1;
		n = (int)write(fd, value, strlen(value));
		n = n < 0 ? -errno : n;
		hit = happened();
		close(fd);
		if (kvt_sysfs_read(&a->pool, name, after, sizeof(after)) != b)
			after[0] = 0;
		if (n < 0 && (!expected_error(n) || strcmp(before, after))) {
			fprintf(stderr, "# %s, failure %d: %d\n", name, nth, n);
			return -1;
		}
	}
	return nth - 2;
}

TEST_F_TIMEOUT(failnth, every_file, 300)
{
	static const char *const files[][2] = {
		{ "policy", "reuse" }, { "policy", "lru" }, { "watermark_low_percent", "50" },
		{ "watermark_high_percent", "85" }, { "reservation_timeout_ms", "20000" },
		{ "reserve_percent", "25" }, { "copies_percent", "100" },
	};
	size_t i;

	/* Settings are what is written. */
	self->a.done = true;
	for (i = 0; i < KVT_ARRAY(files); i++) {
		EXPECT_LT(0, sweep_file(&self->a, files[i][0], files[i][1])) TH_LOG("%s",
										     files[i][0]);
		ASSERT_TRUE(only_base(&self->a)) TH_LOG("%s", files[i][0]);
	}
}

/* The whole way of a block on a new file: open, bind, map, touch, close. */
static int whole_way(struct abi *a)
{
	struct kvtier_block_result res = { 0 }, done;
	struct kvtier_ns_open o;
	struct kvt_client c;
	int fd = kvt_open(&a->pool), ret;

	if (fd < 0)
		return fd;
	kvt_ns_args(&o, "abi", &a->group, 1);
	o.min_bytes = 4 * KVT_MIB;
	ret = kvt_client_bind(&c, fd, &o);
	if (!ret) {
		ret = kvt_reserve(fd, 0, 0, &a->fresh, NULL, 1, &res, 0);
		ret = ret < 0 ? ret : ret == 1 ? 0 : -EAGAIN;
	}
	if (!ret && !kvt_touch_write(kvt_wr(&c, res.offset), 0)) {
		kvt_fill(kvt_wr(&c, res.offset), &a->fresh, ABI_PAGE);
		ret = kvt_commit(fd, KVTIER_COMMIT_LEASE, &res.handle, 1, &done);
		ret = ret < 0 ? ret : ret == 1 ? 0 : -EAGAIN;
		if (!ret && !kvt_touch_read(kvt_rd(&c, done.offset)) &&
		    !kvt_bytes_ok(kvt_rd(&c, done.offset), &a->fresh, ABI_PAGE))
			ret = -EBADMSG;
	}
	kvt_client_close(&c);
	return ret;
}

TEST_F_TIMEOUT(failnth, whole_way, 600)
{
	int nth, ret, hits = 0;
	bool hit;

	for (nth = 1; nth < FAILS_MAX; nth++) {
		ASSERT_EQ(0, arm(nth));
		ret = whole_way(&self->a);
		hit = happened();
		hits += hit;
		EXPECT_TRUE(expected_error(ret)) TH_LOG("failure %d: %d", nth, ret);
		kvt_drop(self->a.main.fd, 0, &self->a.fresh, 1, NULL);
		ASSERT_TRUE(only_base(&self->a)) TH_LOG("failure %d: %d", nth, ret);
		if (!hit)
			break;
	}
	EXPECT_EQ(0, ret);
	EXPECT_LT(10, hits);
	EXPECT_GT(FAILS_MAX, nth);
}

/* --- memory of a device, with 2 MiB entries ----------------------------------------------- */

FIXTURE(on_dax)
{
	struct abi a;
};

FIXTURE_SETUP(on_dax)
{
	struct abi *a = &self->a;

	if (!prepare_injection())
		SKIP(return, "this kernel has no fault injection");
	ASSERT_TRUE(kvt_env_dax() != NULL);
	ASSERT_EQ(0, kvt_setup(&a->pool));
	ASSERT_LE(0, kvt_tier_dax(&a->pool, 0, 8 * KVT_MIB));
	a->group.block_bytes = 2 * KVT_MIB;
	a->fresh = kvt_key(63, 1);
	ASSERT_EQ(0, kvt_client_open(&a->pool, &a->main, "main", ABI_BLOCK_BYTES));
}

FIXTURE_TEARDOWN(on_dax)
{
	kvt_client_close(&self->a.main);
	EXPECT_EQ(0, kvt_teardown(&self->a.pool));
}

static bool nothing_left(struct abi *a)
{
	struct kvtier_stat st;

	return KVT_UNTIL(5000, !kvt_stat(a->main.fd, KVTIER_STAT_POOL, &st) && !st.leases &&
			       !st.nr_blocks);
}

/* A client's own block goes with the client who dropped it. */
static void drop_fresh(struct abi *a)
{
	struct kvtier_ns_open o;
	struct kvt_client c;

	kvt_ns_args(&o, "abi", &a->group, 1);
	if (!kvt_client_bind(&c, kvt_open(&a->pool), &o))
		kvt_drop(c.fd, 0, &a->fresh, 1, NULL);
	kvt_client_close(&c);
}

TEST_F_TIMEOUT(on_dax, whole_way, 3600)
{
	int nth, ret = 0, hits = 0;
	bool hit = true;

	for (nth = 1; nth < FAILS_MAX && hit; nth = next_fail(nth)) {
		ASSERT_EQ(0, arm(nth));
		ret = whole_way(&self->a);
		hit = happened();
		hits += hit;
		EXPECT_TRUE(expected_error(ret)) TH_LOG("failure %d: %d", nth, ret);
		drop_fresh(&self->a);
		ASSERT_TRUE(nothing_left(&self->a)) TH_LOG("failure %d: %d", nth, ret);
	}
	EXPECT_EQ(0, ret);
	/* Nine with ever fewer taken: there are 73 at least. */
	EXPECT_LT(kvt_env_long() ? 50 : 5, hits) TH_LOG("%d", hits);
	EXPECT_FALSE(hit);
}

/* --- blocks on a disk ------------------------------------------------------------------- */

#define PAIRS	32

FIXTURE(on_a_disk)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvt_disk disk;
	struct kvt_key keys[2 * PAIRS];
};

/* Blocks in memory, with the next of their chains on a disk. One attempt may bring it up. */
FIXTURE_SETUP(on_a_disk)
{
	struct kvtier_block_result res;
	int dram, i;
	__s32 st;

	self->c.fd = -1;
	if (!prepare_injection())
		SKIP(return, "this kernel has no fault injection");
	ASSERT_EQ(0, kvt_disk_make(&self->disk, "failnth", 24 * KVT_MIB));
	ASSERT_EQ(0, kvt_setup(&self->pool));
	dram = kvt_tier_dram(&self->pool, 0, 8 * KVT_MIB);
	ASSERT_LE(0, dram);
	ASSERT_LE(0, kvt_tier_disk(&self->pool, 30, &self->disk));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "failnth", ABI_BLOCK_BYTES));
	kvt_keys(self->keys, 61, 0, 2 * PAIRS);
	for (i = 0; i < PAIRS; i++)
		ASSERT_EQ(2, kvt_put(&self->c, KVTIER_RESERVE_WAIT, 0, &self->keys[2 * i], NULL, 2));
	ASSERT_EQ(0, kvt_tier_detach(&self->pool, dram, 0, 60 * KVT_SEC));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, 8 * KVT_MIB));
	for (i = 0; i < PAIRS; i++) {
		ASSERT_EQ(1, kvt_get(self->c.fd, KVTIER_GET_WAIT, 0, &self->keys[2 * i], 1, &res,
				     10 * KVT_SEC));
		ASSERT_EQ(1, kvt_release(self->c.fd, &res.handle, 1, &st));
	}
}

FIXTURE_TEARDOWN(on_a_disk)
{
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	kvt_disk_remove(&self->disk);
}

/* Regression: who got ENOMEM for the second one had leased the first, and did not know. */
TEST_F_TIMEOUT(on_a_disk, get, 300)
{
	struct kvtier_block_result res[2];
	__u64 handles[2];
	int nth, ret, failed = 0, kept = 0, i;
	struct kvtier_stat st;
	bool hit = true;
	__s32 gone[2];

	for (nth = 1; nth <= PAIRS && hit; nth++) {
		ASSERT_EQ(0, arm(nth));
		ret = kvt_get(self->c.fd, 0, 0, &self->keys[2 * (nth - 1)], 2, res, 0);
		hit = happened();
		failed += ret == -ENOMEM;
		for (i = 0; i < ret; i++)
			handles[i] = res[i].handle;
		if (ret > 0)
			ASSERT_EQ(ret, kvt_release(self->c.fd, handles, ret, gone));
		EXPECT_TRUE(ret >= 0 || ret == -ENOMEM || ret == -EFAULT)
			TH_LOG("failure %d: %d", nth, ret);
		ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
		/* Where results could not be written what was done before stands. */
		kept = ret == -EFAULT ? (int)st.leases : kept;
		ASSERT_EQ(kept, (int)st.leases) TH_LOG("failure %d: %d", nth, ret);
	}
	EXPECT_LE(2, failed);
	EXPECT_FALSE(hit);
}

/* --- memory that control groups pay for --------------------------------------------------- */

FIXTURE(charged)
{
	struct kvt_pool pool;
	struct kvt_key key;
};

FIXTURE_SETUP(charged)
{
	if (!prepare_injection())
		SKIP(return, "this kernel has no fault injection");
	ASSERT_EQ(0, kvt_setup(&self->pool));
	self->key = kvt_key(62, 0);
}

FIXTURE_TEARDOWN(charged)
{
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

/* A reservation in a tier that has no pages yet; status, or -errno. */
static int reserve_charged(FIXTURE_DATA(charged) *self, struct kvt_client *c, int nth, bool *hit)
{
	struct kvtier_block_result res = { 0 };
	int ret;

	if (arm(nth))
		return -EPROTO;
	ret = kvt_reserve(c->fd, 0, 0, &self->key, NULL, 1, &res, 0);
	*hit = happened();
	if (ret == 1 && kvt_touch_write(kvt_wr(c, res.offset), 0))
		return -EPROTO;
	return ret < 0 ? ret : (int)res.status;
}

/* Each failure leaves the tier as it was, so that it can go; and the next one finds it empty. */
TEST_F_TIMEOUT(charged, reserve, 3600)
{
	int nth, ret = 0, without = 0;
	struct kvtier_tier_attach a;
	struct kvt_client c;
	bool hit = true;

	/* One by one at any length: where the pages are among them is not the same each time. */
	for (nth = 1; nth < FAILS_MAX && hit; nth++) {
		kvt_tier_args(&self->pool, &a, KVTIER_TIER_DRAM, 0);
		a.capacity_bytes = 8 * KVT_MIB;
		a.flags = KVTIER_ATTACH_CHARGE;
		ASSERT_EQ(0, kvt_ioctl(self->pool.ctl, KVTIER_OP_TIER_ATTACH, &a));
		ASSERT_EQ(0, kvt_client_open(&self->pool, &c, "charged", ABI_BLOCK_BYTES));
		ret = reserve_charged(self, &c, nth, &hit);
		EXPECT_TRUE(ret == KVTIER_ST_RESERVED || ret == KVTIER_ST_NOSPACE ||
			    ret == KVTIER_ST_LIMIT || ret == -ENOMEM || ret == -EFAULT)
			TH_LOG("failure %d: %d", nth, ret);
		without += ret == KVTIER_ST_NOSPACE || ret == KVTIER_ST_LIMIT;
		kvt_client_close(&c);
		ASSERT_EQ(0, kvt_tier_detach(&self->pool, a.tier_id, KVTIER_DETACH_DISCARD,
					     10 * KVT_SEC));
	}
	EXPECT_FALSE(hit);
	EXPECT_EQ(KVTIER_ST_RESERVED, ret);
	/* Its pages, and what says whose they are. */
	EXPECT_LE(2, without) TH_LOG("of %d", nth - 1);
}

TEST_HARNESS_MAIN
