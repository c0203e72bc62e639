// SPDX-License-Identifier: GPL-2.0
/*
 * Regions, made and unmade in sysfs.
 *
 * Order matters to the kernel: the region's name is reserved under a root
 * decoder, each device's endpoint decoder gets a piece of its memory, the region
 * its geometry and these decoders as targets; commit programs the hardware, and
 * binding the region makes the dax device, or, of persistent memory, libnvdimm's
 * region. Undoing goes the other way.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "cxl.h"

#define DEVICES		"bus/cxl/devices"
#define DAX_WAIT_MS	10000

static void format_u64(char text[static 24], uint64_t value)
{
	snprintf(text, 24, "%#llx", (unsigned long long)value);
}

typedef int (*dax_visitor)(const char *dax, void *data);

/* Calls @visit for each dax device of a RAM region until it gives other than 0.
 * Persistent ones are below regions of libnvdimm, which are numbered on their own.
 */
static int visit_daxes(const char *region, dax_visitor visit, void *data)
{
	char inside[SYSFS_NAME_MAX + 2], real[SYSFS_PATH_MAX];
	struct sysfs_names list;
	size_t i;
	int ret;

	snprintf(inside, sizeof(inside), "/%s/", region);
	ret = sysfs_list(&list, "bus/dax/devices", "dax");
	for (i = 0; !ret && i < list.nr; i++)
		if (!sysfs_resolve(real, sizeof(real), "bus/dax/devices/%s",
				   list.names[i]) && strstr(real, inside) &&
		    !strstr(real, "/ndbus"))
			ret = visit(list.names[i], data);
	sysfs_free_names(&list);
	return ret;
}

static int take_name(const char *dax, void *data)
{
	snprintf(data, SYSFS_NAME_MAX, "%s", dax);
	return 1;
}

void cxl_region_dax(const char *region, char dax[static SYSFS_NAME_MAX])
{
	dax[0] = 0;
	visit_daxes(region, take_name, dax);
}

bool cxl_region_is_pmem(const char *region)
{
	char mode[SYSFS_NAME_MAX];

	return !sysfs_read(mode, sizeof(mode), DEVICES "/%s/mode", region) &&
	       !strcmp(mode, "pmem");
}

static int release_dax(const char *dax, void *trouble)
{
	return dax_unbind(dax, trouble);
}

int cxl_region_root(const char *region, char decoder[static SYSFS_NAME_MAX])
{
	char real[SYSFS_PATH_MAX], *slash;
	int ret;

	ret = sysfs_resolve(real, sizeof(real), DEVICES "/%s", region);
	if (ret)
		return ret;
	/* .../root0/decoder0.0/region0 */
	slash = strrchr(real, '/');
	*slash = 0;
	slash = strrchr(real, '/');
	if (!slash || strncmp(slash + 1, "decoder", 7))
		return -ENOENT;
	snprintf(decoder, SYSFS_NAME_MAX, "%s", slash + 1);
	return 0;
}

static void wait_for_dax(struct cxl_region_plan *plan)
{
	const struct timespec step = { .tv_nsec = 10000000 };
	int left_ms;

	for (left_ms = DAX_WAIT_MS; left_ms > 0; left_ms -= 10) {
		cxl_region_dax(plan->region, plan->dax);
		if (plan->dax[0])
			return;
		nanosleep(&step, NULL);
	}
}

int cxl_region_undo(struct cxl_region_plan *plan, struct cxl_trouble *trouble)
{
	int ret = 0, err;

	/* Where the driver did not take the device, it still has its name. */
	if (plan->dax[0])
		ret = cxl_write(trouble, plan->dax, "bus/dax/drivers/kvtier/remove_id");
	if (plan->committed) {
		err = cxl_write(trouble, "0", DEVICES "/%s/commit", plan->region);
		ret = ret ? ret : err;
	}
	if (plan->exists) {
		err = cxl_write(trouble, plan->region, DEVICES "/%s/delete_region",
				plan->root_decoder);
		ret = ret ? ret : err;
	}
	/* Last sized, first given back: the kernel insists. */
	while (plan->nr_sized > 0) {
		err = cxl_write(trouble, "0", DEVICES "/%s/dpa_size",
				plan->devs[--plan->nr_sized]->decoder);
		ret = ret ? ret : err;
	}
	plan->exists = false;
	plan->committed = false;
	return ret;
}

static const char *mode_of(const struct cxl_region_plan *plan)
{
	return plan->pmem ? "pmem" : "ram";
}

static int size_devices(struct cxl_region_plan *plan,
			struct cxl_trouble *trouble)
{
	char bytes[24];
	unsigned int i;
	int ret;

	format_u64(bytes, plan->bytes);
	for (i = 0; i < plan->ways; i++) {
		const char *decoder = plan->devs[i]->decoder;

		ret = cxl_write(trouble, mode_of(plan), DEVICES "/%s/mode", decoder);
		if (!ret)
			ret = cxl_write(trouble, bytes, DEVICES "/%s/dpa_size",
					decoder);
		if (ret)
			return ret;
		plan->nr_sized++;
	}
	return 0;
}

static int shape_region(struct cxl_region_plan *plan,
			struct cxl_trouble *trouble)
{
	char text[24];
	unsigned int i;
	int ret;

	snprintf(text, sizeof(text), "%u", plan->granularity);
	ret = cxl_write(trouble, text, DEVICES "/%s/interleave_granularity",
			plan->region);
	snprintf(text, sizeof(text), "%u", plan->ways);
	if (!ret)
		ret = cxl_write(trouble, text, DEVICES "/%s/interleave_ways",
				plan->region);
	format_u64(text, plan->bytes * plan->ways);
	if (!ret)
		ret = cxl_write(trouble, text, DEVICES "/%s/size",
				plan->region);
	if (ret)
		return ret;
	for (i = 0; !ret && i < plan->ways; i++)
		ret = cxl_write(trouble, plan->devs[i]->decoder,
				DEVICES "/%s/target%u", plan->region, i);
	if (ret == -ENXIO)
		trouble->hint = plan->ways > 1 ?
				"a region's devices are spread evenly over the window's host bridges and the ports below, each of which must be able to interleave so many" :
				"the device is not below the window's host bridge";
	if (ret == -EBUSY)
		trouble->hint = "below a port, regions in lower windows are made before those in higher ones: destroy those first";
	return ret;
}

/* With the end of line that this one file insists on. */
static int write_uuid(const struct cxl_region_plan *plan, struct cxl_trouble *trouble)
{
	char line[CXL_UUID_MAX + 1];

	snprintf(line, sizeof(line), "%s\n", plan->uuid);
	return cxl_write(trouble, line, DEVICES "/%s/uuid", plan->region);
}

static int make_region(struct cxl_region_plan *plan,
		       struct cxl_trouble *trouble)
{
	int ret;

	ret = sysfs_read(plan->region, sizeof(plan->region),
			 DEVICES "/%s/create_%s_region", plan->root_decoder, mode_of(plan));
	if (ret)
		return cxl_give_up(trouble, ret, NULL,
				   "asking %s for a region name",
				   plan->root_decoder);
	ret = cxl_write(trouble, plan->region, DEVICES "/%s/create_%s_region",
			plan->root_decoder, mode_of(plan));
	if (ret)
		return ret;
	plan->exists = true;
	if (plan->pmem)
		ret = write_uuid(plan, trouble);
	if (!ret)
		ret = size_devices(plan, trouble);
	if (!ret)
		ret = shape_region(plan, trouble);
	if (!ret)
		ret = cxl_write(trouble, "1", DEVICES "/%s/commit",
				plan->region);
	if (ret)
		return ret;
	plan->committed = true;
	return cxl_write(trouble, plan->region,
			 "bus/cxl/drivers/cxl_region/bind");
}

static int hand_over(struct cxl_region_plan *plan, struct cxl_trouble *trouble)
{
	wait_for_dax(plan);
	if (!plan->dax[0])
		return cxl_give_up(trouble, -ETIMEDOUT,
				   "is the dax_cxl module there? modprobe dax_cxl",
				   "no dax device appeared for %s",
				   plan->region);
	return dax_bind(plan->dax, trouble);
}

/* How far a root decoder comes with a region, the best last. */
enum root_fit { ROOT_ABSENT, ROOT_NONE, ROOT_SMALL, ROOT_WAYS, ROOT_FITS };

static enum root_fit root_fits(const char *decoder, const struct cxl_region_plan *plan)
{
	uint64_t cap = 0, ways = 1, size = 0, times;

	sysfs_read_u64(&cap, DEVICES "/%s/cap_%s", decoder, mode_of(plan));
	if (!cap || !sysfs_exists(DEVICES "/%s/create_%s_region", decoder, mode_of(plan)))
		return ROOT_NONE;
	sysfs_read_u64(&ways, DEVICES "/%s/interleave_ways", decoder);
	sysfs_read_u64(&size, DEVICES "/%s/size", decoder);
	if (size < plan->bytes * plan->ways)
		return ROOT_SMALL;
	times = plan->ways / (ways ? ways : 1);
	return times && times * ways == plan->ways && !(times & (times - 1)) ?
	       ROOT_FITS : ROOT_WAYS;
}

static const char *no_root_hint(const struct cxl_region_plan *plan, const char *decoder,
				enum root_fit best)
{
	if (decoder && best == ROOT_ABSENT)
		return "there is no such decoder: see decoder* in /sys/bus/cxl/devices, or leave --decoder out";
	if (decoder && best == ROOT_NONE)
		return plan->pmem ?
		       "only a root decoder with cap_pmem 1 takes such a region: leave --decoder out to have one found" :
		       "only a root decoder with cap_ram 1 takes such a region: leave --decoder out to have one found";
	return plan->pmem ?
	       "the firmware must offer a CXL window for persistent memory that is large enough" :
	       "the firmware must offer a CXL window for volatile memory that is large enough";
}

/* No root decoder was asked. */
static int no_root(const struct cxl_region_plan *plan, const char *decoder,
		   enum root_fit best, struct cxl_trouble *trouble)
{
	const char *who = decoder ? decoder : "any root decoder";

	if (best == ROOT_WAYS)
		return cxl_give_up(trouble, -EINVAL,
				   "a region has as many devices as its window has host bridges, or 2, 4, 8 or 16 times that: see --interleave, and interleave_ways of the root decoder",
				   "a region of %u devices in %s", plan->ways, who);
	return cxl_give_up(trouble, -ENODEV, no_root_hint(plan, decoder, best),
			   "a region on %s in %s", plan->devs[0]->name, who);
}

static int try_root(struct cxl_region_plan *plan, const char *decoder,
		    struct cxl_trouble *trouble)
{
	uint64_t ways = 1, granularity = 256;
	int ret;

	snprintf(plan->root_decoder, sizeof(plan->root_decoder), "%s", decoder);
	sysfs_read_u64(&ways, DEVICES "/%s/interleave_ways", decoder);
	if (ways > 1)
		sysfs_read_u64(&granularity,
			       DEVICES "/%s/interleave_granularity", decoder);
	plan->granularity = (unsigned int)granularity;
	cxl_order_devs(plan);
	ret = make_region(plan, trouble);
	if (!ret && !plan->pmem)
		ret = hand_over(plan, trouble);
	if (ret)
		cxl_region_undo(plan, trouble);
	return ret;
}

int cxl_region_create(struct cxl_region_plan *plan, const char *decoder,
		      struct cxl_trouble *trouble)
{
	enum root_fit fit, best = ROOT_ABSENT;
	struct cxl_trouble first = { 0 };
	struct sysfs_names list;
	bool by_ways = false;
	int ret;
	size_t i;

	ret = sysfs_list(&list, DEVICES, "decoder");
	if (ret)
		return cxl_give_up(trouble, ret, NULL, "listing CXL decoders");
	/* Which of the host's windows reach a device is for the kernel to say:
	 * try them in turn.
	 */
	for (i = 0, ret = -ENODEV; ret && i < list.nr; i++) {
		if (decoder && strcmp(decoder, list.names[i]))
			continue;
		fit = root_fits(list.names[i], plan);
		best = fit > best ? fit : best;
		by_ways |= fit == ROOT_WAYS;
		if (fit != ROOT_FITS)
			continue;
		trouble->err = 0;
		ret = try_root(plan, list.names[i], trouble);
		/* That a device is not below a window says less than any other failure. */
		if (ret && (!first.err || first.err == -ENXIO || plan->dax[0]))
			first = *trouble;
		/* One that went further than choosing a window will not go
		 * better in another.
		 */
		if (ret && plan->dax[0])
			break;
	}
	sysfs_free_names(&list);
	if (!ret)
		return 0;
	/* Below none of the windows that were tried, but one that takes other numbers. */
	if (first.err == -ENXIO && by_ways)
		best = ROOT_WAYS;
	trouble->err = 0;
	if (best != ROOT_FITS)
		return no_root(plan, decoder, best, trouble);
	*trouble = first;
	return first.err;
}

static void find_target(struct cxl_region_plan *plan, unsigned int i,
			struct cxl_memdev_info *dev)
{
	if (sysfs_read(dev->decoder, sizeof(dev->decoder),
		       DEVICES "/%s/target%u", plan->region, i) ||
	    !dev->decoder[0])
		return;
	plan->devs[plan->nr_sized++] = dev;
}

/* "decoderP.N" is the Nth of a device. Is @a a higher one of the same device than @b? */
static bool is_above(const char *a, const char *b)
{
	unsigned int port[2], nr[2];

	return sscanf(a, "decoder%u.%u", &port[0], &nr[0]) == 2 &&
	       sscanf(b, "decoder%u.%u", &port[1], &nr[1]) == 2 &&
	       port[0] == port[1] && nr[0] > nr[1];
}

static bool read_target(const char *region, unsigned int i, char decoder[static SYSFS_NAME_MAX])
{
	return !sysfs_read(decoder, SYSFS_NAME_MAX, DEVICES "/%s/target%u", region, i) &&
	       decoder[0];
}

bool cxl_region_is_above(const char *region, const char *other)
{
	char a[SYSFS_NAME_MAX], b[SYSFS_NAME_MAX];
	unsigned int i, k;

	for (i = 0; i < CXL_WAYS_MAX && read_target(region, i, a); i++)
		for (k = 0; k < CXL_WAYS_MAX && read_target(other, k, b); k++)
			if (is_above(a, b))
				return true;
	return false;
}

/* Devices give memory back from the highest decoder down only; 0, or -EBUSY with @trouble. */
static int check_is_top(const char *region, struct cxl_trouble *trouble)
{
	struct sysfs_names list;
	size_t i;
	int ret = 0;

	if (sysfs_list(&list, DEVICES, "region"))
		return 0;
	for (i = 0; !ret && i < list.nr; i++)
		if (cxl_region_is_above(list.names[i], region))
			ret = cxl_give_up(trouble, -EBUSY, "take that down first, or both at once",
					  "%s lies on memory of %s's devices that was taken after it",
					  list.names[i], region);
	sysfs_free_names(&list);
	return ret;
}

int cxl_region_destroy(const char *region, struct cxl_trouble *trouble)
{
	struct cxl_memdev_info devs[CXL_WAYS_MAX] = { 0 };
	struct cxl_region_plan plan = { .exists = true };
	uint64_t ways = 0;
	unsigned int i;
	int ret;

	snprintf(plan.region, sizeof(plan.region), "%s", region);
	ret = cxl_region_root(region, plan.root_decoder);
	if (ret)
		return cxl_give_up(trouble, ret, "see: kvtier cxl list",
				   "region %s", region);
	if (cxl_region_is_pmem(region))
		return cxl_give_up(trouble, -EOPNOTSUPP,
				   "if what is on it is to be lost: ndctl destroy-namespace, cxl destroy-region",
				   "%s is persistent memory", region);
	ret = check_is_top(region, trouble);
	if (!ret)
		ret = visit_daxes(region, release_dax, trouble);
	if (ret)
		return ret;
	sysfs_read_u64(&ways, DEVICES "/%s/interleave_ways", region);
	for (i = 0; i < ways && i < CXL_WAYS_MAX; i++)
		find_target(&plan, i, &devs[i]);
	ret = cxl_write(trouble, "0", DEVICES "/%s/commit", region);
	if (ret)
		return ret;
	return cxl_region_undo(&plan, trouble);
}
