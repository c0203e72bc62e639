/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * State of the stand-in kernel: plain arrays in a shared file, slots behind it.
 */
#ifndef KVTIER_MOCK_STATE_H
#define KVTIER_MOCK_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <kvtier/libkvtier.h>
#include "mock.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define MOCK_POOLS	8
#define MOCK_FILES	1024
#define MOCK_NAMESPACES	32
#define MOCK_BLOCKS	8192
#define MOCK_HANDLES	16384
#define MOCK_DATA	(16ULL << 20)	/* where the window starts in the file */

struct mock_tier {
	uint32_t used;
	struct kvtier_tier_info info;
};

struct mock_pool {
	uint32_t used;
	struct mock_tier tiers[KVTIER_TIERS_MAX];
};

struct mock_ns {
	uint32_t used;
	uint32_t pool;
	uint32_t identity_len;
	uint8_t identity[KVTIER_IDENTITY_MAX];
	uint32_t has_secret;
	uint8_t secret[KVTIER_SECRET_BYTES];
	uint32_t nr_groups;
	struct kvtier_group groups[KVTIER_GROUPS_MAX];
	uint32_t mode;
	uint64_t quota_bytes;
	uint64_t min_bytes;
	struct kvtier_stat stat;
};

/* @state: 0 free, or KVTIER_ST_FILLING, KVTIER_ST_HIT */
struct mock_block {
	int32_t state;
	int32_t ns;
	uint32_t group;
	uint32_t leases;
	struct kvtier_key key;
	struct kvtier_key parent;
	uint64_t offset;
};

/*
 * A lease or reservation of the open file @fd of @pid; @fd 0: free. The handle is its index
 * plus one.
 */
struct mock_handle {
	int32_t fd;
	int32_t pid;
	uint32_t block;
	bool filling;
};

struct mock_state {
	struct mock_pool pools[MOCK_POOLS];
	struct mock_ns ns[MOCK_NAMESPACES];
	struct mock_block blocks[MOCK_BLOCKS];
	struct mock_handle handles[MOCK_HANDLES];
	uint64_t next_offset;
};

_Static_assert(sizeof(struct mock_state) <= MOCK_DATA, "state overlaps slots");

/* @pid: who opened it; a child may have inherited it */
struct mock_file {
	bool open;
	int32_t pid;
	bool ctl;
	uint32_t pool;
	int ns;
	size_t nr_done;
	struct kvtier_completion done[64];
	uint64_t arena_next;
	uint64_t arena_end;
	uint32_t arena_group;
};

struct mock_op {
	unsigned int nr;
	size_t size;
	bool bound;
	int (*run)(struct mock_file *file, void *arg);
};

extern struct mock_state *mock_state;

struct mock_file *mock_file(int fd);
const struct mock_op *mock_data_op(unsigned int nr);
void mock_data_close(const struct mock_file *file);

#endif /* KVTIER_MOCK_STATE_H */
