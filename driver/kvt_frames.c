// SPDX-License-Identifier: GPL-2.0
/*
 * Bad page frames that the kernel found by itself.
 *
 * memory_failure() tells the driver of a dax device which of its pages has failed. Whose a page
 * of the page allocator is it does not know: it marks the page, says in a tracepoint
 * (memory_failure_event) what became of it, and nobody is told. That is listened to here; each
 * pool's worker looks, several times a second, whether a frame is one of its memory tiers', and
 * then does what it does with any bad page (kvt_poison.c). Until then, and on a kernel without that
 * tracepoint, a page is found to be bad when somebody comes upon it.
 *
 * The tracepoint is found by its name: modules may listen to those of the kernel, but have no
 * other way to them.
 *
 * Invariants: @told counts all frames, the last KVT_FRAMES of them are kept. Who is farther
 * behind than that looks at all of his pages.
 *
 * Lock: kvt_frames_lock, a leaf. Raw: a tracepoint is no place to sleep.
 */
#include <linux/tracepoint.h>

#include "kvt_frames.h"
#include "kvt_internal.h"
#include "kvt_test.h"

#define KVT_FRAMES	64u

static DEFINE_RAW_SPINLOCK(kvt_frames_lock);
static u32 kvt_frames_told;
static unsigned long kvt_frames_pfn[KVT_FRAMES];
static struct tracepoint *kvt_frames_tp;

/* As the tracepoint's arguments are. */
static void kvt_frames_hear(void *data, unsigned long pfn, int type, int result)
{
	unsigned long flags;

	if (kvt_test_deaf())
		return;
	raw_spin_lock_irqsave(&kvt_frames_lock, flags);
	kvt_frames_pfn[kvt_frames_told % KVT_FRAMES] = pfn;
	WRITE_ONCE(kvt_frames_told, kvt_frames_told + 1);
	raw_spin_unlock_irqrestore(&kvt_frames_lock, flags);
}

static void kvt_frames_match(struct tracepoint *tp, void *found)
{
	if (!strcmp(tp->name, "memory_failure_event"))
		*(struct tracepoint **)found = tp;
}

/* Module init. Without it all goes on, but later: no error. */
void kvt_frames_init(void)
{
	struct tracepoint *tp = NULL;

	for_each_kernel_tracepoint(kvt_frames_match, &tp);
	if (tp && !tracepoint_probe_register(tp, kvt_frames_hear, NULL))
		kvt_frames_tp = tp;
}

/* Module exit: nobody is in it any more on return. */
void kvt_frames_exit(void)
{
	if (!kvt_frames_tp)
		return;
	tracepoint_probe_unregister(kvt_frames_tp, kvt_frames_hear, NULL);
	tracepoint_synchronize_unregister();
}

/* A pool begins: none of the frames so far was given to it. */
void kvt_frames_begin(struct kvt_pool *p)
{
	p->frames_heard = READ_ONCE(kvt_frames_told);
}

/* Those after @heard, which is brought up to date. How many; more than KVT_FRAMES: which is lost. */
static u32 kvt_frames_take(u32 *heard, unsigned long *pfn)
{
	u32 nr, i;

	raw_spin_lock_irq(&kvt_frames_lock);
	nr = kvt_frames_told - *heard;
	for (i = 0; i < min(nr, KVT_FRAMES); i++)
		pfn[i] = kvt_frames_pfn[(kvt_frames_told - 1 - i) % KVT_FRAMES];
	*heard = kvt_frames_told;
	raw_spin_unlock_irq(&kvt_frames_lock);
	return nr;
}

static void kvt_frames_all(struct kvt_tier *t)
{
	u32 piece;

	for (piece = 0; piece < t->nr_pieces; piece++) {
		kvt_poison_told(t, piece * KVT_PIECE_PAGES, KVT_PIECE_PAGES);
		cond_resched();
	}
}

static void kvt_frames_some(struct kvt_tier *t, const unsigned long *pfn, u32 nr)
{
	u32 i, page;

	for (i = 0; i < nr; i++) {
		page = t->ops->page_of(t, pfn[i]);
		if (page != KVT_NO_PAGE)
			kvt_poison_told(t, page, 1);
	}
}

/**
 * kvt_frames_look() - see whether frames that have become bad are a pool's
 * @p: pool; srcu held, may sleep. Its worker's
 */
void kvt_frames_look(struct kvt_pool *p)
{
	unsigned long pfn[KVT_FRAMES];
	struct kvt_tier *t[KVT_TIERS];
	u32 nr_tiers, nr;

	if (likely(p->frames_heard == READ_ONCE(kvt_frames_told)))
		return;
	nr = kvt_frames_take(&p->frames_heard, pfn);
	nr_tiers = kvt_tier_snapshot(p, t, true);
	while (nr_tiers--) {
		if (!t[nr_tiers]->ops->page_of)
			continue;
		if (nr > KVT_FRAMES)
			kvt_frames_all(t[nr_tiers]);
		else
			kvt_frames_some(t[nr_tiers], pfn, nr);
	}
}
