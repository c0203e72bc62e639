// SPDX-License-Identifier: GPL-2.0
/*
 * Hazards and Gittins indices; see kvt_policy_learn.h for the model.
 *
 * Hazard of a bin (Kaplan and Meier): uses in it, over all who were seen to reach it.
 * Index (Gittins): with S(b) the chance to get from the age in question to bin b
 * unused, w(b) the bin's width and q(b) its hazard,
 *
 *	max over e of  (1 - S(e + 1)) / sum of S(b) w(b) (1 - q(b) / 2) for b up to e
 */
#include "kvt_policy_learn.h"

#define LEARN_ONE		65536u		/* a chance of one */
#define LEARN_WEIGHT_POOL	1u		/* what the pool says is worth, in events */
#define LEARN_WEIGHT_PRIOR	4u
#define LEARN_PRIOR		(LEARN_ONE / 8)	/* hazard of any bin if nothing is known */

/* Which pool a class leans on. */
static u32 learn_pool(u32 cls)
{
	return cls >= KVT_CLS_SHARED && cls < KVT_CLS_SESSION ? KVT_CLS_POOL : KVT_CLS_NEW;
}

static void learn_count(struct kvt_learn *l, u32 cls, u32 bin, bool used)
{
	u32 i;

	if (l->total[cls] >= KVT_COUNT_MAX) {
		l->total[cls] = 0;
		for (i = 0; i < KVT_AGE_BINS; i++) {
			l->used[cls][i] /= 2;
			l->lost[cls][i] /= 2;
			l->total[cls] += l->used[cls][i] + l->lost[cls][i];
		}
	}
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
 * @used:   it was used; else: nobody will look at it any longer
 */
void kvt_learn_use(struct kvt_learn *l, u32 cls, u32 age_ms, bool used)
{
	u32 bin = kvt_age_bin(age_ms);

	learn_count(l, cls, bin, used);
	if (learn_pool(cls) != cls)
		learn_count(l, learn_pool(cls), bin, used);
}

/* Hazards of a class, leaning on @lean by @weight. @waiting: as in kvt_learn_row(). */
static void learn_hazards(const struct kvt_learn *l, u32 cls, const u16 *waiting,
		    const u16 *lean, u32 weight, u16 *out)
{
	u32 reached = 0, b, q;

	for (b = KVT_AGE_BINS; b-- > 0;) {
		u32 here = l->lost[cls][b] + (waiting ? waiting[b] : 0);

		/* Who got lost in a bin has been at risk for half of it. */
		q = l->used[cls][b] * LEARN_ONE + (lean ? lean[b] : LEARN_PRIOR) * weight;
		reached += l->used[cls][b] + here;
		q /= reached - here / 2 + weight;
		out[b] = (u16)min(q, LEARN_ONE - 1);
	}
}

static u32 learn_width_ms(u32 bin)
{
	return kvt_age_of_bin(bin + 1) - kvt_age_of_bin(bin);
}

/* Gittins index at the beginning of bin @from. */
static u32 learn_gittins(const u16 *hazard, u32 from)
{
	u64 best = 0, ratio, place = 0;	/* place: ms, in units of 2^-16 */
	u32 alive = 1u << 30, b;

	for (b = from; b < KVT_AGE_BINS; b++) {
		u32 gone = (u32)(((u64)alive * hazard[b]) >> 16);

		place += (u64)((alive - gone / 2) >> 14) * learn_width_ms(b);
		alive -= gone;
		ratio = div64_u64((u64)((1u << 30) - alive) << 26, place + 1);
		best = max(best, ratio);
	}
	return (u32)min(best, (u64)U32_MAX);
}

/**
 * kvt_learn_row() - work out a class's worth from its counts
 * @l:       state
 * @cls:     class, or pool
 * @waiting: by bin of their present age: how many of the class still wait; or NULL
 */
void kvt_learn_row(struct kvt_learn *l, u32 cls, const u16 *waiting)
{
	u32 pool = learn_pool(cls), b;
	u16 hazard[KVT_AGE_BINS];
	u16 *lean = l->hazard[pool == KVT_CLS_POOL];

	if (cls == KVT_CLS_COLD)
		return;
	if (pool == cls || cls == KVT_CLS_POOL) {
		learn_hazards(l, cls, waiting, NULL, LEARN_WEIGHT_PRIOR, lean);
		memcpy(hazard, lean, sizeof(hazard));
	} else {
		learn_hazards(l, cls, waiting, lean, LEARN_WEIGHT_POOL, hazard);
	}
	for (b = 0; b < KVT_AGE_BINS; b++)
		l->score[cls][b] = learn_gittins(hazard, b);
}

/**
 * kvt_learn_init() - nothing known
 * @l: state, zeroed
 */
void kvt_learn_init(struct kvt_learn *l)
{
	u32 c;

	BUILD_BUG_ON(sizeof(*l) > 9 * 1024);
	kvt_learn_row(l, KVT_CLS_POOL, NULL);
	for (c = 0; c < KVT_CLASSES; c++)
		kvt_learn_row(l, c, NULL);
}
