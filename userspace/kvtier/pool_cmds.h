/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Verbs of "kvtier pool" that are not in pool.c.
 */
#ifndef KVTIER_POOL_CMDS_H
#define KVTIER_POOL_CMDS_H

int pool_members(int argc, char **argv);
int pool_assemble(int argc, char **argv);
int pool_scrub(int argc, char **argv);
int pool_cgroups(int argc, char **argv);

#endif /* KVTIER_POOL_CMDS_H */
