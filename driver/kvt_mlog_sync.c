// SPDX-License-Identifier: GPL-2.0
/*
 * Waiting for what is to be durable: fsync, and DROP, which promises that what was
 * dropped is not found again. See kvt_mlog.h for the model.
 *
 * A waiter remembers a moment of each member and sleeps, killable, until all of them
 * have passed; the background makes them pass. He holds nothing meanwhile: a member
 * that has gone, or is given up, has passed.
 */
#include <linux/sched/signal.h>

#include "kvt_internal.h"
#include "kvt_mlog.h"

#define KVT_SYNC_POLL	(HZ / 4 + 1)	/* the background is reminded */

/**
 * struct kvt_moment - of one member
 * @cookie: which
 * @fence:  see kvt_wlog_fence(), kvt_wlog_sync()
 */
struct kvt_moment {
	u64 cookie;
	struct kvt_wlog_fence fence;
};

/**
 * struct kvt_moments - of all members
 * @tier:   by tier id
 * @lost:   some member was given up, or has gone since
 * @moves:  kills were still to come, from batches on their way on whatever member
 */
struct kvt_moments {
	struct kvt_moment tier[KVT_TIERS];
	bool lost;
	bool moves;
};

/* The member as it was, if it is still there. Meta lock held. */
static struct kvt_mlog *kvt_moment_mlog(struct kvt_pool *p, u32 tier, u64 cookie)
{
	struct kvt_tier *t = p->tiers[tier];

	lockdep_assert_held(&p->meta_lock);
	return cookie && t && t->mlog && t->mlog->cookie == cookie ? t->mlog : NULL;
}

/* Is what it has not certain to be durable. One that is empty, and leaves, has nothing. */
static bool kvt_moment_lost(const struct kvt_mlog *m)
{
	return m->w.given_up && !m->wiping && !m->wiped;
}

/* Add @n waiters to each member that is waited for, and wake its background. */
static void kvt_moments_wait(struct kvt_pool *p, struct kvt_moments *mo, int n)
{
	u32 i;

	spin_lock(&p->meta_lock);
	for (i = 0; i < KVT_TIERS; i++) {
		struct kvt_mlog *m = kvt_moment_mlog(p, i, mo->tier[i].cookie);

		if (!m)
			continue;
		atomic_add(n, &m->nr_wait);
		kvt_mlog_kick(m);
	}
	spin_unlock(&p->meta_lock);
}

static void kvt_moments_take(struct kvt_pool *p, struct kvt_moments *mo, bool sync)
{
	u32 i;

	memset(mo, 0, sizeof(*mo));
	spin_lock(&p->meta_lock);
	for (i = 0; i < KVT_TIERS; i++) {
		struct kvt_tier *t = p->tiers[i];

		if (!t || !t->mlog)
			continue;
		mo->tier[i].cookie = t->mlog->cookie;
		mo->lost |= sync && kvt_moment_lost(t->mlog);
		if (sync)
			kvt_wlog_sync(&t->mlog->w, &mo->tier[i].fence);
		else
			kvt_wlog_fence(&t->mlog->w, &mo->tier[i].fence);
		mo->moves |= mo->tier[i].fence.batch;
	}
	mo->moves |= p->nr_strays;
	spin_unlock(&p->meta_lock);
}

/* Have all moments passed. */
static bool kvt_moments_passed(struct kvt_pool *p, struct kvt_moments *mo)
{
	bool passed = true;
	u32 i;

	spin_lock(&p->meta_lock);
	for (i = 0; i < KVT_TIERS && passed; i++) {
		struct kvt_moment *e = &mo->tier[i];
		struct kvt_mlog *m = kvt_moment_mlog(p, i, e->cookie);

		if (!m) {
			mo->lost |= e->cookie;
			continue;
		}
		mo->lost |= kvt_moment_lost(m);
		/* A member that was lost knows nothing of it: it must not come back. */
		passed = kvt_wlog_fence_passed(&m->w, &e->fence) &&
			 (m->w.given_up ? !m->wiping : m->told == p->leavers.tell);
	}
	spin_unlock(&p->meta_lock);
	return passed;
}

static int kvt_moments_run(struct kvt_pool *p, struct kvt_moments *mo)
{
	long ret;

	if (kvt_moments_passed(p, mo))
		return 0;
	kvt_moments_wait(p, mo, 1);
	do {
		ret = wait_event_killable_timeout(p->log_wait, kvt_moments_passed(p, mo),
						  KVT_SYNC_POLL);
		if (!ret)
			kvt_moments_wait(p, mo, 0);
	} while (!ret);
	kvt_moments_wait(p, mo, -1);
	return ret < 0 ? -EINTR : 0;
}

/**
 * kvt_mlog_fsync() - all blocks that are on block tiers now are found after a crash
 * @p:    pool; no lock and no srcu held, sleeps
 * @seen: the caller's: losses of the pool, pool->log_lost, that he was told of
 *
 * Blocks of a batch that was lost can still be read where they are, and are durable
 * nowhere. So each file is told of that once, also if it happened before the call.
 * Return: 0; -EIO: some are not; -EINTR on a fatal signal.
 */
int kvt_mlog_fsync(struct kvt_pool *p, u64 *seen)
{
	struct kvt_moments mo;
	int err;

	kvt_moments_take(p, &mo, true);
	err = kvt_moments_run(p, &mo);
	if (err)
		return err;
	spin_lock(&p->meta_lock);
	mo.lost |= *seen != p->log_lost;
	*seen = p->log_lost;
	spin_unlock(&p->meta_lock);
	return mo.lost ? -EIO : 0;
}

/*
 * Have the ghosts of an age gone. Ages of a namespace are counted separately, the
 * newest two of them, so that who waits does not wait for those that come later.
 */
static bool kvt_ghosts_passed(struct kvt_pool *p, struct kvt_ns *ns, u64 age)
{
	bool passed;

	spin_lock(&p->meta_lock);
	/* The one before has gone: the newest one may be closed. */
	if (ns->ghost_age <= age && !ns->nr_ghosts[~ns->ghost_age & 1])
		ns->ghost_age++;
	passed = ns->ghost_age > age + 1 ||
		 (ns->ghost_age == age + 1 && !ns->nr_ghosts[age & 1]);
	spin_unlock(&p->meta_lock);
	return passed;
}

/* Addresses in lost batches whose kills wait for room. */
static bool kvt_strays_passed(struct kvt_pool *p)
{
	return !READ_ONCE(p->nr_strays);
}

/* Wait for the ghosts that there are now, and all strays. */
static int kvt_dead_wait(struct kvt_pool *p, struct kvt_ns *ns, struct kvt_moments *mo)
{
	u64 age;
	long ret;

	spin_lock(&p->meta_lock);
	age = ns->ghost_age;
	spin_unlock(&p->meta_lock);
	if (kvt_ghosts_passed(p, ns, age) && kvt_strays_passed(p))
		return 0;
	kvt_moments_wait(p, mo, 1);
	do {
		ret = wait_event_killable_timeout(p->log_wait,
						  kvt_ghosts_passed(p, ns, age) &&
						  kvt_strays_passed(p), KVT_SYNC_POLL);
		if (!ret)
			kvt_moments_wait(p, mo, 0);
	} while (!ret);
	kvt_moments_wait(p, mo, -1);
	return ret < 0 ? -EINTR : 0;
}

/* Whether what is dead can come back, from a member that does not know of it. */
enum kvt_return {
	KVT_RETURN_NEVER,
	KVT_RETURN_OPEN,	/* some member is being wiped, or told: not decided yet */
	KVT_RETURN_MAY,
};

/*
 * A member that was given up, or has left without being wiped, brings back what is dropped
 * since: unless another one's durable superblock says that it is of the past.
 */
static enum kvt_return kvt_mlog_return(struct kvt_pool *p, const struct kvt_ns *ns)
{
	bool may, open = false, told = false;
	u32 i;

	spin_lock(&p->meta_lock);
	may = p->leavers.nr && (ns->on_tiers & KVT_ON_LEAVER);
	for (i = 0; i < KVT_TIERS; i++) {
		const struct kvt_mlog *m = p->tiers[i] ? p->tiers[i]->mlog : NULL;

		if (!m)
			continue;
		told |= !m->w.given_up && m->told == p->leavers.tell;
		open |= m->w.given_up ? m->wiping : m->told != p->leavers.tell;
		may |= m->w.given_up && !m->wiped && kvt_leavers_concern(ns, p->tiers[i]);
	}
	told &= kvt_leavers_fit(p);
	spin_unlock(&p->meta_lock);
	if (told || !may)
		return KVT_RETURN_NEVER;
	return open ? KVT_RETURN_OPEN : KVT_RETURN_MAY;
}

/**
 * kvt_mlog_fence() - what is dead now is so for good
 * @p:  pool; no lock and no srcu held, sleeps
 * @ns: whose blocks matter; a file of the caller's is bound to it
 *
 * That includes older blocks of the same names, which may be on their way still. When
 * the batch of one that moved to another member is over, the kill of where it was is
 * in that one's ring, or it has become a stray: so the moments are taken once more.
 * Return: 0; -EIO: a member that was given up, or has left, may bring them back; -EINTR on
 * a fatal signal.
 */
int kvt_mlog_fence(struct kvt_pool *p, struct kvt_ns *ns)
{
	enum kvt_return ret = KVT_RETURN_OPEN;
	struct kvt_moments mo;
	int err;

	kvt_moments_take(p, &mo, false);
	err = kvt_dead_wait(p, ns, &mo);
	if (err)
		return err;
	kvt_moments_take(p, &mo, false);
	err = kvt_moments_run(p, &mo);
	if (!err && mo.moves) {
		err = kvt_dead_wait(p, ns, &mo);
		kvt_moments_take(p, &mo, false);
		err = err ?: kvt_moments_run(p, &mo);
	}
	while (!err && (ret = kvt_mlog_return(p, ns)) == KVT_RETURN_OPEN) {
		kvt_moments_take(p, &mo, false);
		err = kvt_moments_run(p, &mo);
	}
	return err ?: ret == KVT_RETURN_MAY ? -EIO : 0;
}

/**
 * kvt_mlog_ns_gone() - a namespace has ended: its members are to know
 * @p:  pool; no spinlock held
 * @ns: without blocks; not in pool->ns any more
 *
 * If that gets lost it is found again after a restart, without blocks, and ends then.
 */
void kvt_mlog_ns_gone(struct kvt_pool *p, struct kvt_ns *ns)
{
	u32 i;

	if (!ns->on_tiers)
		return;
	spin_lock(&p->meta_lock);
	for (i = 0; i < KVT_TIERS; i++) {
		struct kvt_tier *t = p->tiers[i];

		if (!(ns->on_tiers & 1u << i) || !t || !t->mlog)
			continue;
		kvt_wlog_unhome(&t->mlog->w, &ns->home[i]);
		if (t->mlog->nr_gone == KVT_MLOG_GONE)
			continue;
		t->mlog->gone[t->mlog->nr_gone].id = ns->id;
		t->mlog->gone[t->mlog->nr_gone++].first =
			ns->home[i].member == t->mlog->cookie ? ns->home[i].first : 0;
		kvt_mlog_kick(t->mlog);
	}
	spin_unlock(&p->meta_lock);
}
