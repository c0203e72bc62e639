/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libkvtier internals. Prefix kvti_: not exported.
 *
 * Locks: kvti_views.lock serialises making mappings and publishing them;
 * finding one takes no lock. Nothing else is shared but atomics. The log function
 * may call the library, so it is never called with the lock held: what is to be
 * told then is kept in a struct kvti_said.
 */
#ifndef KVTI_INTERNAL_H
#define KVTI_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <poll.h>
#include <sys/types.h>
#include <kvtier/libkvtier.h>

#define KVTI_EXPORT	__attribute__((visibility("default")))

#define KVTI_HUGE_BYTES		(2ULL << 20)
#define KVTI_CHUNK_BYTES	(16ULL << 30)
#define KVTI_VIEW_BYTES		(1ULL << 44)	/* that can be mapped, whatever is there */
#define KVTI_MAP_BUCKETS	64

static inline uint64_t kvti_addr(const void *ptr)
{
	return (uintptr_t)ptr;
}

static inline uint64_t kvti_align_up(uint64_t value, uint64_t align)
{
	return (value + align - 1) / align * align;
}

/* All ways out of the library, so that tests can stand in for the kernel.
 * Results as of the system calls: -1 and errno.
 */
struct kvti_sys {
	int (*open)(const char *path, int flags);
	int (*close)(int fd);
	int (*ioctl)(int fd, unsigned long request, void *arg);
	void *(*mmap)(void *addr, size_t bytes, int prot, int flags, int fd,
		      off_t offset);
	int (*munmap)(void *addr, size_t bytes);
	ssize_t (*read)(int fd, void *buf, size_t bytes);
	int (*poll)(struct pollfd *fds, nfds_t nr, int timeout_ms);
};

extern struct kvti_sys kvti_sys;

struct kvti_log {
	kvtier_log_fn fn;
	void *data;
};

void kvti_logf(const struct kvti_log *log, int level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The last thing that was to be logged; @level 0: nothing. */
struct kvti_said {
	int level;
	char text[256];
};

void kvti_say(struct kvti_said *said, const struct kvti_log *log, int level,
	      const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void kvti_tell(const struct kvti_log *log, const struct kvti_said *said);

/* -errno forms of the system calls. */
int kvti_open(const char *path, int flags);
int kvti_ioctl(int fd, unsigned int op, void *arg);

/**
 * kvti_copy_params - take over a caller's struct that starts with its size
 *
 * Bytes the caller does not have read as zero. -EINVAL: shorter than
 * @min_bytes; -E2BIG: longer than ours with a tail that is not zero.
 */
int kvti_copy_params(void *dst, size_t dst_bytes, const void *src,
		     size_t src_bytes, size_t min_bytes);

/* One mapped piece. @reach: starts of slots up to here lie wholly inside. */
struct kvti_map {
	struct kvti_map *next;
	uint64_t start;
	uint64_t reach;
	uint64_t bytes;
	char *addr;
};

/* Head of a list that is only pushed to. */
typedef struct kvti_map *_Atomic kvti_bucket;

struct kvti_view {
	const char *name;
	int prot;
	uint64_t base;
	kvti_bucket buckets[KVTI_MAP_BUCKETS];
};

struct kvtier_arena_view {
	struct kvti_map map;
	uint64_t slot_bytes;
	uint32_t nr_slots;
	uint32_t group;
};

/* The mappings of one file. Pieces are only ever added: pointers into them stay
 * good until kvti_views_fini().
 */
struct kvti_views {
	int fd;
	struct kvti_log log;
	uint64_t chunk_bytes;
	uint64_t slot_bytes_max;
	atomic_ullong window_bytes;
	pthread_mutex_t lock;
	struct kvti_view read;
	struct kvti_view fill;
	atomic_uint nr_arenas;
	struct kvtier_arena_view *arenas[KVTIER_GROUPS_MAX];
};

void kvti_views_init(struct kvti_views *views, int fd, uint64_t fill_offset);
void kvti_views_fini(struct kvti_views *views);

/* Finds or makes the mapping around @offset; 0 or -errno. @hint: the map of the
 * last call or NULL, spares the search.
 */
int kvti_view_ptr(struct kvti_views *views, struct kvti_view *view,
		  uint64_t offset, const struct kvti_map **hint, void **ptr);

/* Maps [@offset, @offset + @bytes) of a view in one piece. */
int kvti_map_range(struct kvti_views *views, const struct kvti_view *view,
		   uint64_t offset, uint64_t bytes, struct kvti_map *map,
		   struct kvti_said *said);

struct kvtier_pool {
	atomic_uint refs;
	int fd;
	uint64_t chunk_bytes;
	struct kvti_log log;
	char *path;
};

struct kvtier_ns {
	atomic_uint refs;
	int fd;
	uint64_t id;
	struct kvti_views views;
};

/* The caller's options, or the defaults. */
int kvti_get_opts(const struct kvtier_opts *opts, struct kvtier_opts *out);

int kvti_query(int fd, struct kvtier_query *q);

#endif /* KVTI_INTERNAL_H */
