// SPDX-License-Identifier: GPL-2.0
/*
 * Device pages are mapped by pfn_t, as devmap entries that take no references
 * (until 6.16). Later kernels map them as ordinary pages, with references.
 */
#include <linux/mm.h>

#ifndef KVT_CONTROL
#include <linux/pfn_t.h>

vm_fault_t kvt_probe(struct vm_fault *vmf, phys_addr_t phys);

vm_fault_t kvt_probe(struct vm_fault *vmf, phys_addr_t phys)
{
	pfn_t pfn = phys_to_pfn_t(phys, PFN_DEV | PFN_MAP);

	if (vmf->flags)
		return vmf_insert_pfn_pmd(vmf, pfn, false);
	return vmf_insert_mixed(vmf->vma, vmf->address, pfn);
}
#endif
