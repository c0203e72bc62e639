/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Leases and reservations, and what a namespace may fix by them: see kvt_fixed.c.
 */
#ifndef KVT_FIXED_H
#define KVT_FIXED_H

#include <linux/atomic.h>
#include <linux/types.h>

#define KVT_LIMIT_DEFAULT	U64_MAX

struct kvt_hot;
struct kvt_ns;
struct kvt_pool;
struct kvt_tier;

/**
 * struct kvt_fixed - what a namespace has fixed, and root's limit
 * @pieces:      of regions with fixed slots, see core/kvt_fix.h. No lock
 * @limit_bytes: of that; or KVT_LIMIT_DEFAULT. No lock
 * @hint:        jiffy when the limit was asked for, and what it was in pieces. No lock
 */
struct kvt_fixed {
	atomic_t pieces;
	u64 hint;
	u64 limit_bytes;
};

/* What became of an attempt to lease a block. */
enum kvt_leased {
	KVT_LEASED,
	KVT_LEASED_NOT,		/* it cannot be leased now */
	KVT_LEASED_LIMIT,	/* its namespace is at its limit */
};

void kvt_fixed_init(struct kvt_fixed *f);
/* srcu or meta lock held: tiers stay */
u64 kvt_fixed_limit(struct kvt_pool *p, const struct kvt_ns *ns);
u64 kvt_fixed_bytes(const struct kvt_ns *ns);
bool kvt_slot_fix(struct kvt_pool *p, struct kvt_tier *t, u32 page, bool force);
void kvt_slot_unfix(struct kvt_pool *p, struct kvt_tier *t, u32 page);
enum kvt_leased kvt_lease_first(struct kvt_pool *p, struct kvt_hot *h);
enum kvt_leased kvt_lease_take(struct kvt_pool *p, u32 id);

/* sysfs */
ssize_t kvt_fixed_limit_show(struct kvt_ns *ns, char *buf);
int kvt_fixed_limit_store(struct kvt_ns *ns, const char *buf);

#endif /* KVT_FIXED_H */
