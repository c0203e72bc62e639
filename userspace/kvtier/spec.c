// SPDX-License-Identifier: GPL-2.0
/*
 * Tier specifications: parsing, and filling in what was left out.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd.h"
#include "media.h"
#include "spec.h"

/* Ranks of block devices start here, so that memory can be added before them. */
#define BDEV_RANK	128

static int complain(struct spec_error *error, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static int complain(struct spec_error *error, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(error->text, sizeof(error->text), fmt, args);
	va_end(args);
	return -EINVAL;
}

static int set_string(char *dst, size_t room, const char *value,
		      const char *what, struct spec_error *error)
{
	size_t len = strlen(value);

	if (!len || len >= room)
		return complain(error, "%s must have 1 to %zu characters",
				what, room - 1);
	memcpy(dst, value, len + 1);
	return 0;
}

static int set_name(struct tier_spec *spec, const char *value,
		    struct spec_error *error)
{
	const char *c;

	for (c = value; *c; c++)
		if (!islower((unsigned char)*c) && !isdigit((unsigned char)*c) &&
		    *c != '_' && *c != '-')
			return complain(error, "name '%s': only a-z, 0-9, _ and - are allowed",
					value);
	return set_string(spec->name, sizeof(spec->name), value, "name", error);
}

static int set_dev(struct tier_spec *spec, const char *value,
		   struct spec_error *error)
{
	unsigned int region, id;
	char tail;

	if (!strncmp(value, "/dev/", 5))
		value += 5;
	if (sscanf(value, "dax%u.%u%c", &region, &id, &tail) != 2)
		return complain(error, "dev '%s' is not a dax device such as dax0.0",
				value);
	return set_string(spec->path, sizeof(spec->path), value, "dev", error);
}

static int set_path(struct tier_spec *spec, const char *value,
		    struct spec_error *error)
{
	if (value[0] != '/')
		return complain(error, "path '%s' is not absolute", value);
	return set_string(spec->path, sizeof(spec->path), value, "path", error);
}

static int set_bytes(uint64_t *bytes, const char *value, const char *what,
		     struct spec_error *error)
{
	if (cmd_parse_bytes(value, bytes) || !*bytes)
		return complain(error, "%s '%s' is not a size such as 256M",
				what, value);
	return 0;
}

static int set_number(uint64_t max, uint64_t *number, const char *value,
		      const char *what, struct spec_error *error)
{
	if (cmd_parse_u64(value, max, number))
		return complain(error, "%s '%s' is not a number from 0 to %llu",
				what, value, (unsigned long long)max);
	return 0;
}

static int set_size(struct tier_spec *spec, const char *value,
		    struct spec_error *error)
{
	return set_bytes(&spec->params.capacity_bytes, value, "size", error);
}

static int set_segment(struct tier_spec *spec, const char *value,
		       struct spec_error *error)
{
	return set_bytes(&spec->params.segment_bytes, value, "segment", error);
}

static int set_rank(struct tier_spec *spec, const char *value,
		    struct spec_error *error)
{
	uint64_t rank = 0;
	int ret = set_number(255, &rank, value, "rank", error);

	spec->params.rank = (uint32_t)rank;
	spec->has_rank = true;
	return ret;
}

static int set_node(struct tier_spec *spec, const char *value,
		    struct spec_error *error)
{
	uint64_t node = 0;
	int ret = set_number(1023, &node, value, "node", error);

	spec->params.node = (int32_t)node;
	return ret;
}

static int set_charge(struct tier_spec *spec, const char *value,
		      struct spec_error *error)
{
	if (strcmp(value, "yes") && strcmp(value, "no"))
		return complain(error, "charge '%s' is neither yes nor no", value);
	if (!strcmp(value, "yes"))
		spec->params.flags |= KVTIER_ATTACH_CHARGE;
	return 0;
}

enum { T_DRAM = 1, T_NODE = 2, T_DAX = 4, T_BDEV = 8, T_PMEM = 16, T_ALL = 31 };

static const struct field {
	const char *key;
	unsigned int types;
	unsigned int needed;
	int (*set)(struct tier_spec *spec, const char *value,
		   struct spec_error *error);
} fields[] = {
	{ "name", T_ALL, 0, set_name },
	{ "rank", T_ALL, 0, set_rank },
	{ "size", T_ALL, T_DRAM | T_NODE, set_size },
	{ "node", T_NODE, T_NODE, set_node },
	{ "dev", T_DAX | T_PMEM, T_DAX | T_PMEM, set_dev },
	{ "path", T_BDEV, T_BDEV, set_path },
	{ "segment", T_BDEV | T_PMEM, 0, set_segment },
	{ "charge", T_DRAM | T_NODE, 0, set_charge },
};

static const struct {
	const char *name;
	uint32_t type;
	unsigned int bit;
} types[] = {
	{ "dram", KVTIER_TIER_DRAM, T_DRAM },
	{ "node", KVTIER_TIER_NODE, T_NODE },
	{ "dax", KVTIER_TIER_DAX, T_DAX },
	{ "bdev", KVTIER_TIER_BDEV, T_BDEV },
	{ "pmem", KVTIER_TIER_PMEM, T_PMEM },
};

static int parse_type(const char *word, struct tier_spec *spec,
		      unsigned int *bit, struct spec_error *error)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		if (strcmp(types[i].name, word))
			continue;
		spec->params.type = types[i].type;
		*bit = types[i].bit;
		return 0;
	}
	return complain(error, "'%s' is not a tier type: dram, node, dax, bdev or pmem",
			word);
}

static int parse_field(char *text, struct tier_spec *spec, unsigned int bit,
		       unsigned int *seen, struct spec_error *error)
{
	char *value = strchr(text, '=');
	size_t i;

	if (!value)
		return complain(error, "'%s' is not of the form KEY=VALUE",
				text);
	*value++ = 0;
	for (i = 0; i < ARRAY_SIZE(fields); i++)
		if (!strcmp(fields[i].key, text))
			break;
	if (i == ARRAY_SIZE(fields) || !(fields[i].types & bit))
		return complain(error, "a %s tier has no '%s'",
				kvtier_tier_type_name(spec->params.type), text);
	if (*seen & 1U << i)
		return complain(error, "'%s' is given twice", text);
	*seen |= 1U << i;
	return fields[i].set(spec, value, error);
}

static int check_needed(const struct tier_spec *spec, unsigned int bit,
			unsigned int seen, struct spec_error *error)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(fields); i++)
		if ((fields[i].needed & bit) && !(seen & 1U << i))
			return complain(error, "a %s tier needs %s=",
					kvtier_tier_type_name(spec->params.type),
					fields[i].key);
	return 0;
}

static int parse_copy(char *copy, struct tier_spec *spec,
		      struct spec_error *error)
{
	unsigned int bit = 0, seen = 0;
	char *rest = strchr(copy, ':'), *field;
	int ret;

	if (rest)
		*rest++ = 0;
	ret = parse_type(copy, spec, &bit, error);
	while (!ret && rest && (field = strsep(&rest, ",")))
		ret = parse_field(field, spec, bit, &seen, error);
	return ret ? ret : check_needed(spec, bit, seen, error);
}

int spec_parse(const char *text, struct tier_spec *spec,
	       struct spec_error *error)
{
	char *copy = strdup(text);
	int ret;

	*spec = (struct tier_spec){ .params = KVTIER_TIER_PARAMS_INIT };
	if (!copy)
		return complain(error, "out of memory");
	ret = parse_copy(copy, spec, error);
	free(copy);
	/* The device says what it is; its rank depends on that. */
	if (!ret && spec->params.type == KVTIER_TIER_DAX && media_dax_is_persistent(spec->path))
		spec->params.type = KVTIER_TIER_PMEM;
	return ret;
}

static bool is_memory(uint32_t type)
{
	return type != KVTIER_TIER_BDEV && type != KVTIER_TIER_PMEM;
}

/* The next rank of its kind lies behind all there are. */
static void pass_rank(uint32_t next[static 2], uint32_t type, uint32_t rank)
{
	if (rank >= next[!is_memory(type)])
		next[!is_memory(type)] = rank + 1;
}

static bool name_taken(const char *name, const struct tier_spec *specs,
		       unsigned int nr, const struct kvtier_tier_info *taken,
		       unsigned int nr_taken)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (!strcmp(specs[i].name, name))
			return true;
	for (i = 0; i < nr_taken; i++)
		if (!strcmp(taken[i].name, name))
			return true;
	return false;
}

/* Memory ranks before block devices, each rank once. */
static int check_pair(uint32_t type_a, uint32_t rank_a, uint32_t type_b,
		      uint32_t rank_b, struct spec_error *error)
{
	if (rank_a == rank_b)
		return complain(error, "rank %u is taken twice", rank_a);
	if (is_memory(type_a) != is_memory(type_b) &&
	    is_memory(type_a) != (rank_a < rank_b))
		return complain(error, "memory tiers must rank before block devices (lower number)");
	return 0;
}

static int check_ranks(const struct tier_spec *specs, unsigned int nr,
		       const struct kvtier_tier_info *taken,
		       unsigned int nr_taken, struct spec_error *error)
{
	unsigned int i, j;
	int ret = 0;

	for (i = 0; !ret && i < nr; i++) {
		const struct kvtier_tier_params *a = &specs[i].params;

		for (j = 0; !ret && j < i; j++)
			ret = check_pair(a->type, a->rank,
					 specs[j].params.type,
					 specs[j].params.rank, error);
		for (j = 0; !ret && j < nr_taken; j++)
			ret = check_pair(a->type, a->rank, taken[j].type,
					 taken[j].rank, error);
	}
	return ret;
}

int spec_complete(struct tier_spec *specs, unsigned int nr,
		  const struct kvtier_tier_info *taken, unsigned int nr_taken,
		  struct spec_error *error)
{
	uint32_t next[2] = { 0, BDEV_RANK };
	unsigned int i, n;

	for (i = 0; i < nr_taken; i++)
		pass_rank(next, taken[i].type, taken[i].rank);
	for (i = 0; i < nr; i++) {
		struct tier_spec *spec = &specs[i];

		if (!spec->has_rank)
			spec->params.rank = next[!is_memory(spec->params.type)];
		if (spec->params.rank > 255)
			return complain(error, "no rank is left behind 255");
		pass_rank(next, spec->params.type, spec->params.rank);
		for (n = 0; !spec->name[0]; n++) {
			char name[KVTIER_NAME_MAX];

			snprintf(name, sizeof(name), "%s%u",
				 kvtier_tier_type_name(spec->params.type), n);
			if (!name_taken(name, specs, nr, taken, nr_taken))
				memcpy(spec->name, name, sizeof(name));
		}
		spec->params.name = spec->name;
		spec->params.path = spec->path[0] ? spec->path : NULL;
	}
	return check_ranks(specs, nr, taken, nr_taken, error);
}
