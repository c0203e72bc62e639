/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The simulator of selftests/host, for a test program: its core runs a trace here and says
 * what it decided.
 */
#ifndef KVT_SAME_H
#define KVT_SAME_H

#include <stdbool.h>

/**
 * struct kvt_same - what was decided
 * @written: blocks that were written to the slowest tier
 * @carried: those of them that only had to make way
 */
struct kvt_same {
	unsigned long long hits;
	unsigned long long promotions;
	unsigned long long demotions;
	unsigned long long evictions;
	unsigned long long written;
	unsigned long long carried;
};

/**
 * struct kvt_same_how - how requests come
 * @chunk:    most blocks of a COMMIT
 * @numbered: calls carry the request's number
 * @hints:    after each it is said when its session goes on, or that it does not
 * @segment:  the slowest tier's log is in segments of so many blocks, for twice what the tier
 *            holds and three more, and keeps no copies; 0: it has room for all that is written
 */
struct kvt_same_how {
	unsigned int chunk;
	bool numbered;
	bool hints;
	unsigned int segment;
};

/**
 * struct kvt_same_trace - requests, oldest first
 * @nr:    how many
 * @ts_ms: arrival of each
 * @first: where its blocks begin; @nr + 1 entries
 * @ids:   blocks, numbered from 0; a number always has the same one before it
 */
struct kvt_same_trace {
	unsigned int nr;
	unsigned long long *ts_ms;
	unsigned int *first;
	unsigned int *ids;
};

/*
 * The first @nr requests of a trace, as the simulator's command line names it: a file, or
 * gen:KIND[:SESSIONS[:REQUESTS]]; it begins some minutes later. How many different blocks these
 * have, or -errno, with a message. @t is the caller's to free with kvt_same_free().
 */
int kvt_same_load(const char *name, unsigned int nr, struct kvt_same_trace *t);
void kvt_same_free(struct kvt_same_trace *t);

/* Key of a block, 32 bytes. */
void kvt_same_key(unsigned int id, unsigned char *key);

/*
 * When the session of each of @t's requests goes on, as the simulator's hints have it: with the
 * next request that has its last block but one. 0: it does not. The caller's to free; NULL: no
 * memory.
 */
unsigned long long *kvt_same_next(const struct kvt_same_trace *t);

/* Run @t with tiers of so many blocks, fastest first. 0 or -errno. */
int kvt_same_run(const struct kvt_same_trace *t, const char *policy, const unsigned int *blocks,
		 unsigned int nr_tiers, const struct kvt_same_how *how, struct kvt_same *out);

#endif /* KVT_SAME_H */
