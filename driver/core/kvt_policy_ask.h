/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which calls belong to one request.
 *
 * An engine may look for a chain, take what is there and store the rest in several calls,
 * and all of them are one request, one turn of a session. They are told by the number
 * that the client gives its requests. Where it gives none (0), a call goes on with an
 * earlier one of the same client if that ended in a block of this call or just before
 * it, no more than KVT_ASK_GAP_MS ago.
 *
 * A policy is told of each call, so that blocks have their place at once. What it has to
 * take back when the request turns out to go on is kept here, for the last KVT_ASKS
 * requests of all clients: a request that is forgotten early counts as two.
 *
 * Lock: the pool's meta lock for everything.
 */
#ifndef KVT_POLICY_ASK_H
#define KVT_POLICY_ASK_H

#include "kvt_block.h"
#include "kvt_policy_turn.h"

#define KVT_ASKS	32u
#define KVT_ASK_MARKS	5u
#define KVT_ASK_GAP_MS	1000u	/* longest time between parts, no number given */
#define KVT_ASK_OLD_MS	60000u	/* then a number may be used for another request */
#define KVT_ASK_STEPS	8192u	/* blocks looked at for a call, all walks together */

/**
 * struct kvt_ask - a request, as far as it has come
 * @request:  the client's number for it, 0: none
 * @who:      client; 0: free
 * @at_ms:    last call
 * @tip:      last block of that
 * @tip_gen:  its generation, since an id may be another block by now
 * @more:     the policy has been told of a part of it
 * @known:    policy: it is a session's next turn
 * @turn_was: policy: what was known of the turn before, name 0: nothing
 * @turn_over: policy: what was forgotten to remember this one, name 0: nothing
 * @over_ms:  policy: its age
 * @gap_ms:   policy: time since the turn before
 * @name:     policy: what the request is remembered by
 * @old:      policy: the first block on the way up that was there before it, or KVT_NIL
 * @stranger: policy: block at which it was taken for a stranger, or KVT_NIL
 * @marked:   policy: block with the request's own mark
 * @told:     policy: last block that it has been told of
 * @nr:       policy: blocks of the chain when all of it was looked at last
 * @behind:   policy: blocks that it has grown by since, behind those of other requests
 * @cls:      policy: class of the session
 * @turn:     policy: number of the turn
 * @len:      policy: length of the chain, as far as it counts
 * @grows:    policy: more blocks would change nothing of this but @name, @marked, and @cls and @len
 * @marks:    policy: marks that blocks had before it, from @old upwards
 */
struct kvt_ask {
	u32 request;
	u32 who;
	u32 at_ms;
	u32 tip;
	u32 tip_gen;
	struct kvt_turn turn_was;
	struct kvt_turn turn_over;
	u32 over_ms;
	u32 gap_ms;
	u32 name;
	u32 old;
	u32 stranger;
	u32 marked;
	u32 told;
	u16 nr;
	u16 behind;
	bool more;
	bool known;
	bool grows;
	u8 cls;
	u8 turn;
	u8 len;
	u8 marks[KVT_ASK_MARKS];
};

/**
 * struct kvt_asks - requests of late
 * @ask: in no order
 */
struct kvt_asks {
	struct kvt_ask ask[KVT_ASKS];
};

/**
 * struct kvt_call - a call that ended in a block
 * @who:     client, not 0
 * @request: its number for the request, or 0
 * @tip:     the last block
 * @nr:      how many blocks the call was about
 */
struct kvt_call {
	u32 who;
	u32 request;
	u32 tip;
	u32 nr;
};

bool kvt_ask_extends(const struct kvt_table *t, u32 tip, u32 above, u32 nr);
struct kvt_ask *kvt_ask_of(struct kvt_asks *a, const struct kvt_table *t,
			   const struct kvt_call *c, u32 now_ms, u32 *nr_steps);

#endif /* KVT_POLICY_ASK_H */
