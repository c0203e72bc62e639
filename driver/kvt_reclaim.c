// SPDX-License-Identifier: GPL-2.0
/*
 * The pool's worker: keeps room in the tiers and does what depends on time.
 *
 * One ordered work item per pool. It serves those who wait for a slot, demotes
 * from tiers above their high watermark until they are below the low one (slowest
 * first, so that there is room below), cleans logs, promotes blocks that were
 * used on slow memory, expires reservations and looks at quarantines.
 *
 * Waiters put a want on the pool's list and sleep, killable. The worker copies
 * the want, works, and answers it if it is still there; a waiter who left took
 * his want with him. Who does not wait leaves a wish, one for all of them: the last one gets
 * what no block is in, and finds it when he asks again. Nothing leaves for a wish but what does
 * between the watermarks.
 */
#include <linux/sched/signal.h>

#include "kvt_internal.h"
#include "kvt_mlog.h"
#include "kvt_test.h"

#define KVT_RECLAIM_TIME	(HZ / 10)	/* in one go */
#define KVT_STEAL_TRIES		8

/**
 * kvt_reclaim_kick() - there may be something for the worker to do
 * @p: pool; any context
 */
void kvt_reclaim_kick(struct kvt_pool *p)
{
	if (!READ_ONCE(p->dying))
		queue_work(p->reclaim_wq, &p->work);
}

void kvt_reclaim_tick(struct work_struct *work)
{
	kvt_reclaim_kick(container_of(to_delayed_work(work), struct kvt_pool, tick));
}

/* Room may have come: let waiters try again. */
void kvt_room_wake(struct kvt_pool *p)
{
	if (wq_has_sleeper(&p->room))
		wake_up_all(&p->room);
}

/**
 * kvt_room_wait() - have the worker make room for one block
 * @p:           pool; no srcu held by user calls, may sleep
 * @w:           ns, group, region and tier set
 * @deadline_ns: see kvt_deadline()
 * Return: 0: worth trying again; -ENOSPC: nothing can go at the moment;
 * -ETIMEDOUT; -EINTR on a fatal signal.
 */
int kvt_room_wait(struct kvt_pool *p, struct kvt_want *w, u64 deadline_ns)
{
	long left = kvt_deadline_jiffies(deadline_ns), ret;

	if (!left)
		return -ETIMEDOUT;
	w->result = 0;
	spin_lock(&p->meta_lock);
	list_add_tail(&w->link, &p->wants);
	spin_unlock(&p->meta_lock);
	kvt_reclaim_kick(p);
	/* A pool that ends has no worker, and promotions may still want room. */
	ret = wait_event_killable_timeout(p->room, READ_ONCE(w->result) || READ_ONCE(p->dying),
					  left);
	spin_lock(&p->meta_lock);
	list_del(&w->link);
	spin_unlock(&p->meta_lock);
	if (ret < 0)
		return -EINTR;
	if (!ret)
		return -ETIMEDOUT;
	return w->result > 0 ? 0 : -ENOSPC;
}

/**
 * kvt_room_wish() - have the worker look for memory that no block is in
 * @p: pool; any context that may take the meta lock
 * @w: as for kvt_room_wait(), of somebody who does not. An arena has its memory
 */
void kvt_room_wish(struct kvt_pool *p, const struct kvt_want *w)
{
	if (w->region == KVT_NO_REGION) {
		spin_lock(&p->meta_lock);
		p->wish = (struct kvt_wish) {
			.ns_id = w->ns->id, .ns_idx = w->ns->idx, .group = w->group
		};
		spin_unlock(&p->meta_lock);
	}
	kvt_reclaim_kick(p);
}

/* A region for the owner out of what nobody uses. */
static bool kvt_unused_region(struct kvt_pool *p, struct kvt_tier *t, const struct kvt_want *w)
{
	u32 nr_slots, least, i, pieces = kvt_mem_geometry(w->ns->group[w->group].slot_pages,
							  t->nr_pieces, &nr_slots);

	if (!pieces)
		return false;
	if (kvt_region_release_empty(p, t, pieces, NULL) && !kvt_region_get(t, w->ns, w->group, NULL))
		return true;
	/* Enough may be free but not in one run: then all that is empty. */
	if (kvt_region_release_empty(p, t, t->nr_pieces, NULL) &&
	    !kvt_region_get(t, w->ns, w->group, NULL))
		return true;
	/*
	 * Before anything goes: what no block is in. The shortest run that will do; where there
	 * is none, what makes one together, at last.
	 */
	least = DIV_ROUND_UP(w->ns->group[w->group].slot_pages, KVT_PIECE_PAGES);
	for (i = 0; i < KVT_STEAL_TRIES; i++) {
		if (!kvt_compact(p, t, least) && (least == 1 || !kvt_compact(p, t, 1)))
			break;
		if (!kvt_region_get(t, w->ns, w->group, NULL))
			return true;
	}
	return false;
}

/* The owner's own blocks make room for him. Whether any did; *@nr: there were some to ask. */
static bool kvt_lower_own_some(struct kvt_pool *p, struct kvt_tier *t, const struct kvt_want *w,
			       bool leaf, u32 *nr)
{
	u32 ids[KVT_MOVE_BATCH];

	*nr = kvt_collect_own(p, t, leaf, kvt_ns_group(w->ns->idx, w->group), KVT_NIL,
			      KVT_OWN_STEPS_WORKER, ids, *nr);
	return kvt_demote(p, t, ids, *nr, false) != 0;
}

/*
 * The same. If those that are worth least have no way out, and none was @put_off since: the end of
 * a chain, see kvt_lower_some().
 */
static bool kvt_lower_own(struct kvt_pool *p, struct kvt_tier *t, const struct kvt_want *w,
			  u32 put_off)
{
	u32 nr = KVT_MOVE_BATCH, one = 1;
	bool lower = kvt_tier_has_lower(p, t);

	if (kvt_lower_own_some(p, t, w, !lower, &nr))
		return true;
	return nr && lower && put_off == READ_ONCE(p->nr_put_off) &&
	       kvt_lower_own_some(p, t, w, true, &one);
}

/*
 * The region of a claimed block, if all that is in it may go for @asker: its owner has a region
 * more than what is guaranteed to him. Else none: what is in it would go as it comes, whatever
 * that is worth, up to what is guaranteed, and the region be no emptier than it may get. It is
 * drained from here on: the block is what keeps it, and goes first.
 */
static u32 kvt_region_to_steal(struct kvt_pool *p, struct kvt_tier *t, u32 id,
			       const struct kvt_ns *asker)
{
	const struct kvt_hot *h = kvt_hot(&p->table, id);
	u32 r = KVT_NO_REGION;
	struct kvt_region *reg;
	u64 others;

	spin_lock(&p->meta_lock);
	reg = kvt_mem_region_of(&t->mem, h->mem_page);
	others = (u64)(reg->nr_used - 1) * reg->slot_pages << KVT_PAGE_SHIFT;
	if (!kvt_ns_guarded(p, t, h, asker, others) && kvt_region_drain(p, t, reg))
		r = reg->first;
	spin_unlock(&p->meta_lock);
	return r;
}

/*
 * A region for the owner of a want out of what is worth least, or slots if that is his own.
 * @asker: see kvt_ns_guarded(); without one each search that finds only what is guaranteed puts
 * that out of the way of the next.
 */
static bool kvt_steal_from(struct kvt_pool *p, struct kvt_tier *t, const struct kvt_want *w,
			   const struct kvt_ns *asker, u32 put_off)
{
	u32 ns_group = kvt_ns_group(w->ns->idx, w->group), ids[KVT_MOVE_BATCH], nr, i, r;
	bool leaf;
	int err;

	for (i = 0; i < KVT_STEAL_TRIES && put_off == READ_ONCE(p->nr_put_off); i++) {
		/* What has no way down may have one out at its chain's end. */
		leaf = i >= KVT_STEAL_TRIES / 2 || !kvt_tier_has_lower(p, t);
		nr = kvt_collect(p, t, leaf, 0, asker, ids, 1);
		if (!nr && !asker)
			continue;
		if (!nr)
			break;
		if (kvt_hot(&p->table, ids[0])->ns_group == ns_group) {
			/* The coldest is the owner's own: his slots will do. */
			if (!kvt_tier_has_lower(p, t)) {
				if (kvt_demote(p, t, ids, 1, false))
					return true;
				continue;
			}
			nr += kvt_collect(p, t, false, ns_group, asker, ids + 1,
					  ARRAY_SIZE(ids) - 1);
			if (kvt_demote(p, t, ids, nr, false))
				return true;
			continue;
		}
		r = kvt_region_to_steal(p, t, ids[0], asker);
		kvt_demote(p, t, ids, 1, false);
		if (r == KVT_NO_REGION)
			continue;
		kvt_evacuate_drained(p, t, r, asker);
		err = kvt_region_get(t, w->ns, w->group, NULL);
		if (!err)
			return true;
		/* There is a piece, and no memory for it in the owner's cgroup. */
		if (err == -EDQUOT)
			break;
	}
	return false;
}

/*
 * A region for the owner out of what others do not use, or use least. @owed: not out of his own,
 * see kvt_want_owed().
 */
static bool kvt_steal_region(struct kvt_pool *p, struct kvt_tier *t, const struct kvt_want *w,
			     bool owed)
{
	u32 put_off = READ_ONCE(p->nr_put_off);

	if (w->ns->group[w->group].slot_pages > t->nr_pieces * KVT_PIECE_PAGES)
		return false;
	if (kvt_unused_region(p, t, w) || kvt_steal_from(p, t, w, owed ? NULL : w->ns, put_off))
		return true;
	/* Others' blocks are in use: then the owner's own have to make room. */
	return !owed && kvt_lower_own(p, t, w, put_off);
}

/* Would there be memory for the owner if others made room. */
static bool kvt_owner_pays(struct kvt_tier *t, const struct kvt_want *w)
{
	return kvt_charge_pays(t, w->ns, DIV_ROUND_UP(w->ns->group[w->group].slot_pages,
						      KVT_PIECE_PAGES));
}

/*
 * Is the slot of a want promised to its owner. What is so he does not pay for with what is: his
 * own go only when nothing of others' was found on any tier that could. At his limit on one it
 * is his own that make room there, and others have nothing to do with it.
 */
static bool kvt_want_owed(struct kvt_pool *p, const struct kvt_tier *t, const struct kvt_want *w)
{
	u32 slot_bytes = kvt_slot_bytes(&w->ns->group[w->group]);
	bool owed;

	spin_lock(&p->meta_lock);
	owed = w->region == KVT_NO_REGION && kvt_limit_owed_mem(p, t, w->ns, slot_bytes) &&
	       kvt_limit_fits(w->ns, t, slot_bytes);
	spin_unlock(&p->meta_lock);
	return owed;
}

/*
 * Room for a want on one tier. Whether it is worth trying again: at its limit there a
 * namespace gets none, however much there is, before some of its own went. @owed: nothing but
 * what is promised to the owner, and none of his own go.
 */
static bool kvt_serve_tier(struct kvt_pool *p, struct kvt_tier *t, const struct kvt_want *w,
			   bool owed)
{
	struct kvt_group *g = &w->ns->group[w->group];
	bool partial, barred;
	int room, err;

	if (t->state != KVTIER_TIER_ONLINE || (w->region != KVT_NO_REGION && t->id != w->tier))
		return false;
	room = kvt_limit_room(p, t, w->ns, kvt_slot_bytes(g));
	if (room <= 0)
		return !room;
	if (w->region != KVT_NO_REGION)
		return kvt_arena_room(p, t, w->region, kvt_ns_group(w->ns->idx, w->group));
	spin_lock(&p->meta_lock);
	partial = g->owner[t->id].partial != KVT_NO_REGION;
	barred = kvt_kept_barred(p, w->ns);
	spin_unlock(&p->meta_lock);
	/* Nobody's blocks make room for what it would not get. */
	if (barred && !partial)
		return !owed && kvt_limit_lower(p, t, w->ns, kvt_slot_bytes(g));
	/* What others have is of no use to whom his cgroup gives no more. */
	if (!partial && !kvt_owner_pays(t, w))
		return !owed && kvt_lower_own(p, t, w, READ_ONCE(p->nr_put_off));
	err = partial ? 0 : kvt_region_get(t, w->ns, w->group, NULL);
	if (err == -EDQUOT)
		return !owed && kvt_lower_own(p, t, w, READ_ONCE(p->nr_put_off));
	return !err || kvt_steal_region(p, t, w, owed);
}

static int kvt_serve(struct kvt_pool *p, const struct kvt_want *w)
{
	struct kvt_tier *t[KVT_TIERS];
	u32 nr = kvt_tier_snapshot(p, t, true), put_off = READ_ONCE(p->nr_put_off), i;

	for (i = 0; i < nr && kvt_want_owed(p, t[i], w); i++) {
		if (kvt_serve_tier(p, t[i], w, true))
			return 1;
	}
	for (i = 0; i < nr; i++) {
		if (kvt_serve_tier(p, t[i], w, false))
			return 1;
	}
	if (put_off == READ_ONCE(p->nr_put_off))
		return -ENOSPC;
	/* There is room below, only not at once: no reason to evict, or to give up. */
	schedule_timeout_uninterruptible(1);
	return 1;
}

/* Take the wish. Who had it may have gone, and then needs nothing any more. */
static bool kvt_wish_take(struct kvt_pool *p, struct kvt_want *w)
{
	struct kvt_wish *wish = &p->wish;
	bool there;

	spin_lock(&p->meta_lock);
	*w = (struct kvt_want) {
		.ns = wish->ns_id ? xa_load(&p->ns, wish->ns_idx) : NULL,
		.group = wish->group,
	};
	there = w->ns && w->ns->id == wish->ns_id && w->ns->nr_files;
	wish->ns_id = 0;
	spin_unlock(&p->meta_lock);
	return there;
}

/* A region for the wish, if it is to have one. */
static bool kvt_serve_wish(struct kvt_pool *p)
{
	struct kvt_tier *t[KVT_TIERS];
	u32 nr = kvt_tier_snapshot(p, t, true), i;
	struct kvt_want w;
	bool barred;
	int err;

	if (!kvt_wish_take(p, &w))
		return false;
	for (i = 0; i < nr; i++) {
		if (t[i]->state != KVTIER_TIER_ONLINE || !kvt_owner_pays(t[i], &w))
			continue;
		spin_lock(&p->meta_lock);
		barred = kvt_kept_barred(p, w.ns) ||
			 w.ns->group[w.group].owner[t[i]->id].partial != KVT_NO_REGION;
		spin_unlock(&p->meta_lock);
		err = barred ? -ENOSPC : kvt_region_get(t[i], w.ns, w.group, NULL);
		if (!err || (!barred && err != -EDQUOT && kvt_unused_region(p, t[i], &w)))
			return true;
	}
	return false;
}

/* Serve the first want that has no answer yet. */
static bool kvt_serve_next(struct kvt_pool *p)
{
	struct kvt_want *w, copy, *which = NULL;
	int result;

	spin_lock(&p->meta_lock);
	list_for_each_entry(w, &p->wants, link) {
		if (!w->result) {
			which = w;
			copy = *w;
			break;
		}
	}
	spin_unlock(&p->meta_lock);
	if (!which)
		return kvt_serve_wish(p);
	/* The namespace outlives this: only this worker frees namespaces. */
	result = kvt_serve(p, &copy);
	spin_lock(&p->meta_lock);
	list_for_each_entry(w, &p->wants, link) {
		if (w == which || (w->ns == copy.ns && w->group == copy.group &&
				   w->region == copy.region && !w->result))
			WRITE_ONCE(w->result, result);
	}
	spin_unlock(&p->meta_lock);
	wake_up_all(&p->room);
	return true;
}

/* Is there something to do between the watermarks: above the high one, down to the low. */
static bool kvt_tier_lowering(struct kvt_pool *p, struct kvt_tier *t)
{
	u32 percent = t->lowering ? READ_ONCE(p->watermark_low_percent) :
				    READ_ONCE(p->watermark_high_percent);

	t->lowering = kvt_tier_over(p, t, percent);
	return t->lowering;
}

/*
 * Would what goes down go out instead: all that is below are logs without a free segment whose
 * devices cannot be read for the moment. Who needs room gets it all the same, see kvt_serve().
 */
static bool kvt_below_is_out(struct kvt_pool *p, const struct kvt_tier *t)
{
	struct kvt_tier *o[KVT_TIERS];
	u32 nr = kvt_tier_snapshot(p, o, false), i;
	bool out = false;

	for (i = 0; i < nr; i++) {
		if (o[i]->rank <= t->rank || o[i]->state != KVTIER_TIER_ONLINE)
			continue;
		if (o[i]->ops->is_mem || kvt_log_readable(o[i]) ||
		    READ_ONCE(o[i]->log.nr_free) > o[i]->log.keep[KVT_HEAD_DEMOTE])
			return false;
		out = true;
	}
	return out;
}

/* How many blocks are to leave until a tier is at its low watermark, if they are alike. */
static u32 kvt_tier_to_go(struct kvt_pool *p, struct kvt_tier *t)
{
	u32 percent = READ_ONCE(p->watermark_low_percent);
	u64 used, all, over, block;

	kvt_tier_space(t, &used, &all);
	over = used * 100 > all * percent ? used * 100 - all * percent : 0;
	/* Reservations are used, too, but cannot leave: rather fewer, and again. */
	block = div64_u64(used, max(READ_ONCE(t->nr_blocks), 1u)) ?: 1;
	return clamp_t(u64, div64_u64(over, block * 100), 1, KVT_MOVE_BATCH);
}

/* One batch down, or out. Whether anything was achieved. */
static bool kvt_balance_tier(struct kvt_pool *p, struct kvt_tier *t)
{
	u32 gone;

	if (!t->ops->is_mem && kvt_log_retire(t))
		return true;
	if (t->ops->is_mem && kvt_shrink_work(p, t))
		return true;
	if (!t->ops->is_mem &&
	    READ_ONCE(t->log.nr_free) < kvt_log_goal(&t->log) &&
	    kvt_log_clean(t, KVT_CLEAN_LOWER))
		return true;
	if (!kvt_tier_lowering(p, t) || kvt_below_is_out(p, t))
		return false;
	gone = kvt_lower_some(p, t, kvt_tier_to_go(p, t));
	if (!gone)
		t->lowering = false;
	return gone;
}

/* Slowest tier first, so that there is room below. Whether anything was achieved. */
static bool kvt_balance(struct kvt_pool *p)
{
	struct kvt_tier *t[KVT_TIERS];
	u32 nr = kvt_tier_snapshot(p, t, false);
	bool any = false;

	while (nr--) {
		if (t[nr]->state == KVTIER_TIER_ONLINE)
			any |= kvt_balance_tier(p, t[nr]);
	}
	return any;
}

static void kvt_retire_regions(struct kvt_pool *p)
{
	struct kvt_tier *t[KVT_TIERS];
	u32 nr = kvt_tier_snapshot(p, t, true);

	while (nr--) {
		if (t[nr]->state == KVTIER_TIER_ONLINE)
			kvt_region_retire(p, t[nr]);
	}
}

/**
 * kvt_promote_later() - blocks were used on slow memory
 * @p:   pool; no spinlock held
 * @ids: which
 * @nr:  how many; what does not fit is forgotten
 */
void kvt_promote_later(struct kvt_pool *p, const u32 *ids, u32 nr)
{
	bool first;
	u32 i;

	/* Losing some costs little; a lock that all releases of a pool meet in, much. */
	if (!nr || READ_ONCE(p->nr_up) >= KVT_UP_SIZE || !spin_trylock(&p->up_lock))
		return;
	first = !p->nr_up;
	for (i = 0; i < nr && p->nr_up < KVT_UP_SIZE; i++)
		p->up[p->nr_up++] = ids[i];
	spin_unlock(&p->up_lock);
	if (first)
		kvt_reclaim_kick(p);
}

static bool kvt_promote_some(struct kvt_pool *p)
{
	u32 ids[KVT_MOVE_BATCH], nr;

	spin_lock(&p->up_lock);
	nr = min(p->nr_up, KVT_MOVE_BATCH);
	p->nr_up -= nr;
	memcpy(ids, &p->up[p->nr_up], nr * sizeof(ids[0]));
	spin_unlock(&p->up_lock);
	if (!nr)
		return false;
	kvt_promote_up(p, ids, nr);
	return true;
}

/* Copies on tiers that take no blocks are of no use. And what logs have put off. */
static void kvt_look_at_logs(struct kvt_pool *p)
{
	struct kvt_tier *t[KVT_TIERS];
	u32 nr = kvt_tier_snapshot(p, t, false);

	while (nr--) {
		if (t[nr]->ops->is_mem)
			continue;
		if (t[nr]->state != KVTIER_TIER_ONLINE)
			kvt_copy_shed_all(t[nr]);
		kvt_mlog_tick(t[nr]->mlog);
	}
}

static bool kvt_housekeeping(struct kvt_pool *p)
{
	bool any = kvt_filling_expire(p) != 0;

	kvt_frames_look(p);
	any |= kvt_limbo_check(p);
	any |= kvt_region_unquarantine(p);
	if (kvt_holds_settle(p))
		kvt_reclaim_kick(p);
	kvt_retire_regions(p);
	kvt_look_at_logs(p);
	return any;
}

/**
 * kvt_reclaim_work() - the worker
 * @work: pool->work
 *
 * However much there is to do, housekeeping gets its turn and a tier that is being
 * detached can go: after a while the work ends and queues itself again.
 */
void kvt_reclaim_work(struct work_struct *work)
{
	struct kvt_pool *p = container_of(work, struct kvt_pool, work);
	unsigned long delay = HZ / 4, end = jiffies + KVT_RECLAIM_TIME;
	bool more;
	int idx;

	if (READ_ONCE(p->dying) || kvt_test_settles(p))
		return;
	idx = srcu_read_lock(&p->srcu);
	if (kvt_housekeeping(p))
		kvt_room_wake(p);
	do {
		more = kvt_serve_next(p);
		more |= kvt_limits_work(p);
		more |= kvt_balance(p);
		if (!more)
			more = kvt_promote_some(p);
		cond_resched();
	} while (more && time_before(jiffies, end));
	srcu_read_unlock(&p->srcu, idx);
	kvt_garbage_free(p);
	/* Not under srcu: who lets a buffer go takes the registry's lock. */
	if (kvt_exports_look(p))
		kvt_room_wake(p);
	kvt_ns_reap(p);
	if (more)
		kvt_reclaim_kick(p);
	if (READ_ONCE(p->limbo.count) || READ_ONCE(p->nr_quarantined) ||
	    !list_empty_careful(&p->fixed.lingering))
		delay = HZ / 20 + 1;
	if (!READ_ONCE(p->dying))
		mod_delayed_work(p->reclaim_wq, &p->tick, delay);
}
