/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gateway of the pure core: everything driver/core takes from its surroundings.
 *
 * The core does no I/O, never sleeps and never allocates; callers hand memory in
 * and hold the locks that the comments name. This is the kernel's flavour. The
 * host harness force-includes its own file with the same include guard and the
 * same names, so that the very same sources run under sanitizers and fuzzers.
 */
#ifndef KVT_ENV_H
#define KVT_ENV_H

#include <linux/types.h>
#include <linux/array_size.h>
#include <linux/atomic.h>
#include <linux/bitmap.h>
#include <linux/bitops.h>
#include <linux/build_bug.h>
#include <linux/cache.h>
#include <linux/crc32c.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/lockdep.h>
#include <linux/log2.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/prefetch.h>
#include <linux/siphash.h>
#include <linux/spinlock.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <asm/byteorder.h>

/*
 * Keyed hash of untrusted bytes, for hash tables only; @seed is random bytes of the
 * pool, which never leave it.
 */
struct kvt_hash_seed {
	hsiphash_key_t key;
};

static __always_inline u64 kvt_env_word(const u8 *p)
{
	u64 word;

	memcpy(&word, p, sizeof(word));
	return word;
}

static __always_inline void kvt_sip_word(u64 v[4], u64 word)
{
	v[3] ^= word;
	SIPHASH_PERMUTATION(v[0], v[1], v[2], v[3]);
	v[0] ^= word;
}

/*
 * hsiphash() of 32 bytes and a word, which is what a block's name has: SipHash-1-3. Written
 * out it costs two thirds of the general one, and every hit pays for it.
 */
static inline u32 kvt_env_hash(const u8 *key, u32 rest, const struct kvt_hash_seed *seed)
{
	const u64 k0 = seed->key.key[0], k1 = seed->key.key[1];
	u64 v[4] = { k0 ^ SIPHASH_CONST_0, k1 ^ SIPHASH_CONST_1, k0 ^ SIPHASH_CONST_2,
		     k1 ^ SIPHASH_CONST_3 };

	kvt_sip_word(v, kvt_env_word(key));
	kvt_sip_word(v, kvt_env_word(key + 8));
	kvt_sip_word(v, kvt_env_word(key + 16));
	kvt_sip_word(v, kvt_env_word(key + 24));
	kvt_sip_word(v, 36ull << 56 | rest);
	v[2] ^= 0xff;
	SIPHASH_PERMUTATION(v[0], v[1], v[2], v[3]);
	SIPHASH_PERMUTATION(v[0], v[1], v[2], v[3]);
	SIPHASH_PERMUTATION(v[0], v[1], v[2], v[3]);
	return (u32)(v[0] ^ v[1] ^ v[2] ^ v[3]);
}

/*
 * The host harness can switch single protections off, to prove that its tests
 * notice. Here none is ever off, and the compiler removes the question.
 */
#define kvt_env_broken(what)	(sizeof(#what) == 0)

#endif /* KVT_ENV_H */
