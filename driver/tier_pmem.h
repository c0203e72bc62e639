/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Persistent dax devices: what the driver on the dax bus (tier_dax.c) hands over.
 *
 * It asks for each device whether it is persistent, and has the ones that are bound
 * and unbound here.
 */
#ifndef KVT_TIER_PMEM_H
#define KVT_TIER_PMEM_H

#include "compat/kvt_dax_compat.h"

/**
 * kvt_pmem_probe() - bind a device of a region of persistent memory
 * @dax:    plausible, being bound
 * @region: of kvt_dax_pmem_region()
 * Return: 0 or a negative errno, with nothing left behind.
 */
int kvt_pmem_probe(struct dev_dax *dax, struct device *region);

/**
 * kvt_pmem_remove() - unbind it
 * @dax: device. Nothing of it is touched any more when this returns
 * Return: false: it was never bound by kvt_pmem_probe().
 */
bool kvt_pmem_remove(struct dev_dax *dax);

/* Is there a bound persistent device of that name. It may go at any time. */
bool kvt_pmem_bound(const char *name);

#endif /* KVT_TIER_PMEM_H */
