/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Persistent dax devices between the kernel's driver and ours; see pmem.c.
 */
#ifndef KVTIER_PMEM_H
#define KVTIER_PMEM_H

#include <stdbool.h>
#include "sysfs.h"

/**
 * struct pmem_hold - persistent devices stay where they are
 * @lock_fd: open while they do, else negative
 * @woken:   had no driver, and were given to device_dax to be looked at
 */
struct pmem_hold {
	int lock_fd;
	struct sysfs_names woken;
};

#define PMEM_HOLD_NONE	{ .lock_fd = -1 }

/**
 * pmem_hold_begin - keep other commands from moving persistent devices
 * @wait: for those that do; else -EBUSY
 *
 * Holds nothing where there are none. 0 or -errno.
 */
int pmem_hold_begin(struct pmem_hold *hold, bool wait);

/* Hands those that no pool uses to device_dax, through which they can be read. */
void pmem_release_idle(struct pmem_hold *hold);

/**
 * pmem_bind - hand one to kvtier's driver
 * @hold: begun
 * @took: out: it had another one before
 *
 * 0, or an exit status after a report; it is where it was then.
 */
int pmem_bind(const struct pmem_hold *hold, const char *dax, bool *took);

/* Takes one back that no pool uses. */
void pmem_give_back(const struct pmem_hold *hold, const char *dax);

/* The end: what had no driver and is in no pool has none again. */
void pmem_hold_end(struct pmem_hold *hold);

#endif /* KVTIER_PMEM_H */
