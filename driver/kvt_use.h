/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Uses, on their way to the policy: see kvt_use.c.
 */
#ifndef KVT_USE_H
#define KVT_USE_H

#include <linux/spinlock.h>
#include <linux/types.h>

#define KVT_RING_SIZE		1024

struct kvt_pool;

/**
 * struct kvt_use - a call that used blocks of one chain, for the policy
 * @tip:     the last of them, KVT_NIL: no such call
 * @gen:     its generation
 * @who:     open file
 * @request: the client's number for its request, see kvt_request_of(); 0: none
 * @nr:      how many blocks
 */
struct kvt_use {
	u32 tip;
	u32 gen;
	u32 who;
	u32 request;
	u32 nr;
};

/* A client's number for a request, as far as it is kept. 0 stays 0. */
static inline u32 kvt_request_of(u64 request)
{
	return request ? ((u32)(request ^ request >> 32) ?: 1) : 0;
}

/* One CPU's notes of uses that the policy has not seen yet, see kvt_use.c. */
struct kvt_ring {
	spinlock_t lock;
	u32 nr;
	u32 word[KVT_RING_SIZE];
};

/* Such notes, taken from a ring, from @at on not shown yet; then @next_cpu's. Meta lock. */
struct kvt_uses {
	u32 next_cpu;
	u32 at;
	u32 nr;
	u32 word[KVT_RING_SIZE];
};

void kvt_touch(struct kvt_pool *p, const u32 *ids, u32 nr, const struct kvt_use *use);
void kvt_touch_drain(struct kvt_pool *p);	/* meta lock held */
void kvt_touch_flush(struct kvt_pool *p);
void kvt_use_end(struct kvt_pool *p, const struct kvt_use *u);	/* meta lock held */

#endif /* KVT_USE_H */
