// SPDX-License-Identifier: GPL-2.0
/*
 * kvtier ls|rm: a namespace's blocks from the shell
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "ns_args.h"

#define PAGE_ENTRIES	1024

struct entries {
	size_t nr;
	size_t room;
	struct kvtier_entry *list;
};

/* All blocks, or the first @limit of them; 0 or -errno. */
static int read_all(struct kvtier_ns *ns, struct entries *all, uint64_t limit)
{
	uint64_t cursor = 0;
	int nr;

	do {
		if (all->room - all->nr < PAGE_ENTRIES) {
			size_t room = 2 * all->room + PAGE_ENTRIES;
			void *bigger = realloc(all->list,
					       room * sizeof(*all->list));

			if (!bigger)
				return -ENOMEM;
			all->list = bigger;
			all->room = room;
		}
		nr = kvtier_iterate(ns, &cursor, all->list + all->nr,
				    PAGE_ENTRIES);
		if (nr < 0)
			return nr;
		all->nr += (size_t)nr;
	} while (cursor && all->nr < limit);
	if (all->nr > limit)
		all->nr = limit;
	return 0;
}

static bool is_root(const struct kvtier_entry *entry)
{
	static const uint8_t none[KVTIER_KEY_BYTES];

	return !memcmp(entry->parent, none, sizeof(none));
}

static struct json_object *entry_json(const struct kvtier_entry *entry,
				      const struct kvtier_tier_info *tiers,
				      uint32_t nr_tiers)
{
	struct json_object *obj = json_object_new_object();
	char hex[2 * KVTIER_KEY_BYTES + 1];
	uint32_t i;

	cmd_format_key(entry->key, hex);
	cmd_add_str(obj, "key", hex);
	if (!is_root(entry)) {
		cmd_format_key(entry->parent, hex);
		cmd_add_str(obj, "parent", hex);
	}
	cmd_add_str(obj, "status", kvtier_status_name(entry->status));
	for (i = 0; i < nr_tiers; i++)
		if (tiers[i].id == entry->tier)
			cmd_add_str(obj, "tier", tiers[i].name);
	cmd_add_u64(obj, "group", entry->group);
	cmd_add_u64(obj, "leases", entry->leases);
	cmd_add_u64(obj, "idle_ns", entry->idle_ns);
	return obj;
}

static int list_blocks(struct kvtier_ns *ns, uint64_t limit)
{
	static const struct cmd_column cols[] = {
		{ "key", "KEY", CMD_TEXT },
		{ "status", "STATUS", CMD_TEXT },
		{ "tier", "TIER", CMD_TEXT },
		{ "group", "GROUP", CMD_COUNT },
		{ "leases", "LEASES", CMD_COUNT },
		{ "idle_ns", "IDLE", CMD_NS },
		{ NULL, NULL, CMD_TEXT },
	};
	struct kvtier_tier_info tiers[KVTIER_TIERS_MAX];
	struct kvtier_query q = KVTIER_QUERY_INIT;
	struct entries all = { 0 };
	struct json_object *array;
	size_t i;
	int ret;

	q.tiers = (uintptr_t)tiers;
	q.nr_tiers = KVTIER_TIERS_MAX;
	ret = kvtier_ns_query(ns, &q);
	if (!ret)
		ret = read_all(ns, &all, limit);
	if (ret) {
		free(all.list);
		return cmd_fail(ret, NULL, "listing blocks");
	}
	array = json_object_new_array();
	for (i = 0; i < all.nr; i++)
		cmd_append(array, entry_json(&all.list[i], tiers, q.nr_tiers));
	free(all.list);
	cmd_emit(array, cols);
	return EXIT_OK;
}

int cmd_ls(int argc, char **argv)
{
	uint64_t limit = UINT64_MAX;
	struct kvtier_ns *ns = NULL;
	int o, status = EXIT_OK;
	struct ns_args args;

	ns_args_init(&args, false);
	while (!status &&
	       (o = getopt_long(argc, argv, "", ns_long_options, NULL)) != -1) {
		if (o != NS_OPT_LIMIT)
			status = ns_args_option(&args, o, argv);
		else if (cmd_parse_u64(optarg, UINT64_MAX, &limit))
			status = cmd_usage("--limit '%s' is not a number",
					   optarg);
	}
	if (!status && (optind < argc || args.nr_keys))
		status = cmd_usage("ls takes no keys");
	if (!status)
		status = ns_args_open(&args, KVTIER_NS_RDONLY, &ns);
	if (!status)
		status = list_blocks(ns, limit);
	kvtier_ns_unref(ns);
	ns_args_free(&args);
	return status;
}

struct dropped {
	uint64_t dropped;
	uint64_t missing;
	uint64_t kept;		/* in use, or extended by such that are */
};

static int drop_keys(struct kvtier_ns *ns, uint32_t group,
		     const struct kvtier_key *keys, uint32_t nr,
		     struct dropped *sum)
{
	struct kvtier_opts opts = KVTIER_OPTS_INIT;
	int32_t *results = calloc(nr, sizeof(*results));
	uint32_t i;
	int ret;

	if (!results)
		return -ENOMEM;
	opts.group = group;
	ret = kvtier_drop(ns, &opts, keys, nr, results);
	for (i = 0; ret >= 0 && i < nr; i++) {
		sum->dropped += results[i] == KVTIER_ST_DONE;
		sum->missing += results[i] == KVTIER_ST_MISS;
		sum->kept += results[i] < 0;
	}
	free(results);
	return ret < 0 ? ret : 0;
}

/* A block and how many it extends, so that the longest chains' ends go first. */
struct ranked {
	struct kvtier_entry *entry;
	struct ranked *parent;
	uint32_t depth;
};

static int by_key(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->entry->group != y->entry->group)
		return x->entry->group < y->entry->group ? -1 : 1;
	return memcmp(x->entry->key, y->entry->key, KVTIER_KEY_BYTES);
}

static int by_depth(const void *a, const void *b)
{
	const struct ranked *x = *(struct ranked *const *)a;
	const struct ranked *y = *(struct ranked *const *)b;

	if (x->entry->group != y->entry->group)
		return x->entry->group < y->entry->group ? -1 : 1;
	return (x->depth > y->depth) - (x->depth < y->depth);
}

/*
 * Depths, from each block up to one whose depth is known, and back down. What is listed
 * was there at different times, so that a chain may come back to where it was.
 */
static void find_depths(struct ranked *all, size_t nr)
{
	struct kvtier_entry wanted;
	struct ranked key = { .entry = &wanted }, *at, *up;
	uint32_t depth;
	size_t i, steps;

	for (i = 0; i < nr; i++) {
		memcpy(wanted.key, all[i].entry->parent, KVTIER_KEY_BYTES);
		wanted.group = all[i].entry->group;
		all[i].parent = bsearch(&key, all, nr, sizeof(*all), by_key);
	}
	for (i = 0; i < nr; i++) {
		depth = 1;
		for (up = all[i].parent, steps = 0; up && steps < nr; up = up->parent, steps++) {
			depth += up->depth ? up->depth : 1;
			if (up->depth)
				break;
		}
		for (at = &all[i]; at && !at->depth; at = at->parent)
			at->depth = depth--;
	}
}

/* The run of one group, from the deepest blocks to the roots, batch by batch. */
static int drop_run(struct kvtier_ns *ns, struct ranked **order, size_t nr,
		    struct dropped *sum)
{
	struct kvtier_key *keys = calloc(KVTIER_BATCH_MAX, sizeof(*keys));
	uint32_t i, batch;
	int ret = keys ? 0 : -ENOMEM;

	while (!ret && nr) {
		batch = nr < KVTIER_BATCH_MAX ? (uint32_t)nr : KVTIER_BATCH_MAX;
		nr -= batch;
		for (i = 0; i < batch; i++)
			memcpy(keys[i].b, order[nr + i]->entry->key,
			       KVTIER_KEY_BYTES);
		ret = drop_keys(ns, order[0]->entry->group, keys, batch, sum);
	}
	free(keys);
	return ret;
}

static int drop_entries(struct kvtier_ns *ns, struct entries *all,
			struct dropped *sum)
{
	struct ranked *ranked = calloc(all->nr + 1, sizeof(*ranked));
	struct ranked **order = calloc(all->nr + 1, sizeof(*order));
	size_t i, start;
	int ret = ranked && order ? 0 : -ENOMEM;

	for (i = 0; !ret && i < all->nr; i++)
		ranked[i].entry = &all->list[i];
	if (!ret && all->nr) {
		qsort(ranked, all->nr, sizeof(*ranked), by_key);
		find_depths(ranked, all->nr);
		for (i = 0; i < all->nr; i++)
			order[i] = &ranked[i];
		qsort(order, all->nr, sizeof(*order), by_depth);
	}
	for (start = 0; !ret && start < all->nr; start = i) {
		for (i = start; i < all->nr && order[i]->entry->group ==
		     order[start]->entry->group; i++)
			;
		ret = drop_run(ns, order + start, i - start, sum);
	}
	free(order);
	free(ranked);
	return ret;
}

static int drop_all(struct kvtier_ns *ns, struct dropped *sum)
{
	struct entries all = { 0 };
	int ret = read_all(ns, &all, UINT64_MAX);

	if (!ret)
		ret = drop_entries(ns, &all, sum);
	free(all.list);
	return ret;
}

/* See kvtier_prefetch(3): they are gone, and yet it is an error. */
static const char *drop_hint(int err)
{
	switch (err) {
	case -EINTR:
		return "what was dropped may be back after a crash: do it again";
	case -EIO:
		return "what was dropped may be back if a member that takes no writes any more is assembled";
	}
	return NULL;
}

static int remove_blocks(struct kvtier_ns *ns, const struct ns_args *args,
			 bool everything)
{
	static const struct cmd_column cols[] = {
		{ "dropped", "dropped", CMD_COUNT },
		{ "missing", "not there", CMD_COUNT },
		{ "kept", "kept", CMD_COUNT },
		{ NULL, NULL, CMD_TEXT },
	};
	struct dropped sum = { 0 };
	struct json_object *obj;
	int ret;

	ret = everything ? drop_all(ns, &sum) :
	      drop_keys(ns, args->group, args->keys, args->nr_keys, &sum);
	if (ret)
		return cmd_fail(ret, drop_hint(ret), "dropping blocks");
	if (sum.kept)
		return cmd_fail(EBUSY, "they are being filled, or other blocks extend them (name these too, children last)",
				"%llu blocks dropped, %llu kept",
				(unsigned long long)sum.dropped,
				(unsigned long long)sum.kept);
	obj = json_object_new_object();
	cmd_add_u64(obj, "dropped", sum.dropped);
	cmd_add_u64(obj, "missing", sum.missing);
	cmd_add_u64(obj, "kept", sum.kept);
	cmd_emit(obj, cols);
	return EXIT_OK;
}

int cmd_rm(int argc, char **argv)
{
	struct kvtier_ns *ns = NULL;
	bool everything = false;
	int o, status = EXIT_OK;
	struct ns_args args;

	ns_args_init(&args, false);
	while (!status &&
	       (o = getopt_long(argc, argv, "", ns_long_options, NULL)) != -1) {
		if (o == NS_OPT_ALL)
			everything = true;
		else
			status = ns_args_option(&args, o, argv);
	}
	while (!status && optind < argc)
		status = ns_args_add_key(&args, argv[optind++]);
	if (!status && everything == (args.nr_keys > 0))
		status = cmd_usage("rm needs keys, or --all");
	if (!status && args.nr_keys > KVTIER_BATCH_MAX)
		status = cmd_usage("at most %d keys at once", KVTIER_BATCH_MAX);
	if (!status)
		status = ns_args_open(&args, 0, &ns);
	if (!status)
		status = remove_blocks(ns, &args, everything);
	kvtier_ns_unref(ns);
	ns_args_free(&args);
	return status;
}
