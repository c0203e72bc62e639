// SPDX-License-Identifier: GPL-2.0
/*
 * A DMA engine in software, for tests: one public memcpy channel.
 *
 * Descriptors are taken in order by a work item that copies through the kernel's
 * linear mapping and then calls back as engines do, in softirq-disabled context.
 * What was done is counted in module parameters; others make it misbehave:
 *
 *   copied_descriptors, copied_bytes   (read-only) what was really copied
 *   failed_descriptors, refused_descriptors   (read-only) how often it has misbehaved
 *   fail_every   every n-th descriptor ends with an error, its target overwritten
 *   refuse       no descriptor is to be had
 *   hold         nothing moves as long as it is set
 *
 * Lock: engine->lock for the lists, the cookies and the counters.
 */
#include <linux/dma-direct.h>
#include <linux/dma-mapping.h>
#include <linux/dmaengine.h>
#include <linux/io.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#define TESTDMA_HOLD_POLL	(HZ / 20)

static unsigned long copied_descriptors;
module_param(copied_descriptors, ulong, 0444);
MODULE_PARM_DESC(copied_descriptors, "Descriptors copied");

static unsigned long copied_bytes;
module_param(copied_bytes, ulong, 0444);
MODULE_PARM_DESC(copied_bytes, "Bytes copied");

static unsigned long failed_descriptors;
module_param(failed_descriptors, ulong, 0444);
MODULE_PARM_DESC(failed_descriptors, "Descriptors that failed");

static unsigned long refused_descriptors;
module_param(refused_descriptors, ulong, 0444);
MODULE_PARM_DESC(refused_descriptors, "Descriptors that were not to be had");

static unsigned int fail_every;
module_param(fail_every, uint, 0644);
MODULE_PARM_DESC(fail_every, "Every n-th descriptor fails; 0: none");

static bool refuse;
module_param(refuse, bool, 0644);
MODULE_PARM_DESC(refuse, "Give no descriptors");

static bool hold;
module_param(hold, bool, 0644);
MODULE_PARM_DESC(hold, "Do not process descriptors");

/**
 * struct testdma_desc - one descriptor
 * @tx:    the client's view
 * @node:  in one of the engine's lists
 * @dst:   bus address
 * @src:   bus address
 * @bytes: length
 */
struct testdma_desc {
	struct dma_async_tx_descriptor tx;
	struct list_head node;
	dma_addr_t dst;
	dma_addr_t src;
	size_t bytes;
};

/**
 * struct testdma - the engine
 * @dma:       as the framework sees it
 * @chan:      its only channel
 * @pdev:      device it maps for
 * @lock:      see above
 * @submitted: descriptors not issued
 * @issued:    descriptors to be done
 * @nr_taken:  descriptors done or failed
 * @work:      does them
 */
struct testdma {
	struct dma_device dma;
	struct dma_chan chan;
	struct platform_device *pdev;
	spinlock_t lock;
	struct list_head submitted;
	struct list_head issued;
	unsigned long nr_taken;
	struct delayed_work work;
};

static struct testdma engine;

static struct testdma_desc *to_testdma_desc(struct dma_async_tx_descriptor *tx)
{
	return container_of(tx, struct testdma_desc, tx);
}

static void *testdma_addr(dma_addr_t addr)
{
	return phys_to_virt(dma_to_phys(&engine.pdev->dev, addr));
}

static dma_cookie_t testdma_submit(struct dma_async_tx_descriptor *tx)
{
	unsigned long flags;
	dma_cookie_t cookie;

	spin_lock_irqsave(&engine.lock, flags);
	cookie = tx->chan->cookie == INT_MAX ? DMA_MIN_COOKIE : tx->chan->cookie + 1;
	tx->cookie = cookie;
	tx->chan->cookie = cookie;
	list_add_tail(&to_testdma_desc(tx)->node, &engine.submitted);
	spin_unlock_irqrestore(&engine.lock, flags);
	return cookie;
}

static struct dma_async_tx_descriptor *testdma_prep(struct dma_chan *chan, dma_addr_t dst,
						    dma_addr_t src, size_t bytes,
						    unsigned long flags)
{
	struct testdma_desc *desc;
	unsigned long irqflags;

	if (READ_ONCE(refuse)) {
		spin_lock_irqsave(&engine.lock, irqflags);
		refused_descriptors++;
		spin_unlock_irqrestore(&engine.lock, irqflags);
		return NULL;
	}
	desc = kzalloc(sizeof(*desc), GFP_NOWAIT);
	if (!desc)
		return NULL;
	dma_async_tx_descriptor_init(&desc->tx, chan);
	desc->tx.flags = flags;
	desc->tx.tx_submit = testdma_submit;
	desc->dst = dst;
	desc->src = src;
	desc->bytes = bytes;
	return &desc->tx;
}

static void testdma_issue(struct dma_chan *chan)
{
	unsigned long flags;

	spin_lock_irqsave(&engine.lock, flags);
	list_splice_tail_init(&engine.submitted, &engine.issued);
	spin_unlock_irqrestore(&engine.lock, flags);
	schedule_delayed_work(&engine.work, 0);
}

static enum dma_status testdma_status(struct dma_chan *chan, dma_cookie_t cookie,
				      struct dma_tx_state *state)
{
	dma_cookie_t done = READ_ONCE(chan->completed_cookie);
	dma_cookie_t used = READ_ONCE(chan->cookie);

	dma_set_tx_state(state, done, used, 0);
	return dma_async_is_complete(cookie, done, used);
}

static int testdma_chan_alloc(struct dma_chan *chan)
{
	return 1;
}

static void testdma_chan_free(struct dma_chan *chan)
{
	cancel_delayed_work_sync(&engine.work);
}

static void testdma_call_back(struct dma_async_tx_descriptor *tx, bool failed)
{
	struct dmaengine_result result = {
		.result = failed ? DMA_TRANS_READ_FAILED : DMA_TRANS_NOERROR,
	};

	local_bh_disable();
	if (tx->callback_result)
		tx->callback_result(tx->callback_param, &result);
	else if (tx->callback)
		tx->callback(tx->callback_param);
	dma_run_dependencies(tx);
	local_bh_enable();
}

static void testdma_do(struct testdma_desc *desc)
{
	unsigned int every = READ_ONCE(fail_every);
	bool failed = every && ++engine.nr_taken % every == 0;

	if (failed)
		memset(testdma_addr(desc->dst), 0xee, desc->bytes);
	else
		memcpy(testdma_addr(desc->dst), testdma_addr(desc->src), desc->bytes);
	spin_lock_irq(&engine.lock);
	engine.chan.completed_cookie = desc->tx.cookie;
	if (failed) {
		failed_descriptors++;
	} else {
		copied_descriptors++;
		copied_bytes += desc->bytes;
	}
	spin_unlock_irq(&engine.lock);
	testdma_call_back(&desc->tx, failed);
	kfree(desc);
}

static void testdma_work(struct work_struct *work)
{
	struct testdma_desc *desc;

	for (;;) {
		if (READ_ONCE(hold)) {
			schedule_delayed_work(&engine.work, TESTDMA_HOLD_POLL);
			return;
		}
		spin_lock_irq(&engine.lock);
		desc = list_first_entry_or_null(&engine.issued, struct testdma_desc, node);
		if (desc)
			list_del(&desc->node);
		spin_unlock_irq(&engine.lock);
		if (!desc)
			return;
		testdma_do(desc);
		cond_resched();
	}
}

static int testdma_register(struct device *dev)
{
	struct dma_device *dma = &engine.dma;

	dma->dev = dev;
	INIT_LIST_HEAD(&dma->channels);
	dma_cap_set(DMA_MEMCPY, dma->cap_mask);
	dma->device_alloc_chan_resources = testdma_chan_alloc;
	dma->device_free_chan_resources = testdma_chan_free;
	dma->device_prep_dma_memcpy = testdma_prep;
	dma->device_issue_pending = testdma_issue;
	dma->device_tx_status = testdma_status;
	engine.chan.device = dma;
	engine.chan.cookie = DMA_MIN_COOKIE;
	engine.chan.completed_cookie = DMA_MIN_COOKIE;
	list_add_tail(&engine.chan.device_node, &dma->channels);
	return dma_async_device_register(dma);
}

static int testdma_probe(struct platform_device *pdev)
{
	return 0;
}

static struct platform_driver testdma_driver = {
	.probe = testdma_probe,
	.driver.name = "kvt_testdma",
};

/* The framework takes the provider's module from the device's driver. */
static int __init testdma_init(void)
{
	int err;

	spin_lock_init(&engine.lock);
	INIT_LIST_HEAD(&engine.submitted);
	INIT_LIST_HEAD(&engine.issued);
	INIT_DELAYED_WORK(&engine.work, testdma_work);
	err = platform_driver_register(&testdma_driver);
	if (err)
		return err;
	engine.pdev = platform_device_register_simple("kvt_testdma", PLATFORM_DEVID_NONE,
						      NULL, 0);
	if (IS_ERR(engine.pdev)) {
		err = PTR_ERR(engine.pdev);
		goto unregister;
	}
	err = dma_coerce_mask_and_coherent(&engine.pdev->dev, DMA_BIT_MASK(64));
	if (!err)
		err = testdma_register(&engine.pdev->dev);
	if (!err)
		return 0;
	platform_device_unregister(engine.pdev);
unregister:
	platform_driver_unregister(&testdma_driver);
	return err;
}

static void __exit testdma_exit(void)
{
	dma_async_device_unregister(&engine.dma);
	cancel_delayed_work_sync(&engine.work);
	platform_device_unregister(engine.pdev);
	platform_driver_unregister(&testdma_driver);
}

module_init(testdma_init);
module_exit(testdma_exit);

MODULE_DESCRIPTION("Software DMA engine for tests of kvtier");
MODULE_LICENSE("GPL");
