// SPDX-License-Identifier: GPL-2.0
/*
 * kvtier ns list
 */
#include <errno.h>
#include <string.h>
#include "cmd.h"
#include "show.h"
#include "sysfs.h"

/* Block sizes, in the order of the groups. */
static void add_groups(struct json_object *obj, const char *dir)
{
	struct json_object *array;
	char text[512], *rest = text, *word;
	uint64_t bytes;

	if (sysfs_read(text, sizeof(text), "%s/groups", dir))
		return;
	array = json_object_new_array();
	while ((word = strsep(&rest, " ")))
		if (!cmd_parse_u64(word, UINT64_MAX, &bytes))
			cmd_append(array, json_object_new_uint64(bytes));
	cmd_add(obj, "block_bytes", array);
}

static struct json_object *ns_json(uint32_t pool_id, const char *id)
{
	static const char *const files[] = {
		"owner_uid", "quota_bytes", "min_bytes", "used_bytes",
		"blocks", "hits", "misses", "puts", "evictions",
	};
	struct json_object *obj = json_object_new_object();
	char dir[SYSFS_PATH_MAX], mode[16];
	uint64_t number;
	size_t i;

	if (!cmd_parse_u64(id, UINT64_MAX, &number))
		cmd_add_u64(obj, "ns", number);
	snprintf(dir, sizeof(dir), "class/kvtier/kvtier%u/namespaces/%s",
		 pool_id, id);
	/* Octal digits, which are no number. */
	if (!sysfs_read(mode, sizeof(mode), "%s/mode", dir))
		cmd_add_str(obj, "mode", mode);
	for (i = 0; i < ARRAY_SIZE(files); i++)
		show_sysfs(obj, dir, files[i]);
	add_groups(obj, dir);
	return obj;
}

static int ns_list(int argc, char **argv)
{
	static const struct cmd_column cols[] = {
		{ "ns", "NS", CMD_COUNT },
		{ "owner_uid", "OWNER", CMD_COUNT },
		{ "mode", "MODE", CMD_TEXT },
		{ "blocks", "BLOCKS", CMD_COUNT },
		{ "used_bytes", "USED", CMD_BYTES },
		{ "quota_bytes", "QUOTA", CMD_BYTES },
		{ "min_bytes", "MIN", CMD_BYTES },
		{ "hits", "HITS", CMD_COUNT },
		{ "misses", "MISSES", CMD_COUNT },
		{ "puts", "PUTS", CMD_COUNT },
		{ "evictions", "EVICTED", CMD_COUNT },
		{ "block_bytes", "BLOCK BYTES", CMD_TEXT },
		{ NULL, NULL, CMD_TEXT },
	};
	struct json_object *array;
	struct sysfs_names list;
	char dir[SYSFS_PATH_MAX];
	uint32_t pool_id;
	int ret, status;
	size_t i;

	if (argc > 2)
		return cmd_usage("ns list: what is '%s'?", argv[2]);
	status = cmd_pick_pool(argv[1], &pool_id);
	if (status)
		return status;
	snprintf(dir, sizeof(dir), "class/kvtier/kvtier%u/namespaces",
		 pool_id);
	if (!sysfs_exists("%s", dir))
		return cmd_fail(ENOENT, "see: kvtier pool list", "pool %u",
				pool_id);
	ret = sysfs_list(&list, dir, "");
	if (ret)
		return cmd_fail(ret, NULL, "listing namespaces");
	array = json_object_new_array();
	for (i = 0; i < list.nr; i++)
		cmd_append(array, ns_json(pool_id, list.names[i]));
	sysfs_free_names(&list);
	cmd_emit(array, cols);
	return EXIT_OK;
}

const struct cmd_verb ns_verbs[] = {
	{ "list", "[POOL]", "list namespaces", ns_list },
	{ NULL, NULL, NULL, NULL },
};
