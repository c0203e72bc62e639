// SPDX-License-Identifier: GPL-2.0
/*
 * Trace reader: both formats, plain and compressed, good and malformed input,
 * and a run of random damage done to good traces.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "../kvtier/gen_rng.h"
#include "../kvtier/trace.h"
#include "unit.h"

#define HEADER TRACE_CSV_HEADER "\n"

static const char csv[] = HEADER
	"0,1024,10,-1,0-1\n"
	"5,2048,20,7,0 3-5 9\r\n"
	"\n"
	"9,100,1,8,\n"
	"10,512,1,8,4611686018427387903";

static const char json[] =
	"{\"timestamp\": 0, \"input_length\": 1024, \"output_length\": 10, "
	"\"hash_ids\": [0, 1]}\n"
	"{\"hash_ids\": [0,3,4,5,9], \"other\": {\"a\": [1]}, \"timestamp\": 5.5, "
	"\"input_length\": 2048, \"output_length\": 20}\n"
	"{\"timestamp\":9,\"input_length\":100,\"output_length\":1,\"hash_ids\":[]}\r\n"
	"{\"timestamp\":10,\"input_length\":512,\"output_length\":1,"
	"\"hash_ids\":[4611686018427387903]}";

static struct trace *open_bytes(const void *bytes, size_t nr, int *err)
{
	struct trace *trace = NULL;
	FILE *f = fmemopen((void *)(uintptr_t)bytes, nr, "r");

	*err = f ? trace_open_stream(f, "memory", &trace) : -errno;
	return trace;
}

/* Reads to the end; returns the last result, the number of requests in @nr. */
static int drain(struct trace *t, size_t *nr)
{
	struct trace_request r;
	uint64_t sum = 0;
	int got;

	*nr = 0;
	while ((got = trace_next(t, &r)) == 1) {
		for (size_t i = 0; i < r.nr_ids; i++)
			sum += r.ids[i];
		(*nr)++;
	}
	/* Keeps the reads from being optimised away. */
	return got == 0 && sum == UINT64_MAX ? 2 : got;
}

static void check_good(const void *bytes, size_t nr, bool is_csv)
{
	static const uint64_t ids[] = { 0, 3, 4, 5, 9 };
	struct trace_request r;
	struct trace *t;
	int err;

	t = open_bytes(bytes, nr, &err);
	CHECK(err == 0, "%s", trace_error(t));
	CHECK(!strcmp(trace_format(t), is_csv ? "csv" : "json-lines"));
	CHECK(trace_next(t, &r) == 1, "%s", trace_error(t));
	CHECK(r.ts_ms == 0 && r.input_len == 1024 && r.output_len == 10);
	CHECK(r.session == -1 && r.nr_ids == 2 && r.ids[0] == 0 && r.ids[1] == 1);
	CHECK(trace_next(t, &r) == 1, "%s", trace_error(t));
	CHECK(r.ts_ms == 5 && r.session == (is_csv ? 7 : -1));
	CHECK(r.nr_ids == 5 && !memcmp(r.ids, ids, sizeof(ids)));
	CHECK(trace_skip(t) == 1);
	CHECK(trace_next(t, &r) == 1, "%s", trace_error(t));
	CHECK(r.nr_ids == 1 && r.ids[0] == TRACE_ID_LIMIT - 1);
	CHECK(r.line == (is_csv ? 6 : 4), "line %lu", r.line);
	CHECK(trace_next(t, &r) == 0);
	CHECK(trace_next(t, &r) == 0);
	CHECK(trace_repeats(t) == 0);
	trace_close(t);
}

static void test_formats(void)
{
	check_good(csv, strlen(csv), true);
	if (!unit_failed)
		check_good(json, strlen(json), false);
}

/* The same text, compressed; in two frames when @split is not 0. */
static size_t compress(const char *text, size_t bytes, size_t split, char *out,
		       size_t room)
{
	size_t at = 0;

	if (split)
		at = ZSTD_compress(out, room, text, split, 3);
	return at + ZSTD_compress(out + at, room - at, text + split, bytes - split, 3);
}

static void test_zstd(void)
{
	char out[4096];
	size_t whole = compress(csv, strlen(csv), 0, out, sizeof(out));
	size_t nr;
	struct trace *t;
	int err;

	check_good(out, whole, true);
	if (unit_failed)
		return;
	/* A frame cut anywhere is an error with a message, never a short trace. */
	for (size_t cut = 4; cut < whole; cut++) {
		t = open_bytes(out, cut, &err);
		if (!err)
			err = drain(t, &nr);
		CHECK(err == -EINVAL, "cut at %zu: %d", cut, err);
		CHECK(strstr(trace_error(t), "compressed") ||
		      strstr(trace_error(t), "header"), "%s", trace_error(t));
		trace_close(t);
	}
	whole = compress(csv, strlen(csv), 50, out, sizeof(out));
	check_good(out, whole, true);
	if (unit_failed)
		return;
	whole = compress(json, strlen(json), 0, out, sizeof(out));
	check_good(out, whole, false);
}

static void test_long_zstd(void)
{
	/* Many times the size of every buffer, lines across their edges. */
	size_t room = 8 << 20, len, packed_len, nr;
	char *text = malloc(room), *packed = malloc(room);
	struct trace *t;
	int err;

	len = (size_t)sprintf(text, HEADER);
	for (unsigned int i = 0; i < 200000; i++)
		len += (size_t)sprintf(text + len, "%u,512,1,-1,%u-%u\n", i, i, i + 3);
	packed_len = ZSTD_compress(packed, room, text, len, 1);
	t = open_bytes(packed, packed_len, &err);
	CHECK(!err, "%s", trace_error(t));
	CHECK(drain(t, &nr) == 0, "%s", trace_error(t));
	CHECK(nr == 200000, "%zu", nr);
	trace_close(t);
	free(text);
	free(packed);
}

struct bad {
	const char *text;
	const char *line;	/* in the message */
	const char *why;	/* part of the message */
};

static void check_bad(const struct bad *b)
{
	struct trace *t;
	size_t nr;
	int err;

	t = open_bytes(b->text, strlen(b->text), &err);
	if (!err)
		err = drain(t, &nr);
	CHECK(err == -EINVAL, "%d for %.60s", err, b->text);
	CHECK(strstr(trace_error(t), b->line), "%s", trace_error(t));
	CHECK(strstr(trace_error(t), b->why), "%s", trace_error(t));
	CHECK(trace_skip(t) == err);
	trace_close(t);
}

static void test_bad_csv(void)
{
	static const struct bad bad[] = {
		{ "\n\n", "line 3", "empty" },
		{ "id,what\n1,2\n", "line 1", "neither" },
		{ "1,2,3,4,5\n", "line 1", "neither" },
		{ HEADER "1,2,3\n", "line 2", "output_len" },
		{ HEADER "\n,2,3,4,5\n", "line 3", "ts_ms" },
		{ HEADER "-1,2,3,4,5\n", "line 2", "ts_ms" },
		{ HEADER "1,2.5,3,4,5\n", "line 2", "input_len" },
		{ HEADER "1,2,3,-2,5\n", "line 2", "session" },
		{ HEADER "1,2,3,9223372036854775808,5\n", "line 2", "session" },
		{ HEADER "18446744073709551616,2,3,4,5\n", "line 2", "ts_ms" },
		{ HEADER "1,2,3,4,5\n1,2,3,4,5-\n", "line 3", "run" },
		{ HEADER "1,2,3,4,5-4\n", "line 2", "backwards" },
		{ HEADER "1,2,3,4,4611686018427387904\n", "line 2", "too large" },
		{ HEADER "1,2,3,4,1-2-3\n", "line 2", "run" },
		{ HEADER "1,2,3,4,1,2\n", "line 2", "ids" },
		{ HEADER "1,2,3,4,x\n", "line 2", "ids" },
		{ HEADER "1,2,3,4,0-262144\n", "line 2", "more than" },
		{ HEADER "1,2,3,4,0-99999999999\n", "line 2", "more than" },
		{ HEADER "1,2,3,4,0-200000 0-200000 0-200000\n", "line 2",
		  "more than" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad) && !unit_failed; i++)
		check_bad(&bad[i]);
}

#define J(ts, ids) "{\"timestamp\":" ts ",\"input_length\":1," \
	"\"output_length\":1,\"hash_ids\":" ids "}"

static void test_bad_json(void)
{
	static const struct bad bad[] = {
		{ "{}\n", "line 1", "timestamp" },
		{ J("1", "[1]") "\n{\"timestamp\":", "line 2", "" },
		{ J("1", "[1]") " x\n", "line 1", "" },
		{ J("1", "[1]") J("1", "[1]") "\n", "line 1", "" },
		{ J("1", "[1]") "\n[1]\n", "line 2", "not a JSON object" },
		{ J("-1", "[1]"), "line 1", "timestamp" },
		{ J("1e300", "[1]"), "line 1", "timestamp" },
		{ J("NaN", "[1]"), "line 1", "" },
		{ J("\"1\"", "[1]"), "line 1", "timestamp" },
		{ J("1", "[-1]"), "line 1", "hash_ids[0]" },
		{ J("1", "[1,2.5]"), "line 1", "hash_ids[1]" },
		{ J("1", "[1,null]"), "line 1", "hash_ids[1]" },
		{ J("1", "[99999999999999999999999]"), "line 1", "hash_ids[0]" },
		{ J("1", "{\"a\":1}"), "line 1", "not an array" },
		{ J("1", "[[[[[[[[[[[[[]]]]]]]]]]]]]"), "line 1", "nesting" },
		{ "{\"timestamp\":1,\"input_length\":1,\"output_length\":1}",
		  "line 1", "hash_ids" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad) && !unit_failed; i++)
		check_bad(&bad[i]);
}

static void test_limits(void)
{
	size_t room = TRACE_LINE_BYTES_MAX + 4096, len, nr;
	char *text = malloc(room);
	struct trace_request r;
	struct trace *t;
	int err;

	/* The longest request that is allowed ... */
	len = (size_t)sprintf(text, HEADER "1,2,3,4,0-%u\n", TRACE_IDS_MAX - 1);
	t = open_bytes(text, len, &err);
	CHECK(!err && trace_next(t, &r) == 1 && r.nr_ids == TRACE_IDS_MAX);
	trace_close(t);
	/* ... a line that is too long ... */
	len = (size_t)sprintf(text, HEADER "1,2,3,4,");
	memset(text + len, '1', room - len);
	t = open_bytes(text, room, &err);
	CHECK(!err && drain(t, &nr) == -EINVAL);
	CHECK(strstr(trace_error(t), "line 2: line too long"), "%s", trace_error(t));
	trace_close(t);
	/* ... more JSON values than may be built ... */
	len = (size_t)sprintf(text, "{\"timestamp\":[");
	for (nr = 0; nr < TRACE_IDS_MAX + 100; nr++)
		len += (size_t)sprintf(text + len, "1,");
	t = open_bytes(text, len, &err);
	CHECK(!err && drain(t, &nr) == -EINVAL);
	CHECK(strstr(trace_error(t), "more than"), "%s", trace_error(t));
	trace_close(t);
	/* ... and a byte that would end the line early. */
	len = (size_t)sprintf(text, HEADER "1,2,3,4,5 6\n");
	text[len - 3] = '\0';
	t = open_bytes(text, len, &err);
	CHECK(!err && drain(t, &nr) == -EINVAL && strstr(trace_error(t), "NUL"));
	trace_close(t);
	free(text);
}

static void test_repeats(void)
{
	static const char text[] = HEADER "1,2,3,4,1-3 2-5 1 9\n1,2,3,4,1 1\n";
	static const uint64_t want[] = { 1, 2, 3, 4, 5, 9 };
	struct trace_request r;
	struct trace *t;
	int err;

	t = open_bytes(text, strlen(text), &err);
	CHECK(!err && trace_next(t, &r) == 1);
	CHECK(r.nr_ids == 6 && !memcmp(r.ids, want, sizeof(want)));
	CHECK(trace_repeats(t) == 3);
	CHECK(trace_next(t, &r) == 1 && r.nr_ids == 1);
	CHECK(trace_repeats(t) == 4);
	trace_close(t);
}

/* Ids in no order, so that the repeat finder's probe runs get long and mixed. */
static void test_many_ids(void)
{
	size_t room = 4 << 20, len = (size_t)strlen(HEADER);
	char *text = malloc(room);
	struct gen_rng rng;
	struct trace_request r;
	struct trace *t;
	int err;

	memcpy(text, HEADER, len);
	for (unsigned int line = 0; line < 200; line++) {
		/* Sizes that make the table grow, and then reset by walking. */
		unsigned int nr = line % 7 == 0 ? 3000 : 1 + line;

		len += (size_t)sprintf(text + len, "%u,1,1,-1,", line);
		gen_rng_init(&rng, 5, line);
		for (unsigned int i = 0; i < nr; i++)
			len += (size_t)sprintf(text + len, " %" PRIu64,
					       gen_rng_next(&rng) >> 20);
		text[len++] = '\n';
	}
	t = open_bytes(text, len, &err);
	CHECK(!err, "%s", trace_error(t));
	for (unsigned int line = 0; line < 200; line++) {
		unsigned int nr = line % 7 == 0 ? 3000 : 1 + line;

		CHECK(trace_next(t, &r) == 1 && r.nr_ids == nr);
		gen_rng_init(&rng, 5, line);
		for (unsigned int i = 0; i < nr; i++)
			CHECK(r.ids[i] == gen_rng_next(&rng) >> 20);
	}
	CHECK(trace_repeats(t) == 0);
	trace_close(t);
	free(text);
}

/*
 * Flips, cuts and copies pieces of good traces. Whatever comes of it: the reader
 * ends, with a message if not at the end of the input.
 */
static void damage(struct gen_rng *rng, char *text, size_t *len)
{
	for (uint64_t n = 1 + gen_rng_below(rng, 6); n; n--) {
		size_t at = gen_rng_below(rng, *len);

		switch (gen_rng_below(rng, 4)) {
		case 0:
			text[at] ^= (char)(1 << gen_rng_below(rng, 8));
			break;
		case 1:
			text[at] = "\n0123456789-, {}[]\".e"[gen_rng_below(rng, 21)];
			break;
		case 2:
			memmove(text + at / 2, text + at, *len - at);
			break;
		default:
			*len = 1 + gen_rng_below(rng, *len);
		}
	}
}

static void test_damage(void)
{
	unsigned long ended = 0, refused = 0;
	static char packed[2][1024];
	static const char * const from[] = { csv, json, packed[0], packed[1] };
	char text[4096];
	size_t packed_len[2];
	struct gen_rng rng;

	packed_len[0] = compress(csv, strlen(csv), 0, packed[0], 1024);
	packed_len[1] = compress(json, strlen(json), 40, packed[1], 1024);
	gen_rng_init(&rng, 1, 1);
	for (unsigned int round = 0; round < 20000; round++) {
		size_t lens[] = { strlen(csv), strlen(json), packed_len[0],
				  packed_len[1] };
		size_t len = lens[round % 4], nr;
		struct trace *t;
		int err;

		memcpy(text, from[round % 4], len);
		damage(&rng, text, &len);
		t = open_bytes(text, len, &err);
		if (!err)
			err = drain(t, &nr);
		CHECK(err == 0 || err == -EINVAL, "round %u: %d", round, err);
		CHECK(!err || strlen(trace_error(t)) > 10);
		ended += !err;
		refused += err != 0;
		trace_close(t);
	}
	CHECK(ended > 100 && refused > 1000, "%lu %lu", ended, refused);
}

static void test_no_file(void)
{
	struct trace_request r;
	struct trace *t;

	CHECK(trace_open("/nonexistent/trace", &t) == -ENOENT);
	CHECK(strstr(trace_error(t), "/nonexistent/trace: No such file"));
	CHECK(trace_next(t, &r) == -ENOENT);
	trace_close(t);
}

static void test_keys(void)
{
	static const unsigned char zero[TRACE_KEY_BYTES];
	static unsigned char keys[2000][TRACE_KEY_BYTES];
	unsigned char again[TRACE_KEY_BYTES];
	uint64_t hash = 0;

	for (uint64_t i = 0; i < 2000; i++) {
		trace_key(i / 1000, i % 1000, keys[i]);
		CHECK(memcmp(keys[i], zero, sizeof(zero)));
		for (unsigned int j = 0; j < TRACE_KEY_BYTES; j++)
			hash = trace_mix64(hash ^ keys[i][j]);
		for (uint64_t k = 0; k < i; k++)
			CHECK(memcmp(keys[i], keys[k], TRACE_KEY_BYTES));
	}
	trace_key(1, 7, again);
	CHECK(!memcmp(again, keys[1007], TRACE_KEY_BYTES));
	/* Keys must stay what they are: blocks may outlive this build. */
	CHECK(hash == 0x98e1b73ac35e0b88ULL, "0x%" PRIx64, hash);
}

static const struct unit_test tests[] = {
	{ "trace_formats", test_formats },
	{ "trace_zstd", test_zstd },
	{ "trace_long_zstd", test_long_zstd },
	{ "trace_bad_csv", test_bad_csv },
	{ "trace_bad_json", test_bad_json },
	{ "trace_limits", test_limits },
	{ "trace_repeats", test_repeats },
	{ "trace_many_ids", test_many_ids },
	{ "trace_damage", test_damage },
	{ "trace_no_file", test_no_file },
	{ "trace_keys", test_keys },
};

UNIT_MAIN(tests)
