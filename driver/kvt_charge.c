// SPDX-License-Identifier: GPL-2.0
/*
 * Memory tiers whose pages are charged to control groups.
 *
 * A tier of kind "dram" or "node" that was attached with KVTIER_ATTACH_CHARGE has no pages of
 * its own. Those of a region come from the page allocator when a namespace gets the region,
 * charged to the memory cgroup that the namespace belongs to (that of its owner's process which
 * opened it first, or, when that has gone, of the owner's next one), and go back when the region
 * does. Its capacity is what it may have at most.
 *
 * Where a cgroup is at its limit, a namespace of it gets no more regions, and its own blocks
 * make room for what it stores. And when whatever else is charged there needs memory, the
 * kernel asks a shrinker that knows of cgroups: each region has an entry on a list_lru, under its
 * cgroup. Who asks may hold any lock that waits for memory; so he only notes which owners
 * have regions there, and has a worker of this file's take some from them. If it is the cgroup
 * that is at its limit he waits for that, but not for long: without it he would be killed. When the
 * system is short, or somebody wants to be ahead of need, nobody waits. What the worker does needs
 * no device: regions that no block is in are given
 * back, what is left in others is moved together; then blocks leave memory that have a copy
 * on a block tier, and ends of chains the pool, those that are worth least first. After that the
 * pool's own worker moves as much down as had to go: writing takes too long for
 * those who ask, and what has a copy need not leave when they ask again.
 *
 * Invariants: a region of such a tier has pages, and an entry, from before it hands out slots
 * until after it is CLEANING; its pieces' memory is never known to be anybody's
 * (KVT_PIECE_UNKNOWN), so that each region is made DIRTY. A piece in no region has no pages.
 *
 * The pool's worker is everybody's: it neither reclaims nor is slowed down for one cgroup.
 * Where that is at its limit, regions are refused to it at once. Nor do those who detach a tier
 * wait for a client whom the kernel slows down: he gets no more once he is beyond memory.high or
 * memory.swap.high, and keeps no readers in srcu while his own calls get memory (kvt_region.h).
 *
 * Locks: charges->lock, a leaf, for those who ask and for @of; the meta lock for ns->memcg.
 */
#include <linux/completion.h>
#include <linux/gfp.h>
#include <linux/list_lru.h>
#include <linux/math64.h>
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/shrinker.h>
#include <linux/slab.h>
#include <linux/swap.h>
#include <linux/workqueue.h>

#include "compat/kvt_compat.h"
#include "kvt_charge.h"
#include "kvt_internal.h"
#include "kvt_pages.h"

#define KVT_SQUEEZE_OWNERS	8u		/* told apart in one question */
#define KVT_SQUEEZE_PIECES	8u		/* asked for at a time */
#define KVT_SQUEEZE_WAIT	(HZ / 10)	/* that who asks waits, at most */
#define KVT_SQUEEZE_TIME	(HZ / 50 + 1)	/* that one question is worked on */
#define KVT_SQUEEZE_PAUSE	(HZ / 10)	/* between questions of who is not short */
#define KVT_SQUEEZE_LOOK	4096u		/* pieces looked at for owners */
#define KVT_SQUEEZE_WALK	64ul		/* entries of a cgroup's, likewise */

/* One of an owner's regions, and who that is: the piece may be somebody else's by now. */
struct kvt_owned {
	u64 ns_id;
	u32 ns_group;
	u32 first;
};

/* Who asks without waiting. */
enum kvt_squeeze_note {
	KVT_NOTE_SYSTEM,	/* the kernel, for all; or root */
	KVT_NOTE_GROUP,		/* for a cgroup */
	KVT_NOTES
};

/**
 * struct kvt_charge - a region's entry
 * @lru: in its cgroup's list
 * @of:  region
 */
struct kvt_charge {
	struct list_head lru;
	struct kvt_owned of;
};

/**
 * struct kvt_squeeze - what somebody asks for
 * @link:   charges->asked, if he waits; then it is on his stack. charges->lock, as all of this
 * @memcg:  for whom; only to tell one from another
 * @owner:  whose regions are to go
 * @nr:     how many
 * @spare:  what is guaranteed to an owner stays: it is not his own cgroup that is at its limit
 * @pieces: so many are wanted
 * @got:    out: so many have gone
 * @done:   it was looked at
 */
struct kvt_squeeze {
	struct list_head link;
	const struct mem_cgroup *memcg;
	struct kvt_owned owner[KVT_SQUEEZE_OWNERS];
	u32 nr;
	bool spare;
	u32 pieces;
	u32 got;
	struct completion done;
};

/**
 * struct kvt_charges - of one tier
 * @t:        tier
 * @lru:      struct kvt_charge of all regions
 * @shrinker: that knows of cgroups
 * @lock:     see above; of all that follows but for @work and @mv
 * @asked:    struct kvt_squeeze of those who wait
 * @note:     of those who do not, the last one of each kind; @nr is 0: none
 * @note_next: it is a note's turn
 * @served:   who was, last
 * @ahead:    pieces that are to go before somebody asks
 * @ahead_of: whose
 * @ahead_spare: as @spare of who asked
 * @asked_at: when somebody who was not short has asked, in jiffies, by kind
 * @hand:     piece where a look at all regions goes on
 * @nr_regions: of @of
 * @work:     answers them
 * @mv:       KVT_MOVE_BATCH moves. @work's
 * @of:       by first piece
 */
struct kvt_charges {
	struct kvt_tier *t;
	struct list_lru lru;
	struct shrinker *shrinker;
	spinlock_t lock;
	struct list_head asked;
	struct kvt_squeeze note[KVT_NOTES];
	bool note_next;
	const struct mem_cgroup *served;
	u32 ahead;
	struct kvt_owned ahead_of;
	bool ahead_spare;
	unsigned long asked_at[KVT_NOTES];
	u32 hand;
	u32 nr_regions;
	struct work_struct work;
	struct kvt_mv *mv;
	struct kvt_charge *of[];
};

static struct kmem_cache *kvt_charge_cache;
static struct workqueue_struct *kvt_charge_wq;

/* --- Namespaces ---------------------------------------------------------------- */

#ifdef CONFIG_MEMCG
/* Whom a namespace is charged to, with a reference; or NULL. */
static struct mem_cgroup *kvt_charge_memcg(struct kvt_ns *ns)
{
	struct mem_cgroup *memcg;

	spin_lock(&ns->pool->meta_lock);
	memcg = ns->memcg;
	if (memcg)
		css_get(&memcg->css);
	spin_unlock(&ns->pool->meta_lock);
	return memcg;
}

/* Could a cgroup, or one around it, not have so many pieces more. */
static bool kvt_charge_pressed(struct mem_cgroup *memcg, u32 pieces)
{
	for (; memcg; memcg = parent_mem_cgroup(memcg)) {
		unsigned long most = min(READ_ONCE(memcg->memory.max),
					 READ_ONCE(memcg->memory.high));

		if (page_counter_read(&memcg->memory) + pieces * KVT_PIECE_PAGES > most)
			return true;
	}
	return false;
}

/* Would the kernel hold up who gets more for a cgroup, since it is beyond what it may have. */
static bool kvt_charge_throttled(struct mem_cgroup *memcg)
{
	for (; memcg; memcg = parent_mem_cgroup(memcg)) {
		if (page_counter_read(&memcg->memory) > READ_ONCE(memcg->memory.high) ||
		    page_counter_read(&memcg->swap) > READ_ONCE(memcg->swap.high))
			return true;
	}
	return false;
}

static bool kvt_charge_is_root(struct mem_cgroup *memcg)
{
	return !memcg || !parent_mem_cgroup(memcg);
}
#else
static struct mem_cgroup *kvt_charge_memcg(struct kvt_ns *ns)
{
	return NULL;
}

static bool kvt_charge_pressed(struct mem_cgroup *memcg, u32 pieces)
{
	return false;
}

static bool kvt_charge_throttled(struct mem_cgroup *memcg)
{
	return false;
}

static bool kvt_charge_is_root(struct mem_cgroup *memcg)
{
	return true;
}
#endif

/**
 * kvt_charge_note() - a namespace is opened by its owner
 * @ns: namespace; conf_lock of its pool held
 *
 * If nobody pays for it, or who did has gone, the caller's cgroup does from now on; not for what
 * is there already. Others who may open it do not pay for what is not theirs.
 */
void kvt_charge_note(struct kvt_ns *ns)
{
	struct mem_cgroup *memcg = ns->memcg;

	lockdep_assert_held(&ns->pool->conf_lock);
	if ((memcg && mem_cgroup_online(memcg)) || !current->mm)
		return;
	memcg = get_mem_cgroup_from_mm(current->mm);
	spin_lock(&ns->pool->meta_lock);
	swap(ns->memcg, memcg);
	spin_unlock(&ns->pool->meta_lock);
	mem_cgroup_put(memcg);
}

/* The namespace goes. */
void kvt_charge_forget(struct kvt_ns *ns)
{
	mem_cgroup_put(ns->memcg);
	ns->memcg = NULL;
}

/**
 * kvt_charge_fits() - is there nothing that speaks against a region
 * @t:      memory tier; no spinlock held
 * @ns:     for whom
 * @pieces: its length
 */
bool kvt_charge_fits(struct kvt_tier *t, struct kvt_ns *ns, u32 pieces)
{
	struct mem_cgroup *memcg = t->charges ? kvt_charge_memcg(ns) : NULL;
	bool fits = !kvt_charge_pressed(memcg, pieces);

	mem_cgroup_put(memcg);
	return fits;
}

/* --- Regions' pages -------------------------------------------------------------- */

static void kvt_charge_free_pieces(struct kvt_tier *t, u32 first, u32 nr)
{
	u32 i;

	for (i = first; i < first + nr; i++) {
		kvt_pages_free(t->ops->leave(t, i));
		cond_resched();
	}
}

/*
 * May the caller ask for memory for a cgroup. A worker would have to wait, see above. Where nobody
 * pays there is none: it would be anybody's who asks, or nobody's.
 */
static bool kvt_charge_may(struct mem_cgroup *memcg, u32 pieces)
{
	return (memcg || mem_cgroup_disabled()) && !kvt_charge_throttled(memcg) &&
	       (!(current->flags & PF_KTHREAD) || !kvt_charge_pressed(memcg, pieces));
}

/**
 * kvt_charge_pays() - would a worker get memory for a namespace
 * @t:      memory tier; no spinlock held
 * @ns:     for whom
 * @pieces: the shortest region there can be
 *
 * To be asked before others make room for it: where its cgroup gives no more that is in vain.
 */
bool kvt_charge_pays(struct kvt_tier *t, struct kvt_ns *ns, u32 pieces)
{
	struct mem_cgroup *memcg;
	bool pays;

	if (!t->charges)
		return true;
	memcg = kvt_charge_memcg(ns);
	pays = kvt_charge_may(memcg, pieces);
	mem_cgroup_put(memcg);
	return pays;
}

/* One piece, charged to the active cgroup, which is @memcg. */
static int kvt_charge_piece(struct kvt_tier *t, struct mem_cgroup *memcg, u32 piece)
{
	cond_resched();
	if (fatal_signal_pending(current))
		return -EINTR;
	if (!kvt_charge_may(memcg, 1))
		return -EDQUOT;
	return t->ops->come(t, piece, true) ? -EDQUOT : 0;
}

/* A region has its pages. */
static void kvt_charge_enter(struct kvt_charges *cs, struct kvt_charge *c, u64 ns_id,
			     const struct kvt_region *reg)
{
	INIT_LIST_HEAD(&c->lru);
	c->of = (struct kvt_owned) {
		.ns_id = ns_id, .ns_group = reg->ns_group, .first = reg->first,
	};
	list_lru_add_obj(&cs->lru, &c->lru);
	spin_lock(&cs->lock);
	cs->of[reg->first] = c;
	cs->nr_regions++;
	spin_unlock(&cs->lock);
}

/**
 * kvt_charge_region() - get pages for a region
 * @t:   charged tier; may sleep
 * @ns:  to whose cgroup
 * @reg: DIRTY, the caller's
 * Return: 0: it has zeroed pages; -EDQUOT: the cgroup, or the system, has none for it; -EINTR: a
 * fatal signal.
 */
int kvt_charge_region(struct kvt_tier *t, struct kvt_ns *ns, const struct kvt_region *reg)
{
	struct mem_cgroup *memcg = kvt_charge_memcg(ns), *old = set_active_memcg(memcg);
	struct kvt_charge *c = NULL;
	int err = -EDQUOT;
	u32 i;

	if (kvt_charge_may(memcg, reg->nr_pieces))
		c = kmem_cache_alloc_lru(kvt_charge_cache, &t->charges->lru,
					 GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN);
	for (i = 0; c && i < reg->nr_pieces; i++) {
		err = kvt_charge_piece(t, memcg, reg->first + i);
		if (err)
			break;
	}
	set_active_memcg(old);
	mem_cgroup_put(memcg);
	if (!err) {
		kvt_charge_enter(t->charges, c, ns->id, reg);
		return 0;
	}
	kvt_charge_free_pieces(t, reg->first, i);
	if (c)
		kmem_cache_free(kvt_charge_cache, c);
	return err;
}

/**
 * kvt_charge_vacate() - give a region's pages back
 * @t:   tier; may sleep
 * @reg: that nobody has mapped, and which hands out nothing; the caller's
 *
 * Pages that somebody still refers to live on, and are charged, until that has ended.
 */
void kvt_charge_vacate(struct kvt_tier *t, const struct kvt_region *reg)
{
	struct kvt_charges *cs = t->charges;
	struct kvt_charge *c;

	if (!cs)
		return;
	spin_lock(&cs->lock);
	c = cs->of[reg->first];
	cs->of[reg->first] = NULL;
	cs->nr_regions -= !!c;
	spin_unlock(&cs->lock);
	if (!c)
		return;
	list_lru_del_obj(&cs->lru, &c->lru);
	kmem_cache_free(kvt_charge_cache, c);
	kvt_charge_free_pieces(t, reg->first, reg->nr_pieces);
}

/* --- Taking them from owners ------------------------------------------------------- */

/*
 * Who has a region still, or NULL: it is gone, or is no other's business. The namespace is kept
 * as by one more region, until kvt_charge_let_go().
 */
static struct kvt_ns *kvt_charge_hold(struct kvt_tier *t, const struct kvt_owned *of,
				      u32 *ns_group)
{
	const struct kvt_region *reg;
	struct kvt_ns *ns = NULL;

	spin_lock(&t->pool->meta_lock);
	reg = kvt_mem_region(&t->mem, of->first);
	if (reg && !reg->arena &&
	    (reg->state == KVT_REGION_ACTIVE || reg->state == KVT_REGION_DRAINING))
		ns = kvt_ns_of(t->pool, reg->ns_group);
	if (ns && ns->id == of->ns_id) {
		*ns_group = reg->ns_group;
		ns->nr_regions++;
	} else {
		ns = NULL;
	}
	spin_unlock(&t->pool->meta_lock);
	return ns;
}

static void kvt_charge_let_go(struct kvt_pool *p, struct kvt_ns *ns)
{
	spin_lock(&p->meta_lock);
	ns->nr_regions--;
	spin_unlock(&p->meta_lock);
}

/*
 * Claim some blocks of an owner's, whom the caller holds, those that are worth least. What is
 * guaranteed to the namespace stays if @spare says so. How many; up to KVT_MOVE_BATCH.
 */
static u32 kvt_squeeze_collect(struct kvt_pool *p, struct kvt_tier *t, u32 ns_group, bool spare,
			       bool leaf, u32 *ids)
{
	const struct kvt_ns *ns = kvt_ns_of(p, ns_group);
	u64 beyond;
	u32 room;

	spin_lock(&p->meta_lock);
	beyond = ns->mem_bytes;
	if (spare)
		beyond -= min(beyond, kvt_ns_min_bytes(p, ns));
	spin_unlock(&p->meta_lock);
	room = min_t(u64, div64_u64(beyond, kvt_slot_bytes(kvt_group_of(p, ns_group))),
		     KVT_MOVE_BATCH);
	return room ? kvt_collect_own(p, t, leaf, ns_group, KVT_NIL, KVT_OWN_STEPS_WORKER, ids,
				      room) : 0;
}

/* May a block be where its copy is, as to its namespace's limit there. */
static bool kvt_squeeze_fits(struct kvt_pool *p, const struct kvt_hot *h)
{
	return (kvt_ctl(h) & KVT_CTL_LOG) &&
	       kvt_limit_fits(kvt_ns_of(p, h->ns_group), p->tiers[h->log_tier],
			      kvt_slot_bytes(kvt_group_of(p, h->ns_group)));
}

/* A claimed block leaves memory if no device is needed for that, or stays. Whether it left. */
static bool kvt_squeeze_block(struct kvt_pool *p, u32 id)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);
	bool gone;

	lockdep_assert_held(&p->meta_lock);
	gone = kvt_squeeze_fits(p, h) && kvt_copy_instead(p, id, true);
	if (!gone && kvt_ch_leaf(&p->table, id) && !(kvt_ctl(h) & KVT_CTL_STAYS))
		return kvt_evict_claimed(p, id, KVT_WHY_ROOM);
	kvt_ctl_update(h, 0, 0, KVT_CTL_MOVING, 0);
	kvt_block_reap(p, id);
	kvt_block_wake(p, id);
	return gone;
}

/* Some of an owner's blocks; @leaf: ends of chains. How many left memory. */
static u32 kvt_squeeze_some(struct kvt_pool *p, struct kvt_tier *t, u32 ns_group, bool spare,
			    bool leaf)
{
	u32 ids[KVT_MOVE_BATCH], nr, i, gone = 0;

	nr = kvt_squeeze_collect(p, t, ns_group, spare, leaf, ids);
	spin_lock(&p->meta_lock);
	for (i = 0; i < nr; i++)
		gone += kvt_squeeze_block(p, ids[i]);
	spin_unlock(&p->meta_lock);
	kvt_garbage_free(p);
	return gone;
}

/* Whether any left memory. What stays, as it is pinned, say, must not hide what can go. */
static bool kvt_squeeze_blocks(struct kvt_pool *p, struct kvt_tier *t, u32 ns_group, bool spare)
{
	return kvt_squeeze_some(p, t, ns_group, spare, false) ||
	       kvt_squeeze_some(p, t, ns_group, spare, true);
}

/* Take pieces from one of the owners, until @end. How many have gone. */
static u32 kvt_squeeze_owner(struct kvt_charges *cs, const struct kvt_squeeze *q, u32 i,
			     u32 pieces, unsigned long end)
{
	struct kvt_tier *t = cs->t;
	struct kvt_pool *p = t->pool;
	u32 ns_group, had, got = 0;
	struct kvt_ns *ns = kvt_charge_hold(t, &q->owner[i], &ns_group);
	const struct kvt_owner *o;

	if (!ns)
		return 0;
	o = &kvt_group_of(p, ns_group)->owner[t->id];
	had = READ_ONCE(o->nr_pieces);
	do {
		if (!kvt_region_release_own(p, t, ns_group) &&
		    !kvt_compact_own(p, t, ns_group, cs->mv) &&
		    !kvt_squeeze_blocks(p, t, ns_group, q->spare))
			break;
		/* It may get some at the same time. */
		got = had - min(had, READ_ONCE(o->nr_pieces));
	} while (got < pieces && time_before(jiffies, end));
	kvt_charge_let_go(p, ns);
	return got;
}

static u32 kvt_squeeze_owners(struct kvt_charges *cs, const struct kvt_squeeze *q)
{
	unsigned long end = jiffies + KVT_SQUEEZE_TIME;
	u32 got = 0, i;

	/* The first one has his turn; then there is as much time as is left. */
	for (i = 0; i < q->nr && got < q->pieces && (!i || time_before(jiffies, end)); i++)
		got += kvt_squeeze_owner(cs, q, i, q->pieces - got, end);
	return got;
}

/* Of those who wait: not who was served last, if there are others. Lock held. */
static struct kvt_squeeze *kvt_squeeze_waiting(struct kvt_charges *cs)
{
	struct kvt_squeeze *q;

	lockdep_assert_held(&cs->lock);
	list_for_each_entry(q, &cs->asked, link) {
		if (q->memcg != cs->served)
			return q;
	}
	return list_first_entry_or_null(&cs->asked, struct kvt_squeeze, link);
}

/*
 * Take the next one. Who waits and who does not take turns: there may always be somebody
 * of either. Out: a copy, without @nr of a note; and who it was, or NULL. Lock held.
 */
static struct kvt_squeeze *kvt_squeeze_take(struct kvt_charges *cs, struct kvt_squeeze *copy)
{
	struct kvt_squeeze *q = kvt_squeeze_waiting(cs), *note = NULL;
	u32 i;

	lockdep_assert_held(&cs->lock);
	for (i = KVT_NOTES; i-- > 0;) {
		if (cs->note[i].nr)
			note = &cs->note[i];
	}
	if (note && (!q || cs->note_next))
		q = note;
	if (!q)
		return NULL;
	*copy = *q;
	cs->note_next = q != note;
	if (q == note)
		q->nr = 0;
	else
		cs->served = copy->memcg;
	return q;
}

/* He may have left. Lock held. */
static void kvt_squeeze_answer(struct kvt_charges *cs, const struct kvt_squeeze *to, u32 got)
{
	struct kvt_squeeze *q;

	lockdep_assert_held(&cs->lock);
	list_for_each_entry(q, &cs->asked, link) {
		if (q != to)
			continue;
		list_del_init(&q->link);
		q->got = got;
		complete(&q->done);
		break;
	}
}

/* Answer one who asks. Whether there was any. */
static bool kvt_squeeze_next(struct kvt_charges *cs)
{
	struct kvt_squeeze *q, copy;
	u32 got;

	spin_lock(&cs->lock);
	q = kvt_squeeze_take(cs, &copy);
	spin_unlock(&cs->lock);
	if (!q)
		return false;
	got = kvt_squeeze_owners(cs, &copy);
	spin_lock(&cs->lock);
	if (got) {
		cs->ahead = min(cs->ahead + got, KVT_SQUEEZE_PIECES);
		cs->ahead_of = copy.owner[0];
		cs->ahead_spare = copy.spare;
	}
	kvt_squeeze_answer(cs, q, got);
	spin_unlock(&cs->lock);
	return true;
}

static void kvt_squeeze_work(struct work_struct *work)
{
	struct kvt_charges *cs = container_of(work, struct kvt_charges, work);
	struct kvt_pool *p = cs->t->pool;
	bool more;
	int idx;

	/* There may always be somebody; those who wait for all readers are not to wait for that. */
	do {
		idx = srcu_read_lock(&p->srcu);
		more = kvt_squeeze_next(cs);
		srcu_read_unlock(&p->srcu, idx);
		kvt_reclaim_kick(p);
		cond_resched();
	} while (more);
}

/**
 * kvt_charge_work() - move down what would have to go when the next one asks
 * @p: pool; srcu held, may sleep; called by its worker
 * @t: ONLINE memory tier
 * Return: whether anything was achieved.
 */
bool kvt_charge_work(struct kvt_pool *p, struct kvt_tier *t)
{
	u32 ids[KVT_MOVE_BATCH], ns_group, ahead, nr, gone;
	struct kvt_charges *cs = t->charges;
	struct kvt_owned of;
	struct kvt_ns *ns;
	bool spare;

	if (!cs || !READ_ONCE(cs->ahead))
		return false;
	spin_lock(&cs->lock);
	ahead = cs->ahead;
	of = cs->ahead_of;
	spare = cs->ahead_spare;
	cs->ahead = ahead - min(ahead, 1u);
	spin_unlock(&cs->lock);
	ns = ahead && kvt_tier_has_lower(p, t) ? kvt_charge_hold(t, &of, &ns_group) : NULL;
	if (!ns)
		return false;
	nr = kvt_squeeze_collect(p, t, ns_group, spare, false, ids);
	gone = kvt_demote(p, t, ids, nr, false);
	kvt_region_release_own(p, t, ns_group);
	kvt_charge_let_go(p, ns);
	return gone;
}

/* --- The system asks ------------------------------------------------------------------ */

/*
 * On whose behalf the root is asked: the system's, wherever it is short; what regions there are then
 * does not depend on the cgroup, nor on the node that entries are on.
 */
static unsigned long kvt_charge_count(struct shrinker *s, struct shrink_control *sc)
{
	struct kvt_charges *cs = s->private_data;
	unsigned long nr;

	if (!kvt_charge_is_root(sc->memcg))
		nr = list_lru_shrink_count(&cs->lru, sc);
	else
		nr = kvt_shrink_concerns(cs->t, sc->nid) ? READ_ONCE(cs->nr_regions) : 0;
	return nr ? nr * KVT_PIECE_PAGES : SHRINK_EMPTY;
}

/* Each owner once. */
static void kvt_squeeze_add(struct kvt_squeeze *q, const struct kvt_charge *c)
{
	u32 i;

	for (i = 0; i < q->nr; i++) {
		if (q->owner[i].ns_id == c->of.ns_id && q->owner[i].ns_group == c->of.ns_group)
			return;
	}
	if (q->nr < KVT_SQUEEZE_OWNERS)
		q->owner[q->nr++] = c->of;
}

/* Have the next question begin with others. */
static enum lru_status kvt_charge_pick(struct list_head *item, KVT_LRU_WALK_ARGS, void *arg)
{
	kvt_squeeze_add(arg, container_of(item, struct kvt_charge, lru));
	return LRU_ROTATE;
}

/* Some regions of the tier's, whoever pays for them. */
static void kvt_charge_pick_any(struct kvt_charges *cs, struct kvt_squeeze *q)
{
	u32 i;

	spin_lock(&cs->lock);
	for (i = 0; i < KVT_SQUEEZE_LOOK && q->nr < KVT_SQUEEZE_OWNERS; i++) {
		cs->hand = cs->hand + 1 < cs->t->nr_pieces ? cs->hand + 1 : 0;
		if (cs->of[cs->hand])
			kvt_squeeze_add(q, cs->of[cs->hand]);
	}
	spin_unlock(&cs->lock);
}

/* What the one who asks waits for. */
static u32 kvt_squeeze_wait(struct kvt_charges *cs, struct kvt_squeeze *q)
{
	init_completion(&q->done);
	spin_lock(&cs->lock);
	list_add_tail(&q->link, &cs->asked);
	spin_unlock(&cs->lock);
	queue_work(kvt_charge_wq, &cs->work);
	wait_for_completion_timeout(&q->done, KVT_SQUEEZE_WAIT);
	spin_lock(&cs->lock);
	list_del(&q->link);
	spin_unlock(&cs->lock);
	return q->got;
}

/* Is it some time since somebody has asked who was not short. */
static bool kvt_squeeze_due(struct kvt_charges *cs, enum kvt_squeeze_note kind)
{
	bool due;

	spin_lock(&cs->lock);
	due = time_after_eq(jiffies, cs->asked_at[kind] + KVT_SQUEEZE_PAUSE);
	if (due)
		cs->asked_at[kind] = jiffies;
	spin_unlock(&cs->lock);
	return due;
}

static void kvt_squeeze_note(struct kvt_charges *cs, const struct kvt_squeeze *q,
			     enum kvt_squeeze_note kind)
{
	spin_lock(&cs->lock);
	cs->note[kind] = *q;
	spin_unlock(&cs->lock);
	queue_work(kvt_charge_wq, &cs->work);
}

/*
 * What is freed here does not count when the kernel reclaims for a cgroup, so it asks for all
 * there is, several times over, even if the first piece was enough. So nobody gets anything
 * who has room for a piece; but for the system, or who wants to be ahead of need, in the
 * background and a little at a time. The system, too, asks on behalf of one cgroup after another:
 * only where one is at its limit it is its own concern what was guaranteed there.
 */
static unsigned long kvt_charge_scan(struct shrinker *s, struct shrink_control *sc)
{
	enum kvt_squeeze_note kind = kvt_charge_is_root(sc->memcg) ? KVT_NOTE_SYSTEM :
								    KVT_NOTE_GROUP;
	bool urgent = kvt_charge_pressed(sc->memcg, 1) && !current_is_kswapd();
	struct kvt_squeeze q = {
		.memcg = sc->memcg, .pieces = KVT_SQUEEZE_PIECES, .spare = !urgent,
	};
	struct kvt_charges *cs = s->private_data;
	unsigned long walk = KVT_SQUEEZE_WALK;
	u32 got = 0;

	/* The one that would have to answer. */
	if (current_work() == &cs->work || (!urgent && !kvt_squeeze_due(cs, kind)))
		return SHRINK_STOP;
	if (kind == KVT_NOTE_SYSTEM)
		kvt_charge_pick_any(cs, &q);
	else
		list_lru_walk_one(&cs->lru, sc->nid, sc->memcg, kvt_charge_pick, &q, &walk);
	if (!q.nr)
		return SHRINK_STOP;
	if (urgent) {
		q.pieces = clamp_t(unsigned long, sc->nr_to_scan / KVT_PIECE_PAGES, 1,
				   KVT_SQUEEZE_PIECES);
		got = kvt_squeeze_wait(cs, &q);
	} else {
		kvt_squeeze_note(cs, &q, kind);
	}
	return got ? (unsigned long)got * KVT_PIECE_PAGES : SHRINK_STOP;
}

/**
 * kvt_charge_prepare() - a tier that is to be charged comes
 * @t: tier that its backend has attached, not published yet; may sleep
 * Return: 0 or -ENOMEM. Nobody asks before kvt_charge_start().
 */
int kvt_charge_prepare(struct kvt_tier *t)
{
	struct kvt_charges *cs;
	struct shrinker *s;

	if (!t->ops->is_mem || !(t->args.flags & KVTIER_ATTACH_CHARGE))
		return 0;
	cs = kvzalloc(struct_size(cs, of, t->nr_pieces), GFP_KERNEL);
	s = shrinker_alloc(SHRINKER_NUMA_AWARE | SHRINKER_MEMCG_AWARE, "kvtier%u-%s",
			   t->pool->id, t->args.name);
	if (!cs || !s)
		goto free;
	cs->mv = kvmalloc_array(KVT_MOVE_BATCH, sizeof(*cs->mv), GFP_KERNEL);
	if (!cs->mv || list_lru_init_memcg(&cs->lru, s))
		goto free;
	cs->t = t;
	cs->asked_at[KVT_NOTE_SYSTEM] = jiffies - KVT_SQUEEZE_PAUSE;
	cs->asked_at[KVT_NOTE_GROUP] = jiffies - KVT_SQUEEZE_PAUSE;
	spin_lock_init(&cs->lock);
	INIT_LIST_HEAD(&cs->asked);
	INIT_WORK(&cs->work, kvt_squeeze_work);
	s->count_objects = kvt_charge_count;
	s->scan_objects = kvt_charge_scan;
	s->seeks = DEFAULT_SEEKS;
	s->batch = KVT_PIECE_PAGES;
	s->private_data = cs;
	cs->shrinker = s;
	t->charges = cs;
	t->frame_bytes += (u64)t->nr_pieces * sizeof(cs->of[0]);
	return 0;
free:
	if (s)
		shrinker_free(s);
	if (cs)
		kvfree(cs->mv);
	kvfree(cs);
	return -ENOMEM;
}

/* The tier is complete: it may be asked for memory. May sleep. */
void kvt_charge_start(struct kvt_tier *t)
{
	if (t->charges)
		shrinker_register(t->charges->shrinker);
}

/**
 * kvt_charge_stop() - nobody asks any more, and nobody takes regions for who has
 * @t: tier; may sleep
 */
void kvt_charge_stop(struct kvt_tier *t)
{
	struct kvt_charges *cs = t->charges;

	if (!cs)
		return;
	if (cs->shrinker)
		shrinker_free(cs->shrinker);
	cs->shrinker = NULL;
	cancel_work_sync(&cs->work);
}

/**
 * kvt_charge_end() - a tier goes
 * @t: tier without regions that was stopped; may sleep
 */
void kvt_charge_end(struct kvt_tier *t)
{
	struct kvt_charges *cs = t->charges;

	if (!cs)
		return;
	list_lru_destroy(&cs->lru);
	kvfree(cs->mv);
	kvfree(cs);
	t->charges = NULL;
}

/* Module init: 0 or -ENOMEM. */
int kvt_charge_init(void)
{
	kvt_charge_cache = KMEM_CACHE(kvt_charge, SLAB_ACCOUNT);
	if (!kvt_charge_cache)
		return -ENOMEM;
	/* Who asks is short of memory. */
	kvt_charge_wq = alloc_workqueue("kvtier-charge", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (kvt_charge_wq)
		return 0;
	kmem_cache_destroy(kvt_charge_cache);
	return -ENOMEM;
}

void kvt_charge_exit(void)
{
	destroy_workqueue(kvt_charge_wq);
	kmem_cache_destroy(kvt_charge_cache);
}
