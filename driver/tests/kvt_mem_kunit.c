// SPDX-License-Identifier: GPL-2.0
/*
 * Regions and slots: life cycle, owner lists, who may see whose bytes.
 */
#include "kvt_kunit.h"
#include "../core/kvt_mem.h"

#define NR_PIECES	24
#define NS_A		100
#define NS_B		200

struct fixture {
	struct kvt_mem m;
	struct kvt_owner a;
	struct kvt_owner b;
	struct kvt_region regions[NR_PIECES];
	u32 piece_region[NR_PIECES];
	u64 last_owner[NR_PIECES];
};

static struct fixture *setup(struct kunit *test, u64 content)
{
	struct fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	kvt_mem_init(&f->m, f->regions, f->piece_region, f->last_owner, NR_PIECES, content);
	f->a.partial = KVT_NO_REGION;
	f->b.partial = KVT_NO_REGION;
	return f;
}

/* A region of @pieces for slots of @slot_pages; NS_A owns @o a, NS_B b. */
static u32 region_get(struct kunit *test, struct fixture *f, struct kvt_owner *o,
		      u32 slot_pages, u32 pieces, bool *dirty)
{
	u32 nr_slots = pieces * KVT_PIECE_PAGES / slot_pages;
	u32 *slots = kunit_kzalloc(test, nr_slots * sizeof(u32), GFP_KERNEL);
	bool a = o == &f->a;

	KUNIT_ASSERT_NOT_NULL(test, slots);
	return kvt_mem_region_alloc(&f->m, o, a ? NS_A : NS_B, kvt_ns_group(a ? 1 : 2, 0),
				    slot_pages, pieces, slots, nr_slots, dirty);
}

/* As the store does it: all slots are free, mappings and references gone. */
static void region_put(struct kunit *test, struct fixture *f, struct kvt_owner *o, u32 r,
		       bool scrubbed)
{
	u32 *slots = f->regions[r].slot;

	if (f->regions[r].state == KVT_REGION_ACTIVE)
		kvt_mem_region_drain(&f->m, o, r);
	KUNIT_ASSERT_EQ(test, f->regions[r].nr_used, 0u);
	f->regions[r].state = KVT_REGION_CLEANING;
	KUNIT_EXPECT_PTR_EQ(test, kvt_mem_region_free(&f->m, r, scrubbed), slots);
}

/* The owner's list holds exactly @nr regions, linked both ways. */
static void partial_is(struct kunit *test, struct fixture *f, struct kvt_owner *o, u32 nr)
{
	u32 r = o->partial, prev = KVT_NO_REGION, n = 0;

	while (r != KVT_NO_REGION) {
		KUNIT_ASSERT_TRUE(test, n < nr);
		KUNIT_ASSERT_EQ(test, f->regions[r].prev, prev);
		KUNIT_ASSERT_TRUE(test, f->regions[r].listed);
		KUNIT_ASSERT_EQ(test, (u32)f->regions[r].state, (u32)KVT_REGION_ACTIVE);
		KUNIT_ASSERT_LT(test, f->regions[r].nr_used, f->regions[r].nr_slots);
		prev = r;
		r = f->regions[r].next;
		n++;
	}
	KUNIT_EXPECT_EQ(test, n, nr);
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

/* Slots of an exact size: disjoint, inside the region, all of them, no more. */
static void mem_slots_are_disjoint(struct kunit *test)
{
	struct fixture *f = setup(test, 0);
	u32 r, page, i, k, first, nr = 5 * KVT_PIECE_PAGES / 160;
	bool dirty = true;

	r = region_get(test, f, &f->a, 160, 5, &dirty);
	KUNIT_ASSERT_NE(test, r, KVT_NO_REGION);
	KUNIT_EXPECT_FALSE(test, dirty);
	KUNIT_EXPECT_EQ(test, f->m.nr_free, NR_PIECES - 5u);
	for (i = 1; i <= nr; i++) {
		partial_is(test, f, &f->a, 1);
		page = kvt_mem_slot_alloc(&f->m, &f->a, KVT_NO_REGION, i);
		KUNIT_ASSERT_NE(test, page, KVT_NO_PAGE);
		KUNIT_ASSERT_TRUE(test, page + 160 <= (r + 5) * KVT_PIECE_PAGES);
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
	KUNIT_EXPECT_EQ(test, kvt_mem_slot_alloc(&f->m, &f->a, r, 999), KVT_NO_PAGE);
	KUNIT_EXPECT_EQ(test, f->m.used_pages, (u64)nr * 160);
}

/* Pages outside regions, past the end and in a region's tail belong to nobody. */
static void mem_block_at_nonsense(struct kunit *test)
{
	struct fixture *f = setup(test, 0);
	u32 r, page, first = 4711;
	bool dirty;

	KUNIT_EXPECT_EQ(test, kvt_mem_block_at(&f->m, 0, &first), KVT_NIL);
	r = region_get(test, f, &f->a, 500, 1, &dirty);
	page = kvt_mem_slot_alloc(&f->m, &f->a, KVT_NO_REGION, 5);
	KUNIT_EXPECT_EQ(test, kvt_mem_block_at(&f->m, page + 499, &first), 5u);
	first = 4711;
	KUNIT_EXPECT_EQ(test, kvt_mem_block_at(&f->m, page + 500, &first), KVT_NIL);
	KUNIT_EXPECT_EQ(test, kvt_mem_block_at(&f->m, (r + 1) * KVT_PIECE_PAGES, &first),
			KVT_NIL);
	KUNIT_EXPECT_EQ(test, kvt_mem_block_at(&f->m, NR_PIECES * KVT_PIECE_PAGES, &first),
			KVT_NIL);
	KUNIT_EXPECT_EQ(test, kvt_mem_block_at(&f->m, U32_MAX, &first), KVT_NIL);
	KUNIT_EXPECT_EQ(test, first, 4711u);
	kvt_mem_slot_free(&f->m, &f->a, page);
	KUNIT_EXPECT_EQ(test, kvt_mem_block_at(&f->m, page, &first), KVT_NIL);
}

/* A region is on its owner's list exactly while it can hand out a slot. */
static void mem_partial_list(struct kunit *test)
{
	struct fixture *f = setup(test, 0);
	u32 r1, r2, p1, p2, p3;
	bool dirty;

	r1 = region_get(test, f, &f->a, KVT_PIECE_PAGES, 1, &dirty);
	r2 = region_get(test, f, &f->a, KVT_PIECE_PAGES, 2, &dirty);
	partial_is(test, f, &f->a, 2);
	p1 = kvt_mem_slot_alloc(&f->m, &f->a, r1, 1);
	partial_is(test, f, &f->a, 1);
	p2 = kvt_mem_slot_alloc(&f->m, &f->a, KVT_NO_REGION, 2);
	KUNIT_EXPECT_EQ(test, kvt_mem_region_of(&f->m, p2), r2);
	p3 = kvt_mem_slot_alloc(&f->m, &f->a, KVT_NO_REGION, 3);
	partial_is(test, f, &f->a, 0);
	kvt_mem_slot_free(&f->m, &f->a, p1);
	kvt_mem_slot_free(&f->m, &f->a, p3);
	partial_is(test, f, &f->a, 2);

	/* Draining hands out nothing, and takes back. */
	kvt_mem_region_drain(&f->m, &f->a, r2);
	partial_is(test, f, &f->a, 1);
	KUNIT_EXPECT_EQ(test, kvt_mem_slot_alloc(&f->m, &f->a, r2, 9), KVT_NO_PAGE);
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
static void mem_arena_is_private(struct kunit *test)
{
	struct fixture *f = setup(test, 0);
	u32 r, page;
	bool dirty;

	r = region_get(test, f, &f->a, KVT_PIECE_PAGES, 2, &dirty);
	kvt_mem_region_arena(&f->m, &f->a, r, 7);
	partial_is(test, f, &f->a, 0);
	KUNIT_EXPECT_EQ(test, kvt_mem_slot_alloc(&f->m, &f->a, KVT_NO_REGION, 1),
			KVT_NO_PAGE);
	page = kvt_mem_slot_alloc(&f->m, &f->a, r, 1);
	KUNIT_EXPECT_EQ(test, kvt_mem_region_of(&f->m, page), r);
	kvt_mem_slot_free(&f->m, &f->a, page);
	partial_is(test, f, &f->a, 0);
	kvt_mem_region_arena(&f->m, &f->a, r, 0);
	partial_is(test, f, &f->a, 1);
}

/* Owners with one slot size still never get each other's slots. */
static void mem_owners_are_apart(struct kunit *test)
{
	struct fixture *f = setup(test, 0);
	u32 ra, rb, page, i;
	bool dirty;

	ra = region_get(test, f, &f->a, 64, 1, &dirty);
	rb = region_get(test, f, &f->b, 64, 1, &dirty);
	for (i = 0; i < 8; i++) {
		page = kvt_mem_slot_alloc(&f->m, &f->a, KVT_NO_REGION, 1 + i);
		KUNIT_EXPECT_EQ(test, kvt_mem_region_of(&f->m, page), ra);
		page = kvt_mem_slot_alloc(&f->m, &f->b, KVT_NO_REGION, 100 + i);
		KUNIT_EXPECT_EQ(test, kvt_mem_region_of(&f->m, page), rb);
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
	struct fixture *f = setup(test, KVT_MEM_UNKNOWN);
	bool dirty = false;
	u32 r;

	r = region_get(test, f, &f->a, 64, 2, &dirty);
	KUNIT_EXPECT_TRUE(test, dirty);
	KUNIT_EXPECT_EQ(test, (u32)f->regions[r].state, (u32)KVT_REGION_CLEANING);
	KUNIT_EXPECT_EQ(test, kvt_mem_slot_alloc(&f->m, &f->a, KVT_NO_REGION, 1),
			KVT_NO_PAGE);
	KUNIT_EXPECT_EQ(test, kvt_mem_slot_alloc(&f->m, &f->a, r, 1), KVT_NO_PAGE);

	/* Scrubbing failed: the pieces go back as dirty as they came. */
	region_put(test, f, &f->a, r, false);
	r = region_get(test, f, &f->a, 64, 2, &dirty);
	KUNIT_EXPECT_TRUE(test, dirty);
	kvt_mem_region_open(&f->m, &f->a, r);
	KUNIT_EXPECT_NE(test, kvt_mem_slot_alloc(&f->m, &f->a, KVT_NO_REGION, 1),
			KVT_NO_PAGE);
}

/* Who had the pages last decides; a single foreign piece spoils a run. */
static void mem_dirty_tracks_owners(struct kunit *test)
{
	struct fixture *f = setup(test, 0);
	bool dirty = true;
	u32 r, r2;

	r = region_get(test, f, &f->a, 64, 2, &dirty);
	KUNIT_EXPECT_FALSE(test, dirty);
	region_put(test, f, &f->a, r, false);
	r = region_get(test, f, &f->a, 32, 2, &dirty);
	KUNIT_EXPECT_FALSE(test, dirty);
	region_put(test, f, &f->a, r, false);
	r = region_get(test, f, &f->b, 64, 2, &dirty);
	KUNIT_EXPECT_TRUE(test, dirty);
	kvt_mem_region_open(&f->m, &f->b, r);
	region_put(test, f, &f->b, r, true);
	r = region_get(test, f, &f->a, 64, 2, &dirty);
	KUNIT_EXPECT_FALSE(test, dirty);

	/* Pieces 2 and 3 were b's; then a wants a run that takes in one of them. */
	r2 = region_get(test, f, &f->b, 64, 2, &dirty);
	KUNIT_EXPECT_FALSE(test, dirty);
	KUNIT_EXPECT_EQ(test, r2, r + 2);
	region_put(test, f, &f->b, r2, false);
	region_put(test, f, &f->a, r, false);
	r = region_get(test, f, &f->a, 64, 3, &dirty);
	KUNIT_EXPECT_TRUE(test, dirty);
	KUNIT_EXPECT_EQ(test, f->regions[r].owner_ns, (u64)NS_A);
}

/* What does not fit in one run is refused and nothing changes. */
static void mem_fragmented_is_refused(struct kunit *test)
{
	struct fixture *f = setup(test, 0);
	u32 r[NR_PIECES], i, n;
	bool dirty;

	for (i = 0; i < NR_PIECES; i++) {
		r[i] = region_get(test, f, &f->a, 64, 1, &dirty);
		KUNIT_ASSERT_NE(test, r[i], KVT_NO_REGION);
	}
	KUNIT_EXPECT_EQ(test, region_get(test, f, &f->a, 64, 1, &dirty), KVT_NO_REGION);
	for (i = 0; i < NR_PIECES; i += 2)
		region_put(test, f, &f->a, r[i], true);
	n = f->m.nr_free;
	KUNIT_EXPECT_EQ(test, n, NR_PIECES / 2u);
	KUNIT_EXPECT_EQ(test, region_get(test, f, &f->b, 64, 2, &dirty), KVT_NO_REGION);
	KUNIT_EXPECT_EQ(test, f->m.nr_free, n);
	partial_is(test, f, &f->a, NR_PIECES / 2);
	partial_is(test, f, &f->b, 0);

	/* One neighbour makes three in a row, wherever the search starts. */
	region_put(test, f, &f->a, r[11], true);
	KUNIT_EXPECT_EQ(test, region_get(test, f, &f->b, 64, 3, &dirty),
			min(min(r[10], r[11]), r[12]));
	KUNIT_EXPECT_EQ(test, region_get(test, f, &f->b, 64, 2, &dirty), KVT_NO_REGION);
}

static struct kunit_case mem_cases[] = {
	KUNIT_CASE(mem_geometry_of_models),
	KUNIT_CASE(mem_geometry_of_all_sizes),
	KUNIT_CASE(mem_geometry_is_shortest),
	KUNIT_CASE(mem_geometry_small_tier),
	KUNIT_CASE(mem_slots_are_disjoint),
	KUNIT_CASE(mem_block_at_nonsense),
	KUNIT_CASE(mem_partial_list),
	KUNIT_CASE(mem_arena_is_private),
	KUNIT_CASE(mem_owners_are_apart),
	KUNIT_CASE(mem_dirty_until_scrubbed),
	KUNIT_CASE(mem_dirty_tracks_owners),
	KUNIT_CASE(mem_fragmented_is_refused),
	{ }
};

static struct kunit_suite mem_suite = {
	.name = "kvt_mem",
	.test_cases = mem_cases,
};

kunit_test_suite(mem_suite);
