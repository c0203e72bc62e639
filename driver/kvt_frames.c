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
 * Invariants: kvt_frames_told counts all frames, the last KVT_FRAMES of them are kept. Who is
 * farther behind than that looks at all of his pages, some at a time.
 *
 * Lock: kvt_frames_lock, a leaf. Raw: a tracepoint is no place to sleep.
 */
#include "compat/kvt_frames_compat.h"
#include "kvt_internal.h"
#include "kvt_test.h"

#define KVT_FRAMES		64u
#define KVT_FRAMES_PIECES	1024u	/* seen to in one go */

static DEFINE_RAW_SPINLOCK(kvt_frames_lock);
static u32 kvt_frames_told;
static unsigned long kvt_frames_pfn[KVT_FRAMES];
u32 kvt_frames_heard(void)
{
	return READ_ONCE(kvt_frames_told);
}

#ifdef KVT_HAVE_FRAMES_TRACEPOINT
static struct tracepoint *kvt_frames_tp;

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

	check_trace_callback_type_memory_failure_event(kvt_frames_hear);
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
#else
void kvt_frames_init(void)
{
}

void kvt_frames_exit(void)
{
}
#endif

/* A pool begins: none of the frames so far was given to it. */
void kvt_frames_begin(struct kvt_pool *p)
{
	p->frames.heard = kvt_frames_heard();
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

static void kvt_frames_some(struct kvt_tier *t, const unsigned long *pfn, u32 nr)
{
	u32 i, page, from = KVT_NO_PAGE, last = 0;

	for (i = 0; i < nr; i++) {
		page = t->ops->page_of(t, pfn[i]);
		if (page == KVT_NO_PAGE)
			continue;
		/* Slots are looked at from now on, those too that are not there just now. */
		WRITE_ONCE(t->poisoned, true);
		if (!kvt_poison_told(t, page, 1))
			continue;
		from = min(from, page);
		last = max(last, page);
	}
	if (from != KVT_NO_PAGE)
		kvt_poison_unmap(t, from, last - from + 1);
}

/* Up to @max pieces of a tier. How many were looked at. */
static u32 kvt_frames_stretch(struct kvt_tier *t, u32 first, u32 max)
{
	u32 nr = min(max, t->nr_pieces - min(first, t->nr_pieces)), i;
	bool any = false;

	WRITE_ONCE(t->poisoned, true);
	for (i = first; i < first + nr; i++) {
		any |= kvt_poison_told(t, i * KVT_PIECE_PAGES, KVT_PIECE_PAGES);
		cond_resched();
	}
	if (any)
		kvt_poison_unmap(t, first * KVT_PIECE_PAGES, nr * KVT_PIECE_PAGES);
	return nr;
}

/* Some of all pages, and where to go on. */
static void kvt_frames_all(struct kvt_pool *p)
{
	struct kvt_frames *f = &p->frames;
	u32 left = KVT_FRAMES_PIECES, nr;
	struct kvt_tier *t;

	while (left && f->tier < KVT_TIERS) {
		t = kvt_tier_at(p, f->tier);
		nr = t && t->ops->page_of ? kvt_frames_stretch(t, f->piece, left) : 0;
		left -= nr;
		f->piece += nr;
		if (left) {
			f->tier++;
			f->piece = 0;
		}
	}
	if (f->tier < KVT_TIERS)
		return;
	f->all = f->again;
	f->again = false;
	f->tier = 0;
	f->piece = 0;
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

	if (unlikely(p->frames.all))
		kvt_frames_all(p);
	if (likely(p->frames.heard == kvt_frames_heard()))
		return;
	nr = kvt_frames_take(&p->frames.heard, pfn);
	if (nr > KVT_FRAMES) {
		p->frames.again |= p->frames.all;
		p->frames.all = true;
	}
	nr_tiers = kvt_tier_snapshot(p, t, true);
	while (nr_tiers--) {
		if (t[nr_tiers]->ops->page_of)
			kvt_frames_some(t[nr_tiers], pfn, min(nr, KVT_FRAMES));
	}
}
