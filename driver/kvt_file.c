// SPDX-License-Identifier: GPL-2.0
/*
 * Open files of a data device, and the handles they hold.
 *
 * A handle is an index into the file's own lease table and the generation of
 * that record, so it means nothing on another file and nothing after its
 * release. When the last reference to the file goes (mappings and forks hold it)
 * all it holds goes with it, at once.
 *
 * Invariant: a record of kind LEASE owns one lease of its block; one of kind
 * RESERVATION owns nothing (the block's owner field and generation do), so that a
 * reservation can be taken back without looking for its record.
 */
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/vmalloc.h>

#include "kvt_internal.h"
#include "kvt_mlog.h"
#include "kvt_test.h"

static int kvt_open(struct inode *inode, struct file *file)
{
	struct kvt_pool *p = container_of(inode->i_cdev, struct kvt_pool, cdev);
	struct kvt_file *f;
	int id = -ENOMEM, i;

	/* The cdev keeps the pool's memory; this keeps the pool alive. */
	p = kvt_pool_get(p->id);
	if (!p)
		return -ENXIO;
	f = kzalloc(sizeof(*f), GFP_KERNEL_ACCOUNT);
	if (!f)
		goto put;
	id = kvt_id_take(&p->ids, file, kvt_test_most(KVT_FILE_IDS_MAX));
	if (id < 0)
		goto free;
	f->pool = p;
	f->file = file;
	f->id = id;
	f->rdonly = !(file->f_mode & FMODE_WRITE);
	mutex_init(&f->lock);
	spin_lock_init(&f->async_lock);
	INIT_LIST_HEAD(&f->running);
	INIT_LIST_HEAD(&f->done);
	init_waitqueue_head(&f->async_wait);
	kvt_pace_init(&f->pace);
	for (i = 0; i < KVTIER_GROUPS_MAX; i++)
		f->arena[i].region = KVT_NO_REGION;
	/* What was lost before is not this file's. */
	spin_lock(&p->meta_lock);
	f->log_seen = p->log_lost;
	spin_unlock(&p->meta_lock);
	file->private_data = f;
	return nonseekable_open(inode, file);
free:
	kfree(f);
put:
	kvt_pool_put(p);
	return id;
}

/* Give back every lease and reservation; no one else can use the table now. */
static void kvt_file_drop_all(struct kvt_file *f)
{
	u32 ids[KVT_CHUNK_KEYS], i, nr = 0;
	struct kvt_pool *p = f->pool;
	u64 given = 0;

	for (i = 0; i < f->max_leases; i++) {
		struct kvt_lease *l = &f->leases[i];
		u32 kind = l->kind_next & 3;

		if (kind == KVT_HELD_LEASE) {
			kvt_lease_drop(p, l->block);
			given++;
		} else if (kind == KVT_HELD_RESERVATION) {
			spin_lock(&p->meta_lock);
			if (kvt_filling_claim(p, l->block, l->gen, f->id))
				ids[nr++] = l->block;
			spin_unlock(&p->meta_lock);
		}
		if (nr == ARRAY_SIZE(ids)) {
			kvt_filling_abort(p, ids, nr, f->fill_mapped);
			nr = 0;
		}
		if (!(i % 1024))
			cond_resched();
	}
	if (nr)
		kvt_filling_abort(p, ids, nr, f->fill_mapped);
	kvt_count(p, f->ns, KVT_CNT_LEASES_GIVEN, given);
}

/* Its arenas become ordinary regions on their way out: they may still be pinned. */
static void kvt_file_drop_arenas(struct kvt_file *f)
{
	struct kvt_pool *p = f->pool;
	u32 g;

	if (!f->ns)
		return;
	spin_lock(&p->meta_lock);
	for (g = 0; g < f->ns->nr_groups; g++) {
		struct kvt_arena *a = &f->arena[g];
		struct kvt_tier *t;
		struct kvt_region *r;

		if (a->region == KVT_NO_REGION)
			continue;
		t = p->tiers[a->tier];
		r = kvt_mem_region(&t->mem, a->region);
		kvt_kept_arena(f->ns, -((s64)r->nr_pieces << KVT_PIECE_SHIFT));
		f->ns->kept.retired_bytes += (u64)r->nr_pieces << KVT_PIECE_SHIFT;
		kvt_mem_region_arena(&t->mem, &f->ns->group[g].owner[a->tier], r, 0);
		r->retire = true;
		t->nr_lost++;
		if (r->state == KVT_REGION_ACTIVE)
			kvt_mem_region_drain(&t->mem, &f->ns->group[g].owner[a->tier], r);
	}
	spin_unlock(&p->meta_lock);
}

static int kvt_release(struct inode *inode, struct file *file)
{
	struct kvt_file *f = file->private_data;
	struct kvt_pool *p = f->pool;

	kvt_async_release(f);
	kvt_sessions_release(f);
	kvt_file_drop_all(f);
	kvt_file_drop_arenas(f);
	kvfree(f->leases);
	atomic64_sub((u64)f->max_leases * sizeof(*f->leases), &p->lease_bytes);
	if (f->ns) {
		/* The namespace, and its inode, may go. */
		file->f_mapping = inode->i_mapping;
		kvt_ns_close(f);
	}
	kvt_id_give(&p->ids, file->f_cred->fsuid, f->id);
	kfree(f);
	kvt_reclaim_kick(p);
	kvt_pool_put(p);
	return 0;
}

/**
 * kvt_lease_prepare() - make sure that handles can be added
 * @f:  file, locked
 * @nr: how many
 * Return: 0, -ENOMEM, or -ENOSPC at the limit.
 */
int kvt_lease_prepare(struct kvt_file *f, u32 nr)
{
	u32 have = f->max_leases, want = f->nr_leases + nr, i;
	struct kvt_lease *tab;

	lockdep_assert_held(&f->lock);
	if (want <= have)
		return 0;
	if (want > KVT_LEASES_PER_FILE)
		return -ENOSPC;
	want = max(roundup_pow_of_two(want), 64u);
	tab = kvcalloc(want, sizeof(*tab), GFP_KERNEL_ACCOUNT);
	if (!tab)
		return -ENOMEM;
	if (have)
		memcpy(tab, f->leases, have * sizeof(*tab));
	for (i = want; i-- > have;) {
		tab[i].kind_next = f->free << 2;
		tab[i].hgen = kvt_test_handles();
		f->free = i + 1;
	}
	kvfree(f->leases);
	f->leases = tab;
	f->max_leases = want;
	atomic64_add((u64)(want - have) * sizeof(*tab), &f->pool->lease_bytes);
	return 0;
}

/**
 * kvt_lease_add() - issue a handle
 * @f:     file, locked, after kvt_lease_prepare()
 * @block: what it stands for
 * @gen:   its generation
 * @kind:  and how
 * Return: handle, never 0.
 */
u64 kvt_lease_add(struct kvt_file *f, u32 block, u32 gen, enum kvt_lease_kind kind)
{
	u32 nr = f->free;
	struct kvt_lease *l = &f->leases[nr - 1];

	lockdep_assert_held(&f->lock);
	f->free = l->kind_next >> 2;
	f->nr_leases++;
	l->block = block;
	l->gen = gen;
	l->kind_next = kind;
	l->hgen++;
	return (u64)l->hgen << 32 | nr;
}

/**
 * kvt_lease_find() - what a handle stands for
 * @f:      file, locked
 * @handle: any number
 * @kind:   what it must be
 * Return: record or NULL.
 */
struct kvt_lease *kvt_lease_find(struct kvt_file *f, u64 handle, enum kvt_lease_kind kind)
{
	u32 nr = (u32)handle;
	struct kvt_lease *l;

	lockdep_assert_held(&f->lock);
	if (!nr || nr > f->max_leases)
		return NULL;
	l = &f->leases[array_index_nospec(nr - 1, f->max_leases)];
	if (l->hgen != handle >> 32 || (l->kind_next & 3) != kind)
		return NULL;
	return l;
}

/**
 * kvt_lease_del() - a handle is void
 * @f: file, locked
 * @l: its record
 *
 * One that has been through all generations is not used again, and counts as in use: handles
 * that it had before would be valid once more.
 */
void kvt_lease_del(struct kvt_file *f, struct kvt_lease *l)
{
	lockdep_assert_held(&f->lock);
	if (unlikely(l->hgen == U32_MAX)) {
		l->kind_next = KVT_HELD_NONE;
		return;
	}
	l->kind_next = f->free << 2;
	f->free = (u32)(l - f->leases) + 1;
	f->nr_leases--;
}

/* What is on block tiers now is found again after a crash. See the uapi header. */
static int kvt_fsync(struct file *file, loff_t start, loff_t end, int datasync)
{
	struct kvt_file *f = file->private_data;

	/* Pairs with NS_OPEN. */
	if (!smp_load_acquire(&f->ns))
		return -EBADFD;
	return kvt_mlog_fsync(f->pool, &f->log_seen);
}

const struct file_operations kvt_data_fops = {
	.owner = THIS_MODULE,
	.open = kvt_open,
	.release = kvt_release,
	.unlocked_ioctl = kvt_data_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = kvt_mmap,
	.get_unmapped_area = thp_get_unmapped_area,
	.read = kvt_async_read,
	.poll = kvt_async_poll,
	.fsync = kvt_fsync,
	.llseek = noop_llseek,
};
