/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests of kvtier_plan(), which needs no stand-in for the kernel.
 */
#ifndef KVTIER_TEST_PLAN_H
#define KVTIER_TEST_PLAN_H

#include <stdbool.h>

bool test_plan_search(void);
bool test_plan_cases(void);
bool test_plan_limits(void);

#endif /* KVTIER_TEST_PLAN_H */
