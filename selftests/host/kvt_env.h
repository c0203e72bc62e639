/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gateway of the pure core, user-space flavour.
 *
 * Force-included before every source, with the include guard of
 * driver/core/kvt_env.h, so that the core compiles here unchanged. It gives the
 * same names the same meaning, and makes two things checks that cost nothing in
 * the kernel: a spin lock knows its holder, so lockdep_assert_held() is real in
 * every build; and atomics are compiler builtins, so ThreadSanitizer sees them.
 */
#ifndef KVT_ENV_H
#define KVT_ENV_H

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

typedef u16 __le16;
typedef u32 __le32;
typedef u64 __le64;

#define U8_MAX			UINT8_MAX
#define U16_MAX			UINT16_MAX
#define U32_MAX			UINT32_MAX
#define U64_MAX			UINT64_MAX

#define kvt_env_attr(x)		__attribute__((x))
#define noinline		kvt_env_attr(noinline)
#define __aligned(n)		kvt_env_attr(aligned(n))
#define ____cacheline_aligned_in_smp __aligned(64)
#define BUILD_BUG_ON(cond)	_Static_assert(!(cond), "BUILD_BUG_ON: " #cond)
#define static_assert(cond)	_Static_assert(cond, #cond)
#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))

static inline u64 div64_u64(u64 n, u64 d)
{
	return n / d;
}

static inline u64 div64_u64_rem(u64 n, u64 d, u64 *rem)
{
	*rem = n % d;
	return n / d;
}

static inline void prefetch(const void *mem)
{
	__builtin_prefetch(mem);
}

static inline int fls(unsigned int x)
{
	return x ? 32 - __builtin_clz(x) : 0;
}

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
#define clamp(v, lo, hi)	min(max(v, lo), hi)
#define min_t(type, x, y)	min((type)(x), (type)(y))

#define READ_ONCE(x)		__atomic_load_n(&(x), __ATOMIC_RELAXED)
#define WRITE_ONCE(x, v)	__atomic_store_n(&(x), (v), __ATOMIC_RELAXED)
/* Barriers of C11 instead of the kernel's: the same for what the core does. */
#define smp_load_acquire(p)	__atomic_load_n((p), __ATOMIC_ACQUIRE)
/* Pairs with smp_load_acquire() */
#define smp_store_release(p, v)	__atomic_store_n((p), (v), __ATOMIC_RELEASE)

typedef struct {
	int counter;
} atomic_t;

static inline int atomic_read(const atomic_t *v)
{
	return __atomic_load_n(&v->counter, __ATOMIC_RELAXED);
}

static inline int atomic_read_acquire(const atomic_t *v)
{
	return __atomic_load_n(&v->counter, __ATOMIC_ACQUIRE);
}

static inline void atomic_set(atomic_t *v, int i)
{
	__atomic_store_n(&v->counter, i, __ATOMIC_RELAXED);
}

static inline void atomic_set_release(atomic_t *v, int i)
{
	__atomic_store_n(&v->counter, i, __ATOMIC_RELEASE);
}

static inline int atomic_add_return(int i, atomic_t *v)
{
	return __atomic_add_fetch(&v->counter, i, __ATOMIC_SEQ_CST);
}

static inline int atomic_sub_return(int i, atomic_t *v)
{
	return __atomic_sub_fetch(&v->counter, i, __ATOMIC_SEQ_CST);
}

static inline void atomic_add(int i, atomic_t *v)
{
	__atomic_fetch_add(&v->counter, i, __ATOMIC_SEQ_CST);
}

static inline void atomic_sub(int i, atomic_t *v)
{
	__atomic_fetch_sub(&v->counter, i, __ATOMIC_SEQ_CST);
}

/* They are in order; sanitizers know of no fence. */
#define smp_mb__after_atomic()	do { } while (0)

static inline bool atomic_try_cmpxchg(atomic_t *v, int *old, int new)
{
	return __atomic_compare_exchange_n(&v->counter, old, new, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

#define try_cmpxchg(p, old, new)					\
	__atomic_compare_exchange_n((p), (old), (new), false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)

#define KVT_ENV_WORD_BITS	(8 * sizeof(unsigned long))

static inline bool test_bit(unsigned long nr, const unsigned long *words)
{
	return READ_ONCE(words[nr / KVT_ENV_WORD_BITS]) >> nr % KVT_ENV_WORD_BITS & 1;
}

static inline bool test_and_set_bit(unsigned long nr, unsigned long *words)
{
	unsigned long bit = 1ul << nr % KVT_ENV_WORD_BITS;

	return __atomic_fetch_or(&words[nr / KVT_ENV_WORD_BITS], bit, __ATOMIC_SEQ_CST) & bit;
}

_Noreturn static inline void kvt_env_die(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: %s\n", file, line, what);
	abort();
}

/* @holder: address of the holding thread's marker, 0: not held. */
typedef struct {
	uintptr_t holder;
} spinlock_t;

/* Its address names the thread. One for all sources that include this. */
#pragma weak kvt_env_marker
__thread char kvt_env_marker;

static inline uintptr_t kvt_env_self(void)
{
	return (uintptr_t)&kvt_env_marker;
}

static inline void spin_lock_init(spinlock_t *l)
{
	__atomic_store_n(&l->holder, 0, __ATOMIC_RELAXED);
}

static inline bool spin_is_mine(const spinlock_t *l)
{
	return __atomic_load_n(&l->holder, __ATOMIC_RELAXED) == kvt_env_self();
}

static inline void spin_lock(spinlock_t *l)
{
	uintptr_t nobody = 0;

	if (spin_is_mine(l))
		kvt_env_die(__FILE__, __LINE__, "lock taken twice");
	while (!__atomic_compare_exchange_n(&l->holder, &nobody, kvt_env_self(), false,
					    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		nobody = 0;
		sched_yield();
	}
}

static inline void spin_unlock(spinlock_t *l)
{
	if (!spin_is_mine(l))
		kvt_env_die(__FILE__, __LINE__, "unlock of a lock that is not held");
	__atomic_store_n(&l->holder, 0, __ATOMIC_RELEASE);
}

#define lockdep_assert_held(l)						\
do {									\
	if (!spin_is_mine(l))						\
		kvt_env_die(__FILE__, __LINE__, "not held: " #l);	\
} while (0)

#include "siphash.h"

struct kvt_hash_seed {
	struct kvt_siphash_key key;
};

static inline u32 kvt_env_hash(const u8 *key, u32 rest, const struct kvt_hash_seed *seed)
{
	u8 name[36];

	memcpy(name, key, 32);
	memcpy(name + 32, &rest, sizeof(rest));
	return (u32)kvt_siphash(name, sizeof(name), &seed->key, 1, 3);
}

#include "crc32c.h"

/*
 * Protections that can be switched off here, and only here, to see the tests
 * notice. See crash_main.c.
 */
enum kvt_env_break {
	KVT_BREAK_NONE = 0,
	KVT_BREAK_PAYLOAD_SUM,	/* recovery believes payloads unread */
	KVT_BREAK_FOOTER_FLUSH,	/* a footer is written with no flush before it */
	KVT_BREAK_LIFE,		/* any footer or batch is taken for the segment's life */
	KVT_BREAK_FOOTER_LIFE,	/* any footer is, batches are not */
	KVT_BREAK_REUSE,	/* a segment is reused before its end is durable */
	KVT_BREAK_CARRY_KILLS,	/* kills go with the segment that holds them */
	KVT_BREAK_SUPER_FLUSH,	/* a superblock is written with no flush before it */
	KVT_BREAK_PREFIX,	/* durable although an earlier batch is not */
	KVT_BREAK_SUPER_ZONE,	/* a full zone of superblocks is reset to go on in it */
	KVT_BREAK_SYNC,		/* fsync is no more than a fence */
	KVT_BREAK_FENCE,	/* a fence passes before the kills are durable */
	KVT_BREAK_CYCLES,	/* cycles of parents are left */
	KVT_BREAK_NS_NOW,	/* namespaces are carried as they were, by who ends a segment */
	KVT_BREAK_NS_HOME,	/* a definition counts before it is durable */
	KVT_BREAK_NS_FIRST,	/* the end of a namespace forgets where it was first defined */
	KVT_BREAK_NR,
};

#pragma weak kvt_env_break
int kvt_env_break;
#define kvt_env_broken(what)	(kvt_env_break == KVT_BREAK_##what)

#endif /* KVT_ENV_H */
