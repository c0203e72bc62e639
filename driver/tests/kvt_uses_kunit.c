// SPDX-License-Identifier: GPL-2.0
/*
 * Policies under random uses and hints.
 *
 * Blocks come, are used with a request or without, are said not to be needed, cannot go,
 * move between two tiers, and leave; the clock stands still, jumps ahead, goes back and
 * wraps; the policies take over from each other. After that the lists are still lists,
 * and what is kept about their ends is what a look at them says.
 */
#include "kvt_kunit.h"
#include "../core/kvt_chain.h"
#include "../core/kvt_policy.h"

#define TIERS	2u
#define BLOCKS	300u
#define STEPS	20000u

struct fixture {
	struct kvt_policy p;
	struct kvt_table *t;
	u64 rng;
	u32 nr_names;
	u32 nr_left;
	u32 nr_steps;
	u8 there[KVT_CHUNK_BLOCKS];
};

static u32 rnd(struct fixture *f, u32 below)
{
	return kvt_test_random(&f->rng) % below;
}

static struct fixture *setup(struct kunit *test, u64 seed)
{
	struct fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->t = kvt_test_table(test, 1);
	kvt_policy_init(&f->p, &kvt_policy_reuse, f->t);
	kvt_test_mind(test, &f->p);
	f->rng = seed;
	f->p.now_ms = U32_MAX - 500000;	/* wraps on the way */
	return f;
}

/* A block that is there, or KVT_NIL. */
static u32 some_block(struct fixture *f)
{
	u32 i, id;

	for (i = 0; i < 8; i++) {
		id = 1 + rnd(f, KVT_CHUNK_BLOCKS - 1) % (BLOCKS + 64);
		if (f->there[id])
			return id;
	}
	return KVT_NIL;
}

static void add_block(struct kunit *test, struct fixture *f, u32 parent)
{
	u32 id = kvt_test_block(test, f->t, KVT_READY | KVT_CTL_MEM);

	kvt_hot(f->t, id)->mem_tier = (u8)rnd(f, TIERS);
	kvt_hot(f->t, id)->hash = ++f->nr_names * 2654435761u;
	kvt_cold(f->t, id)->touch_ms = f->p.now_ms;
	if (parent)
		kvt_ch_link(f->t, id, parent);
	f->there[id] = 1;
	f->p.ops->insert(&f->p, kvt_policy_tier(&f->p, id), id);
}

static void leave(struct fixture *f, u32 id)
{
	f->p.ops->remove(&f->p, kvt_policy_tier(&f->p, id), id);
	kvt_ch_unlink(f->t, id);
	atomic_set(&kvt_hot(f->t, id)->ctl, KVT_DEAD);
	kvt_table_free(f->t, id);
	f->there[id] = 0;
	f->nr_left++;
}

static void use(struct fixture *f, u32 tip)
{
	u32 id;

	for (id = tip; id; id = kvt_cold(f->t, id)->parent)
		f->p.ops->touch(&f->p, kvt_policy_tier(&f->p, id), id);
}

static void move(struct fixture *f, u32 id)
{
	u32 from = kvt_policy_tier(&f->p, id), to = (from + 1) % TIERS;

	f->p.ops->remove(&f->p, from, id);
	kvt_hot(f->t, id)->mem_tier = (u8)to;
	f->p.ops->insert(&f->p, to, id);
}

static void hint(struct fixture *f, u32 id)
{
	u32 tier = kvt_policy_tier(&f->p, id);

	switch (rnd(f, 4)) {
	case 0:
		f->p.ops->cool(&f->p, tier, id);
		break;
	case 1:
		f->p.ops->skip(&f->p, tier, id);
		break;
	case 2:
		f->p.ops->touch(&f->p, tier, id);
		break;
	default:
		if (f->p.ops->admit)
			f->p.ops->admit(&f->p, tier, id, rnd(f, 2));
	}
}

static void clock_moves(struct fixture *f)
{
	switch (rnd(f, 8)) {
	case 0:
		f->p.now_ms -= rnd(f, 100000);
		break;
	case 1:
		f->p.now_ms += rnd(f, 10000000);
		break;
	default:
		f->p.now_ms += rnd(f, 2000);
	}
}

static void call(struct fixture *f, u32 id)
{
	struct kvt_call c = {
		.who = 1 + rnd(f, 3), .request = rnd(f, 4), .tip = id, .nr = 1 + rnd(f, 4),
	};

	kvt_policy_call(&f->p, &c);
}

/* In no time is nothing done, and what is kept is of use for one time only. */
static void take_over(struct fixture *f)
{
	f->p.ops = rnd(f, 3) ? &kvt_policy_reuse : &kvt_policy_lru;
	f->p.now_ms++;
}

/* What is kept about the ends against a look at all of them. */
static void next_is_fresh(struct kunit *test, struct fixture *f)
{
	/* The same question for some time: else nothing is kept. */
	bool leaf = f->nr_steps / 64 & 1;
	u32 tier = rnd(f, TIERS), budget = rnd(f, 12), kept, fresh;

	if (!rnd(f, 8))
		f->p.ops->next(&f->p, tier, leaf, &budget);
	/* Until all lists are known to their ends, of which it looks at a part each time. */
	do {
		budget = 10000;
		kept = f->p.ops->next(&f->p, tier, leaf, &budget);
	} while (kept && f->p.ops == &kvt_policy_reuse && f->p.stale[tier]);
	budget = 10000;
	f->p.stale[tier] = U32_MAX;
	fresh = f->p.ops->next(&f->p, tier, leaf, &budget);
	KUNIT_ASSERT_EQ(test, kept, fresh);
	if (!kept)
		return;
	KUNIT_ASSERT_EQ(test, kvt_policy_tier(&f->p, kept), tier);
	KUNIT_ASSERT_TRUE(test, !leaf || kvt_ch_leaf(f->t, kept));
	if (kvt_ch_leaf(f->t, kept) && f->t->nr_used > BLOCKS / 2 && !rnd(f, 4))
		leave(f, kept);
}

static u32 list_count(struct kunit *test, struct fixture *f, u32 tier, u32 list)
{
	const struct kvt_list *l = &f->p.list[tier][list];
	u32 id, prev = KVT_NIL, nr = 0, young = f->p.young[tier][list];
	bool found = !young;

	for (id = l->head; id; prev = id, id = kvt_cold(f->t, id)->lru_next, nr++) {
		KUNIT_ASSERT_EQ(test, kvt_cold(f->t, id)->lru_prev, prev);
		KUNIT_ASSERT_EQ(test, kvt_policy_list(kvt_cold(f->t, id)), list);
		KUNIT_ASSERT_EQ(test, kvt_policy_tier(&f->p, id), tier);
		KUNIT_ASSERT_LT(test, nr, KVT_CHUNK_BLOCKS);
		found |= id == young;
	}
	KUNIT_ASSERT_EQ(test, l->tail, prev);
	KUNIT_ASSERT_EQ(test, l->count, nr);
	KUNIT_ASSERT_TRUE(test, found);
	KUNIT_ASSERT_EQ(test, (f->p.some[tier] >> list) & 1, nr ? 1u : 0u);
	return nr;
}

/* Each block is on one list, and the counts are right. */
static void lists_are_lists(struct kunit *test, struct fixture *f)
{
	u32 tier, list, nr = 0, cls, bin, sum;

	for (tier = 0; tier < KVT_TIERS; tier++) {
		for (list = 0; list < KVT_LISTS; list++)
			nr += list_count(test, f, tier, list);
	}
	KUNIT_ASSERT_EQ(test, nr, f->t->nr_used);
	for (cls = 0; cls < KVT_CLASSES; cls++) {
		for (bin = 0, sum = 0; bin < KVT_AGE_BINS; bin++)
			sum += f->p.only->learn.used[cls][bin] + f->p.only->learn.lost[cls][bin];
		KUNIT_ASSERT_EQ(test, sum, (u32)f->p.only->learn.total[cls]);
		KUNIT_ASSERT_TRUE(test, sum <= KVT_COUNT_MAX);
	}
}

static void step(struct kunit *test, struct fixture *f)
{
	u32 id = some_block(f);

	if (!rnd(f, 32))
		clock_moves(f);
	switch (rnd(f, 10)) {
	case 0:
	case 1:
	case 2:
		if (f->t->nr_used < BLOCKS)
			add_block(test, f, rnd(f, 5) ? id : KVT_NIL);
		return;
	case 3:
		if (!rnd(f, 50))
			take_over(f);
		return;
	}
	if (!id)
		return;
	switch (rnd(f, 5)) {
	case 0:
		hint(f, id);
		break;
	case 1:
		move(f, id);
		break;
	case 2:
		if (kvt_ch_leaf(f->t, id))
			leave(f, id);
		break;
	case 3:
		use(f, id);
		break;
	default:
		use(f, id);
		if (rnd(f, 2))
			kvt_policy_request(&f->p, id);
		else
			call(f, id);
	}
}

static void random_uses(struct kunit *test)
{
	struct fixture *f;
	u32 i, seed;

	for (seed = 1; seed <= 6; seed++) {
		f = setup(test, seed);
		for (i = 0; i < STEPS; i++, f->nr_steps++) {
			step(test, f);
			next_is_fresh(test, f);
			if (i % 16 == 0)
				lists_are_lists(test, f);
		}
		KUNIT_EXPECT_LT(test, STEPS / 100, f->nr_left);
		KUNIT_EXPECT_LT(test, 0u, f->p.only->nr_requests);
	}
}

/* One that was used, with no request told of, does not stand at the old end. */
static void used_goes_to_the_young_end(struct kunit *test)
{
	struct fixture *f = setup(test, 1);
	u32 id[4], i, budget = 1000;

	for (i = 0; i < ARRAY_SIZE(id); i++) {
		id[i] = kvt_test_block(test, f->t, KVT_READY | KVT_CTL_MEM);
		kvt_hot(f->t, id[i])->mem_tier = 0;
		kvt_cold(f->t, id[i])->touch_ms = f->p.now_ms;
		f->p.ops->insert(&f->p, 0, id[i]);
		f->p.now_ms += 60000;
	}
	f->p.ops->touch(&f->p, 0, id[0]);
	KUNIT_EXPECT_EQ(test, f->p.list[0][KVT_CLS_NEW].tail, id[0]);
	KUNIT_EXPECT_EQ(test, f->p.ops->next(&f->p, 0, true, &budget), id[1]);
	KUNIT_EXPECT_EQ(test, f->p.list[0][KVT_CLS_NEW].head, id[0]);
}

/* What a request's blocks were put side by side is moved as one, in its order. */
static void runs_keep_their_order(struct kunit *test)
{
	struct fixture *f = setup(test, 1);
	u32 id[6], i, at;

	for (i = 0; i < ARRAY_SIZE(id); i++) {
		id[i] = kvt_test_block(test, f->t, KVT_READY | KVT_CTL_MEM);
		kvt_hot(f->t, id[i])->mem_tier = 0;
		kvt_hot(f->t, id[i])->hash = i + 1;
		kvt_cold(f->t, id[i])->touch_ms = f->p.now_ms;
		if (i)
			kvt_ch_link(f->t, id[i], id[i - 1]);
		f->p.ops->insert(&f->p, 0, id[i]);
	}
	use(f, id[5]);
	kvt_policy_request(&f->p, id[5]);
	f->p.now_ms += 5000;
	use(f, id[3]);
	kvt_policy_request(&f->p, id[3]);
	at = f->p.list[0][kvt_cold(f->t, id[0])->cls].head;
	for (i = 0; i < 4; i++, at = kvt_cold(f->t, at)->lru_next)
		KUNIT_EXPECT_EQ(test, at, id[i]);
	KUNIT_EXPECT_EQ(test, f->p.young[0][kvt_cold(f->t, id[0])->cls], id[3]);
}

static struct kunit_case kvt_uses_cases[] = {
	KUNIT_CASE(random_uses),
	KUNIT_CASE(used_goes_to_the_young_end),
	KUNIT_CASE(runs_keep_their_order),
	{ }
};

static struct kunit_suite kvt_uses_suite = {
	.name = "kvt_uses",
	.test_cases = kvt_uses_cases,
};
kunit_test_suite(kvt_uses_suite);
