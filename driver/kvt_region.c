// SPDX-License-Identifier: GPL-2.0
/*
 * Regions change hands here.
 *
 * A region is taken from its owner in this order and no other:
 *   1. it has no used slot and hands out none (CLEANING, under the meta lock)
 *   2. faults that saw it otherwise are over (kvt_map_barrier)
 *   3. every mapping of it is gone (kvt_unmap() of its owner's files)
 *   4. nobody else holds a reference to any of its pages; else QUARANTINED until
 *      the worker finds that they are gone
 *   5. its pieces are free, and remember whose bytes they hold
 *   6. before another namespace gets them they are scrubbed
 * From 2 on no new reference can come: there is no mapping to take one through.
 */
#include <linux/delay.h>
#include <linux/sched/signal.h>
#include <linux/vmalloc.h>

#include "kvt_internal.h"

#define KVT_FOREIGN_TRIES	8
#define KVT_REFS_TRIES		4
#define KVT_SURPLUS_STEP	32u	/* splits that go with a region */

/* Pages that are looked at in one pass over a tier's quarantined regions. */
#define KVT_QUARANTINE_LOOK	(1u << 18)

/**
 * kvt_map_barrier() - wait for faults under way
 * @p: pool; may sleep
 *
 * What a fault may map has just been changed under the meta lock. When this
 * returns every fault has either seen that or has installed its entry, where the
 * caller's kvt_unmap() finds it.
 */
void kvt_map_barrier(struct kvt_pool *p)
{
	down_write(&p->map_sem);
	up_write(&p->map_sem);
}

/* The entries that map a page, and its references, if both stay the same for a moment. */
static bool kvt_page_counts(struct page *page, int *maps, int *refs)
{
	const struct folio *folio = page_folio(page);
	unsigned long flags;
	bool same;

	/* A moment is none if somebody else runs in it. */
	local_irq_save(flags);
	*maps = folio_mapcount(folio);
	smp_rmb();	/* in this order, see below */
	*refs = page_ref_count(page);
	smp_rmb();	/* same */
	same = folio_mapcount(folio) == *maps;
	smp_rmb();	/* same */
	same &= page_ref_count(page) == *refs;
	smp_rmb();	/* same */
	same &= folio_mapcount(folio) == *maps;
	local_irq_restore(flags);
	return same;
}

/*
 * References to a page beyond the tier's own one and its page-table entries, whoever's those
 * are: where somebody may have it mapped who is meant to. Entries need not be ours. Who has a
 * page in a pipe can have another part of the kernel map it (TCP_ZEROCOPY_RECEIVE), for
 * reading, where kvt_unmap() does not reach; so where nobody is to see what comes into the page
 * next, kvt_pages_alone() asks. Any
 * context; racy by nature, so callers first make sure that no new ones can come.
 * Entries do come and go, as the read view's. One that comes adds to the references first,
 * and one that goes leaves them last, so there are never fewer references than entries. But
 * they are not read at one time: of an entry that has gone when the references are read, and
 * another that comes after that, one look would see no less than two entries see, and take
 * somebody's reference for theirs. That would have to happen twice in a few loads. Where the
 * counts do not stand still there are some, to be on the safe side.
 */
static int kvt_page_extra_refs(struct page *page)
{
	int maps, refs, i;

	if (page_ref_count(page) == 1)
		return 0;	/* nearly always */
	for (i = 0; i < KVT_REFS_TRIES; i++) {
		if (kvt_page_counts(page, &maps, &refs))
			return refs - 1 - maps;
	}
	return 1;
}

/*
 * How many of these pages, from the first on, nobody else holds references to: up to one that
 * somebody does. @alone: entries that map them are such references, too. Bad pages do not count.
 * May sleep.
 */
static u32 kvt_pages_own(struct kvt_tier *t, u32 page, u32 nr, bool alone)
{
	u32 left = nr, run, i;
	int extra;

	/* Once for each page of each block that is stored: no call for a page. */
	for (; left; left -= run, page += run) {
		struct page *first = t->ops->page(t, page);

		run = kvt_page_run(page, left);
		for (i = 0; i < run; i++) {
			extra = alone ? page_ref_count(first + i) - 1 :
					kvt_page_extra_refs(first + i);
			if (extra <= 0)
				continue;
			if (!PageHWPoison(first + i))
				return nr - left + i;
			kvt_poison_found(t, page + i, 1);
		}
		cond_resched();
	}
	return nr;
}

/**
 * kvt_pages_foreign() - does somebody hold references to these pages, at a glance
 * @t:    memory tier
 * @page: first
 * @nr:   how many
 *
 * May say so wrongly of references that are just being dropped; for callers who
 * look again later. Bad pages do not count: they are retired, so whoever refers to
 * one keeps it from nobody. May sleep.
 */
bool kvt_pages_foreign(struct kvt_tier *t, u32 page, u32 nr)
{
	return kvt_pages_own(t, page, nr, false) < nr;
}

/**
 * kvt_pages_alone() - does nobody refer to these pages, or have them mapped, wherever
 * @t:    memory tier
 * @page: first
 * @nr:   how many
 *
 * For what has been unmapped and cannot be mapped again, or to find out whether anybody has it
 * at all. References that are just being dropped count, bad pages do not. May sleep.
 */
bool kvt_pages_alone(struct kvt_tier *t, u32 page, u32 nr)
{
	return kvt_pages_own(t, page, nr, true) == nr;
}

/*
 * As kvt_pages_own() for all of them. References that are just being dropped (a munmap or a finished
 * write elsewhere) look like somebody's for a moment, so such an answer is asked for again a few
 * times: some tens of milliseconds in all. May sleep.
 */
static bool kvt_pages_settle(struct kvt_tier *t, u32 page, u32 nr, bool alone)
{
	int i;

	for (i = 0; i < KVT_FOREIGN_TRIES; i++) {
		if (kvt_pages_own(t, page, nr, alone) == nr)
			return true;
		usleep_range(100 << i, 200 << i);
	}
	return false;
}

/**
 * kvt_slot_foreign() - does somebody hold references to these pages
 * @t:    memory tier
 * @page: first
 * @nr:   how many
 *
 * As kvt_pages_foreign(), but references that are just being dropped are waited for: some tens
 * of milliseconds in all. May sleep.
 */
bool kvt_slot_foreign(struct kvt_tier *t, u32 page, u32 nr)
{
	return !kvt_pages_settle(t, page, nr, false);
}

/**
 * kvt_slot_in_arena() - is a slot one of an arena
 * @t:    memory tier; no spinlock held
 * @page: in a slot with a block that the caller keeps there
 */
bool kvt_slot_in_arena(struct kvt_tier *t, u32 page)
{
	bool arena;

	spin_lock(&t->pool->meta_lock);
	arena = kvt_mem_region_of(&t->mem, page)->arena;
	spin_unlock(&t->pool->meta_lock);
	return arena;
}

static size_t kvt_region_bytes(u32 nr_slots)
{
	return struct_size_t(struct kvt_region, slot, nr_slots);
}

/*
 * Zeroed memory out of the caller's cgroup, which may be full: then he waits, and no tier waits
 * for him, if there is an @idx. -ENODEV, with nothing allocated: @t has left meanwhile.
 */
static int kvt_region_zalloc(struct kvt_tier *t, size_t bytes, int *idx, void *out)
{
	struct kvt_pool *p = t->pool;
	void *mem, **to = out;
	u32 id = t->id;

	if (idx)
		srcu_read_unlock(&p->srcu, *idx);
	kvt_assert_lingering(p);
	mem = kvzalloc(bytes, GFP_KERNEL_ACCOUNT);
	if (idx)
		*idx = srcu_read_lock(&p->srcu);
	/* One that has come to its place and memory since is as good: what is free is looked up. */
	if (idx && kvt_tier_at(p, id) != t) {
		kvfree(mem);
		return -ENODEV;
	}
	*to = mem;
	return mem ? 0 : -ENOMEM;
}

/* Make sure that a region's ends can be told apart from their neighbours. */
static int kvt_region_splits(struct kvt_tier *t, int *idx)
{
	union kvt_split *split;
	bool used = true;
	int err;

	/* Nobody gets a region where nothing is free. */
	while (used && READ_ONCE(t->mem.nr_free) && kvt_pieces_low(&t->mem.pieces)) {
		err = kvt_region_zalloc(t, sizeof(*split), idx, &split);
		if (err)
			return err;
		spin_lock(&t->pool->meta_lock);
		used = kvt_pieces_add(&t->mem.pieces, split);
		spin_unlock(&t->pool->meta_lock);
		if (!used)
			kvfree(split);
	}
	return 0;
}

/*
 * What joins makes splits spare, at both ends of a region and wherever an arena covers what was
 * many: some of them go each time.
 */
static void kvt_region_surplus(struct kvt_tier *t)
{
	union kvt_split *split;
	u32 i;

	lockdep_assert_held(&t->pool->meta_lock);
	for (i = 0; i < KVT_SURPLUS_STEP; i++) {
		split = kvt_pieces_surplus(&t->mem.pieces);
		kvt_defer_free(t->pool, split);
		if (!split)
			break;
	}
}

/* Make sure that one more region can be named; somebody else may be faster. */
static int kvt_region_number(struct kvt_tier *t, int *idx)
{
	union kvt_dirent *chunk;
	bool used;
	int err;

	if (!kvt_mem_dir_full(&t->mem))
		return kvt_region_splits(t, idx);
	err = kvt_region_zalloc(t, KVT_DIR_ENTRIES * sizeof(*chunk), idx, &chunk);
	if (err)
		return err;
	spin_lock(&t->pool->meta_lock);
	used = kvt_mem_dir_add(&t->mem, chunk);
	spin_unlock(&t->pool->meta_lock);
	if (!used)
		kvfree(chunk);
	return kvt_region_splits(t, idx);
}

/* Whose bytes are in a namespace's pieces: nobody knows if there are none, between regions. */
static u64 kvt_region_content(const struct kvt_tier *t, const struct kvt_ns *ns)
{
	return t->charges ? U64_MAX : ns->id;
}

/* Enter a record; -EAGAIN: others have taken the numbers or splits there were. */
static int kvt_region_enter(struct kvt_tier *t, struct kvt_ns *ns, u32 group, u32 nr_pieces,
			    u32 file_id, struct kvt_region *reg, bool *dirty)
{
	struct kvt_group *g = &ns->group[group];
	struct kvt_owner *o = &g->owner[t->id];
	struct kvt_pool *p = t->pool;
	int err = -ENOSPC;

	spin_lock(&p->meta_lock);
	/* First: with a free piece there is a number to be had, without it maybe never. */
	if (t->state != KVTIER_TIER_ONLINE || nr_pieces > t->mem.nr_free ||
	    kvt_kept_barred(p, ns)) {
		err = -ENOSPC;
	} else if (kvt_mem_wants(&t->mem)) {
		err = -EAGAIN;
	} else if (kvt_mem_region_alloc(&t->mem, o, reg, kvt_region_content(t, ns),
					kvt_ns_group(ns->idx, group), g->slot_pages,
					nr_pieces)) {
		ns->nr_regions++;
		p->meta_bytes += kvt_region_bytes(kvt_region_slots(reg));
		if (file_id)
			kvt_mem_region_arena(&t->mem, o, reg, file_id);
		*dirty = reg->state == KVT_REGION_DIRTY;
		kvt_region_surplus(t);
		err = reg->first;
	}
	spin_unlock(&p->meta_lock);
	return err;
}

static struct kvt_owner *kvt_region_owner(struct kvt_tier *t, const struct kvt_region *reg)
{
	return &kvt_group_of(t->pool, reg->ns_group)->owner[t->id];
}

/* The region's pages are nobody's: its pieces go back, its record goes. Meta lock held. */
static void kvt_region_return(struct kvt_tier *t, struct kvt_region *reg)
{
	struct kvt_ns *ns = kvt_ns_of(t->pool, reg->ns_group);

	ns->nr_regions--;
	t->nr_lost -= reg->retire;
	if (reg->retire)
		ns->kept.retired_bytes -= (u64)reg->nr_pieces << KVT_PIECE_SHIFT;
	t->pool->meta_bytes -= kvt_region_bytes(kvt_region_slots(reg));
	kvt_mem_region_free(&t->mem, kvt_region_owner(t, reg), reg, kvt_region_content(t, ns),
			    false);
	kvt_defer_free(t->pool, reg);
	kvt_region_surplus(t);
}

/* Wipe a DIRTY region, and see to bad pages, piece by piece. -EINTR on a fatal signal. */
static int kvt_region_wipe(struct kvt_tier *t, const struct kvt_region *reg)
{
	u32 i;

	for (i = reg->first; i < reg->first + reg->nr_pieces; i++) {
		/* An arena's may take minutes, and is nobody's but his who is being killed. */
		if (fatal_signal_pending(current))
			return -EINTR;
		if (kvt_pages_scrub(t, i * KVT_PIECE_PAGES, KVT_PIECE_PAGES))
			kvt_poison_found(t, i * KVT_PIECE_PAGES, KVT_PIECE_PAGES);
		cond_resched();
	}
	return 0;
}

/* A DIRTY region's owner can have it from now on; or it goes back as it is, on an error. */
static void kvt_region_wiped(struct kvt_tier *t, struct kvt_region *reg, int err)
{
	struct kvt_owner *o = kvt_region_owner(t, reg);

	spin_lock(&t->pool->meta_lock);
	if (!err) {
		kvt_mem_region_open(&t->mem, o, reg);
	} else {
		if (reg->arena)
			kvt_mem_region_arena(&t->mem, o, reg, 0);
		kvt_region_return(t, reg);
	}
	spin_unlock(&t->pool->meta_lock);
}

/*
 * See to a DIRTY region's pages. Nobody maps, takes or frees one but who made it, and its tier does
 * not go: so nobody else has to wait for a caller who is given little time for it.
 */
static int kvt_region_prepare(struct kvt_tier *t, struct kvt_ns *ns, struct kvt_region *reg,
			      int *idx)
{
	struct kvt_pool *p = t->pool;
	int err;

	if (idx)
		srcu_read_unlock(&p->srcu, *idx);
	err = t->charges ? kvt_charge_region(t, ns, reg) : kvt_region_wipe(t, reg);
	if (idx)
		*idx = srcu_read_lock(&p->srcu);
	kvt_region_wiped(t, reg, err);
	return err;
}

/* Its first piece, or a negative errno. *@reg is NULL then, unless it still is the caller's. */
static int kvt_region_take(struct kvt_tier *t, struct kvt_ns *ns, u32 group, u32 nr_pieces,
			   u32 file_id, struct kvt_region **reg, int *idx)
{
	struct kvt_region *rec = *reg;
	bool dirty;
	int r;

	do {
		r = kvt_region_number(t, idx) ?:
		    kvt_region_enter(t, ns, group, nr_pieces, file_id, rec, &dirty);
	} while (r == -EAGAIN);
	if (r < 0)
		return r;
	*reg = NULL;
	return dirty ? kvt_region_prepare(t, ns, rec, idx) ?: r : r;
}

static size_t kvt_record_bytes(const struct kvt_ns *ns, u32 group, u32 nr_pieces)
{
	return kvt_region_bytes(kvt_run_slots(nr_pieces, ns->group[group].slot_pages));
}

/**
 * kvt_region_record() - memory for the record of a region
 * @ns:        whose it is to be
 * @group:     of it
 * @nr_pieces: how long
 * Return: NULL if there is none; else the caller's, ends with kvfree().
 */
struct kvt_region *kvt_region_record(const struct kvt_ns *ns, u32 group, u32 nr_pieces)
{
	return kvmalloc(kvt_record_bytes(ns, group, nr_pieces), GFP_KERNEL_ACCOUNT);
}

/* One for blocks, as kvt_region_take(). */
static int kvt_region_make(struct kvt_tier *t, struct kvt_ns *ns, u32 group, u32 nr_pieces,
			   int *idx)
{
	struct kvt_region *reg = NULL;
	int r = kvt_region_zalloc(t, kvt_record_bytes(ns, group, nr_pieces), idx, &reg);

	r = r ?: kvt_region_take(t, ns, group, nr_pieces, 0, &reg, idx);
	kvfree(reg);
	return r;
}

static void kvt_region_short(struct kvt_tier *t, u32 pieces)
{
	spin_lock(&t->pool->meta_lock);
	kvt_shrink_short(t, pieces);
	spin_unlock(&t->pool->meta_lock);
}

/**
 * kvt_region_get() - give a (namespace, group) one more region on a tier
 * @t:     memory tier; srcu held, may sleep
 * @ns:    namespace, kept alive by the caller
 * @group: of it
 * @idx:   of the pool's srcu, to be let go of, see kvt_region.h; NULL: it is kept
 * Return: 0; -ENOSPC when no run of free pieces is long enough; -ENOMEM: no memory for a
 * record; -EDQUOT: the namespace's cgroup does not pay for more; -EINTR: a fatal signal; with an
 * @idx also -ENODEV: @t has left meanwhile.
 *
 * In a small tier a region is at most a quarter of it, so that a few owners fit.
 * Long runs are tried before short ones.
 */
int kvt_region_get(struct kvt_tier *t, struct kvt_ns *ns, u32 group, int *idx)
{
	const struct kvt_group *g = &ns->group[group];
	u32 least = DIV_ROUND_UP(g->slot_pages, KVT_PIECE_PAGES);
	u32 most = min(max(least, t->nr_pieces / 4), t->nr_pieces), shortest, pieces, nr_slots;
	int r = -ENOSPC;

	spin_lock(&t->pool->meta_lock);
	most = kvt_share_pieces(&ns->share[t->id], min(least, most), most, KVT_PIECE_BYTES);
	spin_unlock(&t->pool->meta_lock);
	shortest = kvt_mem_geometry(g->slot_pages, most, &nr_slots);
	pieces = kvt_mem_growth(&g->owner[t->id], g->slot_pages, most);
	if (pieces > shortest && !kvt_charge_fits(t, ns, pieces))
		pieces = shortest;
	while (pieces) {
		r = kvt_region_make(t, ns, group, pieces, idx);
		if (r != -ENOSPC)
			break;
		/* Half as many multiples, then runs that waste more. */
		if (pieces > shortest)
			pieces = pieces / shortest / 2 * shortest;
		else
			pieces = kvt_mem_geometry(g->slot_pages, pieces - 1, &nr_slots);
	}
	if (r == -ENOSPC)
		kvt_region_short(t, least);
	return min(r, 0);
}

/**
 * kvt_region_get_spare() - give one more region for what nobody waits for
 * @t:     memory tier; srcu held, may sleep
 * @ns:    namespace, kept alive by the caller
 * @group: of it
 * @keep:  pieces that are to stay free
 * Return: 0; -ENOSPC: no short run of free pieces, and nobody makes one; -ENOMEM; -EDQUOT.
 */
int kvt_region_get_spare(struct kvt_tier *t, struct kvt_ns *ns, u32 group, u32 keep)
{
	u32 slot_pages = ns->group[group].slot_pages, nr_slots, pieces;

	pieces = kvt_mem_geometry(slot_pages, max(DIV_ROUND_UP(slot_pages, KVT_PIECE_PAGES),
						  t->nr_pieces / 4), &nr_slots);
	if (!pieces || READ_ONCE(t->mem.nr_free) < (u64)pieces + keep)
		return -ENOSPC;
	return min(kvt_region_make(t, ns, group, pieces, NULL), 0);
}

/**
 * kvt_region_get_arena() - claim one run for an arena
 * @t:         memory tier; srcu held, may sleep
 * @ns:        namespace
 * @group:     of it
 * @nr_pieces: its length
 * @file_id:   whose arena
 * @reg:       from kvt_region_record() for it; NULL on return, unless it has not been used
 * @idx:       as for kvt_region_get()
 * Return: its first piece, -ENOSPC, -ENOMEM, -EDQUOT: the namespace's cgroup does not pay for it,
 * -EINTR: a fatal signal; -ENODEV as for kvt_region_get().
 */
int kvt_region_get_arena(struct kvt_tier *t, struct kvt_ns *ns, u32 group, u32 nr_pieces,
			 u32 file_id, struct kvt_region **reg, int *idx)
{
	int r;

	if (nr_pieces > t->nr_pieces)
		return -ENOSPC;
	r = kvt_region_take(t, ns, group, nr_pieces, file_id, reg, idx);
	if (r == -ENOSPC)
		kvt_region_short(t, nr_pieces);
	return r;
}

/* A region goes into quarantine, or out of it. Meta lock held. */
static void kvt_region_quarantine(struct kvt_tier *t, struct kvt_region *reg, bool in)
{
	s64 bytes = (s64)reg->nr_pieces << KVT_PIECE_SHIFT;

	t->pool->nr_quarantined += in ? 1 : -1;
	kvt_ns_of(t->pool, reg->ns_group)->kept.quarantined_bytes += in ? bytes : -bytes;
	atomic64_add(in ? bytes : -bytes, &t->count.quarantined_bytes);
}

/**
 * kvt_region_next() - go over a tier's regions
 * @t:  memory tier; no spinlock held
 * @r:  where to go on: a piece
 * @of: only regions for which this says true (called under the meta lock), or NULL
 * Return: first piece of the next such region, or KVT_NO_REGION. It may be gone by now.
 */
u32 kvt_region_next(struct kvt_tier *t, u32 r, bool (*of)(const struct kvt_region *reg))
{
	struct kvt_region *reg;
	bool found = false;

	while (r < t->nr_pieces && !found) {
		spin_lock(&t->pool->meta_lock);
		r = kvt_pieces_next_used(&t->mem.pieces, r);
		reg = kvt_mem_region_at(&t->mem, r);
		found = reg && reg->first == r && (!of || of(reg));
		if (!found && reg)
			r = reg->first + reg->nr_pieces;
		spin_unlock(&t->pool->meta_lock);
		cond_resched();
	}
	return found ? r : KVT_NO_REGION;
}

/**
 * kvt_region_clean() - steps 2 to 5 of taking a region
 * @t:   memory tier; srcu held, may sleep
 * @reg: region that the caller made CLEANING; not his any more after this
 * @idx: as for kvt_region_get()
 */
void kvt_region_clean(struct kvt_tier *t, struct kvt_region *reg, int *idx)
{
	u32 page = reg->first * KVT_PIECE_PAGES, nr = reg->nr_pieces * KVT_PIECE_PAGES;
	struct kvt_pool *p = t->pool;
	bool foreign;

	if (idx)
		srcu_read_unlock(&p->srcu, *idx);
	kvt_map_barrier(p);
	/* It lives as long as it has regions, and nobody else has this one mapped. */
	kvt_unmap(kvt_ns_of(p, reg->ns_group), kvt_window_offset(t, page),
		  (u64)nr << KVT_PAGE_SHIFT);
	/* Who pins many regions is waited for once, not once for each. */
	foreign = time_before(jiffies, READ_ONCE(t->foreign_until)) ?
		  !kvt_pages_alone(t, page, nr) : !kvt_pages_settle(t, page, nr, true);
	if (foreign)
		WRITE_ONCE(t->foreign_until, jiffies + HZ);
	else
		kvt_charge_vacate(t, reg);
	if (idx)
		*idx = srcu_read_lock(&p->srcu);
	spin_lock(&p->meta_lock);
	if (foreign) {
		reg->state = KVT_REGION_QUARANTINED;
		reg->seen = 0;
		kvt_region_quarantine(t, reg, true);
	} else {
		kvt_region_return(t, reg);
	}
	spin_unlock(&p->meta_lock);
}

/* Make a region CLEANING if it is empty. Meta lock held. */
static bool kvt_region_claim_empty(struct kvt_tier *t, struct kvt_region *reg)
{
	if (reg->nr_used || reg->arena)
		return false;
	if (reg->state == KVT_REGION_ACTIVE)
		kvt_mem_region_drain(&t->mem, kvt_region_owner(t, reg), reg);
	if (reg->state != KVT_REGION_DRAINING)
		return false;
	reg->state = KVT_REGION_CLEANING;
	return true;
}

static bool kvt_region_unused(const struct kvt_region *reg)
{
	return !reg->nr_used;
}

/**
 * kvt_region_release_empty() - take empty regions from their owners
 * @p:      pool
 * @t:      memory tier; srcu held, may sleep
 * @pieces: stop when so many are free; 0: only those on their way out
 * @idx:    as for kvt_region_get()
 * Return: whether any was taken.
 */
bool kvt_region_release_empty(struct kvt_pool *p, struct kvt_tier *t, u32 pieces, int *idx)
{
	struct kvt_region *reg;
	bool any = false, take;
	u32 r;

	for (r = kvt_region_next(t, 0, kvt_region_unused); r != KVT_NO_REGION;
	     r = kvt_region_next(t, r + 1, kvt_region_unused)) {
		spin_lock(&p->meta_lock);
		reg = kvt_mem_region(&t->mem, r);
		take = reg && (t->mem.nr_free < pieces || reg->state == KVT_REGION_DRAINING) &&
		       kvt_region_claim_empty(t, reg);
		spin_unlock(&p->meta_lock);
		if (take) {
			kvt_region_clean(t, reg, idx);
			any = true;
		}
	}
	return any;
}

/**
 * kvt_region_release_own() - take empty regions from one owner
 * @p:        pool
 * @t:        memory tier; srcu held, may sleep
 * @ns_group: owner, whose namespace the caller keeps
 * Return: whether any was taken.
 */
bool kvt_region_release_own(struct kvt_pool *p, struct kvt_tier *t, u32 ns_group)
{
	struct kvt_region *reg;
	bool any = false, take;
	u32 r;

	for (r = kvt_region_next(t, 0, kvt_region_unused); r != KVT_NO_REGION;
	     r = kvt_region_next(t, r + 1, kvt_region_unused)) {
		spin_lock(&p->meta_lock);
		reg = kvt_mem_region(&t->mem, r);
		take = reg && reg->ns_group == ns_group && kvt_region_claim_empty(t, reg);
		spin_unlock(&p->meta_lock);
		if (take) {
			kvt_region_clean(t, reg, NULL);
			any = true;
		}
	}
	return any;
}

static bool kvt_region_quarantined(const struct kvt_region *reg)
{
	return reg->state == KVT_REGION_QUARANTINED;
}

/*
 * Whether nobody refers to a quarantined region any more. Who pins a page of it makes each look
 * as short as possible: what was free once stays so, no reference can come, so a look begins
 * where the one before it has ended.
 */
static bool kvt_region_forsaken(struct kvt_tier *t, struct kvt_region *reg, u32 *budget)
{
	u32 left = reg->nr_pieces * KVT_PIECE_PAGES - reg->seen;
	u32 own = kvt_pages_own(t, reg->first * KVT_PIECE_PAGES + reg->seen, min(left, *budget),
				true);

	reg->seen += own;
	*budget -= own;
	return own == left;
}

/* One tier's quarantined regions: free those whose references have gone. */
static bool kvt_tier_unquarantine(struct kvt_tier *t)
{
	struct kvt_pool *p = t->pool;
	struct kvt_region *reg;
	u32 r, budget = KVT_QUARANTINE_LOOK;
	bool any = false;

	for (r = kvt_region_next(t, 0, kvt_region_quarantined); r != KVT_NO_REGION && budget;
	     r = kvt_region_next(t, r + 1, kvt_region_quarantined)) {
		/* Only the worker, which this is, changes a quarantined region. */
		spin_lock(&p->meta_lock);
		reg = kvt_mem_region(&t->mem, r);
		spin_unlock(&p->meta_lock);
		if (!kvt_region_forsaken(t, reg, &budget))
			continue;
		kvt_charge_vacate(t, reg);
		spin_lock(&p->meta_lock);
		kvt_region_quarantine(t, reg, false);
		kvt_region_return(t, reg);
		spin_unlock(&p->meta_lock);
		any = true;
	}
	return any;
}

/**
 * kvt_region_unquarantine() - free the regions whose foreign references have gone
 * @p: pool; srcu held, may sleep; called by the pool's worker only
 * Return: whether there was any.
 */
bool kvt_region_unquarantine(struct kvt_pool *p)
{
	struct kvt_tier *t[KVT_TIERS];
	u32 nr = kvt_tier_snapshot(p, t, true), i;
	bool any = false;

	if (!READ_ONCE(p->nr_quarantined))
		return false;
	for (i = 0; i < nr; i++)
		any |= kvt_tier_unquarantine(t[i]);
	return any;
}

/**
 * kvt_region_release_all() - forget a tier's regions: the tier is ending
 * @p: pool
 * @t: memory tier without blocks, mappings and readers
 *
 * Foreign references may remain; the backend keeps such pages from being reused.
 */
void kvt_region_release_all(struct kvt_pool *p, struct kvt_tier *t)
{
	struct kvt_region *reg;
	u32 r;

	for (r = kvt_region_next(t, 0, NULL); r != KVT_NO_REGION;
	     r = kvt_region_next(t, r + 1, NULL)) {
		spin_lock(&p->meta_lock);
		reg = kvt_mem_region(&t->mem, r);
		spin_unlock(&p->meta_lock);
		/* Nobody else is there. */
		kvt_charge_vacate(t, reg);
		spin_lock(&p->meta_lock);
		if (reg->state == KVT_REGION_ACTIVE)
			kvt_mem_region_drain(&t->mem, kvt_region_owner(t, reg), reg);
		if (reg->state == KVT_REGION_QUARANTINED)
			kvt_region_quarantine(t, reg, false);
		kvt_region_return(t, reg);
		spin_unlock(&p->meta_lock);
	}
	kvt_garbage_free(p);
}

/**
 * kvt_slot_alloc() - take a slot for a block in the fastest tier that has one
 * @p:          pool, meta lock held
 * @ns:         whose
 * @group:      of it
 * @id:         block
 * @skip:       bit per tier: do not look there
 * @tier:       out: tier id
 * @page:       out: first page
 * Return: 0; -EAGAIN: @tier has free pieces but the owner no free slot there:
 * kvt_region_get() may help, or setting its bit in @skip; -ENOSPC: no slot. Tiers at whose
 * limit @ns is are passed over.
 */
int kvt_slot_alloc(struct kvt_pool *p, struct kvt_ns *ns, u32 group, u32 id, u32 skip,
		   u32 *tier, u32 *page)
{
	u32 i;

	lockdep_assert_held(&p->meta_lock);
	for (i = 0; i < p->nr_tiers; i++) {
		struct kvt_tier *t = p->tiers[p->order[i]];

		if (!t->ops->is_mem || t->state != KVTIER_TIER_ONLINE ||
		    (skip & BIT(t->id)))
			continue;
		/* A region would be of no use to it. */
		if (!kvt_limit_fits(ns, t, kvt_slot_bytes(&ns->group[group]))) {
			kvt_limit_want(ns, t, kvt_slot_bytes(&ns->group[group]));
			continue;
		}
		*tier = t->id;
		*page = kvt_block_mem_alloc(p, t, ns, group, KVT_NO_REGION, id);
		if (*page != KVT_NO_PAGE)
			return 0;
		if (t->mem.nr_free)
			return -EAGAIN;
	}
	return -ENOSPC;
}
