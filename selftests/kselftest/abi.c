// SPDX-License-Identifier: GPL-2.0
/*
 * The errno contract, command by command.
 *
 * One row for each command tells how to make a valid argument of it and where in
 * the argument the things lie that every command must check alike: size, flags,
 * reserved words, pointers, counts, group. Each test takes a valid argument,
 * spoils one thing, and expects the documented errno and an unchanged pool. A
 * command that the kernel has and that has no row fails the last test.
 *
 * Every attempt runs on a new open file, and what it may have left behind is
 * cleared away through another one, so attempts do not depend on each other.
 */
#include "kvt_test.h"
#include <dirent.h>
#include <stddef.h>
#include <sys/stat.h>

#define BLOCK_BYTES	4096
#define TIER_BYTES	(24 * KVT_MIB)
#define ARENA_BYTES	(4 * KVT_MIB)
#define ARG_MAX		4096
#define SET		1
#define NONE		(-1)
#define ALICE		1001

struct abi {
	struct kvt_pool pool;
	struct kvt_client main;		/* keeps the namespace, clears up */
	int fd;				/* of this attempt */
	struct kvt_key base;		/* committed */
	struct kvt_key fresh;		/* not there between attempts */
	char *page;			/* two pages; what follows cannot be touched */
	struct kvtier_group group;
	__u64 handle;
	char payload[BLOCK_BYTES];
	struct kvtier_buf buf;
};

/* Where things lie that are checked alike; NONE: this command has no such thing. */
struct row {
	const char *name;
	unsigned int op;
	bool ctl;
	bool unbound;		/* works before NS_OPEN */
	__u32 size;
	__u32 min;		/* end of the mandatory part */
	__u32 flags;		/* known ones */
	int reserved;
	int nr;
	__u32 nr_max;
	int group;
	int in;			/* pointer read from */
	int in2;
	int out;		/* pointer written to */
	bool out_optional;
	int (*prep)(struct abi *a, void *arg);
};

#define PAGE		4096
#define KEYS(a)		((struct kvt_key *)(a)->page)
#define RESULTS(a)	((a)->page + 2048)
#define BAD_END(a)	((a)->page + 2 * PAGE)

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

	a->handle = res.handle;
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

static const struct row rows[] = {
	{ ROW(QUERY, kvtier_query, window_bytes), .unbound = true,
	  .reserved = OFF(kvtier_query, __reserved), .nr = NONE, .group = NONE, .in = NONE,
	  .in2 = NONE, .out = OFF(kvtier_query, tiers),
	  .out_optional = true, .prep = prep_query },
	{ ROW(NS_OPEN, kvtier_ns_open, fill_bytes), .unbound = true, .flags = KVTIER_NS_FLAGS,
	  .reserved = OFF(kvtier_ns_open, __reserved), .nr = OFF(kvtier_ns_open, nr_groups),
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
	{ ROW(CTL_QUERY, kvtier_ctl_query, ops), .ctl = true, .reserved = NONE, .nr = NONE,
	  .group = NONE, .in = NONE, .in2 = NONE, .out = OFF(kvtier_ctl_query, pools),
	  .out_optional = true, .prep = prep_ctl_query },
	{ ROW(POOL_CREATE, kvtier_pool_create, pool_id), .ctl = true,
	  .reserved = OFF(kvtier_pool_create, __reserved), .nr = NONE, .group = NONE, .in = NONE,
	  .in2 = NONE, .out = NONE, .prep = prep_pool_create },
	{ ROW(POOL_DESTROY, kvtier_pool_destroy, pool_id), .ctl = true,
	  .reserved = OFF(kvtier_pool_destroy, __reserved), .nr = NONE, .group = NONE,
	  .in = NONE, .in2 = NONE, .out = NONE, .prep = prep_pool_destroy },
	{ ROW(TIER_ATTACH, kvtier_tier_attach, tier_id), .ctl = true,
	  .reserved = OFF(kvtier_tier_attach, __reserved), .nr = NONE, .group = NONE, .in = NONE,
	  .in2 = NONE, .out = NONE, .prep = prep_tier_attach },
	{ ROW(TIER_DETACH, kvtier_tier_op, timeout_ns), .ctl = true, .flags = KVTIER_DETACH_FLAGS,
	  .reserved = NONE, .nr = NONE, .group = NONE, .in = NONE, .in2 = NONE, .out = NONE,
	  .prep = prep_tier_op },
	{ ROW(TIER_DRAIN, kvtier_tier_op, timeout_ns), .ctl = true, .reserved = NONE, .nr = NONE,
	  .group = NONE, .in = NONE, .in2 = NONE, .out = NONE, .prep = prep_tier_op },
};

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

/* @bound: bind the file first, if the command wants that. */
static int begin(struct abi *a, const struct row *row, void *arg, bool bound)
{
	memset(arg, 0, ARG_MAX);
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

static void end(struct abi *a, const struct row *row)
{
	struct kvtier_tier_info tiers[KVTIER_TIERS_MAX];
	struct kvtier_query q;
	int i, nr;

	close(a->fd);
	if (!row->ctl) {
		kvt_drop(a->main.fd, 0, &a->fresh, 1, NULL);
		return;
	}
	clear_pools(a);
	nr = kvt_query(a->main.fd, &q, tiers);
	for (i = 0; i < nr; i++)
		if (tiers[i].rank)
			kvt_tier_detach(&a->pool, tiers[i].id, 0, KVT_SEC);
}

/* What a refused command must leave as it was. */
struct snap {
	struct kvtier_stat st;
	__u32 nr_pools;
	int nr_tiers;
	__u32 states;
	int nr_ns;
};

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

static void take_snap(struct abi *a, struct snap *s)
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

static int call(struct abi *a, const struct row *row, void *arg)
{
	return kvt_ioctl(a->fd, row->op, arg);
}

/* As call(), and tells when a refused command has changed something. */
static int call_refused(struct abi *a, const struct row *row, void *arg)
{
	struct snap before, after;
	int ret;

	take_snap(a, &before);
	ret = call(a, row, arg);
	take_snap(a, &after);
	/* Idle namespaces of earlier attempts go in their own time. */
	if (after.nr_ns < before.nr_ns)
		after.nr_ns = before.nr_ns;
	if (ret && memcmp(&before, &after, sizeof(before))) {
		fprintf(stderr, "# %s was refused (%d) and changed something\n", row->name, ret);
		return -EUCLEAN;
	}
	return ret;
}

static __u32 *word(void *arg, int offset)
{
	return (__u32 *)((char *)arg + offset);
}

static __u64 *pointer(void *arg, int offset)
{
	return (__u64 *)((char *)arg + offset);
}

FIXTURE(abi)
{
	struct abi a;
	char arg[ARG_MAX];
};

FIXTURE_SETUP(abi)
{
	struct abi *a = &self->a;
	struct kvtier_ns_open o;
	int fd;

	ASSERT_EQ(0, kvt_setup(&a->pool));
	ASSERT_LE(0, kvt_tier_dram(&a->pool, 0, TIER_BYTES));
	a->group.block_bytes = BLOCK_BYTES;
	a->base = kvt_key(SET, 0);
	a->fresh = kvt_key(SET, 1);
	fd = kvt_open(&a->pool);
	ASSERT_LE(0, fd);
	kvt_ns_args(&o, "abi", &a->group, 1);
	o.min_bytes = ARENA_BYTES;
	ASSERT_EQ(0, kvt_client_bind(&a->main, fd, &o));
	ASSERT_EQ(1, kvt_put(&a->main, 0, 0, &a->base, NULL, 1));
	a->page = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, a->page);
	ASSERT_EQ(0, mprotect(BAD_END(a), PAGE, PROT_NONE));
}

FIXTURE_TEARDOWN(abi)
{
	struct kvtier_stat st;

	/* Whatever was tried: nothing is held by files that are closed. */
	EXPECT_EQ(0, kvt_stat(self->a.main.fd, KVTIER_STAT_POOL, &st));
	EXPECT_EQ(0, st.leases);
	EXPECT_EQ(1, st.nr_blocks);
	kvt_client_close(&self->a.main);
	EXPECT_EQ(0, kvt_teardown(&self->a.pool));
}

#define EACH_ROW(row) \
	for (row = rows; row < rows + KVT_ARRAY(rows); row++)

TEST_F(abi, valid_arguments_work)
{
	const struct row *row;

	EACH_ROW(row) {
		ASSERT_EQ(0, begin(&self->a, row, self->arg, true)) TH_LOG("%s", row->name);
		EXPECT_EQ(0, call(&self->a, row, self->arg)) TH_LOG("%s", row->name);
		end(&self->a, row);
	}
}

static int try_size(struct abi *a, const struct row *row, char *arg, __u32 size, int tail_at)
{
	int ret = begin(a, row, arg, true);

	if (ret)
		return ret - 1000;
	*word(arg, 0) = size;
	if (tail_at >= 0)
		arg[tail_at] = 1;
	ret = call_refused(a, row, arg);
	end(a, row);
	return ret;
}

TEST_F(abi, sizes)
{
	const struct row *row;
	__u32 n;

	EACH_ROW(row) {
		for (n = 0; n < 8; n++)
			EXPECT_EQ(-EINVAL, try_size(&self->a, row, self->arg, n, NONE))
				TH_LOG("%s size %u", row->name, n);
		EXPECT_EQ(0, try_size(&self->a, row, self->arg, row->size, NONE))
			TH_LOG("%s", row->name);
		EXPECT_EQ(0, try_size(&self->a, row, self->arg, row->size + 8, NONE))
			TH_LOG("%s", row->name);
		EXPECT_EQ(0, try_size(&self->a, row, self->arg, ARG_MAX, NONE))
			TH_LOG("%s", row->name);
		EXPECT_EQ(-E2BIG, try_size(&self->a, row, self->arg, row->size + 8, row->size))
			TH_LOG("%s", row->name);
		EXPECT_EQ(-E2BIG, try_size(&self->a, row, self->arg, row->size + 8, row->size + 7))
			TH_LOG("%s", row->name);
		EXPECT_EQ(-E2BIG, try_size(&self->a, row, self->arg, row->size + 1, row->size))
			TH_LOG("%s", row->name);
		EXPECT_EQ(-E2BIG, try_size(&self->a, row, self->arg, ARG_MAX, ARG_MAX - 1))
			TH_LOG("%s", row->name);
	}
}

/*
 * The least that is accepted: what is missing counts as zero, and the kernel writes
 * no further than the caller's struct goes.
 */
TEST_F(abi, short_structs)
{
	const struct row *row;
	__u32 i;

	EACH_ROW(row) {
		EXPECT_EQ(-EINVAL, try_size(&self->a, row, self->arg, row->min - 1, NONE))
			TH_LOG("%s", row->name);
		ASSERT_EQ(0, begin(&self->a, row, self->arg, true));
		*word(self->arg, 0) = row->min;
		memset(self->arg + row->min, 0x5a, 64);
		EXPECT_EQ(0, call(&self->a, row, self->arg)) TH_LOG("%s", row->name);
		for (i = row->min; i < row->min + 64; i++)
			EXPECT_EQ(0x5a, self->arg[i]) TH_LOG("%s wrote to byte %u", row->name, i);
		end(&self->a, row);
	}
}

/* A size that reaches into memory that is not there is an error of some kind. */
TEST_F(abi, absurd_sizes)
{
	static const __u32 sizes[] = { 0x10000, 0x7fffffff, 0x80000000, 0xffffffff };
	const struct row *row;
	size_t n;
	int ret;

	EACH_ROW(row) {
		for (n = 0; n < KVT_ARRAY(sizes); n++) {
			ret = try_size(&self->a, row, self->arg, sizes[n], row->size);
			EXPECT_TRUE(ret == -E2BIG || ret == -EFAULT || ret == -EINVAL)
				TH_LOG("%s size %#x: %d", row->name, sizes[n], ret);
		}
	}
}

static int try_word(struct abi *a, const struct row *row, char *arg, int offset, __u32 set)
{
	int ret = begin(a, row, arg, true);

	if (ret)
		return ret - 1000;
	*word(arg, offset) |= set;
	ret = call_refused(a, row, arg);
	end(a, row);
	return ret;
}

TEST_F(abi, unknown_flags)
{
	const struct row *row;
	int bit;

	EACH_ROW(row) {
		for (bit = 0; bit < 32; bit++) {
			if (row->flags & (1u << bit))
				continue;
			EXPECT_EQ(-EOPNOTSUPP, try_word(&self->a, row, self->arg, 4, 1u << bit))
				TH_LOG("%s flag bit %d", row->name, bit);
		}
	}
}

TEST_F(abi, reserved_words)
{
	const struct row *row;

	EACH_ROW(row) {
		if (row->reserved == NONE)
			continue;
		EXPECT_EQ(-EOPNOTSUPP, try_word(&self->a, row, self->arg, row->reserved, 1))
			TH_LOG("%s", row->name);
		EXPECT_EQ(-EOPNOTSUPP, try_word(&self->a, row, self->arg, row->reserved, 1u << 31))
			TH_LOG("%s", row->name);
	}
}

static int try_pointer(struct abi *a, const struct row *row, char *arg, int offset, __u64 to,
		       bool refused)
{
	int ret = begin(a, row, arg, true);

	if (ret)
		return ret - 1000;
	*pointer(arg, offset) = to;
	ret = refused ? call_refused(a, row, arg) : call(a, row, arg);
	end(a, row);
	return ret;
}

#define BAD_POINTERS	4

static __u64 bad_pointer(const struct abi *a, int i)
{
	const __u64 bad[BAD_POINTERS] = {
		8, KVT_U64(BAD_END(a)), KVT_U64(BAD_END(a)) - 2, 0xffff888000000000ull,
	};

	return bad[i];
}

TEST_F(abi, bad_input_pointers)
{
	const struct row *row;
	int i, k;

	EACH_ROW(row) {
		const int at[] = { row->in, row->in2 };

		for (k = 0; k < 2; k++) {
			for (i = 0; i < BAD_POINTERS && at[k] != NONE; i++)
				EXPECT_EQ(-EFAULT, try_pointer(&self->a, row, self->arg, at[k],
							       bad_pointer(&self->a, i), true))
					TH_LOG("%s pointer at %d, kind %d", row->name, at[k], i);
		}
		if (row->in == NONE)
			continue;
		EXPECT_EQ(-EFAULT, try_pointer(&self->a, row, self->arg, row->in, 0, true))
			TH_LOG("%s", row->name);
	}
}

/* Work done before the fault may stand; the teardown sees that closing undoes it. */
TEST_F(abi, bad_output_pointers)
{
	const struct row *row;
	int i;

	EACH_ROW(row) {
		if (row->out == NONE)
			continue;
		for (i = 0; i < BAD_POINTERS; i++)
			EXPECT_EQ(-EFAULT, try_pointer(&self->a, row, self->arg, row->out,
						       bad_pointer(&self->a, i), false))
				TH_LOG("%s kind %d", row->name, i);
		EXPECT_EQ(row->out_optional ? 0 : -EFAULT,
			  try_pointer(&self->a, row, self->arg, row->out, 0, false))
			TH_LOG("%s", row->name);
	}
}

/* The argument itself: not there, not all there, or not writable. */
TEST_F(abi, bad_argument_pointer)
{
	const struct row *row;
	char *ro = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int i;

	ASSERT_NE(MAP_FAILED, ro);
	EACH_ROW(row) {
		for (i = 0; i < BAD_POINTERS; i++) {
			ASSERT_EQ(0, begin(&self->a, row, self->arg, true));
			EXPECT_EQ(-EFAULT, call_refused(&self->a, row,
							(void *)bad_pointer(&self->a, i)))
				TH_LOG("%s kind %d", row->name, i);
			end(&self->a, row);
		}
		ASSERT_EQ(0, begin(&self->a, row, self->arg, true));
		memcpy(ro, self->arg, row->size);
		mprotect(ro, PAGE, PROT_READ);
		i = call(&self->a, row, ro);
		EXPECT_TRUE(i == -EFAULT || i == 0) TH_LOG("%s: %d", row->name, i);
		mprotect(ro, PAGE, PROT_READ | PROT_WRITE);
		end(&self->a, row);
	}
	munmap(ro, PAGE);
}

TEST_F(abi, counts)
{
	const struct row *row;
	__u32 bad[] = { 0, 0, ~0u };
	size_t n;
	int ret;

	EACH_ROW(row) {
		if (row->nr == NONE)
			continue;
		bad[1] = row->nr_max + 1;
		for (n = 0; n < KVT_ARRAY(bad); n++) {
			ASSERT_EQ(0, begin(&self->a, row, self->arg, true));
			*word(self->arg, row->nr) = bad[n];
			ret = call_refused(&self->a, row, self->arg);
			EXPECT_EQ(-EINVAL, ret) TH_LOG("%s count %u", row->name, bad[n]);
			end(&self->a, row);
		}
	}
}

TEST_F(abi, wrong_group)
{
	static const __u32 bad[] = { 1, KVTIER_GROUPS_MAX - 1, KVTIER_GROUPS_MAX, 1u << 28, ~0u };
	const struct row *row;
	size_t n;
	int ret;

	EACH_ROW(row) {
		if (row->group == NONE)
			continue;
		for (n = 0; n < KVT_ARRAY(bad); n++) {
			ASSERT_EQ(0, begin(&self->a, row, self->arg, true));
			*word(self->arg, row->group) = bad[n];
			ret = call_refused(&self->a, row, self->arg);
			EXPECT_EQ(-ENOENT, ret) TH_LOG("%s group %u", row->name, bad[n]);
			end(&self->a, row);
		}
	}
}

TEST_F(abi, unbound_file)
{
	struct kvtier_stat st;
	const struct row *row;
	int ret;

	EACH_ROW(row) {
		if (row->ctl || row->op == KVTIER_OP_NS_OPEN)
			continue;
		/* Preparation may fail for the same reason: the argument is formed by then. */
		begin(&self->a, row, self->arg, false);
		ret = call_refused(&self->a, row, self->arg);
		EXPECT_EQ(row->unbound ? 0 : -EBADFD, ret) TH_LOG("%s", row->name);
		end(&self->a, row);
	}
	ret = kvt_open(&self->a.pool);
	EXPECT_EQ(-EBADFD, kvt_stat(ret, 0, &st));
	close(ret);
}

static const struct row *row_of(unsigned int op, bool ctl)
{
	const struct row *row;

	EACH_ROW(row)
		if (row->op == op && row->ctl == ctl)
			return row;
	return NULL;
}

static bool reserved_op(unsigned int op, bool ctl)
{
	if (ctl)
		return op == KVTIER_OP_POOL_ASSEMBLE;
	return op == KVTIER_OP_SESSION || op == KVTIER_OP_EVENTS || op == KVTIER_OP_EXPORT;
}

/* All other numbers are unknown, those of the other device included. */
TEST_F(abi, command_numbers)
{
	int fd[2] = { self->a.main.fd, self->a.pool.ctl };
	unsigned int op;
	int ctl, want, ret;

	for (ctl = 0; ctl < 2; ctl++) {
		for (op = 0; op < 256; op++) {
			if (row_of(op, ctl))
				continue;
			memset(self->arg, 0, sizeof(self->arg));
			*word(self->arg, 0) = 64;
			want = reserved_op(op, ctl) ? -EOPNOTSUPP : -ENOTTY;
			ret = kvt_ioctl(fd[ctl], op, self->arg);
			EXPECT_EQ(want, ret) TH_LOG("op %u on the %s device", op,
						    ctl ? "control" : "data");
		}
	}
}

/* Encodings that are not _IO(KVTIER_IOC_TYPE, op). */
TEST_F(abi, foreign_encodings)
{
	static const unsigned long cmd[] = {
		_IO(KVTIER_IOC_TYPE + 1, KVTIER_OP_QUERY),
		_IO(0, KVTIER_OP_QUERY),
		_IOW(KVTIER_IOC_TYPE, KVTIER_OP_QUERY, __u32),
		_IOWR(KVTIER_IOC_TYPE, KVTIER_OP_CTL_QUERY, struct kvtier_ctl_query),
		0x5401, /* TCGETS */
	};
	size_t n;

	for (n = 0; n < KVT_ARRAY(cmd); n++) {
		memset(self->arg, 0, sizeof(self->arg));
		*word(self->arg, 0) = 64;
		EXPECT_EQ(-1, ioctl(self->a.main.fd, cmd[n], self->arg));
		EXPECT_EQ(ENOTTY, errno) TH_LOG("%#lx", cmd[n]);
		EXPECT_EQ(-1, ioctl(self->a.pool.ctl, cmd[n], self->arg));
		EXPECT_EQ(ENOTTY, errno) TH_LOG("%#lx", cmd[n]);
	}
}

/* The control device opened by a user who is let in by the file mode alone. */
TEST_F(abi, control_needs_privilege)
{
	const char *node = "/tmp/kvtier-ctl-open";
	const struct row *row;
	struct stat st;
	int fd, ret;

	ASSERT_EQ(0, stat("/dev/kvtier", &st));
	unlink(node);
	ASSERT_EQ(0, mknod(node, S_IFCHR | 0666, st.st_rdev));
	ASSERT_EQ(0, chmod(node, 0666));
	EACH_ROW(row) {
		if (!row->ctl)
			continue;
		ASSERT_EQ(0, begin(&self->a, row, self->arg, true));
		ASSERT_EQ(0, kvt_become(ALICE));
		fd = open(node, O_RDWR | O_CLOEXEC);
		ret = kvt_ioctl(fd, row->op, self->arg);
		ASSERT_EQ(0, kvt_become(0));
		ASSERT_LE(0, fd);
		close(fd);
		EXPECT_EQ(row->op == KVTIER_OP_CTL_QUERY ? 0 : -EPERM, ret)
			TH_LOG("%s", row->name);
		end(&self->a, row);
	}
	unlink(node);
}

TEST_F(abi, pool_stat_needs_privilege)
{
	struct kvtier_stat st;
	int fd = kvt_open_as(&self->a.pool, ALICE), ret;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, kvt_become(ALICE));
	ret = kvt_stat(fd, KVTIER_STAT_POOL, &st);
	ASSERT_EQ(0, kvt_become(0));
	EXPECT_EQ(-EPERM, ret);
	close(fd);
}

/*
 * The table above is complete: what the kernel says it has is what is tested here,
 * on each device.
 */
TEST_F(abi, every_command_has_a_row)
{
	struct kvtier_ctl_query cq = { .size = sizeof(cq) };
	__u64 data = 0, ctl = 0;
	const struct row *row;
	struct kvtier_query q;

	EACH_ROW(row) {
		if (row->ctl)
			ctl |= 1ull << row->op;
		else
			data |= 1ull << row->op;
	}
	ASSERT_LE(0, kvt_query(self->a.main.fd, &q, NULL));
	ASSERT_EQ(0, kvt_ioctl(self->a.pool.ctl, KVTIER_OP_CTL_QUERY, &cq));
	EXPECT_EQ(data, q.ops);
	EXPECT_EQ(ctl, cq.ops);
}

TEST_HARNESS_MAIN
