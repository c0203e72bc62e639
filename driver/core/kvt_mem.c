// SPDX-License-Identifier: GPL-2.0
/*
 * Region and slot allocation; see kvt_mem.h for the model.
 *
 * Invariants: nr_free counts the pieces that are not KVT_PIECE_USED, not bad and not absent,
 * nr_retired and nr_absent these, of those that are not used; none is both; an entry of
 * the directory is a record exactly when the pieces of that region name it, else it is on
 * the list of free numbers; a region is on its owner's list
 * exactly when it is ACTIVE, not an arena, and has a free slot; used_pages sums
 * slot_pages over used slots; retired_pages the pages of retired slots and pieces; no run of
 * free pieces is no_run or more long, so that is forgotten wherever nr_free grows.
 */
#include "kvt_mem.h"

#define KVT_SPARSE_LOOK	32u	/* regions of an owner that kvt_mem_sparse() chooses from */
#define KVT_SPARSE_MAX	1024u	/* that it looks at: a region of small slots has 512 */
#define KVT_RUN_UNKNOWN	(~0u)	/* see @no_run: any length may be there */

/**
 * kvt_mem_init() - start with all pieces free
 * @m:         space
 * @map:       KVT_PIECES_WORDS(@nr_pieces) entries; stays the caller's, who frees what
 *             kvt_pieces_end() has first
 * @dir:       kvt_mem_dir_chunks(@nr_pieces) entries; stays the caller's, who frees the
 *             @m->nr_chunks chunks in it with it
 * @nr_pieces: size
 * @content:   what the bytes are: KVT_PIECE_CLEAN, KVT_PIECE_UNKNOWN to be scrubbed
 */
void kvt_mem_init(struct kvt_mem *m, u64 *map, union kvt_dirent **dir, u32 nr_pieces,
		  u32 content)
{
	memset(m, 0, sizeof(*m));
	kvt_pieces_init(&m->pieces, map, nr_pieces, content);
	m->dir = dir;
	m->nr_pieces = nr_pieces;
	m->nr_free = nr_pieces;
	m->free_nr = KVT_NO_REGION;
	m->no_run = KVT_RUN_UNKNOWN;
	m->no_whole = KVT_RUN_UNKNOWN;
	m->pass = 1;
}

/**
 * kvt_mem_dir_add() - have numbers for KVT_DIR_ENTRIES more regions
 * @m:     space; meta lock held
 * @chunk: KVT_DIR_ENTRIES entries, the space's from here on success
 * Return: false if that is not needed, so the chunk stays the caller's.
 */
bool kvt_mem_dir_add(struct kvt_mem *m, union kvt_dirent *chunk)
{
	u32 first = m->nr_chunks << KVT_DIR_SHIFT, i;

	if (!kvt_mem_dir_full(m) || m->nr_chunks == kvt_mem_dir_chunks(m->nr_pieces))
		return false;
	m->dir[m->nr_chunks++] = chunk;
	for (i = KVT_DIR_ENTRIES; i-- > 0;) {
		chunk[i].next_free = m->free_nr;
		m->free_nr = first + i;
	}
	return true;
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

/**
 * kvt_mem_growth() - how large the next region of an owner should be
 * @o:          owner
 * @slot_pages: pages in a slot
 * @pieces_max: longest run that makes sense
 *
 * A small owner gets the shortest run. One that has much gets a multiple of it, so
 * that there are fewer records: at most half of what it has, and no more than
 * KVT_REGION_SLOTS slots, since regions change hands as a whole.
 * Return: pieces, or 0 as with kvt_mem_geometry().
 */
u32 kvt_mem_growth(const struct kvt_owner *o, u32 slot_pages, u32 pieces_max)
{
	u32 nr_slots = 0, pieces = kvt_mem_geometry(slot_pages, pieces_max, &nr_slots), times;

	if (!pieces)
		return 0;
	times = min(KVT_REGION_SLOTS / nr_slots, READ_ONCE(o->nr_pieces) / 2 / pieces);
	times = min(times, min(pieces_max, KVT_REGION_PIECES_MAX) / pieces);
	return max(times, 1u) * pieces;
}

static u32 kvt_mem_run_near(struct kvt_mem *m, u32 *hint, u32 want, bool whole)
{
	u32 r = kvt_pieces_run(&m->pieces, *hint, m->nr_pieces, want, whole);

	/* What begins before the hint may end behind it. */
	if (r == KVT_NO_PIECE)
		r = kvt_pieces_run(&m->pieces, 0, min(m->nr_pieces, *hint + want - 1), want, whole);
	if (r != KVT_NO_PIECE)
		*hint = r + want;
	return r;
}

/*
 * Free pieces in a row, near the last that were had. What fills stretches gets whole ones, if
 * there are some: then its pieces cost next to nothing, and no holes are left. If there are
 * none that is remembered, or each who asks, for each block of a call, would look at the
 * whole map.
 */
static u32 kvt_mem_run(struct kvt_mem *m, u32 want)
{
	u32 r = KVT_NO_PIECE;

	if (!(want % KVT_STRETCH_PIECES) && want < m->no_whole) {
		r = kvt_mem_run_near(m, &m->hint_whole, want, true);
		if (r == KVT_NO_PIECE)
			m->no_whole = want;
	}
	if (r == KVT_NO_PIECE)
		r = kvt_mem_run_near(m, &m->hint, want, false);
	if (r == KVT_NO_PIECE)
		m->no_run = want;
	return r;
}

/* Pieces can be had again, from @piece on. */
static void kvt_mem_runs_grow(struct kvt_mem *m, u32 piece)
{
	m->no_run = KVT_RUN_UNKNOWN;
	m->no_whole = KVT_RUN_UNKNOWN;
	m->hint = min(m->hint, piece);
	m->hint_whole = min(m->hint_whole, piece);
}

/* Behind the first, which hands out slots, if there is one. */
static void kvt_mem_list_add_behind(struct kvt_mem *m, struct kvt_owner *o,
				    struct kvt_region *reg)
{
	struct kvt_region *first = kvt_mem_region(m, o->partial);

	reg->prev = first->first;
	reg->next = first->next;
	if (first->next != KVT_NO_REGION)
		kvt_mem_region(m, first->next)->prev = reg->first;
	first->next = reg->first;
	reg->listed = true;
}

static void kvt_mem_list_add(struct kvt_mem *m, struct kvt_owner *o, struct kvt_region *reg)
{
	reg->prev = KVT_NO_REGION;
	reg->next = o->partial;
	if (o->partial != KVT_NO_REGION)
		kvt_mem_region(m, o->partial)->prev = reg->first;
	o->partial = reg->first;
	reg->listed = true;
}

static void kvt_mem_list_del(struct kvt_mem *m, struct kvt_owner *o, struct kvt_region *reg)
{
	if (reg->prev != KVT_NO_REGION)
		kvt_mem_region(m, reg->prev)->next = reg->next;
	else
		o->partial = reg->next;
	if (reg->next != KVT_NO_REGION)
		kvt_mem_region(m, reg->next)->prev = reg->prev;
	reg->listed = false;
}

static void kvt_mem_relist(struct kvt_mem *m, struct kvt_owner *o, struct kvt_region *reg)
{
	bool want = reg->state == KVT_REGION_ACTIVE && !reg->arena && kvt_region_has_room(reg);

	if (want && !reg->listed)
		kvt_mem_list_add(m, o, reg);
	else if (!want && reg->listed)
		kvt_mem_list_del(m, o, reg);
}

/* A namespace as the map remembers it. Ids too long for a word are not remembered. */
static u32 kvt_mem_owner_word(u64 ns_id)
{
	return ns_id < KVT_PIECE_ABSENT ? (u32)ns_id : KVT_PIECE_UNKNOWN;
}

/* Give a record a number, and the number to its pieces. Are any bytes others'. */
static bool kvt_mem_region_enter(struct kvt_mem *m, struct kvt_region *reg, u64 ns_id)
{
	u32 nr = m->free_nr, word = kvt_mem_owner_word(ns_id), was, i;
	bool dirty = false;

	m->free_nr = kvt_mem_dirent(m, nr)->next_free;
	kvt_mem_dirent(m, nr)->region = reg;
	for (i = reg->first; i < reg->first + reg->nr_pieces; i++) {
		was = kvt_piece_word(&m->pieces, i);
		if (was != KVT_PIECE_CLEAN && (was != word || word == KVT_PIECE_UNKNOWN))
			dirty = true;
	}
	kvt_pieces_set(&m->pieces, reg->first, reg->nr_pieces, KVT_PIECE_USED | nr);
	return dirty;
}

/**
 * kvt_mem_region_alloc() - take free pieces for an owner
 * @m:          space, not kvt_mem_wants(); meta lock held
 * @o:          owner
 * @reg:        record to be filled in, with room for kvt_run_slots(@nr_pieces,
 *              @slot_pages) slots; the space's until kvt_mem_region_free()
 * @ns_id:      namespace id, never 0
 * @ns_group:   kvt_ns_group() of the owner
 * @slot_pages: slot size
 * @nr_pieces:  from kvt_mem_geometry() or kvt_mem_growth()
 * Return: false when no such run is free. Else the region is ACTIVE, or DIRTY if its
 * pages may hold bytes of others: then it hands out nothing before
 * kvt_mem_region_open().
 */
bool kvt_mem_region_alloc(struct kvt_mem *m, struct kvt_owner *o, struct kvt_region *reg,
			  u64 ns_id, u32 ns_group, u32 slot_pages, u32 nr_pieces)
{
	u32 nr_slots = kvt_run_slots(nr_pieces, slot_pages), r, i;

	if (nr_pieces > m->nr_free || nr_pieces >= m->no_run)
		return false;
	r = kvt_mem_run(m, nr_pieces);
	if (r == KVT_NO_PIECE)
		return false;
	m->nr_free -= nr_pieces;
	o->nr_pieces += nr_pieces;
	memset(reg, 0, sizeof(*reg));
	reg->first = r;
	reg->ns_group = ns_group;
	reg->nr_pieces = nr_pieces;
	reg->slot_pages = slot_pages;
	for (i = 0; i < nr_slots; i++)
		reg->slot[i] = KVT_SLOT_FREE | (i + 1 < nr_slots ? i + 1 : KVT_SLOT_END);
	if (!kvt_mem_region_enter(m, reg, ns_id))
		kvt_mem_region_open(m, o, reg);
	return true;
}

/**
 * kvt_mem_region_open() - let a clean region hand out slots
 * @m:   space; meta lock held
 * @o:   owner
 * @reg: DIRTY region whose bytes are its owner's or zero now
 */
void kvt_mem_region_open(struct kvt_mem *m, struct kvt_owner *o, struct kvt_region *reg)
{
	reg->state = KVT_REGION_ACTIVE;
	kvt_mem_relist(m, o, reg);
}

/**
 * kvt_mem_region_arena() - make a region an arena, or an ordinary region again
 * @m:     space; meta lock held
 * @o:     its owner
 * @reg:   region
 * @arena: open file id; 0: none. From here on slots are only had by naming @reg
 */
void kvt_mem_region_arena(struct kvt_mem *m, struct kvt_owner *o, struct kvt_region *reg,
			  u32 arena)
{
	reg->arena = arena;
	kvt_mem_relist(m, o, reg);
}

/**
 * kvt_mem_region_drain() - stop handing out a region's slots
 * @m:   space; meta lock held
 * @o:   its owner
 * @reg: ACTIVE region
 */
void kvt_mem_region_drain(struct kvt_mem *m, struct kvt_owner *o, struct kvt_region *reg)
{
	reg->state = KVT_REGION_DRAINING;
	kvt_mem_relist(m, o, reg);
}

/**
 * kvt_mem_region_undrain() - give up draining a region
 * @m:   space; meta lock held
 * @o:   its owner
 * @reg: DRAINING region
 *
 * It is not the next to hand out slots, if there is another, nor to be emptied.
 */
void kvt_mem_region_undrain(struct kvt_mem *m, struct kvt_owner *o, struct kvt_region *reg)
{
	reg->state = KVT_REGION_ACTIVE;
	reg->passed = m->pass;
	if (o->partial != KVT_NO_REGION && !reg->arena && kvt_region_has_room(reg))
		kvt_mem_list_add_behind(m, o, reg);
	else
		kvt_mem_relist(m, o, reg);
}

static void kvt_mem_piece_retire(struct kvt_mem *m, u32 piece)
{
	kvt_piece_spoil(&m->pieces, piece);
	m->nr_retired++;
	m->retired_pages += KVT_PIECE_PAGES;
}

static u32 kvt_region_retired_pages(const struct kvt_region *reg)
{
	u32 i, nr = 0;

	for (i = 0; i < kvt_region_slots(reg); i++)
		nr += reg->slot[i] == KVT_SLOT_RETIRED;
	return nr * reg->slot_pages;
}

/* Count one piece of a region as given back, or retire it if it is bad. */
static void kvt_mem_piece_return(struct kvt_mem *m, u32 piece)
{
	if (kvt_piece_bad(&m->pieces, piece) && !m->lent) {
		kvt_mem_piece_retire(m, piece);
		return;
	}
	kvt_piece_mend(&m->pieces, piece);
	m->nr_free++;
}

/**
 * kvt_mem_region_free() - give a region's pieces back
 * @m:        space; meta lock held
 * @o:        its owner
 * @reg:      region in state CLEANING, QUARANTINED or DIRTY without used slots, of which
 *            no mapping and no foreign reference is left; the caller's to free now
 * @ns_id:    its owner's namespace id
 * @scrubbed: its bytes are zero
 *
 * Pieces with bad pages are retired instead, if these are not the region's own.
 */
void kvt_mem_region_free(struct kvt_mem *m, struct kvt_owner *o, struct kvt_region *reg,
			 u64 ns_id, bool scrubbed)
{
	u32 nr = kvt_piece_word(&m->pieces, reg->first) & KVT_PIECE_NR;
	u32 word = kvt_mem_owner_word(ns_id), i;

	if (m->retired_pages)
		m->retired_pages -= kvt_region_retired_pages(reg);
	if (scrubbed)
		word = KVT_PIECE_CLEAN;
	else if (reg->state == KVT_REGION_DIRTY)
		word = KVT_PIECE_UNKNOWN;
	for (i = reg->first; i < reg->first + reg->nr_pieces; i++)
		kvt_mem_piece_return(m, i);
	kvt_pieces_set(&m->pieces, reg->first, reg->nr_pieces, word);
	kvt_mem_dirent(m, nr)->next_free = m->free_nr;
	m->free_nr = nr;
	o->nr_pieces -= reg->nr_pieces;
	kvt_mem_runs_grow(m, reg->first);
}

/**
 * kvt_mem_pieces_leave() - make free pieces absent
 * @m:     space; meta lock held
 * @piece: out: which; their memory is the caller's now
 * @max:   room in @piece
 *
 * The last ones: regions are taken from the front, so what is left there stays in one run.
 * Return: how many.
 */
u32 kvt_mem_pieces_leave(struct kvt_mem *m, u32 *piece, u32 max)
{
	u32 nr = 0, i;

	max = min(max, m->nr_free);
	for (i = m->nr_pieces; nr < max; i--) {
		if (!kvt_piece_free(&m->pieces, i - 1))
			continue;
		kvt_piece_leave(&m->pieces, i - 1);
		piece[nr++] = i - 1;
	}
	m->nr_free -= nr;
	m->nr_absent += nr;
	return nr;
}

/**
 * kvt_mem_piece_absent() - the first absent piece
 * @m: space; meta lock held
 * Return: piece, or KVT_NO_REGION.
 */
u32 kvt_mem_piece_absent(const struct kvt_mem *m)
{
	u32 i;

	for (i = 0; m->nr_absent && i < m->nr_pieces; i++) {
		if (kvt_piece_absent(&m->pieces, i))
			return i;
	}
	return KVT_NO_REGION;
}

/**
 * kvt_mem_piece_come() - there is memory behind an absent piece again
 * @m:     space; meta lock held
 * @piece: absent
 *
 * It is zeroed, which is forgotten where it would take memory, see kvt_piece_come().
 */
void kvt_mem_piece_come(struct kvt_mem *m, u32 piece)
{
	kvt_piece_come(&m->pieces, piece);
	m->nr_absent--;
	m->nr_free++;
	kvt_mem_runs_grow(m, piece);
}

/**
 * kvt_mem_sparse() - a region that could be emptied into others of its owner
 * @m:      space; meta lock held
 * @o:      owner
 * @pieces: it has to have so many
 * @looks:  grows by as many regions as were looked at
 *
 * Of those with free slots the one with the fewest blocks for its size, if they fit into the
 * others; but none that was found not to be possible to empty since @m->pass has changed last.
 * The choice is among some, unless none of these will do: where there is least free comes first.
 * Retired slots are taken for free ones here, so there may be less room than that.
 * Return: region with blocks, or NULL.
 */
const struct kvt_region *kvt_mem_sparse(const struct kvt_mem *m, const struct kvt_owner *o,
					u32 pieces, u32 *looks)
{
	const struct kvt_region *reg = kvt_mem_region(m, o->partial), *best = NULL;
	u32 room = 0, i, n = 0;
	bool fits = false;

	for (i = 0; reg && !(fits && n >= KVT_SPARSE_LOOK) && i < KVT_SPARSE_MAX; i++) {
		bool may = reg->nr_used && reg->nr_pieces >= pieces && reg->passed != m->pass;

		n += may;
		room += kvt_region_slots(reg) - reg->nr_used;
		if (may && (!best || (u64)reg->nr_used * best->nr_pieces <
				     (u64)best->nr_used * reg->nr_pieces))
			best = reg;
		/* Its own room is no room for what is in it. */
		fits = best && room >= kvt_region_slots(best);
		reg = kvt_mem_region(m, reg->next);
	}
	*looks += i;
	return fits ? best : NULL;
}

/* Number of the slot that a page of the region is in. */
static u32 kvt_region_slot_of(const struct kvt_region *reg, u32 page)
{
	return (page - reg->first * KVT_PIECE_PAGES) / reg->slot_pages;
}

static u32 kvt_region_slot_page(const struct kvt_region *reg, u32 slot)
{
	return reg->first * KVT_PIECE_PAGES + slot * reg->slot_pages;
}

/**
 * kvt_mem_slot_alloc() - take a slot
 * @m:  space; meta lock held
 * @o:  owner
 * @r:  first piece of the region to take it from (an arena's), or KVT_NO_REGION for
 *      any of the owner's
 * @id: block that will live there
 * Return: its first page, or KVT_NO_PAGE when there is none.
 */
u32 kvt_mem_slot_alloc(struct kvt_mem *m, struct kvt_owner *o, u32 r, u32 id)
{
	struct kvt_region *reg = kvt_mem_region(m, r == KVT_NO_REGION ? o->partial : r);
	u32 slot;

	if (!reg || reg->state != KVT_REGION_ACTIVE || !kvt_region_has_room(reg))
		return KVT_NO_PAGE;
	slot = reg->free_head;
	reg->free_head = reg->slot[slot] & ~KVT_SLOT_FREE;
	reg->slot[slot] = id;
	reg->nr_used++;
	m->used_pages += reg->slot_pages;
	kvt_mem_relist(m, o, reg);
	return kvt_region_slot_page(reg, slot);
}

/**
 * kvt_mem_slot_free() - give a slot back
 * @m:    space; meta lock held
 * @o:    owner of its region
 * @page: as kvt_mem_slot_alloc() returned it
 *
 * It is retired if a page of it went bad meanwhile.
 */
void kvt_mem_slot_free(struct kvt_mem *m, struct kvt_owner *o, u32 page)
{
	struct kvt_region *reg = kvt_mem_region_of(m, page);
	u32 slot = kvt_region_slot_of(reg, page);

	if (reg->slot[slot] & KVT_SLOT_POISON) {
		reg->slot[slot] = KVT_SLOT_RETIRED;
		m->retired_pages += reg->slot_pages;
	} else {
		reg->slot[slot] = KVT_SLOT_FREE | reg->free_head;
		reg->free_head = slot;
	}
	reg->nr_used--;
	m->used_pages -= reg->slot_pages;
	kvt_mem_relist(m, o, reg);
}

/* Take a free slot off the list of free ones, wherever it stands there. */
static void kvt_region_unlink_slot(struct kvt_region *reg, u32 slot)
{
	u32 next = reg->slot[slot] & ~KVT_SLOT_FREE, at;

	if (reg->free_head == slot) {
		reg->free_head = next;
		return;
	}
	for (at = reg->free_head; (reg->slot[at] & ~KVT_SLOT_FREE) != slot;
	     at = reg->slot[at] & ~KVT_SLOT_FREE)
		;
	reg->slot[at] = KVT_SLOT_FREE | next;
}

/**
 * kvt_mem_poison() - a page is bad from now on
 * @m:    space; meta lock held
 * @o:    owner of the region it is in, anything if it is in none
 * @page: any number; saying it again changes nothing
 *
 * A free slot or piece is retired, a used slot is when it is given back.
 * Return: the block whose slot it is in, or KVT_NIL. What becomes of that is the
 * caller's business.
 */
u32 kvt_mem_poison(struct kvt_mem *m, struct kvt_owner *o, u32 page)
{
	struct kvt_region *reg = kvt_mem_region_of(m, page);
	u32 piece = page / KVT_PIECE_PAGES, slot;

	if (!reg) {
		if (piece < m->nr_pieces && kvt_piece_free(&m->pieces, piece)) {
			kvt_mem_piece_retire(m, piece);
			m->nr_free--;
		}
		return KVT_NIL;
	}
	kvt_piece_spoil(&m->pieces, piece);
	slot = kvt_region_slot_of(reg, page);
	if (slot >= kvt_region_slots(reg))
		return KVT_NIL;		/* the tail is nobody's anyway */
	if (!(reg->slot[slot] & KVT_SLOT_FREE)) {
		reg->slot[slot] |= KVT_SLOT_POISON;
		return kvt_region_block(reg, slot);
	}
	if (reg->slot[slot] != KVT_SLOT_RETIRED) {
		kvt_region_unlink_slot(reg, slot);
		reg->slot[slot] = KVT_SLOT_RETIRED;
		m->retired_pages += reg->slot_pages;
		kvt_mem_relist(m, o, reg);
	}
	return KVT_NIL;
}

/**
 * kvt_mem_slot_poisoned() - has a page of a slot in use gone bad
 * @m:    space; meta lock held
 * @page: in a slot with a block
 */
bool kvt_mem_slot_poisoned(const struct kvt_mem *m, u32 page)
{
	const struct kvt_region *reg = kvt_mem_region_of(m, page);
	u32 entry = reg->slot[kvt_region_slot_of(reg, page)];

	return !(entry & KVT_SLOT_FREE) && (entry & KVT_SLOT_POISON);
}

/**
 * kvt_mem_slot_assign() - a used slot is another block's now
 * @m:    space; meta lock held
 * @page: as kvt_mem_slot_alloc() returned it
 * @id:   block
 */
void kvt_mem_slot_assign(struct kvt_mem *m, u32 page, u32 id)
{
	struct kvt_region *reg = kvt_mem_region_of(m, page);
	u32 *entry = &reg->slot[kvt_region_slot_of(reg, page)];

	*entry = id | (*entry & KVT_SLOT_POISON);
}

/**
 * kvt_mem_slot_retire() - give a slot back that must not be handed out again
 * @m:    space; meta lock held
 * @o:    owner of its region
 * @page: as kvt_mem_slot_alloc() returned it
 *
 * Its pieces are as good as others once the region has gone.
 */
void kvt_mem_slot_retire(struct kvt_mem *m, struct kvt_owner *o, u32 page)
{
	struct kvt_region *reg = kvt_mem_region_of(m, page);

	reg->slot[kvt_region_slot_of(reg, page)] |= KVT_SLOT_POISON;
	kvt_mem_slot_free(m, o, page);
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
	const struct kvt_region *reg = kvt_mem_region_of(m, page);
	u32 slot, id;

	if (!reg)
		return KVT_NIL;
	slot = kvt_region_slot_of(reg, page);
	if (slot >= kvt_region_slots(reg))
		return KVT_NIL;
	id = kvt_region_block(reg, slot);
	if (id != KVT_NIL)
		*slot_first_page = kvt_region_slot_page(reg, slot);
	return id;
}

/**
 * kvt_mem_word() - all that is known of a piece in one word, for tests
 * @m:     space; meta lock held
 * @piece: below @m->nr_pieces
 * Return: KVT_PIECE_USED, its region's number and perhaps KVT_PIECE_POISON; or whose bytes it
 * may hold; or KVT_PIECE_RETIRED or KVT_PIECE_ABSENT.
 */
u32 kvt_mem_word(const struct kvt_mem *m, u32 piece)
{
	u32 word = kvt_piece_word(&m->pieces, piece);
	bool bad = kvt_piece_bad(&m->pieces, piece);

	if (word & KVT_PIECE_USED)
		return word | (bad ? KVT_PIECE_POISON : 0);
	if (kvt_piece_absent(&m->pieces, piece))
		return KVT_PIECE_ABSENT;
	return bad ? KVT_PIECE_RETIRED : word;
}
