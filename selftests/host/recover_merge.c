// SPDX-License-Identifier: GPL-2.0
/*
 * From records to a pool that works. See recover_assemble.h, core/kvt_merge.h for how, and
 * driver/kvt_assemble_merge.c for what this follows.
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

static void note_parent(struct assembly *as, u32 id, const struct kvt_rec *r)
{
	struct kvt_mg_parent pa;

	if (kvt_mg_parent_of(r, id, &pa))
		*(struct kvt_mg_parent *)as_chunk_add(as, USE_PARENTS, &as->parents,
						      sizeof(pa)) = pa;
}

/* All records of the batch, under one hold of the lock. */
void as_flush(struct assembly *as)
{
	struct kvt_mg_place lost[KVT_MG_BATCH];
	u32 id[KVT_MG_BATCH], i;

	kvt_mg_expect(&as->index, as->batch, as->nr_batch);
	spin_lock(&as->meta_lock);
	for (i = 0; i < as->nr_batch; i++) {
		while (!as->table.nr_free) {
			spin_unlock(&as->meta_lock);
			grow(as);
			spin_lock(&as->meta_lock);
		}
		id[i] = kvt_mg_enter(&as->table, &as->index, &as->batch[i], &lost[i]);
	}
	spin_unlock(&as->meta_lock);
	for (i = 0; i < as->nr_batch; i++) {
		if (id[i] != KVT_NIL)
			note_parent(as, id[i], &as->batch[i].rec);
		if (lost[i].tier == KVT_NO_TIER)
			continue;
		as->found.superseded++;
		as_owe(as, lost[i].unit);
	}
	as->nr_batch = 0;
}

/* A record that no kill names; its namespace's index is known. */
void as_block(struct assembly *as, u64 life, const struct kvt_rec *r)
{
	struct kvt_mg_block *b = &as->batch[as->nr_batch++];

	if (life != as->life.segs[as->seg].life)
		kvt_env_die(__FILE__, __LINE__, "a segment has another life by now");
	b->rec = *r;
	b->ns_group = kvt_ns_group(as->ns_idx, r->group);
	b->expire_s = 0;
	b->at.tier = TIER;
	b->at.unit = as->seg * MEDIA_SEG_UNITS + r->unit;
	b->hash = kvt_ix_hash(&as->index, b->ns_group, r->key);
	kvt_ix_prefetch(&as->index, b->hash);
	WRITE_ONCE(as->ns_at[as->ns_idx]->used, true);
	if (as->nr_batch == KVT_MG_BATCH)
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

	return ns->there && group < ns->nr_groups &&
	       kvt_mg_fits(c, ns->group_bytes[group], slot_bytes(ns->group_bytes[group]));
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
	kvt_mg_forget(&as->table, &as->index, id);
	spin_unlock(&as->meta_lock);
	as_owe(as, unit);
	spin_lock(&as->meta_lock);
}

static void clear_one(struct assembly *as, u32 id)
{
	kvt_mg_clear(kvt_cold(&as->table, id));
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

static void link_all(struct assembly *as)
{
	const struct kvt_as_chunk *c;
	u32 i;

	for (c = as->parents; c; c = c->next) {
		spin_lock(&as->meta_lock);
		for (i = 0; i < c->nr; i += KVT_MG_BATCH)
			as->found.links += kvt_mg_link_some(&as->table, &as->index,
					(const struct kvt_mg_parent *)c->data + i,
					min(c->nr - i, KVT_MG_BATCH));
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

static u64 nr_pauses;

/* Nobody else wants the processor. */
static void no_pause(void)
{
	nr_pauses++;
}

/* The low half of the sequence is there until the block is taken, and all are this close. */
static void check_order(struct assembly *as, u32 id, u32 *last, bool first)
{
	u32 low = kvt_cold(&as->table, id)->owner;

	if (!first && (s32)(low - *last) <= 0)
		kvt_env_die(__FILE__, __LINE__, "not in the order in which they were written");
	*last = low;
}

static void put_in_order(struct assembly *as)
{
	struct kvt_mg_sorter *s = as_take(as, USE_ORDER, sizeof(*s));
	u32 id, next, last = 0, head;

	kvt_mg_sort_start(s, no_pause);
	as->policy.now_ms = NOW_MS;
	for (id = 1; id < table_end(as); id++) {
		if (ready(as, id))
			kvt_mg_sort_add(s, &as->table, id);
	}
	head = kvt_mg_sorted(s, &as->table, TIER, NOW_MS);
	for (id = head; id != KVT_NIL; id = next) {
		check_order(as, id, &last, id == head);
		next = kvt_mg_take(&as->table, id, NOW_MS);
		spin_lock(&as->meta_lock);
		as->policy.ops->insert(&as->policy, TIER, id);
		spin_unlock(&as->meta_lock);
	}
	if (!nr_pauses)
		kvt_env_die(__FILE__, __LINE__, "nobody else would get the processor");
	as_give(as, USE_ORDER, s, sizeof(*s));
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
		kvt_mg_tally(s, id, slot_bytes(as->pool_ns[h->ns_group >> KVT_NS_SHIFT]
					       .group_bytes[h->ns_group & (KVT_NS_GROUPS - 1)]) /
				    MEDIA_UNIT, ids);
	}
}

static void restore_log(struct assembly *as, struct kvt_seg *segs)
{
	u32 i;

	spin_lock(&as->meta_lock);
	for (i = 0; i < MEDIA_SEGS_ALL; i++) {
		if (kvt_life_counts(&as->life.segs[i]))
			kvt_mg_restore(&as->log, i, &as->life.segs[i], &segs[i]);
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
