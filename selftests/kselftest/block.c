// SPDX-License-Identifier: GPL-2.0
/*
 * The life of a block: reserve, fill, commit, lease, read, release, drop; by
 * mapping and by copy; in every size; and what becomes of handles.
 */
#include "kvt_test.h"

#define BLOCK_BYTES	(64 * KVT_KIB)
#define SET		4

FIXTURE(block)
{
	struct kvt_pool pool;
	struct kvt_client c;
};

FIXTURE_SETUP(block)
{
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, 32 * KVT_MIB));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "block", BLOCK_BYTES));
}

FIXTURE_TEARDOWN(block)
{
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

TEST_F(block, fill_commit_get_read)
{
	struct kvtier_block_result res, done;
	struct kvt_key key = kvt_key(SET, 0);
	struct kvtier_lookup_result look;
	__s32 gone;

	EXPECT_EQ(0, kvt_lookup(self->c.fd, 0, &key, 1, &look));
	EXPECT_EQ(KVTIER_ST_MISS, look.status);
	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &key, NULL, 1, &res, 0));
	EXPECT_EQ(KVTIER_ST_RESERVED, res.status);
	EXPECT_NE(0, res.handle);
	EXPECT_EQ(0, kvt_lookup(self->c.fd, 0, &key, 1, &look));
	EXPECT_EQ(KVTIER_ST_FILLING, look.status);
	kvt_fill(kvt_wr(&self->c, res.offset), &key, BLOCK_BYTES);
	ASSERT_EQ(1, kvt_commit(self->c.fd, 0, &res.handle, 1, &done));
	EXPECT_EQ(KVTIER_ST_DONE, done.status);
	EXPECT_EQ(1, kvt_lookup(self->c.fd, 0, &key, 1, &look));
	EXPECT_EQ(KVTIER_ST_HIT, look.status);
	EXPECT_EQ(0, look.cost_ns);
	ASSERT_EQ(1, kvt_get(self->c.fd, 0, 0, &key, 1, &res, 0));
	EXPECT_EQ(KVTIER_ST_HIT, res.status);
	EXPECT_TRUE(kvt_bytes_ok(kvt_rd(&self->c, res.offset), &key, BLOCK_BYTES));
	EXPECT_EQ(1, kvt_release(self->c.fd, &res.handle, 1, &gone));
	EXPECT_EQ(KVTIER_ST_DONE, gone);
}

TEST_F(block, commit_keeps_a_lease)
{
	struct kvtier_block_result res, done;
	struct kvt_key key = kvt_key(SET, 0);
	struct kvtier_stat st;

	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &key, NULL, 1, &res, 0));
	kvt_fill(kvt_wr(&self->c, res.offset), &key, BLOCK_BYTES);
	ASSERT_EQ(1, kvt_commit(self->c.fd, KVTIER_COMMIT_LEASE, &res.handle, 1, &done));
	EXPECT_EQ(KVTIER_ST_HIT, done.status);
	EXPECT_TRUE(kvt_bytes_ok(kvt_rd(&self->c, done.offset), &key, BLOCK_BYTES));
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(1, st.leases);
	EXPECT_EQ(1, kvt_release(self->c.fd, &done.handle, 1, NULL));
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(0, st.leases);
}

#define HANDLES		"/sys/module/kvtier/parameters/test_handles"

/* New tables of handles are as if each record had been through so many. -1: not in this build. */
static int had_handles(__u32 nr)
{
	return kvt_sh("[ -w " HANDLES " ] && echo %u > " HANDLES, nr) ? -1 : 0;
}

/* A record of handles that has had all there are is not used again: each would be valid once more. */
TEST_F(block, handles_at_the_wrap)
{
	struct kvtier_block_result res;
	struct kvt_key key = kvt_key(SET, 0);
	__u64 had[8];
	int i, k;

	if (had_handles(~0u - 3))
		SKIP(return, "this module's handles are always new");
	ASSERT_EQ(1, kvt_put(&self->c, 0, 0, &key, NULL, 1));
	kvt_client_close(&self->c);
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "block", BLOCK_BYTES));
	for (i = 0; i < 8; i++) {
		ASSERT_EQ(1, kvt_get(self->c.fd, 0, 0, &key, 1, &res, 0));
		had[i] = res.handle;
		/* Of one record, later is more. */
		for (k = 0; k < i; k++)
			EXPECT_TRUE((__u32)had[k] != (__u32)had[i] || had[k] < had[i])
				TH_LOG("%#llx, then %#llx", had[k], had[i]);
		EXPECT_EQ(1, kvt_release(self->c.fd, &had[i], 1, NULL));
	}
	EXPECT_EQ(0, had_handles(0));
	EXPECT_NE((__u32)had[0], (__u32)had[7]);
	EXPECT_EQ(0, kvt_release(self->c.fd, had, 8, NULL));
}

TEST_F(block, copy_forms)
{
	struct kvt_key keys[2];
	char *buf = malloc(2 * BLOCK_BYTES);

	kvt_keys(keys, SET, 0, 2);
	kvt_fill(buf, &keys[0], BLOCK_BYTES);
	EXPECT_EQ(KVTIER_ST_DONE,
		  kvt_write1(self->c.fd, 0, &keys[0], NULL, buf, BLOCK_BYTES, KVT_SEC));
	EXPECT_EQ(KVTIER_ST_EXISTS,
		  kvt_write1(self->c.fd, 0, &keys[0], NULL, buf, BLOCK_BYTES, KVT_SEC));
	/* What was stored by mapping is read by copy, and the reverse. */
	ASSERT_EQ(1, kvt_put(&self->c, 0, 0, &keys[1], &keys[0], 1));
	memset(buf, 0, 2 * BLOCK_BYTES);
	EXPECT_EQ(KVTIER_ST_HIT, kvt_read1(self->c.fd, 0, &keys[1], buf, 2 * BLOCK_BYTES, 0));
	EXPECT_TRUE(kvt_bytes_ok(buf, &keys[1], BLOCK_BYTES));
	EXPECT_EQ(0, buf[BLOCK_BYTES]);
	EXPECT_EQ(2, kvt_check(&self->c, 0, keys, 2, 0));
	free(buf);
}

/* Buffers that cannot be accessed cost their entry, not the call. */
TEST_F(block, copy_faults)
{
	struct kvtier_block_result res;
	struct kvt_key key = kvt_key(SET, 0);
	char *ro = mmap(NULL, BLOCK_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT_EQ(KVTIER_ST_FAULT,
		  kvt_write1(self->c.fd, 0, &key, NULL, (void *)8, BLOCK_BYTES, 0));
	EXPECT_EQ(0, kvt_lookup(self->c.fd, 0, &key, 1, NULL));
	/* The key is free again at once. */
	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &key, NULL, 1, &res, 0));
	EXPECT_EQ(1, kvt_abort(self->c.fd, &res.handle, 1, NULL));
	ASSERT_EQ(1, kvt_put(&self->c, 0, 0, &key, NULL, 1));
	EXPECT_EQ(KVTIER_ST_FAULT, kvt_read1(self->c.fd, 0, &key, ro, BLOCK_BYTES, 0));
	EXPECT_EQ(KVTIER_ST_FAULT, kvt_read1(self->c.fd, 0, &key, (void *)8, BLOCK_BYTES, 0));
	munmap(ro, BLOCK_BYTES);
}

TEST_F(block, get_prefix)
{
	struct kvtier_lookup_result look[6];
	struct kvtier_block_result res[6];
	struct kvt_key keys[6], ask[6];
	struct kvtier_stat st;
	int i;

	kvt_keys(keys, SET, 0, 6);
	ASSERT_EQ(6, kvt_put(&self->c, 0, 0, keys, NULL, 6));
	memcpy(ask, keys, sizeof(ask));
	ask[3] = kvt_key(SET, 77);
	EXPECT_EQ(3, kvt_lookup(self->c.fd, 0, ask, 6, look));
	for (i = 0; i < 6; i++)
		EXPECT_EQ(i == 3 ? KVTIER_ST_MISS : KVTIER_ST_HIT, look[i].status);
	EXPECT_EQ(3, kvt_get(self->c.fd, 0, 0, ask, 6, res, 0));
	for (i = 0; i < 6; i++) {
		EXPECT_EQ(i < 3, res[i].status == KVTIER_ST_HIT) TH_LOG("entry %d", i);
		EXPECT_EQ(i < 3, res[i].handle != 0) TH_LOG("entry %d", i);
	}
	EXPECT_EQ(KVTIER_ST_MISS, res[3].status);
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(3, st.leases);
	EXPECT_EQ(3, st.hits);
	EXPECT_EQ(1, st.misses);
	EXPECT_EQ(2, st.unreached);
}

TEST_F(block, read_prefix)
{
	struct kvtier_buf bufs[3];
	struct kvt_key keys[3];
	__s32 status[3];
	struct kvtier_copy a = {
		.size = sizeof(a), .nr = 3, .keys = KVT_U64(keys), .bufs = KVT_U64(bufs),
		.results = KVT_U64(status),
	};
	char *buf = calloc(3, BLOCK_BYTES);
	int i;

	kvt_keys(keys, SET, 0, 3);
	ASSERT_EQ(1, kvt_put(&self->c, 0, 0, &keys[0], NULL, 1));
	ASSERT_EQ(1, kvt_put(&self->c, 0, 0, &keys[2], NULL, 1));
	for (i = 0; i < 3; i++) {
		bufs[i].addr = KVT_U64(buf + i * BLOCK_BYTES);
		bufs[i].bytes = BLOCK_BYTES;
	}
	ASSERT_EQ(0, kvt_ioctl(self->c.fd, KVTIER_OP_READ, &a));
	EXPECT_EQ(1, a.nr_done);
	EXPECT_EQ(KVTIER_ST_HIT, status[0]);
	EXPECT_EQ(KVTIER_ST_MISS, status[1]);
	EXPECT_NE(KVTIER_ST_HIT, status[2]);
	EXPECT_TRUE(kvt_bytes_ok(buf, &keys[0], BLOCK_BYTES));
	EXPECT_EQ(0, buf[BLOCK_BYTES]);
	free(buf);
}

TEST_F(block, abort)
{
	struct kvtier_block_result res, again, done;
	struct kvt_key key = kvt_key(SET, 0);
	struct kvtier_stat st;
	__s32 gone;

	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &key, NULL, 1, &res, 0));
	kvt_fill(kvt_wr(&self->c, res.offset), &key, BLOCK_BYTES);
	EXPECT_EQ(1, kvt_abort(self->c.fd, &res.handle, 1, &gone));
	EXPECT_EQ(KVTIER_ST_DONE, gone);
	EXPECT_EQ(0, kvt_lookup(self->c.fd, 0, &key, 1, NULL));
	EXPECT_EQ(0, kvt_commit(self->c.fd, 0, &res.handle, 1, &done));
	EXPECT_EQ(KVTIER_ST_STALE, done.status);
	EXPECT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &key, NULL, 1, &again, 0));
	EXPECT_NE(res.handle, again.handle);
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(1, st.aborts);
	EXPECT_EQ(0, st.puts);
}

TEST_F(block, handles_are_of_one_kind_and_used_once)
{
	struct kvtier_block_result fill, lease, done;
	struct kvt_key keys[2];
	__s32 gone;

	kvt_keys(keys, SET, 0, 2);
	ASSERT_EQ(1, kvt_put(&self->c, 0, 0, &keys[0], NULL, 1));
	ASSERT_EQ(1, kvt_get(self->c.fd, 0, 0, &keys[0], 1, &lease, 0));
	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &keys[1], &keys[0], 1, &fill, 0));

	EXPECT_EQ(0, kvt_commit(self->c.fd, 0, &lease.handle, 1, &done));
	EXPECT_EQ(KVTIER_ST_STALE, done.status);
	EXPECT_EQ(0, kvt_abort(self->c.fd, &lease.handle, 1, &gone));
	EXPECT_EQ(KVTIER_ST_STALE, gone);
	EXPECT_EQ(0, kvt_release(self->c.fd, &fill.handle, 1, &gone));
	EXPECT_EQ(KVTIER_ST_STALE, gone);

	kvt_fill(kvt_wr(&self->c, fill.offset), &keys[1], BLOCK_BYTES);
	EXPECT_EQ(1, kvt_commit(self->c.fd, 0, &fill.handle, 1, &done));
	EXPECT_EQ(0, kvt_commit(self->c.fd, 0, &fill.handle, 1, &done));
	EXPECT_EQ(KVTIER_ST_STALE, done.status);
	EXPECT_EQ(1, kvt_release(self->c.fd, &lease.handle, 1, &gone));
	EXPECT_EQ(0, kvt_release(self->c.fd, &lease.handle, 1, &gone));
	EXPECT_EQ(KVTIER_ST_STALE, gone);
	EXPECT_EQ(2, kvt_check(&self->c, 0, keys, 2, 0));
}

/* The same handle twice in one call counts once. */
TEST_F(block, handle_twice_in_a_call)
{
	struct kvtier_block_result res, done[2];
	struct kvt_key key = kvt_key(SET, 0);
	__s32 gone[2];
	__u64 twice[2];

	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &key, NULL, 1, &res, 0));
	kvt_fill(kvt_wr(&self->c, res.offset), &key, BLOCK_BYTES);
	twice[0] = twice[1] = res.handle;
	EXPECT_EQ(1, kvt_commit(self->c.fd, 0, twice, 2, done));
	EXPECT_EQ(KVTIER_ST_DONE, done[0].status);
	EXPECT_EQ(KVTIER_ST_STALE, done[1].status);
	ASSERT_EQ(1, kvt_get(self->c.fd, 0, 0, &key, 1, &res, 0));
	twice[0] = twice[1] = res.handle;
	EXPECT_EQ(1, kvt_release(self->c.fd, twice, 2, gone));
	EXPECT_EQ(KVTIER_ST_DONE, gone[0]);
	EXPECT_EQ(KVTIER_ST_STALE, gone[1]);
}

#define MANY	64

/* Of handles that cannot all be read none is acted on. */
TEST_F(block, handles_beyond_memory)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	__u64 *beyond = (__u64 *)(page + 4096) - MANY + 1, handles[MANY];
	struct kvtier_block_result res[MANY], done[MANY];
	struct kvt_key keys[MANY];
	struct kvtier_stat st;
	__s32 gone[MANY];
	int i;

	ASSERT_NE(MAP_FAILED, page);
	ASSERT_EQ(0, munmap(page + 4096, 4096));
	kvt_keys(keys, SET, 0, MANY);
	ASSERT_EQ(MANY, kvt_reserve(self->c.fd, 0, 0, keys, NULL, MANY, res, 0));
	for (i = 0; i < MANY; i++) {
		kvt_fill(kvt_wr(&self->c, res[i].offset), &keys[i], BLOCK_BYTES);
		handles[i] = res[i].handle;
	}
	memcpy(beyond, handles, (MANY - 1) * sizeof(*handles));
	EXPECT_EQ(-EFAULT, kvt_abort(self->c.fd, beyond, MANY, gone));
	EXPECT_EQ(-EFAULT, kvt_commit(self->c.fd, KVTIER_COMMIT_LEASE, beyond, MANY, done));
	ASSERT_EQ(MANY, kvt_commit(self->c.fd, KVTIER_COMMIT_LEASE, handles, MANY, done));
	for (i = 0; i < MANY; i++)
		handles[i] = done[i].handle;
	memcpy(beyond, handles, (MANY - 1) * sizeof(*handles));
	EXPECT_EQ(-EFAULT, kvt_release(self->c.fd, beyond, MANY, gone));
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(MANY, (int)st.leases);
	EXPECT_EQ(MANY, kvt_release(self->c.fd, handles, MANY, gone));
	munmap(page, 4096);
}

/* Handles of one open file mean nothing on another, of the same namespace too. */
TEST_F(block, handles_stay_with_their_file)
{
	struct kvtier_block_result fill, lease, done;
	struct kvt_key keys[2];
	struct kvtier_stat st;
	struct kvt_client c;
	__s32 gone;

	kvt_keys(keys, SET, 0, 2);
	ASSERT_EQ(0, kvt_client_open(&self->pool, &c, "block", BLOCK_BYTES));
	ASSERT_EQ(1, kvt_put(&self->c, 0, 0, &keys[0], NULL, 1));
	ASSERT_EQ(1, kvt_get(self->c.fd, 0, 0, &keys[0], 1, &lease, 0));
	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &keys[1], NULL, 1, &fill, 0));
	EXPECT_EQ(0, kvt_release(c.fd, &lease.handle, 1, &gone));
	EXPECT_EQ(KVTIER_ST_STALE, gone);
	EXPECT_EQ(0, kvt_abort(c.fd, &fill.handle, 1, &gone));
	EXPECT_EQ(KVTIER_ST_STALE, gone);
	EXPECT_EQ(0, kvt_commit(c.fd, 0, &fill.handle, 1, &done));
	EXPECT_EQ(KVTIER_ST_STALE, done.status);
	ASSERT_EQ(0, kvt_stat(c.fd, 0, &st));
	EXPECT_EQ(1, st.leases);
	kvt_client_close(&c);
}

/* A key twice in one call is one block: the second is somebody's, so it is filling. */
TEST_F(block, key_twice_in_a_call)
{
	struct kvtier_block_result res[2];
	struct kvt_key keys[2], roots[2] = { 0 };

	keys[0] = keys[1] = kvt_key(SET, 0);
	EXPECT_EQ(1, kvt_reserve(self->c.fd, KVTIER_RESERVE_PARENTS | KVTIER_RESERVE_WAIT, 0, keys,
				 roots, 2, res, 200 * KVT_MSEC));
	EXPECT_EQ(KVTIER_ST_RESERVED, res[0].status);
	EXPECT_EQ(KVTIER_ST_FILLING, res[1].status);
	EXPECT_EQ(0, res[1].handle);
}

TEST_F(block, lease_limit)
{
	struct kvtier_block_result *res;
	struct kvtier_query q;
	struct kvtier_stat st;
	struct kvt_key *keys;
	__u64 held = 0;
	int i, ret = 0;

	res = calloc(KVTIER_BATCH_MAX, sizeof(*res));
	keys = calloc(KVTIER_BATCH_MAX, sizeof(*keys));
	for (i = 0; i < KVTIER_BATCH_MAX; i++)
		keys[i] = kvt_key(SET, 0);
	ASSERT_EQ(1, kvt_put(&self->c, 0, 0, keys, NULL, 1));
	ASSERT_LE(0, kvt_query(self->c.fd, &q, NULL));
	while (held <= q.leases_max) {
		ret = kvt_get(self->c.fd, 0, 0, keys, KVTIER_BATCH_MAX, res, 0);
		if (ret < KVTIER_BATCH_MAX)
			break;
		held += ret;
	}
	/* Refused as a whole, or the entry that was one too many. */
	EXPECT_TRUE(ret == -ENOSPC || (ret >= 0 && res[ret].status == KVTIER_ST_LIMIT));
	held += ret > 0 ? ret : 0;
	EXPECT_GE(q.leases_max, held);
	EXPECT_LT(q.leases_max - 2 * KVTIER_BATCH_MAX, held);
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(held, st.leases);
	/* Another file has leases of its own, and these go with their file. */
	kvt_client_close(&self->c);
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "block", BLOCK_BYTES));
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(0, st.leases);
	EXPECT_EQ(1, kvt_check(&self->c, 0, keys, 1, 0));
	free(keys);
	free(res);
}

/* A descriptor passed on or inherited is the same open file: leases stay with it. */
TEST_F(block, duplicates_share_leases)
{
	struct kvtier_block_result res;
	struct kvt_key key = kvt_key(SET, 0);
	struct kvtier_stat st;
	struct kvt_client c;
	int copy;

	ASSERT_EQ(0, kvt_client_open(&self->pool, &c, "block", BLOCK_BYTES));
	ASSERT_EQ(1, kvt_put(&c, 0, 0, &key, NULL, 1));
	ASSERT_EQ(1, kvt_get(c.fd, 0, 0, &key, 1, &res, 0));
	copy = dup(c.fd);
	kvt_client_close(&c);
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(1, st.leases);
	EXPECT_EQ(1, kvt_release(copy, &res.handle, 1, NULL));
	close(copy);
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(0, st.leases);
}

/* A mapping alone keeps the file, and so its leases. */
TEST_F(block, mappings_hold_leases)
{
	struct kvtier_block_result res;
	struct kvt_key key = kvt_key(SET, 0);
	struct kvtier_stat st;
	struct kvt_client c;

	ASSERT_EQ(0, kvt_client_open(&self->pool, &c, "block", BLOCK_BYTES));
	ASSERT_EQ(1, kvt_put(&c, 0, 0, &key, NULL, 1));
	ASSERT_EQ(1, kvt_get(c.fd, 0, 0, &key, 1, &res, 0));
	close(c.fd);
	c.fd = -1;
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(1, st.leases);
	EXPECT_TRUE(kvt_bytes_ok(kvt_rd(&c, res.offset), &key, BLOCK_BYTES));
	kvt_client_close(&c);
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(0, st.leases);
}

TEST_F(block, dropped_while_leased)
{
	struct kvtier_block_result res;
	struct kvt_key key = kvt_key(SET, 0);
	struct kvtier_stat st;
	__s32 gone;

	ASSERT_EQ(1, kvt_put(&self->c, 0, 0, &key, NULL, 1));
	ASSERT_EQ(1, kvt_get(self->c.fd, 0, 0, &key, 1, &res, 0));
	EXPECT_EQ(1, kvt_drop(self->c.fd, 0, &key, 1, &gone));
	EXPECT_EQ(KVTIER_ST_DONE, gone);
	EXPECT_EQ(0, kvt_lookup(self->c.fd, 0, &key, 1, NULL));
	EXPECT_TRUE(kvt_bytes_ok(kvt_rd(&self->c, res.offset), &key, BLOCK_BYTES));
	/* The name can be used anew, by other bytes, while the old ones are leased. */
	EXPECT_EQ(1, kvt_put(&self->c, 0, 0, &key, NULL, 1));
	EXPECT_TRUE(kvt_bytes_ok(kvt_rd(&self->c, res.offset), &key, BLOCK_BYTES));
	EXPECT_EQ(1, kvt_release(self->c.fd, &res.handle, 1, NULL));
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(1, st.nr_blocks);
	EXPECT_EQ(1, st.drops);
}

TEST_F(block, advise)
{
	struct kvt_key keys[2];
	__s32 res[2];
	__u32 advice;

	kvt_keys(keys, SET, 0, 2);
	ASSERT_EQ(1, kvt_put(&self->c, 0, 0, keys, NULL, 1));
	for (advice = KVTIER_ADV_COLD; advice <= KVTIER_ADV_UNPIN; advice++) {
		EXPECT_EQ(1, kvt_advise(self->c.fd, 0, keys, 2, advice, 0, res));
		EXPECT_EQ(KVTIER_ST_DONE, res[0]);
		EXPECT_EQ(KVTIER_ST_MISS, res[1]);
		EXPECT_EQ(1, kvt_check(&self->c, 0, keys, 1, 0));
	}
}

TEST_F(block, time_to_live)
{
	struct kvt_key keys[2];
	__u64 start;
	__s32 res;

	kvt_keys(keys, SET, 0, 2);
	ASSERT_EQ(1, kvt_put(&self->c, 0, 0, &keys[0], NULL, 1));
	/* A life that was taken back, in time. */
	EXPECT_TRUE(KVT_UNTIL(10000,
		kvt_put(&self->c, KVTIER_RESERVE_WAIT, 0, &keys[1], NULL, 1) == 1 &&
		kvt_advise(self->c.fd, 0, keys + 1, 1, KVTIER_ADV_TTL, KVT_SEC, &res) == 1 &&
		kvt_advise(self->c.fd, 0, keys + 1, 1, KVTIER_ADV_TTL, 0, &res) == 1));
	start = kvt_now_ns();
	EXPECT_EQ(1, kvt_advise(self->c.fd, 0, keys, 1, KVTIER_ADV_TTL, 1, &res));
	EXPECT_TRUE(KVT_UNTIL(6000, kvt_check(&self->c, 0, keys, 1, 0) == 0));
	/* A second is the least there is, whenever in a second it began. */
	EXPECT_LE(KVT_SEC, kvt_now_ns() - start);
	EXPECT_EQ(0, kvt_lookup(self->c.fd, 0, keys, 1, NULL));
	EXPECT_EQ(1, kvt_check(&self->c, 0, keys + 1, 1, 0));
	/* What has expired can be stored anew. */
	EXPECT_EQ(1, kvt_put(&self->c, KVTIER_RESERVE_WAIT, 0, keys, NULL, 1));
	EXPECT_EQ(1, kvt_check(&self->c, 0, keys, 1, 0));
}

FIXTURE(sizes)
{
	struct kvt_pool pool;
};

FIXTURE_VARIANT(sizes)
{
	__u64 block_bytes;
};

FIXTURE_VARIANT_ADD(sizes, one) { .block_bytes = 1 };
FIXTURE_VARIANT_ADD(sizes, page_less_one) { .block_bytes = 4095 };
FIXTURE_VARIANT_ADD(sizes, page_and_one) { .block_bytes = 4097 };
FIXTURE_VARIANT_ADD(sizes, kib_10_25) { .block_bytes = 10496 };
FIXTURE_VARIANT_ADD(sizes, kib_18) { .block_bytes = 18 * KVT_KIB };
FIXTURE_VARIANT_ADD(sizes, kib_640) { .block_bytes = 640 * KVT_KIB };
FIXTURE_VARIANT_ADD(sizes, kib_1008) { .block_bytes = 1008 * KVT_KIB };
FIXTURE_VARIANT_ADD(sizes, mib_1_07) { .block_bytes = 1124352 };
FIXTURE_VARIANT_ADD(sizes, mib_2) { .block_bytes = 2 * KVT_MIB };
FIXTURE_VARIANT_ADD(sizes, mib_2_25) { .block_bytes = 2304 * KVT_KIB };
FIXTURE_VARIANT_ADD(sizes, mib_5_and_one) { .block_bytes = 5 * KVT_MIB + 1 };

FIXTURE_SETUP(sizes)
{
	ASSERT_EQ(0, kvt_setup(&self->pool));
}

FIXTURE_TEARDOWN(sizes)
{
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

TEST_F(sizes, exact)
{
	__u64 slot = (variant->block_bytes + KVTIER_SLOT_ALIGN - 1) / KVTIER_SLOT_ALIGN *
		     KVTIER_SLOT_ALIGN;
	__u64 want = 2 * KVT_MIB / slot, nr = want < 2 ? 2 : want > 64 ? 64 : want;
	struct kvtier_block_result res[2];
	struct kvt_key keys[64];
	struct kvtier_stat st;
	struct kvt_client c;

	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, 24 * KVT_MIB));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &c, "sizes", variant->block_bytes));
	kvt_keys(keys, SET, 0, nr);
	ASSERT_EQ(nr, kvt_put(&c, 0, 0, keys, NULL, nr));
	EXPECT_EQ(nr, kvt_check(&c, 0, keys, nr, 0));
	ASSERT_EQ(0, kvt_stat(c.fd, 0, &st));
	EXPECT_EQ(nr, st.nr_blocks);
	EXPECT_EQ(nr * slot, st.used_bytes);
	ASSERT_EQ(2, kvt_get(c.fd, 0, 0, keys, 2, res, 0));
	EXPECT_EQ(0, res[0].offset % KVTIER_SLOT_ALIGN);
	EXPECT_LE(slot, res[0].offset > res[1].offset ? res[0].offset - res[1].offset :
							res[1].offset - res[0].offset);
	kvt_client_close(&c);
}

/* Slots that can be reserved at once. */
static __u32 reserve_all(const struct kvt_client *c, __u32 want)
{
	struct kvtier_block_result *res = calloc(KVTIER_BATCH_MAX, sizeof(*res));
	struct kvt_key *keys = calloc(KVTIER_BATCH_MAX, sizeof(*keys));
	__u32 got = 0, n;
	int ret;

	do {
		n = want - got < KVTIER_BATCH_MAX ? want - got : KVTIER_BATCH_MAX;
		kvt_keys(keys, SET, 1000 + got, n);
		ret = kvt_reserve(c->fd, 0, 0, keys, NULL, n, res, 0);
		got += ret > 0 ? ret : 0;
	} while (got < want && ret == (int)n);
	free(keys);
	free(res);
	return got;
}

/* What memory holds is close to what it could: a slot is no power of two. */
TEST_F(sizes, little_waste)
{
	__u64 slot = (variant->block_bytes + KVTIER_SLOT_ALIGN - 1) / KVTIER_SLOT_ALIGN *
		     KVTIER_SLOT_ALIGN;
	__u32 want = 64 * KVT_MIB / slot, got;
	struct kvt_client c;

	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, 64 * KVT_MIB));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &c, "waste", variant->block_bytes));
	/* Not even a sixteenth is left to others. */
	ASSERT_EQ(0, kvt_ns_set(&self->pool, &c, "fixed_limit_bytes", "67108864"));
	got = reserve_all(&c, want);
	/* In a tier of 64 MiB the rest of the last region counts, too. */
	EXPECT_LE(want * 90 / 100, got) TH_LOG("%u of %u slots", got, want);
	EXPECT_GE(want, got);
	kvt_client_close(&c);
}

/* --- the largest there are -------------------------------------------------------------- */

#define LARGEST		KVTIER_BLOCK_BYTES_MAX
#define LARGEST_SEGMENT	(LARGEST + 4 * KVT_MIB)
#define LARGEST_MEMORY	(LARGEST + 48 * KVT_MIB)

FIXTURE(largest)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvt_disk disk;
	int memory;
	int tier;
};

/*
 * Memory for one of them: a namespace may keep 15/16 of it in place. And a disk of as few
 * segments as there may be.
 */
FIXTURE_SETUP(largest)
{
	struct kvtier_tier_attach a;

	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_EQ(0, kvt_disk_make(&self->disk, "largest", 6 * LARGEST_SEGMENT + 16 * KVT_MIB));
	self->memory = kvt_tier_dram(&self->pool, 0, LARGEST_MEMORY);
	ASSERT_LE(0, self->memory);
	kvt_tier_args(&self->pool, &a, KVTIER_TIER_BDEV, 1);
	a.segment_bytes = LARGEST_SEGMENT;
	strcpy(a.path, self->disk.dev);
	ASSERT_EQ(0, kvt_ioctl(self->pool.ctl, KVTIER_OP_TIER_ATTACH, &a));
	self->tier = a.tier_id;
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "largest", LARGEST));
}

FIXTURE_TEARDOWN(largest)
{
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	kvt_disk_remove(&self->disk);
}

TEST_F_TIMEOUT(largest, down_and_up, 900)
{
	struct kvt_key key = kvt_key(SET, 0);
	struct kvtier_lookup_result look;
	struct kvtier_stat st;

	ASSERT_EQ(1, kvt_put(&self->c, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1));
	ASSERT_EQ(1, kvt_check(&self->c, 0, &key, 1, 0));
	/* Without memory it has to go down. */
	ASSERT_EQ(0, kvt_tier_detach(&self->pool, self->memory, 0, 120 * KVT_SEC));
	ASSERT_EQ(1, kvt_lookup(self->c.fd, 0, &key, 1, &look));
	EXPECT_EQ(self->tier, look.tier);
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, LARGEST_MEMORY));
	ASSERT_EQ(1, kvt_check(&self->c, 0, &key, 1, 120 * KVT_SEC));
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(1, st.nr_blocks);
	EXPECT_EQ(LARGEST, st.used_bytes);
	EXPECT_EQ(1, st.demotions);
	EXPECT_EQ(1, st.promotions);
	EXPECT_EQ(0, st.evictions);
	EXPECT_EQ(0, kvt_tier_errors(self->c.fd, self->tier));
}

TEST_HARNESS_MAIN
