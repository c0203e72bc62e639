/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Zoned members: addresses, and the log of superblocks.
 *
 * A zone can only be written at its write pointer, and be reset as a whole. What can be
 * written to it, its capacity, may be less than what it takes of the device's addresses.
 * In this format addresses are of the *written space*: all zones' capacities, one after
 * the other. A segment is one or more whole zones.
 *
 *   zone 0, zone 1    superblocks, each behind the one before it
 *   ...               not used, up to first_byte
 *   first_byte        segments
 *
 * The newest superblock is in one of the two zones, and the next one goes behind it.
 * When there is no more room, or a write to the zone has failed, it goes to the other
 * zone, which is reset for that: the one with the newest durable superblock never is. By
 * rule R4 the one before is durable when the next one is written.
 *
 * Nothing here does I/O, allocates or waits; no locks.
 */
#ifndef KVT_ZONE_H
#define KVT_ZONE_H

#include "kvt_format.h"

#define KVT_SUPER_ZONES		2u
#define KVT_SUPER_LOOK		64u	/* blocks looked at in a zone, at most */

/**
 * kvt_zone_phys() - an address of the device
 * @byte:   of the written space
 * @zone_bytes: capacity of each zone; 0: not zoned
 * @zone_stride: from one zone to the next
 * @left:   out: bytes from there to the end of the zone's capacity
 */
static inline u64 kvt_zone_phys(u64 byte, u64 zone_bytes, u64 zone_stride, u64 *left)
{
	u64 zone, at;

	*left = U64_MAX;
	if (!zone_bytes)
		return byte;
	zone = div64_u64_rem(byte, zone_bytes, &at);
	*left = zone_bytes - at;
	return zone * zone_stride + at;
}

/**
 * struct kvt_super_log - where superblocks go
 * @zone_bytes: capacity of a zone
 * @at:    where the next one goes in @zone; none fits there any more: the other zone
 * @zone:  the one with the newest
 */
struct kvt_super_log {
	u64 zone_bytes;
	u64 at;
	u32 zone;
};

void kvt_super_log_init(struct kvt_super_log *l, u64 zone_bytes);
int kvt_super_log_look(u64 zone_bytes, u32 zone, u64 wp,
		       int (*read)(void *ctx, u64 byte, void *buf, u32 len), void *ctx,
		       void *block, struct kvt_super_pick *pick);
void kvt_super_log_found(struct kvt_super_log *l, u64 zone_bytes, u32 zone, u64 wp);
u64 kvt_super_log_next(const struct kvt_super_log *l, bool *reset);
void kvt_super_log_written(struct kvt_super_log *l, u64 byte, int err);

#endif /* KVT_ZONE_H */
