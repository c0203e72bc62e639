/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Recent requests, to know again the sessions that go on.
 *
 * A request is remembered by the name (hash) of its last block but one: the last is
 * often partly filled and has another name in the next turn. Names, not blocks, so a
 * session is known again when its blocks have long gone.
 *
 * The table is set-associative. When a set is full, the request with the largest age
 * goes, where ages of some count less: half of all names are on level 0, a quarter on
 * level 1 and so on, and an age is divided by two to the power of the level. So the
 * newest are remembered nearly all, and of old ones a sample, which does not depend on
 * what becomes of them: from it the chances at high ages are learned.
 *
 * Times are kept in units of KVT_TURN_MS, 16 bits of them; what is older than
 * KVT_TURN_OLD units is taken out before they wrap.
 *
 * Lock: the pool's meta lock for everything.
 */
#ifndef KVT_POLICY_TURN_H
#define KVT_POLICY_TURN_H

#include "kvt_policy_learn.h"

#define KVT_TURN_SETS	128u
#define KVT_TURN_WAYS	8u
#define KVT_TURN_LEVELS	5u
#define KVT_TURN_SHIFT	8
#define KVT_TURN_MS	(1u << KVT_TURN_SHIFT)
#define KVT_TURN_OLD	0x8000u		/* two hours and a quarter */
#define KVT_TURN_STEP_MS	((KVT_TURN_OLD << KVT_TURN_SHIFT) / 2 / KVT_TURN_SETS)
#define KVT_TURN_MAX	6u		/* turns from there on are all the same */

/**
 * struct kvt_turn - a request remembered
 * @name: hash of its last block but one, or of the only one; 0: free
 * @time: low bits of the time, in units of KVT_TURN_MS
 * @last: of the hash of its last block, 8 bits
 * @turn: its number in its session, from 0, at most KVT_TURN_MAX
 * @cls:  class
 */
struct kvt_turn {
	u32 name;
	u16 time;
	u8 last;
	u8 turn : 3;
	u8 cls : 5;
};

/**
 * struct kvt_turns - the table
 * @swept_ms: when what is too old was last looked for
 * @next:     set where to go on with that
 * @set:      it
 */
struct kvt_turns {
	u32 swept_ms;
	u32 next;
	struct kvt_turn set[KVT_TURN_SETS][KVT_TURN_WAYS];
};

void kvt_turns_init(struct kvt_turns *t);
struct kvt_turn *kvt_turn_find(struct kvt_turns *t, u32 name);
struct kvt_turn *kvt_turn_slot(struct kvt_turns *t, u32 name, u32 now_ms);
u32 kvt_turn_age_ms(const struct kvt_turn *e, u32 now_ms);
void kvt_turns_waiting(const struct kvt_turns *t, u32 cls, u32 now_ms, u16 *waiting);
void kvt_turns_expire(struct kvt_turns *t, struct kvt_learn *l, u32 now_ms);

#endif /* KVT_POLICY_TURN_H */
