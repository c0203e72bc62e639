// SPDX-License-Identifier: GPL-2.0
/*
 * The order in which devices are in an interleaved region.
 *
 * Bits of an address say, from the window down, which host bridge, which port below it
 * and which port below that has it. So at each of them what is below its ports takes
 * turns; a window that is over several host bridges has these in a fixed order, and the
 * kernel refuses devices in any other (ENXIO). Numbers of memory devices tell nothing of
 * that, and change from boot to boot.
 */
#include <stdio.h>
#include <string.h>
#include "cxl.h"

#define DEVICES	"bus/cxl/devices"

struct place {
	const struct cxl_memdev_info *dev;
	char path[SYSFS_PATH_MAX];	/* of its endpoint, below the root: port2/endpoint5 */
};

/* Paths that are alike before @at: are they alike in what comes next as well. */
static bool same_port(const struct place *a, const struct place *b, size_t at)
{
	size_t len = strcspn(a->path + at, "/");

	return !strncmp(a->path + at, b->path + at, len) &&
	       (b->path[at + len] == '/' || !b->path[at + len]);
}

/* Those below one port side by side, ports in the order they come; returns how many. */
static unsigned int by_port(struct place **places, unsigned int nr, size_t at,
			    struct place **sorted)
{
	unsigned int nr_ports = 0, n = 0, i, k;

	for (i = 0; i < nr; i++) {
		for (k = 0; k < i && !same_port(places[k], places[i], at); k++)
			;
		if (k < i)
			continue;
		nr_ports++;
		for (k = i; k < nr; k++)
			if (same_port(places[i], places[k], at))
				sorted[n++] = places[k];
	}
	return nr_ports;
}

/* False if they are not spread evenly: then there is no order that will do. */
static bool take_turns(struct place **places, unsigned int nr, size_t at)
{
	struct place *sorted[CXL_WAYS_MAX], **part;
	unsigned int nr_ports, each, i;
	size_t len;

	if (nr < 2)
		return true;
	nr_ports = by_port(places, nr, at, sorted);
	each = nr / nr_ports;
	if (nr % nr_ports)
		return false;
	for (i = 0; i < nr_ports; i++) {
		part = &sorted[i * each];
		len = strcspn(part[0]->path + at, "/");
		if (!same_port(part[0], part[each - 1], at) ||
		    (each > 1 && !part[0]->path[at + len]) ||
		    !take_turns(part, each, at + len + 1))
			return false;
	}
	for (i = 0; i < nr; i++)
		places[i % each * nr_ports + i / each] = sorted[i];
	return true;
}

/* Path of the root that the window is of. */
static bool find_root(const char *decoder, char root[static SYSFS_PATH_MAX])
{
	char *slash;

	if (sysfs_resolve(root, SYSFS_PATH_MAX, DEVICES "/%s", decoder))
		return false;
	slash = strrchr(root, '/');
	if (slash)
		*slash = 0;
	return slash;
}

static bool find_place(struct place *place, const struct cxl_memdev_info *dev,
		       const char *root)
{
	char real[SYSFS_PATH_MAX];
	size_t len = strlen(root);

	place->dev = dev;
	if (sysfs_resolve(real, sizeof(real), DEVICES "/%s", dev->endpoint) ||
	    strncmp(real, root, len) || real[len] != '/')
		return false;
	memcpy(place->path, real + len + 1, strlen(real + len + 1) + 1);
	return true;
}

/* Is it below that target of the window. */
static bool is_below(const struct place *place, const char *root, int target)
{
	char port[SYSFS_PATH_MAX], bridge[SYSFS_PATH_MAX];

	return !sysfs_resolve(port, sizeof(port), DEVICES "/%.*s/uport",
			      (int)strcspn(place->path, "/"), place->path) &&
	       !sysfs_resolve(bridge, sizeof(bridge), DEVICES "/%s/dport%d",
			      strrchr(root, '/') + 1, target) &&
	       !strcmp(port, bridge);
}

/* As the window has its host bridges; false if one is below none of them. */
static bool by_target(struct place *places, unsigned int nr, const char *decoder,
		      const char *root, struct place **sorted)
{
	char text[256], *at = text;
	unsigned int n = 0, i;
	int target, len;

	if (sysfs_read(text, sizeof(text), DEVICES "/%s/target_list", decoder))
		return false;
	for (; sscanf(at, "%d%n", &target, &len) == 1; at += len + (at[len] == ','))
		for (i = 0; i < nr; i++)
			if (is_below(&places[i], root, target)) {
				if (n == nr)
					return false;
				sorted[n++] = &places[i];
			}
	return n == nr;
}

void cxl_order_devs(struct cxl_region_plan *plan)
{
	struct place places[CXL_WAYS_MAX], *sorted[CXL_WAYS_MAX];
	char root[SYSFS_PATH_MAX];
	unsigned int i;

	if (plan->ways < 2 || !find_root(plan->root_decoder, root))
		return;
	for (i = 0; i < plan->ways; i++)
		if (!find_place(&places[i], plan->devs[i], root))
			return;
	if (!by_target(places, plan->ways, plan->root_decoder, root, sorted) ||
	    !take_turns(sorted, plan->ways, 0))
		return;
	for (i = 0; i < plan->ways; i++)
		plan->devs[i] = sorted[i]->dev;
}
