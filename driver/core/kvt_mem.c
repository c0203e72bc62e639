// SPDX-License-Identifier: GPL-2.0
/*
 * Region and slot allocation; see kvt_mem.h for the model.
 *
 * Invariants: nr_free counts the pieces whose piece_region is KVT_NO_REGION; a
 * region is on its owner's list exactly when it is ACTIVE, not an arena, and has
 * a free slot; used_pages sums slot_pages over used slots.
 */
#include "kvt_mem.h"

/**
 * kvt_mem_init() - start with all pieces free
 * @m:            space
 * @regions:      zeroed, @nr_pieces entries; stays the caller's
 * @piece_region: @nr_pieces entries
 * @last_owner:   @nr_pieces entries
 * @nr_pieces:    size
 * @content:      what the bytes are: 0 clean, KVT_MEM_UNKNOWN to be scrubbed
 */
void kvt_mem_init(struct kvt_mem *m, struct kvt_region *regions, u32 *piece_region,
		  u64 *last_owner, u32 nr_pieces, u64 content)
{
	u32 i;

	memset(m, 0, sizeof(*m));
	m->regions = regions;
	m->piece_region = piece_region;
	m->last_owner = last_owner;
	m->nr_pieces = nr_pieces;
	m->nr_free = nr_pieces;
	for (i = 0; i < nr_pieces; i++) {
		piece_region[i] = KVT_NO_REGION;
		last_owner[i] = content;
	}
}

/**
 * kvt_mem_geometry() - how large a region for slots of this size
 * @slot_pages: pages in a slot, 1..65536
 * @pieces_max: longest run that makes sense (the tier's size, say)
 * @nr_slots:   out
 *
 * The shortest run whose tail waste is within KVT_WASTE_PERCENT. Without a limit
 * by @pieces_max there is one for every size: a run that is at least half of
 * KVT_REGION_PIECES_MAX long loses less than a piece. Else the one that wastes
 * least.
 * Return: pieces, or 0 when not even one slot fits into @pieces_max.
 */
u32 kvt_mem_geometry(u32 slot_pages, u32 pieces_max, u32 *nr_slots)
{
	u32 first = DIV_ROUND_UP(slot_pages, KVT_PIECE_PAGES), best = 0, best_tail = 0, p;
	u32 last = min(pieces_max, KVT_REGION_PIECES_MAX);

	for (p = first; p <= last; p++) {
		u32 pages = p * KVT_PIECE_PAGES, tail = pages % slot_pages;

		if (!best || (u64)tail * best < (u64)best_tail * p) {
			best = p;
			best_tail = tail;
		}
		if (tail * 100 <= pages * KVT_WASTE_PERCENT)
			break;
	}
	if (best)
		*nr_slots = best * KVT_PIECE_PAGES / slot_pages;
	return best;
}

static u32 kvt_mem_run(const struct kvt_mem *m, u32 from, u32 to, u32 want)
{
	u32 i, run = 0;

	for (i = from; i < to; i++) {
		run = m->piece_region[i] == KVT_NO_REGION ? run + 1 : 0;
		if (run == want)
			return i + 1 - want;
	}
	return KVT_NO_REGION;
}

static void kvt_mem_list_add(struct kvt_mem *m, struct kvt_owner *o, u32 r)
{
	struct kvt_region *reg = &m->regions[r];

	reg->prev = KVT_NO_REGION;
	reg->next = o->partial;
	if (o->partial != KVT_NO_REGION)
		m->regions[o->partial].prev = r;
	o->partial = r;
	reg->listed = true;
}

static void kvt_mem_list_del(struct kvt_mem *m, struct kvt_owner *o, u32 r)
{
	struct kvt_region *reg = &m->regions[r];

	if (reg->prev != KVT_NO_REGION)
		m->regions[reg->prev].next = reg->next;
	else
		o->partial = reg->next;
	if (reg->next != KVT_NO_REGION)
		m->regions[reg->next].prev = reg->prev;
	reg->listed = false;
}

static void kvt_mem_relist(struct kvt_mem *m, struct kvt_owner *o, u32 r)
{
	struct kvt_region *reg = &m->regions[r];
	bool want = reg->state == KVT_REGION_ACTIVE && !reg->arena &&
		    reg->nr_used < reg->nr_slots;

	if (want && !reg->listed)
		kvt_mem_list_add(m, o, r);
	else if (!want && reg->listed)
		kvt_mem_list_del(m, o, r);
}

/**
 * kvt_mem_region_alloc() - take free pieces for an owner
 * @m:          space; meta lock held
 * @o:          owner
 * @ns_id:      namespace id, never 0
 * @ns_group:   kvt_ns_group() of the owner
 * @slot_pages: slot size
 * @nr_pieces:  from kvt_mem_geometry()
 * @slots:      room for @nr_slots; the region's until kvt_mem_region_free()
 * @nr_slots:   from kvt_mem_geometry()
 * @dirty:      out: the pages may hold bytes of others. The region is CLEANING
 *              then, and hands out nothing before kvt_mem_region_open()
 * Return: the region, or KVT_NO_REGION when no such run is free.
 */
u32 kvt_mem_region_alloc(struct kvt_mem *m, struct kvt_owner *o, u64 ns_id, u32 ns_group,
			 u32 slot_pages, u32 nr_pieces, u32 *slots, u32 nr_slots,
			 bool *dirty)
{
	struct kvt_region *reg;
	u32 r, i;

	if (nr_pieces > m->nr_free)
		return KVT_NO_REGION;
	r = kvt_mem_run(m, min(m->hint, m->nr_pieces), m->nr_pieces, nr_pieces);
	if (r == KVT_NO_REGION)
		r = kvt_mem_run(m, 0, m->nr_pieces, nr_pieces);
	if (r == KVT_NO_REGION)
		return KVT_NO_REGION;
	m->hint = r + nr_pieces;
	m->nr_free -= nr_pieces;
	reg = &m->regions[r];
	memset(reg, 0, sizeof(*reg));
	reg->slot = slots;
	reg->owner_ns = ns_id;
	reg->ns_group = ns_group;
	reg->nr_pieces = nr_pieces;
	reg->slot_pages = slot_pages;
	reg->nr_slots = nr_slots;
	for (i = 0; i < nr_slots; i++)
		slots[i] = KVT_SLOT_FREE | (i + 1 < nr_slots ? i + 1 : KVT_SLOT_END);
	*dirty = false;
	for (i = r; i < r + nr_pieces; i++) {
		m->piece_region[i] = r;
		if (m->last_owner[i] != 0 && m->last_owner[i] != ns_id)
			*dirty = true;
	}
	reg->state = KVT_REGION_CLEANING;
	if (!*dirty)
		kvt_mem_region_open(m, o, r);
	return r;
}

/**
 * kvt_mem_region_open() - let a clean region hand out slots
 * @m: space; meta lock held
 * @o: owner
 * @r: region in state CLEANING whose bytes are its owner's or zero
 */
void kvt_mem_region_open(struct kvt_mem *m, struct kvt_owner *o, u32 r)
{
	struct kvt_region *reg = &m->regions[r];
	u32 i;

	for (i = r; i < r + reg->nr_pieces; i++)
		m->last_owner[i] = reg->owner_ns;
	reg->state = KVT_REGION_ACTIVE;
	kvt_mem_relist(m, o, r);
}

/**
 * kvt_mem_region_arena() - make a region an arena, or an ordinary region again
 * @m:     space; meta lock held
 * @o:     its owner
 * @r:     region with an owner
 * @arena: open file id; 0: none. From here on slots are only had by naming @r
 */
void kvt_mem_region_arena(struct kvt_mem *m, struct kvt_owner *o, u32 r, u32 arena)
{
	m->regions[r].arena = arena;
	kvt_mem_relist(m, o, r);
}

/**
 * kvt_mem_region_drain() - stop handing out a region's slots
 * @m: space; meta lock held
 * @o: its owner
 * @r: ACTIVE region
 */
void kvt_mem_region_drain(struct kvt_mem *m, struct kvt_owner *o, u32 r)
{
	m->regions[r].state = KVT_REGION_DRAINING;
	kvt_mem_relist(m, o, r);
}

/**
 * kvt_mem_region_undrain() - give up draining a region
 * @m: space; meta lock held
 * @o: its owner
 * @r: DRAINING region
 */
void kvt_mem_region_undrain(struct kvt_mem *m, struct kvt_owner *o, u32 r)
{
	m->regions[r].state = KVT_REGION_ACTIVE;
	kvt_mem_relist(m, o, r);
}

/**
 * kvt_mem_region_free() - give a region's pieces back
 * @m:        space; meta lock held
 * @r:        region in state CLEANING or QUARANTINED without used slots, of which
 *            no mapping and no foreign reference is left
 * @scrubbed: its bytes are zero
 * Return: the slot array, the caller's to free.
 */
u32 *kvt_mem_region_free(struct kvt_mem *m, u32 r, bool scrubbed)
{
	struct kvt_region *reg = &m->regions[r];
	u32 *slots = reg->slot, i;

	for (i = r; i < r + reg->nr_pieces; i++) {
		m->piece_region[i] = KVT_NO_REGION;
		if (scrubbed)
			m->last_owner[i] = 0;
	}
	m->nr_free += reg->nr_pieces;
	m->hint = min(m->hint, r);
	memset(reg, 0, sizeof(*reg));
	return slots;
}

/**
 * kvt_mem_slot_alloc() - take a slot
 * @m:  space; meta lock held
 * @o:  owner
 * @r:  region to take it from (an arena's), or KVT_NO_REGION for any of the
 *      owner's
 * @id: block that will live there
 * Return: its first page, or KVT_NO_PAGE when there is none.
 */
u32 kvt_mem_slot_alloc(struct kvt_mem *m, struct kvt_owner *o, u32 r, u32 id)
{
	struct kvt_region *reg;
	u32 slot;

	if (r == KVT_NO_REGION)
		r = o->partial;
	if (r == KVT_NO_REGION)
		return KVT_NO_PAGE;
	reg = &m->regions[r];
	if (reg->state != KVT_REGION_ACTIVE || reg->free_head == KVT_SLOT_END)
		return KVT_NO_PAGE;
	slot = reg->free_head;
	reg->free_head = reg->slot[slot] & ~KVT_SLOT_FREE;
	reg->slot[slot] = id;
	reg->nr_used++;
	m->used_pages += reg->slot_pages;
	kvt_mem_relist(m, o, r);
	return r * KVT_PIECE_PAGES + slot * reg->slot_pages;
}

/**
 * kvt_mem_slot_free() - give a slot back
 * @m:    space; meta lock held
 * @o:    owner of its region
 * @page: as kvt_mem_slot_alloc() returned it
 */
void kvt_mem_slot_free(struct kvt_mem *m, struct kvt_owner *o, u32 page)
{
	u32 r = kvt_mem_region_of(m, page), slot;
	struct kvt_region *reg = &m->regions[r];

	slot = (page - r * KVT_PIECE_PAGES) / reg->slot_pages;
	reg->slot[slot] = KVT_SLOT_FREE | reg->free_head;
	reg->free_head = slot;
	reg->nr_used--;
	m->used_pages -= reg->slot_pages;
	kvt_mem_relist(m, o, r);
}

/**
 * kvt_mem_slot_assign() - a used slot is another block's now
 * @m:    space; meta lock held
 * @page: as kvt_mem_slot_alloc() returned it
 * @id:   block; KVT_NIL: used, but by none
 */
void kvt_mem_slot_assign(struct kvt_mem *m, u32 page, u32 id)
{
	u32 r = kvt_mem_region_of(m, page);
	struct kvt_region *reg = &m->regions[r];

	reg->slot[(page - r * KVT_PIECE_PAGES) / reg->slot_pages] = id;
}

/**
 * kvt_mem_block_at() - which block a page belongs to
 * @m:               space; meta lock held
 * @page:            any number
 * @slot_first_page: out: where its slot begins
 * Return: block id, or KVT_NIL for free space, tails and nonsense.
 */
u32 kvt_mem_block_at(const struct kvt_mem *m, u32 page, u32 *slot_first_page)
{
	u32 r = kvt_mem_region_of(m, page), slot;
	const struct kvt_region *reg;

	if (r == KVT_NO_REGION)
		return KVT_NIL;
	reg = &m->regions[r];
	slot = (page - r * KVT_PIECE_PAGES) / reg->slot_pages;
	if (slot >= reg->nr_slots || (reg->slot[slot] & KVT_SLOT_FREE))
		return KVT_NIL;
	*slot_first_page = r * KVT_PIECE_PAGES + slot * reg->slot_pages;
	return reg->slot[slot];
}
