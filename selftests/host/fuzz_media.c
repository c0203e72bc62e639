// SPDX-License-Identifier: GPL-2.0
/*
 * libFuzzer target: hostile media. The first byte of input chooses what it is, the
 * second whether checksums and the like are made right, so that the fuzzer gets
 * behind them:
 *
 *   0  two superblocks
 *   1  bits changed in footer and summary of a segment whose batches are good
 *   2  bits changed in the header of its first batch
 *   3  changes, of three bytes each, anywhere in it
 *
 * What recovery hands out must be in order, in its segment and no more than fits, and
 * the work must be bounded.
 */
#include "kvt_env.h"
#include "kvt_recover.h"

#define UNITS		24u
#define UNIT		4096u
#define SEG		3u
#define FIRST		KVT_HEAD_BYTES_MIN

static const struct kvt_geometry geo = {
	.member = "fuzzed, all over",
	.first_byte = FIRST,
	.seg_bytes = UNITS * UNIT,
	.unit_bytes = UNIT,
	.seg_units = UNITS,
	.nr_segs = SEG + 1,
};

struct run {
	u8 seg[UNITS * UNIT];
	u64 nr_read;
	u32 next;
	u32 nr;
};

static void check(bool ok, const char *what)
{
	if (!ok)
		kvt_env_die(__FILE__, __LINE__, what);
}

static int run_read(void *ctx, u64 byte, void *buf, u32 len)
{
	struct run *r = ctx;
	u64 at = byte - kvt_geo_byte(&geo, SEG, 0);

	check(at < sizeof(r->seg) && len <= sizeof(r->seg) - at, "read outside of the segment");
	r->nr_read += len;
	memcpy(buf, r->seg + at, len);
	return 0;
}

static void run_block(void *ctx, u32 seg, u64 life, const struct kvt_rec *rec)
{
	struct run *r = ctx;
	u32 units = kvt_geo_units(&geo, rec->stored);

	check(seg == SEG && life, "block of no segment");
	check(rec->unit >= r->next && rec->unit >= 1, "block on another");
	check(units && units < UNITS && rec->unit + units < UNITS, "block outside");
	r->next = rec->unit + units;
	r->nr++;
}

static void run_kill(void *ctx, u32 seg, const struct kvt_kill *k)
{
	struct run *r = ctx;

	(void)seg;
	check(k->seg < geo.nr_segs && (k->unit < UNITS || k->unit == KVT_KILL_ALL), "kill outside");
	r->nr++;
}

static void run_ns(void *ctx, u32 seg, const struct kvt_nsdef *d)
{
	struct run *r = ctx;

	(void)seg;
	check(d->nr_groups <= KVT_NS_GROUPS && d->identity_len <= KVT_NS_IDENTITY, "namespace");
	r->nr++;
}

static const struct kvt_recover_sink sink = {
	.block = run_block,
	.kill = run_kill,
	.ns = run_ns,
};

static void recover(struct run *r)
{
	static u64 buf[KVT_RECOVER_BUF_MIN / 8];
	struct kvt_recover rc = {
		.geo = &geo,
		.read = run_read,
		.sink = &sink,
		.ctx = r,
		.buf = (u8 *)buf,
		.buf_bytes = sizeof(buf),
	};
	struct kvt_seg_found f;

	r->next = 1;
	kvt_recover_segment(&rc, SEG, &f);
	check(r->nr_read <= 3 * sizeof(r->seg) + 2 * UNIT, "reads too much");
	check(r->nr <= sizeof(r->seg) / 16, "finds too much");
	check(f.state == KVT_RC_FREE ? !r->nr : f.life && f.life < KVT_LIFE_MAX, "life");
}

/* Identity and checksum of a batch header, and of its records. */
static void right_batch(struct run *r, u32 unit)
{
	struct kvt_m_batch *m = (struct kvt_m_batch *)(r->seg + unit * UNIT);
	u32 units = max(min(le32_to_cpu(m->header_units), UNITS - unit), 1u), i;
	struct kvt_m_block *b;

	m->magic = cpu_to_le64(KVT_MAGIC_BATCH);
	m->version = cpu_to_le16(KVT_MEDIA_VERSION);
	m->flags = 0;
	m->seg = cpu_to_le32(SEG);
	memcpy(m->member, geo.member, sizeof(m->member));
	kvt_scramble(m + 1, units * UNIT - sizeof(*m), le64_to_cpu(m->life),
		     le32_to_cpu(m->number), 0);
	b = (struct kvt_m_block *)(r->seg + unit * UNIT + sizeof(*m) +
				   min(le32_to_cpu(m->nr_ns), 4u) * sizeof(struct kvt_m_ns));
	for (i = 0; i < min(le32_to_cpu(m->nr_blocks), 8u); i++) {
		b[i].crc = 0;
		b[i].crc = cpu_to_le32(kvt_crc(&b[i], sizeof(b[i])));
	}
	kvt_scramble(m + 1, units * UNIT - sizeof(*m), le64_to_cpu(m->life),
		     le32_to_cpu(m->number), 0);
	m->crc = 0;
	m->crc = cpu_to_le32(kvt_crc(m, units * UNIT));
}

static void right_footer(struct run *r)
{
	struct kvt_m_footer *m = (struct kvt_m_footer *)(r->seg + (UNITS - 1) * UNIT);
	u32 unit = min(le32_to_cpu(m->sum_unit), UNITS - 1);

	m->magic = cpu_to_le64(KVT_MAGIC_FOOTER);
	m->version = cpu_to_le16(KVT_MEDIA_VERSION);
	m->flags = 0;
	m->seg = cpu_to_le32(SEG);
	memcpy(m->member, geo.member, sizeof(m->member));
	m->sum_crc = cpu_to_le32(kvt_crc(r->seg + unit * UNIT,
					 min(le32_to_cpu(m->sum_bytes), (UNITS - unit) * UNIT)));
	m->crc = 0;
	m->crc = cpu_to_le32(kvt_crc(m, sizeof(*m)));
}

/* Two blocks and a kill, as a writer makes them. */
static u32 good_batch(struct run *r, u32 unit, u32 number)
{
	u8 *at = r->seg + unit * UNIT;
	struct kvt_batch_info info = {
		.life = 5, .seq = 9, .seg = SEG, .number = number, .header_units = 1,
		.payload_units = 3, .nr_blocks = 2, .nr_kills = 1,
	};
	struct kvt_kill k = { .seg = 1, .unit = 1, .life = 2 };
	struct kvt_payload_sum sum;
	struct kvt_rec rec;
	u32 i;

	for (i = 0; i < 2; i++) {
		memset(&rec, 0, sizeof(rec));
		rec.key[0] = (u8)(2 * number + i + 1);
		rec.ns = 1;
		rec.unit = unit + 1 + i;
		rec.stored = (1 + i) * UNIT;
		rec.bytes = rec.stored;
		kvt_payload_sum_start(&sum);
		kvt_payload_sum_add(&sum, r->seg + rec.unit * UNIT, rec.stored);
		rec.sum = kvt_payload_sum_end(&sum);
		kvt_rec_encode((struct kvt_m_block *)(at + 128 + i * 128), &rec);
	}
	kvt_kill_encode((struct kvt_m_kill *)(at + 384), &k);
	kvt_batch_encode(&geo, at, &info);
	return unit + 4;
}

static void good_segment(struct run *r)
{
	u32 unit = 0, i;
	struct kvt_footer_info f = {
		.life = 5, .seg = SEG, .sum_unit = UNITS - 2, .fill = 12, .nr_blocks = 2,
		.nr_kills = 1, .sum_bytes = 272, .nr_batches = 3,
	};

	memset(r, 0, sizeof(*r));
	for (i = 0; i < 3; i++)
		unit = good_batch(r, unit, i);
	memcpy(r->seg + (UNITS - 2) * UNIT, r->seg + 128, 272);
	/* From the batch's clear text to the summary's. */
	kvt_scramble(r->seg + (UNITS - 2) * UNIT, 272, 5, 0, 0);
	kvt_scramble(r->seg + (UNITS - 2) * UNIT, 272, f.life, f.salt, 0);
	f.sum_crc = kvt_crc(r->seg + (UNITS - 2) * UNIT, 272);
	kvt_footer_encode(&geo, (struct kvt_m_footer *)(r->seg + (UNITS - 1) * UNIT), &f);
}

static void fuzz_super(const u8 *data, size_t size, bool right)
{
	static u8 block[KVT_SUPER_BYTES];
	struct kvt_m_super *m = (struct kvt_m_super *)block;
	struct kvt_super_pick p;
	u32 i, n;

	kvt_super_pick_start(&p);
	for (i = 0; i < 2; i++) {
		n = min_t(u32, size, KVT_SUPER_BYTES);
		memset(block, 0, sizeof(block));
		memcpy(block, data, n);
		data += n / 2;
		size -= n / 2;
		if (right) {
			m->magic = cpu_to_le64(KVT_MAGIC_SUPER);
			m->version = cpu_to_le16(KVT_MEDIA_VERSION);
			m->crc = 0;
			m->crc = cpu_to_le32(kvt_crc(m, sizeof(*m)));
		}
		kvt_super_pick_add(&p, i, block);
	}
	if (p.err || kvt_super_check(&p.super, 1ull << 40, true))
		return;
	check(kvt_geo_byte(&p.super.geo, p.super.geo.nr_segs - 1, p.super.geo.seg_units) <=
	      1ull << 40, "geometry outside of the device");
}

/* Zeroes leave what is there, so that the fuzzer starts at something good. */
static void change(u8 *at, const u8 *data, size_t len)
{
	while (len--)
		*at++ ^= *data++;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct run r;
	bool right;
	u32 mode, i;

	if (size < 2)
		return 0;
	mode = data[0] % 4;
	right = data[1] & 1;
	data += 2;
	size -= 2;
	if (mode == 0) {
		fuzz_super(data, size, right);
		return 0;
	}
	good_segment(&r);
	if (mode == 1) {
		change(r.seg + (UNITS - 1) * UNIT, data, min_t(size_t, size, 128));
		if (size > 128)
			change(r.seg + (UNITS - 2) * UNIT, data + 128,
			       min_t(size_t, size - 128, UNIT));
	} else if (mode == 2) {
		change(r.seg, data, min_t(size_t, size, UNIT));
	} else {
		for (i = 0; i + 3 <= size; i += 3)
			r.seg[((data[i] | (u32)data[i + 1] << 8) * 4u + i % 4) % sizeof(r.seg)] =
				data[i + 2];
	}
	if (right && mode == 1)
		right_footer(&r);
	for (i = 0; right && mode != 1 && i < 3; i++)
		right_batch(&r, 4 * i);
	recover(&r);
	return 0;
}
