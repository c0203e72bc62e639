// SPDX-License-Identifier: GPL-2.0
/*
 * Repairing a member on a zoned device; see fsck.h for what is done, and why not more.
 *
 * A superblock goes behind the newest one, or to the other zone, which is reset before: as
 * struct kvt_super_log has it. One that is to take the place of what is damaged goes to the
 * other zone in any case. Both are safe to be interrupted: the newest good one stays where
 * it is.
 *
 * A segment is moved in one go from its first unit to its last: an empty first batch, its
 * payloads at the units that they had, the summary; a flush; the footer; a flush. Until
 * that footer is there the new segment says nothing, and the old one still counts. From
 * then on a kill that is in the new summary ends the old one.
 *
 * Functions here return 0, -errno, or, positive, enum fsck_refused.
 */
#include <stdlib.h>
#include <string.h>
#include "fsck.h"

#define SUM_BYTES_MAX	(1u << 30)

static const u8 zero[KVT_SUM_BYTES];

static int write_at(struct fsck *f, u64 byte, const void *buf, u32 len)
{
	return f->media->write(f->media->ctx, byte, buf, len);
}

static int flush(struct fsck *f)
{
	return f->media->flush(f->media->ctx);
}

/* --- Superblocks ----------------------------------------------------------- */

static int may_write_supers(const struct fsck *f)
{
	u32 i;

	for (i = 0; i < KVT_SUPER_ZONES; i++) {
		if (f->supers.state[i] == MEDIA_SUPER_IO)
			return FSCK_REFUSED_SUPER_IO;
	}
	return f->supers.pick.super.generation + 1 < KVT_LIMIT_MAX ? 0 : FSCK_REFUSED_NUMBERS;
}

static int next_place(const struct fsck *f, bool other, u64 *byte, bool *reset)
{
	const struct media *m = f->media;
	u32 slot = f->supers.pick.slot;
	struct kvt_super_log l;

	kvt_super_log_found(&l, m->zone_bytes, slot, m->wp[slot]);
	if (other)
		l.at = l.zone_bytes;
	*byte = kvt_super_log_next(&l, reset);
	return media_zone_worst(m, *byte - *byte % m->zone_bytes, m->zone_bytes) ?
	       FSCK_REFUSED_SUPER_ZONE : 0;
}

/*
 * The generations of those that do not verify are left out: one of them may be read after
 * all some day.
 */
static int append_super(struct fsck *f, struct kvt_super *s, bool other)
{
	static u64 block[KVT_SUPER_BYTES / sizeof(u64)];
	struct kvt_super_pick *pick = &f->supers.pick;
	bool reset;
	u64 byte;
	int ret = next_place(f, other, &byte, &reset);

	if (ret)
		return ret;
	/* Not in its table of members, see kvt_super_known(). */
	s->generation += 1 + pick->nr_torn;
	kvt_super_encode(block, s);
	/* What was read may be in the device's cache only. */
	ret = flush(f);
	if (!ret && reset)
		ret = f->media->reset(f->media->ctx, byte);
	if (!ret)
		ret = write_at(f, byte, block, sizeof(block));
	if (!ret)
		ret = flush(f);
	if (!ret) {
		pick->super = *s;
		pick->slot = (u32)(byte / f->media->zone_bytes);
	}
	return ret;
}

/* --- A segment ------------------------------------------------------------- */

/**
 * struct move - a segment on its way
 * @from:  segment
 * @to:    another, of which nothing counts
 * @at:    next byte of it to be written
 * @foot:  its footer, as it grows
 * @sum:   its summary, not scrambled; @len of @room bytes
 * @err:   of a callback
 */
struct move {
	struct fsck *f;
	u32 from;
	u32 to;
	u64 at;
	struct kvt_footer_info foot;
	u8 *sum;
	u32 len;
	u32 room;
	int err;
};

static void put(struct move *m, const void *buf, u32 len)
{
	if (!m->err)
		m->err = write_at(m->f, m->at, buf, len);
	m->at += len;
}

static void zeroes(struct move *m, u32 unit)
{
	u64 end = kvt_geo_byte(&m->f->geo, m->to, unit);

	while (m->at < end && !m->err)
		put(m, zero, (u32)min(end - m->at, (u64)sizeof(zero)));
}

/* Room for one more entry; NULL: none. */
static void *add(struct move *m, u32 len)
{
	u32 room = m->room ? 2 * m->room : KVT_HEADER_BYTES_MAX;
	void *entry;

	/* No driver writes half of that; what a footer claims is not bounded otherwise. */
	if (m->len > SUM_BYTES_MAX - len) {
		m->err = -ENOSPC;
		return NULL;
	}
	if (m->len + len > m->room) {
		entry = realloc(m->sum, room);
		if (!entry) {
			m->err = -ENOMEM;
			return NULL;
		}
		m->sum = entry;
		m->room = room;
	}
	entry = m->sum + m->len;
	m->len += len;
	return entry;
}

/*
 * Whoever says that a namespace is gone says so of lives up to some: in its new one an old
 * definition would outlive that.
 */
static bool is_there(const struct fsck *f, u64 id)
{
	const struct fsck_ns *ns = fsck_find_ns(f, id);

	return ns && !(ns->flags & KVT_NSF_GONE);
}

static void move_ns(void *ctx, u32 seg, const struct kvt_nsdef *d)
{
	struct move *m = ctx;
	struct kvt_m_ns *entry;

	(void)seg;
	if (!(d->flags & KVT_NSF_GONE) && !is_there(m->f, d->id))
		return;
	entry = m->err ? NULL : add(m, sizeof(*entry));
	if (!entry)
		return;
	kvt_nsdef_encode(entry, d);
	m->foot.nr_ns++;
	m->foot.max_seq = max(m->foot.max_seq, d->seq);
}

/* True: it verifies. What cannot be read is as wrong as any other. */
static bool move_payload(struct move *m, const struct kvt_rec *r)
{
	u64 from = kvt_geo_byte(&m->f->geo, m->from, r->unit);
	const struct media *media = m->f->media;
	struct kvt_payload_sum sum;
	u32 left = r->stored, n;

	kvt_payload_sum_start(&sum);
	for (; left && !m->err; left -= n, from += n) {
		n = min(left, KVT_SUM_BYTES);
		if (media->read(media->ctx, from, m->f->piece, n))
			memset(m->f->piece, 0, n);
		kvt_payload_sum_add(&sum, m->f->piece, n);
		put(m, m->f->piece, n);
	}
	return !m->err && kvt_payload_sum_end(&sum) == r->sum;
}

static void move_block(void *ctx, u32 seg, u64 life, const struct kvt_rec *r)
{
	u32 unit = seg * ((struct move *)ctx)->f->geo.seg_units + r->unit;
	struct kvt_m_block *entry;
	struct move *m = ctx;

	(void)life;
	if (m->err || m->f->dead[unit / 8] >> unit % 8 & 1 || !is_there(m->f, r->ns))
		return;
	zeroes(m, r->unit);
	if (!move_payload(m, r))
		return;
	entry = add(m, sizeof(*entry));
	if (!entry)
		return;
	kvt_rec_encode(entry, r);
	m->foot.min_seq = m->foot.nr_blocks++ ? min(m->foot.min_seq, r->seq) : r->seq;
	m->foot.max_seq = max(m->foot.max_seq, r->seq);
}

static void move_kill(void *ctx, u32 seg, const struct kvt_kill *k)
{
	struct move *m = ctx;
	struct kvt_m_kill *entry = m->err ? NULL : add(m, sizeof(*entry));

	(void)seg;
	if (!entry)
		return;
	kvt_kill_encode(entry, k);
	m->foot.nr_kills++;
}

/* Which unit the summary starts in. False: it does not fit behind what is written. */
static bool place_summary(struct move *m)
{
	const struct kvt_geometry *g = &m->f->geo;
	u32 units;

	m->foot.fill = kvt_geo_units(g, m->at - kvt_geo_byte(g, m->to, 0));
	m->foot.sum_bytes = m->len;
	units = kvt_geo_units(g, m->len);
	m->foot.sum_unit = g->seg_units - 1 - units;
	return units < g->seg_units - 1 && m->foot.sum_unit >= m->foot.fill;
}

/* There is one kill more than there was: in a segment that is full a block has to go. */
static void leave_out_block(struct move *m)
{
	u32 kills = m->foot.nr_kills * (u32)sizeof(struct kvt_m_kill);
	u8 *at = m->sum + m->len - kills;

	memmove(at - sizeof(struct kvt_m_block), at, kills);
	m->len -= (u32)sizeof(struct kvt_m_block);
	m->foot.nr_blocks--;
}

static int move_read(void *ctx, u64 byte, void *buf, u32 len)
{
	return fsck_read(((struct move *)ctx)->f, byte, buf, len);
}

static void move_entries(struct move *m)
{
	static const struct kvt_recover_sink sink = {
		.block = move_block,
		.ns = move_ns,
		.kill = move_kill,
	};
	const struct fsck_seg *s = &m->f->segs[m->from];
	struct kvt_kill end = { .seg = m->from, .unit = KVT_KILL_ALL, .life = s->life };
	struct kvt_recover r = {
		.geo = &m->f->geo,
		.read = move_read,
		.sink = &sink,
		.ctx = m,
		.buf = m->f->buf,
		.buf_bytes = KVT_RECOVER_BUF_MIN,
	};
	struct kvt_seg_found found;

	kvt_recover_segment(&r, m->from, &found);
	if (!m->err && (found.nr_io || found.life != s->life || found.state != KVT_RC_SEALED))
		m->err = -EIO;
	move_kill(m, m->from, &end);
	if (!m->err && !place_summary(m)) {
		if (m->foot.nr_blocks)
			leave_out_block(m);
		if (!place_summary(m))
			m->err = -ENOSPC;
	}
}

/* Whole blocks, up to the footer. */
static void put_summary(struct move *m)
{
	u8 *piece = m->f->piece;
	u32 at, n;

	zeroes(m, m->foot.sum_unit);
	kvt_scramble(m->sum, m->len, m->foot.life, m->foot.salt, 0);
	m->foot.sum_crc = kvt_crc(m->sum, m->len);
	for (at = 0; at < m->len && !m->err; at += n) {
		n = min(m->len - at, KVT_SUM_BYTES);
		memset(piece, 0, KVT_SUM_BYTES);
		memcpy(piece, m->sum + at, n);
		put(m, piece, (n + KVT_UNIT_BYTES_MIN - 1) & ~(KVT_UNIT_BYTES_MIN - 1));
	}
	zeroes(m, m->f->geo.seg_units - 1);
}

static void put_footer(struct move *m)
{
	u8 *unit = m->f->head;

	memset(unit, 0, m->f->geo.unit_bytes);
	kvt_footer_encode(&m->f->geo, (struct kvt_m_footer *)unit, &m->foot);
	put(m, unit, m->f->geo.unit_bytes);
}

static void reset_zones(struct move *m)
{
	const struct kvt_geometry *g = &m->f->geo;
	u64 byte = kvt_geo_byte(g, m->to, 0), end = byte + g->seg_bytes;

	for (; byte < end && !m->err; byte += g->zone_bytes)
		m->err = m->f->media->reset(m->f->media->ctx, byte);
}

static int move_segment(struct fsck *f, u32 from, u32 to, u64 life, u64 salt)
{
	struct move m = {
		.f = f,
		.from = from,
		.to = to,
		.at = kvt_geo_byte(&f->geo, to, 0),
		.foot = { .life = life, .seg = to, .nr_batches = 1, .salt = salt },
	};

	reset_zones(&m);
	fsck_empty_batch(f, to, life, f->head);
	put(&m, f->head, f->geo.unit_bytes);
	if (!m.err)
		move_entries(&m);
	if (!m.err)
		put_summary(&m);
	if (!m.err)
		m.err = flush(f);
	if (!m.err)
		put_footer(&m);
	if (!m.err)
		m.err = flush(f);
	free(m.sum);
	return m.err;
}

/* --- All of them ----------------------------------------------------------- */

/* One of which nothing counts, and that can be written. */
static u32 find_target(const struct fsck *f)
{
	u32 seg;

	for (seg = 0; seg < f->geo.nr_segs; seg++) {
		if (fsck_is_free(&f->segs[seg]) && !f->segs[seg].locked)
			return seg;
	}
	return FSCK_NOWHERE;
}

static bool to_be_moved(const struct fsck *f, u32 seg, bool mended)
{
	return f->segs[seg].fix == FSCK_FIX_MOVE && f->segs[seg].mended == mended;
}

static bool any_mended(const struct fsck *f)
{
	u32 seg;

	for (seg = 0; seg < f->geo.nr_segs; seg++) {
		if (to_be_moved(f, seg, true))
			return true;
	}
	return false;
}

/* The first life that was never used, and that no kill names. */
static u64 next_life(const struct fsck *f)
{
	return max(max(f->supers.pick.super.life_limit, f->max_life + 1), f->max_kill + 1);
}

static u64 next_seq(const struct fsck *f)
{
	return max(f->supers.pick.super.seq_limit, f->max_seq + 1);
}

static int may_move(const struct fsck *f)
{
	if (f->nr_blind || f->many_ns)
		return FSCK_REFUSED_BLIND;
	if (find_target(f) == FSCK_NOWHERE)
		return FSCK_REFUSED_SEGMENT;
	return next_life(f) + f->geo.nr_segs < KVT_LIMIT_MAX &&
	       next_seq(f) + f->geo.nr_segs < KVT_LIMIT_MAX ? 0 : FSCK_REFUSED_NUMBERS;
}

/* What has a life and a sequence from here on was never told of before. */
static int announce(struct fsck *f, bool moves)
{
	struct kvt_super s = f->supers.pick.super;

	if (moves) {
		s.life_limit = next_life(f) + f->geo.nr_segs;
		s.seq_limit = next_seq(f) + f->geo.nr_segs;
		if (!any_mended(f))
			s.state = KVT_STATE_DIRTY;
	}
	return append_super(f, &s, f->fix[FSCK_FIX_APPEND]);
}

static int move_one(struct fsck *f, u32 from, u64 life, u64 salt)
{
	u32 to = find_target(f);
	int ret;

	if (to == FSCK_NOWHERE)
		return FSCK_REFUSED_SEGMENT;
	ret = move_segment(f, from, to, life, salt);
	if (ret)
		return ret;
	f->segs[to] = (struct fsck_seg) { .life = life, .state = KVT_RC_SEALED };
	f->segs[from].dead = true;
	f->segs[from].fix = FSCK_FIX_NONE;
	f->max_life = max(f->max_life, life);
	return 0;
}

/* Those that have lost their first batch come last. */
static int move_all(struct fsck *f, u64 life, u64 salt, u64 *fixed)
{
	int mended, ret = 0;
	u32 seg;

	for (mended = 0; mended < 2; mended++) {
		for (seg = 0; !ret && seg < f->geo.nr_segs; seg++) {
			if (!to_be_moved(f, seg, mended))
				continue;
			ret = move_one(f, seg, life++, salt++);
			*fixed += !ret;
		}
	}
	return ret;
}

static int correct(struct fsck *f, u64 *fixed)
{
	struct kvt_super s = f->supers.pick.super;
	int ret;

	fsck_correct_super(f, &s);
	ret = append_super(f, &s, false);
	*fixed += !ret;
	return ret;
}

/* What is refused is left out, and the rest is done; but not without superblocks. */
int fsck_repair_zoned(struct fsck *f, u64 *fixed)
{
	int refused = f->fix[FSCK_FIX_MOVE] ? may_move(f) : 0, ret = may_write_supers(f);
	bool moves = f->fix[FSCK_FIX_MOVE] && !refused, append = f->fix[FSCK_FIX_APPEND];
	u64 life = next_life(f), salt = next_seq(f);

	if (!ret && (moves || append)) {
		ret = announce(f, moves);
		*fixed += !ret && append;
	}
	if (!ret && moves) {
		ret = move_all(f, life, salt, fixed);
		refused = max(ret, 0);
		ret = min(ret, 0);
	}
	if (!ret && f->fix[FSCK_FIX_SUPER])
		ret = correct(f, fixed);
	f->refused = (enum fsck_refused)(ret > 0 ? ret : refused);
	return min(ret, 0);
}
