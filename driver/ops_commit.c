// SPDX-License-Identifier: GPL-2.0
/*
 * COMMIT and ABORT: reservations end.
 *
 * COMMIT takes write access away first, makes sure that nobody else can still write to the
 * pages, and only then lets the block be read. Whoever sets MOVING on the FILLING block has
 * the right to end it: see kvt_fill.c. A call goes on in chunks, and what has become of one
 * stands whatever becomes of the next.
 */
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "kvt_trace.h"
#include "ops.h"

/**
 * kvt_commit_locked() - let a filled block be read
 * @p:     pool, meta lock held
 * @ns:    its namespace
 * @id:    block claimed with kvt_filling_claim(), write access taken away
 * @lease: take a lease
 * Return: KVTIER_ST_DONE, _HIT (leased), _NOPARENT or _STALE (its memory is lost);
 * with the last two it is still a reservation, with _STALE to be given up.
 */
s32 kvt_commit_locked(struct kvt_pool *p, struct kvt_ns *ns, u32 id, bool lease)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);
	struct kvt_cold *c = kvt_cold(&p->table, id);
	struct kvt_tier *t = p->tiers[h->mem_tier];
	s32 status = KVTIER_ST_DONE;

	lockdep_assert_held(&p->meta_lock);
	if (t->state == KVTIER_TIER_FAILED || kvt_mem_slot_poisoned(&t->mem, h->mem_page)) {
		kvt_ctl_update(h, 0, 0, KVT_CTL_MOVING, 0);
		return KVTIER_ST_STALE;
	}
	if (c->parent != KVT_NIL &&
	    kvt_ctl_state(kvt_ctl(kvt_hot(&p->table, c->parent))) != KVT_READY) {
		kvt_ctl_update(h, 0, 0, KVT_CTL_MOVING, 0);
		return KVTIER_ST_NOPARENT;
	}
	kvt_list_del(&p->table, &p->filling, id);
	ns->filling_bytes -= kvt_slot_bytes(kvt_group_of(p, h->ns_group));
	c->owner = 0;
	c->csum = 0;
	p->policy.now_ms = kvt_now_ms();
	c->touch_ms = p->policy.now_ms;
	p->policy.ops->insert(&p->policy, t->id, id);
	kvt_tier_count_block(p, t, h->ns_group, 1);
	kvt_count(p, ns, KVT_CNT_PUTS, 1);
	trace_kvtier_put(p->id, ns->id, h->ns_group & 15, h->key, t->id);
	kvt_ctl_update(h, 0, 0, KVT_CTL_STATE | KVT_CTL_MOVING, KVT_READY);
	/* The reservation has fixed the region, so this is not refused. */
	if (lease && kvt_lease_take(p, id) == KVT_LEASED)
		status = KVTIER_ST_HIT;
	kvt_slot_unfix(p, t, h->mem_page);
	return status;
}

/*
 * One chunk of handles on its way through COMMIT. @use: for the policy, chains that were
 * stored; the last may go on in the next chunk. @patient: no slot was waited for yet.
 */
struct kvt_commit_chunk {
	u64 handle[KVT_CHUNK_KEYS];
	u32 id[KVT_CHUNK_KEYS];
	struct kvtier_block_result res[KVT_CHUNK_KEYS];
	u32 nr;
	struct kvt_use use[KVT_CHUNK_KEYS + 1];
	u32 nr_uses;
	bool patient;
};

/* Claim what can be committed; the others' results are final. */
static void kvt_commit_claim(struct kvt_file *f, struct kvt_commit_chunk *c)
{
	struct kvt_pool *p = f->pool;
	u32 i;

	for (i = 0; i < c->nr; i++) {
		struct kvt_lease *l = kvt_lease_find(f, c->handle[i], KVT_HELD_RESERVATION);
		bool ok, gone;

		c->id[i] = KVT_NIL;
		c->res[i].status = KVTIER_ST_STALE;
		if (!l)
			continue;
		spin_lock(&p->meta_lock);
		ok = kvt_filling_claim(p, l->block, l->gen, f->id);
		/* The same handle twice in one call is claimed already, not gone. */
		gone = !ok && !kvt_filling_mine(p, l->block, l->gen, f->id);
		spin_unlock(&p->meta_lock);
		if (ok)
			c->id[i] = l->block;
		else if (gone)
			kvt_lease_del(f, l);
	}
}

/* Take write access away and see that nobody else has any. */
static void kvt_commit_revoke(struct kvt_file *f, struct kvt_commit_chunk *c)
{
	struct kvt_pool *p = f->pool;
	u64 revoked;
	u32 i;

	if (!f->fill_mapped)
		return;
	kvt_map_barrier(p);
	revoked = kvt_fill_revoke(p, c->id, c->nr);
	for (i = 0; i < c->nr; i++) {
		struct kvt_hot *h = kvt_hot(&p->table, c->id[i]);
		struct kvt_tier *t;
		u32 nr;

		if (!(revoked & BIT_ULL(i)))
			continue;
		t = p->tiers[h->mem_tier];
		nr = kvt_group_of(p, h->ns_group)->slot_pages;
		if (!(c->patient ? kvt_slot_foreign(t, h->mem_page, nr) :
				   kvt_pages_foreign(t, h->mem_page, nr)))
			continue;
		/* Who pins one slot waits for one slot: a call is not held up by each. */
		c->patient = false;
		kvt_ctl_update(h, 0, 0, KVT_CTL_MOVING, 0);
		c->id[i] = KVT_NIL;
		c->res[i].status = KVTIER_ST_PINNED;
	}
}

static void kvt_commit_pad(struct kvt_pool *p, const struct kvt_commit_chunk *c)
{
	u32 i;

	for (i = 0; i < c->nr; i++) {
		const struct kvt_hot *h = kvt_hot(&p->table, c->id[i]);

		if (c->id[i] != KVT_NIL)
			kvt_slot_pad(p->tiers[h->mem_tier], h->mem_page,
				     kvt_block_bytes(p, c->id[i]));
	}
}

/* A block has been stored: one more of a chain, or the first. Meta lock held. */
static void kvt_commit_use(struct kvt_file *f, struct kvt_commit_chunk *c, u32 id, u32 request)
{
	struct kvt_table *t = &f->pool->table;
	struct kvt_use *u = c->nr_uses ? &c->use[c->nr_uses - 1] : NULL;

	lockdep_assert_held(&f->pool->meta_lock);
	if (!u || u->request != request || kvt_cold(t, id)->parent != u->tip) {
		u = &c->use[c->nr_uses++];
		*u = (struct kvt_use) { .who = f->id, .request = request };
	}
	u->tip = id;
	u->gen = kvt_hot(t, id)->gen;
	u->nr++;
}

/* Tell the policy of all chains stored but the last @keep, one by one: each takes time. */
static void kvt_commit_tell(struct kvt_pool *p, struct kvt_commit_chunk *c, u32 keep)
{
	u32 i;

	for (i = 0; i + keep < c->nr_uses; i++) {
		spin_lock(&p->meta_lock);
		kvt_touch_drain(p);
		kvt_use_end(p, &c->use[i]);
		spin_unlock(&p->meta_lock);
	}
	if (i && keep)
		c->use[0] = c->use[i];
	c->nr_uses -= i;
}

static void kvt_commit_publish(struct kvt_file *f, struct kvt_commit_chunk *c, bool lease)
{
	struct kvt_pool *p = f->pool;
	u32 i, request;

	spin_lock(&p->meta_lock);
	/* What the caller has read of the chain comes before what he stores. */
	kvt_touch_drain(p);
	for (i = 0; i < c->nr; i++) {
		struct kvt_hot *h = kvt_hot(&p->table, c->id[i]);

		if (c->id[i] == KVT_NIL)
			continue;
		request = kvt_cold(&p->table, c->id[i])->csum;
		c->res[i].status = kvt_commit_locked(p, f->ns, c->id[i], lease);
		if (c->res[i].status >= 0)
			kvt_session_grow(f, c->id[i]);
		c->res[i].tier = h->mem_tier;
		c->res[i].offset = kvt_window_offset(p->tiers[h->mem_tier], h->mem_page);
		if (c->res[i].status >= 0)
			kvt_commit_use(f, c, c->id[i], request);
	}
	/* A chain's tail is to be the older, as with every other use. */
	for (i = c->nr; i-- > 0;) {
		if (c->id[i] != KVT_NIL && c->res[i].status >= 0)
			p->policy.ops->touch(&p->policy, c->res[i].tier, c->id[i]);
	}
	spin_unlock(&p->meta_lock);
	for (i = 0; i < c->nr; i++) {
		if (c->id[i] != KVT_NIL)
			kvt_block_wake(p, c->id[i]);
	}
}

/* Give up the reservations whose memory was lost while they were filled. */
static void kvt_commit_lost(struct kvt_file *f, struct kvt_commit_chunk *c)
{
	u32 ids[KVT_CHUNK_KEYS], n = 0, i;
	struct kvt_pool *p = f->pool;

	for (i = 0; i < c->nr; i++) {
		struct kvt_lease *l;
		bool mine;

		if (c->id[i] == KVT_NIL || c->res[i].status != KVTIER_ST_STALE)
			continue;
		l = kvt_lease_find(f, c->handle[i], KVT_HELD_RESERVATION);
		spin_lock(&p->meta_lock);
		mine = kvt_filling_claim(p, l->block, l->gen, f->id);
		spin_unlock(&p->meta_lock);
		if (mine)
			ids[n++] = l->block;
		kvt_lease_del(f, l);
	}
	if (n)
		kvt_filling_abort(p, ids, n, f->fill_mapped);
}

/* Turn reservations' records into leases, or delete them. */
static u32 kvt_commit_records(struct kvt_file *f, struct kvt_commit_chunk *c)
{
	u32 i, done = 0, leased = 0;

	for (i = 0; i < c->nr; i++) {
		struct kvt_lease *l;

		if (c->id[i] == KVT_NIL || c->res[i].status < 0) {
			c->res[i].offset = 0;
			continue;
		}
		done++;
		l = kvt_lease_find(f, c->handle[i], KVT_HELD_RESERVATION);
		if (c->res[i].status == KVTIER_ST_HIT) {
			l->kind_next = KVT_HELD_LEASE;
			c->res[i].handle = c->handle[i];
			leased++;
		} else {
			kvt_lease_del(f, l);
		}
	}
	kvt_count(f->pool, f->ns, KVT_CNT_LEASES_TAKEN, leased);
	return done;
}

static void kvt_commit_pressure(struct kvt_file *f)
{
	struct kvt_pool *p = f->pool;
	struct kvt_tier *t[KVT_TIERS];
	u32 nr = kvt_tier_snapshot(p, t, true), i;

	if (!list_empty_careful(&f->ns->over_link))
		kvt_reclaim_kick(p);
	for (i = 0; i < nr; i++) {
		if (kvt_tier_over(p, t[i], READ_ONCE(p->watermark_high_percent))) {
			kvt_reclaim_kick(p);
			return;
		}
	}
}

static int kvt_commit_chunk(struct kvt_file *f, struct kvtier_commit *a,
			    struct kvt_commit_chunk *c, u32 at)
{
	struct kvt_pool *p = f->pool;
	int idx;

	c->nr = min(a->nr - at, KVT_CHUNK_KEYS);
	memset(c->res, 0, sizeof(c->res));
	if (copy_from_user(c->handle, u64_to_user_ptr(a->handles) + at * sizeof(u64),
			   c->nr * sizeof(u64)))
		return -EFAULT;
	kvt_file_lock(f);
	idx = srcu_read_lock(&p->srcu);
	kvt_commit_claim(f, c);
	kvt_commit_revoke(f, c);
	kvt_commit_pad(p, c);
	kvt_commit_publish(f, c, a->flags & KVTIER_COMMIT_LEASE);
	kvt_commit_lost(f, c);
	a->nr_done += kvt_commit_records(f, c);
	mutex_unlock(&f->lock);
	kvt_commit_tell(p, c, 1);
	kvt_commit_pressure(f);
	srcu_read_unlock(&p->srcu, idx);
	if (copy_to_user(u64_to_user_ptr(a->results) + at * sizeof(c->res[0]), c->res,
			 c->nr * sizeof(c->res[0])))
		return -EFAULT;
	return 0;
}

/**
 * kvt_op_commit() - COMMIT
 * @f:   caller
 * @arg: struct kvtier_commit
 */
int kvt_op_commit(struct kvt_file *f, void *arg)
{
	struct kvtier_commit *a = arg;
	struct kvt_commit_chunk *c;
	int err = kvt_check_handles(a->handles, a->nr);
	u32 at;

	if (err)
		return err;
	if (f->rdonly)
		return -EACCES;
	c = kmalloc(sizeof(*c), GFP_KERNEL_ACCOUNT);
	if (!c)
		return -ENOMEM;
	a->nr_done = 0;
	c->nr_uses = 0;
	c->patient = true;
	for (at = 0; at < a->nr && !err; at += KVT_CHUNK_KEYS)
		err = fatal_signal_pending(current) ? -EINTR : kvt_commit_chunk(f, a, c, at);
	kvt_commit_tell(f->pool, c, 0);
	kfree(c);
	return err;
}

static u32 kvt_abort_chunk(struct kvt_file *f, const u64 *handles, s32 *st, u32 nr)
{
	struct kvt_pool *p = f->pool;
	u32 ids[KVT_CHUNK_KEYS], n = 0, i;

	kvt_file_lock(f);
	for (i = 0; i < nr; i++) {
		struct kvt_lease *l = kvt_lease_find(f, handles[i], KVT_HELD_RESERVATION);
		bool ok;

		st[i] = KVTIER_ST_STALE;
		if (!l)
			continue;
		spin_lock(&p->meta_lock);
		ok = kvt_filling_claim(p, l->block, l->gen, f->id);
		spin_unlock(&p->meta_lock);
		if (ok) {
			ids[n++] = l->block;
			st[i] = KVTIER_ST_DONE;
		}
		kvt_lease_del(f, l);
	}
	if (n)
		kvt_filling_abort(p, ids, n, f->fill_mapped);
	mutex_unlock(&f->lock);
	return n;
}

/**
 * kvt_op_abort() - ABORT
 * @f:   caller
 * @arg: struct kvtier_handles
 */
int kvt_op_abort(struct kvt_file *f, void *arg)
{
	struct kvtier_handles *a = arg;
	u64 handles[KVT_CHUNK_KEYS];
	s32 st[KVT_CHUNK_KEYS];
	int err = kvt_check_handles(a->handles, a->nr);
	u32 i, n;

	a->nr_done = 0;
	for (i = 0; i < a->nr && !err; i += n) {
		n = min(a->nr - i, KVT_CHUNK_KEYS);
		if (copy_from_user(handles, u64_to_user_ptr(a->handles) + i * sizeof(u64),
				   n * sizeof(u64)))
			return -EFAULT;
		a->nr_done += kvt_abort_chunk(f, handles, st, n);
		err = kvt_put_statuses(a->results ? a->results + i * sizeof(s32) : 0, st, n);
		if (!err && fatal_signal_pending(current))
			err = -EINTR;
	}
	kvt_room_wake(f->pool);
	return err;
}
