/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Space of memory tiers, in regions: see kvt_region.c. What is here may sleep, and is called with
 * no spinlock held, unless it says otherwise.
 *
 * Where an index of the pool's srcu is passed, srcu is let go of while a region's pages are worked
 * on, which takes long for a caller who is given little time. The region, DIRTY or CLEANING, keeps
 * its tier meanwhile; srcu is held again before that ends, so the tier is there until the caller
 * lets go of it. It may have been withdrawn by then, and take no more regions. It is also let go of
 * while memory for records is waited for, when nothing keeps the tier: -ENODEV, it has left.
 */
#ifndef KVT_REGION_H
#define KVT_REGION_H

#include <linux/types.h>

struct kvt_ns;
struct kvt_pool;
struct kvt_region;
struct kvt_tier;

struct kvt_region *kvt_region_record(const struct kvt_ns *ns, u32 group, u32 nr_pieces);
int kvt_region_get(struct kvt_tier *t, struct kvt_ns *ns, u32 group, int *idx);
int kvt_region_get_spare(struct kvt_tier *t, struct kvt_ns *ns, u32 group, u32 keep);
int kvt_region_get_arena(struct kvt_tier *t, struct kvt_ns *ns, u32 group, u32 nr_pieces,
			 u32 file_id, struct kvt_region **reg, int *idx);
u32 kvt_region_next(struct kvt_tier *t, u32 r, bool (*of)(const struct kvt_region *reg));
void kvt_region_clean(struct kvt_tier *t, struct kvt_region *reg, int *idx);
bool kvt_region_unquarantine(struct kvt_pool *p);
bool kvt_region_release_empty(struct kvt_pool *p, struct kvt_tier *t, u32 pieces, int *idx);
bool kvt_region_release_own(struct kvt_pool *p, struct kvt_tier *t, u32 ns_group);
void kvt_region_release_all(struct kvt_pool *p, struct kvt_tier *t);
bool kvt_pages_foreign(struct kvt_tier *t, u32 page, u32 nr);
bool kvt_pages_alone(struct kvt_tier *t, u32 page, u32 nr);
bool kvt_slot_foreign(struct kvt_tier *t, u32 page, u32 nr);
bool kvt_slot_in_arena(struct kvt_tier *t, u32 page);
void kvt_map_barrier(struct kvt_pool *p);
int kvt_slot_alloc(struct kvt_pool *p, struct kvt_ns *ns, u32 group, u32 id,
		   u32 skip, u32 *tier, u32 *page);	/* meta lock held */

#endif /* KVT_REGION_H */
