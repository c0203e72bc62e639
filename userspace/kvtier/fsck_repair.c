// SPDX-License-Identifier: GPL-2.0
/*
 * Repairing a member; see fsck.h for what is done, and why not more.
 *
 * First batches come first, and nothing with them: much of what else was found may be
 * wrong because of what their segments say. Then footers, a flush, the superblock, a
 * flush. A superblock is only ever written where the valid one is not. Zoned devices are
 * fsck_move.c's.
 */
#include <stdlib.h>
#include <string.h>
#include "fsck.h"

static int write_at(struct fsck *f, u64 byte, const void *buf, u32 len)
{
	return f->media->write(f->media->ctx, byte, buf, len);
}

static int flush(struct fsck *f)
{
	return f->media->flush(f->media->ctx);
}

void fsck_empty_batch(const struct fsck *f, u32 seg, u64 life, u8 *unit)
{
	struct kvt_batch_info b = { .life = life, .seg = seg, .header_units = 1 };

	memset(unit, 0, f->geo.unit_bytes);
	kvt_batch_encode(&f->geo, unit, &b);
}

static int fix_head(struct fsck *f, u32 seg)
{
	fsck_empty_batch(f, seg, f->segs[seg].foot_life, f->buf);
	return write_at(f, kvt_geo_byte(&f->geo, seg, 0), f->buf, f->geo.unit_bytes);
}

static int fix_foot(struct fsck *f, u32 seg)
{
	memset(f->buf, 0, f->geo.unit_bytes);
	return write_at(f, kvt_geo_byte(&f->geo, seg, f->geo.seg_units - 1), f->buf,
			f->geo.unit_bytes);
}

static int fix_segments(struct fsck *f, enum fsck_fix fix, u64 *fixed)
{
	int ret = 0;
	u32 seg;

	for (seg = 0; !ret && seg < f->geo.nr_segs; seg++) {
		if (f->segs[seg].fix != fix)
			continue;
		ret = fix == FSCK_FIX_HEAD ? fix_head(f, seg) : fix_foot(f, seg);
		*fixed += !ret;
	}
	return ret ? ret : flush(f);
}

/* Limits that are no limits any more could not be read back. */
static u64 limit(u64 now, u64 seen)
{
	return seen + 1 < KVT_LIMIT_MAX ? max(now, seen + 1) : now;
}

void fsck_correct_super(const struct fsck *f, struct kvt_super *s)
{
	s->state = KVT_STATE_DIRTY;
	s->life_limit = limit(s->life_limit, f->max_life);
	s->seq_limit = limit(s->seq_limit, f->max_seq);
	s->ns_limit = limit(s->ns_limit, f->max_ns);
}

/*
 * A copy is one older than its original, a correction one newer, and both go where the valid one
 * is not. Neither touches the generation in the table of members: by that one is judged whether
 * the member is an old copy, see kvt_super_known().
 */
static int fix_super(struct fsck *f, u64 *fixed)
{
	struct kvt_super s = f->supers.pick.super;
	static u64 block[KVT_SUPER_BYTES / sizeof(u64)];
	bool correct = f->fix[FSCK_FIX_SUPER] || f->fix[FSCK_FIX_FOOT];
	u32 slot = f->supers.pick.slot;
	int ret;

	if (s.generation % KVT_SUPER_SLOTS != slot || s.generation + 1 >= KVT_LIMIT_MAX ||
	    (!correct && !f->fix[FSCK_FIX_TWIN]))
		return 0;
	if (correct)
		fsck_correct_super(f, &s);
	s.generation = correct || !s.generation ? s.generation + 1 : s.generation - 1;
	kvt_super_encode(block, &s);
	ret = write_at(f, (u64)!slot * KVT_SUPER_TWIN_BYTE, block, sizeof(block));
	*fixed += !ret;
	return ret;
}

int fsck_repair(struct fsck *f, u64 *fixed)
{
	int ret;

	*fixed = 0;
	if (!f->segs)
		return 0;
	if (f->media->zone_bytes)
		return fsck_repair_zoned(f, fixed);
	if (f->fix[FSCK_FIX_HEAD])
		return fix_segments(f, FSCK_FIX_HEAD, fixed);
	ret = fix_segments(f, FSCK_FIX_FOOT, fixed);
	if (!ret)
		ret = fix_super(f, fixed);
	return ret ? ret : flush(f);
}
