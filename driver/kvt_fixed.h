/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Leases and reservations, and what a namespace may fix by them: see kvt_fixed.c.
 */
#ifndef KVT_FIXED_H
#define KVT_FIXED_H

#include <linux/list.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <linux/xarray.h>

#include "core/kvt_fix.h"
#include "kvt_kept.h"

#define KVT_LIMIT_DEFAULT	U64_MAX

struct kvt_hot;
struct kvt_ns;
struct kvt_pool;
struct kvt_tier;

/**
 * struct kvt_fixed_owner - all namespaces of a pool's that have the same owner
 * @uid:    his, when they came to the pool
 * @nr_ns:  how many they are. conf_lock
 * @pieces: what they were guaranteed and have fixed beyond that. No lock
 * @kept_bytes: what they have pinned, or held for sessions, and exported, beyond that. Meta
 *          lock
 * @lingering: dma-bufs of theirs that nobody has, but whose pages somebody refers to. Meta lock
 * @turn:   in pool->fixed.lingering if there are such. Meta lock
 */
struct kvt_fixed_owner {
	kuid_t uid;
	u32 nr_ns;
	atomic_t pieces;
	u64 kept_bytes[KVT_KEPT_KINDS];
	struct list_head lingering;
	struct list_head turn;
};

/**
 * struct kvt_fixed - what a namespace has fixed, and root's limit
 * @account:     in pieces of regions with fixed slots, see core/kvt_fix.h. No lock
 * @owner:       shared with other namespaces. conf_lock
 * @limit_bytes: of what is fixed; or KVT_LIMIT_DEFAULT. No lock
 * @leave:       it was more than the default when root set it. No lock
 */
struct kvt_fixed {
	struct kvt_fix_account account;
	struct kvt_fixed_owner *owner;
	u64 limit_bytes;
	bool leave;
};

/**
 * struct kvt_fixed_sum - a pool's memory, in pieces
 * @online: of tiers that take blocks
 * @whole:  of all tiers, less what is in quarantine
 * @free:   of that, what is not in use within guarantees
 * @stuck:  pinned, and with no block tier to go to
 */
struct kvt_fixed_sum {
	u32 online;
	u32 whole;
	u32 free;
	u32 stuck;
};

/**
 * struct kvt_fixed_all - of a pool
 * @owners:   by uid. conf_lock
 * @beyond:   what all namespaces have fixed beyond their guarantees, in pieces. No lock
 * @sum:      worked out at @at_jiffy, or about then. No lock
 * @at_jiffy: 0: never
 * @lingering: owners with lingering dma-bufs. Meta lock
 * @looks:  at those, so far. Worker only
 */
struct kvt_fixed_all {
	struct xarray owners;
	atomic_t beyond;
	struct kvt_fixed_sum sum;
	unsigned long at_jiffy;
	struct list_head lingering;
	u32 looks;
};

/* What became of an attempt to lease a block. */
enum kvt_leased {
	KVT_LEASED,
	KVT_LEASED_NOT,		/* it cannot be leased now */
	KVT_LEASED_LIMIT,	/* its namespace is at its limit */
};

int kvt_fixed_prepare(struct kvt_ns *ns);

/* conf_lock held */
u32 kvt_fixed_nr_ns(struct kvt_pool *p, kuid_t uid);
int kvt_fixed_join(struct kvt_ns *ns);
void kvt_fixed_promise(struct kvt_ns *ns);
void kvt_fixed_leave(struct kvt_ns *ns);

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
