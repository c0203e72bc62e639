// SPDX-License-Identifier: GPL-2.0
/*
 * Arenas: memory that stays writable to one file, so that a device's registration
 * of it is made once. Claiming, limits, carrying blocks, and what becomes of it when
 * the file goes and the registration does not.
 */
#include "kvt_test.h"
#include <liburing.h>
#include <pthread.h>

#define BLOCK_BYTES	4096
#define TIER_BYTES	(16 * KVT_MIB)
#define MIN_BYTES	(4 * KVT_MIB)
#define SLOTS		256
#define BATCH		64
#define SET		12

FIXTURE(arena)
{
	struct kvt_pool pool;
	struct kvtier_group group[2];
	struct kvt_client c;
	struct kvt_client reader;
};

static int open_client(const struct kvt_pool *p, struct kvt_client *c,
		       struct kvtier_group *groups, const char *name, __u64 min_bytes)
{
	struct kvtier_ns_open a;
	int fd = kvt_open(p);

	if (fd < 0)
		return fd;
	kvt_ns_args(&a, name, groups, 2);
	a.min_bytes = min_bytes;
	return kvt_client_bind(c, fd, &a);
}

FIXTURE_SETUP(arena)
{
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, TIER_BYTES));
	self->group[0].block_bytes = BLOCK_BYTES;
	self->group[1].block_bytes = 2 * BLOCK_BYTES;
	ASSERT_EQ(0, open_client(&self->pool, &self->c, self->group, "arena", MIN_BYTES));
	ASSERT_EQ(0, open_client(&self->pool, &self->reader, self->group, "arena", MIN_BYTES));
}

FIXTURE_TEARDOWN(arena)
{
	kvt_client_close(&self->c);
	kvt_client_close(&self->reader);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

static int claim(const struct kvt_client *c, __u32 group, __u32 nr, struct kvtier_arena *a)
{
	memset(a, 0, sizeof(*a));
	a->size = sizeof(*a);
	a->group = group;
	a->nr_slots = nr;
	return kvt_ioctl(c->fd, KVTIER_OP_ARENA, a);
}

static __u64 quarantined(const struct kvt_client *c)
{
	struct kvtier_stat st;

	return kvt_stat(c->fd, KVTIER_STAT_POOL, &st) ? ~0ull : st.regions_quarantined;
}

TEST_F(arena, claim)
{
	struct kvtier_arena a;
	__u32 i;

	ASSERT_EQ(0, claim(&self->c, 0, SLOTS, &a));
	EXPECT_LE(SLOTS, a.nr_slots);
	EXPECT_LE(BLOCK_BYTES, a.slot_bytes);
	EXPECT_EQ(0, a.slot_bytes % KVTIER_SLOT_ALIGN);
	EXPECT_LE(a.slot_bytes * a.nr_slots, a.bytes);
	EXPECT_LE(self->c.wr.start, a.offset);
	EXPECT_LE(a.offset + a.bytes, self->c.wr.start + self->c.wr.bytes);
	/* Writable all over, at once, without any reservation; and empty. */
	for (i = 0; i < a.nr_slots; i++) {
		char *slot = kvt_wr(&self->c, a.offset + i * a.slot_bytes);

		ASSERT_EQ(0, kvt_touch_read(slot));
		EXPECT_EQ(0, *(__u64 *)slot);
		ASSERT_EQ(0, kvt_touch_write(slot + BLOCK_BYTES - 1, 1));
	}
}

TEST_F(arena, limits)
{
	struct kvtier_arena a;
	struct kvt_client c;

	/* Past the guarantee; and without one. */
	EXPECT_EQ(-ENOSPC, claim(&self->c, 0, 2 * MIN_BYTES / BLOCK_BYTES, &a));
	EXPECT_EQ(-ENOSPC, claim(&self->c, 0, 1 << 20, &a));
	ASSERT_EQ(0, open_client(&self->pool, &c, self->group, "no guarantee", 0));
	EXPECT_EQ(-ENOSPC, claim(&c, 0, 1, &a));
	kvt_client_close(&c);
	/* One for each file and group; all of them within the guarantee. */
	ASSERT_EQ(0, claim(&self->c, 0, SLOTS, &a));
	EXPECT_EQ(-EBUSY, claim(&self->c, 0, SLOTS, &a));
	ASSERT_EQ(0, claim(&self->c, 1, 16, &a));
	EXPECT_EQ(-ENOSPC, claim(&self->reader, 0, 1, &a));
	/* Closing gives it back. */
	kvt_client_close(&self->c);
	EXPECT_TRUE(KVT_UNTIL(10000, claim(&self->reader, 0, 1, &a) == 0));
	ASSERT_EQ(0, open_client(&self->pool, &self->c, self->group, "arena", MIN_BYTES));
}

/*
 * What is left behind with a registration stays charged: closing and coming back does not
 * make a guarantee go further, though one that is on its way out is in nobody's way.
 */
TEST_F(arena, left_behind_again_and_again)
{
	struct kvtier_arena a;
	struct kvt_client c;
	struct io_uring ring;
	struct iovec iov;
	int i, err = 0, rings[4], nr = 2 * KVT_MIB / BLOCK_BYTES;

	for (i = 0; i < 4 && !err; i++) {
		ASSERT_EQ(0, open_client(&self->pool, &c, self->group, "left behind", 2 * KVT_MIB));
		err = claim(&c, 0, nr, &a);
		if (!err) {
			/* All that it is known by afterwards is its descriptor. */
			ASSERT_EQ(0, io_uring_queue_init(2, &ring, 0));
			rings[i] = fcntl(ring.ring_fd, F_DUPFD_CLOEXEC, 0);
			iov.iov_base = kvt_wr(&c, a.offset);
			iov.iov_len = 4096;
			ASSERT_EQ(0, io_uring_register_buffers(&ring, &iov, 1));
			io_uring_queue_exit(&ring);
		}
		kvt_client_close(&c);
	}
	EXPECT_EQ(-ENOSPC, err);
	EXPECT_EQ(3, i);
	EXPECT_TRUE(KVT_UNTIL(10000, quarantined(&self->c) == 2));
	while (i-- > 1)
		close(rings[i - 1]);
	EXPECT_TRUE(KVT_UNTIL(10000, quarantined(&self->c) == 0));
	ASSERT_EQ(0, open_client(&self->pool, &c, self->group, "left behind", 2 * KVT_MIB));
	EXPECT_EQ(0, claim(&c, 0, nr, &a));
	kvt_client_close(&c);
}

/* Its memory has gone, and does not come back: nobody waits for a slot of it. */
TEST(arena_lost)
{
	struct kvtier_group group[2] = { { .block_bytes = BLOCK_BYTES },
					 { .block_bytes = 2 * BLOCK_BYTES } };
	struct kvtier_block_result res;
	struct kvt_key key = kvt_key(SET, 0);
	struct kvtier_arena a;
	struct kvt_client c;
	struct kvt_pool p;
	int tier;

	if (!kvt_env_dax())
		SKIP(return, "no device-dax instance to use (KVT_DAX)");
	ASSERT_EQ(0, kvt_setup(&p));
	tier = kvt_tier_dax(&p, 0, TIER_BYTES);
	ASSERT_LE(0, tier);
	ASSERT_EQ(0, open_client(&p, &c, group, "lost", MIN_BYTES));
	ASSERT_EQ(0, claim(&c, 0, SLOTS, &a));
	ASSERT_EQ(1, kvt_reserve(c.fd, KVTIER_RESERVE_ARENA, 0, &key, NULL, 1, &res, 0));
	ASSERT_EQ(1, kvt_abort(c.fd, &res.handle, 1, NULL));
	ASSERT_EQ(0, kvt_sh("echo %s > /sys/bus/dax/drivers/kvtier/unbind", kvt_env_dax()));
	EXPECT_EQ(0, kvt_reserve(c.fd, KVTIER_RESERVE_ARENA | KVTIER_RESERVE_WAIT, 0, &key, NULL, 1,
				 &res, ~0ull));
	EXPECT_EQ(KVTIER_ST_NOSPACE, res.status);
	kvt_client_close(&c);
	EXPECT_EQ(0, kvt_tier_detach(&p, tier, 0, 10 * KVT_SEC));
	EXPECT_EQ(0, kvt_teardown(&p));
	EXPECT_EQ(0, kvt_dax_bind(kvt_env_dax(), "kvtier"));
}

/* Without an arena its slots cannot be asked for. */
TEST_F(arena, reserve_without_one)
{
	struct kvt_key key = kvt_key(SET, 0);
	struct kvtier_block_result res;

	EXPECT_EQ(-ENOENT, kvt_reserve(self->c.fd, KVTIER_RESERVE_ARENA, 0, &key, NULL, 1, &res,
				       0));
}

/* Another file of the namespace reads its blocks, but does not write its memory. */
TEST_F(arena, belongs_to_one_file)
{
	struct kvtier_block_result res, done, got;
	struct kvt_key key = kvt_key(SET, 0);
	struct kvtier_arena a;
	char *slot;

	ASSERT_EQ(0, claim(&self->c, 0, SLOTS, &a));
	EXPECT_EQ(SIGBUS, kvt_touch_write(self->reader.wr.base + (a.offset - self->c.wr.start), 1));
	ASSERT_EQ(1, kvt_reserve(self->c.fd, KVTIER_RESERVE_ARENA, 0, &key, NULL, 1, &res, 0));
	EXPECT_LE(a.offset, res.offset);
	EXPECT_GT(a.offset + a.bytes, res.offset);
	slot = kvt_wr(&self->c, res.offset);
	kvt_fill(slot, &key, BLOCK_BYTES);
	ASSERT_EQ(1, kvt_commit(self->c.fd, 0, &res.handle, 1, &done));
	ASSERT_EQ(1, kvt_get(self->reader.fd, 0, 0, &key, 1, &got, 0));
	EXPECT_TRUE(kvt_bytes_ok(kvt_rd(&self->reader, got.offset), &key, BLOCK_BYTES));
	/* Still mapped: that is what it is for. Its own fault if it writes now. */
	EXPECT_EQ(0, kvt_touch_read(slot));
}

/* Ordinary blocks do not go into the arena, and others cannot push it out. */
TEST_F(arena, kept_apart)
{
	struct kvtier_block_result *res = calloc(KVTIER_BATCH_MAX, sizeof(*res));
	struct kvt_key *keys = calloc(KVTIER_BATCH_MAX, sizeof(*keys));
	__u32 i, nr = KVTIER_BATCH_MAX, in = 0, got = 0;
	struct kvtier_arena a;

	ASSERT_EQ(0, claim(&self->c, 0, SLOTS, &a));
	kvt_keys(keys, SET, 0, nr);
	ASSERT_LE(0, kvt_reserve(self->c.fd, 0, 0, keys, NULL, nr, res, 0));
	for (i = 0; i < nr; i++) {
		if (res[i].status != KVTIER_ST_RESERVED)
			continue;
		got++;
		in += res[i].offset >= a.offset && res[i].offset < a.offset + a.bytes;
	}
	EXPECT_EQ(0, in);
	EXPECT_LE((TIER_BYTES - a.bytes) / a.slot_bytes * 9 / 10, got);
	EXPECT_GE((TIER_BYTES - a.bytes) / a.slot_bytes, got);
	EXPECT_EQ(0, kvt_touch_write(kvt_wr(&self->c, a.offset), 1));
	free(keys);
	free(res);
}

/* --- what is left of a large one --------------------------------------------------------- */

#define LARGE_SLOTS	5120	/* more than are looked at in one go */
#define LARGE_BYTES	(LARGE_SLOTS * BLOCK_BYTES)

FIXTURE(large)
{
	struct kvt_pool pool;
	struct kvtier_group group[2];
	struct kvt_client c;
	struct kvt_client reader;
};

FIXTURE_VARIANT(large)
{
	bool lower;
	int near;	/* block that is come across first */
	int far;
};

FIXTURE_VARIANT_ADD(large, down) { .lower = true, .near = 2 * BATCH, .far = 78 * BATCH };
FIXTURE_VARIANT_ADD(large, out) { .lower = false, .near = 78 * BATCH, .far = 2 * BATCH };

FIXTURE_SETUP(large)
{
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, 2 * LARGE_BYTES));
	if (variant->lower)
		ASSERT_LE(0, kvt_tier_dram(&self->pool, 1, 2 * LARGE_BYTES));
	self->group[0].block_bytes = BLOCK_BYTES;
	self->group[1].block_bytes = 2 * BLOCK_BYTES;
	ASSERT_EQ(0, open_client(&self->pool, &self->c, self->group, "large", LARGE_BYTES));
	ASSERT_EQ(0, open_client(&self->pool, &self->reader, self->group, "large", LARGE_BYTES));
}

FIXTURE_TEARDOWN(large)
{
	kvt_client_close(&self->c);
	kvt_client_close(&self->reader);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

/* Blocks without a chain, so that each can go; in the order of the arena's slots. */
static int store_roots(const struct kvt_client *c, const struct kvt_key *keys)
{
	struct kvtier_block_result res[BATCH], done[BATCH];
	struct kvt_key roots[BATCH] = { 0 };
	__u64 handle[BATCH];
	int i, ret;

	ret = kvt_reserve(c->fd, KVTIER_RESERVE_ARENA | KVTIER_RESERVE_PARENTS, 0, keys, roots,
			  BATCH, res, 0);
	if (ret != BATCH)
		return ret < 0 ? ret : -ENOSPC;
	for (i = 0; i < BATCH; i++)
		handle[i] = res[i].handle;
	return kvt_commit(c->fd, 0, handle, BATCH, done);
}

/* Blocks in the fastest tier. */
static __u64 blocks_there(const struct kvt_client *c)
{
	struct kvtier_tier_stat tiers[KVTIER_TIERS_MAX];
	struct kvtier_stat st;

	if (kvt_tier_stats(c->fd, &st, tiers) < 0)
		return ~0ull;
	return tiers[0].used_bytes / BLOCK_BYTES;
}

/*
 * Leases keep blocks of an arena whose file has gone, wherever they are. All others go, and
 * one that is let go does while the other one is kept, however far it is from that.
 */
TEST_F(large, leases_keep_no_others)
{
	int near = variant->near, far = variant->far, i;
	struct kvtier_block_result held[2];
	struct kvt_key keys[BATCH], key;
	struct kvtier_arena a;

	ASSERT_EQ(0, claim(&self->c, 0, LARGE_SLOTS, &a));
	for (i = 0; i < LARGE_SLOTS; i += BATCH) {
		kvt_keys(keys, SET, i, BATCH);
		ASSERT_EQ(BATCH, store_roots(&self->c, keys));
	}
	/* One of each batch stays. */
	for (i = 0; i < LARGE_SLOTS; i += BATCH) {
		kvt_keys(keys, SET, i, BATCH);
		ASSERT_EQ(BATCH - 1, kvt_drop(self->c.fd, 0, keys + 1, BATCH - 1, NULL));
	}
	key = kvt_key(SET, near);
	ASSERT_EQ(1, kvt_get(self->reader.fd, 0, 0, &key, 1, &held[0], 0));
	EXPECT_EQ(a.offset - self->c.wr.start + (__u64)near * BLOCK_BYTES, held[0].offset);
	key = kvt_key(SET, far);
	ASSERT_EQ(1, kvt_get(self->reader.fd, 0, 0, &key, 1, &held[1], 0));
	kvt_client_close(&self->c);
	EXPECT_TRUE(KVT_UNTIL(30000, blocks_there(&self->reader) == 2));
	EXPECT_EQ(1, kvt_release(self->reader.fd, &held[1].handle, 1, NULL));
	EXPECT_TRUE(KVT_UNTIL(30000, blocks_there(&self->reader) == 1));
	EXPECT_EQ(1, kvt_release(self->reader.fd, &held[0].handle, 1, NULL));
	EXPECT_TRUE(KVT_UNTIL(30000, blocks_there(&self->reader) == 0));
	EXPECT_TRUE(KVT_UNTIL(10000, claim(&self->reader, 0, LARGE_SLOTS, &a) == 0));
	ASSERT_EQ(0, open_client(&self->pool, &self->c, self->group, "large", LARGE_BYTES));
}

/* --- the one registration that carries everything ------------------------------------ */

struct carrier {
	struct io_uring ring;
	int file;		/* where the bytes come from */
	struct kvtier_arena a;
	char *base;
};

static int carrier_open(struct carrier *k, const struct kvt_client *c)
{
	struct iovec iov;
	int err = claim(c, 0, SLOTS, &k->a);

	if (err)
		return err;
	k->base = kvt_wr(c, k->a.offset);
	k->file = memfd_create("carrier", MFD_CLOEXEC);
	if (k->file < 0)
		return -errno;
	err = io_uring_queue_init(2 * BATCH, &k->ring, 0);
	if (err)
		return err;
	iov.iov_base = k->base;
	iov.iov_len = k->a.bytes;
	return io_uring_register_buffers(&k->ring, &iov, 1);
}

static void carrier_close(struct carrier *k)
{
	io_uring_queue_exit(&k->ring);
	close(k->file);
}

/* All reads (or writes) of a batch through the one fixed buffer. */
static int carry(struct carrier *k, const struct kvt_client *c,
		 const struct kvtier_block_result *res, int nr, bool in)
{
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
	int i, ret, bad = 0;

	for (i = 0; i < nr; i++) {
		sqe = io_uring_get_sqe(&k->ring);
		if (in)
			io_uring_prep_read_fixed(sqe, k->file, kvt_wr(c, res[i].offset),
						 BLOCK_BYTES, i * BLOCK_BYTES, 0);
		else
			io_uring_prep_write_fixed(sqe, k->file, kvt_wr(c, res[i].offset),
						  BLOCK_BYTES, (BATCH + i) * BLOCK_BYTES, 0);
	}
	ret = io_uring_submit_and_wait(&k->ring, nr);
	if (ret != nr)
		return -EIO;
	for (i = 0; i < nr; i++) {
		if (io_uring_wait_cqe(&k->ring, &cqe))
			return -EIO;
		bad += cqe->res != BLOCK_BYTES;
		io_uring_cqe_seen(&k->ring, cqe);
	}
	return bad ? -EIO : 0;
}

static int stage(const struct carrier *k, const struct kvt_key *keys)
{
	char buf[BLOCK_BYTES];
	int i;

	for (i = 0; i < BATCH; i++) {
		kvt_fill(buf, &keys[i], sizeof(buf));
		if (pwrite(k->file, buf, sizeof(buf), i * BLOCK_BYTES) != sizeof(buf))
			return -errno;
	}
	return 0;
}

/* What the ring has written out is what was stored. The file is as if it never had. */
static int out_is_right(const struct carrier *k, const struct kvt_key *keys)
{
	char buf[BLOCK_BYTES];
	int i;

	for (i = 0; i < BATCH; i++) {
		if (pread(k->file, buf, sizeof(buf), (BATCH + i) * BLOCK_BYTES) != sizeof(buf))
			return -EIO;
		if (!kvt_bytes_ok(buf, &keys[i], sizeof(buf)))
			return -EBADMSG;
	}
	return ftruncate(k->file, BATCH * BLOCK_BYTES) ? -errno : 0;
}

/* Reserve in the arena, fill by the ring, commit, write out by the ring while it is leased. */
static int carry_batch(struct carrier *k, const struct kvt_client *c, const struct kvt_key *keys)
{
	struct kvtier_block_result res[BATCH], done[BATCH];
	__u64 handle[BATCH];
	int i, ret;

	ret = kvt_reserve(c->fd, KVTIER_RESERVE_ARENA | KVTIER_RESERVE_WAIT, 0, keys, NULL, BATCH,
			  res, 120 * KVT_SEC);
	if (ret != BATCH) {
		fprintf(stderr, "# %d slots of the arena: status %d\n", ret,
			ret < 0 ? 0 : res[ret].status);
		return ret < 0 ? ret : -ENOSPC;
	}
	ret = stage(k, keys);
	if (!ret)
		ret = carry(k, c, res, BATCH, true);
	if (ret)
		return ret;
	for (i = 0; i < BATCH; i++)
		handle[i] = res[i].handle;
	ret = kvt_commit(c->fd, KVTIER_COMMIT_LEASE, handle, BATCH, done);
	if (ret != BATCH)
		return ret < 0 ? ret : -EBUSY;
	ret = carry(k, c, res, BATCH, false);
	if (!ret)
		ret = out_is_right(k, keys);
	return kvt_release(c->fd, handle, BATCH, NULL) == BATCH ? ret : -EPROTO;
}

FIXTURE(carry)
{
	struct kvt_pool pool;
	struct kvtier_group group[2];
	struct kvt_client c;
	struct kvt_client reader;
	struct carrier k;
};

FIXTURE_VARIANT(carry)
{
	bool dax;
	bool below;	/* memory below the arena for what leaves it */
	bool drop;	/* the client makes room itself */
	int nr;		/* blocks, but at full length */
};

FIXTURE_VARIANT_ADD(carry, drop) { .drop = true, .nr = 10000 };
FIXTURE_VARIANT_ADD(carry, evict) { .nr = 2000 };
FIXTURE_VARIANT_ADD(carry, demote) { .below = true, .nr = 2000 };
FIXTURE_VARIANT_ADD(carry, dax) { .dax = true, .nr = 1000 };

FIXTURE_SETUP(carry)
{
	if (variant->dax && !kvt_env_dax())
		SKIP(return, "no device-dax instance to use (KVT_DAX)");
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, variant->dax ? kvt_tier_dax(&self->pool, 0, TIER_BYTES) :
				    kvt_tier_dram(&self->pool, 0, TIER_BYTES));
	if (variant->below)
		ASSERT_LE(0, kvt_tier_dram(&self->pool, 1, 64 * KVT_MIB));
	self->group[0].block_bytes = BLOCK_BYTES;
	self->group[1].block_bytes = 2 * BLOCK_BYTES;
	ASSERT_EQ(0, open_client(&self->pool, &self->c, self->group, "carry", MIN_BYTES));
	ASSERT_EQ(0, open_client(&self->pool, &self->reader, self->group, "carry", MIN_BYTES));
	ASSERT_EQ(0, carrier_open(&self->k, &self->c));
}

FIXTURE_TEARDOWN(carry)
{
	carrier_close(&self->k);
	kvt_client_close(&self->c);
	kvt_client_close(&self->reader);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

/* Thousands of blocks through slots for a few hundred; another file reads each. */
TEST_F(carry, thousands_of_blocks)
{
	int batch, nr = kvt_env_rounds(variant->nr, 10000) / BATCH + 1, ret;
	struct kvt_key keys[BATCH];
	struct kvtier_stat st;

	for (batch = 0; batch < nr; batch++) {
		/* Short chains, so that any batch can leave without another. */
		kvt_keys(keys, SET, batch * BATCH, BATCH);
		ret = carry_batch(&self->k, &self->c, keys);
		ASSERT_EQ(0, ret) TH_LOG("batch %d: %d", batch, ret);
		ret = kvt_check(&self->reader, 0, keys, BATCH, 20 * KVT_SEC);
		ASSERT_EQ(BATCH, ret) TH_LOG("batch %d: %d", batch, ret);
		if (variant->drop)
			ASSERT_EQ(BATCH, kvt_drop(self->c.fd, 0, keys, BATCH, NULL));
	}
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	EXPECT_EQ(nr * BATCH, st.puts);
	/* How there was room for them: that the client dropped some, or that some went. */
	EXPECT_EQ(variant->drop ? nr * BATCH : 0, st.drops);
	EXPECT_EQ(!variant->drop && !variant->below, st.evictions > 0);
	if (variant->below) {
		EXPECT_LT(0, st.demotions);
		for (batch = 0; batch < nr; batch++) {
			kvt_keys(keys, SET, batch * BATCH, BATCH);
			ASSERT_EQ(BATCH, kvt_check(&self->reader, 0, keys, BATCH, 20 * KVT_SEC));
		}
	}
}

/* The registration outlives the file: the memory is nobody's until it ends. */
TEST_F(carry, close_while_registered)
{
	__u64 start = self->k.a.offset - self->c.wr.start, at, i;
	struct kvtier_block_result res;
	struct kvt_key keys[BATCH], other;
	struct kvt_client c;

	kvt_keys(keys, SET, 0, BATCH);
	ASSERT_EQ(0, carry_batch(&self->k, &self->c, keys));
	kvt_client_close(&self->c);
	ASSERT_EQ(0, open_client(&self->pool, &c, self->group, "neighbour", 0));
	/* Somebody else wants all the memory there is. */
	for (i = 0; i < TIER_BYTES / BLOCK_BYTES; i++) {
		other = kvt_key(SET + 1, i);
		if (kvt_reserve(c.fd, KVTIER_RESERVE_WAIT, 0, &other, NULL, 1, &res,
				KVT_SEC) != 1)
			break;
		at = res.offset - c.wr.start;
		ASSERT_EQ(0, *(__u64 *)kvt_wr(&c, res.offset));
		ASSERT_TRUE(at < start || at >= start + self->k.a.bytes);
	}
	EXPECT_LT(0, i);
	EXPECT_TRUE(KVT_UNTIL(10000, quarantined(&self->reader) == 1));
	io_uring_queue_exit(&self->k.ring);
	EXPECT_TRUE(KVT_UNTIL(10000, quarantined(&self->reader) == 0));
	/* For the teardown. */
	ASSERT_EQ(0, io_uring_queue_init(2, &self->k.ring, 0));
	kvt_client_close(&c);
	ASSERT_EQ(0, open_client(&self->pool, &self->c, self->group, "carry", MIN_BYTES));
}

/* --- what is written to while it goes to a disk ---------------------------------------- */

FIXTURE(scribbled)
{
	struct kvt_pool pool;
	struct kvtier_group group[2];
	struct kvt_client c;
	struct kvt_client reader;
	struct kvtier_arena a;
	int disk;
	pthread_t thread;
	int pause_us;
	int stop;
};

FIXTURE_VARIANT(scribbled)
{
	const char *env;	/* where the tier's device is named */
	int pause_us;		/* after each round */
};

FIXTURE_VARIANT_ADD(scribbled, disk) { .env = "KVT_BDEV" };
/* What is written to in the wrong moment stays where it is: there have to be others. */
FIXTURE_VARIANT_ADD(scribbled, zoned) { .env = "KVT_ZONED", .pause_us = 50000 };

/* One word of each slot of the arena, again and again. */
static void *scribble(void *arg)
{
	FIXTURE_DATA(scribbled) *self = arg;
	char *base = kvt_wr(&self->c, self->a.offset);
	__u64 n = 0;
	__u32 i;

	while (!__atomic_load_n(&self->stop, __ATOMIC_RELAXED)) {
		for (i = 0; i < self->a.nr_slots; i++)
			*(volatile __u64 *)(base + i * self->a.slot_bytes + 2048) = ++n;
		if (self->pause_us)
			usleep(self->pause_us);
	}
	return NULL;
}

FIXTURE_SETUP(scribbled)
{
	struct kvtier_tier_attach a;

	if (!getenv(variant->env))
		SKIP(return, "no such device to use (%s)", variant->env);
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, TIER_BYTES));
	kvt_tier_args(&self->pool, &a, KVTIER_TIER_BDEV, 1);
	a.flags = KVTIER_ATTACH_FORCE;
	snprintf(a.path, sizeof(a.path), "%s", getenv(variant->env));
	ASSERT_EQ(0, kvt_ioctl(self->pool.ctl, KVTIER_OP_TIER_ATTACH, &a));
	self->disk = a.tier_id;
	self->group[0].block_bytes = BLOCK_BYTES;
	self->group[1].block_bytes = 2 * BLOCK_BYTES;
	ASSERT_EQ(0, open_client(&self->pool, &self->c, self->group, "scribbled", MIN_BYTES));
	ASSERT_EQ(0, open_client(&self->pool, &self->reader, self->group, "scribbled",
				 MIN_BYTES));
	ASSERT_EQ(0, claim(&self->c, 0, SLOTS, &self->a));
	self->pause_us = variant->pause_us;
	ASSERT_EQ(0, pthread_create(&self->thread, NULL, scribble, self));
}

FIXTURE_TEARDOWN(scribbled)
{
	kvt_client_close(&self->c);
	kvt_client_close(&self->reader);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

static int store_batch(const struct kvt_client *c, const struct kvt_key *keys)
{
	struct kvtier_block_result res[BATCH], done[BATCH];
	__u64 handle[BATCH];
	int i, ret;

	ret = kvt_reserve(c->fd, KVTIER_RESERVE_ARENA | KVTIER_RESERVE_WAIT, 0, keys, NULL, BATCH,
			  res, 120 * KVT_SEC);
	if (ret != BATCH)
		return ret < 0 ? ret : -ENOSPC;
	for (i = 0; i < BATCH; i++)
		handle[i] = res[i].handle;
	return kvt_commit(c->fd, 0, handle, BATCH, done);
}

/* How many of a batch can be read, or -errno. */
static int read_batch(const struct kvt_client *c, const struct kvt_key *keys)
{
	struct kvtier_block_result res[BATCH];
	__u64 handle[BATCH];
	int i, nr = 0, ret;

	ret = kvt_get(c->fd, KVTIER_GET_WAIT, 0, keys, BATCH, res, 120 * KVT_SEC);
	for (i = 0; i < ret; i++)
		handle[nr++] = res[i].handle;
	if (nr && kvt_release(c->fd, handle, nr, NULL) != nr)
		return -EIO;
	return ret;
}

/*
 * Its writer may do what he likes with his memory: what the disk has of it verifies, and the
 * disk, which others use, too, is not taken for a bad one.
 */
TEST_F_TIMEOUT(scribbled, verifies, 1200)
{
	int batch, nr = kvt_env_rounds(3000, 20000) / BATCH + 1, ret, there = 0;
	struct kvt_key keys[BATCH];
	struct kvtier_stat st;

	for (batch = 0; batch < nr; batch++) {
		kvt_keys(keys, SET, batch * BATCH, BATCH);
		ret = store_batch(&self->c, keys);
		ASSERT_EQ(BATCH, ret) TH_LOG("batch %d: %d", batch, ret);
	}
	__atomic_store_n(&self->stop, 1, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(self->thread, NULL));
	for (batch = 0; batch < nr; batch++) {
		kvt_keys(keys, SET, batch * BATCH, BATCH);
		ret = read_batch(&self->reader, keys);
		ASSERT_LE(0, ret) TH_LOG("batch %d: %d", batch, ret);
		there += ret;
	}
	ASSERT_EQ(0, kvt_stat(self->c.fd, 0, &st));
	TH_LOG("%d of %d blocks are there, %llu went down", there, nr * BATCH, st.demotions);
	EXPECT_EQ(0, kvt_tier_errors(self->c.fd, self->disk));
	EXPECT_LT(0, st.demotions);
	/* On a zoned device what is written to all the time leaves the pool. */
	if (!variant->pause_us) {
		EXPECT_LT(nr * BATCH / 2, st.demotions);
		EXPECT_EQ(nr * BATCH, there);
	}
}

TEST_HARNESS_MAIN
