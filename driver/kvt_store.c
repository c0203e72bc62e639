// SPDX-License-Identifier: GPL-2.0
/*
 * Blocks: finding them, and the state changes that more than one part needs.
 *
 * Who owns what: the index names FILLING and READY blocks; the policy lists READY
 * ones under the tier of their fastest copy; pool->filling lists FILLING ones.
 * A block leaves by becoming DEAD (unnamed, unlisted) and is freed by
 * kvt_block_reap() once nothing refers to its entry: no lease, no move, no child.
 * A dead block has left its parent, so it stands in nobody's way.
 */
#include "kvt_lease.h"
#include "kvt_mlog.h"
#include "kvt_trace.h"

#define KVT_PARKED_STEP	1024u	/* looked at under one hold of the meta lock */
#define KVT_KILLS_STEP	64u	/* pending, between calls for the background */

/**
 * kvt_block_expired() - is the block's time to live over
 * @p:  pool
 * @id: block that is not FREE
 */
bool kvt_block_expired(struct kvt_pool *p, u32 id)
{
	u32 at;

	if (!(READ_ONCE(kvt_hot(&p->table, id)->flags) & KVT_HOT_EXPIRES))
		return false;
	at = READ_ONCE(kvt_cold(&p->table, id)->expire_s);
	return at && (s32)(kvt_now_s() - at) >= 0;
}

/**
 * kvt_block_find() - find a block and say where it is
 * @p:        pool
 * @ns_group: name
 * @key:      name
 * @lease:    take a lease if it is in memory
 * @id:       out, unless FOUND_NOT
 * @gen:      out, unless FOUND_NOT
 *
 * Takes only the shard's lock. To lease, the pool's srcu or meta lock is held.
 */
enum kvt_found kvt_block_find(struct kvt_pool *p, u32 ns_group, const u8 *key, bool lease,
			      u32 *id, u32 *gen)
{
	u32 hash = kvt_ix_hash(&p->index, ns_group, key), ctl;
	struct kvt_shard *s = kvt_ix_shard(&p->index, hash);
	enum kvt_found found = KVT_FOUND_NOT;
	enum kvt_leased leased;
	struct kvt_hot *h;

	spin_lock(&s->lock);
	*id = kvt_ix_find(&p->index, s, hash, ns_group, key);
	if (*id == KVT_NIL)
		goto out;
	h = kvt_hot(&p->table, *id);
	*gen = h->gen;
	/* The flag first: a hit has no call to spare. */
	if ((READ_ONCE(h->flags) & KVT_HOT_EXPIRES) && kvt_block_expired(p, *id))
		goto out;
	leased = lease ? kvt_lease_found(p, h) : KVT_LEASED_NOT;
	if (leased != KVT_LEASED_NOT) {
		found = leased == KVT_LEASED ? KVT_FOUND_MEM : KVT_FOUND_LIMIT;
		goto out;
	}
	ctl = kvt_ctl(h);
	if (kvt_ctl_state(ctl) == KVT_FILLING)
		found = KVT_FOUND_FILLING;
	else if (ctl & KVT_CTL_MEM)
		found = lease ? KVT_FOUND_MOVING : KVT_FOUND_MEM;
	else if (ctl & KVT_CTL_MOVING)
		found = KVT_FOUND_MOVING;
	else
		found = KVT_FOUND_LOG;
out:
	spin_unlock(&s->lock);
	return found;
}

/**
 * kvt_block_find_locked() - find a block under the meta lock
 * @p:        pool
 * @ns_group: name
 * @key:      name
 * Return: id or KVT_NIL; it cannot be freed before the meta lock is dropped.
 */
u32 kvt_block_find_locked(struct kvt_pool *p, u32 ns_group, const u8 *key)
{
	u32 hash = kvt_ix_hash(&p->index, ns_group, key), id;
	struct kvt_shard *s = kvt_ix_shard(&p->index, hash);

	lockdep_assert_held(&p->meta_lock);
	spin_lock(&s->lock);
	id = kvt_ix_find(&p->index, s, hash, ns_group, key);
	spin_unlock(&s->lock);
	return id;
}

/* Make a block that the caller has filled in findable. */
void kvt_block_publish(struct kvt_pool *p, u32 id)
{
	struct kvt_shard *s = kvt_ix_shard(&p->index, kvt_hot(&p->table, id)->hash);

	lockdep_assert_held(&p->meta_lock);
	spin_lock(&s->lock);
	kvt_ix_insert(&p->index, s, id);
	spin_unlock(&s->lock);
}

/* Make a block unfindable; it must become DEAD before the meta lock is dropped. */
void kvt_block_unhash(struct kvt_pool *p, u32 id)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);
	struct kvt_shard *s = kvt_ix_shard(&p->index, h->hash);
	bool was;

	lockdep_assert_held(&p->meta_lock);
	spin_lock(&s->lock);
	was = kvt_ix_remove(&p->index, s, id);
	spin_unlock(&s->lock);
	if (was)
		kvt_ns_of(p, h->ns_group)->nr_live--;
}

/**
 * kvt_block_mem_set() - a block's bytes are now at this place in memory
 * @p:    pool, meta lock held
 * @id:   block without MEM that only the caller can change
 * @t:    memory tier
 * @page: first page of its slot
 *
 * Sets the place only; the caller sets MEM when the bytes may be read.
 */
void kvt_block_mem_set(struct kvt_pool *p, u32 id, struct kvt_tier *t, u32 page)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);

	lockdep_assert_held(&p->meta_lock);
	h->mem_tier = t->id;
	h->mem_page = page;
}

/**
 * kvt_block_mem_free() - give a slot back to its region
 * @p:        pool, meta lock held
 * @tier:     where it is
 * @page:     its first page
 * @ns_group: whose it is
 */
void kvt_block_mem_free(struct kvt_pool *p, u32 tier, u32 page, u32 ns_group)
{
	struct kvt_tier *t = p->tiers[tier];
	struct kvt_ns *ns = kvt_ns_of(p, ns_group);
	struct kvt_group *g = &ns->group[ns_group & 15];

	lockdep_assert_held(&p->meta_lock);
	kvt_mem_slot_free(&t->mem, &g->owner[tier], page);
	kvt_kept_mem(ns, -(s64)kvt_slot_bytes(g));
	kvt_limit_count(ns, t, kvt_slot_bytes(g), -1);
}

/* Is a slot just taken of no use; then it is retired. */
static bool kvt_slot_bad(struct kvt_tier *t, struct kvt_group *g, u32 page)
{
	/* Spares the good case the look at each page. */
	if (!READ_ONCE(t->poisoned) || !kvt_poison_look(t, page, g->slot_pages))
		return false;
	kvt_mem_slot_free(&t->mem, &g->owner[t->id], page);
	return true;
}

static u32 kvt_slot_take(struct kvt_tier *t, struct kvt_group *g, u32 region, u32 id)
{
	u32 page;

	lockdep_assert_held(&t->pool->meta_lock);
	do {
		page = kvt_mem_slot_alloc(&t->mem, &g->owner[t->id], region, id);
	} while (page != KVT_NO_PAGE && kvt_slot_bad(t, g, page));
	return page;
}

/* A namespace has a slot more. Meta lock held. */
static void kvt_slot_count(struct kvt_tier *t, struct kvt_ns *ns, const struct kvt_group *g)
{
	lockdep_assert_held(&t->pool->meta_lock);
	kvt_kept_mem(ns, kvt_slot_bytes(g));
	kvt_limit_count(ns, t, kvt_slot_bytes(g), 1);
}

/**
 * kvt_block_mem_alloc() - take a slot of one tier
 * @p:      pool, meta lock held
 * @t:      memory tier
 * @ns:     for whom
 * @group:  of it
 * @region: an arena's region, or KVT_NO_REGION
 * @id:     block that will live there
 * Return: first page, or KVT_NO_PAGE: there is none, or it would be past a limit.
 */
u32 kvt_block_mem_alloc(struct kvt_pool *p, struct kvt_tier *t, struct kvt_ns *ns, u32 group,
			u32 region, u32 id)
{
	struct kvt_group *g = &ns->group[group];
	u32 page;

	lockdep_assert_held(&p->meta_lock);
	if (t->state != KVTIER_TIER_ONLINE || !kvt_limit_fits(ns, t, kvt_slot_bytes(g)))
		return KVT_NO_PAGE;
	page = kvt_slot_take(t, g, region, id);
	if (page != KVT_NO_PAGE)
		kvt_slot_count(t, ns, g);
	return page;
}

/**
 * kvt_block_mem_beside() - take one more slot for a block of the tier
 * @p:  pool, meta lock held
 * @t:  memory tier
 * @id: block, which leaves the slot that it has there, or does not come
 * Return: first page, or KVT_NO_PAGE. It does not count, before kvt_block_mem_beside_counts():
 * no limit is in the way, and nobody finds less room than there is.
 */
u32 kvt_block_mem_beside(struct kvt_pool *p, struct kvt_tier *t, u32 id)
{
	lockdep_assert_held(&p->meta_lock);
	if (t->state != KVTIER_TIER_ONLINE)
		return KVT_NO_PAGE;
	return kvt_slot_take(t, kvt_group_of(p, kvt_hot(&p->table, id)->ns_group), KVT_NO_REGION,
			     id);
}

/**
 * kvt_block_mem_beside_counts() - one of the two slots of a block is about to be given back
 * @p:  pool, meta lock held
 * @t:  memory tier
 * @id: block with a slot from kvt_block_mem_beside()
 */
void kvt_block_mem_beside_counts(struct kvt_pool *p, struct kvt_tier *t, u32 id)
{
	u32 ns_group = kvt_hot(&p->table, id)->ns_group;

	kvt_slot_count(t, kvt_ns_of(p, ns_group), kvt_group_of(p, ns_group));
}

/**
 * kvt_ns_guarded() - is a block on a tier guaranteed against somebody's need
 * @p:     pool, meta lock held
 * @t:     tier
 * @h:     block
 * @asker: namespace that needs room, against which its own blocks are not guarded;
 *         NULL: nobody in particular
 * @leaving_bytes: what of its namespace's is to leave the tier already, and has not yet
 */
bool kvt_ns_guarded(struct kvt_pool *p, const struct kvt_tier *t, const struct kvt_hot *h,
		    const struct kvt_ns *asker, u64 leaving_bytes)
{
	const struct kvt_ns *ns = kvt_ns_of(p, h->ns_group);

	if (ns == asker)
		return false;
	if (kvt_weight_guarded(p, t, ns, leaving_bytes, 0))
		return true;
	if (!t->ops->is_mem)
		return kvt_limit_guarded(p, t, ns, leaving_bytes, 0);
	return ns->mem_bytes - min(ns->mem_bytes, leaving_bytes) <= kvt_ns_min_bytes(p, ns);
}

/**
 * kvt_block_log_free() - a block's copy on a block tier is not wanted any more
 * @p:  pool, meta lock held
 * @id: block with a valid log place; the caller clears LOG
 * Return: false: its kill cannot be noted now, and the copy is still there.
 */
bool kvt_block_log_free(struct kvt_pool *p, u32 id)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);
	struct kvt_tier *t = p->tiers[h->log_tier];
	u32 *ids;

	lockdep_assert_held(&p->meta_lock);
	if (!kvt_copy_free(p, id)) {
		kvt_mlog_kick(t->mlog);
		return false;
	}
	/* Before the ring is full: then promotions would have to wait. */
	if (t->mlog->w.nr_pending > t->mlog->w.cfg.ring / 2 &&
	    !(t->mlog->w.nr_pending % KVT_KILLS_STEP))
		kvt_mlog_kick(t->mlog);
	/* It may have been the last that a doomed segment waited for. */
	if (t->mlog->w.segs[kvt_log_seg_of(&t->log, h->log_unit)].doom)
		kvt_mlog_kick(t->mlog);
	while ((ids = kvt_log_stale_ids(&t->log)))
		kvt_defer_free(p, ids);
	h->log_tier = KVT_NO_TIER;
	WRITE_ONCE(h->flags, h->flags & ~(KVT_HOT_DURABLE | KVT_HOT_STALE));
	return true;
}

/* A block died, and its log copy is still there: see kvt_mlog_fence(). */
static void kvt_ghost_born(struct kvt_pool *p, struct kvt_hot *h)
{
	struct kvt_ns *ns = kvt_ns_of(p, h->ns_group);
	u32 odd = ns->ghost_age & 1;

	lockdep_assert_held(&p->meta_lock);
	WRITE_ONCE(h->flags, h->flags | KVT_HOT_GHOST | (odd ? KVT_HOT_GHOST_ODD : 0));
	ns->nr_ghosts[odd]++;
}

static void kvt_ghost_gone(struct kvt_pool *p, struct kvt_hot *h)
{
	u32 odd = !!(h->flags & KVT_HOT_GHOST_ODD);

	lockdep_assert_held(&p->meta_lock);
	WRITE_ONCE(h->flags, h->flags & ~(KVT_HOT_GHOST | KVT_HOT_GHOST_ODD));
	if (!--kvt_ns_of(p, h->ns_group)->nr_ghosts[odd])
		wake_up_all(&p->log_wait);
}

/* A dead block's log copy goes at once, whoever still refers to the entry. */
static bool kvt_block_log_drop(struct kvt_pool *p, u32 id)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);

	lockdep_assert_held(&p->meta_lock);
	if (h->flags & KVT_HOT_PARKED)
		return false;
	if (!kvt_block_log_free(p, id)) {
		WRITE_ONCE(h->flags, h->flags | KVT_HOT_PARKED);
		kvt_list_add_head(&p->table, &p->parked, id);
		return false;
	}
	kvt_ctl_update(h, 0, 0, KVT_CTL_LOG, 0);
	if (h->flags & KVT_HOT_GHOST)
		kvt_ghost_gone(p, h);
	return true;
}

/**
 * kvt_parked_retry() - there may be room for kills again
 * @p: pool, meta lock held
 */
void kvt_parked_retry(struct kvt_pool *p)
{
	u32 nr = min(p->parked.count, KVT_PARKED_STEP);

	lockdep_assert_held(&p->meta_lock);
	while (nr--) {
		u32 id = p->parked.tail;
		struct kvt_hot *h = kvt_hot(&p->table, id);

		kvt_list_del(&p->table, &p->parked, id);
		/* Not to be refused again: that would wake whom this is called by. */
		if (!kvt_wlog_may_free(&p->tiers[h->log_tier]->mlog->w, h->log_unit)) {
			kvt_list_add_head(&p->table, &p->parked, id);
			continue;
		}
		WRITE_ONCE(h->flags, h->flags & ~KVT_HOT_PARKED);
		kvt_block_reap(p, id);
	}
}

/* A DEAD block's bytes have gone, or go now; its entry may stay for its children's sake. */
static void kvt_block_uncharge(struct kvt_pool *p, u32 id)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);
	struct kvt_ns *ns = kvt_ns_of(p, h->ns_group);
	u64 bytes = kvt_slot_bytes(&ns->group[h->ns_group & 15]);

	lockdep_assert_held(&p->meta_lock);
	if (h->flags & KVT_HOT_BARE)
		return;
	WRITE_ONCE(h->flags, h->flags | KVT_HOT_BARE);
	if (kvt_ctl(h) & KVT_CTL_PINNED)
		kvt_kept_pin(p, ns, -(s64)bytes);
	kvt_ns_use(ns, -(s64)bytes);
}

/* Free one DEAD block that nothing refers to. */
static void kvt_block_free(struct kvt_pool *p, u32 id)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);
	u32 ctl = kvt_ctl(h);

	lockdep_assert_held(&p->meta_lock);
	if ((ctl & KVT_CTL_MEM) && (h->flags & KVT_HOT_HELD))
		kvt_limbo_add(p, p->tiers[h->mem_tier], h->mem_page, h->ns_group);
	else if (ctl & KVT_CTL_MEM)
		kvt_block_mem_free(p, h->mem_tier, h->mem_page, h->ns_group);
	kvt_block_uncharge(p, id);
	kvt_ns_of(p, h->ns_group)->nr_blocks--;
	kvt_table_free(&p->table, id);
}

/* The bytes in memory of a dead block that has to wait for its kill or its children go first. */
static void kvt_block_mem_drop(struct kvt_pool *p, u32 id)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);

	lockdep_assert_held(&p->meta_lock);
	if (kvt_ctl(h) & KVT_CTL_LOG)
		kvt_copy_unmade(p, id);
	if (h->flags & KVT_HOT_HELD)
		kvt_limbo_add(p, p->tiers[h->mem_tier], h->mem_page, h->ns_group);
	else
		kvt_block_mem_free(p, h->mem_tier, h->mem_page, h->ns_group);
	kvt_ctl_update(h, 0, 0, KVT_CTL_MEM, 0);
}

/**
 * kvt_block_reap() - free a block if it is DEAD and nothing refers to it
 * @p:  pool, meta lock held
 * @id: any valid id, or KVT_NIL
 */
void kvt_block_reap(struct kvt_pool *p, u32 id)
{
	u32 ctl;

	lockdep_assert_held(&p->meta_lock);
	if (id == KVT_NIL)
		return;
	ctl = kvt_ctl(kvt_hot(&p->table, id));
	if (kvt_ctl_state(ctl) != KVT_DEAD || (ctl & KVT_CTL_MOVING))
		return;
	if ((ctl & KVT_CTL_LOG) && !kvt_block_log_drop(p, id)) {
		if ((ctl & KVT_CTL_MEM) && !kvt_ctl_leases(ctl))
			kvt_block_mem_drop(p, id);
		return;
	}
	if (kvt_ctl_leases(ctl))
		return;
	if (kvt_ch_leaf(&p->table, id)) {
		kvt_block_free(p, id);
		return;
	}
	/* Its children may stay for long; neither its tier nor its namespace waits for them. */
	if (ctl & KVT_CTL_MEM)
		kvt_block_mem_drop(p, id);
	kvt_block_uncharge(p, id);
}

/**
 * kvt_block_die() - a block is not there any more
 * @p:  pool, meta lock held
 * @id: FILLING or READY block, on no list
 *
 * It leaves its parent at once: what is dead keeps nobody from being evicted. Its
 * own children, if any, keep its entry until they have gone.
 */
void kvt_block_die(struct kvt_pool *p, u32 id)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);
	u32 parent;

	lockdep_assert_held(&p->meta_lock);
	if (kvt_ctl(h) & KVT_CTL_HELD)
		kvt_hold_lost(p, id);
	parent = kvt_ch_unlink(&p->table, id);
	kvt_block_unhash(p, id);
	kvt_ctl_update(h, 0, 0, KVT_CTL_STATE, KVT_DEAD);
	if (kvt_ctl(h) & KVT_CTL_LOG)
		kvt_ghost_born(p, h);
	kvt_block_reap(p, id);
	kvt_block_reap(p, parent);
}

/**
 * kvt_block_kill() - a READY block leaves the pool
 * @p:  pool, meta lock held
 * @id: block, READY
 *
 * It is a miss from here on. Its memory goes when leases and moves are over.
 */
void kvt_block_kill(struct kvt_pool *p, u32 id)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);
	u32 tier = kvt_block_tier(h, kvt_ctl(h));

	lockdep_assert_held(&p->meta_lock);
	p->policy.now_ms = kvt_now_ms();
	p->policy.ops->remove(&p->policy, tier, id);
	kvt_tier_count_block(p, p->tiers[tier], h->ns_group, -1);
	kvt_block_die(p, id);
}

/**
 * kvt_block_unread() - a block leaves a tier downwards, or for good
 * @p:  pool, meta lock held
 * @id: block, READY
 * @t:  tier it leaves
 */
void kvt_block_unread(struct kvt_pool *p, u32 id, struct kvt_tier *t)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);

	lockdep_assert_held(&p->meta_lock);
	if (!(h->flags & KVT_HOT_UNREAD))
		return;
	atomic64_inc(&t->count.unread);
	if (h->flags & KVT_HOT_AHEAD) {
		atomic64_inc(&t->count.prefetches_unread);
		kvt_count(p, kvt_ns_of(p, h->ns_group), KVT_CNT_PREFETCHES_UNREAD, 1);
	}
	WRITE_ONCE(h->flags, h->flags & ~(KVT_HOT_UNREAD | KVT_HOT_AHEAD | KVT_HOT_AHEAD_NEXT));
}

static void kvt_evict_trace(struct kvt_pool *p, u32 id, struct kvt_ns *ns, u32 tier,
			    enum kvt_why why)
{
	const struct kvt_cold *c = kvt_cold(&p->table, id);
	struct kvt_hot *h = kvt_hot(&p->table, id);

	trace_kvtier_evict(p->id, ns->id, h->ns_group & 15, h->key, tier, why,
			   kvt_age_ms(kvt_now_ms(), c->touch_ms), c->cls,
			   kvt_policy_worth(&p->policy, id));
}

/**
 * kvt_block_lose() - a READY block leaves the pool, and is counted and traced
 * @p:   pool, meta lock held
 * @id:  block, READY
 * @why: the cause; one whose time to live is over goes for that, not for room
 */
void kvt_block_lose(struct kvt_pool *p, u32 id, enum kvt_why why)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);
	struct kvt_ns *ns = kvt_ns_of(p, h->ns_group);
	u32 tier = kvt_block_tier(h, kvt_ctl(h));

	if (why == KVT_WHY_ROOM && kvt_block_expired(p, id))
		why = KVT_WHY_TTL;
	if (trace_kvtier_evict_enabled())
		kvt_evict_trace(p, id, ns, tier, why);
	p->tiers[tier]->left[why]++;
	ns->left[tier][why]++;
	kvt_block_unread(p, id, p->tiers[tier]);
	if (why == KVT_WHY_DROP) {
		kvt_count(p, ns, KVT_CNT_DROPS, 1);
	} else {
		atomic64_inc(&p->tiers[tier]->count.evictions);
		kvt_count(p, ns, KVT_CNT_EVICTIONS, 1);
	}
	kvt_block_kill(p, id);
}

/**
 * kvt_block_wake() - a block has settled: wake who waits for it
 * @p:  pool
 * @id: block
 */
void kvt_block_wake(struct kvt_pool *p, u32 id)
{
	wait_queue_head_t *wq = kvt_block_wq(p, id);

	if (wq_has_sleeper(wq))
		wake_up_all(wq);
	kvt_async_wake(p, id % KVT_WAITQS);
}

/**
 * kvt_lease_drop() - give one lease of a block back
 * @p:  pool; no spinlock held
 * @id: block
 */
void kvt_lease_drop(struct kvt_pool *p, u32 id)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);

	if (!kvt_lease_end(p, kvt_ns_of(p, h->ns_group), h))
		return;
	spin_lock(&p->meta_lock);
	kvt_block_reap(p, id);
	spin_unlock(&p->meta_lock);
}
