/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ids of one request while it is parsed: in order, bounded, each once.
 */
#ifndef KVTIER_TRACE_IDS_H
#define KVTIER_TRACE_IDS_H

#include <stddef.h>
#include <stdint.h>

/* All zero is an empty list. */
struct trace_ids {
	uint64_t *ids;
	size_t nr, room;
	size_t offered;		/* with repeats, since the reset */
	uint64_t repeats;	/* left out, over the life of the list */
	uint64_t *seen;		/* open addressing, 0: free, else id + 1 */
	size_t seen_room;	/* power of two */
};

/* Forgets the ids, keeps the memory. */
void trace_ids_reset(struct trace_ids *list);

/**
 * trace_ids_add - appends first..last, leaving out what is there already
 *
 * Returns 0, -E2BIG (more than TRACE_IDS_MAX, or twice that with repeats), -ERANGE (backwards, or not below
 * TRACE_ID_LIMIT) or -ENOMEM.
 */
int trace_ids_add(struct trace_ids *list, uint64_t first, uint64_t last);

void trace_ids_free(struct trace_ids *list);

#endif
