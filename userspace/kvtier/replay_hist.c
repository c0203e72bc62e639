// SPDX-License-Identifier: GPL-2.0
/*
 * Latency histograms. Values below 32 ns have a bucket each; above, a bucket is
 * the octave and the five bits after the leading one.
 */
#include "replay_hist.h"

#define SUB	(1u << HIST_SUB_BITS)

static unsigned int bucket_of(uint64_t ns)
{
	unsigned int octave;

	if (ns < SUB)
		return (unsigned int)ns;
	octave = 63 - (unsigned int)__builtin_clzll(ns) - HIST_SUB_BITS;
	if (octave >= HIST_OCTAVES)
		return HIST_BUCKETS - 1;
	return ((octave + 1) << HIST_SUB_BITS) + ((ns >> octave) & (SUB - 1));
}

uint64_t replay_hist_bucket_ns(unsigned int bucket)
{
	unsigned int octave = bucket >> HIST_SUB_BITS;
	uint64_t low;

	if (!octave)
		return bucket;
	low = (uint64_t)(SUB + (bucket & (SUB - 1))) << (octave - 1);
	return low + (1ULL << (octave - 1)) - 1;
}

/* One writer: no read-modify-write needed, only that readers see whole words. */
static void bump(uint64_t *word, uint64_t by)
{
	__atomic_store_n(word, *word + by, __ATOMIC_RELAXED);
}

void replay_hist_add(struct replay_hist *hist, uint64_t ns, uint64_t times)
{
	bump(&hist->buckets[bucket_of(ns)], times);
	bump(&hist->count, times);
	bump(&hist->sum_ns, ns * times);
	if (ns > hist->max_ns)
		__atomic_store_n(&hist->max_ns, ns, __ATOMIC_RELAXED);
}

void replay_hist_merge(struct replay_hist *into, const struct replay_hist *from)
{
	uint64_t max = __atomic_load_n(&from->max_ns, __ATOMIC_RELAXED);

	for (unsigned int i = 0; i < HIST_BUCKETS; i++) {
		uint64_t n = __atomic_load_n(&from->buckets[i], __ATOMIC_RELAXED);

		into->buckets[i] += n;
		into->count += n;
	}
	into->sum_ns += __atomic_load_n(&from->sum_ns, __ATOMIC_RELAXED);
	if (max > into->max_ns)
		into->max_ns = max;
}

uint64_t replay_hist_quantile(const struct replay_hist *hist, unsigned int permille)
{
	uint64_t seen = 0, rank;

	if (!hist->count)
		return 0;
	rank = (uint64_t)(((__uint128_t)hist->count * permille + 999) / 1000);
	if (!rank)
		rank = 1;
	for (unsigned int i = 0; i < HIST_BUCKETS; i++) {
		seen += hist->buckets[i];
		if (seen >= rank) {
			uint64_t ns = replay_hist_bucket_ns(i);

			return ns < hist->max_ns ? ns : hist->max_ns;
		}
	}
	return hist->max_ns;
}
