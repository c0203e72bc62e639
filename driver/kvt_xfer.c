// SPDX-License-Identifier: GPL-2.0
/*
 * Moves of blocks between tiers.
 *
 *   memory -> block   checksum first, then bios on the pages; where somebody may still
 *                     write to these, both are of a private copy
 *   block  -> memory  bios on the pages, then the checksum must be right
 *   memory -> memory  DMA engine, else the processor, in a way that survives poison
 *   block  -> block   through a stage of ordinary pages, a round at a time
 *
 * Block transfers are all started before any is waited for; what is done by the
 * caller's own processor is done while they run.
 *
 * Memory is read by copies that a machine check ends with an error, the checksum's reading
 * included, where the processor has such copies.
 *
 * The checksum is the one of the on-media format, struct kvt_payload_sum: damage within
 * any one 64 KiB of a block is always found.
 */
#include <linux/blkdev.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/page-flags.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "core/kvt_format.h"
#include "kvt_pages.h"
#include "kvt_test.h"
#include "tier.h"

#define KVT_STAGE_PAGES		2048u	/* at most, for one round, or copies in flight */
#define KVT_CPU_PAGES		16u	/* between chances to reschedule */
#define KVT_SOME_BYTES		512u	/* on the stack; a part of a page */

static atomic64_t kvt_moves_dma;
static atomic64_t kvt_moves_cpu;

static u32 kvt_xfer_pages(const struct kvt_xfer *x)
{
	return x->bytes >> PAGE_SHIFT;
}

static void *kvt_page_addr(struct kvt_tier *t, u32 page)
{
	return page_address(t->ops->page(t, page));
}

static bool kvt_pages_poisoned(struct kvt_tier *t, u32 page, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		if (kvt_tier_page_bad(t, page + i))
			return true;
	}
	return false;
}

/*
 * Copy from tier memory. A processor that finds it bad does not end the system here, but
 * the copy: the page is reported then.
 */
static int kvt_copy_mc(struct kvt_tier *t, u32 page, u32 skip, void *to, u32 bytes)
{
	unsigned long left = bytes;

	if (!kvt_test_copy_fails())
		left = copy_mc_to_kernel(to, kvt_page_addr(t, page) + skip, bytes);
	if (!left)
		return 0;
	kvt_tier_hit_poison(t, page + ((skip + bytes - (u32)left) >> PAGE_SHIFT));
	return -EHWPOISON;
}

/* Can this processor end such a copy: what cannot is not worth the detour. */
static bool kvt_copy_mc_helps(void)
{
#ifdef CONFIG_X86
	if (!boot_cpu_has(X86_FEATURE_ERMS))
		return kvt_test_copies_fail();
#endif
	return IS_ENABLED(CONFIG_ARCH_HAS_COPY_MC);
}

/* Over memory that may be bad: of a copy, a bit at a time. */
static int kvt_sum_copied(struct kvt_payload_sum *sum, struct kvt_tier *t, u32 page, u32 bytes)
{
	u8 some[KVT_SOME_BYTES];
	u32 at;

	for (at = 0; at < bytes; at += sizeof(some)) {
		if (kvt_copy_mc(t, page, at, some, sizeof(some)))
			return -EHWPOISON;
		kvt_payload_sum_add(sum, some, sizeof(some));
	}
	return 0;
}

/* 0 or -EHWPOISON. */
static int kvt_pages_sum(struct kvt_tier *t, u32 page, u32 nr, u32 *out)
{
	bool careful = kvt_copy_mc_helps();
	struct kvt_payload_sum sum;
	u32 run;

	kvt_payload_sum_start(&sum);
	for (; nr; nr -= run, page += run) {
		run = min(kvt_page_run(page, nr), KVT_CPU_PAGES);
		if (!careful)
			kvt_payload_sum_add(&sum, kvt_page_addr(t, page), run << PAGE_SHIFT);
		else if (kvt_sum_copied(&sum, t, page, run << PAGE_SHIFT))
			return -EHWPOISON;
		cond_resched();
	}
	*out = kvt_payload_sum_end(&sum);
	return 0;
}

/* See tier.h. */
bool kvt_page_readable(struct kvt_tier *t, u32 page)
{
	u8 some[KVT_SOME_BYTES];
	u32 at;

	for (at = 0; at < PAGE_SIZE; at += sizeof(some)) {
		if (kvt_copy_mc(t, page, at, some, sizeof(some)))
			return false;
	}
	return true;
}

/* See tier.h. */
bool kvt_pages_scrub(struct kvt_tier *t, u32 page, u32 nr)
{
	bool bad = false;

	for (; nr; nr--, page++) {
		if (kvt_tier_page_bad(t, page))
			bad = true;
		else
			clear_page(kvt_page_addr(t, page));
		if (!(nr % KVT_CPU_PAGES))
			cond_resched();
	}
	return bad;
}

/* See tier.h. */
void kvt_slot_pad(struct kvt_tier *t, u32 page, u64 bytes)
{
	size_t from = offset_in_page(bytes);

	BUILD_BUG_ON(KVTIER_SLOT_ALIGN != PAGE_SIZE);
	page += (u32)(bytes >> PAGE_SHIFT);
	/* A bad page is found out by whoever looks at the block next. */
	if (from && !kvt_tier_page_bad(t, page))
		memset(kvt_page_addr(t, page) + from, 0, PAGE_SIZE - from);
}

/* By side, not by tier: the cleaner's moves have the same one on both. */
static void kvt_xfer_failed(struct kvt_xfer *x, bool src, int err)
{
	x->err = err;
	/* An engine that does not finish says nothing about the bytes. */
	x->src_bad = src && err != -ETIMEDOUT;
	kvt_tier_fault(src ? x->src : x->dst, err, !src);
}

static void kvt_xfer_count(struct kvt_xfer *x)
{
	if (x->err)
		return;
	atomic64_add(x->bytes, &x->src->count.read_bytes);
	atomic64_add(x->bytes, &x->dst->count.write_bytes);
	if (x->dma && !x->src->ops->by_cpu && !x->dst->ops->by_cpu) {
		atomic64_add(x->bytes, &x->src->count.dma_bytes);
		atomic64_add(x->bytes, &x->dst->count.dma_bytes);
	}
}

/* Any context. */
static void kvt_xfer_io_done(struct kvt_bio_xfer *bio, int err)
{
	struct kvt_xfer *x = container_of(bio, struct kvt_xfer, bio);

	x->err = err ? -EIO : 0;
	x->end_ns = ktime_get_ns();
	complete(&x->done);
}

static void kvt_xfer_submit(struct kvt_xfer *x, struct kvt_tier *block)
{
	x->bio.done = kvt_xfer_io_done;
	init_completion(&x->done);
	x->start_ns = ktime_get_ns();
	block->ops->submit(block, &x->bio);
}

static void kvt_xfer_wait_io(struct kvt_xfer *x)
{
	wait_for_completion_io(&x->done);
}

/*
 * Start a transfer between a block tier and memory. Memory known to be poisoned is
 * not offered to a device; what is found only now takes the machine check's course.
 */
static bool kvt_xfer_prepare(struct kvt_xfer *x)
{
	bool write = x->src->ops->is_mem;
	struct kvt_tier *mem = write ? x->src : x->dst;
	u32 page = write ? x->src_addr : x->dst_addr;

	if (kvt_pages_poisoned(mem, page, kvt_xfer_pages(x))) {
		kvt_xfer_failed(x, write, -EHWPOISON);
		return false;
	}
	if (write && kvt_pages_sum(mem, page, kvt_xfer_pages(x), &x->csum)) {
		kvt_xfer_failed(x, true, -EHWPOISON);
		return false;
	}
	return true;
}

static void kvt_xfer_start(struct kvt_xfer *x)
{
	bool write = x->src->ops->is_mem;
	struct kvt_tier *mem = write ? x->src : x->dst;
	u32 page = write ? x->src_addr : x->dst_addr;

	x->dma = true;
	x->bio = (struct kvt_bio_xfer) {
		.mem = mem,
		.page = page,
		.nr_pages = kvt_xfer_pages(x),
		.unit = write ? x->dst_addr : x->src_addr,
		.write = write,
	};
	kvt_xfer_submit(x, write ? x->dst : x->src);
}

static void kvt_stage_put(struct kvt_stage *s)
{
	while (s->nr)
		kvt_page_free(s->pages[--s->nr]);
	kvfree(s->pages);
	s->pages = NULL;
}

/* As many pages as there are to be had, up to @most. Whether there are at least @least. */
static bool kvt_stage_get(struct kvt_stage *s, u32 most, u32 least)
{
	gfp_t gfp = GFP_NOIO | __GFP_NOWARN;

	s->nr = 0;
	s->pages = kvmalloc_array(most, sizeof(*s->pages), gfp);
	if (!s->pages)
		return false;
	for (; s->nr < most; s->nr++) {
		s->pages[s->nr] = kvt_page_alloc(gfp | (s->nr ? __GFP_NORETRY : 0));
		if (!s->pages[s->nr])
			break;
	}
	if (s->nr >= least)
		return true;
	kvt_stage_put(s);
	return false;
}

/**
 * struct kvt_read_span - reads from one tier that were in flight together
 * @tier:     from where, NULL: none yet
 * @bytes:    how much
 * @start_ns: when the first was started
 * @end_ns:   when the last ended
 */
struct kvt_read_span {
	struct kvt_tier *tier;
	u64 bytes;
	u64 start_ns;
	u64 end_ns;
};

/* Take a sample and start over. */
static void kvt_span_end(struct kvt_read_span *s)
{
	if (s->tier)
		kvt_cost_sample(&s->tier->read_cost, s->bytes, s->start_ns, s->end_ns);
	s->tier = NULL;
}

static void kvt_span_add(struct kvt_read_span *s, const struct kvt_xfer *x)
{
	if (s->tier != x->src) {
		kvt_span_end(s);
		*s = (struct kvt_read_span) {
			.tier = x->src,
			.start_ns = x->start_ns,
			.end_ns = x->end_ns,
		};
	}
	s->bytes += x->bytes;
	s->end_ns = max(s->end_ns, x->end_ns);
}

static void kvt_xfer_finish(struct kvt_xfer *x, struct kvt_read_span *span)
{
	bool read = x->dst->ops->is_mem;
	u32 csum;

	if (x->err == -EHWPOISON)
		return;
	kvt_xfer_wait_io(x);
	kvt_stage_put(&x->stage);
	if (x->err) {
		kvt_xfer_failed(x, read, x->err);
		return;
	}
	if (!read)
		return;
	kvt_span_add(span, x);
	if (kvt_pages_sum(x->dst, x->dst_addr, kvt_xfer_pages(x), &csum))
		kvt_xfer_failed(x, false, -EHWPOISON);
	else if (csum != x->csum)
		kvt_xfer_failed(x, true, -EBADMSG);
}

/* By the processor. Poison in the source is an error here, not the end. */
static int kvt_copy_cpu(const struct kvt_xfer *x)
{
	u32 nr = kvt_xfer_pages(x), at, run;

	for (at = 0; at < nr; at += run) {
		u32 from = x->src_addr + at, to = x->dst_addr + at;

		run = min(kvt_page_run(from, nr - at), kvt_page_run(to, nr - at));
		run = min(run, KVT_CPU_PAGES);
		if (kvt_copy_mc(x->src, from, 0, kvt_page_addr(x->dst, to), run << PAGE_SHIFT))
			return -EHWPOISON;
		cond_resched();
	}
	return 0;
}

static void kvt_xfer_mem(struct kvt_xfer *x)
{
	u32 nr = kvt_xfer_pages(x);
	int err;

	if (kvt_pages_poisoned(x->src, x->src_addr, nr)) {
		kvt_xfer_failed(x, true, -EHWPOISON);
		return;
	}
	err = kvt_dma_copy(x->src, x->src_addr, x->dst, x->dst_addr, nr);
	if (!err) {
		x->dma = true;
		atomic64_inc(&kvt_moves_dma);
		return;
	}
	if (err != -ETIMEDOUT) {
		err = kvt_copy_cpu(x);
		atomic64_inc(&kvt_moves_cpu);
	}
	if (err)
		kvt_xfer_failed(x, true, err);
}

static int kvt_stage_io(struct kvt_xfer *x, u32 nr, u32 at, bool write)
{
	struct kvt_tier *t = write ? x->dst : x->src;

	x->bio = (struct kvt_bio_xfer) {
		.pages = x->stage.pages,
		.nr_pages = nr,
		.unit = (write ? x->dst_addr : x->src_addr) +
			(at << PAGE_SHIFT) / t->unit_bytes,
		.write = write,
	};
	kvt_xfer_submit(x, t);
	kvt_xfer_wait_io(x);
	if (x->err)
		kvt_xfer_failed(x, !write, x->err);
	return x->err;
}

/*
 * Bytes that turn out wrong at the end have been written by then; nobody is told
 * where.
 */
static void kvt_stage_copy(struct kvt_xfer *x)
{
	u32 nr = kvt_xfer_pages(x), at, n, i;
	struct kvt_payload_sum sum;

	kvt_payload_sum_start(&sum);
	for (at = 0; at < nr; at += n) {
		n = min(x->round_pages, nr - at);
		if (kvt_stage_io(x, n, at, false))
			return;
		for (i = 0; i < n; i++)
			kvt_payload_sum_add(&sum, page_address(x->stage.pages[i]), PAGE_SIZE);
		if (kvt_stage_io(x, n, at, true))
			return;
	}
	if (kvt_payload_sum_end(&sum) != x->csum)
		kvt_xfer_failed(x, true, -EBADMSG);
}

/*
 * Pages for a transfer in rounds: for all of it, or for whole units of both sides, since a
 * round must end where a unit does unless it is the last. Else @x->err is set.
 */
static bool kvt_stage_rounds(struct kvt_xfer *x)
{
	u32 unit_pages = max(x->src->unit_bytes, x->dst->unit_bytes) >> PAGE_SHIFT;
	u32 nr = kvt_xfer_pages(x);

	if (!kvt_stage_get(&x->stage, min(nr, KVT_STAGE_PAGES), min(nr, unit_pages))) {
		x->err = -ENOMEM;
		return false;
	}
	x->round_pages = x->stage.nr < nr ? round_down(x->stage.nr, unit_pages) : nr;
	return true;
}

static void kvt_xfer_block(struct kvt_xfer *x)
{
	if (!kvt_stage_rounds(x))
		return;
	kvt_stage_copy(x);
	kvt_stage_put(&x->stage);
}

/* Copy what others may be writing, and sum what was copied. 0 or -EHWPOISON. */
static int kvt_stage_fill(struct kvt_xfer *x, u32 at, u32 nr, struct kvt_payload_sum *sum)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		void *to = page_address(x->stage.pages[i]);

		if (kvt_copy_mc(x->src, x->src_addr + at + i, 0, to, PAGE_SIZE)) {
			kvt_xfer_failed(x, true, -EHWPOISON);
			return -EHWPOISON;
		}
		kvt_payload_sum_add(sum, to, PAGE_SIZE);
		if (!(i % KVT_CPU_PAGES))
			cond_resched();
	}
	return 0;
}

/* Write a private copy, a round at a time; @csum: of what was written. */
static void kvt_shared_rounds(struct kvt_xfer *x, u32 *csum)
{
	u32 nr = kvt_xfer_pages(x), at, n;
	struct kvt_payload_sum sum;

	if (!kvt_stage_rounds(x))
		return;
	kvt_payload_sum_start(&sum);
	for (at = 0; at < nr && !x->err; at += n) {
		n = min(x->round_pages, nr - at);
		if (!kvt_stage_fill(x, at, n, &sum))
			kvt_stage_io(x, n, at, true);
	}
	*csum = kvt_payload_sum_end(&sum);
	kvt_stage_put(&x->stage);
}

/* Start to write a private copy. Whether that is settled; if not there is no room for it. */
static bool kvt_shared_start(struct kvt_xfer *x, u32 *room_pages)
{
	u32 nr = kvt_xfer_pages(x);
	struct kvt_payload_sum sum;

	if (kvt_pages_poisoned(x->src, x->src_addr, nr)) {
		kvt_xfer_failed(x, true, -EHWPOISON);
		return true;
	}
	if (nr > *room_pages || !kvt_stage_get(&x->stage, nr, nr))
		return false;
	kvt_payload_sum_start(&sum);
	if (kvt_stage_fill(x, 0, nr, &sum)) {
		kvt_stage_put(&x->stage);
		return true;
	}
	*room_pages -= nr;
	x->csum = kvt_payload_sum_end(&sum);
	x->bio = (struct kvt_bio_xfer) {
		.pages = x->stage.pages,
		.nr_pages = nr,
		.unit = x->dst_addr,
		.write = true,
	};
	kvt_xfer_submit(x, x->dst);
	return true;
}

static bool kvt_xfer_mixed(const struct kvt_xfer *x)
{
	return x->src->ops->is_mem != x->dst->ops->is_mem;
}

static void kvt_xfer_reset(struct kvt_xfer *x)
{
	x->err = 0;
	x->src_bad = false;
	x->dma = false;
	x->later = false;
	x->stage = (struct kvt_stage) { 0 };
}

/* Start those between memory and blocks, as far as there is room for private copies. */
static void kvt_xfer_start_all(struct kvt_xfer *x, u32 nr, u32 *room_pages)
{
	struct blk_plug plug;
	u32 i;

	blk_start_plug(&plug);
	for (i = 0; i < nr; i++) {
		kvt_xfer_reset(&x[i]);
		if (!kvt_xfer_mixed(&x[i]))
			continue;
		if (x[i].shared)
			x[i].later = !kvt_shared_start(&x[i], room_pages);
		else if (kvt_xfer_prepare(&x[i]))
			kvt_xfer_start(&x[i]);
	}
	blk_finish_plug(&plug);
}

/* Those that had to wait for room take what others have given back. */
static void kvt_xfer_start_later(struct kvt_xfer *x, u32 nr, u32 *room_pages)
{
	u32 i;

	for (i = 0; i < nr && *room_pages; i++) {
		if (!x[i].later)
			continue;
		x[i].later = !kvt_shared_start(&x[i], room_pages);
		if (x[i].later)
			return;
	}
}

static void kvt_xfer_finish_all(struct kvt_xfer *x, u32 nr, u32 *room_pages)
{
	struct kvt_read_span span = {};
	u32 i, held;

	for (i = 0; i < nr; i++) {
		if (!kvt_xfer_mixed(&x[i]))
			continue;
		held = x[i].stage.nr;
		if (x[i].later)
			kvt_shared_rounds(&x[i], &x[i].csum);
		else
			kvt_xfer_finish(&x[i], &span);
		kvt_xfer_count(&x[i]);
		if (held) {
			*room_pages += held;
			kvt_xfer_start_later(x + i + 1, nr - i - 1, room_pages);
		}
	}
	kvt_span_end(&span);
}

/* See tier.h. */
void kvt_xfer_run(struct kvt_xfer *x, u32 nr)
{
	u32 room_pages = KVT_STAGE_PAGES, i;

	kvt_xfer_start_all(x, nr, &room_pages);
	for (i = 0; i < nr; i++) {
		if (kvt_xfer_mixed(&x[i]))
			continue;
		if (x[i].src->ops->is_mem)
			kvt_xfer_mem(&x[i]);
		else
			kvt_xfer_block(&x[i]);
		kvt_xfer_count(&x[i]);
	}
	kvt_xfer_finish_all(x, nr, &room_pages);
}

/* See tier.h, as the next three. */
void kvt_xfer_write_prepare(struct kvt_xfer *x)
{
	kvt_xfer_reset(x);
	kvt_xfer_prepare(x);
}

void kvt_xfer_write_start(struct kvt_xfer *x)
{
	if (!x->err)
		kvt_xfer_start(x);
}

void kvt_xfer_write_end(struct kvt_xfer *x)
{
	struct kvt_read_span span = {};

	if (!x->dma)
		return;
	kvt_xfer_finish(x, &span);
	kvt_xfer_count(x);
}

void kvt_xfer_write_shared(struct kvt_xfer *x)
{
	u32 csum;

	kvt_shared_rounds(x, &csum);
	/* Nobody's fault: somebody has written there since, as he may. */
	if (!x->err && csum != x->csum)
		x->err = -EAGAIN;
	kvt_xfer_count(x);
}

bool kvt_xfer_has_dmaengine(void)
{
	return kvt_dma_available();
}

u64 kvt_xfer_moves_dmaengine(void)
{
	return atomic64_read(&kvt_moves_dma);
}

u64 kvt_xfer_moves_cpu(void)
{
	return atomic64_read(&kvt_moves_cpu);
}

int kvt_xfer_init(void)
{
	return kvt_dma_init();
}

void kvt_xfer_exit(void)
{
	kvt_dma_exit();
}
