/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * kvtier: tiered KV-cache block store, user space interface.
 *
 * Model
 * -----
 * /dev/kvtier is the control device (CAP_SYS_ADMIN): it creates pools and
 * attaches tiers to them. /dev/kvtierN is the data device of pool N. An open
 * file of it is bound to one *namespace* by NS_OPEN; all data commands act
 * within that namespace. A block is named by (namespace, group, key): 32 bytes
 * chosen by the caller. A group is a class of blocks of one exact size. A block
 * may have a *parent*, the block before it in its prefix; together they form
 * chains. A block is immutable once committed.
 *
 * Mappings
 * --------
 * The read view is [0, window_bytes) of the device, the same for every file; pages
 * of one's own namespace appear in it. The fill view begins at fill_offset and is
 * this file's alone; what it has reserved, and its arenas, are writable there.
 * mmap: EBADFD before NS_OPEN; EINVAL for private mappings and other offsets;
 * EACCES for a writable read view, for PROT_EXEC, and for the fill view of a file
 * that may not write; ENOMEM at KVTIER_MAPS_MAX mappings of the namespace, of its
 * owner or of all others, as what would split one. A fork that would make four times
 * as many kills its caller. What may not be accessed (any more) raises SIGBUS.
 *
 * Calls
 * -----
 * Every command is an ioctl whose argument starts with { __u32 size; __u32
 * flags; }. @size is sizeof() of the struct the caller was compiled with. A
 * caller with a shorter struct than the kernel's gets zeroes for the rest (as
 * long as the mandatory part is there); a longer one is accepted if its unknown
 * tail is zero. Data commands take arrays and give one result per entry; the
 * ioctl itself returns 0 when the batch was processed, whatever became of its
 * entries, and a negative errno when nothing at all was done.
 *
 * Errno contract, the same for every command
 *   ENOTTY      unknown command number
 *   EINVAL      size below the mandatory part, or a value out of its range
 *   E2BIG       an unknown, non-zero tail
 *   EOPNOTSUPP  an unknown flag, a non-zero reserved field, a command or
 *               feature this kernel does not have
 *   EFAULT      a pointer that cannot be read or written
 *   ENOENT      no such pool, tier, namespace, group, or tip of a session
 *   EPERM       CAP_SYS_ADMIN needed
 *   EACCES      the mode of one's own namespace, or the way the file was opened, does not
 *               allow it
 *   EBADFD      a data command before NS_OPEN
 *   EBUSY       in use: pool or tier with users, a device, file bound already
 *   EEXIST      KVTIER_NS_EXCL and it exists; rank or name of a tier is taken; the
 *               device is a member of a pool
 *   ENODEV      attach: no such NUMA node, or no such device bound to the driver
 *   EMSGSIZE    an output array is too small; the needed count is returned
 *   ENOSPC      a limit is reached (leases, namespaces, arena, exports, tiers, sessions,
 *               what a namespace may pin)
 *   ENXIO       open(2): the pool is going (ENOSPC: too many open files and buffers)
 *   ENOMEM      the kernel is out of memory; mmap: see "Mappings"
 *   EINTR       a fatal signal while waiting, or in the middle of a long call
 *   EAGAIN      too many asynchronous calls outstanding; read(2): no completion
 *   EBADF       the eventfd is none
 *   EMFILE      no file descriptor left
 *   EALREADY    claim: the namespace is not unclaimed
 *   EIO         a block device failed: attach, fsync(2), and what DROP promises of one
 *   EROFS       attach: the block device is read-only; assemble: it needs features
 *               to be written that this kernel does not have
 *   ENOTBLK     attach, assemble: it is no block device; what else opening one says is
 *               passed on, too
 *   EHWPOISON   importers of a buffer (EXPORT): one of its pages is bad
 *   ETIMEDOUT   result of a completion alone: it has taken too long
 * Assembling alone, for a device or for the whole:
 *   EMEDIUMTYPE nothing of kvtier is on the device
 *   EUCLEAN     it was a member, but no superblock verifies, or the first header of a
 *               segment is damaged, or it has higher numbers than it may have: fsck
 *   EPROTONOSUPPORT it needs features or a version that this kernel does not have
 *   ERANGE      its layout is impossible, or larger than the device
 *   EXDEV       it belongs to another pool than the first device
 *   ENOTUNIQ    another device given is the same member
 *   ESTALE      the pool has run without it since, or knows of a newer state of it
 *   ENOMEDIUM   members are missing, and KVTIER_ASSEMBLE_DEGRADED is not set
 *   EIO         what is on it cannot be read
 * Where EFAULT strikes while results are written, work already done stands and
 * is undone no later than at close. EXPORT then has made no buffer and no descriptor.
 *
 * Units: sizes and offsets in bytes, times in nanoseconds.
 */
#ifndef _UAPI_LINUX_KVTIER_H
#define _UAPI_LINUX_KVTIER_H

#include <linux/types.h>
#include <linux/ioctl.h>

#define KVTIER_ABI_REVISION	1

#define KVTIER_IOC_TYPE		0xEB

/* Limits that are part of the interface; others are reported by QUERY. */
#define KVTIER_KEY_BYTES	32
#define KVTIER_SECRET_BYTES	32
#define KVTIER_IDENTITY_MAX	256	/* bytes */
#define KVTIER_GROUPS_MAX	16	/* groups in a namespace */
#define KVTIER_BATCH_MAX	4096	/* entries in one data command */
#define KVTIER_MAPS_MAX		8192	/* mappings of a namespace, by its owner or by others */
#define KVTIER_TIERS_MAX	16	/* tiers in a pool */
#define KVTIER_NAME_MAX		32	/* tier name, with its NUL */
#define KVTIER_PATH_MAX		256	/* backing path, with its NUL */
#define KVTIER_SLOT_ALIGN	4096	/* slots are multiples of this */
#define KVTIER_BLOCK_BYTES_MAX	(256ULL << 20)

/*
 * Command numbers. Control and data commands share one number space so that a
 * number never means two things. EVENTS has its place;
 * kernels without them answer EOPNOTSUPP and do not set their bit
 * in kvtier_query.ops.
 */
enum {
	KVTIER_OP_QUERY = 0,
	KVTIER_OP_NS_OPEN = 1,
	KVTIER_OP_LOOKUP = 2,
	KVTIER_OP_GET = 3,
	KVTIER_OP_RESERVE = 4,
	KVTIER_OP_COMMIT = 5,
	KVTIER_OP_ABORT = 6,
	KVTIER_OP_RELEASE = 7,
	KVTIER_OP_READ = 8,
	KVTIER_OP_WRITE = 9,
	KVTIER_OP_PREFETCH = 10,
	KVTIER_OP_ADVISE = 11,
	KVTIER_OP_DROP = 12,
	KVTIER_OP_ITERATE = 13,
	KVTIER_OP_STAT = 14,
	KVTIER_OP_ARENA = 15,
	KVTIER_OP_SESSION = 16,
	KVTIER_OP_EVENTS = 17,		/* reserved */
	KVTIER_OP_EXPORT = 18,

	KVTIER_OP_CTL_QUERY = 32,
	KVTIER_OP_POOL_CREATE = 33,
	KVTIER_OP_POOL_DESTROY = 34,
	KVTIER_OP_POOL_ASSEMBLE = 35,
	KVTIER_OP_TIER_ATTACH = 36,
	KVTIER_OP_TIER_DETACH = 37,
	KVTIER_OP_TIER_DRAIN = 38,
	KVTIER_OP_NS_CLAIM = 39,
	KVTIER_OP_POOL_SCRUB = 40,
};

#define KVTIER_IOC(op)		_IO(KVTIER_IOC_TYPE, (op))

/* Feature bits of kvtier_query.features and kvtier_ctl_query.features. */
#define KVTIER_FEAT_ASYNC	(1ULL << 0)	/* pending results, read(2), eventfd */
#define KVTIER_FEAT_ARENA	(1ULL << 1)	/* ARENA command */
#define KVTIER_FEAT_DMAENGINE	(1ULL << 2)	/* memory moves may use a DMA engine */
#define KVTIER_FEAT_SESSION	(1ULL << 3)	/* SESSION command */
#define KVTIER_FEAT_EVENTS	(1ULL << 4)	/* reserved */
#define KVTIER_FEAT_EXPORT	(1ULL << 5)	/* EXPORT command */
#define KVTIER_FEAT_URING	(1ULL << 6)	/* reserved: io_uring commands */
#define KVTIER_FEAT_DURABLE	(1ULL << 7)	/* block tiers: POOL_ASSEMBLE */
#define KVTIER_FEATURES_ALL	(KVTIER_FEAT_ASYNC | KVTIER_FEAT_ARENA | \
				 KVTIER_FEAT_DMAENGINE | KVTIER_FEAT_SESSION | \
				 KVTIER_FEAT_EVENTS | KVTIER_FEAT_EXPORT | \
				 KVTIER_FEAT_URING | KVTIER_FEAT_DURABLE)

/* Per-entry results. Non-negative: what became of the entry. */
#define KVTIER_ST_MISS		0	/* not in the pool */
#define KVTIER_ST_HIT		1	/* there; GET, COMMIT: leased */
#define KVTIER_ST_FILLING	2	/* reserved by some client, not committed */
#define KVTIER_ST_PENDING	3	/* on its way up; see "Completions" */
#define KVTIER_ST_RESERVED	4	/* yours to fill */
#define KVTIER_ST_EXISTS	5	/* RESERVE, WRITE: committed already */
#define KVTIER_ST_DONE		6	/* ABORT, RELEASE, ADVISE, DROP, WRITE, COMMIT */
/* Negative: why the entry failed; the entry changed nothing. */
#define KVTIER_ST_NOSPACE	(-1)	/* no memory slot could be had in time, or for so much */
#define KVTIER_ST_QUOTA		(-2)	/* the namespace's quota is used up */
#define KVTIER_ST_NOPARENT	(-3)	/* the parent is not (or no longer) there */
#define KVTIER_ST_STALE		(-4)	/* handle unknown, expired or of another kind */
#define KVTIER_ST_BUSY		(-5)	/* DROP: being filled */
#define KVTIER_ST_PINNED	(-6)	/* COMMIT: the slot's pages are still pinned */
#define KVTIER_ST_IOERR		(-7)	/* media failed or bytes did not verify: a miss */
#define KVTIER_ST_CHILDREN	(-8)	/* DROP: blocks that extend it are there */
#define KVTIER_ST_FAULT		(-9)	/* READ, WRITE: the buffer cannot be accessed */
#define KVTIER_ST_LIMIT		(-10)	/* a limit of the file or the namespace is reached */
#define KVTIER_ST_SKIPPED	(-11)	/* not reached: an earlier entry ended the prefix */

enum kvtier_tier_type {
	KVTIER_TIER_DRAM = 1,	/* pages of local memory nodes */
	KVTIER_TIER_NODE = 2,	/* pages of one NUMA node */
	KVTIER_TIER_DAX = 3,	/* a device-dax instance (CXL region) */
	KVTIER_TIER_BDEV = 4,	/* a block device, log-structured */
	KVTIER_TIER_PMEM = 5,	/* a persistent device-dax instance, log-structured */
};

enum kvtier_tier_state {
	KVTIER_TIER_ATTACHING = 1,
	KVTIER_TIER_ONLINE = 2,
	KVTIER_TIER_DRAINING = 3,
	KVTIER_TIER_FAILED = 4,
};

/**
 * struct kvtier_tier_info - one tier, as QUERY reports it
 * @id:             tier number in the pool, 0..KVTIER_TIERS_MAX-1
 * @type:           enum kvtier_tier_type
 * @rank:           0 is fastest
 * @state:          enum kvtier_tier_state
 * @capacity_bytes: what can be stored
 * @used_bytes:     in slots that hold blocks (or are being filled); without CAP_SYS_ADMIN
 *                  rounded up to a sixteenth of the capacity
 * @nr_blocks:      blocks whose fastest copy is here; without CAP_SYS_ADMIN 0
 * @window_offset:  memory tiers: where the tier lies in the read view; block
 *                  tiers: 0
 * @window_bytes:   memory tiers: its length there; block tiers: 0
 * @name:           as given at attach
 */
struct kvtier_tier_info {
	__u32 id;
	__u32 type;
	__u32 rank;
	__u32 state;
	__aligned_u64 capacity_bytes;
	__aligned_u64 used_bytes;
	__aligned_u64 nr_blocks;
	__aligned_u64 window_offset;
	__aligned_u64 window_bytes;
	char name[KVTIER_NAME_MAX];
};

/**
 * struct kvtier_query - KVTIER_OP_QUERY: what this pool can do
 * @flags:          0
 * @abi_revision:   out: KVTIER_ABI_REVISION of the kernel
 * @pool_id:        out: N of /dev/kvtierN
 * @features:       out: KVTIER_FEAT_*
 * @ops:            out: bit n set: KVTIER_OP n is there
 * @batch_max:      out: most entries in a data command
 * @leases_max:     out: most handles one open file may hold
 * @block_bytes_max: out: largest block size of a group
 * @window_bytes:   out: length of the read view; it grows when tiers are added
 * @tiers:          in: array of struct kvtier_tier_info, or 0 to ask the count
 * @nr_tiers:       in: room in @tiers; out: tiers there are (EMSGSIZE if more
 *                  than room and @tiers is not 0)
 * @sessions_max:   out: most sessions one open file may have
 *
 * Works on an unbound file.
 */
struct kvtier_query {
	__u32 size;
	__u32 flags;
	__u32 abi_revision;
	__u32 pool_id;
	__aligned_u64 features;
	__aligned_u64 ops;
	__u32 batch_max;
	__u32 leases_max;
	__aligned_u64 block_bytes_max;
	__aligned_u64 window_bytes;
	__aligned_u64 tiers;
	__u32 nr_tiers;
	__u32 sessions_max;
};

/**
 * struct kvtier_group - a class of equally sized blocks
 * @block_bytes: exact payload size, 1..KVTIER_BLOCK_BYTES_MAX; a slot is this
 *               rounded up to KVTIER_SLOT_ALIGN
 */
struct kvtier_group {
	__aligned_u64 block_bytes;
	__u32 flags;		/* 0 */
	__u32 __reserved;	/* 0 */
};

#define KVTIER_NS_CREATE	(1U << 0)	/* create it if it is not there */
#define KVTIER_NS_EXCL		(1U << 1)	/* with CREATE: EEXIST if it is */
#define KVTIER_NS_RDONLY	(1U << 2)	/* this file never writes */
#define KVTIER_NS_OWNER		(1U << 3)	/* it is @owner_uid's; not with CREATE */
#define KVTIER_NS_FLAGS		(KVTIER_NS_CREATE | KVTIER_NS_EXCL | \
				 KVTIER_NS_RDONLY | KVTIER_NS_OWNER)

/**
 * struct kvtier_ns_open - KVTIER_OP_NS_OPEN: bind this file to a namespace
 * @flags:        KVTIER_NS_*
 * @identity_len: 1..KVTIER_IDENTITY_MAX
 * @identity:     blob that says what the blocks are (model, layout, dtype,
 *                rank, tenant salt ...)
 * @secret:       KVTIER_SECRET_BYTES more that are never shown, or 0
 * @groups:       array of struct kvtier_group. On an existing namespace it must
 *                equal what it was created with (EINVAL otherwise)
 * @nr_groups:    1..KVTIER_GROUPS_MAX; without CREATE also 0: do not compare
 * @mode:         create: permission bits as of a file, 0..0777: read is GET, write is
 *                RESERVE and the rest. Other bits: EINVAL
 * @owner_uid:    OWNER: whose namespace, as a uid of the user namespace that the file
 *                was opened in; else 0 (EOPNOTSUPP)
 * @quota_bytes:  create: most bytes the namespace may hold, 0: no limit
 * @min_bytes:    create: bytes of memory that, once used, others' need does not push
 *                out; 0: none. ENOSPC if 15/16 of the pool's memory are promised.
 *                Nor are blocks on block tiers pushed out while the namespace has no
 *                more than this in the pool, as far as such tiers are large enough.
 *                Arenas are charged to it.
 * @ns_id:        out: id issued by the kernel, never used twice in a pool
 * @fill_offset:  out: start of this file's fill view for mmap
 * @fill_bytes:   out: its length (as window_bytes of QUERY)
 *
 * The namespace is found by (owner's uid, secret, identity): an equal identity
 * of another user is another namespace. The owner is the opener's uid, or with OWNER
 * @owner_uid: what another user has is opened if its mode's bits for the group (its
 * creator's; any group of the opener counts) or for others allow all that the file may
 * do. If they do not, the answer is ENOENT, as if it were not there; EACCES is only ever
 * said of one's own. A file that may write asks for both bits: whoever may only read sets
 * RDONLY, or opens the device read-only. Rights are checked here, once, against the
 * credentials the file was opened with. A file is bound once; EBUSY after that.
 */
struct kvtier_ns_open {
	__u32 size;
	__u32 flags;
	__u32 identity_len;
	__u32 nr_groups;
	__aligned_u64 identity;
	__aligned_u64 secret;
	__aligned_u64 groups;
	__u32 mode;
	__u32 owner_uid;
	__aligned_u64 quota_bytes;
	__aligned_u64 min_bytes;
	__aligned_u64 ns_id;
	__aligned_u64 fill_offset;
	__aligned_u64 fill_bytes;
};

/**
 * struct kvtier_lookup_result - one key of LOOKUP
 * @status:  MISS, HIT or FILLING
 * @tier:    tier of the fastest copy (HIT)
 * @cost_ns: estimated time to make it readable (HIT), 0 in memory; of the first from a
 *           tier, with what is on its way up from there already
 */
struct kvtier_lookup_result {
	__s32 status;
	__u32 tier;
	__aligned_u64 cost_ns;
};

/**
 * struct kvtier_lookup - KVTIER_OP_LOOKUP: what is there, without a lease
 * @flags:     0
 * @group:     index in the namespace's groups
 * @nr:        keys, 1..KVTIER_BATCH_MAX
 * @keys:      @nr * KVTIER_KEY_BYTES, a chain from its head on
 * @results:   @nr struct kvtier_lookup_result, or 0 if only sums are wanted
 * @request:   caller's id of the engine request, 0: infer
 * @nr_prefix: out: leading keys that are HIT
 * @cost_ns:   out: sum over those
 */
struct kvtier_lookup {
	__u32 size;
	__u32 flags;
	__u32 group;
	__u32 nr;
	__aligned_u64 keys;
	__aligned_u64 results;
	__aligned_u64 request;
	__u32 nr_prefix;
	__u32 __reserved;
	__aligned_u64 cost_ns;
};

/**
 * struct kvtier_block_result - one entry of GET, RESERVE or COMMIT
 * @status: KVTIER_ST_*
 * @tier:   tier the slot is in
 * @handle: for RELEASE, COMMIT, ABORT; valid only on this open file; 0: none
 * @offset: mmap offset: in the read view for HIT, and for EXISTS with a handle; in
 *          this file's fill view for RESERVED; else 0
 */
struct kvtier_block_result {
	__s32 status;
	__u32 tier;
	__aligned_u64 handle;
	__aligned_u64 offset;
};

/*
 * Completions
 * -----------
 * GET and RESERVE with KVTIER_*_ASYNC, and PREFETCH with KVTIER_PREFETCH_NOTIFY,
 * do not wait: entries come back PENDING (or FILLING) and one struct
 * kvtier_completion with the call's @user_data is queued on the file when all of
 * them have settled. The file polls readable, read(2) takes completions (whole
 * structs only, EAGAIN when there is none and O_NONBLOCK, else it waits), and
 * @eventfd, if not -1, is signalled by one. The caller then repeats GET or
 * RESERVE. With nothing to wait for GET and RESERVE queue no completion, PREFETCH
 * one at once. @result is -ETIMEDOUT when blocks have not settled for a minute.
 * EAGAIN when the file has too many outstanding.
 */
struct kvtier_completion {
	__aligned_u64 user_data;
	__s32 result;		/* 0, or a negative errno */
	__u32 nr_ready;		/* entries that can now be had */
};

#define KVTIER_GET_WAIT		(1U << 0)	/* wait up to @timeout_ns, for fillers too */
#define KVTIER_GET_ASYNC	(1U << 1)	/* do not wait, complete later */
#define KVTIER_GET_NOPROMOTE	(1U << 2)	/* only what is in memory now */
#define KVTIER_GET_FLAGS	(KVTIER_GET_WAIT | KVTIER_GET_ASYNC | \
				 KVTIER_GET_NOPROMOTE)

/**
 * struct kvtier_get - KVTIER_OP_GET: lease the longest contiguous prefix
 * @flags:      KVTIER_GET_*; at most one of them. Without any, blocks on block
 *              tiers start moving up and come back PENDING, nobody is notified
 * @group:      as in LOOKUP
 * @nr:         as in LOOKUP
 * @keys:       as in LOOKUP
 * @results:    @nr struct kvtier_block_result
 * @request:    as in LOOKUP
 * @timeout_ns: WAIT: longest wait; ~0: for ever (fatal signals still end it)
 * @user_data:  ASYNC: returned in the completion
 * @eventfd:    ASYNC: to be signalled, or -1
 * @nr_prefix:  out: leading entries that are HIT; only these are leased
 *
 * Entries after the first that is not HIT are PENDING, FILLING, MISS or SKIPPED
 * and hold no lease. LIMIT: the file has too many handles, or the namespace too much memory
 * that its leases and reservations keep in place.
 */
struct kvtier_get {
	__u32 size;
	__u32 flags;
	__u32 group;
	__u32 nr;
	__aligned_u64 keys;
	__aligned_u64 results;
	__aligned_u64 request;
	__aligned_u64 timeout_ns;
	__aligned_u64 user_data;
	__s32 eventfd;
	__u32 nr_prefix;
};

#define KVTIER_RESERVE_WAIT	(1U << 0)	/* wait for fillers and for room */
#define KVTIER_RESERVE_ASYNC	(1U << 1)	/* complete when fillers are done */
#define KVTIER_RESERVE_PARENTS	(1U << 2)	/* @parent is an array of @nr keys */
#define KVTIER_RESERVE_LEASE	(1U << 3)	/* EXISTS entries come leased */
#define KVTIER_RESERVE_ARENA	(1U << 4)	/* slots of this file's arena only */
#define KVTIER_RESERVE_FLAGS	(KVTIER_RESERVE_WAIT | KVTIER_RESERVE_ASYNC | \
				 KVTIER_RESERVE_PARENTS | \
				 KVTIER_RESERVE_LEASE | KVTIER_RESERVE_ARENA)

/**
 * struct kvtier_reserve - KVTIER_OP_RESERVE: claim keys for filling
 * @flags:      KVTIER_RESERVE_*; WAIT and ASYNC exclude each other
 * @group:      as in LOOKUP
 * @nr:         as in LOOKUP
 * @keys:       @nr keys. Without PARENTS each key's parent is the key before it
 * @parent:     without PARENTS: parent of the first key, or 0 if it is a root.
 *              With PARENTS: @nr keys, all zero for a root. The all-zero key
 *              itself names no block (EINVAL in @keys)
 * @results:    @nr struct kvtier_block_result: RESERVED (filling is yours),
 *              EXISTS, FILLING (somebody else's), NOSPACE, QUOTA, LIMIT, NOPARENT
 * @request:    as in LOOKUP
 * @timeout_ns: WAIT: as in GET
 * @user_data:  ASYNC
 * @eventfd:    ASYNC
 * @nr_reserved: out
 *
 * A reservation that is not committed within the pool's reservation_timeout is
 * taken back.
 */
struct kvtier_reserve {
	__u32 size;
	__u32 flags;
	__u32 group;
	__u32 nr;
	__aligned_u64 keys;
	__aligned_u64 parent;
	__aligned_u64 results;
	__aligned_u64 request;
	__aligned_u64 timeout_ns;
	__aligned_u64 user_data;
	__s32 eventfd;
	__u32 nr_reserved;
};

#define KVTIER_COMMIT_LEASE	(1U << 0)	/* keep a lease: handle stays valid */
#define KVTIER_COMMIT_FLAGS	(KVTIER_COMMIT_LEASE)

/**
 * struct kvtier_commit - KVTIER_OP_COMMIT: publish filled blocks
 * @flags:    KVTIER_COMMIT_*
 * @nr:       handles, 1..KVTIER_BATCH_MAX
 * @handles:  @nr __u64 from RESERVE
 * @results:  @nr struct kvtier_block_result: DONE, or HIT with LEASE (offset in
 *            the read view); NOPARENT (parent not committed), PINNED: the
 *            reservation stands, except STALE: it was taken back, or its memory
 *            is lost and it ends here
 * @nr_done:  out
 *
 * Write access through the fill view is gone when this returns. Parents must be
 * committed before, or earlier in the same call.
 */
struct kvtier_commit {
	__u32 size;
	__u32 flags;
	__u32 nr;
	__u32 nr_done;
	__aligned_u64 handles;
	__aligned_u64 results;
};

/**
 * struct kvtier_handles - KVTIER_OP_ABORT, KVTIER_OP_RELEASE
 * @flags:   0
 * @nr:      handles, 1..KVTIER_BATCH_MAX
 * @nr_done: out
 * @handles: @nr __u64: reservations (ABORT), leases (RELEASE)
 * @results: @nr __s32: DONE or STALE; 0 if not wanted
 */
struct kvtier_handles {
	__u32 size;
	__u32 flags;
	__u32 nr;
	__u32 nr_done;
	__aligned_u64 handles;
	__aligned_u64 results;
};

/**
 * struct kvtier_buf - a caller's buffer for READ and WRITE
 * @addr:  start
 * @bytes: WRITE: exactly the group's block size; READ: at least that
 */
struct kvtier_buf {
	__aligned_u64 addr;
	__aligned_u64 bytes;
};

/**
 * struct kvtier_copy - KVTIER_OP_READ, KVTIER_OP_WRITE: by copy, not by mapping
 * @flags:      0
 * @group:      as in LOOKUP
 * @nr:         as in LOOKUP
 * @keys:       @nr keys; parents as in RESERVE without PARENTS (WRITE)
 * @parent:     WRITE: parent of the first key or 0; READ: 0
 * @bufs:       @nr struct kvtier_buf
 * @results:    @nr __s32: READ: HIT, MISS, FILLING, PENDING, IOERR, NOSPACE, FAULT,
 *              SKIPPED; WRITE: DONE, EXISTS, FILLING, NOSPACE, QUOTA, LIMIT, NOPARENT,
 *              STALE (its memory has gone, or it took too long), FAULT
 * @request:    as in LOOKUP
 * @timeout_ns: longest wait for promotion or for room
 * @nr_done:    out: READ: length of the prefix read; WRITE: blocks written
 */
struct kvtier_copy {
	__u32 size;
	__u32 flags;
	__u32 group;
	__u32 nr;
	__aligned_u64 keys;
	__aligned_u64 parent;
	__aligned_u64 bufs;
	__aligned_u64 results;
	__aligned_u64 request;
	__aligned_u64 timeout_ns;
	__u32 nr_done;
	__u32 __reserved;
};

#define KVTIER_PREFETCH_NOTIFY	(1U << 0)	/* queue a completion */
#define KVTIER_PREFETCH_FLAGS	(KVTIER_PREFETCH_NOTIFY)

/**
 * struct kvtier_prefetch - KVTIER_OP_PREFETCH: bring blocks up ahead of need
 * @flags:     KVTIER_PREFETCH_*
 * @group:     as in LOOKUP
 * @nr:        as in LOOKUP
 * @keys:      @nr keys, a chain
 * @request:   as in LOOKUP
 * @user_data: NOTIFY
 * @eventfd:   NOTIFY: or -1
 * @nr_started: out: blocks that are now on their way up
 */
struct kvtier_prefetch {
	__u32 size;
	__u32 flags;
	__u32 group;
	__u32 nr;
	__aligned_u64 keys;
	__aligned_u64 request;
	__aligned_u64 user_data;
	__s32 eventfd;
	__u32 nr_started;
};

enum kvtier_advice {
	KVTIER_ADV_COLD = 1,	/* first in line for demotion and eviction */
	KVTIER_ADV_HOT = 2,	/* as if just used */
	KVTIER_ADV_PIN = 3,	/* stay in the pool; counts against the pin limit */
	KVTIER_ADV_UNPIN = 4,
	KVTIER_ADV_TTL = 5,	/* @value ns from now the block is a miss; 0: never */
};

/**
 * struct kvtier_advise - KVTIER_OP_ADVISE
 * @flags:   0
 * @group:   as in LOOKUP
 * @nr:      as in LOOKUP
 * @keys:    @nr keys
 * @results: @nr __s32: DONE, MISS, LIMIT; 0 if not wanted
 * @advice:  enum kvtier_advice
 * @value:   TTL: nanoseconds (rounded up to seconds; the block is a miss at
 *           most a second after that, never before); else 0
 *
 * A time to live is durable with the block if it was set before the block was written to
 * a block tier. One that is changed later holds as long as the pool is up. After a
 * restart, be it after a crash or in order, it is the one that was written, unless the
 * block was written anew meanwhile, as when it was brought up and went down again.
 * A block that must not be there any more is to be dropped.
 */
struct kvtier_advise {
	__u32 size;
	__u32 flags;
	__u32 group;
	__u32 nr;
	__aligned_u64 keys;
	__aligned_u64 results;
	__u32 advice;
	__u32 nr_done;
	__aligned_u64 value;
};

/**
 * struct kvtier_drop - KVTIER_OP_DROP: forget blocks
 * @flags:   0
 * @group:   as in LOOKUP
 * @nr:      as in LOOKUP
 * @keys:    @nr keys; taken from the last to the first, so a whole chain can go
 *           in one call
 * @results: @nr __s32: DONE, MISS, CHILDREN, BUSY (being filled); 0: not wanted
 * @nr_done: out
 *
 * A dropped block is a miss at once; leases on it stay good until released. When DROP
 * returns no crash and no restart brings back what was stored under these keys before,
 * found by this call or not; for that it may wait for the block tiers. EIO: that cannot
 * be promised, because nothing is written any more to a block tier that has blocks of
 * the namespace, or it was detached without being wiped, and no other one says so to who
 * assembles it; they are a miss now.
 */
struct kvtier_drop {
	__u32 size;
	__u32 flags;
	__u32 group;
	__u32 nr;
	__aligned_u64 keys;
	__aligned_u64 results;
	__u32 nr_done;
	__u32 __reserved;
};

#define KVTIER_ENTRY_DURABLE	(1U << 0)	/* also on a block tier, and found there after a crash */

/**
 * struct kvtier_entry - one block as ITERATE shows it
 * @parent:  all zero for a root
 * @status:  HIT or FILLING
 * @tier:    tier of its fastest copy
 * @flags:   KVTIER_ENTRY_*
 * @idle_ns: since it was last used, to about a millisecond
 */
struct kvtier_entry {
	__u8 key[KVTIER_KEY_BYTES];
	__u8 parent[KVTIER_KEY_BYTES];
	__s32 status;
	__u32 tier;
	__u16 group;
	__u16 flags;
	__u32 leases;
	__aligned_u64 idle_ns;
};

/**
 * struct kvtier_iterate - KVTIER_OP_ITERATE: the namespace's blocks, page by page
 * @flags:   0
 * @nr:      in: room in @entries (1..KVTIER_BATCH_MAX); out: entries given, may
 *           be 0 although there are more
 * @cursor:  in: 0 to start, else what the last call gave; out: 0 at the end
 * @entries: array of struct kvtier_entry
 *
 * Blocks that come or go meanwhile may be missed, no block is given twice; either may
 * befall one whose bytes in memory are lost meanwhile and that is served from its copy.
 */
struct kvtier_iterate {
	__u32 size;
	__u32 flags;
	__u32 nr;
	__u32 __reserved;
	__aligned_u64 cursor;
	__aligned_u64 entries;
};

/**
 * struct kvtier_tier_stat - counters of one tier; all since the tier came
 * @hits:            blocks leased by GET, READ that were found here (on a block tier:
 *                   and brought up for it)
 * @promotions_in:   blocks moved up into this tier
 * @promotions_out:  blocks moved up out of it
 * @demotions_in:    blocks moved down into it
 * @demotions_out:   blocks moved down out of it
 * @evictions:       blocks that left the pool from here, but by DROP
 * @read_bytes, @write_bytes: by moves, payload only
 * @dma_bytes:       of these, by a device or DMA engine
 * @io_errors:       transfers that failed or did not verify, whatever the cause
 * @quarantined_bytes: in regions that wait for foreign references to go
 * @read_errors:     of @io_errors: the device could not read
 * @checksum_errors: of these: what was read did not verify
 * @write_errors:    of these: the device could not write or flush
 * @memory_errors:   of these: poisoned memory
 * @retired_bytes:   not used any more: poisoned memory, worn segments
 */
struct kvtier_tier_stat {
	__u32 id;
	__u32 rank;
	__aligned_u64 hits;
	__aligned_u64 promotions_in;
	__aligned_u64 promotions_out;
	__aligned_u64 demotions_in;
	__aligned_u64 demotions_out;
	__aligned_u64 evictions;
	__aligned_u64 read_bytes;
	__aligned_u64 write_bytes;
	__aligned_u64 dma_bytes;
	__aligned_u64 io_errors;
	__aligned_u64 quarantined_bytes;
	__aligned_u64 nr_blocks;
	__aligned_u64 used_bytes;
	__aligned_u64 capacity_bytes;
	__aligned_u64 read_errors;
	__aligned_u64 checksum_errors;
	__aligned_u64 write_errors;
	__aligned_u64 memory_errors;
	__aligned_u64 retired_bytes;
};

#define KVTIER_STAT_POOL	(1U << 0)	/* the pool, not the namespace: works on
						 * an unbound file; EPERM without
						 * CAP_SYS_ADMIN
						 */
#define KVTIER_STAT_FLAGS	(KVTIER_STAT_POOL)

/**
 * struct kvtier_stat - KVTIER_OP_STAT: counters since the namespace (pool) began
 * @nr_blocks:       blocks now
 * @used_bytes:      slot bytes they take, each block once
 * @hits:            keys leased by GET, READ
 * @misses:          first keys of GET, READ batches' tails that were not there;
 *                   later keys of a broken prefix are counted in @unreached
 * @unreached:       see @misses
 * @puts:            blocks committed
 * @dedups:          RESERVE, WRITE entries answered EXISTS
 * @dedup_waits:     of these, after waiting for another filler
 * @aborts:          reservations given up, expired or lost with their file
 * @evictions:       blocks that left, but by DROP: to make room, or lost
 * @drops:           blocks dropped by DROP
 * @promotions:      moves up
 * @demotions:       moves down
 * @leases:          held now
 * @meta_bytes:      POOL: DRAM for index, chains, placement and policy
 * @meta_bytes_per_block: POOL: @meta_bytes over block entries allocated, rounded
 *                   up
 * @lost_touches:    POOL: uses not seen by the policy because its rings were full
 * @regions_quarantined: POOL: now
 * @moves_dmaengine: POOL: memory to memory moves by a DMA engine, all pools together
 * @moves_cpu:       POOL: the same by the CPU
 * @tiers:           in: POOL: array of struct kvtier_tier_stat or 0
 * @nr_tiers:        in: room; out: tiers (EMSGSIZE as in QUERY)
 */
struct kvtier_stat {
	__u32 size;
	__u32 flags;
	__aligned_u64 nr_blocks;
	__aligned_u64 used_bytes;
	__aligned_u64 hits;
	__aligned_u64 misses;
	__aligned_u64 unreached;
	__aligned_u64 puts;
	__aligned_u64 dedups;
	__aligned_u64 dedup_waits;
	__aligned_u64 aborts;
	__aligned_u64 evictions;
	__aligned_u64 drops;
	__aligned_u64 promotions;
	__aligned_u64 demotions;
	__aligned_u64 leases;
	__aligned_u64 meta_bytes;
	__aligned_u64 meta_bytes_per_block;
	__aligned_u64 lost_touches;
	__aligned_u64 regions_quarantined;
	__aligned_u64 moves_dmaengine;
	__aligned_u64 moves_cpu;
	__aligned_u64 tiers;
	__u32 nr_tiers;
	__u32 __reserved;
};

/**
 * struct kvtier_arena - KVTIER_OP_ARENA: claim regions that stay writable
 * @flags:    0
 * @group:    group whose slots it holds
 * @nr_slots: in: slots wanted, 1..2^20; out: slots given (whole regions, never
 *            fewer than asked)
 * @offset:   out: start in this file's fill view
 * @bytes:    out: length to map
 * @slot_bytes: out: distance between slots
 *
 * The arena is contiguous in the fill view, stays mapped writable through COMMIT
 * and belongs to this open file until it is closed; it may be registered once
 * with a device. Its bytes are charged to the namespace's min_bytes (ENOSPC past
 * it; with what files that have gone left of theirs, past twice that). One arena
 * per file and group (EBUSY).
 */
struct kvtier_arena {
	__u32 size;
	__u32 flags;
	__u32 group;
	__u32 nr_slots;
	__aligned_u64 offset;
	__aligned_u64 bytes;
	__aligned_u64 slot_bytes;
};

enum kvtier_session_state {
	KVTIER_SESSION_DECODING = 1,	/* its chain is in use, and gets longer */
	KVTIER_SESSION_IDLE = 2,	/* a turn is over, another may come */
	KVTIER_SESSION_DONE = 3,	/* it is over, and forgotten */
};

/**
 * struct kvtier_session - KVTIER_OP_SESSION: what an engine's request or conversation does
 * @flags:    0
 * @group:    as in LOOKUP
 * @state:    enum kvtier_session_state
 * @session:  caller's id of it, not 0; means nothing on another open file
 * @tip:      last block of its chain; all zero: as it is known
 * @reuse_ns: IDLE, DONE: expected time from now to the chain's next use, 0: not known
 *
 * No block of a DECODING session's chain leaves the pool to make room. They are charged to
 * the pin limit of the namespace (see KVTIER_ADV_PIN), each once for all its sessions. A
 * block that this file commits on the tip becomes the tip, if there is room in the limit.
 * IDLE and DONE end that; both are hints. DONE without @reuse_ns: the end of the chain that
 * nobody else's goes through is first in line for demotion and eviction; with it: it goes
 * down, where there is room, and what is worth least goes where there is none, see "policy".
 * A session ends with its open file at the latest.
 *
 * ENOENT: no such block, or none committed; DECODING: or one of the chain is on its way out of
 * the pool. ENOSPC: DECODING: the pin limit, or too many sessions. Then nothing has changed, and
 * a chain that was held before still is.
 */
struct kvtier_session {
	__u32 size;
	__u32 flags;
	__u32 group;
	__u32 state;
	__aligned_u64 session;
	__u8 tip[KVTIER_KEY_BYTES];
	__aligned_u64 reuse_ns;
};

/**
 * struct kvtier_export - KVTIER_OP_EXPORT: leased blocks as a dma-buf
 * @flags:   0
 * @nr:      handles, 1..KVTIER_BATCH_MAX
 * @fd:      out: the dma-buf, close-on-exec
 * @handles: @nr __u64: leases of this file. EINVAL if one is none, or its block has been
 *           dropped or lost
 * @bytes:   out: its length: the blocks' slots (block size rounded up to
 *           KVTIER_SLOT_ALIGN) one behind the other, in the order given; zeros behind a block
 *
 * The buffer holds leases of its own: @handles may be released and this file closed, the
 * blocks stay where they are until the last reference to the buffer goes. It can be read
 * only: by mmap (shared, PROT_READ), and by devices whose driver maps it DMA_TO_DEVICE.
 * Drivers that map DMA_BIDIRECTIONAL or DMA_FROM_DEVICE get EACCES (most of GPUs and RDMA
 * in 6.12), and EHWPOISON if a page is bad; but DMA_BIDIRECTIONAL is allowed if all blocks
 * are in an arena of this file. Pages kept pinned after the last reference has gone keep
 * the leases until they are given back. ENOSPC: past what one namespace may have in
 * buffers: half of the pool's memory, and 1024 of them. EMFILE: no file descriptor left.
 */
struct kvtier_export {
	__u32 size;
	__u32 flags;
	__u32 nr;
	__s32 fd;
	__aligned_u64 handles;
	__aligned_u64 bytes;
};

#include <linux/kvtier_ctl.h>	/* commands of the control device */

#endif /* _UAPI_LINUX_KVTIER_H */
