// SPDX-License-Identifier: GPL-2.0
/*
 * Chains of crashes; see crash.h.
 *
 *   crash POINTS [SEED]     that many crashes, none of which may show anything wrong
 *   crash --run SEED        one chain, as named when it failed
 *   crash --teeth POINTS    with each protection switched off in turn: must show
 *   crash --image FILE SEED OPS clean|crash   a device after so many operations
 *   crash --mount FILE whole|damaged          goes on with such a device
 */
#include "crash.h"
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHAIN		50u	/* crashes of one device */
#define OPS_MAX		500u

static const char *const count_names[CR_NR_COUNTS] = {
	[CR_N_OPS] = "operations",
	[CR_N_DURABLE] = "blocks reported durable",
	[CR_N_FOUND] = "blocks recovered",
	[CR_N_MUST] = "of them had to be",
	[CR_N_CARRIED] = "blocks carried",
	[CR_N_ENDS] = "segments ended",
	[CR_N_HOMED] = "definitions that were elsewhere",
	[CR_N_TRIMS] = "segments discarded",
	[CR_N_FOOTERS] = "footers",
	[CR_N_DOOMED] = "segments doomed",
	[CR_N_CLEAN] = "clean shutdowns",
	[CR_N_UNSEALED] = "unsealed segments recovered",
	[CR_N_BAD] = "torn payloads found",
	[CR_N_ERRORS] = "write errors",
	[CR_N_STUCK] = "members with no segment left",
	[CR_N_SOFT] = "crashes without loss of power",
	[CR_N_COPIES] = "copies kept",
	[CR_N_SHED] = "copies given up",
	[CR_N_REUSED] = "demotions to a copy",
	[CR_N_RESETS] = "segments' zones reset",
	[CR_N_TURNS] = "superblocks' zones reset",
	[CR_N_FILLED] = "zones filled up with zeroes",
	[CR_N_HOLES] = "holes filled with zeroes",
	[CR_N_HOPELESS] = "footers that had no room left",
	[CR_N_SYNCED] = "blocks that fsync vouched for",
	[CR_N_LINKED] = "recovered under their parents",
	[CR_N_ORPHANS] = "recovered, with parents gone",
	[CR_N_CYCLES] = "cycles cut",
	[CR_N_DEFS] = "definitions durable",
	[CR_N_QUOTA] = "evictions for a quota",
	[CR_N_OVER] = "recovered beyond their quota",
};

static const char *const break_names[KVT_BREAK_NR] = {
	[KVT_BREAK_PAYLOAD_SUM] = "payload_checksum",
	[KVT_BREAK_FOOTER_FLUSH] = "flush_before_footer",
	[KVT_BREAK_LIFE] = "life_check",
	[KVT_BREAK_FOOTER_LIFE] = "footer_life_check",
	[KVT_BREAK_REUSE] = "reuse_only_when_durable",
	[KVT_BREAK_CARRY_KILLS] = "kills_are_carried",
	[KVT_BREAK_SUPER_FLUSH] = "flush_before_superblock",
	[KVT_BREAK_PREFIX] = "durable_in_order",
	[KVT_BREAK_SUPER_ZONE] = "superblock_zones_in_turn",
	[KVT_BREAK_SYNC] = "fsync_waits_for_batches",
	[KVT_BREAK_FENCE] = "fence_waits_for_kills",
	[KVT_BREAK_CYCLES] = "cycles_are_cut",
	[KVT_BREAK_NS_HOME] = "definitions_count_early",
	[KVT_BREAK_NS_FIRST] = "first_definition_is_forgotten",
	[KVT_BREAK_NS_NOW] = "namespaces_are_carried_as_they_are",
};

static u64 counts[CR_NR_COUNTS];
static u64 seed_now;
static u32 point_now;
static bool quiet;
static jmp_buf crash;

void cr_fail(const char *fmt, ...)
{
	va_list args;

	if (!quiet) {
		printf("# ");
		va_start(args, fmt);
		vprintf(fmt, args);
		va_end(args);
		printf("\n# crash %u of the chain; again: out/host/crash --run %llu\n", point_now,
		       (unsigned long long)seed_now);
		fflush(stdout);
	}
	_exit(1);
}

static void forget(struct cr_store *s)
{
	free(s->wmem);
	s->wmem = NULL;
}

static void remember(struct cr_store *s, struct cr_dev *dev, struct cr_oracle *ora,
		     struct cr_rng *rng)
{
	forget(s);
	memset(s, 0, sizeof(*s));
	s->dev = dev;
	s->ora = ora;
	s->rng = rng;
	s->count = counts;
}

/* From one crash to the next. */
static void live(struct cr_store *s, u32 ops)
{
	u32 i;

	cr_mount(s);
	if (cr_random(s->rng, 4) == 0)
		s->write_errors = cr_random(s->rng, 2) ? 150 : 25;
	if (cr_random(s->rng, 2)) {
		cr_progress(s, false);
		cr_refill(s);
	}
	for (i = 0; i < ops; i++) {
		cr_op(s);
		if (i % 16 == 0)
			cr_check(s);
	}
	cr_check(s);
	if (cr_random(s->rng, 4) == 0)
		cr_shutdown(s);
}

/* One device's life. Its seed decides on everything. */
static u32 chain(u64 seed, u32 points)
{
	static struct cr_store s;
	static struct cr_dev dev;
	static struct cr_oracle ora;
	static struct cr_rng rng;
	u32 segs, units;
	u64 zone;

	seed_now = seed;
	rng.state = seed;
	memset(&ora, 0, sizeof(ora));
	segs = 8 + cr_random(&rng, CR_SEGS_MAX - 7);
	units = 24 + cr_random(&rng, CR_SEG_UNITS_MAX - 23);
	/* Every third one is zoned. */
	zone = seed % 3 ? 0 : cr_zone_choose(&units, &rng);
	cr_dev_init(&dev, cr_first_byte(zone) + (u64)segs * units * CR_UNIT, &rng);
	dev.zone = zone;
	dev.crash = &crash;
	remember(&s, &dev, &ora, &rng);
	cr_format(&s, segs, units);
	for (point_now = 0; point_now < points; point_now++) {
		remember(&s, &dev, &ora, &rng);
		/* Often at once, in what the restart itself writes. */
		dev.left = 1 + cr_random(&rng, cr_random(&rng, 4) ? 900 : 12);
		if (!setjmp(crash))
			live(&s, 1 + cr_random(&rng, OPS_MAX));
		counts[CR_N_SOFT] += !cr_dev_crash(&dev);
	}
	remember(&s, &dev, &ora, &rng);
	cr_mount(&s);
	forget(&s);
	cr_dev_fini(&dev);
	return points;
}

static void run(u64 seed, u32 points)
{
	u32 done = 0;

	while (done < points)
		done += chain(seed++, min(points - done, CHAIN));
}

/* True: something wrong was seen. */
static bool shows(enum kvt_env_break what, u32 points)
{
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		kvt_env_break = what;
		quiet = true;
		alarm(120);
		run(1, points);
		_exit(0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 1;
}

static int teeth(u32 points)
{
	int failed = 0;
	u32 i;

	for (i = KVT_BREAK_NONE + 1; i < KVT_BREAK_NR; i++) {
		bool seen = shows(i, points);

		printf("%sok crash/notices/%s\n", seen ? "" : "not ", break_names[i]);
		fflush(stdout);
		failed |= !seen;
	}
	/* And it is not the harness that fails. */
	if (shows(KVT_BREAK_NONE, points)) {
		printf("not ok crash/notices/nothing\n");
		failed = 1;
	} else {
		printf("ok crash/notices/nothing\n");
	}
	return failed;
}

int main(int argc, char **argv)
{
	u64 seed = 1;
	u32 i;

	if (argc == 3 && !strcmp(argv[1], "--run")) {
		chain(strtoull(argv[2], NULL, 0), CHAIN);
		printf("ok crash/chain\n");
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "--teeth"))
		return teeth((u32)strtoul(argv[2], NULL, 0));
	if (argc == 6 && !strcmp(argv[1], "--image"))
		return cr_image(argv + 2);
	if (argc == 4 && !strcmp(argv[1], "--mount"))
		return cr_image_mount(argv + 2);
	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: %s POINTS [SEED] | --run SEED | --teeth POINTS | --image FILE SEED OPS clean|crash | --mount FILE whole|damaged\n",
			argv[0]);
		return 2;
	}
	if (argc == 3)
		seed = strtoull(argv[2], NULL, 0);
	run(seed, (u32)strtoul(argv[1], NULL, 0));
	for (i = 0; i < CR_NR_COUNTS; i++)
		printf("# %-30s %llu\n", count_names[i], (unsigned long long)counts[i]);
	printf("ok crash/points\n");
	return 0;
}
