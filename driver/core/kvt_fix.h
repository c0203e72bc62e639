/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is fixed in place, and what one namespace may fix.
 *
 * A slot is *fixed* while nobody may move the block in it: somebody has a lease of it, it is
 * being filled, or it waits for foreign references to its pages to go. Memory changes hands in
 * whole regions. So one fixed slot keeps its region from everybody else, and what counts
 * against a namespace is not the slots but the regions that have any.
 *
 * A region counts its fixed slots. Who makes that 1 pays for the region first: the pieces of
 * all of a namespace's paid regions are its total, which has a limit. Who makes it 0 gives
 * them back afterwards. So a region with fixed slots is always paid for, however calls race,
 * and the total is too large for a moment rather than too small.
 *
 * Leases are the exception when they end. Only the lease keeps the region's record, so its
 * slot is freed before it is given back, and is fixed again, whatever the limit says, if somebody
 * else has leased the block by then. That exceeds the limit by no more regions than leases are
 * being given back at that moment.
 *
 * Any context, no lock. The caller keeps the slot's region: see "Lifetime of a record" in
 * kvt_mem.h.
 */
#ifndef KVT_FIX_H
#define KVT_FIX_H

#include "kvt_mem.h"

#define KVT_FIX_NO_LIMIT	INT_MAX
#define KVT_FIX_TRIES		8

/**
 * kvt_fix_more() - fix one more slot of a region that has fixed ones
 * @reg: region
 * Return: false: it has none.
 */
static inline bool kvt_fix_more(struct kvt_region *reg)
{
	int old = atomic_read(&reg->fixed);

	do {
		if (!old)
			return false;
	} while (!atomic_try_cmpxchg(&reg->fixed, &old, old + 1));
	return true;
}

/**
 * kvt_fix_first() - fix a slot of a region that perhaps has no fixed ones
 * @reg:   region
 * @total: its namespace's, in pieces
 * @limit: of that
 * Return: false: that would be too much; nothing has changed.
 */
static inline bool kvt_fix_first(struct kvt_region *reg, atomic_t *total, int limit)
{
	int nr = (int)reg->nr_pieces, old = 0, tries;

	for (tries = 0; atomic_add_return(nr, total) > limit; tries++) {
		atomic_sub_return(nr, total);
		/* Somebody else may have paid for it meanwhile, or be about to say so. */
		if (kvt_fix_more(reg))
			return true;
		if (tries == KVT_FIX_TRIES)
			return false;
	}
	while (!atomic_try_cmpxchg(&reg->fixed, &old, old + 1))
		;
	if (old)
		atomic_sub_return(nr, total);
	return true;
}

/**
 * kvt_fix_put() - a slot is not fixed any more
 * @reg:   region
 * @total: as for kvt_fix_first()
 */
static inline void kvt_fix_put(struct kvt_region *reg, atomic_t *total)
{
	if (!atomic_sub_return(1, &reg->fixed))
		atomic_sub_return((int)reg->nr_pieces, total);
}

/**
 * kvt_lease_put_fixed() - give a lease back, and with a block's last one its slot
 * @h:     entry
 * @reg:   where it is
 * @total: as for kvt_fix_first()
 * Return: as kvt_lease_put().
 */
static inline bool kvt_lease_put_fixed(struct kvt_hot *h, struct kvt_region *reg,
				       atomic_t *total)
{
	int old = atomic_read(&h->ctl);
	bool freed = false, last;

	do {
		last = kvt_ctl_leases((u32)old) == 1;
		if (last && !freed)
			kvt_fix_put(reg, total);
		else if (!last && freed && !kvt_fix_more(reg))
			kvt_fix_first(reg, total, KVT_FIX_NO_LIMIT);
		freed = last;
	} while (!atomic_try_cmpxchg(&h->ctl, &old, (int)((u32)old - KVT_CTL_LEASE_ONE)));
	return last && kvt_ctl_state((u32)old) == KVT_DEAD;
}

#endif /* KVT_FIX_H */
