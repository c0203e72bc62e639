// SPDX-License-Identifier: GPL-2.0
/*
 * Dax devices changing drivers.
 *
 * The kmem driver, where it is loaded, takes every new dax device of a CXL RAM
 * region at once, makes it system RAM and cannot give it back before the next
 * reboot. So automatic binding is switched off around the moment at which one
 * appears.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>
#include "cxl.h"
#include "media.h"

#define OUR_DRIVER	"bus/dax/drivers/kvtier"
#define AUTOPROBE	"bus/dax/drivers_autoprobe"
#define BIND_WAIT_MS	2000
#define BIND_STEP_MS	20

_Static_assert(sizeof(sigset_t) <= sizeof(((struct dax_guard *)0)->signals),
	       "room for a sigset_t");

int cxl_give_up(struct cxl_trouble *trouble, int err, const char *hint,
		const char *fmt, ...)
{
	va_list args;

	/* The first failure is what matters, not those while cleaning up. */
	if (trouble->err)
		return err;
	trouble->err = err;
	trouble->hint = hint;
	va_start(args, fmt);
	vsnprintf(trouble->what, sizeof(trouble->what), fmt, args);
	va_end(args);
	return err;
}

int cxl_write(struct cxl_trouble *trouble, const char *value, const char *fmt,
	      ...)
{
	char path[SYSFS_PATH_MAX];
	va_list args;
	int ret;

	va_start(args, fmt);
	vsnprintf(path, sizeof(path), fmt, args);
	va_end(args);
	ret = sysfs_write(value, "%s", path);
	if (ret == -EACCES || ret == -EPERM)
		return cxl_give_up(trouble, ret, "run it as root", "%s", path);
	if (ret)
		return cxl_give_up(trouble, ret, NULL, "writing '%s' to %s",
				   *value == '\n' ? "" : value, path);
	return 0;
}

static void hold_signals(struct dax_guard *guard)
{
	sigset_t set, before;

	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGPIPE);
	sigaddset(&set, SIGQUIT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, &before);
	memcpy(guard->signals, &before, sizeof(before));
}

static void let_signals(const struct dax_guard *guard)
{
	sigset_t before;

	memcpy(&before, guard->signals, sizeof(before));
	sigprocmask(SIG_SETMASK, &before, NULL);
}

/* By what root alone can open: of a directory anybody could take the lock, and keep it. */
static int lock_bus(void)
{
	char path[SYSFS_PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/bus/dax/uevent", sysfs_root());
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX)) {
		int err = errno;

		close(fd);
		return -err;
	}
	return fd;
}

/* What was switched off is what was there before. */
static int keep_drivers_off(struct dax_guard *guard, struct cxl_trouble *trouble)
{
	int ret = sysfs_read(guard->before, sizeof(guard->before), AUTOPROBE);

	if (ret)
		return cxl_give_up(trouble, ret, NULL, AUTOPROBE);
	ret = cxl_write(trouble, "0", AUTOPROBE);
	guard->changed = !ret;
	return ret;
}

int dax_guard_begin(struct dax_guard *guard, bool need_driver, bool keep_off,
		    struct cxl_trouble *trouble)
{
	int ret;

	memset(guard, 0, sizeof(*guard));
	if (!need_driver && !sysfs_exists(AUTOPROBE))
		return 0;
	if (need_driver && !sysfs_exists(OUR_DRIVER))
		return cxl_give_up(trouble, -ENOENT,
				   "the module is not loaded: modprobe kvtier",
				   "the kvtier driver of the dax bus");
	guard->lock_fd = lock_bus();
	if (guard->lock_fd < 0)
		return cxl_give_up(trouble, guard->lock_fd,
				   guard->lock_fd == -EACCES || guard->lock_fd == -EPERM ?
				   "run it as root" : NULL, "locking the dax bus");
	guard->locked = true;
	hold_signals(guard);
	ret = keep_off ? keep_drivers_off(guard, trouble) : 0;
	if (ret)
		dax_guard_end(guard);
	return ret;
}

int dax_guard_end(struct dax_guard *guard)
{
	int ret = 0;

	if (!guard->locked)
		return 0;
	guard->locked = false;
	if (guard->changed)
		ret = sysfs_write(guard->before, AUTOPROBE);
	guard->changed = false;
	close(guard->lock_fd);
	/* What was held back ends us here, with nothing left to restore. */
	let_signals(guard);
	return ret;
}

void dax_driver(const char *dax, char driver[static SYSFS_NAME_MAX])
{
	if (sysfs_link_name(driver, SYSFS_NAME_MAX,
			    "bus/dax/devices/%s/driver", dax))
		driver[0] = 0;
}

/*
 * Binds @dax, which new_id may have missed: a device that is just being added has
 * its name in sysfs before the bus finds it (ENODEV) and lets drivers probe it
 * (EAGAIN). Says who has it in the end, and gives the driver's errno; new_id does
 * not tell either.
 */
static int bind_found(const char *dax, char driver[static SYSFS_NAME_MAX])
{
	const struct timespec step = { .tv_nsec = BIND_STEP_MS * 1000000L };
	int left_ms, ret = 0;

	for (left_ms = BIND_WAIT_MS; left_ms > 0; left_ms -= BIND_STEP_MS) {
		dax_driver(dax, driver);
		if (driver[0])
			return 0;
		ret = sysfs_write(dax, OUR_DRIVER "/bind");
		if (ret && ret != -ENODEV && ret != -EAGAIN)
			break;
		if (ret)
			nanosleep(&step, NULL);
	}
	dax_driver(dax, driver);
	return driver[0] ? 0 : ret;
}

int dax_bind(const char *dax, struct cxl_trouble *trouble)
{
	char driver[SYSFS_NAME_MAX];
	int ret;

	dax_driver(dax, driver);
	if (!strcmp(driver, "kvtier"))
		return 0;
	if (!strcmp(driver, "kmem"))
		return cxl_give_up(trouble, -EBUSY,
				   "it is system RAM until the next reboot; then let 'kvtier cxl create' make the region, or use the memory as it is: --tier node:node=N,size=SIZE",
				   "the kmem driver has %s", dax);
	if (driver[0]) {
		ret = cxl_write(trouble, dax, "bus/dax/drivers/%s/unbind",
				driver);
		if (ret)
			return ret;
	}
	ret = cxl_write(trouble, dax, OUR_DRIVER "/new_id");
	if (ret)
		return ret;
	ret = bind_found(dax, driver);
	if (strcmp(driver, "kvtier"))
		return cxl_give_up(trouble, ret ? ret : -EBUSY,
				   "the kernel log says why: dmesg | tail",
				   "the kvtier driver did not take %s%s%s",
				   dax, driver[0] ? ", it is now with " : "",
				   driver);
	return 0;
}

bool dax_user(const char *dax, char *user, size_t room)
{
	struct sysfs_names pools, tiers;
	char dir[SYSFS_PATH_MAX], device[SYSFS_NAME_MAX];
	bool found = false;
	size_t i, j;

	if (sysfs_list(&pools, "class/kvtier", "kvtier"))
		return false;
	for (i = 0; !found && i < pools.nr; i++) {
		snprintf(dir, sizeof(dir), "class/kvtier/%s/tiers",
			 pools.names[i]);
		if (sysfs_list(&tiers, dir, ""))
			continue;
		for (j = 0; !found && j < tiers.nr; j++) {
			found = !sysfs_read(device, sizeof(device),
					    "%s/%s/device", dir,
					    tiers.names[j]) &&
				!strcmp(device, dax);
			if (found)
				snprintf(user, room, "%s/%s", pools.names[i],
					 tiers.names[j]);
		}
		sysfs_free_names(&tiers);
	}
	sysfs_free_names(&pools);
	return found;
}

int dax_give_back(const char *dax)
{
	return sysfs_write(dax, "bus/dax/drivers/device_dax/bind");
}

int dax_unbind(const char *dax, struct cxl_trouble *trouble)
{
	char driver[SYSFS_NAME_MAX], user[2 * SYSFS_NAME_MAX];
	int ret;

	if (dax_user(dax, user, sizeof(user)))
		return cxl_give_up(trouble, -EBUSY,
				   "detach it first: kvtier tier detach",
				   "%s is tier %s", dax, user);
	dax_driver(dax, driver);
	if (!driver[0])
		return 0;
	if (strcmp(driver, "kvtier"))
		return cxl_give_up(trouble, -EBUSY,
				   strcmp(driver, "kmem") ? NULL :
				   "it is system RAM until the next reboot",
				   "driver %s has %s", driver, dax);
	ret = cxl_write(trouble, dax, OUR_DRIVER "/unbind");
	if (!ret)
		ret = cxl_write(trouble, dax, OUR_DRIVER "/remove_id");
	if (!ret && media_dax_is_persistent(dax))
		dax_give_back(dax);
	return ret;
}
