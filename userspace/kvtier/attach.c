// SPDX-License-Identifier: GPL-2.0
/*
 * Attaching a tier: what is checked before, and what is said when it fails.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "cmd.h"
#include "media.h"
#include "pmem.h"
#include "poison.h"
#include "spec.h"
#include "sysfs.h"

static int report_member(const char *path, const char *what)
{
	return cmd_fail(EEXIST, "bring its pool up again: kvtier pool assemble; or, if its contents are to be lost: --force",
			"%s is %s", path, what);
}

static int check_bdev(const char *path, bool force, const char *pool)
{
	struct stat st;
	char what[SIGNATURE_MAX];
	int ret;

	if (stat(path, &st))
		return cmd_fail(errno, "", "%s", path);
	if (!S_ISBLK(st.st_mode))
		return cmd_fail(ENOTBLK, "a file can be made one: losetup -f --show FILE",
				"%s", path);
	if (force)
		return EXIT_OK;
	ret = signature_find(path, what);
	if (ret == SIGNATURE_MEMBER && pool && signature_of_pool(path, pool))
		ret = signature_find_other(path, what);
	if (ret < 0)
		return cmd_fail(ret, NULL, "looking for signatures on %s", path);
	if (ret == SIGNATURE_MEMBER)
		return report_member(path, what);
	if (ret)
		return cmd_fail(EBUSY, "its contents would be lost; if they are to be: --force",
				"%s holds %s", path, what);
	return EXIT_OK;
}

static int check_pmem(const char *name, bool force, const char *pool)
{
	char driver[SYSFS_NAME_MAX], what[SIGNATURE_MAX];
	int ret;

	if (!media_dax_is_persistent(name))
		return cmd_fail(ENODEV, "make one: kvtier cxl create --type pmem; see: kvtier cxl list",
				"no persistent dax device %s", name);
	/* What other drivers than that one have is the kernel's to look at. */
	if (force || sysfs_link_name(driver, sizeof(driver), "bus/dax/devices/%s/driver", name) ||
	    strcmp(driver, "device_dax"))
		return EXIT_OK;
	ret = signature_find(name, what);
	if (ret == SIGNATURE_MEMBER && pool && signature_of_pool(name, pool))
		ret = 0;
	if (ret < 0)
		return cmd_fail(ret, NULL, "looking at %s", name);
	return ret ? report_member(name, what) : EXIT_OK;
}

static int check_dax(const char *name)
{
	char driver[SYSFS_NAME_MAX];
	int ret;

	if (!sysfs_exists("bus/dax/devices/%s", name))
		return cmd_fail(ENODEV, "see: kvtier cxl list; make one: kvtier cxl create",
				"%s", name);
	ret = sysfs_link_name(driver, sizeof(driver),
			      "bus/dax/devices/%s/driver", name);
	if (ret == -ENOENT)
		return cmd_fail(ENXIO, "hand it to kvtier: kvtier cxl bind",
				"%s has no driver", name);
	if (ret)
		return cmd_fail(ret, NULL, "%s", name);
	if (!strcmp(driver, "kmem"))
		return cmd_fail(EBUSY, "it is system RAM until the next reboot; it can be used as such: --tier node:node=N,size=SIZE",
				"the kmem driver has %s", name);
	if (strcmp(driver, "kvtier"))
		return cmd_fail(EBUSY, "hand it to kvtier: kvtier cxl bind",
				"driver %s has %s", driver, name);
	return EXIT_OK;
}

int spec_check_device(struct tier_spec *spec, bool force, const char *pool)
{
	switch (spec->params.type) {
	case KVTIER_TIER_BDEV:
		/* Members of pools are known to the kernel. */
		if (force)
			spec->params.flags |= KVTIER_ATTACH_FORCE;
		return check_bdev(spec->path, force, pool);
	case KVTIER_TIER_DAX:
		return check_dax(spec->path);
	case KVTIER_TIER_PMEM:
		if (force)
			spec->params.flags |= KVTIER_ATTACH_FORCE;
		return check_pmem(spec->path, force, pool);
	}
	return EXIT_OK;
}

static const char *attach_hint(int err, uint32_t type)
{
	switch (err) {
	case -EEXIST:
		if (type == KVTIER_TIER_PMEM)
			return "its rank, name or device is in use already (kvtier tier list), or something is on the device: a member of a pool (kvtier pool assemble) or data of others; if that is to be lost: --force";
		return type == KVTIER_TIER_BDEV ?
		       "its rank, name or device is in use already (kvtier tier list), or the device is a member of a pool (kvtier pool members)" :
		       "its rank, name or device is in use already: kvtier tier list";
	case -EINVAL:
		return "is it large enough, and does memory rank before block devices?";
	case -ENOSPC:
		return "the pool has as many tiers as it can";
	case -ENOENT:
		return "the pool or the device is not there";
	case -EBUSY:
		return type == KVTIER_TIER_BDEV ?
		       "is it mounted, or does another driver or pool have it?" :
		       "does another pool have it?";
	case -EIO:
		return "the kernel log says more: dmesg | tail";
	case -ENOMEM:
		return "there is not so much free memory";
	}
	return NULL;
}

/* What the devices know to be bad. That they cannot be asked is no reason not to go on. */
static int find_poison(const struct tier_spec *spec, struct poison_list *bad)
{
	char what[SYSFS_PATH_MAX];
	int ret;

	memset(bad, 0, sizeof(*bad));
	if (spec->params.type != KVTIER_TIER_DAX)
		return EXIT_OK;
	ret = poison_of_dax(spec->path, bad, what, sizeof(what));
	if (ret == -E2BIG)
		return cmd_fail(ret, "replace the device", "%s: too much of it is bad", what);
	if (ret)
		cmd_note("%s: memory that its device knows to be bad is not left out: %s: %s",
			 spec->path, what, strerror(-ret));
	if (bad->nr)
		cmd_note("%s: %u pieces of memory are bad, and are left out", spec->path, bad->nr);
	if (bad->incomplete)
		cmd_note("%s: its device does not know all that is bad", spec->path);
	return EXIT_OK;
}

static int attach(struct kvtier_ctl *ctl, uint32_t pool_id, const struct tier_spec *spec)
{
	struct kvtier_tier_params params = spec->params;
	struct poison_list bad;
	unsigned int tries = 0;
	int ret;

	ret = find_poison(spec, &bad);
	if (ret)
		return ret;
	params.bad = bad.ranges;
	params.nr_bad = bad.nr;
	do
		ret = kvtier_ctl_tier_attach(ctl, pool_id, &params, NULL);
	while (ret == -EBUSY && params.type == KVTIER_TIER_BDEV && media_busy_again(&tries));
	poison_free(&bad);
	if (ret)
		return cmd_fail(ret, attach_hint(ret, spec->params.type),
				"attaching tier '%s'%s%s to pool %u",
				spec->name, spec->path[0] ? " on " : "",
				spec->path, pool_id);
	return EXIT_OK;
}

int spec_attach(struct kvtier_ctl *ctl, uint32_t pool_id,
		const struct tier_spec *spec)
{
	struct pmem_hold hold;
	int status, ret;
	bool took;

	if (spec->params.type != KVTIER_TIER_PMEM)
		return attach(ctl, pool_id, spec);
	ret = pmem_hold_begin(&hold, true);
	if (ret)
		return cmd_fail(ret, NULL, "locking the drivers of the dax bus");
	status = pmem_bind(&hold, spec->path, &took);
	if (!status)
		status = attach(ctl, pool_id, spec);
	if (status && took)
		pmem_give_back(&hold, spec->path);
	pmem_hold_end(&hold);
	return status;
}
