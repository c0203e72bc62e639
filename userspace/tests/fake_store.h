/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A stand-in for libkvtier and the kernel below it, for tests of what uses them.
 *
 * It defines the kvtier_*() functions the replay calls, on a store in memory that
 * all processes share: three tiers (fast and slow memory, a block device), one
 * namespace, chains that stay whole, leases, reservations, single flight, LRU
 * demotion and eviction of leaves. It can be told to misbehave.
 */
#ifndef KVTIER_TESTS_FAKE_STORE_H
#define KVTIER_TESTS_FAKE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#define FAKE_TIERS	3

/**
 * struct fake_config - what kind of store; 0: that one never
 * @blocks:         room of each tier
 * @block_bytes:    as the namespace is going to be opened
 * @corrupt_every:  one byte of every Nth block is changed after its commit
 * @no_space_every: every Nth reservation is refused with NOSPACE
 * @get_no_space_every: every Nth GET leases nothing: NOSPACE
 * @partial_get_every: every Nth GET leases one block only
 * @kill_at:        the process that makes the Nth commit call is killed in it
 * @refuse_at:      the Nth commit call fails as a whole with EIO
 * @slow_commit:    commits take 1 ms, so that processes meet
 * @unprivileged:   pool counters are EPERM
 */
struct fake_config {
	uint32_t blocks[FAKE_TIERS];
	uint64_t block_bytes;
	uint32_t corrupt_every;
	uint32_t no_space_every;
	uint32_t get_no_space_every;
	uint32_t partial_get_every;
	uint32_t kill_at;
	uint32_t refuse_at;
	bool slow_commit;
	bool unprivileged;
};

/* Counters of what was injected, and what is held. */
struct fake_totals {
	uint64_t corrupted, no_space, get_no_space, partial_gets, killed, refused;
	uint64_t puts, leases, reservations, waits;
};

/* Makes an empty store in place of the one before. */
void fake_store_reset(const struct fake_config *config);

void fake_store_totals(struct fake_totals *totals);

#endif
