// SPDX-License-Identifier: GPL-2.0
/*
 * Bad pages of memory tiers: what is on them is lost, and they are not used again.
 *
 * A page is bad when PageHWPoison is set on it. Dax devices are told of that and
 * report it (kvt_tier_poison()); of pages of the page allocator the pool's worker hears a little
 * later (kvt_frames.c), if nobody comes upon them before (kvt_poison_found()). From the first one
 * on the tier's slots are looked at before they are handed out: t->poisoned. A copy by the
 * processor that ends with a machine check reports its page itself (kvt_tier_hit_poison()).
 *
 * What becomes of a bad page, under the meta lock and all at once:
 *   in a READY block's slot   the block is where it has a clean copy; without one it is a
 *                             miss. Its slot is retired when the last lease and move are
 *                             over, as any dead block's is freed
 *   in a slot being filled    COMMIT says STALE and ends the reservation
 *   where a move is going     the move is void; the block stays where it was
 *   in a free slot or piece   it is retired
 * See core/kvt_mem.h for what retired means. Nobody waits for references to a bad
 * page to go: nothing else will be put there.
 */
#include "kvt_internal.h"
#include "kvt_trace.h"

/* A page is bad: see above. Meta lock held. */
static void kvt_poison_page(struct kvt_tier *t, u32 page)
{
	struct kvt_region *reg = kvt_mem_region_of(&t->mem, page);
	struct kvt_pool *p = t->pool;
	struct kvt_owner *o = NULL;
	struct kvt_hot *h;
	u32 id, slot, ctl;

	if (reg)
		o = &kvt_group_of(p, reg->ns_group)->owner[t->id];
	id = kvt_mem_poison(&t->mem, o, page);
	if (id == KVT_NIL)
		return;
	h = kvt_hot(&p->table, id);
	ctl = kvt_ctl(h);
	kvt_mem_block_at(&t->mem, page, &slot);
	if (kvt_ctl_state(ctl) != KVT_READY || !(ctl & KVT_CTL_MEM) ||
	    h->mem_tier != t->id || h->mem_page != slot)
		return;
	if (!kvt_copy_saves(p, id, false))
		kvt_block_lose(p, id, KVT_WHY_IO);
}

/**
 * kvt_poison_look() - look for bad pages, and see to those that there are
 * @t:    memory tier; meta lock held
 * @page: first page
 * @nr:   how many
 * Return: whether any is bad.
 */
bool kvt_poison_look(struct kvt_tier *t, u32 page, u32 nr)
{
	bool any = false;
	u32 i;

	lockdep_assert_held(&t->pool->meta_lock);
	for (i = 0; i < nr; i++) {
		if (!kvt_tier_page_bad(t, page + i))
			continue;
		any = true;
		kvt_poison_page(t, page + i);
	}
	if (any)
		WRITE_ONCE(t->poisoned, true);
	return any;
}

/**
 * kvt_poison_found() - somebody has come upon bad pages
 * @t:    memory tier; no spinlock held
 * @page: first page to look at
 * @nr:   how many
 */
void kvt_poison_found(struct kvt_tier *t, u32 page, u32 nr)
{
	spin_lock(&t->pool->meta_lock);
	kvt_poison_look(t, page, nr);
	spin_unlock(&t->pool->meta_lock);
}

/* See tier.h. */
void kvt_tier_hit_poison(struct kvt_tier *t, u32 page)
{
#ifdef CONFIG_MEMORY_FAILURE
	/* The machine check has ended a copy that expected one, and told nobody. */
	memory_failure(page_to_pfn(t->ops->page(t, page)), 0);
#endif
	kvt_poison_found(t, page, 1);
}

/**
 * kvt_poison_scan() - retire what was bad before the tier was attached
 * @t: memory tier that is not published yet; may sleep
 */
void kvt_poison_scan(struct kvt_tier *t)
{
	u32 r;

	for (r = 0; t->poisoned && r < t->nr_pieces; r++) {
		kvt_poison_found(t, r * KVT_PIECE_PAGES, KVT_PIECE_PAGES);
		cond_resched();
	}
}

/**
 * kvt_poison_unmap() - nobody is to have bad pages mapped; they are not mapped again
 * @t:    memory tier; no spinlock held, may sleep
 * @page: first page
 * @nr:   how many; others among them are mapped again when they are touched
 */
void kvt_poison_unmap(struct kvt_tier *t, u32 page, u32 nr)
{
	struct kvt_pool *p = t->pool;

	kvt_map_barrier(p);
	kvt_unmap_all(p, kvt_window_offset(t, page), (u64)nr << KVT_PAGE_SHIFT);
	/* Whoever fills or exports it: seldom enough that all may fault once more. */
	kvt_unmap_all(p, KVT_WINDOW_BYTES, 0);
}

/*
 * Has the tier pages there now, and nobody is about to give them back: those of a piece that is
 * charged to somebody go with its region, others' while the piece is in none. Meta lock held.
 */
static bool kvt_poison_there(struct kvt_tier *t, u32 page)
{
	const struct kvt_region *reg = kvt_mem_region_of(&t->mem, page);

	lockdep_assert_held(&t->pool->meta_lock);
	if (t->charges)
		return reg && (reg->state == KVT_REGION_ACTIVE ||
			       reg->state == KVT_REGION_DRAINING);
	return reg || !kvt_mem_is_absent(&t->mem, page / KVT_PIECE_PAGES);
}

/**
 * kvt_poison_told() - pages in one piece may have become bad
 * @t:    memory tier of the page allocator's; no spinlock held, may sleep
 * @page: first page
 * @nr:   how many
 * Return: whether any is, and is to be unmapped.
 */
bool kvt_poison_told(struct kvt_tier *t, u32 page, u32 nr)
{
	bool any;

	kvt_pool_top_up(t->pool, nr);
	spin_lock(&t->pool->meta_lock);
	any = kvt_poison_there(t, page) && kvt_poison_look(t, page, nr);
	spin_unlock(&t->pool->meta_lock);
	return any;
}

/**
 * kvt_tier_poison() - the hardware cannot keep what is in these pages
 * @t:    memory tier; may sleep. See tier.h
 * @page: first page
 * @nr:   how many
 */
void kvt_tier_poison(struct kvt_tier *t, u32 page, u32 nr)
{
	struct kvt_pool *p = t->pool;
	bool mapped;

	kvt_tier_fault(t, -EHWPOISON, false);
	WRITE_ONCE(t->poisoned, true);
	/* Each block may need one more entry. */
	kvt_pool_top_up(p, min(nr, KVT_PIECE_PAGES));
	spin_lock(&p->meta_lock);
	/* Before it has its space: kvt_poison_scan() will come. */
	if (t->mem.pieces.stretch)
		kvt_poison_look(t, page, nr);
	mapped = t->state != KVTIER_TIER_ATTACHING;
	spin_unlock(&p->meta_lock);
	if (mapped)
		kvt_poison_unmap(t, page, nr);
}
