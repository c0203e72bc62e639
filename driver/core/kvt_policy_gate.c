// SPDX-License-Identifier: GPL-2.0
/*
 * The gate of the policy "reuse": what is worth a write to a block tier.
 *
 * Writes wear devices out, and half of what could be written is never asked for again. A
 * tier with room takes everything. Else half of what is asked about passes: each
 * namespace's bar (kvt_mind.bar) follows the middle of what its blocks are worth, a step up
 * for each that passes, a step down for each that does not. It begins somewhat below the
 * first one: from nothing it would take thousands to be anywhere. And nothing passes that
 * is worth less than what it would displace.
 *
 * Where that costs too many hits more passes, up to all, by steps of different size up and
 * down. A sample of what was refused is remembered for about as long as the tier takes to be
 * asked about anew: one in so many that all of these have room, by their hashes. What of it is
 * stored again would have been there. More passes as long as that is more than one in
 * GATE_REGRET of the blocks asked for, and less again if it is fewer.
 *
 * What is carried forward when a log makes room is a write like others, and has to be above
 * a bar as well; it does not move it. Which one: the bar of a namespace that no longer
 * writes stays where it was, while its blocks sink; and one that scans goes for little. So
 * for a block to go that is there already, it must be worth less than what passed for its
 * own namespace, and than what passes for any that writes now (kvt_policy.low_bar).
 */
#include "kvt_policy.h"
#include "kvt_chain.h"
#include "kvt_policy_gate.h"

#define GATE_STEPS	64u
#define GATE_BAR_STEP	16u	/* 1/128 of an octave of worth */
#define GATE_BAR_STEPS	(2 * GATE_BAR_STEP)	/* one up and one down */
#define GATE_REGRET	40u	/* of so many asked for one may be missed for a write that was saved */
#define GATE_REGRET_SLOW 4	/* steps follow so many of those remembered */
#define GATE_SHIFT_MAX	16
#define GATE_BALANCE_MAX (1 << 30)
#define GATE_BAR_BELOW	8192u	/* 4 octaves: what the first one is worth, by 16 */

/**
 * kvt_gate_can_go() - can a block be taken, as far as can be seen here
 * @p:    policy
 * @id:   READY block
 * @leaf: from the pool, not only from its tier
 */
bool kvt_gate_can_go(const struct kvt_policy *p, u32 id, bool leaf)
{
	u32 ctl = kvt_ctl(kvt_hot(p->table, id));

	if (kvt_ctl_leases(ctl) || (ctl & (KVT_CTL_MOVING | KVT_CTL_ARENA)))
		return false;
	return !leaf || (kvt_ch_leaf(p->table, id) && !(ctl & KVT_CTL_STAYS));
}

/* What a write to a full tier would displace. */
static u32 gate_displaced(struct kvt_policy *p, u32 tier)
{
	u32 budget = GATE_STEPS, id;

	while ((id = p->ops->next(p, tier, true, &budget)) && !kvt_gate_can_go(p, id, true))
		p->ops->skip(p, tier, id);
	return id;
}

/*
 * The least that passes for any of those that ask: what has no children has to be worth that. It
 * rises no faster than a bar does, so that one of several that take turns is not forgotten before
 * its next. What is said to be cold is worth nothing: it passes nowhere, and says nothing of what
 * does.
 */
static void gate_follow(struct kvt_policy *p, u32 bar, u32 worth)
{
	if (!worth)
		return;
	p->low_bar = p->low_bar ? min(bar, p->low_bar + GATE_BAR_STEP) : bar;
}

/* For each that passes; those down are so that the part of both passes that is to. */
static u32 gate_step_up(const struct kvt_mind *m)
{
	return GATE_BAR_STEPS - GATE_BAR_STEPS * m->regret.part / KVT_GATE_ALL;
}

static u16 *gate_tag(struct kvt_regret *r, u32 hash)
{
	if (hash & ((1u << r->shift) - 1))
		return NULL;
	return &r->tag[(hash >> r->shift) % KVT_REGRET_TAGS];
}

static u16 gate_tag_of(u32 hash)
{
	return (u16)(hash >> 16 | 1);
}

/*
 * A block was asked about: if @refused it may be missed. Either way it takes the place of one of
 * before, so that a tag lasts as long as what was let in then.
 */
static void gate_remember(const struct kvt_policy *p, struct kvt_regret *r, u32 tier, u32 hash,
			  bool refused)
{
	u16 *tag = gate_tag(r, hash);
	u32 list, nr = 0;

	if (!tag)
		return;
	*tag = refused ? gate_tag_of(hash) : 0;
	for (list = 0; list < KVT_LISTS; list++)
		nr += p->list[tier][list].count;
	r->shift = (u8)min(fls((int)(nr / KVT_REGRET_TAGS)), GATE_SHIFT_MAX);
}

static void gate_balance(struct kvt_regret *r, s32 by)
{
	r->balance = clamp(r->balance + by, -GATE_BALANCE_MAX, GATE_BALANCE_MAX);
}

/* When something is asked about: in whatever pieces the requests before were told. */
static void gate_weigh(struct kvt_regret *r)
{
	s32 enough = (s32)(GATE_REGRET << r->shift) * GATE_REGRET_SLOW;

	if (r->balance > enough) {
		r->part += r->part < KVT_GATE_ALL;
		r->balance = 0;
	} else if (r->balance < -enough) {
		r->part -= r->part > KVT_GATE_HALF;
		r->balance = 0;
	}
}

/**
 * kvt_gate_stored() - a request has stored a block
 * @m:    of its namespace
 * @hash: the block's
 */
void kvt_gate_stored(struct kvt_mind *m, u32 hash)
{
	struct kvt_regret *r = &m->regret;
	u16 *tag = gate_tag(r, hash);

	if (!tag || *tag != gate_tag_of(hash))
		return;
	*tag = 0;
	gate_balance(r, (s32)(GATE_REGRET << r->shift));
}

/**
 * kvt_gate_asked() - a request has used or stored blocks
 * @m:  of its namespace
 * @nr: how many, at most KVT_REQUEST_MAX
 */
void kvt_gate_asked(struct kvt_mind *m, u32 nr)
{
	gate_balance(&m->regret, -(s32)nr);
}

/**
 * kvt_gate_admit() - see struct kvt_policy_ops
 * @p:    policy; @now_ms is right
 * @tier: block tier it would go to
 * @id:   block
 * @room: it would displace nothing
 *
 * A block with children has to be written, since they cannot stay without it; it moves
 * the bar all the same, as most of a chain is asked about after its end was let in.
 */
bool kvt_gate_admit(struct kvt_policy *p, u32 tier, u32 id, bool room)
{
	u32 worth = kvt_policy_worth(p, id), least, displaced = 0;
	struct kvt_mind *m = kvt_policy_mind(p, id);
	bool ok = true;

	if (room)
		return true;
	gate_weigh(&m->regret);
	/* 0: none yet. */
	m->bar = m->bar ?: max(worth - min(worth, GATE_BAR_BELOW), 1u);
	if (kvt_ch_leaf(p->table, id)) {
		least = gate_displaced(p, tier);
		displaced = least ? kvt_policy_worth(p, least) : 0;
		ok = worth >= max(m->bar, displaced);
	}
	if (ok)
		m->bar = min(m->bar + gate_step_up(m), (u32)U16_MAX);
	else
		m->bar -= min(m->bar - 1, GATE_BAR_STEPS - gate_step_up(m));
	if (kvt_ch_leaf(p->table, id))
		gate_follow(p, max(m->bar, displaced), worth);
	gate_remember(p, &m->regret, tier, kvt_hot(p->table, id)->hash, !ok);
	return ok;
}

/* What kvt_gate_admit() has let in was not written after all. */
void kvt_gate_unadmit(struct kvt_policy *p, u32 id)
{
	struct kvt_mind *m = kvt_policy_mind(p, id);

	m->bar -= min(m->bar - !!m->bar, gate_step_up(m));
}

/**
 * kvt_gate_trades() - is a block that was used worth more than what it would displace
 * @p:     policy; @now_ms is right
 * @id:    READY block on a slower memory tier
 * @least: what would go from a faster one that is full
 *
 * A scan of what is below would have all that is above trade places with it, else. Policies that
 * do not know what a block is worth find the one that was used worth more.
 */
bool kvt_gate_trades(const struct kvt_policy *p, u32 id, u32 least)
{
	return !p->ops->worth || kvt_policy_worth(p, id) > kvt_policy_worth(p, least);
}

/**
 * kvt_policy_above() - is a block worth as much as what is let in
 * @p:  policy; @now_ms is right
 * @id: READY block on a block tier only, whose segment is being emptied
 *
 * To carry it costs what it costs to let another one in, so what nobody's would be let in for
 * now is not carried either. Policies that let everything in find everything worth it.
 */
bool kvt_policy_above(const struct kvt_policy *p, u32 id)
{
	return !p->ops->admit ||
	       kvt_policy_worth(p, id) >= min((u32)kvt_policy_mind(p, id)->bar, p->low_bar);
}

/**
 * kvt_gate_tip() - the end of a chain that goes through a block
 * @p:     policy
 * @id:    block
 * @steps: in and out: how many blocks further down may be looked at
 * Return: it, or KVT_NIL if it is too far.
 */
u32 kvt_gate_tip(const struct kvt_policy *p, u32 id, u32 *steps)
{
	for (; *steps && !kvt_ch_leaf(p->table, id); (*steps)--)
		id = kvt_cold(p->table, id)->first_child;
	return kvt_ch_leaf(p->table, id) ? id : KVT_NIL;
}
