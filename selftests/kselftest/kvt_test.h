/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the kvtier test programs share.
 *
 * The programs speak to the kernel by ioctl alone, so that the interface itself
 * is tested and not a library. Helpers return 0 or a count >= 0, and -errno on
 * failure; they never end the test, that is the caller's business.
 *
 * Every test makes a pool of its own and destroys it, so none depends on
 * another. Blocks have contents derived from their keys: any reader can tell
 * right bytes from wrong ones, and whose they are.
 */
#ifndef KVT_TEST_H
#define KVT_TEST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>
#include <linux/kvtier.h>

#define KVT_KIB		1024ull
#define KVT_MIB		(1024ull * 1024)
#define KVT_PIECE	(2 * KVT_MIB)
#define KVT_MSEC	1000000ull
#define KVT_SEC		1000000000ull
#define KVT_FOREVER	(~0ull)
#define KVT_ARRAY(a)	(sizeof(a) / sizeof((a)[0]))
#define KVT_U64(p)	((__u64)(uintptr_t)(p))

struct kvt_key {
	__u8 b[KVTIER_KEY_BYTES];
};

/**
 * struct kvt_pool - a pool made by a test
 * @ctl:   open control device
 * @id:    N of /dev/kvtierN
 * @node:  path of its data device
 * @open_node: the same device through a node anybody may open
 */
struct kvt_pool {
	int ctl;
	__u32 id;
	char node[32];
	char open_node[64];
};

/* A mapped view; @start is the mmap offset of @base. */
struct kvt_view {
	char *base;
	__u64 start;
	__u64 bytes;
};

/**
 * struct kvt_client - an open file bound to a namespace, with both views mapped
 * @block_bytes: of each group
 */
struct kvt_client {
	int fd;
	__u64 ns_id;
	struct kvt_view rd;
	struct kvt_view wr;
	__u64 block_bytes[KVTIER_GROUPS_MAX];
};

/* --- kvt_cmd.c: the commands ------------------------------------------------ */

/* 0 or -errno */
int kvt_ioctl(int fd, unsigned int op, void *arg);

/* Arguments of NS_OPEN with their usual values; to be changed before use. */
void kvt_ns_args(struct kvtier_ns_open *a, const char *identity, struct kvtier_group *groups,
		 __u32 nr_groups);
int kvt_lookup(int fd, __u32 group, const struct kvt_key *keys, __u32 nr,
	       struct kvtier_lookup_result *res);
int kvt_get(int fd, __u32 flags, __u32 group, const struct kvt_key *keys, __u32 nr,
	    struct kvtier_block_result *res, __u64 timeout_ns);
int kvt_reserve(int fd, __u32 flags, __u32 group, const struct kvt_key *keys,
		const struct kvt_key *parent, __u32 nr, struct kvtier_block_result *res,
		__u64 timeout_ns);
int kvt_commit(int fd, __u32 flags, const __u64 *handles, __u32 nr,
	       struct kvtier_block_result *res);
int kvt_abort(int fd, const __u64 *handles, __u32 nr, __s32 *res);
int kvt_release(int fd, const __u64 *handles, __u32 nr, __s32 *res);
/* One block, by copy. KVTIER_ST_* or -errno - 1000, so that the two differ. */
#define KVT_ERR(e)	(-(e) - 1000)
int kvt_read1(int fd, __u32 group, const struct kvt_key *key, void *buf, __u64 bytes,
	      __u64 timeout_ns);
int kvt_write1(int fd, __u32 group, const struct kvt_key *key, const struct kvt_key *parent,
	       const void *buf, __u64 bytes, __u64 timeout_ns);
int kvt_prefetch(int fd, __u32 flags, __u32 group, const struct kvt_key *keys, __u32 nr,
		 __u64 user_data, int eventfd);
int kvt_advise(int fd, __u32 group, const struct kvt_key *keys, __u32 nr, __u32 advice,
	       __u64 value, __s32 *res);
/* @tip: NULL: as it is known */
int kvt_session(int fd, __u32 group, __u64 session, __u32 state, const struct kvt_key *tip,
		__u64 reuse_ns);
int kvt_drop(int fd, __u32 group, const struct kvt_key *keys, __u32 nr, __s32 *res);
/* All entries, collected in pages of @page; *@out is to be freed. Count or -errno. */
int kvt_iterate_all(int fd, __u32 page, struct kvtier_entry **out);
int kvt_stat(int fd, __u32 flags, struct kvtier_stat *st);
int kvt_tier_stats(int fd, struct kvtier_stat *st, struct kvtier_tier_stat *tiers);
/* I/O errors of a tier, 0 if there is none of that id. */
__u64 kvt_tier_errors(int fd, int tier);
int kvt_query(int fd, struct kvtier_query *q, struct kvtier_tier_info *tiers);

struct kvt_disk;

/* --- kvt_pool.c: pools, tiers, files ---------------------------------------- */

/* What the environment offers, NULL if it does not: a device-dax instance, a block
 * device for a tier, another one to be scribbled over.
 */
const char *kvt_env_dax(void);
const char *kvt_env_bdev(void);
const char *kvt_env_scratch(void);
bool kvt_env_long(void);
bool kvt_env_quick(void);
/* An instrumented kernel, and not all the time in the world: what the stock kernel shows
 * just as well is left out.
 */
bool kvt_env_brief(void);
/* How often, how many: @quick by default; of both less on an instrumented kernel. */
int kvt_env_many(int quick, int full_length);
/* The same, but as many as @normal at least, whatever the kernel. */
int kvt_env_rounds(int normal, int full_length);

int kvt_setup(struct kvt_pool *p);
/* Fails, saying why, when the pool is still in use or the kernel complained. */
int kvt_teardown(struct kvt_pool *p);
int kvt_pool_destroy(int ctl, __u32 id);
/* After @p has been destroyed: assemble a pool, which then is @p. 0 or -errno */
int kvt_pool_assemble(struct kvt_pool *p, struct kvtier_pool_assemble *a);

/* Tier ids or -errno; names follow from type and rank. */
int kvt_tier_dram(const struct kvt_pool *p, __u32 rank, __u64 bytes);
int kvt_tier_node(const struct kvt_pool *p, __u32 rank, int node, __u64 bytes);
int kvt_tier_dax(const struct kvt_pool *p, __u32 rank, __u64 bytes);
int kvt_tier_bdev(const struct kvt_pool *p, __u32 rank, __u64 bytes);
int kvt_tier_disk(const struct kvt_pool *p, __u32 rank, const struct kvt_disk *d);
int kvt_tier_args(const struct kvt_pool *p, struct kvtier_tier_attach *a, __u32 type, __u32 rank);
int kvt_tier_detach(const struct kvt_pool *p, __u32 tier, __u32 flags, __u64 timeout_ns);
/* Have device-dax instance @name driven by @driver ("kvtier", "device_dax"). */
int kvt_dax_bind(const char *name, const char *driver);

int kvt_open(const struct kvt_pool *p);
/* As user @uid, who has nothing but his name. */
int kvt_open_as(const struct kvt_pool *p, uid_t uid);
/* Run @cmd as another user: become him for opens and checks, and come back. */
int kvt_become(uid_t uid);

int kvt_client_open(const struct kvt_pool *p, struct kvt_client *c, const char *identity,
		    __u64 block_bytes);
int kvt_client_bind(struct kvt_client *c, int fd, struct kvtier_ns_open *a);
void kvt_client_close(struct kvt_client *c);

/* /sys/class/kvtier/kvtierN/NAME */
int kvt_sysfs_write(const struct kvt_pool *p, const char *name, const char *value);
int kvt_sysfs_read(const struct kvt_pool *p, const char *name, char *buf, size_t len);

/* A parameter of a module with hooks for tests, by what comes after "test_": is it there, set it. */
bool kvt_hook(const char *name);
int kvt_hook_set(const char *name, const char *value);
int kvt_hook_number(const char *name, unsigned long long value);

/* As kvt_sysfs_*() for a file of a namespace, by one of its clients; a number, or -errno. */
int kvt_ns_set(const struct kvt_pool *p, const struct kvt_client *c, const char *name,
	       const char *value);
int kvt_ns_set_number(const struct kvt_pool *p, const struct kvt_client *c, const char *name,
		      unsigned long long value);
long long kvt_ns_number(const struct kvt_pool *p, const struct kvt_client *c, const char *name);

/* --- kvt_disk.c: block devices made of files ----------------------------------- */

/**
 * struct kvt_disk - a loop device
 * @file: behind it, in memory
 * @dev:  its node
 */
struct kvt_disk {
	char file[64];
	char dev[32];
	__u64 bytes;
	int fd;
};

int kvt_disk_make(struct kvt_disk *d, const char *name, __u64 bytes);
void kvt_disk_remove(struct kvt_disk *d);
/* @at, @buf, @len are multiples of 4096. */
int kvt_disk_io(const struct kvt_disk *d, __u64 at, void *buf, size_t len, bool write);
int kvt_disk_copy(const struct kvt_disk *to, const struct kvt_disk *from);
__u64 kvt_disk_sum(const struct kvt_disk *d);
/* A bit of the page at @at changes. */
int kvt_disk_damage(const struct kvt_disk *d, __u64 at);
/* Change a superblock and make its checksum right again. */
int kvt_disk_super(const struct kvt_disk *d, int slot, int at, const void *value, size_t len);

/* --- kvt_dm.c: block devices that fail when told to ----------------------------- */

enum kvt_dm_mode {
	KVT_DM_GOOD,
	KVT_DM_ERROR,		/* everything fails, flushes too */
	KVT_DM_ERROR_READS,
	KVT_DM_ERROR_WRITES,
	KVT_DM_DROP_WRITES,	/* they end well, and are forgotten */
	KVT_DM_SLOW,		/* a read takes 240 ms longer */
	KVT_DM_VERY_SLOW,	/* and here two seconds */
	KVT_DM_SLOW_WRITES,	/* each takes 2.5 s longer */
};

/**
 * struct kvt_dm - a device-mapper device over a loop device
 * @under: that; what is on it can be changed behind the other's back
 * @disk:  its node and length, for functions that take a disk
 */
struct kvt_dm {
	char name[64];
	struct kvt_disk under;
	struct kvt_disk disk;
	bool made;
};

int kvt_dm_make(struct kvt_dm *d, const char *name, __u64 bytes);
int kvt_dm_set(const struct kvt_dm *d, enum kvt_dm_mode mode);
/* As a member; waits for whoever still has it open for a moment. A tier's number, or -errno. */
int kvt_tier_dm(const struct kvt_pool *p, __u32 rank, const struct kvt_dm *d, __u64 segment_bytes);
/* That part cannot be written or read from now on, all else is as with KVT_DM_GOOD. */
int kvt_dm_bad_extent(const struct kvt_dm *d, __u64 at, __u64 bytes);
/* Requests wait, after those under way, until it goes on. */
int kvt_dm_stop(const struct kvt_dm *d, bool stop);
void kvt_dm_remove(struct kvt_dm *d);

/* --- kvt_block.c: keys, contents, whole operations --------------------------- */

/* Key @i of the set @set; never all zero. */
struct kvt_key kvt_key(__u32 set, __u64 i);
void kvt_keys(struct kvt_key *keys, __u32 set, __u64 first, __u32 nr);
void kvt_fill(void *dst, const struct kvt_key *key, size_t bytes);
/* Are these the bytes of that key? */
bool kvt_bytes_ok(const void *src, const struct kvt_key *key, size_t bytes);

void *kvt_rd(const struct kvt_client *c, __u64 offset);
void *kvt_wr(const struct kvt_client *c, __u64 offset);

/*
 * Store a chain: reserve, fill what is ours, commit. Blocks that are there count.
 * @parent: of the first key, NULL: a root. @flags: KVTIER_RESERVE_WAIT or 0.
 * How many of @nr are there now, or -errno. Stops at the first that is not.
 */
int kvt_put(const struct kvt_client *c, __u32 flags, __u32 group, const struct kvt_key *keys,
	    const struct kvt_key *parent, __u32 nr);
/*
 * Lease a prefix, compare every byte through the read view, release. Length of the
 * prefix, -EBADMSG if any byte is wrong, or -errno.
 */
int kvt_check(const struct kvt_client *c, __u32 group, const struct kvt_key *keys, __u32 nr,
	      __u64 timeout_ns);

/* --- kvt_view.c: mappings and what happens when they are touched -------------- */

int kvt_map(int fd, int prot, __u64 offset, __u64 bytes, struct kvt_view *v);
void kvt_unmap(struct kvt_view *v);
/* 0, or the signal that touching it raised. */
int kvt_touch_read(const void *p);
/* That page, in a mapping that a socket has; munmap() it. NULL: it cannot be had. */
const char *kvt_socket_view(const void *page);
int kvt_touch_write(void *p, char value);
/* As memcpy(): 0, or the signal that it raised. */
int kvt_copy_probe(void *dst, const void *src, size_t bytes);
/* As kvt_bytes_ok(), stopping short at a signal: 1 right, 0 wrong, -signal. */
int kvt_bytes_probe(const void *src, const struct kvt_key *key, size_t bytes);
/* Bytes of [p, p + bytes) mapped by 2 MiB entries, or -errno. */
long long kvt_huge_bytes(const void *p, size_t bytes);

/* --- kvt_proc.c: other processes ---------------------------------------------- */

/* A child and a line to it. In the child itself, pid is 0. */
struct kvt_child {
	pid_t pid;
	int line;
};
typedef int (*kvt_child_fn)(struct kvt_child *me, void *arg);

int kvt_spawn(struct kvt_child *c, kvt_child_fn fn, void *arg);
/* One number over the line. kvt_hear(): -ETIMEDOUT, -EPIPE when the other is gone. */
int kvt_say(const struct kvt_child *c, int word);
int kvt_hear(const struct kvt_child *c, int timeout_ms);
/* Exit status (>= 0), minus the signal that ended it, or -ETIMEDOUT. */
int kvt_join(struct kvt_child *c, int timeout_ms);
void kvt_kill(struct kvt_child *c, int sig);
void kvt_kill_all(void);
/* 'R', 'S', 'T' ... as /proc shows it; 0: gone */
char kvt_proc_state(pid_t pid);
/* Wait until it sleeps in an ioctl, and has done so for some looks; false: it does not. */
bool kvt_in_ioctl(pid_t pid);

/* Have groups below the top of the cgroup v2 hierarchy a controller; false: there is none. */
bool kvt_cgroups_have(const char *controller);

__u64 kvt_now_ns(void);
void kvt_sleep_ms(unsigned int ms);
/* Run a shell command; its exit status. */
int kvt_sh(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Exit status, and the first line of its output. */
int kvt_sh_line(char *line, size_t len, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Bounds are for this machine when it is idle: no test fails because another one is
 * slower. Those below a second are for what is not to happen (but in sweep.c), and stay what
 * they are.
 */
#define KVT_PATIENCE(time, second)						\
	((time) < (second) || (time) > 1000 * (second) ? (time) : 5 * (time))
#define KVT_PATIENCE_MS(ms)	KVT_PATIENCE(ms, 1000)
#define KVT_PATIENCE_NS(ns)	KVT_PATIENCE(ns, KVT_SEC)

/*
 * Evaluate @cond every few milliseconds until it holds or time is up, and some times at
 * least: a machine that stood still has not had that time.
 */
#define KVT_UNTIL(timeout_ms, cond)						\
	({									\
		__u64 __end = kvt_now_ns() + KVT_PATIENCE_MS(timeout_ms) * KVT_MSEC; \
		int __tries = 0;						\
		bool __held;							\
										\
		while (!(__held = (cond)) && (__tries++ < 10 || kvt_now_ns() < __end)) \
			kvt_sleep_ms(5);					\
		__held;								\
	})

/* In a child: report and give up. */
#define KVT_CHILD_CHECK(cond)							\
	do {									\
		if (!(cond)) {							\
			fprintf(stderr, "# %s:%d: in a child: %s\n", __FILE__,	\
				__LINE__, #cond);				\
			return 1;						\
		}								\
	} while (0)

/* --- kvt_settle.c: waiting until nothing moves ---------------------------------- */

/*
 * Statistics of the pool once they stay what they are for longer than its worker
 * sleeps: to be compared with others, or with what ITERATE says. @tiers: room for
 * KVTIER_TIERS_MAX, or NULL. Number of tiers, or -errno; -ETIMEDOUT: it goes on and on.
 */
int kvt_settled(const struct kvt_pool *p, struct kvtier_stat *st,
		struct kvtier_tier_stat *tiers);

/* Wait until there is as much room in each tier as the worker makes. 0 or -errno. */
int kvt_kept_up(const struct kvt_pool *p);

/* --- kvt_bad.c: pages that are made bad ----------------------------------------- */

/* Can the kernel be told. */
bool kvt_bad_can(void);
/* Physical address of a mapped page, or 0. */
__u64 kvt_bad_address(const void *p);
/* -EBUSY: the kernel could do nothing about it, but knows. */
int kvt_bad_make(__u64 address);
/* Of the pages of KVT_DAX none is bad any more. No tier has it. */
int kvt_bad_forget(void);
/* So many copies out of memory that come next go wrong; -1: this build cannot do that. */
int kvt_bad_copies(int copies);
/* How many of them have not come. */
int kvt_bad_copies_left(void);
/* Of a tier's memory, because of such pages; or -errno. */
long long kvt_retired(const struct kvt_pool *p, const char *tier);
/* Blocks of the pool, and entries of dead ones that are still there. ~0: no answer. */
__u64 kvt_pool_entries(const struct kvt_client *c);
/* Store a root and lease it, mapped. Its physical address in memory, or 0. */
__u64 kvt_put_leased(const struct kvt_client *c, const struct kvt_key *key,
		     struct kvtier_block_result *res);

/* --- kvt_klog.c: the kernel's log --------------------------------------------- */

void kvt_klog_start(void);
/* Number of complaints since then, printed. */
int kvt_klog_complaints(void);

/*
 * The harness, made to fit a slow emulated machine. Its headers come from the kernel's
 * source, so they are treated as system headers.
 */
#ifdef KVT_HARNESS
#include <kselftest_harness.h>
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 300
#include "kvt_left_out.h"
#endif

#endif /* KVT_TEST_H */
