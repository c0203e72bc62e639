/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One process's view of the store: reading a prefix, storing the rest of it.
 */
#ifndef KVTIER_REPLAY_BLOCKS_H
#define KVTIER_REPLAY_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <kvtier/libkvtier.h>

#include "replay.h"

/**
 * struct replay_blocks - a client and the request it is at
 * @window:  blocks leased or reserved at a time, at most
 * @keys, @ids, @nr: the request's blocks
 * @request: number of the request, from 1
 * @slots, @found: scratch for one window
 */
struct replay_blocks {
	const struct replay_options *o;
	struct replay_shared *shared;
	struct replay_proc *me;
	struct replay_seen *seen;
	unsigned int proc;
	struct kvtier_ns *ns;
	uint32_t window;
	struct kvtier_key *keys;
	const uint64_t *ids;
	size_t nr;
	size_t room;		/* of @keys */
	uint64_t request;
	struct kvtier_slot *slots;
	struct kvtier_lookup_result *found;
	uint8_t tier_rank[KVTIER_TIERS_MAX];
	char what[64];		/* command in hand, for error messages */
};

/* After this and while it lives the namespace is open. 0 or a negative errno. */
int replay_blocks_init(struct replay_blocks *b);

/**
 * replay_blocks_request - serves one request: reads what is there, stores the rest
 * @ids: its blocks, head first; must stay while the call runs
 *
 * Returns 0 or a negative errno: the store refused a whole command.
 */
int replay_blocks_request(struct replay_blocks *b, uint64_t request,
			  const uint64_t *ids, size_t nr);

void replay_blocks_close(struct replay_blocks *b);

#endif
