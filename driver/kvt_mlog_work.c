// SPDX-License-Identifier: GPL-2.0
/*
 * A member's background work. See kvt_mlog.h for the model and the locks.
 *
 *   - flushes and footers, as soon as something waits for them
 *   - ends of dead segments, when few are free and it pays, and their discards
 *   - kills, when half of the ring is pending or somebody waits for them
 *   - ends of namespaces
 *   - footers that a crash has left out
 *   - superblocks, when another member was lost
 *   - doomed segments: their blocks leave the pool, one by one as they can; and dooming
 *     one, if kills have no room and nobody else makes some
 *
 * Nothing else is needed for a wait to come to an end.
 */
#include <linux/slab.h>

#include "kvt_internal.h"
#include "kvt_mlog.h"
#include "kvt_trace.h"

#define KVT_WORK_ROUNDS	32u	/* before others have their turn */
#define KVT_END_TRIES	4u
#define KVT_REAP_MAX	8u	/* segments ended in one go */
#define KVT_HELD_STEP	256u	/* namespaces under one hold of the meta lock */
#define KVT_TICK	(HZ / 4)
#define KVT_REREAD_DELAY	((unsigned long)HZ / 2)	/* until a dead segment is read again */
#define KVT_REREAD_DELAY_MAX	(8ul * HZ)
#define KVT_UNREAD_PATIENCE	(30ul * HZ)	/* with that, if somebody waits */
#define KVT_UNREAD_DOOMED_MS	30000u	/* the same, if what is doomed has to be ended */
#define KVT_UNREAD_FOR_GOOD_MS	60000u	/* if others can be read */
#define KVT_STARVED		(5ul * HZ)	/* kills have no segment: use what is saved up */

/**
 * kvt_mlog_kick() - there may be something to do in the background
 * @m: member; any context but hard interrupts
 */
void kvt_mlog_kick(struct kvt_mlog *m)
{
	if (READ_ONCE(m->running))
		queue_work(m->tier->pool->log_wq, &m->work);
}

/* Close and write what a head has open; no blocks are in it. Its put_lock held. */
static void kvt_mlog_close_empty(struct kvt_mlog *m, enum kvt_log_head head)
{
	enum kvt_wlog_status st;
	struct kvt_wlog_io io;

	spin_lock(&m->tier->pool->meta_lock);
	st = kvt_wlog_close(&m->w, head, &io);
	spin_unlock(&m->tier->pool->meta_lock);
	if (!st)
		kvt_mlog_write_empty(m, &io);
}

/**
 * struct kvt_held - what a dead segment holds for others
 * @m:     member; its buffers are used
 * @nr_kills: in @m->kills
 * @nr_ns: in @m->ns
 * @full:  there was more than a segment can have
 * @unread: some of it could not be read
 */
struct kvt_held {
	struct kvt_mlog *m;
	u32 nr_kills;
	u32 nr_ns;
	bool full;
	bool unread;
};

static void kvt_held_kill(void *ctx, u32 seg, const struct kvt_kill *k)
{
	struct kvt_held *h = ctx;

	if (k->seg >= h->m->geo.nr_segs)
		return;
	if (h->nr_kills == h->m->w.cfg.max_kills)
		h->full = true;
	else
		h->m->kills[h->nr_kills++] = *k;
}

static void kvt_held_ns(void *ctx, u32 seg, const struct kvt_nsdef *d)
{
	struct kvt_held *h = ctx;
	u32 i;

	/* One definition of each is enough, and the newest at that. */
	for (i = 0; i < h->nr_ns; i++) {
		if (h->m->ns[i].id == d->id) {
			if (h->m->ns[i].seq < d->seq)
				h->m->ns[i] = *d;
			return;
		}
	}
	if (h->nr_ns == h->m->w.cfg.max_ns)
		h->full = true;
	else
		h->m->ns[h->nr_ns++] = *d;
}

static void kvt_held_block(void *ctx, u32 seg, u64 life, const struct kvt_rec *r)
{
}

static int kvt_held_read(void *ctx, u64 byte, void *buf, u32 len)
{
	struct kvt_held *h = ctx;

	return kvt_mlog_read(h->m->tier, byte, buf, len);
}

static const struct kvt_recover_sink kvt_held_sink = {
	.block = kvt_held_block,
	.ns = kvt_held_ns,
	.kill = kvt_held_kill,
};

static void kvt_held_collect(struct kvt_mlog *m, u32 seg, struct kvt_held *h)
{
	struct kvt_recover r = {
		.geo = &m->geo,
		.read = kvt_held_read,
		.sink = &kvt_held_sink,
		.ctx = h,
		.buf = m->buf,
		.buf_bytes = KVT_RECOVER_BUF_MIN,
		.entries_only = true,
	};
	struct kvt_seg_found f;
	bool holds;

	*h = (struct kvt_held) { .m = m };
	spin_lock(&m->tier->pool->meta_lock);
	holds = kvt_wlog_holds(&m->w, seg);
	spin_unlock(&m->tier->pool->meta_lock);
	if (!holds)
		return;
	kvt_recover_segment(&r, seg, &f);
	/* What it holds for others is not known: it stays. */
	spin_lock(&m->tier->pool->meta_lock);
	h->unread = !kvt_wlog_held_all(&m->w, seg, &f);
	if (!h->unread && !f.nr_io) {
		m->w.segs[seg].unread_ms = 0;
		kvt_mlog_outage(m, false);
		m->reread_delay = 0;
	}
	spin_unlock(&m->tier->pool->meta_lock);
}

/**
 * kvt_mlog_outage() - a segment was read, or could not be
 * @m:      member, meta lock held
 * @failed: the latter
 */
void kvt_mlog_outage(struct kvt_mlog *m, bool failed)
{
	lockdep_assert_held(&m->tier->pool->meta_lock);
	if (failed && !m->outage)
		m->outage_at = jiffies;
	WRITE_ONCE(m->outage, failed);
}

/* For how long a dead segment could not be read, in ms. */
static u32 kvt_mlog_unread_for(const struct kvt_wseg *ws, u32 now_ms)
{
	return ws->unread_ms ? kvt_age_ms(now_ms, ws->unread_ms) : 0;
}

/*
 * A dead segment cannot be read. Devices fail for a while: it is tried again, with others of the
 * kind. But not for ever if others can be read: then it is the segment. Meta lock held. Returns
 * for how long that is so, in ms.
 */
static u32 kvt_mlog_unread(struct kvt_mlog *m, struct kvt_wseg *ws)
{
	u32 now = kvt_now_ms(), age = kvt_mlog_unread_for(ws, now);

	lockdep_assert_held(&m->tier->pool->meta_lock);
	if (!ws->unread_ms)
		ws->unread_ms = now | 1;
	if (age > KVT_UNREAD_FOR_GOOD_MS && !m->outage) {
		ws->unread_ms = 0;
		return age;
	}
	if (!m->unread) {
		m->unread = true;
		m->reread_delay = clamp(2 * m->reread_delay, KVT_REREAD_DELAY,
					KVT_REREAD_DELAY_MAX);
		m->reread_at = jiffies + m->reread_delay;
	}
	kvt_mlog_outage(m, true);
	return age;
}

/* Is it time to try again what could not be read. Racy. */
static bool kvt_mlog_reread_due(struct kvt_mlog *m)
{
	return READ_ONCE(m->unread) && !time_before(jiffies, READ_ONCE(m->reread_at));
}

/* Let segments that could not be read be ended, and have footers. */
static void kvt_mlog_reread(struct kvt_mlog *m)
{
	struct kvt_pool *p = m->tier->pool;
	u32 seg;

	/* One that stops has no time for what has failed. */
	if (!kvt_mlog_reread_due(m) || !READ_ONCE(m->running))
		return;
	spin_lock(&p->meta_lock);
	for (seg = 0; seg < m->geo.nr_segs; seg++) {
		struct kvt_wseg *ws = &m->w.segs[seg];

		if (!ws->unread_ms)
			continue;
		ws->no_end = false;
		m->refill |= ws->unsealed;
	}
	m->unread = false;
	spin_unlock(&p->meta_lock);
}

/**
 * kvt_mlog_tick() - see to what depends on time
 * @m: member; called by the pool's worker every so often
 */
void kvt_mlog_tick(struct kvt_mlog *m)
{
	if (!kvt_mlog_reread_due(m) && !READ_ONCE(m->no_room))
		return;
	/* Not each time: who has no room for kills has that worker called. */
	if (m->tick_at && time_before(jiffies, m->tick_at))
		return;
	m->tick_at = (jiffies + KVT_TICK) | 1;
	kvt_mlog_kick(m);
}

/*
 * A segment cannot be ended, so that others have their turn: for good if it holds too much, and
 * for a while if it cannot be read. Of a doomed one the end is all that says that its blocks
 * are dead: without that nothing can be promised of this member any more, and whoever waits
 * for it is not to wait for ever. A member that stops is left as after a crash.
 */
static void kvt_mlog_no_end(struct kvt_mlog *m, u32 seg, bool unread)
{
	struct kvt_pool *p = m->tier->pool;
	struct kvt_wseg *ws = &m->w.segs[seg];
	bool hopeless, first;
	u32 age = 0;

	/* Whether others can be read is to be known of now: paths come and go. */
	if (unread && kvt_mlog_unread_for(ws, kvt_now_ms()) > KVT_UNREAD_FOR_GOOD_MS &&
	    kvt_log_readable(m->tier))
		kvt_log_probe(m->tier);
	spin_lock(&p->meta_lock);
	first = unread && !ws->unread_ms;
	ws->no_end = true;
	if (unread)
		age = kvt_mlog_unread(m, ws);
	hopeless = ws->doom && m->running && !m->w.given_up &&
		   (!unread || age > KVT_UNREAD_DOOMED_MS);
	spin_unlock(&p->meta_lock);
	if (first)
		pr_warn_ratelimited("kvtier%u: tier %s: segment %u is dead and cannot be read, so it cannot be used again for now\n",
				    p->id, m->tier->args.name, seg);
	if (hopeless)
		kvt_mlog_give_up(m->tier, "a doomed segment cannot be ended");
}

static void kvt_held_seen(struct kvt_held *h, const struct kvt_ns *ns)
{
	u32 i;

	for (i = 0; i < h->nr_ns; i++) {
		if (h->m->ns[i].id == ns->id)
			h->m->ns_idx[i] = ns->idx;
	}
}

/*
 * Where the namespaces are that definitions were found of. There may be many, so this
 * is done in steps. None appears later: a definition is written after its namespace
 * was made, and ids are not used twice. One that goes meanwhile is noticed later.
 */
static void kvt_held_find_ns(struct kvt_held *h)
{
	struct kvt_pool *p = h->m->tier->pool;
	unsigned long idx = 0;
	struct kvt_ns *ns;
	u32 n;

	memset(h->m->ns_idx, 0, sizeof(h->m->ns_idx));
	for (ns = NULL; h->nr_ns && idx < ULONG_MAX; cond_resched()) {
		spin_lock(&p->meta_lock);
		for (n = 0; n < KVT_HELD_STEP; n++, idx++) {
			ns = xa_find(&p->ns, &idx, ULONG_MAX, XA_PRESENT);
			if (!ns)
				break;
			kvt_held_seen(h, ns);
		}
		spin_unlock(&p->meta_lock);
		if (!ns)
			break;
	}
}

/* The namespace of a definition, if there is one. Meta lock held. */
static struct kvt_ns *kvt_held_ns_of(struct kvt_held *h, u32 i, u64 id)
{
	struct kvt_pool *p = h->m->tier->pool;
	struct kvt_ns *ns = h->m->ns_idx[i] ? xa_load(&p->ns, h->m->ns_idx[i]) : NULL;

	lockdep_assert_held(&p->meta_lock);
	return ns && ns->id == id ? ns : NULL;
}

/* What of it still matters, to the front, as it is to be written. Meta lock held. */
static void kvt_held_filter(struct kvt_held *h, u32 seg)
{
	struct kvt_mlog *m = h->m;
	u32 i, n, idx;

	for (i = 0, n = 0; i < h->nr_kills; i++) {
		if (kvt_wlog_kill_outlives(&m->w, seg, &m->kills[i]))
			m->kills[n++] = m->kills[i];
	}
	h->nr_kills = n;
	for (i = 0, n = 0; i < h->nr_ns; i++) {
		struct kvt_nsdef *d = &m->ns[i];
		struct kvt_ns *ns = kvt_held_ns_of(h, i, d->id);

		idx = m->ns_idx[i];
		if (ns && kvt_wlog_homed(&m->w, seg, &ns->home[m->tier->id]))
			continue;
		if (ns && !(d->flags & KVT_NSF_GONE))
			kvt_mlog_nsdef(ns, d);
		else if (!(d->flags & KVT_NSF_GONE) || !kvt_wlog_ns_needed(&m->w, seg, d))
			continue;
		m->ns_idx[n] = idx;
		m->ns[n++] = *d;
	}
	h->nr_ns = n;
}

/**
 * kvt_mlog_starved() - have kills had no segment to go to for longer than it should take
 * @m: member, meta lock held
 * Return: then what is saved up for better times is to be used: these may never come, for
 * segments that look as if they could be emptied may be full of pinned blocks.
 */
bool kvt_mlog_starved(const struct kvt_mlog *m)
{
	lockdep_assert_held(&m->tier->pool->meta_lock);
	return m->no_room && time_after(jiffies, m->no_room_at + KVT_STARVED);
}

/* Have a segment for an end. Nothing is sealed for one that there is not: see *@st. */
static bool kvt_held_open(struct kvt_mlog *m, u32 seg, enum kvt_wlog_status *st)
{
	const struct kvt_log *log = &m->tier->log;
	bool urgent, there;

	spin_lock(&m->tier->pool->meta_lock);
	urgent = kvt_wlog_end_urgent(&m->w, seg) || kvt_mlog_starved(m);
	there = log->nr_free > (urgent ? 0 : log->keep[KVT_HEAD_CARRY]);
	spin_unlock(&m->tier->pool->meta_lock);
	*st = KVT_W_SPACE;
	return (there || urgent) && kvt_mlog_open(m, KVT_HEAD_CARRY, 0, urgent, st);
}

/* What was opened for an end that could not be begun is free again, if nobody has used it. */
static void kvt_held_unopen(struct kvt_mlog *m)
{
	u32 i;

	spin_lock(&m->tier->pool->meta_lock);
	i = m->w.head_open[KVT_HEAD_CARRY];
	if (i < KVT_WLOG_OPENS && !m->w.opens[i].nr_batches)
		kvt_wlog_seal(&m->w, KVT_HEAD_CARRY);
	spin_unlock(&m->tier->pool->meta_lock);
}

/* All of an end under one hold of the lock. */
static enum kvt_wlog_status kvt_held_end(struct kvt_held *h, u32 seg)
{
	struct kvt_mlog *m = h->m;
	struct kvt_pool *p = m->tier->pool;
	enum kvt_wlog_status st;
	u32 i;

	spin_lock(&p->meta_lock);
	kvt_held_filter(h, seg);
	st = kvt_wlog_end_start(&m->w, h->nr_kills, h->nr_ns);
	for (i = 0; !st && i < h->nr_ns; i++) {
		struct kvt_ns *ns = kvt_held_ns_of(h, i, m->ns[i].id);

		st = kvt_wlog_ns(&m->w, KVT_HEAD_CARRY, &m->ns[i],
				 ns ? &ns->home[m->tier->id] : NULL, 0);
	}
	for (i = 0; !st && i < h->nr_kills; i++)
		kvt_wlog_end_kill(&m->w, &m->kills[i]);
	if (!st)
		st = kvt_wlog_end(&m->w, seg);
	spin_unlock(&p->meta_lock);
	return st;
}

static u32 kvt_mlog_next_end(struct kvt_mlog *m)
{
	u32 seg;

	spin_lock(&m->tier->pool->meta_lock);
	seg = kvt_wlog_next_end(&m->w);
	spin_unlock(&m->tier->pool->meta_lock);
	return seg;
}

/* What it holds for others; false: it cannot be ended. */
static bool kvt_mlog_held(struct kvt_mlog *m, u32 seg, struct kvt_held *h)
{
	kvt_held_collect(m, seg, h);
	if (!h->full && !h->unread)
		return true;
	kvt_mlog_no_end(m, seg, !h->full);
	return false;
}

/* There is no segment that an end could go to, now or later. */
static void kvt_mlog_judge_stuck(struct kvt_mlog *m)
{
	bool stuck;

	spin_lock(&m->tier->pool->meta_lock);
	stuck = m->running && kvt_wlog_stuck(&m->w);
	spin_unlock(&m->tier->pool->meta_lock);
	if (stuck)
		kvt_mlog_give_up(m->tier, "a write failed, and there is no free segment left");
}

static bool kvt_mlog_end_held(struct kvt_mlog *m, u32 seg, struct kvt_held *h)
{
	enum kvt_wlog_status st = KVT_W_NONE, open = KVT_W_NONE;
	bool done = false;
	u32 tries;

	kvt_held_find_ns(h);
	for (tries = 0; tries < KVT_END_TRIES; tries++) {
		st = kvt_held_end(h, seg);
		done = !st;
		if (st != KVT_W_SEGMENT || !kvt_held_open(m, seg, &open))
			break;
	}
	/* Also if it did not come to an end: what is open has to be closed. */
	kvt_mlog_close_empty(m, KVT_HEAD_CARRY);
	if (!done)
		kvt_held_unopen(m);
	if (st == KVT_W_NEVER)
		kvt_mlog_no_end(m, seg, false);
	if (st == KVT_W_SEGMENT && open == KVT_W_SPACE)
		kvt_mlog_judge_stuck(m);
	return done;
}

/**
 * kvt_mlog_end_one() - end a dead segment
 * @m: member; put_lock[CARRY] held, no batch of the caller's is open or unwritten; sleeps
 * Return: whether the end of one is written. It is free when that is durable.
 */
bool kvt_mlog_end_one(struct kvt_mlog *m)
{
	struct kvt_held h;
	u32 seg, tries;

	/* Reads that fail may take their time, and others wait for the lock. */
	for (tries = 0; tries < KVT_END_TRIES; tries++) {
		seg = kvt_mlog_next_end(m);
		if (seg == KVT_NO_SEG)
			break;
		if (kvt_mlog_held(m, seg, &h))
			return kvt_mlog_end_held(m, seg, &h);
	}
	return false;
}

/**
 * kvt_mlog_end_seg() - end that dead segment
 * @m:   member, as for kvt_mlog_end_one()
 * @seg: dead, and not to be ended by anybody else
 * Return: whether its end is written.
 */
bool kvt_mlog_end_seg(struct kvt_mlog *m, u32 seg)
{
	struct kvt_held h;

	return kvt_mlog_held(m, seg, &h) && kvt_mlog_end_held(m, seg, &h);
}

static u32 kvt_mlog_todo(struct kvt_mlog *m)
{
	u32 work;

	spin_lock(&m->tier->pool->meta_lock);
	work = kvt_wlog_work(&m->w);
	spin_unlock(&m->tier->pool->meta_lock);
	return work;
}

/**
 * kvt_mlog_reap() - make dead segments free
 * @m:    member; put_lock[CARRY] held, no batch of the caller's is open or unwritten; sleeps
 * @need: the caller needs one; else none is ended that would only be replaced by another
 * Return: whether there are more free ones than before.
 */
bool kvt_mlog_reap(struct kvt_mlog *m, bool need)
{
	u32 before = READ_ONCE(m->tier->log.nr_free), last, now = before, nr;
	u32 work = need ? KVT_WORK_END : KVT_WORK_PAYS;

	if (kvt_mlog_todo(m) & KVT_WORK_TRIM) {
		kvt_mlog_progress(m);
		now = READ_ONCE(m->tier->log.nr_free);
	}
	for (nr = 0; nr < KVT_REAP_MAX && (kvt_mlog_todo(m) & work); nr++) {
		last = now;
		if (!kvt_mlog_end_one(m))
			break;
		kvt_mlog_progress(m);
		now = READ_ONCE(m->tier->log.nr_free);
		/* Where it went is full of the same by now: that could go on for ever. */
		if (now <= last)
			break;
	}
	return now > before;
}

/* Write pending kills at one head. Its put_lock held. */
static enum kvt_wlog_status kvt_mlog_kills_at(struct kvt_mlog *m, enum kvt_log_head head)
{
	enum kvt_wlog_status st;

	spin_lock(&m->tier->pool->meta_lock);
	st = kvt_wlog_start_kills(&m->w, head);
	spin_unlock(&m->tier->pool->meta_lock);
	if (!st)
		kvt_mlog_close_empty(m, head);
	return st;
}

/*
 * Take the sealed segment with the least in it to be emptied, one that can be written again
 * before others. @after: only those behind that in this order; it moves on.
 */
static u32 kvt_room_claim(struct kvt_mlog *m, u64 *after)
{
	struct kvt_log *log = &m->tier->log;
	u64 best = U64_MAX;
	u32 i;

	spin_lock(&m->tier->pool->meta_lock);
	for (i = 0; i < log->nr_segs; i++) {
		const struct kvt_seg *s = &log->segs[i];
		u64 key = (u64)m->w.segs[i].bad << 63 | (u64)kvt_seg_needed(s) << 32 | i;

		if (s->state == KVT_SEG_SEALED && !s->writes && key >= *after)
			best = min(best, key);
	}
	if (best != U64_MAX) {
		kvt_log_claim(log, (u32)best);
		*after = best + 1;
	}
	spin_unlock(&m->tier->pool->meta_lock);
	return best == U64_MAX ? KVT_NO_SEG : (u32)best;
}

/* Is there no segment that can ever be written again. Meta lock held. */
static bool kvt_mlog_worn_out(struct kvt_mlog *m)
{
	const struct kvt_log *log = &m->tier->log;
	u32 i;

	lockdep_assert_held(&m->tier->pool->meta_lock);
	for (i = 0; i < log->nr_segs; i++) {
		u8 state = log->segs[i].state;

		if (state == KVT_SEG_OPEN || state == KVT_SEG_SEALED ||
		    state == KVT_SEG_CLEANING ||
		    (state == KVT_SEG_EMPTY && (!m->w.segs[i].no_end || m->w.segs[i].unread_ms)))
			return false;
	}
	return true;
}

/*
 * Have kills been waiting for dead segments that cannot be read for so long that nobody can be
 * expected to wait any longer. What was so before somebody came is to have been tried again
 * since. Meta lock held.
 */
static bool kvt_mlog_waits_in_vain(struct kvt_mlog *m)
{
	lockdep_assert_held(&m->tier->pool->meta_lock);
	if (!m->no_room)
		m->no_room_at = jiffies;
	WRITE_ONCE(m->no_room, true);
	return m->outage && time_after(jiffies, m->outage_at + KVT_UNREAD_PATIENCE) &&
	       time_after(jiffies, m->no_room_at + KVT_REREAD_DELAY_MAX + HZ);
}

enum kvt_room {
	KVT_ROOM_WAIT,		/* it comes, or never */
	KVT_ROOM_CLEAN,		/* the pool's worker makes some */
	KVT_ROOM_DOOM,		/* nobody does */
	KVT_ROOM_NEVER,
};

/* Where is room for kills to come from. */
static enum kvt_room kvt_mlog_room(struct kvt_mlog *m)
{
	struct kvt_tier *t = m->tier;
	enum kvt_room room;
	u32 i;

	spin_lock(&t->pool->meta_lock);
	/* What cannot be read now cannot be ended, either: nothing would be gained. */
	room = m->outage ? KVT_ROOM_WAIT : KVT_ROOM_DOOM;
	if (m->w.given_up || !m->running)
		room = KVT_ROOM_WAIT;
	else if (kvt_mlog_worn_out(m) || kvt_wlog_stuck(&m->w) || kvt_mlog_waits_in_vain(m))
		room = KVT_ROOM_NEVER;
	else if (m->w.nr_doomed)
		room = KVT_ROOM_WAIT;
	else if (t->state == KVTIER_TIER_ONLINE && !t->pool->assembling)
		room = KVT_ROOM_CLEAN;
	for (i = 0; room == KVT_ROOM_DOOM && i < m->geo.nr_segs; i++) {
		if (m->w.segs[i].phase != KVT_WSEG_NONE)
			room = KVT_ROOM_WAIT;
	}
	spin_unlock(&t->pool->meta_lock);
	return room;
}

/*
 * No kill can be written, because there is no segment for it. The pool's worker cleans
 * tiers that take blocks. Another one's blocks cannot be carried, and those that leave
 * it wait for their kills: some of them have to leave without, all of a segment.
 * A member that stops keeps its blocks, and its kills stay unwritten.
 * Return: whether a segment was doomed.
 */
static bool kvt_mlog_make_room(struct kvt_mlog *m)
{
	struct kvt_pool *p = m->tier->pool;
	enum kvt_room room = kvt_mlog_room(m);
	u64 after = 0;
	u32 seg;

	/* Others may be readable again, or have been all the time, only nobody has looked. */
	if (room != KVT_ROOM_CLEAN && READ_ONCE(m->outage) && kvt_log_readable(m->tier) &&
	    kvt_log_probe(m->tier))
		room = kvt_mlog_room(m);
	if (room == KVT_ROOM_NEVER)
		kvt_mlog_give_up(m->tier, "it has no segment left that can be written");
	if (room == KVT_ROOM_CLEAN)
		kvt_reclaim_kick(p);
	if (room != KVT_ROOM_DOOM)
		return false;
	while ((seg = kvt_room_claim(m, &after)) != KVT_NO_SEG) {
		if (kvt_mlog_doom(m, seg))
			return true;
		spin_lock(&p->meta_lock);
		kvt_log_clean_end(&m->tier->log, seg);
		spin_unlock(&p->meta_lock);
	}
	return false;
}

/* No segment is free: some dead one may be ended. put_lock[CARRY] held. */
static enum kvt_wlog_status kvt_mlog_kills_reaped(struct kvt_mlog *m,
						  enum kvt_wlog_status *open)
{
	bool more = kvt_mlog_reap(m, true);
	/* Also if none was gained: an end may have opened one for itself. */
	enum kvt_wlog_status st = kvt_mlog_kills_at(m, KVT_HEAD_CARRY);

	if (st == KVT_W_SEGMENT && more && kvt_mlog_open(m, KVT_HEAD_CARRY, 0, false, open))
		st = kvt_mlog_kills_at(m, KVT_HEAD_CARRY);
	return st;
}

/* Write pending kills: where there is a segment, before a new one is opened. */
static bool kvt_mlog_kills(struct kvt_mlog *m)
{
	enum kvt_wlog_status st, open;

	mutex_lock(&m->put_lock[KVT_HEAD_CARRY]);
	st = kvt_mlog_kills_at(m, KVT_HEAD_CARRY);
	mutex_unlock(&m->put_lock[KVT_HEAD_CARRY]);
	if (st == KVT_W_SEGMENT) {
		mutex_lock(&m->put_lock[KVT_HEAD_DEMOTE]);
		st = kvt_mlog_kills_at(m, KVT_HEAD_DEMOTE);
		mutex_unlock(&m->put_lock[KVT_HEAD_DEMOTE]);
	}
	if (st != KVT_W_SEGMENT) {
		WRITE_ONCE(m->no_room, false);
		return !st;
	}
	mutex_lock(&m->put_lock[KVT_HEAD_CARRY]);
	/* Somebody may have opened one meanwhile. */
	st = kvt_mlog_kills_at(m, KVT_HEAD_CARRY);
	if (st != KVT_W_SEGMENT)
		open = KVT_W_OK;
	else if (kvt_mlog_open(m, KVT_HEAD_CARRY, 0, false, &open))
		st = kvt_mlog_kills_at(m, KVT_HEAD_CARRY);
	else if (open == KVT_W_SPACE)
		st = kvt_mlog_kills_reaped(m, &open);
	mutex_unlock(&m->put_lock[KVT_HEAD_CARRY]);
	if (st == KVT_W_SEGMENT && open == KVT_W_SPACE)
		return kvt_mlog_make_room(m);
	WRITE_ONCE(m->no_room, false);
	return !st;
}

/* Write the end of one namespace. False: there is none, or it cannot be done now. */
static bool kvt_mlog_gone(struct kvt_mlog *m)
{
	struct kvt_nsdef d = { .flags = KVT_NSF_GONE };
	struct kvt_pool *p = m->tier->pool;
	enum kvt_wlog_status st;
	bool done = false;
	u32 tries;

	if (!READ_ONCE(m->nr_gone))
		return false;
	mutex_lock(&m->put_lock[KVT_HEAD_CARRY]);
	for (tries = 0; tries < KVT_END_TRIES; tries++) {
		spin_lock(&p->meta_lock);
		d.id = m->gone[m->nr_gone - 1].id;
		d.life_first = m->gone[m->nr_gone - 1].first;
		d.life_mark = kvt_wlog_life_mark(&m->w);
		st = kvt_wlog_ns(&m->w, KVT_HEAD_CARRY, &d, NULL, 0);
		done = !st;
		m->nr_gone -= done;
		spin_unlock(&p->meta_lock);
		if (st != KVT_W_SEGMENT || !kvt_mlog_open(m, KVT_HEAD_CARRY, 0, false, &st))
			break;
	}
	kvt_mlog_close_empty(m, KVT_HEAD_CARRY);
	mutex_unlock(&m->put_lock[KVT_HEAD_CARRY]);
	return done;
}

static bool kvt_mlog_kills_wanted(struct kvt_mlog *m, bool urgent)
{
	struct kvt_pool *p = m->tier->pool;
	bool wanted;

	spin_lock(&p->meta_lock);
	wanted = (kvt_wlog_work(&m->w) & KVT_WORK_KILLS) ||
		 (m->w.nr_pending && (urgent || p->parked.count || m->w.awaited));
	spin_unlock(&p->meta_lock);
	return wanted;
}

/**
 * kvt_mlog_step() - do what there is to do
 * @m:      member; none of its locks held, sleeps
 * @urgent: somebody waits for kills
 * Return: whether something was done.
 */
bool kvt_mlog_step(struct kvt_mlog *m, bool urgent)
{
	bool any = kvt_mlog_progress(m);

	kvt_mlog_reread(m);
	any |= kvt_mlog_dooms(m);
	if (kvt_mlog_kills_wanted(m, urgent))
		any |= kvt_mlog_kills(m);
	else
		WRITE_ONCE(m->no_room, false);
	any |= kvt_mlog_gone(m);
	any |= kvt_mlog_refill(m);
	if (READ_ONCE(m->told) != READ_ONCE(m->tier->pool->leavers.tell) &&
	    !READ_ONCE(m->w.given_up))
		any |= !kvt_mlog_write_super(m, false);
	if (kvt_mlog_todo(m) & KVT_WORK_PAYS) {
		mutex_lock(&m->put_lock[KVT_HEAD_CARRY]);
		any |= kvt_mlog_reap(m, false);
		mutex_unlock(&m->put_lock[KVT_HEAD_CARRY]);
	}
	return any;
}

/**
 * kvt_mlog_work() - the background
 * @work: of a member
 */
void kvt_mlog_work(struct work_struct *work)
{
	struct kvt_mlog *m = container_of(work, struct kvt_mlog, work);
	struct kvt_pool *p = m->tier->pool;
	int idx = srcu_read_lock(&p->srcu);
	u32 rounds = 0;

	while (rounds++ < KVT_WORK_ROUNDS && kvt_mlog_step(m, atomic_read(&m->nr_wait)))
		cond_resched();
	srcu_read_unlock(&p->srcu, idx);
	kvt_garbage_free(p);
	if (rounds > KVT_WORK_ROUNDS)
		kvt_mlog_kick(m);
	kvt_room_wake(p);
}
