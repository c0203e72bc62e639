/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Workload generator: requests as serving engines see them.
 *
 * Model: a fixed number of users, each of one kind, hold one session after the
 * other. A session is a number of turns; each turn asks with the whole context so
 * far, so its blocks extend the last turn's. Users of a kind share the beginnings
 * of their contexts (system prompts, tools, documents).
 *
 *   chat   short conversations, mostly one or two turns, 95 s apart (median)
 *   agent  coding agents: long, fast growing contexts, many turns, 17 s apart;
 *          a full context is summed up and starts again behind its shared head
 *   rag    a system prompt, then documents of a common corpus, then a question
 *
 * Invariants: an id always has the same parent; time never goes backwards; the
 * output is a function of the parameters alone, on every machine.
 */
#ifndef KVTIER_GEN_WORKLOAD_H
#define KVTIER_GEN_WORKLOAD_H

#include <stddef.h>
#include <stdint.h>

enum gen_kind { GEN_CHAT, GEN_AGENT, GEN_RAG, GEN_KINDS };

/* "chat", "agent", "rag". */
const char *gen_kind_name(enum gen_kind kind);

/**
 * struct gen_params - what to generate
 * @seed:               another seed, another workload
 * @users:              of each kind
 * @context_tokens_max: longest context, at least 4096
 */
struct gen_params {
	uint64_t seed;
	unsigned int users[GEN_KINDS];
	uint64_t context_tokens_max;
};

/**
 * struct gen_request - one request
 * @turn: in its session, from 0
 * @ids:  belong to the generator, good until the next call
 * Others as in struct trace_request.
 */
struct gen_request {
	uint64_t ts_ms;
	uint64_t input_len;
	uint64_t output_len;
	uint64_t session;
	enum gen_kind kind;
	unsigned int turn;
	const uint64_t *ids;
	size_t nr_ids;
};

struct gen;

/*
 * So many sessions of a kind, by its name; of "mix" half are chat, a quarter agents, the rest
 * RAG. -EINVAL: there is no such kind.
 */
int gen_deal_users(struct gen_params *params, const char *kind, unsigned int nr);

/* NULL if there is no memory. At least one user is needed. */
struct gen *gen_new(const struct gen_params *params);

/* The next request, there is always one more: 0 or -ENOMEM. */
int gen_next(struct gen *gen, struct gen_request *request);

/* Distinct ids given out so far; ids are 0..gen_blocks()-1. */
uint64_t gen_blocks(const struct gen *gen);

void gen_free(struct gen *gen);

#endif
