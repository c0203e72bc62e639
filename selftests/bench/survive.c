// SPDX-License-Identifier: GPL-2.0
/*
 * What a replay left on the block tier, and whether it is still there after the machine
 * has started again.
 *
 * The list has a key a line, in hex, of every block that was on a block tier and nowhere
 * else, and durable. Each is asked for by itself: what its chain has lost is not counted
 * against it. A block that comes was verified by the kernel against its checksum; that
 * the bytes are the right ones is the replay's to say, which is run again afterwards.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "bench.h"

#define IDENTITY	"kvtier-replay"
#define PAGE_ENTRIES	1024u
#define HEX_BYTES	(2 * KVTIER_KEY_BYTES)

static struct kvtier_ns *open_replay(struct kvtier_pool *pool)
{
	struct kvtier_ns_params params = KVTIER_NS_PARAMS_INIT;
	struct kvtier_ns *ns;
	int ret;

	params.identity = IDENTITY;
	params.identity_len = strlen(IDENTITY);
	ret = kvtier_ns_open(pool, &params, &ns);
	if (ret)
		die("namespace %s: %s", IDENTITY, strerror(-ret));
	return ns;
}

static struct kvtier_pool *open_pool(void)
{
	struct kvtier_pool *pool;
	int ret = kvtier_pool_open(0, &pool);

	if (ret)
		die("pool 0: %s", strerror(-ret));
	return pool;
}

static uint32_t bdev_tiers(struct kvtier_pool *pool)
{
	struct kvtier_tier_info tiers[KVTIER_TIERS_MAX];
	int n = kvtier_pool_tiers(pool, tiers), i;
	uint32_t mask = 0;

	for (i = 0; i < n; i++)
		if (tiers[i].type == KVTIER_TIER_BDEV)
			mask |= 1u << tiers[i].id;
	return mask;
}

static void print_key(FILE *f, const uint8_t *key)
{
	unsigned int i;

	for (i = 0; i < KVTIER_KEY_BYTES; i++)
		fprintf(f, "%02x", key[i]);
	fputc('\n', f);
}

/**
 * survive_save() - list what is on block tiers, durable
 * @path: file to write
 */
void survive_save(const char *path)
{
	static struct kvtier_entry list[PAGE_ENTRIES];
	struct kvtier_pool *pool = open_pool();
	struct kvtier_ns *ns = open_replay(pool);
	uint32_t tiers = bdev_tiers(pool);
	FILE *f = fopen(path, "w");
	uint64_t cursor = 0;
	unsigned int all = 0, kept = 0;
	int i, n;

	if (!f)
		die("%s: %s", path, strerror(errno));
	do {
		n = kvtier_iterate(ns, &cursor, list, PAGE_ENTRIES);
		if (n < 0)
			die("iterate: %s", strerror(-n));
		for (i = 0; i < n; i++, all++) {
			if (!(list[i].flags & KVTIER_ENTRY_DURABLE) ||
			    !(tiers & 1u << list[i].tier))
				continue;
			print_key(f, list[i].key);
			kept++;
		}
	} while (cursor);
	if (fclose(f) || !kept)
		die("%s: %u of %u blocks are durable", path, kept, all);
	kvtier_ns_unref(ns);
	kvtier_pool_unref(pool);
	fprintf(stderr, "%u blocks, %u of them on block tiers and durable\n", all, kept);
}

static bool read_key(FILE *f, struct kvtier_key *key)
{
	char line[HEX_BYTES + 2];
	unsigned int i, v;

	if (!fgets(line, sizeof(line), f))
		return false;
	for (i = 0; i < KVTIER_KEY_BYTES; i++) {
		if (sscanf(line + 2 * i, "%2x", &v) != 1)
			die("not a list of keys");
		key->b[i] = (uint8_t)v;
	}
	return true;
}

/* Whether it is found, wherever that is; nothing moves. */
static bool found(struct kvtier_ns *ns, const struct kvtier_key *key)
{
	struct kvtier_opts o = KVTIER_OPTS_INIT;
	struct kvtier_lookup_result res;

	return kvtier_lookup(ns, &o, key, 1, &res, NULL) == 1;
}

/* Whether it comes, and its bytes verify. */
static bool served(struct kvtier_ns *ns, const struct kvtier_key *key)
{
	struct kvtier_opts o = KVTIER_OPTS_INIT;
	struct kvtier_slot slot;
	int n;

	o.flags = KVTIER_GET_WAIT;
	o.timeout_ns = 10000000000u;
	n = kvtier_get(ns, &o, key, 1, &slot);
	if (n == 1)
		kvtier_release_slots(ns, &slot, 1);
	return n == 1;
}

static unsigned int count(struct kvtier_ns *ns, FILE *f, unsigned int *all,
			  bool (*is)(struct kvtier_ns *ns, const struct kvtier_key *key))
{
	struct kvtier_key key;
	unsigned int n = 0;

	rewind(f);
	for (*all = 0; read_key(f, &key); (*all)++)
		n += is(ns, &key);
	return n;
}

/**
 * survive_check() - how many blocks of a list are still served
 * @e:    gets a line of results
 * @path: of survive_save()
 */
void survive_check(struct env *e, const char *path)
{
	struct kvtier_pool *pool = open_pool();
	struct kvtier_ns *ns = open_replay(pool);
	unsigned int before, there, come;
	FILE *f = fopen(path, "r");

	if (!f)
		die("%s: %s", path, strerror(errno));
	there = count(ns, f, &before, found);
	come = count(ns, f, &before, served);
	fclose(f);
	fprintf(e->out, "{\"op\": \"survive\", \"before\": %u, \"found\": %u, \"served\": %u}\n",
		before, there, come);
	kvtier_ns_unref(ns);
	kvtier_pool_unref(pool);
}
