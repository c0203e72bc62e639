/* SPDX-License-Identifier: GPL-2.0 */
/*
 * When blocks are used again, learned by class and idle age, and what follows for
 * their worth.
 *
 * Things that may be used again (sessions, shared blocks) belong to a class. Of each
 * class it is counted at which age since the last use the next one came, and at which
 * age nothing was heard of them any more. Ages fall into bins that grow by the square
 * root of two. From the counts comes, for each bin, the *hazard*: the chance that who
 * has reached this age is used before the next bin. Where little was seen a class
 * leans on its pool (all classes of its kind), and that on a prior that gives every
 * bin the same chance, which orders blocks as LRU does.
 *
 * The worth of a block at an age is its Gittins index: the largest ratio, over all
 * horizons h, of the chance of a use within h to the time it is expected to take up
 * its place until that use or h. Who evicts the lowest gains the most uses for the
 * place. It may rise with age: a session that was answered a second ago is not
 * continued in the next.
 *
 * All numbers are integers; chances are in units of 2^-16. A row is computed in at
 * most KVT_AGE_BINS squared steps, one row at a time.
 */
#ifndef KVT_POLICY_LEARN_H
#define KVT_POLICY_LEARN_H

#include "kvt_env.h"

#define KVT_CLASSES	32
#define KVT_AGE_BINS	32
#define KVT_AGE_SHIFT	8	/* bin 0: below 2^KVT_AGE_SHIFT ms */
#define KVT_COUNT_MAX	16384u

/* Classes with a meaning here. */
enum kvt_class {
	KVT_CLS_NEW = 0,	/* nothing known: all sessions, also their pool */
	KVT_CLS_COLD,		/* will not be used again */
	KVT_CLS_POOL,		/* pool of shared blocks; no block has it */
	KVT_CLS_SHARED,		/* first of the shared blocks' classes */
	KVT_CLS_SESSION = 11,	/* first of the sessions' classes */
};

/**
 * struct kvt_learn - what was learned
 * @score:  worth; see kvt_learn_score()
 * @used:   how often the next use came in this bin
 * @lost:   how often nothing was heard any more from this bin on
 * @total:  of both, by class
 * @hazard: of the two pools
 */
struct kvt_learn {
	u32 score[KVT_CLASSES][KVT_AGE_BINS];
	u16 used[KVT_CLASSES][KVT_AGE_BINS];
	u16 lost[KVT_CLASSES][KVT_AGE_BINS];
	u32 total[KVT_CLASSES];
	u16 hazard[2][KVT_AGE_BINS];
};

/* Which bin an age falls into: 2^8 ms is the first edge, then two for each octave. */
static inline u32 kvt_age_bin(u32 age_ms)
{
	u32 top = (u32)fls(age_ms), bin;

	if (top <= KVT_AGE_SHIFT)
		return 0;
	bin = 2 * (top - KVT_AGE_SHIFT) - 1 + ((age_ms >> (top - 2)) & 1);
	return min(bin, KVT_AGE_BINS - 1u);
}

/* Where a bin begins, ms. */
static inline u32 kvt_age_of_bin(u32 bin)
{
	u32 step = bin - 1;

	return bin ? (2 + (step & 1)) << (KVT_AGE_SHIFT - 1 + step / 2) : 0;
}

/**
 * kvt_learn_score() - worth of a block
 * @l:      what was learned
 * @cls:    its class
 * @age_ms: since its last use
 * Return: larger is worth more; comparable between classes.
 */
static inline u32 kvt_learn_score(const struct kvt_learn *l, u32 cls, u32 age_ms)
{
	return l->score[cls][kvt_age_bin(age_ms)];
}

void kvt_learn_init(struct kvt_learn *l);
void kvt_learn_use(struct kvt_learn *l, u32 cls, u32 age_ms, bool used);
void kvt_learn_row(struct kvt_learn *l, u32 cls, const u16 *waiting);

#endif /* KVT_POLICY_LEARN_H */
