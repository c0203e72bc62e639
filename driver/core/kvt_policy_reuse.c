// SPDX-License-Identifier: GPL-2.0
/*
 * The policy "reuse": what is worth least goes, as learned from past requests.
 *
 * Every block has a class. A request's blocks get the class of its session: from the
 * turn it is and how long it is (first turns) or how soon it came (later ones). A block
 * that strangers came back to is *shared*, and has a class by how often they did. For
 * each class kvt_policy_learn.h tells what a block is worth by the time since its last
 * use.
 *
 * A tier has a list for each class, by last use. Within a class worth is not monotonic
 * in age, but hazards that rise to a peak and fall from there on have their minimum at
 * an end, so only two blocks of each list are looked at: the oldest, and the last of
 * the youngest request. The worst of all of them is the answer; so a newcomer goes
 * again at once if everything else is worth more.
 *
 * A block with children at the old end is put aside, on the list REUSE_LIST_ASIDE, until it
 * is used or its last child leaves.
 *
 * Invariant: a block on list REUSE_LIST_ASIDE has children, or was reported by ->skip.
 */
#include "kvt_chain.h"
#include "kvt_policy.h"

#define REUSE_LIST_ASIDE	KVT_CLS_POOL	/* no block has that class */
#define REUSE_SORT_STEPS	16u
#define REUSE_YOUNG_STEPS	64u
#define REUSE_SESSION_TURNS	5u
#define REUSE_TIP_BLOCKS	4u		/* of those there: how many may end a session */
#define REUSE_STRANGERS	2u

static u32 reuse_score(const struct kvt_policy *p, u32 id)
{
	const struct kvt_cold *c = kvt_cold(p->table, id);

	return kvt_learn_score(&p->learn, c->cls, p->now_ms - c->touch_ms);
}

/* Onto the list of its class, as the youngest. @last: of a request's blocks there. */
static void reuse_put_young(struct kvt_policy *p, u32 tier, u32 id)
{
	kvt_policy_add(p, tier, kvt_cold(p->table, id)->cls, id, false);
}

/* Where it belongs by age, if that is near an end. */
static void reuse_insert(struct kvt_policy *p, u32 tier, u32 id)
{
	struct kvt_cold *c = kvt_cold(p->table, id);
	struct kvt_list *l = &p->list[tier][c->cls];
	u32 age_ms = p->now_ms - c->touch_ms, at = l->head, i;

	for (i = 0; at && i < REUSE_SORT_STEPS; i++) {
		const struct kvt_cold *o = kvt_cold(p->table, at);

		if (p->now_ms - o->touch_ms >= age_ms)
			break;
		at = o->lru_next;
	}
	if (!at || i == REUSE_SORT_STEPS) {
		kvt_policy_add(p, tier, c->cls, id, at != KVT_NIL || l->count);
		return;
	}
	c->on = c->cls;
	kvt_list_add_before(p->table, l, id, at);
}

/* Back from aside, when the last child leaves: it had been at the old end. */
static void reuse_parent_freed(struct kvt_policy *p, u32 tier, const struct kvt_cold *c, u32 id)
{
	u32 parent = c->parent;
	struct kvt_cold *o;

	if (!parent)
		return;
	o = kvt_cold(p->table, parent);
	if (o->on != REUSE_LIST_ASIDE || o->first_child != id || c->sib_next ||
	    kvt_policy_tier(p, parent) != tier)
		return;
	kvt_policy_del(p, tier, parent);
	kvt_policy_add(p, tier, o->cls, parent, true);
}

static void reuse_remove(struct kvt_policy *p, u32 tier, u32 id)
{
	const struct kvt_cold *c = kvt_cold(p->table, id);

	kvt_policy_del(p, tier, id);
	if (c->cls >= KVT_CLS_SHARED && c->cls < KVT_CLS_SESSION)
		kvt_learn_use(&p->learn, c->cls, p->now_ms - c->touch_ms, false);
	reuse_parent_freed(p, tier, c, id);
}

static void reuse_touch(struct kvt_policy *p, u32 tier, u32 id)
{
	struct kvt_cold *c = kvt_cold(p->table, id);

	if (c->cls >= KVT_CLS_SHARED && c->cls < KVT_CLS_SESSION &&
	    c->touch_ms != p->now_ms)
		kvt_learn_use(&p->learn, c->cls, p->now_ms - c->touch_ms, true);
	c->touch_ms = p->now_ms;
	kvt_policy_del(p, tier, id);
	reuse_put_young(p, tier, id);
}

static void reuse_cool(struct kvt_policy *p, u32 tier, u32 id)
{
	kvt_policy_del(p, tier, id);
	kvt_cold(p->table, id)->cls = KVT_CLS_COLD;
	kvt_policy_add(p, tier, KVT_CLS_COLD, id, true);
}

static void reuse_aside(struct kvt_policy *p, u32 tier, u32 id)
{
	kvt_policy_del(p, tier, id);
	kvt_policy_add(p, tier, REUSE_LIST_ASIDE, id, false);
}

/* The oldest block of a list that qualifies; others are put aside. */
static u32 reuse_old_end(struct kvt_policy *p, u32 tier, u32 list, bool leaf, u32 *budget)
{
	struct kvt_list *l = &p->list[tier][list];

	while (l->tail && *budget) {
		(*budget)--;
		if (!leaf || kvt_ch_leaf(p->table, l->tail))
			return l->tail;
		reuse_aside(p, tier, l->tail);
	}
	return KVT_NIL;
}

/* The last block of the youngest request on a list. */
static u32 reuse_young_end(struct kvt_policy *p, u32 tier, u32 list, bool leaf)
{
	u32 id = p->young[tier][list], i, next;

	if (!id)
		id = p->list[tier][list].head;
	for (i = 0; id && i < REUSE_YOUNG_STEPS; i++) {
		next = kvt_cold(p->table, id)->lru_next;
		if (!next || kvt_cold(p->table, next)->touch_ms !=
			     kvt_cold(p->table, id)->touch_ms)
			break;
		id = next;
	}
	p->young[tier][list] = id;
	return id && (!leaf || kvt_ch_leaf(p->table, id)) ? id : KVT_NIL;
}

static u32 reuse_next(struct kvt_policy *p, u32 tier, bool leaf, u32 *budget)
{
	u32 left = p->some[tier] & ~(1u << REUSE_LIST_ASIDE), best = KVT_NIL, best_score = 0;

	for (; left; left &= left - 1) {
		u32 list = (u32)fls((int)(left & -left)) - 1, id, score;

		id = reuse_old_end(p, tier, list, leaf, budget);
		if (id) {
			score = reuse_score(p, id);
			if (!best || score < best_score) {
				best = id;
				best_score = score;
			}
		}
		id = reuse_young_end(p, tier, list, leaf);
		if (id) {
			score = reuse_score(p, id);
			if (!best || score < best_score) {
				best = id;
				best_score = score;
			}
		}
	}
	if (!best && *budget)
		best = reuse_old_end(p, tier, REUSE_LIST_ASIDE, leaf, budget);
	return best;
}

/* --- requests ---------------------------------------------------------------------- */

static u32 reuse_bucket(u32 v, u32 shift, u32 nr)
{
	u32 b = (u32)fls((int)(v >> shift));

	b = (b + 1) / 2;
	return min(b, nr - 1);
}

/* Class of a session's blocks: see the top. */
static u32 reuse_session_class(u32 turn, u32 len, u32 gap_ms)
{
	u32 t = turn < 3 ? turn : turn < 8 ? 3 : 4;
	u32 kind = turn ? reuse_bucket(gap_ms, 13, 4) : reuse_bucket(len, 2, 4);

	return KVT_CLS_SESSION + t * 4 + kind;
}

static u32 reuse_shared_class(u32 shared)
{
	return KVT_CLS_SHARED + min((u32)fls((int)shared) - 1, 7u);
}

/**
 * struct reuse_chain - a request's chain, from its last block up
 * @tip:     last block
 * @name:    hash of the last but one, or of the only one
 * @last:    hash of the last
 * @len:     blocks
 * @nr_new:  of them that came with this request
 * @from:    request that this one reuse_continues, or NULL
 * @fork:    where its chain left that one's: last common block
 */
struct reuse_chain {
	u32 tip;
	u32 name;
	u32 last;
	u32 len;
	u32 nr_new;
	struct kvt_turn *from;
	u32 fork;
};

/* Is the request that ended around block @id this one's last turn. */
static bool reuse_continues(struct kvt_policy *p, const struct reuse_chain *ch, u32 id, u32 child,
		      const struct kvt_turn *e)
{
	struct kvt_cold *c = kvt_cold(p->table, id);
	u32 last = child ? kvt_hot(p->table, child)->hash : 0;

	if (last == e->last || kvt_hot(p->table, id)->hash == e->last)
		return true;
	if (ch->len <= e->len) {
		c->shared += c->shared < U8_MAX;
		return false;
	}
	return c->shared < REUSE_STRANGERS;
}

static void reuse_chain_look(struct kvt_policy *p, struct reuse_chain *ch)
{
	u32 id, child = KVT_NIL, old = 0;

	ch->last = kvt_hot(p->table, ch->tip)->hash;
	ch->name = ch->last;
	for (id = ch->tip; id; child = id, id = kvt_cold(p->table, id)->parent) {
		if (ch->len++ == 1)
			ch->name = kvt_hot(p->table, id)->hash;
	}
	child = KVT_NIL;
	for (id = ch->tip; id; child = id, id = kvt_cold(p->table, id)->parent) {
		struct kvt_turn *e;

		if (kvt_cold(p->table, id)->cls == KVT_CLS_NEW)
			ch->nr_new++;
		else if (old++ == REUSE_TIP_BLOCKS)
			break;
		e = kvt_turn_find(&p->turns, kvt_hot(p->table, id)->hash);
		if (e && reuse_continues(p, ch, id, child, e)) {
			ch->from = e;
			ch->fork = id;
			break;
		}
	}
}

/* The session has moved on from blocks that only its last turn had. */
static void reuse_leave_behind(struct kvt_policy *p, u32 fork, u32 ms)
{
	u32 id = kvt_cold(p->table, fork)->first_child, i;

	for (i = 0; id && i < 8; i++, id = kvt_cold(p->table, id)->sib_next) {
		u32 tier = kvt_policy_tier(p, id);

		if (tier != KVT_NO_TIER && kvt_ch_leaf(p->table, id) &&
		    kvt_cold(p->table, id)->touch_ms == ms)
			reuse_cool(p, tier, id);
	}
}

/* Give the chain's blocks their class, and their place among the youngest. */
static void reuse_chain_settle(struct kvt_policy *p, const struct reuse_chain *ch, u32 cls, bool stranger)
{
	u32 seen = 0, id;

	for (id = ch->tip; id; id = kvt_cold(p->table, id)->parent) {
		struct kvt_cold *c = kvt_cold(p->table, id);
		u32 tier = kvt_policy_tier(p, id), to;

		if (stranger && c->cls != KVT_CLS_NEW && c->shared < U8_MAX)
			c->shared++;
		to = c->shared ? reuse_shared_class(c->shared) : cls;
		if (tier == KVT_NO_TIER) {
			c->cls = (u8)to;
			continue;
		}
		kvt_policy_del(p, tier, id);
		c->cls = (u8)to;
		kvt_policy_add(p, tier, to, id, false);
		if (!(seen & (1u << to)))
			p->young[tier][to] = id;
		seen |= 1u << to;
	}
}

/* One row at a time: a request never does more than that. */
static void reuse_learn_some(struct kvt_policy *p)
{
	u16 waiting[KVT_AGE_BINS] = { 0 };
	u32 cls;

	if (p->nr_requests++ % 4)
		return;
	cls = p->nr_requests / 4 % KVT_CLASSES;
	kvt_turns_waiting(&p->turns, cls, p->now_ms, waiting);
	kvt_learn_row(&p->learn, cls, waiting);
}

static void reuse_request(struct kvt_policy *p, u32 id)
{
	struct reuse_chain ch = { .tip = id };
	struct kvt_turn *e;
	u32 turn = 0, gap_ms = 0, cls;

	reuse_chain_look(p, &ch);
	e = ch.from;
	if (e) {
		gap_ms = p->now_ms - e->ms;
		turn = min(e->turn + 1u, 255u);
		kvt_learn_use(&p->learn, e->cls, gap_ms, true);
		if (gap_ms)
			reuse_leave_behind(p, ch.fork, e->ms);
		e->name = 0;
	}
	cls = reuse_session_class(turn, ch.len, gap_ms);
	reuse_chain_settle(p, &ch, cls, !ch.from);
	e = kvt_turn_slot(&p->turns, ch.name, p->now_ms);
	if (e->name)
		kvt_learn_use(&p->learn, e->cls, p->now_ms - e->ms, false);
	*e = (struct kvt_turn){
		.name = ch.name, .last = ch.last, .ms = p->now_ms,
		.len = (u16)min(ch.len, 65535u), .turn = (u8)turn, .cls = (u8)cls,
	};
	reuse_learn_some(p);
}

const struct kvt_policy_ops kvt_policy_reuse = {
	.name = "reuse",
	.insert = reuse_insert,
	.remove = reuse_remove,
	.touch = reuse_touch,
	.cool = reuse_cool,
	.next = reuse_next,
	.skip = reuse_aside,
	.request = reuse_request,
};
