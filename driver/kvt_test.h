/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a test build adds, so that the module can be held against the simulator; see
 * kvt_test.c. In any other build there is nothing of it.
 */
#ifndef KVT_TEST_HOOKS_H
#define KVT_TEST_HOOKS_H

#include "kvt_internal.h"

#ifdef CONFIG_KVTIER_TEST
u32 kvt_test_clock_ms(void);
void kvt_test_hash(struct kvt_hash_seed *seed);
u32 kvt_test_capacity(const struct kvt_tier *t);
bool kvt_test_copy_fails(void);
bool kvt_test_copies_fail(void);
u32 kvt_test_handles(void);
bool kvt_test_deaf(void);
u32 kvt_test_most(u32 most);
bool kvt_test_settles(const struct kvt_pool *p);
bool kvt_test_doom_waits(const struct kvt_pool *p);
void kvt_test_held(void);
#else
/* The clock instead of the pool's, or 0. */
static inline u32 kvt_test_clock_ms(void)
{
	return 0;
}

/* Make a hash seed a known one. */
static inline void kvt_test_hash(struct kvt_hash_seed *seed)
{
}

/* Is this copy from memory to end as at a machine check, any context. */
static inline bool kvt_test_copy_fails(void)
{
	return false;
}

/* Will any. */
static inline bool kvt_test_copies_fail(void)
{
	return false;
}

/* Handles that a new record is taken to have had. */
static inline u32 kvt_test_handles(void)
{
	return 0;
}

/* Is what the kernel says of bad pages not to be heard. */
static inline bool kvt_test_deaf(void)
{
	return false;
}

/* How many of something there are in a pool, of which there would be @most. */
static inline u32 kvt_test_most(u32 most)
{
	return most;
}

static inline bool kvt_test_settles(const struct kvt_pool *p)
{
	return false;
}

/* Is what is doomed to stay for the time being. */
static inline bool kvt_test_doom_waits(const struct kvt_pool *p)
{
	return false;
}

/* Waits for as long as batches are to be held back before they are written. May sleep. */
static inline void kvt_test_held(void)
{
}

/* Blocks that a tier is to hold, or 0: what it can. Meta lock held. */
static inline u32 kvt_test_capacity(const struct kvt_tier *t)
{
	return 0;
}
#endif

#endif /* KVT_TEST_HOOKS_H */
