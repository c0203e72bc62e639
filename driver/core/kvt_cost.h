/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a read from a block tier costs, from the reads that were made.
 *
 * A sample is a number of reads that were in flight together: how much, and how long from
 * the first one's start to the last one's end. The estimate is a moving average of the time
 * for a MiB, a new sample counting for 1/8, and no sample for more than KVT_COST_LEAP times
 * the estimate: one hiccup does not make a tier useless, a device that has become slow is
 * known after some samples.
 *
 * What is told is the time for so many bytes behind so many that others wait for, rounded
 * to one significant bit and a half: so a client learns how busy a tier is about, and not
 * what others do on it.
 *
 * Lock: none. Samples may race, and one of them is lost then.
 */
#ifndef KVT_COST_H
#define KVT_COST_H

#include "kvt_env.h"

#define KVT_COST_START_NS	1000000u	/* for a MiB, until it has been measured: 1 GiB/s */
#define KVT_COST_LEAP		8u

/**
 * struct kvt_cost - of a tier
 * @ns_per_mib: estimate; at least 1
 */
struct kvt_cost {
	u64 ns_per_mib;
};

static inline void kvt_cost_init(struct kvt_cost *c)
{
	c->ns_per_mib = KVT_COST_START_NS;
}

void kvt_cost_sample(struct kvt_cost *c, u64 bytes, u64 start_ns, u64 end_ns);
u64 kvt_cost_ns(const struct kvt_cost *c, u64 bytes);
u64 kvt_cost_round(u64 ns);

#endif /* KVT_COST_H */
