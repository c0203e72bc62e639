// SPDX-License-Identifier: GPL-2.0
/*
 * Mappings.
 *
 * One offset space per pool. [0, 16 TiB) is the *read view*: each memory tier
 * has a window in it, and a page is there for every file whose namespace owns the
 * page's region. [id * 16 TiB, (id + 1) * 16 TiB) is the *fill view* of the open
 * file with that id: the same windows, writable, but a page is there only while
 * the file holds a reservation on its slot, or an arena over its region.
 *
 * Faults decide under map_sem (read) and the meta lock; who changes what they
 * would decide does so under the meta lock, then passes map_sem (write), then
 * unmaps. So an entry once taken away never comes back.
 *
 * Entries are backed by struct pages, so that devices can pin them. There is no
 * page_mkwrite: long-term pins would be refused.
 */
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/pagemap.h>

#include "kvt_fault.h"
#include "kvt_internal.h"

#define KVT_FAULT_PAGES	64u	/* most 4 KiB entries made by one fault */

/**
 * struct kvt_fault - what a fault resolved to
 * @tier:  memory tier
 * @page:  page number of the fault
 * @first: first page number that may be mapped with it
 * @end:   end of those
 */
struct kvt_fault {
	struct kvt_tier *tier;
	u32 page;
	u32 first;
	u32 end;
};

static struct kvt_tier *kvt_window_tier(struct kvt_pool *p, u64 offset)
{
	u32 i;

	for (i = 0; i < KVT_TIERS; i++) {
		struct kvt_tier *t = kvt_tier_at(p, i);

		if (t && t->ops->is_mem && offset >= t->window_offset &&
		    offset - t->window_offset < (u64)t->nr_pieces << KVT_PIECE_SHIFT)
			return t;
	}
	return NULL;
}

/* Read view: any page of a region of the file's namespace. */
static bool kvt_fault_read(struct kvt_file *f, struct kvt_fault *v)
{
	struct kvt_mem *m = &v->tier->mem;
	const struct kvt_region *reg = kvt_mem_region_of(m, v->page);

	/* A namespace lives as long as it has regions. */
	if (!reg || kvt_ns_of(f->pool, reg->ns_group) != f->ns ||
	    (reg->state != KVT_REGION_ACTIVE && reg->state != KVT_REGION_DRAINING))
		return false;
	v->first = reg->first * KVT_PIECE_PAGES;
	v->end = v->first + reg->nr_pieces * KVT_PIECE_PAGES;
	return true;
}

/* Fill view: a slot that this file is filling, or its arena. */
static bool kvt_fault_fill(struct kvt_file *f, struct kvt_fault *v)
{
	struct kvt_mem *m = &v->tier->mem;
	const struct kvt_region *reg = kvt_mem_region_of(m, v->page);
	struct kvt_pool *p = f->pool;
	u32 id, ctl;

	if (!reg)
		return false;
	if (reg->arena == f->id && reg->state == KVT_REGION_ACTIVE) {
		v->first = reg->first * KVT_PIECE_PAGES;
		v->end = v->first + reg->nr_pieces * KVT_PIECE_PAGES;
		return true;
	}
	id = kvt_mem_block_at(m, v->page, &v->first);
	if (id == KVT_NIL)
		return false;
	ctl = kvt_ctl(kvt_hot(&p->table, id));
	if (kvt_ctl_state(ctl) != KVT_FILLING || (ctl & KVT_CTL_MOVING) ||
	    kvt_cold(&p->table, id)->owner != f->id)
		return false;
	v->end = v->first + reg->slot_pages;
	return true;
}

/* What may be mapped here now. map_sem and srcu held. */
static bool kvt_fault_resolve(struct kvt_file *f, u64 offset, bool fill, struct kvt_fault *v)
{
	struct kvt_pool *p = f->pool;
	bool ok;

	v->tier = kvt_window_tier(p, offset);
	if (!v->tier)
		return false;
	/* Offsets are the user's: none leads past the tier's tables, not even by a guess. */
	v->page = array_index_nospec((offset - v->tier->window_offset) >> KVT_PAGE_SHIFT,
				     (unsigned long)v->tier->nr_pieces * KVT_PIECE_PAGES);
	spin_lock(&p->meta_lock);
	ok = v->tier->state != KVTIER_TIER_FAILED &&
	     (fill ? kvt_fault_fill(f, v) : kvt_fault_read(f, v));
	spin_unlock(&p->meta_lock);
	return ok;
}

/* Map the faulting page and, as far as it is free, what surrounds it. */
static vm_fault_t kvt_fault_pte(struct vm_fault *vmf, const struct kvt_fault *v, bool fill)
{
	unsigned long addr = vmf->address & PAGE_MASK, start;
	u32 first = round_down(v->page, KVT_FAULT_PAGES), end = first + KVT_FAULT_PAGES;
	vm_fault_t ret;

	first = max(first, v->first);
	end = min(end, v->end);
	/* Within the VMA, too. */
	first = max_t(u64, first, v->page - min_t(u64, v->page, kvt_fault_before(vmf)));
	end = min_t(u64, end, v->page + kvt_fault_after(vmf));
	start = addr - ((unsigned long)(v->page - first) << PAGE_SHIFT);
	ret = v->tier->ops->insert(v->tier, vmf->vma, start, first, end - first, fill);
	/* Not short of memory: somebody's huge entry is there. It will do. */
	return ret == VM_FAULT_OOM && kvt_fault_huge(vmf) ? VM_FAULT_NOPAGE : ret;
}

static vm_fault_t kvt_fault_pmd(struct vm_fault *vmf, const struct kvt_fault *v)
{
	u32 page = round_down(v->page, KVT_PIECE_PAGES);
	unsigned long addr = vmf->address & PMD_MASK;

	if (!v->tier->ops->insert_pmd || page < v->first ||
	    page + KVT_PIECE_PAGES > v->end || addr < vmf->vma->vm_start ||
	    addr + PMD_SIZE > vmf->vma->vm_end ||
	    linear_page_index(vmf->vma, addr) % KVT_PIECE_PAGES)
		return VM_FAULT_FALLBACK;
	/* A table has come, or a write to an entry that is write-protected: it is split then. */
	if (!pmd_none(pmdp_get_lockless(vmf->pmd)))
		return VM_FAULT_FALLBACK;
	return v->tier->ops->insert_pmd(v->tier, vmf, page);
}

static vm_fault_t kvt_fault_poison(const struct kvt_fault *v)
{
	kvt_poison_found(v->tier, v->page, 1);
	return VM_FAULT_HWPOISON;
}

static vm_fault_t kvt_fault_order(struct vm_fault *vmf, bool pmd)
{
	struct kvt_file *f = vmf->vma->vm_file->private_data;
	struct kvt_pool *p = f->pool;
	u64 offset = (u64)vmf->pgoff << PAGE_SHIFT;
	bool fill = offset >= KVT_WINDOW_BYTES;
	struct kvt_fault v;
	unsigned int flags;
	vm_fault_t ret;
	int idx;

	if (!fill && (vmf->flags & FAULT_FLAG_WRITE))
		return VM_FAULT_SIGBUS;
	/*
	 * Where userfaultfd has left a marker, on kernels that let it watch any mapping, no
	 * entry can be made. The access would be tried again for ever, in the kernel's own
	 * copies with no signal to end it.
	 */
	if ((vmf->flags & FAULT_FLAG_ORIG_PTE_VALID) && !pte_none(vmf->orig_pte))
		return VM_FAULT_SIGBUS;
	if (fill)
		offset -= kvt_fill_base(f->id);
	if (!pmd)
		kvt_fault_table(vmf);
	idx = srcu_read_lock(&p->srcu);
	down_read(&p->map_sem);
	flags = kvt_fault_begin();
	if (!pmd && !kvt_fault_ready(vmf))
		ret = VM_FAULT_NOPAGE;
	else if (!kvt_fault_resolve(f, offset, fill, &v))
		ret = VM_FAULT_SIGBUS;
	else if (!pmd && kvt_tier_page_bad(v.tier, v.page))
		ret = kvt_fault_poison(&v);
	else
		ret = pmd ? kvt_fault_pmd(vmf, &v) : kvt_fault_pte(vmf, &v, fill);
	kvt_fault_end(flags);
	up_read(&p->map_sem);
	srcu_read_unlock(&p->srcu, idx);
	return ret;
}

static vm_fault_t kvt_vm_fault(struct vm_fault *vmf)
{
	return kvt_fault_order(vmf, false);
}

static vm_fault_t kvt_vm_huge_fault(struct vm_fault *vmf, unsigned int order)
{
	if (order != PMD_ORDER)
		return VM_FAULT_FALLBACK;
	return kvt_fault_order(vmf, true);
}

/* vm_private_data is where it counts, see kvt_maps_of(). */
static void kvt_vm_open(struct vm_area_struct *vma)
{
	kvt_maps_open(vma->vm_private_data, vma);
}

static void kvt_vm_close(struct vm_area_struct *vma)
{
	atomic_dec(vma->vm_private_data);
}

static int kvt_vm_may_split(struct vm_area_struct *vma, unsigned long addr)
{
	return kvt_maps_may_split(vma->vm_private_data);
}

static const struct vm_operations_struct kvt_vm_ops = {
	.open = kvt_vm_open,
	.close = kvt_vm_close,
	.may_split = kvt_vm_may_split,
	.fault = kvt_vm_fault,
	.huge_fault = kvt_vm_huge_fault,
};

/**
 * kvt_mmap() - map a part of the read view or of this file's fill view
 * @file: open file of a data device
 * @vma:  what is wanted
 *
 * EBADFD before NS_OPEN; EINVAL for private mappings and other ranges; EACCES
 * for a writable read view, or a fill view of a file that may not write; ENOMEM: the
 * namespace has too many mappings.
 */
int kvt_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct kvt_file *f = file->private_data;
	u64 start = (u64)vma->vm_pgoff << PAGE_SHIFT;
	u64 end = start + (vma->vm_end - vma->vm_start), base;
	atomic_t *nr;

	/* Pairs with NS_OPEN: a bound file's namespace is complete. */
	if (!smp_load_acquire(&f->ns))
		return -EBADFD;
	/* VM_SHARED is cleared for files opened read-only. */
	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	if (start < KVT_WINDOW_BYTES) {
		if (end > KVT_WINDOW_BYTES)
			return -EINVAL;
		if (vma->vm_flags & VM_WRITE)
			return -EACCES;
		vm_flags_clear(vma, VM_MAYWRITE);
	} else {
		base = kvt_fill_base(f->id);
		if (start < base || end > base + KVT_WINDOW_BYTES || end < start)
			return -EINVAL;
		if (f->rdonly)
			return -EACCES;
	}
	if (vma->vm_flags & VM_EXEC)
		return -EACCES;
	nr = kvt_maps_of(f->ns);
	if (kvt_maps_add(nr))
		return -ENOMEM;
	vma->vm_private_data = nr;
	if (start >= KVT_WINDOW_BYTES)
		WRITE_ONCE(f->fill_mapped, true);
	vm_flags_clear(vma, VM_MAYEXEC);
	vm_flags_set(vma, VM_MIXEDMAP | VM_DONTEXPAND | VM_DONTDUMP | VM_HUGEPAGE);
	vma->vm_ops = &kvt_vm_ops;
	return 0;
}
