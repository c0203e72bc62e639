// SPDX-License-Identifier: GPL-2.0
/*
 * kvtier ns tiers: what a namespace has on each tier, and may have there.
 *
 * The driver's files tier_used_bytes, tier_limits and tier_mins are tables whose lines
 * begin with a tier's name. All that is asked for is checked against the first one before
 * anything is written; the driver may still refuse, and then what stands before that on
 * the command line holds.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include "cmd.h"
#include "ns_tiers.h"
#include "sysfs.h"

/* What a file of sysfs can hold. */
#define TABLE_MAX	4097
#define BOUNDS_MAX	(2 * KVTIER_TIERS_MAX)

/**
 * struct bound - a limit or a guarantee to be set
 * @file:  of the namespace's directory
 * @tier:  name
 * @bytes: as the driver takes them: a number, or "max"
 */
struct bound {
	const char *file;
	const char *tier;
	char bytes[24];
};

struct request {
	char dir[SYSFS_PATH_MAX];
	uint32_t pool_id;
	const char *ns;
	unsigned int nr;
	struct bound bounds[BOUNDS_MAX];
};

/* The line of @table that begins with @tier: its number at @at, 0 for the first. */
static bool table_number(const char *table, const char *tier, int at, uint64_t *number)
{
	size_t len = strlen(tier);
	const char *line, *end;
	char word[24];

	for (line = table; *line; line = *end ? end + 1 : end) {
		end = line + strcspn(line, "\n");
		if (strncmp(line, tier, len) || line[len] != ' ')
			continue;
		line += len + 1;
		while (at-- && line < end)
			line += strcspn(line, "\n ") + 1;
		if (line >= end)
			return false;
		snprintf(word, sizeof(word), "%.*s", (int)strcspn(line, "\n "), line);
		return !cmd_parse_u64(word, UINT64_MAX, number);
	}
	return false;
}

static int parse_bound(struct request *req, const char *file, char *pair)
{
	bool limit = !strcmp(file, "tier_limits");
	char *value = strrchr(pair, '=');
	struct bound *b = &req->bounds[req->nr];
	uint64_t bytes;

	if (req->nr == BOUNDS_MAX)
		return cmd_usage("ns tiers: more than %d limits and guarantees", BOUNDS_MAX);
	if (!value || value == pair)
		return cmd_usage("'%s' is not of the form TIER=SIZE", pair);
	*value++ = 0;
	b->file = file;
	b->tier = pair;
	if (limit && !strcmp(value, "max"))
		snprintf(b->bytes, sizeof(b->bytes), "max");
	else if (!cmd_parse_bytes(value, &bytes))
		snprintf(b->bytes, sizeof(b->bytes), "%" PRIu64, bytes);
	else
		return cmd_usage("'%s' is not a size (64M, 1.5G%s)", value,
				 limit ? ", or max for no limit" : "; 0: no guarantee");
	req->nr++;
	return EXIT_OK;
}

static int parse(int argc, char **argv, struct request *req)
{
	static const struct option options[] = {
		{ "limit", required_argument, NULL, 'l' },
		{ "guarantee", required_argument, NULL, 'g' },
		{ NULL, 0, NULL, 0 },
	};
	int o, status = EXIT_OK;
	uint64_t id;

	while (!status && (o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (o != 'l' && o != 'g')
			return cmd_usage("ns tiers: bad option '%s'", argv[optind - 1]);
		status = parse_bound(req, o == 'l' ? "tier_limits" : "tier_mins", optarg);
	}
	if (status)
		return status;
	if (argc - optind != 2)
		return cmd_usage("ns tiers needs a pool and a namespace's number");
	req->ns = argv[optind + 1];
	if (cmd_parse_u64(req->ns, UINT64_MAX, &id))
		return cmd_usage("'%s' is not a namespace: want a number as in 'kvtier ns list'",
				 req->ns);
	status = cmd_pick_pool(argv[optind], &req->pool_id);
	snprintf(req->dir, sizeof(req->dir), "class/kvtier/kvtier%u/namespaces/%" PRIu64,
		 req->pool_id, id);
	return status;
}

static int read_table(const struct request *req, const char *file, char table[static TABLE_MAX])
{
	int ret = sysfs_read_all(table, TABLE_MAX, "%s/%s", req->dir, file);

	if (!ret)
		return EXIT_OK;
	return cmd_fail(ret, ret == -ENOENT ? "see: kvtier ns list" :
			ret == -EACCES ? "only root sees what namespaces have" : NULL,
			"namespace %s of pool %u", req->ns, req->pool_id);
}

/* All tiers are there, so that a slip of the pen changes nothing. */
static int check_bounds(const struct request *req, const char *used)
{
	const struct bound *b;
	uint64_t bytes;

	for (b = req->bounds; b < req->bounds + req->nr; b++)
		if (!table_number(used, b->tier, 0, &bytes))
			return cmd_fail(ENOENT, "see: kvtier tier list", "tier '%s' of pool %u",
					b->tier, req->pool_id);
	return EXIT_OK;
}

static const char *bound_hint(const struct bound *b, int err)
{
	bool limit = !strcmp(b->file, "tier_limits");

	switch (err) {
	case -EACCES:
		return "only root sets limits";
	case -ENOSPC:
		return "at most three quarters of a tier can be guaranteed, all namespaces together";
	case -EINVAL:
		return limit ? NULL : "on a memory tier the guarantee is what the namespace was made with";
	}
	return NULL;
}

static int write_bounds(const struct request *req)
{
	char line[SYSFS_PATH_MAX];
	const struct bound *b;
	int ret;

	for (b = req->bounds; b < req->bounds + req->nr; b++) {
		snprintf(line, sizeof(line), "%s %s", b->tier, b->bytes);
		ret = sysfs_write(line, "%s/%s", req->dir, b->file);
		if (ret)
			return cmd_fail(ret, bound_hint(b, ret), "%s of namespace %s on %s: %s",
					strcmp(b->file, "tier_limits") ? "guarantee" : "limit",
					req->ns, b->tier, b->bytes);
	}
	return EXIT_OK;
}

static struct json_object *tiers_json(const char *used, const char *limits, const char *mins)
{
	struct json_object *array = json_object_new_array(), *obj;
	const char *line, *end;
	char tier[SYSFS_NAME_MAX];
	uint64_t bytes;

	for (line = used; *line; line = *end ? end + 1 : end) {
		end = line + strcspn(line, "\n");
		snprintf(tier, sizeof(tier), "%.*s", (int)strcspn(line, "\n "), line);
		if (!table_number(used, tier, 0, &bytes))
			continue;
		obj = json_object_new_object();
		cmd_add_str(obj, "tier", tier);
		cmd_add_u64(obj, "used_bytes", bytes);
		if (table_number(limits, tier, 1, &bytes))
			cmd_add_u64(obj, "limit_bytes", bytes);
		if (table_number(mins, tier, 1, &bytes))
			cmd_add_u64(obj, "guaranteed_bytes", bytes);
		cmd_append(array, obj);
	}
	return array;
}

static int show(const struct request *req)
{
	static const struct cmd_column cols[] = {
		{ "tier", "TIER", CMD_TEXT },
		{ "used_bytes", "USED", CMD_BYTES },
		{ "limit_bytes", "LIMIT", CMD_BYTES },
		{ "guaranteed_bytes", "GUARANTEED", CMD_BYTES },
		{ NULL, NULL, CMD_TEXT },
	};
	char used[TABLE_MAX], limits[TABLE_MAX], mins[TABLE_MAX];
	int status;

	status = read_table(req, "tier_used_bytes", used);
	if (!status)
		status = read_table(req, "tier_limits", limits);
	if (!status)
		status = read_table(req, "tier_mins", mins);
	if (!status)
		cmd_emit(tiers_json(used, limits, mins), cols);
	return status;
}

int ns_tiers(int argc, char **argv)
{
	struct request req = { .nr = 0 };
	char used[TABLE_MAX];
	int status;

	status = parse(argc, argv, &req);
	if (!status)
		status = read_table(&req, "tier_used_bytes", used);
	if (!status)
		status = check_bounds(&req, used);
	if (!status)
		status = write_bounds(&req);
	return status ? status : show(&req);
}
