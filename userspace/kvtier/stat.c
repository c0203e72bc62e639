// SPDX-License-Identifier: GPL-2.0
/*
 * kvtier stat: counters of a pool and its tiers, once or again and again
 */
#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "cmd.h"
#include "sysfs.h"

struct sample {
	uint64_t time_ns;
	struct kvtier_stat pool;
	int nr_tiers;
	struct kvtier_tier_stat tiers[KVTIER_TIERS_MAX];
	int nr_infos;
	struct kvtier_tier_info infos[KVTIER_TIERS_MAX];
};

#define FIELD(type, member)	{ #member, offsetof(struct type, member) }

struct field {
	const char *key;
	size_t offset;
};

static const struct field pool_fields[] = {
	{ "blocks", offsetof(struct kvtier_stat, nr_blocks) },
	FIELD(kvtier_stat, used_bytes), FIELD(kvtier_stat, hits),
	FIELD(kvtier_stat, misses), FIELD(kvtier_stat, unreached),
	FIELD(kvtier_stat, puts), FIELD(kvtier_stat, dedups),
	FIELD(kvtier_stat, dedup_waits), FIELD(kvtier_stat, aborts),
	FIELD(kvtier_stat, evictions), FIELD(kvtier_stat, drops),
	FIELD(kvtier_stat, promotions), FIELD(kvtier_stat, demotions),
	FIELD(kvtier_stat, leases), FIELD(kvtier_stat, meta_bytes),
	FIELD(kvtier_stat, meta_bytes_per_block),
	FIELD(kvtier_stat, lost_touches),
	FIELD(kvtier_stat, regions_quarantined),
	FIELD(kvtier_stat, moves_dmaengine), FIELD(kvtier_stat, moves_cpu),
};

static const struct field tier_fields[] = {
	FIELD(kvtier_tier_stat, capacity_bytes),
	FIELD(kvtier_tier_stat, used_bytes),
	{ "blocks", offsetof(struct kvtier_tier_stat, nr_blocks) },
	FIELD(kvtier_tier_stat, hits),
	FIELD(kvtier_tier_stat, promotions_in),
	FIELD(kvtier_tier_stat, promotions_out),
	FIELD(kvtier_tier_stat, demotions_in),
	FIELD(kvtier_tier_stat, demotions_out),
	FIELD(kvtier_tier_stat, evictions),
	FIELD(kvtier_tier_stat, read_bytes),
	FIELD(kvtier_tier_stat, write_bytes),
	FIELD(kvtier_tier_stat, dma_bytes),
	FIELD(kvtier_tier_stat, io_errors),
	FIELD(kvtier_tier_stat, quarantined_bytes),
	FIELD(kvtier_tier_stat, read_errors),
	FIELD(kvtier_tier_stat, checksum_errors),
	FIELD(kvtier_tier_stat, write_errors),
	FIELD(kvtier_tier_stat, memory_errors),
	FIELD(kvtier_tier_stat, retired_bytes),
};

static const struct cmd_column pool_cols[] = {
	{ "pool", "Pool", CMD_COUNT },
	{ "blocks", "Blocks", CMD_COUNT },
	{ "used_bytes", "Used", CMD_BYTES },
	{ "hits", "Hits", CMD_COUNT },
	{ "misses", "Misses", CMD_COUNT },
	{ "unreached", "Unreached", CMD_COUNT },
	{ "hit_rate", "Hit rate", CMD_PERCENT },
	{ "hits_per_s", "Hits/s", CMD_COUNT },
	{ "misses_per_s", "Misses/s", CMD_COUNT },
	{ "puts", "Puts", CMD_COUNT },
	{ "puts_per_s", "Puts/s", CMD_COUNT },
	{ "dedups", "Deduplicated", CMD_COUNT },
	{ "dedup_waits", "  after waiting", CMD_COUNT },
	{ "aborts", "Aborted", CMD_COUNT },
	{ "evictions", "Evicted", CMD_COUNT },
	{ "drops", "Dropped", CMD_COUNT },
	{ "promotions", "Promoted", CMD_COUNT },
	{ "demotions", "Demoted", CMD_COUNT },
	{ "prefetches", "Prefetched", CMD_COUNT },
	{ "prefetches_used", "  and read", CMD_COUNT },
	{ "prefetches_unread", "  and gone unread", CMD_COUNT },
	{ "leases", "Leases", CMD_COUNT },
	{ "moves_dmaengine", "Moves by DMA engine", CMD_COUNT },
	{ "moves_cpu", "Moves by CPU", CMD_COUNT },
	{ "meta_bytes", "Metadata", CMD_BYTES },
	{ "meta_bytes_per_block", "Metadata per block", CMD_BYTES },
	{ "lost_touches", "Uses not seen", CMD_COUNT },
	{ "regions_quarantined", "Regions quarantined", CMD_COUNT },
	{ NULL, NULL, CMD_TEXT },
};

static const struct cmd_column tier_cols[] = {
	{ "tier", "TIER", CMD_TEXT },
	{ "rank", "RANK", CMD_COUNT },
	{ "capacity_bytes", "SIZE", CMD_BYTES },
	{ "used_bytes", "USED", CMD_BYTES },
	{ "blocks", "BLOCKS", CMD_COUNT },
	{ "hits", "HITS", CMD_COUNT },
	{ "promotions_in", "UP IN", CMD_COUNT },
	{ "promotions_unread", "UNREAD", CMD_COUNT },
	{ "promotions_out", "UP OUT", CMD_COUNT },
	{ "demotions_in", "DOWN IN", CMD_COUNT },
	{ "demotions_out", "DOWN OUT", CMD_COUNT },
	{ "evictions", "EVICTED", CMD_COUNT },
	{ "read_bytes", "READ", CMD_BYTES },
	{ "write_bytes", "WRITTEN", CMD_BYTES },
	{ "dma_bytes", "BY DMA", CMD_BYTES },
	{ "io_errors", "ERRORS", CMD_COUNT },
	{ NULL, NULL, CMD_TEXT },
};

static uint64_t value_of(const void *base, const struct field *field)
{
	uint64_t value;

	memcpy(&value, (const char *)base + field->offset, sizeof(value));
	return value;
}

static void add_fields(struct json_object *obj, const void *base,
		       const struct field *fields, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		cmd_add_u64(obj, fields[i].key, value_of(base, &fields[i]));
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int take(struct kvtier_pool *pool, struct sample *s)
{
	s->pool = (struct kvtier_stat)KVTIER_STAT_INIT;
	s->time_ns = now_ns();
	s->nr_tiers = kvtier_pool_stat(pool, &s->pool, s->tiers);
	if (s->nr_tiers < 0)
		return s->nr_tiers;
	s->nr_infos = kvtier_pool_tiers(pool, s->infos);
	return s->nr_infos < 0 ? s->nr_infos : 0;
}

static const char *name_of(const struct sample *s, uint32_t tier_id)
{
	int i;

	for (i = 0; i < s->nr_infos; i++)
		if (s->infos[i].id == tier_id)
			return s->infos[i].name;
	return "?";
}

/* Counters that STAT does not have; older modules have not all of them. */
static void add_sysfs(struct json_object *obj, const char *dir, const char *const *names,
		      size_t nr)
{
	uint64_t value;
	size_t i;

	for (i = 0; i < nr; i++) {
		if (!sysfs_read_u64(&value, "%s/%s", dir, names[i]))
			cmd_add_u64(obj, names[i], value);
	}
}

static struct json_object *tiers_json(uint32_t pool_id, const struct sample *s)
{
	static const char *const names[] = {
		"promotions_unread", "prefetches", "prefetches_used", "prefetches_unread",
		"evicted_room", "evicted_quota", "evicted_ttl", "evicted_worth", "evicted_io",
		"evicted_lost", "evicted_detach", "dropped", "demoted_bytes", "log_bytes",
		"clean_demotions", "copy_bytes",
	};
	struct json_object *array = json_object_new_array();
	char dir[SYSFS_PATH_MAX];
	int i;

	for (i = 0; i < s->nr_tiers; i++) {
		const struct kvtier_tier_stat *tier = &s->tiers[i];
		struct json_object *obj = json_object_new_object();

		snprintf(dir, sizeof(dir), "class/kvtier/kvtier%u/tiers/%s", pool_id,
			 name_of(s, tier->id));
		cmd_add_str(obj, "tier", name_of(s, tier->id));
		cmd_add_u64(obj, "id", tier->id);
		cmd_add_u64(obj, "rank", tier->rank);
		add_fields(obj, tier, tier_fields, ARRAY_SIZE(tier_fields));
		add_sysfs(obj, dir, names, ARRAY_SIZE(names));
		cmd_append(array, obj);
	}
	return array;
}

static void add_rates(struct json_object *obj, const struct sample *s,
		      const struct sample *before)
{
	double seconds = (double)(s->time_ns - before->time_ns) / 1e9;
	const struct kvtier_stat *a = &before->pool, *b = &s->pool;

	if (seconds <= 0)
		return;
	cmd_add_double(obj, "seconds", seconds);
	cmd_add_u64(obj, "hits_per_s",
		    (uint64_t)((double)(b->hits - a->hits) / seconds));
	cmd_add_u64(obj, "misses_per_s",
		    (uint64_t)((double)(b->misses - a->misses) / seconds));
	cmd_add_u64(obj, "puts_per_s",
		    (uint64_t)((double)(b->puts - a->puts) / seconds));
}

static void emit(uint32_t pool_id, const struct sample *s,
		 const struct sample *before)
{
	static const struct cmd_table tables[] = {
		{ "tiers", tier_cols }, { NULL, NULL },
	};
	static const char *const names[] = {
		"prefetches", "prefetches_used", "prefetches_unread",
	};
	struct json_object *obj = json_object_new_object();
	char dir[SYSFS_PATH_MAX];
	uint64_t asked = s->pool.hits + s->pool.misses + s->pool.unreached;

	cmd_add_u64(obj, "pool", pool_id);
	add_fields(obj, &s->pool, pool_fields, ARRAY_SIZE(pool_fields));
	snprintf(dir, sizeof(dir), "class/kvtier/kvtier%u", pool_id);
	add_sysfs(obj, dir, names, ARRAY_SIZE(names));
	if (asked)
		cmd_add_double(obj, "hit_rate",
			       (double)s->pool.hits / (double)asked);
	if (before)
		add_rates(obj, s, before);
	cmd_add(obj, "tiers", tiers_json(pool_id, s));
	cmd_emit_nested(obj, pool_cols, tables);
	fflush(stdout);
}

struct stat_options {
	uint64_t interval_ns;	/* 0: once */
	uint64_t count;
};

static int watch(uint32_t pool_id, struct kvtier_pool *pool,
		 const struct stat_options *o)
{
	const struct timespec pause = {
		.tv_sec = (time_t)(o->interval_ns / 1000000000),
		.tv_nsec = (long)(o->interval_ns % 1000000000),
	};
	struct sample samples[2];
	uint64_t n;
	int ret;

	for (n = 0; n < o->count; n++) {
		if (n)
			nanosleep(&pause, NULL);
		ret = take(pool, &samples[n & 1]);
		if (ret)
			return cmd_fail(ret, NULL, "counters of pool %u",
					pool_id);
		if (!opt.json && n && isatty(STDOUT_FILENO))
			fputs("\033[H\033[2J", stdout);
		else if (!opt.json && n)
			fputc('\n', stdout);
		emit(pool_id, &samples[n & 1], n ? &samples[~n & 1] : NULL);
		if (ferror(stdout))
			break;
	}
	return EXIT_OK;
}

int cmd_stat(int argc, char **argv)
{
	static const struct option options[] = {
		{ "watch", required_argument, NULL, 'w' },
		{ "count", required_argument, NULL, 'n' },
		{ NULL, 0, NULL, 0 },
	};
	struct stat_options so = { .count = 0 };
	struct kvtier_pool *pool;
	uint32_t pool_id;
	int o, status;

	while ((o = getopt_long(argc, argv, "w:n:", options, NULL)) != -1) {
		if (o == 'w' && (cmd_parse_duration(optarg, &so.interval_ns) ||
				 so.interval_ns < 10000000))
			return cmd_usage("--watch '%s' is not a time from 10ms on",
					 optarg);
		if (o == 'n' && (cmd_parse_u64(optarg, UINT64_MAX, &so.count) ||
				 !so.count))
			return cmd_usage("--count '%s' is not a number from 1 on",
					 optarg);
		if (o == '?')
			return cmd_usage("stat: bad option '%s'",
					 argv[optind - 1]);
	}
	if (argc - optind > 1)
		return cmd_usage("stat: what is '%s'?", argv[optind + 1]);
	if (so.count && !so.interval_ns)
		return cmd_usage("--count goes with --watch");
	if (!so.count)
		so.count = so.interval_ns ? UINT64_MAX : 1;
	status = cmd_pick_pool(argv[optind], &pool_id);
	if (!status)
		status = cmd_open_pool(pool_id, &pool);
	if (status)
		return status;
	status = watch(pool_id, pool, &so);
	kvtier_pool_unref(pool);
	return status;
}
