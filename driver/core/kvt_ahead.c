// SPDX-License-Identifier: GPL-2.0
/*
 * Looking ahead; see kvt_ahead.h for the model.
 */
#include "kvt_ahead.h"

#define TRUST_PERIODS_MAX	16u	/* after so many, nothing saved up is left */
#define TRUST_RIGHT		4u	/* one in so many is to be right */
#define PACE_SHIFT		2

/**
 * kvt_trust_init() - begin without experience
 * @t:      trust
 * @now_ms: pool clock
 */
void kvt_trust_init(struct kvt_trust *t, u32 now_ms)
{
	memset(t, 0, sizeof(*t));
	t->credit = KVT_TRUST_GRANT;
	t->at_ms = now_ms;
}

/* A period is over. */
static void trust_turn(struct kvt_trust *t)
{
	u32 grant;

	if (t->spent && t->earned < DIV_ROUND_UP(t->spent, TRUST_RIGHT))
		t->doubt = min(t->doubt + 1, KVT_TRUST_DOUBT_MAX);
	else if (t->earned)
		t->doubt = 0;
	t->spent = 0;
	t->earned = 0;
	grant = KVT_TRUST_GRANT >> t->doubt;
	t->credit = max(t->credit / 2, grant);
}

/**
 * kvt_trust_credit() - how much may be brought up now
 * @t:      trust
 * @now_ms: pool clock; if it goes back a new period begins, and nothing else happens
 * Return: blocks.
 */
u32 kvt_trust_credit(struct kvt_trust *t, u32 now_ms)
{
	s32 age_ms = (s32)(now_ms - t->at_ms);
	u32 n;

	if (age_ms < 0) {
		t->at_ms = now_ms;
		return t->credit;
	}
	n = (u32)age_ms / KVT_TRUST_PERIOD_MS;
	t->at_ms += n * KVT_TRUST_PERIOD_MS;
	for (n = min(n, TRUST_PERIODS_MAX); n; n--)
		trust_turn(t);
	return t->credit;
}

/**
 * kvt_trust_spend() - blocks are being brought up
 * @t:  trust
 * @nr: how many, at most what kvt_trust_credit() said
 */
void kvt_trust_spend(struct kvt_trust *t, u32 nr)
{
	t->credit -= min(nr, t->credit);
	t->spent += min(nr, U32_MAX - t->spent);
}

/**
 * kvt_trust_refund() - some of them were not brought up after all
 * @t:  trust
 * @nr: how many
 */
void kvt_trust_refund(struct kvt_trust *t, u32 nr)
{
	t->credit = min(t->credit + min(nr, KVT_TRUST_MAX), KVT_TRUST_MAX);
	t->spent -= min(nr, t->spent);
}

/**
 * kvt_trust_earn() - a block that was brought up was read
 * @t: trust
 */
void kvt_trust_earn(struct kvt_trust *t)
{
	t->credit = min(t->credit + KVT_TRUST_EARN, KVT_TRUST_MAX);
	t->earned += t->earned < U32_MAX;
}

void kvt_pace_init(struct kvt_pace *p)
{
	u32 i;

	memset(p, 0, sizeof(*p));
	for (i = 0; i < KVT_PACE_KINDS; i++)
		p->pause_ns[i] = KVT_PACE_START_NS;
}

/**
 * kvt_pace_begin() - a call that reads begins
 * @p:      pace
 * @now_ns: clock; one that went back gives no sample
 */
void kvt_pace_begin(struct kvt_pace *p, u64 now_ns)
{
	u64 end_ns = READ_ONCE(p->end_ns), old, new;
	u32 kind = READ_ONCE(p->last) % KVT_PACE_KINDS;

	if (!end_ns || now_ns < end_ns)
		return;
	old = READ_ONCE(p->pause_ns[kind]);
	new = min_t(u64, now_ns - end_ns, KVT_PACE_MAX_NS);
	WRITE_ONCE(p->pause_ns[kind], old - (old >> PACE_SHIFT) + (new >> PACE_SHIFT));
}

/**
 * kvt_pace_end() - it ends
 * @p:      pace
 * @kind:   what it was
 * @now_ns: clock
 */
void kvt_pace_end(struct kvt_pace *p, enum kvt_pace_kind kind, u64 now_ns)
{
	WRITE_ONCE(p->last, kind);
	WRITE_ONCE(p->end_ns, now_ns);
}

/* How many are there before they are asked for, if they are read one after the other. */
static u64 ahead_in_time(const struct kvt_ahead_ask *q)
{
	u64 left_ns, nr, gain_ns;

	if (q->due_ns <= q->queue_ns)
		return 0;
	if (!q->block_ns)
		return U32_MAX;
	left_ns = q->due_ns - q->queue_ns;
	nr = div64_u64(left_ns, q->block_ns);
	if (!q->each || nr < q->each)
		return nr;
	/* With each call that follows there is more time: for a block, so much. */
	gain_ns = div64_u64(q->pace_ns, q->each);
	if (q->block_ns <= gain_ns)
		return U32_MAX;
	return div64_u64(left_ns, q->block_ns - gain_ns);
}

/**
 * kvt_ahead_blocks() - how many blocks to bring up that nobody waits for
 * @q: what is known of them
 * Return: at most @q->wanted.
 */
u32 kvt_ahead_blocks(const struct kvt_ahead_ask *q)
{
	u64 fit = div64_u64(min(q->room_bytes, q->max_bytes), q->block_bytes);
	u64 nr = min(q->wanted, q->credit);

	nr = min(nr, fit);
	return (u32)min(nr, ahead_in_time(q));
}
