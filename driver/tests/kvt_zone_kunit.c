// SPDX-License-Identifier: GPL-2.0
/*
 * Zoned members: addresses, layouts that are refused, and the log of superblocks.
 */
#include "kvt_kunit.h"
#include "../core/kvt_zone.h"

#define TZ_ZONE		(64u << 10)
#define TZ_SUPERS	(TZ_ZONE / KVT_SUPER_BYTES)

/* Two zones of superblocks. @bad_byte: reading this one fails, 0: none. */
struct tz {
	u8 zone[KVT_SUPER_ZONES][TZ_ZONE];
	u64 wp[KVT_SUPER_ZONES];
	u64 bad_byte;
	u32 nr_read;
	struct kvt_super super;
	struct kvt_super_log log;
	struct kvt_super_pick pick;
	u8 block[KVT_SUPER_BYTES];
};

static int tz_read(void *ctx, u64 byte, void *buf, u32 len)
{
	struct tz *z = ctx;

	z->nr_read++;
	if (z->bad_byte && byte == z->bad_byte)
		return -EIO;
	if (byte + len > sizeof(z->zone))
		return -ERANGE;
	memcpy(buf, &z->zone[0][0] + byte, len);
	return 0;
}

static struct tz *tz_new(struct kunit *test)
{
	struct tz *z = kunit_kzalloc(test, sizeof(*z), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, z);
	z->super = (struct kvt_super) {
		.geo.first_byte = 16 * TZ_ZONE,
		.geo.unit_bytes = 4096,
		.geo.seg_bytes = 4 * TZ_ZONE,
		.geo.nr_segs = 8,
		.geo.zone_bytes = TZ_ZONE,
		.geo.zone_stride = 2 * TZ_ZONE,
		.device_bytes = 48 * TZ_ZONE,
		.life_limit = 1,
		.seq_limit = 1,
		.state = KVT_STATE_DIRTY,
	};
	kvt_super_log_init(&z->log, TZ_ZONE);
	return z;
}

/* Append one, as a driver would. Returns where it went. */
static u64 tz_append(struct kunit *test, struct tz *z, int err)
{
	bool reset;
	u64 byte = kvt_super_log_next(&z->log, &reset);
	u32 zone = byte / TZ_ZONE;

	z->super.generation++;
	if (reset) {
		memset(z->zone[zone], 0, TZ_ZONE);
		z->wp[zone] = 0;
	}
	KUNIT_EXPECT_EQ(test, byte % TZ_ZONE, z->wp[zone]);
	if (!err) {
		kvt_super_encode(z->zone[zone] + z->wp[zone], &z->super);
		z->wp[zone] += KVT_SUPER_BYTES;
	}
	kvt_super_log_written(&z->log, byte, err);
	return byte;
}

static int tz_find(struct tz *z)
{
	int err = 0;
	u32 i;

	z->nr_read = 0;
	kvt_super_pick_start(&z->pick);
	for (i = 0; i < KVT_SUPER_ZONES && !err; i++)
		err = kvt_super_log_look(TZ_ZONE, i, z->wp[i], tz_read, z, z->block, &z->pick);
	return err ?: z->pick.err;
}

static void zone_addresses(struct kunit *test)
{
	u64 left;

	KUNIT_EXPECT_EQ(test, kvt_zone_phys(12345, 0, 0, &left), 12345u);
	KUNIT_EXPECT_EQ(test, left, U64_MAX);
	KUNIT_EXPECT_EQ(test, kvt_zone_phys(0, 12, 16, &left), 0u);
	KUNIT_EXPECT_EQ(test, left, 12u);
	KUNIT_EXPECT_EQ(test, kvt_zone_phys(11, 12, 16, &left), 11u);
	KUNIT_EXPECT_EQ(test, left, 1u);
	KUNIT_EXPECT_EQ(test, kvt_zone_phys(12, 12, 16, &left), 16u);
	KUNIT_EXPECT_EQ(test, kvt_zone_phys(41, 12, 16, &left), 53u);
	KUNIT_EXPECT_EQ(test, left, 7u);
}

/* The newest is found at every length of the log, and read for at little cost. */
static void zone_super_log(struct kunit *test)
{
	struct tz *z = tz_new(test);
	u32 i, turns = 0, zone = 0;
	u64 byte;

	KUNIT_EXPECT_EQ(test, tz_find(z), -EMEDIUMTYPE);
	for (i = 1; i <= 3 * TZ_SUPERS + 2; i++) {
		byte = tz_append(test, z, 0);
		turns += byte / TZ_ZONE != zone;
		zone = byte / TZ_ZONE;
		KUNIT_ASSERT_EQ(test, tz_find(z), 0);
		KUNIT_ASSERT_EQ(test, z->pick.super.generation, i);
		KUNIT_EXPECT_EQ(test, z->pick.super.geo.zone_bytes, TZ_ZONE);
		KUNIT_EXPECT_EQ(test, z->pick.super.geo.zone_stride, 2 * TZ_ZONE);
		KUNIT_EXPECT_TRUE(test, z->nr_read <= KVT_SUPER_ZONES);
		if (i % 5)
			continue;
		kvt_super_log_found(&z->log, TZ_ZONE, z->pick.slot, z->wp[z->pick.slot]);
	}
	KUNIT_EXPECT_EQ(test, turns, 3u);
}

/* After an error the other zone is taken, and never is the newest one lost. */
static void zone_super_errors(struct kunit *test)
{
	struct tz *z = tz_new(test);

	tz_append(test, z, -EIO);
	KUNIT_EXPECT_EQ(test, tz_append(test, z, 0), 0u);
	KUNIT_EXPECT_EQ(test, tz_append(test, z, 0), KVT_SUPER_BYTES);
	KUNIT_EXPECT_EQ(test, tz_append(test, z, -EIO), 2 * KVT_SUPER_BYTES);
	KUNIT_EXPECT_EQ(test, tz_append(test, z, -EIO), TZ_ZONE);
	KUNIT_EXPECT_EQ(test, tz_find(z), 0);
	KUNIT_EXPECT_EQ(test, z->pick.super.generation, 3u);
	KUNIT_EXPECT_EQ(test, tz_append(test, z, 0), TZ_ZONE);
	KUNIT_EXPECT_EQ(test, tz_find(z), 0);
	KUNIT_EXPECT_EQ(test, z->pick.super.generation, 6u);
	/* One that is torn ends its zone. */
	z->wp[1] += 512;
	KUNIT_EXPECT_EQ(test, tz_find(z), 0);
	kvt_super_log_found(&z->log, TZ_ZONE, z->pick.slot, z->wp[z->pick.slot]);
	KUNIT_EXPECT_EQ(test, tz_append(test, z, 0), 0u);
	KUNIT_EXPECT_EQ(test, tz_find(z), 0);
	KUNIT_EXPECT_EQ(test, z->pick.super.generation, 7u);
	z->bad_byte = TZ_ZONE;
	KUNIT_EXPECT_EQ(test, tz_find(z), -EIO);
}

/* What does not verify is stepped over, but not without end. */
static void zone_super_hostile(struct kunit *test)
{
	struct tz *z = tz_new(test);
	u32 i;

	for (i = 0; i < 6; i++)
		tz_append(test, z, 0);
	for (i = 3; i < 6; i++)
		z->zone[0][i * KVT_SUPER_BYTES + 100] ^= 1;
	KUNIT_EXPECT_EQ(test, tz_find(z), 0);
	KUNIT_EXPECT_EQ(test, z->pick.super.generation, 3u);
	KUNIT_EXPECT_EQ(test, z->pick.nr_torn, 3u);
	memset(z->zone[0], 0, TZ_ZONE);
	z->wp[0] = U64_MAX;
	KUNIT_EXPECT_EQ(test, tz_find(z), -EMEDIUMTYPE);
	KUNIT_EXPECT_EQ(test, z->nr_read, TZ_SUPERS);
}

static void zone_geometry(struct kunit *test)
{
	struct kvt_super *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL), *good;
	struct tz *z = tz_new(test);

	KUNIT_ASSERT_NOT_NULL(test, s);

	tz_append(test, z, 0);
	KUNIT_ASSERT_EQ(test, tz_find(z), 0);
	good = &z->pick.super;
	KUNIT_EXPECT_EQ(test, good->incompat, KVT_INCOMPAT_ZONED);
	*s = *good;
	KUNIT_EXPECT_EQ(test, kvt_super_check(s, s->device_bytes, true), 0);
#define EXPECT(change)									\
do {											\
	*s = *good;									\
	change;										\
	KUNIT_EXPECT_EQ(test, kvt_super_check(s, s->device_bytes, true), -ERANGE);	\
} while (0)
	EXPECT(s->geo.zone_bytes = 0);
	EXPECT(s->geo.zone_bytes = 4096);
	EXPECT(s->geo.zone_bytes += 512);
	EXPECT(s->geo.zone_bytes = 3 * TZ_ZONE; s->geo.zone_stride = 4 * TZ_ZONE);
	EXPECT(s->geo.zone_bytes = U64_MAX & ~4095ULL);
	EXPECT(s->geo.zone_stride = TZ_ZONE - 4096);
	EXPECT(s->geo.zone_stride = U64_MAX);
	EXPECT(s->geo.first_byte += 4096);
	EXPECT(s->geo.seg_bytes = 5 * TZ_ZONE / 2; s->geo.nr_segs = 2);
#undef EXPECT
}

static struct kunit_case zone_cases[] = {
	KUNIT_CASE(zone_addresses),
	KUNIT_CASE(zone_super_log),
	KUNIT_CASE(zone_super_errors),
	KUNIT_CASE(zone_super_hostile),
	KUNIT_CASE(zone_geometry),
	{ }
};

static struct kunit_suite zone_suite = {
	.name = "kvt_zone",
	.test_cases = zone_cases,
};

kunit_test_suite(zone_suite);
