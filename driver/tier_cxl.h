/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Between tier_dax.c, tier_pmem.c and tier_cxl.c, which watches CXL devices go.
 */
#ifndef KVT_TIER_CXL_H
#define KVT_TIER_CXL_H

#include <linux/types.h>

struct device;

bool kvt_cxl_bound(const struct device *dax);
void kvt_cxl_unbound(const struct device *dax);

/* Upcalls, may sleep: nothing of these physical addresses can be read from now on. */
void kvt_dax_going(u64 start, u64 bytes);
void kvt_pmem_going(u64 start, u64 bytes);

#endif /* KVT_TIER_CXL_H */
