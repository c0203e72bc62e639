// SPDX-License-Identifier: GPL-2.0
/*
 * SESSION: what a chain is being used for.
 *
 * The state of a session and what it holds are kvt_session.c's; here are the command and
 * what a finished session leaves. Of its chain the end is its own: from the tip up to where
 * others' chains branch off or a decoding session holds it. That will not be used again,
 * or, if the client says when it will be, not soon. A policy that takes hints is told; else
 * it is put first in line, head first, so that it goes from the tail. It is looked at in
 * steps; of a very long one, the part next to the tip.
 */
#include <linux/math64.h>
#include <linux/nospec.h>
#include <linux/slab.h>

#include "core/kvt_hint.h"
#include "ops.h"

#define KVT_TAIL_MAX	4096u
#define KVT_TAIL_STEP	256u	/* under one hold of the meta lock */

/**
 * struct kvt_tail - the end of a chain that is its own
 * @nr:  blocks
 * @id:  from the last one upwards
 * @gen: their generations
 */
struct kvt_tail {
	u32 nr;
	u32 id[KVT_TAIL_MAX];
	u32 gen[KVT_TAIL_MAX];
};

/* Does nothing go through this block but the blocks of the tail, whose first is @child. */
static bool kvt_tail_own(struct kvt_pool *p, u32 id, u32 child)
{
	u32 ctl = kvt_ctl(kvt_hot(&p->table, id));

	if (kvt_ctl_state(ctl) != KVT_READY || (ctl & KVT_CTL_HELD) ||
	    kvt_cold(&p->table, id)->first_child != child)
		return false;
	return !child || !kvt_cold(&p->table, child)->sib_next;
}

/* Whether there is more. */
static bool kvt_tail_step(struct kvt_pool *p, struct kvt_tail *t, u32 tip, u32 gen)
{
	u32 last = t->nr ? t->id[t->nr - 1] : KVT_NIL, left = KVT_TAIL_STEP, id = tip;

	lockdep_assert_held(&p->meta_lock);
	if (last && !kvt_hold_there(&p->table, last, t->gen[t->nr - 1]))
		return false;
	if (last)
		id = kvt_cold(&p->table, last)->parent;
	else if (!kvt_hold_there(&p->table, tip, gen))
		return false;
	while (id && t->nr < KVT_TAIL_MAX && left--) {
		if (!kvt_tail_own(p, id, last))
			return false;
		t->id[t->nr] = id;
		t->gen[t->nr++] = kvt_hot(&p->table, id)->gen;
		last = id;
		id = kvt_cold(&p->table, id)->parent;
	}
	return id && t->nr < KVT_TAIL_MAX;
}

/* Memory tiers, by id, from where there is a way down. Meta lock held. */
static u32 kvt_tiers_above(struct kvt_pool *p)
{
	bool lower = false;
	u32 mask = 0, i;

	lockdep_assert_held(&p->meta_lock);
	for (i = p->nr_tiers; i-- > 0;) {
		struct kvt_tier *t = p->tiers[p->order[i]];

		if (t->ops->is_mem && lower)
			mask |= 1u << t->id;
		lower |= t->state == KVTIER_TIER_ONLINE;
	}
	return mask;
}

static void kvt_tail_cool(struct kvt_pool *p, u32 id, u32 tiers)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);
	u32 tier = kvt_block_tier(h, kvt_ctl(h));

	lockdep_assert_held(&p->meta_lock);
	if (tier == KVT_NO_TIER || !(tiers & (1u << tier)))
		return;
	p->policy.ops->cool(&p->policy, tier, id);
	kvt_group_of(p, h->ns_group)->own[tier].cursor = KVT_NIL;
}

/* @archive: it is wanted again: only down, from where there is a way down. */
static void kvt_session_cool(struct kvt_pool *p, u32 tip, u32 gen, bool archive)
{
	struct kvt_tail *t = kvmalloc(sizeof(*t), GFP_KERNEL_ACCOUNT);
	u32 tiers, n;
	bool more;

	/* Only a hint. */
	if (!t)
		return;
	t->nr = 0;
	do {
		spin_lock(&p->meta_lock);
		more = kvt_tail_step(p, t, tip, gen);
		spin_unlock(&p->meta_lock);
		cond_resched();
	} while (more);
	while (t->nr) {
		spin_lock(&p->meta_lock);
		kvt_touch_drain(p);
		tiers = archive ? kvt_tiers_above(p) : ~0u;
		for (n = min(t->nr, KVT_TAIL_STEP); n; n--) {
			t->nr--;
			if (kvt_hold_there(&p->table, t->id[t->nr], t->gen[t->nr]))
				kvt_tail_cool(p, t->id[t->nr], tiers);
		}
		spin_unlock(&p->meta_lock);
		cond_resched();
	}
	kvfree(t);
}

/* What the policy makes of it; one that makes nothing of hints has what is done cooled. */
static void kvt_session_hint(struct kvt_pool *p, const struct kvtier_session *a, u32 tip, u32 gen)
{
	bool done = a->state == KVTIER_SESSION_DONE, taken;
	u32 reuse_ms = KVT_HINT_NEVER;

	if (!done && !a->reuse_ns)
		return;
	if (a->reuse_ns)
		reuse_ms = min_t(u64, div_u64(a->reuse_ns, NSEC_PER_MSEC), KVT_HINT_NEVER - 1);
	spin_lock(&p->meta_lock);
	kvt_touch_drain(p);
	taken = p->policy.ops->hint;
	if (taken && kvt_hold_there(&p->table, tip, gen))
		p->policy.ops->hint(&p->policy, tip, reuse_ms);
	spin_unlock(&p->meta_lock);
	if (!taken && done)
		kvt_session_cool(p, tip, gen, a->reuse_ns);
}

/* The block that the caller names as tip; KVT_NIL: he names none. */
static int kvt_session_named(struct kvt_file *f, const struct kvtier_session *a, u32 *tip,
			     u32 *gen)
{
	u32 ns_group = kvt_ns_group(f->ns->idx, a->group);
	enum kvt_found found;

	*tip = KVT_NIL;
	*gen = 0;
	if (kvt_key_zero(a->tip))
		return 0;
	found = kvt_block_find(f->pool, ns_group, a->tip, false, tip, gen);
	return found == KVT_FOUND_NOT || found == KVT_FOUND_FILLING ? -ENOENT : 0;
}

/**
 * kvt_op_session() - SESSION
 * @f:   caller
 * @arg: struct kvtier_session
 */
int kvt_op_session(struct kvt_file *f, void *arg)
{
	struct kvtier_session *a = arg;
	int err = kvt_check_group(f, a->group);
	u32 tip, gen;

	if (err)
		return err;
	if (f->rdonly)
		return -EACCES;
	/* Part of a block's name: not even by a guess is it another namespace's. */
	a->group = array_index_nospec(a->group, f->ns->nr_groups);
	if (a->state < KVTIER_SESSION_DECODING || a->state > KVTIER_SESSION_DONE || !a->session ||
	    (a->state == KVTIER_SESSION_DECODING && a->reuse_ns))
		return -EINVAL;
	err = kvt_session_named(f, a, &tip, &gen);
	if (err)
		return err;
	if (a->state == KVTIER_SESSION_DECODING)
		err = kvt_session_decode(f, a->session, &tip, &gen);
	else
		err = kvt_session_rest(f, a->session, a->state == KVTIER_SESSION_DONE, &tip, &gen);
	if (err)
		return err;
	if (a->state != KVTIER_SESSION_DECODING)
		kvt_session_hint(f->pool, a, tip, gen);
	if (a->state == KVTIER_SESSION_DECODING || a->reuse_ns)
		kvt_look_session(f, tip, gen, a->reuse_ns);
	return 0;
}
