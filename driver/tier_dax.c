// SPDX-License-Identifier: GPL-2.0
/*
 * Memory tiers on device-dax instances: CXL regions. Persistent ones are bound here,
 * too, and handed to tier_pmem.c.
 *
 * A dax-bus driver, "kvtier", is bound to an instance by writing its name to
 * new_id. Binding claims the physical ranges and gives them struct pages; attach()
 * then hands the instance to one tier.
 *
 *   IDLE      bound, no tier
 *   CLAIMED   a tier uses it
 *   SUSPECT   no tier, but perhaps pages that somebody holds a reference to: nobody
 *             may claim it before all are back at one reference
 *   gone      on top of any of these: unbound. Without a tier and not suspect any
 *             more it is freed; until then it is a *zombie*
 *   going     as well: its memory cannot be read any more, unbinding follows
 *
 * The page map is not device-managed: taking struct pages away while somebody has a
 * reference to one (a pinned buffer, a page in a pipe) is a use after free, and
 * nothing waits for those. So unbinding leaves the pages, and a delayed work frees
 * them when it finds them unreferenced. Suspects hold a reference to the module,
 * whose text the page map points to.
 *
 * Locks: kvt_dax_lock for the list and all members that change. It is taken inside
 * the locks of memory_failure(); so memunmap_pages(), which waits for that, is
 * called without it. Upcalls to the pool are made without it, too, and counted.
 *
 * memory_failure() looks at the struct page once more, for statistics, after it has
 * given up the page map. So a page map that has just seen one is kept for a while.
 */
#define pr_fmt(fmt) "kvtier: " fmt

#include <linux/delay.h>
#include <linux/ioport.h>
#include <linux/list.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "compat/kvt_compat.h"
#include "compat/kvt_dax_compat.h"
#include "tier.h"
#include "tier_cxl.h"
#include "tier_pmem.h"

#define KVT_DAX_REAP_PERIOD	HZ
#define KVT_DAX_FAILURE_GRACE	HZ
#define KVT_DAX_EXIT_TRIES	50	/* of 100 ms */

/**
 * struct kvt_dax - one bound (or once bound) instance
 * @list:     in kvt_dax_list
 * @name:     of the device; also of its ranges in /proc/iomem
 * @tier:     user, or NULL
 * @closing:  @tier is detaching: no new upcalls
 * @calls:    upcalls under way
 * @gone:     unbound
 * @going:    see above
 * @cxl:      watched by tier_cxl.c
 * @suspect:  see above
 * @held:     holds a reference to the module
 * @poisoned: some page is
 * @failed_at: when the latest was found, in jiffies
 * @pgmap:    its ranges, trimmed to 2 MiB, and their page map
 * @nr_res:   how many of the ranges are claimed
 * @nr_pieces: 2 MiB pieces in all
 * @mapped:   @pgmap is
 */
struct kvt_dax {
	struct list_head list;
	char name[32];
	struct kvt_tier *tier;
	bool closing;
	u32 calls;
	bool gone;
	bool going;
	bool cxl;
	bool suspect;
	bool held;
	bool poisoned;
	unsigned long failed_at;
	struct dev_pagemap *pgmap;
	int nr_res;
	u32 nr_pieces;
	bool mapped;
};

static DEFINE_MUTEX(kvt_dax_lock);
static LIST_HEAD(kvt_dax_list);
static DECLARE_WAIT_QUEUE_HEAD(kvt_dax_calls_wait);

static unsigned int kvt_dax_zombies;
module_param_named(dax_zombies, kvt_dax_zombies, uint, 0444);
MODULE_PARM_DESC(dax_zombies, "Unbound dax devices whose pages somebody still references");

static void kvt_dax_reap_work(struct work_struct *work);
static DECLARE_DELAYED_WORK(kvt_dax_reaper, kvt_dax_reap_work);

/* Upcalls: the tier stays until kvt_dax_call_end(). */
static struct kvt_tier *kvt_dax_call_begin(struct kvt_dax *d)
{
	lockdep_assert_held(&kvt_dax_lock);
	if (!d->tier || d->closing)
		return NULL;
	WRITE_ONCE(d->calls, d->calls + 1);
	return d->tier;
}

static void kvt_dax_call_end(struct kvt_dax *d)
{
	mutex_lock(&kvt_dax_lock);
	d->failed_at = jiffies;		/* if it was that; otherwise no harm */
	WRITE_ONCE(d->calls, d->calls - 1);
	wake_up_all(&kvt_dax_calls_wait);
	mutex_unlock(&kvt_dax_lock);
}

/* The device has few ranges, as a rule one: they take less room than a list of its pages. */
static struct page *kvt_dax_page_at(const struct kvt_dax *d, u32 page)
{
	const struct range *r = d->pgmap->ranges;

	for (; page >= PHYS_PFN(range_len(r)); r++)
		page -= PHYS_PFN(range_len(r));
	return pfn_to_page(PHYS_PFN(r->start) + page);
}

/* Is every page back at its own one reference. Nobody can take new ones. */
static bool kvt_dax_unreferenced(struct kvt_dax *d)
{
	struct page *first;
	u32 i, j;

	for (i = 0; i < d->nr_pieces; i++) {
		first = kvt_dax_page_at(d, i * KVT_PIECE_PAGES);
		for (j = 0; j < KVT_PIECE_PAGES; j++) {
			if (page_ref_count(first + j) != 1)
				return false;
		}
		cond_resched();
	}
	return true;
}

/* Page number in the tier of a frame, or KVT_NO_PAGE. */
static u32 kvt_dax_page_of(const struct kvt_dax *d, unsigned long pfn)
{
	u32 page = 0;
	int i;

	for (i = 0; i < d->nr_res; i++) {
		const struct range *r = &d->pgmap->ranges[i];

		if (pfn >= PHYS_PFN(r->start) && pfn <= PHYS_PFN(r->end))
			return page + (u32)(pfn - PHYS_PFN(r->start));
		page += PHYS_PFN(range_len(r));
	}
	return KVT_NO_PAGE;
}

/*
 * The page map is kept alive by the caller, and @d by the page map. What is poisoned
 * while no tier is there is retired when one is attached.
 */
static int kvt_dax_memory_failure(struct dev_pagemap *pgmap, unsigned long pfn,
				  unsigned long nr_pages, int mf_flags)
{
	struct kvt_dax *d = pgmap->owner;
	struct kvt_tier *t;
	unsigned long i;
	u32 page;

	for (i = 0; i < nr_pages; i++)
		SetPageHWPoison(pfn_to_page(pfn + i));
	mutex_lock(&kvt_dax_lock);
	WRITE_ONCE(d->poisoned, true);
	d->failed_at = jiffies;
	t = kvt_dax_call_begin(d);
	mutex_unlock(&kvt_dax_lock);
	if (!t)
		return 0;
	page = kvt_dax_page_of(d, pfn);
	if (page < t->nr_pieces * KVT_PIECE_PAGES)
		kvt_tier_poison(t, page, min_t(unsigned long, nr_pages,
					       t->nr_pieces * KVT_PIECE_PAGES - page));
	kvt_dax_call_end(d);
	return 0;
}

static const struct dev_pagemap_ops kvt_dax_pagemap_ops = {
	.memory_failure = kvt_dax_memory_failure,
};

/* Free all of it, as far as it was made. Nothing else knows it any more. */
static void kvt_dax_free(struct kvt_dax *d)
{
	int i;

	if (d->mapped)
		memunmap_pages(d->pgmap);
	for (i = 0; i < d->nr_res; i++)
		release_mem_region(d->pgmap->ranges[i].start,
				   range_len(&d->pgmap->ranges[i]));
	if (d->held)
		module_put(THIS_MODULE);
	kfree(d->pgmap);
	kfree(d);
}

/* A suspect that is still referenced. */
static void kvt_dax_hold(struct kvt_dax *d)
{
	lockdep_assert_held(&kvt_dax_lock);
	if (!d->held)
		d->held = try_module_get(THIS_MODULE);
}

/* A suspect no more. */
static void kvt_dax_clear(struct kvt_dax *d, struct list_head *freed)
{
	lockdep_assert_held(&kvt_dax_lock);
	d->suspect = false;
	if (d->gone) {
		list_move(&d->list, freed);
	} else if (d->held) {
		d->held = false;
		module_put(THIS_MODULE);
	}
}

static bool kvt_dax_failed_lately(const struct kvt_dax *d)
{
	lockdep_assert_held(&kvt_dax_lock);
	return d->poisoned && time_before(jiffies, d->failed_at + KVT_DAX_FAILURE_GRACE);
}

/* Let suspects go on whose pages nobody references. Whether any are left. */
static bool kvt_dax_reap(void)
{
	struct kvt_dax *d, *next;
	unsigned int zombies = 0;
	LIST_HEAD(freed);
	bool left = false;

	mutex_lock(&kvt_dax_lock);
	list_for_each_entry_safe(d, next, &kvt_dax_list, list) {
		if (d->tier || !d->suspect)
			continue;
		if (!kvt_dax_unreferenced(d)) {
			kvt_dax_hold(d);
		} else if (!kvt_dax_failed_lately(d)) {
			kvt_dax_clear(d, &freed);
			continue;
		}
		zombies += d->gone;
		left = true;
	}
	kvt_dax_zombies = zombies;
	mutex_unlock(&kvt_dax_lock);
	list_for_each_entry_safe(d, next, &freed, list)
		kvt_dax_free(d);
	return left;
}

static void kvt_dax_reap_now(void)
{
	if (kvt_dax_reap())
		schedule_delayed_work(&kvt_dax_reaper, KVT_DAX_REAP_PERIOD);
}

static void kvt_dax_reap_work(struct work_struct *work)
{
	kvt_dax_reap_now();
}

/* The ranges, without what is not a whole 2 MiB piece. */
static int kvt_dax_trim(struct kvt_dax *d, const struct dev_dax *dax)
{
	u64 pieces = 0;
	int i, n = 0;

	d->pgmap = kzalloc(struct_size(d->pgmap, ranges, dax->nr_range), GFP_KERNEL);
	if (!d->pgmap)
		return -ENOMEM;
	for (i = 0; i < dax->nr_range; i++) {
		u64 start = ALIGN(dax->ranges[i].range.start, KVT_PIECE_BYTES);
		u64 end = ALIGN_DOWN(dax->ranges[i].range.end + 1, KVT_PIECE_BYTES);

		if (start >= end)
			continue;
		d->pgmap->ranges[n].start = start;
		d->pgmap->ranges[n++].end = end - 1;
		pieces += (end - start) >> KVT_PIECE_SHIFT;
	}
	if (!pieces || pieces > KVT_TIER_PIECES_MAX)
		return -EINVAL;
	d->pgmap->nr_range = n;
	d->nr_pieces = pieces;
	return 0;
}

static int kvt_dax_claim_ranges(struct kvt_dax *d, struct device *dev)
{
	for (; d->nr_res < d->pgmap->nr_range; d->nr_res++) {
		const struct range *r = &d->pgmap->ranges[d->nr_res];

		if (!request_mem_region_exclusive(r->start, range_len(r), d->name)) {
			dev_err(dev, "%#llx-%#llx is in use\n", r->start, r->end);
			return -EBUSY;
		}
	}
	return 0;
}

static int kvt_dax_map_pages(struct kvt_dax *d, struct device *dev)
{
	void *addr;

	d->pgmap->type = MEMORY_DEVICE_GENERIC;
	d->pgmap->ops = &kvt_dax_pagemap_ops;
	d->pgmap->owner = d;
	addr = memremap_pages(d->pgmap, dev_to_node(dev));
	d->mapped = !IS_ERR(addr);
	return PTR_ERR_OR_ZERO(addr);
}

static struct dax_device_driver kvt_dax_driver;

static int kvt_dax_probe(struct dev_dax *dax)
{
	struct device *dev = &dax->dev, *region;
	struct kvt_dax *d;
	int err;

	if (!kvt_dax_plausible(dax, &kvt_dax_driver.drv)) {
		pr_err("this kernel's dax devices are not what the module was built for, or their ranges are not free memory: not bound\n");
		return -EOPNOTSUPP;
	}
	region = kvt_dax_pmem_region(dax);
	if (region)
		return kvt_pmem_probe(dax, region);
	d = kzalloc(sizeof(*d), GFP_KERNEL);
	if (!d)
		return -ENOMEM;
	strscpy(d->name, dev_name(dev), sizeof(d->name));
	err = kvt_dax_trim(d, dax);
	if (!err)
		err = kvt_dax_claim_ranges(d, dev);
	if (!err)
		err = kvt_dax_map_pages(d, dev);
	if (err) {
		kvt_dax_free(d);
		return err;
	}
	d->cxl = kvt_cxl_bound(dev);
	dev_set_drvdata(dev, d);
	mutex_lock(&kvt_dax_lock);
	list_add(&d->list, &kvt_dax_list);
	mutex_unlock(&kvt_dax_lock);
	dev_info(dev, "%u MiB for kvtier\n", d->nr_pieces << (KVT_PIECE_SHIFT - 20));
	return 0;
}

static bool kvt_dax_overlaps(const struct kvt_dax *d, u64 start, u64 bytes)
{
	int i;

	for (i = 0; i < d->nr_res; i++) {
		const struct range *r = &d->pgmap->ranges[i];

		if (r->start < start + bytes && start <= r->end)
			return true;
	}
	return false;
}

/* The next instance in a range that can be read no more, perhaps with an upcall to make. */
static struct kvt_dax *kvt_dax_next_going(u64 start, u64 bytes, struct kvt_tier **t)
{
	struct kvt_dax *d;

	guard(mutex)(&kvt_dax_lock);
	list_for_each_entry(d, &kvt_dax_list, list) {
		if (d->gone || d->going || !kvt_dax_overlaps(d, start, bytes))
			continue;
		d->going = true;
		*t = kvt_dax_call_begin(d);
		return d;
	}
	return NULL;
}

void kvt_dax_going(u64 start, u64 bytes)
{
	struct kvt_tier *t;
	struct kvt_dax *d;

	/* One without a tier can go at any time: it is not looked at again. */
	while ((d = kvt_dax_next_going(start, bytes, &t))) {
		if (!t)
			continue;
		pr_warn("the memory of a tier is going\n");
		kvt_tier_lost(t);
		kvt_dax_call_end(d);
	}
}

static void kvt_dax_remove(struct dev_dax *dax)
{
	struct kvt_dax *d = dev_get_drvdata(&dax->dev);
	struct kvt_tier *t;

	if (kvt_pmem_remove(dax))
		return;
	if (d->cxl)
		kvt_cxl_unbound(&dax->dev);
	mutex_lock(&kvt_dax_lock);
	d->gone = true;
	t = kvt_dax_call_begin(d);
	if (!d->tier)
		d->suspect = true;
	mutex_unlock(&kvt_dax_lock);
	if (t) {
		dev_warn(&dax->dev, "removed while a tier uses it\n");
		kvt_tier_lost(t);
		kvt_dax_call_end(d);
	}
	kvt_dax_reap_now();
}

static struct dax_device_driver kvt_dax_driver = {
	.type = KVT_DAX_TYPE_NEW_ID_ONLY,
	.probe = kvt_dax_probe,
	.remove = kvt_dax_remove,
};

/* Mark what of a range is in one of the instance's. */
static void kvt_dax_mark(struct kvt_dax *d, const struct range *r, u64 start, u64 last)
{
	unsigned long pfn = PHYS_PFN(max(start, r->start)), end = PHYS_PFN(min(last, r->end));

	if (start > r->end || last < r->start)
		return;
	for (; pfn <= end; pfn++) {
		SetPageHWPoison(pfn_to_page(pfn));
		if (!(pfn % KVT_PIECE_PAGES))
			cond_resched();
	}
	WRITE_ONCE(d->poisoned, true);
}

/* What whoever attaches knows to be bad is as bad as what turns out to be. */
static void kvt_dax_mark_bad(struct kvt_dax *d, const struct kvtier_range *bad, u32 nr)
{
	u32 i;
	int j;

	lockdep_assert_held(&kvt_dax_lock);
	for (i = 0; i < nr; i++) {
		for (j = 0; bad[i].bytes && j < d->nr_res; j++)
			kvt_dax_mark(d, &d->pgmap->ranges[j], bad[i].start,
				     bad[i].start + bad[i].bytes - 1);
	}
}

static int kvt_dax_attach(struct kvt_tier *t)
{
	u64 limit = t->args.capacity_bytes >> KVT_PIECE_SHIFT;
	struct kvt_dax *d, *found = NULL;
	int err = -ENODEV;

	if (t->args.capacity_bytes && !limit)
		return -EINVAL;
	mutex_lock(&kvt_dax_lock);
	list_for_each_entry(d, &kvt_dax_list, list) {
		if (!d->gone && !d->going && !strcmp(d->name, t->args.path)) {
			found = d;
			break;
		}
	}
	if (found) {
		err = found->tier || found->suspect ? -EBUSY : 0;
		if (!err)
			found->tier = t;
	}
	if (!err) {
		t->priv = found;
		t->nr_pieces = limit ? min(limit, found->nr_pieces) : found->nr_pieces;
		t->capacity_bytes = (u64)t->nr_pieces << KVT_PIECE_SHIFT;
		/* The page map is of the whole device, used or not. */
		t->frame_bytes = (u64)found->nr_pieces * KVT_PIECE_PAGES * sizeof(struct page);
		t->content = KVT_PIECE_UNKNOWN;
		kvt_dax_mark_bad(found, t->bad, t->args.nr_bad);
		t->poisoned = found->poisoned;
	}
	mutex_unlock(&kvt_dax_lock);
	return err;
}

static void kvt_dax_detach(struct kvt_tier *t)
{
	struct kvt_dax *d = t->priv;

	mutex_lock(&kvt_dax_lock);
	d->closing = true;
	mutex_unlock(&kvt_dax_lock);
	wait_event(kvt_dax_calls_wait, !READ_ONCE(d->calls));
	mutex_lock(&kvt_dax_lock);
	d->tier = NULL;
	d->closing = false;
	d->suspect = true;
	mutex_unlock(&kvt_dax_lock);
	/* From here on @d may be freed. */
	t->priv = NULL;
	kvt_dax_reap_now();
}

static struct page *kvt_dax_page(struct kvt_tier *t, u32 page)
{
	struct kvt_dax *d = t->priv;

	return kvt_dax_page_at(d, page);
}

static vm_fault_t kvt_dax_insert(struct kvt_tier *t, struct vm_area_struct *vma,
				 unsigned long addr, u32 page, u32 nr, bool write)
{
	vm_fault_t ret = VM_FAULT_NOPAGE;

	for (; nr && ret == VM_FAULT_NOPAGE; nr--, page++, addr += PAGE_SIZE) {
		if (!kvt_tier_page_bad(t, page))
			ret = kvt_insert_device_page(vma, addr, kvt_dax_page(t, page));
	}
	return ret;
}

static vm_fault_t kvt_dax_insert_pmd(struct kvt_tier *t, struct vm_fault *vmf, u32 page)
{
	struct kvt_dax *d = t->priv;
	u32 i;

	/* The flag spares the good case a look at 512 pages. */
	for (i = 0; READ_ONCE(d->poisoned) && i < KVT_PIECE_PAGES; i++) {
		if (kvt_tier_page_bad(t, page + i))
			return VM_FAULT_FALLBACK;
	}
	return kvt_insert_device_pmd(vmf, kvt_dax_page(t, page));
}

const struct kvt_tier_ops kvt_tier_dax_ops = {
	.name = "dax",
	.is_mem = true,
	.attach = kvt_dax_attach,
	.detach = kvt_dax_detach,
	.page = kvt_dax_page,
	.insert = kvt_dax_insert,
	.insert_pmd = kvt_dax_insert_pmd,
};

int kvt_tier_dax_init(void)
{
	return __dax_driver_register(&kvt_dax_driver, THIS_MODULE, KBUILD_MODNAME);
}

/*
 * Unbinds what is bound. No tier is attached, and suspects would have kept the
 * module: only a reference taken since then (by what, is a riddle) can still be
 * there. Rather than wait for ever or pull the pages from under it, leave them.
 */
void kvt_tier_dax_exit(void)
{
	struct kvt_dax *d;
	int tries = KVT_DAX_EXIT_TRIES;

	dax_driver_unregister(&kvt_dax_driver);
	cancel_delayed_work_sync(&kvt_dax_reaper);
	while (kvt_dax_reap() && tries--)
		msleep(100);
	list_for_each_entry(d, &kvt_dax_list, list) {
		pr_err("pages of %s are still referenced: left behind until reboot\n",
		       d->name);
		d->pgmap->ops = NULL;
	}
}
