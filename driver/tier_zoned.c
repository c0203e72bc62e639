// SPDX-License-Identifier: GPL-2.0
/*
 * Zones of a block device: what there is, and what is done to whole zones.
 *
 * All addresses that come in are of the written space, see core/kvt_zone.h. Only devices
 * whose zones are all sequential and alike are taken; a last one that is shorter is left
 * out. The block layer keeps the order of writes to one zone in which they were
 * submitted (zone write plugging), and learns from a report where a zone stands after a
 * write to it has failed.
 *
 * What is done here may be what makes memory free, so none of it waits for that.
 */
#include <linux/sched/mm.h>

#include "core/kvt_zone.h"
#include "tier_zoned.h"

struct kvt_zones_look {
	struct kvt_zones *z;
	bool last;
};

static int kvt_zones_look(struct blk_zone *zone, unsigned int idx, void *data)
{
	struct kvt_zones_look *l = data;
	struct kvt_zones *z = l->z;

	if (zone->type != BLK_ZONE_TYPE_SEQWRITE_REQ || l->last)
		return -EOPNOTSUPP;
	if (!idx)
		z->zone_bytes = (u64)zone->capacity << SECTOR_SHIFT;
	l->last = (u64)zone->len << SECTOR_SHIFT != z->zone_stride;
	if (l->last)
		return 0;
	if ((u64)zone->capacity << SECTOR_SHIFT != z->zone_bytes)
		return -EOPNOTSUPP;
	z->nr++;
	return 0;
}

/**
 * kvt_zones_probe() - what zones a device has
 * @bdev: device; sleeps
 * @z:    out
 * Return: 0; -EOPNOTSUPP: they are not all sequential and alike, or too few may be in
 * use at a time; or what reporting them has returned.
 */
int kvt_zones_probe(struct block_device *bdev, struct kvt_zones *z)
{
	struct kvt_zones_look l = { .z = z };
	int ret;

	memset(z, 0, sizeof(*z));
	if (!bdev_is_zoned(bdev))
		return 0;
	if (bdev_is_partition(bdev))
		return -EOPNOTSUPP;
	z->zone_stride = (u64)bdev_zone_sectors(bdev) << SECTOR_SHIFT;
	z->max_active = bdev_max_active_zones(bdev);
	ret = blkdev_report_zones(bdev, 0, BLK_ALL_ZONES, kvt_zones_look, &l);
	if (ret < 0)
		return ret;
	if (!z->nr || z->zone_bytes % PAGE_SIZE || z->zone_bytes < KVT_ZONE_BYTES_MIN ||
	    (z->max_active && z->max_active < KVT_ZONES_ACTIVE_MIN))
		return -EOPNOTSUPP;
	return 0;
}

static int kvt_zones_usable_cb(struct blk_zone *zone, unsigned int idx, void *data)
{
	int *err = data;

	if (zone->cond == BLK_ZONE_COND_READONLY)
		*err = -EROFS;
	else if (zone->cond == BLK_ZONE_COND_OFFLINE)
		*err = -EIO;
	return 0;
}

static int kvt_zones_wp_cb(struct blk_zone *zone, unsigned int idx, void *data)
{
	u64 *wp = data;

	switch (zone->cond) {
	case BLK_ZONE_COND_EMPTY:
		*wp = 0;
		break;
	case BLK_ZONE_COND_IMP_OPEN:
	case BLK_ZONE_COND_EXP_OPEN:
	case BLK_ZONE_COND_CLOSED:
		*wp = (zone->wp - zone->start) << SECTOR_SHIFT;
		break;
	default:
		/* Full, or worn out: nothing can be written to it. */
		*wp = (u64)zone->capacity << SECTOR_SHIFT;
		break;
	}
	return 0;
}

static sector_t kvt_zones_sector(const struct kvt_tier *t, u64 byte)
{
	u64 left;

	return kvt_zone_phys(byte, t->geo.zone_bytes, t->geo.zone_stride, &left) >> SECTOR_SHIFT;
}

static int kvt_zones_wp(struct kvt_tier *t, u64 byte, u64 *wp)
{
	unsigned int noio = memalloc_noio_save();
	int ret;

	*wp = 0;
	ret = blkdev_report_zones(kvt_bdev_of(t), kvt_zones_sector(t, byte), 1, kvt_zones_wp_cb,
				  wp);
	memalloc_noio_restore(noio);
	return ret == 1 ? 0 : -EIO;
}

/* If it is not known a write will tell. */
static int kvt_zones_usable(struct kvt_tier *t, u64 byte)
{
	unsigned int noio = memalloc_noio_save();
	int err = 0;

	blkdev_report_zones(kvt_bdev_of(t), kvt_zones_sector(t, byte), 1, kvt_zones_usable_cb,
			    &err);
	memalloc_noio_restore(noio);
	return err;
}

static int kvt_zones_mgmt(struct kvt_tier *t, u64 byte, u64 len, enum req_op op)
{
	u64 nr = div64_u64(len, t->geo.zone_bytes);
	unsigned int noio = memalloc_noio_save();
	int ret;

	ret = blkdev_zone_mgmt(kvt_bdev_of(t), op, kvt_zones_sector(t, byte),
			       nr * (t->geo.zone_stride >> SECTOR_SHIFT));
	memalloc_noio_restore(noio);
	return ret ? -EIO : 0;
}

static int kvt_zones_reset(struct kvt_tier *t, u64 byte, u64 len)
{
	return kvt_zones_mgmt(t, byte, len, REQ_OP_ZONE_RESET);
}

static int kvt_zones_finish(struct kvt_tier *t, u64 byte, u64 len)
{
	return kvt_zones_mgmt(t, byte, len, REQ_OP_ZONE_FINISH);
}

const struct kvt_zone_ops kvt_zoned_ops = {
	.reset = kvt_zones_reset,
	.finish = kvt_zones_finish,
	.usable = kvt_zones_usable,
	.wp = kvt_zones_wp,
};
