// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent dax devices between two drivers.
 *
 * What is on one can be looked at while the kernel's device_dax has it, and used by a
 * pool while kvtier's driver has it. So it stays with the former until a pool is to
 * take it, and goes back when none does.
 *
 * The kernel shows which device a pool uses once the pool is there, and lets a driver
 * be taken from a device at any time. Whoever moves one therefore holds a lock until
 * he is done with it: an assembly from before it looks until its pool is there or is
 * not. The lock is on another folder than dax_guard's, which is taken inside it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include "cmd.h"
#include "cxl.h"
#include "media.h"
#include "pmem.h"

/* Nobody's, and not where it could be looked at. */
static bool is_idle(const char *dax)
{
	char driver[SYSFS_NAME_MAX], user[2 * SYSFS_NAME_MAX];

	if (!media_dax_is_persistent(dax) || dax_user(dax, user, sizeof(user)))
		return false;
	dax_driver(dax, driver);
	return !driver[0] || !strcmp(driver, "kvtier");
}

static bool any_persistent(void)
{
	struct sysfs_names list;
	bool found = false;
	size_t i;

	if (sysfs_list(&list, "bus/dax/devices", "dax"))
		return false;
	for (i = 0; !found && i < list.nr; i++)
		found = media_dax_is_persistent(list.names[i]);
	sysfs_free_names(&list);
	return found;
}

int pmem_hold_begin(struct pmem_hold *hold, bool wait)
{
	char path[SYSFS_PATH_MAX];
	int err;

	memset(hold, 0, sizeof(*hold));
	hold->lock_fd = -1;
	if (!any_persistent())
		return 0;
	/* Not of a directory: anybody can open that, and keep the lock. */
	snprintf(path, sizeof(path), "%s/bus/dax/drivers_probe", sysfs_root());
	hold->lock_fd = open(path, O_WRONLY | O_CLOEXEC);
	if (hold->lock_fd < 0)
		return -errno;
	while (flock(hold->lock_fd, LOCK_EX | (wait ? 0 : LOCK_NB))) {
		if (errno == EINTR)
			continue;
		err = errno == EWOULDBLOCK ? EBUSY : errno;
		close(hold->lock_fd);
		hold->lock_fd = -1;
		return -err;
	}
	return 0;
}

static void remember(struct pmem_hold *hold, const char *dax)
{
	void *bigger = realloc(hold->woken.names, (hold->woken.nr + 1) * SYSFS_NAME_MAX);

	/* Without memory for its name it stays with device_dax. */
	if (!bigger)
		return;
	hold->woken.names = bigger;
	snprintf(hold->woken.names[hold->woken.nr++], SYSFS_NAME_MAX, "%s", dax);
}

void pmem_release_idle(struct pmem_hold *hold)
{
	struct cxl_trouble trouble = { 0 };
	char driver[SYSFS_NAME_MAX];
	struct sysfs_names list;
	size_t i;

	if (hold->lock_fd < 0 || sysfs_list(&list, "bus/dax/devices", "dax"))
		return;
	/* One that cannot be given back is reported when it cannot be read. */
	for (i = 0; i < list.nr; i++) {
		if (!is_idle(list.names[i]))
			continue;
		dax_driver(list.names[i], driver);
		if (driver[0])
			dax_unbind(list.names[i], &trouble);
		if (is_idle(list.names[i]) && !dax_give_back(list.names[i]) && !driver[0])
			remember(hold, list.names[i]);
	}
	sysfs_free_names(&list);
}

int pmem_bind(const struct pmem_hold *hold, const char *dax, bool *took)
{
	struct cxl_trouble trouble = { 0 };
	char driver[SYSFS_NAME_MAX];
	struct dax_guard guard;
	int ret;

	*took = false;
	dax_driver(dax, driver);
	if (!strcmp(driver, "kvtier"))
		return EXIT_OK;
	ret = dax_guard_begin(&guard, true, true, &trouble);
	if (ret)
		return cmd_fail(trouble.err, trouble.hint, "%s", trouble.what);
	ret = dax_bind(dax, &trouble);
	dax_guard_end(&guard);
	*took = !ret;
	if (!ret)
		return EXIT_OK;
	pmem_give_back(hold, dax);
	return cmd_fail(trouble.err, trouble.hint, "%s", trouble.what);
}

void pmem_give_back(const struct pmem_hold *hold, const char *dax)
{
	struct cxl_trouble ignored = { 0 };
	char driver[SYSFS_NAME_MAX];

	if (hold->lock_fd < 0 || !is_idle(dax))
		return;
	dax_driver(dax, driver);
	if (driver[0])
		dax_unbind(dax, &ignored);
	else
		dax_give_back(dax);
}

void pmem_hold_end(struct pmem_hold *hold)
{
	char driver[SYSFS_NAME_MAX];
	size_t i;

	if (hold->lock_fd < 0)
		return;
	for (i = 0; i < hold->woken.nr; i++) {
		dax_driver(hold->woken.names[i], driver);
		if (!strcmp(driver, "device_dax"))
			sysfs_write(hold->woken.names[i], "bus/dax/drivers/device_dax/unbind");
	}
	sysfs_free_names(&hold->woken);
	close(hold->lock_fd);
	hold->lock_fd = -1;
}
