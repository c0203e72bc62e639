/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A small store made of the core's parts, the way the driver composes them.
 *
 * Single-threaded, with two memory tiers and one block tier, a few namespaces
 * with two groups each, and arrays for bytes: each page or unit holds one number,
 * the *tag* of the block whose bytes it is (0: zeroes). A tag's low byte is the
 * namespace. So a slot given twice, a copy from the wrong place or bytes of
 * another namespace show at once. Pages may go bad; what is bad is never given out.
 *
 * Moves have two halves, so that leases, drops and aborts come in between.
 */
#ifndef KVT_MINI_H
#define KVT_MINI_H

#include "kvt_env.h"
#include "kvt_block.h"
#include "kvt_chain.h"
#include "kvt_index.h"
#include "kvt_log.h"
#include "kvt_mem.h"
#include "kvt_policy.h"

#define MINI_NS		3u
#define MINI_GROUPS	2u
#define MINI_OWNERS	(MINI_NS * MINI_GROUPS)
#define MINI_MEMS	2u		/* tiers 0 and 1 */
#define MINI_LOG	2u		/* tier 2 */
#define MINI_TIERS	3u
#define MINI_PIECES_MAX	32u
#define MINI_SEGS	10u
#define MINI_SEG_UNITS	2048u
#define MINI_CHUNKS	2u
#define MINI_MOVES	8u

#define MINI_ASSERT(cond)						\
do {									\
	if (!(cond))							\
		kvt_env_die(__FILE__, __LINE__, "does not hold: " #cond); \
} while (0)

enum mini_status {
	MINI_MISS,
	MINI_HIT,
	MINI_PENDING,		/* not in memory */
	MINI_FILLING,
	MINI_RESERVED,
	MINI_EXISTS,
	MINI_DONE,
	MINI_NOSPACE,
	MINI_NOPARENT,
	MINI_CHILDREN,
	MINI_BUSY,
	MINI_LOST,		/* its memory went bad */
};

struct mini_name {
	u32 owner;		/* namespace * MINI_GROUPS + group */
	u32 key;
};

struct mini_tier {
	struct kvt_mem mem;
	u64 map[KVT_PIECES_WORDS(MINI_PIECES_MAX)];
	union kvt_dirent *dir[1];
	union kvt_dirent chunk[KVT_DIR_ENTRIES];
	u64 content[MINI_PIECES_MAX * KVT_PIECE_PAGES];
	bool bad[MINI_PIECES_MAX * KVT_PIECE_PAGES];
	u32 nr_bad;
	struct kvt_owner owner[MINI_OWNERS];
};

struct mini_move {
	bool on;
	u32 id;
	u32 src_tier;
	u32 src_addr;
	u32 dst_tier;
	u32 dst_addr;
};

/**
 * struct mini - the store
 * @tag:     what a block's bytes should be, by id; set at reserve
 * @foreign: by id: aborted with foreign references to its slot
 * @on_gone: a READY block was evicted; called before it becomes DEAD
 */
struct mini {
	struct kvt_table table;
	struct kvt_hot *hot[MINI_CHUNKS];
	struct kvt_cold *cold[MINI_CHUNKS];
	struct kvt_index index;
	struct kvt_policy policy;
	struct kvt_list filling;
	struct kvt_list limbo;
	struct mini_tier tier[MINI_MEMS];
	struct kvt_log log;
	struct kvt_seg segs[MINI_SEGS];
	u64 log_content[MINI_SEGS * MINI_SEG_UNITS];
	struct mini_move moves[MINI_MOVES];
	u64 tag[MINI_CHUNKS * KVT_CHUNK_BLOCKS];
	bool foreign[MINI_CHUNKS * KVT_CHUNK_BLOCKS];
	u64 next_tag;
	u64 nr_carried;
	void (*on_gone)(void *ctx, u32 id);
	void *ctx;
};

static inline u32 mini_ns_group(u32 owner)
{
	return kvt_ns_group(owner / MINI_GROUPS, owner % MINI_GROUPS);
}

static inline u32 mini_owner(const struct kvt_hot *h)
{
	return (h->ns_group >> 4) * MINI_GROUPS + (h->ns_group & 15);
}

static inline u32 mini_fastest(const struct kvt_hot *h)
{
	return kvt_ctl(h) & KVT_CTL_MEM ? h->mem_tier : MINI_LOG;
}

extern const u32 mini_slot_pages[MINI_OWNERS];
extern const u32 mini_pieces[MINI_MEMS];

/* mini.c: blocks */
struct mini *mini_new(u32 content);
void mini_free(struct mini *m);
void mini_key(const struct mini_name *n, u8 *key);
u32 mini_find(struct mini *m, const struct mini_name *n);
enum mini_status mini_get(struct mini *m, const struct mini_name *n, u32 *id);
void mini_put(struct mini *m, u32 id);
enum mini_status mini_reserve(struct mini *m, const struct mini_name *n,
			      const struct mini_name *parent, bool arena, u32 *id);
enum mini_status mini_commit(struct mini *m, u32 id);
void mini_abort(struct mini *m, u32 id, bool foreign);
enum mini_status mini_drop(struct mini *m, const struct mini_name *n);
void mini_pin(struct mini *m, u32 id, bool pin);
void mini_limbo_check(struct mini *m);
void mini_reap(struct mini *m, u32 id);
void mini_kill(struct mini *m, u32 id);

/* mini_space.c: regions, moves, the log */
u32 mini_slot_get(struct mini *m, u32 tier, u32 owner, bool arena, u32 id);
void mini_slot_put(struct mini *m, u32 tier, u32 page);
void mini_log_put(struct mini *m, u32 id);
void mini_log_copy(struct mini *m, u32 id, bool copy);
bool mini_demote_begin(struct mini *m, u32 from, u32 to);
bool mini_promote_begin(struct mini *m, u32 id, u32 to);
void mini_move_end(struct mini *m, u32 nr, bool failed, bool keep_log);
bool mini_evict(struct mini *m, u32 tier);
bool mini_region_drain(struct mini *m, u32 tier, u32 nth);
bool mini_region_undrain(struct mini *m, u32 tier, u32 nth);
bool mini_region_finish(struct mini *m, u32 tier, u32 nth, bool busy, bool scrub);
bool mini_arena_set(struct mini *m, u32 tier, u32 nth, bool on);
bool mini_log_clean(struct mini *m);
u32 mini_poison(struct mini *m, u32 tier, u32 page);

/* mini_check.c */
void mini_check(struct mini *m);

#endif /* KVT_MINI_H */
