/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libkvtier: client library of the kvtier block store.
 *
 * Model
 * -----
 * Four kinds of opaque handle:
 *
 *   kvtier_ctl         /dev/kvtier: makes pools and attaches tiers (needs
 *                      CAP_SYS_ADMIN for all but the queries)
 *   kvtier_pool        /dev/kvtierN, not bound to a namespace: what the pool is
 *                      and how it fares
 *   kvtier_ns          /dev/kvtierN, bound to one namespace: all data commands.
 *                      It is one open file of its own; leases, reservations and
 *                      arenas belong to it and go with it
 *   kvtier_arena_view  an arena of a kvtier_ns; lives exactly as long as that
 *
 * A block is named by (namespace, group, key). GET and RESERVE answer with
 * struct kvtier_slot, which carries a pointer: the library maps the read view
 * (PROT_READ) and the fill view (PROT_READ|PROT_WRITE) of the file as needed, in
 * large pieces, and keeps them until the handle goes.
 *
 * Errors: functions that return int give 0 or a count >= 0 on success and a
 * negative errno on failure; errno itself is not set. The errno contract of
 * <linux/kvtier.h> holds; what the library adds is said at each function. In a
 * batch, the return value speaks of the call, the status of each entry of the
 * entry (KVTIER_ST_*).
 *
 * Ownership: every *_open() gives a handle with one reference, for the caller to
 * drop with *_unref(). Arrays and strings passed in are used during the call
 * only. Output pointers are untouched on failure unless said otherwise.
 *
 * Threads: references may be taken and dropped, and all other calls made, from
 * several threads at once on one handle, except *_set_log() and
 * kvtier_pool_set_map_chunk(), which must come before the handle is shared. The
 * last unref must not race with other calls.
 *
 * Fork: a child shares the open file and thus its leases with the parent. It may
 * exec (descriptors are close-on-exec) or use the handle as another thread
 * would; what it releases is released for both. The second only if no other
 * thread of the parent was in a call on the handle just then: such a thread may
 * hold the lock of its mappings, which in the child nobody gives back. A process
 * with threads opens handles of its own after the fork.
 * Mappings of children count, too: very many forks (four times KVTIER_MAPS_MAX
 * mappings) get their parent killed.
 *
 * Units: sizes in bytes, times in nanoseconds unless a name says otherwise.
 */
#ifndef KVTIER_LIBKVTIER_H
#define KVTIER_LIBKVTIER_H

#include <stddef.h>
#include <stdint.h>
#include <linux/kvtier.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kvtier_ctl;
struct kvtier_pool;
struct kvtier_ns;
struct kvtier_arena_view;

/* A block's name within its group. All zero names no block. */
struct kvtier_key {
	uint8_t b[KVTIER_KEY_BYTES];
};

#define KVTIER_NO_TIMEOUT	(~(uint64_t)0)	/* wait for ever */

/* --- Logging ------------------------------------------------------------- */

enum kvtier_log_level {
	KVTIER_LOG_ERROR = 3,
	KVTIER_LOG_INFO = 6,
	KVTIER_LOG_DEBUG = 7,
};

/**
 * kvtier_log_fn - receives what the library has to tell; it never prints itself
 * @data:  as given at *_set_log()
 * @level: enum kvtier_log_level
 * @text:  one line without newline, valid during the call
 *
 * Called from the thread that made the library call, with no lock held that a
 * library call would need: it may make some, on the same handle, too. Several
 * threads may be in it at once.
 */
typedef void (*kvtier_log_fn)(void *data, int level, const char *text);

/* --- About the library --------------------------------------------------- */

/* Version of the library, "MAJOR.MINOR.PATCH"; static storage. */
const char *kvtier_version(void);

/* Lower-case names ("hit", "no-space"; "dax"; "online"); static storage, never
 * NULL: "unknown" for values this library does not know.
 */
const char *kvtier_status_name(int status);
const char *kvtier_tier_type_name(uint32_t type);
const char *kvtier_tier_state_name(uint32_t state);

/* --- Control device ------------------------------------------------------ */

/**
 * kvtier_ctl_open - open /dev/kvtier
 *
 * Errors: ENOENT: module not loaded; EACCES: no permission; ENOMEM.
 */
int kvtier_ctl_open(struct kvtier_ctl **out);
struct kvtier_ctl *kvtier_ctl_ref(struct kvtier_ctl *ctl);
/* NULL is allowed and ignored, here and in the other *_unref(). */
void kvtier_ctl_unref(struct kvtier_ctl *ctl);
void kvtier_ctl_set_log(struct kvtier_ctl *ctl, kvtier_log_fn fn, void *data);

/**
 * kvtier_ctl_query - the kernel's ABI revision, features, ops and pools
 * @q: @size set by the caller, KVTIER_CTL_QUERY_INIT does it; @pools and
 *     @nr_pools as in <linux/kvtier.h>. With EMSGSIZE @nr_pools is valid
 * Returns 0. Errors: EINVAL (@size), EMSGSIZE (there are more pools).
 */
#define KVTIER_CTL_QUERY_INIT	{ .size = sizeof(struct kvtier_ctl_query) }
int kvtier_ctl_query(struct kvtier_ctl *ctl, struct kvtier_ctl_query *q);

/**
 * kvtier_ctl_pools - ids of all pools
 * @ids:  out: array to be given to free(3); NULL if there are none
 * Returns their number. Errors: ENOMEM.
 */
int kvtier_ctl_pools(struct kvtier_ctl *ctl, uint32_t **ids);

/**
 * kvtier_ctl_pool_create - make an empty pool
 * @pool_id: in: wanted id or KVTIER_POOL_ANY_ID, out: the id
 *
 * Errors: EPERM, EEXIST, EINVAL (id out of range), ENOSPC.
 */
int kvtier_ctl_pool_create(struct kvtier_ctl *ctl, uint32_t *pool_id);

/* Errors: EPERM, ENOENT, EBUSY while files of the pool are open. */
int kvtier_ctl_pool_destroy(struct kvtier_ctl *ctl, uint32_t pool_id);

/**
 * kvtier_ctl_pool_assemble - bring a pool up from its block devices
 * @a: in and out: start from KVTIER_POOL_ASSEMBLE_INIT and set @devices, an array of
 *     @nr_devices with their paths, and @pool_id and @flags if needed. See
 *     <linux/kvtier.h> for what comes back, also after an error
 *
 * Reads all that is on the devices, which takes a while; a fatal signal ends it.
 *
 * Errors: EPERM, EINVAL, EEXIST (id taken, or the pool is up already), EBUSY (a
 * device has another user), EMEDIUMTYPE, EUCLEAN, EPROTONOSUPPORT, ERANGE, EROFS,
 * EXDEV, ENOTUNIQ, ESTALE (what is the matter with a device), ENOMEDIUM (members
 * missing), EIO, ENOSPC, ENOMEM, EINTR.
 */
#define KVTIER_POOL_ASSEMBLE_INIT \
	{ .size = sizeof(struct kvtier_pool_assemble), \
	  .pool_id = KVTIER_POOL_ANY_ID }
int kvtier_ctl_pool_assemble(struct kvtier_ctl *ctl,
			     struct kvtier_pool_assemble *a);

/**
 * kvtier_ctl_pool_scrub - have what block tiers hold verified, in the background
 * @flags:      0, or KVTIER_SCRUB_STOP: end it; returns when it has ended
 * @rate_bytes: most bytes to read in a second, 0: no limit; with STOP 0
 *
 * How far it is, and what it has found, is in sysfs: scrub_* of the pool.
 *
 * Errors: EPERM, ENOENT, EBUSY (it is being scrubbed), EINVAL, EINTR.
 */
int kvtier_ctl_pool_scrub(struct kvtier_ctl *ctl, uint32_t pool_id,
			  uint32_t flags, uint64_t rate_bytes);

/**
 * kvtier_ctl_ns_claim - say whose an unclaimed namespace of an assembled pool is
 *
 * Errors: EPERM, ENOENT, EALREADY (it is not unclaimed), EEXIST (the user has a
 * namespace of that identity), EINVAL.
 */
int kvtier_ctl_ns_claim(struct kvtier_ctl *ctl, uint32_t pool_id,
			uint64_t ns_id, uint32_t uid, uint32_t gid);

/**
 * struct kvtier_tier_params - what to attach
 * @size:  sizeof(struct kvtier_tier_params), set by KVTIER_TIER_PARAMS_INIT
 * @type:  enum kvtier_tier_type
 * @rank:  0..255, lower is faster
 * @node:  NODE: NUMA node, else -1
 * @flags: KVTIER_ATTACH_*: FORCE: BDEV, PMEM: what is on the device may be lost; CHARGE: DRAM,
 *         NODE: memory comes as namespaces need it, from their cgroups
 * @name:  unique in the pool, [a-z0-9_-]+, shorter than KVTIER_NAME_MAX
 * @path:  DAX, PMEM: device name (dax0.0); BDEV: path; else NULL
 * @capacity_bytes: DRAM, NODE: wanted; DAX, PMEM, BDEV: 0 for all
 * @segment_bytes: BDEV, PMEM: log segment, 0 to have it chosen
 * @bad: DAX: physical memory that is known to be bad, and is not to be used
 * @nr_bad: ranges in @bad, at most KVTIER_BAD_MAX
 */
struct kvtier_tier_params {
	size_t size;
	uint32_t type;
	uint32_t rank;
	int32_t node;
	uint32_t flags;
	const char *name;
	const char *path;
	uint64_t capacity_bytes;
	uint64_t segment_bytes;
	const struct kvtier_range *bad;
	uint32_t nr_bad;
};

#define KVTIER_TIER_PARAMS_INIT \
	{ .size = sizeof(struct kvtier_tier_params), .node = -1 }

/**
 * kvtier_ctl_tier_attach - add a tier to a pool
 * @tier_id: out: its number in the pool; may be NULL
 *
 * Errors: EPERM; ENOENT: no such pool or block device; ENODEV: no such dax device is
 * bound to the driver, or no memory is on that node; EEXIST: rank, name or device taken
 * (BDEV, PMEM: see KVTIER_ATTACH_FORCE); EINVAL; EROFS, EIO: the device cannot be written;
 * EOPNOTSUPP: its zones do not do; ENOSPC: tier limit; EBUSY: device in use; ENAMETOOLONG
 * (library): name or path too long; ENOMEM; EINTR; what opening a block device says.
 */
int kvtier_ctl_tier_attach(struct kvtier_ctl *ctl, uint32_t pool_id,
			   const struct kvtier_tier_params *params,
			   uint32_t *tier_id);

/**
 * kvtier_ctl_tier_detach - empty a tier and give its device back
 * @flags:      KVTIER_DETACH_*
 * @timeout_ns: longest wait for the drain
 *
 * Errors: EPERM; ENOENT; EBUSY: something keeps blocks there; EINTR: a fatal signal.
 * After the last two the tier is in the state that it was in before.
 */
int kvtier_ctl_tier_detach(struct kvtier_ctl *ctl, uint32_t pool_id,
			   uint32_t tier_id, uint32_t flags,
			   uint64_t timeout_ns);

/* As detach, but the tier stays, draining, and takes nothing new. */
int kvtier_ctl_tier_drain(struct kvtier_ctl *ctl, uint32_t pool_id,
			  uint32_t tier_id, uint64_t timeout_ns);

/* --- Pool ---------------------------------------------------------------- */

/**
 * kvtier_pool_open - open the data device of a pool, unbound
 *
 * kvtier_pool_open_path() is for device nodes that lie elsewhere, as in a
 * container; a namespace's handle opens the node once more, that of a relative
 * path where it was at first. Errors: ENOENT: no such pool; EACCES: not in group kvtier; ENXIO:
 * pool is going; ENOMEM.
 */
int kvtier_pool_open(uint32_t pool_id, struct kvtier_pool **out);
int kvtier_pool_open_path(const char *path, struct kvtier_pool **out);
struct kvtier_pool *kvtier_pool_ref(struct kvtier_pool *pool);
void kvtier_pool_unref(struct kvtier_pool *pool);

/* Namespaces opened afterwards through @pool inherit it. */
void kvtier_pool_set_log(struct kvtier_pool *pool, kvtier_log_fn fn,
			 void *data);

/**
 * kvtier_pool_set_map_chunk - how much is mapped at a time
 * @bytes: multiple of 2 MiB, at least 2 MiB; default 16 GiB. For processes with
 *         a limited address space; namespaces opened afterwards inherit it.
 *         A namespace has KVTIER_MAPS_MAX (8192) mappings, of all processes of
 *         its owner together: small chunks of much memory may use them up,
 *         and then views cannot be mapped (ENOMEM)
 *
 * Errors: EINVAL.
 */
int kvtier_pool_set_map_chunk(struct kvtier_pool *pool, uint64_t bytes);

/**
 * kvtier_pool_query - limits, features and tiers
 * @q: @size set by the caller, KVTIER_QUERY_INIT does it; @tiers and @nr_tiers as
 *     in <linux/kvtier.h>. With EMSGSIZE @nr_tiers is valid
 * Returns 0. Errors: EINVAL (@size), EMSGSIZE (there are more tiers).
 */
#define KVTIER_QUERY_INIT	{ .size = sizeof(struct kvtier_query) }
int kvtier_pool_query(struct kvtier_pool *pool, struct kvtier_query *q);

/**
 * kvtier_pool_tiers - all tiers of the pool
 * @tiers: room for KVTIER_TIERS_MAX
 * Returns their number.
 */
int kvtier_pool_tiers(struct kvtier_pool *pool, struct kvtier_tier_info *tiers);

/**
 * kvtier_pool_stat - counters of the pool and its tiers
 * @st:    @size set by the caller, KVTIER_STAT_INIT does it; @flags, @tiers and
 *         @nr_tiers are the library's
 * @tiers: room for KVTIER_TIERS_MAX, or NULL
 * Returns the number of entries in @tiers. Errors: EPERM without CAP_SYS_ADMIN.
 */
#define KVTIER_STAT_INIT	{ .size = sizeof(struct kvtier_stat) }
int kvtier_pool_stat(struct kvtier_pool *pool, struct kvtier_stat *st,
		     struct kvtier_tier_stat *tiers);

/* --- Namespace ----------------------------------------------------------- */

/**
 * struct kvtier_ns_params - which namespace, and how to create it
 * @size:         sizeof(struct kvtier_ns_params), by KVTIER_NS_PARAMS_INIT
 * @flags:        KVTIER_NS_*
 * @nr_groups:    entries in @block_bytes; 0 without CREATE: take what is there
 * @identity:     blob of @identity_len bytes, 1..KVTIER_IDENTITY_MAX
 * @secret:       KVTIER_SECRET_BYTES, or NULL
 * @block_bytes:  exact payload size of each group
 * @mode:         create: permission bits; the initialiser says 0600
 * @owner_uid:    KVTIER_NS_OWNER: whose it is; else 0
 * @quota_bytes, @min_bytes: create: see <linux/kvtier.h>; 0: none
 */
struct kvtier_ns_params {
	size_t size;
	uint32_t flags;
	uint32_t nr_groups;
	const void *identity;
	size_t identity_len;
	const void *secret;
	const uint64_t *block_bytes;
	uint32_t mode;
	uint32_t owner_uid;
	uint64_t quota_bytes;
	uint64_t min_bytes;
};

#define KVTIER_NS_PARAMS_INIT \
	{ .size = sizeof(struct kvtier_ns_params), .mode = 0600 }

/**
 * kvtier_ns_open - open or create a namespace of a pool
 *
 * Opens the pool's device anew, so each handle has leases of its own. @pool may
 * be dropped afterwards. Errors: ENOENT (not there and no CREATE, or another user's who
 * does not allow it), EEXIST, EACCES, EINVAL (groups differ), ENOSPC (guarantee cannot be
 * given, or too many namespaces), ENXIO, ENOMEM, EINTR.
 */
int kvtier_ns_open(struct kvtier_pool *pool,
		   const struct kvtier_ns_params *params,
		   struct kvtier_ns **out);
struct kvtier_ns *kvtier_ns_ref(struct kvtier_ns *ns);

/* The last one gives back all leases and reservations and unmaps both views:
 * every pointer this handle gave is invalid then, arenas' included.
 */
void kvtier_ns_unref(struct kvtier_ns *ns);

/* Id the kernel issued; names the namespace in sysfs. */
uint64_t kvtier_ns_id(const struct kvtier_ns *ns);

/* The open file, for poll(2): readable when a completion is there. Stays the
 * library's.
 */
int kvtier_ns_fd(const struct kvtier_ns *ns);

/**
 * struct kvtier_opts - options of a data command; NULL means the initialiser
 * @size:       sizeof(struct kvtier_opts), by KVTIER_OPTS_INIT
 * @flags:      the command's (KVTIER_GET_*, KVTIER_RESERVE_*, ...)
 * @group:      index in the namespace's groups
 * @eventfd:    signalled with the completion, or -1
 * @request:    id of the engine's request, 0: the kernel infers it
 * @timeout_ns: longest wait; KVTIER_NO_TIMEOUT
 * @user_data:  comes back in the completion
 */
struct kvtier_opts {
	size_t size;
	uint32_t flags;
	uint32_t group;
	int32_t eventfd;
	uint32_t reserved;		/* 0 */
	uint64_t request;
	uint64_t timeout_ns;
	uint64_t user_data;
};

#define KVTIER_OPTS_INIT { .size = sizeof(struct kvtier_opts), .eventfd = -1 }

/**
 * struct kvtier_slot - one entry of GET, RESERVE or COMMIT
 * @status: KVTIER_ST_*
 * @tier:   tier the slot is in
 * @handle: names the lease or reservation on this kvtier_ns; 0: none
 * @ptr:    the block's bytes, or NULL if @handle is 0. GET, COMMIT and EXISTS:
 *          read-only; RESERVED: to be filled. As long as @handle is held and not
 *          committed; a block is as long as its group says
 *
 * After COMMIT, RELEASE or ABORT the pointer must not be used any more: the
 * memory may hold another block of the namespace, or fault.
 *
 * Equal in layout to struct kvtier_block_result.
 */
struct kvtier_slot {
	int32_t status;
	uint32_t tier;
	uint64_t handle;
	union {
		void *ptr;
		uint64_t reserved;
	};
};

/* In all of these @nr is 1..KVTIER_BATCH_MAX (EINVAL) and entry i of an output
 * array belongs to key i. Of @opts, EINVAL: @size too small; E2BIG: larger than this
 * library's, with something set in what it does not know; EOPNOTSUPP: an unknown
 * flag. ENOENT: the namespace has no such group. ENOMEM: the kernel is out of memory.
 * EINTR: a fatal signal came. Beyond these:
 */

/**
 * kvtier_lookup - what is there, without leasing it
 * @results: @nr entries, or NULL
 * @cost_ns: out: estimated cost of making the prefix readable; may be NULL
 * Returns the length of the contiguous prefix of hits. No errors of its own.
 */
int kvtier_lookup(struct kvtier_ns *ns, const struct kvtier_opts *opts,
		  const struct kvtier_key *keys, uint32_t nr,
		  struct kvtier_lookup_result *results, uint64_t *cost_ns);

/**
 * struct kvtier_prefill - what computing blocks costs an engine, as it measured it
 * @start_ns: once, if anything is computed at all. 0 if something always is, such as
 *            the part of a prompt that fills no block
 * @block_ns: each block: the part that is the same for all of them
 * @grow_ns:  each block, for each block before it in the chain, for its tokens attend
 *            to theirs: linear in the position, so a chain's cost is quadratic
 * @load_ns:  each block that is fetched: from the pool's memory to where it is needed
 * @position: blocks of the chain before the first key, which the engine has
 *
 * Has no size in it: it stays as it is, and so does struct kvtier_plan. What is to be
 * known besides would come with another function.
 */
struct kvtier_prefill {
	uint64_t start_ns;
	uint64_t block_ns;
	uint64_t grow_ns;
	uint64_t load_ns;
	uint64_t position;
};

/**
 * struct kvtier_plan - what to do with a chain
 * @nr_fetch:   so many blocks from its head are to be fetched, the others computed
 * @fetch_ns:   what the ones cost
 * @compute_ns: what the others cost
 *
 * Stays as it is, too. @reserved is 0.
 */
struct kvtier_plan {
	uint32_t nr_fetch;
	uint32_t reserved;
	uint64_t fetch_ns;
	uint64_t compute_ns;
};

/**
 * kvtier_plan - fetch or recompute
 * @prefill: what computing costs
 * @results: of kvtier_lookup()
 * @nr:      how many, and how many blocks there are to be in the end; at least 1
 * @plan:    out
 *
 * Computing a block needs all blocks before it, and a fetched block is of use only with
 * all blocks before it. So the model is one split: the first @nr_fetch blocks, HIT all
 * of them, are fetched, for cost_ns and @load_ns each; then the others are computed,
 * none of it at the same time. Of all splits this is the cheapest; of two that cost the
 * same, the one that fetches more, as that leaves the engine to others. A block behind
 * one that is computed is computed, too, even if it is there: to fetch it would save
 * its own cost only where the engine can fill a gap, which this does not assume.
 *
 * A pure function: no call to the kernel, any thread. Takes time in proportion to @nr.
 * Errors: EINVAL: NULL, or @nr 0; EOVERFLOW: the chain's cost, fetched or computed, does
 * not fit 64 bits.
 * Returns 0.
 */
int kvtier_plan(const struct kvtier_prefill *prefill,
		const struct kvtier_lookup_result *results, uint32_t nr,
		struct kvtier_plan *plan);

/**
 * kvtier_get - lease the longest contiguous prefix
 * @opts:  flags KVTIER_GET_*
 * @slots: @nr entries. The first ones, as many as are returned, are HIT and
 *         leased; the rest hold nothing
 * Returns the length of that prefix. When a view cannot be mapped (ENOMEM and
 * what mmap(2) says), all leases taken are given back. Errors, with nothing leased:
 * EINVAL (flags that exclude each other); ASYNC: EAGAIN (64 calls are outstanding or
 * unread), EBADF (@eventfd).
 */
int kvtier_get(struct kvtier_ns *ns, const struct kvtier_opts *opts,
	       const struct kvtier_key *keys, uint32_t nr,
	       struct kvtier_slot *slots);

/**
 * kvtier_reserve - claim keys for filling
 * @opts:    flags KVTIER_RESERVE_*
 * @keys:    without PARENTS a chain: each key's parent is the one before it
 * @parents: parent of the first key, NULL for a root; with PARENTS one for each
 *           key, all zero for a root
 * @slots:   @nr entries: RESERVED ones are to be filled and given to commit or
 *           abort; EXISTS ones carry a lease only with KVTIER_RESERVE_LEASE
 * Returns the number of RESERVED. Mapping failures as for kvtier_get():
 * everything reserved is aborted, everything leased released. Errors, with nothing
 * reserved: EACCES (this handle never writes), EINVAL (an all-zero key; flags), ENOENT
 * (ARENA: there is none), ENOSPC (too many handles); ASYNC: as for kvtier_get().
 */
int kvtier_reserve(struct kvtier_ns *ns, const struct kvtier_opts *opts,
		   const struct kvtier_key *keys,
		   const struct kvtier_key *parents, uint32_t nr,
		   struct kvtier_slot *slots);

/**
 * kvtier_commit - publish filled blocks
 * @flags:   KVTIER_COMMIT_*
 * @handles: from RESERVED slots
 * @results: @nr entries: DONE; HIT with KVTIER_COMMIT_LEASE, with a pointer to
 *           read from (DONE if it could not be mapped: published, not leased);
 *           NOPARENT, PINNED: still reserved; STALE: was taken back, or its
 *           memory is lost
 * Returns the number committed. Errors: EACCES (this handle never writes): nothing was
 * done; EINTR: what was committed stands.
 */
int kvtier_commit(struct kvtier_ns *ns, uint32_t flags,
		  const uint64_t *handles, uint32_t nr,
		  struct kvtier_slot *results);

/**
 * kvtier_abort, kvtier_release - give reservations, leases back
 * @results: @nr entries DONE or STALE, or NULL
 * Return the number given back. Errors: EINTR, of abort: the rest ends with the handle.
 */
int kvtier_abort(struct kvtier_ns *ns, const uint64_t *handles, uint32_t nr,
		 int32_t *results);
int kvtier_release(struct kvtier_ns *ns, const uint64_t *handles, uint32_t nr,
		   int32_t *results);

/**
 * kvtier_commit_slots - commit all entries of @slots that are RESERVED
 *
 * Others are left alone. Entries are updated in place as kvtier_commit() says; one
 * that is published without a lease, or STALE, has handle 0 and ptr NULL; one that
 * still stands (NOPARENT, PINNED) keeps both and can be tried again with
 * kvtier_commit() or given back with kvtier_abort_slots(). @nr is not limited.
 * Returns the number committed; on an error, entries before the failing batch are
 * done and updated.
 */
int kvtier_commit_slots(struct kvtier_ns *ns, uint32_t flags,
			struct kvtier_slot *slots, uint32_t nr);

/**
 * kvtier_abort_slots - give back every reservation in @slots
 *
 * These are the entries with a handle that are RESERVED, NOPARENT or PINNED.
 * kvtier_release_slots does the same to leases: HIT and EXISTS. Both clear handle
 * and ptr of what they gave back and leave other entries alone. @nr is not
 * limited. Return the number given back.
 */
int kvtier_abort_slots(struct kvtier_ns *ns, struct kvtier_slot *slots,
		       uint32_t nr);
int kvtier_release_slots(struct kvtier_ns *ns, struct kvtier_slot *slots,
			 uint32_t nr);

/**
 * kvtier_read - copy blocks out, for callers that cannot map
 * @bufs:    one buffer for each key, at least a block long
 * @results: @nr entries: HIT, MISS, ...
 * Returns the length of the prefix read. Errors: EINVAL (a buffer is too small).
 */
int kvtier_read(struct kvtier_ns *ns, const struct kvtier_opts *opts,
		const struct kvtier_key *keys, uint32_t nr,
		const struct kvtier_buf *bufs, int32_t *results);

/**
 * kvtier_write - copy blocks in and commit them
 * @parent:  parent of the first key, NULL for a root; each further key extends
 *           the one before it
 * @bufs:    exactly a block long each
 * @results: @nr entries: DONE, EXISTS, ...
 * Returns the number of blocks written. Errors: EACCES (this handle never writes),
 * EINVAL (a buffer is not a block long; an all-zero key); EINTR: what was written
 * stands.
 */
int kvtier_write(struct kvtier_ns *ns, const struct kvtier_opts *opts,
		 const struct kvtier_key *keys, const struct kvtier_key *parent,
		 uint32_t nr, const struct kvtier_buf *bufs, int32_t *results);

/**
 * kvtier_prefetch - bring a chain up ahead of need
 * @opts: flags KVTIER_PREFETCH_*
 * Returns the number of blocks now on their way. Errors, with NOTIFY: EAGAIN (64 calls
 * are outstanding or unread), EBADF (@eventfd).
 */
int kvtier_prefetch(struct kvtier_ns *ns, const struct kvtier_opts *opts,
		    const struct kvtier_key *keys, uint32_t nr);

/**
 * kvtier_advise - tell how blocks will be used
 * @advice:  enum kvtier_advice
 * @value:   TTL: nanoseconds; else 0
 * @results: @nr entries, or NULL
 * Returns the number advised. Errors: EACCES (this handle never writes), EINVAL
 * (unknown advice; @value without TTL).
 */
int kvtier_advise(struct kvtier_ns *ns, const struct kvtier_opts *opts,
		  uint32_t advice, uint64_t value,
		  const struct kvtier_key *keys, uint32_t nr,
		  int32_t *results);

/**
 * kvtier_session - say what an engine's request or conversation does
 * @session:  caller's number of it, not 0; means nothing on another handle
 * @state:    enum kvtier_session_state
 * @tip:      last block of its chain; NULL: as it is known
 * @reuse_ns: IDLE, DONE: expected time to the chain's next use, 0: not known
 * Returns 0. Errors: ENOENT (no such block, or none committed; DECODING: or one
 * of the chain is on its way out of the pool), ENOSPC (the namespace may pin no
 * more; too many sessions): nothing has changed.
 */
int kvtier_session(struct kvtier_ns *ns, const struct kvtier_opts *opts,
		   uint64_t session, uint32_t state,
		   const struct kvtier_key *tip, uint64_t reuse_ns);

/**
 * kvtier_drop - forget blocks, the last key first
 * @results: @nr entries, or NULL
 * Returns the number dropped. Leases on them stay good. When it returns that, no crash and
 * no restart brings back what had been stored under any of the keys.
 *
 * Errors, after which @results is not filled in and the blocks are gone all the same, but
 * may come back: EINTR: a signal came before that was durable, and a crash may bring them
 * back; drop them again. EIO: a block tier that takes no writes any more, or has left the
 * pool without being wiped, has some of the namespace, and nothing on another one says that
 * it is out of date: if it is assembled they may come back. Others: EACCES, EINVAL, ENOMEM:
 * nothing was dropped.
 */
int kvtier_drop(struct kvtier_ns *ns, const struct kvtier_opts *opts,
		const struct kvtier_key *keys, uint32_t nr, int32_t *results);

/**
 * kvtier_iterate - the namespace's blocks, page by page
 * @cursor:  in: 0 to start; out: 0 when there are no more
 * @entries: room for @nr (1..KVTIER_BATCH_MAX)
 * Returns the number of entries, which may be 0 before the end. Errors: EINVAL (@nr),
 * ENOMEM; @cursor is as it was.
 */
int kvtier_iterate(struct kvtier_ns *ns, uint64_t *cursor,
		   struct kvtier_entry *entries, uint32_t nr);

/* Counters of the namespace; @st as in kvtier_pool_stat(). Returns 0. */
int kvtier_ns_stat(struct kvtier_ns *ns, struct kvtier_stat *st);

/* As kvtier_pool_query(), on this file. */
int kvtier_ns_query(struct kvtier_ns *ns, struct kvtier_query *q);

/**
 * kvtier_completions - take completions of asynchronous calls
 * @out:        room for @nr
 * @timeout_ms: longest wait for the first; 0: do not wait, -1: for ever
 * Returns their number, 0 after the timeout. Errors: EINTR: a signal came.
 */
int kvtier_completions(struct kvtier_ns *ns, struct kvtier_completion *out,
		       uint32_t nr, int timeout_ms);

/* --- dma-buf ------------------------------------------------------------- */

/**
 * kvtier_export - leased blocks as a dma-buf, to be read by devices
 * @handles: @nr leases of this handle, 1..KVTIER_BATCH_MAX
 * @bytes:   out: length: the blocks' slots, one behind the other; or NULL
 *
 * The buffer keeps the blocks where they are until its last reference goes; the leases
 * may be released and @ns be closed before. It can be mapped, to read.
 * Returns a file descriptor that is the caller's to close. Errors: EINVAL (a handle
 * is no lease, or its block was dropped or lost), ENOSPC, EMFILE, EOPNOTSUPP.
 */
int kvtier_export(struct kvtier_ns *ns, const uint64_t *handles, uint32_t nr,
		  uint64_t *bytes);

/* --- Arena --------------------------------------------------------------- */

/**
 * kvtier_arena_open - claim memory of this handle that stays writable
 * @group:    group whose slots it holds; one arena per handle and group
 * @nr_slots: at least so many slots, 1..2^20
 * @out:      belongs to @ns and is valid as long as it; there is no unref
 *
 * The whole arena is mapped, at one address, so that it can be registered once
 * with a device (io_uring, GPU). Slots that kvtier_reserve() with
 * KVTIER_RESERVE_ARENA gives have their pointers inside it.
 * Errors: ENOSPC (past the namespace's min_bytes, or no run of memory is free), EBUSY,
 * EACCES (opened to read), ENOENT (no such group), EINVAL (@nr_slots), ENOMEM, EINTR. When
 * mapping fails the kernel's arena stays with the file: close the handle.
 */
int kvtier_arena_open(struct kvtier_ns *ns, uint32_t group, uint32_t nr_slots,
		      struct kvtier_arena_view **out);
void *kvtier_arena_base(const struct kvtier_arena_view *arena);
uint64_t kvtier_arena_bytes(const struct kvtier_arena_view *arena);
uint64_t kvtier_arena_slot_bytes(const struct kvtier_arena_view *arena);
uint32_t kvtier_arena_nr_slots(const struct kvtier_arena_view *arena);

#ifdef __cplusplus
}
#endif

#endif /* KVTIER_LIBKVTIER_H */
