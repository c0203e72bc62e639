// SPDX-License-Identifier: GPL-2.0
/*
 * Block tiers: any block device, opened exclusively.
 *
 *   byte 0       1 MiB, reserved: superblocks
 *   then         segments of equal length, as many as fit
 *
 * What is in them is core/kvt_media.h's and kvt_mlog.h's business. Units are numbered
 * through all segments.
 *
 * A transfer is a chain of bios on the pages themselves: no bounce, one completion.
 * Transfers in flight are limited per tier; whoever submits one more waits.
 *
 * A zoned device is cut up the same way, with whole zones for segments: byte addresses
 * are of its written space (core/kvt_zone.h), and no bio crosses the end of a zone's
 * capacity.
 *
 * A device that takes discards gets one for each segment that is free again. Zones are
 * reset instead, before they are written anew.
 *
 * When the device is reported dead a work tells the pool. Transfers fail on their
 * own then. After detach has closed the device there are no more such reports.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/log2.h>
#include <linux/sched/mm.h>
#include <linux/semaphore.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "core/kvt_zone.h"
#include "kvt_mlog.h"
#include "tier.h"
#include "tier_zoned.h"

#define KVT_BDEV_BYTES_MIN		(16ULL << 20)
#define KVT_BDEV_SEG_ALIGN		(2ULL << 20)
#define KVT_BDEV_SEG_MIN		(2ULL << 20)
#define KVT_BDEV_SEG_AIM		(64ULL << 20)	/* largest chosen unasked */
#define KVT_BDEV_SEG_ROOMY		(32ULL << 20)	/* several large blocks fit */
#define KVT_BDEV_SEG_MAX		(4ULL << 30)
#define KVT_BDEV_UNITS_MAX		(1ULL << 31)
#define KVT_BDEV_INFLIGHT		64

/**
 * struct kvt_bdev - an open device
 * @tier:       whose
 * @file:       the opened device; we are its exclusive holder
 * @bdev:       of @file
 * @bios:       bios come with a struct kvt_bdev_io in front; large enough that each
 *              of the transfers in flight may hold one while one more is taken
 * @slots:      transfers that may still be started
 * @dead:       tells the pool
 * @zones:      if it is zoned
 */
struct kvt_bdev {
	struct kvt_tier *tier;
	struct file *file;
	struct block_device *bdev;
	struct bio_set bios;
	struct semaphore slots;
	struct work_struct dead;
	struct kvt_zones zones;
};

struct kvt_bdev_io {
	struct kvt_bdev *b;
	struct kvt_bio_xfer *x;
	struct bio bio;
};

static void kvt_bdev_dead_work(struct work_struct *work)
{
	kvt_tier_lost(container_of(work, struct kvt_bdev, dead)->tier);
}

/* The caller holds the holder lock and leaves dropping it to us. */
static void kvt_bdev_mark_dead(struct block_device *bdev, bool surprise)
{
	struct kvt_bdev *b = bdev->bd_holder;

	schedule_work(&b->dead);
	mutex_unlock(&bdev->bd_holder_lock);
}

static const struct blk_holder_ops kvt_bdev_holder_ops = {
	.mark_dead = kvt_bdev_mark_dead,
};

static int kvt_bdev_check(struct block_device *bdev)
{
	if (bdev_read_only(bdev))
		return -EROFS;
	if (bdev_logical_block_size(bdev) > KVTIER_SLOT_ALIGN)
		return -EINVAL;
	return 0;
}

struct block_device *kvt_bdev_of(const struct kvt_tier *t)
{
	const struct kvt_bdev *b = t->priv;

	return b->bdev;
}

/*
 * A sixty-fourth of the device within limits. On small devices rather more, so that
 * the tail of a segment into which the next block does not fit stays small.
 */
static u64 kvt_bdev_choose_seg(u64 bytes)
{
	u64 seg = clamp(bytes / 64, KVT_BDEV_SEG_MIN, KVT_BDEV_SEG_AIM);

	seg = max(seg, min(bytes / 16, KVT_BDEV_SEG_ROOMY));
	seg = max(round_down(seg, KVT_BDEV_SEG_ALIGN), KVT_BDEV_SEG_MIN);
	return max(seg, round_up(div64_u64(bytes, KVT_SEGS_MAX), KVT_BDEV_SEG_ALIGN));
}

/* Whole zones, of a zoned device. */
static u64 kvt_bdev_round(const struct kvt_zones *z, u64 bytes)
{
	return z->zone_bytes ? DIV64_U64_ROUND_UP(bytes, z->zone_bytes) * z->zone_bytes : bytes;
}

static u64 kvt_bdev_head(const struct kvt_zones *z)
{
	return kvt_bdev_round(z, max(KVT_SUPER_ZONES * z->zone_bytes, KVT_HEAD_BYTES_MIN));
}

/**
 * kvt_bdev_geometry() - lay out a tier that is a member of the log
 * @t:     tier, being attached; its args ask for a capacity and a segment size, or not
 * @bytes: length of the device
 * @z:     its zones
 * Return: 0 or -EINVAL.
 */
int kvt_bdev_geometry(struct kvt_tier *t, u64 bytes, const struct kvt_zones *z)
{
	struct kvt_geometry g = {
		.first_byte = kvt_bdev_head(z),
		.zone_bytes = z->zone_bytes,
		.zone_stride = z->zone_stride,
	};
	u64 seg = t->args.segment_bytes, segs;

	if (z->zone_bytes)
		bytes = z->nr * z->zone_bytes;
	t->device_bytes = bytes;
	if (t->args.capacity_bytes)
		bytes = min(bytes, t->args.capacity_bytes);
	if (bytes < KVT_BDEV_BYTES_MIN || bytes < g.first_byte)
		return -EINVAL;
	bytes -= g.first_byte;
	if (!seg)
		seg = kvt_bdev_round(z, kvt_bdev_choose_seg(bytes));
	if (seg < KVT_BDEV_SEG_MIN || seg > KVT_BDEV_SEG_MAX || seg != kvt_bdev_round(z, seg) ||
	    (!z->zone_bytes && seg % KVT_BDEV_SEG_ALIGN))
		return -EINVAL;
	segs = div64_u64(bytes, seg);
	if (segs < KVT_WLOG_SEGS_MIN || segs > KVT_SEGS_MAX)
		return -EINVAL;
	g.unit_bytes = KVTIER_SLOT_ALIGN;
	while (bytes >> ilog2(g.unit_bytes) > KVT_BDEV_UNITS_MAX)
		g.unit_bytes *= 2;
	if (g.unit_bytes > KVT_UNIT_BYTES_MAX || z->zone_bytes & (g.unit_bytes - 1))
		return -EINVAL;
	g.seg_bytes = seg;
	g.seg_units = seg >> ilog2(g.unit_bytes);
	g.nr_segs = segs;
	kvt_tier_set_geometry(t, &g);
	return 0;
}

static int kvt_bdev_open(struct kvt_bdev *b)
{
	int err;

	b->file = bdev_file_open_by_path(b->tier->args.path, BLK_OPEN_READ | BLK_OPEN_WRITE,
					 b, &kvt_bdev_holder_ops);
	if (IS_ERR(b->file))
		return PTR_ERR(b->file);
	b->bdev = file_bdev(b->file);
	err = kvt_bdev_check(b->bdev);
	if (!err)
		err = kvt_zones_probe(b->bdev, &b->zones);
	if (!err)
		err = kvt_bdev_geometry(b->tier, bdev_nr_bytes(b->bdev), &b->zones);
	if (!err)
		err = bioset_init(&b->bios, KVT_BDEV_INFLIGHT + 1,
				  offsetof(struct kvt_bdev_io, bio), BIOSET_NEED_BVECS);
	if (err) {
		bdev_fput(b->file);
		cancel_work_sync(&b->dead);
	}
	return err;
}

static int kvt_bdev_attach(struct kvt_tier *t)
{
	struct kvt_bdev *b;
	int err;

	b = kzalloc(sizeof(*b), GFP_KERNEL);
	if (!b)
		return -ENOMEM;
	b->tier = t;
	sema_init(&b->slots, KVT_BDEV_INFLIGHT);
	INIT_WORK(&b->dead, kvt_bdev_dead_work);
	err = kvt_bdev_open(b);
	if (err) {
		kfree(b);
		return err;
	}
	t->priv = b;
	if (b->zones.zone_bytes)
		t->zones = &kvt_zoned_ops;
	else
		t->discards = bdev_max_discard_sectors(b->bdev);
	t->max_active_zones = b->zones.max_active;
	return 0;
}

static void kvt_bdev_detach(struct kvt_tier *t)
{
	struct kvt_bdev *b = t->priv;
	u32 i;

	/* Completions run their last steps after the pool has heard of them. */
	for (i = 0; i < KVT_BDEV_INFLIGHT; i++)
		down(&b->slots);
	bdev_fput(b->file);
	cancel_work_sync(&b->dead);
	bioset_exit(&b->bios);
	kfree(b);
	t->priv = NULL;
}

static void kvt_bdev_end_io(struct bio *bio)
{
	struct kvt_bdev_io *io = container_of(bio, struct kvt_bdev_io, bio);
	int err = blk_status_to_errno(bio->bi_status);
	struct kvt_bio_xfer *x = io->x;
	struct kvt_bdev *b = io->b;

	bio_put(bio);
	x->done(x, err);
	up(&b->slots);
}

/* Where that is on the device, and how many bytes follow it there. */
static sector_t kvt_bdev_sector(const struct kvt_bdev *b, u64 byte, u64 *left)
{
	return kvt_zone_phys(byte, b->zones.zone_bytes, b->zones.zone_stride, left) >>
	       SECTOR_SHIFT;
}

/* Most pieces of memory the pages from @at on come in. */
static u32 kvt_bdev_vecs(const struct kvt_bio_xfer *x, u32 at)
{
	u32 left = x->nr_pages - at;

	if (x->mem)
		left = left / KVT_PIECE_PAGES + 2;
	return bio_max_segs(left);
}

/* Add pages from @at to @end as long as there is room. Returns where it stopped. */
static u32 kvt_bdev_fill(struct bio *bio, const struct kvt_bio_xfer *x, u32 at, u32 end)
{
	while (at < end) {
		struct page *page;
		u32 run = 1;

		if (x->mem) {
			page = x->mem->ops->page(x->mem, x->page + at);
			run = kvt_page_run(x->page + at, end - at);
		} else {
			page = x->pages[at];
		}
		if (!bio_add_page(bio, page, run << PAGE_SHIFT, 0))
			break;
		at += run;
	}
	return at;
}

static void kvt_bdev_submit(struct kvt_tier *t, struct kvt_bio_xfer *x)
{
	blk_opf_t op = x->write ? REQ_OP_WRITE : REQ_OP_READ;
	u64 byte = kvt_geo_byte(&t->geo, 0, x->unit), left;
	struct bio *bio = NULL, *next;
	struct kvt_bdev *b = t->priv;
	struct kvt_bdev_io *io;
	u32 at = 0;

	down(&b->slots);
	while (at < x->nr_pages) {
		next = bio_alloc_bioset(b->bdev, kvt_bdev_vecs(x, at), op, GFP_NOIO,
					&b->bios);
		next->bi_iter.bi_sector = kvt_bdev_sector(b, byte + ((u64)at << PAGE_SHIFT),
							  &left);
		if (bio) {
			bio_chain(bio, next);
			submit_bio(bio);
		}
		bio = next;
		at = kvt_bdev_fill(bio, x, at, at + min_t(u64, x->nr_pages - at,
							  left >> PAGE_SHIFT));
	}
	/* The last of the chain ends when all have. */
	io = container_of(bio, struct kvt_bdev_io, bio);
	io->b = b;
	io->x = x;
	bio->bi_end_io = kvt_bdev_end_io;
	submit_bio(bio);
}

/* Add kernel memory from @at on as long as there is room. Returns where it stopped. */
static u32 kvt_bdev_fill_kernel(struct bio *bio, void *buf, u32 at, u32 len)
{
	while (at < len) {
		void *from = buf + at;
		u32 run = min_t(u32, len - at, PAGE_SIZE - offset_in_page(from));
		struct page *page = is_vmalloc_addr(from) ? vmalloc_to_page(from) :
							    virt_to_page(from);

		if (bio_add_page(bio, page, run, offset_in_page(from)) != run)
			break;
		at += run;
	}
	return at;
}

static int kvt_bdev_rw(struct kvt_tier *t, u64 byte, void *buf, u32 len, bool write)
{
	blk_opf_t op = write ? REQ_OP_WRITE | REQ_SYNC : REQ_OP_READ;
	struct kvt_bdev *b = t->priv;
	u32 at = 0;
	int err = 0;
	u64 left;

	while (at < len && !err) {
		struct bio *bio = bio_alloc(b->bdev, bio_max_segs(DIV_ROUND_UP(len - at, PAGE_SIZE)),
					    op, GFP_NOIO);

		bio->bi_iter.bi_sector = kvt_bdev_sector(b, byte + at, &left);
		at = kvt_bdev_fill_kernel(bio, buf, at, at + min_t(u64, len - at, left));
		err = submit_bio_wait(bio);
		bio_put(bio);
	}
	return err ? -EIO : 0;
}

static int kvt_bdev_flush(struct kvt_tier *t)
{
	struct kvt_bdev *b = t->priv;

	return blkdev_issue_flush(b->bdev) ? -EIO : 0;
}

static int kvt_bdev_discard(struct kvt_tier *t, u64 byte, u64 len)
{
	struct kvt_bdev *b = t->priv;
	unsigned int noio;
	int err;

	/* The administrator may have changed that. */
	if (!bdev_max_discard_sectors(b->bdev))
		return -EOPNOTSUPP;
	noio = memalloc_noio_save();
	err = blkdev_issue_discard(b->bdev, byte >> SECTOR_SHIFT, len >> SECTOR_SHIFT, GFP_NOIO);
	memalloc_noio_restore(noio);
	return err;
}

const struct kvt_tier_ops kvt_tier_bdev_ops = {
	.name = "bdev",
	.attach = kvt_bdev_attach,
	.detach = kvt_bdev_detach,
	.submit = kvt_bdev_submit,
	.rw = kvt_bdev_rw,
	.flush = kvt_bdev_flush,
	.discard = kvt_bdev_discard,
};
