/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What namespaces may have on single tiers: see kvt_limits.c.
 */
#ifndef KVT_LIMITS_H
#define KVT_LIMITS_H

#include <linux/types.h>

struct kvt_hot;
struct kvt_mv;
struct kvt_ns;
struct kvt_pool;
struct kvt_tier;

/* Meta lock held */
void kvt_limit_count(struct kvt_ns *ns, struct kvt_tier *t, u32 slot_bytes, int n);
bool kvt_limit_fits(const struct kvt_ns *ns, const struct kvt_tier *t, u64 slot_bytes);
bool kvt_limit_permits(const struct kvt_ns *ns, const struct kvt_tier *t, u64 slot_bytes);
void kvt_limit_want(struct kvt_ns *ns, struct kvt_tier *t, u32 slot_bytes);
bool kvt_limit_refuses(struct kvt_pool *p, struct kvt_mv *mv, struct kvt_tier *t);
void kvt_limit_coming(struct kvt_pool *p, struct kvt_mv *mv);
void kvt_limit_came(struct kvt_pool *p, struct kvt_mv *mv);
u64 kvt_limit_bytes(const struct kvt_tier *t, u64 slot_bytes);
bool kvt_limit_guarded(struct kvt_pool *p, const struct kvt_tier *t, const struct kvt_ns *ns,
		       u64 leaving_bytes, u64 coming_bytes);
bool kvt_limit_owed(struct kvt_pool *p, const struct kvt_tier *t, const struct kvt_ns *ns,
		    u64 slot_bytes);
bool kvt_limit_owed_mem(struct kvt_pool *p, const struct kvt_tier *t, const struct kvt_ns *ns,
			u64 coming_bytes);

/* No spinlock held, may sleep */
int kvt_limit_room(struct kvt_pool *p, struct kvt_tier *t, struct kvt_ns *ns, u32 slot_bytes);
u32 kvt_limit_lower(struct kvt_pool *p, struct kvt_tier *t, struct kvt_ns *ns, u64 bytes);
bool kvt_limit_displace(struct kvt_pool *p, struct kvt_tier *t, u32 ns_group, u64 bytes);
bool kvt_limits_work(struct kvt_pool *p);

void kvt_limits_init(struct kvt_ns *ns);
void kvt_limits_ns_gone(struct kvt_pool *p, struct kvt_ns *ns);
void kvt_limits_tier_gone(struct kvt_pool *p, u32 id);

/* sysfs */
int kvt_limits_store(struct kvt_ns *ns, const char *buf, bool min);
ssize_t kvt_limits_show(struct kvt_ns *ns, char *buf);
ssize_t kvt_mins_show(struct kvt_ns *ns, char *buf);
ssize_t kvt_shares_show(struct kvt_ns *ns, char *buf);

#endif /* KVT_LIMITS_H */
