// SPDX-License-Identifier: GPL-2.0
/*
 * Drives the writer the way the driver's worker does. See crash.h.
 *
 * In the background one small step is made at a time, at random. Whoever has to wait
 * makes every step there is (cr_progress()), and must come to an end.
 */
#include "crash.h"

static u32 *ids_get(struct cr_store *s)
{
	u32 i, *ids;

	while ((ids = kvt_log_stale_ids(&s->log))) {
		i = (u32)(ids - s->ids[0]) / CR_IDS;
		CR_ASSERT(s->ids_used[i]);
		s->ids_used[i] = false;
	}
	for (i = 0; i < 2 * CR_SEGS_MAX; i++) {
		if (!s->ids_used[i])
			return s->ids[i];
	}
	cr_fail("no array of ids left");
}

bool cr_open(struct cr_store *s, enum kvt_log_head head, bool urgent)
{
	u32 *ids = ids_get(s);
	enum kvt_wlog_status st;

	while (cr_trim(s))
		;
	st = kvt_wlog_open(&s->w, head, ids, CR_IDS, urgent);
	if (st)
		return false;
	s->ids_used[(u32)(ids - s->ids[0]) / CR_IDS] = true;
	return true;
}

static struct cr_io *io_new(struct cr_store *s)
{
	u32 i;

	for (i = 0; i < CR_GROUPS_IO; i++) {
		if (s->io[i].kind == CR_IO_NONE) {
			memset(&s->io[i], 0, sizeof(s->io[i]));
			s->io[i].group = cr_dev_group(s->dev);
			s->io[i].hole = CR_NO_HOLE;
			if (s->write_errors && cr_random(s->rng, s->write_errors) == 0) {
				s->io[i].err = -EIO;
				s->count[CR_N_ERRORS]++;
			}
			return &s->io[i];
		}
	}
	cr_fail("too many writes under way");
}

static void io_write(struct cr_store *s, struct cr_io *io, u64 byte, const void *data, u32 len)
{
	const u8 *from = data;
	u64 zone = s->geo.zone_bytes;
	u32 n;

	for (; len; len -= n, byte += n, from += n) {
		n = zone ? (u32)min((u64)len, zone - byte % zone) : len;
		if (cr_dev_write(s->dev, io->group, byte, from, n, io->err))
			io->err = -EIO;
	}
}

/* Where the write pointer has to be in the zone at @byte if all before @end is written. */
static u64 zone_aim(const struct cr_store *s, u64 byte, u64 end)
{
	return end > byte ? min(end - byte, s->geo.zone_bytes) : 0;
}

/* Can something still be written at @unit of a segment of a zoned device. */
bool cr_seg_room(const struct cr_store *s, u32 seg, u32 unit)
{
	u64 zone = s->geo.zone_bytes, byte = kvt_geo_byte(&s->geo, seg, 0);
	u64 last = byte + s->geo.seg_bytes, end = kvt_geo_byte(&s->geo, seg, unit);

	for (; zone && byte < last; byte += zone) {
		if (s->dev->wp[byte / zone] > zone_aim(s, byte, end))
			return false;
	}
	return true;
}

/* Zeroes up to @unit of a segment of a zoned device, from wherever it stands. */
static void fill_zones(struct cr_store *s, struct cr_io *io, u32 seg, u32 unit)
{
	static const u8 zero[CR_SEG_UNITS_MAX * CR_UNIT];
	u64 zone = s->geo.zone_bytes, byte = kvt_geo_byte(&s->geo, seg, 0), wp;
	u64 last = byte + s->geo.seg_bytes, end = kvt_geo_byte(&s->geo, seg, unit);

	for (; zone && byte < last; byte += zone) {
		wp = s->dev->wp[byte / zone];
		if (wp >= zone_aim(s, byte, end))
			continue;
		io_write(s, io, byte + wp, zero, (u32)(zone_aim(s, byte, end) - wp));
		s->count[CR_N_FILLED]++;
	}
}

/* The bytes of a block, from memory or from where it is carried from. */
static void block_bytes(struct cr_store *s, const struct cr_block *b, u8 *buf)
{
	if (b->unit != KVT_NO_UNIT) {
		cr_dev_read(s->dev, kvt_geo_byte(&s->geo, 0, b->unit), buf, b->stored);
		CR_ASSERT(cr_sum(buf, b->stored) == b->sum);
	} else {
		cr_fill(buf, b->stored, b->name, b->ns, b->version);
	}
}

static void write_block(struct cr_store *s, struct cr_io *io, u32 n)
{
	const struct cr_block *b = &s->block[io->ids[n]];
	u8 buf[CR_STORED_MAX];

	block_bytes(s, b, buf);
	io_write(s, io, kvt_geo_byte(&s->geo, 0, b->new_unit), buf, b->stored);
}

/* Header and payloads in any order. */
static void write_batch(struct cr_store *s, struct cr_io *io, const struct kvt_wlog_io *w,
			const void *header)
{
	u32 nr = io->nr + 1, at = cr_random(s->rng, nr), i;

	for (i = 0; i < nr; i++) {
		if ((at + i) % nr == io->nr)
			io_write(s, io, kvt_geo_byte(&s->geo, w->seg, w->unit), header,
				 w->header_units * CR_UNIT);
		else
			write_block(s, io, (at + i) % nr);
	}
}

/*
 * Header and payloads in their order, in zones that are reset before the first batch.
 * What comes from elsewhere on the log may turn out to be unreadable.
 */
static void write_batch_zoned(struct cr_store *s, struct cr_io *io, const struct kvt_wlog_io *w,
			      const void *header)
{
	u32 i, unit;

	if (!w->unit) {
		cr_zone_reset(s->dev, kvt_geo_byte(&s->geo, w->seg, 0), s->geo.seg_bytes);
		s->count[CR_N_RESETS]++;
	}
	if (s->write_errors && io->nr && cr_random(s->rng, 8) == 0) {
		io->hole = cr_random(s->rng, io->nr);
		s->count[CR_N_HOLES]++;
	}
	io_write(s, io, kvt_geo_byte(&s->geo, w->seg, w->unit), header, w->header_units * CR_UNIT);
	for (i = 0; i < io->nr; i++) {
		if (i != io->hole) {
			write_block(s, io, i);
			continue;
		}
		unit = s->block[io->ids[i]].new_unit % s->geo.seg_units;
		fill_zones(s, io, w->seg, unit + s->block[io->ids[i]].stored / CR_UNIT);
	}
}

void cr_close(struct cr_store *s, enum kvt_log_head head)
{
	static u64 header[KVT_HEADER_BYTES_MAX / 8];
	struct kvt_wlog_io w;
	struct cr_io *io;

	if (kvt_wlog_close(&s->w, head, &w))
		return;
	io = io_new(s);
	io->kind = CR_IO_BATCH;
	io->handle = w.batch;
	io->nr = s->collect[head].nr;
	memcpy(io->ids, s->collect[head].ids, sizeof(io->ids));
	s->collect[head].nr = 0;
	cr_told_closed(s, head, &w);
	kvt_wlog_build(&s->w, w.batch, header);
	if (s->geo.zone_bytes)
		write_batch_zoned(s, io, &w, header);
	else
		write_batch(s, io, &w, header);
}

/* What a call wants done before it is made again. */
bool cr_satisfy(struct cr_store *s, enum kvt_log_head head, enum kvt_wlog_status st)
{
	switch (st) {
	case KVT_W_CLOSE:
		cr_close(s, head);
		return true;
	case KVT_W_SEGMENT:
		return cr_open(s, head, false);
	case KVT_W_SUPER:
		return cr_write_super(s, false);
	default:
		return false;
	}
}

/* Begin to move a block to a head of the log. False: not now. */
bool cr_put(struct cr_store *s, enum kvt_log_head head, u32 id, bool carry)
{
	struct cr_block *b = &s->block[id];
	enum kvt_wlog_status st;
	struct kvt_wlog_put p = { .id = id };
	struct kvt_rec rec;
	u8 buf[CR_STORED_MAX];
	u32 tries, slot;

	cr_rec(s, id, &rec);
	p.rec = &rec;
	if (carry) {
		p.src_log = &s->w;
		p.src_unit = b->unit;
		p.src_units = b->stored / CR_UNIT;
	}
	for (tries = 0; tries < 8; tries++) {
		st = kvt_wlog_put(&s->w, head, &p, &b->new_unit);
		if (!st)
			break;
		if (st == KVT_W_NS) {
			slot = cr_slot(b->name);
			if (cr_define_ns(s, head, slot, b->stored, &st))
				continue;
		}
		if (!cr_satisfy(s, head, st))
			return false;
	}
	if (tries == 8)
		return false;
	b->moving = true;
	b->carried = carry;
	block_bytes(s, b, buf);
	b->sum = cr_sum(buf, b->stored);
	kvt_wlog_set_sum(&s->w, b->new_unit, b->sum);
	s->collect[head].ids[s->collect[head].nr++] = id;
	return true;
}

/* The blocks of a batch have arrived, or not. */
static void finish_moves(struct cr_store *s, const struct cr_io *io)
{
	struct cr_block *b;
	u32 i;

	for (i = 0; i < io->nr; i++) {
		b = &s->block[io->ids[i]];
		if (!io->err && b->carried && i != io->hole)
			continue;
		b->moving = false;
		if (io->err || i == io->hole || b->state != CR_READY) {
			kvt_wlog_unput(&s->w, b->new_unit, b->stored / CR_UNIT);
			cr_reap(s, io->ids[i]);
			continue;
		}
		b->unit = b->new_unit;
		b->lost = false;
		if (b->mem && !b->keep_mem) {
			b->mem = false;
			s->nr_mem--;
		}
		if (b->mem)
			cr_copy(s, io->ids[i], true);
	}
}

static void io_done(struct cr_store *s, struct cr_io *io)
{
	cr_dev_complete(s->dev, io->group);
	switch (io->kind) {
	case CR_IO_BATCH:
		finish_moves(s, io);
		kvt_wlog_written(&s->w, io->handle, io->err);
		break;
	case CR_IO_FOOTER:
		kvt_wlog_footer_written(&s->w, io->handle, io->err);
		break;
	default:
		kvt_wlog_super_written(&s->w, io->err);
		if (s->geo.zone_bytes)
			kvt_super_log_written(&s->slog, io->byte, io->err);
		break;
	}
	io->kind = CR_IO_NONE;
}

static bool io_any_done(struct cr_store *s)
{
	u32 at = cr_random(s->rng, CR_GROUPS_IO), i;

	for (i = 0; i < CR_GROUPS_IO; i++) {
		if (s->io[(at + i) % CR_GROUPS_IO].kind != CR_IO_NONE) {
			io_done(s, &s->io[(at + i) % CR_GROUPS_IO]);
			return true;
		}
	}
	return false;
}

void cr_strays(struct cr_store *s)
{
	while (s->nr_stray) {
		const struct cr_stray *t = &s->stray[s->nr_stray - 1];

		if (kvt_wlog_free(&s->w, t->unit, t->units))
			return;
		s->nr_stray--;
	}
}

/* A carried block is where it was carried to, or after all where it was. */
static void settle_carried(struct cr_store *s, u32 id, int err)
{
	struct cr_block *b = &s->block[id];

	b->moving = false;
	if (!err) {
		/* Where it was carried from is the writer's business now. */
		if (b->mem)
			cr_copy(s, id, false);
		b->unit = b->new_unit;
		b->lost = false;
		if (b->mem)
			cr_copy(s, id, true);
		return;
	}
	CR_ASSERT(s->nr_stray < ARRAY_SIZE(s->stray));
	s->stray[s->nr_stray++] = (struct cr_stray) {
		.unit = b->new_unit,
		.units = b->stored / CR_UNIT,
	};
	cr_strays(s);
}

static void must(struct cr_store *s, const struct cr_block *b)
{
	struct cr_ref *ref = &s->ora->name[b->name];

	ref->must = b->version;
	ref->bare = b->bare ? b->version : 0;
}

/* What is durable now must be found from now on, if it is still there. */
static void durable(struct cr_store *s, const struct kvt_wlog_done *d)
{
	u32 i, id;

	cr_told_durable(s, d);
	for (i = 0; i < d->nr_ids; i++) {
		struct cr_block *b;

		if (d->first_id + i >= s->segs[d->seg].nr_ids || !s->segs[d->seg].ids)
			return;
		id = s->segs[d->seg].ids[d->first_id + i];
		b = &s->block[id];
		if (b->state != CR_FREE && b->moving && b->carried &&
		    b->new_unit - d->unit < d->units)
			settle_carried(s, id, d->err);
		b->lost |= d->err && b->unit - d->unit < d->units;
		if (d->err || b->state != CR_READY || b->unit == KVT_NO_UNIT || b->moving ||
		    b->unit - d->unit >= d->units)
			continue;
		b->bare = cr_bare(s, id);
		must(s, b);
		s->count[CR_N_DURABLE]++;
	}
}

static void advance(struct cr_store *s)
{
	struct kvt_wlog_done d;

	while (kvt_wlog_advance(&s->w, &d))
		durable(s, &d);
}

static void flush_start(struct cr_store *s)
{
	s->flush = kvt_wlog_flush_start(&s->w);
	s->flush_dev = cr_dev_flush_start(s->dev);
}

static void restored_durable(struct cr_store *s)
{
	u32 id, slot;

	s->restored_durable = true;
	for (id = 1; id < CR_BLOCKS; id++) {
		const struct cr_block *b = &s->block[id];

		if (b->state == CR_READY && b->unit != KVT_NO_UNIT)
			must(s, b);
	}
	/* A namespace that was never promised and is lost makes room for another. */
	for (slot = 0; slot < CR_SLOTS; slot++) {
		if (!s->ns[slot].id)
			s->ora->ns[slot].id = 0;
		cr_ns_must(s, slot, s->ns[slot].id, s->found_def[slot]);
	}
}

static void flush_end(struct cr_store *s)
{
	cr_dev_flush_end(s->dev, s->flush_dev);
	kvt_wlog_flush_done(&s->w, s->flush);
	s->flush_dev = 0;
	if (!s->restored_durable)
		restored_durable(s);
	advance(s);
}

bool cr_flush(struct cr_store *s)
{
	if (s->flush_dev)
		flush_end(s);
	flush_start(s);
	flush_end(s);
	return true;
}

static u64 super_byte(struct cr_store *s, u32 slot)
{
	bool reset;
	u64 byte;

	if (!s->geo.zone_bytes)
		return (u64)slot * KVT_SUPER_TWIN_BYTE;
	byte = kvt_super_log_next(&s->slog, &reset);
	if (reset) {
		cr_zone_reset(s->dev, byte, s->geo.zone_bytes);
		s->count[CR_N_TURNS]++;
	}
	return byte;
}

/* False: not possible now. With @clean it is durable in the end. */
bool cr_write_super(struct cr_store *s, bool clean)
{
	u8 block[KVT_SUPER_BYTES];
	enum kvt_wlog_status st;
	struct cr_io *io;
	u32 slot, tries;

	while (s->w.super_state == 1 && io_any_done(s))
		;
	for (tries = 0; tries < 4; tries++) {
		st = kvt_wlog_super(&s->w, &s->super, clean, &slot);
		if (st == KVT_W_FLUSH) {
			cr_flush(s);
			continue;
		}
		if (st)
			return false;
		s->super.ns_limit = CR_NS_MAX;
		kvt_super_encode(block, &s->super);
		/* A moment worth a crash. */
		if (clean && cr_random(s->rng, 2))
			s->dev->left = min(s->dev->left, 1 + cr_random(s->rng, 3));
		io = io_new(s);
		io->kind = CR_IO_SUPER;
		io->byte = super_byte(s, slot);
		io_write(s, io, io->byte, block, sizeof(block));
		if (!clean && cr_random(s->rng, 2))
			return true;
		if (io->err) {
			io_done(s, io);
			continue;
		}
		io_done(s, io);
		cr_flush(s);
		return true;
	}
	return false;
}

static bool write_footer(struct cr_store *s)
{
	static u64 buf[CR_SEG_UNITS_MAX * CR_UNIT / 8];
	struct kvt_wlog_footer f;
	struct cr_io *io;
	u32 len;

	CR_ASSERT(kvt_wlog_footer_bytes(&s->w) <= sizeof(buf));
	if (kvt_wlog_footer(&s->w, buf, &f))
		return false;
	io = io_new(s);
	io->kind = CR_IO_FOOTER;
	io->handle = f.handle;
	len = (s->geo.seg_units - f.unit) * CR_UNIT;
	fill_zones(s, io, f.seg, f.unit);
	io_write(s, io, kvt_geo_byte(&s->geo, f.seg, f.unit), buf, len);
	s->count[CR_N_FOOTERS]++;
	return true;
}

/*
 * All that can be done without further reason; with @kills also what a waiter for
 * kills needs. False: nothing could, so waiting is in vain.
 */
bool cr_progress(struct cr_store *s, bool kills)
{
	bool any = false;

	cr_strays(s);
	cr_todo_kills(s);
	if (!s->w.life_limit)
		any |= cr_write_super(s, false);
	while (io_any_done(s))
		any = true;
	advance(s);
	if (kvt_wlog_work(&s->w) & KVT_WORK_FLUSH || s->flush_dev)
		any |= cr_flush(s);
	while (write_footer(s))
		any = true;
	any |= cr_trim(s);
	if (kvt_wlog_work(&s->w) & KVT_WORK_END || s->w.nr_doomed || !any)
		any |= cr_end_one(s);
	if (kills && s->w.nr_pending)
		any |= cr_write_kills(s);
	cr_clean_ends(s);
	if (s->log.nr_free < 2 || !any)
		any |= cr_clean(s, true);
	while (io_any_done(s))
		any = true;
	advance(s);
	return any;
}

/* Until a fence has passed. False: it does not, which only a full log excuses. */
bool cr_wait(struct cr_store *s, struct kvt_wlog_fence *f)
{
	u32 tries;

	for (tries = 0; !kvt_wlog_fence_passed(&s->w, f); tries++) {
		cr_close(s, KVT_HEAD_DEMOTE);
		cr_close(s, KVT_HEAD_CARRY);
		if (tries == 200)
			cr_fail("a fence does not pass");
		if (!cr_progress(s, true) && tries > 20)
			cr_fail("nothing goes on, and a fence has not passed");
	}
	return true;
}

/* The newest write is complete and flushed before all that were sent before it. */
static void overtake(struct cr_store *s)
{
	struct cr_io *newest = NULL;
	u32 i;

	for (i = 0; i < CR_GROUPS_IO; i++) {
		if (s->io[i].kind != CR_IO_NONE && (!newest || s->io[i].group > newest->group))
			newest = &s->io[i];
	}
	if (newest)
		io_done(s, newest);
	cr_flush(s);
	if (newest && cr_random(s->rng, 2))
		s->dev->left = min(s->dev->left, 1u);
}

/* One small step, at random. */
void cr_background(struct cr_store *s)
{
	u32 id;

	switch (cr_random(s->rng, 10)) {
	case 0:
	case 1:
		io_any_done(s);
		break;
	case 2:
		if (s->flush_dev)
			flush_end(s);
		else if (kvt_wlog_work(&s->w) & KVT_WORK_FLUSH)
			flush_start(s);
		break;
	case 3:
		write_footer(s);
		break;
	case 4:
		if (kvt_wlog_work(&s->w) & KVT_WORK_END || cr_random(s->rng, 8) == 0)
			cr_end_one(s);
		break;
	case 5:
		if (s->log.nr_free < 4)
			cr_clean(s, s->log.nr_free < 2);
		break;
	case 6:
		cr_strays(s);
		cr_todo_kills(s);
		if (kvt_wlog_work(&s->w) & KVT_WORK_KILLS)
			cr_write_kills(s);
		break;
	case 7:
		cr_close(s, cr_random(s->rng, 2) ? KVT_HEAD_CARRY : KVT_HEAD_DEMOTE);
		break;
	case 8:
		if (cr_random(s->rng, 8) == 0)
			overtake(s);
		break;
	default:
		cr_trim(s);
		break;
	}
	advance(s);
	cr_clean_ends(s);
	for (id = 1; id < CR_BLOCKS; id++)
		cr_reap(s, id);
}
