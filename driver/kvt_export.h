/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the pool does for buffers that are exported: see kvt_dmabuf.c.
 */
#ifndef KVT_EXPORT_H
#define KVT_EXPORT_H

#include <linux/types.h>

struct kvt_pool;

#ifdef CONFIG_DMA_SHARED_BUFFER
bool kvt_exports_look(struct kvt_pool *p);
#else
static inline bool kvt_exports_look(struct kvt_pool *p)
{
	return false;
}
#endif

#endif /* KVT_EXPORT_H */
