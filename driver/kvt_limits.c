// SPDX-License-Identifier: GPL-2.0
/*
 * What namespaces may have on single tiers: limits and minima, set in sysfs.
 *
 * core/kvt_share.h is the model; here it is applied. A namespace at its limit in a tier
 * gets nothing more there from anybody, and does with its own:
 *
 *   slots       kvt_slot_alloc() passes the tier over. If no other has room either, the
 *               worker makes some of the namespace's own blocks on it go, down or out,
 *               instead of others' (kvt_serve()). Its answer says that there is room only if
 *               some of them went: who waits for room that cannot come waits, and does not
 *               try again and again.
 *   moves down  go past the tier to a slower one. If there is none, or that one refuses, too,
 *               older blocks of the namespace there leave the pool in their place.
 *   moves up    as with slots; what nobody waits for stays where it is.
 *
 * So that who does not wait finds room, too, a namespace that is near a limit, or was
 * refused, is put on pool->over, and the worker lowers it to the low watermark; so it does
 * with what is left of it after its limit was lowered.
 *
 * Limits and minima are a matter of the running pool. They are not on the media, and go with
 * the tier or the namespace.
 *
 * Invariants: a namespace's @used on a tier is what the blocks of it take whose fastest copy
 * is there, on memory tiers slots in use; copies do not count. Bytes that are @coming belong to
 * exactly one struct kvt_mv with @coming set. t->min_bytes is the sum of all @min on it.
 *
 * Locks: the meta lock for everything; sysfs takes no other, since a directory that goes
 * waits for who is in it.
 */
#include <linux/slab.h>
#include <linux/string.h>

#include "kvt_internal.h"
#include "kvt_mlog.h"

#define KVT_OVER_LOOKS	64u	/* at namespaces on pool->over, under one hold of the lock */
#define KVT_OVER_DELAY	(HZ / 5)

/* What a slot takes on a tier. */
u64 kvt_limit_bytes(const struct kvt_tier *t, u64 slot_bytes)
{
	return t->ops->is_mem ? slot_bytes :
	       (u64)kvt_geo_units(&t->geo, slot_bytes) * t->unit_bytes;
}

/* The worker is to look at it. Who is not the worker kicks that. Meta lock held. */
static void kvt_limit_note(struct kvt_ns *ns)
{
	lockdep_assert_held(&ns->pool->meta_lock);
	if (!list_empty(&ns->over_link))
		return;
	ns->over_at = jiffies;
	list_add_tail(&ns->over_link, &ns->pool->over);
}

/**
 * kvt_limit_count() - a namespace has one block more, or less, on a tier
 * @ns:         namespace, meta lock held
 * @t:          tier
 * @slot_bytes: of the block
 * @n:          1 or -1
 */
void kvt_limit_count(struct kvt_ns *ns, struct kvt_tier *t, u32 slot_bytes, int n)
{
	struct kvt_share *s = &ns->share[t->id];
	u64 bytes = kvt_limit_bytes(t, slot_bytes);

	lockdep_assert_held(&ns->pool->meta_lock);
	if (n < 0) {
		s->used -= bytes;
		return;
	}
	s->used += bytes;
	if (kvt_share_excess(s, READ_ONCE(ns->pool->watermark_high_percent)))
		kvt_limit_note(ns);
}

/**
 * kvt_limit_fits() - may a namespace have more on a tier
 * @ns:         namespace, meta lock held
 * @t:          tier
 * @slot_bytes: that are to come
 */
bool kvt_limit_fits(const struct kvt_ns *ns, const struct kvt_tier *t, u64 slot_bytes)
{
	lockdep_assert_held(&ns->pool->meta_lock);
	return kvt_share_fits(&ns->share[t->id], kvt_limit_bytes(t, slot_bytes));
}

/**
 * kvt_limit_permits() - could a namespace have so much on a tier, and nothing else there
 * @ns:         namespace, meta lock held
 * @t:          tier
 * @slot_bytes: how much
 */
bool kvt_limit_permits(const struct kvt_ns *ns, const struct kvt_tier *t, u64 slot_bytes)
{
	lockdep_assert_held(&ns->pool->meta_lock);
	return kvt_limit_bytes(t, slot_bytes) <= ns->share[t->id].limit;
}

/**
 * kvt_limit_want() - a client's slot did not fit
 * @ns:         namespace, meta lock held
 * @t:          tier
 * @slot_bytes: of the slot
 */
void kvt_limit_want(struct kvt_ns *ns, struct kvt_tier *t, u32 slot_bytes)
{
	lockdep_assert_held(&ns->pool->meta_lock);
	kvt_share_want(&ns->share[t->id], kvt_limit_bytes(t, slot_bytes));
	if (ns->share[t->id].wanted)
		kvt_limit_note(ns);
}

/**
 * kvt_limit_refuses() - does a limit keep a block from going to a tier
 * @p:  pool, meta lock held
 * @mv: its move; @over says so if it does
 * @t:  tier
 */
bool kvt_limit_refuses(struct kvt_pool *p, struct kvt_mv *mv, struct kvt_tier *t)
{
	struct kvt_ns *ns = kvt_ns_of(p, kvt_hot(&p->table, mv->id)->ns_group);

	lockdep_assert_held(&p->meta_lock);
	/* What is carried forward has its place there. */
	if (mv->x.src == t || kvt_limit_fits(ns, t, mv->x.bytes))
		return false;
	mv->over = t->id;
	return true;
}

/**
 * kvt_limit_coming() - a block is on its way to a block tier
 * @p:  pool, meta lock held
 * @mv: its move, to another tier than it is on, which has not refused it
 */
void kvt_limit_coming(struct kvt_pool *p, struct kvt_mv *mv)
{
	struct kvt_ns *ns = kvt_ns_of(p, kvt_hot(&p->table, mv->id)->ns_group);
	struct kvt_tier *t = mv->x.dst;

	lockdep_assert_held(&p->meta_lock);
	if (mv->x.src == t)
		return;
	mv->coming = true;
	ns->share[t->id].coming += kvt_limit_bytes(t, mv->x.bytes);
}

/**
 * kvt_limit_came() - that is over, however it ended
 * @p:  pool, meta lock held; the block's entry is still there
 * @mv: its move
 */
void kvt_limit_came(struct kvt_pool *p, struct kvt_mv *mv)
{
	struct kvt_ns *ns;

	lockdep_assert_held(&p->meta_lock);
	if (!mv->coming)
		return;
	mv->coming = false;
	ns = kvt_ns_of(p, kvt_hot(&p->table, mv->id)->ns_group);
	ns->share[mv->x.dst->id].coming -= kvt_limit_bytes(mv->x.dst, mv->x.bytes);
}

/**
 * kvt_limit_guarded() - is what a namespace has on a block tier guaranteed to it
 * @p:  pool, meta lock held
 * @t:  block tier
 * @ns: namespace
 * @leaving_bytes: what of that is to leave the tier already
 * @coming_bytes: what is to come there from another tier
 */
bool kvt_limit_guarded(struct kvt_pool *p, const struct kvt_tier *t, const struct kvt_ns *ns,
		       u64 leaving_bytes, u64 coming_bytes)
{
	struct kvt_share s = ns->share[t->id];
	struct kvt_claim c;

	lockdep_assert_held(&p->meta_lock);
	/* Nearly always, and asked for each block that is to go. */
	if (!s.min && !ns->min_bytes)
		return false;
	s.used -= min(s.used, leaving_bytes);
	s.used += coming_bytes;
	c = (struct kvt_claim) {
		.has = ns->used_bytes - min(ns->used_bytes, leaving_bytes),
		.min = kvt_ns_min_bytes(p, ns),
		.all_min = READ_ONCE(p->guaranteed_bytes),
		.tier_min = t->min_bytes,
		.capacity = kvt_log_capacity(t),
	};
	/* One that is being emptied keeps nothing. */
	return t->state == KVTIER_TIER_ONLINE && kvt_share_guarded(&s, &c);
}

/**
 * kvt_limit_owed() - would a block that comes to a block tier be guaranteed there
 * @p:  pool, meta lock held
 * @t:  block tier
 * @ns: its namespace
 * @slot_bytes: its size
 *
 * Then it takes the place of others', whatever it is worth: what was promised is not only for
 * who comes first. Not what a limit would have make room among its own.
 */
bool kvt_limit_owed(struct kvt_pool *p, const struct kvt_tier *t, const struct kvt_ns *ns,
		    u64 slot_bytes)
{
	u64 bytes = ns->share[t->id].coming + kvt_limit_bytes(t, slot_bytes);

	return (kvt_limit_guarded(p, t, ns, 0, bytes) || kvt_weight_guarded(p, t, ns, 0, bytes)) &&
	       kvt_limit_fits(ns, t, slot_bytes);
}

/**
 * kvt_limit_owed_mem() - the same in memory
 * @p:  pool, meta lock held
 * @t:  memory tier
 * @ns: namespace
 * @coming_bytes: slot bytes that it is to have in memory beyond those that it has
 *
 * Arenas count as well, so that their used slots count twice, and what is in quarantine. Rather
 * too little is owed.
 */
bool kvt_limit_owed_mem(struct kvt_pool *p, const struct kvt_tier *t, const struct kvt_ns *ns,
			u64 coming_bytes)
{
	lockdep_assert_held(&p->meta_lock);
	coming_bytes += ns->arena_bytes + ns->kept.quarantined_bytes;
	return ns->mem_bytes + coming_bytes <= kvt_ns_min_bytes(p, ns) ||
	       kvt_weight_guarded(p, t, ns, 0, coming_bytes);
}

/* --- making room among a namespace's own --------------------------------------------- */

static bool kvt_limit_allows(struct kvt_tier *t, const struct kvt_ns *ns, u64 slot_bytes)
{
	bool allows;

	spin_lock(&t->pool->meta_lock);
	allows = kvt_limit_permits(ns, t, slot_bytes);
	spin_unlock(&t->pool->meta_lock);
	return allows;
}

/* The owner after this one, of the same namespace. */
static u32 kvt_limit_next(const struct kvt_ns *ns, u32 ns_group)
{
	return kvt_ns_group(ns->idx, ((ns_group & 15) + 1) % ns->nr_groups);
}

/**
 * kvt_limit_displace() - blocks that are to go to a tier take the place of older ones
 * @p:        pool; no spinlock held, srcu held, may sleep
 * @t:        tier at whose limit the namespace is
 * @ns_group: owner of a block on its way; it keeps the namespace
 * @bytes:    slot bytes that are to come
 *
 * Those of the same owner first, then of the namespace's others. None do for what is larger
 * than the limit.
 * Return: whether any left.
 */
bool kvt_limit_displace(struct kvt_pool *p, struct kvt_tier *t, u32 ns_group, u64 bytes)
{
	struct kvt_ns *ns = kvt_ns_of(p, ns_group);
	u64 gone = 0;
	u32 i;

	if (!kvt_limit_allows(t, ns, bytes))
		return false;
	for (i = 0; i < ns->nr_groups && gone < bytes; i++) {
		u32 slot = kvt_slot_bytes(&ns->group[ns_group & 15]);
		u32 nr = min_t(u64, DIV_ROUND_UP_ULL(bytes - gone, slot), KVT_MOVE_BATCH);

		gone += (u64)kvt_evict_own(p, t, ns_group, KVT_WHY_QUOTA, nr) * slot;
		ns_group = kvt_limit_next(ns, ns_group);
	}
	return gone;
}

/* Some of one owner's, down or out. */
static u32 kvt_limit_lower_own(struct kvt_pool *p, struct kvt_tier *t, u32 ns_group, u32 max)
{
	u32 ids[KVT_MOVE_BATCH], tries, put_off, nr, gone;

	if (!kvt_tier_has_lower(p, t))
		return kvt_evict_own(p, t, ns_group, KVT_WHY_QUOTA, max);
	/* Twice: the first one may have made room below by displacing older blocks. */
	for (tries = 0; tries < 2; tries++) {
		put_off = READ_ONCE(p->nr_put_off);
		nr = kvt_collect_own(p, t, false, ns_group, KVT_NIL, KVT_OWN_STEPS_WORKER, ids,
				     max);
		gone = kvt_demote(p, t, ids, nr, false);
		if (gone || !nr)
			return gone;
		/* None of these can go down: then those go out that others do not depend on. */
		if (put_off == READ_ONCE(p->nr_put_off))
			return kvt_evict_own(p, t, ns_group, KVT_WHY_QUOTA, max);
	}
	/* There is room below, only not at once: no reason to evict. */
	return 0;
}

/**
 * kvt_limit_lower() - make some of a namespace's blocks leave a tier
 * @p:     pool; no spinlock held, srcu held, may sleep; called by the pool's worker
 * @t:     tier
 * @ns:    namespace
 * @bytes: that are to go, if as many can be moved at a time
 * Return: how many went; 0: none can go now.
 */
u32 kvt_limit_lower(struct kvt_pool *p, struct kvt_tier *t, struct kvt_ns *ns, u64 bytes)
{
	u32 i, gone = 0;

	for (i = 0; i < ns->nr_groups && !gone; i++) {
		u64 slot = kvt_limit_bytes(t, kvt_slot_bytes(&ns->group[i]));
		u32 nr = min_t(u64, DIV64_U64_ROUND_UP(bytes, slot), KVT_MOVE_BATCH);

		if (READ_ONCE(ns->group[i].own[t->id].nr_blocks))
			gone = kvt_limit_lower_own(p, t, kvt_ns_group(ns->idx, i), nr);
	}
	return gone;
}

/**
 * kvt_limit_room() - may a namespace have a slot of a tier
 * @p:  pool; no spinlock held, srcu held, may sleep; called by the pool's worker
 * @t:  memory tier
 * @ns: namespace
 * @slot_bytes: of the slot
 * Return: 1: as far as its limit goes; 0: not before, but some of its own went, so that is
 * worth trying again; -ENOSPC: no, and nothing can go.
 */
int kvt_limit_room(struct kvt_pool *p, struct kvt_tier *t, struct kvt_ns *ns, u32 slot_bytes)
{
	bool fits;

	spin_lock(&p->meta_lock);
	fits = kvt_limit_fits(ns, t, slot_bytes);
	spin_unlock(&p->meta_lock);
	if (fits)
		return 1;
	return kvt_limit_allows(t, ns, slot_bytes) && kvt_limit_lower(p, t, ns, slot_bytes) ?
	       0 : -ENOSPC;
}

/* --- the worker's part ------------------------------------------------------------------ */

/* The next namespace whose time has come, or NULL. */
static struct kvt_ns *kvt_limits_next(struct kvt_pool *p)
{
	struct kvt_ns *ns, *found = NULL;
	u32 n;

	spin_lock(&p->meta_lock);
	for (n = 0; n < KVT_OVER_LOOKS && !list_empty(&p->over) && !found; n++) {
		ns = list_first_entry(&p->over, struct kvt_ns, over_link);
		list_move_tail(&ns->over_link, &p->over);
		if (time_after_eq(jiffies, ns->over_at))
			found = ns;
	}
	spin_unlock(&p->meta_lock);
	return found;
}

/* What is to leave a tier goes, as far as it can. Whether any did. */
static bool kvt_limits_balance(struct kvt_pool *p, struct kvt_tier *t, struct kvt_ns *ns)
{
	struct kvt_share *s = &ns->share[t->id];
	bool any;
	u64 go;

	spin_lock(&p->meta_lock);
	go = kvt_share_to_go(s, READ_ONCE(p->watermark_high_percent),
			     READ_ONCE(p->watermark_low_percent));
	spin_unlock(&p->meta_lock);
	if (!go || t->state != KVTIER_TIER_ONLINE)
		return false;
	any = kvt_limit_lower(p, t, ns, go);
	if (any)
		return true;
	spin_lock(&p->meta_lock);
	kvt_share_give_up(s);
	spin_unlock(&p->meta_lock);
	return false;
}

/* Nothing of it can go now. If it has more than it may it is looked at again later. */
static void kvt_limits_rest(struct kvt_pool *p, struct kvt_ns *ns)
{
	bool over = false;
	u32 i;

	spin_lock(&p->meta_lock);
	for (i = 0; i < KVT_TIERS; i++)
		over |= kvt_share_excess(&ns->share[i], 100);
	if (over)
		ns->over_at = jiffies + KVT_OVER_DELAY;
	else
		list_del_init(&ns->over_link);
	spin_unlock(&p->meta_lock);
}

/**
 * kvt_limits_work() - lower one of the namespaces that are near or above a limit
 * @p: pool; srcu held, may sleep; called by its worker, which alone frees namespaces
 * Return: whether anything was achieved.
 */
bool kvt_limits_work(struct kvt_pool *p)
{
	struct kvt_ns *ns = list_empty_careful(&p->over) ? NULL : kvt_limits_next(p);
	struct kvt_tier *t[KVT_TIERS];
	bool any = false;
	u32 nr;

	if (!ns)
		return false;
	/* Slowest first, so that there is room below. */
	nr = kvt_tier_snapshot(p, t, false);
	while (nr--)
		any |= kvt_limits_balance(p, t[nr], ns);
	if (!any)
		kvt_limits_rest(p, ns);
	return any;
}

/* --- what comes and goes ------------------------------------------------------------------ */

/* A new namespace. */
void kvt_limits_init(struct kvt_ns *ns)
{
	u32 i;

	INIT_LIST_HEAD(&ns->over_link);
	for (i = 0; i < KVT_TIERS; i++)
		kvt_share_init(&ns->share[i]);
}

/**
 * kvt_limits_ns_gone() - a namespace ends
 * @p:  pool
 * @ns: namespace without blocks and files, its directory gone, that is still in @p->ns:
 *      kvt_limits_tier_gone() has seen it, or does not find a guarantee
 */
void kvt_limits_ns_gone(struct kvt_pool *p, struct kvt_ns *ns)
{
	u32 i;

	spin_lock(&p->meta_lock);
	list_del_init(&ns->over_link);
	for (i = 0; i < KVT_TIERS; i++) {
		if (p->tiers[i])
			p->tiers[i]->min_bytes -= ns->share[i].min;
		ns->share[i].min = 0;
	}
	spin_unlock(&p->meta_lock);
}

static void kvt_limits_forget(struct kvt_ns *ns, void *id)
{
	struct kvt_share *s = &ns->share[*(u32 *)id];

	s->limit = KVT_SHARE_ALL;
	s->min = 0;
	kvt_share_give_up(s);
}

/**
 * kvt_limits_tier_gone() - a tier is not in the pool any more
 * @p:  pool; may sleep
 * @id: its number, which nobody gets before this has returned
 */
void kvt_limits_tier_gone(struct kvt_pool *p, u32 id)
{
	kvt_ns_for_each(p, kvt_limits_forget, &id);
}

/* --- sysfs ------------------------------------------------------------------------------ */

static struct kvt_tier *kvt_limits_tier(struct kvt_pool *p, const char *name)
{
	u32 i;

	lockdep_assert_held(&p->meta_lock);
	for (i = 0; i < p->nr_tiers; i++) {
		struct kvt_tier *t = p->tiers[p->order[i]];

		if (!strcmp(t->args.name, name))
			return t;
	}
	return NULL;
}

static int kvt_limits_set_min(struct kvt_share *s, struct kvt_tier *t, u64 bytes)
{
	/* Of memory NS_OPEN's min_bytes is the guarantee. */
	if (t->ops->is_mem)
		return -EINVAL;
	if (!kvt_share_may_promise(s, bytes, t->min_bytes, kvt_log_capacity(t)))
		return -ENOSPC;
	t->min_bytes += bytes - s->min;
	s->min = bytes;
	return 0;
}

static int kvt_limits_set(struct kvt_ns *ns, const char *name, u64 bytes, bool min)
{
	struct kvt_pool *p = ns->pool;
	struct kvt_tier *t;
	int err = 0;

	spin_lock(&p->meta_lock);
	t = kvt_limits_tier(p, name);
	if (!t) {
		err = -ENOENT;
	} else if (min) {
		err = kvt_limits_set_min(&ns->share[t->id], t, bytes);
	} else {
		ns->share[t->id].limit = bytes;
		kvt_limit_note(ns);
	}
	spin_unlock(&p->meta_lock);
	if (err)
		return err;
	kvt_reclaim_kick(p);
	/* With more room, who waits for a slot may have one at once. */
	kvt_room_wake(p);
	return 0;
}

/**
 * kvt_limits_store() - what is written to tier_limits or tier_mins
 * @ns:  namespace; may sleep
 * @buf: name of a tier, a blank, and bytes or, for a limit, "max"
 * @min: it is tier_mins
 * Return: 0; -EINVAL; -ENOENT: no such tier; -ENOSPC: more than can be promised; -ERANGE:
 * no number of 64 bits; -ENOMEM.
 */
int kvt_limits_store(struct kvt_ns *ns, const char *buf, bool min)
{
	char *line = kstrdup(buf, GFP_KERNEL), *name, *val;
	u64 bytes = KVT_SHARE_ALL;
	int err = -EINVAL;

	if (!line)
		return -ENOMEM;
	name = strim(line);
	val = strrchr(name, ' ');
	if (val) {
		*val++ = 0;
		err = !min && !strcmp(val, "max") ? 0 : kstrtou64(val, 0, &bytes);
		if (!err)
			err = kvt_limits_set(ns, strim(name), bytes, min);
	}
	kfree(line);
	return err;
}

/* A tier as it is shown: its name, and the namespace's share of it. */
struct kvt_share_line {
	char name[KVTIER_NAME_MAX];
	struct kvt_share share;
};

/* Of the tier of this rank, fastest first. False: there are no more. */
static bool kvt_shares_get(struct kvt_ns *ns, u32 i, struct kvt_share_line *l)
{
	struct kvt_pool *p = ns->pool;
	bool there;

	spin_lock(&p->meta_lock);
	there = i < p->nr_tiers;
	if (there) {
		strscpy(l->name, p->tiers[p->order[i]]->args.name, sizeof(l->name));
		l->share = ns->share[p->order[i]];
	}
	spin_unlock(&p->meta_lock);
	return there;
}

/* A line for each tier that has one: its name, bytes used, and limit or minimum. */
static ssize_t kvt_bounds_show(struct kvt_ns *ns, char *buf, bool min)
{
	const u64 none = min ? 0 : KVT_SHARE_ALL;
	struct kvt_share_line l;
	ssize_t len = 0;
	u64 bound;
	u32 i;

	for (i = 0; kvt_shares_get(ns, i, &l); i++) {
		bound = min ? l.share.min : l.share.limit;
		if (bound != none)
			len += sysfs_emit_at(buf, len, "%s %llu %llu\n", l.name, l.share.used,
					     bound);
	}
	return len;
}

/**
 * kvt_limits_show() - a line for each limit: tier, bytes used, limit
 * @ns:  namespace
 * @buf: a page
 */
ssize_t kvt_limits_show(struct kvt_ns *ns, char *buf)
{
	return kvt_bounds_show(ns, buf, false);
}

/**
 * kvt_mins_show() - a line for each minimum: tier, bytes used, minimum
 * @ns:  namespace
 * @buf: a page
 */
ssize_t kvt_mins_show(struct kvt_ns *ns, char *buf)
{
	return kvt_bounds_show(ns, buf, true);
}

/**
 * kvt_shares_show() - a line for each tier: its name, bytes used
 * @ns:  namespace
 * @buf: a page
 */
ssize_t kvt_shares_show(struct kvt_ns *ns, char *buf)
{
	struct kvt_share_line l;
	ssize_t len = 0;
	u32 i;

	for (i = 0; kvt_shares_get(ns, i, &l); i++)
		len += sysfs_emit_at(buf, len, "%s %llu\n", l.name, l.share.used);
	return len;
}
