// SPDX-License-Identifier: GPL-2.0
/*
 * The parent of a replay: survey, fork, watch, wait.
 *
 * Nothing of the store is open when the children are forked, so that each has
 * files, leases and mappings of its own and none is inherited.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "replay.h"
#include "replay_result.h"
#include "replay_watch.h"
#include "trace.h"

#define POLL_NS		20000000	/* how often the parent looks */

struct run {
	const struct replay_options *o;
	struct replay_survey survey;
	struct replay_seen *seen;
	struct replay_shared *shared;
	size_t shared_bytes;
	pid_t pids[REPLAY_PROCS_MAX];
	unsigned int running;
	unsigned int failed;	/* children that did not end with status 0 */
};

static volatile sig_atomic_t interrupted;

static void on_signal(int signal)
{
	(void)signal;
	interrupted = 1;
}

/* Blocks of a request that an endless cache would have as a prefix. */
static int survey_request(struct run *run, const struct trace_request *r)
{
	int unbroken = 1;

	for (size_t i = 0; i < r->nr_ids; i++) {
		int is_new = replay_seen_add(run->seen, r->ids[i]);

		if (is_new < 0)
			return is_new;
		unbroken &= !is_new;
		run->survey.prefix_hits += (uint64_t)unbroken;
	}
	return 0;
}

/* Reads the whole trace once: what is in it, and that it can be read at all. */
static int survey(struct run *run, char *error)
{
	struct replay_survey *s = &run->survey;
	uint64_t max = run->o->max_requests ? run->o->max_requests : UINT64_MAX;
	struct trace *trace;
	struct trace_request r;
	int got;

	got = trace_open(run->o->trace, &trace);
	if (!got)
		got = 1;
	while (got == 1 && s->requests < max) {
		got = trace_next(trace, &r);
		if (got != 1)
			break;
		if (!s->requests++)
			s->first_ms = r.ts_ms;
		if (r.ts_ms > s->first_ms + s->span_ms)
			s->span_ms = r.ts_ms - s->first_ms;
		s->accesses += r.nr_ids;
		if (survey_request(run, &r)) {
			trace_close(trace);
			snprintf(error, REPLAY_ERROR_BYTES,
				 "too many distinct blocks for a table in memory");
			return -ENOMEM;
		}
	}
	if (got < 0)
		snprintf(error, REPLAY_ERROR_BYTES, "%s", trace_error(trace));
	else
		s->format = trace_format(trace);
	s->repeats = got < 0 ? 0 : trace_repeats(trace);
	s->distinct = replay_seen_nr(run->seen);
	trace_close(trace);
	if (got >= 0 && !s->requests) {
		snprintf(error, REPLAY_ERROR_BYTES, "no requests in the trace");
		return -EINVAL;
	}
	return got < 0 ? got : 0;
}

static int map_shared(struct run *run)
{
	void *map;

	run->shared_bytes = sizeof(struct replay_shared) +
			    run->o->procs * sizeof(struct replay_proc);
	map = mmap(NULL, run->shared_bytes, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return -errno;
	run->shared = map;
	return 0;
}

/* A child ends through _exit(): the parent's buffers are not its to flush. */
static void child(struct run *run, unsigned int proc, pid_t parent)
{
	signal(SIGINT, SIG_IGN);	/* the parent decides */
	signal(SIGTERM, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	_exit(replay_client(run->o, run->shared, run->seen, &run->survey, proc));
}

static int start(struct run *run)
{
	pid_t parent = getpid();

	fflush(NULL);
	for (unsigned int p = 0; p < run->o->procs; p++) {
		pid_t pid = fork();

		if (pid < 0)
			return -errno;
		if (!pid)
			child(run, p, parent);
		run->pids[p] = pid;
		run->running++;
	}
	return 0;
}

static void note_end(struct run *run, pid_t pid, int status)
{
	for (unsigned int p = 0; p < run->o->procs; p++) {
		char *error = run->shared->procs[p].error;

		if (run->pids[p] != pid)
			continue;
		run->pids[p] = 0;
		run->running--;
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			run->failed++;
		if (WIFSIGNALED(status))
			snprintf(error, REPLAY_ERROR_BYTES, "killed by signal %d (%s)",
				 WTERMSIG(status), strsignal(WTERMSIG(status)));
	}
	if (run->failed)
		__atomic_store_n(&run->shared->stop, 1, __ATOMIC_RELAXED);
}

static void reap(struct run *run)
{
	int status;

	for (unsigned int p = 0; p < run->o->procs; p++) {
		pid_t pid = run->pids[p];

		if (pid && waitpid(pid, &status, WNOHANG) == pid)
			note_end(run, pid, status);
	}
}

static int wait_for_all(struct run *run, struct replay_watch *watch)
{
	struct timespec poll = { .tv_nsec = POLL_NS };
	struct replay_shared *shared = run->shared;
	int err = 0;

	while (run->running) {
		if (interrupted || err)
			__atomic_store_n(&shared->stop, 1, __ATOMIC_RELAXED);
		if (!shared->start_ns &&
		    __atomic_load_n(&shared->ready, __ATOMIC_ACQUIRE) == run->o->procs)
			__atomic_store_n(&shared->start_ns, replay_now_ns(),
					 __ATOMIC_RELEASE);
		if (watch && shared->start_ns && !err)
			err = watch_poll(watch);
		nanosleep(&poll, NULL);
		reap(run);
	}
	return err;
}

/* With children running: watches them to their end and makes the result. */
static int attend(struct run *run, struct json_object **result, char *error)
{
	struct replay_watch *watch = malloc(sizeof(*watch));
	int err = -ENOMEM, wait_err;

	if (watch)
		err = watch_init(watch, run->o, &run->survey, run->shared);
	if (err)
		__atomic_store_n(&run->shared->stop, 1, __ATOMIC_RELAXED);
	wait_err = wait_for_all(run, err ? NULL : watch);
	if (!err)
		err = wait_err;
	if (!err)
		err = watch_finish(watch);
	if (err)
		snprintf(error, REPLAY_ERROR_BYTES, "cannot watch the pool: %s",
			 strerror(-err));
	else
		*result = replay_result(watch, run->seen, run->failed, interrupted);
	if (watch)
		watch_close(watch);
	free(watch);
	return err;
}

static int run_all(struct run *run, struct json_object **result, char *error)
{
	struct sigaction act = { .sa_handler = on_signal }, old_int, old_term;
	int err;

	sigaction(SIGINT, &act, &old_int);
	sigaction(SIGTERM, &act, &old_term);
	err = start(run);
	if (err) {
		snprintf(error, REPLAY_ERROR_BYTES, "cannot start processes: %s",
			 strerror(-err));
		__atomic_store_n(&run->shared->stop, 1, __ATOMIC_RELAXED);
		wait_for_all(run, NULL);
	} else {
		err = attend(run, result, error);
	}
	sigaction(SIGINT, &old_int, NULL);
	sigaction(SIGTERM, &old_term, NULL);
	return err;
}

int replay_run(const struct replay_options *o, struct json_object **result,
	       char error[REPLAY_ERROR_BYTES])
{
	struct run run = { .o = o };
	int err = -ENOMEM;

	snprintf(error, REPLAY_ERROR_BYTES, "out of memory");
	interrupted = 0;
	run.seen = replay_seen_new();
	if (run.seen)
		err = survey(&run, error);
	if (!err)
		err = map_shared(&run);
	if (!err)
		err = run_all(&run, result, error);
	if (run.shared)
		munmap(run.shared, run.shared_bytes);
	replay_seen_free(run.seen);
	return err;
}
