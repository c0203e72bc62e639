/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Policy: which block goes down or out next.
 *
 * A policy keeps every committed block that is not in use elsewhere on exactly
 * one of its lists, by the tier of its fastest copy, and answers one question:
 * which block of this tier is worth least. It never moves anything itself.
 * Candidates are offered, the mechanism decides whether one can go; what it
 * cannot take it reports back with ->skip.
 *
 * Two kinds of departure are told apart: *demotion* keeps the block in the pool,
 * so any block qualifies; *eviction* takes it out, so only leaves do.
 *
 * A *request* is what a client asks for at a time: a chain, from its first block to
 * the last one. Policies that learn are told of each when its blocks are there. One
 * that comes in several calls is still one: see kvt_policy_ask.h.
 *
 * A tier has KVT_LISTS lists. A block's entry says which it is on (@on), so the one
 * policy can take over from the other at any time: nothing but order is lost. Whoever
 * changes a list marks it in @stale, so what is known of its ends can be kept.
 *
 * Lock: the pool's meta lock for every call.
 */
#ifndef KVT_POLICY_H
#define KVT_POLICY_H

#include "kvt_block.h"
#include "kvt_policy_mind.h"

#define KVT_TIERS	16
#define KVT_LISTS	32
#define KVT_ON_LIST	(KVT_LISTS - 1u)	/* of kvt_cold.on: the list */
#define KVT_ON_USED	0x80u			/* of kvt_cold.on: used since it was put there */
#define KVT_ON_STUCK	0x40u			/* of kvt_cold.on: put there since it could not go */
#define KVT_REQUEST_MAX	4096u			/* blocks of a chain that a request is about */

struct kvt_policy;

/**
 * struct kvt_policy_ops - one policy
 * @name:   as in sysfs
 * @insert: block became resident in the tier
 * @remove: block is leaving the tier (or the pool)
 * @touch:  block was used
 * @warm:   block will be used: it is as young as if it had been, but was not
 * @cool:   block will not be used: first in line
 * @next:   least valuable block of the tier. @leaf: only a block without
 *          children. Looks at no more than *@budget blocks and takes what it
 *          looked at off it. KVT_NIL: none found
 * @skip:   what @next gave cannot go now; do not offer it again soon
 * @guarded: what @next gave is guaranteed to its namespace, and so is all that it has on the
 *          tier. Nothing of it need be offered before kvt_policy_searched(). NULL: as @skip
 * @request: a request has come to this block, its last one so far; it has been touched.
 *          @ask: where to note what has to be known if it goes on, or NULL if it does
 *          not. NULL: of no interest. Takes time in proportion to the chain's length, up
 *          to KVT_REQUEST_MAX blocks of it; adds what it looked at to @nr_steps
 * @admit:  is a block that is to go down worth a write to this tier, where it takes
 *          the place of what is worth least there, or, with @room, of nothing.
 *          NULL: always
 * @unadmit: a block was admitted, without @room, and is not written after all: it will
 *          be asked about again. NULL: of no interest
 * @keep:   is the copy on a slower tier to be kept when a block goes up, where copies
 *          count against what the tier may hold. NULL: it does not care
 * @aside:  of what was put aside since it could not go: the block of one owner's that is worth
 *          least, and can go now, of a few; the next time it is others that are looked at.
 *          NULL: there is none that kvt_policy_least_of() does not find
 * @worth:  what a block is worth now, for people to look at. NULL: it does not know
 * @hint:   the client says that the chain up to block @tip, READY, will be used in
 *          @reuse_ms from now, or KVT_HINT_NEVER. NULL: of no interest. Looks at up to
 *          KVT_HINT_BLOCKS of its blocks, all of one namespace
 *
 * All run under the meta lock, in constant time but for @next, @request and @hint.
 */
struct kvt_policy_ops {
	const char *name;
	void (*insert)(struct kvt_policy *p, u32 tier, u32 id);
	void (*remove)(struct kvt_policy *p, u32 tier, u32 id);
	void (*touch)(struct kvt_policy *p, u32 tier, u32 id);
	void (*warm)(struct kvt_policy *p, u32 tier, u32 id);
	void (*cool)(struct kvt_policy *p, u32 tier, u32 id);
	u32 (*next)(struct kvt_policy *p, u32 tier, bool leaf, u32 *budget);
	void (*skip)(struct kvt_policy *p, u32 tier, u32 id);
	void (*guarded)(struct kvt_policy *p, u32 tier, u32 id);
	void (*request)(struct kvt_policy *p, u32 id, struct kvt_ask *ask);
	bool (*admit)(struct kvt_policy *p, u32 tier, u32 id, bool room);
	void (*unadmit)(struct kvt_policy *p, u32 id);
	bool (*keep)(struct kvt_policy *p, u32 nr_copies, u32 nr_blocks);
	u32 (*aside)(struct kvt_policy *p, u32 tier, u32 ns_group, bool leaf, u32 spare);
	u32 (*worth)(const struct kvt_policy *p, u32 id);
	void (*hint)(struct kvt_policy *p, u32 tip, u32 reuse_ms);
};

/**
 * struct kvt_ends - what is worth least on each of a tier's lists
 * @now_ms: when that was looked at
 * @leaf:   and for what
 * @id:     by list: block, or KVT_NIL if none qualifies
 * @key:    by KVT_LISTS + list: what it is worth, and the list; U32_MAX: none. From there
 *          on down: the lower of the two at twice the index
 *
 * Of use for the lists that are not marked stale, at the same time, for the same.
 */
struct kvt_ends {
	u32 now_ms;
	bool leaf;
	u32 id[KVT_LISTS];
	u32 key[2 * KVT_LISTS];
};

/**
 * struct kvt_young - how a list's youngest request became that
 * @id:  its last block then
 * @was: last of the request that was the youngest before, or KVT_NIL; may have gone since
 */
struct kvt_young {
	u32 id;
	u32 was;
};

/**
 * struct kvt_put - blocks that were put in their place by age last, in two different parts of a list
 * @id:   blocks, or KVT_NIL; they may have gone since
 * @last: which of them was the last
 */
struct kvt_put {
	u32 id[2];
	u32 last;
};

/**
 * struct kvt_policy - a policy at work
 * @ops:    which one
 * @table:  block entries
 * @now_ms: pool clock, set by the caller before a batch of calls
 * @list:   a tier's lists, each from the block used last to the one used first
 * @some:   by tier: bit i is set if @list[i] has blocks
 * @stale:  by tier: bit i is set if @list[i] has changed since @ends was worked out
 * @young:  by list: last block of the youngest request on it, or KVT_NIL
 * @before: by list, as @young; of "reuse"
 * @put:    by list; of "reuse"
 * @ends:   by tier; of "reuse"
 * @closed: lists, as in @some, that the search under way need not look at; of "lru". 0 when
 *          there is none
 * @tired:  the same, until all others have been looked at
 * @looks:  by list: at what is guarded, since then; on the first two at all that cannot go
 * @looks_all: in vain at any but the first two lists, since then
 * @mixed:  by tier: bit i is set if blocks of several namespaces may be on @list[i], where
 *          "lru" sets them aside
 * @only:   what was learned of the only namespace there is, or NULL: see @mind_of
 * @mind_of: what was learned of a namespace (an index as in kvt_ns_group()) that has
 *          blocks; the owner of all this provides it. One of the two is needed for
 *          policies that learn
 * @low_bar: least that was let into a full block tier lately; 0: nothing had to be
 * @nr_steps: blocks looked at for requests, and what the owner adds; wraps
 */
struct kvt_policy {
	const struct kvt_policy_ops *ops;
	struct kvt_table *table;
	u32 now_ms;
	struct kvt_list list[KVT_TIERS][KVT_LISTS];
	u32 some[KVT_TIERS];
	u32 stale[KVT_TIERS];
	u32 young[KVT_TIERS][KVT_LISTS];
	struct kvt_young before[KVT_TIERS][KVT_LISTS];
	struct kvt_put put[KVT_TIERS][KVT_LISTS];
	struct kvt_ends ends[KVT_TIERS];
	u32 closed;
	u32 tired;
	u8 looks[KVT_LISTS];
	u32 looks_all;
	u32 mixed[KVT_TIERS];
	struct kvt_mind *only;
	struct kvt_mind *(*mind_of)(const struct kvt_policy *p, u32 ns);
	u32 low_bar;
	u32 nr_steps;
};

/**
 * struct kvt_run - blocks that are side by side on a list, to be put on another
 * @tier:   whose lists
 * @from:   list they are on
 * @to:     list they are to be put on; their entries say so already
 * @old:    the oldest of them
 * @recent: the most recent
 * @nr:     how many
 * @young:  @young of their list is one of them
 */
struct kvt_run {
	u32 tier;
	u32 from;
	u32 to;
	u32 old;
	u32 recent;
	u32 nr;
	bool young;
};

extern const struct kvt_policy_ops kvt_policy_lru;
extern const struct kvt_policy_ops kvt_policy_reuse;

const struct kvt_policy_ops *kvt_policy_find(const char *name, size_t len);
const struct kvt_policy_ops *kvt_policy_at(u32 i);
void kvt_policy_init(struct kvt_policy *p, const struct kvt_policy_ops *ops,
		     struct kvt_table *table);
void kvt_policy_switch(struct kvt_policy *p, const struct kvt_policy_ops *ops);
void kvt_policy_add(struct kvt_policy *p, u32 tier, u32 list, u32 id, bool oldest);
void kvt_policy_add_before(struct kvt_policy *p, u32 tier, u32 id, u32 next);
void kvt_policy_del(struct kvt_policy *p, u32 tier, u32 id);
void kvt_policy_renew(struct kvt_policy *p, const struct kvt_run *r);
void kvt_policy_renew_one(struct kvt_policy *p, u32 tier, u32 list, u32 id);
u32 kvt_policy_first(const struct kvt_policy *p, u32 tier);
u32 kvt_policy_after(const struct kvt_policy *p, u32 tier, u32 id);
u32 kvt_policy_least_of(struct kvt_policy *p, u32 tier, u32 ns_group, bool leaf, u32 spare);
bool kvt_policy_owned(const struct kvt_policy *p, u32 id, u32 ns_group, bool leaf, u32 spare);
u32 kvt_policy_lesser(const struct kvt_policy *p, u32 a, u32 b);

/* What @next gave is guaranteed to its namespace. */
static inline void kvt_policy_guarded(struct kvt_policy *p, u32 tier, u32 id)
{
	if (p->ops->guarded)
		p->ops->guarded(p, tier, id);
	else
		p->ops->skip(p, tier, id);
}

/* All lists have had their turn in a search. */
static inline void kvt_policy_rested(struct kvt_policy *p)
{
	p->tired = 0;
	p->looks_all = 0;
	memset(p->looks, 0, sizeof(p->looks));
}

/* Who has called @next is done with what was guarded then; before the lock is let go. */
static inline void kvt_policy_searched(struct kvt_policy *p)
{
	p->closed = 0;
	kvt_policy_rested(p);
}

/* What was learned of a block's namespace. */
static inline struct kvt_mind *kvt_policy_mind(const struct kvt_policy *p, u32 id)
{
	return p->only ?: p->mind_of(p, kvt_hot(p->table, id)->ns_group >> KVT_NS_SHIFT);
}

/* The list a block is on. */
static inline u32 kvt_policy_list(const struct kvt_cold *c)
{
	return c->on & KVT_ON_LIST;
}

/* A run of one; it ends with kvt_policy_renew(). Nothing else may change lists until then. */
static inline void kvt_run_begin(struct kvt_policy *p, struct kvt_run *r, u32 tier, u32 to,
				 u32 id)
{
	struct kvt_cold *c = kvt_cold(p->table, id);

	r->tier = tier;
	r->from = kvt_policy_list(c);
	r->to = to;
	r->old = id;
	r->recent = id;
	r->nr = 1;
	r->young = p->young[tier][r->from] == id;
	c->on = (u8)to;
}

/* Adds the block that comes before the run's most recent one. */
static inline void kvt_run_on(struct kvt_policy *p, struct kvt_run *r, u32 id,
			      struct kvt_cold *c)
{
	r->recent = id;
	r->nr++;
	r->young |= p->young[r->tier][r->from] == id;
	c->on = (u8)r->to;
}

/* A request is over, all in one call; @id is its last block. */
static inline void kvt_policy_request(struct kvt_policy *p, u32 id)
{
	if (p->ops->request)
		p->ops->request(p, id, NULL);
}

/* A call is over that may be a part of a request. Its blocks have been touched. */
static inline void kvt_policy_call(struct kvt_policy *p, const struct kvt_call *c)
{
	struct kvt_ask *ask;

	if (!p->ops->request)
		return;
	ask = kvt_ask_of(&kvt_policy_mind(p, c->tip)->asks, p->table, c, p->now_ms,
			 &p->nr_steps);
	if (ask)
		p->ops->request(p, c->tip, ask);
}

/* Is a block worth being written to @tier. */
static inline bool kvt_policy_admit(struct kvt_policy *p, u32 tier, u32 id, bool room)
{
	return !p->ops->admit || p->ops->admit(p, tier, id, room);
}

/*
 * Is one more copy to be kept, of @nr_copies already there, in room for @nr_blocks; @else_keep
 * if the policy does not care.
 */
static inline bool kvt_policy_keep_copy(struct kvt_policy *p, u32 nr_copies, u32 nr_blocks,
					bool else_keep)
{
	return p->ops->keep ? p->ops->keep(p, nr_copies, nr_blocks) : else_keep;
}

/* What a block is worth, 0 if the policy does not know. */
static inline u32 kvt_policy_worth(const struct kvt_policy *p, u32 id)
{
	return p->ops->worth ? p->ops->worth(p, id) : 0;
}

/* The tier of a block's fastest copy, if it is there to be used; else KVT_NO_TIER. */
static inline u32 kvt_policy_tier(const struct kvt_policy *p, u32 id)
{
	const struct kvt_hot *h = kvt_hot(p->table, id);
	u32 ctl = kvt_ctl(h);

	return kvt_ctl_state(ctl) == KVT_READY ? kvt_block_tier(h, ctl) : KVT_NO_TIER;
}

#endif /* KVT_POLICY_H */
