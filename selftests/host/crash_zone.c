// SPDX-License-Identifier: GPL-2.0
/*
 * The simulated device as a zoned one. See crash.h.
 *
 * A write must be at the write pointer of its zone, and inside it: anything else fails
 * the test, unless a write to the zone has failed before, when it is an error as on a
 * real device. At a crash each zone keeps some of what no flush has covered, from the
 * first on and without gaps; the last one may be torn, from its end. A reset is one of
 * these: it has happened, with whatever was written after it, or it has not.
 *
 * Addresses are of the written space: there is nothing between two zones.
 */
#include "crash.h"

#define SECTOR	512u

/* Capacity of a zone: segments are one or two. */
u64 cr_zone_choose(u32 *seg_units, struct cr_rng *rng)
{
	u32 zones = 1 + cr_random(rng, 2);

	*seg_units = max(*seg_units, 32u) & ~1u;
	return (u64)*seg_units * CR_UNIT / zones;
}

int cr_zone_write(struct cr_dev *d, u32 group, u64 byte, const void *data, u32 len, bool fail)
{
	u64 z = byte / d->zone, at = byte % d->zone;

	CR_ASSERT(z < CR_ZONES_MAX && at + len <= d->zone);
	if (at != d->wp[z]) {
		if (!d->hurt[z])
			cr_fail("a write at %llu of zone %llu, whose write pointer is at %llu",
				(unsigned long long)at, (unsigned long long)z,
				(unsigned long long)d->wp[z]);
		return -EIO;
	}
	if (fail) {
		d->hurt[z] = true;
		len = cr_random(d->rng, len / SECTOR + 1) * SECTOR;
	}
	if (len)
		cr_dev_hold(d, group, byte, data, len);
	d->wp[z] += len;
	return fail ? -EIO : 0;
}

/* Zones from @byte on; complete at once, and safe with the next flush. */
void cr_zone_reset(struct cr_dev *d, u64 byte, u64 len)
{
	u32 group = cr_dev_group(d);
	u64 end = byte + len;

	CR_ASSERT(byte % d->zone == 0 && len % d->zone == 0);
	for (; byte < end; byte += d->zone) {
		cr_dev_event(d);
		cr_dev_hold(d, group, byte, NULL, (u32)d->zone)->reset = true;
		d->wp[byte / d->zone] = 0;
		d->hurt[byte / d->zone] = false;
	}
	cr_dev_complete(d, group);
}

void cr_zone_crash(struct cr_dev *d, u32 mood)
{
	bool over[CR_ZONES_MAX] = { false };
	struct cr_held *h;

	for (h = d->held; h; h = h->next) {
		u64 z = h->byte / d->zone;

		if (over[z])
			continue;
		over[z] = cr_random(d->rng, mood == 0 ? 20 : mood == 1 ? 2 : 4) == 0;
		if (!over[z])
			cr_dev_apply(d, h, h->len);
		else if (!h->reset)
			cr_dev_apply(d, h, cr_random(d->rng, h->len / SECTOR + 1) * SECTOR);
	}
}
