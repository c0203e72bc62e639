// SPDX-License-Identifier: GPL-2.0
/*
 * Zones of a block device: what there is, and writing to them; see media.h.
 *
 * As the driver does, only devices are taken whose zones are all sequential and have one
 * capacity; a last one that is shorter is left out.
 *
 * What is written goes past the page cache, which has an order of its own; what that has
 * of the same bytes the kernel forgets.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/blkzoned.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "media.h"

#define REPORT_ZONES	256u
#define BOUNCE_BYTES	(256u << 10)

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

static u8 state_of(const struct blk_zone *z)
{
	switch (z->cond) {
	case BLK_ZONE_COND_READONLY:
		return MEDIA_ZONE_READONLY;
	case BLK_ZONE_COND_OFFLINE:
		return MEDIA_ZONE_OFFLINE;
	default:
		return MEDIA_ZONE_GOOD;
	}
}

/* Zone @nr of the device. */
static int take_zone(struct media_dev *d, const struct blk_zone_report *r,
		     const struct blk_zone *z, u64 nr)
{
	u64 capacity = capacity_of(r, z);
	struct media *m = &d->media;

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
	d->zones[nr] = state_of(z);
	m->bytes += capacity;
	return 0;
}

static int take_zones(struct media_dev *d, struct blk_zone_report *r)
{
	u64 nr = 0, sector = 0;
	u8 *zones;
	int err = 0;
	u32 i;

	for (;;) {
		r->sector = sector;
		r->nr_zones = REPORT_ZONES;
		if (ioctl(d->fd, BLKREPORTZONE, r))
			return -errno;
		if (!r->nr_zones)
			break;
		zones = realloc(d->zones, nr + r->nr_zones);
		if (!zones)
			return -ENOMEM;
		d->zones = zones;
		for (i = 0; i < r->nr_zones && !err; i++, nr++) {
			err = take_zone(d, r, &r->zones[i], nr);
			sector = r->zones[i].start + r->zones[i].len;
		}
		if (err)
			return err;
	}
	d->media.zones = d->zones;
	return 0;
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

/* --- Writing --------------------------------------------------------------- */

/* A zone ends where the next one begins: so by what was written, not by where that ends. */
static void stands_behind(struct media *m, u64 byte, u64 len)
{
	u64 zone = byte / m->zone_bytes;

	if (zone < KVT_SUPER_ZONES)
		m->wp[zone] = byte % m->zone_bytes + len;
}

static int zoned_write(void *ctx, u64 byte, const void *buf, u32 len)
{
	struct media_dev *d = ctx;
	const char *from = buf;
	u64 at, left;
	ssize_t n;

	for (; len; len -= (u32)n, from += n, byte += (u64)n) {
		at = kvt_zone_phys(byte, d->media.zone_bytes, d->media.zone_stride, &left);
		left = min_t(u64, min_t(u64, left, len), BOUNCE_BYTES);
		memcpy(d->bounce, from, left);
		n = pwrite(d->direct, d->bounce, left, (off_t)at);
		if (n < 0 && errno == EINTR) {
			n = 0;
			continue;
		}
		if (n <= 0)
			return n ? -errno : -EIO;
		stands_behind(&d->media, byte, (u64)n);
	}
	return 0;
}

static int zoned_reset(void *ctx, u64 byte)
{
	struct media_dev *d = ctx;
	struct blk_zone_range range = { .nr_sectors = d->media.zone_stride >> 9 };
	u64 left;

	range.sector = kvt_zone_phys(byte, d->media.zone_bytes, d->media.zone_stride, &left) >> 9;
	if (ioctl(d->fd, BLKRESETZONE, &range))
		return -errno;
	stands_behind(&d->media, byte, 0);
	return 0;
}

/* It is ours alone already: the second time it need not be asked for. */
int media_open_zones(struct media_dev *d, const char *path)
{
	d->direct = open(path, O_WRONLY | O_DIRECT | O_CLOEXEC);
	if (d->direct < 0)
		return -errno;
	d->bounce = aligned_alloc(4096, BOUNCE_BYTES);
	if (!d->bounce)
		return -ENOMEM;
	d->media.write = zoned_write;
	d->media.reset = zoned_reset;
	return 0;
}
