// SPDX-License-Identifier: GPL-2.0
/*
 * Leases against moves, with real threads: race_main [ROUNDS].
 *
 * Readers lease a few blocks and read their bytes where the entry says they are.
 * A mover claims a block, copies it to another slot, and publishes the new place
 * if nobody leases it by then, else gives up; the old slot is overwritten at once.
 * Blocks are dropped under their readers, and freed by the last of them. Under
 * ThreadSanitizer a missing ordering in the control word is a data race on place
 * or bytes; without it, wrong bytes.
 */
#include "kvt_env.h"
#include "kvt_block.h"
#include "race.h"
#include <inttypes.h>
#include <pthread.h>
#include <time.h>

#define BLOCKS		4u
#define SLOTS		(2 * BLOCKS)
#define WORDS		16u
#define READERS		3u
#define LEASES		(~0u << KVT_CTL_LEASE_SHIFT)

struct slot {
	u64 word[WORDS];
};

/*
 * What threads share is not static: gcc's ThreadSanitizer turns atomics into calls
 * of which it believes that they cannot change a file's own variables.
 */
struct kvt_hot hot[BLOCKS];
struct slot slots[SLOTS];
bool reaped[BLOCKS];	/* meta */
spinlock_t meta;
static bool stop;
static u64 rounds = 200000;
static u64 nr_leases, nr_moves, nr_voided, nr_reaps, nr_late;

static void fill(u32 slot, u64 tag)
{
	u32 i;

	for (i = 0; i < WORDS; i++)
		slots[slot].word[i] = tag;
}

/*
 * As the driver's reaper: under the lock, for any block, by whoever thinks that
 * he may have been the last; frees it if it is DEAD and nobody relies on it.
 */
static void reap(u32 b)
{
	u32 ctl = kvt_ctl(&hot[b]);

	if (kvt_ctl_state(ctl) != KVT_DEAD || kvt_ctl_leases(ctl) || reaped[b])
		return;
	fill(hot[b].mem_page, 0xbad);
	reaped[b] = true;
	nr_reaps++;
}

static void *reader(void *arg)
{
	u64 state = (u64)(uintptr_t)arg, leases = 0;
	u32 b, i, slot;

	while (!READ_ONCE(stop)) {
		b = race_random(&state) % BLOCKS;
		if (!kvt_lease_try(&hot[b]))
			continue;
		slot = hot[b].mem_page;
		for (i = 0; i < WORDS; i++)
			CHECK(slots[slot].word[i] == b + 1);
		leases++;
		if (kvt_lease_put(&hot[b])) {
			spin_lock(&meta);
			reap(b);
			spin_unlock(&meta);
		}
	}
	__atomic_add_fetch(&nr_leases, leases, __ATOMIC_RELAXED);
	return NULL;
}

/* One move of block @b to the slot it is not in; @slow: readers get a chance. */
static void move(u32 b, bool slow)
{
	u32 from, to, i;

	if (!kvt_move_try(&hot[b]))
		return;
	from = hot[b].mem_page;
	to = from < BLOCKS ? from + BLOCKS : from - BLOCKS;
	for (i = 0; i < WORDS; i++)
		slots[to].word[i] = slots[from].word[i];
	for (i = 0; slow && i < 4; i++)
		sched_yield();
	if (!kvt_ctl_update(&hot[b], KVT_CTL_STATE | KVT_CTL_MEM | LEASES,
			    KVT_READY | KVT_CTL_MEM, KVT_CTL_MEM, 0)) {
		CHECK(kvt_ctl_update(&hot[b], KVT_CTL_MOVING, KVT_CTL_MOVING,
				     KVT_CTL_MOVING, 0));
		nr_voided++;
		return;
	}
	/* Nobody can lease it now: the old slot is free, and dirty at once. */
	fill(from, 0xdead);
	hot[b].mem_page = to;
	CHECK(kvt_ctl_update(&hot[b], KVT_CTL_MOVING | KVT_CTL_MEM | LEASES,
			     KVT_CTL_MOVING, KVT_CTL_MOVING, KVT_CTL_MEM));
	nr_moves++;
}

/*
 * READY -> DEAD -> reaped -> READY again. If leases are left when the block
 * dies, the last of them must lead to the reaper: nobody else will.
 */
static void drop(u32 b)
{
	time_t give_up = time(NULL) + 300;

	reaped[b] = false;
	CHECK(kvt_ctl_update(&hot[b], KVT_CTL_STATE, KVT_READY, KVT_CTL_STATE, KVT_DEAD));
	reap(b);
	nr_late += !reaped[b];
	while (!reaped[b]) {
		spin_unlock(&meta);
		sched_yield();
		CHECK(time(NULL) < give_up);
		spin_lock(&meta);
	}
	fill(hot[b].mem_page, b + 1);
	CHECK(kvt_ctl_update(&hot[b], KVT_CTL_STATE, KVT_DEAD, KVT_CTL_STATE, KVT_READY));
}

static void *mover(void *arg)
{
	u64 state = (u64)(uintptr_t)arg, i;

	/* Longer if what is to happen has not: two threads may hardly run at once. */
	for (i = 0; i < rounds || (i < 50 * rounds && !(nr_voided && nr_late)); i++) {
		u32 b = race_random(&state) % BLOCKS;

		spin_lock(&meta);
		if (race_random(&state) % 16 == 0)
			drop(b);
		else
			move(b, race_random(&state) % 64 == 0);
		spin_unlock(&meta);
	}
	return NULL;
}

/* Rounds, with the injected interleavings counted: none may be absent. */
int main(int argc, char **argv)
{
	pthread_t thread[READERS + 1];
	u32 i;

	if (argc > 1)
		rounds = strtoull(argv[1], NULL, 0);
	spin_lock_init(&meta);
	for (i = 0; i < BLOCKS; i++) {
		hot[i].mem_page = i;
		fill(i, i + 1);
		atomic_set_release(&hot[i].ctl, KVT_READY | KVT_CTL_MEM);
	}
	for (i = 0; i < READERS; i++)
		CHECK(!pthread_create(&thread[i], NULL, reader, (void *)(uintptr_t)(i + 1)));
	CHECK(!pthread_create(&thread[READERS], NULL, mover, (void *)(uintptr_t)99));
	CHECK(!pthread_join(thread[READERS], NULL));
	WRITE_ONCE(stop, true);
	for (i = 0; i < READERS; i++)
		CHECK(!pthread_join(thread[i], NULL));
	for (i = 0; i < BLOCKS; i++)
		CHECK(kvt_ctl(&hot[i]) == (KVT_READY | KVT_CTL_MEM));
	printf("# leases %" PRIu64 ", moves %" PRIu64 ", voided by a lease %" PRIu64
	       ", reaped %" PRIu64 ", of these by the last lease %" PRIu64 "\n", nr_leases,
	       nr_moves, nr_voided, nr_reaps, nr_late);
	if (!nr_leases || !nr_moves || !nr_voided || !nr_reaps || !nr_late) {
		printf("not ok race/lease_vs_move\n");
		return 1;
	}
	printf("ok race/lease_vs_move\n");
	return race_fix(rounds / 1000);
}
