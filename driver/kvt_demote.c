// SPDX-License-Identifier: GPL-2.0
/*
 * Downwards: demotion and eviction.
 *
 * The policy says which block is worth least, the functions here make it go:
 * down to the next tier that has room for it, or out of the pool if there is no
 * lower tier to take it. Only blocks without children go out. What is leased,
 * pinned or on the move is passed over and offered again later.
 */
#include <linux/slab.h>

#include "kvt_internal.h"
#include "kvt_mlog.h"
#include "kvt_trace.h"

#define KVT_COLLECT_BUDGET	256u

/**
 * kvt_tier_space() - how much of a tier is used, and of how much
 * @t:    tier
 * @used: out
 * @all:  out, in the same unit
 *
 * What is retired or absent does not count as capacity, nor do the segments of a log that
 * are kept for cleaning; copies do not count as used. Racy without the meta lock.
 */
void kvt_tier_space(struct kvt_tier *t, u64 *used, u64 *all)
{
	if (t->ops->is_mem) {
		*used = READ_ONCE(t->mem.used_pages);
		*all = (u64)(t->nr_pieces - READ_ONCE(t->mem.nr_absent)) * KVT_PIECE_PAGES -
		       READ_ONCE(t->mem.retired_pages);
	} else {
		*used = kvt_log_used(&t->log) * t->unit_bytes;
		*all = kvt_log_capacity(t);
	}
}

/**
 * kvt_tier_over() - is more of a tier used than this
 * @p:       pool
 * @t:       tier
 * @percent: of its capacity, see kvt_tier_space()
 */
bool kvt_tier_over(struct kvt_pool *p, struct kvt_tier *t, u32 percent)
{
	u64 used, all;

	kvt_tier_space(t, &used, &all);
	return used * 100 > all * percent;
}

/**
 * kvt_collect_guarded() - is a block guaranteed to its namespace once claimed ones have left
 * @p:     pool, meta lock held
 * @t:     tier that they are on
 * @h:     block
 * @asker: namespace that needs room, NULL: none; see kvt_ns_guarded()
 * @ids:   those that are claimed
 * @nr:    how many
 *
 * They all are counted still, and there may be as many as make a guarantee.
 */
bool kvt_collect_guarded(struct kvt_pool *p, const struct kvt_tier *t,
			 const struct kvt_hot *h, const struct kvt_ns *asker,
			 const u32 *ids, u32 nr)
{
	const struct kvt_ns *ns = kvt_ns_of(p, h->ns_group);
	u64 leaving_bytes = 0;
	u32 ns_group, i;

	lockdep_assert_held(&p->meta_lock);
	/* Nearly always. */
	if (!ns->min_bytes && !ns->kept.weight && !ns->share[t->id].min)
		return false;
	for (i = 0; i < nr; i++) {
		ns_group = kvt_hot(&p->table, ids[i])->ns_group;
		if (kvt_ns_of(p, ns_group) == ns)
			leaving_bytes += kvt_limit_bytes(t, kvt_slot_bytes(kvt_group_of(p, ns_group)));
	}
	return kvt_ns_guarded(p, t, h, asker, leaving_bytes);
}

/**
 * kvt_collect_owners_least() - which of its owner's blocks is to go for one that was found
 * @p:    pool, meta lock held
 * @t:    tier
 * @leaf: see kvt_collect()
 * @id:   worth least of what was found, and not guaranteed to its owner at present
 *
 * When it was, others' searches have put aside what is worth less of his: that goes first.
 */
u32 kvt_collect_owners_least(struct kvt_pool *p, const struct kvt_tier *t, bool leaf, u32 id)
{
	u32 ns_group = kvt_hot(&p->table, id)->ns_group;
	const struct kvt_ns *ns = kvt_ns_of(p, ns_group);

	lockdep_assert_held(&p->meta_lock);
	/* Nearly always. */
	if (!p->policy.ops->aside ||
	    (!ns->min_bytes && !ns->kept.weight && !ns->share[t->id].min))
		return id;
	/* What cannot go is passed over: many looks for each would be a long time under the lock. */
	if (!kvt_policy_owned(&p->policy, id, ns_group, leaf, KVT_NIL))
		return id;
	return kvt_policy_lesser(&p->policy, id, kvt_policy_least_of(&p->policy, t->id, ns_group,
								     leaf, id));
}

/**
 * kvt_collect() - claim the least valuable blocks of a tier
 * @p:        pool
 * @t:        tier
 * @leaf:     only blocks that may leave the pool
 * @ns_group: only this owner's; 0: anybody's, but not what is guaranteed to its
 *            namespace
 * @asker:    namespace that needs room, NULL: none; see kvt_ns_guarded()
 * @ids:      out: claimed (MOVING)
 * @max:      room in @ids
 * Return: how many.
 */
u32 kvt_collect(struct kvt_pool *p, struct kvt_tier *t, bool leaf, u32 ns_group,
		const struct kvt_ns *asker, u32 *ids, u32 max)
{
	u32 budget = KVT_COLLECT_BUDGET, nr = 0, id;
	const struct kvt_policy_ops *ops;

	spin_lock(&p->meta_lock);
	ops = p->policy.ops;
	kvt_touch_drain(p);
	while (nr < max) {
		struct kvt_hot *h;

		id = ops->next(&p->policy, t->id, leaf, &budget);
		if (id == KVT_NIL)
			break;
		h = kvt_hot(&p->table, id);
		if (h->ns_group != ns_group && kvt_collect_guarded(p, t, h, asker, ids, nr)) {
			kvt_policy_guarded(&p->policy, t->id, id);
			continue;
		}
		if (ns_group && h->ns_group != ns_group)
			break;
		if (!ns_group) {
			id = kvt_collect_owners_least(p, t, leaf, id);
			h = kvt_hot(&p->table, id);
		}
		if (!(leaf && (kvt_ctl(h) & KVT_CTL_STAYS)) && kvt_move_try(h))
			ids[nr++] = id;
		/* Out of the way of the next question, taken or not. */
		ops->skip(&p->policy, t->id, id);
	}
	kvt_policy_searched(&p->policy);
	spin_unlock(&p->meta_lock);
	return nr;
}

/**
 * kvt_evict_claimed() - a claimed block leaves the pool, if it may
 * @p:   pool, meta lock held
 * @id:  block with MOVING set by the caller; cleared here
 * @why: the cause; only KVT_WHY_DETACH takes a block that has children, is pinned or held
 * Return: whether it left.
 */
bool kvt_evict_claimed(struct kvt_pool *p, u32 id, enum kvt_why why)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);
	u32 ctl = kvt_ctl(h);
	bool may = kvt_ctl_state(ctl) == KVT_READY && !kvt_ctl_leases(ctl);

	lockdep_assert_held(&p->meta_lock);
	if (why != KVT_WHY_DETACH)
		may = may && kvt_ch_leaf(&p->table, id) && !(ctl & KVT_CTL_STAYS);
	/* A lease taken after this look keeps a dead block's bytes; it is still a miss. */
	if (may) {
		kvt_ctl_update(h, 0, 0, KVT_CTL_MOVING, 0);
		kvt_block_lose(p, id, why);
	} else {
		kvt_mv_stays(p, id);
	}
	/* Somebody may have seen it MOVING and wait for its end. */
	kvt_block_wake(p, id);
	return may;
}

/* Evict what the policy found worth least. Meta lock held. Whether it left. */
static bool kvt_evict_next(struct kvt_pool *p, struct kvt_tier *t, const struct kvt_ns *asker,
			   u32 id)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);

	lockdep_assert_held(&p->meta_lock);
	if (kvt_ns_guarded(p, t, h, asker, 0)) {
		kvt_policy_guarded(&p->policy, t->id, id);
		return false;
	}
	id = kvt_collect_owners_least(p, t, true, id);
	h = kvt_hot(&p->table, id);
	if (!(kvt_ctl(h) & KVT_CTL_STAYS) && kvt_move_try(h) &&
	    kvt_evict_claimed(p, id, KVT_WHY_ROOM))
		return true;
	p->policy.ops->skip(&p->policy, t->id, id);
	return false;
}

/**
 * kvt_evict_some() - make room in the lowest tier
 * @p:   pool
 * @t:   tier
 * @max: most blocks to evict
 * @asker: namespace that needs it, NULL: none; see kvt_ns_guarded()
 *
 * One at a time: a chain goes from its end, and its next block is a leaf only
 * when the one after it has gone.
 * Return: how many went.
 */
u32 kvt_evict_some(struct kvt_pool *p, struct kvt_tier *t, u32 max, const struct kvt_ns *asker)
{
	u32 budget = KVT_COLLECT_BUDGET + 2 * max, nr = 0, id;

	spin_lock(&p->meta_lock);
	kvt_touch_drain(p);
	while (nr < max) {
		id = p->policy.ops->next(&p->policy, t->id, true, &budget);
		if (id == KVT_NIL)
			break;
		nr += kvt_evict_next(p, t, asker, id);
	}
	kvt_policy_searched(&p->policy);
	spin_unlock(&p->meta_lock);
	kvt_garbage_free(p);
	return nr;
}

/**
 * kvt_lower_some() - make some room in a tier
 * @p:   pool; srcu held, may sleep
 * @t:   tier
 * @max: most blocks to go, at most KVT_MOVE_BATCH
 *
 * Down, or out if there is no lower tier. Where nothing below can go because its chains end
 * here, what is worth least here may have no way out, and be asked for again and again: then
 * the ends go.
 * Return: how many went.
 */
u32 kvt_lower_some(struct kvt_pool *p, struct kvt_tier *t, u32 max)
{
	u32 ids[KVT_MOVE_BATCH], put_off = READ_ONCE(p->nr_put_off), nr, gone;

	if (!kvt_tier_has_lower(p, t))
		return kvt_evict_some(p, t, max, NULL);
	nr = kvt_collect(p, t, false, 0, NULL, ids, max);
	gone = kvt_demote(p, t, ids, nr, false);
	/* There is room below, only not at once. */
	if (gone || !nr || put_off != READ_ONCE(p->nr_put_off))
		return gone;
	nr = kvt_collect(p, t, true, 0, NULL, ids, max);
	return kvt_demote(p, t, ids, nr, false);
}

/* Place what has no place yet on a memory tier. Whether all have one now. */
static bool kvt_demote_place_mem(struct kvt_pool *p, struct kvt_tier *t, struct kvt_mv *mv,
				 u32 nr, bool up)
{
	u32 i, left = 0;

	for (i = 0; i < nr; i++) {
		if (kvt_mv_idle(&mv[i]) &&
		    (up || !kvt_tier_over(p, t, READ_ONCE(p->watermark_high_percent))))
			kvt_mv_place_mem(p, &mv[i], t);
		left += kvt_mv_idle(&mv[i]);
	}
	return !left;
}

/**
 * struct kvt_demote_how - what holds for a whole batch
 * @any_tier: up will do, too, and nothing is thrown away: the tier is being drained
 * @room:     a block tier below has room, so nothing is displaced
 */
struct kvt_demote_how {
	bool any_tier;
	bool room;
};

/* A block that is not worth a write goes out, if it may. Whether that is settled. */
static bool kvt_demote_refuse(struct kvt_pool *p, struct kvt_tier *t, struct kvt_mv *mv,
			      bool room)
{
	struct kvt_hot *h = kvt_hot(&p->table, mv->id);
	struct kvt_ns *ns = kvt_ns_of(p, h->ns_group);
	u32 ctl = kvt_ctl(h);

	lockdep_assert_held(&p->meta_lock);
	if (kvt_ctl_state(ctl) != KVT_READY || (ctl & KVT_CTL_STAYS) || kvt_ctl_leases(ctl))
		return false;
	/* What a limit keeps out whatever else goes is no question for the policy. */
	if (!kvt_limit_permits(ns, t, mv->x.bytes))
		return false;
	/* At its limit it would take the place of its namespace's own. */
	room = room && kvt_limit_fits(ns, t, mv->x.bytes);
	if (!room && kvt_limit_owed(p, t, ns, mv->x.bytes))
		return false;
	if (kvt_policy_admit(&p->policy, t->id, mv->id, room)) {
		mv->asked = !room;	/* until it has a place, or kvt_demote_unadmit() */
		return false;
	}
	mv->gone = true;
	mv->evicted = kvt_evict_claimed(p, mv->id, KVT_WHY_WORTH);
	return true;
}

/*
 * Those that need no place on a block tier: they have a copy, or are not worth it. In the
 * order in which they are to go, so a chain's end may make its next block one. Returns how
 * many.
 */
static u32 kvt_demote_gate(struct kvt_pool *p, struct kvt_tier *t, struct kvt_mv *mv, u32 nr,
			   const struct kvt_demote_how *how)
{
	u32 i, done = 0;

	spin_lock(&p->meta_lock);
	for (i = 0; i < nr; i++) {
		if (!kvt_mv_idle(&mv[i]))
			continue;
		mv[i].asked = false;
		if (mv[i].x.src->ops->is_mem && kvt_mv_place_clean(p, &mv[i]))
			done++;
		else if (mv[i].over == KVT_NO_TIER && !how->any_tier &&
			 kvt_demote_refuse(p, t, &mv[i], how->room))
			done++;
	}
	spin_unlock(&p->meta_lock);
	return done;
}

/* The log had no place for some that were admitted: they are asked about once more. */
static void kvt_demote_unadmit(struct kvt_pool *p, struct kvt_mv *mv, u32 nr)
{
	u32 i;

	spin_lock(&p->meta_lock);
	for (i = 0; i < nr; i++) {
		if (mv[i].asked && kvt_mv_idle(&mv[i]) && p->policy.ops->unadmit)
			p->policy.ops->unadmit(&p->policy, mv[i].id);
		mv[i].asked = false;
	}
	spin_unlock(&p->meta_lock);
}

/* On a block tier; in whatever tier below the copies are. Returns how many. */
static u32 kvt_demote_place_log(struct kvt_pool *p, struct kvt_tier *t, struct kvt_mv *mv,
				u32 nr, u32 left, const struct kvt_demote_how *how,
				struct kvt_mlog_puts *puts)
{
	u32 placed = kvt_demote_gate(p, t, mv, nr, how);

	if (placed < left)
		placed += kvt_mlog_place(t, KVT_HEAD_DEMOTE, mv, nr, puts);
	if (placed < left)
		kvt_demote_unadmit(p, mv, nr);
	return placed;
}

/*
 * Who has a place on a zoned member waits for nobody before it is written: others wait for
 * their turn behind it. Those without a place come again.
 */
static bool kvt_demote_stop(const struct kvt_mlog_puts *puts, bool next_zoned,
			    struct kvt_mv *mv, u32 nr)
{
	u32 i;

	if (!puts->nr || (!next_zoned && !puts->b[0].m->turn))
		return false;
	for (i = 0; i < nr; i++)
		mv[i].retry |= kvt_mv_idle(&mv[i]);
	return true;
}

/* The tier before refused those that have no place yet; now it is another one's turn. */
static void kvt_demote_next(struct kvt_mv *mv, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++)
		mv[i].over = KVT_NO_TIER;
}

/* Place moves, all from one tier, on the best tiers that take them. Lower ranks first. */
static void kvt_demote_place(struct kvt_pool *p, struct kvt_mv *mv, u32 nr, bool any_tier,
			     struct kvt_mlog_puts *puts)
{
	struct kvt_tier *t[KVT_TIERS], *src = mv->x.src;
	u32 nr_tiers = kvt_tier_snapshot(p, t, false), left = nr, i;
	struct kvt_demote_how how = { .any_tier = any_tier };

	for (i = 0; i < nr_tiers; i++)
		how.room |= t[i]->rank > src->rank && t[i]->state == KVTIER_TIER_ONLINE &&
			    !t[i]->ops->is_mem && kvt_tier_has_room(p, t[i]);
	for (i = 0; i < nr_tiers && left; i++) {
		if (t[i]->rank <= src->rank || t[i]->state != KVTIER_TIER_ONLINE)
			continue;
		if (kvt_demote_stop(puts, t[i]->zones, mv, nr))
			return;
		kvt_demote_next(mv, nr);
		if (!t[i]->ops->is_mem)
			left -= kvt_demote_place_log(p, t[i], mv, nr, left, &how, puts);
		else if (kvt_demote_place_mem(p, t[i], mv, nr, false))
			left = 0;
	}
	if (kvt_demote_stop(puts, false, mv, nr))
		return;
	for (i = 0; any_tier && i < nr_tiers && left; i++) {
		if (t[i]->rank < src->rank && t[i]->ops->is_mem &&
		    kvt_demote_place_mem(p, t[i], mv, nr, true))
			left = 0;
	}
}

bool kvt_tier_has_lower(struct kvt_pool *p, struct kvt_tier *t)
{
	bool lower = false;
	u32 i;

	spin_lock(&p->meta_lock);
	for (i = 0; i < p->nr_tiers; i++) {
		struct kvt_tier *o = p->tiers[p->order[i]];

		lower |= o->rank > t->rank && o->state == KVTIER_TIER_ONLINE;
	}
	spin_unlock(&p->meta_lock);
	return lower;
}

/*
 * Blocks for which no tier had room, those whose bit is set: let the lowest tier evict
 * what is worth less than they are; if that frees nothing they go themselves. Those that
 * were merely unlucky stay as they are, and come again.
 */
static u32 kvt_demote_leftover(struct kvt_pool *p, struct kvt_mv *mv, u32 left,
			       bool room_below)
{
	u32 i, gone = 0;
	bool over;

	spin_lock(&p->meta_lock);
	for (i = 0; i < KVT_MOVE_BATCH; i++) {
		if (!(left & 1u << i))
			continue;
		over = mv[i].over != KVT_NO_TIER;
		if ((room_below && !over) || mv[i].retry) {
			WRITE_ONCE(p->nr_put_off, p->nr_put_off + 1);
			kvt_mv_cancel(p, &mv[i]);
		} else {
			gone += kvt_evict_claimed(p, mv[i].id,
						  over ? KVT_WHY_QUOTA : KVT_WHY_ROOM);
		}
	}
	spin_unlock(&p->meta_lock);
	return gone;
}

/*
 * Those of @left that a limit keeps out take the places of older blocks of their namespace
 * below, if these can go, and come again.
 */
static void kvt_demote_displace(struct kvt_pool *p, struct kvt_tier *t, struct kvt_mv *mv,
				u32 left)
{
	u32 i;

	for (i = 0; i < KVT_MOVE_BATCH; i++) {
		const struct kvt_hot *h;
		struct kvt_tier *to;

		if (!(left & 1u << i) || mv[i].retry || mv[i].over == KVT_NO_TIER)
			continue;
		h = kvt_hot(&p->table, mv[i].id);
		to = kvt_tier_at(p, mv[i].over);
		if (to && to->rank > t->rank)
			mv[i].retry = kvt_limit_displace(p, to, h->ns_group, mv[i].x.bytes);
	}
}

/* Evict leaves of a tier for somebody: others' if they may go, or else his own. */
static bool kvt_evict_for(struct kvt_pool *p, struct kvt_tier *t, u32 want, u32 ns_group)
{
	struct kvt_ns *ns = kvt_ns_of(p, ns_group);
	bool owed;

	spin_lock(&p->meta_lock);
	owed = !t->ops->is_mem &&
	       kvt_limit_owed(p, t, ns, kvt_slot_bytes(kvt_group_of(p, ns_group)));
	spin_unlock(&p->meta_lock);
	/* What is promised to him he does not pay for with what is. */
	if (kvt_evict_some(p, t, want, owed ? NULL : ns))
		return true;
	/* What he cannot have of others' may be older than what of his is not. */
	return (READ_ONCE(t->min_bytes) || READ_ONCE(p->guaranteed_bytes) ||
		READ_ONCE(p->weights)) &&
	       kvt_evict_own(p, t, ns_group, KVT_WHY_ROOM, want);
}

/*
 * Make room in the tiers below @t by evicting leaves from the lowest of them, for an owner of
 * blocks that are to go down.
 */
static bool kvt_evict_below(struct kvt_pool *p, struct kvt_tier *t, u32 want, u32 ns_group)
{
	struct kvt_tier *tiers[KVT_TIERS];
	u32 nr = kvt_tier_snapshot(p, tiers, false);
	bool any = false;

	while (nr--) {
		if (tiers[nr]->rank <= t->rank || tiers[nr]->state != KVTIER_TIER_ONLINE)
			continue;
		/* What is dead, or a copy, first. */
		any = !tiers[nr]->ops->is_mem && kvt_log_clean(tiers[nr], KVT_CLEAN_SPARE);
		if (!any && !tiers[nr]->ops->is_mem && !kvt_log_readable(tiers[nr]))
			continue;
		if (!any) {
			any = kvt_evict_for(p, tiers[nr], want, ns_group);
			if (!tiers[nr]->ops->is_mem)
				any |= kvt_log_clean(tiers[nr], any ? KVT_CLEAN_SPARE :
								      KVT_CLEAN_CARRY);
		}
		if (any)
			break;
	}
	kvt_garbage_free(p);
	return any;
}

/* Those that went to memory or out, and those for which nothing had to be written. */
static u32 kvt_demote_finish(struct kvt_pool *p, struct kvt_mv *mv, u32 nr)
{
	u32 i, done = 0;

	spin_lock(&p->meta_lock);
	for (i = 0; i < nr; i++) {
		if (mv[i].clean || (mv[i].placed && mv[i].x.dst->ops->is_mem))
			done += kvt_mv_finish(p, &mv[i], false);
		done += mv[i].evicted;
	}
	spin_unlock(&p->meta_lock);
	return done;
}

static u32 kvt_demote_batch(struct kvt_pool *p, struct kvt_tier *t, const u32 *ids, u32 nr,
			    bool any_tier, struct kvt_mv *mv, struct kvt_carry *c)
{
	struct kvt_mlog_puts puts = { .nr = 0 };
	u32 i, left = 0, full = 0, who = 0, gone;

	BUILD_BUG_ON(KVT_MOVE_BATCH > 32);
	spin_lock(&p->meta_lock);
	for (i = 0; i < nr; i++)
		kvt_mv_start(p, &mv[i], ids[i]);
	spin_unlock(&p->meta_lock);
	kvt_demote_place(p, mv, nr, any_tier, &puts);
	for (i = 0; i < nr; i++) {
		bool none = kvt_mv_idle(&mv[i]);

		left |= none ? 1u << i : 0;
		if (none && !mv[i].retry && mv[i].over == KVT_NO_TIER && !full++)
			who = kvt_hot(&p->table, ids[i])->ns_group;
	}
	kvt_mv_run(mv, nr);
	gone = kvt_demote_finish(p, mv, nr);
	gone += kvt_mv_write(p, &puts, mv, nr, c);
	/* Only now: who has batches that are not written must not wait for others. */
	kvt_demote_displace(p, t, mv, left);
	if (left)
		gone += kvt_demote_leftover(p, mv, left, full && kvt_tier_has_lower(p, t) &&
					    kvt_evict_below(p, t, full, who));
	for (i = 0; c && i < puts.nr; i++)
		kvt_mlog_progress(puts.b[i].m);
	for (i = 0; i < nr; i++)
		kvt_block_wake(p, ids[i]);
	return gone;
}

/* From a block tier. */
static u32 kvt_demote_carry(struct kvt_pool *p, struct kvt_tier *t, const u32 *ids, u32 nr,
			    bool any_tier)
{
	struct kvt_carry *c = kvt_carry_alloc(nr);
	u32 gone;

	if (!c) {
		kvt_unclaim(p, ids, nr);
		return 0;
	}
	gone = kvt_demote_batch(p, t, ids, nr, any_tier, c->mv, c);
	kvt_carry_put(p, c);
	kvt_garbage_free(p);
	return gone;
}

/**
 * kvt_demote() - move claimed blocks down, or out if there is no way down
 * @p:        pool; srcu held, may sleep
 * @t:        tier they are on
 * @ids:      blocks, MOVING set by the caller; cleared when this returns
 * @nr:       at most KVT_MOVE_BATCH
 * @any_tier: up will do, too: the tier is being drained
 * Return: how many are not on @t any more.
 */
u32 kvt_demote(struct kvt_pool *p, struct kvt_tier *t, const u32 *ids, u32 nr, bool any_tier)
{
	struct kvt_mv *mv, one;
	u32 gone = 0, i;

	if (!nr)
		return 0;
	if (!t->ops->is_mem)
		return kvt_demote_carry(p, t, ids, nr, any_tier);
	mv = kvmalloc_array(nr, sizeof(*mv), GFP_KERNEL | __GFP_NOWARN);
	if (mv) {
		gone = kvt_demote_batch(p, t, ids, nr, any_tier, mv, NULL);
		kvfree(mv);
	} else {
		for (i = 0; i < nr; i++)
			gone += kvt_demote_batch(p, t, &ids[i], 1, any_tier, &one, NULL);
	}
	kvt_garbage_free(p);
	return gone;
}
