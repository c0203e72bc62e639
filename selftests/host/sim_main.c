// SPDX-License-Identifier: GPL-2.0
/*
 * kvtier-sim: replays a trace against the module's own core, or against a
 * reference policy, and prints one JSON object.
 *
 *   kvtier-sim --policy NAME --tier fast=2% --tier slow=8% TRACE
 *
 * A tier's size is in percent of the trace's distinct blocks (at least one block)
 * or a number of blocks. Names of tiers are for the reader; the first is the
 * fastest. With --segment the slowest of several is the core's log, in segments of so
 * many blocks. With --chunk a request comes in several calls: one that takes what is there,
 * and one for each so many blocks stored; --numbered gives them a number of the request,
 * without it they are told apart by time and chain. With --hints the policy is told of each
 * request when its session goes on, or that it is over, as a client would say with SESSION:
 * exact, or with one in five wrong. With --scan another tenant stores a chain of so many blocks
 * after each request, which nobody asks for, and with --lie says when it will be used; with --feign
 * it uses so many blocks of its own as well, so that it is believed; --guarantee is what of the
 * fastest tiers the trace's own tenant is sure of. --seed is for the hash of keys. With --timed the clock is read around what the policy does: in a machine
 * that counts instructions it tells these. See sim_core.c for the model.
 */
#include <ctype.h>
#include <errno.h>

#include "sim.h"
#include "kvt_hint.h"
#include "kvt_policy.h"
#include "sim_ref.h"

static const char *const usage =
	"usage: kvtier-sim --policy NAME --tier NAME=SIZE [--tier NAME=SIZE]...\n"
	"                  [--segment BLOCKS] [--chunk BLOCKS [--numbered]]\n"
	"                  [--hints exact|wrong20] [--scan BLOCKS [--lie MS|never|random|hot]\n"
	"                  [--feign BLOCKS [--feign-never]] [--guarantee SIZE]]\n"
	"                  [--seed NUMBER] [--timed] TRACE\n"
	"       kvtier-sim --list\n"
	"SIZE: blocks, or percent of the trace's distinct blocks (2%)\n"
	"TRACE: CSV or JSON lines, plain or zstd; -: standard input;\n"
	"       gen:KIND[:SESSIONS[:REQUESTS]]: made as by kvtier gen\n";

/* "fast=2%" or "2000": blocks, or 0 if it is nothing of the kind. */
static u32 tier_blocks(const char *spec, u32 nr_distinct)
{
	const char *size = strchr(spec, '=');
	char *end;
	double v;

	size = size ? size + 1 : spec;
	v = strtod(size, &end);
	if (end == size || !(v > 0))
		return 0;
	if (!strcmp(end, "%"))
		v = v * nr_distinct / 100 < 1 ? 1 : v * nr_distinct / 100;
	else if (*end)
		return 0;
	return v < 1 || v > (double)(U32_MAX / 4) ? 0 : (u32)v;
}

static int print_list(void)
{
	u32 i;

	printf("default\n");
	for (i = 0; kvt_policy_at(i); i++)
		printf("%s\n", kvt_policy_at(i)->name);
	for (i = 0; sim_ref_at(i); i++)
		printf("%s\n", sim_ref_at(i)->name);
	return 0;
}

static void print_result(const struct sim_trace *t, const struct sim_config *c,
			 const struct sim_result *r)
{
	u32 i;

	printf("{\"policy\": \"%s\", \"tiers\": [", c->policy);
	for (i = 0; i < c->nr_tiers; i++)
		printf("%s%u", i ? ", " : "", c->blocks[i]);
	printf("], \"requests\": %u, \"accesses\": %u, \"distinct\": %u, \"hits\": %llu, "
	       "\"hits_by_tier\": [", t->nr_requests, t->nr_accesses, t->nr_distinct,
	       (unsigned long long)r->hits);
	for (i = 0; i < c->nr_tiers; i++)
		printf("%s%llu", i ? ", " : "", (unsigned long long)r->hits_by_tier[i]);
	printf("], \"hit_ratio\": %.6f, \"promotions\": %llu, \"demotions\": %llu, "
	       "\"slow_writes\": %llu, \"carried\": %llu, \"segment_blocks\": %u, \"evictions\": %llu, \"unread_promotions\": %llu, "
	       "\"ns_per_access\": %.1f, \"policy_ns_per_access\": %.1f, "
	       "\"metadata_bytes_per_block\": %.1f}\n",
	       t->nr_accesses ? (double)r->hits / t->nr_accesses : 0,
	       (unsigned long long)r->promotions, (unsigned long long)r->demotions,
	       (unsigned long long)r->slow_writes, (unsigned long long)r->carried, c->segment,
	       (unsigned long long)r->evictions,
	       (unsigned long long)r->unread,
	       t->nr_accesses ? (double)r->ns / t->nr_accesses : 0,
	       t->nr_accesses ? (double)r->policy_ns / t->nr_accesses : 0,
	       r->meta_bytes_per_block);
}

/* A number that fits, and nothing after it. */
static bool number_of(const char *text, u32 *out)
{
	unsigned long long v;
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	v = strtoull(text, &end, 0);
	*out = (u32)v;
	return !errno && !*end && v <= U32_MAX;
}

/* An option that is a number, and the number. */
static bool number_option(char *const *argv, struct sim_config *c)
{
	const struct {
		const char *name;
		u32 *to;
	} options[] = {
		{ "--segment", &c->segment }, { "--chunk", &c->chunk }, { "--scan", &c->scan },
		{ "--feign", &c->feign }, { "--seed", &c->seed },
	};
	size_t i;

	for (i = 0; i < sizeof(options) / sizeof(*options); i++)
		if (!strcmp(argv[0], options[i].name))
			return number_of(argv[1], options[i].to);
	return false;
}

static bool hints_of(const char *name, struct sim_config *c)
{
	c->hints = true;
	c->wrong = strcmp(name, "wrong20") ? 0 : 20;
	return c->wrong || !strcmp(name, "exact");
}

/* "never", "random", "hot", or ms. */
static bool lie_of(const char *what, struct sim_config *c)
{
	c->lies = true;
	c->lie_ms = 0;
	c->lie_random = !strcmp(what, "random");
	c->lie_hot = !strcmp(what, "hot");
	if (!strcmp(what, "never"))
		c->lie_ms = KVT_HINT_NEVER;
	if (c->lie_random || c->lie_hot || c->lie_ms)
		return true;
	return number_of(what, &c->lie_ms);
}

static int simulate(struct sim_config *c, char *const *tiers, const char *guarantee,
		    const char *path)
{
	struct sim_result r = { 0 };
	struct sim_trace t;
	int err;
	u32 i;

	if (sim_trace_load(path, &t))
		return 1;
	for (i = 0; i < c->nr_tiers; i++) {
		c->blocks[i] = tier_blocks(tiers[i], t.nr_distinct);
		if (!c->blocks[i]) {
			fprintf(stderr, "kvtier-sim: not a tier: %s\n", tiers[i]);
			return 2;
		}
	}
	c->guarantee = guarantee ? tier_blocks(guarantee, t.nr_distinct) : 0;
	if (c->guarantee > c->blocks[0]) {
		fprintf(stderr, "kvtier-sim: more is guaranteed than there is: %s\n", guarantee);
		return 2;
	}
	err = sim_core_run(&t, c, &r);
	if (err == -ENOENT)
		err = sim_ref_run(&t, c, &r);
	if (!err)
		print_result(&t, c, &r);
	else
		fprintf(stderr, "kvtier-sim: %s: %s\n", c->policy, err == -ENOENT ?
			"no such policy (--list)" : "not with this many tiers");
	sim_trace_free(&t);
	return err ? 2 : 0;
}

int main(int argc, char **argv)
{
	struct sim_config c = { .policy = "default" };
	char *tiers[SIM_TIERS_MAX];
	const char *path = NULL, *guarantee = NULL;
	int i;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--list"))
			return print_list();
		if (!strcmp(argv[i], "--policy") && i + 1 < argc)
			c.policy = argv[++i];
		else if (!strcmp(argv[i], "--tier") && i + 1 < argc &&
			 c.nr_tiers < SIM_TIERS_MAX)
			tiers[c.nr_tiers++] = argv[++i];
		else if (i + 1 < argc && number_option(argv + i, &c))
			i++;
		else if (!strcmp(argv[i], "--lie") && i + 1 < argc && lie_of(argv[i + 1], &c))
			i++;
		else if (!strcmp(argv[i], "--feign-never"))
			c.feign_never = true;
		else if (!strcmp(argv[i], "--guarantee") && i + 1 < argc)
			guarantee = argv[++i];
		else if (!strcmp(argv[i], "--numbered"))
			c.numbered = true;
		else if (!strcmp(argv[i], "--timed"))
			c.timed = true;
		else if (!strcmp(argv[i], "--hints") && i + 1 < argc &&
			 hints_of(argv[i + 1], &c))
			i++;
		else if (!path && (argv[i][0] != '-' || !argv[i][1]))
			path = argv[i];
		else
			path = NULL, i = argc;
	}
	if (!path || !c.nr_tiers || c.segment == 1) {
		fputs(usage, stderr);
		return 2;
	}
	return simulate(&c, tiers, guarantee, path);
}
