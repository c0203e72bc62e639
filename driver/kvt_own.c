// SPDX-License-Identifier: GPL-2.0
/*
 * One owner's blocks on a tier, among all others that are there.
 *
 * For when it is his own that have to make room: he is at his quota or at a limit, or what
 * others have cannot go. What the policy finds worth least of his is taken if it is easily
 * found; else the tier's blocks are gone over from the old end, each look going on where the
 * one before it stopped (struct kvt_own).
 */
#include <linux/sched/signal.h>

#include "kvt_internal.h"

#define KVT_OWN_STEP		4096u	/* looked at under one hold of the meta lock */

/*
 * Where the last look for this owner's blocks ended, unless that block has been used
 * since, which has put it among the youngest; then at the old end. Meta lock held.
 */
static u32 kvt_own_start(struct kvt_pool *p, struct kvt_tier *t, const struct kvt_own *own)
{
	u32 id = own->cursor, ctl;

	lockdep_assert_held(&p->meta_lock);
	if (!kvt_table_valid(&p->table, id))
		return kvt_policy_first(&p->policy, t->id);
	ctl = kvt_ctl(kvt_hot(&p->table, id));
	return kvt_ctl_state(ctl) == KVT_READY &&
	       kvt_block_tier(kvt_hot(&p->table, id), ctl) == t->id &&
	       kvt_cold(&p->table, id)->touch_ms == own->cursor_ms ?
	       id : kvt_policy_first(&p->policy, t->id);
}

/**
 * struct kvt_own_look - a look for blocks of one owner
 * @leaf:     only blocks that may leave the pool
 * @ns_group: owner
 * @spare:    a block that is to stay, or KVT_NIL
 * @ids:      out: claimed (MOVING)
 * @max:      room in @ids
 * @nr:       out: how many
 * @seen:     blocks of the owner's met so far
 */
struct kvt_own_look {
	bool leaf;
	u32 ns_group;
	u32 spare;
	u32 *ids;
	u32 max;
	u32 nr;
	u32 seen;
};

/* Claim a block of the owner's if it can go. Meta lock held. */
static void kvt_own_claim(struct kvt_pool *p, u32 id, struct kvt_own_look *l)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);

	lockdep_assert_held(&p->meta_lock);
	if (h->ns_group != l->ns_group)
		return;
	l->seen++;
	if (id == l->spare ||
	    (l->leaf && (!kvt_ch_leaf(&p->table, id) || (kvt_ctl(h) & KVT_CTL_STAYS))))
		return;
	if (kvt_move_try(h))
		l->ids[l->nr++] = id;
}

/* Look at up to KVT_OWN_STEP blocks. Whether there are more that are worth a look. */
static bool kvt_own_step(struct kvt_pool *p, struct kvt_tier *t, struct kvt_own_look *l)
{
	struct kvt_own *own = &kvt_group_of(p, l->ns_group)->own[t->id];
	u32 step = KVT_OWN_STEP, id;
	bool more;

	spin_lock(&p->meta_lock);
	for (id = kvt_own_start(p, t, own); id != KVT_NIL && l->nr < l->max && step--;
	     id = kvt_policy_after(&p->policy, t->id, id))
		kvt_own_claim(p, id, l);
	own->cursor = id;
	own->cursor_ms = id ? kvt_cold(&p->table, id)->touch_ms : 0;
	more = !l->nr && l->seen < own->nr_blocks;
	spin_unlock(&p->meta_lock);
	return more;
}

/* What the policy finds worth least of the owner's, as far as it is easily found. */
static void kvt_own_least(struct kvt_pool *p, struct kvt_tier *t, struct kvt_own_look *l)
{
	u32 id;

	spin_lock(&p->meta_lock);
	while (l->nr < l->max) {
		id = kvt_policy_least_of(&p->policy, t->id, l->ns_group, l->leaf, l->spare);
		if (id == KVT_NIL || !kvt_move_try(kvt_hot(&p->table, id)))
			break;
		l->ids[l->nr++] = id;
	}
	spin_unlock(&p->meta_lock);
}

/**
 * kvt_collect_own() - claim one owner's old blocks, wherever they stand in the order
 * @p:        pool; no spinlock held, may sleep
 * @t:        tier
 * @leaf:     only blocks that may leave the pool
 * @ns_group: owner
 * @spare:    a block that is to stay, or KVT_NIL
 * @steps:    times KVT_OWN_STEP: blocks looked at, at most
 * @ids:      out: claimed (MOVING)
 * @max:      room in @ids
 *
 * For when what is older cannot go. If none of the owner's is near the end of a list,
 * others' older blocks may be many: each look goes
 * on where the one before it stopped, and a long one is spread over several calls.
 * Return: how many.
 */
u32 kvt_collect_own(struct kvt_pool *p, struct kvt_tier *t, bool leaf, u32 ns_group, u32 spare,
		    u32 steps, u32 *ids, u32 max)
{
	struct kvt_own_look l = {
		.leaf = leaf, .ns_group = ns_group, .spare = spare, .ids = ids, .max = max,
	};

	if (!READ_ONCE(kvt_group_of(p, ns_group)->own[t->id].nr_blocks))
		return 0;
	kvt_own_least(p, t, &l);
	while (!l.nr && steps-- && kvt_own_step(p, t, &l) && !fatal_signal_pending(current))
		cond_resched();
	return l.nr;
}

/**
 * kvt_evict_own() - make one owner's old blocks on a tier leave the pool
 * @p:        pool; no spinlock held, may sleep
 * @t:        tier
 * @ns_group: owner
 * @why:      the cause
 * @max:      most blocks
 *
 * One at a time: a chain goes from its end.
 * Return: how many left.
 */
u32 kvt_evict_own(struct kvt_pool *p, struct kvt_tier *t, u32 ns_group, enum kvt_why why, u32 max)
{
	u32 gone = 0, id;
	bool left = true;

	while (left && gone < max && kvt_collect_own(p, t, true, ns_group, KVT_NIL,
						     KVT_OWN_STEPS_WORKER, &id, 1)) {
		spin_lock(&p->meta_lock);
		left = kvt_evict_claimed(p, id, why);
		spin_unlock(&p->meta_lock);
		gone += left;
	}
	kvt_garbage_free(p);
	return gone;
}
