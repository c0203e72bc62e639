// SPDX-License-Identifier: GPL-2.0
/*
 * Memory tiers made of pages from the page allocator: "node" takes them from one
 * NUMA node (CXL memory onlined as System RAM, say), "dram" from all nodes that have
 * processors.
 *
 * A piece is one contiguous 2 MiB allocation, split so that each 4 KiB page has a
 * reference count of its own: one reference is ours, one each page-table entry's,
 * and whatever is beyond is somebody else's. They are mapped as 4 KiB entries only,
 * because a huge entry of ordinary pages leaks references in a mixed mapping.
 *
 * Pages are there from attach to detach, but for pieces that are in no region and were
 * given back to the system meanwhile (kvt_shrink.c); of a tier that is charged to cgroups
 * (kvt_charge.c) only while the piece is in a region. Pages that still have a foreign
 * reference when they are given back live on until that goes.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/nodemask.h>
#include <linux/nospec.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "kvt_pages.h"
#include "tier.h"

#define KVT_NODE_BATCH	32u	/* page pointers on the stack */

/**
 * struct kvt_node - a tier's pages
 * @nr:    pieces there are
 * @turn:  node that the last one came from
 * @nodes: that they come from
 * @frame: of each, its number among the 2 MiB frames of the machine's memory, and one more;
 *         0: given back. Half of what a pointer takes: a tier may have millions
 */
struct kvt_node {
	u32 nr;
	int turn;
	nodemask_t nodes;
	u32 frame[] __counted_by(nr);
};

/* First page of a piece, NULL: given back. */
static struct page *kvt_node_first(const struct kvt_node *n, u32 piece)
{
	u32 frame = READ_ONCE(n->frame[piece]);

	return frame ? pfn_to_page((unsigned long)(frame - 1) * KVT_PIECE_PAGES) : NULL;
}

/* A piece is aligned as the kernel's allocator aligns what it has in one. */
static bool kvt_node_set(struct kvt_node *n, u32 piece, struct page *first)
{
	u32 frame = first ? page_to_pfn(first) / KVT_PIECE_PAGES + 1 : 0;

	WRITE_ONCE(n->frame[piece], frame);
	return first;
}

static void kvt_node_free(struct kvt_node *n)
{
	u32 i;

	for (i = 0; i < n->nr; i++) {
		struct page *first = kvt_node_first(n, i);

		if (first)
			kvt_pages_free(first);
		cond_resched();
	}
	kvfree(n);
}

/*
 * One piece from any of @nodes, turn by turn. @gfp: how hard others may be pushed for it.
 */
static struct page *kvt_node_piece(const nodemask_t *nodes, int *turn, gfp_t gfp)
{
	struct page *page;
	int tries;

	for (tries = nodes_weight(*nodes); tries > 0; tries--) {
		*turn = next_node_in(*turn, *nodes);
		/* Asked of a node that has gone, the kernel dumps its stack each time. */
		if (!node_state(*turn, N_MEMORY))
			continue;
		page = kvt_pages_alloc(*turn, gfp | __GFP_NOWARN | __GFP_ZERO | __GFP_THISNODE);
		if (page)
			return page;
	}
	return NULL;
}

/* All of its pages, from the beginning. */
static int kvt_node_fill(struct kvt_node *n)
{
	u32 i;

	for (i = 0; i < n->nr; i++) {
		/* What is not to be had without pushing others out hard is not taken. */
		if (!kvt_node_set(n, i, kvt_node_piece(&n->nodes, &n->turn,
						       GFP_KERNEL | __GFP_NORETRY)))
			return -ENOMEM;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

static int kvt_node_attach_from(struct kvt_tier *t, const nodemask_t *nodes)
{
	u64 pieces = t->args.capacity_bytes >> KVT_PIECE_SHIFT;
	bool charge = t->args.flags & KVTIER_ATTACH_CHARGE;
	struct kvt_node *n;
	int err;

	BUILD_BUG_ON(PAGE_SHIFT != KVT_PAGE_SHIFT);
	if (!pieces || pieces > KVT_TIER_PIECES_MAX)
		return -EINVAL;
	/* What is charged comes when it is needed. More than there is never will. */
	if (pieces * KVT_PIECE_PAGES > (charge ? totalram_pages() : si_mem_available()))
		return -ENOMEM;
	n = kvzalloc(struct_size(n, frame, pieces), GFP_KERNEL);
	if (!n)
		return -ENOMEM;
	n->nr = pieces;
	n->nodes = *nodes;
	n->turn = MAX_NUMNODES - 1;
	err = charge ? 0 : kvt_node_fill(n);
	if (err) {
		kvt_node_free(n);
		return err;
	}
	t->priv = n;
	t->nr_pieces = n->nr;
	t->frame_bytes = (u64)n->nr * sizeof(n->frame[0]);
	t->capacity_bytes = (u64)n->nr << KVT_PIECE_SHIFT;
	t->content = charge ? KVT_PIECE_UNKNOWN : KVT_PIECE_CLEAN;
	return 0;
}

static int kvt_dram_attach(struct kvt_tier *t)
{
	nodemask_t nodes;

	nodes_and(nodes, node_states[N_CPU], node_states[N_MEMORY]);
	return kvt_node_attach_from(t, &nodes);
}

static int kvt_node_attach(struct kvt_tier *t)
{
	nodemask_t nodes = NODE_MASK_NONE;
	int node = t->args.node;

	if (node < 0)
		return -EINVAL;
	if (node >= MAX_NUMNODES)
		return -ENODEV;
	node = array_index_nospec(node, MAX_NUMNODES);
	if (!node_state(node, N_MEMORY))
		return -ENODEV;
	node_set(node, nodes);
	return kvt_node_attach_from(t, &nodes);
}

static void kvt_node_detach(struct kvt_tier *t)
{
	kvt_node_free(t->priv);
	t->priv = NULL;
}

static struct page *kvt_node_page(struct kvt_tier *t, u32 page)
{
	struct kvt_node *n = t->priv;

	return kvt_node_first(n, page / KVT_PIECE_PAGES) + page % KVT_PIECE_PAGES;
}

/* No region has it, or one that is about to end, so nobody looks at its pages. */
static struct page *kvt_node_leave(struct kvt_tier *t, u32 piece)
{
	struct kvt_node *n = t->priv;
	struct page *first = kvt_node_first(n, piece);

	kvt_node_set(n, piece, NULL);
	return first;
}

/* For a region, and charged to its owner's cgroup. Several may come at a time. */
static int kvt_node_come_charged(struct kvt_node *n, u32 piece)
{
	int turn = READ_ONCE(n->turn);
	struct page *first;

	first = kvt_node_piece(&n->nodes, &turn, GFP_KERNEL_ACCOUNT | __GFP_NORETRY);
	WRITE_ONCE(n->turn, turn);
	return kvt_node_set(n, piece, first) ? 0 : -ENOMEM;
}

static int kvt_node_come(struct kvt_tier *t, u32 piece, bool charge)
{
	/*
	 * kswapd is not to be woken: it would go on asking, for this piece too. Less than
	 * RETRY_MAYFAIL would not do: what tries but once moves pages out of the way of
	 * movable ones only.
	 */
	const gfp_t gfp = (GFP_KERNEL & ~__GFP_KSWAPD_RECLAIM) | __GFP_RETRY_MAYFAIL;
	struct kvt_node *n = t->priv;
	struct page *first;

	if (charge)
		return kvt_node_come_charged(n, piece);
	first = kvt_node_piece(&n->nodes, &n->turn, 0);
	first = first ?: kvt_node_piece(&n->nodes, &n->turn, gfp);
	return kvt_node_set(n, piece, first) ? 0 : -ENOMEM;
}

static u32 kvt_node_page_of(struct kvt_tier *t, unsigned long pfn)
{
	struct kvt_node *n = t->priv;
	const struct page *first;
	unsigned long from;
	u32 i;

	for (i = 0; i < n->nr; i++) {
		first = kvt_node_first(n, i);
		from = first ? page_to_pfn(first) : 0;
		if (first && pfn >= from && pfn - from < KVT_PIECE_PAGES)
			return i * KVT_PIECE_PAGES + (u32)(pfn - from);
		cond_resched();
	}
	return KVT_NO_PAGE;
}

/* Good pages from @page on, up to the first poisoned one. */
static u32 kvt_node_gather(struct kvt_tier *t, u32 page, u32 nr, struct page **pages)
{
	u32 i;

	for (i = 0; i < min(nr, KVT_NODE_BATCH); i++) {
		if (kvt_tier_page_bad(t, page + i))
			break;
		pages[i] = kvt_node_page(t, page + i);
	}
	return i;
}

static vm_fault_t kvt_node_insert(struct kvt_tier *t, struct vm_area_struct *vma,
				  unsigned long addr, u32 page, u32 nr, bool write)
{
	struct page *pages[KVT_NODE_BATCH];
	unsigned long left;
	u32 n;
	int err;

	while (nr) {
		n = kvt_node_gather(t, page, nr, pages);
		left = n;
		err = n ? vm_insert_pages(vma, addr, pages, &left) : 0;
		if (err == -EBUSY)
			left--;		/* the one it stopped at is mapped: go on behind it */
		else if (err == -EFAULT)
			return VM_FAULT_NOPAGE;	/* the table has gone again: once more */
		else if (err)
			return err == -ENOMEM ? VM_FAULT_OOM : VM_FAULT_SIGBUS;
		n = n ? n - left : 1;
		nr -= n;
		page += n;
		addr += (unsigned long)n << PAGE_SHIFT;
	}
	return VM_FAULT_NOPAGE;
}

const struct kvt_tier_ops kvt_tier_dram_ops = {
	.name = "dram",
	.is_mem = true,
	.attach = kvt_dram_attach,
	.detach = kvt_node_detach,
	.page = kvt_node_page,
	.insert = kvt_node_insert,
	.leave = kvt_node_leave,
	.come = kvt_node_come,
	.page_of = kvt_node_page_of,
};

const struct kvt_tier_ops kvt_tier_node_ops = {
	.name = "node",
	.is_mem = true,
	.attach = kvt_node_attach,
	.detach = kvt_node_detach,
	.page = kvt_node_page,
	.insert = kvt_node_insert,
	.leave = kvt_node_leave,
	.come = kvt_node_come,
	.page_of = kvt_node_page_of,
};
