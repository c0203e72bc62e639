/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Persistent dax devices between the kernel's driver and ours; see pmem.c.
 */
#ifndef KVTIER_PMEM_H
#define KVTIER_PMEM_H

/* Hands one to kvtier's driver. 0, or an exit status after a report. */
int pmem_bind(const char *dax);

/* Hands those that no pool uses to device_dax, through which they can be read. */
void pmem_release_idle(void);

#endif /* KVTIER_PMEM_H */
