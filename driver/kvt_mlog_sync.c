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
 * @lost:   batches it had lost
 * @fence:  see kvt_wlog_fence(), kvt_wlog_sync()
 */
struct kvt_moment {
	u64 cookie;
	u64 lost;
	struct kvt_wlog_fence fence;
};

/**
 * struct kvt_moments - of all members
 * @tier:   by tier id
 * @lost:   some member has lost batches since, or was given up
 */
struct kvt_moments {
	struct kvt_moment tier[KVT_TIERS];
	bool lost;
};

/* The member as it was, if it is still there. Meta lock held. */
static struct kvt_mlog *kvt_moment_mlog(struct kvt_pool *p, u32 tier, u64 cookie)
{
	struct kvt_tier *t = p->tiers[tier];

	lockdep_assert_held(&p->meta_lock);
	return cookie && t && t->mlog && t->mlog->cookie == cookie ? t->mlog : NULL;
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
		mo->tier[i].lost = t->mlog->w.nr_lost;
		mo->lost |= sync && t->mlog->w.given_up;
		if (sync)
			kvt_wlog_sync(&t->mlog->w, &mo->tier[i].fence);
		else
			kvt_wlog_fence(&t->mlog->w, &mo->tier[i].fence);
	}
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

		if (!m)
			continue;
		mo->lost |= m->w.given_up || m->w.nr_lost != e->lost;
		/* A member that was lost knows nothing of it: it must not come back. */
		passed = kvt_wlog_fence_passed(&m->w, &e->fence) &&
			 (m->w.given_up || m->told == m->tell);
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
 * @p: pool; no lock and no srcu held, sleeps
 * Return: 0; -EIO: some are not; -EINTR on a fatal signal.
 */
int kvt_mlog_fsync(struct kvt_pool *p)
{
	struct kvt_moments mo;
	int err;

	kvt_moments_take(p, &mo, true);
	err = kvt_moments_run(p, &mo);
	return err ?: mo.lost ? -EIO : 0;
}

static bool kvt_ns_has_ghosts(struct kvt_pool *p, struct kvt_ns *ns)
{
	bool any;

	spin_lock(&p->meta_lock);
	any = ns->nr_ghosts;
	spin_unlock(&p->meta_lock);
	return any;
}

/**
 * kvt_mlog_fence() - what is dead now is so for good
 * @p:  pool; no lock and no srcu held, sleeps
 * @ns: whose blocks matter; a file of the caller's is bound to it
 *
 * That includes older blocks of the same names, which may be on their way still.
 * Return: 0, or -EINTR on a fatal signal.
 */
int kvt_mlog_fence(struct kvt_pool *p, struct kvt_ns *ns)
{
	struct kvt_moments mo;
	long ret = 1;
	int err;

	kvt_moments_take(p, &mo, false);
	if (kvt_ns_has_ghosts(p, ns)) {
		kvt_moments_wait(p, &mo, 1);
		do {
			ret = wait_event_killable_timeout(p->log_wait,
							  !kvt_ns_has_ghosts(p, ns),
							  KVT_SYNC_POLL);
			if (!ret)
				kvt_moments_wait(p, &mo, 0);
		} while (!ret);
		kvt_moments_wait(p, &mo, -1);
	}
	if (ret < 0)
		return -EINTR;
	kvt_moments_take(p, &mo, false);
	err = kvt_moments_run(p, &mo);
	return err;
}

/**
 * kvt_mlog_ns_gone() - a namespace has ended: its members are to know
 * @p:  pool; no spinlock held
 * @ns: without blocks; not in pool->ns any more
 *
 * If that gets lost it is found again after a restart, without blocks, and ends then.
 */
void kvt_mlog_ns_gone(struct kvt_pool *p, const struct kvt_ns *ns)
{
	u32 i;

	if (!ns->on_tiers)
		return;
	spin_lock(&p->meta_lock);
	for (i = 0; i < KVT_TIERS; i++) {
		struct kvt_tier *t = p->tiers[i];

		if (!(ns->on_tiers & 1u << i) || !t || !t->mlog ||
		    t->mlog->nr_gone == KVT_MLOG_GONE)
			continue;
		t->mlog->gone[t->mlog->nr_gone++] = ns->id;
		kvt_mlog_kick(t->mlog);
	}
	spin_unlock(&p->meta_lock);
}
