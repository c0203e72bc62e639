/* SPDX-License-Identifier: GPL-2.0 */
/*
 * CXL memory on the way to a pool: memdev -> region -> dax device -> kvtier.
 *
 * Memory devices are found with libcxl where the tool is built with it, else in
 * sysfs. Regions are made in sysfs, which works with every version of libcxl. The
 * namespaces of persistent ones are libndctl's, and their dax devices libdaxctl's.
 */
#ifndef KVTIER_CXL_H
#define KVTIER_CXL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "sysfs.h"

#define CXL_WAYS_MAX	16

/* Region sizes are multiples of this for each device. */
#define CXL_EXTENT_BYTES	(256ULL << 20)

struct cxl_memdev_info {
	char name[SYSFS_NAME_MAX];	/* mem0 */
	char endpoint[SYSFS_NAME_MAX];	/* endpoint2; "" if it has none */
	char decoder[SYSFS_NAME_MAX];	/* first unused one; "" if none is */
	uint64_t serial;
	uint64_t ram_bytes;
	uint64_t pmem_bytes;
	uint64_t free_bytes;		/* RAM that is in no region */
	uint64_t free_pmem_bytes;
	int numa_node;
};

struct cxl_memdevs {
	size_t nr;
	struct cxl_memdev_info *devs;
};

/* 0 or -errno; free with cxl_free_memdevs(). */
int cxl_find_memdevs(struct cxl_memdevs *list);
void cxl_free_memdevs(struct cxl_memdevs *list);

/* The two sources: name, serial, sizes, node and endpoint. */
int cxl_memdevs_libcxl(struct cxl_memdevs *list);
int cxl_memdevs_sysfs(struct cxl_memdevs *list);
struct cxl_memdev_info *cxl_add_memdev(struct cxl_memdevs *list);

/* What a failing step was about, for the report. */
struct cxl_trouble {
	int err;
	char what[256];
	const char *hint;
};

/* Writes sysfs and records the failure; 0 or -errno. */
int cxl_write(struct cxl_trouble *trouble, const char *value, const char *fmt,
	      ...) __attribute__((format(printf, 3, 4)));
int cxl_give_up(struct cxl_trouble *trouble, int err, const char *hint,
		const char *fmt, ...) __attribute__((format(printf, 4, 5)));

#define CXL_UUID_MAX	37
#define CXL_NAMESPACES_MAX	8

/* A region that is to be, or is. */
struct cxl_region_plan {
	char region[SYSFS_NAME_MAX];
	bool pmem;
	/* Only of persistent ones: what their labels are told by, namespaces to be made
	 * if there are none, where their struct pages go, and the dax devices of all.
	 */
	char uuid[CXL_UUID_MAX];
	unsigned int nr_namespaces;
	bool map_on_device[CXL_NAMESPACES_MAX];
	unsigned int nr_daxes;
	char daxes[CXL_NAMESPACES_MAX][SYSFS_NAME_MAX];
	char root_decoder[SYSFS_NAME_MAX];
	char dax[SYSFS_NAME_MAX];
	uint64_t bytes;			/* of each device */
	unsigned int granularity;
	unsigned int ways;
	const struct cxl_memdev_info *devs[CXL_WAYS_MAX];
	/* How far it has come, for undoing. */
	bool exists;
	bool committed;
	unsigned int nr_sized;
};

/**
 * cxl_region_create - make the region, bind it, and hand its dax device over
 * @decoder: root decoder, or NULL: the first that can
 *
 * A persistent one has no dax device yet: see cxl_make_namespaces().
 *
 * 0 or -errno with @trouble filled in and everything undone.
 */
int cxl_region_create(struct cxl_region_plan *plan, const char *decoder,
		      struct cxl_trouble *trouble);
/*
 * Puts the devices into an order that the root decoder's window can have; leaves them as they are
 * if there is none, or it cannot be told: the kernel knows.
 */
void cxl_order_devs(struct cxl_region_plan *plan);

/**
 * cxl_make_namespaces - make a persistent region's namespaces, of mode devdax
 * @plan: region that exists; equal parts of it, if all of it is free. Those that it has
 *        are left alone. Out: dax devices
 *
 * With libndctl. 0 or -errno with @trouble filled in, and new ones undone.
 */
int cxl_make_namespaces(struct cxl_region_plan *plan, struct cxl_trouble *trouble);

/*
 * Takes back what @plan says there is; goes on when a step fails. 0, or -errno of the first that
 * did, with @trouble filled in unless something is in it already.
 */
int cxl_region_undo(struct cxl_region_plan *plan, struct cxl_trouble *trouble);

/*
 * Takes a whole region down. -EBUSY when a pool or another driver uses it, or another region is
 * above it: nothing has changed then.
 */
int cxl_region_destroy(const char *region, struct cxl_trouble *trouble);

/* Has it memory of a device that was taken after the other's? That one has to wait for it. */
bool cxl_region_is_above(const char *region, const char *other);

/* Is it of persistent memory. */
bool cxl_region_is_pmem(const char *region);
/* The region's first dax device, or "". */
void cxl_region_dax(const char *region, char dax[static SYSFS_NAME_MAX]);
/* The root decoder a region was made under. */
int cxl_region_root(const char *region, char decoder[static SYSFS_NAME_MAX]);

/**
 * struct dax_guard - keeps other drivers off new dax devices
 *
 * While it is held, no driver binds to a new dax device by itself, other kvtier
 * processes wait, and signals that would end us are held back: what was changed
 * is restored on every way out.
 */
struct dax_guard {
	int lock_fd;
	bool locked;
	bool changed;
	char before[8];
	unsigned char signals[128];	/* a sigset_t */
};

/* @need_driver: -ENOENT when the kvtier driver is not there to take devices.
 * @keep_off: else drivers may bind by themselves: persistent devices go to device_dax.
 */
int dax_guard_begin(struct dax_guard *guard, bool need_driver, bool keep_off,
		    struct cxl_trouble *trouble);
/* 0, or -errno when the setting could not be restored. */
int dax_guard_end(struct dax_guard *guard);

/* Name of the driver that has a dax device, "" for none. */
void dax_driver(const char *dax, char driver[static SYSFS_NAME_MAX]);
/* Hands it to the kvtier driver, taking it from device_dax if need be. */
int dax_bind(const char *dax, struct cxl_trouble *trouble);
/* Takes it from the kvtier driver; -EBUSY while a pool has it. A persistent one is
 * given back to device_dax.
 */
int dax_unbind(const char *dax, struct cxl_trouble *trouble);
/* To device_dax, which lets programs look at a persistent one; 0 or -errno. */
int dax_give_back(const char *dax);
/* The pool tier that uses it, as "kvtier0/cxl0"; false if none does. */
bool dax_user(const char *dax, char *user, size_t room);

#endif /* KVTIER_CXL_H */
