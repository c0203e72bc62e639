/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * kvtier, user space interface: commands of the control device. Part of
 * <linux/kvtier.h>, which has the model and the rules; include that.
 */
#ifndef _UAPI_LINUX_KVTIER_CTL_H
#define _UAPI_LINUX_KVTIER_CTL_H

#include <linux/kvtier.h>

/**
 * struct kvtier_ctl_query - KVTIER_OP_CTL_QUERY (any opener)
 * @pools:    in: array of __u32 for the ids of pools, or 0
 * @nr_pools: in: room; out: pools there are
 */
struct kvtier_ctl_query {
	__u32 size;
	__u32 flags;
	__u32 abi_revision;
	__u32 nr_pools;
	__aligned_u64 features;
	__aligned_u64 ops;
	__aligned_u64 pools;
};

#define KVTIER_POOL_ANY_ID	(~0U)

/**
 * struct kvtier_pool_create - KVTIER_OP_POOL_CREATE
 * @pool_id: in: wanted id (0..255) or KVTIER_POOL_ANY_ID; out: the id.
 *           EEXIST when taken
 */
struct kvtier_pool_create {
	__u32 size;
	__u32 flags;
	__u32 pool_id;
	__u32 __reserved;
};

/**
 * struct kvtier_pool_destroy - KVTIER_OP_POOL_DESTROY: EBUSY while files are open
 */
struct kvtier_pool_destroy {
	__u32 size;
	__u32 flags;
	__u32 pool_id;
	__u32 __reserved;
};

enum kvtier_member_state {
	KVTIER_MEMBER_UNKNOWN = 0,	/* no superblock was read */
	KVTIER_MEMBER_CLEAN = 1,	/* was shut down properly */
	KVTIER_MEMBER_DIRTY = 2,	/* was not: a crash, or power was lost */
};

/**
 * struct kvtier_assemble_device - one device of POOL_ASSEMBLE
 * @path:    in: of the block device, or name of the persistent dax device (dax0.1), which
 *           is bound to the driver; NUL-terminated
 * @error:   out: 0, or a negative errno: why it cannot be used
 * @state:   out: enum kvtier_member_state. What follows is 0 if UNKNOWN
 * @rank:    out: of its tier
 * @tier_id: out: number of its tier, if the call succeeded
 * @generation: out: of its newest superblock
 * @member:  out: uuid of the member
 * @name:    out: of its tier, NUL-terminated
 */
struct kvtier_assemble_device {
	char path[KVTIER_PATH_MAX];
	__s32 error;
	__u32 state;
	__u32 rank;
	__u32 tier_id;
	__aligned_u64 generation;
	__u8 member[16];
	char name[KVTIER_NAME_MAX];
};

#define KVTIER_ASSEMBLE_DEGRADED	(1U << 0)	/* also without some members */
#define KVTIER_ASSEMBLE_FLAGS		(KVTIER_ASSEMBLE_DEGRADED)

/**
 * struct kvtier_pool_assemble - KVTIER_OP_POOL_ASSEMBLE: bring a pool up again
 * @flags:          KVTIER_ASSEMBLE_*
 * @pool_id:        in: wanted id (0..255) or KVTIER_POOL_ANY_ID; out: the id
 * @nr_devices:     1..KVTIER_TIERS_MAX
 * @devices:        array of struct kvtier_assemble_device, filled in also when the
 *                  call fails
 * @nr_members:     out: the pool has, as far as the devices know
 * @nr_found:       out: of these, given and usable
 * @pool:           out: uuid
 * @nr_blocks:      out: blocks that are in the pool now
 * @nr_namespaces:  out: namespaces
 * @nr_unclaimed:   out: of these, waiting for NS_CLAIM
 * @nr_dead:        out: records of blocks that had been dropped or evicted. As usual
 * @nr_superseded:  out: older records of a block that is there. As usual
 * @nr_orphans:     out: blocks of namespaces that have ended, or that do not fit theirs
 * @nr_expired:     out: blocks whose time to live was over
 * @nr_bad_records: out: records that do not verify
 * @nr_bad_bytes:   out: blocks whose bytes do not verify: writes that a crash has cut
 *                  short
 * @nr_bad_reads:   out: blocks whose bytes cannot be read
 * @nr_cycles:      out: links to parents that were cut because they went round
 * @nr_segments:    out: segments looked at
 * @nr_unsealed:    out: of these, without a summary: read as a whole
 * @time_ns:        out: it took
 *
 * The pool has the members as block tiers, with names and ranks as they were, and
 * every block and namespace that was durable. Tiers of memory are attached after
 * that. Any device with an error refuses the whole; what is on the devices is not
 * changed then. EEXIST: the id is taken or the pool is up already.
 *
 * With DEGRADED the members that are missing are given up: they are stale when they
 * come back.
 *
 * The outputs are valid also when the call fails after the devices were looked at.
 */
struct kvtier_pool_assemble {
	__u32 size;
	__u32 flags;
	__u32 pool_id;
	__u32 nr_devices;
	__aligned_u64 devices;
	__u32 nr_members;
	__u32 nr_found;
	__u8 pool[16];
	__aligned_u64 nr_blocks;
	__aligned_u64 nr_namespaces;
	__aligned_u64 nr_unclaimed;
	__aligned_u64 nr_dead;
	__aligned_u64 nr_superseded;
	__aligned_u64 nr_orphans;
	__aligned_u64 nr_expired;
	__aligned_u64 nr_bad_records;
	__aligned_u64 nr_bad_bytes;
	__aligned_u64 nr_bad_reads;
	__aligned_u64 nr_cycles;
	__aligned_u64 nr_segments;
	__aligned_u64 nr_unsealed;
	__aligned_u64 time_ns;
};

/**
 * struct kvtier_ns_claim - KVTIER_OP_NS_CLAIM: say whose a namespace is
 * @flags:   0
 * @pool_id: pool
 * @ns_id:   namespace, as sysfs shows it
 * @uid:     owner from now on, in the caller's user namespace
 * @gid:     likewise
 *
 * After an assembly, user ids need not mean what they meant when the namespace was
 * made. So one that was made without a secret is *unclaimed*: NS_OPEN does not find
 * it before it has been claimed, but for an opener with CAP_SYS_ADMIN.
 *
 * EINVAL: no such user or group. ENOENT: no such pool or namespace. EALREADY: it is
 * not unclaimed. EEXIST: the user has a namespace of that identity already.
 */
struct kvtier_ns_claim {
	__u32 size;
	__u32 flags;
	__u32 pool_id;
	__u32 __reserved;
	__aligned_u64 ns_id;
	__u32 uid;
	__u32 gid;
};

#define KVTIER_SCRUB_STOP	(1U << 0)	/* end the one that runs, and wait */
#define KVTIER_SCRUB_FLAGS	(KVTIER_SCRUB_STOP)

/**
 * struct kvtier_pool_scrub - KVTIER_OP_POOL_SCRUB: verify what block tiers hold
 * @flags:      0: begin to read it, in the background; EBUSY if that is done already.
 *              KVTIER_SCRUB_STOP: return when it is not done any more; 0 also if it was
 *              not
 * @pool_id:    pool
 * @rate_bytes: most bytes to read in a second; 0: no limit. EINVAL with STOP
 *
 * A block that cannot be read, or does not verify, is a miss from then on. sysfs tells
 * how far it has got and what it has found: scrub_* of the pool.
 */
struct kvtier_pool_scrub {
	__u32 size;
	__u32 flags;
	__u32 pool_id;
	__u32 __reserved;
	__aligned_u64 rate_bytes;
};

#define KVTIER_BAD_MAX		4096	/* ranges in one TIER_ATTACH */

/**
 * struct kvtier_range - physical memory
 * @start: address
 * @bytes: not 0
 */
struct kvtier_range {
	__aligned_u64 start;
	__aligned_u64 bytes;
};

#define KVTIER_ATTACH_FORCE	(1U << 0)
#define KVTIER_ATTACH_CHARGE	(1U << 1)
#define KVTIER_ATTACH_FLAGS	(KVTIER_ATTACH_FORCE | KVTIER_ATTACH_CHARGE)

/**
 * struct kvtier_tier_attach - KVTIER_OP_TIER_ATTACH
 * @flags:      KVTIER_ATTACH_FORCE: BDEV, PMEM: also if the device is a member of some
 *              pool, which it is not any more then; PMEM: also if its first MiB is not
 *              all zero. Else that is EEXIST. A former member of this very pool, whose
 *              tier failed or which was missing when the pool was assembled, needs no
 *              force. It joins as a new member, empty: what is on it is lost with its
 *              tier. KVTIER_ATTACH_CHARGE: DRAM, NODE: its memory is taken from the system
 *              as namespaces need it, and charged to their memory cgroups. EINVAL: a flag
 *              that this type does not have
 * @type:       enum kvtier_tier_type. DAX of a device of persistent memory means PMEM
 * @rank:       0..255, lower is faster; memory tiers must rank above (lower
 *              number than) block tiers (EINVAL); EEXIST if taken
 * @node:       NODE: NUMA node; else -1
 * @capacity_bytes: DRAM, NODE: mandatory, rounded down to 2 MiB; DAX, BDEV,
 *              PMEM: 0 for the whole device
 * @segment_bytes: BDEV, PMEM: log segment size, 0: chosen from the capacity
 * @name:       [a-z0-9_-]+, NUL-terminated, unique in the pool
 * @path:       DAX, PMEM: device name (dax0.0), BDEV: path of the block device
 * @tier_id:    out
 * @nr_bad:     DAX of memory that is not persistent: ranges in @bad, at most
 *              KVTIER_BAD_MAX; else 0 (EINVAL)
 * @bad:        array of struct kvtier_range: memory that is known to be bad, as a CXL
 *              device's poison list tells. Pages of the tier that any of it is on are
 *              retired before the first use; what is elsewhere does not matter. They
 *              stay bad until the device is bound anew
 */
struct kvtier_tier_attach {
	__u32 size;
	__u32 flags;
	__u32 pool_id;
	__u32 type;
	__u32 rank;
	__s32 node;
	__aligned_u64 capacity_bytes;
	__aligned_u64 segment_bytes;
	char name[KVTIER_NAME_MAX];
	char path[KVTIER_PATH_MAX];
	__u32 tier_id;
	__u32 nr_bad;
	__aligned_u64 bad;
};

#define KVTIER_DETACH_DISCARD	(1U << 0)	/* do not move, evict what is there */
#define KVTIER_DETACH_FLAGS	(KVTIER_DETACH_DISCARD)

/**
 * struct kvtier_tier_op - KVTIER_OP_TIER_DETACH, KVTIER_OP_TIER_DRAIN
 * @flags:   DETACH: KVTIER_DETACH_*; DRAIN: 0
 * @pool_id: pool
 * @tier_id: tier
 * @timeout_ns: longest wait for the drain; EBUSY when leases, pins or arenas keep
 *           blocks there past it. After a failed DETACH the tier is in the state it
 *           was in; DRAIN leaves it DRAINING (nothing new is placed there)
 */
struct kvtier_tier_op {
	__u32 size;
	__u32 flags;
	__u32 pool_id;
	__u32 tier_id;
	__aligned_u64 timeout_ns;
};

#endif /* _UAPI_LINUX_KVTIER_CTL_H */
