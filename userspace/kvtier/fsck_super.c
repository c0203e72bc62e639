// SPDX-License-Identifier: GPL-2.0
/*
 * Superblocks of a member, held against each other; see fsck.h.
 *
 * Of the pair on other devices both are there from the start. On a zoned device the newest
 * one counts, the one before it may be in either zone, and the other zone may be empty. What
 * a crash has torn there ends within a block, where nobody looks: what is looked at, and does
 * not verify, was damaged.
 */
#include <string.h>
#include "fsck.h"

static enum media_zone zone_state(const struct fsck *f, u32 slot)
{
	return media_zone_worst(f->media, slot * f->media->zone_bytes, f->media->zone_bytes);
}

/* Also if there is nothing to go on with. */
static void check_zones(struct fsck *f)
{
	static const enum fsck_what what[] = {
		[MEDIA_ZONE_READONLY] = FSCK_SUPER_ZONE_READONLY,
		[MEDIA_ZONE_OFFLINE] = FSCK_SUPER_ZONE_OFFLINE,
	};
	u32 zone;

	for (zone = 0; zone < KVT_SUPER_ZONES; zone++) {
		if (zone_state(f, zone))
			fsck_report(f, what[zone_state(f, zone)], FSCK_FIX_NONE, zone,
				    FSCK_NOWHERE, 0);
	}
}

static bool differs(const struct kvt_super *a, const struct kvt_super *b)
{
	return memcmp(a->pool, b->pool, sizeof(a->pool)) ||
	       memcmp(a->geo.member, b->geo.member, sizeof(a->geo.member)) ||
	       a->geo.first_byte != b->geo.first_byte || a->geo.seg_bytes != b->geo.seg_bytes ||
	       a->geo.unit_bytes != b->geo.unit_bytes || a->geo.nr_segs != b->geo.nr_segs;
}

static void check_twin(struct fsck *f, u32 twin, enum fsck_fix fix)
{
	static const enum fsck_what what[] = {
		[MEDIA_SUPER_NONE] = FSCK_SUPER_MISSING,
		[MEDIA_SUPER_TORN] = FSCK_SUPER_DAMAGED,
		[MEDIA_SUPER_NEWER] = FSCK_SUPER_NEWER,
		[MEDIA_SUPER_IO] = FSCK_SUPER_UNREADABLE,
	};
	const struct media_supers *s = &f->supers;

	if (s->state[twin] == MEDIA_SUPER_GOOD) {
		if (differs(&s->pick.super, &s->super[twin]))
			fsck_report(f, FSCK_SUPER_DIFFERS, fix, twin, FSCK_NOWHERE,
				    s->super[twin].generation);
		return;
	}
	if (s->state[twin] == MEDIA_SUPER_NEWER || s->state[twin] == MEDIA_SUPER_IO)
		fix = FSCK_FIX_NONE;
	fsck_report(f, what[s->state[twin]], fix, twin, FSCK_NOWHERE, 0);
}

static void check_pair(struct fsck *f)
{
	u64 generation = f->supers.pick.super.generation;
	u32 slot = f->supers.pick.slot;
	bool placed = generation % KVT_SUPER_SLOTS == slot;

	if (!placed)
		fsck_report(f, FSCK_SUPER_MISPLACED, FSCK_FIX_NONE, slot, FSCK_NOWHERE,
			    generation);
	check_twin(f, !slot, placed ? FSCK_FIX_TWIN : FSCK_FIX_NONE);
}

static void check_log(struct fsck *f)
{
	u32 slot = f->supers.pick.slot, other = !slot;
	bool empty = f->supers.state[other] == MEDIA_SUPER_NONE &&
		     f->media->wp[other] < KVT_SUPER_BYTES;

	if (f->supers.nr_torn[slot])
		fsck_report(f, FSCK_SUPER_DAMAGED, FSCK_FIX_APPEND, slot, FSCK_NOWHERE, 0);
	/* What is the matter with such a zone has been said. */
	if (!empty && !zone_state(f, other))
		check_twin(f, other, FSCK_FIX_APPEND);
}

int fsck_read_supers(struct fsck *f)
{
	int err = media_read_supers(f->media, &f->supers);

	if (f->media->zone_bytes && err != -EMEDIUMTYPE)
		check_zones(f);
	if (err == -EUCLEAN || err == -ERANGE) {
		fsck_report(f, err == -ERANGE ? FSCK_LAYOUT : FSCK_SUPERS_DAMAGED, FSCK_FIX_NONE,
			    FSCK_NOWHERE, FSCK_NOWHERE, f->supers.pick.super.device_bytes);
		return 0;
	}
	if (err)
		return err;
	f->geo = f->supers.pick.super.geo;
	f->clean = f->supers.pick.super.state == KVT_STATE_CLEAN;
	if (f->media->zone_bytes)
		check_log(f);
	else
		check_pair(f);
	return 1;
}
