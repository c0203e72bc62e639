// SPDX-License-Identifier: GPL-2.0
/*
 * The log of superblocks of a zoned member; see kvt_zone.h for the model.
 *
 * Invariant: the zone that has the newest superblock known to be written is not the one
 * that kvt_super_log_next() wants to be reset.
 */
#include "kvt_zone.h"

/**
 * kvt_super_log_init() - there is no superblock yet
 * @l:          log
 * @zone_bytes: capacity of a zone
 */
void kvt_super_log_init(struct kvt_super_log *l, u64 zone_bytes)
{
	l->zone_bytes = zone_bytes;
	l->zone = 1;
	l->at = zone_bytes;
}

/**
 * kvt_super_log_look() - find the newest superblock of a zone
 * @zone_bytes: capacity of a zone
 * @zone:  0 or 1
 * @wp:    its write pointer, from the start of the zone; where it is not known, the
 *         capacity will do if what was not written reads as zeroes, but takes no more
 *         than KVT_SUPER_LOOK of them
 * @read:  of the written space; may sleep
 * @ctx:   for @read
 * @block: scratch, KVT_SUPER_BYTES
 * @pick:  what is found is added, with @zone as its slot
 * Return: 0, also if there is none, or what @read has returned.
 */
int kvt_super_log_look(u64 zone_bytes, u32 zone, u64 wp,
		       int (*read)(void *ctx, u64 byte, void *buf, u32 len), void *ctx,
		       void *block, struct kvt_super_pick *pick)
{
	u64 at = min(wp, zone_bytes) & ~(u64)(KVT_SUPER_BYTES - 1);
	u32 i;
	int err;

	for (i = 0; at && i < KVT_SUPER_LOOK; i++) {
		at -= KVT_SUPER_BYTES;
		err = read(ctx, zone * zone_bytes + at, block, KVT_SUPER_BYTES);
		if (err)
			return err;
		kvt_super_pick_add(pick, zone, block);
		if (kvt_super_verifies(block))
			break;
	}
	return 0;
}

/**
 * kvt_super_log_found() - go on behind the superblock that was picked
 * @l:          log
 * @zone_bytes: capacity of a zone
 * @zone:       where it is
 * @wp:         that zone's write pointer
 */
void kvt_super_log_found(struct kvt_super_log *l, u64 zone_bytes, u32 zone, u64 wp)
{
	l->zone_bytes = zone_bytes;
	l->zone = zone;
	/* Behind a torn one nothing has its place any more. */
	l->at = wp & (KVT_SUPER_BYTES - 1) ? zone_bytes : wp;
}

/**
 * kvt_super_log_next() - where the next superblock goes
 * @l:     log
 * @reset: out: its zone is to be reset before
 * Return: byte of the written space.
 */
u64 kvt_super_log_next(const struct kvt_super_log *l, bool *reset)
{
	*reset = l->at + KVT_SUPER_BYTES > l->zone_bytes;
	if (!*reset)
		return l->zone * l->zone_bytes + l->at;
	if (kvt_env_broken(SUPER_ZONE))
		return l->zone * l->zone_bytes;
	return !l->zone * l->zone_bytes;
}

/**
 * kvt_super_log_written() - the write of a superblock is over
 * @l:    log
 * @byte: from kvt_super_log_next()
 * @err:  0, or it, or the reset, has failed: nothing more goes to that zone
 */
void kvt_super_log_written(struct kvt_super_log *l, u64 byte, int err)
{
	u32 zone = byte >= l->zone_bytes;

	if (err) {
		/* The other one is tried from its start again. */
		if (zone == l->zone)
			l->at = l->zone_bytes;
		return;
	}
	l->zone = zone;
	l->at = byte - zone * l->zone_bytes + KVT_SUPER_BYTES;
}
