// SPDX-License-Identifier: GPL-2.0
/*
 * Reading the segments of all members; see kvt_assemble.h for the model.
 *
 * Workers take segments by number, round robin over the members, so that all devices
 * are busy at a time. A segment is one worker's as long as it is worked on.
 *
 * A member that must not be used (core/kvt_life.h) fails the assembly.
 */
#include <linux/sched/signal.h>
#include <linux/vmalloc.h>

#include "kvt_assemble.h"

/* The first error counts; all workers stop. */
void kvt_as_fail(struct kvt_assembly *as, int err)
{
	spin_lock(&as->lock);
	if (!as->err)
		WRITE_ONCE(as->err, err);
	spin_unlock(&as->lock);
}

/**
 * kvt_as_chunk_add() - room for one more entry of a list
 * @list:  list; the caller's alone
 * @bytes: of an entry, the same for all of a list
 * Return: entry, or NULL: no memory. May sleep.
 */
void *kvt_as_chunk_add(struct kvt_as_chunk **list, u32 bytes)
{
	u32 max = (KVT_AS_CHUNK_BYTES - sizeof(struct kvt_as_chunk)) / bytes;
	struct kvt_as_chunk *c = *list;

	if (!c || c->nr == max) {
		c = kvmalloc(KVT_AS_CHUNK_BYTES, GFP_KERNEL);
		if (!c)
			return NULL;
		c->next = *list;
		c->nr = 0;
		*list = c;
	}
	return c->data + c->nr++ * bytes;
}

static void kvt_as_chunks_free(struct kvt_as_chunk *c)
{
	struct kvt_as_chunk *next;

	for (; c; c = next) {
		next = c->next;
		kvfree(c);
	}
}

/**
 * kvt_as_owe() - remember a record that is not used
 * @w:      worker
 * @member: where it is
 * @seg:    likewise
 * @unit:   within the segment
 * Return: 0 or -ENOMEM.
 */
int kvt_as_owe(struct kvt_as_worker *w, u32 member, u32 seg, u32 unit)
{
	struct kvt_as_owed *o = kvt_as_chunk_add(&w->owed, sizeof(*o));

	if (!o) {
		kvt_as_fail(w->as, -ENOMEM);
		return -ENOMEM;
	}
	o->member = member;
	o->seg = seg;
	o->unit = unit;
	return 0;
}

static struct kvt_as_ns **kvt_as_ns_find(struct kvt_assembly *as, u64 id)
{
	struct kvt_as_ns **at;

	at = &as->ns[siphash_1u64(id, &as->ns_key) % KVT_AS_NS_BUCKETS];
	while (*at && (*at)->id != id)
		at = &(*at)->next;
	return at;
}

/* Enter @fresh under @id unless it is there, or there are @max. Returns what is. */
static struct kvt_as_ns *kvt_as_ns_enter(struct kvt_assembly *as, u64 id,
					 struct kvt_as_ns **fresh, u32 max)
{
	struct kvt_as_ns **at = kvt_as_ns_find(as, id);

	if (!*at && *fresh && as->nr_ns < max) {
		*at = *fresh;
		*fresh = NULL;
		(*at)->id = id;
		(*at)->idx = ++as->nr_ns;
		as->ns_at[(*at)->idx] = *at;
	}
	return *at;
}

/**
 * kvt_as_ns_index() - index of a namespace in the pool
 * @as: assembly
 * @id: namespace that some block names
 * Return: index, or 0: the assembly has failed. May sleep.
 */
u32 kvt_as_ns_index(struct kvt_assembly *as, u64 id)
{
	struct kvt_as_ns *fresh = NULL, *ns;
	u32 idx;

	spin_lock(&as->lock);
	ns = kvt_as_ns_enter(as, id, &fresh, KVT_AS_NS_MAX);
	idx = ns ? ns->idx : 0;
	spin_unlock(&as->lock);
	if (idx)
		return idx;
	fresh = kzalloc(sizeof(*fresh), GFP_KERNEL);
	if (!fresh) {
		kvt_as_fail(as, -ENOMEM);
		return 0;
	}
	spin_lock(&as->lock);
	ns = kvt_as_ns_enter(as, id, &fresh, KVT_AS_NS_MAX);
	idx = ns ? ns->idx : 0;
	spin_unlock(&as->lock);
	kfree(fresh);
	if (!idx)
		kvt_as_fail(as, -ENOSPC);
	return idx;
}

/**
 * kvt_as_ns_define() - a definition was found
 * @as:  assembly
 * @def: the newest of an id counts. May sleep
 *
 * That of a namespace which no block has named yet may find no room: kvt_as_read_names().
 */
void kvt_as_ns_define(struct kvt_assembly *as, const struct kvt_nsdef *def)
{
	struct kvt_as_ns *fresh = kzalloc(sizeof(*fresh), GFP_KERNEL), *ns;
	struct kvt_nsdef *copy = NULL;
	bool gone = def->flags & KVT_NSF_GONE;

	if (!kvt_as_ns_valid(as, def->id)) {
		kfree(fresh);
		return;
	}
	if (!gone)
		copy = kmemdup(def, sizeof(*def), GFP_KERNEL);
	if (!fresh || (!gone && !copy)) {
		kvt_as_fail(as, -ENOMEM);
		goto free;
	}
	spin_lock(&as->lock);
	ns = kvt_as_ns_enter(as, def->id, &fresh, as->ns_room);
	if (ns && kvt_mg_def_counts(ns->seq, def)) {
		swap(ns->def, copy);
		ns->seq = def->seq;
	}
	as->ns_left_out |= !ns;
	spin_unlock(&as->lock);
free:
	kfree(fresh);
	kfree(copy);
}

static int kvt_as_read(void *ctx, u64 byte, void *buf, u32 len)
{
	return kvt_mlog_read(((struct kvt_as_worker *)ctx)->m->tier, byte, buf, len);
}

/* A device of which some part cannot be read, or cannot be so, is not used. */
void kvt_as_refuse(struct kvt_as_worker *w, int err)
{
	w->m->dev.error = err;
	kvt_as_fail(w->as, err);
}

static struct kvt_recover kvt_as_how(struct kvt_as_worker *w, const struct kvt_recover_sink *sink,
				     bool entries_only)
{
	return (struct kvt_recover) {
		.geo = &w->m->super.geo,
		.read = kvt_as_read,
		.sink = sink,
		.ctx = w,
		.buf = w->buf,
		.buf_bytes = KVT_AS_BUF_BYTES,
		.entries_only = entries_only,
	};
}

static void kvt_as_pass_lives(struct kvt_as_worker *w)
{
	struct kvt_recover r = kvt_as_how(w, NULL, true);

	if (kvt_life_read(&w->m->life, &r, w->seg))
		kvt_as_refuse(w, -EIO);
}

static void kvt_as_no_block(void *ctx, u32 seg, u64 life, const struct kvt_rec *r)
{
}

static void kvt_as_on_kill(void *ctx, u32 seg, const struct kvt_kill *k)
{
	struct kvt_as_worker *w = ctx;

	w->nr_dead += kvt_life_kill(&w->m->life, k);
}

static const struct kvt_recover_sink kvt_as_kill_sink = {
	.block = kvt_as_no_block,
	.kill = kvt_as_on_kill,
};

static void kvt_as_on_block(void *ctx, u32 seg, u64 life, const struct kvt_rec *r)
{
	kvt_as_block(ctx, life, r);
}

static void kvt_as_on_ns(void *ctx, u32 seg, const struct kvt_nsdef *d)
{
	struct kvt_as_worker *w = ctx;

	if (kvt_as_ns_unknown(w->as, d->id))
		kvt_as_refuse(w, -EUCLEAN);
	else
		kvt_as_ns_define(w->as, d);
}

/*
 * What verifies but has a bad payload is killed: a footer made later would vouch for it.
 * Of other records the unit is not known for certain, and may be that of a good one;
 * they stay what they are.
 */
static void kvt_as_on_bad(void *ctx, u32 seg, u64 life, u32 unit, enum kvt_bad why)
{
	struct kvt_as_worker *w = ctx;

	if (why == KVT_BAD_PAYLOAD || why == KVT_BAD_IO)
		kvt_as_owe(w, w->m - w->as->members, seg, unit);
}

static const struct kvt_recover_sink kvt_as_block_sink = {
	.block = kvt_as_on_block,
	.ns = kvt_as_on_ns,
	.bad = kvt_as_on_bad,
};

static void kvt_as_recover(struct kvt_as_worker *w, const struct kvt_recover_sink *sink,
			   bool entries_only)
{
	struct kvt_recover r = kvt_as_how(w, sink, entries_only);
	int err = kvt_life_recover(&w->m->life, &r, w->seg);

	if (err)
		kvt_as_refuse(w, err);
}

static void kvt_as_pass_kills(struct kvt_as_worker *w)
{
	kvt_as_recover(w, &kvt_as_kill_sink, true);
}

static void kvt_as_count(struct kvt_assembly *as, const struct kvt_life_seg *s)
{
	const struct kvt_seg_found *f = &s->found;
	struct kvtier_pool_assemble *out = as->out;

	spin_lock(&as->lock);
	out->nr_segments++;
	as->max_seq = max(as->max_seq, f->max_seq);
	if (kvt_life_counts(s)) {
		out->nr_unsealed += f->state == KVT_RC_UNSEALED;
		out->nr_bad_records += f->nr_bad[KVT_BAD_CRC] + f->nr_bad[KVT_BAD_UNKNOWN] +
				       f->nr_bad[KVT_BAD_RANGE] + f->nr_bad[KVT_BAD_SUMMARY];
		out->nr_bad_bytes += f->nr_bad[KVT_BAD_PAYLOAD];
		out->nr_bad_reads += f->nr_bad[KVT_BAD_IO];
	}
	spin_unlock(&as->lock);
}

static void kvt_as_pass_blocks(struct kvt_as_worker *w)
{
	struct kvt_life_seg *s = &w->m->life.segs[w->seg];

	if (kvt_life_damaged(s))
		kvt_as_refuse(w, -EUCLEAN);
	if (!s->ended)
		kvt_as_recover(w, &kvt_as_block_sink, false);
	kvt_as_flush(w);
	kvt_as_count(w->as, s);
}

static const struct kvt_recover_sink kvt_as_ns_sink = {
	.block = kvt_as_no_block,
	.ns = kvt_as_on_ns,
};

static void kvt_as_pass_names(struct kvt_as_worker *w)
{
	struct kvt_life_seg *s = &w->m->life.segs[w->seg];
	const struct kvt_seg_found found = s->found;

	if (!s->ended)
		kvt_as_recover(w, &kvt_as_ns_sink, true);
	s->found = found;
}

static void kvt_as_work(struct work_struct *work)
{
	struct kvt_as_worker *w = container_of(work, struct kvt_as_worker, work);
	struct kvt_assembly *as = w->as;
	u64 i;

	while (!kvt_as_stopped(as)) {
		i = atomic64_inc_return(&as->next) - 1;
		if (i >= as->total)
			return;
		w->m = &as->members[i % as->nr_members];
		w->seg = div_u64(i, as->nr_members);
		if (w->seg < w->m->super.geo.nr_segs) {
			as->pass(w);
			atomic64_inc(&as->done);
		}
		cond_resched();
	}
}

static int kvt_as_run(struct kvt_assembly *as, void (*pass)(struct kvt_as_worker *w))
{
	u32 i;

	as->pass = pass;
	atomic64_set(&as->next, 0);
	for (i = 0; i < as->nr_workers; i++)
		queue_work(as->wq, &as->workers[i].work);
	for (i = 0; i < as->nr_workers; i++) {
		while (work_busy(&as->workers[i].work)) {
			if (fatal_signal_pending(current))
				kvt_as_fail(as, -EINTR);
			if (kvt_as_stopped(as))
				break;
			schedule_timeout_killable(max(HZ / 100, 1));
		}
		flush_work(&as->workers[i].work);
	}
	return as->err;
}

static int kvt_as_alloc_member(struct kvt_as_member *m)
{
	const struct kvt_geometry *geo = &m->super.geo;
	u64 units = (u64)geo->nr_segs * geo->seg_units;

	m->life.super = &m->super;
	m->life.segs = kvcalloc(geo->nr_segs, sizeof(*m->life.segs), GFP_KERNEL);
	m->life.dead = kvcalloc(BITS_TO_LONGS(units), sizeof(long), GFP_KERNEL);
	return m->life.segs && m->life.dead ? 0 : -ENOMEM;
}

static int kvt_as_alloc_workers(struct kvt_assembly *as)
{
	u32 nr = clamp(2 * num_online_cpus(), 4, KVT_AS_WORKERS_MAX), i;

	as->wq = alloc_workqueue("kvtier%u-assemble", WQ_UNBOUND, 0, as->p->id);
	as->workers = kvcalloc(nr, sizeof(*as->workers), GFP_KERNEL);
	if (!as->wq || !as->workers)
		return -ENOMEM;
	BUILD_BUG_ON(KVT_AS_BUF_BYTES < KVT_RECOVER_BUF_MIN);
	for (i = 0; i < nr; i++) {
		as->workers[i].as = as;
		INIT_WORK(&as->workers[i].work, kvt_as_work);
		as->workers[i].buf = kvmalloc(KVT_AS_BUF_BYTES + KVT_UNIT_BYTES_MIN,
					      GFP_KERNEL);
		as->nr_workers = i + 1;
		if (!as->workers[i].buf)
			return -ENOMEM;
	}
	return 0;
}

static int kvt_as_read_alloc(struct kvt_assembly *as)
{
	u32 i, most = 0;
	int err = 0;

	get_random_bytes(&as->ns_key, sizeof(as->ns_key));
	as->ns = kvcalloc(KVT_AS_NS_BUCKETS, sizeof(*as->ns), GFP_KERNEL);
	as->ns_at = kvcalloc(KVT_AS_NS_MAX + 1, sizeof(*as->ns_at), GFP_KERNEL);
	as->ns_room = KVT_RECOVER_NS_MAX;
	if (!as->ns || !as->ns_at)
		return -ENOMEM;
	for (i = 0; i < as->nr_members && !err; i++) {
		err = kvt_as_alloc_member(&as->members[i]);
		most = max(most, as->members[i].super.geo.nr_segs);
		as->all += 3 * (u64)as->members[i].super.geo.nr_segs;
	}
	as->total = (u64)most * as->nr_members;
	return err ?: kvt_as_alloc_workers(as);
}

/*
 * The index gets its size at once: to grow it by doubling is to enter most blocks twice.
 * What is counted is about right: names may come twice, and kills may name what is in no
 * summary, or in a segment that has ended. Only speed is at stake, and some memory.
 */
static int kvt_as_size_index(struct kvt_assembly *as)
{
	u64 blocks = 0, dead = 0;
	u32 i, k;

	for (i = 0; i < as->nr_workers; i++)
		dead += as->workers[i].nr_dead;
	for (i = 0; i < as->nr_members; i++) {
		const struct kvt_as_member *m = &as->members[i];

		for (k = 0; k < m->super.geo.nr_segs; k++) {
			if (!m->life.segs[k].ended)
				blocks += m->life.segs[k].found.nr_blocks;
		}
		cond_resched();
	}
	kvt_pool_size_index(as->p, blocks - min(blocks, dead));
	return 0;
}

/* Definitions that found no room, of namespaces that turned out to have blocks. */
static int kvt_as_read_names(struct kvt_assembly *as)
{
	u32 i;

	if (!as->ns_left_out)
		return 0;
	as->ns_room = 0;
	for (i = 0; i < as->nr_members; i++)
		WRITE_ONCE(as->all, as->all + as->members[i].super.geo.nr_segs);
	return kvt_as_run(as, kvt_as_pass_names);
}

/**
 * kvt_as_read_all() - read all segments of all members
 * @as: assembly whose members agree
 *
 * After that the table has the newest record of each name, lists of records not used
 * and of parents are with the workers, and namespaces are known by id.
 * Return: 0; -ENOMEM; -EIO; -EUCLEAN; -ENOSPC; -EINTR.
 */
int kvt_as_read_all(struct kvt_assembly *as)
{
	return kvt_as_read_alloc(as) ?: kvt_as_run(as, kvt_as_pass_lives) ?:
	       kvt_as_run(as, kvt_as_pass_kills) ?: kvt_as_size_index(as) ?:
	       kvt_as_run(as, kvt_as_pass_blocks) ?: kvt_as_read_names(as);
}

/**
 * kvt_as_read_free() - what kvt_as_read_all() has allocated
 * @as: assembly at any stage; nothing of it runs
 */
void kvt_as_read_free(struct kvt_assembly *as)
{
	u32 i;

	if (as->wq)
		destroy_workqueue(as->wq);
	for (i = 0; i < as->nr_workers; i++) {
		kvfree(as->workers[i].buf);
		kvt_as_chunks_free(as->workers[i].parents);
		kvt_as_chunks_free(as->workers[i].owed);
	}
	kvfree(as->workers);
	for (i = 1; as->ns_at && i <= as->nr_ns; i++) {
		kfree(as->ns_at[i]->def);
		kfree(as->ns_at[i]);
	}
	kvfree(as->ns);
	kvfree(as->ns_at);
	for (i = 0; i < as->nr_members; i++) {
		kvfree(as->members[i].life.segs);
		kvfree(as->members[i].life.dead);
	}
}
