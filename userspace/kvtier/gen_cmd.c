// SPDX-License-Identifier: GPL-2.0
/*
 * kvtier gen: writes a generated request trace.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "gen_csv.h"

#define CONTEXT_TOKENS_MIN	4096
#define CONTEXT_TOKENS_MAX	(64u << 20)
#define SESSIONS_MAX		100000

struct gen_options {
	struct gen_params params;
	struct gen_limits limits;
	const char *kind;
	uint64_t sessions;
	const char *out;	/* NULL: standard output */
};

static const char usage_text[] =
"Usage: kvtier gen [OPTION...]\n"
"Write a request trace in the format 'kvtier replay' reads.\n"
"\n"
"  -k, --kind KIND          chat, agent, rag or mix (default)\n"
"  -s, --seed N             another seed, another workload (default 1)\n"
"  -n, --requests N         end after N requests (default 2000 if no other end\n"
"                           is given)\n"
"  -m, --minutes N          end after N minutes of the workload's own time\n"
"  -b, --blocks N           end when N distinct blocks have been asked for\n"
"  -u, --sessions N         sessions open at a time (default 24)\n"
"  -c, --context-tokens N   longest context (default 131072)\n"
"  -o, --out FILE           write there instead of standard output, and print\n"
"                           a summary\n";

static const struct option long_options[] = {
	{ "kind", required_argument, NULL, 'k' },
	{ "seed", required_argument, NULL, 's' },
	{ "requests", required_argument, NULL, 'n' },
	{ "minutes", required_argument, NULL, 'm' },
	{ "blocks", required_argument, NULL, 'b' },
	{ "sessions", required_argument, NULL, 'u' },
	{ "context-tokens", required_argument, NULL, 'c' },
	{ "out", required_argument, NULL, 'o' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static int deal_users(struct gen_options *o)
{
	if (!gen_deal_users(&o->params, o->kind, (unsigned int)o->sessions))
		return 0;
	return cmd_usage("--kind: '%s' is not chat, agent, rag or mix", o->kind);
}

static int parse_number(const char *name, const char *text, uint64_t min,
			uint64_t max, uint64_t *value)
{
	if (cmd_parse_u64(text, max, value) || *value < min)
		return cmd_usage("--%s: '%s' is not a number from %" PRIu64
				 " to %" PRIu64, name, text, min, max);
	return 0;
}

static int parse_option(struct gen_options *o, int c, char **argv)
{
	int err = 0;

	switch (c) {
	case 'k':
		o->kind = optarg;
		break;
	case 's':
		err = parse_number("seed", optarg, 0, UINT64_MAX, &o->params.seed);
		break;
	case 'n':
		err = parse_number("requests", optarg, 1, UINT64_MAX,
				   &o->limits.requests);
		break;
	case 'm':
		err = parse_number("minutes", optarg, 1, 1u << 30, &o->limits.ms);
		o->limits.ms *= 60000;
		break;
	case 'b':
		err = parse_number("blocks", optarg, 1, UINT64_MAX,
				   &o->limits.blocks);
		break;
	case 'u':
		err = parse_number("sessions", optarg, 1, SESSIONS_MAX,
				   &o->sessions);
		break;
	case 'c':
		err = parse_number("context-tokens", optarg, CONTEXT_TOKENS_MIN,
				   CONTEXT_TOKENS_MAX,
				   &o->params.context_tokens_max);
		break;
	case 'o':
		o->out = optarg;
		break;
	default:
		err = cmd_usage("gen: bad option '%s'", argv[optind - 1]);
	}
	return err;
}

static void emit_totals(const struct gen_options *o, const struct gen_totals *t)
{
	static const struct cmd_column columns[] = {
		{ "file", "File", CMD_TEXT },
		{ "requests", "Requests", CMD_COUNT },
		{ "chat_requests", "  chat", CMD_COUNT },
		{ "agent_requests", "  agent", CMD_COUNT },
		{ "rag_requests", "  rag", CMD_COUNT },
		{ "block_accesses", "Block accesses", CMD_COUNT },
		{ "distinct_blocks", "Distinct blocks", CMD_COUNT },
		{ "reuse_rate", "Reuse (no limit)", CMD_PERCENT },
		{ "span_ns", "Time span", CMD_NS },
		{ NULL, NULL, CMD_TEXT },
	};
	struct json_object *obj = json_object_new_object();
	char key[32];

	cmd_add_str(obj, "file", o->out);
	cmd_add_u64(obj, "seed", o->params.seed);
	cmd_add_u64(obj, "requests", t->requests);
	for (int k = 0; k < GEN_KINDS; k++) {
		snprintf(key, sizeof(key), "%s_requests",
			 gen_kind_name((enum gen_kind)k));
		cmd_add_u64(obj, key, t->by_kind[k]);
	}
	cmd_add_u64(obj, "block_accesses", t->accesses);
	cmd_add_u64(obj, "distinct_blocks", t->blocks);
	cmd_add_double(obj, "reuse_rate", t->accesses ?
		       1.0 - (double)t->blocks / (double)t->accesses : 0.0);
	cmd_add_u64(obj, "span_ns", t->span_ms * 1000000);
	cmd_emit(obj, columns);
}

static int run(struct gen_options *o)
{
	struct gen_totals totals;
	FILE *out = stdout;
	int err;

	if (o->out) {
		out = fopen(o->out, "we");
		if (!out)
			return cmd_fail(errno, NULL, "cannot write %s", o->out);
	}
	errno = 0;
	err = gen_csv_write(out, &o->params, &o->limits, &totals);
	if (err == -EIO && errno)
		err = -errno;
	if (o->out && fclose(out) && !err)
		err = -errno;
	if (err)
		return cmd_fail(err, NULL, "cannot write %s",
				o->out ? o->out : "the trace");
	if (o->out)
		emit_totals(o, &totals);
	return EXIT_OK;
}

int cmd_gen(int argc, char **argv)
{
	struct gen_options o = {
		.params = { .seed = 1, .context_tokens_max = 131072 },
		.kind = "mix",
		.sessions = 24,
	};
	int c, err;

	optind = 0;
	while ((c = getopt_long(argc, argv, "+k:s:n:m:b:u:c:o:h", long_options,
				NULL)) != -1) {
		if (c == 'h')
			return cmd_own_help("gen", usage_text);
		err = parse_option(&o, c, argv);
		if (err)
			return err;
	}
	if (optind < argc)
		return cmd_usage("unexpected argument '%s'", argv[optind]);
	if (opt.json && !o.out)
		return cmd_usage("gen: with JSON output the trace must go to a file: --out FILE");
	if (!o.limits.requests && !o.limits.ms && !o.limits.blocks)
		o.limits.requests = 2000;
	err = deal_users(&o);
	return err ? err : run(&o);
}
