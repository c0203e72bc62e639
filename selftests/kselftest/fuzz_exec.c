// SPDX-License-Identifier: GPL-2.0
/*
 * Sequences are run here: the calls of the first thread by the caller, those of the second
 * by a thread that waits for them. Whatever a sequence has opened or mapped is gone after it.
 */
#include "fuzz.h"
#include <poll.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>

#define MEM_AT		0x1000000000ull	/* no one bit away from any other memory */
#define MEM_APART	0x10000000ull
#define MAP_BYTES	(64 * KVT_KIB)

struct fz_counts fz_counts;
__thread int fz_thread;

static const struct fz_seq *running;
static _Atomic bool over;	/* the first thread has ended its part */
static sem_t go, done;
static pthread_t second;
static bool stop;

static __thread sigjmp_buf jump;
static __thread volatile bool jump_set;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *uc = context;

	if (jump_set)
		siglongjmp(jump, sig);
	/* A fault of the fuzzer: once more, to die of it. */
	fprintf(stderr, "# signal %d at %p, access to %p, in\n", sig,
		(void *)uc->uc_mcontext.gregs[REG_RIP], info->si_addr);
	if (running)
		fz_print(running, stderr);
	signal(sig, SIG_DFL);
}

static void touch(char *p, bool write)
{
	if (!sigsetjmp(jump, 1)) {
		jump_set = true;
		if (write)
			*(volatile char *)p = 1;
		else
			(void)*(volatile char *)p;
	}
	jump_set = false;
}

/* --- open files --------------------------------------------------------------------- */

static int slot_fd(struct fz_slot *s, const struct fz_call *c)
{
	int fd = s->fd, none = -1;

	if (fd >= 0)
		return fd;
	fd = open(fz.pool.node, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return fd;
	if (c->op != KVTIER_OP_NS_OPEN)
		fz_bind(fd, c->slot & 1, s);
	if (atomic_compare_exchange_strong(&s->fd, &none, fd))
		return fd;
	close(fd);
	return none;
}

static void unmap(struct fz_map *m)
{
	if (m->at)
		munmap(m->at, m->bytes);
	m->at = NULL;
}

static void clear_slots(void)
{
	int i, t;

	for (i = 0; i < FZ_SLOTS; i++) {
		for (t = 0; t < FZ_THREADS; t++)
			unmap(&fz.slot[i].map[t]);
		memset(&fz.slot[i], 0, sizeof(fz.slot[i]));
		fz.slot[i].fd = -1;
	}
	/* What calls have opened and not told as well. */
	syscall(SYS_close_range, fz.base_fd, ~0u, 0);
}

/* --- what is no command --------------------------------------------------------------- */

static void do_mmap(struct fz_slot *s, int fd, __u64 *r)
{
	__u64 offset = fz_recall(&s->offset, r) & ~4095ull;
	int prot = fz_below(r, 3) ? PROT_READ : PROT_READ | PROT_WRITE;
	int flags = fz_one_in(r, 12) ? MAP_PRIVATE : MAP_SHARED;
	size_t bytes = fz_one_in(r, 3) ? KVT_PIECE : MAP_BYTES;
	struct fz_map *m = &s->map[fz_thread];

	if (s->fill_offset && offset >= s->fill_offset)
		prot = PROT_READ | PROT_WRITE;
	else if (fz_one_in(r, 6))
		offset = fz_next(r) & ~4095ull & (KVT_PIECE * 64 - 1);
	unmap(m);
	m->bytes = bytes;
	m->at = mmap(NULL, bytes, prot, flags, fd, (off_t)offset);
	if (m->at == MAP_FAILED)
		m->at = NULL;
}

static void do_touch(struct fz_slot *s, int fd, __u64 *r)
{
	char *map;

	if (!s->map[fz_thread].at || fz_one_in(r, 4))
		do_mmap(s, fd, r);
	map = s->map[fz_thread].at;
	if (map)
		touch(map + fz_below(r, MAP_BYTES / 4096) * 4096ull, fz_below(r, 2));
}

/* The child has the files and mappings too. */
static void do_fork(struct fz_slot *s, int fd, struct fz_mem *mem, __u64 *r)
{
	struct fz_call c = { .op = KVTIER_OP_GET };
	pid_t pid;
	void *arg = fz_arg(&c, s, mem, r);

	pid = fork();
	if (!pid) {
		ioctl(fd, KVTIER_IOC(KVTIER_OP_GET), arg);
		if (s->map[fz_thread].at)
			touch(s->map[fz_thread].at, false);
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static void do_sysfs(__u64 *r)
{
	static const char *const files[] = {
		"policy", "watermark_low_percent", "watermark_high_percent",
		"reservation_timeout_ms", "reserve_percent", "copies_percent",
	};
	static const char *const values[] = {
		"lru", "reuse", "", "-1", "70", "80", "90", "100", "101", "500", "1000", "x\n",
		"99999999999999999999",
	};
	int i = fz_below(r, KVT_ARRAY(files));

	kvt_sysfs_write(&fz.pool, files[i], values[fz_below(r, KVT_ARRAY(values))]);
}

static void do_bad_command(int fd, struct fz_mem *mem, __u64 *r)
{
	if (fz_below(r, 2))
		ioctl(fd, KVTIER_IOC(fz_below(r, 256)), mem->base);
	else
		ioctl(fd, _IOC(fz_below(r, 4), KVTIER_IOC_TYPE, fz_below(r, 64),
			       fz_below(r, 512)), mem->base);
}

static void do_other(const struct fz_call *c, struct fz_slot *s, struct fz_mem *mem, __u64 *r)
{
	int fd = slot_fd(s, c), other = fz_below(r, FZ_SLOTS);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int none = -1;

	switch (c->op) {
	case FZ_CLOSE:
		fd = atomic_exchange(&s->fd, -1);
		if (fd >= 0)
			close(fd);
		break;
	case FZ_DUP:
		fd = dup(fd);
		if (!atomic_compare_exchange_strong(&fz.slot[other].fd, &none, fd) && fd >= 0)
			close(fd);
		break;
	case FZ_MMAP:
		do_mmap(s, fd, r);
		break;
	case FZ_MUNMAP:
		unmap(&s->map[fz_thread]);
		break;
	case FZ_MPROTECT:
		if (s->map[fz_thread].at)
			mprotect(s->map[fz_thread].at, 4096, PROT_READ | PROT_WRITE);
		break;
	case FZ_TOUCH:
		do_touch(s, fd, r);
		break;
	case FZ_FORK:
		do_fork(s, fd, mem, r);
		break;
	case FZ_POLL:
		poll(&p, 1, 0);
		break;
	case FZ_READ:
		if (read(fd, mem->base + FZ_AT_RESULTS, fz_below(r, 5) * 16) < 0)
			break;
		break;
	case FZ_SYSFS:
		do_sysfs(r);
		break;
	case FZ_BADCMD:
		do_bad_command(fd, mem, r);
		break;
	}
}

/* --- sequences ------------------------------------------------------------------------- */

static void run_call(const struct fz_call *c, int thread)
{
	struct fz_slot *s = &fz.slot[c->slot];
	__u64 state = c->seed;
	void *arg;
	int fd;

	fz_counts.calls[c->op]++;
	if (c->op >= FZ_OPS) {
		do_other(c, s, &fz.mem[thread], &state);
		return;
	}
	if (c->op >= KVTIER_OP_CTL_QUERY)
		fz.dirty = true;
	fd = c->op >= KVTIER_OP_CTL_QUERY ? fz.ctl : slot_fd(s, c);
	arg = fz_arg(c, s, &fz.mem[thread], &state);
	if (ioctl(fd, KVTIER_IOC(c->op), arg))
		return;
	fz_counts.ok[c->op]++;
	if (fz_learn(c, s, arg))
		fz_counts.done[c->op]++;
}

static void run_part(const struct fz_seq *s, int thread)
{
	__u64 since;
	int i;

	for (i = 0; i < s->nr; i++) {
		if ((s->threaded ? s->call[i].thread : 0) != thread)
			continue;
		since = kvt_now_ns();
		run_call(&s->call[i], thread);
		fz_counts.ns[s->call[i].op] += kvt_now_ns() - since;
	}
}

/* Counts, groups, keys and handles, all the time; no addresses, which lead anywhere. */
static void scribble(const struct fz_seq *s)
{
	volatile __u32 *arg = (void *)fz.mem[0].base;
	volatile __u64 *keys = (void *)(fz.mem[0].base + FZ_AT_KEYS);
	volatile __u32 *results = (void *)(fz.mem[0].base + FZ_AT_RESULTS);
	__u64 state = s->call[0].seed;

	while (!over) {
		arg[2 + fz_below(&state, 2)] = fz_below(&state, 70);
		keys[fz_below(&state, 32)] = fz_next(&state);
		results[fz_below(&state, 64)] = fz_below(&state, 8);
	}
}

static void *second_main(void *unused)
{
	fz_thread = 1;
	if (fz.cov[1].area && fz_cov_start(&fz.cov[1]))
		return unused;
	for (;;) {
		sem_wait(&go);
		if (stop)
			return NULL;
		if (running->scribble)
			scribble(running);
		else
			run_part(running, 1);
		sem_post(&done);
	}
}

static int make_mem(struct fz_mem *m, __u64 at)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, FZ_MEM_BYTES))
		return -errno;
	m->base = mmap((void *)(uintptr_t)at, FZ_MEM_BYTES, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
	m->ro = mmap((void *)(uintptr_t)(at + 2 * FZ_MEM_BYTES), FZ_MEM_BYTES, PROT_READ,
		     MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
	close(fd);
	return m->base == MAP_FAILED || m->ro == MAP_FAILED ? -ENOMEM : 0;
}

int fz_exec_start(void)
{
	struct sigaction sa = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
	int i, err = 0;

	sigaction(SIGBUS, &sa, NULL);
	sigaction(SIGSEGV, &sa, NULL);
	sem_init(&go, 0, 0);
	sem_init(&done, 0, 0);
	for (i = 0; i < FZ_THREADS && !err; i++) {
		err = make_mem(&fz.mem[i], MEM_AT + i * MEM_APART);
		if (!err && fz_cov_there())
			err = fz_cov_open(&fz.cov[i]);
	}
	for (i = 0; i < FZ_SLOTS; i++)
		fz.slot[i].fd = -1;
	if (!err && fz.cov[0].area)
		err = fz_cov_start(&fz.cov[0]);
	if (!err)
		err = -pthread_create(&second, NULL, second_main, NULL);
	fz.base_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return err;
}

void fz_exec_stop(void)
{
	stop = true;
	sem_post(&go);
	pthread_join(second, NULL);
}

int fz_exec(const struct fz_seq *s)
{
	bool two = s->threaded || s->scribble;
	int i, fresh = 0;

	for (i = 0; i < FZ_THREADS; i++)
		if (fz.cov[i].area)
			fz_cov_reset(&fz.cov[i]);
	running = s;
	over = false;
	if (two)
		sem_post(&go);
	run_part(s, 0);
	over = true;
	if (two)
		sem_wait(&done);
	/* What closing runs is covered as well. */
	clear_slots();
	for (i = 0; i < FZ_THREADS; i++)
		if (fz.cov[i].area)
			fresh += fz_cov_take(&fz.cov[i]);
	return fresh;
}

__u64 fz_calls(void)
{
	__u64 sum = 0;
	int i;

	for (i = 0; i < FZ_OPS; i++)
		sum += fz_counts.calls[i];
	return sum;
}
