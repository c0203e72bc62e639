// SPDX-License-Identifier: GPL-2.0
/*
 * Footers for segments that a crash has left without, in the background.
 *
 * What such a segment has is read again, as recovery did, and given to the writer,
 * which makes the footer of it like any other. Until then nothing but time is lost by
 * another crash. Reading is not under the meta lock, each entry is added under it; what
 * dies in the segment meanwhile is killed like anywhere else.
 *
 * From then on the footer says it all, so it is made only if all is found that was found
 * before. What cannot be read now may be readable again later; without a footer it counts
 * for as long as it can.
 */
#include <linux/vmalloc.h>

#include "kvt_assemble.h"

struct kvt_refill {
	struct kvt_tier *t;
	u32 handle;
	bool ok;
};

static int kvt_refill_read(void *ctx, u64 byte, void *buf, u32 len)
{
	return kvt_mlog_read(((struct kvt_refill *)ctx)->t, byte, buf, len);
}

static void kvt_refill_block(void *ctx, u32 seg, u64 life, const struct kvt_rec *r)
{
	struct kvt_refill *f = ctx;

	spin_lock(&f->t->pool->meta_lock);
	f->ok = f->ok && kvt_wlog_refill_block(&f->t->mlog->w, f->handle, r);
	spin_unlock(&f->t->pool->meta_lock);
}

static void kvt_refill_ns(void *ctx, u32 seg, const struct kvt_nsdef *d)
{
	struct kvt_refill *f = ctx;

	spin_lock(&f->t->pool->meta_lock);
	f->ok = f->ok && kvt_wlog_refill_ns(&f->t->mlog->w, f->handle, d);
	spin_unlock(&f->t->pool->meta_lock);
}

static void kvt_refill_kill(void *ctx, u32 seg, const struct kvt_kill *k)
{
	struct kvt_refill *f = ctx;

	spin_lock(&f->t->pool->meta_lock);
	f->ok = f->ok && kvt_wlog_refill_kill(&f->t->mlog->w, f->handle, k);
	spin_unlock(&f->t->pool->meta_lock);
}

static void kvt_refill_bad(void *ctx, u32 seg, u64 life, u32 unit, enum kvt_bad why)
{
	struct kvt_refill *f = ctx;

	f->ok = f->ok && why != KVT_BAD_IO;
}

static const struct kvt_recover_sink kvt_refill_sink = {
	.block = kvt_refill_block,
	.ns = kvt_refill_ns,
	.kill = kvt_refill_kill,
	.bad = kvt_refill_bad,
};

/*
 * A writer always leaves room for the summary, but did a writer make this. On a zoned
 * device a summary that is torn is in its own way: nothing before @first can be written.
 */
static bool kvt_refill_fits(const struct kvt_mlog *m, u32 handle, const struct kvt_seg_found *f,
			    u32 first)
{
	const struct kvt_wopen *o = &m->w.opens[handle];
	u64 bytes = kvt_entries_bytes(o->nr_ns, o->nr_blocks, o->nr_kills);

	return (u64)max(f->fill, first) + kvt_geo_units(&m->geo, bytes) + 1 <= m->geo.seg_units;
}

/* The segment's record in the writer is ours until kvt_wlog_refilled(). */
static void kvt_refill_segment(struct kvt_refill *f, u32 seg, u8 *buf)
{
	struct kvt_mlog *m = f->t->mlog;
	struct kvt_recover r = {
		.geo = &m->geo,
		.read = kvt_refill_read,
		.sink = &kvt_refill_sink,
		.ctx = f,
		.buf = buf,
		.buf_bytes = KVT_RECOVER_BUF_MIN,
	};
	struct kvt_seg_found found;
	u32 first = kvt_mzone_first(m, seg);

	f->ok = true;
	kvt_recover_segment(&r, seg, &found);
	spin_lock(&f->t->pool->meta_lock);
	f->ok = f->ok && found.state == KVT_RC_UNSEALED &&
		found.fill == m->tier->log.segs[seg].fill &&
		kvt_wlog_held_all(&m->w, seg, &found) &&
		kvt_refill_fits(m, f->handle, &found, first);
	kvt_wlog_refilled(&m->w, f->handle, found.nr_batches, f->ok);
	spin_unlock(&f->t->pool->meta_lock);
}

/**
 * struct kvt_refill_todo - what is left
 * @seg:    segment whose refill is begun, KVT_NO_SEG: none
 * @handle: of it
 * @dead:   one that needs no footer, only an end; KVT_NO_SEG: none
 * @later:  some cannot be done now
 */
struct kvt_refill_todo {
	u32 seg;
	u32 handle;
	u32 dead;
	bool later;
};

static void kvt_refill_next(struct kvt_mlog *m, struct kvt_refill_todo *todo)
{
	u32 seg;

	lockdep_assert_held(&m->tier->pool->meta_lock);
	for (seg = 0; seg < m->geo.nr_segs; seg++) {
		const struct kvt_wseg *ws = &m->w.segs[seg];

		/* What cannot be read is told when it may be tried again. */
		if (!ws->unsealed || ws->hopeless || ws->no_end)
			continue;
		if (!kvt_wlog_refill(&m->w, seg, &todo->handle)) {
			todo->seg = seg;
			return;
		}
		if (m->tier->log.segs[seg].state == KVT_SEG_EMPTY && ws->phase == KVT_WSEG_NONE)
			todo->dead = seg;
		else
			todo->later = true;
	}
}

/* End one that was dead a moment ago, and none in its place. put_lock[CARRY] held. */
static bool kvt_mlog_end_dead(struct kvt_mlog *m, u32 seg)
{
	bool may;

	spin_lock(&m->tier->pool->meta_lock);
	may = m->w.segs[seg].unsealed && kvt_wlog_may_end(&m->w, seg);
	spin_unlock(&m->tier->pool->meta_lock);
	return may && kvt_mlog_end_seg(m, seg);
}

/**
 * kvt_mlog_refill() - see to one segment that lacks its footer
 * @m: member that is started; none of its locks held. The background's, sleeps
 * Return: whether something was done.
 */
bool kvt_mlog_refill(struct kvt_mlog *m)
{
	struct kvt_refill_todo todo = { .seg = KVT_NO_SEG, .dead = KVT_NO_SEG };
	struct kvt_refill f = { .t = m->tier };
	bool done = false;
	u8 *buf;

	if (!m->refill)
		return false;
	buf = kvmalloc(KVT_RECOVER_BUF_MIN + KVT_UNIT_BYTES_MIN, GFP_KERNEL);
	if (!buf)
		return false;
	spin_lock(&m->tier->pool->meta_lock);
	kvt_refill_next(m, &todo);
	m->refill = todo.seg != KVT_NO_SEG || todo.dead != KVT_NO_SEG || todo.later;
	spin_unlock(&m->tier->pool->meta_lock);
	if (todo.seg != KVT_NO_SEG) {
		f.handle = todo.handle;
		kvt_refill_segment(&f, todo.seg, buf);
		done = true;
	} else if (todo.dead != KVT_NO_SEG) {
		mutex_lock(&m->put_lock[KVT_HEAD_CARRY]);
		done = kvt_mlog_end_dead(m, todo.dead);
		mutex_unlock(&m->put_lock[KVT_HEAD_CARRY]);
	}
	kvfree(buf);
	return done;
}
