// SPDX-License-Identifier: GPL-2.0
/*
 * Lives, and kills; see kvt_life.h for the model.
 */
#include "kvt_env.h"
#include "kvt_life.h"

/* Of the first batch, if that verifies as a whole; else 0. */
static int kvt_life_first(const struct kvt_recover *r, u32 seg, u64 *life)
{
	u64 at = kvt_geo_byte(r->geo, seg, 0);
	struct kvt_batch_info b;
	u32 bytes;
	int err;

	err = r->read(r->ctx, at, r->buf, KVT_UNIT_BYTES_MIN);
	if (err || !kvt_batch_decode(r->geo, seg, 0, r->buf, &b) || b.number)
		return err;
	bytes = b.header_units * r->geo->unit_bytes;
	if (bytes > KVT_UNIT_BYTES_MIN)
		err = r->read(r->ctx, at + KVT_UNIT_BYTES_MIN, r->buf + KVT_UNIT_BYTES_MIN,
			      bytes - KVT_UNIT_BYTES_MIN);
	if (!err && kvt_batch_verify(r->geo, r->buf, &b))
		*life = b.life;
	return err;
}

static int kvt_life_foot(const struct kvt_recover *r, u32 seg, u64 *life)
{
	struct kvt_footer_info foot;
	int err;

	err = r->read(r->ctx, kvt_geo_byte(r->geo, seg, r->geo->seg_units - 1), r->buf,
		      KVT_UNIT_BYTES_MIN);
	if (!err && kvt_footer_decode(r->geo, seg, (const struct kvt_m_footer *)r->buf, &foot))
		*life = foot.life;
	return err;
}

/**
 * kvt_life_read() - find out which life is in a segment
 * @l:   member
 * @r:   how to read it; no sink is needed
 * @seg: which; the caller's alone meanwhile
 * Return: 0, or what @r->read has returned.
 */
int kvt_life_read(const struct kvt_life *l, const struct kvt_recover *r, u32 seg)
{
	struct kvt_life_seg *s = &l->segs[seg];
	int err;

	err = kvt_life_first(r, seg, &s->life);
	return err || s->life ? err : kvt_life_foot(r, seg, &s->stale);
}

/* The latest that anybody has found. */
static void kvt_life_end(struct kvt_life_seg *s, u64 life)
{
	u64 old = READ_ONCE(s->ended);

	while (old < life && !try_cmpxchg(&s->ended, &old, life))
		;
}

/**
 * kvt_life_kill() - a kill was found
 * @l: member, whose segments were all read for their lives
 * @k: from any of its segments; any number of callers at once
 *
 * One of a life that was not given out, or of another than is in its segment, says nothing.
 * Return: whether it is the first that names that unit.
 */
bool kvt_life_kill(const struct kvt_life *l, const struct kvt_kill *k)
{
	struct kvt_life_seg *s = &l->segs[k->seg];

	if (k->life >= l->super->life_limit)
		return false;
	/* Or of a later life, which had no footer. */
	if (!s->life && k->unit == KVT_KILL_ALL && k->life >= s->stale)
		kvt_life_end(s, k->life);
	if (s->life != k->life)
		return false;
	if (k->unit == KVT_KILL_ALL) {
		kvt_life_end(s, k->life);
		return false;
	}
	return !test_and_set_bit((u64)k->seg * l->super->geo.seg_units + k->unit, l->dead);
}

/**
 * kvt_life_recover() - have what is in a segment told to a sink
 * @l:   member
 * @r:   how
 * @seg: which, after its kvt_life_read(); the caller's alone meanwhile
 *
 * Return: 0; the member is not to be used: -EIO, a header, footer or summary cannot be read, or
 * reads as something else now; -EUCLEAN, it has numbers that were never given out.
 */
int kvt_life_recover(const struct kvt_life *l, const struct kvt_recover *r, u32 seg)
{
	struct kvt_life_seg *s = &l->segs[seg];

	if (!s->life)
		return 0;
	kvt_recover_segment(r, seg, &s->found);
	if (s->found.nr_io || s->found.life != s->life)
		return -EIO;
	if (s->life >= l->super->life_limit || s->found.max_seq >= l->super->seq_limit)
		return -EUCLEAN;
	return 0;
}
