// SPDX-License-Identifier: GPL-2.0
/*
 * Pages that the module has from the kernel; see kvt_pages.h for the model.
 *
 * Invariant: kvt_pages_taken is how many the module has. Pages of a piece are the callers' one by
 * one, as a mapping or an engine may hold some of them for longer than the module.
 */
#include <linux/bug.h>
#include <linux/gfp.h>
#include <linux/mm.h>

#include "core/kvt_mem.h"
#include "kvt_pages.h"

#define KVT_PIECE_ORDER	(KVT_PIECE_SHIFT - PAGE_SHIFT)

static atomic_long_t kvt_pages_taken;

/**
 * kvt_page_alloc() - a page
 * @gfp: as for alloc_page()
 * Return: for kvt_page_free(), or NULL.
 */
struct page *kvt_page_alloc(gfp_t gfp)
{
	struct page *page = alloc_page(gfp);

	if (page)
		atomic_long_inc(&kvt_pages_taken);
	return page;
}

/**
 * kvt_page_free() - give one back
 * @page: of kvt_page_alloc()
 */
void kvt_page_free(struct page *page)
{
	atomic_long_dec(&kvt_pages_taken);
	__free_page(page);
}

/**
 * kvt_pages_alloc() - pages in a row, KVT_PIECE_PAGES of them
 * @node: that they are asked of
 * @gfp:  as for alloc_pages_node()
 * Return: the first, for kvt_pages_free(), or NULL. Each page has a reference of its own.
 */
struct page *kvt_pages_alloc(int node, gfp_t gfp)
{
	struct page *first = alloc_pages_node(node, gfp, KVT_PIECE_ORDER);

	if (!first)
		return NULL;
	split_page(first, KVT_PIECE_ORDER);
	atomic_long_add(KVT_PIECE_PAGES, &kvt_pages_taken);
	return first;
}

/**
 * kvt_pages_free() - give them back
 * @first: of kvt_pages_alloc()
 */
void kvt_pages_free(struct page *first)
{
	u32 i;

	for (i = 0; i < KVT_PIECE_PAGES; i++)
		kvt_page_free(first + i);
}

/* The module goes: nothing of it is in use any more. */
void kvt_pages_exit(void)
{
	long left = atomic_long_read(&kvt_pages_taken);

	WARN(left, "kvtier: %ld pages have not been given back\n", left);
}
