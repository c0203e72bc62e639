// SPDX-License-Identifier: GPL-2.0
/*
 * Weights: how namespaces share what is guaranteed to nobody.
 *
 * A namespace with a weight has a *part* of all memory, and of each block tier: its weight
 * divided by the sum of all weights, in which those without one count as KVT_WEIGHT_REST
 * together. It is a part of what minima leave of three quarters, so there is always somebody
 * who has more than his. As long as a namespace has no more than that beyond its minimum, its
 * blocks stay when others need room; beyond it they go by their worth like everybody's. What
 * it does not use is there for whoever does: nothing is set aside, and nobody is
 * stopped from having more than his part.
 *
 * So a weight is a minimum that adapts to what there is and to who else is there, and is not
 * refused when there is too little. Root sets it; it is not on the media, and goes with
 * the namespace.
 *
 * Invariant: p->weights is the sum of all namespaces' kept.weight.
 *
 * Lock: the meta lock for everything.
 */
#include <linux/kstrtox.h>
#include <linux/math64.h>
#include <linux/sysfs.h>

#include "kvt_internal.h"
#include "kvt_mlog.h"

static u64 kvt_weight_less(u64 bytes, u64 by)
{
	return bytes - min(bytes, by);
}

/* A namespace's part of what is left of @all when @promised has been taken off. */
static u64 kvt_weight_part(const struct kvt_pool *p, const struct kvt_ns *ns, u64 all,
			   u64 promised)
{
	u64 rest = kvt_weight_less(kvt_share_promise(all), promised);

	return div64_u64(rest, p->weights + KVT_WEIGHT_REST) * ns->kept.weight;
}

/**
 * kvt_weight_guarded() - is what a namespace has on a tier within its part
 * @p:  pool, meta lock held
 * @t:  tier
 * @ns: namespace
 * @leaving_bytes: what of that is to leave the tier already
 * @coming_bytes: what is to come there from another tier
 */
bool kvt_weight_guarded(struct kvt_pool *p, const struct kvt_tier *t, const struct kvt_ns *ns,
			u64 leaving_bytes, u64 coming_bytes)
{
	u64 promised = READ_ONCE(p->guaranteed_bytes), capacity, has;
	const struct kvt_share *s = &ns->share[t->id];

	lockdep_assert_held(&p->meta_lock);
	/* Nearly always, and asked for each block that is to go. */
	if (!ns->kept.weight)
		return false;
	has = kvt_weight_less(t->ops->is_mem ? ns->mem_bytes : s->used, leaving_bytes) +
	      coming_bytes;
	if (t->ops->is_mem)
		return kvt_weight_less(has, kvt_ns_min_bytes(p, ns)) <=
		       kvt_weight_part(p, ns, kvt_mem_capacity(p), promised);
	/* One that is being emptied keeps nothing. Nor does one that cannot keep all minima. */
	capacity = kvt_log_capacity(t);
	return t->state == KVTIER_TIER_ONLINE && t->min_bytes <= kvt_share_promise(capacity) &&
	       kvt_weight_less(has, s->min) <=
	       kvt_weight_part(p, ns, capacity, promised + t->min_bytes);
}

/**
 * kvt_weight_set() - change a namespace's weight
 * @ns:     namespace, its pool's meta lock held
 * @weight: up to KVT_WEIGHT_MAX; 0: none, as it has to be when it goes
 */
void kvt_weight_set(struct kvt_ns *ns, u32 weight)
{
	lockdep_assert_held(&ns->pool->meta_lock);
	ns->pool->weights -= ns->kept.weight;
	ns->pool->weights += weight;
	ns->kept.weight = weight;
}

ssize_t kvt_weight_show(struct kvt_ns *ns, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(ns->kept.weight));
}

int kvt_weight_store(struct kvt_ns *ns, const char *buf)
{
	u32 weight;
	int err = kstrtou32(buf, 0, &weight);

	if (err)
		return err;
	if (weight > KVT_WEIGHT_MAX)
		return -ERANGE;
	spin_lock(&ns->pool->meta_lock);
	kvt_weight_set(ns, weight);
	spin_unlock(&ns->pool->meta_lock);
	return 0;
}
