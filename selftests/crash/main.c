// SPDX-License-Identifier: GPL-2.0
/*
 * kvt-crash: the parts of the crash tests, for the scripts beside it.
 *
 *   load POOL WORKERS BLOCKS OPS SEED JOURNAL     OPS 0: until killed
 *   load POOL WORKERS BLOCKS OPS SEED dm:NAME
 *   verify POOL NR_BLOCKS JOURNAL...
 *   log NAME DEVICE LOG        makes a device that logs, and prints its path
 *   mark NAME TEXT
 *   unlog NAME
 *   replay LOG BYTES POINTS SEED IMAGE TOOL [WITHOUT]
 *   assemble LOG BYTES POINTS SEED IMAGE DEVICE EVERY [WITHOUT]
 *                              every so manieth of the same states by the driver; DEVICE is
 *                              a loop device over IMAGE
 *   state LOG BYTES POINTS SEED IMAGE NUMBER
 *                              leaves that one of them in IMAGE
 *
 * Details are printed, with "# " in front; the exit status is the result.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "crash.h"

static uint64_t number(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 0);

	if (end == text || *end) {
		fprintf(stderr, "kvt-crash: not decimal or hex: '%s'\n", text);
		exit(2);
	}
	return n;
}

static int do_load(int argc, char **argv)
{
	struct load_args a = { 0 };

	if (argc != 6)
		return 2;
	a.pool = (uint32_t)number(argv[0]);
	a.workers = (uint32_t)number(argv[1]);
	a.blocks = (uint32_t)number(argv[2]);
	a.ops = (uint32_t)number(argv[3]);
	a.seed = number(argv[4]);
	if (!strncmp(argv[5], "dm:", 3))
		a.dm = argv[5] + 3;
	else
		a.journal = argv[5];
	if (a.workers > WORKERS_MAX || a.blocks > MAIN_BLOCKS || a.blocks < CHAIN)
		return 2;
	return load_run(&a);
}

static int do_verify(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	return verify_pool((uint32_t)number(argv[0]), number(argv[1]), argv + 2, argc - 2);
}

static int failed(const char *what, int err)
{
	if (err)
		printf("# %s: %s\n", what, strerror(-err));
	return !!err;
}

static int do_log(int argc, char **argv)
{
	char path[64];
	int err;

	if (argc != 3)
		return 2;
	err = dm_log_create(argv[0], argv[1], argv[2], path, sizeof(path));
	if (!err)
		printf("%s\n", path);
	return failed("log", err);
}

/* @what: replay, assemble or state */
static int do_replay(const char *what, int argc, char **argv)
{
	struct replay_args a = { .only = KVT_NO_STATE, .every = 1 };
	int more = !strcmp(what, "assemble");

	if (argc < 6 + more || argc > 7 + more)
		return 2;
	a.log = argv[0];
	a.bytes = number(argv[1]);
	a.points = (uint32_t)number(argv[2]);
	a.seed = number(argv[3]);
	a.image = argv[4];
	a.toothless = argv[6 + more];
	if (more) {
		a.device = argv[5];
		a.every = (uint32_t)number(argv[6]);
	} else if (!strcmp(what, "state")) {
		a.only = (uint32_t)number(argv[5]);
	} else {
		a.tool = *argv[5] ? argv[5] : NULL;
	}
	return a.every ? replay_run(&a) : 2;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int ret = 2;

	if (!strcmp(what, "load"))
		ret = do_load(argc - 2, argv + 2);
	else if (!strcmp(what, "verify"))
		ret = do_verify(argc - 2, argv + 2);
	else if (!strcmp(what, "log"))
		ret = do_log(argc - 2, argv + 2);
	else if (!strcmp(what, "mark") && argc == 4)
		ret = failed("mark", dm_mark(argv[2], argv[3]));
	else if (!strcmp(what, "unlog") && argc == 3)
		ret = failed("unlog", dm_remove(argv[2]));
	else if (!strcmp(what, "replay") || !strcmp(what, "assemble") || !strcmp(what, "state"))
		ret = do_replay(what, argc - 2, argv + 2);
	if (ret == 2)
		fprintf(stderr, "kvt-crash %s: wrong arguments, or not possible\n", what);
	return ret;
}
