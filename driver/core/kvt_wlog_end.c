// SPDX-License-Identifier: GPL-2.0
/*
 * Writer of a member, second half: what has ended, what is durable, what is dead.
 * See kvt_wlog.h for the model and the rules.
 *
 * Invariants: a batch stays in its table until it is durable and the kills that
 * this brings are in the ring, so kvt_wlog_durable_seq() can only be passed by what
 * is dead or alive for good. A kill stays in the ring until its batch is durable;
 * if that fails it is pending again.
 */
#include "kvt_wlog.h"

/**
 * kvt_wlog_kill_needed() - does a kill say anything that matters
 * @w: writer
 * @k: kill
 * Return: whether it is neither obsolete, its life being over, nor said by an end.
 */
bool kvt_wlog_kill_needed(const struct kvt_wlog *w, const struct kvt_kill *k)
{
	const struct kvt_wseg *ws = &w->segs[k->seg];

	if (k->life != ws->life && k->life != ws->media_life)
		return false;
	return k->unit == KVT_KILL_ALL || k->life > ws->ended;
}

/**
 * kvt_wlog_kill_outlives() - does a kill have to be carried when its segment is ended
 * @w:   writer
 * @seg: which is being ended
 * @k:   kill that was found in it
 * Return: whether it is needed, and not said by that end.
 */
bool kvt_wlog_kill_outlives(const struct kvt_wlog *w, u32 seg, const struct kvt_kill *k)
{
	return kvt_wlog_kill_needed(w, k) && (k->seg != seg || k->life != w->segs[seg].life);
}

void kvt_wlog_ring_trim(struct kvt_wlog *w)
{
	while (w->tail < w->head && kvt_wlog_ring_at(w, w->tail)->batch == KVT_WKILL_DONE)
		w->tail++;
	w->take = max(w->take, w->tail);
}

/**
 * kvt_wlog_kill_room() - how many kills the ring still takes
 * @w: writer
 */
u32 kvt_wlog_kill_room(const struct kvt_wlog *w)
{
	return w->cfg.ring - (u32)(w->head - w->tail);
}

/**
 * kvt_wlog_kill() - a record is dead that the log does not account for
 * @w:    writer
 * @seg:  where it lies
 * @unit: within the segment
 * @life: of the segment when it was written
 *
 * For what recovery has found and the caller does not use.
 * Return: KVT_W_OK or KVT_W_KILLS.
 */
enum kvt_wlog_status kvt_wlog_kill(struct kvt_wlog *w, u32 seg, u32 unit, u64 life)
{
	struct kvt_wkill *k;

	if (w->given_up)
		return KVT_W_OK;
	if (!kvt_wlog_kill_room(w))
		return KVT_W_KILLS;
	k = kvt_wlog_ring_at(w, w->head++);
	k->kill.seg = seg;
	k->kill.unit = unit;
	k->kill.life = life;
	k->batch = 0;
	w->nr_pending++;
	w->segs[seg].nr_killed++;
	return KVT_W_OK;
}

/**
 * kvt_wlog_free() - a block is not at this address any more
 * @w:     writer
 * @unit:  its address
 * @units: length
 *
 * The record is dead for good when a fence taken after this has passed.
 * Return: KVT_W_OK; KVT_W_KILLS: nothing has changed.
 */
enum kvt_wlog_status kvt_wlog_free(struct kvt_wlog *w, u32 unit, u32 units)
{
	u32 seg = kvt_log_seg_of(w->cfg.log, unit), at = unit - seg * w->cfg.geo->seg_units;
	struct kvt_wopen *o = kvt_wopen_of(w, seg);
	struct kvt_wrec *rec = o ? kvt_wrec_find(o, at) : NULL;
	struct kvt_wbatch *b = rec ? kvt_wbatch_of_rec(w, o, (u32)(rec - o->blocks)) : NULL;

	if (b && b->state == KVT_WBATCH_OPEN) {
		rec->mark = KVT_WREC_OMIT;
	} else if (!w->segs[seg].doom) {
		if (kvt_wlog_kill(w, seg, at, w->segs[seg].life))
			return KVT_W_KILLS;
		if (rec)
			rec->mark = KVT_WREC_DEAD;
	}
	kvt_log_free(w->cfg.log, unit, units);
	return KVT_W_OK;
}

/**
 * kvt_wlog_unput() - a block that was put does not go there after all
 * @w:     writer
 * @unit:  address from kvt_wlog_put(); its batch is not reported written yet
 * @units: length
 *
 * Where it was carried from is the block's again.
 */
void kvt_wlog_unput(struct kvt_wlog *w, u32 unit, u32 units)
{
	u32 seg = kvt_log_seg_of(w->cfg.log, unit), i, nr;
	struct kvt_wopen *o = kvt_wopen_of(w, seg);
	struct kvt_wrec *rec = kvt_wrec_find(o, unit - seg * w->cfg.geo->seg_units);
	struct kvt_wbatch *b;

	nr = (u32)(rec - o->blocks);
	b = kvt_wbatch_of_rec(w, o, nr);
	rec->mark = b->state == KVT_WBATCH_OPEN ? KVT_WREC_OMIT : KVT_WREC_VOID;
	for (i = 0; i < b->nr_src; i++) {
		if (b->src[i].rec == nr)
			b->src[i].log = NULL;
	}
	kvt_log_free(w->cfg.log, unit, units);
}

/* The write of a batch failed: its kills wait again, its ends did not happen. */
static void kvt_wbatch_fail(struct kvt_wlog *w, struct kvt_wbatch *b)
{
	u64 pos;
	u32 i;

	for (pos = w->head; pos > w->tail; pos--) {
		struct kvt_wkill *k = kvt_wlog_ring_at(w, pos - 1);

		if (k->batch != b->ordinal)
			continue;
		k->batch = 0;
		w->nr_pending++;
		w->take = min(w->take, pos - 1);
	}
	for (i = 0; b->nr_ends && i < w->cfg.geo->nr_segs; i++) {
		if (w->segs[i].phase == KVT_WSEG_ENDING && w->segs[i].wait == b->ordinal)
			w->segs[i].phase = KVT_WSEG_NONE;
	}
	b->nr_ends = 0;
}

static void kvt_wbatch_ends(struct kvt_wlog *w, struct kvt_wbatch *b)
{
	struct kvt_wseg *ws;
	u32 i;

	for (i = 0; b->nr_ends && i < w->cfg.geo->nr_segs; i++) {
		ws = &w->segs[i];
		if (ws->phase != KVT_WSEG_ENDING || ws->wait != b->ordinal)
			continue;
		ws->phase = KVT_WSEG_NONE;
		ws->ended = ws->life;
		w->obsoleted += ws->nr_killed;
		ws->unsealed = false;
		if (ws->doom)
			w->nr_doomed--;
		ws->doom = 0;
		w->nr_worn -= ws->worn;
		/* The last ones stay in use: ends live on each giving one back. */
		ws->bad |= ws->worn && w->cfg.log->nr_free > w->cfg.log->keep[KVT_HEAD_DEMOTE];
		ws->worn = false;
		if (w->cfg.trim && !ws->bad && !w->given_up) {
			ws->phase = KVT_WSEG_TRIM;
			w->nr_trim++;
			continue;
		}
		kvt_log_release(w->cfg.log, i, ws->bad);
	}
	b->nr_ends = 0;
}

/* Give back one place that a block was carried from. False: not now. */
static bool kvt_wsrc_free(struct kvt_wlog *w, const struct kvt_wsrc *src)
{
	struct kvt_wlog *s = src->log;
	u32 seg;

	if (!s)
		return true;
	if (kvt_wlog_free(s, src->unit, src->units)) {
		s->nudged |= s != w && !s->awaited;
		s->awaited |= s != w;
		return false;
	}
	seg = kvt_log_seg_of(s->cfg.log, src->unit);
	s->nudged |= s->segs[seg].doom && !s->cfg.log->segs[seg].live;
	return true;
}

/*
 * What dies with a batch becoming durable. False: some ring is full; go on later. One that
 * waits does not keep others waiting: the room that it waits for may depend on them.
 */
static bool kvt_wbatch_drain(struct kvt_wlog *w, struct kvt_wbatch *b)
{
	struct kvt_wopen *o = &w->opens[b->open];
	u32 i, left = 0;

	for (i = 0; i < b->nr_src; i++) {
		if (!kvt_wsrc_free(w, &b->src[i]))
			b->src[left++] = b->src[i];
	}
	b->nr_src = left;
	if (left)
		return false;
	for (; b->drained < b->nr_blocks; b->drained++) {
		struct kvt_wrec *rec = &o->blocks[b->first_block + b->drained];

		if (rec->mark != KVT_WREC_VOID)
			continue;
		if (!w->segs[b->seg].doom && kvt_wlog_kill(w, b->seg, rec->rec.unit, o->life))
			return false;
		rec->mark = KVT_WREC_DEAD;
	}
	return true;
}

/* No more goes into a segment after a batch that failed. */
void kvt_wopen_break(struct kvt_wlog *w, struct kvt_wopen *o, bool first)
{
	o->broken = true;
	if (first) {
		w->segs[o->seg].bad = true;
		if (o->state == KVT_WOPEN_SEALING)
			o->state = KVT_WOPEN_FAILED;
	}
	if (o->state == KVT_WOPEN_OPEN && o->batch == KVT_WLOG_BATCHES)
		kvt_wlog_seal(w, o->head);
}

/**
 * kvt_wlog_written() - the write of a batch is over
 * @w:     writer
 * @batch: handle from kvt_wlog_close()
 * @err:   0, or some of it could not be written
 *
 * Before this the caller has let the moves of its blocks take effect, but for those
 * that are carried, or has taken them back with kvt_wlog_unput(): all of them after
 * an error. The segment is sealed then, and what other batches it has becomes durable
 * with its footer.
 */
void kvt_wlog_written(struct kvt_wlog *w, u32 batch, int err)
{
	struct kvt_wbatch *b = &w->batches[batch];

	b->flush = w->flush_started + 1;
	w->write_flush = b->flush;
	b->state = err ? KVT_WBATCH_FAILED : KVT_WBATCH_WRITTEN;
	if (err) {
		kvt_wbatch_fail(w, b);
		kvt_wopen_break(w, &w->opens[b->open], !b->number);
	} else if (kvt_env_broken(REUSE)) {
		kvt_wbatch_ends(w, b);
		kvt_wbatch_drain(w, b);
	}
}

/**
 * kvt_wlog_footer_written() - the write of summary and footer is over
 * @w:      writer
 * @handle: from kvt_wlog_footer()
 * @err:    0, or it could not be written: the segment is not used again
 */
void kvt_wlog_footer_written(struct kvt_wlog *w, u32 handle, int err)
{
	struct kvt_wopen *o = &w->opens[handle];

	o->flush = w->flush_started + 1;
	w->write_flush = o->flush;
	o->state = err ? KVT_WOPEN_FAILED : KVT_WOPEN_FOOTED;
	if (err)
		w->segs[o->seg].bad = true;
}

/**
 * kvt_wlog_flush_start() - the caller is about to send a flush to the device
 * @w: writer
 * Return: its number.
 */
u64 kvt_wlog_flush_start(struct kvt_wlog *w)
{
	return ++w->flush_started;
}

/**
 * kvt_wlog_flush_done() - a flush has ended well
 * @w:     writer
 * @flush: its number
 *
 * One that fails is not reported: a device that fails a flush may have forgotten
 * anything, and must not be written to any more.
 */
void kvt_wlog_flush_done(struct kvt_wlog *w, u64 flush)
{
	w->flush_done = max(w->flush_done, flush);
	if (w->super_state == 2 && w->super_flush <= w->flush_done) {
		w->super_state = 0;
		if (w->super_dirty) {
			w->life_limit = w->super_life;
			w->seq_limit = w->super_seq;
		}
	}
}

/*
 * R5: an earlier batch of the segment that is not durable hides this one; and so does
 * one that was lost for good, when there will be no footer.
 */
static bool kvt_wbatch_hidden(const struct kvt_wlog *w, const struct kvt_wbatch *b)
{
	const struct kvt_wbatch *e;
	u32 i;

	if (w->opens[b->open].state == KVT_WOPEN_FAILED)
		return true;
	if (kvt_env_broken(PREFIX))
		return false;
	for (i = 0; i < KVT_WLOG_BATCHES; i++) {
		e = &w->batches[i];
		if (e->state != KVT_WBATCH_FREE && e->state != KVT_WBATCH_DURABLE &&
		    e->seg == b->seg && e->number < b->number)
			return true;
	}
	return false;
}

static void kvt_wbatch_durable(struct kvt_wlog *w, struct kvt_wbatch *b)
{
	u64 pos;

	b->state = KVT_WBATCH_DURABLE;
	/* From now on recovery finds this life. */
	w->segs[b->seg].media_life = w->opens[b->open].life;
	for (pos = w->tail; pos < w->head; pos++) {
		struct kvt_wkill *k = kvt_wlog_ring_at(w, pos);

		if (k->batch == b->ordinal)
			k->batch = KVT_WKILL_DONE;
	}
	kvt_wlog_ring_trim(w);
	kvt_wbatch_ends(w, b);
}

/* A batch that recovery will not find: whatever it said is not said. */
static void kvt_wbatch_lose(struct kvt_wlog *w, struct kvt_wbatch *b)
{
	if (b->state == KVT_WBATCH_WRITTEN)
		kvt_wbatch_fail(w, b);
	b->state = KVT_WBATCH_DURABLE;
	b->lost = true;
	b->nr_src = 0;
	w->nr_lost++;
}

/* Footers that a flush has covered, or that failed, settle what is left. */
static void kvt_wopen_settle(struct kvt_wlog *w, struct kvt_wopen *o)
{
	bool good = o->state == KVT_WOPEN_FOOTED && o->flush <= w->flush_done;
	struct kvt_wseg *ws = &w->segs[o->seg];
	bool left = false;
	u32 i;

	if (w->given_up && (o->state == KVT_WOPEN_SEALING || o->state == KVT_WOPEN_FOOTED)) {
		o->state = KVT_WOPEN_FAILED;
		good = false;
	}
	if (!good && o->state != KVT_WOPEN_FAILED)
		return;
	for (i = 0; i < KVT_WLOG_BATCHES; i++) {
		struct kvt_wbatch *b = &w->batches[i];

		if (b->state == KVT_WBATCH_FREE || &w->opens[b->open] != o)
			continue;
		left = true;
		if (b->state == KVT_WBATCH_WRITTEN && good) {
			kvt_wbatch_durable(w, b);
		} else if (b->state == KVT_WBATCH_FAILED || b->state == KVT_WBATCH_WRITTEN) {
			kvt_wbatch_lose(w, b);
			/* A footer has them all the same. */
			ws->nr_entries -= good ? 0 : b->nr_ns + b->nr_kills;
			ws->nr_kills -= good ? 0 : b->nr_kills;
			ws->nr_light = min(ws->nr_light, ws->nr_kills);
			ws->nr_lost += good ? 0 : b->nr_ns + b->nr_kills;
		}
	}
	if (left)
		return;
	if (good)
		ws->media_life = o->life;
	ws->unsealed = !good;
	o->state = KVT_WOPEN_FREE;
	kvt_log_write_done(w->cfg.log, o->seg * w->cfg.geo->seg_units);
}

/*
 * The oldest batch whose fate is known and was not told. Those that were told leave
 * the table when what died with them is on its way: not before, because the blocks
 * that were carried must have got their new addresses.
 */
static struct kvt_wbatch *kvt_wlog_retire(struct kvt_wlog *w)
{
	struct kvt_wbatch *b, *best = NULL;
	u32 i;

	for (i = 0; i < KVT_WLOG_BATCHES; i++) {
		b = &w->batches[i];
		if (b->state == KVT_WBATCH_WRITTEN && b->flush <= w->flush_done &&
		    !kvt_wbatch_hidden(w, b))
			kvt_wbatch_durable(w, b);
		if (b->state != KVT_WBATCH_DURABLE)
			continue;
		if (b->told && kvt_wbatch_drain(w, b))
			b->state = KVT_WBATCH_FREE;
		else if (!b->told && (!best || b->ordinal < best->ordinal))
			best = b;
	}
	return best;
}

/**
 * kvt_wlog_advance() - draw the consequences of what was reported
 * @w: writer
 * @d: out: a batch that has become durable, or never will be
 *
 * To be called after each report of a write or flush, and when the ring was full,
 * until it returns false: then nothing more has become durable.
 */
bool kvt_wlog_advance(struct kvt_wlog *w, struct kvt_wlog_done *d)
{
	struct kvt_wbatch *b = kvt_wlog_retire(w);
	u32 i;

	for (i = 0; i < KVT_WLOG_OPENS; i++)
		kvt_wopen_settle(w, &w->opens[i]);
	if (!b)
		b = kvt_wlog_retire(w);
	if (!b)
		return false;
	b->told = true;
	d->seg = b->seg;
	d->first_id = b->first_id;
	d->nr_ids = b->nr_blocks;
	d->unit = b->seg * w->cfg.geo->seg_units + b->unit + b->header_units;
	d->units = b->payload_units;
	d->err = b->lost ? -EIO : 0;
	return true;
}

/**
 * kvt_wlog_owes() - do others' places wait for this writer
 * @w: writer
 *
 * Those that blocks in durable batches were carried from. Nobody else knows of them.
 * Return: whether there are any.
 */
bool kvt_wlog_owes(const struct kvt_wlog *w)
{
	u32 i;

	for (i = 0; i < KVT_WLOG_BATCHES; i++) {
		if (w->batches[i].state == KVT_WBATCH_DURABLE && w->batches[i].nr_src)
			return true;
	}
	return false;
}

/**
 * kvt_wlog_wakes() - may batches of others go on that waited for room in this ring
 * @w: writer
 *
 * Return: whether kvt_wlog_advance() is to be called for all others; told once.
 */
bool kvt_wlog_wakes(struct kvt_wlog *w)
{
	if (!w->awaited || (!w->given_up && !kvt_wlog_kill_room(w)))
		return false;
	w->awaited = false;
	return true;
}

static bool kvt_wlog_wants_flush(const struct kvt_wlog *w)
{
	u32 i;

	for (i = 0; i < KVT_WLOG_BATCHES; i++) {
		if (w->batches[i].state == KVT_WBATCH_WRITTEN &&
		    w->batches[i].flush > w->flush_done)
			return true;
	}
	for (i = 0; i < KVT_WLOG_OPENS; i++) {
		const struct kvt_wopen *o = &w->opens[i];

		if ((o->state == KVT_WOPEN_FOOTED || o->state == KVT_WOPEN_SEALING) &&
		    o->flush > w->flush_done)
			return true;
	}
	return w->super_state == 2 || w->found_flush > w->flush_done;
}

/*
 * One that is worn is ended at once, and what is dead while fences wait for the end of a
 * doomed one; others when there is a need.
 */
static u32 kvt_wlog_wants_end(const struct kvt_wlog *w)
{
	bool need = w->nr_doomed || w->cfg.log->nr_free < w->cfg.free_aim;
	u32 seg = need || w->nr_worn ? kvt_wlog_next_end(w) : KVT_NO_SEG;

	if (seg == KVT_NO_SEG || (!need && !w->segs[seg].worn))
		return 0;
	return KVT_WORK_END | (w->nr_doomed || w->segs[seg].worn || kvt_wlog_end_pays(w) ?
			       KVT_WORK_PAYS : 0);
}

/**
 * kvt_wlog_work() - what there is to do in the background
 * @w: writer
 *
 * None of it is urgent as such; a waiter, or a status that a call has returned, makes
 * it so.
 * Return: KVT_WORK_*.
 */
u32 kvt_wlog_work(const struct kvt_wlog *w)
{
	u32 work = 0;

	if (w->given_up)
		return 0;
	if (kvt_wlog_footer_bytes(w))
		work |= KVT_WORK_FOOTER;
	work |= kvt_wlog_wants_end(w);
	if (kvt_wlog_wants_flush(w))
		work |= KVT_WORK_FLUSH;
	if (w->nr_pending > w->cfg.ring / 2)
		work |= KVT_WORK_KILLS;
	if (w->nr_trim)
		work |= KVT_WORK_TRIM;
	return work;
}

/* Something in the batch may yet be killed when it becomes durable. */
static bool kvt_wbatch_brings_kills(const struct kvt_wlog *w, const struct kvt_wbatch *b)
{
	const struct kvt_wopen *o = &w->opens[b->open];
	u32 i;

	if (b->state == KVT_WBATCH_FREE || !b->nr_blocks)
		return false;
	/* The caller gives the addresses of carried blocks back when he is told. */
	if (b->lost && !b->told)
		return true;
	if (b->nr_src || b->state == KVT_WBATCH_OPEN || b->state == KVT_WBATCH_CLOSED)
		return true;
	for (i = 0; i < b->nr_blocks; i++) {
		if (o->blocks[b->first_block + i].mark == KVT_WREC_VOID)
			return true;
	}
	return false;
}

/**
 * kvt_wlog_fence() - remember this moment
 * @w: writer
 * @f: out
 *
 * When the fence has passed, no record that was dead or moved away when it was taken
 * can come back: also not the one of a block whose move was under way. So DROP
 * returns after a fence, whether or not the key was found. To make it pass: close
 * the open batches, write, flush, write the kills that this has brought, flush.
 */
void kvt_wlog_fence(const struct kvt_wlog *w, struct kvt_wlog_fence *f)
{
	u32 i;

	f->batch = 0;
	for (i = 0; i < KVT_WLOG_BATCHES; i++) {
		if (kvt_wbatch_brings_kills(w, &w->batches[i]))
			f->batch = max(f->batch, w->batches[i].ordinal);
	}
	f->kill = f->batch ? U64_MAX : w->head;
	f->doom = w->nr_doomed ? w->dooms : 0;
}

/**
 * kvt_wlog_sync() - a fence for what is alive: fsync
 * @w: writer
 * @f: out: passes when all that was put by now is durable, too. Whether some of it
 *     was lost, @nr_lost tells
 */
void kvt_wlog_sync(const struct kvt_wlog *w, struct kvt_wlog_fence *f)
{
	kvt_wlog_fence(w, f);
	if (kvt_env_broken(SYNC))
		return;
	f->batch = w->ordinal;
	f->kill = U64_MAX;
}

/**
 * kvt_wlog_fence_passed() - is it over
 * @w: writer
 * @f: fence; remembers how far it has got
 */
bool kvt_wlog_fence_passed(const struct kvt_wlog *w, struct kvt_wlog_fence *f)
{
	u32 i;

	/* Of this member's own nothing is waited for; where its blocks came from is another's. */
	if (w->given_up)
		return !kvt_wlog_owes(w);
	if (w->flush_done < w->found_flush || kvt_wlog_durable_seq(w) < f->batch)
		return false;
	if (f->kill == U64_MAX)
		f->kill = w->head;
	if (w->tail < f->kill && !kvt_env_broken(FENCE))
		return false;
	for (i = 0; f->doom && w->nr_doomed && i < w->cfg.geo->nr_segs; i++) {
		if (w->segs[i].doom && w->segs[i].doom <= f->doom)
			return false;
	}
	f->doom = 0;
	return true;
}

/**
 * kvt_wlog_give_up() - nothing is written to this member any more
 * @w: writer
 *
 * For a device that failed a flush, is gone, or is about to be let go: what it has
 * forgotten nobody knows. Blocks leave without a kill, nothing more is put, ended or
 * sealed, and fences pass, unless it owes: see kvt_wlog_owes(). Batches that are not durable are lost as soon as their
 * writes are over: kvt_wlog_advance() tells.
 */
void kvt_wlog_give_up(struct kvt_wlog *w)
{
	u32 i;

	w->given_up = true;
	for (i = 0; i < KVT_WLOG_OPENS; i++) {
		struct kvt_wopen *o = &w->opens[i];

		if (o->state != KVT_WOPEN_OPEN)
			continue;
		/* One that is open is sealed when it is closed. */
		o->broken = true;
		if (o->batch == KVT_WLOG_BATCHES)
			kvt_wlog_seal(w, o->head);
	}
}
