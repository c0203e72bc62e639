// SPDX-License-Identifier: GPL-2.0
/*
 * Ids of blocks: an open-addressing table from (parent, label) to id. It only
 * ever grows; at most three quarters of it are in use.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "gen_prefixes.h"
#include "trace.h"

#define ROOM_FIRST	1024

struct entry {
	uint64_t parent, label;
	uint64_t id_plus_1;	/* 0: free */
};

struct gen_prefixes {
	struct entry *table;
	uint64_t room, used;	/* room is a power of two */
	uint64_t nr_ids;
};

struct gen_prefixes *gen_prefixes_new(void)
{
	struct gen_prefixes *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->room = ROOM_FIRST;
	p->table = calloc(p->room, sizeof(*p->table));
	if (!p->table) {
		free(p);
		return NULL;
	}
	return p;
}

void gen_prefixes_free(struct gen_prefixes *p)
{
	if (!p)
		return;
	free(p->table);
	free(p);
}

static struct entry *find(struct entry *table, uint64_t room, uint64_t parent,
			  uint64_t label)
{
	uint64_t at = trace_mix64(label ^ trace_mix64(parent));

	while (true) {
		struct entry *e = &table[at & (room - 1)];

		if (!e->id_plus_1 || (e->parent == parent && e->label == label))
			return e;
		at++;
	}
}

static int grow(struct gen_prefixes *p)
{
	uint64_t room = p->room * 2;
	struct entry *table = calloc(room, sizeof(*table));

	if (!table)
		return -ENOMEM;
	for (uint64_t i = 0; i < p->room; i++) {
		const struct entry *e = &p->table[i];

		if (e->id_plus_1)
			*find(table, room, e->parent, e->label) = *e;
	}
	free(p->table);
	p->table = table;
	p->room = room;
	return 0;
}

uint64_t gen_prefixes_new_id(struct gen_prefixes *p)
{
	return p->nr_ids++;
}

int gen_prefixes_get(struct gen_prefixes *p, uint64_t parent, uint64_t label,
		     uint64_t *id)
{
	struct entry *e;

	if (p->used >= p->room / 4 * 3) {
		int err = grow(p);

		if (err)
			return err;
	}
	e = find(p->table, p->room, parent, label);
	if (!e->id_plus_1) {
		e->parent = parent;
		e->label = label;
		e->id_plus_1 = gen_prefixes_new_id(p) + 1;
		p->used++;
	}
	*id = e->id_plus_1 - 1;
	return 0;
}

uint64_t gen_prefixes_nr_ids(const struct gen_prefixes *p)
{
	return p->nr_ids;
}
