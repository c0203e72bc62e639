// SPDX-License-Identifier: GPL-2.0
/*
 * MIN: what is next used furthest away goes, the newcomer included. The bound that
 * no policy passes, as it knows the future.
 *
 * Positions in the trace order blocks of one request head first, so of two blocks
 * next used by the same request the deeper one goes. The heap holds an entry for
 * each use of a cached block; entries that a later use has replaced are skipped.
 */
#include "sim_ref.h"

struct item {
	u32 next, id;
};

struct bound {
	u32 *next_use;	/* by position: the block's next one */
	u32 *due;	/* by block, when in: its next position */
	struct item *heap;
	u32 nr;
};

static void heap_push(struct bound *b, struct item it)
{
	u32 at = b->nr++;

	while (at && b->heap[(at - 1) / 2].next < it.next) {
		b->heap[at] = b->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	b->heap[at] = it;
}

static void heap_pop(struct bound *b)
{
	struct item it = b->heap[--b->nr];
	u32 at = 0, kid;

	while ((kid = 2 * at + 1) < b->nr) {
		if (kid + 1 < b->nr && b->heap[kid + 1].next > b->heap[kid].next)
			kid++;
		if (b->heap[kid].next <= it.next)
			break;
		b->heap[at] = b->heap[kid];
		at = kid;
	}
	b->heap[at] = it;
}

static void min_init(struct sim_ref *s)
{
	struct bound *b = sim_alloc(1, sizeof(*b));
	u32 n = s->trace->nr_accesses, i;

	b->next_use = sim_alloc(n, sizeof(u32));
	b->due = sim_alloc(s->trace->nr_distinct, sizeof(u32));
	b->heap = sim_alloc((size_t)n + 1, sizeof(*b->heap));
	memset(b->due, 0xff, s->trace->nr_distinct * sizeof(u32));
	for (i = n; i-- > 0;) {
		b->next_use[i] = b->due[s->trace->ids[i]];
		b->due[s->trace->ids[i]] = i;
	}
	s->priv = b;
}

static void min_exit(struct sim_ref *s)
{
	struct bound *b = s->priv;

	free(b->next_use);
	free(b->due);
	free(b->heap);
	free(b);
}

static void min_access(struct sim_ref *s, u32 id)
{
	struct bound *b = s->priv;

	s->nr_in += !s->in[id];
	s->in[id] = 1;
	b->due[id] = b->next_use[s->at];
	heap_push(b, (struct item){ b->due[id], id });
	while (s->nr_in > s->room) {
		struct item top = b->heap[0];

		heap_pop(b);
		if (!s->in[top.id] || b->due[top.id] != top.next)
			continue;
		s->in[top.id] = 0;
		s->nr_in--;
	}
}

const struct sim_ref_ops sim_min = {
	.name = "min", .init = min_init, .access = min_access, .exit = min_exit,
};
