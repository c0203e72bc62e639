/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Block entries: what the pool knows of each block.
 *
 * An entry is two records under one 32-bit id. The *hot* record is one cache line
 * with all that LOOKUP, GET and RELEASE need. The *cold* record holds chain and
 * policy links. Entries live in chunks that are never freed while the pool
 * exists, so an id (and a pointer) stays dereferenceable for ever; @gen tells
 * whether it is still the same block.
 *
 * The word @ctl arbitrates. It is only changed by compare-and-exchange:
 *
 *   state    FREE     on the free list
 *            FILLING  reserved; bytes are being written by its owner
 *            READY    committed and immutable
 *            DEAD     no longer named by the index; lives on for its leases,
 *                     its children's links, or a move in flight
 *            LIMBO    nothing but a slot that waits until no foreign reference
 *                     to its pages is left
 *   MEM      @mem_page is valid: the bytes can be leased and mapped
 *   LOG      @log_unit is valid: the bytes are on a block tier; with MEM, too: that is
 *            a *copy* then, which can be given up at any time
 *   MOVING   a move is in flight; whoever set it clears it
 *   PINNED   never leaves the pool to make room
 *   ARENA    never moves
 *   HELD     on the chain of a decoding session: never leaves the pool to make room, see
 *            kvt_hold.h
 *   leases   how many clients rely on the memory copy staying where it is
 *
 * State may change: FREE->FILLING (reserve), FILLING->READY (commit),
 * FILLING->DEAD (abort, expiry), READY->DEAD (drop, evict), DEAD->LIMBO,
 * DEAD->FREE, LIMBO->FREE. A lease is taken only in READY with MEM. MEM is cleared only
 * with leases == 0.
 *
 * Locks: ctl by cmpxchg from anywhere; state changes, links, locations and the
 * free list under the pool's meta lock; @hash_next under the shard's lock.
 * Locations may be read by whoever holds a lease or set MOVING.
 */
#ifndef KVT_BLOCK_H
#define KVT_BLOCK_H

#include "kvt_env.h"

#define KVT_NIL			0u	/* no block: id 0 is never handed out */
#define KVT_KEY_BYTES		32
#define KVT_CHUNK_SHIFT		11
#define KVT_CHUNK_BLOCKS	(1u << KVT_CHUNK_SHIFT)
#define KVT_NO_TIER		0xff
#define KVT_ENTRIES_KEPT	64u	/* see kvt_table_take() */

#define KVT_HOT_EXPIRES		(1u << 0)	/* has a time to live */
#define KVT_HOT_HELD		(1u << 1)	/* a device may refer to its slot in memory */
#define KVT_HOT_PARKED		(1u << 2)	/* DEAD; its log copy waits for room for its kill */
#define KVT_HOT_DURABLE		(1u << 3)	/* its log copy is found again after a crash */
#define KVT_HOT_GHOST		(1u << 4)	/* DEAD, and its log copy is still there */
#define KVT_HOT_GHOST_ODD	(1u << 5)	/* ... and died when its namespace's age was odd */
#define KVT_HOT_UNREAD		(1u << 7)	/* was promoted, and nobody has read it since */
#define KVT_HOT_STALE		(1u << 6)	/* its record is lost or has another time to live */
#define KVT_HOT_AHEAD		(1u << 8)	/* was promoted unasked, and nobody has read it since */
#define KVT_HOT_AHEAD_NEXT	(1u << 9)	/* ... because it follows on what was read */
#define KVT_HOT_BARE		(1u << 10)	/* DEAD, and nobody is charged for it */
#define KVT_HOT_LATER		(1u << 11)	/* is to come up when nothing else is asked for */

enum kvt_state {
	KVT_FREE = 0,
	KVT_FILLING = 1,
	KVT_READY = 2,
	KVT_DEAD = 3,
	KVT_LIMBO = 4,
};

#define KVT_CTL_STATE		0x0fu
#define KVT_CTL_MEM		(1u << 4)
#define KVT_CTL_LOG		(1u << 5)
#define KVT_CTL_MOVING		(1u << 6)
#define KVT_CTL_PINNED		(1u << 7)
#define KVT_CTL_ARENA		(1u << 8)
#define KVT_CTL_HELD		(1u << 9)
#define KVT_CTL_STAYS		(KVT_CTL_PINNED | KVT_CTL_HELD)
#define KVT_CTL_LEASE_SHIFT	10
#define KVT_CTL_LEASE_ONE	(1u << KVT_CTL_LEASE_SHIFT)
#define KVT_LEASES_MAX		((1u << (32 - KVT_CTL_LEASE_SHIFT)) - 2)

/**
 * struct kvt_hot - first cache line of a block entry
 * @key:       name, with @ns_group
 * @hash:      of both; shard and bucket come from it
 * @hash_next: next in the bucket
 * @ctl:       see above
 * @gen:       increments whenever the entry is freed
 * @ns_group:  kvt_ns_group()
 * @mem_page:  first page in tier @mem_tier, in KVTIER_SLOT_ALIGN units
 * @log_unit:  first unit in tier @log_tier
 * @flags:     KVT_HOT_*; changed under the meta lock
 */
struct kvt_hot {
	u8 key[KVT_KEY_BYTES];
	u32 hash;
	u32 hash_next;
	atomic_t ctl;
	u32 gen;
	u32 ns_group;
	u32 mem_page;
	u32 log_unit;
	u8 mem_tier;
	u8 log_tier;
	u16 flags;
} __aligned(64);

/**
 * struct kvt_cold - second part of a block entry
 * @parent:     chain links; siblings are a ring-less doubly linked list
 * @first_child: 0: a leaf
 * @sib_next:   links
 * @sib_prev:   links
 * @lru_prev:   links of the one list the block is on (policy, filling, limbo)
 * @lru_next:   links; the free list uses this one
 * @touch_ms:   last use (or reservation), low 32 bits of the pool's clock
 * @csum:       struct kvt_payload_sum of the payload on a block tier; FILLING: the number
 *              of the request that it belongs to
 * @owner:      FILLING: id of the open file that may write
 * @holds:      READY: see kvt_hold.h
 * @expire_s:   time to live: second of the pool's clock, 0: none
 * @cls:        policy: its class; 0 in a new entry
 * @on:         policy: which list of its tier it is on, KVT_ON_USED, KVT_ON_STUCK
 * @shared:     policy: how often others than its own session came back to it
 * @past:       policy: of its session, see kvt_policy_reuse.c
 */
struct kvt_cold {
	u32 parent;
	u32 first_child;
	u32 sib_next;
	u32 sib_prev;
	u32 lru_prev;
	u32 lru_next;
	u32 touch_ms;
	u32 csum;
	union {
		u32 owner;
		u32 holds;
	};
	u32 expire_s;
	u8 cls;
	u8 on;
	u8 shared;
	u8 past;
};

/**
 * struct kvt_table - all block entries of a pool
 * @hot:       chunk pointers, @max_chunks of them
 * @cold:      the same
 * @nr_chunks: chunks present; ids below nr_chunks * KVT_CHUNK_BLOCKS are valid.
 *             Published with release semantics after the chunk is in place
 * @free_head: free entries, through lru_next
 * @nr_free:   their number
 * @nr_used:   entries not FREE
 */
struct kvt_table {
	struct kvt_hot **hot;
	struct kvt_cold **cold;
	u32 max_chunks;
	u32 nr_chunks;
	u32 free_head;
	u32 nr_free;
	u32 nr_used;
};

static inline struct kvt_hot *kvt_hot(const struct kvt_table *t, u32 id)
{
	return &t->hot[id >> KVT_CHUNK_SHIFT][id & (KVT_CHUNK_BLOCKS - 1)];
}

static inline struct kvt_cold *kvt_cold(const struct kvt_table *t, u32 id)
{
	return &t->cold[id >> KVT_CHUNK_SHIFT][id & (KVT_CHUNK_BLOCKS - 1)];
}

#define KVT_NS_SHIFT	4

static inline u32 kvt_ns_group(u32 ns, u32 group)
{
	return (ns << KVT_NS_SHIFT) | group;
}

/*
 * Acquires: who sees no lease left may give the slot away, and the reads of the
 * last leaseholder must be over by then.
 */
static inline u32 kvt_ctl(const struct kvt_hot *h)
{
	return (u32)atomic_read_acquire(&h->ctl);
}

static inline enum kvt_state kvt_ctl_state(u32 ctl)
{
	return ctl & KVT_CTL_STATE;
}

static inline u32 kvt_ctl_leases(u32 ctl)
{
	return ctl >> KVT_CTL_LEASE_SHIFT;
}

/**
 * kvt_lease_try_first() - take a lease if the block's bytes are readable in memory
 * @h:     entry
 * @first: out: nobody else had one
 * Return: true with the lease taken. Any context, no lock.
 */
static inline bool kvt_lease_try_first(struct kvt_hot *h, bool *first)
{
	int old = atomic_read(&h->ctl);

	do {
		if ((old & (KVT_CTL_STATE | KVT_CTL_MEM)) != (KVT_READY | KVT_CTL_MEM))
			return false;
		if (kvt_ctl_leases((u32)old) >= KVT_LEASES_MAX)
			return false;
		*first = !kvt_ctl_leases((u32)old);
	} while (!atomic_try_cmpxchg(&h->ctl, &old, (int)((u32)old + KVT_CTL_LEASE_ONE)));
	return true;
}

/* The same for who does not ask, because what it fixes is paid for, or nobody counts. */
static inline bool kvt_lease_try(struct kvt_hot *h)
{
	bool first;

	return kvt_lease_try_first(h, &first);
}

/**
 * kvt_lease_put() - give a lease back
 * @h: entry
 * Return: true if that was the last lease of a DEAD block, which the caller must
 * then offer to the reaper. Any context, no lock.
 */
static inline bool kvt_lease_put(struct kvt_hot *h)
{
	u32 ctl = (u32)atomic_sub_return((int)KVT_CTL_LEASE_ONE, &h->ctl);

	return kvt_ctl_leases(ctl) == 0 && kvt_ctl_state(ctl) == KVT_DEAD;
}

/**
 * kvt_block_tier() - tier of a block's fastest copy
 * @h:   entry
 * @ctl: its control word
 * Return: tier id or KVT_NO_TIER.
 */
static inline u32 kvt_block_tier(const struct kvt_hot *h, u32 ctl)
{
	if (ctl & KVT_CTL_MEM)
		return h->mem_tier;
	return ctl & KVT_CTL_LOG ? h->log_tier : KVT_NO_TIER;
}

bool kvt_ctl_update(struct kvt_hot *h, u32 need_mask, u32 need, u32 clear, u32 set);
bool kvt_move_try(struct kvt_hot *h);

void kvt_table_init(struct kvt_table *t, struct kvt_hot **hot, struct kvt_cold **cold,
		    u32 max_chunks);
int kvt_table_add_chunk(struct kvt_table *t, struct kvt_hot *hot, struct kvt_cold *cold);
u32 kvt_table_alloc(struct kvt_table *t);
u32 kvt_table_take(struct kvt_table *t);
void kvt_table_free(struct kvt_table *t, u32 id);
bool kvt_table_valid(const struct kvt_table *t, u32 id);

/* A doubly linked list of blocks through lru_prev and lru_next. */
struct kvt_list {
	u32 head;	/* most recent */
	u32 tail;	/* oldest */
	u32 count;
};

/**
 * kvt_list_add_head() - put a block that is on no list at the recent end
 * @t:  table; meta lock held
 * @l:  list
 * @id: block
 */
static inline void kvt_list_add_head(struct kvt_table *t, struct kvt_list *l, u32 id)
{
	struct kvt_cold *c = kvt_cold(t, id);

	c->lru_prev = KVT_NIL;
	c->lru_next = l->head;
	if (l->head)
		kvt_cold(t, l->head)->lru_prev = id;
	else
		l->tail = id;
	l->head = id;
	l->count++;
}

/**
 * kvt_list_add_tail() - put a block that is on no list at the old end
 * @t:  table; meta lock held
 * @l:  list
 * @id: block
 */
static inline void kvt_list_add_tail(struct kvt_table *t, struct kvt_list *l, u32 id)
{
	struct kvt_cold *c = kvt_cold(t, id);

	c->lru_next = KVT_NIL;
	c->lru_prev = l->tail;
	if (l->tail)
		kvt_cold(t, l->tail)->lru_next = id;
	else
		l->head = id;
	l->tail = id;
	l->count++;
}

/**
 * kvt_list_add_before() - put a block that is on no list next to another
 * @t:    table; meta lock held
 * @l:    list
 * @id:   block
 * @next: block on @l; @id will be the more recent of the two
 */
static inline void kvt_list_add_before(struct kvt_table *t, struct kvt_list *l, u32 id, u32 next)
{
	struct kvt_cold *c = kvt_cold(t, id), *n = kvt_cold(t, next);

	c->lru_next = next;
	c->lru_prev = n->lru_prev;
	if (n->lru_prev)
		kvt_cold(t, n->lru_prev)->lru_next = id;
	else
		l->head = id;
	n->lru_prev = id;
	l->count++;
}

/**
 * kvt_list_del() - take a block off the list it is on
 * @t:  table; meta lock held
 * @l:  that list
 * @id: block
 */
static inline void kvt_list_del(struct kvt_table *t, struct kvt_list *l, u32 id)
{
	struct kvt_cold *c = kvt_cold(t, id);

	if (c->lru_prev)
		kvt_cold(t, c->lru_prev)->lru_next = c->lru_next;
	else
		l->head = c->lru_next;
	if (c->lru_next)
		kvt_cold(t, c->lru_next)->lru_prev = c->lru_prev;
	else
		l->tail = c->lru_prev;
	c->lru_prev = KVT_NIL;
	c->lru_next = KVT_NIL;
	l->count--;
}

#endif /* KVT_BLOCK_H */
