// SPDX-License-Identifier: GPL-2.0
/*
 * Encoding and decoding: everything comes back, nothing else is accepted, and the
 * checksums see what they are there to see.
 */
#include "kvt_media.h"

/* The values that the literature gives. */
static void format_crc_vectors(struct kunit *test)
{
	u8 buf[32];
	u32 i;

	KUNIT_EXPECT_EQ(test, kvt_crc("123456789", 9), 0xe3069283u);
	memset(buf, 0, sizeof(buf));
	KUNIT_EXPECT_EQ(test, kvt_crc(buf, sizeof(buf)), 0x8a9136aau);
	memset(buf, 0xff, sizeof(buf));
	KUNIT_EXPECT_EQ(test, kvt_crc(buf, sizeof(buf)), 0x62a8ab43u);
	for (i = 0; i < sizeof(buf); i++)
		buf[i] = (u8)i;
	KUNIT_EXPECT_EQ(test, kvt_crc(buf, sizeof(buf)), 0x46dd794eu);
}

/* However the bytes come, and equal to its definition. */
static void format_payload_sum(struct kunit *test)
{
	u32 len = 2 * KVT_SUM_BYTES + 4096, at, n, i;
	u8 *buf = kunit_kzalloc(test, len, GFP_KERNEL);
	struct kvt_payload_sum s;
	__le32 list[3];
	u64 rnd = 3;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	for (i = 0; i < len; i++)
		buf[i] = (u8)kvt_test_random(&rnd);
	list[0] = cpu_to_le32(kvt_crc(buf, KVT_SUM_BYTES));
	list[1] = cpu_to_le32(kvt_crc(buf + KVT_SUM_BYTES, KVT_SUM_BYTES));
	list[2] = cpu_to_le32(kvt_crc(buf + 2 * KVT_SUM_BYTES, 4096));
	KUNIT_EXPECT_EQ(test, tm_sum(buf, len), kvt_crc(list, sizeof(list)));
	KUNIT_EXPECT_EQ(test, tm_sum(buf, 2 * KVT_SUM_BYTES), kvt_crc(list, 8));
	for (i = 0; i < 20; i++) {
		kvt_payload_sum_start(&s);
		for (at = 0; at < len; at += n) {
			n = min(1 + kvt_test_random(&rnd) % 90000, len - at);
			kvt_payload_sum_add(&s, buf + at, n);
		}
		KUNIT_ASSERT_EQ(test, kvt_payload_sum_end(&s), kvt_crc(list, sizeof(list)));
	}
	buf[KVT_SUM_BYTES + 77] ^= 0x10;
	KUNIT_EXPECT_NE(test, tm_sum(buf, len), kvt_crc(list, sizeof(list)));
}

static void format_block(struct kunit *test)
{
	struct kvt_rec r = tm_rec(7, 3), back;
	struct kvt_m_block m, again;
	u32 i;

	r.seq = 0x1122334455667788ull;
	r.expiry_s = 99;
	r.unit = 12;
	r.sum = 0xdeadbeef;
	kvt_rec_encode(&m, &r);
	KUNIT_ASSERT_EQ(test, (u32)kvt_rec_decode(&m, &back), (u32)KVT_BAD_NONE);
	kvt_rec_encode(&again, &back);
	KUNIT_EXPECT_EQ(test, memcmp(&m, &again, sizeof(m)), 0);
	KUNIT_EXPECT_EQ(test, back.seq, r.seq);
	KUNIT_EXPECT_EQ(test, back.unit, 12u);
	KUNIT_EXPECT_EQ(test, back.sum, 0xdeadbeefu);
	/* Not a single bit may change. */
	for (i = 0; i < sizeof(m) * 8; i++) {
		((u8 *)&m)[i / 8] ^= (u8)(1 << i % 8);
		KUNIT_ASSERT_NE(test, (u32)kvt_rec_decode(&m, &back), (u32)KVT_BAD_NONE);
		((u8 *)&m)[i / 8] ^= (u8)(1 << i % 8);
	}
}

static void block_crc(struct kvt_m_block *m)
{
	m->crc = 0;
	m->crc = cpu_to_le32(kvt_crc(m, sizeof(*m)));
}

/* What verifies may still be nonsense, or of another version. */
static void format_block_hostile(struct kunit *test)
{
	struct kvt_rec r = tm_rec(7, 3), back;
	struct kvt_m_block good, m;

	kvt_rec_encode(&good, &r);
#define EXPECT(change, result)							\
do {										\
	m = good;								\
	change;									\
	block_crc(&m);								\
	KUNIT_EXPECT_EQ(test, (u32)kvt_rec_decode(&m, &back), (u32)(result));	\
} while (0)
	EXPECT((void)0, KVT_BAD_NONE);
	EXPECT(m.flags = cpu_to_le16(1), KVT_BAD_UNKNOWN);
	EXPECT(m.codec = 1, KVT_BAD_UNKNOWN);
	EXPECT(m.part = cpu_to_le16(1), KVT_BAD_UNKNOWN);
	EXPECT(m.nr_parts = cpu_to_le16(2), KVT_BAD_UNKNOWN);
	EXPECT(m.reserved1[0] = 9, KVT_BAD_NONE);
	EXPECT(m.bytes = 0, KVT_BAD_RANGE);
	EXPECT(m.bytes = cpu_to_le32(3 * TM_UNIT + 1), KVT_BAD_RANGE);
	EXPECT(m.stored = cpu_to_le32(3 * TM_UNIT + 512), KVT_BAD_RANGE);
	EXPECT(m.stored = cpu_to_le32(KVT_STORED_BYTES_MAX + TM_UNIT), KVT_BAD_RANGE);
	EXPECT(m.group = cpu_to_le16(16), KVT_BAD_RANGE);
	EXPECT(m.seq = cpu_to_le64(KVT_LIFE_MAX), KVT_BAD_RANGE);
	EXPECT(memcpy(m.parent, m.key, 32), KVT_BAD_RANGE);
#undef EXPECT
}

static void format_ns(struct kunit *test)
{
	struct kvt_nsdef *def = kunit_kzalloc(test, 2 * sizeof(*def), GFP_KERNEL);
	struct kvt_m_ns *m = kunit_kzalloc(test, 2 * sizeof(*m), GFP_KERNEL);
	struct kvt_nsdef *back = def + 1;
	struct kvt_m_ns *again = m + 1;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, def);
	KUNIT_ASSERT_NOT_NULL(test, m);
	def->id = 9;
	def->seq = 4;
	def->life_mark = 77;
	def->life_first = 70;
	def->quota_bytes = 1ull << 40;
	def->min_bytes = 3;
	def->uid = 1000;
	def->gid = 100;
	def->mode = 0640;
	def->flags = KVT_NSF_SECRET;
	def->nr_groups = 2;
	def->group_bytes[0] = 655360;
	def->group_bytes[1] = KVT_STORED_BYTES_MAX;
	def->identity_len = KVT_NS_IDENTITY;
	memset(def->identity, 0x33, sizeof(def->identity));
	memset(def->secret, 0x44, sizeof(def->secret));
	memset(def->salt, 0x55, sizeof(def->salt));
	kvt_nsdef_encode(m, def);
	KUNIT_ASSERT_EQ(test, (u32)kvt_nsdef_decode(m, back), (u32)KVT_BAD_NONE);
	kvt_nsdef_encode(again, back);
	KUNIT_EXPECT_EQ(test, memcmp(m, again, sizeof(*m)), 0);
	KUNIT_EXPECT_EQ(test, back->life_mark, 77ull);
	KUNIT_EXPECT_EQ(test, back->life_first, 70ull);
	KUNIT_EXPECT_EQ(test, back->secret[31], 0x44);
	for (i = 0; i < sizeof(*m); i++) {
		((u8 *)m)[i] ^= 0x80;
		KUNIT_ASSERT_EQ(test, (u32)kvt_nsdef_decode(m, back), (u32)KVT_BAD_CRC);
		((u8 *)m)[i] ^= 0x80;
	}
#define EXPECT(field, value, result)						\
do {										\
	kvt_nsdef_encode(m, def);						\
	m->field = value;							\
	m->crc = 0;								\
	m->crc = cpu_to_le32(kvt_crc(m, sizeof(*m)));				\
	KUNIT_EXPECT_EQ(test, (u32)kvt_nsdef_decode(m, back), (u32)(result));	\
} while (0)
	EXPECT(flags, cpu_to_le32(4), KVT_BAD_UNKNOWN);
	EXPECT(nr_groups, cpu_to_le16(17), KVT_BAD_RANGE);
	EXPECT(identity_len, cpu_to_le16(257), KVT_BAD_RANGE);
	EXPECT(id, 0, KVT_BAD_RANGE);
	EXPECT(group_bytes[1], 0, KVT_BAD_RANGE);
	EXPECT(group_bytes[1], cpu_to_le32(KVT_STORED_BYTES_MAX + 1), KVT_BAD_RANGE);
#undef EXPECT
}

/* A header of two blocks and a namespace, finished. */
static void make_batch(struct media *m, u8 *header, struct kvt_batch_info *b, u32 first)
{
	struct kvt_nsdef d = { .id = 5, .seq = first };
	struct kvt_rec r = tm_rec(first, 1);

	memset(header, 0, TM_UNIT);
	kvt_nsdef_encode((struct kvt_m_ns *)(header + 128), &d);
	r.unit = 1;
	kvt_rec_encode((struct kvt_m_block *)(header + 640), &r);
	r = tm_rec(first + 1, 2);
	r.unit = 2;
	kvt_rec_encode((struct kvt_m_block *)(header + 768), &r);
	*b = (struct kvt_batch_info) {
		.life = 3, .seq = 8, .seg = 2, .header_units = 1, .payload_units = 3,
		.nr_ns = 1, .nr_blocks = 2,
	};
	kvt_batch_encode(&m->geo, header, b);
}

static void format_batch(struct kunit *test)
{
	u8 *header = kunit_kzalloc(test, TM_UNIT, GFP_KERNEL);
	struct media *m = tm_new(test);
	struct kvt_batch_info b, back;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, header);
	make_batch(m, header, &b, 1);
	KUNIT_ASSERT_TRUE(test, kvt_batch_decode(&m->geo, 2, 0, header, &back));
	KUNIT_EXPECT_EQ(test, memcmp(&b, &back, sizeof(b)), 0);
	KUNIT_EXPECT_TRUE(test, kvt_batch_verify(&m->geo, header, &back));
	kvt_batch_encode(&m->geo, header, &b);
	/* Elsewhere, or of another member, it is nothing. */
	KUNIT_EXPECT_FALSE(test, kvt_batch_decode(&m->geo, 1, 0, header, &back));
	KUNIT_EXPECT_FALSE(test, kvt_batch_decode(&m->geo, 2, TM_SEG_UNITS - 4, header, &back));
	m->geo.member[15]++;
	KUNIT_EXPECT_FALSE(test, kvt_batch_decode(&m->geo, 2, 0, header, &back));
	m->geo.member[15]--;
	for (i = 0; i < TM_UNIT; i++) {
		header[i] ^= 1;
		KUNIT_ASSERT_FALSE(test, kvt_batch_decode(&m->geo, 2, 0, header, &back) &&
				   kvt_batch_verify(&m->geo, header, &back));
		header[i] ^= 1;
	}
}

/*
 * Regression: a torn write completed by what it had in common with the next one, torn
 * as well: here the zeroes behind the entries, over something older.
 */
static void format_torn_twice(struct kunit *test)
{
	u8 *media = kunit_kzalloc(test, TM_UNIT, GFP_KERNEL);
	u8 *one = kunit_kzalloc(test, TM_UNIT, GFP_KERNEL);
	u8 *two = kunit_kzalloc(test, TM_UNIT, GFP_KERNEL);
	struct media *m = tm_new(test);
	struct kvt_batch_info b, back;
	u32 at;

	KUNIT_ASSERT_NOT_NULL(test, media);
	KUNIT_ASSERT_NOT_NULL(test, one);
	KUNIT_ASSERT_NOT_NULL(test, two);
	make_batch(m, one, &b, 1);
	kvt_batch_verify(&m->geo, one, &b);
	memcpy(two, one, TM_UNIT);
	kvt_batch_encode(&m->geo, one, &b);
	b.life++;
	kvt_batch_encode(&m->geo, two, &b);
	for (at = 512; at < TM_UNIT; at += 512)
		KUNIT_EXPECT_NE(test, memcmp(one + at, two + at, 512), 0);
	memset(media, 0xaa, TM_UNIT);
	memcpy(media, one, 3072);
	memcpy(media + 3072, two + 3072, 1024);
	KUNIT_ASSERT_TRUE(test, kvt_batch_decode(&m->geo, 2, 0, media, &back));
	KUNIT_EXPECT_FALSE(test, kvt_batch_verify(&m->geo, media, &back));
	memcpy(media + 3072, one + 3072, 1024);
	KUNIT_EXPECT_TRUE(test, kvt_batch_verify(&m->geo, media, &back));
}

/*
 * Regression: records that end with their own CRC are all the same to a CRC over
 * them, so a header torn between two records did verify.
 */
static void format_torn_between_records(struct kunit *test)
{
	u8 *header = kunit_kzalloc(test, TM_UNIT, GFP_KERNEL);
	u8 *stale = kunit_kzalloc(test, TM_UNIT, GFP_KERNEL);
	struct media *m = tm_new(test);
	struct kvt_batch_info b, back;
	u32 at[] = { 128, 640, 768 }, len[] = { 512, 128, 128 }, i;

	KUNIT_ASSERT_NOT_NULL(test, header);
	KUNIT_ASSERT_NOT_NULL(test, stale);
	for (i = 0; i < ARRAY_SIZE(at); i++) {
		make_batch(m, stale, &b, 11);
		make_batch(m, header, &b, 1);
		memcpy(header + at[i], stale + at[i], len[i]);
		KUNIT_ASSERT_TRUE(test, kvt_batch_decode(&m->geo, 2, 0, header, &back));
		KUNIT_EXPECT_FALSE(test, kvt_batch_verify(&m->geo, header, &back));
	}
	/* Nor may two change places. */
	make_batch(m, header, &b, 1);
	memcpy(stale, header, TM_UNIT);
	memcpy(header + 640, stale + 768, 128);
	memcpy(header + 768, stale + 640, 128);
	KUNIT_EXPECT_FALSE(test, kvt_batch_verify(&m->geo, header, &b));
}

static void format_footer(struct kunit *test)
{
	struct media *m = tm_new(test);
	struct kvt_footer_info f = {
		.life = 6, .min_seq = 1, .max_seq = 9, .seg = 4, .sum_unit = 21,
		.sum_bytes = 512 + 3 * 128 + 5 * 16, .sum_crc = 0x1234, .nr_ns = 1,
		.nr_blocks = 3, .nr_kills = 5, .nr_batches = 2, .fill = 20,
	}, back;
	struct kvt_m_footer foot, again;
	u32 i;

	f.sum_unit = TM_SEG_UNITS - 2;
	kvt_footer_encode(&m->geo, &foot, &f);
	KUNIT_ASSERT_TRUE(test, kvt_footer_decode(&m->geo, 4, &foot, &back));
	kvt_footer_encode(&m->geo, &again, &back);
	KUNIT_EXPECT_EQ(test, memcmp(&foot, &again, sizeof(foot)), 0);
	KUNIT_EXPECT_EQ(test, back.sum_crc, 0x1234u);
	KUNIT_EXPECT_FALSE(test, kvt_footer_decode(&m->geo, 3, &foot, &back));
	for (i = 0; i < sizeof(foot) * 8; i++) {
		((u8 *)&foot)[i / 8] ^= (u8)(1 << i % 8);
		KUNIT_ASSERT_FALSE(test, kvt_footer_decode(&m->geo, 4, &foot, &back));
		((u8 *)&foot)[i / 8] ^= (u8)(1 << i % 8);
	}
	/* Verifying nonsense. */
	for (i = 0; i < 5; i++) {
		struct kvt_footer_info x = f;

		x.sum_unit -= i == 0;
		x.nr_kills += i == 1;
		x.fill = i == 2 ? x.sum_unit + 1 : x.fill;
		x.life = i == 3 ? 0 : x.life;
		x.sum_unit = i == 4 ? TM_SEG_UNITS : x.sum_unit;
		kvt_footer_encode(&m->geo, &foot, &x);
		KUNIT_EXPECT_FALSE(test, kvt_footer_decode(&m->geo, 4, &foot, &back));
	}
}

static struct kvt_super *make_super(struct kunit *test, struct media *m, u64 generation)
{
	struct kvt_super *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, s);
	s->geo = m->geo;
	s->generation = generation;
	s->device_bytes = TM_FIRST + TM_SEGS * TM_SEG_BYTES;
	s->life_limit = 5;
	s->seq_limit = 6;
	s->ns_limit = 7;
	s->created_ns = 8;
	s->updated_ns = 9;
	s->state = KVT_STATE_DIRTY;
	s->tier_type = 3;
	s->rank = 2;
	s->compat = 1ull << 40;
	memcpy(s->pool, "this is a pool..", KVT_UUID_BYTES);
	memcpy(s->name, "nvme0", 6);
	s->nr_members = KVT_MEMBERS_MAX;
	for (i = 0; i < s->nr_members; i++) {
		s->members[i].uuid[0] = (u8)i;
		s->members[i].generation = i + 100;
	}
	return s;
}

static void format_super(struct kunit *test)
{
	u8 *one = kunit_kzalloc(test, KVT_SUPER_BYTES, GFP_KERNEL);
	u8 *two = kunit_kzalloc(test, KVT_SUPER_BYTES, GFP_KERNEL);
	struct kvt_super_pick *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	struct media *m = tm_new(test);
	struct kvt_super *s = make_super(test, m, 10);

	KUNIT_ASSERT_NOT_NULL(test, one);
	KUNIT_ASSERT_NOT_NULL(test, two);
	KUNIT_ASSERT_NOT_NULL(test, p);
	kvt_super_encode(one, s);
	s->generation = 11;
	kvt_super_encode(two, s);

	/* The newer one, in either order. */
	kvt_super_pick_start(p);
	kvt_super_pick_add(p, 0, one);
	kvt_super_pick_add(p, 1, two);
	KUNIT_ASSERT_EQ(test, p->err, 0);
	KUNIT_EXPECT_EQ(test, p->slot, 1u);
	KUNIT_ASSERT_EQ(test, kvt_super_check(&p->super, s->device_bytes, true), 0);
	KUNIT_EXPECT_EQ(test, p->super.geo.seg_units, TM_SEG_UNITS);
	kvt_super_encode(one, &p->super);
	KUNIT_EXPECT_EQ(test, memcmp(one, two, KVT_SUPER_BYTES), 0);
	s->generation = 10;
	kvt_super_encode(one, s);
	kvt_super_pick_start(p);
	kvt_super_pick_add(p, 1, two);
	kvt_super_pick_add(p, 0, one);
	KUNIT_EXPECT_EQ(test, p->slot, 1u);

	/* Of two copies of one the one that is where it belongs. */
	kvt_super_pick_start(p);
	kvt_super_pick_add(p, 1, one);
	kvt_super_pick_add(p, 0, one);
	KUNIT_EXPECT_EQ(test, p->slot, 0u);
	kvt_super_pick_start(p);
	kvt_super_pick_add(p, 0, one);
	kvt_super_pick_add(p, 1, one);
	KUNIT_EXPECT_EQ(test, p->slot, 0u);

	/* One torn: the other. Both: refused, and not as something foreign. */
	two[300] ^= 1;
	kvt_super_pick_start(p);
	KUNIT_EXPECT_EQ(test, p->err, -EMEDIUMTYPE);
	kvt_super_pick_add(p, 1, two);
	KUNIT_EXPECT_EQ(test, p->err, -EUCLEAN);
	kvt_super_pick_add(p, 0, one);
	KUNIT_EXPECT_EQ(test, p->err, 0);
	KUNIT_EXPECT_EQ(test, p->super.generation, 10ull);
	one[4095] ^= 1;
	kvt_super_pick_start(p);
	kvt_super_pick_add(p, 0, one);
	kvt_super_pick_add(p, 1, two);
	KUNIT_EXPECT_EQ(test, p->err, -EUCLEAN);
	KUNIT_EXPECT_EQ(test, p->nr_torn, 2u);
	one[0] ^= 1;
	two[0] ^= 1;
	kvt_super_pick_start(p);
	kvt_super_pick_add(p, 0, one);
	kvt_super_pick_add(p, 1, two);
	KUNIT_EXPECT_EQ(test, p->err, -EMEDIUMTYPE);
}

/* A newer one that cannot be understood is not replaced by an older one that can. */
static void format_super_features(struct kunit *test)
{
	u8 *block = kunit_kzalloc(test, KVT_SUPER_BYTES, GFP_KERNEL);
	struct kvt_super_pick *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	struct media *m = tm_new(test);
	struct kvt_super *s = make_super(test, m, 10);

	KUNIT_ASSERT_NOT_NULL(test, block);
	KUNIT_ASSERT_NOT_NULL(test, p);
	kvt_super_pick_start(p);
	kvt_super_encode(block, s);
	kvt_super_pick_add(p, 0, block);
	s->generation = 11;
	s->incompat = 1ULL << 40;
	kvt_super_encode(block, s);
	kvt_super_pick_add(p, 1, block);
	KUNIT_EXPECT_EQ(test, p->err, -EPROTONOSUPPORT);
	s->generation = 9;
	s->incompat = 0;
	kvt_super_encode(block, s);
	kvt_super_pick_add(p, 0, block);
	KUNIT_EXPECT_EQ(test, p->err, -EPROTONOSUPPORT);
	s->ro_compat = 1;
	KUNIT_EXPECT_EQ(test, kvt_super_check(s, s->device_bytes, true), -EROFS);
	KUNIT_EXPECT_EQ(test, kvt_super_check(s, s->device_bytes, false), 0);
}

static void format_super_geometry(struct kunit *test)
{
	struct media *m = tm_new(test);
	struct kvt_super *good = make_super(test, m, 1), *s = make_super(test, m, 1);
	u64 bytes = good->device_bytes;

	KUNIT_EXPECT_EQ(test, kvt_super_check(s, bytes, true), 0);
	KUNIT_EXPECT_EQ(test, kvt_super_check(s, bytes - 1, true), -ERANGE);
#define EXPECT(change)								\
do {										\
	*s = *good;								\
	change;									\
	KUNIT_EXPECT_EQ(test, kvt_super_check(s, bytes, true), -ERANGE);	\
} while (0)
	EXPECT(s->geo.unit_bytes = 2048);
	EXPECT(s->geo.unit_bytes = 12288);
	EXPECT(s->geo.unit_bytes = 1u << 20);
	EXPECT(s->geo.unit_bytes = 0);
	EXPECT(s->geo.seg_bytes = 0);
	EXPECT(s->geo.seg_bytes += 512);
	EXPECT(s->geo.seg_bytes = 3 * TM_UNIT);
	EXPECT(s->geo.seg_bytes = 1ull << 62);
	EXPECT(s->geo.nr_segs = 0);
	EXPECT(s->geo.nr_segs = U32_MAX);
	EXPECT(s->geo.nr_segs++);
	EXPECT(s->geo.first_byte = 0);
	EXPECT(s->geo.first_byte = bytes + TM_UNIT);
	EXPECT(s->geo.first_byte += 100);
	EXPECT(s->life_limit = KVT_LIMIT_MAX);
	EXPECT(s->seq_limit = KVT_LIMIT_MAX);
	EXPECT(s->seq_limit = U64_MAX);
	EXPECT(s->generation = KVT_LIMIT_MAX);
	EXPECT(s->state = 0);
	bytes = 1ULL << 50;
	EXPECT(s->geo.seg_bytes = 4 * TM_UNIT; s->geo.nr_segs = KVT_SEGS_MAX + 1);
#undef EXPECT
	s->geo.nr_segs = KVT_SEGS_MAX;
	KUNIT_EXPECT_EQ(test, kvt_super_check(s, bytes, true), 0);
}

static struct kunit_case format_cases[] = {
	KUNIT_CASE(format_crc_vectors),
	KUNIT_CASE(format_payload_sum),
	KUNIT_CASE(format_block),
	KUNIT_CASE(format_block_hostile),
	KUNIT_CASE(format_ns),
	KUNIT_CASE(format_batch),
	KUNIT_CASE(format_torn_twice),
	KUNIT_CASE(format_torn_between_records),
	KUNIT_CASE(format_footer),
	KUNIT_CASE(format_super),
	KUNIT_CASE(format_super_features),
	KUNIT_CASE(format_super_geometry),
	{ }
};

static struct kunit_suite format_suite = {
	.name = "kvt_format",
	.test_cases = format_cases,
};

kunit_test_suite(format_suite);
