/* SPDX-License-Identifier: GPL-2.0 */
/*
 * When blocks are used again, learned by class and idle age, and what follows for
 * their worth.
 *
 * What may be used again (sessions, shared blocks) belongs to a class. Of each class
 * it is counted at which age since the last use the next one came, and at which age it
 * was lost sight of. Ages fall into bins that grow by about the square root of two.
 * From the counts comes, for each bin, the *hazard*: the chance that what has reached
 * this bin is used before the next. Where little was seen a class leans on its pool
 * (all classes of its kind), and that on a prior that gives every bin the same small
 * chance, which orders blocks as LRU does.
 *
 * The worth of a block at an age is its Gittins index: the largest ratio, over all
 * horizons, of the chance of a use within it to the time that the block is expected to
 * take up its place until that use or the horizon. Who evicts the lowest gains the most
 * uses for the place. It may rise with age: a session that was answered a second ago is
 * not continued in the next.
 *
 * All numbers are integers. A row (the worth of a class, for all ages) is worked out in
 * a few times KVT_AGE_BINS steps, one row at a time.
 *
 * Lock: the pool's meta lock for everything.
 */
#ifndef KVT_POLICY_LEARN_H
#define KVT_POLICY_LEARN_H

#include "kvt_env.h"

#define KVT_CLASSES	27
#define KVT_HINTS	5
#define KVT_AGE_BINS	32
#define KVT_AGE_SHIFT	8		/* bin 0: below 2^KVT_AGE_SHIFT ms */
#define KVT_AGE_BACK_MS	3600000u	/* clocks go back by no more than this */
#define KVT_LEN_SHIFT	1		/* first edge between lengths' classes: 2 blocks */
#define KVT_GAP_SHIFT	12		/* first edge between gaps' classes: 4 s */
#define KVT_COUNT_MAX	16384u
#define KVT_WORTH_SHIFT	11		/* worth: in units of 2^-KVT_WORTH_SHIFT octaves */

enum kvt_class {
	KVT_CLS_NEW = 0,	/* nothing known; the sessions' pool */
	KVT_CLS_COLD = 1,	/* said not to be used again, or not believed: nothing until it is */
	KVT_CLS_POOL = 2,	/* the shared blocks' pool; no block has it */
	KVT_CLS_SHARED = 3,	/* first of the shared blocks' */
	KVT_CLS_SESSION = 11,	/* first of the sessions' */
	KVT_CLS_HINT = 27,	/* first of those foretold: no rows, see kvt_hint.h */
};

/**
 * struct kvt_learn - what was learned
 * @worth:  by class and bin; see kvt_learn_worth()
 * @used:   how often the next use came in this bin
 * @lost:   how often it was lost sight of in this bin
 * @total:  of both, by class; at most KVT_COUNT_MAX, then all are halved
 * @hazard: of the pools, in units of 2^-16: sessions', shared blocks'
 * @kept:   by class of hint: blocks of which it came true, see kvt_hint.c for the unit
 * @broken: those of which it did not, or has not yet
 */
struct kvt_learn {
	u16 worth[KVT_CLASSES][KVT_AGE_BINS];
	u16 used[KVT_CLASSES][KVT_AGE_BINS];
	u16 lost[KVT_CLASSES][KVT_AGE_BINS];
	u16 total[KVT_CLASSES];
	u16 hazard[2][KVT_AGE_BINS];
	u32 kept[KVT_HINTS];
	u32 broken[KVT_HINTS];
};

/* Time since @then; 0 if the clock went back. */
static inline u32 kvt_age_since(u32 now_ms, u32 then_ms)
{
	u32 age_ms = now_ms - then_ms;

	return age_ms > U32_MAX - KVT_AGE_BACK_MS ? 0 : age_ms;
}

/* Which bin an age falls into. Bin 0 ends at 2^8 ms, then there are two for each octave. */
static inline u32 kvt_age_bin(u32 age_ms)
{
	u32 top = (u32)fls((int)age_ms), bin;

	if (top <= KVT_AGE_SHIFT)
		return 0;
	bin = 2 * (top - KVT_AGE_SHIFT) - 1 + ((age_ms >> (top - 2)) & 1);
	return min(bin, KVT_AGE_BINS - 1u);
}

/* Where a bin begins, ms; up to KVT_AGE_BINS, where the last one is taken to end. */
static inline u32 kvt_age_of_bin(u32 bin)
{
	return bin ? (2 + ((bin - 1) & 1)) << (KVT_AGE_SHIFT - 1 + (bin - 1) / 2) : 0;
}

static inline bool kvt_class_shared(u32 cls)
{
	return cls >= KVT_CLS_SHARED && cls < KVT_CLS_SESSION;
}

static inline bool kvt_class_hinted(u32 cls)
{
	return cls >= KVT_CLS_HINT;
}

/* Has its client said when it will be used, or that it will not. */
static inline bool kvt_class_told(u32 cls)
{
	return cls == KVT_CLS_COLD || kvt_class_hinted(cls);
}

/* By powers of four: below 2^shift, up to four times that, and so on. */
static inline u32 kvt_class_bucket(u32 v, u32 shift, u32 nr)
{
	u32 b = ((u32)fls((int)(v >> shift)) + 1) / 2;

	return min(b, nr - 1);
}

/* First turns by length in blocks, later ones by number and gap: 4 + 3 * 4 classes. */
static inline u32 kvt_class_of_session(u32 turn, u32 len, u32 gap_ms)
{
	u32 later;

	if (!turn)
		return KVT_CLS_SESSION + kvt_class_bucket(len, KVT_LEN_SHIFT, 4);
	later = turn < 2 ? 1 : turn < 5 ? 2 : 3;
	return KVT_CLS_SESSION + later * 4 + kvt_class_bucket(gap_ms, KVT_GAP_SHIFT, 4);
}

/* By how often strangers came back, at least once. */
static inline u32 kvt_class_of_shared(u32 shared)
{
	u32 by_number = (u32)fls((int)shared) - 1;

	return KVT_CLS_SHARED + min(by_number, 7u);
}

/**
 * kvt_learn_worth() - what a block is worth
 * @l:      what was learned
 * @cls:    its class
 * @age_ms: since its last use
 * Return: logarithm of uses to be expected for each moment of its place; comparable
 * between classes. 0: nothing.
 */
static inline u32 kvt_learn_worth(const struct kvt_learn *l, u32 cls, u32 age_ms)
{
	return l->worth[cls][kvt_age_bin(age_ms)];
}

u32 kvt_learn_log(u32 v);
void kvt_learn_init(struct kvt_learn *l);
void kvt_learn_use(struct kvt_learn *l, u32 cls, u32 age_ms, bool used);
void kvt_learn_over(struct kvt_learn *l, u32 nr);
void kvt_learn_not_over(struct kvt_learn *l, u32 age_ms);
void kvt_learn_forget(struct kvt_learn *l, u32 cls, u32 age_ms, bool used);
void kvt_learn_row(struct kvt_learn *l, u32 cls, const u16 *waiting);

#endif /* KVT_POLICY_LEARN_H */
