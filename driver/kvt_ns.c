// SPDX-License-Identifier: GPL-2.0
/*
 * Namespaces: who may see which blocks.
 *
 * A namespace is found by (owner, secret, identity), the owner being the opener
 * of the file or whom he names. Rights are those of the credentials the file was
 * opened with, and are checked when it is bound, as open(2) does; what somebody else
 * has and its mode does not show him is answered like what is not there. It lives as
 * long as it has open files, blocks or regions; the pool's worker frees it after that.
 * Its index, part of every block's name, is not given to another before then.
 *
 * Locks: conf_lock for finding, creating and freeing; meta lock for its counts.
 */
#include <linux/cleanup.h>
#include <linux/cred.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "kvt_internal.h"
#include "kvt_mlog.h"
#include "kvt_test.h"

#define KVT_NS_STEP	1024u	/* namespaces under one hold of the meta lock */
#define KVT_NS_REAPED	64u	/* and freed under one of the conf_lock, if there are many */

static int kvt_ns_copy_args(const struct kvtier_ns_open *o, struct kvt_ns_args *a)
{
	u32 i;

	if (!o->identity_len || o->identity_len > KVTIER_IDENTITY_MAX ||
	    o->nr_groups > KVTIER_GROUPS_MAX)
		return -EINVAL;
	if ((o->flags & KVTIER_NS_CREATE) && !o->nr_groups)
		return -EINVAL;
	if ((o->flags & KVTIER_NS_EXCL) && !(o->flags & KVTIER_NS_CREATE))
		return -EINVAL;
	/* Nobody makes namespaces for others. */
	if ((o->flags & KVTIER_NS_OWNER) && (o->flags & KVTIER_NS_CREATE))
		return -EINVAL;
	if (!(o->flags & KVTIER_NS_OWNER) && o->owner_uid)
		return -EOPNOTSUPP;
	if (o->mode & ~0777u)
		return -EINVAL;
	if (copy_from_user(a->identity, u64_to_user_ptr(o->identity), o->identity_len))
		return -EFAULT;
	if (o->secret && copy_from_user(a->secret, u64_to_user_ptr(o->secret),
					KVTIER_SECRET_BYTES))
		return -EFAULT;
	a->identity_len = o->identity_len;
	if (copy_from_user(a->group, u64_to_user_ptr(o->groups),
			   o->nr_groups * sizeof(a->group[0])))
		return -EFAULT;
	for (i = 0; i < o->nr_groups; i++) {
		if (a->group[i].flags || a->group[i].__reserved)
			return -EOPNOTSUPP;
		if (!a->group[i].block_bytes ||
		    a->group[i].block_bytes > KVTIER_BLOCK_BYTES_MAX)
			return -EINVAL;
	}
	return 0;
}

static bool kvt_ns_same_groups(const struct kvt_ns *ns, const struct kvtier_ns_open *o,
			       const struct kvt_ns_args *a)
{
	u32 i;

	if (!o->nr_groups)
		return true;
	if (o->nr_groups != ns->nr_groups)
		return false;
	for (i = 0; i < ns->nr_groups; i++) {
		if (ns->group[i].block_bytes != a->group[i].block_bytes)
			return false;
	}
	return true;
}

/* Of the memory tiers that take blocks, in bytes. Meta lock held. */
u64 kvt_mem_capacity(struct kvt_pool *p)
{
	u64 sum = 0;
	u32 i;

	lockdep_assert_held(&p->meta_lock);
	for (i = 0; i < p->nr_tiers; i++) {
		const struct kvt_tier *t = p->tiers[p->order[i]];

		if (t->ops->is_mem && t->state == KVTIER_TIER_ONLINE)
			sum += kvt_tier_present_bytes(t);
	}
	return sum;
}

/**
 * kvt_ns_min_bytes() - memory that is guaranteed to a namespace as things are
 * @p:  pool, meta lock held
 * @ns: namespace
 *
 * More may have been promised than there is: memory has been taken out, or an assembled
 * pool has not got all of it back. If every promise counted then, no block at all could
 * be evicted for another namespace; so none does until all can be kept.
 * Return: bytes.
 */
u64 kvt_ns_min_bytes(struct kvt_pool *p, const struct kvt_ns *ns)
{
	if (!ns->min_bytes || READ_ONCE(p->guaranteed_bytes) > kvt_mem_capacity(p))
		return 0;
	return ns->min_bytes;
}

/* conf_lock held. */
static void kvt_ns_guarantee(struct kvt_pool *p, s64 bytes)
{
	lockdep_assert_held(&p->conf_lock);
	WRITE_ONCE(p->guaranteed_bytes, p->guaranteed_bytes + bytes);
}

/* Pieces that would be enough to promise so much in all, on whichever tier has them. */
static void kvt_ns_short(struct kvt_pool *p, u64 promised_bytes)
{
	u64 all_bytes = promised_bytes + DIV_ROUND_UP_ULL(promised_bytes, KVT_FIX_SPARE - 1);
	u64 pieces = DIV_ROUND_UP_ULL(all_bytes - min(all_bytes, kvt_mem_capacity(p)),
				      KVT_PIECE_BYTES);
	u32 i;

	lockdep_assert_held(&p->meta_lock);
	for (i = 0; i < p->nr_tiers; i++) {
		struct kvt_tier *t = p->tiers[p->order[i]];
		u32 here = min_t(u64, pieces, t->mem.nr_absent);

		if (t->ops->is_mem && t->state == KVTIER_TIER_ONLINE && here)
			kvt_shrink_short(t, t->mem.nr_free + here);
	}
}

/* What can be guaranteed of so much memory: who was promised nothing needs some, too. */
static u64 kvt_ns_promise_bytes(u64 capacity)
{
	return capacity - (capacity / KVT_FIX_SPARE >> KVT_PIECE_SHIFT << KVT_PIECE_SHIFT);
}

/* Guarantee memory that is there: from here on no tier gives it away. conf_lock held. */
static int kvt_ns_promise(struct kvt_pool *p, u64 bytes)
{
	u64 capacity, left;

	spin_lock(&p->meta_lock);
	capacity = kvt_ns_promise_bytes(kvt_mem_capacity(p));
	left = capacity - min(p->guaranteed_bytes, capacity);
	if (bytes <= left)
		kvt_ns_guarantee(p, bytes);
	else
		kvt_ns_short(p, p->guaranteed_bytes + min(bytes, KVT_WINDOW_BYTES));
	spin_unlock(&p->meta_lock);
	return bytes <= left ? 0 : -ENOSPC;
}

static void kvt_ns_fill(struct kvt_ns *ns, struct kvt_pool *p, const struct cred *cred,
			const struct kvtier_ns_open *o, const struct kvt_ns_args *a)
{
	u32 i, t;

	ns->pool = p;
	ns->uid = cred->fsuid;
	ns->gid = cred->fsgid;
	ns->mode = o->mode;
	ns->identity_len = o->identity_len;
	memcpy(ns->identity, a->identity, o->identity_len);
	ns->has_secret = a->has_secret;
	memcpy(ns->salt, p->names.salt, sizeof(ns->salt));
	memcpy(ns->secret, a->hash, sizeof(ns->secret));
	ns->quota_bytes = o->quota_bytes;
	ns->min_bytes = o->min_bytes;
	ns->nr_groups = o->nr_groups;
	for (i = 0; i < o->nr_groups; i++) {
		struct kvt_group *g = &ns->group[i];

		g->block_bytes = a->group[i].block_bytes;
		g->slot_pages = DIV_ROUND_UP(g->block_bytes, KVTIER_SLOT_ALIGN);
		for (t = 0; t < KVT_TIERS; t++)
			g->owner[t].partial = KVT_NO_REGION;
	}
}

static void kvt_ns_free(struct kvt_ns *ns)
{
	kvt_fixed_leave(ns);
	kvt_charge_forget(ns);
	kvt_maps_free(&ns->maps);
	free_percpu(ns->counts);
	kvfree(ns->mind);
	kfree_sensitive(ns);
}

/* What goes with a namespace. Whether all of it could be had; else kvt_ns_free(). */
static bool kvt_ns_alloc_parts(struct kvt_ns *ns)
{
	u32 i;

	ns->mind = kvmalloc(sizeof(*ns->mind), GFP_KERNEL_ACCOUNT);
	ns->counts = alloc_percpu_gfp(struct kvt_counts, GFP_KERNEL_ACCOUNT);
	if (kvt_maps_init(&ns->maps) || !ns->mind || !ns->counts || kvt_fixed_prepare(ns))
		return false;
	kvt_mind_init(ns->mind);
	for (i = 0; i < KVT_GUESSES; i++)
		kvt_trust_init(&ns->trust[i], kvt_now_ms());
	return true;
}

/**
 * kvt_ns_mind_of() - what the policy has learned of a namespace
 * @policy: of a pool, meta lock held
 * @idx:    namespace that has blocks
 */
struct kvt_mind *kvt_ns_mind_of(const struct kvt_policy *policy, u32 idx)
{
	const struct kvt_pool *p = container_of(policy, struct kvt_pool, policy);
	struct kvt_ns *ns = xa_load((struct xarray *)&p->ns, idx);

	return ns->mind;
}

/* The policy is spared the question if there is but one namespace. conf_lock held. */
static void kvt_ns_only(struct kvt_pool *p)
{
	unsigned long idx = 0;
	struct kvt_ns *ns = NULL;

	lockdep_assert_held(&p->conf_lock);
	if (p->nr_ns == 1)
		ns = xa_find(&p->ns, &idx, ULONG_MAX, XA_PRESENT);
	spin_lock(&p->meta_lock);
	p->policy.only = ns ? ns->mind : NULL;
	spin_unlock(&p->meta_lock);
}

static void kvt_ns_set_limit(struct kvt_pool *p, u64 limit)
{
	spin_lock(&p->meta_lock);
	p->ns_limit = limit;
	spin_unlock(&p->meta_lock);
}

/*
 * An id that no member has seen. They know of it before it is used, or it might be
 * given again after a crash; one that is given up gets no blocks of it.
 */
static int kvt_ns_new_id(struct kvt_pool *p, u64 *id)
{
	u64 limit = p->ns_limit;
	int err, idx;

	lockdep_assert_held(&p->conf_lock);
	*id = ++p->next_ns_id;
	if (*id < limit)
		return 0;
	/* A superblock that says more is refused; only a forged one is near it. */
	if (*id >= KVT_LIFE_MAX - KVT_NS_ID_STEP)
		return -ENOSPC;
	kvt_ns_set_limit(p, *id + KVT_NS_ID_STEP);
	idx = srcu_read_lock(&p->srcu);
	err = kvt_mlog_update_supers(p);
	srcu_read_unlock(&p->srcu, idx);
	/* The next one has to try again. */
	if (err)
		kvt_ns_set_limit(p, limit);
	return err;
}

/* A namespace that is in no pool. NULL: there is no memory. */
static struct kvt_ns *kvt_ns_alloc(struct kvt_file *f, const struct kvtier_ns_open *o,
				   const struct kvt_ns_args *a)
{
	struct kvt_ns *ns = kzalloc(struct_size(ns, group, o->nr_groups), GFP_KERNEL_ACCOUNT);

	if (!ns)
		return NULL;
	kvt_ns_fill(ns, f->pool, f->file->f_cred, o, a);
	mutex_init(&ns->session_lock);
	kvt_limits_init(ns);
	if (kvt_ns_alloc_parts(ns))
		return ns;
	kvt_ns_free(ns);
	return NULL;
}

/* Make *@spare one of the pool. -EAGAIN: there is none. conf_lock held. */
static struct kvt_ns *kvt_ns_create(struct kvt_file *f, struct kvt_ns **spare)
{
	struct kvt_pool *p = f->pool;
	struct kvt_ns *ns = *spare;
	int err;

	if (!kvt_may_have_more(kvt_fixed_nr_ns(p, f->file->f_cred->fsuid), p->nr_ns,
			       kvt_test_most(KVT_NS_MAX), f->file))
		return ERR_PTR(-ENOSPC);
	if (!ns)
		return ERR_PTR(-EAGAIN);
	*spare = NULL;
	err = kvt_fixed_join(ns);
	if (err)
		goto free;
	err = kvt_ns_promise(p, ns->min_bytes);
	if (err)
		goto free;
	kvt_fixed_promise(ns);
	err = kvt_ns_new_id(p, &ns->id);
	if (err)
		goto forget;
	err = xa_alloc(&p->ns, &ns->idx, ns, XA_LIMIT(1, KVT_NS_MAX), GFP_KERNEL);
	if (err)
		goto forget;
	kvt_leavers_ns_new(p, ns);
	err = kvt_sysfs_ns_add(ns);
	if (err)
		goto erase;
	kvt_names_add(&p->names, ns);
	p->nr_ns++;
	kvt_ns_only(p);
	return ns;
erase:
	/* Some of its directory may have been there for a moment. */
	kvt_limits_ns_gone(p, ns);
	/* Who goes over all of them holds the meta lock, and may be at this one. */
	spin_lock(&p->meta_lock);
	kvt_weight_set(ns, 0);
	xa_erase(&p->ns, ns->idx);
	spin_unlock(&p->meta_lock);
forget:
	kvt_ns_guarantee(p, -(s64)ns->min_bytes);
free:
	kvt_ns_free(ns);
	return ERR_PTR(err);
}

/* A namespace of a user who was named, if it is there for the opener. conf_lock held. */
static struct kvt_ns *kvt_ns_get_of(struct kvt_file *f, const struct kvtier_ns_open *o,
				    const struct kvt_ns_args *a, u32 want)
{
	const struct cred *cred = f->file->f_cred;
	kuid_t uid = make_kuid(cred->user_ns, o->owner_uid);
	struct kvt_ns *ns = uid_valid(uid) ? kvt_names_find(f, uid, want, a) : NULL;

	if (!ns)
		return ERR_PTR(-ENOENT);
	/* His own: of others' only those are found that he may open. */
	if (!kvt_ns_may(ns, cred, want))
		return ERR_PTR(-EACCES);
	return kvt_ns_same_groups(ns, o, a) ? ns : ERR_PTR(-EINVAL);
}

/* Find or create, and check the opener's rights. conf_lock held. */
static struct kvt_ns *kvt_ns_get(struct kvt_file *f, const struct kvtier_ns_open *o,
				 const struct kvt_ns_args *a, struct kvt_ns **spare)
{
	const struct cred *cred = f->file->f_cred;
	u32 want = MAY_READ;
	struct kvt_ns *ns;

	if (!f->rdonly && !(o->flags & KVTIER_NS_RDONLY))
		want |= MAY_WRITE;
	if (o->flags & KVTIER_NS_OWNER)
		return kvt_ns_get_of(f, o, a, want);
	ns = kvt_names_find(f, cred->fsuid, want, a);
	if (!ns) {
		if (!(o->flags & KVTIER_NS_CREATE))
			return ERR_PTR(-ENOENT);
		if (!(want & MAY_WRITE))
			return ERR_PTR(-EACCES);
		return kvt_ns_create(f, spare);
	}
	if ((o->flags & KVTIER_NS_EXCL))
		return ERR_PTR(-EEXIST);
	if (!kvt_ns_same_groups(ns, o, a))
		return ERR_PTR(-EINVAL);
	if (!kvt_ns_may(ns, cred, want))
		return ERR_PTR(-EACCES);
	return ns;
}

/* conf_lock held. */
static int kvt_ns_bind_locked(struct kvt_file *f, struct kvtier_ns_open *o,
			      const struct kvt_ns_args *a, struct kvt_ns **spare)
{
	struct kvt_pool *p = f->pool;
	struct kvt_ns *ns;

	lockdep_assert_held(&p->conf_lock);
	if (f->ns)
		return -EBUSY;
	ns = kvt_ns_get(f, o, a, spare);
	if (IS_ERR(ns))
		return PTR_ERR(ns);
	spin_lock(&p->meta_lock);
	ns->nr_files++;
	spin_unlock(&p->meta_lock);
	if (uid_eq(ns->uid, f->file->f_cred->fsuid)) {
		kvt_budget_join(ns);
		kvt_charge_note(ns);
	}
	if (o->flags & KVTIER_NS_RDONLY)
		f->rdonly = true;
	o->nr_groups = ns->nr_groups;
	o->ns_id = ns->id;
	o->fill_offset = f->rdonly ? 0 : kvt_fill_base(f->id);
	o->fill_bytes = f->rdonly ? 0 : KVT_WINDOW_BYTES;
	kvt_maps_bind(ns, f->file);
	/* Publish: pairs with the loads before data commands and mmap. */
	smp_store_release(&f->ns, ns);
	return 0;
}

static int kvt_ns_bind(struct kvt_file *f, struct kvtier_ns_open *o,
		       const struct kvt_ns_args *a)
{
	struct kvt_pool *p = f->pool;
	struct kvt_ns *spare = NULL;
	bool tried = false;
	int err;

	for (;;) {
		/* Another's new namespace may be on its way to a member that is slow to answer. */
		err = mutex_lock_killable(&p->conf_lock);
		if (err)
			break;
		err = kvt_ns_bind_locked(f, o, a, &spare);
		mutex_unlock(&p->conf_lock);
		if (err != -EAGAIN || tried)
			break;
		tried = true;
		/* The caller's cgroup may be full, and others are not to wait for it. */
		spare = kvt_ns_alloc(f, o, a);
		if (!spare)
			return -ENOMEM;
	}
	/* Somebody else was first. */
	if (spare)
		kvt_ns_free(spare);
	return err;
}

/**
 * kvt_op_ns_open() - NS_OPEN
 * @f:   file, unbound
 * @arg: struct kvtier_ns_open
 */
int kvt_op_ns_open(struct kvt_file *f, void *arg)
{
	struct kvtier_ns_open *o = arg;
	struct kvt_ns_args *a = kzalloc(sizeof(*a), GFP_KERNEL);
	int err;

	if (!a)
		return -ENOMEM;
	err = kvt_ns_copy_args(o, a);
	if (!err) {
		kvt_names_hash(&f->pool->names, a);
		err = kvt_ns_bind(f, o, a);
	}
	kfree_sensitive(a);
	return err;
}

/**
 * kvt_ns_close() - a bound file is closing
 * @f: file, without leases and reservations
 */
void kvt_ns_close(struct kvt_file *f)
{
	struct kvt_pool *p = f->pool;

	spin_lock(&p->meta_lock);
	f->ns->nr_files--;
	spin_unlock(&p->meta_lock);
}

static void kvt_ns_destroy(struct kvt_pool *p, struct kvt_ns *ns)
{
	kvt_names_del(ns);
	kvt_sysfs_ns_del(ns);
	/*
	 * Nobody can set a guarantee any more. And the namespace is still found: else a tier
	 * that goes, and another with its number, would be taken for the one that gave it.
	 */
	kvt_limits_ns_gone(p, ns);
	/* Who looks for one by its id holds the meta lock. */
	spin_lock(&p->meta_lock);
	kvt_weight_set(ns, 0);
	xa_erase(&p->ns, ns->idx);
	p->policy.only = NULL;
	spin_unlock(&p->meta_lock);
	p->nr_ns--;
	kvt_ns_only(p);
	kvt_ns_guarantee(p, -(s64)ns->min_bytes);
	kvt_mlog_ns_gone(p, ns);
	kvt_ns_free(ns);
}

/**
 * kvt_ns_for_each() - do something for each namespace
 * @p:   pool; may sleep
 * @fn:  called under the meta lock, which is dropped every so often
 * @data: for it
 *
 * Namespaces that come meanwhile may be left out.
 */
void kvt_ns_for_each(struct kvt_pool *p, void (*fn)(struct kvt_ns *ns, void *data), void *data)
{
	unsigned long idx = 0;
	struct kvt_ns *ns;
	u32 n;

	do {
		spin_lock(&p->meta_lock);
		for (n = 0; n < KVT_NS_STEP; n++, idx++) {
			ns = xa_find(&p->ns, &idx, ULONG_MAX, XA_PRESENT);
			if (!ns)
				break;
			fn(ns, data);
		}
		spin_unlock(&p->meta_lock);
		cond_resched();
	} while (ns && idx < ULONG_MAX);
}

/*
 * Free some of those that nothing refers to, from @idx on: true if there may be more. Whoever
 * opens one waits for no more than some.
 */
static bool kvt_ns_reap_some(struct kvt_pool *p, unsigned long *idx)
{
	u32 nr = KVT_NS_REAPED;
	struct kvt_ns *ns;

	/* Not worth waiting for; the next round comes soon. */
	if (!mutex_trylock(&p->conf_lock))
		return false;
	xa_for_each_start(&p->ns, *idx, ns, *idx) {
		bool idle;

		spin_lock(&p->meta_lock);
		idle = !ns->nr_files && !ns->nr_blocks && !ns->nr_regions;
		spin_unlock(&p->meta_lock);
		/* Only NS_OPEN could revive it, and that needs conf_lock. */
		if (!idle)
			continue;
		kvt_ns_destroy(p, ns);
		if (!--nr)
			break;
	}
	mutex_unlock(&p->conf_lock);
	return !nr;
}

/**
 * kvt_ns_reap() - free namespaces that nothing refers to
 * @p: pool; may sleep
 */
void kvt_ns_reap(struct kvt_pool *p)
{
	unsigned long idx = 0;

	while (kvt_ns_reap_some(p, &idx))
		cond_resched();
}

/**
 * kvt_ns_free_all() - the pool is ending
 * @p: pool without files, tiers and running work; conf_lock held
 */
void kvt_ns_free_all(struct kvt_pool *p)
{
	struct kvt_ns *ns;
	unsigned long idx;

	xa_for_each(&p->ns, idx, ns)
		kvt_ns_destroy(p, ns);
}

/**
 * kvt_ns_sane() - could a namespace be made with this definition
 * @def: from media
 */
bool kvt_ns_sane(const struct kvt_nsdef *def)
{
	return def->nr_groups && def->identity_len && !(def->mode & ~0777u) &&
	       uid_valid(make_kuid(&init_user_ns, def->uid)) &&
	       gid_valid(make_kgid(&init_user_ns, def->gid));
}

static void kvt_ns_fill_def(struct kvt_ns *ns, const struct kvt_nsdef *def)
{
	u32 i, t;

	ns->id = def->id;
	ns->uid = make_kuid(&init_user_ns, def->uid);
	ns->gid = make_kgid(&init_user_ns, def->gid);
	ns->mode = def->mode;
	ns->identity_len = def->identity_len;
	memcpy(ns->identity, def->identity, def->identity_len);
	ns->has_secret = def->flags & KVT_NSF_SECRET;
	ns->unclaimed = !ns->has_secret;
	memcpy(ns->salt, def->salt, sizeof(ns->salt));
	memcpy(ns->secret, def->secret, sizeof(ns->secret));
	ns->quota_bytes = def->quota_bytes;
	/* No more than can ever have been granted, so that sums do not overflow. */
	ns->min_bytes = min(def->min_bytes, KVT_WINDOW_BYTES);
	/* Which of them does not matter much: at worst its end is told to too many. */
	ns->on_tiers = ~0u;
	ns->nr_groups = def->nr_groups;
	for (i = 0; i < def->nr_groups; i++) {
		struct kvt_group *g = &ns->group[i];

		g->block_bytes = def->group_bytes[i];
		g->slot_pages = DIV_ROUND_UP(g->block_bytes, KVTIER_SLOT_ALIGN);
		for (t = 0; t < KVT_TIERS; t++)
			g->owner[t].partial = KVT_NO_REGION;
	}
}

/**
 * kvt_ns_adopt() - make a namespace that was found on media
 * @p:   private pool; conf_lock held
 * @idx: its index, taken by nobody
 * @def: sane definition
 * Return: 0, -ENOSPC or -ENOMEM.
 */
int kvt_ns_adopt(struct kvt_pool *p, u32 idx, const struct kvt_nsdef *def)
{
	struct kvt_ns *ns;
	int err;

	lockdep_assert_held(&p->conf_lock);
	if (p->nr_ns >= KVT_NS_MAX)
		return -ENOSPC;
	ns = kzalloc(struct_size(ns, group, def->nr_groups), GFP_KERNEL_ACCOUNT);
	if (!ns)
		return -ENOMEM;
	ns->pool = p;
	ns->idx = idx;
	kvt_ns_fill_def(ns, def);
	mutex_init(&ns->session_lock);
	kvt_limits_init(ns);
	err = kvt_ns_alloc_parts(ns) ? kvt_fixed_join(ns) : -ENOMEM;
	if (!err) {
		kvt_fixed_promise(ns);
		err = xa_insert(&p->ns, idx, ns, GFP_KERNEL);
	}
	if (err) {
		kvt_ns_free(ns);
		return err;
	}
	kvt_names_add(&p->names, ns);
	p->nr_ns++;
	kvt_ns_only(p);
	kvt_ns_guarantee(p, ns->min_bytes);
	return 0;
}

/* Another namespace that the claimed one would be taken for. */
static bool kvt_ns_taken(struct kvt_pool *p, kuid_t uid, const struct kvt_ns *like)
{
	struct kvt_ns *ns;
	unsigned long idx;

	xa_for_each(&p->ns, idx, ns) {
		if (ns != like && !ns->unclaimed && !ns->has_secret && uid_eq(ns->uid, uid) &&
		    ns->identity_len == like->identity_len &&
		    !memcmp(ns->identity, like->identity, ns->identity_len))
			return true;
	}
	return false;
}

static int kvt_ns_claim_locked(struct kvt_pool *p, u64 id, kuid_t uid, kgid_t gid)
{
	struct kvt_ns *ns;
	unsigned long idx;
	int i;

	lockdep_assert_held(&p->conf_lock);
	xa_for_each(&p->ns, idx, ns) {
		if (ns->id != id)
			continue;
		if (!ns->unclaimed)
			return -EALREADY;
		if (kvt_ns_taken(p, uid, ns))
			return -EEXIST;
		kvt_names_del(ns);
		spin_lock(&p->meta_lock);
		ns->uid = uid;
		ns->gid = gid;
		/* What the members have says who had it before. */
		for (i = 0; i < KVT_TIERS; i++)
			ns->home[i].life = 0;
		WRITE_ONCE(ns->unclaimed, false);
		spin_unlock(&p->meta_lock);
		kvt_names_add(&p->names, ns);
		return 0;
	}
	return -ENOENT;
}

/**
 * kvt_ns_claim() - NS_CLAIM
 * @p: pool
 * @c: which, and whose it is from now on
 * Return: 0, -EINVAL, -ENOENT, -EALREADY, -EEXIST, or -EINTR: the caller is being killed.
 */
int kvt_ns_claim(struct kvt_pool *p, const struct kvtier_ns_claim *c)
{
	kuid_t uid = make_kuid(current_user_ns(), c->uid);
	kgid_t gid = make_kgid(current_user_ns(), c->gid);
	int err;

	if (!uid_valid(uid) || !gid_valid(gid))
		return -EINVAL;
	/* Who has it may be waiting for a disk. */
	if (mutex_lock_killable(&p->conf_lock))
		return -EINTR;
	err = kvt_ns_claim_locked(p, c->ns_id, uid, gid);
	mutex_unlock(&p->conf_lock);
	return err;
}
