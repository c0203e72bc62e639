// SPDX-License-Identifier: GPL-2.0
/*
 * Red team: commands with what belongs to others, too often, too large, from many
 * threads at once, and with memory that changes while the kernel reads it.
 */
#include "kvt_redteam.h"
#include <pthread.h>
#include <sched.h>

#define THREADS		4
#define STORMS		200		/* until what was to meet has met */

static int one_reservation(const struct kvt_client *c, __u64 n, struct kvtier_block_result *res)
{
	struct kvt_key key = kvt_key(RT_SET_BOB, n);
	int ret = kvt_reserve(c->fd, 0, 0, &key, NULL, 1, res, 0);

	if (ret == 1)
		kvt_fill(kvt_wr(c, res->offset), &key, RT_BLOCK);
	return ret;
}

static int one_lease(const struct kvt_client *c, __u64 n, struct kvtier_block_result *res)
{
	struct kvt_key key = kvt_key(RT_SET_BOB, n);

	if (kvt_put(c, 0, 0, &key, NULL, 1) != 1)
		return -1;
	return kvt_get(c->fd, 0, 0, &key, 1, res, 0);
}

static bool all_stale(int fd, const __u64 *handle, __u32 nr)
{
	struct kvtier_block_result res[64];
	__s32 st[64];
	__u32 i;

	if (kvt_release(fd, handle, nr, st) != 0)
		return false;
	for (i = 0; i < nr; i++)
		if (st[i] != KVTIER_ST_STALE)
			return false;
	if (kvt_abort(fd, handle, nr, st) != 0)
		return false;
	for (i = 0; i < nr; i++)
		if (st[i] != KVTIER_ST_STALE)
			return false;
	if (kvt_commit(fd, 0, handle, nr, res) != 0)
		return false;
	for (i = 0; i < nr; i++)
		if (res[i].status != KVTIER_ST_STALE || res[i].offset || res[i].handle)
			return false;
	return true;
}

/* BOB's file gets handles of the records that ALICE's are of in hers, used more often than those. */
static int same_records(struct rt *t, __u64 *handle)
{
	struct kvtier_block_result res;
	int i, round;

	for (round = 0; round < 4; round++) {
		if (round)
			RT_CHECK(kvt_abort(t->bob.fd, handle, RT_BLOCKS + 1, NULL) == RT_BLOCKS + 1);
		for (i = 0; i <= RT_BLOCKS; i++) {
			RT_CHECK(one_reservation(&t->bob, i, &res) == 1);
			handle[i] = res.handle;
		}
	}
	return 0;
}

ATTACK(foreign_handles, RT_BOX)
{
	__u64 his[RT_BLOCKS + 1], hers;
	int i, k, same = 0;

	RT_CHECK(all_stale(t->bob.fd, t->lease, RT_BLOCKS));
	RT_CHECK(all_stale(t->bob.fd, &t->fill.handle, 1));
	/* With handles of his own in the same places, too: hers are no names of his. */
	RT_CHECK(!same_records(t, his));
	for (i = 0; i <= RT_BLOCKS; i++)
		for (k = 0; k <= RT_BLOCKS; k++) {
			hers = k < RT_BLOCKS ? t->lease[k] : t->fill.handle;
			RT_CHECK(his[i] != hers);
			same += (__u32)his[i] == (__u32)hers;
		}
	/* A record each. */
	RT_CHECK(same == RT_BLOCKS + 1);
	RT_CHECK(all_stale(t->bob.fd, t->lease, RT_BLOCKS));
	RT_CHECK(all_stale(t->bob.fd, &t->fill.handle, 1));
	RT_CHECK(kvt_abort(t->bob.fd, his, RT_BLOCKS + 1, NULL) == RT_BLOCKS + 1);
	return 0;
}

ATTACK(handles_guessed, RT_UID)
{
	struct kvt_client c;
	__u64 handle[64];
	__u32 gen, i, n;

	RT_CHECK(!rt_open_own(t, &c, t->identity));
	for (gen = 0; gen < 4; gen++) {
		for (n = 0; n < 512; n += 64) {
			for (i = 0; i < 64; i++)
				handle[i] = (__u64)gen << 32 | (n + i);
			RT_CHECK(all_stale(c.fd, handle, 64));
		}
	}
	for (i = 0; i < 64; i++)
		handle[i] = 1ull << i;
	RT_CHECK(all_stale(c.fd, handle, 64));
	for (i = 0; i < 64; i++)
		handle[i] = ~0ull >> i;
	RT_CHECK(all_stale(c.fd, handle, 64));
	kvt_client_close(&c);
	return 0;
}

/*
 * A record is used over and over: no handle it had before names what it has now. It does not get
 * as far as the wrap itself: see block.handles_at_the_wrap.
 */
ATTACK(handles_used_again, RT_BOX)
{
	struct kvtier_block_result res;
	__u64 first, now, wrap[8];
	int rounds = kvt_env_many(500, 5000), i;

	RT_CHECK(one_lease(&t->bob, 0, &res) == 1);
	first = res.handle;
	for (i = 0; i < rounds; i++) {
		now = res.handle;
		RT_CHECK(kvt_release(t->bob.fd, &now, 1, NULL) == 1);
		RT_CHECK(kvt_release(t->bob.fd, &now, 1, NULL) == 0);
		RT_CHECK(one_lease(&t->bob, 0, &res) == 1 && res.handle != now);
	}
	/* The same record, all these generations on, and those around a wrap. */
	RT_CHECK((__u32)res.handle == (__u32)first && res.handle != first);
	for (i = 0; i < 8; i++)
		wrap[i] = (res.handle & ~0u) | (__u64)(__u32)(i - 4) << 32;
	RT_CHECK(all_stale(t->bob.fd, wrap, 8));
	RT_CHECK(all_stale(t->bob.fd, &first, 1));
	RT_CHECK(kvt_release(t->bob.fd, &res.handle, 1, NULL) == 1);
	return 0;
}

/* Another file of one's own namespace fills: its reservation is not one's own. */
ATTACK(commit_of_anothers_reservation, RT_UID)
{
	struct kvtier_block_result res, done[2];
	struct kvt_client c;
	__u64 handle[2];

	RT_CHECK(!rt_open_own(t, &c, t->identity) && c.ns_id == t->bob.ns_id);
	RT_CHECK(one_reservation(&c, 0, &res) == 1);
	RT_CHECK(all_stale(t->bob.fd, &res.handle, 1));
	handle[0] = res.handle;
	handle[1] = t->fill.handle;
	RT_CHECK(kvt_commit(t->bob.fd, 0, handle, 2, done) == 0);
	RT_CHECK(done[0].status == KVTIER_ST_STALE && done[1].status == KVTIER_ST_STALE);
	RT_CHECK(kvt_lookup(c.fd, 0, (struct kvt_key[]){ kvt_key(RT_SET_BOB, 0) }, 1, NULL) == 0);
	RT_CHECK(kvt_commit(c.fd, 0, &res.handle, 1, done) == 1);
	kvt_client_close(&c);
	return 0;
}

ATTACK(double_commit, RT_BOX)
{
	struct kvtier_block_result res, done[3];
	struct kvtier_stat st;
	__u64 handle[3];
	int i;

	RT_CHECK(one_reservation(&t->bob, 0, &res) == 1);
	for (i = 0; i < 3; i++)
		handle[i] = res.handle;
	RT_CHECK(kvt_commit(t->bob.fd, KVTIER_COMMIT_LEASE, handle, 3, done) == 1);
	RT_CHECK(done[0].status == KVTIER_ST_HIT && done[1].status == KVTIER_ST_STALE &&
		 done[2].status == KVTIER_ST_STALE);
	/* It is a lease now, and neither to be committed nor given up as a reservation. */
	RT_CHECK(kvt_commit(t->bob.fd, 0, handle, 1, done) == 0);
	RT_CHECK(kvt_abort(t->bob.fd, handle, 3, NULL) == 0);
	RT_CHECK(!kvt_stat(t->bob.fd, 0, &st) && st.leases == 1 && st.puts == 1 &&
		 st.nr_blocks == 1);
	RT_CHECK(kvt_release(t->bob.fd, handle, 3, NULL) == 1);
	RT_CHECK(!kvt_stat(t->bob.fd, 0, &st) && st.leases == 0);
	return 0;
}

ATTACK(double_abort, RT_UID)
{
	struct kvtier_block_result res, done;
	struct kvtier_stat st;
	__u64 handle[3];
	int i;

	RT_CHECK(one_reservation(&t->bob, 0, &res) == 1);
	for (i = 0; i < 3; i++)
		handle[i] = res.handle;
	RT_CHECK(kvt_abort(t->bob.fd, handle, 3, NULL) == 1);
	RT_CHECK(kvt_abort(t->bob.fd, handle, 3, NULL) == 0);
	RT_CHECK(kvt_commit(t->bob.fd, 0, handle, 1, &done) == 0);
	RT_CHECK(done.status == KVTIER_ST_STALE);
	RT_CHECK(!kvt_stat(t->bob.fd, 0, &st) && st.nr_blocks == 0 && st.used_bytes == 0);
	return 0;
}

ATTACK(double_release, RT_BOX)
{
	struct kvtier_block_result res, other;
	struct kvtier_stat st;
	__u64 handle[4];
	int i;

	/* Two leases of one block: giving one back twice must not give back the other. */
	RT_CHECK(one_lease(&t->bob, 0, &res) == 1);
	RT_CHECK(kvt_get(t->bob.fd, 0, 0, (struct kvt_key[]){ kvt_key(RT_SET_BOB, 0) }, 1, &other,
			 0) == 1);
	for (i = 0; i < 4; i++)
		handle[i] = res.handle;
	RT_CHECK(kvt_release(t->bob.fd, handle, 4, NULL) == 1);
	RT_CHECK(kvt_release(t->bob.fd, handle, 4, NULL) == 0);
	RT_CHECK(!kvt_stat(t->bob.fd, 0, &st) && st.leases == 1);
	RT_CHECK(kvt_release(t->bob.fd, &other.handle, 1, NULL) == 1);
	return 0;
}

/* --- many threads ------------------------------------------------------------------ */

struct storm {
	_Atomic unsigned int done;
	_Atomic unsigned int here;	/* threads that have begun */
	_Atomic unsigned int winners;	/* who have got some of it */
	const struct kvt_client *c;
	__u64 *handle;
	__u32 nr;
	__u32 round;
};

static void storm_run(void *(*fn)(void *), struct storm *s)
{
	pthread_t th[THREADS];
	int i;

	for (i = 0; i < THREADS; i++)
		pthread_create(&th[i], NULL, fn, s);
	for (i = 0; i < THREADS; i++)
		pthread_join(th[i], NULL);
}

/* All of them at once. Which one this is. */
static unsigned int storm_begin(struct storm *s)
{
	unsigned int which = s->here++;

	while (s->here < THREADS)
		sched_yield();
	return which;
}

/*
 * In one call, which the last to come may be through before another one is on a processor; or, in
 * every other round, bit by bit, with others let go first each time.
 */
static void *release_all(void *arg)
{
	struct storm *s = arg;
	__u32 at, nr = s->round % 2 ? s->nr / 20 : s->nr;
	bool won = false;
	int i, ret;

	storm_begin(s);
	for (i = 0; i < 5; i++) {
		for (at = 0; at < s->nr; at += nr) {
			ret = kvt_release(s->c->fd, s->handle + at, nr, NULL);
			s->done += ret > 0 ? ret : 0;
			won |= ret > 0;
			sched_yield();
		}
	}
	s->winners += won;
	return NULL;
}

/* A thousand leases given back by everybody at once: each goes once. */
ATTACK(release_storm, RT_UID)
{
	static struct kvtier_block_result res[1000];
	static struct kvt_key keys[1000];
	static __u64 handle[1000];
	struct storm s = { .winners = 0 };
	struct kvtier_stat st;
	int i, round;

	RT_CHECK(one_lease(&t->bob, 0, &res[0]) == 1);
	RT_CHECK(kvt_release(t->bob.fd, &res[0].handle, 1, NULL) == 1);
	for (i = 0; i < 1000; i++)
		keys[i] = kvt_key(RT_SET_BOB, 0);
	/* Until two of them have shared it. */
	for (round = 0; round < STORMS && s.winners < 2; round++) {
		s = (struct storm) {
			.c = &t->bob, .handle = handle, .nr = 1000, .round = round
		};
		RT_CHECK(kvt_get(t->bob.fd, 0, 0, keys, 1000, res, 0) == 1000);
		for (i = 0; i < 1000; i++)
			handle[i] = res[i].handle;
		storm_run(release_all, &s);
		RT_CHECK(s.done == 1000);
		RT_CHECK(!kvt_stat(t->bob.fd, 0, &st) && st.leases == 0);
	}
	RT_CHECK(s.winners > 1);
	RT_CHECK(kvt_drop(t->bob.fd, 0, keys, 1, NULL) == 1);
	return 0;
}

/* Every other one gives up first: in every other round the last to come, who need not wait. */
static void *commit_all(void *arg)
{
	struct kvtier_block_result res[16];
	struct storm *s = arg;
	bool abort = (storm_begin(s) + s->round) % 2;
	int i, ret;

	for (i = 0; i < 2; i++, abort = !abort) {
		ret = abort ? kvt_abort(s->c->fd, s->handle, s->nr, NULL) :
			      kvt_commit(s->c->fd, 0, s->handle, s->nr, res);
		s->done += ret > 0 ? ret : 0;
	}
	return NULL;
}

/* Committed and given up by everybody at once: one or the other, and once. */
ATTACK(commit_storm, RT_BOX)
{
	struct kvtier_block_result res[16];
	struct kvtier_stat st = { 0 };
	struct kvt_key keys[16];
	__u64 handle[16];
	struct storm s;
	int i, round;

	/* Until either was first. */
	for (round = 0; round < 5 || (round < STORMS && (!st.puts || !st.aborts)); round++) {
		kvt_keys(keys, RT_SET_BOB, round * 16, 16);
		RT_CHECK(kvt_reserve(t->bob.fd, 0, 0, keys, NULL, 16, res, 0) == 16);
		for (i = 0; i < 16; i++) {
			kvt_fill(kvt_wr(&t->bob, res[i].offset), &keys[i], RT_BLOCK);
			handle[i] = res[i].handle;
		}
		s = (struct storm) {
			.c = &t->bob, .handle = handle, .nr = 16, .round = round
		};
		storm_run(commit_all, &s);
		RT_CHECK(s.done == 16);
		kvt_drop(t->bob.fd, 0, keys, 16, NULL);
		/* What was given up may be mapped for a moment yet. */
		RT_CHECK(KVT_UNTIL(5000, !kvt_stat(t->bob.fd, 0, &st) && !st.nr_blocks &&
					 !st.used_bytes));
		RT_CHECK(st.puts + st.aborts == (round + 1) * 16ULL);
	}
	RT_CHECK(st.puts && st.aborts);
	return 0;
}

/* --- limits ------------------------------------------------------------------------ */

static void *reserve_many(void *arg)
{
	struct kvtier_block_result res[16];
	struct kvt_key keys[16], roots[16];
	struct storm *s = arg;
	__u64 at = (__u64)(uintptr_t)&res;	/* every thread's own */
	int ret, i;

	memset(roots, 0, sizeof(roots));
	for (i = 0; i < 4; i++) {
		kvt_keys(keys, RT_SET_BOB, at + i * 16, 16);
		ret = kvt_reserve(s->c->fd, KVTIER_RESERVE_PARENTS, 0, keys, roots, 16, res, 0);
		s->done += ret > 0 ? ret : 0;
	}
	return NULL;
}

ATTACK(quota_evaded_by_threads_and_files, RT_UID)
{
	struct kvtier_group group = { .block_bytes = RT_BLOCK };
	struct storm s = { 0 };
	struct kvtier_stat st;
	struct kvtier_ns_open a;
	struct kvt_client c, d;

	kvt_ns_args(&a, "quota", &group, 1);
	a.quota_bytes = 10 * RT_BLOCK + 1;
	RT_CHECK(!rt_open(t, &c, &a));
	/* Opened again, with another quota: that counts only at creation. */
	a.quota_bytes = 0;
	RT_CHECK(!rt_open(t, &d, &a));
	s.c = &c;
	storm_run(reserve_many, &s);
	s.c = &d;
	storm_run(reserve_many, &s);
	RT_CHECK(s.done == 10);
	RT_CHECK(!kvt_stat(c.fd, 0, &st) && st.used_bytes == 10 * RT_BLOCK);
	kvt_client_close(&c);
	kvt_client_close(&d);
	return 0;
}

static void *pin_many(void *arg)
{
	struct storm *s = arg;
	struct kvt_key keys[RT_SLOTS];
	int i, ret;

	kvt_keys(keys, RT_SET_BOB, 0, s->nr);
	for (i = 0; i < 3; i++) {
		ret = kvt_advise(s->c->fd, 0, keys, s->nr, KVTIER_ADV_PIN, 0, NULL);
		if (ret > (int)s->done)
			s->done = ret;
	}
	return NULL;
}

/* Half of memory may be pinned, however often and by however many it is asked for. */
ATTACK(pin_limit_evaded, RT_BOX)
{
	struct storm s = { .c = &t->bob };
	struct kvt_key keys[RT_SLOTS], roots[RT_SLOTS];
	int i, n = 0, pinned;
	__s32 st[RT_SLOTS];

	memset(roots, 0, sizeof(roots));
	for (i = 0; i < RT_SLOTS * 3 / 4; i++) {
		keys[0] = kvt_key(RT_SET_BOB, i);
		if (kvt_put(&t->bob, 0, 0, keys, NULL, 1) != 1)
			break;
		n++;
	}
	RT_CHECK(n > RT_SLOTS / 2);
	s.nr = n;
	storm_run(pin_many, &s);
	RT_CHECK(s.done == RT_SLOTS / 2);
	kvt_keys(keys, RT_SET_BOB, 0, n);
	pinned = kvt_advise(t->bob.fd, 0, keys, n, KVTIER_ADV_PIN, 0, st);
	RT_CHECK(pinned == RT_SLOTS / 2);
	/* Given up twice, it is given up once; a dropped one is not counted any more. */
	for (i = 0; i < n && st[i] != KVTIER_ST_DONE; i++)
		;
	RT_CHECK(kvt_advise(t->bob.fd, 0, &keys[i], 1, KVTIER_ADV_UNPIN, 0, NULL) == 1);
	RT_CHECK(kvt_advise(t->bob.fd, 0, &keys[i], 1, KVTIER_ADV_UNPIN, 0, NULL) == 1);
	RT_CHECK(kvt_advise(t->bob.fd, 0, &keys[i], 1, KVTIER_ADV_PIN, 0, NULL) == 1);
	RT_CHECK(kvt_advise(t->bob.fd, 0, keys, n, KVTIER_ADV_PIN, 0, NULL) == RT_SLOTS / 2);
	RT_CHECK(kvt_drop(t->bob.fd, 0, &keys[i], 1, NULL) == 1);
	RT_CHECK(kvt_advise(t->bob.fd, 0, keys, n, KVTIER_ADV_PIN, 0, NULL) == RT_SLOTS / 2);
	return 0;
}

static void *lease_and_keep(void *arg)
{
	struct kvtier_block_result res;
	struct storm *s = arg;
	struct kvt_key key;
	__u32 i, round;

	for (round = 0; round < 10; round++) {
		for (i = 0; i < s->nr; i++) {
			key = kvt_key(RT_SET_BOB, (i * 5 + round) % s->nr);
			if (kvt_get(s->c[(i + round) % 8].fd, 0, 0, &key, 1, &res, 0) == 1)
				s->done++;
			key = kvt_key(RT_SET_BOB, 1000 + (i * 3 + round) % 64);
			kvt_reserve(s->c[i % 8].fd, 0, 0, &key, NULL, 1, &res, 0);
		}
	}
	return NULL;
}

/* BOB leases and reserves all he can get, by many files and threads, and keeps it. */
static int hold_all_memory(struct rt *t)
{
	struct kvt_key keys[RT_SLOTS / 4];
	struct storm s = { 0 };
	struct kvt_client c[8];
	int i;

	for (i = 0; i < 8; i++)
		RT_CHECK(!rt_open_own(t, &c[i], t->identity));
	/* All that ALICE does not hold is his for now. */
	for (i = 0; i < RT_SLOTS; i++) {
		keys[0] = kvt_key(RT_SET_BOB, i);
		if (kvt_put(&t->bob, 0, 0, keys, NULL, 1) != 1)
			break;
	}
	RT_CHECK(i >= RT_SLOTS / 2);
	s.c = c;
	s.nr = i;
	storm_run(lease_and_keep, &s);
	RT_CHECK(s.done > 0);
	/* She wants a piece more than she has. */
	for (i = 0; i < RT_SLOTS / 4; i++) {
		keys[i] = kvt_key(RT_SET, 500 + i);
		RT_CHECK(kvt_put(&t->alice, KVTIER_RESERVE_WAIT, 0, &keys[i], NULL, 1) == 1);
	}
	for (i = 0; i < RT_SLOTS / 4; i++)
		RT_CHECK(kvt_check(&t->alice, 0, &keys[i], 1, 0) == 1);
	for (i = 0; i < 8; i++)
		kvt_client_close(&c[i]);
	return rt_expect(t);
}

/* Two of four pieces are the most that BOB may hold: he gets two, and not three. */
TEST_F(redteam, all_memory_held)
{
	struct kvtier_group group = { .block_bytes = RT_BLOCK };
	int bob = kvt_open_as(&self->t->pool, RT_BOB);
	struct kvtier_ns_open a;
	char name[80], limit[32];

	kvt_ns_args(&a, self->t->identity, &group, 1);
	ASSERT_EQ(0, kvt_ioctl(bob, KVTIER_OP_NS_OPEN, &a));
	snprintf(name, sizeof(name), "namespaces/%llu/fixed_limit_bytes",
		 (unsigned long long)a.ns_id);
	snprintf(limit, sizeof(limit), "%llu", (unsigned long long)RT_TIER / 2);
	ASSERT_EQ(0, kvt_sysfs_write(&self->t->pool, name, limit));
	EXPECT_EQ(0, rt_attack(self->t, RT_UID, hold_all_memory));
	snprintf(name, sizeof(name), "namespaces/%llu/fixed_bytes", (unsigned long long)a.ns_id);
	EXPECT_TRUE(KVT_UNTIL(5000, kvt_sysfs_read(&self->t->pool, name, limit, sizeof(limit)) > 0 &&
			      !strcmp(limit, "0\n")));
	close(bob);
}

/* All of a guarantee in arenas, and not one piece more, from many files at once. */
static void *arena_many(void *arg)
{
	struct kvtier_arena a = { .size = sizeof(a), .nr_slots = 1 };
	struct storm *s = arg;
	__u32 i;

	for (i = 0; i < s->nr; i++) {
		a.nr_slots = 1;
		if (!kvt_ioctl(s->c[i].fd, KVTIER_OP_ARENA, &a))
			s->done++;
	}
	return NULL;
}

ATTACK(guarantee_evaded_by_arenas, RT_UID)
{
	struct kvtier_group group = { .block_bytes = RT_BLOCK };
	struct kvt_client c[6];
	struct storm s = { .c = c, .nr = 6 };
	struct kvtier_ns_open a;
	int i;

	kvt_ns_args(&a, "arenas", &group, 1);
	/* More than there is, and sums that wrap round, are not promised. */
	a.min_bytes = ~0ull;
	RT_CHECK(rt_open(t, &c[0], &a) == -ENOSPC);
	a.min_bytes = RT_TIER + 1;
	RT_CHECK(rt_open(t, &c[0], &a) == -ENOSPC);
	a.min_bytes = 2 * KVT_PIECE + 1;
	for (i = 0; i < 6; i++)
		RT_CHECK(!rt_open(t, &c[i], &a));
	storm_run(arena_many, &s);
	RT_CHECK(s.done == 2);
	for (i = 0; i < 6; i++)
		kvt_client_close(&c[i]);
	return 0;
}

/* --- arguments --------------------------------------------------------------------- */

ATTACK(counts_at_their_limits, RT_BOX)
{
	static const __u32 nr[] = {
		0, KVTIER_BATCH_MAX + 1, 1u << 26, 1u << 27, 1u << 28, 0x40000001, 1u << 30,
		0x7fffffff, 0x80000000, 0x80000001, 0xfffffff0, 0xffffffff,
	};
	struct kvtier_block_result res[2];
	struct kvt_key key = kvt_key(RT_SET_BOB, 0);
	__u64 handle = 1, buf[64] = { 0 };
	__s32 st[2];
	size_t i;

	for (i = 0; i < KVT_ARRAY(nr); i++) {
		struct kvtier_iterate it = { .size = sizeof(it), .nr = nr[i],
					     .entries = KVT_U64(buf) };
		struct kvtier_copy cp = { .size = sizeof(cp), .nr = nr[i], .keys = KVT_U64(&key),
					  .bufs = KVT_U64(buf), .results = KVT_U64(st) };

		RT_CHECK(kvt_lookup(t->bob.fd, 0, &key, nr[i], NULL) == -EINVAL);
		RT_CHECK(kvt_get(t->bob.fd, 0, 0, &key, nr[i], res, 0) == -EINVAL);
		RT_CHECK(kvt_reserve(t->bob.fd, 0, 0, &key, NULL, nr[i], res, 0) == -EINVAL);
		RT_CHECK(kvt_reserve(t->bob.fd, KVTIER_RESERVE_PARENTS, 0, &key, &key, nr[i], res,
				     0) == -EINVAL);
		RT_CHECK(kvt_commit(t->bob.fd, 0, &handle, nr[i], res) == -EINVAL);
		RT_CHECK(kvt_abort(t->bob.fd, &handle, nr[i], st) == -EINVAL);
		RT_CHECK(kvt_release(t->bob.fd, &handle, nr[i], st) == -EINVAL);
		RT_CHECK(kvt_prefetch(t->bob.fd, 0, 0, &key, nr[i], 0, -1) == -EINVAL);
		RT_CHECK(kvt_advise(t->bob.fd, 0, &key, nr[i], KVTIER_ADV_HOT, 0, NULL) == -EINVAL);
		RT_CHECK(kvt_drop(t->bob.fd, 0, &key, nr[i], NULL) == -EINVAL);
		RT_CHECK(kvt_ioctl(t->bob.fd, KVTIER_OP_ITERATE, &it) == -EINVAL);
		RT_CHECK(kvt_ioctl(t->bob.fd, KVTIER_OP_READ, &cp) == -EINVAL);
		RT_CHECK(kvt_ioctl(t->bob.fd, KVTIER_OP_WRITE, &cp) == -EINVAL);
	}
	return 0;
}

/* Indices of groups, past the end and by the sign. */
ATTACK(groups_past_the_end, RT_UID)
{
	static const __u32 group[] = { 1, 2, 15, 16, 17, 255, 0x7fffffff, 0x80000000, ~0u };
	struct kvtier_block_result res;
	struct kvt_key key = t->key[0];
	struct kvtier_arena a;
	size_t i;

	for (i = 0; i < KVT_ARRAY(group); i++) {
		a = (struct kvtier_arena){ .size = sizeof(a), .group = group[i], .nr_slots = 1 };
		RT_CHECK(kvt_lookup(t->bob.fd, group[i], &key, 1, NULL) == -ENOENT);
		RT_CHECK(kvt_get(t->bob.fd, 0, group[i], &key, 1, &res, 0) == -ENOENT);
		RT_CHECK(kvt_reserve(t->bob.fd, 0, group[i], &key, NULL, 1, &res, 0) == -ENOENT);
		RT_CHECK(kvt_reserve(t->bob.fd, KVTIER_RESERVE_ARENA, group[i], &key, NULL, 1, &res,
				     0) == -ENOENT);
		RT_CHECK(kvt_drop(t->bob.fd, group[i], &key, 1, NULL) == -ENOENT);
		RT_CHECK(kvt_ioctl(t->bob.fd, KVTIER_OP_ARENA, &a) == -ENOENT);
	}
	return 0;
}

/* Buffers in the kernel, at the end of what there is, and where there is nothing. */
ATTACK(buffers_that_are_not_ones_own, RT_BOX)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *bad[] = {
		(void *)0xffff888000000000, (void *)0xffffffff81000000, (void *)~0ul,
		(void *)0x7ffffffff000, (void *)8, page + 4096 - 8,
	};
	struct kvtier_block_result res[4];
	struct kvt_key keys[4];
	struct kvtier_stat st;
	size_t i;

	RT_CHECK(page != MAP_FAILED && !munmap(page + 4096, 4096));
	kvt_keys(keys, RT_SET_BOB, 0, 4);
	RT_CHECK(kvt_put(&t->bob, 0, 0, keys, NULL, 2) == 2);
	for (i = 0; i < KVT_ARRAY(bad); i++) {
		RT_CHECK(kvt_lookup(t->bob.fd, 0, bad[i], 4, NULL) == -EFAULT);
		RT_CHECK(kvt_lookup(t->bob.fd, 0, keys, 4, bad[i]) == -EFAULT);
		RT_CHECK(kvt_get(t->bob.fd, 0, 0, keys, 4, bad[i], 0) == -EFAULT);
		RT_CHECK(kvt_reserve(t->bob.fd, 0, 0, bad[i], NULL, 4, res, 0) == -EFAULT);
		RT_CHECK(kvt_reserve(t->bob.fd, 0, 0, keys + 2, bad[i], 1, res, 0) == -EFAULT);
		RT_CHECK(kvt_release(t->bob.fd, bad[i], 4, NULL) == -EFAULT);
		RT_CHECK(kvt_read1(t->bob.fd, 0, keys, bad[i], RT_BLOCK, 0) == KVTIER_ST_FAULT);
		RT_CHECK(kvt_write1(t->bob.fd, 0, &keys[3], NULL, bad[i], RT_BLOCK, 0) ==
			 KVTIER_ST_FAULT);
		*(__u32 *)(page + 4096 - 8) = sizeof(struct kvtier_lookup);
		RT_CHECK(kvt_ioctl(t->bob.fd, KVTIER_OP_LOOKUP, bad[i]) == -EFAULT);
	}
	/* Nothing came of it but leases that nobody was told of, and these end with the file. */
	RT_CHECK(!kvt_stat(t->bob.fd, 0, &st) && st.nr_blocks == 2);
	munmap(page, 4096);
	return 0;
}

/* Keys, results and the command itself in the same few bytes. */
ATTACK(buffers_over_one_another, RT_UID)
{
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct kvt_key keys[8];
	struct kvtier_stat st;
	int i;

	RT_CHECK(page != MAP_FAILED);
	kvt_keys(keys, RT_SET_BOB, 0, 8);
	for (i = 0; i < 64; i += 8) {
		__u64 at = KVT_U64(page), to = KVT_U64(page + i);
		struct kvtier_get get = {
			.size = sizeof(get), .nr = 8, .eventfd = -1, .keys = at, .results = to,
		};
		struct kvtier_reserve reserve = {
			.size = sizeof(reserve), .nr = 8, .eventfd = -1,
			.flags = KVTIER_RESERVE_PARENTS, .keys = at, .parent = to, .results = to,
		};
		struct kvtier_commit commit = {
			.size = sizeof(commit), .nr = 8, .handles = to, .results = to,
		};

		memcpy(page, keys, sizeof(keys));
		memcpy(page, &get, sizeof(get));
		kvt_ioctl(t->bob.fd, KVTIER_OP_GET, page);
		memcpy(page, &reserve, sizeof(reserve));
		kvt_ioctl(t->bob.fd, KVTIER_OP_RESERVE, page);
		memcpy(page, &commit, sizeof(commit));
		kvt_ioctl(t->bob.fd, KVTIER_OP_COMMIT, page);
	}
	RT_CHECK(!kvt_stat(t->bob.fd, 0, &st) && st.leases < 1000);
	munmap(page, 4096);
	return 0;
}

/* --- memory that changes ------------------------------------------------------------ */

struct flip {
	_Atomic unsigned int rounds;
	_Atomic bool stop;
	char *page;
};

/* Everything a command's struct has, again and again something else. */
static void *flip(void *arg)
{
	struct flip *f = arg;
	volatile __u32 *w = (void *)f->page;
	volatile __u64 *p = (void *)f->page;
	unsigned int seed = 7;

	while (!f->stop) {
		w[0] = (__u32[]){ 8, 56, 64, 72, 88, 4096, ~0u, 0 }[rand_r(&seed) % 8];
		/* Not bit 0, which makes some of them wait. */
		w[1] = (__u32[]){ 0, 2, 4, ~0u }[rand_r(&seed) % 4];
		w[2] = (__u32[]){ 0, 1, 16, ~0u }[rand_r(&seed) % 4];
		w[3] = (__u32[]){ 1, 4, 64, 4096, 4097, ~0u }[rand_r(&seed) % 6];
		p[2] = (__u64[]){ KVT_U64(f->page + 1024), KVT_U64(f->page), 8,
				  0xffff888000000000ull }[rand_r(&seed) % 4];
		p[3] = (__u64[]){ KVT_U64(f->page + 2048), KVT_U64(f->page + 1024), 0,
				  KVT_U64(f->page + 4096 - 64) }[rand_r(&seed) % 4];
		p[4] = (__u64[]){ KVT_U64(f->page + 2048), 0, 1, ~0ull }[rand_r(&seed) % 4];
		p[128 + rand_r(&seed) % 128] = rand_r(&seed) % 512;
		if (!(++f->rounds % 64))
			sched_yield();
	}
	return NULL;
}

/*
 * One thread makes the calls, another writes to command, keys and handles all the time.
 * What was checked is what is used: nothing beyond BOB's rights comes of it, and the
 * kernel, instrumented or not, has nothing to say.
 */
ATTACK(commands_changed_meanwhile, RT_UID)
{
	static const unsigned int op[] = {
		KVTIER_OP_LOOKUP, KVTIER_OP_GET, KVTIER_OP_RESERVE, KVTIER_OP_COMMIT,
		KVTIER_OP_ABORT, KVTIER_OP_RELEASE, KVTIER_OP_READ, KVTIER_OP_WRITE,
		KVTIER_OP_PREFETCH, KVTIER_OP_ADVISE, KVTIER_OP_DROP, KVTIER_OP_ITERATE,
		KVTIER_OP_STAT, KVTIER_OP_QUERY, KVTIER_OP_ARENA, KVTIER_OP_NS_OPEN,
		KVTIER_OP_SESSION, KVTIER_OP_EXPORT,
	};
	int rounds = kvt_env_many(5000, 200000), i, good = 0, bad = 0, n;
	__u64 end = kvt_now_ns() + 20 * KVT_SEC;
	struct kvtier_entry *all;
	struct flip f = { 0 };
	pthread_t th;

	f.page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	RT_CHECK(f.page != MAP_FAILED && !munmap(f.page + 4096, 4096));
	RT_CHECK(!pthread_create(&th, NULL, flip, &f));
	/* Until there was something of everything, if the other is slow. */
	for (i = 0; (i < rounds || !good || !bad || f.rounds < 100) && kvt_now_ns() < end; i++) {
		if (kvt_ioctl(t->bob.fd, op[i % KVT_ARRAY(op)], f.page))
			bad++;
		else
			good++;
	}
	f.stop = true;
	pthread_join(th, NULL);
	/* Both happened; and nothing of ALICE's is in what he has now. */
	RT_CHECK(good > 0 && bad > 0);
	n = kvt_iterate_all(t->bob.fd, 64, &all);
	RT_CHECK(n >= 0);
	while (n-- > 0)
		for (i = 0; i < RT_BLOCKS; i++)
			RT_CHECK(memcmp(all[n].key, &t->key[i], sizeof(all[n].key)));
	free(all);
	return 0;
}

struct swap {
	_Atomic bool stop;
	_Atomic __u64 swaps;
	struct kvt_key *key;
	struct kvt_key a;
	struct kvt_key b;
	__u64 *handle;
};

static void *swap(void *arg)
{
	struct swap *s = arg;

	while (!s->stop) {
		*s->key = s->a;
		*s->handle ^= 1ull << 32;
		__asm__ volatile("" ::: "memory");
		*s->key = s->b;
		*s->handle += 1;
		__asm__ volatile("" ::: "memory");
		s->swaps++;
	}
	return NULL;
}

/* A key that is swapped while a block is stored: what is read under a name is its own. */
ATTACK(keys_changed_while_storing, RT_BOX)
{
	struct kvt_key key[2], shared;
	__u64 handle = 0, rounds = kvt_env_many(500, 20000), i;
	struct swap s = { .key = &shared, .handle = &handle };
	char *data[3], *buf = malloc(RT_BLOCK);
	__u64 seen[3] = { 0 };
	struct kvt_key none;
	pthread_t th;
	int k, ret;

	for (k = 0; k < 2; k++) {
		key[k] = kvt_key(RT_SET_BOB, k);
		data[k] = malloc(RT_BLOCK);
		kvt_fill(data[k], &key[k], RT_BLOCK);
		RT_CHECK(kvt_write1(t->bob.fd, 0, &key[k], NULL, data[k], RT_BLOCK, 0) ==
			 KVTIER_ST_DONE);
	}
	none = kvt_key(RT_SET_BOB, 2);
	data[2] = malloc(RT_BLOCK);
	kvt_fill(data[2], &none, RT_BLOCK);
	s.a = key[0];
	s.b = key[1];
	shared = key[0];
	RT_CHECK(!pthread_create(&th, NULL, swap, &s));
	/* On, until both have been met. */
	for (i = 0; i < rounds || (i < 100 * rounds && (!seen[0] || !seen[1] || !s.swaps)); i++) {
		/* What is there stays as it is; what is half of each may come. */
		ret = kvt_write1(t->bob.fd, 0, &shared, NULL, data[2], RT_BLOCK, 0);
		RT_CHECK(ret == KVTIER_ST_DONE || ret == KVTIER_ST_EXISTS);
		ret = kvt_read1(t->bob.fd, 0, &shared, buf, RT_BLOCK, 0);
		RT_CHECK(ret == KVTIER_ST_MISS || (ret == KVTIER_ST_HIT &&
						   (!memcmp(buf, data[0], RT_BLOCK) ||
						    !memcmp(buf, data[1], RT_BLOCK) ||
						    !memcmp(buf, data[2], RT_BLOCK))));
		for (k = 0; ret == KVTIER_ST_HIT && k < 3; k++)
			seen[k] += !memcmp(buf, data[k], RT_BLOCK);
		kvt_release(t->bob.fd, &handle, 1, NULL);
	}
	s.stop = true;
	pthread_join(th, NULL);
	RT_CHECK(s.swaps && seen[0] && seen[1]);
	for (k = 0; k < 2; k++) {
		RT_CHECK(kvt_read1(t->bob.fd, 0, &key[k], buf, RT_BLOCK, 0) == KVTIER_ST_HIT);
		RT_CHECK(!memcmp(buf, data[k], RT_BLOCK));
		free(data[k]);
	}
	free(data[2]);
	free(buf);
	return 0;
}

/* What a shorter struct has no room for is not written; nothing comes back but answers. */
ATTACK(stack_bytes_in_answers, RT_UID)
{
	static const unsigned int op[] = { KVTIER_OP_QUERY, KVTIER_OP_STAT, KVTIER_OP_LOOKUP,
					   KVTIER_OP_GET, KVTIER_OP_ITERATE };
	__u64 buf[1024];
	__u32 *word = (void *)buf;
	size_t i, k;
	__u32 size;

	for (i = 0; i < KVT_ARRAY(op); i++) {
		for (size = 8; size <= 512; size += 24) {
			memset(buf, 0, sizeof(buf));
			word[0] = size;
			if (op[i] == KVTIER_OP_LOOKUP || op[i] == KVTIER_OP_GET) {
				word[3] = 8;
				buf[2] = KVT_U64(t->key);
				buf[3] = KVT_U64(buf + 512);
			} else if (op[i] == KVTIER_OP_ITERATE) {
				word[2] = 4;
				buf[3] = KVT_U64(buf + 512);
			}
			kvt_ioctl(t->bob.fd, op[i], buf);
			for (k = 1; k < KVT_ARRAY(buf); k++) {
				/* Of the kernel's half of all addresses, and no errno. */
				RT_CHECK(buf[k] < 0xffff800000000000ull ||
					 buf[k] > 0xfffffffffffff000ull);
				/* But what was put there. */
				RT_CHECK(k < 4 || k * 8 < size || k >= 512 || !buf[k]);
			}
		}
	}
	return 0;
}

TEST_HARNESS_MAIN
