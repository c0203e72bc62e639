/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The lives of a member's segments: which one is in each, and what of it has died.
 *
 * kvt_recover.h says what is in one segment. Whether that counts is said by others: each
 * kill that is found anywhere on the member is for some segment of it. So the segments are
 * gone through three times, each time in any order and any number of them at once:
 *
 *   kvt_life_read()     the life in the first header; where there is none, in the footer
 *   kvt_life_recover()  with a sink that gives kills to kvt_life_kill()
 *   kvt_life_recover()  of those for which kvt_life_counts(), for the rest
 *
 * Reading headers and summaries twice is what bounds memory: no kill is kept.
 *
 * A member of which some part is not known, or is damaged so that it cannot be, must not be
 * used at all: a kill may be what is missing, and what was dropped must not come back. That is
 * one of which a header, a footer or a summary cannot be read, one that has numbers that its
 * superblock does not know of, and one of which a first header is damaged
 * (kvt_life_damaged()). A header of a segment in which nothing counts looks like that as well,
 * but then there is no footer at its end either, or one of a life that is known to have
 * ended: its end is kept until another life has begun (kvt_wlog.h).
 *
 * Invariants: @life and @stale are constant after the first time; @ended and the bits only
 * grow, while kills are read, and are constant after that. No locks; nothing sleeps but what
 * the caller's read callback does.
 */
#ifndef KVT_LIFE_H
#define KVT_LIFE_H

#include "kvt_recover.h"

/**
 * struct kvt_life_seg - a segment of a member
 * @found:  by the last kvt_life_recover() of it
 * @life:   from its first header, 0: nothing counts
 * @stale:  life in the footer of one without a first header, 0: none
 * @ended:  life of which a kill says that nothing of it counts: @life; or, if there is none,
 *          @stale or a later one, which had no footer; 0: none
 * @placed: units of blocks that were found; the caller's
 */
struct kvt_life_seg {
	struct kvt_seg_found found;
	u64 life;
	u64 stale;
	u64 ended;
	u32 placed;
};

/**
 * struct kvt_life - a member
 * @super: newest superblock, checked
 * @segs:  @super->geo.nr_segs of them, zeroed at first
 * @dead:  a bit for each unit, by segment: a kill names it; zeroed at first
 */
struct kvt_life {
	const struct kvt_super *super;
	struct kvt_life_seg *segs;
	unsigned long *dead;
};

int kvt_life_read(const struct kvt_life *l, const struct kvt_recover *r, u32 seg);
bool kvt_life_kill(const struct kvt_life *l, const struct kvt_kill *k);
int kvt_life_recover(const struct kvt_life *l, const struct kvt_recover *r, u32 seg);

/* Is there anything in it that may count. After all kills. */
static inline bool kvt_life_counts(const struct kvt_life_seg *s)
{
	return s->life && !s->ended;
}

/* Has it lost the header that would say what is in it. After all kills. */
static inline bool kvt_life_damaged(const struct kvt_life_seg *s)
{
	return s->stale && !s->ended;
}

/* Does a kill name this unit. After all kills. */
static inline bool kvt_life_is_dead(const struct kvt_life *l, u32 seg, u32 unit)
{
	return test_bit((u64)seg * l->super->geo.seg_units + unit, l->dead);
}

#endif /* KVT_LIFE_H */
