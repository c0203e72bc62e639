// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that fails: a bad page costs the block that is on it and nothing else, whoever
 * finds out about it, and is not used again.
 */
#include "kvt_test.h"
#include <sys/uio.h>

#define BLOCK_BYTES	(64 * KVT_KIB)
#define SET		29
#define SLOTS_A_PIECE	((int)(KVT_PIECE / BLOCK_BYTES))
#define PIECES		8
#define SLOTS		(PIECES * SLOTS_A_PIECE)

FIXTURE(poison)
{
	struct kvt_pool pool;
	struct kvt_client c;
	int dax;
};

FIXTURE_SETUP(poison)
{
	if (!kvt_env_dax())
		SKIP(return, "no device-dax instance to use (KVT_DAX)");
	if (!kvt_bad_can())
		SKIP(return, "this kernel cannot be told that a page is bad");
	signal(SIGBUS, SIG_IGN);
	ASSERT_EQ(0, kvt_setup(&self->pool));
	self->dax = kvt_tier_dax(&self->pool, 0, PIECES * KVT_PIECE);
	ASSERT_LE(0, self->dax);
	/* Nothing is to go in the background. */
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "watermark_high_percent", "100"));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "reserve_percent", "100"));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "poison", BLOCK_BYTES));
}

FIXTURE_TEARDOWN(poison)
{
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	EXPECT_EQ(0, kvt_bad_forget());
}

/* As many slots as there are to be had, all at once, roots. */
static int reserve_all(const struct kvt_client *c, __u32 flags, struct kvtier_block_result *res)
{
	static struct kvt_key keys[SLOTS], none[SLOTS];
	/* Waited for the longer: what is there even without the piece of a bad page. */
	int sure = flags & KVTIER_RESERVE_WAIT ? SLOTS - SLOTS_A_PIECE : SLOTS;
	int i, k, n;

	kvt_keys(keys, SET, 50000, SLOTS);
	/* Emulated CXL memory takes its time to be wiped. */
	n = kvt_reserve(c->fd, KVTIER_RESERVE_PARENTS | flags, 0, keys, none, sure, res,
			KVT_PATIENCE_NS(20 * KVT_SEC));
	k = n < 0 || sure == SLOTS ? 0 :
	    kvt_reserve(c->fd, KVTIER_RESERVE_PARENTS | flags, 0, keys + sure, none + sure,
			SLOTS - sure, res + sure, KVT_SEC);
	n = k < 0 ? k : n + k;
	for (i = 0, k = 0; i < SLOTS && n >= 0; i++)
		if (res[i].status == KVTIER_ST_RESERVED)
			res[k++] = res[i];
	return n == k ? n : -EINVAL;
}

/* Are all pages of these slots there and good. */
static bool can_fill(const struct kvt_client *c, const struct kvtier_block_result *res, int nr)
{
	__u64 at;
	int i;

	for (i = 0; i < nr; i++)
		for (at = 0; at < BLOCK_BYTES; at += 4096)
			if (kvt_touch_write((char *)kvt_wr(c, res[i].offset) + at, 1))
				return false;
	return true;
}

static void abort_all(const struct kvt_client *c, const struct kvtier_block_result *res, int nr)
{
	__u64 handle[SLOTS];
	int i;

	for (i = 0; i < nr; i++)
		handle[i] = res[i].handle;
	if (nr)
		kvt_abort(c->fd, handle, nr, NULL);
}

/* How many slots can be had, and written to. @flags: KVTIER_RESERVE_WAIT: others' too. */
static int good_slots(const struct kvt_client *c, __u32 flags)
{
	static struct kvtier_block_result res[SLOTS];
	int n = reserve_all(c, flags, res);
	bool ok = n >= 0 && can_fill(c, res, n);

	if (n > 0)
		abort_all(c, res, n);
	return ok || n < 0 ? n : -EFAULT;
}

static int attach_knowing(const struct kvt_pool *p, const struct kvtier_range *bad, __u32 nr)
{
	struct kvtier_tier_attach a;
	int err;

	kvt_tier_args(p, &a, KVTIER_TIER_DAX, 0);
	a.capacity_bytes = PIECES * KVT_PIECE;
	snprintf(a.path, sizeof(a.path), "%s", kvt_env_dax());
	a.bad = KVT_U64(bad);
	a.nr_bad = nr;
	KVT_UNTIL(10000, (err = kvt_ioctl(p->ctl, KVTIER_OP_TIER_ATTACH, &a)) != -EBUSY);
	return err;
}

/* An address of the tier in another piece than this one's, or 0. */
static __u64 in_other_piece(__u64 at)
{
	char line[32];
	__u64 base;

	if (kvt_sh_line(line, sizeof(line), "cat /sys/bus/dax/devices/%s/resource", kvt_env_dax()))
		return 0;
	base = strtoull(line, NULL, 0);
	if (at < base || at - base >= PIECES * KVT_PIECE)
		return 0;
	return at - base < KVT_PIECE ? at + KVT_PIECE : at - KVT_PIECE;
}

/* What whoever attaches the tier knows to be bad is not used from the beginning. */
TEST_F(poison, known_before)
{
	struct kvtier_range bad[5];
	struct kvt_key key = kvt_key(SET, 1);
	struct kvtier_block_result res;
	__u64 at = kvt_put_leased(&self->c, &key, &res), other, low, high;

	ASSERT_NE(0, at);
	other = in_other_piece(at);
	ASSERT_NE(0, other);
	low = at < other ? at : other;
	high = at < other ? other : at;
	/* What is higher comes first, twice and once more in part: it is in the way of none. */
	bad[0] = (struct kvtier_range) { high, 128 };
	bad[1] = bad[0];
	bad[2] = (struct kvtier_range) { high + 64, 128 };
	/* The end of a page and the beginning of the next, and a line; in one piece. */
	bad[3] = (struct kvtier_range) { low + 4095, 2 };
	bad[4] = (struct kvtier_range) { low + 64, 64 };
	kvt_client_close(&self->c);
	ASSERT_EQ(0, kvt_tier_detach(&self->pool, self->dax, KVTIER_DETACH_DISCARD, 10 * KVT_SEC));
	ASSERT_EQ(0, attach_knowing(&self->pool, bad, KVT_ARRAY(bad)));
	EXPECT_EQ(2 * KVT_PIECE, kvt_retired(&self->pool, "dax0"));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "poison", BLOCK_BYTES));
	EXPECT_EQ(SLOTS - 2 * SLOTS_A_PIECE, good_slots(&self->c, 0));
}

/* One bad page costs one block. */
TEST_F(poison, one_page)
{
	struct kvtier_block_result res[3];
	struct kvt_key keys[3];
	__u64 at[3];
	int i;

	kvt_keys(keys, SET, 0, 3);
	for (i = 0; i < 3; i++) {
		at[i] = kvt_put_leased(&self->c, &keys[i], &res[i]);
		ASSERT_NE(0, at[i]);
	}
	ASSERT_EQ(0, kvt_retired(&self->pool, "dax0"));
	ASSERT_EQ(0, kvt_bad_make(at[1] + 5 * 4096));
	EXPECT_EQ(0, kvt_lookup(self->c.fd, 0, &keys[1], 1, NULL));
	EXPECT_EQ(SIGBUS, kvt_touch_read((char *)kvt_rd(&self->c, res[1].offset) + 5 * 4096));
	/* Its neighbours are what they were, leased and anew. */
	for (i = 0; i < 3; i += 2) {
		EXPECT_TRUE(kvt_bytes_ok(kvt_rd(&self->c, res[i].offset), &keys[i], BLOCK_BYTES));
		EXPECT_EQ(1, kvt_check(&self->c, 0, &keys[i], 1, 0));
	}
	EXPECT_LT(0, kvt_tier_errors(self->c.fd, self->dax));
	/* The entry of the lost one stays for its lease, and no longer. */
	EXPECT_EQ(3, kvt_pool_entries(&self->c));
	EXPECT_EQ(0, kvt_retired(&self->pool, "dax0"));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(1, kvt_release(self->c.fd, &res[i].handle, 1, NULL));
	EXPECT_EQ(2, kvt_pool_entries(&self->c));
	EXPECT_EQ(BLOCK_BYTES, kvt_retired(&self->pool, "dax0"));
	/* The slot is not used again, the others are. */
	EXPECT_EQ(SLOTS - 3, good_slots(&self->c, 0));
	EXPECT_EQ(1, kvt_put(&self->c, KVTIER_RESERVE_WAIT, 0, &keys[1], NULL, 1));
	EXPECT_EQ(1, kvt_check(&self->c, 0, &keys[1], 1, 0));
}

/* What nobody uses: a slot of a region, and memory that is in no region. */
TEST_F(poison, free_slot)
{
	struct kvtier_block_result res[2];
	struct kvt_key keys[2], key;
	char *buf = malloc(BLOCK_BYTES);
	__u64 at[2];
	int i;

	kvt_keys(keys, SET, 0, 2);
	for (i = 0; i < 2; i++) {
		at[i] = kvt_put_leased(&self->c, &keys[i], &res[i]);
		ASSERT_NE(0, at[i]);
		ASSERT_EQ(1, kvt_release(self->c.fd, &res[i].handle, 1, NULL));
	}
	ASSERT_EQ(1, kvt_drop(self->c.fd, 0, &keys[1], 1, NULL));
	ASSERT_EQ(0, kvt_bad_make(at[1] + 15 * 4096));
	EXPECT_EQ(BLOCK_BYTES, kvt_retired(&self->pool, "dax0"));
	EXPECT_EQ(SLOTS - 2, good_slots(&self->c, 0));
	EXPECT_EQ(1, kvt_check(&self->c, 0, &keys[0], 1, 0));
	/* By copy, too. */
	for (i = 0; i < SLOTS - 2; i++) {
		key = kvt_key(SET, 1000 + i);
		kvt_fill(buf, &key, BLOCK_BYTES);
		ASSERT_EQ(KVTIER_ST_DONE, kvt_write1(self->c.fd, 0, &key, NULL, buf, BLOCK_BYTES,
						     KVT_SEC)) TH_LOG("block %d", i);
	}
	for (i = 0; i < SLOTS - 2; i++) {
		key = kvt_key(SET, 1000 + i);
		EXPECT_EQ(1, kvt_check(&self->c, 0, &key, 1, 0) |
			     (kvt_lookup(self->c.fd, 0, &key, 1, NULL) == 0)) TH_LOG("block %d", i);
	}
	free(buf);
}

TEST_F(poison, free_piece)
{
	struct kvtier_block_result res;
	struct kvt_key key = kvt_key(SET, 0);
	__u64 at = kvt_put_leased(&self->c, &key, &res);

	ASSERT_NE(0, at);
	/* The tier is one stretch of memory. */
	ASSERT_EQ(0, kvt_bad_make(at - res.offset + 5 * KVT_PIECE + 77 * 4096));
	EXPECT_EQ(KVT_PIECE, kvt_retired(&self->pool, "dax0"));
	EXPECT_EQ(SLOTS - SLOTS_A_PIECE - 1, good_slots(&self->c, 0));
	EXPECT_TRUE(kvt_bytes_ok(kvt_rd(&self->c, res.offset), &key, BLOCK_BYTES));
}

/* A reservation whose memory goes bad ends at COMMIT; its key can be stored anew. */
TEST_F(poison, while_filling)
{
	struct kvtier_block_result res, again, done;
	struct kvt_key key = kvt_key(SET, 0);
	char *at;

	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &key, NULL, 1, &res, 0));
	at = kvt_wr(&self->c, res.offset);
	kvt_fill(at, &key, BLOCK_BYTES);
	ASSERT_EQ(0, kvt_bad_make(kvt_bad_address(at + 3 * 4096)));
	EXPECT_EQ(SIGBUS, kvt_touch_write(at + 3 * 4096, 1));
	EXPECT_EQ(0, kvt_touch_write(at + 4 * 4096, 1));
	EXPECT_EQ(0, kvt_lookup(self->c.fd, 0, &key, 1, NULL));
	EXPECT_EQ(0, kvt_commit(self->c.fd, KVTIER_COMMIT_LEASE, &res.handle, 1, &done));
	EXPECT_EQ(KVTIER_ST_STALE, done.status);
	EXPECT_EQ(0, done.handle);
	/* It is over: no name, no handle, no access, no entry. */
	EXPECT_EQ(0, kvt_lookup(self->c.fd, 0, &key, 1, NULL));
	EXPECT_EQ(0, kvt_abort(self->c.fd, &res.handle, 1, NULL));
	EXPECT_EQ(SIGBUS, kvt_touch_write(at, 1));
	EXPECT_EQ(0, kvt_pool_entries(&self->c));
	EXPECT_EQ(BLOCK_BYTES, kvt_retired(&self->pool, "dax0"));
	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &key, NULL, 1, &again, 0));
	EXPECT_NE(res.offset, again.offset);
	kvt_fill(kvt_wr(&self->c, again.offset), &key, BLOCK_BYTES);
	EXPECT_EQ(1, kvt_commit(self->c.fd, 0, &again.handle, 1, &done));
	EXPECT_EQ(1, kvt_check(&self->c, 0, &key, 1, 0));
	EXPECT_EQ(SLOTS - 2, good_slots(&self->c, 0));
}

/* Given up, and given up by closing: the slot is retired all the same. */
TEST_F(poison, aborted_filling)
{
	struct kvtier_block_result res;
	struct kvt_key key = kvt_key(SET, 0);
	struct kvt_client c;

	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &key, NULL, 1, &res, 0));
	ASSERT_EQ(0, kvt_touch_write(kvt_wr(&self->c, res.offset), 1));
	ASSERT_EQ(0, kvt_bad_make(kvt_bad_address(kvt_wr(&self->c, res.offset))));
	EXPECT_EQ(1, kvt_abort(self->c.fd, &res.handle, 1, NULL));
	EXPECT_EQ(BLOCK_BYTES, kvt_retired(&self->pool, "dax0"));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &c, "poison", BLOCK_BYTES));
	ASSERT_EQ(1, kvt_reserve(c.fd, 0, 0, &key, NULL, 1, &res, 0));
	ASSERT_EQ(0, kvt_touch_write(kvt_wr(&c, res.offset), 1));
	ASSERT_EQ(0, kvt_bad_make(kvt_bad_address(kvt_wr(&c, res.offset))));
	kvt_client_close(&c);
	EXPECT_TRUE(KVT_UNTIL(5000, kvt_retired(&self->pool, "dax0") == 2 * BLOCK_BYTES));
	EXPECT_EQ(SLOTS - 2, good_slots(&self->c, 0));
}

/* The next owner of the memory gets all of it but the piece with the bad page. */
TEST_F(poison, handed_over)
{
	struct kvtier_block_result res;
	struct kvt_key key = kvt_key(SET, 0);
	struct kvt_client other;
	__u64 at = kvt_put_leased(&self->c, &key, &res);

	ASSERT_NE(0, at);
	ASSERT_EQ(0, kvt_bad_make(at));
	ASSERT_EQ(1, kvt_release(self->c.fd, &res.handle, 1, NULL));
	ASSERT_EQ(SLOTS - 1, good_slots(&self->c, 0));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &other, "next", BLOCK_BYTES));
	EXPECT_EQ(SLOTS - SLOTS_A_PIECE, good_slots(&other, KVTIER_RESERVE_WAIT));
	EXPECT_EQ(KVT_PIECE, kvt_retired(&self->pool, "dax0"));
	/* And it stays that way. */
	EXPECT_EQ(SLOTS - SLOTS_A_PIECE, good_slots(&self->c, KVTIER_RESERVE_WAIT));
	kvt_client_close(&other);
}

/* Who holds on to a bad page keeps it, and nothing else: nobody waits for him. */
TEST_F(poison, held_by_a_pipe)
{
	struct kvtier_block_result res, fill;
	struct kvt_key keys[2];
	struct iovec iov = { .iov_len = 4096 };
	struct kvtier_stat st;
	__u64 at;
	int fds[2];

	ASSERT_EQ(0, pipe2(fds, O_CLOEXEC));
	kvt_keys(keys, SET, 0, 2);
	at = kvt_put_leased(&self->c, &keys[0], &res);
	ASSERT_NE(0, at);
	iov.iov_base = kvt_rd(&self->c, res.offset);
	ASSERT_EQ(4096, vmsplice(fds[1], &iov, 1, 0));
	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &keys[1], NULL, 1, &fill, 0));
	iov.iov_base = kvt_wr(&self->c, fill.offset);
	ASSERT_EQ(4096, vmsplice(fds[1], &iov, 1, 0));
	ASSERT_EQ(0, kvt_bad_make(at));
	ASSERT_EQ(0, kvt_bad_make(at - res.offset + fill.offset - self->c.wr.start));
	EXPECT_EQ(1, kvt_release(self->c.fd, &res.handle, 1, NULL));
	EXPECT_EQ(1, kvt_abort(self->c.fd, &fill.handle, 1, NULL));
	EXPECT_EQ(2 * BLOCK_BYTES, kvt_retired(&self->pool, "dax0"));
	EXPECT_EQ(SLOTS - 2, good_slots(&self->c, 0));
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, self->dax, 0, 5 * KVT_SEC));
	ASSERT_EQ(0, kvt_stat(self->c.fd, KVTIER_STAT_POOL, &st));
	EXPECT_EQ(0, st.regions_quarantined);
	close(fds[0]);
	close(fds[1]);
}

/* An arena has a slot less, and RESERVE in it does not wait for that one for ever. */
TEST_F(poison, arena)
{
	struct kvtier_group g = { .block_bytes = BLOCK_BYTES };
	struct kvtier_arena a = { .size = sizeof(a), .nr_slots = 4 };
	static struct kvtier_block_result res[SLOTS];
	static struct kvt_key keys[SLOTS], none[SLOTS];
	struct kvtier_ns_open ns;
	struct kvt_client c;
	int i, n;

	kvt_ns_args(&ns, "arena", &g, 1);
	ns.min_bytes = KVT_PIECE;
	ASSERT_EQ(0, kvt_client_bind(&c, kvt_open(&self->pool), &ns));
	ASSERT_EQ(0, kvt_ioctl(c.fd, KVTIER_OP_ARENA, &a));
	ASSERT_EQ(SLOTS_A_PIECE, a.nr_slots);
	ASSERT_EQ(0, kvt_touch_write(kvt_wr(&c, a.offset), 1));
	ASSERT_EQ(0, kvt_bad_make(kvt_bad_address(kvt_wr(&c, a.offset))));
	EXPECT_EQ(SIGBUS, kvt_touch_write(kvt_wr(&c, a.offset), 1));
	EXPECT_EQ(0, kvt_touch_write((char *)kvt_wr(&c, a.offset) + 4096, 1));
	kvt_keys(keys, SET, 0, SLOTS);
	n = kvt_reserve(c.fd, KVTIER_RESERVE_ARENA | KVTIER_RESERVE_WAIT | KVTIER_RESERVE_PARENTS,
			0, keys, none, SLOTS_A_PIECE, res, KVT_SEC);
	EXPECT_EQ(SLOTS_A_PIECE - 1, n);
	for (i = 0; i < n; i++)
		EXPECT_NE(a.offset, res[i].offset);
	EXPECT_EQ(KVTIER_ST_NOSPACE, res[SLOTS_A_PIECE - 1].status);
	/* Its end: the piece is not used again. */
	kvt_client_close(&c);
	EXPECT_TRUE(KVT_UNTIL(10000, kvt_retired(&self->pool, "dax0") == KVT_PIECE));
	EXPECT_EQ(SLOTS - SLOTS_A_PIECE, good_slots(&self->c, KVTIER_RESERVE_WAIT));
}

/* Nothing that is bad keeps a tier from being emptied, nor comes back with it. */
TEST_F(poison, detach)
{
	struct kvtier_block_result res[2], filling, done;
	struct kvt_key keys[4];
	__u64 at[2];
	int i;

	ASSERT_LE(0, kvt_tier_dram(&self->pool, 1, 16 * KVT_MIB));
	kvt_client_close(&self->c);
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "poison", BLOCK_BYTES));
	kvt_keys(keys, SET, 0, 4);
	for (i = 0; i < 2; i++) {
		at[i] = kvt_put_leased(&self->c, &keys[i], &res[i]);
		ASSERT_NE(0, at[i]);
	}
	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &keys[2], NULL, 1, &filling, 0));
	ASSERT_EQ(0, kvt_touch_write(kvt_wr(&self->c, filling.offset), 1));
	ASSERT_EQ(0, kvt_bad_make(at[0]));
	/* All fill views have been unmapped: it is there again when it is touched. */
	ASSERT_EQ(0, kvt_touch_write(kvt_wr(&self->c, filling.offset), 1));
	ASSERT_EQ(0, kvt_bad_make(kvt_bad_address(kvt_wr(&self->c, filling.offset))));
	ASSERT_EQ(0, kvt_bad_make(at[0] - res[0].offset + 2 * KVT_PIECE));
	ASSERT_EQ(0, kvt_bad_make(at[1] + BLOCK_BYTES * 3));
	/* A lease on what is lost still counts, as any does. */
	EXPECT_EQ(-EBUSY, kvt_tier_detach(&self->pool, self->dax, 0, 200 * KVT_MSEC));
	for (i = 0; i < 2; i++)
		EXPECT_EQ(1, kvt_release(self->c.fd, &res[i].handle, 1, NULL));
	EXPECT_EQ(0, kvt_commit(self->c.fd, 0, &filling.handle, 1, &done));
	EXPECT_EQ(KVTIER_ST_STALE, done.status);
	ASSERT_EQ(0, kvt_tier_detach(&self->pool, self->dax, 0, 10 * KVT_SEC));
	EXPECT_EQ(1, kvt_check(&self->c, 0, &keys[1], 1, 0));
	EXPECT_EQ(1, kvt_pool_entries(&self->c));
	/* The device is the same as before: bad pages and all. */
	self->dax = kvt_tier_dax(&self->pool, 0, PIECES * KVT_PIECE);
	ASSERT_LE(0, self->dax);
	EXPECT_EQ(2 * KVT_PIECE, kvt_retired(&self->pool, "dax0"));
	EXPECT_EQ(1, kvt_put(&self->c, 0, 0, &keys[3], NULL, 1));
	EXPECT_EQ(1, kvt_check(&self->c, 0, &keys[3], 1, 0));
}

/* --- copies that end with a machine check, in builds that can pretend one ---------------- */

static int put_roots(const struct kvt_client *c, struct kvt_key *keys, int nr)
{
	int i, sum = 0;

	for (i = 0; i < nr; i++)
		sum += kvt_put(c, 0, 0, &keys[i], NULL, 1) == 1;
	return sum;
}

/* With views of all memory that there is by now. */
static int open_anew(const struct kvt_pool *p, struct kvt_client *c)
{
	kvt_client_close(c);
	return kvt_client_open(p, c, "poison", BLOCK_BYTES);
}

/* How many of these are there; -EBADMSG if any is wrong. */
static int check_roots(const struct kvt_client *c, struct kvt_key *keys, int nr)
{
	int i, ret, sum = 0;

	for (i = 0; i < nr; i++) {
		ret = kvt_check(c, 0, &keys[i], 1, 10 * KVT_SEC);
		if (ret < 0)
			return ret;
		sum += ret;
	}
	return sum;
}

/* READ's copy: the block is lost, the caller told, its page not used again. */
TEST_F(poison, machine_check_in_read)
{
	struct kvt_key keys[3];
	char *buf;

	if (kvt_bad_copies(0))
		SKIP(return, "this module cannot pretend machine checks");
	buf = malloc(BLOCK_BYTES);
	ASSERT_NE(NULL, buf);
	kvt_keys(keys, SET, 0, 3);
	ASSERT_EQ(3, put_roots(&self->c, keys, 3));
	/* A user's bad memory is the user's. */
	EXPECT_EQ(KVTIER_ST_FAULT, kvt_read1(self->c.fd, 0, &keys[1], (void *)8, BLOCK_BYTES, 0));
	/* The copy, and the look at why it ended. */
	ASSERT_EQ(0, kvt_bad_copies(2));
	EXPECT_EQ(KVTIER_ST_IOERR, kvt_read1(self->c.fd, 0, &keys[1], buf, BLOCK_BYTES, 0));
	EXPECT_EQ(0, kvt_bad_copies_left());
	EXPECT_EQ(KVTIER_ST_MISS, kvt_read1(self->c.fd, 0, &keys[1], buf, BLOCK_BYTES, 0));
	EXPECT_EQ(2, check_roots(&self->c, keys, 3));
	EXPECT_EQ(BLOCK_BYTES, kvt_retired(&self->pool, "dax0"));
	free(buf);
}

/* A move to other memory, and one to a disk, whose bytes are summed up first. */
TEST_F(poison, machine_check_in_moves)
{
	struct kvtier_tier_op op = { .size = sizeof(op), .timeout_ns = 30 * KVT_SEC };
	struct kvt_key keys[6];
	int dram;

	if (kvt_bad_copies(0))
		SKIP(return, "this module cannot pretend machine checks");
	if (!kvt_env_bdev())
		SKIP(return, "no block device to use (KVT_BDEV)");
	kvt_keys(keys, SET, 0, 6);
	ASSERT_EQ(6, put_roots(&self->c, keys, 6));
	dram = kvt_tier_dram(&self->pool, 1, 16 * KVT_MIB);
	ASSERT_LE(0, dram);
	ASSERT_EQ(0, open_anew(&self->pool, &self->c));
	op.pool_id = self->pool.id;
	op.tier_id = self->dax;
	ASSERT_EQ(0, kvt_bad_copies(1));
	ASSERT_EQ(0, kvt_ioctl(self->pool.ctl, KVTIER_OP_TIER_DRAIN, &op));
	EXPECT_EQ(0, kvt_bad_copies_left());
	EXPECT_EQ(5, check_roots(&self->c, keys, 6));
	ASSERT_LE(0, kvt_tier_bdev(&self->pool, 2, 64 * KVT_MIB));
	op.tier_id = dram;
	ASSERT_EQ(0, kvt_bad_copies(1));
	ASSERT_EQ(0, kvt_ioctl(self->pool.ctl, KVTIER_OP_TIER_DRAIN, &op));
	EXPECT_EQ(0, kvt_bad_copies_left());
	EXPECT_EQ(4, kvt_pool_entries(&self->c));
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, dram, 0, 10 * KVT_SEC));
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, self->dax, 0, 10 * KVT_SEC));
	/* What comes up again comes up where it can be read. */
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, 16 * KVT_MIB));
	ASSERT_EQ(0, open_anew(&self->pool, &self->c));
	ASSERT_EQ(0, kvt_bad_copies(1));
	check_roots(&self->c, keys, 6);
	EXPECT_EQ(0, kvt_bad_copies_left());
	EXPECT_EQ(4, check_roots(&self->c, keys, 6));
}

/* --- memory whose owner is not told: pages of the page allocator ------------------------ */

#define DEAF		"/sys/module/kvtier/parameters/test_deaf"

/* The module hears what the kernel says of bad pages, or does not. -1: always, in this build. */
static int be_deaf(bool deaf)
{
	return kvt_sh("[ -w " DEAF " ] && echo %d > " DEAF, deaf) ? -1 : 0;
}

FIXTURE(unreported)
{
	struct kvt_pool pool;
	struct kvt_client c;
};

FIXTURE_SETUP(unreported)
{
	if (!kvt_bad_can())
		SKIP(return, "this kernel cannot be told that a page is bad");
	if (be_deaf(true))
		SKIP(return, "this module cannot be made deaf to bad pages");
	signal(SIGBUS, SIG_IGN);
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, PIECES * KVT_PIECE));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "watermark_high_percent", "100"));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "reserve_percent", "100"));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "poison", BLOCK_BYTES));
}

FIXTURE_TEARDOWN(unreported)
{
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	EXPECT_EQ(0, be_deaf(false));
}

/* Who comes upon it, by READ, by WRITE, by touching it, retires it. */
TEST_F(unreported, found_later)
{
	char *buf = malloc(BLOCK_BYTES);
	struct kvtier_block_result res;
	struct kvt_key keys[3];
	__u64 at;

	kvt_keys(keys, SET, 0, 3);
	at = kvt_put_leased(&self->c, &keys[0], &res);
	ASSERT_NE(0, at);
	ASSERT_EQ(1, kvt_release(self->c.fd, &res.handle, 1, NULL));
	kvt_bad_make(at + 4096);		/* says that it could do nothing about it */
	EXPECT_EQ(KVTIER_ST_IOERR, kvt_read1(self->c.fd, 0, &keys[0], buf, BLOCK_BYTES, 0));
	EXPECT_EQ(KVTIER_ST_MISS, kvt_read1(self->c.fd, 0, &keys[0], buf, BLOCK_BYTES, 0));
	EXPECT_EQ(BLOCK_BYTES, kvt_retired(&self->pool, "dram0"));
	EXPECT_EQ(0, kvt_pool_entries(&self->c));

	/* In a free slot: now that one is known, others are looked for. */
	at = kvt_put_leased(&self->c, &keys[1], &res);
	ASSERT_NE(0, at);
	ASSERT_EQ(1, kvt_release(self->c.fd, &res.handle, 1, NULL));
	ASSERT_EQ(1, kvt_drop(self->c.fd, 0, &keys[1], 1, NULL));
	kvt_bad_make(at);
	kvt_fill(buf, &keys[2], BLOCK_BYTES);
	EXPECT_EQ(KVTIER_ST_DONE, kvt_write1(self->c.fd, 0, &keys[2], NULL, buf, BLOCK_BYTES,
					     KVT_SEC));
	EXPECT_EQ(2 * BLOCK_BYTES, kvt_retired(&self->pool, "dram0"));
	EXPECT_EQ(SLOTS - 3, good_slots(&self->c, 0));
	free(buf);
}

/* WRITE comes upon the first bad page of all: it takes another slot. */
TEST_F(unreported, write_goes_elsewhere)
{
	char *buf = malloc(BLOCK_BYTES);
	struct kvtier_block_result res;
	struct kvt_key key = kvt_key(SET, 0);
	__u64 at = kvt_put_leased(&self->c, &key, &res);

	ASSERT_NE(0, at);
	ASSERT_EQ(1, kvt_release(self->c.fd, &res.handle, 1, NULL));
	ASSERT_EQ(1, kvt_drop(self->c.fd, 0, &key, 1, NULL));
	kvt_bad_make(at + 4096);
	kvt_fill(buf, &key, BLOCK_BYTES);
	EXPECT_EQ(KVTIER_ST_DONE, kvt_write1(self->c.fd, 0, &key, NULL, buf, BLOCK_BYTES,
					     KVT_SEC));
	EXPECT_EQ(1, kvt_check(&self->c, 0, &key, 1, 0));
	EXPECT_EQ(BLOCK_BYTES, kvt_retired(&self->pool, "dram0"));
	free(buf);
}

/* The filler comes upon it: SIGBUS where it is, and no block of it. */
TEST_F(unreported, filler_goes_elsewhere)
{
	struct kvtier_block_result res, again, done;
	struct kvt_key key = kvt_key(SET, 0);
	__u64 at = kvt_put_leased(&self->c, &key, &res);

	ASSERT_NE(0, at);
	ASSERT_EQ(1, kvt_release(self->c.fd, &res.handle, 1, NULL));
	ASSERT_EQ(1, kvt_drop(self->c.fd, 0, &key, 1, NULL));
	kvt_bad_make(at + 4096);
	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &key, NULL, 1, &again, 0));
	EXPECT_EQ(SIGBUS, kvt_touch_write((char *)kvt_wr(&self->c, again.offset) + 4096, 1));
	EXPECT_EQ(0, kvt_commit(self->c.fd, 0, &again.handle, 1, &done));
	EXPECT_EQ(KVTIER_ST_STALE, done.status);
	EXPECT_EQ(1, kvt_put(&self->c, 0, 0, &key, NULL, 1));
	EXPECT_EQ(1, kvt_check(&self->c, 0, &key, 1, 0));
	EXPECT_EQ(BLOCK_BYTES, kvt_retired(&self->pool, "dram0"));
}

/* --- memory of the page allocator, of which the kernel says what it has found ------------- */

#define HEARD_FROM	48	/* pages at once: fewer than are remembered, then more */
#define HEARD_TO	96

FIXTURE(heard)
{
	struct kvt_pool pool;
	struct kvt_client c;
};

FIXTURE_VARIANT(heard)
{
	bool charge;
};

FIXTURE_VARIANT_ADD(heard, dram) { .charge = false };
FIXTURE_VARIANT_ADD(heard, charged) { .charge = true };

FIXTURE_SETUP(heard)
{
	struct kvtier_tier_attach a;

	if (!kvt_bad_can())
		SKIP(return, "this kernel cannot be told that a page is bad");
	signal(SIGBUS, SIG_IGN);
	ASSERT_EQ(0, kvt_setup(&self->pool));
	kvt_tier_args(&self->pool, &a, KVTIER_TIER_DRAM, 0);
	a.capacity_bytes = PIECES * KVT_PIECE;
	a.flags = variant->charge ? KVTIER_ATTACH_CHARGE : 0;
	ASSERT_EQ(0, kvt_ioctl(self->pool.ctl, KVTIER_OP_TIER_ATTACH, &a));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "watermark_high_percent", "100"));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "reserve_percent", "100"));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "poison", BLOCK_BYTES));
}

FIXTURE_TEARDOWN(heard)
{
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

/* Nobody touches the block: it goes all the same, and from under who has it mapped. */
TEST_F(heard, one_page)
{
	struct kvtier_block_result res[2];
	struct kvt_key keys[2];
	__u64 at;

	kvt_keys(keys, SET, 0, 2);
	at = kvt_put_leased(&self->c, &keys[0], &res[0]);
	ASSERT_NE(0, at);
	ASSERT_NE(0, kvt_put_leased(&self->c, &keys[1], &res[1]));
	ASSERT_EQ(0, kvt_touch_read((char *)kvt_rd(&self->c, res[0].offset) + 4096));
	kvt_bad_make(at + 4096);		/* says that it could do nothing about it */
	EXPECT_TRUE(KVT_UNTIL(10000, kvt_lookup(self->c.fd, 0, &keys[0], 1, NULL) == 0));
	/* A moment after it is a miss. */
	EXPECT_TRUE(KVT_UNTIL(5000, kvt_touch_read((char *)kvt_rd(&self->c, res[0].offset) + 4096) ==
			      SIGBUS));
	EXPECT_EQ(1, kvt_bytes_probe(kvt_rd(&self->c, res[1].offset), &keys[1], BLOCK_BYTES));
	EXPECT_EQ(1, kvt_release(self->c.fd, &res[0].handle, 1, NULL));
	EXPECT_EQ(1, kvt_release(self->c.fd, &res[1].handle, 1, NULL));
	EXPECT_TRUE(KVT_UNTIL(5000, kvt_retired(&self->pool, "dram0") == BLOCK_BYTES));
	EXPECT_EQ(1, kvt_check(&self->c, 0, &keys[1], 1, 0));
	/* What was only lent to the tier goes, and nothing is bad any more. */
	ASSERT_EQ(1, kvt_drop(self->c.fd, 0, &keys[1], 1, NULL));
	if (variant->charge)
		EXPECT_TRUE(KVT_UNTIL(20000, !kvt_sh("echo 2 > /proc/sys/vm/drop_caches") &&
				      kvt_retired(&self->pool, "dram0") == 0));
}

/* Many at a time, each on a block of its own: all those blocks go, and no others. */
TEST_F(heard, many_pages)
{
	static struct kvtier_block_result res[HEARD_TO + 1];
	static struct kvt_key keys[HEARD_TO + 1];
	static __u64 at[HEARD_TO];
	int i, n = kvt_env_long() ? HEARD_TO : HEARD_FROM;

	kvt_keys(keys, SET, 0, n + 1);
	for (i = 0; i < n; i++) {
		at[i] = kvt_put_leased(&self->c, &keys[i], &res[i]);
		ASSERT_NE(0, at[i]);
		ASSERT_EQ(1, kvt_release(self->c.fd, &res[i].handle, 1, NULL));
	}
	ASSERT_EQ(1, kvt_put(&self->c, 0, 0, &keys[n], NULL, 1));
	for (i = 0; i < n; i++)
		kvt_bad_make(at[i]);
	EXPECT_TRUE(KVT_UNTIL(20000, kvt_pool_entries(&self->c) == 1));
	EXPECT_EQ(1, kvt_check(&self->c, 0, &keys[n], 1, 0));
	EXPECT_TRUE(KVT_UNTIL(5000, kvt_retired(&self->pool, "dram0") ==
				    (long long)(n * BLOCK_BYTES)));
}

TEST_HARNESS_MAIN
