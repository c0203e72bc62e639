// SPDX-License-Identifier: GPL-2.0
/*
 * Arguments: numbers with units, pools, keys.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sha2.h>
#include "cmd.h"

struct unit {
	const char *name;
	uint64_t factor;
};

/* "12" or "12.5", times what the unit says; fractions of one are dropped. */
static int parse_scaled(const char *text, const struct unit *units,
			uint64_t *out)
{
	uint64_t whole, fraction = 0, scale = 1;
	const struct unit *unit;
	char *end;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	whole = strtoull(text, &end, 10);
	if (errno)
		return -ERANGE;
	if (*end == '.') {
		for (end++; isdigit((unsigned char)*end); end++) {
			if (scale >= 1000000000)
				continue;
			fraction = fraction * 10 + (uint64_t)(*end - '0');
			scale *= 10;
		}
		if (scale == 1)
			return -EINVAL;
	}
	for (unit = units; unit->name; unit++)
		if (!strcasecmp(end, unit->name))
			break;
	if (!unit->name)
		return -EINVAL;
	if (__builtin_mul_overflow(whole, unit->factor, &whole))
		return -ERANGE;
	fraction = (uint64_t)((__uint128_t)fraction * unit->factor /
			      scale);
	if (__builtin_add_overflow(whole, fraction, &whole))
		return -ERANGE;
	*out = whole;
	return 0;
}

int cmd_parse_bytes(const char *text, uint64_t *bytes)
{
	static const struct unit units[] = {
		{ "", 1 }, { "B", 1 },
		{ "K", 1ULL << 10 }, { "KB", 1ULL << 10 },
		{ "KiB", 1ULL << 10 },
		{ "M", 1ULL << 20 }, { "MB", 1ULL << 20 },
		{ "MiB", 1ULL << 20 },
		{ "G", 1ULL << 30 }, { "GB", 1ULL << 30 },
		{ "GiB", 1ULL << 30 },
		{ "T", 1ULL << 40 }, { "TB", 1ULL << 40 },
		{ "TiB", 1ULL << 40 },
		{ "P", 1ULL << 50 }, { "PB", 1ULL << 50 },
		{ "PiB", 1ULL << 50 },
		{ NULL, 0 },
	};

	return parse_scaled(text, units, bytes);
}

int cmd_parse_duration(const char *text, uint64_t *ns)
{
	static const struct unit units[] = {
		{ "", 1000000000 }, { "s", 1000000000 }, { "ns", 1 },
		{ "us", 1000 }, { "ms", 1000000 }, { "m", 60000000000ULL },
		{ "h", 3600000000000ULL }, { NULL, 0 },
	};

	return parse_scaled(text, units, ns);
}

int cmd_parse_u64(const char *text, uint64_t max, uint64_t *value)
{
	bool hex = !strncasecmp(text, "0x", 2);
	uint64_t n;
	char *end;

	if (!isxdigit((unsigned char)text[hex ? 2 : 0]))
		return -EINVAL;
	errno = 0;
	n = strtoull(text, &end, hex ? 16 : 10);
	if (errno)
		return -ERANGE;
	if (end == text || *end)
		return -EINVAL;
	if (n > max)
		return -ERANGE;
	*value = n;
	return 0;
}

int cmd_parse_pool(const char *text, uint32_t *pool_id)
{
	uint64_t id;
	int ret;

	if (!strncmp(text, "/dev/", 5))
		text += 5;
	if (!strncmp(text, "kvtier", 6))
		text += 6;
	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	ret = cmd_parse_u64(text, UINT32_MAX - 1, &id);
	if (!ret)
		*pool_id = (uint32_t)id;
	return ret;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int cmd_parse_key(const char *text, struct kvtier_key *key)
{
	struct kvtier_key out;
	int i, high, low;

	if (strlen(text) != 2 * KVTIER_KEY_BYTES)
		return -EINVAL;
	for (i = 0; i < KVTIER_KEY_BYTES; i++) {
		high = hex_digit(text[2 * i]);
		low = hex_digit(text[2 * i + 1]);
		if (high < 0 || low < 0)
			return -EINVAL;
		out.b[i] = (uint8_t)(high << 4 | low);
	}
	*key = out;
	return 0;
}

void cmd_hash_key(const char *text, struct kvtier_key *key)
{
	SHA2_CTX ctx;

	_Static_assert(KVTIER_KEY_BYTES == SHA256_DIGEST_LENGTH, "key");
	SHA256Init(&ctx);
	SHA256Update(&ctx, (const uint8_t *)text, strlen(text));
	SHA256Final(key->b, &ctx);
}

void cmd_format_key(const uint8_t *key,
		    char hex[static 2 * KVTIER_KEY_BYTES + 1])
{
	static const char digits[] = "0123456789abcdef";
	int i;

	for (i = 0; i < KVTIER_KEY_BYTES; i++) {
		hex[2 * i] = digits[key[i] >> 4];
		hex[2 * i + 1] = digits[key[i] & 15];
	}
	hex[2 * KVTIER_KEY_BYTES] = 0;
}
