// SPDX-License-Identifier: GPL-2.0
/*
 * Cost of reads; see kvt_cost.h for the model.
 */
#include "kvt_cost.h"

#define COST_SHIFT	3	/* a new sample counts for 1/8 */
#define COST_NS_MAX	(1ull << 43)	/* for a MiB, and of a sample: two hours and a half */

/**
 * kvt_cost_sample() - reads have ended
 * @c:        cost
 * @bytes:    how much was read
 * @start_ns: when the first was started
 * @end_ns:   when the last ended; earlier than @start_ns: a clock went back, no sample
 */
void kvt_cost_sample(struct kvt_cost *c, u64 bytes, u64 start_ns, u64 end_ns)
{
	u64 old = READ_ONCE(c->ns_per_mib), new;

	if (!bytes || end_ns < start_ns)
		return;
	/* In two steps: no product is too large. */
	new = min_t(u64, end_ns - start_ns, COST_NS_MAX);
	new = div64_u64(new << 20, bytes);
	new = min_t(u64, new, min_t(u64, old * KVT_COST_LEAP, COST_NS_MAX));
	new = old - (old >> COST_SHIFT) + (new >> COST_SHIFT);
	/* Small ones would stop short of where they tend to. */
	if (new == old && new > 1 && !(old >> COST_SHIFT))
		new--;
	WRITE_ONCE(c->ns_per_mib, new ?: 1);
}

/**
 * kvt_cost_ns() - time to read
 * @c:     cost
 * @bytes: so much
 */
u64 kvt_cost_ns(const struct kvt_cost *c, u64 bytes)
{
	u64 each = READ_ONCE(c->ns_per_mib), mib;

	mib = bytes >> 20;
	bytes &= (1u << 20) - 1;
	/* @each is at most 2^43, what is left of @bytes below 2^20. */
	return min_t(u64, mib, (1ull << 63) / (each + 1)) * each + ((bytes * each) >> 20);
}

/**
 * kvt_cost_round() - as it is told
 * @ns: any time
 * Return: the next of 1, 2, 3, 4, 6, 8, 12, 16 ... that is not less; 0 stays 0.
 */
u64 kvt_cost_round(u64 ns)
{
	u64 step = 1;

	if (ns > 1ull << 62)
		return 1ull << 62;
	while (step < ns && step * 3 / 2 < ns)
		step *= 2;
	return !ns ? 0 : step >= ns ? step : step * 3 / 2;
}
