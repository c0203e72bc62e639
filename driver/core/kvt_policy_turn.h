/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sessions: which request continues which.
 *
 * A request whose chain goes on where an earlier one's ended is the next *turn* of
 * the same session. Requests are remembered by the name (hash) of their last block
 * but one: the last is often partly filled and has another name in the next turn. So
 * a session is known again when its blocks have long gone.
 *
 * A request that passes the last block but one of another, but does not go on with
 * its last, may also be a stranger who shares the beginning. It is taken for one if it
 * is not longer, or if strangers have been seen at that block before.
 *
 * The table is a set-associative cache of KVT_TURNS requests; what is forgotten in it
 * counts as not continued from the age on that it had.
 */
#ifndef KVT_POLICY_TURN_H
#define KVT_POLICY_TURN_H

#include "kvt_env.h"

#ifndef KVT_TURN_SETS
#define KVT_TURN_SETS	128
#endif
#define KVT_TURN_WAYS	8

/**
 * struct kvt_turn - a request remembered
 * @name: hash of its last block but one; 0: free
 * @last: hash of its last block
 * @ms:   when it was
 * @len:  blocks
 * @turn: in its session, from 0
 * @cls:  class
 */
struct kvt_turn {
	u32 name;
	u32 last;
	u32 ms;
	u16 len;
	u8 turn;
	u8 cls;
};

struct kvt_turns {
	struct kvt_turn set[KVT_TURN_SETS][KVT_TURN_WAYS];
};

void kvt_turns_init(struct kvt_turns *t);
struct kvt_turn *kvt_turn_find(struct kvt_turns *t, u32 name);
struct kvt_turn *kvt_turn_slot(struct kvt_turns *t, u32 name, u32 now_ms);
void kvt_turns_waiting(const struct kvt_turns *t, u32 cls, u32 now_ms, u16 *waiting);

#endif /* KVT_POLICY_TURN_H */
