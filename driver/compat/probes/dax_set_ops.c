// SPDX-License-Identifier: GPL-2.0
/*
 * Device-dax can lend itself to file systems (from 7.1). struct dev_dax got its
 * member cached_size with it.
 */
#include <linux/dax.h>

#ifndef KVT_CONTROL
int kvt_probe(struct dax_device *dax_dev);

int kvt_probe(struct dax_device *dax_dev)
{
	return dax_set_ops(dax_dev, NULL);
}
#endif
