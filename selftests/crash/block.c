// SPDX-License-Identifier: GPL-2.0
/*
 * Blocks of the crash tests: a key says whose it is, the bytes say which version.
 *
 * Bytes are a head and then words that all differ, so that a part of another block, or
 * of another version, or another part of the same one, is wrong wherever it is.
 */
#include <stdio.h>
#include <string.h>
#include "crash.h"

#define STRIDE	0x9e3779b97f4a7c15ull
#define MAGIC	0x6b76746372617368ull

struct head {
	uint64_t magic;
	uint32_t ns;
	uint32_t index;
	uint64_t version;
};

/* Neither is a multiple of the other, and one does not fill its slot. */
const uint64_t group_bytes[NR_GROUPS] = { 64 << 10, 20008 };

static uint64_t seed_of(uint32_t ns, uint32_t index, uint64_t version)
{
	uint64_t state = (uint64_t)ns << 32 ^ index ^ version << 13;

	return next_random(&state) ^ version;
}

void make_key(struct kvtier_key *key, uint32_t ns, uint32_t index)
{
	uint64_t state = (uint64_t)ns << 32 | index, w[KVTIER_KEY_BYTES / 8];
	uint32_t i;

	w[0] = state;
	for (i = 1; i < KVTIER_KEY_BYTES / 8; i++)
		w[i] = next_random(&state);
	memcpy(key->b, w, sizeof(w));
}

bool read_key(const void *key, uint32_t *ns, uint32_t *index)
{
	struct kvtier_key same;
	uint64_t w;

	memcpy(&w, key, sizeof(w));
	*ns = (uint32_t)(w >> 32);
	*index = (uint32_t)w;
	make_key(&same, *ns, *index);
	return !memcmp(same.b, key, sizeof(same.b)) && *ns < NS_MAX && *index < ns_blocks(*ns);
}

void fill_block(void *to, uint32_t ns, uint32_t index, uint32_t version)
{
	struct head head = { .magic = MAGIC, .ns = ns, .index = index, .version = version };
	uint64_t w = seed_of(ns, index, version), at, bytes = group_bytes[group_of(index)];

	memcpy(to, &head, sizeof(head));
	for (at = sizeof(head); at < bytes; at += sizeof(w), w += STRIDE)
		memcpy((char *)to + at, &w, sizeof(w));
}

uint32_t block_version(const void *from, uint32_t ns, uint32_t index)
{
	uint64_t w, seen, differ = 0, at, bytes = group_bytes[group_of(index)];
	struct head head;

	memcpy(&head, from, sizeof(head));
	if (head.magic != MAGIC || head.ns != ns || head.index != index ||
	    head.version > UINT32_MAX)
		return 0;
	w = seed_of(ns, index, head.version);
	for (at = sizeof(head); at < bytes; at += sizeof(w), w += STRIDE) {
		memcpy(&seen, (const char *)from + at, sizeof(seen));
		differ |= seen ^ w;
	}
	return differ ? 0 : (uint32_t)head.version;
}

uint64_t ns_quota(uint32_t ns)
{
	/* Each has another one, so that none is taken for another's. */
	if (!ns_loose(ns))
		return (64ull << 20) + ns * 4096ull;
	return ns % 2 ? 0 : (3ull << 20) + ns * 4096ull;
}

int open_ns(struct kvtier_pool *pool, uint32_t ns, uint32_t flags, bool secret,
	    struct kvtier_ns **out)
{
	struct kvtier_ns_params p = KVTIER_NS_PARAMS_INIT;
	uint8_t bytes[KVTIER_SECRET_BYTES];
	char name[32];

	snprintf(name, sizeof(name), "crash-%u", ns);
	memset(bytes, 's', sizeof(bytes));
	memcpy(bytes, &ns, sizeof(ns));
	bytes[sizeof(bytes) - 1] ^= !secret;
	p.flags = flags;
	p.identity = name;
	p.identity_len = strlen(name);
	p.secret = bytes;
	p.nr_groups = NR_GROUPS;
	p.block_bytes = group_bytes;
	p.quota_bytes = ns_quota(ns);
	return kvtier_ns_open(pool, &p, out);
}
