// SPDX-License-Identifier: GPL-2.0
/*
 * The two views: what may be mapped, what may be touched and when it may no longer.
 * On every kind of memory there is.
 */
#include "kvt_test.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define BLOCK_BYTES	(64 * KVT_KIB)
#define SET		8

FIXTURE(map)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvt_key key;
	struct kvtier_query q;
};

FIXTURE_VARIANT(map)
{
	bool dax;
};

FIXTURE_VARIANT_ADD(map, dram) { .dax = false };
FIXTURE_VARIANT_ADD(map, dax) { .dax = true };

FIXTURE_SETUP(map)
{
	if (variant->dax && !kvt_env_dax())
		SKIP(return, "no device-dax instance to use (KVT_DAX)");
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, variant->dax ? kvt_tier_dax(&self->pool, 0, 16 * KVT_MIB) :
				    kvt_tier_dram(&self->pool, 0, 16 * KVT_MIB));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "map", BLOCK_BYTES));
	ASSERT_LE(0, kvt_query(self->c.fd, &self->q, NULL));
	self->key = kvt_key(SET, 0);
}

FIXTURE_TEARDOWN(map)
{
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

static void *try_map(int fd, int prot, int flags, __u64 offset, __u64 bytes)
{
	return mmap(NULL, bytes, prot, flags, fd, (off_t)offset);
}

static int lease(const struct kvt_client *c, const struct kvt_key *key,
		 struct kvtier_block_result *res)
{
	int ret = kvt_put(c, 0, 0, key, NULL, 1);

	return ret == 1 ? kvt_get(c->fd, 0, 0, key, 1, res, 0) : ret;
}

TEST_F(map, read_view_is_never_writable)
{
	struct kvtier_block_result res;
	char *p;

	ASSERT_EQ(1, lease(&self->c, &self->key, &res));
	EXPECT_EQ(MAP_FAILED, try_map(self->c.fd, PROT_READ | PROT_WRITE, MAP_SHARED, res.offset,
				      BLOCK_BYTES));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(MAP_FAILED, try_map(self->c.fd, PROT_WRITE, MAP_SHARED, res.offset, BLOCK_BYTES));
	EXPECT_EQ(EACCES, errno);
	p = try_map(self->c.fd, PROT_READ, MAP_SHARED, res.offset, BLOCK_BYTES);
	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(-1, mprotect(p, BLOCK_BYTES, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(SIGSEGV, kvt_touch_write(p, 1));
	EXPECT_TRUE(kvt_bytes_ok(p, &self->key, BLOCK_BYTES));
	munmap(p, BLOCK_BYTES);
}

/* The back doors of a privileged process: ptrace's and /proc's. */
TEST_F(map, read_view_is_not_written_by_force)
{
	struct kvtier_block_result res;
	int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

	ASSERT_EQ(1, lease(&self->c, &self->key, &res));
	ASSERT_LE(0, mem);
	EXPECT_NE(1, pwrite(mem, "x", 1, (off_t)(uintptr_t)kvt_rd(&self->c, res.offset)));
	EXPECT_TRUE(kvt_bytes_ok(kvt_rd(&self->c, res.offset), &self->key, BLOCK_BYTES));
	close(mem);
}

TEST_F(map, shared_only)
{
	EXPECT_EQ(MAP_FAILED, try_map(self->c.fd, PROT_READ, MAP_PRIVATE, 0, 4096));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, try_map(self->c.fd, PROT_READ | PROT_WRITE, MAP_PRIVATE, 0, 4096));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, try_map(self->c.fd, PROT_READ | PROT_WRITE, MAP_PRIVATE,
				      self->c.wr.start, 4096));
	EXPECT_EQ(EINVAL, errno);
}

TEST_F(map, not_executable)
{
	EXPECT_EQ(MAP_FAILED, try_map(self->c.fd, PROT_READ | PROT_EXEC, MAP_SHARED, 0, 4096));
	EXPECT_EQ(-1, mprotect(self->c.rd.base, 4096, PROT_READ | PROT_EXEC));
	EXPECT_EQ(-1, mprotect(self->c.wr.base, 4096, PROT_READ | PROT_WRITE | PROT_EXEC));
}

TEST_F(map, unbound_file)
{
	int fd = kvt_open(&self->pool);

	EXPECT_EQ(MAP_FAILED, try_map(fd, PROT_READ, MAP_SHARED, 0, 4096));
	EXPECT_EQ(EBADFD, errno);
	close(fd);
}

/* Past the views, across their borders, and at the far end of all offsets. */
TEST_F(map, out_of_window)
{
	__u64 fill = self->c.wr.start;
	const struct {
		__u64 offset;
		__u64 bytes;
	} bad[] = {
		{ fill - 4096, 8192 },
		{ fill - 4096, 4096 + 2 * KVT_PIECE },
		{ 1ull << 61, 4096 },
		{ 1ull << 62, 4096 },
		{ (1ull << 63) - 4096, 4096 },
	};
	size_t i;
	char *p;

	for (i = 0; i < KVT_ARRAY(bad); i++) {
		p = try_map(self->c.fd, PROT_READ, MAP_SHARED, bad[i].offset, bad[i].bytes);
		EXPECT_EQ(MAP_FAILED, p) TH_LOG("offset %#llx, %#llx bytes",
						(unsigned long long)bad[i].offset,
						(unsigned long long)bad[i].bytes);
	}
}

/* Within the window but in no tier: it can be mapped, but not touched. */
TEST_F(map, holes)
{
	struct kvtier_tier_info tiers[KVTIER_TIERS_MAX];
	__u64 end;
	char *p;

	ASSERT_EQ(1, kvt_query(self->c.fd, &self->q, tiers));
	end = tiers[0].window_offset + tiers[0].window_bytes;
	p = try_map(self->c.fd, PROT_READ, MAP_SHARED, end, 4096);
	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(SIGBUS, kvt_touch_read(p));
	munmap(p, 4096);
	p = try_map(self->c.fd, PROT_READ | PROT_WRITE, MAP_SHARED, self->c.wr.start + end, 4096);
	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(SIGBUS, kvt_touch_write(p, 1));
	munmap(p, 4096);
}

TEST_F(map, fill_view_shows_own_reservations_only)
{
	struct kvtier_block_result res, taken;
	struct kvt_key other = kvt_key(SET, 1);
	struct kvt_client c;
	__u64 at;

	ASSERT_EQ(0, kvt_client_open(&self->pool, &c, "map", BLOCK_BYTES));
	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &self->key, NULL, 1, &res, 0));
	ASSERT_EQ(1, kvt_reserve(c.fd, 0, 0, &other, NULL, 1, &taken, 0));
	EXPECT_EQ(0, kvt_touch_write(kvt_wr(&self->c, res.offset), 1));
	EXPECT_EQ(0, kvt_touch_write((char *)kvt_wr(&self->c, res.offset) + BLOCK_BYTES - 1, 1));
	/* The slot after it, the one before it, and what another file is filling. */
	at = res.offset - self->c.wr.start;
	EXPECT_EQ(SIGBUS, kvt_touch_write((char *)kvt_wr(&self->c, res.offset) + BLOCK_BYTES, 1));
	if (at)
		EXPECT_EQ(SIGBUS, kvt_touch_write((char *)kvt_wr(&self->c, res.offset) - 1, 1));
	at = taken.offset - c.wr.start;
	EXPECT_EQ(SIGBUS, kvt_touch_write(self->c.wr.base + at, 1));
	EXPECT_EQ(SIGBUS, kvt_touch_read(self->c.wr.base + at));
	EXPECT_EQ(0, kvt_touch_write(c.wr.base + at, 1));
	kvt_client_close(&c);
}

/* Another file's fill view is not to be had, with or without knowing its offset. */
TEST_F(map, fill_views_are_private)
{
	struct kvtier_block_result res;
	struct kvt_client c;

	ASSERT_EQ(0, kvt_client_open(&self->pool, &c, "map", BLOCK_BYTES));
	EXPECT_NE(self->c.wr.start, c.wr.start);
	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &self->key, NULL, 1, &res, 0));
	EXPECT_EQ(MAP_FAILED, try_map(c.fd, PROT_READ | PROT_WRITE, MAP_SHARED, res.offset,
				      BLOCK_BYTES));
	EXPECT_EQ(MAP_FAILED, try_map(c.fd, PROT_READ, MAP_SHARED, res.offset, BLOCK_BYTES));
	kvt_client_close(&c);
}

TEST_F(map, fill_access_ends_with_commit)
{
	struct kvtier_block_result res, done;
	char *slot;
	int i;

	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &self->key, NULL, 1, &res, 0));
	slot = kvt_wr(&self->c, res.offset);
	kvt_fill(slot, &self->key, BLOCK_BYTES);
	ASSERT_EQ(1, kvt_commit(self->c.fd, KVTIER_COMMIT_LEASE, &res.handle, 1, &done));
	for (i = 0; i < (int)BLOCK_BYTES; i += 4096) {
		EXPECT_EQ(SIGBUS, kvt_touch_write(slot + i, 1));
		EXPECT_EQ(SIGBUS, kvt_touch_read(slot + i));
	}
	EXPECT_TRUE(kvt_bytes_ok(kvt_rd(&self->c, done.offset), &self->key, BLOCK_BYTES));
}

TEST_F(map, fill_access_ends_with_abort)
{
	struct kvtier_block_result res;
	char *slot;

	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &self->key, NULL, 1, &res, 0));
	slot = kvt_wr(&self->c, res.offset);
	EXPECT_EQ(0, kvt_touch_write(slot, 1));
	ASSERT_EQ(1, kvt_abort(self->c.fd, &res.handle, 1, NULL));
	EXPECT_EQ(SIGBUS, kvt_touch_write(slot, 1));
	EXPECT_EQ(SIGBUS, kvt_touch_read(slot));
}

static int fork_child(struct kvt_child *me, void *arg)
{
	const struct kvt_client *c = arg;
	struct kvtier_block_result res, fill, done;
	struct kvt_key key = kvt_key(SET, 0), mine = kvt_key(SET, 1);

	KVT_CHILD_CHECK(kvt_get(c->fd, 0, 0, &key, 1, &res, 0) == 1);
	KVT_CHILD_CHECK(kvt_bytes_ok(kvt_rd(c, res.offset), &key, BLOCK_BYTES));
	KVT_CHILD_CHECK(kvt_reserve(c->fd, 0, 0, &mine, NULL, 1, &fill, 0) == 1);
	kvt_fill(kvt_wr(c, fill.offset), &mine, BLOCK_BYTES);
	KVT_CHILD_CHECK(kvt_commit(c->fd, 0, &fill.handle, 1, &done) == 1);
	KVT_CHILD_CHECK(!kvt_say(me, 0));
	KVT_CHILD_CHECK(kvt_hear(me, 20000) == 0);
	KVT_CHILD_CHECK(kvt_bytes_ok(kvt_rd(c, res.offset), &key, BLOCK_BYTES));
	return 0;
}

/* A child has the parent's views, and holds the file when the parent has let it go. */
TEST_F(map, fork_inherits)
{
	struct kvt_key mine = kvt_key(SET, 1);
	struct kvt_child child;
	struct kvtier_stat st;

	ASSERT_EQ(1, kvt_put(&self->c, 0, 0, &self->key, NULL, 1));
	ASSERT_EQ(0, kvt_spawn(&child, fork_child, &self->c));
	ASSERT_EQ(0, kvt_hear(&child, 20000));
	kvt_client_close(&self->c);
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "map", BLOCK_BYTES));
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(1, st.leases);
	kvt_say(&child, 0);
	EXPECT_EQ(0, kvt_join(&child, 20000));
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(0, st.leases);
	EXPECT_EQ(1, kvt_check(&self->c, 0, &mine, 1, 0));
}

TEST_F(map, mremap_does_not_grow)
{
	char *p = try_map(self->c.fd, PROT_READ, MAP_SHARED, 0, 8192);

	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(MAP_FAILED, mremap(p, 8192, 16384, MREMAP_MAYMOVE));
	EXPECT_EQ(MAP_FAILED, mremap(p, 0, 4096, MREMAP_MAYMOVE));
	EXPECT_NE(MAP_FAILED, mremap(p, 8192, 4096, 0));
	munmap(p, 4096);
}

/* Part of a mapping goes, the rest stays what it was. */
TEST_F(map, partial_munmap)
{
	struct kvtier_block_result res;
	char *p;

	ASSERT_EQ(1, lease(&self->c, &self->key, &res));
	p = kvt_rd(&self->c, res.offset);
	EXPECT_TRUE(kvt_bytes_ok(p, &self->key, BLOCK_BYTES));
	EXPECT_EQ(0, munmap(p + 4096, 4096));
	EXPECT_EQ(0, kvt_touch_read(p));
	EXPECT_EQ(SIGSEGV, kvt_touch_read(p + 4096));
	EXPECT_EQ(0, kvt_touch_read(p + 8192));
}

/* A released block stays readable until its memory is needed: no zap at RELEASE. */
TEST_F(map, release_does_not_unmap)
{
	struct kvtier_block_result res;
	struct rusage before, after;
	int i;

	ASSERT_EQ(1, lease(&self->c, &self->key, &res));
	EXPECT_EQ(0, kvt_touch_read(kvt_rd(&self->c, res.offset)));
	getrusage(RUSAGE_SELF, &before);
	for (i = 0; i < 100; i++) {
		ASSERT_EQ(1, kvt_release(self->c.fd, &res.handle, 1, NULL));
		ASSERT_EQ(1, kvt_get(self->c.fd, 0, 0, &self->key, 1, &res, 0));
		*(volatile char *)kvt_rd(&self->c, res.offset);
	}
	getrusage(RUSAGE_SELF, &after);
	EXPECT_GT(20, after.ru_minflt - before.ru_minflt);
}

/* 2 MiB page table entries, on both views, wherever a block fills a piece. */
FIXTURE(huge)
{
	struct kvt_pool pool;
	struct kvt_client c;
};

FIXTURE_SETUP(huge)
{
	if (!kvt_env_dax())
		SKIP(return, "no device-dax instance to use (KVT_DAX)");
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dax(&self->pool, 0, 16 * KVT_MIB));
}

FIXTURE_TEARDOWN(huge)
{
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

TEST_F(huge, whole_piece)
{
	struct kvtier_block_result res, done;
	struct kvt_key key = kvt_key(SET, 0);
	char *p;

	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "huge", KVT_PIECE));
	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &key, NULL, 1, &res, 0));
	EXPECT_EQ(0, res.offset % KVT_PIECE);
	p = kvt_wr(&self->c, res.offset);
	EXPECT_EQ(0, kvt_huge_bytes(p, KVT_PIECE));
	EXPECT_EQ(0, kvt_touch_write(p + 4096, 1));
	EXPECT_EQ(KVT_PIECE, kvt_huge_bytes(p, KVT_PIECE));
	kvt_fill(p, &key, KVT_PIECE);
	ASSERT_EQ(1, kvt_commit(self->c.fd, KVTIER_COMMIT_LEASE, &res.handle, 1, &done));
	EXPECT_EQ(0, kvt_huge_bytes(p, KVT_PIECE));
	p = kvt_rd(&self->c, done.offset);
	EXPECT_EQ(0, kvt_touch_read(p));
	EXPECT_EQ(KVT_PIECE, kvt_huge_bytes(p, KVT_PIECE));
	EXPECT_TRUE(kvt_bytes_ok(p, &key, KVT_PIECE));
}

/* Small blocks share a piece of one owner: the read view has it in one entry. */
TEST_F(huge, small_blocks_share_an_entry)
{
	struct kvtier_block_result res[16];
	struct kvt_key keys[16];
	struct rusage before, after;
	int i;

	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "small", BLOCK_BYTES));
	kvt_keys(keys, SET, 0, 16);
	ASSERT_EQ(16, kvt_put(&self->c, 0, 0, keys, NULL, 16));
	ASSERT_EQ(16, kvt_get(self->c.fd, 0, 0, keys, 16, res, 0));
	getrusage(RUSAGE_SELF, &before);
	for (i = 0; i < 16; i++)
		*(volatile char *)kvt_rd(&self->c, res[i].offset);
	getrusage(RUSAGE_SELF, &after);
	EXPECT_GT(6, after.ru_minflt - before.ru_minflt);
	EXPECT_EQ(KVT_PIECE, kvt_huge_bytes((char *)kvt_rd(&self->c, res[0].offset &
							   ~(KVT_PIECE - 1)), KVT_PIECE));
	for (i = 0; i < 16; i++)
		EXPECT_TRUE(kvt_bytes_ok(kvt_rd(&self->c, res[i].offset), &keys[i], BLOCK_BYTES));
}

/* An entry of 2 MiB that is split by a partial unmap: what stays is right. */
TEST_F(huge, split)
{
	struct kvtier_block_result res;
	struct kvt_key key = kvt_key(SET, 0);
	char *p;

	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "huge", KVT_PIECE));
	ASSERT_EQ(1, lease(&self->c, &key, &res));
	p = kvt_rd(&self->c, res.offset);
	EXPECT_EQ(0, kvt_touch_read(p));
	EXPECT_EQ(KVT_PIECE, kvt_huge_bytes(p, KVT_PIECE));
	EXPECT_EQ(0, munmap(p + KVT_PIECE / 2, 4096));
	EXPECT_EQ(0, kvt_touch_read(p));
	EXPECT_EQ(0, kvt_touch_read(p + KVT_PIECE - 1));
	EXPECT_EQ(SIGSEGV, kvt_touch_read(p + KVT_PIECE / 2));
}

#define RACES	((size_t)(kvt_env_long() ? 3000 : 800))

/* Two writers to one piece that nothing of is mapped yet, round after round. */
struct race {
	char *piece;
	atomic_int round;
	atomic_int done;
	atomic_bool stop;
	struct kvt_client *c;
	int toggled;
	int reserved;
};

static void *race_write(void *arg)
{
	struct race *r = arg;
	int round = 0;

	while (!atomic_load(&r->stop)) {
		if (atomic_load(&r->round) == round) {
			sched_yield();
			continue;
		}
		round++;
		*(volatile char *)(r->piece + KVT_PIECE / 2) = 1;
		atomic_fetch_add(&r->done, 1);
	}
	return NULL;
}

/* Huge entries come and go out of fashion, which takes no lock. */
static void *race_toggle(void *arg)
{
	struct race *r = arg;
	int off = 0;

	while (!atomic_load(&r->stop)) {
		r->toggled += !prctl(PR_SET_THP_DISABLE, off = !off, 0, 0, 0);
		sched_yield();
	}
	prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
	return NULL;
}

/* And all faults are waited for now and then. */
static void *race_bar(void *arg)
{
	struct race *r = arg;
	struct kvtier_block_result res;
	struct kvt_key key = kvt_key(SET, 1);

	while (!atomic_load(&r->stop)) {
		if (kvt_reserve(r->c->fd, 0, 0, &key, NULL, 1, &res, 0) == 1)
			r->reserved += kvt_abort(r->c->fd, &res.handle, 1, NULL) == 1;
	}
	return NULL;
}

/* An entry of 2 MiB and a table of small ones want to be in one place: whoever is second. */
TEST_F_TIMEOUT(huge, races_with_small_entries, 300)
{
	void *(*const fn[])(void *arg) = { race_write, race_toggle, race_bar };
	struct race r = { .c = &self->c };
	struct kvt_key key = kvt_key(SET, 0);
	struct kvtier_block_result res;
	pthread_t thread[KVT_ARRAY(fn)];
	size_t i;

	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "reservation_timeout_ms", "3600000"));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "huge", KVT_PIECE));
	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &key, NULL, 1, &res, 0));
	r.piece = kvt_wr(&self->c, res.offset);
	for (i = 0; i < KVT_ARRAY(fn); i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, fn[i], &r));
	/* At full length the kernel has complained each time; fewer rounds may well not see it. */
	for (i = 0; i < RACES; i++) {
		ASSERT_EQ(r.piece, mmap(r.piece, KVT_PIECE, PROT_READ | PROT_WRITE,
					MAP_SHARED | MAP_FIXED, self->c.fd, (off_t)res.offset));
		atomic_store(&r.round, (int)i + 1);
		*(volatile char *)r.piece = 1;
		while (atomic_load(&r.done) != (int)i + 1)
			sched_yield();
	}
	atomic_store(&r.stop, true);
	for (i = 0; i < KVT_ARRAY(fn); i++)
		ASSERT_EQ(0, pthread_join(thread[i], NULL));
	/* It was a race of all of them: the others have been through it again and again. */
	TH_LOG("%zu rounds, toggled %d times, reserved %d times", RACES, r.toggled, r.reserved);
	EXPECT_LT(RACES / 10, r.toggled);
	EXPECT_LT(RACES / 10, r.reserved);
}

TEST_HARNESS_MAIN
