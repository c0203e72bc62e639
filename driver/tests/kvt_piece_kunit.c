// SPDX-License-Identifier: GPL-2.0
/*
 * The map of pieces, against an array with a word for each.
 */
#include "kvt_kunit.h"
#include "../core/kvt_piece.h"

#define NR	(40 * KVT_STRETCH_PIECES + 3)	/* the last stretch is short */
#define WORDS	4u

struct fixture {
	struct kvt_pieces p;
	u64 map[KVT_PIECES_WORDS(NR)];
	u32 want[NR];
	bool split[KVT_STRETCHES(NR)];
	u32 given;	/* splits that the map has */
};

static struct fixture *setup(struct kunit *test)
{
	struct fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	kvt_pieces_init(&f->p, f->map, NR, KVT_PIECE_CLEAN);
	return f;
}

static void splits_get(struct kunit *test, struct fixture *f)
{
	union kvt_split *split;

	for (; kvt_pieces_low(&f->p); f->given++) {
		split = kunit_kzalloc(test, sizeof(*split), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, split);
		KUNIT_ASSERT_TRUE(test, kvt_pieces_add(&f->p, split));
	}
}

/* Nothing looks at what it gave back. */
static void splits_put(struct fixture *f)
{
	union kvt_split *split;

	for (; (split = kvt_pieces_surplus(&f->p)); f->given--)
		memset(split, 0xa5, sizeof(*split));
}

/* Words of a stretch have changed: more than two make it split until there is one. */
static void changed(struct fixture *f, u32 s)
{
	u32 i = s * KVT_STRETCH_PIECES, end = min(i + KVT_STRETCH_PIECES, NR), turns = 0;

	for (i++; i < end; i++)
		turns += f->want[i] != f->want[i - 1];
	f->split[s] = turns && (f->split[s] || turns > 1);
}

static void want(struct fixture *f, u32 first, u32 nr, u32 word)
{
	u32 s = first / KVT_STRETCH_PIECES, last = (first + nr - 1) / KVT_STRETCH_PIECES;

	for (; nr--; first++)
		f->want[first] = word;
	for (; s <= last; s++)
		changed(f, s);
}

static void set(struct fixture *f, u32 first, u32 nr, u32 word)
{
	kvt_pieces_set(&f->p, first, nr, word);
	want(f, first, nr, word);
}

static u32 nr_split(const struct fixture *f)
{
	u32 s, nr = 0;

	for (s = 0; s < KVT_STRETCHES(NR); s++)
		nr += f->split[s];
	return nr;
}

static void is_as_wanted(struct kunit *test, const struct fixture *f)
{
	u32 i;

	for (i = 0; i < NR; i++)
		KUNIT_ASSERT_EQ(test, kvt_piece_word(&f->p, i), f->want[i]);
	KUNIT_ASSERT_EQ(test, f->p.nr_splits, f->given);
	KUNIT_ASSERT_EQ(test, f->p.nr_splits - f->p.nr_spare, nr_split(f));
	KUNIT_ASSERT_EQ(test, kvt_pieces_bytes(&f->p), sizeof(f->map) + 64ull * f->given);
}

/* Ranges of all lengths get words; a stretch costs a split if it has had more than two. */
static void words_are_kept(struct kunit *test)
{
	static const u32 word[WORDS] = { KVT_PIECE_CLEAN, KVT_PIECE_UNKNOWN, KVT_PIECE_USED | 7,
					 KVT_PIECE_USED | KVT_PIECE_NR };
	struct fixture *f = setup(test);
	u32 step, first, most = 0;
	u64 rnd = 5;

	is_as_wanted(test, f);
	for (step = 0; step < 5000; step++) {
		splits_get(test, f);
		first = kvt_test_random(&rnd) % NR;
		set(f, first, 1 + kvt_test_random(&rnd) % min(NR - first, step % 9 ? 70u : NR),
		    word[kvt_test_random(&rnd) % WORDS]);
		splits_put(f);
		is_as_wanted(test, f);
		most = max(most, f->given);
	}
	KUNIT_EXPECT_LT(test, 10u, most);
	KUNIT_EXPECT_LE(test, most, KVT_STRETCHES(NR) + KVT_SPLITS_SPARE);
	set(f, 0, NR, KVT_PIECE_CLEAN);
	splits_put(f);
	is_as_wanted(test, f);
	KUNIT_EXPECT_EQ(test, f->given, KVT_SPLITS_SPARE);
}

/* What may not fail needs no split: that a piece is zeroed is kept where there is one. */
static void pieces_come_and_go(struct kunit *test)
{
	struct fixture *f = setup(test);

	set(f, 0, NR, 3);
	kvt_piece_leave(&f->p, 2);
	KUNIT_EXPECT_TRUE(test, kvt_piece_absent(&f->p, 2));
	KUNIT_EXPECT_FALSE(test, kvt_piece_free(&f->p, 2));
	KUNIT_EXPECT_TRUE(test, kvt_piece_free(&f->p, 3));
	kvt_piece_come(&f->p, 2);
	KUNIT_EXPECT_FALSE(test, kvt_piece_absent(&f->p, 2));
	KUNIT_EXPECT_TRUE(test, kvt_piece_free(&f->p, 2));
	is_as_wanted(test, f);
	splits_get(test, f);
	set(f, 17, 1, KVT_PIECE_USED | 9);
	KUNIT_EXPECT_FALSE(test, kvt_piece_free(&f->p, 17));
	KUNIT_EXPECT_FALSE(test, kvt_piece_absent(&f->p, 17));
	kvt_piece_leave(&f->p, 30);
	kvt_piece_come(&f->p, 30);
	want(f, 30, 1, KVT_PIECE_CLEAN);
	is_as_wanted(test, f);
	/* All of its stretch are clean then, and it needs no split. */
	set(f, 16, 14, KVT_PIECE_CLEAN);
	kvt_piece_leave(&f->p, 31);
	kvt_piece_come(&f->p, 31);
	want(f, 31, 1, KVT_PIECE_CLEAN);
	is_as_wanted(test, f);
	KUNIT_EXPECT_EQ(test, f->p.nr_spare, KVT_SPLITS_SPARE);
}

/* Without a split to be had: what two words say is kept. */
static void pieces_come_to_two_words(struct kunit *test)
{
	struct fixture *f = setup(test);

	set(f, 0, NR, 3);
	set(f, 0, 4, KVT_PIECE_USED | 9);
	kvt_piece_leave(&f->p, 4);
	kvt_piece_come(&f->p, 4);
	kvt_piece_leave(&f->p, 9);
	kvt_piece_come(&f->p, 9);
	KUNIT_EXPECT_TRUE(test, kvt_piece_free(&f->p, 4));
	KUNIT_EXPECT_TRUE(test, kvt_piece_free(&f->p, 9));
	is_as_wanted(test, f);
	set(f, 0, 4, KVT_PIECE_CLEAN);
	kvt_piece_leave(&f->p, 4);
	kvt_piece_come(&f->p, 4);
	want(f, 4, 1, KVT_PIECE_CLEAN);
	kvt_piece_leave(&f->p, NR - 3);
	kvt_piece_come(&f->p, NR - 3);
	want(f, NR - 3, 1, KVT_PIECE_CLEAN);
	is_as_wanted(test, f);
	KUNIT_EXPECT_EQ(test, f->given, 0u);
}

/* What is bad can be had no more, unless it is mended while it is in use. */
static void bad_pieces_stay_busy(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 i;

	splits_get(test, f);
	kvt_piece_spoil(&f->p, 40);
	set(f, 60, 10, KVT_PIECE_USED | 4);
	kvt_piece_spoil(&f->p, 61);
	kvt_piece_spoil(&f->p, 62);
	kvt_piece_mend(&f->p, 62);
	set(f, 60, 10, 8);
	for (i = 0; i < NR; i++) {
		KUNIT_EXPECT_EQ(test, kvt_piece_free(&f->p, i), i != 40 && i != 61);
		KUNIT_EXPECT_EQ(test, kvt_piece_bad(&f->p, i), i == 40 || i == 61);
		KUNIT_EXPECT_FALSE(test, kvt_piece_absent(&f->p, i));
	}
}

/* The first run, by a look at all pieces. */
static u32 run_of(const struct fixture *f, u32 from, u32 to, u32 want, u32 align)
{
	u32 i, n;

	for (i = from; i + want <= to; i++) {
		for (n = 0; n < want && kvt_piece_free(&f->p, i + n); n++)
			;
		if (n == want && !(i % align))
			return i;
	}
	return KVT_NO_PIECE;
}

static u32 next_used(const struct fixture *f, u32 at)
{
	while (at < NR && !(f->want[at] & KVT_PIECE_USED))
		at++;
	return at;
}

static void look_for_runs(struct kunit *test, struct fixture *f, u64 *rnd, u32 *found)
{
	u32 from = kvt_test_random(rnd) % NR, want = 1 + kvt_test_random(rnd) % 34, at;
	u32 to = from + kvt_test_random(rnd) % (NR - from) + 1;

	at = kvt_pieces_run(&f->p, from, to, want, false);
	KUNIT_ASSERT_EQ(test, at, run_of(f, from, to, want, 1));
	found[0] += at != KVT_NO_PIECE;
	want = (1 + want % 3) * KVT_STRETCH_PIECES;
	at = kvt_pieces_run(&f->p, from, to, want, true);
	KUNIT_ASSERT_EQ(test, at, run_of(f, from, to, want, KVT_STRETCH_PIECES));
	found[1] += at != KVT_NO_PIECE;
}

/* Runs are found, whatever is bad or absent. */
static void runs_are_found(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 step, i, nr, found[2] = { 0 };
	u64 rnd = 23;

	for (step = 0; step < 5000; step++) {
		splits_get(test, f);
		i = kvt_test_random(&rnd) % NR;
		nr = 1 + kvt_test_random(&rnd) % min(NR - i, 60u);
		set(f, i, nr, kvt_test_random(&rnd) % 4 ? 11 : KVT_PIECE_USED | 2);
		i = kvt_test_random(&rnd) % NR;
		if (step % 100 == 7)
			kvt_piece_spoil(&f->p, i);
		if (!(step % 9) && kvt_piece_free(&f->p, i))
			kvt_piece_leave(&f->p, i);
		look_for_runs(test, f, &rnd, found);
	}
	KUNIT_EXPECT_LT(test, 100u, found[0]);
	KUNIT_EXPECT_LT(test, 100u, found[1]);
	KUNIT_EXPECT_LT(test, found[1], found[0]);
}

/* Each piece in use is come to, step by step, and none that is not. */
static void pieces_in_use_are_found(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 round, i, at, next, want, steps;
	u64 rnd = 29;

	for (round = 0; round < 200; round++) {
		splits_get(test, f);
		set(f, 0, NR, KVT_PIECE_CLEAN);
		for (i = 0; i < round % 5; i++) {
			splits_get(test, f);
			at = kvt_test_random(&rnd) % NR;
			set(f, at, 1 + kvt_test_random(&rnd) % min(NR - at, 20u), KVT_PIECE_USED | i);
		}
		for (i = 0, steps = 0; i < NR; i = want + 1) {
			want = next_used(f, i);
			for (at = i; at < want; at = next, steps++) {
				next = min(kvt_pieces_next_used(&f->p, at), NR);
				KUNIT_ASSERT_LT(test, at, next);
				KUNIT_ASSERT_LT(test, next, want + 1);
			}
			KUNIT_ASSERT_TRUE(test, want == NR ||
					  kvt_pieces_next_used(&f->p, want) == want);
		}
		KUNIT_EXPECT_LT(test, 2u, steps);
	}
}

/* Regions side by side come and go, in any order, and nothing is needed for where they meet. */
static void two_in_a_stretch(struct kunit *test)
{
	const u32 nr = 20, used = KVT_PIECE_USED | KVT_PIECE_NR;
	struct fixture *f = setup(test);
	u32 i, k;

	for (k = 0; k < 2; k++) {
		for (i = 0; i + nr <= NR; i += nr)
			set(f, i, nr, used - i);
		is_as_wanted(test, f);
		/* Every other one, and the rest the other way round. */
		for (i = 0; i + nr <= NR; i += 2 * nr) {
			set(f, i, nr, KVT_PIECE_UNKNOWN - 3 - k);
			is_as_wanted(test, f);
		}
		for (i = NR / nr * nr; i >= nr; i -= nr) {
			if (f->want[i - nr] & KVT_PIECE_USED)
				set(f, i - nr, nr, KVT_PIECE_CLEAN);
			is_as_wanted(test, f);
		}
		set(f, 0, NR, KVT_PIECE_CLEAN);
	}
	KUNIT_EXPECT_EQ(test, f->given, 0u);
}

/* All that was handed in comes back, wherever it is. */
static void splits_come_back(struct kunit *test)
{
	struct fixture *f = setup(test);
	u32 i, nr = 0, at = 0;

	for (i = 0; i < NR; i += KVT_STRETCH_PIECES) {
		splits_get(test, f);
		set(f, i + 1, 1, KVT_PIECE_USED | i);
	}
	is_as_wanted(test, f);
	splits_get(test, f);
	KUNIT_EXPECT_EQ(test, f->given, KVT_STRETCHES(NR) + KVT_SPLITS_SPARE);
	while (kvt_pieces_end(&f->p, &at))
		nr++;
	KUNIT_EXPECT_EQ(test, nr, f->given);
	KUNIT_EXPECT_EQ(test, f->p.nr_splits, 0u);
}

static struct kunit_case piece_cases[] = {
	KUNIT_CASE(words_are_kept),
	KUNIT_CASE(pieces_come_and_go),
	KUNIT_CASE(pieces_come_to_two_words),
	KUNIT_CASE(bad_pieces_stay_busy),
	KUNIT_CASE(runs_are_found),
	KUNIT_CASE(pieces_in_use_are_found),
	KUNIT_CASE(two_in_a_stretch),
	KUNIT_CASE(splits_come_back),
	{ }
};

static struct kunit_suite piece_suite = {
	.name = "kvt_piece",
	.test_cases = piece_cases,
};

kunit_test_suite(piece_suite);
