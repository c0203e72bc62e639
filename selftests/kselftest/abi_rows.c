// SPDX-License-Identifier: GPL-2.0
/*
 * The table of commands; see abi_rows.h.
 */
#include "abi_rows.h"
#include <dirent.h>
#include <stddef.h>

#define TIER_BYTES	(24 * KVT_MIB)
#define ARENA_BYTES	(4 * KVT_MIB)
#define SET		1
#define NONE		ABI_NONE

#define KEYS(a)		((struct kvt_key *)(a)->page)
#define RESULTS(a)	((a)->page + 2048)

/* --- a valid argument of each command ----------------------------------------- */

static int prep_query(struct abi *a, void *arg)
{
	struct kvtier_query *q = arg;

	q->tiers = KVT_U64(RESULTS(a));
	q->nr_tiers = KVTIER_TIERS_MAX;
	return 0;
}

static int prep_ns_open(struct abi *a, void *arg)
{
	struct kvtier_ns_open *o = arg;

	strcpy(a->page, "other");
	memset(RESULTS(a), 7, KVTIER_SECRET_BYTES);
	kvt_ns_args(o, a->page, &a->group, 1);
	o->secret = KVT_U64(RESULTS(a));
	return 0;
}

static int prep_lookup(struct abi *a, void *arg)
{
	struct kvtier_lookup *l = arg;

	KEYS(a)[0] = a->base;
	l->nr = 1;
	l->keys = KVT_U64(KEYS(a));
	l->results = KVT_U64(RESULTS(a));
	return 0;
}

static int prep_get(struct abi *a, void *arg)
{
	struct kvtier_get *g = arg;

	KEYS(a)[0] = a->base;
	g->nr = 1;
	g->keys = KVT_U64(KEYS(a));
	g->results = KVT_U64(RESULTS(a));
	g->eventfd = -1;
	return 0;
}

static int prep_reserve(struct abi *a, void *arg)
{
	struct kvtier_reserve *r = arg;

	KEYS(a)[0] = a->fresh;
	KEYS(a)[1] = a->base;
	r->nr = 1;
	r->keys = KVT_U64(KEYS(a));
	r->parent = KVT_U64(KEYS(a) + 1);
	r->results = KVT_U64(RESULTS(a));
	r->eventfd = -1;
	return 0;
}

static int reserve_fresh(struct abi *a)
{
	struct kvtier_block_result res;
	int ret = kvt_reserve(a->fd, 0, 0, &a->fresh, NULL, 1, &res, 0);

	memcpy(a->page, &res.handle, sizeof(res.handle));
	return ret == 1 ? 0 : ret < 0 ? ret : -EAGAIN;
}

static int prep_commit(struct abi *a, void *arg)
{
	struct kvtier_commit *c = arg;

	c->nr = 1;
	c->handles = KVT_U64(a->page);
	c->results = KVT_U64(RESULTS(a));
	return reserve_fresh(a);
}

static int prep_abort(struct abi *a, void *arg)
{
	struct kvtier_handles *h = arg;

	h->nr = 1;
	h->handles = KVT_U64(a->page);
	h->results = KVT_U64(RESULTS(a));
	return reserve_fresh(a);
}

static int prep_release(struct abi *a, void *arg)
{
	struct kvtier_handles *h = arg;
	struct kvtier_block_result res;
	int ret = kvt_get(a->fd, 0, 0, &a->base, 1, &res, 0);

	memcpy(a->page, &res.handle, sizeof(res.handle));
	h->nr = 1;
	h->handles = KVT_U64(a->page);
	h->results = KVT_U64(RESULTS(a));
	return ret == 1 ? 0 : -EAGAIN;
}

static int prep_export(struct abi *a, void *arg)
{
	struct kvtier_export *x = arg;
	struct kvtier_block_result res;
	int ret = kvt_get(a->fd, 0, 0, &a->base, 1, &res, 0);

	memcpy(a->page, &res.handle, sizeof(res.handle));
	x->nr = 1;
	x->handles = KVT_U64(a->page);
	return ret == 1 ? 0 : -EAGAIN;
}

static int prep_copy(struct abi *a, struct kvtier_copy *c, const struct kvt_key *key)
{
	struct kvtier_buf *buf = (void *)(a->page + 1024);

	KEYS(a)[0] = *key;
	buf->addr = KVT_U64(a->payload);
	buf->bytes = sizeof(a->payload);
	c->nr = 1;
	c->keys = KVT_U64(KEYS(a));
	c->bufs = KVT_U64(buf);
	c->results = KVT_U64(RESULTS(a));
	return 0;
}

static int prep_read(struct abi *a, void *arg)
{
	return prep_copy(a, arg, &a->base);
}

static int prep_write(struct abi *a, void *arg)
{
	return prep_copy(a, arg, &a->fresh);
}

static int prep_prefetch(struct abi *a, void *arg)
{
	struct kvtier_prefetch *p = arg;

	KEYS(a)[0] = a->base;
	p->nr = 1;
	p->keys = KVT_U64(KEYS(a));
	p->eventfd = -1;
	return 0;
}

static int prep_advise(struct abi *a, void *arg)
{
	struct kvtier_advise *v = arg;

	KEYS(a)[0] = a->base;
	v->nr = 1;
	v->keys = KVT_U64(KEYS(a));
	v->results = KVT_U64(RESULTS(a));
	v->advice = KVTIER_ADV_HOT;
	return 0;
}

static int prep_drop(struct abi *a, void *arg)
{
	struct kvtier_drop *d = arg;

	KEYS(a)[0] = a->fresh;
	d->nr = 1;
	d->keys = KVT_U64(KEYS(a));
	d->results = KVT_U64(RESULTS(a));
	return kvt_put(&a->main, 0, 0, &a->fresh, NULL, 1) == 1 ? 0 : -EAGAIN;
}

static int prep_iterate(struct abi *a, void *arg)
{
	struct kvtier_iterate *i = arg;

	i->nr = 1;
	i->entries = KVT_U64(RESULTS(a));
	return 0;
}

static int prep_stat(struct abi *a, void *arg)
{
	struct kvtier_stat *s = arg;

	s->flags = KVTIER_STAT_POOL;
	s->tiers = KVT_U64(RESULTS(a));
	s->nr_tiers = KVTIER_TIERS_MAX;
	return 0;
}

static int prep_arena(struct abi *a, void *arg)
{
	struct kvtier_arena *r = arg;

	(void)a;
	r->nr_slots = 4;
	return 0;
}

static int prep_session(struct abi *a, void *arg)
{
	struct kvtier_session *s = arg;

	s->session = 1;
	s->state = KVTIER_SESSION_DECODING;
	memcpy(s->tip, &a->base, sizeof(s->tip));
	return 0;
}

static int prep_ctl_query(struct abi *a, void *arg)
{
	struct kvtier_ctl_query *q = arg;

	q->pools = KVT_U64(RESULTS(a));
	q->nr_pools = 256;
	return 0;
}

static int prep_pool_create(struct abi *a, void *arg)
{
	struct kvtier_pool_create *c = arg;

	(void)a;
	c->pool_id = KVTIER_POOL_ANY_ID;
	return 0;
}

static int prep_pool_destroy(struct abi *a, void *arg)
{
	struct kvtier_pool_create c = { .size = sizeof(c), .pool_id = KVTIER_POOL_ANY_ID };
	struct kvtier_pool_destroy *d = arg;
	int err = kvt_ioctl(a->pool.ctl, KVTIER_OP_POOL_CREATE, &c);

	d->pool_id = c.pool_id;
	return err;
}

/* A disk with an ended pool that has a namespace without a secret. */
static int make_member(struct abi *a)
{
	struct kvt_pool p = a->pool;
	struct kvtier_pool_create c = { .size = sizeof(c), .pool_id = KVTIER_POOL_ANY_ID };
	struct kvt_client client;
	int err, dram;

	if (a->disk.bytes)
		return 0;
	err = kvt_disk_make(&a->disk, "abi", 24 * KVT_MIB);
	if (!err)
		err = kvt_ioctl(p.ctl, KVTIER_OP_POOL_CREATE, &c);
	if (err)
		return err;
	p.id = c.pool_id;
	snprintf(p.node, sizeof(p.node), "/dev/kvtier%u", p.id);
	dram = kvt_tier_dram(&p, 0, 4 * KVT_MIB);
	if (dram < 0 || kvt_tier_disk(&p, 1, &a->disk) < 0)
		return -EIO;
	err = kvt_client_open(&p, &client, "claimed", ABI_BLOCK_BYTES);
	if (!err && kvt_put(&client, 0, 0, &a->base, NULL, 1) != 1)
		err = -EIO;
	if (!err)
		err = kvt_tier_detach(&p, dram, 0, 10 * KVT_SEC);
	kvt_client_close(&client);
	return err ? err : kvt_pool_destroy(p.ctl, p.id);
}

static int prep_pool_assemble(struct abi *a, void *arg)
{
	struct kvtier_pool_assemble *as = arg;
	int err = make_member(a);

	memset(&a->member, 0, sizeof(a->member));
	snprintf(a->member.path, sizeof(a->member.path), "%s", a->disk.dev);
	as->pool_id = KVTIER_POOL_ANY_ID;
	as->devices = KVT_U64(&a->member);
	as->nr_devices = 1;
	return err;
}

static int prep_ns_claim(struct abi *a, void *arg)
{
	struct kvtier_pool_assemble as = { .size = sizeof(as) };
	struct kvtier_ns_claim *c = arg;
	char path[64];
	struct dirent *e;
	DIR *d;
	int err = prep_pool_assemble(a, &as);

	if (!err)
		err = kvt_ioctl(a->pool.ctl, KVTIER_OP_POOL_ASSEMBLE, &as);
	if (err)
		return err;
	snprintf(path, sizeof(path), "/sys/class/kvtier/kvtier%u/namespaces", as.pool_id);
	d = opendir(path);
	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			c->ns_id = strtoull(e->d_name, NULL, 10);
	if (d)
		closedir(d);
	c->pool_id = as.pool_id;
	c->uid = 1000;
	c->gid = 1000;
	return 0;
}

static int prep_pool_scrub(struct abi *a, void *arg)
{
	struct kvtier_pool_scrub *s = arg;
	struct kvtier_pool_scrub stop = {
		.size = sizeof(stop), .flags = KVTIER_SCRUB_STOP, .pool_id = a->pool.id,
	};

	s->pool_id = a->pool.id;
	/* The one of an earlier attempt may not be over yet. */
	return kvt_ioctl(a->pool.ctl, KVTIER_OP_POOL_SCRUB, &stop);
}

static int prep_tier_attach(struct abi *a, void *arg)
{
	struct kvtier_tier_attach *t = arg;

	kvt_tier_args(&a->pool, t, KVTIER_TIER_DRAM, 5);
	t->capacity_bytes = 4 * KVT_MIB;
	return 0;
}

static int prep_tier_op(struct abi *a, void *arg)
{
	struct kvtier_tier_op *t = arg;
	int id = kvt_tier_dram(&a->pool, 5, 4 * KVT_MIB);

	t->pool_id = a->pool.id;
	t->tier_id = id;
	t->timeout_ns = KVT_SEC;
	return id < 0 ? id : 0;
}

#define OFF(s, m)	((int)offsetof(struct s, m))
#define END(s, m)	(offsetof(struct s, m) + sizeof(((struct s *)0)->m))
#define ROW(o, s, last)	.name = #o, .op = KVTIER_OP_##o, .size = sizeof(struct s), \
			.min = END(s, last)

const struct abi_row abi_rows[] = {
	{ ROW(QUERY, kvtier_query, window_bytes), .unbound = true,
	  .reserved = NONE, .nr = NONE, .group = NONE, .in = NONE,
	  .in2 = NONE, .out = OFF(kvtier_query, tiers),
	  .out_optional = true, .prep = prep_query },
	{ ROW(NS_OPEN, kvtier_ns_open, fill_bytes), .unbound = true, .flags = KVTIER_NS_FLAGS,
	  .reserved = OFF(kvtier_ns_open, owner_uid), .nr = OFF(kvtier_ns_open, nr_groups),
	  .nr_max = KVTIER_GROUPS_MAX, .group = NONE, .in = OFF(kvtier_ns_open, identity),
	  .in2 = OFF(kvtier_ns_open, groups), .out = NONE, .prep = prep_ns_open },
	{ ROW(LOOKUP, kvtier_lookup, cost_ns), .reserved = OFF(kvtier_lookup, __reserved),
	  .nr = OFF(kvtier_lookup, nr), .nr_max = KVTIER_BATCH_MAX,
	  .group = OFF(kvtier_lookup, group), .in = OFF(kvtier_lookup, keys), .in2 = NONE,
	  .out = OFF(kvtier_lookup, results), .out_optional = true, .prep = prep_lookup },
	{ ROW(GET, kvtier_get, nr_prefix), .flags = KVTIER_GET_FLAGS, .reserved = NONE,
	  .nr = OFF(kvtier_get, nr), .nr_max = KVTIER_BATCH_MAX, .group = OFF(kvtier_get, group),
	  .in = OFF(kvtier_get, keys), .in2 = NONE, .out = OFF(kvtier_get, results),
	  .prep = prep_get },
	{ ROW(RESERVE, kvtier_reserve, nr_reserved), .flags = KVTIER_RESERVE_FLAGS,
	  .reserved = NONE,
	  .nr = OFF(kvtier_reserve, nr), .nr_max = KVTIER_BATCH_MAX,
	  .group = OFF(kvtier_reserve, group), .in = OFF(kvtier_reserve, keys),
	  .in2 = OFF(kvtier_reserve, parent), .out = OFF(kvtier_reserve, results),
	  .prep = prep_reserve },
	{ ROW(COMMIT, kvtier_commit, results), .flags = KVTIER_COMMIT_FLAGS, .reserved = NONE,
	  .nr = OFF(kvtier_commit, nr), .nr_max = KVTIER_BATCH_MAX, .group = NONE,
	  .in = OFF(kvtier_commit, handles), .in2 = NONE, .out = OFF(kvtier_commit, results),
	  .prep = prep_commit },
	{ ROW(ABORT, kvtier_handles, handles), .reserved = NONE, .nr = OFF(kvtier_handles, nr),
	  .nr_max = KVTIER_BATCH_MAX, .group = NONE, .in = OFF(kvtier_handles, handles),
	  .in2 = NONE, .out = OFF(kvtier_handles, results), .out_optional = true,
	  .prep = prep_abort },
	{ ROW(RELEASE, kvtier_handles, handles), .reserved = NONE, .nr = OFF(kvtier_handles, nr),
	  .nr_max = KVTIER_BATCH_MAX, .group = NONE, .in = OFF(kvtier_handles, handles),
	  .in2 = NONE, .out = OFF(kvtier_handles, results), .out_optional = true,
	  .prep = prep_release },
	{ ROW(READ, kvtier_copy, nr_done), .reserved = OFF(kvtier_copy, __reserved),
	  .nr = OFF(kvtier_copy, nr), .nr_max = KVTIER_BATCH_MAX,
	  .group = OFF(kvtier_copy, group), .in = OFF(kvtier_copy, keys),
	  .in2 = OFF(kvtier_copy, bufs), .out = OFF(kvtier_copy, results), .prep = prep_read },
	{ ROW(WRITE, kvtier_copy, nr_done), .reserved = OFF(kvtier_copy, __reserved),
	  .nr = OFF(kvtier_copy, nr), .nr_max = KVTIER_BATCH_MAX,
	  .group = OFF(kvtier_copy, group), .in = OFF(kvtier_copy, keys),
	  .in2 = OFF(kvtier_copy, bufs), .out = OFF(kvtier_copy, results), .prep = prep_write },
	{ ROW(PREFETCH, kvtier_prefetch, nr_started), .flags = KVTIER_PREFETCH_FLAGS,
	  .reserved = NONE,
	  .nr = OFF(kvtier_prefetch, nr), .nr_max = KVTIER_BATCH_MAX,
	  .group = OFF(kvtier_prefetch, group), .in = OFF(kvtier_prefetch, keys), .in2 = NONE,
	  .out = NONE, .prep = prep_prefetch },
	{ ROW(ADVISE, kvtier_advise, value), .reserved = NONE, .nr = OFF(kvtier_advise, nr),
	  .nr_max = KVTIER_BATCH_MAX, .group = OFF(kvtier_advise, group),
	  .in = OFF(kvtier_advise, keys), .in2 = NONE, .out = OFF(kvtier_advise, results),
	  .out_optional = true, .prep = prep_advise },
	{ ROW(DROP, kvtier_drop, nr_done), .reserved = OFF(kvtier_drop, __reserved),
	  .nr = OFF(kvtier_drop, nr), .nr_max = KVTIER_BATCH_MAX,
	  .group = OFF(kvtier_drop, group), .in = OFF(kvtier_drop, keys), .in2 = NONE,
	  .out = OFF(kvtier_drop, results), .out_optional = true, .prep = prep_drop },
	{ ROW(ITERATE, kvtier_iterate, entries), .reserved = OFF(kvtier_iterate, __reserved),
	  .nr = OFF(kvtier_iterate, nr), .nr_max = KVTIER_BATCH_MAX, .group = NONE, .in = NONE,
	  .in2 = NONE, .out = OFF(kvtier_iterate, entries), .prep = prep_iterate },
	{ ROW(STAT, kvtier_stat, meta_bytes_per_block), .unbound = true, .flags = KVTIER_STAT_FLAGS,
	  .reserved = OFF(kvtier_stat, __reserved), .nr = NONE, .group = NONE, .in = NONE,
	  .in2 = NONE, .out = OFF(kvtier_stat, tiers), .out_optional = true, .prep = prep_stat },
	{ ROW(ARENA, kvtier_arena, slot_bytes), .reserved = NONE, .nr = OFF(kvtier_arena, nr_slots),
	  .nr_max = 1 << 20, .group = OFF(kvtier_arena, group), .in = NONE, .in2 = NONE,
	  .out = NONE, .prep = prep_arena },
	{ ROW(EXPORT, kvtier_export, bytes), .reserved = NONE, .nr = OFF(kvtier_export, nr),
	  .nr_max = KVTIER_BATCH_MAX, .group = NONE, .in = OFF(kvtier_export, handles),
	  .in2 = NONE, .out = NONE, .prep = prep_export },
	{ ROW(SESSION, kvtier_session, reuse_ns), .reserved = NONE, .nr = NONE,
	  .group = OFF(kvtier_session, group), .in = NONE, .in2 = NONE, .out = NONE,
	  .prep = prep_session },
	{ ROW(CTL_QUERY, kvtier_ctl_query, ops), .ctl = true, .reserved = NONE, .nr = NONE,
	  .group = NONE, .in = NONE, .in2 = NONE, .out = OFF(kvtier_ctl_query, pools),
	  .out_optional = true, .prep = prep_ctl_query },
	{ ROW(POOL_CREATE, kvtier_pool_create, pool_id), .ctl = true,
	  .reserved = OFF(kvtier_pool_create, __reserved), .nr = NONE, .group = NONE, .in = NONE,
	  .in2 = NONE, .out = NONE, .prep = prep_pool_create },
	{ ROW(POOL_DESTROY, kvtier_pool_destroy, pool_id), .ctl = true,
	  .reserved = OFF(kvtier_pool_destroy, __reserved), .nr = NONE, .group = NONE,
	  .in = NONE, .in2 = NONE, .out = NONE, .prep = prep_pool_destroy },
	{ ROW(POOL_ASSEMBLE, kvtier_pool_assemble, time_ns), .ctl = true,
	  .flags = KVTIER_ASSEMBLE_FLAGS, .reserved = NONE,
	  .nr = OFF(kvtier_pool_assemble, nr_devices), .nr_max = KVTIER_TIERS_MAX,
	  .group = NONE, .in = OFF(kvtier_pool_assemble, devices), .in2 = NONE, .out = NONE,
	  .prep = prep_pool_assemble },
	{ ROW(NS_CLAIM, kvtier_ns_claim, gid), .ctl = true,
	  .reserved = OFF(kvtier_ns_claim, __reserved), .nr = NONE, .group = NONE, .in = NONE,
	  .in2 = NONE, .out = NONE, .prep = prep_ns_claim },
	{ ROW(POOL_SCRUB, kvtier_pool_scrub, rate_bytes), .ctl = true,
	  .flags = KVTIER_SCRUB_FLAGS, .reserved = OFF(kvtier_pool_scrub, __reserved),
	  .nr = NONE, .group = NONE, .in = NONE, .in2 = NONE, .out = NONE,
	  .prep = prep_pool_scrub },
	{ ROW(TIER_ATTACH, kvtier_tier_attach, tier_id), .ctl = true, .flags = KVTIER_ATTACH_FLAGS,
	  .reserved = NONE, .nr = NONE, .group = NONE, .in = NONE, .in2 = NONE, .out = NONE,
	  .prep = prep_tier_attach },
	{ ROW(TIER_DETACH, kvtier_tier_op, timeout_ns), .ctl = true, .flags = KVTIER_DETACH_FLAGS,
	  .reserved = NONE, .nr = NONE, .group = NONE, .in = NONE, .in2 = NONE, .out = NONE,
	  .prep = prep_tier_op },
	{ ROW(TIER_DRAIN, kvtier_tier_op, timeout_ns), .ctl = true, .reserved = NONE, .nr = NONE,
	  .group = NONE, .in = NONE, .in2 = NONE, .out = NONE, .prep = prep_tier_op },
};

const int abi_nr_rows = KVT_ARRAY(abi_rows);

/* --- one attempt ---------------------------------------------------------------- */

static int open_bound(struct abi *a)
{
	struct kvtier_ns_open o;
	int fd = kvt_open(&a->pool), err;

	if (fd < 0)
		return fd;
	kvt_ns_args(&o, "abi", &a->group, 1);
	o.min_bytes = ARENA_BYTES;
	err = kvt_ioctl(fd, KVTIER_OP_NS_OPEN, &o);
	if (err)
		close(fd);
	return err ? err : fd;
}

int abi_begin(struct abi *a, const struct abi_row *row, void *arg, bool bound)
{
	memset(arg, 0, ABI_ARG_MAX);
	a->seen = false;
	if (row->ctl)
		a->fd = open("/dev/kvtier", O_RDWR | O_CLOEXEC);
	else if (bound && row->op != KVTIER_OP_NS_OPEN)
		a->fd = open_bound(a);
	else
		a->fd = kvt_open(&a->pool);
	if (a->fd < 0)
		return -EBADF;
	*(__u32 *)arg = row->size;
	return row->prep(a, arg);
}

static void clear_pools(struct abi *a)
{
	__u32 ids[256], i;
	struct kvtier_ctl_query q = {
		.size = sizeof(q), .pools = KVT_U64(ids), .nr_pools = KVT_ARRAY(ids),
	};

	if (kvt_ioctl(a->pool.ctl, KVTIER_OP_CTL_QUERY, &q))
		return;
	for (i = 0; i < q.nr_pools; i++)
		if (ids[i] != a->pool.id)
			kvt_pool_destroy(a->pool.ctl, ids[i]);
}

/* Whatever became of the struct that says which: dma-bufs of this process. */
static void close_exports(void)
{
	char path[64], link[64];
	int fd;

	for (fd = 3; fd < 64; fd++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, link, sizeof(link) - 1);
		if (n > 0 && !strncmp(link, "/dmabuf:", 8))
			close(fd);
	}
}

void abi_end(struct abi *a, const struct abi_row *row)
{
	struct kvtier_tier_info tiers[KVTIER_TIERS_MAX];
	struct kvtier_query q;
	int i, nr;

	close(a->fd);
	if (row->op == KVTIER_OP_EXPORT)
		close_exports();
	if (!row->ctl) {
		kvt_drop(a->main.fd, 0, &a->fresh, 1, NULL);
		return;
	}
	clear_pools(a);
	nr = kvt_query(a->main.fd, &q, tiers);
	for (i = 0; i < nr; i++)
		if (tiers[i].rank)
			kvt_tier_detach(&a->pool, tiers[i].id, 0, 10 * KVT_SEC);
}

static int count_namespaces(const struct kvt_pool *p)
{
	char path[64];
	DIR *d;
	int nr = 0;

	snprintf(path, sizeof(path), "/sys/class/kvtier/kvtier%u/namespaces", p->id);
	d = opendir(path);
	if (!d)
		return -1;
	while (readdir(d))
		nr++;
	closedir(d);
	return nr;
}

void abi_snap(struct abi *a, struct abi_snap *s)
{
	struct kvtier_ctl_query cq = { .size = sizeof(cq) };
	struct kvtier_tier_info tiers[KVTIER_TIERS_MAX];
	struct kvtier_query q;
	int i;

	memset(s, 0, sizeof(*s));
	kvt_stat(a->main.fd, KVTIER_STAT_POOL, &s->st);
	s->st.meta_bytes = 0;
	s->st.meta_bytes_per_block = 0;
	s->st.lost_touches = 0;
	kvt_ioctl(a->pool.ctl, KVTIER_OP_CTL_QUERY, &cq);
	s->nr_pools = cq.nr_pools;
	s->nr_tiers = kvt_query(a->main.fd, &q, tiers);
	for (i = 0; i < s->nr_tiers; i++)
		s->states = s->states * 8 + tiers[i].state;
	s->nr_ns = count_namespaces(&a->pool);
}

bool abi_unchanged(const struct abi_snap *before, const struct abi_snap *after)
{
	struct abi_snap b = *before, a = *after;

	/* Idle namespaces of earlier attempts go in their own time. */
	if (a.nr_ns < b.nr_ns)
		a.nr_ns = b.nr_ns;
	return !memcmp(&b, &a, sizeof(a));
}

int abi_call(struct abi *a, const struct abi_row *row, void *arg)
{
	a->seen = false;
	/* It may have been, whatever it answers: that need not reach the caller. */
	a->done = true;
	return kvt_ioctl(a->fd, row->op, arg);
}

int abi_call_refused(struct abi *a, const struct abi_row *row, void *arg)
{
	struct abi_snap before;
	int ret;

	/* What the refusal before has left as it was is there already. */
	if (!a->seen)
		abi_snap(a, &a->snap);
	before = a->snap;
	ret = kvt_ioctl(a->fd, row->op, arg);
	abi_snap(a, &a->snap);
	a->seen = ret != 0;
	a->done |= !ret;
	if (ret && !abi_unchanged(&before, &a->snap)) {
		fprintf(stderr, "# %s was refused (%d) and changed something\n", row->name, ret);
		return -EUCLEAN;
	}
	return ret;
}

int abi_open(struct abi *a)
{
	struct kvtier_ns_open o;
	int err = kvt_setup(&a->pool), fd;

	if (err)
		return err;
	err = kvt_tier_dram(&a->pool, 0, TIER_BYTES);
	if (err < 0)
		return err;
	a->group.block_bytes = ABI_BLOCK_BYTES;
	a->base = kvt_key(SET, 0);
	a->fresh = kvt_key(SET, 1);
	fd = kvt_open(&a->pool);
	if (fd < 0)
		return fd;
	kvt_ns_args(&o, "abi", &a->group, 1);
	o.min_bytes = ARENA_BYTES;
	err = kvt_client_bind(&a->main, fd, &o);
	if (err)
		return err;
	if (kvt_put(&a->main, 0, 0, &a->base, NULL, 1) != 1)
		return -ENOENT;
	a->page = mmap(NULL, 3 * ABI_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	if (a->page == MAP_FAILED || mprotect(a->page + 2 * ABI_PAGE, ABI_PAGE, PROT_NONE))
		return -ENOMEM;
	a->settings = abi_settings_note(&a->pool);
	return a->settings ? 0 : -EIO;
}

int abi_close(struct abi *a)
{
	struct kvtier_stat st;
	int err = kvt_stat(a->main.fd, KVTIER_STAT_POOL, &st), left = 0;

	if (!err && (st.leases || st.nr_blocks != 1)) {
		fprintf(stderr, "# %llu leases and %llu blocks are left\n",
			(unsigned long long)st.leases, (unsigned long long)st.nr_blocks);
		left = -EUCLEAN;
	}
	if (a->settings && !a->done && abi_settings_changed(a->settings))
		left = -EUCLEAN;
	abi_settings_free(a->settings);
	kvt_client_close(&a->main);
	err = err ? err : left;
	left = kvt_teardown(&a->pool);
	if (a->disk.bytes)
		kvt_disk_remove(&a->disk);
	return err ? err : left;
}
