// SPDX-License-Identifier: GPL-2.0
/*
 * Red team: seeing or writing memory that is another's, or is another's now. BOB has
 * his own file alone, and keeps what it once gave him: mappings, pipes, registered
 * buffers. What follows is run on ordinary pages; handover.c has both kinds of memory.
 */
#include "kvt_redteam.h"
#include <liburing.h>
#include <linux/userfaultfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#ifndef UFFD_FEATURE_WP_ASYNC
#define UFFD_FEATURE_WP_ASYNC	0x8000
#endif
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY	1
#endif

/* Roots of BOB's: as many as there is room for. */
static int fill_up(const struct kvt_client *c, __u32 set, int first, int nr)
{
	struct kvt_key key;
	int i;

	for (i = first; i < first + nr; i++) {
		key = kvt_key(set, i);
		if (kvt_put(c, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1) != 1)
			break;
	}
	return i - first;
}

/* Where one's blocks lie, mapped and touched; not leased any more. */
static int touch_all(const struct kvt_client *c, __u32 set, int nr, __u64 *offset)
{
	struct kvtier_block_result res;
	struct kvt_key key;
	int i;

	for (i = 0; i < nr; i++) {
		key = kvt_key(set, i);
		if (kvt_get(c->fd, 0, 0, &key, 1, &res, 0) != 1 ||
		    kvt_touch_read(kvt_rd(c, res.offset)) ||
		    kvt_release(c->fd, &res.handle, 1, NULL) != 1)
			return -1;
		offset[i] = res.offset;
	}
	return 0;
}

#define STEP	(RT_BLOCK / 4)	/* through memory: several looks at each slot */

/* The window is wide, and memory lies at its start: some looks at the rest. */
static __u64 next_look(const struct kvt_client *c, __u64 at)
{
	return at + (at < RT_TIER ? STEP : c->rd.bytes / 64);
}

/* All of memory, asked for through one's own read view. */
ATTACK(read_view_offsets_guessed, RT_BOX)
{
	__u64 at;
	int i, n = 0;

	RT_CHECK(fill_up(&t->bob, RT_SET_BOB, 0, 4) == 4);
	for (at = 0; at < t->bob.rd.bytes; at = next_look(&t->bob, at)) {
		char *p = t->bob.rd.base + at;

		if (kvt_touch_read(p))
			continue;
		n++;
		for (i = 0; i < RT_BLOCKS; i++) {
			RT_CHECK(at < t->offset[i] || at >= t->offset[i] + RT_BLOCK);
			RT_CHECK(!rt_same_bytes(p, &t->key[i]));
		}
	}
	/* His own were found, and the rest of his regions at most. */
	RT_CHECK(n >= 4 * (int)(RT_BLOCK / STEP));
	RT_CHECK(n <= RT_SLOTS / 2 * (int)(RT_BLOCK / STEP));
	return 0;
}

ATTACK(fill_view_offsets_guessed, RT_UID)
{
	struct kvt_key key = kvt_key(RT_SET_BOB, 0);
	struct kvtier_block_result res;
	__u64 at, mine;

	RT_CHECK(kvt_reserve(t->bob.fd, 0, 0, &key, NULL, 1, &res, 0) == 1);
	mine = res.offset - t->bob.wr.start;
	for (at = 0; at < t->bob.wr.bytes; at = next_look(&t->bob, at)) {
		bool own = at >= mine && at < mine + RT_BLOCK;

		RT_CHECK(kvt_touch_write(t->bob.wr.base + at, 1) == (own ? 0 : SIGBUS));
	}
	return 0;
}

/* Where other files' fill views are is no secret; they are not to be had. */
ATTACK(foreign_fill_view_mapped, RT_BOX)
{
	__u64 base = t->bob.wr.start, unit = 1ull << 44, at;

	for (at = unit; at < 64 * unit; at += unit) {
		void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, t->bob.fd,
			       (off_t)at);

		RT_CHECK((p == MAP_FAILED) == (at != base));
		p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, t->bob.fd, (off_t)at);
		RT_CHECK((p == MAP_FAILED) == (at != base));
	}
	/* Nor by running over from one's own. */
	RT_CHECK(mmap(NULL, 8192, PROT_READ, MAP_SHARED, t->bob.fd, (off_t)(base - 4096)) ==
		 MAP_FAILED);
	RT_CHECK(mmap(NULL, 8192, PROT_READ, MAP_SHARED, t->bob.fd,
		      (off_t)(base + unit - 4096)) == MAP_FAILED);
	return 0;
}

/* ALICE takes over the memory of BOB's evicted blocks; his mappings of it are still there. */
ATTACK(stale_mapping_after_eviction, RT_BOX)
{
	__u64 offset[RT_SLOTS];
	int i, nr, hers, lost = 0;

	nr = fill_up(&t->bob, RT_SET_BOB, 0, RT_SLOTS / 2);
	RT_CHECK(nr > RT_SLOTS / 4);
	RT_CHECK(!touch_all(&t->bob, RT_SET_BOB, nr, offset));
	hers = fill_up(&t->alice, RT_SET, 1000, RT_SLOTS - 2 * RT_BLOCKS);
	RT_CHECK(hers > RT_SLOTS / 2);
	for (i = 0; i < nr; i++) {
		struct kvt_key key = kvt_key(RT_SET_BOB, i);
		int ret = kvt_bytes_probe(kvt_rd(&t->bob, offset[i]), &key, RT_BLOCK);

		/* His own bytes still, or none. */
		RT_CHECK(ret == 1 || ret == -SIGBUS);
		lost += ret == -SIGBUS;
	}
	RT_CHECK(lost > 0);
	return rt_expect(t);
}

#define READ_WAYS	4

/*
 * Ways to have the kernel read one's memory. @buf: out; how much, or less than 1. The first one
 * is an option that kernels are built with.
 */
static ssize_t read_by(int how, const char *addr, char *buf, size_t bytes)
{
	struct iovec from = { (void *)addr, bytes }, to = { buf, bytes };
	ssize_t n = -1;
	int fd[2];

	switch (how) {
	case 0:
		return process_vm_readv(getpid(), &to, 1, &from, 1, 0);
	case 1:
		fd[0] = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
		n = pread(fd[0], buf, bytes, (off_t)(uintptr_t)addr);
		close(fd[0]);
		return n;
	case 2:
		fd[0] = memfd_create("stale", MFD_CLOEXEC);
		if (write(fd[0], addr, bytes) > 0)
			n = pread(fd[0], buf, bytes, 0);
		close(fd[0]);
		return n;
	}
	if (pipe2(fd, O_CLOEXEC | O_NONBLOCK))
		return -1;
	if (vmsplice(fd[1], &from, 1, SPLICE_F_NONBLOCK) > 0)
		n = read(fd[0], buf, bytes);
	close(fd[0]);
	close(fd[1]);
	return n;
}

/* The same, but it is the kernel that is to read for him: by another's eyes, files and pipes. */
ATTACK(stale_mapping_read_by_the_kernel, RT_BOX)
{
	__u64 offset[RT_SLOTS];
	int i, nr, how, hers, lost = 0;
	const char *kernel = getenv("KVT_KERNEL");
	char seen[512], own[512] = "own";
	bool there[READ_WAYS];

	nr = fill_up(&t->bob, RT_SET_BOB, 0, RT_SLOTS / 2);
	RT_CHECK(nr > RT_SLOTS / 4);
	RT_CHECK(!touch_all(&t->bob, RT_SET_BOB, nr, offset));
	for (how = 0; how < READ_WAYS; how++) {
		struct kvt_key key = kvt_key(RT_SET_BOB, 0);

		there[how] = read_by(how, own, seen, sizeof(seen)) == sizeof(seen);
		/* Debian's kernel has all of them. */
		RT_CHECK(there[how] || (!how && kernel && strcmp(kernel, "stock")));
		if (!there[how])
			continue;
		RT_CHECK(read_by(how, kvt_rd(&t->bob, offset[0]), seen, sizeof(seen)) ==
			 sizeof(seen) && rt_same_bytes(seen, &key));
	}
	hers = fill_up(&t->alice, RT_SET, 1000, RT_SLOTS - 2 * RT_BLOCKS);
	RT_CHECK(hers > RT_SLOTS / 2);
	for (i = 0; i < READ_WAYS * nr; i++) {
		struct kvt_key key = kvt_key(RT_SET_BOB, i / READ_WAYS);
		ssize_t n;

		how = i % READ_WAYS;
		if (!there[how])
			continue;
		n = read_by(how, kvt_rd(&t->bob, offset[i / READ_WAYS]), seen, sizeof(seen));
		/* His own bytes still, or none. */
		RT_CHECK(n < 1 || (n == sizeof(seen) && rt_same_bytes(seen, &key)));
		lost += n < 1;
	}
	RT_CHECK(lost > 4);
	return rt_expect(t);
}

/* The same in a child that only inherited the mappings, and with moved ones. */
ATTACK(stale_mapping_inherited_and_moved, RT_UID)
{
	__u64 offset[RT_SLOTS];
	int i, nr, status, lost = 0, go[2];
	char *copy, byte = 0;
	pid_t pid;

	RT_CHECK(!pipe(go));
	nr = fill_up(&t->bob, RT_SET_BOB, 0, RT_SLOTS / 2);
	RT_CHECK(nr > RT_SLOTS / 4 && !touch_all(&t->bob, RT_SET_BOB, nr, offset));
	pid = fork();
	if (!pid) {
		copy = mmap(NULL, t->bob.rd.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		copy = mremap(t->bob.rd.base, t->bob.rd.bytes, t->bob.rd.bytes,
			      MREMAP_MAYMOVE | MREMAP_FIXED, copy);
		if (copy == MAP_FAILED || read(go[0], &byte, 1) != 1)
			_exit(100);
		for (i = 0; i < nr; i++) {
			struct kvt_key key = kvt_key(RT_SET_BOB, i);
			int ret = kvt_bytes_probe(copy + offset[i], &key, RT_BLOCK);

			if (ret != 1 && ret != -SIGBUS)
				_exit(101);
			lost += ret == -SIGBUS;
		}
		_exit(lost ? 0 : 102);
	}
	RT_CHECK(fill_up(&t->alice, RT_SET, 1000, RT_SLOTS - 2 * RT_BLOCKS) > RT_SLOTS / 2);
	RT_CHECK(write(go[1], &byte, 1) == 1);
	RT_CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	RT_CHECK(WEXITSTATUS(status) == 0);
	return rt_expect(t);
}

/* A fill mapping after COMMIT, by every way there is to write through it. */
ATTACK(fill_mapping_after_commit, RT_UID)
{
	struct kvt_key key = kvt_key(RT_SET_BOB, 0);
	struct kvtier_block_result res, done;
	int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC), status;
	char buf[64] = "x", *p;
	struct iovec local = { buf, sizeof(buf) }, remote;
	pid_t pid;

	RT_CHECK(kvt_reserve(t->bob.fd, 0, 0, &key, NULL, 1, &res, 0) == 1);
	p = kvt_wr(&t->bob, res.offset);
	kvt_fill(p, &key, RT_BLOCK);
	RT_CHECK(kvt_commit(t->bob.fd, KVTIER_COMMIT_LEASE, &res.handle, 1, &done) == 1);
	remote = (struct iovec){ p, sizeof(buf) };
	RT_CHECK(kvt_touch_write(p, 1) == SIGBUS && kvt_touch_read(p) == SIGBUS);
	RT_CHECK(kvt_touch_write(p + RT_BLOCK / 2, 1) == SIGBUS);
	RT_CHECK(kvt_touch_write(p + RT_BLOCK - 1, 1) == SIGBUS);
	RT_CHECK(mem >= 0 && pwrite(mem, buf, 64, (off_t)(uintptr_t)p) != 64);
	RT_CHECK(process_vm_writev(getpid(), &local, 1, &remote, 1, 0) < 0);
	RT_CHECK(syscall(SYS_getrandom, p, 64ul, 0) < 0);
	mprotect(p, RT_BLOCK, PROT_READ);
	mprotect(p, RT_BLOCK, PROT_READ | PROT_WRITE);
	RT_CHECK(kvt_touch_write(p, 1) == SIGBUS);
	pid = fork();
	if (!pid)
		_exit(kvt_touch_write(p, 1) == SIGBUS ? 0 : 1);
	RT_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	RT_CHECK(kvt_bytes_probe(kvt_rd(&t->bob, done.offset), &key, RT_BLOCK) == 1);
	close(mem);
	return 0;
}

/* A child that was forked while the slot was being filled, and writes after COMMIT. */
ATTACK(fill_mapping_of_a_fork_after_commit, RT_BOX)
{
	struct kvt_key key = kvt_key(RT_SET_BOB, 0);
	struct kvtier_block_result res, done;
	int status, go[2];
	char byte = 0, *p;
	pid_t pid;

	RT_CHECK(!pipe(go));
	RT_CHECK(kvt_reserve(t->bob.fd, 0, 0, &key, NULL, 1, &res, 0) == 1);
	p = kvt_wr(&t->bob, res.offset);
	kvt_fill(p, &key, RT_BLOCK);
	pid = fork();
	if (!pid) {
		/* Writable to the child as well, by an entry of its own. */
		if (kvt_touch_write(p + 1, p[1]))
			_exit(99);
		if (read(go[0], &byte, 1) != 1)
			_exit(100);
		_exit(kvt_touch_write(p, 1) == SIGBUS ? 0 : 1);
	}
	RT_CHECK(KVT_UNTIL(10000, kvt_proc_state(pid) == 'S'));
	RT_CHECK(kvt_commit(t->bob.fd, KVTIER_COMMIT_LEASE, &res.handle, 1, &done) == 1);
	RT_CHECK(write(go[1], &byte, 1) == 1);
	RT_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	RT_CHECK(kvt_bytes_probe(kvt_rd(&t->bob, done.offset), &key, RT_BLOCK) == 1);
	return 0;
}

/* A page of the slot in a pipe: COMMIT does not take it for unwritable. */
ATTACK(commit_with_a_page_in_a_pipe, RT_UID)
{
	struct kvt_key key = kvt_key(RT_SET_BOB, 0);
	struct kvtier_block_result res, done;
	struct iovec iov;
	int pipes[2];

	RT_CHECK(!pipe(pipes));
	RT_CHECK(kvt_reserve(t->bob.fd, 0, 0, &key, NULL, 1, &res, 0) == 1);
	kvt_fill(kvt_wr(&t->bob, res.offset), &key, RT_BLOCK);
	iov = (struct iovec){ kvt_wr(&t->bob, res.offset), 4096 };
	RT_CHECK(vmsplice(pipes[1], &iov, 1, 0) == 4096);
	RT_CHECK(kvt_commit(t->bob.fd, 0, &res.handle, 1, &done) == 0);
	RT_CHECK(done.status == KVTIER_ST_PINNED);
	RT_CHECK(kvt_lookup(t->bob.fd, 0, &key, 1, NULL) == 0);
	return 0;
}

static int ring_with(struct io_uring *ring, void *at, size_t bytes)
{
	struct iovec iov = { at, bytes };
	int err = io_uring_queue_init(4, ring, 0);

	return err ?: io_uring_register_buffers(ring, &iov, 1);
}

/* The ring writes what is in @mem to its registered buffer. */
static int ring_write(struct io_uring *ring, int mem, void *at, unsigned int bytes)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	struct io_uring_cqe *cqe;
	int ret;

	io_uring_prep_read_fixed(sqe, mem, at, bytes, 0, 0);
	if (io_uring_submit_and_wait(ring, 1) < 0 || io_uring_wait_cqe(ring, &cqe))
		return -1;
	ret = cqe->res;
	io_uring_cqe_seen(ring, cqe);
	return ret;
}

ATTACK(commit_with_a_registered_buffer, RT_BOX)
{
	struct kvt_key key = kvt_key(RT_SET_BOB, 0);
	struct kvtier_block_result res, done;
	struct io_uring ring;

	RT_CHECK(kvt_reserve(t->bob.fd, 0, 0, &key, NULL, 1, &res, 0) == 1);
	kvt_fill(kvt_wr(&t->bob, res.offset), &key, RT_BLOCK);
	RT_CHECK(!ring_with(&ring, kvt_wr(&t->bob, res.offset), RT_BLOCK));
	RT_CHECK(kvt_commit(t->bob.fd, 0, &res.handle, 1, &done) == 0);
	RT_CHECK(done.status == KVTIER_ST_PINNED);
	io_uring_queue_exit(&ring);
	return 0;
}

static bool among(const __u64 *offset, int nr, __u64 one)
{
	int i;

	for (i = 0; i < nr; i++)
		if (offset[i] == one)
			return true;
	return false;
}

/*
 * Register a buffer over a reservation, give that up, and write through the ring when
 * ALICE has all the memory there is.
 */
ATTACK(registered_buffer_over_abort, RT_UID)
{
	struct kvt_key key = kvt_key(RT_SET_BOB, 0);
	struct kvtier_block_result res;
	int mem = memfd_create("rt", MFD_CLOEXEC), n;
	__u64 offset[RT_SLOTS], at;
	char junk[RT_BLOCK];
	struct io_uring ring;

	memset(junk, 0x5a, sizeof(junk));
	RT_CHECK(mem >= 0 && pwrite(mem, junk, sizeof(junk), 0) == sizeof(junk));
	RT_CHECK(kvt_reserve(t->bob.fd, 0, 0, &key, NULL, 1, &res, 0) == 1);
	at = res.offset - t->bob.wr.start;
	RT_CHECK(!ring_with(&ring, kvt_wr(&t->bob, res.offset), RT_BLOCK));
	RT_CHECK(kvt_abort(t->bob.fd, &res.handle, 1, NULL) == 1);
	n = rt_free_slots(&t->bob, RT_SET_BOB, offset);
	RT_CHECK(n > 0 && !among(offset, n, at));
	n = rt_free_slots(&t->alice, RT_SET, offset);
	RT_CHECK(n > 0 && !among(offset, n, at));
	RT_CHECK(fill_up(&t->alice, RT_SET, 1000, RT_SLOTS / 2) > RT_SLOTS / 4);
	RT_CHECK(ring_write(&ring, mem, kvt_wr(&t->bob, res.offset), RT_BLOCK) == RT_BLOCK);
	for (n = 0; n < RT_SLOTS / 4; n++) {
		key = kvt_key(RT_SET, 1000 + n);
		/* Evicted by a later one, or right. */
		RT_CHECK(kvt_check(&t->alice, 0, &key, 1, 0) >= 0);
	}
	io_uring_queue_exit(&ring);
	return rt_expect(t);
}

/*
 * The same with blocks of BOB's own in that memory: they are evicted for what ALICE stores, the
 * ring keeps its slot among them, and writes to it.
 */
ATTACK(registered_buffer_over_eviction, RT_BOX)
{
	int mem = memfd_create("rt", MFD_CLOEXEC), n;
	struct kvt_key key = kvt_key(RT_SET_BOB, 100);
	struct kvtier_block_result res;
	struct kvtier_stat st;
	char junk[RT_BLOCK];
	struct io_uring ring;

	memset(junk, 0x5a, sizeof(junk));
	RT_CHECK(mem >= 0 && pwrite(mem, junk, sizeof(junk), 0) == sizeof(junk));
	RT_CHECK(kvt_reserve(t->bob.fd, 0, 0, &key, NULL, 1, &res, 0) == 1);
	RT_CHECK(fill_up(&t->bob, RT_SET_BOB, 0, RT_SLOTS / 4) == RT_SLOTS / 4);
	RT_CHECK(!ring_with(&ring, kvt_wr(&t->bob, res.offset), RT_BLOCK));
	RT_CHECK(kvt_abort(t->bob.fd, &res.handle, 1, NULL) == 1);
	RT_CHECK(fill_up(&t->alice, RT_SET, 1000, RT_SLOTS * 3 / 4) > RT_SLOTS / 2);
	/* The first of his were beside the ring's slot. */
	key = kvt_key(RT_SET_BOB, 0);
	RT_CHECK(!kvt_stat(t->bob.fd, 0, &st) && st.evictions > 0);
	RT_CHECK(kvt_lookup(t->bob.fd, 0, &key, 1, NULL) == 0);
	RT_CHECK(ring_write(&ring, mem, kvt_wr(&t->bob, res.offset), RT_BLOCK) == RT_BLOCK);
	for (n = 0; n < RT_SLOTS * 3 / 4; n++) {
		key = kvt_key(RT_SET, 1000 + n);
		RT_CHECK(kvt_check(&t->alice, 0, &key, 1, 0) >= 0);
	}
	/* Nor do his own come out as anything else. */
	for (n = 0; n < RT_SLOTS / 4; n++) {
		key = kvt_key(RT_SET_BOB, n);
		RT_CHECK(kvt_check(&t->bob, 0, &key, 1, 0) >= 0);
	}
	io_uring_queue_exit(&ring);
	return rt_expect(t);
}

/* A registered arena that is closed: its memory goes to nobody while the ring writes. */
ATTACK(registered_arena_over_close, RT_BOX)
{
	struct kvtier_group group = { .block_bytes = RT_BLOCK };
	struct kvtier_arena arena = { .size = sizeof(arena), .nr_slots = 8 };
	int mem = memfd_create("rt", MFD_CLOEXEC), n;
	__u64 offset[RT_SLOTS], at;
	struct kvt_client c;
	struct kvtier_ns_open a;
	struct io_uring ring;
	char junk[RT_BLOCK];
	void *p;

	memset(junk, 0x5a, sizeof(junk));
	RT_CHECK(mem >= 0 && pwrite(mem, junk, sizeof(junk), 0) == sizeof(junk));
	kvt_ns_args(&a, "arena", &group, 1);
	a.min_bytes = KVT_PIECE;
	RT_CHECK(!rt_open(t, &c, &a));
	RT_CHECK(!kvt_ioctl(c.fd, KVTIER_OP_ARENA, &arena));
	at = arena.offset - c.wr.start;
	p = kvt_wr(&c, arena.offset);
	RT_CHECK(rt_zero(p, arena.bytes));
	RT_CHECK(!ring_with(&ring, p, RT_BLOCK));
	kvt_client_close(&c);
	n = rt_free_slots(&t->alice, RT_SET, offset);
	RT_CHECK(n > 0 && !among(offset, n, at));
	RT_CHECK(fill_up(&t->alice, RT_SET, 1000, RT_SLOTS / 2) > RT_SLOTS / 4);
	RT_CHECK(ring_write(&ring, mem, p, RT_BLOCK) == RT_BLOCK);
	for (n = 0; n < RT_SLOTS / 4; n++) {
		struct kvt_key key = kvt_key(RT_SET, 1000 + n);

		RT_CHECK(kvt_check(&t->alice, 0, &key, 1, 0) >= 0);
	}
	io_uring_queue_exit(&ring);
	return rt_expect(t);
}

/* Pages of one's own blocks, kept in pipes: what ALICE stores later does not turn up. */
ATTACK(page_in_a_pipe_over_handover, RT_UID)
{
	struct kvt_key key = kvt_key(RT_SET_BOB, 0);
	struct kvtier_block_result res;
	char page[4096];
	struct iovec iov;
	__u64 offset[RT_SLOTS];
	int pipes[2], n;

	RT_CHECK(!pipe(pipes));
	RT_CHECK(fill_up(&t->bob, RT_SET_BOB, 0, 1) == 1);
	RT_CHECK(kvt_get(t->bob.fd, 0, 0, &key, 1, &res, 0) == 1);
	iov = (struct iovec){ kvt_rd(&t->bob, res.offset), 4096 };
	RT_CHECK(vmsplice(pipes[1], &iov, 1, 0) == 4096);
	RT_CHECK(kvt_release(t->bob.fd, &res.handle, 1, NULL) == 1);
	RT_CHECK(kvt_drop(t->bob.fd, 0, &key, 1, NULL) == 1);
	n = rt_free_slots(&t->alice, RT_SET, offset);
	RT_CHECK(n > 0 && !among(offset, n, res.offset));
	RT_CHECK(fill_up(&t->alice, RT_SET, 1000, RT_SLOTS / 2) > RT_SLOTS / 4);
	RT_CHECK(read(pipes[0], page, sizeof(page)) == sizeof(page));
	RT_CHECK(rt_same_bytes(page, &key));
	return rt_expect(t);
}

/* The same, in a mapping of a socket: it is of no file of the pool's, and its entries are mappings. */
ATTACK(page_in_a_socket_over_handover, RT_UID)
{
	struct kvt_key key = kvt_key(RT_SET_BOB, 0);
	struct kvtier_block_result res;
	__u64 offset[RT_SLOTS];
	const char *view;
	int n;

	RT_CHECK(fill_up(&t->bob, RT_SET_BOB, 0, 1) == 1);
	RT_CHECK(kvt_get(t->bob.fd, 0, 0, &key, 1, &res, 0) == 1);
	view = kvt_socket_view(kvt_rd(&t->bob, res.offset));
	RT_CHECK(view && rt_same_bytes(view, &key));
	RT_CHECK(kvt_release(t->bob.fd, &res.handle, 1, NULL) == 1);
	RT_CHECK(kvt_drop(t->bob.fd, 0, &key, 1, NULL) == 1);
	n = rt_free_slots(&t->alice, RT_SET, offset);
	RT_CHECK(n > 0 && !among(offset, n, res.offset));
	RT_CHECK(fill_up(&t->alice, RT_SET, 1000, RT_SLOTS / 2) > RT_SLOTS / 4);
	RT_CHECK(rt_same_bytes(view, &key));
	RT_CHECK(!munmap((void *)view, 4096));
	return rt_expect(t);
}

/* ALICE fills what there is, and gives it up: where that was, how much of it; 0: something fails. */
static int had(struct rt *t, __u64 *hers)
{
	int i, n = fill_up(&t->alice, RT_SET, 1000, RT_SLOTS / 2);

	for (i = 0; i < n; i++) {
		struct kvt_key key = kvt_key(RT_SET, 1000 + i);
		struct kvtier_block_result got;

		hers[i] = ~0ull;
		if (kvt_get(t->alice.fd, 0, 0, &key, 1, &got, 0) != 1)
			continue;
		hers[i] = got.offset;
		if (kvt_release(t->alice.fd, &got.handle, 1, NULL) != 1 ||
		    kvt_drop(t->alice.fd, 0, &key, 1, NULL) != 1)
			return 0;
	}
	return rt_expect(t) ? 0 : n;
}

/* BOB reserves without writing: what does he find. */
ATTACK(uninitialised_reservations, RT_BOX)
{
	static struct kvtier_block_result res[RT_SLOTS];
	static struct kvt_key keys[RT_SLOTS], roots[RT_SLOTS];
	__u64 hers[RT_SLOTS];
	int i, n = had(t, hers), found = 0;

	RT_CHECK(n > RT_SLOTS / 4);
	kvt_keys(keys, RT_SET_BOB, 0, RT_SLOTS);
	RT_CHECK(kvt_reserve(t->bob.fd, KVTIER_RESERVE_WAIT | KVTIER_RESERVE_PARENTS, 0, keys,
			     roots, RT_SLOTS, res, 200 * KVT_MSEC) > 0);
	for (i = 0; i < RT_SLOTS; i++) {
		if (res[i].status != KVTIER_ST_RESERVED)
			continue;
		found += among(hers, n, res[i].offset - t->bob.wr.start);
		RT_CHECK(rt_zero(kvt_wr(&t->bob, res[i].offset), RT_BLOCK));
	}
	/* It was her memory. */
	RT_CHECK(found > 0);
	return 0;
}

/* The same, committed as they are and read back by copy. */
ATTACK(uninitialised_blocks, RT_UID)
{
	struct kvtier_block_result res, done;
	char *buf = malloc(RT_BLOCK);
	struct kvt_key key;
	__u64 hers[RT_SLOTS];
	int i, n = had(t, hers), found = 0;

	RT_CHECK(n > RT_SLOTS / 4);
	for (i = 0; i < RT_SLOTS / 2; i++) {
		key = kvt_key(RT_SET_BOB, i);
		if (kvt_reserve(t->bob.fd, KVTIER_RESERVE_WAIT, 0, &key, NULL, 1, &res,
				KVT_SEC) != 1)
			break;
		found += among(hers, n, res.offset - t->bob.wr.start);
		RT_CHECK(kvt_commit(t->bob.fd, 0, &res.handle, 1, &done) == 1);
		RT_CHECK(kvt_read1(t->bob.fd, 0, &key, buf, RT_BLOCK, 0) == KVTIER_ST_HIT);
		RT_CHECK(rt_zero(buf, RT_BLOCK));
	}
	RT_CHECK(i > RT_SLOTS / 4 && found > 0);
	free(buf);
	return rt_expect(t);
}

static int uffd_open(void)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_WP_ASYNC };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);

	if (fd >= 0 && ioctl(fd, UFFDIO_API, &api)) {
		close(fd);
		return -1;
	}
	return fd;
}

static int uffd_watch(int fd, void *p, size_t bytes)
{
	struct uffdio_register reg = {
		.range = { KVT_U64(p), bytes }, .mode = UFFDIO_REGISTER_MODE_WP,
	};
	struct uffdio_writeprotect wp = {
		.range = { KVT_U64(p), bytes }, .mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};

	if (ioctl(fd, UFFDIO_REGISTER, &reg))
		return -errno;
	return ioctl(fd, UFFDIO_WRITEPROTECT, &wp) ? -errno : 0;
}

/*
 * Write-protect a fill view by userfaultfd before anything is there, and have it
 * touched: by the processor, and in the middle of a system call, where nothing but the
 * fault's answer ends it. Newer kernels do not watch mappings of devices at all.
 */
ATTACK(fill_view_watched_by_userfaultfd, RT_UID)
{
	struct kvt_key key = kvt_key(RT_SET_BOB, 0);
	struct kvtier_block_result res;
	int fd = uffd_open(), status = 0;
	pid_t pid;
	char *p;

	if (fd < 0)
		return RT_SKIP;
	RT_CHECK(uffd_watch(fd, rt_read_view(t, 0), RT_BLOCK) < 0);
	RT_CHECK(kvt_reserve(t->bob.fd, 0, 0, &key, NULL, 1, &res, 0) == 1);
	p = kvt_wr(&t->bob, res.offset);
	if (uffd_watch(fd, p, RT_BLOCK)) {
		kvt_fill(p, &key, RT_BLOCK);
		RT_CHECK(kvt_commit(t->bob.fd, 0, &res.handle, 1, &res) == 1);
		return 0;
	}
	pid = fork();
	if (!pid)
		_exit(kvt_touch_write(p, 1) == SIGBUS ? 0 : 1);
	RT_CHECK(KVT_UNTIL(20000, waitpid(pid, &status, WNOHANG) == pid) || !kill(pid, SIGKILL));
	RT_CHECK(WIFEXITED(status));
	/* Whether a fork keeps the marks is the kernel's business; here they are. */
	RT_CHECK(kvt_touch_write(p, 1) == SIGBUS);
	RT_CHECK(syscall(SYS_getrandom, p, 64ul, 0) < 0);
	RT_CHECK(kvt_read1(t->bob.fd, 0, &key, p, RT_BLOCK, 0) != KVTIER_ST_HIT);
	close(fd);
	/* Without the watch the slot is as good as ever. */
	RT_CHECK(kvt_commit(t->bob.fd, 0, &res.handle, 1, &res) == 1);
	return 0;
}

/* A file id comes back with another file: an old mapping of the fill view does not. */
ATTACK(file_ids_used_again, RT_BOX)
{
	struct kvt_client c, d;
	__u64 base;
	char *p;

	RT_CHECK(!rt_open_own(t, &c, "ids"));
	base = c.wr.start;
	p = mmap(NULL, KVT_PIECE, PROT_READ | PROT_WRITE, MAP_SHARED, c.fd, (off_t)base);
	RT_CHECK(p != MAP_FAILED);
	/* The mapping keeps the file, and so the id. */
	kvt_client_close(&c);
	RT_CHECK(!rt_open_own(t, &d, "ids"));
	RT_CHECK(d.wr.start != base);
	RT_CHECK(fill_up(&d, RT_SET_BOB, 0, 1) == 1);
	RT_CHECK(kvt_touch_read(p) == SIGBUS && kvt_touch_write(p, 1) == SIGBUS);
	kvt_client_close(&d);
	return 0;
}

TEST_HARNESS_MAIN
