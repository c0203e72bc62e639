/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What driver/tests uses of the kernel's KUnit, for user space, so that the same
 * test sources run in a kernel and under sanitizers.
 *
 * Model: a test fails when an expectation does not hold; an assertion also ends
 * it. Memory from kunit_kzalloc() lives until the test ends. Suites register in
 * front of main(); unit_main.c runs them.
 */
#ifndef KVT_HOST_KUNIT_H
#define KVT_HOST_KUNIT_H

#include "kvt_env.h"
#include <setjmp.h>

#define GFP_KERNEL	0

struct kunit {
	const char *name;
	unsigned int nr_failed;
	struct kunit_mem *mem;
	jmp_buf out;
};

struct kunit_case {
	const char *name;
	void (*run_case)(struct kunit *test);
};

struct kunit_suite {
	const char *name;
	struct kunit_case *test_cases;
	struct kunit_suite *next;
};

#define KUNIT_CASE(fn)	{ .name = #fn, .run_case = fn }

void kunit_register(struct kunit_suite *suite);
void *kunit_kzalloc(struct kunit *test, size_t size, int gfp);
void kunit_fail(struct kunit *test, const char *file, int line, const char *what,
		long long a, long long b);

#define kunit_test_suite(suite)						\
	__attribute__((constructor)) static void suite##_register(void)	\
	{								\
		kunit_register(&(suite));				\
	}

#define kunit_check(test, a, op, b, fatal)				\
do {									\
	__typeof__(a) kunit_a_ = (a);					\
	__typeof__(b) kunit_b_ = (b);					\
	if (!(kunit_a_ op kunit_b_)) {					\
		kunit_fail(test, __FILE__, __LINE__, #a " " #op " " #b,	\
			   (long long)(uintptr_t)(kunit_a_), (long long)(uintptr_t)(kunit_b_)); \
		if (fatal)						\
			longjmp((test)->out, 1);			\
	}								\
} while (0)

#define kunit_check_ptr(test, p, fatal)					\
do {									\
	if (!(p)) {							\
		kunit_fail(test, __FILE__, __LINE__, #p, 0, 0);		\
		if (fatal)						\
			longjmp((test)->out, 1);			\
	}								\
} while (0)

#define KUNIT_EXPECT_EQ(test, a, b)	kunit_check(test, a, ==, b, false)
#define KUNIT_EXPECT_NE(test, a, b)	kunit_check(test, a, !=, b, false)
#define KUNIT_EXPECT_LE(test, a, b)	kunit_check(test, a, <=, b, false)
#define KUNIT_EXPECT_LT(test, a, b)	kunit_check(test, a, <, b, false)
#define KUNIT_EXPECT_GE(test, a, b)	kunit_check(test, a, >=, b, false)
#define KUNIT_EXPECT_GT(test, a, b)	kunit_check(test, a, >, b, false)
#define KUNIT_EXPECT_TRUE(test, c)	kunit_check_ptr(test, c, false)
#define KUNIT_EXPECT_FALSE(test, c)	kunit_check_ptr(test, !(c), false)
#define KUNIT_EXPECT_PTR_EQ(test, a, b)	kunit_check(test, (const void *)(a), ==, \
						    (const void *)(b), false)
#define KUNIT_EXPECT_NULL(test, p)	kunit_check_ptr(test, !(p), false)
#define KUNIT_ASSERT_EQ(test, a, b)	kunit_check(test, a, ==, b, true)
#define KUNIT_ASSERT_NE(test, a, b)	kunit_check(test, a, !=, b, true)
#define KUNIT_ASSERT_PTR_EQ(test, a, b)	kunit_check(test, (const void *)(a), ==, \
						    (const void *)(b), true)
#define KUNIT_ASSERT_LT(test, a, b)	kunit_check(test, a, <, b, true)
#define KUNIT_ASSERT_TRUE(test, c)	kunit_check_ptr(test, c, true)
#define KUNIT_ASSERT_FALSE(test, c)	kunit_check_ptr(test, !(c), true)
#define KUNIT_ASSERT_NOT_NULL(test, p)	kunit_check_ptr(test, p, true)

#endif /* KVT_HOST_KUNIT_H */
