// SPDX-License-Identifier: GPL-2.0
/*
 * Operations on the small store, compared with the reference. See model.h.
 */
#include "model.h"

static u32 pick(struct model *x, u32 n)
{
	return x->pick(x->src, n);
}

static struct mini_name name_of(u32 name)
{
	return (struct mini_name){ .owner = name / MODEL_KEYS, .key = name % MODEL_KEYS };
}

static u32 name_of_id(struct model *x, u32 id)
{
	const struct kvt_hot *h = kvt_hot(&x->m->table, id);
	u32 key;

	memcpy(&key, h->key + 8, sizeof(key));
	return mini_owner(h) * MODEL_KEYS + key;
}

static bool ref_has_children(struct model *x, u32 name)
{
	u32 first = name / MODEL_KEYS * MODEL_KEYS, i;

	for (i = first; i < first + MODEL_KEYS; i++) {
		if (x->ref[i].state != REF_NONE && x->ref[i].parent == name &&
		    !x->ref[i].orphan)
			return true;
	}
	return false;
}

static bool ref_leased(struct model *x, u32 name)
{
	u32 i;

	for (i = 0; i < MODEL_HANDLES; i++) {
		if (x->handle[i].on && x->handle[i].name == name &&
		    x->handle[i].tag == x->ref[name].tag)
			return true;
	}
	return false;
}

/* The store is about to evict: may it? */
static void on_gone(void *ctx, u32 id)
{
	struct model *x = ctx;
	u32 name = name_of_id(x, id);

	MINI_ASSERT(x->ref[name].state == REF_READY && x->ref[name].id == id);
	MINI_ASSERT(!ref_has_children(x, name));
	MINI_ASSERT(!ref_leased(x, name));
	MINI_ASSERT(!x->ref[name].pinned);
	x->ref[name].state = REF_NONE;
}

void model_init(struct model *x, u32 (*pick_fn)(void *src, u32 n), void *src)
{
	memset(x, 0, sizeof(*x));
	x->pick = pick_fn;
	x->src = src;
	x->m = mini_new(pick(x, 2) ? KVT_PIECE_UNKNOWN : KVT_PIECE_CLEAN);
	x->m->on_gone = on_gone;
	x->m->ctx = x;
}

void model_fini(struct model *x)
{
	mini_free(x->m);
}

/* LOOKUP: the store has exactly the names the reference has. */
static bool op_find(struct model *x)
{
	u32 name = pick(x, MODEL_NAMES), id;
	struct mini_name n = name_of(name);

	id = mini_find(x->m, &n);
	MINI_ASSERT((id != KVT_NIL) == (x->ref[name].state != REF_NONE));
	MINI_ASSERT(id == KVT_NIL || id == x->ref[name].id);
	return id != KVT_NIL;
}

static bool op_reserve(struct model *x)
{
	u32 name = pick(x, MODEL_NAMES), first = name / MODEL_KEYS * MODEL_KEYS;
	u32 parent = first + pick(x, MODEL_KEYS), id;
	struct mini_name n = name_of(name), up = name_of(parent);
	bool root = pick(x, 4) == 0 || parent == name, arena = pick(x, 8) == 0;
	struct ref *r = &x->ref[name];
	enum mini_status st;

	st = mini_reserve(x->m, &n, root ? NULL : &up, arena, &id);
	if (r->state != REF_NONE) {
		MINI_ASSERT(st == (r->state == REF_READY ? MINI_EXISTS : MINI_FILLING));
		return false;
	}
	if (!root && x->ref[parent].state == REF_NONE) {
		MINI_ASSERT(st == MINI_NOPARENT);
		return false;
	}
	if (st == MINI_NOSPACE)
		return false;
	MINI_ASSERT(st == MINI_RESERVED);
	*r = (struct ref){
		.state = REF_FILLING, .parent = root ? MODEL_NAMES : parent, .id = id,
		.tag = x->m->tag[id],
	};
	return true;
}

/* The @nth reservation there is, or MODEL_NAMES. */
static u32 any_filling(struct model *x)
{
	u32 at = pick(x, MODEL_NAMES), i;

	for (i = 0; i < MODEL_NAMES; i++) {
		if (x->ref[(at + i) % MODEL_NAMES].state == REF_FILLING)
			return (at + i) % MODEL_NAMES;
	}
	return MODEL_NAMES;
}

/* A name goes away; what extends it stays, without a parent. */
static void ref_gone(struct model *x, u32 name)
{
	u32 first = name / MODEL_KEYS * MODEL_KEYS, i;

	x->ref[name].state = REF_NONE;
	for (i = first; i < first + MODEL_KEYS; i++) {
		if (x->ref[i].state != REF_NONE && x->ref[i].parent == name)
			x->ref[i].orphan = true;
	}
}

static bool op_commit(struct model *x)
{
	u32 name = any_filling(x);
	enum mini_status st;
	struct ref *r;
	bool ok;

	if (name == MODEL_NAMES)
		return false;
	r = &x->ref[name];
	ok = r->parent == MODEL_NAMES ||
	     (!r->orphan && x->ref[r->parent].state == REF_READY);
	st = mini_commit(x->m, r->id);
	if (r->bad) {
		MINI_ASSERT(st == MINI_LOST);
		mini_abort(x->m, r->id, pick(x, 3) == 0);
		ref_gone(x, name);
		return false;
	}
	MINI_ASSERT(st == (ok ? MINI_DONE : MINI_NOPARENT));
	if (ok)
		r->state = REF_READY;
	return ok;
}

static bool op_abort(struct model *x)
{
	u32 name = any_filling(x);

	if (name == MODEL_NAMES)
		return false;
	mini_abort(x->m, x->ref[name].id, pick(x, 3) == 0);
	ref_gone(x, name);
	return true;
}

static bool op_get(struct model *x)
{
	u32 name = pick(x, MODEL_NAMES), at = pick(x, MODEL_HANDLES), id;
	struct mini_name n = name_of(name);
	struct kvt_hot *h;

	if (x->handle[at].on)
		return false;
	switch (mini_get(x->m, &n, &id)) {
	case MINI_MISS:
		MINI_ASSERT(x->ref[name].state == REF_NONE);
		return false;
	case MINI_FILLING:
		MINI_ASSERT(x->ref[name].state == REF_FILLING);
		return false;
	case MINI_PENDING:
		MINI_ASSERT(x->ref[name].state == REF_READY);
		MINI_ASSERT(!(kvt_ctl(kvt_hot(&x->m->table, id)) & KVT_CTL_MEM));
		return false;
	default:
		break;
	}
	MINI_ASSERT(x->ref[name].state == REF_READY && id == x->ref[name].id);
	h = kvt_hot(&x->m->table, id);
	x->handle[at] = (struct ref_handle){
		.on = true, .name = name, .id = id, .tag = x->ref[name].tag,
		.tier = h->mem_tier, .page = h->mem_page,
	};
	return true;
}

/* A lease's promise: the bytes are still there, in place, and right. */
static void check_handle(struct model *x, const struct ref_handle *hd)
{
	const struct kvt_hot *h = kvt_hot(&x->m->table, hd->id);
	u32 i;

	MINI_ASSERT(kvt_ctl(h) & KVT_CTL_MEM);
	MINI_ASSERT(h->mem_tier == hd->tier && h->mem_page == hd->page);
	for (i = 0; i < mini_slot_pages[hd->name / MODEL_KEYS]; i++)
		MINI_ASSERT(x->m->tier[hd->tier].content[hd->page + i] == hd->tag);
}

static bool op_put(struct model *x)
{
	u32 at = pick(x, MODEL_HANDLES);
	struct ref_handle *hd = &x->handle[at];

	if (!hd->on)
		return false;
	check_handle(x, hd);
	hd->on = false;
	mini_put(x->m, hd->id);
	return true;
}

static bool op_drop(struct model *x)
{
	u32 name = pick(x, MODEL_NAMES);
	struct mini_name n = name_of(name);
	enum mini_status want = MINI_DONE;

	if (x->ref[name].state == REF_NONE)
		want = MINI_MISS;
	else if (x->ref[name].state == REF_FILLING)
		want = MINI_BUSY;
	else if (ref_has_children(x, name))
		want = MINI_CHILDREN;
	MINI_ASSERT(mini_drop(x->m, &n) == want);
	if (want == MINI_DONE)
		x->ref[name].state = REF_NONE;
	return want == MINI_DONE;
}

static bool op_pin(struct model *x)
{
	u32 name = pick(x, MODEL_NAMES);
	/* Unpinning more often keeps the store from filling up with pins. */
	bool on = pick(x, 4) == 0;

	if (x->ref[name].state != REF_READY)
		return false;
	mini_pin(x->m, x->ref[name].id, on);
	x->ref[name].pinned = on;
	return true;
}

static bool op_demote(struct model *x)
{
	u32 from = pick(x, MINI_MEMS);

	return mini_demote_begin(x->m, from, from + 1 + pick(x, MINI_TIERS - 1 - from));
}

static bool op_promote(struct model *x)
{
	u32 name = pick(x, MODEL_NAMES), to = pick(x, MINI_MEMS);

	return x->ref[name].state == REF_READY &&
	       mini_promote_begin(x->m, x->ref[name].id, to);
}

static bool op_move_end(struct model *x)
{
	u32 nr = pick(x, MINI_MOVES);
	bool was = x->m->moves[nr].on;

	mini_move_end(x->m, nr, pick(x, 8) == 0, pick(x, 2));
	return was;
}

static bool op_evict(struct model *x)
{
	return mini_evict(x->m, pick(x, MINI_TIERS));
}

static bool op_drain(struct model *x)
{
	return mini_region_drain(x->m, pick(x, MINI_MEMS), pick(x, MINI_PIECES_MAX));
}

static bool op_undrain(struct model *x)
{
	return mini_region_undrain(x->m, pick(x, MINI_MEMS), pick(x, MINI_PIECES_MAX));
}

static bool op_region_finish(struct model *x)
{
	return mini_region_finish(x->m, pick(x, MINI_MEMS), pick(x, MINI_PIECES_MAX),
				  pick(x, 4) == 0, pick(x, 2));
}

static bool op_arena(struct model *x)
{
	return mini_arena_set(x->m, pick(x, MINI_MEMS), pick(x, MINI_PIECES_MAX), true);
}

static bool op_arena_end(struct model *x)
{
	return mini_arena_set(x->m, pick(x, MINI_MEMS), pick(x, MINI_PIECES_MAX), false);
}

static bool op_clean(struct model *x)
{
	u64 was = x->m->nr_carried;

	mini_log_clean(x->m);
	return x->m->nr_carried > was;
}

static bool op_limbo(struct model *x)
{
	bool was = x->m->limbo.count;

	mini_limbo_check(x->m);
	return was;
}

/* A page: of a slot being filled, of one that a move goes to, or any at all. */
static bool any_page(struct model *x, u32 *tier, u32 *page)
{
	const struct mini_move *mv = &x->m->moves[pick(x, MINI_MOVES)];
	u32 name = any_filling(x), what = pick(x, 3);
	const struct kvt_hot *h;

	*tier = pick(x, MINI_MEMS);
	*page = pick(x, mini_pieces[*tier] * KVT_PIECE_PAGES);
	if (what == 1) {
		if (!mv->on || mv->dst_tier == MINI_LOG)
			return false;
		*tier = mv->dst_tier;
		*page = mv->dst_addr + *page % mini_slot_pages[mini_owner(kvt_hot(&x->m->table,
										  mv->id))];
	} else if (what == 2) {
		if (name == MODEL_NAMES)
			return false;
		h = kvt_hot(&x->m->table, x->ref[name].id);
		*tier = h->mem_tier;
		*page = h->mem_page + *page % mini_slot_pages[mini_owner(h)];
	}
	return true;
}

/* A page goes bad: a block on it is a miss, one being filled there cannot be committed. */
static bool op_poison(struct model *x)
{
	u32 tier, page, id, name;

	/* Seldom, so that it is spread over the whole run. */
	if (pick(x, 64) || !any_page(x, &tier, &page) ||
	    x->m->tier[tier].nr_bad == MODEL_BAD_PAGES || x->m->tier[tier].bad[page])
		return false;
	id = mini_poison(x->m, tier, page);
	if (id == KVT_NIL)
		return true;
	name = name_of_id(x, id);
	switch (kvt_ctl_state(kvt_ctl(kvt_hot(&x->m->table, id)))) {
	case KVT_READY:
		MINI_ASSERT(x->ref[name].state == REF_READY && x->ref[name].id == id);
		mini_kill(x->m, id);
		ref_gone(x, name);
		break;
	case KVT_FILLING:
		MINI_ASSERT(x->ref[name].state == REF_FILLING && x->ref[name].id == id);
		x->ref[name].bad = true;
		break;
	default:
		break;
	}
	return true;
}

static const struct {
	const char *name;
	u32 weight;
	bool (*run)(struct model *x);
} ops[MODEL_OPS] = {
	{ "find", 10, op_find },
	{ "reserve", 40, op_reserve },
	{ "commit", 36, op_commit },
	{ "abort", 3, op_abort },
	{ "get", 30, op_get },
	{ "put", 34, op_put },
	{ "drop", 6, op_drop },
	{ "pin", 2, op_pin },
	{ "demote", 24, op_demote },
	{ "promote", 20, op_promote },
	{ "move_end", 48, op_move_end },
	{ "evict", 8, op_evict },
	{ "drain", 1, op_drain },
	{ "undrain", 1, op_undrain },
	{ "region_finish", 4, op_region_finish },
	{ "arena", 1, op_arena },
	{ "arena_end", 1, op_arena_end },
	{ "clean", 4, op_clean },
	{ "limbo", 4, op_limbo },
	{ "poison", 1, op_poison },
};

const char *model_op_name(u32 op)
{
	return ops[op].name;
}

/* One operation, chosen and made on both. */
void model_step(struct model *x)
{
	u32 i, at, total = 0;

	for (i = 0; i < MODEL_OPS; i++)
		total += ops[i].weight;
	at = pick(x, total);
	for (i = 0; at >= ops[i].weight; i++)
		at -= ops[i].weight;
	x->done[i] += ops[i].run(x);
}

/* The whole of both: names, lease counts, bytes under leases, all invariants. */
void model_check(struct model *x)
{
	u32 leases[MINI_CHUNKS * KVT_CHUNK_BLOCKS] = { 0 }, i, id, named = 0;

	mini_check(x->m);
	for (i = 0; i < MODEL_HANDLES; i++) {
		if (!x->handle[i].on)
			continue;
		check_handle(x, &x->handle[i]);
		leases[x->handle[i].id]++;
	}
	for (id = 1; id < x->m->table.nr_chunks * KVT_CHUNK_BLOCKS; id++)
		MINI_ASSERT(kvt_ctl_leases(kvt_ctl(kvt_hot(&x->m->table, id))) ==
			    leases[id]);
	for (i = 0; i < MODEL_NAMES; i++) {
		struct mini_name n = name_of(i);

		id = mini_find(x->m, &n);
		MINI_ASSERT((id != KVT_NIL) == (x->ref[i].state != REF_NONE));
		if (id == KVT_NIL)
			continue;
		named++;
		MINI_ASSERT(x->m->tag[id] == x->ref[i].tag);
		MINI_ASSERT(kvt_ctl_state(kvt_ctl(kvt_hot(&x->m->table, id))) ==
			    (x->ref[i].state == REF_READY ? KVT_READY : KVT_FILLING));
	}
	for (i = 0; i < KVT_SHARDS; i++)
		named -= x->m->index.shards[i].count;
	MINI_ASSERT(named == 0);
}
