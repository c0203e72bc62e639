// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Puts the stand-in kernel under the tool. KVTIER_MOCK names the file with the
 * store's state, which outlives the process; without it there is no module.
 */
#include <errno.h>
#include <stdlib.h>
#include "internal.h"
#include "mock.h"

static int no_device(const char *path, int flags)
{
	(void)path;
	(void)flags;
	errno = getenv("KVTIER_MOCK_DENY") ? EACCES : ENOENT;
	return -1;
}

static void __attribute__((constructor)) install(void)
{
	const char *path = getenv("KVTIER_MOCK");
	const char *fail_op = getenv("KVTIER_MOCK_FAIL_OP");
	const char *fail_errno = getenv("KVTIER_MOCK_FAIL_ERRNO");
	const char *missing = getenv("KVTIER_MOCK_MISSING");

	if (path)
		mock_install(path);
	else
		kvti_sys.open = no_device;
	if (fail_op && fail_errno) {
		mock.fail_op = atoi(fail_op);
		mock.fail_errno = atoi(fail_errno);
	}
	if (missing)
		mock.missing = (uint32_t)atoi(missing);
	mock.hold = getenv("KVTIER_MOCK_HOLD");
}
