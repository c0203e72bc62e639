// SPDX-License-Identifier: GPL-2.0
/*
 * Looking ahead: blocks come up from block tiers before somebody asks for them.
 *
 * Calls note where to look (struct kvt_look) and go on:
 *
 *   LOOKUP   blocks of its prefix that are on a block tier: a GET may follow
 *   GET      and LOOKUP, if all they asked for is in memory: what follows in the chain
 *   SESSION  the chain of a session that decodes; or, if it rests and the client has said
 *            for how long, shortly before that is over
 *
 * One work item makes the looks, one after the other. core/kvt_ahead.h says how much each
 * may read. Blocks are read in batches of at most KVT_LOOK_BATCH, and before each of them
 * everything is looked at again, so a look ends early if it turns out to be in the way:
 *
 *   - While anybody waits for a read from that tier none is begun. A look that had to wait
 *     for KVT_LOOK_PATIENCE is given up. So who asks for a block waits for one batch at most.
 *   - Blocks are put where there is room below the middle between the watermarks. Nothing
 *     goes for them, and the tier does not get above its high watermark by them. The same
 *     part of a tier's pieces is left for others' regions.
 *   - Blocks are not claimed before the batch that reads them, so nobody has to wait for
 *     blocks in a queue.
 *
 * A block that was brought up carries KVT_HOT_AHEAD until it is read, which earns trust, or
 * leaves the tier. It has no lease: to the policy it is like any other that is not used.
 *
 * A namespace may go while a look waits: it is found by its block, which has a generation.
 * Nothing here holds the pool's srcu while it waits, so tiers can go.
 */
#include <linux/slab.h>

#include "kvt_internal.h"
#include "kvt_trace.h"
#include "ops.h"

#define KVT_LOOK_BATCH		8u
#define KVT_LOOK_BATCH_BYTES	(4u << 20)	/* of more than one block */
#define KVT_LOOK_UP		512u		/* blocks looked at, under one hold of the lock */
#define KVT_LOOK_DOWN		256u
#define KVT_LOOK_SIBLINGS	8u
#define KVT_LOOK_NEAR		16u		/* none of these: no look */
#define KVT_LOOK_PATIENCE	(HZ / 10 + 1)
#define KVT_LOOK_SOON_NS	(NSEC_PER_SEC)	/* a session decodes: then it reads */
#define KVT_LOOK_EARLY_NS	(NSEC_PER_SEC / 4)
#define KVT_LOOK_EARLY		8u		/* begin with this part of the time left */
#define KVT_LOOK_REUSE_NS	(3600ull * NSEC_PER_SEC)

/**
 * struct kvt_ahead_run - a look that is being made
 * @look:   where
 * @tier:   id of the tier all of them are on
 * @done:   read, or given up; the next one
 * @nr:     how many
 * @bytes:  that have come up
 * @id:     blocks, in the order in which they will be asked for
 * @gen:    their generations
 * @mv:     moves of a batch
 */
struct kvt_ahead_run {
	struct kvt_look look;
	u32 tier;
	u32 done;
	u32 nr;
	u64 bytes;
	u32 id[KVT_LOOK_UP];
	u32 gen[KVT_LOOK_UP];
	struct kvt_mv mv[KVT_LOOK_BATCH];
};

/* --- which blocks ------------------------------------------------------------------- */

/* Is this block on a block tier only, and can it be brought up. */
static bool kvt_ahead_slow(struct kvt_pool *p, u32 id)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);
	u32 ctl = kvt_ctl(h);

	lockdep_assert_held(&p->meta_lock);
	return kvt_ctl_state(ctl) == KVT_READY && (ctl & KVT_CTL_LOG) &&
	       !(ctl & (KVT_CTL_MEM | KVT_CTL_MOVING)) &&
	       p->tiers[h->log_tier]->state == KVTIER_TIER_ONLINE && !kvt_block_expired(p, id);
}

static void kvt_ahead_add(struct kvt_pool *p, struct kvt_ahead_run *r, u32 id)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);

	lockdep_assert_held(&p->meta_lock);
	if (!kvt_ahead_slow(p, id))
		return;
	r->id[r->nr] = id;
	r->gen[r->nr++] = h->gen;
}

/* From the tip upwards; then turned round, since the head is asked for first. */
static void kvt_ahead_climb(struct kvt_pool *p, struct kvt_ahead_run *r)
{
	u32 left = min(r->look.nr, KVT_LOOK_UP), id = r->look.tip, i;

	lockdep_assert_held(&p->meta_lock);
	for (; id && left--; id = kvt_cold(&p->table, id)->parent)
		kvt_ahead_add(p, r, id);
	for (i = 0; i < r->nr / 2; i++) {
		swap(r->id[i], r->id[r->nr - 1 - i]);
		swap(r->gen[i], r->gen[r->nr - 1 - i]);
	}
}

/* The child that was used last: that chain is the one that goes on. */
static u32 kvt_ahead_child(struct kvt_pool *p, u32 id)
{
	u32 child = kvt_cold(&p->table, id)->first_child, best = child;
	u32 now = kvt_now_ms(), left = KVT_LOOK_SIBLINGS;

	lockdep_assert_held(&p->meta_lock);
	for (; child && left--; child = kvt_cold(&p->table, child)->sib_next) {
		if (kvt_age_ms(now, kvt_cold(&p->table, child)->touch_ms) <
		    kvt_age_ms(now, kvt_cold(&p->table, best)->touch_ms))
			best = child;
	}
	return best;
}

static void kvt_ahead_descend(struct kvt_pool *p, struct kvt_ahead_run *r)
{
	u32 left = min(r->look.nr, KVT_LOOK_DOWN), id = kvt_ahead_child(p, r->look.tip);

	lockdep_assert_held(&p->meta_lock);
	for (; id && left--; id = kvt_ahead_child(p, id)) {
		if (kvt_ctl_state(kvt_ctl(kvt_hot(&p->table, id))) != KVT_READY)
			break;
		kvt_ahead_add(p, r, id);
	}
}

/* Those of the first one's tier; the others are left to who asks for them. */
static void kvt_ahead_one_tier(struct kvt_pool *p, struct kvt_ahead_run *r)
{
	u32 nr = 0, i;

	lockdep_assert_held(&p->meta_lock);
	for (i = 0; i < r->nr; i++) {
		u32 tier = kvt_hot(&p->table, r->id[i])->log_tier;

		if (!nr)
			r->tier = tier;
		if (tier != r->tier)
			continue;
		r->id[nr] = r->id[i];
		r->gen[nr++] = r->gen[i];
	}
	r->nr = nr;
}

/* --- how many ----------------------------------------------------------------------- */

static u32 kvt_ahead_percent(struct kvt_pool *p)
{
	return (READ_ONCE(p->watermark_low_percent) + READ_ONCE(p->watermark_high_percent)) / 2;
}

/* Of a memory tier, so much can be used by guesses: bytes. Meta lock held. */
static u64 kvt_ahead_room(struct kvt_pool *p, struct kvt_tier *t)
{
	u64 all, used;

	lockdep_assert_held(&p->meta_lock);
	if (!t->ops->is_mem || t->state != KVTIER_TIER_ONLINE)
		return 0;
	all = div_u64(kvt_tier_present_bytes(t) * kvt_ahead_percent(p), 100);
	used = (u64)t->mem.used_pages << KVT_PAGE_SHIFT;
	return all - min(all, used);
}

/* Of its pieces, so many are left free by guesses; at least one. */
static u32 kvt_ahead_keep(struct kvt_pool *p, struct kvt_tier *t)
{
	return t->nr_pieces - div_u64((u64)t->nr_pieces * kvt_ahead_percent(p), 100) ?: 1;
}

static u64 kvt_ahead_room_all(struct kvt_pool *p)
{
	u64 sum = 0;
	u32 i;

	lockdep_assert_held(&p->meta_lock);
	for (i = 0; i < p->nr_tiers; i++)
		sum += kvt_ahead_room(p, p->tiers[p->order[i]]);
	return sum;
}

/*
 * Is there anything that it may read. Most looks of a client that asks faster than can be
 * read ahead, or in vain, end here: without a way through his chain.
 */
static bool kvt_ahead_may(struct kvt_pool *p, const struct kvt_look *l)
{
	u32 ns_group = kvt_hot(&p->table, l->tip)->ns_group;

	lockdep_assert_held(&p->meta_lock);
	return l->due_ns > ktime_get_ns() &&
	       kvt_trust_credit(&kvt_ns_of(p, ns_group)->trust[l->guess], kvt_now_ms()) &&
	       kvt_ahead_room_all(p) >= kvt_slot_bytes(kvt_group_of(p, ns_group));
}

/* Find out which blocks it is about. Whether there are any. */
static bool kvt_ahead_collect(struct kvt_pool *p, struct kvt_ahead_run *r)
{
	const struct kvt_look *l = &r->look;

	BUILD_BUG_ON(KVT_LOOK_DOWN > KVT_LOOK_UP);
	r->nr = 0;
	r->done = 0;
	r->bytes = 0;
	spin_lock(&p->meta_lock);
	if (kvt_hold_there(&p->table, l->tip, l->gen) && kvt_ahead_may(p, l)) {
		if (l->guess == KVT_GUESS_NAMED)
			kvt_ahead_climb(p, r);
		else
			kvt_ahead_descend(p, r);
		kvt_ahead_one_tier(p, r);
	}
	spin_unlock(&p->meta_lock);
	return r->nr;
}

/* How many of those that are left. Meta lock held. */
static u32 kvt_ahead_ask(struct kvt_pool *p, struct kvt_ahead_run *r, u32 ns_group)
{
	u64 now_ns = ktime_get_ns(), max_bytes = READ_ONCE(p->looks.max_bytes), due_ns;
	u32 bytes = kvt_slot_bytes(kvt_group_of(p, ns_group));
	struct kvt_tier *t = p->tiers[r->tier];
	struct kvt_ahead_ask q = {
		.wanted = r->nr - r->done,
		.credit = kvt_trust_credit(&kvt_ns_of(p, ns_group)->trust[r->look.guess],
					   kvt_now_ms()),
		.block_bytes = bytes,
		.room_bytes = kvt_ahead_room_all(p),
		.max_bytes = max_bytes - min(max_bytes, r->bytes),
		.block_ns = kvt_cost_ns(&t->read_cost, bytes),
		.queue_ns = kvt_cost_ns(&t->read_cost, atomic64_read(&t->reads_bytes)),
		.pace_ns = r->look.pace_ns,
		.each = r->look.each,
	};

	lockdep_assert_held(&p->meta_lock);
	due_ns = r->look.due_ns;
	if (q.each)
		due_ns += r->done / q.each * q.pace_ns;
	q.due_ns = due_ns - min(due_ns, now_ns);
	return kvt_ahead_blocks(&q);
}

/* --- reading ------------------------------------------------------------------------ */

/* A place for it, if there is one that nobody else needs soon. */
static bool kvt_ahead_place(struct kvt_pool *p, struct kvt_mv *mv)
{
	struct kvt_tier *t[KVT_TIERS];
	u32 nr = kvt_tier_snapshot(p, t, true), i;
	u64 room;

	for (i = 0; i < nr; i++) {
		spin_lock(&p->meta_lock);
		room = kvt_ahead_room(p, t[i]);
		spin_unlock(&p->meta_lock);
		mv->keep = kvt_ahead_keep(p, t[i]);
		if (room >= mv->x.bytes && kvt_mv_place_mem(p, mv, t[i]))
			return true;
	}
	return false;
}

/* Claim the next blocks that may be read. How many; 0: this look is over. */
static u32 kvt_ahead_claim(struct kvt_pool *p, struct kvt_ahead_run *r)
{
	u32 nr = 0, may = 0, ns_group = 0;
	u64 bytes = 0;

	spin_lock(&p->meta_lock);
	for (; r->done < r->nr && nr < KVT_LOOK_BATCH; r->done++) {
		u32 id = r->id[r->done];
		struct kvt_hot *h = kvt_hot(&p->table, id);

		if (h->gen != r->gen[r->done] || !kvt_ahead_slow(p, id) || h->log_tier != r->tier)
			continue;
		if (!nr) {
			ns_group = h->ns_group;
			may = kvt_ahead_ask(p, r, ns_group);
		}
		bytes += kvt_slot_bytes(kvt_group_of(p, h->ns_group));
		if (nr >= may || (nr && bytes > KVT_LOOK_BATCH_BYTES))
			break;
		if (kvt_ctl_update(h, KVT_CTL_STATE | KVT_CTL_MOVING | KVT_CTL_MEM, KVT_READY, 0,
				   KVT_CTL_MOVING))
			kvt_mv_start(p, &r->mv[nr++], id);
	}
	if (nr)
		kvt_trust_spend(&kvt_ns_of(p, ns_group)->trust[r->look.guess], nr);
	spin_unlock(&p->meta_lock);
	return nr;
}

/* A block has been brought up that nobody has asked for. */
static void kvt_ahead_arrived(struct kvt_pool *p, struct kvt_ahead_run *r, struct kvt_mv *mv)
{
	struct kvt_hot *h = kvt_hot(&p->table, mv->id);
	u16 flags = KVT_HOT_AHEAD | (r->look.guess == KVT_GUESS_NEXT ? KVT_HOT_AHEAD_NEXT : 0);

	lockdep_assert_held(&p->meta_lock);
	WRITE_ONCE(h->flags, h->flags | flags);
	r->bytes += mv->x.bytes;
	atomic64_inc(&mv->x.dst->count.prefetches);
	kvt_count(p, kvt_ns_of(p, h->ns_group), KVT_CNT_PREFETCHES, 1);
}

static void kvt_ahead_finish(struct kvt_pool *p, struct kvt_ahead_run *r, u32 nr, u32 placed)
{
	struct kvt_ns *ns;
	u32 i, failed = 0;

	spin_lock(&p->meta_lock);
	/* Claimed blocks keep it. */
	ns = kvt_ns_of(p, kvt_hot(&p->table, r->mv[0].id)->ns_group);
	for (i = 0; i < nr; i++) {
		if (i >= placed)
			kvt_mv_cancel(p, &r->mv[i]);
		else if (kvt_mv_finish(p, &r->mv[i], false))
			kvt_ahead_arrived(p, r, &r->mv[i]);
		else
			failed++;
	}
	kvt_trust_refund(&ns->trust[r->look.guess], failed + nr - placed);
	spin_unlock(&p->meta_lock);
}

/* Read the next batch. Whether there may be another one. srcu held. */
static bool kvt_ahead_batch(struct kvt_pool *p, struct kvt_ahead_run *r)
{
	u32 nr = kvt_ahead_claim(p, r), placed, i;
	s64 bytes = 0;

	if (!nr)
		return false;
	for (placed = 0; placed < nr && kvt_ahead_place(p, &r->mv[placed]); placed++)
		bytes += r->mv[placed].x.bytes;
	atomic64_add(bytes, &r->mv[0].x.src->reads_bytes);
	kvt_mv_run(r->mv, placed);
	atomic64_sub(bytes, &r->mv[0].x.src->reads_bytes);
	kvt_ahead_finish(p, r, nr, placed);
	for (i = 0; i < nr; i++)
		kvt_block_wake(p, r->mv[i].id);
	return placed == nr;
}

/* Does nobody wait for reads from this tier, or is it over anyway. */
static bool kvt_ahead_idle(struct kvt_pool *p, u32 tier)
{
	int idx = srcu_read_lock(&p->srcu);
	struct kvt_tier *t = kvt_tier_at(p, tier);
	bool idle = !t || !atomic64_read(&t->reads_bytes);

	srcu_read_unlock(&p->srcu, idx);
	return idle || READ_ONCE(p->dying);
}

static void kvt_ahead_trace(struct kvt_pool *p, const struct kvt_ahead_run *r)
{
	const struct kvt_look *l = &r->look;
	const struct kvt_hot *h = kvt_hot(&p->table, l->tip);

	if (!trace_kvtier_prefetch_enabled())
		return;
	spin_lock(&p->meta_lock);
	if (kvt_hold_there(&p->table, l->tip, l->gen))
		trace_kvtier_prefetch(p->id, kvt_ns_of(p, h->ns_group)->id, h->ns_group & 15,
				      h->key, r->tier, l->guess, r->nr, r->bytes);
	spin_unlock(&p->meta_lock);
}

static void kvt_look_make(struct kvt_pool *p, struct kvt_ahead_run *r)
{
	bool more = true;
	int idx;

	if (!kvt_ahead_collect(p, r))
		return;
	while (more && !READ_ONCE(p->dying)) {
		if (!wait_event_timeout(p->looks.wait, kvt_ahead_idle(p, r->tier),
					KVT_LOOK_PATIENCE))
			break;
		idx = srcu_read_lock(&p->srcu);
		more = kvt_tier_at(p, r->tier) && kvt_ahead_batch(p, r);
		srcu_read_unlock(&p->srcu, idx);
		kvt_garbage_free(p);
	}
	kvt_ahead_trace(p, r);
}

/* --- the queue ---------------------------------------------------------------------- */

/* The one that is to be made first. Lock held. */
static u32 kvt_looks_first(const struct kvt_looks *q)
{
	u32 i, first = 0;

	lockdep_assert_held(&q->lock);
	for (i = 1; i < q->nr; i++)
		first = q->look[i].start_ns < q->look[first].start_ns ? i : first;
	return first;
}

/* Have the work run when it is time for the first. Lock held. */
static void kvt_looks_arm(struct kvt_pool *p)
{
	struct kvt_looks *q = &p->looks;
	u64 now_ns = ktime_get_ns(), start_ns;

	lockdep_assert_held(&q->lock);
	if (!q->nr || READ_ONCE(p->dying))
		return;
	start_ns = q->look[kvt_looks_first(q)].start_ns;
	mod_delayed_work(p->look_wq, &q->work,
			 start_ns > now_ns ? nsecs_to_jiffies(start_ns - now_ns) + 1 : 0);
}

/* Take the first, if it is time. Else the work comes again when it is. */
static bool kvt_looks_take(struct kvt_pool *p, struct kvt_look *l)
{
	struct kvt_looks *q = &p->looks;
	u32 first;
	bool take;

	spin_lock(&q->lock);
	first = kvt_looks_first(q);
	take = q->nr && q->look[first].start_ns <= ktime_get_ns();
	if (take) {
		*l = q->look[first];
		q->look[first] = q->look[--q->nr];
	} else {
		kvt_looks_arm(p);
	}
	spin_unlock(&q->lock);
	return take;
}

static void kvt_looks_work(struct work_struct *work)
{
	struct kvt_looks *q = container_of(to_delayed_work(work), struct kvt_looks, work);
	struct kvt_pool *p = container_of(q, struct kvt_pool, looks);
	struct kvt_ahead_run *r = kvmalloc(sizeof(*r), GFP_KERNEL);

	/* Without memory they wait for the next one. */
	while (r && !READ_ONCE(p->dying) && kvt_looks_take(p, &r->look)) {
		kvt_look_make(p, r);
		cond_resched();
	}
	kvfree(r);
}

static struct kvt_look *kvt_looks_later(struct kvt_look *a, struct kvt_look *b)
{
	return a && a->start_ns >= b->start_ns ? a : b;
}

/*
 * Where to note it: in the place of the same one, in a free one, or instead of one that
 * would be made later. What is far off is in nobody's way by that. Lock held.
 */
static struct kvt_look *kvt_looks_slot(struct kvt_looks *q, const struct kvt_look *l)
{
	struct kvt_look *of_all = NULL, *of_ns = NULL, *last;
	u32 i, mine = 0;

	lockdep_assert_held(&q->lock);
	for (i = 0; i < q->nr; i++) {
		struct kvt_look *o = &q->look[i];

		if (o->tip == l->tip && o->guess == l->guess)
			return o;
		of_all = kvt_looks_later(of_all, o);
		if (o->ns != l->ns)
			continue;
		of_ns = kvt_looks_later(of_ns, o);
		mine++;
	}
	if (q->nr < KVT_LOOKS && mine < KVT_LOOKS_OF_NS)
		return &q->look[q->nr++];
	last = mine < KVT_LOOKS_OF_NS ? of_all : of_ns;
	return last->start_ns > l->start_ns ? last : NULL;
}

/* Note a look. One that has no place is not made: it is only a guess. */
static void kvt_look_add(struct kvt_pool *p, const struct kvt_look *l)
{
	struct kvt_looks *q = &p->looks;
	struct kvt_look *slot;

	/* All clients of a pool would meet here. */
	if (!spin_trylock(&q->lock))
		return;
	slot = kvt_looks_slot(q, l);
	if (slot) {
		*slot = *l;
		kvt_looks_arm(p);
	}
	spin_unlock(&q->lock);
}

static bool kvt_looks_off(struct kvt_pool *p)
{
	return !READ_ONCE(p->looks.max_bytes);
}

/**
 * kvt_look_begin() - a call that reads begins
 * @f: caller
 */
void kvt_look_begin(struct kvt_file *f)
{
	if (kvt_looks_off(f->pool))
		return;
	kvt_pace_begin(&f->pace, ktime_get_ns());
}

/**
 * kvt_look_end() - it ends
 * @f:    caller
 * @kind: of call
 */
void kvt_look_end(struct kvt_file *f, enum kvt_pace_kind kind)
{
	if (kvt_looks_off(f->pool))
		return;
	kvt_pace_end(&f->pace, kind, ktime_get_ns());
}

/**
 * kvt_look_named() - LOOKUP has found blocks on a block tier
 * @b:     batch
 * @first: of the prefix that is there, the first of them
 * @nr:    length of the prefix
 */
void kvt_look_named(struct kvt_batch *b, u32 first, u32 nr)
{
	struct kvt_file *f = b->f;
	u32 last = min(nr, first + KVT_LOOK_UP) - 1;
	struct kvt_look l = {
		.guess = KVT_GUESS_NAMED, .tip = b->id[last], .gen = b->gen[last],
		.ns = f->ns->idx, .nr = last + 1 - first,
		.pace_ns = READ_ONCE(f->pace.pause_ns[KVT_PACE_LOOKUP]),
	};

	if (kvt_looks_off(f->pool))
		return;
	l.start_ns = ktime_get_ns();
	l.due_ns = l.start_ns + l.pace_ns;
	kvt_look_add(f->pool, &l);
}

/*
 * Is one of the next blocks not in memory. Racy: entries never go, and what is wrong with
 * the answer costs a look.
 */
static bool kvt_look_worth(struct kvt_pool *p, u32 tip)
{
	u32 left = KVT_LOOK_NEAR, id = tip, ctl;

	while (left--) {
		id = READ_ONCE(kvt_cold(&p->table, id)->first_child);
		if (!kvt_table_valid(&p->table, id))
			return false;
		ctl = kvt_ctl(kvt_hot(&p->table, id));
		if (kvt_ctl_state(ctl) != KVT_READY)
			return false;
		if (!(ctl & (KVT_CTL_MEM | KVT_CTL_MOVING)))
			return true;
	}
	return false;
}

/**
 * kvt_look_next() - all blocks of a call are in memory: what comes next
 * @b:    batch
 * @kind: of call
 */
void kvt_look_next(struct kvt_batch *b, enum kvt_pace_kind kind)
{
	struct kvt_file *f = b->f;
	struct kvt_look l = {
		.guess = KVT_GUESS_NEXT, .tip = b->id[b->nr - 1], .gen = b->gen[b->nr - 1],
		.ns = f->ns->idx, .nr = KVT_LOOK_DOWN, .each = b->nr,
		.pace_ns = READ_ONCE(f->pace.pause_ns[kind]),
	};

	if (kvt_looks_off(f->pool) || !kvt_look_worth(f->pool, l.tip))
		return;
	l.start_ns = ktime_get_ns();
	l.due_ns = l.start_ns + l.pace_ns;
	kvt_look_add(f->pool, &l);
}

/**
 * kvt_look_session() - a session's chain will be read
 * @f:        caller
 * @tip:      its last block
 * @gen:      its generation
 * @reuse_ns: time until then, 0: soon
 */
void kvt_look_session(struct kvt_file *f, u32 tip, u32 gen, u64 reuse_ns)
{
	u64 now_ns = ktime_get_ns(), early_ns;
	struct kvt_look l = {
		.guess = KVT_GUESS_NAMED, .tip = tip, .gen = gen, .ns = f->ns->idx,
		.nr = KVT_LOOK_UP, .start_ns = now_ns, .due_ns = now_ns + KVT_LOOK_SOON_NS,
	};

	if (!tip || reuse_ns > KVT_LOOK_REUSE_NS || kvt_looks_off(f->pool))
		return;
	if (reuse_ns) {
		early_ns = max_t(u64, div_u64(reuse_ns, KVT_LOOK_EARLY), KVT_LOOK_EARLY_NS);
		l.due_ns = now_ns + reuse_ns;
		l.start_ns = l.due_ns - min(early_ns, reuse_ns);
	}
	kvt_look_add(f->pool, &l);
}

/**
 * kvt_ahead_used() - a block that was brought up unasked is read
 * @p:  pool, meta lock held
 * @id: READY block with KVT_HOT_AHEAD
 */
void kvt_ahead_used(struct kvt_pool *p, u32 id)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);
	struct kvt_ns *ns = kvt_ns_of(p, h->ns_group);
	enum kvt_guess guess = h->flags & KVT_HOT_AHEAD_NEXT ? KVT_GUESS_NEXT : KVT_GUESS_NAMED;

	lockdep_assert_held(&p->meta_lock);
	WRITE_ONCE(h->flags, h->flags & ~(KVT_HOT_AHEAD | KVT_HOT_AHEAD_NEXT));
	atomic64_inc(&p->tiers[kvt_block_tier(h, kvt_ctl(h))]->count.prefetches_used);
	kvt_count(p, ns, KVT_CNT_PREFETCHES_USED, 1);
	kvt_trust_credit(&ns->trust[guess], kvt_now_ms());
	kvt_trust_earn(&ns->trust[guess]);
}

/**
 * kvt_looks_wake() - reads that somebody waited for are over
 * @p: pool; any context
 */
void kvt_looks_wake(struct kvt_pool *p)
{
	if (wq_has_sleeper(&p->looks.wait))
		wake_up_all(&p->looks.wait);
}

void kvt_looks_init(struct kvt_pool *p)
{
	spin_lock_init(&p->looks.lock);
	init_waitqueue_head(&p->looks.wait);
	INIT_DELAYED_WORK(&p->looks.work, kvt_looks_work);
	/* Until somebody asks for it: it is new. */
	p->looks.max_bytes = 0;
}

/**
 * kvt_looks_stop() - no more looks are made
 * @p: pool, dying, without files
 */
void kvt_looks_stop(struct kvt_pool *p)
{
	kvt_looks_wake(p);
	cancel_delayed_work_sync(&p->looks.work);
}
