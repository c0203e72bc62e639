// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent-memory tiers: device-dax instances of a libnvdimm namespace, as on CXL
 * persistent memory.
 *
 *   byte 0       1 MiB, reserved: superblocks
 *   then         segments, as on a block device
 *
 * Such a tier is a member of the log (kvt_mlog.h) like a block device: only the bytes
 * move differently. Nothing of it is mapped into processes, because what lies on the
 * media is only to be believed once its checksum was right; blocks are brought up to a
 * memory tier to be read.
 *
 *   write   stores that bypass the caches or are written back, then a fence on the
 *           same processor: whatever comes later is behind them in the memory
 *           controller's queue
 *   flush   libnvdimm's, which knows what the region's devices need beyond that
 *   read    a copy that survives machine checks: poison is an I/O error
 *
 * The namespace has a page map that its driver has prepared: where the range with its
 * own structures begins, and where struct pages go if they are to be kept on the
 * device (altmap). It is used as it is, so what lies in front of the data, structures
 * and struct pages, is the kernel's alone: byte 0 above is the first behind them.
 *
 * Life: bound and without a tier, with a tier, unbound; it is freed when it is neither
 * bound nor a tier's. No page of it is ever given to anybody, so unbinding need not
 * wait for anything but copies under way. After it every access fails.
 *
 * Locks: kvt_pmem_lock for the list and what changes; @io, taken by itself or inside
 * the mutexes of kvt_mlog.h, lets a copy run to its end before the mapping goes.
 */
#define pr_fmt(fmt) "kvtier: " fmt

#include <linux/delay.h>
#include <linux/ioport.h>
#include <linux/libnvdimm.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/wait.h>
#include <linux/xarray.h>

#include "kvt_mlog.h"
#include "tier.h"
#include "tier_cxl.h"
#include "tier_pmem.h"
#include "tier_zoned.h"

#define KVT_PMEM_CHUNK		(64u << 10)	/* between chances to reschedule */
#define KVT_PMEM_FAILURE_GRACE	HZ

/**
 * struct kvt_pmem - one bound (or once bound) device
 * @list:     in kvt_pmem_list, as long as it is bound
 * @name:     of the device
 * @dax:      the device; only to be compared
 * @tier:     user, or NULL
 * @closing:  @tier is detaching: no new upcalls
 * @calls:    upcalls under way
 * @leaving:  being unbound: no new tier
 * @going:    nothing will answer there soon, likewise
 * @cxl:      its bus is watched for that
 * @unbound:  unbinding is over
 * @io:       shared: @base may be used; exclusive: it goes, or @dead is set
 * @dead:     nothing answers there
 * @base:     the data, or NULL
 * @bytes:    how much of it
 * @pgmap:    all of the namespace
 * @range:    the data
 * @claimed:  @range is
 * @region:   libnvdimm's
 * @flush:    libnvdimm's function, referenced
 * @bad:      pages that are poisoned, by number within the data
 * @failed_at: when the latest was found, in jiffies
 */
struct kvt_pmem {
	struct list_head list;
	char name[32];
	const struct dev_dax *dax;
	struct kvt_tier *tier;
	bool closing;
	u32 calls;
	bool leaving;
	bool going;
	bool cxl;
	bool unbound;
	struct rw_semaphore io;
	bool dead;
	void *base;
	u64 bytes;
	struct dev_pagemap pgmap;
	struct range range;
	bool claimed;
	struct nd_region *region;
	int (*flush)(struct nd_region *region, struct bio *bio);
	struct xarray bad;
	unsigned long failed_at;
};

static DEFINE_MUTEX(kvt_pmem_lock);
static LIST_HEAD(kvt_pmem_list);
static DECLARE_WAIT_QUEUE_HEAD(kvt_pmem_calls_wait);

static struct kvt_pmem *kvt_pmem_find(const char *name)
{
	struct kvt_pmem *d;

	lockdep_assert_held(&kvt_pmem_lock);
	list_for_each_entry(d, &kvt_pmem_list, list) {
		if (!d->leaving && !d->going && !strcmp(d->name, name))
			return d;
	}
	return NULL;
}

/* See tier_pmem.h. */
bool kvt_pmem_bound(const char *name)
{
	bool found;

	mutex_lock(&kvt_pmem_lock);
	found = kvt_pmem_find(name);
	mutex_unlock(&kvt_pmem_lock);
	return found;
}

/* --- Poison ---------------------------------------------------------------- */

/*
 * The page map is kept alive by the caller, and the device by that. Blocks there turn
 * out to be lost when they are read.
 */
static int kvt_pmem_memory_failure(struct dev_pagemap *pgmap, unsigned long pfn,
				   unsigned long nr_pages, int mf_flags)
{
	struct kvt_pmem *d = pgmap->owner;
	unsigned long first = PHYS_PFN(d->range.start), i;

	WRITE_ONCE(d->failed_at, jiffies);
	for (i = 0; i < nr_pages; i++) {
		if (pfn + i < first || pfn + i > PHYS_PFN(d->range.end))
			continue;
		/* Without memory for the note it is found once more, by reading. */
		xa_store(&d->bad, pfn + i - first, xa_mk_value(1), GFP_KERNEL);
	}
	return 0;
}

static const struct dev_pagemap_ops kvt_pmem_pagemap_ops = {
	.memory_failure = kvt_pmem_memory_failure,
};

static bool kvt_pmem_bad(struct kvt_pmem *d, u64 byte, u32 len)
{
	unsigned long index = byte >> PAGE_SHIFT;

	return !xa_empty(&d->bad) &&
	       xa_find(&d->bad, &index, (byte + len - 1) >> PAGE_SHIFT, XA_PRESENT);
}

/* --- Input and output ------------------------------------------------------ */

static int kvt_pmem_copy(struct kvt_pmem *d, u64 byte, void *buf, u32 len, bool write)
{
	u32 run;

	lockdep_assert_held(&d->io);
	if (!d->base || d->dead || len > d->bytes || byte > d->bytes - len)
		return -EIO;
	/* A store to a page that is bad is none that can be relied on. */
	if (kvt_pmem_bad(d, byte, len))
		return -EIO;
	for (; len; len -= run, byte += run, buf += run) {
		run = min(len, KVT_PMEM_CHUNK);
		if (write)
			memcpy_flushcache(d->base + byte, buf, run);
		else if (copy_mc_to_kernel(buf, d->base + byte, run))
			return -EIO;
		/* Where the stores were made: the one who flushes may run elsewhere. */
		if (write)
			pmem_wmb();
		cond_resched();
	}
	return 0;
}

static int kvt_pmem_flush_region(struct kvt_pmem *d)
{
	lockdep_assert_held(&d->io);
	return d->base && !d->dead && !d->flush(d->region, NULL) ? 0 : -EIO;
}

static int kvt_pmem_flush(struct kvt_tier *t)
{
	struct kvt_pmem *d = t->priv;
	int err;

	down_read(&d->io);
	err = kvt_pmem_flush_region(d);
	up_read(&d->io);
	return err;
}

static int kvt_pmem_rw(struct kvt_tier *t, u64 byte, void *buf, u32 len, bool write)
{
	struct kvt_pmem *d = t->priv;
	int err;

	down_read(&d->io);
	err = kvt_pmem_copy(d, byte, buf, len, write);
	up_read(&d->io);
	return err;
}

static int kvt_pmem_copy_pages(struct kvt_pmem *d, u64 byte, const struct kvt_bio_xfer *x)
{
	struct page *page;
	u32 at, run;
	int err = 0;

	for (at = 0; at < x->nr_pages && !err; at += run) {
		run = x->mem ? kvt_page_run(x->page + at, x->nr_pages - at) : 1;
		page = x->mem ? x->mem->ops->page(x->mem, x->page + at) : x->pages[at];
		err = kvt_pmem_copy(d, byte + ((u64)at << PAGE_SHIFT), page_address(page),
				    run << PAGE_SHIFT, x->write);
	}
	return err;
}

/* By this processor, and over before it returns. */
static void kvt_pmem_submit(struct kvt_tier *t, struct kvt_bio_xfer *x)
{
	struct kvt_pmem *d = t->priv;
	int err;

	down_read(&d->io);
	err = kvt_pmem_copy_pages(d, kvt_geo_byte(&t->geo, 0, x->unit), x);
	up_read(&d->io);
	x->done(x, err);
}

/*
 * No program can look at the device while it is bound to us, so a signature of
 * somebody else's would not be found: nothing but zeros in front is taken for free.
 */
static int kvt_pmem_check_blank(struct kvt_tier *t)
{
	void *buf = kvmalloc(KVT_PMEM_CHUNK, GFP_KERNEL);
	int err = buf ? 0 : -ENOMEM;
	u32 at;

	for (at = 0; at < KVT_HEAD_BYTES_MIN && !err; at += KVT_PMEM_CHUNK) {
		err = kvt_pmem_rw(t, at, buf, KVT_PMEM_CHUNK, false);
		if (!err && memchr_inv(buf, 0, KVT_PMEM_CHUNK))
			err = -EEXIST;
	}
	kvfree(buf);
	return err;
}

/* --- Binding --------------------------------------------------------------- */

/* The page map as the namespace's driver has prepared it, for a driver's own use. */
static int kvt_pmem_take_pgmap(struct kvt_pmem *d, const struct dev_dax *dax)
{
	const struct dev_pagemap *from = dax->pgmap;

	if (!kvt_dax_static_plausible(dax))
		return -EINVAL;
	d->range = dax->ranges[0].range;
	d->bytes = range_len(&d->range);
	d->pgmap.nr_range = 1;
	d->pgmap.range = from->range;
	d->pgmap.flags = from->flags & PGMAP_ALTMAP_VALID;
	if (d->pgmap.flags) {
		memcpy(&d->pgmap.altmap, &from->altmap, sizeof(d->pgmap.altmap));
		d->pgmap.altmap.alloc = 0;
	}
	d->pgmap.type = MEMORY_DEVICE_GENERIC;
	d->pgmap.ops = &kvt_pmem_pagemap_ops;
	d->pgmap.owner = d;
	/* Large pages need fewer struct pages in DRAM, where the kernel can do that. */
	if (dax->align > PAGE_SIZE && is_power_of_2(dax->align) && dax->align <= PUD_SIZE)
		d->pgmap.vmemmap_shift = ilog2(dax->align >> PAGE_SHIFT);
	return 0;
}

static int kvt_pmem_map(struct kvt_pmem *d, struct device *dev)
{
	void *addr;

	if (!request_mem_region_exclusive(d->range.start, d->bytes, d->name)) {
		dev_err(dev, "%#llx-%#llx is in use\n", d->range.start, d->range.end);
		return -EBUSY;
	}
	d->claimed = true;
	addr = memremap_pages(&d->pgmap, dev_to_node(dev));
	if (IS_ERR(addr))
		return PTR_ERR(addr);
	d->base = addr + (d->range.start - d->pgmap.range.start);
	return 0;
}

/* Undo kvt_pmem_map() and the reference, as far as they were made. */
static void kvt_pmem_unmap(struct kvt_pmem *d)
{
	bool mapped = d->base;

	down_write(&d->io);
	d->base = NULL;
	up_write(&d->io);
	/* memory_failure() looks at the page again after it has let the page map go. */
	while (mapped && READ_ONCE(d->failed_at) &&
	       time_before(jiffies, READ_ONCE(d->failed_at) + KVT_PMEM_FAILURE_GRACE))
		msleep(20);
	if (mapped)
		memunmap_pages(&d->pgmap);
	if (d->claimed)
		release_mem_region(d->range.start, d->bytes);
	if (d->flush)
		symbol_put(nvdimm_flush);
}

static void kvt_pmem_free(struct kvt_pmem *d)
{
	xa_destroy(&d->bad);
	kfree(d);
}

/* Looked up, because this module is to load where there is no libnvdimm as well. */
static int kvt_pmem_find_region(struct kvt_pmem *d, struct device *region)
{
	struct nd_region *(*to_region)(struct device *dev) = symbol_get(to_nd_region);

	if (!to_region)
		return -ENODEV;
	d->region = to_region(region);
	symbol_put(to_nd_region);
	d->flush = symbol_get(nvdimm_flush);
	return d->flush ? 0 : -ENODEV;
}

/* See tier_pmem.h. */
int kvt_pmem_probe(struct dev_dax *dax, struct device *region)
{
	struct device *dev = &dax->dev;
	struct kvt_pmem *d;
	int err;

	if (!IS_ENABLED(CONFIG_ARCH_HAS_PMEM_API)) {
		dev_err(dev, "this architecture cannot write caches back to persistent memory\n");
		return -EOPNOTSUPP;
	}
	d = kzalloc(sizeof(*d), GFP_KERNEL);
	if (!d)
		return -ENOMEM;
	strscpy(d->name, dev_name(dev), sizeof(d->name));
	d->dax = dax;
	init_rwsem(&d->io);
	xa_init(&d->bad);
	err = kvt_pmem_take_pgmap(d, dax) ?: kvt_pmem_find_region(d, region) ?:
	      kvt_pmem_map(d, dev);
	if (err) {
		kvt_pmem_unmap(d);
		kvt_pmem_free(d);
		return err;
	}
	d->cxl = kvt_cxl_bound(dev);
	mutex_lock(&kvt_pmem_lock);
	list_add(&d->list, &kvt_pmem_list);
	mutex_unlock(&kvt_pmem_lock);
	dev_info(dev, "%llu MiB of persistent memory for kvtier, struct pages %s\n",
		 d->bytes >> 20, d->pgmap.flags ? "on the device" : "in memory");
	return 0;
}

/* Upcalls: the tier stays until the count has gone down again. */
static struct kvt_tier *kvt_pmem_call_begin(struct kvt_pmem *d)
{
	lockdep_assert_held(&kvt_pmem_lock);
	if (!d->tier || d->closing)
		return NULL;
	WRITE_ONCE(d->calls, d->calls + 1);
	return d->tier;
}

static void kvt_pmem_call_end(struct kvt_pmem *d)
{
	mutex_lock(&kvt_pmem_lock);
	WRITE_ONCE(d->calls, d->calls - 1);
	wake_up_all(&kvt_pmem_calls_wait);
	mutex_unlock(&kvt_pmem_lock);
}

/* The next device in a range where nothing will answer, perhaps with an upcall to make. */
static struct kvt_pmem *kvt_pmem_next_going(u64 start, u64 bytes, struct kvt_tier **t)
{
	struct kvt_pmem *d;

	guard(mutex)(&kvt_pmem_lock);
	list_for_each_entry(d, &kvt_pmem_list, list) {
		if (d->leaving || d->going || d->range.start >= start + bytes ||
		    start > d->range.end)
			continue;
		d->going = true;
		*t = kvt_pmem_call_begin(d);
		return d;
	}
	return NULL;
}

/* See tier_cxl.h. What is durable by then is; nothing else is said to be. */
void kvt_pmem_going(u64 start, u64 bytes)
{
	struct kvt_pmem *d;
	struct kvt_tier *t;

	/* One without a tier can go at any time: it is not looked at again. */
	while ((d = kvt_pmem_next_going(start, bytes, &t))) {
		if (!t)
			continue;
		pr_warn("the persistent memory of a tier is going\n");
		kvt_tier_lost(t);
		down_write(&d->io);
		d->dead = true;
		up_write(&d->io);
		kvt_pmem_call_end(d);
	}
}

/* See tier_pmem.h. */
bool kvt_pmem_remove(struct dev_dax *dax)
{
	struct kvt_pmem *d, *found = NULL;
	struct kvt_tier *t;
	bool unused;

	mutex_lock(&kvt_pmem_lock);
	list_for_each_entry(d, &kvt_pmem_list, list) {
		if (d->dax == dax)
			found = d;
	}
	if (!found) {
		mutex_unlock(&kvt_pmem_lock);
		return false;
	}
	d = found;
	d->leaving = true;
	t = kvt_pmem_call_begin(d);
	mutex_unlock(&kvt_pmem_lock);
	if (t) {
		dev_warn(&dax->dev, "removed while a tier uses it\n");
		kvt_tier_lost(t);
	}
	if (d->cxl)
		kvt_cxl_unbound(&dax->dev);
	kvt_pmem_unmap(d);
	mutex_lock(&kvt_pmem_lock);
	list_del(&d->list);
	if (t)
		WRITE_ONCE(d->calls, d->calls - 1);
	d->unbound = true;
	unused = !d->tier;
	wake_up_all(&kvt_pmem_calls_wait);
	mutex_unlock(&kvt_pmem_lock);
	if (unused)
		kvt_pmem_free(d);
	return true;
}

/* --- The tier -------------------------------------------------------------- */

static int kvt_pmem_attach(struct kvt_tier *t)
{
	const struct kvt_zones none = { .nr = 0 };
	struct kvt_pmem *d;
	int err = -ENODEV;

	mutex_lock(&kvt_pmem_lock);
	d = kvt_pmem_find(t->args.path);
	if (d)
		err = d->tier ? -EBUSY : kvt_bdev_geometry(t, d->bytes, &none);
	if (!err) {
		d->tier = t;
		t->priv = d;
	}
	mutex_unlock(&kvt_pmem_lock);
	return err;
}

static void kvt_pmem_detach(struct kvt_tier *t)
{
	struct kvt_pmem *d = t->priv;
	bool unbound;

	mutex_lock(&kvt_pmem_lock);
	d->closing = true;
	mutex_unlock(&kvt_pmem_lock);
	wait_event(kvt_pmem_calls_wait, !READ_ONCE(d->calls));
	mutex_lock(&kvt_pmem_lock);
	d->tier = NULL;
	d->closing = false;
	unbound = d->unbound;
	mutex_unlock(&kvt_pmem_lock);
	t->priv = NULL;
	if (unbound)
		kvt_pmem_free(d);
}

const struct kvt_tier_ops kvt_tier_pmem_ops = {
	.name = "pmem",
	.by_cpu = true,
	.attach = kvt_pmem_attach,
	.detach = kvt_pmem_detach,
	.check_blank = kvt_pmem_check_blank,
	.submit = kvt_pmem_submit,
	.rw = kvt_pmem_rw,
	.flush = kvt_pmem_flush,
};
