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
#define KVT_REGRET_TAGS		64u
#define KVT_GATE_HALF		16u	/* half of what is asked about passes */
#define KVT_GATE_ALL		32u

/**
 * struct kvt_regret - what was refused a write, and asked for again; see kvt_policy_gate.c
 * @balance: of blocks asked for, and of those among them that would be there
 * @part:    of what is asked about so much passes, KVT_GATE_HALF to KVT_GATE_ALL
 * @shift:   one in 2^shift refused blocks is remembered
 * @tag:     of these, by hash; 0: none
 */
struct kvt_regret {
	s32 balance;
	u8 part;
	u8 shift;
	u16 tag[KVT_REGRET_TAGS];
};

/**
 * struct kvt_mind - of one namespace
 * @learn: hazards and worth by class
 * @turns: sessions
 * @asks:  requests that may go on
 * @nr_requests: it was told of
 * @bar:   what a block must be worth to be written to a block tier
 * @regret: how that follows what is asked about
 */
struct kvt_mind {
	struct kvt_learn learn;
	struct kvt_turns turns;
	struct kvt_asks asks;
	u32 nr_requests;
	u32 bar;
	struct kvt_regret regret;
};

/* Nothing known. */
static inline void kvt_mind_init(struct kvt_mind *m)
{
	BUILD_BUG_ON(sizeof(*m) > KVT_MIND_BYTES_MAX);
	memset(m, 0, sizeof(*m));
	kvt_learn_init(&m->learn);
	kvt_turns_init(&m->turns);
	m->regret.part = KVT_GATE_HALF;
}

#endif /* KVT_POLICY_MIND_H */
