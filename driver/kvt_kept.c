// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that a namespace keeps from others, whatever these need it for.
 *
 * Of its own accord: blocks that are pinned, or held for sessions, or in dma-bufs. Each of
 * the two kinds has a limit for each namespace, half of memory. And all namespaces together
 * have one for what they keep beyond their guarantees, so that several of them cannot have
 * what one cannot: three quarters of the memory that is guaranteed to nobody. So who has a
 * guarantee finds room for that much, and for everybody else some is left.
 *
 * By others' doing: regions that somebody refers to from outside (a device, a pipe) when
 * they are to change hands. They wait in quarantine, for as long as whoever it is likes. A
 * namespace whose regions there are more than a quarter of memory gets no new ones; it makes
 * do with those that it has. When all that is in quarantine is more than half of memory
 * this goes for any namespace that has something there. What is within its guarantee is
 * its own to waste.
 *
 * Invariant: p->beyond_bytes is the sum of all namespaces' @beyond_bytes.
 *
 * Lock: the meta lock for everything.
 */
#include "kvt_internal.h"

/* All memory there is, of tiers that are being emptied as well. */
static u64 kvt_kept_memory(const struct kvt_pool *p, u64 *quarantined_bytes)
{
	u64 sum = 0;
	u32 i;

	lockdep_assert_held(&p->meta_lock);
	*quarantined_bytes = 0;
	for (i = 0; i < p->nr_tiers; i++) {
		const struct kvt_tier *t = p->tiers[p->order[i]];

		if (!t->ops->is_mem)
			continue;
		sum += kvt_tier_present_bytes(t);
		*quarantined_bytes += atomic64_read(&t->count.quarantined_bytes);
	}
	return sum;
}

static u64 kvt_kept_beyond(const struct kvt_ns *ns)
{
	u64 kept = ns->kept.pinned_bytes + ns->kept.export_bytes;

	return kept - min(kept, ns->min_bytes);
}

/* How much more of one kind, of which it has @has_bytes already. */
static u64 kvt_kept_room(const struct kvt_pool *p, const struct kvt_ns *ns, u64 has_bytes)
{
	u64 quarantined, memory = kvt_kept_memory(p, &quarantined), own, all;
	u64 promised = min(READ_ONCE(p->guaranteed_bytes), memory);
	u64 kept = ns->kept.pinned_bytes + ns->kept.export_bytes;

	own = memory / 2;
	all = (memory - promised) / 4 * 3;
	all -= min(all, p->beyond_bytes);
	/* What is left of its guarantee it need not share. */
	all += ns->min_bytes - min(ns->min_bytes, kept);
	return min(own - min(own, has_bytes), all);
}

/**
 * kvt_kept_pin_room() - how much more may be pinned, or held for sessions
 * @p:  pool, meta lock held
 * @ns: whose
 * Return: slot bytes.
 */
u64 kvt_kept_pin_room(const struct kvt_pool *p, const struct kvt_ns *ns)
{
	return kvt_kept_room(p, ns, ns->kept.pinned_bytes);
}

/**
 * kvt_kept_export_room() - how much more may be exported
 * @p:  pool, meta lock held
 * @ns: whose
 * Return: slot bytes.
 */
u64 kvt_kept_export_room(const struct kvt_pool *p, const struct kvt_ns *ns)
{
	return kvt_kept_room(p, ns, ns->kept.export_bytes);
}

static void kvt_kept_account(struct kvt_pool *p, struct kvt_ns *ns)
{
	u64 beyond = kvt_kept_beyond(ns);

	lockdep_assert_held(&p->meta_lock);
	p->beyond_bytes += beyond - ns->kept.beyond_bytes;
	ns->kept.beyond_bytes = beyond;
}

/**
 * kvt_kept_pin() - something is pinned or held, or no more
 * @p:     pool, meta lock held
 * @ns:    whose
 * @bytes: of slots, negative: no more
 */
void kvt_kept_pin(struct kvt_pool *p, struct kvt_ns *ns, s64 bytes)
{
	ns->kept.pinned_bytes += bytes;
	kvt_kept_account(p, ns);
}

/**
 * kvt_kept_export() - something is in a dma-buf, or no more
 * @p:     pool, meta lock held
 * @ns:    whose
 * @bytes: of slots, negative: no more
 */
void kvt_kept_export(struct kvt_pool *p, struct kvt_ns *ns, s64 bytes)
{
	ns->kept.export_bytes += bytes;
	kvt_kept_account(p, ns);
}

/**
 * kvt_kept_barred() - is too much of a namespace in quarantine for it to get new regions
 * @p:  pool, meta lock held
 * @ns: namespace
 */
bool kvt_kept_barred(const struct kvt_pool *p, const struct kvt_ns *ns)
{
	u64 has = ns->kept.quarantined_bytes, all, memory;

	/* Nearly always. */
	if (!has || has + ns->mem_bytes <= ns->min_bytes)
		return false;
	memory = kvt_kept_memory(p, &all);
	return all > memory / 2 || has > memory / 4;
}
