// SPDX-License-Identifier: GPL-2.0
/*
 * Hazards and Gittins indices; see kvt_policy_learn.h for the model.
 *
 * Hazard of a bin (Kaplan and Meier): uses in it, over all who were seen to reach it.
 * Index (Gittins): with S(b) the chance to get from the age in question to bin b
 * unused, w(b) the bin's width and q(b) its hazard, the largest over e of
 *
 *	(1 - S(e + 1)) / sum over b up to e of S(b) w(b) (1 - q(b) / 2)
 *
 * Invariant: a hazard is below LEARN_ONE, so nothing is ever certain to be used.
 */
#include "kvt_policy_learn.h"

#define LEARN_ONE		65536u
#define LEARN_WEIGHT_POOL	16u	/* what the pool's word is worth, in events */
#define LEARN_WEIGHT_PRIOR	4u
#define LEARN_LEVEL_WEIGHT	4u	/* events in favour of the pool's level */
#define LEARN_LEVEL_ONE		256u
#define LEARN_OVER_MS		240000u	/* what is said to be over is not used sooner again */
#define LEARN_PRIOR		(LEARN_ONE / 32)	/* hazard of any bin, nothing known */

/* Which pool a class leans on; a pool is its own. */
static u32 learn_pool(u32 cls)
{
	return cls == KVT_CLS_POOL || kvt_class_shared(cls) ? KVT_CLS_POOL : KVT_CLS_NEW;
}

static void learn_halve(struct kvt_learn *l, u32 cls)
{
	u32 i;

	l->total[cls] = 0;
	for (i = 0; i < KVT_AGE_BINS; i++) {
		l->used[cls][i] /= 2;
		l->lost[cls][i] /= 2;
		l->total[cls] += l->used[cls][i] + l->lost[cls][i];
	}
}

static void learn_count(struct kvt_learn *l, u32 cls, u32 bin, bool used)
{
	if (l->total[cls] >= KVT_COUNT_MAX)
		learn_halve(l, cls);
	l->total[cls]++;
	if (used)
		l->used[cls][bin]++;
	else
		l->lost[cls][bin]++;
}

/**
 * kvt_learn_use() - what was waiting for its next use waits no more
 * @l:      state
 * @cls:    class it had while it was waiting
 * @age_ms: since its last use
 * @used:   it was used; else: nobody looks at it any longer
 */
void kvt_learn_use(struct kvt_learn *l, u32 cls, u32 age_ms, bool used)
{
	u32 bin = kvt_age_bin(age_ms), pool = learn_pool(cls);

	/* What a client has said is judged by its blocks. */
	if (!kvt_class_hinted(cls) && cls != KVT_CLS_COLD)
		learn_count(l, cls, bin, used);
	if (pool != cls)
		learn_count(l, pool, bin, used);
}

/**
 * kvt_learn_over() - blocks are said not to be used again
 * @l:  state
 * @nr: how many, at most KVT_COUNT_MAX / 2
 *
 * They count as never used until they are.
 */
void kvt_learn_over(struct kvt_learn *l, u32 nr)
{
	while (l->total[KVT_CLS_COLD] + nr >= KVT_COUNT_MAX)
		learn_halve(l, KVT_CLS_COLD);
	l->total[KVT_CLS_COLD] += (u16)nr;
	l->lost[KVT_CLS_COLD][KVT_AGE_BINS - 1] += (u16)nr;
}

/**
 * kvt_learn_not_over() - a block is used that was said not to be
 * @l:      state
 * @age_ms: since its last use, or since that was said
 *
 * Counted as if that had taken some time: what is used again soon, and said to be over each time, would
 * make all that is said to be over worth most.
 */
void kvt_learn_not_over(struct kvt_learn *l, u32 age_ms)
{
	if (!l->lost[KVT_CLS_COLD][KVT_AGE_BINS - 1])
		return;
	l->lost[KVT_CLS_COLD][KVT_AGE_BINS - 1]--;
	l->used[KVT_CLS_COLD][kvt_age_bin(max(age_ms, LEARN_OVER_MS))]++;
}

/* Once halved, there may be nothing to take back. */
static void learn_uncount(struct kvt_learn *l, u32 cls, u32 bin, bool used)
{
	u16 *count = used ? &l->used[cls][bin] : &l->lost[cls][bin];

	if (!*count)
		return;
	(*count)--;
	l->total[cls]--;
}

/**
 * kvt_learn_forget() - take back what kvt_learn_use() was told just now
 * @l:      state
 * @cls:    as then
 * @age_ms: as then
 * @used:   as then
 */
void kvt_learn_forget(struct kvt_learn *l, u32 cls, u32 age_ms, bool used)
{
	u32 bin = kvt_age_bin(age_ms), pool = learn_pool(cls);

	if (!kvt_class_hinted(cls) && cls != KVT_CLS_COLD)
		learn_uncount(l, cls, bin, used);
	if (pool != cls)
		learn_uncount(l, pool, bin, used);
}

/* Hazards of a class, leaning on @lean (NULL: the prior) by @weight events. */
static void learn_hazards(const struct kvt_learn *l, u32 cls, const u16 *waiting,
			  const u16 *lean, u32 weight, u16 *out)
{
	u32 reached = 0, b;

	for (b = KVT_AGE_BINS; b-- > 0;) {
		u32 gone = l->lost[cls][b] + (waiting ? waiting[b] : 0), q;

		reached += l->used[cls][b] + gone;
		q = l->used[cls][b] * LEARN_ONE + (lean ? lean[b] : LEARN_PRIOR) * weight;
		/* What got lost in a bin has been at risk for half of it. */
		q /= reached - gone / 2 + weight;
		out[b] = (u16)min(q, LEARN_ONE - 1);
	}
}

/*
 * The pool's hazards as they would be with this class's number of uses: its shape, and
 * the class's level.
 */
static void learn_level(const struct kvt_learn *l, u32 cls, const u16 *waiting,
			const u16 *pool, u16 *out)
{
	u32 reached = 0, used = 0, b, level;
	u64 due = 0;			/* uses, in units of 2^-16 */

	for (b = KVT_AGE_BINS; b-- > 0;) {
		reached += l->used[cls][b] + l->lost[cls][b] + (waiting ? waiting[b] : 0);
		used += l->used[cls][b];
		due += (u64)reached * pool[b];
	}
	level = (u32)div64_u64((u64)(used + LEARN_LEVEL_WEIGHT) << 24,
			       due + (LEARN_LEVEL_WEIGHT << 16));
	level = clamp(level, LEARN_LEVEL_ONE / 16, LEARN_LEVEL_ONE * 16);
	for (b = 0; b < KVT_AGE_BINS; b++)
		out[b] = (u16)min(pool[b] * level / LEARN_LEVEL_ONE, LEARN_ONE - 1);
}

/**
 * kvt_learn_log() - logarithm, as worth is measured
 * @v: any number; 0 and 1 give 0
 * Return: 2^KVT_WORTH_SHIFT times the logarithm to base 2, piecewise linear.
 */
u32 kvt_learn_log(u32 v)
{
	u32 top = (u32)fls((int)v);

	if (!top)
		return 0;
	v ^= 1u << (top - 1);
	v = top > KVT_WORTH_SHIFT ? v >> (top - 1 - KVT_WORTH_SHIFT) :
				    v << (KVT_WORTH_SHIFT + 1 - top);
	return (top - 1) << KVT_WORTH_SHIFT | v;
}

/**
 * struct learn_span - some bins in a row, and what becomes of those that reach the first
 * @place: time they take up in them, in units of 2^-16 ms
 * @used:  part that is used in them, in units of 2^-30
 * @alive: part that gets through
 * @ratio: @used for @place: uses in 2^40 ms
 */
struct learn_span {
	u64 place;
	u32 used;
	u32 alive;
	u32 ratio;
};

static void learn_ratio(struct learn_span *s)
{
	s->ratio = (u32)min_t(u64, div64_u64((u64)s->used << 26, s->place + 1), U32_MAX);
}

/* Add the bins that follow. Places are below 2^40. */
static void learn_join(struct learn_span *s, const struct learn_span *next)
{
	s->place += ((s->alive >> 6) * next->place) >> 24;
	s->used += (u32)(((u64)s->alive * next->used) >> 30);
	s->alive = (u32)(((u64)s->alive * next->alive) >> 30);
	learn_ratio(s);
}

/*
 * Gittins index at the beginning of each bin, uses in 2^40 ms. From the last bin to the
 * first: the best horizon goes on as long as what follows has a better ratio, so the
 * best spans of what follows are kept, from the worst to the best, and joined.
 */
static void learn_gittins(const u16 *hazard, u32 *index)
{
	struct learn_span s[KVT_AGE_BINS];
	u32 nr = 0, b;

	for (b = KVT_AGE_BINS; b-- > 0;) {
		u32 used = (u32)hazard[b] << 14;

		s[nr] = (struct learn_span) {
			.place = (u64)(((1u << 30) - used / 2) >> 14) *
				 (kvt_age_of_bin(b + 1) - kvt_age_of_bin(b)),
			.used = used,
			.alive = (1u << 30) - used,
		};
		learn_ratio(&s[nr]);
		for (; nr && s[nr - 1].ratio > s[nr].ratio; nr--) {
			learn_join(&s[nr], &s[nr - 1]);
			s[nr - 1] = s[nr];
		}
		index[b] = s[nr++].ratio;
	}
}

/* Was anything of the class ever used again. */
static bool learn_any_use(const struct kvt_learn *l, u32 cls)
{
	u32 b;

	for (b = 0; b < KVT_AGE_BINS; b++) {
		if (l->used[cls][b])
			return true;
	}
	return false;
}

/**
 * kvt_learn_row() - work out a class's worth from its counts
 * @l:       state
 * @cls:     class, or pool
 * @waiting: how many of the class are waiting, by the bin of their age now; or NULL
 */
void kvt_learn_row(struct kvt_learn *l, u32 cls, const u16 *waiting)
{
	u32 pool = learn_pool(cls), b;
	u16 *lean = l->hazard[pool == KVT_CLS_POOL], own[KVT_AGE_BINS];
	u32 index[KVT_AGE_BINS];

	if (cls == KVT_CLS_COLD && !learn_any_use(l, cls)) {
		memset(l->worth[cls], 0, sizeof(l->worth[cls]));
		return;
	}
	if (pool == cls)
		learn_hazards(l, cls, waiting, NULL, LEARN_WEIGHT_PRIOR, lean);
	if (pool != cls) {
		learn_level(l, cls, waiting, lean, own);
		learn_hazards(l, cls, waiting, own, LEARN_WEIGHT_POOL, own);
	}
	learn_gittins(pool == cls ? lean : own, index);
	for (b = 0; b < KVT_AGE_BINS; b++)
		l->worth[cls][b] = (u16)kvt_learn_log(index[b]);
}

/**
 * kvt_learn_init() - nothing known
 * @l: state
 */
void kvt_learn_init(struct kvt_learn *l)
{
	u32 cls;

	memset(l, 0, sizeof(*l));
	kvt_learn_row(l, KVT_CLS_NEW, NULL);
	kvt_learn_row(l, KVT_CLS_POOL, NULL);
	for (cls = KVT_CLS_SHARED; cls < KVT_CLASSES; cls++)
		kvt_learn_row(l, cls, NULL);
}
