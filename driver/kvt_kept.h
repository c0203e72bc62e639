/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory that a namespace keeps from others: see kvt_kept.c.
 */
#ifndef KVT_KEPT_H
#define KVT_KEPT_H

#include <linux/types.h>

struct kvt_ns;
struct kvt_pool;

/* Of its own accord. */
enum kvt_kept_kind {
	KVT_KEPT_PINNED,	/* pinned, or held for sessions */
	KVT_KEPT_EXPORTED,	/* in dma-bufs */
	KVT_KEPT_KINDS,
};

/**
 * struct kvt_kept - of a namespace
 * @bytes:        of slots, by kind
 * @beyond_bytes: of these, what is more than was guaranteed to the namespace
 * @retired_bytes: regions that were arenas of files that have gone, until they are free
 * @quarantined_bytes: regions in quarantine, some of them @retired_bytes as well
 * @guarded_bytes: memory in use within its guarantee
 * @weight:       see kvt_weight.c; 0: none
 *
 * Meta lock.
 */
struct kvt_kept {
	u64 bytes[KVT_KEPT_KINDS];
	u64 beyond_bytes[KVT_KEPT_KINDS];
	u64 retired_bytes;
	u64 quarantined_bytes;
	u64 guarded_bytes;
	u32 weight;
};

/* srcu or meta lock held */
u64 kvt_kept_stuck_bytes(struct kvt_pool *p);

/* Meta lock held */
u64 kvt_kept_pin_room(const struct kvt_pool *p, const struct kvt_ns *ns);
u64 kvt_kept_export_room(const struct kvt_pool *p, const struct kvt_ns *ns);
void kvt_kept_mem(struct kvt_ns *ns, s64 bytes);
void kvt_kept_arena(struct kvt_ns *ns, s64 bytes);
void kvt_kept_pin(struct kvt_pool *p, struct kvt_ns *ns, s64 bytes);
void kvt_kept_export(struct kvt_pool *p, struct kvt_ns *ns, s64 bytes);
bool kvt_kept_barred(const struct kvt_pool *p, const struct kvt_ns *ns);

#endif /* KVT_KEPT_H */
