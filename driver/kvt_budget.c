// SPDX-License-Identifier: GPL-2.0
/*
 * What control groups may have in a pool.
 *
 * Memory that the page allocator gives to a process is charged to its cgroup. The pages of a
 * tier are not, unless the operator wants it (kvt_charge.c): they are his, whether DRAM, CXL or
 * NVMe, and the kernel lets no module add a resource to its controllers. So the pool keeps
 * accounts of its own.
 *
 * A namespace belongs to the cgroup (v2) of the process that made it, or, after it was found
 * on media, of its owner's that opened it first; and so to all cgroups around that. The
 * operator gives some cgroups a *budget*: what all namespaces of a cgroup, and of those in
 * it, may have in the pool, each block once, wherever it is. It is looked at where a
 * namespace's quota is, and has the same consequences: the namespace's own blocks make room.
 *
 * Cgroups are known by their number alone, so none is kept from going. Numbers are not used
 * again.
 *
 * Locks: the meta lock for accounts; the conf_lock, too, for which budgets there are.
 */
#include <linux/cgroup.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "kvt_internal.h"

/* Note whose a namespace is: the caller's. */
static void kvt_budget_note(struct kvt_ns *ns)
{
#ifdef CONFIG_CGROUPS
	struct cgroup *c;
	int i;

	rcu_read_lock();
	c = task_dfl_cgroup(current);
	/* The outermost, if there are more: who is deep inside can be anywhere. */
	for (i = 0; i <= c->level && i < KVT_CGROUP_LEVELS; i++)
		ns->cgroup[i] = cgroup_id(cgroup_ancestor(c, i));
	rcu_read_unlock();
	ns->nr_cgroups = i;
#endif
}

static bool kvt_budget_is_of(const struct kvt_ns *ns, u64 cgroup)
{
	u32 i;

	for (i = 0; i < ns->nr_cgroups; i++) {
		if (ns->cgroup[i] == cgroup)
			return true;
	}
	return false;
}

/* Enter a namespace into an account, or take it out. */
static void kvt_budget_count(struct kvt_pool *p, struct kvt_ns *ns, u32 nr, bool in)
{
	struct kvt_budget *b = &p->budget[nr];

	spin_lock(&p->meta_lock);
	if (in && !(ns->budgets & BIT(nr)) && kvt_budget_is_of(ns, b->cgroup)) {
		ns->budgets |= BIT(nr);
		b->used_bytes += ns->used_bytes;
	} else if (!in) {
		ns->budgets &= ~BIT(nr);
	}
	spin_unlock(&p->meta_lock);
}

/**
 * kvt_budget_join() - a namespace is opened by its owner
 * @ns: namespace; conf_lock of its pool held
 */
void kvt_budget_join(struct kvt_ns *ns)
{
	struct kvt_pool *p = ns->pool;
	u32 i;

	lockdep_assert_held(&p->conf_lock);
	if (ns->nr_cgroups)
		return;
	kvt_budget_note(ns);
	for (i = 0; i < KVT_BUDGETS; i++) {
		if (p->budget[i].cgroup)
			kvt_budget_count(p, ns, i, true);
	}
}

/**
 * kvt_budget_charge() - a namespace has more, or less
 * @ns:    namespace with budgets; meta lock held
 * @bytes: by how much
 */
void kvt_budget_charge(struct kvt_ns *ns, s64 bytes)
{
	unsigned long budgets = ns->budgets;
	u32 i;

	lockdep_assert_held(&ns->pool->meta_lock);
	for_each_set_bit(i, &budgets, KVT_BUDGETS)
		ns->pool->budget[i].used_bytes += bytes;
}

/**
 * kvt_budget_over() - would a namespace have too much
 * @ns:    namespace; meta lock held
 * @bytes: that it wants
 */
bool kvt_budget_over(const struct kvt_ns *ns, u64 bytes)
{
	unsigned long budgets = ns->budgets;
	u32 i;

	lockdep_assert_held(&ns->pool->meta_lock);
	for_each_set_bit(i, &budgets, KVT_BUDGETS) {
		const struct kvt_budget *b = &ns->pool->budget[i];

		if (b->used_bytes + bytes > b->limit_bytes)
			return true;
	}
	return false;
}

/* A cgroup's budget, or the place for one, or KVT_BUDGETS. conf_lock held. */
static u32 kvt_budget_find(struct kvt_pool *p, u64 cgroup)
{
	u32 i, free = KVT_BUDGETS;

	lockdep_assert_held(&p->conf_lock);
	for (i = KVT_BUDGETS; i-- > 0;) {
		if (p->budget[i].cgroup == cgroup)
			return i;
		if (!p->budget[i].cgroup)
			free = i;
	}
	return free;
}

static void kvt_budget_set(struct kvt_pool *p, u32 nr, u64 cgroup, u64 limit)
{
	struct kvt_budget *b = &p->budget[nr];

	spin_lock(&p->meta_lock);
	if (b->cgroup != cgroup)
		b->used_bytes = 0;
	b->cgroup = cgroup;
	b->limit_bytes = limit;
	spin_unlock(&p->meta_lock);
}

/* @limit: U64_MAX: none any more. */
static int kvt_budget_change(struct kvt_pool *p, u64 cgroup, u64 limit)
{
	unsigned long idx;
	struct kvt_ns *ns;
	u32 nr;

	lockdep_assert_held(&p->conf_lock);
	nr = kvt_budget_find(p, cgroup);
	if (limit == U64_MAX && (nr == KVT_BUDGETS || p->budget[nr].cgroup != cgroup))
		return -ENOENT;
	if (nr == KVT_BUDGETS)
		return -ENOSPC;
	kvt_budget_set(p, nr, cgroup, limit);
	xa_for_each(&p->ns, idx, ns) {
		kvt_budget_count(p, ns, nr, limit != U64_MAX);
		cond_resched();
	}
	if (limit == U64_MAX)
		kvt_budget_set(p, nr, 0, 0);
	return 0;
}

/* The number of a cgroup: given as such, or by its path. */
static int kvt_budget_cgroup(const char *name, u64 *id)
{
#ifdef CONFIG_CGROUPS
	struct cgroup *c;

	if (*name == '/') {
		c = cgroup_get_from_path(name);
		if (IS_ERR(c))
			return PTR_ERR(c);
		*id = cgroup_id(c);
		cgroup_put(c);
		return 0;
	}
#endif
	return kstrtou64(name, 0, id) ?: (*id ? 0 : -EINVAL);
}

/**
 * kvt_budget_store() - what is written to cgroup_limits
 * @p:   pool; may sleep
 * @buf: path or number of a cgroup, a blank, and bytes or "max"
 * Return: 0; -EINVAL; -ENOENT: no such cgroup, or it has no limit that could go; -ENOSPC:
 * there are as many as there can be; -ENOMEM; -EINTR: the caller is being killed.
 */
int kvt_budget_store(struct kvt_pool *p, const char *buf)
{
	char *line = kstrdup(buf, GFP_KERNEL), *name, *limit;
	u64 cgroup, bytes = U64_MAX;
	int err = -EINVAL;

	if (!line)
		return -ENOMEM;
	name = strim(line);
	limit = strrchr(name, ' ');
	if (limit) {
		*limit++ = 0;
		err = strcmp(limit, "max") ? kstrtou64(limit, 0, &bytes) : 0;
		if (!err)
			err = kvt_budget_cgroup(strim(name), &cgroup);
		/* Who has it may be waiting for a disk. */
		if (!err)
			err = mutex_lock_killable(&p->conf_lock);
		if (!err) {
			err = kvt_budget_change(p, cgroup, bytes);
			mutex_unlock(&p->conf_lock);
		}
	}
	kfree(line);
	return err;
}

/**
 * kvt_budget_show() - a line for each budget: number of the cgroup, bytes used, limit
 * @p:   pool
 * @buf: a page
 */
ssize_t kvt_budget_show(struct kvt_pool *p, char *buf)
{
	struct kvt_budget b;
	ssize_t len = 0;
	u32 i;

	for (i = 0; i < KVT_BUDGETS; i++) {
		spin_lock(&p->meta_lock);
		b = p->budget[i];
		spin_unlock(&p->meta_lock);
		if (b.cgroup)
			len += sysfs_emit_at(buf, len, "%llu %llu %llu\n", b.cgroup,
					     b.used_bytes, b.limit_bytes);
	}
	return len;
}
