// SPDX-License-Identifier: GPL-2.0
/*
 * Making room on the log of the crash test: ends of dead segments, kills in batches of
 * their own, segments that are emptied or doomed. See crash.h.
 */
#include "crash.h"

/* What a dead segment still holds for others. */
struct held {
	struct cr_store *s;
	u32 nr_kills;
	u32 nr_ns;
	struct kvt_kill kills[CR_SEG_UNITS_MAX * 8];
	struct kvt_nsdef ns[CR_SEG_UNITS_MAX];
};

static void held_kill(void *ctx, u32 seg, const struct kvt_kill *k)
{
	struct held *h = ctx;

	(void)seg;
	if (!kvt_wlog_kill_needed(&h->s->w, k))
		return;
	CR_ASSERT(h->nr_kills < ARRAY_SIZE(h->kills));
	h->kills[h->nr_kills++] = *k;
}

static bool ns_still_needed(struct cr_store *s, u32 seg, const struct kvt_nsdef *d)
{
	u32 i;

	if (d->flags & KVT_NSF_GONE)
		return kvt_wlog_ns_needed(&s->w, seg, d);
	for (i = 0; i < CR_SLOTS; i++) {
		if (s->ns[i].id == d->id)
			return true;
	}
	return false;
}

static void held_ns(void *ctx, u32 seg, const struct kvt_nsdef *d)
{
	struct held *h = ctx;
	u32 i;

	if (!ns_still_needed(h->s, seg, d))
		return;
	CR_ASSERT(h->nr_ns < ARRAY_SIZE(h->ns));
	for (i = 0; i < h->nr_ns; i++) {
		/* One definition of each is enough. */
		if (h->ns[i].id == d->id)
			return;
	}
	h->ns[h->nr_ns++] = *d;
}

static void held_block(void *ctx, u32 seg, u64 life, const struct kvt_rec *r)
{
	(void)ctx;
	(void)seg;
	(void)life;
	(void)r;
}

static int held_read(void *ctx, u64 byte, void *buf, u32 len)
{
	return cr_dev_read(((struct held *)ctx)->s->dev, byte, buf, len);
}

static const struct kvt_recover_sink held_sink = {
	.block = held_block,
	.ns = held_ns,
	.kill = held_kill,
};

static void collect_held(struct cr_store *s, u32 seg, struct held *h)
{
	static u64 buf[KVT_RECOVER_BUF_MIN / 8];
	struct kvt_recover r = {
		.geo = &s->geo,
		.read = held_read,
		.sink = &held_sink,
		.ctx = h,
		.buf = (u8 *)buf,
		.buf_bytes = sizeof(buf),
		.entries_only = true,
	};
	struct kvt_seg_found f;
	u32 i, n;

	*h = (struct held) { .s = s };
	if (!kvt_wlog_holds(&s->w, seg))
		return;
	kvt_recover_segment(&r, seg, &f);
	CR_ASSERT(kvt_wlog_held_all(&s->w, seg, &f));
	for (i = 0, n = 0; i < h->nr_kills; i++) {
		if (kvt_wlog_kill_outlives(&s->w, seg, &h->kills[i]))
			h->kills[n++] = h->kills[i];
	}
	h->nr_kills = n;
}

static void end_ns(struct cr_store *s, u32 seg, const struct kvt_nsdef *d)
{
	struct kvt_nsdef def = *d;
	u32 i;

	for (i = 0; i < CR_SLOTS; i++) {
		if (s->ns[i].id == d->id && !(d->flags & KVT_NSF_GONE) &&
		    kvt_wlog_homed(&s->w, seg, &s->ns[i].home)) {
			s->count[CR_N_HOMED]++;
			return;
		}
		if (s->ns[i].id == d->id && !(d->flags & KVT_NSF_GONE) &&
		    !kvt_env_broken(NS_NOW))
			cr_nsdef(s, i, &def);
		/* Never a definition after its end, which may still be on its way. */
		if (s->ns[i].id == d->id && s->ns[i].going) {
			def.flags = KVT_NSF_GONE;
			def.life_mark = kvt_wlog_life_mark(&s->w);
			def.life_first = cr_ns_first(s, i);
		}
	}
	CR_ASSERT(!cr_tell_ns(s, KVT_HEAD_CARRY, &def, 0));
}

/* For the end of a dead segment: the last free one, if need be. */
static bool end_open(struct cr_store *s, u32 seg)
{
	u32 i;

	if (!cr_open(s, KVT_HEAD_CARRY, kvt_wlog_end_urgent(&s->w, seg)))
		return false;
	s->last_seg = s->log.open[KVT_HEAD_CARRY];
	s->last_for_bad = s->w.segs[seg].bad;
	/* Others that would have given one back come first, but what is doomed has to be told. */
	for (i = 0; i < s->geo.nr_segs && !s->w.segs[seg].doom; i++) {
		if (!s->w.segs[i].bad && kvt_wlog_may_end(&s->w, i))
			s->last_for_bad = false;
	}
	return true;
}

/* End one dead segment. False: there is none, or it cannot be done now. */
bool cr_end_one(struct cr_store *s)
{
	u32 seg = kvt_wlog_next_end(&s->w), tries, i;
	static struct held h;
	enum kvt_wlog_status st = KVT_W_BUSY;

	if (seg == KVT_NO_SEG)
		return false;
	collect_held(s, seg, &h);
	for (tries = 0; tries < 4; tries++) {
		st = kvt_wlog_end_start(&s->w, h.nr_kills, h.nr_ns);
		if (st == KVT_W_CLOSE)
			cr_close(s, KVT_HEAD_CARRY);
		else if (st != KVT_W_SEGMENT || !end_open(s, seg))
			break;
	}
	/* The driver gives such a member up. What was promised is there after a restart. */
	if (st == KVT_W_SEGMENT && kvt_wlog_stuck(&s->w)) {
		CR_ASSERT(s->write_errors);
		/* Not for the end of one that gives nothing back, while others would have. */
		CR_ASSERT(s->w.segs[s->last_seg].bad || s->last_for_bad);
		s->count[CR_N_STUCK]++;
		longjmp(*s->dev->crash, 1);
	}
	CR_ASSERT(st != KVT_W_NEVER);
	if (st)
		return false;
	for (i = 0; i < h.nr_ns; i++)
		end_ns(s, seg, &h.ns[i]);
	for (i = 0; i < h.nr_kills; i++)
		kvt_wlog_end_kill(&s->w, &h.kills[i]);
	CR_ASSERT(!kvt_wlog_end(&s->w, seg));
	cr_close(s, KVT_HEAD_CARRY);
	s->count[CR_N_ENDS]++;
	return true;
}

/* Kills of what recovery did not use, as far as the ring takes them. */
void cr_todo_kills(struct cr_store *s)
{
	while (s->nr_todo) {
		const struct cr_todo *t = &s->todo[s->nr_todo - 1];

		if (kvt_wlog_kill(&s->w, t->seg, t->unit, t->life))
			return;
		s->nr_todo--;
	}
}

bool cr_write_kills(struct cr_store *s)
{
	enum kvt_log_head head = cr_random(s->rng, 2) ? KVT_HEAD_CARRY : KVT_HEAD_DEMOTE;
	enum kvt_wlog_status st;
	u32 tries;

	for (tries = 0; tries < 6; tries++) {
		st = kvt_wlog_start_kills(&s->w, head);
		if (!st) {
			cr_close(s, head);
			return true;
		}
		if (st != KVT_W_SEGMENT)
			return false;
		/* Where there is a segment, before a new one is opened. */
		head = head == KVT_HEAD_CARRY ? KVT_HEAD_DEMOTE : KVT_HEAD_CARRY;
		if (tries >= 1 && !cr_open(s, head, false) && tries >= 3)
			return false;
	}
	return false;
}

static bool in_seg(const struct cr_store *s, const struct cr_block *b, u32 seg)
{
	return b->state != CR_FREE && b->unit != KVT_NO_UNIT &&
	       b->unit / s->geo.seg_units == seg;
}

/* Evict all that is still in a segment; its end kills it. */
static void doom(struct cr_store *s, u32 seg)
{
	u32 id;

	kvt_wlog_doom(&s->w, seg);
	s->count[CR_N_DOOMED]++;
	for (id = 1; id < CR_BLOCKS; id++) {
		struct cr_block *b = &s->block[id];

		if (!in_seg(s, b, seg))
			continue;
		if (b->mem && !b->moving)
			CR_ASSERT(cr_shed(s, id));
		else if (b->state == CR_READY)
			cr_evict(s, id);
		else
			cr_reap(s, id);
	}
}

void cr_clean_ends(struct cr_store *s)
{
	u32 seg;

	for (seg = 0; seg < s->geo.nr_segs; seg++) {
		if (s->segs[seg].state != KVT_SEG_CLEANING)
			continue;
		if (s->w.segs[seg].doom && s->segs[seg].live)
			doom(s, seg);
		else
			kvt_log_clean_end(&s->log, seg);
	}
}

static u32 fullest_or_not(struct cr_store *s)
{
	u32 seg, best = KVT_NO_SEG;

	for (seg = 0; seg < s->geo.nr_segs; seg++) {
		const struct kvt_seg *g = &s->segs[seg];

		if (g->state == KVT_SEG_SEALED && !g->writes &&
		    (best == KVT_NO_SEG || g->live < s->segs[best].live))
			best = seg;
	}
	if (best != KVT_NO_SEG)
		CR_ASSERT(kvt_log_claim(&s->log, best));
	return best;
}

/*
 * Empty a segment: carry what is in it, but some copies; what cannot be carried is given
 * up if @hard.
 */
bool cr_clean(struct cr_store *s, bool hard)
{
	u64 room = kvt_log_room(&s->log);
	u32 seg = kvt_log_victim(&s->log), id, left = 0;
	bool carried = seg != KVT_NO_SEG && s->log.segs[seg].carried;

	if (seg == KVT_NO_SEG && hard)
		seg = fullest_or_not(s);
	if (seg == KVT_NO_SEG)
		return false;
	for (id = 1; id < CR_BLOCKS; id++) {
		struct cr_block *b = &s->block[id];

		if (!in_seg(s, b, seg))
			continue;
		if (b->mem && !b->moving && cr_random(s->rng, 4) && cr_shed(s, id))
			continue;
		if (b->state != CR_READY || b->moving || left ||
		    !cr_put(s, KVT_HEAD_CARRY, id, true))
			left++;
		else
			s->count[CR_N_CARRIED]++;
	}
	cr_close(s, KVT_HEAD_CARRY);
	if (left && hard)
		doom(s, seg);
	cr_clean_ends(s);
	kvt_log_emptied(&s->log, carried, room);
	return true;
}
