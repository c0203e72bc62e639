// SPDX-License-Identifier: GPL-2.0
/*
 * Module: class, device numbers, the control device, and the filesystem that
 * lends namespaces their inodes.
 *
 * All bound files of a namespace must share one address_space, whatever device node
 * they came through, or unmap_mapping_range() would miss mappings. So a namespace has an
 * inode of its own on an internal pseudo filesystem.
 */
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>

#include "kvt_internal.h"
#include "kvt_pages.h"

#define KVT_FS_MAGIC	0x6b767466

DEFINE_MUTEX(kvt_registry_lock);
dev_t kvt_devt;

static char *kvt_devnode(const struct device *dev, umode_t *mode)
{
	if (mode)
		*mode = 0660;
	return NULL;
}

struct class kvt_class = {
	.name = "kvtier",
	.devnode = kvt_devnode,
	.dev_groups = kvt_pool_groups,
	.class_groups = kvt_class_groups,
};

static struct miscdevice kvt_ctl_dev = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "kvtier",
	.mode = 0600,
	.fops = &kvt_ctl_fops,
};

static struct vfsmount *kvt_mnt;

static int kvt_fs_init(struct fs_context *fc)
{
	return init_pseudo(fc, KVT_FS_MAGIC) ? 0 : -ENOMEM;
}

/* No .owner: the mount lives as long as the module, so it must not hold it. */
static struct file_system_type kvt_fs = {
	.name = "kvtier",
	.init_fs_context = kvt_fs_init,
	.kill_sb = kill_anon_super,
};

/**
 * kvt_inode_alloc() - an inode whose address_space a namespace's files share
 * Return: inode, given back with iput(), or an ERR_PTR.
 */
struct inode *kvt_inode_alloc(void)
{
	return alloc_anon_inode(kvt_mnt->mnt_sb);
}

static int __init kvt_init_chrdev(void)
{
	int err;

	err = alloc_chrdev_region(&kvt_devt, 0, KVT_POOLS_MAX, "kvtier");
	if (err)
		return err;
	err = class_register(&kvt_class);
	if (err)
		unregister_chrdev_region(kvt_devt, KVT_POOLS_MAX);
	return err;
}

static void kvt_exit_chrdev(void)
{
	class_unregister(&kvt_class);
	unregister_chrdev_region(kvt_devt, KVT_POOLS_MAX);
}

static int __init kvt_init(void)
{
	int err;

	kvt_mnt = kern_mount(&kvt_fs);
	if (IS_ERR(kvt_mnt))
		return PTR_ERR(kvt_mnt);
	err = kvt_xfer_init();
	if (err)
		goto unmount;
	err = kvt_charge_init();
	if (err)
		goto exit_xfer;
	err = kvt_init_chrdev();
	if (err)
		goto exit_charge;
	err = kvt_tier_dax_init();
	if (err)
		goto exit_chrdev;
	kvt_frames_init();
	/* Last: from here on pools can be made. */
	err = misc_register(&kvt_ctl_dev);
	if (err)
		goto exit_frames;
	return 0;

exit_frames:
	kvt_frames_exit();
	kvt_tier_dax_exit();
exit_chrdev:
	kvt_exit_chrdev();
exit_charge:
	kvt_charge_exit();
exit_xfer:
	kvt_xfer_exit();
unmount:
	kern_unmount(kvt_mnt);
	return err;
}

static void __exit kvt_exit(void)
{
	/* A pool holds a reference to the module, so there is none. */
	misc_deregister(&kvt_ctl_dev);
	kvt_frames_exit();
	kvt_tier_dax_exit();
	kvt_exit_chrdev();
	kvt_charge_exit();
	kvt_xfer_exit();
	kern_unmount(kvt_mnt);
	kvt_pages_exit();
}

module_init(kvt_init);
module_exit(kvt_exit);

MODULE_DESCRIPTION("Tiered KV-cache block store over DRAM, CXL memory and NVMe");
MODULE_AUTHOR("kvtier developers");
MODULE_LICENSE("GPL");
MODULE_VERSION(KVT_VERSION);
