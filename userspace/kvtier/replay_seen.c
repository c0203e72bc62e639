// SPDX-License-Identifier: GPL-2.0
/*
 * Which process used which block; the model is in replay_seen.h.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "replay_seen.h"
#include "trace.h"

#define ROOM_FIRST	4096

struct entry {
	uint64_t id_plus_1;	/* 0: free */
	uint64_t procs;
};

struct replay_seen {
	struct entry *table;	/* shared with children */
	uint64_t room, nr;	/* room is a power of two, at most half in use */
};

static struct entry *map_table(uint64_t room)
{
	void *table = mmap(NULL, room * sizeof(struct entry), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return table == MAP_FAILED ? NULL : table;
}

struct replay_seen *replay_seen_new(void)
{
	struct replay_seen *s = malloc(sizeof(*s));

	if (!s)
		return NULL;
	s->nr = 0;
	s->room = ROOM_FIRST;
	s->table = map_table(s->room);
	if (!s->table) {
		free(s);
		return NULL;
	}
	return s;
}

void replay_seen_free(struct replay_seen *s)
{
	if (!s)
		return;
	munmap(s->table, s->room * sizeof(*s->table));
	free(s);
}

static struct entry *find(struct entry *table, uint64_t room, uint64_t id)
{
	uint64_t at = trace_mix64(id);

	while (true) {
		struct entry *e = &table[at & (room - 1)];

		if (!e->id_plus_1 || e->id_plus_1 == id + 1)
			return e;
		at++;
	}
}

static int grow(struct replay_seen *s)
{
	uint64_t room = s->room * 2;
	struct entry *table = map_table(room);

	if (!table)
		return -ENOMEM;
	for (uint64_t i = 0; i < s->room; i++) {
		const struct entry *e = &s->table[i];

		if (e->id_plus_1)
			*find(table, room, e->id_plus_1 - 1) = *e;
	}
	munmap(s->table, s->room * sizeof(*s->table));
	s->table = table;
	s->room = room;
	return 0;
}

int replay_seen_add(struct replay_seen *s, uint64_t id)
{
	struct entry *e = find(s->table, s->room, id);
	int err;

	if (e->id_plus_1)
		return 0;
	if (s->nr == REPLAY_DISTINCT_MAX)
		return -E2BIG;
	if (s->nr >= s->room / 2) {
		err = grow(s);
		if (err)
			return err;
		e = find(s->table, s->room, id);
	}
	e->id_plus_1 = id + 1;
	s->nr++;
	return 1;
}

uint64_t replay_seen_nr(const struct replay_seen *s)
{
	return s->nr;
}

void replay_seen_mark(struct replay_seen *s, uint64_t id, unsigned int proc)
{
	struct entry *e = find(s->table, s->room, id);
	uint64_t bit = 1ULL << proc;

	if (e->id_plus_1 && !(__atomic_load_n(&e->procs, __ATOMIC_RELAXED) & bit))
		__atomic_or_fetch(&e->procs, bit, __ATOMIC_RELAXED);
}

void replay_seen_count(const struct replay_seen *s, uint64_t *shared,
		       uint64_t *private)
{
	*shared = 0;
	*private = 0;
	for (uint64_t i = 0; i < s->room; i++) {
		uint64_t procs = s->table[i].procs;

		*shared += procs != 0;
		*private += (uint64_t)__builtin_popcountll(procs);
	}
}
