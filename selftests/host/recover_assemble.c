// SPDX-License-Identifier: GPL-2.0
/*
 * Reading the segments: lives, kills, blocks and namespaces, and the memory for it. See
 * recover_assemble.h, and driver/kvt_assemble_read.c for what this follows.
 */
#include "recover_assemble.h"
#include <sys/mman.h>
#include <time.h>

#define CHUNKS_MAX	(1u << 15)	/* as the driver's KVT_CHUNKS_MAX */
#define DEAD_BYTES	(MEDIA_UNITS_ALL / 8)
#define BUF_BYTES	(KVT_AS_BUF_BYTES + KVT_UNIT_BYTES_MIN)
#define ARENA_BYTES	(256ul << 20)
#define SMALL_BYTES	2048u

const char *const use_names[USES] = {
	"entries", "index", "segments", "parents", "dead", "found", "owed", "namespaces",
	"buffers", "order",
};

const char *const step_names[STEPS] = {
	"lives", "kills", "blocks", "check", "link", "cut", "order", "segments",
};

/* --- memory and time --------------------------------------------------------------- */

/*
 * Memory as the kernel's is: it is there, mapped by large pages, and zeroed for who wants
 * that. What is small comes from malloc(), as it is given back soon.
 */
static u8 *arena(void)
{
	static u8 *mem;

	if (mem)
		return mem;
	mem = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		kvt_env_die(__FILE__, __LINE__, "out of memory");
	/* Where there are no large pages figures are worse, no more. */
	madvise(mem, ARENA_BYTES, MADV_HUGEPAGE);
	return memset(mem, 0xff, ARENA_BYTES);
}

void *as_take_raw(struct assembly *as, enum as_use use, size_t bytes)
{
	void *p = arena() + as->arena_used;
	u64 sum = 0;
	u32 i;

	if (bytes < SMALL_BYTES)
		p = malloc(bytes);
	else
		as->arena_used += (bytes + 63) & ~(size_t)63;
	if (!p || as->arena_used > ARENA_BYTES)
		kvt_env_die(__FILE__, __LINE__, "out of memory");
	as->bytes[use] += bytes;
	for (i = USE_STAYS; i < USES; i++)
		sum += as->bytes[i];
	as->most = max(as->most, sum);
	return p;
}

void *as_take(struct assembly *as, enum as_use use, size_t bytes)
{
	return memset(as_take_raw(as, use, bytes), 0, bytes);
}

void as_give(struct assembly *as, enum as_use use, void *mem, size_t bytes)
{
	if (!mem)
		return;
	as->bytes[use] -= bytes;
	if (bytes < SMALL_BYTES)
		free(mem);
}

double as_now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void as_step_done(struct assembly *as, enum as_step step, double *since)
{
	double now = as_now_s();

	as->seconds[step] = now - *since;
	*since = now;
}

void *as_chunk_add(struct assembly *as, enum as_use use, struct kvt_as_chunk **list, u32 bytes)
{
	u32 room = (KVT_AS_CHUNK_BYTES - (u32)sizeof(struct kvt_as_chunk)) / bytes;
	struct kvt_as_chunk *c = *list;

	if (!c || c->nr == room) {
		c = as_take_raw(as, use, KVT_AS_CHUNK_BYTES);
		c->next = *list;
		c->nr = 0;
		*list = c;
	}
	return c->data + c->nr++ * bytes;
}

/* --- namespaces -------------------------------------------------------------------- */

static struct kvt_as_ns **ns_place(struct assembly *as, u64 id)
{
	static const struct kvt_siphash_key key = { { 0x17, 0x2a } };
	struct kvt_as_ns **at = &as->ns[kvt_siphash(&id, sizeof(id), &key, 2, 4) %
					KVT_AS_NS_BUCKETS];

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	return at;
}

struct kvt_as_ns *as_ns_find(struct assembly *as, u64 id)
{
	return *ns_place(as, id);
}

/* The one with that id, which is made if it is not there. */
static struct kvt_as_ns *ns_enter(struct assembly *as, u64 id)
{
	struct kvt_as_ns **at = ns_place(as, id), *ns = *at;

	if (ns)
		return ns;
	ns = as_take(as, USE_NS, sizeof(*ns));
	ns->id = id;
	ns->idx = ++as->nr_ns;
	as->ns_at[ns->idx] = ns;
	*at = ns;
	return ns;
}

/* Definitions are copied before it is known whether they are the newest. */
static void on_ns(void *ctx, u32 seg, const struct kvt_nsdef *def)
{
	struct assembly *as = ctx;
	struct kvt_nsdef *copy = NULL, *old;
	bool gone = def->flags & KVT_NSF_GONE;
	struct kvt_as_ns *ns;

	(void)seg;
	if (!gone)
		copy = memcpy(as_take_raw(as, USE_NS, sizeof(*copy)), def, sizeof(*def));
	spin_lock(&as->lock);
	ns = ns_enter(as, def->id);
	if (kvt_mg_def_counts(ns->seq, def)) {
		old = ns->def;
		ns->def = copy;
		ns->seq = def->seq;
		copy = old;
	}
	spin_unlock(&as->lock);
	as_give(as, USE_NS, copy, sizeof(*copy));
}

static u32 ns_index(struct assembly *as, u64 id)
{
	u32 idx;

	spin_lock(&as->lock);
	idx = ns_enter(as, id)->idx;
	spin_unlock(&as->lock);
	return idx;
}

/* --- passes ------------------------------------------------------------------------ */

void as_owe(struct assembly *as, u32 unit)
{
	struct kvt_as_owed *o = as_chunk_add(as, USE_OWED, &as->owed, sizeof(*o));

	o->member = 0;
	o->seg = unit / MEDIA_SEG_UNITS;
	o->unit = unit % MEDIA_SEG_UNITS;
}

static int on_read(void *ctx, u64 byte, void *buf, u32 len)
{
	return media_read(((struct assembly *)ctx)->media, byte, buf, len);
}

static struct kvt_recover how(struct assembly *as, const struct kvt_recover_sink *sink,
			      bool entries_only)
{
	return (struct kvt_recover) {
		.geo = &media_geo,
		.read = on_read,
		.sink = sink,
		.ctx = as,
		.buf = as->bufs[0],
		.buf_bytes = KVT_AS_BUF_BYTES,
		.entries_only = entries_only,
	};
}

static void pass_lives(struct assembly *as)
{
	struct kvt_recover r = how(as, NULL, true);

	if (kvt_life_read(&as->life, &r, as->seg))
		kvt_env_die(__FILE__, __LINE__, "a read has failed");
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
	struct assembly *as = ctx;

	(void)seg;
	as->nr_dead += kvt_life_kill(&as->life, k);
}

static void on_block(void *ctx, u32 seg, u64 life, const struct kvt_rec *r)
{
	struct assembly *as = ctx;

	as->life.segs[seg].placed += kvt_geo_units(&media_geo, r->stored);
	if (!as->ns_idx || as->ns_id != r->ns) {
		as->ns_id = r->ns;
		as->ns_idx = r->ns < MEDIA_NS_LIMIT ? ns_index(as, r->ns) : 0;
	}
	if (kvt_life_is_dead(&as->life, seg, r->unit)) {
		spin_lock(&as->lock);
		as->found.dead++;
		spin_unlock(&as->lock);
		return;
	}
	as_block(as, life, r);
}

static const struct kvt_recover_sink kill_sink = { .block = on_no_block, .kill = on_kill };
static const struct kvt_recover_sink block_sink = { .block = on_block, .ns = on_ns };

static void recover(struct assembly *as, const struct kvt_recover_sink *sink, bool entries_only)
{
	const struct kvt_life_seg *s = &as->life.segs[as->seg];
	struct kvt_recover r = how(as, sink, entries_only);

	if (kvt_life_recover(&as->life, &r, as->seg))
		kvt_env_die(__FILE__, __LINE__, "a member is refused");
	if (s->life && (s->found.state != KVT_RC_SEALED || s->found.nr_blocks != MEDIA_RECS))
		kvt_env_die(__FILE__, __LINE__, "a segment is not recovered");
}

static void pass_kills(struct assembly *as)
{
	recover(as, &kill_sink, true);
}

static void pass_blocks(struct assembly *as)
{
	const struct kvt_life_seg *s = &as->life.segs[as->seg];

	if (kvt_life_damaged(s))
		kvt_env_die(__FILE__, __LINE__, "a first header is damaged");
	if (s->ended)
		return;
	recover(as, &block_sink, false);
	as_flush(as);
	spin_lock(&as->lock);
	as->nr_segments += !!s->life;
	as->max_seq = max(as->max_seq, s->found.max_seq);
	spin_unlock(&as->lock);
}

/* The index is made as large as it will have to be. */
static void size_index(struct assembly *as)
{
	u64 blocks = 0;
	u32 i, nr;

	for (i = 0; i < MEDIA_SEGS_ALL; i++)
		blocks += as->life.segs[i].ended ? 0 : as->life.segs[i].found.nr_blocks;
	blocks -= min(blocks, as->nr_dead);
	for (i = 0; i < KVT_SHARDS; i++) {
		nr = kvt_ix_buckets_for(&as->index.shards[i], blocks);
		if (nr > as->index.shards[i].mask + 1)
			as_shard_grow(as, &as->index.shards[i], nr);
	}
}

/* Each pass over all segments before the next one. */
static void read_all(struct assembly *as)
{
	static void (*const passes[])(struct assembly *as) = {
		pass_lives, pass_kills, pass_blocks,
	};
	double since = as_now_s();
	u32 i;

	as->super.geo = media_geo;
	as->super.life_limit = MEDIA_LIFE_LIMIT;
	as->super.seq_limit = KVT_LIMIT_MAX;
	as->life.super = &as->super;
	as->life.segs = as_take(as, USE_FOUND, MEDIA_SEGS_ALL * sizeof(*as->life.segs));
	as->life.dead = as_take(as, USE_DEAD, DEAD_BYTES);
	as->ns = as_take(as, USE_NS, KVT_AS_NS_BUCKETS * sizeof(*as->ns));
	as->ns_at = as_take(as, USE_NS, (KVT_AS_NS_MAX + 1) * sizeof(*as->ns_at));
	for (i = 0; i < KVT_AS_WORKERS_MAX; i++)
		as->bufs[i] = as_take_raw(as, USE_BUFFERS, BUF_BYTES);
	for (i = 0; i < ARRAY_SIZE(passes); i++) {
		if (passes[i] == pass_blocks)
			size_index(as);
		for (as->seg = 0; as->seg < MEDIA_SEGS_ALL; as->seg++)
			passes[i](as);
		as_step_done(as, STEP_LIVES + i, &since);
	}
}

/* --- the whole --------------------------------------------------------------------- */

/* A pool without blocks, and a tier with an empty log. */
struct assembly *assembly_new(const struct media *m)
{
	struct assembly *as = aligned_alloc(64, (sizeof(*as) + 63) & ~(size_t)63);
	struct kvt_hash_seed seed;
	u32 i;

	if (!as)
		kvt_env_die(__FILE__, __LINE__, "out of memory");
	memset(as, 0, sizeof(*as));
	memset(&seed, 0x17, sizeof(seed));
	as->media = m;
	spin_lock_init(&as->lock);
	spin_lock_init(&as->meta_lock);
	kvt_table_init(&as->table, as_take(as, USE_ENTRIES, CHUNKS_MAX * sizeof(void *)),
		       as_take(as, USE_ENTRIES, CHUNKS_MAX * sizeof(void *)), CHUNKS_MAX);
	kvt_ix_init(&as->index, &as->table, &seed);
	as->bytes[USE_INDEX] = sizeof(as->index);
	for (i = 0; i < KVT_SHARDS; i++)
		kvt_ix_shard_init(&as->index.shards[i],
				  as_take(as, USE_INDEX, KVT_SHARD_BUCKETS_MIN * sizeof(u32)),
				  KVT_SHARD_BUCKETS_MIN);
	kvt_policy_init(&as->policy, kvt_policy_at(0), &as->table);
	kvt_log_init(&as->log, as_take(as, USE_SEGS, MEDIA_SEGS_ALL * sizeof(struct kvt_seg)),
		     MEDIA_SEGS_ALL, MEDIA_SEG_UNITS);
	as->log.hold = true;
	return as;
}

/* From the bytes of the segments to a pool with all that is alive. */
void assembly_run(struct assembly *as)
{
	read_all(as);
	as_merge(as);
}

void assembly_delete(struct assembly *as)
{
	u32 i;

	for (i = 0; i < KVT_SHARDS; i++)
		as_give(as, USE_INDEX, as->index.shards[i].buckets,
			(as->index.shards[i].mask + 1) * sizeof(u32));
	for (i = 0; i < MEDIA_SEGS_ALL; i++)
		as_give(as, USE_SEGS, as->log.segs[i].ids,
			as->log.segs[i].max_ids * sizeof(u32));
	for (i = 1; i <= as->nr_ns; i++) {
		as_give(as, USE_NS, as->ns_at[i]->def, sizeof(*as->ns_at[i]->def));
		as_give(as, USE_NS, as->ns_at[i], sizeof(*as->ns_at[i]));
	}
	as_give(as, USE_NS, as->pool_ns, (as->nr_ns + 1) * sizeof(*as->pool_ns));
	free(as);
}
