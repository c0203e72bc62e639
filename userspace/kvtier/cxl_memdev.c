// SPDX-License-Identifier: GPL-2.0
/*
 * CXL memory devices and which part of their memory is free.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cxl.h"

struct cxl_memdev_info *cxl_add_memdev(struct cxl_memdevs *list)
{
	struct cxl_memdev_info *bigger;

	bigger = realloc(list->devs, (list->nr + 1) * sizeof(*bigger));
	if (!bigger)
		return NULL;
	list->devs = bigger;
	bigger = &list->devs[list->nr++];
	memset(bigger, 0, sizeof(*bigger));
	bigger->numa_node = -1;
	return bigger;
}

void cxl_free_memdevs(struct cxl_memdevs *list)
{
	free(list->devs);
	memset(list, 0, sizeof(*list));
}

/* The endpoint whose upstream port is the device. */
static void find_endpoint(struct cxl_memdev_info *dev)
{
	struct sysfs_names list;
	char uport[SYSFS_NAME_MAX];
	size_t i;

	if (sysfs_list(&list, "bus/cxl/devices", "endpoint"))
		return;
	for (i = 0; i < list.nr; i++) {
		if (sysfs_link_name(uport, sizeof(uport),
				    "bus/cxl/devices/%s/uport", list.names[i]) ||
		    strcmp(uport, dev->name))
			continue;
		memcpy(dev->endpoint, list.names[i], sizeof(dev->endpoint));
		break;
	}
	sysfs_free_names(&list);
}

static int read_memdev(struct cxl_memdev_info *dev)
{
	char text[32];
	int ret;

	ret = sysfs_read_u64(&dev->ram_bytes, "bus/cxl/devices/%s/ram/size",
			     dev->name);
	if (ret)
		return ret;
	sysfs_read_u64(&dev->pmem_bytes, "bus/cxl/devices/%s/pmem/size",
		       dev->name);
	sysfs_read_u64(&dev->serial, "bus/cxl/devices/%s/serial", dev->name);
	if (!sysfs_read(text, sizeof(text), "bus/cxl/devices/%s/numa_node",
			dev->name))
		dev->numa_node = atoi(text);
	find_endpoint(dev);
	return 0;
}

int cxl_memdevs_sysfs(struct cxl_memdevs *list)
{
	struct cxl_memdev_info *dev;
	struct sysfs_names names;
	size_t i;
	int ret;

	ret = sysfs_list(&names, "bus/cxl/devices", "mem");
	for (i = 0; !ret && i < names.nr; i++) {
		dev = cxl_add_memdev(list);
		if (!dev) {
			ret = -ENOMEM;
			break;
		}
		memcpy(dev->name, names.names[i], sizeof(dev->name));
		/* One that goes away meanwhile is not there. */
		if (read_memdev(dev))
			list->nr--;
	}
	sysfs_free_names(&names);
	return ret;
}

/* Decoders of an endpoint are used from the lowest on; those that have a part of
 * the device take it away from what is free.
 */
static void take(uint64_t *free, uint64_t bytes)
{
	*free -= bytes < *free ? bytes : *free;
}

static int find_free(struct cxl_memdev_info *dev)
{
	char prefix[SYSFS_NAME_MAX], mode[16];
	struct sysfs_names list;
	uint64_t bytes;
	size_t i;
	int ret;

	dev->free_bytes = dev->ram_bytes;
	dev->free_pmem_bytes = dev->pmem_bytes;
	if (sscanf(dev->endpoint, "endpoint%15[0-9]", mode) != 1)
		return 0;
	snprintf(prefix, sizeof(prefix), "decoder%s.", mode);
	ret = sysfs_list(&list, "bus/cxl/devices", prefix);
	for (i = 0; !ret && i < list.nr; i++) {
		bytes = 0;
		sysfs_read_u64(&bytes, "bus/cxl/devices/%s/dpa_size",
			       list.names[i]);
		if (!bytes) {
			if (!dev->decoder[0])
				memcpy(dev->decoder, list.names[i],
				       sizeof(dev->decoder));
			continue;
		}
		if (!sysfs_read(mode, sizeof(mode), "bus/cxl/devices/%s/mode",
				list.names[i]) && !strcmp(mode, "pmem"))
			take(&dev->free_pmem_bytes, bytes);
		else
			take(&dev->free_bytes, bytes);
	}
	sysfs_free_names(&list);
	return ret;
}

static int by_name(const void *a, const void *b)
{
	const struct cxl_memdev_info *x = a, *y = b;

	return strverscmp(x->name, y->name);
}

int cxl_find_memdevs(struct cxl_memdevs *list)
{
	size_t i;
	int ret;

	memset(list, 0, sizeof(*list));
#ifdef HAVE_LIBCXL
	/* libcxl knows one sysfs only. */
	if (!strcmp(sysfs_root(), "/sys"))
		ret = cxl_memdevs_libcxl(list);
	else
#endif
		ret = cxl_memdevs_sysfs(list);
	for (i = 0; !ret && i < list->nr; i++)
		ret = find_free(&list->devs[i]);
	if (ret)
		cxl_free_memdevs(list);
	else if (list->nr)
		qsort(list->devs, list->nr, sizeof(*list->devs), by_name);
	return ret;
}
