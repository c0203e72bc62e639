// SPDX-License-Identifier: GPL-2.0
/*
 * The table of recent requests; see kvt_policy_turn.h for the model.
 */
#include "kvt_policy_learn.h"
#include "kvt_policy_turn.h"

static struct kvt_turn *turn_set(struct kvt_turns *t, u32 name)
{
	/* The top bits choose the index's shard: they are as good as any. */
	return t->set[name % KVT_TURN_SETS];
}

void kvt_turns_init(struct kvt_turns *t)
{
	BUILD_BUG_ON(KVT_TURN_SETS & (KVT_TURN_SETS - 1));
	memset(t, 0, sizeof(*t));
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

	if (!name)
		return NULL;
	for (i = 0; i < KVT_TURN_WAYS; i++) {
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
 * Return: the entry of that name, a free one, or the oldest of its set; never NULL.
 */
struct kvt_turn *kvt_turn_slot(struct kvt_turns *t, u32 name, u32 now_ms)
{
	struct kvt_turn *s = turn_set(t, name), *best = s;
	u32 i;

	for (i = 0; i < KVT_TURN_WAYS; i++) {
		if (s[i].name == name)
			return &s[i];
		if (!best->name)
			continue;
		if (!s[i].name || now_ms - s[i].ms > now_ms - best->ms)
			best = &s[i];
	}
	return best;
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
			waiting[kvt_age_bin(now_ms - e->ms)]++;
	}
}
