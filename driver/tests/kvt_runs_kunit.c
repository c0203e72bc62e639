// SPDX-License-Identifier: GPL-2.0
/*
 * Which pieces a region gets, and whose bytes they are taken to hold, where the map has one
 * word for many of them.
 */
#include "kvt_kunit.h"
#include "../core/kvt_mem.h"
#include "kvt_mem_kunit.h"

static void put(struct fixture *f, struct kvt_owner *o, struct kvt_region *reg)
{
	if (reg->state == KVT_REGION_ACTIVE) {
		kvt_mem_region_drain(&f->m, o, reg);
		reg->state = KVT_REGION_CLEANING;
	}
	kvt_mem_region_free(&f->m, o, reg, ns_of(f, o), false);
}

static void starts_at(struct kunit *test, struct fixture *f, u32 pieces, u32 first)
{
	const struct kvt_region *reg = region_get(test, f, &f->a, 64, pieces);

	KUNIT_ASSERT_NOT_NULL(test, reg);
	KUNIT_EXPECT_EQ(test, reg->first, first);
}

/* What fills stretches gets whole ones, and what does not leaves no holes. */
static void whole_stretches_come_first(struct kunit *test)
{
	const u32 nr = 5 * KVT_STRETCH_PIECES;
	u64 *map = kunit_kzalloc(test, KVT_PIECES_WORDS(nr) * sizeof(*map), GFP_KERNEL);
	struct fixture *f = setup(test, KVT_PIECE_CLEAN);
	union kvt_dirent *dir[2] = { NULL };

	KUNIT_ASSERT_NOT_NULL(test, map);
	kvt_mem_init(&f->m, map, dir, nr, KVT_PIECE_CLEAN);
	KUNIT_ASSERT_TRUE(test, kvt_mem_dir_add(&f->m, f->chunk));
	starts_at(test, f, 1, 0);
	starts_at(test, f, 16, 16);
	starts_at(test, f, 3, 1);
	/* Words that are not the stretch's are in the first one only. */
	KUNIT_EXPECT_EQ(test, f->m.pieces.nr_splits - f->m.pieces.nr_spare, 1u);
	starts_at(test, f, 20, 32);
	starts_at(test, f, 16, 64);
	/* None is left, but pieces are. */
	KUNIT_EXPECT_NULL(test, region_get(test, f, &f->a, 64, 16));
	starts_at(test, f, 12, 52);
	starts_at(test, f, 12, 4);
	KUNIT_EXPECT_EQ(test, f->m.nr_free, 0u);
}

/* Where no stretch is free from its first piece on, any run will do; until one is again. */
static void any_run_will_do(struct kunit *test)
{
	const u32 nr = 2 * KVT_STRETCH_PIECES;
	u64 *map = kunit_kzalloc(test, KVT_PIECES_WORDS(nr) * sizeof(*map), GFP_KERNEL);
	struct fixture *f = setup(test, KVT_PIECE_CLEAN);
	struct kvt_region *a, *b;

	KUNIT_ASSERT_NOT_NULL(test, map);
	kvt_mem_init(&f->m, map, f->dir, nr, KVT_PIECE_CLEAN);
	KUNIT_ASSERT_TRUE(test, kvt_mem_dir_add(&f->m, f->chunk));
	starts_at(test, f, 1, 0);
	a = region_get(test, f, &f->a, 64, 14);
	b = region_get(test, f, &f->a, 64, 2);
	KUNIT_ASSERT_TRUE(test, a && b);
	starts_at(test, f, 15, 17);
	put(f, &f->a, a);
	put(f, &f->a, b);
	starts_at(test, f, 16, 1);
	KUNIT_EXPECT_EQ(test, f->m.no_whole, 16u);
	KUNIT_EXPECT_EQ(test, f->m.nr_free, 0u);
	put(f, &f->a, kvt_mem_region(&f->m, 1));
	put(f, &f->a, kvt_mem_region(&f->m, 17));
	starts_at(test, f, 16, 16);
}

/* Regions of one length fill a tier, whatever the length, but for what is shorter than that. */
static void regions_leave_no_holes(struct kunit *test)
{
	const u32 nr = 20 * KVT_STRETCH_PIECES + 5;
	u64 *map = kunit_kzalloc(test, KVT_PIECES_WORDS(nr) * sizeof(*map), GFP_KERNEL);
	struct fixture *f = setup(test, KVT_PIECE_CLEAN);
	union kvt_dirent *dir[6] = { NULL }, *chunk;
	u32 len;

	KUNIT_ASSERT_NOT_NULL(test, map);
	for (len = 1; len <= 70; len++) {
		f->a = (struct kvt_owner){ .partial = KVT_NO_REGION };
		kvt_mem_init(&f->m, map, dir, nr, KVT_PIECE_CLEAN);
		do {
			if (kvt_mem_dir_full(&f->m)) {
				chunk = kunit_kzalloc(test, sizeof(f->chunk), GFP_KERNEL);
				KUNIT_ASSERT_NOT_NULL(test, chunk);
				KUNIT_ASSERT_TRUE(test, kvt_mem_dir_add(&f->m, chunk));
			}
		} while (f->m.nr_free && region_get(test, f, &f->a, KVT_PIECE_PAGES, len));
		KUNIT_EXPECT_EQ(test, f->m.nr_free, nr % len);
	}
}

/* Memory that goes with its region takes what was bad along: the piece is as good as new. */
static void lent_pieces_are_not_retired(struct kunit *test)
{
	struct fixture *f = setup(test, KVT_PIECE_UNKNOWN);
	struct kvt_region *reg;
	u32 round;

	f->m.lent = true;
	for (round = 0; round < 2; round++) {
		reg = region_get(test, f, &f->a, 64, NR_PIECES);
		KUNIT_ASSERT_NOT_NULL(test, reg);
		kvt_mem_region_open(&f->m, &f->a, reg);
		kvt_mem_poison(&f->m, &f->a, 5 * KVT_PIECE_PAGES + 3);
		KUNIT_EXPECT_TRUE(test, kvt_mem_word(&f->m, 5) & KVT_PIECE_POISON);
		put(f, &f->a, reg);
		KUNIT_EXPECT_EQ(test, f->m.nr_free, (u32)NR_PIECES);
		KUNIT_EXPECT_EQ(test, f->m.nr_retired, 0u);
		KUNIT_EXPECT_EQ(test, f->m.retired_pages, 0ull);
	}
}

/* A piece that has been away is zeroed; those beside it hold what they held. */
static void what_comes_back_excuses_nobody(struct kunit *test)
{
	struct fixture *f = setup(test, KVT_PIECE_CLEAN);
	struct kvt_region *a = region_get(test, f, &f->a, 64, 16), *b;
	u32 piece;

	KUNIT_ASSERT_NOT_NULL(test, a);
	b = region_get(test, f, &f->b, 64, NR_PIECES - 16);
	KUNIT_ASSERT_NOT_NULL(test, b);
	put(f, &f->a, a);
	KUNIT_ASSERT_EQ(test, kvt_mem_pieces_leave(&f->m, &piece, 1), 1u);
	KUNIT_EXPECT_EQ(test, piece, 15u);
	KUNIT_EXPECT_EQ(test, kvt_mem_word(&f->m, piece), KVT_PIECE_ABSENT);
	KUNIT_EXPECT_NULL(test, region_get(test, f, &f->b, 64, 16));
	kvt_mem_piece_come(&f->m, piece);
	b = region_get(test, f, &f->b, 64, 16);
	KUNIT_ASSERT_NOT_NULL(test, b);
	KUNIT_EXPECT_EQ(test, (u32)b->state, (u32)KVT_REGION_DIRTY);
	/* Given back as it is: nobody knows now. */
	put(f, &f->b, b);
	a = region_get(test, f, &f->a, 64, 15);
	KUNIT_ASSERT_NOT_NULL(test, a);
	KUNIT_EXPECT_EQ(test, (u32)a->state, (u32)KVT_REGION_DIRTY);
}

static struct kunit_case runs_cases[] = {
	KUNIT_CASE(whole_stretches_come_first),
	KUNIT_CASE(any_run_will_do),
	KUNIT_CASE(regions_leave_no_holes),
	KUNIT_CASE(lent_pieces_are_not_retired),
	KUNIT_CASE(what_comes_back_excuses_nobody),
	{ }
};

static struct kunit_suite runs_suite = {
	.name = "kvt_runs",
	.test_cases = runs_cases,
};

kunit_test_suite(runs_suite);
