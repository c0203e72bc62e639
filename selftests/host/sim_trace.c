// SPDX-License-Identifier: GPL-2.0
/*
 * Traces in memory, read with the tool's own reader (userspace/kvtier/trace.c) or made
 * by its generator: gen:KIND[:SESSIONS[:REQUESTS]] is a trace, too.
 *
 * Ids are renumbered in order of appearance, so that engines can use plain arrays.
 * The map from ids to numbers is an open-addressed table that only lives here.
 */
#include "sim.h"
#include "../../userspace/kvtier/gen_workload.h"
#include "../../userspace/kvtier/trace.h"

#define GEN_PREFIX	"gen:"

struct id_map {
	u64 *key;	/* id + 1, 0: free */
	u32 *nr;
	u32 room;	/* power of two */
	u32 used;
};

void *sim_alloc(size_t nr, size_t bytes)
{
	size_t all = (nr * bytes + 63) & ~(size_t)63;
	void *at = aligned_alloc(64, all ? all : 64);

	if (!at) {
		fprintf(stderr, "kvtier-sim: out of memory\n");
		exit(1);
	}
	memset(at, 0, all ? all : 64);
	return at;
}

static u32 map_slot(const struct id_map *m, u64 id)
{
	u32 at = (u32)trace_mix64(id) & (m->room - 1);

	while (m->key[at] && m->key[at] != id + 1)
		at = (at + 1) & (m->room - 1);
	return at;
}

static void map_grow(struct id_map *m)
{
	struct id_map old = *m;
	u32 i, at;

	m->room = old.room ? old.room * 2 : 4096;
	m->key = sim_alloc(m->room, sizeof(*m->key));
	m->nr = sim_alloc(m->room, sizeof(*m->nr));
	for (i = 0; i < old.room; i++) {
		if (!old.key[i])
			continue;
		at = map_slot(m, old.key[i] - 1);
		m->key[at] = old.key[i];
		m->nr[at] = old.nr[i];
	}
	free(old.key);
	free(old.nr);
}

static u32 map_id(struct id_map *m, u64 id)
{
	u32 at;

	if (m->used * 2 >= m->room)
		map_grow(m);
	at = map_slot(m, id);
	if (!m->key[at]) {
		m->key[at] = id + 1;
		m->nr[at] = m->used++;
	}
	return m->nr[at];
}

static void *grown(void *old, u32 nr, u32 *room, size_t bytes)
{
	void *at;

	if (nr < *room)
		return old;
	*room = *room ? *room * 2 : 4096;
	while (nr >= *room)
		*room *= 2;
	at = realloc(old, *room * bytes);
	if (!at) {
		fprintf(stderr, "kvtier-sim: out of memory\n");
		exit(1);
	}
	return at;
}

/* Rooms of the arrays while they grow. */
struct rooms {
	u32 ts, first, ids;
};

static void trace_add(struct sim_trace *t, struct rooms *room, struct id_map *m,
		      const struct trace_request *q)
{
	size_t i;

	t->ts_ms = grown(t->ts_ms, t->nr_requests, &room->ts, sizeof(*t->ts_ms));
	t->first = grown(t->first, t->nr_requests + 1, &room->first, sizeof(*t->first));
	t->ids = grown(t->ids, t->nr_accesses + (u32)q->nr_ids, &room->ids,
		       sizeof(*t->ids));
	t->ts_ms[t->nr_requests] = q->ts_ms;
	t->first[t->nr_requests++] = t->nr_accesses;
	for (i = 0; i < q->nr_ids; i++)
		t->ids[t->nr_accesses++] = map_id(m, q->ids[i]);
	t->first[t->nr_requests] = t->nr_accesses;
}

static void trace_generate(struct sim_trace *t, struct rooms *room, struct id_map *m,
			   const struct gen_params *params, u32 nr)
{
	struct gen *gen = gen_new(params);
	struct trace_request q = { 0 };
	struct gen_request g;

	for (; nr; nr--) {
		if (!gen || gen_next(gen, &g)) {
			fprintf(stderr, "kvtier-sim: out of memory\n");
			exit(1);
		}
		q.ts_ms = g.ts_ms;
		q.ids = (uint64_t *)g.ids;
		q.nr_ids = g.nr_ids;
		trace_add(t, room, m, &q);
	}
	gen_free(gen);
}

static int sim_trace_gen(const char *spec, struct sim_trace *t)
{
	struct gen_params params = { .seed = 1, .context_tokens_max = 131072 };
	unsigned int sessions = 24, nr = 2000;
	struct rooms room = { 0 };
	struct id_map m = { 0 };
	char kind[8] = "";

	if (sscanf(spec, "%7[a-z]:%u:%u", kind, &sessions, &nr) < 1 ||
	    !sessions || sessions > 100000 || nr > 1000000)
		return -EINVAL;
	if (gen_deal_users(&params, kind, sessions))
		return -EINVAL;
	trace_generate(t, &room, &m, &params, nr);
	t->nr_distinct = m.used;
	free(m.key);
	free(m.nr);
	return 0;
}

int sim_trace_load(const char *path, struct sim_trace *t)
{
	struct trace_request q;
	struct rooms room = { 0 };
	struct id_map m = { 0 };
	struct trace *in;
	int got;

	memset(t, 0, sizeof(*t));
	if (!strncmp(path, GEN_PREFIX, strlen(GEN_PREFIX))) {
		got = sim_trace_gen(path + strlen(GEN_PREFIX), t);
		if (got)
			fprintf(stderr, "kvtier-sim: not a kind of trace: %s\n", path);
		return got;
	}
	got = trace_open(path, &in);
	while (got >= 0) {
		got = trace_next(in, &q);
		if (got <= 0)
			break;
		if (!q.nr_ids)
			continue;
		if (t->nr_accesses > U32_MAX / 2 - TRACE_IDS_MAX) {
			fprintf(stderr, "kvtier-sim: %s: too long\n", path);
			got = -E2BIG;
			break;
		}
		trace_add(t, &room, &m, &q);
	}
	if (got < 0)
		fprintf(stderr, "kvtier-sim: %s\n", trace_error(in));
	trace_close(in);
	t->nr_distinct = m.used;
	free(m.key);
	free(m.nr);
	return got < 0 ? got : 0;
}

void sim_trace_free(struct sim_trace *t)
{
	free(t->ts_ms);
	free(t->first);
	free(t->ids);
	memset(t, 0, sizeof(*t));
}
