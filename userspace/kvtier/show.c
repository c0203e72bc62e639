// SPDX-License-Identifier: GPL-2.0
/*
 * Pools and tiers as JSON objects.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "show.h"
#include "sysfs.h"

const struct cmd_column tier_columns[] = {
	{ "name", "TIER", CMD_TEXT },
	{ "type", "TYPE", CMD_TEXT },
	{ "device", "DEVICE", CMD_TEXT },
	{ "state", "STATE", CMD_TEXT },
	{ "id", "ID", CMD_COUNT },
	{ "rank", "RANK", CMD_COUNT },
	{ "capacity_bytes", "SIZE", CMD_BYTES },
	{ "used_bytes", "USED", CMD_BYTES },
	{ "blocks", "BLOCKS", CMD_COUNT },
	{ NULL, NULL, CMD_TEXT },
};

static const struct cmd_column pool_columns[] = {
	{ "pool", "Pool", CMD_COUNT },
	{ "device", "Device", CMD_TEXT },
	{ "uuid", "UUID", CMD_TEXT },
	{ "degraded", "Degraded, members given up", CMD_COUNT },
	{ "unwiped", "Unwiped, members that have left", CMD_COUNT },
	{ "capacity_bytes", "Capacity", CMD_BYTES },
	{ "used_bytes", "Used", CMD_BYTES },
	{ "blocks", "Blocks", CMD_COUNT },
	{ "hits", "Hits", CMD_COUNT },
	{ "misses", "Misses", CMD_COUNT },
	{ "policy", "Policy", CMD_TEXT },
	{ "policies", "Policies", CMD_TEXT },
	{ "watermark_low_percent", "Low watermark, %", CMD_COUNT },
	{ "watermark_high_percent", "High watermark, %", CMD_COUNT },
	{ "reserve_percent", "Reserved at others' expense, %", CMD_COUNT },
	{ "copies_percent", "Copies in a block tier at most, %", CMD_COUNT },
	{ "reservation_timeout_ms", "Reservation timeout, ms", CMD_COUNT },
	{ "prefetch_max_bytes", "Most ahead of need", CMD_BYTES },
	{ "discard", "Discard", CMD_COUNT },
	{ "meta_bytes_per_block", "Metadata bytes per block", CMD_COUNT },
	{ "block_bytes_max", "Largest block", CMD_BYTES },
	{ "leases_max", "Leases per file", CMD_COUNT },
	{ "sessions_max", "Sessions per file", CMD_COUNT },
	{ "features", "Features", CMD_TEXT },
	{ NULL, NULL, CMD_TEXT },
};

void show_sysfs(struct json_object *obj, const char *dir, const char *file)
{
	char text[1024];
	uint64_t number;

	if (sysfs_read(text, sizeof(text), "%s/%s", dir, file))
		return;
	if (!cmd_parse_u64(text, UINT64_MAX, &number))
		cmd_add_u64(obj, file, number);
	else
		cmd_add_str(obj, file, text);
}

static struct json_object *show_tier(const struct kvtier_tier_info *info,
				     uint32_t pool_id)
{
	struct json_object *obj = json_object_new_object();
	char dir[SYSFS_PATH_MAX];

	cmd_add_u64(obj, "id", info->id);
	cmd_add_str(obj, "name", info->name);
	cmd_add_str(obj, "type", kvtier_tier_type_name(info->type));
	cmd_add_u64(obj, "rank", info->rank);
	cmd_add_str(obj, "state", kvtier_tier_state_name(info->state));
	cmd_add_u64(obj, "capacity_bytes", info->capacity_bytes);
	cmd_add_u64(obj, "used_bytes", info->used_bytes);
	cmd_add_u64(obj, "blocks", info->nr_blocks);
	snprintf(dir, sizeof(dir), "class/kvtier/kvtier%u/tiers/%s", pool_id,
		 info->name);
	show_sysfs(obj, dir, "device");
	return obj;
}

static int by_rank(const void *a, const void *b)
{
	const struct kvtier_tier_info *x = a, *y = b;

	return (x->rank > y->rank) - (x->rank < y->rank);
}

struct json_object *show_tiers(struct kvtier_pool *pool, uint32_t pool_id,
			       int *err)
{
	struct kvtier_tier_info tiers[KVTIER_TIERS_MAX];
	struct json_object *array;
	int i, nr = kvtier_pool_tiers(pool, tiers);

	if (nr < 0) {
		*err = nr;
		return NULL;
	}
	qsort(tiers, (size_t)nr, sizeof(tiers[0]), by_rank);
	array = json_object_new_array();
	for (i = 0; i < nr; i++)
		cmd_append(array, show_tier(&tiers[i], pool_id));
	return array;
}

static void add_features(struct json_object *obj, uint64_t features)
{
	static const struct {
		uint64_t bit;
		const char *name;
	} names[] = {
		{ KVTIER_FEAT_ASYNC, "async" },
		{ KVTIER_FEAT_ARENA, "arena" },
		{ KVTIER_FEAT_DMAENGINE, "dmaengine" },
		{ KVTIER_FEAT_SESSION, "session" },
		{ KVTIER_FEAT_EVENTS, "events" },
		{ KVTIER_FEAT_EXPORT, "export" },
		{ KVTIER_FEAT_URING, "uring" },
		{ KVTIER_FEAT_DURABLE, "durable" },
	};
	struct json_object *array = json_object_new_array();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (features & names[i].bit)
			cmd_append(array,
				   json_object_new_string(names[i].name));
	cmd_add(obj, "features", array);
}

/* What the pool holds, from its tiers; sysfs may tell more. */
static void add_sums(struct json_object *obj, struct json_object *tiers)
{
	static const char *const sums[] = {
		"capacity_bytes", "used_bytes", "blocks",
	};
	size_t i, j;

	for (j = 0; j < ARRAY_SIZE(sums); j++) {
		uint64_t sum = 0;

		for (i = 0; i < json_object_array_length(tiers); i++)
			sum += json_object_get_uint64(json_object_object_get(
				json_object_array_get_idx(tiers, i), sums[j]));
		cmd_add_u64(obj, sums[j], sum);
	}
}

struct json_object *show_pool(struct kvtier_pool *pool, uint32_t pool_id,
			      int *err)
{
	static const char *const files[] = {
		"uuid", "degraded", "unwiped", "hits", "misses", "policy", "policies",
		"watermark_low_percent", "watermark_high_percent",
		"reserve_percent", "copies_percent", "reservation_timeout_ms",
		"prefetch_max_bytes", "discard",
		"meta_bytes_per_block",
	};
	struct kvtier_query q = KVTIER_QUERY_INIT;
	struct json_object *obj, *tiers;
	char text[SYSFS_PATH_MAX];
	size_t i;

	*err = kvtier_pool_query(pool, &q);
	if (*err)
		return NULL;
	tiers = show_tiers(pool, pool_id, err);
	if (!tiers)
		return NULL;
	obj = json_object_new_object();
	cmd_add_u64(obj, "pool", pool_id);
	snprintf(text, sizeof(text), "/dev/kvtier%u", pool_id);
	cmd_add_str(obj, "device", text);
	add_sums(obj, tiers);
	snprintf(text, sizeof(text), "class/kvtier/kvtier%u", pool_id);
	for (i = 0; i < ARRAY_SIZE(files); i++)
		show_sysfs(obj, text, files[i]);
	cmd_add_u64(obj, "abi_revision", q.abi_revision);
	cmd_add_u64(obj, "block_bytes_max", q.block_bytes_max);
	cmd_add_u64(obj, "leases_max", q.leases_max);
	cmd_add_u64(obj, "sessions_max", q.sessions_max);
	cmd_add_u64(obj, "batch_max", q.batch_max);
	add_features(obj, q.features);
	cmd_add(obj, "tiers", tiers);
	return obj;
}

int show_emit_pool(uint32_t pool_id)
{
	static const struct cmd_table tables[] = {
		{ "tiers", tier_columns }, { NULL, NULL },
	};
	struct kvtier_pool *pool;
	struct json_object *obj;
	int err = 0, status;

	status = cmd_open_pool(pool_id, &pool);
	if (status)
		return status;
	obj = show_pool(pool, pool_id, &err);
	kvtier_pool_unref(pool);
	if (!obj)
		return cmd_fail(err, NULL, "querying pool %u", pool_id);
	cmd_emit_nested(obj, pool_columns, tables);
	return EXIT_OK;
}
