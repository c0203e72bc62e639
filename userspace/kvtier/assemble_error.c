// SPDX-License-Identifier: GPL-2.0
/*
 * Errors of an assembly in words; see assemble_error.h.
 *
 * One row for each errno that the interface documents, and for those of opening a device.
 * An errno without a row is shown as the C library has it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "assemble_error.h"
#include "cmd.h"

/**
 * struct row - an errno
 * @why: goes on after the name of what it is about
 * @todo: what to do about it; NULL: the usual advice
 */
struct row {
	int err;
	const char *why;
	const char *todo;
};

#define LEAVE_OUT	"to do without: leave it out, and say --degraded"

static const struct row device_rows[] = {
	{ EMEDIUMTYPE, "is not a member of a kvtier pool",
	  "leave it out; see what there is: kvtier pool members" },
	{ EUCLEAN, "has damage because of which blocks that were dropped could come back",
	  "see: kvtier fsck, which may repair it (--repair); " LEAVE_OUT },
	{ EPROTONOSUPPORT, "was written by a later version, or with features that the loaded module does not have",
	  "use the version of kvtier that wrote it, or a later one, module and tool; nothing on it has changed" },
	{ EROFS, "is read-only, or has features without which the loaded module cannot write to it",
	  "make it writable (blockdev --setrw), or use the version of kvtier that wrote it" },
	{ ERANGE, "has an impossible layout, one that ends behind the device, or a superblock that no driver has written",
	  "was it cut short, or copied to something smaller? see: kvtier fsck; " LEAVE_OUT },
	{ EXDEV, "is of another pool than the first device",
	  "give devices of one pool only; see which those are: kvtier pool members" },
	{ ENOTUNIQ, "is a copy: another device that was given is the same member",
	  "leave one of the two out; see: kvtier pool members" },
	{ ESTALE, "is stale: the pool has run without it since, or it is an old copy",
	  "leave it out; once the pool is up it can be a new, empty member: kvtier tier attach" },
	{ EIO, "cannot be read in full, and what is not known may be that blocks were dropped",
	  "see: kvtier fsck, journalctl -k; " LEAVE_OUT },
	{ EBUSY, "is in use",
	  "is it mounted, or does another pool have it? see: lsblk, kvtier tier list" },
	{ EEXIST, "has the name or the rank of another member",
	  "see: kvtier pool members; " LEAVE_OUT },
	{ EINVAL, "is too small for a member, or its sectors are larger than a page",
	  "see: lsblk, kvtier pool members" },
	{ EOPNOTSUPP, "is a zoned device that cannot be a tier",
	  "its zones must be sequential and alike, and ten of them active at a time: see blkzone report" },
	{ ENOENT, "is not there", "see: kvtier pool members, lsblk" },
	{ ENODEV, "is not there, or the kvtier driver does not have it",
	  "see: kvtier pool members, kvtier cxl list" },
	{ ENXIO, "is not there any more, or nobody drives it",
	  "see: lsblk, journalctl -k" },
	{ ENOTBLK, "is no block device",
	  "images of members are assembled as loop devices: losetup" },
};

static const struct row pool_rows[] = {
	{ EEXIST, NULL, "the pool is up already, or being assembled, or the id is taken: kvtier pool list" },
	{ EIO, NULL, "a device failed as the pool came up: see journalctl -k, kvtier fsck" },
	{ EUCLEAN, NULL, "see: kvtier fsck" },
	{ ENOSPC, NULL, "there are as many pools, or on the devices blocks of as many namespaces, as there may be: kvtier pool list, kvtier fsck" },
	{ EINTR, NULL, "it was interrupted: what is on the devices is what it was, try again" },
};

static const struct row *row_of(const struct row *rows, size_t nr, int err)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (rows[i].err == abs(err))
			return &rows[i];
	return NULL;
}

static const struct row *device_row(int err)
{
	return row_of(device_rows, ARRAY_SIZE(device_rows), err);
}

int assemble_fail_device(int err, const char *uuid, const char *path)
{
	const struct row *r = device_row(err);

	return cmd_fail(err, r ? r->todo : NULL, "assembling pool %s: %s %s", uuid, path,
			r ? r->why : "cannot be used");
}

int assemble_fail_pool(int err, const char *uuid)
{
	const struct row *r = row_of(pool_rows, ARRAY_SIZE(pool_rows), err);

	return cmd_fail(err, r ? r->todo : NULL, "assembling pool %s", uuid);
}

int assemble_fail_member(const struct scan_member *m)
{
	const struct row *r = device_row(m->err);
	const char *why = scan_problem(m);

	if (m->verdict == SCAN_STALE)
		return cmd_fail(ESTALE, device_row(ESTALE)->todo, "%s is %s", m->path, why);
	if (m->verdict == SCAN_COPY)
		return cmd_fail(ENOTUNIQ, device_row(ENOTUNIQ)->todo, "%s is %s", m->path, why);
	/* Which is said anyway. */
	if (!strcmp(why, strerror(-m->err)))
		why = r ? r->why : "cannot be used";
	return cmd_fail(m->err, r ? r->todo : NULL, "%s %s", m->path, why);
}
