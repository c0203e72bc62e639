// SPDX-License-Identifier: GPL-2.0
/*
 * For tests only, in builds with KVT_TEST=1: the module under the simulator's conditions.
 *
 *   test_now_ms   the pool clock stands there, unless it is 0
 *   test_hash     pools made from now on hash keys as the simulator does
 *   test_blocks   what tiers are to hold, fastest first, in blocks; 0: what they can.
 *                 A copy on the slowest tier counts there, by its units: blocks are of
 *                 4 KiB if there are any. With copies_percent 0 there are none
 *   test_settle   write a pool's number: its tiers are brought below that, now, one
 *                 block at a time, as make_room() in selftests/host/sim_core.c does
 *
 *   test_doom     write a pool's number: some sealed segment of its first block tier is doomed;
 *                 EBUSY: there is none that can be. What is in it stays for the time being
 *   test_doom_ends  write the same: it goes
 *
 *   test_hold     1: the next batch of a log waits, with what it is of read, until this is 0 again,
 *                 for a minute at most; 2: one does
 *
 *   test_handles  generations that new records of handles have had
 *   test_most     so many open files with buffers, and namespaces, a pool has at most
 *   test_deaf     what the kernel says of bad pages is not heard
 *   test_bad_copies  so many copies out of memory that come next end as at a machine check
 *
 * The tiers themselves have to be large enough that nothing else makes room.
 */
#include <linux/delay.h>
#include <linux/moduleparam.h>

#include "kvt_mlog.h"
#include "kvt_test.h"
#include "kvt_trace.h"

static u32 kvt_test_now_ms;
module_param_cb(test_now_ms, &param_ops_uint, &kvt_test_now_ms, 0600);

static bool kvt_test_known_hash;
module_param_cb(test_hash, &param_ops_bool, &kvt_test_known_hash, 0600);

static u32 kvt_test_blocks[KVT_TIERS];
module_param_array_named(test_blocks, kvt_test_blocks, uint, NULL, 0600);

static const struct kvt_pool *kvt_test_settling;

static int kvt_test_bad_copies;
module_param_cb(test_bad_copies, &param_ops_int, &kvt_test_bad_copies, 0600);

static u32 kvt_test_nr_handles;
module_param_cb(test_handles, &param_ops_uint, &kvt_test_nr_handles, 0600);

static bool kvt_test_is_deaf;
module_param_cb(test_deaf, &param_ops_bool, &kvt_test_is_deaf, 0600);

static u32 kvt_test_has_most;
module_param_cb(test_most, &param_ops_uint, &kvt_test_has_most, 0600);

static int kvt_test_hold;
module_param_cb(test_hold, &param_ops_int, &kvt_test_hold, 0600);

void kvt_test_held(void)
{
	int left_ms = 60000;

	if (cmpxchg(&kvt_test_hold, 1, 2) != 1)
		return;
	for (; left_ms > 0 && READ_ONCE(kvt_test_hold); left_ms -= 20)
		msleep(20);
}

static const struct kvt_pool *kvt_test_dooming;

bool kvt_test_doom_waits(const struct kvt_pool *p)
{
	return READ_ONCE(kvt_test_dooming) == p;
}

u32 kvt_test_most(u32 most)
{
	return READ_ONCE(kvt_test_has_most) ?: most;
}

u32 kvt_test_handles(void)
{
	return READ_ONCE(kvt_test_nr_handles);
}

bool kvt_test_deaf(void)
{
	return READ_ONCE(kvt_test_is_deaf);
}

bool kvt_test_copies_fail(void)
{
	return READ_ONCE(kvt_test_bad_copies) > 0;
}

bool kvt_test_copy_fails(void)
{
	static DEFINE_SPINLOCK(lock);
	unsigned long flags;
	bool fails;

	spin_lock_irqsave(&lock, flags);
	fails = kvt_test_bad_copies > 0;
	kvt_test_bad_copies -= fails;
	spin_unlock_irqrestore(&lock, flags);
	return fails;
}

u32 kvt_test_clock_ms(void)
{
	return READ_ONCE(kvt_test_now_ms);
}

void kvt_test_hash(struct kvt_hash_seed *seed)
{
	if (READ_ONCE(kvt_test_known_hash))
		memset(seed, 0x5a, sizeof(*seed));
}

u32 kvt_test_capacity(const struct kvt_tier *t)
{
	const struct kvt_pool *p = t->pool;
	u32 i;

	lockdep_assert_held(&p->meta_lock);
	for (i = 0; i < p->nr_tiers; i++) {
		if (p->order[i] == t->id)
			return READ_ONCE(kvt_test_blocks[i]);
	}
	return 0;
}

/* Does the tier hold more than it is to. Meta lock held. */
static bool kvt_test_over(struct kvt_tier *t)
{
	u32 all = kvt_test_capacity(t);

	lockdep_assert_held(&t->pool->meta_lock);
	return all && t->nr_blocks + (t->ops->is_mem ? 0 : t->log.copy_units) > all;
}

/* The simulator's next_of(). Meta lock held. */
static u32 kvt_test_next(struct kvt_pool *p, struct kvt_tier *t, bool leaf)
{
	u32 budget = 2 * t->nr_blocks + 16, id;

	lockdep_assert_held(&p->meta_lock);
	id = p->policy.ops->next(&p->policy, t->id, leaf, &budget);
	kvt_policy_searched(&p->policy);
	return id;
}

/*
 * Has the tier below a place for whatever is let in: the policy keeps some of what it made of a
 * block that had none, and would make it twice. Meta lock held.
 */
static bool kvt_test_place(const struct kvt_tier *t)
{
	lockdep_assert_held(&t->pool->meta_lock);
	return t->ops->is_mem || t->log.nr_free > t->log.keep[KVT_HEAD_DEMOTE];
}

/*
 * One block of @t[@at] goes if there are too many: down, or, from the last of @nr, out.
 * Return: 1: one went; 0: there is nothing to do; -EBUSY: it cannot go.
 */
static int kvt_test_lower(struct kvt_pool *p, struct kvt_tier **t, u32 nr, u32 at)
{
	bool leaf = at + 1 == nr, gone = true;
	u32 id = KVT_NIL, from = at;

	spin_lock(&p->meta_lock);
	kvt_touch_drain(p);
	if (!kvt_test_over(t[at])) {
		spin_unlock(&p->meta_lock);
		return 0;
	}
	if (!leaf && !kvt_test_place(t[at + 1])) {
		spin_unlock(&p->meta_lock);
		return -EBUSY;
	}
	id = kvt_test_next(p, t[at], leaf);
	while (leaf && id == KVT_NIL && from)
		id = kvt_test_next(p, t[--from], true);
	if (id == KVT_NIL || !kvt_move_try(kvt_hot(&p->table, id)))
		gone = false;
	else if (leaf)
		gone = kvt_evict_claimed(p, id, KVT_WHY_ROOM);
	spin_unlock(&p->meta_lock);
	if (gone && !leaf)
		gone = kvt_demote(p, t[at], &id, 1, false) == 1;
	kvt_garbage_free(p);
	return gone ? 1 : -EBUSY;
}

bool kvt_test_settles(const struct kvt_pool *p)
{
	return READ_ONCE(kvt_test_settling) == p;
}

/*
 * The worker rests meanwhile: while it carries a block, or has it up, another would go in its
 * place, and what comes in is weighed against another. Calls are one at a time, by the kernel's
 * lock of parameters.
 */
static int kvt_test_settle(struct kvt_pool *p)
{
	struct kvt_tier *t[KVT_TIERS];
	u32 nr, at = 0;
	int idx, ret;

	WRITE_ONCE(kvt_test_settling, p);
	flush_work(&p->work);
	mutex_lock(&p->tier_lock);
	idx = srcu_read_lock(&p->srcu);
	nr = kvt_tier_snapshot(p, t, false);
	for (ret = 0; ret >= 0 && at < nr; at += !ret)
		ret = kvt_test_lower(p, t, nr, at);
	srcu_read_unlock(&p->srcu, idx);
	mutex_unlock(&p->tier_lock);
	WRITE_ONCE(kvt_test_settling, NULL);
	kvt_reclaim_kick(p);
	return min(ret, 0);
}

/* Of a pool whose number is written. */
static int kvt_test_of_pool(const char *val, int (*what)(struct kvt_pool *p))
{
	struct kvt_pool *p;
	u32 id;
	int err = kstrtou32(val, 0, &id);

	if (err)
		return err;
	p = kvt_pool_get(id);
	if (!p)
		return -ENODEV;
	err = what(p);
	kvt_pool_put(p);
	return err;
}

static int kvt_test_settle_set(const char *val, const struct kernel_param *kp)
{
	return kvt_test_of_pool(val, kvt_test_settle);
}

static const struct kernel_param_ops kvt_test_settle_ops = { .set = kvt_test_settle_set };
module_param_cb(test_settle, &kvt_test_settle_ops, NULL, 0200);

/* As kvt_log_clean() does it when nothing can be carried. */
static bool kvt_test_doom_seg(struct kvt_tier *t, u32 seg)
{
	struct kvt_pool *p = t->pool;
	bool mine;

	spin_lock(&p->meta_lock);
	mine = t->log.segs[seg].live && kvt_log_claim(&t->log, seg);
	spin_unlock(&p->meta_lock);
	if (!mine || kvt_mlog_doom(t->mlog, seg))
		return mine;
	spin_lock(&p->meta_lock);
	kvt_log_clean_end(&t->log, seg);
	spin_unlock(&p->meta_lock);
	return false;
}

/* The pool's first block tier, or NULL. srcu held. */
static struct kvt_tier *kvt_test_disk(struct kvt_pool *p)
{
	struct kvt_tier *t[KVT_TIERS];
	u32 nr = kvt_tier_snapshot(p, t, false), at;

	for (at = 0; at < nr; at++) {
		if (!t[at]->ops->is_mem)
			return t[at];
	}
	return NULL;
}

static int kvt_test_doom(struct kvt_pool *p)
{
	bool done = false;
	struct kvt_tier *t;
	int idx;
	u32 seg;

	WRITE_ONCE(kvt_test_dooming, p);
	idx = srcu_read_lock(&p->srcu);
	t = kvt_test_disk(p);
	for (seg = 0; t && !done && seg < t->log.nr_segs; seg++)
		done = kvt_test_doom_seg(t, seg);
	srcu_read_unlock(&p->srcu, idx);
	if (!done)
		WRITE_ONCE(kvt_test_dooming, NULL);
	return done ? 0 : -EBUSY;
}

static int kvt_test_doom_end(struct kvt_pool *p)
{
	struct kvt_tier *t;
	int idx;

	WRITE_ONCE(kvt_test_dooming, NULL);
	idx = srcu_read_lock(&p->srcu);
	t = kvt_test_disk(p);
	if (t)
		kvt_mlog_kick(t->mlog);
	srcu_read_unlock(&p->srcu, idx);
	return 0;
}

static int kvt_test_doom_set(const char *val, const struct kernel_param *kp)
{
	return kvt_test_of_pool(val, kvt_test_doom);
}

static const struct kernel_param_ops kvt_test_doom_ops = { .set = kvt_test_doom_set };
module_param_cb(test_doom, &kvt_test_doom_ops, NULL, 0200);

static int kvt_test_doom_end_set(const char *val, const struct kernel_param *kp)
{
	return kvt_test_of_pool(val, kvt_test_doom_end);
}

static const struct kernel_param_ops kvt_test_doom_end_ops = { .set = kvt_test_doom_end_set };
module_param_cb(test_doom_ends, &kvt_test_doom_end_ops, NULL, 0200);
