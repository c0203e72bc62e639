// SPDX-License-Identifier: GPL-2.0
/*
 * The policy "reuse": what is worth least goes, as learned from past requests.
 *
 * Every block has a class. A request's blocks get the class of its session: by its
 * length for first turns, by the number of the turn and how soon it came for others. A
 * block that requests of other sessions came back to is *shared* and has a class by how
 * often they did. For each class kvt_policy_learn.h tells what a block is worth by the
 * time since its last use.
 *
 * A tier has a list for each class, by last use. Within a class worth rises up to some
 * age and falls from there on, so the least is at an end, and only two blocks of each
 * list are looked at: the oldest, and the last of the youngest request. The least of
 * all is the answer; so a newcomer goes again at once if all others are worth more.
 * A block with children found at the old end is put aside, on a list of its own, until
 * it is used or its last child leaves. So is what the mechanism could not take: leased,
 * held, guaranteed. That comes back by itself, and not before it can go: whenever time has gone
 * on, a few that have been aside for longest and can go by now return to their class.
 *
 * A use only notes the time: the block goes to its place with all of its request's. One
 * that was used and is found at the old end before that goes to the young end. What is
 * found at a list's ends is kept until the list changes or time goes on.
 *
 * What a request is, and what is learned from it: kvt_policy_request.c.
 *
 * Invariants: a block that is on the list aside had children, or could not go, when it was
 * last looked at. First on that list are those put there for their children; @young of the
 * list is the last of these. Then come the others.
 */
#include "kvt_chain.h"
#include "kvt_hint.h"
#include "kvt_policy.h"
#include "kvt_policy_gate.h"
#include "kvt_policy_request.h"

#define REUSE_SORT_STEPS	16u
#define REUSE_BACK_STEPS	8u	/* put aside: how many are looked at each time */
#define REUSE_YOUNG_STEPS	64u
#define REUSE_OLD_STEPS		16u	/* at the old end of a list, before the others have their turn */
#define REUSE_ASIDE_STEPS	64u	/* at what was put aside, for one owner's blocks */
#define REUSE_ASIDE_OWN		16u	/* of these: among how many the least is found */
#define REUSE_COPIES		4u	/* copies kept: a part of this of a tier */

/* --- lists ------------------------------------------------------------------------- */

static inline u32 reuse_worth_of(const struct kvt_policy *p, u32 id, const struct kvt_cold *c)
{
	const struct kvt_learn *l = &kvt_policy_mind(p, id)->learn;

	if (kvt_class_hinted(c->cls))
		return kvt_hint_worth(l, c->cls, c->past & REUSE_GAP_MASK, reuse_age_ms(p, c));
	return kvt_learn_worth(l, c->cls, reuse_age_ms(p, c));
}

static u32 reuse_worth(const struct kvt_policy *p, u32 id)
{
	return reuse_worth_of(p, id, kvt_cold(p->table, id));
}

/* A block has got a child. If that one's place is just after it, put it there. */
static bool reuse_insert_child(struct kvt_policy *p, u32 tier, u32 id, struct kvt_cold *c)
{
	struct kvt_cold *up = kvt_cold(p->table, c->parent);
	u32 own = kvt_policy_tier(p, c->parent);
	struct kvt_list *l;

	if (own == KVT_NO_TIER)
		return false;
	p->stale[own] |= 1u << kvt_policy_list(up);
	if (own != tier || up->on != c->cls || up->touch_ms != c->touch_ms)
		return false;
	l = &p->list[tier][up->on];
	c->on = up->on;
	c->lru_prev = c->parent;
	c->lru_next = up->lru_next;
	if (c->lru_next)
		kvt_cold(p->table, c->lru_next)->lru_prev = id;
	else
		l->tail = id;
	up->lru_next = id;
	l->count++;
	return true;
}

/* Is a block on this list now, where its age says. */
static bool reuse_on(const struct kvt_policy *p, u32 tier, u32 list, u32 id)
{
	return kvt_policy_tier(p, id) == tier && kvt_cold(p->table, id)->on == list;
}

/*
 * Where to look for the place of a block of @age_ms: an end of the list, or where one of those
 * before it was put, whichever is nearest by age. What comes from a tier comes from two ends of a
 * list there, so two such places are kept. KVT_NIL if the list is empty.
 */
static u32 reuse_near(struct kvt_policy *p, u32 tier, u32 list, u32 id, u32 age_ms)
{
	const struct kvt_list *l = &p->list[tier][list];
	struct kvt_put *put = &p->put[tier][list];
	u32 start[] = { put->id[0], put->id[1], l->head, l->tail };
	u32 i, apart, at_ms, least = U32_MAX, best = 2;

	for (i = 0; l->head && i < ARRAY_SIZE(start); i++) {
		if (!start[i] || start[i] == id || !reuse_on(p, tier, list, start[i]))
			continue;
		at_ms = reuse_age_ms(p, kvt_cold(p->table, start[i]));
		apart = at_ms > age_ms ? at_ms - age_ms : age_ms - at_ms;
		if (apart < least) {
			least = apart;
			best = i;
		}
	}
	if (best != put->last)
		put->last = best < 2 ? best : !put->last;
	put->id[put->last] = id;
	return start[best];
}

/*
 * The block of a list that one of @age_ms is put before, or KVT_NIL: after all. It is the first
 * that is as old, or one on the way there: what comes from another tier comes about in order, so
 * the way is short.
 */
static u32 reuse_place_of(struct kvt_policy *p, u32 tier, u32 list, u32 id, u32 age_ms)
{
	u32 at = reuse_near(p, tier, list, id, age_ms), i = 0;
	const struct kvt_cold *c;

	/* To the younger ones, and from the first that is younger to the older ones. */
	for (; at && i < REUSE_SORT_STEPS; i++, at = c->lru_prev) {
		c = kvt_cold(p->table, at);
		if (reuse_age_ms(p, c) < age_ms)
			break;
		if (!c->lru_prev)
			return at;
	}
	for (; at; i++, at = c->lru_next) {
		c = kvt_cold(p->table, at);
		if (i >= REUSE_SORT_STEPS || reuse_age_ms(p, c) >= age_ms)
			return at;
	}
	return KVT_NIL;
}

static void reuse_insert(struct kvt_policy *p, u32 tier, u32 id)
{
	struct kvt_cold *c = kvt_cold(p->table, id);
	u32 at;

	if (c->parent && reuse_insert_child(p, tier, id, c))
		return;
	at = reuse_place_of(p, tier, c->cls, id, reuse_age_ms(p, c));
	if (at)
		kvt_policy_add_before(p, tier, id, at);
	else
		kvt_policy_add(p, tier, c->cls, id, true);
}

/*
 * Does the block before it in its chain take the place of @id as the least of its list: it
 * is the last of the youngest request there, so the one before is next, and worth the same.
 */
static bool reuse_succeeded(const struct kvt_policy *p, u32 tier, u32 id,
			    const struct kvt_cold *c)
{
	const struct kvt_ends *e = &p->ends[tier];
	const struct kvt_cold *up;
	u32 on = c->on;

	if (e->id[on % KVT_LISTS] != id || on != c->cls || p->young[tier][on] != id ||
	    e->now_ms != p->now_ms || (p->stale[tier] & (1u << on)) || !c->parent ||
	    c->lru_prev != c->parent || kvt_class_hinted(on))
		return false;
	/* A walk for it that is not over yet has to go on. */
	if (c->lru_next && kvt_cold(p->table, c->lru_next)->touch_ms == c->touch_ms)
		return false;
	up = kvt_cold(p->table, c->parent);
	return up->on == on && up->cls == on && up->touch_ms == c->touch_ms;
}

/* Off its list goes what reuse_succeeded() is true of, and that need not be looked at again. */
static void reuse_succeed(struct kvt_policy *p, u32 tier, u32 id, const struct kvt_cold *c)
{
	u32 on = c->on, up = c->parent;

	kvt_policy_del(p, tier, id);
	p->stale[tier] &= ~(1u << on);
	p->ends[tier].id[on] = up;
}

/* From aside to that end of its class's list that its age is nearer to. */
static void reuse_return(struct kvt_policy *p, u32 tier, u32 id)
{
	const struct kvt_cold *c = kvt_cold(p->table, id);
	u32 old = p->list[tier][c->cls].tail;
	bool oldest = !old || reuse_age_ms(p, c) >= reuse_age_ms(p, kvt_cold(p->table, old)) / 2;

	kvt_policy_del(p, tier, id);
	kvt_policy_add(p, tier, c->cls, id, oldest);
}

/* Aside, because it cannot go at the moment: the first of those. */
static void reuse_skip(struct kvt_policy *p, u32 tier, u32 id)
{
	struct kvt_cold *c = kvt_cold(p->table, id);
	u32 last, next;

	/* Any will do, so that it has a child still does not matter. */
	if (!p->ends[tier].leaf && reuse_succeeded(p, tier, id, c))
		reuse_succeed(p, tier, id, c);
	else
		kvt_policy_del(p, tier, id);
	last = p->young[tier][REUSE_ASIDE];
	next = last ? kvt_cold(p->table, last)->lru_next : p->list[tier][REUSE_ASIDE].head;
	if (next)
		kvt_policy_add_before(p, tier, id, next);
	else
		kvt_policy_add(p, tier, REUSE_ASIDE, id, true);
	c->on |= KVT_ON_STUCK;
}

/* The last child leaves: back from aside, or the next there to be looked at. */
static void reuse_childless(struct kvt_policy *p, u32 parent)
{
	struct kvt_cold *c = kvt_cold(p->table, parent);
	u32 on = kvt_policy_list(c), own = kvt_policy_tier(p, parent);

	if (own == KVT_NO_TIER)
		return;
	p->stale[own] |= 1u << on;
	if (on != REUSE_ASIDE)
		return;
	if (!reuse_stuck(c)) {
		reuse_return(p, own, parent);
		return;
	}
	kvt_policy_del(p, own, parent);
	kvt_policy_add(p, own, REUSE_ASIDE, parent, true);
	c->on |= KVT_ON_STUCK;
}

static void reuse_remove(struct kvt_policy *p, u32 tier, u32 id)
{
	const struct kvt_cold *c = kvt_cold(p->table, id);
	bool last = !c->sib_next && !c->sib_prev;

	if (kvt_class_shared(c->cls))
		kvt_learn_use(&kvt_policy_mind(p, id)->learn, c->cls, reuse_age_ms(p, c), false);
	if (last && reuse_succeeded(p, tier, id, c)) {
		reuse_succeed(p, tier, id, c);
		return;
	}
	kvt_policy_del(p, tier, id);
	if (c->parent && last)
		reuse_childless(p, c->parent);
}

/* A block of a class, which may not be that of its list, is as young as can be. */
static void reuse_renew(struct kvt_policy *p, u32 tier, u32 id)
{
	struct kvt_cold *c = kvt_cold(p->table, id);
	u32 on = kvt_policy_list(c);

	c->touch_ms = p->now_ms;
	if (reuse_stuck(c))
		return;
	if (on != c->cls) {
		kvt_policy_renew_one(p, tier, c->cls, id);
		return;
	}
	c->on |= KVT_ON_USED;
	p->stale[tier] |= 1u << on;
}

static void reuse_touch(struct kvt_policy *p, u32 tier, u32 id)
{
	struct kvt_cold *c = kvt_cold(p->table, id);
	u32 age_ms = reuse_age_ms(p, c);

	if (age_ms && kvt_class_shared(c->cls))
		kvt_learn_use(&kvt_policy_mind(p, id)->learn, c->cls, age_ms, true);
	/* What is used in the millisecond of its hint has that use still to come; not if cold. */
	if (kvt_class_told(c->cls) && (age_ms || c->cls == KVT_CLS_COLD))
		kvt_reuse_turned_out(p, kvt_policy_mind(p, id), id, age_ms);
	if (age_ms)
		c->past = (u8)((c->past & ~REUSE_GAP_MASK) | kvt_age_bin(age_ms));
	reuse_renew(p, tier, id);
}

/*
 * Saying so costs nothing: nothing is learned, and no hint has come true by it. One that was
 * believed counts from now on. It is as young as what others used just now, and no more: marked as
 * used it would be passed over once when it is the oldest, and others' would go.
 */
static void reuse_warm(struct kvt_policy *p, u32 tier, u32 id)
{
	struct kvt_cold *c = kvt_cold(p->table, id);

	if (c->cls == KVT_CLS_COLD)
		c->cls = KVT_CLS_SESSION;
	c->touch_ms = p->now_ms;
	if (!reuse_stuck(c))
		kvt_policy_renew_one(p, tier, c->cls, id);
}

static void reuse_cool(struct kvt_policy *p, u32 tier, u32 id)
{
	struct kvt_cold *c = kvt_cold(p->table, id);

	c->cls = KVT_CLS_COLD;
	c->past |= REUSE_GAP_NEVER;
	kvt_learn_over(&kvt_policy_mind(p, id)->learn, 1);
	if (reuse_stuck(c))
		return;
	kvt_policy_del(p, tier, id);
	kvt_policy_add(p, tier, KVT_CLS_COLD, id, true);
}

/* Aside, for its children. */
static void reuse_aside(struct kvt_policy *p, u32 tier, u32 id)
{
	kvt_policy_renew_one(p, tier, REUSE_ASIDE, id);
	if (!p->young[tier][REUSE_ASIDE])
		p->young[tier][REUSE_ASIDE] = id;
}

/*
 * Look at up to *@steps blocks that were put aside, those first that have been there for
 * longest; what can go by now returns. For a leaf, those that were there for their children
 * are not looked at: they return by themselves. Whether any returned.
 */
static bool reuse_back(struct kvt_policy *p, u32 tier, bool leaf, u32 *steps)
{
	const struct kvt_list *l = &p->list[tier][REUSE_ASIDE];
	u32 left = min(*steps, l->count), id;
	bool any = false;

	for (*steps -= left; left; left--) {
		/* Their children are in nobody's way if it need not be a leaf. */
		id = leaf ? l->tail : p->young[tier][REUSE_ASIDE] ?: l->tail;
		if (leaf && id == p->young[tier][REUSE_ASIDE])
			break;
		if (kvt_gate_can_go(p, id, leaf)) {
			reuse_return(p, tier, id);
			any = true;
		} else {
			reuse_skip(p, tier, id);
		}
	}
	return any;
}

/*
 * See struct kvt_policy_ops. What is guaranteed to its owner is aside as soon as others have looked
 * for room, and that is most of what is worth less than all that others have. It is in no order:
 * of so many the least is among the lowest of all. Others' are aside as well.
 */
static u32 reuse_least_aside(struct kvt_policy *p, u32 tier, u32 ns_group, bool leaf, u32 spare)
{
	const struct kvt_list *l = &p->list[tier][REUSE_ASIDE];
	u32 left = min(REUSE_ASIDE_STEPS, l->count), own = 0, best = KVT_NIL, id;

	for (; left && own < REUSE_ASIDE_OWN && l->tail != p->young[tier][REUSE_ASIDE]; left--) {
		id = l->tail;
		if (kvt_policy_owned(p, id, ns_group, leaf, spare)) {
			best = kvt_policy_lesser(p, best, id);
			own++;
		}
		reuse_skip(p, tier, id);
	}
	return best;
}

/* --- the least ---------------------------------------------------------------------- */

/* The oldest block of a list that qualifies; others are put aside. */
static u32 reuse_old_end(struct kvt_policy *p, u32 tier, u32 list, bool leaf, u32 *budget)
{
	const struct kvt_list *l = &p->list[tier][list];

	while (l->tail && *budget) {
		const struct kvt_cold *c = kvt_cold(p->table, l->tail);

		(*budget)--;
		if (!(c->on & KVT_ON_USED) && (!leaf || !c->first_child))
			return l->tail;
		if (c->on & KVT_ON_USED)
			kvt_policy_renew_one(p, tier, list, l->tail);
		else
			reuse_aside(p, tier, l->tail);
	}
	return KVT_NIL;
}

/*
 * The last block of the youngest request on a list. It is known, or begins a walk from
 * the young end that goes on with the next question if it is long.
 */
static u32 reuse_young_end(struct kvt_policy *p, u32 tier, u32 list, bool leaf)
{
	u32 id = p->young[tier][list] ?: p->list[tier][list].head, i, next;

	for (i = 0; id && i < REUSE_YOUNG_STEPS; i++, id = next) {
		const struct kvt_cold *c = kvt_cold(p->table, id);

		next = c->lru_next;
		if (!next || kvt_cold(p->table, next)->touch_ms != c->touch_ms ||
		    kvt_hot(p->table, next)->ns_group != kvt_hot(p->table, id)->ns_group)
			break;
	}
	p->young[tier][list] = id;
	return id && (!leaf || kvt_ch_leaf(p->table, id)) ? id : KVT_NIL;
}

/*
 * Note what is worth least on a list. @key is a tree: of two neighbours the lower is
 * passed on, and the lowest of all comes to its root, 1.
 */
static void reuse_note(struct kvt_ends *e, u32 list, u32 id, u32 worth)
{
	u32 at = KVT_LISTS + list, key = id ? worth * KVT_LISTS + list : U32_MAX;

	e->id[list] = id;
	e->key[at] = key;
	for (; at > 1; at /= 2) {
		key = min(key, e->key[at ^ 1]);
		if (e->key[at / 2] == key)
			return;
		e->key[at / 2] = key;
	}
}

/*
 * Look at the ends of a list, for the one that is worth less. Whether all is known: what is at
 * the old end and does not qualify, which a client may see to, uses up no search, and also when
 * one is used up every list gets a look.
 */
static bool reuse_look_at(struct kvt_policy *p, u32 tier, u32 list, bool leaf, u32 *budget)
{
	u32 share = clamp(*budget, 1u, REUSE_OLD_STEPS), left = share, worth = U32_MAX, young_worth;
	u32 old = reuse_old_end(p, tier, list, leaf, &left), young;
	bool all = left || old;

	*budget -= min(*budget, share - left);
	young = reuse_young_end(p, tier, list, leaf);
	if (old)
		worth = reuse_worth_of(p, old, kvt_cold(p->table, old));
	if (young && young != old) {
		young_worth = reuse_worth_of(p, young, kvt_cold(p->table, young));
		if (young_worth < worth) {
			worth = young_worth;
			old = young;
		}
	}
	reuse_note(&p->ends[tier], list, old, worth);
	return all;
}

/*
 * Look at the lists that have changed, or at all if it is for something else now. One of which
 * not all is known is looked at again the next time, for which what it has lost counts.
 */
static void reuse_freshen(struct kvt_policy *p, u32 tier, bool leaf, u32 *budget)
{
	struct kvt_ends *e = &p->ends[tier];
	u32 back = REUSE_BACK_STEPS, left, list, unknown = 0;

	if (e->now_ms != p->now_ms || e->leaf != leaf)
		p->stale[tier] = U32_MAX;
	if (e->now_ms != p->now_ms)
		reuse_back(p, tier, leaf, &back);
	e->now_ms = p->now_ms;
	e->leaf = leaf;
	for (left = p->stale[tier] & ~(1u << REUSE_ASIDE); left; left &= left - 1) {
		list = (u32)fls((int)(left & -left)) - 1;
		if (!(p->some[tier] & (1u << list)))
			reuse_note(e, list, KVT_NIL, 0);
		else if (!reuse_look_at(p, tier, list, leaf, budget))
			unknown |= p->some[tier] & (1u << list);
	}
	p->stale[tier] = unknown;
}

/* There is nothing but what was put aside. What returns is to be found in the same search. */
static bool reuse_fetch(struct kvt_policy *p, u32 tier, bool leaf, u32 *budget)
{
	u32 back = DIV_ROUND_UP(*budget, 2), rest = *budget - back;
	bool any = reuse_back(p, tier, leaf, &back);

	*budget = rest + back;
	return any;
}

static u32 reuse_next(struct kvt_policy *p, u32 tier, bool leaf, u32 *budget)
{
	const struct kvt_ends *e = &p->ends[tier];
	u32 best;

	while (*budget) {
		(*budget)--;
		if (p->stale[tier] || e->now_ms != p->now_ms || e->leaf != leaf)
			reuse_freshen(p, tier, leaf, budget);
		best = e->key[1] == U32_MAX ? KVT_NIL : e->id[e->key[1] % KVT_LISTS];
		/* Some are not known to the end yet, or what was put aside returns. */
		if (!best && (p->stale[tier] || reuse_fetch(p, tier, leaf, budget)))
			continue;
		if (!best)
			return KVT_NIL;
		if (!leaf || kvt_ch_leaf(p->table, best))
			return best;
		/* It has got a child since. */
		p->stale[tier] |= 1u << kvt_policy_list(kvt_cold(p->table, best));
	}
	return KVT_NIL;
}

/*
 * Do others' chains go through block @id, of whose chain @child is the next one. Where a
 * chain branches off that is the session's own, such as the last block of the turn before,
 * nobody else was seen.
 */
static bool reuse_others(const struct kvt_policy *p, u32 id, u32 child)
{
	const struct kvt_cold *c = kvt_cold(p->table, child ?: id);

	if (!kvt_cold(p->table, id)->shared)
		return false;
	return child ? c->sib_next || c->sib_prev : c->first_child != KVT_NIL;
}

/*
 * The session's turn is over, and its client says when the next one comes, or that none
 * does: that counts instead of what its class has taught, from now on, for the end of the
 * chain that nothing else goes through, and that no other session is decoding on.
 */
static void reuse_hint(struct kvt_policy *p, u32 tip, u32 reuse_ms)
{
	u32 said = kvt_hint_class(reuse_ms), cls = said, up = kvt_cold(p->table, tip)->parent;
	struct kvt_mind *m = kvt_policy_mind(p, tip);
	struct kvt_turn *e = kvt_turn_find(&m->turns, reuse_hash(p, up ?: tip));
	u32 id = tip, child = KVT_NIL, n, tier, bin = kvt_age_bin(reuse_ms);

	if (kvt_class_hinted(said))
		bin = min(bin, REUSE_GAP_NEVER - 1u);
	/* What comes of that is not to be learned of the class that the session would have. */
	if (e) {
		e->cls = (u8)cls;
		e->time = (u16)(p->now_ms >> KVT_TURN_SHIFT);
	}
	if (kvt_class_hinted(cls) && !kvt_hint_believed(&m->learn, cls))
		cls = KVT_CLS_COLD;
	for (n = 0; id && n < KVT_HINT_BLOCKS && !reuse_others(p, id, child); n++) {
		struct kvt_cold *c = kvt_cold(p->table, id);

		if (kvt_ctl(kvt_hot(p->table, id)) & KVT_CTL_HELD)
			break;
		c->cls = (u8)cls;
		c->touch_ms = p->now_ms;
		c->past = (u8)((c->past & ~REUSE_GAP_MASK) | bin);
		tier = kvt_policy_tier(p, id);
		if (tier != KVT_NO_TIER && !reuse_stuck(c)) {
			kvt_policy_renew_one(p, tier, cls, id);
			if (!n)
				p->young[tier][cls] = id;
		}
		child = id;
		id = c->parent;
	}
	if (kvt_class_hinted(said))
		kvt_hint_give(&m->learn, said, n);
	if (cls == KVT_CLS_COLD)
		kvt_learn_over(&m->learn, n);
}

/* --- several tiers ------------------------------------------------------------------ */

static bool reuse_keep(struct kvt_policy *p, u32 nr_copies, u32 nr_blocks)
{
	(void)p;
	return nr_copies < nr_blocks / REUSE_COPIES;
}

const struct kvt_policy_ops kvt_policy_reuse = {
	.name = "reuse",
	.insert = reuse_insert,
	.remove = reuse_remove,
	.touch = reuse_touch,
	.warm = reuse_warm,
	.cool = reuse_cool,
	.next = reuse_next,
	.skip = reuse_skip,
	.request = kvt_reuse_request,
	.admit = kvt_gate_admit,
	.unadmit = kvt_gate_unadmit,
	.keep = reuse_keep,
	.aside = reuse_least_aside,
	.worth = reuse_worth,
	.hint = reuse_hint,
};
