// SPDX-License-Identifier: GPL-2.0
/*
 * kvtier pool create|list|show|set|destroy; the rest is in assemble.c, scrub.c and
 * pool_cgroups.c
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "cmd.h"
#include "pool_cmds.h"
#include "show.h"
#include "spec.h"
#include "sysfs.h"

struct create {
	uint32_t id;
	unsigned int nr;
	bool force;
	struct tier_spec specs[KVTIER_TIERS_MAX];
};

static int parse_create(int argc, char **argv, struct create *c)
{
	static const struct option options[] = {
		{ "id", required_argument, NULL, 'i' },
		{ "tier", required_argument, NULL, 't' },
		{ "force", no_argument, NULL, 'f' },
		{ NULL, 0, NULL, 0 },
	};
	struct spec_error error;
	uint64_t id;
	int o;

	while ((o = getopt_long(argc, argv, "i:t:f", options, NULL)) != -1) {
		switch (o) {
		case 'i':
			if (cmd_parse_u64(optarg, 255, &id))
				return cmd_usage("--id '%s' is not a number from 0 to 255",
						 optarg);
			c->id = (uint32_t)id;
			break;
		case 't':
			if (c->nr == KVTIER_TIERS_MAX)
				return cmd_usage("a pool has at most %d tiers",
						 KVTIER_TIERS_MAX);
			if (spec_parse(optarg, &c->specs[c->nr], &error))
				return cmd_usage("--tier '%s': %s", optarg,
						 error.text);
			c->nr++;
			break;
		case 'f':
			c->force = true;
			break;
		default:
			return cmd_usage("pool create: bad option '%s'",
					 argv[optind - 1]);
		}
	}
	if (optind < argc)
		return cmd_usage("pool create: what is '%s'?", argv[optind]);
	if (spec_complete(c->specs, c->nr, NULL, 0, &error))
		return cmd_usage("%s", error.text);
	return EXIT_OK;
}

static int attach_all(struct kvtier_ctl *ctl, const struct create *c,
		      uint32_t pool_id)
{
	int status = EXIT_OK, ret;
	unsigned int i;

	for (i = 0; !status && i < c->nr; i++)
		status = spec_attach(ctl, pool_id, &c->specs[i]);
	if (!status)
		return EXIT_OK;
	/* The failure is reported; as far as possible nothing has happened. */
	ret = kvtier_ctl_pool_destroy(ctl, pool_id);
	if (ret)
		cmd_note("pool %u could not be removed again: %s", pool_id,
			 strerror(-ret));
	return status;
}

static int pool_create(int argc, char **argv)
{
	struct create c = { .id = KVTIER_POOL_ANY_ID };
	struct kvtier_ctl *ctl;
	uint32_t pool_id;
	unsigned int i;
	int ret, status;

	status = parse_create(argc, argv, &c);
	for (i = 0; !status && i < c.nr; i++)
		status = spec_check_device(&c.specs[i], c.force, NULL);
	if (!status)
		status = cmd_open_ctl(&ctl);
	if (status)
		return status;
	pool_id = c.id;
	ret = kvtier_ctl_pool_create(ctl, &pool_id);
	if (ret == -EEXIST)
		status = cmd_fail(ret, "leave --id out to get a free one",
				  "pool %u", c.id);
	else if (ret)
		status = cmd_fail(ret, NULL, "creating a pool");
	else
		status = attach_all(ctl, &c, pool_id);
	kvtier_ctl_unref(ctl);
	return status ? status : show_emit_pool(pool_id);
}

static int add_pool(struct json_object *pools, uint32_t pool_id)
{
	struct kvtier_pool *pool;
	struct json_object *obj;
	int err = 0;

	err = kvtier_pool_open(pool_id, &pool);
	if (err)
		return err;
	obj = show_pool(pool, pool_id, &err);
	kvtier_pool_unref(pool);
	if (!obj)
		return err;
	cmd_add_u64(obj, "nr_tiers", json_object_array_length(
			    json_object_object_get(obj, "tiers")));
	cmd_append(pools, obj);
	return 0;
}

static int pool_list(int argc, char **argv)
{
	static const struct cmd_column cols[] = {
		{ "pool", "POOL", CMD_COUNT },
		{ "device", "DEVICE", CMD_TEXT },
		{ "nr_tiers", "TIERS", CMD_COUNT },
		{ "degraded", "DEGRADED", CMD_COUNT },
		{ "capacity_bytes", "SIZE", CMD_BYTES },
		{ "used_bytes", "USED", CMD_BYTES },
		{ "blocks", "BLOCKS", CMD_COUNT },
		{ NULL, NULL, CMD_TEXT },
	};
	struct json_object *pools;
	uint32_t *ids = NULL;
	int i, nr, err = 0;

	if (argc > 1)
		return cmd_usage("pool list: what is '%s'?", argv[1]);
	nr = cmd_pool_ids(&ids);
	if (nr < 0)
		return cmd_fail(nr, nr == -ENOENT ?
				"the module is not loaded: modprobe kvtier" :
				NULL, "listing pools");
	pools = json_object_new_array();
	/* One that has gone since is no failure. */
	for (i = 0; i < nr && (!err || err == -ENOENT || err == -ENXIO); i++)
		err = add_pool(pools, ids[i]);
	free(ids);
	if (err && err != -ENOENT && err != -ENXIO) {
		json_object_put(pools);
		return cmd_fail(err, NULL, "querying a pool");
	}
	cmd_emit(pools, cols);
	return EXIT_OK;
}

static int pool_show(int argc, char **argv)
{
	uint32_t pool_id;
	int status;

	if (argc > 2)
		return cmd_usage("pool show: what is '%s'?", argv[2]);
	status = cmd_pick_pool(argv[1], &pool_id);
	return status ? status : show_emit_pool(pool_id);
}

/* What is to be set; nothing is before all of it is known to make sense. */
struct setting {
	const char *key;
	const char *value;
	char number[24];
};

#define SETTINGS_MAX	32

static int parse_setting(char *pair, struct setting *s)
{
	static const char *const keys[] = {
		"policy", "watermark_low_percent", "watermark_high_percent",
		"reserve_percent", "copies_percent", "reservation_timeout_ms",
		"prefetch_max_bytes", "discard",
	};
	char *value = strchr(pair, '=');
	uint64_t bytes;
	size_t i;

	if (!value || !value[1])
		return cmd_usage("'%s' is not of the form KEY=VALUE", pair);
	*value++ = 0;
	for (i = 0; i < ARRAY_SIZE(keys); i++)
		if (!strcmp(keys[i], pair))
			break;
	if (i == ARRAY_SIZE(keys))
		return cmd_usage("a pool has no setting '%s' (policy, watermark_low_percent, watermark_high_percent, reserve_percent, copies_percent, reservation_timeout_ms, prefetch_max_bytes, discard)",
				 pair);
	s->key = keys[i];
	s->value = value;
	if (strcmp(s->key, "prefetch_max_bytes"))
		return EXIT_OK;
	if (cmd_parse_bytes(value, &bytes))
		return cmd_usage("%s: '%s' is not a size such as 64M", s->key, value);
	snprintf(s->number, sizeof(s->number), "%" PRIu64, bytes);
	s->value = s->number;
	return EXIT_OK;
}

static int write_setting(uint32_t pool_id, const struct setting *s)
{
	int ret = sysfs_write(s->value, "class/kvtier/kvtier%u/%s", pool_id, s->key);

	if (ret == -ENOENT)
		return cmd_fail(ret, "see: kvtier pool list", "pool %u",
				pool_id);
	if (ret)
		return cmd_fail(ret, ret == -EINVAL ?
				"the value is out of range, or unknown: kvtier pool show" :
				NULL, "%s=%s", s->key, s->value);
	return EXIT_OK;
}

static int pool_set(int argc, char **argv)
{
	struct setting settings[SETTINGS_MAX];
	int i, status = EXIT_OK, nr = argc - 2;
	uint32_t pool_id;

	if (nr < 1 || nr > SETTINGS_MAX)
		return cmd_usage("pool set needs a pool and KEY=VALUE%s",
				 nr > 0 ? ", each key once" : "");
	for (i = 0; !status && i < nr; i++)
		status = parse_setting(argv[i + 2], &settings[i]);
	if (!status)
		status = cmd_pick_pool(argv[1], &pool_id);
	for (i = 0; !status && i < nr; i++)
		status = write_setting(pool_id, &settings[i]);
	return status ? status : show_emit_pool(pool_id);
}

static int pool_destroy(int argc, char **argv)
{
	struct json_object *obj;
	struct kvtier_ctl *ctl;
	uint32_t pool_id;
	int ret, status;

	/* Never by default: the only pool there is may be the wrong one. */
	if (argc != 2)
		return cmd_usage("pool destroy needs one pool");
	status = cmd_pick_pool(argv[1], &pool_id);
	if (!status)
		status = cmd_open_ctl(&ctl);
	if (status)
		return status;
	ret = kvtier_ctl_pool_destroy(ctl, pool_id);
	kvtier_ctl_unref(ctl);
	if (ret == -EBUSY)
		return cmd_fail(ret, "processes have it open; see who: fuser -v /dev/kvtier*",
				"pool %u", pool_id);
	if (ret)
		return cmd_fail(ret, ret == -ENOENT ? "see: kvtier pool list" :
				NULL, "pool %u", pool_id);
	obj = json_object_new_object();
	cmd_add_u64(obj, "destroyed", pool_id);
	cmd_emit(obj, NULL);
	return EXIT_OK;
}

const struct cmd_verb pool_verbs[] = {
	{ "create", "[--id N] [--tier SPEC]... [--force]",
	  "make a pool of tiers, fastest first", pool_create },
	{ "list", "", "list pools", pool_list },
	{ "show", "[POOL]", "tell all about a pool", pool_show },
	{ "set", "POOL KEY=VALUE...", "change a pool's settings", pool_set },
	{ "destroy", "POOL", "shut a pool down; what its block tiers hold can be assembled again",
	  pool_destroy },
	{ "members", "[DEVICE...] [--export]",
	  "list pools that are on block devices, with their members", pool_members },
	{ "assemble", "[DEVICE...] [--scan] [--uuid UUID] [--degraded] [--id N] [--tier SPEC]...",
	  "bring pools up again from their block devices", pool_assemble },
	{ "scrub", "[POOL] [--rate SIZE] [--wait] | --stop | --status",
	  "have what block devices hold verified, in the background", pool_scrub },
	{ "cgroups", "[POOL] | POOL --limit CGROUP=SIZE|max...",
	  "show what control groups have in a pool, and limit it", pool_cgroups },
	{ NULL, NULL, NULL, NULL },
};
