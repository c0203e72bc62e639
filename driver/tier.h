/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tiers: one backing device each, behind one ops table.
 *
 * A *memory* tier has pages: clients lease and map them, devices move bytes into
 * and out of them. A *block* tier has units on a block device, reached by bios on
 * memory tiers' own pages, or on persistent memory, reached by copies. What is stored
 * where is the core's business (kvt_mem, kvt_log); a backend only attaches, maps,
 * transfers and detaches.
 *
 * Life: attach() is called with the tier private to the caller. After it
 * succeeded the tier is published in pool->tiers[]. Before detach() the pool has
 * moved or dropped every block, given back every region (so no mapping and no
 * foreign reference is left on any page), unpublished the tier and waited for
 * all readers (SRCU); detach() cannot fail. A backend whose device goes away on
 * its own calls kvt_tier_lost() and must keep the pages alive until detach().
 */
#ifndef KVT_TIER_H
#define KVT_TIER_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/kobject.h>
#include <linux/mm.h>
#include <linux/types.h>
#include <linux/kvtier.h>

#include "core/kvt_cost.h"
#include "core/kvt_format.h"
#include "core/kvt_log.h"
#include "core/kvt_mem.h"

struct kvt_charges;
struct kvt_mlog;
struct kvt_pool;
struct kvt_tier;
struct kvt_bio_xfer;

/**
 * struct kvt_zone_ops - of a block tier whose device is zoned; all sleep
 * @reset:  the zones in @len bytes at @byte are empty. 0 or -EIO
 * @finish: nothing more is written to them, so that they do not count as active; what
 *          is in them stays. 0 or -EIO
 * @usable: can the zone that begins at @byte be used. 0; -EROFS: it can only be read, for
 *          good; -EIO: not even that
 * @wp:     write pointer of the zone that begins at @byte, in bytes from there; its
 *          capacity if it cannot be written. Not less than what has been written, if
 *          nothing is being written to it. 0 or -EIO
 */
struct kvt_zone_ops {
	int (*reset)(struct kvt_tier *t, u64 byte, u64 len);
	int (*finish)(struct kvt_tier *t, u64 byte, u64 len);
	int (*usable)(struct kvt_tier *t, u64 byte);
	int (*wp)(struct kvt_tier *t, u64 byte, u64 *wp);
};

/*
 * Zones that may be partly written: open segments, as many that a crash has left, and
 * two with superblocks.
 */
#define KVT_ZONES_ACTIVE_MIN	10u

/**
 * struct kvt_tier_ops - a kind of tier
 * @name:    as in sysfs: "dram", "node", "dax", "bdev", "pmem"
 * @is_mem:  memory tier
 * @by_cpu:  block: transfers are copies by the processor
 * @attach:  claim the device. Reads tier->args; sets tier->priv and
 *           tier->capacity_bytes; memory tiers set nr_pieces and content,
 *           block tiers device_bytes and kvt_tier_set_geometry(), with a layout that
 *           suits a new member. May sleep. On error
 *           nothing is left behind.
 * @detach:  release it all; never fails
 * @page:    memory: struct page of a page number; any context. Those of a piece are
 *           contiguous, and have one reference each of the tier's own
 * @insert:  memory: map @nr pages from @page at @addr. Called from a fault, may
 *           sleep. Pages mapped already count as success, and poisoned ones are
 *           left out: a fault on one must end in VM_FAULT_HWPOISON without this
 * @insert_pmd: memory, or NULL: map 2 MiB from @page, which is 2 MiB-aligned;
 *           VM_FAULT_FALLBACK if it cannot
 * @leave:   memory, or NULL: the first page of a piece, which has become absent: its
 *           pages are the caller's to free. Meta lock held, or the piece is in a region of
 *           the caller's
 * @come:    memory, with @leave: there are zeroed pages for it again, if they are to be
 *           had without taking any from others; or charged to the active memory cgroup.
 *           Sleeps. 0 or -ENOMEM
 * @page_of: memory, or NULL if the backend is told of bad pages: the page number of a frame, or
 *           KVT_NO_PAGE. Pieces may come and go meanwhile. May sleep
 * @check_blank: block, or NULL: is nothing on the device that somebody may want to keep;
 *           where programs cannot look themselves. 0; -EEXIST: there is; or another
 *           error. Sleeps
 * @submit:  block: start one transfer; x->done() is called exactly once, from
 *           any context, possibly before this returns. May sleep
 * @rw:      block: @len bytes at byte @byte of the device, between it and kernel
 *           memory of any kind; all three aligned to 4096. Sleeps until it is over
 * @flush:   block: all writes that have ended are on the media. Sleeps
 * @discard: block, or NULL: what is in @len bytes at @byte is not needed any more, both
 *           aligned to segments. Sleeps. 0; -EOPNOTSUPP: the device does not care, just
 *           now; or another error. It may have been done in part
 *
 * Of a zoned device all addresses are as if zones followed each other without gaps, see
 * core/kvt_zone.h. Writes to it come at the write pointer of their zone, and what was
 * submitted first is written first.
 */
struct kvt_tier_ops {
	const char *name;
	bool is_mem;
	bool by_cpu;
	int (*attach)(struct kvt_tier *t);
	void (*detach)(struct kvt_tier *t);
	struct page *(*page)(struct kvt_tier *t, u32 page);
	vm_fault_t (*insert)(struct kvt_tier *t, struct vm_area_struct *vma,
			     unsigned long addr, u32 page, u32 nr, bool write);
	vm_fault_t (*insert_pmd)(struct kvt_tier *t, struct vm_fault *vmf, u32 page);
	struct page *(*leave)(struct kvt_tier *t, u32 piece);
	int (*come)(struct kvt_tier *t, u32 piece, bool charge);
	u32 (*page_of)(struct kvt_tier *t, unsigned long pfn);
	int (*check_blank)(struct kvt_tier *t);
	void (*submit)(struct kvt_tier *t, struct kvt_bio_xfer *x);
	int (*rw)(struct kvt_tier *t, u64 byte, void *buf, u32 len, bool write);
	int (*flush)(struct kvt_tier *t);
	int (*discard)(struct kvt_tier *t, u64 byte, u64 len);
};

/**
 * struct kvt_bio_xfer - one transfer between a block tier and memory pages
 * @mem:    memory tier whose pages are used, or NULL: @pages
 * @pages:  if @mem is NULL: the pages themselves
 * @page:   first page number in @mem
 * @nr_pages: length
 * @unit:   first unit on the block tier
 * @write:  direction: true is memory to device
 * @done:   called at the end with 0 or -errno
 */
struct kvt_bio_xfer {
	struct kvt_tier *mem;
	struct page **pages;
	u32 page;
	u32 nr_pages;
	u32 unit;
	bool write;
	void (*done)(struct kvt_bio_xfer *x, int err);
};

/* Why a transfer failed, as tracepoints number it. */
enum kvt_cause {
	KVT_CAUSE_OTHER = 0,	/* a DMA engine did not finish */
	KVT_CAUSE_READ,		/* the device cannot read it */
	KVT_CAUSE_SUM,		/* it was read, and does not verify */
	KVT_CAUSE_WRITE,	/* the device cannot write or flush it */
	KVT_CAUSE_MEMORY,	/* memory cannot keep it */
	KVT_CAUSES,
};

/* Why a block left the pool, as tracepoints number it. */
enum kvt_why {
	KVT_WHY_ROOM = 0,	/* to make room */
	KVT_WHY_DROP = 1,	/* DROP */
	KVT_WHY_QUOTA = 2,	/* its namespace is at its quota */
	KVT_WHY_IO = 3,		/* its bytes could not be read or verified */
	KVT_WHY_LOST = 4,	/* its tier is gone */
	KVT_WHY_DETACH = 5,	/* its tier is being detached */
	KVT_WHY_TTL = 6,	/* to make room, and its time to live was over */
	KVT_WHY_WORTH = 7,	/* it was to be written to a block tier, and is not worth it */
	KVT_WHYS,
};

/**
 * struct kvt_tier_count - counters of a tier, as struct kvtier_tier_stat
 * @clean_demotions: block: of @demotions_in, those for which nothing was written
 * @demoted_bytes: block: payload written for the others
 * @log_bytes: block: written beside payload: headers, footers, superblocks
 * @discarded_bytes: block: of segments that the device was told to forget
 * @unread: blocks that left this tier for a slower one, or the pool, after they had been
 *          promoted here and before anybody read them
 * @prefetches: blocks that came here before anybody had asked for them; see kvt_look.c
 * @prefetches_used: of these, those that were read here since
 * @prefetches_unread: and those that left first, which @unread counts, too
 * @io_errors: sum of @faults; see kvt_tier_fault()
 * @compactions: memory: see kvt_compact()
 */
struct kvt_tier_count {
	atomic64_t hits;
	atomic64_t promotions_in;
	atomic64_t promotions_out;
	atomic64_t demotions_in;
	atomic64_t demotions_out;
	atomic64_t clean_demotions;
	atomic64_t demoted_bytes;
	atomic64_t unread;
	atomic64_t prefetches;
	atomic64_t prefetches_used;
	atomic64_t prefetches_unread;
	atomic64_t evictions;
	atomic64_t read_bytes;
	atomic64_t write_bytes;
	atomic64_t log_bytes;
	atomic64_t discarded_bytes;
	atomic64_t dma_bytes;
	atomic64_t io_errors;
	atomic64_t faults[KVT_CAUSES];
	atomic64_t quarantined_bytes;
	atomic64_t compactions;
};

/**
 * struct kvt_tier - one tier of one pool
 * @pool:     owner
 * @ops:      kind
 * @args:     what the user asked for, checked for form only
 * @bad:      for attach(): physical memory that is bad, @args.nr_bad ranges
 * @priv:     the backend's
 * @id:       index in pool->tiers[]
 * @rank:     0 is fastest
 * @state:    enum kvtier_tier_state; written under the meta lock
 * @capacity_bytes: see above
 * @nr_pieces: memory: 2 MiB pieces
 * @frame_bytes: memory: DRAM taken for its pages as such: struct pages that are there for its
 *             sake, what they are found by, and by whom they are paid
 * @content:  memory: KVT_PIECE_CLEAN: zeroed, KVT_PIECE_UNKNOWN: to be scrubbed before use
 * @window_offset: memory: where its page 0 lies in the read view
 * @mem:      memory: space. Meta lock
 * @compact_ns: memory: index of the namespace where kvt_compact() goes on. The worker's, as the next
 *            two
 * @compact_none: @mem.pass when there were none, among very many; 0: never
 * @compact_pieces: ... of that many pieces
 * @compact_at: jiffies from which regions that could not be emptied are tried again
 * @nr_lost:  memory: regions that their owner has lost. Meta lock
 * @poisoned: memory: some page is bad, so look before a slot is handed out; never
 *            unset. attach() sets it if it knows of any
 * @charges:  memory, or NULL: its regions' pages are charged, see kvt_charge.c
 * @shrinker: memory, or NULL; see kvt_shrink.c, as the next five; or kvt_charge.c
 * @shrink_want: pieces that the system asked for and has not got. Meta lock
 * @shrunk_at: when it asked last, in jiffies. Meta lock
 * @return_at: not before, in jiffies, is a piece to be taken from the system. The worker's
 * @returning: it takes a piece from the system just now. The worker's
 * @short_of: so many free pieces were needed since, and were not there. Meta lock
 * @geo:      block: layout of the device; its member is 0 before there is one
 * @device_bytes: block: length of the device; what can be written to it if it is zoned
 * @zones:    block: NULL, or it is zoned. attach() sets this, and the next one
 * @max_active_zones: 0: any number
 * @discards: block: its device wants to know what is free. attach() sets it; unset when
 *            it failed to take that in
 * @unit_bytes: block: as in @geo: power of two, at least 4096
 * @nr_segs:  block: as in @geo: segments
 * @seg_units: block: as in @geo: units in each
 * @log:      block: space. Meta lock
 * @mlog:     block: what is on the device. See kvt_mlog.h
 * @leaving:  block: it is not to be told of to other members any more. Meta lock
 * @read_cost: block: what reads cost, for LOOKUP
 * @reads_bytes: block: of blocks that are to come up, and have not yet; of those ahead of need only
 *               while they are read
 * @asked_bytes: block: of these, what somebody has asked for now, and not ahead of need
 * @write_errors: block: batches in a row of which nothing was written. Meta lock
 * @lowering: it was above the high watermark and is not yet below the low one. The
 *            worker's
 * @foreign_until: memory: pages of a region that was to be taken were referenced
 *            lately; until then, others are looked at but once. In jiffies
 * @min_bytes: block: sum of what is guaranteed to namespaces here. Meta lock
 * @nr_blocks: blocks whose fastest copy is here. Meta lock
 * @left:     blocks that left the pool from here, by enum kvt_why. Meta lock
 * @count:    counters
 * @kobj:     sysfs directory tiers/<name>
 */
struct kvt_tier {
	struct kvt_pool *pool;
	const struct kvt_tier_ops *ops;
	struct kvtier_tier_attach args;
	const struct kvtier_range *bad;
	void *priv;
	u32 id;
	u32 rank;
	u32 state;
	u64 capacity_bytes;

	u32 nr_pieces;
	u64 frame_bytes;
	u32 content;
	u32 nr_lost;
	bool poisoned;
	u64 window_offset;
	struct kvt_mem mem;
	unsigned long compact_ns;
	u8 compact_none;
	u32 compact_pieces;
	unsigned long compact_at;
	struct kvt_charges *charges;
	struct shrinker *shrinker;
	u32 shrink_want;
	unsigned long shrunk_at;
	unsigned long return_at;
	bool returning;
	u32 short_of;

	struct kvt_geometry geo;
	u64 device_bytes;
	const struct kvt_zone_ops *zones;
	u32 max_active_zones;
	bool discards;
	u32 unit_bytes;
	u32 nr_segs;
	u32 seg_units;
	struct kvt_log log;
	struct kvt_mlog *mlog;
	bool leaving;
	struct kvt_cost read_cost;
	atomic64_t reads_bytes;
	atomic64_t asked_bytes;
	u32 write_errors;

	bool lowering;
	unsigned long foreign_until;
	u64 min_bytes;
	u32 nr_blocks;
	u64 left[KVT_WHYS];
	struct kvt_tier_count count;
	struct kobject kobj;
	struct completion kobj_gone;
};

#define KVT_TIER_PIECES_MAX	((1u << 23) - 1)	/* page numbers are 32 bits */

extern const struct kvt_tier_ops kvt_tier_dram_ops;
extern const struct kvt_tier_ops kvt_tier_node_ops;
extern const struct kvt_tier_ops kvt_tier_dax_ops;
extern const struct kvt_tier_ops kvt_tier_bdev_ops;
extern const struct kvt_tier_ops kvt_tier_pmem_ops;

struct kvt_zones;
int kvt_bdev_geometry(struct kvt_tier *t, u64 bytes, const struct kvt_zones *z);

/* The dax-bus driver; module init and exit. See tier_dax.c for zombies. */
int kvt_tier_dax_init(void);
void kvt_tier_dax_exit(void);

/*
 * Upcalls from a backend to the pool, in process context, may sleep. detach()
 * waits for those under way, and is called under tier_lock: so they must not take
 * that. They can come as soon as attach() has returned, before the tier is
 * published.
 *
 * kvt_tier_lost() - the backend's device is gone or failed beyond use
 *
 * The pool zaps the tier's mappings, marks it FAILED, and makes its blocks misses.
 * On return no page-table entry points to the tier's pages and none will.
 *
 * kvt_tier_poison() - the hardware cannot keep what is in these pages
 *
 * PageHWPoison is set on @nr pages from @page on. The pool zaps their mappings and
 * sees that no fault, lease or slot hands them out again: the processor goes on
 * with the access that failed as soon as this has returned, and its fault must end
 * in VM_FAULT_HWPOISON. Called under the kernel's lock of memory_failure(). A backend
 * that is not told of bad pages has page_of() instead; see kvt_frames.c.
 */
void kvt_tier_lost(struct kvt_tier *t);
void kvt_tier_poison(struct kvt_tier *t, u32 page, u32 nr);

/*
 * kvt_tier_hit_poison() - a copy has ended at a page that nobody knew to be bad
 *
 * It is known to be from then on, with all that follows. May sleep, no spinlock held.
 */
void kvt_tier_hit_poison(struct kvt_tier *t, u32 page);

/**
 * kvt_tier_present_bytes() - what of a memory tier there is to put blocks in
 * @t: memory tier; racy without the meta lock
 *
 * Neither what is absent nor what is retired can be promised to anybody.
 * Return: bytes.
 */
static inline u64 kvt_tier_present_bytes(const struct kvt_tier *t)
{
	u64 away = ((u64)READ_ONCE(t->mem.nr_absent) << KVT_PIECE_SHIFT) +
		   (READ_ONCE(t->mem.retired_pages) << KVT_PAGE_SHIFT);

	return t->capacity_bytes - min(away, t->capacity_bytes);
}

/**
 * kvt_log_capacity() - what of a block tier there is to put blocks in
 * @t: block tier; racy without the meta lock
 *
 * Three segments of a log are kept for cleaning.
 * Return: bytes.
 */
static inline u64 kvt_log_capacity(const struct kvt_tier *t)
{
	u32 segs = t->nr_segs - READ_ONCE(t->log.nr_bad);

	return (u64)(segs - min(segs / 2, 3u)) * t->seg_units * t->unit_bytes;
}

/* Is the page of a memory tier known to be poisoned. Any context. */
static inline bool kvt_tier_page_bad(struct kvt_tier *t, u32 page)
{
	return PageHWPoison(t->ops->page(t, page));
}

/* Ordinary pages for bytes on their way. */
struct kvt_stage {
	struct page **pages;
	u32 nr;
};

/**
 * struct kvt_xfer - move of one block's bytes between any two tiers
 * @src:      from
 * @dst:      to; not both block tiers are the same segment
 * @src_addr: page number (memory) or unit (block)
 * @dst_addr: likewise
 * @bytes:    slot length, a multiple of 4096
 * @csum:     block to any: checksum the bytes must have; memory to block: out. See
 *            struct kvt_payload_sum
 * @err:      out: 0, -EIO (device), -EBADMSG (bytes do not verify), -EHWPOISON
 *            (source memory), -ENOMEM (nothing to stage in), -ETIMEDOUT (a DMA
 *            engine does not finish: the pages of both sides carry a foreign
 *            reference until it does, and must not be used again before), -EAGAIN
 *            (kvt_xfer_write_shared() only)
 * @shared:   memory to block: clients can write to the source meanwhile, so that what is
 *            summed and what is written must be the same copy of it
 * @src_bad:  out: @err is the source's: the bytes cannot be had from there. Else they are
 *            as good there as before
 * @dma:      out: no CPU copy was made of it
 *
 * @bio, @done, @stage, @round_pages, @later, @start_ns, @end_ns: kvt_xfer.c's
 */
struct kvt_xfer {
	struct kvt_tier *src;
	struct kvt_tier *dst;
	u32 src_addr;
	u32 dst_addr;
	u32 bytes;
	u32 csum;
	int err;
	bool shared;
	bool src_bad;
	bool dma;

	struct kvt_bio_xfer bio;
	struct completion done;
	struct kvt_stage stage;
	u32 round_pages;
	bool later;
	u64 start_ns;
	u64 end_ns;
};

/* See kvt_faults.c. */
void kvt_tier_fault(struct kvt_tier *t, int err, bool write);

/*
 * kvt_xfer_run() - carry out @nr moves, all of them, and wait
 *
 * Memory to block computes the checksum and submits bios, in the order given but for what
 * is shared and has to wait for pages to be copied to;
 * block to memory reads and verifies; memory to memory goes through a dmaengine
 * memcpy channel if there is one, by machine-check-safe CPU copy otherwise;
 * block to block is staged in pages of its own. Many are in flight at a time.
 * Process context, sleeps, no locks held. Each x->err tells how it ended; byte
 * counters of both tiers are updated here.
 */
void kvt_xfer_run(struct kvt_xfer *x, u32 nr);

/*
 * A move from memory to a block tier step by step, for who has to write in a certain
 * order: prepare() computes the checksum, and tells whether there is anything to write;
 * start() submits, unless x->err is set; end() waits for that, if it was done. What is shared
 * is written by write_shared() in the place of the two, which waits, and says -EAGAIN if what
 * it has written has another checksum by now: the record is to be given up.
 */
void kvt_xfer_write_prepare(struct kvt_xfer *x);
void kvt_xfer_write_start(struct kvt_xfer *x);
void kvt_xfer_write_end(struct kvt_xfer *x);
void kvt_xfer_write_shared(struct kvt_xfer *x);
int kvt_xfer_init(void);
void kvt_xfer_exit(void);
bool kvt_xfer_has_dmaengine(void);
u64 kvt_xfer_moves_dmaengine(void);
u64 kvt_xfer_moves_cpu(void);

/*
 * kvt_pages_scrub() - zero @nr pages of a memory tier from @page on, but bad ones
 * Return: whether there were bad ones. May sleep.
 */
bool kvt_pages_scrub(struct kvt_tier *t, u32 page, u32 nr);

/*
 * kvt_slot_pad() - clear what a slot has behind its block's @bytes, from @page of a memory tier on
 *
 * Whole pages are shown by mappings and exported buffers, and written to disks: what was in that
 * place before, maybe of another block, is not to be seen by who is given this one. The slot is
 * nobody's but the caller's to write to; in an arena whoever may write there still may. Any context.
 */
void kvt_slot_pad(struct kvt_tier *t, u32 page, u64 bytes);

/*
 * kvt_page_readable() - can the processor read all of a page of a memory tier
 *
 * What cannot be read is reported. May sleep, no spinlock held.
 */
bool kvt_page_readable(struct kvt_tier *t, u32 page);

/* Pages from @page on, at most @max, that are contiguous: pieces are. */
static inline u32 kvt_page_run(u32 page, u32 max)
{
	return min(max, KVT_PIECE_PAGES - page % KVT_PIECE_PAGES);
}

/*
 * kvt_dma_copy() - copy pages between memory tiers by a DMA engine
 *
 * Process context, sleeps. 0; -ETIMEDOUT as in struct kvt_xfer; anything else:
 * nothing is in flight any more, and the caller copies all of it himself.
 */
int kvt_dma_copy(struct kvt_tier *src, u32 src_page, struct kvt_tier *dst, u32 dst_page,
		 u32 nr);
int kvt_dma_init(void);
void kvt_dma_exit(void);
bool kvt_dma_available(void);

/* Was an engine given up: it may refer to pages of either side of its last copies. */
bool kvt_dma_given_up(void);

#endif /* KVT_TIER_H */
