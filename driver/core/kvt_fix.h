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
 * all of a namespace's paid regions are its total. Who makes it 0 gives them back afterwards.
 * So a region with fixed slots is always paid for, however calls race, and the total is too
 * large for a moment rather than too small. What of it is more than the namespace was
 * guaranteed is also part of two sums: of all namespaces of one owner, who has what is
 * guaranteed to them besides, and of all there are.
 *
 * Whether a payment may be made is looked at before, so that who is refused changes nothing
 * that others see, and again when it has been made. Of several at the same moment more may be
 * refused than need be. One too many may be granted only while the totals of others go past
 * their guarantees, up and down, at that very moment.
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

#define KVT_FIX_TRIES		8
#define KVT_FIX_SPARE		16	/* part of memory that is not for everybody */

/**
 * struct kvt_fix_account - what a namespace has paid for
 * @pieces:   of its regions with fixed slots
 * @promised: pieces that are guaranteed to it; does not change
 * @owner:    what all namespaces of its owner were promised, and have beyond that
 * @pool:     what all namespaces have beyond what they were promised
 */
struct kvt_fix_account {
	atomic_t pieces;
	int promised;
	atomic_t *owner;
	atomic_t *pool;
};

/**
 * struct kvt_fix_rules - what there is to be fixed, and for whom
 * @limit: pieces that a namespace may fix
 * @most:  that an owner may have, with what is guaranteed to him
 * @free:  pieces, without those in use within guarantees
 * @spare: of these, those that not everybody gets; 0: no rule for the last ones
 */
struct kvt_fix_rules {
	int limit;
	int most;
	int free;
	int spare;
};

/**
 * struct kvt_fix_sums - what there would be, or is
 * @pieces: the namespace's total
 * @owner:  as in its account
 * @pool:   the same
 */
struct kvt_fix_sums {
	int pieces;
	int owner;
	int pool;
};

/**
 * kvt_fix_spare() - how much is not for everybody
 * @all:  pieces of memory
 * @free: of these, those that are not in use within guarantees
 */
static inline int kvt_fix_spare(int all, int free)
{
	return min(all / KVT_FIX_SPARE, max((free + 1) / 2, 1));
}

/**
 * kvt_fix_fits() - may it be so
 * @s:        sums
 * @promised: to the namespace
 * @r:        rules
 *
 * What is guaranteed to a namespace is its own. Of the rest the last part, @spare, is for
 * namespaces that have no more in all than they leave; and the last half of that is for owners
 * who do. So what one takes is never more than what is there for the next one. A last piece
 * goes to who has nothing.
 */
static inline bool kvt_fix_fits(const struct kvt_fix_sums *s, int promised,
				const struct kvt_fix_rules *r)
{
	int left, little;

	if (s->pieces > r->limit)
		return false;
	if (s->pieces <= promised)
		return true;
	if (s->owner > r->most)
		return false;
	left = r->free - max(s->pool, 0);
	if (!r->spare || left >= r->spare)
		return true;
	if (left < 0)
		return false;
	little = max(left, 1);
	if (left < (r->spare + 1) / 2 && s->owner > little)
		return false;
	return s->pieces <= little;
}

/* Of @nr pieces, with which the total is @pieces, those beyond what is guaranteed. */
static inline int kvt_fix_beyond(const struct kvt_fix_account *a, int pieces, int nr)
{
	return clamp(pieces - a->promised, 0, nr);
}

/* May @nr pieces more be paid for, as things are. */
static inline bool kvt_fix_might(const struct kvt_fix_account *a, const struct kvt_fix_rules *r,
				 int nr)
{
	int pieces = atomic_read(&a->pieces) + nr, beyond = kvt_fix_beyond(a, pieces, nr);
	const struct kvt_fix_sums s = {
		.pieces = pieces,
		.owner = atomic_read(a->owner) + beyond,
		.pool = atomic_read(a->pool) + beyond,
	};

	return kvt_fix_fits(&s, a->promised, r);
}

/* May what has been paid for be kept. */
static inline bool kvt_fix_may(const struct kvt_fix_account *a, const struct kvt_fix_rules *r)
{
	const struct kvt_fix_sums s = {
		.pieces = atomic_read(&a->pieces),
		.owner = atomic_read(a->owner),
		.pool = atomic_read(a->pool),
	};

	return kvt_fix_fits(&s, a->promised, r);
}

/* Pay for @nr pieces. */
static inline void kvt_fix_pay(struct kvt_fix_account *a, int nr)
{
	int beyond = kvt_fix_beyond(a, atomic_add_return(nr, &a->pieces), nr);

	if (beyond) {
		atomic_add(beyond, a->owner);
		atomic_add(beyond, a->pool);
		/* Of two who pay at the same moment one sees both. */
		smp_mb__after_atomic();
	}
}

/* Have @nr pieces back. */
static inline void kvt_fix_repay(struct kvt_fix_account *a, int nr)
{
	int pieces = atomic_sub_return(nr, &a->pieces);
	int beyond = kvt_fix_beyond(a, pieces + nr, nr);

	if (beyond) {
		atomic_sub(beyond, a->owner);
		atomic_sub(beyond, a->pool);
	}
}

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
 * kvt_fix_paid() - fix a slot of a region that has been paid for
 * @reg: region
 * @a:   account that it was paid from
 */
static inline void kvt_fix_paid(struct kvt_region *reg, struct kvt_fix_account *a)
{
	int old = 0;

	while (!atomic_try_cmpxchg(&reg->fixed, &old, old + 1))
		;
	/* Somebody else had paid for it, too. */
	if (old)
		kvt_fix_repay(a, (int)reg->nr_pieces);
}

/**
 * kvt_fix_first() - fix a slot of a region that perhaps has no fixed ones
 * @reg: region
 * @a:   its namespace's account
 * @r:   rules
 * Return: false: that would be too much; nothing has changed.
 */
static inline bool kvt_fix_first(struct kvt_region *reg, struct kvt_fix_account *a,
				 const struct kvt_fix_rules *r)
{
	int nr = (int)reg->nr_pieces, tries;

	for (tries = 0; tries < KVT_FIX_TRIES; tries++) {
		if (kvt_fix_might(a, r, nr)) {
			kvt_fix_pay(a, nr);
			if (kvt_fix_may(a, r)) {
				kvt_fix_paid(reg, a);
				return true;
			}
			kvt_fix_repay(a, nr);
		}
		/* Somebody else may have paid for it meanwhile, or be about to say so. */
		if (kvt_fix_more(reg))
			return true;
	}
	return false;
}

/* The same whatever the rules say. */
static inline void kvt_fix_force(struct kvt_region *reg, struct kvt_fix_account *a)
{
	kvt_fix_pay(a, (int)reg->nr_pieces);
	kvt_fix_paid(reg, a);
}

/**
 * kvt_fix_put() - a slot is not fixed any more
 * @reg: region
 * @a:   its namespace's account
 */
static inline void kvt_fix_put(struct kvt_region *reg, struct kvt_fix_account *a)
{
	if (!atomic_sub_return(1, &reg->fixed))
		kvt_fix_repay(a, (int)reg->nr_pieces);
}

/**
 * kvt_lease_put_fixed() - give a lease back, and with a block's last one its slot
 * @h:   entry
 * @reg: where it is
 * @a:   its namespace's account
 * Return: as kvt_lease_put().
 */
static inline bool kvt_lease_put_fixed(struct kvt_hot *h, struct kvt_region *reg,
				       struct kvt_fix_account *a)
{
	int old = atomic_read(&h->ctl);
	bool freed = false, last;

	do {
		last = kvt_ctl_leases((u32)old) == 1;
		if (last && !freed)
			kvt_fix_put(reg, a);
		else if (!last && freed && !kvt_fix_more(reg))
			kvt_fix_force(reg, a);
		freed = last;
	} while (!atomic_try_cmpxchg(&h->ctl, &old, (int)((u32)old - KVT_CTL_LEASE_ONE)));
	return last && kvt_ctl_state((u32)old) == KVT_DEAD;
}

#endif /* KVT_FIX_H */
