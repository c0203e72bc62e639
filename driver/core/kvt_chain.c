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
 * kvt_ch_adopt() - children get another parent
 * @t:    table; meta lock held
 * @to:   block without children, that is not FREE
 * @from: their parent until now
 * @max:  how many at most, at least one; the others stay
 */
void kvt_ch_adopt(struct kvt_table *t, u32 to, u32 from, u32 max)
{
	struct kvt_cold *n = kvt_cold(t, to), *p = kvt_cold(t, from);
	u32 id = p->first_child, last = KVT_NIL;

	n->first_child = id;
	for (; id != KVT_NIL && max; max--) {
		last = id;
		kvt_cold(t, id)->parent = to;
		id = kvt_cold(t, id)->sib_next;
	}
	p->first_child = id;
	if (last != KVT_NIL)
		kvt_cold(t, last)->sib_next = KVT_NIL;
	if (id != KVT_NIL)
		kvt_cold(t, id)->sib_prev = KVT_NIL;
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
 * kvt_ch_cut_start() - begin to make a forest of links that come from media
 * @c: state of it
 */
void kvt_ch_cut_start(struct kvt_ch_cut *c)
{
	*c = (struct kvt_ch_cut) { .from = 1, .at = 1 };
}

/* One block further up, or to where the next walk begins. */
static void kvt_ch_cut_one(struct kvt_table *t, struct kvt_ch_cut *c)
{
	if (c->at != KVT_NIL && !kvt_cold(t, c->at)->lru_prev) {
		kvt_cold(t, c->at)->lru_prev = c->from;
		c->last = c->at;
		c->at = kvt_cold(t, c->at)->parent;
		return;
	}
	/* A mark of this walk: it has come round. */
	if (c->at != KVT_NIL && c->last != KVT_NIL && kvt_cold(t, c->at)->lru_prev == c->from &&
	    !kvt_env_broken(CYCLES)) {
		kvt_ch_unlink(t, c->last);
		c->nr++;
	}
	c->at = ++c->from;
	c->last = KVT_NIL;
}

/**
 * kvt_ch_cut_step() - cut one link of each cycle, a step at a time
 * @t:     table of which no block is on a list yet; meta lock held. It must not change
 *         between steps
 * @c:     state, of kvt_ch_cut_start(); @c->nr counts what was cut
 * @steps: how many blocks to look at
 *
 * RESERVE cannot make a cycle, but records can say anything. Takes time in proportion
 * to the table: each block is walked over once, and marked in lru_prev with the block
 * that the walk began at. The marks are taken off again in the end.
 * Return: false: all is done.
 */
bool kvt_ch_cut_step(struct kvt_table *t, struct kvt_ch_cut *c, u32 steps)
{
	u32 end = t->nr_chunks * KVT_CHUNK_BLOCKS;

	for (; steps && c->from < end; steps--)
		kvt_ch_cut_one(t, c);
	for (; steps && c->from >= end && c->cleared + 1 < end; steps--)
		kvt_cold(t, ++c->cleared)->lru_prev = KVT_NIL;
	return c->from < end || c->cleared + 1 < end;
}
