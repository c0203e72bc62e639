/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A lease taken and given back, which every hit pays for: what it does most of the time is
 * inline, the rest and the rules are in kvt_fixed.c.
 */
#ifndef KVT_LEASE_H
#define KVT_LEASE_H

#include "kvt_internal.h"

/**
 * kvt_lease_found() - lease a block that has been found
 * @p: pool; the block's shard locked, and srcu or meta lock held
 * @h: block, whatever it is doing
 */
static inline enum kvt_leased kvt_lease_found(struct kvt_pool *p, struct kvt_hot *h)
{
	const struct kvt_tier *t;
	bool first;

	lockdep_assert_held(&kvt_ix_shard(&p->index, h->hash)->lock);
	if (!kvt_lease_try_first(h, &first))
		return KVT_LEASED_NOT;
	if (!first)
		return KVT_LEASED;
	t = p->tiers[h->mem_tier];
	if (likely(kvt_fix_more(kvt_mem_region_of(&t->mem, h->mem_page))))
		return KVT_LEASED;
	return kvt_lease_first(p, h);
}

/**
 * kvt_lease_end() - give a lease back
 * @p:  pool
 * @ns: whose block it is
 * @h:  block that the caller has a lease of
 * Return: true if that was the last lease of a DEAD block, which the caller must then
 * offer to the reaper.
 */
static inline bool kvt_lease_end(struct kvt_pool *p, struct kvt_ns *ns, struct kvt_hot *h)
{
	const struct kvt_tier *t = p->tiers[h->mem_tier];

	return kvt_lease_put_fixed(h, kvt_mem_region_of(&t->mem, h->mem_page), &ns->fixed.account);
}

#endif /* KVT_LEASE_H */
