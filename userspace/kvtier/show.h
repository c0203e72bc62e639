/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pools and tiers as JSON objects, for the commands that show them.
 */
#ifndef KVTIER_SHOW_H
#define KVTIER_SHOW_H

#include "cmd.h"

/* Array of a pool's tiers, fastest first, or NULL with the error in @err. */
struct json_object *show_tiers(struct kvtier_pool *pool, uint32_t pool_id,
			       int *err);

/* All that can be told about a pool, member "tiers" included. */
struct json_object *show_pool(struct kvtier_pool *pool, uint32_t pool_id,
			      int *err);

/* Prints pool show's output; an exit status. */
int show_emit_pool(uint32_t pool_id);

/* Adds what numbers or text the sysfs file holds under its own name; a file that
 * is not there adds nothing.
 */
void show_sysfs(struct json_object *obj, const char *dir, const char *file);

extern const struct cmd_column tier_columns[];

#endif /* KVTIER_SHOW_H */
