/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Mappings of a namespace's files and buffers: how many there may be, and how they are
 * taken away. See kvt_maps.c.
 */
#ifndef KVT_MAPS_H
#define KVT_MAPS_H

#include <linux/atomic.h>
#include <linux/fs.h>
#include <linux/mm.h>

struct kvt_file;
struct kvt_ns;
struct kvt_pool;

/* Who has made them: the namespace's owner, or others. */
enum kvt_maps_who {
	KVT_MAPS_OWNER,
	KVT_MAPS_OTHERS,
	KVT_MAPS_WHOS,
};

/**
 * struct kvt_maps - mappings of the files of a namespace, and of what they have exported
 * @inode: of no filesystem; its address_space is the f_mapping of all these files
 * @nr:    mappings there are
 */
struct kvt_maps {
	struct inode *inode;
	atomic_t nr[KVT_MAPS_WHOS];
};

int kvt_maps_init(struct kvt_maps *m);
void kvt_maps_free(struct kvt_maps *m);
void kvt_maps_bind(struct kvt_ns *ns, struct file *file);
atomic_t *kvt_maps_of(struct kvt_ns *ns);
int kvt_maps_add(atomic_t *nr);
void kvt_maps_open(atomic_t *nr, const struct vm_area_struct *vma);
int kvt_maps_may_split(const atomic_t *nr);
void kvt_unmap(const struct kvt_ns *ns, u64 offset, u64 bytes);
void kvt_unmap_all(struct kvt_pool *p, u64 offset, u64 bytes);

#endif /* KVT_MAPS_H */
