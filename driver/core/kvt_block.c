// SPDX-License-Identifier: GPL-2.0
/*
 * The table of block entries: chunks, free list, intrusive lists.
 *
 * Invariants: id 0 is never allocated; an entry is on the free list exactly when
 * its state is FREE; a chunk once added stays until the pool is gone.
 */
#include "kvt_block.h"

/**
 * kvt_ctl_update() - change bits of a block's control word if it allows it
 * @h:         entry
 * @need_mask: bits that are looked at
 * @need:      what they must be
 * @clear:     bits to clear
 * @set:       bits to set
 * Return: true if @need held and the change was made, atomically.
 */
bool kvt_ctl_update(struct kvt_hot *h, u32 need_mask, u32 need, u32 clear, u32 set)
{
	int old = atomic_read(&h->ctl);

	do {
		if (((u32)old & need_mask) != need)
			return false;
	} while (!atomic_try_cmpxchg(&h->ctl, &old, (int)(((u32)old & ~clear) | set)));
	return true;
}

/**
 * kvt_move_try() - claim a block for a move or an eviction
 * @h: entry
 *
 * Only committed blocks that nobody leases, moves or keeps in an arena. The
 * claim does not keep readers away: a lease taken meanwhile makes the move void
 * at its end.
 * Return: true with MOVING set.
 */
bool kvt_move_try(struct kvt_hot *h)
{
	u32 leases = ~0u << KVT_CTL_LEASE_SHIFT;

	return kvt_ctl_update(h, KVT_CTL_STATE | KVT_CTL_MOVING | KVT_CTL_ARENA | leases,
			      KVT_READY, 0, KVT_CTL_MOVING);
}

/**
 * kvt_table_init() - start an empty table
 * @t:          table
 * @hot:        zeroed array of @max_chunks pointers, stays the caller's
 * @cold:       the same
 * @max_chunks: most chunks there can be
 */
void kvt_table_init(struct kvt_table *t, struct kvt_hot **hot, struct kvt_cold **cold,
		    u32 max_chunks)
{
	BUILD_BUG_ON(sizeof(struct kvt_hot) != 64);
	BUILD_BUG_ON(sizeof(struct kvt_cold) != 44);
	memset(t, 0, sizeof(*t));
	t->hot = hot;
	t->cold = cold;
	t->max_chunks = max_chunks;
}

/**
 * kvt_table_add_chunk() - grow by KVT_CHUNK_BLOCKS entries
 * @t:    table; meta lock held
 * @hot:  zeroed chunk, owned by the table from here on success
 * @cold: the same
 * Return: 0, or -ENOSPC when the table has all the chunks it may.
 */
int kvt_table_add_chunk(struct kvt_table *t, struct kvt_hot *hot, struct kvt_cold *cold)
{
	u32 chunk = t->nr_chunks, first, i;

	if (chunk >= t->max_chunks)
		return -ENOSPC;
	t->hot[chunk] = hot;
	t->cold[chunk] = cold;
	first = chunk << KVT_CHUNK_SHIFT;
	/* Ascending ids come out first: neighbours share pages. */
	for (i = KVT_CHUNK_BLOCKS; i-- > 0;) {
		if (first + i == KVT_NIL)
			continue;
		cold[i].lru_next = t->free_head;
		t->free_head = first + i;
		t->nr_free++;
	}
	/* Pairs with kvt_table_valid(): who may use the ids sees the chunk. */
	smp_store_release(&t->nr_chunks, chunk + 1);
	return 0;
}

/**
 * kvt_table_alloc() - take a free entry
 * @t: table; meta lock held
 *
 * The entry comes with clean links and locations and FREE state; the caller
 * fills it in and moves it on.
 * Return: id, or KVT_NIL when none is free.
 */
u32 kvt_table_alloc(struct kvt_table *t)
{
	u32 id = t->free_head;
	struct kvt_hot *h;
	struct kvt_cold *c;

	if (id == KVT_NIL)
		return KVT_NIL;
	h = kvt_hot(t, id);
	c = kvt_cold(t, id);
	t->free_head = c->lru_next;
	t->nr_free--;
	t->nr_used++;
	memset(c, 0, sizeof(*c));
	h->mem_tier = KVT_NO_TIER;
	h->log_tier = KVT_NO_TIER;
	h->mem_page = 0;
	h->log_unit = 0;
	h->hash_next = KVT_NIL;
	return id;
}

/**
 * kvt_table_take() - take a free entry for something new
 * @t: table; meta lock held
 *
 * As kvt_table_alloc(), but for the last few: they are for what is there already and needs
 * one more when nobody can wait for the table to grow.
 * Return: id, or KVT_NIL: no more than KVT_ENTRIES_KEPT are free.
 */
u32 kvt_table_take(struct kvt_table *t)
{
	return t->nr_free > KVT_ENTRIES_KEPT ? kvt_table_alloc(t) : KVT_NIL;
}

/**
 * kvt_table_free() - return an entry that is on no list and in no index
 * @t:  table; meta lock held
 * @id: entry in state DEAD, LIMBO or FREE (never published)
 */
void kvt_table_free(struct kvt_table *t, u32 id)
{
	struct kvt_hot *h = kvt_hot(t, id);

	h->gen++;
	atomic_set_release(&h->ctl, KVT_FREE);
	kvt_cold(t, id)->lru_next = t->free_head;
	t->free_head = id;
	t->nr_free++;
	t->nr_used--;
}

/**
 * kvt_table_valid() - may this id be dereferenced
 * @t:  table
 * @id: any number
 */
bool kvt_table_valid(const struct kvt_table *t, u32 id)
{
	/* Pairs with kvt_table_add_chunk(). */
	u32 nr_chunks = smp_load_acquire(&t->nr_chunks);

	return id != KVT_NIL && (id >> KVT_CHUNK_SHIFT) < nr_chunks;
}
