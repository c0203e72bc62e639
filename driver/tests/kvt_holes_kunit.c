// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that is free between blocks: how much that is, and which region could be emptied into
 * others.
 */
#include "kvt_kunit.h"
#include "../core/kvt_mem.h"
#include "kvt_mem_kunit.h"

static void fill(struct kunit *test, struct fixture *f, struct kvt_owner *o,
		 struct kvt_region *reg, u32 used)
{
	u32 i, page[KVT_PIECE_PAGES / 32];

	KUNIT_ASSERT_TRUE(test, used <= ARRAY_SIZE(page));
	for (i = 0; i < ARRAY_SIZE(page); i++)
		page[i] = kvt_mem_slot_alloc(&f->m, o, reg->first, i);
	for (i = used; i < ARRAY_SIZE(page); i++)
		kvt_mem_slot_free(&f->m, o, page[i]);
	KUNIT_ASSERT_EQ(test, reg->nr_used, used);
}

static const struct kvt_region *mem_sparse(struct fixture *f, u32 pieces)
{
	u32 looks = 0;

	return kvt_mem_sparse(&f->m, &f->a, pieces, &looks);
}

/* The one with the fewest blocks, if the others have room for them. */
static void mem_sparse_fits_into_others(struct kunit *test)
{
	struct fixture *f = setup(test, KVT_PIECE_CLEAN);
	struct kvt_region *x, *y, *z;

	KUNIT_EXPECT_NULL(test, mem_sparse(f, 1));
	x = region_get(test, f, &f->a, 32, 1);	/* 16 slots */
	fill(test, f, &f->a, x, 3);
	/* There is no other. */
	KUNIT_EXPECT_NULL(test, mem_sparse(f, 1));
	y = region_get(test, f, &f->a, 32, 1);
	fill(test, f, &f->a, y, 14);
	KUNIT_EXPECT_NULL(test, mem_sparse(f, 1));
	z = region_get(test, f, &f->a, 32, 1);
	fill(test, f, &f->a, z, 15);
	/* Two slots here, one there. */
	KUNIT_EXPECT_PTR_EQ(test, mem_sparse(f, 1), (const struct kvt_region *)x);
	/* Another owner's are of no use. */
	region_get(test, f, &f->b, 32, 1);
	kvt_mem_region_drain(&f->m, &f->a, z);
	KUNIT_EXPECT_NULL(test, mem_sparse(f, 1));
	kvt_mem_region_undrain(&f->m, &f->a, z);
	KUNIT_EXPECT_PTR_EQ(test, mem_sparse(f, 1), (const struct kvt_region *)x);
	KUNIT_EXPECT_NULL(test, mem_sparse(f, 2));
	/* One that could not be emptied is passed over for a while, and not filled up at once. */
	KUNIT_EXPECT_EQ(test, f->a.partial, y->first);
	kvt_mem_region_drain(&f->m, &f->a, x);
	kvt_mem_region_undrain(&f->m, &f->a, x);
	KUNIT_EXPECT_EQ(test, f->a.partial, y->first);
	partial_is(test, f, &f->a, 3);
	KUNIT_EXPECT_PTR_EQ(test, mem_sparse(f, 1), (const struct kvt_region *)y);
	f->m.pass++;
	KUNIT_EXPECT_PTR_EQ(test, mem_sparse(f, 1), (const struct kvt_region *)x);
	kvt_mem_region_arena(&f->m, &f->a, z, 1);
	KUNIT_EXPECT_NULL(test, mem_sparse(f, 1));
}

/* Twice the size may have twice the blocks; what is empty is no answer, but room. */
static void mem_sparse_for_its_size(struct kunit *test)
{
	struct fixture *f = setup(test, KVT_PIECE_CLEAN);
	struct kvt_region *one = region_get(test, f, &f->a, 32, 1);
	struct kvt_region *two = region_get(test, f, &f->a, 32, 2);
	u32 i;

	for (i = 0; i < 5; i++)
		KUNIT_ASSERT_NE(test, kvt_mem_slot_alloc(&f->m, &f->a, two->first, i), KVT_NO_PAGE);
	fill(test, f, &f->a, one, 3);
	KUNIT_EXPECT_PTR_EQ(test, mem_sparse(f, 1), (const struct kvt_region *)two);
	kvt_mem_slot_alloc(&f->m, &f->a, two->first, i);
	kvt_mem_slot_alloc(&f->m, &f->a, two->first, i + 1);
	KUNIT_EXPECT_PTR_EQ(test, mem_sparse(f, 1), (const struct kvt_region *)one);
	for (i = 0; i < 3; i++)
		kvt_mem_slot_free(&f->m, &f->a, one->first * KVT_PIECE_PAGES + i * 32);
	/* Seven blocks into sixteen slots. */
	KUNIT_EXPECT_PTR_EQ(test, mem_sparse(f, 1), (const struct kvt_region *)two);
}

/* Full but for one slot each, and in front: what is behind them is found all the same. */
static void mem_sparse_is_behind_many(struct kunit *test)
{
	const u32 full = 40, nr = full + 2;
	u64 *map = kunit_kzalloc(test, KVT_PIECES_WORDS(nr) * sizeof(*map), GFP_KERNEL);
	struct fixture *f = setup(test, KVT_PIECE_CLEAN);
	const struct kvt_region *sparse;
	struct kvt_region *reg = NULL;
	u32 i, slot, looks = 0;

	KUNIT_ASSERT_NOT_NULL(test, map);
	kvt_mem_init(&f->m, map, f->dir, nr, KVT_PIECE_CLEAN);
	KUNIT_ASSERT_TRUE(test, kvt_mem_dir_add(&f->m, f->chunk));
	for (i = 0; i < nr; i++) {
		reg = region_get(test, f, &f->a, 1, 1);
		KUNIT_ASSERT_NOT_NULL(test, reg);
		for (slot = 0; slot < (i < 2 ? 200 : KVT_PIECE_PAGES - 1); slot++)
			kvt_mem_slot_alloc(&f->m, &f->a, reg->first, slot);
	}
	sparse = kvt_mem_sparse(&f->m, &f->a, 1, &looks);
	KUNIT_ASSERT_NOT_NULL(test, sparse);
	KUNIT_EXPECT_EQ(test, sparse->nr_used, 200u);
	KUNIT_EXPECT_EQ(test, looks, nr);
	/* Where the first will do not all are looked at. */
	for (slot = 0; slot < KVT_PIECE_PAGES; slot++) {
		if (!(reg->slot[slot] & KVT_SLOT_FREE))
			kvt_mem_slot_free(&f->m, &f->a, reg->first * KVT_PIECE_PAGES + slot);
	}
	looks = 0;
	KUNIT_ASSERT_NOT_NULL(test, kvt_mem_sparse(&f->m, &f->a, 1, &looks));
	KUNIT_EXPECT_LT(test, looks, nr);
}

/* All pages of regions but those of blocks, whatever else is bad or absent. */
static void mem_holes_are_what_is_not_used(struct kunit *test)
{
	struct fixture *f = setup(test, KVT_PIECE_CLEAN);
	struct kvt_region *reg;
	u32 piece;

	KUNIT_EXPECT_EQ(test, kvt_mem_holes(&f->m), (u64)0);
	reg = region_get(test, f, &f->a, 32, 1);
	KUNIT_EXPECT_EQ(test, kvt_mem_holes(&f->m), (u64)KVT_PIECE_PAGES);
	fill(test, f, &f->a, reg, 15);
	KUNIT_EXPECT_EQ(test, kvt_mem_holes(&f->m), (u64)32);
	kvt_mem_poison(&f->m, &f->a, reg->first * KVT_PIECE_PAGES + 15 * 32);
	KUNIT_EXPECT_EQ(test, kvt_mem_holes(&f->m), (u64)0);
	kvt_mem_poison(&f->m, NULL, (NR_PIECES - 1) * KVT_PIECE_PAGES);
	KUNIT_EXPECT_EQ(test, kvt_mem_pieces_leave(&f->m, &piece, 1), 1u);
	KUNIT_EXPECT_EQ(test, kvt_mem_holes(&f->m), (u64)0);
}

static struct kunit_case holes_cases[] = {
	KUNIT_CASE(mem_sparse_fits_into_others),
	KUNIT_CASE(mem_sparse_for_its_size),
	KUNIT_CASE(mem_sparse_is_behind_many),
	KUNIT_CASE(mem_holes_are_what_is_not_used),
	{ }
};

static struct kunit_suite holes_suite = {
	.name = "kvt_holes",
	.test_cases = holes_cases,
};

kunit_test_suite(holes_suite);
