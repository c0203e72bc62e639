// SPDX-License-Identifier: GPL-2.0
/*
 * Runs the test suites of driver/tests in user space; see kunit/test.h.
 *
 * One result line for each test: "ok unit/<suite>/<test>". An argument restricts
 * the run to tests whose name contains it.
 */
#include <kunit/test.h>

struct kunit_mem {
	struct kunit_mem *next;
	void *data;
};

static struct kunit_suite *suites;

void kunit_register(struct kunit_suite *suite)
{
	struct kunit_suite **at = &suites;

	while (*at && strcmp((*at)->name, suite->name) < 0)
		at = &(*at)->next;
	suite->next = *at;
	*at = suite;
}

void *kunit_kzalloc(struct kunit *test, size_t size, int gfp)
{
	struct kunit_mem *m = malloc(sizeof(*m));

	(void)gfp;
	/* Whole cache lines, as the kernel's allocator gives for such sizes. */
	size = (size + 63) & ~(size_t)63;
	if (!m)
		return NULL;
	m->data = aligned_alloc(64, size);
	if (!m->data) {
		free(m);
		return NULL;
	}
	memset(m->data, 0, size);
	m->next = test->mem;
	test->mem = m;
	return m->data;
}

void kunit_fail(struct kunit *test, const char *file, int line, const char *what,
		long long a, long long b)
{
	/* A broken loop must not flood the log. */
	if (test->nr_failed++ < 10)
		printf("# %s:%d: %s: expected %s (%lld, %lld)\n", file, line, test->name,
		       what, a, b);
}

static bool run_case(const struct kunit_case *c)
{
	struct kunit test = { .name = c->name };
	struct kunit_mem *m;

	if (!setjmp(test.out))
		c->run_case(&test);
	while (test.mem) {
		m = test.mem;
		test.mem = m->next;
		free(m->data);
		free(m);
	}
	return test.nr_failed == 0;
}

int main(int argc, char **argv)
{
	unsigned int failed = 0, run = 0;
	struct kunit_suite *s;
	struct kunit_case *c;
	char name[256];
	bool ok;

	for (s = suites; s; s = s->next) {
		for (c = s->test_cases; c->run_case; c++) {
			snprintf(name, sizeof(name), "unit/%s/%s", s->name, c->name);
			if (argc > 1 && !strstr(name, argv[1]))
				continue;
			ok = run_case(c);
			printf("%sok %s\n", ok ? "" : "not ", name);
			fflush(stdout);
			failed += !ok;
			run++;
		}
	}
	return failed || !run;
}
