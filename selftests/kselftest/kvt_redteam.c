// SPDX-License-Identifier: GPL-2.0
/*
 * What the attacks share: victim, attacker, and the look at the victim afterwards.
 */
#include "kvt_redteam.h"
#include <grp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define ATTACK_MS	60000

bool rt_boxed(bool usually)
{
	const char *how = getenv("KVT_RT_HOW");

	return how ? !strcmp(how, "box") : usually;
}

static int become(uid_t uid, gid_t gid, enum rt_how how);

/* Open the data device in a container of @uid's, and hand the file out of it. */
static int send_boxed(const struct rt *t, uid_t uid, gid_t gid, int line)
{
	char byte = 0, space[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = space, .msg_controllen = sizeof(space),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int fd;

	if (become(uid, gid, RT_BOX) || getuid())
		return 1;
	fd = open(t->pool.open_node, O_RDWR | O_CLOEXEC);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return fd < 0 || sendmsg(line, &msg, 0) != 1;
}

static int receive_file(int line)
{
	char byte, space[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = space, .msg_controllen = sizeof(space),
	};
	struct cmsghdr *c;
	int fd = -EIO;

	if (recvmsg(line, &msg, MSG_CMSG_CLOEXEC) != 1)
		return -EIO;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

static int open_boxed(const struct rt *t, uid_t uid, gid_t gid)
{
	int line[2], fd, status;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line))
		return -errno;
	fflush(NULL);
	pid = fork();
	if (!pid)
		_exit(send_boxed(t, uid, gid, line[1]));
	close(line[1]);
	fd = pid < 0 ? -EAGAIN : receive_file(line[0]);
	close(line[0]);
	if (pid > 0 && waitpid(pid, &status, 0) == pid && status)
		fprintf(stderr, "# the container of %u: %#x\n", uid, status);
	return fd;
}

int rt_file(const struct rt *t, uid_t uid, gid_t gid, bool boxed)
{
	int fd, err;

	if (boxed)
		return open_boxed(t, uid, gid);
	if (setgroups(0, NULL) || setresgid(gid, gid, 0) || setresuid(uid, uid, 0))
		return -errno;
	fd = open(t->pool.open_node, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	err = kvt_become(0);
	return err ? err : fd;
}

/* Every second victim is in a container, if nothing else is said. */
static int bind_alice(struct rt *t, bool boxed)
{
	struct kvtier_group group = { .block_bytes = RT_BLOCK };
	struct kvtier_ns_open a;
	int fd = rt_file(t, RT_ALICE, RT_ALICE, boxed), err;

	if (fd < 0)
		return fd;
	kvt_ns_args(&a, t->identity, &group, 1);
	err = kvt_client_bind(&t->alice, fd, &a);
	if (err)
		return err;
	t->reader = kvt_open_as(&t->pool, RT_ALICE);
	a.flags = KVTIER_NS_RDONLY;
	err = t->reader < 0 ? t->reader : kvt_ioctl(t->reader, KVTIER_OP_NS_OPEN, &a);
	return err ? err : kvt_map(t->reader, PROT_READ, 0, t->alice.rd.bytes, &t->rd);
}

static int store_alice(struct rt *t)
{
	struct kvtier_block_result res[RT_BLOCKS];
	struct kvt_key next = kvt_key(RT_SET, RT_BLOCKS);
	int i;

	kvt_keys(t->key, RT_SET, 0, RT_BLOCKS);
	if (kvt_put(&t->alice, 0, 0, t->key, NULL, RT_BLOCKS) != RT_BLOCKS ||
	    kvt_get(t->alice.fd, 0, 0, t->key, RT_BLOCKS, res, 0) != RT_BLOCKS)
		return -EIO;
	for (i = 0; i < RT_BLOCKS; i++) {
		t->lease[i] = res[i].handle;
		t->offset[i] = res[i].offset;
	}
	if (kvt_reserve(t->alice.fd, 0, 0, &next, &t->key[RT_BLOCKS - 1], 1, &t->fill, 0) != 1)
		return -EIO;
	kvt_fill(kvt_wr(&t->alice, t->fill.offset), &next, RT_BLOCK);
	return rt_expect(t);
}

int rt_expect(struct rt *t)
{
	return kvt_stat(t->alice.fd, 0, &t->before);
}

static void *shared(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

struct rt_pool *rt_pool_make(void)
{
	struct rt_pool *p = shared(sizeof(*p));
	int err = p ? kvt_setup(&p->pool) : -ENOMEM;

	/* A slow machine must not take a reservation for abandoned. */
	if (!err)
		err = kvt_sysfs_write(&p->pool, "reservation_timeout_ms", "3600000");
	/* Nothing leaves memory but for somebody who needs room. */
	if (!err)
		err = kvt_sysfs_write(&p->pool, "watermark_high_percent", "100");
	/* All there is can be reserved, beside others, to see what is in it. */
	if (!err)
		err = kvt_sysfs_write(&p->pool, "reserve_percent", "100");
	/* And then what is oldest does. */
	if (!err)
		err = kvt_sysfs_write(&p->pool, "policy", "lru");
	if (err) {
		fprintf(stderr, "# making a pool: %s\n", strerror(-err));
		return NULL;
	}
	p->maker = getpid();
	return p;
}

void rt_pool_end(struct rt_pool *p)
{
	if (p && p->maker == getpid() && kvt_teardown(&p->pool))
		fprintf(stderr, "# the pool could not be destroyed\n");
}

static int set_up(struct rt *t, struct rt_pool *p)
{
	int err;

	t->pool = p->pool;
	snprintf(t->identity, sizeof(t->identity), "tenant %u", 1000 + ++p->nr);
	t->reader = -1;
	t->alice.fd = -1;
	t->bob.fd = -1;
	kvt_klog_start();
	t->tier = kvt_tier_dram(&t->pool, 0, RT_TIER);
	err = t->tier < 0 ? t->tier : bind_alice(t, rt_boxed(p->nr % 2));
	return err ? err : store_alice(t);
}

struct rt *rt_setup(struct rt_pool *p)
{
	struct rt *t = shared(sizeof(*t));
	int err = t ? set_up(t, p) : -ENOMEM;

	if (err)
		fprintf(stderr, "# setting up: %s\n", strerror(-err));
	return err ? NULL : t;
}

int rt_teardown(struct rt *t)
{
	int err;

	kvt_kill_all();
	kvt_unmap(&t->rd);
	if (t->reader >= 0)
		close(t->reader);
	kvt_client_close(&t->alice);
	/* What the attacker had goes in the kernel's own time. */
	err = kvt_tier_detach(&t->pool, t->tier, KVTIER_DETACH_DISCARD, 20 * KVT_SEC);
	if (err)
		fprintf(stderr, "# taking the memory back: %s\n", strerror(-err));
	return err ? err : kvt_klog_complaints();
}

static int write_map(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

static int become(uid_t uid, gid_t gid, enum rt_how how)
{
	char users[32], groups[32];
	int err;

	if (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
		return -errno;
	/* Or it would not own its own /proc files. */
	if (prctl(PR_SET_DUMPABLE, 1))
		return -errno;
	if (how == RT_UID)
		return 0;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWCGROUP))
		return -errno;
	err = write_map("/proc/self/setgroups", "deny");
	snprintf(users, sizeof(users), "0 %u 1", uid);
	snprintf(groups, sizeof(groups), "0 %u 1", gid);
	return err ?: write_map("/proc/self/uid_map", users) ?:
	       write_map("/proc/self/gid_map", groups);
}

int rt_become(uid_t uid, enum rt_how how)
{
	return become(uid, uid, how);
}

/* Only who is outside may map more than his own: a child that has been left there. */
static int map_from_outside(pid_t pid, int line)
{
	char path[64], map[64], byte;
	int err;

	if (read(line, &byte, 1) != 1)
		return 1;
	snprintf(map, sizeof(map), "0 %u %u", RT_USERS, RT_NR_USERS);
	snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	err = write_map(path, map);
	snprintf(path, sizeof(path), "/proc/%d/gid_map", pid);
	return (err ?: write_map(path, map)) ? 1 : 0;
}

int rt_enter_users(void)
{
	int line[2], status = -1, err = 0;
	pid_t me = getpid(), pid;

	if (pipe2(line, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (!pid) {
		close(line[1]);
		_exit(map_from_outside(me, line[0]));
	}
	if (pid < 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWCGROUP) ||
	    write(line[1], "", 1) != 1)
		err = -errno;
	close(line[0]);
	close(line[1]);
	if (pid > 0 && (waitpid(pid, &status, 0) != pid || status) && !err)
		err = -EPERM;
	return err;
}

int rt_open(const struct rt *t, struct kvt_client *c, struct kvtier_ns_open *a)
{
	int fd = open(t->pool.open_node, O_RDWR | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = kvt_client_bind(c, fd, a);
	if (err)
		kvt_client_close(c);
	return err;
}

int rt_open_own(const struct rt *t, struct kvt_client *c, const char *identity)
{
	struct kvtier_group group = { .block_bytes = RT_BLOCK };
	struct kvtier_ns_open a;

	kvt_ns_args(&a, identity, &group, 1);
	return rt_open(t, c, &a);
}

struct raid {
	struct rt *t;
	enum rt_how how;
	rt_fn fn;
};

static int run_raid(struct kvt_child *me, void *arg)
{
	struct raid *a = arg;
	int ret;

	(void)me;
	if (a->how != RT_BOX_ALWAYS)
		a->how = rt_boxed(a->how == RT_BOX) ? RT_BOX : RT_UID;
	ret = rt_become(RT_BOB, a->how);
	if (ret) {
		fprintf(stderr, "# becoming the attacker: %s\n", strerror(-ret));
		return 2;
	}
	ret = rt_open_own(a->t, &a->t->bob, a->t->identity);
	if (ret) {
		fprintf(stderr, "# the attacker's own namespace: %s\n", strerror(-ret));
		return 3;
	}
	return a->fn(a->t);
}

static int rt_touched(const char *what)
{
	fprintf(stderr, "# the victim's %s\n", what);
	return -EBADMSG;
}

/* Blocks she does not hold may have gone to make room, as anybody's may. */
static bool same_counts(struct rt *t)
{
	struct kvtier_stat st, *b = &t->before;
	__u64 gone;

	if (kvt_stat(t->alice.fd, 0, &st))
		return false;
	gone = st.evictions - b->evictions;
	return st.nr_blocks + gone == b->nr_blocks &&
	       st.used_bytes + gone * RT_BLOCK == b->used_bytes && st.leases == b->leases &&
	       st.aborts == b->aborts && st.drops == b->drops && st.puts == b->puts;
}

int rt_intact(struct rt *t)
{
	struct kvtier_block_result done;
	struct kvt_key next = kvt_key(RT_SET, RT_BLOCKS);
	int i;

	if (!KVT_UNTIL(2000, same_counts(t)))
		return rt_touched("counts have changed");
	for (i = 0; i < RT_BLOCKS; i++) {
		if (kvt_bytes_probe(kvt_rd(&t->alice, t->offset[i]), &t->key[i], RT_BLOCK) != 1)
			return rt_touched("bytes have changed");
	}
	if (kvt_lookup(t->alice.fd, 0, t->key, RT_BLOCKS, NULL) != RT_BLOCKS)
		return rt_touched("blocks have gone");
	if (kvt_bytes_probe(kvt_wr(&t->alice, t->fill.offset), &next, RT_BLOCK) != 1)
		return rt_touched("reservation has other bytes");
	if (kvt_commit(t->alice.fd, 0, &t->fill.handle, 1, &done) != 1)
		return rt_touched("reservation cannot be committed");
	if (kvt_check(&t->alice, 0, &next, 1, 0) != 1)
		return rt_touched("new block is wrong");
	if (kvt_release(t->alice.fd, t->lease, RT_BLOCKS, NULL) != RT_BLOCKS)
		return rt_touched("leases have gone");
	return 0;
}

int rt_attack(struct rt *t, enum rt_how how, rt_fn fn)
{
	struct raid a = { t, how, fn };
	struct kvt_child child;
	int ret;

	ret = kvt_spawn(&child, run_raid, &a);
	if (ret)
		return ret;
	ret = kvt_join(&child, ATTACK_MS);
	return ret && ret != RT_SKIP ? ret : rt_intact(t) ?: ret;
}

bool rt_same_bytes(const void *p, const struct kvt_key *key)
{
	char want[512];

	kvt_fill(want, key, sizeof(want));
	return !memcmp(p, want, sizeof(want));
}

bool rt_zero(const void *p, size_t bytes)
{
	const __u64 *w = p;
	size_t i;

	for (i = 0; i < bytes / sizeof(*w); i++)
		if (w[i])
			return false;
	return true;
}

int rt_free_slots(const struct kvt_client *c, __u32 set, __u64 *offset)
{
	static struct kvtier_block_result res[RT_SLOTS];
	static struct kvt_key keys[RT_SLOTS], roots[RT_SLOTS];
	__u64 handle[RT_SLOTS];
	int i, n = 0;

	kvt_keys(keys, set, 100000, RT_SLOTS);
	if (kvt_reserve(c->fd, KVTIER_RESERVE_WAIT | KVTIER_RESERVE_PARENTS, 0, keys, roots,
			RT_SLOTS, res, 50 * KVT_MSEC) < 0)
		return -1;
	for (i = 0; i < RT_SLOTS; i++) {
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
