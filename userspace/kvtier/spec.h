/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tier specifications, as the command line gives them:
 *
 *   dram:size=256M[,name=dram0][,rank=N]
 *   node:node=1,size=1G
 *   dax:dev=dax0.0[,size=1G]
 *   bdev:path=/dev/nvme0n1[,size=100G][,segment=64M]
 *   pmem:dev=dax0.1[,size=100G][,segment=64M]
 *
 * A dax tier on a device of persistent memory is a pmem tier.
 */
#ifndef KVTIER_SPEC_H
#define KVTIER_SPEC_H

#include <stdbool.h>
#include <kvtier/libkvtier.h>

/* A parsed specification; @params points into it. */
struct tier_spec {
	struct kvtier_tier_params params;
	bool has_rank;
	char name[KVTIER_NAME_MAX];
	char path[KVTIER_PATH_MAX];
};

/* Where a parser says what it does not like. */
struct spec_error {
	char text[256];
};

/* 0, or -EINVAL with @error filled in. */
int spec_parse(const char *text, struct tier_spec *spec,
	       struct spec_error *error);

/* Ranks and names that were not given: in order, behind the @nr_taken tiers of
 * their kind that are there already; then checks the ranks against each other.
 * Memory counts from 0, block devices from 128: there is room for more memory.
 */
int spec_complete(struct tier_spec *specs, unsigned int nr,
		  const struct kvtier_tier_info *taken, unsigned int nr_taken,
		  struct spec_error *error);

/* Looks at the devices: 0, or an exit status after a report. Block devices with a
 * signature are refused unless @force; members of pools are so by the kernel, unless the
 * spec says to force it, which it does then. A former member of the pool itself, @pool's
 * uuid as text, is the kernel's to judge; NULL: of no pool.
 */
int spec_check_device(struct tier_spec *spec, bool force, const char *pool);

/* Attaches it; 0 or an exit status after a report with advice. */
int spec_attach(struct kvtier_ctl *ctl, uint32_t pool_id,
		const struct tier_spec *spec);

#define SIGNATURE_MAX		160
#define SIGNATURE_MEMBER	2

/**
 * signature_find - what a device holds that would be overwritten
 * @what: "an ext4 filesystem", "a gpt partition table", "a member of kvtier pool ..."
 *
 * Returns 1 if there is something, SIGNATURE_MEMBER if it is kvtier's, 0 if there is
 * nothing, or -errno.
 */
int signature_find(const char *path, char what[static SIGNATURE_MAX]);
/* The same, whatever kvtier has there. */
int signature_find_other(const char *path, char what[static SIGNATURE_MAX]);
/* Is it a member of the pool of this uuid. */
bool signature_of_pool(const char *path, const char *pool);

#endif /* KVTIER_SPEC_H */
