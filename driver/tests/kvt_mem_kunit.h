/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A small memory space with two owners, for tests of regions and slots.
 */
#ifndef KVT_MEM_KUNIT_H
#define KVT_MEM_KUNIT_H

#define NR_PIECES	24
#define NS_A		100
#define NS_B		200

struct fixture {
	struct kvt_mem m;
	struct kvt_owner a;
	struct kvt_owner b;
	u64 map[KVT_PIECES_WORDS(NR_PIECES)];
	union kvt_dirent *dir[1];
	union kvt_dirent chunk[KVT_DIR_ENTRIES];
};

static inline struct fixture *setup(struct kunit *test, u32 content)
{
	struct fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	kvt_mem_init(&f->m, f->map, f->dir, NR_PIECES, content);
	KUNIT_ASSERT_EQ(test, kvt_mem_dir_chunks(NR_PIECES), 1u);
	KUNIT_ASSERT_TRUE(test, kvt_mem_dir_full(&f->m));
	KUNIT_ASSERT_TRUE(test, kvt_mem_dir_add(&f->m, f->chunk));
	f->a.partial = KVT_NO_REGION;
	f->b.partial = KVT_NO_REGION;
	return f;
}

static inline u64 ns_of(const struct fixture *f, const struct kvt_owner *o)
{
	return o == &f->a ? NS_A : NS_B;
}

/* What a region's ends need. */
static inline void splits_get(struct kunit *test, struct fixture *f)
{
	while (kvt_pieces_low(&f->m.pieces)) {
		union kvt_split *split = kunit_kzalloc(test, sizeof(*split), GFP_KERNEL);

		KUNIT_ASSERT_NOT_NULL(test, split);
		KUNIT_ASSERT_TRUE(test, kvt_pieces_add(&f->m.pieces, split));
	}
}

/* A region of @pieces for slots of @slot_pages, or NULL; NS_A owns @o a, NS_B b. */
static inline struct kvt_region *region_get(struct kunit *test, struct fixture *f,
				     struct kvt_owner *o, u32 slot_pages, u32 pieces)
{
	u32 nr_slots = kvt_run_slots(pieces, slot_pages);
	struct kvt_region *reg = kunit_kzalloc(test, sizeof(*reg) + nr_slots * sizeof(u32),
					       GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, reg);
	splits_get(test, f);
	KUNIT_ASSERT_FALSE(test, kvt_mem_wants(&f->m));
	if (!kvt_mem_region_alloc(&f->m, o, reg, ns_of(f, o), kvt_ns_group(o == &f->a ? 1 : 2, 0),
				  slot_pages, pieces))
		return NULL;
	return reg;
}

/* The owner's list holds exactly @nr regions, linked both ways. */
static inline void partial_is(struct kunit *test, struct fixture *f, struct kvt_owner *o, u32 nr)
{
	u32 r = o->partial, prev = KVT_NO_REGION, n = 0;

	while (r != KVT_NO_REGION) {
		const struct kvt_region *reg = kvt_mem_region(&f->m, r);

		KUNIT_ASSERT_TRUE(test, n < nr);
		KUNIT_ASSERT_NOT_NULL(test, reg);
		KUNIT_ASSERT_EQ(test, reg->prev, prev);
		KUNIT_ASSERT_TRUE(test, reg->listed);
		KUNIT_ASSERT_EQ(test, (u32)reg->state, (u32)KVT_REGION_ACTIVE);
		KUNIT_ASSERT_LT(test, reg->nr_used, kvt_region_slots(reg));
		prev = r;
		r = reg->next;
		n++;
	}
	KUNIT_EXPECT_EQ(test, n, nr);
}

#endif /* KVT_MEM_KUNIT_H */
