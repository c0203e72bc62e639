// SPDX-License-Identifier: GPL-2.0
/*
 * Leased blocks as dma-bufs: a device that imports one sees their bytes, for as long as it
 * likes; nothing that the buffer has is taken away meanwhile, and all of it goes with it.
 * The device is a module (kvt_testbuf) that reads by way of the bus addresses it was given.
 */
#include "kvt_test.h"
#include <dirent.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define BLOCK_BYTES	100000ull	/* no multiple of a page */
#define SLOT		(25 * 4096ull)
#define NR		6
#define SET		32

#define IMPORT_READ	_IO('K', 1)	/* see kvt_testbuf.c */
#define IMPORT_WRITE	_IO('K', 2)
#define IMPORT_BOTH	_IO('K', 3)

FIXTURE(export)
{
	struct kvt_pool pool;
	struct kvt_client c;
	struct kvt_key keys[NR];
	struct kvtier_block_result res[NR];	/* leased */
	__u64 handles[NR];
	int tier;
	int buf;	/* of the blocks, from the last to the first */
};

FIXTURE_VARIANT(export)
{
	bool dax;
};

FIXTURE_VARIANT_ADD(export, dram) { .dax = false };
FIXTURE_VARIANT_ADD(export, dax) { .dax = true };

static int export(int fd, const __u64 *handles, __u32 nr, __u64 *bytes)
{
	struct kvtier_export x = {
		.size = sizeof(x), .nr = nr, .fd = -1, .handles = KVT_U64(handles),
	};
	int err = kvt_ioctl(fd, KVTIER_OP_EXPORT, &x);

	if (bytes)
		*bytes = x.bytes;
	return err ? err : x.fd;
}

FIXTURE_SETUP(export)
{
	__u64 bytes;
	int i;

	if (variant->dax && !kvt_env_dax())
		SKIP(return, "no device-dax instance to use (KVT_DAX)");
	if (!variant->dax && kvt_env_dax() && !kvt_env_long() &&
	    strcmp(_metadata->name, "device_reads") && strcmp(_metadata->name, "mapped") &&
	    strcmp(_metadata->name, "nothing_beside_a_block"))
		SKIP(return, "the kind of memory makes little difference");
	if (access("/dev/kvt_testbuf", R_OK))
		ASSERT_EQ(0, kvt_sh("modprobe kvt_testbuf"));
	ASSERT_EQ(0, kvt_setup(&self->pool));
	self->tier = variant->dax ? kvt_tier_dax(&self->pool, 0, 8 * KVT_MIB) :
				    kvt_tier_dram(&self->pool, 0, 8 * KVT_MIB);
	ASSERT_LE(0, self->tier);
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->c, "export", BLOCK_BYTES));
	kvt_keys(self->keys, SET, 0, NR);
	ASSERT_EQ(NR, kvt_put(&self->c, 0, 0, self->keys, NULL, NR));
	ASSERT_EQ(NR, kvt_get(self->c.fd, 0, 0, self->keys, NR, self->res, 0));
	for (i = 0; i < NR; i++)
		self->handles[i] = self->res[NR - 1 - i].handle;
	self->buf = export(self->c.fd, self->handles, NR, &bytes);
	ASSERT_LE(0, self->buf);
	ASSERT_EQ(NR * SLOT, bytes);
}

FIXTURE_TEARDOWN(export)
{
	if (self->buf >= 0)
		close(self->buf);
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
	if (variant->dax)
		EXPECT_EQ(0, kvt_dax_bind(kvt_env_dax(), "kvtier"));
}

static __u64 leases(const struct kvt_pool *p)
{
	struct kvtier_stat st;
	int fd = kvt_open(p), err = kvt_stat(fd, KVTIER_STAT_POOL, &st);

	close(fd);
	return err ? ~0ull : st.leases;
}

/* A device that has mapped the buffer, or -errno. */
static int import(int buf, unsigned long how)
{
	int dev = open("/dev/kvt_testbuf", O_RDWR | O_CLOEXEC), err;

	if (dev < 0 || !ioctl(dev, how, buf))
		return dev < 0 ? -errno : dev;
	err = -errno;
	close(dev);
	return err;
}

/* What the device sees of block @nr of the buffer. */
static bool device_sees(int dev, int nr, const struct kvt_key *key)
{
	static char bytes[BLOCK_BYTES];
	size_t done = 0;

	while (done < sizeof(bytes)) {
		ssize_t n = pread(dev, bytes + done, sizeof(bytes) - done,
				  (off_t)(nr * SLOT + done));

		if (n <= 0)
			return false;
		done += n;
	}
	return kvt_bytes_ok(bytes, key, sizeof(bytes));
}

static int drain(const struct kvt_pool *p, int tier)
{
	struct kvtier_tier_op op = {
		.size = sizeof(op), .pool_id = p->id, .tier_id = tier,
		.timeout_ns = 50 * KVT_MSEC,
	};

	return kvt_ioctl(p->ctl, KVTIER_OP_TIER_DRAIN, &op);
}

/* The file has gone, others want the room: the device goes on reading. */
TEST_F(export, device_reads)
{
	struct kvt_key other[8];
	struct kvt_client c;
	int dev, i;

	dev = import(self->buf, IMPORT_READ);
	ASSERT_LE(0, dev);
	EXPECT_EQ(2 * NR, leases(&self->pool));
	close(self->buf);
	self->buf = -1;
	kvt_client_close(&self->c);
	EXPECT_EQ(NR, leases(&self->pool));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &c, "other", BLOCK_BYTES));
	for (i = 0; i < 20; i++) {
		kvt_keys(other, SET, 100 + i * 8, 8);
		ASSERT_EQ(8, kvt_put(&c, KVTIER_RESERVE_WAIT, 0, other, NULL, 8));
	}
	kvt_client_close(&c);
	for (i = 0; i < NR; i++)
		EXPECT_TRUE(device_sees(dev, i, &self->keys[NR - 1 - i])) TH_LOG("block %d", i);
	EXPECT_EQ(0, pread(dev, other, 1, NR * SLOT));
	EXPECT_EQ(-EBUSY, kvt_pool_destroy(self->pool.ctl, self->pool.id));
	close(dev);
	EXPECT_EQ(0, leases(&self->pool));
}

TEST_F(export, nobody_writes)
{
	char *at;

	EXPECT_EQ(-EACCES, import(self->buf, IMPORT_WRITE));
	EXPECT_EQ(-EACCES, import(self->buf, IMPORT_BOTH));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, SLOT, PROT_READ | PROT_WRITE, MAP_SHARED, self->buf, 0));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, SLOT, PROT_READ | PROT_EXEC, MAP_SHARED, self->buf, 0));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, SLOT, PROT_READ, MAP_PRIVATE, self->buf, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, SLOT, PROT_READ, MAP_SHARED, self->buf, NR * SLOT));
	at = mmap(NULL, SLOT, PROT_READ, MAP_SHARED, self->buf, 0);
	ASSERT_NE(MAP_FAILED, at);
	EXPECT_EQ(-1, mprotect(at, SLOT, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(SIGSEGV, kvt_touch_write(at, 1));
	munmap(at, SLOT);
	EXPECT_EQ(-1, write(self->buf, "x", 1));
}

TEST_F(export, mapped)
{
	char *all, *part;
	int i;

	all = mmap(NULL, NR * SLOT, PROT_READ, MAP_SHARED, self->buf, 0);
	part = mmap(NULL, SLOT, PROT_READ, MAP_SHARED, self->buf, 2 * SLOT);
	ASSERT_TRUE(all != MAP_FAILED && part != MAP_FAILED);
	close(self->buf);
	self->buf = -1;
	kvt_client_close(&self->c);
	/* The last block first, so that it is not found by what was mapped around another. */
	for (i = NR; i--;)
		EXPECT_EQ(1, kvt_bytes_probe(all + i * SLOT, &self->keys[NR - 1 - i],
					     BLOCK_BYTES)) TH_LOG("block %d", i);
	EXPECT_EQ(1, kvt_bytes_probe(part, &self->keys[NR - 3], BLOCK_BYTES));
	munmap(all, NR * SLOT);
	EXPECT_EQ(NR, leases(&self->pool));
	munmap(part, SLOT);
	EXPECT_EQ(0, leases(&self->pool));
}

/* Whoever gets a slot next is to find all of its last page written. Where it was, or -1. */
static long long litter(const struct kvt_client *c, const struct kvt_key *key)
{
	struct kvtier_block_result res;

	if (kvt_reserve(c->fd, 0, 0, key, NULL, 1, &res, 0) != 1)
		return -1;
	memset(kvt_wr(c, res.offset), 0x5a, SLOT);
	return kvt_abort(c->fd, &res.handle, 1, NULL) == 1 ? (long long)res.offset : -1;
}

/* What the buffer of one leased block shows behind its bytes: is it nothing. */
static bool alone(const struct kvt_client *c, const struct kvt_key *key, long long offset)
{
	struct kvtier_block_result res;
	bool clear = true;
	size_t i;
	char *at;
	int buf;

	/* The two views differ in bits above those of a place. */
	if (kvt_get(c->fd, 0, 0, key, 1, &res, 0) != 1 ||
	    ((res.offset ^ (__u64)offset) & (1024 * KVT_MIB - 1)))
		return false;
	buf = export(c->fd, &res.handle, 1, NULL);
	at = mmap(NULL, SLOT, PROT_READ, MAP_SHARED, buf, 0);
	close(buf);
	if (at == MAP_FAILED)
		return false;
	for (i = BLOCK_BYTES; i < SLOT; i++)
		clear &= !at[i];
	clear &= kvt_bytes_ok(at, key, BLOCK_BYTES);
	munmap(at, SLOT);
	return clear;
}

/* Blocks are given away, and not what their slots had before. */
TEST_F(export, nothing_beside_a_block)
{
	static char bytes[BLOCK_BYTES];
	struct kvt_key key = kvt_key(SET, 50);
	struct kvtier_block_result res;
	long long at = litter(&self->c, &key);

	ASSERT_LE(0, at);
	kvt_fill(bytes, &key, BLOCK_BYTES);
	ASSERT_EQ(KVTIER_ST_DONE, kvt_write1(self->c.fd, 0, &key, NULL, bytes, BLOCK_BYTES, 0));
	EXPECT_TRUE(alone(&self->c, &key, at));
	key = kvt_key(SET, 51);
	at = litter(&self->c, &key);
	ASSERT_LE(0, at);
	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &key, NULL, 1, &res, 0));
	memset(kvt_wr(&self->c, res.offset), 0xa5, SLOT);
	kvt_fill(kvt_wr(&self->c, res.offset), &key, BLOCK_BYTES);
	ASSERT_EQ(1, kvt_commit(self->c.fd, 0, &res.handle, 1, &res));
	EXPECT_TRUE(alone(&self->c, &key, at));
}

TEST_F(export, holds_its_tier)
{
	EXPECT_EQ(NR, kvt_release(self->c.fd, self->handles, NR, NULL));
	EXPECT_EQ(-EBUSY, kvt_tier_detach(&self->pool, self->tier, 0, 50 * KVT_MSEC));
	EXPECT_EQ(-EBUSY, kvt_tier_detach(&self->pool, self->tier, KVTIER_DETACH_DISCARD,
					  50 * KVT_MSEC));
	EXPECT_EQ(-EBUSY, drain(&self->pool, self->tier));
	kvt_client_close(&self->c);
	EXPECT_EQ(-EBUSY, kvt_pool_destroy(self->pool.ctl, self->pool.id));
	close(self->buf);
	self->buf = -1;
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, self->tier, KVTIER_DETACH_DISCARD,
				     10 * KVT_SEC));
}

/* Who has put a page of it where only the kernel's counts show it sees no other block there. */
TEST_F(export, page_in_a_socket)
{
	struct kvt_key key = kvt_key(SET, 50);
	struct kvtier_block_result res;
	static char bytes[4096], now[4096];
	const char *view;
	char *at;
	int buf;

	ASSERT_EQ(1, kvt_put(&self->c, 0, 0, &key, NULL, 1));
	ASSERT_EQ(1, kvt_get(self->c.fd, 0, 0, &key, 1, &res, 0));
	buf = export(self->c.fd, &res.handle, 1, NULL);
	ASSERT_LE(0, buf);
	at = mmap(NULL, SLOT, PROT_READ, MAP_SHARED, buf, 0);
	ASSERT_NE(MAP_FAILED, at);
	view = kvt_socket_view(at);
	ASSERT_NE(NULL, view);
	memcpy(bytes, view, sizeof(bytes));
	EXPECT_EQ(0, memcmp(bytes, at, sizeof(bytes)));
	munmap(at, SLOT);
	close(buf);
	EXPECT_EQ(1, kvt_release(self->c.fd, &res.handle, 1, NULL));
	EXPECT_EQ(1, kvt_drop(self->c.fd, 0, &key, 1, NULL));
	/* The worker looks at it again and again. */
	usleep(1000 * 1000);
	EXPECT_EQ(2 * NR + 1, leases(&self->pool));
	key = kvt_key(SET, 51);
	ASSERT_EQ(1, kvt_put(&self->c, 0, 0, &key, NULL, 1));
	memcpy(now, view, sizeof(now));
	EXPECT_EQ(0, memcmp(bytes, now, sizeof(now)));
	munmap((void *)view, sizeof(bytes));
	EXPECT_TRUE(KVT_UNTIL(10000, leases(&self->pool) == 2 * NR));
}

/* Readers who have a block mapped do not keep a buffer of it from ending. */
TEST_F(export, ends_though_it_is_read)
{
	struct kvt_key key = kvt_key(SET, 50);
	struct kvtier_block_result res;
	int buf;

	ASSERT_EQ(1, kvt_put(&self->c, 0, 0, &key, NULL, 1));
	ASSERT_EQ(1, kvt_get(self->c.fd, 0, 0, &key, 1, &res, 0));
	EXPECT_TRUE(kvt_bytes_ok(kvt_rd(&self->c, res.offset), &key, BLOCK_BYTES));
	buf = export(self->c.fd, &res.handle, 1, NULL);
	ASSERT_LE(0, buf);
	close(buf);
	EXPECT_TRUE(KVT_UNTIL(10000, leases(&self->pool) == 2 * NR + 1));
	EXPECT_TRUE(kvt_bytes_ok(kvt_rd(&self->c, res.offset), &key, BLOCK_BYTES));
	EXPECT_EQ(1, kvt_release(self->c.fd, &res.handle, 1, NULL));
}

/* Nor does who has another buffer of it mapped, and sees it all the time. */
TEST_F(export, ends_beside_another)
{
	struct kvt_key key = kvt_key(SET, 50);
	struct kvtier_block_result res;
	int buf, other;
	char *at;

	ASSERT_EQ(1, kvt_put(&self->c, 0, 0, &key, NULL, 1));
	ASSERT_EQ(1, kvt_get(self->c.fd, 0, 0, &key, 1, &res, 0));
	buf = export(self->c.fd, &res.handle, 1, NULL);
	other = export(self->c.fd, &res.handle, 1, NULL);
	ASSERT_LE(0, buf);
	ASSERT_LE(0, other);
	at = mmap(NULL, SLOT, PROT_READ, MAP_SHARED, other, 0);
	ASSERT_NE(MAP_FAILED, at);
	EXPECT_TRUE(kvt_bytes_ok(at, &key, BLOCK_BYTES));
	close(buf);
	EXPECT_TRUE(KVT_UNTIL(10000, leases(&self->pool) == 2 * NR + 2));
	EXPECT_TRUE(kvt_bytes_ok(at, &key, BLOCK_BYTES));
	munmap(at, SLOT);
	close(other);
	EXPECT_EQ(1, kvt_release(self->c.fd, &res.handle, 1, NULL));
}

TEST_F(export, what_is_no_lease)
{
	struct kvt_key fresh = kvt_key(SET, 50);
	struct kvtier_block_result res;
	struct kvt_client other;
	__s32 gone;

	ASSERT_EQ(1, kvt_reserve(self->c.fd, 0, 0, &fresh, NULL, 1, &res, 0));
	EXPECT_EQ(-EINVAL, export(self->c.fd, &res.handle, 1, NULL));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &other, "export", BLOCK_BYTES));
	EXPECT_EQ(-EINVAL, export(other.fd, self->handles, NR, NULL));
	kvt_client_close(&other);
	/* Dropped: the buffer goes on, but there is no new one. */
	ASSERT_EQ(1, kvt_drop(self->c.fd, 0, &self->keys[NR - 1], 1, &gone));
	EXPECT_EQ(-EINVAL, export(self->c.fd, self->handles, NR, NULL));
	EXPECT_EQ(NR, kvt_release(self->c.fd, self->handles, NR, NULL));
	EXPECT_EQ(-EINVAL, export(self->c.fd, self->handles + 1, 1, NULL));
	EXPECT_EQ(NR, leases(&self->pool));
}

static int open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* A buffer whose descriptor the caller cannot be told of is none, and holds nothing. */
TEST_F(export, result_cannot_be_written)
{
	struct kvtier_export *x = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int before = open_files(), lowest = dup(self->buf), i;

	ASSERT_NE(MAP_FAILED, x);
	ASSERT_LE(0, lowest);
	close(lowest);
	*x = (struct kvtier_export) {
		.size = sizeof(*x), .nr = NR, .fd = -1, .handles = KVT_U64(self->handles),
	};
	ASSERT_EQ(0, mprotect(x, 4096, PROT_READ));
	/* More often than there is room for buffers. */
	for (i = 0; i < 20; i++)
		ASSERT_EQ(-EFAULT, kvt_ioctl(self->c.fd, KVTIER_OP_EXPORT, x));
	EXPECT_EQ(before, open_files());
	EXPECT_EQ(-1, x->fd);
	/* Nor is a number lost. */
	EXPECT_EQ(lowest, dup(self->buf));
	close(lowest);
	EXPECT_EQ(2 * NR, leases(&self->pool));
	ASSERT_EQ(0, mprotect(x, 4096, PROT_READ | PROT_WRITE));
	ASSERT_EQ(0, kvt_ioctl(self->c.fd, KVTIER_OP_EXPORT, x));
	EXPECT_EQ(lowest, x->fd);
	EXPECT_EQ(FD_CLOEXEC, fcntl(x->fd, F_GETFD));
	EXPECT_EQ(3 * NR, leases(&self->pool));
	close(x->fd);
	EXPECT_EQ(2 * NR, leases(&self->pool));
	munmap(x, 4096);
}

/* Half of the memory is the most; what is refused holds nothing. */
TEST_F(export, has_a_limit)
{
	__u64 many[60];
	int fd[2], i;

	for (i = 0; i < 60; i++)
		many[i] = self->handles[i % NR];
	fd[0] = export(self->c.fd, many, 30, NULL);	/* and the 6 there are: 3.5 of 4 MiB */
	ASSERT_LE(0, fd[0]);
	EXPECT_EQ(-ENOSPC, export(self->c.fd, many, 10, NULL));
	EXPECT_EQ(2 * NR + 30, leases(&self->pool));
	close(fd[0]);
	EXPECT_EQ(-ENOSPC, export(self->c.fd, many, 60, NULL));
	fd[1] = export(self->c.fd, many, 10, NULL);
	EXPECT_LE(0, fd[1]);
	close(fd[1]);
	EXPECT_EQ(2 * NR, leases(&self->pool));
}

/* Its device goes: mappings go with it, and the tier's memory stays until the buffer ends. */
TEST_F(export, device_is_taken_away)
{
	char *at;
	int dev;

	if (!variant->dax)
		SKIP(return, "a device-dax instance is needed");
	dev = import(self->buf, IMPORT_READ);
	ASSERT_LE(0, dev);
	at = mmap(NULL, NR * SLOT, PROT_READ, MAP_SHARED, self->buf, 0);
	ASSERT_NE(MAP_FAILED, at);
	ASSERT_EQ(0, kvt_touch_read(at + SLOT));
	EXPECT_EQ(NR, kvt_release(self->c.fd, self->handles, NR, NULL));
	ASSERT_EQ(0, kvt_sh("echo %s > /sys/bus/dax/drivers/kvtier/unbind", kvt_env_dax()));
	EXPECT_EQ(SIGBUS, kvt_touch_read(at + SLOT));
	EXPECT_EQ(SIGBUS, kvt_touch_read(at));
	EXPECT_EQ(-ENODEV, import(self->buf, IMPORT_READ));
	EXPECT_EQ(-EBUSY, kvt_tier_detach(&self->pool, self->tier, 0, 50 * KVT_MSEC));
	/* The one that was there reads what was there: unbound memory still answers. */
	EXPECT_TRUE(device_sees(dev, 0, &self->keys[NR - 1]));
	munmap(at, NR * SLOT);
	close(dev);
	close(self->buf);
	self->buf = -1;
	EXPECT_EQ(0, kvt_tier_detach(&self->pool, self->tier, 0, 10 * KVT_SEC));
}

/* Who keeps a page of it beyond its end never finds another block there. */
TEST_F(export, kept_pages_outlive_it)
{
	char page[4096], want[4096], *at;
	struct iovec iov = { .iov_len = sizeof(page) };
	int pipes[2];

	ASSERT_EQ(0, pipe(pipes));
	at = mmap(NULL, SLOT, PROT_READ, MAP_SHARED, self->buf, 0);
	ASSERT_NE(MAP_FAILED, at);
	iov.iov_base = at;
	ASSERT_EQ(4096, vmsplice(pipes[1], &iov, 1, 0));
	munmap(at, SLOT);
	close(self->buf);
	self->buf = -1;
	EXPECT_EQ(NR, kvt_release(self->c.fd, self->handles, NR, NULL));
	EXPECT_EQ(NR, kvt_drop(self->c.fd, 0, self->keys, NR, NULL));
	/* It lingers, and what it has stays where it is. */
	kvt_sleep_ms(500);
	EXPECT_EQ(NR, leases(&self->pool));
	EXPECT_EQ(-EBUSY, kvt_tier_detach(&self->pool, self->tier, 0, 100 * KVT_MSEC));
	kvt_fill(want, &self->keys[NR - 1], sizeof(want));
	ASSERT_EQ(4096, read(pipes[0], page, sizeof(page)));
	EXPECT_EQ(0, memcmp(page, want, sizeof(page)));
	EXPECT_TRUE(KVT_UNTIL(10000, !leases(&self->pool)));
	close(pipes[0]);
	close(pipes[1]);
}

/* Blocks in an arena are its file's to write: devices of its may do both, of others' not. */
TEST_F(export, of_an_arena)
{
	struct kvtier_group g = { .block_bytes = BLOCK_BYTES };
	struct kvtier_arena a = { .size = sizeof(a), .nr_slots = 2 };
	struct kvtier_block_result res, got;
	struct kvt_key key = kvt_key(SET, 100);
	struct kvt_client c, other;
	struct kvtier_ns_open o;
	__u64 handles[2];
	int buf, dev;

	kvt_ns_args(&o, "arena", &g, 1);
	o.min_bytes = 4 * KVT_MIB;
	ASSERT_EQ(0, kvt_client_bind(&c, kvt_open(&self->pool), &o));
	ASSERT_EQ(0, kvt_client_bind(&other, kvt_open(&self->pool), &o));
	ASSERT_EQ(0, kvt_ioctl(c.fd, KVTIER_OP_ARENA, &a));
	ASSERT_EQ(1, kvt_reserve(c.fd, KVTIER_RESERVE_ARENA, 0, &key, NULL, 1, &res, 0));
	kvt_fill(kvt_wr(&c, res.offset), &key, BLOCK_BYTES);
	ASSERT_EQ(1, kvt_commit(c.fd, 0, &res.handle, 1, &res));
	ASSERT_EQ(1, kvt_get(c.fd, 0, 0, &key, 1, &got, 0));
	handles[0] = got.handle;
	buf = export(c.fd, handles, 1, NULL);
	ASSERT_LE(0, buf);
	EXPECT_EQ(-EACCES, import(buf, IMPORT_WRITE));
	dev = import(buf, IMPORT_BOTH);
	ASSERT_LE(0, dev);
	EXPECT_TRUE(device_sees(dev, 0, &key));
	close(dev);
	close(buf);
	/* With a block elsewhere as well. */
	key = kvt_key(SET, 101);
	ASSERT_EQ(1, kvt_put(&c, 0, 0, &key, NULL, 1));
	ASSERT_EQ(1, kvt_get(c.fd, 0, 0, &key, 1, &got, 0));
	handles[1] = got.handle;
	buf = export(c.fd, handles, 2, NULL);
	ASSERT_LE(0, buf);
	EXPECT_EQ(-EACCES, import(buf, IMPORT_BOTH));
	close(buf);
	/* Another file of the namespace has not claimed it. */
	key = kvt_key(SET, 100);
	ASSERT_EQ(1, kvt_get(other.fd, 0, 0, &key, 1, &got, 0));
	buf = export(other.fd, &got.handle, 1, NULL);
	ASSERT_LE(0, buf);
	EXPECT_EQ(-EACCES, import(buf, IMPORT_BOTH));
	close(buf);
	kvt_client_close(&other);
	kvt_client_close(&c);
}

/* --- blocks that have come from another tier ------------------------------------------------- */

FIXTURE(moved)
{
	struct kvt_pool pool;
	struct kvt_client c;	/* has an arena in @tier */
	struct kvt_client later;
	struct kvt_key key;	/* in the arena, with something behind it */
	int tier;		/* the faster one */
};

FIXTURE_VARIANT(moved)
{
	bool disk;
};

FIXTURE_VARIANT_ADD(moved, up_from_a_disk) { .disk = true };
FIXTURE_VARIANT_ADD(moved, down_in_memory) { .disk = false };

FIXTURE_SETUP(moved)
{
	struct kvtier_arena a = { .size = sizeof(a), .nr_slots = 2 };
	struct kvtier_group g = { .block_bytes = BLOCK_BYTES };
	struct kvtier_block_result res;
	struct kvtier_ns_open o;
	char *at;

	self->later.fd = -1;
	if (variant->disk && !kvt_env_bdev())
		SKIP(return, "no block device to use (KVT_BDEV)");
	ASSERT_EQ(0, kvt_setup(&self->pool));
	ASSERT_LE(0, variant->disk ? kvt_tier_bdev(&self->pool, 1, 64 * KVT_MIB) :
				     kvt_tier_dram(&self->pool, 1, 8 * KVT_MIB));
	self->tier = kvt_tier_dram(&self->pool, 0, 8 * KVT_MIB);
	ASSERT_LE(0, self->tier);
	kvt_ns_args(&o, "moved", &g, 1);
	o.min_bytes = 4 * KVT_MIB;
	ASSERT_EQ(0, kvt_client_bind(&self->c, kvt_open(&self->pool), &o));
	self->key = kvt_key(SET, 60);
	ASSERT_EQ(0, kvt_ioctl(self->c.fd, KVTIER_OP_ARENA, &a));
	ASSERT_EQ(1, kvt_reserve(self->c.fd, KVTIER_RESERVE_ARENA, 0, &self->key, NULL, 1, &res, 0));
	ASSERT_EQ(self->tier, res.tier);
	at = kvt_wr(&self->c, res.offset);
	kvt_fill(at, &self->key, BLOCK_BYTES);
	ASSERT_EQ(1, kvt_commit(self->c.fd, 0, &res.handle, 1, &res));
	memset(at + BLOCK_BYTES, 0x5a, SLOT - BLOCK_BYTES);
}

FIXTURE_TEARDOWN(moved)
{
	kvt_client_close(&self->later);
	kvt_client_close(&self->c);
	EXPECT_EQ(0, kvt_teardown(&self->pool));
}

/* A move takes along all of a slot's pages, and clears what is behind the block where they go. */
TEST_F(moved, nothing_beside_a_block)
{
	struct kvtier_block_result res;

	/* The arena goes with its file, what is in it stays. */
	kvt_client_close(&self->c);
	ASSERT_EQ(0, kvt_tier_detach(&self->pool, self->tier, 0, 20 * KVT_SEC));
	if (variant->disk)
		ASSERT_LE(0, kvt_tier_dram(&self->pool, 0, 8 * KVT_MIB));
	ASSERT_EQ(0, kvt_client_open(&self->pool, &self->later, "moved", BLOCK_BYTES));
	ASSERT_EQ(1, kvt_check(&self->later, 0, &self->key, 1, 10 * KVT_SEC));
	ASSERT_EQ(1, kvt_get(self->later.fd, 0, 0, &self->key, 1, &res, 0));
	EXPECT_TRUE(alone(&self->later, &self->key, res.offset));
}

TEST_HARNESS_MAIN
