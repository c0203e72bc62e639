/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hints: what a block is worth whose client has said when it will be used.
 *
 * Hints fall into classes by that time, a factor of two apart, so that a class's youngest
 * block is about its least. A block of such a class is worth one use in the time that is
 * left, and next to nothing once the time is over. That is weighed with how often hints of
 * this class came true, which a hint has not before it does: who gives false ones is not believed,
 * nor is a stranger, and only he, where what was learned is each namespace's own. Nor is a
 * use believed to be nearer than a few seconds: in such short times as can be said, even what is hardly
 * ever true would be worth more than all that others have. Of what is said not to be used again it
 * is learned as of any other class how often it was; it is worth nothing until then.
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
void kvt_hint_give(struct kvt_learn *l, u32 cls);
void kvt_hint_count(struct kvt_learn *l, u32 cls, u32 age_ms, bool used);
void kvt_hint_uncount(struct kvt_learn *l, u32 cls, u32 age_ms, bool used);

#endif /* KVT_HINT_H */
