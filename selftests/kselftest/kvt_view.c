// SPDX-License-Identifier: GPL-2.0
/*
 * Mappings, and probing them.
 *
 * A view that cannot be had any more answers with SIGBUS. The probes turn that
 * into a return value. One probe at a time in a process: the jump buffer is
 * shared.
 */
#include "kvt_test.h"
#include <setjmp.h>

#define HUGE	KVT_PIECE

static sigjmp_buf probe_env;

static void probe_handler(int sig)
{
	siglongjmp(probe_env, sig);
}

static void probe_begin(struct sigaction old[2])
{
	struct sigaction sa = { .sa_handler = probe_handler };

	sigaction(SIGBUS, &sa, &old[0]);
	sigaction(SIGSEGV, &sa, &old[1]);
}

static void probe_end(struct sigaction old[2])
{
	sigaction(SIGBUS, &old[0], NULL);
	sigaction(SIGSEGV, &old[1], NULL);
}

int kvt_touch_read(const void *p)
{
	struct sigaction old[2];
	int sig;

	probe_begin(old);
	sig = sigsetjmp(probe_env, 1);
	if (!sig)
		(void)*(const volatile char *)p;
	probe_end(old);
	return sig;
}

int kvt_touch_write(void *p, char value)
{
	struct sigaction old[2];
	int sig;

	probe_begin(old);
	sig = sigsetjmp(probe_env, 1);
	if (!sig)
		*(volatile char *)p = value;
	probe_end(old);
	return sig;
}

int kvt_copy_probe(void *dst, const void *src, size_t bytes)
{
	struct sigaction old[2];
	int sig;

	probe_begin(old);
	sig = sigsetjmp(probe_env, 1);
	if (!sig)
		memcpy(dst, src, bytes);
	probe_end(old);
	return sig;
}

int kvt_bytes_probe(const void *src, const struct kvt_key *key, size_t bytes)
{
	struct sigaction old[2];
	volatile int ret;
	int sig;

	probe_begin(old);
	sig = sigsetjmp(probe_env, 1);
	if (!sig)
		ret = kvt_bytes_ok(src, key, bytes);
	else
		ret = -sig;
	probe_end(old);
	return ret;
}

/*
 * Addresses equal offsets modulo 2 MiB, as 2 MiB entries need: the address space is
 * reserved with room to choose in.
 */
int kvt_map(int fd, int prot, __u64 offset, __u64 bytes, struct kvt_view *v)
{
	size_t space = bytes + HUGE, skip;
	char *area, *at;
	int err;

	area = mmap(NULL, space, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (area == MAP_FAILED)
		return -errno;
	skip = (offset - KVT_U64(area)) & (HUGE - 1);
	at = mmap(area + skip, bytes, prot, MAP_SHARED | MAP_FIXED, fd, (off_t)offset);
	if (at == MAP_FAILED) {
		err = -errno;
		munmap(area, space);
		return err;
	}
	if (skip)
		munmap(area, skip);
	munmap(at + bytes, space - skip - bytes);
	v->base = at;
	v->start = offset;
	v->bytes = bytes;
	return 0;
}

void kvt_unmap(struct kvt_view *v)
{
	if (v->base)
		munmap(v->base, v->bytes);
	memset(v, 0, sizeof(*v));
}

/* PAGEMAP_SCAN: in the kernel since 6.7, not yet in the packaged headers. */
struct scan_region {
	__u64 start;
	__u64 end;
	__u64 categories;
};

struct scan_arg {
	__u64 size;
	__u64 flags;
	__u64 start;
	__u64 end;
	__u64 walk_end;
	__u64 vec;
	__u64 vec_len;
	__u64 max_pages;
	__u64 category_inverted;
	__u64 category_mask;
	__u64 category_anyof_mask;
	__u64 return_mask;
};

#define SCAN_IOCTL	_IOWR('f', 16, struct scan_arg)
#define SCAN_PRESENT	(1 << 3)
#define SCAN_HUGE	(1 << 6)

long long kvt_huge_bytes(const void *p, size_t bytes)
{
	struct scan_region found[64] = { 0 };
	struct scan_arg a = {
		.size = sizeof(a),
		.start = KVT_U64(p),
		.end = KVT_U64(p) + bytes,
		.vec = KVT_U64(found),
		.vec_len = KVT_ARRAY(found),
		.category_mask = SCAN_HUGE | SCAN_PRESENT,
		.return_mask = SCAN_HUGE | SCAN_PRESENT,
	};
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC), n, i;
	long long sum = 0;

	if (fd < 0)
		return -errno;
	n = ioctl(fd, SCAN_IOCTL, &a);
	if (n < 0)
		sum = -errno;
	for (i = 0; i < n; i++)
		sum += found[i].end - found[i].start;
	close(fd);
	return sum;
}
