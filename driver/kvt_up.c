// SPDX-License-Identifier: GPL-2.0
/*
 * From one memory tier to a faster one: blocks that were used where they are.
 *
 * Readers have such a block in place, so nobody waits for it, and to move it costs a copy; to have
 * something else make room costs another. So while the faster tier is below its low watermark they go
 * up as they come, and after that one goes up for one that is worth less, which goes down: the two
 * trade places. What is guaranteed to its namespace there does not go for it. A policy that does not
 * know what a block is worth takes what was used last: then the tier is filled up to the last slot,
 * passes its high watermark, and what is cold in it goes down.
 *
 * Whoever is claimed to go down does so when the other one has come, or stays: both are MOVING in
 * between, so neither is anybody else's to move. Who comes up needs a slot that is free, of its
 * owner's or in a region that nobody has: nothing is taken from others for that.
 */
#include <linux/slab.h>

#include "core/kvt_policy_gate.h"
#include "kvt_internal.h"
#include "kvt_limits.h"
#include "kvt_room.h"

#define KVT_UP_BUDGET	256u	/* blocks that are looked at for a batch */

/*
 * struct kvt_up - blocks on their way
 * @nr:     how many
 * @budget: how many more may be looked at for what goes for them
 * @full:   whose there is no slot for, or 0
 * @ids, @nr_ids: all that are claimed to go down
 * @victim: goes down for that one, or KVT_NIL
 * @from:   the tier it is on
 * @mv:     their moves
 */
struct kvt_up {
	u32 nr;
	u32 budget;
	u32 full;
	u32 nr_ids;
	u32 ids[KVT_MOVE_BATCH];
	u32 victim[KVT_MOVE_BATCH];
	struct kvt_tier *from[KVT_MOVE_BATCH];
	struct kvt_mv mv[KVT_MOVE_BATCH];
};

/* Can this block go to a faster memory tier. */
static bool kvt_up_claim(struct kvt_pool *p, u32 id)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);
	u32 ctl = kvt_ctl(h);

	lockdep_assert_held(&p->meta_lock);
	if (!(ctl & KVT_CTL_MEM) || kvt_ctl_state(ctl) != KVT_READY)
		return false;
	if (p->tiers[h->mem_tier]->state != KVTIER_TIER_ONLINE ||
	    p->order[0] == h->mem_tier)
		return false;
	return kvt_move_try(h);
}

/* Claim what is worth less than @id and may go from @t for it, or KVT_NIL. */
static u32 kvt_up_victim(struct kvt_pool *p, struct kvt_tier *t, u32 id, struct kvt_up *u)
{
	const struct kvt_ns *ns = kvt_ns_of(p, kvt_hot(&p->table, id)->ns_group);
	const struct kvt_policy_ops *ops = p->policy.ops;
	bool claimed = false;
	u32 least;

	lockdep_assert_held(&p->meta_lock);
	while (!claimed && (least = ops->next(&p->policy, t->id, false, &u->budget)) != KVT_NIL) {
		struct kvt_hot *h = kvt_hot(&p->table, least);

		if (kvt_collect_guarded(p, t, h, ns, u->ids, u->nr_ids)) {
			kvt_policy_guarded(&p->policy, t->id, least);
			continue;
		}
		least = kvt_collect_owners_least(p, t, false, least);
		if (!kvt_gate_trades(&p->policy, id, least))
			return KVT_NIL;
		claimed = kvt_move_try(kvt_hot(&p->table, least));
		/* Out of the way of the next question, taken or not. */
		ops->skip(&p->policy, t->id, least);
	}
	if (claimed)
		u->ids[u->nr_ids++] = least;
	return least;
}

/* Is there room on @t for the @i-th block, or something that goes for it. */
static bool kvt_up_pays(struct kvt_pool *p, struct kvt_tier *t, struct kvt_up *u, u32 i)
{
	const struct kvt_mv *mv = &u->mv[i];
	bool pays;

	spin_lock(&p->meta_lock);
	p->policy.now_ms = kvt_now_ms();
	pays = !p->policy.ops->worth || !kvt_tier_over(p, t, READ_ONCE(p->watermark_low_percent));
	/* Nothing is asked to go for who may not come. */
	if (!pays && kvt_limit_fits(kvt_ns_of(p, kvt_hot(&p->table, mv->id)->ns_group), t,
				    mv->x.bytes)) {
		u->victim[i] = kvt_up_victim(p, t, mv->id, u);
		u->from[i] = t;
		pays = u->victim[i] != KVT_NIL;
	}
	kvt_policy_searched(&p->policy);
	spin_unlock(&p->meta_lock);
	return pays;
}

static void kvt_up_place(struct kvt_pool *p, struct kvt_up *u, u32 i)
{
	u32 nr, k, rank = u->mv[i].x.src->rank;
	struct kvt_tier *t[KVT_TIERS];
	bool full = false;

	nr = kvt_tier_snapshot(p, t, true);
	for (k = 0; k < nr && t[k]->rank < rank; k++) {
		if (t[k]->state != KVTIER_TIER_ONLINE || !kvt_up_pays(p, t[k], u, i))
			continue;
		if (kvt_mv_place_mem(p, &u->mv[i], t[k]))
			return;
		full |= u->mv[i].over == KVT_NO_TIER;
		if (u->victim[i] == KVT_NIL)
			continue;
		kvt_unclaim(p, &u->ids[--u->nr_ids], 1);
		u->victim[i] = KVT_NIL;
	}
	if (full)
		u->full = kvt_hot(&p->table, u->mv[i].id)->ns_group;
}

/*
 * Those that others have come for go, tier by tier: by the tier they are on, which may be no more.
 * One that is being emptied does that itself.
 */
static void kvt_up_lower(struct kvt_pool *p, struct kvt_up *u)
{
	u32 ids[KVT_MOVE_BATCH], n, i, k;
	struct kvt_tier *t;

	for (i = 0; i < u->nr; i++) {
		if (u->victim[i] == KVT_NIL)
			continue;
		t = u->from[i];
		for (k = i, n = 0; k < u->nr; k++) {
			if (u->victim[k] == KVT_NIL || u->from[k] != t)
				continue;
			ids[n++] = u->victim[k];
			u->victim[k] = KVT_NIL;
		}
		if (READ_ONCE(t->state) == KVTIER_TIER_ONLINE && kvt_tier_has_lower(p, t))
			kvt_demote(p, t, ids, n, false);
		else
			kvt_unclaim(p, ids, n);
	}
}

/* One that is leased again meanwhile stays, and nothing goes for it. */
static void kvt_up_finish(struct kvt_pool *p, struct kvt_up *u)
{
	u32 ids[KVT_MOVE_BATCH], n = 0, i;

	spin_lock(&p->meta_lock);
	for (i = 0; i < u->nr; i++) {
		if (!u->mv[i].placed) {
			kvt_mv_cancel(p, &u->mv[i]);
		} else if (!kvt_mv_finish(p, &u->mv[i], false) && u->victim[i] != KVT_NIL) {
			ids[n++] = u->victim[i];
			u->victim[i] = KVT_NIL;
		}
	}
	spin_unlock(&p->meta_lock);
	for (i = 0; i < u->nr; i++)
		kvt_block_wake(p, u->mv[i].id);
	kvt_unclaim(p, ids, n);
}

/**
 * kvt_promote_up() - move recently used blocks to faster memory, if that pays
 * @p:   pool; srcu held, may sleep; called by its worker
 * @ids: blocks that were used, maybe gone by now
 * @nr:  at most KVT_MOVE_BATCH
 */
void kvt_promote_up(struct kvt_pool *p, const u32 *ids, u32 nr)
{
	struct kvt_up *u = kvmalloc(sizeof(*u), GFP_KERNEL);
	u32 i;

	if (!u)
		return;
	u->nr = u->nr_ids = u->full = 0;
	u->budget = KVT_UP_BUDGET;
	spin_lock(&p->meta_lock);
	/* They have been used since they were put in their places. */
	kvt_touch_drain(p);
	for (i = 0; i < nr; i++) {
		if (!kvt_up_claim(p, ids[i]))
			continue;
		u->victim[u->nr] = KVT_NIL;
		kvt_mv_start(p, &u->mv[u->nr++], ids[i]);
	}
	spin_unlock(&p->meta_lock);
	for (i = 0; i < u->nr; i++) {
		if (kvt_hot(&p->table, u->mv[i].id)->ns_group != u->full)
			kvt_up_place(p, u, i);
	}
	kvt_mv_run(u->mv, u->nr);
	kvt_up_finish(p, u);
	kvt_up_lower(p, u);
	kvfree(u);
}
