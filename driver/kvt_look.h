/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bringing up what was not asked for; see kvt_look.c.
 */
#ifndef KVT_LOOK_H
#define KVT_LOOK_H

#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "core/kvt_ahead.h"

struct kvt_batch;
struct kvt_file;
struct kvt_pool;

#define KVT_LOOKS		64	/* ahead that wait to be made, in a pool */
#define KVT_LOOKS_OF_NS		16	/* of these, one namespace's */

/* Which guess it is. Each namespace has trust in both. */
enum kvt_guess {
	KVT_GUESS_NAMED = 0,	/* the client has named these blocks, or a chain's tip */
	KVT_GUESS_NEXT,		/* what follows in the chain on what he has read */
	KVT_GUESSES,
};

/**
 * struct kvt_look - a look ahead that is to be made
 * @guess:    NAMED: from @tip upwards; NEXT: below @tip
 * @tip:      block, maybe gone by then
 * @gen:      its generation
 * @ns:       index of its namespace, for counting only
 * @nr:       blocks of the chain, at most
 * @each:     blocks in a call of the client's, 0: he wants all of them in one
 * @start_ns: ktime: not before
 * @due_ns:   ktime: then the first is asked for
 * @pace_ns:  see struct kvt_ahead_ask
 */
struct kvt_look {
	enum kvt_guess guess;
	u32 tip;
	u32 gen;
	u32 ns;
	u32 nr;
	u32 each;
	u64 start_ns;
	u64 due_ns;
	u64 pace_ns;
};

/**
 * struct kvt_looks - those of a pool
 * @lock:      @nr and @look
 * @nr:        how many
 * @look:      in no order
 * @work:      makes them
 * @wait:      it waits here while there is something else to be read
 * @max_bytes: that one of them reads, at most; 0: none is made
 */
struct kvt_looks {
	spinlock_t lock;
	u32 nr;
	struct kvt_look look[KVT_LOOKS];
	struct delayed_work work;
	wait_queue_head_t wait;
	u64 max_bytes;
};

void kvt_looks_init(struct kvt_pool *p);
void kvt_looks_stop(struct kvt_pool *p);
void kvt_looks_wake(struct kvt_pool *p);
void kvt_look_begin(struct kvt_file *f);
void kvt_look_end(struct kvt_file *f, enum kvt_pace_kind kind);
void kvt_look_named(struct kvt_batch *b, u32 first, u32 nr);
void kvt_look_next(struct kvt_batch *b, enum kvt_pace_kind kind);
void kvt_look_session(struct kvt_file *f, u32 tip, u32 gen, u64 reuse_ns);
void kvt_ahead_used(struct kvt_pool *p, u32 id);	/* meta lock held */

#endif /* KVT_LOOK_H */
