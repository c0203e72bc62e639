/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Regions and slots of one memory tier.
 *
 * The tier is a row of 2 MiB *pieces*. A *region* is a run of pieces that belongs
 * to one (namespace, group) and is cut into equal *slots*, multiples of 4 KiB.
 * A region is named by its first piece. Addresses are page numbers (4 KiB units)
 * within the tier, so block = page number = place in the mmap window.
 *
 *   DIRTY       made for its owner, but holds bytes of others: being scrubbed
 *   ACTIVE      hands out slots to its owner
 *   DRAINING    hands out none; becomes CLEANING when its last slot is free
 *   CLEANING    being taken from its owner: mappings, foreign references, bytes
 *   QUARANTINED as CLEANING, but somebody still holds references to its pages
 *
 * CLEANING and QUARANTINED regions are the business of the caller, who ends both
 * with kvt_mem_region_free(). The namespace of a region outlives it, so nobody can
 * mistake its bytes for his own.
 *
 * The *map* (kvt_piece.h) has a word for each piece: the number of its region, or whose
 * bytes it may hold while it is free. All else is in the region's record, which
 * is made and freed with the region. The *directory* leads from numbers to records.
 *
 * Regions with free slots form one ring-less list per owner, whose head the
 * owner keeps (&struct kvt_owner).
 *
 * Bad pages (kvt_mem_poison()) are never handed out again. A free slot that has one is
 * *retired*: neither used nor free. A used slot is marked, and retired when it is
 * given back. Its region goes on with its other slots. When a region with bad pages
 * is given back, the pieces that hold them stay out of use for good.
 *
 * A free piece can be *absent* for a while: kvt_mem_pieces_leave() says that there is no
 * memory behind it until kvt_mem_piece_come().
 *
 * Lock: the pool's meta lock for everything.
 *
 * Lifetime of a record: from kvt_mem_region_alloc() to kvt_mem_region_free(), after
 * which its memory goes any time. A pointer to it holds
 *   - while the meta lock is held without a break;
 *   - for whoever has a block in one of its slots: a used slot keeps its region;
 *   - for whoever made it DIRTY or CLEANING, up to kvt_mem_region_open() or
 *     kvt_mem_region_free(), and for the worker while it is QUARANTINED.
 * Everybody else comes back with the piece's number and looks again: by then it may
 * be in another region or none.
 */
#ifndef KVT_MEM_H
#define KVT_MEM_H

#include "kvt_block.h"
#include "kvt_piece.h"

#define KVT_PAGE_SHIFT		12
#define KVT_PIECE_SHIFT		21
#define KVT_PIECE_BYTES		(1u << KVT_PIECE_SHIFT)
#define KVT_PIECE_PAGES		(1u << (KVT_PIECE_SHIFT - KVT_PAGE_SHIFT))
#define KVT_NO_REGION		(~0u)
#define KVT_NO_PAGE		(~0u)
#define KVT_SLOT_FREE		(1u << 31)	/* slot entry: low bits are the next free */
#define KVT_SLOT_POISON		(1u << 30)	/* used: is to be retired; low bits: block */
#define KVT_SLOT_END		0x7fffffffu
#define KVT_SLOT_RETIRED	(KVT_SLOT_FREE | 0x7ffffffeu)	/* on no list */
#define KVT_REGION_PIECES_MAX	128u		/* 256 MiB */
#define KVT_WASTE_PERCENT	3u

#define KVT_REGION_SLOTS	16u		/* a region is not enlarged beyond these */
#define KVT_DIR_SHIFT		6
#define KVT_DIR_ENTRIES		(1u << KVT_DIR_SHIFT)

/* What kvt_mem_word() says besides what is in the map. */
#define KVT_PIECE_POISON	(1u << 30)			/* used: some page is bad */
#define KVT_PIECE_RETIRED	(KVT_PIECE_UNKNOWN - 1)		/* not free: some page is bad */
#define KVT_PIECE_ABSENT	(KVT_PIECE_UNKNOWN - 2)		/* not free: see above */

enum kvt_region_state {
	KVT_REGION_DIRTY = 0,
	KVT_REGION_ACTIVE,
	KVT_REGION_DRAINING,
	KVT_REGION_CLEANING,
	KVT_REGION_QUARANTINED,
};

/**
 * struct kvt_region - a run of pieces with one owner
 * @first:     its first piece
 * @ns_group:  kvt_ns_group() of the owner
 * @arena:     open file id whose arena this is, 0: none
 * @nr_pieces: length
 * @slot_pages: size of a slot
 * @nr_used:   slots with blocks; the others are free or retired
 * @free_head: first free slot or KVT_SLOT_END
 * @next:      first piece of the next in the owner's list of regions with free slots
 * @prev:      same
 * @seen:      while QUARANTINED, when it is on no list: so many pages, from its first on, are
 *             known to be referenced by nobody else. The worker's
 * @passed:    kvt_mem's @pass when it could not be emptied, see kvt_mem_sparse(); 0: never
 * @state:     enum kvt_region_state
 * @listed:    on that list
 * @retire:    its owner has lost it: once DRAINING it never hands out slots again
 * @fixed:     slots whose blocks nobody may move, see kvt_fix.h. No lock
 * @slot:      kvt_region_slots() of them: block id, perhaps with KVT_SLOT_POISON;
 *             KVT_SLOT_FREE | next free slot; or KVT_SLOT_RETIRED
 */
struct kvt_region {
	u32 first;
	u32 ns_group;
	u32 arena;
	u32 nr_pieces;
	u32 slot_pages;
	u32 nr_used;
	u32 free_head;
	u32 next;
	union {
		u32 prev;
		u32 seen;
	};
	u8 state;
	u8 passed;
	bool listed;
	bool retire;
	atomic_t fixed;
	u32 slot[];
};

/* An entry of the directory: the record, or the next free number. */
union kvt_dirent {
	struct kvt_region *region;
	u32 next_free;
};

/**
 * struct kvt_owner - one (namespace, group) on one memory tier
 * @partial:   first piece of the first region with free slots, KVT_NO_REGION: none
 * @nr_pieces: in all its regions
 */
struct kvt_owner {
	u32 partial;
	u32 nr_pieces;
};

/**
 * struct kvt_mem - a memory tier's space
 * @pieces:     the map
 * @dir:        directory: room for kvt_mem_dir_chunks() chunks of KVT_DIR_ENTRIES
 * @nr_pieces:  size
 * @nr_free:    pieces in no region, not retired and not absent
 * @nr_retired: pieces in no region and retired
 * @nr_absent:  absent pieces
 * @nr_chunks:  chunks of the directory there are
 * @free_nr:    first free number, or KVT_NO_REGION
 * @used_pages: pages in used slots
 * @retired_pages: pages in retired slots and pieces
 * @lent:       each region has pages of its own, which go with it: no piece is bad for good.
 *              The caller's
 * @pass:       see kvt_mem_sparse(); never 0. The caller's
 * @hint:       where to look for free pieces first
 * @hint_whole: where for runs of whole stretches, which leave shorter ones behind
 * @no_run:     there is no run of so many free pieces, nor of more
 * @no_whole:   nor one of whole stretches that long
 */
struct kvt_mem {
	struct kvt_pieces pieces;
	union kvt_dirent **dir;
	u32 nr_pieces;
	u32 nr_free;
	u32 nr_retired;
	u32 nr_absent;
	u32 nr_chunks;
	u32 free_nr;
	u64 used_pages;
	u64 retired_pages;
	bool lent;
	u8 pass;
	u32 hint;
	u32 hint_whole;
	u32 no_run;
	u32 no_whole;
};

/* Chunks that a tier's directory can come to have. */
static inline u32 kvt_mem_dir_chunks(u32 nr_pieces)
{
	return DIV_ROUND_UP(nr_pieces, KVT_DIR_ENTRIES);
}

/* DRAM for map and directory; regions' records are extra. */
static inline u64 kvt_mem_meta_bytes(const struct kvt_mem *m)
{
	return kvt_pieces_bytes(&m->pieces) +
	       kvt_mem_dir_chunks(m->nr_pieces) * sizeof(*m->dir) +
	       m->nr_chunks * KVT_DIR_ENTRIES * sizeof(**m->dir);
}

/* Slots of a region; also how many a run of so many pieces makes. */
static inline u32 kvt_run_slots(u32 nr_pieces, u32 slot_pages)
{
	return nr_pieces * KVT_PIECE_PAGES / slot_pages;
}

static inline u32 kvt_region_slots(const struct kvt_region *reg)
{
	return kvt_run_slots(reg->nr_pieces, reg->slot_pages);
}

/* Block that lives in a slot, or KVT_NIL. */
static inline u32 kvt_region_block(const struct kvt_region *reg, u32 slot)
{
	return reg->slot[slot] & KVT_SLOT_FREE ? KVT_NIL : reg->slot[slot] & ~KVT_SLOT_POISON;
}

/* Could a slot be handed out, if the state allows it. */
static inline bool kvt_region_has_room(const struct kvt_region *reg)
{
	return reg->free_head != KVT_SLOT_END;
}

/*
 * Pages of regions that no block is in, bad ones left out: free slots, and what is too short for
 * one.
 */
static inline u64 kvt_mem_holes(const struct kvt_mem *m)
{
	u64 out = (u64)(READ_ONCE(m->nr_free) + READ_ONCE(m->nr_absent)) * KVT_PIECE_PAGES +
		  READ_ONCE(m->retired_pages) + READ_ONCE(m->used_pages);
	u64 all = (u64)m->nr_pieces * KVT_PIECE_PAGES;

	/* They are not read at one time. */
	return all > out ? all - out : 0;
}

void kvt_mem_init(struct kvt_mem *m, u64 *map, union kvt_dirent **dir, u32 nr_pieces,
		  u32 content);
bool kvt_mem_dir_add(struct kvt_mem *m, union kvt_dirent *chunk);
u32 kvt_mem_geometry(u32 slot_pages, u32 pieces_max, u32 *nr_slots);
u32 kvt_mem_growth(const struct kvt_owner *o, u32 slot_pages, u32 pieces_max);
bool kvt_mem_region_alloc(struct kvt_mem *m, struct kvt_owner *o, struct kvt_region *reg,
			  u64 ns_id, u32 ns_group, u32 slot_pages, u32 nr_pieces);
void kvt_mem_region_open(struct kvt_mem *m, struct kvt_owner *o, struct kvt_region *reg);
void kvt_mem_region_arena(struct kvt_mem *m, struct kvt_owner *o, struct kvt_region *reg,
			  u32 arena);
void kvt_mem_region_drain(struct kvt_mem *m, struct kvt_owner *o, struct kvt_region *reg);
void kvt_mem_region_undrain(struct kvt_mem *m, struct kvt_owner *o, struct kvt_region *reg);
void kvt_mem_region_free(struct kvt_mem *m, struct kvt_owner *o, struct kvt_region *reg,
			 u64 ns_id, bool scrubbed);
const struct kvt_region *kvt_mem_sparse(const struct kvt_mem *m, const struct kvt_owner *o,
					u32 pieces, u32 *looks);
u32 kvt_mem_slot_alloc(struct kvt_mem *m, struct kvt_owner *o, u32 r, u32 id);
void kvt_mem_slot_free(struct kvt_mem *m, struct kvt_owner *o, u32 page);
void kvt_mem_slot_assign(struct kvt_mem *m, u32 page, u32 id);
void kvt_mem_slot_retire(struct kvt_mem *m, struct kvt_owner *o, u32 page);
u32 kvt_mem_poison(struct kvt_mem *m, struct kvt_owner *o, u32 page);
bool kvt_mem_slot_poisoned(const struct kvt_mem *m, u32 page);

u32 kvt_mem_pieces_leave(struct kvt_mem *m, u32 *piece, u32 max);
u32 kvt_mem_piece_absent(const struct kvt_mem *m);

/* Is there nothing behind a piece that is in no region. */
static inline bool kvt_mem_is_absent(const struct kvt_mem *m, u32 piece)
{
	return kvt_piece_absent(&m->pieces, piece);
}

void kvt_mem_piece_come(struct kvt_mem *m, u32 piece);

/* Is nothing in it: every piece is free, or of no use. */
static inline bool kvt_mem_empty(const struct kvt_mem *m)
{
	return m->nr_free + m->nr_retired + m->nr_absent == m->nr_pieces;
}

/* Is there no number for one more region: kvt_mem_dir_add() first. */
static inline bool kvt_mem_dir_full(const struct kvt_mem *m)
{
	return READ_ONCE(m->free_nr) == KVT_NO_REGION;
}

/* Can kvt_mem_region_alloc() not be called: kvt_mem_dir_add() or kvt_pieces_add() first. */
static inline bool kvt_mem_wants(const struct kvt_mem *m)
{
	return kvt_mem_dir_full(m) || kvt_pieces_low(&m->pieces);
}

static inline union kvt_dirent *kvt_mem_dirent(const struct kvt_mem *m, u32 nr)
{
	return &m->dir[nr >> KVT_DIR_SHIFT][nr & (KVT_DIR_ENTRIES - 1)];
}

/* The region that a piece is in, or NULL. */
static inline struct kvt_region *kvt_mem_region_at(const struct kvt_mem *m, u32 piece)
{
	u32 word;

	if (piece >= m->nr_pieces)
		return NULL;
	word = kvt_piece_word(&m->pieces, piece);
	return word & KVT_PIECE_USED ? kvt_mem_dirent(m, word & KVT_PIECE_NR)->region : NULL;
}

/* The region of this name: the one that begins at piece @r, or NULL. */
static inline struct kvt_region *kvt_mem_region(const struct kvt_mem *m, u32 r)
{
	struct kvt_region *reg = kvt_mem_region_at(m, r);

	return reg && reg->first == r ? reg : NULL;
}

/* The region that holds @page, or NULL. */
static inline struct kvt_region *kvt_mem_region_of(const struct kvt_mem *m, u32 page)
{
	return kvt_mem_region_at(m, page / KVT_PIECE_PAGES);
}

u32 kvt_mem_block_at(const struct kvt_mem *m, u32 page, u32 *slot_first_page);
u32 kvt_mem_word(const struct kvt_mem *m, u32 piece);

#endif /* KVT_MEM_H */
