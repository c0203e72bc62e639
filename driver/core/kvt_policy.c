// SPDX-License-Identifier: GPL-2.0
/*
 * Table of policies, their lists, and LRU.
 *
 * LRU keeps each tier's blocks by last use, on the tier's list 0. Clients' batches
 * are touched from the last key to the first, so a chain's tail is always older than
 * its head and the old end of the list consists of leaves. Only chunked use of a chain
 * breaks that; a block with children found at the old end is as warm as they are, and
 * is put where it should have been: just before its youngest child, which is put before its
 * own. Much of the way down at once: a long chain in the wrong order would take very many
 * searches else.
 *
 * What may not go because it is guaranteed to its namespace is set aside when it gets to the
 * old end: on one of the other lists, which is the namespace's as long as there are no more of
 * these than lists. Blocks come to the old end in the order of their use, so that list is in
 * order, too, and from then on one look at its old end tells that nothing of it can go. It
 * is older than what list 0 has of the namespace, and goes first when the guarantee ends or
 * the namespace itself needs room. A list that several have to share has no such order: what
 * is guarded there makes way for what is behind it, one by one.
 *
 * What clients have given up is on a list of its own, and first in line. It is shared, too.
 *
 * So that no list uses up a search, only a few of its blocks that are guarded are looked at
 * before all others have had their turn, and of list 0, of what was given up, and of all
 * the other lists no more blocks in vain than leaves some looks for the rest, whatever it is
 * that keeps them: what cannot go now is put at the recent end of list 0, but becomes no
 * younger by that, and clients may give up again what they hold. What list 0 loses to a
 * namespace's list does not count: that happens to each block once.
 *
 * What another policy left on other lists is used up in the order of their ends.
 */
#include "kvt_policy.h"
#include "kvt_chain.h"
#include "kvt_policy_learn.h"

#define LRU_LIST		0
#define LRU_COOL		KVT_CLS_COLD	/* that of the other policy, as it is */
#define LRU_ASIDE		(LRU_COOL + 1)	/* first of the lists for what is guaranteed */
#define LRU_LOOKS		4u		/* at what is guarded on another list, at a time */
/* In vain, while there are others: on list 0, on what was given up, and on all the rest. */
#define LRU_LOOKS_FIRST		64u
#define LRU_LOOKS_COOL		112u
#define LRU_LOOKS_ALL		64u
#define LRU_SETTLE_MAX		1024u	/* blocks put in their order at a time */
#define LRU_SETTLE_LOOK		16u	/* of them: as much work as a look */
#define POLICY_OWN_STEPS	8u

/**
 * kvt_policy_add() - put a block that is on no list at an end of one
 * @p:      policy
 * @tier:   tier of its fastest copy
 * @list:   below KVT_LISTS
 * @id:     block
 * @oldest: at the old end, not at the recent one
 */
void kvt_policy_add(struct kvt_policy *p, u32 tier, u32 list, u32 id, bool oldest)
{
	kvt_cold(p->table, id)->on = (u8)list;
	p->some[tier] |= 1u << list;
	p->stale[tier] |= 1u << list;
	if (oldest)
		kvt_list_add_tail(p->table, &p->list[tier][list], id);
	else
		kvt_list_add_head(p->table, &p->list[tier][list], id);
}

/**
 * kvt_policy_add_before() - put a block that is on no list next to another
 * @p:    policy
 * @tier: tier of the fastest copy of both
 * @id:   block
 * @next: block on a list; @id will be the more recent of the two
 */
void kvt_policy_add_before(struct kvt_policy *p, u32 tier, u32 id, u32 next)
{
	u32 on = kvt_policy_list(kvt_cold(p->table, next));

	kvt_cold(p->table, id)->on = (u8)on;
	p->stale[tier] |= 1u << on;
	kvt_list_add_before(p->table, &p->list[tier][on], id, next);
}

/**
 * kvt_policy_del() - take a block off its list
 * @p:    policy
 * @tier: tier whose list it is
 * @id:   block
 */
void kvt_policy_del(struct kvt_policy *p, u32 tier, u32 id)
{
	const struct kvt_cold *c = kvt_cold(p->table, id);
	u32 on = kvt_policy_list(c);

	/* The next of the youngest request's blocks is its last then. */
	if (p->young[tier][on] == id)
		p->young[tier][on] = c->lru_prev;
	kvt_list_del(p->table, &p->list[tier][on], id);
	p->stale[tier] |= 1u << on;
	if (!p->list[tier][on].count)
		p->some[tier] &= ~(1u << on);
}

/**
 * kvt_policy_renew() - put blocks that are side by side at the recent end of a list
 * @p: policy
 * @r: the blocks
 *
 * Their order stays.
 */
void kvt_policy_renew(struct kvt_policy *p, const struct kvt_run *r)
{
	struct kvt_list *from = &p->list[r->tier][r->from], *to = &p->list[r->tier][r->to];
	struct kvt_cold *old = kvt_cold(p->table, r->old), *recent = kvt_cold(p->table, r->recent);
	u32 prev = recent->lru_prev, next = old->lru_next;

	p->stale[r->tier] |= 1u << r->from | 1u << r->to;
	/* The next of the youngest request's blocks is its last then. */
	if (r->young)
		p->young[r->tier][r->from] = prev;
	if (from == to && !prev)
		return;
	if (next)
		kvt_cold(p->table, next)->lru_prev = prev;
	else
		from->tail = prev;
	if (prev)
		kvt_cold(p->table, prev)->lru_next = next;
	else
		from->head = next;
	from->count -= r->nr;
	if (!from->count)
		p->some[r->tier] &= ~(1u << r->from);
	recent->lru_prev = KVT_NIL;
	old->lru_next = to->head;
	if (to->head)
		kvt_cold(p->table, to->head)->lru_prev = r->old;
	else
		to->tail = r->old;
	to->head = r->recent;
	to->count += r->nr;
	p->some[r->tier] |= 1u << r->to;
}

/**
 * kvt_policy_renew_one() - put a block at the recent end of a list
 * @p:    policy
 * @tier: tier of its fastest copy
 * @list: below KVT_LISTS
 * @id:   block that is on one of the tier's lists
 */
void kvt_policy_renew_one(struct kvt_policy *p, u32 tier, u32 list, u32 id)
{
	struct kvt_run r;

	kvt_run_begin(p, &r, tier, list, id);
	kvt_policy_renew(p, &r);
}

/**
 * kvt_policy_first() - some block of a tier, an old one
 * @p:    policy
 * @tier: tier
 * Return: block where a walk with kvt_policy_after() over all of them begins, or
 * KVT_NIL.
 */
u32 kvt_policy_first(const struct kvt_policy *p, u32 tier)
{
	return p->some[tier] ? p->list[tier][fls(p->some[tier]) - 1].tail : KVT_NIL;
}

/**
 * kvt_policy_after() - next block on a walk over a tier's blocks
 * @p:    policy
 * @tier: tier
 * @id:   block on one of its lists
 * Return: the next younger one of its list, else the oldest of another; KVT_NIL at
 * the end.
 */
u32 kvt_policy_after(const struct kvt_policy *p, u32 tier, u32 id)
{
	const struct kvt_cold *c = kvt_cold(p->table, id);
	u32 left;

	if (c->lru_prev)
		return c->lru_prev;
	left = p->some[tier] & ((1u << kvt_policy_list(c)) - 1);
	return left ? p->list[tier][fls(left) - 1].tail : KVT_NIL;
}

/**
 * kvt_policy_owned() - is a block an owner's, and can it go as far as is known here
 * @p:        policy
 * @id:       READY block
 * @ns_group: owner
 * @leaf:     from the pool, not only from its tier
 * @spare:    a block that is to stay, or KVT_NIL
 */
bool kvt_policy_owned(const struct kvt_policy *p, u32 id, u32 ns_group, bool leaf, u32 spare)
{
	const struct kvt_hot *h = kvt_hot(p->table, id);
	u32 ctl = kvt_ctl(h);

	return h->ns_group == ns_group && id != spare && !(ctl & KVT_CTL_MOVING) &&
	       !kvt_ctl_leases(ctl) &&
	       (!leaf || (kvt_ch_leaf(p->table, id) && !(ctl & KVT_CTL_STAYS)));
}

/* The oldest block of an owner's that can go, of the first few on a list. */
static u32 policy_own_old(const struct kvt_policy *p, const struct kvt_list *l, u32 ns_group,
			  bool leaf, u32 spare)
{
	u32 id = l->tail, steps = POLICY_OWN_STEPS;

	for (; id && steps; steps--, id = kvt_cold(p->table, id)->lru_prev) {
		if (kvt_policy_owned(p, id, ns_group, leaf, spare))
			return id;
	}
	return KVT_NIL;
}

/* Where nothing is known of a block's worth, its age decides, unless it was given up. */
static u32 policy_own_worth(const struct kvt_policy *p, u32 id)
{
	const struct kvt_cold *c = kvt_cold(p->table, id);

	if (p->ops->worth)
		return p->ops->worth(p, id);
	return kvt_policy_list(c) == LRU_COOL ? 0 : U32_MAX - (p->now_ms - c->touch_ms);
}

/**
 * kvt_policy_lesser() - which of two blocks is worth less
 * @p: policy
 * @a: block, or KVT_NIL
 * @b: block, or KVT_NIL
 * Return: the older one if they are worth the same, @a if they are as old.
 */
u32 kvt_policy_lesser(const struct kvt_policy *p, u32 a, u32 b)
{
	u32 a_worth, b_worth;

	if (!a || !b)
		return a ?: b;
	a_worth = policy_own_worth(p, a);
	b_worth = policy_own_worth(p, b);
	if (a_worth != b_worth)
		return a_worth < b_worth ? a : b;
	return kvt_age_since(p->now_ms, kvt_cold(p->table, b)->touch_ms) >
	       kvt_age_since(p->now_ms, kvt_cold(p->table, a)->touch_ms) ? b : a;
}

/**
 * kvt_policy_least_of() - the block of one owner's that is worth least, or nearly
 * @p:        policy
 * @tier:     tier
 * @ns_group: owner
 * @leaf:     only one that may leave the pool
 * @spare:    a block that is to stay, or KVT_NIL
 *
 * Looks at the first few blocks of each list, and at some of what was put aside.
 * Return: a block that nobody holds, or KVT_NIL: none was found there.
 */
u32 kvt_policy_least_of(struct kvt_policy *p, u32 tier, u32 ns_group, bool leaf, u32 spare)
{
	u32 left = p->some[tier], best = KVT_NIL, id;

	for (; left; left &= left - 1) {
		id = policy_own_old(p, &p->list[tier][fls(left & -left) - 1], ns_group, leaf,
				    spare);
		best = kvt_policy_lesser(p, best, id);
	}
	if (p->ops->aside)
		best = kvt_policy_lesser(p, best,
					 p->ops->aside(p, tier, ns_group, leaf, spare));
	return best;
}

static u32 lru_ns(const struct kvt_policy *p, u32 id)
{
	return kvt_hot(p->table, id)->ns_group >> KVT_NS_SHIFT;
}

/* The list for what is guaranteed to a block's namespace. */
static u32 lru_aside(const struct kvt_policy *p, u32 id)
{
	return LRU_ASIDE + lru_ns(p, id) % (KVT_LISTS - LRU_ASIDE);
}

static void lru_insert(struct kvt_policy *p, u32 tier, u32 id)
{
	kvt_policy_add(p, tier, LRU_LIST, id, false);
}

static void lru_rotate(struct kvt_policy *p, u32 tier, u32 id)
{
	kvt_policy_renew_one(p, tier, LRU_LIST, id);
}

static void lru_touch(struct kvt_policy *p, u32 tier, u32 id)
{
	kvt_cold(p->table, id)->touch_ms = p->now_ms;
	lru_rotate(p, tier, id);
}

static void lru_cool(struct kvt_policy *p, u32 tier, u32 id)
{
	kvt_policy_del(p, tier, id);
	kvt_policy_add(p, tier, LRU_COOL, id, true);
}

/* What comes to a list that others' blocks are on has to share it; until it is empty. */
static void lru_set_aside(struct kvt_policy *p, u32 tier, u32 aside, u32 id)
{
	u32 last = p->list[tier][aside].head;

	if (!last)
		p->mixed[tier] &= ~(1u << aside);
	else if (lru_ns(p, last) != lru_ns(p, id))
		p->mixed[tier] |= 1u << aside;
	kvt_policy_renew_one(p, tier, aside, id);
}

/* Looks at a block that stays on list 0; as many looks as blocks, and it was all of them. */
static void lru_looked_first(struct kvt_policy *p, u32 tier, u32 nr)
{
	u32 most = min(p->list[tier][LRU_LIST].count, LRU_LOOKS_FIRST);

	p->looks[LRU_LIST] = (u8)min(p->looks[LRU_LIST] + nr, LRU_LOOKS_FIRST);
	if (p->looks[LRU_LIST] >= most)
		p->tired |= 1u << LRU_LIST;
}

/* What was given up is in no order: what is guarded there does not speak for the rest. */
static void lru_looked_cool(struct kvt_policy *p, u32 nr)
{
	u32 looks = p->looks[LRU_COOL] + nr;

	p->looks[LRU_COOL] = (u8)min(looks, LRU_LOOKS_COOL);
	if (looks >= LRU_LOOKS_COOL)
		p->tired |= 1u << LRU_COOL;
}

/*
 * A block on a list was looked at in vain, which was as much work as @nr looks. Those above it
 * cannot go, either, if it is guarded.
 */
static void lru_looked(struct kvt_policy *p, u32 tier, u32 list, bool guarded, u32 nr)
{
	if (list == LRU_LIST) {
		lru_looked_first(p, tier, nr);
		return;
	}
	if (list == LRU_COOL) {
		lru_looked_cool(p, guarded ? LRU_LOOKS_COOL / LRU_LOOKS : nr);
		return;
	}
	if ((guarded || p->looks[list]) && ++p->looks[list] == LRU_LOOKS)
		p->tired |= 1u << list;
	p->looks_all = (u8)min(p->looks_all + nr, LRU_LOOKS_ALL);
	if (p->looks_all >= LRU_LOOKS_ALL)
		p->tired |= ~(1u << LRU_LIST | 1u << LRU_COOL);
}

/* Taken, or not to be had. */
static void lru_skip(struct kvt_policy *p, u32 tier, u32 id)
{
	u32 on = kvt_policy_list(kvt_cold(p->table, id));

	lru_rotate(p, tier, id);
	lru_looked(p, tier, on, false, 1);
}

static void lru_guarded(struct kvt_policy *p, u32 tier, u32 id)
{
	u32 aside = lru_aside(p, id), on = kvt_policy_list(kvt_cold(p->table, id));

	if (on == LRU_COOL)
		kvt_policy_renew_one(p, tier, on, id);
	else if (on != aside)
		lru_set_aside(p, tier, aside, id);
	else if (p->mixed[tier] & 1u << aside)
		kvt_policy_renew_one(p, tier, aside, id);
	if (on != LRU_LIST)
		lru_looked(p, tier, on, true, 1);
	if (on != LRU_COOL && !(p->mixed[tier] & 1u << aside))
		p->closed |= 1u << aside;
}

/* Is a block where it should be: a leaf is anywhere. */
static bool lru_settled(const struct kvt_policy *p, u32 id)
{
	const struct kvt_cold *c = kvt_cold(p->table, id);

	return !c->first_child || c->lru_next == c->first_child;
}

/* Was a block used after its youngest child, so that it should be where it is. */
static bool lru_younger(const struct kvt_policy *p, u32 id)
{
	const struct kvt_cold *c = kvt_cold(p->table, id);

	return (s32)(c->touch_ms - kvt_cold(p->table, c->first_child)->touch_ms) > 0;
}

/* The end of the way down from a block at the old end that has children; *@nr: how long it is. */
static u32 lru_way_down(struct kvt_policy *p, u32 tier, u32 id, u32 *nr)
{
	u32 last = id, child;

	for (*nr = 1; *nr <= LRU_SETTLE_MAX; (*nr)++) {
		child = kvt_cold(p->table, last)->first_child;
		if (!child || (last != id && !lru_settled(p, last) && lru_younger(p, last)))
			break;
		if (kvt_policy_tier(p, child) != tier) {
			/* In use, or elsewhere: that is no measure here. */
			lru_rotate(p, tier, last);
			break;
		}
		last = child;
	}
	return last;
}

/* How many blocks above one at the old end come there next: parents next to their youngest. */
static u32 lru_run_up(const struct kvt_policy *p, u32 id)
{
	u32 up = kvt_cold(p->table, id)->parent, nr = 0;

	while (up && nr < LRU_SETTLE_MAX && kvt_cold(p->table, up)->first_child == id &&
	       lru_settled(p, up)) {
		id = up;
		up = kvt_cold(p->table, id)->parent;
		nr++;
	}
	return nr;
}

/* Put a block's parent where it should be, which is next to it. Returns the parent. */
static u32 lru_settle_parent(struct kvt_policy *p, u32 tier, u32 id)
{
	u32 up = kvt_cold(p->table, id)->parent;

	if (!lru_settled(p, up)) {
		kvt_policy_del(p, tier, up);
		kvt_policy_add_before(p, tier, up, id);
	}
	return up;
}

/*
 * Blocks with children at the old end: their places are next to the youngest. A chain that was
 * used piece by piece, from its head on, has the pieces the wrong way round, each of them in
 * order: all of it is gone through, and what would come to the old end next comes along.
 * How many blocks that were.
 */
static u32 lru_settle(struct kvt_policy *p, u32 tier, u32 id)
{
	u32 run = lru_run_up(p, id), nr, left, last = lru_way_down(p, tier, id, &nr);

	while (last != id)
		last = lru_settle_parent(p, tier, last);
	for (left = run; left; left--)
		last = lru_settle_parent(p, tier, last);
	return nr + run;
}

/* The oldest end of all lists that are not out of question. */
static u32 lru_oldest(const struct kvt_policy *p, u32 tier)
{
	u32 left = p->some[tier] & ~(p->closed | p->tired), best = KVT_NIL, best_ms = 0;
	u32 id, age_ms;

	if (left & 1u << LRU_COOL)
		return p->list[tier][LRU_COOL].tail;
	if (left == 1u << LRU_LIST)
		return p->list[tier][LRU_LIST].tail;
	for (; left; left &= left - 1) {
		id = p->list[tier][fls(left & -left) - 1].tail;
		age_ms = p->now_ms - kvt_cold(p->table, id)->touch_ms;
		/* Of the same age: what was set aside has been there for longer. */
		if (best == KVT_NIL || age_ms >= best_ms) {
			best = id;
			best_ms = age_ms;
		}
	}
	return best;
}

/* Each of them has had its turn: the next one. */
static bool lru_rested(struct kvt_policy *p)
{
	bool any = p->tired;

	kvt_policy_rested(p);
	return any;
}

static u32 lru_next(struct kvt_policy *p, u32 tier, bool leaf, u32 *budget)
{
	u32 id, on, work;

	while (*budget) {
		id = lru_oldest(p, tier);
		if (id == KVT_NIL) {
			if (lru_rested(p))
				continue;
			return KVT_NIL;
		}
		(*budget)--;
		if (!leaf || kvt_ch_leaf(p->table, id))
			return id;
		on = kvt_policy_list(kvt_cold(p->table, id));
		work = lru_settle(p, tier, id) / LRU_SETTLE_LOOK;
		*budget -= min(*budget, work);
		lru_looked(p, tier, on, false, 1 + work);
	}
	return KVT_NIL;
}

const struct kvt_policy_ops kvt_policy_lru = {
	.name = "lru",
	.insert = lru_insert,
	.remove = kvt_policy_del,
	.touch = lru_touch,
	.warm = lru_touch,
	.cool = lru_cool,
	.next = lru_next,
	.skip = lru_skip,
	.guarded = lru_guarded,
};

/* To be chosen at run time; what new pools have comes first. */
static const struct kvt_policy_ops *const kvt_policies[] = {
	&kvt_policy_reuse,
	&kvt_policy_lru,
};

/**
 * kvt_policy_find() - policy by name
 * @name: not necessarily terminated
 * @len:  its length
 * Return: policy or NULL.
 */
const struct kvt_policy_ops *kvt_policy_find(const char *name, size_t len)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(kvt_policies); i++) {
		if (strlen(kvt_policies[i]->name) == len &&
		    !memcmp(kvt_policies[i]->name, name, len))
			return kvt_policies[i];
	}
	return NULL;
}

/* Policy number @i, or NULL past the last; 0 is the default. */
const struct kvt_policy_ops *kvt_policy_at(u32 i)
{
	return i < ARRAY_SIZE(kvt_policies) ? kvt_policies[i] : NULL;
}

/**
 * kvt_policy_switch() - another policy takes over
 * @p:   policy state
 * @ops: which; nothing changes if it is the same
 */
void kvt_policy_switch(struct kvt_policy *p, const struct kvt_policy_ops *ops)
{
	if (ops == p->ops)
		return;
	WRITE_ONCE(p->ops, ops);
	/* Whose blocks are on which list was up to the one before. */
	memset(p->mixed, 0xff, sizeof(p->mixed));
	memset(p->young, 0, sizeof(p->young));
}

/**
 * kvt_policy_init() - start with empty lists
 * @p:     policy state
 * @ops:   which policy
 * @table: block entries
 */
void kvt_policy_init(struct kvt_policy *p, const struct kvt_policy_ops *ops,
		     struct kvt_table *table)
{
	u32 tier;

	memset(p, 0, sizeof(*p));
	for (tier = 0; tier < KVT_TIERS; tier++)
		memset(p->ends[tier].key, 0xff, sizeof(p->ends[tier].key));
	p->ops = ops;
	p->table = table;
}
