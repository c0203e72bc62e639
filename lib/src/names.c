// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Names of the interface's numbers, for logs and tools.
 */
#include "internal.h"

#define NR(table)	(sizeof(table) / sizeof((table)[0]))

static const char *const good_status[] = {
	[KVTIER_ST_MISS] = "miss",
	[KVTIER_ST_HIT] = "hit",
	[KVTIER_ST_FILLING] = "filling",
	[KVTIER_ST_PENDING] = "pending",
	[KVTIER_ST_RESERVED] = "reserved",
	[KVTIER_ST_EXISTS] = "exists",
	[KVTIER_ST_DONE] = "done",
};

static const char *const bad_status[] = {
	[-KVTIER_ST_NOSPACE] = "no-space",
	[-KVTIER_ST_QUOTA] = "quota",
	[-KVTIER_ST_NOPARENT] = "no-parent",
	[-KVTIER_ST_STALE] = "stale",
	[-KVTIER_ST_BUSY] = "busy",
	[-KVTIER_ST_PINNED] = "pinned",
	[-KVTIER_ST_IOERR] = "io-error",
	[-KVTIER_ST_CHILDREN] = "has-children",
	[-KVTIER_ST_FAULT] = "fault",
	[-KVTIER_ST_LIMIT] = "limit",
	[-KVTIER_ST_SKIPPED] = "skipped",
};

static const char *const tier_types[] = {
	[KVTIER_TIER_DRAM] = "dram",
	[KVTIER_TIER_NODE] = "node",
	[KVTIER_TIER_DAX] = "dax",
	[KVTIER_TIER_BDEV] = "bdev",
	[KVTIER_TIER_PMEM] = "pmem",
};

static const char *const tier_states[] = {
	[KVTIER_TIER_ATTACHING] = "attaching",
	[KVTIER_TIER_ONLINE] = "online",
	[KVTIER_TIER_DRAINING] = "draining",
	[KVTIER_TIER_FAILED] = "failed",
};

static const char *name_of(const char *const *table, size_t nr, size_t i)
{
	return i < nr && table[i] ? table[i] : "unknown";
}

KVTI_EXPORT const char *kvtier_version(void)
{
	return KVTIER_VERSION;
}

KVTI_EXPORT const char *kvtier_status_name(int status)
{
	if (status >= 0)
		return name_of(good_status, NR(good_status), (size_t)status);
	return name_of(bad_status, NR(bad_status), 0 - (size_t)status);
}

KVTI_EXPORT const char *kvtier_tier_type_name(uint32_t type)
{
	return name_of(tier_types, NR(tier_types), type);
}

KVTI_EXPORT const char *kvtier_tier_state_name(uint32_t state)
{
	return name_of(tier_states, NR(tier_states), state);
}
