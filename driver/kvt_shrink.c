// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of the system that gives way: tiers of kind "dram" and "node".
 *
 * When the system is short of memory it asks (a shrinker for each tier). What is free in
 * the tier it gets at once, in pieces of 2 MiB; what is missing is noted, and the worker moves or
 * evicts what is worth least and gives back what gets free then. Nobody waits for
 * that: who asks holds locks that the worker may need. Some of a tier always stays, see
 * kvt_shrink_floor().
 *
 * When it has not been asked for a while, and the tier is short of room, the worker takes
 * pieces back, one by one. It is short of room above its low watermark, without a free
 * piece, and when pieces were needed that it did not have, see kvt_shrink_short(). On a
 * machine that has been up for long what is free is in fragments, so pages are moved and
 * cached ones let go for a piece if there is none; the tier itself is not asked meanwhile.
 * If that fails it is left alone for a while.
 *
 * The shrinker is not told on whose behalf it is asked: limits of control groups do not
 * reach it. A tier that is charged to these has another one, see kvt_charge.c, and no pages
 * that are free.
 *
 * Lock: the meta lock, which a shrinker only tries to take.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/nodemask.h>
#include <linux/shrinker.h>

#include "kvt_internal.h"
#include "kvt_pages.h"

#define KVT_SHRINK_BATCH	8u		/* pieces in one go */
#define KVT_SHRINK_PAUSE	(2 * HZ)	/* from the last question to the first return */
#define KVT_SHRINK_REST		(10 * HZ)	/* from a return that failed to the next */
#define KVT_SHRINK_SPARE	32u		/* no return if less than such a part is available */
#define KVT_SHRINK_KEEP		8u		/* a part like this of a tier stays */

/*
 * Pieces that stay: what is guaranteed to namespaces, wherever that is, with what can be
 * guaranteed to nobody beside it, and enough for the pool to go on.
 */
static u32 kvt_shrink_floor(const struct kvt_tier *t)
{
	u64 promised = READ_ONCE(t->pool->guaranteed_bytes) >> KVT_PIECE_SHIFT;

	return min_t(u64, t->nr_pieces,
		     max_t(u64, promised + max(promised / (KVT_FIX_SPARE - 1), 1ull),
			   DIV_ROUND_UP(t->nr_pieces, KVT_SHRINK_KEEP)));
}

/* Pieces that can be had, now or soon. Racy without the meta lock. */
static u32 kvt_shrink_room(const struct kvt_tier *t)
{
	u32 here = kvt_tier_present_bytes(t) >> KVT_PIECE_SHIFT, keep = kvt_shrink_floor(t);

	if (READ_ONCE(t->state) != KVTIER_TIER_ONLINE || READ_ONCE(t->pool->dying))
		return 0;
	return here > keep ? here - keep : 0;
}

/* The pages of up to @max free pieces, which are absent then. Meta lock held. */
static u32 kvt_shrink_take(struct kvt_tier *t, struct page **first, u32 max)
{
	u32 piece[KVT_SHRINK_BATCH], nr, i;

	lockdep_assert_held(&t->pool->meta_lock);
	max = min3(max, kvt_shrink_room(t), KVT_SHRINK_BATCH);
	nr = kvt_mem_pieces_leave(&t->mem, piece, max);
	for (i = 0; i < nr; i++)
		first[i] = t->ops->leave(t, piece[i]);
	return nr;
}

static void kvt_shrink_free(struct page **first, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++)
		kvt_pages_free(first[i]);
}

/* Is a node's need eased by what is in the tier. */
bool kvt_shrink_concerns(const struct kvt_tier *t, int node)
{
	return t->args.type == KVTIER_TIER_NODE ? t->args.node == node :
						  node_state(node, N_CPU);
}

static unsigned long kvt_shrink_count(struct shrinker *s, struct shrink_control *sc)
{
	struct kvt_tier *t = s->private_data;
	u32 room = 0;

	if (kvt_shrink_concerns(t, sc->nid) && !READ_ONCE(t->returning))
		room = kvt_shrink_room(t);
	return room ? (unsigned long)room * KVT_PIECE_PAGES : SHRINK_EMPTY;
}

static unsigned long kvt_shrink_scan(struct shrinker *s, struct shrink_control *sc)
{
	struct page *first[KVT_SHRINK_BATCH];
	struct kvt_tier *t = s->private_data;
	u32 want, nr;

	want = clamp_t(unsigned long, sc->nr_to_scan / KVT_PIECE_PAGES, 1, KVT_SHRINK_BATCH);
	if (!spin_trylock(&t->pool->meta_lock))
		return SHRINK_STOP;
	nr = kvt_shrink_take(t, first, want);
	t->shrink_want = min(t->shrink_want + want - nr, kvt_shrink_room(t));
	t->shrunk_at = jiffies;
	/* Whoever still needs them says so again. */
	t->short_of = 0;
	want = t->shrink_want;
	spin_unlock(&t->pool->meta_lock);
	kvt_shrink_free(first, nr);
	if (want)
		kvt_reclaim_kick(t->pool);
	return nr ? (unsigned long)nr * KVT_PIECE_PAGES : SHRINK_STOP;
}

/* Have a piece free: of what is empty, else of what is worth least. */
static bool kvt_shrink_empty(struct kvt_pool *p, struct kvt_tier *t)
{
	struct kvt_region *reg;
	u32 id, r;

	if (READ_ONCE(t->mem.nr_free) || kvt_region_release_empty(p, t, 1, NULL) ||
	    kvt_compact(p, t, 1))
		return true;
	if (!kvt_collect(p, t, !kvt_tier_has_lower(p, t), 0, NULL, &id, 1))
		return false;
	spin_lock(&p->meta_lock);
	reg = kvt_mem_region_of(&t->mem, kvt_hot(&p->table, id)->mem_page);
	/* The block keeps it until then; what is there by the end may be somebody else's. */
	r = kvt_region_drain(p, t, reg) ? reg->first : KVT_NO_REGION;
	spin_unlock(&p->meta_lock);
	kvt_demote(p, t, &id, 1, false);
	if (r != KVT_NO_REGION)
		kvt_evacuate_drained(p, t, r, NULL);
	return READ_ONCE(t->mem.nr_free);
}

/* Give back some of what was asked for. Whether anything was achieved. */
static bool kvt_shrink_give(struct kvt_pool *p, struct kvt_tier *t)
{
	struct page *first[KVT_SHRINK_BATCH];
	bool empty = kvt_shrink_empty(p, t);
	u32 nr = 0;

	spin_lock(&p->meta_lock);
	if (empty)
		nr = kvt_shrink_take(t, first, t->shrink_want);
	/* If nothing can go now, it will be asked for again. */
	t->shrink_want = nr ? t->shrink_want - nr : 0;
	spin_unlock(&p->meta_lock);
	kvt_shrink_free(first, nr);
	return nr;
}

/**
 * kvt_shrink_short() - pieces were needed that the tier does not have
 * @t:      memory tier, meta lock held
 * @pieces: so many, free
 *
 * That may be for want of a run of them, so one more than there are is asked for.
 */
void kvt_shrink_short(struct kvt_tier *t, u32 pieces)
{
	lockdep_assert_held(&t->pool->meta_lock);
	if (t->mem.nr_absent)
		t->short_of = max3(t->short_of, pieces, t->mem.nr_free + 1);
}

/*
 * Would more pieces be of use. Small blocks of many owners can take all pieces and fill few
 * of the slots, so that slots in use do not tell.
 */
static bool kvt_shrink_needs(struct kvt_pool *p, struct kvt_tier *t)
{
	return READ_ONCE(t->mem.nr_free) < max(READ_ONCE(t->short_of), 1u) ||
	       kvt_tier_over(p, t, READ_ONCE(p->watermark_low_percent));
}

/* There is memory for a piece, without anybody swapping for it. */
static int kvt_shrink_come(struct kvt_tier *t, u32 piece)
{
	int err;

	if (si_mem_available() < (long)(totalram_pages() / KVT_SHRINK_SPARE))
		return -ENOMEM;
	WRITE_ONCE(t->returning, true);
	err = t->ops->come(t, piece, false);
	WRITE_ONCE(t->returning, false);
	return err;
}

/* Take a piece back if it is of use, and there is memory. Whether it was. */
static bool kvt_shrink_return(struct kvt_pool *p, struct kvt_tier *t)
{
	u32 piece;

	if (time_before(jiffies, READ_ONCE(t->shrunk_at) + KVT_SHRINK_PAUSE) ||
	    time_before(jiffies, t->return_at) || !kvt_shrink_needs(p, t))
		return false;
	spin_lock(&p->meta_lock);
	piece = kvt_mem_piece_absent(&t->mem);
	spin_unlock(&p->meta_lock);
	/* Only the worker, which this is, makes absent pieces present. */
	if (piece == KVT_NO_REGION)
		return false;
	if (kvt_shrink_come(t, piece)) {
		t->return_at = jiffies + KVT_SHRINK_REST;
		return false;
	}
	spin_lock(&p->meta_lock);
	kvt_mem_piece_come(&t->mem, piece);
	if (t->mem.nr_free >= t->short_of)
		t->short_of = 0;
	spin_unlock(&p->meta_lock);
	return true;
}

/**
 * kvt_shrink_work() - give memory back that was asked for, or take some again
 * @p: pool; srcu held, may sleep; called by its worker
 * @t: ONLINE memory tier
 * Return: whether anything was achieved.
 */
bool kvt_shrink_work(struct kvt_pool *p, struct kvt_tier *t)
{
	if (t->charges)
		return kvt_charge_work(p, t);
	if (READ_ONCE(t->shrink_want))
		return kvt_shrink_give(p, t);
	return READ_ONCE(t->mem.nr_absent) && kvt_shrink_return(p, t);
}

/**
 * kvt_shrink_start() - let the system ask for a tier's memory
 * @t: complete tier; may sleep
 * Return: 0 or -ENOMEM.
 */
int kvt_shrink_start(struct kvt_tier *t)
{
	struct shrinker *s;

	kvt_charge_start(t);
	if (!t->ops->leave || t->charges)
		return 0;
	s = shrinker_alloc(SHRINKER_NUMA_AWARE, "kvtier%u-%s", t->pool->id, t->args.name);
	if (!s)
		return -ENOMEM;
	s->count_objects = kvt_shrink_count;
	s->scan_objects = kvt_shrink_scan;
	s->seeks = DEFAULT_SEEKS;
	s->batch = KVT_PIECE_PAGES;
	s->private_data = t;
	t->shrinker = s;
	t->return_at = jiffies;
	shrinker_register(s);
	return 0;
}

/**
 * kvt_shrink_stop() - it asks no more, and no question is under way
 * @t: tier; may sleep
 */
void kvt_shrink_stop(struct kvt_tier *t)
{
	if (t->shrinker)
		shrinker_free(t->shrinker);
	t->shrinker = NULL;
	kvt_charge_stop(t);
}
