// SPDX-License-Identifier: GPL-2.0
/*
 * Chains of the crash test: what a block's parent is, and the links of entries, which are
 * the driver's own (kvt_chain.h). See crash.h.
 *
 * A version says which of a name's possible parents it was put under, so bytes tell that,
 * too, and a record can be held against them. Some possible parents are further back in a
 * chain, so that what a crash brings back may form a cycle with what has been put since.
 */
#include "crash.h"

#define CR_BACK		5u	/* how far the one further back is */

/* The name that a version of a name was put under; CR_NAMES: under none. */
u32 cr_parent_of(u32 name, u32 version)
{
	u32 key = name % CR_KEYS, up = key;

	switch (version % CR_PARENTS) {
	case 1:
		up = (key + CR_KEYS - 1) % CR_KEYS;
		break;
	case 2:
		up = key / 2;
		break;
	case 3:
		up = (key + CR_BACK) % CR_KEYS;
		break;
	}
	return up == key ? CR_NAMES : name - key + up;
}

/* A parent for a new version: mostly one that is there, as RESERVE demands, else none. */
u32 cr_parent_choose(const struct cr_store *s, u32 name)
{
	u32 at = cr_random(s->rng, 8), i, choice, up;

	for (i = 1; at && i < CR_PARENTS; i++) {
		choice = 1 + (at + i) % (CR_PARENTS - 1);
		up = cr_parent_of(name, choice);
		if (up != CR_NAMES && s->by_name[up])
			return choice;
	}
	return 0;
}

void cr_links_init(struct cr_store *s)
{
	s->chunk[0] = s->cold;
	s->table.cold = s->chunk;
	s->table.max_chunks = 1;
	s->table.nr_chunks = 1;
}

/* Hang an entry under the block of a name, if that is there. */
void cr_link(struct cr_store *s, u32 id, u32 up)
{
	u32 parent = up == CR_NAMES ? KVT_NIL : s->by_name[up];

	if (parent != KVT_NIL && parent != id)
		kvt_ch_link(&s->table, id, parent);
}

/* The name that an entry is linked to; CR_NAMES: none. */
u32 cr_linked(const struct cr_store *s, u32 id)
{
	u32 parent = kvt_cold(&s->table, id)->parent;

	return parent == KVT_NIL ? CR_NAMES : s->block[parent].name;
}

/* Its record is to have no parent although it was put under one. */
bool cr_bare(const struct cr_store *s, u32 id)
{
	return cr_linked(s, id) == CR_NAMES &&
	       cr_parent_of(s->block[id].name, s->block[id].version) != CR_NAMES;
}

/* An end of the chains that go on from a block. */
u32 cr_leaf(const struct cr_store *s, u32 id)
{
	while (!kvt_ch_leaf(&s->table, id))
		id = kvt_cold(&s->table, id)->first_child;
	return id;
}

/* In the driver's order: all links first. Returns how many were cut. */
u32 cr_cut_cycles(struct cr_store *s)
{
	struct kvt_ch_cut cut;

	kvt_ch_cut_start(&cut);
	while (kvt_ch_cut_step(&s->table, &cut, 4096))
		;
	return cut.nr;
}

/* Is @above somewhere above an entry, or that entry itself. */
bool cr_is_above(const struct cr_store *s, u32 above, u32 id)
{
	u32 steps;

	for (steps = 0; id != KVT_NIL && id != above; steps++) {
		if (steps == CR_BLOCKS)
			cr_fail("name %u: its chain has no beginning", s->block[id].name);
		id = kvt_cold(&s->table, id)->parent;
	}
	return id == above;
}

/* Links are those that were asked for, both ways, and lead to a beginning. */
void cr_check_links(const struct cr_store *s)
{
	u32 id, child, up, down = 0, nr = 0;

	for (id = 1; id < CR_BLOCKS; id++) {
		const struct cr_block *b = &s->block[id];

		up = kvt_cold(&s->table, id)->parent;
		nr += up != KVT_NIL;
		/* What is dead has left its parent, and stays as long as it has children. */
		CR_ASSERT(up == KVT_NIL || b->state == CR_READY);
		CR_ASSERT(b->state != CR_FREE || kvt_ch_leaf(&s->table, id));
		if (up != KVT_NIL)
			CR_ASSERT(cr_linked(s, id) == cr_parent_of(b->name, b->version) &&
				  s->block[up].ns == b->ns && !cr_is_above(s, id, up));
		for (child = kvt_cold(&s->table, id)->first_child; child != KVT_NIL;
		     child = kvt_cold(&s->table, child)->sib_next) {
			CR_ASSERT(kvt_cold(&s->table, child)->parent == id);
			CR_ASSERT(++down < CR_BLOCKS);
		}
	}
	CR_ASSERT(down == nr);
}
