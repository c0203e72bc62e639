// SPDX-License-Identifier: GPL-2.0
/*
 * Scrub: reads what block tiers hold and verifies it, in the background.
 *
 * One work for a pool. Tier by tier, segment by segment it looks for blocks that are
 * there, reads each in rounds into pages of its own, and compares the checksum. It holds
 * nothing while it reads: afterwards it looks whether the block is still at that address,
 * in the same life of the segment; if so it was there all the time, because an address
 * is used once in a life. Only then is a verdict passed. So nobody ever waits for a
 * scrub, and a block that goes, moves or is dropped meanwhile is no concern of it.
 *
 * What is wrong becomes a miss, as if somebody had asked for it; see kvt_faults.c. A
 * block that somebody else has claimed is left to him: he reads it himself. After
 * KVT_SCRUB_ERRORS_MAX blocks in a row that cannot be read, it is the device that fails
 * and not the blocks: the rest of that tier is left alone.
 *
 * SRCU is held for a round at most, and never while it waits for its rate: a tier that
 * is being detached waits for one read.
 */
#include <linux/math64.h>
#include <linux/slab.h>

#include "kvt_internal.h"
#include "kvt_mlog.h"
#include "kvt_pages.h"
#include "kvt_trace.h"

#define KVT_SCRUB_PAGES		256u	/* in a round */
#define KVT_SCRUB_STEP		256u	/* ids looked at under one hold of the meta lock */
#define KVT_SCRUB_ERRORS_MAX	16u
#define KVT_SCRUB_BURST_NS	(100 * NSEC_PER_MSEC)

/**
 * struct kvt_scrub_run - one pass
 * @s:      what is to be seen of it
 * @p:      pool
 * @tier:   id of the tier under way
 * @cookie: of its member: another one by now has another
 * @seg:    segment under way
 * @life:   of that
 * @pos:    next of its ids
 * @failed: blocks in a row that could not be read
 * @next_ns: no read before this
 * @pages:  to read into
 * @nr_pages: of them, whole units
 * @io:     a read
 * @done:   it has ended
 * @err:    with this
 */
struct kvt_scrub_run {
	struct kvt_pool *p;
	struct kvt_scrub *s;
	u32 tier;
	u64 cookie;
	u32 seg;
	u64 life;
	u32 pos;
	u32 failed;
	u64 next_ns;
	struct page *pages[KVT_SCRUB_PAGES];
	u32 nr_pages;
	struct kvt_bio_xfer io;
	struct completion done;
	int err;
};

/* A block where it was found. */
struct kvt_scrub_block {
	u32 id;
	u32 gen;
	u32 unit;
	u32 bytes;
	u32 csum;
};

static bool kvt_scrub_stopping(const struct kvt_scrub_run *r)
{
	return READ_ONCE(r->s->stop);
}

/* The tier under way; srcu held. NULL: it has gone, or all is to end. */
static struct kvt_tier *kvt_scrub_find(struct kvt_scrub_run *r)
{
	struct kvt_tier *t = kvt_scrub_stopping(r) ? NULL : kvt_tier_at(r->p, r->tier);

	return t && !t->ops->is_mem && t->mlog->cookie == r->cookie &&
	       READ_ONCE(t->state) != KVTIER_TIER_FAILED ? t : NULL;
}

/* Is it still there, in the same life of the segment. Meta lock held. */
static bool kvt_scrub_there(struct kvt_scrub_run *r, struct kvt_tier *t,
			    const struct kvt_scrub_block *b)
{
	const struct kvt_hot *h = kvt_hot(&r->p->table, b->id);
	u32 ctl = kvt_ctl(h);

	lockdep_assert_held(&r->p->meta_lock);
	return h->gen == b->gen && kvt_ctl_state(ctl) == KVT_READY && (ctl & KVT_CTL_LOG) &&
	       h->log_tier == t->id && h->log_unit == b->unit &&
	       t->mlog->w.segs[r->seg].life == r->life;
}

/* Describe the id if it is a block of this segment. Meta lock held. */
static bool kvt_scrub_look(struct kvt_scrub_run *r, struct kvt_tier *t, u32 id,
			   struct kvt_scrub_block *b)
{
	struct kvt_hot *h = kvt_hot(&r->p->table, id);

	lockdep_assert_held(&r->p->meta_lock);
	b->id = id;
	b->gen = h->gen;
	b->unit = h->log_unit;
	if (!kvt_scrub_there(r, t, b) || kvt_log_seg_of(&t->log, h->log_unit) != r->seg)
		return false;
	b->bytes = kvt_slot_bytes(kvt_group_of(r->p, h->ns_group));
	b->csum = kvt_cold(&r->p->table, id)->csum;
	return true;
}

/*
 * The next block of the segment under way. 0: that was all of the segment; -EAGAIN:
 * none yet. A segment that is opened anew meanwhile is done with.
 */
static int kvt_scrub_step(struct kvt_scrub_run *r, struct kvt_tier *t,
			  struct kvt_scrub_block *b)
{
	const struct kvt_seg *s = &t->log.segs[r->seg];
	int found = -EAGAIN;
	u32 end;

	spin_lock(&r->p->meta_lock);
	if (!r->pos)
		r->life = t->mlog->w.segs[r->seg].life;
	if (!s->ids || t->mlog->w.segs[r->seg].life != r->life || r->pos >= s->nr_ids) {
		spin_unlock(&r->p->meta_lock);
		return 0;
	}
	end = min(s->nr_ids, r->pos + KVT_SCRUB_STEP);
	while (found < 0 && r->pos < end) {
		if (kvt_scrub_look(r, t, s->ids[r->pos++], b))
			found = 1;
	}
	spin_unlock(&r->p->meta_lock);
	return found;
}

/* The next block of the tier under way. */
static bool kvt_scrub_next(struct kvt_scrub_run *r, struct kvt_scrub_block *b)
{
	int ret = -EAGAIN, idx;

	while (ret <= 0) {
		struct kvt_tier *t;

		idx = srcu_read_lock(&r->p->srcu);
		t = kvt_scrub_find(r);
		ret = t && r->seg < t->nr_segs ? kvt_scrub_step(r, t, b) : -ENOENT;
		srcu_read_unlock(&r->p->srcu, idx);
		if (ret == -ENOENT)
			return false;
		if (!ret) {
			r->seg++;
			r->pos = 0;
		}
		cond_resched();
	}
	return true;
}

/* Any context. */
static void kvt_scrub_io_done(struct kvt_bio_xfer *x, int err)
{
	struct kvt_scrub_run *r = container_of(x, struct kvt_scrub_run, io);

	r->err = err ? -EIO : 0;
	complete(&r->done);
}

static int kvt_scrub_read(struct kvt_scrub_run *r, struct kvt_tier *t, u32 unit, u32 nr)
{
	r->io = (struct kvt_bio_xfer) {
		.pages = r->pages,
		.nr_pages = nr,
		.unit = unit,
		.done = kvt_scrub_io_done,
	};
	reinit_completion(&r->done);
	t->ops->submit(t, &r->io);
	wait_for_completion_io(&r->done);
	return r->err;
}

/* Wait until so much more may be read. */
static void kvt_scrub_pace(struct kvt_scrub_run *r, u32 bytes)
{
	u64 now = ktime_get_ns(), wait;

	if (!r->s->rate_bytes)
		return;
	/* What was missed is not made up for, but for a moment's worth. */
	r->next_ns = max(r->next_ns, now - KVT_SCRUB_BURST_NS) +
		     div64_u64((u64)bytes * NSEC_PER_SEC, r->s->rate_bytes);
	wait = r->next_ns > now ? nsecs_to_jiffies64(r->next_ns - now) : 0;
	if (wait)
		wait_event_idle_timeout(r->s->wait, kvt_scrub_stopping(r),
					min_t(u64, wait, MAX_JIFFY_OFFSET));
}

/* Pages @at and on of a block, @nr of them. As kvt_scrub_verify(). */
static int kvt_scrub_round(struct kvt_scrub_run *r, const struct kvt_scrub_block *b, u32 at,
			   u32 nr)
{
	int idx = srcu_read_lock(&r->p->srcu), err = -ENOENT;
	struct kvt_tier *t = kvt_scrub_find(r);

	if (t)
		err = kvt_scrub_read(r, t, b->unit + (at << PAGE_SHIFT) / t->unit_bytes, nr);
	srcu_read_unlock(&r->p->srcu, idx);
	return err;
}

/* 0, -EIO, -EBADMSG; -ENOENT: the tier has gone, or all is to end. */
static int kvt_scrub_verify(struct kvt_scrub_run *r, const struct kvt_scrub_block *b)
{
	u32 nr = b->bytes >> PAGE_SHIFT, at, n, i;
	struct kvt_payload_sum sum;
	int err = 0;

	kvt_payload_sum_start(&sum);
	for (at = 0; at < nr && !err; at += n) {
		n = min(r->nr_pages, nr - at);
		err = kvt_scrub_round(r, b, at, n);
		if (err == -ENOENT)
			return err;
		for (i = 0; i < n && !err; i++)
			kvt_payload_sum_add(&sum, page_address(r->pages[i]), PAGE_SIZE);
		WRITE_ONCE(r->s->bytes, r->s->bytes + ((u64)n << PAGE_SHIFT));
		cond_resched();
		kvt_scrub_pace(r, n << PAGE_SHIFT);
	}
	if (err)
		return err;
	return kvt_payload_sum_end(&sum) == b->csum ? 0 : -EBADMSG;
}

/* Is it for the scrub to act on, or does somebody else move it. Meta lock held. */
static bool kvt_scrub_claim(struct kvt_hot *h)
{
	u32 ctl = kvt_ctl(h);

	/* A copy may be given up whoever moves the block: nobody reads it for that. */
	return ctl & KVT_CTL_MEM || kvt_move_try(h);
}

/* What was claimed is a miss; one that is in memory, too, is not. Meta lock held. */
static void kvt_scrub_drop(struct kvt_pool *p, u32 id)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);

	lockdep_assert_held(&p->meta_lock);
	if (kvt_ctl(h) & KVT_CTL_MEM) {
		kvt_copy_lost(p, id);
		return;
	}
	kvt_ctl_update(h, 0, 0, KVT_CTL_MOVING, 0);
	kvt_block_lose(p, id, KVT_WHY_IO);
	kvt_block_wake(p, id);
}

/* What was found out about a block takes effect, if it is still there. */
static void kvt_scrub_judge(struct kvt_scrub_run *r, const struct kvt_scrub_block *b, int err)
{
	int idx = srcu_read_lock(&r->p->srcu);
	struct kvt_tier *t = kvt_scrub_find(r);
	struct kvt_scrub *s = r->s;

	spin_lock(&r->p->meta_lock);
	if (t && kvt_scrub_there(r, t, b) && kvt_scrub_claim(kvt_hot(&r->p->table, b->id))) {
		kvt_tier_fault(t, err, false);
		kvt_block_fault(r->p, b->id, t, b->unit, err);
		kvt_scrub_drop(r->p, b->id);
		if (err == -EIO)
			WRITE_ONCE(s->read_errors, s->read_errors + 1);
		else
			WRITE_ONCE(s->checksum_errors, s->checksum_errors + 1);
	}
	spin_unlock(&r->p->meta_lock);
	srcu_read_unlock(&r->p->srcu, idx);
	kvt_garbage_free(r->p);
}

/* Whether the tier is worth going on with. */
static bool kvt_scrub_block(struct kvt_scrub_run *r, const struct kvt_scrub_block *b)
{
	int err = kvt_scrub_verify(r, b);

	if (err == -ENOENT)
		return true;
	if (err)
		kvt_scrub_judge(r, b, err);
	WRITE_ONCE(r->s->blocks, r->s->blocks + 1);
	r->failed = err == -EIO ? r->failed + 1 : 0;
	return r->failed < KVT_SCRUB_ERRORS_MAX;
}

/* Whether it came to the end of the tier. */
static bool kvt_scrub_tier(struct kvt_scrub_run *r, u32 id)
{
	struct kvt_scrub_block b;
	struct kvt_tier *t;
	int idx = srcu_read_lock(&r->p->srcu);

	t = kvt_tier_at(r->p, id);
	r->cookie = t && !t->ops->is_mem ? t->mlog->cookie : 0;
	srcu_read_unlock(&r->p->srcu, idx);
	r->tier = id;
	r->seg = 0;
	r->pos = 0;
	r->failed = 0;
	while (r->cookie && kvt_scrub_next(r, &b)) {
		if (!kvt_scrub_block(r, &b)) {
			pr_warn("kvtier%u: scrub: tier %u cannot be read, giving it up\n",
				r->p->id, id);
			return false;
		}
	}
	return true;
}

/* Whole units, or what one of the largest takes at least. */
static bool kvt_scrub_alloc(struct kvt_scrub_run *r)
{
	u32 unit = KVT_UNIT_BYTES_MAX >> PAGE_SHIFT;

	for (; r->nr_pages < KVT_SCRUB_PAGES; r->nr_pages++) {
		r->pages[r->nr_pages] = kvt_page_alloc(GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN);
		if (!r->pages[r->nr_pages])
			break;
	}
	while (r->nr_pages % unit)
		kvt_page_free(r->pages[--r->nr_pages]);
	return r->nr_pages;
}

static void kvt_scrub_free(struct kvt_scrub_run *r)
{
	while (r->nr_pages)
		kvt_page_free(r->pages[--r->nr_pages]);
	kvfree(r);
}

static enum kvt_scrub_state kvt_scrub_run(struct kvt_scrub_run *r)
{
	bool whole = true;
	u32 id;

	for (id = 0; id < KVT_TIERS; id++)
		whole &= kvt_scrub_tier(r, id);
	if (kvt_scrub_stopping(r))
		return KVT_SCRUB_STOPPED;
	return whole ? KVT_SCRUB_DONE : KVT_SCRUB_FAILED;
}

/**
 * kvt_scrub_work() - one scrub from beginning to end
 * @work: of a pool
 */
void kvt_scrub_work(struct work_struct *work)
{
	struct kvt_scrub *s = container_of(work, struct kvt_scrub, work);
	enum kvt_scrub_state state = KVT_SCRUB_FAILED;
	struct kvt_scrub_run *r = kvzalloc(sizeof(*r), GFP_KERNEL);

	if (r) {
		r->p = container_of(s, struct kvt_pool, scrub);
		r->s = s;
		init_completion(&r->done);
		if (kvt_scrub_alloc(r))
			state = kvt_scrub_run(r);
		kvt_scrub_free(r);
	}
	/* Pairs with kvt_scrub_running(): what was counted is final. */
	smp_store_release(&s->state, state);
	wake_up_all(&s->wait);
}

static bool kvt_scrub_running(struct kvt_scrub *s)
{
	/* Pairs with kvt_scrub_work(). */
	return smp_load_acquire(&s->state) == KVT_SCRUB_RUNNING;
}

static u64 kvt_scrub_total(struct kvt_pool *p)
{
	struct kvt_tier *t[KVT_TIERS];
	int idx = srcu_read_lock(&p->srcu);
	u32 nr = kvt_tier_snapshot(p, t, false);
	u64 sum = 0;

	while (nr--)
		sum += t[nr]->ops->is_mem ? 0 :
		       (u64)READ_ONCE(t[nr]->log.live_units) * t[nr]->geo.unit_bytes;
	srcu_read_unlock(&p->srcu, idx);
	return sum;
}

/**
 * kvt_scrub_start() - begin a scrub
 * @p:          pool, kept by the caller
 * @rate_bytes: most bytes in a second, 0: as fast as it goes
 * Return: 0; -EBUSY: one is running; -EINTR.
 */
int kvt_scrub_start(struct kvt_pool *p, u64 rate_bytes)
{
	struct kvt_scrub *s = &p->scrub;

	if (mutex_lock_killable(&s->lock))
		return -EINTR;
	if (kvt_scrub_running(s)) {
		mutex_unlock(&s->lock);
		return -EBUSY;
	}
	WRITE_ONCE(s->stop, false);
	WRITE_ONCE(s->rate_bytes, rate_bytes);
	WRITE_ONCE(s->total_bytes, kvt_scrub_total(p));
	WRITE_ONCE(s->bytes, 0);
	WRITE_ONCE(s->blocks, 0);
	WRITE_ONCE(s->read_errors, 0);
	WRITE_ONCE(s->checksum_errors, 0);
	WRITE_ONCE(s->state, KVT_SCRUB_RUNNING);
	queue_work(system_unbound_wq, &s->work);
	mutex_unlock(&s->lock);
	return 0;
}

/**
 * kvt_scrub_stop() - end a scrub, if one is running
 * @p: pool, kept by the caller
 * Return: 0: none is running; -EINTR on a fatal signal: it will end.
 */
int kvt_scrub_stop(struct kvt_pool *p)
{
	struct kvt_scrub *s = &p->scrub;
	int err = 0;

	if (mutex_lock_killable(&s->lock))
		return -EINTR;
	WRITE_ONCE(s->stop, true);
	wake_up_all(&s->wait);
	if (wait_event_killable(s->wait, !kvt_scrub_running(s)))
		err = -EINTR;
	mutex_unlock(&s->lock);
	return err;
}

/**
 * kvt_scrub_end() - the pool is ending
 * @p: pool that nobody starts scrubs of any more; sleeps
 */
void kvt_scrub_end(struct kvt_pool *p)
{
	WRITE_ONCE(p->scrub.stop, true);
	wake_up_all(&p->scrub.wait);
	flush_work(&p->scrub.work);
}

/**
 * kvt_scrub_init() - a pool that was never scrubbed
 * @s: of a new pool
 */
void kvt_scrub_init(struct kvt_scrub *s)
{
	mutex_init(&s->lock);
	init_waitqueue_head(&s->wait);
	INIT_WORK(&s->work, kvt_scrub_work);
}
