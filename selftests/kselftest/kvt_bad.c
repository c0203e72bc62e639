// SPDX-License-Identifier: GPL-2.0
/*
 * Pages that are made bad.
 *
 * The kernel is told that a page of a tier has failed, as a machine check tells it. It
 * forgets that of a device-dax instance's pages when the driver gives up the instance, and
 * never of its own memory's.
 */
#include "kvt_test.h"

#define OFFLINE		"/sys/devices/system/memory/hard_offline_page"

bool kvt_bad_can(void)
{
	return !access(OFFLINE, W_OK);
}

__u64 kvt_bad_address(const void *p)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	__u64 entry = 0;

	if (fd < 0)
		return 0;
	if (pread(fd, &entry, sizeof(entry), (off_t)(KVT_U64(p) / 4096 * sizeof(entry))) !=
	    sizeof(entry))
		entry = 0;
	close(fd);
	return entry >> 63 ? (entry & ((1ull << 55) - 1)) * 4096 : 0;
}

/* Without a shell, which takes longer than blocks stay where they are. */
int kvt_bad_make(__u64 address)
{
	int fd = address ? open(OFFLINE, O_WRONLY | O_CLOEXEC) : -1, err;

	if (fd < 0)
		return address ? -errno : -EFAULT;
	err = dprintf(fd, "%#llx", address) < 0 ? -errno : 0;
	close(fd);
	return err;
}

int kvt_bad_forget(void)
{
	char zombies[16] = "";

	if (kvt_sh("echo %s > /sys/bus/dax/drivers/kvtier/unbind", kvt_env_dax()))
		return -ENODEV;
	if (!KVT_UNTIL(20000, !kvt_sh_line(zombies, sizeof(zombies),
					   "cat /sys/module/kvtier/parameters/dax_zombies") &&
			      !strcmp(zombies, "0")))
		return -EBUSY;
	/* A zombie's range is given back a moment later. */
	kvt_sleep_ms(50);
	return KVT_UNTIL(20000, !kvt_dax_bind(kvt_env_dax(), "kvtier")) ? 0 : -EBUSY;
}
