/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Latency histograms: buckets of 1/32 octave, so a value is known to 3 %. All
 * zero is an empty one. One writer, any number of readers at the same time.
 */
#ifndef KVTIER_REPLAY_HIST_H
#define KVTIER_REPLAY_HIST_H

#include <stdint.h>

#define HIST_SUB_BITS	5
#define HIST_OCTAVES	42	/* up to 2^47 ns, more than a day */
#define HIST_BUCKETS	((HIST_OCTAVES + 1) << HIST_SUB_BITS)

struct replay_hist {
	uint64_t count;
	uint64_t sum_ns;
	uint64_t max_ns;
	uint64_t buckets[HIST_BUCKETS];
};

/* Adds a value @times times. */
void replay_hist_add(struct replay_hist *hist, uint64_t ns, uint64_t times);

void replay_hist_merge(struct replay_hist *into, const struct replay_hist *from);

/* The value that @permille of 1000 values do not exceed; 0 if there are none. */
uint64_t replay_hist_quantile(const struct replay_hist *hist, unsigned int permille);

/* Largest value that falls into a bucket. */
uint64_t replay_hist_bucket_ns(unsigned int bucket);

#endif
