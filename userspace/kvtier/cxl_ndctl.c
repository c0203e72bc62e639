// SPDX-License-Identifier: GPL-2.0
/*
 * Namespaces of a persistent region, by libndctl, and their dax devices, by libdaxctl.
 *
 * What a namespace is, is written down in labels on the memory devices: a region that
 * is made anew with the uuid it had finds those that were in it. They are taken as they
 * are; only a region that is all free gets new ones. Both libraries remember what they
 * have read, so each look at what appears in the background is a new one.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <daxctl/libdaxctl.h>
#include <ndctl/libndctl.h>
#include "cxl.h"

#define WAIT_MS		10000
#define STEP_MS		20
#define DAX_ALIGN	(2UL << 20)
#define SIZE_ALIGN	(16ULL << 20)	/* where the kernel does not say */

/* A look at things; @region is NULL if it is not there, or has no driver yet. */
struct look {
	struct ndctl_ctx *ctx;
	struct ndctl_region *region;
};

static void step(void)
{
	const struct timespec ts = { .tv_nsec = STEP_MS * 1000000L };

	nanosleep(&ts, NULL);
}

static int look_begin(struct look *look, uint64_t address)
{
	struct ndctl_region *region;
	struct ndctl_bus *bus;
	int ret;

	memset(look, 0, sizeof(*look));
	ret = ndctl_new(&look->ctx);
	if (ret)
		return ret < 0 ? ret : -ret;
	ndctl_bus_foreach(look->ctx, bus) {
		ndctl_region_foreach(bus, region) {
			if (ndctl_region_get_resource(region) == address &&
			    ndctl_region_is_enabled(region))
				look->region = region;
		}
	}
	return 0;
}

static void look_end(struct look *look)
{
	ndctl_unref(look->ctx);
}

/* Labels are read before the region has its driver; what new ones are made of comes later. */
static bool is_ready(struct ndctl_region *region, uint64_t *bytes, uint64_t *free)
{
	if (!region)
		return false;
	*bytes = ndctl_region_get_size(region);
	*free = ndctl_region_get_available_size(region);
	return *free < *bytes || (ndctl_region_get_namespace_seed(region) &&
				  ndctl_region_get_dax_seed(region));
}

static int wait_for_region(const struct cxl_region_plan *plan, uint64_t *address,
			   uint64_t *bytes, uint64_t *free, struct cxl_trouble *trouble)
{
	struct look look;
	int left_ms, ret;
	bool ready;

	ret = sysfs_read_u64(address, "bus/cxl/devices/%s/resource", plan->region);
	for (left_ms = WAIT_MS; !ret && left_ms > 0; left_ms -= STEP_MS) {
		ret = look_begin(&look, *address);
		if (ret)
			break;
		ready = is_ready(look.region, bytes, free);
		look_end(&look);
		if (ready)
			return 0;
		step();
	}
	return cxl_give_up(trouble, ret ? ret : -ETIMEDOUT,
			   "are the cxl_pmem and nd_pmem modules there? modprobe -a cxl_pmem nd_pmem",
			   "no libnvdimm region appeared for %s", plan->region);
}

/* --- Devices that are there ------------------------------------------------ */

static void add_daxes(struct cxl_region_plan *plan, struct ndctl_dax *dax)
{
	struct daxctl_region *region = ndctl_dax_get_daxctl_region(dax);
	struct daxctl_dev *dev;

	if (!region)
		return;
	daxctl_dev_foreach(region, dev) {
		if (plan->nr_daxes == CXL_NAMESPACES_MAX)
			return;
		snprintf(plan->daxes[plan->nr_daxes++], SYSFS_NAME_MAX, "%s",
			 daxctl_dev_get_devname(dev));
	}
}

/* Fills in @plan->daxes. Are there namespaces of @used bytes, and has each a device. */
static bool list_daxes(struct cxl_region_plan *plan, struct ndctl_region *region, uint64_t used)
{
	struct ndctl_namespace *ns;
	struct ndctl_dax *dax;
	unsigned int before;
	uint64_t found = 0;
	bool all = true;

	plan->nr_daxes = 0;
	ndctl_namespace_foreach(region, ns) {
		if (!ndctl_namespace_get_size(ns))
			continue;
		dax = ndctl_namespace_get_dax(ns);
		before = plan->nr_daxes;
		if (dax && ndctl_dax_is_enabled(dax))
			add_daxes(plan, dax);
		all &= plan->nr_daxes != before;
		found += ndctl_namespace_get_size(ns);
	}
	return all && found >= used;
}

static int wait_for_daxes(struct cxl_region_plan *plan, uint64_t address, uint64_t used,
			  struct cxl_trouble *trouble)
{
	struct look look;
	int left_ms, ret = 0;
	bool all = false;

	for (left_ms = WAIT_MS; !ret && !all && left_ms > 0; left_ms -= STEP_MS) {
		ret = look_begin(&look, address);
		if (ret)
			break;
		all = look.region && list_daxes(plan, look.region, used);
		look_end(&look);
		if (!all)
			step();
	}
	if (!ret && plan->nr_daxes)
		return 0;
	return cxl_give_up(trouble, ret ? ret : -ETIMEDOUT,
			   "is dax_pmem there, and are they of mode devdax? ndctl list -N",
			   "no dax device appeared for the namespaces of %s", plan->region);
}

/* --- New ones -------------------------------------------------------------- */

static void random_uuid(uuid_t uuid)
{
	if (getrandom(uuid, sizeof(uuid_t), 0) != sizeof(uuid_t))
		abort();
	uuid[6] = (uuid[6] & 0x0f) | 0x40;
	uuid[8] = (uuid[8] & 0x3f) | 0x80;
}

static int shape_namespace(struct ndctl_namespace *ns, uint64_t bytes)
{
	uuid_t uuid = { 0 };
	int ret;

	random_uuid(uuid);
	ret = ndctl_namespace_set_uuid(ns, uuid);
	if (!ret)
		ret = ndctl_namespace_set_enforce_mode(ns, NDCTL_NS_MODE_DEVDAX);
	if (!ret)
		ret = ndctl_namespace_set_size(ns, bytes);
	return ret;
}

static int shape_dax(struct ndctl_dax *dax, struct ndctl_namespace *ns, bool on_device)
{
	uuid_t uuid = { 0 };
	int ret;

	random_uuid(uuid);
	ret = ndctl_dax_set_uuid(dax, uuid);
	if (!ret)
		ret = ndctl_dax_set_location(dax, on_device ? NDCTL_PFN_LOC_PMEM :
							      NDCTL_PFN_LOC_RAM);
	if (!ret && ndctl_dax_has_align(dax))
		ret = ndctl_dax_set_align(dax, DAX_ALIGN);
	if (!ret)
		ret = ndctl_dax_set_namespace(dax, ns);
	if (!ret)
		ret = ndctl_dax_enable(dax);
	if (ret)
		ndctl_dax_delete(dax);
	return ret;
}

static int make_one(uint64_t address, uint64_t bytes, bool on_device)
{
	struct ndctl_namespace *ns;
	struct ndctl_dax *dax;
	struct look look;
	int ret;

	ret = look_begin(&look, address);
	if (ret)
		return ret;
	ns = look.region ? ndctl_region_get_namespace_seed(look.region) : NULL;
	dax = look.region ? ndctl_region_get_dax_seed(look.region) : NULL;
	ret = ns && dax ? shape_namespace(ns, bytes) : -ENODEV;
	if (!ret)
		ret = shape_dax(dax, ns, on_device);
	if (ret && ns)
		ndctl_namespace_delete(ns);
	look_end(&look);
	return ret > 0 ? -ret : ret;
}

/* All that are in the region: it had none before. */
static void delete_all(uint64_t address)
{
	struct ndctl_namespace *ns, *next;
	struct ndctl_dax *dax;
	struct look look;

	if (look_begin(&look, address))
		return;
	if (look.region) {
		ndctl_namespace_foreach_safe(look.region, ns, next) {
			if (!ndctl_namespace_get_size(ns))
				continue;
			dax = ndctl_namespace_get_dax(ns);
			if (dax)
				ndctl_dax_delete(dax);
			ndctl_namespace_delete(ns);
		}
	}
	look_end(&look);
}

static uint64_t size_of_each(const struct cxl_region_plan *plan, uint64_t address, uint64_t free)
{
	uint64_t align = SIZE_ALIGN, bytes = free / plan->nr_namespaces;
	struct look look;

	if (!look_begin(&look, address)) {
		if (look.region && ndctl_region_get_align(look.region) != ULONG_MAX &&
		    ndctl_region_get_align(look.region))
			align = ndctl_region_get_align(look.region);
		look_end(&look);
	}
	return bytes - bytes % align;
}

int cxl_make_namespaces(struct cxl_region_plan *plan, struct cxl_trouble *trouble)
{
	uint64_t address = 0, bytes = 0, free = 0;
	unsigned int i;
	int ret;

	ret = wait_for_region(plan, &address, &bytes, &free, trouble);
	if (ret)
		return ret;
	if (free < bytes)
		return wait_for_daxes(plan, address, bytes - free, trouble);
	bytes = size_of_each(plan, address, free);
	for (i = 0; !ret && i < plan->nr_namespaces; i++)
		ret = make_one(address, bytes, plan->map_on_device[i]);
	if (ret)
		cxl_give_up(trouble, ret, "the kernel log says more: dmesg | tail",
			    "making a namespace of %llu bytes in %s",
			    (unsigned long long)bytes, plan->region);
	else
		ret = wait_for_daxes(plan, address, plan->nr_namespaces * bytes, trouble);
	if (ret)
		delete_all(address);
	return ret;
}
