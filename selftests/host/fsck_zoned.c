// SPDX-License-Identifier: GPL-2.0
/*
 * Repair of zoned members, on the simulated device of the crash test:
 *
 *   fsck_zoned SEEDS [FIRST]
 *
 * A member is made, and damaged in one way or another; then fsck repairs it. That is
 * interrupted by a loss of power after its first write, its second, and so on until it comes to
 * its end. After each the member is one of three things: one that assembly refuses, as it did
 * before; one that it takes; or one that another run of fsck makes such a one. What it takes has
 * all that was there before the damage, but for what was damaged, and nothing that was
 * dropped: the oracle knows.
 *
 * A write that is not at the write pointer fails the test, by the device.
 */
#include "crash.h"
#include "fsck.h"
#include <stdarg.h>
#include <unistd.h>

#define OPS	300u
#define ROUNDS	6u
#define NEVER	(~0u)

/* What is done to a member, and what is to become of it. */
struct damage {
	const char *name;
	bool (*make)(void);
	bool clean;
	u32 nr_lost;		/* blocks, at most */
	bool payload;		/* fsck is to look for it */
	bool taken;		/* by assembly, as it is */
	bool cached;		/* the zone without the newest superblock was not flushed yet */
};

/* A device at some moment. */
struct state {
	u8 *bytes;
	u64 wp[CR_ZONES_MAX];
};

static struct cr_store store;
static struct cr_dev *dev;
static struct cr_rng rng;
static u64 counts[CR_NR_COUNTS];
static u64 seed_now;
static struct state whole, damaged;
static struct cr_oracle before;		/* what was promised when the member was whole */
static u32 versions[CR_NAMES];		/* what was found of it then */
static u64 problems[FSCK_NR];		/* with the damage, of each kind */
static u8 bad_zones[CR_ZONES_MAX];
static u64 bad_byte;			/* cannot be read; 0: none */
static struct media medium;
static u32 power;			/* writes until it fails */
static u64 nr_cuts, nr_repairs;
static jmp_buf refusal;
static bool may_refuse;

void cr_fail(const char *fmt, ...)
{
	va_list args;

	/* What the driver says, and asks for fsck; and what it finds when a block is read. */
	if (may_refuse && (strstr(fmt, "looks damaged") || strstr(fmt, "is refused") ||
			   strstr(fmt, "do not verify")))
		longjmp(refusal, 1);
	printf("# seed %llu: ", (unsigned long long)seed_now);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
	_exit(1);
}

/* --- The device as a medium ------------------------------------------------ */

static bool powerless(void)
{
	if (power && power != NEVER)
		power--;
	return !power;
}

static void look_at_wp(void)
{
	memcpy(medium.wp, dev->wp, sizeof(medium.wp));
}

static int dev_read(void *ctx, u64 byte, void *buf, u32 len)
{
	(void)ctx;
	if (bad_byte && bad_byte - byte < len)
		return -EIO;
	return cr_dev_read(dev, byte, buf, len);
}

static int dev_write(void *ctx, u64 byte, const void *buf, u32 len)
{
	const u8 *from = buf;
	u32 group, n;

	(void)ctx;
	for (; len; len -= n, byte += n, from += n) {
		if (powerless())
			return -EIO;
		group = cr_dev_group(dev);
		n = (u32)min((u64)len, dev->zone - byte % dev->zone);
		CR_ASSERT(!bad_zones[byte / dev->zone]);
		CR_ASSERT(!cr_dev_write(dev, group, byte, from, n, false));
		cr_dev_complete(dev, group);
		look_at_wp();
	}
	return 0;
}

static int dev_reset(void *ctx, u64 byte)
{
	(void)ctx;
	if (powerless())
		return -EIO;
	CR_ASSERT(!bad_zones[byte / dev->zone]);
	cr_zone_reset(dev, byte, dev->zone);
	look_at_wp();
	return 0;
}

static int dev_flush(void *ctx)
{
	(void)ctx;
	if (powerless())
		return -EIO;
	cr_dev_flush_end(dev, cr_dev_flush_start(dev));
	return 0;
}

static void make_medium(void)
{
	medium = (struct media) {
		.read = dev_read,
		.write = dev_write,
		.flush = dev_flush,
		.reset = dev_reset,
		.bytes = dev->bytes,
		.zone_bytes = dev->zone,
		.zone_stride = dev->zone,
		.zones = bad_zones,
	};
	look_at_wp();
}

static void save(struct state *s)
{
	s->bytes = realloc(s->bytes, dev->bytes);
	CR_ASSERT(s->bytes);
	memcpy(s->bytes, dev->seen, dev->bytes);
	memcpy(s->wp, dev->wp, sizeof(s->wp));
}

/* All of it is safe. */
static void load(const struct state *s)
{
	cr_dev_crash(dev);
	cr_dev_flush_end(dev, cr_dev_flush_start(dev));
	memcpy(dev->seen, s->bytes, dev->bytes);
	memcpy(dev->safe, s->bytes, dev->bytes);
	memcpy(dev->wp, s->wp, sizeof(s->wp));
	memcpy(dev->safe_wp, s->wp, sizeof(s->wp));
	memset(dev->hurt, 0, sizeof(dev->hurt));
	look_at_wp();
}

/* As load(), but what was written to that zone is in the device's cache only. */
static void load_cached(const struct state *s, u64 zone)
{
	u64 byte = zone * dev->zone, at;

	load(s);
	memset(dev->seen + byte, 0, dev->zone);
	memset(dev->safe + byte, 0, dev->zone);
	dev->wp[zone] = 0;
	dev->safe_wp[zone] = 0;
	for (at = 0; at < s->wp[zone]; at += CR_UNIT)
		CR_ASSERT(!dev_write(NULL, byte + at, s->bytes + byte + at, CR_UNIT));
}

/* --- Assembly -------------------------------------------------------------- */

static void restart(void)
{
	free(store.wmem);
	memset(&store, 0, sizeof(store));
	store.dev = dev;
	store.ora = cr_image_oracle();
	store.rng = &rng;
	store.count = counts;
}

static u32 found(u32 name)
{
	return store.by_name[name] ? store.block[store.by_name[name]].version : 0;
}

static void compare(u32 lost)
{
	u32 name, nr = 0;

	for (name = 0; name < CR_NAMES; name++) {
		if (found(name) == versions[name])
			continue;
		if (found(name))
			cr_fail("name %u: version %u was there, now it is %u", name,
				versions[name], found(name));
		nr++;
	}
	if (nr > lost)
		cr_fail("%u blocks are lost, of which %u may be", nr, lost);
}

/* Up to @lost of what was there may be missing. False: it is refused. */
static bool assemble(u32 lost)
{
	u32 name;

	*cr_image_oracle() = before;
	for (name = 0; lost && name < CR_NAMES; name++)
		cr_image_oracle()->name[name].must = 0;
	restart();
	if (may_refuse && setjmp(refusal))
		return false;
	cr_mount(&store);
	compare(lost);
	return true;
}

/* And it goes on with it. */
static void live(void)
{
	u32 i;

	for (i = 0; i < OPS / 3; i++) {
		cr_op(&store);
		if (i % 16 == 0)
			cr_check(&store);
	}
	cr_shutdown(&store);
	restart();
	cr_mount(&store);
	restart();
}

/* --- fsck ------------------------------------------------------------------ */

static int check(struct fsck *f, bool payload)
{
	memset(f, 0, sizeof(*f));
	f->media = &medium;
	f->payload = payload;
	return fsck_run(f);
}

/* As the command does it. 0 or -errno; what is left is in @f. */
static int repair(struct fsck *f, bool payload)
{
	int ret = check(f, payload);
	u64 fixed = 1;
	u32 round;

	for (round = 0; !ret && f->fixable && fixed; round++) {
		CR_ASSERT(round < ROUNDS);
		ret = fsck_repair(f, &fixed);
		nr_repairs += fixed;
		CR_ASSERT(ret || fixed || f->refused);
		if (ret || !fixed)
			break;
		fsck_fini(f);
		ret = check(f, payload);
	}
	return ret;
}

static void repair_all(const struct damage *d)
{
	struct fsck f;

	power = NEVER;
	if (repair(&f, d->payload) || f.errors)
		cr_fail("%s: %llu errors are left, refused %d", d->name,
			(unsigned long long)f.errors, f.refused);
	fsck_fini(&f);
}

/* --- Damage ---------------------------------------------------------------- */

static struct fsck known;	/* the member when it was whole */

static void flip(u64 byte)
{
	dev->seen[byte] ^= 0x10;
}

static bool is_sealed(u32 seg)
{
	return known.segs[seg].state == KVT_RC_SEALED && !known.segs[seg].dead;
}

/* Some sealed segment but that one, or FSCK_NOWHERE. */
static u32 sealed_segment(u32 but)
{
	u32 first = cr_random(&rng, known.geo.nr_segs), i, seg;

	for (i = 0; i < known.geo.nr_segs; i++) {
		seg = (first + i) % known.geo.nr_segs;
		if (is_sealed(seg) && seg != but)
			return seg;
	}
	return FSCK_NOWHERE;
}

static void damage_header_of(u32 seg)
{
	flip(kvt_geo_byte(&known.geo, seg, 0) + 300);
}

static bool damage_header(void)
{
	u32 seg = sealed_segment(FSCK_NOWHERE);

	if (seg != FSCK_NOWHERE)
		damage_header_of(seg);
	return seg != FSCK_NOWHERE;
}

/* Not even which life it had is left. */
static bool damage_headers(void)
{
	u32 seg, nr = 0;

	for (seg = 0; seg < known.geo.nr_segs; seg++) {
		if (!is_sealed(seg) || cr_random(&rng, 4) == 0)
			continue;
		memset(dev->seen + kvt_geo_byte(&known.geo, seg, 0), 0, CR_UNIT);
		nr++;
	}
	return nr;
}

/* A byte of some block's in a segment with a footer, or 0. */
static u64 payload_byte(void)
{
	const struct fsck_block *b;
	u32 tries;

	for (tries = 0; known.nr_blocks && tries < 50; tries++) {
		b = &known.blocks[cr_random(&rng, (u32)known.nr_blocks)];
		if (is_sealed(b->unit / known.geo.seg_units))
			return kvt_geo_byte(&known.geo, 0, b->unit) + 20;
	}
	return 0;
}

static bool damage_payload(void)
{
	u64 byte = payload_byte();

	if (byte)
		flip(byte);
	return byte;
}

/* The device cannot; assembly does not try. */
static bool damage_read(void)
{
	bad_byte = payload_byte();
	return bad_byte;
}

static bool damage_payload_and_header(void)
{
	return damage_payload() && damage_header();
}

/* The newest there is, with an older one in front of it that is as good. */
static bool damage_super(void)
{
	u64 zone = known.supers.pick.slot, at = dev->wp[zone] & ~(u64)(CR_UNIT - 1);
	struct media_supers s;

	if (at < 2 * CR_UNIT)
		return false;
	flip(zone * dev->zone + at - CR_UNIT + 60);
	/* Whether what is left is enough depends on what was written since. */
	return !media_read_supers(&medium, &s) &&
	       s.pick.super.life_limit > known.max_life &&
	       s.pick.super.seq_limit > known.max_seq && s.pick.super.ns_limit > known.max_ns;
}

/* The zones have been changed just now; what came next was damaged. */
static bool damage_super_cached(void)
{
	struct kvt_super s = known.supers.pick.super;
	u64 zone = !known.supers.pick.slot;
	u8 *at = dev->seen + zone * dev->zone;

	memset(at, 0, dev->zone);
	s.generation++;
	kvt_super_encode(at, &s);
	s.generation++;
	kvt_super_encode(at + CR_UNIT, &s);
	dev->wp[zone] = 2 * CR_UNIT;
	look_at_wp();
	flip(zone * dev->zone + CR_UNIT + 60);
	return true;
}

/* Nothing in the other zone verifies; there is at least one thing in it. */
static bool damage_other_supers(void)
{
	u64 zone = !known.supers.pick.slot, at;

	if (dev->wp[zone] < CR_UNIT) {
		kvt_super_encode(dev->seen + zone * dev->zone, &known.supers.pick.super);
		dev->wp[zone] = CR_UNIT;
		look_at_wp();
	}
	for (at = dev->wp[zone] & ~(u64)(CR_UNIT - 1); at; at -= CR_UNIT)
		flip(zone * dev->zone + at - CR_UNIT + 60);
	return true;
}

static bool damage_limits(void)
{
	struct kvt_super s = known.supers.pick.super;
	u64 at = dev->wp[known.supers.pick.slot] - CR_UNIT;

	if (dev->wp[known.supers.pick.slot] % CR_UNIT || !known.max_life)
		return false;
	s.life_limit = known.max_life;
	kvt_super_encode(dev->seen + known.supers.pick.slot * dev->zone + at, &s);
	return true;
}

/* And there is no room behind the newest one. */
static bool damage_limits_full(void)
{
	u64 slot = known.supers.pick.slot, at = dev->wp[slot];
	u8 *zone = dev->seen + slot * dev->zone;

	if (!damage_limits())
		return false;
	for (; at < dev->zone; at += CR_UNIT)
		memcpy(zone + at, zone + at - CR_UNIT, CR_UNIT);
	dev->wp[slot] = dev->zone;
	look_at_wp();
	return true;
}

static const struct damage damages[] = {
	{ "header", damage_header, .clean = true },
	{ "header_after_a_crash", damage_header, .clean = false },
	{ "headers", damage_headers, .clean = true },
	{ "payload", damage_payload, .clean = true, .payload = true, .nr_lost = 1 },
	{ "payload_after_a_crash", damage_payload, .payload = true, .nr_lost = 1 },
	{ "payload_unreadable", damage_read, .clean = true, .payload = true, .nr_lost = 1,
	  .taken = true },
	{ "payload_and_header", damage_payload_and_header, .clean = true, .payload = true,
	  .nr_lost = 1 },
	{ "superblock", damage_super, .clean = true, .taken = true },
	{ "superblock_after_a_crash", damage_super, .taken = true },
	{ "superblock_in_the_cache", damage_super_cached, .clean = true, .taken = true,
	  .cached = true },
	{ "other_superblocks", damage_other_supers, .clean = true, .taken = true },
	{ "limits", damage_limits, .clean = true },
	{ "limits_without_room", damage_limits_full, .clean = true },
};

/* --- Runs ------------------------------------------------------------------ */

/* A member and what is known of it. False: not with this seed. */
static bool make_member(u64 seed, bool clean)
{
	u32 name;

	seed_now = seed;
	dev = cr_image_make(seed, OPS, clean, true);
	if (!dev)
		return false;
	rng.state = seed ^ 0x5eed;
	before = *cr_image_oracle();
	memset(bad_zones, 0, sizeof(bad_zones));
	bad_byte = 0;
	make_medium();
	save(&whole);
	load(&whole);
	power = NEVER;
	fsck_fini(&known);
	if (check(&known, true) || known.errors)
		cr_fail("%llu errors before anything is damaged",
			(unsigned long long)known.errors);
	restart();
	cr_mount(&store);
	for (name = 0; name < CR_NAMES; name++)
		versions[name] = found(name);
	return true;
}

/* False: there was nothing of the kind. */
static bool make_damaged(const struct damage *d, u64 seed)
{
	struct fsck f;

	if (!make_member(seed, d->clean) || !d->make())
		return false;
	save(&damaged);
	may_refuse = true;
	if (assemble(d->nr_lost) != d->taken)
		cr_fail("%s: %s as it is", d->name, d->taken ? "not taken" : "taken");
	may_refuse = false;
	CR_ASSERT(!check(&f, d->payload));
	memcpy(problems, f.found, sizeof(problems));
	fsck_fini(&f);
	return true;
}

/*
 * Nothing is wrong but what was, and perhaps a segment that was just begun. One that was moved
 * has one batch only, which says nothing.
 */
static void no_new_problems(const struct damage *d)
{
	struct fsck f;
	u32 i;

	power = NEVER;
	CR_ASSERT(!check(&f, d->payload));
	for (i = 0; i < FSCK_NR; i++) {
		if (i != FSCK_SEG_BATCHES &&
		    f.found[i] > problems[i] + (i == FSCK_SEG_UNSEALED))
			cr_fail("%s: new problems: %s", d->name, fsck_name(i));
	}
	fsck_fini(&f);
}

/* Power was lost: assembly takes it or not, and after fsck it does. */
static void interrupted(const struct damage *d)
{
	nr_cuts++;
	cr_dev_crash(dev);
	look_at_wp();
	no_new_problems(d);
	may_refuse = !d->taken;
	assemble(d->nr_lost);
	may_refuse = false;
	repair_all(d);
	assemble(d->nr_lost);
}

static void run_one(const struct damage *d)
{
	struct fsck f;
	bool done;
	u32 cut;
	int ret;

	for (cut = 1, done = false; !done; cut++) {
		power = NEVER;
		if (d->cached)
			load_cached(&damaged, !known.supers.pick.slot);
		else
			load(&damaged);
		power = cut;
		ret = repair(&f, d->payload);
		done = power;
		CR_ASSERT(!done || (!ret && !f.errors && !f.refused));
		fsck_fini(&f);
		if (!done)
			interrupted(d);
	}
	/* Nothing hangs on what was not flushed. */
	cr_dev_crash(dev);
	look_at_wp();
	assemble(d->nr_lost);
	live();
}

static void run(const struct damage *d, u64 first, u64 nr)
{
	u64 seed, done = 0;

	for (seed = first; seed < first + nr; seed++) {
		if (!make_damaged(d, seed))
			continue;
		run_one(d);
		done++;
	}
	if (!done)
		cr_fail("%s: with none of the seeds", d->name);
	printf("ok fsck_zoned/%s\n", d->name);
	fflush(stdout);
}

/* --- What is refused ------------------------------------------------------- */

static void mark(u64 byte, u64 len, enum media_zone state)
{
	u64 end = byte + len;

	for (; byte < end; byte += dev->zone)
		bad_zones[byte / dev->zone] = (u8)state;
}

static void mark_segment(u32 seg, enum media_zone state)
{
	mark(kvt_geo_byte(&known.geo, seg, 0), known.geo.seg_bytes, state);
}

/* Wherever the next superblock goes. */
static void no_super_zone(void)
{
	damage_other_supers();
	mark(!known.supers.pick.slot * dev->zone, dev->zone, MEDIA_ZONE_READONLY);
	/* Nor behind the newest. */
	damage_header();
	mark(known.supers.pick.slot * dev->zone, dev->zone, MEDIA_ZONE_READONLY);
	medium.wp[known.supers.pick.slot] = dev->wp[known.supers.pick.slot];
}

static void no_free_segment(void)
{
	u32 seg;

	damage_header();
	for (seg = 0; seg < known.geo.nr_segs; seg++) {
		if (!is_sealed(seg))
			mark_segment(seg, MEDIA_ZONE_READONLY);
	}
}

static void offline_segment(void)
{
	u32 seg = sealed_segment(FSCK_NOWHERE);

	damage_header_of(seg);
	mark_segment(sealed_segment(seg), MEDIA_ZONE_OFFLINE);
}

/* Nobody knows whether it is free; if none is, another one cannot be read at all. */
static void unreadable_footer(void)
{
	u32 damaged_seg = sealed_segment(FSCK_NOWHERE), seg;

	damage_header_of(damaged_seg);
	for (seg = 0; seg < known.geo.nr_segs; seg++) {
		if (known.segs[seg].state == KVT_RC_FREE)
			bad_byte = kvt_geo_byte(&known.geo, seg, known.geo.seg_units - 1);
	}
	if (!bad_byte)
		bad_byte = kvt_geo_byte(&known.geo, sealed_segment(damaged_seg), 0);
}

/* One whose summary is damaged as well holds kills that nobody knows any more. */
static void lost_summary(void)
{
	u32 seg = sealed_segment(FSCK_NOWHERE);

	damage_header_of(sealed_segment(seg));
	memset(dev->seen + kvt_geo_byte(&known.geo, seg, 0), 0, CR_UNIT);
	memset(dev->seen + kvt_geo_byte(&known.geo, seg, known.geo.seg_units - 2), 1, CR_UNIT);
}

/* No segment is written, and what is wrong stays so. */
static void run_refused(const char *name, void (*make)(void), enum fsck_refused why, u64 first,
			u64 nr)
{
	struct fsck f;
	u64 seed, done = 0;

	for (seed = first; seed < first + nr; seed++) {
		if (!make_member(seed, true) ||
		    sealed_segment(sealed_segment(FSCK_NOWHERE)) == FSCK_NOWHERE)
			continue;
		make();
		save(&damaged);
		CR_ASSERT(!repair(&f, false));
		if (f.refused != why || !f.errors)
			cr_fail("%s: refused %d, %llu errors", name, f.refused,
				(unsigned long long)f.errors);
		CR_ASSERT(!memcmp(dev->seen + known.geo.first_byte,
				  damaged.bytes + known.geo.first_byte,
				  dev->bytes - known.geo.first_byte));
		CR_ASSERT(fsck_refused_text(f.refused)[0]);
		fsck_fini(&f);
		done++;
	}
	CR_ASSERT(done);
	printf("ok fsck_zoned/refuses/%s\n", name);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	u64 nr = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;
	u64 first = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	u32 i;

	if (argc < 2 || argc > 3 || !nr) {
		fprintf(stderr, "usage: %s SEEDS [FIRST]\n", argv[0]);
		return 2;
	}
	for (i = 0; i < ARRAY_SIZE(damages); i++)
		run(&damages[i], first, nr);
	run_refused("no_super_zone", no_super_zone, FSCK_REFUSED_SUPER_ZONE, first, nr);
	run_refused("no_free_segment", no_free_segment, FSCK_REFUSED_SEGMENT, first, nr);
	run_refused("offline_segment", offline_segment, FSCK_REFUSED_BLIND, first, nr);
	run_refused("unreadable_footer", unreadable_footer, FSCK_REFUSED_BLIND, first, nr);
	run_refused("lost_summary", lost_summary, FSCK_REFUSED_BLIND, first, nr);
	printf("# %llu repairs, %llu losses of power\n", (unsigned long long)nr_repairs,
	       (unsigned long long)nr_cuts);
	fsck_fini(&known);
	return 0;
}
