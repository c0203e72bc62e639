// SPDX-License-Identifier: GPL-2.0
/*
 * kvtier pool scrub: have what block tiers hold verified, and tell what came of it.
 * The kernel does it in the background; sysfs has how far it is.
 */
#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <time.h>
#include "cmd.h"
#include "pool_cmds.h"
#include "show.h"
#include "sysfs.h"

#define RATE_BYTES	(64ULL << 20)	/* in a second, if nothing is said */
#define POLL_NS		200000000L

struct scrub_options {
	uint64_t rate_bytes;
	bool has_rate;
	bool wait;
	bool stop;
	bool status;
};

static int parse_scrub(int argc, char **argv, struct scrub_options *o)
{
	static const struct option options[] = {
		{ "rate", required_argument, NULL, 'r' },
		{ "wait", no_argument, NULL, 'w' },
		{ "stop", no_argument, NULL, 's' },
		{ "status", no_argument, NULL, 'q' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "r:wsq", options, NULL)) != -1) {
		switch (c) {
		case 'r':
			if (strcmp(optarg, "0") && cmd_parse_bytes(optarg, &o->rate_bytes))
				return cmd_usage("--rate '%s' is not a size such as 100M", optarg);
			if (!strcmp(optarg, "0"))
				o->rate_bytes = 0;
			o->has_rate = true;
			break;
		case 'w':
			o->wait = true;
			break;
		case 's':
			o->stop = true;
			break;
		case 'q':
			o->status = true;
			break;
		default:
			return cmd_usage("pool scrub: bad option '%s'", argv[optind - 1]);
		}
	}
	if (o->stop + o->status + (o->has_rate || o->wait) > 1)
		return cmd_usage("pool scrub: --stop and --status stand alone");
	if (optind + 1 < argc)
		return cmd_usage("pool scrub: what is '%s'?", argv[optind + 1]);
	return EXIT_OK;
}

static int emit_status(uint32_t pool_id)
{
	static const struct cmd_column cols[] = {
		{ "pool", "Pool", CMD_COUNT },
		{ "scrub_state", "Scrub", CMD_TEXT },
		{ "scrub_rate_bytes", "Most in a second", CMD_BYTES },
		{ "scrub_total_bytes", "To read", CMD_BYTES },
		{ "scrub_bytes", "Read", CMD_BYTES },
		{ "scrub_blocks", "Blocks read", CMD_COUNT },
		{ "scrub_checksum_errors", "Lost, did not verify", CMD_COUNT },
		{ "scrub_read_errors", "Lost, could not be read", CMD_COUNT },
		{ NULL, NULL, CMD_TEXT },
	};
	const struct cmd_column *col;
	struct json_object *obj;
	char dir[SYSFS_PATH_MAX];

	snprintf(dir, sizeof(dir), "class/kvtier/kvtier%u", pool_id);
	if (!sysfs_exists("%s/scrub_state", dir))
		return cmd_fail(ENOENT, "see: kvtier pool list", "pool %u", pool_id);
	obj = json_object_new_object();
	cmd_add_u64(obj, "pool", pool_id);
	for (col = cols + 1; col->key; col++)
		show_sysfs(obj, dir, col->key);
	cmd_emit(obj, cols);
	return EXIT_OK;
}

/* Until it is over; a signal ends this, and the scrub goes on. */
static int wait_for_end(uint32_t pool_id)
{
	const struct timespec pause = { .tv_nsec = POLL_NS };
	char state[32];
	int ret;

	for (;;) {
		ret = sysfs_read(state, sizeof(state), "class/kvtier/kvtier%u/scrub_state",
				 pool_id);
		if (ret < 0)
			return cmd_fail(ret, NULL, "watching the scrub of pool %u", pool_id);
		if (strcmp(state, "running"))
			break;
		nanosleep(&pause, NULL);
	}
	if (!strcmp(state, "failed"))
		return cmd_fail(EIO, "a device fails, see: kvtier stat; journalctl -k",
				"pool %u: not all of it could be looked at", pool_id);
	return EXIT_OK;
}

int pool_scrub(int argc, char **argv)
{
	struct scrub_options o = { .rate_bytes = RATE_BYTES };
	struct kvtier_ctl *ctl;
	uint32_t pool_id;
	int ret, status;

	status = parse_scrub(argc, argv, &o);
	if (!status)
		status = cmd_pick_pool(optind < argc ? argv[optind] : NULL, &pool_id);
	if (status)
		return status;
	if (o.status)
		return emit_status(pool_id);
	status = cmd_open_ctl(&ctl);
	if (status)
		return status;
	ret = kvtier_ctl_pool_scrub(ctl, pool_id, o.stop ? KVTIER_SCRUB_STOP : 0,
				    o.stop ? 0 : o.rate_bytes);
	kvtier_ctl_unref(ctl);
	if (ret)
		return cmd_fail(ret, ret == -EBUSY ?
				"it is being scrubbed: kvtier pool scrub --status, or --stop" :
				ret == -ENOENT ? "see: kvtier pool list" : NULL,
				"scrubbing pool %u", pool_id);
	status = o.wait ? wait_for_end(pool_id) : EXIT_OK;
	return status ? status : emit_status(pool_id);
}
