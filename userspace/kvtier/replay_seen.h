/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which process used which block: what private caches would have cost.
 *
 * Model: an open-addressing table of ids, built from the trace before the
 * processes start and shared by them; each entry has one bit for each process.
 * While they run no entry is added or moved, so setting a bit is one atomic or.
 */
#ifndef KVTIER_REPLAY_SEEN_H
#define KVTIER_REPLAY_SEEN_H

#include <stdint.h>

#define REPLAY_PROCS_MAX	64		/* bits of an entry */
#define REPLAY_DISTINCT_MAX	(1ULL << 27)	/* ids: a table of 4 GiB */

struct replay_seen;

/* NULL if there is no memory. */
struct replay_seen *replay_seen_new(void);

/* Before the fork: 1 if the id is new, 0 if not, -ENOMEM, -E2BIG. */
int replay_seen_add(struct replay_seen *seen, uint64_t id);

/* Ids in the table. */
uint64_t replay_seen_nr(const struct replay_seen *seen);

/* Process @proc (0..REPLAY_PROCS_MAX-1) used the block. */
void replay_seen_mark(struct replay_seen *seen, uint64_t id, unsigned int proc);

/**
 * replay_seen_count - blocks used
 * @shared:  out: distinct blocks that any process used
 * @private: out: the sum over processes of distinct blocks each used
 */
void replay_seen_count(const struct replay_seen *seen, uint64_t *shared,
		       uint64_t *private);

void replay_seen_free(struct replay_seen *seen);

#endif
