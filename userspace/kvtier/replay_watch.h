/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parent's view while the replay runs: samples over time, progress line.
 */
#ifndef KVTIER_REPLAY_WATCH_H
#define KVTIER_REPLAY_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <kvtier/libkvtier.h>

#include "replay.h"

#define WATCH_SAMPLES_MAX	480	/* even */

/* Sums at a moment; all count from the start of the replay. */
struct watch_sample {
	uint64_t t_ns;
	struct replay_counters counters;
	uint64_t used_bytes[KVTIER_TIERS_MAX];
	uint64_t promotions_in[KVTIER_TIERS_MAX];
	uint64_t demotions_in[KVTIER_TIERS_MAX];
	uint64_t evictions;
};

/* A tier as it was at the start, and its counters now less those at the start. */
struct watch_tier {
	struct kvtier_tier_info info;
	struct kvtier_tier_stat before;
	struct kvtier_tier_stat delta;
};

/**
 * struct replay_watch - what the parent knows
 * @tiers:     fastest first
 * @pool_stat: the kernel told the pool's counters (it needs CAP_SYS_ADMIN); all
 *             of @before, @delta and what comes from them is 0 otherwise
 * @samples:   evenly spread: when they are full every other one goes and the
 *             interval doubles
 */
struct replay_watch {
	const struct replay_options *o;
	const struct replay_survey *survey;
	const struct replay_shared *shared;
	struct kvtier_pool *pool;
	bool pool_stat;
	unsigned int nr_tiers;
	struct watch_tier tiers[KVTIER_TIERS_MAX];
	struct kvtier_stat before, now;
	uint64_t start_ns;
	uint64_t interval_ns;
	unsigned int nr_samples;
	struct watch_sample samples[WATCH_SAMPLES_MAX];
	bool tty;
	bool line_open;		/* a progress line without its end is on the screen */
	uint64_t last_line_ns;
	uint64_t last_requests;
};

/* Opens the pool and takes the counters to start from: 0 or a negative errno. */
int watch_init(struct replay_watch *watch, const struct replay_options *o,
	       const struct replay_survey *survey, const struct replay_shared *shared);

/* To be called often while the replay runs. Returns 0 or a negative errno. */
int watch_poll(struct replay_watch *watch);

/* Last sample and last line; brings all counters up to date. */
int watch_finish(struct replay_watch *watch);

void watch_close(struct replay_watch *watch);

/* Sum of what all processes counted. */
void watch_sum(const struct replay_shared *shared, unsigned int procs,
	       struct replay_counters *sum);

#endif
