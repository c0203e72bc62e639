/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Crash tests of the driver: a load that keeps a journal, and the comparison of what a
 * crash has left with what the journal says was promised.
 *
 *   block.c    names of blocks and namespaces, and the bytes that belong to them
 *   oracle.c   the journal, read: what must be there, what must not
 *   load.c     the load, through libkvtier
 *   verify.c   a pool that has been assembled, against the oracle
 *   assemble.c states of a device, taken by the driver one after the other
 *   dm.c       dm-log-writes: making it, marking its log
 *   logwr.c    the log it has written, read
 *   replay.c   states that a device may be in after a crash, made from such a log
 *
 * The journal is lines of text. Each is with the one who keeps it before the load goes
 * on: in a file of the host, which outlives the machine, or as a mark in the log of
 * dm-log-writes, where it has its place among the writes. "P", "D" and "G" are written
 * before the thing is done, "S" and "d" after it was acknowledged. N is a namespace, I a
 * block of it:
 *
 *   O N Q          the namespace may be there from now on, with a quota of Q bytes
 *   P N I K V      K blocks from I on are put, as version V
 *   D N I K        ... dropped
 *   d N I K        DROP of them has returned
 *   G N I K        ... brought up into memory: what is on the media need not stay there
 *   S N I...       these are durable
 *
 * In most namespaces nothing may be evicted while the load runs, or "durable" would end
 * without a line. So every block there is pinned, what is pinned is below the pool's
 * capacity, and the load fails when it sees an eviction. In one of each worker's nothing is
 * pinned, and more is put than there is room for, or than its quota allows: such blocks are
 * *loose*. They may be gone at any time, and after a crash they may be there again if nobody
 * dropped them, but what is there must be right.
 *
 * A block is put again only when it was dropped or is not there. Each time it has a new
 * version, which its bytes tell.
 */
#ifndef KVT_CRASH_VM_H
#define KVT_CRASH_VM_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <kvtier/libkvtier.h>

#define CHAIN		8u	/* blocks; each has the one before it as its parent */
#define WORKERS_MAX	4u
#define NS_MAX		65536u
#define MAIN_BLOCKS	1024u	/* of a worker's first namespace, most */
#define LOOSE_BLOCKS	512u	/* of its second */
#define CHURN_BLOCKS	24u	/* of its others, which come and go */
#define LINE_MAX_BYTES	400u	/* a mark is in a sector */

/* --- block.c ----------------------------------------------------------------- */

#define NR_GROUPS	2u
extern const uint64_t group_bytes[NR_GROUPS];

enum serial {
	SERIAL_MAIN,
	SERIAL_LOOSE,
	SERIAL_CHURN,		/* and on */
};

/* Namespaces of a worker: w, w + WORKERS_MAX, w + 2 * WORKERS_MAX ... */
static inline uint32_t ns_of(uint32_t worker, uint32_t serial)
{
	return serial * WORKERS_MAX + worker;
}

static inline bool ns_loose(uint32_t ns)
{
	return ns / WORKERS_MAX == SERIAL_LOOSE;
}

static inline uint32_t ns_blocks(uint32_t ns)
{
	return ns_loose(ns) ? LOOSE_BLOCKS : ns < WORKERS_MAX ? MAIN_BLOCKS : CHURN_BLOCKS;
}

static inline uint32_t group_of(uint32_t index)
{
	return index / CHAIN % NR_GROUPS;
}

void make_key(struct kvtier_key *key, uint32_t ns, uint32_t index);
/* Whose key it is; false: nobody's. */
bool read_key(const void *key, uint32_t *ns, uint32_t *index);
void fill_block(void *to, uint32_t ns, uint32_t index, uint32_t version);
/* Version of what is there, 0: these are not the bytes of that block. */
uint32_t block_version(const void *from, uint32_t ns, uint32_t index);
/* Its limit, 0: none. That of one in two loose ones is less than what is put there. */
uint64_t ns_quota(uint32_t ns);
/* 0 or -errno. @flags: KVTIER_NS_*; @secret: its own, or a wrong one. */
int open_ns(struct kvtier_pool *pool, uint32_t ns, uint32_t flags, bool secret,
	    struct kvtier_ns **out);

/* --- oracle.c ---------------------------------------------------------------- */

/**
 * struct ora_block - what is known of a block
 * @newest: version put last, 0: never
 * @must:   version that has to be found, 0: none; never of a loose block
 * @floor:  no version up to this may be found
 * @found:  by the check under way
 */
struct ora_block {
	uint32_t newest;
	uint32_t must;
	uint32_t floor;
	bool found;
};

/**
 * struct oracle
 * @ns:       arrays of ns_blocks() blocks, NULL: no such namespace
 * @quota:    of each, in bytes
 * @nr_ns:    namespaces there may be are below
 * @version:  highest one
 * @nr_errors: of the check under way; the first ones are printed
 * @nr_found: likewise
 * @nr_must:  that had to be
 * @nr_gone:  that must not be, and are not
 * @nr_away:  loose ones that were put and are not there
 * @nr_left:  blocks that had to go since the check began, with nobody to pin them: so many
 *            may be missing
 * @nr_excused: so many are, of those that had to be
 */
struct oracle {
	struct ora_block *ns[NS_MAX];
	uint64_t quota[NS_MAX];
	uint32_t nr_ns;
	uint32_t version;
	uint32_t nr_errors;
	uint32_t nr_found;
	uint32_t nr_must;
	uint32_t nr_gone;
	uint32_t nr_away;
	uint32_t nr_left;
	uint32_t nr_excused;
};

struct oracle *oracle_new(void);
void oracle_free(struct oracle *o);
/* One line, without its end. False, and said so: it is no such line. */
bool oracle_line(struct oracle *o, const char *line);
/* All whole lines of a file; the last one may have been cut short. 0 or -errno. */
int oracle_file(struct oracle *o, const char *path);
void oracle_check_start(struct oracle *o);
/* A block is there. @from: its bytes. */
void oracle_found(struct oracle *o, uint32_t ns, uint32_t index, const void *from);
/* After all that is there. True: all is as it must be. */
bool oracle_check_end(struct oracle *o);
void oracle_error(struct oracle *o, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* --- load.c ------------------------------------------------------------------ */

/**
 * struct load_args - a load
 * @pool:    its number
 * @workers: processes
 * @blocks:  of a worker's first namespace
 * @ops:     of each worker, 0: until killed
 * @seed:    decides on everything but time
 * @journal: path; ".N" is appended for each worker. NULL: marks
 * @dm:      name of the dm-log-writes device to be marked
 */
struct load_args {
	uint32_t pool;
	uint32_t workers;
	uint32_t blocks;
	uint32_t ops;
	uint64_t seed;
	const char *journal;
	const char *dm;
};

/* 0: all workers have done their operations. */
int load_run(const struct load_args *a);

/* --- verify.c ---------------------------------------------------------------- */

/*
 * Pool @pool, which was assembled with @blocks, against what is known of it. @journals: of
 * each worker, told what the check brings up; NULL: nobody goes on from there. True: right.
 */
bool verify_blocks(uint32_t pool, uint64_t blocks, struct oracle *o, char **journals);
/* The same against journal files; more than one of them are told. 0: right, 1: not. */
int verify_pool(uint32_t pool, uint64_t blocks, char **journals, int nr);

/* --- assemble.c -------------------------------------------------------------- */

/*
 * What is on @device, by the driver: a pool is assembled of it, of so many @blocks, compared
 * with what is known, and destroyed. True: right; the device is not what it was in any case.
 */
bool assemble_state(const char *device, struct oracle *o, uint64_t *blocks);

/* --- dm.c -------------------------------------------------------------------- */

/* 0 or -errno. @path: of the device, made by the call. */
int dm_log_create(const char *name, const char *dev, const char *log, char *path, size_t len);
int dm_mark(const char *name, const char *text);
int dm_remove(const char *name);

/* --- logwr.c ----------------------------------------------------------------- */

/**
 * struct logwr_entry
 * @byte: where it was written
 * @len:  how much; 0: nothing, a flush or a mark
 * @data: in the log, NULL: a discard, or nothing
 * @mark: text, not terminated, of @mark_len bytes
 */
struct logwr_entry {
	uint64_t byte;
	uint64_t len;
	const uint8_t *data;
	const char *mark;
	uint32_t mark_len;
	bool flush;
	bool fua;
	bool discard;
};

struct logwr {
	const uint8_t *base;
	uint64_t bytes;
	struct logwr_entry *entries;
	uint64_t nr;
};

/* 0 or -errno. The log must have been ended. */
int logwr_open(struct logwr *l, const char *path);
void logwr_close(struct logwr *l);

/* --- replay.c ---------------------------------------------------------------- */

/**
 * struct replay_args
 * @log:      of dm-log-writes
 * @bytes:    length of the device
 * @points:   states
 * @every:    of these so many make one that is judged: the last of them
 * @seed:     decides on everything
 * @image:    file, written to
 * @tool:     kvtier, for fsck of each state; NULL: none
 * @device:   a loop device over @image, of which the driver is to assemble each state; NULL:
 *            the core's recovery reads @image
 * @toothless: a check to be left out, NULL: none
 * @only:     this one of the states is left in @image, with its journal beside it, and none is
 *            judged; KVT_NO_STATE: no such
 */
struct replay_args {
	const char *log;
	uint64_t bytes;
	uint32_t points;
	uint32_t every;
	uint64_t seed;
	const char *image;
	const char *tool;
	const char *device;
	const char *toothless;
	uint32_t only;
};

#define KVT_NO_STATE	UINT32_MAX

/* 0: all states were right, 1: one was not, 2: something else */
int replay_run(const struct replay_args *a);

/* --- medium.c ---------------------------------------------------------------- */

/* Leave out a check of recovery, by its name in enum kvt_env_break. */
bool medium_break(const char *name);

static inline uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static inline uint32_t random_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)((next_random(state) >> 32) % n);
}

#endif /* KVT_CRASH_VM_H */
