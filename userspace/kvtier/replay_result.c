// SPDX-License-Identifier: GPL-2.0
/*
 * The result of a replay as one JSON object.
 *
 * Two sources, kept apart by name: "clients" is what the processes counted
 * themselves, "pool" and most of "tiers" is what the kernel counted meanwhile
 * (which includes other users of the pool). Times end in _ns, sizes in _bytes.
 */
#include <string.h>

#include <json-c/json.h>

#include "cmd.h"
#include "replay_result.h"

static void add_u64(struct json_object *obj, const char *key, uint64_t value)
{
	json_object_object_add(obj, key, json_object_new_uint64(value));
}

static void add_str(struct json_object *obj, const char *key, const char *value)
{
	json_object_object_add(obj, key, cmd_string(value));
}

static void add_bool(struct json_object *obj, const char *key, bool value)
{
	json_object_object_add(obj, key, json_object_new_boolean(value));
}

/* part / whole with six digits; 0 of nothing is 0. */
static void add_rate(struct json_object *obj, const char *key, uint64_t part,
		     uint64_t whole)
{
	double rate = whole ? (double)part / (double)whole : 0.0;
	char text[32];

	snprintf(text, sizeof(text), "%.6f", rate);
	json_object_object_add(obj, key, json_object_new_double_s(rate, text));
}

static void add_quantiles(struct json_object *obj, const struct replay_hist *h)
{
	add_u64(obj, "count", h->count);
	add_u64(obj, "mean_ns", h->count ? h->sum_ns / h->count : 0);
	add_u64(obj, "p50_ns", replay_hist_quantile(h, 500));
	add_u64(obj, "p90_ns", replay_hist_quantile(h, 900));
	add_u64(obj, "p99_ns", replay_hist_quantile(h, 990));
	add_u64(obj, "max_ns", h->max_ns);
}

/* Points of the distribution, for a chart: [ns, share of values up to it]. */
static void add_curve(struct json_object *obj, const struct replay_hist *h)
{
	struct json_object *curve = json_object_new_array();
	uint64_t seen = 0;

	for (unsigned int i = 0; i < HIST_BUCKETS; i++) {
		struct json_object *point;
		char text[32];

		if (!h->buckets[i])
			continue;
		seen += h->buckets[i];
		point = json_object_new_array();
		json_object_array_add(point,
				      json_object_new_uint64(replay_hist_bucket_ns(i)));
		snprintf(text, sizeof(text), "%.5f", (double)seen / (double)h->count);
		json_object_array_add(point, json_object_new_double_s(
				      (double)seen / (double)h->count, text));
		json_object_array_add(curve, point);
	}
	json_object_object_add(obj, "curve", curve);
}

static void add_latency(struct json_object *list, const char *operation,
			const char *tier, const struct replay_hist *h)
{
	struct json_object *row;

	if (!h->count)
		return;
	row = json_object_new_object();
	add_str(row, "operation", operation);
	add_str(row, "tier", tier);
	add_quantiles(row, h);
	add_curve(row, h);
	json_object_array_add(list, row);
}

static void merge_all(const struct replay_watch *w, size_t offset,
		      struct replay_hist *into)
{
	memset(into, 0, sizeof(*into));
	for (unsigned int p = 0; p < w->o->procs; p++) {
		const char *latency = (const char *)&w->shared->procs[p].latency;

		replay_hist_merge(into, (const void *)(latency + offset));
	}
}

static struct json_object *latencies(const struct replay_watch *w)
{
	struct json_object *list = json_object_new_array();
	static struct replay_hist h;

	merge_all(w, offsetof(struct replay_latency, get_request), &h);
	add_latency(list, "get_request", "all", &h);
	for (unsigned int t = 0; t < w->nr_tiers; t++) {
		merge_all(w, offsetof(struct replay_latency, get_block) +
			  w->tiers[t].info.id * sizeof(h), &h);
		add_latency(list, "get_block", w->tiers[t].info.name, &h);
	}
	for (unsigned int t = 0; t < w->nr_tiers; t++) {
		merge_all(w, offsetof(struct replay_latency, read_block) +
			  w->tiers[t].info.id * sizeof(h), &h);
		add_latency(list, "read_block", w->tiers[t].info.name, &h);
	}
	merge_all(w, offsetof(struct replay_latency, put_block), &h);
	add_latency(list, "put_block", "all", &h);
	return list;
}

static struct json_object *tiers(const struct replay_watch *w,
				 const struct replay_counters *c)
{
	struct json_object *list = json_object_new_array();

	for (unsigned int t = 0; t < w->nr_tiers; t++) {
		const struct kvtier_tier_info *i = &w->tiers[t].info;
		const struct kvtier_tier_stat *d = &w->tiers[t].delta;
		struct json_object *row = json_object_new_object();

		add_u64(row, "id", i->id);
		add_str(row, "name", i->name);
		add_str(row, "type", kvtier_tier_type_name(i->type));
		add_u64(row, "rank", i->rank);
		add_u64(row, "capacity_bytes", i->capacity_bytes);
		add_u64(row, "used_bytes", i->used_bytes);
		add_u64(row, "nr_blocks", i->nr_blocks);
		add_u64(row, "hits", c->hits_by_tier[i->id]);
		add_rate(row, "hit_rate", c->hits_by_tier[i->id], c->asked);
		add_u64(row, "leased", d->hits);
		add_u64(row, "promotions_in", d->promotions_in);
		add_u64(row, "promotions_out", d->promotions_out);
		add_u64(row, "demotions_in", d->demotions_in);
		add_u64(row, "demotions_out", d->demotions_out);
		add_u64(row, "evictions", d->evictions);
		add_u64(row, "read_bytes", d->read_bytes);
		add_u64(row, "write_bytes", d->write_bytes);
		add_u64(row, "dma_bytes", d->dma_bytes);
		add_u64(row, "io_errors", d->io_errors);
		json_object_array_add(list, row);
	}
	return list;
}

static struct json_object *pool(const struct replay_watch *w)
{
	const struct kvtier_stat *a = &w->before, *b = &w->now;
	struct json_object *obj = json_object_new_object();
	uint64_t dma_bytes = 0;

	for (unsigned int t = 0; t < w->nr_tiers; t++)
		dma_bytes += w->tiers[t].delta.dma_bytes;
	add_u64(obj, "id", w->o->pool_id);
	add_bool(obj, "counters_known", w->pool_stat);
	add_u64(obj, "nr_blocks", b->nr_blocks);
	add_u64(obj, "used_bytes", b->used_bytes);
	add_u64(obj, "puts", b->puts - a->puts);
	add_u64(obj, "dedups", b->dedups - a->dedups);
	add_u64(obj, "dedup_waits", b->dedup_waits - a->dedup_waits);
	add_u64(obj, "promotions", b->promotions - a->promotions);
	add_u64(obj, "demotions", b->demotions - a->demotions);
	add_u64(obj, "evictions", b->evictions - a->evictions);
	add_u64(obj, "aborts", b->aborts - a->aborts);
	add_u64(obj, "moves_dmaengine", b->moves_dmaengine - a->moves_dmaengine);
	add_u64(obj, "moves_cpu", b->moves_cpu - a->moves_cpu);
	add_u64(obj, "dma_bytes", dma_bytes);
	add_u64(obj, "meta_bytes_per_block", b->meta_bytes_per_block);
	return obj;
}

static struct json_object *clients(const struct replay_watch *w,
				   const struct replay_counters *c)
{
	struct json_object *obj = json_object_new_object();

	add_u64(obj, "requests", c->requests);
	add_u64(obj, "blocks", c->asked);
	add_u64(obj, "hits", c->hits);
	add_rate(obj, "hit_rate", c->hits, c->asked);
	add_u64(obj, "stored", c->stored);
	add_u64(obj, "existing", c->existing);
	add_u64(obj, "skipped", c->skipped);
	add_u64(obj, "no_space", c->no_space);
	add_u64(obj, "quota", c->quota);
	add_u64(obj, "no_parent", c->no_parent);
	add_u64(obj, "limit", c->limit);
	add_u64(obj, "pinned", c->pinned);
	add_u64(obj, "stale", c->stale);
	add_u64(obj, "io_errors", c->io_errors);
	add_u64(obj, "timeouts", c->timeouts);
	add_u64(obj, "verified_bytes", c->verified_bytes);
	add_u64(obj, "wrong_blocks", c->wrong_blocks);
	add_u64(obj, "wrong_bytes", c->wrong_bytes);
	add_u64(obj, "stored_bytes", c->stored * w->o->block_bytes);
	return obj;
}

/* What one copy for all saves over a cache in each process. */
static struct json_object *dedup(const struct replay_watch *w,
				 const struct replay_seen *seen)
{
	struct json_object *obj = json_object_new_object();
	uint64_t shared, private;

	replay_seen_count(seen, &shared, &private);
	add_u64(obj, "distinct_blocks", shared);
	add_u64(obj, "private_blocks", private);
	add_u64(obj, "saved_blocks", private - shared);
	add_u64(obj, "saved_bytes", (private - shared) * w->o->block_bytes);
	add_rate(obj, "saved_rate", private - shared, private);
	return obj;
}

static struct json_object *trace(const struct replay_watch *w)
{
	const struct replay_survey *s = w->survey;
	struct json_object *obj = json_object_new_object();
	const char *name = strrchr(w->o->trace, '/');

	add_str(obj, "name", name ? name + 1 : w->o->trace);
	add_str(obj, "format", s->format);
	add_u64(obj, "requests", s->requests);
	add_u64(obj, "blocks", s->accesses);
	add_u64(obj, "distinct_blocks", s->distinct);
	add_u64(obj, "repeats_left_out", s->repeats);
	add_u64(obj, "span_ns", s->span_ms * 1000000);
	add_rate(obj, "endless_cache_hit_rate", s->prefix_hits, s->accesses);
	return obj;
}

static struct json_object *options(const struct replay_options *o)
{
	struct json_object *obj = json_object_new_object();

	add_u64(obj, "procs", o->procs);
	add_u64(obj, "block_bytes", o->block_bytes);
	add_str(obj, "identity", o->identity);
	add_u64(obj, "seed", o->seed);
	add_str(obj, "verify", o->verify_full ? "full" : "sample");
	add_rate(obj, "speed", o->speed_milli, 1000);
	return obj;
}

typedef uint64_t (*pick_fn)(const struct watch_sample *s, unsigned int tier,
			    unsigned int id);

static uint64_t pick_hits(const struct watch_sample *s, unsigned int tier,
			  unsigned int id)
{
	(void)tier;
	return s->counters.hits_by_tier[id];
}

static uint64_t pick_used(const struct watch_sample *s, unsigned int tier,
			  unsigned int id)
{
	(void)id;
	return s->used_bytes[tier];
}

static uint64_t pick_promotions(const struct watch_sample *s, unsigned int tier,
				unsigned int id)
{
	(void)id;
	return s->promotions_in[tier];
}

static uint64_t pick_demotions(const struct watch_sample *s, unsigned int tier,
			       unsigned int id)
{
	(void)id;
	return s->demotions_in[tier];
}

/* One list of numbers over time for each tier, in the order of "tiers". */
static struct json_object *tier_series(const struct replay_watch *w, pick_fn pick)
{
	struct json_object *lists = json_object_new_array();

	for (unsigned int t = 0; t < w->nr_tiers; t++) {
		struct json_object *list = json_object_new_array();

		for (unsigned int i = 0; i < w->nr_samples; i++)
			json_object_array_add(list, json_object_new_uint64(
				pick(&w->samples[i], t, w->tiers[t].info.id)));
		json_object_array_add(lists, list);
	}
	return lists;
}

/* One list over time of a number at @offset in a sample. */
static struct json_object *series_of(const struct replay_watch *w, size_t offset)
{
	struct json_object *list = json_object_new_array();

	for (unsigned int i = 0; i < w->nr_samples; i++) {
		uint64_t value;

		memcpy(&value, (const char *)&w->samples[i] + offset, sizeof(value));
		json_object_array_add(list, json_object_new_uint64(value));
	}
	return list;
}

static void add_series(struct json_object *obj, const struct replay_watch *w,
		       const char *key, size_t offset)
{
	json_object_object_add(obj, key, series_of(w, offset));
}

/* Counters as they were at each moment, from the start on. */
static struct json_object *series(const struct replay_watch *w)
{
	struct json_object *obj = json_object_new_object();

	add_series(obj, w, "t_ns", offsetof(struct watch_sample, t_ns));
	add_series(obj, w, "requests",
		   offsetof(struct watch_sample, counters.requests));
	add_series(obj, w, "blocks", offsetof(struct watch_sample, counters.asked));
	add_series(obj, w, "hits", offsetof(struct watch_sample, counters.hits));
	add_series(obj, w, "stored", offsetof(struct watch_sample, counters.stored));
	add_series(obj, w, "evictions", offsetof(struct watch_sample, evictions));
	json_object_object_add(obj, "tier_hits", tier_series(w, pick_hits));
	json_object_object_add(obj, "tier_used_bytes", tier_series(w, pick_used));
	json_object_object_add(obj, "tier_promotions_in",
			       tier_series(w, pick_promotions));
	json_object_object_add(obj, "tier_demotions_in",
			       tier_series(w, pick_demotions));
	return obj;
}

static const char *tier_name(const struct replay_watch *w, uint32_t id)
{
	for (unsigned int t = 0; t < w->nr_tiers; t++) {
		if (w->tiers[t].info.id == id)
			return w->tiers[t].info.name;
	}
	return "?";
}

static struct json_object *wrong_blocks(const struct replay_watch *w)
{
	struct json_object *list = json_object_new_array();
	uint32_t nr = w->shared->nr_wrong;

	for (uint32_t i = 0; i < nr && i < REPLAY_WRONG_MAX; i++) {
		const struct replay_wrong_block *b = &w->shared->wrong[i];
		struct json_object *row = json_object_new_object();
		char key[2 * KVTIER_KEY_BYTES + 1], word[32];

		for (unsigned int k = 0; k < KVTIER_KEY_BYTES; k++)
			snprintf(key + 2 * k, 3, "%02x", b->key[k]);
		add_str(row, "key", key);
		add_u64(row, "id", b->id);
		add_str(row, "tier", tier_name(w, b->tier));
		add_u64(row, "process", b->proc);
		add_u64(row, "offset_bytes", b->what.offset_bytes);
		add_u64(row, "wrong_bytes", b->what.wrong_bytes);
		snprintf(word, sizeof(word), "0x%016llx",
			 (unsigned long long)b->what.want);
		add_str(row, "want", word);
		snprintf(word, sizeof(word), "0x%016llx",
			 (unsigned long long)b->what.got);
		add_str(row, "got", word);
		json_object_array_add(list, row);
	}
	return list;
}

static struct json_object *errors(const struct replay_watch *w)
{
	struct json_object *list = json_object_new_array();

	for (unsigned int p = 0; p < w->o->procs; p++) {
		struct json_object *row;

		if (!w->shared->procs[p].error[0])
			continue;
		row = json_object_new_object();
		add_u64(row, "process", p);
		add_str(row, "message", w->shared->procs[p].error);
		json_object_array_add(list, row);
	}
	return list;
}

struct json_object *replay_result(const struct replay_watch *w,
				  const struct replay_seen *seen,
				  unsigned int failed, bool interrupted)
{
	struct json_object *obj = json_object_new_object();
	const struct watch_sample *last = &w->samples[w->nr_samples - 1];
	struct replay_counters sum;

	watch_sum(w->shared, w->o->procs, &sum);
	add_bool(obj, "passed", !failed && !interrupted && !sum.wrong_blocks);
	add_bool(obj, "interrupted", interrupted);
	add_u64(obj, "failed_processes", failed);
	add_u64(obj, "duration_ns", last->t_ns);
	json_object_object_add(obj, "trace", trace(w));
	json_object_object_add(obj, "options", options(w->o));
	json_object_object_add(obj, "clients", clients(w, &sum));
	json_object_object_add(obj, "dedup", dedup(w, seen));
	json_object_object_add(obj, "pool", pool(w));
	json_object_object_add(obj, "tiers", tiers(w, &sum));
	json_object_object_add(obj, "latency", latencies(w));
	json_object_object_add(obj, "series", series(w));
	json_object_object_add(obj, "wrong", wrong_blocks(w));
	json_object_object_add(obj, "errors", errors(w));
	return obj;
}

bool replay_passed(struct json_object *result)
{
	return json_object_get_boolean(json_object_object_get(result, "passed"));
}
