// SPDX-License-Identifier: GPL-2.0
/*
 * Places for blocks on a member: records, namespaces, opening segments. See
 * kvt_mlog.h for the model and the locks.
 *
 * A group of moves is placed in one go: the head's lock is taken, one move after the
 * other gets its address, and what the writer wants to be done meanwhile is done. All
 * batches are closed when the lock is dropped; their bytes are written after that.
 *
 * Whoever has a batch that is closed but not written does not wait for anybody: the
 * rest of the group has to come again.
 */
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "kvt_internal.h"
#include "kvt_mlog.h"

#define KVT_PUT_STEPS	24u	/* things to be done for one block, at most */
#define KVT_BUSY_TRIES	10u	/* of KVT_BUSY_WAIT each */
#define KVT_BUSY_WAIT	(HZ / 10 + 1)

/* The pool's clock to realtime; 0: never. */
static u64 kvt_rec_expiry(struct kvt_pool *p, u32 id)
{
	u32 at = kvt_cold(&p->table, id)->expire_s;
	s64 real;

	if (!(kvt_hot(&p->table, id)->flags & KVT_HOT_EXPIRES) || !at)
		return 0;
	real = ktime_get_real_seconds() + (s32)(at - kvt_now_s());
	return max(real, 1);
}

/* The record of a block as it is now. Meta lock held. */
static void kvt_rec_of(struct kvt_pool *p, u32 id, struct kvt_rec *r)
{
	const struct kvt_hot *h = kvt_hot(&p->table, id);
	const struct kvt_group *g = kvt_group_of(p, h->ns_group);
	u32 parent = kvt_cold(&p->table, id)->parent;

	lockdep_assert_held(&p->meta_lock);
	memset(r, 0, sizeof(*r));
	memcpy(r->key, h->key, KVT_KEY_BYTES);
	if (parent != KVT_NIL)
		memcpy(r->parent, kvt_hot(&p->table, parent)->key, KVT_KEY_BYTES);
	r->ns = kvt_ns_of(p, h->ns_group)->id;
	r->group = h->ns_group & 15;
	r->bytes = g->block_bytes;
	r->stored = kvt_slot_bytes(g);
	r->expiry_s = kvt_rec_expiry(p, id);
}

/**
 * kvt_mlog_nsdef() - a namespace as it is recorded
 * @ns: namespace, meta lock held
 * @d:  out
 */
void kvt_mlog_nsdef(const struct kvt_ns *ns, struct kvt_nsdef *d)
{
	u32 i;

	memset(d, 0, sizeof(*d));
	d->id = ns->id;
	d->quota_bytes = ns->quota_bytes;
	d->min_bytes = ns->min_bytes;
	d->uid = from_kuid(&init_user_ns, ns->uid);
	d->gid = from_kgid(&init_user_ns, ns->gid);
	d->mode = ns->mode;
	d->nr_groups = ns->nr_groups;
	for (i = 0; i < ns->nr_groups; i++)
		d->group_bytes[i] = ns->group[i].block_bytes;
	d->identity_len = ns->identity_len;
	memcpy(d->identity, ns->identity, ns->identity_len);
	if (!ns->has_secret)
		return;
	d->flags = KVT_NSF_SECRET;
	memcpy(d->salt, ns->salt, sizeof(d->salt));
	memcpy(d->secret, ns->secret, sizeof(d->secret));
}

/**
 * kvt_mlog_open() - open a segment for a head
 * @m:      member; the head's put_lock held, no batch open; sleeps
 * @head:   which end
 * @units:  length of the blocks to come, 0: not known
 * @urgent: even the last free one
 * @st:     out: what kvt_wlog_open() says
 * Return: whether it was opened; if not, and @st is KVT_W_OK, there is no memory.
 */
bool kvt_mlog_open(struct kvt_mlog *m, enum kvt_log_head head, u32 units, bool urgent,
		   enum kvt_wlog_status *st)
{
	struct kvt_pool *p = m->tier->pool;
	u32 max = m->w.cfg.max_blocks, *ids;

	/* Twice what fits of this size; a segment of smaller blocks is sealed early. */
	if (units)
		WRITE_ONCE(m->ids_hint, clamp(2 * (m->geo.seg_units / units), 64u, max));
	max = READ_ONCE(m->ids_hint);
	*st = KVT_W_OK;
	ids = kvmalloc_array(max, sizeof(*ids), GFP_NOIO | __GFP_NOWARN);
	if (!ids)
		return false;
	spin_lock(&p->meta_lock);
	*st = kvt_wlog_open(&m->w, head, ids, max, urgent);
	if (!*st)
		kvt_mzone_opened(m, m->tier->log.open[head]);
	spin_unlock(&p->meta_lock);
	if (!*st)
		return true;
	kvfree(ids);
	return false;
}

/**
 * struct kvt_place - a group being placed
 * @m:     member
 * @head:  which end; its put_lock is held
 * @puts:  batches closed so far; none is open when it is full
 * @opened: for the move that is being placed: a segment that an end had opened was tried
 */
struct kvt_place {
	struct kvt_mlog *m;
	enum kvt_log_head head;
	struct kvt_mlog_puts *puts;
	bool opened;
};

/* Close the head's batch, if any. Whether there is room for one more. */
static bool kvt_place_close(struct kvt_place *pl)
{
	struct kvt_mlog_puts *puts = pl->puts;
	struct kvt_pool *p = pl->m->tier->pool;

	spin_lock(&p->meta_lock);
	if (puts->nr < KVT_MLOG_PUTS &&
	    !kvt_wlog_close(&pl->m->w, pl->head, &puts->b[puts->nr].io))
		puts->b[puts->nr++].m = pl->m;
	spin_unlock(&p->meta_lock);
	return puts->nr < KVT_MLOG_PUTS;
}

/* May a block be put: of those that are to stay in this state. Meta lock held. */
static bool kvt_place_may(const struct kvt_place *pl, const struct kvt_mv *mv)
{
	struct kvt_tier *t = pl->m->tier;
	u32 ctl;

	lockdep_assert_held(&t->pool->meta_lock);
	/* What is dead must not become findable after somebody was told so. */
	ctl = kvt_ctl(kvt_hot(&t->pool->table, mv->id));
	if (kvt_ctl_state(ctl) != KVT_READY)
		return false;
	/* A copy that cannot be given up now: there is one place on a log for each block. */
	if (mv->x.src->ops->is_mem && (ctl & KVT_CTL_LOG))
		return false;
	return t->state == KVTIER_TIER_ONLINE;
}

/* Has the open segment no room for one more id. */
static bool kvt_place_ids_full(const struct kvt_log *log, enum kvt_log_head head)
{
	u32 seg = log->open[head];

	return seg != KVT_NO_SEG && log->segs[seg].nr_ids >= log->segs[seg].max_ids;
}

static enum kvt_wlog_status kvt_place_define(struct kvt_place *pl, struct kvt_mv *mv,
					     u32 stored)
{
	struct kvt_tier *t = pl->m->tier;
	struct kvt_ns *ns = kvt_ns_of(t->pool, kvt_hot(&t->pool->table, mv->id)->ns_group);
	struct kvt_ns_home *home = &ns->home[t->id];
	struct kvt_nsdef def;
	enum kvt_wlog_status st;

	lockdep_assert_held(&t->pool->meta_lock);
	kvt_mlog_nsdef(ns, &def);
	st = kvt_wlog_ns(&pl->m->w, pl->head, &def, home, stored);
	if (!st && !(ns->on_tiers & 1u << t->id))
		home->first = kvt_wlog_first_life(&pl->m->w);
	if (!st)
		ns->on_tiers |= 1u << t->id;
	return st;
}

/* Ask for a place once. */
static enum kvt_wlog_status kvt_place_try(struct kvt_place *pl, struct kvt_mv *mv)
{
	struct kvt_tier *t = pl->m->tier, *src = mv->x.src;
	struct kvt_wlog_put put = { .id = mv->id };
	enum kvt_wlog_status st = KVT_W_NEVER;
	struct kvt_rec rec;

	put.rec = &rec;
	if (!src->ops->is_mem) {
		put.src_log = &src->mlog->w;
		put.src_unit = mv->x.src_addr;
		put.src_units = kvt_geo_units(&src->mlog->geo, mv->x.bytes);
	}
	spin_lock(&t->pool->meta_lock);
	if (!kvt_place_may(pl, mv)) {
		/* What is none of the tier's fault is no want of room there. */
		mv->retry |= t->state == KVTIER_TIER_ONLINE;
	} else if (!kvt_limit_refuses(t->pool, mv, t)) {
		kvt_rec_of(t->pool, mv->id, &rec);
		if (src->ops->is_mem)
			kvt_hot(&t->pool->table, mv->id)->flags &= ~KVT_HOT_STALE;
		st = kvt_place_ids_full(&t->log, pl->head) ? KVT_W_SEGMENT :
			kvt_wlog_put(&pl->m->w, pl->head, &put, &mv->x.dst_addr);
		if (st == KVT_W_NS)
			st = kvt_place_define(pl, mv, rec.stored) ?: KVT_W_NS;
	}
	if (!st) {
		mv->x.dst = t;
		mv->placed = true;
		kvt_limit_coming(t->pool, mv);
	}
	spin_unlock(&t->pool->meta_lock);
	if (!st) {
		mv->put = pl->puts->nr;
		mv->carried = put.src_log;
	}
	return st;
}

/* Wait for writes and flushes of others, for a while. Whether it is worth trying again. */
static bool kvt_place_wait(struct kvt_place *pl, u32 *waits)
{
	if (pl->puts->nr || READ_ONCE(pl->m->w.given_up) || ++*waits > KVT_BUSY_TRIES ||
	    fatal_signal_pending(current))
		return false;
	if (!kvt_mlog_progress(pl->m)) {
		kvt_mlog_kick(pl->m);
		schedule_timeout_uninterruptible(KVT_BUSY_WAIT);
	}
	return true;
}

/* There is no free segment: have a dead one ended. Whether one is free now. */
static bool kvt_place_reap(struct kvt_place *pl)
{
	bool got;

	if (pl->puts->nr)
		return false;
	if (pl->head == KVT_HEAD_CARRY)
		return kvt_mlog_reap(pl->m, true);
	mutex_lock(&pl->m->put_lock[KVT_HEAD_CARRY]);
	got = kvt_mlog_reap(pl->m, true);
	mutex_unlock(&pl->m->put_lock[KVT_HEAD_CARRY]);
	return got;
}

/* Has the head a segment that more can be put into. */
static bool kvt_place_open(struct kvt_place *pl)
{
	const struct kvt_wlog *w = &pl->m->w;
	bool open;
	u32 i;

	spin_lock(&pl->m->tier->pool->meta_lock);
	i = w->head_open[pl->head];
	open = i < KVT_WLOG_OPENS && !w->opens[i].broken;
	spin_unlock(&pl->m->tier->pool->meta_lock);
	return open;
}

/* A segment is wanted. Whether it is worth trying again; else see @mv->retry. */
static bool kvt_place_segment(struct kvt_place *pl, struct kvt_mv *mv, u32 *waits)
{
	u32 units = kvt_geo_units(&pl->m->geo, mv->x.bytes);
	enum kvt_wlog_status st;

	if (kvt_mlog_open(pl->m, pl->head, units, false, &st))
		return true;
	switch (st) {
	case KVT_W_CLOSE:
		mv->retry = true;
		return kvt_place_close(pl);
	case KVT_W_SUPER:
		return !kvt_mlog_write_super(pl->m, false);
	case KVT_W_BUSY:
		mv->retry = true;
		return kvt_place_wait(pl, waits);
	case KVT_W_SPACE:
		mv->retry = pl->puts->nr;
		/* Also if none was gained: an end may have opened the head's next one for itself. */
		if (kvt_place_reap(pl))
			return true;
		if (!pl->opened && kvt_place_open(pl)) {
			pl->opened = true;
			return true;
		}
		pl->puts->full |= !pl->puts->nr;
		return false;
	default:
		mv->retry = true;
		return false;
	}
}

/* Place one move. False: neither this one nor another one now. */
static bool kvt_place_one(struct kvt_place *pl, struct kvt_mv *mv)
{
	u32 steps, waits = 0;

	pl->opened = false;
	for (steps = 0; steps < KVT_PUT_STEPS; steps++) {
		enum kvt_wlog_status st = kvt_place_try(pl, mv);
		bool again = true;

		switch (st) {
		case KVT_W_OK:
			mv->retry = false;
			return true;
		case KVT_W_NS:
			break;
		case KVT_W_CLOSE:
			mv->retry = true;
			again = kvt_place_close(pl);
			break;
		case KVT_W_SEGMENT:
			again = kvt_place_segment(pl, mv, &waits);
			break;
		case KVT_W_SUPER:
			again = !kvt_mlog_write_super(pl->m, false);
			break;
		case KVT_W_NEVER:
			return true;
		default:
			mv->retry = true;
			again = kvt_place_wait(pl, &waits);
			break;
		}
		if (!again)
			return false;
	}
	mv->retry = true;
	return false;
}

/**
 * kvt_mlog_place() - find room for moves on a block tier
 * @t:    destination; srcu held, no spinlock held, sleeps
 * @head: which end of the log
 * @mv:   moves; those that have a place already are left alone
 * @nr:   how many
 * @puts: batches they are in are added
 *
 * See also @retry of those that did not get a place: what keeps one of them from being
 * placed now keeps all that come after it. The caller has to write what is in @puts
 * before he waits for anything.
 * Return: how many were placed.
 */
u32 kvt_mlog_place(struct kvt_tier *t, enum kvt_log_head head, struct kvt_mv *mv, u32 nr,
		   struct kvt_mlog_puts *puts)
{
	struct kvt_place pl = { .m = t->mlog, .head = head, .puts = puts };
	u32 i, placed = 0;
	bool go_on = puts->nr < KVT_MLOG_PUTS, later = false, before;

	mutex_lock(&pl.m->put_lock[head]);
	for (i = 0; i < nr; i++) {
		/* One whose copy is in the way comes again, or leaves. */
		if (!kvt_mv_idle(&mv[i]) || mv[i].over != KVT_NO_TIER)
			continue;
		if (!go_on) {
			mv[i].retry |= later || puts->nr;
			continue;
		}
		/* Another tier may have had room, whatever this one says. */
		before = mv[i].retry;
		go_on = kvt_place_one(&pl, &mv[i]);
		placed += mv[i].placed;
		later = !go_on && mv[i].retry;
		mv[i].retry |= before && !mv[i].placed;
	}
	kvt_place_close(&pl);
	mutex_unlock(&pl.m->put_lock[head]);
	return placed;
}
