/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A small member in memory, for the tests of format, recovery and writer.
 */
#ifndef KVT_TEST_MEDIA_H
#define KVT_TEST_MEDIA_H

#include "kvt_kunit.h"
#include "../core/kvt_recover.h"

#define TM_UNIT		4096u
#define TM_SEG_UNITS	24u
#define TM_SEGS		8u
#define TM_SEG_BYTES	(TM_SEG_UNITS * TM_UNIT)
#define TM_FIRST	KVT_HEAD_BYTES_MIN
#define TM_IDS		32u

/**
 * struct media - member and what recovery says of it
 * @seg:     bytes of all segments
 * @bad_byte: reading this one fails, 0: none
 * @nr_read: bytes read
 */
struct media {
	struct kvt_geometry geo;
	u8 *seg;
	u8 *buf;
	u64 bad_byte;
	u64 nr_read;
	u32 nr_blocks;
	u32 nr_ns;
	u32 nr_kills;
	u32 nr_bad;
	struct kvt_rec block[64];
	struct kvt_nsdef ns[16];
	struct kvt_kill kill[64];
	enum kvt_bad why[64];
	struct kvt_seg_found found;
};

static inline int tm_read(void *ctx, u64 byte, void *buf, u32 len)
{
	struct media *m = ctx;

	if (byte < TM_FIRST || byte + len > TM_FIRST + TM_SEGS * TM_SEG_BYTES)
		return -ERANGE;
	if (m->bad_byte >= byte && m->bad_byte < byte + len)
		return -EIO;
	m->nr_read += len;
	memcpy(buf, m->seg + (byte - TM_FIRST), len);
	return 0;
}

static inline void tm_block(void *ctx, u32 seg, u64 life, const struct kvt_rec *r)
{
	struct media *m = ctx;

	(void)seg;
	(void)life;
	if (m->nr_blocks < ARRAY_SIZE(m->block))
		m->block[m->nr_blocks] = *r;
	m->nr_blocks++;
}

static inline void tm_ns(void *ctx, u32 seg, const struct kvt_nsdef *d)
{
	struct media *m = ctx;

	(void)seg;
	if (m->nr_ns < ARRAY_SIZE(m->ns))
		m->ns[m->nr_ns] = *d;
	m->nr_ns++;
}

static inline void tm_kill(void *ctx, u32 seg, const struct kvt_kill *k)
{
	struct media *m = ctx;

	(void)seg;
	if (m->nr_kills < ARRAY_SIZE(m->kill))
		m->kill[m->nr_kills] = *k;
	m->nr_kills++;
}

static inline void tm_bad(void *ctx, u32 seg, u64 life, u32 unit, enum kvt_bad why)
{
	struct media *m = ctx;

	(void)seg;
	(void)life;
	(void)unit;
	if (m->nr_bad < ARRAY_SIZE(m->why))
		m->why[m->nr_bad] = why;
	m->nr_bad++;
}

static const struct kvt_recover_sink tm_sink = {
	.block = tm_block,
	.ns = tm_ns,
	.kill = tm_kill,
	.bad = tm_bad,
};

static inline struct media *tm_new(struct kunit *test)
{
	struct media *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, m);
	m->seg = kunit_kzalloc(test, TM_SEGS * TM_SEG_BYTES, GFP_KERNEL);
	m->buf = kunit_kzalloc(test, KVT_RECOVER_BUF_MIN, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, m->seg);
	KUNIT_ASSERT_NOT_NULL(test, m->buf);
	m->geo = (struct kvt_geometry) {
		.member = "member of a test",
		.first_byte = TM_FIRST,
		.seg_bytes = TM_SEG_BYTES,
		.unit_bytes = TM_UNIT,
		.seg_units = TM_SEG_UNITS,
		.nr_segs = TM_SEGS,
	};
	return m;
}

static inline u8 *tm_at(struct media *m, u32 seg, u32 unit)
{
	return m->seg + (u64)seg * TM_SEG_BYTES + (u64)unit * TM_UNIT;
}

/* Fills @found and what the sink collects. */
static inline enum kvt_rc_state tm_recover(struct media *m, u32 seg)
{
	struct kvt_recover r = {
		.geo = &m->geo,
		.read = tm_read,
		.sink = &tm_sink,
		.ctx = m,
		.buf = m->buf,
		.buf_bytes = KVT_RECOVER_BUF_MIN,
	};

	m->nr_blocks = 0;
	m->nr_ns = 0;
	m->nr_kills = 0;
	m->nr_bad = 0;
	m->nr_read = 0;
	kvt_recover_segment(&r, seg, &m->found);
	return m->found.state;
}

/* A record of @units units; its key is @n. */
static inline struct kvt_rec tm_rec(u32 n, u32 units)
{
	struct kvt_rec r = {
		.ns = 5,
		.bytes = units * TM_UNIT - 96,
		.stored = units * TM_UNIT,
		.group = 1,
	};

	r.key[0] = (u8)n;
	r.key[31] = 1;
	r.parent[3] = (u8)(n >> 1);
	return r;
}

static inline u32 tm_sum(const void *data, u32 len)
{
	struct kvt_payload_sum s;

	kvt_payload_sum_start(&s);
	kvt_payload_sum_add(&s, data, len);
	return kvt_payload_sum_end(&s);
}

#endif /* KVT_TEST_MEDIA_H */
