/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Zones of a block device that must be written sequentially; see tier_zoned.c.
 */
#ifndef KVT_TIER_ZONED_H
#define KVT_TIER_ZONED_H

#include <linux/blkdev.h>

#include "tier.h"

/**
 * struct kvt_zones - a device's zones, all alike
 * @zone_bytes:  what can be written to each; 0: the device is not zoned
 * @zone_stride: from one to the next
 * @nr:          zones that are as long as that
 * @max_active:  zones that may be partly written at a time, 0: any number
 */
struct kvt_zones {
	u64 zone_bytes;
	u64 zone_stride;
	u32 nr;
	u32 max_active;
};

extern const struct kvt_zone_ops kvt_zoned_ops;

int kvt_zones_probe(struct block_device *bdev, struct kvt_zones *z);

/* tier_bdev.c */
struct block_device *kvt_bdev_of(const struct kvt_tier *t);

#endif /* KVT_TIER_ZONED_H */
