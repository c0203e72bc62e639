// SPDX-License-Identifier: GPL-2.0
/*
 * What a block holds.
 *
 * Each 4 KiB page is an xorshift stream of its own, started from the key and the
 * page's number: cheap to make (memory is to be the limit, not this), no two
 * pages of any two blocks alike, and a page in the middle can be checked without
 * what is before it. Words are little-endian on every machine.
 */
#include <endian.h>
#include <string.h>

#include "replay_data.h"
#include "trace.h"

#define PAGE_BYTES	4096
#define SAMPLE_BYTES	64

static uint64_t key_seed(const uint8_t *key)
{
	uint64_t seed = 0, word;

	for (unsigned int i = 0; i < TRACE_KEY_BYTES; i += 8) {
		memcpy(&word, key + i, 8);
		seed = trace_mix64(seed ^ le64toh(word)) + i;
	}
	return seed;
}

/* Never 0, where an xorshift stream would stay. */
static uint64_t page_state(uint64_t seed, uint64_t page)
{
	return trace_mix64(seed + page * 0x9e3779b97f4a7c15ULL) | 1;
}

static inline uint64_t step(uint64_t x)
{
	x ^= x << 13;
	x ^= x >> 7;
	return x ^ (x << 17);
}

void replay_data_fill(const uint8_t *key, void *to, size_t bytes)
{
	uint64_t seed = key_seed(key);
	uint8_t *out = to;

	for (uint64_t page = 0; bytes; page++) {
		size_t left = bytes < PAGE_BYTES ? bytes : PAGE_BYTES;
		uint64_t x = page_state(seed, page), word;

		bytes -= left;
		for (; left >= 8; left -= 8, out += 8) {
			x = step(x);
			word = htole64(x);
			memcpy(out, &word, 8);
		}
		word = htole64(step(x));
		memcpy(out, &word, left);
		out += left;
	}
}

static void note(struct replay_wrong *w, uint64_t offset, uint64_t want, uint64_t got)
{
	uint64_t diff = want ^ got;

	if (!w->wrong_bytes) {
		w->offset_bytes = offset;
		w->want = want;
		w->got = got;
	}
	for (; diff; diff >>= 8)
		w->wrong_bytes += (diff & 0xff) != 0;
}

/* Compares @check bytes from the start of a page. */
static void verify_page(uint64_t state, const uint8_t *in, uint64_t offset,
			size_t check, struct replay_wrong *w)
{
	uint64_t x = state, word;
	size_t at = 0;

	for (; at + 8 <= check; at += 8) {
		x = step(x);
		memcpy(&word, in + at, 8);
		if (__builtin_expect(le64toh(word) != x, 0))
			note(w, offset + at, x, le64toh(word));
	}
	if (at < check) {
		uint64_t mask = (1ULL << (8 * (check - at))) - 1;

		x = step(x) & mask;
		word = 0;
		memcpy(&word, in + at, check - at);
		if (le64toh(word) != x)
			note(w, offset + at, x, le64toh(word));
	}
}

bool replay_data_verify(const uint8_t *key, const void *block, size_t bytes,
			bool full, uint64_t *checked, struct replay_wrong *wrong)
{
	uint64_t seed = key_seed(key);

	*checked = 0;
	memset(wrong, 0, sizeof(*wrong));
	for (size_t offset = 0; offset < bytes; offset += PAGE_BYTES) {
		size_t left = bytes - offset;
		size_t check = left < PAGE_BYTES ? left : PAGE_BYTES;

		/* The last page is looked at as a whole: it has the tail. */
		if (!full && check > SAMPLE_BYTES && left > PAGE_BYTES)
			check = SAMPLE_BYTES;
		verify_page(page_state(seed, offset / PAGE_BYTES),
			    (const uint8_t *)block + offset, offset, check, wrong);
		*checked += check;
	}
	return !wrong->wrong_bytes;
}
