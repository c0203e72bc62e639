// SPDX-License-Identifier: GPL-2.0
/*
 * Replay: its parts one by one, and whole replays by several processes against a
 * store in memory, a good one and one that misbehaves.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <json-c/json.h>

#include "../kvtier/gen_csv.h"
#include "../kvtier/replay.h"
#include "../kvtier/trace.h"
#include "fake_store.h"
#include "unit.h"

#define BLOCK_BYTES	4196	/* a page and a tail that is no multiple of 8 */

static void test_hist(void)
{
	static struct replay_hist h, sum;

	CHECK(replay_hist_quantile(&h, 500) == 0);
	for (uint64_t ns = 1; ns <= 100000; ns++)
		replay_hist_add(&h, ns * 10, 1);
	for (unsigned int permille = 10; permille <= 1000; permille += 10) {
		uint64_t want = permille * 1000, got = replay_hist_quantile(&h, permille);

		CHECK(got >= want && got <= want + want / 30, "%u: %" PRIu64, permille,
		      got);
	}
	CHECK(replay_hist_quantile(&h, 1000) == 1000000);
	/* Every value is in a bucket that ends at or above it, by 3 % at most. */
	for (uint64_t ns = 0; ns < 1ULL << 46; ns = ns * 5 / 4 + 1) {
		memset(&sum, 0, sizeof(sum));
		replay_hist_add(&sum, ns, 3);
		for (unsigned int i = 0; i < HIST_BUCKETS; i++) {
			if (sum.buckets[i])
				CHECK(replay_hist_bucket_ns(i) >= ns &&
				      replay_hist_bucket_ns(i) <= ns + ns / 31);
		}
		CHECK(sum.count == 3 && sum.sum_ns == 3 * ns);
	}
	memset(&sum, 0, sizeof(sum));
	replay_hist_add(&sum, UINT64_MAX, 1);
	replay_hist_merge(&sum, &h);
	CHECK(sum.count == 100001 && sum.max_ns == UINT64_MAX);
	CHECK(replay_hist_quantile(&sum, 500) >= 500000);
}

/* Every single changed byte is found, by a full check at least. */
static void test_data(void)
{
	uint8_t key[TRACE_KEY_BYTES], other[TRACE_KEY_BYTES];
	static uint8_t block[3 * 4096 + 5];
	struct replay_wrong wrong;
	uint64_t checked;

	trace_key(1, 1, key);
	trace_key(1, 2, other);
	replay_data_fill(key, block, sizeof(block));
	CHECK(replay_data_verify(key, block, sizeof(block), true, &checked, &wrong));
	CHECK(checked == sizeof(block));
	CHECK(replay_data_verify(key, block, sizeof(block), false, &checked, &wrong));
	CHECK(checked == 3 * 64 + 5, "%" PRIu64, checked);
	for (size_t i = 0; i < sizeof(block); i++) {
		block[i] ^= 0x10;
		CHECK(!replay_data_verify(key, block, sizeof(block), true, &checked,
					  &wrong), "byte %zu", i);
		CHECK(wrong.wrong_bytes == 1 && wrong.offset_bytes == i / 8 * 8);
		CHECK((wrong.want ^ wrong.got) == 0x10ULL << (8 * (i % 8)));
		block[i] ^= 0x10;
	}
	CHECK(!replay_data_verify(other, block, sizeof(block), false, &checked, &wrong));
	CHECK(wrong.wrong_bytes > 3 * 50);
	/* A page that is there twice is one that is wrong once. */
	memcpy(block + 4096, block, 4096);
	CHECK(!replay_data_verify(key, block, sizeof(block), false, &checked, &wrong));
	CHECK(wrong.offset_bytes == 4096);
	for (size_t bytes = 1; bytes < 40; bytes++) {
		memset(block, 0xaa, 64);
		replay_data_fill(key, block, bytes);
		CHECK(block[bytes] == 0xaa && block[bytes + 7] == 0xaa);
		CHECK(replay_data_verify(key, block, bytes, true, &checked, &wrong));
		CHECK(checked == bytes);
	}
}

static void test_seen(void)
{
	struct replay_seen *seen = replay_seen_new();
	uint64_t shared, private;
	int status;

	for (uint64_t id = 0; id < 20000; id++) {
		CHECK(replay_seen_add(seen, id * 977) == 1);
		CHECK(replay_seen_add(seen, id / 2 * 977) == 0);
	}
	CHECK(replay_seen_nr(seen) == 20000);
	for (unsigned int p = 0; p < 4; p++) {
		if (fork())
			continue;
		for (uint64_t id = 0; id < 5000 * (p + 1); id++)
			replay_seen_mark(seen, id * 977, p);
		replay_seen_mark(seen, 1, p);	/* not in the table */
		_exit(0);
	}
	for (unsigned int p = 0; p < 4; p++)
		CHECK(wait(&status) > 0 && status == 0);
	replay_seen_count(seen, &shared, &private);
	CHECK(shared == 20000 && private == 50000);
	replay_seen_free(seen);
}

/* --- Whole replays --------------------------------------------------------- */

static char trace_path[64];

/* Writes a mixed trace to a file that goes when the test ends. */
static bool make_trace(uint64_t requests)
{
	struct gen_params p = {
		.seed = 5, .users = { 6, 3, 3 }, .context_tokens_max = 30000,
	};
	struct gen_limits limits = { .requests = requests };
	struct gen_totals totals;
	FILE *f;
	int fd;

	strcpy(trace_path, "/tmp/kvtier-test-XXXXXX");
	fd = mkstemp(trace_path);
	f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!f || gen_csv_write(f, &p, &limits, &totals))
		return false;
	return fclose(f) == 0;
}

static struct replay_options options(unsigned int procs)
{
	return (struct replay_options) {
		.trace = trace_path,
		.procs = procs,
		.block_bytes = BLOCK_BYTES,
		.identity = "test",
		.seed = 3,
		.verify_full = true,
		.timeout_ns = 20000000000ULL,
	};
}

static struct fake_config small_store(void)
{
	return (struct fake_config) {
		.blocks = { 60, 60, 400 }, .block_bytes = BLOCK_BYTES,
	};
}

static uint64_t get(struct json_object *result, const char *part, const char *name)
{
	struct json_object *obj = result, *value;

	if (part && !json_object_object_get_ex(obj, part, &obj))
		return UINT64_MAX;
	if (!json_object_object_get_ex(obj, name, &value))
		return UINT64_MAX;
	return json_object_get_uint64(value);
}

static uint64_t tier_get(struct json_object *result, size_t tier, const char *name)
{
	struct json_object *tiers = json_object_object_get(result, "tiers");

	return get(json_object_array_get_idx(tiers, tier), NULL, name);
}

static struct json_object *run_replay(const struct replay_options *o)
{
	char error[REPLAY_ERROR_BYTES] = "";
	struct json_object *result = NULL;

	if (replay_run(o, &result, error))
		printf("replay: %s\n", error);
	return result;
}

/* What must be so however the store behaves. */
static void check_sums(struct json_object *r)
{
	uint64_t by_tier = 0;

	for (size_t t = 0; t < FAKE_TIERS; t++)
		by_tier += tier_get(r, t, "hits");
	CHECK(by_tier == get(r, "clients", "hits"));
	CHECK(get(r, "clients", "blocks") ==
	      get(r, "clients", "hits") + get(r, "clients", "stored") +
	      get(r, "clients", "existing") + get(r, "clients", "skipped"));
}

static void test_one_process(void)
{
	struct replay_options o = options(1);
	struct fake_config config = {
		.blocks = { 100, 100, 8000 }, .block_bytes = BLOCK_BYTES,
	};
	struct json_object *r;
	double endless, hits;

	CHECK(make_trace(300));
	fake_store_reset(&config);
	r = run_replay(&o);
	CHECK(r && replay_passed(r), "%s", json_object_to_json_string(r));
	check_sums(r);
	if (unit_failed)
		return;
	CHECK(get(r, "clients", "requests") == 300);
	/* With room for all, every block that was there before is a hit. */
	CHECK(get(r, "clients", "stored") == get(r, "trace", "distinct_blocks"));
	CHECK(get(r, "clients", "existing") == 0 && get(r, "clients", "skipped") == 0);
	endless = json_object_get_double(json_object_object_get(
		json_object_object_get(r, "trace"), "endless_cache_hit_rate"));
	hits = json_object_get_double(json_object_object_get(
		json_object_object_get(r, "clients"), "hit_rate"));
	CHECK(endless > 0.3 && endless == hits, "%f %f", endless, hits);
	CHECK(get(r, "dedup", "saved_blocks") == 0);
	CHECK(tier_get(r, 0, "hits") && tier_get(r, 1, "hits") && tier_get(r, 2, "hits"));
	json_object_put(r);
	unlink(trace_path);
}

static void test_processes(void)
{
	struct replay_options o = options(4);
	struct fake_config config = small_store();
	struct fake_totals totals;
	struct json_object *r;

	CHECK(make_trace(1500));
	config.slow_commit = true;
	fake_store_reset(&config);
	r = run_replay(&o);
	CHECK(r && replay_passed(r), "%s", json_object_to_json_string(r));
	check_sums(r);
	if (unit_failed)
		return;
	fake_store_totals(&totals);
	CHECK(totals.leases == 0 && totals.reservations == 0);
	CHECK(totals.puts == get(r, "clients", "stored"));
	CHECK(totals.waits > 0);	/* processes did meet */
	CHECK(get(r, "clients", "requests") == 1500);
	CHECK(get(r, "dedup", "saved_blocks") > 0);
	CHECK(get(r, "pool", "evictions") > 0 && get(r, "pool", "promotions") > 0);
	CHECK(get(r, "clients", "verified_bytes") >=
	      get(r, "clients", "hits") * BLOCK_BYTES);
	/* Again with the same keys: what is still there is hit, not stored. */
	json_object_put(r);
	o.max_requests = 200;
	r = run_replay(&o);
	CHECK(r && replay_passed(r));
	CHECK(get(r, "clients", "requests") == 200);
	json_object_put(r);
	unlink(trace_path);
}

static void test_wrong_bytes(void)
{
	struct replay_options o = options(3);
	struct fake_config config = small_store();
	struct fake_totals totals;
	struct json_object *r, *wrong;

	CHECK(make_trace(400));
	config.corrupt_every = 50;
	fake_store_reset(&config);
	r = run_replay(&o);
	fake_store_totals(&totals);
	CHECK(r && totals.corrupted > 5);
	CHECK(!replay_passed(r));
	CHECK(get(r, "clients", "wrong_blocks") > 0);
	CHECK(get(r, "clients", "wrong_bytes") == get(r, "clients", "wrong_blocks"));
	wrong = json_object_array_get_idx(json_object_object_get(r, "wrong"), 0);
	CHECK(get(wrong, NULL, "offset_bytes") == BLOCK_BYTES / 2 / 8 * 8);
	CHECK(strlen(json_object_get_string(json_object_object_get(wrong, "key"))) == 64);
	json_object_put(r);
	unlink(trace_path);
}

/* Refusals cost blocks, never the run. */
static void test_refusals(void)
{
	struct replay_options o = options(4);
	struct fake_config config = small_store();
	struct fake_totals totals;
	struct json_object *r;

	CHECK(make_trace(600));
	config.no_space_every = 40;
	config.get_no_space_every = 30;
	config.partial_get_every = 3;
	config.unprivileged = true;
	fake_store_reset(&config);
	r = run_replay(&o);
	fake_store_totals(&totals);
	CHECK(r && replay_passed(r), "%s", json_object_to_json_string(r));
	check_sums(r);
	if (unit_failed)
		return;
	CHECK(totals.no_space > 10 && totals.get_no_space > 10);
	CHECK(totals.partial_gets > 10);
	CHECK(get(r, "clients", "no_space") >= totals.no_space);
	CHECK(get(r, "clients", "skipped") > 0);
	CHECK(totals.leases == 0 && totals.reservations == 0);
	CHECK(get(r, "pool", "counters_known") == 0);
	CHECK(get(r, "pool", "promotions") == 0);
	json_object_put(r);
	unlink(trace_path);
}

/* A process that dies or is refused ends the run, and is named. */
static void test_failures(void)
{
	struct replay_options o = options(3);
	struct fake_config config = small_store();
	struct fake_totals totals;
	struct json_object *r, *errors;
	const char *text;

	CHECK(make_trace(600));
	o.timeout_ns = 300000000;
	config.kill_at = 50;
	fake_store_reset(&config);
	r = run_replay(&o);
	fake_store_totals(&totals);
	CHECK(r && totals.killed == 1 && !replay_passed(r));
	CHECK(get(r, NULL, "failed_processes") == 1);
	errors = json_object_object_get(r, "errors");
	CHECK(json_object_array_length(errors) == 1);
	text = json_object_to_json_string(errors);
	CHECK(strstr(text, "killed by signal 9"), "%s", text);
	json_object_put(r);

	config.kill_at = 0;
	config.refuse_at = 50;
	fake_store_reset(&config);
	r = run_replay(&o);
	fake_store_totals(&totals);
	CHECK(r && totals.refused == 1 && !replay_passed(r));
	text = json_object_to_json_string(json_object_object_get(r, "errors"));
	CHECK(strstr(text, "COMMIT: Input\\/output error") && strstr(text, "line "),
	      "%s", text);
	json_object_put(r);
	unlink(trace_path);
}

static void check_refused(const struct replay_options *o, const char *why)
{
	char error[REPLAY_ERROR_BYTES] = "";
	struct json_object *result = NULL;

	CHECK(replay_run(o, &result, error) < 0);
	CHECK(!result && strstr(error, why), "%s", error);
}

static void test_bad_traces(void)
{
	struct replay_options o = options(2);
	struct fake_config config = small_store();
	FILE *f;

	fake_store_reset(&config);
	o.trace = "/nonexistent";
	check_refused(&o, "No such file");
	if (unit_failed)
		return;
	CHECK(make_trace(10));
	o.trace = trace_path;
	f = fopen(trace_path, "a");
	fputs("1,2,3,4,5-1\n", f);
	fclose(f);
	check_refused(&o, "line 12");
	if (unit_failed)
		return;
	f = fopen(trace_path, "w");
	fputs(TRACE_CSV_HEADER "\n", f);
	fclose(f);
	check_refused(&o, "no requests");
	unlink(trace_path);
}

/* At a hundred times its speed a trace of T seconds takes T / 100. */
static void test_speed(void)
{
	struct replay_options o = options(2);
	struct fake_config config = small_store();
	struct json_object *r;
	uint64_t want_ns, took_ns;

	CHECK(make_trace(20));
	fake_store_reset(&config);
	o.speed_milli = 100000;
	r = run_replay(&o);
	CHECK(r && replay_passed(r));
	want_ns = get(r, "trace", "span_ns") / 100;
	took_ns = get(r, NULL, "duration_ns");
	CHECK(want_ns > 100000000, "%" PRIu64, want_ns);
	CHECK(took_ns + 60000000 > want_ns && took_ns < want_ns + 60000000000ULL,
	      "%" PRIu64 " for %" PRIu64, took_ns, want_ns);
	json_object_put(r);
	unlink(trace_path);
}

static const struct unit_test tests[] = {
	{ "replay_hist", test_hist },
	{ "replay_data", test_data },
	{ "replay_seen", test_seen },
	{ "replay_one_process", test_one_process },
	{ "replay_processes", test_processes },
	{ "replay_wrong_bytes", test_wrong_bytes },
	{ "replay_refusals", test_refusals },
	{ "replay_failures", test_failures },
	{ "replay_bad_traces", test_bad_traces },
	{ "replay_speed", test_speed },
};

UNIT_MAIN(tests)
