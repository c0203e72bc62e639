// SPDX-License-Identifier: GPL-2.0
/*
 * Memory changes hands: what one namespace had becomes another's only after every
 * mapping of it is gone, nobody holds a page of it, and it has been wiped.
 *
 * Foreign references are made with vmsplice: a pipe holds the pages themselves, as
 * a device would, and gives them back when it is read or closed.
 */
#include "kvt_test.h"
#include <sys/uio.h>

#define BLOCK_BYTES	(64 * KVT_KIB)
#define TIER_BYTES	(8 * KVT_MIB)
#define SLOTS		((int)(TIER_BYTES / BLOCK_BYTES))
#define SET_A		9
#define SET_B		10
#define ALICE		1001

FIXTURE(handover)
{
	struct kvt_pool pool;
	struct kvt_client a;
	struct kvt_client b;
	int pipe[2];
};

FIXTURE_VARIANT(handover)
{
	bool dax;
};

FIXTURE_VARIANT_ADD(handover, dram) { .dax = false };
FIXTURE_VARIANT_ADD(handover, dax) { .dax = true };

FIXTURE_SETUP(handover)
{
	if (variant->dax && !kvt_env_dax())
		SKIP(return, "no device-dax instance to use (KVT_DAX)");
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, variant->dax ? kvt_tier_dax(&self->pool, 0, TIER_BYTES) :
				    kvt_tier_dram(&self->pool, 0, TIER_BYTES));
	/* Who came first goes first. */
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "policy", "lru"));
	/* Free slots are found by reserving all there are. */
	ASSERT_EQ(0, kvt_sysfs_write(&self->pool, "reserve_percent", "100"));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->a, "tenant a", BLOCK_BYTES));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->b, "tenant b", BLOCK_BYTES));
	ASSERT_EQ(0, pipe2(self->pipe, O_CLOEXEC));
}

FIXTURE_TEARDOWN(handover)
{
	close(self->pipe[0]);
	close(self->pipe[1]);
	kvt_client_close(&self->a);
	kvt_client_close(&self->b);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

/* Have the pipe hold the page that @p is in. */
static int hold_page(int pipe_in, void *p)
{
	struct iovec iov = { .iov_base = p, .iov_len = 4096 };

	return (int)vmsplice(pipe_in, &iov, 1, 0);
}

/* Take it out again and see what is in it. */
static bool held_page_is(int pipe_out, const struct kvt_key *key)
{
	char page[4096], want[4096];

	kvt_fill(want, key, sizeof(want));
	return read(pipe_out, page, sizeof(page)) == sizeof(page) &&
	       !memcmp(page, want, sizeof(page));
}

/* Blocks without a chain: each can go without another. */
static int put_roots(const struct kvt_client *c, __u32 set, int first, int nr)
{
	struct kvt_key key;
	int i, ret, done = 0;

	for (i = first; i < first + nr; i++) {
		key = kvt_key(set, i);
		ret = kvt_put(c, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1);
		if (ret < 0)
			return ret;
		done += ret;
	}
	return done;
}

static bool all_zero(const void *p, size_t bytes)
{
	const __u64 *w = p;
	size_t i;

	for (i = 0; i < bytes / sizeof(*w); i++)
		if (w[i])
			return false;
	return true;
}

/* Slots that can be reserved at once; they are given up again. */
static int free_slots(const struct kvt_client *c, __u32 set, __u64 *offset)
{
	struct kvtier_block_result res[SLOTS];
	struct kvt_key keys[SLOTS], roots[SLOTS];
	__u64 handle[SLOTS];
	int i, n = 0;

	memset(roots, 0, sizeof(roots));
	kvt_keys(keys, set, 100000, SLOTS);
	if (kvt_reserve(c->fd, KVTIER_RESERVE_WAIT | KVTIER_RESERVE_PARENTS, 0, keys, roots, SLOTS,
			res, 300 * KVT_MSEC) < 0)
		return -1;
	for (i = 0; i < SLOTS; i++) {
		if (res[i].status != KVTIER_ST_RESERVED)
			continue;
		if (offset)
			offset[n] = res[i].offset - c->wr.start;
		handle[n++] = res[i].handle;
	}
	if (n)
		kvt_abort(c->fd, handle, n, NULL);
	return n;
}

/* --- the old owner's mappings ------------------------------------------------------ */

struct stale {
	const struct kvt_client *c;
	struct kvt_key key[SLOTS];
	__u64 offset[SLOTS];
	int nr;
};

/* Reads what it has mapped, over and over: its own bytes or a signal, nothing else. */
static int stale_reader(struct kvt_child *me, void *arg)
{
	const struct stale *s = arg;
	int i, ret, lost = 0;
	bool last;

	KVT_CHILD_CHECK(!kvt_say(me, 0));
	do {
		/* Once more after all that is to be lost has been. */
		last = kvt_hear(me, 0) != -ETIMEDOUT;
		for (i = 0, lost = 0; i < s->nr; i++) {
			ret = kvt_bytes_probe(kvt_rd(s->c, s->offset[i]), &s->key[i], BLOCK_BYTES);
			KVT_CHILD_CHECK(ret == 1 || ret == -SIGBUS);
			lost += ret == -SIGBUS;
		}
	} while (!last);
	KVT_CHILD_CHECK(!kvt_say(me, lost));
	return 0;
}

/* Where the blocks lie, mapped and touched, but not leased. */
static int map_unleased(const struct kvt_client *c, struct stale *s)
{
	struct kvtier_block_result res;
	int i;

	s->c = c;
	for (i = 0; i < s->nr; i++) {
		s->key[i] = kvt_key(SET_A, i);
		if (kvt_get(c->fd, 0, 0, &s->key[i], 1, &res, 0) != 1)
			return -ENOENT;
		s->offset[i] = res.offset;
		if (kvt_touch_read(kvt_rd(c, res.offset)) ||
		    kvt_release(c->fd, &res.handle, 1, NULL) != 1)
			return -EIO;
	}
	return 0;
}

/* The new owner stores, and finds zeroes where it is the first to write. */
static int store_on_zeroes(const struct kvt_client *c, const struct stale *s, int nr,
			   int *inherited)
{
	struct kvtier_block_result res, done;
	bool used[SLOTS * 2] = { false };
	struct kvt_key key;
	__u64 at;
	int i, k;

	for (i = 0; i < nr; i++) {
		key = kvt_key(SET_B, i);
		if (kvt_reserve(c->fd, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1, &res,
				10 * KVT_SEC) != 1)
			return -ENOSPC;
		at = res.offset - c->wr.start;
		for (k = 0; k < s->nr && s->offset[k] != at; k++)
			;
		if (!used[at / BLOCK_BYTES] && !all_zero(kvt_wr(c, res.offset), BLOCK_BYTES))
			return -EBADMSG;
		*inherited += k < s->nr && !used[at / BLOCK_BYTES];
		used[at / BLOCK_BYTES] = true;
		kvt_fill(kvt_wr(c, res.offset), &key, BLOCK_BYTES);
		if (kvt_commit(c->fd, 0, &res.handle, 1, &done) != 1)
			return -EIO;
	}
	return 0;
}

TEST_F(handover, old_mappings_never_see_new_bytes)
{
	struct stale s = { .nr = SLOTS * 7 / 8 };
	struct kvt_child reader;
	struct kvtier_stat st;
	int i, inherited = 0, lost;

	ASSERT_EQ(s.nr, put_roots(&self->a, SET_A, 0, s.nr));
	ASSERT_EQ(0, map_unleased(&self->a, &s));
	ASSERT_EQ(0, kvt_spawn(&reader, stale_reader, &s));
	ASSERT_EQ(0, kvt_hear(&reader, 20000));
	EXPECT_EQ(0, store_on_zeroes(&self->b, &s, SLOTS, &inherited));
	kvt_say(&reader, 0);
	lost = kvt_hear(&reader, 60000);
	EXPECT_EQ(0, kvt_join(&reader, 20000));
	/* It did happen: slots were inherited, and the reader lost its mappings. */
	EXPECT_LT(SLOTS / 2, inherited);
	EXPECT_LT(SLOTS / 2, lost);
	ASSERT_EQ(0, kvt_stat(self->a.fd, 0, &st));
	EXPECT_LT(0, st.evictions);
	for (i = 0; i < SLOTS; i++) {
		struct kvt_key key = kvt_key(SET_B, i);
		int ret = kvt_check(&self->b, 0, &key, 1, 20 * KVT_SEC);

		EXPECT_TRUE(ret == 0 || ret == 1) TH_LOG("block %d: %d", i, ret);
	}
}

/* A leased block's region stays, however much another wants it. */
TEST_F(handover, leased_region_stays)
{
	struct kvt_key key = kvt_key(SET_A, 0);
	struct kvtier_block_result res;
	int n;

	ASSERT_EQ(1, put_roots(&self->a, SET_A, 0, 1));
	ASSERT_EQ(1, kvt_get(self->a.fd, 0, 0, &key, 1, &res, 0));
	n = free_slots(&self->b, SET_B, NULL);
	EXPECT_LT(0, n);
	EXPECT_GT(SLOTS, n);
	EXPECT_TRUE(kvt_bytes_ok(kvt_rd(&self->a, res.offset), &key, BLOCK_BYTES));
	EXPECT_EQ(1, kvt_release(self->a.fd, &res.handle, 1, NULL));
	EXPECT_TRUE(KVT_UNTIL(10000, free_slots(&self->b, SET_B, NULL) == SLOTS));
	EXPECT_EQ(SIGBUS, kvt_touch_read(kvt_rd(&self->a, res.offset)));
}

/* --- foreign references ------------------------------------------------------------- */

TEST_F(handover, commit_of_a_held_slot_is_refused)
{
	struct kvt_key key = kvt_key(SET_A, 0);
	struct kvtier_block_result res, done;
	struct kvtier_lookup_result look;
	char *slot;

	ASSERT_EQ(1, kvt_reserve(self->a.fd, 0, 0, &key, NULL, 1, &res, 0));
	slot = kvt_wr(&self->a, res.offset);
	kvt_fill(slot, &key, BLOCK_BYTES);
	ASSERT_EQ(4096, hold_page(self->pipe[1], slot + 8 * 4096));
	EXPECT_EQ(0, kvt_commit(self->a.fd, 0, &res.handle, 1, &done));
	EXPECT_EQ(KVTIER_ST_PINNED, done.status);
	/* The reservation stands: nobody else sees it, and it can be written. */
	EXPECT_EQ(0, kvt_lookup(self->a.fd, 0, &key, 1, &look));
	EXPECT_EQ(KVTIER_ST_FILLING, look.status);
	EXPECT_EQ(0, kvt_touch_write(slot, 0));
	kvt_fill(slot, &key, 4096);
	ASSERT_EQ(4096, read(self->pipe[0], slot + 8 * 4096, 4096));
	EXPECT_EQ(1, kvt_commit(self->a.fd, 0, &res.handle, 1, &done));
	EXPECT_EQ(KVTIER_ST_DONE, done.status);
	EXPECT_EQ(1, kvt_check(&self->a, 0, &key, 1, 0));
}

/* Store, read and forget blocks all over memory, with a page of each region in a pipe. */
static int hold_regions(const struct kvt_client *c, int pipe_in, int nr)
{
	struct kvtier_block_result res;
	bool held[SLOTS] = { false };
	struct kvt_key key;
	int i, regions = 0, ret;

	ret = put_roots(c, SET_A, 0, nr);
	for (i = 0; i < nr && ret == nr; i++) {
		__u64 piece;

		key = kvt_key(SET_A, i);
		if (kvt_get(c->fd, 0, 0, &key, 1, &res, 0) != 1)
			return -ENOENT;
		piece = (res.offset - c->rd.start) / (2 * KVT_MIB);
		if (!held[piece] && hold_page(pipe_in, kvt_rd(c, res.offset)) != 4096)
			return -EIO;
		regions += !held[piece];
		held[piece] = true;
		kvt_release(c->fd, &res.handle, 1, NULL);
		kvt_drop(c->fd, 0, &key, 1, NULL);
	}
	return ret == nr ? regions : -ENOSPC;
}

/*
 * Whose regions others refer to has had them: there are no more for him at others' cost
 * before those references have gone.
 */
TEST_F(handover, held_regions_are_the_holders_loss)
{
	int regions = hold_regions(&self->a, self->pipe[1], SLOTS * 3 / 4), n, i, there = 0;
	struct kvt_key key = kvt_key(SET_A, 1000);
	struct kvtier_stat st = { 0 };
	char page[4096];

	ASSERT_EQ(3, regions);
	/* The neighbour gets what is left, and stores there. */
	ASSERT_TRUE(KVT_UNTIL(20000, (n = free_slots(&self->b, SET_B, NULL)) == SLOTS / 4 &&
			      !kvt_stat(self->b.fd, KVTIER_STAT_POOL, &st) &&
			      st.regions_quarantined == 3));
	ASSERT_EQ(n, put_roots(&self->b, SET_B, 0, n));
	EXPECT_EQ(0, free_slots(&self->a, SET_A, NULL));
	EXPECT_EQ(0, kvt_put(&self->a, 0, 0, &key, NULL, 1));
	for (i = 0; i < n; i++) {
		key = kvt_key(SET_B, i);
		there += kvt_check(&self->b, 0, &key, 1, 0) == 1;
	}
	EXPECT_EQ(n, there);
	for (i = 0; i < regions; i++)
		ASSERT_EQ(4096, read(self->pipe[0], page, sizeof(page)));
	EXPECT_TRUE(KVT_UNTIL(10000, free_slots(&self->a, SET_A, NULL) >= SLOTS * 3 / 4));
}

/* In a batch only the held slot is refused. */
TEST_F(handover, one_held_slot_of_many)
{
	struct kvt_key keys[3], roots[3] = { 0 };
	struct kvtier_block_result res[3], done[3];
	__u64 handle[3];
	int i, pinned = 0;

	kvt_keys(keys, SET_A, 0, 3);
	ASSERT_EQ(3, kvt_reserve(self->a.fd, KVTIER_RESERVE_PARENTS, 0, keys, roots, 3, res, 0));
	for (i = 0; i < 3; i++) {
		kvt_fill(kvt_wr(&self->a, res[i].offset), &keys[i], BLOCK_BYTES);
		handle[i] = res[i].handle;
	}
	ASSERT_EQ(4096, hold_page(self->pipe[1], kvt_wr(&self->a, res[1].offset)));
	kvt_commit(self->a.fd, 0, handle, 3, done);
	EXPECT_EQ(KVTIER_ST_PINNED, done[1].status);
	for (i = 0; i < 3; i++)
		pinned += done[i].status == KVTIER_ST_PINNED;
	/* Compound pages are counted as a whole: there, neighbours wait along. */
	if (!variant->dax)
		EXPECT_EQ(1, pinned);
	EXPECT_TRUE(held_page_is(self->pipe[0], &keys[1]));
	for (i = 0; i < 3; i++)
		if (done[i].status == KVTIER_ST_PINNED)
			EXPECT_EQ(1, kvt_commit(self->a.fd, 0, &handle[i], 1, &done[i]));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(1, kvt_check(&self->a, 0, &keys[i], 1, 0));
}

static bool among(const __u64 *offset, int nr, __u64 one)
{
	int i;

	for (i = 0; i < nr; i++)
		if (offset[i] == one)
			return true;
	return false;
}

/* A slot given up while somebody holds a page of it is not given out again. */
TEST_F(handover, held_slot_is_not_reissued)
{
	struct kvt_key key = kvt_key(SET_A, 0);
	struct kvtier_block_result res;
	__u64 offset[SLOTS], at;
	int n;

	ASSERT_EQ(1, kvt_reserve(self->a.fd, 0, 0, &key, NULL, 1, &res, 0));
	at = res.offset - self->a.wr.start;
	kvt_fill(kvt_wr(&self->a, res.offset), &key, BLOCK_BYTES);
	ASSERT_EQ(4096, hold_page(self->pipe[1], kvt_wr(&self->a, res.offset)));
	EXPECT_EQ(1, kvt_abort(self->a.fd, &res.handle, 1, NULL));
	n = free_slots(&self->a, SET_A, offset);
	EXPECT_LT(0, n);
	EXPECT_FALSE(among(offset, n, at));
	n = free_slots(&self->b, SET_B, offset);
	EXPECT_FALSE(among(offset, n, at));
	EXPECT_TRUE(held_page_is(self->pipe[0], &key));
	/* Given back, it is a slot like any other. */
	EXPECT_TRUE(KVT_UNTIL(10000, free_slots(&self->b, SET_B, offset) == SLOTS));
}

struct pinned_filler {
	const struct kvt_pool *pool;
	int pipe_in;
};

/* Reserves, fills, has a page held by its parent's pipe, and waits to be killed. */
static int pinned_filler(struct kvt_child *me, void *arg)
{
	const struct pinned_filler *f = arg;
	struct kvt_key key = kvt_key(SET_A, 0);
	struct kvtier_block_result res;
	struct kvt_client c;

	KVT_CHILD_CHECK(!kvt_client_open(f->pool, &c, "tenant a", BLOCK_BYTES));
	KVT_CHILD_CHECK(kvt_reserve(c.fd, 0, 0, &key, NULL, 1, &res, 0) == 1);
	kvt_fill(kvt_wr(&c, res.offset), &key, BLOCK_BYTES);
	KVT_CHILD_CHECK(hold_page(f->pipe_in, kvt_wr(&c, res.offset)) == 4096);
	KVT_CHILD_CHECK(!kvt_say(me, (int)((res.offset - c.wr.start) / BLOCK_BYTES)));
	kvt_hear(me, 60000);
	return 1;
}

TEST_F(handover, held_slot_of_a_killed_filler)
{
	struct pinned_filler f = { &self->pool, self->pipe[1] };
	struct kvt_key key = kvt_key(SET_A, 0);
	__u64 offset[SLOTS], at;
	struct kvt_child child;
	int n;

	ASSERT_EQ(0, kvt_spawn(&child, pinned_filler, &f));
	n = kvt_hear(&child, 20000);
	ASSERT_LE(0, n);
	at = n * BLOCK_BYTES;
	kvt_kill(&child, SIGKILL);
	ASSERT_EQ(-SIGKILL, kvt_join(&child, 10000));
	n = free_slots(&self->b, SET_B, offset);
	EXPECT_LT(0, n);
	EXPECT_FALSE(among(offset, n, at));
	n = free_slots(&self->a, SET_A, offset);
	EXPECT_FALSE(among(offset, n, at));
	EXPECT_TRUE(held_page_is(self->pipe[0], &key));
	EXPECT_TRUE(KVT_UNTIL(10000, free_slots(&self->b, SET_B, offset) == SLOTS));
}

static __u64 quarantined(const struct kvt_client *c, __u64 *bytes)
{
	struct kvtier_tier_stat tiers[KVTIER_TIERS_MAX];
	struct kvtier_stat st;

	if (kvt_tier_stats(c->fd, &st, tiers) < 0)
		return ~0ull;
	if (bytes)
		*bytes = tiers[0].quarantined_bytes;
	return st.regions_quarantined;
}

/*
 * A page of a committed block, held by a pipe: the block may go, its memory may not
 * go to anybody else, and what the pipe has stays what it was.
 */
TEST_F(handover, quarantine)
{
	struct kvt_key key = kvt_key(SET_A, 0);
	struct kvtier_block_result res;
	__u64 offset[SLOTS], bytes = 0;
	int n;

	ASSERT_EQ(1, put_roots(&self->a, SET_A, 0, 1));
	ASSERT_EQ(1, kvt_get(self->a.fd, 0, 0, &key, 1, &res, 0));
	ASSERT_EQ(4096, hold_page(self->pipe[1], kvt_rd(&self->a, res.offset)));
	EXPECT_EQ(1, kvt_release(self->a.fd, &res.handle, 1, NULL));
	EXPECT_EQ(1, kvt_drop(self->a.fd, 0, &key, 1, NULL));
	EXPECT_TRUE(KVT_UNTIL(10000, ({
		n = free_slots(&self->b, SET_B, offset);
		quarantined(&self->a, &bytes) == 1 && bytes == KVT_PIECE;
	})));
	EXPECT_LT(0, n);
	EXPECT_GE(SLOTS - (int)(KVT_PIECE / BLOCK_BYTES), n);
	EXPECT_FALSE(among(offset, n, res.offset));
	EXPECT_EQ(SIGBUS, kvt_touch_read(kvt_rd(&self->a, res.offset)));
	/* The new owner writes all it has; the pipe's page is not among it. */
	ASSERT_EQ(SLOTS, put_roots(&self->b, SET_B, 0, SLOTS));
	EXPECT_TRUE(held_page_is(self->pipe[0], &key));
	EXPECT_TRUE(KVT_UNTIL(10000, quarantined(&self->a, &bytes) == 0 && !bytes));
	EXPECT_TRUE(KVT_UNTIL(10000, free_slots(&self->a, SET_A, offset) == SLOTS));
}

/* As long as anybody has a page of it, whichever of them goes first. */
TEST_F(handover, quarantine_lasts_to_the_last_page)
{
	struct kvtier_block_result res[2];
	struct kvt_key key[2];
	int last[2], *pipes[2] = { self->pipe, last }, first, i;

	ASSERT_EQ(0, pipe2(last, O_CLOEXEC));
	kvt_keys(key, SET_A, 0, 2);
	for (first = 0; first < 2; first++) {
		ASSERT_EQ(2, put_roots(&self->a, SET_A, 0, 2));
		for (i = 0; i < 2; i++) {
			ASSERT_EQ(1, kvt_get(self->a.fd, 0, 0, &key[i], 1, &res[i], 0));
			ASSERT_EQ(4096, hold_page(pipes[i][1], kvt_rd(&self->a, res[i].offset)));
			EXPECT_EQ(1, kvt_release(self->a.fd, &res[i].handle, 1, NULL));
		}
		ASSERT_NE(res[0].offset, res[1].offset);
		ASSERT_EQ(res[0].offset / KVT_PIECE, res[1].offset / KVT_PIECE);
		EXPECT_EQ(2, kvt_drop(self->a.fd, 0, key, 2, NULL));
		EXPECT_TRUE(KVT_UNTIL(10000, ({
			free_slots(&self->b, SET_B, NULL);
			quarantined(&self->a, NULL) == 1;
		})));
		EXPECT_TRUE(held_page_is(pipes[first][0], &key[first]));
		EXPECT_FALSE(KVT_UNTIL(400, quarantined(&self->a, NULL) == 0));
		/* The new owner writes all it has. */
		ASSERT_EQ(SLOTS, put_roots(&self->b, SET_B, first * SLOTS, SLOTS));
		EXPECT_TRUE(held_page_is(pipes[!first][0], &key[!first]));
		EXPECT_TRUE(KVT_UNTIL(10000, quarantined(&self->a, NULL) == 0));
	}
	close(last[0]);
	close(last[1]);
}

/* The same with a pipe that is closed instead of read. */
TEST_F(handover, quarantine_ends_with_the_pipe)
{
	struct kvt_key key = kvt_key(SET_A, 0);
	struct kvtier_block_result res;

	ASSERT_EQ(1, put_roots(&self->a, SET_A, 0, 1));
	ASSERT_EQ(1, kvt_get(self->a.fd, 0, 0, &key, 1, &res, 0));
	ASSERT_EQ(4096, hold_page(self->pipe[1], kvt_rd(&self->a, res.offset)));
	/* Its owner is gone altogether. */
	kvt_client_close(&self->a);
	EXPECT_TRUE(KVT_UNTIL(10000, ({
		free_slots(&self->b, SET_B, NULL);
		quarantined(&self->b, NULL) == 1;
	})));
	close(self->pipe[0]);
	close(self->pipe[1]);
	EXPECT_TRUE(KVT_UNTIL(10000, quarantined(&self->b, NULL) == 0));
	EXPECT_TRUE(KVT_UNTIL(10000, free_slots(&self->b, SET_B, NULL) == SLOTS));
	ASSERT_EQ(0, pipe2(self->pipe, O_CLOEXEC));
}

/* --- another device node -------------------------------------------------------------- */

/* Mappings made through a node of one's own are taken away like all others. */
TEST_F(handover, mappings_through_another_node)
{
	struct kvtier_group g = { .block_bytes = BLOCK_BYTES };
	struct kvt_key key = kvt_key(SET_A, 0);
	struct kvtier_block_result res, done;
	struct kvtier_ns_open a;
	struct kvt_client c;
	int fd = open(self->pool.open_node, O_RDWR | O_CLOEXEC);

	ASSERT_LE(0, fd);
	kvt_ns_args(&a, "tenant a", &g, 1);
	ASSERT_EQ(0, kvt_client_bind(&c, fd, &a));
	ASSERT_EQ(1, kvt_reserve(c.fd, 0, 0, &key, NULL, 1, &res, 0));
	kvt_fill(kvt_wr(&c, res.offset), &key, BLOCK_BYTES);
	ASSERT_EQ(1, kvt_commit(c.fd, KVTIER_COMMIT_LEASE, &res.handle, 1, &done));
	EXPECT_EQ(SIGBUS, kvt_touch_write(kvt_wr(&c, res.offset), 1));
	EXPECT_EQ(0, kvt_touch_read(kvt_rd(&c, done.offset)));
	EXPECT_EQ(1, kvt_release(c.fd, &done.handle, 1, NULL));
	EXPECT_TRUE(KVT_UNTIL(10000, free_slots(&self->b, SET_B, NULL) == SLOTS));
	EXPECT_EQ(SIGBUS, kvt_touch_read(kvt_rd(&c, done.offset)));
	kvt_client_close(&c);
}

TEST_HARNESS_MAIN
