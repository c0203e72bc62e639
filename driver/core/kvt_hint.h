/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hints: what a block is worth whose client has said when it will be used.
 *
 * Hints fall into classes by that time, a factor of two apart. A block of such a class is worth
 * one use in the time that is left, and next to nothing once the time is over. That is weighed with
 * how many of the blocks that hints of this class were about were used then, which none was before it
 * was: who gives false ones is not believed, nor is a stranger, and only he, where what was learned is
 * each namespace's own. What is not believed at all is cold, like what is said not to be used
 * again; of that it is learned as of any other class how often it was, and it is worth nothing
 * until then.
 *
 * Belief cannot be had for less than it gives: it is counted in blocks, a use that comes much
 * sooner than was said is a part of one, and no time is taken to be shorter than a few seconds.
 *
 * Lock: the pool's meta lock for everything.
 */
#ifndef KVT_HINT_H
#define KVT_HINT_H

#include "kvt_policy_learn.h"

#define KVT_HINT_NEVER	U32_MAX
#define KVT_HINT_BLOCKS	4096u	/* of a chain that a hint is about */

u32 kvt_hint_class(u32 reuse_ms);
u32 kvt_hint_worth(const struct kvt_learn *l, u32 cls, u32 bin, u32 age_ms);
void kvt_hint_give(struct kvt_learn *l, u32 cls, u32 nr);
void kvt_hint_use(struct kvt_learn *l, u32 cls, u32 bin, u32 age_ms);
bool kvt_hint_believed(const struct kvt_learn *l, u32 cls);

#endif /* KVT_HINT_H */
