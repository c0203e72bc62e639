/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests of logging, one row each of the table in test_libkvtier.c. */
#ifndef KVTIER_TEST_LOG_H
#define KVTIER_TEST_LOG_H

#include <stdbool.h>

bool test_log_unlocked(void);

#endif /* KVTIER_TEST_LOG_H */
