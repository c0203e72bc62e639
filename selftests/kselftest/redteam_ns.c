// SPDX-License-Identifier: GPL-2.0
/*
 * Red team: whose a namespace is, and whether it can be told that it is there at all.
 */
#include "kvt_redteam.h"
#include <dirent.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define TEAM	2001	/* a group */

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd	438
#endif

static struct kvtier_group group = { .block_bytes = RT_BLOCK };

/* What NS_OPEN says to a process as it is. */
static int try_open(const struct rt *t, struct kvtier_ns_open *a, int mode)
{
	int fd = open(t->pool.open_node, mode | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = kvt_ioctl(fd, KVTIER_OP_NS_OPEN, a);
	close(fd);
	return err;
}

/* Arguments that name @identity of @owner. */
static void of_owner(struct kvtier_ns_open *a, const char *identity, uid_t owner)
{
	kvt_ns_args(a, identity, &group, 1);
	a->flags = KVTIER_NS_OWNER;
	a->owner_uid = owner;
}

/* --- who is who -------------------------------------------------------------------- */

ATTACK(identity_collision, RT_UID)
{
	char *buf = malloc(RT_BLOCK);
	int i;

	RT_CHECK(t->bob.ns_id != t->alice.ns_id);
	RT_CHECK(kvt_lookup(t->bob.fd, 0, t->key, RT_BLOCKS, NULL) == 0);
	/* The same keys with other bytes, and gone again: hers are others. */
	memset(buf, 0x44, RT_BLOCK);
	for (i = 0; i < RT_BLOCKS; i++)
		RT_CHECK(kvt_write1(t->bob.fd, 0, &t->key[i], i ? &t->key[i - 1] : NULL, buf,
				    RT_BLOCK, 0) == KVTIER_ST_DONE);
	RT_CHECK(kvt_read1(t->alice.fd, 0, &t->key[3], buf, RT_BLOCK, 0) == KVTIER_ST_HIT);
	RT_CHECK(kvt_bytes_ok(buf, &t->key[3], RT_BLOCK));
	RT_CHECK(kvt_drop(t->bob.fd, 0, t->key, RT_BLOCKS, NULL) == RT_BLOCKS);
	free(buf);
	return rt_expect(t);
}

/* Whoever comes first with a name does not keep the other from it, or from its options. */
TEST_F(redteam, identity_squatted)
{
	static const char name[] = "wanted by alice";
	int bob = rt_file(self->t, RT_BOB, RT_BOB, rt_boxed(true));
	struct kvtier_ns_open a, b;
	int wanted;
	struct kvt_client alice;

	kvt_ns_args(&a, name, &group, 1);
	a.flags |= KVTIER_NS_EXCL;
	a.quota_bytes = RT_BLOCK;
	a.mode = 0777;
	ASSERT_EQ(0, kvt_ioctl(bob, KVTIER_OP_NS_OPEN, &a));
	kvt_ns_args(&b, name, &group, 1);
	b.flags |= KVTIER_NS_EXCL;
	wanted = rt_file(self->t, RT_ALICE, RT_ALICE, rt_boxed(false));
	ASSERT_EQ(0, kvt_client_bind(&alice, wanted, &b));
	EXPECT_NE(a.ns_id, b.ns_id);
	/* Room for more than the squatter's quota. */
	EXPECT_EQ(RT_BLOCKS, kvt_put(&alice, 0, 0, self->t->key, NULL, RT_BLOCKS));
	kvt_client_close(&alice);
	close(bob);
	EXPECT_EQ(0, rt_intact(self->t));
}

/* uid 0 of a container is whoever it is outside. */
ATTACK(container_root, RT_BOX_ALWAYS)
{
	struct kvtier_stat st;
	struct kvtier_ns_open a;

	RT_CHECK(getuid() == 0);
	kvt_ns_args(&a, t->identity, &group, 1);
	a.flags = 0;
	RT_CHECK(!try_open(t, &a, O_RDWR) && a.ns_id == t->bob.ns_id);
	RT_CHECK(kvt_stat(t->bob.fd, KVTIER_STAT_POOL, &st) == -EPERM);
	RT_CHECK(open("/dev/kvtier", O_RDWR) < 0 && errno == EACCES);
	RT_CHECK(open(t->pool.node, O_RDWR) < 0 && errno == EACCES);
	/* ALICE's uid has no name here, nor has the real root's. */
	of_owner(&a, t->identity, RT_ALICE);
	RT_CHECK(try_open(t, &a, O_RDONLY) == -ENOENT);
	of_owner(&a, t->identity, 0);
	RT_CHECK(!try_open(t, &a, O_RDWR) && a.ns_id == t->bob.ns_id);
	return 0;
}

/* A node of one's own, on a filesystem of one's own: needs what a container does not give. */
ATTACK(nodes_made_in_a_container, RT_BOX_ALWAYS)
{
	struct stat data, ctl;

	RT_CHECK(!stat(t->pool.node, &data) && !stat("/dev/kvtier", &ctl));
	RT_CHECK(!mount("rt", "/tmp", "tmpfs", 0, NULL));
	RT_CHECK(mknod("/tmp/data", S_IFCHR | 0666, data.st_rdev) && errno == EPERM);
	RT_CHECK(mknod("/tmp/ctl", S_IFCHR | 0666, ctl.st_rdev) && errno == EPERM);
	return 0;
}

/* A control device that came in by a node is not to be used either. */
ATTACK(control_commands, RT_UID)
{
	static const unsigned int op[] = {
		KVTIER_OP_POOL_CREATE, KVTIER_OP_POOL_DESTROY, KVTIER_OP_POOL_ASSEMBLE,
		KVTIER_OP_TIER_ATTACH, KVTIER_OP_TIER_DETACH, KVTIER_OP_TIER_DRAIN,
		KVTIER_OP_NS_CLAIM, KVTIER_OP_POOL_SCRUB,
	};
	__u64 arg[64] = { 512 };
	size_t i;

	for (i = 0; i < KVT_ARRAY(op); i++) {
		/* The descriptor was opened by root; who calls is what counts. */
		RT_CHECK(kvt_ioctl(t->pool.ctl, op[i], arg) == -EPERM);
		RT_CHECK(kvt_ioctl(t->bob.fd, op[i], arg) == -ENOTTY);
	}
	return 0;
}

/* A privileged process is made to bind BOB's file: it is his, not the process's. */
static int deputy(struct kvt_child *me, void *arg)
{
	struct rt *t = arg;
	struct kvtier_ns_open a;

	KVT_CHILD_CHECK(kvt_hear(me, 20000) == 0);
	/* The file was opened by BOB. */
	kvt_ns_args(&a, t->identity, &group, 1);
	a.flags = 0;
	KVT_CHILD_CHECK(!kvt_ioctl(t->bob.fd, KVTIER_OP_NS_OPEN, &a));
	KVT_CHILD_CHECK(kvt_lookup(t->bob.fd, 0, t->key, 1, NULL) == 0);
	KVT_CHILD_CHECK(a.ns_id != t->alice.ns_id);
	return 0;
}

TEST_F(redteam, confused_deputy)
{
	struct kvtier_ns_open a;
	struct kvt_child root;
	int first;

	/* Root has a namespace of that name, too. */
	first = kvt_open(&self->t->pool);
	kvt_ns_args(&a, self->t->identity, &group, 1);
	ASSERT_EQ(0, kvt_ioctl(first, KVTIER_OP_NS_OPEN, &a));
	self->t->bob.fd = rt_file(self->t, RT_BOB, RT_BOB, rt_boxed(false));
	ASSERT_LE(0, self->t->bob.fd);
	ASSERT_EQ(0, kvt_spawn(&root, deputy, self->t));
	/* BOB has none yet, so the deputy finds none: not root's. */
	a.flags = 0;
	EXPECT_EQ(-ENOENT, kvt_ioctl(self->t->bob.fd, KVTIER_OP_NS_OPEN, &a));
	a.flags = KVTIER_NS_CREATE;
	close(first);
	first = rt_file(self->t, RT_BOB, RT_BOB, rt_boxed(true));
	ASSERT_EQ(0, kvt_ioctl(first, KVTIER_OP_NS_OPEN, &a));
	kvt_say(&root, 0);
	EXPECT_EQ(0, kvt_join(&root, 20000));
	close(first);
	close(self->t->bob.fd);
	EXPECT_EQ(0, rt_intact(self->t));
}

/* --- can it be told that it is there ------------------------------------------------- */

/* The answers to one question about what is there and about what is not. */
static bool told_apart(const struct rt *t, struct kvtier_ns_open *a, int mode)
{
	struct kvtier_ns_open b = *a;
	char none[sizeof(t->identity)];
	int there, not_there;

	there = try_open(t, &b, mode);
	b = *a;
	/* As long, and nobody's. */
	memcpy(none, t->identity, sizeof(none));
	none[0] = 'T';
	b.identity = KVT_U64(none);
	not_there = try_open(t, &b, mode);
	if (there != not_there || there != -ENOENT)
		fprintf(stderr, "# flags %#x, %d groups: %d and %d\n", a->flags, a->nr_groups,
			there, not_there);
	return there != not_there || there != -ENOENT;
}

ATTACK(namespaces_probed_by_errno, RT_UID)
{
	static const __u32 flags[] = { 0, KVTIER_NS_RDONLY };
	static const int mode[] = { O_RDWR, O_RDONLY, O_WRONLY };
	struct kvtier_group other[2] = { { .block_bytes = 4096 }, { .block_bytes = RT_BLOCK } };
	__u8 secret[KVTIER_SECRET_BYTES] = { 1 };
	struct kvtier_ns_open a;
	size_t f, m;
	int k;

	for (f = 0; f < KVT_ARRAY(flags); f++) {
		for (m = 0; m < KVT_ARRAY(mode); m++) {
			for (k = 0; k < 5; k++) {
				of_owner(&a, t->identity, RT_ALICE);
				a.flags |= flags[f];
				if (k == 1)
					a.groups = KVT_U64(other);
				if (k == 2)
					a.nr_groups = 2, a.groups = KVT_U64(other);
				if (k == 3)
					a.nr_groups = 0, a.groups = 0;
				if (k == 4)
					a.secret = KVT_U64(secret);
				RT_CHECK(!told_apart(t, &a, mode[m]));
			}
		}
	}
	/* Nor is a user with namespaces told from one without. */
	of_owner(&a, t->identity, 54321);
	RT_CHECK(try_open(t, &a, O_RDONLY) == -ENOENT);
	of_owner(&a, t->identity, ~0u);
	RT_CHECK(try_open(t, &a, O_RDONLY) == -ENOENT);
	return 0;
}

/* With a secret a namespace is not even there for its own user without it. */
ATTACK(secret_guessed, RT_BOX)
{
	__u8 secret[KVTIER_SECRET_BYTES], guess[KVTIER_SECRET_BYTES];
	struct kvtier_ns_open a;
	struct kvt_client c;
	int i;

	memset(secret, 0xa5, sizeof(secret));
	kvt_ns_args(&a, "secret", &group, 1);
	a.secret = KVT_U64(secret);
	RT_CHECK(!rt_open(t, &c, &a));
	a.flags = 0;
	a.secret = 0;
	RT_CHECK(try_open(t, &a, O_RDWR) == -ENOENT);
	a.secret = KVT_U64(guess);
	memset(guess, 0, sizeof(guess));
	RT_CHECK(try_open(t, &a, O_RDWR) == -ENOENT);
	for (i = 0; i < KVTIER_SECRET_BYTES * 8; i += 5) {
		memcpy(guess, secret, sizeof(guess));
		guess[i / 8] ^= 1 << i % 8;
		RT_CHECK(try_open(t, &a, O_RDWR) == -ENOENT);
	}
	/* A wrong one makes another namespace, and the right one finds this. */
	a.flags = KVTIER_NS_CREATE | KVTIER_NS_EXCL;
	RT_CHECK(!try_open(t, &a, O_RDWR) && a.ns_id != c.ns_id);
	memcpy(guess, secret, sizeof(guess));
	a.flags = 0;
	RT_CHECK(!try_open(t, &a, O_RDWR) && a.ns_id == c.ns_id);
	kvt_client_close(&c);
	return 0;
}

ATTACK(keys_probed, RT_UID)
{
	struct kvtier_lookup_result look[RT_BLOCKS], not[RT_BLOCKS];
	struct kvtier_block_result res[RT_BLOCKS];
	struct kvt_key none[RT_BLOCKS];
	__s32 st[RT_BLOCKS];
	char *buf = malloc(RT_BLOCK);
	int i;

	kvt_keys(none, RT_SET, 7000, RT_BLOCKS);
	RT_CHECK(kvt_lookup(t->bob.fd, 0, t->key, RT_BLOCKS, look) == 0);
	RT_CHECK(kvt_lookup(t->bob.fd, 0, none, RT_BLOCKS, not) == 0);
	RT_CHECK(!memcmp(look, not, sizeof(look)));
	RT_CHECK(kvt_get(t->bob.fd, 0, 0, t->key, RT_BLOCKS, res, 0) == 0);
	RT_CHECK(res[0].status == KVTIER_ST_MISS && !res[0].offset && !res[0].handle);
	RT_CHECK(kvt_read1(t->bob.fd, 0, &t->key[0], buf, RT_BLOCK, 0) == KVTIER_ST_MISS);
	RT_CHECK(kvt_prefetch(t->bob.fd, 0, 0, t->key, RT_BLOCKS, 0, -1) == 0);
	RT_CHECK(kvt_drop(t->bob.fd, 0, t->key, RT_BLOCKS, st) == 0);
	for (i = 0; i < RT_BLOCKS; i++)
		RT_CHECK(st[i] == KVTIER_ST_MISS);
	for (i = KVTIER_ADV_COLD; i <= KVTIER_ADV_TTL; i++) {
		RT_CHECK(kvt_advise(t->bob.fd, 0, t->key, 1, i, 0, st) == 0);
		RT_CHECK(st[0] == KVTIER_ST_MISS);
	}
	/* Neither is a parent of hers one of his, nor what she is filling. */
	RT_CHECK(kvt_reserve(t->bob.fd, 0, 0, none, &t->key[0], 1, res, 0) == 0);
	RT_CHECK(res[0].status == KVTIER_ST_NOPARENT);
	none[0] = kvt_key(RT_SET, RT_BLOCKS);
	RT_CHECK(kvt_reserve(t->bob.fd, 0, 0, none, NULL, 1, res, 0) == 1);
	RT_CHECK(kvt_abort(t->bob.fd, &res[0].handle, 1, NULL) == 1);
	free(buf);
	return 0;
}

/* ITERATE from anywhere shows one's own blocks and no others. */
ATTACK(cursors_guessed, RT_BOX)
{
	struct kvtier_entry e[64];
	struct kvt_key mine = kvt_key(RT_SET_BOB, 0);
	__u64 cursor;
	__u32 i;

	RT_CHECK(kvt_put(&t->bob, 0, 0, &mine, NULL, 1) == 1);
	for (cursor = 0; cursor < 5000; cursor += cursor < 64 ? 1 : 61) {
		struct kvtier_iterate a = { .size = sizeof(a), .nr = 64, .cursor = cursor,
					    .entries = KVT_U64(e) };

		RT_CHECK(!kvt_ioctl(t->bob.fd, KVTIER_OP_ITERATE, &a));
		for (i = 0; i < a.nr; i++)
			RT_CHECK(!memcmp(e[i].key, &mine, sizeof(mine)));
	}
	for (i = 12; i < 64; i++) {
		struct kvtier_iterate a = { .size = sizeof(a), .nr = 64, .cursor = 1ull << i,
					    .entries = KVT_U64(e) };

		RT_CHECK(!kvt_ioctl(t->bob.fd, KVTIER_OP_ITERATE, &a) && a.nr == 0);
	}
	return 0;
}

/* Counters of one's own, before and after ALICE does something. */
ATTACK(counters_watched, RT_UID)
{
	struct kvtier_tier_info before[KVTIER_TIERS_MAX], after[KVTIER_TIERS_MAX];
	struct kvtier_stat st[2];
	struct kvtier_query q;
	struct kvt_key key = kvt_key(RT_SET, 900);

	RT_CHECK(kvt_stat(t->bob.fd, KVTIER_STAT_POOL, &st[0]) == -EPERM);
	RT_CHECK(!kvt_stat(t->bob.fd, 0, &st[0]));
	RT_CHECK(kvt_query(t->bob.fd, &q, before) == 1);
	RT_CHECK(kvt_put(&t->alice, 0, 0, &key, NULL, 1) == 1);
	RT_CHECK(kvt_check(&t->alice, 0, &key, 1, 0) == 1);
	RT_CHECK(!kvt_stat(t->bob.fd, 0, &st[1]));
	RT_CHECK(kvt_query(t->bob.fd, &q, after) == 1);
	RT_CHECK(!memcmp(&st[0], &st[1], sizeof(st[0])));
	/* Of the pool he sees how full it is, roughly. */
	RT_CHECK(!before[0].nr_blocks && !after[0].nr_blocks);
	RT_CHECK(before[0].used_bytes == after[0].used_bytes);
	RT_CHECK(before[0].used_bytes % (RT_TIER / 16) == 0 && before[0].used_bytes);
	return rt_expect(t);
}

static bool public_file(const char *name)
{
	static const char *const names[] = {
		"capacity_bytes", "page_struct_bytes", "degraded", "uuid", "scrub_state",
		"policies", "policy", "watermark_low_percent", "watermark_high_percent",
		"reserve_percent", "copies_percent", "reservation_timeout_ms",
		"prefetch_max_bytes", "discard", "unwiped", "dev",
		"uevent", "id", "type", "rank", "state", "device",
	};
	size_t i;

	for (i = 0; i < KVT_ARRAY(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* No address of the kernel's: no run of 16 hex digits that begins as these do. */
static bool has_pointer(const char *text)
{
	const char *p;

	for (p = strstr(text, "ffff"); p; p = strstr(p + 1, "ffff"))
		if (strspn(p, "0123456789abcdef") >= 16)
			return true;
	return false;
}

static int look_at(const char *dir, const char *name)
{
	char path[600], text[4096];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	if (!public_file(name) && n >= 0)
		fprintf(stderr, "# %s can be read\n", path);
	if (has_pointer(text))
		fprintf(stderr, "# %s has a pointer in it\n", path);
	return (!public_file(name) && n >= 0) || has_pointer(text) ? 1 : 0;
}

static int look_around(const char *path)
{
	struct dirent *e;
	struct stat st;
	char sub[600];
	int bad = 0, n = 0;
	DIR *d = opendir(path);

	while (d && (e = readdir(d))) {
		snprintf(sub, sizeof(sub), "%s/%s", path, e->d_name);
		if (!lstat(sub, &st) && S_ISREG(st.st_mode)) {
			bad += look_at(path, e->d_name);
			n++;
		}
	}
	if (d)
		closedir(d);
	return n ? bad : 1;
}

/* Links of all directories of a pool in sysfs that he can look at: others' directories count. */
static long links_seen(const char *path)
{
	static const char *const dirs[] = { ".", "tiers", "private", "private/namespaces",
					    "namespaces", "namespaces/." };
	char sub[400];
	struct stat st;
	long all = 0;
	size_t i;

	for (i = 0; i < KVT_ARRAY(dirs); i++) {
		snprintf(sub, sizeof(sub), "%s/%s", path, dirs[i]);
		if (!stat(sub, &st))
			all += (long)st.st_nlink;
	}
	return all;
}

/* Does a new namespace, his own here, show in what he sees of the others? */
static bool links_tell(struct rt *t, const char *path)
{
	struct kvtier_group group = { .block_bytes = RT_BLOCK };
	int fd = open(t->pool.open_node, O_RDWR | O_CLOEXEC);
	long before = links_seen(path), after;
	struct kvtier_ns_open a;
	struct kvt_client c;

	kvt_ns_args(&a, "counted", &group, 1);
	if (!before || kvt_client_bind(&c, fd, &a))
		return true;
	after = links_seen(path);
	kvt_client_close(&c);
	return after != before;
}

ATTACK(sysfs_probed, RT_BOX)
{
	char path[300], sub[400];
	DIR *d;

	snprintf(path, sizeof(path), "/sys/class/kvtier/kvtier%u", t->pool.id);
	RT_CHECK(look_around(path) == 0);
	snprintf(sub, sizeof(sub), "%s/tiers/dram0", path);
	RT_CHECK(look_around(sub) == 0);
	/* Which namespaces there are. */
	snprintf(sub, sizeof(sub), "%s/namespaces", path);
	d = opendir(sub);
	RT_CHECK(!d && errno == EACCES);
	RT_CHECK(!links_tell(t, path));
	snprintf(sub, sizeof(sub), "%s/namespaces/%llu", path, (unsigned long long)t->alice.ns_id);
	RT_CHECK(access(sub, F_OK) && errno == EACCES);
	snprintf(sub, sizeof(sub), "%s/namespaces/999999", path);
	RT_CHECK(access(sub, F_OK) && errno == EACCES);
	snprintf(sub, sizeof(sub), "%s/namespaces/%llu/used_bytes", path,
		 (unsigned long long)t->alice.ns_id);
	RT_CHECK(open(sub, O_RDONLY) < 0 && errno == EACCES);
	/* The pool's settings are not his to change. */
	snprintf(sub, sizeof(sub), "%s/policy", path);
	RT_CHECK(open(sub, O_WRONLY) < 0 && errno == EACCES);
	RT_CHECK(open("/sys/kernel/tracing/events/kvtier/enable", O_RDWR) < 0);
	RT_CHECK(open("/sys/module/kvtier/parameters/dmaengine", O_WRONLY) < 0);
	return 0;
}

/* Root's uid with all capabilities but two, as in a container without a user namespace. */
static bool be_without_admin(void)
{
	const __u32 not = 1u << CAP_SYS_ADMIN | 1u << CAP_SYS_MODULE;
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data))
		return false;
	data[0].effective &= ~not;
	data[0].permitted &= ~not;
	data[0].inheritable &= ~not;
	return !syscall(SYS_capset, &head, data);
}

/* -errno of reading a file of the pool's (or of that path), or of writing @text to it; else the length. */
static int sysfs_try(const struct rt *t, const char *name, const char *text)
{
	char path[400], buf[256];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/sys/class/kvtier/kvtier%u/%s", t->pool.id, name);
	if (*name == '/')
		snprintf(path, sizeof(path), "%s", name);
	fd = open(path, (text ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
	if (fd >= 0)
		n = text ? write(fd, text, strlen(text)) : read(fd, buf, sizeof(buf));
	n = n < 0 ? -errno : n;
	if (fd >= 0)
		close(fd);
	return (int)n;
}

#define PARAM_TIMEOUT	"/sys/module/kvtier/parameters/dmaengine_timeout_ms"

static int capless_root(struct kvt_child *c, void *arg)
{
	static const char *const reads[] = { "used_bytes", "hits", "cgroup_limits",
					     "tiers/dram0/used_bytes" };
	static const char *const writes[] = { "watermark_high_percent", "policy", "discard",
					      "reservation_timeout_ms", "reserve_percent",
					      "copies_percent",
					      "cgroup_limits", "/sys/module/kvtier/parameters/dmaengine",
					      PARAM_TIMEOUT };
	struct rt *t = arg;
	char name[100];
	size_t i;

	(void)c;
	KVT_CHILD_CHECK(be_without_admin() && getuid() == 0);
	for (i = 0; i < KVT_ARRAY(reads); i++)
		KVT_CHILD_CHECK(sysfs_try(t, reads[i], NULL) == -EPERM);
	for (i = 0; i < KVT_ARRAY(writes); i++)
		KVT_CHILD_CHECK(sysfs_try(t, writes[i], "1") == -EPERM);
	snprintf(name, sizeof(name), "namespaces/%llu/used_bytes",
		 (unsigned long long)t->alice.ns_id);
	KVT_CHILD_CHECK(sysfs_try(t, name, NULL) == -EPERM);
	snprintf(name, sizeof(name), "namespaces/%llu/weight", (unsigned long long)t->alice.ns_id);
	KVT_CHILD_CHECK(sysfs_try(t, name, NULL) == -EPERM);
	KVT_CHILD_CHECK(sysfs_try(t, name, "7") == -EPERM);
	/* What anybody may read he may. */
	KVT_CHILD_CHECK(sysfs_try(t, "capacity_bytes", NULL) > 0);
	KVT_CHILD_CHECK(sysfs_try(t, "tiers/dram0/capacity_bytes", NULL) > 0);
	return 0;
}

TEST_F(redteam, root_without_capability)
{
	struct kvt_child child;

	ASSERT_LT(0, sysfs_try(self->t, "used_bytes", NULL));
	ASSERT_EQ(0, kvt_spawn(&child, capless_root, self->t));
	EXPECT_EQ(0, kvt_join(&child, 20000));
	EXPECT_EQ(0, rt_intact(self->t));
}

/* --- what another user may --------------------------------------------------------- */

/* ALICE's namespace @identity of @mode, with a block in it. */
static int open_shared(struct rt *t, struct kvt_client *c, const char *identity, __u32 mode)
{
	struct kvt_key key = kvt_key(RT_SET, 0);
	struct kvtier_ns_open a;
	int fd = rt_file(t, RT_ALICE, TEAM, rt_boxed(false)), err;

	if (fd < 0)
		return fd;
	kvt_ns_args(&a, identity, &group, 1);
	a.mode = mode;
	err = kvt_client_bind(c, fd, &a);
	if (err)
		return err;
	return kvt_put(c, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1) == 1 ? 0 : -EIO;
}

struct guest {
	struct rt *t;
	bool member;
	bool boxed;
	const char *identity;
};

/* BOB, who is or is not in the team too; in a container in which ALICE has a name. */
static int become_guest(const struct guest *g)
{
	gid_t team = TEAM;
	uid_t bob = RT_BOB;

	if (g->boxed) {
		if (rt_enter_users())
			return -1;
		team -= RT_USERS;
		bob -= RT_USERS;
	}
	return setgroups(g->member, &team) || setresgid(bob, bob, bob) || setresuid(bob, bob, bob);
}

/* Bits that BOB gets: 4 read, 2 write. */
static int guest(struct kvt_child *me, void *arg)
{
	struct guest *g = arg;
	uid_t alice = g->boxed ? RT_ALICE - RT_USERS : RT_ALICE;
	struct kvtier_ns_open a;
	static char buf[RT_BLOCK];
	struct kvt_key key = kvt_key(RT_SET, 0), other = kvt_key(RT_SET, 77);
	int got = 0, fd;

	(void)me;
	if (become_guest(g))
		return 100;
	of_owner(&a, g->identity, alice);
	a.flags |= KVTIER_NS_RDONLY;
	fd = open(g->t->pool.open_node, O_RDWR | O_CLOEXEC);
	if (!kvt_ioctl(fd, KVTIER_OP_NS_OPEN, &a)) {
		struct kvtier_block_result res;

		if (kvt_read1(fd, 0, &key, buf, RT_BLOCK, 0) != KVTIER_ST_HIT ||
		    !kvt_bytes_ok(buf, &key, RT_BLOCK) ||
		    kvt_reserve(fd, 0, 0, &other, NULL, 1, &res, 0) != -EACCES ||
		    kvt_drop(fd, 0, &key, 1, NULL) != -EACCES)
			return 101;
		got |= 4;
	}
	close(fd);
	of_owner(&a, g->identity, alice);
	fd = open(g->t->pool.open_node, O_RDWR | O_CLOEXEC);
	if (!kvt_ioctl(fd, KVTIER_OP_NS_OPEN, &a)) {
		if (kvt_write1(fd, 0, &other, NULL, buf, RT_BLOCK, 0) != KVTIER_ST_DONE ||
		    kvt_drop(fd, 0, &other, 1, NULL) != 1)
			return 102;
		got |= 2;
	}
	close(fd);
	/* Nobody makes namespaces for somebody else. */
	of_owner(&a, "made for alice", alice);
	a.flags |= KVTIER_NS_CREATE;
	if (try_open(g->t, &a, O_RDWR) != -EINVAL)
		return 103;
	return got;
}

static int guest_gets(struct rt *t, const char *identity, bool member)
{
	struct guest g = { t, member, rt_boxed(!member), identity };
	struct kvt_child child;

	return kvt_spawn(&child, guest, &g) ?: kvt_join(&child, 20000);
}

TEST_F(redteam, modes_decide_for_others)
{
	static const struct {
		const char *identity;
		__u32 mode;
		int member;
		int other;
	} ns[] = {
		{ "m600", 0600, 0, 0 },
		{ "m640", 0640, 4, 0 },
		{ "m660", 0660, 6, 0 },
		{ "m644", 0644, 4, 4 },
		{ "m606", 0606, 0, 6 },
		{ "m620", 0620, 0, 0 },
		{ "m604", 0604, 0, 4 },
		{ "m777", 0777, 6, 6 },
	};
	struct kvt_client c;
	size_t i;

	for (i = 0; i < KVT_ARRAY(ns); i++) {
		ASSERT_EQ(0, open_shared(self->t, &c, ns[i].identity, ns[i].mode));
		EXPECT_EQ(ns[i].member, guest_gets(self->t, ns[i].identity, true))
			TH_LOG("member, mode %o", ns[i].mode);
		EXPECT_EQ(ns[i].other, guest_gets(self->t, ns[i].identity, false))
			TH_LOG("other, mode %o", ns[i].mode);
		kvt_client_close(&c);
	}
	EXPECT_EQ(0, rt_intact(self->t));
}

/* --- the victim's process ------------------------------------------------------------- */

static int victim(struct kvt_child *me, void *arg)
{
	struct rt *t = arg;

	KVT_CHILD_CHECK(!rt_become(RT_ALICE, RT_UID));
	KVT_CHILD_CHECK(rt_same_bytes(kvt_rd(&t->alice, t->offset[0]), &t->key[0]));
	KVT_CHILD_CHECK(!kvt_say(me, 0));
	return kvt_hear(me, 60000) == 0 ? 0 : 1;
}

static pid_t victim_pid;

static int attack_victim(struct rt *t)
{
	char buf[64] = "x", path[64];
	struct iovec local = { buf, sizeof(buf) };
	struct iovec remote = { kvt_rd(&t->alice, t->offset[0]), sizeof(buf) };
	int pidfd = (int)syscall(SYS_pidfd_open, victim_pid, 0);

	RT_CHECK(process_vm_readv(victim_pid, &local, 1, &remote, 1, 0) < 0);
	remote.iov_base = kvt_wr(&t->alice, t->fill.offset);
	RT_CHECK(process_vm_writev(victim_pid, &local, 1, &remote, 1, 0) < 0);
	RT_CHECK(pidfd < 0 || syscall(SYS_pidfd_getfd, pidfd, t->alice.fd, 0) < 0);
	RT_CHECK(ptrace(PTRACE_ATTACH, victim_pid, NULL, NULL) < 0);
	snprintf(path, sizeof(path), "/proc/%d/mem", victim_pid);
	RT_CHECK(open(path, O_RDONLY) < 0);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", victim_pid, t->alice.fd);
	RT_CHECK(open(path, O_RDWR) < 0);
	RT_CHECK(kill(victim_pid, SIGSTOP) && errno == EPERM);
	return 0;
}

TEST_F(redteam, victims_process)
{
	struct kvt_child child;

	ASSERT_EQ(0, kvt_spawn(&child, victim, self->t));
	ASSERT_EQ(0, kvt_hear(&child, 20000));
	victim_pid = child.pid;
	EXPECT_EQ(0, rt_attack(self->t, RT_BOX, attack_victim));
	kvt_say(&child, 0);
	EXPECT_EQ(0, kvt_join(&child, 20000));
}

TEST_HARNESS_MAIN
