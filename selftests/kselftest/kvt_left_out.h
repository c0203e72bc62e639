/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tests that are left out: the harness takes names of tests that are to run, this makes them
 * of patterns of those that are not.  KVT_LEFT_OUT has the patterns (FIXTURE.TEST or
 * FIXTURE.VARIANT.TEST, as a shell's, blanks between them); a program that is told what to
 * run does just that.  What is left out is said, a line each, and a pattern that fits
 * nothing is a mistake.
 *
 * After kselftest_harness.h, whose main() it replaces.
 */
#ifndef KVT_LEFT_OUT_H
#define KVT_LEFT_OUT_H

#include <fnmatch.h>

#define KVT_LEFT_OUT_ARGS	1024
#define KVT_LEFT_OUT_PATTERNS	64

struct kvt_left_out {
	char *patterns[KVT_LEFT_OUT_PATTERNS];
	bool fits[KVT_LEFT_OUT_PATTERNS];
	int nr_patterns;
	char *args[KVT_LEFT_OUT_ARGS + 1];
	int nr_args;
};

static bool kvt_is_left_out(struct kvt_left_out *l, const char *name)
{
	bool out = false;
	int i;

	for (i = 0; i < l->nr_patterns; i++) {
		if (fnmatch(l->patterns[i], name, 0))
			continue;
		l->fits[i] = true;
		out = true;
	}
	return out;
}

static int kvt_take_or_leave(struct kvt_left_out *l, const char *fixture, const char *variant,
			     const char *test)
{
	char name[256];

	snprintf(name, sizeof(name), "%s.%s%s%s", fixture, variant, *variant ? "." : "", test);
	if (kvt_is_left_out(l, name)) {
		printf("# left out: %s\n", name);
		return 0;
	}
	if (l->nr_args + 2 > KVT_LEFT_OUT_ARGS)
		return -E2BIG;
	l->args[l->nr_args++] = "-r";
	l->args[l->nr_args++] = strdup(name);
	return 0;
}

static int kvt_each_test(struct kvt_left_out *l)
{
	static struct __fixture_variant_metadata none = { .name = "" };
	struct __fixture_variant_metadata *v;
	struct __fixture_metadata *f;
	struct __test_metadata *t;
	int err = 0;

	for (f = __fixture_list; f; f = f->next) {
		for (v = f->variant ? f->variant : &none; v; v = v->next) {
			for (t = f->tests; t && !err; t = t->next)
				err = kvt_take_or_leave(l, f->name, v->name, t->name);
		}
	}
	return err;
}

static __attribute__((unused)) int kvt_run_but_left_out(int argc, char **argv)
{
	static struct kvt_left_out l;
	char *patterns = getenv("KVT_LEFT_OUT"), *pattern, *rest = NULL;
	int i;

	if (argc != 1 || !patterns || !*patterns)
		return test_harness_run(argc, argv);
	patterns = strdup(patterns);
	for (pattern = strtok_r(patterns, " ", &rest);
	     pattern && l.nr_patterns < KVT_LEFT_OUT_PATTERNS; pattern = strtok_r(NULL, " ", &rest))
		l.patterns[l.nr_patterns++] = pattern;
	l.args[l.nr_args++] = argv[0];
	if (pattern || kvt_each_test(&l)) {
		printf("Bail out! Too many tests or patterns of tests\n");
		return KSFT_FAIL;
	}
	for (i = 0; i < l.nr_patterns; i++) {
		if (l.fits[i])
			continue;
		printf("Bail out! There is no test like '%s' to leave out\n", l.patterns[i]);
		return KSFT_FAIL;
	}
	if (l.nr_args == 1) {
		printf("1..0\n");
		return KSFT_PASS;
	}
	fflush(stdout);
	return test_harness_run(l.nr_args, l.args);
}

#undef TEST_HARNESS_MAIN
#define TEST_HARNESS_MAIN						\
	int main(int argc, char **argv)					\
	{								\
		return kvt_run_but_left_out(argc, argv);		\
	}

#endif /* KVT_LEFT_OUT_H */
