// SPDX-License-Identifier: GPL-2.0
/*
 * kvtier cxl list|create|destroy|bind|unbind
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "cmd.h"
#include "cxl.h"
#include "media.h"
#include "pmem.h"

/* The usual advice is about what the module says, not the files of the CXL bus. */
static int fail(const struct cxl_trouble *trouble)
{
	return cmd_fail(trouble->err, trouble->hint ? trouble->hint : "", "%s", trouble->what);
}

/* --- list ---------------------------------------------------------------- */

static const struct cmd_column memdev_cols[] = {
	{ "memdev", "MEMDEV", CMD_TEXT },
	{ "serial", "SERIAL", CMD_COUNT },
	{ "ram_bytes", "RAM", CMD_BYTES },
	{ "free_bytes", "FREE", CMD_BYTES },
	{ "pmem_bytes", "PMEM", CMD_BYTES },
	{ "numa_node", "NODE", CMD_COUNT },
	{ NULL, NULL, CMD_TEXT },
};

static const struct cmd_column region_cols[] = {
	{ "region", "REGION", CMD_TEXT },
	{ "dax", "DAX", CMD_TEXT },
	{ "driver", "DRIVER", CMD_TEXT },
	{ "used_by", "USED BY", CMD_TEXT },
	{ "size_bytes", "SIZE", CMD_BYTES },
	{ "decoder", "DECODER", CMD_TEXT },
	{ "memdevs", "MEMDEVS", CMD_TEXT },
	{ NULL, NULL, CMD_TEXT },
};

static const struct cmd_column pmem_cols[] = {
	{ "region", "REGION", CMD_TEXT },
	{ "daxes", "DAX", CMD_TEXT },
	{ "size_bytes", "SIZE", CMD_BYTES },
	{ "decoder", "DECODER", CMD_TEXT },
	{ "memdevs", "MEMDEVS", CMD_TEXT },
	{ "uuid", "UUID", CMD_TEXT },
	{ NULL, NULL, CMD_TEXT },
};

static const struct cmd_column persistent_cols[] = {
	{ "dax", "PERSISTENT DAX", CMD_TEXT },
	{ "driver", "DRIVER", CMD_TEXT },
	{ "used_by", "USED BY", CMD_TEXT },
	{ "size_bytes", "SIZE", CMD_BYTES },
	{ NULL, NULL, CMD_TEXT },
};

static struct json_object *memdev_json(const struct cxl_memdev_info *dev)
{
	struct json_object *obj = json_object_new_object();

	cmd_add_str(obj, "memdev", dev->name);
	cmd_add_u64(obj, "serial", dev->serial);
	cmd_add_u64(obj, "ram_bytes", dev->ram_bytes);
	cmd_add_u64(obj, "free_bytes", dev->free_bytes);
	cmd_add_u64(obj, "pmem_bytes", dev->pmem_bytes);
	cmd_add_u64(obj, "free_pmem_bytes", dev->free_pmem_bytes);
	cmd_add(obj, "numa_node", json_object_new_int(dev->numa_node));
	if (dev->endpoint[0])
		cmd_add_str(obj, "endpoint", dev->endpoint);
	return obj;
}

/* Which device a target decoder belongs to: decoder2.0 is endpoint2's. */
static const struct cxl_memdev_info *owner(const struct cxl_memdevs *devs,
					   const char *decoder)
{
	char endpoint[SYSFS_NAME_MAX];
	unsigned int port;
	size_t i;

	if (sscanf(decoder, "decoder%u.", &port) != 1)
		return NULL;
	snprintf(endpoint, sizeof(endpoint), "endpoint%u", port);
	for (i = 0; i < devs->nr; i++)
		if (!strcmp(devs->devs[i].endpoint, endpoint))
			return &devs->devs[i];
	return NULL;
}

static void add_targets(struct json_object *obj, const char *region,
			const struct cxl_memdevs *devs)
{
	struct json_object *names = json_object_new_array();
	struct json_object *serials = json_object_new_array();
	const struct cxl_memdev_info *dev;
	char decoder[SYSFS_NAME_MAX];
	uint64_t i, ways = 0;

	sysfs_read_u64(&ways, "bus/cxl/devices/%s/interleave_ways", region);
	for (i = 0; i < ways && i < CXL_WAYS_MAX; i++) {
		if (sysfs_read(decoder, sizeof(decoder),
			       "bus/cxl/devices/%s/target%u", region,
			       (unsigned int)i))
			continue;
		dev = owner(devs, decoder);
		if (!dev)
			continue;
		cmd_append(names, json_object_new_string(dev->name));
		cmd_append(serials, json_object_new_uint64(dev->serial));
	}
	cmd_add(obj, "memdevs", names);
	cmd_add(obj, "serials", serials);
}

static void add_dax(struct json_object *obj, const char *dax)
{
	char text[2 * SYSFS_NAME_MAX];

	cmd_add_str(obj, "dax", dax);
	dax_driver(dax, text);
	if (text[0])
		cmd_add_str(obj, "driver", text);
	if (dax_user(dax, text, sizeof(text)))
		cmd_add_str(obj, "used_by", text);
}

static struct json_object *persistent_json(void)
{
	struct json_object *array = json_object_new_array(), *obj;
	struct sysfs_names list;
	uint64_t bytes;
	size_t i;

	if (sysfs_list(&list, "bus/dax/devices", "dax"))
		return array;
	for (i = 0; i < list.nr; i++) {
		if (!media_dax_is_persistent(list.names[i]))
			continue;
		obj = json_object_new_object();
		add_dax(obj, list.names[i]);
		if (!sysfs_read_u64(&bytes, "bus/dax/devices/%s/size", list.names[i]))
			cmd_add_u64(obj, "size_bytes", bytes);
		cmd_append(array, obj);
	}
	sysfs_free_names(&list);
	return array;
}

static struct json_object *region_json(const char *region,
				       const struct cxl_memdevs *devs)
{
	struct json_object *obj = json_object_new_object();
	char dax[SYSFS_NAME_MAX], text[2 * SYSFS_NAME_MAX];
	uint64_t bytes = 0;

	cmd_add_str(obj, "region", region);
	sysfs_read_u64(&bytes, "bus/cxl/devices/%s/size", region);
	cmd_add_u64(obj, "size_bytes", bytes);
	if (!cxl_region_root(region, text))
		cmd_add_str(obj, "decoder", text);
	cxl_region_dax(region, dax);
	if (dax[0])
		add_dax(obj, dax);
	add_targets(obj, region, devs);
	return obj;
}

static int cxl_list(int argc, char **argv)
{
	static const struct cmd_table tables[] = {
		{ "memdevs", memdev_cols }, { "regions", region_cols },
		{ "persistent", persistent_cols }, { NULL, NULL },
	};
	struct json_object *obj, *memdevs, *regions;
	struct cxl_memdevs devs;
	struct sysfs_names list;
	size_t i;
	int ret;

	if (argc > 1)
		return cmd_usage("cxl list: what is '%s'?", argv[1]);
	ret = cxl_find_memdevs(&devs);
	if (ret)
		return cmd_fail(ret, NULL, "listing CXL memory devices");
	ret = sysfs_list(&list, "bus/cxl/devices", "region");
	if (ret) {
		cxl_free_memdevs(&devs);
		return cmd_fail(ret, NULL, "listing CXL regions");
	}
	obj = json_object_new_object();
	memdevs = json_object_new_array();
	regions = json_object_new_array();
	for (i = 0; i < devs.nr; i++)
		cmd_append(memdevs, memdev_json(&devs.devs[i]));
	for (i = 0; i < list.nr; i++)
		cmd_append(regions, region_json(list.names[i], &devs));
	if (!devs.nr)
		cmd_note("there is no CXL memory (are cxl_acpi, cxl_pci and cxl_mem loaded?)");
	cmd_add(obj, "memdevs", memdevs);
	cmd_add(obj, "regions", regions);
	cmd_add(obj, "persistent", persistent_json());
	cmd_emit_nested(obj, NULL, tables);
	sysfs_free_names(&list);
	cxl_free_memdevs(&devs);
	return EXIT_OK;
}

/* --- create -------------------------------------------------------------- */

struct create {
	bool interleave;
	bool pmem;
	const char *uuid;
	unsigned int nr_maps;
	bool maps[CXL_NAMESPACES_MAX];	/* on the device */
	uint64_t bytes;
	const char *decoder;
	unsigned int nr_wanted;
	const char *wanted[CXL_WAYS_MAX];
	struct cxl_memdevs devs;
	unsigned int nr_plans;
	struct cxl_region_plan plans[CXL_WAYS_MAX];
};

static int parse_type(const char *text, struct create *c)
{
	c->pmem = !strcmp(text, "pmem");
	return c->pmem || !strcmp(text, "ram") ? EXIT_OK :
	       cmd_usage("--type '%s' is neither ram nor pmem", text);
}

static int parse_uuid(const char *text, struct create *c)
{
	size_t i, len = strlen(text);

	for (i = 0; i < len; i++)
		if (i == 8 || i == 13 || i == 18 || i == 23 ? text[i] != '-' :
							      !isxdigit((unsigned char)text[i]))
			break;
	if (len != CXL_UUID_MAX - 1 || i < len)
		return cmd_usage("--uuid '%s' is not a uuid", text);
	c->uuid = text;
	return EXIT_OK;
}

static int parse_map(const char *text, struct create *c)
{
	if (c->nr_maps == CXL_NAMESPACES_MAX)
		return cmd_usage("at most %d namespaces", CXL_NAMESPACES_MAX);
	c->maps[c->nr_maps] = !strcmp(text, "dev");
	return c->maps[c->nr_maps++] || !strcmp(text, "mem") ? EXIT_OK :
	       cmd_usage("--map '%s' is neither dev nor mem", text);
}

/* What is only said of persistent regions. */
static int check_pmem_options(struct create *c)
{
	if (!c->pmem)
		return c->uuid || c->nr_maps ?
		       cmd_usage("--uuid and --map are for --type pmem") : EXIT_OK;
	if (!c->nr_maps)
		c->maps[c->nr_maps++] = true;
#ifndef HAVE_LIBNDCTL
	return cmd_fail(EOPNOTSUPP, "use cxl create-region and ndctl create-namespace",
			"this kvtier is built without libndctl");
#endif
	return EXIT_OK;
}

static int parse_create(int argc, char **argv, struct create *c)
{
	static const struct option options[] = {
		{ "type", required_argument, NULL, 't' },
		{ "uuid", required_argument, NULL, 'u' },
		{ "map", required_argument, NULL, 'p' },
		{ "memdev", required_argument, NULL, 'm' },
		{ "size", required_argument, NULL, 's' },
		{ "decoder", required_argument, NULL, 'd' },
		{ "interleave", no_argument, NULL, 'i' },
		{ NULL, 0, NULL, 0 },
	};
	int o, status = EXIT_OK;

	while (!status && (o = getopt_long(argc, argv, "m:s:d:i", options, NULL)) != -1) {
		switch (o) {
		case 't':
			status = parse_type(optarg, c);
			break;
		case 'u':
			status = parse_uuid(optarg, c);
			break;
		case 'p':
			status = parse_map(optarg, c);
			break;
		case 'm':
			if (c->nr_wanted == CXL_WAYS_MAX)
				return cmd_usage("at most %d memdevs",
						 CXL_WAYS_MAX);
			c->wanted[c->nr_wanted++] = optarg;
			break;
		case 's':
			if (cmd_parse_bytes(optarg, &c->bytes) || !c->bytes)
				return cmd_usage("--size '%s' is not a size such as 512M",
						 optarg);
			break;
		case 'd':
			c->decoder = optarg;
			break;
		case 'i':
			c->interleave = true;
			break;
		default:
			return cmd_usage("cxl create: bad option '%s'",
					 argv[optind - 1]);
		}
	}
	if (!status && optind < argc)
		return cmd_usage("cxl create: what is '%s'?", argv[optind]);
	return status ? status : check_pmem_options(c);
}

static bool is_wanted(const struct cxl_memdev_info *dev, const char *word)
{
	uint64_t serial;

	if (!strncmp(word, "serial=", 7))
		return !cmd_parse_u64(word + 7, UINT64_MAX, &serial) &&
		       serial == dev->serial;
	return !strcmp(dev->name, word);
}

static uint64_t free_of(const struct create *c, const struct cxl_memdev_info *dev)
{
	return c->pmem ? dev->free_pmem_bytes : dev->free_bytes;
}

static int add_plan(struct create *c, const struct cxl_memdev_info *dev)
{
	struct cxl_region_plan *plan = &c->plans[c->nr_plans];
	uint64_t free = free_of(c, dev), bytes = c->bytes ? c->bytes : free;

	if (bytes > free)
		return cmd_fail(ENOSPC, "", "%s has %llu bytes free, not %llu",
				dev->name, (unsigned long long)free,
				(unsigned long long)bytes);
	bytes -= bytes % CXL_EXTENT_BYTES;
	if (!bytes)
		return cmd_fail(EINVAL, "regions are made of pieces of 256M",
				"size for %s", dev->name);
	if (c->interleave && c->nr_plans) {
		plan = &c->plans[0];
		if (bytes < plan->bytes)
			plan->bytes = bytes;
	} else {
		plan->bytes = bytes;
		c->nr_plans++;
	}
	plan->devs[plan->ways++] = dev;
	return EXIT_OK;
}

static bool is_free(const struct create *c, const struct cxl_memdev_info *dev)
{
	return dev->decoder[0] && free_of(c, dev) >= CXL_EXTENT_BYTES;
}

static const char *kind_of(const struct create *c)
{
	return c->pmem ? "persistent memory" : "RAM";
}

static bool is_planned(const struct create *c, const struct cxl_memdev_info *dev)
{
	unsigned int i, k;

	for (i = 0; i < c->nr_plans; i++)
		for (k = 0; k < c->plans[i].ways; k++)
			if (c->plans[i].devs[k] == dev)
				return true;
	return false;
}

static int plan_wanted(struct create *c, const char *word)
{
	size_t i;

	for (i = 0; i < c->devs.nr; i++)
		if (is_wanted(&c->devs.devs[i], word))
			break;
	if (i == c->devs.nr)
		return cmd_fail(ENODEV, "see: kvtier cxl list", "memdev '%s'",
				word);
	if (is_planned(c, &c->devs.devs[i]))
		return cmd_usage("cxl create: %s is named twice", c->devs.devs[i].name);
	if (!c->devs.devs[i].endpoint[0])
		return cmd_fail(ENXIO, "is cxl_mem loaded, and the link up?",
				"%s is not enabled", c->devs.devs[i].name);
	if (!is_free(c, &c->devs.devs[i]))
		return cmd_fail(EBUSY, "see: kvtier cxl list",
				"the %s of %s is in use", kind_of(c),
				c->devs.devs[i].name);
	return add_plan(c, &c->devs.devs[i]);
}

static void random_uuid(char text[static CXL_UUID_MAX])
{
	unsigned char b[16];

	if (getrandom(b, sizeof(b), 0) != sizeof(b))
		abort();
	b[6] = (b[6] & 0x0f) | 0x40;
	b[8] = (b[8] & 0x3f) | 0x80;
	snprintf(text, CXL_UUID_MAX,
		 "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		 b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11],
		 b[12], b[13], b[14], b[15]);
}

static int plan_pmem(struct create *c)
{
	unsigned int i;

	if (c->uuid && c->nr_plans > 1)
		return cmd_usage("--uuid is of one region: say which memdev, or --interleave");
	for (i = 0; i < c->nr_plans; i++) {
		c->plans[i].pmem = true;
		c->plans[i].nr_namespaces = c->nr_maps;
		memcpy(c->plans[i].map_on_device, c->maps, sizeof(c->maps));
		if (c->uuid)
			snprintf(c->plans[i].uuid, CXL_UUID_MAX, "%s", c->uuid);
		else
			random_uuid(c->plans[i].uuid);
	}
	return EXIT_OK;
}

static int by_serial(const void *a, const void *b)
{
	const struct cxl_memdev_info *const *x = a, *const *y = b;

	if ((*x)->serial != (*y)->serial)
		return (*x)->serial < (*y)->serial ? -1 : 1;
	return strverscmp((*x)->name, (*y)->name);
}

static int make_plans(struct create *c)
{
	unsigned int n;
	int status = EXIT_OK;
	size_t i;

	for (n = 0; !status && n < c->nr_wanted; n++)
		status = plan_wanted(c, c->wanted[n]);
	for (i = 0; !status && !c->nr_wanted && i < c->devs.nr &&
	     i < CXL_WAYS_MAX; i++)
		if (is_free(c, &c->devs.devs[i]))
			status = add_plan(c, &c->devs.devs[i]);
	/* Names change from boot to boot; what is persistent is to be found again. */
	if (c->interleave && !c->nr_wanted)
		qsort(c->plans[0].devs, c->plans[0].ways, sizeof(c->plans[0].devs[0]), by_serial);
	if (!status && !c->nr_plans)
		return cmd_fail(ENODEV, c->devs.nr ?
				"all of it is in regions: kvtier cxl list" :
				"are cxl_acpi, cxl_pci and cxl_mem loaded?",
				"no free CXL %s", kind_of(c));
	if (!status && c->pmem)
		status = plan_pmem(c);
	return status;
}

static void add_namespaces(struct json_object *obj, const struct cxl_region_plan *plan)
{
	struct json_object *daxes = json_object_new_array();
	unsigned int i;

	for (i = 0; i < plan->nr_daxes; i++)
		cmd_append(daxes, json_object_new_string(plan->daxes[i]));
	cmd_add(obj, "daxes", daxes);
	cmd_add_str(obj, "uuid", plan->uuid);
}

static struct json_object *plans_json(const struct create *c)
{
	struct json_object *array = json_object_new_array();
	unsigned int i;

	for (i = 0; i < c->nr_plans; i++) {
		struct json_object *obj = region_json(c->plans[i].region, &c->devs);

		if (c->pmem)
			add_namespaces(obj, &c->plans[i]);
		cmd_append(array, obj);
	}
	return array;
}

static int create_one(struct create *c, struct cxl_region_plan *plan,
		      struct cxl_trouble *trouble)
{
	int ret = cxl_region_create(plan, c->decoder, trouble);

	if (ret || !plan->pmem)
		return ret;
#ifdef HAVE_LIBNDCTL
	ret = cxl_make_namespaces(plan, trouble);
#endif
	if (ret)
		cxl_region_undo(plan, trouble);
	return ret;
}

/* What is persistent is left as it is: it may have been there before. */
static void undo_one(struct cxl_region_plan *plan)
{
	struct cxl_trouble ignored = { 0 };

	if (plan->pmem)
		return;
	dax_unbind(plan->dax, &ignored);
	cxl_region_undo(plan, &ignored);
}

/* All of them or none. */
static int run_plans(struct create *c)
{
	struct cxl_trouble trouble = { 0 };
	struct dax_guard guard;
	unsigned int i;
	int ret, end;

	ret = dax_guard_begin(&guard, !c->pmem, !c->pmem, &trouble);
	if (ret)
		return fail(&trouble);
	for (i = 0; !ret && i < c->nr_plans; i++)
		ret = create_one(c, &c->plans[i], &trouble);
	if (ret) {
		/* The last one tried has undone itself. */
		for (i--; i-- > 0;)
			undo_one(&c->plans[i]);
	}
	end = dax_guard_end(&guard);
	if (ret)
		return fail(&trouble);
	if (end)
		return cmd_fail(end, "write 1 to /sys/bus/dax/drivers_autoprobe",
				"the regions are made, but automatic binding of dax devices could not be switched on again");
	return EXIT_OK;
}

static int cxl_create(int argc, char **argv)
{
	struct create c = { 0 };
	int ret, status;

	status = parse_create(argc, argv, &c);
	if (status)
		return status;
	ret = cxl_find_memdevs(&c.devs);
	if (ret)
		return cmd_fail(ret, NULL, "listing CXL memory devices");
	status = make_plans(&c);
	if (!status)
		status = run_plans(&c);
	if (!status)
		cmd_emit(plans_json(&c), c.pmem ? pmem_cols : region_cols);
	cxl_free_memdevs(&c.devs);
	return status;
}

/* --- destroy, bind, unbind ----------------------------------------------- */

/* What is done is not taken back because of what comes after it. */
static void note_done(struct json_object *done, const char *done_key)
{
	size_t i;

	for (i = 0; i < json_object_array_length(done); i++)
		cmd_note("%s: %s", done_key,
			 json_object_get_string(json_object_array_get_idx(done, i)));
}

/* Runs @one for each of @words with other drivers kept off. */
static int for_each(size_t nr, char (*words)[SYSFS_NAME_MAX],
		    int (*one)(const char *word, struct cxl_trouble *trouble),
		    bool need_driver, const char *done_key)
{
	struct json_object *obj, *done = json_object_new_array();
	struct cxl_trouble trouble = { 0 };
	struct dax_guard guard;
	size_t i;
	int ret;

	ret = dax_guard_begin(&guard, need_driver, true, &trouble);
	for (i = 0; !ret && i < nr; i++) {
		ret = one(words[i], &trouble);
		if (!ret)
			cmd_append(done, json_object_new_string(words[i]));
	}
	dax_guard_end(&guard);
	if (ret) {
		note_done(done, done_key);
		json_object_put(done);
		return fail(&trouble);
	}
	obj = json_object_new_object();
	cmd_add(obj, done_key, done);
	cmd_emit(obj, NULL);
	return EXIT_OK;
}

static int words_of(int argc, char **argv, const char *prefix,
		    char (*words)[SYSFS_NAME_MAX])
{
	size_t len = strlen(prefix);
	int i;

	for (i = 1; i < argc; i++) {
		const char *word = argv[i];

		if (!strncmp(word, "/dev/", 5))
			word += 5;
		if (strncmp(word, prefix, len) || !word[len] ||
		    strlen(word) >= SYSFS_NAME_MAX || strchr(word, '/'))
			return cmd_usage("'%s' is not a name such as %s%s",
					 argv[i], prefix,
					 *prefix == 'd' ? "0.0" : "0");
		snprintf(words[i - 1], SYSFS_NAME_MAX, "%s", word);
	}
	return EXIT_OK;
}

static void leave_pmem_out(struct sysfs_names *list)
{
	size_t i, nr = 0;

	for (i = 0; i < list->nr; i++)
		if (!cxl_region_is_pmem(list->names[i]))
			memmove(list->names[nr++], list->names[i], SYSFS_NAME_MAX);
	list->nr = nr;
}

/* Of words[@at..] one that none of the others is above. */
static size_t highest(size_t nr, char (*words)[SYSFS_NAME_MAX], size_t at)
{
	size_t from = at, tries, k;

	/* Later regions are above earlier ones, so there is no going round in circles. */
	for (tries = from; tries < nr; tries++) {
		for (k = from; k < nr && !cxl_region_is_above(words[k], words[at]); k++)
			;
		if (k == nr)
			break;
		at = k;
	}
	return at;
}

/* Those above others first. */
static void order_regions(size_t nr, char (*words)[SYSFS_NAME_MAX])
{
	char first[SYSFS_NAME_MAX];
	size_t i, at;

	for (i = 0; i < nr; i++) {
		at = highest(nr, words, i);
		memcpy(first, words[at], sizeof(first));
		memmove(words[i + 1], words[i], (at - i) * sizeof(*words));
		memcpy(words[i], first, sizeof(first));
	}
}

static int cxl_destroy(int argc, char **argv)
{
	char words[CXL_WAYS_MAX][SYSFS_NAME_MAX];
	struct sysfs_names list;
	int status;

	if (argc < 2 || argc > CXL_WAYS_MAX + 1)
		return cmd_usage("cxl destroy needs regions, or 'all'");
	if (argc == 2 && !strcmp(argv[1], "all")) {
		status = sysfs_list(&list, "bus/cxl/devices", "region");
		if (status)
			return cmd_fail(status, NULL, "listing CXL regions");
		leave_pmem_out(&list);
		order_regions(list.nr, list.names);
		status = for_each(list.nr, list.names, cxl_region_destroy,
				  false, "destroyed");
		sysfs_free_names(&list);
		return status;
	}
	status = words_of(argc, argv, "region", words);
	if (!status)
		order_regions((size_t)argc - 1, words);
	return status ? status : for_each((size_t)argc - 1, words,
					  cxl_region_destroy, false, "destroyed");
}

static int cxl_bind_verb(int argc, char **argv,
			 int (*one)(const char *, struct cxl_trouble *),
			 const char *done_key)
{
	struct pmem_hold hold = PMEM_HOLD_NONE;
	char words[CXL_WAYS_MAX][SYSFS_NAME_MAX];
	bool persistent = false;
	int i, status;

	if (argc < 2 || argc > CXL_WAYS_MAX + 1)
		return cmd_usage("cxl %s needs dax devices", argv[0]);
	status = words_of(argc, argv, "dax", words);
	for (i = 0; !status && i < argc - 1; i++)
		if (!sysfs_exists("bus/dax/devices/%s", words[i]))
			return cmd_fail(ENODEV, "see: kvtier cxl list", "%s",
					words[i]);
	for (i = 0; !status && !persistent && i < argc - 1; i++)
		persistent = media_dax_is_persistent(words[i]);
	if (!status && persistent && pmem_hold_begin(&hold, false) == -EBUSY)
		return cmd_fail(EBUSY, "when it is done: try again",
				"a pool is being assembled, or a tier attached, that may use %s",
				words[0]);
	if (!status)
		status = for_each((size_t)argc - 1, words, one, one == dax_bind, done_key);
	pmem_hold_end(&hold);
	return status;
}

static int cxl_bind(int argc, char **argv)
{
	return cxl_bind_verb(argc, argv, dax_bind, "bound");
}

static int cxl_unbind(int argc, char **argv)
{
	return cxl_bind_verb(argc, argv, dax_unbind, "unbound");
}

const struct cmd_verb cxl_verbs[] = {
	{ "list", "", "list CXL memory devices, regions, and persistent dax devices", cxl_list },
	{ "create",
	  "[--memdev memN|serial=N]... [--size SIZE] [--interleave] [--decoder NAME] [--type pmem [--uuid UUID] [--map dev|mem]...]",
	  "make regions of free RAM and hand them to the kvtier driver, or of persistent memory with namespaces",
	  cxl_create },
	{ "destroy", "REGION...|all", "take regions down", cxl_destroy },
	{ "bind", "DAX...", "hand dax devices to the kvtier driver", cxl_bind },
	{ "unbind", "DAX...", "take dax devices from the kvtier driver",
	  cxl_unbind },
	{ NULL, NULL, NULL, NULL },
};
