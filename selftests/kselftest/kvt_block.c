// SPDX-License-Identifier: GPL-2.0
/*
 * Keys, the bytes that belong to them, and the two whole operations everybody
 * needs: store a chain, read a chain back and compare.
 *
 * Word j of a block is its key's seed plus j times an odd constant, so every
 * word of every block is different and a word tells block and place.
 */
#include "kvt_test.h"

#define STRIDE	0x9e3779b97f4a7c15ull
#define BATCH	256u
#define BATCH_BYTES	(1u << 20)

static __u64 mix(__u64 x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ull;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

struct kvt_key kvt_key(__u32 set, __u64 i)
{
	struct kvt_key key;
	__u64 w[4];
	int n;

	for (n = 0; n < 4; n++)
		w[n] = mix(((__u64)set << 40) + i * 4 + n + STRIDE);
	w[3] |= 1;
	memcpy(&key, w, sizeof(key));
	return key;
}

void kvt_keys(struct kvt_key *keys, __u32 set, __u64 first, __u32 nr)
{
	__u32 i;

	for (i = 0; i < nr; i++)
		keys[i] = kvt_key(set, first + i);
}

static __u64 seed_of(const struct kvt_key *key)
{
	__u64 w[4];

	memcpy(w, key, sizeof(w));
	return mix(w[0] ^ w[1] * 3 ^ w[2] * 5 ^ w[3] * 7);
}

void kvt_fill(void *dst, const struct kvt_key *key, size_t bytes)
{
	__u64 w = seed_of(key);
	char *d = dst;
	size_t n;

	for (n = 0; n + sizeof(w) <= bytes; n += sizeof(w), w += STRIDE)
		memcpy(d + n, &w, sizeof(w));
	memcpy(d + n, &w, bytes - n);
}

bool kvt_bytes_ok(const void *src, const struct kvt_key *key, size_t bytes)
{
	__u64 w = seed_of(key), seen, differ = 0;
	const char *s = src;
	size_t n;

	for (n = 0; n + sizeof(w) <= bytes; n += sizeof(w), w += STRIDE) {
		memcpy(&seen, s + n, sizeof(seen));
		differ |= seen ^ w;
	}
	return !differ && !memcmp(s + n, &w, bytes - n);
}

/* Entries to handle at once: a call must not want more memory than a small pool has. */
static __u32 batch_of(const struct kvt_client *c, __u32 group, __u32 left)
{
	__u64 n = BATCH_BYTES / c->block_bytes[group];

	n = n < 1 ? 1 : n > BATCH ? BATCH : n;
	return left < n ? left : n;
}

void *kvt_rd(const struct kvt_client *c, __u64 offset)
{
	return c->rd.base + (offset - c->rd.start);
}

void *kvt_wr(const struct kvt_client *c, __u64 offset)
{
	return c->wr.base + (offset - c->wr.start);
}

/* Fill and commit what was reserved; how many leading entries are there then. */
static int fill_and_commit(const struct kvt_client *c, __u32 group, const struct kvt_key *keys,
			   const struct kvtier_block_result *res, __u32 nr)
{
	struct kvtier_block_result done[BATCH];
	__u64 handle[BATCH];
	__u32 i, n = 0, prefix = nr, at[BATCH];
	int ret;

	for (i = 0; i < nr; i++) {
		if (res[i].status == KVTIER_ST_RESERVED) {
			kvt_fill(kvt_wr(c, res[i].offset), &keys[i], c->block_bytes[group]);
			at[n] = i;
			handle[n++] = res[i].handle;
		} else if (res[i].status != KVTIER_ST_EXISTS && prefix == nr) {
			prefix = i;
		}
	}
	if (!n)
		return (int)prefix;
	ret = kvt_commit(c->fd, 0, handle, n, done);
	if (ret < 0)
		return ret;
	for (i = 0; i < n; i++)
		if (done[i].status != KVTIER_ST_DONE && at[i] < prefix)
			prefix = at[i];
	return (int)prefix;
}

int kvt_put(const struct kvt_client *c, __u32 flags, __u32 group, const struct kvt_key *keys,
	    const struct kvt_key *parent, __u32 nr)
{
	struct kvtier_block_result res[BATCH];
	__u32 at, n;
	int ret;

	for (at = 0; at < nr; at += n) {
		n = batch_of(c, group, nr - at);
		ret = kvt_reserve(c->fd, flags, group, keys + at, at ? keys + at - 1 : parent, n,
				  res, KVT_PATIENCE_NS(10 * KVT_SEC));
		if (ret < 0)
			return ret;
		ret = fill_and_commit(c, group, keys + at, res, n);
		if (ret < 0)
			return ret;
		if ((__u32)ret < n)
			return (int)at + ret;
	}
	return (int)nr;
}

/* What the eye looks for in wrong bytes: where, how many, and whose they are. */
static void tell_wrong(const char *src, const struct kvt_key *key, size_t bytes)
{
	__u64 w = seed_of(key), seen, seed, other = 0;
	size_t n, first = bytes, last = 0, wrong = 0, zeros = 0, of_other = 0;

	for (n = 0; n + sizeof(w) <= bytes; n += sizeof(w), w += STRIDE) {
		memcpy(&seen, src + n, sizeof(seen));
		if (seen == w)
			continue;
		first = n < first ? n : first;
		last = n;
		wrong++;
		zeros += !seen;
		/* The seed of a block that has this word here. */
		seed = seen - n / sizeof(w) * STRIDE;
		other = other ? other : seed;
		of_other += seed == other;
	}
	fprintf(stderr, "# %zu wrong words from %#zx to %#zx: %zu are 0, %zu as in a block of "
		"seed %#llx (wanted %#llx)%s\n", wrong, first, last, zeros, of_other, other,
		seed_of(key), wrong ? "" : "; by now all is right");
}

/* Compare and release a leased prefix. */
static int check_leased(const struct kvt_client *c, __u32 group, const struct kvt_key *keys,
			const struct kvtier_block_result *res, __u32 nr)
{
	__u64 handle[BATCH];
	__s32 gone[BATCH];
	int ret, bad = 0;
	__u32 i;

	for (i = 0; i < nr; i++) {
		handle[i] = res[i].handle;
		if (kvt_bytes_ok(kvt_rd(c, res[i].offset), &keys[i], c->block_bytes[group]))
			continue;
		fprintf(stderr, "# wrong bytes in entry %u (tier %u, offset %#llx)\n", i,
			res[i].tier, (unsigned long long)res[i].offset);
		tell_wrong(kvt_rd(c, res[i].offset), &keys[i], c->block_bytes[group]);
		bad++;
	}
	ret = nr ? kvt_release(c->fd, handle, nr, gone) : 0;
	if (ret < 0)
		return ret;
	if ((__u32)ret != nr)
		return -EPROTO;
	return bad ? -EBADMSG : (int)nr;
}

int kvt_check(const struct kvt_client *c, __u32 group, const struct kvt_key *keys, __u32 nr,
	      __u64 timeout_ns)
{
	struct kvtier_block_result res[BATCH];
	__u32 at, n;
	int ret;

	for (at = 0; at < nr; at += n) {
		n = batch_of(c, group, nr - at);
		ret = kvt_get(c->fd, timeout_ns ? KVTIER_GET_WAIT : 0, group, keys + at, n, res,
			      KVT_PATIENCE_NS(timeout_ns));
		if (ret >= 0)
			ret = check_leased(c, group, keys + at, res, ret);
		if (ret < 0)
			return ret;
		if ((__u32)ret < n)
			return (int)at + ret;
	}
	return (int)nr;
}
