// SPDX-License-Identifier: GPL-2.0
/*
 * Arguments of commands. Each is made valid from what is known, then changed.
 */
#include "fuzz.h"
#include <dirent.h>
#include <stddef.h>

#define TIMEOUT_MAX_NS	(2 * KVT_MSEC)	/* of what waits; sequences are to be many */

static const __u32 words[] = {
	0, 1, 2, 3, 7, 16, 17, 31, 32, 33, 255, 256, 4095, 4096, 4097, 65535, 65536,
	1u << 20, (1u << 20) + 1, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffe,
};

/* --- pieces ----------------------------------------------------------------------- */

/* A stretch of a chain, mostly from its head; @parent: what comes before, or 0. */
static __u32 put_keys(struct fz_mem *mem, __u64 *parent, __u64 *r)
{
	__u32 chain = fz_below(r, FZ_CHAINS), at = fz_one_in(r, 4) ? fz_below(r, FZ_CHAIN) : 0;
	__u32 nr = 1 + fz_below(r, fz_one_in(r, 4) ? FZ_CHAIN : 4), i;
	struct kvt_key *keys = (void *)(mem->base + FZ_AT_KEYS);
	struct kvt_key *parents = (void *)(mem->base + FZ_AT_PARENTS);

	/* Few chains are used much, so that something is there. */
	chain = fz_one_in(r, 3) ? chain : chain % 4;
	if (nr > FZ_CHAIN - at)
		nr = FZ_CHAIN - at;
	for (i = 0; i < nr; i++) {
		keys[i] = fz.keys[chain][at + i];
		parents[i] = at + i ? fz.keys[chain][at + i - 1] : (struct kvt_key){ 0 };
	}
	*parent = at ? KVT_U64(parents) : 0;
	return nr;
}

static __u32 put_handles(struct fz_mem *mem, const struct fz_ring *ring, __u64 *r)
{
	__u64 *h = (void *)(mem->base + FZ_AT_KEYS);
	__u32 nr = 1 + fz_below(r, 4), i;

	/* The last ones in the order in which they came: children after their parents. */
	if (nr > ring->nr)
		nr = ring->nr ? ring->nr : 1;
	for (i = 0; i < nr; i++)
		h[i] = fz_one_in(r, 8) ? fz_recall(ring, r) :
					 ring->v[(ring->nr - nr + i) % FZ_RING];
	return nr;
}

static void put_bufs(struct fz_mem *mem, __u32 nr, __u32 group)
{
	struct kvtier_buf *b = (void *)(mem->base + FZ_AT_BUFS);
	struct kvtier_group groups[FZ_GROUPS];
	struct kvtier_ns_open o;
	__u32 i;

	fz_bind_args(&o, groups, 0);
	for (i = 0; i < nr; i++) {
		b[i].addr = KVT_U64(mem->base + FZ_AT_PAYLOAD);
		b[i].bytes = groups[group].block_bytes;
	}
}

static __u64 wait_ns(__u64 *r)
{
	static const __u64 times[] = { 0, 0, 1000, 100000, TIMEOUT_MAX_NS };

	return times[fz_below(r, KVT_ARRAY(times))];
}

#define RESULTS(mem)	KVT_U64((mem)->base + FZ_AT_RESULTS)
#define KEYS(mem)	KVT_U64((mem)->base + FZ_AT_KEYS)

/* --- data commands ---------------------------------------------------------------- */

static void arg_lookup(struct kvtier_lookup *a, struct fz_mem *mem, __u64 *r)
{
	__u64 parent;

	a->group = fz_below(r, FZ_GROUPS);
	a->nr = put_keys(mem, &parent, r);
	a->keys = KEYS(mem);
	a->results = fz_one_in(r, 4) ? 0 : RESULTS(mem);
	a->request = fz_below(r, 4);
}

static void arg_get(struct kvtier_get *a, struct fz_mem *mem, __u64 *r)
{
	static const __u32 flags[] = { 0, KVTIER_GET_WAIT, KVTIER_GET_ASYNC, KVTIER_GET_NOPROMOTE };
	__u64 parent;

	a->flags = flags[fz_below(r, KVT_ARRAY(flags))];
	a->group = fz_below(r, FZ_GROUPS);
	a->nr = put_keys(mem, &parent, r);
	a->keys = KEYS(mem);
	a->results = RESULTS(mem);
	a->request = fz_below(r, 4);
	a->timeout_ns = a->flags & KVTIER_GET_WAIT ? wait_ns(r) : 0;
	a->eventfd = -1;
}

static void arg_reserve(struct kvtier_reserve *a, struct fz_mem *mem, __u64 *r)
{
	__u64 parent;

	a->group = fz_below(r, FZ_GROUPS);
	a->nr = put_keys(mem, &parent, r);
	a->keys = KEYS(mem);
	a->parent = parent;
	a->results = RESULTS(mem);
	if (fz_one_in(r, 4)) {
		a->flags |= KVTIER_RESERVE_PARENTS;
		a->parent = KVT_U64(mem->base + FZ_AT_PARENTS);
	}
	a->flags |= fz_one_in(r, 4) ? KVTIER_RESERVE_WAIT :
		    fz_one_in(r, 6) ? KVTIER_RESERVE_ASYNC : 0;
	a->flags |= fz_one_in(r, 4) ? KVTIER_RESERVE_LEASE : 0;
	a->flags |= fz_one_in(r, 6) ? KVTIER_RESERVE_ARENA : 0;
	a->timeout_ns = a->flags & KVTIER_RESERVE_WAIT ? wait_ns(r) : 0;
	a->eventfd = -1;
}

static void arg_commit(struct kvtier_commit *a, const struct fz_slot *s, struct fz_mem *mem,
		       __u64 *r)
{
	a->flags = fz_below(r, 2) ? KVTIER_COMMIT_LEASE : 0;
	a->nr = put_handles(mem, &s->reserved, r);
	a->handles = KEYS(mem);
	a->results = RESULTS(mem);
}

static void arg_handles(struct kvtier_handles *a, const struct fz_ring *ring, struct fz_mem *mem,
			__u64 *r)
{
	a->nr = put_handles(mem, ring, r);
	a->handles = KEYS(mem);
	a->results = fz_one_in(r, 3) ? 0 : RESULTS(mem);
}

static void arg_copy(struct kvtier_copy *a, bool write, struct fz_mem *mem, __u64 *r)
{
	__u32 group = fz_below(r, FZ_GROUPS), nr;
	__u64 parent;

	/* What is in @a may be scribbled on. */
	nr = put_keys(mem, &parent, r);
	a->group = group;
	a->nr = nr;
	a->keys = KEYS(mem);
	a->parent = write ? parent : 0;
	put_bufs(mem, nr, group);
	a->bufs = KVT_U64(mem->base + FZ_AT_BUFS);
	a->results = RESULTS(mem);
	a->timeout_ns = wait_ns(r);
}

static void arg_prefetch(struct kvtier_prefetch *a, struct fz_mem *mem, __u64 *r)
{
	__u64 parent;

	a->flags = fz_below(r, 2) ? KVTIER_PREFETCH_NOTIFY : 0;
	a->group = fz_below(r, FZ_GROUPS);
	a->nr = put_keys(mem, &parent, r);
	a->keys = KEYS(mem);
	a->user_data = a->flags ? fz_next(r) : 0;
	a->eventfd = -1;
}

static void arg_advise(struct kvtier_advise *a, struct fz_mem *mem, __u64 *r)
{
	__u64 parent;

	a->group = fz_below(r, FZ_GROUPS);
	a->nr = put_keys(mem, &parent, r);
	a->keys = KEYS(mem);
	a->results = fz_one_in(r, 3) ? 0 : RESULTS(mem);
	a->advice = KVTIER_ADV_COLD + fz_below(r, 5);
	a->value = a->advice == KVTIER_ADV_TTL ? fz_below(r, 2) * KVT_SEC : 0;
}

static void arg_drop(struct kvtier_drop *a, struct fz_mem *mem, __u64 *r)
{
	__u64 parent;

	a->group = fz_below(r, FZ_GROUPS);
	a->nr = put_keys(mem, &parent, r);
	a->keys = KEYS(mem);
	a->results = fz_one_in(r, 3) ? 0 : RESULTS(mem);
}

static void arg_session(struct kvtier_session *a, __u64 *r)
{
	a->group = fz_below(r, FZ_GROUPS);
	a->state = KVTIER_SESSION_DECODING + fz_below(r, 3);
	a->session = 1 + fz_below(r, 6);
	if (!fz_one_in(r, 4))
		memcpy(a->tip, &fz.keys[fz_below(r, 4)][fz_below(r, 2)], sizeof(a->tip));
	a->reuse_ns = a->state == KVTIER_SESSION_DECODING ? 0 : fz_below(r, 3) * KVT_SEC;
}

static void arg_small(int op, void *arg, const struct fz_slot *s, struct fz_mem *mem, __u64 *r)
{
	struct kvtier_query *q = arg;
	struct kvtier_iterate *i = arg;
	struct kvtier_stat *st = arg;
	struct kvtier_arena *ar = arg;
	struct kvtier_export *x = arg;

	switch (op) {
	case KVTIER_OP_QUERY:
		q->tiers = fz_one_in(r, 3) ? 0 : RESULTS(mem);
		q->nr_tiers = fz_one_in(r, 3) ? fz_below(r, 4) : KVTIER_TIERS_MAX;
		break;
	case KVTIER_OP_ITERATE:
		i->nr = 1 + fz_below(r, 40);
		i->cursor = fz_below(r, 2) ? s->cursor : 0;
		i->entries = RESULTS(mem);
		break;
	case KVTIER_OP_STAT:
		st->flags = fz_below(r, 2) ? KVTIER_STAT_POOL : 0;
		st->tiers = st->flags ? RESULTS(mem) : 0;
		st->nr_tiers = st->flags ? KVTIER_TIERS_MAX : 0;
		break;
	case KVTIER_OP_ARENA:
		ar->group = fz_below(r, FZ_GROUPS);
		ar->nr_slots = 1 + fz_below(r, 8);
		break;
	case KVTIER_OP_EXPORT:
		x->nr = put_handles(mem, &s->leased, r);
		x->handles = KEYS(mem);
		break;
	}
}

/* --- commands of the control device ------------------------------------------------ */

static __u32 some_pool(__u64 *r)
{
	return fz_one_in(r, 3) || !fz.pools.nr ? fz.pool.id : (__u32)fz_recall(&fz.pools, r);
}

static void arg_attach(struct kvtier_tier_attach *a, __u64 *r)
{
	static const char *const paths[] = { "", "/dev/null", "/dev/kvtier", "/proc/self", "dax9.9" };
	int type = fz_below(r, 8);

	a->pool_id = some_pool(r);
	a->rank = fz_below(r, 2) + 2;
	a->node = -1;
	snprintf(a->name, sizeof(a->name), "fz%u", fz_below(r, 6));
	a->type = type == 0 ? KVTIER_TIER_NODE : type == 1 ? KVTIER_TIER_BDEV :
		  type == 2 ? KVTIER_TIER_DAX : KVTIER_TIER_DRAM;
	if (a->type == KVTIER_TIER_DRAM || a->type == KVTIER_TIER_NODE) {
		a->capacity_bytes = (1 + fz_below(r, 2)) * KVT_PIECE;
		a->node = a->type == KVTIER_TIER_NODE ? 0 : -1;
		a->flags = fz_below(r, 2) ? KVTIER_ATTACH_CHARGE : 0;
		return;
	}
	a->rank += a->type == KVTIER_TIER_BDEV ? 100 : 0;
	a->flags = fz_below(r, 2) ? KVTIER_ATTACH_FORCE : 0;
	snprintf(a->path, sizeof(a->path), "%s", a->type == KVTIER_TIER_BDEV && fz_below(r, 4) ?
		 fz.spare.dev : paths[fz_below(r, KVT_ARRAY(paths))]);
}

static void arg_assemble(struct kvtier_pool_assemble *a, struct fz_mem *mem, __u64 *r)
{
	struct kvtier_assemble_device *d = (void *)(mem->base + FZ_AT_KEYS);
	static const char *const paths[] = { "/dev/null", "/dev/kvtier", "", "nothing" };

	memset(d, 0, 2 * sizeof(*d));
	snprintf(d[0].path, sizeof(d[0].path), "%s", fz_one_in(r, 8) ?
		 paths[fz_below(r, KVT_ARRAY(paths))] : fz.member.dev);
	snprintf(d[1].path, sizeof(d[1].path), "%s", fz.spare.dev);
	a->flags = fz_below(r, 2) ? KVTIER_ASSEMBLE_DEGRADED : 0;
	a->pool_id = KVTIER_POOL_ANY_ID;
	a->devices = KVT_U64(d);
	a->nr_devices = fz_one_in(r, 8) ? 2 : 1;
}

/* Any namespace of the pool. */
static __u64 some_ns(__u32 pool, __u64 *r)
{
	__u64 found = 0, id;
	char path[64];
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "/sys/class/kvtier/kvtier%u/namespaces", pool);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		id = strtoull(e->d_name, NULL, 10);
		if (id && (!found || fz_one_in(r, 2)))
			found = id;
	}
	if (d)
		closedir(d);
	return found;
}

static void arg_control(int op, void *arg, struct fz_mem *mem, __u64 *r)
{
	struct kvtier_ctl_query *q = arg;
	struct kvtier_pool_create *create = arg;
	struct kvtier_pool_destroy *destroy = arg;
	struct kvtier_tier_op *t = arg;
	struct kvtier_ns_claim *claim = arg;
	struct kvtier_pool_scrub *scrub = arg;

	switch (op) {
	case KVTIER_OP_CTL_QUERY:
		q->pools = RESULTS(mem);
		q->nr_pools = fz_below(r, 256);
		break;
	case KVTIER_OP_POOL_CREATE:
		create->pool_id = fz_below(r, 2) ? KVTIER_POOL_ANY_ID : 100 + fz_below(r, 4);
		break;
	case KVTIER_OP_POOL_DESTROY:
		destroy->pool_id = some_pool(r);
		break;
	case KVTIER_OP_POOL_ASSEMBLE:
		arg_assemble(arg, mem, r);
		break;
	case KVTIER_OP_TIER_ATTACH:
		arg_attach(arg, r);
		break;
	case KVTIER_OP_TIER_DETACH:
	case KVTIER_OP_TIER_DRAIN:
		t->flags = op == KVTIER_OP_TIER_DETACH && fz_below(r, 2) ?
			   KVTIER_DETACH_DISCARD : 0;
		t->tier_id = fz_one_in(r, 8) ? fz_below(r, 4) : (__u32)fz_recall(&fz.tiers, r);
		t->pool_id = fz.pool.id;
		t->timeout_ns = TIMEOUT_MAX_NS;
		break;
	case KVTIER_OP_NS_CLAIM:
		claim->pool_id = some_pool(r);
		claim->ns_id = some_ns(claim->pool_id, r);
		claim->uid = 1000 + fz_below(r, 2);
		claim->gid = 1000;
		break;
	case KVTIER_OP_POOL_SCRUB:
		scrub->flags = fz_below(r, 2) ? KVTIER_SCRUB_STOP : 0;
		scrub->pool_id = some_pool(r);
		scrub->rate_bytes = scrub->flags ? 0 : fz_below(r, 2) * KVT_MIB;
		break;
	}
}

/* --- changes ----------------------------------------------------------------------- */

static __u32 size_of(int op)
{
	switch (op) {
#define SIZE(o, s)	case KVTIER_OP_##o: return sizeof(struct kvtier_##s)
	SIZE(QUERY, query);
	SIZE(NS_OPEN, ns_open);
	SIZE(LOOKUP, lookup);
	SIZE(GET, get);
	SIZE(RESERVE, reserve);
	SIZE(COMMIT, commit);
	SIZE(ABORT, handles);
	SIZE(RELEASE, handles);
	SIZE(READ, copy);
	SIZE(WRITE, copy);
	SIZE(PREFETCH, prefetch);
	SIZE(ADVISE, advise);
	SIZE(DROP, drop);
	SIZE(ITERATE, iterate);
	SIZE(STAT, stat);
	SIZE(ARENA, arena);
	SIZE(SESSION, session);
	SIZE(EXPORT, export);
	SIZE(CTL_QUERY, ctl_query);
	SIZE(POOL_CREATE, pool_create);
	SIZE(POOL_DESTROY, pool_destroy);
	SIZE(POOL_ASSEMBLE, pool_assemble);
	SIZE(TIER_ATTACH, tier_attach);
	SIZE(TIER_DETACH, tier_op);
	SIZE(TIER_DRAIN, tier_op);
	SIZE(NS_CLAIM, ns_claim);
	SIZE(POOL_SCRUB, pool_scrub);
#undef SIZE
	}
	return 64;
}

/* Memory that is not what is expected: cut short, read-only, none, the driver's own. */
static __u64 some_pointer(const struct fz_slot *s, struct fz_mem *mem, __u32 value)
{
	switch (value % 11) {
	case 0: return 0;
	case 1: return KVT_U64(mem->base + FZ_MEM_BYTES) - value / 16 % 64;
	case 2: return KVT_U64(mem->base + FZ_MEM_BYTES);
	case 3: return KVT_U64(mem->base);
	case 4: return RESULTS(mem);
	case 5: return KEYS(mem) + 1;
	case 6: return KVT_U64(mem->ro + FZ_AT_RESULTS);
	case 7: return 0xffff888000000000ull;
	case 8: return 0x8000000000000000ull;
	case 9: return KVT_U64(s->map[fz_thread].at) + value / 16 % 64;
	default: return ~0ull - value / 16 % 64;
	}
}

static void mutate(const struct fz_mut *m, char *arg, __u32 size, const struct fz_slot *s,
		   struct fz_mem *mem)
{
	static const __u32 sizes[] = { 0, 4, 8, 12, 16, 24, 4095, 4096, 4097, ~0u };
	__u32 *word = (__u32 *)arg + m->at % (size / 4), n = KVT_ARRAY(sizes);
	__u64 *pointer = (__u64 *)arg + 1 + m->at % (size / 8 - 1);

	switch (m->how) {
	case FZ_SET:
		*word = words[m->value % KVT_ARRAY(words)];
		break;
	case FZ_FLIP:
		*word ^= 1u << m->value % 32;
		break;
	case FZ_ADD:
		*word += (int)(m->value % 17) - 8;
		break;
	case FZ_POINT:
		*pointer = some_pointer(s, mem, m->value);
		break;
	default:
		*(__u32 *)arg = m->value & 1 ? sizes[m->value / 2 % n] : size + m->value / 2 % 32 - 16;
	}
}

/* Nothing may wait for long, or for what only the waiting thread could do. */
static void bound_wait(int op, char *arg)
{
	__u64 *t;

	switch (op) {
	case KVTIER_OP_GET:
		t = &((struct kvtier_get *)arg)->timeout_ns;
		break;
	case KVTIER_OP_RESERVE:
		t = &((struct kvtier_reserve *)arg)->timeout_ns;
		break;
	case KVTIER_OP_READ:
	case KVTIER_OP_WRITE:
		t = &((struct kvtier_copy *)arg)->timeout_ns;
		break;
	case KVTIER_OP_TIER_DETACH:
	case KVTIER_OP_TIER_DRAIN:
		t = &((struct kvtier_tier_op *)arg)->timeout_ns;
		break;
	default:
		return;
	}
	if (*t > TIMEOUT_MAX_NS)
		*t %= TIMEOUT_MAX_NS;
}

/* The least memory that a tier takes is real: no test of how much the machine has. */
static void bound_tier(struct kvtier_tier_attach *a)
{
	if (a->capacity_bytes > 4 * KVT_PIECE && a->capacity_bytes < 1ull << 40)
		a->capacity_bytes %= 4 * KVT_PIECE;
}

static void make_arg(int op, char *arg, struct fz_slot *s, struct fz_mem *mem, __u64 *r)
{
	switch (op) {
	case KVTIER_OP_NS_OPEN:
		fz_bind_args((void *)arg, (void *)(mem->base + FZ_AT_KEYS), fz_below(r, 2));
		break;
	case KVTIER_OP_LOOKUP:
		arg_lookup((void *)arg, mem, r);
		break;
	case KVTIER_OP_GET:
		arg_get((void *)arg, mem, r);
		break;
	case KVTIER_OP_RESERVE:
		arg_reserve((void *)arg, mem, r);
		break;
	case KVTIER_OP_COMMIT:
		arg_commit((void *)arg, s, mem, r);
		break;
	case KVTIER_OP_ABORT:
	case KVTIER_OP_RELEASE:
		arg_handles((void *)arg, op == KVTIER_OP_ABORT ? &s->reserved : &s->leased, mem, r);
		break;
	case KVTIER_OP_READ:
	case KVTIER_OP_WRITE:
		arg_copy((void *)arg, op == KVTIER_OP_WRITE, mem, r);
		break;
	case KVTIER_OP_PREFETCH:
		arg_prefetch((void *)arg, mem, r);
		break;
	case KVTIER_OP_ADVISE:
		arg_advise((void *)arg, mem, r);
		break;
	case KVTIER_OP_DROP:
		arg_drop((void *)arg, mem, r);
		break;
	case KVTIER_OP_SESSION:
		arg_session((void *)arg, r);
		break;
	default:
		arg_small(op, arg, s, mem, r);
		arg_control(op, arg, mem, r);
	}
}

void *fz_arg(const struct fz_call *c, struct fz_slot *slot, struct fz_mem *mem, __u64 *state)
{
	__u32 size = size_of(c->op);
	int i;

	memset(mem->base, 0, 4096);
	make_arg(c->op, mem->base, slot, mem, state);
	*(__u32 *)mem->base = size;
	for (i = 0; i < c->nr_muts; i++)
		mutate(&c->mut[i], mem->base, size, slot, mem);
	bound_wait(c->op, mem->base);
	if (c->op == KVTIER_OP_TIER_ATTACH)
		bound_tier((void *)mem->base);
	/* Sometimes it cannot be written to, or ends where memory ends. */
	if (c->nr_muts && fz_one_in(state, 12))
		return mem->ro;
	if (c->nr_muts && fz_one_in(state, 12)) {
		memmove(mem->base + FZ_MEM_BYTES - size, mem->base, size);
		return mem->base + FZ_MEM_BYTES - size;
	}
	return mem->base;
}

/* --- answers ------------------------------------------------------------------------ */

static bool learn_blocks(struct fz_slot *s, __u64 at, __u32 nr, int op)
{
	const struct kvtier_block_result *res = (void *)(uintptr_t)at;
	const struct fz_mem *m;
	bool done = false;
	__u32 i;

	/* Results that were sent elsewhere are not looked at. */
	for (i = 0, m = NULL; i < FZ_THREADS; i++)
		if (at == RESULTS(&fz.mem[i]))
			m = &fz.mem[i];
	for (i = 0; m && i < nr && i < FZ_RING; i++) {
		if (res[i].status <= 0)
			continue;
		if (res[i].handle)
			fz_remember(res[i].status == KVTIER_ST_RESERVED ? &s->reserved : &s->leased,
				    res[i].handle);
		if (res[i].offset)
			fz_remember(&s->offset, res[i].offset);
		done |= res[i].status == KVTIER_ST_RESERVED || res[i].status == KVTIER_ST_DONE ||
			(res[i].status == KVTIER_ST_HIT && op != KVTIER_OP_RESERVE);
	}
	return done;
}

bool fz_learn(const struct fz_call *c, struct fz_slot *slot, void *arg)
{
	struct kvtier_get *g = arg;
	struct kvtier_reserve *v = arg;
	struct kvtier_commit *m = arg;

	switch (c->op) {
	case KVTIER_OP_GET:
		return learn_blocks(slot, g->results, g->nr, c->op) && g->nr_prefix;
	case KVTIER_OP_RESERVE:
		return learn_blocks(slot, v->results, v->nr, c->op) && v->nr_reserved;
	case KVTIER_OP_COMMIT:
		return learn_blocks(slot, m->results, m->nr, c->op) && m->nr_done;
	case KVTIER_OP_ABORT:
	case KVTIER_OP_RELEASE:
		return ((struct kvtier_handles *)arg)->nr_done;
	case KVTIER_OP_LOOKUP:
		return ((struct kvtier_lookup *)arg)->nr_prefix;
	case KVTIER_OP_READ:
	case KVTIER_OP_WRITE:
		return ((struct kvtier_copy *)arg)->nr_done;
	case KVTIER_OP_ADVISE:
		return ((struct kvtier_advise *)arg)->nr_done;
	case KVTIER_OP_DROP:
		return ((struct kvtier_drop *)arg)->nr_done;
	case KVTIER_OP_ITERATE:
		slot->cursor = ((struct kvtier_iterate *)arg)->cursor;
		return ((struct kvtier_iterate *)arg)->nr;
	case KVTIER_OP_ARENA:
		fz_remember(&slot->offset, ((struct kvtier_arena *)arg)->offset);
		break;
	case KVTIER_OP_NS_OPEN:
		slot->fill_offset = ((struct kvtier_ns_open *)arg)->fill_offset;
		break;
	case KVTIER_OP_POOL_CREATE:
		fz_remember(&fz.pools, ((struct kvtier_pool_create *)arg)->pool_id);
		break;
	case KVTIER_OP_POOL_ASSEMBLE:
		fz_remember(&fz.pools, ((struct kvtier_pool_assemble *)arg)->pool_id);
		break;
	case KVTIER_OP_TIER_ATTACH:
		if (((struct kvtier_tier_attach *)arg)->pool_id == fz.pool.id)
			fz_remember(&fz.tiers, ((struct kvtier_tier_attach *)arg)->tier_id);
		break;
	}
	return true;
}
