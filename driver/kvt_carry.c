// SPDX-License-Identifier: GPL-2.0
/*
 * Moves to block tiers: their batches, and moves that wait for those to be durable.
 *
 * A block that has only copies on block tiers is *carried*: it has its old address, and
 * MOVING, until the batch with its new record is durable, and only then the old record
 * dies. Otherwise a crash could find neither. Its move is kept in a struct kvt_carry on
 * pool->carries until the writer tells what became of the batch.
 */
#include <linux/slab.h>

#include "kvt_internal.h"
#include "kvt_mlog.h"
#include "kvt_test.h"
#include "kvt_trace.h"

#define KVT_WRITE_ERRORS_MAX	8u	/* batches in a row of which nothing could be written */

/**
 * kvt_carry_alloc() - have moves that may outlive who makes them
 * @nr: how many
 * Return: group, given back with kvt_carry_put(), or NULL.
 */
struct kvt_carry *kvt_carry_alloc(u32 nr)
{
	struct kvt_carry *c = kvzalloc(struct_size(c, mv, nr), GFP_KERNEL | __GFP_NOWARN);

	if (!c)
		return NULL;
	INIT_LIST_HEAD(&c->link);
	c->nr = nr;
	c->nr_left = 1;
	return c;
}

static void kvt_carry_put_locked(struct kvt_pool *p, struct kvt_carry *c)
{
	lockdep_assert_held(&p->meta_lock);
	if (--c->nr_left)
		return;
	list_del_init(&c->link);
	kvt_defer_free(p, c);
}

/**
 * kvt_carry_put() - who made the moves is done
 * @p: pool; no spinlock held
 * @c: group
 */
void kvt_carry_put(struct kvt_pool *p, struct kvt_carry *c)
{
	spin_lock(&p->meta_lock);
	kvt_carry_put_locked(p, c);
	spin_unlock(&p->meta_lock);
}

/*
 * A block tier that takes no writes any more must not keep memory from being freed
 * otherwise: nothing new is placed there, what is there is still served.
 */
static void kvt_write_judge(struct kvt_tier *t, int err)
{
	if (!err) {
		t->write_errors = 0;
	} else if (err == -EIO && ++t->write_errors == KVT_WRITE_ERRORS_MAX &&
		   t->state == KVTIER_TIER_ONLINE) {
		t->state = KVTIER_TIER_DRAINING;
		pr_warn("kvtier%u: tier %s fails every write, draining it\n", t->pool->id,
			t->args.name);
	}
}

/* The move of one block whose batch is written, or not. Whether it is on its way. */
static bool kvt_mv_written(struct kvt_pool *p, struct kvt_mv *mv, struct kvt_carry *c, int err)
{
	lockdep_assert_held(&p->meta_lock);
	/* A record that could not be written says nothing about where the block is. */
	if (err && !mv->x.err) {
		kvt_mv_cancel(p, mv);
		return false;
	}
	if (!mv->carried || mv->x.err)
		return kvt_mv_finish(p, mv, false);
	mv->waits = true;
	if (list_empty(&c->link))
		list_add_tail(&c->link, &p->carries);
	c->nr_left++;
	return true;
}

/* What became of the payloads of a batch that is not on a zoned device. */
struct kvt_written {
	bool good;
	bool bad;
	bool any_bad;
};

static void kvt_written_note(struct kvt_written *w, const struct kvt_mv *mv, int err)
{
	/* That it could not be read says nothing about where it goes. */
	if (mv->x.src_bad)
		return;
	w->good |= !(mv->x.err ?: err);
	w->bad |= mv->x.err == -EIO;
	w->any_bad |= (mv->x.err ?: err) == -EIO;
}

/*
 * What a record says of its payload, now that the payload was read. Memory that has gone by now
 * may have answered anything, to the sum and to the disk alike: the move will be void, and its
 * record killed, but until that is durable it must not verify. A tier has failed before its memory
 * is taken away, so if it has not, what was read was there.
 */
static u32 kvt_mv_sum(const struct kvt_mv *mv)
{
	bool gone = mv->x.src->ops->is_mem && mv->x.src->state == KVTIER_TIER_FAILED;

	lockdep_assert_held(&mv->x.src->pool->meta_lock);
	return gone ? ~mv->x.csum : mv->x.csum;
}

/* Write one batch, and let its moves take effect. */
static u32 kvt_mv_write_batch(struct kvt_pool *p, struct kvt_mlog_puts *puts, u32 at,
			      struct kvt_mv *mv, u32 nr, struct kvt_carry *c)
{
	struct kvt_mlog *m = puts->b[at].m;
	struct kvt_written w = { 0 };
	u32 i, done = 0;
	int err;

	if (m->turn)
		kvt_mzone_prepare(mv, nr, at);
	kvt_test_held();
	spin_lock(&p->meta_lock);
	for (i = 0; i < nr; i++) {
		if (mv[i].placed && mv[i].put == at)
			kvt_wlog_set_sum(&m->w, mv[i].x.dst_addr, kvt_mv_sum(&mv[i]));
	}
	spin_unlock(&p->meta_lock);
	err = m->turn ? kvt_mzone_write(m, &puts->b[at].io, mv, nr, at) :
			kvt_mlog_write_header(m, &puts->b[at].io);
	spin_lock(&p->meta_lock);
	for (i = 0; i < nr; i++) {
		if (mv[i].placed && mv[i].put == at) {
			kvt_written_note(&w, &mv[i], err);
			done += kvt_mv_written(p, &mv[i], c, err);
			mv[i].put = KVT_NO_PUT;
		}
	}
	/* On zoned devices one failure is all of a batch's. */
	if (m->turn)
		kvt_write_judge(m->tier, err);
	else if (w.good || w.any_bad)
		kvt_write_judge(m->tier, w.good ? 0 : -EIO);
	kvt_wlog_written(&m->w, puts->b[at].io.batch, err);
	if (!m->turn && w.bad)
		kvt_segment_write_fault(p, m->tier, puts->b[at].io.seg);
	spin_unlock(&p->meta_lock);
	kvt_mlog_kick(m);
	return done;
}

/**
 * kvt_mv_write() - finish moves to block tiers, after they were run
 * @p:    pool; no spinlock held, sleeps
 * @puts: batches they were placed in
 * @mv:   moves; of those to memory nothing is done
 * @nr:   how many
 * @c:    what @mv belongs to, if any of them is carried
 * Return: how many are at their destination, or will be as soon as that is durable.
 */
u32 kvt_mv_write(struct kvt_pool *p, struct kvt_mlog_puts *puts, struct kvt_mv *mv, u32 nr,
		 struct kvt_carry *c)
{
	u32 i, done = 0;

	for (i = 0; i < puts->nr; i++)
		done += kvt_mv_write_batch(p, puts, i, mv, nr, c);
	return done;
}

/* It is there now; where it was is the writer's to give back. */
static void kvt_carry_arrive(struct kvt_pool *p, struct kvt_mv *mv)
{
	struct kvt_hot *h = kvt_hot(&p->table, mv->id);
	struct kvt_tier *from = mv->x.src, *to = mv->x.dst;
	bool ready = kvt_ctl_state(kvt_ctl(h)) == KVT_READY;

	lockdep_assert_held(&p->meta_lock);
	kvt_limit_came(p, mv);
	if (ready && from != to) {
		p->policy.now_ms = kvt_now_ms();
		p->policy.ops->remove(&p->policy, from->id, mv->id);
		kvt_tier_count_block(p, from, h->ns_group, -1);
	}
	h->log_tier = to->id;
	h->log_unit = mv->x.dst_addr;
	if (ready && from != to) {
		p->policy.ops->insert(&p->policy, to->id, mv->id);
		kvt_tier_count_block(p, to, h->ns_group, 1);
		kvt_mv_account(p, mv);
	}
	/* Lost between the flush and now: what is there was given up before this came. */
	if (ready && to->state == KVTIER_TIER_FAILED)
		kvt_block_lose(p, mv->id, KVT_WHY_LOST);
	/* What the writer kills there is not seen by anybody who would tell. */
	if (from->mlog->w.nr_pending > from->mlog->w.cfg.ring / 2)
		kvt_mlog_kick(from->mlog);
	kvt_ctl_update(h, 0, 0, KVT_CTL_MOVING, 0);
	/* It may have died meanwhile. */
	kvt_block_reap(p, mv->id);
	kvt_block_wake(p, mv->id);
}

/* It stays where it was. Whether the new address could be given back. */
static bool kvt_carry_stay(struct kvt_pool *p, struct kvt_mv *mv)
{
	struct kvt_mlog *m = mv->x.dst->mlog;

	lockdep_assert_held(&p->meta_lock);
	if (!mv->stray) {
		kvt_limit_came(p, mv);
		kvt_mv_stays(p, mv->id);
		kvt_block_wake(p, mv->id);
	}
	p->nr_strays -= mv->stray;
	mv->stray = kvt_wlog_free(&m->w, mv->x.dst_addr, kvt_geo_units(&m->geo, mv->x.bytes));
	p->nr_strays += mv->stray;
	return !mv->stray;
}

/**
 * kvt_carry_settle() - it is known what became of a batch
 * @p: pool, meta lock held
 * @t: block tier
 * @d: batch
 */
void kvt_carry_settle(struct kvt_pool *p, struct kvt_tier *t, const struct kvt_wlog_done *d)
{
	struct kvt_carry *c, *next;
	u32 i;

	lockdep_assert_held(&p->meta_lock);
	list_for_each_entry_safe(c, next, &p->carries, link) {
		c->nr_left++;
		for (i = 0; i < c->nr; i++) {
			struct kvt_mv *mv = &c->mv[i];

			if (!mv->waits || mv->x.dst != t || mv->x.dst_addr - d->unit >= d->units)
				continue;
			mv->waits = false;
			if (!d->err)
				kvt_carry_arrive(p, mv);
			if (!d->err || kvt_carry_stay(p, mv))
				c->nr_left--;
		}
		kvt_carry_put_locked(p, c);
	}
}

/**
 * kvt_carry_retry() - give back addresses for whose kills there was no room
 * @p: pool, meta lock held
 */
void kvt_carry_retry(struct kvt_pool *p)
{
	struct kvt_carry *c, *next;
	u32 i;

	lockdep_assert_held(&p->meta_lock);
	list_for_each_entry_safe(c, next, &p->carries, link) {
		c->nr_left++;
		for (i = 0; i < c->nr; i++) {
			if (c->mv[i].stray && kvt_carry_stay(p, &c->mv[i]))
				c->nr_left--;
		}
		kvt_carry_put_locked(p, c);
	}
}
