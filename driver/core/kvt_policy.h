/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Policy: which block goes down or out next.
 *
 * A policy keeps every committed block that is not in use elsewhere on exactly
 * one of its lists, by the tier of its fastest copy, and answers one question:
 * which block of this tier is worth least. It never moves anything itself.
 * Candidates are offered, the mechanism decides whether one can go; what it
 * cannot take it reports back with ->skip.
 *
 * Two kinds of departure are told apart: *demotion* keeps the block in the pool,
 * so any block qualifies; *eviction* takes it out, so only leaves do.
 *
 * Lock: the pool's meta lock for every call.
 */
#ifndef KVT_POLICY_H
#define KVT_POLICY_H

#include "kvt_block.h"

#define KVT_TIERS	16

struct kvt_policy;

/**
 * struct kvt_policy_ops - one policy
 * @name:   as in sysfs
 * @insert: block became resident in the tier
 * @remove: block is leaving the tier (or the pool)
 * @touch:  block was used
 * @cool:   block will not be used: first in line
 * @next:   least valuable block of the tier. @leaf: only a block without
 *          children. Looks at no more than *@budget blocks and takes what it
 *          looked at off it. KVT_NIL: none found
 * @skip:   what @next gave cannot go now; do not offer it again soon
 *
 * All run under the meta lock, in constant time except @next.
 */
struct kvt_policy_ops {
	const char *name;
	void (*insert)(struct kvt_policy *p, u32 tier, u32 id);
	void (*remove)(struct kvt_policy *p, u32 tier, u32 id);
	void (*touch)(struct kvt_policy *p, u32 tier, u32 id);
	void (*cool)(struct kvt_policy *p, u32 tier, u32 id);
	u32 (*next)(struct kvt_policy *p, u32 tier, bool leaf, u32 *budget);
	void (*skip)(struct kvt_policy *p, u32 tier, u32 id);
};

/**
 * struct kvt_policy - a policy at work
 * @ops:    which one
 * @table:  block entries
 * @now_ms: pool clock, set by the caller before a batch of calls
 * @list:   a list for each tier; every policy keeps its blocks here, so that
 *          changing the policy at run time loses nothing but order
 */
struct kvt_policy {
	const struct kvt_policy_ops *ops;
	struct kvt_table *table;
	u32 now_ms;
	struct kvt_list list[KVT_TIERS];
};

extern const struct kvt_policy_ops kvt_policy_lru;

const struct kvt_policy_ops *kvt_policy_find(const char *name, size_t len);
const struct kvt_policy_ops *kvt_policy_at(u32 i);
void kvt_policy_init(struct kvt_policy *p, const struct kvt_policy_ops *ops,
		     struct kvt_table *table);

#endif /* KVT_POLICY_H */
