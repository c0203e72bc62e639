/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Members that a pool has lost: see kvt_leavers.c.
 */
#ifndef KVT_LEAVERS_H
#define KVT_LEAVERS_H

#include <linux/list.h>
#include <linux/types.h>

#include "core/kvt_format.h"

/* Of a namespace, beside the ids of tiers: blocks of it may be on a leaver. */
#define KVT_ON_LEAVER	(1u << 31)

struct kvt_ns;
struct kvt_pool;
struct kvt_tier;

/* A member that has left and was not wiped. */
struct kvt_leaver {
	struct list_head link;
	u8 uuid[KVT_UUID_BYTES];
};

/**
 * struct kvt_leavers - of a pool
 * @list: struct kvt_leaver; @nr of them
 * @tell: counts members that were lost: superblocks written since leave them out
 *
 * Meta lock.
 */
struct kvt_leavers {
	struct list_head list;
	u32 nr;
	u32 tell;
};

void kvt_leavers_init(struct kvt_pool *p);
void kvt_leavers_forget(struct kvt_pool *p);
void kvt_leaver_add(struct kvt_tier *t);
int kvt_leaver_found(struct kvt_pool *p, const u8 *uuid);
bool kvt_leavers_fit(struct kvt_pool *p);
void kvt_leaver_back(struct kvt_pool *p, const u8 *uuid);
bool kvt_leavers_concern(const struct kvt_ns *ns, const struct kvt_tier *t);
void kvt_leavers_check(struct kvt_pool *p);
void kvt_leavers_ns_new(struct kvt_pool *p, struct kvt_ns *ns);

#endif /* KVT_LEAVERS_H */
