// SPDX-License-Identifier: GPL-2.0
/*
 * The policy "reuse": requests that come in parts, of chains that grow.
 */
#include "kvt_kunit.h"
#include "../core/kvt_chain.h"
#include "../core/kvt_policy.h"
#include "../core/kvt_policy_mind.h"

#define TIER	2
#define LONG	1000u

struct fixture {
	struct kvt_policy p;
	struct kvt_table *t;
	u32 nr;
};

static struct fixture *setup(struct kunit *test)
{
	struct fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->t = kvt_test_table(test, 4);
	kvt_policy_init(&f->p, &kvt_policy_reuse, f->t);
	kvt_test_mind(test, &f->p);
	f->p.now_ms = 1000;
	return f;
}

/* So many new blocks after @parent; the last of them. */
static u32 store(struct kunit *test, struct fixture *f, u32 parent, u32 nr)
{
	u32 id;

	for (; nr--; parent = id) {
		id = kvt_test_block(test, f->t, KVT_READY | KVT_CTL_MEM);
		kvt_hot(f->t, id)->mem_tier = TIER;
		kvt_hot(f->t, id)->hash = ++f->nr * 2654435761u;
		kvt_hot(f->t, id)->ns_group = kvt_ns_group(0, 0);
		kvt_cold(f->t, id)->touch_ms = f->p.now_ms;
		if (parent)
			kvt_ch_link(f->t, id, parent);
		f->p.ops->insert(&f->p, TIER, id);
	}
	return parent;
}

/* A call that ends in @tip is over, of a request. */
static void part(struct fixture *f, u32 request, u32 tip, u32 nr)
{
	const struct kvt_call c = { .who = 1, .request = request, .tip = tip, .nr = nr };

	kvt_policy_call(&f->p, &c);
}

static void read_all(struct fixture *f, u32 request, u32 tip)
{
	u32 id, nr = 0;

	for (id = tip; id; id = kvt_cold(f->t, id)->parent, nr++)
		f->p.ops->touch(&f->p, TIER, id);
	part(f, request, tip, nr);
}

static u32 store_in_parts(struct kunit *test, struct fixture *f, u32 request, u32 tip, u32 nr,
			  u32 each)
{
	u32 n;

	for (; nr; nr -= n) {
		n = min(nr, each);
		tip = store(test, f, tip, n);
		part(f, request, tip, n);
	}
	return tip;
}

static void drains(struct kunit *test, struct fixture *f)
{
	u32 nr = f->t->nr_used, budget, id;

	while (nr--) {
		budget = 100000;
		id = f->p.ops->next(&f->p, TIER, true, &budget);
		KUNIT_ASSERT_NE(test, id, KVT_NIL);
		f->p.ops->remove(&f->p, TIER, id);
		kvt_ch_unlink(f->t, id);
		atomic_set(&kvt_hot(f->t, id)->ctl, KVT_DEAD);
		kvt_table_free(f->t, id);
	}
	KUNIT_EXPECT_EQ(test, f->p.some[TIER], 0u);
}

/*
 * Sessions with two turns and a half, stored in parts; and one that begins as another's last
 * turn but one block: a stranger's, but for its length.
 */
static struct fixture *turns_in_parts(struct kunit *test, u32 first, u32 each)
{
	struct fixture *f = setup(test);
	u32 tip[3], s;

	for (s = 0; s < ARRAY_SIZE(tip); s++)
		tip[s] = store_in_parts(test, f, s + 1, KVT_NIL, 40 + 9 * s, first);
	for (s = 0; s < ARRAY_SIZE(tip); s++) {
		f->p.now_ms += 30000;
		read_all(f, s + 11, tip[s]);
		tip[s] = store_in_parts(test, f, s + 11, tip[s], 60 - 7 * s, each);
	}
	f->p.now_ms += 30000;
	read_all(f, 21, tip[1]);
	f->p.now_ms += 30000;
	store_in_parts(test, f, 31, kvt_cold(f->t, tip[0])->parent, 20, each);
	return f;
}

static void same_lists(struct kunit *test, struct fixture *a, struct fixture *b)
{
	u32 list, x, y;

	for (list = 0; list < KVT_LISTS; list++) {
		x = a->p.list[TIER][list].head;
		y = b->p.list[TIER][list].head;
		KUNIT_EXPECT_EQ(test, a->p.list[TIER][list].count, b->p.list[TIER][list].count);
		KUNIT_EXPECT_EQ(test, a->p.young[TIER][list], b->p.young[TIER][list]);
		for (; x && x == y; x = kvt_cold(a->t, x)->lru_next,
		     y = kvt_cold(b->t, y)->lru_next) {
			KUNIT_EXPECT_EQ(test, kvt_cold(a->t, x)->cls, kvt_cold(b->t, x)->cls);
			KUNIT_EXPECT_EQ(test, kvt_cold(a->t, x)->past, kvt_cold(b->t, x)->past);
			KUNIT_EXPECT_EQ(test, kvt_cold(a->t, x)->shared,
					kvt_cold(b->t, x)->shared);
		}
		KUNIT_ASSERT_EQ(test, x, y);
	}
}

/* However small the parts, what comes out is what comes out of one. */
static void growing_is_one(struct kunit *test)
{
	static const u32 each[] = { 1, 2, 3, 16, 50 };
	struct fixture *whole = turns_in_parts(test, 1000, 1000), *f;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(each); i++) {
		f = turns_in_parts(test, each[i], each[i]);
		same_lists(test, whole, f);
		KUNIT_EXPECT_EQ(test, memcmp(&whole->p.only->turns, &f->p.only->turns,
					     sizeof(f->p.only->turns)), 0);
		KUNIT_EXPECT_EQ(test, memcmp(&whole->p.only->learn, &f->p.only->learn,
					     sizeof(f->p.only->learn)), 0);
	}
}

/* A part takes as long as it is, not as long as what was there before. */
static void growing_takes_no_longer(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 tip = store_in_parts(test, f, 1, KVT_NIL, LONG, LONG), before = f->p.nr_steps;

	store_in_parts(test, f, 1, tip, LONG, 1);
	KUNIT_EXPECT_LE(test, f->p.nr_steps - before, 4 * LONG);
	drains(test, f);
}

/* Nor does it, nearly, where others' requests come between. */
static void growing_beside_others(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 tip[2], before, i, s;

	for (s = 0; s < 2; s++)
		tip[s] = store_in_parts(test, f, s + 1, KVT_NIL, LONG, LONG);
	before = f->p.nr_steps;
	for (i = 0; i < LONG; i++) {
		s = i % 2;
		f->p.now_ms += 50;
		tip[s] = store_in_parts(test, f, s + 1, tip[s], 1, 1);
	}
	/* A whole look at three times the chain for each 16 blocks, at worst; 3 * 1500 before. */
	KUNIT_EXPECT_LE(test, f->p.nr_steps - before, 3 * 2 * LONG / 16 * LONG);
	KUNIT_EXPECT_EQ(test, f->p.only->nr_requests, 2u);
	drains(test, f);
}

/* From time to time all of such a chain is put among the youngest again. */
static void growing_stays_together(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 root = store(test, f, KVT_NIL, 1), tip[2], i, s, cls;

	tip[0] = store(test, f, root, LONG - 1);
	part(f, 1, tip[0], LONG);
	tip[1] = store_in_parts(test, f, 2, KVT_NIL, LONG, LONG);
	cls = kvt_cold(f->t, root)->cls;
	KUNIT_EXPECT_NE(test, f->p.list[TIER][cls].head, root);
	for (i = 0; i < LONG / 2 && f->p.list[TIER][cls].head != root; i++) {
		for (s = 0; s < 2; s++)
			tip[s] = store_in_parts(test, f, s + 1, tip[s], 1, 1);
		if (f->p.list[TIER][cls].head != root)
			tip[0] = store_in_parts(test, f, 1, tip[0], 1, 1);
	}
	KUNIT_EXPECT_LT(test, i, LONG / 2);
	KUNIT_EXPECT_LT(test, 4u, i);
	drains(test, f);
}

/* What is on another tier by then, or given up, is looked at as before. */
static void growing_from_elsewhere(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 tip = store_in_parts(test, f, 1, KVT_NIL, 100, 100), last;

	f->p.ops->cool(&f->p, TIER, tip);
	last = store_in_parts(test, f, 1, tip, 1, 1);
	KUNIT_EXPECT_EQ(test, kvt_cold(f->t, tip)->cls, kvt_cold(f->t, last)->cls);
	f->p.ops->remove(&f->p, TIER, last);
	kvt_hot(f->t, last)->mem_tier = TIER + 1;
	f->p.ops->insert(&f->p, TIER + 1, last);
	tip = store_in_parts(test, f, 1, last, 1, 1);
	KUNIT_EXPECT_EQ(test, kvt_policy_list(kvt_cold(f->t, tip)), kvt_cold(f->t, last)->cls);
	KUNIT_EXPECT_EQ(test, f->p.list[TIER + 1][kvt_cold(f->t, last)->cls].count, 1u);
	KUNIT_EXPECT_EQ(test, f->p.only->nr_requests, 1u);
}

/* Another chain under the same number is none that grows. */
static void growing_is_no_branch(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 root = store_in_parts(test, f, 1, KVT_NIL, 50, 50), tip;

	tip = store_in_parts(test, f, 1, root, 50, 1);
	tip = store_in_parts(test, f, 1, root, 50, 1);
	KUNIT_EXPECT_EQ(test, f->p.young[TIER][kvt_cold(f->t, tip)->cls], tip);
	drains(test, f);
}

/* Two requests of one moment; the second has been on the first one's list before it was long. */
static struct fixture *beside(struct kunit *test, u32 each)
{
	struct fixture *f = setup(test);
	u32 first = store_in_parts(test, f, 1, KVT_NIL, 4, 4);

	KUNIT_EXPECT_EQ(test, f->p.young[TIER][kvt_cold(f->t, first)->cls], first);
	store_in_parts(test, f, 2, KVT_NIL, 60, each);
	KUNIT_EXPECT_EQ(test, f->p.young[TIER][kvt_cold(f->t, first)->cls], first);
	return f;
}

static void youngest_is_who_was(struct kunit *test)
{
	struct fixture *whole = beside(test, 60), *parts = beside(test, 4);

	same_lists(test, whole, parts);
	same_lists(test, whole, beside(test, 1));
	drains(test, parts);
}

#define SET	5u
#define NAME(i)	(SET + KVT_TURN_SETS * (2 * (i) + 1))	/* all of one set, and one level */

/* So many blocks in a call, of which the last two end session @name. */
static u32 store_end(struct kunit *test, struct fixture *f, u32 request, u32 tip, u32 nr, u32 name)
{
	tip = store(test, f, tip, nr - 1);
	kvt_hot(f->t, tip)->hash = name;
	tip = store(test, f, tip, 1);
	kvt_hot(f->t, tip)->hash = 0;
	part(f, request, tip, nr);
	return tip;
}

/* To remember the first part a session is forgotten that the second one goes on with. */
static void growing_goes_on(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 i, tip;

	for (i = 0; i < KVT_TURN_WAYS; i++, f->p.now_ms += 1000)
		store_end(test, f, i + 1, KVT_NIL, 2, NAME(i));
	tip = store_end(test, f, 100, KVT_NIL, 40, NAME(KVT_TURN_WAYS));
	KUNIT_ASSERT_TRUE(test, !kvt_turn_find(&f->p.only->turns, NAME(0)));
	i = kvt_cold(f->t, tip)->cls;
	tip = store_end(test, f, 100, tip, 2, NAME(0));
	KUNIT_EXPECT_NE(test, kvt_cold(f->t, tip)->cls, i);
	KUNIT_ASSERT_TRUE(test, kvt_turn_find(&f->p.only->turns, NAME(0)));
	KUNIT_EXPECT_EQ(test, kvt_turn_find(&f->p.only->turns, NAME(0))->turn + 0u, 1u);
	drains(test, f);
}

/* However it is read, each block of a chain has been asked for once. */
static void reading_on_is_counted(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 id[100], i, tip = store_in_parts(test, f, 1, KVT_NIL, 100, 7);
	s32 had = f->p.only->regret.balance;

	KUNIT_EXPECT_EQ(test, had, -100);
	for (i = 100; i--; tip = kvt_cold(f->t, tip)->parent)
		id[i] = tip;
	f->p.now_ms += 30000;
	for (i = 0; i < 100; i++) {
		f->p.ops->touch(&f->p, TIER, id[i]);
		if (i % 10 == 9)
			part(f, 2, id[i], 10);
	}
	KUNIT_EXPECT_EQ(test, f->p.only->regret.balance, had - 100);
}

/* Only what a part has added is taken back: where a chain is too long to be looked at, nothing. */
static void long_parts_take_nothing(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 root = store_in_parts(test, f, 1, KVT_NIL, 8, 8), tip, i, shared;

	for (i = 0; i < 5; i++) {
		f->p.now_ms += 30000;
		store_in_parts(test, f, 10 + i, root, 2, 2);
	}
	shared = kvt_cold(f->t, root)->shared;
	KUNIT_EXPECT_LE(test, 4u, shared);
	read_all(f, 2, root);
	tip = store_in_parts(test, f, 2, root, KVT_REQUEST_MAX + 200, KVT_REQUEST_MAX + 200);
	for (i = 0; i < 4; i++) {
		tip = store(test, f, tip, 1);
		/* It is one that others use: all is looked at again. */
		kvt_cold(f->t, tip)->shared = 1;
		part(f, 2, tip, 1);
	}
	KUNIT_EXPECT_EQ(test, kvt_cold(f->t, root)->shared + 0u, shared);
}

/* Who asks for a chain again and again teaches nothing, and has it among the youngest. */
static void reading_again_is_one(struct kunit *test)
{
	struct fixture *f[] = { turns_in_parts(test, 60, 60), turns_in_parts(test, 60, 60) };
	u32 i, n, tip = KVT_NIL, other, steps, on;
	const void *mind[2];
	struct kvt_turn *e;

	for (i = 0; i < ARRAY_SIZE(f); i++) {
		other = store_in_parts(test, f[i], 40, KVT_NIL, 30, 30);
		tip = store_in_parts(test, f[i], 41, KVT_NIL, 30, 30);
		f[i]->p.now_ms += 30000;
		read_all(f[i], 50, other);
		read_all(f[i], 51, tip);
		steps = f[i]->p.nr_steps;
		for (n = 0; n < 3 * i; n++)
			part(f[i], 51, tip, 30);
		/* The chain is gone over once each time. */
		KUNIT_EXPECT_LE(test, f[i]->p.nr_steps - steps, i * 3 * (30u + 2));
		mind[i] = kvt_policy_mind(&f[i]->p, tip);
	}
	same_lists(test, f[0], f[1]);
	KUNIT_EXPECT_EQ(test, memcmp(mind[0], mind[1], sizeof(struct kvt_mind)), 0);
	KUNIT_EXPECT_EQ(test, memcmp(f[0]->p.before, f[1]->p.before, sizeof(f[0]->p.before)), 0);
	on = kvt_policy_list(kvt_cold(f[1]->t, tip));
	other = store_in_parts(test, f[1], 42, KVT_NIL, 30, 30);
	f[1]->p.now_ms += 30000;
	read_all(f[1], 52, other);
	f[1]->p.now_ms += 20000;
	KUNIT_ASSERT_NE(test, f[1]->p.young[TIER][on], tip);
	part(f[1], 51, tip, 30);
	KUNIT_EXPECT_EQ(test, f[1]->p.young[TIER][on], tip);
	e = kvt_turn_find(&f[1]->p.only->turns,
			  kvt_hot(f[1]->t, kvt_cold(f[1]->t, tip)->parent)->hash);
	KUNIT_ASSERT_NOT_NULL(test, e);
	KUNIT_EXPECT_LE(test, kvt_turn_age_ms(e, f[1]->p.now_ms), 1u << KVT_TURN_SHIFT);
	/* The session has gone on: whatever that is, nothing is to get lost. */
	read_all(f[1], 53, store_in_parts(test, f[1], 53, tip, 10, 10));
	part(f[1], 51, tip, 30);
	drains(test, f[1]);
}

static struct kunit_case kvt_request_cases[] = {
	KUNIT_CASE(growing_is_one),
	KUNIT_CASE(growing_takes_no_longer),
	KUNIT_CASE(growing_beside_others),
	KUNIT_CASE(growing_stays_together),
	KUNIT_CASE(growing_from_elsewhere),
	KUNIT_CASE(growing_is_no_branch),
	KUNIT_CASE(growing_goes_on),
	KUNIT_CASE(long_parts_take_nothing),
	KUNIT_CASE(reading_again_is_one),
	KUNIT_CASE(reading_on_is_counted),
	KUNIT_CASE(youngest_is_who_was),
	{ }
};

static struct kunit_suite kvt_request_suite = {
	.name = "kvt_request",
	.test_cases = kvt_request_cases,
};
kunit_test_suite(kvt_request_suite);
