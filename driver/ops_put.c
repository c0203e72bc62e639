// SPDX-License-Identifier: GPL-2.0
/*
 * RESERVE: the filling side begins.
 *
 * RESERVE names a block before its bytes exist: from then on others who want to
 * store it find it FILLING and wait or go on. Its parent must be there (being
 * filled will do). COMMIT and ABORT are in ops_commit.c.
 *
 * A call that waits for another's reservation holds none of its own that it made
 * in that call: two callers with the same keys in different order would wait for
 * each other.
 *
 * What is reserved cannot go before it is committed, and is not weighed against what is there, so
 * one request larger than memory would push out all that others have. So others' blocks make
 * room for a namespace's reservations up to a part of memory only (reserve_percent). Beyond that
 * there is what is free, as long as nothing has to leave for it: the beginning of such a
 * request is reserved, and when that is committed it is worth what it is worth. So it is for who
 * is alone, if the request is larger than memory: else his sessions go for what cannot be had.
 */
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "ops.h"

/* Internal results of kvt_reserve_locked() */
#define KVT_RSV_REGION	1	/* *tier has pieces: get a region, try again */
#define KVT_RSV_ROOM	2	/* no slot: wait for room */
#define KVT_RSV_ENTRY	3	/* no free entry */
#define KVT_RSV_QUOTA	4	/* over quota: make the namespace's own go */
#define KVT_RSV_LIMIT	5	/* at the limit of what the namespace may fix */
#define KVT_RSV_MUCH	6	/* as much is reserved as others may have to make room for */

bool kvt_key_zero(const u8 *key)
{
	return !memchr_inv(key, 0, KVT_KEY_BYTES);
}

/**
 * kvt_parents_copy() - copy the parents of a batch in and check its keys
 * @w:    batch and flags set; @parents is to be freed with kvfree()
 * @uptr: user pointer or 0
 * Return: 0, -EINVAL for an all-zero key, -EFAULT, -ENOMEM.
 */
int kvt_parents_copy(struct kvt_putter *w, u64 uptr)
{
	u32 nr = w->flags & KVTIER_RESERVE_PARENTS ? w->b->nr : 1, i;

	for (i = 0; i < w->b->nr; i++) {
		if (kvt_key_zero(w->b->keys[i]))
			return -EINVAL;
	}
	w->parents = NULL;
	if (!uptr)
		return w->flags & KVTIER_RESERVE_PARENTS ? -EFAULT : 0;
	w->parents = kvmalloc_array(nr, sizeof(*w->parents), GFP_KERNEL_ACCOUNT);
	if (!w->parents)
		return -ENOMEM;
	if (!copy_from_user(w->parents, u64_to_user_ptr(uptr), nr * sizeof(*w->parents)))
		return 0;
	kvfree(w->parents);
	w->parents = NULL;
	return -EFAULT;
}

/* The parent of key @i: its block, KVT_NIL for a root. False: it is not there. */
static bool kvt_reserve_parent(struct kvt_putter *w, u32 i, u32 *parent)
{
	struct kvt_batch *b = w->b;
	const u8 *key = NULL;

	*parent = KVT_NIL;
	if (w->flags & KVTIER_RESERVE_PARENTS)
		key = w->parents[i];
	else if (i > 0)
		key = b->keys[i - 1];
	else if (w->parents)
		key = w->parents[0];
	if (!key || kvt_key_zero(key))
		return true;
	*parent = kvt_block_find_locked(b->f->pool, b->ns_group, key);
	return *parent != KVT_NIL;
}

/* Fill in a new entry and let it be found. */
static void kvt_reserve_enter(struct kvt_putter *w, u32 i, u32 id, u32 parent, u32 tier,
			      u32 page)
{
	struct kvt_batch *b = w->b;
	struct kvt_pool *p = b->f->pool;
	struct kvt_hot *h = kvt_hot(&p->table, id);
	struct kvt_cold *c = kvt_cold(&p->table, id);
	struct kvt_ns *ns = b->f->ns;

	lockdep_assert_held(&p->meta_lock);
	memcpy(h->key, b->keys[i], KVT_KEY_BYTES);
	h->ns_group = b->ns_group;
	h->hash = kvt_ix_hash(&p->index, b->ns_group, h->key);
	h->flags = 0;
	c->owner = w->owner;
	c->csum = w->request;
	c->touch_ms = kvt_now_ms();
	kvt_block_mem_set(p, id, p->tiers[tier], page);
	if (parent != KVT_NIL)
		kvt_ch_link(&p->table, id, parent);
	kvt_list_add_head(&p->table, &p->filling, id);
	atomic_set_release(&h->ctl, KVT_FILLING | KVT_CTL_MEM);
	kvt_block_publish(p, id);
	ns->nr_blocks++;
	ns->nr_live++;
	ns->filling_bytes += kvt_slot_bytes(b->group);
	kvt_ns_use(ns, kvt_slot_bytes(b->group));
	b->id[i] = id;
	b->gen[i] = h->gen;
	b->res[i].status = KVTIER_ST_RESERVED;
	b->res[i].tier = tier;
	b->res[i].offset = kvt_fill_base(w->owner) +
			   kvt_window_offset(p->tiers[tier], page);
}

/* Whether it could be leased. Meta lock held. */
static bool kvt_reserve_lease(struct kvt_batch *b, u32 id)
{
	enum kvt_leased leased = kvt_lease_take(b->f->pool, id);

	if (leased == KVT_LEASED_LIMIT)
		kvt_count(b->f->pool, b->f->ns, KVT_CNT_FIXED_REFUSED, 1);
	return leased == KVT_LEASED;
}

/* The key names a block already. */
static int kvt_reserve_found(struct kvt_putter *w, u32 i, u32 id)
{
	struct kvt_batch *b = w->b;
	struct kvt_pool *p = b->f->pool;
	struct kvt_hot *h = kvt_hot(&p->table, id);

	lockdep_assert_held(&p->meta_lock);
	b->id[i] = id;
	b->gen[i] = h->gen;
	if (kvt_ctl_state(kvt_ctl(h)) == KVT_FILLING) {
		b->res[i].status = KVTIER_ST_FILLING;
		return 0;
	}
	/* Stored anew: its time to live is over, so it lives without. */
	if (kvt_block_expired(p, id)) {
		kvt_cold(&p->table, id)->expire_s = 0;
		WRITE_ONCE(h->flags, h->flags & ~KVT_HOT_EXPIRES);
		kvt_copy_stale(p, id);
	}
	b->res[i].status = KVTIER_ST_EXISTS;
	b->res[i].tier = kvt_block_tier(h, kvt_ctl(h));
	if ((w->flags & KVTIER_RESERVE_LEASE) && kvt_reserve_lease(b, id)) {
		b->res[i].tier = h->mem_tier;
		b->res[i].offset = kvt_window_offset(p->tiers[h->mem_tier], h->mem_page);
		b->res[i].handle = 1;	/* leased; the real one comes later */
	}
	return 0;
}

static int kvt_reserve_slot(struct kvt_putter *w, u32 id, u32 skip, u32 *tier, u32 *page)
{
	struct kvt_batch *b = w->b;
	struct kvt_pool *p = b->f->pool;
	u32 group = b->ns_group & 15;

	if (w->region == KVT_NO_REGION)
		return kvt_slot_alloc(p, b->f->ns, group, id, skip, tier, page);
	*tier = w->tier;
	*page = kvt_block_mem_alloc(p, p->tiers[w->tier], b->f->ns, group, w->region, id);
	return *page == KVT_NO_PAGE ? -ENOSPC : 0;
}

/* A slot that may be filled. Meta lock held. 0 or KVT_RSV_* */
static int kvt_reserve_fixed(struct kvt_putter *w, u32 id, u32 skip, u32 *tier, u32 *page)
{
	struct kvt_batch *b = w->b;
	struct kvt_pool *p = b->f->pool;
	int err = kvt_reserve_slot(w, id, skip, tier, page);

	lockdep_assert_held(&p->meta_lock);
	if (err)
		return err == -EAGAIN ? KVT_RSV_REGION : KVT_RSV_ROOM;
	if (kvt_slot_fix(p, p->tiers[*tier], *page, false))
		return 0;
	kvt_block_mem_free(p, *tier, *page, b->ns_group);
	return KVT_RSV_LIMIT;
}

/* So much may a namespace have reserved for blocks to make room for more, in bytes. */
static u64 kvt_reserve_most(struct kvt_pool *p, const struct kvt_ns *ns)
{
	u64 used, all, pages = 0, min_bytes = kvt_ns_min_bytes(p, ns);
	u64 ready = ns->mem_bytes - min(ns->mem_bytes, ns->filling_bytes);
	u32 i;

	lockdep_assert_held(&p->meta_lock);
	for (i = 0; i < p->nr_tiers; i++) {
		struct kvt_tier *t = p->tiers[p->order[i]];

		if (!t->ops->is_mem || t->state != KVTIER_TIER_ONLINE)
			continue;
		kvt_tier_space(t, &used, &all);
		pages += all;
	}
	/* And what is guaranteed to it and not used yet. */
	return div_u64((pages << KVT_PAGE_SHIFT) * READ_ONCE(p->reserve_percent), 100) +
	       min_bytes - min(min_bytes, ready);
}

/* Have others blocks in memory. */
static bool kvt_reserve_others(const struct kvt_pool *p, const struct kvt_ns *ns)
{
	u32 i, g, nr;

	lockdep_assert_held(&p->meta_lock);
	for (i = 0; i < p->nr_tiers; i++) {
		const struct kvt_tier *t = p->tiers[p->order[i]];

		nr = t->ops->is_mem ? t->nr_blocks : 0;
		for (g = 0; nr && g < ns->nr_groups; g++)
			nr -= ns->group[g].own[t->id].nr_blocks;
		if (nr)
			return true;
	}
	return false;
}

/* Blocks of the call's request, with those of it that are there before, as far as looked at. */
static u32 kvt_reserve_length(struct kvt_putter *w)
{
	struct kvt_pool *p = w->b->f->pool;
	u32 parent;

	lockdep_assert_held(&p->meta_lock);
	if (!w->length) {
		w->length = w->b->nr;
		if (!(w->flags & KVTIER_RESERVE_PARENTS) && kvt_reserve_parent(w, 0, &parent) &&
		    parent != KVT_NIL)
			w->length += 1 + kvt_ch_depth(&p->table, parent, KVTIER_BATCH_MAX);
	}
	return w->length;
}

/* Are the blocks of the call's request more than all memory, be it absent for a while. */
static bool kvt_reserve_too_long(struct kvt_putter *w)
{
	const struct kvt_pool *p = w->b->f->pool;
	u64 bytes = 0;
	u32 i;

	lockdep_assert_held(&p->meta_lock);
	for (i = 0; i < p->nr_tiers; i++) {
		const struct kvt_tier *t = p->tiers[p->order[i]];

		if (t->ops->is_mem && t->state == KVTIER_TIER_ONLINE)
			bytes += t->capacity_bytes - (t->mem.retired_pages << KVT_PAGE_SHIFT);
	}
	return (u64)kvt_reserve_length(w) * kvt_slot_bytes(w->b->group) > bytes;
}

/*
 * Does anybody lose by it: others, or its owner, who has something in memory already, to a request
 * that is larger. That one gets what it would get beside others, but something in each call: what
 * its namespace has reserved may be another client's, who is to commit that.
 */
static bool kvt_reserve_harms(struct kvt_putter *w)
{
	const struct kvt_ns *ns = w->b->f->ns;

	lockdep_assert_held(&w->b->f->pool->meta_lock);
	return kvt_reserve_others(w->b->f->pool, ns) ||
	       (w->nr_reserved && ns->mem_bytes > ns->filling_bytes && kvt_reserve_too_long(w));
}

/*
 * Has the caller's namespace reserved so much that nothing makes room for more. @spared: tiers, as
 * bits, of which it gets nothing then, because the worker would make room there; ~0: all.
 */
static bool kvt_reserve_over(struct kvt_putter *w, u32 *spared)
{
	struct kvt_pool *p = w->b->f->pool;
	const struct kvt_ns *ns = w->b->f->ns;
	u64 used, all;
	bool any = false;
	u32 i;

	*spared = 0;
	/* WRITE commits each block before the next. */
	if (!ns->filling_bytes || !w->owner || w->region != KVT_NO_REGION ||
	    READ_ONCE(p->reserve_percent) == 100)
		return false;
	if (ns->filling_bytes < kvt_reserve_most(p, ns) || !kvt_reserve_harms(w))
		return false;
	for (i = 0; i < p->nr_tiers; i++) {
		struct kvt_tier *t = p->tiers[p->order[i]];

		if (!t->ops->is_mem || t->state != KVTIER_TIER_ONLINE)
			continue;
		kvt_tier_space(t, &used, &all);
		if ((used + w->b->group->slot_pages) * 100 >
		    all * READ_ONCE(p->watermark_low_percent))
			*spared |= BIT(t->id);
		else
			any = true;
	}
	if (!any)
		*spared = ~0u;
	return true;
}

/*
 * Reserve key @i, or say what has become of it in its result. Meta lock held.
 * Return: 0: its result is final; KVT_RSV_*: what has to be done first.
 */
static int kvt_reserve_locked(struct kvt_putter *w, u32 i, u32 skip, u32 *tier)
{
	struct kvt_batch *b = w->b;
	struct kvt_pool *p = b->f->pool;
	struct kvt_ns *ns = b->f->ns;
	u32 id = kvt_block_find_locked(p, b->ns_group, b->keys[i]), parent, page, spared;
	bool over;
	int err;

	lockdep_assert_held(&p->meta_lock);
	if (id != KVT_NIL)
		return kvt_reserve_found(w, i, id);
	if (!kvt_reserve_parent(w, i, &parent)) {
		b->res[i].status = KVTIER_ST_NOPARENT;
		return 0;
	}
	/* First of all: its own blocks do not go for what it would not get. */
	over = kvt_reserve_over(w, &spared);
	if (spared == ~0u)
		return KVT_RSV_MUCH;
	if (ns->quota_bytes && ns->used_bytes + kvt_slot_bytes(b->group) > ns->quota_bytes)
		return KVT_RSV_QUOTA;
	if (ns->budgets && kvt_budget_over(ns, kvt_slot_bytes(b->group)))
		return KVT_RSV_QUOTA;
	id = kvt_table_take(&p->table);
	if (id == KVT_NIL)
		return KVT_RSV_ENTRY;
	err = kvt_reserve_fixed(w, id, skip | spared, tier, &page);
	if (err) {
		kvt_table_free(&p->table, id);
		return err == KVT_RSV_ROOM && over ? KVT_RSV_MUCH : err;
	}
	kvt_reserve_enter(w, i, id, parent, *tier, page);
	w->nr_reserved++;
	return 0;
}

/*
 * Keep the parent of key @i while room is made: as the end of its chain it would
 * be among the first to go. KVT_NIL: there is none to keep.
 */
static u32 kvt_reserve_keep_parent(struct kvt_putter *w, u32 i)
{
	struct kvt_pool *p = w->b->f->pool;
	u32 parent;

	spin_lock(&p->meta_lock);
	if (!kvt_reserve_parent(w, i, &parent) || parent == KVT_NIL ||
	    kvt_lease_take(p, parent) != KVT_LEASED)
		parent = KVT_NIL;
	spin_unlock(&p->meta_lock);
	return parent;
}

/* Is what was asked for an arena whose tier has failed: its slots do not come back. srcu held. */
static bool kvt_reserve_lost(const struct kvt_putter *w)
{
	const struct kvt_tier *t = w->region == KVT_NO_REGION ? NULL :
				   kvt_tier_at(w->b->f->pool, w->tier);

	return t && READ_ONCE(t->state) == KVTIER_TIER_FAILED;
}

/*
 * Wait with srcu dropped, so that a tier can go meanwhile. @much: nothing makes room, but there may
 * be memory that no block is in. Nor is it waited for: the caller may be the one who has to commit.
 */
static int kvt_reserve_room(struct kvt_putter *w, u32 i, bool much)
{
	struct kvt_pool *p = w->b->f->pool;
	struct kvt_want want = {
		.ns = w->b->f->ns,
		.group = w->b->ns_group & 15,
		.region = w->region,
		.tier = w->tier,
	};
	u32 parent;
	int err;

	if (much || !(w->flags & KVTIER_RESERVE_WAIT) || kvt_reserve_lost(w)) {
		kvt_room_wish(p, &want);
		return -ENOSPC;
	}
	parent = kvt_reserve_keep_parent(w, i);
	srcu_read_unlock(&p->srcu, w->idx);
	err = kvt_room_wait(p, &want, w->deadline_ns);
	if (err == -ENOSPC && kvt_deadline_jiffies(w->deadline_ns)) {
		/* All of it is in use; a release may come. */
		err = schedule_timeout_killable(HZ / 100 + 1) && fatal_signal_pending(current) ?
		      -EINTR : 0;
	}
	w->idx = srcu_read_lock(&p->srcu);
	if (parent != KVT_NIL)
		kvt_lease_drop(p, parent);
	return err;
}

/* Evict a claimed block, if it may go. */
static bool kvt_reserve_evict(struct kvt_pool *p, u32 id)
{
	bool gone;

	spin_lock(&p->meta_lock);
	gone = kvt_evict_claimed(p, id, KVT_WHY_QUOTA);
	spin_unlock(&p->meta_lock);
	return gone;
}

/*
 * What has gone and waits for its kill is counted until then: no reason to evict more.
 * Whether none of it is left. The pool's srcu is dropped meanwhile.
 */
static bool kvt_reserve_parked(struct kvt_putter *w)
{
	struct kvt_pool *p = w->b->f->pool;

	srcu_read_unlock(&p->srcu, w->idx);
	wait_event_killable_timeout(p->log_wait, !READ_ONCE(p->parked.count), HZ / 10 + 1);
	w->idx = srcu_read_lock(&p->srcu);
	return !READ_ONCE(p->parked.count);
}

/*
 * The namespace is at its quota: its oldest leaf goes, slowest tier first, but not
 * the one that is about to be extended.
 */
static bool kvt_reserve_quota(struct kvt_putter *w, u32 i)
{
	struct kvt_batch *b = w->b;
	struct kvt_pool *p = b->f->pool;
	struct kvt_tier *t[KVT_TIERS];
	bool gone = false;
	u32 nr, id, parent;

	if (READ_ONCE(p->parked.count) && kvt_reserve_parked(w))
		return true;
	/* Only now: a tier may have gone meanwhile. */
	nr = kvt_tier_snapshot(p, t, false);
	spin_lock(&p->meta_lock);
	kvt_touch_drain(p);
	kvt_reserve_parent(w, i, &parent);
	spin_unlock(&p->meta_lock);
	while (nr-- && !gone)
		gone = kvt_collect_own(p, t[nr], true, b->ns_group, parent, KVT_OWN_STEPS_CALL,
				       &id, 1) && kvt_reserve_evict(p, id);
	w->over_quota = !gone;
	return gone;
}

static int kvt_reserve_filler(struct kvt_putter *w, u32 i)
{
	struct kvt_batch *b = w->b;
	struct kvt_pool *p = b->f->pool;
	int err;

	srcu_read_unlock(&p->srcu, w->idx);
	err = kvt_block_wait(p, b->id[i], b->gen[i], w->deadline_ns);
	w->idx = srcu_read_lock(&p->srcu);
	return err;
}

static int kvt_reserve_obstacle(struct kvt_putter *w, u32 i, int what, u32 *skip, u32 tier)
{
	struct kvt_batch *b = w->b;
	struct kvt_pool *p = b->f->pool;
	struct kvt_tier *t;
	int err = 0;

	switch (what) {
	case KVT_RSV_REGION:
		/* One that has left meanwhile is not found when all are looked at again. */
		t = kvt_tier_at(p, tier);
		err = t ? kvt_region_get(t, b->f->ns, b->ns_group & 15, &w->idx) : 0;
		if (err && kvt_tier_at(p, tier) == t)
			*skip |= BIT(tier);
		return 0;
	case KVT_RSV_ROOM:
	case KVT_RSV_MUCH:
		*skip = 0;
		err = kvt_reserve_room(w, i, what == KVT_RSV_MUCH);
		b->res[i].status = KVTIER_ST_NOSPACE;
		return err;
	case KVT_RSV_ENTRY:
		*skip = 0;
		/* The caller's cgroup may be full. */
		srcu_read_unlock(&p->srcu, w->idx);
		err = kvt_pool_grow(p, 1);
		w->idx = srcu_read_lock(&p->srcu);
		b->res[i].status = KVTIER_ST_NOSPACE;
		return err;
	case KVT_RSV_QUOTA:
		b->res[i].status = KVTIER_ST_QUOTA;
		/* One look is enough for a call: the next key would find no more. */
		return !w->over_quota && kvt_reserve_quota(w, i) ? 0 : -ENOSPC;
	case KVT_RSV_LIMIT:
		b->res[i].status = KVTIER_ST_LIMIT;
		kvt_count(p, b->f->ns, KVT_CNT_FIXED_REFUSED, 1);
		return -EDQUOT;
	}
	return 0;
}

/**
 * kvt_reserve_one() - reserve one key of a batch
 * @w: how; srcu held through @w->idx
 * @i: which
 *
 * Its result says what became of it. Without WAIT, or with reservations made in
 * this call already, FILLING is final.
 * Return: 0, or -EINTR.
 */
int kvt_reserve_one(struct kvt_putter *w, u32 i)
{
	struct kvt_batch *b = w->b;
	struct kvt_pool *p = b->f->pool;
	u32 skip = 0, tier = 0;
	bool waited = false;
	int what, err;

	for (;;) {
		spin_lock(&p->meta_lock);
		what = kvt_reserve_locked(w, i, skip, &tier);
		spin_unlock(&p->meta_lock);
		if (what) {
			err = kvt_reserve_obstacle(w, i, what, &skip, tier);
			if (err)
				return err == -EINTR ? err : 0;
			/* Much may have to go for one block, if a limit was lowered. */
			if (fatal_signal_pending(current))
				return -EINTR;
			cond_resched();
			continue;
		}
		if (b->res[i].status == KVTIER_ST_EXISTS) {
			kvt_count(p, b->f->ns, KVT_CNT_DEDUPS, 1);
			kvt_count(p, b->f->ns, KVT_CNT_DEDUP_WAITS, waited);
		}
		if (b->res[i].status != KVTIER_ST_FILLING ||
		    !(w->flags & KVTIER_RESERVE_WAIT) || w->nr_reserved)
			return 0;
		waited = true;
		err = kvt_reserve_filler(w, i);
		if (err)
			return err == -EINTR ? err : 0;
	}
}

/* Undo what a call did whose caller cannot be told of it. */
static void kvt_reserve_undo(struct kvt_batch *b, u32 owner)
{
	struct kvt_pool *p = b->f->pool;
	u32 ids[KVT_CHUNK_KEYS], n = 0, i;

	for (i = 0; i < b->nr; i++) {
		if (b->res[i].status == KVTIER_ST_EXISTS && b->res[i].handle)
			kvt_lease_drop(p, b->id[i]);
		if (b->res[i].status != KVTIER_ST_RESERVED)
			continue;
		spin_lock(&p->meta_lock);
		n += kvt_filling_claim(p, b->id[i], b->gen[i], owner);
		spin_unlock(&p->meta_lock);
		if (n) {
			ids[0] = b->id[i];
			kvt_filling_abort(p, ids, 1, b->f->fill_mapped);
			n = 0;
		}
	}
}

static int kvt_reserve_handles(struct kvt_batch *b)
{
	struct kvt_file *f = b->f;
	u32 i, n = 0, leases = 0;
	int err;

	for (i = 0; i < b->nr; i++)
		n += b->res[i].status == KVTIER_ST_RESERVED || b->res[i].handle;
	kvt_file_lock(f);
	err = kvt_lease_prepare(f, n);
	for (i = 0; i < b->nr && !err; i++) {
		if (b->res[i].status == KVTIER_ST_RESERVED) {
			b->res[i].handle = kvt_lease_add(f, b->id[i], b->gen[i],
							 KVT_HELD_RESERVATION);
		} else if (b->res[i].handle) {
			b->res[i].handle = kvt_lease_add(f, b->id[i], b->gen[i],
							 KVT_HELD_LEASE);
			leases++;
		}
	}
	mutex_unlock(&f->lock);
	if (err)
		kvt_reserve_undo(b, f->id);
	kvt_count(f->pool, f->ns, KVT_CNT_LEASES_TAKEN, leases);
	return err;
}

static int kvt_reserve_check(struct kvt_file *f, const struct kvtier_reserve *a)
{
	if (f->rdonly)
		return -EACCES;
	if ((a->flags & KVTIER_RESERVE_WAIT) && (a->flags & KVTIER_RESERVE_ASYNC))
		return -EINVAL;
	return kvt_check_group(f, a->group);
}

/* Find the caller's arena, if he asks for a slot of it. */
static int kvt_reserve_arena(struct kvt_putter *w, u32 group)
{
	struct kvt_file *f = w->b->f;

	w->region = KVT_NO_REGION;
	if (!(w->flags & KVTIER_RESERVE_ARENA))
		return 0;
	kvt_file_lock(f);
	w->region = f->arena[group].region;
	w->tier = f->arena[group].tier;
	mutex_unlock(&f->lock);
	return w->region == KVT_NO_REGION ? -ENOENT : 0;
}

static int kvt_reserve_batch(struct kvt_putter *w)
{
	struct kvt_batch *b = w->b;
	struct kvt_pool *p = b->f->pool;
	int err;
	u32 i;

	err = kvt_pool_grow(p, b->nr);
	if (err && err != -ENOSPC)
		return err;
	w->idx = srcu_read_lock(&p->srcu);
	for (i = 0, err = 0; i < b->nr && !err; i++) {
		err = kvt_reserve_one(w, i);
		if (i % KVT_CHUNK_KEYS)
			continue;
		/* The caller may be given little time: no tier waits for all of it. */
		srcu_read_unlock(&p->srcu, w->idx);
		cond_resched();
		w->idx = srcu_read_lock(&p->srcu);
	}
	srcu_read_unlock(&p->srcu, w->idx);
	if (err)
		kvt_reserve_undo(b, w->owner);
	return err;
}

/* Wait for others' reservations in the caller's stead, if there are any. */
static void kvt_reserve_async(struct kvt_batch *b, struct kvt_async *as)
{
	u32 i, n = 0;

	for (i = 0; i < b->nr; i++) {
		if (b->res[i].status != KVTIER_ST_FILLING)
			continue;
		kvt_async_add(as, b->id[i], b->gen[i]);
		n++;
	}
	if (n)
		kvt_async_start(as, NULL);
	else
		kvt_async_free(as);
}

/* Reserve, then give handles: after this nothing can fail but copying results. */
static int kvt_reserve_run(struct kvt_putter *w, const struct kvtier_reserve *a)
{
	struct kvt_batch *b = w->b;
	struct kvt_async *as = NULL;
	int err;

	if (a->flags & KVTIER_RESERVE_ASYNC) {
		as = kvt_async_alloc(b->f, a->user_data, a->eventfd, b->nr);
		if (IS_ERR(as))
			return PTR_ERR(as);
	}
	err = kvt_parents_copy(w, a->parent) ?: kvt_reserve_arena(w, b->ns_group & 15) ?:
	      kvt_reserve_batch(w) ?: kvt_reserve_handles(b);
	if (as && err)
		kvt_async_free(as);
	else if (as)
		kvt_reserve_async(b, as);
	return err;
}

/**
 * kvt_op_reserve() - RESERVE
 * @f:   caller
 * @arg: struct kvtier_reserve
 */
int kvt_op_reserve(struct kvt_file *f, void *arg)
{
	struct kvtier_reserve *a = arg;
	struct kvt_putter w = {
		.flags = a->flags, .owner = f->id, .request = kvt_request_of(a->request),
	};
	struct kvt_batch b;
	int err;

	err = kvt_reserve_check(f, a) ?: kvt_batch_init(&b, f, a->group, a->nr, a->keys);
	if (err)
		return err;
	w.b = &b;
	w.deadline_ns = kvt_deadline(a->flags & KVTIER_RESERVE_WAIT ? a->timeout_ns : 0);
	err = kvt_reserve_run(&w, a);
	a->nr_reserved = w.nr_reserved;
	/* Handles are the file's now; what cannot be told of goes away with it. */
	if (!err && copy_to_user(u64_to_user_ptr(a->results), b.res,
				 a->nr * sizeof(*b.res)))
		err = -EFAULT;
	kvfree(w.parents);
	kvt_batch_free(&b);
	return err;
}
