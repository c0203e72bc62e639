// SPDX-License-Identifier: GPL-2.0
/*
 * QUERY, ADVISE, DROP, ITERATE, STAT, ARENA.
 */
#include <linux/capability.h>
#include <linux/nospec.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "kvt_mlog.h"
#include "kvt_trace.h"
#include "ops.h"

#define KVT_ITERATE_SCAN	(1u << 16)	/* entries looked at in one call */

/*
 * Describe the tiers, fastest first, in an array of user space's. They are described
 * into the kernel's memory first: a page that user space is slow to provide must not
 * keep a tier from going.
 * Return: 0, -ENOMEM, -EFAULT, or -EMSGSIZE if there is room for some of them only.
 */
static int kvt_tiers_report(struct kvt_pool *p, u64 uptr, u32 room,
			    void (*describe)(struct kvt_tier *t, void *out), size_t size,
			    u32 *nr)
{
	struct kvt_tier *t[KVT_TIERS];
	int idx, err = 0;
	u32 i, n = 0;
	void *out;

	*nr = 0;
	out = kcalloc(KVT_TIERS, size, GFP_KERNEL);
	if (!out)
		return -ENOMEM;
	idx = srcu_read_lock(&p->srcu);
	*nr = kvt_tier_snapshot(p, t, false);
	if (uptr)
		n = min(*nr, room);
	for (i = 0; i < n; i++)
		describe(t[i], out + i * size);
	srcu_read_unlock(&p->srcu, idx);
	if (n && copy_to_user(u64_to_user_ptr(uptr), out, n * size))
		err = -EFAULT;
	else if (uptr && *nr > room)
		err = -EMSGSIZE;
	kfree(out);
	return err;
}

static void kvt_query_tier(struct kvt_tier *t, void *out)
{
	struct kvtier_tier_info *i = out;

	i->id = t->id;
	i->type = t->args.type;
	i->rank = t->rank;
	i->state = t->state;
	i->capacity_bytes = t->capacity_bytes;
	i->used_bytes = kvt_tier_used_bytes(t);
	i->nr_blocks = READ_ONCE(t->nr_blocks);
	if (t->ops->is_mem) {
		i->window_offset = t->window_offset;
		i->window_bytes = (u64)t->nr_pieces << KVT_PIECE_SHIFT;
	}
	strscpy(i->name, t->args.name, sizeof(i->name));
}

/* How busy others are is not for everybody to see in detail. */
static void kvt_query_tier_coarse(struct kvt_tier *t, void *out)
{
	struct kvtier_tier_info *i = out;
	u64 step = max(t->capacity_bytes / 16, 1);

	kvt_query_tier(t, out);
	i->used_bytes = min(DIV64_U64_ROUND_UP(i->used_bytes, step) * step,
			    i->capacity_bytes);
	i->nr_blocks = 0;
}

/**
 * kvt_op_query() - QUERY
 * @f:   caller, maybe unbound
 * @arg: struct kvtier_query
 */
int kvt_op_query(struct kvt_file *f, void *arg)
{
	struct kvtier_query *q = arg;
	struct kvt_pool *p = f->pool;
	u32 room = q->nr_tiers, nr;
	int err;

	q->abi_revision = KVTIER_ABI_REVISION;
	q->pool_id = p->id;
	q->features = kvt_features();
	q->ops = kvt_ops_mask(false);
	q->batch_max = KVTIER_BATCH_MAX;
	q->leases_max = KVT_LEASES_PER_FILE;
	q->sessions_max = KVT_SESSIONS_PER_FILE;
	q->block_bytes_max = KVTIER_BLOCK_BYTES_MAX;
	q->window_bytes = READ_ONCE(p->window_bytes);
	err = kvt_tiers_report(p, q->tiers, room,
			       ns_capable_noaudit(&init_user_ns, CAP_SYS_ADMIN) ?
			       kvt_query_tier : kvt_query_tier_coarse,
			       sizeof(struct kvtier_tier_info), &nr);
	q->nr_tiers = nr;
	return err;
}

static s32 kvt_pin_locked(struct kvt_pool *p, struct kvt_ns *ns, u32 id, u32 bytes)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);

	lockdep_assert_held(&p->meta_lock);
	if (kvt_ctl(h) & KVT_CTL_PINNED)
		return KVTIER_ST_DONE;
	/* What is held is paid for. */
	bytes = kvt_ctl(h) & KVT_CTL_HELD ? 0 : bytes;
	if (bytes > kvt_kept_pin_room(p, ns))
		return KVTIER_ST_LIMIT;
	if (!kvt_doom_spares(p, id))
		return KVTIER_ST_MISS;
	kvt_ctl_update(h, 0, 0, 0, KVT_CTL_PINNED);
	kvt_kept_pin(p, ns, bytes);
	return KVTIER_ST_DONE;
}

static s32 kvt_advise_locked(struct kvt_batch *b, u32 i, u32 advice, u32 expire_s)
{
	struct kvt_pool *p = b->f->pool;
	u32 id = kvt_block_find_locked(p, b->ns_group, b->keys[i]), tier;
	struct kvt_hot *h = kvt_hot(&p->table, id);

	lockdep_assert_held(&p->meta_lock);
	if (id == KVT_NIL || kvt_ctl_state(kvt_ctl(h)) != KVT_READY)
		return KVTIER_ST_MISS;
	tier = kvt_block_tier(h, kvt_ctl(h));
	switch (advice) {
	case KVTIER_ADV_COLD:
		p->policy.ops->cool(&p->policy, tier, id);
		b->group->own[tier].cursor = KVT_NIL;
		break;
	case KVTIER_ADV_HOT:
		p->policy.ops->warm(&p->policy, tier, id);
		break;
	case KVTIER_ADV_PIN:
		return kvt_pin_locked(p, b->f->ns, id, kvt_slot_bytes(b->group));
	case KVTIER_ADV_UNPIN:
		if (kvt_ctl_update(h, KVT_CTL_PINNED, KVT_CTL_PINNED, KVT_CTL_PINNED, 0) &&
		    !(kvt_ctl(h) & KVT_CTL_HELD))
			kvt_kept_pin(p, b->f->ns, -(s64)kvt_slot_bytes(b->group));
		break;
	case KVTIER_ADV_TTL:
		kvt_cold(&p->table, id)->expire_s = expire_s;
		WRITE_ONCE(h->flags, (h->flags & ~KVT_HOT_EXPIRES) |
			   (expire_s ? KVT_HOT_EXPIRES : 0));
		kvt_copy_stale(p, id);
		break;
	}
	return KVTIER_ST_DONE;
}

static s32 kvt_advise_one(struct kvt_batch *b, u32 i, u32 advice, u32 expire_s)
{
	struct kvt_pool *p = b->f->pool;
	s32 st;

	spin_lock(&p->meta_lock);
	p->policy.now_ms = kvt_now_ms();
	st = kvt_advise_locked(b, i, advice, expire_s);
	spin_unlock(&p->meta_lock);
	return st;
}

/* The second in which a life of @ttl_ns from now has passed; never 0, which means none. */
static u32 kvt_expiry_s(u64 ttl_ns)
{
	u64 ttl_s = min_t(u64, DIV_ROUND_UP_ULL(ttl_ns, NSEC_PER_SEC), S32_MAX - 1);

	/* The running second has passed in part. */
	return (kvt_now_s() + (u32)ttl_s + 1) ?: 1;
}

/* Uses before the call do not make warm again what it cools, nor are lost if it warms. */
static void kvt_advise_drain(struct kvt_pool *p)
{
	spin_lock(&p->meta_lock);
	kvt_touch_drain(p);
	spin_unlock(&p->meta_lock);
}

/**
 * kvt_op_advise() - ADVISE
 * @f:   caller
 * @arg: struct kvtier_advise
 */
int kvt_op_advise(struct kvt_file *f, void *arg)
{
	struct kvtier_advise *a = arg;
	struct kvt_pool *p = f->pool;
	u32 expire_s = 0, i;
	bool settled = false;
	struct kvt_batch b;
	s32 *st;
	int err;

	if (f->rdonly)
		return -EACCES;
	if (a->advice < KVTIER_ADV_COLD || a->advice > KVTIER_ADV_TTL ||
	    (a->value && a->advice != KVTIER_ADV_TTL))
		return -EINVAL;
	err = kvt_batch_init(&b, f, a->group, a->nr, a->keys);
	if (err)
		return err;
	if (a->value)
		expire_s = kvt_expiry_s(a->value);
	st = (s32 *)b.res;
	a->nr_done = 0;
	if (a->advice == KVTIER_ADV_COLD || a->advice == KVTIER_ADV_HOT)
		kvt_advise_drain(p);
	/* Heating goes tail first and cooling head first: the tail ends up colder. */
	for (i = 0; i < a->nr; i++) {
		u32 at = a->advice == KVTIER_ADV_COLD ? i : a->nr - 1 - i;

		st[at] = kvt_advise_one(&b, at, a->advice, expire_s);
		/* Once, or who is at his limit would do the worker's work again and again. */
		if (st[at] == KVTIER_ST_LIMIT && !settled) {
			settled = true;
			kvt_holds_wait(p);
			st[at] = kvt_advise_one(&b, at, a->advice, expire_s);
		}
		a->nr_done += st[at] == KVTIER_ST_DONE;
	}
	err = kvt_put_statuses(a->results, st, a->nr);
	kvt_batch_free(&b);
	return err;
}

static s32 kvt_drop_locked(struct kvt_batch *b, u32 i)
{
	struct kvt_pool *p = b->f->pool;
	u32 id = kvt_block_find_locked(p, b->ns_group, b->keys[i]);
	struct kvt_hot *h = kvt_hot(&p->table, id);

	lockdep_assert_held(&p->meta_lock);
	if (id == KVT_NIL)
		return KVTIER_ST_MISS;
	if (kvt_ctl_state(kvt_ctl(h)) == KVT_FILLING)
		return KVTIER_ST_BUSY;
	if (!kvt_ch_leaf(&p->table, id))
		return KVTIER_ST_CHILDREN;
	kvt_block_lose(p, id, KVT_WHY_DROP);
	return KVTIER_ST_DONE;
}

/**
 * kvt_op_drop() - DROP
 * @f:   caller
 * @arg: struct kvtier_drop
 */
int kvt_op_drop(struct kvt_file *f, void *arg)
{
	struct kvtier_drop *a = arg;
	struct kvt_pool *p = f->pool;
	struct kvt_batch b;
	s32 *st;
	int err;
	u32 i;

	if (f->rdonly)
		return -EACCES;
	err = kvt_batch_init(&b, f, a->group, a->nr, a->keys);
	if (err)
		return err;
	st = (s32 *)b.res;
	a->nr_done = 0;
	for (i = a->nr; i-- > 0;) {
		spin_lock(&p->meta_lock);
		st[i] = kvt_drop_locked(&b, i);
		spin_unlock(&p->meta_lock);
		a->nr_done += st[i] == KVTIER_ST_DONE;
	}
	kvt_garbage_free(p);
	kvt_room_wake(p);
	/* Also of what was not there: an older block of that name may be on its way out. */
	err = kvt_mlog_fence(p, f->ns) ?: kvt_put_statuses(a->results, st, a->nr);
	kvt_batch_free(&b);
	return err;
}

/*
 * Will it be found after a crash, as it is. Not on a member that is given up, which is not
 * assembled any more; nor if its record is lost, or has another time to live.
 */
static bool kvt_entry_durable(struct kvt_pool *p, const struct kvt_hot *h)
{
	lockdep_assert_held(&p->meta_lock);
	return (h->flags & (KVT_HOT_DURABLE | KVT_HOT_STALE)) == KVT_HOT_DURABLE &&
	       !p->tiers[h->log_tier]->mlog->w.given_up;
}

static bool kvt_iterate_entry(struct kvt_pool *p, struct kvt_ns *ns, u32 id,
			      struct kvtier_entry *e)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);
	struct kvt_cold *c = kvt_cold(&p->table, id);
	u32 ctl = kvt_ctl(h), state = kvt_ctl_state(ctl);

	if ((state != KVT_READY && state != KVT_FILLING) || h->ns_group >> 4 != ns->idx)
		return false;
	memset(e, 0, sizeof(*e));
	memcpy(e->key, h->key, KVT_KEY_BYTES);
	if (c->parent != KVT_NIL)
		memcpy(e->parent, kvt_hot(&p->table, c->parent)->key, KVT_KEY_BYTES);
	e->status = state == KVT_READY ? KVTIER_ST_HIT : KVTIER_ST_FILLING;
	e->tier = kvt_block_tier(h, ctl);
	e->group = h->ns_group & 15;
	e->flags = kvt_entry_durable(p, h) ? KVTIER_ENTRY_DURABLE : 0;
	e->leases = kvt_ctl_leases(ctl);
	e->idle_ns = (u64)kvt_age_ms(kvt_now_ms(), c->touch_ms) * NSEC_PER_MSEC;
	return true;
}

/* Fill @e with up to @max entries from *@id on, looking at up to *@scan of them. */
static u32 kvt_iterate_some(struct kvt_file *f, u32 *id, u32 end, u32 *scan,
			    struct kvtier_entry *e, u32 max)
{
	struct kvt_pool *p = f->pool;
	u32 n = 0, held = 0;

	spin_lock(&p->meta_lock);
	while (*id < end && *scan && n < max && held++ < 1024) {
		n += kvt_iterate_entry(p, f->ns, array_index_nospec(*id, end), &e[n]);
		(*id)++;
		(*scan)--;
	}
	spin_unlock(&p->meta_lock);
	return n;
}

/**
 * kvt_op_iterate() - ITERATE
 * @f:   caller
 * @arg: struct kvtier_iterate
 */
int kvt_op_iterate(struct kvt_file *f, void *arg)
{
	struct kvtier_iterate *a = arg;
	struct kvt_pool *p = f->pool;
	u32 end = READ_ONCE(p->table.nr_chunks) << KVT_CHUNK_SHIFT;
	u32 scan = KVT_ITERATE_SCAN, done = 0, n, id;
	struct kvtier_entry *e;
	int err = kvt_check_nr(a->nr);

	if (err)
		return err;
	id = a->cursor ? min_t(u64, a->cursor, end) : 1;
	e = kmalloc_array(KVT_CHUNK_KEYS, sizeof(*e), GFP_KERNEL_ACCOUNT);
	if (!e)
		return -ENOMEM;
	while (!err && done < a->nr && scan && id < end) {
		n = kvt_iterate_some(f, &id, end, &scan, e, min(a->nr - done, KVT_CHUNK_KEYS));
		if (n && copy_to_user(u64_to_user_ptr(a->entries) + done * sizeof(*e), e,
				      n * sizeof(*e)))
			err = -EFAULT;
		done += n;
		cond_resched();
	}
	kfree(e);
	a->nr = done;
	a->cursor = id < end ? id : 0;
	return err;
}

static void kvt_stat_counts(struct kvtier_stat *s, struct kvt_counts __percpu *c)
{
	/* First: what is given back was taken before. */
	u64 given = kvt_count_read(c, KVT_CNT_LEASES_GIVEN);

	s->hits = kvt_count_read(c, KVT_CNT_HITS);
	s->misses = kvt_count_read(c, KVT_CNT_MISSES);
	s->unreached = kvt_count_read(c, KVT_CNT_UNREACHED);
	s->puts = kvt_count_read(c, KVT_CNT_PUTS);
	s->dedups = kvt_count_read(c, KVT_CNT_DEDUPS);
	s->dedup_waits = kvt_count_read(c, KVT_CNT_DEDUP_WAITS);
	s->aborts = kvt_count_read(c, KVT_CNT_ABORTS);
	s->evictions = kvt_count_read(c, KVT_CNT_EVICTIONS);
	s->drops = kvt_count_read(c, KVT_CNT_DROPS);
	s->promotions = kvt_count_read(c, KVT_CNT_PROMOTIONS);
	s->demotions = kvt_count_read(c, KVT_CNT_DEMOTIONS);
	s->leases = kvt_count_read(c, KVT_CNT_LEASES_TAKEN) - given;
}

/* Index, chains, lists, tables of pieces, slots and segments. Meta lock held. */
u64 kvt_meta_bytes(struct kvt_pool *p)
{
	u64 sum = p->meta_bytes;
	u32 i, s;

	lockdep_assert_held(&p->meta_lock);
	for (i = 0; i < p->nr_tiers; i++) {
		struct kvt_tier *t = p->tiers[p->order[i]];

		if (t->ops->is_mem)
			sum += kvt_mem_meta_bytes(&t->mem);
		for (s = 0; !t->ops->is_mem && s < t->nr_segs; s++)
			sum += sizeof(struct kvt_seg) + sizeof(struct kvt_wseg) +
			       t->log.segs[s].max_ids * sizeof(u32);
	}
	return sum;
}

static void kvt_stat_pool(struct kvt_pool *p, struct kvtier_stat *s)
{
	u64 entries;
	u32 i;

	kvt_stat_counts(s, p->counts);
	s->lost_touches = kvt_count_read(p->counts, KVT_CNT_LOST_TOUCHES);
	s->moves_dmaengine = kvt_xfer_moves_dmaengine();
	s->moves_cpu = kvt_xfer_moves_cpu();
	spin_lock(&p->meta_lock);
	s->nr_blocks = p->table.nr_used;
	for (i = 0; i < p->nr_tiers; i++)
		s->used_bytes += kvt_tier_used_bytes(p->tiers[p->order[i]]);
	s->meta_bytes = kvt_meta_bytes(p);
	entries = (u64)p->table.nr_chunks << KVT_CHUNK_SHIFT;
	s->meta_bytes_per_block = entries ? DIV64_U64_ROUND_UP(s->meta_bytes, entries) : 0;
	s->regions_quarantined = p->nr_quarantined;
	spin_unlock(&p->meta_lock);
}

static void kvt_stat_tier(struct kvt_tier *t, void *out)
{
	struct kvtier_tier_stat *s = out;

	s->id = t->id;
	s->rank = t->rank;
	s->hits = atomic64_read(&t->count.hits);
	s->promotions_in = atomic64_read(&t->count.promotions_in);
	s->promotions_out = atomic64_read(&t->count.promotions_out);
	s->demotions_in = atomic64_read(&t->count.demotions_in);
	s->demotions_out = atomic64_read(&t->count.demotions_out);
	s->evictions = atomic64_read(&t->count.evictions);
	s->read_bytes = atomic64_read(&t->count.read_bytes);
	s->write_bytes = atomic64_read(&t->count.write_bytes);
	s->dma_bytes = atomic64_read(&t->count.dma_bytes);
	s->io_errors = atomic64_read(&t->count.io_errors);
	s->quarantined_bytes = atomic64_read(&t->count.quarantined_bytes);
	s->nr_blocks = READ_ONCE(t->nr_blocks);
	s->used_bytes = kvt_tier_used_bytes(t);
	s->capacity_bytes = t->capacity_bytes;
	s->read_errors = atomic64_read(&t->count.faults[KVT_CAUSE_READ]);
	s->checksum_errors = atomic64_read(&t->count.faults[KVT_CAUSE_SUM]);
	s->write_errors = atomic64_read(&t->count.faults[KVT_CAUSE_WRITE]);
	s->memory_errors = atomic64_read(&t->count.faults[KVT_CAUSE_MEMORY]);
	s->retired_bytes = kvt_tier_retired_bytes(t);
}

/**
 * kvt_op_stat() - STAT
 * @f:   caller, maybe unbound
 * @arg: struct kvtier_stat
 */
int kvt_op_stat(struct kvt_file *f, void *arg)
{
	struct kvtier_stat *s = arg, out = { 0 };
	struct kvt_pool *p = f->pool;
	int err = 0;

	if ((s->flags & KVTIER_STAT_POOL) && !capable(CAP_SYS_ADMIN))
		return -EPERM;
	/* Pairs with NS_OPEN: a bound file's namespace is complete. */
	if (!(s->flags & KVTIER_STAT_POOL) && !smp_load_acquire(&f->ns))
		return -EBADFD;
	out.size = s->size;
	out.flags = s->flags;
	out.tiers = s->tiers;
	out.nr_tiers = s->nr_tiers;
	kvt_touch_flush(p);
	if (s->flags & KVTIER_STAT_POOL) {
		kvt_stat_pool(p, &out);
		err = kvt_tiers_report(p, s->tiers, s->nr_tiers, kvt_stat_tier,
				       sizeof(struct kvtier_tier_stat), &out.nr_tiers);
	} else {
		if (s->tiers || s->nr_tiers)
			return -EINVAL;
		kvt_stat_counts(&out, f->ns->counts);
		spin_lock(&p->meta_lock);
		out.nr_blocks = f->ns->nr_live;
		out.used_bytes = f->ns->used_bytes;
		spin_unlock(&p->meta_lock);
	}
	*s = out;
	return err;
}

/*
 * Charge an arena to its namespace's guarantee. As much again may be on its way out, so that
 * a client that comes back need not wait for what it has left behind.
 */
static int kvt_arena_charge(struct kvt_pool *p, struct kvt_ns *ns, s64 bytes)
{
	int err = 0;
	u64 most;

	spin_lock(&p->meta_lock);
	most = kvt_ns_min_bytes(p, ns);
	if (bytes > 0 && (ns->arena_bytes + bytes > most ||
			  ns->arena_bytes + ns->kept.retired_bytes + bytes > 2 * most))
		err = -ENOSPC;
	else
		kvt_kept_arena(ns, bytes);
	spin_unlock(&p->meta_lock);
	return err;
}

/*
 * @empty: with what nobody uses taken back. As kvt_region_get_arena(), but for -EDQUOT: a cgroup
 * that pays for no more may have room where nobody has to; and for -ENODEV.
 */
static int kvt_arena_on(struct kvt_file *f, struct kvt_tier *t, u32 group, u32 nr_pieces,
			bool empty, struct kvt_region **reg, int *idx)
{
	struct kvt_pool *p = f->pool;
	bool fits;
	int r;

	spin_lock(&p->meta_lock);
	fits = kvt_limit_fits(f->ns, t, (u64)nr_pieces << KVT_PIECE_SHIFT);
	spin_unlock(&p->meta_lock);
	if (!fits)
		return -ENOSPC;
	if (empty)
		kvt_region_release_empty(p, t, t->nr_pieces, idx);
	r = kvt_region_get_arena(t, f->ns, group, nr_pieces, f->id, reg, idx);
	return r == -EDQUOT || r == -ENODEV ? -ENOSPC : r;
}

/* Find room for an arena; its offset in the window of @offset. */
static int kvt_arena_find(struct kvt_file *f, u32 group, u32 nr_pieces, struct kvt_arena *ar,
			  u64 *offset)
{
	struct kvt_pool *p = f->pool;
	struct kvt_tier *t[KVT_TIERS];
	struct kvt_region *reg = NULL;
	u32 nr, i = 0;
	int r, idx;

	do {
		/* Outside of srcu: the caller's cgroup may be full. */
		reg = reg ?: kvt_region_record(f->ns, group, nr_pieces);
		if (!reg)
			return -ENOMEM;
		idx = srcu_read_lock(&p->srcu);
		/* Each time anew: one may have left. */
		nr = kvt_tier_snapshot(p, t, true);
		r = i < 2 * nr ? kvt_arena_on(f, t[i % nr], group, nr_pieces, i >= nr, &reg, &idx) :
				 -ENOSPC;
		if (r >= 0) {
			ar->tier = t[i % nr]->id;
			ar->region = r;
			*offset = kvt_window_offset(t[i % nr], r * KVT_PIECE_PAGES);
		}
		srcu_read_unlock(&p->srcu, idx);
	} while (r == -ENOSPC && ++i < 2 * nr);
	kvfree(reg);
	return min(r, 0);
}

/* An arena that the file does not know of yet. */
static int kvt_arena_make(struct kvt_file *f, struct kvtier_arena *a, u32 nr_pieces,
			  struct kvt_arena *ar)
{
	s64 bytes = (s64)nr_pieces << KVT_PIECE_SHIFT;
	struct kvt_pool *p = f->pool;
	u64 offset;
	int err;

	err = kvt_arena_charge(p, f->ns, bytes);
	if (err)
		return err;
	err = kvt_arena_find(f, a->group, nr_pieces, ar, &offset);
	if (err)
		kvt_arena_charge(p, f->ns, -bytes);
	else
		a->offset = kvt_fill_base(f->id) + offset;
	return err;
}

/* The caller's other threads go on: the file is not locked while memory is wiped. */
static int kvt_arena_claim(struct kvt_file *f, struct kvtier_arena *a, u32 nr_pieces)
{
	struct kvt_arena none = { .region = KVT_NO_REGION }, ar = none;
	struct kvt_arena *mine = &f->arena[a->group];
	int err;

	kvt_file_lock(f);
	err = mine->coming || mine->region != KVT_NO_REGION ? -EBUSY : 0;
	if (!err)
		mine->coming = true;
	mutex_unlock(&f->lock);
	if (err)
		return err;
	err = kvt_arena_make(f, a, nr_pieces, &ar);
	kvt_file_lock(f);
	*mine = err ? none : ar;
	mutex_unlock(&f->lock);
	return err;
}

/**
 * kvt_op_arena() - ARENA
 * @f:   caller
 * @arg: struct kvtier_arena
 */
int kvt_op_arena(struct kvt_file *f, void *arg)
{
	struct kvtier_arena *a = arg;
	int err = kvt_check_group(f, a->group);
	const struct kvt_group *g;
	u64 bytes;

	if (err)
		return err;
	if (f->rdonly)
		return -EACCES;
	a->group = array_index_nospec(a->group, f->ns->nr_groups);
	if (!a->nr_slots || a->nr_slots > (1u << 20))
		return -EINVAL;
	g = &f->ns->group[a->group];
	bytes = round_up((u64)a->nr_slots * kvt_slot_bytes(g), KVT_PIECE_BYTES);
	if (bytes > KVT_WINDOW_BYTES)
		return -ENOSPC;
	err = kvt_arena_claim(f, a, bytes >> KVT_PIECE_SHIFT);
	if (err)
		return err;
	a->nr_slots = bytes / kvt_slot_bytes(g);
	a->bytes = bytes;
	a->slot_bytes = kvt_slot_bytes(g);
	return 0;
}
