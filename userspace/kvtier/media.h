/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Members of pools as the tool meets them: devices and image files with kvtier's
 * format on them, read by the driver's own decoder.
 *
 * This is the only header of the tool that sees driver/core. What is on a device is
 * hostile; whatever the decoder has accepted is within bounds.
 *
 * Addresses on a zoned device are as if its zones had no gaps between them, as everywhere
 * in the format. What is written there has to be at the write pointer of its zone.
 *
 * media.c and fsck_*.c use nothing but this and the C library, so that the fuzzer, and the
 * simulated device, can run them on memory.
 */
#ifndef KVTIER_MEDIA_H
#define KVTIER_MEDIA_H

#include "media_env.h"
#include "kvt_recover.h"
#include "kvt_zone.h"

/* What can be done with a zone. */
enum media_zone {
	MEDIA_ZONE_GOOD = 0,
	MEDIA_ZONE_READONLY,
	MEDIA_ZONE_OFFLINE,	/* not even read */
};

/**
 * struct media - where a member is read from and written to
 * @read:  @len bytes at @byte into @buf; 0 or -errno
 * @write: likewise; NULL: it is only read
 * @flush: all that was written is durable afterwards; 0 or -errno
 * @reset: the zone that begins at @byte is empty afterwards; 0 or -errno. With @write, on
 *         zoned devices
 * @ctx:   theirs
 * @bytes: length
 * @zone_bytes: capacity of a zone; 0: the device is not zoned
 * @zone_stride: from one zone to the next
 * @wp:    write pointers of the zones with superblocks, from their starts; kept up by
 *         @write and @reset
 * @zones: of each zone, enum media_zone; NULL: all are good
 */
struct media {
	int (*read)(void *ctx, u64 byte, void *buf, u32 len);
	int (*write)(void *ctx, u64 byte, const void *buf, u32 len);
	int (*flush)(void *ctx);
	int (*reset)(void *ctx, u64 byte);
	void *ctx;
	u64 bytes;
	u64 zone_bytes;
	u64 zone_stride;
	u64 wp[KVT_SUPER_ZONES];
	const u8 *zones;
};

/* The worst of the zones from @byte on; GOOD on what is not zoned. */
enum media_zone media_zone_worst(const struct media *m, u64 byte, u64 len);

/* What is at one of the two places of a superblock; the newest of a zone's. */
enum media_super_state {
	MEDIA_SUPER_GOOD = 0,
	MEDIA_SUPER_NONE,	/* nothing of kvtier's */
	MEDIA_SUPER_TORN,	/* ours, and does not verify */
	MEDIA_SUPER_NEWER,	/* of another version, or needs unknown features */
	MEDIA_SUPER_IO,		/* cannot be read */
};

/**
 * struct media_supers - both superblocks
 * @pick:   what the driver would take; @pick.err as there
 * @err:    0, or what is wrong with the member as a whole: @pick.err, or that of
 *          kvt_super_check(), or of reading
 * @state:  of each
 * @nr_torn: of each zone: superblocks that do not verify, behind the newest that does
 * @super:  each; valid where @state is GOOD or NEWER
 */
struct media_supers {
	struct kvt_super_pick pick;
	int err;
	enum media_super_state state[KVT_SUPER_SLOTS];
	u32 nr_torn[KVT_SUPER_SLOTS];
	struct kvt_super super[KVT_SUPER_SLOTS];
};

/* Reads both; 0 or @s->err. */
int media_read_supers(const struct media *m, struct media_supers *s);
const char *media_super_state_name(enum media_super_state state);

/* What an error of media_read_supers() means, in a few words. */
const char *media_error_text(int err);

#define MEDIA_UUID_MAX	37
#define MEDIA_NAME_MAX	32

const char *media_uuid(const u8 *uuid, char text[static MEDIA_UUID_MAX]);
const char *media_state_name(u32 state);

/* The tier's name, with nothing in it that a tier's name cannot have. */
const char *media_tier_name(const struct kvt_super *s, char text[static MEDIA_NAME_MAX]);

/**
 * struct media_dev - a block device, a persistent dax device, or an image file
 * @map:      a dax device's mapping
 * @zones:    @media.zones
 * @direct:   a zoned device's, for writing past the page cache; -1: none
 * @bounce:   what is written there, aligned
 * @is_block: it is a block device
 * @in_use:   something in the kernel has it: a pool, a filesystem, a loop device. Of a
 *            block device on which nothing of ours is, it is not found out
 */
struct media_dev {
	struct media media;
	int fd;
	u8 *map;
	u8 *zones;
	int direct;
	u8 *bounce;
	bool is_block;
	bool in_use;
};

/**
 * media_open - open a device or a file
 * @write: to repair it; nobody else may have it then
 *
 * A block device on which nothing of ours is, as far as superblocks tell, is read and no
 * more: it may be somebody's who notices.
 *
 * @path may be a dax device's name alone. 0 or -errno: EBUSY: in use, for dax devices
 * also if another driver than device_dax has it; EINVAL: neither of these; EOPNOTSUPP:
 * a zoned device whose zones are not alike.
 */
int media_open(struct media_dev *d, const char *path, bool write);
void media_close(struct media_dev *d);

/*
 * A block device that is in use (EBUSY) may be so for a moment only, while it is being looked
 * at: by media_open(), say. Waits 10 ms; false, at once, after half a second of that. *@tries
 * starts at 0.
 */
bool media_busy_again(unsigned int *tries);

/* media_dax.c: dax devices; @name is that on the bus */
int media_open_dax(struct media_dev *d, const char *path, const char *name, bool write);
bool media_is_dax(const char *path, char name[static MEDIA_NAME_MAX]);
bool media_dax_is_persistent(const char *name);

/* Where devices are; tests move it. */
const char *media_dev_root(void);

/*
 * media_zoned.c: what zones an open block device has, and how these are written. 0 or
 * -errno.
 */
int media_find_zones(struct media_dev *d);
int media_open_zones(struct media_dev *d, const char *path);

#endif /* KVTIER_MEDIA_H */
