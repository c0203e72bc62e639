// SPDX-License-Identifier: GPL-2.0
/*
 * Opening the devices, with advice when that fails.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "cmd.h"
#include "sysfs.h"

static void print_log(void *data, int level, const char *text)
{
	(void)data;
	(void)level;
	fprintf(stderr, "libkvtier: %s\n", text);
}

int cmd_open_ctl(struct kvtier_ctl **ctl)
{
	int ret = kvtier_ctl_open(ctl);

	if (ret == -ENOENT)
		return cmd_fail(ret, "the module is not loaded: modprobe kvtier",
				"/dev/kvtier");
	if (ret == -EACCES || ret == -EPERM)
		return cmd_fail(ret, "pools are managed by root",
				"/dev/kvtier");
	if (ret)
		return cmd_fail(ret, NULL, "/dev/kvtier");
	if (opt.verbose)
		kvtier_ctl_set_log(*ctl, print_log, NULL);
	return EXIT_OK;
}

/* Nothing is there without the module, either. */
static const char *no_pool_hint(void)
{
	struct kvtier_ctl *ctl;
	int ret = kvtier_ctl_open(&ctl);

	if (ret == -ENOENT)
		return "the module is not loaded: modprobe kvtier";
	if (!ret)
		kvtier_ctl_unref(ctl);
	return "see which pools there are: kvtier pool list";
}

int cmd_open_pool(uint32_t pool_id, struct kvtier_pool **pool)
{
	int ret = kvtier_pool_open(pool_id, pool);

	if (ret == -ENOENT)
		return cmd_fail(ret, no_pool_hint(), "pool %u", pool_id);
	if (ret)
		return cmd_fail(ret, NULL, "pool %u", pool_id);
	if (opt.verbose)
		kvtier_pool_set_log(*pool, print_log, NULL);
	return EXIT_OK;
}

static int pools_by_sysfs(uint32_t **ids)
{
	struct sysfs_names list;
	size_t i, nr = 0;
	int ret;

	ret = sysfs_list(&list, "class/kvtier", "kvtier");
	if (ret)
		return ret;
	*ids = calloc(list.nr + 1, sizeof(**ids));
	for (i = 0; *ids && i < list.nr; i++)
		if (!cmd_parse_pool(list.names[i], &(*ids)[nr]))
			nr++;
	sysfs_free_names(&list);
	return *ids ? (int)nr : -ENOMEM;
}

int cmd_pool_ids(uint32_t **ids)
{
	struct kvtier_ctl *ctl;
	int ret = kvtier_ctl_open(&ctl);

	/* Members of group kvtier use pools without managing them. */
	if (ret == -EACCES || ret == -EPERM)
		return pools_by_sysfs(ids);
	if (ret)
		return ret;
	ret = kvtier_ctl_pools(ctl, ids);
	kvtier_ctl_unref(ctl);
	return ret;
}

/* The pool with this UUID, as sysfs has it; numbers change from boot to boot. */
static int pool_by_uuid(const char *uuid, uint32_t *pool_id)
{
	char text[SYSFS_NAME_MAX];
	uint32_t *ids = NULL;
	bool found = false;
	int i, nr;

	nr = pools_by_sysfs(&ids);
	for (i = 0; !found && i < nr; i++) {
		found = !sysfs_read(text, sizeof(text), "class/kvtier/kvtier%u/uuid",
				    ids[i]) && !strcasecmp(text, uuid);
		*pool_id = ids[i];
	}
	free(ids);
	return found ? 0 : -ENOENT;
}

static bool is_uuid(const char *text)
{
	return strlen(text) == 36 && strspn(text, "0123456789abcdefABCDEF-") == 36;
}

int cmd_pick_pool(const char *text, uint32_t *pool_id)
{
	uint32_t *ids = NULL;
	int nr;

	if (text) {
		if (is_uuid(text))
			return pool_by_uuid(text, pool_id) ?
			       cmd_fail(ENOENT, "see: kvtier pool list", "pool %s", text) :
			       EXIT_OK;
		if (cmd_parse_pool(text, pool_id))
			return cmd_usage("'%s' is not a pool: want a number or UUID as in 'kvtier pool list'",
					 text);
		return EXIT_OK;
	}
	nr = cmd_pool_ids(&ids);
	if (nr == -ENOENT)
		return cmd_fail(nr, "the module is not loaded: modprobe kvtier",
				"/dev/kvtier");
	if (nr < 0)
		return cmd_fail(nr, NULL, "listing pools");
	if (nr == 1)
		*pool_id = ids[0];
	free(ids);
	if (!nr)
		return cmd_fail(ENOENT, "make one: kvtier pool create",
				"there is no pool");
	if (nr > 1)
		return cmd_usage("there are %d pools: say which", nr);
	return EXIT_OK;
}
