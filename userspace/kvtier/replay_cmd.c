// SPDX-License-Identifier: GPL-2.0
/*
 * kvtier replay: command line and tables.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"
#include "replay.h"

static const char usage_text[] =
"Usage: kvtier replay [OPTION...] TRACE\n"
"Replay a request trace with several processes: each looks a request's prefix up,\n"
"reads and verifies every hit through the read mapping, and fills the misses.\n"
"TRACE is CSV (ts_ms,input_len,output_len,session,ids) or JSON lines (timestamp,\n"
"input_length, output_length, hash_ids), plain or compressed with zstd.\n"
"\n"
"      --pool POOL          pool to use (default: the only one)\n"
"  -P, --procs N            processes (default 4)\n"
"  -b, --block-bytes SIZE   bytes a block has (default 64K)\n"
"      --ns IDENTITY        namespace, made if need be (default kvtier-replay)\n"
"  -n, --max-requests N     no more than N requests\n"
"      --speed inf|X        inf: no pauses (default); 1: as timed in the trace;\n"
"                           10: ten times as fast\n"
"  -s, --seed N             goes into the keys (default 1)\n"
"      --verify full|sample every byte read (default), or the start of each page\n"
"      --lookup             only ask what is there: read nothing, store nothing\n"
"      --timeout TIME       longest wait of one command (default 30s)\n"
"      --progress           show progress, also where stderr is no terminal\n"
"  -o, --out FILE           write the result as JSON there, besides printing it\n"
"\n"
"Exits with status 1 if a byte was wrong or a process failed.\n";

enum {
	OPT_POOL = 256, OPT_NS, OPT_SPEED, OPT_VERIFY, OPT_TIMEOUT, OPT_PROGRESS,
	OPT_LOOKUP,
};

static const struct option long_options[] = {
	{ "pool", required_argument, NULL, OPT_POOL },
	{ "procs", required_argument, NULL, 'P' },
	{ "block-bytes", required_argument, NULL, 'b' },
	{ "ns", required_argument, NULL, OPT_NS },
	{ "max-requests", required_argument, NULL, 'n' },
	{ "speed", required_argument, NULL, OPT_SPEED },
	{ "seed", required_argument, NULL, 's' },
	{ "verify", required_argument, NULL, OPT_VERIFY },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "progress", no_argument, NULL, OPT_PROGRESS },
	{ "lookup", no_argument, NULL, OPT_LOOKUP },
	{ "out", required_argument, NULL, 'o' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

struct replay_command {
	struct replay_options o;
	const char *pool;
	const char *out;
};

static int parse_number(const char *name, uint64_t min, uint64_t max,
			uint64_t *value)
{
	if (cmd_parse_u64(optarg, max, value) || *value < min)
		return cmd_usage("--%s: '%s' is not a number from %" PRIu64
				 " to %" PRIu64, name, optarg, min, max);
	return 0;
}

/* "inf" or a positive number with up to three decimals that count. */
static int parse_speed(uint64_t *milli)
{
	char *end;
	double speed;

	if (!strcmp(optarg, "inf")) {
		*milli = 0;
		return 0;
	}
	speed = strtod(optarg, &end);
	if (end == optarg || *end || !(speed >= 0.001 && speed <= 1e9))
		return cmd_usage("--speed: '%s' is neither 'inf' nor a number from "
				 "0.001 on", optarg);
	*milli = (uint64_t)(speed * 1000.0);
	return 0;
}

static int parse_verify(bool *full)
{
	*full = !strcmp(optarg, "full");
	if (!*full && strcmp(optarg, "sample"))
		return cmd_usage("--verify: '%s' is neither 'full' nor 'sample'",
				 optarg);
	return 0;
}

static int parse_block_bytes(uint64_t *bytes)
{
	if (cmd_parse_bytes(optarg, bytes) || !*bytes ||
	    *bytes > KVTIER_BLOCK_BYTES_MAX)
		return cmd_usage("--block-bytes: '%s' is not a size up to 256M", optarg);
	return 0;
}

static int parse_identity(const char **identity)
{
	if (!*optarg || strlen(optarg) > KVTIER_IDENTITY_MAX)
		return cmd_usage("--ns: an identity has 1 to %d bytes",
				 KVTIER_IDENTITY_MAX);
	*identity = optarg;
	return 0;
}

static int parse_option(struct replay_command *c, int option, char **argv)
{
	uint64_t procs;
	int err;

	switch (option) {
	case OPT_POOL:
		c->pool = optarg;
		return 0;
	case 'P':
		err = parse_number("procs", 1, REPLAY_PROCS_MAX, &procs);
		c->o.procs = (unsigned int)procs;
		return err;
	case 'b':
		return parse_block_bytes(&c->o.block_bytes);
	case OPT_NS:
		return parse_identity(&c->o.identity);
	case 'n':
		return parse_number("max-requests", 1, UINT64_MAX, &c->o.max_requests);
	case OPT_SPEED:
		return parse_speed(&c->o.speed_milli);
	case 's':
		return parse_number("seed", 0, UINT64_MAX, &c->o.seed);
	case OPT_VERIFY:
		return parse_verify(&c->o.verify_full);
	case OPT_TIMEOUT:
		if (cmd_parse_duration(optarg, &c->o.timeout_ns))
			return cmd_usage("--timeout: '%s' is not a time", optarg);
		return 0;
	case OPT_PROGRESS:
		c->o.progress = true;
		return 0;
	case OPT_LOOKUP:
		c->o.lookup_only = true;
		return 0;
	case 'o':
		c->out = optarg;
		return 0;
	default:
		return cmd_usage("replay: bad option '%s'", argv[optind - 1]);
	}
}

static void section(struct json_object *result, const char *key,
		    const char *title, const struct cmd_column *columns)
{
	printf("%s%s\n", title[0] ? "\n" : "", title);
	cmd_print_text(stdout, json_object_object_get(result, key), columns);
}

static void print_counts(struct json_object *result)
{
	static const struct cmd_column clients[] = {
		{ "requests", "Requests", CMD_COUNT },
		{ "blocks", "Blocks asked for", CMD_COUNT },
		{ "hits", "  hits (unbroken prefix)", CMD_COUNT },
		{ "hit_rate", "  hit rate", CMD_PERCENT },
		{ "stored", "Blocks stored", CMD_COUNT },
		{ "stored_bytes", "Bytes stored", CMD_BYTES },
		{ "existing", "Stored by others meanwhile", CMD_COUNT },
		{ "skipped", "Blocks not stored", CMD_COUNT },
		{ "no_space", "  no space", CMD_COUNT },
		{ "no_parent", "  no parent", CMD_COUNT },
		{ "io_errors", "I/O errors", CMD_COUNT },
		{ "timeouts", "Timeouts", CMD_COUNT },
		{ "verified_bytes", "Bytes verified", CMD_BYTES },
		{ "wrong_bytes", "Wrong bytes", CMD_COUNT },
		{ NULL, NULL, CMD_TEXT },
	};
	static const struct cmd_column dedup[] = {
		{ "distinct_blocks", "Blocks used", CMD_COUNT },
		{ "private_blocks", "In a cache per process", CMD_COUNT },
		{ "saved_blocks", "Copies saved", CMD_COUNT },
		{ "saved_bytes", "Bytes saved", CMD_BYTES },
		{ NULL, NULL, CMD_TEXT },
	};
	static const struct cmd_column pool[] = {
		{ "dedup_waits", "Waits for another filler", CMD_COUNT },
		{ "promotions", "Promotions", CMD_COUNT },
		{ "demotions", "Demotions", CMD_COUNT },
		{ "evictions", "Evictions", CMD_COUNT },
		{ "dma_bytes", "Moved by DMA", CMD_BYTES },
		{ "moves_dmaengine", "Memory moves, DMA engine", CMD_COUNT },
		{ "moves_cpu", "Memory moves, CPU", CMD_COUNT },
		{ "meta_bytes_per_block", "Metadata a block, bytes", CMD_COUNT },
		{ NULL, NULL, CMD_TEXT },
	};

	section(result, "clients", "Clients", clients);
	section(result, "dedup", "One copy for all processes", dedup);
	section(result, "pool", "Pool", pool);
}

static void print_tables(struct json_object *result)
{
	static const struct cmd_column tiers[] = {
		{ "name", "TIER", CMD_TEXT },
		{ "type", "TYPE", CMD_TEXT },
		{ "capacity_bytes", "SIZE", CMD_BYTES },
		{ "used_bytes", "USED", CMD_BYTES },
		{ "hits", "HITS", CMD_COUNT },
		{ "hit_rate", "RATE", CMD_PERCENT },
		{ "promotions_in", "PROM-IN", CMD_COUNT },
		{ "promotions_out", "PROM-OUT", CMD_COUNT },
		{ "demotions_in", "DEM-IN", CMD_COUNT },
		{ "demotions_out", "DEM-OUT", CMD_COUNT },
		{ "evictions", "EVICTED", CMD_COUNT },
		{ "dma_bytes", "DMA", CMD_BYTES },
		{ NULL, NULL, CMD_TEXT },
	};
	static const struct cmd_column latency[] = {
		{ "operation", "LATENCY", CMD_TEXT },
		{ "tier", "TIER", CMD_TEXT },
		{ "count", "COUNT", CMD_COUNT },
		{ "p50_ns", "P50", CMD_NS },
		{ "p90_ns", "P90", CMD_NS },
		{ "p99_ns", "P99", CMD_NS },
		{ "max_ns", "MAX", CMD_NS },
		{ NULL, NULL, CMD_TEXT },
	};
	static const struct cmd_column wrong[] = {
		{ "key", "WRONG BLOCK", CMD_TEXT },
		{ "tier", "TIER", CMD_TEXT },
		{ "offset_bytes", "OFFSET", CMD_COUNT },
		{ "wrong_bytes", "BYTES", CMD_COUNT },
		{ "want", "WANT", CMD_TEXT },
		{ "got", "GOT", CMD_TEXT },
		{ NULL, NULL, CMD_TEXT },
	};
	static const struct cmd_column errors[] = {
		{ "process", "PROCESS", CMD_COUNT },
		{ "message", "FAILED", CMD_TEXT },
		{ NULL, NULL, CMD_TEXT },
	};

	section(result, "tiers", "", tiers);
	section(result, "latency", "", latency);
	if (json_object_array_length(json_object_object_get(result, "wrong")))
		section(result, "wrong", "", wrong);
	if (json_object_array_length(json_object_object_get(result, "errors")))
		section(result, "errors", "", errors);
}

/* Before the run, which may take long. What is there stays until there is a result. */
static int open_out(const char *path, FILE **file)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666), err;

	*file = fd < 0 ? NULL : fdopen(fd, "w");
	if (*file)
		return EXIT_OK;
	err = errno;
	if (fd >= 0)
		close(fd);
	return cmd_fail(err, NULL, "cannot write %s", path);
}

/* The result is printed anyway, so what went wrong is a note beside it, or a part of it. */
static int out_failed(int err, const char *path, struct json_object *result)
{
	struct json_object *said = NULL, **before = opt.error;

	if (!opt.json)
		return cmd_fail(err, NULL, "cannot write %s", path);
	opt.error = &said;
	cmd_fail(err, NULL, "cannot write %s", path);
	opt.error = before;
	cmd_add(result, "error", json_object_get(json_object_object_get(said, "error")));
	json_object_put(said);
	return EXIT_FAILED;
}

static int write_out(const char *path, FILE *file, struct json_object *result)
{
	struct stat st;
	int err = 0;

	if (!fstat(fileno(file), &st) && S_ISREG(st.st_mode) && ftruncate(fileno(file), 0))
		err = errno;
	cmd_print_json(file, result);
	if (ferror(file) && !err)
		err = EIO;
	if (fclose(file) && (!err || err == EIO))
		err = errno;
	return err ? out_failed(err, path, result) : EXIT_OK;
}

/* Is it there: asked here, as its children would not tell what to do about it. */
static int check_pool(uint32_t pool_id)
{
	struct kvtier_pool *pool;
	int status = cmd_open_pool(pool_id, &pool);

	if (!status)
		kvtier_pool_unref(pool);
	return status;
}

static int replay(struct replay_command *c)
{
	char error[REPLAY_ERROR_BYTES] = "";
	struct json_object *result = NULL;
	int status = EXIT_OK, err;
	FILE *out = NULL;
	bool passed;

	if (c->out)
		status = open_out(c->out, &out);
	if (status)
		return status;
	err = replay_run(&c->o, &result, error);
	if (err) {
		if (out)
			fclose(out);
		return cmd_fail_said(err, NULL, "%s", error);
	}
	passed = replay_passed(result);
	if (out)
		status = write_out(c->out, out, result);
	if (opt.json) {
		cmd_emit(result, NULL);
	} else {
		print_counts(result);
		print_tables(result);
		printf("\n%s\n", passed ? "passed" : "FAILED");
		json_object_put(result);
	}
	return passed ? status : EXIT_FAILED;
}

/* Every process opens it anew, and the first reads all of it before. */
static int check_trace(const char *path)
{
	struct stat st;

	if (!strcmp(path, "-"))
		return cmd_usage("a trace is read more than once: it has to be a file");
	if (!stat(path, &st) && !S_ISREG(st.st_mode))
		return cmd_fail_said(EINVAL, "a trace is read more than once, by each process: what comes from a pipe has to be written to a file first",
				     "%s is no regular file", path);
	return EXIT_OK;
}

int cmd_replay(int argc, char **argv)
{
	struct replay_command c = {
		.o = {
			.procs = 4,
			.block_bytes = 64 << 10,
			.identity = "kvtier-replay",
			.seed = 1,
			.verify_full = true,
			.timeout_ns = 30000000000ULL,
		},
	};
	int option, err;

	c.o.progress = isatty(STDERR_FILENO) && !opt.json;
	optind = 0;
	while ((option = getopt_long(argc, argv, "P:b:n:s:o:h", long_options,
				     NULL)) != -1) {
		if (option == 'h')
			return cmd_own_help("replay", usage_text);
		err = parse_option(&c, option, argv);
		if (err)
			return err;
	}
	if (optind != argc - 1)
		return cmd_usage("replay needs one TRACE");
	c.o.trace = argv[optind];
	err = check_trace(c.o.trace);
	if (!err)
		err = cmd_pick_pool(c.pool, &c.o.pool_id);
	if (!err)
		err = check_pool(c.o.pool_id);
	return err ? err : replay(&c);
}
