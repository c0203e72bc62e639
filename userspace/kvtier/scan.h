/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which members of which pools there are, from their superblocks.
 *
 * The rules by which members belong together are the driver's (POOL_ASSEMBLE), so
 * that what is said before an assembly is what it would say. Each superblock lists the
 * members of the pool with the newest generation of theirs that was known. From this
 * follows, for X and Y:
 *
 *   Y lists X with a higher generation than X has       X is an old copy
 *   Y does not list X, and has been written since X     the pool has run without X
 *   has last heard of it
 *   some X lists M, no Y that was written since X       M is missing
 *   has last heard of it leaves it out
 *
 * A device that another one is made of (a mirror's half, a path) is not looked at: what
 * is on it is on the other, too.
 */
#ifndef KVTIER_SCAN_H
#define KVTIER_SCAN_H

#include "media.h"

#define SCAN_PATH_MAX	256

enum scan_verdict {
	SCAN_GOOD = 0,
	SCAN_UNUSABLE,	/* see @err */
	SCAN_STALE,
	SCAN_COPY,	/* another device is the same member */
};

/**
 * struct scan_member - a device that was looked at
 * @named:  by the user, not found
 * @dax:    its name on the dax bus, if it is there; else empty
 * @in_use: some pool, or somebody else, has it
 * @err:    UNUSABLE: of media_open() or media_read_supers(); EAGAIN: it is suspended, and has
 *          not been looked at
 * @super:  if it could be read: @has_super
 */
struct scan_member {
	char path[SCAN_PATH_MAX];
	char dax[MEDIA_NAME_MAX];
	bool named;
	bool in_use;
	bool has_super;
	enum scan_verdict verdict;
	int err;
	struct kvt_super super;
};

struct scan_uuid {
	u8 b[KVT_UUID_BYTES];
};

struct scan {
	struct scan_member *members;
	size_t nr;
};

/**
 * scan_paths - look at devices or files
 *
 * Those that cannot be used are in @s, too. 0 or -ENOMEM.
 */
int scan_paths(struct scan *s, char **paths, int nr);

/**
 * scan_all - look at all block and persistent dax devices that @s does not have yet
 *
 * What is no member, or cannot be opened, is left out; not what is suspended, which may be one.
 * 0 or -errno; -EACCES if nothing at all could be opened.
 */
int scan_all(struct scan *s);

/* Fills in the verdicts; after all has been looked at. */
void scan_judge(struct scan *s);
void scan_free(struct scan *s);

/* The first device of each pool: does no device before it belong to the same. */
bool scan_is_first(const struct scan *s, size_t at);
bool scan_same_pool(const struct scan_member *a, const struct scan_member *b);

/**
 * scan_missing - members of a pool that no device is, or only stale ones
 * @at:    a device of the pool
 * @uuids: out: up to KVT_MEMBERS_MAX
 * Return: how many.
 */
u32 scan_missing(const struct scan *s, size_t at, struct scan_uuid *uuids);

/* In a few words: what is the matter with it, or NULL. */
const char *scan_problem(const struct scan_member *m);

#endif /* KVTIER_SCAN_H */
