/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between kernels, as functions with one meaning each.
 *
 * The driver is written to the newest interfaces; this folder alone knows others.
 * What a kernel has is found by compiling probes/ (see probe.sh), never by version.
 */
#ifndef KVT_COMPAT_H
#define KVT_COMPAT_H

#include <linux/mm.h>

#include "kvt_config.h"

#ifdef KVT_HAVE_PFN_T
#include <linux/io.h>
#include <linux/pfn_t.h>
#endif

/* Use what is exported to users of dma-buf alone. The other form means nothing to a kernel. */
#ifdef KVT_HAVE_IMPORT_NS_TOKEN
#define KVT_IMPORT_NS_DMA_BUF	MODULE_IMPORT_NS(DMA_BUF)
#else
#define KVT_IMPORT_NS_DMA_BUF	MODULE_IMPORT_NS("DMA_BUF")
#endif

/* What is between the entry and the caller's argument when a list_lru is walked. */
#ifdef KVT_HAVE_LRU_WALK_LOCK
#define KVT_LRU_WALK_ARGS	struct list_lru_one *list, spinlock_t *lock
#else
#define KVT_LRU_WALK_ARGS	struct list_lru_one *list
#endif

/**
 * kvt_insert_device_page() - map one ZONE_DEVICE page of type generic
 * @vma:  VM_MIXEDMAP
 * @addr: where
 * @page: what
 * Return: as a fault handler; VM_FAULT_NOPAGE also when something is there already.
 *
 * The entry can be pinned. It holds a reference and a map count on newer kernels
 * and neither on older ones, where the page must outlive it by other means.
 */
static inline vm_fault_t kvt_insert_device_page(struct vm_area_struct *vma,
						unsigned long addr, struct page *page)
{
#ifdef KVT_HAVE_PFN_T
	return vmf_insert_mixed(vma, addr,
				phys_to_pfn_t(page_to_phys(page), PFN_DEV | PFN_MAP));
#else
	int err = vm_insert_page(vma, addr, page);

	if (err == -ENOMEM)
		return VM_FAULT_OOM;
	return err && err != -EBUSY ? VM_FAULT_SIGBUS : VM_FAULT_NOPAGE;
#endif
}

/**
 * kvt_insert_device_pmd() - map 2 MiB of ZONE_DEVICE pages of type generic
 * @vmf:  huge fault in a VM_MIXEDMAP area
 * @page: first page, 2 MiB-aligned and contiguous from there
 * Return: as a fault handler; VM_FAULT_FALLBACK where the kernel cannot: newer
 * ones map 2 MiB folios only, and pages that are counted one by one are none.
 *
 * Where somebody else was faster nothing is done, and the access is tried again: told of
 * a write, the kernel would take his table for an entry of another page and complain. An
 * entry is as writable as its area all the same.
 */
static inline vm_fault_t kvt_insert_device_pmd(struct vm_fault *vmf, struct page *page)
{
#ifdef KVT_HAVE_PFN_T
	return vmf_insert_pfn_pmd(vmf, phys_to_pfn_t(page_to_phys(page), PFN_DEV | PFN_MAP),
				  false);
#else
	return VM_FAULT_FALLBACK;
#endif
}

#endif /* KVT_COMPAT_H */
