// SPDX-License-Identifier: GPL-2.0
/*
 * Tier specifications.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "spec.h"
#include "unit.h"

#define COUNT(array)	(sizeof(array) / sizeof((array)[0]))

static void test_good(void)
{
	struct tier_spec spec;
	struct spec_error error = { "" };

	CHECK(!spec_parse("dram:name=dram0,size=256M", &spec, &error));
	CHECK(spec.params.type == KVTIER_TIER_DRAM);
	CHECK(spec.params.capacity_bytes == 256ULL << 20);
	CHECK(spec.params.node == -1 && !spec.has_rank);
	CHECK(!strcmp(spec.name, "dram0"));
	CHECK(!spec_parse("node:node=1,size=1G,rank=7", &spec, &error));
	CHECK(spec.params.node == 1 && spec.params.rank == 7 && spec.has_rank);
	CHECK(!spec_parse("dax:dev=/dev/dax1.0", &spec, &error));
	CHECK(!strcmp(spec.path, "dax1.0") && !spec.params.capacity_bytes);
	CHECK(!spec_parse("bdev:path=/dev/nvme0n1,segment=64M", &spec, &error));
	CHECK(!strcmp(spec.path, "/dev/nvme0n1"));
	CHECK(spec.params.segment_bytes == 64 << 20);
}

static void test_bad(void)
{
	static const struct {
		const char *text;
		const char *complaint;
	} cases[] = {
		{ "", "tier type" },
		{ "ssd:path=/dev/x", "tier type" },
		{ "dram", "needs size=" },
		{ "dram:", "KEY=VALUE" },
		{ "dram:size=256M,", "KEY=VALUE" },
		{ "dram:size=0", "not a size" },
		{ "dram:size=lots", "not a size" },
		{ "dram:size=1M,size=2M", "given twice" },
		{ "dram:size=1M,path=/dev/x", "has no 'path'" },
		{ "dram:size=1M,color=red", "has no 'color'" },
		{ "dram:size=1M,name=", "name" },
		{ "dram:size=1M,name=Big", "only a-z" },
		{ "dram:size=1M,name=a/b", "only a-z" },
		{ "dram:size=1M,name=abcdefghijklmnopqrstuvwxyz123456", "1 to 31" },
		{ "dram:size=1M,rank=256", "number from 0 to 255" },
		{ "node:size=1G", "needs node=" },
		{ "node:node=-1,size=1G", "number" },
		{ "dax:name=x", "needs dev=" },
		{ "dax:dev=sda", "not a dax device" },
		{ "dax:dev=dax0.0x", "not a dax device" },
		{ "bdev:name=x", "needs path=" },
		{ "bdev:path=nvme0n1", "not absolute" },
	};
	struct tier_spec spec;
	struct spec_error error = { "" };
	size_t i;

	for (i = 0; i < COUNT(cases); i++) {
		CHECK(spec_parse(cases[i].text, &spec, &error) == -EINVAL, "%s",
		      cases[i].text);
		CHECK(strstr(error.text, cases[i].complaint), "%s: %s",
		      cases[i].text, error.text);
	}
}

static void parse_all(struct tier_spec *specs, const char *const *texts,
		      unsigned int nr)
{
	struct spec_error error = { "" };
	unsigned int i;

	for (i = 0; i < nr; i++)
		CHECK(!spec_parse(texts[i], &specs[i], &error), "%s",
		      error.text);
}

static void test_complete(void)
{
	static const char *const texts[] = {
		"dram:size=1M", "dax:dev=dax0.0", "dax:dev=dax1.0",
		"bdev:path=/dev/a,rank=200", "bdev:path=/dev/b",
		"pmem:dev=dax2.0,segment=4M",
	};
	struct tier_spec specs[COUNT(texts)];
	struct spec_error error = { "" };

	parse_all(specs, texts, COUNT(texts));
	CHECK(!spec_complete(specs, COUNT(texts), NULL, 0, &error));
	CHECK(specs[0].params.rank == 0 && specs[2].params.rank == 2);
	CHECK(specs[3].params.rank == 200 && specs[4].params.rank == 201);
	CHECK(!strcmp(specs[1].params.name, "dax0"));
	CHECK(!strcmp(specs[2].params.name, "dax1"));
	CHECK(!strcmp(specs[4].params.name, "bdev1"));
	CHECK(specs[5].params.rank == 202 && !strcmp(specs[5].params.name, "pmem0"));
	CHECK(specs[5].params.segment_bytes == 4 << 20);
	CHECK(!specs[0].params.path);
	CHECK(!strcmp(specs[3].params.path, "/dev/a"));
}

static void test_behind_others(void)
{
	static const struct kvtier_tier_info taken[] = {
		{ .type = KVTIER_TIER_DRAM, .rank = 0, .name = "dram0" },
		{ .type = KVTIER_TIER_BDEV, .rank = 4, .name = "bdev0" },
	};
	struct tier_spec spec;
	struct spec_error error = { "" };

	CHECK(!spec_parse("bdev:path=/dev/x", &spec, &error));
	CHECK(!spec_complete(&spec, 1, taken, 2, &error));
	CHECK(spec.params.rank == 128 && !strcmp(spec.params.name, "bdev1"));
	CHECK(!spec_parse("dax:dev=dax0.0", &spec, &error));
	CHECK(!spec_complete(&spec, 1, taken, 2, &error));
	CHECK(spec.params.rank == 1);
	CHECK(!spec_parse("dax:dev=dax0.0,rank=5", &spec, &error));
	CHECK(spec_complete(&spec, 1, taken, 2, &error) == -EINVAL);
	CHECK(strstr(error.text, "before block devices"));
	CHECK(!spec_parse("dax:dev=dax0.0,rank=2", &spec, &error));
	CHECK(!spec_complete(&spec, 1, taken, 2, &error));
	CHECK(!spec_parse("dax:dev=dax0.0,rank=4", &spec, &error));
	CHECK(spec_complete(&spec, 1, taken, 2, &error) == -EINVAL);
	CHECK(strstr(error.text, "taken twice"));
}

static void test_order_matters(void)
{
	static const char *const texts[] = {
		"bdev:path=/dev/a,rank=3", "dram:size=1M,rank=4",
	};
	struct tier_spec specs[COUNT(texts)];
	struct spec_error error = { "" };

	parse_all(specs, texts, COUNT(texts));
	CHECK(spec_complete(specs, COUNT(texts), NULL, 0, &error) == -EINVAL);
	CHECK(strstr(error.text, "before block devices"));
}

static const struct unit_test tests[] = {
	{ "tool/spec-good", test_good },
	{ "tool/spec-bad", test_bad },
	{ "tool/spec-complete", test_complete },
	{ "tool/spec-behind-others", test_behind_others },
	{ "tool/spec-order", test_order_matters },
};

UNIT_MAIN(tests)
