// SPDX-License-Identifier: GPL-2.0
/*
 * What one namespace may keep in place by leases and reservations.
 *
 * What is leased or being filled does not move, and no call takes it away: whoever fixed
 * a slot in every region of the pool would leave no memory for anybody else, for as long
 * as he likes. So each namespace has a limit, whatever number of files its clients open:
 * see core/kvt_fix.h for what counts. By default it leaves to others a sixteenth of the
 * pool's memory; root can set another. Guarantees do not lower it: each namespace asks for its
 * own, and whoever asked for all there is would take leasing from the others.
 *
 * At the limit a lease or reservation in a region that is not fixed yet is refused. Nothing
 * is taken from those who have one: a limit lowered below what is fixed lets nothing new in
 * until enough has been given back. Arenas are paid for with guarantees, so what is in them is
 * never refused, but counts.
 *
 * A block's first lease may be refused after it was taken. So that nobody can lease the block
 * on the strength of that meanwhile, leases are taken under the lock of the block's shard.
 * EXPORT does not need it: it leases what is leased.
 */
#include <linux/jiffies.h>
#include <linux/kstrtox.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "kvt_lease.h"

#define KVT_FIXED_SPARE		16	/* part of the memory that is left to others */

/* None of root's: that lasts as long as the namespace does in this pool. */
void kvt_fixed_init(struct kvt_fixed *f)
{
	f->limit_bytes = KVT_LIMIT_DEFAULT;
}

/* What there is for regions. A piece counts if some of its slots are retired, and some not. */
static u32 kvt_fixed_pieces(const struct kvt_tier *t)
{
	u32 away = READ_ONCE(t->mem.nr_absent) + READ_ONCE(t->mem.nr_retired);

	return t->nr_pieces - min(away, t->nr_pieces);
}

/**
 * kvt_fixed_limit() - what a namespace may fix
 * @p:  pool; srcu or meta lock held
 * @ns: namespace
 * Return: bytes of regions.
 */
u64 kvt_fixed_limit(struct kvt_pool *p, const struct kvt_ns *ns)
{
	u64 limit = READ_ONCE(ns->fixed.limit_bytes);
	u32 all = 0, i;

	if (limit != KVT_LIMIT_DEFAULT)
		return limit;
	for (i = 0; i < KVT_TIERS; i++) {
		const struct kvt_tier *t = kvt_tier_at(p, i);

		if (t && t->ops->is_mem && READ_ONCE(t->state) == KVTIER_TIER_ONLINE)
			all += kvt_fixed_pieces(t);
	}
	return (u64)(all - all / KVT_FIXED_SPARE) << KVT_PIECE_SHIFT;
}

/*
 * The same in pieces, for who pays for some more so that it has @want then. Asking all tiers
 * costs as much as a hit does otherwise, so an answer is good for a jiffy, unless it gets near.
 */
static int kvt_fixed_limit_now(struct kvt_pool *p, struct kvt_ns *ns, u32 want)
{
	u32 now = (u32)jiffies, limit;
	u64 hint = READ_ONCE(ns->fixed.hint);

	if (upper_32_bits(hint) == now && lower_32_bits(hint) / 2 >= want &&
	    READ_ONCE(ns->fixed.limit_bytes) == KVT_LIMIT_DEFAULT)
		return (int)lower_32_bits(hint);
	limit = min_t(u64, kvt_fixed_limit(p, ns) >> KVT_PIECE_SHIFT, KVT_FIX_NO_LIMIT);
	WRITE_ONCE(ns->fixed.hint, (u64)now << 32 | limit);
	return (int)limit;
}

/* What a namespace has fixed, in bytes of regions. */
u64 kvt_fixed_bytes(const struct kvt_ns *ns)
{
	return (u64)atomic_read(&ns->fixed.pieces) << KVT_PIECE_SHIFT;
}

/**
 * kvt_slot_fix() - a slot is not to be moved
 * @p:     pool; srcu or meta lock held
 * @t:     memory tier
 * @page:  in a slot that the caller keeps, by meta lock or lease
 * @force: whatever the limit says
 * Return: false: its namespace is at the limit.
 */
bool kvt_slot_fix(struct kvt_pool *p, struct kvt_tier *t, u32 page, bool force)
{
	struct kvt_region *reg = kvt_mem_region_of(&t->mem, page);
	int limit = KVT_FIX_NO_LIMIT;
	struct kvt_ns *ns;

	if (kvt_fix_more(reg))
		return true;
	ns = kvt_ns_of(p, reg->ns_group);
	if (!force && !READ_ONCE(reg->arena))
		limit = kvt_fixed_limit_now(p, ns, (u32)atomic_read(&ns->fixed.pieces) +
					    reg->nr_pieces);
	return kvt_fix_first(reg, &ns->fixed.pieces, limit);
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

	kvt_fix_put(reg, &kvt_ns_of(p, reg->ns_group)->fixed.pieces);
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
	u64 limit;
	int err = kvt_limit_parse(buf, &limit);

	if (!err)
		WRITE_ONCE(ns->fixed.limit_bytes, limit);
	return err;
}
