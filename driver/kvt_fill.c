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
#include <linux/sort.h>

#include "kvt_internal.h"
#include "kvt_trace.h"

#define KVT_EXPIRE_SINGLE	4u	/* slots of one file that are taken one by one */
#define KVT_LIMBO_LOOK		(1 << 17)	/* pages of slots in limbo looked at in one pass */
#define KVT_LIMBO_COST		16		/* of a slot, as so many pages */
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
		struct kvt_ns *ns = kvt_ns_of(p, h->ns_group);

		kvt_list_del(&p->table, &p->filling, ids[i]);
		ns->filling_bytes -= kvt_slot_bytes(kvt_group_of(p, h->ns_group));
		kvt_count(p, ns, KVT_CNT_ABORTS, 1);
		/* MOVING keeps it from being freed by this. */
		kvt_block_die(p, ids[i]);
	}
	spin_unlock(&p->meta_lock);
	for (i = 0; i < nr; i++)
		kvt_block_wake(p, ids[i]);
}

/* Slots side by side in a file's fill view. */
struct kvt_fill_run {
	const struct kvt_ns *ns;
	const struct kvt_tier *t;
	u32 owner;
	u32 page;
	u32 nr;
};

static void kvt_fill_run_end(struct kvt_fill_run *r)
{
	if (r->nr)
		kvt_unmap(r->ns, kvt_fill_base(r->owner) + kvt_window_offset(r->t, r->page),
			  (u64)r->nr << KVT_PAGE_SHIFT);
	r->nr = 0;
}

/* One more slot, of a reservation that the caller has claimed. */
static void kvt_fill_run_add(struct kvt_pool *p, struct kvt_fill_run *r, u32 id)
{
	const struct kvt_hot *h = kvt_hot(&p->table, id);
	u32 nr = kvt_group_of(p, h->ns_group)->slot_pages;
	u32 owner = kvt_cold(&p->table, id)->owner;

	if (r->nr && r->owner == owner && r->ns == kvt_ns_of(p, h->ns_group) &&
	    r->t == p->tiers[h->mem_tier]) {
		if (r->page + r->nr == h->mem_page) {
			r->nr += nr;
			return;
		}
		if (h->mem_page + nr == r->page) {
			r->page = h->mem_page;
			r->nr += nr;
			return;
		}
	}
	kvt_fill_run_end(r);
	*r = (struct kvt_fill_run) {
		.ns = kvt_ns_of(p, h->ns_group), .t = p->tiers[h->mem_tier],
		.owner = owner, .page = h->mem_page, .nr = nr,
	};
}

/* Those of at most 64 claimed reservations, as bits, that are in no arena. KVT_NIL: none. */
static u64 kvt_fill_outside(struct kvt_pool *p, const u32 *ids, u32 nr)
{
	u64 outside = 0;
	u32 i;

	spin_lock(&p->meta_lock);
	for (i = 0; i < nr; i++) {
		const struct kvt_hot *h = kvt_hot(&p->table, ids[i]);

		if (ids[i] != KVT_NIL &&
		    !kvt_mem_region_of(&p->tiers[h->mem_tier]->mem, h->mem_page)->arena)
			outside |= BIT_ULL(i);
	}
	spin_unlock(&p->meta_lock);
	return outside;
}

/**
 * kvt_fill_revoke() - take slots out of their files' fill views
 * @p:   pool; may sleep, after kvt_map_barrier()
 * @ids: reservations claimed by the caller, KVT_NIL among them
 * @nr:  at most KVT_CHUNK_KEYS
 *
 * Arenas stay. Each call to the kernel goes over all mappings there, so slots side by side
 * are taken at once.
 * Return: bit for each that was.
 */
u64 kvt_fill_revoke(struct kvt_pool *p, const u32 *ids, u32 nr)
{
	u64 outside = kvt_fill_outside(p, ids, nr);
	struct kvt_fill_run run = {};
	u32 i;

	for (i = 0; i < nr; i++) {
		if (outside & BIT_ULL(i))
			kvt_fill_run_add(p, &run, ids[i]);
	}
	kvt_fill_run_end(&run);
	BUILD_BUG_ON(KVT_CHUNK_KEYS > 64);
	return outside;
}

/*
 * The slots of claimed reservations without a name: free, or in limbo. @look: bit for each
 * that may still be referred to.
 */
static void kvt_filling_settle(struct kvt_pool *p, const u32 *ids, u32 nr, u64 look)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		const struct kvt_hot *h = kvt_hot(&p->table, ids[i]);

		/* One look: if it is wrong, limbo looks again. */
		if ((look & BIT_ULL(i)) &&
		    !kvt_pages_foreign(p->tiers[h->mem_tier], h->mem_page,
				       kvt_group_of(p, h->ns_group)->slot_pages))
			look &= ~BIT_ULL(i);
	}
	spin_lock(&p->meta_lock);
	for (i = 0; i < nr; i++) {
		struct kvt_hot *h = kvt_hot(&p->table, ids[i]);

		if (look & BIT_ULL(i)) {
			kvt_ctl_update(h, 0, 0, KVT_CTL_STATE | KVT_CTL_MOVING, KVT_LIMBO);
			kvt_list_add_head(&p->table, &p->limbo, ids[i]);
			continue;
		}
		kvt_slot_unfix(p, p->tiers[h->mem_tier], h->mem_page);
		kvt_ctl_update(h, 0, 0, KVT_CTL_MOVING, 0);
		kvt_block_reap(p, ids[i]);
	}
	spin_unlock(&p->meta_lock);
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
	u64 look = 0;

	kvt_filling_unname(p, ids, nr);
	if (mapped) {
		kvt_map_barrier(p);
		look = kvt_fill_revoke(p, ids, nr);
	}
	kvt_filling_settle(p, ids, nr, look);
}

/* Claim the oldest reservations if they are too old, and take their names. */
static u32 kvt_expire_claim(struct kvt_pool *p, u32 *ids, u32 max)
{
	u32 nr = 0, id, now = kvt_now_ms();

	spin_lock(&p->meta_lock);
	for (id = p->filling.tail; id != KVT_NIL && nr < max;
	     id = kvt_cold(&p->table, id)->lru_prev) {
		struct kvt_cold *c = kvt_cold(&p->table, id);

		if (kvt_age_ms(now, c->touch_ms) < p->reservation_timeout_ms)
			break;
		if (kvt_filling_claim(p, id, kvt_hot(&p->table, id)->gen, c->owner))
			ids[nr++] = id;
	}
	spin_unlock(&p->meta_lock);
	if (nr)
		kvt_filling_unname(p, ids, nr);
	return nr;
}

/*
 * Whose it is: a file of a namespace. The number of a file that was closed while this one was
 * being taken back may be another's by now, of another namespace.
 */
static u64 kvt_expire_of(const struct kvt_table *t, u32 id)
{
	return (u64)kvt_cold(t, id)->owner << 32 | kvt_hot(t, id)->ns_group >> KVT_NS_SHIFT;
}

static int kvt_expire_cmp(const void *a, const void *b, const void *priv)
{
	u64 of_a = kvt_expire_of(priv, *(const u32 *)a), of_b = kvt_expire_of(priv, *(const u32 *)b);

	return of_a < of_b ? -1 : of_a > of_b;
}

/* Take write access to expired slots, sorted by their files. */
static void kvt_expire_revoke(struct kvt_pool *p, const u32 *ids, u32 nr)
{
	u32 i, end;
	u64 of;

	kvt_map_barrier(p);
	for (i = 0; i < nr; i = end) {
		of = kvt_expire_of(&p->table, ids[i]);
		end = i + 1;
		while (end < nr && kvt_expire_of(&p->table, ids[end]) == of)
			end++;
		if (end - i <= KVT_EXPIRE_SINGLE)
			kvt_fill_revoke(p, ids + i, end - i);
		else	/* All of it, which costs its file some faults. */
			kvt_unmap(kvt_ns_of(p, kvt_hot(&p->table, ids[i])->ns_group),
				  kvt_fill_base((u32)(of >> 32)), KVT_WINDOW_BYTES);
		cond_resched();
	}
}

/**
 * kvt_filling_expire() - take back reservations that are too old
 * @p: pool; called by its worker and by its clock, whoever comes first; srcu held, sleeps
 *
 * A file may have very many, in slots that are nowhere side by side, and very many mappings
 * over each: it loses its fill view once for a batch. One batch, so that others get their
 * turn.
 * Return: how many.
 */
u32 kvt_filling_expire(struct kvt_pool *p)
{
	u32 *ids = p->expired, nr = 0, got, i;

	if (!mutex_trylock(&p->clock.expiring))
		return 0;
	do {
		got = kvt_expire_claim(p, ids + nr,
				       min(KVT_CHUNK_KEYS, KVT_EXPIRE_BATCH - nr));
		nr += got;
	} while (got == KVT_CHUNK_KEYS && nr < KVT_EXPIRE_BATCH);
	if (!nr)
		goto unlock;
	sort_r(ids, nr, sizeof(*ids), kvt_expire_cmp, NULL, &p->table);
	kvt_expire_revoke(p, ids, nr);
	for (i = 0; i < nr; i += got) {
		got = min(KVT_CHUNK_KEYS, nr - i);
		kvt_filling_settle(p, ids + i, got, kvt_fill_outside(p, ids + i, got));
		cond_resched();
	}
	if (nr == KVT_EXPIRE_BATCH)
		kvt_reclaim_kick(p);
unlock:
	mutex_unlock(&p->clock.expiring);
	return nr;
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
		kvt_kept_mem(ns, -(s64)kvt_slot_bytes(g));
		kvt_limit_count(ns, t, kvt_slot_bytes(g), -1);
		return;
	}
	kvt_mem_slot_assign(&t->mem, page, id);
	h = kvt_hot(&p->table, id);
	h->ns_group = ns_group;
	h->flags = 0;
	kvt_block_mem_set(p, id, t, page);
	kvt_slot_fix(p, t, page, true);
	ns->nr_blocks++;
	kvt_ns_use(ns, kvt_slot_bytes(g));
	atomic_set_release(&h->ctl, KVT_LIMBO | KVT_CTL_MEM);
	kvt_list_add_head(&p->table, &p->limbo, id);
}

/* The oldest slot in limbo: free it if it can be. -1: there is none. @budget: see below. */
static int kvt_limbo_one(struct kvt_pool *p, s32 *budget)
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
	*budget -= nr + KVT_LIMBO_COST;
	/* Nobody but this worker takes a block out of limbo. */
	foreign = kvt_pages_foreign(p->tiers[h->mem_tier], h->mem_page, nr);
	spin_lock(&p->meta_lock);
	kvt_list_del(&p->table, &p->limbo, id);
	if (foreign) {
		kvt_list_add_head(&p->table, &p->limbo, id);
	} else {
		kvt_slot_unfix(p, p->tiers[h->mem_tier], h->mem_page);
		kvt_ctl_update(h, 0, 0, KVT_CTL_STATE, KVT_DEAD);
		kvt_block_reap(p, id);
	}
	spin_unlock(&p->meta_lock);
	return !foreign;
}

/**
 * kvt_limbo_check() - free slots whose foreign references have gone
 * @p: pool; srcu held; called by its worker only
 *
 * All of them in turn, by what a look costs: who pins very many small slots does not keep
 * others' from being looked at.
 * Return: whether there was any.
 */
bool kvt_limbo_check(struct kvt_pool *p)
{
	u32 n = READ_ONCE(p->limbo.count);
	s32 budget = KVT_LIMBO_LOOK;
	bool any = false;
	int got;

	while (n-- && budget > 0) {
		got = kvt_limbo_one(p, &budget);
		if (got < 0)
			break;
		any |= got;
		cond_resched();
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
 * too, and of exported buffers, which costs their files a fault.
 */
void kvt_fill_lost(struct kvt_pool *p, struct kvt_tier *t)
{
	u32 ids[KVT_CHUNK_KEYS], nr, id = KVT_NIL;

	kvt_unmap_all(p, KVT_WINDOW_BYTES, 0);
	/* By ids: others' reservations can be many, and would be looked at for each batch. */
	do {
		nr = kvt_fill_lost_some(p, t, &id, ids);
		if (nr) {
			kvt_filling_unname(p, ids, nr);
			kvt_filling_settle(p, ids, nr, kvt_fill_outside(p, ids, nr));
		}
		cond_resched();
	} while (kvt_table_valid(&p->table, id));
}
