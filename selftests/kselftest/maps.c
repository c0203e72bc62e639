// SPDX-License-Identifier: GPL-2.0
/*
 * What one tenant costs others: how many mappings a namespace may have, and that nobody pays
 * for them, for pinned slots and for what is to be killed but whose they are. What is paid is
 * counted in calls of the kernel's functions, by kprobes, and not in time.
 */
#include "kvt_test.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define BLOCK_BYTES	4096
#define SET		61
#define STRANGER	4242
#define FORKS		8
#define MANY		1000	/* mappings, so that going over them shows */
#define BLOCKS		32
#define SLOTS		6144	/* reservations that expire at once */
#define PINNED		4096	/* slots */
#define WIPED		256	/* pieces */
#define TRACEFS		"/sys/kernel/tracing"

FIXTURE(maps)
{
	struct kvt_pool pool;
	struct kvt_client c;
};

static bool probe(const char *name, const char *function)
{
	return !kvt_sh("echo 'p:kvt/%s %s' >> " TRACEFS "/kprobe_events 2>/dev/null && "
		       "echo 1 > " TRACEFS "/events/kvt/%s/enable", name, function, name);
}

static void unprobe(void)
{
	if (!access(TRACEFS "/events/kvt", F_OK))
		kvt_sh("echo 0 > " TRACEFS "/events/kvt/enable; "
		       "echo > " TRACEFS "/kprobe_events");
}

FIXTURE_SETUP(maps)
{
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, 64 * KVT_MIB));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "maps", BLOCK_BYTES));
}

FIXTURE_TEARDOWN(maps)
{
	unprobe();
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

/* Mappings of the beginning of the read view, one after the other in memory set aside. */
struct many {
	char *at;
	size_t each;
	int max;
	int nr;
};

static int many_start(struct many *m, size_t each, int max)
{
	m->each = each;
	m->max = max;
	m->nr = 0;
	m->at = mmap(NULL, each * (size_t)max, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return m->at == MAP_FAILED ? -errno : 0;
}

/* One more, or -errno. */
static int many_add(struct many *m, int fd)
{
	char *p = m->at + m->each * (size_t)m->nr;

	if (mmap(p, m->each, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) != p)
		return -errno;
	m->nr++;
	return 0;
}

/* Up to @max, or an error, which is returned. */
static int many_map(struct many *m, int fd, size_t each, int max)
{
	int err = many_start(m, each, max);

	while (!err && m->nr < max)
		err = many_add(m, fd);
	return err;
}

static void many_end(struct many *m)
{
	munmap(m->at, m->each * (size_t)m->max);
}

static int map_and_go(struct kvt_child *me, void *arg)
{
	struct many m;

	(void)me;
	/* With its end they are all given back. */
	KVT_CHILD_CHECK(many_map(&m, *(int *)arg, 4096, 2 * KVTIER_MAPS_MAX) == -ENOMEM);
	KVT_CHILD_CHECK(m.nr == KVTIER_MAPS_MAX - 2);
	return 0;
}

TEST_F(maps, as_many_as_said)
{
	struct kvt_child child;
	int i;

	/* One of the client, and by fork one of the child. */
	kvt_unmap(&self->c.rd);
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, kvt_spawn(&child, map_and_go, &self->c.fd));
		EXPECT_EQ(0, kvt_join(&child, 60000)) TH_LOG("round %d", i);
	}
}

TEST_F(maps, what_would_split)
{
	struct kvt_client other;
	struct many m, spare, few;
	char *last, *q;

	ASSERT_EQ(0, many_start(&spare, 4 * 4096, 1));
	ASSERT_EQ(-ENOMEM, many_map(&m, self->c.fd, 4 * 4096, 2 * KVTIER_MAPS_MAX));
	ASSERT_EQ(KVTIER_MAPS_MAX - 2, m.nr);
	last = m.at + m.each * (size_t)(m.nr - 1);
	EXPECT_EQ(-1, munmap(last + 4096, 4096));
	EXPECT_EQ(ENOMEM, errno);
	EXPECT_EQ(-1, mprotect(last + 4096, 4096, PROT_NONE));
	EXPECT_EQ(ENOMEM, errno);
	/* No other namespace has too many. */
	ASSERT_EQ(0, kvt_client_open(&self->pool, &other, "other", BLOCK_BYTES));
	EXPECT_EQ(0, many_map(&few, other.fd, 4096, 10));
	many_end(&few);
	kvt_client_close(&other);
	/* As a whole it can be moved, and go; then there is one to be had. */
	q = mremap(last, m.each, m.each, MREMAP_MAYMOVE | MREMAP_FIXED, spare.at);
	EXPECT_EQ(spare.at, q);
	EXPECT_EQ(-ENOMEM, many_add(&m, self->c.fd));
	many_end(&spare);
	m.nr--;
	EXPECT_EQ(0, many_add(&m, self->c.fd));
	EXPECT_EQ(-ENOMEM, many_add(&m, self->c.fd));
	many_end(&m);
}

/* A file of the owner's, in the hands of somebody who wants to harm him. */
static int strange_child(struct kvt_child *me, void *arg)
{
	struct many m;

	KVT_CHILD_CHECK(!setresuid(STRANGER, STRANGER, STRANGER));
	KVT_CHILD_CHECK(many_map(&m, *(int *)arg, 4096, 2 * KVTIER_MAPS_MAX) == -ENOMEM);
	KVT_CHILD_CHECK(m.nr == KVTIER_MAPS_MAX);
	KVT_CHILD_CHECK(!kvt_say(me, 0));
	return kvt_hear(me, 60000);
}

TEST_F(maps, others_do_not_use_up_the_owners)
{
	struct kvt_child child;
	struct many m;

	ASSERT_EQ(0, kvt_spawn(&child, strange_child, &self->c.fd));
	EXPECT_EQ(0, kvt_hear(&child, 60000));
	EXPECT_EQ(0, many_map(&m, self->c.fd, 4096, 10));
	many_end(&m);
	kvt_say(&child, 0);
	EXPECT_EQ(0, kvt_join(&child, 60000));
}

/* Children that have all of their parent's mappings, and stay. */
static int fork_many(struct kvt_child *me, void *arg)
{
	struct many m;
	int i;

	(void)me;
	if (many_map(&m, *(int *)arg, 4096, KVTIER_MAPS_MAX / 2))
		return 1;
	for (i = 0; i < FORKS + 1; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return 2;
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
	}
	return 3;
}

TEST_F_TIMEOUT(maps, forks_are_not_endless, 300)
{
	struct kvt_child child;
	struct many m;

	/* Its children go with their parent, and are ours then. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	ASSERT_EQ(0, kvt_spawn(&child, fork_many, &self->c.fd));
	EXPECT_EQ(-SIGKILL, kvt_join(&child, 240000));
	while (waitpid(-1, NULL, 0) > 0)
		;
	EXPECT_EQ(0, many_map(&m, self->c.fd, 4096, 1));
	many_end(&m);
}

struct unbound {
	int fd;
	atomic_uint tries;
	atomic_bool end;
};

/* Whether it works or not is not asked. */
static void *map_unbound(void *arg)
{
	struct unbound *u = arg;
	void *at;

	while (!atomic_load(&u->end)) {
		at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, u->fd, 0);
		atomic_fetch_add(&u->tries, 1);
		if (at != MAP_FAILED)
			munmap(at, 4096);
	}
	return NULL;
}

/* The kernel counts writable mappings of a file; what it counts a file by changes with NS_OPEN. */
TEST_F(maps, of_a_file_that_is_being_bound)
{
	int i, err, rounds = kvt_env_many(100, 1000);
	struct kvtier_group group = { .block_bytes = BLOCK_BYTES };
	struct kvtier_ns_open open;
	unsigned int before;
	struct kvt_client c;
	pthread_t thread;

	for (i = 0; i < rounds; i++) {
		struct unbound u = { .fd = kvt_open(&self->pool) };

		ASSERT_LE(0, u.fd);
		kvt_ns_args(&open, "maps", &group, 1);
		ASSERT_EQ(0, pthread_create(&thread, NULL, map_unbound, &u));
		/* One before, and one that began after it. */
		while (!atomic_load(&u.tries))
			;
		err = kvt_ioctl(u.fd, KVTIER_OP_NS_OPEN, &open);
		before = atomic_load(&u.tries);
		while (atomic_load(&u.tries) < before + 2)
			;
		atomic_store(&u.end, true);
		ASSERT_EQ(0, pthread_join(thread, NULL));
		ASSERT_EQ(0, err);
		close(u.fd);
	}
	ASSERT_EQ(0, kvt_client_open(&self->pool, &c, "maps", BLOCK_BYTES));
	kvt_client_close(&c);
}

/* Calls so far. */
static long probed(const char *name)
{
	char line[64];

	kvt_sh_line(line, sizeof(line), "awk '$1 == \"%s\" { print $2 }' " TRACEFS
		    "/kprobe_profile", name);
	return atol(line);
}

/* Reservations of one file in slots that are nowhere side by side: every second is kept. */
static int reserve_apart(const struct kvt_client *c)
{
	static __u64 given[SLOTS];
	struct kvtier_block_result res[32];
	struct kvt_key keys[32];
	int i, at;

	for (at = 0; at < 2 * SLOTS; at += 32) {
		kvt_keys(keys, SET, (__u64)at, 32);
		if (kvt_reserve(c->fd, 0, 0, keys, NULL, 32, res, 0) != 32)
			return -1;
		for (i = 0; i < 16; i++)
			given[at / 2 + i] = res[2 * i].handle;
	}
	for (at = 0; at < SLOTS; at += 512) {
		if (kvt_abort(c->fd, given + at, 512, NULL) != 512)
			return -1;
	}
	return 0;
}

TEST_F(maps, expiry_does_not_go_slot_by_slot)
{
	struct kvtier_stat st;
	__u64 before;
	long calls;
	int i;

	if (!probe("unmap", "unmap_mapping_range"))
		SKIP(return, "this kernel has no kprobes");
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "reservation_timeout_ms", "3600000"));
	ASSERT_EQ(0, reserve_apart(&self->c));
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	before = st.aborts;
	calls = probed("unmap");
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "reservation_timeout_ms", "1000"));
	for (i = 0; i < 600 && st.aborts < before + SLOTS; i++) {
		kvt_sleep_ms(100);
		ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	}
	calls = probed("unmap") - calls;
	EXPECT_LE(before + SLOTS, st.aborts);
	/* Some for each batch of a thousand. */
	EXPECT_GT(SLOTS / 16, calls);
	EXPECT_LT(0, calls);
}

/* Blocks that can go one without another. */
static int put_roots(const struct kvt_client *c, int nr)
{
	struct kvt_key key;
	int i, n = 0;

	for (i = 0; i < nr; i++) {
		key = kvt_key(SET, (__u64)i);
		n += kvt_put(c, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1) == 1;
	}
	return n;
}

/* Blocks of one tenant make room for another's, while a third has everything mapped. */
TEST_F(maps, hand_over_passes_by_others_mappings)
{
	struct kvt_client from, to;
	struct many m;
	long zaps, calls;

	/* At the end of each mapping that is gone over, if not of that alone. */
	if (!probe("zap", "tlb_finish_mmu") || !probe("unmap", "unmap_mapping_range"))
		SKIP(return, "this kernel has no kprobes");
	/* Who came first goes first. */
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "policy", "lru"));
	ASSERT_EQ(0, many_map(&m, self->c.fd, 64 * KVT_MIB, MANY));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &from, "from", KVT_MIB));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &to, "to", KVT_MIB));
	ASSERT_EQ(64, put_roots(&from, 64));
	calls = probed("unmap");
	zaps = probed("zap");
	ASSERT_EQ(BLOCKS, put_roots(&to, BLOCKS));
	zaps = probed("zap") - zaps;
	calls = probed("unmap") - calls;
	TH_LOG("%ld calls went over %ld mappings", calls, zaps);
	/* A COMMIT each, and regions. */
	EXPECT_LT(BLOCKS, calls);
	EXPECT_GT(MANY, zaps);
	many_end(&m);
	kvt_client_close(&from);
	kvt_client_close(&to);
}

/* Reserved slots, with their pages in pipes. */
struct pinned {
	__u64 handle[PINNED];
	int pipe[PINNED / 256][2];
};

static int pin_slot(const struct kvt_client *c, int pipe_in, __u64 offset)
{
	struct iovec iov = { .iov_base = kvt_wr(c, offset), .iov_len = 4096 };

	*(volatile char *)iov.iov_base = 1;
	return vmsplice(pipe_in, &iov, 1, 0) == 4096 ? 0 : -errno;
}

static int pin_many(const struct kvt_client *c, struct pinned *p)
{
	struct kvtier_block_result res[256];
	struct kvt_key keys[256];
	int i, at;

	for (at = 0; at < PINNED; at += 256) {
		int *pipe = p->pipe[at / 256];

		if (pipe2(pipe, O_CLOEXEC) || fcntl(pipe[1], F_SETPIPE_SZ, 256 * 4096) < 0)
			return -errno;
		kvt_keys(keys, SET, (__u64)at, 256);
		if (kvt_reserve(c->fd, 0, 0, keys, NULL, 256, res, 0) != 256)
			return -ENOSPC;
		for (i = 0; i < 256; i++) {
			if (pin_slot(c, pipe[1], res[i].offset))
				return -EIO;
			p->handle[at + i] = res[i].handle;
		}
	}
	return 0;
}

static void unpin_many(struct pinned *p)
{
	int i;

	for (i = 0; i < PINNED / 256; i++) {
		close(p->pipe[i][0]);
		close(p->pipe[i][1]);
	}
}

/* Whoever pins all that he commits waits for one slot, and not for one of each 32. */
TEST_F(maps, commit_is_patient_once)
{
	static struct kvtier_block_result res[PINNED];
	static struct pinned p;
	long looks;
	int i, pinned = 0;

	if (!probe("look", "kvtier:kvt_slot_foreign"))
		SKIP(return, "this kernel has no kprobes");
	ASSERT_EQ(0, pin_many(&self->c, &p));
	looks = probed("look");
	EXPECT_EQ(0, kvt_commit(self->c.fd, 0, p.handle, PINNED, res));
	EXPECT_EQ(1, probed("look") - looks);
	for (i = 0; i < PINNED; i++)
		pinned += res[i].status == KVTIER_ST_PINNED;
	EXPECT_EQ(PINNED, pinned);
	unpin_many(&p);
}

/* Slots that somebody keeps from being used again do not keep another's. */
TEST_F(maps, limbo_is_looked_at_in_turn)
{
	static struct pinned p;
	struct kvtier_block_result res;
	struct kvt_key key = kvt_key(SET, 0);
	struct kvt_client b;
	struct kvtier_stat st;
	int pipe[2], i;
	long looks;

	if (!probe("look", "kvtier:kvt_limbo_check"))
		SKIP(return, "this kernel has no kprobes");
	ASSERT_EQ(0, pin_many(&self->c, &p));
	ASSERT_EQ(PINNED, kvt_abort(self->c.fd, p.handle, PINNED, NULL));
	ASSERT_EQ(0, pipe2(pipe, O_CLOEXEC));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &b, "other", BLOCK_BYTES));
	ASSERT_EQ(1, kvt_reserve(b.fd, 0, 0, &key, NULL, 1, &res, 0));
	ASSERT_EQ(0, pin_slot(&b, pipe[1], res.offset));
	ASSERT_EQ(1, kvt_abort(b.fd, &res.handle, 1, NULL));
	ASSERT_EQ(0, kvt_stat(b.fd, 0, &st));
	EXPECT_EQ(BLOCK_BYTES, st.used_bytes);
	close(pipe[0]);
	close(pipe[1]);
	looks = probed("look");
	for (i = 0; i < 6000 && st.used_bytes; i++) {
		kvt_sleep_ms(10);
		ASSERT_EQ(0, kvt_stat(b.fd, 0, &st));
	}
	looks = probed("look") - looks;
	EXPECT_EQ(0, st.used_bytes);
	EXPECT_GT(PINNED / 64, looks);
	unpin_many(&p);
	kvt_client_close(&b);
}

/* An arena over all memory: of others, so that it has to be wiped. */
static int arena_child(struct kvt_child *me, void *arg)
{
	struct kvtier_group group = { .block_bytes = KVT_PIECE };
	struct kvtier_arena a = { .size = sizeof(a), .nr_slots = WIPED };
	const struct kvt_pool *p = arg;
	struct kvtier_ns_open open;
	struct kvt_client c;
	char name[32];

	snprintf(name, sizeof(name), "arena of %d", getpid());
	kvt_ns_args(&open, name, &group, 1);
	open.min_bytes = WIPED * KVT_PIECE;
	KVT_CHILD_CHECK(!kvt_client_bind(&c, kvt_open(p), &open));
	KVT_CHILD_CHECK(!kvt_say(me, 0));
	KVT_CHILD_CHECK(!kvt_ioctl(c.fd, KVTIER_OP_ARENA, &a));
	return 0;
}

/* One that is being killed does not wipe what nobody will use. */
TEST_F_TIMEOUT(maps, wiping_ends_with_its_process, 300)
{
	struct kvt_child child;
	long wiped, before;
	int i, partly = 0, ret = -1;

	if (!probe("wipe", "kvtier:kvt_pages_scrub"))
		SKIP(return, "this kernel has no kprobes");
	kvt_client_close(&self->c);
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 1, WIPED * KVT_PIECE));
	/* As often as it takes: at the right moment. */
	for (i = 0; i < 50 && partly < 2; i++) {
		before = probed("wipe");
		ASSERT_EQ(0, kvt_spawn(&child, arena_child, &self->pool));
		ASSERT_EQ(0, kvt_hear(&child, 60000));
		while (i && child.pid && probed("wipe") == before && kvt_proc_state(child.pid) != 'Z')
			;
		if (i)
			kvt_kill(&child, SIGKILL);
		ret = kvt_join(&child, 60000);
		wiped = probed("wipe") - before;
		partly += i && wiped && wiped < WIPED;
		/* The last one's namespace is to be gone, with its guarantee. */
		kvt_sleep_ms(500);
	}
	EXPECT_LT(1, partly) TH_LOG("after %d rounds, the last ended with %d", i, ret);
	/* Nothing is lost, and what was half wiped is wiped again. */
	before = probed("wipe");
	ASSERT_EQ(0, kvt_spawn(&child, arena_child, &self->pool));
	ASSERT_EQ(0, kvt_hear(&child, 60000));
	EXPECT_EQ(0, kvt_join(&child, 60000));
	EXPECT_EQ(WIPED, probed("wipe") - before);
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "maps", BLOCK_BYTES));
}

TEST_HARNESS_MAIN
