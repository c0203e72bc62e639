// SPDX-License-Identifier: GPL-2.0
/*
 * Recovery of the crash test's store, and the comparison of what it finds with what was
 * promised. See crash.h.
 *
 * Which segments count, and what in them is dead, the core says (kvt_life.h), asked as the driver
 * asks it. The store has names of its own in place of a table and an index, so what blocks are
 * together is said here, in the order of kvt_merge.h: newest definitions and newest blocks; what
 * each namespace uses; links to parents that are there, then cycles are cut. A block whose
 * parent is gone is the beginning of what is left of its chain, and its next record says so.
 */
#include "crash.h"

#define FOUND_MAX	(CR_SEGS_MAX * CR_SEG_UNITS_MAX)

struct found {
	struct kvt_rec rec;
	u32 seg;
	u64 life;
};

/**
 * struct mount - what the segments have, before it is merged
 * @nr: blocks that no kill names, in order of segments and units
 * @life: of the segments, with @seg and @dead for it
 * @seq: of the record that an entry was made of
 * @up: the name that this record has for its parent, CR_NAMES: none
 */
struct mount {
	struct cr_store *s;
	u32 nr;
	u32 nr_ns;
	struct kvt_life life;
	struct kvt_life_seg seg[CR_SEGS_MAX];
	unsigned long dead[FOUND_MAX / (8 * sizeof(long)) + 1];
	struct found found[FOUND_MAX];
	struct kvt_nsdef ns[FOUND_MAX];
	u64 seq[CR_BLOCKS];
	u32 up[CR_BLOCKS];
};

static void todo_kill(struct cr_store *s, u32 seg, u32 unit, u64 life)
{
	CR_ASSERT(s->nr_todo < ARRAY_SIZE(s->todo));
	s->todo[s->nr_todo++] = (struct cr_todo) { .seg = seg, .unit = unit, .life = life };
}

static void on_block(void *ctx, u32 seg, u64 life, const struct kvt_rec *r)
{
	struct mount *m = ctx;

	m->seg[seg].placed += kvt_geo_units(&m->s->geo, r->stored);
	CR_ASSERT(m->nr < FOUND_MAX);
	if (!kvt_life_is_dead(&m->life, seg, r->unit))
		m->found[m->nr++] = (struct found) { .rec = *r, .seg = seg, .life = life };
}

/* Of two definitions of one namespace one is kept. No two that differ have one sequence. */
static void on_ns(void *ctx, u32 seg, const struct kvt_nsdef *d)
{
	struct mount *m = ctx;
	u32 i;

	(void)seg;
	for (i = 0; i < m->nr_ns && m->ns[i].id != d->id; i++)
		;
	CR_ASSERT(i < ARRAY_SIZE(m->ns));
	CR_ASSERT(i == m->nr_ns || m->ns[i].seq != d->seq ||
		  (m->ns[i].flags == d->flags && m->ns[i].quota_bytes == d->quota_bytes));
	if (i == m->nr_ns)
		m->ns[m->nr_ns++] = *d;
	else if (kvt_mg_def_counts(m->ns[i].seq, d))
		m->ns[i] = *d;
}

static void on_no_block(void *ctx, u32 seg, u64 life, const struct kvt_rec *r)
{
	(void)ctx;
	(void)seg;
	(void)life;
	(void)r;
}

static void on_kill(void *ctx, u32 seg, const struct kvt_kill *k)
{
	struct mount *m = ctx;

	(void)seg;
	kvt_life_kill(&m->life, k);
}

static void on_bad(void *ctx, u32 seg, u64 life, u32 unit, enum kvt_bad why)
{
	struct mount *m = ctx;

	/* Tearing never makes anything but a payload look wrong behind a good header. */
	CR_ASSERT(why == KVT_BAD_PAYLOAD);
	m->s->count[CR_N_BAD]++;
	todo_kill(m->s, seg, unit, life);
}

static int mount_read(void *ctx, u64 byte, void *buf, u32 len)
{
	return cr_dev_read(((struct mount *)ctx)->s->dev, byte, buf, len);
}

/* Payloads are not read for kills, and no header was torn. */
static void on_any_bad(void *ctx, u32 seg, u64 life, u32 unit, enum kvt_bad why)
{
	(void)ctx;
	(void)life;
	cr_fail("segment %u: what is said of unit %u is bad: %d", seg, unit, why);
}

static const struct kvt_recover_sink kill_sink = {
	.block = on_no_block,
	.kill = on_kill,
	.bad = on_any_bad,
};

static const struct kvt_recover_sink mount_sink = {
	.block = on_block,
	.ns = on_ns,
	.bad = on_bad,
};

static int super_read(void *ctx, u64 byte, void *buf, u32 len)
{
	return cr_dev_read(((struct cr_store *)ctx)->dev, byte, buf, len);
}

static void look_for_super(struct cr_store *s, u32 slot, struct kvt_super_pick *p)
{
	u8 block[KVT_SUPER_BYTES];
	u64 zone = s->dev->zone;

	if (zone) {
		CR_ASSERT(!kvt_super_log_look(zone, slot, s->dev->wp[slot], super_read, s, block,
					      p));
		return;
	}
	cr_dev_read(s->dev, (u64)slot * KVT_SUPER_TWIN_BYTE, block, sizeof(block));
	kvt_super_pick_add(p, slot, block);
}

static void read_super(struct cr_store *s)
{
	struct kvt_super_pick p;
	u32 i;

	kvt_super_pick_start(&p);
	for (i = 0; i < KVT_SUPER_SLOTS; i++)
		look_for_super(s, i, &p);
	if (p.err)
		cr_fail("no superblock: %d, %u torn", p.err, p.nr_torn);
	CR_ASSERT(s->dev->zone || p.slot == p.super.generation % KVT_SUPER_SLOTS);
	CR_ASSERT(!kvt_super_check(&p.super, s->dev->bytes, true));
	CR_ASSERT(p.super.geo.zone_bytes == s->dev->zone);
	s->super = p.super;
	s->geo = p.super.geo;
	if (s->dev->zone)
		kvt_super_log_found(&s->slog, s->dev->zone, p.slot, s->dev->wp[p.slot]);
}

static void init_writer(struct cr_store *s)
{
	static u64 members;
	struct kvt_wlog_cfg cfg = {
		.geo = &s->geo,
		.log = &s->log,
		.seq = &s->seq,
		.member = members + 1,
		.batch_blocks = CR_BATCH_BLOCKS,
		.batch_bytes = 8 * CR_UNIT,
		.max_blocks = 32,
		.max_ns = 8,
		.max_kills = 60,
		.ring = CR_RING,
		.free_aim = 3 + cr_random(s->rng, 3),
		.trim = !s->geo.zone_bytes && cr_random(s->rng, 4),
	};

	members++;
	kvt_log_init(&s->log, s->segs, s->geo.nr_segs, s->geo.seg_units);
	s->wmem = calloc(1, kvt_wlog_mem_bytes(&cfg));
	CR_ASSERT(s->wmem && !kvt_wlog_init(&s->w, &cfg, s->wmem));
}

static void recover(struct mount *m, struct kvt_recover *r, u32 seg)
{
	int err = kvt_life_recover(&m->life, r, seg);

	if (err)
		cr_fail("the member is refused for segment %u: %d", seg, err);
}

/* Once for what is in each, once for kills, and then for what counts. */
static void read_segments(struct mount *m)
{
	static u64 buf[KVT_RECOVER_BUF_MIN / 8];
	struct kvt_recover r = {
		.geo = &m->s->geo,
		.read = mount_read,
		.sink = &kill_sink,
		.ctx = m,
		.buf = (u8 *)buf,
		.buf_bytes = sizeof(buf),
		.entries_only = true,
	};
	u32 seg, nr = m->s->geo.nr_segs;

	for (seg = 0; seg < nr; seg++)
		CR_ASSERT(!kvt_life_read(&m->life, &r, seg));
	for (seg = 0; seg < nr; seg++)
		recover(m, &r, seg);
	r.sink = &mount_sink;
	r.entries_only = false;
	for (seg = 0; seg < nr; seg++) {
		if (kvt_life_damaged(&m->seg[seg]))
			cr_fail("segment %u looks damaged: life %llu has not ended", seg,
				(unsigned long long)m->seg[seg].stale);
		if (!m->seg[seg].ended)
			recover(m, &r, seg);
		m->s->count[CR_N_UNSEALED] += m->seg[seg].found.state == KVT_RC_UNSEALED;
	}
}

/* After a clean shutdown all that is not dead is in sealed segments. */
static void check_clean(const struct mount *m)
{
	u32 seg;

	for (seg = 0; seg < m->s->geo.nr_segs; seg++) {
		if (m->seg[seg].found.state == KVT_RC_UNSEALED && !m->seg[seg].ended &&
		    m->s->super.state == KVT_STATE_CLEAN)
			cr_fail("segment %u has no footer after a clean shutdown", seg);
	}
}

/* The newest definition of a namespace that is not gone. */
static void take_ns(struct cr_store *s, const struct kvt_nsdef *d)
{
	u32 slot = d->identity[0], def = (u32)(d->quota_bytes % CR_UNIT);

	if (s->ora->gone[d->id])
		cr_fail("namespace %llu is gone and comes back", (unsigned long long)d->id);
	CR_ASSERT(slot < CR_SLOTS && d->id == s->ora->ns[slot].id);
	if (def > s->ora->ns[slot].def || d->quota_bytes != cr_quota(d->id, def))
		cr_fail("namespace %llu: a quota of %llu was never set", (unsigned long long)d->id,
			(unsigned long long)d->quota_bytes);
	s->ns[slot].id = d->id;
	s->ns[slot].def = def;
	s->found_def[slot] = def;
}

/* Newest definitions; what the oracle has to say about them. */
static void merge_ns(struct mount *m)
{
	struct cr_store *s = m->s;
	u32 i, slot;

	for (i = 0; i < m->nr_ns; i++) {
		const struct kvt_nsdef *d = &m->ns[i];

		if (d->flags & KVT_NSF_GONE)
			continue;
		if (s->ora->gone[d->id])
			cr_fail("namespace %llu is gone and comes back",
				(unsigned long long)d->id);
		take_ns(s, d);
	}
	for (slot = 0; slot < CR_SLOTS; slot++) {
		const struct cr_ref_ns *ref = &s->ora->ns[slot];

		if (ref->must && s->ns[slot].id != ref->id)
			cr_fail("namespace %llu is lost", (unsigned long long)ref->id);
		if (ref->must && s->ns[slot].def < ref->def_must)
			cr_fail("namespace %llu has the quota of definition %u, %u was durable",
				(unsigned long long)ref->id, s->ns[slot].def, ref->def_must);
	}
}

static void todo_found(struct cr_store *s, const struct found *f)
{
	todo_kill(s, f->seg, f->rec.unit, f->life);
}

/* The bytes must be those of some version. */
static u32 check_bytes(struct mount *m, const struct found *f, u32 name, u32 unit)
{
	struct cr_store *s = m->s;
	u8 buf[CR_STORED_MAX];
	u32 version;

	cr_dev_read(s->dev, kvt_geo_byte(&s->geo, 0, unit), buf, f->rec.stored);
	if (cr_sum(buf, f->rec.stored) != f->rec.sum)
		cr_fail("name %u: bytes of a recovered block do not verify (segment %s)", name,
			m->seg[f->seg].found.state == KVT_RC_SEALED ? "sealed" : "unsealed");
	version = cr_version_of(buf, f->rec.stored, name, f->rec.ns);
	if (!version)
		cr_fail("name %u: wrong bytes", name);
	return version;
}

/* A block that is alive: newest wins. */
static void merge_block(struct mount *m, const struct found *f)
{
	struct cr_store *s = m->s;
	struct cr_block *b;
	u32 name, id, unit = f->seg * s->geo.seg_units + f->rec.unit;

	if (!cr_name_of(s, &f->rec, &name)) {
		todo_found(s, f);
		return;
	}
	id = s->by_name[name];
	if (id && m->seq[id] > f->rec.seq) {
		todo_found(s, f);
		return;
	}
	if (id) {
		todo_kill(s, s->block[id].unit / s->geo.seg_units,
			  s->block[id].unit % s->geo.seg_units,
			  m->seg[s->block[id].unit / s->geo.seg_units].life);
	} else {
		id = cr_block_new(s);
	}
	b = &s->block[id];
	b->name = name;
	b->ns = f->rec.ns;
	b->version = check_bytes(m, f, name, unit);
	b->stored = f->rec.stored;
	b->sum = f->rec.sum;
	b->unit = unit;
	s->by_name[name] = id;
	m->seq[id] = f->rec.seq;
	m->up[id] = cr_parent_of_rec(&f->rec, name);
}

/* What the newest record must say of its version's parent. */
static void check_up(struct mount *m, u32 id)
{
	struct cr_block *b = &m->s->block[id];
	const struct cr_ref *ref = &m->s->ora->name[b->name];
	u32 put = cr_parent_of(b->name, b->version), up = m->up[id];

	if (up != put && (up != CR_NAMES || b->version > ref->cut))
		cr_fail("name %u: version %u was put under %u, and is found under %u", b->name,
			b->version, put, up);
	if (b->version == ref->must && b->version == ref->bare && up != CR_NAMES)
		cr_fail("name %u: an older record of version %u is found", b->name, b->version);
	b->bare = up != put;
}

/* A link is missing where the parent is, or where it would lead back to the block. */
static void check_link(struct mount *m, u32 id)
{
	struct cr_store *s = m->s;
	struct cr_block *b = &s->block[id];
	u32 up = m->up[id], parent = up == CR_NAMES ? 0 : s->by_name[up];

	if (cr_linked(s, id) != CR_NAMES) {
		CR_ASSERT(cr_linked(s, id) == up);
		s->count[CR_N_LINKED]++;
		return;
	}
	if (parent && !cr_is_above(s, id, parent))
		cr_fail("name %u: its parent %u is there, and it is not under it", b->name, up);
	s->count[CR_N_ORPHANS] += up != CR_NAMES && !parent;
	/* From now on its records are without. */
	if (up != CR_NAMES)
		s->ora->name[b->name].cut = max(s->ora->name[b->name].cut, b->version);
}

static void merge_links(struct mount *m)
{
	struct cr_store *s = m->s;
	u32 id;

	for (id = 1; id < CR_BLOCKS; id++) {
		if (s->block[id].state != CR_READY)
			continue;
		check_up(m, id);
		cr_link(s, id, m->up[id]);
	}
	s->count[CR_N_CYCLES] += cr_cut_cycles(s);
	for (id = 1; id < CR_BLOCKS; id++) {
		if (s->block[id].state == CR_READY)
			check_link(m, id);
	}
}

/* What the names that are found take; it may be more than the quota, if that was lowered. */
static void merge_used(struct cr_store *s)
{
	u64 used[CR_SLOTS] = { 0 };
	u32 id, name, slot;

	for (id = 1; id < CR_BLOCKS; id++) {
		if (s->block[id].state == CR_READY)
			cr_charge(s, id, true);
	}
	for (name = 0; name < CR_NAMES; name++)
		used[cr_slot(name)] += s->by_name[name] ? cr_stored(name) : 0;
	for (slot = 0; slot < CR_SLOTS; slot++) {
		const struct cr_ns *ns = &s->ns[slot];

		if (ns->used != used[slot])
			cr_fail("namespace %llu: %llu bytes used, its blocks have %llu",
				(unsigned long long)ns->id, (unsigned long long)ns->used,
				(unsigned long long)used[slot]);
		s->count[CR_N_OVER] += ns->id && ns->used > cr_quota(ns->id, ns->def);
	}
}

static void compare(struct cr_store *s)
{
	const struct cr_ref *ref;
	u32 name, got;

	for (name = 0; name < CR_NAMES; name++) {
		ref = &s->ora->name[name];
		got = s->by_name[name] ? s->block[s->by_name[name]].version : 0;
		s->count[CR_N_MUST] += !!ref->must;
		s->count[CR_N_FOUND] += !!got;
		if (ref->must && got != ref->must)
			cr_fail("name %u: version %u was durable, found is %u", name, ref->must,
				got);
		if (got && got <= ref->floor)
			cr_fail("name %u: version %u was dropped and comes back", name, got);
		CR_ASSERT(got <= ref->newest);
	}
}

static void restore_segment(struct mount *m, u32 seg)
{
	struct cr_store *s = m->s;
	struct kvt_seg g = { .max_ids = CR_IDS };
	u32 id, nr = 0;

	if (kvt_life_counts(&m->seg[seg])) {
		while (s->ids_used[nr])
			nr++;
		s->ids_used[nr] = true;
		g.ids = s->ids[nr];
		for (id = 1; id < CR_BLOCKS; id++) {
			const struct cr_block *b = &s->block[id];

			if (b->state == CR_FREE || b->unit / s->geo.seg_units != seg)
				continue;
			g.ids[g.nr_ids++] = id;
			g.live += b->stored / CR_UNIT;
		}
		kvt_mg_restore(&s->log, seg, &m->seg[seg], &g);
	}
	kvt_wlog_restore(&s->w, seg, &m->seg[seg].found, m->seg[seg].ended);
}

/* Into a store that is all zeroes but for device, oracle and random numbers. */
void cr_mount(struct cr_store *s)
{
	static struct mount m;
	u64 max_seq = 0;
	u32 i;

	m.s = s;
	m.nr = 0;
	m.nr_ns = 0;
	memset(m.seg, 0, sizeof(m.seg));
	memset(m.dead, 0, sizeof(m.dead));
	m.life = (struct kvt_life) { .super = &s->super, .segs = m.seg, .dead = m.dead };
	cr_links_init(s);
	read_super(s);
	init_writer(s);
	read_segments(&m);
	check_clean(&m);
	merge_ns(&m);
	for (i = 0; i < m.nr; i++)
		merge_block(&m, &m.found[i]);
	merge_used(s);
	merge_links(&m);
	compare(s);
	for (i = 0; i < s->geo.nr_segs; i++) {
		restore_segment(&m, i);
		max_seq = max(max_seq, m.seg[i].found.max_seq);
	}
	kvt_wlog_restored(&s->w, &s->super, max_seq);
	CR_ASSERT(s->ora->next_ns < s->super.ns_limit);
	cr_check(s);
}

struct refill {
	struct mount m;		/* first: reads as one */
	u32 handle;
	bool ok;
};

static void refill_block(void *ctx, u32 seg, u64 life, const struct kvt_rec *r)
{
	struct refill *f = ctx;

	(void)seg;
	(void)life;
	f->ok &= kvt_wlog_refill_block(&f->m.s->w, f->handle, r);
}

static void refill_ns(void *ctx, u32 seg, const struct kvt_nsdef *d)
{
	struct refill *f = ctx;

	(void)seg;
	f->ok &= kvt_wlog_refill_ns(&f->m.s->w, f->handle, d);
}

static void refill_kill(void *ctx, u32 seg, const struct kvt_kill *k)
{
	struct refill *f = ctx;

	(void)seg;
	f->ok &= kvt_wlog_refill_kill(&f->m.s->w, f->handle, k);
}

static const struct kvt_recover_sink refill_sink = {
	.block = refill_block,
	.ns = refill_ns,
	.kill = refill_kill,
};

/* A torn summary is never written over on a zoned device. */
static bool refill_room(const struct cr_store *s, u32 handle, u32 seg)
{
	const struct kvt_wopen *o = &s->w.opens[handle];
	u64 bytes = kvt_entries_bytes(o->nr_ns, o->nr_blocks, o->nr_kills);

	return cr_seg_room(s, seg, s->geo.seg_units - 1 - kvt_geo_units(&s->geo, bytes));
}

/* Give the segments that a crash has left unsealed their footers. */
void cr_refill(struct cr_store *s)
{
	static u64 buf[KVT_RECOVER_BUF_MIN / 8];
	static struct refill f;
	struct kvt_recover r = {
		.geo = &s->geo,
		.read = mount_read,
		.sink = &refill_sink,
		.ctx = &f,
		.buf = (u8 *)buf,
		.buf_bytes = sizeof(buf),
	};
	struct kvt_seg_found found;
	u32 seg;

	f.m.s = s;
	for (seg = 0; seg < s->geo.nr_segs; seg++) {
		if (!s->w.segs[seg].unsealed || kvt_wlog_refill(&s->w, seg, &f.handle))
			continue;
		f.ok = true;
		kvt_recover_segment(&r, seg, &found);
		CR_ASSERT(f.ok);
		f.ok = refill_room(s, f.handle, seg);
		s->count[CR_N_HOPELESS] += !f.ok;
		kvt_wlog_refilled(&s->w, f.handle, found.nr_batches, f.ok);
	}
}

/* Where segments begin. */
u64 cr_first_byte(u64 zone)
{
	u64 bytes = max(2 * zone, (u64)KVT_HEAD_BYTES_MIN);

	return zone ? (bytes + zone - 1) / zone * zone : KVT_HEAD_BYTES_MIN;
}

/* A new member, as the tool makes it. */
void cr_format(struct cr_store *s, u32 nr_segs, u32 seg_units)
{
	u8 block[KVT_SUPER_BYTES];
	struct kvt_super super = {
		.geo.first_byte = cr_first_byte(s->dev->zone),
		.geo.unit_bytes = CR_UNIT,
		.geo.seg_bytes = (u64)seg_units * CR_UNIT,
		.geo.nr_segs = nr_segs,
		.geo.zone_bytes = s->dev->zone,
		.geo.zone_stride = s->dev->zone,
		.device_bytes = s->dev->bytes,
		.state = KVT_STATE_CLEAN,
		.life_limit = 1,
		.seq_limit = 1,
		.ns_limit = CR_NS_MAX,
		.nr_members = 1,
	};
	u32 i, group = cr_dev_group(s->dev);
	u64 step = s->dev->zone ? KVT_SUPER_BYTES : KVT_SUPER_TWIN_BYTE;

	for (i = 0; i < KVT_UUID_BYTES; i++)
		super.geo.member[i] = (u8)cr_random(s->rng, 256);
	memcpy(super.members[0].uuid, super.geo.member, sizeof(super.geo.member));
	memset(super.pool, 'p', sizeof(super.pool));
	for (super.generation = 0; super.generation < KVT_SUPER_SLOTS; super.generation++) {
		kvt_super_encode(block, &super);
		cr_dev_write(s->dev, group, super.generation * step, block, sizeof(block), false);
	}
	cr_dev_complete(s->dev, group);
	cr_dev_flush_end(s->dev, cr_dev_flush_start(s->dev));
}
