// SPDX-License-Identifier: GPL-2.0
/*
 * EXPORT: leased blocks as a dma-buf.
 *
 * A buffer is the slots of some blocks, one behind the other. It holds a lease of each
 * block, of its own, so that it outlives the file that made it; and it counts as an
 * open file of its pool. So blocks stay where they are, tiers cannot be detached or
 * drained and the pool not be destroyed while it lives: what a device has mapped is never
 * taken away. It ends with the last reference: importers, mappings and file descriptors
 * hold it. Whoever still refers to one of its pages then (a pin that an importer took
 * through a mapping, a pipe, an entry of a socket's mapping) is waited for: the buffer
 * lingers, with its leases, until the pool's worker finds that they have gone. So who was
 * given a buffer never sees another block by way of it.
 *
 * Blocks do not change: a device can map the buffer to read from it only, and so can the
 * processor. Those in an arena of the file that exports them are the exception, because
 * they are the file's to write anyway: a device may map such a buffer for both.
 *
 * Mappings of a buffer are in its namespace's address_space (kvt_maps.c), each buffer's at an
 * id of its own that no open file has, where kvt_unmap_all() finds them. Nobody but memory
 * that fails makes that necessary. A fault decides under map_sem, as those of the views
 * do; that a block is where it was follows from the lease.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/file.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat/kvt_compat.h"
#include "kvt_fault.h"
#include "kvt_test.h"
#include "ops.h"

KVT_IMPORT_NS_DMA_BUF;

#define KVT_EXPORTS_PER_NS	1024u
#define KVT_EXPORT_FAULT_PAGES	64u
#define KVT_EXPORTS_A_LOOK	16u
#define KVT_EXPORT_UNMAPS	32u	/* of all that are looked at */
#define KVT_EXPORT_DELAY	((unsigned long)HZ / 20 + 1)	/* until the next look */
#define KVT_EXPORT_DELAY_MAX	((unsigned long)HZ)

/**
 * struct kvt_export_part - a block of a buffer
 * @tier:     where it is; stays for the lease
 * @page:     first page there
 * @block:    id
 * @nr_pages: of its slot
 * @first:    its first page in the buffer
 */
struct kvt_export_part {
	struct kvt_tier *tier;
	u32 page;
	u32 block;
	u32 nr_pages;
	u64 first;
};

/**
 * struct kvt_export - what is behind a dma-buf
 * @pool:  held
 * @ns:    stays as long as its blocks do
 * @uid:   whose file it was exported by
 * @id:    in pool->ids
 * @nr:    parts, each with a lease
 * @nr_pages: in all
 * @arena: all of it is in an arena of the file that made it
 * @seen:  when nobody has it any more: so many parts were found to be nobody else's
 * @seen_pages: and so many pages of the next
 * @swept: the namespace's other buffers, and fill views, were unmapped for that
 * @again: jiffies of the next look
 * @delay: that is after the last one, 0: there was none
 * @linger: with its owner's when nobody has it any more. Meta lock
 * @looked: number of the last look at it then. Worker only
 * @part: in the order of the buffer
 */
struct kvt_export {
	struct kvt_pool *pool;
	struct kvt_ns *ns;
	kuid_t uid;
	u32 id;
	u32 nr;
	u64 nr_pages;
	bool arena;
	u32 seen;
	u32 seen_pages;
	bool swept;
	unsigned long again;
	unsigned long delay;
	struct list_head linger;
	u32 looked;
	struct kvt_export_part part[];
};

static u64 kvt_export_bytes(const struct kvt_export *x)
{
	return x->nr_pages << KVT_PAGE_SHIFT;
}

static bool kvt_export_failed(const struct kvt_export *x)
{
	u32 i;

	for (i = 0; i < x->nr; i++) {
		if (READ_ONCE(x->part[i].tier->state) == KVTIER_TIER_FAILED)
			return true;
	}
	return false;
}

/* --- leases -------------------------------------------------------------------- */

/* Is a block, which stays where it is, in an arena of this file. */
static bool kvt_export_in_arena(const struct kvt_file *f, const struct kvt_export_part *part)
{
	bool is;

	spin_lock(&f->pool->meta_lock);
	is = kvt_mem_region_of(&part->tier->mem, part->page)->arena == f->id;
	spin_unlock(&f->pool->meta_lock);
	return is;
}

/* Lease what the file has leased. Whether all could be. */
static bool kvt_export_lease(struct kvt_file *f, struct kvt_export *x, const u64 *handles,
			     u32 nr)
{
	struct kvt_pool *p = f->pool;
	int idx;

	kvt_file_lock(f);
	idx = srcu_read_lock(&p->srcu);
	x->arena = !f->rdonly;
	for (; x->nr < nr; x->nr++) {
		struct kvt_lease *l = kvt_lease_find(f, handles[x->nr], KVT_HELD_LEASE);
		struct kvt_export_part *part = &x->part[x->nr];
		struct kvt_hot *h = l ? kvt_hot(&p->table, l->block) : NULL;

		/* Not if it has been dropped or lost. */
		if (!h || !kvt_lease_try(h))
			break;
		part->tier = p->tiers[h->mem_tier];
		part->page = h->mem_page;
		part->block = l->block;
		part->nr_pages = f->ns->group[h->ns_group & 15].slot_pages;
		part->first = x->nr_pages;
		x->nr_pages += part->nr_pages;
		x->arena = x->arena && kvt_export_in_arena(f, part);
	}
	srcu_read_unlock(&p->srcu, idx);
	mutex_unlock(&f->lock);
	kvt_count(p, f->ns, KVT_CNT_LEASES_TAKEN, x->nr);
	return x->nr == nr;
}

static void kvt_export_unlease(struct kvt_export *x)
{
	u32 i;

	/* First: with the last block the namespace may go. */
	kvt_count(x->pool, x->ns, KVT_CNT_LEASES_GIVEN, x->nr);
	for (i = 0; i < x->nr; i++) {
		kvt_lease_drop(x->pool, x->part[i].block);
		cond_resched();
	}
	kvt_room_wake(x->pool);
	kvt_reclaim_kick(x->pool);
}

/* What a namespace can keep from being moved this way has a limit, as what it pins. */
static int kvt_export_charge(struct kvt_export *x)
{
	u64 bytes = kvt_export_bytes(x);
	struct kvt_ns *ns = x->ns;
	int err = 0;

	spin_lock(&x->pool->meta_lock);
	if (ns->nr_exports >= KVT_EXPORTS_PER_NS ||
	    bytes > kvt_kept_export_room(x->pool, ns)) {
		err = -ENOSPC;
	} else {
		ns->nr_exports++;
		kvt_kept_export(x->pool, ns, bytes);
	}
	spin_unlock(&x->pool->meta_lock);
	return err;
}

static void kvt_export_uncharge(struct kvt_export *x)
{
	spin_lock(&x->pool->meta_lock);
	x->ns->nr_exports--;
	kvt_kept_export(x->pool, x->ns, -(s64)kvt_export_bytes(x));
	spin_unlock(&x->pool->meta_lock);
}

/* --- mappings of the processor --------------------------------------------------- */

/* The part that a page of the buffer is in; there is such a page. */
static const struct kvt_export_part *kvt_export_find(const struct kvt_export *x, u64 page)
{
	u32 low = 0, high = x->nr;

	while (high - low > 1) {
		u32 mid = low + (high - low) / 2;

		if (x->part[mid].first <= page)
			low = mid;
		else
			high = mid;
	}
	return &x->part[low];
}

/* map_sem held: a tier that fails now waits for us, and unmaps then. */
static vm_fault_t kvt_export_insert(struct vm_fault *vmf, const struct kvt_export_part *part,
				    u64 page)
{
	unsigned long addr = vmf->address & PAGE_MASK;
	u32 skip = page - part->first, nr;

	if (READ_ONCE(part->tier->state) == KVTIER_TIER_FAILED)
		return VM_FAULT_SIGBUS;
	if (kvt_tier_page_bad(part->tier, part->page + skip)) {
		kvt_poison_found(part->tier, part->page + skip, 1);
		return VM_FAULT_HWPOISON;
	}
	nr = min(part->nr_pages - skip, KVT_EXPORT_FAULT_PAGES);
	nr = min_t(unsigned long, nr, kvt_fault_after(vmf));
	return part->tier->ops->insert(part->tier, vmf->vma, addr, part->page + skip, nr, false);
}

static vm_fault_t kvt_export_fault(struct vm_fault *vmf)
{
	const struct kvt_export *x = vmf->vma->vm_private_data;
	u64 page = vmf->pgoff - (kvt_fill_base(x->id) >> PAGE_SHIFT);
	unsigned int flags;
	vm_fault_t ret;

	if (page >= x->nr_pages || (vmf->flags & FAULT_FLAG_WRITE))
		return VM_FAULT_SIGBUS;
	page = array_index_nospec(page, x->nr_pages);
	kvt_fault_table(vmf);
	down_read(&x->pool->map_sem);
	flags = kvt_fault_begin();
	ret = !kvt_fault_ready(vmf) ? VM_FAULT_NOPAGE :
				      kvt_export_insert(vmf, kvt_export_find(x, page), page);
	kvt_fault_end(flags);
	up_read(&x->pool->map_sem);
	return ret;
}

/* Where a buffer's mappings count: it is for others. */
static atomic_t *kvt_export_maps(const struct vm_area_struct *vma)
{
	const struct kvt_export *x = vma->vm_private_data;

	return &x->ns->maps.nr[KVT_MAPS_OTHERS];
}

static void kvt_export_vm_open(struct vm_area_struct *vma)
{
	kvt_maps_open(kvt_export_maps(vma), vma);
}

static void kvt_export_vm_close(struct vm_area_struct *vma)
{
	atomic_dec(kvt_export_maps(vma));
}

static int kvt_export_may_split(struct vm_area_struct *vma, unsigned long addr)
{
	return kvt_maps_may_split(kvt_export_maps(vma));
}

static const struct vm_operations_struct kvt_export_vm_ops = {
	.open = kvt_export_vm_open,
	.close = kvt_export_vm_close,
	.may_split = kvt_export_may_split,
	.fault = kvt_export_fault,
};

static int kvt_export_mmap(struct dma_buf *buf, struct vm_area_struct *vma)
{
	struct kvt_export *x = buf->priv;

	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	if (vma->vm_flags & (VM_WRITE | VM_EXEC))
		return -EACCES;
	if (kvt_maps_add(&x->ns->maps.nr[KVT_MAPS_OTHERS]))
		return -ENOMEM;
	vm_flags_clear(vma, VM_MAYWRITE | VM_MAYEXEC);
	vm_flags_set(vma, VM_MIXEDMAP | VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_pgoff += kvt_fill_base(x->id) >> PAGE_SHIFT;
	vma->vm_private_data = x;
	vma->vm_ops = &kvt_export_vm_ops;
	return 0;
}

/* --- importers -------------------------------------------------------------------- */

static u32 kvt_export_run(const struct kvt_export_part *part, u32 done, u32 max)
{
	return min(kvt_page_run(part->page + done, part->nr_pages - done), max);
}

/* Go over the runs of pages that are contiguous and no longer than @max; into @sg, or NULL. */
static u32 kvt_export_runs(const struct kvt_export *x, u32 max, struct scatterlist *sg)
{
	u32 nr = 0, i, done, n;

	for (i = 0; i < x->nr; i++) {
		const struct kvt_export_part *part = &x->part[i];

		for (done = 0; done < part->nr_pages; done += n, nr++) {
			n = kvt_export_run(part, done, max);
			if (!sg)
				continue;
			sg_set_page(sg, part->tier->ops->page(part->tier, part->page + done),
				    n << PAGE_SHIFT, 0);
			sg = sg_next(sg);
		}
	}
	return nr;
}

/* Is a page known to be bad: a device is not told to read that. */
static bool kvt_export_bad(const struct kvt_export *x)
{
	u32 i, page;

	for (i = 0; i < x->nr; i++) {
		const struct kvt_export_part *part = &x->part[i];

		for (page = part->page; page < part->page + part->nr_pages; page++) {
			if (!kvt_tier_page_bad(part->tier, page))
				continue;
			kvt_poison_found(part->tier, page, 1);
			return true;
		}
		cond_resched();
	}
	return false;
}

static struct sg_table *kvt_export_map(struct dma_buf_attachment *at,
				       enum dma_data_direction dir)
{
	struct kvt_export *x = at->dmabuf->priv;
	u32 max = max(dma_get_max_seg_size(at->dev) >> PAGE_SHIFT, 1u);
	struct sg_table *table;
	int err;

	if (dir != DMA_TO_DEVICE && !(x->arena && dir == DMA_BIDIRECTIONAL))
		return ERR_PTR(-EACCES);
	if (kvt_export_failed(x))
		return ERR_PTR(-ENODEV);
	if (kvt_export_bad(x))
		return ERR_PTR(-EHWPOISON);
	table = kzalloc(sizeof(*table), GFP_KERNEL);
	if (!table)
		return ERR_PTR(-ENOMEM);
	err = sg_alloc_table(table, kvt_export_runs(x, max, NULL), GFP_KERNEL);
	if (err)
		goto free;
	kvt_export_runs(x, max, table->sgl);
	err = dma_map_sgtable(at->dev, table, dir, 0);
	if (!err)
		return table;
	sg_free_table(table);
free:
	kfree(table);
	return ERR_PTR(err);
}

static void kvt_export_unmap(struct dma_buf_attachment *at, struct sg_table *table,
			     enum dma_data_direction dir)
{
	dma_unmap_sgtable(at->dev, table, dir, 0);
	sg_free_table(table);
	kfree(table);
}

/* --- life -------------------------------------------------------------------------- */

static void kvt_export_free(struct kvt_export *x)
{
	struct kvt_pool *p = x->pool;

	kvt_export_unlease(x);
	if (x->id)
		kvt_id_give(&p->ids, x->uid, x->id);
	kvfree(x);
	kvt_pool_put(p);
}

/*
 * Are these pages of it alone, once who may have them mapped has not: readers, an arena's file, and,
 * taken away once, other buffers. Whose entries are left cannot be told from others' that are not
 * ours (see kvt_page_extra_refs()), so who may have one faults again after this. @budget: how
 * often that may be done.
 */
static bool kvt_export_alone(struct kvt_export *x, struct kvt_tier *t, u32 page, u32 nr,
			     u32 *budget)
{
	u64 offset = kvt_window_offset(t, page), bytes = (u64)nr << KVT_PAGE_SHIFT;
	u32 arena;

	/* Most parts nobody has mapped; and where there are more references it would be in vain. */
	if (kvt_pages_alone(t, page, nr))
		return true;
	if (!*budget || kvt_pages_foreign(t, page, nr))
		return false;
	--*budget;
	spin_lock(&x->pool->meta_lock);
	arena = kvt_mem_region_of(&t->mem, page)->arena;
	spin_unlock(&x->pool->meta_lock);
	/*
	 * Who reads just now makes a new entry, and this look is in vain. Not under map_sem: who has
	 * a lock that unmapping takes would keep everybody's faults waiting.
	 */
	kvt_unmap(x->ns, offset, bytes);
	if (arena)
		kvt_unmap(x->ns, kvt_fill_base(arena) + offset, bytes);
	if (kvt_pages_alone(t, page, nr))
		return true;
	if (x->swept)
		return false;
	x->swept = true;
	kvt_unmap(x->ns, KVT_WINDOW_BYTES, 0);
	return kvt_pages_alone(t, page, nr);
}

/*
 * Does somebody refer to a page of it that was not found alone yet. One that was has no reference
 * that came by way of the buffer, and gets none: the buffer is mapped nowhere any more. So looks
 * go on where they have ended. What is on lost memory goes to nobody anyway.
 */
static bool kvt_export_foreign(struct kvt_export *x, u32 *budget)
{
	for (; x->seen < x->nr; x->seen++, x->seen_pages = 0) {
		const struct kvt_export_part *part = &x->part[x->seen];
		u32 nr;

		if (READ_ONCE(part->tier->state) == KVTIER_TIER_FAILED)
			continue;
		for (; x->seen_pages < part->nr_pages; x->seen_pages += nr) {
			nr = min(part->nr_pages - x->seen_pages, KVT_PIECE_PAGES);
			if (!kvt_export_alone(x, part->tier, part->page + x->seen_pages, nr,
					      budget))
				return true;
		}
	}
	return false;
}

/* With its owner's, who gets his turn. */
static void kvt_export_linger(struct kvt_export *x)
{
	struct kvt_fixed_owner *o = x->ns->fixed.owner;

	spin_lock(&x->pool->meta_lock);
	list_add_tail(&x->linger, &o->lingering);
	if (list_empty(&o->turn))
		list_add_tail(&o->turn, &x->pool->fixed.lingering);
	spin_unlock(&x->pool->meta_lock);
}

/*
 * The next one to be looked at, off its list: owners take turns, whatever number of buffers they
 * have. All of @done's owners have been looked at.
 */
static struct kvt_export *kvt_export_next(struct kvt_pool *p, u32 look, struct list_head *done)
{
	struct kvt_fixed_owner *o;
	struct kvt_export *x;

	lockdep_assert_held(&p->meta_lock);
	while ((o = list_first_entry_or_null(&p->fixed.lingering, struct kvt_fixed_owner, turn))) {
		x = list_first_entry(&o->lingering, struct kvt_export, linger);
		if (x->looked == look) {
			list_move_tail(&o->turn, done);
			continue;
		}
		x->looked = look;
		list_del(&x->linger);
		if (list_empty(&o->lingering))
			list_del_init(&o->turn);
		else
			list_move_tail(&o->turn, &p->fixed.lingering);
		return x;
	}
	return NULL;
}

/* Nobody has it any more: it goes, unless it has to linger. Whether it has gone. */
static bool kvt_export_end(struct kvt_export *x, u32 *budget)
{
	bool due = !x->delay || !time_before(jiffies, x->again);

	if (!due || kvt_export_foreign(x, budget)) {
		/* Unless it was only that others have had their turn. */
		if (due && *budget) {
			x->delay = clamp(2 * x->delay, KVT_EXPORT_DELAY, KVT_EXPORT_DELAY_MAX);
			x->again = jiffies + x->delay;
		}
		kvt_export_linger(x);
		return false;
	}
	kvt_export_uncharge(x);
	kvt_export_free(x);
	return true;
}

static void kvt_export_release(struct dma_buf *buf)
{
	struct kvt_export *x = buf->priv;
	struct kvt_pool *p = x->pool;
	u32 budget = KVT_EXPORT_UNMAPS;

	/* Until it has gone it keeps the pool, but afterwards nothing does. */
	get_device(&p->dev);
	if (!kvt_export_end(x, &budget))
		kvt_reclaim_kick(p);
	put_device(&p->dev);
}

/**
 * kvt_exports_look() - let buffers go whose pages nobody refers to any more
 * @p: pool; no lock held, may sleep; called by its worker only
 *
 * A few at a time, each of them once, owners by turns.
 * Return: whether any has gone.
 */
bool kvt_exports_look(struct kvt_pool *p)
{
	/* Not 0, which is what those have that have not been looked at. */
	u32 look = p->fixed.looks + 1 ?: 1, budget = KVT_EXPORT_UNMAPS, i;
	struct kvt_export *x;
	LIST_HEAD(done);
	bool any = false;

	p->fixed.looks = look;
	for (i = 0; i < KVT_EXPORTS_A_LOOK; i++) {
		spin_lock(&p->meta_lock);
		x = kvt_export_next(p, look, &done);
		spin_unlock(&p->meta_lock);
		if (!x)
			break;
		any |= kvt_export_end(x, &budget);
	}
	spin_lock(&p->meta_lock);
	list_splice_tail(&done, &p->fixed.lingering);
	spin_unlock(&p->meta_lock);
	return any;
}

static const struct dma_buf_ops kvt_export_ops = {
	.map_dma_buf = kvt_export_map,
	.unmap_dma_buf = kvt_export_unmap,
	.mmap = kvt_export_mmap,
	.release = kvt_export_release,
};

static int kvt_export_name(struct kvt_export *x, struct kvt_file *f)
{
	int id = kvt_id_take(&x->pool->ids, f->file, kvt_test_most(KVT_FILE_IDS_MAX));

	if (id < 0)
		return id;
	x->uid = f->file->f_cred->fsuid;
	x->id = id;
	return 0;
}

/* Leases of @handles as a buffer that nobody has yet, or an ERR_PTR. */
static struct kvt_export *kvt_export_make(struct kvt_file *f, const u64 *handles, u32 nr)
{
	struct kvt_export *x;
	int err;

	x = kvzalloc(struct_size(x, part, nr), GFP_KERNEL_ACCOUNT);
	if (!x)
		return ERR_PTR(-ENOMEM);
	x->ns = f->ns;
	/* The caller's open file keeps it from ending here. */
	x->pool = kvt_pool_get(f->pool->id);
	if (!x->pool) {
		kvfree(x);
		return ERR_PTR(-ENXIO);
	}
	err = kvt_export_lease(f, x, handles, nr) ? kvt_export_name(x, f) : -EINVAL;
	if (!err)
		return x;
	kvt_export_free(x);
	return ERR_PTR(err);
}

/* A dma-buf of it, to which it belongs then. */
static struct dma_buf *kvt_export_wrap(struct kvt_export *x)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct dma_buf *buf;
	int err = kvt_export_charge(x);

	if (err)
		return ERR_PTR(err);
	info.ops = &kvt_export_ops;
	info.size = kvt_export_bytes(x);
	info.flags = O_RDONLY | O_CLOEXEC;
	info.priv = x;
	buf = dma_buf_export(&info);
	if (IS_ERR(buf))
		kvt_export_uncharge(x);
	else
		kvt_maps_bind(x->ns, buf->file);
	return buf;
}

/**
 * kvt_op_export() - EXPORT
 * @f:   caller
 * @arg: struct kvtier_export
 * @new: out: the buffer's descriptor
 */
int kvt_op_export(struct kvt_file *f, void *arg, struct kvt_newfd *new)
{
	struct kvtier_export *a = arg;
	struct kvt_export *x;
	struct dma_buf *buf;
	u64 *handles;
	int fd;

	if (kvt_check_nr(a->nr))
		return -EINVAL;
	handles = vmemdup_array_user(u64_to_user_ptr(a->handles), a->nr, sizeof(*handles));
	if (IS_ERR(handles))
		return PTR_ERR(handles);
	x = kvt_export_make(f, handles, a->nr);
	kvfree(handles);
	if (IS_ERR(x))
		return PTR_ERR(x);
	a->bytes = kvt_export_bytes(x);
	buf = kvt_export_wrap(x);
	if (IS_ERR(buf)) {
		kvt_export_free(x);
		return PTR_ERR(buf);
	}
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0) {
		dma_buf_put(buf);
		return fd;
	}
	new->file = buf->file;
	new->fd = fd;
	a->fd = fd;
	return 0;
}
