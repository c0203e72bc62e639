// SPDX-License-Identifier: GPL-2.0
/*
 * Canary: must compile. It uses what the driver takes for granted, so it fails on
 * kernels older than 6.12 as well as with a broken tool chain.
 */
#include <linux/blkdev.h>
#include <linux/mm.h>

struct file *kvt_probe(void *holder, const struct blk_holder_ops *ops);

struct file *kvt_probe(void *holder, const struct blk_holder_ops *ops)
{
	return bdev_file_open_by_path("/dev/null", BLK_OPEN_READ, holder, ops);
}

static vm_fault_t huge_fault(struct vm_fault *vmf, unsigned int order)
{
	return order ? VM_FAULT_FALLBACK : VM_FAULT_SIGBUS;
}

const struct vm_operations_struct kvt_probe_vm_ops = { .huge_fault = huge_fault };
