/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a policy has learned of one namespace: hazards and worth, sessions it remembers,
 * requests that may go on, and what a write is worth.
 *
 * Nothing in it comes from another namespace's blocks or requests but one thing: the
 * lists of a tier are all namespaces', so how many shared blocks of a class still wait is
 * estimated from a sample of them. Worth is compared between namespaces: it has the same
 * unit everywhere, uses for a moment of a place.
 *
 * Lock: the pool's meta lock for everything.
 */
#ifndef KVT_POLICY_MIND_H
#define KVT_POLICY_MIND_H

#include "kvt_policy_ask.h"
#include "kvt_policy_learn.h"
#include "kvt_policy_turn.h"

#define KVT_MIND_BYTES_MAX	16384u

/**
 * struct kvt_mind - of one namespace
 * @learn: hazards and worth by class
 * @turns: sessions
 * @asks:  requests that may go on
 * @nr_requests: it was told of
 * @bar:   what a block must be worth to be written to a block tier
 */
struct kvt_mind {
	struct kvt_learn learn;
	struct kvt_turns turns;
	struct kvt_asks asks;
	u32 nr_requests;
	u32 bar;
};

/* Nothing known. */
static inline void kvt_mind_init(struct kvt_mind *m)
{
	BUILD_BUG_ON(sizeof(*m) > KVT_MIND_BYTES_MAX);
	memset(m, 0, sizeof(*m));
	kvt_learn_init(&m->learn);
	kvt_turns_init(&m->turns);
}

#endif /* KVT_POLICY_MIND_H */
