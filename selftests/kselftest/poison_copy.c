// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that fails under blocks that are on a disk as well: none of them is lost, whoever
 * reads it meanwhile. And pages that fail while others read: one block at most is lost.
 */
#include "kvt_test.h"
#include "kvt_medium.h"

#define BLOCK_BYTES	(64 * KVT_KIB)
#define SET		83
#define CHAIN		4
#define DAX_BYTES	(8 * KVT_PIECE)
#define DISK_BYTES	(24 * KVT_MIB)
#define DISK_RANK	30
#define PINS		200	/* more than may be pinned */

struct side {
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvt_disk disk[2];
	int dax;
	int bdev;
};

static int attach_dax(struct side *s)
{
	s->dax = kvt_tier_dax(&s->pool, 0, DAX_BYTES);
	return s->dax < 0 ? s->dax : 0;
}

static int send_down(struct side *s)
{
	return kvt_tier_detach(&s->pool, s->dax, 0, 60 * KVT_SEC) ?: fsync(s->c.fd);
}

/* A pool on the device, with a disk below if @disk. */
static int start(struct side *s, bool disk)
{
	char name[] = "under0";
	int i, err;

	signal(SIGBUS, SIG_IGN);
	s->c.fd = -1;
	for (i = 0; i < 2; i++, name[5]++) {
		err = kvt_disk_make(&s->disk[i], name, DISK_BYTES);
		if (err)
			return err;
	}
	err = kvt_setup(&s->pool) ?: attach_dax(s);
	if (!err && disk)
		s->bdev = kvt_tier_disk(&s->pool, DISK_RANK, &s->disk[0]);
	/* Nothing is to go in the background. */
	return err ?: disk && s->bdev < 0 ? s->bdev :
	       kvt_sysfs_write(&s->pool, "watermark_high_percent", "100") ?:
	       kvt_client_open(&s->pool, &s->c, "copied", BLOCK_BYTES);
}

static int end(struct side *s)
{
	int i, err;

	kvt_client_close(&s->c);
	err = kvt_teardown(&s->pool) ?: kvt_bad_forget();
	for (i = 0; i < 2; i++)
		kvt_disk_remove(&s->disk[i]);
	return err;
}

static const char *missing(void)
{
	if (!kvt_env_dax())
		return "no device-dax instance to use (KVT_DAX)";
	return kvt_bad_can() ? NULL : "this kernel cannot be told that a page is bad";
}

static long long on_disk(const struct side *s, const char *what)
{
	char name[64], buf[32];

	snprintf(name, sizeof(name), "tiers/bdev%d/%s", DISK_RANK, what);
	return kvt_sysfs_read(&s->pool, name, buf, sizeof(buf)) < 0 ? -1 :
	       strtoll(buf, NULL, 10);
}

/* --- one block ------------------------------------------------------------------------ */

FIXTURE(copied)
{
	struct side s;
	struct kvt_key keys[CHAIN];
};

/* A chain that is in memory and on the disk. */
FIXTURE_SETUP(copied)
{
	const char *why = missing();

	if (why)
		SKIP(return, "%s", why);
	ASSERT_EQ(0, start(&self->s, true));
	kvt_keys(self->keys, SET, 0, CHAIN);
	ASSERT_EQ(CHAIN, kvt_put(&self->s.c, 0, 0, self->keys, NULL, CHAIN));
	ASSERT_EQ(0, send_down(&self->s));
	ASSERT_EQ(0, attach_dax(&self->s));
	ASSERT_EQ(CHAIN, kvt_check(&self->s.c, 0, self->keys, CHAIN, 10 * KVT_SEC));
	ASSERT_EQ(CHAIN * BLOCK_BYTES, on_disk(&self->s, "copy_bytes"));
}

FIXTURE_TEARDOWN(copied)
{
	EXPECT_EQ(0, end(&self->s));
}

/* The last one that is there is @i, leased and mapped. 0 or -errno. */
static int lease(const struct side *s, const struct kvt_key *keys, int i,
		 struct kvtier_block_result *res)
{
	struct kvtier_block_result all[CHAIN];
	int k;

	if (kvt_get(s->c.fd, 0, 0, keys, i + 1, all, 0) != i + 1)
		return -ENOENT;
	for (k = 0; k < i; k++)
		kvt_release(s->c.fd, &all[k].handle, 1, NULL);
	*res = all[i];
	return kvt_touch_read(kvt_rd(&s->c, res->offset)) ? -EFAULT : 0;
}

/* One of its pages goes bad. */
static int spoil(const struct side *s, const struct kvtier_block_result *res)
{
	return kvt_bad_make(kvt_bad_address(kvt_rd(&s->c, res->offset)) + 5 * 4096);
}

TEST_F_TIMEOUT(copied, not_leased, 300)
{
	struct kvtier_lookup_result look[CHAIN];
	struct kvtier_block_result res;
	struct side *s = &self->s;

	ASSERT_EQ(0, lease(s, self->keys, CHAIN - 1, &res));
	EXPECT_EQ(1, kvt_release(s->c.fd, &res.handle, 1, NULL));
	ASSERT_EQ(0, spoil(s, &res));
	ASSERT_EQ(CHAIN, kvt_lookup(s->c.fd, 0, self->keys, CHAIN, look));
	EXPECT_EQ(s->dax, (int)look[CHAIN - 2].tier);
	EXPECT_EQ(s->bdev, (int)look[CHAIN - 1].tier);
	EXPECT_EQ(BLOCK_BYTES, kvt_retired(&s->pool, "dax0"));
	EXPECT_EQ(CHAIN, kvt_pool_entries(&s->c));
	EXPECT_EQ(CHAIN, kvt_check(&s->c, 0, self->keys, CHAIN, 10 * KVT_SEC));
}

/* Who leases it has what he leases, but for the page; others have the block. */
TEST_F_TIMEOUT(copied, leased, 300)
{
	struct kvtier_lookup_result look[CHAIN];
	struct kvtier_block_result res, again;
	struct side *s = &self->s;
	const char *bytes;

	ASSERT_EQ(0, lease(s, self->keys, CHAIN - 1, &res));
	ASSERT_EQ(0, spoil(s, &res));
	ASSERT_EQ(CHAIN, kvt_lookup(s->c.fd, 0, self->keys, CHAIN, look));
	EXPECT_EQ(s->bdev, (int)look[CHAIN - 1].tier);
	EXPECT_EQ((CHAIN - 1) * BLOCK_BYTES, on_disk(s, "copy_bytes"));
	EXPECT_EQ(BLOCK_BYTES, on_disk(s, "used_bytes"));
	bytes = kvt_rd(&s->c, res.offset);
	EXPECT_EQ(SIGBUS, kvt_touch_read(bytes + 5 * 4096));
	EXPECT_EQ(1, kvt_bytes_probe(bytes, &self->keys[CHAIN - 1], 5 * 4096));
	/* It comes up elsewhere, with a copy as before. */
	ASSERT_EQ(1, kvt_get(s->c.fd, KVTIER_GET_WAIT, 0, &self->keys[CHAIN - 1], 1, &again,
			     10 * KVT_SEC));
	EXPECT_NE(res.offset, again.offset);
	EXPECT_TRUE(kvt_bytes_ok(kvt_rd(&s->c, again.offset), &self->keys[CHAIN - 1],
				 BLOCK_BYTES));
	EXPECT_EQ(CHAIN * BLOCK_BYTES, on_disk(s, "copy_bytes"));
	EXPECT_EQ(CHAIN + 1, kvt_pool_entries(&s->c));
	EXPECT_EQ(0, kvt_retired(&s->pool, "dax0"));
	EXPECT_EQ(1, kvt_release(s->c.fd, &res.handle, 1, NULL));
	EXPECT_EQ(CHAIN, kvt_pool_entries(&s->c));
	EXPECT_EQ(BLOCK_BYTES, kvt_retired(&s->pool, "dax0"));
	EXPECT_EQ(1, kvt_release(s->c.fd, &again.handle, 1, NULL));
	EXPECT_EQ(CHAIN, kvt_check(&s->c, 0, self->keys, CHAIN, 0));
	/* Nothing is counted twice, nor forgotten. */
	EXPECT_EQ(CHAIN, kvt_drop(s->c.fd, 0, self->keys, CHAIN, NULL));
	EXPECT_EQ(0, kvt_pool_entries(&s->c));
	EXPECT_EQ(0, on_disk(s, "copy_bytes"));
	EXPECT_EQ(0, on_disk(s, "used_bytes"));
}

/* How many blocks more the namespace may pin; -1: as many as there is room to try with. */
static int pin_room(const struct side *s)
{
	static struct kvt_key keys[PINS];
	static __s32 res[PINS];
	int i, n = 0;

	kvt_keys(keys, SET, 50000, PINS);
	for (i = 0; i < PINS; i++) {
		if (kvt_put(&s->c, KVTIER_RESERVE_WAIT, 0, &keys[i], NULL, 1) != 1)
			return -1;
	}
	kvt_advise(s->c.fd, 0, keys, PINS, KVTIER_ADV_PIN, 0, res);
	for (i = 0; i < PINS; i++)
		n += res[i] == KVTIER_ST_DONE;
	kvt_advise(s->c.fd, 0, keys, PINS, KVTIER_ADV_UNPIN, 0, NULL);
	kvt_drop(s->c.fd, 0, keys, PINS, NULL);
	return n < PINS ? n : -1;
}

static long long used_bytes(const struct side *s)
{
	struct kvtier_stat st;

	return kvt_stat(s->c.fd, 0, &st) ? -1 : (long long)st.used_bytes;
}

/* Those after it stay what they are, and so does what its namespace is charged for it. */
TEST_F_TIMEOUT(copied, in_a_chain, 300)
{
	struct kvt_key *key = &self->keys[1];
	struct kvtier_block_result res;
	struct side *s = &self->s;
	int room = pin_room(s);

	ASSERT_LT(0, room);
	ASSERT_EQ(1, kvt_advise(s->c.fd, 0, key, 1, KVTIER_ADV_PIN, 0, NULL));
	ASSERT_EQ(0, lease(s, self->keys, 1, &res));
	ASSERT_EQ(0, spoil(s, &res));
	EXPECT_EQ(CHAIN * BLOCK_BYTES, used_bytes(s));
	EXPECT_EQ(CHAIN, kvt_check(&s->c, 0, self->keys, CHAIN, 10 * KVT_SEC));
	EXPECT_EQ(room - 1, pin_room(s));
	EXPECT_EQ(1, kvt_release(s->c.fd, &res.handle, 1, NULL));
	EXPECT_EQ(CHAIN * BLOCK_BYTES, used_bytes(s));
	/* There is less memory now. */
	room = pin_room(s);
	EXPECT_EQ(1, kvt_advise(s->c.fd, 0, key, 1, KVTIER_ADV_UNPIN, 0, NULL));
	EXPECT_EQ(room + 1, pin_room(s));
	EXPECT_EQ(CHAIN, kvt_drop(s->c.fd, 0, self->keys, CHAIN, NULL));
	EXPECT_EQ(0, used_bytes(s));
	EXPECT_EQ(0, kvt_pool_entries(&s->c));
}

/* A session holds its chain as before. */
TEST_F_TIMEOUT(copied, of_a_session, 300)
{
	struct kvtier_block_result res;
	struct side *s = &self->s;
	int room;

	ASSERT_EQ(0, kvt_session(s->c.fd, 0, 1, KVTIER_SESSION_DECODING, &self->keys[CHAIN - 1],
				 0));
	ASSERT_EQ(0, lease(s, self->keys, 1, &res));
	ASSERT_EQ(0, spoil(s, &res));
	EXPECT_EQ(1, kvt_release(s->c.fd, &res.handle, 1, NULL));
	room = pin_room(s);
	ASSERT_LT(0, room);
	/* Another one that holds part of it, and holds that when the first has ended. */
	ASSERT_EQ(0, kvt_session(s->c.fd, 0, 2, KVTIER_SESSION_DECODING, &self->keys[1], 0));
	EXPECT_EQ(room, pin_room(s));
	ASSERT_EQ(0, kvt_session(s->c.fd, 0, 1, KVTIER_SESSION_DONE, NULL, 0));
	EXPECT_EQ(room + CHAIN - 2, pin_room(s));
	ASSERT_EQ(0, kvt_session(s->c.fd, 0, 2, KVTIER_SESSION_DONE, NULL, 0));
	EXPECT_EQ(room + CHAIN, pin_room(s));
}

/* READ comes upon the bad page itself: it reads the copy. */
TEST_F_TIMEOUT(copied, read, 300)
{
	static char buf[BLOCK_BYTES];
	struct side *s = &self->s;

	if (kvt_bad_copies(0))
		SKIP(return, "this module cannot pretend machine checks");
	/* The copy, and the look at why it ended. */
	ASSERT_EQ(0, kvt_bad_copies(2));
	EXPECT_EQ(KVTIER_ST_HIT, kvt_read1(s->c.fd, 0, &self->keys[CHAIN - 1], buf, BLOCK_BYTES,
					   10 * KVT_SEC));
	EXPECT_EQ(0, kvt_bad_copies_left());
	EXPECT_TRUE(kvt_bytes_ok(buf, &self->keys[CHAIN - 1], BLOCK_BYTES));
	EXPECT_EQ(BLOCK_BYTES, kvt_retired(&s->pool, "dax0"));
	EXPECT_EQ(CHAIN, kvt_check(&s->c, 0, self->keys, CHAIN, 0));
}

/* What was durable is, and the pool that is assembled has it. */
TEST_F_TIMEOUT(copied, outlives_the_pool, 300)
{
	struct kvtier_assemble_device dev = { 0 };
	struct kvtier_pool_assemble a = {
		.size = sizeof(a),
		.pool_id = KVTIER_POOL_ANY_ID,
		.nr_devices = 1,
		.devices = KVT_U64(&dev),
	};
	struct kvtier_block_result res;
	struct side *s = &self->s;

	ASSERT_EQ(0, lease(s, self->keys, 2, &res));
	ASSERT_EQ(0, spoil(s, &res));
	EXPECT_EQ(1, kvt_release(s->c.fd, &res.handle, 1, NULL));
	kvt_client_close(&s->c);
	ASSERT_EQ(0, kvt_pool_destroy(s->pool.ctl, s->pool.id));
	snprintf(dev.path, sizeof(dev.path), "%s", s->disk[0].dev);
	ASSERT_EQ(0, kvt_pool_assemble(&s->pool, &a));
	EXPECT_EQ(CHAIN, a.nr_blocks);
	ASSERT_EQ(0, attach_dax(s));
	ASSERT_EQ(0, kvt_client_open(&s->pool, &s->c, "copied", BLOCK_BYTES));
	EXPECT_EQ(CHAIN, kvt_check(&s->c, 0, self->keys, CHAIN, 10 * KVT_SEC));
}

/* Roots from @first on, sent down; the device is there again. 0 or -errno. */
static int put_below(struct side *s, int first, int nr)
{
	struct kvt_key key;
	int i;

	for (i = first; i < first + nr; i++) {
		key = kvt_key(SET, i);
		if (kvt_put(&s->c, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1) != 1)
			return -ENOSPC;
	}
	return send_down(s) ?: attach_dax(s);
}

/* The place of a block on the disk, or -errno. */
static long long place(const struct side *s, const struct kvt_key *key)
{
	const struct kvt_medium_block *b;
	struct kvt_medium m;
	long long at;
	int err;

	err = kvt_disk_copy(&s->disk[1], &s->disk[0]) ?: kvt_medium_read(s->disk[1].dev, &m);
	if (err)
		return err;
	b = kvt_medium_find(&m, key);
	at = b ? (long long)b->byte : -ENOENT;
	kvt_medium_free(&m);
	return at;
}

/* Who empties its segment finds it there, and takes it along. */
TEST_F_TIMEOUT(copied, is_carried, 600)
{
	struct kvt_key *tip = &self->keys[CHAIN - 1], gone;
	struct kvtier_block_result res;
	struct side *s = &self->s;
	long long at;
	int i;

	ASSERT_EQ(0, lease(s, self->keys, CHAIN - 1, &res));
	ASSERT_EQ(0, spoil(s, &res));
	EXPECT_EQ(1, kvt_release(s->c.fd, &res.handle, 1, NULL));
	at = place(s, tip);
	ASSERT_LT(0, at);
	/* Writes everything, worth it or not. */
	ASSERT_EQ(0, kvt_sysfs_write(&s->pool, "policy", "lru"));
	/* Few are left where it is, and there is less and less room elsewhere. */
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, put_below(s, 1000 + 90 * i, 90));
	for (i = 0; i < 32; i++) {
		gone = kvt_key(SET, 1000 + i);
		EXPECT_EQ(1, kvt_drop(s->c.fd, 0, &gone, 1, NULL));
	}
	for (i = 0; i < 9 && place(s, tip) == at; i++)
		ASSERT_EQ(0, put_below(s, 2000 + 16 * i, 16));
	EXPECT_LT(0, place(s, tip));
	EXPECT_NE(at, place(s, tip));
	EXPECT_EQ(CHAIN, kvt_check(&s->c, 0, self->keys, CHAIN, 10 * KVT_SEC));
}

/* A device that is gone is no other thing than one whose pages all are bad. */
TEST_F_TIMEOUT(copied, device_gone, 300)
{
	static char buf[2 * BLOCK_BYTES];
	struct kvtier_block_result res[CHAIN];
	struct side *s = &self->s;
	int i;

	ASSERT_LE(0, kvt_tier_dram(&s->pool, 1, 4 * KVT_MIB));
	ASSERT_EQ(CHAIN, kvt_get(s->c.fd, 0, 0, self->keys, CHAIN, res, 0));
	ASSERT_EQ(0, kvt_sh("echo %s > /sys/bus/dax/drivers/kvtier/unbind", kvt_env_dax()));
	EXPECT_EQ(2 * CHAIN, kvt_pool_entries(&s->c));
	for (i = 0; i < CHAIN; i++) {
		EXPECT_EQ(SIGBUS, kvt_touch_read(kvt_rd(&s->c, res[i].offset)));
		kvt_fill(buf + BLOCK_BYTES, &self->keys[i], BLOCK_BYTES);
		EXPECT_EQ(KVTIER_ST_HIT, kvt_read1(s->c.fd, 0, &self->keys[i], buf, BLOCK_BYTES,
						  10 * KVT_SEC));
		EXPECT_EQ(0, memcmp(buf, buf + BLOCK_BYTES, BLOCK_BYTES));
	}
	for (i = 0; i < CHAIN; i++)
		EXPECT_EQ(1, kvt_release(s->c.fd, &res[i].handle, 1, NULL));
	EXPECT_EQ(CHAIN, kvt_pool_entries(&s->c));
	EXPECT_EQ(0, kvt_tier_detach(&s->pool, s->dax, 0, 10 * KVT_SEC));
	ASSERT_EQ(0, kvt_dax_bind(kvt_env_dax(), "kvtier"));
}

#define SMALL_BYTES	4096ull
#define MANY		1900
#define BATCH		100

/* More of them than the pool has entries to spare. */
TEST_F_TIMEOUT(copied, device_gone_under_many, 600)
{
	static struct kvtier_block_result res[MANY];
	static struct kvt_key keys[MANY];
	struct side *s = &self->s;
	struct kvt_client small;
	int i;

	ASSERT_EQ(0, kvt_client_open(&s->pool, &small, "small", SMALL_BYTES));
	kvt_keys(keys, SET + 1, 0, MANY);
	for (i = 0; i < MANY; i += BATCH)
		ASSERT_EQ(BATCH, kvt_put(&small, KVTIER_RESERVE_WAIT, 0, keys + i, NULL, BATCH));
	ASSERT_EQ(0, send_down(s));
	ASSERT_EQ(0, attach_dax(s));
	for (i = 0; i < MANY; i += BATCH)
		ASSERT_EQ(BATCH, kvt_get(small.fd, KVTIER_GET_WAIT, 0, keys + i, BATCH, res + i,
					 60 * KVT_SEC));
	ASSERT_EQ(0, kvt_sh("echo %s > /sys/bus/dax/drivers/kvtier/unbind", kvt_env_dax()));
	EXPECT_EQ(MANY + CHAIN, on_disk(s, "blocks"));
	EXPECT_EQ(2 * MANY + CHAIN, kvt_pool_entries(&s->c));
	for (i = 0; i < MANY; i += BATCH)
		EXPECT_EQ(BATCH, kvt_lookup(small.fd, 0, keys + i, BATCH, NULL));
	kvt_client_close(&small);
	EXPECT_EQ(MANY + CHAIN, kvt_pool_entries(&s->c));
	EXPECT_EQ(0, kvt_tier_detach(&s->pool, s->dax, 0, 10 * KVT_SEC));
	ASSERT_EQ(0, kvt_dax_bind(kvt_env_dax(), "kvtier"));
}

/* --- while others read ---------------------------------------------------------------- */

#define READERS		3	/* the first of which has nothing to do with what is lost */
#define UNDER_LOAD	24
#define BAD_ONE		7

struct load {
	_Atomic int rounds[READERS];
	_Atomic int started;
	_Atomic bool stop;
	const struct kvt_pool *pool;
	struct kvt_key keys[UNDER_LOAD];
};

/* One block, through the mapping: whether it was right, or not there. */
static bool reads_well(const struct kvt_client *c, const struct kvt_key *key, bool may_fault)
{
	struct kvtier_block_result res;
	int ret;

	if (kvt_get(c->fd, 0, 0, key, 1, &res, 0) != 1)
		return may_fault;
	ret = kvt_bytes_probe(kvt_rd(c, res.offset), key, BLOCK_BYTES);
	kvt_release(c->fd, &res.handle, 1, NULL);
	return ret == 1 || (ret == -SIGBUS && may_fault);
}

/* The same by somebody who does not expect a signal, and has what he has read mapped. */
static bool reads_carelessly(const struct kvt_client *c, const struct kvt_key *key)
{
	struct kvtier_block_result res;
	bool right;

	if (kvt_get(c->fd, 0, 0, key, 1, &res, 0) != 1)
		return false;
	right = kvt_bytes_ok(kvt_rd(c, res.offset), key, BLOCK_BYTES);
	kvt_release(c->fd, &res.handle, 1, NULL);
	return right;
}

static int read_on(struct kvt_child *me, void *arg)
{
	struct load *l = arg;
	int who = l->started++, i;
	struct kvt_client c;

	(void)me;
	/* No signal is ignored, nor caught: the first one ends him. */
	if (!who)
		signal(SIGBUS, SIG_DFL);
	KVT_CHILD_CHECK(!kvt_client_open(l->pool, &c, "copied", BLOCK_BYTES));
	while (!l->stop) {
		for (i = 0; i < UNDER_LOAD; i++) {
			if (who)
				KVT_CHILD_CHECK(reads_well(&c, &l->keys[i], i == BAD_ONE));
			else if (i != BAD_ONE)
				KVT_CHILD_CHECK(reads_carelessly(&c, &l->keys[i]));
		}
		l->rounds[who]++;
	}
	return 0;
}

static bool rounds_more(const struct load *l, int by)
{
	int from[READERS], i;

	for (i = 0; i < READERS; i++)
		from[i] = l->rounds[i];
	return KVT_UNTIL(60000, ({
		for (i = 0; i < READERS && l->rounds[i] >= from[i] + by; i++)
			;
		i == READERS;
	}));
}

FIXTURE(under_load)
{
	struct side s;
	struct load *l;
};

FIXTURE_VARIANT(under_load)
{
	bool disk;
};

FIXTURE_VARIANT_ADD(under_load, memory_alone) { .disk = false };
FIXTURE_VARIANT_ADD(under_load, with_a_disk) { .disk = true };

FIXTURE_SETUP(under_load)
{
	const char *why = missing();
	int i;

	if (why)
		SKIP(return, "%s", why);
	ASSERT_EQ(0, start(&self->s, variant->disk));
	self->l = mmap(NULL, sizeof(*self->l), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->l);
	self->l->pool = &self->s.pool;
	kvt_keys(self->l->keys, SET, 0, UNDER_LOAD);
	for (i = 0; i < UNDER_LOAD; i++)
		ASSERT_EQ(1, kvt_put(&self->s.c, 0, 0, &self->l->keys[i], NULL, 1));
	if (variant->disk) {
		ASSERT_EQ(0, send_down(&self->s));
		ASSERT_EQ(0, attach_dax(&self->s));
	}
	for (i = 0; i < UNDER_LOAD; i++)
		ASSERT_EQ(1, kvt_check(&self->s.c, 0, &self->l->keys[i], 1, 10 * KVT_SEC));
}

FIXTURE_TEARDOWN(under_load)
{
	munmap(self->l, sizeof(*self->l));
	EXPECT_EQ(0, end(&self->s));
}

/* One block is lost, or none; of the rest not a byte is wrong, and nobody gets a signal for it. */
TEST_F_TIMEOUT(under_load, one_page, 600)
{
	struct kvt_child child[READERS];
	struct kvtier_block_result res;
	struct load *l = self->l;
	struct side *s = &self->s;
	__u64 at;
	int i;

	ASSERT_EQ(0, lease(s, &l->keys[BAD_ONE], 0, &res));
	at = kvt_bad_address(kvt_rd(&s->c, res.offset));
	ASSERT_EQ(1, kvt_release(s->c.fd, &res.handle, 1, NULL));
	for (i = 0; i < READERS; i++)
		ASSERT_EQ(0, kvt_spawn(&child[i], read_on, l));
	ASSERT_TRUE(KVT_UNTIL(20000, l->started == READERS));
	ASSERT_TRUE(rounds_more(l, 2));
	ASSERT_EQ(0, kvt_bad_make(at + 8192));
	EXPECT_TRUE(rounds_more(l, 2));
	l->stop = true;
	for (i = 0; i < READERS; i++)
		EXPECT_EQ(0, kvt_join(&child[i], 20000));
	EXPECT_EQ(UNDER_LOAD - !variant->disk, kvt_pool_entries(&s->c));
	for (i = 0; i < UNDER_LOAD; i++)
		EXPECT_EQ(i != BAD_ONE || variant->disk,
			  kvt_check(&s->c, 0, &l->keys[i], 1, 10 * KVT_SEC));
	EXPECT_EQ(BLOCK_BYTES, kvt_retired(&s->pool, "dax0"));
}

TEST_HARNESS_MAIN
