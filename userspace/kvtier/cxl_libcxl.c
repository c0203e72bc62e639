// SPDX-License-Identifier: GPL-2.0
/*
 * CXL memory devices by libcxl.
 */
#include <errno.h>
#include <stdio.h>
#include <cxl/libcxl.h>
#include "cxl.h"

static int add(struct cxl_memdevs *list, struct cxl_memdev *memdev)
{
	struct cxl_memdev_info *dev = cxl_add_memdev(list);
	struct cxl_endpoint *endpoint;

	if (!dev)
		return -ENOMEM;
	snprintf(dev->name, sizeof(dev->name), "%s",
		 cxl_memdev_get_devname(memdev));
	dev->serial = cxl_memdev_get_serial(memdev);
	dev->ram_bytes = cxl_memdev_get_ram_size(memdev);
	dev->pmem_bytes = cxl_memdev_get_pmem_size(memdev);
	dev->numa_node = cxl_memdev_get_numa_node(memdev);
	endpoint = cxl_memdev_get_endpoint(memdev);
	if (endpoint)
		snprintf(dev->endpoint, sizeof(dev->endpoint), "%s",
			 cxl_endpoint_get_devname(endpoint));
	return 0;
}

int cxl_memdevs_libcxl(struct cxl_memdevs *list)
{
	struct cxl_memdev *memdev;
	struct cxl_ctx *ctx;
	int ret;

	ret = cxl_new(&ctx);
	if (ret)
		return ret < 0 ? ret : -ret;
	cxl_memdev_foreach(ctx, memdev) {
		ret = add(list, memdev);
		if (ret)
			break;
	}
	cxl_unref(ctx);
	return ret;
}
