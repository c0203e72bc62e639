// SPDX-License-Identifier: GPL-2.0
/*
 * Arguments with units, keys, human numbers.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include "cmd.h"
#include "unit.h"

static void test_bytes(void)
{
	static const struct {
		const char *text;
		int ret;
		uint64_t bytes;
	} cases[] = {
		{ "0", 0, 0 }, { "4096", 0, 4096 }, { "64K", 0, 65536 },
		{ "64k", 0, 65536 }, { "64KiB", 0, 65536 },
		{ "64KB", 0, 65536 }, { "2M", 0, 2 << 20 },
		{ "1.5G", 0, 3ULL << 29 }, { "1T", 0, 1ULL << 40 },
		{ "0.5K", 0, 512 }, { "7B", 0, 7 },
		{ "1.9999999999999999999999K", 0, 2047 },
		{ "18446744073709551615", 0, UINT64_MAX },
		{ "18446744073709551616", -ERANGE, 0 },
		{ "16777216T", -ERANGE, 0 }, { "16384P", -ERANGE, 0 },
		{ "", -EINVAL, 0 }, { "K", -EINVAL, 0 }, { "-1", -EINVAL, 0 },
		{ "+1", -EINVAL, 0 }, { " 1", -EINVAL, 0 },
		{ "1 K", -EINVAL, 0 }, { "1KK", -EINVAL, 0 },
		{ "1.K", -EINVAL, 0 }, { ".5K", -EINVAL, 0 },
		{ "0x10", -EINVAL, 0 }, { "1e3", -EINVAL, 0 },
		{ "nan", -EINVAL, 0 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t bytes = 42;
		int ret = cmd_parse_bytes(cases[i].text, &bytes);

		CHECK(ret == cases[i].ret, "%s: %d", cases[i].text, ret);
		CHECK(bytes == (ret ? 42 : cases[i].bytes), "%s",
		      cases[i].text);
	}
}

static void test_duration(void)
{
	uint64_t ns = 1;

	CHECK(!cmd_parse_duration("250ms", &ns) && ns == 250000000);
	CHECK(!cmd_parse_duration("10", &ns) && ns == 10000000000ULL);
	CHECK(!cmd_parse_duration("1.5s", &ns) && ns == 1500000000);
	CHECK(!cmd_parse_duration("2m", &ns) && ns == 120000000000ULL);
	CHECK(!cmd_parse_duration("40ns", &ns) && ns == 40);
	CHECK(cmd_parse_duration("10d", &ns) == -EINVAL);
	CHECK(cmd_parse_duration("-1s", &ns) == -EINVAL && ns == 40);
}

static void test_numbers(void)
{
	uint64_t value = 7;
	uint32_t pool = 9;

	CHECK(!cmd_parse_u64("255", 255, &value) && value == 255);
	CHECK(!cmd_parse_u64("0x1F", 255, &value) && value == 31);
	CHECK(cmd_parse_u64("256", 255, &value) == -ERANGE);
	CHECK(cmd_parse_u64("1x", 255, &value) == -EINVAL);
	CHECK(cmd_parse_u64("", 255, &value) == -EINVAL);
	CHECK(cmd_parse_u64("a", 255, &value) == -EINVAL);
	CHECK(cmd_parse_u64("0x", 255, &value) == -EINVAL);
	CHECK(cmd_parse_u64("-1", UINT64_MAX, &value) == -EINVAL);
	CHECK(value == 31);
	CHECK(!cmd_parse_pool("3", &pool) && pool == 3);
	CHECK(!cmd_parse_pool("kvtier4", &pool) && pool == 4);
	CHECK(!cmd_parse_pool("/dev/kvtier5", &pool) && pool == 5);
	CHECK(cmd_parse_pool("kvtier", &pool) == -EINVAL);
	CHECK(cmd_parse_pool("/dev/sda", &pool) == -EINVAL && pool == 5);
}

static void test_keys(void)
{
	/* SHA-256 of the empty string and of "abc", from FIPS 180. */
	static const char empty[] =
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
	static const char abc[] =
		"BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD";
	struct kvtier_key key, hashed;
	char hex[2 * KVTIER_KEY_BYTES + 1];

	CHECK(!cmd_parse_key(empty, &key));
	cmd_hash_key("", &hashed);
	CHECK(!memcmp(&key, &hashed, sizeof(key)));
	cmd_format_key(key.b, hex);
	CHECK(!strcmp(hex, empty));
	CHECK(!cmd_parse_key(abc, &key));
	cmd_hash_key("abc", &hashed);
	CHECK(!memcmp(&key, &hashed, sizeof(key)));
	CHECK(cmd_parse_key("12", &key) == -EINVAL);
	memcpy(hex, empty, sizeof(hex));
	hex[63] = 'g';
	CHECK(cmd_parse_key(hex, &key) == -EINVAL);
	CHECK(!memcmp(&key, &hashed, sizeof(key)));
}

static void test_human(void)
{
	char buf[CMD_HUMAN_MAX];

	CHECK(!strcmp(cmd_human_bytes(0, buf), "0"));
	CHECK(!strcmp(cmd_human_bytes(1023, buf), "1023"));
	CHECK(!strcmp(cmd_human_bytes(1024, buf), "1K"));
	CHECK(!strcmp(cmd_human_bytes(1536, buf), "1.5K"));
	CHECK(!strcmp(cmd_human_bytes(1048575, buf), "1M"));
	CHECK(!strcmp(cmd_human_bytes(256 << 20, buf), "256M"));
	CHECK(!strcmp(cmd_human_bytes(3ULL << 29, buf), "1.5G"));
	CHECK(!strcmp(cmd_human_bytes(UINT64_MAX, buf), "16E"));
	CHECK(!strcmp(cmd_human_ns(0, buf), "0ns"));
	CHECK(!strcmp(cmd_human_ns(12345, buf), "12.35us") ||
	      !strcmp(buf, "12.34us"));
	CHECK(!strcmp(cmd_human_ns(2000000, buf), "2ms"));
	CHECK(!strcmp(cmd_human_ns(123456789012ULL, buf), "123.5s"));
	CHECK(!strcmp(cmd_human_ns(UINT64_MAX, buf), "18446744074s"));
}

static const struct unit_test tests[] = {
	{ "tool/parse-bytes", test_bytes },
	{ "tool/parse-duration", test_duration },
	{ "tool/parse-numbers", test_numbers },
	{ "tool/parse-keys", test_keys },
	{ "tool/human-numbers", test_human },
};

UNIT_MAIN(tests)
