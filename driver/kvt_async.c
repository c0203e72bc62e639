// SPDX-License-Identifier: GPL-2.0
/*
 * Completions of calls that did not wait.
 *
 * An asynchronous call leaves a list of blocks that have to settle and maybe a
 * promotion. A work item waits for them in the caller's stead and then queues one
 * completion on the open file, wakes pollers and signals the eventfd. The file's
 * release stops those that still wait, and waits are bounded anyway.
 *
 * A call is on f->running until its completion is queued on f->done; after that
 * its work touches neither the file nor itself.
 */
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "kvt_internal.h"

#define KVT_ASYNC_WAIT_NS	(60ull * NSEC_PER_SEC)

struct kvt_async_block {
	u32 id;
	u32 gen;
};

/*
 * struct kvt_async - one outstanding call
 * @stop:  the file is closing
 * @promo: or NULL
 */
struct kvt_async {
	struct work_struct work;
	struct list_head link;
	struct kvt_file *f;
	bool stop;
	struct eventfd_ctx *eventfd;
	struct kvt_promo *promo;
	struct kvtier_completion c;
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

static void kvt_async_work(struct work_struct *work)
{
	struct kvt_async *a = container_of(work, struct kvt_async, work);
	u64 deadline = kvt_deadline(KVT_ASYNC_WAIT_NS);
	struct kvt_file *f = a->f;
	struct eventfd_ctx *eventfd = a->eventfd;
	struct kvt_promo *promo;
	u32 i;
	int err = 0;

	if (a->promo)
		err = kvt_promo_wait(a->promo, deadline, &a->stop);
	for (i = 0; i < a->nr && !err && !READ_ONCE(a->stop); i++)
		err = kvt_block_wait(f->pool, a->block[i].id, a->block[i].gen, deadline,
				     &a->stop);
	a->c.result = err;
	a->c.nr_ready = err ? 0 : kvt_async_ready(a);
	promo = a->promo;
	a->eventfd = NULL;
	spin_lock(&f->async_lock);
	a->promo = NULL;
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
	INIT_WORK(&a->work, kvt_async_work);
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

	a->promo = pr;
	spin_lock(&f->async_lock);
	list_add_tail(&a->link, &f->running);
	queue_work(f->pool->async_wq, &a->work);
	spin_unlock(&f->async_lock);
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

/* Stop the first call that still waits. False: there is none. */
static bool kvt_async_stop_one(struct kvt_file *f)
{
	struct kvt_async *a;
	u32 i;

	spin_lock(&f->async_lock);
	a = list_first_entry_or_null(&f->running, struct kvt_async, link);
	if (a) {
		WRITE_ONCE(a->stop, true);
		/* While it is on the list what it waits for is there, too. */
		if (a->promo)
			kvt_promo_nudge(a->promo);
		for (i = 0; i < a->nr; i++)
			wake_up_all(kvt_block_wq(f->pool, a->block[i].id));
	}
	spin_unlock(&f->async_lock);
	/* One that has not started is taken off the queue: that may be long. */
	if (a && cancel_work_sync(&a->work)) {
		spin_lock(&f->async_lock);
		list_move_tail(&a->link, &f->done);
		spin_unlock(&f->async_lock);
		if (a->promo)
			kvt_promo_put(a->promo);
		a->promo = NULL;
	}
	return a;
}

/* The file is closing and makes no more calls. */
void kvt_async_release(struct kvt_file *f)
{
	struct kvt_async *a;

	while (kvt_async_stop_one(f))
		;
	while ((a = kvt_async_pop(f)))
		kvt_async_free(a);
}
