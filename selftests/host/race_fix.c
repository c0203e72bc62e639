// SPDX-License-Identifier: GPL-2.0
/*
 * What leases fix, with real threads: race_fix().
 *
 * Some regions with a few blocks in each, and rules that do not let all of them be fixed.
 * Threads lease blocks as the driver does, under a lock for each block, and give leases back
 * without it. First they come and go: in the end no region may be left fixed, and none paid for.
 * Then they keep what they get: the regions with leases may not be more than the rules say,
 * round after round, from whatever state the others are in. Every other round each
 * namespace has a limit; in between they have one for all of them together.
 */
#include "kvt_env.h"
#include "kvt_mem.h"
#include "race.h"
#include <inttypes.h>
#include <pthread.h>

/* Somebody else may come between any two steps: without help that is rare on few CPUs. */
static int add_and_wait(int i, atomic_t *v)
{
	int sum = atomic_add_return(i, v);

	sched_yield();
	return sum;
}

static int sub_and_wait(int i, atomic_t *v)
{
	int sum = atomic_sub_return(i, v);

	sched_yield();
	return sum;
}

static void only_add_and_wait(int i, atomic_t *v)
{
	atomic_add(i, v);
	sched_yield();
}

static void only_sub_and_wait(int i, atomic_t *v)
{
	atomic_sub(i, v);
	sched_yield();
}

#define atomic_add		only_add_and_wait
#define atomic_sub		only_sub_and_wait
#define atomic_add_return	add_and_wait
#define atomic_sub_return	sub_and_wait
#include "kvt_fix.h"

#define REGIONS		6u
#define EACH		3u	/* blocks of a region */
#define NR_BLOCKS	(REGIONS * EACH)
#define NAMESPACES	3u	/* the first two have the same owner */
#define LIMIT		1	/* for each */
#define TAKERS		3u
#define KEPT		64u

/* Shared, and not static: see race_main.c. */
struct kvt_region fix_region[REGIONS];
struct kvt_hot fix_hot[NR_BLOCKS];
spinlock_t fix_shard[NR_BLOCKS];
struct kvt_fix_account fix_account[NAMESPACES];
atomic_t fix_owner[2];
atomic_t fix_pool;
pthread_barrier_t fix_gate;
static u64 fix_rounds;
static u64 nr_taken, nr_refused;

struct taker {
	u64 state;
	u32 kept[KEPT];
	u32 nr_kept;
	u64 taken;
	u64 refused;
};

/* One of two that are left is not for who has more than that; nobody gets the last one. */
static const struct kvt_fix_rules fix_rules[2] = {
	{ .limit = LIMIT, .most = REGIONS, .free = REGIONS },
	{ .limit = REGIONS, .most = REGIONS, .free = REGIONS, .spare = 2 },
};
static const u32 fix_most[2] = { NAMESPACES * LIMIT, REGIONS - 1 };

static struct kvt_region *region_of(u32 b)
{
	return &fix_region[b / EACH];
}

static struct kvt_fix_account *account_of(u32 b)
{
	return &fix_account[b / EACH % NAMESPACES];
}

/* As kvt_lease_found(). */
static bool take(u32 b, u64 round, u64 *refused)
{
	struct kvt_region *reg = region_of(b);
	bool first, ok;

	spin_lock(&fix_shard[b]);
	ok = kvt_lease_try_first(&fix_hot[b], &first);
	CHECK(ok);
	if (first)
		sched_yield();
	if (first && !kvt_fix_more(reg) &&
	    !kvt_fix_first(reg, account_of(b), &fix_rules[round % 2])) {
		kvt_lease_put(&fix_hot[b]);
		(*refused)++;
		ok = false;
	}
	spin_unlock(&fix_shard[b]);
	return ok;
}

static void put(u32 b)
{
	CHECK(!kvt_lease_put_fixed(&fix_hot[b], region_of(b), account_of(b)));
}

static void come_and_go(struct taker *t, u64 round)
{
	u32 i;

	for (i = 0; i < 200; i++) {
		u32 b = race_random(&t->state) % NR_BLOCKS;

		if (!take(b, round, &t->refused))
			continue;
		t->taken++;
		if (race_random(&t->state) % 4 == 0)
			sched_yield();
		put(b);
	}
}

static void keep(struct taker *t, u64 round)
{
	u32 i;

	for (i = 0; i < KEPT; i++) {
		u32 b = race_random(&t->state) % NR_BLOCKS;

		if (take(b, round, &t->refused))
			t->kept[t->nr_kept++] = b;
	}
	t->taken += t->nr_kept;
}

static void let_go(struct taker *t)
{
	while (t->nr_kept)
		put(t->kept[--t->nr_kept]);
}

/* Nobody runs. */
static u32 fixed_regions(void)
{
	u32 n = 0, sum = 0, i;

	for (i = 0; i < REGIONS; i++)
		n += atomic_read(&fix_region[i].fixed) != 0;
	for (i = 0; i < NAMESPACES; i++)
		sum += (u32)atomic_read(&fix_account[i].pieces);
	CHECK(n == sum && (int)n == atomic_read(&fix_pool));
	CHECK(atomic_read(&fix_owner[1]) == atomic_read(&fix_account[2].pieces));
	CHECK(atomic_read(&fix_owner[0]) + atomic_read(&fix_owner[1]) == (int)n);
	return n;
}

static bool wait_for_all(void)
{
	return pthread_barrier_wait(&fix_gate) == PTHREAD_BARRIER_SERIAL_THREAD;
}

static void *taker(void *arg)
{
	struct taker t = { .state = (u64)(uintptr_t)arg };
	u64 i;

	for (i = 0; i < fix_rounds; i++) {
		come_and_go(&t, i);
		if (wait_for_all())
			CHECK(!fixed_regions());
		wait_for_all();
		keep(&t, i);
		if (wait_for_all())
			CHECK(fixed_regions() <= fix_most[i % 2] && fixed_regions());
		wait_for_all();
		let_go(&t);
	}
	__atomic_add_fetch(&nr_taken, t.taken, __ATOMIC_RELAXED);
	__atomic_add_fetch(&nr_refused, t.refused, __ATOMIC_RELAXED);
	return NULL;
}

/* Rounds; 0 when all of it held. */
int race_fix(u64 rounds)
{
	pthread_t thread[TAKERS];
	u32 i;

	fix_rounds = rounds;
	CHECK(!pthread_barrier_init(&fix_gate, NULL, TAKERS));
	for (i = 0; i < REGIONS; i++)
		fix_region[i].nr_pieces = 1;
	for (i = 0; i < NAMESPACES; i++) {
		fix_account[i].owner = &fix_owner[i / 2];
		fix_account[i].pool = &fix_pool;
	}
	for (i = 0; i < NR_BLOCKS; i++) {
		spin_lock_init(&fix_shard[i]);
		atomic_set_release(&fix_hot[i].ctl, KVT_READY | KVT_CTL_MEM);
	}
	for (i = 0; i < TAKERS; i++)
		CHECK(!pthread_create(&thread[i], NULL, taker, (void *)(uintptr_t)(i + 1)));
	for (i = 0; i < TAKERS; i++)
		CHECK(!pthread_join(thread[i], NULL));
	printf("# leases %" PRIu64 ", refused %" PRIu64 "\n", nr_taken, nr_refused);
	if (!nr_taken || !nr_refused) {
		printf("not ok race/fixed_limit\n");
		return 1;
	}
	printf("ok race/fixed_limit\n");
	return 0;
}
