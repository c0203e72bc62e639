// SPDX-License-Identifier: GPL-2.0
/*
 * A child process of the replay: takes one request after the other.
 *
 * Every child reads the whole trace but parses only the requests it takes. The
 * number it takes is always past the ones it has taken, so it never goes back.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "replay.h"
#include "replay_blocks.h"
#include "trace.h"

uint64_t replay_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

int replay_open_ns(const struct replay_options *o, struct kvtier_ns **ns)
{
	struct kvtier_ns_params params = KVTIER_NS_PARAMS_INIT;
	struct kvtier_pool *pool;
	int err;

	err = kvtier_pool_open(o->pool_id, &pool);
	if (err)
		return err;
	params.flags = o->lookup_only ? 0 : KVTIER_NS_CREATE;
	params.identity = o->identity;
	params.identity_len = strlen(o->identity);
	params.nr_groups = 1;
	params.block_bytes = &o->block_bytes;
	err = kvtier_ns_open(pool, &params, ns);
	kvtier_pool_unref(pool);
	return err;
}

__attribute__((format(printf, 2, 3)))
static int fail(struct replay_proc *me, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(me->error, sizeof(me->error), format, args);
	va_end(args);
	return 1;
}

static void sleep_until(uint64_t ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(ns / 1000000000),
		.tv_nsec = (long)(ns % 1000000000),
	};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

/* Waits for the moment the trace says, in pieces so that a stop is seen. */
static void wait_for_turn(const struct replay_options *o,
			  const struct replay_shared *shared, uint64_t offset_ms)
{
	uint64_t due;

	if (!o->speed_milli)
		return;
	due = shared->start_ns +
	      (uint64_t)((__uint128_t)offset_ms * 1000000000 / o->speed_milli);
	while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED)) {
		uint64_t now = replay_now_ns();

		if (now >= due)
			return;
		sleep_until(due - now > 200000000 ? now + 200000000 : due);
	}
}

/* All start together, when the last one has everything open. */
static void wait_for_start(struct replay_shared *shared)
{
	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&shared->start_ns, __ATOMIC_ACQUIRE) &&
	       !__atomic_load_n(&shared->stop, __ATOMIC_RELAXED))
		sleep_until(replay_now_ns() + 1000000);
}

static int serve(struct replay_blocks *b, struct trace *trace,
		 const struct replay_survey *survey)
{
	struct replay_shared *shared = b->shared;
	struct trace_request r;
	uint64_t at = 0;

	while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED)) {
		uint64_t mine = __atomic_fetch_add(&shared->next_request, 1,
						   __ATOMIC_RELAXED);
		int got = 1, err;

		if (mine >= survey->requests)
			return 0;
		for (; at < mine && got == 1; at++)
			got = trace_skip(trace);
		if (got == 1)
			got = trace_next(trace, &r);
		if (got != 1)
			return fail(b->me, "the trace changed: %s", trace_error(trace));
		at++;
		wait_for_turn(b->o, shared, r.ts_ms < survey->first_ms ? 0 :
			      r.ts_ms - survey->first_ms);
		err = replay_blocks_request(b, mine + 1, r.ids, r.nr_ids);
		if (err)
			return fail(b->me, "request %" PRIu64 " (line %lu): %s: %s",
				    mine + 1, r.line, b->what, strerror(-err));
	}
	return 0;
}

int replay_client(const struct replay_options *o, struct replay_shared *shared,
		  struct replay_seen *seen, const struct replay_survey *survey,
		  unsigned int proc)
{
	struct replay_blocks b = {
		.o = o,
		.shared = shared,
		.me = &shared->procs[proc],
		.seen = seen,
		.proc = proc,
	};
	struct trace *trace = NULL;
	int status = 0, err;

	err = trace_open(o->trace, &trace);
	if (err) {
		status = fail(b.me, "%s", trace_error(trace));
	} else {
		err = replay_blocks_init(&b);
		if (err)
			status = fail(b.me, "%s: %s", b.what, strerror(-err));
	}
	wait_for_start(shared);
	if (!err)
		status = serve(&b, trace, survey);
	replay_blocks_close(&b);
	trace_close(trace);
	return status;
}
