// SPDX-License-Identifier: GPL-2.0
/*
 * Hints; see kvt_hint.h for the model.
 */
#include "kvt_hint.h"

#define HINT_FIRST_MS	32768u		/* the first class ends there */
#define HINT_LEFT	8u		/* a use is never nearer than this part of the time */
#define HINT_OVER	16u		/* once the time is over: times as far away as it is old */
#define HINT_LEAST_MS	8192u		/* no use is believed to be nearer than that */
#define HINT_LATE	2u		/* classes' times after which it did not come true */
#define HINT_LAST	(KVT_CLS_HINT + KVT_HINTS - 1)	/* has no end: cannot be late */
#define HINT_COUNT_MAX	1024u
#define HINT_PRIOR	1u		/* before any was seen so many had come true, */
#define HINT_PRIOR_OF	16u		/* of so many */

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

/* Was it used, and not much later than was said. */
static bool hint_kept(u32 cls, u32 age_ms, bool used)
{
	return used && (cls == HINT_LAST || age_ms / HINT_LATE <= hint_end_ms(cls));
}

/**
 * kvt_hint_give() - a hint is given
 * @l:   what was learned
 * @cls: class of the hint
 *
 * It counts as broken until it has come true: who gives false ones is not believed any longer than
 * it takes to see that, nor one whose session nobody looks for.
 */
void kvt_hint_give(struct kvt_learn *l, u32 cls)
{
	u32 i = cls - KVT_CLS_HINT;

	if (l->kept[i] + l->broken[i] >= HINT_COUNT_MAX) {
		l->kept[i] /= 2;
		l->broken[i] /= 2;
	}
	l->broken[i]++;
}

/**
 * kvt_hint_count() - it has turned out whether a hint was right
 * @l:      what was learned
 * @cls:    class of the hint
 * @age_ms: its age
 * @used:   the block was used; else: nobody looks at it any longer
 *
 * Counts are halved from time to time, so more may come true than is still counted as given.
 */
void kvt_hint_count(struct kvt_learn *l, u32 cls, u32 age_ms, bool used)
{
	u32 i = cls - KVT_CLS_HINT;

	if (!hint_kept(cls, age_ms, used) || !l->broken[i])
		return;
	l->broken[i]--;
	l->kept[i]++;
}

/**
 * kvt_hint_uncount() - take back what kvt_hint_count() was told just now
 * @l:      what was learned
 * @cls:    as then
 * @age_ms: as then
 * @used:   as then
 *
 * Once halved, there may be nothing to take back.
 */
void kvt_hint_uncount(struct kvt_learn *l, u32 cls, u32 age_ms, bool used)
{
	u32 i = cls - KVT_CLS_HINT;

	if (!hint_kept(cls, age_ms, used) || !l->kept[i])
		return;
	l->kept[i]--;
	l->broken[i]++;
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
	u32 i = cls - KVT_CLS_HINT, end_ms = max(kvt_age_of_bin(bin + 1), HINT_LEAST_MS);
	u32 kept = l->kept[i] + HINT_PRIOR;
	u32 all = l->kept[i] + l->broken[i] + HINT_PRIOR_OF;
	u64 left_ms;

	if (age_ms <= end_ms)
		left_ms = max(end_ms - age_ms, end_ms / HINT_LEFT);
	else
		left_ms = (u64)age_ms * HINT_OVER;
	/* Uses in 2^40 ms. */
	return kvt_learn_log((u32)min_t(u64, div64_u64((u64)kept << 40, left_ms * all), U32_MAX));
}
