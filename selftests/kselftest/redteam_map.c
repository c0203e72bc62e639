// SPDX-License-Identifier: GPL-2.0
/*
 * Red team: writing where one may only read. BOB was given a file of ALICE's
 * namespace that may only read, and its mapping; nothing he does with them changes a
 * byte of hers.
 */
#include "kvt_redteam.h"
#include <liburing.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#ifndef MADV_SOFT_OFFLINE
#define MADV_SOFT_OFFLINE	101
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE		25
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE	23
#endif

static void *map(int fd, int prot, int flags, __u64 offset, size_t bytes)
{
	return mmap(NULL, bytes, prot, flags, fd, (off_t)offset);
}

ATTACK(read_view_mapped_writable, RT_UID)
{
	RT_CHECK(map(t->reader, PROT_READ | PROT_WRITE, MAP_SHARED, t->offset[0], 4096) ==
		 MAP_FAILED && errno == EACCES);
	RT_CHECK(map(t->reader, PROT_WRITE, MAP_SHARED, t->offset[0], 4096) == MAP_FAILED);
	RT_CHECK(map(t->reader, PROT_READ | PROT_EXEC, MAP_SHARED, 0, 4096) == MAP_FAILED);
	/* Her own file that may write does not either. */
	RT_CHECK(map(t->alice.fd, PROT_READ | PROT_WRITE, MAP_SHARED, t->offset[0], 4096) ==
		 MAP_FAILED && errno == EACCES);
	return 0;
}

ATTACK(read_view_mprotect, RT_BOX)
{
	char *p = rt_read_view(t, 0);

	RT_CHECK(rt_same_bytes(p, &t->key[0]));
	RT_CHECK(mprotect(p, RT_BLOCK, PROT_READ | PROT_WRITE) && errno == EACCES);
	RT_CHECK(mprotect(p, 4096, PROT_WRITE) && errno == EACCES);
	RT_CHECK(mprotect(p, RT_BLOCK, PROT_READ | PROT_EXEC));
	/* Away and back gives no more than there was. */
	RT_CHECK(!mprotect(p, 4096, PROT_NONE) && !mprotect(p, 4096, PROT_READ));
	RT_CHECK(mprotect(p, 4096, PROT_READ | PROT_WRITE));
	RT_CHECK(kvt_touch_write(p, 1) == SIGSEGV);
	return 0;
}

ATTACK(read_view_private, RT_UID)
{
	RT_CHECK(map(t->reader, PROT_READ, MAP_PRIVATE, t->offset[0], 4096) == MAP_FAILED);
	RT_CHECK(map(t->reader, PROT_READ | PROT_WRITE, MAP_PRIVATE, t->offset[0], 4096) ==
		 MAP_FAILED && errno == EINVAL);
	return 0;
}

ATTACK(read_view_proc_mem, RT_UID)
{
	char *p = rt_read_view(t, 0);
	int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

	RT_CHECK(mem >= 0);
	RT_CHECK(!kvt_touch_read(p));
	RT_CHECK(pwrite(mem, "x", 1, (off_t)(uintptr_t)p) != 1);
	/* And of a page that is not there yet. */
	RT_CHECK(!madvise(p, 4096, MADV_DONTNEED));
	RT_CHECK(pwrite(mem, "x", 1, (off_t)(uintptr_t)p) != 1);
	RT_CHECK(rt_same_bytes(p, &t->key[0]));
	close(mem);
	return 0;
}

ATTACK(read_view_process_vm_writev, RT_BOX)
{
	char buf[64] = "x", *p = rt_read_view(t, 0);
	struct iovec local = { buf, sizeof(buf) }, remote = { p, sizeof(buf) };

	RT_CHECK(process_vm_writev(getpid(), &local, 1, &remote, 1, 0) < 0);
	/* As the place to read to, too. */
	RT_CHECK(process_vm_readv(getpid(), &remote, 1, &local, 1, 0) <= 0);
	return 0;
}

ATTACK(read_view_ptrace, RT_UID)
{
	char *p = rt_read_view(t, 0);
	pid_t pid = fork();
	int status;

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		_exit(0);
	}
	RT_CHECK(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
	errno = 0;
	RT_CHECK(ptrace(PTRACE_PEEKDATA, pid, p, NULL) != -1 || !errno);
	RT_CHECK(ptrace(PTRACE_POKEDATA, pid, p, (void *)1l) < 0);
	kill(pid, SIGKILL);
	RT_CHECK(waitpid(pid, &status, 0) == pid);
	RT_CHECK(rt_same_bytes(p, &t->key[0]));
	return 0;
}

ATTACK(read_view_mremap, RT_BOX)
{
	char *p = map(t->reader, PROT_READ, MAP_SHARED, t->offset[0], 8192), *q;

	RT_CHECK(p != MAP_FAILED);
	RT_CHECK(mremap(p, 8192, 4 * RT_BLOCK, MREMAP_MAYMOVE) == MAP_FAILED);
	RT_CHECK(mremap(p, 0, 8192, MREMAP_MAYMOVE) == MAP_FAILED);
	q = mremap(p, 8192, 8192, MREMAP_MAYMOVE | MREMAP_FIXED, t->bob.wr.base);
	RT_CHECK(q == t->bob.wr.base);
	/* What it lies over now does not lend it rights. */
	RT_CHECK(mprotect(q, 8192, PROT_READ | PROT_WRITE));
	RT_CHECK(kvt_touch_write(q, 1) == SIGSEGV);
	RT_CHECK(rt_same_bytes(q, &t->key[0]));
	return 0;
}

/* An old call that changes what a mapping is of. */
ATTACK(read_view_remap_file_pages, RT_UID)
{
	char *p = map(t->bob.fd, PROT_READ | PROT_WRITE, MAP_SHARED, t->bob.wr.start, 8192);
	char *q = map(t->reader, PROT_READ, MAP_SHARED, t->offset[0], 8192);

	RT_CHECK(p != MAP_FAILED && q != MAP_FAILED);
	/* A writable fill view into a read view, and a read view into ALICE's fill view. */
	RT_CHECK(syscall(SYS_remap_file_pages, p, 4096ul, 0ul, t->offset[0] / 4096, 0ul) < 0);
	RT_CHECK(syscall(SYS_remap_file_pages, q, 4096ul, 0ul, t->fill.offset / 4096, 0ul) < 0);
	RT_CHECK(kvt_touch_write(q, 1) == SIGSEGV);
	return 0;
}

ATTACK(read_view_mapped_over, RT_BOX)
{
	char *p = rt_read_view(t, 0);

	RT_CHECK(mmap(p, 4096, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p);
	memset(p, 0x55, 4096);
	RT_CHECK(mmap(p + 4096, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, t->reader,
		      (off_t)t->offset[0] + 4096) == MAP_FAILED);
	return 0;
}

/* Whatever advice there is. */
ATTACK(views_madvise, RT_UID)
{
	char *p = rt_read_view(t, 0), *q = t->bob.wr.base;
	int advice;

	for (advice = 0; advice <= MADV_SOFT_OFFLINE; advice++) {
		kvt_touch_read(p);
		/* These need CAP_SYS_ADMIN. */
		if (advice == MADV_HWPOISON || advice == MADV_SOFT_OFFLINE) {
			RT_CHECK(madvise(p, 4096, advice) && errno == EPERM);
			continue;
		}
		if (!madvise(p, RT_BLOCK, advice))
			RT_CHECK(advice != MADV_REMOVE && advice != MADV_POPULATE_WRITE &&
				 advice != MADV_DODUMP && advice != MADV_FREE &&
				 advice != MADV_WIPEONFORK && advice != MADV_COLLAPSE);
		RT_CHECK(kvt_bytes_probe(p, &t->key[0], RT_BLOCK) == 1);
		if (!madvise(q, RT_BLOCK, advice))
			RT_CHECK(advice != MADV_POPULATE_READ && advice != MADV_POPULATE_WRITE);
	}
	return 0;
}

ATTACK(views_mlock, RT_UID)
{
	char *p = rt_read_view(t, 0);

	mlock(p, RT_BLOCK);
	mlock(t->bob.wr.base, 4096);
	mlockall(MCL_CURRENT | MCL_ONFAULT);
	RT_CHECK(mprotect(p, 4096, PROT_READ | PROT_WRITE));
	RT_CHECK(kvt_touch_write(t->bob.wr.base, 1) == SIGBUS);
	munlockall();
	return 0;
}

/* Have the kernel move ALICE's pages to where it can be had to change them. */
ATTACK(views_move_pages, RT_UID)
{
	void *page[2] = { rt_read_view(t, 0), rt_read_view(t, 1) };
	int node[2] = { 0, 1 }, status[2];
	unsigned long mask = 1;

	RT_CHECK(!kvt_touch_read(page[0]) && !kvt_touch_read(page[1]));
	syscall(SYS_move_pages, 0, 2ul, page, node, status, 2 /* MPOL_MF_MOVE */);
	syscall(SYS_mbind, page[0], RT_BLOCK, 2 /* MPOL_BIND */, &mask, 64ul, 2ul);
	syscall(SYS_migrate_pages, 0, 64ul, &mask, &mask);
	RT_CHECK(rt_same_bytes(page[0], &t->key[0]));
	RT_CHECK(rt_same_bytes(page[1], &t->key[1]));
	return 0;
}

static int forked_writer(struct rt *t)
{
	char *p = rt_read_view(t, 0);

	RT_CHECK(kvt_touch_write(p, 1) == SIGSEGV);
	RT_CHECK(mprotect(p, 4096, PROT_READ | PROT_WRITE));
	RT_CHECK(rt_same_bytes(p, &t->key[0]));
	/* The fill view came along, and is no wider. */
	RT_CHECK(kvt_touch_write(t->bob.wr.base + (t->fill.offset - t->alice.wr.start), 1) ==
		 SIGBUS);
	return 0;
}

ATTACK(views_in_a_fork, RT_BOX)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(forked_writer(t));
	RT_CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

/*
 * The program once more, which has nothing of before but an open file of ALICE's that may only
 * read: attack_file_over_exec() says what it is to try.
 */
#define EXEC_FD		"KVT_RT_EXEC_FD"
#define EXEC_OFFSET	"KVT_RT_EXEC_OFFSET"
#define EXEC_BASE	"KVT_RT_EXEC_BASE"

static int after_exec(int fd, __u64 offset, const char *old)
{
	struct kvt_key key = kvt_key(RT_SET_BOB, 0);
	struct kvtier_block_result res;
	__u64 unit = 1ull << 44, at;
	char *p;

	RT_CHECK(kvt_touch_read(old) == SIGSEGV);
	RT_CHECK(map(fd, PROT_READ | PROT_WRITE, MAP_SHARED, offset, 4096) == MAP_FAILED);
	/* Fill views of all the files there are. */
	for (at = unit; at < 64 * unit; at += unit)
		RT_CHECK(map(fd, PROT_WRITE, MAP_SHARED, at, 4096) == MAP_FAILED);
	p = map(fd, PROT_READ, MAP_SHARED, offset, 4096);
	RT_CHECK(p != MAP_FAILED && !kvt_touch_read(p));
	RT_CHECK(mprotect(p, 4096, PROT_READ | PROT_WRITE) && kvt_touch_write(p, 1) == SIGSEGV);
	RT_CHECK(kvt_reserve(fd, 0, 0, &key, NULL, 1, &res, 0) == -EACCES);
	RT_CHECK(write(fd, "x", 1) < 0);
	return 0;
}

/* Before anything else the program does, as making a pool, which BOB may not. */
static void __attribute__((constructor(101))) again(void)
{
	const char *fd = getenv(EXEC_FD);

	if (fd)
		_exit(after_exec(atoi(fd), strtoull(getenv(EXEC_OFFSET), NULL, 0),
				 (const char *)strtoull(getenv(EXEC_BASE), NULL, 0)));
}

static void set_number(const char *name, unsigned long long value)
{
	char buf[32];

	snprintf(buf, sizeof(buf), "%llu", value);
	setenv(name, buf, 1);
}

/* A mapping does not outlive exec, and the descriptor that does may still not write. */
ATTACK(file_over_exec, RT_UID)
{
	int fd = dup(t->reader), status;
	pid_t pid;

	RT_CHECK(fd >= 0);
	RT_CHECK(rt_same_bytes(rt_read_view(t, 0), &t->key[0]));
	pid = fork();
	if (!pid) {
		set_number(EXEC_FD, fd);
		set_number(EXEC_OFFSET, t->offset[0]);
		set_number(EXEC_BASE, (uintptr_t)rt_read_view(t, 0));
		execl("/proc/self/exe", "redteam_map", NULL);
		_exit(7);
	}
	RT_CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	RT_CHECK(WEXITSTATUS(status) == 0);
	close(fd);
	return 0;
}

/* A pipe that holds ALICE's page: what is written to it goes elsewhere. */
ATTACK(read_view_in_a_pipe, RT_BOX)
{
	char *p = rt_read_view(t, 0), junk[4096];
	struct iovec iov = { p, 4096 };
	int a[2], b[2];

	RT_CHECK(!pipe(a) && !pipe(b));
	memset(junk, 0x66, sizeof(junk));
	RT_CHECK(vmsplice(a[1], &iov, 1, SPLICE_F_GIFT) == 4096 || errno == EINVAL);
	iov.iov_len = 100;
	RT_CHECK(vmsplice(a[1], &iov, 1, 0) == 100);
	RT_CHECK(write(a[1], junk, 1000) == 1000);
	RT_CHECK(tee(a[0], b[1], 8192, 0) > 0);
	RT_CHECK(write(b[1], junk, 1000) == 1000);
	/* Out of the pipe into her mapping. */
	iov.iov_len = 4096;
	RT_CHECK(vmsplice(b[0], &iov, 1, 0) <= 0);
	RT_CHECK(read(b[0], p, 100) < 0 && errno == EFAULT);
	RT_CHECK(rt_same_bytes(p, &t->key[0]));
	close(a[0]);
	close(a[1]);
	close(b[0]);
	close(b[1]);
	return 0;
}

ATTACK(read_view_registered_with_a_ring, RT_UID)
{
	struct iovec iov = { rt_read_view(t, 0), RT_BLOCK };
	struct io_uring ring;

	RT_CHECK(!io_uring_queue_init(4, &ring, 0));
	RT_CHECK(!kvt_touch_read(iov.iov_base));
	/* Rings register buffers to be written to. */
	RT_CHECK(io_uring_register_buffers(&ring, &iov, 1) < 0);
	io_uring_queue_exit(&ring);
	return 0;
}

/* The kernel is asked to write there, by every call at hand that writes to memory. */
ATTACK(read_view_as_a_buffer, RT_UID)
{
	char *p = rt_read_view(t, 0), buf[4096] = { 1 };
	int mem = memfd_create("rt", MFD_CLOEXEC), line[2];
	struct iovec iov = { p, 4096 };

	RT_CHECK(mem >= 0 && pwrite(mem, buf, sizeof(buf), 0) == sizeof(buf));
	RT_CHECK(pread(mem, p, 4096, 0) < 0 && errno == EFAULT);
	RT_CHECK(preadv(mem, &iov, 1, 0) < 0 && errno == EFAULT);
	RT_CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, line));
	RT_CHECK(write(line[0], buf, 100) == 100);
	RT_CHECK(recv(line[1], p, 100, 0) < 0 && errno == EFAULT);
	RT_CHECK(syscall(SYS_getrandom, p, 64ul, 0) < 0 && errno == EFAULT);
	/* And by the driver's own. */
	RT_CHECK(kvt_put(&t->bob, 0, 0, &t->key[0], NULL, 1) == 1);
	RT_CHECK(kvt_read1(t->bob.fd, 0, &t->key[0], p, RT_BLOCK, 0) == KVTIER_ST_FAULT);
	RT_CHECK(kvt_get(t->bob.fd, 0, 0, &t->key[0], 1, (void *)p, 0) == -EFAULT);
	close(mem);
	close(line[0]);
	close(line[1]);
	return 0;
}

/* Every command that changes something, on a file that may not. */
ATTACK(reader_writes_by_commands, RT_BOX)
{
	struct kvt_key key = kvt_key(RT_SET, 500);
	struct kvtier_arena arena = { .size = sizeof(arena), .nr_slots = 1 };
	struct kvtier_block_result res;
	char buf[RT_BLOCK] = { 0 };
	__s32 st;

	RT_CHECK(kvt_reserve(t->reader, 0, 0, &key, NULL, 1, &res, 0) == -EACCES);
	RT_CHECK(kvt_write1(t->reader, 0, &key, NULL, buf, RT_BLOCK, 0) == KVT_ERR(EACCES));
	RT_CHECK(kvt_drop(t->reader, 0, t->key, RT_BLOCKS, NULL) == -EACCES);
	RT_CHECK(kvt_advise(t->reader, 0, t->key, 1, KVTIER_ADV_TTL, 1, NULL) == -EACCES);
	RT_CHECK(kvt_advise(t->reader, 0, t->key, 1, KVTIER_ADV_PIN, 0, NULL) == -EACCES);
	RT_CHECK(kvt_commit(t->reader, 0, &t->fill.handle, 1, &res) == -EACCES);
	RT_CHECK(kvt_ioctl(t->reader, KVTIER_OP_ARENA, &arena) == -EACCES);
	RT_CHECK(kvt_abort(t->reader, &t->fill.handle, 1, &st) == 0 && st == KVTIER_ST_STALE);
	RT_CHECK(kvt_release(t->reader, t->lease, 1, &st) == 0 && st == KVTIER_ST_STALE);
	return 0;
}

/* A file that may not write has no fill view, and no way to another's. */
ATTACK(reader_maps_fill_views, RT_UID)
{
	__u64 at, base;

	for (at = 0; at < 64; at++) {
		base = at * t->alice.wr.start;
		if (!at)
			continue;
		RT_CHECK(map(t->reader, PROT_READ | PROT_WRITE, MAP_SHARED, base, 4096) ==
			 MAP_FAILED);
		RT_CHECK(map(t->reader, PROT_READ, MAP_SHARED, base, 4096) == MAP_FAILED);
	}
	RT_CHECK(map(t->reader, PROT_READ, MAP_SHARED, t->fill.offset, 4096) == MAP_FAILED);
	return 0;
}

/* Opened anew, with more rights: that is another file, and the opener's own. */
ATTACK(reader_opened_again, RT_UID)
{
	struct kvtier_group group = { .block_bytes = RT_BLOCK };
	struct kvtier_ns_open a;
	char path[64], buf[RT_BLOCK];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", t->reader);
	fd = open(path, O_RDWR | O_CLOEXEC);
	RT_CHECK(fd >= 0);
	RT_CHECK(kvt_lookup(fd, 0, t->key, 1, NULL) == -EBADFD);
	RT_CHECK(map(fd, PROT_READ, MAP_SHARED, t->offset[0], 4096) == MAP_FAILED);
	kvt_ns_args(&a, t->identity, &group, 1);
	RT_CHECK(!kvt_ioctl(fd, KVTIER_OP_NS_OPEN, &a));
	RT_CHECK(a.ns_id == t->bob.ns_id);
	RT_CHECK(kvt_read1(fd, 0, &t->key[0], buf, sizeof(buf), 0) == KVTIER_ST_MISS);
	close(fd);
	/* Nor bound again. */
	RT_CHECK(kvt_ioctl(t->reader, KVTIER_OP_NS_OPEN, &a) == -EBUSY);
	return 0;
}

ATTACK(reader_by_path_alone, RT_BOX)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", t->reader);
	fd = open(path, O_PATH | O_CLOEXEC);
	RT_CHECK(fd >= 0);
	RT_CHECK(kvt_lookup(fd, 0, t->key, 1, NULL) == -EBADF);
	RT_CHECK(map(fd, PROT_READ, MAP_SHARED, t->offset[0], 4096) == MAP_FAILED);
	close(fd);
	/* Status flags do not make it writable. */
	RT_CHECK(!fcntl(t->reader, F_SETFL, O_RDWR | O_APPEND));
	RT_CHECK(map(t->reader, PROT_WRITE, MAP_SHARED, t->offset[0], 4096) == MAP_FAILED);
	return 0;
}

/* Calls that write to files. */
ATTACK(reader_written_to, RT_UID)
{
	int fds[] = { t->reader, t->bob.fd }, mem = memfd_create("rt", 0), pipes[2];
	char junk[4096] = { 1 };
	loff_t at = 0;
	size_t i;

	RT_CHECK(mem >= 0 && write(mem, junk, sizeof(junk)) == sizeof(junk) && !pipe(pipes));
	RT_CHECK(write(pipes[1], junk, 100) == 100);
	for (i = 0; i < KVT_ARRAY(fds); i++) {
		RT_CHECK(write(fds[i], junk, 100) < 0);
		RT_CHECK(pwrite(fds[i], junk, 100, (off_t)t->offset[0]) < 0);
		RT_CHECK(ftruncate(fds[i], 0) < 0);
		RT_CHECK(fallocate(fds[i], 3, 0, 4096) < 0);
		at = 0;
		RT_CHECK(sendfile(fds[i], mem, &at, 100) < 0);
		RT_CHECK(copy_file_range(mem, &at, fds[i], NULL, 100, 0) < 0);
		RT_CHECK(splice(pipes[0], NULL, fds[i], NULL, 100, 0) < 0);
		RT_CHECK(splice(fds[i], NULL, pipes[1], NULL, 100, SPLICE_F_NONBLOCK) <= 0);
	}
	close(mem);
	close(pipes[0]);
	close(pipes[1]);
	return 0;
}

static int send_fd(int line, int fd)
{
	char space[CMSG_SPACE(sizeof(fd))] = { 0 }, byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = space,
			      .msg_controllen = sizeof(space) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(line, &msg, 0) == 1 ? 0 : -errno;
}

static int recv_fd(int line)
{
	char space[CMSG_SPACE(sizeof(int))] = { 0 }, byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = space,
			      .msg_controllen = sizeof(space) };
	int fd;

	if (recvmsg(line, &msg, 0) != 1 || !CMSG_FIRSTHDR(&msg))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

/* Over a socket it is the same file: rights, namespace and handles stay what they were. */
ATTACK(reader_passed_over_a_socket, RT_BOX)
{
	struct kvt_key key = kvt_key(RT_SET, 500);
	struct kvtier_block_result res;
	int line[2], fd;
	char *p;

	RT_CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, line));
	RT_CHECK(!send_fd(line[0], t->reader));
	fd = recv_fd(line[1]);
	RT_CHECK(fd >= 0 && fd != t->reader);
	RT_CHECK(kvt_reserve(fd, 0, 0, &key, NULL, 1, &res, 0) == -EACCES);
	RT_CHECK(map(fd, PROT_READ | PROT_WRITE, MAP_SHARED, t->offset[0], 4096) == MAP_FAILED);
	p = map(fd, PROT_READ, MAP_SHARED, t->offset[0], 4096);
	RT_CHECK(p != MAP_FAILED && rt_same_bytes(p, &t->key[0]));
	RT_CHECK(mprotect(p, 4096, PROT_READ | PROT_WRITE));
	/* BOB's own file, passed to himself, does not come to see hers. */
	RT_CHECK(!send_fd(line[0], t->bob.fd));
	fd = recv_fd(line[1]);
	RT_CHECK(fd >= 0 && kvt_lookup(fd, 0, t->key, 1, NULL) == 0);
	p = map(fd, PROT_READ, MAP_SHARED, t->offset[0], 4096);
	RT_CHECK(p == MAP_FAILED || kvt_touch_read(p) == SIGBUS);
	close(line[0]);
	close(line[1]);
	return 0;
}

TEST_HARNESS_MAIN
