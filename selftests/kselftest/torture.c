// SPDX-License-Identifier: GPL-2.0
/*
 * Everything at once: readers that compare every byte, fillers, an evictor, a drainer, a
 * poisoner and a killer, on one pool of two tiers of memory and a disk. Whatever happens, no
 * read may see wrong bytes, and afterwards nothing is left over. All of them work all the time:
 * memory that is not used again is had anew, so pages go bad at the end as at the beginning.
 *
 * A read may end in SIGBUS only because a page has gone bad. KVT_TORTURE_SECONDS says how
 * long it lasts.
 */
#include "kvt_test.h"
#include <stdatomic.h>

#define BLOCK_BYTES	(32 * KVT_KIB)
#define CHAINS		64
#define CHAIN		6
#define SET		41
#define DRAM_BYTES	(6 * KVT_MIB)
#define DAX_BYTES	(6 * KVT_MIB)
#define BDEV_BYTES	(20 * KVT_MIB)
#define READERS		2
#define FILLERS		2
#define CLIENTS		(READERS + FILLERS + 1)
#define BAD_EACH_S	5	/* a page at least in so many seconds */
#define LINGERS_MS	50

/* What has been done, by all of them. */
struct shared {
	_Atomic bool stop;
	_Atomic bool calm;	/* no memory goes any more */
	_Atomic __u32 watched;	/* one more than the chain that a reader has in the dax tier now */
	_Atomic __u64 blocks_read;
	_Atomic __u64 blocks_copied;
	_Atomic __u64 wrong;
	_Atomic __u64 bus_errors;
	_Atomic __u64 filled;
	_Atomic __u64 churned;
	_Atomic __u64 drains;
	_Atomic __u64 drains_refused;
	_Atomic __u64 bad_pages;
	_Atomic __u64 forgets;
	_Atomic __u64 kills;
};

struct actor {
	const struct kvt_pool *pool;
	struct shared *shared;
	unsigned int seed;
	int (*fn)(struct kvt_child *me, void *arg);
	struct kvt_child child;
};

FIXTURE(torture)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct shared *shared;
	struct actor *actor;
};

FIXTURE_SETUP(torture)
{
	if (!kvt_env_dax() || !kvt_env_bdev())
		SKIP(return, "no device-dax instance or no block device (KVT_DAX, KVT_BDEV)");
	if (!kvt_bad_can())
		SKIP(return, "this kernel cannot be told that a page is bad");
	/* Sent to whoever has a bad page mapped; those who touch it look for it. */
	signal(SIGBUS, SIG_IGN);
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, DRAM_BYTES));
	ASSERT_LE(0, kvt_tier_dax(&self->pool, 1, DAX_BYTES));
	ASSERT_LE(0, kvt_tier_bdev(&self->pool, 2, BDEV_BYTES));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "torture", BLOCK_BYTES));
	self->shared = mmap(NULL, sizeof(*self->shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->shared);
	self->actor = calloc(CLIENTS + 2, sizeof(*self->actor));
}

FIXTURE_TEARDOWN(torture)
{
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	EXPECT_EQ(0, kvt_bad_forget());
	/* No reference is left behind, and the next test has it loaded again. */
	EXPECT_EQ(0, kvt_sh("rmmod kvtier"));
	EXPECT_EQ(0, kvt_sh("modprobe kvtier"));
	free(self->actor);
}

static void chain(struct kvt_key *keys, __u32 nr)
{
	kvt_keys(keys, SET, (__u64)nr * CHAIN, CHAIN);
}

static __u32 pick_chain(struct actor *a, struct kvt_key *keys)
{
	__u32 nr = rand_r(&a->seed) % CHAINS;

	chain(keys, nr);
	return nr;
}

static int tier_of_rank(const struct kvt_pool *p, __u32 rank)
{
	struct kvtier_tier_info tiers[KVTIER_TIERS_MAX];
	struct kvtier_query q;
	int fd = kvt_open(p), nr, i, id = -ENOENT;

	nr = fd < 0 ? fd : kvt_query(fd, &q, tiers);
	for (i = 0; i < nr; i++)
		if (tiers[i].rank == rank)
			id = tiers[i].id;
	if (fd >= 0)
		close(fd);
	return id;
}

static void saw(struct actor *a, int ret, const struct kvt_key *key)
{
	if (ret == 1)
		return;
	if (ret < 0) {
		a->shared->bus_errors++;
		return;
	}
	a->shared->wrong++;
	fprintf(stderr, "# wrong bytes of key %02x%02x%02x%02x\n", key->b[0], key->b[1], key->b[2],
		key->b[3]);
}

static void compare(struct actor *a, const struct kvt_client *c, const struct kvt_key *keys,
		    const struct kvtier_block_result *res, int nr)
{
	int i;

	for (i = 0; i < nr; i++) {
		saw(a, kvt_bytes_probe(kvt_rd(c, res[i].offset), &keys[i], BLOCK_BYTES), &keys[i]);
		a->shared->blocks_read++;
	}
}

/* Let the poisoner know what it can take from under somebody, and give it time to. */
static void linger(struct actor *a, __u32 nr, const struct kvtier_block_result *res, int n)
{
	int dax = tier_of_rank(a->pool, 1), i;

	for (i = 0; i < n && (int)res[i].tier != dax; i++)
		;
	if (i == n)
		return;
	a->shared->watched = nr + 1;
	kvt_sleep_ms(LINGERS_MS);
	a->shared->watched = 0;
}

static void read_mapped(struct actor *a, const struct kvt_client *c)
{
	struct kvtier_block_result res[CHAIN];
	struct kvt_key keys[CHAIN];
	__u64 handle[CHAIN];
	__u32 nr = pick_chain(a, keys);
	int i, n;

	n = kvt_get(c->fd, KVTIER_GET_WAIT, 0, keys, CHAIN, res, KVT_SEC);
	compare(a, c, keys, res, n);
	if (n > 0 && rand_r(&a->seed) % 8 == 0) {
		linger(a, nr, res, n);
		compare(a, c, keys, res, n);
	}
	for (i = 0; i < n; i++)
		handle[i] = res[i].handle;
	if (n > 0)
		kvt_release(c->fd, handle, n, NULL);
}

static void read_copied(struct actor *a, const struct kvt_client *c, char *buf)
{
	struct kvt_key keys[CHAIN];

	pick_chain(a, keys);
	memset(buf, 0x5a, BLOCK_BYTES);
	if (kvt_read1(c->fd, 0, &keys[0], buf, BLOCK_BYTES, KVT_SEC) != KVTIER_ST_HIT)
		return;
	saw(a, kvt_bytes_ok(buf, &keys[0], BLOCK_BYTES), &keys[0]);
	a->shared->blocks_copied++;
}

static int reader(struct kvt_child *me, void *arg)
{
	char *buf = malloc(BLOCK_BYTES);
	struct actor *a = arg;
	struct kvt_client c;

	(void)me;
	KVT_CHILD_CHECK(!kvt_client_open(a->pool, &c, "torture", BLOCK_BYTES));
	while (!a->shared->stop) {
		if (rand_r(&a->seed) % 8)
			read_mapped(a, &c);
		else
			read_copied(a, &c, buf);
	}
	kvt_client_close(&c);
	free(buf);
	return 0;
}

/* Reserve, fill and commit, in a way that bad pages are survived; sometimes give up. */
static void fill_chain(struct actor *a, const struct kvt_client *c)
{
	struct kvtier_block_result res[CHAIN], done[CHAIN];
	char *block = malloc(BLOCK_BYTES);
	struct kvt_key keys[CHAIN];
	__u64 handle[CHAIN];
	int i, nr = 0;

	pick_chain(a, keys);
	if (kvt_reserve(c->fd, KVTIER_RESERVE_WAIT, 0, keys, NULL, CHAIN, res, KVT_SEC) < 0)
		nr = -1;
	for (i = 0; nr >= 0 && i < CHAIN; i++) {
		if (res[i].status != KVTIER_ST_RESERVED)
			continue;
		kvt_fill(block, &keys[i], BLOCK_BYTES);
		/* If a page has gone there is SIGBUS, and COMMIT says STALE. */
		kvt_copy_probe(kvt_wr(c, res[i].offset), block, BLOCK_BYTES);
		handle[nr++] = res[i].handle;
	}
	free(block);
	if (nr <= 0)
		return;
	if (rand_r(&a->seed) % 10 == 0) {
		kvt_abort(c->fd, handle, nr, NULL);
		return;
	}
	nr = kvt_commit(c->fd, 0, handle, nr, done);
	a->shared->filled += nr > 0 ? nr : 0;
}

static int filler(struct kvt_child *me, void *arg)
{
	char *buf = malloc(BLOCK_BYTES);
	struct actor *a = arg;
	struct kvt_client c;
	struct kvt_key key;

	(void)me;
	KVT_CHILD_CHECK(!kvt_client_open(a->pool, &c, "torture", BLOCK_BYTES));
	while (!a->shared->stop) {
		if (rand_r(&a->seed) % 8) {
			fill_chain(a, &c);
			continue;
		}
		kvt_keys(&key, SET, rand_r(&a->seed) % CHAINS * CHAIN, 1);
		kvt_fill(buf, &key, BLOCK_BYTES);
		a->shared->filled += kvt_write1(c.fd, 0, &key, NULL, buf, BLOCK_BYTES, KVT_SEC) ==
				     KVTIER_ST_DONE;
	}
	kvt_client_close(&c);
	free(buf);
	return 0;
}

/* Another tenant that needs room for what is never asked for, and drops of ours. */
static int evictor(struct kvt_child *me, void *arg)
{
	char *buf = calloc(1, BLOCK_BYTES);
	struct kvt_client c, ours;
	struct kvt_key keys[CHAIN];
	struct actor *a = arg;
	__u64 i = a->seed * 100000ull;

	(void)me;
	KVT_CHILD_CHECK(!kvt_client_open(a->pool, &c, "churn", BLOCK_BYTES));
	KVT_CHILD_CHECK(!kvt_client_open(a->pool, &ours, "torture", BLOCK_BYTES));
	for (; !a->shared->stop; i++) {
		keys[0] = kvt_key(SET + 1, i);
		a->shared->churned += kvt_write1(c.fd, 0, &keys[0], NULL, buf, BLOCK_BYTES,
						 KVT_SEC) == KVTIER_ST_DONE;
		pick_chain(a, keys);
		if (i % 4 == 0)
			kvt_advise(ours.fd, 0, keys, CHAIN, KVTIER_ADV_COLD, 0, NULL);
		if (i % 16 == 0)
			kvt_drop(ours.fd, 0, keys, CHAIN, NULL);
		if (i % 32 == 0)
			kvt_prefetch(ours.fd, 0, 0, keys, CHAIN, 0, -1);
	}
	kvt_client_close(&c);
	kvt_client_close(&ours);
	free(buf);
	return 0;
}

/* Pieces with bad pages do not come back: with one good one left there would soon be none. */
static int attach_dax(struct actor *a)
{
	int id = kvt_tier_dax(a->pool, 1, DAX_BYTES);

	if (id < 0 || kvt_retired(a->pool, "dax1") <= (long long)KVT_PIECE)
		return id;
	if (kvt_tier_detach(a->pool, id, KVTIER_DETACH_DISCARD, KVT_SEC))
		return id;
	KVT_CHILD_CHECK(!kvt_bad_forget());
	a->shared->forgets++;
	return kvt_tier_dax(a->pool, 1, DAX_BYTES);
}

/* Take the dax tier away from under all of them, and give it back. */
static int drainer(struct kvt_child *me, void *arg)
{
	struct actor *a = arg;
	int id, err;

	(void)me;
	while (!a->shared->calm) {
		/* Long enough for blocks to get there. */
		kvt_sleep_ms(1000 + rand_r(&a->seed) % 1500);
		id = tier_of_rank(a->pool, 1);
		if (id >= 0) {
			err = kvt_tier_detach(a->pool, id, rand_r(&a->seed) % 3 ? 0 :
					      KVTIER_DETACH_DISCARD, KVT_SEC);
			a->shared->drains += !err;
			a->shared->drains_refused += err == -EBUSY;
			KVT_CHILD_CHECK(!err || err == -EBUSY);
			if (err)
				continue;
		}
		id = attach_dax(a);
		KVT_CHILD_CHECK(id >= 0 || id == -EBUSY);
	}
	return 0;
}

/* A page of some block that lies in the dax tier, while it is leased: by a reader, if one can. */
static bool poison_one(struct actor *a, const struct kvt_client *c)
{
	int dax = tier_of_rank(a->pool, 1), i, n;
	struct kvtier_block_result res[CHAIN];
	/* Once: who has said it may have been killed. */
	__u32 watched = atomic_exchange(&a->shared->watched, 0);
	struct kvt_key keys[CHAIN];
	__u64 handle[CHAIN], phys = 0;
	char *page;

	if (watched)
		chain(keys, watched - 1);
	else
		pick_chain(a, keys);
	n = kvt_get(c->fd, KVTIER_GET_NOPROMOTE, 0, keys, CHAIN, res, 0);
	for (i = 0; i < n; i++) {
		handle[i] = res[i].handle;
		page = (char *)kvt_rd(c, res[i].offset) + rand_r(&a->seed) % 8 * 4096;
		if (!phys && (int)res[i].tier == dax && !kvt_touch_read(page))
			phys = kvt_bad_address(page);
	}
	if (phys && !kvt_bad_make(phys))
		a->shared->bad_pages++;
	if (n > 0)
		kvt_release(c->fd, handle, n, NULL);
	return phys;
}

static int poisoner(struct kvt_child *me, void *arg)
{
	struct actor *a = arg;
	struct kvt_client c;

	(void)me;
	KVT_CHILD_CHECK(!kvt_client_open(a->pool, &c, "torture", BLOCK_BYTES));
	while (!a->shared->calm) {
		if (poison_one(a, &c))
			kvt_sleep_ms(1000);
		else
			kvt_sleep_ms(20);
	}
	kvt_client_close(&c);
	return 0;
}

static __u64 seconds(void)
{
	const char *value = getenv("KVT_TORTURE_SECONDS");

	if (value && *value)
		return strtoull(value, NULL, 0);
	if (kvt_env_long())
		return 300;
	return 8;
}

static bool all_did_something(const struct shared *s, const struct kvt_client *c)
{
	struct kvtier_stat st;

	return s->blocks_read && s->blocks_copied && s->filled && s->churned && s->drains &&
	       s->bad_pages >= seconds() / BAD_EACH_S && (s->bus_errors || seconds() < 60) &&
	       s->kills && !kvt_stat(c->fd, KVTIER_STAT_POOL, &st) &&
	       st.evictions && st.demotions && st.promotions;
}

static int start(struct actor *a, unsigned int seed)
{
	a->seed = seed;
	return kvt_spawn(&a->child, a->fn, a);
}

static bool goes_on(const struct shared *s, const struct kvt_client *c, __u64 begin)
{
	__u64 passed = kvt_now_ns() - begin, all = seconds() * KVT_SEC;

	return !s->wrong && (passed < all || (passed < all + KVT_PATIENCE_NS(30 * KVT_SEC) &&
					      !all_did_something(s, c)));
}

static void report(const struct shared *s, const struct kvt_client *c)
{
	struct kvtier_stat st = { 0 };

	kvt_stat(c->fd, KVTIER_STAT_POOL, &st);
	printf("# %llu blocks read, %llu copied, %llu filled, %llu churned; %llu evictions, "
	       "%llu demotions, %llu promotions; %llu drains, %llu refused; %llu bad pages, "
	       "forgotten %llu times, %llu bus errors; %llu kills\n", s->blocks_read,
	       s->blocks_copied, s->filled, s->churned, st.evictions, st.demotions, st.promotions,
	       s->drains, s->drains_refused, s->bad_pages, s->forgets, s->bus_errors, s->kills);
}

/* Are there blocks in the dax tier. */
static bool on_dax(const struct kvt_pool *p, const struct kvt_client *c)
{
	int dax = tier_of_rank(p, 1), i, k, n;
	struct kvtier_lookup_result res[CHAIN];
	struct kvt_key keys[CHAIN];

	for (i = 0; dax >= 0 && i < CHAINS; i++) {
		chain(keys, i);
		n = kvt_lookup(c->fd, 0, keys, CHAIN, res);
		for (k = 0; k < n; k++)
			if ((int)res[k].tier == dax)
				return true;
	}
	return false;
}

/* What is there is right, to the last block, and nobody has any of it. */
static int check_rest(const struct kvt_client *c)
{
	struct kvtier_stat st;
	struct kvt_key keys[CHAIN];
	int i, ret, there = 0;

	if (!KVT_UNTIL(5000, !kvt_stat(c->fd, KVTIER_STAT_POOL, &st) && !st.leases &&
			     !st.regions_quarantined))
		return -EBUSY;
	for (i = 0; i < CHAINS; i++) {
		chain(keys, i);
		ret = kvt_check(c, 0, keys, CHAIN, 10 * KVT_SEC);
		if (ret < 0)
			return ret;
		there += ret;
	}
	return there;
}

TEST_F_TIMEOUT(torture, all_at_once, 1000000)
{
	struct actor *a = self->actor;
	struct shared *s = self->shared;
	unsigned int seed = 1;
	__u64 begin = kvt_now_ns();
	int i;

	for (i = 0; i < CLIENTS + 2; i++) {
		a[i].pool = &self->pool;
		a[i].shared = s;
		a[i].fn = i < READERS ? reader : i < READERS + FILLERS ? filler :
			  i < CLIENTS ? evictor : i == CLIENTS ? drainer : poisoner;
		ASSERT_EQ(0, start(&a[i], ++seed));
	}
	while (goes_on(s, &self->c, begin)) {
		kvt_sleep_ms(200 + rand_r(&seed) % 400);
		i = rand_r(&seed) % CLIENTS;
		kvt_kill(&a[i].child, SIGKILL);
		/* Whoever has ended by himself has failed. */
		ASSERT_EQ(-SIGKILL, kvt_join(&a[i].child, 20000));
		s->kills++;
		ASSERT_EQ(0, start(&a[i], seed));
	}
	s->calm = true;
	for (i = CLIENTS; i < CLIENTS + 2; i++)
		EXPECT_EQ(0, kvt_join(&a[i].child, 60000)) TH_LOG("actor %d", i);
	/* To the last drain the tier has been of use again. */
	EXPECT_TRUE(KVT_UNTIL(30000, on_dax(&self->pool, &self->c)));
	s->stop = true;
	for (i = 0; i < CLIENTS; i++)
		EXPECT_EQ(0, kvt_join(&a[i].child, 60000)) TH_LOG("actor %d", i);
	report(s, &self->c);
	EXPECT_EQ(0, s->wrong);
	EXPECT_TRUE(all_did_something(s, &self->c));
	EXPECT_GE(s->bad_pages * (CLIENTS + 2) * CHAIN, s->bus_errors);
	EXPECT_LT(0, check_rest(&self->c));
}

TEST_HARNESS_MAIN
