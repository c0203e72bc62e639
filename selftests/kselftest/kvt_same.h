/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The simulator of selftests/host, for a test program: its core runs a trace here and says
 * what it decided.
 */
#ifndef KVT_SAME_H
#define KVT_SAME_H

/**
 * struct kvt_same - what was decided
 */
struct kvt_same {
	unsigned long long hits;
	unsigned long long promotions;
	unsigned long long demotions;
	unsigned long long evictions;
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

/* Key of a block, 32 bytes. */
void trace_key(unsigned long seed, unsigned long id, unsigned char *key);

/*
 * Run @t with tiers of so many blocks, fastest first; stored in calls of @chunk blocks that
 * carry the request's number. 0 or -errno.
 */
int kvt_same_run(const struct kvt_same_trace *t, const char *policy, const unsigned int *blocks,
		 unsigned int nr_tiers, unsigned int chunk, struct kvt_same *out);

#endif /* KVT_SAME_H */
