/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Looking ahead: how much to bring up that nobody has asked for yet.
 *
 * A chain is read from its head on, so it is known what comes next. Whether it will be
 * asked for, and when, is not. Three things limit how much is read on a mere guess; the
 * least counts.
 *
 * Trust. Each block costs a unit of credit; one that is read before it goes again earns
 * KVT_TRUST_EARN units. So what is right half of the time goes on, more than that grows by
 * itself, and the rest ends soon. Each period grants what is missing to KVT_TRUST_GRANT, and
 * half of it after each period in which less than a quarter was right, down to one block:
 * by that it is found out when it would be right again. What is saved up is halved in each
 * period: who was right for long is not believed for long.
 *
 * Time. What cannot be there before it is asked for would only be in the way of the read
 * that its client makes himself. The time until then is how long the same client took
 * between calls of that kind before (struct kvt_pace), or what he has said.
 *
 * Room. Nothing goes for the sake of a guess: the caller says how much is free.
 *
 * Integers only. Locks: the pool's meta lock for struct kvt_trust. None for struct kvt_pace:
 * calls of one open file that run side by side may lose a sample.
 */
#ifndef KVT_AHEAD_H
#define KVT_AHEAD_H

#include "kvt_env.h"

#define KVT_TRUST_GRANT		32u
#define KVT_TRUST_EARN		2u
#define KVT_TRUST_MAX		1024u
#define KVT_TRUST_DOUBT_MAX	5u	/* 32 >> 5: one block */
#define KVT_TRUST_PERIOD_MS	2000u

#define KVT_PACE_START_NS	100000000ull	/* until it has been seen */
#define KVT_PACE_MAX_NS		1000000000ull	/* no pause counts for more */

/**
 * struct kvt_trust - how far guesses of a kind are believed
 * @credit:  blocks that may be brought up
 * @spent:   of those brought up in this period, at most U32_MAX
 * @earned:  blocks read in this period that had been brought up at any time
 * @at_ms:   pool clock: when this period began
 * @doubt:   periods in a row that were mostly wrong, at most KVT_TRUST_DOUBT_MAX
 */
struct kvt_trust {
	u32 credit;
	u32 spent;
	u32 earned;
	u32 at_ms;
	u32 doubt;
};

void kvt_trust_init(struct kvt_trust *t, u32 now_ms);
u32 kvt_trust_credit(struct kvt_trust *t, u32 now_ms);
void kvt_trust_spend(struct kvt_trust *t, u32 nr);
void kvt_trust_refund(struct kvt_trust *t, u32 nr);
void kvt_trust_earn(struct kvt_trust *t);

/* What a client did before he paused. */
enum kvt_pace_kind {
	KVT_PACE_LOOKUP = 0,
	KVT_PACE_GET,
	KVT_PACE_KINDS,
};

/**
 * struct kvt_pace - how long a client takes between calls that read
 * @end_ns:   end of the last one, any clock; 0: there was none
 * @pause_ns: after each kind: moving average, a new one counting for a quarter
 * @last:     kind of the last one
 */
struct kvt_pace {
	u64 end_ns;
	u64 pause_ns[KVT_PACE_KINDS];
	u32 last;
};

void kvt_pace_init(struct kvt_pace *p);
void kvt_pace_begin(struct kvt_pace *p, u64 now_ns);
void kvt_pace_end(struct kvt_pace *p, enum kvt_pace_kind kind, u64 now_ns);

/**
 * struct kvt_ahead_ask - blocks of one chain on one tier that may be asked for
 * @wanted:      how many there are; the next one first
 * @credit:      kvt_trust_credit()
 * @block_bytes: size of one, not 0
 * @room_bytes:  free where they would go
 * @max_bytes:   most that may be read
 * @block_ns:    time to read one
 * @queue_ns:    time for what others wait for there
 * @due_ns:      time until the next one is asked for; 0: that is now
 * @pace_ns:     time from one call to the next
 * @each:        blocks in a call; 0: all of them are asked for in one
 */
struct kvt_ahead_ask {
	u32 wanted;
	u32 credit;
	u64 block_bytes;
	u64 room_bytes;
	u64 max_bytes;
	u64 block_ns;
	u64 queue_ns;
	u64 due_ns;
	u64 pace_ns;
	u32 each;
};

u32 kvt_ahead_blocks(const struct kvt_ahead_ask *q);

#endif /* KVT_AHEAD_H */
