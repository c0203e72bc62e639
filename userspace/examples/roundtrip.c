// SPDX-License-Identifier: GPL-2.0
/*
 * The smallest engine: roundtrip POOL [NAMESPACE]
 *
 * Takes a chain of blocks out of the store as far as it is there, makes the rest
 * and stores it. Run it twice: the second time, also as another process of the
 * same user, all blocks are there. What is between the marks is shown in README.md.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* [readme] */
#include <kvtier/libkvtier.h>

enum { BLOCK_BYTES = 64 << 10, NR = 8 };

/* Stands for the attention kernels that make, or use, one block of a prefix. */
static void compute(unsigned char *block, uint32_t i)
{
	memset(block, 'A' + i, BLOCK_BYTES);
}

static int use(const unsigned char *block, uint32_t i)
{
	return block[0] == 'A' + i && !memcmp(block, block + 1, BLOCK_BYTES - 1) ? 0 : -1;
}

/* Use what is there of a prefix, make and store the rest. Returns how many were there. */
static int serve(struct kvtier_ns *ns, const struct kvtier_key *keys, uint32_t nr)
{
	struct kvtier_opts wait = KVTIER_OPTS_INIT;
	struct kvtier_slot slots[NR];
	int hits, err = 0;

	wait.flags = KVTIER_GET_WAIT;		/* blocks on NVMe come up first */
	wait.timeout_ns = 1000000000;
	hits = kvtier_get(ns, &wait, keys, nr, slots);
	if (hits < 0)
		return hits;
	for (int i = 0; i < hits && !err; i++)
		err = use(slots[i].ptr, i);	/* no copy: the store's own pages */
	kvtier_release_slots(ns, slots, hits);
	if (err || (uint32_t)hits == nr)
		return err ? err : hits;

	err = kvtier_reserve(ns, NULL, keys + hits, hits ? keys + hits - 1 : NULL,
			     nr - hits, slots);
	if (err < 0)
		return err;
	for (uint32_t i = 0; i < nr - hits; i++)
		if (slots[i].status == KVTIER_ST_RESERVED)
			compute(slots[i].ptr, hits + i);
	err = kvtier_commit_slots(ns, 0, slots, nr - hits);
	kvtier_abort_slots(ns, slots, nr - hits);	/* what was refused, if any */
	return err < 0 ? err : hits;
}
/* [end] */

/* A real engine's keys are the hashes of its prefixes. */
static void make_keys(struct kvtier_key keys[NR])
{
	memset(keys, 0, NR * sizeof(keys[0]));
	for (int i = 0; i < NR; i++)
		snprintf((char *)keys[i].b, sizeof(keys[i].b), "roundtrip/%d", i);
}

static int open_ns(uint32_t pool_id, const char *name, struct kvtier_ns **ns)
{
	static const uint64_t block_bytes[] = { BLOCK_BYTES };
	struct kvtier_ns_params params = KVTIER_NS_PARAMS_INIT;
	struct kvtier_pool *pool;
	int err;

	err = kvtier_pool_open(pool_id, &pool);
	if (err)
		return err;
	params.flags = KVTIER_NS_CREATE;
	params.identity = name;
	params.identity_len = strlen(name);
	params.block_bytes = block_bytes;
	params.nr_groups = 1;
	err = kvtier_ns_open(pool, &params, ns);
	kvtier_pool_unref(pool);
	return err;
}

int main(int argc, char **argv)
{
	struct kvtier_key keys[NR];
	struct kvtier_ns *ns;
	int hits, stored;

	if (argc < 2) {
		fprintf(stderr, "usage: roundtrip POOL [NAMESPACE]\n");
		return 2;
	}
	hits = open_ns(atoi(argv[1]), argc > 2 ? argv[2] : "roundtrip", &ns);
	if (hits) {
		fprintf(stderr, "roundtrip: %s\n", strerror(-hits));
		return 1;
	}
	make_keys(keys);
	hits = serve(ns, keys, NR);
	stored = kvtier_lookup(ns, NULL, keys, NR, NULL, NULL) - hits;
	kvtier_ns_unref(ns);
	if (hits < 0 || stored < 0) {
		fprintf(stderr, "roundtrip: failed\n");
		return 1;
	}
	printf("%d blocks were there, %d stored\n", hits, stored);
	return 0;
}
