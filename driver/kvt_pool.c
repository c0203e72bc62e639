// SPDX-License-Identifier: GPL-2.0
/*
 * Pools: making, finding, growing and ending them.
 *
 * A pool exists from POOL_CREATE to POOL_DESTROY and holds a module reference
 * all that time: a store that vanishes with an unload would surprise its users.
 * It can be destroyed only when no file is open; mappings and asynchronous calls
 * hold files, so by then nothing runs but the pool's own worker, which is
 * stopped first. Nothing after that can fail.
 */
#include <linux/cleanup.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/timekeeping.h>
#include <linux/vmalloc.h>

#include "kvt_internal.h"
#include "kvt_mlog.h"
#include "kvt_test.h"

#define KVT_CHUNKS_MAX		(1u << 15)	/* 64 Mi blocks */

static DEFINE_IDR(kvt_pools);	/* kvt_registry_lock */

/* Pool clock: only differences mean anything. */
u32 kvt_now_ms(void)
{
	return kvt_test_clock_ms() ?: (u32)ktime_to_ms(ktime_get_coarse());
}

u32 kvt_now_s(void)
{
	return (u32)ktime_get_seconds();
}

/**
 * kvt_count() - add to a counter of a namespace and of its pool
 * @p:    pool
 * @ns:   namespace or NULL
 * @what: which
 * @n:    how much
 */
void kvt_count(struct kvt_pool *p, struct kvt_ns *ns, enum kvt_count what, u64 n)
{
	if (!n)
		return;
	this_cpu_add(p->counts->v[what], n);
	if (ns)
		this_cpu_add(ns->counts->v[what], n);
}

u64 kvt_count_read(struct kvt_counts __percpu *counts, enum kvt_count what)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(counts, cpu)->v[what]);
	return sum;
}

void kvt_pool_meta_add(struct kvt_pool *p, s64 bytes)
{
	spin_lock(&p->meta_lock);
	p->meta_bytes += bytes;
	spin_unlock(&p->meta_lock);
}

/**
 * kvt_defer_free() - free memory later, where one may sleep
 * @p:   pool
 * @mem: kvmalloc()ed, at least a pointer long, or NULL; any context
 */
void kvt_defer_free(struct kvt_pool *p, void *mem)
{
	if (mem)
		llist_add(mem, &p->garbage);
}

static void kvt_free_all(struct llist_head *list)
{
	struct llist_node *n = llist_del_all(list), *next;

	for (; n; n = next) {
		next = n->next;
		kvfree(n);
	}
}

void kvt_garbage_free(struct kvt_pool *p)
{
	kvt_free_all(&p->garbage);
}

static int kvt_pool_add_chunk(struct kvt_pool *p, gfp_t gfp)
{
	struct kvt_hot *hot = kvcalloc(KVT_CHUNK_BLOCKS, sizeof(*hot), gfp);
	struct kvt_cold *cold = kvcalloc(KVT_CHUNK_BLOCKS, sizeof(*cold), gfp);
	int err = -ENOMEM;

	if (!hot || !cold)
		goto free;
	spin_lock(&p->meta_lock);
	err = kvt_table_add_chunk(&p->table, hot, cold);
	if (!err)
		p->meta_bytes += KVT_CHUNK_BLOCKS * (sizeof(*hot) + sizeof(*cold));
	spin_unlock(&p->meta_lock);
	if (!err)
		return 0;
free:
	kvfree(hot);
	kvfree(cold);
	return err;
}

static int kvt_shard_grow(struct kvt_pool *p, struct kvt_shard *s, u32 nr, gfp_t gfp)
{
	u32 *buckets = kvcalloc(nr, sizeof(*buckets), gfp), *old, had;

	if (!buckets)
		return -ENOMEM;
	spin_lock(&s->lock);
	had = s->mask + 1;
	old = kvt_ix_resize(&p->index, s, buckets, nr);
	spin_unlock(&s->lock);
	if (old != buckets)
		kvt_pool_meta_add(p, ((s64)nr - had) * sizeof(*buckets));
	kvfree(old);
	return 0;
}

/**
 * kvt_pool_size_index() - buckets for many blocks that are to come
 * @p:      pool
 * @blocks: about how many it will have
 *
 * What there is no memory for comes later, as shards grow. Nobody is killed for it, and it
 * is nobody's: these blocks are no client's doing. May sleep.
 */
void kvt_pool_size_index(struct kvt_pool *p, u64 blocks)
{
	u32 i, nr;

	blocks = min(blocks, (u64)KVT_CHUNKS_MAX << KVT_CHUNK_SHIFT);
	for (i = 0; i < KVT_SHARDS && !fatal_signal_pending(current); i++) {
		nr = kvt_ix_buckets_for(&p->index.shards[i], blocks);
		if (nr <= READ_ONCE(p->index.shards[i].mask) + 1)
			continue;
		if (kvt_shard_grow(p, &p->index.shards[i], nr,
				   GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN))
			break;
	}
}

/**
 * kvt_pool_grow() - make sure that blocks can be added without allocating, beside those kept
 * @p:       pool
 * @entries: how many
 * Return: 0, -ENOMEM, or -ENOSPC when the pool has all the blocks it may.
 * May sleep; what it makes room for may be taken by somebody else.
 */
int kvt_pool_grow(struct kvt_pool *p, u32 entries)
{
	u32 i;
	int err;

	kvt_assert_lingering(p);
	while (READ_ONCE(p->table.nr_free) < entries + KVT_ENTRIES_KEPT) {
		err = kvt_pool_add_chunk(p, GFP_KERNEL_ACCOUNT);
		if (err)
			return err;
	}
	for (i = 0; i < KVT_SHARDS; i++) {
		if (!kvt_ix_crowded(&p->index.shards[i]))
			continue;
		/* Only speed is at stake. */
		if (kvt_shard_grow(p, &p->index.shards[i],
				   (READ_ONCE(p->index.shards[i].mask) + 1) * 2,
				   GFP_KERNEL_ACCOUNT))
			break;
	}
	return 0;
}

/**
 * kvt_pool_top_up() - make entries for what is there already and may need one more each
 * @p:       pool
 * @entries: how many, besides those kept for when nobody can make any
 *
 * Whoever calls has nothing to do with these blocks: he does not pay for the entries, and
 * nobody is killed for them. What there is no memory for is not there. May sleep.
 */
void kvt_pool_top_up(struct kvt_pool *p, u32 entries)
{
	while (READ_ONCE(p->table.nr_free) < entries + KVT_ENTRIES_KEPT &&
	       !kvt_pool_add_chunk(p, GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN))
		;
}

static void kvt_pool_free_memory(struct kvt_pool *p)
{
	u32 i;

	kvt_garbage_free(p);
	kvt_free_all(&p->unholds);
	for (i = 0; i < KVT_SHARDS; i++)
		kvfree(p->index.shards[i].buckets);
	for (i = 0; i < p->table.nr_chunks; i++) {
		kvfree(p->table.hot[i]);
		kvfree(p->table.cold[i]);
	}
	kvfree(p->table.hot);
	kvfree(p->table.cold);
	free_percpu(p->rings);
	free_percpu(p->counts);
}

static void kvt_pool_release(struct device *dev)
{
	struct kvt_pool *p = container_of(dev, struct kvt_pool, dev);

	/* A late kick may still be queued; it finds the pool dying and returns. */
	if (p->async_wq)
		destroy_workqueue(p->async_wq);
	if (p->log_wq)
		destroy_workqueue(p->log_wq);
	kvt_promo_end(p);
	if (p->look_wq)
		destroy_workqueue(p->look_wq);
	if (p->reclaim_wq)
		destroy_workqueue(p->reclaim_wq);
	kvt_pool_free_memory(p);
	cleanup_srcu_struct(&p->srcu);
	xa_destroy(&p->ns);
	xa_destroy(&p->fixed.owners);
	kvt_ids_destroy(&p->ids);
	kvt_leavers_forget(p);
	kfree(p);
}

/*
 * Who waits for memory under map_sem would have everybody wait. Taken once where memory is
 * being reclaimed, so that lockdep tells of each allocation under it that may do so.
 */
static void kvt_pool_init_map_sem(struct kvt_pool *p)
{
	init_rwsem(&p->map_sem);
	fs_reclaim_acquire(GFP_KERNEL);
	might_lock(&p->map_sem);
	fs_reclaim_release(GFP_KERNEL);
}

static void kvt_pool_init_locks(struct kvt_pool *p)
{
	int i;

	mutex_init(&p->tier_lock);
	mutex_init(&p->conf_lock);
	spin_lock_init(&p->up_lock);
	kvt_pool_init_map_sem(p);
	spin_lock_init(&p->meta_lock);
	xa_init_flags(&p->ns, XA_FLAGS_ALLOC1);
	xa_init_flags(&p->fixed.owners, XA_FLAGS_ACCOUNT);
	kvt_names_init(&p->names);
	kvt_ids_init(&p->ids);
	INIT_LIST_HEAD(&p->fixed.lingering);
	for (i = 0; i < KVT_WAITQS; i++) {
		init_waitqueue_head(&p->moved[i]);
		spin_lock_init(&p->async[i].lock);
		INIT_LIST_HEAD(&p->async[i].calls);
	}
	init_waitqueue_head(&p->room);
	init_waitqueue_head(&p->log_wait);
	INIT_LIST_HEAD(&p->carries);
	kvt_leavers_init(p);
	INIT_LIST_HEAD(&p->wants);
	INIT_LIST_HEAD(&p->over);
	init_llist_head(&p->garbage);
	init_llist_head(&p->unholds);
	INIT_WORK(&p->work, kvt_reclaim_work);
	INIT_DELAYED_WORK(&p->tick, kvt_reclaim_tick);
	kvt_clock_init(p);
	INIT_WORK(&p->async_work, kvt_async_work);
	kvt_scrub_init(&p->scrub);
	kvt_looks_init(p);
}

static int kvt_pool_init_index(struct kvt_pool *p)
{
	struct kvt_hot **hot = kvcalloc(KVT_CHUNKS_MAX, sizeof(*hot), GFP_KERNEL);
	struct kvt_cold **cold = kvcalloc(KVT_CHUNKS_MAX, sizeof(*cold), GFP_KERNEL);
	struct kvt_hash_seed seed;
	int cpu;
	u32 i;

	/* A slot's entry is an id with two bits on top. */
	BUILD_BUG_ON(((u64)KVT_CHUNKS_MAX << KVT_CHUNK_SHIFT) > KVT_SLOT_POISON);
	kvt_table_init(&p->table, hot, cold, KVT_CHUNKS_MAX);
	get_random_bytes(&seed, sizeof(seed));
	kvt_test_hash(&seed);
	kvt_ix_init(&p->index, &p->table, &seed);
	if (!hot || !cold)
		return -ENOMEM;
	for (i = 0; i < KVT_SHARDS; i++) {
		u32 *buckets = kvcalloc(KVT_SHARD_BUCKETS_MIN, sizeof(u32), GFP_KERNEL);

		if (!buckets)
			return -ENOMEM;
		kvt_ix_shard_init(&p->index.shards[i], buckets, KVT_SHARD_BUCKETS_MIN);
	}
	p->meta_bytes = KVT_SHARDS * KVT_SHARD_BUCKETS_MIN * sizeof(u32);
	kvt_policy_init(&p->policy, kvt_policy_at(0), &p->table);
	p->policy.mind_of = kvt_ns_mind_of;
	p->rings = alloc_percpu(struct kvt_ring);
	p->counts = alloc_percpu(struct kvt_counts);
	if (!p->rings || !p->counts)
		return -ENOMEM;
	for_each_possible_cpu(cpu)
		spin_lock_init(&per_cpu_ptr(p->rings, cpu)->lock);
	return 0;
}

static int kvt_pool_init_queues(struct kvt_pool *p)
{
	p->reclaim_wq = alloc_ordered_workqueue("kvtier%u-reclaim", WQ_MEM_RECLAIM, p->id);
	p->look_wq = alloc_workqueue("kvtier%u-look", WQ_UNBOUND, 0, p->id);
	p->async_wq = alloc_ordered_workqueue("kvtier%u-async", 0, p->id);
	p->log_wq = alloc_workqueue("kvtier%u-log", WQ_UNBOUND | WQ_MEM_RECLAIM, 0, p->id);
	return p->reclaim_wq && p->look_wq && p->async_wq && p->log_wq ?
	       kvt_promo_prepare(p, KVT_TIERS) : -ENOMEM;
}

static struct kvt_pool *kvt_pool_alloc(u32 id)
{
	struct kvt_pool *p = kzalloc(sizeof(*p), GFP_KERNEL);
	int err;

	if (!p)
		return ERR_PTR(-ENOMEM);
	err = init_srcu_struct(&p->srcu);
	if (err) {
		kfree(p);
		return ERR_PTR(err);
	}
	p->id = id;
	get_random_bytes(p->uuid, sizeof(p->uuid));
	p->ns_limit = KVT_NS_ID_STEP;
	p->watermark_low_percent = 85;
	p->watermark_high_percent = 92;
	p->reserve_percent = 25;
	p->copies_percent = 100;
	p->reservation_timeout_ms = 30000;
	p->discard = true;
	kvt_frames_begin(p);
	kvt_pool_init_locks(p);
	device_initialize(&p->dev);
	p->dev.class = &kvt_class;
	p->dev.devt = MKDEV(MAJOR(kvt_devt), MINOR(kvt_devt) + id);
	p->dev.release = kvt_pool_release;
	/* From here on put_device() undoes everything. */
	err = kvt_pool_init_index(p) ?: kvt_pool_init_queues(p) ?:
	      dev_set_name(&p->dev, "kvtier%u", id);
	if (err)
		goto put;
	return p;
put:
	put_device(&p->dev);
	return ERR_PTR(err);
}

static void kvt_pool_put_dirs(struct kvt_pool *p)
{
	sysfs_remove_link(&p->dev.kobj, "namespaces");
	kobject_put(p->tiers_kobj);
	kobject_put(p->ns_kobj);
	kobject_put(p->private_kobj);
}

/*
 * A directory's link count tells how many are in it, to whom may not look into it as well, and
 * for a moment who likes may open what has just been made. So that of namespaces is in one
 * that is closed before.
 */
static int kvt_pool_add_dirs(struct kvt_pool *p)
{
	int err = -ENOMEM;

	p->tiers_kobj = kobject_create_and_add("tiers", &p->dev.kobj);
	p->private_kobj = kobject_create_and_add("private", &p->dev.kobj);
	if (p->private_kobj) {
		kvt_sysfs_hide(p->private_kobj);
		p->ns_kobj = kobject_create_and_add("namespaces", p->private_kobj);
	}
	if (p->tiers_kobj && p->ns_kobj)
		err = sysfs_create_link(&p->dev.kobj, p->ns_kobj, "namespaces");
	if (err)
		kvt_pool_put_dirs(p);
	return err;
}

static int kvt_pool_add_device(struct kvt_pool *p)
{
	int err;

	cdev_init(&p->cdev, &kvt_data_fops);
	p->cdev.owner = THIS_MODULE;
	err = cdev_device_add(&p->cdev, &p->dev);
	if (err)
		return err;
	err = kvt_pool_add_dirs(p);
	if (err)
		cdev_device_del(&p->cdev, &p->dev);
	return err;
}

/* An id that nobody else gets, and that nobody finds a pool under. */
static int kvt_pool_reserve_id(u32 id)
{
	u32 from = id, to = id + 1;
	int nr;

	lockdep_assert_held(&kvt_registry_lock);
	if (id == KVTIER_POOL_ANY_ID) {
		from = 0;
		to = KVT_POOLS_MAX;
	} else if (id >= KVT_POOLS_MAX) {
		return -EINVAL;
	}
	nr = idr_alloc(&kvt_pools, NULL, from, to, GFP_KERNEL);
	return nr == -ENOSPC && from + 1 == to ? -EEXIST : nr;
}

/**
 * kvt_pool_create() - make an empty pool
 * @id: in: wanted id or KVTIER_POOL_ANY_ID; out: its id
 * Return: 0, -EINVAL, -EEXIST, -ENOSPC or -ENOMEM.
 */
int kvt_pool_create(u32 *id)
{
	struct kvt_pool *p;
	int nr, err;

	guard(mutex)(&kvt_registry_lock);
	nr = kvt_pool_reserve_id(*id);
	if (nr < 0)
		return nr;
	p = kvt_pool_alloc(nr);
	err = PTR_ERR_OR_ZERO(p);
	if (err)
		goto remove;
	__module_get(THIS_MODULE);
	err = kvt_pool_add_device(p);
	if (err)
		goto put;
	queue_delayed_work(p->reclaim_wq, &p->tick, HZ);
	kvt_clock_start(p);
	idr_replace(&kvt_pools, p, nr);
	*id = nr;
	return 0;
put:
	module_put(THIS_MODULE);
	put_device(&p->dev);
remove:
	idr_remove(&kvt_pools, nr);
	return err;
}

static void kvt_pool_stop(struct kvt_pool *p)
{
	kvt_scrub_end(p);
	kvt_looks_stop(p);
	kvt_room_wake(p);
	/* The tick queues the work and the work re-arms the tick only when !dying. */
	cancel_delayed_work_sync(&p->tick);
	cancel_work_sync(&p->work);
	kvt_clock_stop(p);
	kvt_promo_flush(p);
	cancel_work_sync(&p->async_work);
	cancel_delayed_work_sync(&p->tick);
	cancel_work_sync(&p->work);
}

/**
 * kvt_pool_make() - make a pool that is nobody's but the caller's
 * @id: in: wanted id or KVTIER_POOL_ANY_ID; out: its id
 *
 * It is dying for all others until kvt_pool_publish(), so none of its workers does
 * anything. kvt_pool_unmake() undoes it.
 * Return: pool, or an ERR_PTR as of kvt_pool_create().
 */
struct kvt_pool *kvt_pool_make(u32 *id)
{
	struct kvt_pool *p;
	int nr;

	guard(mutex)(&kvt_registry_lock);
	nr = kvt_pool_reserve_id(*id);
	if (nr < 0)
		return ERR_PTR(nr);
	p = kvt_pool_alloc(nr);
	if (IS_ERR(p)) {
		idr_remove(&kvt_pools, nr);
		return p;
	}
	__module_get(THIS_MODULE);
	p->dying = true;
	p->assembling = true;
	*id = nr;
	return p;
}

/**
 * kvt_pool_show() - give a private pool its device and sysfs directories
 * @p: pool of kvt_pool_make()
 *
 * To open the device is ENXIO still, and nobody has been told of it.
 * Return: 0 or a negative errno.
 */
int kvt_pool_show(struct kvt_pool *p)
{
	dev_set_uevent_suppress(&p->dev, 1);
	return kvt_pool_add_device(p);
}

/* Members that have been given up since the last look: the others are to know from now on. */
static void kvt_pool_tell_given_up(struct kvt_pool *p)
{
	u32 i;

	spin_lock(&p->meta_lock);
	for (i = 0; i < KVT_TIERS; i++) {
		struct kvt_mlog *m = p->tiers[i] ? p->tiers[i]->mlog : NULL;

		if (m && m->w.given_up && !m->lost)
			kvt_mlog_lose(m);
	}
	spin_unlock(&p->meta_lock);
}

/**
 * kvt_pool_publish() - let everybody use a pool
 * @p: pool after kvt_pool_show(), complete
 * Return: 0, or -EIO: a tier has failed or was given up meanwhile; nothing has changed.
 */
int kvt_pool_publish(struct kvt_pool *p)
{
	bool failed = false;
	u32 i;

	spin_lock(&p->meta_lock);
	for (i = 0; i < KVT_TIERS; i++)
		failed |= p->tiers[i] && (p->tiers[i]->state == KVTIER_TIER_FAILED ||
					  (p->tiers[i]->mlog && p->tiers[i]->mlog->w.given_up));
	p->assembling = failed;
	spin_unlock(&p->meta_lock);
	if (failed)
		return -EIO;
	mutex_lock(&kvt_registry_lock);
	WRITE_ONCE(p->dying, false);
	kvt_pool_tell_given_up(p);
	queue_delayed_work(p->reclaim_wq, &p->tick, HZ);
	kvt_clock_start(p);
	/* From here on somebody may end it. */
	get_device(&p->dev);
	idr_replace(&kvt_pools, p, p->id);
	mutex_unlock(&kvt_registry_lock);
	dev_set_uevent_suppress(&p->dev, 0);
	kobject_uevent(&p->dev.kobj, KOBJ_ADD);
	put_device(&p->dev);
	return 0;
}

/**
 * kvt_pool_unmake() - end a pool that was not published
 * @p:     pool without tiers
 * @shown: by kvt_pool_show()
 */
void kvt_pool_unmake(struct kvt_pool *p, bool shown)
{
	kvt_pool_stop(p);
	mutex_lock(&p->conf_lock);
	kvt_ns_free_all(p);
	mutex_unlock(&p->conf_lock);
	if (shown) {
		kvt_pool_put_dirs(p);
		cdev_device_del(&p->cdev, &p->dev);
	}
	mutex_lock(&kvt_registry_lock);
	idr_remove(&kvt_pools, p->id);
	mutex_unlock(&kvt_registry_lock);
	put_device(&p->dev);
	module_put(THIS_MODULE);
}

/**
 * kvt_pool_is_up() - is there a pool with this uuid
 * @uuid: KVT_UUID_BYTES
 */
bool kvt_pool_is_up(const u8 *uuid)
{
	struct kvt_pool *p;
	int id;

	guard(mutex)(&kvt_registry_lock);
	idr_for_each_entry(&kvt_pools, p, id) {
		if (!memcmp(p->uuid, uuid, sizeof(p->uuid)))
			return true;
	}
	return false;
}

/**
 * kvt_pool_destroy() - end a pool with all that is in it
 * @id: pool
 * Return: 0, -ENOENT, or -EBUSY while files are open.
 */
int kvt_pool_destroy(u32 id)
{
	struct kvt_pool *p;

	mutex_lock(&kvt_registry_lock);
	p = idr_find(&kvt_pools, id);
	if (!p || p->dying) {
		mutex_unlock(&kvt_registry_lock);
		return -ENOENT;
	}
	if (p->nr_files) {
		mutex_unlock(&kvt_registry_lock);
		return -EBUSY;
	}
	WRITE_ONCE(p->dying, true);
	mutex_unlock(&kvt_registry_lock);

	kvt_pool_stop(p);
	mutex_lock(&p->tier_lock);
	kvt_tier_free_all(p);
	mutex_unlock(&p->tier_lock);
	mutex_lock(&p->conf_lock);
	kvt_ns_free_all(p);
	mutex_unlock(&p->conf_lock);
	kvt_pool_put_dirs(p);
	cdev_device_del(&p->cdev, &p->dev);

	mutex_lock(&kvt_registry_lock);
	idr_remove(&kvt_pools, id);
	mutex_unlock(&kvt_registry_lock);
	put_device(&p->dev);
	module_put(THIS_MODULE);
	return 0;
}

/**
 * kvt_pool_get() - find a pool and keep it from being destroyed
 * @id: pool
 * Return: pool, given back with kvt_pool_put(), or NULL.
 */
struct kvt_pool *kvt_pool_get(u32 id)
{
	struct kvt_pool *p;

	guard(mutex)(&kvt_registry_lock);
	p = id < KVT_POOLS_MAX ? idr_find(&kvt_pools, id) : NULL;
	if (!p || p->dying)
		return NULL;
	p->nr_files++;
	return p;
}

void kvt_pool_put(struct kvt_pool *p)
{
	guard(mutex)(&kvt_registry_lock);
	p->nr_files--;
}

/**
 * kvt_pool_ids() - list pools
 * @ids: room for @max ids, or NULL
 * @max: room
 * Return: how many there are.
 */
u32 kvt_pool_ids(u32 *ids, u32 max)
{
	struct kvt_pool *p;
	u32 nr = 0;
	int id;

	guard(mutex)(&kvt_registry_lock);
	idr_for_each_entry(&kvt_pools, p, id) {
		if (p->dying)
			continue;
		if (nr < max && ids)
			ids[nr] = id;
		nr++;
	}
	return nr;
}
