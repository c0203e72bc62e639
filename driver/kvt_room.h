/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How tiers get room without moving what is in use: memory tiers by giving pieces back
 * and taking them again, block tiers by emptying segments.
 */
#ifndef KVT_ROOM_H
#define KVT_ROOM_H

#include "tier.h"

/* kvt_shrink.c: memory tiers that give way */
bool kvt_shrink_work(struct kvt_pool *p, struct kvt_tier *t);
void kvt_shrink_short(struct kvt_tier *t, u32 pieces);
bool kvt_shrink_concerns(const struct kvt_tier *t, int node);
int kvt_shrink_start(struct kvt_tier *t);
void kvt_shrink_stop(struct kvt_tier *t);

/* kvt_demote.c: any tier */
void kvt_tier_space(struct kvt_tier *t, u64 *used, u64 *all);
bool kvt_collect_guarded(struct kvt_pool *p, const struct kvt_tier *t,
			 const struct kvt_hot *h, const struct kvt_ns *asker,
			 const u32 *ids, u32 nr);
u32 kvt_collect_owners_least(struct kvt_pool *p, const struct kvt_tier *t, bool leaf, u32 id);

/* kvt_evacuate.c: claimed blocks, of any tier */
void kvt_unclaim(struct kvt_pool *p, const u32 *ids, u32 nr);

/* kvt_clean.c: block tiers */
enum kvt_clean {
	KVT_CLEAN_LOWER,	/* what leaves may go to a tier below */
	KVT_CLEAN_SPARE,	/* a log that is dense is left to whoever evicts */
	KVT_CLEAN_CARRY,	/* it is cleaned all the same: none can leave */
};

bool kvt_tier_has_room(struct kvt_pool *p, struct kvt_tier *t);
bool kvt_tier_room_below(struct kvt_pool *p, const struct kvt_tier *from);
bool kvt_log_clean(struct kvt_tier *t, enum kvt_clean how);
bool kvt_log_probe(struct kvt_tier *t);
bool kvt_log_readable(const struct kvt_tier *t);
bool kvt_log_retire(struct kvt_tier *t);
void kvt_log_evacuate(struct kvt_pool *p, struct kvt_tier *t, bool discard);

#endif /* KVT_ROOM_H */
