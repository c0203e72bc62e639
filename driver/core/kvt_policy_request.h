/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The policy "reuse": what its two halves share, lists (kvt_policy_reuse.c) and requests
 * (kvt_policy_request.c).
 */
#ifndef KVT_POLICY_REQUEST_H
#define KVT_POLICY_REQUEST_H

#include "kvt_policy.h"

/* A block's @past: bin of the time between its last two uses, and its mark. */
#define REUSE_GAP_BITS		5
#define REUSE_GAP_MASK		((1u << REUSE_GAP_BITS) - 1)
#define REUSE_GAP_NEVER		REUSE_GAP_MASK	/* in what is cold: said to be over */

#define REUSE_ASIDE		KVT_CLS_POOL	/* list of what was put aside; no block has that class */
#define REUSE_LEARN_STEPS	512u	/* blocks in whose time a class's row is worked out */

static inline u32 reuse_age_ms(const struct kvt_policy *p, const struct kvt_cold *c)
{
	return kvt_age_since(p->now_ms, c->touch_ms);
}

static inline u32 reuse_hash(const struct kvt_policy *p, u32 id)
{
	return kvt_hot(p->table, id)->hash;
}

/*
 * Was a block put aside because it could not go, whatever the reason. There it stays, whatever
 * is done to it, and comes back by itself: else who keeps blocks could see to it that they are
 * all that is ever found.
 */
static inline bool reuse_stuck(const struct kvt_cold *c)
{
	return c->on & KVT_ON_STUCK;
}

void kvt_reuse_turned_out(struct kvt_policy *p, struct kvt_mind *m, u32 id, u32 age_ms);
void kvt_reuse_request(struct kvt_policy *p, u32 id, struct kvt_ask *ask);

#endif /* KVT_POLICY_REQUEST_H */
