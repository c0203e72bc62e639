/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What all fault handlers have in common.
 *
 * A fault makes its entries under map_sem, and whoever takes memory away from somebody waits
 * for all faults under way. Page tables are charged to the cgroup of whose they are: if one
 * were allocated under map_sem, a client that has used up its memory would hold up all
 * others. So the kernel allocates one before it calls a handler, kvt_fault_table() puts it
 * to use, and entries are made within that one table only. Should it have gone again by then
 * (kvt_fault_ready()), the next is not waited for (kvt_fault_begin()). lockdep knows that nothing
 * else under map_sem may wait for memory, see kvt_pool_init_map_sem().
 */
#ifndef KVT_FAULT_H
#define KVT_FAULT_H

#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <asm/pgalloc.h>

/**
 * kvt_fault_table() - make sure that there is a table for entries of 4 KiB
 * @vmf: fault for such an entry; no lock of ours held
 */
static inline void kvt_fault_table(struct vm_fault *vmf)
{
	spinlock_t *ptl;

	if (!pmd_none(*vmf->pmd) || !vmf->prealloc_pte)
		return;
	ptl = pmd_lock(vmf->vma->vm_mm, vmf->pmd);
	if (pmd_none(*vmf->pmd)) {
		mm_inc_nr_ptes(vmf->vma->vm_mm);
		/* Who finds the table finds it empty. */
		smp_wmb();
		pmd_populate(vmf->vma->vm_mm, vmf->pmd, vmf->prealloc_pte);
		vmf->prealloc_pte = NULL;
	}
	spin_unlock(ptl);
}

/*
 * Is there a table, under map_sem. It may have gone again: MADV_DONTNEED by another thread takes
 * empty ones, on kernels from 6.14 on. Then the fault is to be tried again.
 */
static inline bool kvt_fault_ready(const struct vm_fault *vmf)
{
	return !pmd_none(pmdp_get_lockless(vmf->pmd));
}

/* From here to kvt_fault_end(), which gets what this returns, no memory is waited for. */
static inline unsigned int kvt_fault_begin(void)
{
	return memalloc_noreclaim_save();
}

static inline void kvt_fault_end(unsigned int flags)
{
	memalloc_noreclaim_restore(flags);
}

/* Has an entry of 2 MiB come where a table was to be. Any context. */
static inline bool kvt_fault_huge(const struct vm_fault *vmf)
{
	pmd_t pmd = pmdp_get_lockless(vmf->pmd);

	return pmd_present(pmd) && pmd_leaf(pmd);
}

/* Pages before the faulting one that are in its area, and in the same table. */
static inline unsigned long kvt_fault_before(const struct vm_fault *vmf)
{
	unsigned long addr = vmf->address & PAGE_MASK;

	return (addr - max(vmf->vma->vm_start, addr & PMD_MASK)) >> PAGE_SHIFT;
}

/* The same of those from the faulting one on; at least 1. */
static inline unsigned long kvt_fault_after(const struct vm_fault *vmf)
{
	unsigned long addr = vmf->address & PAGE_MASK;

	return min((vmf->vma->vm_end - addr) >> PAGE_SHIFT,
		   PTRS_PER_PTE - ((addr & ~PMD_MASK) >> PAGE_SHIFT));
}

#endif /* KVT_FAULT_H */
