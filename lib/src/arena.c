// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Arenas: memory of one file that stays writable, mapped once and in one piece.
 */
#include <errno.h>
#include <stdlib.h>
#include "internal.h"

static int claim(struct kvti_views *views, struct kvtier_arena_view *arena,
		 uint32_t nr_slots, struct kvti_said *said)
{
	struct kvtier_arena cmd = {
		.size = sizeof(cmd),
		.group = arena->group,
		.nr_slots = nr_slots,
	};
	int ret;

	ret = kvti_ioctl(views->fd, KVTIER_OP_ARENA, &cmd);
	if (ret)
		return ret;
	ret = kvti_map_range(views, &views->fill, cmd.offset, cmd.bytes,
			     &arena->map, said);
	if (ret)
		return ret;
	arena->map.reach = cmd.offset + cmd.bytes;
	arena->slot_bytes = cmd.slot_bytes;
	arena->nr_slots = cmd.nr_slots;
	return 0;
}

KVTI_EXPORT int kvtier_arena_open(struct kvtier_ns *ns, uint32_t group,
				  uint32_t nr_slots,
				  struct kvtier_arena_view **out)
{
	struct kvti_views *views = &ns->views;
	struct kvti_said said = { .level = 0 };
	struct kvtier_arena_view *arena;
	uint32_t nr;
	int ret;

	arena = calloc(1, sizeof(*arena));
	if (!arena)
		return -ENOMEM;
	arena->group = group;
	pthread_mutex_lock(&views->lock);
	nr = atomic_load(&views->nr_arenas);
	ret = nr < KVTIER_GROUPS_MAX ? claim(views, arena, nr_slots, &said) :
				       -EBUSY;
	if (!ret) {
		/* Owned by the views from here on. */
		views->arenas[nr] = arena;
		atomic_store_explicit(&views->nr_arenas, nr + 1,
				      memory_order_release);
	}
	pthread_mutex_unlock(&views->lock);
	kvti_tell(&views->log, &said);
	if (ret) {
		free(arena);
		return ret;
	}
	*out = arena;
	return 0;
}

KVTI_EXPORT void *kvtier_arena_base(const struct kvtier_arena_view *arena)
{
	return arena->map.addr;
}

KVTI_EXPORT uint64_t kvtier_arena_bytes(const struct kvtier_arena_view *arena)
{
	return arena->map.bytes;
}

KVTI_EXPORT uint64_t
kvtier_arena_slot_bytes(const struct kvtier_arena_view *arena)
{
	return arena->slot_bytes;
}

KVTI_EXPORT uint32_t
kvtier_arena_nr_slots(const struct kvtier_arena_view *arena)
{
	return arena->nr_slots;
}
