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

static inline u32 kvt_env_hash(const void *data, size_t len,
			       const struct kvt_hash_seed *seed)
{
	return hsiphash(data, len, &seed->key);
}

/*
 * The host harness can switch single protections off, to prove that its tests
 * notice. Here none is ever off, and the compiler removes the question.
 */
#define kvt_env_broken(what)	(sizeof(#what) == 0)

#endif /* KVT_ENV_H */
