// SPDX-License-Identifier: GPL-2.0
/*
 * Workload generator; the model is described in gen_workload.h.
 *
 * Users wait in a heap ordered by the time of their next request. Each has a
 * random stream of its own, so what one does never depends on the others; only
 * ids and session numbers are dealt in order of time.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "gen_prefixes.h"
#include "gen_rng.h"
#include "gen_workload.h"
#include "trace.h"

#define CONTINUE_TURNS	5

/* How users of a kind behave. Times in ms, spreads of log2 in 1/256. */
struct profile {
	const char *name;
	unsigned int continue_permille[CONTINUE_TURNS];	/* by turn; last: all later */
	uint64_t interval_ms;
	unsigned int interval_spread;
	uint64_t idle_ms;		/* mean, between sessions */
	uint64_t first_tokens, ask_tokens, answer_tokens;
	unsigned int first_spread, ask_spread, answer_spread;
};

static const struct profile profiles[GEN_KINDS] = {
	[GEN_CHAT] = {
		.name = "chat",
		.continue_permille = { 280, 420, 560, 600, 720 },
		.interval_ms = 95000, .interval_spread = 333,
		.idle_ms = 60000,
		.first_tokens = 3000, .first_spread = 400,
		.ask_tokens = 500, .ask_spread = 330,
		.answer_tokens = 350, .answer_spread = 230,
	},
	[GEN_AGENT] = {
		.name = "agent",
		.continue_permille = { 840, 980, 970, 970, 970 },
		.interval_ms = 17000, .interval_spread = 676,
		.idle_ms = 300000,
		.first_tokens = 2500, .first_spread = 300,
		.ask_tokens = 1200, .ask_spread = 400,
		.answer_tokens = 250, .answer_spread = 300,
	},
	[GEN_RAG] = {
		.name = "rag",
		.continue_permille = { 300, 400, 400, 400, 400 },
		.interval_ms = 70000, .interval_spread = 300,
		.idle_ms = 45000,
		.first_tokens = 80, .first_spread = 200,
		.ask_tokens = 60, .ask_spread = 200,
		.answer_tokens = 300, .answer_spread = 230,
	},
};

struct user {
	enum gen_kind kind;
	struct gen_rng rng;
	uint64_t next_ms;
	uint64_t session;
	unsigned int turn;
	bool fresh;		/* the next request starts a session */
	uint64_t answer;	/* tokens of the last answer, not yet in the context */
	uint64_t tokens;	/* context */
	size_t nr_shared;	/* leading blocks that others may have too */
	uint64_t *ids;
	size_t nr_ids;
};

struct gen {
	struct gen_params params;
	struct user *users;
	unsigned int *heap;	/* indexes of users, soonest first */
	unsigned int nr_users;
	struct gen_prefixes *prefixes;
	size_t ids_room;	/* of each user */
	uint64_t sessions;
};

const char *gen_kind_name(enum gen_kind kind)
{
	return profiles[kind].name;
}

int gen_deal_users(struct gen_params *params, const char *kind, unsigned int nr)
{
	if (!strcmp(kind, "mix")) {
		params->users[GEN_AGENT] = nr / 4;
		params->users[GEN_RAG] = nr / 4;
		params->users[GEN_CHAT] = nr - 2 * (nr / 4);
		return 0;
	}
	for (int k = 0; k < GEN_KINDS; k++) {
		if (!strcmp(kind, gen_kind_name((enum gen_kind)k))) {
			params->users[k] = nr;
			return 0;
		}
	}
	return -EINVAL;
}

static bool sooner(const struct gen *g, unsigned int a, unsigned int b)
{
	const struct user *x = &g->users[a], *y = &g->users[b];

	return x->next_ms < y->next_ms || (x->next_ms == y->next_ms && a < b);
}

/* Lets the top of the heap sink to where it belongs. */
static void heap_sink(struct gen *g, unsigned int at)
{
	while (2 * at + 1 < g->nr_users) {
		unsigned int child = 2 * at + 1, swap;

		if (child + 1 < g->nr_users &&
		    sooner(g, g->heap[child + 1], g->heap[child]))
			child++;
		if (!sooner(g, g->heap[child], g->heap[at]))
			return;
		swap = g->heap[at];
		g->heap[at] = g->heap[child];
		g->heap[child] = swap;
		at = child;
	}
}

/*
 * Appends an item of the kind's shared texts: @nr blocks named by @item. One block
 * of the context always stays free for what is the session's own.
 */
static int append_shared(struct gen *g, struct user *u, uint64_t item, size_t nr)
{
	for (size_t i = 0; i < nr && u->nr_ids + 1 < g->ids_room; i++) {
		uint64_t parent = u->nr_ids ? u->ids[u->nr_ids - 1] : GEN_NO_PARENT;
		uint64_t label = trace_mix64(item + ((uint64_t)(u->kind + 1) << 56)) + i;
		int err = gen_prefixes_get(g->prefixes, parent, label,
					   &u->ids[u->nr_ids]);

		if (err)
			return err;
		u->nr_ids++;
	}
	u->nr_shared = u->nr_ids;
	u->tokens = u->nr_ids * TRACE_BLOCK_TOKENS;
	return 0;
}

/* Length of an item in blocks, low..high: always the same for one item. */
static size_t item_blocks(const struct gen *g, uint64_t item, size_t low, size_t high)
{
	struct gen_rng rng;

	gen_rng_init(&rng, g->params.seed, item + (1ULL << 48));
	return low + gen_rng_below(&rng, high - low + 1);
}

/* Items are numbered: prompts below 1000, users' projects and documents above. */
static int share_prompt(struct gen *g, struct user *u, uint64_t nr_prompts,
			size_t low, size_t high)
{
	uint64_t item = gen_rng_zipf(&u->rng, nr_prompts);

	return append_shared(g, u, item, item_blocks(g, item, low, high));
}

#define PROJECT_ITEMS	1000
#define DOCUMENT_ITEMS	(1ULL << 32)
#define DOCUMENTS	200
#define DOCUMENTS_MAX	5

static int by_rank(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Retrieved documents go most popular first, as one does to share prefixes. */
static int share_documents(struct gen *g, struct user *u)
{
	uint64_t ranks[DOCUMENTS_MAX];
	size_t nr = 2 + gen_rng_below(&u->rng, DOCUMENTS_MAX - 1);
	int err = 0;

	for (size_t i = 0; i < nr; i++)
		ranks[i] = gen_rng_zipf(&u->rng, DOCUMENTS);
	qsort(ranks, nr, sizeof(*ranks), by_rank);
	for (size_t i = 0; i < nr && !err; i++) {
		uint64_t item = DOCUMENT_ITEMS + ranks[i];

		if (!i || ranks[i] != ranks[i - 1])
			err = append_shared(g, u, item, item_blocks(g, item, 2, 8));
	}
	return err;
}

static int start_session(struct gen *g, struct user *u)
{
	uint64_t project = PROJECT_ITEMS + (uint64_t)(u - g->users);
	int err;

	u->fresh = false;
	u->turn = 0;
	u->session = g->sessions++;
	u->answer = 0;
	u->tokens = 0;
	u->nr_ids = 0;
	u->nr_shared = 0;
	switch (u->kind) {
	case GEN_CHAT:
		if (!gen_rng_chance(&u->rng, 600))
			return 0;
		return share_prompt(g, u, 8, 1, 4);
	case GEN_AGENT:
		err = share_prompt(g, u, 3, 12, 24);
		if (err)
			return err;
		return append_shared(g, u, project, item_blocks(g, project, 2, 6));
	default:
		err = share_prompt(g, u, 4, 1, 3);
		return err ? err : share_documents(g, u);
	}
}

/* Takes @tokens more into the context; a full agent context is summed up. */
static void add_tokens(struct gen *g, struct user *u, uint64_t tokens)
{
	uint64_t max = g->params.context_tokens_max;

	u->tokens += tokens;
	if (u->tokens > max && u->kind == GEN_AGENT) {
		u->nr_ids = u->nr_shared;
		u->tokens = u->nr_shared * TRACE_BLOCK_TOKENS +
			    gen_rng_lognormal(&u->rng, 3000, 200);
	}
	if (u->tokens > max)
		u->tokens = max;
	if (u->tokens < TRACE_BLOCK_TOKENS)
		u->tokens = TRACE_BLOCK_TOKENS;
	while (u->nr_ids < u->tokens / TRACE_BLOCK_TOKENS)
		u->ids[u->nr_ids++] = gen_prefixes_new_id(g->prefixes);
}

static int make_request(struct gen *g, struct user *u, struct gen_request *r)
{
	const struct profile *p = &profiles[u->kind];
	int err;

	if (u->fresh) {
		err = start_session(g, u);
		if (err)
			return err;
		add_tokens(g, u, gen_rng_lognormal(&u->rng, p->first_tokens,
						   p->first_spread));
	} else {
		add_tokens(g, u, u->answer + gen_rng_lognormal(&u->rng, p->ask_tokens,
							       p->ask_spread));
	}
	u->answer = 1 + gen_rng_lognormal(&u->rng, p->answer_tokens,
					  p->answer_spread);
	*r = (struct gen_request) {
		.ts_ms = u->next_ms,
		.input_len = u->tokens,
		.output_len = u->answer,
		.session = u->session,
		.kind = u->kind,
		.turn = u->turn,
		.ids = u->ids,
		.nr_ids = u->nr_ids,
	};
	return 0;
}

/* Decides what the user does after this request, and when. */
static void plan_next(struct gen *g, struct user *u)
{
	const struct profile *p = &profiles[u->kind];
	unsigned int turn = u->turn < CONTINUE_TURNS ? u->turn : CONTINUE_TURNS - 1;
	bool full = u->kind != GEN_AGENT &&
		    u->tokens >= g->params.context_tokens_max;

	u->turn++;
	if (!full && gen_rng_chance(&u->rng, p->continue_permille[turn])) {
		u->next_ms += 1 + gen_rng_lognormal(&u->rng, p->interval_ms,
						    p->interval_spread);
		return;
	}
	u->fresh = true;
	u->next_ms += 1 + gen_rng_exponential(&u->rng, p->idle_ms);
}

int gen_next(struct gen *g, struct gen_request *request)
{
	struct user *u = &g->users[g->heap[0]];
	int err = make_request(g, u, request);

	if (err)
		return err;
	plan_next(g, u);
	heap_sink(g, 0);
	return 0;
}

uint64_t gen_blocks(const struct gen *g)
{
	return gen_prefixes_nr_ids(g->prefixes);
}

static int init_user(struct gen *g, unsigned int index, enum gen_kind kind)
{
	struct user *u = &g->users[index];

	g->heap[index] = index;
	u->kind = kind;
	u->fresh = true;
	gen_rng_init(&u->rng, g->params.seed, index);
	u->next_ms = gen_rng_exponential(&u->rng, profiles[kind].idle_ms);
	u->ids = malloc(g->ids_room * sizeof(*u->ids));
	return u->ids ? 0 : -ENOMEM;
}

struct gen *gen_new(const struct gen_params *params)
{
	struct gen *g = calloc(1, sizeof(*g));
	unsigned int index = 0;

	if (!g)
		return NULL;
	g->params = *params;
	g->ids_room = params->context_tokens_max / TRACE_BLOCK_TOKENS;
	for (int k = 0; k < GEN_KINDS; k++)
		g->nr_users += params->users[k];
	g->users = calloc(g->nr_users, sizeof(*g->users));
	g->heap = calloc(g->nr_users, sizeof(*g->heap));
	g->prefixes = gen_prefixes_new();
	if (!g->users || !g->heap || !g->prefixes)
		goto fail;
	for (int k = 0; k < GEN_KINDS; k++) {
		for (unsigned int i = 0; i < params->users[k]; i++) {
			if (init_user(g, index++, (enum gen_kind)k))
				goto fail;
		}
	}
	for (unsigned int at = g->nr_users / 2; at-- > 0;)
		heap_sink(g, at);
	return g;
fail:
	gen_free(g);
	return NULL;
}

void gen_free(struct gen *g)
{
	if (!g)
		return;
	for (unsigned int i = 0; g->users && i < g->nr_users; i++)
		free(g->users[i].ids);
	gen_prefixes_free(g->prefixes);
	free(g->users);
	free(g->heap);
	free(g);
}
