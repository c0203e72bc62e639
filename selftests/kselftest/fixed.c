// SPDX-License-Identifier: GPL-2.0
/*
 * What one namespace may keep in place, whatever number of files its clients open, and what
 * that leaves to another user's. GREEDY takes what it can get and gives nothing back; MODEST
 * wants room for a few blocks, and finds it, however many namespaces GREEDY has. Memory changes
 * hands in pieces of 2 MiB, so one leased block keeps 32 from everybody else.
 */
#include "kvt_test.h"
#include <pthread.h>
#include <sys/uio.h>

#define BLOCK		(64 * KVT_KIB)
#define IN_PIECE	((int)(KVT_PIECE / BLOCK))
#define PIECES		8
#define BLOCKS		(PIECES * IN_PIECE)
#define GREEDY		1001
#define MODEST		1002
#define SET		41
#define SET_MODEST	42
#define FILES		40

FIXTURE(fixed)
{
	struct kvt_pool pool;
	int tier;
	struct kvt_client greedy;
	struct kvt_client modest;
	int files[FILES];		/* more of GREEDY's; -1: none */
};

static int open_side(const struct kvt_pool *p, struct kvt_client *c, uid_t uid, __u64 min_bytes)
{
	struct kvtier_group group = { .block_bytes = BLOCK };
	struct kvtier_ns_open a;

	kvt_ns_args(&a, "limits", &group, 1);
	a.min_bytes = min_bytes;
	return kvt_client_bind(c, kvt_open_as(p, uid), &a);
}

FIXTURE_SETUP(fixed)
{
	int i;

	for (i = 0; i < FILES; i++)
		self->files[i] = -1;
	ASSERT_EQ(0, kvt_setup(&self->pool));
	/* What leaves memory leaves it for somebody who needs room; and no reservation expires. */
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "watermark_high_percent", "100"));
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "reservation_timeout_ms", "3600000"));
	self->tier = kvt_tier_dram(&self->pool, 0, PIECES * KVT_PIECE);
	ASSERT_LE(0, self->tier);
	ASSERT_EQ(0, open_side(&self->pool, &self->greedy, GREEDY, 0));
	ASSERT_EQ(0, open_side(&self->pool, &self->modest, MODEST, 0));
}

static void close_files(FIXTURE_DATA(fixed) *self)
{
	int i;

	for (i = 0; i < FILES; i++) {
		if (self->files[i] >= 0)
			close(self->files[i]);
		self->files[i] = -1;
	}
}

static __u64 fixed_bytes(FIXTURE_DATA(fixed) *self)
{
	return kvt_ns_number(&self->pool, &self->greedy, "fixed_bytes");
}

static __u64 refused(FIXTURE_DATA(fixed) *self)
{
	return kvt_ns_number(&self->pool, &self->greedy, "fixed_refused");
}

static int limit(FIXTURE_DATA(fixed) *self, int pieces)
{
	return kvt_ns_set_number(&self->pool, &self->greedy, "fixed_limit_bytes", pieces * KVT_PIECE);
}

/* Whatever it was, none of it is left when its files have gone. */
FIXTURE_TEARDOWN(fixed)
{
	int fd = kvt_open_as(&self->pool, GREEDY);
	struct kvtier_group group = { .block_bytes = BLOCK };
	struct kvtier_ns_open a;

	kvt_ns_args(&a, "limits", &group, 1);
	EXPECT_EQ(0, kvt_ioctl(fd, KVTIER_OP_NS_OPEN, &a));
	close_files(self);
	kvt_client_close(&self->greedy);
	EXPECT_TRUE(KVT_UNTIL(5000, fixed_bytes(self) == 0)) TH_LOG("%llu", fixed_bytes(self));
	close(fd);
	kvt_client_close(&self->modest);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

/* The @i-th file of GREEDY's. */
static int file_of(FIXTURE_DATA(fixed) *self, int i)
{
	struct kvtier_group group = { .block_bytes = BLOCK };
	struct kvtier_ns_open a;
	int *fd = &self->files[i % FILES];

	if (*fd >= 0)
		return *fd;
	*fd = kvt_open_as(&self->pool, GREEDY);
	kvt_ns_args(&a, "limits", &group, 1);
	if (*fd >= 0 && kvt_ioctl(*fd, KVTIER_OP_NS_OPEN, &a))
		return -1;
	return *fd;
}

/* Store @nr blocks that have nothing to do with each other. How many could be. */
static int store(const struct kvt_client *c, __u32 set, int first, int nr)
{
	struct kvt_key key;
	int i, n = 0;

	for (i = 0; i < nr; i++) {
		key = kvt_key(set, first + i);
		n += kvt_put(c, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1) == 1;
	}
	return n;
}

static __s32 lease(int fd, int nr, __u64 *handle)
{
	struct kvt_key key = kvt_key(SET, nr);
	struct kvtier_block_result res;
	int err = kvt_get(fd, 0, 0, &key, 1, &res, 0);

	if (handle)
		*handle = res.handle;
	return err < 0 ? err : res.status;
}

/* One of many files leases one block of each piece. How many; the others were LIMIT. */
static int lease_sparsely(FIXTURE_DATA(fixed) *self, int pieces, __u64 *handle)
{
	int i, n = 0;
	__s32 st;

	for (i = 0; i < pieces; i++) {
		st = lease(file_of(self, i), i * IN_PIECE, handle ? &handle[i] : NULL);
		n += st == KVTIER_ST_HIT;
		if (st != KVTIER_ST_HIT && st != KVTIER_ST_LIMIT)
			return -1;
	}
	return n;
}

static int reserve(int fd, int nr, __u64 *handle, __s32 *status)
{
	struct kvt_key key = kvt_key(SET, nr);
	struct kvtier_block_result res;
	int err = kvt_reserve(fd, 0, 0, &key, NULL, 1, &res, 0);

	if (handle)
		*handle = res.handle;
	*status = res.status;
	return err;
}

/* MODEST stores blocks and reads each, three pieces of them. */
static bool served(FIXTURE_DATA(fixed) *self)
{
	struct kvt_key key;
	int i;

	for (i = 0; i < 3 * IN_PIECE; i++) {
		key = kvt_key(SET_MODEST, i);
		if (store(&self->modest, SET_MODEST, i, 1) != 1 ||
		    kvt_check(&self->modest, 0, &key, 1, 5 * KVT_SEC) != 1) {
			fprintf(stderr, "# MODEST's block %d\n", i);
			return false;
		}
	}
	return true;
}

/* A block here and there is leased, by many files: not in all of the pool. */
TEST_F(fixed, leases)
{
	__u64 before;

	ASSERT_EQ(BLOCKS, store(&self->greedy, SET, 0, BLOCKS));
	EXPECT_EQ(0, fixed_bytes(self));
	ASSERT_EQ(0, limit(self, PIECES - 2));
	before = refused(self);
	EXPECT_EQ(PIECES - 2, lease_sparsely(self, PIECES, NULL));
	EXPECT_EQ((PIECES - 2) * KVT_PIECE, fixed_bytes(self));
	EXPECT_EQ(2, refused(self) - before);
	EXPECT_TRUE(served(self));
	/* And still, after all that MODEST wanted has changed hands. */
	EXPECT_EQ((PIECES - 2) * KVT_PIECE, fixed_bytes(self));
}

/* Without the limit that is what happens: the test can fail. */
TEST_F(fixed, without_a_limit_nobody_is_served)
{
	struct kvt_key key = kvt_key(SET_MODEST, 0);
	struct kvtier_block_result res;

	ASSERT_EQ(BLOCKS, store(&self->greedy, SET, 0, BLOCKS));
	EXPECT_EQ(PIECES, lease_sparsely(self, PIECES, NULL));
	EXPECT_EQ(0, kvt_reserve(self->modest.fd, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1, &res,
				 500 * KVT_MSEC));
	EXPECT_EQ(KVTIER_ST_NOSPACE, res.status);
	close_files(self);
	EXPECT_TRUE(served(self));
}

TEST_F(fixed, reservations)
{
	struct kvtier_stat st, after;
	__u64 handle[BLOCKS];
	__s32 status;
	int i;

	ASSERT_EQ(0, limit(self, 3));
	for (i = 0; i < 3 * IN_PIECE; i++)
		ASSERT_EQ(1, reserve(file_of(self, i), i, &handle[i], &status)) TH_LOG("%d", i);
	EXPECT_EQ(3 * KVT_PIECE, fixed_bytes(self));
	ASSERT_EQ(0, kvt_stat(self->greedy.fd, 0, &st));
	for (; i < 5 * IN_PIECE; i++) {
		EXPECT_EQ(0, reserve(file_of(self, i), i, &handle[i], &status));
		ASSERT_EQ(KVTIER_ST_LIMIT, status);
		EXPECT_EQ(0, handle[i]);
	}
	/* What was refused has left nothing behind. */
	ASSERT_EQ(0, kvt_stat(self->greedy.fd, 0, &after));
	EXPECT_EQ(st.nr_blocks, after.nr_blocks);
	EXPECT_EQ(st.used_bytes, after.used_bytes);
	EXPECT_EQ(st.aborts, after.aborts);
	EXPECT_EQ(2 * IN_PIECE, refused(self));
	EXPECT_TRUE(served(self));
	/* One given up, one more; in the same piece as the others. */
	ASSERT_EQ(1, kvt_abort(file_of(self, 0), &handle[0], 1, NULL));
	EXPECT_EQ(3 * KVT_PIECE, fixed_bytes(self));
	EXPECT_EQ(1, reserve(file_of(self, 0), BLOCKS, NULL, &status));
}

/* The copying commands lease and reserve, too. */
TEST_F(fixed, read_and_write)
{
	char *buf = malloc(BLOCK);
	struct kvt_key key = kvt_key(SET, 0), fresh = kvt_key(SET, BLOCKS);

	ASSERT_NE(NULL, buf);
	ASSERT_EQ(IN_PIECE, store(&self->greedy, SET, 0, IN_PIECE));
	ASSERT_EQ(0, limit(self, 0));
	EXPECT_EQ(KVTIER_ST_LIMIT, kvt_read1(self->greedy.fd, 0, &key, buf, BLOCK, 0));
	EXPECT_EQ(KVTIER_ST_LIMIT, kvt_write1(self->greedy.fd, 0, &fresh, NULL, buf, BLOCK, 0));
	EXPECT_EQ(0, kvt_lookup(self->greedy.fd, 0, &fresh, 1, NULL));
	EXPECT_EQ(0, fixed_bytes(self));
	ASSERT_EQ(0, limit(self, 1));
	EXPECT_EQ(KVTIER_ST_HIT, kvt_read1(self->greedy.fd, 0, &key, buf, BLOCK, 0));
	EXPECT_TRUE(kvt_bytes_ok(buf, &key, BLOCK));
	EXPECT_EQ(0, fixed_bytes(self));
	free(buf);
}

/* Who has less than he holds keeps it, and gets nothing new. */
TEST_F(fixed, lowered_below_what_is_held)
{
	__u64 handle[PIECES], other;
	struct kvt_key key;
	int i;

	ASSERT_EQ(BLOCKS, store(&self->greedy, SET, 0, BLOCKS));
	ASSERT_EQ(0, limit(self, 4));
	ASSERT_EQ(4, lease_sparsely(self, PIECES, handle));
	ASSERT_EQ(0, limit(self, 2));
	EXPECT_EQ(2 * KVT_PIECE, kvt_ns_number(&self->pool, &self->greedy, "fixed_limit_bytes"));
	EXPECT_EQ(4 * KVT_PIECE, fixed_bytes(self));
	/* The same block, and one beside it, are in a piece that is paid for. */
	EXPECT_EQ(KVTIER_ST_HIT, lease(self->greedy.fd, 0, &other));
	EXPECT_EQ(1, kvt_release(self->greedy.fd, &other, 1, NULL));
	EXPECT_EQ(KVTIER_ST_HIT, lease(self->greedy.fd, 1, &other));
	EXPECT_EQ(1, kvt_release(self->greedy.fd, &other, 1, NULL));
	EXPECT_EQ(KVTIER_ST_LIMIT, lease(self->greedy.fd, 4 * IN_PIECE, NULL));
	/* Nobody has lost anything. */
	for (i = 0; i < 4; i++) {
		key = kvt_key(SET, i * IN_PIECE);
		EXPECT_EQ(1, kvt_check(&self->greedy, 0, &key, 1, 0));
	}
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(1, kvt_release(file_of(self, i), &handle[i], 1, NULL));
		EXPECT_EQ(KVTIER_ST_LIMIT, lease(self->greedy.fd, 4 * IN_PIECE, NULL));
	}
	EXPECT_EQ(2 * KVT_PIECE, fixed_bytes(self));
	ASSERT_EQ(1, kvt_release(file_of(self, 2), &handle[2], 1, NULL));
	EXPECT_EQ(KVTIER_ST_HIT, lease(self->greedy.fd, 4 * IN_PIECE, NULL));
	EXPECT_EQ(KVTIER_ST_LIMIT, lease(self->greedy.fd, 5 * IN_PIECE, NULL));
	ASSERT_EQ(0, limit(self, 3));
	EXPECT_EQ(KVTIER_ST_HIT, lease(self->greedy.fd, 5 * IN_PIECE, NULL));
}

/* Two leases of one block, two blocks of one piece: paid for once, and until the last. */
TEST_F(fixed, each_piece_once)
{
	__u64 h[4];

	ASSERT_EQ(2 * IN_PIECE, store(&self->greedy, SET, 0, 2 * IN_PIECE));
	EXPECT_EQ(KVTIER_ST_HIT, lease(file_of(self, 0), 0, &h[0]));
	EXPECT_EQ(KVTIER_ST_HIT, lease(file_of(self, 1), 0, &h[1]));
	EXPECT_EQ(KVTIER_ST_HIT, lease(file_of(self, 1), 1, &h[2]));
	EXPECT_EQ(KVT_PIECE, fixed_bytes(self));
	EXPECT_EQ(KVTIER_ST_HIT, lease(file_of(self, 0), IN_PIECE, &h[3]));
	EXPECT_EQ(2 * KVT_PIECE, fixed_bytes(self));
	EXPECT_EQ(1, kvt_release(file_of(self, 0), &h[0], 1, NULL));
	EXPECT_EQ(1, kvt_release(file_of(self, 1), &h[2], 1, NULL));
	EXPECT_EQ(2 * KVT_PIECE, fixed_bytes(self));
	EXPECT_EQ(1, kvt_release(file_of(self, 1), &h[1], 1, NULL));
	EXPECT_EQ(KVT_PIECE, fixed_bytes(self));
	/* Dropped, it keeps its place as long as it is leased. */
	EXPECT_EQ(1, kvt_drop(self->greedy.fd, 0, (struct kvt_key[]){ kvt_key(SET, IN_PIECE) }, 1,
			      NULL));
	EXPECT_EQ(KVT_PIECE, fixed_bytes(self));
	EXPECT_EQ(1, kvt_release(file_of(self, 0), &h[3], 1, NULL));
	EXPECT_EQ(0, fixed_bytes(self));
}

/* A reservation becomes a lease; a buffer keeps what its file has given back. */
TEST_F(fixed, commit_and_export)
{
	struct kvtier_block_result res;
	struct kvtier_export x = { .size = sizeof(x), .nr = 1, .fd = -1 };
	__u64 handle;
	__s32 status;

	ASSERT_EQ(0, limit(self, 1));
	ASSERT_EQ(1, reserve(self->greedy.fd, 0, &handle, &status));
	EXPECT_EQ(KVT_PIECE, fixed_bytes(self));
	ASSERT_EQ(0, limit(self, 0));
	/* That asks for no more than there was. */
	ASSERT_EQ(1, kvt_commit(self->greedy.fd, KVTIER_COMMIT_LEASE, &handle, 1, &res));
	EXPECT_EQ(KVTIER_ST_HIT, res.status);
	EXPECT_EQ(KVT_PIECE, fixed_bytes(self));
	x.handles = KVT_U64(&handle);
	ASSERT_EQ(0, kvt_ioctl(self->greedy.fd, KVTIER_OP_EXPORT, &x));
	EXPECT_EQ(1, kvt_release(self->greedy.fd, &handle, 1, NULL));
	EXPECT_EQ(KVT_PIECE, fixed_bytes(self));
	EXPECT_EQ(KVTIER_ST_HIT, lease(self->greedy.fd, 0, &handle));
	EXPECT_EQ(1, kvt_release(self->greedy.fd, &handle, 1, NULL));
	close(x.fd);
	EXPECT_EQ(0, fixed_bytes(self));
	EXPECT_EQ(KVTIER_ST_LIMIT, lease(self->greedy.fd, 0, NULL));
	/* A key that is there is still said to be there, without the lease. */
	ASSERT_EQ(0, kvt_reserve(self->greedy.fd, KVTIER_RESERVE_LEASE, 0,
				 (struct kvt_key[]){ kvt_key(SET, 0) }, NULL, 1, &res, 0));
	EXPECT_EQ(KVTIER_ST_EXISTS, res.status);
	EXPECT_EQ(0, res.handle);
}

/* A batch is leased up to the limit, and what was leased before stands. */
TEST_F(fixed, a_batch_is_cut)
{
	struct kvtier_block_result res[3];
	struct kvt_key keys[3];
	__u64 handle[2];
	int i;

	ASSERT_EQ(BLOCKS, store(&self->greedy, SET, 0, BLOCKS));
	for (i = 0; i < 3; i++)
		keys[i] = kvt_key(SET, i * IN_PIECE);
	ASSERT_EQ(0, limit(self, 2));
	ASSERT_EQ(2, kvt_get(self->greedy.fd, KVTIER_GET_WAIT, 0, keys, 3, res, KVT_SEC));
	EXPECT_EQ(KVTIER_ST_HIT, res[1].status);
	EXPECT_EQ(KVTIER_ST_LIMIT, res[2].status);
	EXPECT_EQ(0, res[2].handle);
	handle[0] = res[0].handle;
	handle[1] = res[1].handle;
	EXPECT_EQ(2, kvt_release(self->greedy.fd, handle, 2, NULL));
	EXPECT_EQ(0, fixed_bytes(self));
}

/* Paid for with a guarantee, an arena is not refused. */
TEST_F(fixed, arenas_are_paid_for)
{
	struct kvtier_arena a = { .size = sizeof(a), .nr_slots = IN_PIECE };
	struct kvtier_block_result res;
	struct kvt_client c;
	struct kvt_key key = kvt_key(SET, 0);

	ASSERT_EQ(0, open_side(&self->pool, &c, 1003, KVT_PIECE));
	ASSERT_EQ(0, kvt_ns_set(&self->pool, &c, "fixed_limit_bytes", "0"));
	ASSERT_EQ(0, kvt_ioctl(c.fd, KVTIER_OP_ARENA, &a));
	EXPECT_EQ(0, kvt_reserve(c.fd, 0, 0, &key, NULL, 1, &res, 0));
	EXPECT_EQ(KVTIER_ST_LIMIT, res.status);
	ASSERT_EQ(1, kvt_reserve(c.fd, KVTIER_RESERVE_ARENA, 0, &key, NULL, 1, &res, 0));
	EXPECT_EQ(KVT_PIECE, kvt_ns_number(&self->pool, &c, "fixed_bytes"));
	EXPECT_EQ(1, kvt_abort(c.fd, &res.handle, 1, NULL));
	EXPECT_EQ(0, kvt_ns_number(&self->pool, &c, "fixed_bytes"));
	kvt_client_close(&c);
}

/* If nobody has said otherwise: a sixteenth is left, whatever others were promised. */
TEST_F(fixed, by_default)
{
	const struct kvt_pool *p = &self->pool;
	struct kvt_client c;
	int all = 4 * PIECES;

	/* A sixteenth of this is no piece. */
	EXPECT_EQ(PIECES * KVT_PIECE, kvt_ns_number(p, &self->greedy, "fixed_limit_bytes"));
	ASSERT_EQ(0, open_side(p, &c, 1003, PIECES * KVT_PIECE));
	EXPECT_EQ(PIECES * KVT_PIECE, kvt_ns_number(p, &self->greedy, "fixed_limit_bytes"));
	kvt_client_close(&c);
	ASSERT_LE(0, kvt_tier_dram(p, 1, 3 * PIECES * KVT_PIECE));
	EXPECT_EQ((all - 2) * KVT_PIECE, kvt_ns_number(p, &self->greedy, "fixed_limit_bytes"));
	kvt_client_close(&self->greedy);
	kvt_client_close(&self->modest);
	/* With views of all of it. */
	ASSERT_EQ(0, open_side(p, &self->greedy, GREEDY, 0));
	ASSERT_EQ(0, open_side(p, &self->modest, MODEST, 0));
	ASSERT_EQ(all * IN_PIECE, store(&self->greedy, SET, 0, all * IN_PIECE));
	EXPECT_EQ(all - 2, lease_sparsely(self, all, NULL));
	EXPECT_TRUE(served(self));
}

/* --- several namespaces of one user --------------------------------------------------------- */

#define MANY		4	/* namespaces, without the one of the fixture */
#define ALL		64	/* pieces: the last 4 are for who has little, 2 of them for others */

static int hog_open(const struct kvt_pool *p, struct kvt_client *c, int i, __u64 min_bytes)
{
	struct kvtier_group group = { .block_bytes = BLOCK };
	struct kvtier_ns_open a;
	char name[16];
	int err;

	snprintf(name, sizeof(name), "hog %d", i);
	kvt_ns_args(&a, name, &group, 1);
	a.min_bytes = min_bytes;
	err = kvt_client_bind(c, kvt_open_as(p, GREEDY), &a);
	if (err)
		kvt_client_close(c);
	return err;
}

static int hogs_open(const struct kvt_pool *p, struct kvt_client *hog)
{
	int i, err = 0;

	for (i = 0; i < MANY && !err; i++)
		err = hog_open(p, &hog[i], i, 0);
	return err;
}

static void hogs_close(struct kvt_client *hog)
{
	int i;

	for (i = 0; i < MANY; i++)
		kvt_client_close(&hog[i]);
}

static __u32 hog_set(const struct kvt_client *c)
{
	return 1000 + (__u32)c->ns_id;
}

/* Store some blocks, up to the first that finds no room. Whether all could be. */
static bool hog_store(const struct kvt_client *c, int first, int nr)
{
	int i;

	for (i = 0; i < nr && store(c, hog_set(c), first + i, 1) == 1; i++)
		;
	return i == nr;
}

/*
 * Store @nr blocks from @first on and lease that one: what nobody has leased may go again, where
 * there is no room at all, to have some for the next one. 1, 0: may not, -1: no room.
 */
static int hog_have(const struct kvt_client *c, int first, int nr, struct kvtier_block_result *res)
{
	struct kvt_key key = kvt_key(hog_set(c), first);
	int tries = 0;

	do {
		if (!hog_store(c, first, nr))
			return -1;
		if (kvt_get(c->fd, 0, 0, &key, 1, res, 0) == 1)
			return 1;
	} while (res->status == KVTIER_ST_MISS && ++tries < 10);
	return 0;
}

/* Lease one block after the other, up to so many pieces' worth. How many pieces. */
static int hog_lease(const struct kvt_client *c, int pieces)
{
	struct kvtier_block_result res;
	int i;

	for (i = 0; i < pieces * IN_PIECE && hog_have(c, i, 1, &res) == 1; i++)
		;
	return i / IN_PIECE;
}

/* Store and pin, up to @nr blocks. How many. */
static int hog_pin(const struct kvt_client *c, int nr)
{
	struct kvt_key key;
	__s32 status;
	int i;

	for (i = 0; i < nr; i++) {
		key = kvt_key(hog_set(c), i);
		if (!hog_store(c, i, 1) ||
		    kvt_advise(c->fd, 0, &key, 1, KVTIER_ADV_PIN, 0, &status) != 1)
			break;
	}
	return i;
}

/* The pool gets ALL pieces, and MODEST a view of them. */
static int enlarge(FIXTURE_DATA(fixed) *self)
{
	if (kvt_tier_dram(&self->pool, 1, (ALL - PIECES) * KVT_PIECE) < 0)
		return -ENOMEM;
	kvt_client_close(&self->modest);
	return open_side(&self->pool, &self->modest, MODEST, 0);
}

/* A third user has nothing yet, and gets something; how much is left does not matter. */
static bool third_is_served(FIXTURE_DATA(fixed) *self)
{
	struct kvt_client c;
	bool ok = !open_side(&self->pool, &c, 1003, 0) && store(&c, SET_MODEST, 0, 4) == 4;

	kvt_client_close(&c);
	return ok;
}

/* What one namespace may not keep, several of its owner's may not keep together. */
TEST_F(fixed, by_many)
{
	struct kvt_client hog[MANY];
	struct kvtier_block_result res;
	struct kvt_key key;
	int n = 0;

	ASSERT_EQ(0, enlarge(self));
	ASSERT_EQ(0, hogs_open(&self->pool, hog));
	n += hog_lease(&hog[0], 30);
	n += hog_lease(&hog[1], 30);
	EXPECT_EQ(60, n);
	/* With little of his own a tenant gets some of the last ones, and then they are others'. */
	n += hog_lease(&hog[2], 4);
	n += hog_lease(&hog[3], 4);
	EXPECT_EQ(ALL - 2, n);
	EXPECT_LT(0, kvt_ns_number(&self->pool, &hog[3], "fixed_refused"));
	EXPECT_TRUE(served(self));
	/* MODEST keeps one. Even so the next one finds a last piece. */
	ASSERT_EQ(1, store(&self->modest, SET_MODEST, 0, 1));
	key = kvt_key(SET_MODEST, 0);
	ASSERT_EQ(1, kvt_get(self->modest.fd, 0, 0, &key, 1, &res, 0));
	EXPECT_TRUE(third_is_served(self));
	hogs_close(hog);
}

/* Whom root has given more than the default may have it. */
TEST_F(fixed, by_many_with_leave)
{
	struct kvt_client hog[2];
	int n;

	ASSERT_EQ(0, enlarge(self));
	ASSERT_EQ(0, hog_open(&self->pool, &hog[0], 0, 0));
	ASSERT_EQ(0, hog_open(&self->pool, &hog[1], 1, 0));
	n = hog_lease(&hog[0], ALL);
	EXPECT_EQ(ALL - 4, n);
	/* No more than the default is no leave. */
	ASSERT_EQ(0, kvt_ns_set_number(&self->pool, &hog[1], "fixed_limit_bytes", 60 * KVT_PIECE));
	EXPECT_EQ(2, hog_lease(&hog[1], 4));
	ASSERT_EQ(0, kvt_ns_set_number(&self->pool, &hog[1], "fixed_limit_bytes", ALL * KVT_PIECE));
	EXPECT_EQ(4, hog_lease(&hog[1], 4));
	kvt_client_close(&hog[0]);
	kvt_client_close(&hog[1]);
	EXPECT_TRUE(served(self));
}

/* A limit that was none of leave does not become that when memory goes. */
TEST_F(fixed, by_many_with_less_memory)
{
	struct kvt_client hog;
	int third;

	ASSERT_EQ(0, enlarge(self));
	third = kvt_tier_dram(&self->pool, 2, ALL / 2 * KVT_PIECE);
	ASSERT_LE(0, third);
	ASSERT_EQ(0, hog_open(&self->pool, &hog, 0, 0));
	ASSERT_EQ(0, kvt_ns_set_number(&self->pool, &hog, "fixed_limit_bytes", ALL * KVT_PIECE));
	ASSERT_EQ(0, kvt_tier_detach(&self->pool, third, 0, 10 * KVT_SEC));
	EXPECT_EQ(ALL - 4, hog_lease(&hog, ALL));
	kvt_client_close(&hog);
	EXPECT_TRUE(served(self));
}

/* Where there is no disk for what is pinned, leases of the rest are not to be had, either. */
TEST_F(fixed, beside_pins)
{
	struct kvt_client hog[MANY];
	int pinned, n;

	ASSERT_EQ(0, enlarge(self));
	ASSERT_EQ(0, hogs_open(&self->pool, hog));
	pinned = hog_pin(&hog[0], ALL * IN_PIECE);
	pinned += hog_pin(&hog[1], ALL * IN_PIECE);
	/* Of three quarters of all one user gets three quarters. */
	EXPECT_EQ(ALL / 16 * 9 * IN_PIECE, pinned);
	n = hog_lease(&hog[2], ALL / 4);
	n += hog_lease(&hog[3], ALL / 4);
	EXPECT_GT(ALL / 16 * 7, n);
	EXPECT_LE(ALL / 16 * 7 - 4, n);
	EXPECT_TRUE(served(self));
	hogs_close(hog);
}

/* However many namespaces a user has, others can pin, and get no more than they leave. */
TEST_F(fixed, pins_leave_some)
{
	struct kvt_client hog[MANY];
	int i, pinned = 0;

	ASSERT_EQ(0, enlarge(self));
	for (i = 0; i < MANY; i++) {
		ASSERT_EQ(0, hog_open(&self->pool, &hog[i], i, 0));
		pinned += hog_pin(&hog[i], ALL * IN_PIECE);
	}
	EXPECT_EQ(ALL / 16 * 9 * IN_PIECE, pinned);
	EXPECT_EQ(ALL / 32 * 3 * IN_PIECE, hog_pin(&self->modest, ALL / 4 * IN_PIECE));
	hogs_close(hog);
}

/* Buffers of a piece's worth of leased blocks, up to @most. How many there can be. */
static int hog_export(const struct kvt_client *c, int *bufs, int most)
{
	struct kvtier_block_result res;
	__u64 handle[IN_PIECE];
	struct kvtier_export x = {
		.size = sizeof(x), .nr = IN_PIECE, .handles = KVT_U64(handle),
	};
	int i;

	for (i = 0; i < IN_PIECE; i++) {
		if (hog_have(c, i, 1, &res) != 1)
			return -1;
		handle[i] = res.handle;
	}
	for (i = 0; i < most && !kvt_ioctl(c->fd, KVTIER_OP_EXPORT, &x); i++)
		bufs[i] = x.fd;
	return i;
}

TEST_F(fixed, exports_leave_some)
{
	int bufs[3 * ALL], i, got, n = 0;
	struct kvt_client hog[MANY];

	ASSERT_EQ(0, enlarge(self));
	for (i = 0; i < MANY; i++) {
		ASSERT_EQ(0, hog_open(&self->pool, &hog[i], i, 0));
		got = hog_export(&hog[i], bufs + n, ALL / 2 + 1);
		ASSERT_LE(0, got);
		n += got;
	}
	EXPECT_EQ(ALL / 16 * 9, n);
	got = hog_export(&self->modest, bufs + n, ALL / 2);
	EXPECT_EQ(ALL / 32 * 3, got);
	for (i = 0; i < n + got; i++)
		close(bufs[i]);
	hogs_close(hog);
}

/* What is pinned may be leased; it is not counted twice against others, only against its owner. */
TEST_F(fixed, what_is_pinned)
{
	struct kvtier_block_result res;
	struct kvt_client hog;
	struct kvt_key key;
	int i, n = 0;

	ASSERT_EQ(0, enlarge(self));
	ASSERT_EQ(0, hog_open(&self->pool, &hog, 0, 0));
	EXPECT_EQ(ALL / 4 * IN_PIECE, hog_pin(&hog, ALL / 4 * IN_PIECE));
	for (i = 0; i < ALL / 4 * IN_PIECE; i++) {
		key = kvt_key(hog_set(&hog), i);
		n += kvt_get(hog.fd, 0, 0, &key, 1, &res, 0) == 1;
	}
	EXPECT_EQ(ALL / 4 * IN_PIECE, n);
	EXPECT_EQ(ALL / 4 * KVT_PIECE, kvt_ns_number(&self->pool, &hog, "fixed_bytes"));
	/* The rest but the last part is there for another user. */
	EXPECT_EQ(ALL / 4 * 3 - 4, hog_lease(&self->modest, ALL / 4 * 3));
	/* And not for who has much. */
	EXPECT_FALSE(hog_store(&hog, ALL * IN_PIECE, 1));
	EXPECT_TRUE(third_is_served(self));
	kvt_client_close(&hog);
}

/* Nor is all memory to be promised to somebody, and what is left over leased beside that. */
TEST_F(fixed, beside_guarantees)
{
	const int promised = ALL - ALL / 16;
	struct kvt_client hog[MANY];
	int i;

	ASSERT_EQ(0, enlarge(self));
	EXPECT_EQ(-ENOSPC, hog_open(&self->pool, &hog[0], 0, (promised + 1) * KVT_PIECE));
	ASSERT_EQ(0, hog_open(&self->pool, &hog[0], 0, promised * KVT_PIECE));
	EXPECT_EQ(-ENOSPC, hog_open(&self->pool, &hog[1], 1, 1));
	for (i = 1; i < MANY; i++)
		ASSERT_EQ(0, hog_open(&self->pool, &hog[i], i, 0));
	EXPECT_TRUE(hog_store(&hog[0], 0, promised * IN_PIECE));
	EXPECT_EQ(2, hog_lease(&hog[1], 4));
	EXPECT_TRUE(served(self));
	/* What was promised, though, is all his. */
	EXPECT_EQ(promised, hog_lease(&hog[0], promised));
	EXPECT_TRUE(served(self));
	hogs_close(hog);
}

/* A page of one block of each piece's worth stays in a pipe, the blocks go. Pages held. */
static int hog_hold(const struct kvt_client *c, int pieces, int pipe)
{
	struct kvtier_block_result res;
	struct kvt_key key;
	struct iovec page = { .iov_len = 4096 };
	int i, n = 0;

	for (i = 0; i < pieces; i++) {
		if (hog_have(c, i * IN_PIECE, IN_PIECE, &res) != 1)
			break;
		page.iov_base = (void *)kvt_rd(c, res.offset);
		n += vmsplice(pipe, &page, 1, SPLICE_F_NONBLOCK) == 4096;
		kvt_release(c->fd, &res.handle, 1, NULL);
	}
	for (i = 0; i < pieces * IN_PIECE; i++) {
		key = kvt_key(hog_set(c), i);
		kvt_drop(c->fd, 0, &key, 1, NULL);
	}
	return n;
}

static __u64 quarantined(const struct kvt_client *c)
{
	struct kvtier_stat st;

	return kvt_stat(c->fd, KVTIER_STAT_POOL, &st) ? ~0ull : st.regions_quarantined;
}

/* What is in quarantine is nobody's, and not there to be leased beside. */
TEST_F(fixed, beside_quarantine)
{
	struct kvt_client hog[MANY];
	int i, held[2];
	__u64 sum = 0;

	ASSERT_EQ(0, enlarge(self));
	ASSERT_EQ(0, pipe(held));
	ASSERT_EQ(0, hogs_open(&self->pool, hog));
	EXPECT_EQ(ALL / 4, hog_hold(&hog[0], ALL / 4, held[1]));
	/* Whoever takes these regions finds that they cannot be used. */
	EXPECT_TRUE(hog_store(&hog[1], 0, ALL * IN_PIECE));
	EXPECT_EQ(ALL / 4, quarantined(&self->modest));
	for (i = 1; i < MANY; i++)
		hog_lease(&hog[i], ALL);
	for (i = 1; i < MANY; i++)
		sum += kvt_ns_number(&self->pool, &hog[i], "fixed_bytes");
	EXPECT_EQ((ALL / 4 * 3 - 2) * KVT_PIECE, sum);
	EXPECT_TRUE(served(self));
	close(held[0]);
	close(held[1]);
	hogs_close(hog);
}

TEST_F(fixed, only_root_sets_it)
{
	static const char *const bad[] = { "-1", "", "x", "17592186044417", "1 2",
					   "99999999999999999999999" };
	static const char name[] = "fixed_limit_bytes";
	const struct kvt_pool *p = &self->pool;
	long long was = kvt_ns_number(p, &self->greedy, name);
	char path[160];
	size_t i;

	for (i = 0; i < KVT_ARRAY(bad); i++) {
		int err = kvt_ns_set(p, &self->greedy, name, bad[i]);

		/* Nothing written is nothing said. */
		EXPECT_TRUE(!*bad[i] || err == -EINVAL || err == -ERANGE)
			TH_LOG("%s: %d", bad[i], err);
	}
	EXPECT_EQ(was, kvt_ns_number(p, &self->greedy, name));
	EXPECT_EQ(0, kvt_ns_set(p, &self->greedy, name, "4096\n"));
	EXPECT_EQ(4096, kvt_ns_number(p, &self->greedy, name));
	EXPECT_NE(4096, kvt_ns_number(p, &self->modest, name));
	EXPECT_EQ(0, kvt_ns_set(p, &self->greedy, name, "default\n"));
	EXPECT_EQ(was, kvt_ns_number(p, &self->greedy, name));
	snprintf(path, sizeof(path), "/sys/class/kvtier/kvtier%u/namespaces/%llu/%s", p->id,
		 (unsigned long long)self->greedy.ns_id, name);
	ASSERT_EQ(0, kvt_become(GREEDY));
	EXPECT_EQ(-1, open(path, O_WRONLY));
	EXPECT_EQ(-1, open(path, O_RDONLY));
	ASSERT_EQ(0, kvt_become(0));
	EXPECT_GT(0, kvt_ns_set(p, &self->greedy, "fixed_bytes", "0"));
}

struct rush {
	const struct kvt_client *c;
	unsigned int seed;
};

static _Atomic bool rush_ends;
static _Atomic int rush_failed;

/* Leases that come and go, of blocks of all pieces and of one, and reservations. */
static void *rush(void *arg)
{
	struct rush *r = arg;
	__u64 handle, filling;
	unsigned int nr;
	__s32 st;
	int i, got;

	for (i = 0; !rush_ends; i++) {
		nr = rand_r(&r->seed) % PIECES * IN_PIECE + (i % 3 ? 0 : rand_r(&r->seed) % 2);
		st = lease(r->c->fd, nr, &handle);
		if (st == KVTIER_ST_HIT && kvt_release(r->c->fd, &handle, 1, NULL) != 1)
			rush_failed++;
		if (i % 5)
			continue;
		nr = 10000 + r->seed % 1000;
		got = reserve(r->c->fd, nr, &filling, &st);
		if (got == 1 && kvt_abort(r->c->fd, &filling, 1, NULL) != 1)
			rush_failed++;
	}
	return NULL;
}

/* Many at once neither get past the limit nor lose count. */
TEST_F(fixed, many_at_once)
{
	enum { THREADS = 6, MOST = 3 };
	struct rush r[THREADS];
	pthread_t thread[THREADS];
	__u64 seen = 0;
	int i;

	ASSERT_EQ(BLOCKS - IN_PIECE, store(&self->greedy, SET, 0, BLOCKS - IN_PIECE));
	ASSERT_EQ(0, limit(self, MOST));
	for (i = 0; i < THREADS; i++) {
		r[i] = (struct rush){ &self->greedy, i + 1 };
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, rush, &r[i]));
	}
	for (i = 0; i < kvt_env_many(60, 1000); i++) {
		__u64 now = fixed_bytes(self);

		seen = now > seen ? now : seen;
		kvt_sleep_ms(10);
	}
	rush_ends = true;
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	EXPECT_EQ(0, rush_failed);
	EXPECT_LT(0, refused(self));
	/* Each call may have asked for a piece that it is about to be refused. */
	EXPECT_GE((MOST + THREADS) * KVT_PIECE, seen);
	EXPECT_EQ(0, fixed_bytes(self));
	/* Nobody's pieces were lost, and none is had twice. */
	EXPECT_EQ(MOST, lease_sparsely(self, PIECES - 1, NULL));
	EXPECT_EQ(MOST * KVT_PIECE, fixed_bytes(self));
	EXPECT_TRUE(served(self));
}

TEST_HARNESS_MAIN
