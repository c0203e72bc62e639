// SPDX-License-Identifier: GPL-2.0
/*
 * Hints; see kvt_hint.h for the model.
 */
#include "kvt_hint.h"

#define HINT_FIRST_MS	32768u		/* the first class ends there */
#define HINT_LEFT	8u		/* a use is never nearer than this part of the time */
#define HINT_OVER	16u		/* once the time is over: times as far away as it is old */
#define HINT_LEAST_MS	8192u		/* no time that is said is taken to be shorter */
#define HINT_LATE	2u		/* classes' times after which it did not come true */
#define HINT_LAST	(KVT_CLS_HINT + KVT_HINTS - 1)	/* has no end: cannot be late */
#define HINT_USE	16u		/* of a block, in the counts */
#define HINT_COUNT_MAX	(1u << 20)	/* then they are halved */
#define HINT_SOON	2u		/* a use is one from this part of the time on that was said */
#define HINT_PRIOR	1024u		/* before any was seen so many had come true, */
#define HINT_PRIOR_OF	16384u		/* of so many */
#define HINT_DOUBT	32u		/* below this part that came true there is nothing to it */

/* Where a class of hints ends, ms. */
static u32 hint_end_ms(u32 cls)
{
	return HINT_FIRST_MS << (cls - KVT_CLS_HINT);
}

/**
 * kvt_hint_class() - class of a block that will be used
 * @reuse_ms: time from now to that, or KVT_HINT_NEVER
 */
u32 kvt_hint_class(u32 reuse_ms)
{
	u32 cls = KVT_CLS_HINT;

	if (reuse_ms == KVT_HINT_NEVER)
		return KVT_CLS_COLD;
	while (cls < HINT_LAST && reuse_ms >= hint_end_ms(cls))
		cls++;
	return cls;
}

/**
 * kvt_hint_give() - a hint is given
 * @l:   what was learned
 * @cls: class of the hint
 * @nr:  blocks that it is about
 *
 * They count as not used until they are: who gives false hints is not believed any longer than it
 * takes to see that.
 */
void kvt_hint_give(struct kvt_learn *l, u32 cls, u32 nr)
{
	u32 i = cls - KVT_CLS_HINT;

	if (l->kept[i] + l->broken[i] >= HINT_COUNT_MAX) {
		l->kept[i] /= 2;
		l->broken[i] /= 2;
	}
	l->broken[i] += nr * HINT_USE;
}

/**
 * kvt_hint_use() - a block is used that a hint was about, for the first time since
 * @l:      what was learned
 * @cls:    class of the hint
 * @bin:    of the time that was foretold, see kvt_age_bin()
 * @age_ms: its age
 *
 * What comes much sooner than was said is a part of a use: else belief could be bought by using
 * something at once, which costs nothing. Counts are halved from time to time, so more may be
 * used than is still counted as given.
 */
void kvt_hint_use(struct kvt_learn *l, u32 cls, u32 bin, u32 age_ms)
{
	u32 i = cls - KVT_CLS_HINT, said_ms = max(kvt_age_of_bin(bin), HINT_LEAST_MS);

	if ((cls != HINT_LAST && age_ms / HINT_LATE > hint_end_ms(cls)) || l->broken[i] < HINT_USE)
		return;
	l->broken[i] -= HINT_USE;
	l->kept[i] += (u32)min_t(u64, HINT_USE,
				 div64_u64((u64)age_ms * HINT_SOON * HINT_USE, said_ms));
}

/* How often hints of a class came true, of how often. */
static void hint_belief(const struct kvt_learn *l, u32 cls, u32 *kept, u32 *all)
{
	u32 i = cls - KVT_CLS_HINT;

	*kept = l->kept[i] + HINT_PRIOR;
	*all = l->kept[i] + l->broken[i] + HINT_PRIOR_OF;
}

/**
 * kvt_hint_believed() - is there anything to a hint
 * @l:   what was learned
 * @cls: its class
 *
 * Of a class's list only the ends are looked at, so what is worth next to nothing must not be
 * there, where it would hide among what others are believed.
 */
bool kvt_hint_believed(const struct kvt_learn *l, u32 cls)
{
	u32 kept, all;

	hint_belief(l, cls, &kept, &all);
	return kept >= all / HINT_DOUBT;
}

/**
 * kvt_hint_worth() - what a block is worth whose next use was foretold
 * @l:      what was learned
 * @cls:    class of the hint
 * @bin:    of the time that was foretold, see kvt_age_bin()
 * @age_ms: its age
 * Return: as kvt_learn_worth(): the two can be compared.
 */
u32 kvt_hint_worth(const struct kvt_learn *l, u32 cls, u32 bin, u32 age_ms)
{
	u32 end_ms = max(kvt_age_of_bin(bin + 1), HINT_LEAST_MS), kept, all;
	u64 left_ms;

	hint_belief(l, cls, &kept, &all);
	if (age_ms <= end_ms)
		left_ms = max(end_ms - age_ms, end_ms / HINT_LEFT);
	else
		left_ms = (u64)age_ms * HINT_OVER;
	/* Uses in 2^40 ms. */
	return kvt_learn_log((u32)min_t(u64, div64_u64((u64)kept << 40, left_ms * all), U32_MAX));
}
