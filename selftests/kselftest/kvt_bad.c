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
#define BAD_COPIES	"/sys/module/kvtier/parameters/test_bad_copies"

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

long long kvt_retired(const struct kvt_pool *p, const char *tier)
{
	char name[64], buf[32];
	int n;

	snprintf(name, sizeof(name), "tiers/%s/retired_bytes", tier);
	n = kvt_sysfs_read(p, name, buf, sizeof(buf));
	return n < 0 ? n : strtoll(buf, NULL, 10);
}

__u64 kvt_pool_entries(const struct kvt_client *c)
{
	struct kvtier_stat st;

	return kvt_stat(c->fd, KVTIER_STAT_POOL, &st) ? ~0ull : st.nr_blocks;
}

__u64 kvt_put_leased(const struct kvt_client *c, const struct kvt_key *key,
		     struct kvtier_block_result *res)
{
	if (kvt_put(c, 0, 0, key, NULL, 1) != 1 ||
	    kvt_get(c->fd, 0, 0, key, 1, res, 0) != 1 || kvt_touch_read(kvt_rd(c, res->offset)))
		return 0;
	return kvt_bad_address(kvt_rd(c, res->offset));
}

int kvt_bad_copies(int copies)
{
	return kvt_sh("[ -w " BAD_COPIES " ] && echo %d > " BAD_COPIES, copies) ? -1 : 0;
}

int kvt_bad_copies_left(void)
{
	char left[16] = "";

	return kvt_sh_line(left, sizeof(left), "cat " BAD_COPIES) ? -1 : atoi(left);
}
