// SPDX-License-Identifier: GPL-2.0
/*
 * From records to a pool's blocks; see kvt_merge.h for the model.
 */
#include "kvt_env.h"
#include "kvt_merge.h"

#define KVT_MG_PAUSE	4096u	/* steps between two calls of @pause */

/**
 * kvt_mg_def_counts() - is a definition of a namespace the one that counts
 * @seq: of the newest so far, 0: none
 * @def: another one of that namespace
 *
 * Which of two with one sequence it is must not matter: gone is gone.
 * Return: whether it takes the place of the other.
 */
bool kvt_mg_def_counts(u64 seq, const struct kvt_nsdef *def)
{
	return !seq || def->seq > seq || (def->seq == seq && def->flags & KVT_NSF_GONE);
}

/**
 * kvt_mg_find() - find a block
 * @ix:       index
 * @hash:     kvt_ix_hash() of the name
 * @ns_group: namespace and group
 * @key:      key
 *
 * Under the meta lock: else it may be gone when this returns.
 * Return: id, or KVT_NIL.
 */
u32 kvt_mg_find(struct kvt_index *ix, u32 hash, u32 ns_group, const u8 *key)
{
	struct kvt_shard *s = kvt_ix_shard(ix, hash);
	u32 id;

	spin_lock(&s->lock);
	id = kvt_ix_find(ix, s, hash, ns_group, key);
	spin_unlock(&s->lock);
	return id;
}

/* The first block where @hash is, which most often is the one: it is on its way. */
static u32 kvt_mg_first(struct kvt_index *ix, u32 hash)
{
	struct kvt_shard *s = kvt_ix_shard(ix, hash);
	u32 id;

	spin_lock(&s->lock);
	id = kvt_ix_prefetch_first(ix, s, hash);
	spin_unlock(&s->lock);
	return id;
}

/**
 * kvt_mg_expect() - blocks will be entered soon
 * @ix: index
 * @b:  blocks, whose hashes are known
 * @nr: how many
 *
 * Memory that is waited for is most of what entering takes.
 */
void kvt_mg_expect(struct kvt_index *ix, const struct kvt_mg_block *b, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++)
		kvt_mg_first(ix, b[i].hash);
}

static void kvt_mg_fill(struct kvt_hot *h, struct kvt_cold *c, const struct kvt_mg_block *b)
{
	const struct kvt_rec *rec = &b->rec;

	h->log_tier = (u8)b->at.tier;
	h->log_unit = b->at.unit;
	/* The superblock that starts a member is written after a flush. */
	h->flags = KVT_HOT_DURABLE | (b->expire_s ? KVT_HOT_EXPIRES : 0);
	c->expire_s = b->expire_s;
	c->csum = rec->sum;
	c->owner = (u32)rec->seq;
	c->touch_ms = (u32)(rec->seq >> 32);
	c->sib_next = rec->bytes;
	c->sib_prev = rec->stored;
}

/**
 * kvt_mg_enter() - enter a record under its name, unless a newer one is there
 * @t:    table with room for it
 * @ix:   index
 * @b:    record, named (kvt_mg_named())
 * @lost: out: the record that is not used, if there are two
 *
 * Under the meta lock.
 * Return: id; KVT_NIL: it is @lost itself.
 */
u32 kvt_mg_enter(struct kvt_table *t, struct kvt_index *ix, const struct kvt_mg_block *b,
		 struct kvt_mg_place *lost)
{
	u32 id = kvt_mg_find(ix, b->hash, b->ns_group, b->rec.key);
	struct kvt_shard *s = kvt_ix_shard(ix, b->hash);
	struct kvt_hot *h;

	lost->tier = KVT_NO_TIER;
	if (id != KVT_NIL) {
		h = kvt_hot(t, id);
		if (kvt_mg_seq(kvt_cold(t, id)) >= b->rec.seq) {
			*lost = b->at;
			return KVT_NIL;
		}
		lost->tier = h->log_tier;
		lost->unit = h->log_unit;
		kvt_mg_fill(h, kvt_cold(t, id), b);
		return id;
	}
	id = kvt_table_alloc(t);
	h = kvt_hot(t, id);
	memcpy(h->key, b->rec.key, KVT_KEY_BYTES);
	h->ns_group = b->ns_group;
	h->hash = b->hash;
	kvt_mg_fill(h, kvt_cold(t, id), b);
	atomic_set(&h->ctl, KVT_READY | KVT_CTL_LOG);
	spin_lock(&s->lock);
	kvt_ix_insert(ix, s, id);
	spin_unlock(&s->lock);
	return id;
}

/**
 * kvt_mg_parent_of() - what has to be remembered of a record that was entered
 * @rec: record
 * @id:  its entry
 * @pa:  out
 * Return: false: it has no parent.
 */
bool kvt_mg_parent_of(const struct kvt_rec *rec, u32 id, struct kvt_mg_parent *pa)
{
	static const u8 none[KVT_KEY_BYTES];

	if (!memcmp(rec->parent, none, KVT_KEY_BYTES))
		return false;
	pa->seq = rec->seq;
	pa->id = id;
	memcpy(pa->key, rec->parent, KVT_KEY_BYTES);
	return true;
}

/**
 * kvt_mg_fits() - is a block one of its group
 * @c:           of its entry
 * @block_bytes: of the group
 * @slot_bytes:  likewise
 * Return: whether its record says so.
 */
bool kvt_mg_fits(const struct kvt_cold *c, u32 block_bytes, u32 slot_bytes)
{
	return c->sib_next == block_bytes && c->sib_prev == slot_bytes;
}

/**
 * kvt_mg_forget() - take out a block that does not fit
 * @t:  table
 * @ix: index
 * @id: block that was not linked and is on no list
 *
 * Under the meta lock.
 */
void kvt_mg_forget(struct kvt_table *t, struct kvt_index *ix, u32 id)
{
	struct kvt_shard *s = kvt_ix_shard(ix, kvt_hot(t, id)->hash);

	spin_lock(&s->lock);
	kvt_ix_remove(ix, s, id);
	spin_unlock(&s->lock);
	kvt_table_free(t, id);
}

/* A block was checked: it may be linked. */
void kvt_mg_clear(struct kvt_cold *c)
{
	c->sib_next = KVT_NIL;
	c->sib_prev = KVT_NIL;
}

/* Whether there is a link now. */
static bool kvt_mg_link(struct kvt_table *t, struct kvt_index *ix,
			const struct kvt_mg_parent *pa, u32 hash)
{
	const struct kvt_hot *h = kvt_hot(t, pa->id);
	const struct kvt_cold *c = kvt_cold(t, pa->id);
	u32 parent;

	/* Taken out, or the record has been superseded since. */
	if (kvt_ctl_state(kvt_ctl(h)) != KVT_READY || kvt_mg_seq(c) != pa->seq ||
	    c->parent != KVT_NIL)
		return false;
	parent = kvt_mg_find(ix, hash, h->ns_group, pa->key);
	if (parent == KVT_NIL || parent == pa->id)
		return false;
	kvt_ch_link(t, pa->id, parent);
	return true;
}

/**
 * kvt_mg_link_some() - link blocks to their parents, if these are there
 * @t:  table, whose blocks were all checked and cleared
 * @ix: index
 * @pa: parents
 * @nr: how many, at most KVT_MG_BATCH
 *
 * Under the meta lock. Chains may have cycles after that.
 * Return: how many links were made.
 */
u32 kvt_mg_link_some(struct kvt_table *t, struct kvt_index *ix, const struct kvt_mg_parent *pa,
		     u32 nr)
{
	u32 hash[KVT_MG_BATCH], links = 0, parent, i;

	for (i = 0; i < nr; i++) {
		hash[i] = kvt_ix_hash(ix, kvt_hot(t, pa[i].id)->ns_group, pa[i].key);
		kvt_ix_prefetch(ix, hash[i]);
	}
	for (i = 0; i < nr; i++) {
		parent = kvt_mg_first(ix, hash[i]);
		if (parent != KVT_NIL)
			prefetch(kvt_cold(t, parent));
	}
	for (i = 0; i < nr; i++)
		links += kvt_mg_link(t, ix, &pa[i], hash[i]);
	return links;
}

void kvt_mg_sort_start(struct kvt_mg_sorter *s, void (*pause)(void))
{
	u32 i, k;

	for (i = 0; i < KVT_TIERS; i++) {
		for (k = 0; k < KVT_MG_LISTS; k++)
			s->list[i][k] = KVT_NIL;
	}
	s->pause = pause;
}

/* Two lists through lru_next, by ascending sequence, become one. */
static u32 kvt_mg_merge_lists(const struct kvt_mg_sorter *s, struct kvt_table *t, u32 a, u32 b)
{
	u32 head = KVT_NIL, *tail = &head, *first, nr = 0;

	while (a != KVT_NIL && b != KVT_NIL) {
		if (!(++nr % KVT_MG_PAUSE))
			s->pause();
		first = kvt_mg_seq(kvt_cold(t, b)) < kvt_mg_seq(kvt_cold(t, a)) ? &b : &a;
		*tail = *first;
		tail = &kvt_cold(t, *tail)->lru_next;
		*first = *tail;
	}
	*tail = a != KVT_NIL ? a : b;
	return head;
}

/**
 * kvt_mg_sort_add() - one more block
 * @s:  sorter
 * @t:  table
 * @id: block; on no list
 */
void kvt_mg_sort_add(struct kvt_mg_sorter *s, struct kvt_table *t, u32 id)
{
	u32 *list = s->list[kvt_hot(t, id)->log_tier], i;

	for (i = 0; list[i] != KVT_NIL; i++) {
		id = kvt_mg_merge_lists(s, t, list[i], id);
		list[i] = KVT_NIL;
	}
	list[i] = id;
}

/**
 * kvt_mg_sorted() - blocks of a tier in the order in which they were written
 * @s:      sorter that has all of them
 * @t:      table
 * @tier:   tier
 * @now_ms: of the policy they will be given to
 *
 * A block may come before its parent, whose sequence is where its time of use will be. If
 * that happened to be now, the policy would take the parent for being on a list: no block of the
 * tier looks as if it were, after this.
 * Return: the first, or KVT_NIL; kvt_mg_take() gives the next one.
 */
u32 kvt_mg_sorted(struct kvt_mg_sorter *s, struct kvt_table *t, u32 tier, u32 now_ms)
{
	u32 head = KVT_NIL, id, i, nr = 0;

	for (i = 0; i < KVT_MG_LISTS; i++)
		head = kvt_mg_merge_lists(s, t, s->list[tier][i], head);
	for (id = head; id != KVT_NIL; id = kvt_cold(t, id)->lru_next) {
		kvt_cold(t, id)->touch_ms = now_ms - 1;
		if (!(++nr % KVT_MG_PAUSE))
			s->pause();
	}
	return head;
}

/**
 * kvt_mg_take() - a block is a block like any other from here on
 * @t:      table
 * @id:     block, the next one of kvt_mg_sorted()
 * @now_ms: of the policy it is given to now
 * Return: the one after it, or KVT_NIL.
 */
u32 kvt_mg_take(struct kvt_table *t, u32 id, u32 now_ms)
{
	struct kvt_cold *c = kvt_cold(t, id);

	c->owner = 0;
	c->touch_ms = now_ms;
	return c->lru_next;
}

/**
 * kvt_mg_tally() - a block is in a segment
 * @s:     segment, zeroed before the first one
 * @id:    block
 * @units: it takes there
 * @ids:   false: count it; true: when all were counted and there is room, note which
 */
void kvt_mg_tally(struct kvt_seg *s, u32 id, u32 units, bool ids)
{
	if (ids) {
		s->ids[s->nr_ids++] = id;
		return;
	}
	s->max_ids++;
	s->live += units;
}

/**
 * kvt_mg_restore() - the log takes over a segment
 * @l:     empty log
 * @seg:   which
 * @found: what was found there; it counts (kvt_life_counts())
 * @s:     its blocks by kvt_mg_tally(); @s->ids is the log's then
 *
 * Under the meta lock.
 */
void kvt_mg_restore(struct kvt_log *l, u32 seg, const struct kvt_life_seg *found,
		    struct kvt_seg *s)
{
	s->state = s->live ? KVT_SEG_SEALED : KVT_SEG_EMPTY;
	s->fill = found->found.fill;
	s->placed = found->placed;
	kvt_log_restore(l, seg, s);
	s->ids = NULL;
}
