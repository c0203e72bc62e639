// SPDX-License-Identifier: GPL-2.0
/*
 * kvtier tier attach|detach|drain|list
 */
#include <errno.h>
#include <getopt.h>
#include <string.h>
#include "cmd.h"
#include "show.h"
#include "spec.h"
#include "sysfs.h"

#define DRAIN_TIMEOUT_NS	60000000000ULL

/* [POOL] WHAT: the pool may be left out when there is but one. */
static int pool_and_word(int argc, char **argv, uint32_t *pool_id,
			 const char **word)
{
	int left = argc - optind;

	if (left < 1 || left > 2)
		return cmd_usage("tier %s needs [POOL] and a tier", argv[0]);
	*word = argv[argc - 1];
	return cmd_pick_pool(left == 2 ? argv[optind] : NULL, pool_id);
}

static int tier_attach(int argc, char **argv)
{
	static const struct option options[] = {
		{ "force", no_argument, NULL, 'f' },
		{ NULL, 0, NULL, 0 },
	};
	struct kvtier_tier_info taken[KVTIER_TIERS_MAX];
	struct kvtier_ctl *ctl = NULL;
	struct kvtier_pool *pool;
	struct spec_error error;
	struct tier_spec spec;
	char uuid[64];
	bool force = false;
	const char *text;
	uint32_t pool_id;
	int o, nr, status;

	while ((o = getopt_long(argc, argv, "f", options, NULL)) != -1) {
		if (o != 'f')
			return cmd_usage("tier attach: bad option '%s'",
					 argv[optind - 1]);
		force = true;
	}
	status = pool_and_word(argc, argv, &pool_id, &text);
	if (status)
		return status;
	if (spec_parse(text, &spec, &error))
		return cmd_usage("'%s': %s", text, error.text);
	status = cmd_open_pool(pool_id, &pool);
	if (status)
		return status;
	nr = kvtier_pool_tiers(pool, taken);
	kvtier_pool_unref(pool);
	if (nr < 0)
		return cmd_fail(nr, NULL, "querying pool %u", pool_id);
	if (spec_complete(&spec, 1, taken, (unsigned int)nr, &error))
		return cmd_usage("%s", error.text);
	if (sysfs_read(uuid, sizeof(uuid), "class/kvtier/kvtier%u/uuid", pool_id))
		uuid[0] = 0;
	status = spec_check_device(&spec, force, uuid);
	if (!status)
		status = cmd_open_ctl(&ctl);
	if (!status)
		status = spec_attach(ctl, pool_id, &spec);
	kvtier_ctl_unref(ctl);
	return status ? status : show_emit_pool(pool_id);
}

static int tier_id_of(uint32_t pool_id, const char *name, uint32_t *tier_id)
{
	struct kvtier_tier_info tiers[KVTIER_TIERS_MAX];
	struct kvtier_pool *pool;
	int i, nr, status;

	status = cmd_open_pool(pool_id, &pool);
	if (status)
		return status;
	nr = kvtier_pool_tiers(pool, tiers);
	kvtier_pool_unref(pool);
	if (nr < 0)
		return cmd_fail(nr, NULL, "querying pool %u", pool_id);
	for (i = 0; i < nr; i++) {
		if (strcmp(tiers[i].name, name))
			continue;
		*tier_id = tiers[i].id;
		return EXIT_OK;
	}
	return cmd_fail(ENOENT, "see: kvtier tier list", "tier '%s' of pool %u",
			name, pool_id);
}

struct empty_options {
	bool discard;
	uint64_t timeout_ns;
};

static int parse_empty(int argc, char **argv, const char *letters,
		       struct empty_options *e)
{
	static const struct option options[] = {
		{ "timeout", required_argument, NULL, 't' },
		{ "discard", no_argument, NULL, 'd' },
		{ NULL, 0, NULL, 0 },
	};
	int o;

	e->discard = false;
	e->timeout_ns = DRAIN_TIMEOUT_NS;
	while ((o = getopt_long(argc, argv, letters, options, NULL)) != -1) {
		if (o == 't' && cmd_parse_duration(optarg, &e->timeout_ns))
			return cmd_usage("--timeout '%s' is not a time such as 10s",
					 optarg);
		if (o == 'd' && !strchr(letters, 'd'))
			return cmd_usage("tier drain keeps blocks; to lose them: tier detach --discard");
		if (o == 'd')
			e->discard = true;
		if (o == '?' || o == ':')
			return cmd_usage("tier %s: bad option '%s'", argv[0],
					 argv[optind - 1]);
	}
	return EXIT_OK;
}

/* Devices that could not be wiped are members still by what is on them. */
static void note_unwiped(uint32_t pool_id)
{
	uint64_t nr;

	if (sysfs_read_u64(&nr, "class/kvtier/kvtier%u/unwiped", pool_id) || !nr)
		return;
	cmd_note("pool %u: members that have left without being wiped, because the device had gone or took no writes: %llu; a pool that is assembled from one of them has blocks that were dropped since",
		 pool_id, (unsigned long long)nr);
	cmd_note("when a device is back attach it again (kvtier tier attach); or wipe it (dd if=/dev/zero of=DEVICE bs=1M count=1; a zoned one: blkzone reset), and when all are wiped or destroyed: echo 0 > /sys/class/kvtier/kvtier%u/unwiped",
		 pool_id);
}

static int tier_empty(int argc, char **argv, bool detach)
{
	struct kvtier_ctl *ctl;
	struct empty_options e;
	uint32_t pool_id, tier_id;
	const char *name;
	int ret, status;

	status = parse_empty(argc, argv, detach ? "t:d" : "t:", &e);
	if (!status)
		status = pool_and_word(argc, argv, &pool_id, &name);
	if (!status)
		status = tier_id_of(pool_id, name, &tier_id);
	if (!status)
		status = cmd_open_ctl(&ctl);
	if (status)
		return status;
	if (detach)
		ret = kvtier_ctl_tier_detach(ctl, pool_id, tier_id, e.discard ?
					     KVTIER_DETACH_DISCARD : 0,
					     e.timeout_ns);
	else
		ret = kvtier_ctl_tier_drain(ctl, pool_id, tier_id,
					    e.timeout_ns);
	kvtier_ctl_unref(ctl);
	if (ret == -EBUSY)
		return cmd_fail(ret, detach ?
				"leases, pins or arenas keep blocks there, or the other tiers have no room; the tier is what it was before" :
				"leases, pins or arenas keep blocks there; the tier goes on draining",
				"emptying tier '%s'", name);
	if (ret)
		return cmd_fail(ret, NULL, "emptying tier '%s'", name);
	if (detach)
		note_unwiped(pool_id);
	return show_emit_pool(pool_id);
}

static int tier_detach(int argc, char **argv)
{
	return tier_empty(argc, argv, true);
}

static int tier_drain(int argc, char **argv)
{
	return tier_empty(argc, argv, false);
}

static int tier_list(int argc, char **argv)
{
	struct kvtier_pool *pool;
	struct json_object *tiers;
	uint32_t pool_id;
	int err = 0, status;

	if (argc > 2)
		return cmd_usage("tier list: what is '%s'?", argv[2]);
	status = cmd_pick_pool(argv[1], &pool_id);
	if (!status)
		status = cmd_open_pool(pool_id, &pool);
	if (status)
		return status;
	tiers = show_tiers(pool, pool_id, &err);
	kvtier_pool_unref(pool);
	if (!tiers)
		return cmd_fail(err, NULL, "querying pool %u", pool_id);
	cmd_emit(tiers, tier_columns);
	return EXIT_OK;
}

const struct cmd_verb tier_verbs[] = {
	{ "attach", "[POOL] SPEC [--force]", "add a tier", tier_attach },
	{ "detach", "[POOL] TIER [--discard] [--timeout TIME]",
	  "move its blocks elsewhere and give its device back", tier_detach },
	{ "drain", "[POOL] TIER [--timeout TIME]",
	  "move its blocks elsewhere and place no more there", tier_drain },
	{ "list", "[POOL]", "list tiers, fastest first", tier_list },
	{ NULL, NULL, NULL, NULL },
};
