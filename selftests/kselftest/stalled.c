// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that never answers: a call whose buffer or array lies in pages that nobody
 * provides must not keep a tier from going.
 *
 * Pages are registered with userfaultfd and not served, so the call stays in the middle
 * of a copy for as long as the test likes. It may keep what it holds by contract, leases
 * and reservations: a tier that has them answers EBUSY in time. Everything else goes, and
 * once the pages are served the call ends as if nothing had been.
 */
#include "kvt_test.h"
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <linux/userfaultfd.h>

#define BLOCK_BYTES	(64 * KVT_KIB)
#define CHAIN		8
#define SET		31
#define STUCK_MS	50
#define DETACH_NS	(5 * KVT_SEC)	/* to move some blocks */
#define REFUSE_NS	(300 * KVT_MSEC)
#define LIMIT_MS	10000		/* nothing here takes so long */

/* What a call works with. @page is where the memory does not answer. */
struct stage {
	struct kvt_pool pool;
	struct kvt_client c;
	int unbound;			/* a file without namespace */
	struct kvt_key keys[CHAIN];	/* stored, in the upper tier */
	struct kvt_key fresh;		/* not stored */
	struct kvtier_block_result res[CHAIN];
	__s32 status;
	void *page;
	char content[BLOCK_BYTES];	/* it will be found to have had */
};

/* Something that runs by itself until it is done. */
struct task {
	pthread_t thread;
	int (*fn)(void *arg);
	void *arg;
	int ret;
	int done;
	bool joined;
};

static void *run_task(void *arg)
{
	struct task *t = arg;

	t->ret = t->fn(t->arg);
	__atomic_store_n(&t->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static int start_task(struct task *t, int (*fn)(void *arg), void *arg)
{
	*t = (struct task){ .fn = fn, .arg = arg };
	return -pthread_create(&t->thread, NULL, run_task, t);
}

static bool task_done(struct task *t)
{
	return __atomic_load_n(&t->done, __ATOMIC_ACQUIRE);
}

static bool task_ends(struct task *t, unsigned int timeout_ms)
{
	if (!t->joined && KVT_UNTIL(timeout_ms, task_done(t))) {
		pthread_join(t->thread, NULL);
		t->joined = true;
	}
	return t->joined;
}

/* --- pages that do not answer --------------------------------------------------------- */

static int stall_open(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	return ioctl(fd, UFFDIO_API, &api) ? -errno : fd;
}

static void *stall_pages(int uffd, size_t bytes)
{
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	reg.range.start = KVT_U64(p);
	reg.range.len = bytes;
	return ioctl(uffd, UFFDIO_REGISTER, &reg) ? NULL : p;
}

/* Has somebody run into one of the pages? */
static bool stall_hit(int uffd, const void *page)
{
	struct pollfd pfd = { .fd = uffd, .events = POLLIN };
	struct uffd_msg msg;

	return poll(&pfd, 1, KVT_PATIENCE_MS(LIMIT_MS)) == 1 &&
	       read(uffd, &msg, sizeof(msg)) == sizeof(msg) &&
	       msg.event == UFFD_EVENT_PAGEFAULT &&
	       msg.arg.pagefault.address - KVT_U64(page) < BLOCK_BYTES;
}

static int stall_serve(int uffd, struct stage *s)
{
	struct uffdio_copy copy = {
		.dst = KVT_U64(s->page), .src = KVT_U64(s->content), .len = BLOCK_BYTES,
	};

	return ioctl(uffd, UFFDIO_COPY, &copy) ? -errno : 0;
}

/* --- the calls ---------------------------------------------------------------------------
 *
 * NAME_call() is made with the page not there; NAME_right() judges what it returned and
 * left in the page, and gives back what it holds.
 */

static int query_call(struct stage *s)
{
	struct kvtier_query q;

	return kvt_query(s->unbound, &q, s->page);
}

static bool query_right(struct stage *s, int ret)
{
	const struct kvtier_tier_info *tiers = s->page;

	return ret == 3 && tiers[0].capacity_bytes == 8 * KVT_MIB && !strcmp(tiers[2].name, "dram2");
}

static int stat_call(struct stage *s)
{
	struct kvtier_stat st = {
		.size = sizeof(st), .flags = KVTIER_STAT_POOL,
		.tiers = KVT_U64(s->page), .nr_tiers = KVTIER_TIERS_MAX,
	};
	int err = kvt_ioctl(s->unbound, KVTIER_OP_STAT, &st);

	return err ? err : (int)st.nr_tiers;
}

static bool stat_right(struct stage *s, int ret)
{
	const struct kvtier_tier_stat *tiers = s->page;

	return ret == 3 && tiers[0].nr_blocks == CHAIN && tiers[2].rank == 2;
}

static int lookup_call(struct stage *s)
{
	return kvt_lookup(s->c.fd, 0, s->keys, CHAIN, s->page);
}

static bool lookup_right(struct stage *s, int ret)
{
	const struct kvtier_lookup_result *res = s->page;

	return ret == CHAIN && res[CHAIN - 1].status == KVTIER_ST_HIT;
}

static int keys_call(struct stage *s)
{
	memcpy(s->content, s->keys, sizeof(s->keys));
	return kvt_lookup(s->c.fd, 0, s->page, CHAIN, NULL);
}

static bool keys_right(struct stage *s, int ret)
{
	(void)s;
	return ret == CHAIN;
}

static int get_call(struct stage *s)
{
	return kvt_get(s->c.fd, 0, 0, s->keys, CHAIN, s->page, 0);
}

static bool get_right(struct stage *s, int ret)
{
	const struct kvtier_block_result *res = s->page;
	bool right = ret == CHAIN;
	int i;

	for (i = 0; i < ret; i++) {
		right = right && res[i].status == KVTIER_ST_HIT &&
			kvt_bytes_ok(kvt_rd(&s->c, res[i].offset), &s->keys[i], BLOCK_BYTES);
		right = kvt_release(s->c.fd, &res[i].handle, 1, NULL) == 1 && right;
	}
	return right;
}

static int copy_call(struct stage *s, unsigned int op, const struct kvt_key *key, void *buf,
		     void *results)
{
	struct kvtier_buf b = { .addr = KVT_U64(buf), .bytes = BLOCK_BYTES };
	struct kvtier_copy a = {
		.size = sizeof(a), .nr = 1, .keys = KVT_U64(key), .bufs = KVT_U64(&b),
		.results = KVT_U64(results), .timeout_ns = KVT_SEC,
	};
	int err = kvt_ioctl(s->c.fd, op, &a);

	return err ? err : (int)a.nr_done;
}

static int read_buffer_call(struct stage *s)
{
	return copy_call(s, KVTIER_OP_READ, s->keys, s->page, &s->status);
}

static bool read_buffer_right(struct stage *s, int ret)
{
	return ret == 1 && s->status == KVTIER_ST_HIT &&
	       kvt_bytes_ok(s->page, s->keys, BLOCK_BYTES);
}

static int read_results_call(struct stage *s)
{
	return copy_call(s, KVTIER_OP_READ, s->keys, s->content, s->page);
}

static bool read_results_right(struct stage *s, int ret)
{
	return ret == 1 && *(__s32 *)s->page == KVTIER_ST_HIT &&
	       kvt_bytes_ok(s->content, s->keys, BLOCK_BYTES);
}

static int write_buffer_call(struct stage *s)
{
	kvt_fill(s->content, &s->fresh, BLOCK_BYTES);
	return copy_call(s, KVTIER_OP_WRITE, &s->fresh, s->page, &s->status);
}

static bool write_buffer_right(struct stage *s, int ret)
{
	return ret == 1 && s->status == KVTIER_ST_DONE &&
	       kvt_check(&s->c, 0, &s->fresh, 1, 0) == 1;
}

static int write_results_call(struct stage *s)
{
	kvt_fill(s->content, &s->fresh, BLOCK_BYTES);
	return copy_call(s, KVTIER_OP_WRITE, &s->fresh, s->content, s->page);
}

static bool write_results_right(struct stage *s, int ret)
{
	return ret == 1 && *(__s32 *)s->page == KVTIER_ST_DONE &&
	       kvt_check(&s->c, 0, &s->fresh, 1, 0) == 1;
}

static int reserve_call(struct stage *s)
{
	return kvt_reserve(s->c.fd, 0, 0, &s->fresh, NULL, 1, s->page, 0);
}

static bool reserve_right(struct stage *s, int ret)
{
	const struct kvtier_block_result *res = s->page;

	return ret == 1 && res->status == KVTIER_ST_RESERVED &&
	       kvt_abort(s->c.fd, &res->handle, 1, NULL) == 1;
}

/* A block that only has to be committed. */
static int fill_fresh(struct stage *s)
{
	if (kvt_reserve(s->c.fd, 0, 0, &s->fresh, NULL, 1, s->res, 0) != 1)
		return -EIO;
	kvt_fill(kvt_wr(&s->c, s->res->offset), &s->fresh, BLOCK_BYTES);
	return 0;
}

static int commit_results_call(struct stage *s)
{
	int err = fill_fresh(s);

	return err ? err : kvt_commit(s->c.fd, 0, &s->res->handle, 1, s->page);
}

static bool commit_results_right(struct stage *s, int ret)
{
	const struct kvtier_block_result *res = s->page;

	return ret == 1 && res->status == KVTIER_ST_DONE &&
	       kvt_check(&s->c, 0, &s->fresh, 1, 0) == 1;
}

static int commit_handles_call(struct stage *s)
{
	struct kvtier_block_result done;
	int err = fill_fresh(s);

	memcpy(s->content, &s->res->handle, sizeof(__u64));
	return err ? err : kvt_commit(s->c.fd, 0, s->page, 1, &done);
}

static bool commit_handles_right(struct stage *s, int ret)
{
	return ret == 1 && kvt_check(&s->c, 0, &s->fresh, 1, 0) == 1;
}

static int abort_call(struct stage *s)
{
	int err = fill_fresh(s);

	return err ? err : kvt_abort(s->c.fd, &s->res->handle, 1, s->page);
}

static int release_results_call(struct stage *s)
{
	if (kvt_get(s->c.fd, 0, 0, s->keys, 1, s->res, 0) != 1)
		return -EIO;
	return kvt_release(s->c.fd, &s->res->handle, 1, s->page);
}

static int release_handles_call(struct stage *s)
{
	if (kvt_get(s->c.fd, 0, 0, s->keys, 1, s->res, 0) != 1)
		return -EIO;
	memcpy(s->content, &s->res->handle, sizeof(__u64));
	return kvt_release(s->c.fd, s->page, 1, &s->status);
}

static bool release_handles_right(struct stage *s, int ret)
{
	return ret == 1 && s->status == KVTIER_ST_DONE;
}

static int advise_call(struct stage *s)
{
	return kvt_advise(s->c.fd, 0, s->keys, 1, KVTIER_ADV_HOT, 0, s->page);
}

static int drop_call(struct stage *s)
{
	return kvt_drop(s->c.fd, 0, s->keys + CHAIN - 1, 1, s->page);
}

/* One status, in the page. */
static bool status_right(struct stage *s, int ret)
{
	return ret == 1 && *(__s32 *)s->page == KVTIER_ST_DONE;
}

static int iterate_call(struct stage *s)
{
	struct kvtier_iterate a = {
		.size = sizeof(a), .nr = CHAIN, .entries = KVT_U64(s->page),
	};
	int err = kvt_ioctl(s->c.fd, KVTIER_OP_ITERATE, &a);

	return err ? err : (int)a.nr;
}

static bool iterate_right(struct stage *s, int ret)
{
	const struct kvtier_entry *entries = s->page;

	return ret == CHAIN && entries[CHAIN - 1].status == KVTIER_ST_HIT;
}

static int ns_open_call(struct stage *s)
{
	struct kvtier_group group = { .block_bytes = BLOCK_BYTES };
	struct kvtier_ns_open a;

	kvt_ns_args(&a, "stalled", &group, 1);
	memcpy(s->content, "stalled", 7);
	a.identity = KVT_U64(s->page);
	return kvt_ioctl(s->unbound, KVTIER_OP_NS_OPEN, &a);
}

static bool ns_open_right(struct stage *s, int ret)
{
	return ret == 0 && kvt_lookup(s->unbound, 0, s->keys, CHAIN, NULL) == CHAIN;
}

/* --- the tests ---------------------------------------------------------------------------- */

FIXTURE(stalled)
{
	struct stage s;
	int uffd;
	int upper;
	int spare;
};

/* @holds: while it is stuck, the call has a lease or a reservation in the upper tier. */
FIXTURE_VARIANT(stalled)
{
	int (*call)(struct stage *s);
	bool (*right)(struct stage *s, int ret);
	bool holds;
};

FIXTURE_VARIANT_ADD(stalled, query_tiers) { query_call, query_right, false };
FIXTURE_VARIANT_ADD(stalled, stat_tiers) { stat_call, stat_right, false };
FIXTURE_VARIANT_ADD(stalled, lookup_results) { lookup_call, lookup_right, false };
FIXTURE_VARIANT_ADD(stalled, lookup_keys) { keys_call, keys_right, false };
FIXTURE_VARIANT_ADD(stalled, get_results) { get_call, get_right, true };
FIXTURE_VARIANT_ADD(stalled, read_buffer) { read_buffer_call, read_buffer_right, true };
FIXTURE_VARIANT_ADD(stalled, read_results) { read_results_call, read_results_right, false };
FIXTURE_VARIANT_ADD(stalled, write_buffer) { write_buffer_call, write_buffer_right, true };
FIXTURE_VARIANT_ADD(stalled, write_results) { write_results_call, write_results_right, false };
FIXTURE_VARIANT_ADD(stalled, reserve_results) { reserve_call, reserve_right, true };
FIXTURE_VARIANT_ADD(stalled, commit_results) { commit_results_call, commit_results_right, false };
FIXTURE_VARIANT_ADD(stalled, commit_handles) { commit_handles_call, commit_handles_right, true };
FIXTURE_VARIANT_ADD(stalled, abort_results) { abort_call, status_right, false };
FIXTURE_VARIANT_ADD(stalled, release_results) { release_results_call, status_right, false };
FIXTURE_VARIANT_ADD(stalled, release_handles) { release_handles_call, release_handles_right, true };
FIXTURE_VARIANT_ADD(stalled, advise_results) { advise_call, status_right, false };
FIXTURE_VARIANT_ADD(stalled, drop_results) { drop_call, status_right, false };
FIXTURE_VARIANT_ADD(stalled, iterate_entries) { iterate_call, iterate_right, false };
FIXTURE_VARIANT_ADD(stalled, ns_open_identity) { ns_open_call, ns_open_right, false };

/* A pool with a chain in it, and a page that does not answer. */
static int stage_open(struct stage *s, int *uffd)
{
	*uffd = stall_open();
	if (*uffd < 0)
		return *uffd;
	s->page = stall_pages(*uffd, BLOCK_BYTES);
	return s->page ? kvt_setup(&s->pool) : -errno;
}

static int stage_fill(struct stage *s)
{
	int err = kvt_client_open(&s->pool, &s->c, "stalled", BLOCK_BYTES);

	if (err)
		return err;
	s->unbound = kvt_open(&s->pool);
	kvt_keys(s->keys, SET, 0, CHAIN);
	s->fresh = kvt_key(SET, 1000);
	if (s->unbound < 0)
		return s->unbound;
	return kvt_put(&s->c, 0, 0, s->keys, NULL, CHAIN) == CHAIN ? 0 : -ENOSPC;
}

static int stage_close(struct stage *s, int uffd)
{
	int err;

	close(s->unbound);
	kvt_client_close(&s->c);
	err = kvt_teardown(&s->pool);
	close(uffd);
	return err;
}

FIXTURE_SETUP(stalled)
{
	struct stage *s = &self->s;

	ASSERT_EQ(0, stage_open(s, &self->uffd));
	self->upper = kvt_tier_dram(&s->pool, 0, 8 * KVT_MIB);
	ASSERT_LE(0, self->upper);
	ASSERT_LE(0, kvt_tier_dram(&s->pool, 1, 8 * KVT_MIB));
	self->spare = kvt_tier_dram(&s->pool, 2, 8 * KVT_MIB);
	ASSERT_LE(0, self->spare);
	ASSERT_EQ(0, stage_fill(s));
}

FIXTURE_TEARDOWN(stalled)
{
	EXPECT_EQ(0, stage_close(&self->s, self->uffd));
}

struct call {
	int (*fn)(struct stage *s);
	struct stage *s;
};

static int make_call(void *arg)
{
	struct call *c = arg;

	return c->fn(c->s);
}

struct detach {
	const struct kvt_pool *pool;
	int tier;
	__u64 timeout_ns;
};

static int make_detach(void *arg)
{
	struct detach *d = arg;

	return kvt_tier_detach(d->pool, d->tier, 0, d->timeout_ns);
}

/*
 * A detach, in a thread of its own: one that hangs would take the test with it, and
 * with the test whoever could serve the pages. -ETIMEDOUT if it does hang.
 */
static int detach(struct task *t, struct detach *d, const struct kvt_pool *pool, int tier,
		  __u64 timeout_ns)
{
	*d = (struct detach){ pool, tier, timeout_ns };
	if (start_task(t, make_detach, d))
		return -EAGAIN;
	return task_ends(t, LIMIT_MS) ? t->ret : -ETIMEDOUT;
}

TEST_F_TIMEOUT(stalled, call, 180)
{
	struct stage *s = &self->s;
	struct call call = { variant->call, s };
	struct task stuck, t[2];
	struct detach d[2];
	int other, same;
	bool hit, inside;

	ASSERT_EQ(0, start_task(&stuck, make_call, &call));
	hit = stall_hit(self->uffd, s->page);
	kvt_sleep_ms(STUCK_MS);
	inside = !task_done(&stuck);
	other = detach(&t[0], &d[0], &s->pool, self->spare, DETACH_NS);
	same = detach(&t[1], &d[1], &s->pool, self->upper,
		      variant->holds ? REFUSE_NS : DETACH_NS);
	inside = inside && !task_done(&stuck);
	/* Before anything is judged: whatever hangs would hang for ever. */
	ASSERT_EQ(0, stall_serve(self->uffd, s));
	ASSERT_TRUE(task_ends(&stuck, LIMIT_MS));
	ASSERT_TRUE(task_ends(&t[0], LIMIT_MS) && task_ends(&t[1], LIMIT_MS));
	EXPECT_TRUE(hit) TH_LOG("the call did not touch the page");
	EXPECT_TRUE(inside) TH_LOG("the call did not wait for the page");
	EXPECT_EQ(0, other) TH_LOG("another tier could not go meanwhile");
	EXPECT_EQ(variant->holds ? -EBUSY : 0, same);
	EXPECT_TRUE(variant->right(s, stuck.ret)) TH_LOG("it returned %d", stuck.ret);
	/* What kept the tier is gone. */
	if (same == -EBUSY)
		EXPECT_EQ(0, kvt_tier_detach(&s->pool, self->upper, 0, DETACH_NS));
}

FIXTURE(stuck_write)
{
	struct stage s;
	int uffd;
};

FIXTURE_SETUP(stuck_write)
{
	ASSERT_EQ(0, stage_open(&self->s, &self->uffd));
	ASSERT_LE(0, kvt_tier_dram(&self->s.pool, 0, 8 * KVT_MIB));
	ASSERT_EQ(0, stage_fill(&self->s));
}

FIXTURE_TEARDOWN(stuck_write)
{
	EXPECT_EQ(0, stage_close(&self->s, self->uffd));
}

static int make_put(void *arg)
{
	struct stage *s = arg;

	return kvt_put(&s->c, KVTIER_RESERVE_WAIT, 0, &s->fresh, NULL, 1);
}

/* WRITE's reservation expires as others do: who waits for it gets it. */
TEST_F_TIMEOUT(stuck_write, expires, 180)
{
	struct stage *s = &self->s;
	struct call call = { write_buffer_call, s };
	struct task stuck, other;
	struct kvtier_stat st;
	bool hit, got;

	ASSERT_EQ(0, start_task(&stuck, make_call, &call));
	hit = stall_hit(self->uffd, s->page);
	ASSERT_EQ(0, start_task(&other, make_put, s));
	/* From now on, and not for the other one. */
	ASSERT_EQ(0, kvt_sysfs_write(&s->pool, "reservation_timeout_ms", "1000"));
	KVT_UNTIL(LIMIT_MS, !kvt_stat(s->c.fd, 0, &st) && st.aborts);
	ASSERT_EQ(0, kvt_sysfs_write(&s->pool, "reservation_timeout_ms", "60000"));
	got = task_ends(&other, LIMIT_MS) && !task_done(&stuck);
	ASSERT_EQ(0, stall_serve(self->uffd, s));
	ASSERT_TRUE(task_ends(&stuck, LIMIT_MS) && task_ends(&other, LIMIT_MS));
	EXPECT_TRUE(hit) TH_LOG("the call did not touch the page");
	EXPECT_TRUE(got) TH_LOG("another did not get the reservation meanwhile");
	EXPECT_EQ(1, other.ret);
	/* Back again, it finds the other's block. */
	EXPECT_EQ(0, stuck.ret);
	EXPECT_EQ(KVTIER_ST_EXISTS, s->status);
	EXPECT_EQ(1, kvt_check(&s->c, 0, &s->fresh, 1, 0));
}

int main(int argc, char **argv)
{
	/* One line about it, not one for each call. */
	if (access("/proc/sys/vm/unprivileged_userfaultfd", F_OK)) {
		puts("this kernel has no userfaultfd");
		return KSFT_SKIP;
	}
	return test_harness_run(argc, argv);
}
