// SPDX-License-Identifier: GPL-2.0
/*
 * Operations on the store of the crash test, and what they promise. See crash.h.
 *
 * A block is put into memory under a parent that is there, demoted to the log and
 * promoted from it, its copy there kept or not; when nothing is under it, it is evicted, or
 * dropped, which is a promise. A copy is given up or carried when its segment is cleaned,
 * and found after a crash as long as it is there. The log is full most of the time.
 */
#include "crash.h"

#define MEM_MAX		40u

u32 cr_name(u32 slot, u32 group, u32 key)
{
	return (slot * CR_GROUPS + group) * CR_KEYS + key;
}

u32 cr_slot(u32 name)
{
	return name / (CR_GROUPS * CR_KEYS);
}

static u32 group_of(u32 name)
{
	return name / CR_KEYS % CR_GROUPS;
}

/* Groups have blocks of one and of several units, with and without a remainder. */
u32 cr_stored(u32 name)
{
	return group_of(name) ? CR_UNIT * (2 + name % 3) : CR_UNIT;
}

static void key_of(u32 name, u8 *key)
{
	memset(key, 0x5a, KVT_KEY_BYTES);
	key[0] = (u8)(name % CR_KEYS + 1);
}

/* As it is written now: with the parent that it is linked to. */
void cr_rec(const struct cr_store *s, u32 id, struct kvt_rec *r)
{
	const struct cr_block *b = &s->block[id];
	u32 up = cr_linked(s, id);

	memset(r, 0, sizeof(*r));
	key_of(b->name, r->key);
	if (up != CR_NAMES)
		key_of(up, r->parent);
	r->ns = b->ns;
	r->group = (u16)group_of(b->name);
	r->stored = b->stored;
	r->bytes = b->stored - b->name % 7;
}

/* False: no block of ours can have this record. */
bool cr_name_of(const struct cr_store *s, const struct kvt_rec *r, u32 *name)
{
	u8 key[KVT_KEY_BYTES];
	u32 slot;

	for (slot = 0; slot < CR_SLOTS; slot++) {
		if (s->ns[slot].id != r->ns)
			continue;
		*name = cr_name(slot, r->group, (r->key[0] - 1u) % CR_KEYS);
		key_of(*name, key);
		CR_ASSERT(r->group < CR_GROUPS && !memcmp(key, r->key, sizeof(key)) &&
			  r->stored == cr_stored(*name));
		return true;
	}
	return false;
}

/* The name of its parent; CR_NAMES: none. */
u32 cr_parent_of_rec(const struct kvt_rec *r, u32 name)
{
	static const u8 none[KVT_KEY_BYTES];
	u8 key[KVT_KEY_BYTES];
	u32 up;

	if (!memcmp(r->parent, none, sizeof(none)))
		return CR_NAMES;
	up = name - name % CR_KEYS + (r->parent[0] - 1u) % CR_KEYS;
	key_of(up, key);
	CR_ASSERT(!memcmp(key, r->parent, sizeof(key)));
	return up;
}

/* Bytes that tell whose they are; every 8 bytes are different. */
void cr_fill(u8 *buf, u32 stored, u32 name, u64 ns, u32 version)
{
	u64 word = ns << 40 ^ (u64)name << 32 ^ version;
	u32 i;

	for (i = 0; i < stored; i += 8) {
		memcpy(buf + i, &word, 8);
		word = word * 6364136223846793005ull + 1442695040888963407ull;
	}
}

/* 0: these are not the bytes of any version of the name. */
u32 cr_version_of(const u8 *buf, u32 stored, u32 name, u64 ns)
{
	static u8 want[CR_STORED_MAX];
	u64 word;
	u32 version;

	memcpy(&word, buf, 8);
	version = (u32)(word ^ (ns << 40 ^ (u64)name << 32));
	cr_fill(want, stored, name, ns, version);
	return memcmp(want, buf, stored) ? 0 : version;
}

u32 cr_sum(const u8 *buf, u32 stored)
{
	struct kvt_payload_sum sum;

	kvt_payload_sum_start(&sum);
	kvt_payload_sum_add(&sum, buf, stored);
	return kvt_payload_sum_end(&sum);
}

u32 cr_block_new(struct cr_store *s)
{
	u32 id;

	for (id = 1; id < CR_BLOCKS; id++) {
		if (s->block[id].state == CR_FREE) {
			s->block[id] = (struct cr_block) {
				.state = CR_READY,
				.unit = KVT_NO_UNIT,
				.new_unit = KVT_NO_UNIT,
			};
			return id;
		}
	}
	cr_fail("no entry left");
}

static u32 units_of(const struct cr_block *b)
{
	return b->stored / CR_UNIT;
}

/*
 * A dead entry goes as soon as its move is over and its units are given back. While it has
 * children it stays, but nobody is charged for it any more.
 */
void cr_reap(struct cr_store *s, u32 id)
{
	struct cr_block *b = &s->block[id];

	if (b->state != CR_DEAD || b->moving)
		return;
	if (b->unit != KVT_NO_UNIT && kvt_wlog_free(&s->w, b->unit, units_of(b)))
		return;
	b->unit = KVT_NO_UNIT;
	if (b->charged)
		cr_charge(s, id, false);
	if (kvt_ch_leaf(&s->table, id))
		b->state = CR_FREE;
}

/* The log can do without a block, or cannot any more. */
void cr_copy(struct cr_store *s, u32 id, bool copy)
{
	struct cr_block *b = &s->block[id];

	kvt_log_copy(&s->log, b->unit, units_of(b), copy);
	s->count[CR_N_COPIES] += copy;
}

/* Give a copy up. False: there is no room for its kill. */
bool cr_shed(struct cr_store *s, u32 id)
{
	struct cr_block *b = &s->block[id];

	CR_ASSERT(b->mem && b->unit != KVT_NO_UNIT);
	cr_copy(s, id, false);
	if (kvt_wlog_free(&s->w, b->unit, units_of(b))) {
		cr_copy(s, id, true);
		return false;
	}
	b->unit = KVT_NO_UNIT;
	s->ora->name[b->name].must = 0;
	s->count[CR_N_SHED]++;
	return true;
}

/* The name is free from now on. Its children, if any, keep the entry. */
void cr_gone(struct cr_store *s, u32 id)
{
	struct cr_block *b = &s->block[id];
	u32 parent = kvt_ch_unlink(&s->table, id);

	if (b->mem && b->unit != KVT_NO_UNIT)
		cr_copy(s, id, false);
	s->by_name[b->name] = 0;
	s->nr_mem -= b->mem;
	b->mem = false;
	b->state = CR_DEAD;
	cr_reap(s, id);
	if (parent != KVT_NIL)
		cr_reap(s, parent);
}

/* A segment is free when its discard is over, well or not. False: none waits for that. */
bool cr_trim(struct cr_store *s)
{
	u32 seg = kvt_wlog_next_trim(&s->w);

	if (seg == KVT_NO_SEG)
		return false;
	cr_dev_discard(s->dev, kvt_geo_byte(&s->geo, seg, 0), (u32)s->geo.seg_bytes);
	kvt_wlog_trimmed(&s->w, seg);
	s->count[CR_N_TRIMS]++;
	return true;
}

/* The cache gives a block up, wherever it is. */
void cr_evict(struct cr_store *s, u32 id)
{
	s->ora->name[s->block[id].name].must = 0;
	cr_gone(s, id);
}

static u32 any_block(struct cr_store *s)
{
	u32 at = cr_random(s->rng, CR_BLOCKS), i, id;

	for (i = 0; i < CR_BLOCKS; i++) {
		id = (at + i) % CR_BLOCKS;
		if (id && s->block[id].state == CR_READY)
			return id;
	}
	return 0;
}

static void op_put(struct cr_store *s)
{
	u32 name = cr_random(s->rng, CR_NAMES), slot = cr_slot(name), id, version, up;
	struct cr_block *b;

	if (s->by_name[name] || !s->ns[slot].id || s->ns[slot].going || s->nr_mem >= MEM_MAX)
		return;
	version = ++s->ora->next_version * CR_PARENTS + cr_parent_choose(s, name);
	up = cr_parent_of(name, version);
	if (!cr_quota_room(s, slot, cr_stored(name), up == CR_NAMES ? 0 : s->by_name[up]))
		return;
	id = cr_block_new(s);
	b = &s->block[id];
	b->name = name;
	b->ns = s->ns[slot].id;
	b->version = version;
	b->stored = cr_stored(name);
	b->mem = true;
	s->nr_mem++;
	s->by_name[name] = id;
	cr_link(s, id, up);
	cr_charge(s, id, true);
	s->ora->name[name].newest = version;
}

static void op_demote(struct cr_store *s)
{
	u32 id = any_block(s);
	struct cr_block *b = &s->block[id];

	if (!id || !b->mem || b->moving)
		return;
	if (b->unit != KVT_NO_UNIT) {
		/* A clean copy is there: nothing to write. */
		cr_copy(s, id, false);
		s->count[CR_N_REUSED]++;
		b->mem = false;
		s->nr_mem--;
		return;
	}
	b->keep_mem = cr_random(s->rng, 3) == 0;
	cr_put(s, KVT_HEAD_DEMOTE, id, false);
}

static void op_promote(struct cr_store *s)
{
	u32 id = any_block(s);
	struct cr_block *b = &s->block[id];
	u8 buf[CR_STORED_MAX];

	if (!id || b->mem || b->moving || s->nr_mem >= MEM_MAX)
		return;
	cr_dev_read(s->dev, kvt_geo_byte(&s->geo, 0, b->unit), buf, b->stored);
	CR_ASSERT(cr_version_of(buf, b->stored, b->name, b->ns) == b->version);
	CR_ASSERT(cr_sum(buf, b->stored) == b->sum);
	b->mem = true;
	s->nr_mem++;
	cr_copy(s, id, true);
	if (!cr_random(s->rng, 3))
		cr_shed(s, id);
}

static void op_evict(struct cr_store *s)
{
	u32 id = any_block(s);

	/* Never what others need. */
	if (id)
		cr_evict(s, cr_leaf(s, id));
}

/* Is the caller itself still to free something of that name. */
static bool has_dead(const struct cr_store *s, u32 slot, u32 name)
{
	u32 id;

	for (id = 1; id < CR_BLOCKS; id++) {
		if (s->block[id].state != CR_DEAD || !s->block[id].charged)
			continue;
		if (name == CR_NAMES ? cr_slot(s->block[id].name) == slot :
				       s->block[id].name == name)
			return true;
	}
	return false;
}

/*
 * Up to which version each name is dead at this moment, but for what has not been freed
 * yet: that is on its way to the log, or waits for room for its kill.
 */
static void note_dead(const struct cr_store *s, u32 *floor)
{
	u32 name, id;

	for (name = 0; name < CR_NAMES; name++) {
		id = s->by_name[name];
		floor[name] = id ? s->block[id].version - 1 : s->ora->name[name].newest;
	}
	for (id = 1; id < CR_BLOCKS; id++) {
		const struct cr_block *b = &s->block[id];

		if (b->state == CR_DEAD && b->charged)
			floor[b->name] = min(floor[b->name], b->version - 1);
	}
}

/*
 * Until all that is dead of a name (CR_NAMES: of a slot) is so for good; and so is all else
 * that was dead when the fence was taken, whoever asked for it.
 */
bool cr_dead_for_good(struct cr_store *s, u32 slot, u32 name)
{
	u32 floor[CR_NAMES], tries, id;
	struct kvt_wlog_fence f;

	for (tries = 0; has_dead(s, slot, name) || s->nr_todo || s->nr_stray; tries++) {
		if (tries == 60 || !cr_progress(s, true))
			return false;
		for (id = 1; id < CR_BLOCKS; id++)
			cr_reap(s, id);
	}
	note_dead(s, floor);
	kvt_wlog_fence(&s->w, &f);
	cr_wait(s, &f);
	for (name = 0; name < CR_NAMES; name++)
		s->ora->name[name].floor = max(s->ora->name[name].floor, floor[name]);
	return true;
}

/*
 * Also of names that are not there: an older version may still be on the log. What has
 * children cannot be dropped; sometimes they are dropped first.
 */
static void op_drop(struct cr_store *s)
{
	u32 name = cr_random(s->rng, CR_NAMES), id = s->by_name[name], newest;
	struct cr_ref *ref = &s->ora->name[name];

	if (id && !kvt_ch_leaf(&s->table, id) && cr_random(s->rng, 3))
		return;
	newest = ref->newest;
	ref->must = 0;
	while (s->by_name[name])
		cr_evict(s, cr_leaf(s, id));
	if (cr_dead_for_good(s, cr_slot(name), name))
		CR_ASSERT(ref->floor >= newest);
}

/* Versions that are on the log, or on their way there; 0: not so. */
static void note_on_log(const struct cr_store *s, u32 *version)
{
	u32 id;

	for (id = 1; id < CR_BLOCKS; id++) {
		const struct cr_block *b = &s->block[id];
		bool on = b->state == CR_READY && (b->unit != KVT_NO_UNIT || b->moving);

		version[id] = on ? b->version : 0;
	}
}

/* What was noted, and is still on the log, is there after any later crash. */
static void check_on_log(const struct cr_store *s, const u32 *version)
{
	u32 id;

	for (id = 1; id < CR_BLOCKS; id++) {
		const struct cr_block *b = &s->block[id];

		if (!version[id] || b->state != CR_READY || b->version != version[id] ||
		    b->unit == KVT_NO_UNIT || b->lost)
			continue;
		if (s->ora->name[b->name].must != b->version)
			cr_fail("name %u: fsync has returned, and version %u is not durable",
				b->name, b->version);
		s->count[CR_N_SYNCED]++;
	}
}

/* Definitions that the log has, and are not changed since; 0: not so. */
static void note_defs(struct cr_store *s, u32 *def)
{
	u32 slot;

	for (slot = 0; slot < CR_SLOTS; slot++) {
		if (s->ns[slot].id && s->ns[slot].dirty && !s->ns[slot].going)
			cr_emit_ns(s, slot);
		def[slot] = s->ns[slot].id && !s->ns[slot].dirty ? s->ns[slot].def : 0;
	}
}

static void op_fsync(struct cr_store *s)
{
	u32 version[CR_BLOCKS], def[CR_SLOTS], slot;
	u64 lost = s->w.nr_lost;
	struct kvt_wlog_fence f;

	note_defs(s, def);
	note_on_log(s, version);
	kvt_wlog_sync(&s->w, &f);
	if (!cr_wait(s, &f) || s->w.nr_lost != lost)
		return;
	check_on_log(s, version);
	for (slot = 0; slot < CR_SLOTS; slot++) {
		const struct cr_ref_ns *ref = &s->ora->ns[slot];

		if (!def[slot] || s->ns[slot].going)
			continue;
		if (!ref->must || ref->def_must < def[slot])
			cr_fail("namespace %llu: fsync has returned, and definition %u is not durable",
				(unsigned long long)ref->id, def[slot]);
	}
}

static void op_seal(struct cr_store *s)
{
	enum kvt_log_head head = cr_random(s->rng, 2) ? KVT_HEAD_CARRY : KVT_HEAD_DEMOTE;

	cr_close(s, head);
	kvt_wlog_seal(&s->w, head);
}

static void op_super(struct cr_store *s)
{
	cr_write_super(s, false);
	/* The next one on its heels must not tear the other of the pair as well. */
	if (cr_random(s->rng, 2))
		cr_write_super(s, false);
}

/* One operation, and something going on behind it. */
void cr_op(struct cr_store *s)
{
	u32 what = cr_random(s->rng, 100);

	s->count[CR_N_OPS]++;
	if (what < 44)
		op_put(s);
	else if (what < 74)
		op_demote(s);
	else if (what < 82)
		op_promote(s);
	else if (what < 86)
		op_evict(s);
	else if (what < 89)
		op_drop(s);
	else if (what < 90)
		cr_op_quota(s);
	else if (what < 93)
		cr_op_ns_create(s);
	else if (what < 94)
		cr_op_ns_destroy(s);
	else if (what < 96)
		op_fsync(s);
	else if (what < 97)
		op_seal(s);
	else if (what < 98)
		op_super(s);
	cr_background(s);
}

/* Seal, end and write everything, then say so. False: the log was too full. */
bool cr_shutdown(struct cr_store *s)
{
	u32 tries, id;

	for (tries = 0; tries < 80; tries++) {
		for (id = 1; id < CR_BLOCKS; id++)
			cr_reap(s, id);
		cr_refill(s);
		if (!kvt_wlog_quiet(&s->w) || s->nr_todo || s->nr_stray) {
			cr_progress(s, true);
			if (!s->w.nr_pending || tries > 40) {
				cr_close(s, KVT_HEAD_DEMOTE);
				kvt_wlog_seal(&s->w, KVT_HEAD_DEMOTE);
				cr_close(s, KVT_HEAD_CARRY);
				kvt_wlog_seal(&s->w, KVT_HEAD_CARRY);
			}
			continue;
		}
		if (cr_write_super(s, true)) {
			s->count[CR_N_CLEAN]++;
			return true;
		}
	}
	return false;
}

static void own(u8 *owner, u32 unit, u32 units)
{
	for (; units; units--, unit++) {
		CR_ASSERT(!owner[unit]);
		owner[unit] = 1;
	}
}

/* Sources belong to the writer once the block has moved away. */
static void own_sources(const struct cr_store *s, u8 *owner)
{
	const struct kvt_wbatch *b;
	u32 i, k, id;

	for (i = 0; i < KVT_WLOG_BATCHES; i++) {
		b = &s->w.batches[i];
		for (k = 0; b->state != KVT_WBATCH_FREE && k < b->nr_src; k++) {
			if (!b->src[k].log)
				continue;
			for (id = 1; id < CR_BLOCKS; id++) {
				if (s->block[id].state != CR_FREE &&
				    s->block[id].unit == b->src[k].unit)
					break;
			}
			if (id == CR_BLOCKS)
				own(owner, b->src[k].unit, b->src[k].units);
		}
	}
}

/* Every unit has one owner, the log counts the same, and bytes are right. */
void cr_check(struct cr_store *s)
{
	static u8 owner[CR_SEGS_MAX * CR_SEG_UNITS_MAX];
	u8 buf[CR_STORED_MAX];
	u32 copies[CR_SEGS_MAX] = { 0 };
	u32 id, seg, unit, live;
	u64 total = 0, spare = 0;

	memset(owner, 0, sizeof(owner));
	for (id = 1; id < CR_BLOCKS; id++) {
		const struct cr_block *b = &s->block[id];

		if (b->state == CR_FREE)
			continue;
		if (b->unit != KVT_NO_UNIT) {
			own(owner, b->unit, units_of(b));
			cr_dev_read(s->dev, kvt_geo_byte(&s->geo, 0, b->unit), buf, b->stored);
			CR_ASSERT(cr_version_of(buf, b->stored, b->name, b->ns) == b->version);
			if (b->mem)
				copies[b->unit / s->geo.seg_units] += units_of(b);
		}
		if (b->moving)
			own(owner, b->new_unit, units_of(b));
	}
	own_sources(s, owner);
	for (id = 0; id < s->nr_stray; id++)
		own(owner, s->stray[id].unit, s->stray[id].units);
	for (seg = 0; seg < s->geo.nr_segs; seg++) {
		for (unit = 0, live = 0; unit < s->geo.seg_units; unit++)
			live += owner[seg * s->geo.seg_units + unit];
		CR_ASSERT(live == s->segs[seg].live);
		CR_ASSERT(copies[seg] == s->segs[seg].copies);
		total += live;
		spare += copies[seg];
	}
	cr_check_links(s);
	cr_check_used(s);
	CR_ASSERT(total == s->log.live_units);
	CR_ASSERT(spare == s->log.copy_units);
}
