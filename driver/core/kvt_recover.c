// SPDX-License-Identifier: GPL-2.0
/*
 * Recovery of a segment; see kvt_recover.h.
 *
 * Invariant: nothing is handed out of a header or summary before all of it has
 * verified, and no block before its place has been checked against the blocks
 * before it.
 */
#include "kvt_recover.h"

/* Where blocks may lie: a batch's payload, or all of a segment's batches. */
struct kvt_span {
	u32 seg;
	u64 life;
	u32 next;	/* first unit that the next block may have */
	u32 end;
	bool verify;
};

static bool kvt_rc_read(const struct kvt_recover *r, struct kvt_seg_found *f, u32 seg,
			u64 offset, void *buf, u32 len)
{
	if (!r->read(r->ctx, kvt_geo_byte(r->geo, seg, 0) + offset, buf, len))
		return true;
	f->nr_io++;
	return false;
}

static void kvt_rc_bad(const struct kvt_recover *r, struct kvt_seg_found *f,
		       const struct kvt_span *s, u32 unit, enum kvt_bad why)
{
	f->nr_bad[why]++;
	if (r->sink->bad)
		r->sink->bad(r->ctx, s->seg, s->life, unit, why);
}

/* Reads a payload behind the header in the scratch buffer. */
static enum kvt_bad kvt_rc_payload(const struct kvt_recover *r, u32 seg,
				   const struct kvt_rec *rec)
{
	u64 at = kvt_geo_byte(r->geo, seg, rec->unit);
	u8 *piece = r->buf + KVT_HEADER_BYTES_MAX;
	struct kvt_payload_sum sum;
	u32 left = rec->stored, n;

	kvt_payload_sum_start(&sum);
	for (; left; left -= n, at += n) {
		n = min(left, KVT_SUM_BYTES);
		if (r->read(r->ctx, at, piece, n))
			return KVT_BAD_IO;
		kvt_payload_sum_add(&sum, piece, n);
	}
	if (kvt_env_broken(PAYLOAD_SUM))
		return KVT_BAD_NONE;
	return kvt_payload_sum_end(&sum) == rec->sum ? KVT_BAD_NONE : KVT_BAD_PAYLOAD;
}

static void kvt_rc_block(const struct kvt_recover *r, struct kvt_seg_found *f,
			 struct kvt_span *s, const struct kvt_m_block *m)
{
	struct kvt_rec rec;
	enum kvt_bad why;
	u32 units;

	why = kvt_rec_decode(m, &rec);
	if (why) {
		kvt_rc_bad(r, f, s, kvt_rec_unit(m), why);
		return;
	}
	units = kvt_geo_units(r->geo, rec.stored);
	if (rec.unit < s->next || rec.unit > s->end || units > s->end - rec.unit) {
		kvt_rc_bad(r, f, s, rec.unit, KVT_BAD_RANGE);
		return;
	}
	s->next = rec.unit + units;
	if (s->verify) {
		why = kvt_rc_payload(r, s->seg, &rec);
		if (why) {
			kvt_rc_bad(r, f, s, rec.unit, why);
			return;
		}
	}
	f->nr_blocks++;
	f->max_seq = max(f->max_seq, rec.seq);
	r->sink->block(r->ctx, s->seg, s->life, &rec);
}

static void kvt_rc_ns(const struct kvt_recover *r, struct kvt_seg_found *f,
		      const struct kvt_span *s, const struct kvt_m_ns *m)
{
	struct kvt_nsdef def;
	enum kvt_bad why = kvt_nsdef_decode(m, &def);

	if (why) {
		f->nr_bad[why]++;
		return;
	}
	f->nr_ns++;
	f->max_seq = max(f->max_seq, def.seq);
	if (r->sink->ns)
		r->sink->ns(r->ctx, s->seg, &def);
}

static void kvt_rc_kill(const struct kvt_recover *r, struct kvt_seg_found *f,
			const struct kvt_span *s, const struct kvt_m_kill *m)
{
	struct kvt_kill k;

	kvt_kill_decode(m, &k);
	if (k.seg >= r->geo->nr_segs || !k.life || k.life >= KVT_LIFE_MAX ||
	    (k.unit != KVT_KILL_ALL && k.unit >= r->geo->seg_units)) {
		f->nr_bad[KVT_BAD_RANGE]++;
		return;
	}
	f->nr_kills++;
	if (r->sink->kill)
		r->sink->kill(r->ctx, s->seg, &k);
}

/* All entries of a batch; its header has been verified and is in the buffer. */
static void kvt_rc_batch(const struct kvt_recover *r, struct kvt_seg_found *f,
			 const struct kvt_batch_info *b)
{
	struct kvt_span s = {
		.seg = b->seg,
		.life = b->life,
		.next = b->unit + b->header_units,
		.end = b->unit + b->header_units + b->payload_units,
		.verify = !r->entries_only,
	};
	const u8 *at = r->buf + sizeof(struct kvt_m_batch);
	u32 i;

	for (i = 0; i < b->nr_ns; i++, at += sizeof(struct kvt_m_ns))
		kvt_rc_ns(r, f, &s, (const struct kvt_m_ns *)at);
	for (i = 0; i < b->nr_blocks; i++, at += sizeof(struct kvt_m_block))
		kvt_rc_block(r, f, &s, (const struct kvt_m_block *)at);
	for (i = 0; i < b->nr_kills; i++, at += sizeof(struct kvt_m_kill))
		kvt_rc_kill(r, f, &s, (const struct kvt_m_kill *)at);
	f->max_seq = max(f->max_seq, b->seq);
}

/* Read and verify the header of a batch at @unit into the buffer. */
static bool kvt_rc_header(const struct kvt_recover *r, struct kvt_seg_found *f, u32 seg,
			  u32 unit, struct kvt_batch_info *b)
{
	u64 offset = (u64)unit * r->geo->unit_bytes;
	u32 bytes;

	if (!kvt_rc_read(r, f, seg, offset, r->buf, KVT_UNIT_BYTES_MIN))
		return false;
	if (!kvt_batch_decode(r->geo, seg, unit, r->buf, b))
		return false;
	bytes = b->header_units * r->geo->unit_bytes;
	if (bytes > KVT_UNIT_BYTES_MIN &&
	    !kvt_rc_read(r, f, seg, offset + KVT_UNIT_BYTES_MIN, r->buf + KVT_UNIT_BYTES_MIN,
			 bytes - KVT_UNIT_BYTES_MIN))
		return false;
	return kvt_batch_verify(r->geo, r->buf, b);
}

static void kvt_rc_walk(const struct kvt_recover *r, u32 seg, struct kvt_seg_found *f)
{
	struct kvt_batch_info b;
	u32 unit = 0;

	while (unit < r->geo->seg_units - 1 && kvt_rc_header(r, f, seg, unit, &b)) {
		if (b.life != f->life && !kvt_env_broken(LIFE))
			break;
		if (b.number != f->nr_batches)
			break;
		kvt_rc_batch(r, f, &b);
		f->nr_batches++;
		unit += b.header_units + b.payload_units;
	}
	f->fill = unit;
}

/* Whole entries of any kind are multiples of that. */
static u32 kvt_rc_room(const struct kvt_recover *r)
{
	return r->buf_bytes & ~(u32)(sizeof(struct kvt_m_kill) - 1);
}

static bool kvt_rc_summary_verify(const struct kvt_recover *r, struct kvt_seg_found *f,
				  u32 seg, const struct kvt_footer_info *foot)
{
	u64 offset = (u64)foot->sum_unit * r->geo->unit_bytes;
	u32 crc = ~0u, at, n;

	for (at = 0; at < foot->sum_bytes; at += n) {
		n = min(foot->sum_bytes - at, kvt_rc_room(r));
		if (!kvt_rc_read(r, f, seg, offset + at, r->buf, n))
			return false;
		crc = crc32c(crc, r->buf, n);
	}
	if (~crc != foot->sum_crc)
		return false;
	/* What fits the buffer is there, and need not be read again. */
	if (foot->sum_bytes <= kvt_rc_room(r))
		kvt_scramble(r->buf, foot->sum_bytes, foot->life, foot->salt, 0);
	return true;
}

/**
 * struct kvt_sum_reader - a verified summary, entry by entry
 * @at:     offset of the buffer's contents in the summary
 * @len:    bytes in the buffer
 * @pos:    next entry in the buffer
 */
struct kvt_sum_reader {
	u32 at;
	u32 len;
	u32 pos;
};

/* The next entry of @bytes, reading on if it is not wholly in the buffer. */
static const void *kvt_rc_next(const struct kvt_recover *r, struct kvt_seg_found *f, u32 seg,
			       const struct kvt_footer_info *foot, struct kvt_sum_reader *sr,
			       u32 bytes)
{
	const void *entry;

	if (bytes > sr->len - sr->pos) {
		sr->at += sr->pos;
		sr->len = min(foot->sum_bytes - sr->at, kvt_rc_room(r));
		sr->pos = 0;
		if (!kvt_rc_read(r, f, seg, (u64)foot->sum_unit * r->geo->unit_bytes + sr->at,
				 r->buf, sr->len))
			return NULL;
		kvt_scramble(r->buf, sr->len, foot->life, foot->salt, sr->at);
	}
	entry = r->buf + sr->pos;
	sr->pos += bytes;
	return entry;
}

static void kvt_rc_summary(const struct kvt_recover *r, u32 seg, struct kvt_seg_found *f,
			   const struct kvt_footer_info *foot)
{
	struct kvt_span s = { .seg = seg, .life = f->life, .next = 1, .end = foot->fill };
	struct kvt_sum_reader sr = {
		.len = foot->sum_bytes <= kvt_rc_room(r) ? foot->sum_bytes : 0,
	};
	const void *m;
	u32 i;

	for (i = 0; i < foot->nr_ns; i++) {
		m = kvt_rc_next(r, f, seg, foot, &sr, sizeof(struct kvt_m_ns));
		if (!m)
			return;
		kvt_rc_ns(r, f, &s, m);
	}
	for (i = 0; i < foot->nr_blocks; i++) {
		m = kvt_rc_next(r, f, seg, foot, &sr, sizeof(struct kvt_m_block));
		if (!m)
			return;
		kvt_rc_block(r, f, &s, m);
	}
	for (i = 0; i < foot->nr_kills; i++) {
		m = kvt_rc_next(r, f, seg, foot, &sr, sizeof(struct kvt_m_kill));
		if (!m)
			return;
		kvt_rc_kill(r, f, &s, m);
	}
}

/* Is there a footer of the life found, and a summary that verifies. */
static bool kvt_rc_sealed(const struct kvt_recover *r, u32 seg, struct kvt_seg_found *f,
			  struct kvt_footer_info *foot)
{
	u64 offset = (u64)(r->geo->seg_units - 1) * r->geo->unit_bytes;

	if (!kvt_rc_read(r, f, seg, offset, r->buf, KVT_UNIT_BYTES_MIN))
		return false;
	if (!kvt_footer_decode(r->geo, seg, (const struct kvt_m_footer *)r->buf, foot))
		return false;
	if (foot->life != f->life && !kvt_env_broken(LIFE) && !kvt_env_broken(FOOTER_LIFE))
		return false;
	if (kvt_rc_summary_verify(r, f, seg, foot))
		return true;
	f->nr_bad[KVT_BAD_SUMMARY]++;
	return false;
}

/**
 * kvt_recover_segment() - find out what is in a segment
 * @r:   how; reads, so this may sleep if @r->read does
 * @seg: which
 * @f:   out
 */
void kvt_recover_segment(const struct kvt_recover *r, u32 seg, struct kvt_seg_found *f)
{
	struct kvt_footer_info foot;
	struct kvt_batch_info b;

	memset(f, 0, sizeof(*f));
	if (!kvt_rc_header(r, f, seg, 0, &b) || b.number)
		return;
	f->life = b.life;
	if (kvt_rc_sealed(r, seg, f, &foot)) {
		f->state = KVT_RC_SEALED;
		f->fill = foot.fill;
		f->nr_batches = foot.nr_batches;
		f->max_seq = foot.max_seq;
		kvt_rc_summary(r, seg, f, &foot);
		return;
	}
	f->state = KVT_RC_UNSEALED;
	kvt_rc_walk(r, seg, f);
}
