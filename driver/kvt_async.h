/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Asynchronous calls: see kvt_async.c.
 */
#ifndef KVT_ASYNC_H
#define KVT_ASYNC_H

#include <linux/list.h>
#include <linux/poll.h>
#include <linux/spinlock.h>

struct kvt_async;
struct kvt_file;
struct kvt_pool;
struct kvt_promo;

/* Calls that wait for blocks and promotions of one hash. */
struct kvt_async_queue {
	spinlock_t lock;
	struct list_head calls;
};

struct kvt_async *kvt_async_alloc(struct kvt_file *f, u64 user_data, s32 eventfd, u32 max);
void kvt_async_add(struct kvt_async *a, u32 id, u32 gen);
void kvt_async_start(struct kvt_async *a, struct kvt_promo *pr);
void kvt_async_free(struct kvt_async *a);
ssize_t kvt_async_read(struct file *file, char __user *buf, size_t len, loff_t *pos);
__poll_t kvt_async_poll(struct file *file, struct poll_table_struct *pt);
void kvt_async_release(struct kvt_file *f);
void kvt_async_work(struct work_struct *work);
void kvt_async_wake(struct kvt_pool *p, u32 queue);	/* any context */
void kvt_async_wake_promo(struct kvt_pool *p, const struct kvt_promo *pr);
void kvt_async_tick(struct kvt_pool *p);

#endif /* KVT_ASYNC_H */
