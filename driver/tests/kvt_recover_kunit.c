// SPDX-License-Identifier: GPL-2.0
/*
 * Recovery of a segment from bytes made by hand: what counts, what does not, and
 * that hostile bytes are bounded.
 */
#include "kvt_media.h"
#include "../core/kvt_life.h"

/* A batch to be made; each of its @nr_blocks blocks has @units. */
struct tb {
	u32 seg;
	u32 unit;
	u64 life;
	u32 number;
	u32 nr_blocks;
	u32 units;
	u32 nr_kills;
};

static u32 block_unit(const struct tb *b, u32 i)
{
	return b->unit + 1 + i * b->units;
}

static void payload_fill(struct media *m, const struct tb *b, u32 i)
{
	memset(tm_at(m, b->seg, block_unit(b, i)), (int)(b->life * 16 + b->number + i),
	       b->units * TM_UNIT);
}

static void make_rec(struct media *m, const struct tb *b, u32 i, struct kvt_rec *r)
{
	*r = tm_rec(b->number * 16 + i, b->units);
	r->unit = block_unit(b, i);
	r->seq = b->life * 100 + b->number * 10 + i;
	r->sum = tm_sum(tm_at(m, b->seg, r->unit), r->stored);
}

static void make_kill(const struct tb *b, u32 i, struct kvt_kill *k)
{
	k->seg = 0;
	k->unit = 1 + i;
	k->life = b->life;
}

/* Writes it. Returns the unit behind it. */
static u32 make(struct media *m, const struct tb *b)
{
	u8 *header = tm_at(m, b->seg, b->unit), *at = header + 128;
	struct kvt_batch_info info = {
		.life = b->life, .seg = b->seg, .number = b->number, .header_units = 1,
		.payload_units = b->nr_blocks * b->units, .nr_blocks = b->nr_blocks,
		.nr_kills = b->nr_kills,
	};
	struct kvt_kill k;
	struct kvt_rec r;
	u32 i;

	memset(header, 0, TM_UNIT);
	for (i = 0; i < b->nr_blocks; i++, at += 128) {
		payload_fill(m, b, i);
		make_rec(m, b, i, &r);
		kvt_rec_encode((struct kvt_m_block *)at, &r);
	}
	for (i = 0; i < b->nr_kills; i++, at += 16) {
		make_kill(b, i, &k);
		kvt_kill_encode((struct kvt_m_kill *)at, &k);
	}
	kvt_batch_encode(&m->geo, header, &info);
	return b->unit + 1 + b->nr_blocks * b->units;
}

/* A footer that says what batch @b says. */
static void seal(struct media *m, const struct tb *b, u32 fill)
{
	u8 *sum = tm_at(m, b->seg, TM_SEG_UNITS - 2), *at = sum;
	struct kvt_footer_info f = {
		.life = b->life, .seg = b->seg, .sum_unit = TM_SEG_UNITS - 2, .fill = fill,
		.nr_blocks = b->nr_blocks, .nr_kills = b->nr_kills, .nr_batches = 1,
		.max_seq = 77777,
	};
	struct kvt_kill k;
	struct kvt_rec r;
	u32 i;

	for (i = 0; i < b->nr_blocks; i++, at += 128) {
		make_rec(m, b, i, &r);
		kvt_rec_encode((struct kvt_m_block *)at, &r);
	}
	for (i = 0; i < b->nr_kills; i++, at += 16) {
		make_kill(b, i, &k);
		kvt_kill_encode((struct kvt_m_kill *)at, &k);
	}
	f.sum_bytes = (u32)(at - sum);
	f.salt = 12345;
	kvt_scramble(sum, f.sum_bytes, f.life, f.salt, 0);
	f.sum_crc = kvt_crc(sum, f.sum_bytes);
	kvt_footer_encode(&m->geo, (struct kvt_m_footer *)tm_at(m, b->seg, TM_SEG_UNITS - 1), &f);
}

static void recover_nothing(struct kunit *test)
{
	struct media *m = tm_new(test);
	u64 rnd = 1;
	u32 i;

	KUNIT_EXPECT_EQ(test, (u32)tm_recover(m, 0), (u32)KVT_RC_FREE);
	KUNIT_EXPECT_EQ(test, m->found.life, 0ull);
	for (i = 0; i < TM_SEG_BYTES; i++)
		m->seg[i] = (u8)kvt_test_random(&rnd);
	KUNIT_EXPECT_EQ(test, (u32)tm_recover(m, 0), (u32)KVT_RC_FREE);
	KUNIT_EXPECT_EQ(test, m->nr_blocks + m->nr_kills + m->nr_bad, 0u);
}

/* Batches count as long as life and number go on, and each payload is checked. */
static void recover_walk(struct kunit *test)
{
	struct media *m = tm_new(test);
	struct tb a = { .seg = 3, .life = 9, .nr_blocks = 2, .units = 2, .nr_kills = 1 };
	struct tb b = { .seg = 3, .life = 9, .number = 1, .nr_blocks = 3, .units = 1 };
	struct tb c = { .seg = 3, .life = 9, .number = 2, .nr_blocks = 1, .units = 4 };
	u32 i;

	b.unit = make(m, &a);
	c.unit = make(m, &b);
	make(m, &c);
	KUNIT_ASSERT_EQ(test, (u32)tm_recover(m, 3), (u32)KVT_RC_UNSEALED);
	KUNIT_EXPECT_EQ(test, m->found.life, 9ull);
	KUNIT_EXPECT_EQ(test, m->found.nr_batches, 3u);
	KUNIT_EXPECT_EQ(test, m->found.max_seq, 920ull);
	KUNIT_ASSERT_EQ(test, m->nr_blocks, 6u);
	KUNIT_EXPECT_EQ(test, m->nr_kills, 1u);
	for (i = 1; i < 6; i++)
		KUNIT_EXPECT_TRUE(test, m->block[i - 1].unit < m->block[i].unit);

	*tm_at(m, 3, b.unit + 2) ^= 1;
	tm_recover(m, 3);
	KUNIT_EXPECT_EQ(test, m->nr_blocks, 5u);
	KUNIT_ASSERT_EQ(test, m->nr_bad, 1u);
	KUNIT_EXPECT_EQ(test, (u32)m->why[0], (u32)KVT_BAD_PAYLOAD);
	*tm_at(m, 3, b.unit + 2) ^= 1;

	/* Of another life, or out of turn: it ends before. */
	b.life = 8;
	make(m, &b);
	tm_recover(m, 3);
	KUNIT_EXPECT_EQ(test, m->nr_blocks, 2u);
	b.life = 9;
	b.number = 2;
	make(m, &b);
	tm_recover(m, 3);
	KUNIT_EXPECT_EQ(test, m->nr_blocks, 2u);
	b.number = 1;
	make(m, &b);
	*tm_at(m, 3, b.unit + 1) ^= 1;
	tm_at(m, 3, b.unit)[900] ^= 1;
	tm_recover(m, 3);
	KUNIT_EXPECT_EQ(test, m->found.nr_batches, 1u);
	/* And without the first one nothing counts. */
	tm_at(m, 3, 0)[4000] ^= 1;
	KUNIT_EXPECT_EQ(test, (u32)tm_recover(m, 3), (u32)KVT_RC_FREE);
}

/* A footer counts only for the life that the first batch has. */
static void recover_footer(struct kunit *test)
{
	struct media *m = tm_new(test);
	struct tb a = { .seg = 1, .life = 9, .nr_blocks = 4, .units = 2, .nr_kills = 3 };
	struct tb n = { .seg = 1, .life = 10, .nr_blocks = 1, .units = 1 };
	u32 fill = make(m, &a);

	seal(m, &a, fill);
	/* No payload is read, and a kill is missing nowhere. */
	*tm_at(m, 1, 3) ^= 1;
	KUNIT_ASSERT_EQ(test, (u32)tm_recover(m, 1), (u32)KVT_RC_SEALED);
	KUNIT_EXPECT_EQ(test, m->nr_blocks, 4u);
	KUNIT_EXPECT_EQ(test, m->nr_kills, 3u);
	KUNIT_EXPECT_EQ(test, m->found.max_seq, 77777ull);
	KUNIT_EXPECT_TRUE(test, m->nr_read < 3 * TM_UNIT);

	/* A summary that does not verify is as good as none. */
	*tm_at(m, 1, TM_SEG_UNITS - 2) ^= 1;
	KUNIT_ASSERT_EQ(test, (u32)tm_recover(m, 1), (u32)KVT_RC_UNSEALED);
	KUNIT_EXPECT_EQ(test, m->found.nr_bad[KVT_BAD_SUMMARY], 1u);
	KUNIT_EXPECT_EQ(test, m->nr_blocks, 3u);
	*tm_at(m, 1, TM_SEG_UNITS - 2) ^= 1;

	/* The next life has begun: the old footer says nothing. */
	make(m, &n);
	KUNIT_ASSERT_EQ(test, (u32)tm_recover(m, 1), (u32)KVT_RC_UNSEALED);
	KUNIT_EXPECT_EQ(test, m->found.life, 10ull);
	KUNIT_EXPECT_EQ(test, m->nr_blocks, 1u);
	/* Nor does it when the beginning of the next life is torn. */
	tm_at(m, 1, 0)[130] ^= 1;
	KUNIT_EXPECT_EQ(test, (u32)tm_recover(m, 1), (u32)KVT_RC_FREE);
	KUNIT_EXPECT_EQ(test, m->nr_blocks, 0u);
}

/* What cannot be read is not there, and that is counted. */
static void recover_io_errors(struct kunit *test)
{
	struct media *m = tm_new(test);
	struct tb a = { .seg = 0, .life = 2, .nr_blocks = 2, .units = 2 };
	u32 fill = make(m, &a);

	m->bad_byte = TM_FIRST + 3 * TM_UNIT;
	tm_recover(m, 0);
	KUNIT_EXPECT_EQ(test, m->nr_blocks, 1u);
	KUNIT_EXPECT_EQ(test, (u32)m->why[0], (u32)KVT_BAD_IO);
	KUNIT_EXPECT_EQ(test, m->found.nr_io, 0u);
	seal(m, &a, fill);
	m->bad_byte = TM_FIRST + (TM_SEG_UNITS - 2) * TM_UNIT;
	KUNIT_EXPECT_EQ(test, (u32)tm_recover(m, 0), (u32)KVT_RC_UNSEALED);
	KUNIT_EXPECT_EQ(test, m->found.nr_io, 1u);
	KUNIT_EXPECT_EQ(test, m->nr_blocks, 2u);
	m->bad_byte = TM_FIRST;
	KUNIT_EXPECT_EQ(test, (u32)tm_recover(m, 0), (u32)KVT_RC_FREE);
	KUNIT_EXPECT_EQ(test, m->found.nr_io, 1u);
}

/* Changes a record of the batch and makes it verify again. */
static void forge(struct media *m, struct tb *b, u32 i, u32 unit)
{
	u8 *header = tm_at(m, b->seg, b->unit);
	struct kvt_batch_info info;
	struct kvt_rec r;

	make(m, b);
	kvt_batch_decode(&m->geo, b->seg, b->unit, header, &info);
	kvt_batch_verify(&m->geo, header, &info);
	make_rec(m, b, i, &r);
	r.unit = unit;
	kvt_rec_encode((struct kvt_m_block *)(header + 128 + i * 128), &r);
	kvt_batch_encode(&m->geo, header, &info);
	tm_recover(m, b->seg);
}

/* Blocks lie in their batch, in order, and none on another. */
static void recover_hostile_places(struct kunit *test)
{
	struct tb a = { .seg = 0, .life = 2, .nr_blocks = 3, .units = 2, .nr_kills = 2 };
	u32 units[] = { 0, 1, 2, 4, 5, 6, 7, TM_SEG_UNITS, U32_MAX, U32_MAX - 1 }, i;
	struct media *m = tm_new(test);
	struct kvt_kill k = { .seg = TM_SEGS, .unit = 1, .life = 2 };
	struct kvt_batch_info info;

	for (i = 0; i < ARRAY_SIZE(units); i++) {
		forge(m, &a, 1, units[i]);
		KUNIT_EXPECT_EQ(test, m->nr_bad, m->nr_blocks == 1 ? 2u : 1u);
		KUNIT_EXPECT_TRUE(test, m->nr_blocks <= 2);
	}
	/* Kills of segments or units that are not there. */
	make(m, &a);
	kvt_batch_decode(&m->geo, 0, 0, tm_at(m, 0, 0), &info);
	kvt_batch_verify(&m->geo, tm_at(m, 0, 0), &info);
	kvt_kill_encode((struct kvt_m_kill *)(tm_at(m, 0, 0) + 128 + 3 * 128), &k);
	k.seg = 1;
	k.unit = TM_SEG_UNITS;
	kvt_kill_encode((struct kvt_m_kill *)(tm_at(m, 0, 0) + 144 + 3 * 128), &k);
	kvt_batch_encode(&m->geo, tm_at(m, 0, 0), &info);
	tm_recover(m, 0);
	KUNIT_EXPECT_EQ(test, m->nr_kills, 0u);
	KUNIT_EXPECT_EQ(test, m->found.nr_bad[KVT_BAD_RANGE], 2u);
}

/* Sizes that lead out of header, segment or device. */
static void recover_hostile_sizes(struct kunit *test)
{
	struct tb a = { .seg = TM_SEGS - 1, .life = 2, .nr_blocks = 1, .units = 1 };
	static const u32 big[] = { 0, 2, TM_SEG_UNITS - 1, TM_SEG_UNITS, 0x100000, U32_MAX };
	u8 *header = kunit_kzalloc(test, KVT_HEADER_BYTES_MAX, GFP_KERNEL);
	struct media *m = tm_new(test);
	struct kvt_batch_info info, b;
	u32 i, k;

	KUNIT_ASSERT_NOT_NULL(test, header);
	make(m, &a);
	kvt_batch_decode(&m->geo, a.seg, 0, tm_at(m, a.seg, 0), &info);
	for (i = 0; i < ARRAY_SIZE(big); i++) {
		for (k = 0; k < 5; k++) {
			u32 *field[] = { &b.payload_units, &b.nr_ns, &b.nr_blocks, &b.nr_kills,
					 &b.number };

			b = info;
			*field[k] = big[i];
			memcpy(tm_at(m, a.seg, 0) + 128, header + 128, TM_UNIT - 128);
			kvt_batch_encode(&m->geo, tm_at(m, a.seg, 0), &b);
			tm_recover(m, a.seg);
			KUNIT_EXPECT_EQ(test, m->nr_blocks, 0u);
		}
		/* This many units must not be read to find out. */
		b = info;
		kvt_batch_encode(&m->geo, tm_at(m, a.seg, 0), &b);
		((struct kvt_m_batch *)tm_at(m, a.seg, 0))->header_units = cpu_to_le32(big[i]);
		tm_recover(m, a.seg);
		KUNIT_EXPECT_TRUE(test, m->nr_read <= TM_SEG_BYTES);
	}
}

static struct kvt_recover how(struct media *m)
{
	return (struct kvt_recover) {
		.geo = &m->geo, .read = tm_read, .sink = &tm_sink, .ctx = m, .buf = m->buf,
		.buf_bytes = KVT_RECOVER_BUF_MIN,
	};
}

/* The life that is in a segment, or was, and which members are refused. */
static void recover_lives(struct kunit *test)
{
	struct kvt_super *super = kunit_kzalloc(test, sizeof(*super), GFP_KERNEL);
	struct kvt_life_seg *segs = kunit_kzalloc(test, TM_SEGS * sizeof(*segs), GFP_KERNEL);
	struct tb a = { .seg = 3, .life = 9, .nr_blocks = 2, .units = 2, .nr_kills = 1 };
	struct kvt_life l = { .super = super, .segs = segs };
	struct media *m = tm_new(test);
	struct kvt_recover r = how(m);
	struct kvt_life_seg *s = &segs[3];

	KUNIT_ASSERT_NOT_NULL(test, super);
	KUNIT_ASSERT_NOT_NULL(test, segs);
	KUNIT_EXPECT_EQ(test, kvt_life_read(&l, &r, 3), 0);
	KUNIT_EXPECT_EQ(test, s->life + s->stale, 0ull);
	KUNIT_EXPECT_EQ(test, kvt_life_recover(&l, &r, 3), 0);
	KUNIT_EXPECT_EQ(test, m->nr_blocks, 0u);
	seal(m, &a, make(m, &a));
	KUNIT_EXPECT_EQ(test, kvt_life_read(&l, &r, 3), 0);
	KUNIT_EXPECT_EQ(test, s->life, 9ull);
	KUNIT_EXPECT_EQ(test, s->stale, 0ull);
	/* What nobody gave out; the footer has the highest sequence. */
	super->life_limit = 9;
	super->seq_limit = 77778;
	KUNIT_EXPECT_EQ(test, kvt_life_recover(&l, &r, 3), -EUCLEAN);
	super->life_limit = 10;
	KUNIT_EXPECT_EQ(test, kvt_life_recover(&l, &r, 3), 0);
	KUNIT_EXPECT_EQ(test, s->found.max_seq, 77777ull);
	super->seq_limit = 77777;
	KUNIT_EXPECT_EQ(test, kvt_life_recover(&l, &r, 3), -EUCLEAN);
	super->seq_limit = 77778;
	/* It was another one before. */
	s->life = 8;
	KUNIT_EXPECT_EQ(test, kvt_life_recover(&l, &r, 3), -EIO);
	s->life = 9;
	m->bad_byte = kvt_geo_byte(&m->geo, 3, TM_SEG_UNITS - 1);
	KUNIT_EXPECT_EQ(test, kvt_life_recover(&l, &r, 3), -EIO);
	KUNIT_EXPECT_EQ(test, kvt_life_read(&l, &r, 3), 0);
	m->bad_byte = kvt_geo_byte(&m->geo, 3, 0);
	KUNIT_EXPECT_EQ(test, kvt_life_read(&l, &r, 3), -EIO);
	/* Of a damaged header nothing is left but a footer. */
	m->bad_byte = 0;
	tm_at(m, 3, 0)[200] ^= 1;
	memset(s, 0, sizeof(*s));
	KUNIT_EXPECT_EQ(test, kvt_life_read(&l, &r, 3), 0);
	KUNIT_EXPECT_EQ(test, s->life, 0ull);
	KUNIT_EXPECT_EQ(test, s->stale, 9ull);
	KUNIT_EXPECT_TRUE(test, kvt_life_damaged(s));
}

static struct kunit_case recover_cases[] = {
	KUNIT_CASE(recover_nothing),
	KUNIT_CASE(recover_walk),
	KUNIT_CASE(recover_footer),
	KUNIT_CASE(recover_io_errors),
	KUNIT_CASE(recover_hostile_places),
	KUNIT_CASE(recover_hostile_sizes),
	KUNIT_CASE(recover_lives),
	{ }
};

static struct kunit_suite recover_suite = {
	.name = "kvt_recover",
	.test_cases = recover_cases,
};

kunit_test_suite(recover_suite);
