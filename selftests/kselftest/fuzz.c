// SPDX-License-Identifier: GPL-2.0
/*
 * Commands in any order with any arguments, led by coverage; see fuzz.h. Needs a kernel
 * with KCOV, and a module built for it.
 *
 * KVT_FUZZ_SEED=N, KVT_FUZZ_CALLS=N and KVT_FUZZ_SECONDS=N say what is run. KVT_FUZZ_TRACE=FILE
 * gets each sequence before it is run, the last ones of them; KVT_FUZZ_REPLAY=FILE runs such a
 * file, and nothing else. KVT_FUZZ_BLIND=1: also on a kernel without KCOV, led by nothing.
 */
#include "fuzz.h"

#define LAST		16	/* sequences shown when one has gone wrong */
#define TRACE_BYTES	8192	/* of the trace for each of them */
#define LOOK_EVERY	64	/* sequences between looks at the kernel's log */
#define REPORTS		8
#define REPLAY_MAX	1024	/* sequences */

struct fuzz {
	__u64 state;
	__u64 nr_seqs;
	__u64 exec_ns;		/* spent on sequences */
	__u64 mend_ns;		/* ... on having the world as it was */
	struct fz_seq last[LAST];
	int trace;
};

FIXTURE(fuzz)
{
	struct fuzz f;
	__u64 seed;
	__u64 calls;
	__u64 seconds;
};

static __u64 env_number(const char *name, __u64 otherwise)
{
	const char *value = getenv(name);

	return value && *value ? strtoull(value, NULL, 0) : otherwise;
}

FIXTURE_SETUP(fuzz)
{
	const char *trace = getenv("KVT_FUZZ_TRACE");

	if (!fz_cov_there() && !getenv("KVT_FUZZ_BLIND"))
		SKIP(return, "this kernel does not record coverage");
	self->seed = env_number("KVT_FUZZ_SEED", 1);
	self->calls = env_number("KVT_FUZZ_CALLS", kvt_env_long() ? 1000000 : 2000);
	self->seconds = env_number("KVT_FUZZ_SECONDS", 0);
	self->f.state = self->seed;
	self->f.trace = trace ? open(trace, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
	ASSERT_EQ(0, fz_world_open());
	ASSERT_EQ(0, fz_exec_start());
}

FIXTURE_TEARDOWN(fuzz)
{
	fz_exec_stop();
	EXPECT_EQ(0, fz_world_close());
	/* No reference is left behind, and the next test has it loaded again. */
	EXPECT_EQ(0, kvt_sh("rmmod kvtier"));
	EXPECT_EQ(0, kvt_sh("modprobe kvtier"));
}

/* A file that survives the machine, if it is the host's. */
static void write_trace(struct fuzz *f, const struct fz_seq *s)
{
	char *text, *end;
	FILE *m;

	text = f->trace < 0 ? NULL : malloc(TRACE_BYTES);
	if (!text)
		return;
	memset(text, '\n', TRACE_BYTES);
	/* What is too long is cut off. */
	m = fmemopen(text, TRACE_BYTES, "w");
	if (m) {
		fz_print(s, m);
		fclose(m);
	}
	end = memchr(text, 0, TRACE_BYTES);
	if (end)
		*end = '\n';
	if (pwrite(f->trace, text, TRACE_BYTES, f->nr_seqs % LAST * TRACE_BYTES) < 0 ||
	    fdatasync(f->trace))
		fprintf(stderr, "# the trace cannot be written\n");
	free(text);
}

static void show_last(const struct fuzz *f)
{
	__u64 i = f->nr_seqs > LAST ? f->nr_seqs - LAST : 0;

	for (; i < f->nr_seqs; i++) {
		fprintf(stderr, "# sequence %llu\n", (unsigned long long)i);
		fz_print(&f->last[i % LAST], stderr);
	}
}

/* 0: go on. */
static int run(struct fuzz *f, const struct fz_seq *s)
{
	__u64 since, ran;
	int err;

	f->last[f->nr_seqs % LAST] = *s;
	write_trace(f, s);
	f->nr_seqs++;
	since = kvt_now_ns();
	if (fz_exec(s) && !getenv("KVT_FUZZ_REPLAY"))
		fz_keep(s);
	ran = kvt_now_ns();
	err = fz_world_mend();
	f->exec_ns += ran - since;
	f->mend_ns += kvt_now_ns() - ran;
	if (!err && f->nr_seqs % LOOK_EVERY == 0 && kvt_klog_complaints())
		err = -EPROTO;
	if (err) {
		fprintf(stderr, "# after sequence %llu: %d\n", (unsigned long long)f->nr_seqs, err);
		show_last(f);
	}
	return err;
}

static void report(const struct fuzz *f, __u64 calls)
{
	printf("# %llu calls of commands in %llu sequences: %u places, %u branches, corpus %d\n",
	       (unsigned long long)calls, (unsigned long long)f->nr_seqs, fz_cov_places(),
	       fz_cov_branches(), fz_corpus());
	fflush(stdout);
}

static void report_commands(const struct fuzz *f)
{
	int i;

	printf("# %llu ms in sequences, %llu ms in between\n",
	       (unsigned long long)(f->exec_ns / KVT_MSEC), (unsigned long long)(f->mend_ns / KVT_MSEC));
	for (i = 0; i < FZ_NR_OPS; i++)
		if (fz_counts.calls[i])
			printf("# %-14s %7llu calls %7llu answered with 0 %7llu did something, %llu us each\n",
			       fz_name(i), (unsigned long long)fz_counts.calls[i],
			       (unsigned long long)fz_counts.ok[i],
			       (unsigned long long)fz_counts.done[i],
			       (unsigned long long)(fz_counts.ns[i] / fz_counts.calls[i] / 1000));
}

static int replay(struct fuzz *f, const char *file)
{
	struct fz_seq *s = calloc(REPLAY_MAX, sizeof(*s));
	FILE *in = fopen(file, "r");
	int nr = 0, i, err = in && s ? 0 : -errno;

	/* All of them first: every file is closed after a sequence. */
	while (!err && nr < REPLAY_MAX && !fz_parse(&s[nr], in))
		nr++;
	if (in)
		fclose(in);
	for (i = 0; i < nr && !err; i++)
		err = run(f, &s[i]);
	free(s);
	return err ? err : nr ? 0 : -ENODATA;
}

/* One pass over the commands as they are meant, before anything is changed. */
static int run_first(struct fuzz *f)
{
	struct fz_seq s;
	int i, err = 0;

	for (i = 0; !err && fz_gen_first(&s, i); i++)
		err = run(f, &s);
	return err;
}

static int run_many(struct fuzz *f, __u64 calls, __u64 seconds)
{
	__u64 end = kvt_now_ns() + seconds * KVT_SEC, next = calls / REPORTS;
	struct fz_seq s;
	int err = 0;

	while (!err && (seconds ? kvt_now_ns() < end : fz_calls() < calls)) {
		fz_gen(&s, &f->state);
		err = run(f, &s);
		if (fz_calls() >= next) {
			report(f, fz_calls());
			next += calls / REPORTS;
		}
	}
	return err;
}

TEST_F_TIMEOUT(fuzz, commands, 1000000)
{
	const char *file = getenv("KVT_FUZZ_REPLAY");
	__u32 places;
	int i;

	if (file) {
		EXPECT_EQ(0, replay(&self->f, file));
		EXPECT_EQ(0, fz_world_check());
		return;
	}
	printf("# seed %llu\n", (unsigned long long)self->seed);
	ASSERT_EQ(0, run_first(&self->f));
	places = fz_cov_places();
	EXPECT_TRUE(places || !fz_cov_there());
	ASSERT_EQ(0, run_many(&self->f, self->calls, self->seconds));
	report(&self->f, fz_calls());
	report_commands(&self->f);
	/* It has found what plain calls do not run, or was not led by anything. */
	EXPECT_TRUE(places < fz_cov_places() || !fz_cov_there());
	EXPECT_TRUE(fz_corpus() > 8 || !fz_cov_there());
	for (i = 0; i < fz_nr_commands; i++)
		EXPECT_LT(0, fz_counts.done[fz_commands[i]]) TH_LOG("%s never did anything",
								    fz_name(fz_commands[i]));
	if (fz_world_check()) {
		show_last(&self->f);
		EXPECT_EQ(0, fz_world_check());
	}
}

TEST_HARNESS_MAIN
