/* SPDX-License-Identifier: GPL-2.0 */
/*
 * SipHash (Aumasson and Bernstein) with any number of rounds. The kernel's hsiphash()
 * is the lower half of SipHash-1-3 on 64-bit machines; unit_env.c checks 2-4 against the
 * vector in the appendix of the paper.
 */
#ifndef KVT_SIPHASH_H
#define KVT_SIPHASH_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct kvt_siphash_key {
	uint64_t key[2];
};

static inline uint64_t kvt_rol64(uint64_t x, unsigned int bits)
{
	return (x << bits) | (x >> (64 - bits));
}

static inline void kvt_sipround(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = kvt_rol64(v[1], 13) ^ v[0];
	v[3] = kvt_rol64(v[3], 16) ^ v[2];
	v[0] = kvt_rol64(v[0], 32) + v[3];
	v[2] += v[1];
	v[3] = kvt_rol64(v[3], 21) ^ v[0];
	v[1] = kvt_rol64(v[1], 17) ^ v[2];
	v[2] = kvt_rol64(v[2], 32);
}

static inline void kvt_sip_word(uint64_t v[4], uint64_t word, int rounds)
{
	v[3] ^= word;
	while (rounds--)
		kvt_sipround(v);
	v[0] ^= word;
}

static inline uint64_t kvt_siphash(const void *data, size_t len,
				   const struct kvt_siphash_key *key, int word_rounds,
				   int last_rounds)
{
	const uint8_t *p = data;
	uint64_t v[4] = {
		key->key[0] ^ 0x736f6d6570736575ull, key->key[1] ^ 0x646f72616e646f6dull,
		key->key[0] ^ 0x6c7967656e657261ull, key->key[1] ^ 0x7465646279746573ull,
	};
	uint64_t last = (uint64_t)len << 56;
	size_t i;

	for (; len >= 8; len -= 8, p += 8) {
		uint64_t word;

		memcpy(&word, p, sizeof(word));
		kvt_sip_word(v, le64toh(word), word_rounds);
	}
	for (i = 0; i < len; i++)
		last |= (uint64_t)p[i] << (8 * i);
	kvt_sip_word(v, last, word_rounds);
	v[2] ^= 0xff;
	while (last_rounds--)
		kvt_sipround(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif /* KVT_SIPHASH_H */
