// SPDX-License-Identifier: GPL-2.0
/*
 * What is taken from the trace of devices' poison lists.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "poison.h"
#include "unit.h"

/* A line of the trace with what varies in it. */
static int add(struct poison_list *list, const struct poison_region *region, const char *of,
	       unsigned long long hpa, const char *length, const char *flags)
{
	char line[512];

	snprintf(line, sizeof(line),
		 "  tool-77 [001] .....  50.000001: cxl_poison: memdev=mem1 host=0000:0e:00.0 "
		 "serial=2 trace_type=List region=%s region_uuid=0 hpa=%#llx dpa=0x1040 "
		 "dpa_length=%s source=Injected flags=%s overflow_time=0\n",
		 of, hpa, length, flags);
	return poison_add_line(list, region, line);
}

static const struct poison_region one = { .name = "region1", .start = 0x100000000, .ways = 1,
					  .granularity = 256 };

static void test_lines(void)
{
	struct poison_list list = { 0 };

	CHECK(!poison_add_line(&list, &one, "# tracer: nop\n"));
	CHECK(!add(&list, &one, "region1", 0x100001040, "0x80", ""));
	CHECK(list.nr == 1 && list.ranges[0].start == 0x100001040 && list.ranges[0].bytes == 0x80);
	/* Another region's, none's, nowhere, without a length, no number, and cut short. */
	CHECK(!add(&list, &one, "region10", 0x100001040, "0x40", ""));
	CHECK(!add(&list, &one, "", ~0ull, "0x40", ""));
	CHECK(!add(&list, &one, "region1", ~0ull, "0x40", ""));
	CHECK(!add(&list, &one, "region1", 0x100001040, "0x0", ""));
	CHECK(!add(&list, &one, "region1", 0x100001040, "0xzz", ""));
	CHECK(!poison_add_line(&list, &one, " cxl_poison: region=region1"));
	CHECK(list.nr == 1 && !list.incomplete);
	CHECK(!add(&list, &one, "region1", 0x100003000, "0x40", "Overflow"));
	CHECK(list.nr == 2 && list.incomplete);
	poison_free(&list);
	CHECK(!list.nr && !list.ranges);
}

/* Two devices, 4 KiB at a time: stripes of 8 KiB. */
static void test_interleaved(void)
{
	const struct poison_region two = { .name = "region1", .start = 0x100000000, .ways = 2,
					   .granularity = 4096 };
	struct poison_list list = { 0 };

	CHECK(!add(&list, &two, "region1", 0x100003040, "0x40", ""));
	CHECK(list.ranges[0].start == 0x100002000 && list.ranges[0].bytes == 0x2000);
	/* Up to the end of one part, and over it. */
	CHECK(!add(&list, &two, "region1", 0x100004040, "0xfc0", ""));
	CHECK(list.ranges[1].start == 0x100004000 && list.ranges[1].bytes == 0x2000);
	CHECK(!add(&list, &two, "region1", 0x100004040, "0x1000", ""));
	CHECK(list.ranges[2].start == 0x100004000 && list.ranges[2].bytes == 0x4000);
	poison_free(&list);
}

static void test_too_many(void)
{
	struct poison_list list = { 0 };
	int i, ret = 0;

	for (i = 0; i < KVTIER_BAD_MAX && !ret; i++)
		ret = add(&list, &one, "region1", 0x100001000, "0x40", "");
	CHECK(!ret);
	CHECK(add(&list, &one, "region1", 0x100001000, "0x40", "") == -E2BIG);
	poison_free(&list);
}

static const struct unit_test tests[] = {
	{ "tool/poison-lines", test_lines },
	{ "tool/poison-interleaved", test_interleaved },
	{ "tool/poison-too-many", test_too_many },
};

UNIT_MAIN(tests)
