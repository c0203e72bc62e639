/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace simulator: what its parts share. The model is in sim_core.c.
 *
 * A trace is held in memory with ids renumbered from 0 in the order they appear;
 * every engine takes it whole and gives back one struct sim_result.
 */
#ifndef KVT_SIM_H
#define KVT_SIM_H

#include "kvt_env.h"

#define SIM_TIERS_MAX	3

/**
 * struct sim_trace - requests, oldest first
 * @nr_requests: how many
 * @nr_accesses: ids in all of them
 * @nr_distinct: different ids
 * @ts_ms:       arrival of each
 * @first:       where its ids begin; @nr_requests + 1 entries
 * @ids:         renumbered
 */
struct sim_trace {
	u32 nr_requests;
	u32 nr_accesses;
	u32 nr_distinct;
	u64 *ts_ms;
	u32 *first;
	u32 *ids;
};

/**
 * struct sim_config - what to simulate
 * @policy:   name
 * @nr_tiers: at least 1
 * @blocks:   capacity of each, fastest first
 * @segment:  blocks in a segment of the slowest tier's log; 0: it is not modelled,
 *            else at least 2. The log has its own segments besides @blocks
 * @log_blocks: blocks that the log has room for, at least @blocks of its tier, and not those
 *            that copies are kept of. 0: that many, and copies
 * @chunk:    a request comes in calls: one that takes what is there, then one for each
 *            so many blocks stored. 0: the policy is told once, of all
 * @numbered: calls carry the request's number
 * @hints:    after each request the policy is told when its session goes on, or that it does
 *            not, as the trace knows
 * @wrong:    percent of these hints are wrong
 * @scan:     after each request another tenant stores a chain of so many blocks that are
 *            never used. 0: there is none
 * @lies:     that tenant says of each of these chains when it goes on
 * @lie_ms:   so long from then; KVT_HINT_NEVER: not at all
 * @lie_random: anything instead
 * @lie_hot:  that its blocks will be used soon instead, as ADVISE HOT has it
 * @feign:    before each it asks once more for a chain of its own of so many blocks, and says the same
 *            of that
 * @feign_never: no: that it is over
 * @guarantee: blocks in memory that the trace's tenant is guaranteed; no more than that is
 *            room for. 0: none
 * @seed:     of the hash of keys, which a pool's is a random one of; it decides which
 *            sessions share a place in the table of recent requests
 * @timed:    look at the clock around whatever the core's policy does
 */
struct sim_config {
	const char *policy;
	u32 nr_tiers;
	u32 blocks[SIM_TIERS_MAX];
	u32 segment;
	u32 log_blocks;
	u32 chunk;
	bool numbered;
	bool hints;
	u32 wrong;
	u32 scan;
	bool lies;
	u32 lie_ms;
	bool lie_random;
	bool lie_hot;
	u32 feign;
	bool feign_never;
	u32 guarantee;
	u32 seed;
	bool timed;
};

/**
 * struct sim_result - what came out
 * @hits:         accesses whose block and all before it in the request were there
 * @hits_by_tier: the same by the tier of the fastest copy
 * @promotions:   blocks brought to the fastest tier because they were used
 * @demotions:    blocks that went a tier down
 * @slow_writes:  those of them whose bytes had to be written to the slowest tier
 * @carried:      blocks that were written once more to empty a segment; they are in
 *                @slow_writes, too
 * @evictions:    blocks that left, or never entered, to make room
 * @unread:       promoted blocks that went down again before they were used again
 * @ns:           time spent, all in all
 * @policy_ns:    in the policy, with @timed
 * @meta_bytes_per_block: index, table and policy when full; 0 for references
 */
struct sim_result {
	u64 hits;
	u64 hits_by_tier[SIM_TIERS_MAX];
	u64 promotions;
	u64 demotions;
	u64 slow_writes;
	u64 carried;
	u64 evictions;
	u64 unread;
	u64 ns;
	s64 policy_ns;
	double meta_bytes_per_block;
};

static inline u32 sim_request_len(const struct sim_trace *t, u32 r)
{
	return t->first[r + 1] - t->first[r];
}

/* Zeroed memory, or the end of the program. */
void *sim_alloc(size_t nr, size_t bytes);

/* 0, or -errno with a message printed. */
int sim_trace_load(const char *path, struct sim_trace *t);
void sim_trace_free(struct sim_trace *t);

/*
 * Engines. -ENOENT: not a policy of this one.
 *
 * The core's policies, and the references; see sim_core.c and sim_ref.c.
 */
int sim_core_run(const struct sim_trace *t, const struct sim_config *c,
		 struct sim_result *r);
int sim_ref_run(const struct sim_trace *t, const struct sim_config *c,
		struct sim_result *r);

#endif /* KVT_SIM_H */
