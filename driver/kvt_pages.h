/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pages that the module has from the kernel: each that it takes is counted, and each that it
 * gives back.
 *
 * What searches memory for leaks (kmemleak) knows objects, not pages: of a page that nobody gives
 * back nothing would be seen until the host has none. What is missing when the module goes is said
 * with a warning.
 *
 * Lock: none. Contexts: those of the allocator with the same flags; pages are given back in any
 * but NMI.
 */
#ifndef KVT_PAGES_H
#define KVT_PAGES_H

#include <linux/gfp_types.h>
#include <linux/mm_types.h>

struct page *kvt_page_alloc(gfp_t gfp);
void kvt_page_free(struct page *page);
struct page *kvt_pages_alloc(int node, gfp_t gfp);
void kvt_pages_free(struct page *first);
void kvt_pages_exit(void);

#endif
