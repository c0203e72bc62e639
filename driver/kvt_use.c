// SPDX-License-Identifier: GPL-2.0
/*
 * Uses: how the policy comes to know of them.
 *
 * GET takes no lock that all clients meet in. It notes what it leased, and the request
 * that this was a part of, in this CPU's ring; whoever needs to know, before choosing a
 * victim, storing a block or telling a figure, shows it to the policy, and so does GET when
 * there is as much as a long call makes. A note says when it was made, and has its blocks
 * before the end of the call that they belong to, so what comes from one CPU is told in its
 * order. What comes from two may change places.
 *
 * A request that is made call by call is told as one as far as it is in a ring: to tell the
 * policy of a part takes as long as to tell it of all there is of the chain.
 *
 * An id that means another block by then costs that block's position in the list a little
 * accuracy and nothing else. The last block of a call is known by its generation.
 *
 * A request takes the policy time in proportion to its chain. So that nobody holds the
 * meta lock for long, a look at the rings ends after KVT_DRAIN_STEPS blocks, one request
 * more at most; the rest is told the next time.
 */
#include "core/kvt_policy_ask.h"
#include "kvt_internal.h"

#define KVT_USE_WORDS	(sizeof(struct kvt_use_note) / sizeof(u32))
#define KVT_USE_PIECE	256u	/* blocks in a note, words that are not put off */
#define KVT_DRAIN_STEPS	8192u

/**
 * struct kvt_use_note - what is in a ring; the ids of its blocks follow
 * @nr:    blocks, in the order in which they are to be shown
 * @at_ms: pool clock
 * @use:   the end of a call that comes after them; @use.tip KVT_NIL: none
 */
struct kvt_use_note {
	u32 nr;
	u32 at_ms;
	struct kvt_use use;
};

/* Is the block that a call ended with still that. */
static bool kvt_use_is_there(struct kvt_pool *p, const struct kvt_use *u)
{
	const struct kvt_hot *h = kvt_hot(&p->table, u->tip);

	return u->tip != KVT_NIL && h->gen == u->gen && kvt_ctl_state(kvt_ctl(h)) == KVT_READY;
}

/**
 * kvt_use_end() - tell the policy of the end of a call
 * @p: pool, meta lock held; its blocks have been touched
 * @u: call; nothing happens if its last block has gone
 */
void kvt_use_end(struct kvt_pool *p, const struct kvt_use *u)
{
	struct kvt_call c = { .who = u->who, .request = u->request, .tip = u->tip, .nr = u->nr };

	lockdep_assert_held(&p->meta_lock);
	if (kvt_use_is_there(p, u))
		kvt_policy_call(&p->policy, &c);
}

/* Is the call after this one the next part of its request: then that is told of both. */
static bool kvt_use_goes_on(struct kvt_pool *p, const struct kvt_use_note *n,
			    struct kvt_use_note *next)
{
	if (next->use.who != n->use.who || next->use.request != n->use.request ||
	    next->at_ms - n->at_ms > KVT_ASK_GAP_MS || !kvt_use_is_there(p, &n->use) ||
	    !kvt_use_is_there(p, &next->use))
		return false;
	p->policy.nr_steps += next->use.nr;
	if (!kvt_ask_extends(&p->table, next->use.tip, n->use.tip, next->use.nr))
		return false;
	next->use.nr += n->use.nr;
	return true;
}

/* Show the policy one note, of @left words that there are. Returns its length in words. */
static u32 kvt_use_show(struct kvt_pool *p, u32 *word, u32 left)
{
	const struct kvt_use_note *n = (const struct kvt_use_note *)word;
	u32 len = KVT_USE_WORDS + n->nr;
	const u32 *ids = word + KVT_USE_WORDS;
	u32 i;

	lockdep_assert_held(&p->meta_lock);
	p->policy.now_ms = n->at_ms;
	p->policy.nr_steps += n->nr + 1;
	for (i = 0; i < n->nr; i++) {
		struct kvt_hot *h = kvt_hot(&p->table, ids[i]);
		u32 ctl = kvt_ctl(h);

		if (kvt_ctl_state(ctl) != KVT_READY)
			continue;
		p->policy.ops->touch(&p->policy, kvt_block_tier(h, ctl), ids[i]);
		if (h->flags & KVT_HOT_UNREAD)
			WRITE_ONCE(h->flags, h->flags & ~KVT_HOT_UNREAD);
		if ((h->flags & KVT_HOT_AHEAD) && (ctl & KVT_CTL_MEM))
			kvt_ahead_used(p, ids[i]);
	}
	if (left == len || !kvt_use_goes_on(p, n, (struct kvt_use_note *)(word + len)))
		kvt_use_end(p, &n->use);
	return len;
}

/* Show what was taken from a ring, as far as it may take. Whether that is all. */
static bool kvt_uses_show(struct kvt_pool *p, u32 from)
{
	struct kvt_uses *u = &p->uses;

	lockdep_assert_held(&p->meta_lock);
	while (u->at < u->nr && p->policy.nr_steps - from < KVT_DRAIN_STEPS)
		u->at += kvt_use_show(p, &u->word[u->at], u->nr - u->at);
	return u->at == u->nr;
}

/* All of it in one go: who wants to add to it does not wait for the policy. */
static void kvt_uses_take(struct kvt_pool *p, struct kvt_ring *ring)
{
	struct kvt_uses *u = &p->uses;

	spin_lock(&ring->lock);
	memcpy(u->word, ring->word, ring->nr * sizeof(ring->word[0]));
	u->at = 0;
	u->nr = ring->nr;
	ring->nr = 0;
	spin_unlock(&ring->lock);
}

/**
 * kvt_touch_drain() - show the policy the uses that have been noted
 * @p: pool, meta lock held
 */
void kvt_touch_drain(struct kvt_pool *p)
{
	u32 from = p->policy.nr_steps, first = p->uses.next_cpu;
	u32 cpu;

	lockdep_assert_held(&p->meta_lock);
	for_each_cpu_wrap(cpu, cpu_possible_mask, first) {
		struct kvt_ring *ring = per_cpu_ptr(p->rings, cpu);

		/* Where the next look begins, if this one ends early. */
		p->uses.next_cpu = cpu;
		if (!kvt_uses_show(p, from))
			break;
		if (READ_ONCE(ring->nr))
			kvt_uses_take(p, ring);
	}
	kvt_uses_show(p, from);
	p->policy.now_ms = kvt_now_ms();
}

/**
 * kvt_touch_flush() - before figures are told that uses count in
 * @p: pool; no spinlock held
 */
void kvt_touch_flush(struct kvt_pool *p)
{
	spin_lock(&p->meta_lock);
	kvt_touch_drain(p);
	spin_unlock(&p->meta_lock);
}

static void kvt_use_note(struct kvt_pool *p, const u32 *ids, u32 nr, const struct kvt_use *use)
{
	struct kvt_use_note n = { .nr = nr, .at_ms = kvt_now_ms() };
	struct kvt_ring *ring = raw_cpu_ptr(p->rings);
	bool enough;
	u32 *at;

	if (use)
		n.use = *use;
	spin_lock(&ring->lock);
	at = &ring->word[ring->nr];
	if (ring->nr + KVT_USE_WORDS + nr > KVT_RING_SIZE) {
		this_cpu_add(p->counts->v[KVT_CNT_LOST_TOUCHES], nr);
		/* The end of a call says more than its blocks. */
		n.nr = 0;
		nr = 0;
	}
	if (ring->nr + KVT_USE_WORDS + nr <= KVT_RING_SIZE && (nr || use)) {
		ring->nr += KVT_USE_WORDS + nr;
		memcpy(at, &n, sizeof(n));
		for (at += KVT_USE_WORDS; nr; at++)
			*at = ids[--nr];
	}
	enough = ring->nr >= KVT_USE_PIECE;
	spin_unlock(&ring->lock);
	if (enough && spin_trylock(&p->meta_lock)) {
		kvt_touch_drain(p);
		spin_unlock(&p->meta_lock);
	}
}

/**
 * kvt_touch() - note that blocks were used
 * @p:   pool; no spinlock held
 * @ids: blocks of one chain, head first; shown tail first, so that the tail is the older
 * @nr:  how many, maybe none
 * @use: the call that this is the end of, or NULL
 */
void kvt_touch(struct kvt_pool *p, const u32 *ids, u32 nr, const struct kvt_use *use)
{
	u32 n;

	do {
		n = min(nr, KVT_USE_PIECE);
		nr -= n;
		kvt_use_note(p, ids + nr, n, nr ? NULL : use);
	} while (nr);
}
