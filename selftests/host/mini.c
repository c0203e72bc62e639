// SPDX-License-Identifier: GPL-2.0
/*
 * Blocks of the small store: names, states, leases. See mini.h.
 */
#include "mini.h"

const u32 mini_slot_pages[MINI_OWNERS] = { 160, 5, 160, 700, 18, 512 };
const u32 mini_pieces[MINI_MEMS] = { 24, MINI_PIECES_MAX };

static void *mini_alloc(size_t bytes)
{
	void *p = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

	MINI_ASSERT(p);
	memset(p, 0, bytes);
	return p;
}

static void mini_grow(struct mini *m)
{
	u32 c = m->table.nr_chunks;

	MINI_ASSERT(!kvt_table_add_chunk(&m->table,
			mini_alloc(KVT_CHUNK_BLOCKS * sizeof(*m->hot[c])),
			mini_alloc(KVT_CHUNK_BLOCKS * sizeof(*m->cold[c]))));
}

/* A store whose memory tiers' bytes are @content to begin with. */
struct mini *mini_new(u32 content)
{
	struct mini *m = mini_alloc(sizeof(*m));
	struct kvt_hash_seed seed;
	u32 i, k;

	memset(&seed, 0x42, sizeof(seed));
	kvt_table_init(&m->table, m->hot, m->cold, MINI_CHUNKS);
	mini_grow(m);
	kvt_ix_init(&m->index, &m->table, &seed);
	for (i = 0; i < KVT_SHARDS; i++)
		kvt_ix_shard_init(&m->index.shards[i], mini_alloc(2 * sizeof(u32)), 2);
	kvt_policy_init(&m->policy, &kvt_policy_lru, &m->table);
	for (i = 0; i < MINI_MEMS; i++) {
		struct mini_tier *t = &m->tier[i];

		kvt_mem_init(&t->mem, t->map, t->dir, mini_pieces[i], content);
		MINI_ASSERT(kvt_mem_dir_add(&t->mem, t->chunk));
		for (k = 0; k < MINI_OWNERS; k++)
			t->owner[k].partial = KVT_NO_REGION;
		for (k = 0; content && k < mini_pieces[i] * KVT_PIECE_PAGES; k++)
			t->content[k] = 0xff;
	}
	kvt_log_init(&m->log, m->segs, MINI_SEGS, MINI_SEG_UNITS);
	return m;
}

void mini_free(struct mini *m)
{
	u32 i, k;

	for (i = 0; i < m->table.nr_chunks; i++) {
		free(m->hot[i]);
		free(m->cold[i]);
	}
	for (i = 0; i < KVT_SHARDS; i++)
		free(m->index.shards[i].buckets);
	for (i = 0; i < MINI_MEMS; i++) {
		union kvt_split *split;
		u32 at = 0;

		for (k = 0; k < mini_pieces[i];) {
			struct kvt_region *reg = kvt_mem_region_at(&m->tier[i].mem, k);

			k += reg ? reg->nr_pieces : 1;
			free(reg);
		}
		while ((split = kvt_pieces_end(&m->tier[i].mem.pieces, &at)))
			free(split);
	}
	for (i = 0; i < MINI_SEGS; i++)
		free(m->segs[i].ids);
	free(m);
}

/* Namespaces use the same keys: what keeps them apart is not the key. */
void mini_key(const struct mini_name *n, u8 *key)
{
	memset(key, 0, KVT_KEY_BYTES);
	memcpy(key + 8, &n->key, sizeof(n->key));
}

u32 mini_find(struct mini *m, const struct mini_name *n)
{
	u32 ns_group = mini_ns_group(n->owner), hash, id;
	u8 key[KVT_KEY_BYTES];
	struct kvt_shard *s;

	mini_key(n, key);
	hash = kvt_ix_hash(&m->index, ns_group, key);
	s = kvt_ix_shard(&m->index, hash);
	spin_lock(&s->lock);
	id = kvt_ix_find(&m->index, s, hash, ns_group, key);
	spin_unlock(&s->lock);
	return id;
}

static void mini_insert(struct mini *m, u32 id)
{
	struct kvt_shard *s = kvt_ix_shard(&m->index, kvt_hot(&m->table, id)->hash);
	u32 nr = 2 * (s->mask + 1);

	spin_lock(&s->lock);
	kvt_ix_insert(&m->index, s, id);
	if (kvt_ix_crowded(s))
		free(kvt_ix_resize(&m->index, s, mini_alloc(nr * sizeof(u32)), nr));
	spin_unlock(&s->lock);
}

static void mini_remove(struct mini *m, u32 id)
{
	struct kvt_shard *s = kvt_ix_shard(&m->index, kvt_hot(&m->table, id)->hash);

	spin_lock(&s->lock);
	MINI_ASSERT(kvt_ix_remove(&m->index, s, id));
	spin_unlock(&s->lock);
}

/* Lease a block if it is in memory. */
enum mini_status mini_get(struct mini *m, const struct mini_name *n, u32 *id)
{
	struct kvt_hot *h;

	*id = mini_find(m, n);
	if (*id == KVT_NIL)
		return MINI_MISS;
	h = kvt_hot(&m->table, *id);
	if (kvt_ctl_state(kvt_ctl(h)) == KVT_FILLING)
		return MINI_FILLING;
	if (!kvt_lease_try(h))
		return MINI_PENDING;
	m->policy.ops->touch(&m->policy, mini_fastest(h), *id);
	return MINI_HIT;
}

void mini_put(struct mini *m, u32 id)
{
	if (kvt_lease_put(kvt_hot(&m->table, id)))
		mini_reap(m, id);
}

/* Take a slot for a block that is not there; its parent must be named. */
enum mini_status mini_reserve(struct mini *m, const struct mini_name *n,
			      const struct mini_name *parent, bool arena, u32 *id)
{
	u32 up = KVT_NIL, page = KVT_NO_PAGE, tier, ns = n->owner / MINI_GROUPS;
	struct kvt_hot *h;

	*id = mini_find(m, n);
	if (*id != KVT_NIL)
		return kvt_ctl_state(kvt_ctl(kvt_hot(&m->table, *id))) == KVT_FILLING ?
		       MINI_FILLING : MINI_EXISTS;
	if (parent) {
		up = mini_find(m, parent);
		if (up == KVT_NIL)
			return MINI_NOPARENT;
	}
	if (!m->table.nr_free)
		mini_grow(m);
	*id = kvt_table_alloc(&m->table);
	MINI_ASSERT(*id != KVT_NIL);
	for (tier = 0; tier < MINI_MEMS && page == KVT_NO_PAGE; tier++)
		page = mini_slot_get(m, tier, n->owner, arena, *id);
	if (page == KVT_NO_PAGE) {
		kvt_table_free(&m->table, *id);
		return MINI_NOSPACE;
	}
	h = kvt_hot(&m->table, *id);
	mini_key(n, h->key);
	h->ns_group = mini_ns_group(n->owner);
	h->hash = kvt_ix_hash(&m->index, h->ns_group, h->key);
	h->mem_tier = (u8)(tier - 1);
	h->mem_page = page;
	m->foreign[*id] = false;
	m->tag[*id] = (++m->next_tag << 8) | (ns + 1);
	MINI_ASSERT(kvt_ctl_update(h, U32_MAX, KVT_FREE, 0,
				   KVT_FILLING | KVT_CTL_MEM | (arena ? KVT_CTL_ARENA : 0)));
	if (up != KVT_NIL)
		kvt_ch_link(&m->table, *id, up);
	kvt_list_add_head(&m->table, &m->filling, *id);
	mini_insert(m, *id);
	return MINI_RESERVED;
}

static bool mini_parent_ready(struct mini *m, u32 id)
{
	u32 up = kvt_cold(&m->table, id)->parent;

	return up == KVT_NIL || kvt_ctl_state(kvt_ctl(kvt_hot(&m->table, up))) == KVT_READY;
}

/* The bytes of a reservation become a block. */
enum mini_status mini_commit(struct mini *m, u32 id)
{
	struct kvt_hot *h = kvt_hot(&m->table, id);
	u32 i;

	if (kvt_mem_slot_poisoned(&m->tier[h->mem_tier].mem, h->mem_page))
		return MINI_LOST;
	if (!mini_parent_ready(m, id))
		return MINI_NOPARENT;
	for (i = 0; i < mini_slot_pages[mini_owner(h)]; i++)
		m->tier[h->mem_tier].content[h->mem_page + i] = m->tag[id];
	kvt_list_del(&m->table, &m->filling, id);
	MINI_ASSERT(kvt_ctl_update(h, KVT_CTL_STATE, KVT_FILLING, KVT_CTL_STATE, KVT_READY));
	m->policy.ops->insert(&m->policy, h->mem_tier, id);
	return MINI_DONE;
}

/*
 * A block that dies leaves its parent at once: leases on it or orphans below it
 * must not keep the parent from being dropped or evicted. Its own children keep
 * its entry. Its parent may be DEAD and have waited for it alone.
 */
static void mini_dead(struct mini *m, u32 id)
{
	u32 up = kvt_ch_unlink(&m->table, id);

	mini_reap(m, id);
	mini_reap(m, up);
}

/* Give up a reservation; @foreign: its pages are still referenced elsewhere. */
void mini_abort(struct mini *m, u32 id, bool foreign)
{
	struct kvt_hot *h = kvt_hot(&m->table, id);

	mini_remove(m, id);
	kvt_list_del(&m->table, &m->filling, id);
	m->foreign[id] = foreign;
	/* Half-written bytes: of this namespace, of no block. */
	m->tier[h->mem_tier].content[h->mem_page] = m->tag[id] & 0xff;
	MINI_ASSERT(kvt_ctl_update(h, KVT_CTL_STATE, KVT_FILLING, KVT_CTL_STATE, KVT_DEAD));
	mini_dead(m, id);
}

/* A READY block is a miss from now on. */
void mini_kill(struct mini *m, u32 id)
{
	struct kvt_hot *h = kvt_hot(&m->table, id);

	mini_remove(m, id);
	m->policy.ops->remove(&m->policy, mini_fastest(h), id);
	MINI_ASSERT(kvt_ctl_update(h, KVT_CTL_STATE, KVT_READY, KVT_CTL_STATE, KVT_DEAD));
	mini_dead(m, id);
}

enum mini_status mini_drop(struct mini *m, const struct mini_name *n)
{
	u32 id = mini_find(m, n);

	if (id == KVT_NIL)
		return MINI_MISS;
	if (kvt_ctl_state(kvt_ctl(kvt_hot(&m->table, id))) == KVT_FILLING)
		return MINI_BUSY;
	if (!kvt_ch_leaf(&m->table, id))
		return MINI_CHILDREN;
	mini_kill(m, id);
	return MINI_DONE;
}

void mini_pin(struct mini *m, u32 id, bool pin)
{
	kvt_ctl_update(kvt_hot(&m->table, id), 0, 0, pin ? 0 : KVT_CTL_PINNED,
		       pin ? KVT_CTL_PINNED : 0);
}

static void mini_release(struct mini *m, u32 id)
{
	struct kvt_hot *h = kvt_hot(&m->table, id);

	if (kvt_ctl(h) & KVT_CTL_MEM)
		mini_slot_put(m, h->mem_tier, h->mem_page);
	if ((kvt_ctl(h) & KVT_CTL_LOG) && (kvt_ctl(h) & KVT_CTL_MEM))
		mini_log_copy(m, id, false);
	if (kvt_ctl(h) & KVT_CTL_LOG)
		mini_log_put(m, id);
	m->tag[id] = 0;
	kvt_table_free(&m->table, id);
}

/* Free a DEAD block that nothing refers to. */
void mini_reap(struct mini *m, u32 id)
{
	struct kvt_hot *h;
	u32 ctl;

	if (id == KVT_NIL)
		return;
	h = kvt_hot(&m->table, id);
	ctl = kvt_ctl(h);
	if (kvt_ctl_state(ctl) != KVT_DEAD || kvt_ctl_leases(ctl) ||
	    (ctl & KVT_CTL_MOVING) || !kvt_ch_leaf(&m->table, id))
		return;
	if (m->foreign[id]) {
		MINI_ASSERT(kvt_ctl_update(h, KVT_CTL_STATE, KVT_DEAD, KVT_CTL_STATE,
					   KVT_LIMBO));
		kvt_list_add_tail(&m->table, &m->limbo, id);
	} else {
		mini_release(m, id);
	}
}

/* The foreign references to the oldest slot in limbo are gone. */
void mini_limbo_check(struct mini *m)
{
	u32 id = m->limbo.tail;

	if (id == KVT_NIL)
		return;
	kvt_list_del(&m->table, &m->limbo, id);
	m->foreign[id] = false;
	mini_release(m, id);
}
