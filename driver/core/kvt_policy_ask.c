// SPDX-License-Identifier: GPL-2.0
/*
 * Calls and requests; see kvt_policy_ask.h for the model.
 */
#include "kvt_policy_ask.h"

/* Is the block that the request came to last still there. */
static bool ask_has_tip(const struct kvt_ask *e, const struct kvt_table *t)
{
	const struct kvt_hot *h;

	if (!kvt_table_valid(t, e->tip))
		return false;
	h = kvt_hot(t, e->tip);
	return h->gen == e->tip_gen && kvt_ctl_state(kvt_ctl(h)) == KVT_READY;
}

/* Is @above among the @steps blocks from @id upwards. Not looked at: no. */
static bool ask_passes(const struct kvt_table *t, u32 id, u32 above, u32 steps, u32 *left)
{
	for (; id && steps && *left; steps--, (*left)--) {
		if (id == above)
			return true;
		id = kvt_cold(t, id)->parent;
	}
	return false;
}

/**
 * kvt_ask_extends() - is a call's chain the next part of another's
 * @t:     block entries
 * @tip:   its last block
 * @above: that of the other
 * @nr:    its blocks
 */
bool kvt_ask_extends(const struct kvt_table *t, u32 tip, u32 above, u32 nr)
{
	u32 left = KVT_ASK_STEPS;

	return tip != above && ask_passes(t, tip, above, nr + 1, &left);
}

static bool ask_goes_on(const struct kvt_ask *e, const struct kvt_table *t,
			const struct kvt_call *c, u32 now_ms, u32 *left)
{
	u32 age_ms = kvt_age_since(now_ms, e->at_ms);

	if (e->who != c->who || e->request != c->request)
		return false;
	if (c->request)
		return age_ms <= KVT_ASK_OLD_MS;
	return age_ms <= KVT_ASK_GAP_MS && ask_has_tip(e, t) &&
	       ask_passes(t, c->tip, e->tip, c->nr + 1, left);
}

/* A free entry, or the one that was not heard of for the longest time. */
static struct kvt_ask *ask_slot(struct kvt_asks *a, u32 now_ms)
{
	struct kvt_ask *best = a->ask;
	u32 i;

	for (i = 0; i < KVT_ASKS; i++) {
		struct kvt_ask *e = &a->ask[i];

		if (!e->who)
			return e;
		if (kvt_age_since(now_ms, e->at_ms) > kvt_age_since(now_ms, best->at_ms))
			best = e;
	}
	return best;
}

/**
 * kvt_ask_of() - the request that a call belongs to
 * @a:      requests
 * @t:      block entries
 * @c:      call
 * @now_ms: pool clock
 * @nr_steps: blocks looked at are added to this
 *
 * A request whose last block has gone, or whose number comes again with another chain,
 * begins anew: what it had is of no use then. So does one whose last block is more than
 * KVT_ASK_STEPS away.
 * Return: its entry, brought up to date; @more says that the policy knows a part of it.
 * NULL: this tells nothing new, since the request has come further down that chain
 * before.
 */
struct kvt_ask *kvt_ask_of(struct kvt_asks *a, const struct kvt_table *t,
			   const struct kvt_call *c, u32 now_ms, u32 *nr_steps)
{
	struct kvt_ask *e = a->ask;
	u32 left = KVT_ASK_STEPS;

	while (e < a->ask + KVT_ASKS && !ask_goes_on(e, t, c, now_ms, &left))
		e++;
	if (e == a->ask + KVT_ASKS) {
		e = ask_slot(a, now_ms);
		memset(e, 0, sizeof(*e));
	} else if (!ask_has_tip(e, t)) {
		e->more = false;
	} else if (!ask_passes(t, c->tip, e->tip, c->nr + 1, &left)) {
		/* Not the next part, which is found however deep it is. */
		if (ask_passes(t, e->tip, c->tip, U32_MAX, &left)) {
			e->at_ms = now_ms;
			*nr_steps += KVT_ASK_STEPS - left;
			return NULL;
		}
		e->more = e->more && ask_passes(t, c->tip, e->tip, U32_MAX, &left);
	}
	*nr_steps += KVT_ASK_STEPS - left;
	e->who = c->who;
	e->request = c->request;
	e->at_ms = now_ms;
	e->tip = c->tip;
	e->tip_gen = kvt_hot(t, c->tip)->gen;
	return e;
}
