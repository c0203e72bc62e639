// SPDX-License-Identifier: GPL-2.0
/*
 * Tiers of a pool: attach, drain, detach, loss.
 *
 *   ATTACHING -> ONLINE            attach
 *   ONLINE <-> DRAINING            drain; back when a detach could not finish
 *   any -> FAILED                  kvt_tier_lost()
 *   DRAINING, FAILED -> gone       detach, once nothing is in it
 *
 * A tier is published last, and withdrawn first: after detach took it out of
 * pool->tiers[] it waits for all readers (SRCU) before it lets the backend go.
 *
 * Locks: tier_lock for the set of tiers; the meta lock for state and order too.
 */
#include <linux/ctype.h>
#include <linux/delay.h>
#include <linux/nospec.h>
#include <linux/sched/signal.h>
#include <linux/vmalloc.h>

#include "kvt_internal.h"
#include "kvt_mlog.h"
#include "kvt_trace.h"
#include "tier_pmem.h"

#define KVT_WINDOW_ALIGN	(1ULL << 30)
#define KVT_LOSE_STEP		32u	/* blocks under one hold of the meta lock */

static const struct kvt_tier_ops *kvt_tier_type(u32 type)
{
	switch (type) {
	case KVTIER_TIER_DRAM:
		return &kvt_tier_dram_ops;
	case KVTIER_TIER_NODE:
		return &kvt_tier_node_ops;
	case KVTIER_TIER_DAX:
		return &kvt_tier_dax_ops;
	case KVTIER_TIER_BDEV:
		return &kvt_tier_bdev_ops;
	case KVTIER_TIER_PMEM:
		return &kvt_tier_pmem_ops;
	}
	return NULL;
}

/**
 * kvt_tier_snapshot() - the pool's tiers, fastest first
 * @p:        pool, srcu held
 * @t:        room for KVT_TIERS
 * @mem_only: only memory tiers
 * Return: how many; the pointers hold as long as srcu is held.
 */
u32 kvt_tier_snapshot(struct kvt_pool *p, struct kvt_tier **t, bool mem_only)
{
	u32 nr = 0, i;

	spin_lock(&p->meta_lock);
	for (i = 0; i < p->nr_tiers; i++) {
		struct kvt_tier *tier = p->tiers[p->order[i]];

		if (!mem_only || tier->ops->is_mem)
			t[nr++] = tier;
	}
	spin_unlock(&p->meta_lock);
	return nr;
}

/* Slot bytes in use; copies are not. Racy without the meta lock. */
u64 kvt_tier_used_bytes(struct kvt_tier *t)
{
	if (t->ops->is_mem)
		return READ_ONCE(t->mem.used_pages) << KVT_PAGE_SHIFT;
	return kvt_log_used(&t->log) * t->unit_bytes;
}

/* What is not used any more: poisoned memory, worn segments. Racy without the meta lock. */
u64 kvt_tier_retired_bytes(struct kvt_tier *t)
{
	if (t->ops->is_mem)
		return READ_ONCE(t->mem.retired_pages) << KVT_PAGE_SHIFT;
	return (u64)READ_ONCE(t->log.nr_bad) * t->geo.seg_bytes;
}

/**
 * kvt_tier_check() - may there be such a tier
 * @p: pool, tier_lock held or private
 * @a: what is wanted
 * Return: 0, -EINVAL or -EEXIST.
 */
int kvt_tier_check(struct kvt_pool *p, const struct kvtier_tier_attach *a)
{
	const struct kvt_tier_ops *ops = kvt_tier_type(a->type);
	const char *c;
	u32 flags = a->type == KVTIER_TIER_DRAM || a->type == KVTIER_TIER_NODE ?
		    KVTIER_ATTACH_CHARGE : ops && !ops->is_mem ? KVTIER_ATTACH_FORCE : 0, i;

	if (!ops || a->rank > 255 || !a->name[0] || (a->flags & ~flags) ||
	    (a->nr_bad && a->type != KVTIER_TIER_DAX) ||
	    strnlen(a->name, sizeof(a->name)) == sizeof(a->name) ||
	    strnlen(a->path, sizeof(a->path)) == sizeof(a->path))
		return -EINVAL;
	for (c = a->name; *c; c++) {
		if (!islower(*c) && !isdigit(*c) && *c != '_' && *c != '-')
			return -EINVAL;
	}
	for (i = 0; i < KVT_TIERS; i++) {
		struct kvt_tier *t = p->tiers[i];

		if (!t)
			continue;
		if (t->rank == a->rank || !strcmp(t->args.name, a->name))
			return -EEXIST;
		if (t->ops->is_mem != ops->is_mem && ops->is_mem != (a->rank < t->rank))
			return -EINVAL;
	}
	return 0;
}

static int kvt_tier_alloc_mem(struct kvt_tier *t)
{
	u64 *map = kvmalloc_array(KVT_PIECES_WORDS(t->nr_pieces), sizeof(*map), GFP_KERNEL);
	union kvt_dirent **dir = kvcalloc(kvt_mem_dir_chunks(t->nr_pieces), sizeof(*dir),
					  GFP_KERNEL);
	struct kvt_mem mem;

	if (!map || !dir) {
		kvfree(map);
		kvfree(dir);
		return -ENOMEM;
	}
	kvt_mem_init(&mem, map, dir, t->nr_pieces, t->content);
	mem.lent = t->charges;
	/* Upcalls of the backend look at it from here on. */
	spin_lock(&t->pool->meta_lock);
	t->mem = mem;
	spin_unlock(&t->pool->meta_lock);
	return 0;
}

static int kvt_tier_alloc_space(struct kvt_tier *t)
{
	struct kvt_seg *segs;
	int err;

	/* Addresses within a tier are 32 bits, with the highest value for none. */
	if (t->nr_pieces >= (1u << 23) || (u64)t->nr_segs * t->seg_units > U32_MAX - 1)
		return -ENOSPC;
	if (t->ops->is_mem)
		return kvt_tier_alloc_mem(t);
	segs = kvcalloc(t->nr_segs, sizeof(*segs), GFP_KERNEL);
	if (!segs)
		return -ENOMEM;
	kvt_log_init(&t->log, segs, t->nr_segs, t->seg_units);
	err = kvt_mlog_alloc(t, &t->geo);
	if (err)
		kvfree(segs);
	return err;
}

static void kvt_tier_free_space(struct kvt_tier *t)
{
	union kvt_split *split;
	u32 i, at = 0;

	if (!t->ops->is_mem) {
		kvt_mlog_free(t);
		for (i = 0; i < t->nr_segs; i++)
			kvfree(t->log.segs[i].ids);
		kvfree(t->log.segs);
		return;
	}
	for (i = 0; i < t->mem.nr_chunks; i++)
		kvfree(t->mem.dir[i]);
	kvfree(t->mem.dir);
	while ((split = kvt_pieces_end(&t->mem.pieces, &at))) {
		kvfree(split);
		cond_resched();
	}
	kvfree(t->mem.pieces.stretch);
}

/* The lowest free stretch of the read view. tier_lock held. */
static int kvt_tier_place_window(struct kvt_pool *p, struct kvt_tier *t)
{
	u64 at = 0, bytes = (u64)t->nr_pieces << KVT_PIECE_SHIFT;
	u32 i;

	if (!t->ops->is_mem)
		return 0;
	for (i = 0; i < KVT_TIERS; i++) {
		struct kvt_tier *o = p->tiers[i];
		u64 end;

		if (!o || !o->ops->is_mem)
			continue;
		end = o->window_offset + ((u64)o->nr_pieces << KVT_PIECE_SHIFT);
		if (at < end && o->window_offset < at + bytes) {
			at = round_up(end, KVT_WINDOW_ALIGN);
			i = -1;		/* look at all of them again */
		}
	}
	if (at + bytes > KVT_WINDOW_BYTES)
		return -ENOSPC;
	t->window_offset = at;
	return 0;
}

static void kvt_tier_publish(struct kvt_pool *p, struct kvt_tier *t)
{
	u32 i;

	spin_lock(&p->meta_lock);
	/* Pairs with kvt_tier_at(). */
	smp_store_release(&p->tiers[t->id], t);
	for (i = p->nr_tiers; i > 0 && p->tiers[p->order[i - 1]]->rank > t->rank; i--)
		p->order[i] = p->order[i - 1];
	p->order[i] = t->id;
	p->nr_tiers++;
	if (t->ops->is_mem)
		p->window_bytes = max(p->window_bytes,
				      round_up(t->window_offset +
					       ((u64)t->nr_pieces << KVT_PIECE_SHIFT),
					       KVT_WINDOW_ALIGN));
	spin_unlock(&p->meta_lock);
}

/* From here on blocks go there. */
static void kvt_tier_open(struct kvt_pool *p, struct kvt_tier *t)
{
	spin_lock(&p->meta_lock);
	/* The device may have gone already, or have failed a flush. */
	if (t->state == KVTIER_TIER_ATTACHING)
		t->state = t->mlog && t->mlog->w.given_up ? KVTIER_TIER_DRAINING :
							    KVTIER_TIER_ONLINE;
	spin_unlock(&p->meta_lock);
}

static void kvt_tier_withdraw(struct kvt_pool *p, struct kvt_tier *t)
{
	u32 i;

	spin_lock(&p->meta_lock);
	for (i = 0; p->order[i] != t->id; i++)
		;
	for (; i + 1 < p->nr_tiers; i++)
		p->order[i] = p->order[i + 1];
	p->nr_tiers--;
	WRITE_ONCE(p->tiers[t->id], NULL);
	spin_unlock(&p->meta_lock);
	kvt_limits_tier_gone(p, t->id);
}

static int kvt_tier_free_id(struct kvt_pool *p)
{
	u32 i;

	for (i = 0; i < KVT_TIERS; i++) {
		if (!p->tiers[i])
			return i;
	}
	return -ENOSPC;
}

/* Make the device a member of the pool, unless it is somebody's already. */
static int kvt_tier_format(struct kvt_tier *t)
{
	int err;

	if (t->ops->is_mem)
		return 0;
	if (!(t->args.flags & KVTIER_ATTACH_FORCE)) {
		err = kvt_mlog_check_free(t);
		if (!err && t->ops->check_blank)
			err = t->ops->check_blank(t);
		if (err < 0)
			return err;
	}
	return kvt_mlog_format(t) ?: kvt_mlog_start(t);
}

static int kvt_tier_bring_up(struct kvt_pool *p, struct kvt_tier *t)
{
	int err;

	err = t->ops->attach(t);
	if (err)
		return err;
	err = kvt_charge_prepare(t) ?: kvt_tier_alloc_space(t);
	if (err)
		goto detach;
	if (t->ops->is_mem)
		kvt_poison_scan(t);
	err = kvt_tier_place_window(p, t) ?: kvt_tier_format(t);
	if (err)
		goto free_space;
	err = kvt_sysfs_tier_add(t);
	if (err)
		goto stop;
	err = kvt_shrink_start(t);
	if (err)
		goto sysfs;
	return 0;
sysfs:
	kvt_sysfs_tier_del(t);
stop:
	if (!t->ops->is_mem)
		kvt_mlog_stop(t, false);
free_space:
	/* Detach waits for upcalls, which look at the space. */
	t->ops->detach(t);
	kvt_tier_free_space(t);
	goto end;
detach:
	t->ops->detach(t);
end:
	kvt_shrink_stop(t);
	kvt_charge_end(t);
	return err;
}

/* What was lost from the tier that had this number is told of until another one has it. */
static void kvt_tier_forget_left(struct kvt_ns *ns, void *tier)
{
	const struct kvt_tier *t = tier;

	memset(ns->left[t->id], 0, sizeof(ns->left[t->id]));
}

static int kvt_tier_attach_locked(struct kvt_pool *p, const struct kvtier_tier_attach *args,
				  const struct kvtier_range *bad, u32 *id)
{
	struct kvtier_tier_attach resolved = *args, *a = &resolved;
	struct kvt_tier *t;
	int err, nr;
	u32 heard;

	if (a->type == KVTIER_TIER_DAX && strnlen(a->path, sizeof(a->path)) < sizeof(a->path) &&
	    kvt_pmem_bound(a->path))
		a->type = KVTIER_TIER_PMEM;
	err = kvt_tier_check(p, a);
	if (err)
		return err;
	nr = kvt_tier_free_id(p);
	if (nr < 0)
		return nr;
	t = kzalloc(sizeof(*t), GFP_KERNEL);
	if (!t)
		return -ENOMEM;
	t->pool = p;
	t->args = *a;
	t->bad = bad;
	t->ops = kvt_tier_type(a->type);
	t->id = nr;
	t->rank = a->rank;
	t->state = KVTIER_TIER_ATTACHING;
	heard = kvt_frames_heard();
	err = t->ops->is_mem ? 0 : kvt_promo_prepare(p, nr);
	if (!err)
		err = kvt_tier_bring_up(p, t);
	if (err) {
		kfree(t);
		return err;
	}
	t->bad = NULL;
	kvt_cost_init(&t->read_cost);
	kvt_ns_for_each(p, kvt_tier_forget_left, t);
	kvt_tier_publish(p, t);
	/* The worker looks at it from here on. What it has heard of before may be one of its pages. */
	if (t->ops->page_of && heard != kvt_frames_heard())
		WRITE_ONCE(t->poisoned, true);
	/* Nothing is put there before the others know of it: after a crash it would be left out. */
	if (!t->ops->is_mem)
		kvt_mlog_update_supers(p);
	kvt_tier_open(p, t);
	*id = nr;
	return 0;
}

/**
 * kvt_tier_attach() - add a tier to a pool
 * @p:  pool
 * @a:  what and how
 * @bad: @a->nr_bad ranges of memory that are not to be used
 * @id: out
 * Return: 0 or a negative errno of the interface, with nothing changed but that @bad may
 * be known to be bad.
 */
int kvt_tier_attach(struct kvt_pool *p, const struct kvtier_tier_attach *a,
		    const struct kvtier_range *bad, u32 *id)
{
	int err;

	/* A drain may hold it for long, so waiting is killable. */
	if (mutex_lock_killable(&p->tier_lock))
		return -EINTR;
	err = kvt_tier_attach_locked(p, a, bad, id);
	mutex_unlock(&p->tier_lock);
	return err;
}

/**
 * kvt_tier_adopt() - take a member that comes with contents
 * @p: private pool
 * @t: block tier, attached by its backend, with id, name, rank and geometry
 *
 * The tier is in the pool then, without anything in its log yet.
 * Return: 0 or a negative errno.
 */
int kvt_tier_adopt(struct kvt_pool *p, struct kvt_tier *t)
{
	int err = kvt_promo_prepare(p, t->id) ?: kvt_tier_alloc_space(t);

	if (err)
		return err == -EINVAL ? -ERANGE : err;
	kvt_cost_init(&t->read_cost);
	kvt_tier_publish(p, t);
	kvt_tier_open(p, t);
	return 0;
}

/**
 * kvt_tier_disown() - let a member go as it is
 * @p: private pool that is ending
 * @t: tier, attached by its backend; its member is stopped, or never was started
 */
void kvt_tier_disown(struct kvt_pool *p, struct kvt_tier *t)
{
	kvt_sysfs_tier_del(t);
	if (p->tiers[t->id] == t)
		kvt_tier_withdraw(p, t);
	/* Who has opened sysfs files of the pool may be looking at it. */
	synchronize_srcu(&p->srcu);
	t->ops->detach(t);
	if (t->mlog)
		kvt_tier_free_space(t);
	kfree(t);
}

/* Nothing can reach the tier any more: let it go. tier_lock held. */
static void kvt_tier_release(struct kvt_pool *p, struct kvt_tier *t)
{
	kvt_shrink_stop(t);
	kvt_sysfs_tier_del(t);
	if (!t->ops->is_mem) {
		kvt_mlog_leave(t);
		kvt_leaver_add(t);
	}
	kvt_tier_withdraw(p, t);
	synchronize_srcu(&p->srcu);
	if (!t->ops->is_mem)
		kvt_mlog_stop(t, false);
	kvt_charge_end(t);
	t->ops->detach(t);
	kvt_tier_free_space(t);
	kfree(t);
}

/* Is there nothing of anybody in it. */
static bool kvt_tier_empty(struct kvt_pool *p, struct kvt_tier *t)
{
	bool empty;

	spin_lock(&p->meta_lock);
	/* Also places on other tiers, which only its writer gives back. */
	empty = t->ops->is_mem ? kvt_mem_empty(&t->mem) :
				 !t->log.live_units && !kvt_wlog_owes(&t->mlog->w);
	spin_unlock(&p->meta_lock);
	return empty;
}

static void kvt_tier_set_state(struct kvt_pool *p, struct kvt_tier *t, u32 state)
{
	spin_lock(&p->meta_lock);
	/* What nothing is written to any more takes nothing. */
	if (t->mlog && t->mlog->w.given_up && state == KVTIER_TIER_ONLINE)
		state = KVTIER_TIER_DRAINING;
	if (t->state != KVTIER_TIER_FAILED)
		t->state = state;
	spin_unlock(&p->meta_lock);
}

/* One pass over a draining memory tier: empty its regions, then take them. */
static void kvt_tier_empty_mem(struct kvt_pool *p, struct kvt_tier *t, bool discard)
{
	u32 r;

	for (r = kvt_region_next(t, 0, NULL);
	     r != KVT_NO_REGION && !fatal_signal_pending(current);
	     r = kvt_region_next(t, r + 1, NULL))
		kvt_evacuate_region(p, t, r, !discard);
	kvt_region_release_empty(p, t, t->nr_pieces, NULL);
}

static int kvt_tier_empty_out(struct kvt_pool *p, struct kvt_tier *t, u64 timeout_ns,
			      bool discard)
{
	u64 deadline = kvt_deadline(timeout_ns);
	int idx;

	kvt_tier_set_state(p, t, KVTIER_TIER_DRAINING);
	for (;;) {
		idx = srcu_read_lock(&p->srcu);
		if (t->ops->is_mem)
			kvt_tier_empty_mem(p, t, discard);
		else
			kvt_log_evacuate(p, t, discard);
		srcu_read_unlock(&p->srcu, idx);
		kvt_garbage_free(p);
		if (kvt_tier_empty(p, t))
			return 0;
		kvt_reclaim_kick(p);
		if (fatal_signal_pending(current))
			return -EINTR;
		if (!kvt_deadline_jiffies(deadline))
			return -EBUSY;
		schedule_timeout_killable(HZ / 100 + 1);
	}
}

/* A drain was given up: its regions hand out slots again. */
static void kvt_tier_undrain(struct kvt_pool *p, struct kvt_tier *t)
{
	struct kvt_region *reg;
	u32 r;

	for (r = t->ops->is_mem ? kvt_region_next(t, 0, NULL) : KVT_NO_REGION;
	     r != KVT_NO_REGION; r = kvt_region_next(t, r + 1, NULL)) {
		spin_lock(&p->meta_lock);
		reg = kvt_mem_region(&t->mem, r);
		if (t->state == KVTIER_TIER_ONLINE && reg &&
		    reg->state == KVT_REGION_DRAINING && !reg->retire)
			kvt_mem_region_undrain(&t->mem,
					       &kvt_group_of(p, reg->ns_group)->owner[t->id],
					       reg);
		spin_unlock(&p->meta_lock);
	}
}

static struct kvt_tier *kvt_tier_find(struct kvt_pool *p, u32 id)
{
	return id < KVT_TIERS ? p->tiers[array_index_nospec(id, KVT_TIERS)] : NULL;
}

/* It is no member any more: the others are to know before it is wiped. */
static void kvt_tier_leave(struct kvt_pool *p, struct kvt_tier *t)
{
	spin_lock(&p->meta_lock);
	t->leaving = true;
	spin_unlock(&p->meta_lock);
	kvt_mlog_update_supers(p);
}

static int kvt_tier_detach_locked(struct kvt_pool *p, u32 id, u64 timeout_ns, bool discard)
{
	struct kvt_tier *t;
	u32 before;
	int err;

	t = kvt_tier_find(p, id);
	if (!t)
		return -ENOENT;
	before = t->state;
	err = kvt_tier_empty_out(p, t, timeout_ns, discard);
	if (err) {
		kvt_tier_set_state(p, t, before);
		kvt_tier_undrain(p, t);
		return err;
	}
	if (!t->ops->is_mem)
		kvt_tier_leave(p, t);
	kvt_tier_release(p, t);
	kvt_leavers_check(p);
	return 0;
}

/**
 * kvt_tier_detach() - take a tier out of a pool
 * @p:          pool
 * @id:         tier
 * @timeout_ns: longest wait
 * @discard:    drop its blocks instead of moving them
 * Return: 0; -ENOENT; -EBUSY (ONLINE again) or -EINTR.
 */
int kvt_tier_detach(struct kvt_pool *p, u32 id, u64 timeout_ns, bool discard)
{
	int err;

	/* A drain may hold it for long, so waiting is killable. */
	if (mutex_lock_killable(&p->tier_lock))
		return -EINTR;
	err = kvt_tier_detach_locked(p, id, timeout_ns, discard);
	mutex_unlock(&p->tier_lock);
	return err;
}

static int kvt_tier_drain_locked(struct kvt_pool *p, u32 id, u64 timeout_ns)
{
	struct kvt_tier *t;

	t = kvt_tier_find(p, id);
	if (!t)
		return -ENOENT;
	return kvt_tier_empty_out(p, t, timeout_ns, false);
}

/**
 * kvt_tier_drain() - move everything out of a tier and place nothing new there
 * @p:          pool
 * @id:         tier
 * @timeout_ns: longest wait
 * Return: 0; -ENOENT; -EBUSY or -EINTR, and it goes on being DRAINING.
 */
int kvt_tier_drain(struct kvt_pool *p, u32 id, u64 timeout_ns)
{
	int err;

	/* A drain may hold it for long, so waiting is killable. */
	if (mutex_lock_killable(&p->tier_lock))
		return -EINTR;
	err = kvt_tier_drain_locked(p, id, timeout_ns);
	mutex_unlock(&p->tier_lock);
	return err;
}

/* Every block of the pool goes, whoever has it. Nothing else runs. */
static void kvt_tier_kill_blocks(struct kvt_pool *p)
{
	u32 id, end;

	spin_lock(&p->meta_lock);
	end = p->table.nr_chunks << KVT_CHUNK_SHIFT;
	for (id = 1; id < end; id++) {
		if (kvt_ctl_state(kvt_ctl(kvt_hot(&p->table, id))) == KVT_READY)
			kvt_block_kill(p, id);
		if (!(id % 4096)) {
			spin_unlock(&p->meta_lock);
			cond_resched();
			spin_lock(&p->meta_lock);
		}
	}
	/* Slots in limbo: their pages' fate is the backend's. */
	while (p->limbo.tail != KVT_NIL) {
		id = p->limbo.tail;
		kvt_list_del(&p->table, &p->limbo, id);
		kvt_ctl_update(kvt_hot(&p->table, id), 0, 0, KVT_CTL_STATE, KVT_DEAD);
		kvt_block_reap(p, id);
	}
	spin_unlock(&p->meta_lock);
}

/**
 * kvt_tier_free_all() - the pool is ending
 * @p: pool without files and running work; tier_lock held
 */
void kvt_tier_free_all(struct kvt_pool *p)
{
	u32 i;

	/* What is on block tiers stays there; in memory it is only forgotten. */
	for (i = 0; i < KVT_TIERS; i++) {
		if (!p->tiers[i])
			continue;
		/* From here on nobody else takes regions. */
		kvt_shrink_stop(p->tiers[i]);
		if (p->tiers[i]->mlog)
			kvt_mlog_stop(p->tiers[i], true);
	}
	kvt_tier_kill_blocks(p);
	for (i = 0; i < KVT_TIERS; i++) {
		struct kvt_tier *t = p->tiers[i];

		if (!t)
			continue;
		if (t->ops->is_mem)
			kvt_region_release_all(p, t);
		kvt_tier_release(p, t);
	}
}

/* Some of the blocks whose fastest copy is on the tier. Whether there are more. */
static bool kvt_tier_lose_some(struct kvt_pool *p, struct kvt_tier *t)
{
	u32 n, id = KVT_NIL;

	spin_lock(&p->meta_lock);
	for (n = 0; n < KVT_LOSE_STEP; n++) {
		id = kvt_policy_first(&p->policy, t->id);
		if (id == KVT_NIL)
			break;
		if (!t->ops->is_mem || !kvt_copy_saves(p, id, false))
			kvt_block_lose(p, id, KVT_WHY_LOST);
		kvt_block_wake(p, id);
	}
	spin_unlock(&p->meta_lock);
	return id != KVT_NIL;
}

/* Every READY block whose fastest copy is on the tier becomes a miss, unless there is another. */
static void kvt_tier_lose_blocks(struct kvt_pool *p, struct kvt_tier *t)
{
	do {
		/* Each of them may need one more entry. */
		if (t->ops->is_mem)
			kvt_pool_top_up(p, KVT_LOSE_STEP);
		cond_resched();
	} while (kvt_tier_lose_some(p, t));
	kvt_garbage_free(p);
}

/**
 * kvt_tier_lost() - a tier's device is gone
 * @t: tier; may sleep. See tier.h
 */
void kvt_tier_lost(struct kvt_tier *t)
{
	struct kvt_pool *p = t->pool;
	struct kvt_mlog *mlog;
	bool unready;

	spin_lock(&p->meta_lock);
	t->state = KVTIER_TIER_FAILED;
	mlog = t->mlog;
	/* Its blocks are not in order yet: kvt_pool_publish() will refuse. */
	unready = p->assembling;
	spin_unlock(&p->meta_lock);
	if (unready)
		return;
	if (mlog)
		kvt_mlog_give_up(t, "its device is gone");
	if (t->ops->is_mem && t->mem.pieces.stretch) {
		kvt_map_barrier(p);
		kvt_unmap_all(p, t->window_offset, (u64)t->nr_pieces << KVT_PIECE_SHIFT);
		kvt_fill_lost(p, t);
	}
	kvt_tier_lose_blocks(p, t);
	kvt_reclaim_kick(p);
}
