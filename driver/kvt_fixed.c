// SPDX-License-Identifier: GPL-2.0
/*
 * What namespaces may keep in place by leases and reservations.
 *
 * What is leased or being filled does not move, and no call takes it away: whoever fixed
 * a slot in every region of the pool would leave no memory for anybody else, for as long
 * as he likes. So each namespace has a limit, whatever number of files its clients open:
 * see core/kvt_fix.h for what counts. By default it leaves to others a sixteenth of the
 * pool's memory; root can set another. Guarantees do not lower it: each namespace asks for its
 * own, and whoever asked for all there is would take leasing from the others.
 *
 * Nor can several do what one cannot. Of the memory that is not in use within guarantees the
 * last part, up to a sixteenth of all, is for namespaces that have no more than they leave, and
 * the last half of that for owners (uids) who have not. What is in quarantine is not there for
 * that. And what an owner has pinned that cannot go down is taken from what he may have in
 * all, but not from others' part: he may have leased the same. Whom root has given more than
 * the default, of then and of now, is not held to any of it.
 *
 * Who may have no more is refused a lease or reservation in a region that is not fixed yet.
 * Nothing is taken from those who have one: a limit lowered below what is fixed lets nothing
 * new in until enough has been given back. Arenas are paid for with guarantees, so what is in
 * them is never refused, but counts.
 *
 * Memory that is being drained, or was lost with leases in it, counts for that, as what is fixed
 * in there does: who holds on to it leaves others no less. As long as it is there the others'
 * part may be taken instead.
 *
 * A block's first lease may be refused after it was taken. So that nobody can lease the block
 * on the strength of that meanwhile, leases are taken under the lock of the block's shard.
 * EXPORT does not need it: it leases what is leased.
 *
 * Invariant: an owner's sum is that of his namespaces, and the pool's that of all. A namespace
 * stays in the sum of who had it when it came to the pool, though root may give it to another
 * (NS_CLAIM): amounts that change meanwhile could not be moved.
 */
#include <linux/jiffies.h>
#include <linux/kstrtox.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "kvt_lease.h"
#include "tier.h"

#define KVT_FIXED_MOST	(1 << 30)	/* pieces */
static_assert(KVT_WINDOW_BYTES >> KVT_PIECE_SHIFT < KVT_FIXED_MOST / 2);

/* How many namespaces of a pool a user has, or had when they came to it. conf_lock held. */
u32 kvt_fixed_nr_ns(struct kvt_pool *p, kuid_t uid)
{
	const struct kvt_fixed_owner *o = xa_load(&p->fixed.owners, __kuid_val(uid));

	lockdep_assert_held(&p->conf_lock);
	return o ? o->nr_ns : 0;
}

/**
 * kvt_fixed_prepare() - what kvt_fixed_join() may need for a namespace
 * @ns: new, with its pool; may sleep
 * Return: 0 or -ENOMEM. Ends with kvt_fixed_leave().
 */
int kvt_fixed_prepare(struct kvt_ns *ns)
{
	struct kvt_fixed_owner *o = kzalloc(sizeof(*o), GFP_KERNEL_ACCOUNT);

	if (!o)
		return -ENOMEM;
	INIT_LIST_HEAD(&o->lingering);
	INIT_LIST_HEAD(&o->turn);
	ns->fixed.owner = o;
	return 0;
}

/**
 * kvt_fixed_join() - a namespace gets its account, with its owner's other ones or a new one
 * @ns: prepared, with an owner, not in its pool yet; conf_lock held
 *
 * It has no limit of root's: that lasts as long as the namespace does in this pool.
 * Return: 0 or -ENOMEM.
 */
int kvt_fixed_join(struct kvt_ns *ns)
{
	struct xarray *owners = &ns->pool->fixed.owners;
	struct kvt_fixed_owner *o = xa_load(owners, __kuid_val(ns->uid));
	struct kvt_fixed *f = &ns->fixed;

	lockdep_assert_held(&ns->pool->conf_lock);
	if (o) {
		kfree(f->owner);
	} else {
		o = f->owner;
		o->uid = ns->uid;
		if (xa_err(xa_store(owners, __kuid_val(o->uid), o, GFP_KERNEL)))
			return -ENOMEM;
	}
	o->nr_ns++;
	f->owner = o;
	f->limit_bytes = KVT_LIMIT_DEFAULT;
	f->account.owner = &o->pieces;
	f->account.pool = &ns->pool->fixed.beyond;
	return 0;
}

/**
 * kvt_fixed_promise() - what is guaranteed to a namespace is granted
 * @ns: which has joined, and is not in its pool yet; conf_lock held
 *
 * In pieces, rounded down: many small guarantees are not to be more than their sum, which is
 * far less than the most that an owner can be said to have, unless a disk was forged.
 */
void kvt_fixed_promise(struct kvt_ns *ns)
{
	atomic_t *has = &ns->fixed.owner->pieces;
	int left = KVT_FIXED_MOST - min(atomic_read(has), KVT_FIXED_MOST);

	ns->fixed.account.promised = (int)min_t(u64, ns->min_bytes >> KVT_PIECE_SHIFT, left);
	atomic_add(ns->fixed.account.promised, has);
}

/**
 * kvt_fixed_leave() - a namespace ends
 * @ns: which has nothing fixed; conf_lock held. Or has not joined
 */
void kvt_fixed_leave(struct kvt_ns *ns)
{
	struct kvt_fixed_owner *o = ns->fixed.owner;

	if (!o)
		return;
	atomic_sub(ns->fixed.account.promised, &o->pieces);
	ns->fixed.owner = NULL;
	/* One that it was prepared with is nobody else's. */
	if (!o->nr_ns) {
		kfree(o);
		return;
	}
	if (--o->nr_ns)
		return;
	xa_erase(&ns->pool->fixed.owners, __kuid_val(o->uid));
	kfree(o);
}

/* What there is for regions. A piece counts if some of its slots are retired, and some not. */
static u32 kvt_fixed_pieces(const struct kvt_tier *t)
{
	u32 away = READ_ONCE(t->mem.nr_absent) + READ_ONCE(t->mem.nr_retired);

	return t->nr_pieces - min(away, t->nr_pieces);
}

/* srcu or meta lock held. Of what others change meanwhile, old values will do. */
static void kvt_fixed_sum(struct kvt_pool *p, struct kvt_fixed_sum *s)
{
	u64 guarded = READ_ONCE(p->guarded_bytes), away = 0;
	u32 i;

	*s = (struct kvt_fixed_sum) { 0 };
	for (i = 0; i < KVT_TIERS; i++) {
		const struct kvt_tier *t = kvt_tier_at(p, i);

		if (!t || !t->ops->is_mem)
			continue;
		s->whole += kvt_fixed_pieces(t);
		away += (u64)atomic64_read(&t->count.quarantined_bytes);
		if (READ_ONCE(t->state) == KVTIER_TIER_ONLINE)
			s->online += kvt_fixed_pieces(t);
	}
	s->whole -= min_t(u64, away >> KVT_PIECE_SHIFT, s->whole);
	s->free = s->whole - min_t(u64, DIV_ROUND_UP_ULL(guarded, KVT_PIECE_BYTES), s->whole);
	s->stuck = kvt_kept_stuck_bytes(p) >> KVT_PIECE_SHIFT;
}

/*
 * The same, as it was lately: asking all tiers costs as much as a hit does otherwise. Each number
 * is of this jiffy, or of one about that time if others have been writing them since.
 */
static void kvt_fixed_recent(struct kvt_pool *p, struct kvt_fixed_sum *s)
{
	struct kvt_fixed_all *f = &p->fixed;
	unsigned long now = jiffies;

	/* Pairs with the one below: what was worked out then has been written. */
	if (likely(smp_load_acquire(&f->at_jiffy) == now)) {
		s->online = READ_ONCE(f->sum.online);
		s->whole = READ_ONCE(f->sum.whole);
		s->free = READ_ONCE(f->sum.free);
		s->stuck = READ_ONCE(f->sum.stuck);
		return;
	}
	kvt_fixed_sum(p, s);
	WRITE_ONCE(f->sum.online, s->online);
	WRITE_ONCE(f->sum.whole, s->whole);
	WRITE_ONCE(f->sum.free, s->free);
	WRITE_ONCE(f->sum.stuck, s->stuck);
	/* Pairs with the one above. */
	smp_store_release(&f->at_jiffy, now);
}

/* A namespace's limit in pieces, of so many. */
static u32 kvt_fixed_default(u32 online)
{
	return online - online / KVT_FIX_SPARE;
}

/* What a namespace has fixed, in bytes of regions. */
u64 kvt_fixed_bytes(const struct kvt_ns *ns)
{
	return (u64)atomic_read(&ns->fixed.account.pieces) << KVT_PIECE_SHIFT;
}

/**
 * kvt_fixed_limit() - what a namespace may fix, if that leaves others enough
 * @p:  pool; srcu or meta lock held
 * @ns: namespace
 * Return: bytes of regions.
 */
u64 kvt_fixed_limit(struct kvt_pool *p, const struct kvt_ns *ns)
{
	u64 limit = READ_ONCE(ns->fixed.limit_bytes);
	struct kvt_fixed_sum s;

	if (limit != KVT_LIMIT_DEFAULT)
		return limit;
	kvt_fixed_sum(p, &s);
	return (u64)kvt_fixed_default(s.online) << KVT_PIECE_SHIFT;
}

/* What holds for a namespace if that is what there is. */
static void kvt_fixed_rules(const struct kvt_ns *ns, const struct kvt_fixed_sum *s,
			    struct kvt_fix_rules *r)
{
	u64 limit = READ_ONCE(ns->fixed.limit_bytes);
	u32 pinned;

	r->limit = (int)kvt_fixed_default(s->online);
	r->free = (int)s->free;
	r->spare = kvt_fix_spare((int)s->online, r->free);
	r->most = INT_MAX;
	if (limit != KVT_LIMIT_DEFAULT && READ_ONCE(ns->fixed.leave) &&
	    limit >> KVT_PIECE_SHIFT > (u64)r->limit) {
		r->spare = 0;
	} else if (s->stuck && r->spare) {
		pinned = READ_ONCE(ns->fixed.owner->kept_bytes[KVT_KEPT_PINNED]) >> KVT_PIECE_SHIFT;
		r->most = (int)(s->whole - min3(s->stuck, pinned, s->whole)) - (r->spare + 1) / 2;
	}
	if (limit != KVT_LIMIT_DEFAULT)
		r->limit = (int)(limit >> KVT_PIECE_SHIFT);
}

/**
 * kvt_slot_fix() - a slot is not to be moved
 * @p:     pool; srcu or meta lock held
 * @t:     memory tier
 * @page:  in a slot that the caller keeps, by meta lock or lease
 * @force: whatever the limit says
 * Return: false: its namespace may not have one more.
 */
bool kvt_slot_fix(struct kvt_pool *p, struct kvt_tier *t, u32 page, bool force)
{
	struct kvt_region *reg = kvt_mem_region_of(&t->mem, page);
	struct kvt_fix_account *a;
	struct kvt_fixed_sum s;
	struct kvt_fix_rules r;
	struct kvt_ns *ns;

	if (kvt_fix_more(reg))
		return true;
	ns = kvt_ns_of(p, reg->ns_group);
	a = &ns->fixed.account;
	if (force || READ_ONCE(reg->arena)) {
		kvt_fix_force(reg, a);
		return true;
	}
	kvt_fixed_recent(p, &s);
	kvt_fixed_rules(ns, &s, &r);
	if (likely(kvt_fix_first(reg, a, &r)))
		return true;
	/* That may have been true no longer. */
	kvt_fixed_sum(p, &s);
	kvt_fixed_rules(ns, &s, &r);
	return kvt_fix_first(reg, a, &r);
}

/**
 * kvt_slot_unfix() - a slot may be moved, or given back
 * @p:    pool
 * @t:    memory tier
 * @page: in a fixed slot that the caller still keeps
 */
void kvt_slot_unfix(struct kvt_pool *p, struct kvt_tier *t, u32 page)
{
	struct kvt_region *reg = kvt_mem_region_of(&t->mem, page);

	kvt_fix_put(reg, &kvt_ns_of(p, reg->ns_group)->fixed.account);
}

/*
 * The rest of kvt_lease_found(): nobody else has a lease of the block, and its region has to be
 * paid for.
 */
enum kvt_leased kvt_lease_first(struct kvt_pool *p, struct kvt_hot *h)
{
	if (kvt_slot_fix(p, p->tiers[h->mem_tier], h->mem_page, false))
		return KVT_LEASED;
	/* Nobody else has one, and dead it is not: who makes it so takes the shard's lock first. */
	kvt_lease_put(h);
	return KVT_LEASED_LIMIT;
}

/**
 * kvt_lease_take() - lease a block
 * @p:  pool; srcu or meta lock held, no shard locked
 * @id: block that cannot be freed meanwhile
 */
enum kvt_leased kvt_lease_take(struct kvt_pool *p, u32 id)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);
	struct kvt_shard *s = kvt_ix_shard(&p->index, h->hash);
	enum kvt_leased ret;

	spin_lock(&s->lock);
	ret = kvt_lease_found(p, h);
	spin_unlock(&s->lock);
	return ret;
}

/* A limit as root writes it: bytes, or "default". 0, -EINVAL or -ERANGE. */
static int kvt_limit_parse(const char *buf, u64 *limit)
{
	int err;

	*limit = KVT_LIMIT_DEFAULT;
	if (sysfs_streq(buf, "default"))
		return 0;
	err = kstrtou64(buf, 0, limit);
	return err ?: *limit > KVT_WINDOW_BYTES ? -EINVAL : 0;
}

ssize_t kvt_fixed_limit_show(struct kvt_ns *ns, char *buf)
{
	int idx = srcu_read_lock(&ns->pool->srcu);
	u64 limit = kvt_fixed_limit(ns->pool, ns);

	srcu_read_unlock(&ns->pool->srcu, idx);
	return sysfs_emit(buf, "%llu\n", limit);
}

int kvt_fixed_limit_store(struct kvt_ns *ns, const char *buf)
{
	struct kvt_fixed_sum s;
	u64 limit;
	int err = kvt_limit_parse(buf, &limit), idx;

	if (err)
		return err;
	idx = srcu_read_lock(&ns->pool->srcu);
	kvt_fixed_sum(ns->pool, &s);
	srcu_read_unlock(&ns->pool->srcu, idx);
	WRITE_ONCE(ns->fixed.leave, limit >> KVT_PIECE_SHIFT > kvt_fixed_default(s.online));
	WRITE_ONCE(ns->fixed.limit_bytes, limit);
	return 0;
}
