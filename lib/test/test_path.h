/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef KVTIER_TEST_PATH_H
#define KVTIER_TEST_PATH_H

#include <stdbool.h>

/* One row of the table in test_libkvtier.c. */
bool test_path_relative(void);

#endif /* KVTIER_TEST_PATH_H */
