// SPDX-License-Identifier: GPL-2.0
/*
 * Space of the small store: regions, moves between tiers, the log's cleaner. See
 * mini.h.
 */
#include "mini.h"

#define ARENA_FILE	77u
#define LEASES		(~0u << KVT_CTL_LEASE_SHIFT)

static void mini_scrub(struct mini_tier *t, const struct kvt_region *reg)
{
	memset(t->content + (size_t)reg->first * KVT_PIECE_PAGES, 0,
	       (size_t)reg->nr_pieces * KVT_PIECE_PAGES * sizeof(u64));
}

static u32 mini_owner_of(const struct kvt_region *reg)
{
	return (reg->ns_group >> 4) * MINI_GROUPS + (reg->ns_group & 15);
}

static bool mini_region_get(struct mini *m, u32 tier, u32 owner)
{
	struct mini_tier *t = &m->tier[tier];
	u32 slot_pages = mini_slot_pages[owner], pieces;
	struct kvt_region *reg;

	pieces = kvt_mem_growth(&t->owner[owner], slot_pages, mini_pieces[tier] / 3);
	MINI_ASSERT(pieces);
	reg = malloc(sizeof(*reg) + kvt_run_slots(pieces, slot_pages) * sizeof(u32));
	while (kvt_pieces_low(&t->mem.pieces)) {
		union kvt_split *split = malloc(sizeof(*split));

		MINI_ASSERT(split && kvt_pieces_add(&t->mem.pieces, split));
	}
	MINI_ASSERT(reg && !kvt_mem_wants(&t->mem));
	if (!kvt_mem_region_alloc(&t->mem, &t->owner[owner], reg, 1 + owner / MINI_GROUPS,
				  mini_ns_group(owner), slot_pages, pieces)) {
		free(reg);
		return false;
	}
	if (reg->state == KVT_REGION_DIRTY) {
		mini_scrub(t, reg);
		kvt_mem_region_open(&t->mem, &t->owner[owner], reg);
	}
	return true;
}

static u32 mini_arena_region(struct mini_tier *t, u32 tier, u32 owner)
{
	u32 r;

	for (r = 0; r < mini_pieces[tier]; r++) {
		const struct kvt_region *reg = kvt_mem_region(&t->mem, r);

		if (reg && reg->arena && reg->ns_group == mini_ns_group(owner))
			return r;
	}
	return KVT_NO_REGION;
}

/* A slot for @id, in the owner's arena or anywhere else of its own. */
u32 mini_slot_get(struct mini *m, u32 tier, u32 owner, bool arena, u32 id)
{
	struct mini_tier *t = &m->tier[tier];
	const struct kvt_region *reg;
	u32 r = KVT_NO_REGION, page, i;

	if (arena) {
		r = mini_arena_region(t, tier, owner);
		if (r == KVT_NO_REGION)
			return KVT_NO_PAGE;
	}
	page = kvt_mem_slot_alloc(&t->mem, &t->owner[owner], r, id);
	if (page == KVT_NO_PAGE && !arena && mini_region_get(m, tier, owner))
		page = kvt_mem_slot_alloc(&t->mem, &t->owner[owner], KVT_NO_REGION, id);
	if (page == KVT_NO_PAGE)
		return page;
	reg = kvt_mem_region_of(&t->mem, page);
	MINI_ASSERT(reg && reg->ns_group == mini_ns_group(owner));
	MINI_ASSERT(!!reg->arena == arena);
	/* No byte of another namespace and no bad page is ever handed out. */
	for (i = 0; i < mini_slot_pages[owner]; i++) {
		u64 was = t->content[page + i] & 0xff;

		MINI_ASSERT(!t->bad[page + i]);
		MINI_ASSERT(!was || was == 1 + owner / MINI_GROUPS);
	}
	return page;
}

void mini_slot_put(struct mini *m, u32 tier, u32 page)
{
	struct mini_tier *t = &m->tier[tier];
	const struct kvt_region *reg = kvt_mem_region_of(&t->mem, page);

	MINI_ASSERT(reg);
	kvt_mem_slot_free(&t->mem, &t->owner[mini_owner_of(reg)], page);
}

void mini_log_put(struct mini *m, u32 id)
{
	struct kvt_hot *h = kvt_hot(&m->table, id);

	free(kvt_log_free(&m->log, h->log_unit, mini_slot_pages[mini_owner(h)]));
}

/* What is in the log is a copy from now on, or not any more. */
void mini_log_copy(struct mini *m, u32 id, bool copy)
{
	struct kvt_hot *h = kvt_hot(&m->table, id);

	kvt_log_copy(&m->log, h->log_unit, mini_slot_pages[mini_owner(h)], copy);
}

static u32 mini_log_get(struct mini *m, enum kvt_log_head head, u32 units, u32 id)
{
	u32 *ids, *back, unit;

	if (kvt_log_needs_segment(&m->log, head, units)) {
		ids = malloc(MINI_SEG_UNITS * sizeof(u32));
		MINI_ASSERT(ids);
		back = kvt_log_open(&m->log, head, ids, MINI_SEG_UNITS);
		free(back);
		if (back == ids)
			return KVT_NO_UNIT;
	}
	unit = kvt_log_alloc(&m->log, head, units, id);
	MINI_ASSERT(unit != KVT_NO_UNIT);
	return unit;
}

static u64 *mini_bytes(struct mini *m, u32 tier, u32 addr)
{
	return tier == MINI_LOG ? &m->log_content[addr] : &m->tier[tier].content[addr];
}

/* Find room for a claimed block at @to and note the move. */
static bool mini_move_begin(struct mini *m, u32 id, u32 to)
{
	struct kvt_hot *h = kvt_hot(&m->table, id);
	u32 owner = mini_owner(h), from = mini_fastest(h), nr, addr;

	for (nr = 0; nr < MINI_MOVES && m->moves[nr].on; nr++)
		;
	addr = nr == MINI_MOVES ? KVT_NO_PAGE :
	       to == MINI_LOG ?
	       mini_log_get(m, KVT_HEAD_DEMOTE, mini_slot_pages[owner], id) :
	       mini_slot_get(m, to, owner, false, id);
	if (addr == KVT_NO_PAGE) {
		MINI_ASSERT(kvt_ctl_update(h, KVT_CTL_MOVING, KVT_CTL_MOVING,
					   KVT_CTL_MOVING, 0));
		return false;
	}
	m->moves[nr] = (struct mini_move){
		.on = true, .id = id, .src_tier = from, .dst_tier = to, .dst_addr = addr,
		.src_addr = from == MINI_LOG ? h->log_unit : h->mem_page,
	};
	return true;
}

/* Leave the memory tier without a move: the log has the bytes already. */
static bool mini_shed(struct mini *m, u32 id)
{
	struct kvt_hot *h = kvt_hot(&m->table, id);
	u32 from = h->mem_tier;

	if (!kvt_ctl_update(h, KVT_CTL_STATE | KVT_CTL_MOVING | KVT_CTL_ARENA | LEASES,
			    KVT_READY, KVT_CTL_MEM, 0))
		return false;
	mini_log_copy(m, id, false);
	mini_slot_put(m, from, h->mem_page);
	m->policy.ops->remove(&m->policy, from, id);
	m->policy.ops->insert(&m->policy, MINI_LOG, id);
	return true;
}

/* Start the move of the least valuable block of @from to @to. */
bool mini_demote_begin(struct mini *m, u32 from, u32 to)
{
	u32 budget = 4, id = m->policy.ops->next(&m->policy, from, false, &budget);
	struct kvt_hot *h;

	kvt_policy_searched(&m->policy);
	if (id == KVT_NIL)
		return false;
	h = kvt_hot(&m->table, id);
	if ((kvt_ctl(h) & KVT_CTL_LOG) && (kvt_ctl(h) & KVT_CTL_MEM)) {
		if (mini_shed(m, id))
			return true;
	} else if (kvt_move_try(h)) {
		return mini_move_begin(m, id, to);
	}
	m->policy.ops->skip(&m->policy, from, id);
	return false;
}

bool mini_promote_begin(struct mini *m, u32 id, u32 to)
{
	struct kvt_hot *h = kvt_hot(&m->table, id);

	if (mini_fastest(h) <= to || !kvt_move_try(h))
		return false;
	return mini_move_begin(m, id, to);
}

static void mini_unplace(struct mini *m, const struct mini_move *mv)
{
	u32 units = mini_slot_pages[mini_owner(kvt_hot(&m->table, mv->id))];

	if (mv->dst_tier == MINI_LOG)
		free(kvt_log_free(&m->log, mv->dst_addr, units));
	else
		mini_slot_put(m, mv->dst_tier, mv->dst_addr);
}

/* Take the claimed block from where it was; false: somebody relies on it. */
static bool mini_leave(struct mini *m, const struct mini_move *mv, bool keep_log)
{
	struct kvt_hot *h = kvt_hot(&m->table, mv->id);

	if (mv->src_tier == MINI_LOG) {
		if (kvt_ctl_state(kvt_ctl(h)) != KVT_READY)
			return false;
		if (!keep_log && kvt_ctl_update(h, 0, 0, KVT_CTL_LOG, 0))
			mini_log_put(m, mv->id);
		return true;
	}
	if (!kvt_ctl_update(h, KVT_CTL_STATE | KVT_CTL_MEM | LEASES,
			    KVT_READY | KVT_CTL_MEM, KVT_CTL_MEM, 0))
		return false;
	mini_slot_put(m, mv->src_tier, mv->src_addr);
	return true;
}

/* The bytes have arrived, or @failed. @keep_log: promoted, and stays in the log. */
void mini_move_end(struct mini *m, u32 nr, bool failed, bool keep_log)
{
	struct mini_move *mv = &m->moves[nr];
	struct kvt_hot *h = kvt_hot(&m->table, mv->id);

	if (!mv->on)
		return;
	mv->on = false;
	memcpy(mini_bytes(m, mv->dst_tier, mv->dst_addr),
	       mini_bytes(m, mv->src_tier, mv->src_addr),
	       mini_slot_pages[mini_owner(h)] * sizeof(u64));
	if (mv->dst_tier == MINI_LOG)
		free(kvt_log_write_done(&m->log, mv->dst_addr));
	if (mv->dst_tier != MINI_LOG &&
	    kvt_mem_slot_poisoned(&m->tier[mv->dst_tier].mem, mv->dst_addr))
		failed = true;
	if (failed || !mini_leave(m, mv, keep_log)) {
		mini_unplace(m, mv);
		kvt_ctl_update(h, 0, 0, KVT_CTL_MOVING, 0);
		mini_reap(m, mv->id);
		return;
	}
	m->policy.ops->remove(&m->policy, mv->src_tier, mv->id);
	if (mv->dst_tier == MINI_LOG) {
		h->log_tier = MINI_LOG;
		h->log_unit = mv->dst_addr;
		kvt_ctl_update(h, 0, 0, KVT_CTL_MOVING, KVT_CTL_LOG);
	} else {
		h->mem_tier = (u8)mv->dst_tier;
		h->mem_page = mv->dst_addr;
		kvt_ctl_update(h, 0, 0, KVT_CTL_MOVING, KVT_CTL_MEM);
		if (mv->src_tier == MINI_LOG && keep_log)
			mini_log_copy(m, mv->id, true);
	}
	m->policy.ops->insert(&m->policy, mv->dst_tier, mv->id);
}

/* Take the least valuable leaf of a tier out of the pool. */
bool mini_evict(struct mini *m, u32 tier)
{
	u32 budget = 8, id = m->policy.ops->next(&m->policy, tier, true, &budget), ctl;

	kvt_policy_searched(&m->policy);
	if (id == KVT_NIL)
		return false;
	ctl = kvt_ctl(kvt_hot(&m->table, id));
	if (kvt_ctl_leases(ctl) ||
	    (ctl & (KVT_CTL_MOVING | KVT_CTL_PINNED | KVT_CTL_ARENA))) {
		m->policy.ops->skip(&m->policy, tier, id);
		return false;
	}
	m->on_gone(m->ctx, id);
	mini_kill(m, id);
	return true;
}

static struct kvt_region *mini_region_nth(struct mini *m, u32 tier, u32 nth)
{
	return kvt_mem_region_at(&m->tier[tier].mem, nth % mini_pieces[tier]);
}

static struct kvt_owner *mini_region_owner(struct mini *m, u32 tier,
					   const struct kvt_region *reg)
{
	return &m->tier[tier].owner[mini_owner_of(reg)];
}

bool mini_region_drain(struct mini *m, u32 tier, u32 nth)
{
	struct kvt_region *reg = mini_region_nth(m, tier, nth);

	if (!reg || reg->state != KVT_REGION_ACTIVE || reg->arena)
		return false;
	kvt_mem_region_drain(&m->tier[tier].mem, mini_region_owner(m, tier, reg), reg);
	return true;
}

bool mini_region_undrain(struct mini *m, u32 tier, u32 nth)
{
	struct kvt_region *reg = mini_region_nth(m, tier, nth);

	if (!reg || reg->state != KVT_REGION_DRAINING)
		return false;
	kvt_mem_region_undrain(&m->tier[tier].mem, mini_region_owner(m, tier, reg), reg);
	return true;
}

/* An emptied region goes on: @busy: into quarantine, else back. */
bool mini_region_finish(struct mini *m, u32 tier, u32 nth, bool busy, bool scrub)
{
	struct kvt_region *reg = mini_region_nth(m, tier, nth);
	struct mini_tier *t = &m->tier[tier];
	union kvt_split *split;

	if (!reg || reg->state == KVT_REGION_ACTIVE || reg->nr_used)
		return false;
	if (busy) {
		reg->state = KVT_REGION_QUARANTINED;
		return true;
	}
	reg->state = KVT_REGION_CLEANING;
	if (scrub)
		mini_scrub(t, reg);
	kvt_mem_region_free(&t->mem, mini_region_owner(m, tier, reg), reg,
			    (reg->ns_group >> 4) + 1, scrub);
	free(reg);
	while ((split = kvt_pieces_surplus(&t->mem.pieces)))
		free(split);
	return true;
}

/* Make a region without blocks an arena; or end one, whose blocks become free to move. */
bool mini_arena_set(struct mini *m, u32 tier, u32 nth, bool on)
{
	struct kvt_region *reg = mini_region_nth(m, tier, nth);
	u32 i, id;

	if (!reg || reg->state != KVT_REGION_ACTIVE || !!reg->arena == on ||
	    (on && reg->nr_used))
		return false;
	kvt_mem_region_arena(&m->tier[tier].mem, mini_region_owner(m, tier, reg), reg,
			     on ? ARENA_FILE : 0);
	for (i = 0; i < kvt_region_slots(reg); i++) {
		id = kvt_region_block(reg, i);
		if (id != KVT_NIL)
			kvt_ctl_update(kvt_hot(&m->table, id), 0, 0, KVT_CTL_ARENA, 0);
	}
	return true;
}

/* A page goes bad. The block that lives there, or KVT_NIL: none, or not yet. */
u32 mini_poison(struct mini *m, u32 tier, u32 page)
{
	struct mini_tier *t = &m->tier[tier];
	const struct kvt_region *reg = kvt_mem_region_of(&t->mem, page);
	u32 id = kvt_mem_poison(&t->mem, reg ? mini_region_owner(m, tier, reg) : NULL, page);
	struct kvt_hot *h = kvt_hot(&m->table, id);
	u32 first = 0;

	t->bad[page] = true;
	t->nr_bad++;
	if (id == KVT_NIL)
		return KVT_NIL;
	MINI_ASSERT(kvt_mem_block_at(&t->mem, page, &first) == id);
	return (kvt_ctl(h) & KVT_CTL_MEM) && h->mem_tier == tier && h->mem_page == first ?
	       id : KVT_NIL;
}

/* Carry one live block of a segment forward, or just drop its copy there. */
static void mini_carry(struct mini *m, u32 id)
{
	struct kvt_hot *h = kvt_hot(&m->table, id);
	u32 units = mini_slot_pages[mini_owner(h)], unit;

	if (kvt_ctl(h) & KVT_CTL_MEM) {
		if (kvt_ctl_update(h, KVT_CTL_STATE | KVT_CTL_MOVING, KVT_READY, KVT_CTL_LOG,
				   0)) {
			mini_log_copy(m, id, false);
			mini_log_put(m, id);
		}
		return;
	}
	if (!kvt_move_try(h))
		return;
	unit = mini_log_get(m, KVT_HEAD_CARRY, units, id);
	if (unit != KVT_NO_UNIT) {
		memcpy(&m->log_content[unit], &m->log_content[h->log_unit],
		       units * sizeof(u64));
		free(kvt_log_write_done(&m->log, unit));
		mini_log_put(m, id);
		h->log_unit = unit;
		m->nr_carried++;
	}
	kvt_ctl_update(h, 0, 0, KVT_CTL_MOVING, 0);
}

/* Empty the cheapest segment as far as its blocks can move. */
bool mini_log_clean(struct mini *m)
{
	u32 seg = kvt_log_victim(&m->log), i;
	struct kvt_seg *s;

	if (seg == KVT_NO_SEG)
		return false;
	s = &m->segs[seg];
	for (i = 0; i < s->nr_ids; i++) {
		struct kvt_hot *h = kvt_hot(&m->table, s->ids[i]);

		if ((kvt_ctl(h) & KVT_CTL_LOG) &&
		    kvt_log_seg_of(&m->log, h->log_unit) == seg)
			mini_carry(m, s->ids[i]);
	}
	free(kvt_log_clean_end(&m->log, seg));
	return true;
}
