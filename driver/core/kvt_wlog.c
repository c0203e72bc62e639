// SPDX-License-Identifier: GPL-2.0
/*
 * Writer of a member, first half: what goes into batches and footers. See
 * kvt_wlog.h for the model and the rules.
 *
 * Invariants: a head's open segment has room for the summary of all that is in it,
 * and the footer, whatever else is put there (kvt_wopen_room()). Entries of an open
 * segment are kept in arrays, batch after batch, until its footer is durable.
 * Blocks of one batch are contiguous, in the segment's ids, too, because a head has
 * one batch open at a time.
 */
#include "kvt_wlog.h"

static size_t kvt_wlog_open_bytes(const struct kvt_wlog_cfg *cfg)
{
	return cfg->max_blocks * sizeof(struct kvt_wrec) +
	       cfg->max_ns * sizeof(struct kvt_nsdef) + cfg->max_kills * sizeof(struct kvt_kill);
}

/**
 * kvt_wlog_mem_bytes() - memory that kvt_wlog_init() needs
 * @cfg: limits
 */
size_t kvt_wlog_mem_bytes(const struct kvt_wlog_cfg *cfg)
{
	return cfg->geo->nr_segs * sizeof(struct kvt_wseg) +
	       cfg->ring * sizeof(struct kvt_wkill) +
	       KVT_WLOG_BATCHES * cfg->batch_blocks * sizeof(struct kvt_wsrc) +
	       KVT_WLOG_OPENS * kvt_wlog_open_bytes(cfg);
}

/* All kills and definitions of a segment must fit one batch: R2. */
static bool kvt_wlog_cfg_ok(const struct kvt_wlog_cfg *cfg)
{
	u64 end = sizeof(struct kvt_m_batch) +
		  kvt_entries_bytes(cfg->max_ns, 0, cfg->max_kills + 1);

	if (cfg->geo->nr_segs < KVT_WLOG_SEGS_MIN || !is_power_of_2(cfg->ring) ||
	    !cfg->batch_blocks || cfg->batch_blocks > KVT_BATCH_BLOCKS ||
	    cfg->max_blocks < cfg->batch_blocks || cfg->max_ns < 2 ||
	    cfg->free_aim < 3 || cfg->max_kills / 4 <= cfg->free_aim)
		return false;
	/* Twice, for batch and summary, in a segment with nothing else. */
	return end <= KVT_HEADER_BYTES_MAX &&
	       2 * kvt_geo_units(cfg->geo, end) + 1 <= cfg->geo->seg_units;
}

/**
 * kvt_wlog_init() - a writer of an empty member
 * @w:   writer
 * @cfg: limits; copied
 * @mem: kvt_wlog_mem_bytes() zeroed bytes; the writer's as long as it is used
 *
 * Nothing can be written before a superblock is durable.
 * Return: 0, or -EINVAL: impossible limits.
 */
int kvt_wlog_init(struct kvt_wlog *w, const struct kvt_wlog_cfg *cfg, void *mem)
{
	u8 *at = mem;
	u32 i;

	if (!kvt_wlog_cfg_ok(cfg))
		return -EINVAL;
	memset(w, 0, sizeof(*w));
	w->cfg = *cfg;
	w->next_life = 1;
	/* What a restart finds may all be obsolete. */
	w->obsoleted = U32_MAX;
	cfg->log->hold = true;
	cfg->log->keep[KVT_HEAD_DEMOTE] = 2;
	cfg->log->keep[KVT_HEAD_CARRY] = 1;
	for (i = 0; i < KVT_HEADS; i++)
		w->head_open[i] = KVT_WLOG_OPENS;
	w->segs = (struct kvt_wseg *)at;
	at += cfg->geo->nr_segs * sizeof(struct kvt_wseg);
	w->ring = (struct kvt_wkill *)at;
	at += cfg->ring * sizeof(struct kvt_wkill);
	for (i = 0; i < KVT_WLOG_BATCHES; i++) {
		w->batches[i].src = (struct kvt_wsrc *)at;
		at += cfg->batch_blocks * sizeof(struct kvt_wsrc);
	}
	for (i = 0; i < KVT_WLOG_OPENS; i++) {
		w->opens[i].ns = (struct kvt_nsdef *)at;
		at += cfg->max_ns * sizeof(struct kvt_nsdef);
		w->opens[i].blocks = (struct kvt_wrec *)at;
		at += cfg->max_blocks * sizeof(struct kvt_wrec);
		w->opens[i].kills = (struct kvt_kill *)at;
		at += cfg->max_kills * sizeof(struct kvt_kill);
	}
	return 0;
}

static struct kvt_wopen *kvt_wopen_head(struct kvt_wlog *w, enum kvt_log_head head)
{
	u32 i = w->head_open[head];

	return i < KVT_WLOG_OPENS ? &w->opens[i] : NULL;
}

static struct kvt_wbatch *kvt_wopen_batch(struct kvt_wlog *w, const struct kvt_wopen *o)
{
	return o && o->batch < KVT_WLOG_BATCHES ? &w->batches[o->batch] : NULL;
}

struct kvt_wopen *kvt_wopen_of(struct kvt_wlog *w, u32 seg)
{
	u32 i;

	for (i = 0; i < KVT_WLOG_OPENS; i++) {
		if (w->opens[i].state != KVT_WOPEN_FREE && w->opens[i].seg == seg)
			return &w->opens[i];
	}
	return NULL;
}

/* The record that starts at @unit of the segment; they are in that order. */
struct kvt_wrec *kvt_wrec_find(struct kvt_wopen *o, u32 unit)
{
	u32 low = 0, high = o->nr_blocks, mid;

	while (low < high) {
		mid = (low + high) / 2;
		if (o->blocks[mid].rec.unit < unit)
			low = mid + 1;
		else
			high = mid;
	}
	if (low < o->nr_blocks && o->blocks[low].rec.unit == unit)
		return &o->blocks[low];
	return NULL;
}

/* The batch that record @rec of an open segment is in, unless that is done with. */
struct kvt_wbatch *kvt_wbatch_of_rec(struct kvt_wlog *w, const struct kvt_wopen *o, u32 rec)
{
	struct kvt_wbatch *b;
	u32 i;

	for (i = 0; i < KVT_WLOG_BATCHES; i++) {
		b = &w->batches[i];
		if (b->state != KVT_WBATCH_FREE && &w->opens[b->open] == o &&
		    rec - b->first_block < b->nr_blocks)
			return b;
	}
	return NULL;
}

/* Is there room for more, the summary of everything and the footer. */
static bool kvt_wopen_room(const struct kvt_wlog *w, const struct kvt_wopen *o, u64 units,
			   u32 nr_ns, u32 nr_blocks, u32 nr_kills)
{
	const struct kvt_wlog_cfg *cfg = &w->cfg;
	u64 sum = kvt_entries_bytes(o->nr_ns + nr_ns, o->nr_blocks + nr_blocks,
				    o->nr_kills + nr_kills);

	if (o->nr_ns + nr_ns > cfg->max_ns || o->nr_blocks + nr_blocks > cfg->max_blocks ||
	    o->nr_kills + nr_kills > cfg->max_kills)
		return false;
	return cfg->log->segs[o->seg].fill + units + kvt_geo_units(cfg->geo, sum) + 1 <=
	       cfg->geo->seg_units;
}

/**
 * kvt_wlog_open() - open a segment for a head, sealing the one it has
 * @w:       writer
 * @head:    which end
 * @ids:     room for @max_ids block ids; the log's if KVT_W_OK is returned, to be
 *           collected with kvt_log_stale_ids() when the segment is dead
 * @max_ids: most blocks the segment takes, at most the limit
 * @urgent:  even the last free one: to end another segment
 * Return: KVT_W_OK, _CLOSE, _SUPER, _BUSY or _SPACE. On _SPACE the old segment is
 * sealed nevertheless, so that it can be cleaned.
 */
enum kvt_wlog_status kvt_wlog_open(struct kvt_wlog *w, enum kvt_log_head head, u32 *ids,
				   u32 max_ids, bool urgent)
{
	struct kvt_log *log = w->cfg.log;
	enum kvt_wlog_status st;
	struct kvt_wopen *o;
	u32 i, seg;

	if (w->given_up)
		return KVT_W_SPACE;
	if (!w->life_limit || w->next_life >= w->life_limit)
		return KVT_W_SUPER;
	st = kvt_wlog_seal(w, head);
	if (st == KVT_W_CLOSE)
		return st;
	for (i = 0; i < KVT_WLOG_OPENS && w->opens[i].state != KVT_WOPEN_FREE; i++)
		;
	if (i == KVT_WLOG_OPENS)
		return KVT_W_BUSY;
	seg = kvt_log_take(log, head, urgent ? 0 : log->keep[head], ids, max_ids);
	if (seg == KVT_NO_SEG)
		return KVT_W_SPACE;
	o = &w->opens[i];
	o->state = KVT_WOPEN_OPEN;
	o->broken = false;
	o->seg = seg;
	o->head = head;
	o->batch = KVT_WLOG_BATCHES;
	o->nr_batches = 0;
	o->nr_ns = 0;
	o->nr_blocks = 0;
	o->nr_kills = 0;
	o->ns_hint = 0;
	o->flush = 0;
	o->life = w->next_life++;
	w->segs[seg].life = o->life;
	w->segs[seg].nr_entries = 0;
	w->segs[seg].nr_lost = 0;
	w->segs[seg].nr_defs = 0;
	w->segs[seg].nr_home = 0;
	w->segs[seg].nr_kills = 0;
	w->segs[seg].nr_light = 0;
	w->segs[seg].nr_killed = 0;
	w->segs[seg].fresh = w->obsoleted;
	w->segs[seg].faults = 0;
	w->segs[seg].unsealed = false;
	w->segs[seg].hopeless = false;
	w->segs[seg].unread_ms = 0;
	w->head_open[head] = i;
	return KVT_W_OK;
}

static struct kvt_wbatch *kvt_wbatch_alloc(struct kvt_wlog *w, bool urgent)
{
	struct kvt_wbatch *b = NULL;
	u32 i, nr = 0;

	for (i = 0; i < KVT_WLOG_BATCHES; i++) {
		if (w->batches[i].state == KVT_WBATCH_FREE) {
			b = &w->batches[i];
			nr++;
		}
	}
	return nr > (urgent ? 0 : 1) ? b : NULL;
}

/**
 * kvt_wbatch_start() - open a batch with room for so many entries
 * @w:      writer
 * @head:   which end; it has no batch
 * @nr_ns:  entries that the header has room for
 * @nr_blocks: of these at least one must fit the segment; as many as may
 * @nr_kills: likewise
 * @units:  of each block
 * @urgent: may use the last place in the table
 */
enum kvt_wlog_status kvt_wbatch_start(struct kvt_wlog *w, enum kvt_log_head head, u32 nr_ns,
				      u32 nr_blocks, u32 nr_kills, u32 units, bool urgent)
{
	struct kvt_wopen *o = kvt_wopen_head(w, head);
	struct kvt_wbatch *b;
	u64 bytes;
	u32 hdr;

	if (!o || o->broken)
		return KVT_W_SEGMENT;
	bytes = sizeof(struct kvt_m_batch) + kvt_entries_bytes(nr_ns, nr_blocks, nr_kills);
	hdr = kvt_geo_units(w->cfg.geo, min_t(u64, bytes, KVT_HEADER_BYTES_MAX));
	if (!kvt_wopen_room(w, o, (u64)hdr + units, nr_ns, nr_blocks ? 1 : 0, nr_kills))
		return KVT_W_SEGMENT;
	b = kvt_wbatch_alloc(w, urgent);
	if (!b)
		return KVT_W_BUSY;
	b->state = KVT_WBATCH_OPEN;
	b->lost = false;
	b->told = false;
	b->cut = false;
	b->open = (u32)(o - w->opens);
	b->seg = o->seg;
	b->number = o->nr_batches++;
	b->unit = kvt_log_skip(w->cfg.log, head, hdr);
	b->header_units = hdr;
	b->payload_units = 0;
	b->used_bytes = sizeof(struct kvt_m_batch);
	b->first_ns = o->nr_ns;
	b->nr_ns = 0;
	b->first_block = o->nr_blocks;
	b->nr_blocks = 0;
	b->first_kill = o->nr_kills;
	b->nr_kills = 0;
	b->first_id = w->cfg.log->segs[o->seg].nr_ids;
	b->nr_src = 0;
	b->nr_ends = 0;
	b->drained = 0;
	b->ordinal = ++w->ordinal;
	b->flush = 0;
	b->seq = 0;
	o->batch = (u32)(b - w->batches);
	return KVT_W_OK;
}

/* Blocks of this size in a batch, as far as the segment has room for them. */
static u32 kvt_wbatch_aim(const struct kvt_wlog *w, const struct kvt_wopen *o, u32 units)
{
	const struct kvt_wlog_cfg *cfg = &w->cfg;
	u32 left = cfg->geo->seg_units - cfg->log->segs[o->seg].fill;
	u32 nr = cfg->batch_bytes / (units * cfg->geo->unit_bytes);

	nr = min(nr, left / units);
	return max(min(nr, cfg->batch_blocks), 1u);
}

/* Start a batch for blocks of @units, with some room for other entries. */
static enum kvt_wlog_status kvt_wbatch_start_blocks(struct kvt_wlog *w,
						    enum kvt_log_head head, u32 units)
{
	struct kvt_wopen *o = kvt_wopen_head(w, head);
	enum kvt_wlog_status st;
	u32 nr;

	if (!o)
		return KVT_W_SEGMENT;
	/* Near the end of a segment a batch of few still fits. */
	for (nr = kvt_wbatch_aim(w, o, units); ; nr /= 2) {
		st = kvt_wbatch_start(w, head, 1, nr, min(w->nr_pending, 16u), units, false);
		if (st != KVT_W_SEGMENT || nr == 1)
			return st;
	}
}

static bool kvt_wbatch_header_room(const struct kvt_wlog *w, const struct kvt_wbatch *b,
				   u32 bytes)
{
	return b->used_bytes + bytes <= b->header_units * w->cfg.geo->unit_bytes;
}

static bool kvt_wopen_has_ns(struct kvt_wopen *o, u64 id)
{
	u32 i;

	if (o->ns_hint < o->nr_ns && o->ns[o->ns_hint].id == id)
		return true;
	for (i = 0; i < o->nr_ns; i++) {
		if (o->ns[i].id == id) {
			o->ns_hint = i;
			return true;
		}
	}
	return false;
}

/* Does the block still fit its batch and segment. */
static bool kvt_wbatch_takes(struct kvt_wlog *w, const struct kvt_wopen *o,
			     const struct kvt_wbatch *b, u32 units)
{
	const struct kvt_seg *s = &w->cfg.log->segs[o->seg];
	u64 payload = (u64)(b->payload_units + units) * w->cfg.geo->unit_bytes;

	return b->nr_blocks < w->cfg.batch_blocks &&
	       (!b->nr_blocks || payload <= w->cfg.batch_bytes) &&
	       kvt_wbatch_header_room(w, b, sizeof(struct kvt_m_block)) &&
	       kvt_wopen_room(w, o, units, 0, 1, 0) && s->nr_ids < s->max_ids;
}

/* Could the block be put into a segment with nothing in it. */
static bool kvt_wlog_ever_fits(const struct kvt_wlog *w, u32 units)
{
	const struct kvt_geometry *g = w->cfg.geo;
	u32 hdr = kvt_geo_units(g, sizeof(struct kvt_m_batch) + kvt_entries_bytes(1, 1, 16));

	return units && 2 * hdr + 1 + (u64)units <= g->seg_units;
}

/**
 * kvt_wlog_put() - take a place for a block
 * @w:    writer
 * @head: which end
 * @p:    block
 * @unit: out: its address; bytes may be written there at once
 *
 * Return: KVT_W_OK; _SEGMENT, _CLOSE, _NS, _BUSY, _SUPER; _NEVER: too long for a
 * segment. The block's checksum must be set before the batch is built.
 */
enum kvt_wlog_status kvt_wlog_put(struct kvt_wlog *w, enum kvt_log_head head,
				  const struct kvt_wlog_put *p, u32 *unit)
{
	struct kvt_wopen *o = kvt_wopen_head(w, head);
	u32 units = kvt_geo_units(w->cfg.geo, p->rec->stored);
	enum kvt_wlog_status st;
	struct kvt_wbatch *b;
	struct kvt_wrec *rec;

	if (w->given_up || !kvt_wlog_ever_fits(w, units))
		return KVT_W_NEVER;
	if (*w->cfg.seq + 1 >= w->seq_limit)
		return KVT_W_SUPER;
	if (!o || o->broken)
		return o && o->batch < KVT_WLOG_BATCHES ? KVT_W_CLOSE : KVT_W_SEGMENT;
	b = kvt_wopen_batch(w, o);
	if (b && !kvt_wbatch_takes(w, o, b, units))
		return KVT_W_CLOSE;
	if (!kvt_wopen_has_ns(o, p->rec->ns))
		return o->nr_ns < w->cfg.max_ns ? KVT_W_NS : b ? KVT_W_CLOSE : KVT_W_SEGMENT;
	if (!b) {
		st = kvt_wbatch_start_blocks(w, head, units);
		if (st)
			return st;
		b = kvt_wopen_batch(w, o);
		if (!kvt_wbatch_takes(w, o, b, units))
			return KVT_W_CLOSE;
	}
	*unit = kvt_log_alloc(w->cfg.log, head, units, p->id);
	rec = &o->blocks[o->nr_blocks];
	rec->rec = *p->rec;
	rec->rec.unit = *unit - o->seg * w->cfg.geo->seg_units;
	rec->rec.seq = ++*w->cfg.seq;
	rec->mark = KVT_WREC_LIVE;
	if (p->src_log)
		b->src[b->nr_src++] = (struct kvt_wsrc) {
			.log = p->src_log,
			.unit = p->src_unit,
			.units = p->src_units,
			.rec = o->nr_blocks,
		};
	o->nr_blocks++;
	b->nr_blocks++;
	b->payload_units += units;
	b->used_bytes += sizeof(struct kvt_m_block);
	b->seq = rec->rec.seq;
	return KVT_W_OK;
}

static bool kvt_ns_home_is(const struct kvt_wlog *w, const struct kvt_ns_home *home)
{
	return home->member == w->cfg.member && home->life &&
	       w->segs[home->seg].life == home->life;
}

/* The newest definition is in @b from now on. */
static void kvt_ns_move(struct kvt_wlog *w, struct kvt_ns_home *home,
			const struct kvt_wopen *o, const struct kvt_wbatch *b)
{
	if (home->member != w->cfg.member)
		*home = (struct kvt_ns_home) { .member = w->cfg.member };
	if (kvt_ns_home_is(w, home) && w->segs[home->seg].nr_home)
		w->segs[home->seg].nr_home--;
	home->life = o->life;
	home->seg = o->seg;
	home->ordinal = b->ordinal;
	w->segs[o->seg].nr_defs++;
	w->segs[o->seg].nr_home++;
}

/**
 * kvt_wlog_unhome() - nobody has to carry a namespace's definition any more
 * @w:    writer
 * @home: the namespace's on this member
 */
void kvt_wlog_unhome(struct kvt_wlog *w, struct kvt_ns_home *home)
{
	if (kvt_ns_home_is(w, home) && w->segs[home->seg].nr_home)
		w->segs[home->seg].nr_home--;
	home->life = 0;
}

/**
 * kvt_wlog_homed() - need a definition not be carried
 * @w:    writer
 * @seg:  segment that is being ended
 * @home: the namespace's on this member
 * Return: whether one that is no older is durable in another segment, whose end will look
 * after it.
 */
bool kvt_wlog_homed(const struct kvt_wlog *w, u32 seg, const struct kvt_ns_home *home)
{
	const struct kvt_wseg *ws;

	if (!kvt_ns_home_is(w, home) || home->seg == seg)
		return false;
	ws = &w->segs[home->seg];
	return ws->phase == KVT_WSEG_NONE && ws->ended < home->life && !ws->nr_lost &&
	       (home->ordinal <= kvt_wlog_durable_seq(w) || kvt_env_broken(NS_HOME));
}

/**
 * kvt_wlog_first_life() - of the segments that may get definitions from now on
 * @w: writer
 * Return: the lowest; for @first of a namespace that was not defined there before.
 */
u64 kvt_wlog_first_life(const struct kvt_wlog *w)
{
	u64 first = w->next_life;
	u32 i;

	for (i = 0; i < KVT_WLOG_OPENS; i++) {
		if (w->opens[i].state == KVT_WOPEN_OPEN)
			first = min(first, w->opens[i].life);
	}
	return first;
}

/**
 * kvt_wlog_ns() - define a namespace, or change its definition
 * @w:      writer
 * @head:   which end
 * @def:    all but seq, which is set here if KVT_W_OK is returned
 * @home:   the namespace's on this member, set here likewise; NULL: it has ended
 * @stored: length of the block that is to follow, 0: none
 *
 * Each segment defines a namespace before its first block of it, and a change or
 * the end of one (KVT_NSF_GONE) is one more definition, on every member.
 * Return: KVT_W_OK, _SEGMENT, _CLOSE, _BUSY, _SUPER; _NEVER: the member is given up.
 */
enum kvt_wlog_status kvt_wlog_ns(struct kvt_wlog *w, enum kvt_log_head head,
				 struct kvt_nsdef *def, struct kvt_ns_home *home, u32 stored)
{
	struct kvt_wopen *o = kvt_wopen_head(w, head);
	struct kvt_wbatch *b = kvt_wopen_batch(w, o);
	enum kvt_wlog_status st;

	if (w->given_up)
		return KVT_W_NEVER;
	if (*w->cfg.seq + 1 >= w->seq_limit)
		return KVT_W_SUPER;
	if (!b) {
		if (stored)
			st = kvt_wbatch_start_blocks(w, head, kvt_geo_units(w->cfg.geo, stored));
		else
			st = kvt_wbatch_start(w, head, 1, 0, min(w->nr_pending, 16u), 0, false);
		if (st)
			return st;
		b = kvt_wopen_batch(w, o);
	}
	if (o->broken || !kvt_wbatch_header_room(w, b, sizeof(struct kvt_m_ns)) ||
	    !kvt_wopen_room(w, o, 0, 1, 0, 0))
		return KVT_W_CLOSE;
	def->seq = ++*w->cfg.seq;
	o->ns_hint = o->nr_ns;
	o->ns[o->nr_ns++] = *def;
	b->nr_ns++;
	b->used_bytes += sizeof(struct kvt_m_ns);
	b->seq = def->seq;
	w->segs[o->seg].nr_entries++;
	if (home)
		kvt_ns_move(w, home, o, b);
	return KVT_W_OK;
}

/**
 * kvt_wlog_set_sum() - the payload's checksum is known now
 * @w:    writer
 * @unit: address from kvt_wlog_put(); its batch is not built yet
 * @sum:  kvt_payload_sum_end() of the stored bytes
 */
void kvt_wlog_set_sum(struct kvt_wlog *w, u32 unit, u32 sum)
{
	struct kvt_wopen *o = kvt_wopen_of(w, kvt_log_seg_of(w->cfg.log, unit));
	struct kvt_wrec *rec = o ? kvt_wrec_find(o, unit % w->cfg.geo->seg_units) : NULL;

	if (rec)
		rec->rec.sum = sum;
}

/**
 * kvt_wbatch_add_kill() - one more kill for an open batch
 * @w:         writer
 * @b:         batch
 * @k:         kill
 * @max_kills: most that the segment may have after that
 * Return: whether there was room.
 */
bool kvt_wbatch_add_kill(struct kvt_wlog *w, struct kvt_wbatch *b, const struct kvt_kill *k,
			 u32 max_kills)
{
	struct kvt_wopen *o = &w->opens[b->open];

	if (o->nr_kills >= max_kills ||
	    !kvt_wbatch_header_room(w, b, sizeof(struct kvt_m_kill)) ||
	    !kvt_wopen_room(w, o, 0, 0, 0, 1))
		return false;
	o->kills[o->nr_kills++] = *k;
	b->nr_kills++;
	b->used_bytes += sizeof(struct kvt_m_kill);
	w->segs[o->seg].nr_entries++;
	w->segs[o->seg].nr_kills++;
	w->segs[o->seg].nr_light += kvt_wlog_kill_light(o->seg, k);
	return true;
}

/*
 * Give pending kills to a batch, oldest first.
 *
 * A segment can only be ended if all kills in it, and one more, fit one that has
 * none yet. So a quarter of the room stays empty but in a segment that begins with
 * an end: that brings no more than there was, and the ends of segments that are free.
 */
static void kvt_wbatch_take_kills(struct kvt_wlog *w, struct kvt_wbatch *b)
{
	u32 most = kvt_wlog_usual_kills(w);
	u64 pos;

	for (pos = w->take; pos < w->head && w->nr_pending; pos++) {
		struct kvt_wkill *k = kvt_wlog_ring_at(w, pos);

		if (k->batch)
			continue;
		if (!kvt_wlog_kill_needed(w, &k->kill))
			k->batch = KVT_WKILL_DONE;
		else if (kvt_wbatch_add_kill(w, b, &k->kill, most))
			k->batch = b->ordinal;
		else
			break;
		w->nr_pending--;
	}
	w->take = pos;
	kvt_wlog_ring_trim(w);
}

/**
 * kvt_wlog_start_kills() - have a batch for pending kills, if need be of its own
 * @w:    writer
 * @head: which end
 * Return: KVT_W_OK: close it now; _NONE: nothing is pending; _SEGMENT, _BUSY.
 */
enum kvt_wlog_status kvt_wlog_start_kills(struct kvt_wlog *w, enum kvt_log_head head)
{
	struct kvt_wopen *o = kvt_wopen_head(w, head);
	u32 most = kvt_wlog_usual_kills(w), nr;

	if (!w->nr_pending || w->given_up)
		return KVT_W_NONE;
	if (kvt_wopen_batch(w, o))
		return KVT_W_OK;
	if (!o || o->nr_kills >= most)
		return KVT_W_SEGMENT;
	for (nr = min(w->nr_pending, most - o->nr_kills); nr; nr /= 2) {
		enum kvt_wlog_status st = kvt_wbatch_start(w, head, 0, 0, nr, 0, true);

		if (st != KVT_W_SEGMENT)
			return st;
	}
	return KVT_W_SEGMENT;
}

/**
 * kvt_wlog_close() - nothing more goes into a head's open batch, but pending kills
 * @w:    writer
 * @head: which end
 * @io:   out: what is to be written
 * Return: KVT_W_OK, or KVT_W_NONE: there is no open batch.
 */
enum kvt_wlog_status kvt_wlog_close(struct kvt_wlog *w, enum kvt_log_head head,
				    struct kvt_wlog_io *io)
{
	struct kvt_wopen *o = kvt_wopen_head(w, head);
	struct kvt_wbatch *b = kvt_wopen_batch(w, o);

	if (!b)
		return KVT_W_NONE;
	kvt_wbatch_take_kills(w, b);
	b->state = KVT_WBATCH_CLOSED;
	o->batch = KVT_WLOG_BATCHES;
	io->batch = (u32)(b - w->batches);
	io->seg = b->seg;
	io->unit = b->unit;
	io->header_units = b->header_units;
	io->payload_units = b->payload_units;
	if (o->broken)
		kvt_wlog_seal(w, head);
	return KVT_W_OK;
}

static u8 *kvt_encode_ns(u8 *at, const struct kvt_nsdef *d)
{
	kvt_nsdef_encode((struct kvt_m_ns *)at, d);
	return at + sizeof(struct kvt_m_ns);
}

static u8 *kvt_encode_block(u8 *at, const struct kvt_rec *r)
{
	kvt_rec_encode((struct kvt_m_block *)at, r);
	return at + sizeof(struct kvt_m_block);
}

static u8 *kvt_encode_kill(u8 *at, const struct kvt_kill *k)
{
	kvt_kill_encode((struct kvt_m_kill *)at, k);
	return at + sizeof(struct kvt_m_kill);
}

/**
 * kvt_wlog_build() - make the header of a closed batch
 * @w:      writer
 * @batch:  handle; not reported written yet
 * @header: out, aligned to 8: its header units
 */
void kvt_wlog_build(struct kvt_wlog *w, u32 batch, void *header)
{
	struct kvt_wbatch *b = &w->batches[batch];
	struct kvt_wopen *o = &w->opens[b->open];
	struct kvt_batch_info info = {
		.life = o->life,
		.seq = b->seq,
		.seg = b->seg,
		.number = b->number,
		.header_units = b->header_units,
		.payload_units = b->payload_units,
		.nr_ns = b->nr_ns,
		.nr_kills = b->nr_kills,
	};
	u8 *at = header;
	u32 i;

	memset(header, 0, b->header_units * w->cfg.geo->unit_bytes);
	at += sizeof(struct kvt_m_batch);
	for (i = 0; i < b->nr_ns; i++)
		at = kvt_encode_ns(at, &o->ns[b->first_ns + i]);
	for (i = 0; i < b->nr_blocks; i++) {
		const struct kvt_wrec *rec = &o->blocks[b->first_block + i];

		if (rec->mark == KVT_WREC_OMIT)
			continue;
		at = kvt_encode_block(at, &rec->rec);
		info.nr_blocks++;
	}
	for (i = 0; i < b->nr_kills; i++)
		at = kvt_encode_kill(at, &o->kills[b->first_kill + i]);
	kvt_batch_encode(w->cfg.geo, header, &info);
}

/**
 * kvt_wlog_seal() - no more goes into a head's segment
 * @w:    writer
 * @head: which end
 *
 * One in which nothing was written is free again. Otherwise it gets a footer as soon
 * as it may: see kvt_wlog_work().
 * Return: KVT_W_OK; _NONE: there is none; _CLOSE: its batch first.
 */
enum kvt_wlog_status kvt_wlog_seal(struct kvt_wlog *w, enum kvt_log_head head)
{
	struct kvt_wopen *o = kvt_wopen_head(w, head);

	if (!o)
		return KVT_W_NONE;
	if (o->batch < KVT_WLOG_BATCHES)
		return KVT_W_CLOSE;
	w->head_open[head] = KVT_WLOG_OPENS;
	if (!o->nr_batches) {
		/* What recovery would find there is what was there before. */
		w->segs[o->seg].life = w->segs[o->seg].media_life;
		kvt_log_untake(w->cfg.log, head);
		o->state = KVT_WOPEN_FREE;
		return KVT_W_OK;
	}
	kvt_log_seal(w->cfg.log, head);
	/* Without its first batch a footer is worth nothing. */
	o->state = w->segs[o->seg].bad ? KVT_WOPEN_FAILED : KVT_WOPEN_SEALING;
	return KVT_W_OK;
}

/* R3: all batches are durable but those that failed and what comes after them. */
static bool kvt_wopen_ready(const struct kvt_wlog *w, const struct kvt_wopen *o)
{
	const struct kvt_wbatch *b;
	u32 i;

	if (o->state != KVT_WOPEN_SEALING || w->given_up)
		return false;
	for (i = 0; i < KVT_WLOG_BATCHES; i++) {
		b = &w->batches[i];
		if (b->state == KVT_WBATCH_FREE || &w->opens[b->open] != o)
			continue;
		if (b->state == KVT_WBATCH_CLOSED)
			return false;
		if (b->state == KVT_WBATCH_WRITTEN && b->flush > w->flush_done &&
		    !kvt_env_broken(FOOTER_FLUSH))
			return false;
	}
	return o->flush <= w->flush_done;
}

static struct kvt_wopen *kvt_wopen_next_ready(const struct kvt_wlog *w)
{
	u32 i;

	for (i = 0; i < KVT_WLOG_OPENS; i++) {
		if (kvt_wopen_ready(w, &w->opens[i]))
			return (struct kvt_wopen *)&w->opens[i];
	}
	return NULL;
}

/**
 * kvt_wlog_footer_bytes() - memory for the next footer that can be written
 * @w: writer
 * Return: what kvt_wlog_footer() needs at most, 0: none can be written now.
 */
u32 kvt_wlog_footer_bytes(const struct kvt_wlog *w)
{
	const struct kvt_geometry *g = w->cfg.geo;
	const struct kvt_wopen *o = kvt_wopen_next_ready(w);

	if (!o)
		return 0;
	return (1 + kvt_geo_units(g, kvt_entries_bytes(o->nr_ns, o->nr_blocks, o->nr_kills))) *
	       g->unit_bytes;
}

/* The summary: what is still to be said. Counts go into @f. */
static u8 *kvt_wopen_encode(const struct kvt_wlog *w, const struct kvt_wopen *o, u8 *at,
			    struct kvt_footer_info *f)
{
	u32 i;

	for (i = 0; i < o->nr_ns; i++, f->nr_ns++) {
		at = kvt_encode_ns(at, &o->ns[i]);
		f->max_seq = max(f->max_seq, o->ns[i].seq);
	}
	for (i = 0; i < o->nr_blocks; i++) {
		const struct kvt_rec *r = &o->blocks[i].rec;

		if (o->blocks[i].mark != KVT_WREC_LIVE)
			continue;
		at = kvt_encode_block(at, r);
		f->min_seq = f->nr_blocks++ ? min(f->min_seq, r->seq) : r->seq;
		f->max_seq = max(f->max_seq, r->seq);
	}
	for (i = 0; i < o->nr_kills; i++) {
		if (!kvt_wlog_kill_needed(w, &o->kills[i]))
			continue;
		at = kvt_encode_kill(at, &o->kills[i]);
		f->nr_kills++;
	}
	return at;
}

/**
 * kvt_wlog_footer() - make summary and footer of a segment that may have it
 * @w:   writer
 * @buf: out, aligned to 8, kvt_wlog_footer_bytes(): to be written from @io->unit to
 *       the end of the segment
 * @io:  out
 * Return: KVT_W_OK, or KVT_W_NONE.
 */
enum kvt_wlog_status kvt_wlog_footer(struct kvt_wlog *w, void *buf,
				     struct kvt_wlog_footer *io)
{
	const struct kvt_geometry *g = w->cfg.geo;
	struct kvt_wopen *o = kvt_wopen_next_ready(w);
	u32 bytes = kvt_wlog_footer_bytes(w), units;
	struct kvt_footer_info f = { 0 };
	u8 *at;

	if (!o)
		return KVT_W_NONE;
	memset(buf, 0, bytes);
	at = kvt_wopen_encode(w, o, buf, &f);
	f.life = o->life;
	f.seg = o->seg;
	f.nr_batches = o->nr_batches;
	f.fill = w->cfg.log->segs[o->seg].fill;
	f.sum_bytes = (u32)(at - (u8 *)buf);
	f.salt = ++*w->cfg.seq;
	kvt_scramble(buf, f.sum_bytes, f.life, f.salt, 0);
	f.sum_crc = kvt_crc(buf, f.sum_bytes);
	units = kvt_geo_units(g, f.sum_bytes);
	f.sum_unit = g->seg_units - 1 - units;
	at = (u8 *)buf + units * g->unit_bytes;
	kvt_footer_encode(g, (struct kvt_m_footer *)at, &f);
	o->state = KVT_WOPEN_FOOTER;
	io->handle = (u32)(o - w->opens);
	io->seg = o->seg;
	io->fill = f.fill;
	io->unit = f.sum_unit;
	return KVT_W_OK;
}
