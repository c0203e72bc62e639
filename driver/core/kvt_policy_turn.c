// SPDX-License-Identifier: GPL-2.0
/*
 * The table of recent requests; see kvt_policy_turn.h for the model.
 */
#include "kvt_policy_turn.h"

static struct kvt_turn *turn_set(struct kvt_turns *t, u32 name)
{
	return t->set[name % KVT_TURN_SETS];
}

/* 0 for half of all names, 1 for a quarter, and so on. */
static u32 turn_level(u32 name)
{
	u32 v = (name / KVT_TURN_SETS) | (1u << KVT_TURN_LEVELS);

	return (u32)fls((int)(v & -v)) - 1;
}

/**
 * kvt_turns_init() - nothing remembered
 * @t: table
 */
void kvt_turns_init(struct kvt_turns *t)
{
	BUILD_BUG_ON(sizeof(struct kvt_turn) != 8);
	memset(t, 0, sizeof(*t));
}

/**
 * kvt_turn_age_ms() - how long ago a request was
 * @e:      request
 * @now_ms: pool clock
 * Return: to KVT_TURN_MS; 0 if the clock went back.
 */
u32 kvt_turn_age_ms(const struct kvt_turn *e, u32 now_ms)
{
	u32 age = (u16)((now_ms >> KVT_TURN_SHIFT) - e->time);

	return age > U16_MAX - KVT_AGE_BACK_MS / KVT_TURN_MS ? 0 : age << KVT_TURN_SHIFT;
}

/**
 * kvt_turn_find() - is this the last block but one of a recent request
 * @t:    table
 * @name: the block's hash
 * Return: the request or NULL.
 */
struct kvt_turn *kvt_turn_find(struct kvt_turns *t, u32 name)
{
	struct kvt_turn *s = turn_set(t, name);
	u32 i;

	for (i = 0; name && i < KVT_TURN_WAYS; i++) {
		if (s[i].name == name)
			return &s[i];
	}
	return NULL;
}

/**
 * kvt_turn_slot() - where to remember a request
 * @t:      table
 * @name:   hash of its last block but one
 * @now_ms: pool clock
 * Return: the entry of that name, a free one, or what is to be forgotten; never NULL.
 */
struct kvt_turn *kvt_turn_slot(struct kvt_turns *t, u32 name, u32 now_ms)
{
	struct kvt_turn *s = turn_set(t, name), *found = kvt_turn_find(t, name);
	u32 best = 0, best_age = 0, age, i;

	if (found)
		return found;
	for (i = 0; i < KVT_TURN_WAYS; i++) {
		if (!s[i].name)
			return &s[i];
		age = kvt_turn_age_ms(&s[i], now_ms) >> turn_level(s[i].name);
		if (age > best_age) {
			best = i;
			best_age = age;
		}
	}
	return &s[best];
}

/**
 * kvt_turns_waiting() - ages of the sessions of a class that may still go on
 * @t:       table
 * @cls:     class; KVT_CLS_NEW: all
 * @now_ms:  pool clock
 * @waiting: KVT_AGE_BINS counts, added to
 */
void kvt_turns_waiting(const struct kvt_turns *t, u32 cls, u32 now_ms, u16 *waiting)
{
	const struct kvt_turn *e = t->set[0];
	u32 i;

	for (i = 0; i < KVT_TURN_SETS * KVT_TURN_WAYS; i++, e++) {
		if (e->name && (e->cls == cls || cls == KVT_CLS_NEW))
			waiting[kvt_age_bin(kvt_turn_age_ms(e, now_ms))]++;
	}
}

/* Forget what is too old in a set, or all that is in it. */
static void turn_sweep(struct kvt_turn *s, struct kvt_learn *l, u32 now_ms, bool all)
{
	u32 old_ms = KVT_TURN_OLD << KVT_TURN_SHIFT, age_ms, i;

	for (i = 0; i < KVT_TURN_WAYS; i++) {
		age_ms = all ? old_ms : kvt_turn_age_ms(&s[i], now_ms);
		if (!s[i].name || age_ms < old_ms)
			continue;
		kvt_learn_use(l, s[i].cls, age_ms, false);
		s[i].name = 0;
	}
}

/**
 * kvt_turns_expire() - forget what is too old for the times kept
 * @t:      table
 * @l:      is told of each
 * @now_ms: pool clock
 *
 * To be called with each request. Goes over the table in half the time after which a
 * request is too old, a set for each KVT_TURN_STEP_MS that have passed.
 */
void kvt_turns_expire(struct kvt_turns *t, struct kvt_learn *l, u32 now_ms)
{
	u32 steps = kvt_age_since(now_ms, t->swept_ms) / KVT_TURN_STEP_MS;
	bool all = steps > 2 * KVT_TURN_SETS;

	if (!steps)
		return;
	/* What is left of a step counts next time, unless the clock is far ahead. */
	t->swept_ms = steps > KVT_TURN_SETS ? now_ms : t->swept_ms + steps * KVT_TURN_STEP_MS;
	for (steps = min(steps, KVT_TURN_SETS); steps--; t->next++)
		turn_sweep(t->set[t->next % KVT_TURN_SETS], l, now_ms, all);
}
