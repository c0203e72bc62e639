// SPDX-License-Identifier: GPL-2.0
/*
 * Memory-to-memory copies by a DMA engine.
 *
 * Any public memcpy channel will do (ioatdma, idxd ...). Contiguous runs of pages
 * are mapped and submitted a batch at a time; the waiter and each descriptor in
 * flight share one counted struct kvt_dma.
 *
 * A descriptor that does not end in time may still write later. So it owns its
 * mapping and a reference to each page of either side, and gives them back when it
 * does end: the pages look foreign until then and are not used again, and they
 * outlive their tier. Nor can the module go before that. The engine is not asked any
 * more after such a thing.
 */
#define pr_fmt(fmt) "kvtier: " fmt

#include <linux/capability.h>
#include <linux/completion.h>
#include <linux/dmaengine.h>
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/refcount.h>
#include <linux/slab.h>

#include "tier.h"

#define KVT_DMA_BATCH		16u
#define KVT_DMA_TIMEOUT_MAX_MS	3600000u

/* uid 0 of a container may write here, too. Whoever loads the module has the other one. */
static bool kvt_dma_may_set(void)
{
	return capable(CAP_SYS_MODULE) || capable(CAP_SYS_ADMIN);
}

static int kvt_dma_set_enabled(const char *val, const struct kernel_param *kp)
{
	return kvt_dma_may_set() ? param_set_bool(val, kp) : -EPERM;
}

static int kvt_dma_set_timeout(const char *val, const struct kernel_param *kp)
{
	return kvt_dma_may_set() ? param_set_uint_minmax(val, kp, 1, KVT_DMA_TIMEOUT_MAX_MS) :
				   -EPERM;
}

static const struct kernel_param_ops kvt_dma_enabled_ops = {
	.flags = KERNEL_PARAM_OPS_FL_NOARG,
	.set = kvt_dma_set_enabled,
	.get = param_get_bool,
};

static const struct kernel_param_ops kvt_dma_timeout_ops = {
	.set = kvt_dma_set_timeout,
	.get = param_get_uint,
};

static bool kvt_dma_enabled = true;
module_param_cb(dmaengine, &kvt_dma_enabled_ops, &kvt_dma_enabled, 0644);
__MODULE_PARM_TYPE(dmaengine, "bool");
MODULE_PARM_DESC(dmaengine, "Copy between memory tiers by a DMA engine if there is one");

static uint kvt_dma_timeout_ms = 10000;
module_param_cb(dmaengine_timeout_ms, &kvt_dma_timeout_ops, &kvt_dma_timeout_ms, 0644);
__MODULE_PARM_TYPE(dmaengine_timeout_ms, "uint");
MODULE_PARM_DESC(dmaengine_timeout_ms, "Longest wait for a batch of copies, then the engine is given up");

static bool kvt_dma_stuck;

/**
 * struct kvt_dma - one batch
 * @refs:    the waiter's and one for each descriptor in flight
 * @pending: descriptors in flight, and one while there are more to come
 * @failed:  some descriptor did
 * @late:    the waiter has left; holds a reference to the module
 * @done:    @pending is 0
 */
struct kvt_dma {
	refcount_t refs;
	atomic_t pending;
	bool failed;
	bool late;
	struct completion done;
};

/**
 * struct kvt_dma_run - one descriptor
 * @all:   its batch
 * @dev:   the engine
 * @from:  first source page; of all there is a reference
 * @to:    first destination page; the same
 * @src:   bus address
 * @dst:   bus address
 * @bytes: length
 */
struct kvt_dma_run {
	struct kvt_dma *all;
	struct device *dev;
	struct page *from;
	struct page *to;
	dma_addr_t src;
	dma_addr_t dst;
	size_t bytes;
};

/*
 * Releasing channels, as module exit does, waits for engines' callbacks: so this may
 * be the last that a callback does.
 */
static void kvt_dma_put(struct kvt_dma *all)
{
	bool late;

	if (!refcount_dec_and_test(&all->refs))
		return;
	late = all->late;
	kfree(all);
	if (late)
		module_put(THIS_MODULE);
}

static void kvt_dma_pending_put(struct kvt_dma *all)
{
	if (atomic_dec_and_test(&all->pending))
		complete(&all->done);
}

static void kvt_dma_run_free(struct kvt_dma_run *run)
{
	size_t i;

	dma_unmap_page(run->dev, run->src, run->bytes, DMA_TO_DEVICE);
	dma_unmap_page(run->dev, run->dst, run->bytes, DMA_FROM_DEVICE);
	for (i = 0; i < run->bytes >> PAGE_SHIFT; i++) {
		put_page(run->from + i);
		put_page(run->to + i);
	}
	kfree(run);
}

/* Any context that engines call back in. */
static void kvt_dma_end(void *arg, const struct dmaengine_result *result)
{
	struct kvt_dma_run *run = arg;
	struct kvt_dma *all = run->all;

	if (result && result->result != DMA_TRANS_NOERROR)
		WRITE_ONCE(all->failed, true);
	kvt_dma_run_free(run);
	kvt_dma_pending_put(all);
	kvt_dma_put(all);
}

static struct kvt_dma_run *kvt_dma_map(struct device *dev, struct page *from,
				       struct page *to, size_t bytes)
{
	struct kvt_dma_run *run = kmalloc(sizeof(*run), GFP_NOIO);
	size_t i;

	if (!run)
		return NULL;
	run->dev = dev;
	run->from = from;
	run->to = to;
	run->bytes = bytes;
	run->src = dma_map_page(dev, from, 0, bytes, DMA_TO_DEVICE);
	if (dma_mapping_error(dev, run->src))
		goto free;
	run->dst = dma_map_page(dev, to, 0, bytes, DMA_FROM_DEVICE);
	if (dma_mapping_error(dev, run->dst))
		goto unmap;
	for (i = 0; i < bytes >> PAGE_SHIFT; i++) {
		get_page(from + i);
		get_page(to + i);
	}
	return run;
unmap:
	dma_unmap_page(dev, run->src, bytes, DMA_TO_DEVICE);
free:
	kfree(run);
	return NULL;
}

static bool kvt_dma_start(struct kvt_dma *all, struct dma_chan *chan, struct page *from,
			  struct page *to, size_t bytes)
{
	struct dma_async_tx_descriptor *tx;
	struct kvt_dma_run *run;

	if (!is_dma_copy_aligned(chan->device, 0, 0, bytes))
		return false;
	run = kvt_dma_map(chan->device->dev, from, to, bytes);
	if (!run)
		return false;
	run->all = all;
	tx = dmaengine_prep_dma_memcpy(chan, run->dst, run->src, bytes,
				       DMA_PREP_INTERRUPT | DMA_CTRL_ACK);
	if (!tx) {
		kvt_dma_run_free(run);
		return false;
	}
	tx->callback_result = kvt_dma_end;
	tx->callback_param = run;
	refcount_inc(&all->refs);
	atomic_inc(&all->pending);
	if (dma_submit_error(dmaengine_submit(tx))) {
		kvt_dma_run_free(run);
		atomic_dec(&all->pending);
		kvt_dma_put(all);
		return false;
	}
	return true;
}

/* Wait for a batch and give up the waiter's share of it. */
static int kvt_dma_wait(struct kvt_dma *all, bool ok)
{
	int err = 0;

	kvt_dma_pending_put(all);
	if (!wait_for_completion_timeout(&all->done,
					 msecs_to_jiffies(READ_ONCE(kvt_dma_timeout_ms)))) {
		if (!xchg(&kvt_dma_stuck, true))
			pr_err("a DMA engine does not finish: not used any more\n");
		__module_get(THIS_MODULE);
		all->late = true;
		err = -ETIMEDOUT;
	} else if (!ok || READ_ONCE(all->failed)) {
		err = -EIO;
	}
	kvt_dma_put(all);
	return err;
}

static struct kvt_dma *kvt_dma_alloc(void)
{
	struct kvt_dma *all = kmalloc(sizeof(*all), GFP_NOIO);

	if (!all)
		return NULL;
	refcount_set(&all->refs, 1);
	atomic_set(&all->pending, 1);
	all->failed = false;
	all->late = false;
	init_completion(&all->done);
	return all;
}

static struct dma_chan *kvt_dma_chan(void)
{
	if (!READ_ONCE(kvt_dma_enabled) || READ_ONCE(kvt_dma_stuck))
		return NULL;
	return dma_find_channel(DMA_MEMCPY);
}

/* See tier.h. */
int kvt_dma_copy(struct kvt_tier *src, u32 src_page, struct kvt_tier *dst, u32 dst_page,
		 u32 nr)
{
	struct dma_chan *chan = kvt_dma_chan();
	u32 at = 0, run, i, most;
	struct kvt_dma *all;
	bool ok = true;
	int err = 0;

	if (!chan)
		return -EOPNOTSUPP;
	most = min_t(u64, dma_max_mapping_size(chan->device->dev) >> PAGE_SHIFT,
		     KVT_PIECE_PAGES);
	if (!most)
		return -EOPNOTSUPP;
	while (at < nr && !err) {
		all = kvt_dma_alloc();
		if (!all)
			return -ENOMEM;
		for (i = 0; i < KVT_DMA_BATCH && at < nr && ok; i++, at += run) {
			run = min(kvt_page_run(src_page + at, nr - at),
				  kvt_page_run(dst_page + at, nr - at));
			run = min(run, most);
			ok = kvt_dma_start(all, chan, src->ops->page(src, src_page + at),
					   dst->ops->page(dst, dst_page + at),
					   (size_t)run << PAGE_SHIFT);
		}
		dma_async_issue_pending(chan);
		err = kvt_dma_wait(all, ok);
	}
	return err;
}

bool kvt_dma_available(void)
{
	return kvt_dma_chan();
}

bool kvt_dma_given_up(void)
{
	return READ_ONCE(kvt_dma_stuck);
}

int kvt_dma_init(void)
{
	dmaengine_get();
	return 0;
}

void kvt_dma_exit(void)
{
	dmaengine_put();
}
