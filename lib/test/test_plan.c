// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * kvtier_plan() against a search of all splits, on random chains and at limits.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "internal.h"
#include "test_plan.h"

#define BLOCKS	64u
#define ROUNDS	20000u

#define CHECK(cond) do {						\
	if (!(cond)) {							\
		printf("# line %d: %s\n", __LINE__, #cond);		\
		return false;						\
	}								\
} while (0)

static uint64_t state;

static uint64_t rnd(uint64_t below)
{
	state += 0x9e3779b97f4a7c15ULL;
	return ((state ^ state >> 29) * 0xbf58476d1ce4e5b9ULL >> 17) % below;
}

/* What a split costs, by the definition. */
static uint64_t split_cost(const struct kvtier_prefill *p,
			   const struct kvtier_lookup_result *r, uint32_t nr, uint32_t at)
{
	uint64_t ns = at < nr ? p->start_ns : 0;
	uint32_t i;

	for (i = 0; i < at; i++)
		ns += r[i].cost_ns + p->load_ns;
	for (i = at; i < nr; i++)
		ns += p->block_ns + p->grow_ns * (p->position + i);
	return ns;
}

static uint32_t search(const struct kvtier_prefill *p, const struct kvtier_lookup_result *r,
		       uint32_t nr)
{
	uint32_t at, best = 0;

	for (at = 1; at <= nr && r[at - 1].status == KVTIER_ST_HIT; at++) {
		if (split_cost(p, r, nr, at) <= split_cost(p, r, nr, best))
			best = at;
	}
	return best;
}

/* Costs of the same order, so that either side wins at times; now and then a miss. */
static uint32_t make_chain(struct kvtier_prefill *p, struct kvtier_lookup_result *r)
{
	uint32_t nr = 1 + (uint32_t)rnd(BLOCKS), i;

	memset(r, 0, nr * sizeof(*r));
	p->start_ns = rnd(3) ? 0 : rnd(3000);
	p->block_ns = rnd(600);
	p->grow_ns = rnd(3) ? rnd(20) : 0;
	p->load_ns = rnd(2) ? rnd(200) : 0;
	p->position = rnd(3) ? 0 : rnd(100);
	for (i = 0; i < nr; i++) {
		r[i].status = rnd(40) ? KVTIER_ST_HIT : rnd(2) ? KVTIER_ST_MISS :
								 KVTIER_ST_FILLING;
		r[i].cost_ns = rnd(4) ? rnd(1500) : 0;
	}
	return nr;
}

bool test_plan_search(void)
{
	struct kvtier_lookup_result r[BLOCKS];
	uint32_t round, nr, want, none = 0, all = 0, some = 0;
	struct kvtier_prefill p;
	struct kvtier_plan plan;

	for (round = 0; round < ROUNDS; round++) {
		nr = make_chain(&p, r);
		want = search(&p, r, nr);
		CHECK(!kvtier_plan(&p, r, nr, &plan));
		CHECK(plan.nr_fetch == want);
		CHECK(plan.fetch_ns + plan.compute_ns == split_cost(&p, r, nr, want));
		none += !want;
		all += want == nr;
		some += want && want < nr;
	}
	/* The chains are such that all three come up. */
	CHECK(none > ROUNDS / 50 && all > ROUNDS / 50 && some > ROUNDS / 50);
	return true;
}

/* The later a block, the dearer: what is dear to fetch is computed at the head only. */
bool test_plan_cases(void)
{
	struct kvtier_lookup_result r[4] = {
		{ .status = KVTIER_ST_HIT, .cost_ns = 100 },
		{ .status = KVTIER_ST_HIT, .cost_ns = 100 },
		{ .status = KVTIER_ST_HIT, .cost_ns = 100 },
		{ .status = KVTIER_ST_HIT, .cost_ns = 100 },
	};
	struct kvtier_prefill p = { .block_ns = 60, .grow_ns = 30 };
	struct kvtier_plan plan;

	/* 60 + 90 + 120 + 150 to compute: more than 400 to fetch. */
	CHECK(!kvtier_plan(&p, r, 4, &plan) && plan.nr_fetch == 4 && plan.fetch_ns == 400);
	CHECK(!kvtier_plan(&p, r, 2, &plan) && plan.nr_fetch == 0 && plan.compute_ns == 150);
	p.start_ns = 50;	/* as dear either way: fetched */
	CHECK(!kvtier_plan(&p, r, 2, &plan) && plan.nr_fetch == 2 && !plan.compute_ns);
	r[3].status = KVTIER_ST_MISS;
	CHECK(!kvtier_plan(&p, r, 4, &plan) && plan.nr_fetch == 0 && plan.compute_ns == 470);
	p.position = 10;
	CHECK(!kvtier_plan(&p, r, 4, &plan) && plan.nr_fetch == 3 && plan.fetch_ns == 300 &&
	      plan.compute_ns == 50 + 60 + 13 * 30);
	return true;
}

bool test_plan_limits(void)
{
	struct kvtier_lookup_result r[2] = {
		{ .status = KVTIER_ST_HIT, .cost_ns = UINT64_MAX },
		{ .status = KVTIER_ST_HIT },
	};
	struct kvtier_prefill p = { .block_ns = UINT64_MAX / 2 };
	struct kvtier_plan plan = { .nr_fetch = 77 };

	CHECK(kvtier_plan(NULL, r, 2, &plan) == -EINVAL);
	CHECK(kvtier_plan(&p, NULL, 2, &plan) == -EINVAL);
	CHECK(kvtier_plan(&p, r, 0, &plan) == -EINVAL);
	CHECK(kvtier_plan(&p, r, 2, NULL) == -EINVAL);
	/* Fits, though both together do not. */
	CHECK(!kvtier_plan(&p, r, 2, &plan) && plan.nr_fetch == 0 &&
	      plan.compute_ns == UINT64_MAX - 1);
	plan.nr_fetch = 77;
	p.load_ns = 1;
	CHECK(kvtier_plan(&p, r, 2, &plan) == -EOVERFLOW);
	p = (struct kvtier_prefill){ .block_ns = UINT64_MAX / 2 + 1 };
	CHECK(kvtier_plan(&p, r, 2, &plan) == -EOVERFLOW);
	p = (struct kvtier_prefill){ .grow_ns = 2, .position = UINT64_MAX / 2 + 1 };
	CHECK(kvtier_plan(&p, r, 2, &plan) == -EOVERFLOW);
	p = (struct kvtier_prefill){ .position = UINT64_MAX };
	CHECK(kvtier_plan(&p, r, 2, &plan) == -EOVERFLOW);
	p = (struct kvtier_prefill){ .start_ns = UINT64_MAX, .block_ns = 1 };
	CHECK(kvtier_plan(&p, r, 2, &plan) == -EOVERFLOW);
	CHECK(plan.nr_fetch == 77);
	return true;
}
