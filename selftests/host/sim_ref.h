/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reference policies: known from the literature, on plain block numbers, one tier.
 *
 * Each keeps what it needs in its own state over blocks 0..nr_distinct-1 and is
 * shown every access of every request. What counts as a hit is not its business:
 * sim_ref.c looks which blocks are in before the request and counts the prefix.
 */
#ifndef KVT_SIM_REF_H
#define KVT_SIM_REF_H

#include "sim.h"

/**
 * struct sim_ref - a reference policy at work
 * @trace: all of it
 * @room:  blocks
 * @in:    by block: is it cached; kept by the policy
 * @nr_in: how many are
 * @at:    index into @trace->ids of the access in hand
 * @priv:  the policy's own
 */
struct sim_ref {
	const struct sim_trace *trace;
	u32 room;
	u8 *in;
	u32 nr_in;
	u32 at;
	void *priv;
};

/**
 * struct sim_ref_ops - a reference policy
 * @name:   for --policy
 * @tail_first: blocks of a request are shown from the last to the first
 * @init:   set @priv up
 * @access: a block is used: if it is not in, it comes in, or not
 * @end:    or NULL: a request is over
 * @exit:   free @priv
 */
struct sim_ref_ops {
	const char *name;
	bool tail_first;
	void (*init)(struct sim_ref *s);
	void (*access)(struct sim_ref *s, u32 id);
	void (*end)(struct sim_ref *s);
	void (*exit)(struct sim_ref *s);
};

extern const struct sim_ref_ops sim_lru_head, sim_lru_tail, sim_fifo, sim_slru;
extern const struct sim_ref_ops sim_arc, sim_s3fifo, sim_lirs, sim_min;

/* Number @i, or NULL past the last. */
const struct sim_ref_ops *sim_ref_at(u32 i);

/* Doubly linked lists of blocks over two arrays; 0xffffffff ends them. */
#define SIM_NIL	0xffffffffu

struct sim_links {
	u32 *next, *prev;
};

struct sim_list {
	u32 head, tail, count;
};

struct sim_links sim_links_new(u32 nr);
void sim_links_free(struct sim_links *l);
void sim_list_init(struct sim_list *q);
void sim_list_push(struct sim_links *l, struct sim_list *q, u32 id);
void sim_list_del(struct sim_links *l, struct sim_list *q, u32 id);

#endif /* KVT_SIM_REF_H */
