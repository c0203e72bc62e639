// SPDX-License-Identifier: GPL-2.0
/*
 * A stand-in for the kernel behind sysfs files of the CXL and dax buses.
 *
 * The tree is made by fake_sysfs.sh. Each write is appended to the file "log"
 * beside the tree as "PATH=VALUE" and then has about the effect it has in a
 * kernel, including refusals when the order is wrong. Knobs, as files beside the
 * tree: "fail" holds "PATH ERRNO" of one write that is to fail (it is removed
 * when it did), "refuse" makes the kvtier driver refuse devices, "late" keeps dax
 * devices from being probed: by new_id, by the first bind and, with another errno,
 * by the second (it is removed then), "no_dax" keeps dax devices from appearing,
 * "kill" ends the process at PATH.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cxl.h"

#define PATH	1024

int __wrap_sysfs_write_path(const char *path, const char *value);
int __wrap_cxl_make_namespaces(struct cxl_region_plan *plan, struct cxl_trouble *trouble);

static void make(char path[static PATH], const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void make(char path[static PATH], const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	if (vsnprintf(path, PATH, fmt, args) >= PATH)
		abort();
	va_end(args);
}

static bool beside(const char *name, char path[static PATH])
{
	make(path, "%s/../%s", sysfs_root(), name);
	return !access(path, F_OK);
}

static void put(const char *path, const char *value)
{
	FILE *file = fopen(path, "w");

	if (!file)
		abort();
	fprintf(file, "%s\n", value);
	fclose(file);
}

static void get(const char *path, char *buf, size_t room)
{
	FILE *file = fopen(path, "r");

	buf[0] = 0;
	if (!file)
		return;
	if (fgets(buf, (int)room, file))
		buf[strcspn(buf, "\n")] = 0;
	fclose(file);
}

static void log_write(const char *rel, const char *value)
{
	char path[PATH];
	FILE *file;

	beside("log", path);
	file = fopen(path, "a");
	if (!file)
		abort();
	fprintf(file, "%s=%s\n", rel, *value == '\n' ? "" : value);
	fclose(file);
}

/* The injected error for this write, once. */
static int injected(const char *rel)
{
	char path[PATH], line[PATH], want[PATH];
	int err;

	if (beside("kill", path)) {
		get(path, line, sizeof(line));
		if (!strcmp(line, rel)) {
			unlink(path);
			raise(SIGTERM);
		}
	}
	if (!beside("fail", path))
		return 0;
	get(path, line, sizeof(line));
	if (sscanf(line, "%1023s %d", want, &err) != 2 || strcmp(want, rel))
		return 0;
	unlink(path);
	return -err;
}

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

static void remove_tree(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void attribute(const char *dir, const char *name, const char *value)
{
	char path[PATH];

	make(path, "%s/%s", dir, name);
	put(path, value);
}

static int create_region(const char *path, const char *value)
{
	char dir[PATH], link[PATH], next[PATH], target[16];
	unsigned int id;
	int i;

	get(path, next, sizeof(next));
	if (strcmp(next, value) || sscanf(value, "region%u", &id) != 1)
		return -EBUSY;
	make(dir, "%.*s/%s", (int)(strrchr(path, '/') - path), path, value);
	if (mkdir(dir, 0755))
		abort();
	attribute(dir, "size", "0");
	attribute(dir, "mode", strstr(path, "create_pmem_region") ? "pmem" : "ram");
	if (strstr(path, "create_pmem_region"))
		attribute(dir, "uuid", "");
	attribute(dir, "commit", "0");
	attribute(dir, "interleave_ways", "0");
	attribute(dir, "interleave_granularity", "0");
	for (i = 0; i < 16; i++) {
		snprintf(target, sizeof(target), "target%d", i);
		attribute(dir, target, "");
	}
	make(link, "%s/bus/cxl/devices/%s", sysfs_root(), value);
	if (symlink(dir, link))
		abort();
	make(next, "region%u", id + 1);
	put(path, next);
	return 0;
}

static void remove_dax(const char *region)
{
	char dax[PATH], path[PATH];

	make(dax, "dax%s.0", region + strlen("region"));
	make(path, "%s/bus/dax/devices/%s", sysfs_root(), dax);
	unlink(path);
	make(path, "%s/bus/cxl/devices/%s/dax_%s", sysfs_root(), region,
	     region);
	remove_tree(path);
}

static int delete_region(const char *value)
{
	char path[PATH], real[PATH];
	ssize_t len;

	make(path, "%s/bus/cxl/devices/%s", sysfs_root(), value);
	len = readlink(path, real, sizeof(real) - 1);
	if (len < 0)
		return -ENODEV;
	real[len] = 0;
	remove_dax(value);
	remove_tree(real);
	unlink(path);
	return 0;
}

static void region_file(char path[static PATH], const char *attr_path,
			const char *name)
{
	make(path, "%.*s/%s", (int)(strrchr(attr_path, '/') - attr_path),
	     attr_path, name);
}

/* Is the decoder below the host bridge that its position in the region is the window's for. */
static bool is_in_place(const char *path, const char *decoder)
{
	char file[PATH], link[PATH], text[64], *list = text;
	unsigned int bridge, ways, pos;
	ssize_t len;

	make(file, "%.*s/../target_list", (int)(strrchr(path, '/') - path), path);
	get(file, text, sizeof(text));
	make(file, "%.*s/../interleave_ways", (int)(strrchr(path, '/') - path), path);
	get(file, link, sizeof(link));
	ways = (unsigned int)atoi(link);
	if (sscanf(strrchr(path, '/'), "/target%u", &pos) != 1 || !ways)
		abort();
	for (pos %= ways; pos; pos--)
		list = strchr(list, ',') + 1;
	make(file, "%s/bus/cxl/devices/%s/../../uport", sysfs_root(), decoder);
	len = readlink(file, link, sizeof(link) - 1);
	if (len < 0)
		abort();
	link[len] = 0;
	return sscanf(strrchr(link, '/'), "/pci0000:%x", &bridge) == 1 &&
	       bridge == (unsigned int)atoi(list);
}

static int set_target(const char *path, const char *value)
{
	char file[PATH], text[64];

	region_file(file, path, "size");
	get(file, text, sizeof(text));
	if (!strtoull(text, NULL, 0))
		return -ENXIO;
	make(file, "%s/bus/cxl/devices/%s/dpa_size", sysfs_root(), value);
	get(file, text, sizeof(text));
	if (!strtoull(text, NULL, 0) || !is_in_place(path, value))
		return -ENXIO;
	put(path, value);
	return 0;
}

static int set_commit(const char *path, const char *value)
{
	char file[PATH], text[64], region[64], name[32];
	unsigned long ways, i;

	region_file(file, path, "interleave_ways");
	get(file, text, sizeof(text));
	ways = strtoul(text, NULL, 0);
	for (i = 0; i < ways; i++) {
		snprintf(name, sizeof(name), "target%lu", i);
		region_file(file, path, name);
		get(file, text, sizeof(text));
		if (!text[0])
			return -ENXIO;
	}
	if (!ways)
		return -ENXIO;
	if (value[0] == '0') {
		make(file, "%.*s", (int)(strrchr(path, '/') - path), path);
		snprintf(region, sizeof(region), "%s",
			 strrchr(file, '/') + 1);
		remove_dax(region);
	}
	put(path, value);
	return 0;
}

static bool is_target(const char *decoder)
{
	char path[PATH], text[64];
	int region, i;

	for (region = 0; region < 16; region++) {
		for (i = 0; i < 16; i++) {
			make(path, "%s/bus/cxl/devices/region%d/target%d",
			     sysfs_root(), region, i);
			get(path, text, sizeof(text));
			if (!strcmp(text, decoder))
				return true;
		}
	}
	return false;
}

/* Has the device's next decoder memory? It has to give that back first. */
static bool is_below(const char *decoder)
{
	const char *dot = strrchr(decoder, '.');
	char path[PATH], text[64];

	make(path, "%.*s.%d/dpa_size", (int)(dot - decoder), decoder, atoi(dot + 1) + 1);
	get(path, text, sizeof(text));
	return strtoull(text, NULL, 0) > 0;
}

static int set_dpa_size(const char *path, const char *value)
{
	char dir[PATH], mode[PATH], text[64];

	make(dir, "%.*s", (int)(strrchr(path, '/') - path), path);
	if (is_target(strrchr(dir, '/') + 1) || (!strcmp(value, "0") && is_below(dir)))
		return -EBUSY;
	make(mode, "%s/mode", dir);
	get(mode, text, sizeof(text));
	if (strcmp(text, "ram") && strcmp(text, "pmem"))
		return -EINVAL;
	put(path, value);
	return 0;
}

static void set_driver(const char *dax, const char *driver)
{
	char link[PATH], target[PATH];

	make(target, "%s/bus/dax/drivers/%s", sysfs_root(), driver);
	make(link, "%s/bus/dax/devices/%s/driver", sysfs_root(), dax);
	if (symlink(target, link) && errno != EEXIST)
		abort();
}

/* A region comes alive: its dax device appears, and who is awake takes it. */
static int bind_region(const char *region)
{
	char path[PATH], dir[PATH], dax[64], text[64];

	make(path, "%s/bus/cxl/devices/%s/commit", sysfs_root(), region);
	get(path, text, sizeof(text));
	if (strcmp(text, "1"))
		return -ENXIO;
	make(path, "%s/bus/cxl/devices/%s/mode", sysfs_root(), region);
	get(path, text, sizeof(text));
	if (!strcmp(text, "pmem") || beside("no_dax", path))
		return 0;
	snprintf(dax, sizeof(dax), "dax%s.0", region + strlen("region"));
	make(dir, "%s/bus/cxl/devices/%s/dax_%s", sysfs_root(), region, region);
	if (mkdir(dir, 0755))
		abort();
	make(dir, "%s/bus/cxl/devices/%s/dax_%s/%s", sysfs_root(), region,
	     region, dax);
	if (mkdir(dir, 0755))
		abort();
	make(path, "%s/bus/dax/devices/%s", sysfs_root(), dax);
	if (symlink(dir, path))
		abort();
	make(path, "%s/bus/dax/drivers_autoprobe", sysfs_root());
	get(path, text, sizeof(text));
	if (!strcmp(text, "1"))
		set_driver(dax, "kmem");
	return 0;
}

static int unbind_dax(const char *dax)
{
	char path[PATH];

	make(path, "%s/bus/dax/devices/%s/driver", sysfs_root(), dax);
	return unlink(path) ? -ENODEV : 0;
}

static int new_id(const char *dax)
{
	char path[PATH];

	if (!beside("refuse", path) && !beside("late", path))
		set_driver(dax, "kvtier");
	return 0;
}

static int bind_dax(const char *dax)
{
	char path[PATH], later[PATH];

	if (beside("late", path)) {
		make(later, "%s2", path);
		rename(path, later);
		return -ENODEV;
	}
	if (beside("late2", path)) {
		unlink(path);
		return -EAGAIN;
	}
	if (beside("refuse", path))
		return -EBUSY;
	set_driver(dax, "kvtier");
	return 0;
}

static int effect(const char *path, const char *rel, const char *value)
{
	const char *name = strrchr(rel, '/') + 1;

	if (access(path, F_OK))
		return -ENOENT;
	if (!strcmp(name, "create_ram_region") || !strcmp(name, "create_pmem_region"))
		return create_region(path, value);
	if (!strcmp(name, "delete_region"))
		return delete_region(value);
	if (!strcmp(name, "commit"))
		return set_commit(path, value);
	if (!strncmp(name, "target", 6))
		return set_target(path, value);
	if (!strcmp(name, "uuid") && (strlen(value) != 37 || value[36] != '\n'))
		return -EINVAL;
	if (!strcmp(name, "dpa_size"))
		return set_dpa_size(path, value);
	if (!strcmp(rel, "bus/cxl/drivers/cxl_region/bind"))
		return bind_region(value);
	if (!strcmp(rel, "bus/dax/drivers/kvtier/new_id"))
		return new_id(value);
	if (!strcmp(rel, "bus/dax/drivers/kvtier/bind"))
		return bind_dax(value);
	if (!strcmp(rel, "bus/dax/drivers/device_dax/bind")) {
		set_driver(value, "device_dax");
		return 0;
	}
	if (!strncmp(rel, "bus/dax/drivers/", 16) && !strcmp(name, "unbind"))
		return unbind_dax(value);
	put(path, value);
	return 0;
}

int __wrap_sysfs_write_path(const char *path, const char *value)
{
	const char *rel = path + strlen(sysfs_root()) + 1;
	int ret = injected(rel);

	log_write(rel, value);
	return ret ? ret : effect(path, rel, value);
}

/* libndctl knows one sysfs only. Knob: "no_namespace" makes it fail. */
int __wrap_cxl_make_namespaces(struct cxl_region_plan *plan, struct cxl_trouble *trouble)
{
	char path[PATH], text[64];
	unsigned int i;

	if (beside("no_namespace", path)) {
		unlink(path);
		return cxl_give_up(trouble, -ENOSPC, NULL, "making a namespace");
	}
	for (i = 0; i < plan->nr_namespaces; i++) {
		snprintf(text, sizeof(text), "%s", plan->map_on_device[i] ? "dev" : "mem");
		log_write("namespace", text);
		snprintf(plan->daxes[plan->nr_daxes++], SYSFS_NAME_MAX, "dax%u.0", i);
	}
	return 0;
}
