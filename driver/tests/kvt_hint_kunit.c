// SPDX-License-Identifier: GPL-2.0
/*
 * Hints: what they make a block worth, who is believed, and that nothing a client says
 * upsets the policy's lists.
 */
#include "kvt_kunit.h"
#include "../core/kvt_chain.h"
#include "../core/kvt_hint.h"
#include "../core/kvt_policy.h"

#define TIER	2
#define MINUTE	60000u
#define HINT_UNIT	16u	/* a block in the counts of hints */
#define LAST	(KVT_CLS_HINT + KVT_HINTS - 1)

static u32 worth(const struct kvt_learn *l, u32 reuse_ms, u32 age_ms)
{
	return kvt_hint_worth(l, kvt_hint_class(reuse_ms), kvt_age_bin(reuse_ms), age_ms);
}

static struct kvt_learn *learn_new(struct kunit *test)
{
	struct kvt_learn *l = kunit_kzalloc(test, sizeof(*l), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, l);
	kvt_learn_init(l);
	return l;
}

static void classes_by_time(struct kunit *test)
{
	u32 ms, cls = KVT_CLS_HINT;

	KUNIT_EXPECT_EQ(test, kvt_hint_class(0), (u32)KVT_CLS_HINT);
	KUNIT_EXPECT_EQ(test, kvt_hint_class(KVT_HINT_NEVER), (u32)KVT_CLS_COLD);
	KUNIT_EXPECT_EQ(test, kvt_hint_class(KVT_HINT_NEVER - 1), (u32)LAST);
	for (ms = 1; ms < 1u << 31; ms *= 2) {
		KUNIT_EXPECT_LE(test, cls, kvt_hint_class(ms));
		cls = kvt_hint_class(ms);
	}
	KUNIT_EXPECT_EQ(test, cls, (u32)LAST);
	KUNIT_EXPECT_LE(test, (u32)LAST, KVT_LISTS - 1u);
}

/* The sooner the more, more as the time comes, little when it is over. */
static void worth_follows_time(struct kunit *test)
{
	struct kvt_learn *l = learn_new(test);
	u32 age;

	KUNIT_EXPECT_LT(test, worth(l, 10 * MINUTE, 0), worth(l, MINUTE, 0));
	KUNIT_EXPECT_LT(test, worth(l, MINUTE, 0), worth(l, 1000, 0));
	for (age = 1000; age < MINUTE; age += 1000)
		KUNIT_EXPECT_LE(test, worth(l, MINUTE, age - 1000), worth(l, MINUTE, age));
	KUNIT_EXPECT_LT(test, worth(l, MINUTE, 2 * MINUTE), worth(l, 10 * MINUTE, 0));
	for (age = 2 * MINUTE; age < 1u << 30; age *= 2)
		KUNIT_EXPECT_LE(test, worth(l, MINUTE, 2 * age), worth(l, MINUTE, age));
	l->kept[KVT_HINTS - 1] = 1u << 20;
	KUNIT_EXPECT_LT(test, 0u, worth(l, KVT_HINT_NEVER - 1, U32_MAX));
}

/* A hint about a block, and what becomes of that. */
static void say(struct kvt_learn *l, u32 reuse_ms, u32 age_ms, bool used)
{
	kvt_hint_give(l, kvt_hint_class(reuse_ms), 1);
	if (used)
		kvt_hint_use(l, kvt_hint_class(reuse_ms), kvt_age_bin(reuse_ms), age_ms);
}

/* Who says what is not so is believed less: at last, less than who says nothing. */
static void liars_are_not_believed(struct kunit *test)
{
	struct kvt_learn *l = learn_new(test);
	u32 cls = kvt_hint_class(MINUTE), before = worth(l, MINUTE, 0), i;

	KUNIT_EXPECT_TRUE(test, kvt_hint_believed(l, cls));
	kvt_hint_give(l, cls, 4096);
	KUNIT_EXPECT_GT(test, before, worth(l, MINUTE, 0));
	for (i = 0; i < 4096; i++)
		kvt_hint_use(l, cls, kvt_age_bin(MINUTE), MINUTE);
	KUNIT_EXPECT_LT(test, before, worth(l, MINUTE, 0));
	for (i = 0; i < 200000; i++)
		say(l, MINUTE, 20 * MINUTE, i & 1);
	KUNIT_EXPECT_LT(test, worth(l, MINUTE, 0) + (3u << KVT_WORTH_SHIFT), before);
	KUNIT_EXPECT_LT(test, worth(l, MINUTE, 0), kvt_learn_worth(l, KVT_CLS_SESSION, 0));
	KUNIT_EXPECT_FALSE(test, kvt_hint_believed(l, cls));
	/* Another class has kept its word. */
	KUNIT_EXPECT_EQ(test, l->broken[0], 0u);
	KUNIT_EXPECT_TRUE(test, kvt_hint_believed(l, KVT_CLS_HINT));
	/* It can be won back. */
	for (i = 0; i < 400000; i++)
		say(l, MINUTE, MINUTE, true);
	KUNIT_EXPECT_LT(test, before + (3u << KVT_WORTH_SHIFT), worth(l, MINUTE, 0));
	KUNIT_EXPECT_LE(test, l->kept[cls - KVT_CLS_HINT] + l->broken[cls - KVT_CLS_HINT],
			2u << 20);
}

/* However short the time is that is said, what never comes true is worth next to nothing. */
static void at_once_is_not_believed(struct kunit *test)
{
	struct kvt_learn *l = learn_new(test);
	u32 i;

	for (i = 0; i < 100; i++)
		kvt_hint_give(l, KVT_CLS_HINT, 4096);
	KUNIT_EXPECT_LT(test, worth(l, 1, 0), kvt_learn_worth(l, KVT_CLS_SESSION, 0));
	KUNIT_EXPECT_LE(test, worth(l, 1, 0), worth(l, 1000, 0));
	KUNIT_EXPECT_FALSE(test, kvt_hint_believed(l, KVT_CLS_HINT));
}

/* A use is counted once for each block said, and what comes too soon as a part of one. */
static void belief_is_not_for_nothing(struct kunit *test)
{
	struct kvt_learn *l = learn_new(test);
	u32 cls = kvt_hint_class(MINUTE), i = cls - KVT_CLS_HINT, n;

	/* Nobody has said so. */
	kvt_hint_use(l, cls, kvt_age_bin(MINUTE), MINUTE);
	KUNIT_EXPECT_EQ(test, l->kept[i], 0u);
	say(l, MINUTE, MINUTE, true);
	KUNIT_EXPECT_EQ(test, l->kept[i], HINT_UNIT);
	KUNIT_EXPECT_EQ(test, l->broken[i], 0u);
	say(l, MINUTE, 0, true);
	KUNIT_EXPECT_EQ(test, l->kept[i], HINT_UNIT);
	KUNIT_EXPECT_EQ(test, l->broken[i], 0u);
	say(l, MINUTE, MINUTE / 8, true);
	KUNIT_EXPECT_LT(test, HINT_UNIT, l->kept[i]);
	KUNIT_EXPECT_GE(test, HINT_UNIT + HINT_UNIT / 2, l->kept[i]);
	say(l, MINUTE, 20 * MINUTE, true);
	KUNIT_EXPECT_EQ(test, l->broken[i], HINT_UNIT);
	/* Something that is used at once, beside much that is not. */
	for (n = 0; n < 10000; n++) {
		kvt_hint_give(l, KVT_CLS_HINT, 64);
		say(l, 1, 1, true);
	}
	KUNIT_EXPECT_FALSE(test, kvt_hint_believed(l, KVT_CLS_HINT));
}

/* The last class is of what comes after its beginning, whenever that is. */
static void the_far_future_is_not_late(struct kunit *test)
{
	struct kvt_learn *l = learn_new(test);

	kvt_hint_give(l, LAST, 1);
	kvt_hint_use(l, LAST, KVT_AGE_BINS - 2, U32_MAX);
	KUNIT_EXPECT_EQ(test, l->broken[KVT_HINTS - 1], 0u);
	KUNIT_EXPECT_EQ(test, l->kept[KVT_HINTS - 1], HINT_UNIT);
	kvt_hint_give(l, LAST - 1, 1);
	kvt_hint_use(l, LAST - 1, 20, U32_MAX);
	KUNIT_EXPECT_EQ(test, l->broken[KVT_HINTS - 2], HINT_UNIT);
	KUNIT_EXPECT_EQ(test, l->kept[KVT_HINTS - 2], 0u);
}

/* What is said to be over is worth nothing, until that turns out to be wrong; and not much then. */
static void done_is_doubted(struct kunit *test)
{
	struct kvt_learn *l = learn_new(test);
	u32 i, least;

	kvt_learn_not_over(l, MINUTE);
	KUNIT_EXPECT_EQ(test, l->used[KVT_CLS_COLD][kvt_age_bin(MINUTE)], 0);
	for (i = 0; i < 100; i++)
		kvt_learn_over(l, 2);
	kvt_learn_row(l, KVT_CLS_COLD, NULL);
	KUNIT_EXPECT_EQ(test, kvt_learn_worth(l, KVT_CLS_COLD, 0), 0u);
	for (i = 0; i < 100; i++)
		kvt_learn_not_over(l, 1);
	kvt_learn_row(l, KVT_CLS_NEW, NULL);
	kvt_learn_row(l, KVT_CLS_COLD, NULL);
	least = kvt_learn_worth(l, KVT_CLS_COLD, MINUTE);
	KUNIT_EXPECT_LT(test, 0u, least);
	/* As if it had taken four minutes. */
	KUNIT_EXPECT_GT(test, worth(l, MINUTE, 0) + (8u << KVT_WORTH_SHIFT), least);
	/* Any number, any time. */
	for (i = 0; i < 1000; i++) {
		kvt_learn_over(l, 4096);
		kvt_learn_not_over(l, U32_MAX);
	}
	KUNIT_EXPECT_GE(test, KVT_COUNT_MAX, l->total[KVT_CLS_COLD]);
}

/* --- blocks ---------------------------------------------------------------------------- */

struct fixture {
	struct kvt_policy p;
	struct kvt_table *t;
	struct kvt_mind *mind[2];
	u32 ns;		/* whose blocks grow() makes */
	u32 nr;
};

static struct fixture *tenants;

static struct kvt_mind *mind_of(const struct kvt_policy *p, u32 ns)
{
	return &tenants->p == p ? tenants->mind[ns] : NULL;
}

static struct fixture *setup(struct kunit *test)
{
	struct fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->t = kvt_test_table(test, 1);
	kvt_policy_init(&f->p, &kvt_policy_reuse, f->t);
	f->mind[0] = kvt_test_mind(test, &f->p);
	f->mind[1] = kvt_test_mind(test, &f->p);
	f->p.only = NULL;
	f->p.mind_of = mind_of;
	tenants = f;
	f->p.now_ms = 1000;
	return f;
}

/* A request for @nr new blocks under @parent; the last one. */
static u32 grow(struct kunit *test, struct fixture *f, u32 parent, u32 nr)
{
	u32 id;

	for (; nr--; parent = id) {
		id = kvt_test_block(test, f->t, KVT_READY | KVT_CTL_MEM);
		kvt_hot(f->t, id)->mem_tier = TIER;
		kvt_hot(f->t, id)->ns_group = f->ns << KVT_NS_SHIFT;
		kvt_hot(f->t, id)->hash = ++f->nr * 2654435761u;
		kvt_cold(f->t, id)->touch_ms = f->p.now_ms;
		if (parent)
			kvt_ch_link(f->t, id, parent);
		f->p.ops->insert(&f->p, TIER, id);
	}
	for (id = parent; id; id = kvt_cold(f->t, id)->parent)
		f->p.ops->touch(&f->p, TIER, id);
	kvt_policy_request(&f->p, parent);
	return parent;
}

static u32 next(struct fixture *f)
{
	u32 budget = 100000;

	return f->p.ops->next(&f->p, TIER, true, &budget);
}

static void leave(struct fixture *f, u32 id)
{
	f->p.ops->remove(&f->p, TIER, id);
	kvt_ch_unlink(f->t, id);
	atomic_set(&kvt_hot(f->t, id)->ctl, KVT_DEAD);
	kvt_table_free(f->t, id);
}

/* The one that comes back last goes first, and what is over before that. */
static void told_when(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 soon = grow(test, f, KVT_NIL, 3), late = grow(test, f, KVT_NIL, 3);
	u32 done = grow(test, f, KVT_NIL, 3), i;

	f->p.ops->hint(&f->p, soon, MINUTE);
	f->p.ops->hint(&f->p, late, 10 * MINUTE);
	f->p.ops->hint(&f->p, done, KVT_HINT_NEVER);
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, next(f), done);
		soon = kvt_cold(f->t, done)->parent;
		leave(f, done);
		done = soon;
	}
	KUNIT_EXPECT_EQ(test, next(f), late);
}

/* Who says again and again that it will be soon instead of coming pays for it, he alone. */
static void liars_hurt_themselves(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 honest = grow(test, f, KVT_NIL, 3), liar, i, before;

	f->ns = 1;
	liar = grow(test, f, KVT_NIL, 3);
	f->p.ops->hint(&f->p, liar, MINUTE);
	f->p.now_ms += 1000;
	f->p.ops->hint(&f->p, honest, MINUTE);
	before = f->p.ops->worth(&f->p, honest);
	KUNIT_EXPECT_LT(test, before, f->p.ops->worth(&f->p, liar));
	KUNIT_EXPECT_EQ(test, next(f), honest);
	f->p.now_ms += 1000;
	for (i = 0; i < 20000; i++)
		f->p.ops->hint(&f->p, liar, MINUTE);
	KUNIT_EXPECT_LE(test, before, f->p.ops->worth(&f->p, honest));
	KUNIT_EXPECT_LT(test, f->p.ops->worth(&f->p, liar) + (3u << KVT_WORTH_SHIFT), before);
	KUNIT_EXPECT_EQ(test, next(f), liar);
}

/* Its own last turn's end does not hold a hint up; another's chain does. */
static void others_chains_stay(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 head = grow(test, f, KVT_NIL, 4), tip, i;

	tip = grow(test, f, kvt_cold(f->t, head)->parent, 3);
	f->p.ops->hint(&f->p, tip, MINUTE);
	KUNIT_EXPECT_TRUE(test, kvt_class_hinted(kvt_cold(f->t, kvt_cold(f->t, head)->parent)->cls));
	head = grow(test, f, KVT_NIL, 2);
	for (i = 0; i < 6; i++) {
		f->p.now_ms += MINUTE;
		tip = grow(test, f, head, 1);
	}
	KUNIT_ASSERT_LT(test, 0u, (u32)kvt_cold(f->t, head)->shared);
	f->p.ops->hint(&f->p, tip, KVT_HINT_NEVER);
	KUNIT_EXPECT_EQ(test, (u32)kvt_cold(f->t, tip)->cls, (u32)KVT_CLS_COLD);
	KUNIT_EXPECT_TRUE(test, kvt_class_shared(kvt_cold(f->t, head)->cls));
}

/* Who comes to a block of a session whose client has said when it goes on is still a stranger. */
static void strangers_are_seen(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 tip = grow(test, f, KVT_NIL, 4);
	u32 fork = kvt_cold(f->t, kvt_cold(f->t, tip)->parent)->parent;

	f->p.ops->hint(&f->p, tip, MINUTE);
	KUNIT_EXPECT_TRUE(test, kvt_class_hinted(kvt_cold(f->t, fork)->cls));
	f->p.now_ms += 1000;
	grow(test, f, fork, 2);
	KUNIT_EXPECT_LT(test, 0u, (u32)kvt_cold(f->t, fork)->shared);
	f->p.now_ms += 1000;
	tip = grow(test, f, KVT_NIL, 4);
	fork = kvt_cold(f->t, kvt_cold(f->t, tip)->parent)->parent;
	f->p.ops->hint(&f->p, tip, KVT_HINT_NEVER);
	grow(test, f, fork, 2);
	KUNIT_EXPECT_LT(test, 0u, (u32)kvt_cold(f->t, fork)->shared);
}

/* A hint has come true also if what it was about is not read: the next turn is stored after it. */
static void kept_by_who_only_stores(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 tip = grow(test, f, KVT_NIL, 3), i = kvt_hint_class(MINUTE) - KVT_CLS_HINT, id;

	f->p.ops->hint(&f->p, tip, MINUTE);
	KUNIT_EXPECT_EQ(test, f->mind[0]->learn.broken[i], 3 * HINT_UNIT);
	f->p.now_ms += MINUTE;
	id = kvt_test_block(test, f->t, KVT_READY | KVT_CTL_MEM);
	kvt_hot(f->t, id)->mem_tier = TIER;
	kvt_hot(f->t, id)->hash = ++f->nr * 2654435761u;
	kvt_cold(f->t, id)->touch_ms = f->p.now_ms;
	kvt_ch_link(f->t, id, tip);
	f->p.ops->insert(&f->p, TIER, id);
	kvt_policy_request(&f->p, id);
	KUNIT_EXPECT_EQ(test, f->mind[0]->learn.broken[i], 0u);
	KUNIT_EXPECT_EQ(test, f->mind[0]->learn.kept[i], 3 * HINT_UNIT);
}

/* What is not believed counts among what is said to be over, where it is; and that is forgotten. */
static void cold_is_what_is_cold(struct kunit *test)
{
	struct fixture *f = setup(test);
	struct kvt_learn *l = &f->mind[0]->learn;
	u32 tip = grow(test, f, KVT_NIL, 3), last = KVT_AGE_BINS - 1, i;

	for (i = 0; kvt_hint_believed(l, kvt_hint_class(MINUTE)); i++)
		f->p.ops->hint(&f->p, tip, MINUTE);
	i = l->lost[KVT_CLS_COLD][last];
	f->p.ops->hint(&f->p, tip, MINUTE);
	KUNIT_EXPECT_EQ(test, (u32)kvt_cold(f->t, tip)->cls, (u32)KVT_CLS_COLD);
	KUNIT_EXPECT_EQ(test, (u32)l->lost[KVT_CLS_COLD][last], i + 3);
	f->p.now_ms += MINUTE;
	f->p.ops->touch(&f->p, TIER, tip);
	KUNIT_EXPECT_EQ(test, (u32)l->lost[KVT_CLS_COLD][last], i + 2);
	KUNIT_EXPECT_EQ(test, l->kept[kvt_hint_class(MINUTE) - KVT_CLS_HINT], HINT_UNIT);
	kvt_learn_row(l, KVT_CLS_COLD, NULL);
	KUNIT_EXPECT_LT(test, 0u, kvt_learn_worth(l, KVT_CLS_COLD, 0));
	for (i = 0; i < 16; i++)
		kvt_learn_over(l, 4096);
	kvt_learn_row(l, KVT_CLS_COLD, NULL);
	KUNIT_EXPECT_EQ(test, kvt_learn_worth(l, KVT_CLS_COLD, 0), 0u);
}

/* That something is to be kept, which is only said, makes no hint come true. */
static void warm_is_not_used(struct kunit *test)
{
	const u32 cls = kvt_hint_class(MINUTE);
	struct fixture *f = setup(test);
	struct kvt_learn *l = &f->mind[0]->learn;
	u32 tip = grow(test, f, KVT_NIL, 1), old = grow(test, f, KVT_NIL, 1), broken;

	f->p.ops->hint(&f->p, tip, MINUTE);
	broken = l->broken[cls - KVT_CLS_HINT];
	f->p.now_ms += MINUTE;
	f->p.ops->warm(&f->p, TIER, tip);
	KUNIT_EXPECT_EQ(test, l->broken[cls - KVT_CLS_HINT], broken);
	KUNIT_EXPECT_EQ(test, l->kept[cls - KVT_CLS_HINT], 0u);
	KUNIT_EXPECT_EQ(test, (u32)kvt_cold(f->t, tip)->cls, cls);
	KUNIT_EXPECT_EQ(test, kvt_cold(f->t, tip)->touch_ms, f->p.now_ms);
	/* What comes then is a use, of what was foretold. */
	f->p.now_ms += MINUTE;
	f->p.ops->touch(&f->p, TIER, tip);
	KUNIT_EXPECT_EQ(test, l->kept[cls - KVT_CLS_HINT], HINT_UNIT);
	/* Nor has what was given up been used. */
	f->p.ops->cool(&f->p, TIER, old);
	broken = l->lost[KVT_CLS_COLD][KVT_AGE_BINS - 1];
	f->p.ops->warm(&f->p, TIER, old);
	KUNIT_EXPECT_EQ(test, (u32)l->lost[KVT_CLS_COLD][KVT_AGE_BINS - 1], broken);
	KUNIT_EXPECT_FALSE(test, kvt_class_told(kvt_cold(f->t, old)->cls));
}

/* What another session is decoding on is not called cold, nor what is above it. */
static void held_chains_stay(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 root = grow(test, f, KVT_NIL, 1), held = grow(test, f, root, 1);
	u32 tip = grow(test, f, held, 2);

	kvt_ctl_update(kvt_hot(f->t, held), 0, 0, 0, KVT_CTL_HELD);
	f->p.ops->hint(&f->p, tip, KVT_HINT_NEVER);
	KUNIT_EXPECT_EQ(test, (u32)kvt_cold(f->t, tip)->cls, (u32)KVT_CLS_COLD);
	KUNIT_EXPECT_NE(test, (u32)kvt_cold(f->t, held)->cls, (u32)KVT_CLS_COLD);
	KUNIT_EXPECT_NE(test, (u32)kvt_cold(f->t, root)->cls, (u32)KVT_CLS_COLD);
	kvt_ctl_update(kvt_hot(f->t, held), 0, 0, KVT_CTL_HELD, 0);
	f->p.ops->hint(&f->p, tip, KVT_HINT_NEVER);
	KUNIT_EXPECT_EQ(test, (u32)kvt_cold(f->t, root)->cls, (u32)KVT_CLS_COLD);
}

/* A hint, a use that is none, or that another session holds it or does no more. */
static void anything(struct fixture *f, u32 id, u64 *rnd)
{
	u32 what = kvt_test_random(rnd) % 8;

	if (!what)
		f->p.ops->warm(&f->p, TIER, id);
	else if (what == 1)
		f->p.ops->cool(&f->p, TIER, id);
	else if (what == 2)
		kvt_ctl_update(kvt_hot(f->t, id), 0, 0,
			       kvt_test_random(rnd) % 2 ? KVT_CTL_HELD : 0, KVT_CTL_HELD);
	else
		f->p.ops->hint(&f->p, id, what < 5 ? KVT_HINT_NEVER :
			       kvt_test_random(rnd) >> kvt_test_random(rnd) % 32);
}

/* The sum of what is on lists is what is there. */
static void expect_all_listed(struct kunit *test, struct fixture *f)
{
	u32 list, sum = 0;

	for (list = 0; list < KVT_LISTS; list++)
		sum += f->p.list[TIER][list].count;
	KUNIT_EXPECT_EQ(test, sum, f->t->nr_used);
}

static void hints_from(struct kunit *test, struct fixture *f, u64 rnd)
{
	u32 step, id, tip = KVT_NIL, nr;

	for (step = 0; step < 10000; step++) {
		f->p.now_ms += kvt_test_random(&rnd) % 5 ? kvt_test_random(&rnd) % 20000 :
			       0u - kvt_test_random(&rnd) % 20000;
		f->ns = kvt_test_random(&rnd) % 2;
		id = 1 + kvt_test_random(&rnd) % 1000;
		if (kvt_ctl_state(kvt_ctl(kvt_hot(f->t, id))) != KVT_READY)
			id = tip;
		nr = kvt_test_random(&rnd) % 4;
		if (!id || !nr)
			tip = grow(test, f, kvt_test_random(&rnd) % 3 ? id : KVT_NIL, 1 + nr * 3);
		else
			anything(f, id, &rnd);
		while (f->t->nr_used > 800) {
			id = next(f);
			KUNIT_ASSERT_NE(test, id, KVT_NIL);
			leave(f, id);
			tip = id == tip ? KVT_NIL : tip;
		}
	}
}

/* Anything, at any time, of two tenants: every block is on one list, and all go at last. */
static void hints_at_random(struct kunit *test)
{
	struct fixture *f = setup(test);
	u64 seed;
	u32 id;

	for (seed = 5; seed < 10; seed++) {
		hints_from(test, f, seed);
		expect_all_listed(test, f);
		while (f->t->nr_used) {
			id = next(f);
			KUNIT_ASSERT_NE(test, id, KVT_NIL);
			leave(f, id);
		}
		KUNIT_EXPECT_EQ(test, f->p.some[TIER], 0u);
	}
}

static struct kunit_case kvt_hint_cases[] = {
	KUNIT_CASE(classes_by_time),
	KUNIT_CASE(worth_follows_time),
	KUNIT_CASE(liars_are_not_believed),
	KUNIT_CASE(at_once_is_not_believed),
	KUNIT_CASE(belief_is_not_for_nothing),
	KUNIT_CASE(the_far_future_is_not_late),
	KUNIT_CASE(done_is_doubted),
	KUNIT_CASE(told_when),
	KUNIT_CASE(liars_hurt_themselves),
	KUNIT_CASE(others_chains_stay),
	KUNIT_CASE(strangers_are_seen),
	KUNIT_CASE(kept_by_who_only_stores),
	KUNIT_CASE(cold_is_what_is_cold),
	KUNIT_CASE(warm_is_not_used),
	KUNIT_CASE(held_chains_stay),
	KUNIT_CASE(hints_at_random),
	{ }
};

static struct kunit_suite kvt_hint_suite = {
	.name = "kvt_hint",
	.test_cases = kvt_hint_cases,
};
kunit_test_suite(kvt_hint_suite);
