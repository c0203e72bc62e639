// SPDX-License-Identifier: GPL-2.0
/*
 * kvtier ns list|claim; ns tiers is in ns_tiers.c
 */
#include <errno.h>
#include <getopt.h>
#include <string.h>
#include "cmd.h"
#include "ns_tiers.h"
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
		return cmd_fail(ret, ret == -EACCES ? "only root sees which ones there are" : NULL,
				"listing namespaces");
	array = json_object_new_array();
	for (i = 0; i < list.nr; i++)
		cmd_append(array, ns_json(pool_id, list.names[i]));
	sysfs_free_names(&list);
	cmd_emit(array, cols);
	return EXIT_OK;
}

struct claim {
	uint32_t pool_id;
	uint64_t ns_id;
	uint64_t uid;
	uint64_t gid;
	bool has_uid;
	bool has_gid;
};

static int parse_claim(int argc, char **argv, struct claim *c)
{
	static const struct option options[] = {
		{ "uid", required_argument, NULL, 'u' },
		{ "gid", required_argument, NULL, 'g' },
		{ NULL, 0, NULL, 0 },
	};
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (o != 'u' && o != 'g')
			return cmd_usage("ns claim: bad option '%s'", argv[optind - 1]);
		if (cmd_parse_u64(optarg, UINT32_MAX - 1, o == 'u' ? &c->uid : &c->gid))
			return cmd_usage("--%s '%s' is not a number", o == 'u' ? "uid" : "gid",
					 optarg);
		*(o == 'u' ? &c->has_uid : &c->has_gid) = true;
	}
	if (argc - optind != 2 || !c->has_uid)
		return cmd_usage("ns claim needs a pool, a namespace's number and --uid");
	if (cmd_parse_u64(argv[optind + 1], UINT64_MAX, &c->ns_id))
		return cmd_usage("'%s' is not a namespace: want a number as in 'kvtier ns list'",
				 argv[optind + 1]);
	if (!c->has_gid)
		c->gid = c->uid;
	return cmd_pick_pool(argv[optind], &c->pool_id);
}

static const char *claim_hint(int err)
{
	switch (err) {
	case -ENOENT:
		return "see: kvtier ns list";
	case -EALREADY:
		return "it has an owner: only namespaces of an assembled pool that nobody has opened since can be claimed";
	case -EEXIST:
		return "that user has a namespace of the same identity";
	}
	return NULL;
}

static int ns_claim(int argc, char **argv)
{
	struct claim c = { 0 };
	struct json_object *obj;
	struct kvtier_ctl *ctl;
	int ret, status;

	status = parse_claim(argc, argv, &c);
	if (!status)
		status = cmd_open_ctl(&ctl);
	if (status)
		return status;
	ret = kvtier_ctl_ns_claim(ctl, c.pool_id, c.ns_id, (uint32_t)c.uid, (uint32_t)c.gid);
	kvtier_ctl_unref(ctl);
	if (ret)
		return cmd_fail(ret, claim_hint(ret), "claiming namespace %llu of pool %u",
				(unsigned long long)c.ns_id, c.pool_id);
	obj = json_object_new_object();
	cmd_add_u64(obj, "claimed", c.ns_id);
	cmd_add_u64(obj, "pool", c.pool_id);
	cmd_add_u64(obj, "uid", c.uid);
	cmd_add_u64(obj, "gid", c.gid);
	cmd_emit(obj, NULL);
	return EXIT_OK;
}

const struct cmd_verb ns_verbs[] = {
	{ "list", "[POOL]", "list namespaces", ns_list },
	{ "claim", "POOL NS --uid N [--gid N]",
	  "say whose a namespace of an assembled pool is", ns_claim },
	{ "tiers", "POOL NS [--limit TIER=SIZE|max]... [--guarantee TIER=SIZE]...",
	  "what a namespace has and may have on each tier", ns_tiers },
	{ NULL, NULL, NULL, NULL },
};
