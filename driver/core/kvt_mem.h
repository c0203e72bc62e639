/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Regions and slots of one memory tier.
 *
 * The tier is a row of 2 MiB *pieces*. A *region* is a run of pieces that belongs
 * to one (namespace, group) and is cut into equal *slots*, multiples of 4 KiB.
 * A region is named by its first piece. Addresses are page numbers (4 KiB units)
 * within the tier, so block = page number = place in the mmap window.
 *
 *   FREE        its pieces belong to nobody; the region does not exist
 *   ACTIVE      hands out slots to its owner
 *   DRAINING    hands out none; becomes CLEANING when its last slot is free
 *   CLEANING    being taken from its owner: mappings, foreign references, bytes
 *   QUARANTINED as CLEANING, but somebody still holds references to its pages
 *
 * CLEANING and QUARANTINED regions are the business of the caller, who ends both
 * with kvt_mem_region_free(). A region keeps its owner's id until then, so that
 * nobody can mistake its bytes for his own.
 *
 * Regions with free slots form one ring-less list per owner, whose head the
 * owner keeps (&struct kvt_owner).
 *
 * Lock: the pool's meta lock for everything. @owner_ns and @state may be read
 * under the map lock, which a change of owner takes for writing.
 */
#ifndef KVT_MEM_H
#define KVT_MEM_H

#include "kvt_block.h"

#define KVT_PAGE_SHIFT		12
#define KVT_PIECE_SHIFT		21
#define KVT_PIECE_BYTES		(1u << KVT_PIECE_SHIFT)
#define KVT_PIECE_PAGES		(1u << (KVT_PIECE_SHIFT - KVT_PAGE_SHIFT))
#define KVT_NO_REGION		(~0u)
#define KVT_NO_PAGE		(~0u)
#define KVT_SLOT_FREE		(1u << 31)	/* slot entry: low bits are the next free */
#define KVT_SLOT_END		0x7fffffffu
#define KVT_REGION_PIECES_MAX	128u		/* 256 MiB */
#define KVT_WASTE_PERCENT	3u

enum kvt_region_state {
	KVT_REGION_FREE = 0,
	KVT_REGION_ACTIVE,
	KVT_REGION_DRAINING,
	KVT_REGION_CLEANING,
	KVT_REGION_QUARANTINED,
};

/**
 * struct kvt_region - a run of pieces with one owner; indexed by first piece
 * @slot:      per slot: block id (KVT_NIL: used by none), or KVT_SLOT_FREE | next free
 *             slot
 * @owner_ns:  namespace id, 0: nobody
 * @ns_group:  kvt_ns_group() of the owner
 * @arena:     open file id whose arena this is, 0: none
 * @nr_pieces: length
 * @slot_pages: size of a slot
 * @nr_slots:  slots
 * @nr_used:   of these, not free
 * @free_head: first free slot or KVT_SLOT_END
 * @next:      in the owner's list of regions with free slots
 * @prev:      same
 * @state:     enum kvt_region_state
 * @listed:    on that list
 * @retire:    its owner has lost it: once DRAINING it never hands out slots again
 */
struct kvt_region {
	u32 *slot;
	u64 owner_ns;
	u32 ns_group;
	u32 arena;
	u32 nr_pieces;
	u32 slot_pages;
	u32 nr_slots;
	u32 nr_used;
	u32 free_head;
	u32 next;
	u32 prev;
	u8 state;
	bool listed;
	bool retire;
};

/**
 * struct kvt_owner - one (namespace, group) on one memory tier
 * @partial: first region with free slots, KVT_NO_REGION: none
 */
struct kvt_owner {
	u32 partial;
};

/**
 * struct kvt_mem - a memory tier's space
 * @regions:      @nr_pieces of them, those at a region's first piece are used
 * @piece_region: per piece: first piece of its region, or KVT_NO_REGION
 * @last_owner:   per piece: namespace whose bytes it may still hold; 0: it is clean,
 *                KVT_MEM_UNKNOWN: unknown
 * @nr_pieces:    size
 * @nr_free:      pieces in no region
 * @used_pages:   pages in used slots
 * @hint:         where to look for free pieces first
 */
struct kvt_mem {
	struct kvt_region *regions;
	u32 *piece_region;
	u64 *last_owner;
	u32 nr_pieces;
	u32 nr_free;
	u64 used_pages;
	u32 hint;
};

#define KVT_MEM_UNKNOWN		(~0ull)

void kvt_mem_init(struct kvt_mem *m, struct kvt_region *regions, u32 *piece_region,
		  u64 *last_owner, u32 nr_pieces, u64 content);
u32 kvt_mem_geometry(u32 slot_pages, u32 pieces_max, u32 *nr_slots);
u32 kvt_mem_region_alloc(struct kvt_mem *m, struct kvt_owner *o, u64 ns_id, u32 ns_group,
			 u32 slot_pages, u32 nr_pieces, u32 *slots, u32 nr_slots,
			 bool *dirty);
void kvt_mem_region_open(struct kvt_mem *m, struct kvt_owner *o, u32 r);
void kvt_mem_region_arena(struct kvt_mem *m, struct kvt_owner *o, u32 r, u32 arena);
void kvt_mem_region_drain(struct kvt_mem *m, struct kvt_owner *o, u32 r);
void kvt_mem_region_undrain(struct kvt_mem *m, struct kvt_owner *o, u32 r);
u32 *kvt_mem_region_free(struct kvt_mem *m, u32 r, bool scrubbed);
u32 kvt_mem_slot_alloc(struct kvt_mem *m, struct kvt_owner *o, u32 r, u32 id);
void kvt_mem_slot_free(struct kvt_mem *m, struct kvt_owner *o, u32 page);
void kvt_mem_slot_assign(struct kvt_mem *m, u32 page, u32 id);

/* First piece of the region that holds @page, or KVT_NO_REGION. */
static inline u32 kvt_mem_region_of(const struct kvt_mem *m, u32 page)
{
	u32 piece = page / KVT_PIECE_PAGES;

	return piece < m->nr_pieces ? m->piece_region[piece] : KVT_NO_REGION;
}

u32 kvt_mem_block_at(const struct kvt_mem *m, u32 page, u32 *slot_first_page);

#endif /* KVT_MEM_H */
