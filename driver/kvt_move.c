// SPDX-License-Identifier: GPL-2.0
/*
 * Moves of blocks, the same for promotion, demotion, draining and cleaning.
 *
 * A move has five steps: claim (MOVING, by the caller), place (space at the
 * destination), run (bytes), finish (change of place, under the meta lock) and
 * wake. Moves to a block tier are placed by kvt_mlog_place() and finished batch by
 * batch, when its header is written (kvt_mv_write()); those between block tiers when
 * that is durable, see struct kvt_carry. The block stays what it was until finish: readers
 * in memory go on, and one who takes a lease meanwhile makes the move void. If the
 * bytes did not arrive, the destination is given back; if they could not be read, and
 * only then, the block is a miss from then on.
 */
#include "kvt_internal.h"
#include "kvt_mlog.h"
#include "kvt_trace.h"

/*
 * Can clients write to where the block is: in an arena, and in what was one, since devices
 * may still have its pages.
 */
static bool kvt_mv_shared(const struct kvt_mv *mv)
{
	const struct kvt_region *reg = kvt_mem_region_of(&mv->x.src->mem, mv->x.src_addr);

	return reg->arena || reg->retire;
}

/**
 * kvt_mv_start() - describe the move of a block
 * @p:  pool, meta lock held
 * @mv: to be filled in
 * @id: READY block, claimed
 */
void kvt_mv_start(struct kvt_pool *p, struct kvt_mv *mv, u32 id)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);
	bool mem = kvt_ctl(h) & KVT_CTL_MEM;

	lockdep_assert_held(&p->meta_lock);
	memset(mv, 0, sizeof(*mv));
	mv->id = id;
	mv->put = KVT_NO_PUT;
	mv->over = KVT_NO_TIER;
	mv->x.src = p->tiers[mem ? h->mem_tier : h->log_tier];
	mv->x.src_addr = mem ? h->mem_page : h->log_unit;
	mv->x.bytes = kvt_slot_bytes(kvt_group_of(p, h->ns_group));
	mv->x.csum = kvt_cold(&p->table, id)->csum;
	mv->x.shared = mem && kvt_mv_shared(mv);
}

static int kvt_mv_region(struct kvt_mv *mv, struct kvt_tier *t, struct kvt_ns *ns, u32 group)
{
	if (!READ_ONCE(t->mem.nr_free))
		return -ENOSPC;
	return mv->keep ? kvt_region_get_spare(t, ns, group, mv->keep) :
	       kvt_region_get(t, ns, group, NULL);
}

/**
 * kvt_mv_place_mem() - find a slot for a move on a memory tier
 * @p:  pool; no spinlock held, may sleep
 * @mv: move
 * @t:  destination
 * Return: whether it has one now; see also @mv->retry and @mv->over.
 */
bool kvt_mv_place_mem(struct kvt_pool *p, struct kvt_mv *mv, struct kvt_tier *t)
{
	u32 ns_group = kvt_hot(&p->table, mv->id)->ns_group, page;
	struct kvt_ns *ns = kvt_ns_of(p, ns_group);
	int tries, err;

	/* MOVING keeps the entry, and so its namespace, from being freed. */
	for (tries = 0; tries < 2; tries++) {
		bool over;

		page = KVT_NO_PAGE;
		spin_lock(&p->meta_lock);
		over = kvt_limit_refuses(p, mv, t);
		if (!over)
			page = kvt_block_mem_alloc(p, t, ns, ns_group & 15, KVT_NO_REGION, mv->id);
		spin_unlock(&p->meta_lock);
		/* A region would be of no use to it. */
		if (over)
			return false;
		if (page != KVT_NO_PAGE) {
			mv->x.dst = t;
			mv->x.dst_addr = page;
			mv->placed = true;
			return true;
		}
		err = kvt_mv_region(mv, t, ns, ns_group & 15);
		if (err) {
			mv->retry |= err == -ENOMEM;
			return false;
		}
	}
	mv->retry = true;
	return false;
}

/**
 * kvt_mv_place_beside() - find another slot of the memory tier that a block is on
 * @p:  pool, meta lock held
 * @mv: its move; placed if the namespace has one that is free
 */
void kvt_mv_place_beside(struct kvt_pool *p, struct kvt_mv *mv)
{
	u32 page;

	lockdep_assert_held(&p->meta_lock);
	page = kvt_block_mem_beside(p, mv->x.src, mv->id);
	if (page == KVT_NO_PAGE)
		return;
	mv->beside = true;
	mv->x.dst = mv->x.src;
	mv->x.dst_addr = page;
	mv->placed = true;
}

/**
 * kvt_mv_place_clean() - let a move go to where the block has a copy
 * @p:  pool, meta lock held
 * @mv: move from memory, without a place
 * Return: whether it has one that can be used; if one is in the way it is given up. One on
 * a tier at whose limit the namespace is (@mv->over) is not: older blocks may make room.
 */
bool kvt_mv_place_clean(struct kvt_pool *p, struct kvt_mv *mv)
{
	struct kvt_tier *t = kvt_copy_tier(p, mv->id);

	lockdep_assert_held(&p->meta_lock);
	if (t && kvt_limit_refuses(p, mv, t))
		return false;
	if (t) {
		mv->x.dst = t;
		mv->clean = true;
		kvt_limit_coming(p, mv);
	} else {
		mv->retry |= !kvt_copy_drop(p, mv->id);
	}
	return mv->clean;
}

/*
 * What came from a device and did not verify may be anything, another tenant's
 * bytes included, and its slot's region is mapped: wipe it before it is given back.
 */
static void kvt_mv_wipe_failed(struct kvt_mv *mv, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		const struct kvt_xfer *x = &mv[i].x;

		if (mv[i].placed && x->err && x->dst->ops->is_mem && !x->src->ops->is_mem)
			kvt_pages_scrub(x->dst, x->dst_addr, x->bytes >> KVT_PAGE_SHIFT);
	}
}

/* What has come from a disk, or from an arena, may have anything behind its block. */
static void kvt_mv_pad(struct kvt_mv *mv, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		const struct kvt_xfer *x = &mv[i].x;

		if (mv[i].placed && !x->err && x->dst->ops->is_mem)
			kvt_slot_pad(x->dst, x->dst_addr, kvt_block_bytes(x->dst->pool, mv[i].id));
	}
}

/* Is it to be carried out now; what goes to a zoned device is when it is its turn. */
static bool kvt_mv_runs(const struct kvt_mv *mv)
{
	return mv->placed && !mv->x.dst->zones;
}

static void kvt_mv_transfer(struct kvt_mv *mv, u32 nr)
{
	struct kvt_xfer *x;
	u32 i, n = 0;

	/* The transfer engine takes a plain array. */
	x = kvmalloc_array(nr, sizeof(*x), GFP_KERNEL);
	if (!x) {
		for (i = 0; i < nr; i++) {
			if (kvt_mv_runs(&mv[i]))
				kvt_xfer_run(&mv[i].x, 1);
		}
		return;
	}
	for (i = 0; i < nr; i++) {
		if (kvt_mv_runs(&mv[i]))
			x[n++] = mv[i].x;
	}
	kvt_xfer_run(x, n);
	for (i = 0, n = 0; i < nr; i++) {
		if (kvt_mv_runs(&mv[i]))
			mv[i].x = x[n++];
	}
	kvfree(x);
}

/*
 * Once an engine was given up: entries for the slots it may still write to, see
 * kvt_mv_unplace(), and for those it may still read, see kvt_mv_leave().
 */
static void kvt_mv_prepare_limbo(struct kvt_mv *mv, u32 nr)
{
	u32 i, n = 0;

	if (!kvt_dma_given_up())
		return;
	for (i = 0; i < nr; i++) {
		const struct kvt_xfer *x = &mv[i].x;

		if (!mv[i].placed && !mv[i].clean)
			continue;
		mv[i].held = x->src->ops->is_mem &&
			     kvt_pages_foreign(x->src, x->src_addr, x->bytes >> KVT_PAGE_SHIFT);
		n += mv[i].held || x->err == -ETIMEDOUT;
	}
	if (n)
		kvt_pool_grow(mv[0].x.src->pool, n);
}

/* Carry out those moves that are placed and wait. */
void kvt_mv_run(struct kvt_mv *mv, u32 nr)
{
	if (!nr)
		return;
	kvt_mv_transfer(mv, nr);
	kvt_mv_wipe_failed(mv, nr);
	kvt_mv_pad(mv, nr);
	kvt_mv_prepare_limbo(mv, nr);
}

/* A move within a tier comes to an end, which gives one of the two slots back. */
static void kvt_mv_count_beside(struct kvt_pool *p, struct kvt_mv *mv)
{
	lockdep_assert_held(&p->meta_lock);
	if (mv->beside)
		kvt_block_mem_beside_counts(p, mv->x.dst, mv->id);
	mv->beside = false;
}

static void kvt_mv_unplace(struct kvt_pool *p, struct kvt_mv *mv)
{
	struct kvt_tier *t = mv->x.dst;

	lockdep_assert_held(&p->meta_lock);
	if (!mv->placed)
		return;
	mv->placed = false;
	/* An engine that was given up may still write there, and read the source. */
	if (mv->x.err == -ETIMEDOUT) {
		kvt_mv_count_beside(p, mv);
		kvt_hot(&p->table, mv->id)->flags |= KVT_HOT_HELD;
		kvt_limbo_add(p, t, mv->x.dst_addr, kvt_hot(&p->table, mv->id)->ns_group);
		return;
	}
	if (t->ops->is_mem) {
		kvt_block_mem_free(p, t->id, mv->x.dst_addr,
				   kvt_hot(&p->table, mv->id)->ns_group);
		kvt_mv_count_beside(p, mv);
	} else {
		kvt_wlog_unput(&t->mlog->w, mv->x.dst_addr,
			       kvt_geo_units(&t->mlog->geo, mv->x.bytes));
	}
}

/**
 * kvt_mv_stays() - a block does not move after all: it is where it was, or dead
 * @p:  pool, meta lock held
 * @id: block, MOVING set by the caller; who waits for its end the caller wakes
 */
void kvt_mv_stays(struct kvt_pool *p, u32 id)
{
	lockdep_assert_held(&p->meta_lock);
	kvt_ctl_update(kvt_hot(&p->table, id), 0, 0, KVT_CTL_MOVING, 0);
	kvt_doom_look(p, id);
	kvt_block_reap(p, id);
}

/* The move did not happen. Meta lock held. */
static void kvt_mv_void(struct kvt_pool *p, struct kvt_mv *mv)
{
	kvt_limit_came(p, mv);
	kvt_mv_unplace(p, mv);
	kvt_mv_stays(p, mv->id);
}

/**
 * kvt_mv_cancel() - let a block stay where it is: its move was not run, or in vain
 * @p:  pool, meta lock held
 * @mv: move
 */
void kvt_mv_cancel(struct kvt_pool *p, struct kvt_mv *mv)
{
	lockdep_assert_held(&p->meta_lock);
	kvt_mv_void(p, mv);
}

/* A move met bad memory, on the one side that is memory or at the source. */
static void kvt_mv_poisoned(struct kvt_mv *mv)
{
	const struct kvt_xfer *x = &mv->x;
	bool src = x->src->ops->is_mem;
	struct kvt_tier *mem = src ? x->src : x->dst;

	/* What the processor ran into is flagged a little later: keep looking. */
	WRITE_ONCE(mem->poisoned, true);
	kvt_poison_look(mem, src ? x->src_addr : x->dst_addr, x->bytes >> KVT_PAGE_SHIFT);
}

static void kvt_mv_failed(struct kvt_pool *p, struct kvt_mv *mv)
{
	struct kvt_hot *h = kvt_hot(&p->table, mv->id);
	bool lost = mv->x.src_bad;

	lockdep_assert_held(&p->meta_lock);
	/* First: the look at the pages is the end of a block that is still there. */
	if (lost && mv->x.src->ops->is_mem)
		lost = !kvt_copy_saves(p, mv->id, true);
	if (mv->x.err == -EHWPOISON)
		kvt_mv_poisoned(mv);
	if (mv->x.src_bad)
		kvt_block_fault(p, mv->id, mv->x.src, mv->x.src_addr, mv->x.err);
	/* Only what cannot be read goes: where it is it may be as good as ever. */
	if (lost && !(mv->spare && mv->x.err == -EIO) && kvt_ctl_state(kvt_ctl(h)) == KVT_READY) {
		/* Not freed by this: MOVING is still set. */
		kvt_block_lose(p, mv->id, KVT_WHY_IO);
	}
	kvt_mv_void(p, mv);
}

/* The record at the source has to be killed, and the ring has no room. Racy. */
static bool kvt_mv_kill_waits(const struct kvt_mv *mv)
{
	return !kvt_wlog_may_free(&mv->x.src->mlog->w, mv->x.src_addr);
}

/**
 * kvt_mv_wait_kill() - wait until the source of a move can be given back
 * @p:   pool; no spinlock held, srcu held, sleeps
 * @mv:  move that was run; its caller has no batch that is open or not written
 * @end: jiffies at which that ends
 *
 * Somebody else may be faster: kvt_mv_finish() tells whether there was room.
 */
void kvt_mv_wait_kill(struct kvt_pool *p, const struct kvt_mv *mv, unsigned long end)
{
	bool keep;

	if (mv->x.src->ops->is_mem || mv->x.err)
		return;
	spin_lock(&p->meta_lock);
	keep = kvt_copy_keep(p, mv->id);
	spin_unlock(&p->meta_lock);
	if (keep)
		return;
	while (kvt_mv_kill_waits(mv) && time_before(jiffies, end)) {
		kvt_mlog_kick(mv->x.src->mlog);
		wait_event_timeout(p->log_wait, !kvt_mv_kill_waits(mv), HZ / 10 + 1);
	}
}

/* Take the source away, unless somebody relies on it. */
static bool kvt_mv_leave(struct kvt_pool *p, struct kvt_mv *mv)
{
	struct kvt_hot *h = kvt_hot(&p->table, mv->id);

	lockdep_assert_held(&p->meta_lock);
	if (mv->x.src->ops->is_mem) {
		if (!kvt_ctl_update(h, KVT_CTL_STATE | KVT_CTL_MEM |
				    (~0u << KVT_CTL_LEASE_SHIFT),
				    KVT_READY | KVT_CTL_MEM, KVT_CTL_MEM, 0))
			return false;
		if (mv->held)
			kvt_limbo_add(p, mv->x.src, mv->x.src_addr, h->ns_group);
		else
			kvt_block_mem_free(p, mv->x.src->id, mv->x.src_addr, h->ns_group);
		h->flags &= ~KVT_HOT_HELD;
		return true;
	}
	if (kvt_copy_keep(p, mv->id) && (kvt_copy_wanted(p, mv->id) || kvt_mv_kill_waits(mv)))
		return kvt_ctl_state(kvt_ctl(h)) == KVT_READY;
	/* Its record has to be killed; until there is room for that it stays. */
	if (kvt_mv_kill_waits(mv)) {
		mv->x.err = -ENOSPC;
		kvt_mlog_kick(mv->x.src->mlog);
		return false;
	}
	if (!kvt_ctl_update(h, KVT_CTL_STATE | KVT_CTL_LOG, KVT_READY | KVT_CTL_LOG,
			    KVT_CTL_LOG, 0))
		return false;
	kvt_block_log_free(p, mv->id);
	return true;
}

static void kvt_mv_arrive(struct kvt_pool *p, struct kvt_mv *mv, bool lease)
{
	struct kvt_hot *h = kvt_hot(&p->table, mv->id);
	struct kvt_tier *t = mv->x.dst;

	lockdep_assert_held(&p->meta_lock);
	if (t->ops->is_mem) {
		kvt_block_mem_set(p, mv->id, t, mv->x.dst_addr);
		kvt_ctl_update(h, 0, 0, 0, KVT_CTL_MEM);
		if (!mv->x.src->ops->is_mem && (kvt_ctl(h) & KVT_CTL_LOG))
			kvt_copy_made(p, mv->id);
		mv->leased = lease && kvt_lease_take(p, mv->id) == KVT_LEASED;
	} else {
		h->log_tier = t->id;
		h->log_unit = mv->x.dst_addr;
		WRITE_ONCE(h->flags, h->flags & ~KVT_HOT_DURABLE);
		kvt_cold(&p->table, mv->id)->csum = mv->x.csum;
		kvt_ctl_update(h, 0, 0, 0, KVT_CTL_LOG);
	}
	kvt_ctl_update(h, 0, 0, KVT_CTL_MOVING, 0);
}

/**
 * kvt_demoted() - count and trace that a block has gone down
 * @p:     pool, meta lock held
 * @id:    block
 * @from:  tier it was on
 * @to:    tier it is on
 * @clean: nothing was written for that
 */
void kvt_demoted(struct kvt_pool *p, u32 id, struct kvt_tier *from, struct kvt_tier *to,
		 bool clean)
{
	const struct kvt_cold *c = kvt_cold(&p->table, id);
	struct kvt_hot *h = kvt_hot(&p->table, id);
	struct kvt_ns *ns = kvt_ns_of(p, h->ns_group);

	lockdep_assert_held(&p->meta_lock);
	atomic64_inc(&from->count.demotions_out);
	atomic64_inc(&to->count.demotions_in);
	if (clean)
		atomic64_inc(&to->count.clean_demotions);
	kvt_count(p, ns, KVT_CNT_DEMOTIONS, 1);
	kvt_block_unread(p, id, from);
	if (trace_kvtier_demote_enabled())
		trace_kvtier_demote(p->id, ns->id, h->ns_group & 15, h->key, from->id, to->id,
				    clean, kvt_age_ms(kvt_now_ms(), c->touch_ms), c->cls,
				    kvt_policy_worth(&p->policy, id));
}

void kvt_mv_account(struct kvt_pool *p, struct kvt_mv *mv)
{
	struct kvt_hot *h = kvt_hot(&p->table, mv->id);
	struct kvt_tier *from = mv->x.src, *to = mv->x.dst;
	struct kvt_ns *ns = kvt_ns_of(p, h->ns_group);

	if (from == to)
		return;
	if (to->rank < from->rank) {
		WRITE_ONCE(h->flags, (h->flags & ~(KVT_HOT_AHEAD | KVT_HOT_AHEAD_NEXT)) |
			   KVT_HOT_UNREAD);
		atomic64_inc(&from->count.promotions_out);
		atomic64_inc(&to->count.promotions_in);
		kvt_count(p, ns, KVT_CNT_PROMOTIONS, 1);
		trace_kvtier_promote(p->id, ns->id, h->ns_group & 15, h->key, from->id,
				     to->id);
	} else {
		if (!to->ops->is_mem)
			atomic64_add(mv->x.bytes, &to->count.demoted_bytes);
		kvt_demoted(p, mv->id, from, to, false);
	}
}

/* Down to a copy: if that has gone meanwhile, or somebody has a lease, it stays. */
static bool kvt_mv_finish_clean(struct kvt_pool *p, struct kvt_mv *mv)
{
	lockdep_assert_held(&p->meta_lock);
	if (!kvt_copy_tier(p, mv->id) || mv->x.src->state == KVTIER_TIER_FAILED ||
	    !kvt_mv_leave(p, mv)) {
		kvt_mv_void(p, mv);
		return false;
	}
	kvt_limit_came(p, mv);
	kvt_copy_used(p, mv->id, mv->x.src);
	kvt_ctl_update(kvt_hot(&p->table, mv->id), 0, 0, KVT_CTL_MOVING, 0);
	return true;
}

/**
 * kvt_mv_finish() - let a move take effect
 * @p:     pool, meta lock held
 * @mv:    move that was run
 * @lease: take a lease as it arrives in memory (see @leased)
 * Return: whether the block is at its destination now. The caller wakes waiters
 * in both cases, after dropping the lock.
 */
bool kvt_mv_finish(struct kvt_pool *p, struct kvt_mv *mv, bool lease)
{
	struct kvt_tier *from = mv->x.src, *to = mv->x.dst;
	struct kvt_hot *h = kvt_hot(&p->table, mv->id);

	lockdep_assert_held(&p->meta_lock);
	if (mv->clean)
		return kvt_mv_finish_clean(p, mv);
	if (mv->x.err) {
		kvt_mv_failed(p, mv);
		return false;
	}
	if (to->state == KVTIER_TIER_FAILED ||
	    (to->ops->is_mem && kvt_mem_slot_poisoned(&to->mem, mv->x.dst_addr)) ||
	    (from->ops->is_mem && from->state == KVTIER_TIER_FAILED) ||
	    !kvt_mv_leave(p, mv)) {
		kvt_mv_void(p, mv);
		return false;
	}
	kvt_mv_count_beside(p, mv);
	kvt_limit_came(p, mv);
	/* To another slot of its tier: what the policy knows of it stays true. */
	if (from == to) {
		kvt_mv_arrive(p, mv, lease);
		return true;
	}
	p->policy.now_ms = kvt_now_ms();
	p->policy.ops->remove(&p->policy, from->id, mv->id);
	kvt_tier_count_block(p, from, h->ns_group, -1);
	kvt_mv_arrive(p, mv, lease);
	p->policy.ops->insert(&p->policy, to->id, mv->id);
	kvt_tier_count_block(p, to, h->ns_group, 1);
	kvt_mv_account(p, mv);
	return true;
}
