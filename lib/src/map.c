// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The mappings of one open file.
 *
 * A view is cut in chunks. A chunk is mapped when the first slot that starts in
 * it is asked for, together with what follows it up to the largest slot, so that
 * a slot across a border lies in one piece too. Mappings are found in a hash of
 * lists that are only pushed to: readers take no lock. When the window grows (a
 * tier was attached), its last chunk is mapped once more, longer; the shorter
 * mapping stays, for there are pointers into it.
 *
 * Addresses equal file offsets modulo 2 MiB, so that the kernel can use 2 MiB
 * page table entries.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "internal.h"

/* A window of many TiB is mapped by offsets, and addressed. */
_Static_assert(sizeof(off_t) == 8 && sizeof(size_t) == 8, "64 bits");

void kvti_views_init(struct kvti_views *views, int fd, uint64_t fill_offset)
{
	memset(views, 0, sizeof(*views));
	views->fd = fd;
	views->read.name = "read";
	views->read.prot = PROT_READ;
	views->fill.name = "fill";
	views->fill.prot = PROT_READ | PROT_WRITE;
	views->fill.base = fill_offset;
	pthread_mutex_init(&views->lock, NULL);
}

static void unmap_view(struct kvti_view *view)
{
	struct kvti_map *map, *next;
	size_t i;

	for (i = 0; i < KVTI_MAP_BUCKETS; i++) {
		for (map = atomic_load(&view->buckets[i]); map; map = next) {
			next = map->next;
			kvti_sys.munmap(map->addr, map->bytes);
			free(map);
		}
	}
}

void kvti_views_fini(struct kvti_views *views)
{
	uint32_t i, nr = atomic_load(&views->nr_arenas);

	for (i = 0; i < nr; i++) {
		kvti_sys.munmap(views->arenas[i]->map.addr,
				views->arenas[i]->map.bytes);
		free(views->arenas[i]);
	}
	unmap_view(&views->read);
	unmap_view(&views->fill);
	pthread_mutex_destroy(&views->lock);
}

/* Reserves address space with room to align in, then puts the file there. */
static int map_aligned(int fd, int prot, uint64_t offset, uint64_t bytes,
		       char **out)
{
	uint64_t skip, space = bytes + KVTI_HUGE_BYTES;
	char *addr, *at;

	addr = kvti_sys.mmap(NULL, space, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			     0);
	if (addr == MAP_FAILED)
		return -errno;
	skip = (offset - kvti_addr(addr)) % KVTI_HUGE_BYTES;
	at = kvti_sys.mmap(addr + skip, bytes, prot,
			   MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd,
			   (off_t)offset);
	if (at == MAP_FAILED) {
		int err = errno;

		kvti_sys.munmap(addr, space);
		return -err;
	}
	if (skip)
		kvti_sys.munmap(addr, skip);
	kvti_sys.munmap(at + bytes, space - skip - bytes);
	*out = at;
	return 0;
}

int kvti_map_range(struct kvti_views *views, const struct kvti_view *view,
		   uint64_t offset, uint64_t bytes, struct kvti_map *map,
		   struct kvti_said *said)
{
	int ret = map_aligned(views->fd, view->prot, offset, bytes, &map->addr);

	if (ret) {
		kvti_say(said, &views->log, KVTIER_LOG_ERROR,
			 "%s view: cannot map %#llx bytes at %#llx: error %d",
			 view->name, (unsigned long long)bytes,
			 (unsigned long long)offset, -ret);
		return ret;
	}
	map->start = offset;
	map->bytes = bytes;
	kvti_say(said, &views->log, KVTIER_LOG_DEBUG,
		 "%s view: %#llx bytes at %#llx mapped to %p", view->name,
		 (unsigned long long)bytes, (unsigned long long)offset,
		 (void *)map->addr);
	return 0;
}

static kvti_bucket *bucket_of(const struct kvti_views *views,
			      struct kvti_view *view, uint64_t offset)
{
	uint64_t chunk = (offset - view->base) / views->chunk_bytes;

	/* Tiers may lie far apart at round offsets: mix the upper bits in. */
	chunk ^= chunk >> 6 ^ chunk >> 12;
	return &view->buckets[chunk % KVTI_MAP_BUCKETS];
}

static bool covers(const struct kvti_map *map, uint64_t offset)
{
	return offset >= map->start && offset < map->reach;
}

static const struct kvti_map *find(kvti_bucket *bucket, uint64_t offset)
{
	const struct kvti_map *map;

	map = atomic_load_explicit(bucket, memory_order_acquire);
	while (map && !covers(map, offset))
		map = map->next;
	return map;
}

/* The kernel's word on how long the views are, asked again if @offset is past
 * what is known: tiers may have been attached.
 */
static int window_around(struct kvti_views *views, uint64_t rel,
			 uint64_t *window, struct kvti_said *said)
{
	struct kvtier_query q = KVTIER_QUERY_INIT;
	int ret;

	*window = atomic_load(&views->window_bytes);
	if (rel < *window)
		return 0;
	ret = kvti_query(views->fd, &q);
	if (ret)
		return ret;
	atomic_store(&views->window_bytes, q.window_bytes);
	*window = q.window_bytes;
	if (rel < *window)
		return 0;
	kvti_say(said, &views->log, KVTIER_LOG_ERROR,
		 "slot at %#llx lies outside the window of %#llx bytes",
		 (unsigned long long)rel, (unsigned long long)*window);
	return -EPROTO;
}

static int map_chunk(struct kvti_views *views, struct kvti_view *view,
		     uint64_t offset, struct kvti_map **out,
		     struct kvti_said *said)
{
	uint64_t window, start, bytes, more, rel = offset - view->base;
	struct kvti_map *map;
	int ret;

	ret = window_around(views, rel, &window, said);
	if (ret)
		return ret;
	map = calloc(1, sizeof(*map));
	if (!map)
		return -ENOMEM;
	start = rel - rel % views->chunk_bytes;
	bytes = views->chunk_bytes;
	if (bytes > window - start)
		bytes = kvti_align_up(window - start, KVTIER_SLOT_ALIGN);
	/*
	 * Slots that begin there are whole there. Also at the end of the window, which is no
	 * border if a larger tier takes the place of the last one.
	 */
	more = kvti_align_up(views->slot_bytes_max, KVTI_HUGE_BYTES);
	if (more > KVTI_VIEW_BYTES - start - bytes)
		more = KVTI_VIEW_BYTES - start - bytes;
	ret = kvti_map_range(views, view, view->base + start, bytes + more, map, said);
	if (ret) {
		free(map);
		return ret;
	}
	map->reach = map->start + bytes;
	*out = map;
	return 0;
}

static int find_or_map(struct kvti_views *views, struct kvti_view *view,
		       uint64_t offset, const struct kvti_map **out)
{
	kvti_bucket *bucket = bucket_of(views, view, offset);
	struct kvti_said said = { .level = 0 };
	struct kvti_map *map;
	int ret = 0;

	*out = find(bucket, offset);
	if (*out)
		return 0;
	pthread_mutex_lock(&views->lock);
	*out = find(bucket, offset);
	if (!*out)
		ret = map_chunk(views, view, offset, &map, &said);
	if (!*out && !ret) {
		map->next = atomic_load_explicit(bucket, memory_order_relaxed);
		atomic_store_explicit(bucket, map, memory_order_release);
		*out = map;
	}
	pthread_mutex_unlock(&views->lock);
	kvti_tell(&views->log, &said);
	return ret;
}

/* A slot of an arena must be seen at the arena's own address: that is the one
 * the caller has registered.
 */
static const struct kvti_map *find_arena(struct kvti_views *views,
					 uint64_t offset)
{
	uint32_t i, nr = atomic_load_explicit(&views->nr_arenas,
					      memory_order_acquire);

	for (i = 0; i < nr; i++)
		if (covers(&views->arenas[i]->map, offset))
			return &views->arenas[i]->map;
	return NULL;
}

int kvti_view_ptr(struct kvti_views *views, struct kvti_view *view,
		  uint64_t offset, const struct kvti_map **hint, void **ptr)
{
	const struct kvti_map *map = *hint;
	int ret;

	if (!map || !covers(map, offset)) {
		map = view == &views->fill ? find_arena(views, offset) : NULL;
		if (!map) {
			ret = offset < view->base ? -EPROTO :
			      find_or_map(views, view, offset, &map);
			if (ret)
				return ret;
		}
		*hint = map;
	}
	*ptr = map->addr + (offset - map->start);
	return 0;
}
