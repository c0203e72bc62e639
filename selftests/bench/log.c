// SPDX-License-Identifier: GPL-2.0
/*
 * The log as a stream: many blocks down to the block tier, and up again.
 *
 * "seq_write" begins when memory is to be emptied and ends when every block is on the
 * device, durably. "seq_read" is a chain that is leased from its head to its end, a
 * batch at a time. Each sample has blocks that were never on the device before.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bench.h"

#define STREAM_BYTES	((size_t)128 << 20)
#define STREAM_BLOCKS	(STREAM_BYTES >> 16)
#define POLL_US		4000
#define WAIT_S		120

static const size_t sizes[] = { 64 << 10, 1 << 20 };
static struct kvtier_key keys[STREAM_BLOCKS];
static char counter_path[256];
static uint64_t salt = 0x109;

static uint64_t demotions(void)
{
	FILE *f = fopen(counter_path, "r");
	unsigned long long n;

	if (!f || fscanf(f, "%llu", &n) != 1)
		die("%s: %s", counter_path, strerror(errno));
	fclose(f);
	return n;
}

static struct kvtier_opts opts_of(const struct env *e)
{
	struct kvtier_opts o = KVTIER_OPTS_INIT;

	o.group = e->group;
	o.flags = KVTIER_GET_WAIT;
	o.timeout_ns = KVTIER_NO_TIMEOUT;
	return o;
}

static void drop(struct env *e)
{
	struct kvtier_opts o = opts_of(e);
	unsigned int at;

	o.flags = 0;
	for (at = e->blocks; at; at -= e->batch)
		expect("drop", kvtier_drop(e->ns, &o, keys + at - e->batch, e->batch, NULL),
		       e->batch);
}

static void fill(struct env *e)
{
	struct kvtier_opts o = opts_of(e);
	unsigned int at, i;

	o.flags = 0;
	salt++;
	for (i = 0; i < e->blocks; i++)
		make_key(&keys[i], salt, i);
	for (at = 0; at < e->blocks; at += e->batch) {
		expect("reserve", kvtier_reserve(e->ns, &o, keys + at,
						 at ? keys + at - 1 : NULL, e->batch, e->slots),
		       e->batch);
		for (i = 0; i < e->batch; i++) {
			stamp(e, e->src, at + i);
			memcpy(e->slots[i].ptr, e->src, e->block_bytes);
		}
		expect("commit", kvtier_commit_slots(e->ns, 0, e->slots, e->batch), e->batch);
	}
	store_ballast(e);
}

/* Whether no block is anywhere but on the block tier. */
static bool all_down(struct env *e, uint32_t tier)
{
	static struct kvtier_lookup_result res[BLOCKS_MAX];
	struct kvtier_opts o = opts_of(e);
	unsigned int at, i;

	o.flags = 0;
	for (at = 0; at < e->blocks; at += e->batch) {
		expect("lookup", kvtier_lookup(e->ns, &o, keys + at, e->batch, res, NULL),
		       e->batch);
		for (i = 0; i < e->batch; i++)
			if (res[i].tier != tier)
				return false;
	}
	return true;
}

static uint32_t nvme;

/* The counter is cheap to look at, but others' blocks are in it too. */
static void demote(struct env *e)
{
	uint64_t aim = demotions() + e->blocks, end = now_ns() + WAIT_S * 1000000000ull;

	store_watermarks("1", "2");
	while (demotions() < aim || !all_down(e, nvme)) {
		if (now_ns() > end)
			die("the blocks did not all go to the block tier");
		usleep(POLL_US);
	}
	if (fsync(kvtier_ns_fd(e->ns)))
		die("fsync: %s", strerror(errno));
	store_watermarks("90", "95");
}

static void fill_and_demote(struct env *e)
{
	fill(e);
	demote(e);
}

static void read_chain(struct env *e)
{
	struct kvtier_opts o = opts_of(e);
	unsigned int at;

	for (at = 0; at < e->blocks; at += e->batch) {
		expect("get", kvtier_get(e->ns, &o, keys + at, e->batch, e->slots), e->batch);
		expect("release", kvtier_release_slots(e->ns, e->slots, e->batch), e->batch);
	}
}

static void check_and_drop(struct env *e)
{
	struct kvtier_opts o = opts_of(e);
	unsigned int at, i;

	for (at = 0; at < e->blocks; at += e->batch) {
		expect("get", kvtier_get(e->ns, &o, keys + at, e->batch, e->slots), e->batch);
		for (i = 0; i < e->batch; i++)
			check_stamp(e, e->slots[i].ptr, at + i);
		expect("release", kvtier_release_slots(e->ns, e->slots, e->batch), e->batch);
	}
	drop(e);
}

/**
 * log_works() - down to the block tier and up again
 * @e:          sizes are overwritten
 * @pool_sysfs: folder of the pool in sysfs; its block tier is called nvme0
 */
void log_works(struct env *e, const char *pool_sysfs)
{
	static const struct work writes = { "kvtier", "seq_write", fill, demote, drop };
	static const struct work reads = { "kvtier", "seq_read", fill_and_demote, read_chain,
					   check_and_drop };
	unsigned int i;

	nvme = store_nvme_tier(pool_sysfs);
	snprintf(counter_path, sizeof(counter_path), "%s/tiers/nvme0/demotions_in", pool_sysfs);
	store_watermarks("90", "95");
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		e->group = i;
		e->block_bytes = sizes[i];
		e->blocks = (unsigned int)(STREAM_BYTES / sizes[i]);
		e->batch = e->blocks < BLOCKS_MAX ? e->blocks : BLOCKS_MAX;
		measure(e, &writes);
		measure(e, &reads);
	}
}
