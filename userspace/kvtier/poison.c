// SPDX-License-Identifier: GPL-2.0
/*
 * Poison lists of CXL devices.
 *
 * Who writes to trigger_poison_list of a memory device makes the kernel read its list
 * and tell of each entry by the event cxl_poison, with the physical address if the entry is
 * in a region. An entry says how far it goes in the device's own addresses. Of a region
 * that is interleaved over several devices, that is a part of each of some stripes: these
 * are taken as a whole.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "poison.h"
#include "sysfs.h"

#define DEVICES		"bus/cxl/devices"
#define INSTANCES	"kernel/tracing/instances"
#define EVENT		"events/cxl/cxl_poison/enable"
#define LINE_MAX_BYTES	1024

static bool find_text(const char *line, const char *key, char *value, size_t room)
{
	const char *at = strstr(line, key);
	size_t len;

	if (!at)
		return false;
	at += strlen(key);
	len = strcspn(at, "\n ");
	if (len >= room)
		return false;
	memcpy(value, at, len);
	value[len] = 0;
	return true;
}

static bool find_number(const char *line, const char *key, __u64 *value)
{
	char text[32], *end;

	if (!find_text(line, key, text, sizeof(text)))
		return false;
	errno = 0;
	*value = strtoull(text, &end, 0);
	return !errno && end != text && !*end;
}

/* From the first stripe that an entry touches to the last. */
static void whole_stripes(const struct poison_region *region, struct kvtier_range *range)
{
	uint64_t stripe, skip, nr;

	if (region->ways < 2 || range->start < region->start ||
	    __builtin_mul_overflow(region->ways, region->granularity, &stripe) || !stripe)
		return;
	skip = (range->start - region->start) % stripe;
	range->start -= skip;
	nr = (skip % region->granularity + range->bytes - 1) / region->granularity + 1;
	/* As far as addresses go, if a device says nonsense. */
	if (__builtin_mul_overflow(nr, stripe, &range->bytes) ||
	    range->bytes > UINT64_MAX - range->start)
		range->bytes = UINT64_MAX - range->start;
}

static int add_range(struct poison_list *list, const struct kvtier_range *range)
{
	struct kvtier_range *bigger;

	if (list->nr == KVTIER_BAD_MAX)
		return -E2BIG;
	bigger = realloc(list->ranges, (list->nr + 1) * sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	list->ranges = bigger;
	bigger[list->nr++] = *range;
	return 0;
}

int poison_add_line(struct poison_list *list, const struct poison_region *region,
		    const char *line)
{
	char name[SYSFS_NAME_MAX], flags[64];
	struct kvtier_range range;

	if (!strstr(line, " cxl_poison: "))
		return 0;
	if (find_text(line, " flags=", flags, sizeof(flags)) && strcasestr(flags, "overflow"))
		list->incomplete = true;
	if (!find_text(line, " region=", name, sizeof(name)) || strcmp(name, region->name) ||
	    !find_number(line, " hpa=", &range.start) || range.start == UINT64_MAX ||
	    !find_number(line, " dpa_length=", &range.bytes) || !range.bytes)
		return 0;
	whole_stripes(region, &range);
	return add_range(list, &range);
}

void poison_free(struct poison_list *list)
{
	free(list->ranges);
	memset(list, 0, sizeof(*list));
}

/* The region that a dax device is of, "" for none: .../region0/dax_region0/dax0.0 */
static void region_of(const char *dax, char region[static SYSFS_NAME_MAX])
{
	char path[SYSFS_PATH_MAX], *part, *rest = path;

	region[0] = 0;
	if (sysfs_resolve(path, sizeof(path), "bus/dax/devices/%s", dax))
		return;
	while ((part = strsep(&rest, "/"))) {
		if (!strncmp(part, "region", 6) && strlen(part) < SYSFS_NAME_MAX)
			memcpy(region, part, strlen(part) + 1);
	}
}

/* The memory device behind a region's target number @i. */
static int memdev_of(const char *region, uint64_t i, char mem[static SYSFS_NAME_MAX])
{
	char decoder[SYSFS_NAME_MAX], path[SYSFS_PATH_MAX], *slash;
	int ret;

	ret = sysfs_read(decoder, sizeof(decoder), DEVICES "/%s/target%" PRIu64, region, i);
	if (!ret)
		ret = sysfs_resolve(path, sizeof(path), DEVICES "/%s", decoder);
	if (ret)
		return ret;
	/* .../endpoint3/decoder3.0 */
	slash = strrchr(path, '/');
	*slash = 0;
	slash = strrchr(path, '/');
	return sysfs_link_name(mem, SYSFS_NAME_MAX, DEVICES "/%s/uport", slash + 1);
}

static int trigger(const struct poison_region *region, char *what, size_t room)
{
	char mem[SYSFS_NAME_MAX];
	uint64_t i;
	int ret;

	for (i = 0; i < region->ways; i++) {
		snprintf(what, room, "target %" PRIu64 " of %s", i, region->name);
		ret = memdev_of(region->name, i, mem);
		if (ret)
			return ret;
		snprintf(what, room, "the poison list of %s", mem);
		/* A device that keeps none does not have the file. */
		if (!sysfs_exists(DEVICES "/%s/trigger_poison_list", mem))
			continue;
		ret = sysfs_write("1", DEVICES "/%s/trigger_poison_list", mem);
		if (ret)
			return ret;
	}
	return 0;
}

static int read_trace(const char *dir, const struct poison_region *region,
		      struct poison_list *list)
{
	char path[SYSFS_PATH_MAX], line[LINE_MAX_BYTES];
	int ret = 0;
	FILE *f;

	if (snprintf(path, sizeof(path), "%s/%s/trace", sysfs_root(), dir) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (!ret && fgets(line, sizeof(line), f))
		ret = poison_add_line(list, region, line);
	fclose(f);
	return ret;
}

/* With an instance of tracefs that nobody else uses, and that does not outlive us. */
static int ask(const struct poison_region *region, struct poison_list *list, char *what,
	       size_t room)
{
	char dir[SYSFS_PATH_MAX / 2], path[SYSFS_PATH_MAX];
	int ret;

	snprintf(dir, sizeof(dir), INSTANCES "/kvtier-%ld", (long)getpid());
	snprintf(path, sizeof(path), "%s/%s", sysfs_root(), dir);
	snprintf(what, room, "%s", path);
	/* Of one who had the same number and did not come to his end. */
	rmdir(path);
	if (mkdir(path, 0700))
		return -errno;
	ret = sysfs_write("1", "%s/" EVENT, dir);
	if (!ret)
		ret = trigger(region, what, room);
	if (!ret) {
		snprintf(what, room, "the poison list of %s", region->name);
		ret = read_trace(dir, region, list);
	}
	sysfs_write("0", "%s/" EVENT, dir);
	rmdir(path);
	return ret;
}

int poison_of_dax(const char *dax, struct poison_list *list, char *what, size_t room)
{
	char name[SYSFS_NAME_MAX];
	struct poison_region region = { .name = name };
	int ret;

	memset(list, 0, sizeof(*list));
	region_of(dax, name);
	if (!name[0])
		return 0;
	snprintf(what, room, "region %s", name);
	ret = sysfs_read_u64(&region.ways, DEVICES "/%s/interleave_ways", name);
	if (!ret)
		ret = sysfs_read_u64(&region.granularity, DEVICES "/%s/interleave_granularity",
				     name);
	if (!ret)
		ret = sysfs_read_u64(&region.start, DEVICES "/%s/resource", name);
	if (!ret)
		ret = ask(&region, list, what, room);
	if (ret)
		poison_free(list);
	return ret;
}
