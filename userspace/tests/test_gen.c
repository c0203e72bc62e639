// SPDX-License-Identifier: GPL-2.0
/*
 * Workload generator: what it makes has the statistics it promises, is a forest
 * in order of time, and is the same on every machine.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../kvtier/gen_csv.h"
#include "../kvtier/gen_rng.h"
#include "../kvtier/gen_workload.h"
#include "../kvtier/trace.h"
#include "unit.h"

#define TURNS	8

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static struct gen_params params_of(enum gen_kind kind, unsigned int users)
{
	struct gen_params p = { .seed = 11, .context_tokens_max = 131072 };

	p.users[kind] = users;
	return p;
}

static void test_distributions(void)
{
	enum { N = 100001 };
	static uint64_t v[N];
	struct gen_rng rng;
	uint64_t sum = 0, first = 0, second = 0;

	gen_rng_init(&rng, 3, 0);
	for (int i = 0; i < N; i++)
		v[i] = gen_rng_lognormal(&rng, 100000, 256);
	qsort(v, N, sizeof(*v), compare_u64);
	/* Median, and a standard deviation of one octave: 16 % are below half. */
	CHECK(v[N / 2] > 98000 && v[N / 2] < 102000, "%" PRIu64, v[N / 2]);
	CHECK(v[N * 16 / 100] > 48000 && v[N * 16 / 100] < 52000);
	CHECK(v[N * 84 / 100] > 190000 && v[N * 84 / 100] < 210000);
	for (int i = 0; i < N; i++) {
		v[i] = gen_rng_exponential(&rng, 100000);
		sum += v[i];
	}
	qsort(v, N, sizeof(*v), compare_u64);
	CHECK(sum / N > 98000 && sum / N < 102000, "%" PRIu64, sum / N);
	CHECK(v[N / 2] > 67500 && v[N / 2] < 71000, "%" PRIu64, v[N / 2]);
	for (int i = 0; i < N; i++) {
		uint64_t rank = gen_rng_zipf(&rng, 200);

		CHECK(rank < 200);
		first += rank == 0;
		second += rank == 1;
	}
	/* log 2 / log 201 and (log 3 - log 2) / log 201 */
	CHECK(first > N * 125 / 1000 && first < N * 136 / 1000, "%" PRIu64, first);
	CHECK(second > N * 72 / 1000 && second < N * 81 / 1000, "%" PRIu64, second);
}

struct turn_counts {
	uint64_t asked[TURNS], continued[TURNS];
	uint64_t *gaps;
	size_t nr_gaps;
};

/*
 * Counts by turn how many sessions went on. Sessions are known complete because a
 * user holds one at a time: those of the last N sessions, N users, are left out.
 */
static void count_turns(enum gen_kind kind, unsigned int requests,
			struct turn_counts *c)
{
	struct gen_params p = params_of(kind, 20);
	uint64_t *last_ms = calloc(requests, sizeof(*last_ms));
	unsigned int *turns = calloc(requests, sizeof(*turns));
	struct gen *g = gen_new(&p);
	struct gen_request r;
	uint64_t sessions = 0;

	memset(c, 0, sizeof(*c));
	c->gaps = calloc(requests, sizeof(*c->gaps));
	for (unsigned int i = 0; i < requests; i++) {
		if (gen_next(g, &r))
			abort();
		if (r.turn)
			c->gaps[c->nr_gaps++] = r.ts_ms - last_ms[r.session];
		last_ms[r.session] = r.ts_ms;
		turns[r.session] = r.turn + 1;
		if (r.session >= sessions)
			sessions = r.session + 1;
	}
	for (uint64_t s = 0; s + 40 < sessions; s++) {
		for (unsigned int t = 0; t < turns[s] && t < TURNS; t++) {
			c->asked[t]++;
			c->continued[t] += t + 1 < turns[s];
		}
	}
	qsort(c->gaps, c->nr_gaps, sizeof(*c->gaps), compare_u64);
	gen_free(g);
	free(last_ms);
	free(turns);
}

static void check_turns(enum gen_kind kind, unsigned int requests,
			const unsigned int *permille, unsigned int nr,
			uint64_t gap_low_ms, uint64_t gap_high_ms)
{
	struct turn_counts c;
	uint64_t median;

	count_turns(kind, requests, &c);
	for (unsigned int t = 0; t < nr; t++) {
		uint64_t want = permille[t], got;

		CHECK(c.asked[t] > 400, "turn %u: %" PRIu64, t, c.asked[t]);
		got = c.continued[t] * 1000 / c.asked[t];
		CHECK(got + 50 > want && got < want + 50,
		      "turn %u: %" PRIu64 " of 1000 go on", t, got);
	}
	median = c.gaps[c.nr_gaps / 2];
	CHECK(median >= gap_low_ms && median <= gap_high_ms, "%" PRIu64, median);
	if (kind == GEN_AGENT) {
		uint64_t p99 = c.gaps[c.nr_gaps * 99 / 100];

		CHECK(p99 > 15 * 60000 && p99 < 25 * 60000, "%" PRIu64, p99);
	}
	free(c.gaps);
}

static void test_chat_turns(void)
{
	static const unsigned int permille[] = { 280, 420, 560, 600, 720 };

	check_turns(GEN_CHAT, 60000, permille, 5, 78000, 114000);
}

static void test_agent_turns(void)
{
	static const unsigned int permille[] = { 840, 980, 970 };

	check_turns(GEN_AGENT, 60000, permille, 3, 15000, 19000);
}

static void test_rag_turns(void)
{
	static const unsigned int permille[] = { 300, 400 };

	check_turns(GEN_RAG, 30000, permille, 2, 60000, 80000);
}

static struct gen_params mix(uint64_t seed)
{
	return (struct gen_params) {
		.seed = seed,
		.users = { 12, 6, 6 },
		.context_tokens_max = 65536,
	};
}

/* An id has one parent for ever, new ids come in order, and time goes on. */
static void check_forest(const struct gen_params *p, unsigned int requests)
{
	uint64_t room = 1 << 22, known = 0, before_ms = 0;
	uint64_t *parent = malloc(room * sizeof(*parent));
	struct gen *g = gen_new(p);
	struct gen_request r;

	for (unsigned int i = 0; i < requests; i++) {
		uint64_t up = UINT64_MAX;

		CHECK(gen_next(g, &r) == 0);
		CHECK(r.ts_ms >= before_ms);
		before_ms = r.ts_ms;
		CHECK(r.nr_ids > 0 && r.nr_ids == r.input_len / TRACE_BLOCK_TOKENS);
		CHECK(r.input_len <= p->context_tokens_max && r.output_len > 0);
		for (size_t j = 0; j < r.nr_ids; j++) {
			uint64_t id = r.ids[j];

			CHECK(id <= known && id < room);
			if (id == known)
				parent[known++] = up;
			CHECK(parent[id] == up, "id %" PRIu64, id);
			up = id;
		}
	}
	CHECK(known == gen_blocks(g));
	gen_free(g);
	free(parent);
}

static void test_forest(void)
{
	struct gen_params p = mix(7);

	check_forest(&p, 20000);
	if (unit_failed)
		return;
	/* The smallest context: shared heads alone would fill it. */
	p.context_tokens_max = 4096;
	check_forest(&p, 5000);
}

/* Share of block accesses a cache without limit would have had. */
static uint64_t reuse_permille(enum gen_kind kind)
{
	struct gen_params p = params_of(kind, 20);
	struct gen *g = gen_new(&p);
	struct gen_request r;
	uint64_t accesses = 0, blocks;

	for (int i = 0; i < 10000; i++) {
		if (gen_next(g, &r))
			abort();
		accesses += r.nr_ids;
	}
	blocks = gen_blocks(g);
	gen_free(g);
	return 1000 - blocks * 1000 / accesses;
}

static void test_sharing(void)
{
	uint64_t chat = reuse_permille(GEN_CHAT);
	uint64_t agent = reuse_permille(GEN_AGENT);
	uint64_t rag = reuse_permille(GEN_RAG);

	CHECK(chat > 300 && chat < 500, "%" PRIu64, chat);
	CHECK(agent > 930 && agent < 980, "%" PRIu64, agent);
	CHECK(rag > 550 && rag < 800, "%" PRIu64, rag);
}

/* Generates into memory; the caller frees @text. */
static void write_trace(const struct gen_params *p, const struct gen_limits *l,
			char **text, size_t *bytes, struct gen_totals *totals)
{
	FILE *f = open_memstream(text, bytes);

	if (!f || gen_csv_write(f, p, l, totals))
		abort();
	fclose(f);
}

static uint64_t hash_text(const char *text, size_t bytes)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < bytes; i++)
		hash = trace_mix64(hash ^ (unsigned char)text[i]);
	return hash;
}

static void test_golden(void)
{
	struct gen_limits limits = { .requests = 3000 };
	struct gen_totals totals;
	uint64_t hash[3];
	size_t bytes;
	char *text;

	for (int i = 0; i < 3; i++) {
		struct gen_params p = mix(i == 2 ? 43 : 42);

		write_trace(&p, &limits, &text, &bytes, &totals);
		CHECK(totals.requests == 3000);
		hash[i] = hash_text(text, bytes);
		free(text);
	}
	CHECK(hash[0] == hash[1] && hash[0] != hash[2]);
	CHECK(hash[0] == 0xc26547c3f2c88bbbULL, "0x%" PRIx64, hash[0]);
}

/* What is written is what was generated, as the trace reader understands it. */
static void test_round_trip(void)
{
	struct gen_limits limits = { .requests = 2000 };
	struct gen_params p = mix(9);
	struct gen_totals totals;
	struct trace_request got;
	struct gen_request want;
	struct trace *t;
	struct gen *g;
	size_t bytes;
	char *text;

	write_trace(&p, &limits, &text, &bytes, &totals);
	CHECK(!trace_open_stream(fmemopen(text, bytes, "r"), "memory", &t),
	      "%s", trace_error(t));
	g = gen_new(&p);
	for (int i = 0; i < 2000; i++) {
		CHECK(gen_next(g, &want) == 0);
		CHECK(trace_next(t, &got) == 1, "%s", trace_error(t));
		CHECK(got.ts_ms == want.ts_ms && got.input_len == want.input_len &&
		      got.output_len == want.output_len &&
		      got.session == (int64_t)want.session);
		CHECK(got.nr_ids == want.nr_ids &&
		      !memcmp(got.ids, want.ids, want.nr_ids * sizeof(*want.ids)));
	}
	CHECK(trace_next(t, &got) == 0 && trace_repeats(t) == 0);
	trace_close(t);
	gen_free(g);
	free(text);
}

static void test_ends(void)
{
	struct gen_params p = mix(1);
	struct gen_limits by_blocks = { .requests = 100000, .blocks = 5000 };
	struct gen_limits by_time = { .ms = 30 * 60000 };
	struct gen_totals totals;
	size_t bytes;
	char *text;

	write_trace(&p, &by_blocks, &text, &bytes, &totals);
	CHECK(totals.blocks >= 5000 && totals.blocks < 5000 + 65536 / 512);
	free(text);
	write_trace(&p, &by_time, &text, &bytes, &totals);
	CHECK(totals.span_ms < 30 * 60000 && totals.span_ms > 25 * 60000);
	CHECK(totals.by_kind[GEN_CHAT] && totals.by_kind[GEN_AGENT] &&
	      totals.by_kind[GEN_RAG]);
	free(text);
}

static const struct unit_test tests[] = {
	{ "gen_distributions", test_distributions },
	{ "gen_chat_turns", test_chat_turns },
	{ "gen_agent_turns", test_agent_turns },
	{ "gen_rag_turns", test_rag_turns },
	{ "gen_forest", test_forest },
	{ "gen_sharing", test_sharing },
	{ "gen_golden", test_golden },
	{ "gen_round_trip", test_round_trip },
	{ "gen_ends", test_ends },
};

UNIT_MAIN(tests)
