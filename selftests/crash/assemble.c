// SPDX-License-Identifier: GPL-2.0
/*
 * States of a device, taken by the driver, many in one boot: a pool comes up of the device
 * alone, gets memory enough for all that is on it, so that nothing has to go while it is
 * looked at, and goes again.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "crash.h"

#define POOL		2u
#define DRAM_BYTES	(128ull << 20)
#define TRIES		500u	/* of 10 ms: udev may have a device open */

static int bring_up(struct kvtier_ctl *ctl, const char *device, uint64_t *blocks)
{
	struct kvtier_assemble_device dev = { .rank = 0 };
	struct kvtier_pool_assemble a = KVTIER_POOL_ASSEMBLE_INIT;
	struct kvtier_tier_params dram = KVTIER_TIER_PARAMS_INIT;
	uint32_t tries = 0;
	int err;

	snprintf(dev.path, sizeof(dev.path), "%s", device);
	a.pool_id = POOL;
	a.nr_devices = 1;
	a.devices = (uintptr_t)&dev;
	do {
		err = kvtier_ctl_pool_assemble(ctl, &a);
	} while (err == -EBUSY && tries++ < TRIES && !usleep(10000));
	if (err)
		return err;
	*blocks = a.nr_blocks;
	dram.type = KVTIER_TIER_DRAM;
	dram.name = "dram";
	dram.capacity_bytes = DRAM_BYTES;
	return kvtier_ctl_tier_attach(ctl, POOL, &dram, NULL);
}

static int put_down(struct kvtier_ctl *ctl)
{
	uint32_t tries = 0;
	int err;

	do {
		err = kvtier_ctl_pool_destroy(ctl, POOL);
	} while (err == -EBUSY && tries++ < TRIES && !usleep(10000));
	return err;
}

bool assemble_state(const char *device, struct oracle *o, uint64_t *blocks)
{
	struct kvtier_ctl *ctl;
	int err = kvtier_ctl_open(&ctl);
	bool ok = false;

	if (err) {
		printf("# the driver is not there: %s\n", strerror(-err));
		return false;
	}
	err = bring_up(ctl, device, blocks);
	if (err)
		printf("# it cannot be assembled: %s\n", strerror(-err));
	else
		ok = verify_blocks(POOL, *blocks, o, NULL);
	err = put_down(ctl);
	if (err) {
		printf("# the pool cannot be destroyed: %s\n", strerror(-err));
		ok = false;
	}
	kvtier_ctl_unref(ctl);
	return ok;
}
