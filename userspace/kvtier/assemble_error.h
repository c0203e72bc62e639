/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the errors of POOL_ASSEMBLE mean and what helps, for those who read no errnos.
 */
#ifndef KVTIER_ASSEMBLE_ERROR_H
#define KVTIER_ASSEMBLE_ERROR_H

#include "scan.h"

/* The kernel cannot use this device. Reports that, and gives the exit status. */
int assemble_fail_device(int err, const char *uuid, const char *path);

/* It is none of the devices: as above. ENOMEDIUM is reported by who knows what is missing. */
int assemble_fail_pool(int err, const char *uuid);

/* A device that was named cannot be used, as far as can be seen from here: as above. */
int assemble_fail_member(const struct scan_member *m);

#endif /* KVTIER_ASSEMBLE_ERROR_H */
