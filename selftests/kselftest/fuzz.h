/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A fuzzer of the commands, led by what the kernel's coverage says.
 *
 * Model: a *sequence* is a list of calls, each an operation, a slot (one of several
 * open files), a seed from which a valid argument is made, and up to three changes to
 * that argument. Handles, offsets, cursors and pools that earlier calls gave are what
 * later ones use. A sequence that runs code or branches that none before did is kept in the
 * corpus and changed further. What is run is a function of the seed and of what was covered;
 * how two threads interleave, and what the pool's worker does meanwhile, is not.
 *
 * fuzz_cov.c: what was covered; fuzz_gen.c: sequences; fuzz_arg.c: arguments; fuzz_exec.c:
 * running them; fuzz_world.c: what they run against, and what must be left of it.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include "kvt_test.h"
#include <pthread.h>

#define FZ_LEN		32	/* calls of a sequence */
#define FZ_MUTS		3
#define FZ_SLOTS	4
#define FZ_RING		64	/* results remembered, of each kind */
#define FZ_THREADS	2
#define FZ_CHAINS	24
#define FZ_CHAIN	16
#define FZ_GROUPS	2
#define FZ_OPS		64	/* commands are numbered below this */

/* What is no command of ours, from FZ_OPS on. */
enum fz_op {
	FZ_CLOSE = FZ_OPS,
	FZ_DUP,
	FZ_MMAP,
	FZ_MUNMAP,
	FZ_MPROTECT,
	FZ_TOUCH,
	FZ_FORK,
	FZ_POLL,
	FZ_READ,
	FZ_SYSFS,
	FZ_BADCMD,
	FZ_NR_OPS,
};

/* How a word of an argument is changed. */
enum fz_how {
	FZ_SET,		/* u32 to something interesting */
	FZ_FLIP,	/* one bit of it */
	FZ_ADD,		/* a little to it */
	FZ_POINT,	/* u64 to some other, or no, memory */
	FZ_SIZE,	/* the struct's size */
	FZ_NR_HOWS,
};

struct fz_mut {
	__u16 at;
	__u16 how;
	__u32 value;
};

struct fz_call {
	__u8 op;
	__u8 slot;
	__u8 thread;
	__u8 nr_muts;
	__u32 seed;
	struct fz_mut mut[FZ_MUTS];
};

/**
 * struct fz_seq - a sequence
 * @threaded: the calls of thread 1 run at the same time as the others
 * @scribble: the other thread changes buffers of the first instead
 */
struct fz_seq {
	__u8 nr;
	bool threaded;
	bool scribble;
	struct fz_call call[FZ_LEN];
};

/* The last so many of something. */
struct fz_ring {
	__u64 v[FZ_RING];
	__u32 nr;
};

/* Only the thread that has made a mapping ends it: its addresses may be another's after. */
struct fz_map {
	char *at;
	size_t bytes;
};

struct fz_slot {
	_Atomic int fd;
	__u64 fill_offset;
	struct fz_ring reserved;
	struct fz_ring leased;
	struct fz_ring offset;
	__u64 cursor;
	struct fz_map map[FZ_THREADS];
};

/**
 * struct fz_mem - what arguments of one thread are made in
 * @base: of FZ_MEM_BYTES; what follows cannot be touched
 * @ro:   the same bytes, to be read only
 */
#define FZ_MEM_BYTES	(1u << 20)
#define FZ_AT_KEYS	(64u << 10)
#define FZ_AT_PARENTS	(192u << 10)
#define FZ_AT_RESULTS	(320u << 10)
#define FZ_AT_BUFS	(832u << 10)
#define FZ_AT_PAYLOAD	(896u << 10)
struct fz_mem {
	char *base;
	char *ro;
};

/**
 * struct fz_cov - coverage of one thread
 * @area: KCOV's: a count and that many program counters
 */
struct fz_cov {
	int fd;
	unsigned long *area;
};

/**
 * struct fz_world - what sequences run against
 * @pool:    with two tiers of memory and one on @disk
 * @keeper:  an open file that keeps it from being destroyed, not bound
 * @holder:  others that keep its namespaces as they are meant to be
 * @member:  a disk with a pool that has ended
 * @pools:   made by calls
 * @tiers:   same, of @pool
 * @base_fd: files above this are the sequence's
 * @dirty:   a tier may have gone, or a pool come
 */
struct fz_world {
	struct kvt_pool pool;
	int keeper;
	int holder[2];
	int ctl;
	struct kvt_disk disk;
	struct kvt_disk spare;
	struct kvt_disk member;
	int base_fd;
	bool dirty;
	struct fz_ring pools;
	struct fz_ring tiers;
	struct fz_slot slot[FZ_SLOTS];
	struct fz_mem mem[FZ_THREADS];
	struct fz_cov cov[FZ_THREADS];
	struct kvt_key keys[FZ_CHAINS][FZ_CHAIN];
};

/* What was done: calls, those answered with 0, and those that got something done. */
struct fz_counts {
	_Atomic __u64 calls[FZ_NR_OPS];
	_Atomic __u64 ok[FZ_NR_OPS];
	_Atomic __u64 done[FZ_NR_OPS];
	_Atomic __u64 ns[FZ_NR_OPS];		/* that they took */
};

extern struct fz_world fz;
extern struct fz_counts fz_counts;

/* Which of the threads this is. */
extern __thread int fz_thread;

extern const __u8 fz_commands[];
extern const int fz_nr_commands;

/* --- small things --------------------------------------------------------------- */

static inline __u64 fz_next(__u64 *state)
{
	__u64 z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static inline __u32 fz_below(__u64 *state, __u32 n)
{
	return (__u32)(fz_next(state) >> 32) % n;
}

static inline bool fz_one_in(__u64 *state, __u32 n)
{
	return !fz_below(state, n);
}

static inline void fz_remember(struct fz_ring *r, __u64 v)
{
	r->v[r->nr++ % FZ_RING] = v;
}

/* Mostly one of the last few; 0: there is none. */
static inline __u64 fz_recall(const struct fz_ring *r, __u64 *state)
{
	__u32 have = r->nr < FZ_RING ? r->nr : FZ_RING;
	__u32 back = fz_one_in(state, 4) ? FZ_RING : 4;

	if (!have)
		return 0;
	return r->v[(r->nr - 1 - fz_below(state, back < have ? back : have)) % FZ_RING];
}

/* --- fuzz_cov.c ------------------------------------------------------------------ */

bool fz_cov_there(void);
int fz_cov_open(struct fz_cov *c);
/* In the thread whose coverage it is to be. */
int fz_cov_start(struct fz_cov *c);
void fz_cov_reset(struct fz_cov *c);
/* Add what was covered since the reset; how much of it was new. */
int fz_cov_take(struct fz_cov *c);
__u32 fz_cov_places(void);
__u32 fz_cov_branches(void);

/* --- fuzz_gen.c ------------------------------------------------------------------ */

/* The next sequence to run: new, or made of some that were worth keeping. */
void fz_gen(struct fz_seq *s, __u64 *state);
/* It was worth keeping. */
void fz_keep(const struct fz_seq *s);
int fz_corpus(void);
/* All commands in an order in which they succeed: number @i of them; false: no more. */
bool fz_gen_first(struct fz_seq *s, int i);
const char *fz_name(int op);
void fz_print(const struct fz_seq *s, FILE *f);
/* What fz_print() has printed; 0 or -EINVAL. */
int fz_parse(struct fz_seq *s, FILE *f);

/* --- fuzz_arg.c ------------------------------------------------------------------ */

/* The argument of a command in @mem; where it is. */
void *fz_arg(const struct fz_call *c, struct fz_slot *slot, struct fz_mem *mem, __u64 *state);
/* Learn from what it answered; has anything been done. */
bool fz_learn(const struct fz_call *c, struct fz_slot *slot, void *arg);

/* --- fuzz_exec.c ----------------------------------------------------------------- */

int fz_exec_start(void);
void fz_exec_stop(void);
/* Run it, all of its threads, and clear up. How much of what was covered was new. */
int fz_exec(const struct fz_seq *s);
/* Calls of commands so far. */
__u64 fz_calls(void);

/* --- fuzz_world.c ---------------------------------------------------------------- */

int fz_world_open(void);
/* Make it what it was at first, as far as later sequences need that. */
int fz_world_mend(void);
/* Nothing may be left; printed if something is. */
int fz_world_check(void);
int fz_world_close(void);
int fz_bind(int fd, __u32 which, struct fz_slot *slot);
void fz_bind_args(struct kvtier_ns_open *o, struct kvtier_group *groups, __u32 which);

#endif /* FUZZ_H */
