// SPDX-License-Identifier: GPL-2.0
/*
 * Regions and slots: life cycle, owner lists, who may see whose bytes.
 */
#include "kvt_kunit.h"
#include "../core/kvt_mem.h"
#include "kvt_mem_kunit.h"

static bool is_dirty(const struct kvt_region *reg)
{
	return reg->state == KVT_REGION_DIRTY;
}

/* As the store does it: all slots are free, mappings and references gone. */
static void region_put(struct kunit *test, struct fixture *f, struct kvt_owner *o,
		       struct kvt_region *reg, bool scrubbed)
{
	if (reg->state == KVT_REGION_ACTIVE)
		kvt_mem_region_drain(&f->m, o, reg);
	KUNIT_ASSERT_EQ(test, reg->nr_used, 0u);
	if (!is_dirty(reg))
		reg->state = KVT_REGION_CLEANING;
	kvt_mem_region_free(&f->m, o, reg, ns_of(f, o), scrubbed);
	/* Its memory may go now: nothing looks at it any more. */
	memset(reg, 0xa5, sizeof(*reg));
}

/* Slot sizes of real models in KiB (rounded up to 4), TP 1 to 8, 16 to 512 tokens. */
static const u32 model_kib[] = {
	8, 12, 16, 20, 32, 44, 64, 72, 128, 164, 256, 288, 328, 384, 512, 576, 628, 640,
	752, 896, 1008, 1024, 1100, 1152, 1536, 2048, 2304, 2500, 2504, 2560, 3008, 3584,
	4032, 4096, 4396, 4608, 5120, 6144, 8064, 8192, 9216, 10004, 10008, 10240, 12032,
	14336, 16128, 16384, 17568, 18432, 20008, 20012, 20480, 24576, 28672, 32256, 32768,
	35136, 36864, 48128, 49152, 57344, 65536, 73728, 81920, 96256, 114688, 129024,
	131072, 163840, 258048, 262144,
};

static void check_geometry(struct kunit *test, u32 slot_pages)
{
	u32 nr_slots = 0, pieces, run, waste;

	pieces = kvt_mem_geometry(slot_pages, KVT_REGION_PIECES_MAX, &nr_slots);
	KUNIT_ASSERT_NE(test, pieces, 0u);
	KUNIT_ASSERT_TRUE(test, pieces <= KVT_REGION_PIECES_MAX);
	run = pieces * KVT_PIECE_PAGES;
	KUNIT_ASSERT_EQ(test, nr_slots, run / slot_pages);
	waste = run - nr_slots * slot_pages;
	KUNIT_EXPECT_TRUE(test, waste * 100 <= run * KVT_WASTE_PERCENT);
}

static void mem_geometry_of_models(struct kunit *test)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(model_kib); i++)
		check_geometry(test, DIV_ROUND_UP(model_kib[i], 4));
}

/* Waste is within bounds not only for sizes that somebody thought of. */
static void mem_geometry_of_all_sizes(struct kunit *test)
{
	u32 slot_pages;

	for (slot_pages = 1; slot_pages <= KVT_REGION_PIECES_MAX * KVT_PIECE_PAGES;
	     slot_pages++)
		check_geometry(test, slot_pages);
}

/* Regions change hands as a whole: the shortest good run is the right one. */
static void mem_geometry_is_shortest(struct kunit *test)
{
	u32 slot_pages, nr_slots, pieces, p, run;

	for (slot_pages = 1; slot_pages < 20000; slot_pages += 37) {
		pieces = kvt_mem_geometry(slot_pages, KVT_REGION_PIECES_MAX, &nr_slots);
		for (p = 1; p < pieces; p++) {
			run = p * KVT_PIECE_PAGES;
			KUNIT_EXPECT_TRUE(test, run < slot_pages ||
					  (run % slot_pages) * 100 >
					  run * KVT_WASTE_PERCENT);
		}
	}
}

/* On a small tier what fits is taken, and what does not is refused. */
static void mem_geometry_small_tier(struct kunit *test)
{
	u32 nr_slots = 0;

	KUNIT_EXPECT_EQ(test, kvt_mem_geometry(KVT_PIECE_PAGES + 1, 1, &nr_slots), 0u);
	KUNIT_EXPECT_EQ(test, kvt_mem_geometry(1, 0, &nr_slots), 0u);
	KUNIT_EXPECT_EQ(test, kvt_mem_geometry(KVT_PIECE_PAGES + 1, 2, &nr_slots), 2u);
	KUNIT_EXPECT_EQ(test, nr_slots, 1u);
	/* 17.16 MiB: 9 pieces hold one, 18 two; the first wastes as little. */
	KUNIT_EXPECT_EQ(test, kvt_mem_geometry(4393, 20, &nr_slots), 9u);
	KUNIT_EXPECT_EQ(test, nr_slots, 1u);
}

/* Owners start small, and what they get follows what they have, within bounds. */
static void mem_growth_follows_need(struct kunit *test)
{
	struct kvt_owner o = { .partial = KVT_NO_REGION };
	u32 have = 0, pieces, last = 0, i;

	/* 2 MiB: one piece a slot. */
	for (i = 0; i < 100; i++) {
		o.nr_pieces = have;
		pieces = kvt_mem_growth(&o, KVT_PIECE_PAGES, KVT_REGION_PIECES_MAX);
		KUNIT_ASSERT_TRUE(test, pieces >= max(last, 1u));
		KUNIT_EXPECT_TRUE(test, pieces == 1 || pieces <= have / 2);
		KUNIT_EXPECT_TRUE(test, pieces <= KVT_REGION_SLOTS);
		have += pieces;
		last = pieces;
	}
	KUNIT_EXPECT_EQ(test, last, KVT_REGION_SLOTS);
	/* Never beyond what the caller allows. */
	KUNIT_EXPECT_EQ(test, kvt_mem_growth(&o, KVT_PIECE_PAGES, 6), 6u);
	KUNIT_EXPECT_EQ(test, kvt_mem_growth(&o, KVT_PIECE_PAGES, 0), 0u);
	KUNIT_EXPECT_EQ(test, kvt_mem_growth(&o, KVT_PIECE_PAGES + 1, 1), 0u);
	/* Regions that have enough slots are left alone: 64 KiB, 640 KiB. */
	KUNIT_EXPECT_EQ(test, kvt_mem_growth(&o, 16, KVT_REGION_PIECES_MAX), 1u);
	KUNIT_EXPECT_EQ(test, kvt_mem_growth(&o, 160, KVT_REGION_PIECES_MAX), 5u);
}

/* Whatever the size: a multiple of the shortest run, that wastes no more. */
static void mem_growth_of_all_sizes(struct kunit *test)
{
	struct kvt_owner o = { .partial = KVT_NO_REGION, .nr_pieces = 1u << 20 };
	u32 slot_pages, pieces, shortest, nr_slots = 0, run;

	for (slot_pages = 1; slot_pages <= KVT_REGION_PIECES_MAX * KVT_PIECE_PAGES;
	     slot_pages += 1 + slot_pages / 997) {
		shortest = kvt_mem_geometry(slot_pages, KVT_REGION_PIECES_MAX, &nr_slots);
		pieces = kvt_mem_growth(&o, slot_pages, KVT_REGION_PIECES_MAX);
		run = pieces * KVT_PIECE_PAGES;
		KUNIT_ASSERT_TRUE(test, pieces && pieces <= KVT_REGION_PIECES_MAX);
		KUNIT_ASSERT_EQ(test, pieces % shortest, 0u);
		KUNIT_EXPECT_TRUE(test, run % slot_pages * 100 <= run * KVT_WASTE_PERCENT);
		KUNIT_EXPECT_TRUE(test, pieces == shortest ||
				  kvt_run_slots(pieces, slot_pages) <= KVT_REGION_SLOTS +
				  KVT_REGION_SLOTS * KVT_WASTE_PERCENT / 100);
	}
}

/* Slots of an exact size: disjoint, inside the region, all of them, no more. */
static void mem_slots_are_disjoint(struct kunit *test)
{
	struct fixture *f = setup(test, KVT_PIECE_CLEAN);
	u32 page, i, k, first, nr = 5 * KVT_PIECE_PAGES / 160;
	struct kvt_region *reg;

	reg = region_get(test, f, &f->a, 160, 5);
	KUNIT_ASSERT_NOT_NULL(test, reg);
	KUNIT_EXPECT_FALSE(test, is_dirty(reg));
	KUNIT_EXPECT_EQ(test, f->m.nr_free, NR_PIECES - 5u);
	KUNIT_EXPECT_EQ(test, f->a.nr_pieces, 5u);
	for (i = 1; i <= nr; i++) {
		partial_is(test, f, &f->a, 1);
		page = kvt_mem_slot_alloc(&f->m, &f->a, KVT_NO_REGION, i);
		KUNIT_ASSERT_NE(test, page, KVT_NO_PAGE);
		KUNIT_ASSERT_TRUE(test, page + 160 <= (reg->first + 5) * KVT_PIECE_PAGES);
		KUNIT_ASSERT_EQ(test, f->m.used_pages, (u64)i * 160);
		for (k = 0; k < 160; k++) {
			KUNIT_ASSERT_EQ(test, kvt_mem_block_at(&f->m, page + k, &first), i);
			KUNIT_ASSERT_EQ(test, first, page);
		}
	}
	/* Had two slots overlapped, a block would have lost pages by now. */
	for (k = 0, i = 0; k < NR_PIECES * KVT_PIECE_PAGES; k++)
		i += kvt_mem_block_at(&f->m, k, &first) != KVT_NIL;
	KUNIT_EXPECT_EQ(test, i, nr * 160);
	partial_is(test, f, &f->a, 0);
	KUNIT_EXPECT_EQ(test, kvt_mem_slot_alloc(&f->m, &f->a, KVT_NO_REGION, 999),
			KVT_NO_PAGE);
	KUNIT_EXPECT_EQ(test, kvt_mem_slot_alloc(&f->m, &f->a, reg->first, 999), KVT_NO_PAGE);
	KUNIT_EXPECT_EQ(test, f->m.used_pages, (u64)nr * 160);
}

/* Pages outside regions, past the end and in a region's tail belong to nobody. */
static void mem_block_at_nonsense(struct kunit *test)
{
	struct fixture *f = setup(test, KVT_PIECE_CLEAN);
	struct kvt_region *reg;
	u32 page, first = 4711;

	KUNIT_EXPECT_EQ(test, kvt_mem_block_at(&f->m, 0, &first), KVT_NIL);
	reg = region_get(test, f, &f->a, 500, 1);
	page = kvt_mem_slot_alloc(&f->m, &f->a, KVT_NO_REGION, 5);
	KUNIT_EXPECT_EQ(test, kvt_mem_block_at(&f->m, page + 499, &first), 5u);
	first = 4711;
	KUNIT_EXPECT_EQ(test, kvt_mem_block_at(&f->m, page + 500, &first), KVT_NIL);
	KUNIT_EXPECT_EQ(test, kvt_mem_block_at(&f->m, (reg->first + 1) * KVT_PIECE_PAGES,
					       &first), KVT_NIL);
	KUNIT_EXPECT_EQ(test, kvt_mem_block_at(&f->m, NR_PIECES * KVT_PIECE_PAGES, &first),
			KVT_NIL);
	KUNIT_EXPECT_EQ(test, kvt_mem_block_at(&f->m, U32_MAX, &first), KVT_NIL);
	KUNIT_EXPECT_EQ(test, first, 4711u);
	kvt_mem_slot_free(&f->m, &f->a, page);
	KUNIT_EXPECT_EQ(test, kvt_mem_block_at(&f->m, page, &first), KVT_NIL);
}

/* A region has one name, its first piece, and is found from any of its pieces. */
static void mem_regions_by_piece(struct kunit *test)
{
	struct fixture *f = setup(test, KVT_PIECE_CLEAN);
	struct kvt_region *a = region_get(test, f, &f->a, 64, 3);
	struct kvt_region *b = region_get(test, f, &f->b, 64, 2);
	u32 i;

	for (i = 0; i < NR_PIECES; i++) {
		struct kvt_region *want = i < 3 ? a : i < 5 ? b : NULL;

		KUNIT_EXPECT_PTR_EQ(test, kvt_mem_region_at(&f->m, i), want);
		KUNIT_EXPECT_PTR_EQ(test, kvt_mem_region(&f->m, i),
				    i == 0 || i == 3 ? want : NULL);
	}
	KUNIT_EXPECT_NULL(test, kvt_mem_region_at(&f->m, NR_PIECES));
	KUNIT_EXPECT_NULL(test, kvt_mem_region_at(&f->m, KVT_NO_REGION));
	region_put(test, f, &f->a, a, false);
	KUNIT_EXPECT_EQ(test, f->a.nr_pieces, 0u);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_NULL(test, kvt_mem_region_at(&f->m, i));
	KUNIT_EXPECT_PTR_EQ(test, kvt_mem_region_at(&f->m, 4), b);
}

/* The directory grows when it has to, and numbers are used again. */
static void mem_directory_grows(struct kunit *test)
{
	const u32 nr = 2 * KVT_DIR_ENTRIES;
	u64 *map = kunit_kzalloc(test, KVT_PIECES_WORDS(nr) * sizeof(*map), GFP_KERNEL);
	union kvt_dirent *dir[2] = { NULL }, *chunk[3];
	struct fixture *f = setup(test, KVT_PIECE_CLEAN);
	struct kvt_region *reg = NULL;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, map);
	for (i = 0; i < ARRAY_SIZE(chunk); i++) {
		chunk[i] = kunit_kzalloc(test, KVT_DIR_ENTRIES * sizeof(**chunk), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, chunk[i]);
	}
	kvt_mem_init(&f->m, map, dir, nr, KVT_PIECE_CLEAN);
	KUNIT_ASSERT_EQ(test, kvt_mem_dir_chunks(nr), 2u);
	KUNIT_ASSERT_TRUE(test, kvt_mem_dir_add(&f->m, chunk[0]));
	KUNIT_EXPECT_FALSE(test, kvt_mem_dir_add(&f->m, chunk[1]));
	for (i = 0; i < KVT_DIR_ENTRIES; i++) {
		KUNIT_ASSERT_TRUE(test, !kvt_mem_dir_full(&f->m));
		reg = region_get(test, f, &f->a, 64, 1);
		KUNIT_ASSERT_NOT_NULL(test, reg);
	}
	KUNIT_EXPECT_TRUE(test, kvt_mem_dir_full(&f->m));
	region_put(test, f, &f->a, reg, false);
	KUNIT_EXPECT_FALSE(test, kvt_mem_dir_full(&f->m));
	KUNIT_ASSERT_NOT_NULL(test, region_get(test, f, &f->a, 64, 1));
	KUNIT_ASSERT_TRUE(test, kvt_mem_dir_add(&f->m, chunk[1]));
	for (i = 0; i < KVT_DIR_ENTRIES; i++)
		KUNIT_ASSERT_NOT_NULL(test, region_get(test, f, &f->b, 64, 1));
	for (i = 0; i < nr; i++)
		KUNIT_EXPECT_EQ(test, kvt_mem_region(&f->m, i)->first, i);
	/* There is one for each piece: no more are needed. */
	KUNIT_EXPECT_FALSE(test, kvt_mem_dir_add(&f->m, chunk[2]));
	KUNIT_EXPECT_EQ(test, f->m.nr_free, 0u);
}

/* A region is on its owner's list exactly while it can hand out a slot. */
static void mem_partial_list(struct kunit *test)
{
	struct fixture *f = setup(test, KVT_PIECE_CLEAN);
	struct kvt_region *r1, *r2;
	u32 p1, p2, p3;

	r1 = region_get(test, f, &f->a, KVT_PIECE_PAGES, 1);
	r2 = region_get(test, f, &f->a, KVT_PIECE_PAGES, 2);
	partial_is(test, f, &f->a, 2);
	p1 = kvt_mem_slot_alloc(&f->m, &f->a, r1->first, 1);
	partial_is(test, f, &f->a, 1);
	p2 = kvt_mem_slot_alloc(&f->m, &f->a, KVT_NO_REGION, 2);
	KUNIT_EXPECT_PTR_EQ(test, kvt_mem_region_of(&f->m, p2), r2);
	p3 = kvt_mem_slot_alloc(&f->m, &f->a, KVT_NO_REGION, 3);
	partial_is(test, f, &f->a, 0);
	kvt_mem_slot_free(&f->m, &f->a, p1);
	kvt_mem_slot_free(&f->m, &f->a, p3);
	partial_is(test, f, &f->a, 2);

	/* Draining hands out nothing, and takes back. */
	kvt_mem_region_drain(&f->m, &f->a, r2);
	partial_is(test, f, &f->a, 1);
	KUNIT_EXPECT_EQ(test, kvt_mem_slot_alloc(&f->m, &f->a, r2->first, 9), KVT_NO_PAGE);
	kvt_mem_slot_free(&f->m, &f->a, p2);
	partial_is(test, f, &f->a, 1);
	kvt_mem_region_undrain(&f->m, &f->a, r2);
	partial_is(test, f, &f->a, 2);
	kvt_mem_region_drain(&f->m, &f->a, r2);
	region_put(test, f, &f->a, r2, true);
	region_put(test, f, &f->a, r1, true);
	partial_is(test, f, &f->a, 0);
	KUNIT_EXPECT_EQ(test, f->m.nr_free, (u32)NR_PIECES);
	KUNIT_EXPECT_EQ(test, f->m.used_pages, 0ull);
}

/* An arena's slots go to whoever names the region, to nobody else. */
/* Fill the first @used slots of a region, one after the other. */
static void mem_arena_is_private(struct kunit *test)
{
	struct fixture *f = setup(test, KVT_PIECE_CLEAN);
	struct kvt_region *reg;
	u32 page;

	reg = region_get(test, f, &f->a, KVT_PIECE_PAGES, 2);
	kvt_mem_region_arena(&f->m, &f->a, reg, 7);
	partial_is(test, f, &f->a, 0);
	KUNIT_EXPECT_EQ(test, kvt_mem_slot_alloc(&f->m, &f->a, KVT_NO_REGION, 1),
			KVT_NO_PAGE);
	page = kvt_mem_slot_alloc(&f->m, &f->a, reg->first, 1);
	KUNIT_EXPECT_PTR_EQ(test, kvt_mem_region_of(&f->m, page), reg);
	kvt_mem_slot_free(&f->m, &f->a, page);
	partial_is(test, f, &f->a, 0);
	kvt_mem_region_arena(&f->m, &f->a, reg, 0);
	partial_is(test, f, &f->a, 1);
}

/* Owners with one slot size still never get each other's slots. */
static void mem_owners_are_apart(struct kunit *test)
{
	struct fixture *f = setup(test, KVT_PIECE_CLEAN);
	struct kvt_region *ra, *rb;
	u32 page, i;

	ra = region_get(test, f, &f->a, 64, 1);
	rb = region_get(test, f, &f->b, 64, 1);
	for (i = 0; i < 8; i++) {
		page = kvt_mem_slot_alloc(&f->m, &f->a, KVT_NO_REGION, 1 + i);
		KUNIT_EXPECT_PTR_EQ(test, kvt_mem_region_of(&f->m, page), ra);
		page = kvt_mem_slot_alloc(&f->m, &f->b, KVT_NO_REGION, 100 + i);
		KUNIT_EXPECT_PTR_EQ(test, kvt_mem_region_of(&f->m, page), rb);
	}
	KUNIT_EXPECT_EQ(test, kvt_mem_slot_alloc(&f->m, &f->a, KVT_NO_REGION, 50),
			KVT_NO_PAGE);
	partial_is(test, f, &f->b, 0);
}

/*
 * Bytes of others are never handed out: a region whose pages may hold some stays
 * closed until somebody says it was scrubbed.
 */
static void mem_dirty_until_scrubbed(struct kunit *test)
{
	struct fixture *f = setup(test, KVT_PIECE_UNKNOWN);
	struct kvt_region *reg;

	reg = region_get(test, f, &f->a, 64, 2);
	KUNIT_ASSERT_NOT_NULL(test, reg);
	KUNIT_EXPECT_TRUE(test, is_dirty(reg));
	KUNIT_EXPECT_EQ(test, kvt_mem_slot_alloc(&f->m, &f->a, KVT_NO_REGION, 1),
			KVT_NO_PAGE);
	KUNIT_EXPECT_EQ(test, kvt_mem_slot_alloc(&f->m, &f->a, reg->first, 1), KVT_NO_PAGE);

	/* Scrubbing failed: the pieces go back as dirty as they came. */
	region_put(test, f, &f->a, reg, false);
	reg = region_get(test, f, &f->a, 64, 2);
	KUNIT_ASSERT_NOT_NULL(test, reg);
	KUNIT_EXPECT_TRUE(test, is_dirty(reg));
	kvt_mem_region_open(&f->m, &f->a, reg);
	KUNIT_EXPECT_NE(test, kvt_mem_slot_alloc(&f->m, &f->a, KVT_NO_REGION, 1),
			KVT_NO_PAGE);
}

/* Who had the pages last decides; a single foreign piece spoils a run. */
static void mem_dirty_tracks_owners(struct kunit *test)
{
	struct fixture *f = setup(test, KVT_PIECE_CLEAN);
	struct kvt_region *reg, *r2;

	reg = region_get(test, f, &f->a, 64, 2);
	KUNIT_EXPECT_FALSE(test, is_dirty(reg));
	region_put(test, f, &f->a, reg, false);
	reg = region_get(test, f, &f->a, 32, 2);
	KUNIT_EXPECT_FALSE(test, is_dirty(reg));
	region_put(test, f, &f->a, reg, false);
	reg = region_get(test, f, &f->b, 64, 2);
	KUNIT_EXPECT_TRUE(test, is_dirty(reg));
	kvt_mem_region_open(&f->m, &f->b, reg);
	region_put(test, f, &f->b, reg, true);
	reg = region_get(test, f, &f->a, 64, 2);
	KUNIT_EXPECT_FALSE(test, is_dirty(reg));

	/* Pieces 2 and 3 were b's; then a wants a run that takes in one of them. */
	r2 = region_get(test, f, &f->b, 64, 2);
	KUNIT_EXPECT_FALSE(test, is_dirty(r2));
	KUNIT_EXPECT_EQ(test, r2->first, reg->first + 2);
	region_put(test, f, &f->b, r2, false);
	region_put(test, f, &f->a, reg, false);
	reg = region_get(test, f, &f->a, 64, 3);
	KUNIT_EXPECT_TRUE(test, is_dirty(reg));
	KUNIT_EXPECT_EQ(test, reg->ns_group, kvt_ns_group(1, 0));
}

/* An id that the map has no room for is nobody's, not another's. */
static void mem_long_ids_are_unknown(struct kunit *test)
{
	static const u64 ids[] = { KVT_PIECE_ABSENT, KVT_PIECE_RETIRED, KVT_PIECE_UNKNOWN,
				   KVT_PIECE_USED, (1ull << KVT_WORD_BITS) + NS_A,
				   (1ull << 32) + NS_A };
	struct fixture *f = setup(test, KVT_PIECE_CLEAN);
	struct kvt_region *reg = region_get(test, f, &f->a, 64, 1);
	u32 i;

	region_put(test, f, &f->a, reg, false);
	for (i = 0; i < ARRAY_SIZE(ids); i++) {
		KUNIT_ASSERT_TRUE(test, kvt_mem_region_alloc(&f->m, &f->b, reg, ids[i],
							     kvt_ns_group(2, 0), 64, 1));
		KUNIT_EXPECT_EQ(test, reg->first, 0u);
		KUNIT_EXPECT_TRUE(test, is_dirty(reg));
		kvt_mem_region_open(&f->m, &f->b, reg);
		kvt_mem_region_drain(&f->m, &f->b, reg);
		reg->state = KVT_REGION_CLEANING;
		kvt_mem_region_free(&f->m, &f->b, reg, ids[i], false);
	}
	/* 2^29 + a is not a. */
	KUNIT_ASSERT_TRUE(test, kvt_mem_region_alloc(&f->m, &f->a, reg, NS_A,
						     kvt_ns_group(1, 0), 64, 1));
	KUNIT_EXPECT_TRUE(test, is_dirty(reg));
}

/* What does not fit in one run is refused and nothing changes. */
static void mem_fragmented_is_refused(struct kunit *test)
{
	struct fixture *f = setup(test, KVT_PIECE_CLEAN);
	struct kvt_region *reg[NR_PIECES], *got;
	u32 i, n;

	for (i = 0; i < NR_PIECES; i++) {
		reg[i] = region_get(test, f, &f->a, 64, 1);
		KUNIT_ASSERT_NOT_NULL(test, reg[i]);
	}
	KUNIT_EXPECT_NULL(test, region_get(test, f, &f->a, 64, 1));
	for (i = 0; i < NR_PIECES; i += 2)
		region_put(test, f, &f->a, reg[i], true);
	n = f->m.nr_free;
	KUNIT_EXPECT_EQ(test, n, NR_PIECES / 2u);
	KUNIT_EXPECT_NULL(test, region_get(test, f, &f->b, 64, 2));
	KUNIT_EXPECT_EQ(test, f->m.nr_free, n);
	KUNIT_EXPECT_EQ(test, f->b.nr_pieces, 0u);
	partial_is(test, f, &f->a, NR_PIECES / 2);
	partial_is(test, f, &f->b, 0);

	/* One neighbour makes three in a row, wherever the search starts. */
	region_put(test, f, &f->a, reg[11], true);
	got = region_get(test, f, &f->b, 64, 3);
	KUNIT_ASSERT_NOT_NULL(test, got);
	KUNIT_EXPECT_EQ(test, got->first, 10u);
	KUNIT_EXPECT_NULL(test, region_get(test, f, &f->b, 64, 2));
}

/* That there is no run of some length is remembered, until a piece comes free. */
static void mem_no_run_is_remembered(struct kunit *test)
{
	struct fixture *f = setup(test, KVT_PIECE_CLEAN);
	struct kvt_region *reg[NR_PIECES];
	u32 i, piece;

	for (i = 0; i < NR_PIECES; i++)
		reg[i] = region_get(test, f, &f->a, 64, 1);
	for (i = 0; i < NR_PIECES; i += 2)
		region_put(test, f, &f->a, reg[i], true);
	KUNIT_EXPECT_NULL(test, region_get(test, f, &f->b, 64, 5));
	KUNIT_EXPECT_EQ(test, f->m.no_run, 5u);
	/* Shorter ones are still looked for, longer ones are not. */
	KUNIT_EXPECT_NULL(test, region_get(test, f, &f->b, 64, 2));
	KUNIT_EXPECT_NULL(test, region_get(test, f, &f->b, 64, 3));
	KUNIT_EXPECT_EQ(test, f->m.no_run, 2u);
	reg[0] = region_get(test, f, &f->b, 64, 1);
	KUNIT_ASSERT_NOT_NULL(test, reg[0]);
	/* A region that goes; a piece that leaves, and comes. */
	region_put(test, f, &f->a, reg[5], true);
	KUNIT_EXPECT_LT(test, 3u, f->m.no_run);
	KUNIT_EXPECT_TRUE(test, region_get(test, f, &f->b, 64, 3));
	KUNIT_ASSERT_EQ(test, kvt_mem_pieces_leave(&f->m, &piece, 1), 1u);
	region_put(test, f, &f->a, reg[piece - 1], true);
	KUNIT_EXPECT_NULL(test, region_get(test, f, &f->b, 64, 3));
	KUNIT_EXPECT_EQ(test, f->m.no_run, 3u);
	kvt_mem_piece_come(&f->m, piece);
	KUNIT_EXPECT_TRUE(test, region_get(test, f, &f->b, 64, 3));
}

/* The longest run of free pieces, by a look at all of them. */
static u32 longest_run(const struct kvt_mem *m)
{
	u32 i, run = 0, best = 0;

	for (i = 0; i < m->nr_pieces; i++) {
		u32 word = kvt_mem_word(m, i);

		run = (word & KVT_PIECE_USED) || word == KVT_PIECE_RETIRED ||
		      word == KVT_PIECE_ABSENT ? 0 : run + 1;
		best = max(best, run);
	}
	return best;
}

/* Whatever came before: a run is had exactly when there is one. */
static void mem_runs_are_found(struct kunit *test)
{
	struct kvt_region *reg[NR_PIECES] = { NULL };
	struct fixture *f = setup(test, KVT_PIECE_CLEAN);
	u32 i, step, want, longest, refused = 0, piece;
	u64 rnd = 17;

	for (step = 0; step < 4000; step++) {
		i = kvt_test_random(&rnd) % NR_PIECES;
		want = 1 + kvt_test_random(&rnd) % 6;
		longest = longest_run(&f->m);
		if (step % 1000 == 500) {
			kvt_mem_poison(&f->m, &f->a, i * KVT_PIECE_PAGES);
		} else if (reg[i]) {
			region_put(test, f, &f->a, reg[i], true);
			reg[i] = NULL;
		} else if (!(step % 7)) {
			kvt_mem_pieces_leave(&f->m, &piece, 1);
		} else if (!(step % 5) && f->m.nr_absent) {
			kvt_mem_piece_come(&f->m, kvt_mem_piece_absent(&f->m));
		} else {
			reg[i] = region_get(test, f, &f->a, KVT_PIECE_PAGES, want);
			KUNIT_ASSERT_EQ(test, !!reg[i], want <= longest);
			refused += !reg[i];
		}
		/* What is remembered is true. */
		KUNIT_ASSERT_LT(test, longest_run(&f->m), f->m.no_run);
	}
	KUNIT_EXPECT_LT(test, 100u, refused);
	KUNIT_EXPECT_LT(test, 0u, f->m.nr_retired);
}

/* A bad page costs its slot, whether free, in use, or in the middle of the free list. */
static void mem_poison_retires_slots(struct kunit *test)
{
	struct fixture *f = setup(test, KVT_PIECE_CLEAN);
	struct kvt_region *reg = region_get(test, f, &f->a, 64, 2);
	u32 used[2], page, i, nr = 0, bad[3] = { 0, 5 * 64 + 63, 15 * 64 };

	used[0] = kvt_mem_slot_alloc(&f->m, &f->a, KVT_NO_REGION, 1);
	used[1] = kvt_mem_slot_alloc(&f->m, &f->a, KVT_NO_REGION, 2);
	KUNIT_EXPECT_EQ(test, used[0], bad[0]);
	KUNIT_EXPECT_EQ(test, kvt_mem_poison(&f->m, &f->a, bad[0] + 7), 1u);
	for (i = 1; i < ARRAY_SIZE(bad); i++)
		KUNIT_EXPECT_EQ(test, kvt_mem_poison(&f->m, &f->a, bad[i]), KVT_NIL);
	KUNIT_EXPECT_TRUE(test, kvt_mem_slot_poisoned(&f->m, used[0]));
	KUNIT_EXPECT_FALSE(test, kvt_mem_slot_poisoned(&f->m, used[1]));
	KUNIT_EXPECT_EQ(test, f->m.retired_pages, 2 * 64ull);
	/* Said twice, and of another page of the same slot. */
	KUNIT_EXPECT_EQ(test, kvt_mem_poison(&f->m, &f->a, bad[0] + 7), 1u);
	KUNIT_EXPECT_EQ(test, kvt_mem_poison(&f->m, &f->a, bad[1] - 1), KVT_NIL);
	KUNIT_EXPECT_EQ(test, f->m.retired_pages, 2 * 64ull);
	/* The block there is still itself, and its slot goes when it is given back. */
	KUNIT_EXPECT_EQ(test, kvt_mem_block_at(&f->m, 63, &page), 1u);
	kvt_mem_slot_free(&f->m, &f->a, used[0]);
	kvt_mem_slot_free(&f->m, &f->a, used[1]);
	KUNIT_EXPECT_EQ(test, kvt_mem_block_at(&f->m, 63, &page), KVT_NIL);
	KUNIT_EXPECT_EQ(test, f->m.retired_pages, 3 * 64ull);
	KUNIT_EXPECT_EQ(test, reg->nr_used, 0u);
	partial_is(test, f, &f->a, 1);
	for (;; nr++) {
		page = kvt_mem_slot_alloc(&f->m, &f->a, KVT_NO_REGION, 10 + nr);
		if (page == KVT_NO_PAGE)
			break;
		for (i = 0; i < ARRAY_SIZE(bad); i++)
			KUNIT_EXPECT_NE(test, page / 64, bad[i] / 64);
	}
	KUNIT_EXPECT_EQ(test, nr, 13u);
	partial_is(test, f, &f->a, 0);
}

/* When the region goes, pieces with bad pages stay out of use, the others do not. */
static void mem_poison_retires_pieces(struct kunit *test)
{
	struct fixture *f = setup(test, KVT_PIECE_CLEAN);
	struct kvt_region *reg = region_get(test, f, &f->a, 500, 3), *other;
	u32 i;

	/* A slot of piece 0; the tail of the run, which is in no slot. */
	KUNIT_EXPECT_EQ(test, kvt_mem_poison(&f->m, &f->a, 3), KVT_NIL);
	KUNIT_EXPECT_EQ(test, kvt_mem_poison(&f->m, &f->a, 3 * KVT_PIECE_PAGES - 1), KVT_NIL);
	KUNIT_EXPECT_EQ(test, f->m.retired_pages, 500ull);
	KUNIT_EXPECT_EQ(test, f->m.nr_retired, 0u);
	region_put(test, f, &f->a, reg, true);
	KUNIT_EXPECT_EQ(test, f->m.nr_retired, 2u);
	KUNIT_EXPECT_EQ(test, f->m.nr_free, NR_PIECES - 2u);
	KUNIT_EXPECT_EQ(test, f->m.retired_pages, 2ull * KVT_PIECE_PAGES);
	/* A free piece; one that is gone; pages of no piece. */
	KUNIT_EXPECT_EQ(test, kvt_mem_poison(&f->m, NULL, 10 * KVT_PIECE_PAGES), KVT_NIL);
	KUNIT_EXPECT_EQ(test, kvt_mem_poison(&f->m, NULL, 4), KVT_NIL);
	KUNIT_EXPECT_EQ(test, kvt_mem_poison(&f->m, NULL, NR_PIECES * KVT_PIECE_PAGES), KVT_NIL);
	KUNIT_EXPECT_EQ(test, kvt_mem_poison(&f->m, NULL, U32_MAX), KVT_NIL);
	KUNIT_EXPECT_EQ(test, f->m.nr_retired, 3u);
	KUNIT_EXPECT_EQ(test, f->m.nr_free, NR_PIECES - 3u);
	/* Nobody gets one, alone or in a run, not even when all else is taken. */
	KUNIT_EXPECT_NULL(test, region_get(test, f, &f->b, 64, NR_PIECES - 10));
	other = region_get(test, f, &f->b, 64, 7);
	KUNIT_ASSERT_NOT_NULL(test, other);
	KUNIT_EXPECT_EQ(test, other->first, 3u);
	for (i = 0; i < NR_PIECES - 10; i++)
		KUNIT_ASSERT_NOT_NULL(test, region_get(test, f, &f->b, 64, 1));
	KUNIT_EXPECT_EQ(test, f->m.nr_free, 0u);
	KUNIT_EXPECT_NULL(test, region_get(test, f, &f->b, 64, 1));
	for (i = 0; i < NR_PIECES; i++)
		KUNIT_EXPECT_EQ(test, !kvt_mem_region_at(&f->m, i), i == 0 || i == 2 || i == 10);
}

/* Free pieces leave from the end; nobody gets one before it has come again. */
static void mem_pieces_leave_and_come(struct kunit *test)
{
	struct fixture *f = setup(test, KVT_PIECE_UNKNOWN);
	struct kvt_region *reg = region_get(test, f, &f->a, 64, 2), *other;
	u32 piece[NR_PIECES], nr, i;

	KUNIT_ASSERT_NOT_NULL(test, reg);
	KUNIT_EXPECT_EQ(test, kvt_mem_piece_absent(&f->m), KVT_NO_REGION);
	KUNIT_EXPECT_EQ(test, kvt_mem_poison(&f->m, NULL, (NR_PIECES - 1) * KVT_PIECE_PAGES),
			KVT_NIL);
	KUNIT_ASSERT_EQ(test, kvt_mem_pieces_leave(&f->m, piece, 3), 3u);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, piece[i], NR_PIECES - 2 - i);
	KUNIT_EXPECT_EQ(test, f->m.nr_free, NR_PIECES - 6u);
	KUNIT_EXPECT_EQ(test, f->m.nr_absent, 3u);
	KUNIT_EXPECT_NULL(test, region_get(test, f, &f->b, 64, NR_PIECES - 5));
	/* One that is absent cannot go bad. */
	KUNIT_EXPECT_EQ(test, kvt_mem_poison(&f->m, NULL, piece[0] * KVT_PIECE_PAGES), KVT_NIL);
	KUNIT_EXPECT_EQ(test, f->m.nr_retired, 1u);
	nr = kvt_mem_pieces_leave(&f->m, piece, NR_PIECES);
	KUNIT_EXPECT_EQ(test, nr, NR_PIECES - 6u);
	KUNIT_EXPECT_EQ(test, kvt_mem_pieces_leave(&f->m, piece, NR_PIECES), 0u);
	KUNIT_EXPECT_NULL(test, region_get(test, f, &f->b, 64, 1));
	KUNIT_EXPECT_FALSE(test, kvt_mem_empty(&f->m));
	/* What comes is clean: nobody has to scrub it. */
	KUNIT_ASSERT_EQ(test, kvt_mem_piece_absent(&f->m), 2u);
	kvt_mem_piece_come(&f->m, 2);
	other = region_get(test, f, &f->b, 64, 1);
	KUNIT_ASSERT_NOT_NULL(test, other);
	KUNIT_EXPECT_EQ(test, other->first, 2u);
	KUNIT_EXPECT_EQ(test, (u32)other->state, (u32)KVT_REGION_ACTIVE);
	KUNIT_EXPECT_EQ(test, kvt_mem_piece_absent(&f->m), 3u);
	region_put(test, f, &f->b, other, true);
	region_put(test, f, &f->a, reg, true);
	KUNIT_EXPECT_TRUE(test, kvt_mem_empty(&f->m));
}

/* A region without a good slot left is on no list, and can be taken. */
/* A slot passes to another block, and what is known of its pages with it. */
static void mem_slot_assign_keeps_poison(struct kunit *test)
{
	struct fixture *f = setup(test, KVT_PIECE_CLEAN);
	struct kvt_region *reg = region_get(test, f, &f->a, 64, 1);
	u32 page = kvt_mem_slot_alloc(&f->m, &f->a, reg->first, 11), first;

	kvt_mem_slot_assign(&f->m, page, 12);
	KUNIT_EXPECT_EQ(test, kvt_mem_block_at(&f->m, page + 3, &first), 12u);
	KUNIT_EXPECT_EQ(test, kvt_mem_poison(&f->m, &f->a, page), 12u);
	kvt_mem_slot_assign(&f->m, page, 13);
	KUNIT_EXPECT_EQ(test, kvt_mem_block_at(&f->m, page + 3, &first), 13u);
	KUNIT_EXPECT_TRUE(test, kvt_mem_slot_poisoned(&f->m, page));
	kvt_mem_slot_free(&f->m, &f->a, page);
	region_put(test, f, &f->a, reg, false);
}

/* A retired slot does not come back; its memory does, with the region. */
static void mem_slot_retire_lasts_as_the_region(struct kunit *test)
{
	struct fixture *f = setup(test, KVT_PIECE_CLEAN);
	struct kvt_region *reg = region_get(test, f, &f->a, 256, 1);
	u32 page = kvt_mem_slot_alloc(&f->m, &f->a, reg->first, 11), other;

	kvt_mem_slot_retire(&f->m, &f->a, page);
	KUNIT_EXPECT_EQ(test, f->m.used_pages, 0ull);
	KUNIT_EXPECT_EQ(test, f->m.retired_pages, 256ull);
	other = kvt_mem_slot_alloc(&f->m, &f->a, reg->first, 12);
	KUNIT_EXPECT_NE(test, other, page);
	KUNIT_EXPECT_EQ(test, kvt_mem_slot_alloc(&f->m, &f->a, reg->first, 13), KVT_NO_PAGE);
	kvt_mem_slot_free(&f->m, &f->a, other);
	region_put(test, f, &f->a, reg, false);
	KUNIT_EXPECT_EQ(test, f->m.nr_free, (u32)NR_PIECES);
	KUNIT_EXPECT_EQ(test, f->m.retired_pages, 0ull);
}

static void mem_poison_of_the_only_slot(struct kunit *test)
{
	struct fixture *f = setup(test, KVT_PIECE_CLEAN);
	struct kvt_region *reg = region_get(test, f, &f->a, KVT_PIECE_PAGES + 1, 2);

	partial_is(test, f, &f->a, 1);
	KUNIT_EXPECT_EQ(test, kvt_mem_poison(&f->m, &f->a, 9), KVT_NIL);
	partial_is(test, f, &f->a, 0);
	KUNIT_EXPECT_FALSE(test, kvt_region_has_room(reg));
	KUNIT_EXPECT_EQ(test, kvt_mem_slot_alloc(&f->m, &f->a, reg->first, 1), KVT_NO_PAGE);
	region_put(test, f, &f->a, reg, false);
	/* One piece of the two is lost. */
	KUNIT_EXPECT_EQ(test, f->m.nr_free, NR_PIECES - 1u);
	KUNIT_EXPECT_EQ(test, f->m.retired_pages, (u64)KVT_PIECE_PAGES);
}

static struct kunit_case mem_cases[] = {
	KUNIT_CASE(mem_geometry_of_models),
	KUNIT_CASE(mem_geometry_of_all_sizes),
	KUNIT_CASE(mem_geometry_is_shortest),
	KUNIT_CASE(mem_geometry_small_tier),
	KUNIT_CASE(mem_growth_follows_need),
	KUNIT_CASE(mem_growth_of_all_sizes),
	KUNIT_CASE(mem_slots_are_disjoint),
	KUNIT_CASE(mem_block_at_nonsense),
	KUNIT_CASE(mem_regions_by_piece),
	KUNIT_CASE(mem_directory_grows),
	KUNIT_CASE(mem_partial_list),
	KUNIT_CASE(mem_arena_is_private),
	KUNIT_CASE(mem_owners_are_apart),
	KUNIT_CASE(mem_dirty_until_scrubbed),
	KUNIT_CASE(mem_dirty_tracks_owners),
	KUNIT_CASE(mem_long_ids_are_unknown),
	KUNIT_CASE(mem_fragmented_is_refused),
	KUNIT_CASE(mem_no_run_is_remembered),
	KUNIT_CASE(mem_runs_are_found),
	KUNIT_CASE(mem_poison_retires_slots),
	KUNIT_CASE(mem_poison_retires_pieces),
	KUNIT_CASE(mem_pieces_leave_and_come),
	KUNIT_CASE(mem_slot_assign_keeps_poison),
	KUNIT_CASE(mem_slot_retire_lasts_as_the_region),
	KUNIT_CASE(mem_poison_of_the_only_slot),
	{ }
};

static struct kunit_suite mem_suite = {
	.name = "kvt_mem",
	.test_cases = mem_cases,
};

kunit_test_suite(mem_suite);
