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
 * The lowest bar of those that ask. It rises no faster than a bar does, so that one of several
 * that take turns is not forgotten before its next. What is said to be cold is worth nothing:
 * it passes nowhere, and says nothing of what does.
 */
static void gate_follow(struct kvt_policy *p, u32 bar, u32 worth)
{
	if (!worth)
		return;
	p->low_bar = p->low_bar ? min(bar, p->low_bar + GATE_BAR_STEP) : bar;
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
	u32 worth = kvt_policy_worth(p, id), least;
	struct kvt_mind *m = kvt_policy_mind(p, id);
	bool ok = true;

	if (room)
		return true;
	/* 0: none yet. */
	m->bar = m->bar ?: max(worth - min(worth, GATE_BAR_BELOW), 1u);
	if (kvt_ch_leaf(p->table, id)) {
		least = gate_displaced(p, tier);
		ok = worth >= m->bar && (!least || worth >= kvt_policy_worth(p, least));
	}
	if (ok)
		m->bar = min(m->bar + GATE_BAR_STEP, (u32)U16_MAX);
	else
		m->bar -= min(m->bar - 1, GATE_BAR_STEP);
	gate_follow(p, m->bar, worth);
	return ok;
}

/* What kvt_gate_admit() has let in was not written after all. */
void kvt_gate_unadmit(struct kvt_policy *p, u32 id)
{
	struct kvt_mind *m = kvt_policy_mind(p, id);

	m->bar -= min(m->bar - !!m->bar, GATE_BAR_STEP);
	p->low_bar = min(p->low_bar, m->bar);
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
