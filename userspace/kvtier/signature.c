// SPDX-License-Identifier: GPL-2.0
/*
 * What a device holds: kvtier's own format, and what libblkid knows.
 *
 * A device that is to be overwritten is refused because of anything found, also of
 * several things at once, or of a superblock of ours that does not verify.
 */
#include <blkid/blkid.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "media.h"
#include "spec.h"

/* SIGNATURE_MEMBER, 0 or -errno. */
static int find_member(const char *path, char what[static SIGNATURE_MAX])
{
	char uuid[MEDIA_UUID_MAX], name[MEDIA_NAME_MAX];
	struct media_supers s;
	struct media_dev d;
	int ret;

	ret = media_open(&d, path, false);
	if (ret)
		return ret;
	ret = media_read_supers(&d.media, &s);
	media_close(&d);
	if (ret == -EMEDIUMTYPE)
		return 0;
	if (ret == -EIO)
		return ret;
	if (s.pick.err)
		snprintf(what, SIGNATURE_MAX, "a member of some kvtier pool: it %s",
			 media_error_text(ret));
	else
		snprintf(what, SIGNATURE_MAX, "a member of kvtier pool %s, as tier '%s'",
			 media_uuid(s.pick.super.pool, uuid),
			 media_tier_name(&s.pick.super, name));
	return SIGNATURE_MEMBER;
}

static const char *value_of(blkid_probe probe, const char *name)
{
	const char *value;

	return blkid_probe_lookup_value(probe, name, &value, NULL) ? NULL : value;
}

/* In words: what kind of thing it is depends on its use. */
static void describe(blkid_probe probe, char what[static SIGNATURE_MAX])
{
	const char *type = value_of(probe, "TYPE"), *usage = value_of(probe, "USAGE");
	const char *label = value_of(probe, "LABEL"), *kind = "signature";

	if (usage && !strcmp(usage, "filesystem"))
		kind = "filesystem";
	else if (usage && !strcmp(usage, "raid"))
		kind = "RAID or volume group member";
	else if (usage && !strcmp(usage, "crypto"))
		kind = "encrypted volume";
	snprintf(what, SIGNATURE_MAX, "a '%s' %s%s%.64s%s", type, kind, label ? " named '" : "",
		 label ? label : "", label ? "'" : "");
}

static int find_known(blkid_probe probe, char what[static SIGNATURE_MAX])
{
	const char *table;

	switch (blkid_do_safeprobe(probe)) {
	case 1:
		return 0;
	case -2:
		snprintf(what, SIGNATURE_MAX, "several signatures at once");
		return 1;
	case 0:
		break;
	default:
		return -EIO;
	}
	table = value_of(probe, "PTTYPE");
	if (value_of(probe, "TYPE"))
		describe(probe, what);
	else if (table)
		snprintf(what, SIGNATURE_MAX, "a '%s' partition table", table);
	else
		snprintf(what, SIGNATURE_MAX, "a signature that libblkid has no name for");
	return 1;
}

bool signature_of_pool(const char *path, const char *pool)
{
	char uuid[MEDIA_UUID_MAX];
	struct media_supers s;
	struct media_dev d;
	int ret;

	if (media_open(&d, path, false))
		return false;
	ret = media_read_supers(&d.media, &s);
	media_close(&d);
	return !ret && !s.pick.err && !strcmp(media_uuid(s.pick.super.pool, uuid), pool);
}

int signature_find_other(const char *path, char what[static SIGNATURE_MAX])
{
	char name[MEDIA_NAME_MAX];
	blkid_probe probe;
	int ret;

	/* Of dax devices libblkid knows nothing; the driver takes blank ones only. */
	if (media_is_dax(path, name))
		return 0;
	errno = 0;
	probe = blkid_new_probe_from_filename(path);
	if (!probe)
		return errno ? -errno : -EIO;
	blkid_probe_enable_superblocks(probe, 1);
	blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_USAGE |
					  BLKID_SUBLKS_LABEL | BLKID_SUBLKS_MAGIC);
	blkid_probe_enable_partitions(probe, 1);
	ret = find_known(probe, what);
	blkid_free_probe(probe);
	return ret;
}

int signature_find(const char *path, char what[static SIGNATURE_MAX])
{
	int ret = find_member(path, what);

	return ret ? ret : signature_find_other(path, what);
}
