// SPDX-License-Identifier: GPL-2.0
/*
 * Members on zoned devices: everything at the write pointer. See kvt_mlog.h.
 *
 * Batches of a segment are written in the order in which they got their places. Each
 * waits for its *turn*: that what is in front of it has been submitted. With its turn it
 * writes its header, whose checksums were computed before, and submits its payloads in
 * order; then it is the next one's turn, while these are still on their way. Who has a
 * batch always passes the turn on, whatever has happened.
 *
 * So who is to write a batch waits for others who have theirs in front of it. That comes
 * to an end because nobody waits for anything else between getting a place on a zoned
 * member and writing it: see kvt_demote_place().
 *
 * What cannot be had from where it is, and gaps, become zeroes. A write that fails ends
 * the batch, and with that the segment: what is behind it in that zone is not at the
 * write pointer and fails, too; what begins in the segment's next zone may be written, and
 * is not found after a crash, for recovery stops at what is not whole. The footer is at the
 * end of the segment all the same, after zeroes from wherever the zones stand.
 *
 * A segment's zones are reset before its first batch, which is after its end was durable.
 */
#include <linux/slab.h>

#include "kvt_internal.h"
#include "kvt_mlog.h"

#define KVT_ZERO_BYTES	(256u << 10)	/* written at a time */

/**
 * kvt_mzone_alloc() - what a member on a zoned device needs besides
 * @m: member being made; its geometry is set
 * Return: 0 or -ENOMEM. Freed by kvt_mzone_free().
 */
int kvt_mzone_alloc(struct kvt_mlog *m)
{
	if (!m->geo.zone_bytes)
		return 0;
	m->turn = kvcalloc(m->geo.nr_segs, sizeof(*m->turn), GFP_KERNEL);
	m->zero = kvzalloc(KVT_ZERO_BYTES, GFP_KERNEL);
	kvt_super_log_init(&m->slog, m->geo.zone_bytes);
	return m->turn && m->zero ? 0 : -ENOMEM;
}

void kvt_mzone_free(struct kvt_mlog *m)
{
	kvfree(m->turn);
	kvfree(m->zero);
}

/* Where the write pointer of the zone at @byte stands when all before @end is written. */
static u64 kvt_mzone_aim(const struct kvt_mlog *m, u64 byte, u64 end)
{
	return end > byte ? min(end - byte, m->geo.zone_bytes) : 0;
}

static int kvt_mzone_zeroes(struct kvt_mlog *m, u64 byte, u64 len)
{
	int err = 0;
	u32 n;

	for (; len && !err; len -= n, byte += n) {
		n = min_t(u64, len, KVT_ZERO_BYTES);
		err = kvt_mlog_rw(m->tier, byte, m->zero, n, true);
		cond_resched();
	}
	return err;
}

/**
 * kvt_mzone_fill() - zeroes, from wherever a segment's zones stand
 * @m:    member on a zoned device; sleeps
 * @seg:  segment
 * @from: unit of it; zones before that unit's are left alone, and nothing is being
 *        written to the others
 * @unit: up to here
 * Return: 0; -EIO, also when they stand behind that.
 */
int kvt_mzone_fill(struct kvt_mlog *m, u32 seg, u32 from, u32 unit)
{
	u64 byte = kvt_geo_byte(&m->geo, seg, 0), end = kvt_geo_byte(&m->geo, seg, unit);
	u64 last = byte + m->geo.seg_bytes, wp, aim;

	byte += div64_u64((u64)from * m->geo.unit_bytes, m->geo.zone_bytes) * m->geo.zone_bytes;
	for (; byte < last; byte += m->geo.zone_bytes) {
		aim = kvt_mzone_aim(m, byte, end);
		if (m->tier->zones->wp(m->tier, byte, &wp) || wp > aim)
			return -EIO;
		if (kvt_mzone_zeroes(m, byte + wp, aim - wp))
			return -EIO;
	}
	return 0;
}

/**
 * kvt_mzone_first() - where a segment can still be written
 * @m:   member; nothing is being written to the segment; sleeps
 * @seg: segment
 * Return: first unit of it; 0 if the device is not zoned; @seg_units: nowhere.
 */
u32 kvt_mzone_first(struct kvt_mlog *m, u32 seg)
{
	u64 start = kvt_geo_byte(&m->geo, seg, 0), at, wp, end = 0;

	if (!m->geo.zone_bytes)
		return 0;
	for (at = 0; at < m->geo.seg_bytes; at += m->geo.zone_bytes) {
		if (m->tier->zones->wp(m->tier, start + at, &wp))
			return m->geo.seg_units;
		if (wp)
			end = at + wp;
	}
	return kvt_geo_units(&m->geo, end);
}

static void kvt_mzone_finish_zone(struct kvt_mlog *m, u64 byte)
{
	u64 wp;

	if (!m->tier->zones->wp(m->tier, byte, &wp) && wp && wp < m->geo.zone_bytes)
		m->tier->zones->finish(m->tier, byte, m->geo.zone_bytes);
}

/* Is a zone of the segment partly written. */
static bool kvt_mzone_active(struct kvt_mlog *m, u32 seg)
{
	u64 start = kvt_geo_byte(&m->geo, seg, 0), at, wp;

	for (at = 0; at < m->geo.seg_bytes; at += m->geo.zone_bytes) {
		if (!m->tier->zones->wp(m->tier, start + at, &wp) && wp &&
		    wp < m->geo.zone_bytes)
			return true;
	}
	return false;
}

/**
 * kvt_mzone_finish() - nothing more can be written to a segment
 * @m:   member on a zoned device; sleeps. What is just being written to the segment fails
 * @seg: segment
 *
 * So that its zones do not count as active. What is in them stays.
 */
void kvt_mzone_finish(struct kvt_mlog *m, u32 seg)
{
	u64 start = kvt_geo_byte(&m->geo, seg, 0), at;

	for (at = 0; at < m->geo.seg_bytes; at += m->geo.zone_bytes)
		kvt_mzone_finish_zone(m, start + at);
}

/* A segment that is FREE, before anything is put: it never will be. */
static void kvt_mzone_retire(struct kvt_mlog *m, u32 seg)
{
	static const struct kvt_seg bad = { .state = KVT_SEG_BAD };
	struct kvt_tier *t = m->tier;

	spin_lock(&t->pool->meta_lock);
	if (t->log.segs[seg].state == KVT_SEG_FREE)
		kvt_log_restore(&t->log, seg, &bad);
	spin_unlock(&t->pool->meta_lock);
}

/* The worst of a segment's zones. */
static int kvt_mzone_usable(struct kvt_mlog *m, u32 seg)
{
	u64 start = kvt_geo_byte(&m->geo, seg, 0), at;
	int err = 0;

	for (at = 0; at < m->geo.seg_bytes && err != -EIO; at += m->geo.zone_bytes)
		err = m->tier->zones->usable(m->tier, start + at) ?: err;
	return err;
}

/* A device may have zones that cannot be written any more. */
static void kvt_mzone_retire_dead(struct kvt_mlog *m)
{
	u32 seg, nr = 0;

	for (seg = 0; seg < m->geo.nr_segs; seg++) {
		if (!kvt_mzone_usable(m, seg))
			continue;
		kvt_mzone_retire(m, seg);
		nr++;
	}
	if (nr)
		pr_warn("kvtier%u: tier %s: %u segments cannot be written any more\n",
			m->tier->pool->id, m->tier->args.name, nr);
}

/*
 * A segment that cannot be read makes a restart impossible, whatever was in it. So a new
 * member must not have one.
 */
static int kvt_mzone_check_new(struct kvt_mlog *m)
{
	u32 seg;

	for (seg = 0; seg < m->geo.nr_segs; seg++) {
		if (kvt_mzone_usable(m, seg) != -EIO)
			continue;
		pr_err("kvtier%u: tier %s: a zone of segment %u, at byte %llu of what can be written, is offline: the device cannot be used from there on\n",
		       m->tier->pool->id, m->tier->args.name, seg, kvt_geo_byte(&m->geo, seg, 0));
		return -EIO;
	}
	return 0;
}

/**
 * kvt_mzone_others() - zones that are not in the layout count as active no more
 * @m: member, not started; sleeps
 *
 * Before anything is written: they may be all that may be active. What is in them stays.
 */
void kvt_mzone_others(struct kvt_mlog *m)
{
	u64 end = m->geo.first_byte + m->geo.nr_segs * m->geo.seg_bytes, at;

	if (!m->turn || !m->tier->max_active_zones)
		return;
	for (at = KVT_SUPER_ZONES * m->geo.zone_bytes; at < m->tier->device_bytes;
	     at += m->geo.zone_bytes) {
		if (at < m->geo.first_byte || at >= end)
			kvt_mzone_finish_zone(m, at);
	}
}

/**
 * kvt_mzone_start() - see that there are zones left to write to
 * @m: member, restored or new; nothing is written to its segments yet; sleeps
 *
 * A device may limit how many zones are partly written. Crashes leave some: those of
 * segments that are free, and of more unsealed ones than there is room for, are
 * finished. The latter do not get footers then, but live on without. Free segments that
 * can never be written are left out.
 */
void kvt_mzone_start(struct kvt_mlog *m)
{
	u32 seg, nr = 0;

	if (m->turn)
		kvt_mzone_retire_dead(m);
	for (seg = 0; m->tier->max_active_zones && m->turn && seg < m->geo.nr_segs; seg++) {
		struct kvt_wseg *ws = &m->w.segs[seg];

		if (!kvt_mzone_active(m, seg))
			continue;
		if (ws->unsealed && nr++ < KVT_WLOG_OPENS)
			continue;
		kvt_mzone_finish(m, seg);
		spin_lock(&m->tier->pool->meta_lock);
		ws->hopeless = ws->unsealed;
		spin_unlock(&m->tier->pool->meta_lock);
	}
}

/**
 * kvt_mzone_opened() - a head has got a segment
 * @m:   member, meta lock held
 * @seg: segment
 */
void kvt_mzone_opened(struct kvt_mlog *m, u32 seg)
{
	lockdep_assert_held(&m->tier->pool->meta_lock);
	if (m->turn)
		WRITE_ONCE(m->turn[seg], 0);
}

static void kvt_mzone_pass(struct kvt_mlog *m, const struct kvt_wlog_io *io)
{
	spin_lock(&m->tier->pool->meta_lock);
	WRITE_ONCE(m->turn[io->seg], io->unit + io->header_units + io->payload_units);
	spin_unlock(&m->tier->pool->meta_lock);
	wake_up_all(&m->wait);
}

/**
 * struct kvt_zwrite - a batch being written
 * @m:   member
 * @io:  batch
 * @mv:  moves of its group
 * @nr:  how many
 * @put: those with this are in it
 * @end: unit of the segment up to which everything was submitted
 * @err: a write has failed
 */
struct kvt_zwrite {
	struct kvt_mlog *m;
	const struct kvt_wlog_io *io;
	struct kvt_mv *mv;
	u32 nr;
	u32 put;
	u32 end;
	int err;
};

static bool kvt_zwrite_has(const struct kvt_zwrite *z, const struct kvt_mv *mv)
{
	return mv->placed && mv->put == z->put;
}

/* The batch's payloads have all arrived, or not. Also those that were waited for before. */
static void kvt_zwrite_wait(struct kvt_zwrite *z)
{
	u32 i;

	for (i = 0; i < z->nr; i++) {
		struct kvt_mv *mv = &z->mv[i];

		if (!kvt_zwrite_has(z, mv) || !mv->flying)
			continue;
		mv->flying = false;
		kvt_xfer_write_end(&mv->x);
		/* What has failed is a write: the bytes come from memory. */
		z->err = z->err ?: mv->x.err;
	}
}

/* Zeroes for what could not be had, and in front of a unit that begins later. */
static void kvt_zwrite_fill(struct kvt_zwrite *z, u32 unit)
{
	kvt_zwrite_wait(z);
	if (!z->err)
		z->err = kvt_mzone_fill(z->m, z->io->seg, z->end, unit);
	z->end = unit;
}

/* Have all the bytes been written, whether or not they were the right ones. */
static bool kvt_zwrite_is_full(const struct kvt_mv *mv)
{
	return !mv->x.err || mv->x.err == -EBADMSG || mv->x.err == -EAGAIN;
}

/* Through pages of our own: from a log, or from what clients can write to. */
static void kvt_zwrite_staged(struct kvt_zwrite *z, struct kvt_mv *mv, u32 units)
{
	kvt_zwrite_wait(z);
	if (z->err)
		return;
	if (mv->x.src->ops->is_mem)
		kvt_xfer_write_shared(&mv->x);
	else
		kvt_xfer_run(&mv->x, 1);
	if (mv->x.err == -EIO && !mv->x.src_bad)
		z->err = mv->x.err;
	else if (!kvt_zwrite_is_full(mv))
		kvt_zwrite_fill(z, z->end + units);
}

static void kvt_zwrite_one(struct kvt_zwrite *z, struct kvt_mv *mv)
{
	const struct kvt_geometry *g = &z->m->geo;
	u32 unit = mv->x.dst_addr - z->io->seg * g->seg_units;
	u32 units = kvt_geo_units(g, mv->x.bytes);

	if (z->err)
		return;
	if (unit != z->end)
		kvt_zwrite_fill(z, unit);
	if (mv->x.src->ops->is_mem && mv->x.err) {
		kvt_zwrite_fill(z, unit + units);
	} else if (!mv->x.src->ops->is_mem || mv->x.shared) {
		kvt_zwrite_staged(z, mv, units);
	} else {
		mv->flying = true;
		kvt_xfer_write_start(&mv->x);
	}
	/* A payload that ends within a unit is followed by zeroes. */
	if (mv->x.bytes & (g->unit_bytes - 1))
		kvt_zwrite_fill(z, unit + units);
	z->end = unit + units;
}

/* With its turn: all of a batch, in order. */
static void kvt_zwrite_batch(struct kvt_zwrite *z)
{
	const struct kvt_wlog_io *io = z->io;
	struct kvt_mlog *m = z->m;
	u32 end, i;

	if (!io->unit && !READ_ONCE(m->w.given_up))
		z->err = m->tier->zones->reset(m->tier, kvt_geo_byte(&m->geo, io->seg, 0),
					       m->geo.seg_bytes);
	if (!z->err)
		z->err = kvt_mlog_write_header(m, io);
	z->end = io->unit + io->header_units;
	end = z->end + io->payload_units;
	for (i = 0; i < z->nr; i++) {
		if (kvt_zwrite_has(z, &z->mv[i]))
			kvt_zwrite_one(z, &z->mv[i]);
	}
	if (z->end != end)
		kvt_zwrite_fill(z, end);
}

/**
 * kvt_mzone_prepare() - all that a batch's header has to know of its blocks
 * @mv:  moves of a group that were placed, but not run
 * @nr:  how many
 * @put: those in this batch
 */
void kvt_mzone_prepare(struct kvt_mv *mv, u32 nr, u32 put)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		if (mv[i].placed && mv[i].put == put && mv[i].x.src->ops->is_mem)
			kvt_xfer_write_prepare(&mv[i].x);
	}
}

/**
 * kvt_mzone_write() - write a closed batch, header and payloads
 * @m:   member on a zoned device; no spinlock held, sleeps
 * @io:  from kvt_wlog_close(); checksums of its blocks are set
 * @mv:  moves of the group it belongs to
 * @nr:  how many
 * @put: those in this batch
 * Return: 0; -EIO: nothing of it counts. Moves tell of themselves whether their bytes could
 * be had. kvt_wlog_written() is the caller's to call.
 */
int kvt_mzone_write(struct kvt_mlog *m, const struct kvt_wlog_io *io, struct kvt_mv *mv, u32 nr,
		    u32 put)
{
	struct kvt_zwrite z = { .m = m, .io = io, .mv = mv, .nr = nr, .put = put };

	wait_event(m->wait, READ_ONCE(m->turn[io->seg]) == io->unit);
	kvt_zwrite_batch(&z);
	kvt_mzone_pass(m, io);
	kvt_zwrite_wait(&z);
	/* Without its first batch a segment is not used again. */
	if (z.err && !io->unit && !READ_ONCE(m->w.given_up))
		kvt_mzone_finish(m, io->seg);
	return z.err ? -EIO : 0;
}

/* --- superblocks ---------------------------------------------------------------- */

static int kvt_mzone_read(void *ctx, u64 byte, void *buf, u32 len)
{
	return kvt_mlog_rw(ctx, byte, buf, len, false);
}

/**
 * kvt_mzone_look_super() - look for superblocks in one of their zones
 * @t:     block tier on a zoned device, attached by its backend; sleeps
 * @zone:  which
 * @pick:  what is found is added
 * @block: scratch, KVT_SUPER_BYTES
 * Return: 0 or -EIO.
 */
int kvt_mzone_look_super(struct kvt_tier *t, u32 zone, struct kvt_super_pick *pick, void *block)
{
	u64 wp;

	return t->zones->wp(t, zone * t->geo.zone_bytes, &wp) ?:
	       kvt_super_log_look(t->geo.zone_bytes, zone, wp, kvt_mzone_read, t, block, pick);
}

/**
 * kvt_mzone_found_super() - go on with superblocks where a restart has found the newest
 * @m:    member, not started; sleeps
 * @zone: where it was
 */
void kvt_mzone_found_super(struct kvt_mlog *m, u32 zone)
{
	u64 wp;

	if (!m->turn)
		return;
	/* If that cannot be had, the other zone is as good. */
	if (m->tier->zones->wp(m->tier, zone * m->geo.zone_bytes, &wp))
		wp = m->geo.zone_bytes;
	kvt_super_log_found(&m->slog, m->geo.zone_bytes, zone, wp);
}

/**
 * kvt_mzone_write_super() - append a superblock
 * @m:     member on a zoned device; io_lock held, sleeps
 * @block: KVT_SUPER_BYTES
 * Return: 0 or -EIO.
 */
int kvt_mzone_write_super(struct kvt_mlog *m, void *block)
{
	bool reset;
	u64 byte = kvt_super_log_next(&m->slog, &reset);
	int err = 0;

	lockdep_assert_held(&m->io_lock);
	if (reset)
		err = m->tier->zones->reset(m->tier, byte, m->geo.zone_bytes);
	if (!err)
		err = kvt_mlog_rw(m->tier, byte, block, KVT_SUPER_BYTES, true);
	kvt_super_log_written(&m->slog, byte, err);
	return err;
}

/**
 * kvt_mzone_wipe() - nothing of a member is found any more
 * @m:   member on a zoned device; sleeps
 * @all: its segments are emptied, too
 * Return: 0 or -EIO.
 */
int kvt_mzone_wipe(struct kvt_mlog *m, bool all)
{
	const struct kvt_zone_ops *ops = m->tier->zones;
	u32 seg;
	int err;

	kvt_super_log_init(&m->slog, m->geo.zone_bytes);
	if (all && kvt_mzone_check_new(m))
		return -EIO;
	if (all && !ops->reset(m->tier, 0, m->geo.first_byte + m->geo.nr_segs * m->geo.seg_bytes))
		return 0;
	err = ops->reset(m->tier, 0, KVT_SUPER_ZONES * m->geo.zone_bytes);
	/* One by one, then: what cannot be emptied is not used. */
	for (seg = 0; all && !err && seg < m->geo.nr_segs; seg++) {
		if (ops->reset(m->tier, kvt_geo_byte(&m->geo, seg, 0), m->geo.seg_bytes))
			kvt_mzone_retire(m, seg);
	}
	return err ?: all && m->tier->log.nr_free < KVT_WLOG_SEGS_MIN ? -EIO : 0;
}
