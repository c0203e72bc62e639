// SPDX-License-Identifier: GPL-2.0
/*
 * Reservations that end without COMMIT: aborted, expired, or lost with their file.
 *
 * One party at a time may end a reservation: whoever sets MOVING on the FILLING
 * block (COMMIT does the same). Then the name goes, so that others can reserve it
 * anew, then write access, and last the slot. A slot whose pages are still
 * referenced from elsewhere goes to limbo, where the pool's worker looks at it
 * from time to time: a pinned page could be written to after the slot has been
 * given to another block.
 */
#include "kvt_internal.h"
#include "kvt_trace.h"

#define KVT_LOST_STEP	4096u	/* ids looked at before the lock is let go */

/* Is it a reservation of this file, whoever is ending it. Meta lock held. */
bool kvt_filling_mine(struct kvt_pool *p, u32 id, u32 gen, u32 owner)
{
	struct kvt_hot *h;

	lockdep_assert_held(&p->meta_lock);
	if (!kvt_table_valid(&p->table, id))
		return false;
	h = kvt_hot(&p->table, id);
	return h->gen == gen && kvt_cold(&p->table, id)->owner == owner &&
	       kvt_ctl_state(kvt_ctl(h)) == KVT_FILLING;
}

/**
 * kvt_filling_claim() - get the right to end a reservation
 * @p:     pool, meta lock held
 * @id:    any number
 * @gen:   generation it must have
 * @owner: file it must belong to
 * Return: true with MOVING set on a FILLING block.
 */
bool kvt_filling_claim(struct kvt_pool *p, u32 id, u32 gen, u32 owner)
{
	return kvt_filling_mine(p, id, gen, owner) &&
	       kvt_ctl_update(kvt_hot(&p->table, id), KVT_CTL_STATE | KVT_CTL_MOVING,
			      KVT_FILLING, 0, KVT_CTL_MOVING);
}

static void kvt_filling_unname(struct kvt_pool *p, const u32 *ids, u32 nr)
{
	u32 i;

	spin_lock(&p->meta_lock);
	for (i = 0; i < nr; i++) {
		struct kvt_hot *h = kvt_hot(&p->table, ids[i]);

		kvt_list_del(&p->table, &p->filling, ids[i]);
		kvt_count(p, kvt_ns_of(p, h->ns_group), KVT_CNT_ABORTS, 1);
		/* MOVING keeps it from being freed by this. */
		kvt_block_die(p, ids[i]);
	}
	spin_unlock(&p->meta_lock);
	for (i = 0; i < nr; i++)
		kvt_block_wake(p, ids[i]);
}

/* Take write access to one slot; true if its pages are referenced all the same. */
static bool kvt_filling_revoke(struct kvt_pool *p, u32 id)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);
	struct kvt_tier *t = p->tiers[h->mem_tier];
	u32 nr = kvt_group_of(p, h->ns_group)->slot_pages;

	if (kvt_slot_in_arena(t, h->mem_page))
		return false;
	kvt_fill_revoke(p, kvt_cold(&p->table, id)->owner, t, h->mem_page, nr);
	/* One look: if it is wrong, limbo looks again. */
	return kvt_pages_foreign(t, h->mem_page, nr);
}

/**
 * kvt_filling_abort() - end reservations
 * @p:      pool; srcu held or no tier can go; may sleep
 * @ids:    blocks claimed with kvt_filling_claim()
 * @nr:     at most KVT_CHUNK_KEYS
 * @mapped: their owner may have them mapped
 */
void kvt_filling_abort(struct kvt_pool *p, const u32 *ids, u32 nr, bool mapped)
{
	u64 foreign = 0;
	u32 i;

	kvt_filling_unname(p, ids, nr);
	if (mapped) {
		kvt_map_barrier(p);
		for (i = 0; i < nr; i++) {
			if (kvt_filling_revoke(p, ids[i]))
				foreign |= BIT_ULL(i);
		}
	}
	spin_lock(&p->meta_lock);
	for (i = 0; i < nr; i++) {
		struct kvt_hot *h = kvt_hot(&p->table, ids[i]);

		if (foreign & BIT_ULL(i)) {
			kvt_ctl_update(h, 0, 0, KVT_CTL_STATE | KVT_CTL_MOVING, KVT_LIMBO);
			kvt_list_add_head(&p->table, &p->limbo, ids[i]);
			continue;
		}
		kvt_ctl_update(h, 0, 0, KVT_CTL_MOVING, 0);
		kvt_block_reap(p, ids[i]);
	}
	spin_unlock(&p->meta_lock);
	BUILD_BUG_ON(KVT_CHUNK_KEYS > 64);
}

/**
 * kvt_filling_expire() - take back reservations that are too old
 * @p: pool; called by its worker
 * Return: how many.
 */
u32 kvt_filling_expire(struct kvt_pool *p)
{
	u32 ids[KVT_CHUNK_KEYS], nr = 0, total = 0, id, now = kvt_now_ms();

	do {
		nr = 0;
		spin_lock(&p->meta_lock);
		for (id = p->filling.tail; id != KVT_NIL && nr < ARRAY_SIZE(ids);
		     id = kvt_cold(&p->table, id)->lru_prev) {
			struct kvt_cold *c = kvt_cold(&p->table, id);

			if (kvt_age_ms(now, c->touch_ms) < p->reservation_timeout_ms)
				break;
			if (kvt_filling_claim(p, id, kvt_hot(&p->table, id)->gen, c->owner))
				ids[nr++] = id;
		}
		spin_unlock(&p->meta_lock);
		if (nr)
			kvt_filling_abort(p, ids, nr, true);
		total += nr;
	} while (nr == ARRAY_SIZE(ids));
	return total;
}

/**
 * kvt_limbo_add() - a slot that somebody may still write to, and no block is in
 * @p:        pool, meta lock held
 * @t:        memory tier
 * @page:     first page of a used slot, its pages referenced by whoever may write
 * @ns_group: its owner
 *
 * The slot gets an entry of its own. Without a free one it is retired, and lost until
 * its region goes: kvt_pool_grow() beforehand makes that unlikely.
 */
void kvt_limbo_add(struct kvt_pool *p, struct kvt_tier *t, u32 page, u32 ns_group)
{
	struct kvt_ns *ns = kvt_ns_of(p, ns_group);
	struct kvt_group *g = &ns->group[ns_group & 15];
	u32 id = kvt_table_alloc(&p->table);
	struct kvt_hot *h;

	lockdep_assert_held(&p->meta_lock);
	if (id == KVT_NIL) {
		kvt_mem_slot_retire(&t->mem, &g->owner[t->id], page);
		ns->mem_bytes -= kvt_slot_bytes(g);
		kvt_limit_count(ns, t, kvt_slot_bytes(g), -1);
		return;
	}
	kvt_mem_slot_assign(&t->mem, page, id);
	h = kvt_hot(&p->table, id);
	h->ns_group = ns_group;
	h->flags = 0;
	kvt_block_mem_set(p, id, t, page);
	ns->nr_blocks++;
	kvt_ns_use(ns, kvt_slot_bytes(g));
	atomic_set_release(&h->ctl, KVT_LIMBO | KVT_CTL_MEM);
	kvt_list_add_head(&p->table, &p->limbo, id);
}

/* The oldest slot in limbo: free it if it can be. -1: there is none. */
static int kvt_limbo_one(struct kvt_pool *p)
{
	struct kvt_hot *h;
	u32 id, nr;
	bool foreign;

	spin_lock(&p->meta_lock);
	id = p->limbo.tail;
	if (id == KVT_NIL) {
		spin_unlock(&p->meta_lock);
		return -1;
	}
	h = kvt_hot(&p->table, id);
	nr = kvt_group_of(p, h->ns_group)->slot_pages;
	spin_unlock(&p->meta_lock);
	/* Nobody but this worker takes a block out of limbo. */
	foreign = kvt_pages_foreign(p->tiers[h->mem_tier], h->mem_page, nr);
	spin_lock(&p->meta_lock);
	kvt_list_del(&p->table, &p->limbo, id);
	if (foreign) {
		kvt_list_add_head(&p->table, &p->limbo, id);
	} else {
		kvt_ctl_update(h, 0, 0, KVT_CTL_STATE, KVT_DEAD);
		kvt_block_reap(p, id);
	}
	spin_unlock(&p->meta_lock);
	return !foreign;
}

/**
 * kvt_limbo_check() - free slots whose foreign references have gone
 * @p: pool; srcu held; called by its worker only
 * Return: whether there was any.
 */
bool kvt_limbo_check(struct kvt_pool *p)
{
	u32 n = READ_ONCE(p->limbo.count);
	bool any = false;
	int got;

	n = min(n, 16u);
	while (n--) {
		got = kvt_limbo_one(p);
		if (got < 0)
			break;
		any |= got;
	}
	return any;
}

/*
 * Claim reservations on a tier, of the blocks from *@id on; *@id: from where to go on.
 * Returns how many.
 */
static u32 kvt_fill_lost_some(struct kvt_pool *p, struct kvt_tier *t, u32 *id, u32 *ids)
{
	u32 nr = 0, looks;

	spin_lock(&p->meta_lock);
	*id = max(*id, 1u);
	for (looks = 0; looks < KVT_LOST_STEP && nr < KVT_CHUNK_KEYS &&
	     kvt_table_valid(&p->table, *id); looks++, (*id)++) {
		struct kvt_hot *h = kvt_hot(&p->table, *id);

		if (kvt_ctl_state(kvt_ctl(h)) == KVT_FILLING && h->mem_tier == t->id &&
		    kvt_filling_claim(p, *id, h->gen, kvt_cold(&p->table, *id)->owner))
			ids[nr++] = *id;
	}
	spin_unlock(&p->meta_lock);
	return nr;
}

/**
 * kvt_fill_lost() - a memory tier is gone: take all write access to it
 * @p: pool; may sleep, after kvt_map_barrier()
 * @t: FAILED memory tier
 *
 * First of all at one go, arenas and reservations that somebody else is ending just now
 * included: he has not got to their mappings yet, maybe. All fill views go, of other tiers,
 * too, which costs their files a fault.
 */
void kvt_fill_lost(struct kvt_pool *p, struct kvt_tier *t)
{
	u32 ids[KVT_CHUNK_KEYS], nr, id = KVT_NIL;

	unmap_mapping_range(p->inode->i_mapping, (loff_t)KVT_WINDOW_BYTES, 0, 1);
	/* By ids: others' reservations can be many, and would be looked at for each batch. */
	do {
		nr = kvt_fill_lost_some(p, t, &id, ids);
		if (nr)
			kvt_filling_abort(p, ids, nr, true);
		cond_resched();
	} while (kvt_table_valid(&p->table, id));
}
