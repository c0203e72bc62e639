// SPDX-License-Identifier: GPL-2.0
/*
 * Completions of calls that did not wait.
 *
 * An asynchronous call leaves a list of blocks that have to settle and maybe a
 * promotion that has to end. Nobody sleeps for it: a call waits for one of these at
 * a time, in the pool's queue for that one (struct kvt_async_queue). Whoever settles
 * a block or ends a promotion marks the queue; one work item of the pool looks at
 * marked queues and moves their calls on. When nothing is left to wait for it puts
 * one completion on the open file, wakes pollers and signals the eventfd. So calls
 * that wait for long keep nobody's completion from being delivered.
 *
 * A call is on f->running until its completion is on f->done; after that the work
 * touches neither the file nor the call. The file's release stops those that still
 * wait, and the pool's clock ends those that have waited for too long. Only the
 * work takes calls out of queues.
 */
#include <linux/hash.h>
#include <linux/log2.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "kvt_internal.h"

#define KVT_ASYNC_WAIT_MS	60000u
#define KVT_ASYNC_LOOK_MS	1000u

struct kvt_async_block {
	u32 id;
	u32 gen;
};

/*
 * struct kvt_async - one outstanding call
 * @link:     f->running, then f->done; f->async_lock
 * @wait:     in the queue for what it waits for
 * @stop:     the file is closing
 * @since_ms: pool clock
 * @promo:    or NULL
 * @at:       first block not known to have settled
 */
struct kvt_async {
	struct list_head link;
	struct list_head wait;
	struct kvt_file *f;
	bool stop;
	u32 since_ms;
	struct eventfd_ctx *eventfd;
	struct kvt_promo *promo;
	struct kvtier_completion c;
	u32 at;
	u32 nr;
	u32 max;
	struct kvt_async_block block[] __counted_by(max);
};

static u32 kvt_async_ready(struct kvt_async *a)
{
	struct kvt_pool *p = a->f->pool;
	u32 i, nr = 0;

	if (a->promo)
		nr = kvt_promo_nr(a->promo) - kvt_promo_failed(a->promo);
	for (i = 0; i < a->nr; i++) {
		struct kvt_hot *h = kvt_hot(&p->table, a->block[i].id);

		nr += READ_ONCE(h->gen) == a->block[i].gen &&
		      kvt_ctl_state(kvt_ctl(h)) == KVT_READY;
	}
	return nr;
}

/* Promotions and blocks share the queues; meeting the wrong one costs a look. */
static u32 kvt_async_promo_queue(const struct kvt_promo *pr)
{
	return hash_ptr(pr, ilog2(KVT_WAITQS));
}

static u32 kvt_async_queue_of(const struct kvt_async *a)
{
	if (a->promo && !kvt_promo_done(a->promo))
		return kvt_async_promo_queue(a->promo);
	return a->at < a->nr ? a->block[a->at].id % KVT_WAITQS : 0;
}

/* Is there nothing left to wait for. */
static bool kvt_async_over(struct kvt_async *a)
{
	struct kvt_pool *p = a->f->pool;

	if (READ_ONCE(a->stop))
		return true;
	if (kvt_age_ms(kvt_now_ms(), a->since_ms) >= KVT_ASYNC_WAIT_MS) {
		a->c.result = -ETIMEDOUT;
		return true;
	}
	if (a->promo && !kvt_promo_done(a->promo))
		return false;
	while (a->at < a->nr &&
	       kvt_block_settled(p, a->block[a->at].id, a->block[a->at].gen))
		a->at++;
	return a->at == a->nr;
}

static void kvt_async_complete(struct kvt_async *a)
{
	struct eventfd_ctx *eventfd = a->eventfd;
	struct kvt_promo *promo = a->promo;
	struct kvt_file *f = a->f;

	atomic_dec(&f->pool->nr_async);
	a->c.nr_ready = a->c.result ? 0 : kvt_async_ready(a);
	a->eventfd = NULL;
	a->promo = NULL;
	spin_lock(&f->async_lock);
	list_move_tail(&a->link, &f->done);
	wake_up_all(&f->async_wait);
	/* From here on it may be read and freed, and the file may go. */
	spin_unlock(&f->async_lock);
	if (promo)
		kvt_promo_put(promo);
	if (eventfd) {
		eventfd_signal(eventfd);
		eventfd_ctx_put(eventfd);
	}
}

static void kvt_async_mark(struct kvt_pool *p, u32 queue)
{
	set_bit(queue, p->async_marked);
	queue_work(p->async_wq, &p->async_work);
}

/*
 * Wait in the right queue. Who settles what it waits for after this finds it there:
 * the barrier pairs with kvt_async_wake()'s. The call may end and go at any time
 * from here on, unless the caller is the work.
 */
static u32 kvt_async_enqueue(struct kvt_pool *p, struct kvt_async *a)
{
	u32 queue = kvt_async_queue_of(a);

	spin_lock(&p->async[queue].lock);
	list_add_tail(&a->wait, &p->async[queue].calls);
	spin_unlock(&p->async[queue].lock);
	smp_mb();	/* see above */
	return queue;
}

/* Move on the calls of one queue. */
static void kvt_async_serve(struct kvt_pool *p, struct kvt_async_queue *q)
{
	struct kvt_async *a, *next;
	LIST_HEAD(calls);

	spin_lock(&q->lock);
	list_splice_init(&q->calls, &calls);
	spin_unlock(&q->lock);
	list_for_each_entry_safe(a, next, &calls, wait) {
		list_del(&a->wait);
		if (kvt_async_over(a)) {
			kvt_async_complete(a);
		} else {
			u32 queue = kvt_async_enqueue(p, a);

			/* Settled just before it was there. */
			if (kvt_async_over(a))
				kvt_async_mark(p, queue);
		}
		cond_resched();
	}
}

/**
 * kvt_async_work() - serve the marked queues
 * @work: pool->async_work
 */
void kvt_async_work(struct work_struct *work)
{
	struct kvt_pool *p = container_of(work, struct kvt_pool, async_work);
	u32 i;

	for (i = 0; i < KVT_WAITQS; i++) {
		/* Full barrier: what was marked for is seen. */
		if (test_and_clear_bit(i, p->async_marked))
			kvt_async_serve(p, &p->async[i]);
	}
}

/**
 * kvt_async_wake() - what calls in this queue wait for may have come
 * @p:     pool; any context
 * @queue: block id modulo KVT_WAITQS
 */
void kvt_async_wake(struct kvt_pool *p, u32 queue)
{
	smp_mb();	/* the change that is told of, before the look; see kvt_async_enqueue() */
	if (atomic_read(&p->nr_async))
		kvt_async_mark(p, queue);
}

void kvt_async_wake_promo(struct kvt_pool *p, const struct kvt_promo *pr)
{
	kvt_async_wake(p, kvt_async_promo_queue(pr));
}

static void kvt_async_mark_all(struct kvt_pool *p)
{
	u32 i;

	smp_mb();	/* what the calls are to see, before the marks */
	for (i = 0; i < KVT_WAITQS; i++)
		set_bit(i, p->async_marked);
	queue_work(p->async_wq, &p->async_work);
}

/**
 * kvt_async_tick() - have calls that wait for too long ended
 * @p: pool; called by its clock
 */
void kvt_async_tick(struct kvt_pool *p)
{
	u32 now = kvt_now_ms();

	if (!atomic_read(&p->nr_async) ||
	    kvt_age_ms(now, p->clock.looked_ms) < KVT_ASYNC_LOOK_MS)
		return;
	p->clock.looked_ms = now;
	kvt_async_mark_all(p);
}

/**
 * kvt_async_alloc() - prepare an asynchronous call
 * @f:         file
 * @user_data: for the completion
 * @eventfd:   or -1
 * @max:       most blocks
 * Return: call, or ERR_PTR: -EAGAIN too many outstanding, -EBADF, -ENOMEM.
 */
struct kvt_async *kvt_async_alloc(struct kvt_file *f, u64 user_data, s32 eventfd, u32 max)
{
	struct kvt_async *a;
	bool full;

	kvt_assert_lingering(f->pool);
	spin_lock(&f->async_lock);
	full = f->nr_async >= KVT_ASYNC_PER_FILE;
	if (!full)
		f->nr_async++;
	spin_unlock(&f->async_lock);
	if (full)
		return ERR_PTR(-EAGAIN);
	a = kvzalloc(struct_size(a, block, max), GFP_KERNEL_ACCOUNT);
	if (!a)
		goto uncount;
	a->max = max;
	a->f = f;
	a->c.user_data = user_data;
	if (eventfd != -1) {
		struct eventfd_ctx *ctx = eventfd_ctx_fdget(eventfd);

		if (IS_ERR(ctx)) {
			kvt_async_free(a);
			return ERR_CAST(ctx);
		}
		a->eventfd = ctx;
	}
	return a;
uncount:
	spin_lock(&f->async_lock);
	f->nr_async--;
	spin_unlock(&f->async_lock);
	return ERR_PTR(-ENOMEM);
}

/* A block that the completion has to wait for. */
void kvt_async_add(struct kvt_async *a, u32 id, u32 gen)
{
	if (a->nr == a->max)
		return;
	a->block[a->nr].id = id;
	a->block[a->nr].gen = gen;
	a->nr++;
}

/**
 * kvt_async_start() - let it run; it frees itself when it is read
 * @a:  call
 * @pr: promotion to wait for, whose reference passes to the call, or NULL
 */
void kvt_async_start(struct kvt_async *a, struct kvt_promo *pr)
{
	struct kvt_file *f = a->f;
	struct kvt_pool *p = f->pool;

	a->promo = pr;
	a->since_ms = kvt_now_ms();
	spin_lock(&f->async_lock);
	list_add_tail(&a->link, &f->running);
	spin_unlock(&f->async_lock);
	atomic_inc(&p->nr_async);
	kvt_async_mark(p, kvt_async_enqueue(p, a));
}

/* Free a call that was not started or that has completed. */
void kvt_async_free(struct kvt_async *a)
{
	struct kvt_file *f = a->f;

	if (a->eventfd)
		eventfd_ctx_put(a->eventfd);
	kvfree(a);
	spin_lock(&f->async_lock);
	f->nr_async--;
	spin_unlock(&f->async_lock);
}

static struct kvt_async *kvt_async_pop(struct kvt_file *f)
{
	struct kvt_async *a;

	spin_lock(&f->async_lock);
	a = list_first_entry_or_null(&f->done, struct kvt_async, link);
	if (a)
		list_del(&a->link);
	spin_unlock(&f->async_lock);
	return a;
}

ssize_t kvt_async_read(struct file *file, char __user *buf, size_t len, loff_t *pos)
{
	struct kvt_file *f = file->private_data;
	struct kvt_async *a;
	size_t done = 0;

	if (len < sizeof(a->c))
		return -EINVAL;
	while (len - done >= sizeof(a->c)) {
		a = kvt_async_pop(f);
		if (!a && (done || (file->f_flags & O_NONBLOCK)))
			break;
		if (!a) {
			if (wait_event_interruptible(f->async_wait, !list_empty(&f->done)))
				return -ERESTARTSYS;
			continue;
		}
		if (copy_to_user(buf + done, &a->c, sizeof(a->c))) {
			/* Not delivered: it stays the first in line. */
			spin_lock(&f->async_lock);
			list_add(&a->link, &f->done);
			/* Another reader may have found nothing meanwhile. */
			wake_up_all(&f->async_wait);
			spin_unlock(&f->async_lock);
			return done ?: -EFAULT;
		}
		kvt_async_free(a);
		done += sizeof(a->c);
	}
	return done ?: -EAGAIN;
}

__poll_t kvt_async_poll(struct file *file, struct poll_table_struct *pt)
{
	struct kvt_file *f = file->private_data;

	poll_wait(file, &f->async_wait, pt);
	return list_empty_careful(&f->done) ? 0 : EPOLLIN | EPOLLRDNORM;
}

/* The file is closing and makes no more calls. */
void kvt_async_release(struct kvt_file *f)
{
	struct kvt_async *a;
	bool any;

	spin_lock(&f->async_lock);
	any = !list_empty(&f->running);
	list_for_each_entry(a, &f->running, link)
		WRITE_ONCE(a->stop, true);
	spin_unlock(&f->async_lock);
	if (any) {
		kvt_async_mark_all(f->pool);
		wait_event(f->async_wait, list_empty_careful(&f->running));
	}
	/* Who completed the last one has let go of the lock when it can be had. */
	while ((a = kvt_async_pop(f)))
		kvt_async_free(a);
}
