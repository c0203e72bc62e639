// SPDX-License-Identifier: GPL-2.0
/*
 * Every invariant of the core's structures that can be checked from outside, on
 * the small store. Aborts at the first that does not hold.
 */
#include "mini.h"

#define IDS	(MINI_CHUNKS * KVT_CHUNK_BLOCKS)

static u32 nr_ids(const struct mini *m)
{
	return m->table.nr_chunks * KVT_CHUNK_BLOCKS;
}

static u32 ctl_of(struct mini *m, u32 id)
{
	return kvt_ctl(kvt_hot(&m->table, id));
}

static enum kvt_state state_of(struct mini *m, u32 id)
{
	return kvt_ctl_state(ctl_of(m, id));
}

/* An entry is on the free list exactly when it is FREE; counts agree. */
static void check_table(struct mini *m)
{
	u32 id, nr = 0, nr_state = 0;

	for (id = m->table.free_head; id; id = kvt_cold(&m->table, id)->lru_next) {
		MINI_ASSERT(kvt_table_valid(&m->table, id));
		MINI_ASSERT(ctl_of(m, id) == KVT_FREE);
		MINI_ASSERT(++nr <= m->table.nr_free);
	}
	for (id = 1; id < nr_ids(m); id++)
		nr_state += state_of(m, id) == KVT_FREE;
	MINI_ASSERT(nr == m->table.nr_free && nr == nr_state);
	MINI_ASSERT(m->table.nr_used == nr_ids(m) - 1 - nr);
}

/* FILLING and READY blocks are in the index, once, in their place; no others. */
static void check_index(struct mini *m)
{
	u32 i, b, id, nr, total = 0, named = 0;

	for (i = 0; i < KVT_SHARDS; i++) {
		struct kvt_shard *s = &m->index.shards[i];

		for (b = 0, nr = 0; b <= s->mask; b++) {
			for (id = s->buckets[b]; id; nr++) {
				struct kvt_hot *h = kvt_hot(&m->table, id);

				MINI_ASSERT(state_of(m, id) == KVT_FILLING ||
					    state_of(m, id) == KVT_READY);
				MINI_ASSERT((h->hash & s->mask) == b);
				MINI_ASSERT(kvt_ix_shard(&m->index, h->hash) == s);
				MINI_ASSERT(h->hash == kvt_ix_hash(&m->index, h->ns_group,
								   h->key));
				spin_lock(&s->lock);
				/* The first of that name is this one: no doubles. */
				MINI_ASSERT(kvt_ix_find(&m->index, s, h->hash,
							h->ns_group, h->key) == id);
				spin_unlock(&s->lock);
				MINI_ASSERT(nr < s->count);
				id = h->hash_next;
			}
		}
		MINI_ASSERT(nr == s->count && nr <= (s->mask + 1) / 2 * 3);
		total += nr;
	}
	for (id = 1; id < nr_ids(m); id++)
		named += state_of(m, id) == KVT_FILLING || state_of(m, id) == KVT_READY;
	MINI_ASSERT(total == named);
}

/* Has memory gone bad: the only thing that takes a block away from its children. */
static bool any_bad(const struct mini *m)
{
	u32 i, nr = 0;

	for (i = 0; i < MINI_MEMS; i++)
		nr += m->tier[i].nr_bad;
	return nr;
}

/* Links agree both ways; a READY block's ancestors are all READY, or lost. */
static void check_chains(struct mini *m)
{
	u32 id, kid, prev, with_parent = 0, linked = 0, up;

	for (id = 1; id < nr_ids(m); id++) {
		const struct kvt_cold *c = kvt_cold(&m->table, id);

		if (state_of(m, id) == KVT_FREE)
			continue;
		with_parent += c->parent != KVT_NIL;
		MINI_ASSERT(!c->parent || state_of(m, id) == KVT_FILLING ||
			    state_of(m, id) == KVT_READY);
		prev = KVT_NIL;
		for (kid = c->first_child; kid; kid = kvt_cold(&m->table, kid)->sib_next) {
			MINI_ASSERT(state_of(m, kid) != KVT_FREE);
			MINI_ASSERT(kvt_cold(&m->table, kid)->parent == id);
			MINI_ASSERT(kvt_cold(&m->table, kid)->sib_prev == prev);
			MINI_ASSERT(++linked < IDS);
			prev = kid;
		}
		MINI_ASSERT(kvt_ch_depth(&m->table, id, IDS) < IDS);
		if (state_of(m, id) != KVT_READY)
			continue;
		for (up = c->parent; up; up = kvt_cold(&m->table, up)->parent) {
			MINI_ASSERT(state_of(m, up) == KVT_READY ||
				    (state_of(m, up) == KVT_DEAD && any_bad(m)));
			MINI_ASSERT(kvt_hot(&m->table, up)->ns_group ==
				    kvt_hot(&m->table, id)->ns_group);
		}
	}
	MINI_ASSERT(linked == with_parent);
}

static bool moving_to(struct mini *m, u32 id, u32 tier, u32 addr)
{
	u32 i;

	for (i = 0; i < MINI_MOVES; i++) {
		const struct mini_move *mv = &m->moves[i];

		if (mv->on && mv->id == id && mv->dst_tier == tier && mv->dst_addr == addr)
			return true;
	}
	return false;
}

static bool bad_pages(const struct mini_tier *t, u32 page, u32 nr)
{
	while (nr--) {
		if (t->bad[page + nr])
			return true;
	}
	return false;
}

static bool bad_piece(const struct mini_tier *t, u32 piece)
{
	return bad_pages(t, piece * KVT_PIECE_PAGES, KVT_PIECE_PAGES);
}

/* The map and the directory lead to a region from each of its pieces, by one number. */
static void check_region_pieces(struct mini_tier *t, const struct kvt_region *reg)
{
	u32 nr = kvt_mem_word(&t->mem, reg->first) & KVT_PIECE_NR, i;

	MINI_ASSERT(nr < KVT_DIR_ENTRIES && t->chunk[nr].region == reg);
	for (i = reg->first; i < reg->first + reg->nr_pieces; i++)
		MINI_ASSERT(kvt_mem_word(&t->mem, i) ==
			    (KVT_PIECE_USED | nr | (bad_piece(t, i) ? KVT_PIECE_POISON : 0)));
}

/* One region: free slots form a list, used ones name blocks that live there. */
static u32 check_region(struct mini *m, u32 tier, const struct kvt_region *reg, u64 *retired)
{
	u32 s, nr_free = 0, nr_used = 0, nr_bad = 0, nr_slots = kvt_region_slots(reg), page;
	struct mini_tier *t = &m->tier[tier];

	check_region_pieces(&m->tier[tier], reg);
	for (s = reg->free_head; s != KVT_SLOT_END; s = reg->slot[s] & ~KVT_SLOT_FREE) {
		MINI_ASSERT(s < nr_slots && (reg->slot[s] & KVT_SLOT_FREE));
		MINI_ASSERT(++nr_free <= nr_slots);
	}
	for (s = 0; s < nr_slots; s++) {
		u32 id = kvt_region_block(reg, s);
		bool bad;
		struct kvt_hot *h;

		page = reg->first * KVT_PIECE_PAGES + s * reg->slot_pages;
		bad = bad_pages(t, page, reg->slot_pages);
		if (id == KVT_NIL) {
			MINI_ASSERT(bad == (reg->slot[s] == KVT_SLOT_RETIRED));
			nr_bad += bad;
			continue;
		}
		nr_used++;
		MINI_ASSERT(kvt_mem_slot_poisoned(&t->mem, page) == bad);
		h = kvt_hot(&m->table, id);
		MINI_ASSERT(state_of(m, id) != KVT_FREE);
		MINI_ASSERT(h->ns_group == reg->ns_group);
		if (moving_to(m, id, tier, page))
			continue;
		MINI_ASSERT((ctl_of(m, id) & KVT_CTL_MEM) && h->mem_tier == tier &&
			    h->mem_page == page);
		/* What can be read is good. */
		MINI_ASSERT(!bad || state_of(m, id) != KVT_READY);
	}
	*retired += nr_bad * reg->slot_pages;
	MINI_ASSERT(nr_used == reg->nr_used && nr_used + nr_free + nr_bad == nr_slots);
	MINI_ASSERT(nr_used == 0 || reg->state == KVT_REGION_ACTIVE ||
		    reg->state == KVT_REGION_DRAINING);
	MINI_ASSERT(reg->listed == (reg->state == KVT_REGION_ACTIVE && !reg->arena &&
				    nr_free));
	return nr_used * reg->slot_pages;
}

/* An owner's list: @return its length. Its pieces are those of its regions. */
static u32 check_owner(struct mini *m, u32 tier, u32 owner, u32 pieces)
{
	const struct kvt_owner *o = &m->tier[tier].owner[owner];
	u32 r, prev = KVT_NO_REGION, nr = 0;
	const struct kvt_region *reg;

	MINI_ASSERT(o->nr_pieces == pieces);
	for (r = o->partial; r != KVT_NO_REGION; r = reg->next) {
		reg = kvt_mem_region(&m->tier[tier].mem, r);
		MINI_ASSERT(reg && reg->listed && reg->prev == prev);
		MINI_ASSERT(reg->ns_group == mini_ns_group(owner));
		MINI_ASSERT(++nr <= mini_pieces[tier]);
		prev = r;
	}
	return nr;
}

/* Pieces are in one region or free; owners' lists hold what is listed. */
static void check_mem(struct mini *m, u32 tier)
{
	u32 i, nr_free = 0, nr_bad = 0, listed = 0, numbers = 0, pieces[MINI_OWNERS] = { 0 };
	struct mini_tier *t = &m->tier[tier];
	const struct kvt_region *reg;
	u64 used = 0, retired = 0;

	for (i = 0; i < mini_pieces[tier];) {
		reg = kvt_mem_region_at(&t->mem, i);
		if (!reg) {
			MINI_ASSERT(bad_piece(t, i) ==
				    (kvt_mem_word(&t->mem, i) == KVT_PIECE_RETIRED));
			nr_bad += bad_piece(t, i);
			nr_free += !bad_piece(t, i++);
			continue;
		}
		MINI_ASSERT(reg->first == i && kvt_mem_region(&t->mem, i) == reg);
		used += check_region(m, tier, reg, &retired);
		listed += reg->listed;
		numbers++;
		pieces[(reg->ns_group >> 4) * MINI_GROUPS + (reg->ns_group & 15)] +=
			reg->nr_pieces;
		i += reg->nr_pieces;
		MINI_ASSERT(i <= mini_pieces[tier]);
	}
	MINI_ASSERT(nr_free == t->mem.nr_free && nr_bad == t->mem.nr_retired);
	MINI_ASSERT(retired + nr_bad * KVT_PIECE_PAGES == t->mem.retired_pages);
	MINI_ASSERT(used == t->mem.used_pages);
	for (i = 0; i < MINI_OWNERS; i++)
		listed -= check_owner(m, tier, i, pieces[i]);
	MINI_ASSERT(listed == 0);
	for (i = t->mem.free_nr; i != KVT_NO_REGION; i = t->chunk[i].next_free)
		MINI_ASSERT(++numbers <= KVT_DIR_ENTRIES);
	MINI_ASSERT(numbers == KVT_DIR_ENTRIES);
}

/* Each block's place names the block, and its bytes are its own. */
static void check_places(struct mini *m)
{
	u32 id, i, first = 0;

	for (id = 1; id < nr_ids(m); id++) {
		struct kvt_hot *h = kvt_hot(&m->table, id);
		u32 ctl = kvt_ctl(h), pages;

		if (kvt_ctl_state(ctl) == KVT_FREE)
			continue;
		pages = mini_slot_pages[mini_owner(h)];
		MINI_ASSERT(ctl & (KVT_CTL_MEM | KVT_CTL_LOG));
		if (ctl & KVT_CTL_MEM) {
			MINI_ASSERT(kvt_mem_block_at(&m->tier[h->mem_tier].mem,
						     h->mem_page, &first) == id);
			MINI_ASSERT(first == h->mem_page);
			for (i = 0; kvt_ctl_state(ctl) == KVT_READY && i < pages; i++)
				MINI_ASSERT(m->tier[h->mem_tier].content[first + i] ==
					    m->tag[id]);
		}
		if (ctl & KVT_CTL_LOG) {
			MINI_ASSERT(h->log_unit % MINI_SEG_UNITS + pages <= MINI_SEG_UNITS);
			for (i = 0; i < pages; i++)
				MINI_ASSERT(m->log_content[h->log_unit + i] == m->tag[id]);
		}
		MINI_ASSERT(kvt_ctl_leases(ctl) == 0 || (ctl & KVT_CTL_MEM));
	}
}

static bool seg_remembers(const struct kvt_seg *s, u32 id)
{
	u32 i;

	for (i = 0; i < s->nr_ids; i++) {
		if (s->ids[i] == id)
			return true;
	}
	return false;
}

/* Live units are those of blocks and of moves on their way; all are remembered. */
static void check_log(struct mini *m)
{
	u32 live[MINI_SEGS] = { 0 }, writes[MINI_SEGS] = { 0 }, copies[MINI_SEGS] = { 0 };
	u32 i, id, seg, nr_free = 0;
	u64 total = 0, spare = 0;

	for (id = 1; id < nr_ids(m); id++) {
		struct kvt_hot *h = kvt_hot(&m->table, id);

		if (kvt_ctl_state(kvt_ctl(h)) == KVT_FREE || !(kvt_ctl(h) & KVT_CTL_LOG))
			continue;
		seg = kvt_log_seg_of(&m->log, h->log_unit);
		live[seg] += mini_slot_pages[mini_owner(h)];
		if (kvt_ctl(h) & KVT_CTL_MEM)
			copies[seg] += mini_slot_pages[mini_owner(h)];
		MINI_ASSERT(seg_remembers(&m->segs[seg], id));
	}
	for (i = 0; i < MINI_MOVES; i++) {
		const struct mini_move *mv = &m->moves[i];

		if (!mv->on || mv->dst_tier != MINI_LOG)
			continue;
		seg = kvt_log_seg_of(&m->log, mv->dst_addr);
		live[seg] += mini_slot_pages[mini_owner(kvt_hot(&m->table, mv->id))];
		writes[seg]++;
	}
	for (seg = 0; seg < MINI_SEGS; seg++) {
		const struct kvt_seg *s = &m->segs[seg];

		MINI_ASSERT(s->live == live[seg] && s->writes == writes[seg]);
		MINI_ASSERT(s->copies == copies[seg]);
		MINI_ASSERT(s->live <= s->fill && s->fill <= MINI_SEG_UNITS);
		MINI_ASSERT(!s->ids == (s->state == KVT_SEG_FREE));
		MINI_ASSERT(s->state != KVT_SEG_FREE || !(s->live || s->writes || s->fill));
		MINI_ASSERT(s->state != KVT_SEG_SEALED || s->live || s->writes);
		MINI_ASSERT((s->state == KVT_SEG_OPEN) ==
			    (m->log.open[0] == seg || m->log.open[1] == seg));
		nr_free += s->state == KVT_SEG_FREE;
		total += s->live;
		spare += s->copies;
	}
	MINI_ASSERT(nr_free == m->log.nr_free && total == m->log.live_units);
	MINI_ASSERT(spare == m->log.copy_units);
}

/* A list's length, checking its links and what state its members are in. */
static u32 check_list(struct mini *m, const struct kvt_list *l, enum kvt_state state)
{
	u32 id, prev = KVT_NIL, nr = 0;

	for (id = l->head; id; id = kvt_cold(&m->table, id)->lru_next) {
		MINI_ASSERT(state_of(m, id) == state);
		MINI_ASSERT(kvt_cold(&m->table, id)->lru_prev == prev);
		MINI_ASSERT(++nr <= l->count);
		prev = id;
	}
	MINI_ASSERT(l->tail == prev && nr == l->count);
	return nr;
}

/* Every block is on the one list that fits its state and fastest copy. */
static void check_lists(struct mini *m)
{
	u32 nr[KVT_LIMBO + 1] = { 0 }, tier, i, id, ready = 0;

	for (id = 1; id < nr_ids(m); id++)
		nr[state_of(m, id)]++;
	MINI_ASSERT(check_list(m, &m->filling, KVT_FILLING) == nr[KVT_FILLING]);
	MINI_ASSERT(check_list(m, &m->limbo, KVT_LIMBO) == nr[KVT_LIMBO]);
	for (i = 0; i < KVT_TIERS * KVT_LISTS; i++) {
		const struct kvt_list *l;

		tier = i / KVT_LISTS;
		l = &m->policy.list[tier][i % KVT_LISTS];
		ready += check_list(m, l, KVT_READY);
		MINI_ASSERT(!l->count == !(m->policy.some[tier] >> i % KVT_LISTS & 1));
		for (id = l->head; id; id = kvt_cold(&m->table, id)->lru_next) {
			MINI_ASSERT(mini_fastest(kvt_hot(&m->table, id)) == tier);
			MINI_ASSERT(kvt_cold(&m->table, id)->on == i % KVT_LISTS);
		}
	}
	MINI_ASSERT(ready == nr[KVT_READY]);
}

/* Moves under way and MOVING bits are the same thing. */
static void check_moves(struct mini *m)
{
	u32 i, id, moving = 0, on = 0;

	for (id = 1; id < nr_ids(m); id++)
		moving += !!(ctl_of(m, id) & KVT_CTL_MOVING);
	for (i = 0; i < MINI_MOVES; i++) {
		if (!m->moves[i].on)
			continue;
		on++;
		MINI_ASSERT(ctl_of(m, m->moves[i].id) & KVT_CTL_MOVING);
	}
	MINI_ASSERT(moving == on);
}

void mini_check(struct mini *m)
{
	u32 tier;

	check_table(m);
	check_index(m);
	check_chains(m);
	for (tier = 0; tier < MINI_MEMS; tier++)
		check_mem(m, tier);
	check_places(m);
	check_log(m);
	check_lists(m);
	check_moves(m);
}
