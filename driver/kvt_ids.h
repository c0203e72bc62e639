/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Numbers of which a pool has only so many, and what one user may have of them: see kvt_ids.c.
 */
#ifndef KVT_IDS_H
#define KVT_IDS_H

#include <linux/atomic.h>
#include <linux/idr.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <linux/xarray.h>

struct file;

/**
 * struct kvt_ids - a pool's numbers of open files and dma-bufs
 * @ida:  those that are taken
 * @nr:   how many that are
 * @uids: how many a user has, by uid; nothing for who has none
 */
struct kvt_ids {
	struct ida ida;
	atomic_t nr;
	struct xarray uids;
};

void kvt_ids_init(struct kvt_ids *s);
void kvt_ids_destroy(struct kvt_ids *s);
int kvt_id_take(struct kvt_ids *s, struct file *file, u32 most);
void kvt_id_give(struct kvt_ids *s, kuid_t uid, u32 id);
bool kvt_may_have_more(u32 has, u32 all, u32 most, struct file *file);

#endif /* KVT_IDS_H */
