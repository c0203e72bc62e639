// SPDX-License-Identifier: GPL-2.0
/*
 * kvtier rm --all, of a namespace that others change meanwhile: a list of blocks is of no
 * one moment, so that it may say of two that each extends the other.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cmd.h"
#undef ARRAY_SIZE
#include "unit.h"

#define NR	5

/* Block i extends block parents[i] - 1; 0: it is a root. */
static const unsigned int *parents;
static unsigned char dropped[NR], nr_dropped;

/* --- In place of the library's ---------------------------------------------- */

int kvtier_pool_open(uint32_t pool_id, struct kvtier_pool **out)
{
	(void)pool_id;
	*out = NULL;
	return 0;
}

int kvtier_ns_open(struct kvtier_pool *pool, const struct kvtier_ns_params *params,
		   struct kvtier_ns **out)
{
	(void)pool;
	(void)params;
	*out = NULL;
	return 0;
}

int kvtier_iterate(struct kvtier_ns *ns, uint64_t *cursor, struct kvtier_entry *entries,
		   uint32_t nr)
{
	(void)ns;
	if (nr < NR)
		abort();
	memset(entries, 0, NR * sizeof(*entries));
	for (unsigned char i = 0; i < NR; i++) {
		entries[i].key[0] = i + 1;
		entries[i].parent[0] = (unsigned char)parents[i];
	}
	*cursor = 0;
	return NR;
}

/* The last key goes first. */
int kvtier_drop(struct kvtier_ns *ns, const struct kvtier_opts *opts,
		const struct kvtier_key *keys, uint32_t nr, int32_t *results)
{
	(void)ns;
	(void)opts;
	for (uint32_t i = nr; i-- > 0;) {
		if (nr_dropped == NR)
			abort();
		dropped[nr_dropped++] = keys[i].b[0];
		results[i] = KVTIER_ST_DONE;
	}
	return (int)nr;
}

/* --- Tests ------------------------------------------------------------------ */

static int remove_all(const unsigned int *list)
{
	char words[][8] = { "rm", "--ns", "x", "--pool", "0", "--all" }, *argv[7] = { NULL };
	int out = dup(STDOUT_FILENO), status;

	/* What it counts is not asked for. */
	if (out < 0 || !freopen("/dev/null", "w", stdout))
		abort();
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		argv[i] = words[i];
	parents = list;
	nr_dropped = 0;
	optind = 1;
	/* So that one that does not end ends the test. */
	alarm(60);
	status = cmd_rm(ARRAY_SIZE(words), argv);
	fflush(stdout);
	dup2(out, STDOUT_FILENO);
	close(out);
	return status;
}

static bool went_before(unsigned char a, unsigned char b)
{
	return memchr(dropped, a, NR) < memchr(dropped, b, NR);
}

static void test_chain(void)
{
	static const unsigned int chain[NR] = { 4, 0, 5, 2, 1 };	/* 2 <- 4 <- 1 <- 5 <- 3 */

	CHECK(remove_all(chain) == EXIT_OK && nr_dropped == NR);
	CHECK(went_before(3, 5) && went_before(5, 1) && went_before(1, 4) && went_before(4, 2));
}

static void test_cycles(void)
{
	static const unsigned int pair[NR] = { 2, 1, 2, 3, 0 };
	static const unsigned int all[NR] = { 2, 3, 4, 5, 1 };
	static const unsigned int itself[NR] = { 1, 1, 2, 2, 4 };

	CHECK(remove_all(pair) == EXIT_OK && nr_dropped == NR);
	CHECK(went_before(4, 3) && went_before(3, 2));
	CHECK(remove_all(all) == EXIT_OK && nr_dropped == NR);
	CHECK(remove_all(itself) == EXIT_OK && nr_dropped == NR);
	CHECK(went_before(5, 4) && went_before(4, 2) && went_before(2, 1));
}

static const struct unit_test tests[] = {
	{ "tool/rm-chain", test_chain },
	{ "tool/rm-cycles", test_cycles },
};

UNIT_MAIN(tests)
