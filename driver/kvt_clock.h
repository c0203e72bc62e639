/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is due at its time: see kvt_clock.c.
 */
#ifndef KVT_CLOCK_H
#define KVT_CLOCK_H

#include <linux/mutex.h>
#include <linux/workqueue.h>

struct kvt_pool;

/**
 * struct kvt_clock - a pool's
 * @work:     on pool->log_wq; queues itself until the pool is dying
 * @expiring: kvt_filling_expire() is at work. Never waited for
 * @looked_ms: when asynchronous calls were looked at. @work's
 */
struct kvt_clock {
	struct delayed_work work;
	struct mutex expiring;
	u32 looked_ms;
};

void kvt_clock_init(struct kvt_pool *p);
void kvt_clock_start(struct kvt_pool *p);
void kvt_clock_stop(struct kvt_pool *p);

/* kvt_fill.c */
u32 kvt_filling_expire(struct kvt_pool *p);

#endif /* KVT_CLOCK_H */
