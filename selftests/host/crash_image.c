// SPDX-License-Identifier: GPL-2.0
/*
 * Images of the crash test's device, for tests of what reads and repairs members, and
 * the way back: is such an image, repaired perhaps, still one that recovery takes, and
 * does nothing come back that was dropped? See crash.h.
 *
 * The oracle goes along in a file of its own, IMAGE.oracle.
 */
#include "crash.h"

#define TRIES	20u

static struct cr_store store;
static struct cr_dev dev;
static struct cr_oracle ora;
static struct cr_rng rng;
static u64 counts[CR_NR_COUNTS];

static void restart(void)
{
	free(store.wmem);
	memset(&store, 0, sizeof(store));
	store.dev = &dev;
	store.ora = &ora;
	store.rng = &rng;
	store.count = counts;
}

static void operations(u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		cr_op(&store);
		if (i % 16 == 0)
			cr_check(&store);
	}
}

/**
 * cr_image_make() - a member after so many operations, in a device of its own
 * @seed:  decides on everything
 * @ops:   operations between two stops
 * @clean: it is shut down; else it crashes
 * @zoned: so is the device
 * Return: the device, which stays valid until the next call, or NULL: the log was too
 * full to be shut down with this seed.
 */
struct cr_dev *cr_image_make(u64 seed, u32 ops, bool clean, bool zoned)
{
	u32 segs, units, i;
	bool done = false;
	u64 zone;

	if (dev.seen)
		cr_dev_fini(&dev);
	memset(&ora, 0, sizeof(ora));
	rng.state = seed;
	segs = 8 + cr_random(&rng, CR_SEGS_MAX - 7);
	units = 24 + cr_random(&rng, CR_SEG_UNITS_MAX - 23);
	zone = zoned ? cr_zone_choose(&units, &rng) : 0;
	cr_dev_init(&dev, cr_first_byte(zone) + (u64)segs * units * CR_UNIT, &rng);
	dev.zone = zone;
	restart();
	cr_format(&store, segs, units);
	/* What came before has left its traces. */
	for (i = cr_random(&rng, 4); i; i--) {
		restart();
		cr_mount(&store);
		operations(ops);
		cr_dev_crash(&dev);
	}
	restart();
	cr_mount(&store);
	operations(ops);
	for (i = 0; clean && !done && i < TRIES; i++) {
		done = cr_shutdown(&store);
		if (!done)
			operations(20);
	}
	if (!clean)
		cr_dev_crash(&dev);
	return done || !clean ? &dev : NULL;
}

/* What was promised of the device that was made last. */
struct cr_oracle *cr_image_oracle(void)
{
	return &ora;
}

static void check_file(const char *path, const char *tail, FILE *f, size_t n, size_t len)
{
	if (fclose(f) || n != len)
		cr_fail("%s%s: %zu bytes of %zu", path, tail, n, len);
}

static FILE *open_file(const char *path, const char *tail, const char *mode)
{
	char name[4096];
	FILE *f;

	snprintf(name, sizeof(name), "%s%s", path, tail);
	f = fopen(name, mode);
	if (!f)
		cr_fail("%s cannot be opened", name);
	return f;
}

static void save(const char *path, const char *tail, const void *data, size_t len)
{
	FILE *f = open_file(path, tail, "w");

	check_file(path, tail, f, fwrite(data, 1, len, f), len);
}

static void load(const char *path, const char *tail, void *data, size_t len)
{
	FILE *f = open_file(path, tail, "r");

	check_file(path, tail, f, fread(data, 1, len, f), len);
}

/* --image FILE SEED OPS clean|crash. 3: not with this seed. */
int cr_image(char **argv)
{
	struct cr_dev *d = cr_image_make(strtoull(argv[1], NULL, 0),
					 (u32)strtoul(argv[2], NULL, 0), !strcmp(argv[3], "clean"),
					 false);

	if (!d)
		return 3;
	save(argv[0], "", d->seen, d->bytes);
	save(argv[0], ".oracle", &ora, sizeof(ora));
	return 0;
}

/* What was damaged may be lost, but nothing else is to be excused. */
static void excuse_losses(void)
{
	u32 i;

	for (i = 0; i < CR_NAMES; i++)
		ora.name[i].must = 0;
	for (i = 0; i < CR_SLOTS; i++) {
		ora.ns[i].must = false;
		ora.ns[i].def_must = 0;
	}
}

/* --mount FILE damaged|whole */
int cr_image_mount(char **argv)
{
	u64 bytes;
	FILE *f = open_file(argv[0], "", "r");

	if (fseek(f, 0, SEEK_END))
		cr_fail("%s has no length", argv[0]);
	bytes = (u64)ftell(f);
	fclose(f);
	rng.state = bytes;
	cr_dev_init(&dev, bytes, &rng);
	load(argv[0], "", dev.seen, bytes);
	memcpy(dev.safe, dev.seen, bytes);
	load(argv[0], ".oracle", &ora, sizeof(ora));
	if (!strcmp(argv[1], "damaged"))
		excuse_losses();
	restart();
	cr_mount(&store);
	operations(300);
	cr_shutdown(&store);
	restart();
	cr_mount(&store);
	restart();
	cr_dev_fini(&dev);
	return 0;
}
