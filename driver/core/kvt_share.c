// SPDX-License-Identifier: GPL-2.0
/*
 * What one namespace may have on one tier; see kvt_share.h for the model.
 */
#include "kvt_share.h"

/**
 * kvt_share_room() - what is left of the limit
 * @s: share
 * Return: bytes; KVT_SHARE_ALL if there is no limit.
 */
u64 kvt_share_room(const struct kvt_share *s)
{
	if (s->limit == KVT_SHARE_ALL)
		return KVT_SHARE_ALL;
	/* Both are of devices that there are: their sum is far from overflowing. */
	return s->limit - min(s->used + s->coming, s->limit);
}

/**
 * kvt_share_excess() - what is there beyond a part of the limit
 * @s:       share
 * @percent: of the limit, up to 100
 * Return: bytes that would have to go; 0 if there is no limit.
 */
u64 kvt_share_excess(const struct kvt_share *s, u32 percent)
{
	u64 hundredth = div64_u64(s->limit, 100), mark;

	if (s->limit == KVT_SHARE_ALL)
		return 0;
	/* In this order a limit of any size does not overflow. */
	mark = hundredth * percent + div64_u64((s->limit - hundredth * 100) * percent, 100);
	return s->used - min(s->used, mark);
}

/**
 * kvt_share_want() - a slot did not fit
 * @s:     share
 * @bytes: of it
 *
 * One that would not fit if nothing else were there is not worth making room for.
 */
void kvt_share_want(struct kvt_share *s, u64 bytes)
{
	if (bytes <= s->limit)
		s->wanted = max(s->wanted, bytes);
}

/**
 * kvt_share_to_go() - how much of a namespace is to leave a tier now
 * @s:    share
 * @high: watermark, percent of the limit, above which some goes
 * @low:  ... and below which that ends
 * Return: bytes, 0: nothing. Never more than there is.
 */
u64 kvt_share_to_go(struct kvt_share *s, u32 high, u32 low)
{
	u64 go = kvt_share_excess(s, s->lowering ? low : high) ? kvt_share_excess(s, low) : 0;
	u64 room = kvt_share_room(s);

	s->lowering = go;
	if (s->wanted <= room)
		s->wanted = 0;
	else
		go = max(go, s->wanted - room);
	return min(go, s->used);
}

/**
 * kvt_share_give_up() - nothing of it can go now
 * @s: share
 *
 * Who still wants room there asks again.
 */
void kvt_share_give_up(struct kvt_share *s)
{
	s->lowering = false;
	s->wanted = 0;
}

/**
 * kvt_share_pieces() - how long a region may become
 * @s:     share on a memory tier
 * @least: pieces that a slot needs
 * @most:  pieces that others allow, not less than that
 * @piece_bytes: of a piece
 *
 * A region is its owner's alone, used or not, so it is not to be longer than what may be
 * put into it.
 * Return: pieces, from @least to @most.
 */
u32 kvt_share_pieces(const struct kvt_share *s, u32 least, u32 most, u32 piece_bytes)
{
	u64 room = kvt_share_room(s), pieces = div64_u64(room, piece_bytes);

	/* The last slot may end in the middle of a piece. */
	if (pieces >= most)
		return most;
	return max((u32)pieces + 1, least);
}

/**
 * kvt_share_may_promise() - can a block tier guarantee so much
 * @s:        share whose minimum is to change
 * @min:      bytes, in place of what it is now
 * @tier_min: sum of all minima on the tier, that one included
 * @capacity: of the tier, bytes
 */
bool kvt_share_may_promise(const struct kvt_share *s, u64 min, u64 tier_min, u64 capacity)
{
	u64 all = kvt_share_promise(capacity), others = tier_min - s->min;

	/* Less than before is always possible: a device may have become smaller. */
	return min <= s->min || (others <= all && min <= all - others);
}

/**
 * kvt_share_guarded() - is what a namespace has on a block tier not for others to push out
 * @s: its share
 * @c: what has been promised
 *
 * It is if it has no more there than its minimum on this tier; or if it has, all in all, no
 * more in the pool than what was guaranteed to it of that. What was promised does not count
 * if it is more than can be.
 */
bool kvt_share_guarded(const struct kvt_share *s, const struct kvt_claim *c)
{
	u64 all = kvt_share_promise(c->capacity);

	if (c->tier_min > all)
		return false;
	if (s->min && s->used <= s->min)
		return true;
	/* Units are rounded up, so little can be much here: as much as was promised. */
	return c->min && c->has <= c->min && s->used <= c->min &&
	       c->all_min <= all - c->tier_min;
}
