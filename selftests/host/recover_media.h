/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The member that bench_recover.c has recovered: what lies on it, and what of that must
 * be found.
 *
 * A million blocks of 64 KiB in chains of MEDIA_CHAIN, of MEDIA_NS namespaces, in sealed
 * segments of 64 MiB. A segment has places for MEDIA_GROUPS chains, tail first, as
 * blocks come down:
 *
 *   MEDIA_WHOLE chains are there as a whole
 *   MEDIA_SPLIT have the half with the root in another segment
 *   the others have each block in another segment
 *
 * How far away the other segments are differs; about half of them are read later. Half of
 * the chains go on from the middle of another one. Behind the chains are MEDIA_REST records that do not count: older ones of blocks that are
 * elsewhere, half of them killed, with another parent; blocks of a namespace that is
 * gone; and dropped ones. One block of a chain in each segment is dropped, too, so what
 * follows it has no parent. Kills lie half the member away from what they name, and as
 * many name lives that are over. Some chains are rings. Besides, there are segments that
 * have ended, full of newer records of blocks that are elsewhere.
 *
 * All of that follows from a record's place by arithmetic, and so does where a block is.
 */
#ifndef KVT_RECOVER_MEDIA_H
#define KVT_RECOVER_MEDIA_H

#include "kvt_env.h"
#include "kvt_format.h"

#define MEDIA_UNIT		4096u
#define MEDIA_SEG_UNITS		16384u
#define MEDIA_BLOCK_BYTES	65536u
#define MEDIA_BLOCK_UNITS	(MEDIA_BLOCK_BYTES / MEDIA_UNIT)

#define MEDIA_CHAIN		16u
#define MEDIA_NS		32u
#define MEDIA_WHOLE		31u
#define MEDIA_SPLIT		16u
#define MEDIA_GROUPS		62u
#define MEDIA_CHAINED		(MEDIA_GROUPS * MEDIA_CHAIN)
#define MEDIA_OLD		10u
#define MEDIA_ORPHANS		2u
#define MEDIA_DROPPED		2u
#define MEDIA_REST		(MEDIA_OLD + MEDIA_ORPHANS + MEDIA_DROPPED)
#define MEDIA_RECS		(MEDIA_CHAINED + MEDIA_REST)

#define MEDIA_SEGS		1013u	/* with something; a prime */
#define MEDIA_ENDED		6u
#define MEDIA_FREE		5u
#define MEDIA_SEGS_ALL		(MEDIA_SEGS + MEDIA_ENDED + MEDIA_FREE)
#define MEDIA_UNITS_ALL		(MEDIA_SEGS_ALL * MEDIA_SEG_UNITS)
#define MEDIA_LIFE_LIMIT	100000u
#define MEDIA_NS_LIMIT		1000u
#define MEDIA_NS_GONE		40u	/* id of a namespace that is gone */

struct media;

/* A block's place in its chain, or in what it has of its own. */
struct media_block {
	u32 chain;
	u32 index;
};

/**
 * struct media_sum - what there is on all of it
 * @blocks:     that must be found
 * @links:      of them with a parent that must be found, rings cut
 * @away:       links to a parent in another segment
 * @later:      of these, in one that is read later
 * @cycles:     rings
 * @dead:       records that a kill names
 * @superseded: older ones that none names
 * @orphans:    records of a namespace that is gone
 */
struct media_sum {
	u32 blocks;
	u32 links;
	u32 away;
	u32 later;
	u32 cycles;
	u32 dead;
	u32 superseded;
	u32 orphans;
};

extern const struct kvt_geometry media_geo;

struct media *media_new(void);
int media_read(const struct media *m, u64 byte, void *buf, u32 len);
struct media_sum media_sum(void);

void media_rec(u32 seg, u32 pos, struct kvt_rec *r);
struct media_block media_block_at(u32 seg, u32 pos);
u32 media_seg_of(struct media_block b);
void media_key(struct media_block b, u8 *key);
bool media_dropped(struct media_block b);
bool media_ring(u32 chain);
bool media_up(struct media_block b, struct media_block *up);

/* First unit of a record, within its segment. */
static inline u32 media_unit(u32 pos)
{
	return 1 + pos * MEDIA_BLOCK_UNITS;
}

#endif /* KVT_RECOVER_MEDIA_H */
