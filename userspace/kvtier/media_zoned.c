// SPDX-License-Identifier: GPL-2.0
/*
 * Zones of a block device that is read; see media.h.
 *
 * As the driver does, only devices are taken whose zones are all sequential and have one
 * capacity; a last one that is shorter is left out.
 */
#include <errno.h>
#include <linux/blkzoned.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include "media.h"

#define REPORT_ZONES	256u

static u64 capacity_of(const struct blk_zone_report *r, const struct blk_zone *z)
{
	return (r->flags & BLK_ZONE_REP_CAPACITY ? z->capacity : z->len) << 9;
}

static u64 wp_of(const struct blk_zone *z, u64 capacity)
{
	switch (z->cond) {
	case BLK_ZONE_COND_EMPTY:
		return 0;
	case BLK_ZONE_COND_IMP_OPEN:
	case BLK_ZONE_COND_EXP_OPEN:
	case BLK_ZONE_COND_CLOSED:
		return (z->wp - z->start) << 9;
	default:
		return capacity;
	}
}

/* Zone @nr of the device. */
static int take_zone(struct media *m, const struct blk_zone_report *r, const struct blk_zone *z,
		     u64 nr)
{
	u64 capacity = capacity_of(r, z);

	if (z->type != BLK_ZONE_TYPE_SEQWRITE_REQ)
		return -EOPNOTSUPP;
	if (!nr) {
		m->zone_bytes = capacity;
		m->bytes = 0;
	}
	if (z->len << 9 != m->zone_stride)
		return 0;
	if (capacity != m->zone_bytes || !capacity)
		return -EOPNOTSUPP;
	if (nr < KVT_SUPER_ZONES)
		m->wp[nr] = wp_of(z, capacity);
	m->bytes += capacity;
	return 0;
}

static int take_zones(struct media_dev *d, struct blk_zone_report *r)
{
	u64 nr = 0, sector = 0;
	int err = 0;
	u32 i;

	for (;;) {
		r->sector = sector;
		r->nr_zones = REPORT_ZONES;
		if (ioctl(d->fd, BLKREPORTZONE, r))
			return -errno;
		if (!r->nr_zones)
			return 0;
		for (i = 0; i < r->nr_zones && !err; i++, nr++) {
			err = take_zone(&d->media, r, &r->zones[i], nr);
			sector = r->zones[i].start + r->zones[i].len;
		}
		if (err)
			return err;
	}
}

int media_find_zones(struct media_dev *d)
{
	struct blk_zone_report *r;
	__u32 sectors = 0;
	int err;

	/* Old kernels, and those without zones, do not know the question. */
	if (ioctl(d->fd, BLKGETZONESZ, &sectors) || !sectors)
		return 0;
	d->media.zone_stride = (u64)sectors << 9;
	r = calloc(1, sizeof(*r) + REPORT_ZONES * sizeof(r->zones[0]));
	if (!r)
		return -ENOMEM;
	err = take_zones(d, r);
	free(r);
	return err;
}
