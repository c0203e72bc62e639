// SPDX-License-Identifier: GPL-2.0
/*
 * Text that others have written, for terminals and for JSON; see cmd.h.
 *
 * A character is printable if it is well-formed UTF-8 and no control character; those of
 * C1 (U+0080 to U+009F) are such, too, in a terminal of 8 bits as in one of UTF-8.
 */
#include <stdlib.h>
#include <string.h>
#include "cmd.h"

#define ESCAPED	4	/* "\xNN" */

/* Bytes of the well-formed character at @s, which is not at the end; 0 if it is none. */
static size_t utf8_len(const unsigned char *s)
{
	/* What the second byte may be keeps out long forms, surrogates, and what is too large. */
	unsigned char low = 0x80, high = 0xbf;
	size_t i, len;

	if (*s < 0x80)
		return 1;
	if (*s < 0xc2 || *s > 0xf4)
		return 0;
	len = *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : 4;
	if (*s == 0xe0)
		low = 0xa0;
	else if (*s == 0xed)
		high = 0x9f;
	else if (*s == 0xf0)
		low = 0x90;
	else if (*s == 0xf4)
		high = 0x8f;
	if (s[1] < low || s[1] > high)
		return 0;
	for (i = 2; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

static bool is_control(const unsigned char *s)
{
	return *s < 0x20 || *s == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0);
}

/* Printable bytes that @s begins with. */
static size_t plain_len(const char *s)
{
	const unsigned char *at = (const unsigned char *)s;
	size_t len;

	while (*at && !is_control(at)) {
		len = utf8_len(at);
		if (!len)
			break;
		at += len;
	}
	return (size_t)(at - (const unsigned char *)s);
}

void cmd_puts(FILE *file, const char *text)
{
	size_t len;

	for (;;) {
		len = plain_len(text);
		fwrite(text, 1, len, file);
		text += len;
		if (!*text)
			return;
		fprintf(file, "\\x%02x", (unsigned char)*text++);
	}
}

size_t cmd_puts_len(const char *text)
{
	size_t len, all = 0;

	for (;;) {
		len = plain_len(text);
		all += len;
		text += len;
		if (!*text)
			return all;
		all += ESCAPED;
		text++;
	}
}

struct json_object *cmd_string(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	struct json_object *string;
	char *clean, *to;
	size_t len;

	while (*at && utf8_len(at))
		at += utf8_len(at);
	if (!*at)
		return json_object_new_string(text);
	clean = to = malloc(ESCAPED * strlen(text) + 1);
	if (!clean)
		return NULL;
	for (at = (const unsigned char *)text; *at; at += len ? len : 1) {
		len = utf8_len(at);
		if (len) {
			memcpy(to, at, len);
			to += len;
		} else {
			to += sprintf(to, "\\x%02x", *at);
		}
	}
	*to = 0;
	string = json_object_new_string(clean);
	free(clean);
	return string;
}
