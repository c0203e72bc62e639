// SPDX-License-Identifier: GPL-2.0
/*
 * POOL_ASSEMBLE: from devices to a pool that everybody can use, or to nothing.
 *
 * See kvt_assemble.h for the model. Up to kvt_as_start() whatever goes wrong is undone
 * by forgetting it: nothing has been written. After that, undoing is what the end of a
 * pool is: what is on the members can be assembled again.
 */
#include <linux/cleanup.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "kvt_assemble.h"

static DEFINE_MUTEX(kvt_assemblies_lock);
static LIST_HEAD(kvt_assemblies);

/**
 * kvt_assemble_show() - how far assemblies are
 * @buf: of sysfs
 * Return: bytes. For each a line: pool, segments read, segments to be read; each
 * segment is gone through several times and counts as often.
 */
ssize_t kvt_assemble_show(char *buf)
{
	struct kvt_assembly *as;
	ssize_t len = 0;

	guard(mutex)(&kvt_assemblies_lock);
	list_for_each_entry(as, &kvt_assemblies, link)
		len += sysfs_emit_at(buf, len, "%u %llu %llu\n", as->p->id,
				     (u64)atomic64_read(&as->done), READ_ONCE(as->all));
	return len;
}

static void kvt_as_list(struct kvt_assembly *as)
{
	guard(mutex)(&kvt_assemblies_lock);
	list_add_tail(&as->link, &kvt_assemblies);
}

static void kvt_as_unlist(struct kvt_assembly *as)
{
	guard(mutex)(&kvt_assemblies_lock);
	list_del(&as->link);
}

/**
 * kvt_as_reserve() - become the only pool with a uuid
 * @as:   assembly, listed
 * @uuid: of its members
 *
 * Two with disjoint sets of members must not both run, each without the other's.
 * Holds until the assembly is off the list: by then the pool is published, or none of
 * its members is written to any more.
 * Return: 0 or -EEXIST.
 */
int kvt_as_reserve(struct kvt_assembly *as, const u8 *uuid)
{
	const struct kvt_assembly *o;

	guard(mutex)(&kvt_assemblies_lock);
	if (kvt_pool_is_up(uuid))
		return -EEXIST;
	list_for_each_entry(o, &kvt_assemblies, link) {
		if (!memcmp(o->p->uuid, uuid, KVT_UUID_BYTES))
			return -EEXIST;
	}
	memcpy(as->p->uuid, uuid, KVT_UUID_BYTES);
	return 0;
}

static int kvt_as_copy_in(struct kvt_assembly *as)
{
	const struct kvtier_assemble_device __user *u = u64_to_user_ptr(as->out->devices);
	u32 i;

	for (i = 0; i < as->nr_members; i++) {
		if (copy_from_user(as->members[i].dev.path, u[i].path, KVTIER_PATH_MAX))
			return -EFAULT;
	}
	return 0;
}

static int kvt_as_copy_out(const struct kvt_assembly *as)
{
	struct kvtier_assemble_device __user *u = u64_to_user_ptr(as->out->devices);
	u32 i;

	for (i = 0; i < as->nr_members; i++) {
		if (copy_to_user(&u[i], &as->members[i].dev, sizeof(*u)))
			return -EFAULT;
	}
	return 0;
}

static int kvt_as_show(struct kvt_assembly *as)
{
	struct kvt_pool *p = as->p;
	struct kvt_ns *ns;
	unsigned long idx;
	int err = 0;
	u32 i;

	for (i = 0; i < as->nr_members && !err; i++)
		err = kvt_sysfs_tier_add(as->members[i].tier);
	mutex_lock(&p->conf_lock);
	xa_for_each(&p->ns, idx, ns) {
		err = err ?: kvt_sysfs_ns_add(ns);
	}
	mutex_unlock(&p->conf_lock);
	return err;
}

/* The first that is written: superblocks that say that more may be. */
static int kvt_as_start(struct kvt_assembly *as)
{
	int err = 0;
	u32 i;

	for (i = 0; i < as->nr_members && !err; i++) {
		err = kvt_mlog_start(as->members[i].tier);
		as->members[i].started = !err;
	}
	/* Once more: those that came first know old generations of the others. */
	if (!err && as->nr_members > 1)
		kvt_mlog_update_supers(as->p);
	return err ?: kvt_as_settle(as);
}

static void kvt_as_undo(struct kvt_assembly *as, bool shown)
{
	struct kvt_pool *p = as->p;
	u32 i;

	for (i = 0; i < as->nr_members; i++) {
		if (as->members[i].started)
			kvt_mlog_stop(as->members[i].tier, true);
	}
	for (i = 0; i < as->nr_members; i++) {
		if (as->members[i].tier)
			kvt_tier_disown(p, as->members[i].tier);
	}
	kvt_as_unlist(as);
	kvt_pool_unmake(p, shown);
}

static int kvt_as_bring_up(struct kvt_assembly *as, bool *shown)
{
	int err;

	kvt_as_open_all(as);
	err = kvt_as_agree(as) ?: kvt_as_read_all(as) ?: kvt_as_merge(as) ?:
	      kvt_pool_show(as->p);
	if (err)
		return err;
	*shown = true;
	as->p->nr_missing = as->out->nr_members - as->out->nr_found;
	/* All is known of the devices: told of before the first is written to. */
	return kvt_as_copy_out(as) ?: kvt_as_show(as) ?: kvt_as_start(as) ?:
	       kvt_pool_publish(as->p);
}

static int kvt_as_assemble(struct kvt_assembly *as)
{
	struct kvtier_pool_assemble *out = as->out;
	u64 start_ns = ktime_get_ns();
	bool shown = false;
	int err;

	as->p = kvt_pool_make(&out->pool_id);
	if (IS_ERR(as->p))
		return PTR_ERR(as->p);
	kvt_as_list(as);
	err = kvt_as_bring_up(as, &shown);
	out->time_ns = ktime_get_ns() - start_ns;
	if (err) {
		kvt_as_undo(as, shown);
		return err;
	}
	kvt_as_unlist(as);
	pr_info("kvtier%u: %llu blocks of %llu namespaces from %u of %u members\n",
		out->pool_id, out->nr_blocks, out->nr_namespaces, out->nr_found,
		out->nr_members);
	return 0;
}

static int kvt_as_alloc(struct kvtier_pool_assemble *a, struct kvt_assembly **out)
{
	struct kvt_assembly *as = kzalloc(sizeof(*as), GFP_KERNEL);

	if (!as)
		return -ENOMEM;
	as->members = kvcalloc(a->nr_devices, sizeof(*as->members), GFP_KERNEL);
	if (!as->members) {
		kfree(as);
		return -ENOMEM;
	}
	spin_lock_init(&as->lock);
	as->nr_members = a->nr_devices;
	as->out = a;
	*out = as;
	return 0;
}

/**
 * kvt_assemble() - POOL_ASSEMBLE
 * @a: see there; the outputs are filled in whatever the result
 */
int kvt_assemble(struct kvtier_pool_assemble *a)
{
	struct kvt_assembly *as;
	int err;

	*a = (struct kvtier_pool_assemble) {
		.size = a->size,
		.flags = a->flags,
		.pool_id = a->pool_id,
		.nr_devices = a->nr_devices,
		.devices = a->devices,
	};
	if (!a->nr_devices || a->nr_devices > KVTIER_TIERS_MAX)
		return -EINVAL;
	err = kvt_as_alloc(a, &as);
	if (err)
		return err;
	err = kvt_as_copy_in(as);
	if (!err) {
		err = kvt_as_assemble(as);
		/* What is wrong with which; the error itself is known anyway. */
		if (err)
			kvt_as_copy_out(as);
	}
	kvt_as_read_free(as);
	kvfree(as->members);
	kfree(as);
	return err;
}
