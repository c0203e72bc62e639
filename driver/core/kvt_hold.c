// SPDX-License-Identifier: GPL-2.0
/*
 * Holds; see kvt_hold.h for the model.
 */
#include "kvt_hold.h"

/* One more that holds @id. Done: it is not the first. */
static enum kvt_hold_end hold_one(struct kvt_table *t, struct kvt_hold_walk *w, u32 id)
{
	struct kvt_cold *c = kvt_cold(t, id);
	struct kvt_hot *h = kvt_hot(t, id);
	bool first = !(c->holds & KVT_HOLD_COUNT), pay;

	pay = first && !(kvt_ctl(h) & KVT_CTL_PINNED);
	if (pay && w->nr >= w->room)
		return KVT_HOLD_FULL;
	if (first && w->stays && !w->stays(t, id))
		return KVT_HOLD_LEAVES;
	w->nr += pay;
	c->holds++;
	if (first)
		kvt_ctl_update(h, 0, 0, 0, KVT_CTL_HELD);
	return first ? KVT_HOLD_MORE : KVT_HOLD_DONE;
}

static void hold_goto(struct kvt_table *t, struct kvt_hold_walk *w, u32 id)
{
	w->id = id;
	w->gen = kvt_hot(t, id)->gen;
}

/* The parent that a block can hold, or KVT_NIL. */
static u32 hold_parent(struct kvt_table *t, u32 id)
{
	u32 up = kvt_cold(t, id)->parent;

	return up && kvt_ctl_state(kvt_ctl(kvt_hot(t, up))) == KVT_READY ? up : KVT_NIL;
}

/**
 * kvt_hold_tip() - a session begins to hold a block
 * @t:    table
 * @w:    walk with @room and @stays; out: to be gone on with if this says MORE
 * @id:   block, READY
 * Return: FULL, LEAVES: nothing has changed.
 */
enum kvt_hold_end kvt_hold_tip(struct kvt_table *t, struct kvt_hold_walk *w, u32 id)
{
	w->nr = 0;
	hold_goto(t, w, id);
	return hold_one(t, w, id);
}

/**
 * kvt_hold_climb() - have a held block's ancestors held
 * @t:     table
 * @w:     walk; its @nr begins at 0
 * @steps: how many at most
 * Return: FULL, LEAVES: the ancestors from there on are not held; the caller takes the whole
 * back with kvt_hold_drop(), from the tip on.
 */
enum kvt_hold_end kvt_hold_climb(struct kvt_table *t, struct kvt_hold_walk *w, u32 steps)
{
	enum kvt_hold_end end;
	u32 up;

	w->nr = 0;
	for (; steps; steps--) {
		struct kvt_cold *c;

		if (!kvt_hold_there(t, w->id, w->gen))
			return KVT_HOLD_DONE;
		c = kvt_cold(t, w->id);
		up = hold_parent(t, w->id);
		if (!up || (c->holds & KVT_HOLD_UP) || !(c->holds & KVT_HOLD_COUNT))
			return KVT_HOLD_DONE;
		end = hold_one(t, w, up);
		if (end == KVT_HOLD_FULL || end == KVT_HOLD_LEAVES)
			return end;
		c->holds |= KVT_HOLD_UP;
		if (end == KVT_HOLD_DONE)
			return end;
		hold_goto(t, w, up);
	}
	return KVT_HOLD_MORE;
}

/* Nobody holds @id any more: it does not hold its parent either. Where to go on. */
static u32 hold_none(struct kvt_table *t, struct kvt_hold_walk *w, u32 id)
{
	struct kvt_cold *c = kvt_cold(t, id);
	struct kvt_hot *h = kvt_hot(t, id);
	bool up = c->holds & KVT_HOLD_UP;

	c->holds = 0;
	w->nr += !(kvt_ctl(h) & KVT_CTL_PINNED);
	kvt_ctl_update(h, 0, 0, KVT_CTL_HELD, 0);
	return up ? hold_parent(t, id) : KVT_NIL;
}

/**
 * kvt_hold_drop() - one hold of a block goes
 * @t:     table
 * @w:     walk: @id, @gen: the block; its @nr begins at 0
 * @steps: how many at most
 */
enum kvt_hold_end kvt_hold_drop(struct kvt_table *t, struct kvt_hold_walk *w, u32 steps)
{
	w->nr = 0;
	for (; steps; steps--) {
		struct kvt_cold *c;
		u32 up;

		if (!kvt_hold_there(t, w->id, w->gen))
			return KVT_HOLD_DONE;
		c = kvt_cold(t, w->id);
		if ((c->holds & KVT_HOLD_COUNT) > 1) {
			c->holds--;
			return KVT_HOLD_DONE;
		}
		if (!(c->holds & KVT_HOLD_COUNT))
			return KVT_HOLD_DONE;
		up = hold_none(t, w, w->id);
		if (!up)
			return KVT_HOLD_DONE;
		hold_goto(t, w, up);
	}
	return KVT_HOLD_MORE;
}

/**
 * kvt_hold_grow() - a session's chain has got longer: it holds the new tip now
 * @t:     table
 * @child: READY, held by nobody, and paid for; its parent is the tip until now
 *
 * The session's hold of the parent becomes that of @child.
 */
void kvt_hold_grow(struct kvt_table *t, u32 child)
{
	kvt_cold(t, child)->holds = 1 | KVT_HOLD_UP;
	kvt_ctl_update(kvt_hot(t, child), 0, 0, 0, KVT_CTL_HELD);
}

/**
 * kvt_hold_die() - a held block is about to leave the pool
 * @t:  table
 * @w:  out: a walk for kvt_hold_drop(): what it held; @nr: 1 if it was paid for
 * @id: block, READY, still with its parent
 */
void kvt_hold_die(struct kvt_table *t, struct kvt_hold_walk *w, u32 id)
{
	u32 up;

	*w = (struct kvt_hold_walk) { .id = KVT_NIL };
	up = hold_none(t, w, id);
	if (up)
		hold_goto(t, w, up);
}

/**
 * kvt_hold_pass() - a block has got another entry: what its children hold of it goes along
 * @t:    table
 * @to:   the other one, READY and held by nobody, with the children; it is paid for by what
 *        @from was
 * @from: until now, READY; held by nobody from here on, unless no child holds it
 *
 * Sessions whose tip it was hold it no longer: they know the entry.
 */
void kvt_hold_pass(struct kvt_table *t, u32 to, u32 from)
{
	struct kvt_cold *n = kvt_cold(t, to), *c = kvt_cold(t, from);
	u32 id, nr = 0;

	for (id = n->first_child; id != KVT_NIL; id = kvt_cold(t, id)->sib_next) {
		/* What is FILLING has something else in the same place. */
		nr += (kvt_ctl(kvt_hot(t, id)) & KVT_CTL_HELD) &&
		      (kvt_cold(t, id)->holds & KVT_HOLD_UP);
	}
	if (!nr)
		return;
	n->holds = nr | (c->holds & KVT_HOLD_UP);
	c->holds = 0;
	kvt_ctl_update(kvt_hot(t, to), 0, 0, 0, KVT_CTL_HELD);
	kvt_ctl_update(kvt_hot(t, from), 0, 0, KVT_CTL_HELD, 0);
}
