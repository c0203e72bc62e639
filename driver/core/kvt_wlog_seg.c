// SPDX-License-Identifier: GPL-2.0
/*
 * Writer of a member, third part: the ends of segments, what a restart has found,
 * superblocks. See kvt_wlog.h for the model and the rules.
 */
#include "kvt_wlog.h"

#define PAYS_ONE	1024u		/* a segment */
#define PAYS_LEAST	(PAYS_ONE / 8)	/* that is to be gained by emptying one */

/**
 * kvt_wlog_may_end() - can a segment be ended
 * @w:   writer
 * @seg: which
 * Return: whether it is dead, and nobody is about to.
 */
bool kvt_wlog_may_end(const struct kvt_wlog *w, u32 seg)
{
	return !w->given_up && w->cfg.log->segs[seg].state == KVT_SEG_EMPTY &&
	       w->segs[seg].phase == KVT_WSEG_NONE && !w->segs[seg].no_end;
}

/*
 * Kills that the ends of one or two dead segments have to carry, at least. As many as have
 * become obsolete since they were begun may be theirs; but no kill is in both of them.
 */
static u32 kvt_wseg_kills(const struct kvt_wlog *w, const struct kvt_wseg *a,
			  const struct kvt_wseg *b)
{
	u32 nr = a->nr_kills - a->nr_light;
	u64 since = a->fresh;

	if (b) {
		nr += b->nr_kills - b->nr_light;
		since = min(since, b->fresh);
	}
	since = w->obsoleted - since;
	return nr - (u32)min_t(u64, nr, since);
}

/* Of namespaces, what its end may have to carry, about. */
static u32 kvt_wseg_names(const struct kvt_wseg *ws)
{
	u32 nr = ws->nr_entries - ws->nr_kills;

	return nr - min(nr, ws->nr_defs) + ws->nr_home;
}

static bool kvt_wseg_before(const struct kvt_wlog *w, const struct kvt_wseg *a,
			    const struct kvt_wseg *b)
{
	u32 kills_a = kvt_wseg_kills(w, a, NULL), kills_b = kvt_wseg_kills(w, b, NULL);
	bool only_bad = a->bad != b->bad;

	/* The end of one that cannot be written any more frees nothing, and may need a segment. */
	if (only_bad && w->cfg.log->nr_free <= 1)
		return b->bad;
	if (!a->doom != !b->doom)
		return a->doom;
	if (only_bad)
		return b->bad;
	return kills_a != kills_b ? kills_a < kills_b : kvt_wseg_names(a) < kvt_wseg_names(b);
}

/**
 * kvt_wlog_next_end() - the dead segment that is to be ended next
 * @w: writer
 *
 * One that is worn, else one that is doomed, for whose end there are fences that wait, else
 * the one that has the least to be carried. What cannot be written again comes last.
 * The caller collects what the segment holds for others, with kvt_recover_segment()
 * and entries_only: kills for which kvt_wlog_kill_outlives() holds, and one definition of each namespace that exists and is
 * not kvt_wlog_homed(), or for which kvt_wlog_ns_needed() holds. A namespace that exists
 * is defined as it is now, whatever was found; of one that is being destroyed the end is
 * told, because a definition must never follow that. Then, under one hold of the lock:
 * kvt_wlog_end_start(), kvt_wlog_end_kill() and kvt_wlog_ns() for each, kvt_wlog_end(), and
 * for the carry head kvt_wlog_close(). Nothing has to be read unless kvt_wlog_holds().
 * Return: segment, or KVT_NO_SEG.
 */
u32 kvt_wlog_next_end(const struct kvt_wlog *w)
{
	u32 i, best = KVT_NO_SEG;

	/* Asked for each batch, and there may be very many segments. */
	if (!w->cfg.log->nr_empty)
		return best;
	for (i = 0; i < w->cfg.geo->nr_segs; i++) {
		if (!kvt_wlog_may_end(w, i))
			continue;
		if (w->segs[i].worn && !w->segs[i].bad)
			return i;
		if (best == KVT_NO_SEG || kvt_wseg_before(w, &w->segs[i], &w->segs[best]))
			best = i;
	}
	return best;
}

/* May this segment still become room for others: it is in use, or dead. */
static bool kvt_wseg_hope(const struct kvt_wlog *w, u32 seg)
{
	const struct kvt_wseg *ws = &w->segs[seg];
	u8 state = w->cfg.log->segs[seg].state;

	if (ws->bad || state == KVT_SEG_BAD || state == KVT_SEG_FREE)
		return false;
	return state != KVT_SEG_EMPTY || !ws->no_end || ws->unread_ms;
}

/**
 * kvt_wlog_end_urgent() - may the end of a dead segment take the last free one
 * @w:   writer
 * @seg: from kvt_wlog_next_end()
 * Return: whether it gives one back for it, or must be told, or nothing else ever will.
 */
bool kvt_wlog_end_urgent(const struct kvt_wlog *w, u32 seg)
{
	u32 i;

	if (!w->segs[seg].bad || w->segs[seg].doom)
		return true;
	for (i = 0; i < w->cfg.geo->nr_segs; i++) {
		if (i != seg && kvt_wseg_hope(w, i))
			return false;
	}
	return true;
}

/* Fits what one or two dead segments hold for others, or both together, what is left of another. */
static bool kvt_wseg_fits(const struct kvt_wlog *w, const struct kvt_wseg *a,
			  const struct kvt_wseg *b, u32 nr_kills, u32 nr_ns)
{
	u32 names = kvt_wseg_names(a) + (b ? kvt_wseg_names(b) : 0);

	/* Each end is a kill as well. */
	return nr_kills + kvt_wseg_kills(w, a, b) + (b ? 2 : 1) <= kvt_wlog_usual_kills(w) &&
	       nr_ns + names <= w->cfg.max_ns;
}

/**
 * kvt_wlog_end_pays() - would there be more room, if dead segments were ended
 * @w: writer
 *
 * Where the entries of one go must be less than a segment: what is begun already, or one for two
 * of them. Else each end would begin a segment that dies as full as the one that it frees,
 * again and again. Kills that are not known to be needed count as obsolete here; an end makes it
 * known, so that what does not pay ends. Of namespaces that have ended it is not known, and they
 * count.
 *
 * This is an estimate, for who has time. Whoever needs a segment has one ended whatever this
 * says: what dies in it, or what it opens, may be what he needs.
 */
bool kvt_wlog_end_pays(const struct kvt_wlog *w)
{
	u32 best = kvt_wlog_next_end(w), i = w->head_open[KVT_HEAD_CARRY];
	const struct kvt_wopen *o = i < KVT_WLOG_OPENS ? &w->opens[i] : NULL;
	const struct kvt_wseg *ws;

	if (best == KVT_NO_SEG)
		return false;
	ws = &w->segs[best];
	if (!kvt_wseg_kills(w, ws, NULL) && !kvt_wseg_names(ws))
		return true;
	if (o && !o->broken && kvt_wseg_fits(w, ws, NULL, o->nr_kills, o->nr_ns))
		return true;
	for (i = 0; i < w->cfg.geo->nr_segs; i++) {
		if (i != best && kvt_wlog_may_end(w, i) && kvt_wseg_fits(w, ws, &w->segs[i], 0, 0))
			return true;
	}
	return false;
}

/* How much @nr of what there may be @most of in a segment is of it, in units of 1 / PAYS_ONE. */
static u64 kvt_wlog_part(u32 nr, u32 most)
{
	return div64_u64((u64)nr * PAYS_ONE, max(most, 1u));
}

/**
 * kvt_wlog_empty_pays() - would there be more room, if a segment were emptied
 * @w:   writer
 * @seg: which; not dead yet
 *
 * Its blocks are written to another one, and when it is ended what it holds for others is as well. If
 * that is as much as fills a segment nothing is gained: few blocks, and many kills, would go from
 * one segment to the next for ever. An estimate, for who has time, as kvt_wlog_end_pays().
 */
bool kvt_wlog_empty_pays(const struct kvt_wlog *w, u32 seg)
{
	const struct kvt_log *l = w->cfg.log;
	const struct kvt_wseg *ws = &w->segs[seg];

	return kvt_wlog_part(kvt_seg_needed(&l->segs[seg]), l->seg_units) +
	       kvt_wlog_part(kvt_wseg_kills(w, ws, NULL), kvt_wlog_usual_kills(w)) +
	       kvt_wlog_part(kvt_wseg_names(ws), w->cfg.max_ns) <= PAYS_ONE - PAYS_LEAST;
}

/**
 * kvt_wlog_stuck() - is there no segment left that the end of another could be written to
 * @w: writer
 *
 * Ends free segments, and need one for that: the last free one, if there is no other. When the
 * first write to that one fails, none is left, and none will come: no kill and no end can be told
 * any more. To be asked when the carry head wants a segment and kvt_wlog_open() with @urgent
 * has none.
 */
bool kvt_wlog_stuck(const struct kvt_wlog *w)
{
	u32 i;

	if (w->given_up || w->cfg.log->nr_free ||
	    w->head_open[KVT_HEAD_CARRY] < KVT_WLOG_OPENS)
		return false;
	for (i = 0; i < w->cfg.geo->nr_segs; i++) {
		if (w->segs[i].phase != KVT_WSEG_NONE)
			return false;
	}
	return true;
}

/**
 * kvt_wlog_holds() - may there be anything in a dead segment that is for others
 * @w:   writer
 * @seg: from kvt_wlog_next_end()
 */
bool kvt_wlog_holds(const struct kvt_wlog *w, u32 seg)
{
	return w->segs[seg].nr_entries || w->segs[seg].nr_lost;
}

/**
 * kvt_wlog_held_all() - was all found that a dead segment holds for others
 * @w:   writer
 * @seg: from kvt_wlog_next_end()
 * @f:   what kvt_recover_segment() says of it
 *
 * A header that is damaged meanwhile ends the walk, and if it is the first one the segment
 * looks free: what it says of other segments must not be forgotten for that.
 */
bool kvt_wlog_held_all(const struct kvt_wlog *w, u32 seg, const struct kvt_seg_found *f)
{
	const struct kvt_wseg *ws = &w->segs[seg];

	/* What may be there is taken if it can be had; only what is certain to be has to be. */
	if (!ws->nr_entries || ws->media_life != ws->life)
		return true;
	if (f->nr_io || f->life != ws->life)
		return false;
	/* A summary is complete, and leaves out what has become obsolete. */
	return f->state == KVT_RC_SEALED || f->nr_ns + f->nr_kills >= ws->nr_entries;
}

/**
 * kvt_wlog_end_start() - begin the batch that ends a segment
 * @w:        writer
 * @nr_kills: how many will be added, those for which kvt_wlog_kill_outlives() holds
 * @nr_ns:    definitions that will be written
 *
 * It goes to the carry head.
 * Return: KVT_W_OK; _CLOSE; _SEGMENT: kvt_wlog_open() with @urgent; _BUSY; _NEVER:
 * it holds more than a writer puts into one.
 */
enum kvt_wlog_status kvt_wlog_end_start(struct kvt_wlog *w, u32 nr_kills, u32 nr_ns)
{
	u32 i = w->head_open[KVT_HEAD_CARRY];
	const struct kvt_wopen *o = i < KVT_WLOG_OPENS ? &w->opens[i] : NULL;

	if (nr_kills >= w->cfg.max_kills || nr_ns > w->cfg.max_ns)
		return KVT_W_NEVER;
	if (o && o->batch < KVT_WLOG_BATCHES)
		return KVT_W_CLOSE;
	if (o && o->nr_kills && o->nr_kills + nr_kills + 1 > kvt_wlog_usual_kills(w))
		return KVT_W_SEGMENT;
	return kvt_wbatch_start(w, KVT_HEAD_CARRY, nr_ns, 0, nr_kills + 1, 0, true);
}

/**
 * kvt_wlog_end_kill() - carry a kill
 * @w: writer
 * @k: from the segment that is being ended
 */
void kvt_wlog_end_kill(struct kvt_wlog *w, const struct kvt_kill *k)
{
	struct kvt_wopen *o = &w->opens[w->head_open[KVT_HEAD_CARRY]];
	struct kvt_wbatch *b = &w->batches[o->batch];

	if (kvt_wlog_kill_needed(w, k) && !kvt_env_broken(CARRY_KILLS))
		b->cut |= !kvt_wbatch_add_kill(w, b, k, w->cfg.max_kills);
}

/* May a definition that is older than the end @def be in a segment of that life. */
static bool kvt_ns_may_be(const struct kvt_nsdef *def, u64 life)
{
	return life >= def->life_first + kvt_env_broken(NS_FIRST) && life <= def->life_mark;
}

/**
 * kvt_wlog_ns_needed() - is the end of a namespace still to be told
 * @w:   writer
 * @seg: segment that is being ended, or KVT_NO_SEG
 * @def: with KVT_NSF_GONE
 * Return: whether an older definition may be found in another segment.
 */
bool kvt_wlog_ns_needed(const struct kvt_wlog *w, u32 seg, const struct kvt_nsdef *def)
{
	u32 i;

	for (i = 0; i < w->cfg.geo->nr_segs; i++) {
		const struct kvt_wseg *ws = &w->segs[i];

		if (i == seg)
			continue;
		/* Lives end in their order: one that never counted may have ended after it. */
		if (kvt_ns_may_be(def, ws->media_life) && ws->media_life > ws->ended)
			return true;
		if (kvt_ns_may_be(def, ws->life) && ws->life > ws->ended)
			return true;
	}
	return false;
}

/**
 * kvt_wlog_end() - say that all that was in a segment is dead
 * @w:   writer
 * @seg: from kvt_wlog_next_end(); free when this batch is durable
 * Return: KVT_W_OK, or KVT_W_NEVER: more was added than announced, it did not end.
 */
enum kvt_wlog_status kvt_wlog_end(struct kvt_wlog *w, u32 seg)
{
	struct kvt_wopen *o = &w->opens[w->head_open[KVT_HEAD_CARRY]];
	struct kvt_wbatch *b = &w->batches[o->batch];
	struct kvt_kill k = {
		.seg = seg,
		.unit = KVT_KILL_ALL,
		.life = w->segs[seg].life,
	};

	if (b->cut || !kvt_wbatch_add_kill(w, b, &k, w->cfg.max_kills))
		return KVT_W_NEVER;
	w->segs[seg].phase = KVT_WSEG_ENDING;
	w->segs[seg].wait = b->ordinal;
	b->nr_ends++;
	return KVT_W_OK;
}

/**
 * kvt_wlog_next_trim() - a segment that is to be discarded
 * @w: writer
 *
 * All of it, also if only some of that happens: nothing in it counts. It is not used
 * before kvt_wlog_trimmed(), so that the discard cannot meet what is written next.
 * Return: segment, or KVT_NO_SEG.
 */
u32 kvt_wlog_next_trim(const struct kvt_wlog *w)
{
	u32 i;

	for (i = 0; w->nr_trim && !w->given_up && i < w->cfg.geo->nr_segs; i++) {
		if (w->segs[i].phase == KVT_WSEG_TRIM)
			return i;
	}
	return KVT_NO_SEG;
}

/**
 * kvt_wlog_trimmed() - the discard of a segment is over, well or not
 * @w:   writer
 * @seg: from kvt_wlog_next_trim(), by the same caller; free now
 */
void kvt_wlog_trimmed(struct kvt_wlog *w, u32 seg)
{
	w->segs[seg].phase = KVT_WSEG_NONE;
	w->nr_trim--;
	kvt_log_release(w->cfg.log, seg, false);
}

/**
 * kvt_wlog_doom() - a segment will be emptied whatever it takes
 * @w:   writer
 * @seg: CLEANING
 *
 * From now on blocks leave it without a kill each: its end says it all. Fences wait
 * for that, so the segment must not become SEALED again.
 */
void kvt_wlog_doom(struct kvt_wlog *w, u32 seg)
{
	if (w->segs[seg].doom)
		return;
	w->segs[seg].doom = ++w->dooms;
	w->nr_doomed++;
}

/**
 * kvt_wlog_fault() - something in a segment could not be read back
 * @w:   writer
 * @seg: where
 *
 * After KVT_WLOG_FAULTS_MAX of them in one life nothing more is put into it, and when
 * it has been emptied and ended it is BAD. What is in it stays until then.
 * Return: whether it is worn by this one.
 */
bool kvt_wlog_fault(struct kvt_wlog *w, u32 seg)
{
	struct kvt_wseg *ws = &w->segs[seg];
	struct kvt_wopen *o = kvt_wopen_of(w, seg);

	if (w->given_up || ws->faults == KVT_WLOG_FAULTS_MAX ||
	    ++ws->faults < KVT_WLOG_FAULTS_MAX)
		return false;
	ws->worn = true;
	w->nr_worn++;
	if (o)
		kvt_wopen_break(w, o, false);
	return true;
}

/**
 * kvt_wlog_write_fault() - a payload could not be written to a segment
 * @w:   writer
 * @seg: where
 *
 * Devices repair what they can by themselves, so one failure is enough: the segment is
 * worn, as in kvt_wlog_fault().
 * Return: whether it is worn by this one.
 */
bool kvt_wlog_write_fault(struct kvt_wlog *w, u32 seg)
{
	struct kvt_wseg *ws = &w->segs[seg];

	if (ws->faults < KVT_WLOG_FAULTS_MAX)
		ws->faults = KVT_WLOG_FAULTS_MAX - 1;
	return kvt_wlog_fault(w, seg);
}

/**
 * kvt_wlog_restore() - take over what recovery has found in a segment
 * @w:     writer, just initialised
 * @seg:   segment; restored in the log (kvt_log_restore()), or FREE there
 * @f:     what was found
 * @ended: life of which a kill of all was found, 0: none. That is the life of what was
 *         found, and the segment is FREE; or there is no first header, and perhaps a
 *         footer of that life or of an earlier one
 *
 * That kill is needed until another life has begun: it tells a footer that still stands
 * from damage; and what a device has discarded may be there again after a loss of power.
 */
void kvt_wlog_restore(struct kvt_wlog *w, u32 seg, const struct kvt_seg_found *f, u64 ended)
{
	struct kvt_wseg *ws = &w->segs[seg];

	memset(ws, 0, sizeof(*ws));
	if (f->state == KVT_RC_FREE) {
		ws->life = ended;
		ws->media_life = ended;
		ws->ended = ended;
		return;
	}
	ws->life = f->life;
	ws->media_life = f->life;
	ws->ended = ended;
	ws->nr_entries = f->nr_kills + f->nr_ns;
	ws->nr_defs = f->nr_ns;
	ws->nr_kills = f->nr_kills;
	ws->nr_killed = w->cfg.geo->seg_units;
	ws->unsealed = f->state == KVT_RC_UNSEALED && !ended;
	w->next_life = max(w->next_life, f->life + 1);
}

/**
 * kvt_wlog_restored() - all segments are restored
 * @w:       writer
 * @s:       the superblock that was found
 * @max_seq: highest sequence found on any member
 *
 * What recovery has read may lie in the device's cache only. So nothing of it is
 * durable before the first flush.
 */
void kvt_wlog_restored(struct kvt_wlog *w, const struct kvt_super *s, u64 max_seq)
{
	w->next_life = max(w->next_life, s->life_limit);
	*w->cfg.seq = max(*w->cfg.seq, max(s->seq_limit, max_seq + 1));
	w->generation = s->generation;
	w->found_flush = w->flush_started + 1;
	w->write_flush = w->found_flush;
}

/**
 * kvt_wlog_refill() - begin to collect the entries of an unsealed segment again
 * @w:      writer
 * @seg:    SEALED in the log, and @unsealed
 * @handle: out
 *
 * So that it gets the footer that it missed in a crash. Its blocks, namespaces and
 * kills are added in the order in which recovery has found them.
 * Return: KVT_W_OK; _NONE: it has a footer, or cannot be given one now; _BUSY.
 */
enum kvt_wlog_status kvt_wlog_refill(struct kvt_wlog *w, u32 seg, u32 *handle)
{
	struct kvt_wseg *ws = &w->segs[seg];
	struct kvt_wopen *o;
	u32 i;

	if (!ws->unsealed || ws->hopeless || ws->bad ||
	    w->cfg.log->segs[seg].state != KVT_SEG_SEALED)
		return KVT_W_NONE;
	for (i = 0; i < KVT_WLOG_OPENS && w->opens[i].state != KVT_WOPEN_FREE; i++)
		;
	/* Also when its footer is on its way: a second one could tear the first. */
	if (i == KVT_WLOG_OPENS || kvt_wopen_of(w, seg))
		return KVT_W_BUSY;
	o = &w->opens[i];
	o->state = KVT_WOPEN_FILL;
	o->broken = true;
	o->seg = seg;
	o->batch = KVT_WLOG_BATCHES;
	o->nr_batches = 0;
	o->nr_ns = 0;
	o->nr_blocks = 0;
	o->nr_kills = 0;
	o->ns_hint = 0;
	o->life = ws->life;
	o->flush = w->found_flush;
	w->cfg.log->segs[seg].writes++;
	*handle = i;
	return KVT_W_OK;
}

bool kvt_wlog_refill_block(struct kvt_wlog *w, u32 handle, const struct kvt_rec *r)
{
	struct kvt_wopen *o = &w->opens[handle];

	if (o->nr_blocks == w->cfg.max_blocks)
		return false;
	o->blocks[o->nr_blocks].rec = *r;
	o->blocks[o->nr_blocks++].mark = KVT_WREC_LIVE;
	return true;
}

bool kvt_wlog_refill_ns(struct kvt_wlog *w, u32 handle, const struct kvt_nsdef *d)
{
	struct kvt_wopen *o = &w->opens[handle];

	if (o->nr_ns == w->cfg.max_ns)
		return false;
	o->ns[o->nr_ns++] = *d;
	return true;
}

bool kvt_wlog_refill_kill(struct kvt_wlog *w, u32 handle, const struct kvt_kill *k)
{
	struct kvt_wopen *o = &w->opens[handle];

	if (o->nr_kills == w->cfg.max_kills)
		return false;
	o->kills[o->nr_kills++] = *k;
	return true;
}

/**
 * kvt_wlog_refilled() - the entries are complete
 * @w:          writer
 * @handle:     from kvt_wlog_refill()
 * @nr_batches: that were found
 * @keep:       false: give up, it stays without a footer
 */
void kvt_wlog_refilled(struct kvt_wlog *w, u32 handle, u32 nr_batches, bool keep)
{
	struct kvt_wopen *o = &w->opens[handle];

	o->nr_batches = nr_batches;
	if (keep) {
		o->state = KVT_WOPEN_SEALING;
		return;
	}
	w->segs[o->seg].hopeless = true;
	o->state = KVT_WOPEN_FREE;
	kvt_log_write_done(w->cfg.log, o->seg * w->cfg.geo->seg_units);
}

static bool kvt_wlog_footed(const struct kvt_wlog *w, u32 seg)
{
	u32 i;

	for (i = 0; i < KVT_WLOG_OPENS; i++) {
		if (w->opens[i].state == KVT_WOPEN_FOOTED && w->opens[i].seg == seg)
			return true;
	}
	return false;
}

/**
 * kvt_wlog_quiet() - is all that was written sealed, and nothing pending
 * @w: writer
 *
 * Footers need not be durable for that: R4 sees to it.
 */
bool kvt_wlog_quiet(const struct kvt_wlog *w)
{
	u32 i;

	for (i = 0; i < KVT_WLOG_OPENS; i++) {
		if (w->opens[i].state != KVT_WOPEN_FREE &&
		    w->opens[i].state != KVT_WOPEN_FOOTED)
			return false;
	}
	for (i = 0; i < KVT_WLOG_BATCHES; i++) {
		if (w->batches[i].state != KVT_WBATCH_FREE)
			return false;
	}
	for (i = 0; i < w->cfg.geo->nr_segs; i++) {
		if (w->segs[i].unsealed && !kvt_wlog_footed(w, i))
			return false;
	}
	return w->tail == w->head;
}

/**
 * kvt_wlog_super() - make the next superblock
 * @w:     writer
 * @s:     as it was read or made; generation, state and limits are set here
 * @clean: say that everything is sealed: the next thing written must be a superblock
 * @slot:  out: which of the pair to write; on zoned devices struct kvt_super_log tells
 * Return: KVT_W_OK: encode and write it; _FLUSH: R4; _BUSY: one is being written, or
 * not everything is sealed.
 */
enum kvt_wlog_status kvt_wlog_super(struct kvt_wlog *w, struct kvt_super *s, bool clean,
				    u32 *slot)
{
	if (w->super_state == 1 || (clean && !kvt_wlog_quiet(w)))
		return KVT_W_BUSY;
	if (w->flush_done < w->write_flush && !kvt_env_broken(SUPER_FLUSH))
		return KVT_W_FLUSH;
	w->super_before = w->generation;
	w->generation += 1 + w->super_burnt;
	s->generation = w->generation;
	s->state = clean ? KVT_STATE_CLEAN : KVT_STATE_DIRTY;
	s->life_limit = w->next_life;
	s->seq_limit = *w->cfg.seq + 1;
	if (!clean) {
		s->life_limit += KVT_WLOG_LIFE_STEP;
		s->seq_limit += KVT_WLOG_SEQ_STEP;
	}
	w->super_life = s->life_limit;
	w->super_seq = s->seq_limit;
	w->super_dirty = !clean;
	w->super_state = 1;
	if (clean) {
		w->life_limit = 0;
		w->seq_limit = 0;
	}
	*slot = (u32)(w->generation % KVT_SUPER_SLOTS);
	return KVT_W_OK;
}

/**
 * kvt_wlog_super_written() - the write of the superblock is over
 * @w:   writer
 * @err: 0, or it could not be written: try again
 */
void kvt_wlog_super_written(struct kvt_wlog *w, int err)
{
	w->super_flush = w->flush_started + 1;
	w->write_flush = w->super_flush;
	w->super_state = err ? 0 : 2;
	w->super_burnt = 0;
	if (!err)
		return;
	/*
	 * The other one of the pair is the good one: not there. What has failed in a log
	 * stays where it is, and may be found: nothing else is to have that generation.
	 */
	if (w->cfg.geo->zone_bytes)
		w->super_burnt = w->generation - w->super_before;
	w->generation = w->super_before;
}

/**
 * kvt_wlog_super_durable() - is the superblock made last durable
 * @w: writer
 */
bool kvt_wlog_super_durable(const struct kvt_wlog *w)
{
	return !w->super_state;
}

/**
 * kvt_wlog_generation() - of the newest superblock that is certain to be durable
 * @w: writer
 */
u64 kvt_wlog_generation(const struct kvt_wlog *w)
{
	return w->super_state ? w->super_before : w->generation;
}
