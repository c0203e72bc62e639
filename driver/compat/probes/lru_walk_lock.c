// SPDX-License-Identifier: GPL-2.0
/* Until 6.12: who walks a list_lru is given its lock. */
#include <linux/list_lru.h>

#ifndef KVT_CONTROL
enum lru_status kvt_probe_walk(struct list_head *item, struct list_lru_one *list,
			       spinlock_t *lock, void *arg);
enum lru_status kvt_probe_walk(struct list_head *item, struct list_lru_one *list,
			       spinlock_t *lock, void *arg)
{
	return LRU_ROTATE;
}

list_lru_walk_cb kvt_probe = kvt_probe_walk;
#endif
