// SPDX-License-Identifier: GPL-2.0
/*
 * What the segments of a member, and records from anywhere, are together.
 */
#include "kvt_kunit.h"
#include "../core/kvt_merge.h"

#define NR_SEGS		4u
#define SEG_UNITS	64u
#define LIFE_LIMIT	100u
#define NR		600u
#define BUCKETS		256u

/* --- lives and kills ------------------------------------------------------------- */

static struct kvt_life *new_life(struct kunit *test)
{
	struct kvt_super *super = kunit_kzalloc(test, sizeof(*super), GFP_KERNEL);
	struct kvt_life *l = kunit_kzalloc(test, sizeof(*l), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, super);
	KUNIT_ASSERT_NOT_NULL(test, l);
	super->geo.nr_segs = NR_SEGS;
	super->geo.seg_units = SEG_UNITS;
	super->life_limit = LIFE_LIMIT;
	l->super = super;
	l->segs = kunit_kzalloc(test, NR_SEGS * sizeof(*l->segs), GFP_KERNEL);
	l->dead = kunit_kzalloc(test, NR_SEGS * SEG_UNITS / 8, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, l->segs);
	KUNIT_ASSERT_NOT_NULL(test, l->dead);
	return l;
}

/* What one kill says of a segment with that life, or with a footer of @stale alone. */
static void kill_says(struct kunit *test)
{
	static const struct {
		u64 life, stale;	/* of the segment */
		u64 kill;
		bool all;
		bool marks;
		u64 ended;
	} rows[] = {
		{ 7, 0, 7, false, true, 0 },
		{ 7, 0, 6, false, false, 0 },
		{ 7, 0, 8, false, false, 0 },
		{ 7, 0, 7, true, false, 7 },
		{ 7, 0, 6, true, false, 0 },
		{ 7, 0, 8, true, false, 0 },
		/* Whatever has no header says nothing of a unit. */
		{ 0, 7, 7, false, false, 0 },
		{ 0, 7, 7, true, false, 7 },
		{ 0, 7, 9, true, false, 9 },
		{ 0, 7, 6, true, false, 0 },
		{ 0, 0, 5, true, false, 5 },
		/* Lives that nobody gave out. */
		{ LIFE_LIMIT, 0, LIFE_LIMIT, true, false, 0 },
		{ LIFE_LIMIT, 0, LIFE_LIMIT, false, false, 0 },
		{ 0, 7, LIFE_LIMIT, true, false, 0 },
		{ LIFE_LIMIT - 1, 0, LIFE_LIMIT - 1, true, false, LIFE_LIMIT - 1 },
	};
	struct kvt_life *l = new_life(test);
	struct kvt_kill k = { .seg = 2 };
	struct kvt_life_seg *s = &l->segs[2];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		memset(s, 0, sizeof(*s));
		memset(l->dead, 0, NR_SEGS * SEG_UNITS / 8);
		s->life = rows[i].life;
		s->stale = rows[i].stale;
		k.life = rows[i].kill;
		k.unit = rows[i].all ? KVT_KILL_ALL : 5;
		KUNIT_EXPECT_EQ(test, kvt_life_kill(l, &k), rows[i].marks);
		KUNIT_EXPECT_FALSE(test, kvt_life_kill(l, &k));
		KUNIT_EXPECT_EQ(test, kvt_life_is_dead(l, 2, 5), rows[i].marks);
		KUNIT_EXPECT_FALSE(test, kvt_life_is_dead(l, 2, 4));
		KUNIT_EXPECT_FALSE(test, kvt_life_is_dead(l, 1, 5));
		KUNIT_EXPECT_EQ(test, s->ended, rows[i].ended);
		KUNIT_EXPECT_EQ(test, kvt_life_counts(s), rows[i].life && !rows[i].ended);
		KUNIT_EXPECT_EQ(test, kvt_life_damaged(s), rows[i].stale && !rows[i].ended);
	}
	/* An earlier one does not take anything back. */
	memset(s, 0, sizeof(*s));
	s->stale = 3;
	k.unit = KVT_KILL_ALL;
	k.life = 9;
	kvt_life_kill(l, &k);
	k.life = 4;
	kvt_life_kill(l, &k);
	KUNIT_EXPECT_EQ(test, s->ended, 9u);
}

static void newest_definition(struct kunit *test)
{
	struct kvt_nsdef def = { .id = 1, .seq = 10 };

	KUNIT_EXPECT_TRUE(test, kvt_mg_def_counts(0, &def));
	KUNIT_EXPECT_TRUE(test, kvt_mg_def_counts(9, &def));
	KUNIT_EXPECT_FALSE(test, kvt_mg_def_counts(10, &def));
	KUNIT_EXPECT_FALSE(test, kvt_mg_def_counts(11, &def));
	def.flags = KVT_NSF_GONE;
	KUNIT_EXPECT_TRUE(test, kvt_mg_def_counts(9, &def));
	KUNIT_EXPECT_TRUE(test, kvt_mg_def_counts(10, &def));
	KUNIT_EXPECT_FALSE(test, kvt_mg_def_counts(11, &def));
	def.seq = 0;
	KUNIT_EXPECT_TRUE(test, kvt_mg_def_counts(0, &def));
}

/* --- records ---------------------------------------------------------------------- */

struct fixture {
	struct kvt_table *t;
	struct kvt_index *ix;
	spinlock_t meta_lock;
};

static struct fixture *new_pool(struct kunit *test)
{
	struct fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	struct kvt_hash_seed seed;
	u32 i, *buckets;

	KUNIT_ASSERT_NOT_NULL(test, f);
	spin_lock_init(&f->meta_lock);
	memset(&seed, 0x33, sizeof(seed));
	f->t = kvt_test_table(test, 1);
	f->ix = kunit_kzalloc(test, sizeof(*f->ix), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, f->ix);
	kvt_ix_init(f->ix, f->t, &seed);
	for (i = 0; i < KVT_SHARDS; i++) {
		buckets = kunit_kzalloc(test, BUCKETS * sizeof(u32), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, buckets);
		kvt_ix_shard_init(&f->ix->shards[i], buckets, BUCKETS);
	}
	return f;
}

static void name(u8 *key, u32 n)
{
	memset(key, 0, KVT_KEY_BYTES);
	if (!n)
		return;
	key[0] = 1;
	memcpy(key + 4, &n, sizeof(n));
}

/* Record of block @n, from 1, whose parent is @up, 0: none. */
static struct kvt_mg_block record(const struct fixture *f, u32 n, u32 up, u64 seq)
{
	struct kvt_mg_block b = {
		.rec = { .ns = 1, .seq = seq, .bytes = 1000 + n, .stored = 4096, .sum = n },
		.ns_group = 1u << 4,
		.at = { .tier = n % 3, .unit = (u32)seq },
	};

	name(b.rec.key, n);
	name(b.rec.parent, up);
	b.hash = kvt_ix_hash(f->ix, b.ns_group, b.rec.key);
	return b;
}

static u32 enter(struct fixture *f, const struct kvt_mg_block *b, struct kvt_mg_place *lost)
{
	u32 id;

	kvt_mg_expect(f->ix, b, 1);
	spin_lock(&f->meta_lock);
	id = kvt_mg_enter(f->t, f->ix, b, lost);
	spin_unlock(&f->meta_lock);
	return id;
}

static void newest_record(struct kunit *test)
{
	static const u64 old = 5ull << 32 | 7;	/* both halves are of use */
	struct fixture *f = new_pool(test);
	struct kvt_mg_block b = record(f, 3, 0, old), newer = record(f, 3, 0, old + (1ull << 32));
	struct kvt_mg_place lost;
	u32 id = enter(f, &b, &lost);

	KUNIT_ASSERT_NE(test, id, KVT_NIL);
	KUNIT_EXPECT_EQ(test, lost.tier, (u32)KVT_NO_TIER);
	KUNIT_EXPECT_EQ(test, kvt_mg_seq(kvt_cold(f->t, id)), old);
	/* The same again, and an older one: not used. */
	b.at.unit = 77;
	KUNIT_EXPECT_EQ(test, enter(f, &b, &lost), KVT_NIL);
	KUNIT_EXPECT_EQ(test, lost.unit, 77u);
	b.rec.seq = old - 1;
	KUNIT_EXPECT_EQ(test, enter(f, &b, &lost), KVT_NIL);
	KUNIT_EXPECT_EQ(test, lost.tier, b.at.tier);
	/* A newer one takes its place. */
	newer.at.unit = 99;
	newer.at.tier = 2;
	newer.expire_s = 5;
	KUNIT_EXPECT_EQ(test, enter(f, &newer, &lost), id);
	KUNIT_EXPECT_EQ(test, lost.unit, (u32)old);
	KUNIT_EXPECT_EQ(test, lost.tier, 0u);
	KUNIT_EXPECT_EQ(test, kvt_hot(f->t, id)->log_unit, 99u);
	KUNIT_EXPECT_EQ(test, kvt_hot(f->t, id)->log_tier, 2u);
	KUNIT_EXPECT_TRUE(test, kvt_hot(f->t, id)->flags & KVT_HOT_EXPIRES);
	KUNIT_EXPECT_EQ(test, kvt_ctl_state(kvt_ctl(kvt_hot(f->t, id))), (u32)KVT_READY);
	/* Another group's block of that key is another block. */
	b.ns_group++;
	b.hash = kvt_ix_hash(f->ix, b.ns_group, b.rec.key);
	KUNIT_EXPECT_NE(test, enter(f, &b, &lost), id);
	KUNIT_EXPECT_EQ(test, lost.tier, (u32)KVT_NO_TIER);
	KUNIT_EXPECT_TRUE(test, kvt_mg_fits(kvt_cold(f->t, id), 1003, 4096));
	KUNIT_EXPECT_FALSE(test, kvt_mg_fits(kvt_cold(f->t, id), 1004, 4096));
	KUNIT_EXPECT_FALSE(test, kvt_mg_fits(kvt_cold(f->t, id), 1003, 8192));
	spin_lock(&f->meta_lock);
	kvt_mg_forget(f->t, f->ix, id);
	spin_unlock(&f->meta_lock);
	KUNIT_EXPECT_EQ(test, kvt_mg_find(f->ix, newer.hash, newer.ns_group, newer.rec.key),
			KVT_NIL);
	KUNIT_EXPECT_FALSE(test, kvt_mg_named(&(struct kvt_rec){ 0 }));
	KUNIT_EXPECT_TRUE(test, kvt_mg_named(&newer.rec));
}

/* A chain; one whose parent is nowhere; one that is its own; two that are each other's. */
static void parents(struct kunit *test)
{
	static const u32 up[] = { 0, 1, 2, 900, 5, 7, 6, 3 };
	struct kvt_mg_parent *pa = kunit_kzalloc(test, KVT_MG_BATCH * sizeof(*pa), GFP_KERNEL);
	struct fixture *f = new_pool(test);
	u32 id[ARRAY_SIZE(up)], i, nr = 0;
	struct kvt_mg_place lost;
	struct kvt_mg_block b;

	KUNIT_ASSERT_NOT_NULL(test, pa);
	for (i = 0; i < ARRAY_SIZE(up); i++) {
		b = record(f, i + 1, up[i], 10 + i);
		id[i] = enter(f, &b, &lost);
		nr += kvt_mg_parent_of(&b.rec, id[i], &pa[nr]);
	}
	KUNIT_ASSERT_EQ(test, nr, ARRAY_SIZE(up) - 1);
	/* The last one's record was superseded by one without a parent. */
	b = record(f, ARRAY_SIZE(up), 0, 1000);
	KUNIT_ASSERT_EQ(test, enter(f, &b, &lost), id[ARRAY_SIZE(up) - 1]);
	KUNIT_EXPECT_FALSE(test, kvt_mg_parent_of(&b.rec, id[0], &pa[nr]));
	for (i = 0; i < ARRAY_SIZE(up); i++)
		kvt_mg_clear(kvt_cold(f->t, id[i]));
	spin_lock(&f->meta_lock);
	KUNIT_EXPECT_EQ(test, kvt_mg_link_some(f->t, f->ix, pa, nr), 4u);
	/* Nobody is linked twice. */
	KUNIT_EXPECT_EQ(test, kvt_mg_link_some(f->t, f->ix, pa, nr), 0u);
	spin_unlock(&f->meta_lock);
	KUNIT_EXPECT_EQ(test, kvt_cold(f->t, id[1])->parent, id[0]);
	KUNIT_EXPECT_EQ(test, kvt_cold(f->t, id[2])->parent, id[1]);
	KUNIT_EXPECT_EQ(test, kvt_cold(f->t, id[3])->parent, KVT_NIL);
	KUNIT_EXPECT_EQ(test, kvt_cold(f->t, id[4])->parent, KVT_NIL);
	KUNIT_EXPECT_EQ(test, kvt_cold(f->t, id[5])->parent, id[6]);
	KUNIT_EXPECT_EQ(test, kvt_cold(f->t, id[6])->parent, id[5]);
	KUNIT_EXPECT_EQ(test, kvt_cold(f->t, id[7])->parent, KVT_NIL);
}

static void no_pause(void)
{
}

/* However they come they are listed by sequence, tier by tier. */
static void order(struct kunit *test)
{
	struct kvt_mg_sorter *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	u64 *seq = kunit_kzalloc(test, (NR + 1) * sizeof(*seq), GFP_KERNEL), last, rnd = 5;
	struct fixture *f = new_pool(test);
	u32 i, id, tier, nr = 0;
	struct kvt_mg_place lost;

	KUNIT_ASSERT_NOT_NULL(test, s);
	KUNIT_ASSERT_NOT_NULL(test, seq);
	kvt_mg_sort_start(s, no_pause);
	for (i = 1; i <= NR; i++) {
		u64 high = kvt_test_random(&rnd) % 4;
		struct kvt_mg_block b = record(f, i, 0, high << 32 | kvt_test_random(&rnd));

		id = enter(f, &b, &lost);
		KUNIT_ASSERT_TRUE(test, id <= NR);
		seq[id] = b.rec.seq;
		kvt_mg_clear(kvt_cold(f->t, id));
		kvt_mg_sort_add(s, f->t, id);
	}
	for (tier = 0; tier < KVT_TIERS; tier++) {
		last = 0;
		id = kvt_mg_sorted(s, f->t, tier, 1234);
		while (id != KVT_NIL) {
			KUNIT_ASSERT_TRUE(test, last <= seq[id]);
			KUNIT_EXPECT_EQ(test, kvt_hot(f->t, id)->log_tier, tier);
			KUNIT_EXPECT_EQ(test, kvt_cold(f->t, id)->touch_ms, 1233u);
			last = seq[id];
			i = id;
			id = kvt_mg_take(f->t, id, 1234);
			KUNIT_EXPECT_EQ(test, kvt_cold(f->t, i)->touch_ms, 1234u);
			KUNIT_EXPECT_EQ(test, kvt_cold(f->t, i)->owner, 0u);
			nr++;
		}
	}
	KUNIT_EXPECT_EQ(test, nr, NR);
}

static void segments(struct kunit *test)
{
	struct kvt_seg *segs = kunit_kzalloc(test, 2 * sizeof(*segs), GFP_KERNEL);
	struct kvt_life_seg found = { .life = 3, .placed = 30, .found.fill = 40 };
	struct kvt_seg s = { 0 }, empty = { 0 };
	struct kvt_log l;
	u32 ids[3], i;

	KUNIT_ASSERT_NOT_NULL(test, segs);
	kvt_log_init(&l, segs, 2, SEG_UNITS);
	l.hold = true;
	for (i = 0; i < 3; i++)
		kvt_mg_tally(&s, 10 + i, 4, false);
	KUNIT_EXPECT_EQ(test, s.max_ids, 3u);
	KUNIT_EXPECT_EQ(test, s.live, 12u);
	s.ids = ids;
	for (i = 0; i < 3; i++)
		kvt_mg_tally(&s, 10 + i, 4, true);
	KUNIT_EXPECT_EQ(test, s.nr_ids, 3u);
	kvt_mg_restore(&l, 0, &found, &s);
	KUNIT_EXPECT_NULL(test, s.ids);
	KUNIT_EXPECT_EQ(test, segs[0].state, KVT_SEG_SEALED);
	KUNIT_EXPECT_EQ(test, segs[0].ids[2], 12u);
	KUNIT_EXPECT_EQ(test, segs[0].fill, 40u);
	KUNIT_EXPECT_EQ(test, segs[0].placed, 30u);
	KUNIT_EXPECT_EQ(test, l.live_units, 12u);
	kvt_mg_restore(&l, 1, &found, &empty);
	KUNIT_EXPECT_EQ(test, segs[1].state, KVT_SEG_EMPTY);
	KUNIT_EXPECT_EQ(test, l.nr_free, 0u);
	segs[0].ids = NULL;
}

static struct kunit_case merge_cases[] = {
	KUNIT_CASE(kill_says),
	KUNIT_CASE(newest_definition),
	KUNIT_CASE(newest_record),
	KUNIT_CASE(parents),
	KUNIT_CASE(order),
	KUNIT_CASE(segments),
	{ }
};

static struct kunit_suite merge_suite = {
	.name = "kvt_merge",
	.test_cases = merge_cases,
};

kunit_test_suite(merge_suite);
