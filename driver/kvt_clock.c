// SPDX-License-Identifier: GPL-2.0
/*
 * What is due at its time: reservations that are too old are taken back, and asynchronous calls
 * that have waited for too long end.
 *
 * Not by the pool's worker alone. That one writes to disks and reads from them, and waits for as
 * long as one of them does not answer, which may be for ever. Others' keys must not be taken
 * that long, nor their calls hang, since neither needs a disk to come to its end.
 *
 * Room needs the worker: a reservation on a pool whose worker waits for a disk may be in vain.
 */
#include "kvt_internal.h"
#include "kvt_test.h"

#define KVT_CLOCK_TICK	(HZ / 4)

static void kvt_clock_work(struct work_struct *work)
{
	struct kvt_pool *p = container_of(to_delayed_work(work), struct kvt_pool, clock.work);
	u32 expired = 0;
	int idx;

	if (READ_ONCE(p->dying))
		return;
	/* First: the other may wait for whoever holds a lock of a namespace's mappings. */
	if (!kvt_test_settles(p)) {
		kvt_async_tick(p);
		idx = srcu_read_lock(&p->srcu);
		expired = kvt_filling_expire(p);
		srcu_read_unlock(&p->srcu, idx);
	}
	if (expired) {
		kvt_garbage_free(p);
		kvt_room_wake(p);
	}
	queue_delayed_work(p->log_wq, &p->clock.work,
			   expired == KVT_EXPIRE_BATCH ? 1 : KVT_CLOCK_TICK);
}

/**
 * kvt_clock_init() - prepare a pool's clock
 * @p: pool, zeroed
 */
void kvt_clock_init(struct kvt_pool *p)
{
	INIT_DELAYED_WORK(&p->clock.work, kvt_clock_work);
	mutex_init(&p->clock.expiring);
}

/**
 * kvt_clock_start() - let it go
 * @p: pool, not dying any more
 */
void kvt_clock_start(struct kvt_pool *p)
{
	queue_delayed_work(p->log_wq, &p->clock.work, KVT_CLOCK_TICK);
}

/**
 * kvt_clock_stop() - wait for its end
 * @p: pool, dying; sleeps
 */
void kvt_clock_stop(struct kvt_pool *p)
{
	cancel_delayed_work_sync(&p->clock.work);
}
