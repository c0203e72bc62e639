// SPDX-License-Identifier: GPL-2.0
/*
 * Namespaces: how they are found, who may use them, and that nothing of one is
 * seen from another.
 */
#include "kvt_test.h"

#define BLOCK_BYTES	8192
#define SET		3
#define ALICE		1001
#define BOB		1002

FIXTURE(ns)
{
	struct kvt_pool pool;
	struct kvtier_group group;
	struct kvtier_ns_open open;
	struct kvt_client c;
};

FIXTURE_SETUP(ns)
{
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, 16 * KVT_MIB));
	self->group.block_bytes = BLOCK_BYTES;
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "ns", BLOCK_BYTES));
	kvt_ns_args(&self->open, "ns", &self->group, 1);
}

FIXTURE_TEARDOWN(ns)
{
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

/* Bind another file; its descriptor or -errno. */
static int bind_file(const struct kvt_pool *p, struct kvtier_ns_open *a)
{
	int fd = kvt_open(p), err;

	if (fd < 0)
		return fd;
	err = kvt_ioctl(fd, KVTIER_OP_NS_OPEN, a);
	if (err)
		close(fd);
	return err ? err : fd;
}

static int bind_as(const struct kvt_pool *p, uid_t uid, struct kvtier_ns_open *a)
{
	int fd = kvt_open_as(p, uid), err;

	if (fd < 0)
		return fd;
	err = kvt_ioctl(fd, KVTIER_OP_NS_OPEN, a);
	if (err)
		close(fd);
	return err ? err : fd;
}

TEST_F(ns, create_and_excl)
{
	int fd;

	self->open.flags |= KVTIER_NS_EXCL;
	EXPECT_EQ(-EEXIST, bind_file(&self->pool, &self->open));
	self->open.identity = KVT_U64("nt");
	fd = bind_file(&self->pool, &self->open);
	EXPECT_LE(0, fd);
	close(fd);
	self->open.flags = 0;
	self->open.identity = KVT_U64("nu");
	EXPECT_EQ(-ENOENT, bind_file(&self->pool, &self->open));
}

TEST_F(ns, same_identity_is_the_same)
{
	int fd = bind_file(&self->pool, &self->open);

	ASSERT_LE(0, fd);
	EXPECT_EQ(self->c.ns_id, self->open.ns_id);
	EXPECT_EQ(1, self->open.nr_groups);
	close(fd);
	/* Without CREATE, and without saying what groups there should be. */
	self->open.flags = 0;
	self->open.nr_groups = 0;
	self->open.groups = 0;
	fd = bind_file(&self->pool, &self->open);
	ASSERT_LE(0, fd);
	EXPECT_EQ(self->c.ns_id, self->open.ns_id);
	close(fd);
}

/* A prefix, a longer one, one more bit: each is another namespace. */
TEST_F(ns, identity_is_exact)
{
	static const char *const other[] = { "n", "nss", "ns ", "Ns", "mr" };
	size_t i;
	int fd;

	for (i = 0; i < KVT_ARRAY(other); i++) {
		kvt_ns_args(&self->open, other[i], &self->group, 1);
		fd = bind_file(&self->pool, &self->open);
		ASSERT_LE(0, fd);
		EXPECT_NE(self->c.ns_id, self->open.ns_id);
		close(fd);
	}
	/* Identities are blobs: a NUL is a byte like any other. */
	self->open.identity = KVT_U64("ns\0x");
	self->open.identity_len = 4;
	fd = bind_file(&self->pool, &self->open);
	ASSERT_LE(0, fd);
	EXPECT_NE(self->c.ns_id, self->open.ns_id);
	close(fd);
}

TEST_F(ns, groups_must_match)
{
	struct kvtier_group two[2] = { { .block_bytes = BLOCK_BYTES }, { .block_bytes = 4096 } };

	self->group.block_bytes = BLOCK_BYTES + 1;
	EXPECT_EQ(-EINVAL, bind_file(&self->pool, &self->open));
	self->open.groups = KVT_U64(two);
	self->open.nr_groups = 2;
	EXPECT_EQ(-EINVAL, bind_file(&self->pool, &self->open));
}

TEST_F(ns, bound_once)
{
	self->open.identity = KVT_U64("nx");
	EXPECT_EQ(-EBUSY, kvt_ioctl(self->c.fd, KVTIER_OP_NS_OPEN, &self->open));
	self->open.identity = KVT_U64("ns");
	EXPECT_EQ(-EBUSY, kvt_ioctl(self->c.fd, KVTIER_OP_NS_OPEN, &self->open));
}

TEST_F(ns, secret_is_part_of_the_name)
{
	__u8 secret[2][KVTIER_SECRET_BYTES] = { { 1 }, { 1, [31] = 1 } };
	__u64 id[2];
	int fd[2], i;

	for (i = 0; i < 2; i++) {
		self->open.secret = KVT_U64(secret[i]);
		fd[i] = bind_file(&self->pool, &self->open);
		ASSERT_LE(0, fd[i]);
		id[i] = self->open.ns_id;
	}
	EXPECT_NE(id[0], id[1]);
	EXPECT_NE(id[0], self->c.ns_id);
	EXPECT_NE(id[1], self->c.ns_id);
	for (i = 0; i < 2; i++)
		close(fd[i]);
}

/* The same name in the mouth of another user is another namespace. */
TEST_F(ns, user_is_part_of_the_name)
{
	struct kvt_key key = kvt_key(SET, 0);
	char buf[BLOCK_BYTES];
	__u64 alice_id;
	int alice, bob;

	ASSERT_EQ(1, kvt_put(&self->c, 0, 0, &key, NULL, 1));
	alice = bind_as(&self->pool, ALICE, &self->open);
	ASSERT_LE(0, alice);
	alice_id = self->open.ns_id;
	EXPECT_NE(self->c.ns_id, alice_id);
	EXPECT_EQ(KVTIER_ST_MISS, kvt_read1(alice, 0, &key, buf, sizeof(buf), 0));

	/* Who opened the file counts, not who uses it: Bob gets his own. */
	bob = bind_as(&self->pool, BOB, &self->open);
	ASSERT_LE(0, bob);
	EXPECT_NE(alice_id, self->open.ns_id);
	close(alice);
	close(bob);
	/* What is not there cannot be told from what belongs to somebody else. */
	self->open.flags = 0;
	self->open.identity = KVT_U64("no");
	EXPECT_EQ(-ENOENT, bind_as(&self->pool, ALICE, &self->open));
}

/* An idle namespace without blocks goes; what comes by that name later is another. */
static __u64 next_id(const struct kvt_pool *p, struct kvtier_ns_open *a)
{
	int fd = bind_file(p, a);

	if (fd < 0)
		return 0;
	close(fd);
	return a->ns_id;
}

TEST_F(ns, ids_are_never_used_twice)
{
	__u64 seen[6] = { 0 }, id = 0;
	int i, k;

	self->open.identity = KVT_U64("tmp");
	self->open.identity_len = 3;
	for (i = 0; i < 6; i++) {
		ASSERT_TRUE(KVT_UNTIL(10000, (id = next_id(&self->pool, &self->open)) &&
				      (!i || id != seen[i - 1])));
		EXPECT_NE(self->c.ns_id, id);
		for (k = 0; k < i; k++)
			EXPECT_NE(seen[k], id);
		seen[i] = id;
	}
}

TEST_F(ns, readonly_file)
{
	struct kvt_key key = kvt_key(SET, 0), other = kvt_key(SET, 1);
	struct kvtier_block_result res;
	char buf[BLOCK_BYTES] = { 0 };
	int fd;

	ASSERT_EQ(1, kvt_put(&self->c, 0, 0, &key, NULL, 1));
	self->open.flags = KVTIER_NS_RDONLY;
	fd = bind_file(&self->pool, &self->open);
	ASSERT_LE(0, fd);
	EXPECT_EQ(KVTIER_ST_HIT, kvt_read1(fd, 0, &key, buf, sizeof(buf), 0));
	EXPECT_TRUE(kvt_bytes_ok(buf, &key, sizeof(buf)));
	EXPECT_EQ(1, kvt_get(fd, 0, 0, &key, 1, &res, 0));
	EXPECT_EQ(-EACCES, kvt_reserve(fd, 0, 0, &other, NULL, 1, &res, 0));
	EXPECT_EQ(KVT_ERR(EACCES), kvt_write1(fd, 0, &other, NULL, buf, sizeof(buf), 0));
	EXPECT_EQ(-EACCES, kvt_drop(fd, 0, &key, 1, NULL));
	EXPECT_EQ(1, kvt_lookup(self->c.fd, 0, &key, 1, NULL));
	close(fd);
}

/* A file opened for reading only, whatever NS_OPEN says. */
TEST_F(ns, open_mode_counts)
{
	struct kvt_key key = kvt_key(SET, 0);
	struct kvtier_block_result res;
	struct kvt_view view;
	int fd = open(self->pool.node, O_RDONLY | O_CLOEXEC);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, kvt_ioctl(fd, KVTIER_OP_NS_OPEN, &self->open));
	EXPECT_EQ(-EACCES, kvt_reserve(fd, 0, 0, &key, NULL, 1, &res, 0));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				   (off_t)self->c.wr.start));
	/* Reading is what it is for, by mapping too. */
	ASSERT_EQ(1, kvt_put(&self->c, 0, 0, &key, NULL, 1));
	ASSERT_EQ(1, kvt_get(fd, 0, 0, &key, 1, &res, 0));
	ASSERT_EQ(0, kvt_map(fd, PROT_READ, res.offset, BLOCK_BYTES, &view));
	EXPECT_TRUE(kvt_bytes_ok(view.base, &key, BLOCK_BYTES));
	EXPECT_EQ(-1, mprotect(view.base, BLOCK_BYTES, PROT_READ | PROT_WRITE));
	kvt_unmap(&view);
	close(fd);
}

/* Modes bind the owner too, as long as he is not the administrator. */
static int bind_mode(const struct kvt_pool *p, struct kvtier_ns_open *a, __u32 mode,
		     const char *identity)
{
	a->flags = KVTIER_NS_CREATE;
	a->identity = KVT_U64(identity);
	a->identity_len = strlen(identity);
	a->mode = mode;
	return bind_as(p, ALICE, a);
}

TEST_F(ns, mode_read_only)
{
	int first = bind_mode(&self->pool, &self->open, 0400, "read-only"), fd;

	ASSERT_LE(0, first);
	self->open.flags = 0;
	EXPECT_EQ(-EACCES, bind_as(&self->pool, ALICE, &self->open));
	self->open.flags = KVTIER_NS_RDONLY;
	fd = bind_as(&self->pool, ALICE, &self->open);
	EXPECT_LE(0, fd);
	close(fd);
	close(first);
}

TEST_F(ns, mode_nothing)
{
	int first = bind_mode(&self->pool, &self->open, 0, "nothing");

	ASSERT_LE(0, first);
	self->open.flags = 0;
	EXPECT_EQ(-EACCES, bind_as(&self->pool, ALICE, &self->open));
	self->open.flags = KVTIER_NS_RDONLY;
	EXPECT_EQ(-EACCES, bind_as(&self->pool, ALICE, &self->open));
	close(first);
}

/* What is written must be counted within the quota, exactly. */
TEST_F(ns, quota)
{
	struct kvtier_block_result res[8];
	struct kvt_key keys[8];
	__u64 handle[8];
	struct kvt_client c;
	struct kvtier_stat st;
	int i, fd = kvt_open(&self->pool);

	kvt_ns_args(&self->open, "quota", &self->group, 1);
	self->open.quota_bytes = 4 * BLOCK_BYTES + BLOCK_BYTES / 2;
	ASSERT_EQ(0, kvt_client_bind(&c, fd, &self->open));
	kvt_keys(keys, SET, 0, 8);
	EXPECT_EQ(4, kvt_reserve(c.fd, 0, 0, keys, NULL, 8, res, 0));
	for (i = 0; i < 8; i++) {
		EXPECT_EQ(i < 4, res[i].status == KVTIER_ST_RESERVED) TH_LOG("entry %d", i);
		handle[i] = res[i].handle;
	}
	EXPECT_EQ(KVTIER_ST_QUOTA, res[4].status);
	EXPECT_EQ(4, kvt_abort(c.fd, handle, 4, NULL));
	ASSERT_EQ(0, kvt_stat(c.fd, 0, &st));
	EXPECT_EQ(0, st.used_bytes);
	EXPECT_EQ(4, kvt_put(&c, 0, 0, keys, NULL, 4));
	EXPECT_EQ(0, kvt_put(&c, 0, 0, keys + 4, keys + 3, 1));
	ASSERT_EQ(0, kvt_stat(c.fd, 0, &st));
	EXPECT_EQ(4 * BLOCK_BYTES, st.used_bytes);
	EXPECT_EQ(1, kvt_drop(c.fd, 0, keys + 3, 1, NULL));
	EXPECT_EQ(1, kvt_put(&c, 0, 0, keys + 4, keys + 2, 1));
	/* Others are not concerned. */
	EXPECT_EQ(8, kvt_put(&self->c, 0, 0, keys, NULL, 8));
	kvt_client_close(&c);
}

/* Equal keys of two namespaces are two blocks; each sees his own bytes alone. */
TEST_F(ns, equal_keys_do_not_meet)
{
	struct kvt_key key = kvt_key(SET, 0), as = kvt_key(SET, 99);
	char buf[BLOCK_BYTES];
	struct kvt_client c;

	ASSERT_EQ(0, kvt_client_open(&self->pool, &c, "elsewhere", BLOCK_BYTES));
	ASSERT_EQ(1, kvt_put(&self->c, 0, 0, &key, NULL, 1));
	EXPECT_EQ(0, kvt_lookup(c.fd, 0, &key, 1, NULL));
	kvt_fill(buf, &as, sizeof(buf));
	EXPECT_EQ(KVTIER_ST_DONE, kvt_write1(c.fd, 0, &key, NULL, buf, sizeof(buf), 0));
	EXPECT_EQ(KVTIER_ST_HIT, kvt_read1(self->c.fd, 0, &key, buf, sizeof(buf), 0));
	EXPECT_TRUE(kvt_bytes_ok(buf, &key, sizeof(buf)));
	EXPECT_EQ(KVTIER_ST_HIT, kvt_read1(c.fd, 0, &key, buf, sizeof(buf), 0));
	EXPECT_TRUE(kvt_bytes_ok(buf, &as, sizeof(buf)));
	EXPECT_EQ(1, kvt_drop(c.fd, 0, &key, 1, NULL));
	EXPECT_EQ(1, kvt_check(&self->c, 0, &key, 1, 0));
	kvt_client_close(&c);
}

/* The same memory through the other namespace's offsets: nothing to be seen. */
TEST_F(ns, read_view_shows_own_blocks_only)
{
	struct kvt_key key = kvt_key(SET, 0);
	struct kvtier_block_result res;
	struct kvt_client c;
	int i;

	ASSERT_EQ(0, kvt_client_open(&self->pool, &c, "elsewhere", BLOCK_BYTES));
	ASSERT_EQ(1, kvt_put(&self->c, 0, 0, &key, NULL, 1));
	ASSERT_EQ(1, kvt_get(self->c.fd, 0, 0, &key, 1, &res, 0));
	EXPECT_EQ(0, kvt_touch_read(kvt_rd(&self->c, res.offset)));
	for (i = 0; i < 2; i++)
		EXPECT_EQ(SIGBUS, kvt_touch_read((char *)kvt_rd(&c, res.offset) + i * 4096));
	kvt_client_close(&c);
}

/* Blocks outlive the files that wrote them. */
TEST_F(ns, blocks_survive_close)
{
	struct kvt_key keys[4];

	kvt_keys(keys, SET, 0, 4);
	ASSERT_EQ(4, kvt_put(&self->c, 0, 0, keys, NULL, 4));
	kvt_client_close(&self->c);
	kvt_sleep_ms(200);
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "ns", BLOCK_BYTES));
	EXPECT_EQ(4, kvt_check(&self->c, 0, keys, 4, 0));
}

/* --- a disk that does not answer ------------------------------------------------------ */

#define STEP	1024	/* the namespace with this number, or a multiple, is announced on disks */

static int make_many(struct kvt_child *me, void *arg)
{
	struct kvtier_group g = { .block_bytes = BLOCK_BYTES };
	struct kvtier_ns_open a;
	char name[24];
	int i, fd;

	for (i = 0; i < STEP + 1; i++) {
		snprintf(name, sizeof(name), "one of many %d", i);
		kvt_ns_args(&a, name, &g, 1);
		fd = bind_file(arg, &a);
		if (fd < 0)
			return 1;
		close(fd);
		if (a.ns_id % STEP == STEP - 1)
			kvt_say(me, 1);
	}
	return 0;
}

static int make_one(struct kvt_child *me, void *arg)
{
	struct kvtier_group g = { .block_bytes = BLOCK_BYTES };
	struct kvtier_ns_open a;

	(void)me;
	kvt_ns_args(&a, "one", &g, 1);
	return bind_file(arg, &a) < 0;
}

FIXTURE(hung)
{
	struct kvt_pool pool;
	struct kvt_dm dm;
};

FIXTURE_SETUP(hung)
{
	ASSERT_EQ(0, kvt_dm_make(&self->dm, "nshung", 64 * KVT_MIB));
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, 16 * KVT_MIB));
	ASSERT_LE(0, kvt_tier_disk(&self->pool, 1, &self->dm.disk));
}

FIXTURE_TEARDOWN(hung)
{
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	kvt_dm_remove(&self->dm);
}

/* Not just in a call: who makes a namespace may have to wait for who frees others, too. */
static bool waits_for_disk(pid_t pid)
{
	return !kvt_sh("grep -q submit_bio_wait /proc/%d/stack", (int)pid);
}

/* Whoever waits for somebody else's new namespace can be killed before the disk answers. */
TEST_F_TIMEOUT(hung, waiting_can_be_killed, 180)
{
	struct kvt_child many, one;

	ASSERT_EQ(0, kvt_dm_stop(&self->dm, true));
	EXPECT_EQ(0, kvt_spawn(&many, make_many, &self->pool));
	/* The next one is that. */
	EXPECT_EQ(1, kvt_hear(&many, 60000));
	EXPECT_TRUE(KVT_UNTIL(20000, waits_for_disk(many.pid)));
	EXPECT_EQ(0, kvt_spawn(&one, make_one, &self->pool));
	EXPECT_TRUE(kvt_in_ioctl(one.pid));
	kvt_kill(&one, SIGKILL);
	EXPECT_EQ(-SIGKILL, kvt_join(&one, 10000));
	EXPECT_TRUE(waits_for_disk(many.pid));
	EXPECT_EQ(0, kvt_dm_stop(&self->dm, false));
	EXPECT_EQ(0, kvt_join(&many, 60000));
}

TEST_HARNESS_MAIN
