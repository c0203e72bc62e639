/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What one namespace has on one tier, and what it may have there.
 *
 * A share has a *limit*: nothing of the namespace's comes to the tier that would take it
 * past that. And on block tiers a *minimum*: as long as it has no more than that there,
 * nothing of it goes because others need room. Within the two, room is for whoever uses it.
 *
 * Near its limit a namespace is to a tier's worker what a full tier is: above the high
 * watermark some of it goes until it is below the low one, so that who does not wait finds
 * room. A slot that did not fit is remembered (@wanted), since it may be so large that the
 * limit is in its way and the watermark is not.
 *
 * Invariant: @used + @coming <= @limit, unless the limit was lowered, or blocks came that
 * could not stay away: those of a memory tier that was lost, which are where their copies
 * were. Then @used falls until it holds again, and nothing comes meanwhile.
 *
 * Minima are kept only where they can be: as long as all of a tier's together are not more
 * than kvt_share_promise() of it. The rest is what the log needs to be cleaned, and what
 * makes sure that there is always somebody's block that may go.
 *
 * Bytes: of slots on memory tiers, of whole units on block tiers.
 *
 * Lock: the pool's meta lock for everything.
 */
#ifndef KVT_SHARE_H
#define KVT_SHARE_H

#include "kvt_env.h"

#define KVT_SHARE_ALL	U64_MAX		/* no limit */

/**
 * struct kvt_share - of a namespace, on a tier
 * @used:     bytes it has there
 * @coming:   bytes of moves to a block tier that are under way; on memory tiers they are
 *            part of @used
 * @limit:    most bytes, or KVT_SHARE_ALL
 * @min:      guaranteed bytes, 0: none
 * @wanted:   bytes of a slot that did not fit, 0: there was none since
 * @lowering: it was above the high watermark and is not yet below the low one
 */
struct kvt_share {
	u64 used;
	u64 coming;
	u64 limit;
	u64 min;
	u64 wanted;
	bool lowering;
};

/**
 * struct kvt_claim - what a namespace has been promised, and what others have
 * @has:      bytes it has in the pool, on whatever tier
 * @min:      of these it has been promised, as things are; 0: none
 * @all_min:  sum of that over all namespaces
 * @tier_min: sum of all namespaces' minima on the tier
 * @capacity: of the tier
 */
struct kvt_claim {
	u64 has;
	u64 min;
	u64 all_min;
	u64 tier_min;
	u64 capacity;
};

static inline void kvt_share_init(struct kvt_share *s)
{
	memset(s, 0, sizeof(*s));
	s->limit = KVT_SHARE_ALL;
}

/* Most that can be promised of a block tier of this size. */
static inline u64 kvt_share_promise(u64 capacity)
{
	return capacity - capacity / 4;
}

u64 kvt_share_room(const struct kvt_share *s);
u64 kvt_share_excess(const struct kvt_share *s, u32 percent);
void kvt_share_want(struct kvt_share *s, u64 bytes);
u64 kvt_share_to_go(struct kvt_share *s, u32 high, u32 low);
void kvt_share_give_up(struct kvt_share *s);
u32 kvt_share_pieces(const struct kvt_share *s, u32 least, u32 most, u32 piece_bytes);
bool kvt_share_may_promise(const struct kvt_share *s, u64 min, u64 tier_min, u64 capacity);
bool kvt_share_guarded(const struct kvt_share *s, const struct kvt_claim *c);

/* Do so many bytes more fit. */
static inline bool kvt_share_fits(const struct kvt_share *s, u64 bytes)
{
	return s->limit == KVT_SHARE_ALL || bytes <= kvt_share_room(s);
}

#endif /* KVT_SHARE_H */
