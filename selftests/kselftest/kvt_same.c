// SPDX-License-Identifier: GPL-2.0
/*
 * The simulator for a test program; compiled as the host tests are, with the user-space
 * flavour of the core's gateway.
 */
#include "sim.h"
#include "kvt_same.h"

void *sim_alloc(size_t nr, size_t bytes)
{
	void *mem = calloc(nr ? nr : 1, bytes);

	if (!mem)
		abort();
	return mem;
}

/* Every bit of a key is to depend on the number. */
void trace_key(unsigned long seed, unsigned long id, unsigned char *key)
{
	u64 z = (u64)seed << 32 | id;
	u32 i;

	for (i = 0; i < 4; i++) {
		z += 0x9e3779b97f4a7c15ull;
		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
		z ^= z >> 31;
		memcpy(key + 8 * i, &z, 8);
	}
}

int kvt_same_run(const struct kvt_same_trace *t, const char *policy, const unsigned int *blocks,
		 unsigned int nr_tiers, unsigned int chunk, struct kvt_same *out)
{
	struct sim_trace trace = {
		.nr_requests = t->nr, .nr_accesses = t->first[t->nr], .ts_ms = sim_alloc(t->nr, 8),
		.first = t->first, .ids = t->ids,
	};
	struct sim_config c = {
		.policy = policy, .nr_tiers = nr_tiers, .chunk = chunk, .numbered = true,
	};
	struct sim_result r = { 0 };
	u32 i;
	int err;

	for (i = 0; i < t->nr; i++)
		trace.ts_ms[i] = t->ts_ms[i];
	for (i = 0; i < nr_tiers; i++)
		c.blocks[i] = blocks[i];
	err = sim_core_run(&trace, &c, &r);
	free(trace.ts_ms);
	*out = (struct kvt_same) {
		.hits = r.hits, .promotions = r.promotions, .demotions = r.demotions,
		.evictions = r.evictions,
	};
	return err;
}
