// SPDX-License-Identifier: GPL-2.0
/*
 * Policy table and LRU.
 */
#include "kvt_kunit.h"
#include "../core/kvt_chain.h"
#include "../core/kvt_hint.h"
#include "../core/kvt_policy.h"
#include "../core/kvt_policy_gate.h"

#define TIER	3
#define NR	10

struct fixture {
	struct kvt_policy p;
	struct kvt_table *t;
	u32 id[NR];
};

static u32 block(struct kunit *test, struct fixture *f)
{
	u32 id = kvt_test_block(test, f->t, KVT_READY | KVT_CTL_MEM);

	kvt_hot(f->t, id)->mem_tier = TIER;
	return id;
}

/* NR unrelated blocks, id[0] the oldest; last used a while before that. */
static struct fixture *setup(struct kunit *test)
{
	struct fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->t = kvt_test_table(test, 6);
	kvt_policy_init(&f->p, &kvt_policy_lru, f->t);
	for (i = 0; i < NR; i++) {
		f->p.now_ms = 1000 + i;
		f->id[i] = block(test, f);
		kvt_cold(f->t, f->id[i])->touch_ms = 500 + i;
		f->p.ops->insert(&f->p, TIER, f->id[i]);
	}
	return f;
}

static u32 next(struct fixture *f, bool leaf, u32 budget)
{
	return f->p.ops->next(&f->p, TIER, leaf, &budget);
}

/* Takes block after block out and compares with @want (indices into id[]). */
static void drains_as(struct kunit *test, struct fixture *f, const u32 *want, u32 nr)
{
	u32 i, id;

	for (i = 0; i < nr; i++) {
		id = next(f, false, 1);
		KUNIT_ASSERT_EQ(test, id, f->id[want[i]]);
		f->p.ops->remove(&f->p, TIER, id);
	}
	KUNIT_EXPECT_EQ(test, next(f, false, 1), KVT_NIL);
	KUNIT_EXPECT_EQ(test, f->p.list[TIER][0].count, 0u);
}

static void lru_oldest_first(struct kunit *test)
{
	static const u32 want[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 };
	struct fixture *f = setup(test);
	u32 i;

	/* To change tiers is not to be used. */
	for (i = 0; i < NR; i++)
		KUNIT_EXPECT_EQ(test, kvt_cold(f->t, f->id[i])->touch_ms, 500 + i);
	drains_as(test, f, want, NR);
}

/* Use makes recent, cooling makes first, skipping makes last. */
static void lru_order_follows_use(struct kunit *test)
{
	static const u32 want[] = { 7, 1, 3, 4, 5, 6, 8, 9, 0, 2 };
	struct fixture *f = setup(test);

	f->p.now_ms = 5000;
	f->p.ops->touch(&f->p, TIER, f->id[0]);
	KUNIT_EXPECT_EQ(test, kvt_cold(f->t, f->id[0])->touch_ms, 5000u);
	f->p.ops->skip(&f->p, TIER, f->id[2]);
	KUNIT_EXPECT_EQ(test, kvt_cold(f->t, f->id[2])->touch_ms, 502u);
	f->p.ops->cool(&f->p, TIER, f->id[7]);
	drains_as(test, f, want, NR);
}

/* Asking does not take: the same block is offered until it goes or is skipped. */
static void lru_next_is_stable(struct kunit *test)
{
	struct fixture *f = setup(test);

	KUNIT_EXPECT_EQ(test, next(f, false, 5), f->id[0]);
	KUNIT_EXPECT_EQ(test, next(f, false, 5), f->id[0]);
	f->p.ops->skip(&f->p, TIER, f->id[0]);
	KUNIT_EXPECT_EQ(test, next(f, false, 5), f->id[1]);
}

/* Only leaves are offered for eviction; for demotion everybody is. */
static void lru_leaf_rule(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 seen = 0, id, i;

	/* 0 <- 1 <- 2, and 3 <- 4: leaves are 2 and 4..9. */
	kvt_ch_link(f->t, f->id[1], f->id[0]);
	kvt_ch_link(f->t, f->id[2], f->id[1]);
	kvt_ch_link(f->t, f->id[4], f->id[3]);
	KUNIT_EXPECT_EQ(test, next(f, false, 1), f->id[0]);
	KUNIT_EXPECT_EQ(test, next(f, true, NR), f->id[2]);
	for (i = 0; i < NR; i++) {
		id = next(f, true, NR);
		KUNIT_ASSERT_NE(test, id, KVT_NIL);
		KUNIT_EXPECT_TRUE(test, kvt_ch_leaf(f->t, id));
		/* As eviction does; the parent may become a leaf. */
		f->p.ops->remove(&f->p, TIER, id);
		kvt_ch_unlink(f->t, id);
		seen++;
	}
	KUNIT_EXPECT_EQ(test, seen, (u32)NR);
	KUNIT_EXPECT_EQ(test, f->p.list[TIER][0].count, 0u);
}

/* Every other block is of a namespace, the rest of another. */
static void two_owners(struct fixture *f, u32 even, u32 odd)
{
	u32 i;

	for (i = 0; i < NR; i++)
		kvt_hot(f->t, f->id[i])->ns_group = kvt_ns_group(i % 2 ? odd : even, 0);
}

/* As somebody who looks for room: what is of namespace @ns is guaranteed to it. */
static u32 search(struct fixture *f, u32 ns, u32 budget)
{
	u32 id;

	while ((id = f->p.ops->next(&f->p, TIER, true, &budget)) &&
	       kvt_hot(f->t, id)->ns_group == kvt_ns_group(ns, 0))
		kvt_policy_guarded(&f->p, TIER, id);
	kvt_policy_searched(&f->p);
	return id;
}

/* What is guaranteed costs others a look, and stays in its order for its own namespace. */
static void lru_sets_aside_what_is_guarded(struct kunit *test)
{
	static const u32 want[] = { 0, 2, 4, 6, 7, 8, 9 };
	struct fixture *f = setup(test);
	u32 i;

	two_owners(f, 1, 2);
	for (i = 1; i < 6; i += 2) {
		/* All that was set aside, one more, and what is not guarded. */
		KUNIT_ASSERT_EQ(test, search(f, 1, 3), f->id[i]);
		f->p.ops->remove(&f->p, TIER, f->id[i]);
	}
	/* That is for one search; for another one it is as old as it is. */
	KUNIT_EXPECT_EQ(test, next(f, true, 1), f->id[0]);
	KUNIT_EXPECT_EQ(test, kvt_policy_least_of(&f->p, TIER, kvt_ns_group(1, 0), true, KVT_NIL),
			f->id[0]);
	KUNIT_EXPECT_EQ(test, search(f, 1, NR), f->id[7]);
	drains_as(test, f, want, ARRAY_SIZE(want));
}

/* Used, it is among the others again; given up, it is the first of all. */
static void lru_set_aside_is_not_for_ever(struct kunit *test)
{
	static const u32 want[] = { 8, 2, 4, 6, 0 };
	struct fixture *f = setup(test);
	u32 i;

	two_owners(f, 1, 2);
	for (i = 1; i < NR; i += 2) {
		KUNIT_ASSERT_EQ(test, search(f, 1, NR), f->id[i]);
		f->p.ops->remove(&f->p, TIER, f->id[i]);
	}
	KUNIT_EXPECT_EQ(test, search(f, 1, 1), KVT_NIL);
	f->p.now_ms = 3000;
	f->p.ops->touch(&f->p, TIER, f->id[0]);
	f->p.ops->cool(&f->p, TIER, f->id[8]);
	drains_as(test, f, want, ARRAY_SIZE(want));
}

/* Given up just after it was used, guarded or not. */
static void lru_cools_beside_what_is_set_aside(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 i;

	two_owners(f, 1, 2);
	for (i = 1; i < 6; i += 2) {
		KUNIT_ASSERT_EQ(test, search(f, 1, NR), f->id[i]);
		f->p.ops->skip(&f->p, TIER, f->id[i]);
	}
	f->p.now_ms = 3000;
	f->p.ops->touch(&f->p, TIER, f->id[9]);
	f->p.ops->cool(&f->p, TIER, f->id[9]);
	f->p.ops->cool(&f->p, TIER, f->id[8]);
	KUNIT_EXPECT_EQ(test, kvt_cold(f->t, f->id[9])->touch_ms, 3000u);
	KUNIT_EXPECT_EQ(test, next(f, false, 1), f->id[8]);
	KUNIT_EXPECT_EQ(test, search(f, 1, NR), f->id[9]);
	KUNIT_EXPECT_EQ(test, kvt_policy_least_of(&f->p, TIER, kvt_ns_group(1, 0), true, KVT_NIL),
			f->id[8]);
	f->p.ops->remove(&f->p, TIER, f->id[9]);
	/* Still first for its own namespace. */
	KUNIT_EXPECT_EQ(test, search(f, 1, NR), f->id[7]);
	KUNIT_EXPECT_EQ(test, next(f, false, 1), f->id[8]);
}

/* However much is guarded there, a search gets to what is not. */
static void lru_shared_lists_do_not_use_up_a_search(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 budget = 1000, id, i;

	for (i = 0; i < NR; i++)
		f->p.ops->remove(&f->p, TIER, f->id[i]);
	for (i = 0; i < 200; i++) {
		id = block(test, f);
		kvt_hot(f->t, id)->ns_group = kvt_ns_group(i % 2 ? 2 : KVT_LISTS, 0);
		f->p.ops->insert(&f->p, TIER, id);
	}
	while ((id = f->p.ops->next(&f->p, TIER, true, &budget)) != KVT_NIL)
		kvt_policy_guarded(&f->p, TIER, id);
	kvt_policy_searched(&f->p);
	KUNIT_EXPECT_NE(test, f->p.mixed[TIER], 0u);
	kvt_hot(f->t, f->id[0])->ns_group = kvt_ns_group(3, 0);
	f->p.ops->insert(&f->p, TIER, f->id[0]);
	kvt_cold(f->t, f->id[0])->touch_ms = f->p.now_ms;
	budget = 100;
	while ((id = f->p.ops->next(&f->p, TIER, true, &budget)) != KVT_NIL && id != f->id[0])
		kvt_policy_guarded(&f->p, TIER, id);
	kvt_policy_searched(&f->p);
	KUNIT_EXPECT_EQ(test, id, f->id[0]);
}

/* Nor do chains that were given up, or left by another policy, whatever order they are in. */
static void lru_chains_do_not_use_up_a_search(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 up = KVT_NIL, id, i, n;

	two_owners(f, 2, 2);
	for (i = 0; i < 300; i++) {
		id = block(test, f);
		kvt_hot(f->t, id)->ns_group = kvt_ns_group(1, 0);
		if (up != KVT_NIL)
			kvt_ch_link(f->t, id, up);
		f->p.ops->insert(&f->p, TIER, id);
		f->p.ops->cool(&f->p, TIER, id);
		up = id;
	}
	for (n = 0; n < 8; n++) {
		for (i = 0; i < 3; i++)
			KUNIT_EXPECT_EQ(test, search(f, 1, 256), f->id[n]);
		f->p.ops->remove(&f->p, TIER, f->id[n]);
	}
	/* The same on a list that may be anybody's. */
	kvt_policy_switch(&f->p, &kvt_policy_reuse);
	kvt_policy_switch(&f->p, &kvt_policy_lru);
	for (id = f->p.list[TIER][1].tail; id; id = f->p.list[TIER][1].tail)
		kvt_policy_renew_one(&f->p, TIER, 3, id);
	for (i = 0; i < 30; i++)
		KUNIT_EXPECT_EQ(test, search(f, 1, 256), f->id[n]);
	f->p.ops->remove(&f->p, TIER, f->id[8]);
	f->p.ops->remove(&f->p, TIER, f->id[9]);
	/* For its own namespace it is there to be had, with some looks. */
	for (n = 0; n < 300; n++) {
		for (i = 0, id = KVT_NIL; i < 300 && id == KVT_NIL; i++)
			id = search(f, 2, 256);
		KUNIT_ASSERT_NE(test, id, KVT_NIL);
		f->p.ops->remove(&f->p, TIER, id);
		kvt_ch_unlink(f->t, id);
	}
}

/* Where nothing is guarded what was given up goes first, though it is out of order. */
static void lru_chains_given_up_go_first(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 path[100], tip[2], i, t, id;

	for (i = 0; i < ARRAY_SIZE(path) + 2; i++) {
		id = block(test, f);
		if (i < ARRAY_SIZE(path))
			path[i] = id;
		else
			tip[i - ARRAY_SIZE(path)] = id;
		if (i)
			kvt_ch_link(f->t, id, path[min(i, (u32)ARRAY_SIZE(path)) - 1]);
		f->p.ops->insert(&f->p, TIER, id);
	}
	/* One path, and another one to which most of it belongs, too. */
	for (t = 0; t < 2; t++) {
		for (i = 0; i < ARRAY_SIZE(path); i++)
			f->p.ops->cool(&f->p, TIER, path[i]);
		f->p.ops->cool(&f->p, TIER, tip[t]);
	}
	for (i = 0; i < ARRAY_SIZE(path) + 2; i++) {
		id = search(f, 1, 256);
		KUNIT_EXPECT_EQ(test, id, i < 2 ? tip[1 - i] : path[ARRAY_SIZE(path) + 1 - i]);
		f->p.ops->remove(&f->p, TIER, id);
		kvt_ch_unlink(f->t, id);
	}
	KUNIT_EXPECT_EQ(test, search(f, 1, 256), f->id[0]);
}

/* What cannot go, and is older than all that was set aside, does not hide that. */
static void lru_busy_blocks_hide_nothing(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 budget = 256, id, i;

	/* The guarantee of namespace 1 ends when all of it has been set aside. */
	two_owners(f, 1, 1);
	KUNIT_EXPECT_EQ(test, search(f, 1, NR), KVT_NIL);
	for (i = 0; i < 300; i++) {
		id = block(test, f);
		kvt_hot(f->t, id)->ns_group = kvt_ns_group(2, 0);
		f->p.ops->insert(&f->p, TIER, id);
	}
	while ((id = f->p.ops->next(&f->p, TIER, true, &budget)) != KVT_NIL && id != f->id[0])
		f->p.ops->skip(&f->p, TIER, id);
	kvt_policy_searched(&f->p);
	KUNIT_EXPECT_EQ(test, id, f->id[0]);
}

/* What is taken in one search is not offered again before the rest. */
static void lru_batch_out_of_what_was_set_aside(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 budget = 3 * NR, id, i, looks;

	two_owners(f, 1, 1);
	KUNIT_EXPECT_EQ(test, search(f, 1, NR), KVT_NIL);
	for (i = 0, looks = 0; i < NR && looks < 3 * NR; looks++) {
		id = f->p.ops->next(&f->p, TIER, false, &budget);
		KUNIT_ASSERT_NE(test, id, KVT_NIL);
		i += id == f->id[i];
		f->p.ops->skip(&f->p, TIER, id);
	}
	kvt_policy_searched(&f->p);
	KUNIT_EXPECT_EQ(test, i, (u32)NR);
}

/* New blocks of a namespace, just used. With @given_up: a chain, the tip cooled first. The first. */
static u32 more_blocks(struct kunit *test, struct fixture *f, u32 ns, u32 nr, bool given_up)
{
	u32 first = 0, up = KVT_NIL, id, i;

	for (i = 0; i < nr; i++) {
		id = block(test, f);
		if (!i)
			first = id;
		kvt_hot(f->t, id)->ns_group = kvt_ns_group(ns, 0);
		kvt_cold(f->t, id)->touch_ms = f->p.now_ms;
		if (given_up && up != KVT_NIL)
			kvt_ch_link(f->t, id, up);
		f->p.ops->insert(&f->p, TIER, id);
		up = id;
	}
	for (i = 0; given_up && i < nr; i++, up = kvt_cold(f->t, up)->parent)
		f->p.ops->cool(&f->p, TIER, up);
	return first;
}

/* A search whose namespace @busy holds all it has: the first that is another's. */
static u32 search_beside(struct fixture *f, u32 busy)
{
	u32 budget = 256, id;

	while ((id = f->p.ops->next(&f->p, TIER, true, &budget)) &&
	       kvt_hot(f->t, id)->ns_group == kvt_ns_group(busy, 0))
		f->p.ops->skip(&f->p, TIER, id);
	kvt_policy_searched(&f->p);
	return id;
}

/* A chain given up from its tip on hides nothing that was set aside, and is older. */
static void lru_given_up_hides_nothing(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 i;

	two_owners(f, 1, 1);
	KUNIT_EXPECT_EQ(test, search(f, 1, NR), KVT_NIL);
	more_blocks(test, f, 2, 100, false);
	more_blocks(test, f, 3, 5000, true);
	for (i = 0; i < NR; i++) {
		KUNIT_ASSERT_EQ(test, search_beside(f, 3), f->id[i]);
		f->p.ops->remove(&f->p, TIER, f->id[i]);
	}
}

/* A chain of so many, alone there, used in pieces from its head on; each from its end. The tip. */
static u32 in_pieces(struct kunit *test, struct fixture *f, u32 nr, u32 piece)
{
	u32 up = KVT_NIL, id = KVT_NIL, i, k;

	for (i = 0; i < NR; i++)
		f->p.ops->remove(&f->p, TIER, f->id[i]);
	for (i = 0; i < nr; i++, up = id) {
		id = block(test, f);
		if (up != KVT_NIL)
			kvt_ch_link(f->t, id, up);
		f->p.ops->insert(&f->p, TIER, id);
		for (k = 0, up = id; (i + 1) % piece == 0 && k < piece; k++) {
			f->p.ops->touch(&f->p, TIER, up);
			up = kvt_cold(f->t, up)->parent;
		}
	}
	return id;
}

/* It is put in order, and that soon: so many searches at most find nothing. */
static void goes_from_its_tip(struct kunit *test, struct fixture *f, u32 tip, u32 nr, u32 most)
{
	u32 i, n, id, budget;

	for (i = 0, n = 0; i < nr && n < nr + most; n++) {
		budget = 256;
		id = f->p.ops->next(&f->p, TIER, true, &budget);
		kvt_policy_searched(&f->p);
		if (id == KVT_NIL)
			continue;
		KUNIT_ASSERT_EQ(test, id, tip);
		tip = kvt_cold(f->t, id)->parent;
		f->p.ops->remove(&f->p, TIER, id);
		kvt_ch_unlink(f->t, id);
		i++;
	}
	KUNIT_EXPECT_EQ(test, i, nr);
}

/* A long chain that was used from its head on. */
static void lru_head_first(struct kunit *test)
{
	struct fixture *f = setup(test);

	goes_from_its_tip(test, f, in_pieces(test, f, 1000, 1), 1000, 10);
}

/* As it comes in commands, of which each is a piece. */
static void lru_piece_by_piece(struct kunit *test)
{
	struct fixture *f = setup(test);

	goes_from_its_tip(test, f, in_pieces(test, f, 4000, 32), 4000, 10);
}

/*
 * The default: what was given up, and is in nobody's way but has children, keeps a search from
 * nothing on the lists that come after it.
 */
static void reuse_given_up_hides_nothing(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 id, i;

	kvt_policy_init(&f->p, kvt_policy_find("reuse", 5), f->t);
	kvt_test_mind(test, &f->p);
	f->p.now_ms = 1000;
	more_blocks(test, f, 3, 3000, true);
	for (i = 0; i < NR; i++) {
		id = block(test, f);
		kvt_hot(f->t, id)->ns_group = kvt_ns_group(2, 0);
		kvt_cold(f->t, id)->cls = KVT_CLS_SESSION;
		kvt_policy_add(&f->p, TIER, KVT_CLS_SESSION, id, false);
	}
	for (i = 0; i < NR; i++) {
		id = search_beside(f, 3);
		KUNIT_ASSERT_NE(test, id, KVT_NIL);
		f->p.ops->remove(&f->p, TIER, id);
	}
}

/* So it is with what is held, leased or guaranteed, and given up, or used, again and again. */
static void reuse_held_hides_nothing(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 first, id, i, n, vain = 0;

	kvt_policy_init(&f->p, kvt_policy_find("reuse", 5), f->t);
	kvt_test_mind(test, &f->p);
	f->p.now_ms = 1000;
	first = more_blocks(test, f, 3, 400, false);
	for (i = 0; i < 3 * NR; i++) {
		id = block(test, f);
		kvt_hot(f->t, id)->ns_group = kvt_ns_group(2, 0);
		kvt_cold(f->t, id)->cls = KVT_CLS_SESSION;
		kvt_policy_add(&f->p, TIER, KVT_CLS_SESSION, id, false);
	}
	for (n = 0; n < 3 * NR; f->p.now_ms++) {
		for (i = 0; i < 400; i++) {
			f->p.ops->touch(&f->p, TIER, first + i);
			f->p.ops->cool(&f->p, TIER, first + i);
		}
		f->p.ops->hint(&f->p, first + 1, KVT_HINT_NEVER);
		kvt_policy_request(&f->p, first + 2);
		id = search_beside(f, 3);
		vain += id == KVT_NIL;
		/* Each of them is found once, and later a few at a time. */
		KUNIT_ASSERT_LT(test, vain, 5u);
		if (id == KVT_NIL)
			continue;
		f->p.ops->remove(&f->p, TIER, id);
		n++;
	}
}

#define GATE_TIER	(TIER + 1)

/* Is the @i-th block of a row let into a full block tier; of all the same worth. */
static bool let_in(struct kunit *test, struct fixture *f, u32 i)
{
	u32 id = block(test, f);
	bool in;

	kvt_hot(f->t, id)->hash = i * 2654435761u;
	kvt_cold(f->t, id)->cls = KVT_CLS_SESSION;
	kvt_cold(f->t, id)->touch_ms = f->p.now_ms;
	in = f->p.ops->admit(&f->p, GATE_TIER, id, false);
	atomic_set(&kvt_hot(f->t, id)->ctl, KVT_DEAD);
	kvt_table_free(f->t, id);
	return in;
}

/*
 * So many asked about, @of blocks asked for with each; what was refused is stored again if
 * @again. How many passed of the last hundred.
 */
static u32 ask(struct kunit *test, struct fixture *f, u32 nr, u32 of, bool again)
{
	struct kvt_mind *m = f->p.only;
	u32 i, in = 0;

	for (i = 0; i < nr; i++) {
		if (let_in(test, f, i))
			in += i + 100 >= nr;
		else if (again)
			kvt_gate_stored(m, i * 2654435761u);
		kvt_gate_asked(m, of);
	}
	return in;
}

/* Half passes, more if that is regretted, and half again when it is not. */
static void reuse_regrets(struct kunit *test)
{
	struct fixture *f = setup(test);

	kvt_policy_init(&f->p, kvt_policy_find("reuse", 5), f->t);
	kvt_test_mind(test, &f->p);
	f->p.now_ms = 1000;
	KUNIT_EXPECT_EQ(test, ask(test, f, 20000, 4, false), 50u);
	KUNIT_EXPECT_EQ(test, f->p.only->regret.part, KVT_GATE_HALF);
	KUNIT_EXPECT_LT(test, 80u, ask(test, f, 20000, 1, true));
	KUNIT_EXPECT_LT(test, KVT_GATE_ALL - 4, f->p.only->regret.part + 0u);
	/* One in a hundred is worth no write. */
	KUNIT_EXPECT_EQ(test, ask(test, f, 20000, 100, true), 50u);
	KUNIT_EXPECT_EQ(test, f->p.only->regret.part, KVT_GATE_HALF);
}

/* A chain that was put aside, and can go by now, goes from its end on, and that soon. */
static void reuse_chains_return(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 id, up = KVT_NIL, i, budget, vain = 0;

	kvt_policy_init(&f->p, kvt_policy_find("reuse", 5), f->t);
	kvt_test_mind(test, &f->p);
	f->p.now_ms = 1000;
	for (i = 0; i < 3000; i++, up = id) {
		id = block(test, f);
		if (up)
			kvt_ch_link(f->t, id, up);
		f->p.ops->insert(&f->p, TIER, id);
		f->p.ops->skip(&f->p, TIER, id);
	}
	for (i = 0; i < 3000; ) {
		budget = 256;
		id = f->p.ops->next(&f->p, TIER, true, &budget);
		kvt_policy_searched(&f->p);
		if (id == KVT_NIL) {
			/* Until its end is found among them. */
			KUNIT_ASSERT_LT(test, ++vain, 30u);
			continue;
		}
		KUNIT_ASSERT_EQ(test, id, up);
		up = kvt_cold(f->t, id)->parent;
		f->p.ops->remove(&f->p, TIER, id);
		kvt_ch_unlink(f->t, id);
		i++;
	}
	KUNIT_EXPECT_EQ(test, f->p.some[TIER], 0u);
}

/* What comes from elsewhere is put in its place by age, about. */
static void reuse_puts_in_order(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 id, i, next, bad = 0;

	kvt_policy_init(&f->p, kvt_policy_find("reuse", 5), f->t);
	kvt_test_mind(test, &f->p);
	f->p.now_ms = 100000;
	/* By turns from both ends to the middle. */
	for (i = 0; i < 400; i++) {
		id = block(test, f);
		kvt_cold(f->t, id)->cls = KVT_CLS_SESSION;
		kvt_cold(f->t, id)->touch_ms = i % 2 ? 1000 + i * 10 : 90000 - i * 10;
		f->p.ops->insert(&f->p, TIER, id);
	}
	for (id = f->p.list[TIER][KVT_CLS_SESSION].head; id; id = next) {
		next = kvt_cold(f->t, id)->lru_next;
		bad += next && kvt_cold(f->t, next)->touch_ms > kvt_cold(f->t, id)->touch_ms;
	}
	KUNIT_EXPECT_EQ(test, bad, 0u);
}

/* What a namespace holds and gives up again and again keeps others from nothing. */
static void lru_held_and_given_up_hides_nothing(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 first, i, n;

	two_owners(f, 1, 1);
	/* Numbers of blocks follow each other. */
	first = more_blocks(test, f, 3, 400, false);
	for (n = 0; n < NR; n++) {
		for (i = 0; i < 400; i++)
			f->p.ops->cool(&f->p, TIER, first + i);
		KUNIT_ASSERT_EQ(test, search_beside(f, 3), f->id[n]);
		f->p.ops->remove(&f->p, TIER, f->id[n]);
	}
}

/* Nor does what it holds and was set aside for it, now that this is more than its guarantee. */
static void lru_held_and_set_aside_hides_nothing(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 i, id;

	for (i = 0; i < NR; i++)
		f->p.ops->remove(&f->p, TIER, f->id[i]);
	more_blocks(test, f, 3, 400, false);
	KUNIT_EXPECT_EQ(test, search(f, 3, 400), KVT_NIL);
	f->p.now_ms += 1000;
	id = block(test, f);
	kvt_hot(f->t, id)->ns_group = kvt_ns_group(1, 0);
	f->p.ops->insert(&f->p, TIER, id);
	kvt_cold(f->t, id)->touch_ms = f->p.now_ms;
	KUNIT_EXPECT_EQ(test, search_beside(f, 3), id);
}

/* A policy that is chosen again goes on. */
static void lru_chosen_again(struct kunit *test)
{
	struct fixture *f = setup(test);

	two_owners(f, 1, 1);
	KUNIT_EXPECT_EQ(test, search(f, 1, NR), KVT_NIL);
	KUNIT_EXPECT_EQ(test, f->p.mixed[TIER], 0u);
	kvt_policy_switch(&f->p, &kvt_policy_lru);
	KUNIT_EXPECT_EQ(test, f->p.mixed[TIER], 0u);
}

/* A list that has to be shared hides nothing. */
static void lru_set_aside_with_others(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 budget = NR, id, i;

	/* Two that get the same list; for the first search both have a guarantee. */
	two_owners(f, 2, KVT_LISTS);
	while ((id = f->p.ops->next(&f->p, TIER, true, &budget)) != KVT_NIL)
		kvt_policy_guarded(&f->p, TIER, id);
	kvt_policy_searched(&f->p);
	KUNIT_EXPECT_NE(test, f->p.mixed[TIER], 0u);
	for (i = 0; i < NR / 2; i++) {
		id = search(f, 2, 2 * NR);
		KUNIT_ASSERT_NE(test, id, KVT_NIL);
		f->p.ops->remove(&f->p, TIER, id);
	}
	KUNIT_EXPECT_EQ(test, search(f, 2, 2 * NR), KVT_NIL);
}

/* So it is with what another policy has left there. */
static void lru_set_aside_after_another(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 i, id;

	two_owners(f, 1, 2);
	kvt_policy_switch(&f->p, &kvt_policy_reuse);
	for (i = 0; i < NR; i++)
		kvt_policy_renew_one(&f->p, TIER, 2, f->id[i]);
	kvt_policy_switch(&f->p, &kvt_policy_lru);
	for (i = 0; i < NR / 2; i++) {
		id = search(f, 1, 2 * NR);
		KUNIT_ASSERT_NE(test, id, KVT_NIL);
		f->p.ops->remove(&f->p, TIER, id);
	}
}

/* The search is bounded by its budget, pays for what it looks at, loses none. */
static void lru_budget_bounds_search(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 i, budget, id;

	/* All but the newest have a child elsewhere. */
	for (i = 0; i + 1 < NR; i++)
		kvt_ch_link(f->t, kvt_test_block(test, f->t, KVT_READY), f->id[i]);
	budget = 0;
	KUNIT_EXPECT_EQ(test, f->p.ops->next(&f->p, TIER, false, &budget), KVT_NIL);
	budget = 4;
	KUNIT_EXPECT_EQ(test, f->p.ops->next(&f->p, TIER, true, &budget), KVT_NIL);
	KUNIT_EXPECT_EQ(test, budget, 0u);
	KUNIT_EXPECT_EQ(test, f->p.list[TIER][0].count, (u32)NR);
	/* Rotation made progress: 5 more with children, then the leaf. */
	budget = NR;
	id = f->p.ops->next(&f->p, TIER, true, &budget);
	KUNIT_EXPECT_EQ(test, id, f->id[NR - 1]);
	KUNIT_EXPECT_EQ(test, budget, NR - 6u);
	KUNIT_EXPECT_EQ(test, f->p.list[TIER][0].count, (u32)NR);
}

/* A tier's list is its own. */
static void lru_tiers_are_apart(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 i, budget;

	for (i = 0; i < KVT_TIERS; i++) {
		budget = 1;
		KUNIT_EXPECT_EQ(test, f->p.ops->next(&f->p, i, false, &budget),
				i == TIER ? f->id[0] : KVT_NIL);
	}
	f->p.ops->remove(&f->p, TIER, f->id[0]);
	f->p.ops->insert(&f->p, TIER + 1, f->id[0]);
	KUNIT_EXPECT_EQ(test, next(f, false, 1), f->id[1]);
	budget = 1;
	KUNIT_EXPECT_EQ(test, f->p.ops->next(&f->p, TIER + 1, false, &budget), f->id[0]);
}

/* Names from user space: exact, of the given length, terminated or not. */
static void policy_found_by_exact_name(struct kunit *test)
{
	KUNIT_EXPECT_PTR_EQ(test, kvt_policy_find("lru", 3), &kvt_policy_lru);
	KUNIT_EXPECT_PTR_EQ(test, kvt_policy_find("lru\n", 3), &kvt_policy_lru);
	KUNIT_EXPECT_NULL(test, kvt_policy_find("lru", 2));
	KUNIT_EXPECT_NULL(test, kvt_policy_find("lru", 4));
	KUNIT_EXPECT_NULL(test, kvt_policy_find("lrU", 3));
	KUNIT_EXPECT_NULL(test, kvt_policy_find("", 0));
}

static struct kunit_case policy_cases[] = {
	KUNIT_CASE(lru_oldest_first),
	KUNIT_CASE(lru_order_follows_use),
	KUNIT_CASE(lru_next_is_stable),
	KUNIT_CASE(lru_leaf_rule),
	KUNIT_CASE(lru_budget_bounds_search),
	KUNIT_CASE(lru_sets_aside_what_is_guarded),
	KUNIT_CASE(lru_set_aside_is_not_for_ever),
	KUNIT_CASE(lru_cools_beside_what_is_set_aside),
	KUNIT_CASE(lru_shared_lists_do_not_use_up_a_search),
	KUNIT_CASE(lru_chains_do_not_use_up_a_search),
	KUNIT_CASE(lru_chains_given_up_go_first),
	KUNIT_CASE(lru_busy_blocks_hide_nothing),
	KUNIT_CASE(lru_batch_out_of_what_was_set_aside),
	KUNIT_CASE(lru_given_up_hides_nothing),
	KUNIT_CASE(reuse_given_up_hides_nothing),
	KUNIT_CASE(reuse_held_hides_nothing),
	KUNIT_CASE(reuse_chains_return),
	KUNIT_CASE(reuse_puts_in_order),
	KUNIT_CASE(reuse_regrets),
	KUNIT_CASE(lru_held_and_given_up_hides_nothing),
	KUNIT_CASE(lru_held_and_set_aside_hides_nothing),
	KUNIT_CASE(lru_head_first),
	KUNIT_CASE(lru_piece_by_piece),
	KUNIT_CASE(lru_chosen_again),
	KUNIT_CASE(lru_set_aside_with_others),
	KUNIT_CASE(lru_set_aside_after_another),
	KUNIT_CASE(lru_tiers_are_apart),
	KUNIT_CASE(policy_found_by_exact_name),
	{ }
};

static struct kunit_suite policy_suite = {
	.name = "kvt_policy",
	.test_cases = policy_cases,
};

kunit_test_suite(policy_suite);
