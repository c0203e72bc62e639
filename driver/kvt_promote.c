// SPDX-License-Identifier: GPL-2.0
/*
 * Upwards: bringing blocks into memory, for somebody or ahead of need.
 *
 * A promotion is a batch of claimed blocks on a work item of its own, so that who
 * asked for it can wait killably, with a timeout, or not at all. Blocks that
 * arrive are leased by the promotion itself until it is done and who asked has given
 * it back, whichever comes last: nobody can push them out again before he has looked.
 *
 * Blocks are placed in the order given, head of the chain first; when there is no
 * room for one there is none for the rest.
 *
 * One *ahead* of need (PREFETCH) gives way: before each of its batches, which are small, it
 * waits until nobody has asked for what is still to be read from its tier. For two seconds in
 * all from when it was asked for, since its blocks are claimed: nobody else can move them, and
 * their ends wait. And not any more once somebody waits for a block of such a promotion of its
 * namespace, which may be one of its own (kvt_promo_hurry()). While it waits it leases nothing;
 * while it reads it does, or each of its batches would push out the one before.
 */
#include <linux/slab.h>

#include "kvt_internal.h"

#define KVT_PROMO_ROOM_NS	(2ull * NSEC_PER_SEC)
#define KVT_PROMO_WORKERS	256	/* of a queue, at a time */
#define KVT_PROMO_KILL_WAIT	(2 * HZ)	/* for a batch, until its sources can go */
#define KVT_PROMO_PATIENCE	(2 * HZ)	/* with what others have asked for */
#define KVT_PROMO_AHEAD_BYTES	(4u << 20)	/* a batch of more than one block, ahead of need */

struct kvt_promo_block {
	u32 id;
	u32 gen;
	int err;
	bool leased;
};

/*
 * struct kvt_promo - a promotion under way
 * @refs:   the caller's and the worker's
 * @claims: the same, on the leases; the worker's goes before @done is set
 * @ahead:  it gives way to those that are not
 * @started: jiffies
 * @patience: jiffies for which it still does. The worker's
 * @hurry:  its namespace's when it began: it does as long as that is the same
 * @nr:     blocks
 * @done:   @block[].err and .leased are final
 */
struct kvt_promo {
	struct work_struct work;
	struct kvt_pool *pool;
	struct kref refs;
	atomic_t claims;
	wait_queue_head_t wait;
	bool ahead;
	unsigned long started;
	long patience;
	u32 hurry;
	bool done;
	u32 nr;
	u32 max;
	struct kvt_promo_block block[] __counted_by(max);
};

static void kvt_promo_work(struct work_struct *work);

/**
 * kvt_promo_prepare() - have workers for what comes up
 * @p:    pool; tier_lock held, or private
 * @tier: number of a block tier that is about to be attached, or KVT_TIERS: what comes from
 *        several of them
 *
 * There are only so many workers at a time to a queue, and a device that does not answer keeps all
 * that are for it: so each tier has its own. What may have to wait for others, ahead of need, has
 * its own as well. They stay until kvt_promo_end(): the next tier of the number has them, too.
 * Return: 0 or -ENOMEM.
 */
int kvt_promo_prepare(struct kvt_pool *p, u32 tier)
{
	struct workqueue_struct **wq = p->up_wq[tier];

	wq[0] = wq[0] ?: alloc_workqueue("kvtier%u-up%u", WQ_UNBOUND, KVT_PROMO_WORKERS, p->id, tier);
	wq[1] = wq[1] ?: alloc_workqueue("kvtier%u-ahead%u", WQ_UNBOUND, KVT_PROMO_WORKERS, p->id, tier);
	return wq[0] && wq[1] ? 0 : -ENOMEM;
}

/**
 * kvt_promo_flush() - wait for all promotions
 * @p: pool that nobody can ask for anything any more
 */
void kvt_promo_flush(struct kvt_pool *p)
{
	u32 i;

	for (i = 0; i <= KVT_TIERS; i++) {
		if (p->up_wq[i][0])
			flush_workqueue(p->up_wq[i][0]);
		if (p->up_wq[i][1])
			flush_workqueue(p->up_wq[i][1]);
	}
}

/**
 * kvt_promo_end() - let the workers go
 * @p: pool without promotions; maybe without workers
 */
void kvt_promo_end(struct kvt_pool *p)
{
	u32 i;

	for (i = 0; i <= KVT_TIERS; i++) {
		if (p->up_wq[i][0])
			destroy_workqueue(p->up_wq[i][0]);
		if (p->up_wq[i][1])
			destroy_workqueue(p->up_wq[i][1]);
	}
}

/**
 * kvt_promo_alloc() - start a promotion
 * @p:     pool
 * @max:   most blocks
 * @ahead: of need: it gives way
 * Return: promotion, given back with kvt_promo_put(), or NULL.
 */
struct kvt_promo *kvt_promo_alloc(struct kvt_pool *p, u32 max, bool ahead)
{
	struct kvt_promo *pr;

	kvt_assert_lingering(p);
	pr = kvzalloc(struct_size(pr, block, max), GFP_KERNEL_ACCOUNT);
	if (!pr)
		return NULL;
	INIT_WORK(&pr->work, kvt_promo_work);
	pr->pool = p;
	kref_init(&pr->refs);
	atomic_set(&pr->claims, 2);
	init_waitqueue_head(&pr->wait);
	pr->max = max;
	pr->ahead = ahead;
	return pr;
}

/* Of a block's namespace, and a few others'. */
static u32 *kvt_promo_hurry_of(struct kvt_pool *p, u32 id)
{
	return &p->hurry[(kvt_hot(&p->table, id)->ns_group >> KVT_NS_SHIFT) % KVT_WAITQS];
}

u32 kvt_promo_nr(const struct kvt_promo *pr)
{
	return pr->nr;
}

/* Take a block. One that is to give way is seen to do so before anybody sees that it is taken. */
static bool kvt_promo_claim(struct kvt_promo *pr, struct kvt_hot *h)
{
	struct kvt_pool *p = pr->pool;
	bool claimed;
	u32 flags;

	if (!pr->ahead)
		return kvt_ctl_update(h, KVT_CTL_STATE | KVT_CTL_MOVING | KVT_CTL_MEM, KVT_READY,
				      0, KVT_CTL_MOVING);
	spin_lock(&p->meta_lock);
	flags = h->flags;
	WRITE_ONCE(h->flags, flags | KVT_HOT_LATER);
	claimed = kvt_ctl_update(h, KVT_CTL_STATE | KVT_CTL_MOVING | KVT_CTL_MEM, KVT_READY, 0,
				 KVT_CTL_MOVING);
	if (!claimed)
		WRITE_ONCE(h->flags, flags);
	spin_unlock(&p->meta_lock);
	return claimed;
}

/**
 * kvt_promo_add() - add a block that is on a block tier only
 * @pr:  promotion, not started
 * @id:  block
 * @gen: its generation
 * Return: whether it could be claimed; if not, somebody else is moving it or it
 * has moved.
 */
bool kvt_promo_add(struct kvt_promo *pr, u32 id, u32 gen)
{
	struct kvt_hot *h = kvt_hot(&pr->pool->table, id);
	struct kvt_promo_block *b;

	if (pr->nr == pr->max || !kvt_promo_claim(pr, h))
		return false;
	if (h->gen != gen) {
		/* Another block by now; nobody can have relied on the claim. */
		spin_lock(&pr->pool->meta_lock);
		WRITE_ONCE(h->flags, h->flags & ~KVT_HOT_LATER);
		kvt_mv_stays(pr->pool, id);
		spin_unlock(&pr->pool->meta_lock);
		kvt_block_wake(pr->pool, id);
		return false;
	}
	if (!pr->nr)
		pr->hurry = READ_ONCE(*kvt_promo_hurry_of(pr->pool, id));
	b = &pr->block[pr->nr++];
	b->id = id;
	b->gen = gen;
	return true;
}

static void kvt_promo_release(struct kref *refs)
{
	kvfree(container_of(refs, struct kvt_promo, refs));
}

/* Give back what it leases: the worker while it is not done, or whose claim is the last. */
static void kvt_promo_unlease(struct kvt_promo *pr)
{
	u32 i;

	for (i = 0; i < pr->nr; i++) {
		if (pr->block[i].leased)
			kvt_lease_drop(pr->pool, pr->block[i].id);
		pr->block[i].leased = false;
	}
}

static void kvt_promo_unclaim(struct kvt_promo *pr)
{
	if (atomic_dec_and_test(&pr->claims))
		kvt_promo_unlease(pr);
}

/* Give the caller's reference back, and with it what the promotion leases for him. */
void kvt_promo_put(struct kvt_promo *pr)
{
	kvt_promo_unclaim(pr);
	kref_put(&pr->refs, kvt_promo_release);
}

/* What others wait behind has become more, or less. */
static void kvt_promo_count(const struct kvt_promo *pr, struct kvt_tier *t, s64 bytes)
{
	atomic64_add(bytes, &t->reads_bytes);
	if (!pr->ahead)
		atomic64_add(bytes, &t->asked_bytes);
}

/* Where it is to run. Its blocks are claimed: they are where they are. */
static struct workqueue_struct *kvt_promo_queue(const struct kvt_promo *pr)
{
	struct kvt_table *t = &pr->pool->table;
	u32 tier = kvt_hot(t, pr->block[0].id)->log_tier, i;

	for (i = 1; i < pr->nr && tier < KVT_TIERS; i++) {
		if (kvt_hot(t, pr->block[i].id)->log_tier != tier)
			tier = KVT_TIERS;
	}
	return pr->pool->up_wq[tier][pr->ahead];
}

/**
 * kvt_promo_start() - let it run
 * @pr: promotion with at least one block; the caller keeps his reference
 */
void kvt_promo_start(struct kvt_promo *pr)
{
	struct kvt_pool *p = pr->pool;
	u32 i;

	/* What gives way does not count before it is read. */
	for (i = 0; !pr->ahead && i < pr->nr; i++) {
		const struct kvt_hot *h = kvt_hot(&p->table, pr->block[i].id);

		kvt_promo_count(pr, p->tiers[h->log_tier],
				kvt_slot_bytes(kvt_group_of(p, h->ns_group)));
	}
	pr->started = jiffies;
	kref_get(&pr->refs);
	queue_work(kvt_promo_queue(pr), &pr->work);
}

/* Are its results final. */
bool kvt_promo_done(const struct kvt_promo *pr)
{
	/* Pairs with kvt_promo_work(). */
	return smp_load_acquire(&pr->done);
}

/**
 * kvt_promo_wait() - wait until it is done
 * @pr:          started promotion; no srcu held
 * @deadline_ns: see kvt_deadline()
 * Return: 0, -ETIMEDOUT, or -EINTR on a fatal signal.
 */
int kvt_promo_wait(struct kvt_promo *pr, u64 deadline_ns)
{
	long ret = wait_event_killable_timeout(pr->wait, kvt_promo_done(pr),
					       kvt_deadline_jiffies(deadline_ns));

	return ret > 0 ? 0 : ret < 0 ? -EINTR : -ETIMEDOUT;
}

/**
 * kvt_promo_error() - how one block fared
 * @pr:  done
 * @id:  block
 * @gen: its generation
 * Return: 0 if it arrived or was not part of it, else -ENOSPC, -EIO, -EBADMSG.
 */
int kvt_promo_error(const struct kvt_promo *pr, u32 id, u32 gen)
{
	u32 i;

	for (i = 0; i < pr->nr; i++) {
		if (pr->block[i].id == id && pr->block[i].gen == gen)
			return pr->block[i].err;
	}
	return 0;
}

/* Is this block part of it. */
bool kvt_promo_has(const struct kvt_promo *pr, u32 id, u32 gen)
{
	u32 i;

	for (i = 0; i < pr->nr; i++) {
		if (pr->block[i].id == id && pr->block[i].gen == gen)
			return true;
	}
	return false;
}

/* How many blocks of a promotion that is done did not arrive. */
u32 kvt_promo_failed(const struct kvt_promo *pr)
{
	u32 i, n = 0;

	for (i = 0; i < pr->nr; i++)
		n += pr->block[i].err != 0;
	return n;
}

/* Place one block on the fastest memory tier that has, or makes, room. */
static int kvt_promo_place(struct kvt_pool *p, struct kvt_mv *mv)
{
	u32 ns_group = kvt_hot(&p->table, mv->id)->ns_group, nr, i;
	struct kvt_want want = {
		.ns = kvt_ns_of(p, ns_group),
		.group = ns_group & 15,
		.region = KVT_NO_REGION,
	};
	u64 deadline = kvt_deadline(KVT_PROMO_ROOM_NS);
	struct kvt_tier *t[KVT_TIERS];
	int err;

	for (;;) {
		nr = kvt_tier_snapshot(p, t, true);
		for (i = 0; i < nr; i++) {
			if (t[i]->state == KVTIER_TIER_ONLINE &&
			    kvt_mv_place_mem(p, mv, t[i]))
				return 0;
		}
		err = kvt_room_wait(p, &want, deadline);
		if (err)
			return -ENOSPC;
	}
}

/* Let those that were run arrive. */
static void kvt_promo_finish(struct kvt_promo *pr, u32 first, struct kvt_mv *mv, u32 nr)
{
	unsigned long end = jiffies + KVT_PROMO_KILL_WAIT;
	struct kvt_pool *p = pr->pool;
	u32 i;

	for (i = 0; i < nr; i++) {
		struct kvt_promo_block *b = &pr->block[first + i];

		/* A short lack of room in the log is not the caller's to see. */
		kvt_mv_wait_kill(p, &mv[i], end);
		spin_lock(&p->meta_lock);
		if (!kvt_mv_finish(p, &mv[i], true))
			b->err = mv[i].x.err ?: -ENOENT;
		b->leased = mv[i].leased;
		spin_unlock(&p->meta_lock);
	}
}

static void kvt_promo_batch(struct kvt_promo *pr, u32 first, u32 nr, struct kvt_mv *mv,
			    bool *full)
{
	struct kvt_pool *p = pr->pool;
	u32 i, placed = 0;

	spin_lock(&p->meta_lock);
	for (i = 0; i < nr; i++) {
		struct kvt_hot *h = kvt_hot(&p->table, pr->block[first + i].id);

		WRITE_ONCE(h->flags, h->flags & ~KVT_HOT_LATER);
		kvt_mv_start(p, &mv[i], pr->block[first + i].id);
	}
	spin_unlock(&p->meta_lock);
	for (i = 0; pr->ahead && i < nr; i++)
		kvt_promo_count(pr, mv[i].x.src, mv[i].x.bytes);
	for (i = 0; i < nr && !*full; i++) {
		*full = kvt_promo_place(p, &mv[i]) != 0;
		placed += !*full;
	}
	kvt_mv_run(mv, placed);
	kvt_promo_finish(pr, first, mv, placed);
	spin_lock(&p->meta_lock);
	for (i = placed; i < nr; i++) {
		pr->block[first + i].err = -ENOSPC;
		kvt_mv_cancel(p, &mv[i]);
	}
	spin_unlock(&p->meta_lock);
	for (i = 0; i < nr; i++) {
		kvt_promo_count(pr, mv[i].x.src, -(s64)mv[i].x.bytes);
		kvt_block_wake(p, pr->block[first + i].id);
	}
	kvt_looks_wake(p);
}

/**
 * kvt_promo_hurry() - somebody waits for a block that is on its way
 * @p:  pool; any context
 * @id: block
 *
 * If that gives way: which one has it cannot be seen, so none of its namespace's, or of others that
 * share its counter, that have begun does any more.
 */
void kvt_promo_hurry(struct kvt_pool *p, u32 id)
{
	u32 *hurry;

	if (!(READ_ONCE(kvt_hot(&p->table, id)->flags) & KVT_HOT_LATER))
		return;
	hurry = kvt_promo_hurry_of(p, id);
	/* If two do so at once it is enough that it changes. */
	WRITE_ONCE(*hurry, READ_ONCE(*hurry) + 1);
	kvt_looks_wake(p);
}

/* Has nobody asked for anything else on the tiers of these blocks, or is there a hurry. */
static bool kvt_promo_may_go(const struct kvt_promo *pr, u32 first, u32 nr)
{
	struct kvt_pool *p = pr->pool;
	bool asked = false;
	u32 i;
	int idx;

	if (READ_ONCE(p->dying) ||
	    READ_ONCE(*kvt_promo_hurry_of(p, pr->block[first].id)) != pr->hurry)
		return true;
	idx = srcu_read_lock(&p->srcu);
	/* They are claimed: their entries stay what they are. */
	for (i = first; i < first + nr && !asked; i++) {
		struct kvt_tier *t = kvt_tier_at(p, kvt_hot(&p->table, pr->block[i].id)->log_tier);

		/* A tier that is to be emptied waits for them. */
		asked = t && READ_ONCE(t->state) == KVTIER_TIER_ONLINE &&
			atomic64_read(&t->asked_bytes);
	}
	srcu_read_unlock(&p->srcu, idx);
	return !asked;
}

/*
 * How many blocks from this one on are a batch; waits until they may be read. @full: there is no
 * room for them. No srcu held.
 */
static u32 kvt_promo_step(struct kvt_promo *pr, u32 first, u32 most, bool full)
{
	struct kvt_pool *p = pr->pool;
	u32 nr = min(most, pr->nr - first), bytes;

	if (!pr->ahead || full)
		return nr;
	bytes = kvt_slot_bytes(kvt_group_of(p, kvt_hot(&p->table, pr->block[first].id)->ns_group));
	nr = clamp(KVT_PROMO_AHEAD_BYTES / bytes, 1u, nr);
	if (pr->patience && !kvt_promo_may_go(pr, first, nr)) {
		/* What is there already is nobody's memory meanwhile. */
		kvt_promo_unlease(pr);
		pr->patience = wait_event_timeout(p->looks.wait, kvt_promo_may_go(pr, first, nr),
						  pr->patience);
	}
	return nr;
}

static void kvt_promo_run(struct kvt_promo *pr)
{
	struct kvt_mv *mv = kvmalloc_array(KVT_MOVE_BATCH, sizeof(*mv), GFP_KERNEL), one;
	unsigned long waited = jiffies - pr->started;
	struct kvt_pool *p = pr->pool;
	bool full = false;
	u32 step, i;
	int idx;

	/* Others of the kind may have had all workers for a while. */
	pr->patience = waited < KVT_PROMO_PATIENCE ? KVT_PROMO_PATIENCE - waited : 0;
	for (i = 0; i < pr->nr; i += step) {
		step = kvt_promo_step(pr, i, mv ? KVT_MOVE_BATCH : 1, full);
		/* Each may wait for room; those to come keep the tiers they are on. */
		idx = srcu_read_lock(&p->srcu);
		kvt_promo_batch(pr, i, step, mv ?: &one, &full);
		srcu_read_unlock(&p->srcu, idx);
	}
	kvfree(mv);
}

static void kvt_promo_work(struct work_struct *work)
{
	struct kvt_promo *pr = container_of(work, struct kvt_promo, work);
	struct kvt_pool *p = pr->pool;

	kvt_promo_run(pr);
	kvt_garbage_free(p);
	kvt_promo_unclaim(pr);
	/* Results are final: pairs with kvt_promo_done(). */
	smp_store_release(&pr->done, true);
	wake_up_all(&pr->wait);
	kvt_async_wake_promo(p, pr);
	kref_put(&pr->refs, kvt_promo_release);
	kvt_reclaim_kick(p);
}

/**
 * kvt_block_settled() - is a block neither being filled nor between places
 * @p:   pool; any context
 * @id:  valid id
 * @gen: its generation; a block that has gone has settled
 */
bool kvt_block_settled(struct kvt_pool *p, u32 id, u32 gen)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);
	u32 ctl = kvt_ctl(h);

	if (READ_ONCE(h->gen) != gen)
		return true;
	switch (kvt_ctl_state(ctl)) {
	case KVT_FILLING:
		return false;
	case KVT_READY:
		return (ctl & KVT_CTL_MEM) || !(ctl & KVT_CTL_MOVING);
	default:
		return true;
	}
}

/**
 * kvt_block_wait() - wait until a block is neither being filled nor between places
 * @p:           pool; no srcu held
 * @id:          valid id
 * @gen:         its generation
 * @deadline_ns: see kvt_deadline()
 * Return: 0, -ETIMEDOUT, or -EINTR on a fatal signal.
 */
int kvt_block_wait(struct kvt_pool *p, u32 id, u32 gen, u64 deadline_ns)
{
	long ret;

	if (kvt_ctl(kvt_hot(&p->table, id)) & KVT_CTL_MOVING)
		kvt_promo_hurry(p, id);
	ret = wait_event_killable_timeout(*kvt_block_wq(p, id), kvt_block_settled(p, id, gen),
					  kvt_deadline_jiffies(deadline_ns));
	return ret > 0 ? 0 : ret < 0 ? -EINTR : -ETIMEDOUT;
}
