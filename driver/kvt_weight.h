/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Weights of namespaces: see kvt_weight.c.
 */
#ifndef KVT_WEIGHT_H
#define KVT_WEIGHT_H

#include <linux/types.h>

#define KVT_WEIGHT_MAX	10000u
#define KVT_WEIGHT_REST	100u	/* of all that have none, together */

struct kvt_ns;
struct kvt_pool;
struct kvt_tier;

/* Meta lock held */
bool kvt_weight_guarded(struct kvt_pool *p, const struct kvt_tier *t, const struct kvt_ns *ns,
			u64 leaving_bytes, u64 coming_bytes);
void kvt_weight_set(struct kvt_ns *ns, u32 weight);

/* sysfs */
ssize_t kvt_weight_show(struct kvt_ns *ns, char *buf);
int kvt_weight_store(struct kvt_ns *ns, const char *buf);

#endif /* KVT_WEIGHT_H */
