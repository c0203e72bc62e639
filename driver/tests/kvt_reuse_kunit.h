/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tests of the policy "reuse": chains of blocks on one tier, and requests for them.
 */
#ifndef KVT_REUSE_KUNIT_H
#define KVT_REUSE_KUNIT_H

#include "kvt_kunit.h"
#include "../core/kvt_chain.h"
#include "../core/kvt_policy_request.h"

#define TIER	2
#define MINUTE	60000u

/**
 * struct fixture - a policy and what it knows
 * @p:    policy
 * @t:    its blocks
 * @mind: what was learned of single namespaces, for tests that have several
 * @nr:   blocks so far
 * @ns:   whose the next ones are
 */
struct fixture {
	struct kvt_policy p;
	struct kvt_table *t;
	struct kvt_mind *mind[2];
	u32 nr;
	u32 ns;
};

static inline struct fixture *setup(struct kunit *test)
{
	struct fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->t = kvt_test_table(test, 1);
	kvt_policy_init(&f->p, &kvt_policy_reuse, f->t);
	kvt_test_mind(test, &f->p);
	f->p.now_ms = 1000;
	return f;
}

/* @nr new blocks under @parent, the last one's id. */
static inline u32 grow(struct kunit *test, struct fixture *f, u32 parent, u32 nr)
{
	u32 id;

	for (; nr--; parent = id) {
		id = kvt_test_block(test, f->t, KVT_READY | KVT_CTL_MEM);
		kvt_hot(f->t, id)->mem_tier = TIER;
		kvt_hot(f->t, id)->hash = ++f->nr * 2654435761u;
		kvt_hot(f->t, id)->ns_group = kvt_ns_group(f->ns, 0);
		kvt_cold(f->t, id)->touch_ms = f->p.now_ms;
		if (parent)
			kvt_ch_link(f->t, id, parent);
		f->p.ops->insert(&f->p, TIER, id);
	}
	return parent;
}

/* A request for the chain that ends in @tip. */
static inline void request(struct fixture *f, u32 tip)
{
	u32 id;

	for (id = tip; id; id = kvt_cold(f->t, id)->parent)
		f->p.ops->touch(&f->p, TIER, id);
	kvt_policy_request(&f->p, tip);
}

#endif /* KVT_REUSE_KUNIT_H */
