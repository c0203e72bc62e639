/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Replay of a request trace through libkvtier by several processes.
 *
 * Model: the parent reads the trace once to know and check it, forks, and only
 * watches from then on. Each child opens trace and namespace for itself and takes
 * requests one by one from a counter all share: they come in order, and which
 * process serves which session is nowhere said, as behind a load balancer. What
 * children count goes to memory they share with the parent, one writer each.
 *
 *   replay_cmd.c      command line, printing
 *   replay_run.c      parent: survey, fork, wait
 *   replay_client.c   child: one request after the other
 *   replay_blocks.c   child: reading a prefix, storing the rest of it
 *   replay_watch.c    parent: time series and progress line
 *   replay_result.c   parent: the JSON result
 */
#ifndef KVTIER_REPLAY_H
#define KVTIER_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <kvtier/libkvtier.h>

#include "replay_data.h"
#include "replay_hist.h"
#include "replay_seen.h"

struct json_object;

/**
 * struct replay_options - what is asked for
 * @pool_id:      pool to use
 * @procs:        1..REPLAY_PROCS_MAX
 * @block_bytes:  size of the namespace's blocks
 * @max_requests: 0: the whole trace
 * @speed_milli:  1000: as timed in the trace; 0: no pauses
 * @seed:         goes into keys; equal seeds share blocks
 * @lookup_only:  ask what is there; read, store and make nothing
 * @verify_full:  every byte of every block read; otherwise samples
 * @progress:     lines on stderr; redrawn in place if that is a terminal
 * @timeout_ns:   longest wait of a single command
 */
struct replay_options {
	const char *trace;
	uint32_t pool_id;
	unsigned int procs;
	uint64_t block_bytes;
	const char *identity;
	uint64_t max_requests;
	uint64_t speed_milli;
	uint64_t seed;
	bool lookup_only;
	bool verify_full;
	bool progress;
	uint64_t timeout_ns;
};

/**
 * struct replay_counters - what a process has done so far; counts of blocks unless
 *                          said otherwise
 * @requests:     requests done
 * @asked:        blocks of requests, from when it is known whether they are there
 * @hits:         leased and read, as part of an unbroken prefix; or found, if only asked for
 * @hits_by_tier: of @hits, by the tier they were in when asked for
 * @stored:       filled and committed
 * @existing:     stored by another process between being missed and being reserved
 * @skipped:      not stored because room, quota or a parent was missing
 * @wrong_blocks, @wrong_bytes: did not hold what they should
 * @verified_bytes: compared
 * @no_space, @quota, @no_parent, @limit, @pinned, @stale, @io_errors, @timeouts:
 *                answers of that kind, one for each block they were given for
 */
struct replay_counters {
	uint64_t requests;
	uint64_t asked;
	uint64_t hits;
	uint64_t hits_by_tier[KVTIER_TIERS_MAX];
	uint64_t stored;
	uint64_t existing;
	uint64_t skipped;
	uint64_t wrong_blocks;
	uint64_t wrong_bytes;
	uint64_t verified_bytes;
	uint64_t no_space;
	uint64_t quota;
	uint64_t no_parent;
	uint64_t limit;
	uint64_t pinned;
	uint64_t stale;
	uint64_t io_errors;
	uint64_t timeouts;
};

#define REPLAY_COUNTERS	(sizeof(struct replay_counters) / sizeof(uint64_t))

/**
 * struct replay_latency - how long things took, ns
 * @get_request: finding and leasing all hits of a request, and giving them back
 * @get_block:   by slowest tier a GET touched: GET and RELEASE over its blocks
 * @read_block:  by tier it was mapped from: reading and comparing one block
 * @put_block:   RESERVE and COMMIT over the blocks they stored, without filling
 */
struct replay_latency {
	struct replay_hist get_request;
	struct replay_hist put_block;
	struct replay_hist get_block[KVTIER_TIERS_MAX];
	struct replay_hist read_block[KVTIER_TIERS_MAX];
};

#define REPLAY_ERROR_BYTES	256
#define REPLAY_WRONG_MAX	8

/* A wrong block, for the report. */
struct replay_wrong_block {
	uint64_t id;
	uint8_t key[KVTIER_KEY_BYTES];
	uint32_t tier;
	uint32_t proc;
	struct replay_wrong what;
};

/* What one process writes and the parent reads. */
struct replay_proc {
	struct replay_counters counters;
	struct replay_latency latency;
	char error[REPLAY_ERROR_BYTES];	/* why it gave up, "" if it did not */
};

/* Memory all processes share. */
struct replay_shared {
	uint64_t next_request;		/* taken by fetch-and-add */
	uint64_t start_ns;		/* CLOCK_MONOTONIC of the common start, 0: not yet */
	uint32_t ready;			/* processes that have opened everything */
	uint32_t stop;			/* set: finish the request in hand and end */
	uint32_t nr_wrong;		/* counts on past REPLAY_WRONG_MAX */
	struct replay_wrong_block wrong[REPLAY_WRONG_MAX];
	struct replay_proc procs[];
};

/* What the survey found in the part of the trace that is replayed. */
struct replay_survey {
	const char *format;
	uint64_t requests;
	uint64_t accesses;
	uint64_t distinct;
	uint64_t repeats;
	uint64_t first_ms;
	uint64_t span_ms;
	uint64_t prefix_hits;		/* with a cache that never forgets */
};

/* CLOCK_MONOTONIC. */
uint64_t replay_now_ns(void);

/* Opens the options' namespace, making it if need be: 0 or a negative errno. */
int replay_open_ns(const struct replay_options *o, struct kvtier_ns **ns);

/**
 * replay_client - the whole life of a child process
 * @survey: origin of the trace's clock
 *
 * Returns its exit status: 0, or 1 with a message in its struct replay_proc.
 */
int replay_client(const struct replay_options *o, struct replay_shared *shared,
		  struct replay_seen *seen, const struct replay_survey *survey,
		  unsigned int proc);

/**
 * replay_run - the whole replay
 * @result: out: object with all there is to tell, to be put by the caller
 * @error:  out: one line, on failure
 *
 * Returns 0 if it ran, whatever became of the blocks (see replay_passed()), or a
 * negative errno.
 */
int replay_run(const struct replay_options *o, struct json_object **result,
	       char error[REPLAY_ERROR_BYTES]);

/* Whether everything was as it has to be: no wrong byte, every process ended well. */
bool replay_passed(struct json_object *result);

#endif
