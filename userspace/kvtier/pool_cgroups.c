// SPDX-License-Identifier: GPL-2.0
/*
 * kvtier pool cgroups: what control groups have in a pool, and may have.
 *
 * The driver's file cgroup_limits knows groups by their numbers, which are those of the
 * directories' inodes; where a group is, is looked up among the directories there are.
 * All that is asked for is checked before anything is written; the driver may still
 * refuse, and then what stands before that on the command line holds.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <ftw.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "cmd.h"
#include "pool_cmds.h"
#include "sysfs.h"

/* What a file of sysfs can hold. */
#define TABLE_MAX	4097
#define LIMITS_MAX	32
#define WALK_FDS	16

/**
 * struct limit - to be set
 * @cgroup: as the driver takes it: a path below the root of cgroups, or a number
 * @bytes:  likewise: a number, or "max"
 */
struct limit {
	const char *cgroup;
	char bytes[24];
};

struct request {
	const char *pool;
	uint32_t pool_id;
	unsigned int nr;
	struct limit limits[LIMITS_MAX];
};

/* A line of the driver's file. @path: NULL if there is no such directory any more. */
struct account {
	uint64_t cgroup;
	uint64_t used_bytes;
	uint64_t limit_bytes;
	char *path;
};

static int cgroup_root(char root[static PATH_MAX])
{
	return snprintf(root, PATH_MAX, "%s/fs/cgroup", sysfs_root());
}

static int parse_limit(struct request *req, char *pair)
{
	struct limit *l = &req->limits[req->nr];
	char root[PATH_MAX], *value = strrchr(pair, '=');
	size_t len = (size_t)cgroup_root(root);
	uint64_t number;

	if (req->nr == LIMITS_MAX)
		return cmd_usage("pool cgroups: more than %d limits", LIMITS_MAX);
	if (!value || value == pair)
		return cmd_usage("'%s' is not of the form CGROUP=SIZE", pair);
	*value++ = 0;
	/* With the root, as a shell completes it, or without, as /proc/PID/cgroup has it. */
	if (!strncmp(pair, root, len) && (!pair[len] || pair[len] == '/'))
		pair += len;
	l->cgroup = *pair ? pair : "/";
	if (*l->cgroup != '/' && (cmd_parse_u64(pair, UINT64_MAX, &number) || !number))
		return cmd_usage("'%s' is not a cgroup: want a path such as /system.slice, or a number",
				 pair);
	if (!strcmp(value, "max"))
		snprintf(l->bytes, sizeof(l->bytes), "max");
	else if (!cmd_parse_bytes(value, &number))
		snprintf(l->bytes, sizeof(l->bytes), "%" PRIu64, number);
	else
		return cmd_usage("'%s' is not a size (64M, 1.5G, or max for no limit)", value);
	req->nr++;
	return EXIT_OK;
}

static int parse(int argc, char **argv, struct request *req)
{
	static const struct option options[] = {
		{ "limit", required_argument, NULL, 'l' },
		{ NULL, 0, NULL, 0 },
	};
	int o, status = EXIT_OK;

	while (!status && (o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (o != 'l')
			return cmd_usage("pool cgroups: bad option '%s'", argv[optind - 1]);
		status = parse_limit(req, optarg);
	}
	if (status)
		return status;
	if (argc - optind > 1)
		return cmd_usage("pool cgroups: what is '%s'?", argv[optind + 1]);
	req->pool = argv[optind];
	if (!req->pool && req->nr)
		return cmd_usage("pool cgroups needs a pool to set limits in");
	return cmd_pick_pool(req->pool, &req->pool_id);
}

/* The pool and all cgroups are there, so that a slip of the pen changes nothing. */
static int check_limits(const struct request *req)
{
	char path[2 * PATH_MAX], root[PATH_MAX];
	const struct limit *l;
	struct stat st;

	if (!sysfs_exists("class/kvtier/kvtier%u", req->pool_id))
		return cmd_fail(ENOENT, "see: kvtier pool list", "pool %u", req->pool_id);
	cgroup_root(root);
	for (l = req->limits; l < req->limits + req->nr; l++) {
		if (*l->cgroup != '/')
			continue;
		snprintf(path, sizeof(path), "%s%s", root, l->cgroup);
		if (stat(path, &st))
			return cmd_fail(errno, "a path is as in /proc/PID/cgroup, after the '::'",
					"cgroup '%s'", l->cgroup);
		if (!S_ISDIR(st.st_mode))
			return cmd_fail(ENOTDIR, NULL, "cgroup '%s'", l->cgroup);
	}
	return EXIT_OK;
}

static const char *limit_hint(const struct limit *l, int err)
{
	switch (err) {
	case -EACCES:
		return "only root sets limits";
	case -ENOSPC:
		return "there are as many limits as a pool can have: take one away with =max";
	case -ENOENT:
		return strcmp(l->bytes, "max") ? NULL : "it has no limit";
	}
	return NULL;
}

static int write_limits(const struct request *req)
{
	char line[PATH_MAX];
	const struct limit *l;
	int ret;

	for (l = req->limits; l < req->limits + req->nr; l++) {
		ret = snprintf(line, sizeof(line), "%s %s", l->cgroup, l->bytes);
		ret = ret < (int)sizeof(line) ? sysfs_write(line,
			"class/kvtier/kvtier%u/cgroup_limits", req->pool_id) : -ENAMETOOLONG;
		if (ret)
			return cmd_fail(ret, limit_hint(l, ret), "limit of cgroup %s in pool %u: %s",
					l->cgroup, req->pool_id, l->bytes);
	}
	return EXIT_OK;
}

/* --- Showing them ---------------------------------------------------------- */

/* What the walk is about: it has no argument for that. */
static struct account accounts[LIMITS_MAX];
static unsigned int nr_accounts;
static size_t root_len;

static int visit(const char *path, const struct stat *st, int type, struct FTW *at)
{
	struct account *a;

	(void)at;
	if (type != FTW_D)
		return 0;
	for (a = accounts; a < accounts + nr_accounts; a++) {
		if (a->cgroup == st->st_ino && !a->path)
			a->path = strdup(path[root_len] ? path + root_len : "/");
	}
	return 0;
}

static void find_paths(void)
{
	char root[PATH_MAX];

	root_len = (size_t)cgroup_root(root);
	/* Groups come and go meanwhile; one that is not found is shown by its number. */
	if (nr_accounts)
		nftw(root, visit, WALK_FDS, FTW_PHYS | FTW_MOUNT);
}

static void parse_accounts(const char *table)
{
	struct account *a;
	const char *line;

	nr_accounts = 0;
	for (line = table; *line && nr_accounts < LIMITS_MAX; line++) {
		a = &accounts[nr_accounts];
		if (sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNu64, &a->cgroup, &a->used_bytes,
			   &a->limit_bytes) == 3)
			nr_accounts++;
		line += strcspn(line, "\n");
		if (!*line)
			break;
	}
}

static struct json_object *accounts_json(void)
{
	struct json_object *array = json_object_new_array(), *obj;
	struct account *a;

	for (a = accounts; a < accounts + nr_accounts; a++) {
		obj = json_object_new_object();
		cmd_add_u64(obj, "cgroup", a->cgroup);
		if (a->path)
			cmd_add_str(obj, "path", a->path);
		cmd_add_u64(obj, "used_bytes", a->used_bytes);
		cmd_add_u64(obj, "limit_bytes", a->limit_bytes);
		cmd_append(array, obj);
		free(a->path);
		a->path = NULL;
	}
	return array;
}

static int show(const struct request *req)
{
	static const struct cmd_column cols[] = {
		{ "cgroup", "CGROUP", CMD_COUNT },
		{ "used_bytes", "USED", CMD_BYTES },
		{ "limit_bytes", "LIMIT", CMD_BYTES },
		{ "path", "PATH", CMD_TEXT },
		{ NULL, NULL, CMD_TEXT },
	};
	char table[TABLE_MAX];
	int ret;

	ret = sysfs_read_all(table, sizeof(table), "class/kvtier/kvtier%u/cgroup_limits",
			     req->pool_id);
	if (ret)
		return cmd_fail(ret, ret == -ENOENT ? "see: kvtier pool list" :
				ret == -EACCES ? "only root sees what cgroups have" : NULL,
				"cgroups of pool %u", req->pool_id);
	parse_accounts(table);
	find_paths();
	cmd_emit(accounts_json(), cols);
	return EXIT_OK;
}

int pool_cgroups(int argc, char **argv)
{
	struct request req = { .nr = 0 };
	int status;

	status = parse(argc, argv, &req);
	if (!status)
		status = check_limits(&req);
	if (!status)
		status = write_limits(&req);
	return status ? status : show(&req);
}
