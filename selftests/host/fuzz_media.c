// SPDX-License-Identifier: GPL-2.0
/*
 * libFuzzer target: hostile media. The first byte of input chooses what it is, the
 * second has flags: whether checksums and the like are made right, those of records
 * included, so that the fuzzer gets behind them; how much can be read; and what is said
 * below.
 *
 *   0  changes in two superblocks
 *   1  in footer and summary of a segment whose batches are good; flag: the summary is made
 *      to lie where the footer's counts say, and may be longer than recovery's buffer
 *   2  in the header of its first batch; flag: there is no footer
 *   3  anywhere in it; likewise
 *   4  in the superblocks of a zoned member, and in how much of their zones is written
 *
 * A change is a few bytes: where, and what is to be combined by exclusive or, or a number at
 * the edge of what there can be. So what the fuzzer starts at is good, and one change is
 * enough to get to any field.
 *
 * What is made right is changed before it is scrambled. What recovery hands out must be in
 * order, in its segment and no more than fits, the superblock that is picked the newest that
 * counts, and the work must be bounded.
 */
#include "kvt_env.h"
#include "kvt_recover.h"
#include "kvt_zone.h"

#define UNITS		88u
#define UNIT		4096u
#define SEG		3u
#define SUM_UNIT	(UNITS - 2)	/* of the good segment */
#define SUM_BYTES	(512u + 2 * 128 + 16)
#define LIFE		5u
#define MODES		5u
#define RIGHT		0x1u	/* flags of the input */
#define MORE		0x2u
#define RECORDS		0x4u	/* checksums of records stay wrong */
#define UNREADABLE	0x8u	/* behind as many sixteenths as the bits above say */
#define SUPER_USED	512u		/* bytes that have fields in them, and some members */
#define SUPERS		66u		/* in a zone; more than is looked at */
#define ZONE		(SUPERS * KVT_SUPER_BYTES + 512)
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
	u64 end;		/* what is behind cannot be read */
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
	if (at + len > r->end)
		return -EIO;
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

static void run_bad(void *ctx, u32 seg, u64 life, u32 unit, enum kvt_bad why)
{
	(void)ctx;
	check(seg == SEG && life && why > KVT_BAD_NONE && why < KVT_BAD_NR, "bad block");
	check((why != KVT_BAD_PAYLOAD && why != KVT_BAD_IO) || unit < UNITS - 1,
	      "bad bytes outside");
}

static const struct kvt_recover_sink sink = {
	.bad = run_bad,
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

/* Identity of a structure of this member and segment. */
static void right_place(u8 *member, __le16 *version, __le16 *flags, __le32 *seg)
{
	memcpy(member, geo.member, sizeof(geo.member));
	*version = cpu_to_le16(KVT_MEDIA_VERSION);
	*flags = 0;
	*seg = cpu_to_le32(SEG);
}

/* Checksums of records in the clear, as many as there is room for. */
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

static void right_batch(struct run *r, u32 unit, u32 flags)
{
	struct kvt_m_batch *m = (struct kvt_m_batch *)(r->seg + unit * UNIT);
	u32 units = max(min(le32_to_cpu(m->header_units), UNITS - unit), 1u);
	u8 *at = (u8 *)(m + 1), *end = (u8 *)m + units * UNIT;

	m->magic = cpu_to_le64(KVT_MAGIC_BATCH);
	right_place(m->member, &m->version, &m->flags, &m->seg);
	if (!(flags & RECORDS))
		right_records(at, end, le32_to_cpu(m->nr_ns), le32_to_cpu(m->nr_blocks));
	kvt_scramble(at, units * UNIT - sizeof(*m), le64_to_cpu(m->life),
		     le32_to_cpu(m->number), 0);
	m->crc = 0;
	m->crc = cpu_to_le32(kvt_crc(m, units * UNIT));
}

/* The other direction, for what is as a writer has made it. */
static void unscramble_batch(struct run *r, u32 unit)
{
	struct kvt_m_batch *m = (struct kvt_m_batch *)(r->seg + unit * UNIT);

	kvt_scramble(m + 1, UNIT - sizeof(*m), le64_to_cpu(m->life), le32_to_cpu(m->number), 0);
}

static struct kvt_m_footer *footer_of(struct run *r)
{
	return (struct kvt_m_footer *)(r->seg + (UNITS - 1) * UNIT);
}

/* Length and place of the summary as its counts want it; it must fit behind the first batch. */
static void right_sizes(struct kvt_m_footer *m)
{
	u64 room = (UNITS - 2) * UNIT, ns, blocks, kills, bytes;

	ns = min_t(u64, le32_to_cpu(m->nr_ns), room / sizeof(struct kvt_m_ns));
	room -= ns * sizeof(struct kvt_m_ns);
	blocks = min_t(u64, le32_to_cpu(m->nr_blocks), room / sizeof(struct kvt_m_block));
	room -= blocks * sizeof(struct kvt_m_block);
	kills = min_t(u64, le32_to_cpu(m->nr_kills), room / sizeof(struct kvt_m_kill));
	bytes = kvt_entries_bytes((u32)ns, (u32)blocks, (u32)kills);
	m->nr_ns = cpu_to_le32((u32)ns);
	m->nr_blocks = cpu_to_le32((u32)blocks);
	m->nr_kills = cpu_to_le32((u32)kills);
	m->sum_bytes = cpu_to_le32((u32)bytes);
	m->sum_unit = cpu_to_le32(UNITS - 1 - kvt_geo_units(&geo, bytes));
}

static void right_footer(struct run *r, u32 flags)
{
	struct kvt_m_footer *m = footer_of(r);
	u32 unit = min(le32_to_cpu(m->sum_unit), UNITS - 1);
	u32 len = min(le32_to_cpu(m->sum_bytes), (UNITS - 1 - unit) * UNIT) & ~7u;
	u8 *at = r->seg + unit * UNIT;

	m->magic = cpu_to_le64(KVT_MAGIC_FOOTER);
	right_place(m->member, &m->version, &m->flags, &m->seg);
	if (!(flags & RECORDS))
		right_records(at, at + len, le32_to_cpu(m->nr_ns), le32_to_cpu(m->nr_blocks));
	kvt_scramble(at, len, le64_to_cpu(m->life), le64_to_cpu(m->salt), 0);
	m->sum_crc = cpu_to_le32(kvt_crc(at, len));
	m->crc = 0;
	m->crc = cpu_to_le32(kvt_crc(m, sizeof(*m)));
}

static void good_block(struct run *r, void *record, u32 unit, u32 units)
{
	struct kvt_payload_sum sum;
	struct kvt_rec rec = {
		.key[0] = (u8)unit,
		.ns = 1,
		.unit = unit,
		.stored = units * UNIT,
		.bytes = units * UNIT,
	};

	kvt_payload_sum_start(&sum);
	kvt_payload_sum_add(&sum, r->seg + unit * UNIT, rec.stored);
	rec.sum = kvt_payload_sum_end(&sum);
	kvt_rec_encode(record, &rec);
}

/* A namespace, two blocks and a kill, as a writer makes them. */
static u32 good_batch(struct run *r, u32 unit, u32 number)
{
	u8 *at = r->seg + unit * UNIT, *entry = at + sizeof(struct kvt_m_batch);
	struct kvt_batch_info info = {
		.life = LIFE, .seq = 9, .seg = SEG, .number = number, .header_units = 1,
		.payload_units = 3, .nr_ns = 1, .nr_blocks = 2, .nr_kills = 1,
	};
	struct kvt_kill k = { .seg = 1, .unit = 1, .life = 2 };
	struct kvt_nsdef def = {
		.id = 1, .seq = 8, .nr_groups = KVT_NS_GROUPS, .identity_len = 4,
		.identity = "name",
	};
	u32 i;

	for (i = 0; i < def.nr_groups; i++)
		def.group_bytes[i] = UNIT << i % 8;
	memset(def.salt, 1, sizeof(def.salt));
	kvt_nsdef_encode((struct kvt_m_ns *)entry, &def);
	good_block(r, entry + 512, unit + 1, 1);
	good_block(r, entry + 640, unit + 2, 2);
	kvt_kill_encode((struct kvt_m_kill *)(entry + 768), &k);
	kvt_batch_encode(&geo, at, &info);
	return unit + 4;
}

static const struct kvt_footer_info good_footer = {
	.life = LIFE, .seg = SEG, .sum_unit = SUM_UNIT, .fill = 12, .nr_ns = 1, .nr_blocks = 2,
	.nr_kills = 1, .sum_bytes = SUM_BYTES, .nr_batches = 3,
};

/* Batches as they are written; a summary of the first one in the clear, and a footer. */
static void good_segment(struct run *r)
{
	u32 unit = 0, i;

	for (i = 0; i < 3; i++)
		unit = good_batch(r, unit, i);
	unscramble_batch(r, 0);
	memcpy(r->seg + SUM_UNIT * UNIT, r->seg + sizeof(struct kvt_m_batch), SUM_BYTES);
	unscramble_batch(r, 0);
	kvt_footer_encode(&geo, footer_of(r), &good_footer);
}

/* Three bytes: 15 bits of where, and one that says that a number is replaced. */
static void change(u8 *at, u32 len, const u8 *d)
{
	static const u32 odd[] = { 0, 1, 15, 16, 17, 255, 256, 257, UNITS - 1, UNITS, 4095, 4096,
		KVT_STORED_BYTES_MAX, KVT_STORED_BYTES_MAX + 1, 1u << 30, U32_MAX };
	u32 offset = (d[0] | (d[1] & 0x7fu) << 8) % len;
	__le32 word = cpu_to_le32(odd[d[2] % ARRAY_SIZE(odd)]);

	if (d[1] & 0x80)
		memcpy(at + (offset & ~3u), &word, sizeof(word));
	else
		at[offset] ^= d[2];
}

static void fuzz_footer(struct run *r, const u8 *data, size_t size, u32 flags)
{
	struct kvt_m_footer *m = footer_of(r);
	u8 sum[SUM_BYTES];
	u32 unit, i;

	if (!(flags & RIGHT))
		right_footer(r, 0);
	/* One in four goes to the footer. */
	for (i = 0; i + 4 <= size; i += 4) {
		if (data[i] % 4)
			change(r->seg + SUM_UNIT * UNIT, sizeof(sum), data + i + 1);
		else
			change((u8 *)m, sizeof(*m), data + i + 1);
	}
	if (flags & MORE)
		right_sizes(m);
	/* It goes where the footer says now. */
	unit = max(min(le32_to_cpu(m->sum_unit), SUM_UNIT), 1u);
	memcpy(sum, r->seg + SUM_UNIT * UNIT, sizeof(sum));
	memset(r->seg + SUM_UNIT * UNIT, 0, sizeof(sum));
	memcpy(r->seg + unit * UNIT, sum, sizeof(sum));
	if (flags & RIGHT)
		right_footer(r, flags);
}

static void fuzz_batches(struct run *r, const u8 *data, size_t size, u32 flags, bool first)
{
	u32 i;

	right_footer(r, 0);
	if (flags & MORE)
		memset(footer_of(r), 0, sizeof(struct kvt_m_footer));
	for (i = 0; flags & RIGHT && i < 3; i++)
		unscramble_batch(r, 4 * i);
	for (i = 0; first && i + 3 <= size; i += 3)
		change(r->seg, sizeof(struct kvt_m_batch) + SUM_BYTES, data + i);
	for (i = 0; !first && i + 4 <= size; i += 4)
		change(r->seg + data[i] % UNITS * UNIT, UNIT, data + i + 1);
	for (i = 0; flags & RIGHT && i < 3; i++)
		right_batch(r, 4 * i, flags);
}

static void fuzz_segment(u32 mode, const u8 *data, size_t size, u32 flags)
{
	static struct run good, r;

	if (!footer_of(&good)->magic)
		good_segment(&good);
	r = good;
	r.end = flags & UNREADABLE ? sizeof(r.seg) / 16 * (flags >> 4) : sizeof(r.seg);
	if (mode == 1)
		fuzz_footer(&r, data, size, flags);
	else
		fuzz_batches(&r, data, size, flags, mode == 2);
	recover(&r);
}

/* --- Superblocks ------------------------------------------------------------- */

static void good_super(void *block, u64 generation, u64 zone)
{
	struct kvt_super s = {
		.generation = generation,
		.geo = geo,
		.device_bytes = 1ull << 40,
		.life_limit = 9,
		.seq_limit = 9,
		.ns_limit = 9,
		.state = KVT_STATE_DIRTY,
		.nr_members = 2,
	};

	if (zone) {
		s.geo.zone_bytes = zone;
		s.geo.zone_stride = 2 * zone;
		s.geo.seg_bytes = zone;
		s.geo.first_byte = (FIRST + zone - 1) / zone * zone;
	}
	kvt_super_encode(block, &s);
}

static void right_super(void *block)
{
	struct kvt_m_super *m = block;

	m->magic = cpu_to_le64(KVT_MAGIC_SUPER);
	m->version = cpu_to_le16(KVT_MEDIA_VERSION);
	m->crc = 0;
	m->crc = cpu_to_le32(kvt_crc(m, sizeof(*m)));
}

static void check_super(struct kvt_super_pick *p)
{
	if (p->err || kvt_super_check(&p->super, 1ull << 40, true))
		return;
	check(kvt_geo_byte(&p->super.geo, p->super.geo.nr_segs - 1, p->super.geo.seg_units) <=
	      1ull << 40, "geometry outside of the device");
}

/* One of a member that is zoned, and one of one that is not. */
static void fuzz_super(const u8 *data, size_t size, bool right)
{
	static u64 block[KVT_SUPER_BYTES / 8];
	struct kvt_super_pick p;
	u32 i, k;

	kvt_super_pick_start(&p);
	for (i = 0; i < KVT_SUPER_SLOTS; i++) {
		good_super(block, 2 + i, i ? 0 : KVT_ZONE_BYTES_MIN);
		for (k = 0; k + 4 <= size; k += 4) {
			if (data[k] % KVT_SUPER_SLOTS == i)
				change((u8 *)block, SUPER_USED, data + k + 1);
		}
		if (right)
			right_super(block);
		kvt_super_pick_add(&p, i, block);
	}
	check_super(&p);
}

/* Two zones full of superblocks, and how much of each is written. */
struct zones {
	u8 byte[KVT_SUPER_ZONES * ZONE];
	u64 wp[KVT_SUPER_ZONES];
	u32 nr_read;
};

static int zones_read(void *ctx, u64 byte, void *buf, u32 len)
{
	struct zones *z = ctx;

	check(byte + len <= sizeof(z->byte) && byte % ZONE + len <= z->wp[byte / ZONE],
	      "superblock read that is not written");
	z->nr_read++;
	memcpy(buf, z->byte + byte, len);
	return 0;
}

static u64 *block_of(struct zones *z, u32 zone, u32 nr)
{
	return (u64 *)(z->byte + zone * ZONE + nr * KVT_SUPER_BYTES);
}

/* Generation of the last of a zone that verifies, of those that are looked at; 0: none. */
static u64 last_of(struct zones *z, u32 zone)
{
	u32 nr = (u32)(z->wp[zone] / KVT_SUPER_BYTES), i;

	for (i = 0; i < min(nr, KVT_SUPER_LOOK); i++) {
		const struct kvt_m_super *m = (void *)block_of(z, zone, nr - 1 - i);

		if (kvt_super_verifies(m))
			return le64_to_cpu(m->generation);
	}
	return 0;
}

/* Where the next one goes: behind the newest, or to the other zone. */
static void check_next(const struct zones *z, u32 newest)
{
	struct kvt_super_log l;
	bool reset;
	u64 byte;

	kvt_super_log_found(&l, ZONE, newest, z->wp[newest]);
	byte = kvt_super_log_next(&l, &reset);
	check(byte % ZONE + KVT_SUPER_BYTES <= ZONE, "superblock outside of its zone");
	if (reset)
		check(byte == !newest * ZONE, "the newest superblock's zone is reset");
	else
		check(byte == newest * ZONE + z->wp[newest], "superblock not behind the newest");
	kvt_super_log_written(&l, byte, -EIO);
	check(kvt_super_log_next(&l, &reset) == !newest * ZONE && reset, "goes on behind an error");
	kvt_super_log_written(&l, byte, 0);
	check(l.zone == (byte >= ZONE) && l.at == byte % ZONE + KVT_SUPER_BYTES, "next superblock");
}

/* Superblocks of ascending generations, the last ones in zone 1. */
static void good_zones(struct zones *z)
{
	u32 zone, i;

	memset(z, 0, sizeof(*z));
	for (zone = 0; zone < KVT_SUPER_ZONES; zone++) {
		for (i = 0; i < SUPERS; i++)
			good_super(block_of(z, zone, i), 1 + zone * 100 + i, KVT_ZONE_BYTES_MIN);
		z->wp[zone] = ZONE;
	}
}

/* Where, counted from the end: many have to be bad for the look to go further back. */
static void change_zones(struct zones *z, const u8 *d, bool right)
{
	u32 zone = d[0] & 1, nr = SUPERS - 1 - d[0] / 2u % SUPERS;
	u32 at = (d[1] | (u32)d[2] << 8) % SUPER_USED, i;

	if (d[2] >= 0xf0) {
		z->wp[zone] = min((u64)(d[1] | (u32)d[3] << 8) * 512, (u64)ZONE);
		return;
	}
	/* A run of torn ones. */
	for (i = 0; d[2] >= 0xe0 && i < d[1] && nr >= i; i++)
		((u8 *)block_of(z, zone, nr - i))[at] ^= 1;
	((u8 *)block_of(z, zone, nr))[at] ^= d[3];
	if (right && d[2] < 0xe0)
		right_super(block_of(z, zone, nr));
}

static void fuzz_zones(const u8 *data, size_t size, bool right)
{
	static u64 block[KVT_SUPER_BYTES / 8];
	static struct zones good, z;
	struct kvt_super_pick p;
	u64 last[KVT_SUPER_ZONES];
	u32 i;

	if (!good.wp[0])
		good_zones(&good);
	z = good;
	for (; size >= 4; data += 4, size -= 4)
		change_zones(&z, data, right);
	kvt_super_pick_start(&p);
	for (i = 0; i < KVT_SUPER_ZONES; i++) {
		last[i] = last_of(&z, i);
		check(!kvt_super_log_look(ZONE, i, z.wp[i], zones_read, &z, block, &p), "look");
	}
	check(z.nr_read <= KVT_SUPER_ZONES * KVT_SUPER_LOOK, "looks at too much");
	if (p.err && p.err != -EPROTONOSUPPORT)
		return;
	check(p.super.generation == max(last[0], last[1]) && last[p.slot] == p.super.generation,
	      "not the newest superblock");
	check_next(&z, p.slot);
	check_super(&p);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	u32 mode, flags;

	if (size < 2)
		return 0;
	mode = data[0] % MODES;
	flags = data[1];
	data += 2;
	size -= 2;
	if (mode == 0)
		fuzz_super(data, size, flags & RIGHT);
	else if (mode == 4)
		fuzz_zones(data, size, flags & RIGHT);
	else
		fuzz_segment(mode, data, size, flags);
	return 0;
}
