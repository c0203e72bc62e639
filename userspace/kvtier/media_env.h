/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gateway of the pure core, the tool's flavour.
 *
 * The tool reads members with the driver's own decoder: driver/core/kvt_format.c and
 * kvt_recover.c are compiled into it, with this force-included in front of them. The
 * include guard is that of driver/core/kvt_env.h, so the core compiles unchanged; the
 * names mean the same as there.
 *
 * The decoder takes no locks and counts nothing atomically: what its headers say of
 * block entries in memory is only there to be compiled.
 */
#ifndef KVT_ENV_H
#define KVT_ENV_H

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <linux/types.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

#define U32_MAX			UINT32_MAX
#define U64_MAX			UINT64_MAX

#define kvt_env_attr(x)		__attribute__((x))
#define __aligned(n)		kvt_env_attr(aligned(n))
#define ____cacheline_aligned_in_smp __aligned(64)
#define static_assert(cond)	_Static_assert(cond, #cond)
#ifndef ARRAY_SIZE
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#endif

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define cpu_to_le16(x)		((u16)(x))
#define cpu_to_le32(x)		((u32)(x))
#define cpu_to_le64(x)		((u64)(x))
#else
#define cpu_to_le16(x)		__builtin_bswap16(x)
#define cpu_to_le32(x)		__builtin_bswap32(x)
#define cpu_to_le64(x)		__builtin_bswap64(x)
#endif
#define le16_to_cpu(x)		cpu_to_le16(x)
#define le32_to_cpu(x)		cpu_to_le32(x)
#define le64_to_cpu(x)		cpu_to_le64(x)

static inline bool is_power_of_2(unsigned long n)
{
	return n && !(n & (n - 1));
}

static inline int ilog2(unsigned long n)
{
	return (int)(8 * sizeof(n)) - 1 - __builtin_clzl(n);
}

static inline u64 div64_u64_rem(u64 n, u64 d, u64 *rem)
{
	*rem = n % d;
	return n / d;
}

/* As in the kernel, both sides must be of one signedness. */
#define kvt_env_signed(x)	((__typeof__(x))-1 < (__typeof__(x))1)
#define kvt_env_cmp(x, y, op)						\
({									\
	_Static_assert(kvt_env_signed(x) == kvt_env_signed(y),		\
		       "min/max of mixed signedness");			\
	__typeof__(x) kvt_x_ = (x);					\
	__typeof__(y) kvt_y_ = (y);					\
	kvt_x_ op kvt_y_ ? kvt_x_ : kvt_y_;				\
})
#define min(x, y)		kvt_env_cmp(x, y, <)
#define max(x, y)		kvt_env_cmp(x, y, >)
#define min_t(type, x, y)	min((type)(x), (type)(y))

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	int held;
} spinlock_t;

static inline int atomic_read(const atomic_t *v)
{
	return v->counter;
}

static inline int atomic_read_acquire(const atomic_t *v)
{
	return v->counter;
}

static inline int atomic_sub_return(int i, atomic_t *v)
{
	return v->counter -= i;
}

static inline bool atomic_try_cmpxchg(atomic_t *v, int *old, int new)
{
	if (v->counter != *old) {
		*old = v->counter;
		return false;
	}
	v->counter = new;
	return true;
}

struct kvt_hash_seed {
	u64 key[2];
};

#include "crc32c.h"

/* Nothing can be switched off here. */
#define kvt_env_broken(what)	(sizeof(#what) == 0)

#endif /* KVT_ENV_H */
