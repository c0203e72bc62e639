// SPDX-License-Identifier: GPL-2.0
/*
 * The ids of one request while it is parsed.
 *
 * An id that came twice in a request would be its own ancestor; published
 * traces contain such repeats, so they are left out and counted rather than
 * refused. The set that finds them is emptied by walking the list, which keeps
 * a reset proportional to the request and not to the largest one seen.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"
#include "trace_ids.h"

#define ROOM_FIRST	256

static size_t slot_of(const struct trace_ids *l, uint64_t id)
{
	size_t at = trace_mix64(id) & (l->seen_room - 1);

	while (l->seen[at] && l->seen[at] != id + 1)
		at = (at + 1) & (l->seen_room - 1);
	return at;
}

void trace_ids_reset(struct trace_ids *l)
{
	if (l->nr > l->seen_room / 8) {
		memset(l->seen, 0, l->seen_room * sizeof(*l->seen));
	} else {
		/* Backwards, so that no probe run is cut before it is walked. */
		for (size_t i = l->nr; i-- > 0;)
			l->seen[slot_of(l, l->ids[i])] = 0;
	}
	l->nr = 0;
	l->offered = 0;
}

static int grow(struct trace_ids *l)
{
	size_t room = l->room ? l->room * 2 : ROOM_FIRST;
	uint64_t *ids, *seen;

	ids = realloc(l->ids, room * sizeof(*ids));
	if (!ids)
		return -ENOMEM;
	l->ids = ids;
	seen = calloc(room * 2, sizeof(*seen));
	if (!seen)
		return -ENOMEM;
	free(l->seen);
	l->seen = seen;
	l->seen_room = room * 2;
	l->room = room;
	for (size_t i = 0; i < l->nr; i++)
		seen[slot_of(l, ids[i])] = ids[i] + 1;
	return 0;
}

int trace_ids_add(struct trace_ids *l, uint64_t first, uint64_t last)
{
	if (last < first || last >= TRACE_ID_LIMIT)
		return -ERANGE;
	if (last - first >= TRACE_IDS_MAX)
		return -E2BIG;
	/* Repeats take no memory, but a line of them could take for ever. */
	l->offered += last - first + 1;
	if (l->offered > 2 * TRACE_IDS_MAX)
		return -E2BIG;
	for (uint64_t id = first; id <= last; id++) {
		size_t at;

		if (l->nr == l->room) {
			int err = grow(l);

			if (err)
				return err;
		}
		at = slot_of(l, id);
		if (l->seen[at]) {
			l->repeats++;
			continue;
		}
		if (l->nr == TRACE_IDS_MAX)
			return -E2BIG;
		l->seen[at] = id + 1;
		l->ids[l->nr++] = id;
	}
	return 0;
}

void trace_ids_free(struct trace_ids *l)
{
	free(l->ids);
	free(l->seen);
	memset(l, 0, sizeof(*l));
}
