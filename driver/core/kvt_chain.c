// SPDX-License-Identifier: GPL-2.0
/*
 * Chain links; see kvt_chain.h for the model.
 *
 * Invariants: c is in the child list of p exactly when c's parent is p; the list
 * is doubly linked and ends in KVT_NIL both ways.
 */
#include "kvt_chain.h"

/**
 * kvt_ch_link() - hang a block under its parent
 * @t:      table; meta lock held
 * @child:  block without a parent
 * @parent: block that is not FREE
 */
void kvt_ch_link(struct kvt_table *t, u32 child, u32 parent)
{
	struct kvt_cold *c = kvt_cold(t, child), *p = kvt_cold(t, parent);

	c->parent = parent;
	c->sib_prev = KVT_NIL;
	c->sib_next = p->first_child;
	if (p->first_child)
		kvt_cold(t, p->first_child)->sib_prev = child;
	p->first_child = child;
}

/**
 * kvt_ch_unlink() - take a block off its parent
 * @t:     table; meta lock held
 * @child: block, with or without a parent
 * Return: the parent it had, or KVT_NIL.
 */
u32 kvt_ch_unlink(struct kvt_table *t, u32 child)
{
	struct kvt_cold *c = kvt_cold(t, child);
	u32 parent = c->parent;

	if (parent == KVT_NIL)
		return KVT_NIL;
	if (c->sib_prev)
		kvt_cold(t, c->sib_prev)->sib_next = c->sib_next;
	else
		kvt_cold(t, parent)->first_child = c->sib_next;
	if (c->sib_next)
		kvt_cold(t, c->sib_next)->sib_prev = c->sib_prev;
	c->parent = KVT_NIL;
	c->sib_next = KVT_NIL;
	c->sib_prev = KVT_NIL;
	return parent;
}

/**
 * kvt_ch_depth() - how many ancestors a block has
 * @t:     table; meta lock held
 * @id:    block
 * @limit: stop counting there
 */
u32 kvt_ch_depth(const struct kvt_table *t, u32 id, u32 limit)
{
	u32 depth = 0;

	for (id = kvt_cold(t, id)->parent; id != KVT_NIL && depth < limit; depth++)
		id = kvt_cold(t, id)->parent;
	return depth;
}

/**
 * kvt_ch_cut_cycles() - make a forest of links that come from media
 * @t: table of which no block is on a list yet; meta lock held
 *
 * RESERVE cannot make a cycle, but records can say anything. One link of each cycle
 * is cut. Takes time in proportion to the table: each block is walked over once, and
 * marked with the block that the walk began at.
 * Return: how many there were.
 */
u32 kvt_ch_cut_cycles(struct kvt_table *t)
{
	u32 end = t->nr_chunks * KVT_CHUNK_BLOCKS, id, at, last, nr = 0;

	for (id = 1; id < end; id++) {
		for (at = id, last = KVT_NIL; at && !kvt_cold(t, at)->lru_prev;) {
			kvt_cold(t, at)->lru_prev = id;
			last = at;
			at = kvt_cold(t, at)->parent;
		}
		if (at && last && kvt_cold(t, at)->lru_prev == id) {
			kvt_ch_unlink(t, last);
			nr++;
		}
	}
	for (id = 1; id < end; id++)
		kvt_cold(t, id)->lru_prev = KVT_NIL;
	return nr;
}
