/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Unit tests of plain C code: a table of functions, one result line each.
 *
 * A test is a function that returns normally if it passed; a failed CHECK()
 * prints where and returns from the test. A test that made no check at all fails.
 */
#ifndef KVTIER_TESTS_UNIT_H
#define KVTIER_TESTS_UNIT_H

#include <stdio.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

static int unit_failed, unit_checks;

#define CHECK(condition, ...)						\
	do {								\
		unit_checks++;						\
		if (!(condition)) {					\
			printf("%s:%d: %s", __FILE__, __LINE__, #condition); \
			printf("  " __VA_ARGS__);			\
			printf("\n");					\
			unit_failed = 1;				\
			return;						\
		}							\
	} while (0)

struct unit_test {
	const char *name;
	void (*run)(void);
};

static inline int unit_main(const struct unit_test *tests, size_t nr)
{
	int failed = 0;

	for (size_t i = 0; i < nr; i++) {
		unit_failed = 0;
		unit_checks = 0;
		tests[i].run();
		if (!unit_checks)
			printf("%s checked nothing\n", tests[i].name);
		unit_failed |= !unit_checks;
		printf("%s %s\n", unit_failed ? "not ok" : "ok", tests[i].name);
		fflush(stdout);
		failed |= unit_failed;
	}
	return failed;
}

#define UNIT_MAIN(tests) \
	int main(void) { return unit_main(tests, ARRAY_SIZE(tests)); }

#endif
