// SPDX-License-Identifier: GPL-2.0
/*
 * libFuzzer target: fsck and its repair on hostile media. The first byte of input says
 * which image, whether payloads are verified, and whether checksums are made right so
 * that the fuzzer gets behind them; then come changes of four bytes each: where in the
 * metadata, and what is to be combined by exclusive or.
 *
 * A check ends, reads no more than a few times the device, keeps no more than a block
 * for each unit, and writes nothing. Repair ends; what it says it can put right is
 * right afterwards, and the member is still one. Some images are of zoned devices, where
 * a write has to be at the write pointer.
 */
#include "crash.h"
#include "fsck.h"
#include <stdarg.h>

#define IMAGES	6u
#define ZONED	4u	/* those from here on */
#define ROUNDS	6u

static struct {
	u8 *whole;
	u64 bytes;
	u64 wp[CR_ZONES_MAX];
	struct kvt_geometry geo;
} images[IMAGES];

/* The device under test. */
static u8 *now;
static u64 now_zone, now_wp[CR_ZONES_MAX];
static struct media *now_media;
static u64 now_bytes, nr_read, nr_written, nr_reports;

void cr_fail(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	abort();
}

static int mem_read(void *ctx, u64 byte, void *buf, u32 len)
{
	(void)ctx;
	CR_ASSERT(byte <= now_bytes && len <= now_bytes - byte);
	nr_read += len;
	memcpy(buf, now + byte, len);
	return 0;
}

static void moved_on(u64 zone, u64 wp)
{
	now_wp[zone] = wp;
	memcpy(now_media->wp, now_wp, sizeof(now_media->wp));
}

static void write_zones(u64 byte, u32 len)
{
	u32 n;

	CR_ASSERT(byte % CR_UNIT == 0 && len % CR_UNIT == 0);
	for (; len; len -= n, byte += n) {
		n = (u32)min((u64)len, now_zone - byte % now_zone);
		CR_ASSERT(byte % now_zone == now_wp[byte / now_zone]);
		moved_on(byte / now_zone, byte % now_zone + n);
	}
}

static int mem_write(void *ctx, u64 byte, const void *buf, u32 len)
{
	(void)ctx;
	CR_ASSERT(byte <= now_bytes && len <= now_bytes - byte);
	nr_written += len;
	if (now_zone)
		write_zones(byte, len);
	memcpy(now + byte, buf, len);
	return 0;
}

static int mem_reset(void *ctx, u64 byte)
{
	(void)ctx;
	CR_ASSERT(byte % now_zone == 0 && byte < now_bytes);
	nr_written += now_zone;
	memset(now + byte, 0, now_zone);
	moved_on(byte / now_zone, 0);
	return 0;
}

static int mem_flush(void *ctx)
{
	(void)ctx;
	return 0;
}

static void on_report(void *ctx, const struct fsck_problem *p)
{
	(void)ctx;
	CR_ASSERT(p->what < FSCK_NR && p->fix < FSCK_FIX_NR);
	CR_ASSERT(fsck_name(p->what) && fsck_text(p->what));
	nr_reports++;
}

static const struct media medium = {
	.read = mem_read,
	.write = mem_write,
	.flush = mem_flush,
	.reset = mem_reset,
};

static int check(struct fsck *f, struct media *m, bool payload)
{
	u64 units;
	int ret;

	*m = medium;
	m->bytes = now_bytes;
	m->zone_bytes = now_zone;
	m->zone_stride = now_zone;
	memcpy(m->wp, now_wp, sizeof(m->wp));
	now_media = m;
	memset(f, 0, sizeof(*f));
	f->media = m;
	f->payload = payload;
	f->report = on_report;
	nr_read = 0;
	nr_reports = 0;
	nr_written = 0;
	ret = fsck_run(f);
	units = (u64)f->geo.nr_segs * f->geo.seg_units;
	CR_ASSERT(!nr_written);
	CR_ASSERT(nr_read <= 24 * now_bytes);
	CR_ASSERT(f->nr_blocks <= units);
	CR_ASSERT(nr_reports == f->errors + f->notes && f->fixable <= f->errors);
	CR_ASSERT(nr_reports <= now_bytes / 16);
	return ret;
}

static void repair(struct fsck *f, struct media *m, bool payload)
{
	bool placed;
	u64 fixed;
	u32 i;

	for (i = 0; f->fixable; i++) {
		placed = f->supers.pick.super.generation % 2 == f->supers.pick.slot &&
			 f->supers.pick.super.generation < KVT_LIFE_MAX;
		CR_ASSERT(!fsck_repair(f, &fixed));
		CR_ASSERT(fixed || f->refused || (!placed && !now_zone));
		if (!fixed)
			break;
		CR_ASSERT(i < ROUNDS);
		fsck_fini(f);
		CR_ASSERT(!check(f, m, payload) && !f->supers.err);
	}
	fsck_fini(f);
}

/* --- Damage ---------------------------------------------------------------- */

static void right_records(u8 *at, const u8 *end, u32 nr_ns, u32 nr_blocks)
{
	struct kvt_m_block *b;
	struct kvt_m_ns *n;

	for (; nr_ns && at + sizeof(*n) <= end; nr_ns--, at += sizeof(*n)) {
		n = (struct kvt_m_ns *)at;
		n->crc = 0;
		n->crc = cpu_to_le32(kvt_crc(n, sizeof(*n)));
	}
	for (; nr_blocks && at + sizeof(*b) <= end; nr_blocks--, at += sizeof(*b)) {
		b = (struct kvt_m_block *)at;
		b->crc = 0;
		b->crc = cpu_to_le32(kvt_crc(b, sizeof(*b)));
	}
}

static void right_batch(const struct kvt_geometry *g, u32 seg)
{
	u8 *at = now + kvt_geo_byte(g, seg, 0);
	struct kvt_m_batch *m = (struct kvt_m_batch *)at;
	u32 len = min(max(le32_to_cpu(m->header_units), 1u), g->seg_units) * g->unit_bytes;
	u64 life = le64_to_cpu(m->life);
	u32 number = le32_to_cpu(m->number);

	kvt_scramble(m + 1, len - sizeof(*m), life, number, 0);
	right_records(at + sizeof(*m), at + len, le32_to_cpu(m->nr_ns), le32_to_cpu(m->nr_blocks));
	kvt_scramble(m + 1, len - sizeof(*m), life, number, 0);
	m->crc = 0;
	m->crc = cpu_to_le32(kvt_crc(at, len));
}

static void right_footer(const struct kvt_geometry *g, u32 seg)
{
	struct kvt_m_footer *m = (struct kvt_m_footer *)
				 (now + kvt_geo_byte(g, seg, g->seg_units - 1));
	u32 unit = min(le32_to_cpu(m->sum_unit), g->seg_units - 1);
	u32 len = min(le32_to_cpu(m->sum_bytes), (g->seg_units - unit - 1) * g->unit_bytes);
	u8 *at = now + kvt_geo_byte(g, seg, unit);

	if (le64_to_cpu(m->magic) != KVT_MAGIC_FOOTER)
		return;
	kvt_scramble(at, len, le64_to_cpu(m->life), le64_to_cpu(m->salt), 0);
	right_records(at, at + len, le32_to_cpu(m->nr_ns), le32_to_cpu(m->nr_blocks));
	kvt_scramble(at, len, le64_to_cpu(m->life), le64_to_cpu(m->salt), 0);
	m->sum_crc = cpu_to_le32(kvt_crc(at, len));
	m->crc = 0;
	m->crc = cpu_to_le32(kvt_crc(m, sizeof(*m)));
}

static u8 *super_at(u32 slot)
{
	u64 behind = max(now_wp[slot] & ~(u64)(CR_UNIT - 1), (u64)CR_UNIT);

	return now + (now_zone ? slot * now_zone + behind - CR_UNIT : slot * KVT_SUPER_TWIN_BYTE);
}

static void right_super(u32 slot)
{
	struct kvt_m_super *m = (struct kvt_m_super *)super_at(slot);

	m->crc = 0;
	m->crc = cpu_to_le32(kvt_crc(m, sizeof(*m)));
}

/* Lives, sequences, generations and limits, at the edges of what they can be. */
static void change_number(u8 *at, const u8 *d, bool super)
{
	static const u64 odd[] = { 0, 1, KVT_LIFE_MAX - 2, KVT_LIFE_MAX - 1, KVT_LIFE_MAX, U64_MAX };
	static const u8 fields[] = { 32, 40, 48, 112, 120, 128 };
	__le64 value = cpu_to_le64(odd[d[3] % ARRAY_SIZE(odd)]);

	memcpy(at + fields[d[2] % (super ? 6 : 3)], &value, sizeof(value));
}

/* Superblocks, first and last units of segments, the unit before the last. */
static void change(const struct kvt_geometry *g, const u8 *d, bool right)
{
	u32 place = d[0] % (2 + 3 * g->nr_segs), seg = (place - 2) / 3, kind = (place - 2) % 3;
	u32 offset = (d[1] | (u32)d[2] << 8) % KVT_UNIT_BYTES_MIN;
	u8 *at;

	if (place < 2)
		at = super_at(place);
	else
		at = now + kvt_geo_byte(g, seg, kind ? g->seg_units - kind : 0);
	if (d[1] >= 0xf0)
		change_number(at, d, place < 2);
	else if (place < 2)
		at[offset % 320] ^= d[3];
	else
		at[kind == 1 ? offset % sizeof(struct kvt_m_footer) : offset] ^= d[3];
	if (!right)
		return;
	if (place < 2)
		right_super(place);
	else if (kind)
		right_footer(g, seg);
	else
		right_batch(g, seg);
}

static void make_images(void)
{
	struct media_supers s;
	struct media m;
	struct cr_dev *d;
	u64 seed = 1, most = 0;
	u32 i;

	for (i = 0; i < IMAGES; i++) {
		do {
			d = cr_image_make(seed++, 300, i % 2, i >= ZONED);
		} while (!d);
		images[i].bytes = d->bytes;
		images[i].whole = malloc(d->bytes);
		CR_ASSERT(images[i].whole);
		memcpy(images[i].whole, d->seen, d->bytes);
		memcpy(images[i].wp, d->wp, sizeof(d->wp));
		now_bytes = d->bytes;
		now = images[i].whole;
		m = medium;
		m.bytes = d->bytes;
		m.zone_bytes = d->zone;
		m.zone_stride = d->zone;
		memcpy(m.wp, d->wp, sizeof(m.wp));
		CR_ASSERT(!media_read_supers(&m, &s));
		images[i].geo = s.pick.super.geo;
		most = max(most, d->bytes);
	}
	now = malloc(most);
	CR_ASSERT(now);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct media m;
	struct fsck f;
	bool payload, right;
	u32 image;

	if (!now)
		make_images();
	if (!size)
		return 0;
	image = data[0] % IMAGES;
	payload = data[0] & 0x40;
	right = data[0] & 0x80;
	now_bytes = images[image].bytes;
	memcpy(now, images[image].whole, now_bytes);
	memcpy(now_wp, images[image].wp, sizeof(now_wp));
	now_zone = images[image].geo.zone_bytes;
	for (data++, size--; size >= 4; data += 4, size -= 4)
		change(&images[image].geo, data, right);
	if (!check(&f, &m, payload))
		repair(&f, &m, payload);
	else
		fsck_fini(&f);
	return 0;
}
