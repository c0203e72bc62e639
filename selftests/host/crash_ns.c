// SPDX-License-Identifier: GPL-2.0
/*
 * Namespaces of the crash test: their definitions, what these are told in, and what is
 * used of a quota. See crash.h.
 *
 * A namespace's definitions are numbered, and its quota follows from the number, so the
 * quota that is found tells which one it is of. What a batch that is durable has told must
 * be found from then on, or something later.
 */
#include "crash.h"

/* Units: for a few blocks, or for most of them. */
#define QUOTA_FEW	6u
#define QUOTA_MANY	60u

/* The quota of a namespace's definition; bytes behind whole units are its number. */
u64 cr_quota(u64 ns, u32 def)
{
	struct cr_rng rng = { .state = ns << 32 | def };
	u32 least = cr_random(&rng, 8) ? QUOTA_MANY : QUOTA_FEW;

	return (u64)(least + cr_random(&rng, least)) * CR_UNIT + def;
}

void cr_nsdef(const struct cr_store *s, u32 slot, struct kvt_nsdef *d)
{
	memset(d, 0, sizeof(*d));
	d->id = s->ns[slot].id;
	d->quota_bytes = cr_quota(s->ns[slot].id, s->ns[slot].def);
	d->nr_groups = CR_GROUPS;
	d->group_bytes[0] = CR_UNIT;
	d->group_bytes[1] = CR_STORED_MAX;
	d->identity_len = 1;
	d->identity[0] = (u8)slot;
}

/* Put a definition, or an end, into the open batch of a head. */
enum kvt_wlog_status cr_tell_ns(struct cr_store *s, enum kvt_log_head head,
				struct kvt_nsdef *d, u32 stored)
{
	bool gone = d->flags & KVT_NSF_GONE;
	struct cr_ns *ns = &s->ns[d->identity[0]];
	enum kvt_wlog_status st;
	u32 slot = d->identity[0];

	st = kvt_wlog_ns(&s->w, head, d, gone ? NULL : &ns->home, stored);
	if (st || gone)
		return st;
	if (ns->fresh)
		ns->home.first = kvt_wlog_first_life(&s->w);
	ns->fresh = false;
	s->collect[head].told.ns[slot] = d->id;
	s->collect[head].told.def[slot] = (u32)(d->quota_bytes % CR_UNIT);
	return st;
}

bool cr_define_ns(struct cr_store *s, enum kvt_log_head head, u32 slot, u32 stored,
		  enum kvt_wlog_status *st)
{
	struct kvt_nsdef d;

	cr_nsdef(s, slot, &d);
	*st = cr_tell_ns(s, head, &d, stored);
	if (*st)
		return false;
	s->ns[slot].dirty = false;
	return true;
}

bool cr_emit_ns(struct cr_store *s, u32 slot)
{
	enum kvt_wlog_status st;
	u32 tries;

	for (tries = 0; tries < 5; tries++) {
		if (cr_define_ns(s, KVT_HEAD_DEMOTE, slot, 0, &st))
			return true;
		if (!cr_satisfy(s, KVT_HEAD_DEMOTE, st))
			return false;
	}
	return false;
}

/* A head's batch is on its way with what it tells. */
void cr_told_closed(struct cr_store *s, enum kvt_log_head head, const struct kvt_wlog_io *w)
{
	struct cr_told *t = &s->told[w->batch];

	*t = s->collect[head].told;
	t->unit = w->seg * s->geo.seg_units + w->unit + w->header_units;
	memset(&s->collect[head].told, 0, sizeof(*t));
}

/* A definition that is durable: it is there after any later crash, or a later one. */
void cr_ns_must(struct cr_store *s, u32 slot, u64 ns, u32 def)
{
	struct cr_ref_ns *ref = &s->ora->ns[slot];

	if (!ns || s->ns[slot].going || s->ns[slot].id != ns || ref->id != ns)
		return;
	ref->must = true;
	ref->def_must = max(ref->def_must, def);
}

/* What a batch has told is durable, or lost; then which ones nobody remembers. */
void cr_told_durable(struct cr_store *s, const struct kvt_wlog_done *d)
{
	struct cr_told *t;
	u32 i, slot;

	for (slot = 0; d->err && slot < CR_SLOTS; slot++)
		s->ns[slot].dirty = true;
	for (i = 0; i < KVT_WLOG_BATCHES && s->told[i].unit != d->unit; i++)
		;
	CR_ASSERT(i < KVT_WLOG_BATCHES);
	t = &s->told[i];
	for (slot = 0; !d->err && slot < CR_SLOTS; slot++) {
		cr_ns_must(s, slot, t->ns[slot], t->def[slot]);
		s->count[CR_N_DEFS] += !!t->ns[slot];
	}
	memset(t, 0, sizeof(*t));
}

/* What is used of its quota grows or shrinks. */
void cr_charge(struct cr_store *s, u32 id, bool charged)
{
	struct cr_block *b = &s->block[id];
	struct cr_ns *ns = &s->ns[cr_slot(b->name)];

	CR_ASSERT(b->charged != charged && ns->id == b->ns);
	b->charged = charged;
	ns->used += charged ? b->stored : -(u64)b->stored;
}

static u32 own_leaf(const struct cr_store *s, u32 slot, u32 keep)
{
	u32 at = cr_random(s->rng, CR_BLOCKS), i, id;

	for (i = 0; i < CR_BLOCKS; i++) {
		id = (at + i) % CR_BLOCKS;
		if (id && id != keep && s->block[id].state == CR_READY &&
		    cr_slot(s->block[id].name) == slot && kvt_ch_leaf(&s->table, id))
			return id;
	}
	return 0;
}

/*
 * As RESERVE makes room: the namespace's own leaves go, but for what is to be the parent,
 * until so much more fits its quota. False: that is in vain.
 */
bool cr_quota_room(struct cr_store *s, u32 slot, u32 stored, u32 keep)
{
	u64 quota = cr_quota(s->ns[slot].id, s->ns[slot].def);
	u32 tries, id;

	for (tries = 0; s->ns[slot].used + stored > quota; tries++) {
		id = tries < CR_BLOCKS ? own_leaf(s, slot, keep) : 0;
		if (!id)
			return false;
		cr_evict(s, id);
		s->count[CR_N_QUOTA]++;
	}
	return true;
}

/* What each has used is what its entries take. */
void cr_check_used(const struct cr_store *s)
{
	u64 used[CR_SLOTS] = { 0 };
	u32 id, slot;

	for (id = 1; id < CR_BLOCKS; id++) {
		const struct cr_block *b = &s->block[id];

		CR_ASSERT(b->state != CR_READY || b->charged);
		CR_ASSERT(b->state != CR_DEAD || b->charged ||
			  (b->unit == KVT_NO_UNIT && !b->moving && !kvt_ch_leaf(&s->table, id)));
		if (b->charged)
			used[cr_slot(b->name)] += b->stored;
	}
	for (slot = 0; slot < CR_SLOTS; slot++)
		CR_ASSERT(s->ns[slot].used == used[slot]);
}

void cr_op_ns_create(struct cr_store *s)
{
	u32 slot = cr_random(s->rng, CR_SLOTS);
	struct cr_ref_ns *ref = &s->ora->ns[slot];

	if (s->ns[slot].id || !s->restored_durable || s->ora->next_ns == CR_NS_MAX - 1)
		return;
	s->ns[slot] = (struct cr_ns) {
		.id = ++s->ora->next_ns,
		.def = 1,
		.dirty = true,
		.fresh = true,
	};
	*ref = (struct cr_ref_ns) { .id = s->ns[slot].id, .def = 1 };
	cr_emit_ns(s, slot);
}

/* Lowered below what is used as well: that goes when more is put. */
void cr_op_quota(struct cr_store *s)
{
	u32 slot = cr_random(s->rng, CR_SLOTS);

	if (!s->ns[slot].id || s->ns[slot].going || s->ora->ns[slot].def == CR_UNIT - 1)
		return;
	s->ns[slot].def = ++s->ora->ns[slot].def;
	s->ns[slot].dirty = true;
	cr_emit_ns(s, slot);
}

/* From which life on there may be definitions of a namespace. */
u64 cr_ns_first(const struct cr_store *s, u32 slot)
{
	const struct kvt_ns_home *home = &s->ns[slot].home;

	return home->member == s->w.cfg.member ? home->first : 0;
}

static bool emit_gone(struct cr_store *s, u32 slot)
{
	struct kvt_nsdef d = {
		.id = s->ns[slot].id,
		.flags = KVT_NSF_GONE,
		.life_first = cr_ns_first(s, slot),
	};
	enum kvt_wlog_status st;
	u32 tries;

	for (tries = 0; tries < 20; tries++) {
		d.life_mark = kvt_wlog_life_mark(&s->w);
		st = cr_tell_ns(s, KVT_HEAD_DEMOTE, &d, 0);
		if (!st)
			return true;
		if (st == KVT_W_CLOSE)
			cr_close(s, KVT_HEAD_DEMOTE);
		else if (st == KVT_W_SEGMENT)
			cr_open(s, KVT_HEAD_DEMOTE, false);
		cr_progress(s, false);
	}
	return false;
}

/* Its blocks go, and all that there ever was of it. */
void cr_op_ns_destroy(struct cr_store *s)
{
	u32 slot = cr_random(s->rng, CR_SLOTS), name, i;
	struct kvt_wlog_fence f;
	u64 id = s->ns[slot].id, lost = s->w.nr_lost;
	bool told;

	if (!id || (!s->ns[slot].going && cr_random(s->rng, 4)))
		return;
	s->ns[slot].going = true;
	s->ora->ns[slot].must = false;
	s->ora->ns[slot].def_must = 0;
	for (i = 0; i < CR_GROUPS * CR_KEYS; i++) {
		name = cr_name(slot, 0, 0) + i;
		s->ora->name[name].must = 0;
		if (s->by_name[name])
			cr_gone(s, s->by_name[name]);
	}
	told = emit_gone(s, slot);
	if (told) {
		kvt_wlog_sync(&s->w, &f);
		told = cr_wait(s, &f) && s->w.nr_lost == lost;
	}
	if (!cr_dead_for_good(s, slot, CR_NAMES) || !told)
		return;
	CR_ASSERT(!s->ns[slot].used);
	s->ora->gone[id] = 1;
	s->ora->ns[slot].id = 0;
	s->ns[slot].id = 0;
	kvt_wlog_unhome(&s->w, &s->ns[slot].home);
}
