// SPDX-License-Identifier: GPL-2.0
/*
 * Hints; see kvt_hint.h for the model.
 */
#include "kvt_hint.h"

#define HINT_FIRST_MS	32768u		/* the first class ends there */
#define HINT_LEFT	8u		/* a use is never nearer than this part of the time */
#define HINT_OVER	16u		/* once the time is over: times as far away as it is old */
#define HINT_LATE	2u		/* classes' times after which it did not come true */
#define HINT_LAST	(KVT_CLS_HINT + KVT_HINTS - 1)	/* has no end: cannot be late */
#define HINT_COUNT_MAX	1024u
#define HINT_PRIOR	4u		/* how often any class came true before it was seen */

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

/* Where it is counted what became of a hint. */
static u16 *hint_counter(struct kvt_learn *l, u32 cls, u32 age_ms, bool used)
{
	u32 i = cls - KVT_CLS_HINT;
	bool late = cls != HINT_LAST && age_ms / HINT_LATE > hint_end_ms(cls);

	return used && !late ? &l->kept[i] : &l->broken[i];
}

/**
 * kvt_hint_count() - it has turned out whether a hint was right
 * @l:      what was learned
 * @cls:    class of the hint
 * @age_ms: its age
 * @used:   the block was used; else: nobody looks at it any longer
 */
void kvt_hint_count(struct kvt_learn *l, u32 cls, u32 age_ms, bool used)
{
	u32 i = cls - KVT_CLS_HINT;

	if (l->kept[i] + l->broken[i] >= HINT_COUNT_MAX) {
		l->kept[i] /= 2;
		l->broken[i] /= 2;
	}
	(*hint_counter(l, cls, age_ms, used))++;
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
	u16 *count = hint_counter(l, cls, age_ms, used);

	*count -= !!*count;
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
	u32 i = cls - KVT_CLS_HINT, end_ms = kvt_age_of_bin(bin + 1);
	u32 kept = l->kept[i] + HINT_PRIOR, all = kept + l->broken[i];
	u64 left_ms;

	if (age_ms <= end_ms)
		left_ms = max(end_ms - age_ms, end_ms / HINT_LEFT);
	else
		left_ms = (u64)age_ms * HINT_OVER;
	/* Uses in 2^40 ms. */
	return kvt_learn_log((u32)min_t(u64, div64_u64((u64)kept << 40, left_ms * all), U32_MAX));
}
