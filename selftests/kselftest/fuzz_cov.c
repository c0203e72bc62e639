// SPDX-License-Identifier: GPL-2.0
/*
 * What was covered: program counters that the kernel's KCOV records for the calling thread.
 * Only the module is instrumented, and it lies within 4 MiB, so the low bits of an
 * address say where it is. A *branch* is a pair of places that followed each other.
 */
#include "fuzz.h"

#define KCOV_FILE	"/sys/kernel/debug/kcov"
#define KCOV_INIT_TRACE	_IOR('c', 1, unsigned long)
#define KCOV_ENABLE	_IO('c', 100)
#define KCOV_TRACE_PC	0

#define AREA_WORDS	(256u << 10)
#define PLACES		(4u << 20)
#define BRANCHES	(1u << 20)

static __u8 places[PLACES / 8];
static __u8 branches[BRANCHES / 8];
static __u32 nr_places;
static __u32 nr_branches;

bool fz_cov_there(void)
{
	return !access(KCOV_FILE, R_OK | W_OK);
}

int fz_cov_open(struct fz_cov *c)
{
	c->fd = open(KCOV_FILE, O_RDWR | O_CLOEXEC);
	if (c->fd < 0 || ioctl(c->fd, KCOV_INIT_TRACE, (unsigned long)AREA_WORDS))
		return -errno;
	c->area = mmap(NULL, AREA_WORDS * sizeof(*c->area), PROT_READ | PROT_WRITE, MAP_SHARED,
		       c->fd, 0);
	return c->area == MAP_FAILED ? -errno : 0;
}

int fz_cov_start(struct fz_cov *c)
{
	return ioctl(c->fd, KCOV_ENABLE, KCOV_TRACE_PC) ? -errno : 0;
}

void fz_cov_reset(struct fz_cov *c)
{
	__atomic_store_n(&c->area[0], 0, __ATOMIC_RELAXED);
}

static bool set(__u8 *map, __u32 bit)
{
	bool was = map[bit / 8] & 1 << bit % 8;

	map[bit / 8] |= 1 << bit % 8;
	return !was;
}

int fz_cov_take(struct fz_cov *c)
{
	unsigned long n = __atomic_load_n(&c->area[0], __ATOMIC_RELAXED), i;
	__u32 pc, before = 0, fresh = 0;

	for (i = 1; i <= n && i < AREA_WORDS; i++) {
		pc = (__u32)c->area[i] % PLACES;
		if (set(places, pc)) {
			nr_places++;
			fresh++;
		}
		if (set(branches, (pc * 2654435761u ^ before) % BRANCHES)) {
			nr_branches++;
			fresh++;
		}
		before = pc >> 1;
	}
	return fresh;
}

__u32 fz_cov_places(void)
{
	return nr_places;
}

__u32 fz_cov_branches(void)
{
	return nr_branches;
}
