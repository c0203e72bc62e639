// SPDX-License-Identifier: GPL-2.0
/*
 * The simulator for a test program; compiled as the host tests are, with the user-space
 * flavour of the core's gateway.
 */
#include "sim.h"
#include "kvt_same.h"
#include "../../userspace/kvtier/trace.h"

/* The module takes a time of 0 for none. */
#define START_MS	1000000

void kvt_same_key(unsigned int id, unsigned char *key)
{
	trace_key(1, id, key);
}

static u32 nr_distinct(const struct kvt_same_trace *t)
{
	u32 i, nr = 0;

	for (i = 0; i < t->first[t->nr]; i++)
		nr = max(nr, t->ids[i] + 1);
	return nr;
}

int kvt_same_load(const char *name, unsigned int nr, struct kvt_same_trace *t)
{
	struct sim_trace all;
	u32 i;
	int err;

	memset(t, 0, sizeof(*t));
	err = sim_trace_load(name, &all);
	if (err)
		return err;
	t->nr = min(nr, all.nr_requests);
	t->ts_ms = calloc(t->nr + 1, sizeof(*t->ts_ms));
	t->first = calloc(t->nr + 1, sizeof(*t->first));
	t->ids = calloc(all.nr_accesses + 1, sizeof(*t->ids));
	if (t->ts_ms && t->first && t->ids) {
		memcpy(t->first, all.first, (t->nr + 1) * sizeof(*t->first));
		memcpy(t->ids, all.ids, t->first[t->nr] * sizeof(*t->ids));
		for (i = 0; i < t->nr; i++)
			t->ts_ms[i] = START_MS + all.ts_ms[i];
	} else {
		err = -ENOMEM;
	}
	sim_trace_free(&all);
	/* They are numbered as they appear. */
	return err ? err : (int)nr_distinct(t);
}

void kvt_same_free(struct kvt_same_trace *t)
{
	free(t->ts_ms);
	free(t->first);
	free(t->ids);
	memset(t, 0, sizeof(*t));
}

unsigned long long *kvt_same_next(const struct kvt_same_trace *t)
{
	unsigned long long *next = calloc(t->nr, sizeof(*next));
	unsigned long long *used = calloc(nr_distinct(t) + 1, sizeof(*used));
	u32 r, i, len;

	for (r = t->nr; next && used && r-- > 0;) {
		len = t->first[r + 1] - t->first[r];
		if (len)
			next[r] = used[t->ids[t->first[r] + (len > 1 ? len - 2 : 0)]];
		for (i = t->first[r]; i < t->first[r + 1]; i++)
			used[t->ids[i]] = t->ts_ms[r];
	}
	if (!used) {
		free(next);
		next = NULL;
	}
	free(used);
	return next;
}

int kvt_same_run(const struct kvt_same_trace *t, const char *policy, const unsigned int *blocks,
		 unsigned int nr_tiers, const struct kvt_same_how *how, struct kvt_same *out)
{
	struct sim_trace trace = {
		.nr_requests = t->nr, .nr_accesses = t->first[t->nr], .ts_ms = sim_alloc(t->nr, 8),
		.first = t->first, .ids = t->ids, .nr_distinct = nr_distinct(t),
	};
	struct sim_config c = {
		.policy = policy, .nr_tiers = nr_tiers, .chunk = how->chunk,
		.numbered = how->numbered, .hints = how->hints, .segment = how->segment,
	};
	struct sim_result r = { 0 };
	u32 i;
	int err;

	for (i = 0; i < t->nr; i++)
		trace.ts_ms[i] = t->ts_ms[i];
	for (i = 0; i < nr_tiers; i++)
		c.blocks[i] = blocks[i];
	if (how->segment)
		c.log_blocks = 2 * blocks[nr_tiers - 1];
	err = sim_core_run(&trace, &c, &r);
	free(trace.ts_ms);
	*out = (struct kvt_same) {
		.hits = r.hits, .promotions = r.promotions, .demotions = r.demotions,
		.evictions = r.evictions, .written = r.slow_writes,
		.carried = r.carried,
	};
	return err;
}
