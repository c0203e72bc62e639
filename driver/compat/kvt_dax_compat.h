/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The dax bus as seen by a driver on it.
 *
 * The kernel exports the bus's functions and keeps its structs private, so they are
 * declared here, as far as a driver needs them. Their layout is nobody's promise:
 * kvt_dax_plausible() must be asked before anything else in a struct dev_dax is
 * believed.
 */
#ifndef KVT_DAX_COMPAT_H
#define KVT_DAX_COMPAT_H

#include <linux/device.h>
#include <linux/device/bus.h>
#include <linux/idr.h>
#include <linux/ioport.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/range.h>

#include "kvt_config.h"

struct dax_region;
struct dax_device;
struct dax_mapping;
struct dev_pagemap;

struct dev_dax_range {
	unsigned long pgoff;
	struct range range;
	struct dax_mapping *mapping;
};

struct dev_dax {
	struct dax_region *region;
	struct dax_device *dax_dev;
#ifdef KVT_HAVE_DAX_SET_OPS
	u64 cached_size;
#endif
	unsigned int align;
	int target_node;
	bool dyn_id;
	int id;
	struct ida ida;
	struct device dev;
	struct dev_pagemap *pgmap;
	bool memmap_on_memory;
	int nr_range;
	struct dev_dax_range *ranges;
};

/*
 * @type tells what devices the driver wants unasked. This value is none the bus
 * knows, so that only what is written to new_id is bound.
 */
#define KVT_DAX_TYPE_NEW_ID_ONLY	0x6b7674

struct dax_device_driver {
	struct device_driver drv;
	struct list_head ids;
	int type;
	int (*probe)(struct dev_dax *dev);
	void (*remove)(struct dev_dax *dev);
};

int __dax_driver_register(struct dax_device_driver *dax_drv, struct module *module,
			  const char *mod_name);
void dax_driver_unregister(struct dax_device_driver *dax_drv);
bool static_dev_dax(struct dev_dax *dev_dax);

#define KVT_DAX_RANGES_MAX	64

/**
 * kvt_dax_plausible() - does this kernel's struct dev_dax look as declared above
 * @dax: what probe was given
 * @drv: the driver, which is just being bound to it
 *
 * The embedded device must be one of the dax bus that is bound to @drv; the ranges
 * must follow one another and be memory that is not System RAM.
 */
static inline bool kvt_dax_plausible(struct dev_dax *dax, struct device_driver *drv)
{
	unsigned long pgoff = 0;
	int i;

	if (READ_ONCE(dax->dev.driver) != drv || dax->dev.bus != drv->bus)
		return false;
	if (dax->nr_range < 1 || dax->nr_range > KVT_DAX_RANGES_MAX ||
	    !virt_addr_valid(dax->ranges))
		return false;
	for (i = 0; i < dax->nr_range; i++) {
		const struct range *r = &dax->ranges[i].range;

		if (dax->ranges[i].pgoff != pgoff || r->end <= r->start ||
		    !PAGE_ALIGNED(r->start) || !PAGE_ALIGNED(r->end + 1))
			return false;
		if (region_intersects(r->start, range_len(r), IORESOURCE_SYSTEM_RAM,
				      IORES_DESC_NONE) != REGION_DISJOINT ||
		    region_intersects(r->start, range_len(r), IORESOURCE_MEM,
				      IORES_DESC_NONE) == REGION_DISJOINT)
			return false;
		pgoff += PHYS_PFN(range_len(r));
	}
	return true;
}

/**
 * kvt_dax_pmem_region() - is a device's memory persistent
 * @dax: plausible
 * Return: libnvdimm's device of the region of persistent memory that the namespace is
 * in, or NULL. It outlives the binding.
 */
static inline struct device *kvt_dax_pmem_region(struct dev_dax *dax)
{
	struct device *nd = dax->dev.parent, *region = nd ? nd->parent : NULL;

	if (!static_dev_dax(dax) || !region || !region->type || !region->type->name)
		return NULL;
	return strcmp(region->type->name, "nd_pmem") ? NULL : region;
}

/**
 * kvt_dax_static_plausible() - does the page map that came with a device fit it
 * @dax: plausible, of a region with static devices
 *
 * It begins where the namespace does, in front of the data, and ends with them. Struct
 * pages that are to be on the device are in front of the data, too.
 */
static inline bool kvt_dax_static_plausible(const struct dev_dax *dax)
{
	const struct range *data = &dax->ranges[0].range;
	const struct dev_pagemap *map = dax->pgmap;

	if (dax->nr_range != 1 || !map || !virt_addr_valid(map) || map->nr_range != 1 ||
	    map->range.start >= data->start || map->range.end != data->end)
		return false;
	/* Where the first of them may be is counted from an aligned page before. */
	return !(map->flags & PGMAP_ALTMAP_VALID) ||
	       (map->altmap.base_pfn + map->altmap.reserve > PHYS_PFN(map->range.start) &&
		map->altmap.base_pfn + map->altmap.reserve + map->altmap.free <=
		PHYS_PFN(data->start));
}

#endif /* KVT_DAX_COMPAT_H */
