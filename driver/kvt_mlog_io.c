// SPDX-License-Identifier: GPL-2.0
/*
 * A member's input and output: batches, flushes, footers, and what follows when they
 * are over. See kvt_mlog.h for the model and the locks.
 */
#include <linux/slab.h>

#include "kvt_internal.h"
#include "kvt_mlog.h"

#define KVT_MLOG_ERRORS_MAX	4u	/* in a row; some members have few segments */
#define KVT_FLUSHES_MAX		4u	/* in one go: to free a segment takes two */

/**
 * kvt_mlog_rw() - read or write a member's structures
 * @t:     block tier; no spinlock held, sleeps
 * @byte:  of the device
 * @buf:   kernel memory of any kind
 * @len:   bytes; all three are multiples of 4096
 * @write: direction
 * Return: 0 or -EIO.
 */
int kvt_mlog_rw(struct kvt_tier *t, u64 byte, void *buf, u32 len, bool write)
{
	int err = t->ops->rw(t, byte, buf, len, write);

	if (err)
		kvt_tier_fault(t, err, write);
	else if (write)
		atomic64_add(len, &t->count.log_bytes);
	return err;
}

/**
 * kvt_mlog_read() - read any part of a member's structures
 * @t:    block tier; no spinlock held, sleeps
 * @byte: of the device
 * @buf:  aligned to 4096, with KVT_UNIT_BYTES_MIN more room than @len rounded up
 * @len:  bytes; like @byte not necessarily aligned: parts of a summary
 * Return: 0 or -EIO.
 */
int kvt_mlog_read(struct kvt_tier *t, u64 byte, void *buf, u32 len)
{
	u32 skip = byte & (KVT_UNIT_BYTES_MIN - 1);
	int err;

	err = kvt_mlog_rw(t, byte - skip, buf, round_up(skip + len, KVT_UNIT_BYTES_MIN), false);
	if (skip && !err)
		memmove(buf, buf + skip, len);
	return err;
}

/**
 * kvt_mlog_flush_dev() - have all writes that have ended on the media
 * @t: block tier; no spinlock held, sleeps
 * Return: 0 or -EIO: the device may have forgotten anything.
 */
int kvt_mlog_flush_dev(struct kvt_tier *t)
{
	int err = t->ops->flush(t);

	if (err)
		kvt_tier_fault(t, err, true);
	return err;
}

/**
 * kvt_mlog_lose() - it is no member any more: the others are to know
 * @m: member that is given up; meta lock held
 */
void kvt_mlog_lose(struct kvt_mlog *m)
{
	struct kvt_pool *p = m->tier->pool;
	u32 i;

	lockdep_assert_held(&p->meta_lock);
	m->lost = true;
	p->leavers.tell++;
	for (i = 0; i < KVT_TIERS; i++) {
		struct kvt_mlog *o = p->tiers[i] ? p->tiers[i]->mlog : NULL;

		if (o && o != m && !o->lost)
			kvt_mlog_kick(o);
	}
}

/**
 * kvt_mlog_give_up() - write nothing to a member any more
 * @t:   block tier; no spinlock held
 * @why: for the log
 *
 * Nothing new is placed on the tier; what is there is served as long as it verifies.
 */
void kvt_mlog_give_up(struct kvt_tier *t, const char *why)
{
	struct kvt_pool *p = t->pool;
	bool first;

	spin_lock(&p->meta_lock);
	first = !t->mlog->w.given_up;
	kvt_wlog_give_up(&t->mlog->w);
	/*
	 * Not of a pool that nobody uses yet, or any more: nothing is dropped that it would have to
	 * be told of, and it is as good as after a crash.
	 */
	if (first && !READ_ONCE(p->dying))
		kvt_mlog_lose(t->mlog);
	if (t->state == KVTIER_TIER_ONLINE)
		t->state = KVTIER_TIER_DRAINING;
	kvt_mlog_kick(t->mlog);
	spin_unlock(&p->meta_lock);
	if (first)
		pr_warn("kvtier%u: tier %s: %s, nothing is written to it any more\n", p->id,
			t->args.name, why);
	wake_up_all(&t->mlog->wait);
	wake_up_all(&p->log_wait);
}

static void kvt_mlog_build(struct kvt_mlog *m, u32 batch, void *header)
{
	spin_lock(&m->tier->pool->meta_lock);
	kvt_wlog_build(&m->w, batch, header);
	spin_unlock(&m->tier->pool->meta_lock);
}

/*
 * Each header that fails costs a segment. Of moves the tier's state takes care; a
 * background that goes on like that would use up all of them, and nobody could ever
 * be told that what is dead is so for good.
 */
static void kvt_mlog_judge(struct kvt_mlog *m, int err)
{
	if (!err)
		atomic_set(&m->nr_errors, 0);
	else if (atomic_inc_return(&m->nr_errors) >= KVT_MLOG_ERRORS_MAX)
		kvt_mlog_give_up(m->tier, "its log cannot be written");
}

/**
 * kvt_mlog_write_header() - write the header of a closed batch
 * @m:  member; no spinlock held, sleeps
 * @io: from kvt_wlog_close(); checksums of its blocks are set
 * Return: 0 or -EIO. kvt_wlog_written() is the caller's to call.
 */
int kvt_mlog_write_header(struct kvt_mlog *m, const struct kvt_wlog_io *io)
{
	u32 bytes = io->header_units * m->geo.unit_bytes;
	void *mem = kvmalloc(bytes, GFP_NOIO | __GFP_NOWARN | __GFP_NORETRY);
	void *header = mem;
	int err = -EIO;

	/* What makes memory free must not depend on there being some. */
	if (!mem) {
		mutex_lock(&m->header_lock);
		header = m->header;
	}
	kvt_mlog_build(m, io->batch, header);
	if (!READ_ONCE(m->w.given_up))
		err = kvt_mlog_rw(m->tier, kvt_geo_byte(&m->geo, io->seg, io->unit), header,
				  bytes, true);
	if (!mem)
		mutex_unlock(&m->header_lock);
	kvfree(mem);
	return err;
}

/**
 * kvt_mlog_write_empty() - write a closed batch that has no blocks
 * @m:  member; no spinlock held, sleeps
 * @io: from kvt_wlog_close()
 */
void kvt_mlog_write_empty(struct kvt_mlog *m, const struct kvt_wlog_io *io)
{
	int err = m->turn ? kvt_mzone_write(m, io, NULL, 0, 0) : kvt_mlog_write_header(m, io);

	spin_lock(&m->tier->pool->meta_lock);
	kvt_wlog_written(&m->w, io->batch, err);
	spin_unlock(&m->tier->pool->meta_lock);
	kvt_mlog_judge(m, err);
}

/* A batch is durable, or will never be: tell its blocks. Meta lock held. */
static void kvt_mlog_settle(struct kvt_mlog *m, const struct kvt_wlog_done *d)
{
	struct kvt_tier *t = m->tier;
	struct kvt_pool *p = t->pool;
	const struct kvt_seg *s = &t->log.segs[d->seg];
	bool lost = false;
	u32 i;

	lockdep_assert_held(&p->meta_lock);
	kvt_carry_settle(p, t, d);
	for (i = 0; i < d->nr_ids && s->ids && d->first_id + i < s->nr_ids; i++) {
		struct kvt_hot *h = kvt_hot(&p->table, s->ids[d->first_id + i]);

		if (!(kvt_ctl(h) & KVT_CTL_LOG) || h->log_tier != t->id ||
		    h->log_unit - d->unit >= d->units)
			continue;
		if (!d->err) {
			WRITE_ONCE(h->flags, h->flags | KVT_HOT_DURABLE);
		} else if (kvt_ctl(h) & KVT_CTL_MEM) {
			/* It may have come up while somebody waits for it to be durable. */
			lost |= kvt_ctl_state(kvt_ctl(h)) == KVT_READY;
			kvt_copy_lost(p, s->ids[d->first_id + i]);
		} else {
			/* It was not carried: it is here, and nowhere durable. */
			lost |= kvt_ctl_state(kvt_ctl(h)) == KVT_READY;
			WRITE_ONCE(h->flags, h->flags | KVT_HOT_STALE);
		}
	}
	p->log_lost += lost;
}

/* Let dead blocks go that wait for room for their kills, as long as there is some. */
static void kvt_mlog_retry_parked(struct kvt_pool *p)
{
	u32 before, now;

	do {
		spin_lock(&p->meta_lock);
		before = p->parked.count;
		kvt_parked_retry(p);
		now = p->parked.count;
		spin_unlock(&p->meta_lock);
	} while (now && now < before);
}

/**
 * kvt_mlog_wake_others() - have batches of others looked at that wait for this member
 * @m: member, meta lock held
 */
void kvt_mlog_wake_others(struct kvt_mlog *m)
{
	struct kvt_pool *p = m->tier->pool;
	u32 i;

	lockdep_assert_held(&p->meta_lock);
	for (i = 0; i < KVT_TIERS; i++) {
		struct kvt_tier *t = p->tiers[i];

		if (t && t->mlog && t->mlog != m)
			kvt_mlog_kick(t->mlog);
	}
}

/*
 * What blocks were carried from lies with other members: of what has been freed there, and of
 * what could not be, they are not told in any other way. Meta lock held.
 */
static void kvt_mlog_tell_sources(struct kvt_mlog *m)
{
	struct kvt_pool *p = m->tier->pool;
	u32 i;

	lockdep_assert_held(&p->meta_lock);
	for (i = 0; i < KVT_TIERS; i++) {
		struct kvt_mlog *o = p->tiers[i] ? p->tiers[i]->mlog : NULL;

		if (!o || !o->w.nudged)
			continue;
		/* Once: two that wait for each other would keep each other running. */
		o->w.nudged = false;
		kvt_mlog_kick(o);
	}
	if (kvt_wlog_wakes(&m->w))
		kvt_mlog_wake_others(m);
}

/**
 * kvt_mlog_advance() - draw the consequences of what has been reported
 * @m: member; no spinlock held
 */
void kvt_mlog_advance(struct kvt_mlog *m)
{
	struct kvt_pool *p = m->tier->pool;
	struct kvt_wlog_done d;
	u32 *ids;
	bool more;

	do {
		spin_lock(&p->meta_lock);
		more = kvt_wlog_advance(&m->w, &d);
		if (more)
			kvt_mlog_settle(m, &d);
		spin_unlock(&p->meta_lock);
	} while (more);
	kvt_mlog_retry_parked(p);
	spin_lock(&p->meta_lock);
	kvt_carry_retry(p);
	kvt_mlog_tell_sources(m);
	while ((ids = kvt_log_stale_ids(&m->tier->log)))
		kvt_defer_free(p, ids);
	spin_unlock(&p->meta_lock);
	wake_up_all(&m->wait);
	wake_up_all(&p->log_wait);
}

/**
 * kvt_mlog_flush_locked() - flush the device
 * @m: member; io_lock held, sleeps
 * Return: whether that went well; if not, the member is given up.
 */
bool kvt_mlog_flush_locked(struct kvt_mlog *m)
{
	struct kvt_pool *p = m->tier->pool;
	u64 flush;

	lockdep_assert_held(&m->io_lock);
	if (READ_ONCE(m->w.given_up))
		return false;
	spin_lock(&p->meta_lock);
	flush = kvt_wlog_flush_start(&m->w);
	spin_unlock(&p->meta_lock);
	if (kvt_mlog_flush_dev(m->tier)) {
		kvt_mlog_give_up(m->tier, "a flush failed");
		kvt_mlog_advance(m);
		return false;
	}
	spin_lock(&p->meta_lock);
	kvt_wlog_flush_done(&m->w, flush);
	spin_unlock(&p->meta_lock);
	kvt_mlog_advance(m);
	return true;
}

/*
 * Of a zoned device: what is between the last batch and the footer becomes zeroes, which
 * may be much. Others flush meanwhile; nobody else writes to a segment whose footer is
 * being made.
 */
static int kvt_mlog_fill(struct kvt_mlog *m, const struct kvt_wlog_footer *f)
{
	int err;

	lockdep_assert_held(&m->io_lock);
	if (!m->turn)
		return 0;
	atomic_inc(&m->nr_filling);
	mutex_unlock(&m->io_lock);
	err = kvt_mzone_fill(m, f->seg, 0, f->unit);
	mutex_lock(&m->io_lock);
	return READ_ONCE(m->w.given_up) ? -EIO : err;
}

static void kvt_mlog_filled(struct kvt_mlog *m)
{
	if (m->turn && atomic_dec_and_test(&m->nr_filling))
		wake_up_all(&m->wait);
}

/*
 * A sealed segment's ids need no room for more: the array was made before anybody knew how many
 * there would be. That can be done without.
 */
static void kvt_mlog_fit(struct kvt_mlog *m, u32 seg)
{
	struct kvt_log *log = &m->tier->log;
	u32 nr = READ_ONCE(log->segs[seg].nr_ids), *ids;

	/* Large enough for kvt_defer_free(). */
	ids = kvmalloc(max(nr * sizeof(*ids), sizeof(void *)),
		       GFP_NOIO | __GFP_NORETRY | __GFP_NOWARN);
	if (!ids)
		return;
	spin_lock(&m->tier->pool->meta_lock);
	ids = kvt_log_fit(log, seg, ids, nr);
	spin_unlock(&m->tier->pool->meta_lock);
	kvfree(ids);
}

/* Write one footer. io_lock held, and let go of meanwhile. False: none can be written now. */
static bool kvt_mlog_footer(struct kvt_mlog *m)
{
	struct kvt_pool *p = m->tier->pool;
	struct kvt_wlog_footer f;
	enum kvt_wlog_status st;
	void *buf;
	u32 bytes;
	int err;

	lockdep_assert_held(&m->io_lock);
	spin_lock(&p->meta_lock);
	bytes = kvt_wlog_footer_bytes(&m->w);
	spin_unlock(&p->meta_lock);
	buf = bytes ? kvmalloc(bytes, GFP_NOIO | __GFP_NOWARN) : NULL;
	if (!buf)
		return false;
	/* It can only have become shorter: nothing is added to it any more. */
	spin_lock(&p->meta_lock);
	st = kvt_wlog_footer_bytes(&m->w) <= bytes ? kvt_wlog_footer(&m->w, buf, &f) :
						     KVT_W_NONE;
	spin_unlock(&p->meta_lock);
	if (!st) {
		bytes = (m->geo.seg_units - f.unit) * m->geo.unit_bytes;
		err = kvt_mlog_fill(m, &f);
		if (!err)
			err = kvt_mlog_rw(m->tier, kvt_geo_byte(&m->geo, f.seg, f.unit), buf,
					  bytes, true);
		if (err && m->turn)
			kvt_mzone_finish(m, f.seg);
		spin_lock(&p->meta_lock);
		kvt_wlog_footer_written(&m->w, f.handle, err);
		spin_unlock(&p->meta_lock);
		kvt_mlog_filled(m);
		kvt_mlog_judge(m, err);
		kvt_mlog_fit(m, f.seg);
	}
	kvfree(buf);
	return !st;
}

static void kvt_mlog_discard(struct kvt_mlog *m, u32 seg)
{
	struct kvt_tier *t = m->tier;
	int err;

	if (!READ_ONCE(t->discards) || !READ_ONCE(t->pool->discard))
		return;
	err = t->ops->discard(t, kvt_geo_byte(&m->geo, seg, 0), m->geo.seg_bytes);
	if (!err) {
		atomic64_add(m->geo.seg_bytes, &t->count.discarded_bytes);
	} else if (err != -EOPNOTSUPP && !READ_ONCE(m->w.given_up)) {
		WRITE_ONCE(t->discards, false);
		pr_warn("kvtier%u: tier %s: a discard failed (%d), no more are sent\n",
			t->pool->id, kobject_name(&t->kobj), err);
	}
}

/*
 * Let the device forget one segment, which is free then. Under io_lock, so that who wants
 * a segment, and makes progress for that, finds it free afterwards.
 */
static bool kvt_mlog_trim(struct kvt_mlog *m)
{
	struct kvt_pool *p = m->tier->pool;
	u32 seg;

	lockdep_assert_held(&m->io_lock);
	spin_lock(&p->meta_lock);
	seg = kvt_wlog_next_trim(&m->w);
	spin_unlock(&p->meta_lock);
	if (seg == KVT_NO_SEG)
		return false;
	kvt_mlog_discard(m, seg);
	spin_lock(&p->meta_lock);
	kvt_wlog_trimmed(&m->w, seg);
	spin_unlock(&p->meta_lock);
	return true;
}

/**
 * kvt_mlog_progress() - flush, write footers, discard, as long as something waits for that
 * @m: member; no spinlock and no io_lock held, sleeps
 *
 * What was written before is durable after the first flush. While others write there is
 * always one more to be done, if a flush takes as long as a batch: after a few the rest is
 * the background's, which has superblocks and notes to write in between.
 * Return: whether there was something.
 */
bool kvt_mlog_progress(struct kvt_mlog *m)
{
	struct kvt_pool *p = m->tier->pool;
	u32 work, flushes = 0;
	bool any = false, more;

	mutex_lock(&m->io_lock);
	do {
		spin_lock(&p->meta_lock);
		work = kvt_wlog_work(&m->w);
		spin_unlock(&p->meta_lock);
		more = (work & KVT_WORK_FOOTER) && kvt_mlog_footer(m);
		/* Before the next flush: with steady writers there is always one more. */
		if (!more && (work & KVT_WORK_TRIM))
			more = kvt_mlog_trim(m);
		if (!more && (work & KVT_WORK_FLUSH) && flushes++ < KVT_FLUSHES_MAX)
			more = kvt_mlog_flush_locked(m);
		any |= more;
	} while (more);
	mutex_unlock(&m->io_lock);
	kvt_mlog_advance(m);
	/* More may have come free by that: it is not, before somebody has discarded it. */
	spin_lock(&p->meta_lock);
	if ((kvt_wlog_work(&m->w) & KVT_WORK_TRIM) || flushes > KVT_FLUSHES_MAX)
		kvt_mlog_kick(m);
	spin_unlock(&p->meta_lock);
	kvt_garbage_free(p);
	return any;
}
