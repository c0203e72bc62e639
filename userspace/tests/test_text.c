// SPDX-License-Identifier: GPL-2.0
/*
 * Text that others have written, as it is printed and put into JSON.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include "cmd.h"
#undef ARRAY_SIZE
#include "unit.h"

static const struct {
	const char *text, *printed, *json;
} cases[] = {
	{ "", "", "" },
	{ "plain ~ text", "plain ~ text", "plain ~ text" },
	{ "\x1b]0;owned\x07", "\\x1b]0;owned\\x07", "\x1b]0;owned\x07" },
	{ "a\nb\tc\x7f", "a\\x0ab\\x09c\\x7f", "a\nb\tc\x7f" },
	/* C1, in 8 bits and in UTF-8. */
	{ "\23331m", "\\x9b31m", "\\x9b31m" },
	{ "\302\23331m", "\\xc2\\x9b31m", "\302\23331m" },
	{ "\xc2\xa0", "\xc2\xa0", "\xc2\xa0" },
	{ "h\xc3\xbcl\xe2\x82\xac\xf0\x9f\x90\xa7.", "h\xc3\xbcl\xe2\x82\xac\xf0\x9f\x90\xa7.",
	  "h\xc3\xbcl\xe2\x82\xac\xf0\x9f\x90\xa7." },
	/* Latin 1, cut short, long forms, a surrogate, beyond the last. */
	{ "h\xfcl", "h\\xfcl", "h\\xfcl" },
	{ "\xe2\x82", "\\xe2\\x82", "\\xe2\\x82" },
	{ "\xf0\x9f\x90", "\\xf0\\x9f\\x90", "\\xf0\\x9f\\x90" },
	{ "\xc0\x9b", "\\xc0\\x9b", "\\xc0\\x9b" },
	{ "\xe0\x82\x9b", "\\xe0\\x82\\x9b", "\\xe0\\x82\\x9b" },
	{ "\xf0\x80\x82\x9b", "\\xf0\\x80\\x82\\x9b", "\\xf0\\x80\\x82\\x9b" },
	{ "\xed\xa0\x80", "\\xed\\xa0\\x80", "\\xed\\xa0\\x80" },
	{ "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80", "\\xf4\\x90\\x80\\x80" },
	{ "\xef\xbf\xbd\xff", "\xef\xbf\xbd\\xff", "\xef\xbf\xbd\\xff" },
};

static void test_print(void)
{
	char *printed;
	size_t len;
	bool same;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		FILE *file = open_memstream(&printed, &len);

		if (!file)
			abort();
		cmd_puts(file, cases[i].text);
		fclose(file);
		same = !strcmp(printed, cases[i].printed);
		free(printed);
		CHECK(same && cmd_puts_len(cases[i].text) == len, "%zu", i);
	}
}

static void test_json(void)
{
	struct json_object *string;
	bool same;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		string = cmd_string(cases[i].text);
		same = !strcmp(json_object_get_string(string), cases[i].json);
		json_object_put(string);
		CHECK(same, "%zu", i);
	}
}

static const struct unit_test tests[] = {
	{ "tool/text-print", test_print },
	{ "tool/text-json", test_json },
};

UNIT_MAIN(tests)
