// SPDX-License-Identifier: GPL-2.0
/*
 * Emptying regions of memory tiers, and arenas.
 *
 * A region is emptied so that its pieces can go to somebody else, an arena loses its oldest
 * blocks so that others of its owner fit. Where the blocks go is for kvt_demote.c to say. A
 * region that is being emptied (DRAINING) hands out no slots; if something in it cannot move
 * now, it hands out those that are free again.
 */
#include <linux/random.h>
#include <linux/slab.h>

#include "kvt_internal.h"

#define KVT_COMPACT_PICKS	4u
#define KVT_COMPACT_ROUNDS	4u
#define KVT_COMPACT_NS		1024u	/* namespaces among which some are looked for */
#define KVT_COMPACT_LOOKS	4096u	/* namespaces and regions under one hold of the meta lock */
#define KVT_COMPACT_PAUSE	(HZ / 4)	/* until a region that could not be emptied is tried again */

/* The region of that name if it is being emptied, or NULL. Meta lock held. */
static struct kvt_region *kvt_region_draining(struct kvt_tier *t, u32 r)
{
	struct kvt_region *reg = kvt_mem_region(&t->mem, r);

	return reg && reg->state == KVT_REGION_DRAINING ? reg : NULL;
}

/* Slots that are looked at under one hold of the meta lock. */
#define KVT_SLOT_LOOK	4096u

/*
 * Is there one more slot in a round over a region, after the first @looks. The meta lock is let
 * go every so often, and the region may be another one by then, or none: @reg is set anew.
 */
static bool kvt_region_more(struct kvt_pool *p, struct kvt_tier *t, u32 r, u32 looks,
			    struct kvt_region **reg)
{
	lockdep_assert_held(&p->meta_lock);
	if (looks && !(looks % KVT_SLOT_LOOK)) {
		spin_unlock(&p->meta_lock);
		cond_resched();
		spin_lock(&p->meta_lock);
	}
	if (!(looks % KVT_SLOT_LOOK))
		*reg = kvt_region_draining(t, r);
	return *reg && looks < kvt_region_slots(*reg);
}

/*
 * The next slot to look at. Who looks for some goes on where the last one has stopped:
 * a region may have a million slots, and most of them may be free by then.
 */
static u32 kvt_region_turn(const struct kvt_region *reg, u32 *hand, int step)
{
	u32 nr_slots = kvt_region_slots(reg), at = *hand;

	if (at >= nr_slots)
		at = step < 0 ? nr_slots - 1 : 0;
	*hand = at + step;
	return at;
}

/* Claim up to KVT_MOVE_BATCH blocks whose slots are in region @r. Meta lock held, not all along. */
static u32 kvt_region_claim(struct kvt_pool *p, struct kvt_tier *t, u32 r, u32 *hand,
			    const struct kvt_ns *asker, u32 *ids, bool *stuck)
{
	struct kvt_region *reg;
	u64 slot_bytes;
	u32 i, nr = 0;

	*stuck = false;
	for (i = 0; nr < KVT_MOVE_BATCH && kvt_region_more(p, t, r, i, &reg); i++) {
		u32 id = kvt_region_block(reg, kvt_region_turn(reg, hand, 1));
		struct kvt_hot *h;

		if (id == KVT_NIL)
			continue;
		h = kvt_hot(&p->table, id);
		/* All are one namespace's. */
		slot_bytes = kvt_slot_bytes(kvt_group_of(p, reg->ns_group));
		/* On its way here or away, guaranteed, or not to be moved now. */
		if ((t->state == KVTIER_TIER_ONLINE && !reg->retire &&
		     kvt_ns_guarded(p, t, h, asker, nr * slot_bytes)) || h->mem_tier != t->id ||
		    !(kvt_ctl(h) & KVT_CTL_MEM) || !kvt_move_try(h))
			*stuck = true;
		else
			ids[nr++] = id;
	}
	return nr;
}

static u32 kvt_evict_all(struct kvt_pool *p, const u32 *ids, u32 nr)
{
	u32 i, gone = 0;

	spin_lock(&p->meta_lock);
	for (i = 0; i < nr; i++)
		gone += kvt_evict_claimed(p, ids[i], KVT_WHY_DETACH);
	spin_unlock(&p->meta_lock);
	return gone;
}

/*
 * Evict what is in a region, ends of chains first: there is no way down. Last slot
 * first, since chains tend to be laid out in order. Returns how many went.
 */
static u32 kvt_region_evict_leaves(struct kvt_pool *p, struct kvt_tier *t, u32 r, u32 *hand,
				   const struct kvt_ns *asker)
{
	struct kvt_region *reg;
	u32 i, id, gone = 0;

	spin_lock(&p->meta_lock);
	for (i = 0; gone < KVT_MOVE_BATCH && kvt_region_more(p, t, r, i, &reg); i++) {
		struct kvt_hot *h;

		id = kvt_region_block(reg, kvt_region_turn(reg, hand, -1));
		if (id == KVT_NIL)
			continue;
		h = kvt_hot(&p->table, id);
		if (h->mem_tier == t->id && (kvt_ctl(h) & KVT_CTL_MEM) &&
		    (reg->retire || !kvt_ns_guarded(p, t, h, asker, 0)) &&
		    kvt_ch_leaf(&p->table, id) && kvt_move_try(h))
			gone += kvt_evict_claimed(p, id, KVT_WHY_ROOM);
	}
	spin_unlock(&p->meta_lock);
	kvt_garbage_free(p);
	return gone;
}

/* Make the blocks of a draining region go, as far as they can. */
static void kvt_region_empty_out(struct kvt_pool *p, struct kvt_tier *t, u32 r, bool keep,
				 bool any_tier, const struct kvt_ns *asker)
{
	u32 ids[KVT_MOVE_BATCH], nr, hand = KVT_SLOT_END;
	bool stuck = false;

	if (keep && !any_tier && !kvt_tier_has_lower(p, t)) {
		while (kvt_region_evict_leaves(p, t, r, &hand, asker))
			cond_resched();
		return;
	}
	do {
		spin_lock(&p->meta_lock);
		nr = kvt_region_claim(p, t, r, &hand, asker, ids, &stuck);
		spin_unlock(&p->meta_lock);
		if (nr)
			nr = keep ? kvt_demote(p, t, ids, nr, any_tier) :
				    kvt_evict_all(p, ids, nr);
	} while (nr && !stuck);
}

/**
 * kvt_region_drain() - have a region hand out no slots any more
 * @p:   pool, meta lock held
 * @t:   memory tier
 * @reg: of it
 * Return: whether it can be emptied: by kvt_evacuate_drained(), or it stays as it is now.
 */
bool kvt_region_drain(struct kvt_pool *p, struct kvt_tier *t, struct kvt_region *reg)
{
	lockdep_assert_held(&p->meta_lock);
	if (reg->state == KVT_REGION_ACTIVE && !reg->arena)
		kvt_mem_region_drain(&t->mem,
				     &kvt_group_of(p, reg->ns_group)->owner[t->id], reg);
	return reg->state == KVT_REGION_DRAINING && !reg->arena;
}

/* The same for one that may be gone by now. */
static bool kvt_region_close(struct kvt_pool *p, struct kvt_tier *t, u32 r)
{
	struct kvt_region *reg;
	bool mine;

	spin_lock(&p->meta_lock);
	reg = kvt_mem_region(&t->mem, r);
	mine = reg && kvt_region_drain(p, t, reg);
	spin_unlock(&p->meta_lock);
	return mine;
}

/*
 * If it is empty now it goes, else it hands out slots again, unless its tier is being drained:
 * then that sees to it, also if it is given up. Whether it goes.
 */
static bool kvt_region_settle(struct kvt_pool *p, struct kvt_tier *t, u32 r)
{
	struct kvt_region *reg;
	bool empty;

	spin_lock(&p->meta_lock);
	/* Somebody else may have emptied and freed it meanwhile. */
	reg = kvt_region_draining(t, r);
	empty = reg && !reg->nr_used;
	if (empty)
		reg->state = KVT_REGION_CLEANING;
	else if (reg && t->state == KVTIER_TIER_ONLINE && !reg->retire)
		kvt_mem_region_undrain(&t->mem,
				       &kvt_group_of(p, reg->ns_group)->owner[t->id], reg);
	spin_unlock(&p->meta_lock);
	if (empty)
		kvt_region_clean(t, reg, NULL);
	return empty;
}

/**
 * kvt_evacuate_drained() - empty a region that kvt_region_drain() was called for, and take it
 * @p:     pool; srcu held, may sleep
 * @t:     memory tier
 * @r:     its first piece. If it has gone since then, nothing is done to one of somebody else
 *         that is there, and that nobody drains
 * @asker: namespace that needs room, NULL: none; see kvt_ns_guarded()
 *
 * If something in it cannot move now the region stays as it is, less what could,
 * unless the tier is being drained.
 * Return: whether the region is free (or in quarantine) now.
 */
bool kvt_evacuate_drained(struct kvt_pool *p, struct kvt_tier *t, u32 r,
			  const struct kvt_ns *asker)
{
	kvt_region_empty_out(p, t, r, true, t->state != KVTIER_TIER_ONLINE, asker);
	return kvt_region_settle(p, t, r);
}

/**
 * kvt_evacuate_region() - empty a region and take it from its owner
 * @p:    pool; srcu held, may sleep
 * @t:    memory tier
 * @r:    first piece of a region, possibly gone by now
 * @keep: move its blocks; else drop them
 *
 * For nobody who needs room; as kvt_evacuate_drained() otherwise.
 * Return: whether the region is free (or in quarantine) now.
 */
bool kvt_evacuate_region(struct kvt_pool *p, struct kvt_tier *t, u32 r, bool keep)
{
	if (!kvt_region_close(p, t, r))
		return false;
	kvt_region_empty_out(p, t, r, keep, t->state != KVTIER_TIER_ONLINE, NULL);
	return kvt_region_settle(p, t, r);
}

/* --- Regions out of holes --------------------------------------------------- */

/* Regions that could be emptied into others of their owners, the cheapest first. */
struct kvt_sparse {
	struct kvt_tier *t;
	u32 pieces;	/* that they have to have */
	u32 looks;	/* since the lock was let go */
	u32 nr;
	struct {
		u32 r;
		u32 cost;	/* pages to be copied for each piece */
	} pick[KVT_COMPACT_PICKS];
};

static void kvt_sparse_add(struct kvt_sparse *s, const struct kvt_region *reg)
{
	u32 cost = reg->nr_used * reg->slot_pages / reg->nr_pieces, i;

	if (s->nr == KVT_COMPACT_PICKS && cost >= s->pick[s->nr - 1].cost)
		return;
	if (s->nr < KVT_COMPACT_PICKS)
		s->nr++;
	for (i = s->nr - 1; i && s->pick[i - 1].cost > cost; i--)
		s->pick[i] = s->pick[i - 1];
	s->pick[i].r = reg->first;
	s->pick[i].cost = cost;
}

static void kvt_sparse_look(struct kvt_sparse *s, const struct kvt_ns *ns)
{
	u32 i;

	s->looks += 1 + ns->nr_groups;
	for (i = 0; i < ns->nr_groups; i++) {
		const struct kvt_region *reg = kvt_mem_sparse(&s->t->mem,
							      &ns->group[i].owner[s->t->id],
							      s->pieces, &s->looks);

		if (reg)
			kvt_sparse_add(s, reg);
	}
}

/* Is it not known that there are no regions of so many pieces that could be emptied. */
static bool kvt_compact_due(const struct kvt_tier *t, u32 pieces)
{
	return t->compact_none != t->mem.pass || pieces < t->compact_pieces;
}

/*
 * From the tier's cursor on, once round, until some were found among many. Where there are many
 * and it was in vain, nobody looks again for a while.
 */
static void kvt_sparse_find(struct kvt_pool *p, struct kvt_sparse *s)
{
	unsigned long begin = s->t->compact_ns, idx = begin;
	bool round = false, end = false;
	u32 looked = 0;

	while (!end && (!s->nr || looked < KVT_COMPACT_NS)) {
		s->looks = 0;
		spin_lock(&p->meta_lock);
		for (; s->looks < KVT_COMPACT_LOOKS && !end; looked++) {
			struct kvt_ns *ns = xa_find(&p->ns, &idx, ULONG_MAX, XA_PRESENT);

			if (ns && !(round && idx >= begin)) {
				kvt_sparse_look(s, ns);
				idx++;
				continue;
			}
			/* The last one: go on with the first, if that was not begun with. */
			end = round || !begin;
			round = true;
			idx = 0;
		}
		spin_unlock(&p->meta_lock);
		cond_resched();
	}
	s->t->compact_ns = idx;
	if (!end || s->nr || looked <= KVT_COMPACT_NS)
		return;
	/* Nor are there longer ones; shorter ones there may be. */
	if (kvt_compact_due(s->t, s->pieces))
		s->t->compact_pieces = s->pieces;
	s->t->compact_none = s->t->mem.pass;
}

/* What could not be emptied may be by now. */
static void kvt_sparse_again(struct kvt_tier *t)
{
	spin_lock(&t->pool->meta_lock);
	if (!t->compact_at || time_after_eq(jiffies, t->compact_at)) {
		t->mem.pass = t->mem.pass % U8_MAX + 1;
		t->compact_at = (jiffies + KVT_COMPACT_PAUSE) | 1;
	}
	spin_unlock(&t->pool->meta_lock);
}

/**
 * kvt_unclaim() - leave claimed blocks where they are
 * @p:   pool; no spinlock held
 * @ids: blocks, MOVING set by the caller
 * @nr:  how many
 */
void kvt_unclaim(struct kvt_pool *p, const u32 *ids, u32 nr)
{
	u32 i;

	spin_lock(&p->meta_lock);
	for (i = 0; i < nr; i++) {
		kvt_mv_stays(p, ids[i]);
		kvt_block_wake(p, ids[i]);
	}
	spin_unlock(&p->meta_lock);
	kvt_garbage_free(p);
}

/* Move claimed blocks to other slots of the tier that their owner has. Returns how many went. */
static u32 kvt_shift_batch(struct kvt_pool *p, struct kvt_mv *mv, const u32 *ids, u32 nr)
{
	u32 i, gone = 0;

	spin_lock(&p->meta_lock);
	for (i = 0; i < nr; i++) {
		kvt_mv_start(p, &mv[i], ids[i]);
		kvt_mv_place_beside(p, &mv[i]);
	}
	spin_unlock(&p->meta_lock);
	kvt_mv_run(mv, nr);
	spin_lock(&p->meta_lock);
	for (i = 0; i < nr; i++) {
		if (mv[i].placed)
			gone += kvt_mv_finish(p, &mv[i], false);
		else
			kvt_mv_cancel(p, &mv[i]);
	}
	spin_unlock(&p->meta_lock);
	for (i = 0; i < nr; i++)
		kvt_block_wake(p, ids[i]);
	kvt_garbage_free(p);
	return gone;
}

/*
 * Claim some blocks of a region that is being emptied. *@pages: what it has, while they are in it.
 * What stays in memory is guaranteed to nobody against this. Returns how many.
 */
static u32 kvt_compact_claim(struct kvt_pool *p, struct kvt_tier *t, u32 r, u32 *hand, u32 *ids,
			     u32 *pages, bool *stuck)
{
	const struct kvt_region *reg;
	u32 nr = 0;

	spin_lock(&p->meta_lock);
	reg = kvt_region_draining(t, r);
	if (reg) {
		*pages = reg->nr_pieces * KVT_PIECE_PAGES;
		nr = kvt_region_claim(p, t, r, hand, kvt_ns_of(p, reg->ns_group), ids, stuck);
	}
	spin_unlock(&p->meta_lock);
	return nr;
}

/*
 * Empty a region into others, unless something in it stays, or it would be quarantined then.
 * Whether it is its owner's no more.
 */
static bool kvt_compact_region(struct kvt_pool *p, struct kvt_tier *t, u32 r, struct kvt_mv *mv)
{
	u32 ids[KVT_MOVE_BATCH], nr, hand = KVT_SLOT_END, pages = 0;
	bool stuck = false, looked = false;

	if (!kvt_region_close(p, t, r))
		return false;
	do {
		nr = kvt_compact_claim(p, t, r, &hand, ids, &pages, &stuck);
		/* Its blocks keep the region meanwhile. */
		if (stuck ||
		    (nr && !looked && kvt_pages_foreign(t, r * KVT_PIECE_PAGES, pages))) {
			kvt_unclaim(p, ids, nr);
			break;
		}
		looked = true;
	} while (nr && kvt_shift_batch(p, mv, ids, nr) == nr);
	return kvt_region_settle(p, t, r);
}

/**
 * kvt_compact() - make a region free without that a block has to go
 * @p:      pool; srcu held, may sleep; called by its worker
 * @t:      memory tier
 * @pieces: so long
 *
 * Slots that became free here and there are their owner's, so memory that nobody uses may be of
 * no use to others: what an owner has in one of its regions is moved to free slots in the rest.
 * A region that could not be emptied, since somebody reads something in it, is passed over for a
 * while.
 * Return: whether one was emptied. Its pieces are free, unless somebody was faster.
 */
bool kvt_compact(struct kvt_pool *p, struct kvt_tier *t, u32 pieces)
{
	u32 rounds, i;
	struct kvt_mv *mv = NULL;
	bool done = false;

	if (t->state != KVTIER_TIER_ONLINE || kvt_mem_holes(&t->mem) < KVT_PIECE_PAGES)
		return false;
	kvt_sparse_again(t);
	for (rounds = 0; rounds < KVT_COMPACT_ROUNDS && !done && kvt_compact_due(t, pieces);
	     rounds++) {
		struct kvt_sparse s = { .t = t, .pieces = pieces };

		kvt_sparse_find(p, &s);
		if (!s.nr)
			break;
		if (!mv)
			mv = kvmalloc_array(KVT_MOVE_BATCH, sizeof(*mv), GFP_KERNEL | __GFP_NOWARN);
		for (i = 0; mv && i < s.nr && !done; i++)
			done = kvt_compact_region(p, t, s.pick[i].r, mv);
	}
	kvfree(mv);
	if (done)
		atomic64_inc(&t->count.compactions);
	return done;
}

/**
 * kvt_compact_own() - empty one of an owner's regions into others of his
 * @p:        pool; srcu held, may sleep
 * @t:        memory tier
 * @ns_group: owner, whose namespace the caller keeps
 * @mv:       room for KVT_MOVE_BATCH moves
 * Return: whether it went.
 */
bool kvt_compact_own(struct kvt_pool *p, struct kvt_tier *t, u32 ns_group, struct kvt_mv *mv)
{
	const struct kvt_region *reg;
	u32 r = KVT_NO_REGION, looks = 0;

	kvt_sparse_again(t);
	spin_lock(&p->meta_lock);
	reg = kvt_mem_sparse(&t->mem, &kvt_group_of(p, ns_group)->owner[t->id], 1, &looks);
	if (reg)
		r = reg->first;
	spin_unlock(&p->meta_lock);
	return r != KVT_NO_REGION && kvt_compact_region(p, t, r, mv);
}

static bool kvt_region_lost(const struct kvt_region *reg)
{
	return reg->retire && reg->state == KVT_REGION_DRAINING;
}

/**
 * kvt_region_retire() - go on taking regions whose owner has lost them
 * @p: pool; srcu held, may sleep; called by its worker
 * @t: memory tier
 */
void kvt_region_retire(struct kvt_pool *p, struct kvt_tier *t)
{
	u32 r;

	if (!READ_ONCE(t->nr_lost))
		return;
	for (r = kvt_region_next(t, 0, kvt_region_lost); r != KVT_NO_REGION;
	     r = kvt_region_next(t, r + 1, kvt_region_lost))
		kvt_evacuate_region(p, t, r, true);
}

/* Those from the hand on: the end of them. */
static u32 kvt_arena_window(const struct kvt_region *reg, u32 *hand)
{
	u32 nr_slots = kvt_region_slots(reg);

	if (*hand >= nr_slots)
		*hand = 0;
	return min(*hand + KVT_SLOT_LOOK, nr_slots);
}

/* Of these the block that was idle longest and can go. Meta lock held. */
static u32 kvt_arena_oldest(struct kvt_pool *p, struct kvt_region *reg, u32 *hand, bool leaf)
{
	u32 now = kvt_now_ms(), best = KVT_NIL, best_age = 0;
	u32 end = kvt_arena_window(reg, hand), i;

	for (i = *hand; i < end; i++) {
		u32 id = kvt_region_block(reg, i), ctl, age;

		if (id == KVT_NIL)
			continue;
		ctl = kvt_ctl(kvt_hot(&p->table, id));
		if (kvt_ctl_state(ctl) != KVT_READY || kvt_ctl_leases(ctl) ||
		    (ctl & KVT_CTL_MOVING) || !(ctl & KVT_CTL_MEM) ||
		    (leaf && ((ctl & KVT_CTL_STAYS) || !kvt_ch_leaf(&p->table, id))))
			continue;
		age = kvt_age_ms(now, kvt_cold(&p->table, id)->touch_ms);
		if (best == KVT_NIL || age > best_age) {
			best = id;
			best_age = age;
		}
	}
	return best;
}

/* Claim the oldest blocks there, all that are at least half as old as the first. */
static u32 kvt_arena_claim_old(struct kvt_pool *p, struct kvt_region *reg, u32 *hand, u32 *ids)
{
	u32 now = kvt_now_ms(), oldest = kvt_arena_oldest(p, reg, hand, false), age, i, nr = 0;
	u32 end = kvt_arena_window(reg, hand);

	if (oldest == KVT_NIL)
		return 0;
	age = kvt_age_ms(now, kvt_cold(&p->table, oldest)->touch_ms);
	for (i = *hand; i < end && nr < KVT_MOVE_BATCH; i++) {
		u32 id = kvt_region_block(reg, i);

		if (id != KVT_NIL &&
		    kvt_age_ms(now, kvt_cold(&p->table, id)->touch_ms) >= age / 2 &&
		    (kvt_ctl(kvt_hot(&p->table, id)) & KVT_CTL_MEM) &&
		    kvt_move_try(kvt_hot(&p->table, id)))
			ids[nr++] = id;
	}
	return nr;
}

/* The arena's region if it still is one of that owner. Meta lock held. */
static struct kvt_region *kvt_arena_region(struct kvt_tier *t, u32 r, u32 ns_group)
{
	struct kvt_region *reg = kvt_mem_region(&t->mem, r);

	return reg && reg->arena && reg->ns_group == ns_group ? reg : NULL;
}

/* How many windows it has, 0: it is gone. */
static u32 kvt_arena_windows(struct kvt_pool *p, struct kvt_tier *t, u32 r, u32 ns_group)
{
	struct kvt_region *reg;
	u32 nr;

	spin_lock(&p->meta_lock);
	reg = kvt_arena_region(t, r, ns_group);
	nr = reg ? DIV_ROUND_UP(kvt_region_slots(reg), KVT_SLOT_LOOK) : 0;
	spin_unlock(&p->meta_lock);
	return nr;
}

/* Move the oldest of the next window down. Returns how many were tried. */
static u32 kvt_arena_down(struct kvt_pool *p, struct kvt_tier *t, u32 r, u32 ns_group, u32 *hand)
{
	u32 ids[KVT_MOVE_BATCH], nr = 0;
	struct kvt_region *reg;

	spin_lock(&p->meta_lock);
	kvt_touch_drain(p);
	reg = kvt_arena_region(t, r, ns_group);
	if (reg) {
		nr = kvt_arena_claim_old(p, reg, hand, ids);
		*hand = kvt_arena_window(reg, hand);
	}
	spin_unlock(&p->meta_lock);
	if (nr)
		kvt_demote(p, t, ids, nr, false);
	return nr;
}

enum kvt_arena_got { KVT_ARENA_NONE, KVT_ARENA_ONE, KVT_ARENA_ROOM, KVT_ARENA_STOP };

/*
 * Evict an end of a chain if there is no room: the oldest of the next window. Not if something
 * was put off since that was @put_off.
 */
static enum kvt_arena_got kvt_arena_out(struct kvt_pool *p, struct kvt_tier *t, u32 r,
					u32 ns_group, u32 *hand, u32 put_off)
{
	enum kvt_arena_got got = KVT_ARENA_NONE;
	struct kvt_region *reg;
	u32 id;

	spin_lock(&p->meta_lock);
	kvt_touch_drain(p);
	reg = kvt_arena_region(t, r, ns_group);
	if (reg && kvt_region_has_room(reg)) {
		got = KVT_ARENA_ROOM;
	} else if (!reg || put_off != READ_ONCE(p->nr_put_off)) {
		got = KVT_ARENA_STOP;
	} else {
		id = kvt_arena_oldest(p, reg, hand, true);
		if (id != KVT_NIL && kvt_move_try(kvt_hot(&p->table, id)) &&
		    kvt_evict_claimed(p, id, KVT_WHY_ROOM))
			got = KVT_ARENA_ONE;
		else
			*hand = kvt_arena_window(reg, hand);
	}
	spin_unlock(&p->meta_lock);
	return got;
}

/**
 * kvt_arena_room() - free slots of an arena by moving its oldest blocks down
 * @p: pool; srcu held, may sleep
 * @t: memory tier
 * @r: the arena's region; if its file has gone it may be somebody else's by now
 * @ns_group: whose arena it was
 * Return: whether a slot is free now.
 */
bool kvt_arena_room(struct kvt_pool *p, struct kvt_tier *t, u32 r, u32 ns_group)
{
	u32 put_off = READ_ONCE(p->nr_put_off), windows = kvt_arena_windows(p, t, r, ns_group);
	enum kvt_arena_got got = KVT_ARENA_NONE;
	u32 i, none = 0, hand = windows > 1 ? get_random_u32_below(windows) * KVT_SLOT_LOOK : 0;

	for (i = 0; i < windows && kvt_tier_has_lower(p, t); i++) {
		if (kvt_arena_down(p, t, r, ns_group, &hand))
			break;
		cond_resched();
	}
	/* No way down: out, one by one from the ends of chains. */
	for (i = 0; i < KVT_MOVE_BATCH + windows && none < windows && got < KVT_ARENA_ROOM; i++) {
		got = kvt_arena_out(p, t, r, ns_group, &hand, put_off);
		none = got == KVT_ARENA_NONE ? none + 1 : 0;
		cond_resched();
	}
	return got == KVT_ARENA_ROOM;
}
