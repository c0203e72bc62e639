/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Request traces: what a serving engine asked its cache for, in order.
 *
 * Model: a trace is a stream of requests, oldest first. A request names its
 * prefix blocks by numbers (ids), head first. An id stands for a whole prefix,
 * so the block before it is its parent and equal ids are equal blocks.
 *
 * Two formats are read, told apart by content, each plain or zstd-compressed:
 *   CSV         header ts_ms,input_len,output_len,session,ids; ids are
 *               space-separated numbers and runs a-b, session is -1 if unknown
 *   JSON lines  {"timestamp", "input_length", "output_length", "hash_ids": []}
 *
 * Invariants: the file is streamed; memory is bounded by TRACE_LINE_BYTES_MAX,
 * TRACE_IDS_MAX and the largest zstd window accepted, whatever the file holds.
 * A request given to the caller has no id twice (repeats are left out and
 * counted). Anything malformed ends the trace with a message that names the
 * line; what came before it was good.
 */
#ifndef KVTIER_TRACE_H
#define KVTIER_TRACE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TRACE_LINE_BYTES_MAX	(4u << 20)	/* longest line */
#define TRACE_IDS_MAX		(1u << 18)	/* blocks in one request */
#define TRACE_ID_LIMIT		(1ULL << 62)	/* ids are below this */
#define TRACE_BLOCK_TOKENS	512		/* what one id stands for */
#define TRACE_CSV_HEADER	"ts_ms,input_len,output_len,session,ids"

struct trace;

/**
 * struct trace_request - one request
 * @ts_ms:      arrival, milliseconds since an origin of the trace's own
 * @input_len:  prompt, tokens
 * @output_len: answer, tokens
 * @session:    conversation it belongs to, -1 if unknown
 * @ids:        prefix blocks, head first; belongs to the trace and is good
 *              until the next call on it
 * @nr_ids:     may be 0
 * @line:       where it was in the file, from 1
 */
struct trace_request {
	uint64_t ts_ms;
	uint64_t input_len;
	uint64_t output_len;
	int64_t session;
	const uint64_t *ids;
	size_t nr_ids;
	unsigned long line;
};

/**
 * trace_open - opens a trace by path ("-": standard input)
 * @path:  file
 * @trace: out: to be closed with trace_close(), also after an error, as it
 *         holds the message; NULL if there was no memory
 *
 * Returns 0 or a negative errno (EINVAL: not a trace).
 */
int trace_open(const char *path, struct trace **trace);

/* The same on an open stream, which the trace owns from then on. */
int trace_open_stream(FILE *stream, const char *name, struct trace **trace);

/**
 * trace_next - reads the next request
 *
 * Returns 1, 0 at the end of the trace, or a negative errno (EINVAL: malformed,
 * see trace_error()). After 0 or an error it keeps returning that.
 */
int trace_next(struct trace *trace, struct trace_request *request);

/* Passes over the next request without looking into it; returns as trace_next. */
int trace_skip(struct trace *trace);

/* One line of text about the last error, without newline. Never NULL. */
const char *trace_error(const struct trace *trace);

/* "csv" or "json-lines". */
const char *trace_format(const struct trace *trace);

/* Ids left out so far because their request had them already. */
uint64_t trace_repeats(const struct trace *trace);

void trace_close(struct trace *trace);

#define TRACE_KEY_BYTES	32

/**
 * trace_key - the key of an id
 * @seed: keys of different seeds have nothing in common
 * @id:   different ids have different keys
 * @key:  out: TRACE_KEY_BYTES, never all zero; the same on every machine
 */
void trace_key(uint64_t seed, uint64_t id, unsigned char *key);

/* A bijection on 64 bits that leaves no pattern (the splitmix64 finalizer). */
static inline uint64_t trace_mix64(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ULL;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

#endif
