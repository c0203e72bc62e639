// SPDX-License-Identifier: GPL-2.0
/*
 * From records to a pool that works. See recover_assemble.h, and driver/kvt_assemble_merge.c
 * for what this follows: a record becomes an entry while its segment is read, unless a newer
 * one of its name is there, and all else is done when all has been read. Until then
 * cold->owner and touch_ms are the record's sequence, and cold->sib_next and sib_prev its
 * lengths.
 */
#include "recover_assemble.h"

#define LOCK_STEP	1024u	/* blocks under one hold of the meta lock */
#define CUT_STEP	4096u
#define TIER		0u
#define NOW_MS		123456789u

void as_shard_grow(struct assembly *as, struct kvt_shard *s, u32 nr)
{
	u32 *buckets = as_take(as, USE_INDEX, nr * sizeof(*buckets)), *old, had = s->mask + 1;

	spin_lock(&s->lock);
	old = kvt_ix_resize(&as->index, s, buckets, nr);
	spin_unlock(&s->lock);
	as_give(as, USE_INDEX, old, had * sizeof(*buckets));
}

/* The first block where @hash is: it is on its way. */
static u32 expect(struct assembly *as, u32 hash)
{
	struct kvt_shard *s = kvt_ix_shard(&as->index, hash);
	u32 id;

	spin_lock(&s->lock);
	id = kvt_ix_prefetch_first(&as->index, s, hash);
	spin_unlock(&s->lock);
	return id;
}

/* Chunks come one at a time, and with each the shards that want it get twice the buckets. */
static void grow(struct assembly *as)
{
	struct kvt_hot *hot = as_take(as, USE_ENTRIES, KVT_CHUNK_BLOCKS * sizeof(*hot));
	struct kvt_cold *cold = as_take(as, USE_ENTRIES, KVT_CHUNK_BLOCKS * sizeof(*cold));
	u32 i;

	spin_lock(&as->meta_lock);
	if (kvt_table_add_chunk(&as->table, hot, cold))
		kvt_env_die(__FILE__, __LINE__, "the table is full");
	spin_unlock(&as->meta_lock);
	for (i = 0; i < KVT_SHARDS; i++) {
		struct kvt_shard *s = &as->index.shards[i];

		if (kvt_ix_crowded(s))
			as_shard_grow(as, s, 2 * (s->mask + 1));
	}
}

static void entry_fill(struct assembly *as, u32 id, const struct kvt_rec *r)
{
	struct kvt_hot *h = kvt_hot(&as->table, id);
	struct kvt_cold *c = kvt_cold(&as->table, id);

	h->log_tier = TIER;
	h->log_unit = as->seg * MEDIA_SEG_UNITS + r->unit;
	h->flags = KVT_HOT_DURABLE | (r->expiry_s ? KVT_HOT_EXPIRES : 0);
	c->csum = r->sum;
	c->owner = (u32)r->seq;
	c->touch_ms = (u32)(r->seq >> 32);
	c->sib_next = r->bytes;
	c->sib_prev = r->stored;
}

/* KVT_NIL: a newer record is there. @lost: unit of the one that is not used, if any. */
static u32 entry_make(struct assembly *as, const struct kvt_as_pending *b, u32 *lost)
{
	const struct kvt_rec *r = &b->rec;
	u32 id = as_find_hash(as, b->hash, b->ns_group, r->key);
	struct kvt_shard *s;
	struct kvt_hot *h;

	if (id != KVT_NIL) {
		*lost = kvt_hot(&as->table, id)->log_unit;
		if (as_seq(kvt_cold(&as->table, id)) < r->seq) {
			entry_fill(as, id, r);
			return id;
		}
		*lost = as->seg * MEDIA_SEG_UNITS + r->unit;
		return KVT_NIL;
	}
	id = kvt_table_alloc(&as->table);
	h = kvt_hot(&as->table, id);
	memcpy(h->key, r->key, sizeof(h->key));
	h->ns_group = b->ns_group;
	h->hash = b->hash;
	entry_fill(as, id, r);
	atomic_set(&h->ctl, KVT_READY | KVT_CTL_LOG);
	s = kvt_ix_shard(&as->index, h->hash);
	spin_lock(&s->lock);
	kvt_ix_insert(&as->index, s, id);
	spin_unlock(&s->lock);
	return id;
}

static void note_parent(struct assembly *as, u32 id, const struct kvt_rec *r)
{
	static const u8 none[KVT_KEY_BYTES];
	struct kvt_as_parent *pa;

	if (!memcmp(r->parent, none, KVT_KEY_BYTES))
		return;
	pa = as_chunk_add(as, USE_PARENTS, &as->parents, sizeof(*pa));
	pa->seq = r->seq;
	pa->id = id;
	memcpy(pa->key, r->parent, KVT_KEY_BYTES);
}

/* All records of the batch, under one hold of the lock. */
void as_flush(struct assembly *as)
{
	u32 lost[KVT_AS_BATCH], id[KVT_AS_BATCH], i;

	for (i = 0; i < as->nr_batch; i++)
		expect(as, as->batch[i].hash);
	spin_lock(&as->meta_lock);
	for (i = 0; i < as->nr_batch; i++) {
		while (!as->table.nr_free) {
			spin_unlock(&as->meta_lock);
			grow(as);
			spin_lock(&as->meta_lock);
		}
		lost[i] = KVT_NO_UNIT;
		id[i] = entry_make(as, &as->batch[i], &lost[i]);
	}
	spin_unlock(&as->meta_lock);
	for (i = 0; i < as->nr_batch; i++) {
		if (id[i] != KVT_NIL)
			note_parent(as, id[i], &as->batch[i].rec);
		if (lost[i] == KVT_NO_UNIT)
			continue;
		as->found.superseded++;
		as_owe(as, lost[i]);
	}
	as->nr_batch = 0;
}

/* A record that no kill names; its namespace's index is known. */
void as_block(struct assembly *as, u64 life, const struct kvt_rec *r)
{
	struct kvt_as_pending *b = &as->batch[as->nr_batch++];

	if (life != as->segs[as->seg].life)
		kvt_env_die(__FILE__, __LINE__, "a segment has another life by now");
	b->rec = *r;
	b->ns_group = kvt_ns_group(as->ns_idx, r->group);
	b->hash = kvt_ix_hash(&as->index, b->ns_group, r->key);
	kvt_ix_prefetch(&as->index, b->hash);
	WRITE_ONCE(as->ns_at[as->ns_idx]->used, true);
	if (as->nr_batch == KVT_AS_BATCH)
		as_flush(as);
}

/* --- when all has been read -------------------------------------------------------- */

static void make_namespaces(struct assembly *as)
{
	u32 i;

	as->pool_ns = as_take(as, USE_NS, (as->nr_ns + 1) * sizeof(*as->pool_ns));
	for (i = 1; i <= as->nr_ns; i++) {
		const struct kvt_nsdef *def = as->ns_at[i]->def;

		if (!def)
			continue;
		as->pool_ns[i].there = true;
		as->pool_ns[i].nr_groups = def->nr_groups;
		memcpy(as->pool_ns[i].group_bytes, def->group_bytes, sizeof(def->group_bytes));
	}
}

static u32 slot_bytes(u32 block_bytes)
{
	return (block_bytes + KVT_UNIT_BYTES_MIN - 1) & ~(KVT_UNIT_BYTES_MIN - 1);
}

static bool fits(const struct pool_ns *ns, const struct kvt_hot *h, const struct kvt_cold *c)
{
	u32 group = h->ns_group & (KVT_NS_GROUPS - 1);

	return ns->there && group < ns->nr_groups && c->sib_next == ns->group_bytes[group] &&
	       c->sib_prev == slot_bytes(ns->group_bytes[group]);
}

static void forget(struct assembly *as, u32 id)
{
	struct kvt_hot *h = kvt_hot(&as->table, id);
	struct kvt_shard *s = kvt_ix_shard(&as->index, h->hash);

	spin_lock(&s->lock);
	kvt_ix_remove(&as->index, s, id);
	spin_unlock(&s->lock);
	kvt_table_free(&as->table, id);
}

/* Blocks of a namespace that is there are counted, others go. */
static void check_one(struct assembly *as, u32 id)
{
	struct kvt_hot *h = kvt_hot(&as->table, id);
	struct pool_ns *ns = &as->pool_ns[h->ns_group >> KVT_NS_SHIFT];
	u32 unit = h->log_unit;

	if (fits(ns, h, kvt_cold(&as->table, id))) {
		ns->nr_blocks++;
		ns->used_bytes += slot_bytes(ns->group_bytes[h->ns_group & (KVT_NS_GROUPS - 1)]);
		as->found.blocks++;
		return;
	}
	as->found.orphans++;
	forget(as, id);
	spin_unlock(&as->meta_lock);
	as_owe(as, unit);
	spin_lock(&as->meta_lock);
}

static void clear_one(struct assembly *as, u32 id)
{
	struct kvt_cold *c = kvt_cold(&as->table, id);

	c->sib_next = KVT_NIL;
	c->sib_prev = KVT_NIL;
}

static bool ready(const struct assembly *as, u32 id)
{
	return kvt_ctl_state(kvt_ctl(kvt_hot(&as->table, id))) == KVT_READY;
}

static u32 table_end(const struct assembly *as)
{
	return as->table.nr_chunks << KVT_CHUNK_SHIFT;
}

static void each(struct assembly *as, void (*fn)(struct assembly *as, u32 id))
{
	u32 id;

	spin_lock(&as->meta_lock);
	for (id = 1; id < table_end(as); id++) {
		if (ready(as, id))
			fn(as, id);
		if (!(id % LOCK_STEP)) {
			spin_unlock(&as->meta_lock);
			spin_lock(&as->meta_lock);
		}
	}
	spin_unlock(&as->meta_lock);
}

static void link_one(struct assembly *as, const struct kvt_as_parent *pa, u32 hash)
{
	const struct kvt_hot *h = kvt_hot(&as->table, pa->id);
	const struct kvt_cold *c = kvt_cold(&as->table, pa->id);
	u32 parent;

	if (!ready(as, pa->id) || as_seq(c) != pa->seq || c->parent != KVT_NIL)
		return;
	parent = as_find_hash(as, hash, h->ns_group, pa->key);
	if (parent == KVT_NIL || parent == pa->id)
		return;
	kvt_ch_link(&as->table, pa->id, parent);
	as->found.links++;
}

/* As the driver: names are announced before they are looked for. */
static void link_some(struct assembly *as, const struct kvt_as_parent *pa, u32 nr)
{
	u32 hash[KVT_AS_BATCH], parent, i;

	for (i = 0; i < nr; i++) {
		hash[i] = kvt_ix_hash(&as->index, kvt_hot(&as->table, pa[i].id)->ns_group,
				      pa[i].key);
		kvt_ix_prefetch(&as->index, hash[i]);
	}
	for (i = 0; i < nr; i++) {
		parent = expect(as, hash[i]);
		if (parent != KVT_NIL)
			prefetch(kvt_cold(&as->table, parent));
	}
	for (i = 0; i < nr; i++)
		link_one(as, &pa[i], hash[i]);
}

static void link_all(struct assembly *as)
{
	const struct kvt_as_chunk *c;
	u32 i;

	for (c = as->parents; c; c = c->next) {
		spin_lock(&as->meta_lock);
		for (i = 0; i < c->nr; i += KVT_AS_BATCH)
			link_some(as, (const struct kvt_as_parent *)c->data + i,
				  min(c->nr - i, KVT_AS_BATCH));
		spin_unlock(&as->meta_lock);
	}
}

static void cut_cycles(struct assembly *as)
{
	struct kvt_ch_cut cut;
	bool more;

	kvt_ch_cut_start(&cut);
	do {
		spin_lock(&as->meta_lock);
		more = kvt_ch_cut_step(&as->table, &cut, CUT_STEP);
		spin_unlock(&as->meta_lock);
	} while (more);
	as->found.cycles = cut.nr;
	as->found.links -= cut.nr;
}

/* --- order of the lists ------------------------------------------------------------ */

/* Two lists by ascending sequence, through lru_next, become one. */
static u32 merge_lists(struct kvt_table *t, u32 a, u32 b)
{
	u32 head = KVT_NIL, *tail = &head, *first;

	while (a != KVT_NIL && b != KVT_NIL) {
		first = as_seq(kvt_cold(t, b)) < as_seq(kvt_cold(t, a)) ? &b : &a;
		*tail = *first;
		tail = &kvt_cold(t, *tail)->lru_next;
		*first = *tail;
	}
	*tail = a != KVT_NIL ? a : b;
	return head;
}

/* @list[i] has 2^i blocks, or none. */
static void sort_add(struct assembly *as, u32 *list, u32 id)
{
	u32 i;

	for (i = 0; list[i] != KVT_NIL; i++) {
		id = merge_lists(&as->table, list[i], id);
		list[i] = KVT_NIL;
	}
	list[i] = id;
}

static void list_all(struct assembly *as, u32 id)
{
	u64 seq, last = 0;
	u32 next;

	/* As the driver: none is to look as if it were listed before it is. */
	for (next = id; next != KVT_NIL; next = kvt_cold(&as->table, next)->lru_next) {
		seq = as_seq(kvt_cold(&as->table, next));
		if (seq <= last)
			kvt_env_die(__FILE__, __LINE__, "not in the order in which they were written");
		last = seq;
		kvt_cold(&as->table, next)->touch_ms = NOW_MS - 1;
	}
	for (; id != KVT_NIL; id = next) {
		struct kvt_cold *c = kvt_cold(&as->table, id);

		next = c->lru_next;
		c->owner = 0;
		c->touch_ms = NOW_MS;
		spin_lock(&as->meta_lock);
		as->policy.ops->insert(&as->policy, TIER, id);
		spin_unlock(&as->meta_lock);
	}
}

static void put_in_order(struct assembly *as)
{
	u32 bytes = KVT_TIERS * 32 * sizeof(u32), *lists = as_take(as, USE_ORDER, bytes);
	u32 id, all = KVT_NIL, i;

	as->policy.now_ms = NOW_MS;
	for (id = 1; id < table_end(as); id++) {
		if (ready(as, id))
			sort_add(as, lists, id);
	}
	for (i = 0; i < 32; i++)
		all = merge_lists(&as->table, lists[i], all);
	list_all(as, all);
	as_give(as, USE_ORDER, lists, bytes);
}

/* --- segments ---------------------------------------------------------------------- */

/* How many blocks are in each; or, with room for them, which. */
static void fill_all(struct assembly *as, struct kvt_seg *segs, bool ids)
{
	u32 id;

	for (id = 1; id < table_end(as); id++) {
		const struct kvt_hot *h = kvt_hot(&as->table, id);
		struct kvt_seg *s;

		if (!ready(as, id))
			continue;
		s = &segs[kvt_log_seg_of(&as->log, h->log_unit)];
		if (ids) {
			s->ids[s->nr_ids++] = id;
			continue;
		}
		s->max_ids++;
		s->live += slot_bytes(as->pool_ns[h->ns_group >> KVT_NS_SHIFT]
				      .group_bytes[h->ns_group & (KVT_NS_GROUPS - 1)]) / MEDIA_UNIT;
	}
}

static void restore_log(struct assembly *as, struct kvt_seg *segs)
{
	u32 i;

	spin_lock(&as->meta_lock);
	for (i = 0; i < MEDIA_SEGS_ALL; i++) {
		const struct kvt_as_seg *s = &as->segs[i];

		if (!s->life || s->ended)
			continue;
		segs[i].state = segs[i].live ? KVT_SEG_SEALED : KVT_SEG_EMPTY;
		segs[i].fill = s->found.fill;
		segs[i].placed = s->placed;
		kvt_log_restore(&as->log, i, &segs[i]);
	}
	spin_unlock(&as->meta_lock);
}

static void make_segments(struct assembly *as)
{
	size_t bytes = MEDIA_SEGS_ALL * sizeof(struct kvt_seg);
	struct kvt_seg *segs = as_take(as, USE_ORDER, bytes);
	u32 i;

	fill_all(as, segs, false);
	for (i = 0; i < MEDIA_SEGS_ALL; i++) {
		if (segs[i].max_ids)
			segs[i].ids = as_take(as, USE_SEGS, segs[i].max_ids * sizeof(u32));
	}
	fill_all(as, segs, true);
	restore_log(as, segs);
	as_give(as, USE_ORDER, segs, bytes);
}

/* All has been read: a pool is made of it. */
void as_merge(struct assembly *as)
{
	double since = as_now_s();

	make_namespaces(as);
	each(as, check_one);
	each(as, clear_one);
	as_step_done(as, STEP_CHECK, &since);
	link_all(as);
	as_step_done(as, STEP_LINK, &since);
	cut_cycles(as);
	as_step_done(as, STEP_CUT, &since);
	put_in_order(as);
	as_step_done(as, STEP_ORDER, &since);
	make_segments(as);
	as_step_done(as, STEP_SEGMENTS, &since);
}
