/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the segments of all members are together: records become a pool's blocks.
 *
 * A record that no kill names becomes an entry of the table, READY and in the index, with its
 * copy on a block tier, while segments are still being read: kvt_mg_enter(). Of two with one
 * name the one with the higher sequence stays; the other must be killed, or would be found when
 * the first is dropped. When all has been read, in this order:
 *
 *   kvt_mg_fits()       blocks of namespaces or groups that are not there, or of other lengths
 *                       than theirs, are taken out (kvt_mg_forget()), and must be killed
 *   kvt_mg_clear()      of all that are left
 *   kvt_mg_link_some()  to the parent, if it is there: else it is the beginning of what is left
 *                       of its chain. Then cycles are cut: kvt_ch_cut_step()
 *   kvt_mg_sort_add()   all blocks, then kvt_mg_sorted() for each tier: in the order in which
 *                       they were written, for the tier's list
 *   kvt_mg_tally()      all blocks, twice: how many are in a segment, then which
 *   kvt_mg_restore()    for each segment
 *
 * Until they are checked, fields of an entry that have no use yet hold what is needed for
 * that; the functions here are all that knows:
 *
 *   cold->owner, touch_ms   sequence of the record, until kvt_mg_sorted()
 *   cold->sib_next          exact length, until kvt_mg_clear()
 *   cold->sib_prev          stored length, likewise
 *
 * Which of two definitions of a namespace counts is said here as well: kvt_mg_def_counts().
 *
 * Everything in a record is hostile; kvt_recover.h says what was checked. The pool is
 * nobody else's meanwhile, but several callers may enter at a time: the meta lock of the pool
 * is held by callers where that is said, and shard locks are taken here.
 */
#ifndef KVT_MERGE_H
#define KVT_MERGE_H

#include "kvt_chain.h"
#include "kvt_life.h"
#include "kvt_log.h"
#include "kvt_policy.h"

#define KVT_MG_BATCH	32u	/* names that are looked for together */
#define KVT_MG_LISTS	32u	/* of 2^i blocks; ids have fewer bits */

/* Where a record is: tier, KVT_NO_TIER: nowhere, and unit of that. */
struct kvt_mg_place {
	u32 tier;
	u32 unit;
};

/**
 * struct kvt_mg_block - a record to be entered
 * @rec:      record
 * @ns_group: its namespace's index in the pool, and its group
 * @hash:     kvt_ix_hash() of its name
 * @expire_s: on the pool's clock; 0: never
 * @at:       where it is
 */
struct kvt_mg_block {
	struct kvt_rec rec;
	u32 ns_group;
	u32 hash;
	u32 expire_s;
	struct kvt_mg_place at;
};

/* A block's parent, to be found when all blocks are there. */
struct kvt_mg_parent {
	u64 seq;	/* the entry still is that record's */
	u32 id;
	u8 key[KVT_KEY_BYTES];
};

/**
 * struct kvt_mg_sorter - a sort without any memory but the entries'
 * @list:  of ascending lengths, each 2^i blocks by ascending sequence, or none
 * @pause: called after every few thousand steps; whether it sleeps is the caller's affair
 *
 * Lists are merged as blocks come.
 */
struct kvt_mg_sorter {
	u32 list[KVT_TIERS][KVT_MG_LISTS];
	void (*pause)(void);
};

bool kvt_mg_def_counts(u64 seq, const struct kvt_nsdef *def);

u32 kvt_mg_find(struct kvt_index *ix, u32 hash, u32 ns_group, const u8 *key);
void kvt_mg_expect(struct kvt_index *ix, const struct kvt_mg_block *b, u32 nr);
u32 kvt_mg_enter(struct kvt_table *t, struct kvt_index *ix, const struct kvt_mg_block *b,
		 struct kvt_mg_place *lost);
bool kvt_mg_parent_of(const struct kvt_rec *rec, u32 id, struct kvt_mg_parent *pa);

bool kvt_mg_fits(const struct kvt_cold *c, u32 block_bytes, u32 slot_bytes);
void kvt_mg_forget(struct kvt_table *t, struct kvt_index *ix, u32 id);
void kvt_mg_clear(struct kvt_cold *c);
u32 kvt_mg_link_some(struct kvt_table *t, struct kvt_index *ix, const struct kvt_mg_parent *pa,
		     u32 nr);

void kvt_mg_sort_start(struct kvt_mg_sorter *s, void (*pause)(void));
void kvt_mg_sort_add(struct kvt_mg_sorter *s, struct kvt_table *t, u32 id);
u32 kvt_mg_sorted(struct kvt_mg_sorter *s, struct kvt_table *t, u32 tier, u32 now_ms);
u32 kvt_mg_take(struct kvt_table *t, u32 id, u32 now_ms);

void kvt_mg_tally(struct kvt_seg *s, u32 id, u32 units, bool ids);
void kvt_mg_restore(struct kvt_log *l, u32 seg, const struct kvt_life_seg *found,
		    struct kvt_seg *s);

/* Sequence of the record behind an entry. Until kvt_mg_sorted(). */
static inline u64 kvt_mg_seq(const struct kvt_cold *c)
{
	return (u64)c->touch_ms << 32 | c->owner;
}

/* May an entry be of that name: a key of zeroes is none. */
static inline bool kvt_mg_named(const struct kvt_rec *rec)
{
	static const u8 none[KVT_KEY_BYTES];

	return memcmp(rec->key, none, sizeof(none));
}

#endif /* KVT_MERGE_H */
