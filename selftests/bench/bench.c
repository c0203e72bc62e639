// SPDX-License-Identifier: GPL-2.0
/*
 * Runs every work at every size: see --help. Sizes share one boot, one pool and
 * one set of keys, so that the figures can be put side by side.
 */
#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bench.h"

#define OUT_BYTES	(1u << 20)
#define SETTLE_S	3	/* for what was started just before us */

static const size_t sizes[] = { 64 << 10, 1 << 20 };
static const unsigned int batches[] = { 1, 16, 256 };

struct args {
	const char *out;
	const char *redis;
	const char *sysfs;
	const char *direct;
	const char *log;
	const char *raw;
	const char *save;
	const char *check;
	unsigned int scale;
	bool gets;
	struct env *env;
};

static const struct argp_option options[] = {
	{ "out", 'o', "FILE", 0, "write one JSON object a line there", 0 },
	{ "icount", 'i', NULL, 0, "nanoseconds are instructions: note idle time apart", 0 },
	{ "samples", 'n', "N", 0, "measured samples (3)", 0 },
	{ "redis", 'r', "SOCKET", 0, "unix socket of a Redis server", 0 },
	{ "dir", 'd', "DIR", 0, "empty folder in tmpfs", 0 },
	{ "sysfs", 's', "DIR", 0, "the pool in sysfs; it has a block tier", 0 },
	{ "direct", 'f', "FILE", 0, "file to write and read with O_DIRECT", 0 },
	{ "gets", 'g', NULL, 0, "instead: GET of blocks in memory, in the largest batch", 0 },
	{ "scale", 'S', "N", 0, "instead: GET among 1000 and among N blocks of 4 KiB", 0 },
	{ "log", 'l', "DIR", 0, "instead: the log of that pool in sysfs, block tier nvme0", 0 },
	{ "raw", 'w', "DEVICE", 0, "instead: a device itself, which is overwritten", 0 },
	{ "save", 'k', "FILE", 0, "instead: list what a replay left on block tiers", 0 },
	{ "check", 'c', "FILE", 0, "instead: is what is on the list still served", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case 'o':
		a->out = arg;
		break;
	case 'i':
		a->env->icount = true;
		break;
	case 'n':
		a->env->samples = (unsigned int)strtoul(arg, NULL, 0);
		if (a->env->samples < 1 || a->env->samples > 32)
			argp_error(state, "1 to 32 samples");
		break;
	case 'r':
		a->redis = arg;
		break;
	case 'd':
		a->env->dir = arg;
		break;
	case 's':
		a->sysfs = arg;
		break;
	case 'f':
		a->direct = arg;
		break;
	case 'g':
		a->gets = true;
		break;
	case 'S':
		a->scale = (unsigned int)strtoul(arg, NULL, 0);
		break;
	case 'l':
		a->log = arg;
		break;
	case 'w':
		a->raw = arg;
		break;
	case 'k':
		a->save = arg;
		break;
	case 'c':
		a->check = arg;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/* Work by the byte takes long: fewer blocks of the large size, where batches allow. */
static void set_sizes(struct env *e, size_t bytes, unsigned int batch)
{
	unsigned int least = bytes > sizes[0] ? 64 : BLOCKS_MAX;

	e->block_bytes = bytes;
	e->batch = batch;
	e->blocks = batch > least ? batch : least;
}

static void run_memory(struct env *e, const struct args *a)
{
	store_works(e);
	if (a->redis)
		redis_works(e);
	if (e->dir)
		file_works(e);
}

static void run_all(struct env *e, const struct args *a)
{
	unsigned int i, j;

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		for (j = 0; j < sizeof(batches) / sizeof(*batches); j++) {
			set_sizes(e, sizes[i], batches[j]);
			run_memory(e, a);
			if (a->sysfs)
				store_nvme_works(e, a->sysfs);
			if (a->direct)
				direct_works(e, a->direct);
		}
	}
}

static void run_gets(struct env *e)
{
	unsigned int i;

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		set_sizes(e, sizes[i], BLOCKS_MAX);
		store_gets(e);
	}
}

/* What needs a namespace of ours. */
static void run_store(struct env *e, const struct args *a)
{
	store_open(e, "kvtier bench");
	if (a->scale)
		store_scale(e, a->scale);
	else if (a->gets)
		run_gets(e);
	else if (a->log)
		log_works(e, a->log);
	else
		run_all(e, a);
	kvtier_ns_unref(e->ns);
}

static void run_measured(struct env *e, const struct args *a)
{
	if (a->redis)
		redis_open(e, a->redis);
	sleep(SETTLE_S);
	calibrate(e);
	if (a->raw)
		raw_works(e, a->raw);
	else
		run_store(e, a);
	calibrate(e);
}

int main(int argc, char **argv)
{
	static struct env env = { .samples = 3 };
	static char buffer[OUT_BYTES];
	struct args args = { .env = &env };
	const struct argp argp = { options, parse, NULL,
				   "The block store and its peers, side by side.", NULL, NULL,
				   NULL };

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	env.out = args.out ? fopen(args.out, "w") : stdout;
	if (!env.out)
		die("%s: %s", args.out, strerror(errno));
	env.src = aligned_alloc(4096, BLOCK_BYTES_MAX);
	env.dst = aligned_alloc(4096, BLOCK_BYTES_MAX);
	if (!env.src || !env.dst)
		die("out of memory");
	memset(env.src, 0xa5, BLOCK_BYTES_MAX);
	memset(env.dst, 0, BLOCK_BYTES_MAX);
	/* Filled in memory: a line written to the host's folder would disturb the next. */
	if (setvbuf(env.out, buffer, _IOFBF, sizeof(buffer)))
		die("out of memory");
	if (args.save)
		survive_save(args.save);
	else if (args.check)
		survive_check(&env, args.check);
	else
		run_measured(&env, &args);
	if (fclose(env.out))
		die("writing results: %s", strerror(errno));
	return 0;
}
