// SPDX-License-Identifier: GPL-2.0
/*
 * The policy "reuse": ages, hazards and worth, sessions, what goes first.
 */
#include "kvt_reuse_kunit.h"
#include "../core/kvt_policy_gate.h"

/* --- what is learned ----------------------------------------------------------------- */

static struct kvt_learn *learn_new(struct kunit *test)
{
	struct kvt_learn *l = kunit_kzalloc(test, sizeof(*l), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, l);
	kvt_learn_init(l);
	return l;
}

static void learn_many(struct kvt_learn *l, u32 cls, u32 age_ms, bool used, u32 nr)
{
	while (nr--)
		kvt_learn_use(l, cls, age_ms, used);
}

/* Bins have the edges they are said to have, and take any age. */
static void ages_fall_into_bins(struct kunit *test)
{
	u32 bin;

	KUNIT_EXPECT_EQ(test, kvt_age_bin(0), 0u);
	KUNIT_EXPECT_EQ(test, kvt_age_bin((1u << KVT_AGE_SHIFT) - 1), 0u);
	for (bin = 1; bin < KVT_AGE_BINS; bin++) {
		KUNIT_EXPECT_EQ(test, kvt_age_bin(kvt_age_of_bin(bin)), bin);
		KUNIT_EXPECT_EQ(test, kvt_age_bin(kvt_age_of_bin(bin) - 1), bin - 1);
		KUNIT_EXPECT_LT(test, kvt_age_of_bin(bin), kvt_age_of_bin(bin + 1));
	}
	KUNIT_EXPECT_EQ(test, kvt_age_bin(U32_MAX), KVT_AGE_BINS - 1u);
}

/* A clock that went back a little makes no old blocks; one that wrapped is right. */
static void clocks_go_back(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, kvt_age_since(1000, 400), 600u);
	KUNIT_EXPECT_EQ(test, kvt_age_since(400, 1000), 0u);
	KUNIT_EXPECT_EQ(test, kvt_age_since(0, KVT_AGE_BACK_MS), 0u);
	KUNIT_EXPECT_EQ(test, kvt_age_since(10, U32_MAX - 9), 20u);
	KUNIT_EXPECT_EQ(test, kvt_age_since(40u * 24 * 60 * MINUTE, 0), 40u * 24 * 60 * MINUTE);
}

/* With nothing known, worth falls with age: the order of LRU. */
static void knows_nothing(struct kunit *test)
{
	struct kvt_learn *l = learn_new(test);
	u32 cls, bin;

	for (cls = KVT_CLS_SHARED; cls < KVT_CLASSES; cls++) {
		for (bin = 2; bin < KVT_AGE_BINS; bin++)
			KUNIT_EXPECT_LE(test, kvt_learn_worth(l, cls, kvt_age_of_bin(bin)),
					kvt_learn_worth(l, cls, kvt_age_of_bin(bin - 1)));
		KUNIT_EXPECT_LT(test, 0u, kvt_learn_worth(l, cls, U32_MAX));
	}
	KUNIT_EXPECT_EQ(test, kvt_learn_worth(l, KVT_CLS_COLD, 0), 0u);
}

/* What is used after a minute, if at all, is worth most just before that. */
static void worth_follows_hazard(struct kunit *test)
{
	struct kvt_learn *l = learn_new(test);
	u32 cls = KVT_CLS_SESSION + 2, dead = KVT_CLS_SESSION + 3;

	learn_many(l, cls, MINUTE, true, 500);
	learn_many(l, cls, 20 * MINUTE, false, 500);
	learn_many(l, dead, 20 * MINUTE, false, 500);
	kvt_learn_row(l, KVT_CLS_NEW, NULL);
	kvt_learn_row(l, cls, NULL);
	kvt_learn_row(l, dead, NULL);
	KUNIT_EXPECT_LT(test, kvt_learn_worth(l, cls, 0), kvt_learn_worth(l, cls, 40000));
	KUNIT_EXPECT_LT(test, kvt_learn_worth(l, cls, 5 * MINUTE), kvt_learn_worth(l, cls, 0));
	KUNIT_EXPECT_LT(test, kvt_learn_worth(l, dead, 0), kvt_learn_worth(l, cls, 0));
}

/* Those who still wait count as not used up to their age. */
static void waiting_counts(struct kunit *test)
{
	struct kvt_learn *l = learn_new(test);
	u16 waiting[KVT_AGE_BINS] = { 0 };
	u32 cls = KVT_CLS_SESSION, before;

	learn_many(l, cls, MINUTE, true, 10);
	kvt_learn_row(l, cls, NULL);
	before = kvt_learn_worth(l, cls, 0);
	waiting[kvt_age_bin(30 * MINUTE)] = 1000;
	kvt_learn_row(l, cls, waiting);
	KUNIT_EXPECT_LT(test, kvt_learn_worth(l, cls, 0), before);
	/* One nth of the uses for each moment: a factor makes a difference of its log. */
	KUNIT_EXPECT_LT(test, kvt_learn_worth(l, cls, 0) + (2u << KVT_WORTH_SHIFT), before);
}

static u32 counted(const struct kvt_learn *l, u32 cls)
{
	u32 bin, sum = 0;

	for (bin = 0; bin < KVT_AGE_BINS; bin++)
		sum += l->used[cls][bin] + l->lost[cls][bin];
	return sum;
}

/* Counters at their limit are halved, and rows of full counters do not overflow. */
static void counters_at_limits(struct kunit *test)
{
	struct kvt_learn *l = learn_new(test);
	u16 waiting[KVT_AGE_BINS];
	u32 cls = KVT_CLS_SHARED, bin;

	memset(waiting, 0xff, sizeof(waiting));
	for (bin = 0; bin < KVT_AGE_BINS; bin += 7)
		learn_many(l, cls, kvt_age_of_bin(bin), true, 3 * KVT_COUNT_MAX);
	KUNIT_EXPECT_LE(test, counted(l, cls), KVT_COUNT_MAX);
	KUNIT_EXPECT_EQ(test, counted(l, cls), (u32)l->total[cls]);
	KUNIT_EXPECT_EQ(test, counted(l, KVT_CLS_POOL), (u32)l->total[KVT_CLS_POOL]);
	kvt_learn_row(l, KVT_CLS_POOL, NULL);
	kvt_learn_row(l, cls, NULL);
	KUNIT_EXPECT_LT(test, kvt_learn_worth(l, cls, 100), 32u << KVT_WORTH_SHIFT);
	kvt_learn_row(l, KVT_CLS_POOL, waiting);
	kvt_learn_row(l, cls, waiting);
	KUNIT_EXPECT_LT(test, kvt_learn_worth(l, cls, 100), 20u << KVT_WORTH_SHIFT);
}

/* What was told is taken back, and never more than there is. */
static void counts_are_taken_back(struct kunit *test)
{
	struct kvt_learn *l = learn_new(test);
	struct kvt_learn *was = kunit_kzalloc(test, sizeof(*was), GFP_KERNEL);
	u32 cls = KVT_CLS_SESSION + 1;

	KUNIT_ASSERT_NOT_NULL(test, was);
	learn_many(l, cls, MINUTE, true, 3);
	memcpy(was, l, sizeof(*was));
	kvt_learn_use(l, cls, 2000, true);
	kvt_learn_use(l, cls, 2000, false);
	KUNIT_EXPECT_EQ(test, (u32)l->total[KVT_CLS_NEW], 5u);
	kvt_learn_forget(l, cls, 2000, false);
	kvt_learn_forget(l, cls, 2000, true);
	KUNIT_EXPECT_EQ(test, memcmp(was, l, sizeof(*was)), 0);
	kvt_learn_forget(l, cls, 2000, true);
	kvt_learn_forget(l, cls, MINUTE, false);
	KUNIT_EXPECT_EQ(test, memcmp(was, l, sizeof(*was)), 0);
}

/* 2^KVT_WORTH_SHIFT times the logarithm; linear between powers of two. */
static u32 log_of(u64 v)
{
	u32 top = 0;

	while (v >> (top + 1))
		top++;
	return (top << KVT_WORTH_SHIFT) + (u32)(((v << KVT_WORTH_SHIFT) >> top) &
						((1u << KVT_WORTH_SHIFT) - 1));
}

/* The best of all horizons, each tried. */
static u32 best_horizon(const u16 *hazard, u32 from)
{
	u64 best = 1, place = 0, ratio;
	u32 alive = 1u << 30, b, gone;

	for (b = from; b < KVT_AGE_BINS; b++) {
		gone = (u32)(((u64)alive * hazard[b]) >> 16);
		place += (u64)((alive - gone / 2) >> 14) *
			 (kvt_age_of_bin(b + 1) - kvt_age_of_bin(b));
		alive -= gone;
		ratio = div64_u64((u64)((1u << 30) - alive) << 26, place + 1);
		best = max(best, ratio);
	}
	return log_of(min(best, (u64)U32_MAX));
}

/* Worth is that of the best horizon, whatever the hazards. */
static void worth_is_of_best_horizon(struct kunit *test)
{
	struct kvt_learn *l = learn_new(test);
	u32 round, i, bin, want, got;
	u64 rng = 7;

	for (round = 0; round < 200; round++) {
		kvt_learn_init(l);
		for (i = kvt_test_random(&rng) % 40; i; i--)
			learn_many(l, KVT_CLS_NEW, kvt_age_of_bin(kvt_test_random(&rng) % 32),
				   kvt_test_random(&rng) % 3, kvt_test_random(&rng) % 300);
		kvt_learn_row(l, KVT_CLS_NEW, NULL);
		for (bin = 0; bin < KVT_AGE_BINS; bin++) {
			want = best_horizon(l->hazard[0], bin);
			got = kvt_learn_worth(l, KVT_CLS_NEW, kvt_age_of_bin(bin));
			/* To 1/256 of an octave. */
			KUNIT_ASSERT_LT(test, got, want + 8);
			KUNIT_ASSERT_LT(test, want, got + 8);
		}
	}
}

/* --- sessions ------------------------------------------------------------------------- */

static struct kvt_turns *turns_new(struct kunit *test)
{
	struct kvt_turns *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	kvt_turns_init(t);
	return t;
}

static void turn_add(struct kvt_turns *t, u32 name, u32 now_ms)
{
	struct kvt_turn *e = kvt_turn_slot(t, name, now_ms);

	e->name = name;
	e->time = (u16)(now_ms >> KVT_TURN_SHIFT);
	e->cls = KVT_CLS_SESSION;
}

static u32 turns_count(const struct kvt_turns *t)
{
	u16 waiting[KVT_AGE_BINS] = { 0 };
	u32 bin, sum = 0;

	kvt_turns_waiting(t, KVT_CLS_NEW, 0, waiting);
	for (bin = 0; bin < KVT_AGE_BINS; bin++)
		sum += waiting[bin];
	return sum;
}

/* The newest are all there; of the oldest, a sample. */
static void turns_forget_the_old(struct kunit *test)
{
	struct kvt_turns *t = turns_new(test);
	u32 i, name = 1, now_ms = 0, first[64], left = 0;

	for (i = 0; i < 20000; i++) {
		name = name * 1664525u + 1013904223u;
		now_ms += 500;
		if (i < ARRAY_SIZE(first))
			first[i] = name;
		turn_add(t, name, now_ms);
		KUNIT_ASSERT_NOT_NULL(test, kvt_turn_find(t, name));
	}
	for (i = 0; i < ARRAY_SIZE(first); i++)
		left += kvt_turn_find(t, first[i]) != NULL;
	KUNIT_EXPECT_LT(test, left, 10u);
	KUNIT_EXPECT_EQ(test, turns_count(t), KVT_TURN_SETS * KVT_TURN_WAYS);
	KUNIT_EXPECT_NULL(test, kvt_turn_find(t, 0));
}

/* Nothing is kept until its time has wrapped, however seldom requests come. */
static void turns_expire(struct kunit *test)
{
	struct kvt_learn *l = learn_new(test);
	struct kvt_turns *t = turns_new(test);
	u32 step, now_ms;

	for (step = MINUTE; step < 1000 * MINUTE; step *= 3) {
		kvt_turns_init(t);
		for (now_ms = 0; now_ms < 100; now_ms++)
			turn_add(t, now_ms * 77 + 1, 0);
		for (now_ms = 0; now_ms < 256 * MINUTE; now_ms += step)
			kvt_turns_expire(t, l, now_ms);
		kvt_turns_expire(t, l, now_ms);
		KUNIT_EXPECT_EQ(test, turns_count(t), 0u);
	}
}

static void turns_clock_goes_back(struct kunit *test)
{
	struct kvt_learn *l = learn_new(test);
	struct kvt_turns *t = turns_new(test);

	turn_add(t, 5, 100 * MINUTE);
	KUNIT_EXPECT_EQ(test, kvt_turn_age_ms(kvt_turn_find(t, 5), 101 * MINUTE + KVT_TURN_MS) /
			1000, 60u);
	KUNIT_EXPECT_EQ(test, kvt_turn_age_ms(kvt_turn_find(t, 5), 99 * MINUTE), 0u);
	kvt_turns_expire(t, l, 100 * MINUTE);
	kvt_turns_expire(t, l, 60 * MINUTE);
	KUNIT_EXPECT_TRUE(test, kvt_turn_find(t, 5) != NULL);
}

/* --- blocks ---------------------------------------------------------------------------- */

static u32 next(struct fixture *f, bool leaf)
{
	u32 budget = 100000;

	return f->p.ops->next(&f->p, TIER, leaf, &budget);
}

static void leave(struct fixture *f, u32 id)
{
	f->p.ops->remove(&f->p, TIER, id);
	kvt_ch_unlink(f->t, id);
	atomic_set(&kvt_hot(f->t, id)->ctl, KVT_DEAD);
	kvt_table_free(f->t, id);
}

/* Everything goes at last, leaves only, each once. */
static void drains(struct kunit *test, struct fixture *f)
{
	u32 nr = f->t->nr_used, id;

	while (nr--) {
		id = next(f, true);
		KUNIT_ASSERT_NE(test, id, KVT_NIL);
		KUNIT_ASSERT_TRUE(test, kvt_ch_leaf(f->t, id));
		leave(f, id);
	}
	KUNIT_EXPECT_EQ(test, next(f, true), KVT_NIL);
	KUNIT_EXPECT_EQ(test, f->p.some[TIER], 0u);
}

static void leaves_go_first(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 i, tip, root;

	for (i = 0; i < 30; i++) {
		f->p.now_ms += 700;
		root = grow(test, f, KVT_NIL, 3);
		request(f, root);
		tip = grow(test, f, root, 4);
		request(f, tip);
		f->p.now_ms += 700;
		request(f, grow(test, f, root, 2));
	}
	drains(test, f);
}

/* A session's next turn is known, by name after its blocks have gone, too. */
static void sessions_go_on(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 head = grow(test, f, KVT_NIL, 8), tip = grow(test, f, head, 2), name, again;

	request(f, tip);
	KUNIT_EXPECT_EQ(test, f->p.only->learn.total[KVT_CLS_NEW], 0u);
	f->p.now_ms += MINUTE;
	name = kvt_hot(f->t, kvt_cold(f->t, tip)->parent)->hash;
	again = kvt_cold(f->t, tip)->parent;
	leave(f, tip);
	leave(f, again);
	again = grow(test, f, head, 1);
	kvt_hot(f->t, again)->hash = name;
	request(f, grow(test, f, again, 3));
	KUNIT_EXPECT_EQ(test, f->p.only->learn.total[KVT_CLS_NEW], 1u);
	KUNIT_EXPECT_EQ(test, f->p.only->learn.used[KVT_CLS_NEW][kvt_age_bin(MINUTE)], 1u);
	KUNIT_EXPECT_EQ(test, kvt_cold(f->t, head)->shared, 0u);
	/* Not by the table, but by the mark. */
	kvt_turns_init(&f->p.only->turns);
	f->p.now_ms += MINUTE;
	again = kvt_cold(f->t, head)->first_child;
	while (kvt_cold(f->t, again)->first_child)
		again = kvt_cold(f->t, again)->first_child;
	request(f, grow(test, f, again, 3));
	KUNIT_EXPECT_EQ(test, kvt_cold(f->t, head)->shared, 0u);
}

/* Strangers behind one beginning are no sessions; what they share is known as that. */
static void strangers_share(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 head = grow(test, f, KVT_NIL, 2), tip = KVT_NIL, i;

	for (i = 0; i < 8; i++) {
		tip = grow(test, f, head, 1);
		f->p.now_ms += MINUTE;
		request(f, tip);
	}
	KUNIT_EXPECT_LT(test, 4u, kvt_cold(f->t, head)->shared);
	KUNIT_EXPECT_TRUE(test, kvt_class_shared(kvt_cold(f->t, head)->cls));
	KUNIT_EXPECT_FALSE(test, kvt_class_shared(kvt_cold(f->t, tip)->cls));
}

/* A flood of blocks that nobody comes back to does not push out those of a session. */
static void scans_pass_by(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 i, k, tip, left;

	tip = grow(test, f, KVT_NIL, 10);
	request(f, tip);
	for (i = 0; i < 300; i++) {
		f->p.now_ms += 5000;
		tip = grow(test, f, tip, 1);
		request(f, tip);
		for (k = 0; k < 4; k++) {
			f->p.now_ms += 100;
			request(f, grow(test, f, KVT_NIL, 20));
		}
		while (f->t->nr_used > 350)
			leave(f, next(f, true));
	}
	for (left = 0; tip; tip = kvt_cold(f->t, tip)->parent)
		left += kvt_ctl_state(kvt_ctl(kvt_hot(f->t, tip))) == KVT_READY;
	KUNIT_EXPECT_EQ(test, left, 310u);
}

static void cooled_goes_first(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 a = grow(test, f, KVT_NIL, 1), b = grow(test, f, KVT_NIL, 1);

	request(f, b);
	request(f, a);
	f->p.ops->cool(&f->p, TIER, a);
	KUNIT_EXPECT_EQ(test, next(f, true), a);
	f->p.ops->skip(&f->p, TIER, a);
	KUNIT_EXPECT_EQ(test, next(f, true), b);
	f->p.ops->touch(&f->p, TIER, a);
	drains(test, f);
}

/* A request of its own, cooled: it goes before anything else. */
static u32 cold(struct kunit *test, struct fixture *f, u32 nr)
{
	u32 tip = grow(test, f, KVT_NIL, nr);

	request(f, tip);
	f->p.ops->cool(&f->p, TIER, tip);
	return tip;
}

static u32 next_or_skip(struct fixture *f, bool leaf, u32 unless)
{
	u32 id = next(f, leaf);

	if (id == unless)
		f->p.ops->skip(&f->p, TIER, id);
	return id;
}

/* What is leased, or held, when it is to go comes back once it is not. */
static void aside_comes_back(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 leased = cold(test, f, 1), held = cold(test, f, 1), i, id, seen = 0;

	request(f, grow(test, f, KVT_NIL, 5));
	kvt_lease_try(kvt_hot(f->t, leased));
	kvt_ctl_update(kvt_hot(f->t, held), 0, 0, 0, KVT_CTL_HELD);
	for (i = 0; i < 20; i++) {
		f->p.now_ms += 10;
		id = next(f, true);
		if (id != leased && id != held)
			continue;
		f->p.ops->skip(&f->p, TIER, id);
		seen++;
	}
	/* Looked at again, but not offered as long as it shows that they cannot go. */
	KUNIT_EXPECT_EQ(test, seen, 2u);
	kvt_lease_put(kvt_hot(f->t, leased));
	kvt_ctl_update(kvt_hot(f->t, held), 0, 0, KVT_CTL_HELD, 0);
	for (i = 0; i < 2; i++) {
		f->p.now_ms += 10;
		id = next(f, true);
		KUNIT_EXPECT_TRUE(test, id == leased || id == held);
		leave(f, id);
	}
	drains(test, f);
}

/* Whatever else is aside: of many that cannot go each gets its turn. */
static void aside_takes_turns(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 blocks[40], i, tries;

	for (i = 0; i < ARRAY_SIZE(blocks); i++) {
		blocks[i] = cold(test, f, 1);
		kvt_lease_try(kvt_hot(f->t, blocks[i]));
	}
	/* Some with children, too. */
	request(f, grow(test, f, KVT_NIL, 50));
	for (i = 0; i < ARRAY_SIZE(blocks); i++)
		f->p.ops->skip(&f->p, TIER, next(f, true));
	for (i = 0; i < ARRAY_SIZE(blocks); i++) {
		kvt_lease_put(kvt_hot(f->t, blocks[i]));
		for (tries = 0; tries < 20 && next(f, true) != blocks[i]; tries++)
			f->p.now_ms++;
		KUNIT_EXPECT_LT(test, tries, 20u);
		leave(f, blocks[i]);
	}
	drains(test, f);
}

/* What has children when only a leaf will do is there for the next who takes any. */
static void parents_come_back(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 tip = cold(test, f, 6), id, i, nr = 0;

	for (id = kvt_cold(f->t, tip)->parent; id; id = kvt_cold(f->t, id)->parent)
		f->p.ops->cool(&f->p, TIER, id);
	request(f, grow(test, f, KVT_NIL, 3));
	kvt_lease_try(kvt_hot(f->t, tip));
	KUNIT_EXPECT_EQ(test, next_or_skip(f, true, tip), tip);
	/* The five above the leased one are aside now. */
	KUNIT_EXPECT_NE(test, next(f, true), KVT_NIL);
	for (i = 0; i < 10; i++) {
		f->p.now_ms++;
		id = next(f, false);
		if (kvt_cold(f->t, id)->cls != KVT_CLS_COLD)
			break;
		KUNIT_EXPECT_NE(test, id, tip);
		f->p.ops->skip(&f->p, TIER, id);
		kvt_ctl_update(kvt_hot(f->t, id), 0, 0, 0, KVT_CTL_MOVING);
		nr++;
	}
	KUNIT_EXPECT_EQ(test, nr, 5u);
}

/* --- namespaces ------------------------------------------------------------------------ */

static struct fixture *tenants;

static struct kvt_mind *mind_of(const struct kvt_policy *p, u32 ns)
{
	return &tenants->p == p ? tenants->mind[ns % 2] : NULL;
}

/* Two namespaces instead of one; the first goes on with what it had. */
static void two_tenants(struct kunit *test, struct fixture *f)
{
	tenants = f;
	f->mind[0] = f->p.only;
	f->mind[1] = kvt_test_mind(test, &f->p);
	f->p.only = NULL;
	f->p.mind_of = mind_of;
}

/* A session of a few turns, some time apart, and one that is not gone on with. */
static void some_turns(struct kunit *test, struct fixture *f, u32 gap_ms)
{
	u32 tip = grow(test, f, KVT_NIL, 4), i;

	request(f, tip);
	for (i = 0; i < 4; i++) {
		f->p.now_ms += gap_ms;
		tip = grow(test, f, tip, 2);
		request(f, tip);
	}
	request(f, grow(test, f, KVT_NIL, 3));
}

/*
 * What a tenant does, be it with blocks of the same names, changes nothing that is known of
 * another.
 */
static void tenants_are_apart(struct kunit *test)
{
	struct fixture *alone = setup(test), *both = setup(test);
	u32 i, nr, now_ms, now_after_ms;

	two_tenants(test, both);
	for (i = 0; i < 30; i++) {
		some_turns(test, alone, 20000);
		nr = both->nr;
		now_ms = both->p.now_ms;
		some_turns(test, both, 20000);
		/* In between the other one goes on at once, and seldom. */
		now_after_ms = both->p.now_ms;
		both->nr = nr;
		both->p.now_ms = now_ms;
		both->ns = 1;
		some_turns(test, both, i % 2 ? 300 : 900000);
		both->ns = 0;
		both->p.now_ms = now_after_ms;
	}
	KUNIT_EXPECT_LT(test, 100u, both->mind[0]->learn.total[KVT_CLS_NEW]);
	KUNIT_EXPECT_EQ(test, both->mind[1]->nr_requests, both->mind[0]->nr_requests);
	KUNIT_EXPECT_NE(test, 0, memcmp(&both->mind[1]->learn, &both->mind[0]->learn,
					sizeof(both->mind[0]->learn)));
	KUNIT_EXPECT_EQ(test, 0, memcmp(&alone->p.only->learn, &both->mind[0]->learn,
					sizeof(both->mind[0]->learn)));
	KUNIT_EXPECT_EQ(test, 0, memcmp(&alone->p.only->turns, &both->mind[0]->turns,
					sizeof(both->mind[0]->turns)));
}

/* However long a chain is, a request is about so many of its blocks. */
static void long_chains_are_cut(struct kunit *test)
{
	struct fixture *f = setup(test);
	struct kvt_call c = { .who = 1, .request = 7, .nr = 1 };
	u32 first, tip;

	f->t = kvt_test_table(test, 5);
	f->p.table = f->t;
	first = grow(test, f, KVT_NIL, 1);
	c.tip = first;
	kvt_policy_call(&f->p, &c);
	KUNIT_EXPECT_EQ(test, f->p.nr_steps, 2u);
	tip = grow(test, f, first, KVT_REQUEST_MAX);
	c.tip = tip;
	kvt_policy_call(&f->p, &c);
	KUNIT_EXPECT_EQ(test, f->p.nr_steps, 2 + 3 * KVT_REQUEST_MAX + 4 + KVT_REQUEST_MAX);
	/* It was a part of the same request. */
	KUNIT_EXPECT_EQ(test, f->p.only->nr_requests, 1u);
	tip = grow(test, f, tip, KVT_ASK_STEPS - KVT_REQUEST_MAX);
	c.request++;
	c.tip = first;
	kvt_policy_call(&f->p, &c);
	KUNIT_EXPECT_EQ(test, f->p.only->nr_requests, 2u);
	/* Too far away to be known as that. */
	c.tip = tip;
	kvt_policy_call(&f->p, &c);
	KUNIT_EXPECT_EQ(test, f->p.only->nr_requests, 3u);
	KUNIT_EXPECT_EQ(test, f->p.nr_steps,
			8 + 6 * KVT_REQUEST_MAX + KVT_ASK_STEPS + REUSE_LEARN_STEPS);
	/* The next part of a chain that is longer than that is. */
	c.tip = grow(test, f, tip, 1);
	kvt_policy_call(&f->p, &c);
	KUNIT_EXPECT_EQ(test, f->p.only->nr_requests, 3u);
	drains(test, f);
}

/* A change of policy at any time loses nothing. */
static void changes_hands(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 i;

	for (i = 0; i < 20; i++) {
		f->p.now_ms += 300;
		request(f, grow(test, f, KVT_NIL, 1 + i));
		f->p.ops = i % 3 ? &kvt_policy_reuse : &kvt_policy_lru;
	}
	f->p.ops = &kvt_policy_lru;
	for (i = 0; i < 50; i++)
		leave(f, next(f, true));
	f->p.ops = &kvt_policy_reuse;
	drains(test, f);
}

/* Half of what could be written is, once the tier below is full. */
static void writes_are_gated(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 tip = grow(test, f, KVT_NIL, 4), i, let_in = 0, bar;

	request(f, tip);
	KUNIT_EXPECT_TRUE(test, f->p.ops->admit(&f->p, TIER + 1, tip, true));
	KUNIT_EXPECT_EQ(test, f->p.only->bar, 0u);
	for (i = 0; i < 6000; i++)
		f->p.ops->admit(&f->p, TIER + 1, tip, false);
	for (i = 0; i < 6000; i++)
		let_in += f->p.ops->admit(&f->p, TIER + 1, tip, false);
	KUNIT_EXPECT_LT(test, let_in, 3100u);
	KUNIT_EXPECT_LT(test, 2900u, let_in);
	/* What is asked about again and again, since there is no place, counts once. */
	bar = f->p.only->bar;
	for (i = 0; i < 100; i++) {
		KUNIT_ASSERT_TRUE(test, f->p.ops->admit(&f->p, TIER + 1,
							kvt_cold(f->t, tip)->parent, false));
		f->p.ops->unadmit(&f->p, tip);
	}
	KUNIT_EXPECT_EQ(test, bar, f->p.only->bar);
	for (i = 0; i < 6000; i++)
		KUNIT_EXPECT_TRUE(test, f->p.ops->admit(&f->p, TIER + 1,
							kvt_cold(f->t, tip)->parent, false));
	KUNIT_EXPECT_LE(test, f->p.only->bar, (u32)U16_MAX);
	KUNIT_EXPECT_TRUE(test, f->p.ops->keep(&f->p, 24, 100));
	KUNIT_EXPECT_FALSE(test, f->p.ops->keep(&f->p, 25, 100));
}

/* To another tier, where it is as old as before. */
static void put_down(struct fixture *f, u32 id)
{
	f->p.ops->remove(&f->p, TIER, id);
	kvt_hot(f->t, id)->mem_tier = TIER + 1;
	f->p.ops->insert(&f->p, TIER + 1, id);
}

/* A write is weighed against what it would displace, not against what stays anyway. */
static void writes_displace_what_can_go(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 old[4], mid, young, i;

	for (i = 0; i < ARRAY_SIZE(old); i++) {
		old[i] = grow(test, f, KVT_NIL, 1);
		request(f, old[i]);
		put_down(f, old[i]);
	}
	f->p.now_ms += 60 * MINUTE;
	mid = grow(test, f, KVT_NIL, 1);
	request(f, mid);
	f->p.now_ms += 10 * MINUTE;
	young = grow(test, f, KVT_NIL, 1);
	request(f, young);
	put_down(f, young);
	/* Nothing is known: who is older is worth less. */
	KUNIT_EXPECT_TRUE(test, f->p.ops->admit(&f->p, TIER + 1, mid, false));
	f->p.only->bar = 0;
	kvt_lease_try(kvt_hot(f->t, old[0]));
	kvt_ctl_update(kvt_hot(f->t, old[1]), 0, 0, 0, KVT_CTL_HELD);
	kvt_ctl_update(kvt_hot(f->t, old[2]), 0, 0, 0, KVT_CTL_PINNED);
	kvt_ctl_update(kvt_hot(f->t, old[3]), 0, 0, 0, KVT_CTL_MOVING);
	f->p.only->bar = 1;
	KUNIT_EXPECT_FALSE(test, f->p.ops->admit(&f->p, TIER + 1, mid, false));
	/* It has a bar, be it the lowest. */
	KUNIT_EXPECT_EQ(test, f->p.only->bar, 1u);
	f->p.only->bar = 0;
	KUNIT_EXPECT_TRUE(test, f->p.ops->admit(&f->p, TIER + 1, young, false));
}

/* What was used below trades places with what is worth less, and with nothing else. */
static void trades_for_more(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 low, young;

	low = grow(test, f, KVT_NIL, 1);
	request(f, low);
	put_down(f, low);
	f->p.now_ms += 10 * MINUTE;
	young = grow(test, f, KVT_NIL, 1);
	request(f, young);
	KUNIT_EXPECT_FALSE(test, kvt_gate_trades(&f->p, low, young));
	KUNIT_EXPECT_FALSE(test, kvt_gate_trades(&f->p, young, young));
	f->p.now_ms += 10 * MINUTE;
	f->p.ops->touch(&f->p, TIER + 1, low);
	request(f, low);
	KUNIT_EXPECT_TRUE(test, kvt_gate_trades(&f->p, low, young));
	f->p.ops->cool(&f->p, TIER + 1, low);
	KUNIT_EXPECT_FALSE(test, kvt_gate_trades(&f->p, low, young));
	/* Who goes by use alone takes what was used. */
	f->p.ops = &kvt_policy_lru;
	KUNIT_EXPECT_TRUE(test, kvt_gate_trades(&f->p, low, young));
}

/* What would not be let in is not carried. */
static void carried_is_what_is_let_in(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 id = grow(test, f, KVT_NIL, 1), worth;

	request(f, id);
	worth = f->p.ops->worth(&f->p, id);
	KUNIT_EXPECT_TRUE(test, kvt_policy_above(&f->p, id));
	f->p.only->bar = f->p.low_bar = worth;
	KUNIT_EXPECT_TRUE(test, kvt_policy_above(&f->p, id));
	f->p.only->bar = f->p.low_bar = worth + 1;
	KUNIT_EXPECT_FALSE(test, kvt_policy_above(&f->p, id));
	f->p.ops = &kvt_policy_lru;
	KUNIT_EXPECT_TRUE(test, kvt_policy_above(&f->p, id));
}

/* Who no longer writes is not held to its own old bar while others write what is worth less. */
static void idle_tenants_stay(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 idle = grow(test, f, KVT_NIL, 1), scan, i;

	request(f, idle);
	two_tenants(test, f);
	f->ns = 1;
	scan = grow(test, f, KVT_NIL, 1);
	request(f, scan);
	f->mind[0]->bar = f->p.low_bar = f->p.ops->worth(&f->p, idle) + 1;
	f->mind[1]->bar = 100;
	KUNIT_EXPECT_FALSE(test, kvt_policy_above(&f->p, idle));
	f->p.ops->admit(&f->p, TIER + 1, scan, false);
	KUNIT_EXPECT_LT(test, f->p.low_bar, 200u);
	KUNIT_EXPECT_TRUE(test, kvt_policy_above(&f->p, idle));
	/* Once that one has gone, the bar of those that are left is what counts. */
	for (i = 0; i < 6000; i++)
		f->p.ops->admit(&f->p, TIER + 1, idle, false);
	kvt_cold(f->t, scan)->cls = KVT_CLS_COLD;
	f->p.ops->admit(&f->p, TIER + 1, scan, false);
	KUNIT_EXPECT_EQ(test, f->p.low_bar, (u32)f->mind[0]->bar);
}

/* From a block to the end of its chain, if that is not far. */
static void tips_are_found(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 tip = grow(test, f, KVT_NIL, 5), first = tip, steps = 4;

	while (kvt_cold(f->t, first)->parent)
		first = kvt_cold(f->t, first)->parent;
	KUNIT_EXPECT_EQ(test, kvt_gate_tip(&f->p, first, &steps), tip);
	KUNIT_EXPECT_EQ(test, steps, 0u);
	KUNIT_EXPECT_EQ(test, kvt_gate_tip(&f->p, tip, &steps), tip);
	KUNIT_EXPECT_EQ(test, kvt_gate_tip(&f->p, kvt_cold(f->t, tip)->parent, &steps), KVT_NIL);
	steps = 3;
	KUNIT_EXPECT_EQ(test, kvt_gate_tip(&f->p, first, &steps), KVT_NIL);
	KUNIT_EXPECT_EQ(test, steps, 0u);
}

/* What a namespace may take. */
static void tables_are_bounded(struct kunit *test)
{
	KUNIT_EXPECT_LE(test, sizeof(struct kvt_learn) + sizeof(struct kvt_turns), 16384ul);
	KUNIT_EXPECT_LE(test, KVT_CLASSES, KVT_LISTS);
}

static struct kunit_case kvt_reuse_cases[] = {
	KUNIT_CASE(ages_fall_into_bins),
	KUNIT_CASE(clocks_go_back),
	KUNIT_CASE(knows_nothing),
	KUNIT_CASE(worth_follows_hazard),
	KUNIT_CASE(waiting_counts),
	KUNIT_CASE(counters_at_limits),
	KUNIT_CASE(counts_are_taken_back),
	KUNIT_CASE(worth_is_of_best_horizon),
	KUNIT_CASE(turns_forget_the_old),
	KUNIT_CASE(turns_expire),
	KUNIT_CASE(turns_clock_goes_back),
	KUNIT_CASE(leaves_go_first),
	KUNIT_CASE(sessions_go_on),
	KUNIT_CASE(strangers_share),
	KUNIT_CASE(scans_pass_by),
	KUNIT_CASE(cooled_goes_first),
	KUNIT_CASE(aside_comes_back),
	KUNIT_CASE(aside_takes_turns),
	KUNIT_CASE(parents_come_back),
	KUNIT_CASE(tenants_are_apart),
	KUNIT_CASE(long_chains_are_cut),
	KUNIT_CASE(changes_hands),
	KUNIT_CASE(writes_are_gated),
	KUNIT_CASE(trades_for_more),
	KUNIT_CASE(writes_displace_what_can_go),
	KUNIT_CASE(carried_is_what_is_let_in),
	KUNIT_CASE(idle_tenants_stay),
	KUNIT_CASE(tips_are_found),
	KUNIT_CASE(tables_are_bounded),
	{ }
};

static struct kunit_suite kvt_reuse_suite = {
	.name = "kvt_reuse",
	.test_cases = kvt_reuse_cases,
};
kunit_test_suite(kvt_reuse_suite);
