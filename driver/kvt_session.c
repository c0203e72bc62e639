// SPDX-License-Identifier: GPL-2.0
/*
 * Sessions of open files, and what their chains hold; see core/kvt_hold.h.
 *
 * A session is a number of the client's choosing and the last block of a chain. While it is
 * decoding it holds that block, and so its chain. It belongs to the open file and ends with
 * it. What is held is charged to the namespace as what is pinned is: each block once.
 *
 * Long chains are walked in steps, and nobody else of the namespace walks meanwhile
 * (session_lock). Blocks may die between the steps: what a dead one held is dropped where
 * it dies, or, if that is a long chain again, by the pool's worker.
 *
 * Invariant: a decoding session is found by its tip, which it holds if it is still there.
 */
#include <linux/hash.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "kvt_mlog.h"
#include "ops.h"

#define KVT_HOLD_STEP		512u	/* under one hold of the meta lock */
#define KVT_UNHOLD_STEPS	64u	/* that the worker does in a row */
#define KVT_UNHOLD_ROUNDS	64u	/* of these, that a caller does */
#define KVT_SESSION_BITS	8

/**
 * struct kvt_session - a session
 * @by_id:    session_lock
 * @by_tip:   while it is decoding. Meta lock, as what follows
 * @id:       the client's; constant
 * @tip:      block, maybe gone by now, or KVT_NIL
 * @gen:      its generation
 * @decoding: it holds @tip
 */
struct kvt_session {
	struct hlist_node by_id;
	struct hlist_node by_tip;
	u64 id;
	u32 tip;
	u32 gen;
	bool decoding;
};

/* Those of a file. */
struct kvt_sessions {
	u32 nr;
	struct hlist_head by_id[1 << KVT_SESSION_BITS];
	struct hlist_head by_tip[1 << KVT_SESSION_BITS];
};

/* A hold that the pool's worker is to drop. */
struct kvt_unhold {
	struct llist_node node;		/* first: what is left is freed with the pool */
	struct kvt_hold_walk w;
};

/* --- holds -------------------------------------------------------------------------- */

static void kvt_hold_charge(struct kvt_pool *p, u32 ns_group, s64 blocks)
{
	struct kvt_ns *ns;

	lockdep_assert_held(&p->meta_lock);
	if (!blocks)
		return;
	ns = kvt_ns_of(p, ns_group);
	kvt_kept_pin(p, ns, blocks * kvt_slot_bytes(&ns->group[ns_group & 15]));
}

/* Blocks that the namespace may still pay for. */
static u32 kvt_hold_room(struct kvt_pool *p, u32 ns_group)
{
	struct kvt_ns *ns = kvt_ns_of(p, ns_group);

	lockdep_assert_held(&p->meta_lock);
	return min_t(u64, div_u64(kvt_kept_pin_room(p, ns),
				  kvt_slot_bytes(&ns->group[ns_group & 15])), U32_MAX);
}

/* One step of dropping a hold. Whether there is more to do. Meta lock held. */
static bool kvt_hold_put_step(struct kvt_pool *p, struct kvt_hold_walk *w)
{
	enum kvt_hold_end end;
	u32 ns_group;

	lockdep_assert_held(&p->meta_lock);
	if (!kvt_hold_there(&p->table, w->id, w->gen))
		return false;
	ns_group = kvt_hot(&p->table, w->id)->ns_group;
	end = kvt_hold_drop(&p->table, w, KVT_HOLD_STEP);
	kvt_hold_charge(p, ns_group, -(s64)w->nr);
	return end == KVT_HOLD_MORE;
}

/* Drop one hold of a block; no spinlock held. */
static void kvt_hold_put(struct kvt_pool *p, u32 id, u32 gen)
{
	struct kvt_hold_walk w = { .id = id, .gen = gen };
	bool more;

	do {
		spin_lock(&p->meta_lock);
		more = kvt_hold_put_step(p, &w);
		spin_unlock(&p->meta_lock);
		cond_resched();
	} while (more);
}

static bool kvt_hold_stays(struct kvt_table *t, u32 id)
{
	return kvt_doom_spares(container_of(t, struct kvt_pool, table), id);
}

/* One step of holding a block and its ancestors. Meta lock held. */
static int kvt_hold_step(struct kvt_pool *p, struct kvt_hold_walk *w, u32 id, u32 gen)
{
	static const int err_of[] = {
		[KVT_HOLD_MORE] = -EAGAIN,
		[KVT_HOLD_FULL] = -ENOSPC,
		[KVT_HOLD_LEAVES] = -ENOENT,
	};
	enum kvt_hold_end end;
	u32 ns_group;

	lockdep_assert_held(&p->meta_lock);
	if (!kvt_hold_there(&p->table, id, gen))
		return -ENOENT;
	ns_group = kvt_hot(&p->table, id)->ns_group;
	w->room = kvt_hold_room(p, ns_group);
	end = w->id ? kvt_hold_climb(&p->table, w, KVT_HOLD_STEP) :
		      kvt_hold_tip(&p->table, w, id);
	kvt_hold_charge(p, ns_group, w->nr);
	return err_of[end];
}

/* Hold a block and its ancestors; no spinlock held. On an error nothing is held. */
static int kvt_hold_try(struct kvt_pool *p, u32 id, u32 gen)
{
	struct kvt_hold_walk w = { .stays = kvt_hold_stays };
	bool held = false;
	int err;

	do {
		spin_lock(&p->meta_lock);
		err = kvt_hold_step(p, &w, id, gen);
		spin_unlock(&p->meta_lock);
		held |= !err || err == -EAGAIN;
		cond_resched();
		if (err == -EAGAIN && fatal_signal_pending(current))
			err = -EINTR;
	} while (err == -EAGAIN);
	if (err && held)
		kvt_hold_put(p, id, gen);
	return err;
}

/* The same; what is charged for lost holds does not count. */
static int kvt_hold_get(struct kvt_pool *p, u32 id, u32 gen)
{
	int err = kvt_hold_try(p, id, gen);

	if (err != -ENOSPC)
		return err;
	kvt_holds_wait(p);
	return kvt_hold_try(p, id, gen);
}

/* The rest of a long chain is for the worker. False: there is nowhere to note that down. */
static bool kvt_unhold_later(struct kvt_pool *p, const struct kvt_hold_walk *w)
{
	struct kvt_unhold *u = kmalloc(sizeof(*u), GFP_NOWAIT | __GFP_NOWARN);

	lockdep_assert_held(&p->meta_lock);
	if (u) {
		u->w = *w;
		llist_add(&u->node, &p->unholds);
	} else if (p->nr_unhold < KVT_UNHOLDS) {
		p->unhold[p->nr_unhold++] = *w;
	} else {
		return false;
	}
	kvt_reclaim_kick(p);
	return true;
}

/**
 * kvt_hold_lost() - a held block is about to die
 * @p:  pool, meta lock held
 * @id: block, READY and HELD, still with its parent
 *
 * Its ancestors are held no longer for its sake. Of a long chain that is left to the worker,
 * however many of these there are: each has cost a whole step here. Only if there is no
 * memory, and the pool's reserve is used up too, is it done here to the end.
 */
void kvt_hold_lost(struct kvt_pool *p, u32 id)
{
	u32 ns_group = kvt_hot(&p->table, id)->ns_group;
	struct kvt_hold_walk w;
	enum kvt_hold_end end;

	lockdep_assert_held(&p->meta_lock);
	kvt_hold_die(&p->table, &w, id);
	kvt_hold_charge(p, ns_group, -(s64)w.nr);
	do {
		end = kvt_hold_drop(&p->table, &w, KVT_HOLD_STEP);
		kvt_hold_charge(p, ns_group, -(s64)w.nr);
	} while (end == KVT_HOLD_MORE && !kvt_unhold_later(p, &w));
}

/* One step of what was left to the worker. Whether there was anything. */
static bool kvt_unhold_step(struct kvt_pool *p)
{
	struct kvt_unhold *u, *done = NULL;
	bool any = true;

	spin_lock(&p->meta_lock);
	u = llist_empty(&p->unholds) ? NULL :
	    llist_entry(p->unholds.first, struct kvt_unhold, node);
	if (u && !kvt_hold_put_step(p, &u->w)) {
		llist_del_first(&p->unholds);
		done = u;
	} else if (!u && p->nr_unhold) {
		p->nr_unhold -= !kvt_hold_put_step(p, &p->unhold[p->nr_unhold - 1]);
	} else if (!u) {
		any = false;
	}
	spin_unlock(&p->meta_lock);
	kfree(done);
	return any;
}

/**
 * kvt_holds_settle() - drop some of what was left to the worker
 * @p: pool; no spinlock held, may sleep. Called by its worker, and by who runs into a limit
 * Return: there may be more; the worker has other things to do first.
 */
bool kvt_holds_settle(struct kvt_pool *p)
{
	u32 steps = KVT_UNHOLD_STEPS;

	while (kvt_unhold_step(p)) {
		if (!--steps)
			return true;
		cond_resched();
	}
	return false;
}

/**
 * kvt_holds_wait() - what is charged to namespaces is what they hold: nothing is left
 * @p: pool; no spinlock held, may sleep
 *
 * What is charged for blocks that nobody holds any more is to refuse nobody anything. Does
 * the worker's work up to now, but not for ever while others make more.
 */
void kvt_holds_wait(struct kvt_pool *p)
{
	u32 rounds = KVT_UNHOLD_ROUNDS;

	while (kvt_holds_settle(p) && --rounds && !fatal_signal_pending(current))
		;
}

/* --- sessions ----------------------------------------------------------------------- */

static struct kvt_session *kvt_session_find(struct kvt_file *f, u64 id)
{
	struct kvt_session *s;

	lockdep_assert_held(&f->ns->session_lock);
	if (!f->sessions)
		return NULL;
	hlist_for_each_entry(s, &f->sessions->by_id[hash_64(id, KVT_SESSION_BITS)], by_id) {
		if (s->id == id)
			return s;
	}
	return NULL;
}

static struct kvt_session *kvt_session_new(struct kvt_file *f, u64 id)
{
	struct kvt_sessions *all = f->sessions;
	struct kvt_session *s;

	lockdep_assert_held(&f->ns->session_lock);
	if (!all) {
		all = kzalloc(sizeof(*all), GFP_KERNEL_ACCOUNT);
		if (!all)
			return ERR_PTR(-ENOMEM);
		spin_lock(&f->pool->meta_lock);
		f->sessions = all;
		spin_unlock(&f->pool->meta_lock);
	}
	if (all->nr == KVT_SESSIONS_PER_FILE)
		return ERR_PTR(-ENOSPC);
	s = kzalloc(sizeof(*s), GFP_KERNEL_ACCOUNT);
	if (!s)
		return ERR_PTR(-ENOMEM);
	s->id = id;
	all->nr++;
	hlist_add_head(&s->by_id, &all->by_id[hash_64(id, KVT_SESSION_BITS)]);
	return s;
}

static void kvt_session_free(struct kvt_file *f, struct kvt_session *s)
{
	lockdep_assert_held(&f->ns->session_lock);
	hlist_del(&s->by_id);
	f->sessions->nr--;
	kfree(s);
}

/* Find or make one. *@made: it is new. */
static struct kvt_session *kvt_session_of(struct kvt_file *f, u64 id, bool *made)
{
	struct kvt_session *s = kvt_session_find(f, id);

	*made = !s;
	return s ?: kvt_session_new(f, id);
}

/* The session has another tip now; @gen: *@tip's. What it held is the caller's to drop. */
static bool kvt_session_set(struct kvt_file *f, struct kvt_session *s, bool decoding, u32 *tip,
			    u32 *gen)
{
	bool held;

	spin_lock(&f->pool->meta_lock);
	held = s->decoding;
	if (held)
		hlist_del_init(&s->by_tip);
	s->decoding = decoding;
	swap(s->tip, *tip);
	swap(s->gen, *gen);
	if (decoding)
		hlist_add_head(&s->by_tip,
			       &f->sessions->by_tip[hash_32(s->tip, KVT_SESSION_BITS)]);
	spin_unlock(&f->pool->meta_lock);
	return held;
}

static void kvt_session_tip(struct kvt_file *f, const struct kvt_session *s, u32 *tip, u32 *gen)
{
	spin_lock(&f->pool->meta_lock);
	*tip = s->tip;
	*gen = s->gen;
	spin_unlock(&f->pool->meta_lock);
}

/* Does it decode, and is its tip there: it may grow meanwhile, and that is to stay. */
static bool kvt_session_holds(struct kvt_file *f, const struct kvt_session *s)
{
	struct kvt_pool *p = f->pool;
	bool holds;

	spin_lock(&p->meta_lock);
	holds = s->decoding && kvt_hold_there(&p->table, s->tip, s->gen);
	spin_unlock(&p->meta_lock);
	return holds;
}

/**
 * kvt_session_decode() - a session decodes
 * @f:        caller
 * @session:  its number
 * @tip:      last block of its chain, or KVT_NIL: as it is known; out: what that is, or
 *            KVT_NIL: it decodes already
 * @gen:      its generation
 * Return: 0; -ENOENT: there is no such block (any more), or one of the chain is about to
 * leave; -EINVAL: the tip is not known;
 * -ENOSPC, -ENOMEM, -EINTR. On an error the session is as it was.
 */
int kvt_session_decode(struct kvt_file *f, u64 session, u32 *tip, u32 *gen)
{
	struct kvt_session *s;
	bool made, held;
	u32 was, was_gen;
	int err;

	mutex_lock(&f->ns->session_lock);
	s = kvt_session_of(f, session, &made);
	err = PTR_ERR_OR_ZERO(s);
	if (err)
		goto out;
	if (!*tip && kvt_session_holds(f, s))
		goto out;
	if (!*tip)
		kvt_session_tip(f, s, tip, gen);
	err = *tip ? kvt_hold_get(f->pool, *tip, *gen) : -EINVAL;
	if (err) {
		if (made)
			kvt_session_free(f, s);
		goto out;
	}
	was = *tip;
	was_gen = *gen;
	held = kvt_session_set(f, s, true, &was, &was_gen);
	if (held)
		kvt_hold_put(f->pool, was, was_gen);
out:
	mutex_unlock(&f->ns->session_lock);
	return err;
}

/**
 * kvt_session_rest() - a session does not decode, or not any more
 * @f:        caller
 * @session:  its number
 * @done:     it is over
 * @tip:      last block of its chain, or KVT_NIL: as it is known; out: what that was
 * @gen:      its generation
 * Return: 0; -EINVAL: the tip is not known; -ENOSPC, -ENOMEM.
 */
int kvt_session_rest(struct kvt_file *f, u64 session, bool done, u32 *tip, u32 *gen)
{
	bool made = false, held;
	struct kvt_session *s;
	u32 was, was_gen;
	int err = 0;

	mutex_lock(&f->ns->session_lock);
	s = done ? kvt_session_find(f, session) : kvt_session_of(f, session, &made);
	if (IS_ERR_OR_NULL(s)) {
		err = s ? PTR_ERR(s) : *tip ? 0 : -EINVAL;
		goto out;
	}
	if (!*tip)
		kvt_session_tip(f, s, tip, gen);
	err = *tip ? 0 : -EINVAL;
	was = *tip;
	was_gen = *gen;
	held = !err && kvt_session_set(f, s, false, &was, &was_gen);
	if (held)
		kvt_hold_put(f->pool, was, was_gen);
	if (done || (err && made))
		kvt_session_free(f, s);
out:
	mutex_unlock(&f->ns->session_lock);
	return err;
}

/**
 * kvt_session_grow() - a block was committed: a session's chain may go on with it
 * @f:  who committed it; meta lock held
 * @id: block, READY
 *
 * If the namespace cannot pay for it, the session's tip stays where it is.
 */
void kvt_session_grow(struct kvt_file *f, u32 id)
{
	struct kvt_pool *p = f->pool;
	struct kvt_hot *h = kvt_hot(&p->table, id);
	u32 up = kvt_cold(&p->table, id)->parent;
	struct kvt_session *s;

	lockdep_assert_held(&p->meta_lock);
	if (!f->sessions || !up || !(kvt_ctl(kvt_hot(&p->table, up)) & KVT_CTL_HELD))
		return;
	hlist_for_each_entry(s, &f->sessions->by_tip[hash_32(up, KVT_SESSION_BITS)], by_tip) {
		if (s->tip == up && s->gen == kvt_hot(&p->table, up)->gen)
			break;
	}
	if (!s || !kvt_hold_room(p, h->ns_group))
		return;
	kvt_hold_grow(&p->table, id);
	kvt_hold_charge(p, h->ns_group, 1);
	hlist_del(&s->by_tip);
	s->tip = id;
	s->gen = h->gen;
	hlist_add_head(&s->by_tip, &f->sessions->by_tip[hash_32(id, KVT_SESSION_BITS)]);
}

/**
 * kvt_sessions_release() - a file is closing: its sessions end
 * @f: file; nobody else can use it now
 */
void kvt_sessions_release(struct kvt_file *f)
{
	struct hlist_node *next;
	struct kvt_session *s;
	u32 i;

	if (!f->sessions)
		return;
	mutex_lock(&f->ns->session_lock);
	for (i = 0; i < ARRAY_SIZE(f->sessions->by_id); i++) {
		hlist_for_each_entry_safe(s, next, &f->sessions->by_id[i], by_id) {
			u32 tip = KVT_NIL, gen = 0;

			if (kvt_session_set(f, s, false, &tip, &gen))
				kvt_hold_put(f->pool, tip, gen);
			kvt_session_free(f, s);
		}
	}
	mutex_unlock(&f->ns->session_lock);
	kfree(f->sessions);
	f->sessions = NULL;
}
