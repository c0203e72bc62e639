// SPDX-License-Identifier: GPL-2.0
/*
 * From what was read to a pool that works; see kvt_assemble.h for the model.
 *
 * In order: namespaces are made; blocks that do not fit one are taken out; parents
 * are linked, and cycles cut; blocks are put on their tier's list by sequence, so
 * that what was written last goes last; segments get their state.
 *
 * How that is done is the core's, see core/kvt_merge.h.
 *
 * Invariant: each record that is not behind an entry and not dead on the media is on
 * some list of owed kills. They are handed to the writers before anybody can open
 * the pool: a block that is dropped after that is dropped with all its older records.
 */
#include <linux/sched/signal.h>
#include <linux/vmalloc.h>

#include "kvt_assemble.h"

static u32 kvt_as_member_of(const struct kvt_assembly *as, u32 tier)
{
	u32 i = 0;

	while (as->members[i].tier->id != tier)
		i++;
	return i;
}

/*
 * Realtime to the pool's clock, never too early. What is over stays over, and 0 is
 * for ever.
 */
static u32 kvt_as_expiry(u64 expiry_s)
{
	u64 at_ns = min_t(u64, expiry_s, KTIME_SEC_MAX) * NSEC_PER_SEC;
	u64 now_ns = ktime_get_real_ns();
	u64 left_s = at_ns > now_ns ? div_u64(at_ns - now_ns, NSEC_PER_SEC) : 0;
	u32 at;

	if (at_ns <= now_ns)
		at = kvt_now_s() - 1;
	else	/* Two roundings, by less than a second each. */
		at = kvt_now_s() + (u32)min_t(u64, left_s, S32_MAX / 2) + 2;
	return at ?: 1;
}

static int kvt_as_owe_unit(struct kvt_as_worker *w, u32 tier, u32 unit)
{
	u32 member = kvt_as_member_of(w->as, tier);
	u32 seg_units = w->as->members[member].super.geo.seg_units;

	return kvt_as_owe(w, member, unit / seg_units, unit % seg_units);
}

static void kvt_as_note_parent(struct kvt_as_worker *w, u32 id, const struct kvt_rec *rec)
{
	struct kvt_mg_parent parent, *pa;

	if (!kvt_mg_parent_of(rec, id, &parent))
		return;
	pa = kvt_as_chunk_add(&w->parents, sizeof(*pa));
	if (pa)
		*pa = parent;
	else
		kvt_as_fail(w->as, -ENOMEM);
}

/* Enter all that wait. @id, @lost: of each. */
static int kvt_as_enter_all(struct kvt_as_worker *w, u32 *id, struct kvt_mg_place *lost)
{
	struct kvt_pool *p = w->as->p;
	int err = 0;
	u32 i;

	kvt_mg_expect(&p->index, w->batch, w->nr_batch);
	spin_lock(&p->meta_lock);
	for (i = 0; i < w->nr_batch && !err; i++) {
		lost[i].tier = KVT_NO_TIER;
		while (!p->table.nr_free && !err) {
			spin_unlock(&p->meta_lock);
			err = kvt_pool_grow(p, 1);
			spin_lock(&p->meta_lock);
		}
		if (!err)
			id[i] = kvt_mg_enter(&p->table, &p->index, &w->batch[i], &lost[i]);
	}
	spin_unlock(&p->meta_lock);
	return err;
}

/**
 * kvt_as_flush() - enter the blocks that wait for that
 * @w: worker, still at work on their segment
 */
void kvt_as_flush(struct kvt_as_worker *w)
{
	struct kvt_mg_place lost[KVT_MG_BATCH];
	u32 id[KVT_MG_BATCH], i, nr_lost = 0;
	int err = kvt_as_enter_all(w, id, lost);

	for (i = 0; i < w->nr_batch && !err; i++) {
		if (id[i] != KVT_NIL)
			kvt_as_note_parent(w, id[i], &w->batch[i].rec);
		if (lost[i].tier == KVT_NO_TIER)
			continue;
		nr_lost++;
		err = kvt_as_owe_unit(w, lost[i].tier, lost[i].unit);
	}
	w->nr_batch = 0;
	if (nr_lost) {
		spin_lock(&w->as->lock);
		w->as->out->nr_superseded += nr_lost;
		spin_unlock(&w->as->lock);
	}
	if (err)
		kvt_as_fail(w->as, err);
}

/* A block that no kill names. */
static void kvt_as_live(struct kvt_as_worker *w, u32 ns_group, const struct kvt_rec *rec)
{
	struct kvt_mg_block *b = &w->batch[w->nr_batch++];

	b->rec = *rec;
	b->ns_group = ns_group;
	b->expire_s = rec->expiry_s ? kvt_as_expiry(rec->expiry_s) : 0;
	b->at.tier = w->m->tier->id;
	b->at.unit = w->seg * w->m->super.geo.seg_units + rec->unit;
	b->hash = kvt_ix_hash(&w->as->p->index, ns_group, rec->key);
	kvt_ix_prefetch(&w->as->p->index, b->hash);
	WRITE_ONCE(w->as->ns_at[w->ns_idx]->used, true);
	if (w->nr_batch == KVT_MG_BATCH)
		kvt_as_flush(w);
}

/* An orphan, or a record that a kill names. */
static int kvt_as_unused(struct kvt_as_worker *w, u32 unit, bool dead)
{
	spin_lock(&w->as->lock);
	if (dead)
		w->as->out->nr_dead++;
	else
		w->as->out->nr_orphans++;
	spin_unlock(&w->as->lock);
	return dead ? 0 : kvt_as_owe(w, w->m - w->as->members, w->seg, unit);
}

/*
 * The index of its namespace. Not of what is dead: namespaces that ended are many, and
 * nobody wants to know of them.
 */
static u32 kvt_as_ns_of(struct kvt_as_worker *w, const struct kvt_rec *rec)
{
	if (!w->ns_idx || w->ns_id != rec->ns) {
		w->ns_id = rec->ns;
		w->ns_idx = kvt_as_ns_valid(w->as, rec->ns) ? kvt_as_ns_index(w->as, rec->ns) : 0;
	}
	return w->ns_idx;
}

/**
 * kvt_as_block() - a record of a block was found
 * @w:    worker, at work on the segment
 * @life: of the segment
 * @rec:  record
 */
void kvt_as_block(struct kvt_as_worker *w, u64 life, const struct kvt_rec *rec)
{
	struct kvt_life_seg *s = &w->m->life.segs[w->seg];
	int err = 0;

	s->placed += kvt_geo_units(&w->m->super.geo, rec->stored);
	if (life != s->life) {
		kvt_as_fail(w->as, -EIO);
		return;
	}
	if (kvt_life_is_dead(&w->m->life, w->seg, rec->unit))
		err = kvt_as_unused(w, rec->unit, true);
	else if (kvt_as_ns_unknown(w->as, rec->ns))
		kvt_as_refuse(w, -EUCLEAN);
	else if (!kvt_as_ns_of(w, rec) || !kvt_mg_named(rec))
		err = kvt_as_unused(w, rec->unit, false);
	else
		kvt_as_live(w, kvt_ns_group(w->ns_idx, rec->group), rec);
	if (err)
		kvt_as_fail(w->as, err);
}

/* --- when all has been read -------------------------------------------------- */

/* Of those with blocks, or of those without, as many as there is room for. */
static int kvt_as_make_some(struct kvt_assembly *as, bool used)
{
	u32 i, left_out = 0;
	int err = 0;

	for (i = 1; i <= as->nr_ns && !err; i++) {
		const struct kvt_nsdef *def = as->ns_at[i]->def;

		if (as->ns_at[i]->used != used || !def || !kvt_ns_sane(def))
			continue;
		err = kvt_ns_adopt(as->p, i, def);
		if (err == -ENOSPC) {
			left_out++;
			err = 0;
			continue;
		}
		as->out->nr_namespaces++;
		as->out->nr_unclaimed += !(def->flags & KVT_NSF_SECRET);
	}
	if (left_out)
		pr_warn("kvtier%u: no room for %u namespaces %s blocks\n", as->p->id, left_out,
			used ? "with" : "without");
	return err;
}

static int kvt_as_make_namespaces(struct kvt_assembly *as)
{
	struct kvt_pool *p = as->p;
	int err;

	mutex_lock(&p->conf_lock);
	/* The one below is the last that may have been given. */
	p->next_ns_id = max(p->ns_limit, 1) - 1;
	err = kvt_as_make_some(as, true) ?: kvt_as_make_some(as, false);
	mutex_unlock(&p->conf_lock);
	return err;
}

static bool kvt_as_fits(struct kvt_pool *p, const struct kvt_hot *h, const struct kvt_cold *c)
{
	const struct kvt_ns *ns = kvt_ns_of(p, h->ns_group);
	const struct kvt_group *g;

	if (!ns || (h->ns_group & 15) >= ns->nr_groups)
		return false;
	g = &ns->group[h->ns_group & 15];
	return kvt_mg_fits(c, g->block_bytes, kvt_slot_bytes(g));
}

static void kvt_as_account(struct kvt_assembly *as, u32 id)
{
	struct kvt_pool *p = as->p;
	struct kvt_hot *h = kvt_hot(&p->table, id);
	struct kvt_ns *ns = kvt_ns_of(p, h->ns_group);

	ns->nr_blocks++;
	ns->nr_live++;
	kvt_ns_use(ns, kvt_slot_bytes(kvt_group_of(p, h->ns_group)));
	kvt_tier_count_block(p, p->tiers[h->log_tier], h->ns_group, 1);
	as->out->nr_blocks++;
	as->out->nr_expired += kvt_block_expired(p, id);
}

/* Call @fn for each block, with the meta lock held. */
static int kvt_as_each(struct kvt_assembly *as, int (*fn)(struct kvt_assembly *as, u32 id))
{
	struct kvt_pool *p = as->p;
	u32 end = p->table.nr_chunks << KVT_CHUNK_SHIFT, id;
	int err = 0;

	spin_lock(&p->meta_lock);
	for (id = 1; id < end && !err; id++) {
		if (kvt_ctl_state(kvt_ctl(kvt_hot(&p->table, id))) == KVT_READY)
			err = fn(as, id);
		if (!(id % 1024)) {
			spin_unlock(&p->meta_lock);
			cond_resched();
			if (fatal_signal_pending(current))
				err = -EINTR;
			spin_lock(&p->meta_lock);
		}
	}
	spin_unlock(&p->meta_lock);
	return err;
}

/* The lock may be dropped meanwhile: the pool is ours alone by now. */
static int kvt_as_check_one(struct kvt_assembly *as, u32 id)
{
	struct kvt_pool *p = as->p;
	struct kvt_hot *h = kvt_hot(&p->table, id);
	u32 tier = h->log_tier, unit = h->log_unit;
	int err;

	if (kvt_as_fits(p, h, kvt_cold(&p->table, id))) {
		kvt_as_account(as, id);
		return 0;
	}
	as->out->nr_orphans++;
	kvt_mg_forget(&p->table, &p->index, id);
	spin_unlock(&p->meta_lock);
	err = kvt_as_owe_unit(&as->workers[0], tier, unit);
	spin_lock(&p->meta_lock);
	return err;
}

static int kvt_as_clear_one(struct kvt_assembly *as, u32 id)
{
	kvt_mg_clear(kvt_cold(&as->p->table, id));
	return 0;
}

static void kvt_as_cut_cycles(struct kvt_assembly *as)
{
	struct kvt_ch_cut cut;
	bool more;

	kvt_ch_cut_start(&cut);
	do {
		spin_lock(&as->p->meta_lock);
		more = kvt_ch_cut_step(&as->p->table, &cut, 4096);
		spin_unlock(&as->p->meta_lock);
		cond_resched();
	} while (more);
	as->out->nr_cycles = cut.nr;
}

static void kvt_as_link_all(struct kvt_assembly *as)
{
	struct kvt_pool *p = as->p;
	struct kvt_as_chunk *c;
	u32 i, k;

	for (i = 0; i < as->nr_workers; i++) {
		for (c = as->workers[i].parents; c; c = c->next) {
			spin_lock(&as->p->meta_lock);
			for (k = 0; k < c->nr; k += KVT_MG_BATCH)
				kvt_mg_link_some(&p->table, &p->index,
						 (struct kvt_mg_parent *)c->data + k,
						 min(c->nr - k, KVT_MG_BATCH));
			spin_unlock(&as->p->meta_lock);
			cond_resched();
		}
	}
	kvt_as_cut_cycles(as);
}

/* --- order of the lists -------------------------------------------------------- */

static void kvt_as_pause(void)
{
	cond_resched();
}

static void kvt_as_list_tier(struct kvt_pool *p, struct kvt_mg_sorter *s, u32 tier, u32 now_ms)
{
	u32 id = kvt_mg_sorted(s, &p->table, tier, now_ms), next;

	for (; id != KVT_NIL; id = next) {
		next = kvt_mg_take(&p->table, id, now_ms);
		spin_lock(&p->meta_lock);
		p->policy.ops->insert(&p->policy, tier, id);
		spin_unlock(&p->meta_lock);
		if (!(id % 1024))
			cond_resched();
	}
}

static int kvt_as_order(struct kvt_assembly *as)
{
	struct kvt_mg_sorter *s = kmalloc(sizeof(*s), GFP_KERNEL);
	struct kvt_pool *p = as->p;
	u32 end = p->table.nr_chunks << KVT_CHUNK_SHIFT, id, now_ms = kvt_now_ms();

	if (!s)
		return -ENOMEM;
	kvt_mg_sort_start(s, kvt_as_pause);
	for (id = 1; id < end; id++) {
		if (kvt_ctl_state(kvt_ctl(kvt_hot(&p->table, id))) == KVT_READY)
			kvt_mg_sort_add(s, &p->table, id);
		if (!(id % 1024))
			cond_resched();
	}
	for (id = 0; id < KVT_TIERS; id++)
		kvt_as_list_tier(p, s, id, now_ms);
	kfree(s);
	return 0;
}

/* --- segments ---------------------------------------------------------------- */

static u32 kvt_as_seg_units(struct kvt_pool *p, const struct kvt_hot *h)
{
	return DIV_ROUND_UP(kvt_slot_bytes(kvt_group_of(p, h->ns_group)),
			    p->tiers[h->log_tier]->unit_bytes);
}

/* Two rounds over all blocks: how many there are in each segment, then which. */
struct kvt_as_fill {
	struct kvt_seg *segs[KVT_TIERS];
	bool ids;
};

static void kvt_as_fill_one(struct kvt_pool *p, struct kvt_as_fill *f, u32 id)
{
	const struct kvt_hot *h = kvt_hot(&p->table, id);
	struct kvt_seg *s;

	s = &f->segs[h->log_tier][kvt_log_seg_of(&p->tiers[h->log_tier]->log, h->log_unit)];
	kvt_mg_tally(s, id, kvt_as_seg_units(p, h), f->ids);
}

static void kvt_as_fill_all(struct kvt_pool *p, struct kvt_as_fill *f)
{
	u32 end = p->table.nr_chunks << KVT_CHUNK_SHIFT, id;

	for (id = 1; id < end; id++) {
		if (kvt_ctl_state(kvt_ctl(kvt_hot(&p->table, id))) == KVT_READY)
			kvt_as_fill_one(p, f, id);
		if (!(id % 1024))
			cond_resched();
	}
}

static int kvt_as_fill_alloc(struct kvt_as_member *m, struct kvt_seg *segs)
{
	u32 i;

	for (i = 0; i < m->super.geo.nr_segs; i++) {
		if (!segs[i].max_ids)
			continue;
		/* Large enough for kvt_defer_free(). */
		segs[i].ids = kvmalloc(max(segs[i].max_ids * sizeof(u32), sizeof(void *)),
				       GFP_KERNEL);
		if (!segs[i].ids)
			return -ENOMEM;
	}
	return 0;
}

/* Its log and its writer take over what was found. The ids are the log's then. */
static void kvt_as_restore(struct kvt_assembly *as, struct kvt_as_member *m,
			   struct kvt_seg *segs)
{
	struct kvt_tier *t = m->tier;
	u32 i;

	spin_lock(&as->p->meta_lock);
	for (i = 0; i < m->super.geo.nr_segs; i++) {
		const struct kvt_life_seg *s = &m->life.segs[i];

		if (kvt_life_counts(s))
			kvt_mg_restore(&t->log, i, s, &segs[i]);
		kvt_wlog_restore(&t->mlog->w, i, &s->found, s->ended);
	}
	kvt_wlog_restored(&t->mlog->w, &m->super, as->max_seq);
	t->mlog->super = m->super;
	t->mlog->refill = true;
	spin_unlock(&as->p->meta_lock);
}

static void kvt_as_fill_free(struct kvt_assembly *as, struct kvt_as_fill *f)
{
	u32 i, k;

	for (i = 0; i < as->nr_members; i++) {
		struct kvt_seg *segs = f->segs[as->members[i].tier->id];

		for (k = 0; segs && k < as->members[i].super.geo.nr_segs; k++)
			kvfree(segs[k].ids);
		kvfree(segs);
	}
}

static int kvt_as_segments(struct kvt_assembly *as)
{
	struct kvt_as_fill f = {};
	int err = 0;
	u32 i;

	for (i = 0; i < as->nr_members; i++) {
		struct kvt_seg **segs = &f.segs[as->members[i].tier->id];

		*segs = kvcalloc(as->members[i].super.geo.nr_segs, sizeof(**segs), GFP_KERNEL);
		if (!*segs)
			err = -ENOMEM;
	}
	if (!err)
		kvt_as_fill_all(as->p, &f);
	for (i = 0; i < as->nr_members && !err; i++)
		err = kvt_as_fill_alloc(&as->members[i], f.segs[as->members[i].tier->id]);
	if (!err) {
		f.ids = true;
		kvt_as_fill_all(as->p, &f);
		for (i = 0; i < as->nr_members; i++)
			kvt_as_restore(as, &as->members[i], f.segs[as->members[i].tier->id]);
	}
	kvt_as_fill_free(as, &f);
	return err;
}

/**
 * kvt_as_merge() - make a pool of what was read
 * @as: assembly after kvt_as_read_all()
 *
 * Nothing is written to any member.
 * Return: 0; -ENOMEM; -EINTR.
 */
int kvt_as_merge(struct kvt_assembly *as)
{
	int err;

	err = kvt_as_make_namespaces(as) ?: kvt_as_each(as, kvt_as_check_one) ?:
	      kvt_as_each(as, kvt_as_clear_one);
	if (err)
		return err;
	kvt_as_link_all(as);
	err = kvt_as_order(as) ?: kvt_as_segments(as);
	/* All that were free may have been used: see kvt_table_take(). */
	if (!err)
		kvt_pool_top_up(as->p, 0);
	return err;
}

/* --- kills for what is not used ------------------------------------------------ */

/* As many as the ring takes. False: it is full. */
static bool kvt_as_kill_some(struct kvt_assembly *as, struct kvt_as_chunk *c)
{
	bool full = false;

	spin_lock(&as->p->meta_lock);
	while (c->nr && !full) {
		const struct kvt_as_owed *o = (struct kvt_as_owed *)c->data + c->nr - 1;
		struct kvt_as_member *m = &as->members[o->member];

		full = m->tier->state != KVTIER_TIER_FAILED &&
		       kvt_wlog_kill(&m->tier->mlog->w, o->seg, o->unit, m->life.segs[o->seg].life);
		c->nr -= !full;
	}
	spin_unlock(&as->p->meta_lock);
	return !full;
}

static int kvt_as_kill_all(struct kvt_assembly *as, struct kvt_as_chunk *c)
{
	u32 i;

	while (!kvt_as_kill_some(as, c)) {
		for (i = 0; i < as->nr_members; i++)
			kvt_mlog_kick(as->members[i].tier->mlog);
		schedule_timeout_killable(max(HZ / 100, 1));
		if (fatal_signal_pending(current))
			return -EINTR;
	}
	return 0;
}

/**
 * kvt_as_settle() - hand the kills of all that is not used to the writers
 * @as: assembly whose members are started
 *
 * Waits for the writers when these are many.
 * Return: 0 or -EINTR.
 */
int kvt_as_settle(struct kvt_assembly *as)
{
	struct kvt_as_chunk *c;
	int err = 0;
	u32 i;

	for (i = 0; i < as->nr_workers; i++) {
		for (c = as->workers[i].owed; c && !err; c = c->next)
			err = kvt_as_kill_all(as, c);
	}
	return err;
}
