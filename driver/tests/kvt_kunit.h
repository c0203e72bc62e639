/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the core's tests.
 *
 * The sources here are ordinary KUnit tests. They also compile in user space,
 * where selftests/host supplies <kunit/test.h> and the gateway header: every
 * property is written once and runs in a kernel and under sanitizers.
 */
#ifndef KVT_KUNIT_H
#define KVT_KUNIT_H

#include <kunit/test.h>

#include "../core/kvt_block.h"
#include "../core/kvt_policy.h"

/* Seeded, so that a failure can be had again. */
static inline u32 kvt_test_random(u64 *state)
{
	u64 z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (u32)((z ^ (z >> 31)) >> 16);
}

/* A table of @chunks chunks that goes with the test. */
static inline struct kvt_table *kvt_test_table(struct kunit *test, u32 chunks)
{
	struct kvt_table *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	struct kvt_cold **colds, *cold;
	struct kvt_hot **hots, *hot;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, t);
	hots = kunit_kzalloc(test, chunks * sizeof(*hots), GFP_KERNEL);
	colds = kunit_kzalloc(test, chunks * sizeof(*colds), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, hots);
	KUNIT_ASSERT_NOT_NULL(test, colds);
	kvt_table_init(t, hots, colds, chunks);
	for (i = 0; i < chunks; i++) {
		hot = kunit_kzalloc(test, KVT_CHUNK_BLOCKS * sizeof(*hot), GFP_KERNEL);
		cold = kunit_kzalloc(test, KVT_CHUNK_BLOCKS * sizeof(*cold), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, hot);
		KUNIT_ASSERT_NOT_NULL(test, cold);
		KUNIT_ASSERT_EQ(test, kvt_table_add_chunk(t, hot, cold), 0);
	}
	return t;
}

/* A block in some state, on no list and in no index. */
static inline u32 kvt_test_block(struct kunit *test, struct kvt_table *t, u32 ctl)
{
	u32 id = kvt_table_alloc(t);

	KUNIT_ASSERT_NE(test, id, KVT_NIL);
	atomic_set(&kvt_hot(t, id)->ctl, (int)ctl);
	return id;
}

/* The only namespace's. */
static inline struct kvt_mind *kvt_test_mind(struct kunit *test, struct kvt_policy *p)
{
	p->only = kunit_kzalloc(test, sizeof(*p->only), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, p->only);
	kvt_mind_init(p->only);
	return p->only;
}

#endif /* KVT_KUNIT_H */
