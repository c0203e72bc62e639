// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that a namespace keeps from others, whatever these need it for.
 *
 * Of its own accord: blocks that are pinned, or held for sessions, and blocks in dma-bufs. Each
 * of the two kinds has a limit for each namespace, half of memory. And all namespaces
 * together have one for what they keep beyond their guarantees, so that several of them
 * cannot have what one cannot: three quarters of the memory that is guaranteed to nobody.
 * What is pinned may also be on block tiers, so half of these counts for it, too. So who has a
 * guarantee finds room for that much, and for everybody else some is left. The last quarter of
 * that is for namespaces whose owner has no more of it than he leaves: one user's do not keep
 * another from pinning or exporting anything, however many he has.
 *
 * By others' doing: regions that somebody refers to from outside (a device, a pipe) when
 * they are to change hands. They wait in quarantine, for as long as whoever it is likes. A
 * namespace whose regions there are more than a quarter of memory gets no new ones; it makes
 * do with those that it has. When all that is in quarantine is more than half of memory
 * this goes for any namespace that has something there. What is within its guarantee is
 * its own to waste.
 *
 * What is in use within guarantees, slots or arenas, is counted as well, for those who are to
 * leave others some of the rest: see kvt_fixed.c.
 *
 * Invariant: p->guarded_bytes is the sum of all namespaces' @guarded_bytes; p->beyond_bytes are
 * the sums of all namespaces' @beyond_bytes; @kept_bytes of an owner (struct kvt_fixed_owner)
 * are those of his.
 *
 * Lock: the meta lock for everything.
 */
#include "kvt_internal.h"

#define KVT_KEPT_SPARE	4u

/**
 * struct kvt_kept_of - what there is to be kept
 * @memory_bytes: of all memory tiers, those that are being emptied as well
 * @block_bytes:  of block tiers that take blocks
 * @quarantined_bytes: of memory, in quarantine
 */
struct kvt_kept_of {
	u64 memory_bytes;
	u64 block_bytes;
	u64 quarantined_bytes;
};

static struct kvt_kept_of kvt_kept_of(const struct kvt_pool *p)
{
	struct kvt_kept_of of = { 0 };
	u32 i;

	lockdep_assert_held(&p->meta_lock);
	for (i = 0; i < p->nr_tiers; i++) {
		const struct kvt_tier *t = p->tiers[p->order[i]];

		if (t->ops->is_mem) {
			of.memory_bytes += kvt_tier_present_bytes(t);
			of.quarantined_bytes += atomic64_read(&t->count.quarantined_bytes);
		} else if (t->state == KVTIER_TIER_ONLINE) {
			of.block_bytes += kvt_log_capacity(t);
		}
	}
	return of;
}

/* Of what all may keep @gone is: how much more is there for an owner who has @his of that. */
static u64 kvt_kept_shared(u64 all, u64 gone, u64 his)
{
	u64 left = all - min(all, gone), others = all / KVT_KEPT_SPARE;

	return max(left - min(left, others), (left - min(left, his)) / 2);
}

/* How much more of a kind may be kept; @blocks: on block tiers, too. */
static u64 kvt_kept_room(const struct kvt_pool *p, const struct kvt_ns *ns,
			 enum kvt_kept_kind kind, bool blocks)
{
	struct kvt_kept_of of = kvt_kept_of(p);
	u64 promised = min(READ_ONCE(p->guaranteed_bytes), of.memory_bytes);
	u64 has = ns->kept.bytes[kind], own = of.memory_bytes / 2, all;

	all = (of.memory_bytes - promised) / 4 * 3 + (blocks ? of.block_bytes / 2 : 0);
	all = kvt_kept_shared(all, p->beyond_bytes[kind], ns->fixed.owner->kept_bytes[kind]);
	/* What is left of its guarantee it need not share. */
	all += ns->min_bytes - min(ns->min_bytes, has);
	return min(own - min(own, has), all);
}

/**
 * kvt_kept_pin_room() - how much more may be pinned, or held for sessions
 * @p:  pool, meta lock held
 * @ns: whose
 * Return: slot bytes.
 */
u64 kvt_kept_pin_room(const struct kvt_pool *p, const struct kvt_ns *ns)
{
	return kvt_kept_room(p, ns, KVT_KEPT_PINNED, true);
}

/**
 * kvt_kept_export_room() - how much more may be exported
 * @p:  pool, meta lock held
 * @ns: whose
 * Return: slot bytes.
 */
u64 kvt_kept_export_room(const struct kvt_pool *p, const struct kvt_ns *ns)
{
	return kvt_kept_room(p, ns, KVT_KEPT_EXPORTED, false);
}

static void kvt_kept_guard(struct kvt_ns *ns)
{
	u64 has = min(max(ns->mem_bytes, ns->arena_bytes), ns->min_bytes);
	struct kvt_pool *p = ns->pool;

	lockdep_assert_held(&p->meta_lock);
	if (has == ns->kept.guarded_bytes)
		return;
	WRITE_ONCE(p->guarded_bytes, p->guarded_bytes + has - ns->kept.guarded_bytes);
	ns->kept.guarded_bytes = has;
}

/**
 * kvt_kept_mem() - a namespace has slots in memory, or no more
 * @ns:    namespace, its pool's meta lock held
 * @bytes: of slots, negative: no more
 */
void kvt_kept_mem(struct kvt_ns *ns, s64 bytes)
{
	ns->mem_bytes += bytes;
	kvt_kept_guard(ns);
}

/**
 * kvt_kept_arena() - a namespace has arenas, or no more
 * @ns:    namespace, its pool's meta lock held
 * @bytes: of regions, negative: no more
 */
void kvt_kept_arena(struct kvt_ns *ns, s64 bytes)
{
	ns->arena_bytes += bytes;
	kvt_kept_guard(ns);
}

static void kvt_kept_add(struct kvt_pool *p, struct kvt_ns *ns, enum kvt_kept_kind kind,
			 s64 bytes)
{
	struct kvt_fixed_owner *o = ns->fixed.owner;
	struct kvt_kept *k = &ns->kept;
	u64 beyond;

	lockdep_assert_held(&p->meta_lock);
	k->bytes[kind] += bytes;
	beyond = k->bytes[kind] - min(k->bytes[kind], ns->min_bytes);
	WRITE_ONCE(p->beyond_bytes[kind], p->beyond_bytes[kind] + beyond - k->beyond_bytes[kind]);
	WRITE_ONCE(o->kept_bytes[kind], o->kept_bytes[kind] + beyond - k->beyond_bytes[kind]);
	k->beyond_bytes[kind] = beyond;
}

/**
 * kvt_kept_pin() - something is pinned or held, or no more
 * @p:     pool, meta lock held
 * @ns:    whose
 * @bytes: of slots, negative: no more
 */
void kvt_kept_pin(struct kvt_pool *p, struct kvt_ns *ns, s64 bytes)
{
	kvt_kept_add(p, ns, KVT_KEPT_PINNED, bytes);
}

/**
 * kvt_kept_export() - something is in a dma-buf, or no more
 * @p:     pool, meta lock held
 * @ns:    whose
 * @bytes: of slots, negative: no more
 */
void kvt_kept_export(struct kvt_pool *p, struct kvt_ns *ns, s64 bytes)
{
	kvt_kept_add(p, ns, KVT_KEPT_EXPORTED, bytes);
}

/**
 * kvt_kept_stuck_bytes() - how much of what is pinned may be stuck in memory
 * @p: pool; srcu or meta lock held
 *
 * The rest can be on block tiers. What is pinned within a guarantee does not count.
 * Return: slot bytes.
 */
u64 kvt_kept_stuck_bytes(struct kvt_pool *p)
{
	u64 pinned = READ_ONCE(p->beyond_bytes[KVT_KEPT_PINNED]), room = 0;
	u32 i;

	if (!pinned)
		return 0;
	for (i = 0; i < KVT_TIERS; i++) {
		const struct kvt_tier *t = kvt_tier_at(p, i);

		if (t && !t->ops->is_mem && READ_ONCE(t->state) == KVTIER_TIER_ONLINE)
			room += kvt_log_capacity(t);
	}
	return pinned - min(pinned, room / 2);
}

/**
 * kvt_kept_barred() - is too much of a namespace in quarantine for it to get new regions
 * @p:  pool, meta lock held
 * @ns: namespace
 */
bool kvt_kept_barred(const struct kvt_pool *p, const struct kvt_ns *ns)
{
	u64 has = ns->kept.quarantined_bytes;
	struct kvt_kept_of of;

	/* Nearly always. */
	if (!has || has + ns->mem_bytes <= ns->min_bytes)
		return false;
	of = kvt_kept_of(p);
	return of.quarantined_bytes > of.memory_bytes / 2 || has > of.memory_bytes / 4;
}
