// SPDX-License-Identifier: GPL-2.0
/*
 * LOOKUP, GET, RELEASE, PREFETCH: the reading side.
 *
 * GET leases blocks one by one until it meets one that is not in memory. If that
 * is on a block tier, it and all that follow it in the chain start moving up
 * together; then GET waits and goes on where it stopped, or tells the caller.
 * A hit takes the shard's lock for a moment, and no other; the touch of the
 * whole batch is noted at its end.
 */
#include <linux/nospec.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "kvt_lease.h"
#include "kvt_trace.h"
#include "ops.h"

int kvt_check_nr(u32 nr)
{
	return nr && nr <= KVTIER_BATCH_MAX ? 0 : -EINVAL;
}

/**
 * kvt_check_handles() - check a list of handles before any of it is acted on
 * @uptr: user pointer
 * @nr:   how many
 *
 * They are copied in steps, between which something is done that cannot be undone. Who
 * unmaps them meanwhile has himself to blame.
 * Return: 0, -EINVAL or -EFAULT. May sleep.
 */
int kvt_check_handles(u64 uptr, u32 nr)
{
	int err = kvt_check_nr(nr);

	if (!err && nr > KVT_CHUNK_KEYS &&
	    fault_in_readable(u64_to_user_ptr(uptr), nr * sizeof(u64)))
		err = -EFAULT;
	return err;
}

int kvt_check_group(struct kvt_file *f, u32 group)
{
	return group < f->ns->nr_groups ? 0 : -ENOENT;
}

/**
 * kvt_batch_init() - check a batch's size and copy its keys in
 * @b:     batch, to be freed with kvt_batch_free() on success
 * @f:     caller
 * @group: its group
 * @nr:    keys
 * @keys:  user pointer
 * Return: 0, -EINVAL, -ENOENT, -EFAULT or -ENOMEM.
 */
int kvt_batch_init(struct kvt_batch *b, struct kvt_file *f, u32 group, u32 nr, u64 keys)
{
	int err = kvt_check_nr(nr) ?: kvt_check_group(f, group);
	size_t each = sizeof(*b->keys) + sizeof(*b->res) + 2 * sizeof(u32) + 1;
	void *at;

	if (err)
		return err;
	group = array_index_nospec(group, f->ns->nr_groups);
	at = kvmalloc_array(nr, each, GFP_KERNEL_ACCOUNT);
	if (!at)
		return -ENOMEM;
	b->mem = at;
	b->f = f;
	b->group = &f->ns->group[group];
	b->ns_group = kvt_ns_group(f->ns->idx, group);
	b->nr = nr;
	b->keys = at;
	at += nr * sizeof(*b->keys);
	b->res = at;
	at += nr * sizeof(*b->res);
	b->id = at;
	at += nr * sizeof(u32);
	b->gen = at;
	at += nr * sizeof(u32);
	b->from = at;
	if (copy_from_user(b->keys, u64_to_user_ptr(keys), nr * sizeof(*b->keys))) {
		kvfree(b->mem);
		return -EFAULT;
	}
	memset(b->res, 0, nr * sizeof(*b->res));
	memset(b->from, KVT_NO_TIER, nr);
	return 0;
}

void kvt_batch_free(struct kvt_batch *b)
{
	kvfree(b->mem);
}

/* Copy per-entry statuses out, if they are wanted. */
int kvt_put_statuses(u64 uptr, const s32 *st, u32 nr)
{
	if (uptr && copy_to_user(u64_to_user_ptr(uptr), st, nr * sizeof(*st)))
		return -EFAULT;
	return 0;
}

/*
 * Estimated time to bring a block up from its tier, as far as everybody may know it. The
 * first of each tier has those before it that others wait for.
 */
static u64 kvt_fetch_cost_ns(struct kvt_pool *p, u32 tier, u32 bytes, u32 *met)
{
	struct kvt_tier *t = tier < KVT_TIERS ? kvt_tier_at(p, tier) : NULL;
	u64 ns;

	if (!t || t->ops->is_mem)
		return 0;
	ns = kvt_cost_round(kvt_cost_ns(&t->read_cost, bytes));
	if (!(*met & 1u << tier))
		ns += kvt_cost_round(kvt_cost_ns(&t->read_cost, atomic64_read(&t->reads_bytes)));
	*met |= 1u << tier;
	return ns;
}

static void kvt_lookup_one(struct kvt_batch *b, u32 i, struct kvtier_lookup_result *r, u32 *met)
{
	struct kvt_pool *p = b->f->pool;
	enum kvt_found found;
	struct kvt_hot *h;

	memset(r, 0, sizeof(*r));
	found = kvt_block_find(p, b->ns_group, b->keys[i], false, &b->id[i], &b->gen[i]);
	if (found == KVT_FOUND_NOT)
		return;
	if (found == KVT_FOUND_FILLING) {
		r->status = KVTIER_ST_FILLING;
		return;
	}
	h = kvt_hot(&p->table, b->id[i]);
	r->status = KVTIER_ST_HIT;
	r->tier = kvt_block_tier(h, kvt_ctl(h));
	if (r->tier == KVT_NO_TIER)	/* just moving: say where it came from */
		r->tier = READ_ONCE(h->mem_tier) != KVT_NO_TIER ? READ_ONCE(h->mem_tier) : 0;
	if (found != KVT_FOUND_MEM)
		r->cost_ns = kvt_fetch_cost_ns(p, r->tier, kvt_slot_bytes(b->group), met);
}

/**
 * kvt_op_lookup() - LOOKUP
 * @f:   caller
 * @arg: struct kvtier_lookup
 */
int kvt_op_lookup(struct kvt_file *f, void *arg)
{
	struct kvtier_lookup *a = arg;
	struct kvtier_lookup_result *res;
	struct kvt_batch b;
	u32 met = 0, slow = U32_MAX, i;
	int err, idx;

	err = kvt_batch_init(&b, f, a->group, a->nr, a->keys);
	if (err)
		return err;
	/* A lookup's result is no larger than a block's. */
	BUILD_BUG_ON(sizeof(*res) > sizeof(*b.res));
	res = (void *)b.res;
	a->nr_prefix = 0;
	a->cost_ns = 0;
	kvt_look_begin(f);
	idx = srcu_read_lock(&f->pool->srcu);
	for (i = 0; i < a->nr; i++) {
		kvt_lookup_one(&b, i, &res[i], &met);
		if (res[i].status == KVTIER_ST_HIT && a->nr_prefix == i) {
			a->nr_prefix++;
			a->cost_ns += res[i].cost_ns;
			slow = min(slow, res[i].cost_ns ? i : slow);
		}
	}
	if (slow < a->nr_prefix)
		kvt_look_named(&b, slow, a->nr_prefix);
	else if (a->nr_prefix == a->nr)
		kvt_look_next(&b, KVT_PACE_LOOKUP);
	kvt_look_end(f, KVT_PACE_LOOKUP);
	srcu_read_unlock(&f->pool->srcu, idx);
	if (a->results && copy_to_user(u64_to_user_ptr(a->results), res,
				       a->nr * sizeof(*res)))
		err = -EFAULT;
	kvt_batch_free(&b);
	return err;
}

/* Lease from @g->at on; stop at the first block that is not in memory. */
static enum kvt_found kvt_get_leases(struct kvt_getter *g)
{
	struct kvt_batch *b = g->b;
	struct kvt_pool *p = b->f->pool;
	enum kvt_found found = KVT_FOUND_MEM;

	for (; g->at < g->end; g->at++) {
		u32 i = g->at;
		struct kvt_hot *h;

		found = kvt_block_find(p, b->ns_group, b->keys[i], true, &b->id[i],
				       &b->gen[i]);
		if (found != KVT_FOUND_MEM)
			break;
		h = kvt_hot(&p->table, b->id[i]);
		b->res[i].tier = h->mem_tier;
		b->res[i].offset = kvt_window_offset(p->tiers[h->mem_tier], h->mem_page);
		b->res[i].status = KVTIER_ST_HIT;
	}
	if (found == KVT_FOUND_LIMIT) {
		g->err = -EDQUOT;
		kvt_count(p, b->f->ns, KVT_CNT_FIXED_REFUSED, 1);
	}
	return found;
}

/*
 * Start moving up what is on block tiers from @g->at to the end of the hits. @ahead: of need.
 * No srcu held: memory charged to the caller's group may be long in coming, and a tier's
 * teardown must not wait for it.
 */
static int kvt_get_promote(struct kvt_getter *g, bool ahead)
{
	struct kvt_batch *b = g->b;
	struct kvt_pool *p = b->f->pool;
	struct kvt_promo *pr = kvt_promo_alloc(p, g->end - g->at, ahead);
	u32 i;

	if (!pr)
		return -ENOMEM;
	for (i = g->at; i < g->end; i++) {
		enum kvt_found found = kvt_block_find(p, b->ns_group, b->keys[i], false,
						      &b->id[i], &b->gen[i]);
		u32 tier;

		if (found == KVT_FOUND_NOT || found == KVT_FOUND_FILLING)
			break;
		b->res[i].status = KVTIER_ST_PENDING;
		if (found != KVT_FOUND_LOG)
			continue;
		tier = READ_ONCE(kvt_hot(&p->table, b->id[i])->log_tier);
		if (kvt_promo_add(pr, b->id[i], b->gen[i]) && b->from[i] == KVT_NO_TIER)
			b->from[i] = tier;
	}
	if (kvt_promo_nr(pr))
		kvt_promo_start(pr);
	g->promo = pr;
	return 0;
}

/* One round of a GET that stopped at @found. -EAGAIN: go on leasing. */
static int kvt_get_round(struct kvt_getter *g, enum kvt_found found)
{
	struct kvt_batch *b = g->b;
	struct kvt_pool *p = b->f->pool;
	u32 id = b->id[g->at], gen = b->gen[g->at];

	if (found == KVT_FOUND_NOT)
		return 0;
	if (g->flags & KVTIER_GET_NOPROMOTE)
		return 0;
	if (found == KVT_FOUND_LOG) {
		int err = kvt_get_promote(g, false);

		if (err || !(g->flags & KVTIER_GET_WAIT))
			return err;
		if (!kvt_promo_nr(g->promo)) {
			kvt_promo_put(g->promo);
			g->promo = NULL;
			return -EAGAIN;
		}
		err = kvt_promo_wait(g->promo, g->deadline_ns);
		if (err)
			return err == -ETIMEDOUT ? 0 : err;
		g->err = kvt_promo_error(g->promo, id, gen);
		return -EAGAIN;
	}
	if (!(g->flags & KVTIER_GET_WAIT)) {
		/* He will ask again, or wait for the completion. */
		if (found == KVT_FOUND_MOVING)
			kvt_promo_hurry(p, id);
		return 0;
	}
	if (kvt_block_wait(p, id, gen, g->deadline_ns) == -EINTR)
		return -EINTR;
	return kvt_deadline_jiffies(g->deadline_ns) ? -EAGAIN : 0;
}

static s32 kvt_get_status(enum kvt_found found, int err)
{
	if (err == -ENOSPC)
		return KVTIER_ST_NOSPACE;
	if (err == -EDQUOT)
		return KVTIER_ST_LIMIT;
	if (found == KVT_FOUND_NOT)
		return err == -EIO || err == -EBADMSG ? KVTIER_ST_IOERR : KVTIER_ST_MISS;
	if (found == KVT_FOUND_FILLING)
		return KVTIER_ST_FILLING;
	return KVTIER_ST_PENDING;
}

static void kvt_get_mark_rest(struct kvt_getter *g, enum kvt_found found)
{
	struct kvt_batch *b = g->b;
	u32 i;

	if (g->at == g->end)
		return;
	b->res[g->at].status = kvt_get_status(found, g->err);
	for (i = g->at + 1; i < g->end; i++) {
		if (b->res[i].status != KVTIER_ST_PENDING || !g->promo)
			b->res[i].status = KVTIER_ST_SKIPPED;
	}
}

/**
 * kvt_get_prefix() - lease the longest prefix that can be had
 * @g: what to lease and how long to wait
 *
 * On success [start, @g->at) are leased and their results filled in, the rest has
 * its status. @g->promo is the caller's to put.
 * Return: 0, -ENOMEM or -EINTR; leases taken stand in any case.
 */
int kvt_get_prefix(struct kvt_getter *g)
{
	struct kvt_pool *p = g->b->f->pool;
	struct kvt_promo *guard = NULL;
	enum kvt_found found;
	int err, idx, fails = 0;
	u32 last = g->at;

	for (;;) {
		idx = srcu_read_lock(&p->srcu);
		found = kvt_get_leases(g);
		srcu_read_unlock(&p->srcu, idx);
		/* What the last promotion held for us is leased now, or not needed. */
		if (guard)
			kvt_promo_put(guard);
		guard = NULL;
		/* The same promotion failing again and again must end. */
		fails = g->at != last ? 0 : fails + 1;
		last = g->at;
		if (g->at == g->end || g->err == -ENOSPC || g->err == -EDQUOT || fails > 64) {
			err = 0;
			break;
		}
		err = kvt_get_round(g, found);
		if (err != -EAGAIN)
			break;
		guard = g->promo;
		g->promo = NULL;
	}
	kvt_get_mark_rest(g, found);
	return err;
}

/**
 * kvt_get_account() - counters, tracepoints and touches of leased blocks
 * @b:     batch
 * @first: of them
 * @nr:    how many
 * @use:   the call that this is the end of, or NULL
 */
void kvt_get_account(struct kvt_batch *b, u32 first, u32 nr, const struct kvt_use *use)
{
	struct kvt_pool *p = b->f->pool;
	u32 hits[KVT_TIERS] = { 0 }, i;

	if (!nr)
		return;
	for (i = first; i < first + nr; i++) {
		u32 tier = b->from[i] != KVT_NO_TIER ? b->from[i] : b->res[i].tier;

		hits[tier & (KVT_TIERS - 1)]++;
		if (trace_kvtier_get_enabled())
			trace_kvtier_get(p->id, b->f->ns->id, b->ns_group & 15,
					 b->keys[i], tier);
	}
	for (i = 0; i < KVT_TIERS; i++) {
		struct kvt_tier *t = hits[i] ? kvt_tier_at(p, i) : NULL;

		if (t)
			atomic64_add(hits[i], &t->count.hits);
	}
	kvt_count(p, b->f->ns, KVT_CNT_HITS, nr);
	kvt_touch(p, &b->id[first], nr, use);
}

static void kvt_get_count_misses(struct kvt_batch *b, u32 prefix)
{
	if (prefix == b->nr)
		return;
	kvt_count(b->f->pool, b->f->ns, KVT_CNT_MISSES, 1);
	kvt_count(b->f->pool, b->f->ns, KVT_CNT_UNREACHED, b->nr - prefix - 1);
}

/* Turn the leases of the first @nr blocks into handles, or give them back: if @err, always. */
static int kvt_get_handles(struct kvt_batch *b, u32 nr, int err)
{
	struct kvt_file *f = b->f;
	u32 i;

	kvt_file_lock(f);
	err = err ?: kvt_lease_prepare(f, nr);
	for (i = 0; i < nr && !err; i++)
		b->res[i].handle = kvt_lease_add(f, b->id[i], b->gen[i], KVT_HELD_LEASE);
	mutex_unlock(&f->lock);
	if (!err) {
		kvt_count(f->pool, f->ns, KVT_CNT_LEASES_TAKEN, nr);
		return 0;
	}
	for (i = 0; i < nr; i++) {
		kvt_lease_drop(f->pool, b->id[i]);
		memset(&b->res[i], 0, sizeof(b->res[i]));
		b->res[i].status = KVTIER_ST_LIMIT;
	}
	return err;
}

/* Must a completion wait for the first key that is not leased, itself. */
static bool kvt_get_outstanding(const struct kvt_getter *g)
{
	struct kvt_batch *b = g->b;
	s32 st = g->at < g->end ? b->res[g->at].status : KVTIER_ST_MISS;

	if (st != KVTIER_ST_FILLING && st != KVTIER_ST_PENDING)
		return false;
	return !g->promo || !kvt_promo_has(g->promo, b->id[g->at], b->gen[g->at]);
}

/* The promotion a call did not wait for: complete later, or forget it. */
static void kvt_get_leave(struct kvt_getter *g, struct kvt_async *as)
{
	struct kvt_batch *b = g->b;

	if (g->promo && !kvt_promo_nr(g->promo)) {
		/* Never started: others are moving all of it already. */
		kvt_promo_put(g->promo);
		g->promo = NULL;
	}
	if (!as) {
		if (g->promo)
			kvt_promo_put(g->promo);
		return;
	}
	if (kvt_get_outstanding(g))
		kvt_async_add(as, b->id[g->at], b->gen[g->at]);
	else if (!g->promo) {
		kvt_async_free(as);	/* nothing to wait for: no completion */
		return;
	}
	kvt_async_start(as, g->promo);
}

static int kvt_get_check(const struct kvtier_get *a)
{
	return hweight32(a->flags) > 1 ? -EINVAL : 0;
}

/**
 * kvt_op_get() - GET
 * @f:   caller
 * @arg: struct kvtier_get
 */
int kvt_op_get(struct kvt_file *f, void *arg)
{
	struct kvtier_get *a = arg;
	struct kvt_async *as = NULL;
	struct kvt_getter g = { .flags = a->flags };
	struct kvt_batch b;
	struct kvt_use use;
	int err, herr, idx;

	err = kvt_get_check(a) ?: kvt_batch_init(&b, f, a->group, a->nr, a->keys);
	if (err)
		return err;
	if (a->flags & KVTIER_GET_ASYNC) {
		as = kvt_async_alloc(f, a->user_data, a->eventfd, 1);
		if (IS_ERR(as)) {
			kvt_batch_free(&b);
			return PTR_ERR(as);
		}
	}
	kvt_look_begin(f);
	g.b = &b;
	g.end = a->nr;
	g.deadline_ns = kvt_deadline(a->flags & KVTIER_GET_WAIT ? a->timeout_ns : 0);
	err = kvt_get_prefix(&g);
	a->nr_prefix = g.at;
	herr = kvt_get_handles(&b, g.at, err);
	if (herr) {
		a->nr_prefix = 0;
		err = err ?: herr == -ENOSPC ? 0 : herr;
	}
	/* Of a call that fails nobody expects a completion. */
	kvt_get_leave(&g, err ? NULL : as);
	if (err && as)
		kvt_async_free(as);
	use = kvt_use_of(&b, a->nr_prefix, a->request);
	idx = srcu_read_lock(&f->pool->srcu);
	kvt_get_account(&b, 0, a->nr_prefix, &use);
	if (a->nr_prefix == a->nr && !(a->flags & KVTIER_GET_NOPROMOTE))
		kvt_look_next(&b, KVT_PACE_GET);
	kvt_look_end(f, KVT_PACE_GET);
	srcu_read_unlock(&f->pool->srcu, idx);
	if (!herr)
		kvt_get_count_misses(&b, a->nr_prefix);
	if (!err && copy_to_user(u64_to_user_ptr(a->results), b.res,
				 a->nr * sizeof(*b.res)))
		err = -EFAULT;
	kvt_batch_free(&b);
	return err;
}

/* Give back the leases behind one chunk of handles. */
static u32 kvt_release_chunk(struct kvt_file *f, const u64 *handles, s32 *st, u32 nr)
{
	u32 dead[KVT_CHUNK_KEYS], slow[KVT_CHUNK_KEYS], nr_dead = 0, nr_slow = 0, i, done = 0;
	struct kvt_pool *p = f->pool;
	u8 fastest = READ_ONCE(p->order[0]);

	kvt_file_lock(f);
	for (i = 0; i < nr; i++) {
		struct kvt_lease *l = kvt_lease_find(f, handles[i], KVT_HELD_LEASE);
		struct kvt_hot *h;

		st[i] = KVTIER_ST_STALE;
		if (!l)
			continue;
		h = kvt_hot(&p->table, l->block);
		if (h->mem_tier != fastest)
			slow[nr_slow++] = l->block;
		if (kvt_lease_end(p, f->ns, h))
			dead[nr_dead++] = l->block;
		kvt_lease_del(f, l);
		st[i] = KVTIER_ST_DONE;
		done++;
	}
	mutex_unlock(&f->lock);
	if (nr_dead) {
		spin_lock(&p->meta_lock);
		for (i = 0; i < nr_dead; i++)
			kvt_block_reap(p, dead[i]);
		spin_unlock(&p->meta_lock);
	}
	kvt_count(p, f->ns, KVT_CNT_LEASES_GIVEN, done);
	kvt_promote_later(p, slow, nr_slow);
	return done;
}

/**
 * kvt_op_release() - RELEASE
 * @f:   caller
 * @arg: struct kvtier_handles
 */
int kvt_op_release(struct kvt_file *f, void *arg)
{
	struct kvtier_handles *a = arg;
	u64 handles[KVT_CHUNK_KEYS];
	s32 st[KVT_CHUNK_KEYS];
	u32 i, n;
	int err = kvt_check_handles(a->handles, a->nr);

	a->nr_done = 0;
	for (i = 0; i < a->nr && !err; i += n) {
		n = min(a->nr - i, KVT_CHUNK_KEYS);
		if (copy_from_user(handles, u64_to_user_ptr(a->handles) + i * sizeof(u64),
				   n * sizeof(u64))) {
			err = -EFAULT;
			break;
		}
		a->nr_done += kvt_release_chunk(f, handles, st, n);
		err = kvt_put_statuses(a->results ? a->results + i * sizeof(s32) : 0, st, n);
	}
	/* However it ended, what was released is room for somebody. */
	kvt_room_wake(f->pool);
	return err;
}

/**
 * kvt_op_prefetch() - PREFETCH
 * @f:   caller
 * @arg: struct kvtier_prefetch
 */
int kvt_op_prefetch(struct kvt_file *f, void *arg)
{
	struct kvtier_prefetch *a = arg;
	struct kvt_async *as = NULL;
	struct kvt_getter g = { 0 };
	struct kvt_batch b;
	int err;

	err = kvt_batch_init(&b, f, a->group, a->nr, a->keys);
	if (err)
		return err;
	if (a->flags & KVTIER_PREFETCH_NOTIFY) {
		as = kvt_async_alloc(f, a->user_data, a->eventfd, 1);
		err = PTR_ERR_OR_ZERO(as);
		if (err)
			goto free;
	}
	g.b = &b;
	g.end = a->nr;
	err = kvt_get_promote(&g, true);
	if (err) {
		if (as)
			kvt_async_free(as);
		goto free;
	}
	a->nr_started = kvt_promo_nr(g.promo);
	if (!a->nr_started) {
		kvt_promo_put(g.promo);
		g.promo = NULL;
	}
	if (as)
		kvt_async_start(as, g.promo);
	else if (g.promo)
		kvt_promo_put(g.promo);
free:
	kvt_batch_free(&b);
	return err;
}
