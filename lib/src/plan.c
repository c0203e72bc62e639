// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Fetch or recompute: where a chain is split. See kvtier_plan() in the header for the
 * model.
 *
 * Invariant of the walk: before block i, fetch_ns is what blocks 0..i-1 cost to fetch
 * and compute_ns what the others cost to compute. The first is only ever added to and
 * the second, once it is known, only taken from, so neither wraps if their largest
 * values fit.
 */
#include <errno.h>
#include "internal.h"

/* Cost of computing the block at @position; false if it does not fit. */
static bool block_cost(const struct kvtier_prefill *p, uint64_t position, uint64_t *ns)
{
	uint64_t grown;

	return !__builtin_mul_overflow(p->grow_ns, position, &grown) &&
	       !__builtin_add_overflow(p->block_ns, grown, ns);
}

/* Cost of computing all; false if it does not fit. */
static bool chain_cost(const struct kvtier_prefill *p, uint32_t nr, uint64_t *ns)
{
	uint64_t one, position;
	uint32_t i;

	*ns = p->start_ns;
	for (i = 0; i < nr; i++) {
		if (__builtin_add_overflow(p->position, i, &position) ||
		    !block_cost(p, position, &one) || __builtin_add_overflow(*ns, one, ns))
			return false;
	}
	return true;
}

/* Add a block that is fetched; false if it does not fit. */
static bool add_fetch(const struct kvtier_prefill *p, const struct kvtier_lookup_result *r,
		      uint64_t *ns)
{
	return !__builtin_add_overflow(*ns, r->cost_ns, ns) &&
	       !__builtin_add_overflow(*ns, p->load_ns, ns);
}

/*
 * Is a later split better than, or as good as, the best so far: what it costs more to
 * fetch against what it saves. The sums of both may not fit 64 bits.
 */
static bool better(uint64_t fetch_ns, uint64_t compute_ns, const struct kvtier_plan *best)
{
	return fetch_ns - best->fetch_ns <= best->compute_ns - compute_ns;
}

KVTI_EXPORT int kvtier_plan(const struct kvtier_prefill *prefill,
			    const struct kvtier_lookup_result *results, uint32_t nr,
			    struct kvtier_plan *plan)
{
	struct kvtier_plan best = { 0 };
	uint64_t fetch_ns = 0, compute_ns, one = 0;
	uint32_t i;

	if (!prefill || !results || !nr || !plan)
		return -EINVAL;
	if (!chain_cost(prefill, nr, &compute_ns))
		return -EOVERFLOW;
	best.compute_ns = compute_ns;
	for (i = 0; i < nr && results[i].status == KVTIER_ST_HIT; i++) {
		if (!add_fetch(prefill, &results[i], &fetch_ns))
			return -EOVERFLOW;
		/* It fitted in chain_cost(). */
		block_cost(prefill, prefill->position + i, &one);
		compute_ns -= one;
		if (i + 1 == nr)
			compute_ns -= prefill->start_ns;
		if (!better(fetch_ns, compute_ns, &best))
			continue;
		best.nr_fetch = i + 1;
		best.fetch_ns = fetch_ns;
		best.compute_ns = compute_ns;
	}
	*plan = best;
	return 0;
}
