// SPDX-License-Identifier: GPL-2.0
/*
 * Writes into free segments of a member, with the driver's own encoder, what a driver would
 * write after years, or would never write: very many namespaces that have ended, or records
 * of which each verifies and all together make no sense. Some segments it leaves free: an
 * assembly needs them itself.
 */
#include "kvt_recover.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "kvt_medium.h"

/* Numbers that the pool has not come to. */
#define FIRST_ID	(1ULL << 20)
#define FIRST_SEQ	(1ULL << 40)
#define FIRST_LIFE	(1ULL << 30)
#define LIMIT		(1ULL << 50)
#define SEGS_MAX	64
#define ENOUGH		300000	/* more than an assembly keeps in mind */

struct crowd {
	int fd;
	struct kvt_super super;
	struct kvt_nsdef def;	/* of some namespace with a block */
	struct kvt_rec rec;	/* that block */
	u32 rec_seg;
	bool free[SEGS_MAX];
	u8 *buf;
	u64 id;
	u64 seq;
	u32 nr_tails;
};

static int read_at(void *ctx, u64 byte, void *buf, u32 len)
{
	const struct crowd *c = ctx;

	return pread(c->fd, buf, len, (off_t)byte) == (ssize_t)len ? 0 : -EIO;
}

static int write_at(const struct crowd *c, u64 byte, const void *buf, u32 len)
{
	return pwrite(c->fd, buf, len, (off_t)byte) == (ssize_t)len ? 0 : -EIO;
}

static void on_block(void *ctx, u32 seg, u64 life, const struct kvt_rec *r)
{
	struct crowd *c = ctx;

	(void)life;
	c->rec = *r;
	c->rec_seg = seg;
}

static void on_ns(void *ctx, u32 seg, const struct kvt_nsdef *d)
{
	struct crowd *c = ctx;

	(void)seg;
	if (!(d->flags & KVT_NSF_GONE))
		c->def = *d;
}

static int look(struct crowd *c)
{
	static const struct kvt_recover_sink sink = { .block = on_block, .ns = on_ns };
	struct kvt_recover r = {
		.geo = &c->super.geo, .read = read_at, .sink = &sink, .ctx = c, .buf = c->buf,
		.buf_bytes = KVT_RECOVER_BUF_MIN, .entries_only = true,
	};
	struct kvt_seg_found found;
	u32 seg;

	for (seg = 0; seg < c->super.geo.nr_segs && seg < SEGS_MAX; seg++) {
		kvt_recover_segment(&r, seg, &found);
		c->free[seg] = found.state == KVT_RC_FREE;
	}
	return c->rec.ns && c->rec.ns == c->def.id ? 0 : -ENOENT;
}

static int change_super(struct crowd *c)
{
	struct kvt_super_pick *pick = calloc(1, sizeof(*pick));
	int err = pick ? 0 : -ENOMEM;
	u32 i;

	if (pick)
		kvt_super_pick_start(pick);
	for (i = 0; !err && i < KVT_SUPER_SLOTS; i++) {
		err = read_at(c, (u64)i * KVT_SUPER_TWIN_BYTE, c->buf, KVT_SUPER_BYTES);
		if (!err)
			kvt_super_pick_add(pick, i, c->buf);
	}
	err = err ? err : pick->err;
	if (!err) {
		c->super = pick->super;
		c->super.state = KVT_STATE_DIRTY;
		c->super.life_limit = LIMIT;
		c->super.seq_limit = LIMIT;
		c->super.ns_limit = LIMIT;
		kvt_super_encode(c->buf, &c->super);
		err = write_at(c, (u64)pick->slot * KVT_SUPER_TWIN_BYTE, c->buf,
			       KVT_SUPER_BYTES);
	}
	if (!err)
		err = kvt_super_check(&c->super, c->super.device_bytes, true);
	free(pick);
	return err;
}

/* A batch that says of as many namespaces as it can that they have ended. */
static int write_ends(struct crowd *c, struct kvt_batch_info *b)
{
	const struct kvt_geometry *g = &c->super.geo;
	struct kvt_nsdef gone = { .flags = KVT_NSF_GONE };
	u32 i;

	b->header_units = KVT_HEADER_BYTES_MAX / g->unit_bytes;
	b->nr_ns = (KVT_HEADER_BYTES_MAX - sizeof(struct kvt_m_batch)) / sizeof(struct kvt_m_ns);
	memset(c->buf, 0, KVT_HEADER_BYTES_MAX);
	for (i = 0; i < b->nr_ns; i++) {
		gone.id = c->id++;
		gone.seq = c->seq++;
		kvt_nsdef_encode((struct kvt_m_ns *)(c->buf + sizeof(struct kvt_m_batch)) + i,
				 &gone);
	}
	b->seq = c->seq - 1;
	kvt_batch_encode(g, c->buf, b);
	return write_at(c, kvt_geo_byte(g, b->seg, b->unit), c->buf, KVT_HEADER_BYTES_MAX);
}

/* Somebody who lives, with a block, behind the others. */
static int write_tail(struct crowd *c, struct kvt_batch_info *b)
{
	const struct kvt_geometry *g = &c->super.geo;
	struct kvt_nsdef def = c->def;
	struct kvt_rec rec = c->rec;
	u8 *at = c->buf + sizeof(struct kvt_m_batch);
	int err;

	b->header_units = 1;
	b->payload_units = kvt_geo_units(g, rec.stored);
	b->nr_ns = 1;
	b->nr_blocks = 1;
	memset(c->buf, 0, g->unit_bytes);
	def.id = c->id++;
	def.seq = c->seq++;
	def.identity[def.identity_len++] = (u8)('0' + c->nr_tails++);
	kvt_nsdef_encode((struct kvt_m_ns *)at, &def);
	rec.ns = def.id;
	rec.seq = c->seq++;
	rec.unit = b->unit + 1;
	memset(rec.parent, 0, sizeof(rec.parent));
	kvt_rec_encode((struct kvt_m_block *)(at + sizeof(struct kvt_m_ns)), &rec);
	b->seq = rec.seq;
	kvt_batch_encode(g, c->buf, b);
	err = write_at(c, kvt_geo_byte(g, b->seg, b->unit), c->buf, g->unit_bytes);
	if (!err)
		err = read_at(c, kvt_geo_byte(g, c->rec_seg, c->rec.unit), c->buf, rec.stored);
	return err ? err : write_at(c, kvt_geo_byte(g, b->seg, rec.unit), c->buf, rec.stored);
}

static int fill_segment(struct crowd *c, u32 seg)
{
	const struct kvt_geometry *g = &c->super.geo;
	u32 header = KVT_HEADER_BYTES_MAX / g->unit_bytes;
	u32 tail = 2 + kvt_geo_units(g, c->rec.stored), unit = 0, number = 0;
	int err = 0;

	for (; !err && unit + header + tail < g->seg_units; unit += header, number++) {
		struct kvt_batch_info b = { .life = FIRST_LIFE + seg, .seg = seg, .unit = unit,
					    .number = number };

		err = write_ends(c, &b);
	}
	if (!err)
		err = write_tail(c, &(struct kvt_batch_info){ .life = FIRST_LIFE + seg, .seg = seg,
							      .unit = unit, .number = number });
	return err;
}

/* --- records that make no sense together ------------------------------------------- */

#define NR_FORGED	13
#define FORGED_HEADER	2	/* units: room for all of them */

/* What is wrong with the record, if it is not wrong by its parent alone. */
static void forge(u32 i, struct kvt_rec *rec)
{
	static const u8 parent[NR_FORGED] = { 1, 2, 0, 0, 'x', 'x', 0, 0, 0, 0, 0, 0, 0 };

	memset(rec->key, 'f', sizeof(rec->key));
	memset(rec->parent, 'f', sizeof(rec->parent));
	rec->key[0] = (u8)i;
	rec->parent[0] = parent[i];
	/* No key and no parent would be refused when it is read. */
	if (i > 5 && i != 8)
		memset(rec->parent, 0, sizeof(rec->parent));
	switch (i) {
	case 5:
		rec->ns = LIMIT - 1;	/* nobody */
		break;
	case 6:
		rec->group = KVT_NS_GROUPS - 1;
		break;
	case 7:
		rec->bytes--;
		break;
	case 8:
		memset(rec->key, 0, sizeof(rec->key));
		break;
	case 9:
	case 10:
		rec->key[0] = 9;	/* twice, and none is the newer one */
		rec->seq = FIRST_SEQ;
		break;
	case 11:
		rec->ns = FIRST_ID;	/* it has no groups */
		break;
	case 12:
		rec->ns = FIRST_ID + 1;	/* it may have, and is promised, all there is */
		break;
	}
}

static void forge_namespaces(struct crowd *c, u8 *at)
{
	struct kvt_nsdef def = c->def;

	def.id = FIRST_ID;
	def.seq = c->seq++;
	def.nr_groups = 0;
	def.identity[0]++;
	kvt_nsdef_encode((struct kvt_m_ns *)at, &def);
	def = c->def;
	def.id = FIRST_ID + 1;
	def.seq = c->seq++;
	def.quota_bytes = U64_MAX;
	def.min_bytes = U64_MAX;
	def.life_mark = U64_MAX;
	def.life_first = U64_MAX;
	def.identity[0] += 2;
	kvt_nsdef_encode((struct kvt_m_ns *)at + 1, &def);
}

static int forge_segment(struct crowd *c, u32 seg)
{
	const struct kvt_geometry *g = &c->super.geo;
	u32 units = kvt_geo_units(g, c->rec.stored), i, bytes = FORGED_HEADER * g->unit_bytes;
	struct kvt_batch_info b = {
		.life = FIRST_LIFE + seg, .seg = seg, .header_units = FORGED_HEADER,
		.payload_units = NR_FORGED * units, .nr_ns = 2, .nr_blocks = NR_FORGED,
	};
	u8 *at = c->buf + sizeof(struct kvt_m_batch), *payload = c->buf + KVT_RECOVER_BUF_MIN;
	int err;

	if (FORGED_HEADER + NR_FORGED * units >= g->seg_units ||
	    c->rec.stored > KVT_RECOVER_BUF_MIN)
		return -EFBIG;
	memset(c->buf, 0, bytes);
	forge_namespaces(c, at);
	at += 2 * sizeof(struct kvt_m_ns);
	for (i = 0; i < NR_FORGED; i++, at += sizeof(struct kvt_m_block)) {
		struct kvt_rec rec = c->rec;

		rec.seq = c->seq++;
		rec.unit = FORGED_HEADER + i * units;
		forge(i, &rec);
		kvt_rec_encode((struct kvt_m_block *)at, &rec);
	}
	b.seq = c->seq - 1;
	kvt_batch_encode(g, c->buf, &b);
	err = write_at(c, kvt_geo_byte(g, seg, 0), c->buf, bytes);
	if (!err)
		err = read_at(c, kvt_geo_byte(g, c->rec_seg, c->rec.unit), payload, c->rec.stored);
	for (i = 0; i < NR_FORGED && !err; i++)
		err = write_at(c, kvt_geo_byte(g, seg, FORGED_HEADER + i * units), payload,
			       c->rec.stored);
	return err;
}

static int start(struct crowd *c, const char *path)
{
	int err;

	c->fd = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
	c->buf = aligned_alloc(4096, 2 * KVT_RECOVER_BUF_MIN);
	err = c->fd < 0 ? -errno : c->buf ? change_super(c) : -ENOMEM;
	return err ? err : look(c);
}

static int end(struct crowd *c, int err)
{
	if (!err && fsync(c->fd))
		err = -errno;
	if (c->fd >= 0)
		close(c->fd);
	free(c->buf);
	return err;
}

int kvt_medium_forge(const char *path)
{
	struct crowd c = { .id = FIRST_ID, .seq = FIRST_SEQ };
	int err = start(&c, path);
	u32 seg = 0;

	while (!err && seg < SEGS_MAX && !c.free[seg])
		seg++;
	if (!err)
		err = seg < SEGS_MAX ? forge_segment(&c, seg) : -ENOSPC;
	return end(&c, err);
}

int kvt_medium_crowd(const char *path, uint32_t *nr_ended, uint32_t *nr_tails)
{
	struct crowd c = { .id = FIRST_ID, .seq = FIRST_SEQ };
	u32 seg;
	int err = start(&c, path);

	for (seg = 0; !err && seg < c.super.geo.nr_segs && seg < SEGS_MAX; seg++)
		err = c.free[seg] && c.id < FIRST_ID + ENOUGH ? fill_segment(&c, seg) : 0;
	err = end(&c, err);
	*nr_tails = c.nr_tails;
	*nr_ended = (u32)(c.id - FIRST_ID) - c.nr_tails;
	return err;
}
