// SPDX-License-Identifier: GPL-2.0
/*
 * Reading a member; see fsck.h.
 *
 * A kill says something only of the life that its segment has, and namespaces in a
 * segment that has ended say nothing. So lives are collected first, then kills, then
 * the rest: nothing has to be kept for later that may turn out not to matter.
 */
#include <stdlib.h>
#include <string.h>
#include "fsck.h"

enum { PASS_LIVES, PASS_KILLS, PASS_RECORDS, NR_PASSES };

void fsck_report(struct fsck *f, enum fsck_what what, enum fsck_fix fix, u32 seg, u32 unit,
		 u64 number)
{
	struct fsck_problem p = {
		.what = what,
		.fix = fix,
		.seg = seg,
		.unit = unit,
		.number = number,
	};

	f->found[what]++;
	p.severity = fsck_severity(what, f->clean);
	if (p.severity == FSCK_NOTE) {
		p.fix = FSCK_FIX_NONE;
		f->notes++;
	} else {
		f->errors++;
		f->fixable += fix != FSCK_FIX_NONE;
		f->fix[fix] = true;
	}
	if (f->report)
		f->report(f->ctx, &p);
}

static bool bit(const u8 *map, u64 nr)
{
	return map[nr / 8] >> nr % 8 & 1;
}

static u32 unit_of(const struct fsck *f, u32 seg, u32 unit)
{
	return seg * f->geo.seg_units + unit;
}

/* Footers are not there for who is not to see them, nor is damage that will be mended. */
int fsck_read(struct fsck *f, u64 byte, void *buf, u32 len)
{
	u64 foot = f->geo.seg_bytes - f->geo.unit_bytes, at;
	u32 seg = (u32)div64_u64_rem(byte - f->geo.first_byte, f->geo.seg_bytes, &at);

	if (f->blind && at >= foot) {
		memset(buf, 0, len);
		return 0;
	}
	if (f->segs[seg].mended && at + len <= f->geo.unit_bytes) {
		fsck_empty_batch(f, seg, f->segs[seg].foot_life, f->head);
		memcpy(buf, f->head + at, len);
		return 0;
	}
	return f->media->read(f->media->ctx, byte, buf, len);
}

static int scan_read(void *ctx, u64 byte, void *buf, u32 len)
{
	return fsck_read(ctx, byte, buf, len);
}

static void no_block(void *ctx, u32 seg, u64 life, const struct kvt_rec *r)
{
	(void)ctx;
	(void)seg;
	(void)life;
	(void)r;
}

/* Without @sink only what is counted is wanted; recovery may be under way then. */
static void recover(struct fsck *f, u32 seg, const struct kvt_recover_sink *sink, bool payloads,
		    struct kvt_seg_found *found)
{
	static const struct kvt_recover_sink none = { .block = no_block };
	struct kvt_recover r = {
		.geo = &f->geo,
		.read = scan_read,
		.sink = sink ? sink : &none,
		.ctx = f,
		.buf = sink ? f->buf : f->buf_count,
		.buf_bytes = KVT_RECOVER_BUF_MIN,
		.entries_only = !payloads,
	};

	kvt_recover_segment(&r, seg, found);
}

/* --- Lives ----------------------------------------------------------------- */

static bool summary_verifies(struct fsck *f, u32 seg, const struct kvt_footer_info *foot)
{
	u64 byte = kvt_geo_byte(&f->geo, seg, foot->sum_unit);
	u32 crc = ~0u, at, n;

	for (at = 0; at < foot->sum_bytes; at += n) {
		n = min(foot->sum_bytes - at, KVT_RECOVER_BUF_MIN);
		if (scan_read(f, byte + at, f->buf, n))
			return false;
		crc = crc32c(crc, f->buf, n);
	}
	return ~crc == foot->sum_crc;
}

static void unreadable(struct fsck *f, u32 seg, u32 nr_reads)
{
	f->segs[seg].unread = true;
	f->nr_blind++;
	fsck_report(f, FSCK_SEG_UNREADABLE, FSCK_FIX_NONE, seg, FSCK_NOWHERE, nr_reads);
}

/* A free segment may be one that has lost its first batch. */
static void look_for_footer(struct fsck *f, u32 seg)
{
	struct fsck_seg *s = &f->segs[seg];
	struct kvt_footer_info foot;
	struct kvt_batch_info b;

	if (scan_read(f, kvt_geo_byte(&f->geo, seg, f->geo.seg_units - 1), f->buf,
		      KVT_UNIT_BYTES_MIN)) {
		unreadable(f, seg, 1);
		return;
	}
	if (!kvt_footer_decode(&f->geo, seg, (const struct kvt_m_footer *)f->buf, &foot))
		return;
	s->foot_life = foot.life;
	s->foot_good = summary_verifies(f, seg, &foot);
	if (!scan_read(f, kvt_geo_byte(&f->geo, seg, 0), f->buf, KVT_UNIT_BYTES_MIN) &&
	    kvt_batch_decode(&f->geo, seg, 0, f->buf, &b))
		s->foot_same = b.life == foot.life;
}

/*
 * What repair makes of such a segment has to be known before anything is moved: the kills in
 * it, and whether it has ended. That its footer says more than it may does no harm: a
 * kill stays true.
 */
static bool mendable(const struct fsck *f, const struct fsck_seg *s)
{
	return f->geo.zone_bytes && s->foot_good &&
	       (f->clean || s->foot_same || f->geo.seg_bytes == f->geo.zone_bytes) &&
	       s->foot_life < f->supers.pick.super.life_limit;
}

static u32 count_zones(const struct fsck *f, u32 seg, enum media_zone state)
{
	u64 byte = kvt_geo_byte(&f->geo, seg, 0), end = byte + f->geo.seg_bytes;
	u32 nr = 0;

	for (; f->geo.zone_bytes && byte < end; byte += f->geo.zone_bytes)
		nr += media_zone_worst(f->media, byte, f->geo.zone_bytes) == state;
	return nr;
}

/* False: nothing in the segment can be known. */
static bool look_at_zones(struct fsck *f, u32 seg)
{
	u32 offline = count_zones(f, seg, MEDIA_ZONE_OFFLINE);
	u32 readonly = count_zones(f, seg, MEDIA_ZONE_READONLY);

	f->segs[seg].locked = offline || readonly;
	f->segs[seg].unread = offline;
	if (offline)
		fsck_report(f, FSCK_SEG_ZONE_OFFLINE, FSCK_FIX_NONE, seg, FSCK_NOWHERE, offline);
	else if (readonly)
		fsck_report(f, FSCK_SEG_ZONE_READONLY, FSCK_FIX_NONE, seg, FSCK_NOWHERE, readonly);
	return !offline;
}

static void found_life(struct fsck *f, u32 seg, struct kvt_seg_found *found)
{
	struct fsck_seg *s = &f->segs[seg];

	recover(f, seg, NULL, false, found);
	s->life = found->life;
	s->state = (u8)found->state;
	f->max_life = max(f->max_life, found->life);
	f->max_seq = max(f->max_seq, found->max_seq);
}

static void pass_lives(struct fsck *f, u32 seg)
{
	struct fsck_seg *s = &f->segs[seg];
	struct kvt_seg_found found;

	if (!look_at_zones(f, seg)) {
		f->nr_blind++;
		return;
	}
	found_life(f, seg, &found);
	if (found.nr_io)
		unreadable(f, seg, found.nr_io);
	else if (found.state == KVT_RC_FREE)
		look_for_footer(f, seg);
	s->mended = mendable(f, s);
	if (s->mended)
		found_life(f, seg, &found);
}

/* --- Kills ----------------------------------------------------------------- */

/* Recovery does not heed others. A limit that is too low will be put right by repair. */
static bool given_out(const struct fsck *f, u64 life)
{
	return life < max(f->supers.pick.super.life_limit, f->max_life + 1);
}

static void on_kill(void *ctx, u32 seg, const struct kvt_kill *k)
{
	struct fsck *f = ctx;
	struct fsck_seg *s = &f->segs[k->seg];
	u32 unit;

	(void)seg;
	f->count.kills++;
	f->max_kill = max(f->max_kill, k->life);
	if (!given_out(f, k->life)) {
		f->nr_stray++;
		return;
	}
	if (k->unit == KVT_KILL_ALL) {
		s->ended = max(s->ended, k->life);
		s->dead |= s->life == k->life;
	} else if (s->life == k->life) {
		unit = unit_of(f, k->seg, k->unit);
		f->dead[unit / 8] |= (u8)(1u << unit % 8);
	}
}

static void pass_kills(struct fsck *f, u32 seg)
{
	static const struct kvt_recover_sink sink = { .block = no_block, .kill = on_kill };
	struct kvt_seg_found found;

	f->nr_stray = 0;
	recover(f, seg, &sink, false, &found);
	if (f->nr_stray)
		fsck_report(f, FSCK_KILL_LIFE, FSCK_FIX_NONE, seg, FSCK_NOWHERE, f->nr_stray);
}

/* --- Records --------------------------------------------------------------- */

static void keep_block(struct fsck *f, u32 unit, const struct kvt_rec *r)
{
	struct fsck_block *b;
	size_t room;

	if (f->nr_blocks == f->room_blocks) {
		room = f->room_blocks ? 2 * f->room_blocks : 256;
		b = realloc(f->blocks, room * sizeof(*b));
		if (!b) {
			f->err = -ENOMEM;
			return;
		}
		f->blocks = b;
		f->room_blocks = room;
	}
	b = &f->blocks[f->nr_blocks++];
	memset(b, 0, sizeof(*b));
	memcpy(b->key, r->key, sizeof(b->key));
	memcpy(b->parent, r->parent, sizeof(b->parent));
	b->ns = r->ns;
	b->seq = r->seq;
	b->unit = unit;
	b->group = r->group;
	f->count.bytes += r->bytes;
}

static enum fsck_what verify(struct fsck *f, u32 seg, const struct kvt_rec *r)
{
	u64 at = kvt_geo_byte(&f->geo, seg, r->unit);
	struct kvt_payload_sum sum;
	u32 left = r->stored, n;

	kvt_payload_sum_start(&sum);
	for (; left; left -= n, at += n) {
		n = min(left, KVT_SUM_BYTES);
		if (scan_read(f, at, f->piece, n))
			return FSCK_PAYLOAD_UNREADABLE;
		kvt_payload_sum_add(&sum, f->piece, n);
	}
	f->count.payloads++;
	return kvt_payload_sum_end(&sum) == r->sum ? FSCK_NR : FSCK_PAYLOAD_DAMAGED;
}

static void count_live(void *ctx, u32 seg, u64 life, const struct kvt_rec *r)
{
	struct fsck *f = ctx;

	(void)life;
	f->nr_live += !bit(f->dead, unit_of(f, seg, r->unit));
}

/*
 * Without its footer recovery would find all that is in it. And no more (@same): a footer
 * leaves out what had died before it was written, of which no kill need be left.
 */
static bool walks(struct fsck *f, u32 seg)
{
	static const struct kvt_recover_sink sink = { .block = count_live };
	struct kvt_seg_found sealed, found;
	u32 nr_live;

	f->nr_live = 0;
	recover(f, seg, &sink, false, &sealed);
	nr_live = f->nr_live;
	f->nr_live = 0;
	f->blind = true;
	recover(f, seg, &sink, false, &found);
	f->blind = false;
	f->same = f->nr_live == nr_live;
	return found.state == KVT_RC_UNSEALED && found.nr_batches == sealed.nr_batches &&
	       found.fill == sealed.fill && !found.nr_io;
}

static void on_block(void *ctx, u32 seg, u64 life, const struct kvt_rec *r)
{
	struct fsck *f = ctx;
	u32 unit = unit_of(f, seg, r->unit);
	enum fsck_what bad = FSCK_NR;

	(void)life;
	if (bit(f->dead, unit)) {
		f->count.dead++;
		return;
	}
	if (f->segs[seg].state == KVT_RC_UNSEALED)
		f->count.payloads++;
	else if (f->payload)
		bad = verify(f, seg, r);
	if (bad == FSCK_NR) {
		keep_block(f, unit, r);
		return;
	}
	if (f->geo.zone_bytes)
		f->segs[seg].fix = FSCK_FIX_MOVE;
	else if (f->walks && f->same)
		f->segs[seg].fix = FSCK_FIX_FOOT;
	fsck_report(f, bad, f->segs[seg].fix, seg, r->unit, r->ns);
}

static void on_ns(void *ctx, u32 seg, const struct kvt_nsdef *d)
{
	struct fsck *f = ctx;

	(void)seg;
	f->max_ns = max(f->max_ns, d->id);
	fsck_add_ns(f, d);
}

static enum fsck_what what_of(enum kvt_bad why)
{
	switch (why) {
	case KVT_BAD_UNKNOWN:
		return FSCK_REC_UNKNOWN;
	case KVT_BAD_RANGE:
		return FSCK_REC_RANGE;
	case KVT_BAD_PAYLOAD:
		return FSCK_PAYLOAD_TORN;
	case KVT_BAD_IO:
		return FSCK_PAYLOAD_UNREADABLE;
	default:
		return FSCK_REC_DAMAGED;
	}
}

static void on_bad(void *ctx, u32 seg, u64 life, u32 unit, enum kvt_bad why)
{
	struct fsck *f = ctx;

	(void)life;
	f->nr_told++;
	if (unit < f->geo.seg_units && bit(f->dead, unit_of(f, seg, unit)))
		return;
	fsck_report(f, what_of(why), why == KVT_BAD_IO ? FSCK_FIX_NONE : FSCK_FIX_SUPER, seg,
		    unit, 0);
}

/* Entries that are wrong and have no place: namespaces and kills. */
static u32 nr_placeless(const struct fsck *f, const struct kvt_seg_found *found)
{
	u32 nr = 0, i;

	for (i = KVT_BAD_NONE + 1; i < KVT_BAD_NR; i++)
		nr += i == KVT_BAD_SUMMARY ? 0 : found->nr_bad[i];
	return nr - f->nr_told;
}

static void judge_segment(struct fsck *f, u32 seg, const struct kvt_seg_found *found)
{
	struct fsck_seg *s = &f->segs[seg];
	u32 placeless = nr_placeless(f, found);

	if (placeless)
		fsck_report(f, FSCK_ENTRY, FSCK_FIX_NONE, seg, FSCK_NOWHERE, placeless);
	if (found->nr_bad[KVT_BAD_SUMMARY])
		fsck_report(f, FSCK_SEG_SUMMARY, FSCK_FIX_SUPER, seg, FSCK_NOWHERE, s->life);
	if (s->state == KVT_RC_UNSEALED)
		fsck_report(f, FSCK_SEG_UNSEALED, FSCK_FIX_SUPER, seg, FSCK_NOWHERE,
			    found->nr_batches);
	else if (f->payload && !f->walks && !s->mended)
		fsck_report(f, FSCK_SEG_BATCHES, FSCK_FIX_NONE, seg, FSCK_NOWHERE, s->life);
}

static void judge_free(struct fsck *f, u32 seg)
{
	struct fsck_seg *s = &f->segs[seg];
	const struct kvt_super *super = &f->supers.pick.super;

	if (!s->foot_life || s->foot_life <= s->ended)
		return;
	/* On a zoned device it has been mended, or cannot be. */
	if (!f->geo.zone_bytes && s->foot_good && (f->clean || s->foot_same) &&
	    s->foot_life < super->life_limit)
		s->fix = FSCK_FIX_HEAD;
	f->nr_blind += !s->fix;
	fsck_report(f, FSCK_SEG_HEADLESS, s->fix, seg, FSCK_NOWHERE, s->foot_life);
}

/* Is what it has of a life that has ended. */
static bool is_over(const struct fsck_seg *s)
{
	return s->dead || (s->mended && s->ended > s->life);
}

bool fsck_is_free(const struct fsck_seg *s)
{
	if (s->unread)
		return false;
	return s->state == KVT_RC_FREE ? s->foot_life <= s->ended : is_over(s);
}

static void pass_records(struct fsck *f, u32 seg)
{
	static const struct kvt_recover_sink sink = {
		.block = on_block,
		.ns = on_ns,
		.bad = on_bad,
	};
	struct fsck_seg *s = &f->segs[seg];
	struct kvt_seg_found found;

	if (s->state == KVT_RC_FREE) {
		f->count.free++;
		judge_free(f, seg);
		return;
	}
	if (is_over(s)) {
		f->count.ended++;
		return;
	}
	if (s->mended) {
		s->fix = FSCK_FIX_MOVE;
		fsck_report(f, FSCK_SEG_HEADLESS, s->fix, seg, FSCK_NOWHERE, s->life);
	}
	if (s->state == KVT_RC_SEALED)
		f->count.sealed++;
	else
		f->count.unsealed++;
	f->nr_told = 0;
	f->walks = f->payload && s->state == KVT_RC_SEALED && walks(f, seg);
	recover(f, seg, &sink, true, &found);
	judge_segment(f, seg, &found);
}

/* Who is defined is looked for once more, when it is known who has blocks. */
static int names_again(struct fsck *f)
{
	static const struct kvt_recover_sink sink = { .block = no_block, .ns = on_ns };
	struct kvt_seg_found found;
	int ret = fsck_again_ns(f);
	u32 seg;

	for (seg = 0; !ret && seg < f->geo.nr_segs; seg++) {
		if (f->segs[seg].state != KVT_RC_FREE && !is_over(&f->segs[seg]))
			recover(f, seg, &sink, false, &found);
		ret = f->err;
	}
	return ret;
}

/* --- The whole ------------------------------------------------------------- */

static int alloc(struct fsck *f)
{
	u64 units = (u64)f->geo.nr_segs * f->geo.seg_units;

	f->segs = calloc(f->geo.nr_segs, sizeof(*f->segs));
	f->dead = calloc(units / 8 + 1, 1);
	f->buf = malloc(KVT_RECOVER_BUF_MIN);
	f->buf_count = malloc(KVT_RECOVER_BUF_MIN);
	f->piece = malloc(KVT_SUM_BYTES);
	f->head = malloc(f->geo.unit_bytes);
	return f->segs && f->dead && f->buf && f->buf_count && f->piece && f->head ? 0 : -ENOMEM;
}

int fsck_run(struct fsck *f)
{
	static void (*const passes[NR_PASSES])(struct fsck *f, u32 seg) = {
		pass_lives, pass_kills, pass_records,
	};
	int ret = fsck_read_supers(f);
	u32 seg;

	if (ret <= 0)
		return ret;
	ret = alloc(f);
	for (f->pass = 0; !ret && f->pass < NR_PASSES; f->pass++) {
		for (seg = 0; !ret && seg < f->geo.nr_segs; seg++) {
			passes[f->pass](f, seg);
			ret = f->err;
			if (!ret && f->progress && !f->progress(f->ctx, f->pass, seg))
				ret = -ECANCELED;
		}
	}
	if (!ret && f->many_ns)
		ret = names_again(f);
	if (!ret) {
		fsck_check(f);
		ret = f->err;
	}
	return ret;
}

void fsck_fini(struct fsck *f)
{
	free(f->segs);
	free(f->dead);
	free(f->blocks);
	free(f->ns);
	free(f->named);
	free(f->buf);
	free(f->buf_count);
	free(f->piece);
	free(f->head);
	f->segs = NULL;
	f->dead = NULL;
	f->blocks = NULL;
	f->ns = NULL;
	f->named = NULL;
	f->nr_named = 0;
	f->buf = NULL;
	f->buf_count = NULL;
	f->piece = NULL;
	f->head = NULL;
}
