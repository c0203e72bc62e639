// SPDX-License-Identifier: GPL-2.0
/*
 * CXL memory that is about to go.
 *
 * When a CXL device is removed the kernel resets the decoders that lead to it, and
 * tells the driver of the region, and so tier_dax.c, only after that. In between, who
 * reads a mapping is answered by nobody: with any bytes. Who writes to persistent memory
 * is told that it is durable, and it is nowhere. So the moment before is
 * watched: the driver of the device's endpoint is unbound first, while its decoders
 * still work; their attributes say which physical addresses they decode.
 *
 * The watch is of the bus, from the first bound CXL instance to the last, so that the
 * bus is there as long as it is watched.
 */
#include <linux/device.h>
#include <linux/device/bus.h>
#include <linux/gfp.h>
#include <linux/kstrtox.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/string.h>

#include "tier_cxl.h"

static DEFINE_MUTEX(kvt_cxl_lock);
static u32 kvt_cxl_users;

static const struct device_attribute *kvt_cxl_find(const struct device *dev, const char *name)
{
	const struct attribute_group **group;
	struct attribute **attr;

	for (group = dev->type ? dev->type->groups : NULL; group && *group; group++) {
		for (attr = (*group)->attrs; attr && *attr; attr++) {
			if (!strcmp((*attr)->name, name))
				return container_of(*attr, struct device_attribute, attr);
		}
	}
	return NULL;
}

/* The number that an attribute shows, 0 if there is none. @page: room for it. */
static u64 kvt_cxl_number(struct device *dev, const char *name, char *page)
{
	const struct device_attribute *attr = kvt_cxl_find(dev, name);
	u64 value = 0;

	if (!attr || !attr->show || attr->show(dev, (struct device_attribute *)attr, page) <= 0 ||
	    kstrtou64(page, 0, &value))
		return 0;
	return value;
}

static int kvt_cxl_decoder_going(struct device *dev, void *page)
{
	u64 start, bytes;

	if (!strstarts(dev_name(dev), "decoder"))
		return 0;
	start = kvt_cxl_number(dev, "start", page);
	bytes = kvt_cxl_number(dev, "size", page);
	if (start && bytes) {
		kvt_dax_going(start, bytes);
		kvt_pmem_going(start, bytes);
	}
	return 0;
}

static int kvt_cxl_notify(struct notifier_block *nb, unsigned long what, void *data)
{
	struct device *dev = data;
	char *page;

	if (what != BUS_NOTIFY_UNBIND_DRIVER || !strstarts(dev_name(dev), "endpoint"))
		return NOTIFY_DONE;
	/* As sysfs does, which is what attributes expect. Cannot fail: a page is small. */
	page = (char *)__get_free_page(GFP_KERNEL | __GFP_ZERO | __GFP_NOFAIL);
	device_for_each_child(dev, page, kvt_cxl_decoder_going);
	free_page((unsigned long)page);
	return NOTIFY_DONE;
}

static struct notifier_block kvt_cxl_watch = { .notifier_call = kvt_cxl_notify };

/*
 * The bus whose devices a CXL instance's memory is decoded by, or NULL. Between a
 * persistent instance and that are libnvdimm's devices.
 */
static const struct bus_type *kvt_cxl_bus(const struct device *dax)
{
	const struct device *dev;

	for (dev = dax->parent; dev; dev = dev->parent) {
		if (dev->bus && !strcmp(dev->bus->name, "cxl"))
			return dev->bus;
	}
	return NULL;
}

/**
 * kvt_cxl_bound() - an instance has been bound
 * @dax: its device; may sleep
 * Return: whether it is one of CXL memory: then kvt_cxl_unbound() is to follow.
 */
bool kvt_cxl_bound(const struct device *dax)
{
	const struct bus_type *bus = kvt_cxl_bus(dax);

	if (!bus)
		return false;
	guard(mutex)(&kvt_cxl_lock);
	if (!kvt_cxl_users && bus_register_notifier(bus, &kvt_cxl_watch))
		return false;
	kvt_cxl_users++;
	return true;
}

/**
 * kvt_cxl_unbound() - it is being unbound
 * @dax: its device; may sleep, no locks held
 */
void kvt_cxl_unbound(const struct device *dax)
{
	guard(mutex)(&kvt_cxl_lock);
	if (!--kvt_cxl_users)
		bus_unregister_notifier(kvt_cxl_bus(dax), &kvt_cxl_watch);
}
