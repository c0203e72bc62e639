// SPDX-License-Identifier: GPL-2.0
/*
 * A client that is killed at every point of its life, one after the other: before each of its
 * system calls, in it, and after it. Each time nothing of its is left but the blocks it has
 * committed, within a second of the signal, and who waits for what it was filling gets to fill it.
 *
 * The client is traced: it stops where a call begins and ends, and dies there. In a call
 * it dies a moment after it has been let go into it.
 */
#include "kvt_test.h"
#include <sys/ptrace.h>
#include <sys/wait.h>

#define BLOCK_BYTES	(32 * KVT_KIB)
#define SET		61
#define NR		4	/* blocks of the client's */
#define KEY_COPY	NR	/* it writes this one by copying */
#define KEY_OTHERS	(NR + 1)	/* another fills this one all the time */
#define KEYS		(NR + 2)
#define CALLS_MAX	200
#define WAIT_NS		(20 * KVT_MSEC)
#define WITHIN_MS	1000	/* of the signal nothing is held */
#define FREED_MS	999	/* not taken five times as long */

enum when { BEFORE, IN, AFTER, WHENS };

FIXTURE(sweep)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvt_key keys[KEYS];
	struct kvt_child heir;
	int tier;
	int held;	/* deaths with something to be cleaned up */
	int inherited;	/* of these, with the heir waiting for a block */
	int inside;	/* deaths in the middle of a call */
	unsigned int slowest_ms;	/* from a death to nothing held */
};

/* --- the client ---------------------------------------------------------------------- */

struct life {
	const struct kvt_pool *pool;
	const struct kvt_key *keys;
};

/* All are of one namespace, which may have an arena. */
static int open_client(const struct kvt_pool *pool, struct kvt_client *c)
{
	struct kvtier_group group = { .block_bytes = BLOCK_BYTES };
	struct kvtier_ns_open a;

	kvt_ns_args(&a, "sweep", &group, 1);
	a.min_bytes = 4 * KVT_MIB;
	return kvt_client_bind(c, kvt_open(pool), &a);
}

static int map_buffer(int fd, const __u64 *handles)
{
	struct kvtier_export x = {
		.size = sizeof(x), .nr = 1, .fd = -1, .handles = KVT_U64(handles),
	};
	char *p;

	if (kvt_ioctl(fd, KVTIER_OP_EXPORT, &x))
		return -1;
	p = mmap(NULL, BLOCK_BYTES, PROT_READ, MAP_SHARED, x.fd, 0);
	return p == MAP_FAILED ? -1 : *(volatile char *)p;
}

static int start_async(int fd, const struct kvt_key *keys)
{
	static struct kvtier_block_result res[2];
	struct kvtier_get a = {
		.size = sizeof(a), .flags = KVTIER_GET_ASYNC, .nr = 2, .keys = KVT_U64(keys),
		.results = KVT_U64(res), .eventfd = -1, .timeout_ns = KVT_SEC,
	};

	return kvt_ioctl(fd, KVTIER_OP_GET, &a);
}

/* Half of what is reserved is filled, the rest stays as it is. */
static int live(const struct kvt_pool *pool, const struct kvt_key *k)
{
	static char buf[BLOCK_BYTES];
	struct kvtier_lookup_result look[NR];
	struct kvtier_arena arena = { .size = sizeof(arena), .nr_slots = 4 };
	struct kvtier_block_result res[NR], got[2];
	__u64 handle[2];
	struct kvt_client c;

	KVT_CHILD_CHECK(!open_client(pool, &c));
	KVT_CHILD_CHECK(kvt_lookup(c.fd, 0, k, NR, look) == 0);
	KVT_CHILD_CHECK(kvt_reserve(c.fd, 0, 0, k, NULL, NR, res, 0) == NR);
	kvt_fill(kvt_wr(&c, res[0].offset), &k[0], BLOCK_BYTES);
	kvt_fill(kvt_wr(&c, res[1].offset), &k[1], BLOCK_BYTES);
	memset(kvt_wr(&c, res[2].offset), 1, BLOCK_BYTES / 2);
	handle[0] = res[0].handle;
	handle[1] = res[1].handle;
	KVT_CHILD_CHECK(kvt_commit(c.fd, 0, handle, 2, got) == 2);
	KVT_CHILD_CHECK(kvt_get(c.fd, KVTIER_GET_WAIT, 0, k, 2, got, KVT_SEC) == 2);
	KVT_CHILD_CHECK(kvt_bytes_ok(kvt_rd(&c, got[1].offset), &k[1], BLOCK_BYTES));
	KVT_CHILD_CHECK(!kvt_session(c.fd, 0, 1, KVTIER_SESSION_DECODING, &k[1], 0));
	KVT_CHILD_CHECK(map_buffer(c.fd, &got[0].handle) >= 0);
	KVT_CHILD_CHECK(!kvt_ioctl(c.fd, KVTIER_OP_ARENA, &arena));
	kvt_fill(buf, &k[KEY_COPY], BLOCK_BYTES);
	KVT_CHILD_CHECK(kvt_write1(c.fd, 0, &k[KEY_COPY], NULL, buf, BLOCK_BYTES, KVT_SEC) ==
			KVTIER_ST_DONE);
	KVT_CHILD_CHECK(kvt_read1(c.fd, 0, &k[KEY_COPY], buf, BLOCK_BYTES, KVT_SEC) ==
			KVTIER_ST_HIT);
	start_async(c.fd, k);
	kvt_prefetch(c.fd, KVTIER_PREFETCH_NOTIFY, 0, k, 2, 1, -1);
	kvt_reserve(c.fd, KVTIER_RESERVE_WAIT, 0, &k[KEY_OTHERS], NULL, 1, res, WAIT_NS);
	KVT_CHILD_CHECK(kvt_release(c.fd, &got[0].handle, 1, NULL) == 1);
	KVT_CHILD_CHECK(kvt_abort(c.fd, &res[3].handle, 1, NULL) == 1);
	kvt_unmap(&c.wr);
	kvt_unmap(&c.rd);
	close(c.fd);
	return 0;
}

static int client(struct kvt_child *me, void *arg)
{
	struct life *l = arg;

	(void)me;
	if (ptrace(PTRACE_TRACEME, 0, 0, 0) || raise(SIGSTOP))
		return 9;
	return live(l->pool, l->keys);
}

/* --- who goes on with what it was filling -------------------------------------------- */

/* Reserves the block when told to, for which it has to wait, and stores it. */
static int heir(struct kvt_child *me, void *arg)
{
	struct life *l = arg;
	struct kvtier_block_result res;
	struct kvt_client c;
	int n;

	KVT_CHILD_CHECK(!open_client(l->pool, &c));
	KVT_CHILD_CHECK(!kvt_say(me, 0));
	while (kvt_hear(me, 600 * 1000) == 1) {
		n = kvt_reserve(c.fd, KVTIER_RESERVE_WAIT, 0, &l->keys[2], NULL, 1, &res,
				60 * KVT_SEC);
		if (n == 1) {
			kvt_fill(kvt_wr(&c, res.offset), &l->keys[2], BLOCK_BYTES);
			n = kvt_commit(c.fd, 0, &res.handle, 1, &res);
		}
		kvt_say(me, n);
	}
	return 0;
}

/* --- the sweep ----------------------------------------------------------------------- */

FIXTURE_SETUP(sweep)
{
	struct kvtier_block_result res;
	struct life life = { .pool = &self->pool, .keys = self->keys };

	ASSERT_EQ(0, kvt_setup(&self->pool));
	self->tier = kvt_tier_dram(&self->pool, 0, 8 * KVT_MIB);
	ASSERT_LE(0, self->tier);
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "reservation_timeout_ms", "3600000"));
	ASSERT_EQ(0, open_client(&self->pool, &self->c));
	kvt_keys(self->keys, SET, 0, KEYS);
	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &self->keys[KEY_OTHERS], NULL, 1, &res, 0));
	ASSERT_EQ(0, kvt_spawn(&self->heir, heir, &life));
	ASSERT_EQ(0, kvt_hear(&self->heir, 20000));
}

FIXTURE_TEARDOWN(sweep)
{
	kvt_kill(&self->heir, SIGKILL);
	kvt_join(&self->heir, 20000);
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

/* Leases, and blocks being filled, beside the one that another fills. */
static int held(const struct kvt_client *c)
{
	struct kvtier_entry all[KEYS + 1] = { 0 };
	struct kvtier_iterate it = {
		.size = sizeof(it), .nr = KEYS + 1, .entries = KVT_U64(all),
	};
	struct kvtier_stat st;
	int sum = -1;
	__u32 i;

	if (kvt_ioctl(c->fd, KVTIER_OP_ITERATE, &it) || kvt_stat(c->fd, KVTIER_STAT_POOL, &st))
		return -EIO;
	for (i = 0; i < it.nr; i++)
		sum += all[i].status == KVTIER_ST_FILLING;
	return sum + (int)st.leases;
}

/* Does the tier hold nothing but the slot that another fills. */
static bool empty(const struct kvt_client *c)
{
	struct kvtier_tier_stat tiers[KVTIER_TIERS_MAX];
	struct kvtier_stat st;

	return kvt_tier_stats(c->fd, &st, tiers) == 1 && st.nr_blocks <= 1 && !st.leases &&
	       tiers[0].used_bytes == BLOCK_BYTES;
}

static bool filling(const struct kvt_client *c, const struct kvt_key *key)
{
	struct kvtier_lookup_result res;

	return !kvt_lookup(c->fd, 0, key, 1, &res) && res.status == KVTIER_ST_FILLING;
}

/* Let it go on to its next stop, where a call begins or ends. Whether there is one. */
static bool next_stop(const struct kvt_child *child)
{
	int status, sig = 0;
	siginfo_t info;

	do {
		if (ptrace(PTRACE_SYSCALL, child->pid, 0, sig) ||
		    waitid(P_PID, child->pid, &info, WEXITED | WSTOPPED | WNOWAIT) ||
		    info.si_code != CLD_TRAPPED || waitpid(child->pid, &status, 0) < 0)
			return false;
		sig = WSTOPSIG(status) & 0x7f;
	} while (!(WSTOPSIG(status) & 0x80));
	return true;
}

static bool stands(const struct kvt_child *child, int where)
{
	struct __ptrace_syscall_info info = { 0 };

	return ptrace(PTRACE_GET_SYSCALL_INFO, child->pid, sizeof(info), &info) > 0 &&
	       info.op == where;
}

/*
 * A traced client that stands at the beginning of its call number @call, or after it. 1;
 * 0: it does not make that many, and has ended; or a negative errno.
 */
static int stand(const struct kvt_pool *pool, const struct kvt_key *keys, struct kvt_child *child,
		 int call, bool after)
{
	struct life life = { .pool = pool, .keys = keys };
	int status, i;

	if (kvt_spawn(child, client, &life))
		return -EAGAIN;
	if (waitpid(child->pid, &status, 0) != child->pid || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_SETOPTIONS, child->pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL))
		return -ESRCH;
	for (i = 0; i < 2 * call + 1 + after; i++) {
		if (!next_stop(child))
			return 0;
	}
	return stands(child, after ? PTRACE_SYSCALL_INFO_EXIT : PTRACE_SYSCALL_INFO_ENTRY) ?
	       1 : -EPROTO;
}

/* Whether it is there: it would stop where the call ends. */
static bool into_the_call(struct kvt_child *child, int call)
{
	siginfo_t info = { 0 };

	ptrace(PTRACE_SYSCALL, child->pid, 0, 0);
	if (call % 3)
		kvt_sleep_ms(call % 3);
	return !waitid(P_PID, child->pid, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) &&
	       !info.si_pid;
}

/* On a slow kernel only after each call, unless there is time. */
static int first_of_all(void)
{
	const char *kernel = getenv("KVT_KERNEL");

	return kernel && !strcmp(kernel, "debug") && !kvt_env_long() ? AFTER : BEFORE;
}

/* It dies where it stands, or in the call it stands before; nothing is left. */
static bool dies(struct __test_metadata *_metadata, FIXTURE_DATA(sweep) *self,
		 struct kvt_child *child, int call, enum when when)
{
	bool waits = filling(&self->c, &self->keys[2]), gone, freed;
	int died, heard, right;
	unsigned int took_ms;
	__u64 killed_ns;

	self->held += held(&self->c) > 0;
	if (waits && (kvt_say(&self->heir, 1) || !kvt_in_ioctl(self->heir.pid)))
		return false;
	if (when == IN)
		self->inside += into_the_call(child, call);
	killed_ns = kvt_now_ns();
	kvt_kill(child, SIGKILL);
	died = kvt_join(child, 20000);
	self->inherited += waits;
	heard = waits ? kvt_hear(&self->heir, 20000) : 1;
	/* The heir has given up what it had before it said so. */
	gone = KVT_UNTIL(FREED_MS, held(&self->c) == 0);
	took_ms = (kvt_now_ns() - killed_ns) / KVT_MSEC;
	if (took_ms > self->slowest_ms)
		self->slowest_ms = took_ms;
	right = kvt_check(&self->c, 0, self->keys, NR, 20 * KVT_SEC);
	kvt_drop(self->c.fd, 0, self->keys, KEY_OTHERS, NULL);
	freed = KVT_UNTIL(FREED_MS, empty(&self->c));
	/* In its last call it may be faster. */
	if ((died == -SIGKILL || (when == IN && !died)) && heard == 1 && gone && right >= 0 && freed)
		return true;
	TH_LOG("call %d, %d: died %d, heir %d, %d held, bytes %d, %s", call, when, died, heard,
	       held(&self->c), right, freed ? "slots freed" : "slots left");
	return false;
}

/* An instrumented kernel is some times slower, and so are those who wait. */
static unsigned int within_ms(void)
{
	const char *kernel = getenv("KVT_KERNEL");

	return kernel && strcmp(kernel, "stock") ? 5 * WITHIN_MS : WITHIN_MS;
}

TEST_F_TIMEOUT(sweep, after_each_call, 600)
{
	int call, when, ret = 1;
	struct kvt_child child;

	for (call = 0; call < CALLS_MAX && ret == 1; call++) {
		for (when = first_of_all(); when < WHENS; when++) {
			ret = stand(&self->pool, self->keys, &child, call, when == AFTER);
			ASSERT_LE(0, ret);
			if (!ret)
				break;
			ASSERT_TRUE(dies(_metadata, self, &child, call, when));
		}
	}
	TH_LOG("%d calls; %d deaths with something held, %d with an heir, %d in a call; at most %u ms later nothing was",
	       call, self->held, self->inherited, self->inside, self->slowest_ms);
	/* It came to its end at last, as it should, and there was something to be cleaned up. */
	ASSERT_EQ(0, ret);
	EXPECT_EQ(0, kvt_join(&child, 20000));
	EXPECT_LT(20, call);
	EXPECT_LT(10, self->held);
	EXPECT_LT(5, self->inherited);
	if (first_of_all() == BEFORE)
		EXPECT_LT(0, self->inside);
	EXPECT_GT(within_ms(), self->slowest_ms);
}

TEST_HARNESS_MAIN
