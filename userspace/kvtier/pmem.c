// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent dax devices between two drivers.
 *
 * What is on one can be looked at while the kernel's device_dax has it, and used by a
 * pool while kvtier's driver has it. So it stays with the former until a pool is to
 * take it, and goes back when none does.
 */
#include <errno.h>
#include <string.h>
#include "cmd.h"
#include "cxl.h"
#include "media.h"
#include "pmem.h"

int pmem_bind(const char *dax)
{
	struct cxl_trouble trouble = { 0 };
	char driver[SYSFS_NAME_MAX];
	struct dax_guard guard;
	int ret;

	dax_driver(dax, driver);
	if (!strcmp(driver, "kvtier"))
		return EXIT_OK;
	ret = dax_guard_begin(&guard, true, &trouble);
	if (ret)
		return cmd_fail(trouble.err, trouble.hint, "%s", trouble.what);
	ret = dax_bind(dax, &trouble);
	dax_guard_end(&guard);
	return ret ? cmd_fail(trouble.err, trouble.hint, "%s", trouble.what) : EXIT_OK;
}

/* Nobody's, and not where it could be looked at. */
static bool is_idle(const char *dax)
{
	char driver[SYSFS_NAME_MAX], user[2 * SYSFS_NAME_MAX];

	if (!media_dax_is_persistent(dax) || dax_user(dax, user, sizeof(user)))
		return false;
	dax_driver(dax, driver);
	return !driver[0] || !strcmp(driver, "kvtier");
}

void pmem_release_idle(void)
{
	struct cxl_trouble trouble = { 0 };
	struct sysfs_names list;
	size_t i;

	if (sysfs_list(&list, "bus/dax/devices", "dax"))
		return;
	/* One that cannot be given back is reported when it cannot be read. */
	for (i = 0; i < list.nr; i++)
		if (is_idle(list.names[i]) && !dax_unbind(list.names[i], &trouble) &&
		    is_idle(list.names[i]))
			dax_give_back(list.names[i]);
	sysfs_free_names(&list);
}
