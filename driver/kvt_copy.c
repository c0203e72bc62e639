// SPDX-License-Identifier: GPL-2.0
/*
 * Clean copies: blocks in memory whose bytes are on a block tier as well.
 *
 * A block never changes, so one that is promoted leaves its record where it is: READY
 * with MEM and LOG. The policy and all counts have it under its memory tier. When it is
 * to go down again to a block tier its slot is released and nothing is written; after a
 * crash it is found on the log like any other block there. So DURABLE stays set.
 *
 * A copy is worth nothing but a write that it saves. It does not count as used space, it
 * is what a segment that is cleaned loses first, and nothing is evicted for its sake. It
 * can be given up under the meta lock at any time, whoever leases or moves the block:
 * nobody but a promotion relies on the place on the log, and that has no MEM before it is
 * over. So who wants to use it looks whether it is still there when he does.
 *
 * There are as many as there is room for, until others need it, up to copies_percent of the
 * tier; with less than before, those there are stay until they go for another reason.
 *
 * Invariants: struct kvt_log knows of exactly those blocks with MEM and LOG as copies,
 * dead ones included until their places are given back. A copy is not used, nor kept,
 * when its tier does not take blocks, when its segment is worn or being emptied (a
 * doomed one takes along what is in it and not in memory), or when its record does not
 * say what is true, or was lost (KVT_HOT_STALE).
 */
#include "kvt_internal.h"
#include "kvt_mlog.h"
#include "kvt_test.h"

#define KVT_SHED_STEP	256u	/* blocks under one hold of the meta lock */
#define KVT_ADOPT_MAX	1024u	/* the same of children */

static void kvt_copy_account(struct kvt_pool *p, const struct kvt_hot *h, bool copy)
{
	struct kvt_tier *t = p->tiers[h->log_tier];
	u32 bytes = kvt_slot_bytes(kvt_group_of(p, h->ns_group));

	lockdep_assert_held(&p->meta_lock);
	kvt_log_copy(&t->log, h->log_unit, kvt_geo_units(&t->geo, bytes), copy);
}

/* Is a record on this tier, in good order, something to rely on. */
static bool kvt_copy_good(const struct kvt_tier *t, const struct kvt_hot *h)
{
	u32 seg = kvt_log_seg_of(&t->log, h->log_unit);

	return t->state == KVTIER_TIER_ONLINE && !t->mlog->w.given_up &&
	       t->log.segs[seg].state != KVT_SEG_CLEANING &&
	       !t->mlog->w.segs[seg].worn && !(h->flags & KVT_HOT_STALE);
}

/**
 * kvt_copy_keep() - may a block that goes to memory leave its record where it is
 * @p:  pool, meta lock held
 * @id: block with LOG
 */
bool kvt_copy_keep(struct kvt_pool *p, u32 id)
{
	const struct kvt_hot *h = kvt_hot(&p->table, id);

	lockdep_assert_held(&p->meta_lock);
	return kvt_copy_good(p->tiers[h->log_tier], h);
}

/**
 * kvt_copy_wanted() - is one more copy wanted on a block's tier
 * @p:  pool, meta lock held
 * @id: block with LOG
 *
 * It takes nothing but space that is free, so there is nothing to be had by giving it up
 * before somebody needs that, but what copies_percent leaves to a log for its cleaner. Where
 * copies count, as in the simulator, the policy says how many are enough.
 */
bool kvt_copy_wanted(struct kvt_pool *p, u32 id)
{
	const struct kvt_hot *h = kvt_hot(&p->table, id);
	const struct kvt_tier *t = p->tiers[h->log_tier];
	u32 units = kvt_geo_units(&t->geo, kvt_slot_bytes(kvt_group_of(p, h->ns_group)));
	u32 test_all = kvt_test_capacity(t), percent = READ_ONCE(p->copies_percent);

	lockdep_assert_held(&p->meta_lock);
	if (test_all)
		return percent &&
		       kvt_policy_keep_copy(&p->policy, div64_u64(t->log.copy_units, units),
					    test_all, false);
	return percent == 100 || (t->log.copy_units + units) * t->unit_bytes <=
				 div_u64(kvt_log_capacity(t), 100) * percent;
}

/**
 * kvt_copy_made() - a block on a block tier has got MEM
 * @p:  pool, meta lock held
 * @id: block
 */
void kvt_copy_made(struct kvt_pool *p, u32 id)
{
	kvt_copy_account(p, kvt_hot(&p->table, id), true);
}

/**
 * kvt_copy_unmade() - a dead block is about to lose MEM, and keeps its record for now
 * @p:  pool, meta lock held
 * @id: block
 */
void kvt_copy_unmade(struct kvt_pool *p, u32 id)
{
	kvt_copy_account(p, kvt_hot(&p->table, id), false);
}

/**
 * kvt_copy_tier() - where a block in memory can go without being written
 * @p:  pool, meta lock held
 * @id: block
 * Return: the tier of its copy, or NULL: it has none that can be used.
 */
struct kvt_tier *kvt_copy_tier(struct kvt_pool *p, u32 id)
{
	const struct kvt_hot *h = kvt_hot(&p->table, id);
	u32 want = KVT_READY | KVT_CTL_MEM | KVT_CTL_LOG;
	struct kvt_tier *t;

	lockdep_assert_held(&p->meta_lock);
	if ((kvt_ctl(h) & (KVT_CTL_STATE | KVT_CTL_MEM | KVT_CTL_LOG)) != want)
		return NULL;
	t = p->tiers[h->log_tier];
	return kvt_copy_good(t, h) ? t : NULL;
}

/**
 * kvt_copy_free() - the place of a record is given back
 * @p:  pool, meta lock held
 * @id: block with LOG, with or without MEM
 * Return: false: its kill cannot be noted now, and nothing has changed.
 */
bool kvt_copy_free(struct kvt_pool *p, u32 id)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);
	struct kvt_tier *t = p->tiers[h->log_tier];
	u32 bytes = kvt_slot_bytes(kvt_group_of(p, h->ns_group));
	bool copy = kvt_ctl(h) & KVT_CTL_MEM;

	lockdep_assert_held(&p->meta_lock);
	if (copy)
		kvt_copy_account(p, h, false);
	if (!kvt_wlog_free(&t->mlog->w, h->log_unit, kvt_geo_units(&t->geo, bytes)))
		return true;
	if (copy)
		kvt_copy_account(p, h, true);
	return false;
}

/**
 * kvt_copy_drop() - give up the copy of a block, if it has one
 * @p:  pool, meta lock held
 * @id: block in memory, READY or DEAD
 * Return: whether it has none now. If not, there is no room for its kill.
 */
bool kvt_copy_drop(struct kvt_pool *p, u32 id)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);
	u32 ctl = kvt_ctl(h);

	lockdep_assert_held(&p->meta_lock);
	if (!(ctl & KVT_CTL_LOG))
		return true;
	if (WARN_ON_ONCE(!(ctl & KVT_CTL_MEM)))
		return false;
	/* What is dead waits for room by itself. */
	if (kvt_ctl_state(ctl) != KVT_READY || !kvt_block_log_free(p, id))
		return false;
	kvt_ctl_update(h, 0, 0, KVT_CTL_LOG, 0);
	return true;
}

/**
 * kvt_copy_stale() - what a block's record says is not true any more
 * @p:  pool, meta lock held
 * @id: block; its time to live has changed
 *
 * Records are not changed. As long as the block is on a block tier that stays so; it is
 * written anew when it goes down the next time.
 */
void kvt_copy_stale(struct kvt_pool *p, u32 id)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);
	u32 ctl = kvt_ctl(h);

	lockdep_assert_held(&p->meta_lock);
	/* One that is on the move may be on its way to a block tier. */
	if (!(ctl & (KVT_CTL_LOG | KVT_CTL_MOVING)))
		return;
	WRITE_ONCE(h->flags, h->flags | KVT_HOT_STALE);
	if (ctl & KVT_CTL_MEM)
		kvt_copy_drop(p, id);
}

/**
 * kvt_copy_lost() - a copy will not be found after a crash
 * @p:  pool, meta lock held
 * @id: block in memory, with LOG
 *
 * It goes, at the latest when it is to be used.
 */
void kvt_copy_lost(struct kvt_pool *p, u32 id)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);

	lockdep_assert_held(&p->meta_lock);
	WRITE_ONCE(h->flags, h->flags | KVT_HOT_STALE);
	kvt_copy_drop(p, id);
}

/**
 * kvt_copy_used() - a block has lost MEM, and is where its copy was
 * @p:    pool, meta lock held
 * @id:   block
 * @from: memory tier that it was on
 */
void kvt_copy_used(struct kvt_pool *p, u32 id, struct kvt_tier *from)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);
	struct kvt_tier *to = p->tiers[h->log_tier];

	lockdep_assert_held(&p->meta_lock);
	kvt_copy_account(p, h, false);
	p->policy.now_ms = kvt_now_ms();
	p->policy.ops->remove(&p->policy, from->id, id);
	kvt_tier_count_block(p, from, h->ns_group, -1);
	p->policy.ops->insert(&p->policy, to->id, id);
	kvt_tier_count_block(p, to, h->ns_group, 1);
	kvt_demoted(p, id, from, to, true);
}

/**
 * kvt_copy_instead() - a block's bytes in memory are given up: make do with its copy
 * @p:      pool, meta lock held
 * @id:     block, READY, in memory
 * @moving: MOVING is the caller's, and stays set; else a block that is on the move is
 *          not touched
 *
 * Not while somebody has a lease: he relies on where they are.
 * Return: whether it is where its copy was now; if not, nothing has changed.
 */
bool kvt_copy_instead(struct kvt_pool *p, u32 id, bool moving)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);
	u32 leases = ~0u << KVT_CTL_LEASE_SHIFT, mask;
	struct kvt_tier *from = p->tiers[h->mem_tier];

	lockdep_assert_held(&p->meta_lock);
	if (!kvt_copy_tier(p, id) || (h->flags & KVT_HOT_HELD) || kvt_dma_given_up())
		return false;
	mask = KVT_CTL_STATE | KVT_CTL_MEM | leases | (moving ? 0 : KVT_CTL_MOVING);
	if (!kvt_ctl_update(h, mask, KVT_READY | KVT_CTL_MEM, KVT_CTL_MEM, 0))
		return false;
	kvt_block_mem_free(p, h->mem_tier, h->mem_page, h->ns_group);
	kvt_copy_used(p, id, from);
	return true;
}

/*
 * A new entry for a block, with all but its bytes in memory. Those stay the old one's, which
 * nobody is charged for from now on: what the block is charged is the new one's. Meta lock held.
 */
static void kvt_copy_fill_in(struct kvt_pool *p, u32 to, u32 from)
{
	const struct kvt_cold *was = kvt_cold(&p->table, from);
	struct kvt_hot *h = kvt_hot(&p->table, from), *n = kvt_hot(&p->table, to);
	struct kvt_cold *c = kvt_cold(&p->table, to);

	memcpy(n->key, h->key, KVT_KEY_BYTES);
	n->ns_group = h->ns_group;
	n->hash = h->hash;
	n->log_tier = h->log_tier;
	n->log_unit = h->log_unit;
	n->flags = h->flags & (KVT_HOT_EXPIRES | KVT_HOT_DURABLE);
	c->csum = was->csum;
	c->touch_ms = was->touch_ms;
	c->expire_s = was->expire_s;
	c->cls = was->cls;
	c->shared = was->shared;
	c->past = was->past;
	if (was->parent)
		kvt_ch_link(&p->table, to, was->parent);
	kvt_ch_adopt(&p->table, to, from, KVT_ADOPT_MAX);
	atomic_set_release(&n->ctl, KVT_READY | KVT_CTL_LOG |
			   (kvt_ctl(h) & KVT_CTL_PINNED));
	kvt_hold_pass(&p->table, to, from);
	kvt_ns_of(p, h->ns_group)->nr_blocks++;
}

/* Whoever asks for the block finds the other entry from now on. Meta lock held. */
static void kvt_copy_rename(struct kvt_pool *p, u32 to, u32 from)
{
	struct kvt_shard *s = kvt_ix_shard(&p->index, kvt_hot(&p->table, from)->hash);

	spin_lock(&s->lock);
	kvt_ix_remove(&p->index, s, from);
	kvt_ix_insert(&p->index, s, to);
	spin_unlock(&s->lock);
}

/*
 * Who leases or moves the bytes in memory has the entry, and it is dead like that of a block
 * that was dropped meanwhile; name, record and children go to a new one. Where a block has more
 * children than can be seen to at once the rest stay, as if their parent had been lost. So does
 * a session whose tip it was: it holds nothing any more. Meta lock held.
 */
static bool kvt_copy_take_over(struct kvt_pool *p, u32 id)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);
	struct kvt_tier *from = p->tiers[h->mem_tier], *to = kvt_copy_tier(p, id);
	u32 heir = to ? kvt_table_alloc(&p->table) : KVT_NIL;

	lockdep_assert_held(&p->meta_lock);
	if (heir == KVT_NIL)
		return false;
	kvt_copy_account(p, h, false);
	p->policy.now_ms = kvt_now_ms();
	p->policy.ops->remove(&p->policy, from->id, id);
	kvt_tier_count_block(p, from, h->ns_group, -1);
	kvt_block_unread(p, id, from);
	kvt_copy_fill_in(p, heir, id);
	kvt_log_rename(&to->log, h->log_unit, id, heir);
	p->policy.ops->insert(&p->policy, to->id, heir);
	kvt_tier_count_block(p, to, h->ns_group, 1);
	kvt_demoted(p, heir, from, to, true);
	kvt_copy_rename(p, heir, id);
	h->log_tier = KVT_NO_TIER;
	WRITE_ONCE(h->flags, (h->flags & ~KVT_HOT_DURABLE) | KVT_HOT_BARE);
	kvt_ctl_update(h, 0, 0, KVT_CTL_LOG, 0);
	kvt_block_die(p, id);
	return true;
}

/**
 * kvt_copy_saves() - a block's bytes in memory are lost: is it saved by its copy
 * @p:      pool, meta lock held
 * @id:     block, READY, in memory
 * @moving: MOVING is the caller's, and stays set
 *
 * Where kvt_copy_instead() will not do the entry dies, with leases and MOVING as they are, and
 * the block has another. Not if the pool has no entry left: some are kept for this, and who
 * may sleep sees to it that there are more (kvt_pool_top_up()).
 * Return: whether the block is where its copy was now; if not, nothing has changed.
 */
bool kvt_copy_saves(struct kvt_pool *p, u32 id, bool moving)
{
	return kvt_copy_instead(p, id, moving) || kvt_copy_take_over(p, id);
}

/* Is it a copy, and in this segment. Meta lock held. */
static bool kvt_copy_in(struct kvt_tier *t, const struct kvt_hot *h, u32 seg)
{
	u32 want = KVT_READY | KVT_CTL_MEM | KVT_CTL_LOG;

	lockdep_assert_held(&t->pool->meta_lock);
	return (kvt_ctl(h) & (KVT_CTL_STATE | KVT_CTL_MEM | KVT_CTL_LOG)) == want &&
	       h->log_tier == t->id && kvt_log_seg_of(&t->log, h->log_unit) == seg;
}

/**
 * kvt_copy_shed() - give up the copies in a segment
 * @t:   block tier; no spinlock held, may sleep
 * @seg: which
 * Return: false: some are left, because there is no room for their kills.
 */
bool kvt_copy_shed(struct kvt_tier *t, u32 seg)
{
	const struct kvt_seg *s = &t->log.segs[seg];
	struct kvt_pool *p = t->pool;
	u32 pos = 0, end, nr;
	bool all = true;

	do {
		spin_lock(&p->meta_lock);
		end = pos + KVT_SHED_STEP;
		/* The last one that goes may take the segment's ids along. */
		for (; pos < min(end, s->nr_ids) && s->copies && all; pos++) {
			if (kvt_copy_in(t, kvt_hot(&p->table, s->ids[pos]), seg))
				all = kvt_copy_drop(p, s->ids[pos]);
		}
		nr = s->copies ? s->nr_ids : 0;
		spin_unlock(&p->meta_lock);
		cond_resched();
	} while (all && pos < nr);
	kvt_garbage_free(p);
	return all;
}

/**
 * kvt_copy_shed_all() - give up all copies on a tier that takes no blocks
 * @t: block tier; no spinlock held, may sleep
 */
void kvt_copy_shed_all(struct kvt_tier *t)
{
	u32 seg;

	for (seg = 0; READ_ONCE(t->log.copy_units) && seg < t->nr_segs; seg++) {
		if (READ_ONCE(t->log.segs[seg].copies) && !kvt_copy_shed(t, seg))
			return;
	}
}
