/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Objects of the driver and the rules they live by.
 *
 * LOCK ORDER, outermost first. A lock may be taken while holding only locks above it.
 *
 *  --  scrub.lock          mutex   who starts and stops scrubs; alone
 *  1  kvt_registry_lock   mutex   pools by id; pool->nr_files, pool->dying
 *  2  pool->tier_lock     mutex   set of tiers; held while a tier is drained
 *     pool->conf_lock     mutex   set of namespaces, watermarks
 *  3  file->lock          mutex   lease table of one open file; its holder may wait for memory
 *  4  pool->srcu          srcu    tier pointers stay valid
 *     clock.expiring      mutex   who takes back reservations; never waited for
 *     ns->session_lock    mutex   sessions of a namespace's open files; not with file->lock
 *  -- mmap_lock (faults come in here)
 *  5  pool->map_sem       rwsem   read: a fault installs entries; write: what a fault
 *                                 may install has just changed, wait for those under way.
 *                                 Nothing that waits for memory is done under it
 *  6  pool->meta_lock     spin    entries, chains, lists, space, quotas, policy
 *  7  shard->lock         spin    one shard of the index
 *  8  ring->lock          spin    one CPU's recorded touches
 *  9  file->async_lock    spin    completions of one open file
 *     pool->async[].lock  spin    calls that wait for one kind of event
 *     pool->up_lock       spin    blocks to be promoted
 *     pool->looks.lock    spin    looks ahead to be made
 *     charges->lock       spin    who asks a tier for memory, see kvt_charge.c
 *
 * User memory is copied under none of them. unmap_mapping_range() is called
 * under 2 to 4 at most. Nothing that allocates with GFP_KERNEL runs under 6-9.
 *
 * LIFETIMES
 *  pool     device refcount; destroyed only with no file open
 *  tier     pool->tiers[], until detach; readers hold pool->srcu
 *  ns       ->nr_files, ->nr_blocks, ->nr_regions; freed by the worker when all are 0
 *  file     struct file; mappings hold that; release ends asynchronous calls
 *  export   dma-buf; holds leases and counts as an open file of the pool
 *  block    see core/kvt_block.h; freed by kvt_block_reap() alone
 */
#ifndef KVT_INTERNAL_H
#define KVT_INTERNAL_H

#include <linux/bitmap.h>
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/eventfd.h>
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/kref.h>
#include <linux/llist.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/ktime.h>
#include <linux/jiffies.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/srcu.h>
#include <linux/uidgid.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <linux/kvtier.h>

#include "core/kvt_block.h"
#include "core/kvt_chain.h"
#include "core/kvt_format.h"
#include "core/kvt_hold.h"
#include "core/kvt_index.h"
#include "core/kvt_log.h"
#include "core/kvt_mem.h"
#include "core/kvt_policy.h"
#include "core/kvt_share.h"
#include "core/kvt_wlog.h"
#include "kvt_async.h"
#include "kvt_budget.h"
#include "kvt_charge.h"
#include "kvt_export.h"
#include "kvt_fixed.h"
#include "kvt_frames.h"
#include "kvt_ids.h"
#include "kvt_kept.h"
#include "kvt_leavers.h"
#include "kvt_limits.h"
#include "kvt_look.h"
#include "kvt_maps.h"
#include "kvt_names.h"
#include "kvt_clock.h"
#include "kvt_promote.h"
#include "kvt_region.h"
#include "kvt_room.h"
#include "kvt_use.h"
#include "kvt_weight.h"
#include "kvt_scrub.h"
#include "tier.h"

#define KVT_WINDOW_BITS		44	/* read view: 16 TiB */
#define KVT_WINDOW_BYTES	(1ULL << KVT_WINDOW_BITS)
#define KVT_FILE_IDS_MAX	((1u << 18) - 1)
#define KVT_POOLS_MAX		256
#define KVT_WAITQS		64
#define KVT_UP_SIZE		256	/* promotions between memory tiers remembered */
#define KVT_CHUNK_KEYS		32	/* keys handled per copy and per meta_lock hold */
#define KVT_EXPIRE_BATCH	1024u	/* reservations taken back at a time */
#define KVT_LEASES_PER_FILE	(1u << 20)
#define KVT_ASYNC_PER_FILE	64
#define KVT_NS_MAX		65536
#define KVT_UNHOLDS		16
#define KVT_OWN_STEPS_WORKER	4	/* of 4096 blocks looked at, see kvt_collect_own() */
#define KVT_OWN_STEPS_CALL	64

/* Counters of a namespace and of the pool, as in struct kvtier_stat. */
enum kvt_count {
	KVT_CNT_HITS,
	KVT_CNT_MISSES,
	KVT_CNT_UNREACHED,
	KVT_CNT_PUTS,
	KVT_CNT_DEDUPS,
	KVT_CNT_DEDUP_WAITS,
	KVT_CNT_ABORTS,
	KVT_CNT_EVICTIONS,
	KVT_CNT_DROPS,
	KVT_CNT_PROMOTIONS,
	KVT_CNT_DEMOTIONS,
	KVT_CNT_LEASES_TAKEN,
	KVT_CNT_LEASES_GIVEN,
	KVT_CNT_FIXED_REFUSED,
	KVT_CNT_LOST_TOUCHES,
	KVT_CNT_PREFETCHES,
	KVT_CNT_PREFETCHES_USED,
	KVT_CNT_PREFETCHES_UNREAD,
	KVT_NR_COUNTS,
};

struct kvt_counts {
	u64 v[KVT_NR_COUNTS];
};

/**
 * struct kvt_own - what a (namespace, group) has on one tier
 * @nr_blocks: READY blocks whose fastest copy is there
 * @cursor:    block where the last look for them ended, KVT_NIL: at the old end
 * @cursor_ms: its @touch_ms then: it has not been used since
 */
struct kvt_own {
	u32 nr_blocks;
	u32 cursor;
	u32 cursor_ms;
};

/**
 * struct kvt_group - a block class of a namespace
 * @block_bytes: exact size
 * @slot_pages:  slot size
 * @owner:       its space on each memory tier. Meta lock
 * @own:         its blocks on each tier. Meta lock
 */
struct kvt_group {
	u64 block_bytes;
	u32 slot_pages;
	struct kvt_owner owner[KVT_TIERS];
	struct kvt_own own[KVT_TIERS];
};

/**
 * struct kvt_ns - a namespace
 * @id:         never used twice in a pool
 * @idx:        in pool->ns; part of every block's name while the namespace lives
 * @uid, @gid:  who it belongs to. conf_lock, as @unclaimed
 * @unclaimed:  its owner comes from media, and it has no secret
 * @mode:       permission bits
 * @identity, @salt: as given; random
 * @secret:     SHA-256 of @salt and the secret, if @has_secret
 * @has_secret: one was given that is not zero
 * @tag, @named: of pool->names. conf_lock
 * @quota_bytes: 0: none
 * @min_bytes:  guaranteed memory
 * @arena_bytes: of which claimed by arenas. Meta lock, as all below
 * @used_bytes: slot bytes of its blocks; changed by kvt_ns_use() alone
 * @filling_bytes: same, of its reservations
 * @nr_cgroups: of @cgroup; 0: not known yet. conf_lock, as the next
 * @cgroup:     numbers of the cgroups it is in, outermost first, see kvt_budget.c
 * @memcg:      whom its pages in tiers that are charged are charged to, see kvt_charge.c
 * @budgets:    bit for each of the pool's that it counts in. Meta lock
 * @mem_bytes:  slot bytes it has in memory, moves under way included
 * @nr_blocks:  entries that carry its index, DEAD ones too
 * @nr_live:    blocks that can be found
 * @nr_ghosts:  dead blocks whose log copies are still there, by the lowest bit of the
 *              age in which they died
 * @ghost_age:  newest age; there are none of ages before the last two
 * @on_tiers:   block tiers, by id, that it was ever defined on; KVT_ON_LEAVER
 * @home:       where, by tier
 * @recalls:    by tier: cookie of a member that may know blocks of one like it that has ended
 * @kept:       memory it keeps from others
 * @fixed:      what leases and reservations fix. See there for locks
 * @maps:       mappings of its files
 * @nr_exports: dma-bufs
 * @session_lock: see above
 * @nr_regions: regions it owns
 * @nr_files:   open files bound to it. Pool's conf_lock and meta lock
 * @mind:       what the policy has learned of it. Meta lock
 * @trust:      see core/kvt_ahead.h. Meta lock, as @left
 * @left:       its blocks that left the pool, by tier and enum kvt_why
 * @share:      of each tier, see kvt_limits.c. Meta lock, as the next two
 * @over_link:  pool->over
 * @over_at:    when the worker looks at it, in jiffies
 * @counts:     per CPU
 * @kobj:       sysfs directory namespaces/<id>
 */
struct kvt_ns {
	struct kvt_pool *pool;
	u64 id;
	u32 idx;
	kuid_t uid;
	kgid_t gid;
	bool unclaimed;
	u32 mode;
	u32 identity_len;
	u8 identity[KVTIER_IDENTITY_MAX];
	u8 salt[KVT_NS_SALT];
	u8 secret[KVT_NS_SECRET];
	bool has_secret;
	u64 tag;
	struct hlist_node named;
	u64 quota_bytes;
	u64 min_bytes;
	u64 arena_bytes;
	u64 used_bytes;
	u64 filling_bytes;
	u32 nr_cgroups;
	struct mem_cgroup *memcg;
	u32 budgets;
	u64 cgroup[KVT_CGROUP_LEVELS];
	u64 mem_bytes;
	u64 nr_blocks;
	u64 nr_live;
	u64 nr_ghosts[2];
	u64 ghost_age;
	u32 on_tiers;
	struct kvt_ns_home home[KVT_TIERS];
	u64 recalls[KVT_TIERS];
	struct kvt_kept kept;
	struct kvt_fixed fixed;
	struct kvt_maps maps;
	u32 nr_exports;
	struct mutex session_lock;
	u32 nr_regions;
	u32 nr_files;
	struct kvt_mind *mind;
	struct kvt_trust trust[KVT_GUESSES];
	u64 left[KVT_TIERS][KVT_WHYS];
	struct kvt_share share[KVT_TIERS];
	struct list_head over_link;
	unsigned long over_at;
	struct kvt_counts __percpu *counts;
	struct kobject kobj;
	struct completion kobj_gone;
	u32 nr_groups;
	struct kvt_group group[];
};

/**
 * struct kvt_want - somebody who needs a slot; on the stack of the waiter
 * @link:   pool->wants. Meta lock
 * @ns:     for whom
 * @group:  of it
 * @region: only in this arena region of @tier, or KVT_NO_REGION
 * @tier:   see @region
 * @result: 0: not looked at yet, 1: there is room, -ENOSPC: nothing can go now
 */
struct kvt_want {
	struct list_head link;
	struct kvt_ns *ns;
	u32 group;
	u32 region;
	u32 tier;
	int result;
};

/* For whom a region would be welcome: the last one who found no slot, and did not wait. */
struct kvt_wish {
	u64 ns_id;	/* 0: nobody */
	u32 ns_idx;
	u32 group;
};

/**
 * struct kvt_pool - one store
 * @dev:        /sys/class/kvtier/kvtierN; its release frees the pool
 * @id:         N
 * @dying:      no more opens. Registry lock
 * @assembling: not published yet: a tier that is lost is only marked. Meta lock
 * @nr_missing: members that were given up when it was assembled
 * @nr_files:   open files. Registry lock
 * @tiers:      by id. Written under tier_lock and meta lock, read under srcu
 * @order:      ids by rank, fastest first; @nr_tiers of them. Meta lock
 * @ns, @names: namespaces by index, and by name; conf_lock for changes
 * @ids:        of open files and of dma-bufs, part of fill view offsets
 * @filling:    reservations, newest at the head. Meta lock
 * @expired:    of them, what is taken back just now. clock.expiring
 * @limbo:      slots that wait for foreign references. Meta lock
 * @parked:     dead blocks whose log copies wait for room for their kills. Meta lock
 * @carries:    see struct kvt_carry. Meta lock
 * @nr_strays:  of their moves, those with @stray. Meta lock
 * @unholds:    holds to be dropped, see kvt_hold_lost(); meta lock, as @unhold, their reserve
 * @log_lost:   batches with blocks that are durable nowhere. Meta lock
 * @uuid:       on the media; random
 * @leavers:    members that have left, or are lost. Meta lock
 * @log_seq:    numbers what is written to the members. Meta lock
 * @ns_limit:   namespace ids below are reserved on the members. conf_lock, meta lock
 * @log_wait:   waiters for what is to be durable
 * @log_wq:     members' background work
 * @budget:     of cgroups. Meta lock; conf_lock for which there are
 * @lease_bytes: lease tables of all open files
 * @moved:      waiters for blocks, by id; woken when a block settles
 * @room:       waiters for room
 * @wants, @wish: see struct kvt_want, kvt_wish. Meta lock
 * @up:         blocks that were used on a slow memory tier; up_lock (a leaf lock)
 * @over:     namespaces that may be near or above a limit on a tier. Meta lock
 * @nr_put_off: moves down that had to wait, though there is room below. Meta lock
 * @frames:     see kvt_frames.c
 * @looks:      ahead that are to be made
 * @hurry:      by namespace: changes when he waits for a block of a PREFETCH, see kvt_promote.c
 * @garbage:    memory to be freed outside locks
 * @work:       reclaim, see kvt_reclaim.c
 * @tick:       wakes @work for what depends on time
 * @reclaim_wq: one worker
 * @look_wq:    looks ahead (one work)
 * @up_wq:      moves up, see kvt_promo_prepare()
 * @scrub:      see kvt_scrub.c
 * @async_wq:   completes asynchronous calls
 * @async_work: on it
 * @async:      calls that wait, see kvt_async.c
 * @async_marked: queues of @async to be looked at
 * @nr_async:   calls in them
 * @clock:      what does not wait for the worker, see kvt_clock.h
 */
struct kvt_pool {
	struct device dev;
	struct cdev cdev;
	u32 id;
	bool dying;
	bool assembling;
	u32 nr_missing;
	u32 nr_files;

	u8 uuid[KVT_UUID_BYTES];
	struct kvt_leavers leavers;
	u64 log_seq;
	u64 ns_limit;

	struct mutex tier_lock;
	struct mutex conf_lock;
	struct srcu_struct srcu;
	struct kvt_tier *tiers[KVT_TIERS];
	u8 order[KVT_TIERS];
	u32 nr_tiers;
	u64 window_bytes;
	struct kobject *tiers_kobj;
	struct kobject *private_kobj;
	struct kobject *ns_kobj;

	struct rw_semaphore map_sem;
	spinlock_t meta_lock;
	struct kvt_table table;
	struct kvt_index index;
	struct kvt_policy policy;
	struct kvt_uses uses;
	struct kvt_list filling;
	u32 expired[KVT_EXPIRE_BATCH];
	struct kvt_list limbo;
	struct kvt_list parked;
	struct list_head carries;
	u32 nr_strays;
	struct llist_head unholds;
	struct kvt_hold_walk unhold[KVT_UNHOLDS];
	u32 nr_unhold;
	u64 log_lost;
	u32 nr_quarantined;
	u64 guaranteed_bytes;
	u64 guarded_bytes;			/* see kvt_kept.c */
	u64 beyond_bytes[KVT_KEPT_KINDS];	/* see kvt_kept.c */
	u64 weights;				/* see kvt_weight.c */
	struct kvt_fixed_all fixed;
	struct kvt_budget budget[KVT_BUDGETS];
	u64 meta_bytes;

	struct xarray ns;
	struct kvt_names names;
	u32 nr_ns;
	u64 next_ns_id;
	struct kvt_ids ids;
	struct kvt_ring __percpu *rings;
	struct kvt_counts __percpu *counts;
	atomic64_t lease_bytes;

	wait_queue_head_t moved[KVT_WAITQS];
	wait_queue_head_t room;
	wait_queue_head_t log_wait;
	struct list_head wants;
	struct kvt_wish wish;
	struct list_head over;
	spinlock_t up_lock;
	u32 nr_up;
	u32 up[KVT_UP_SIZE];
	u32 nr_put_off;
	struct kvt_frames frames;
	struct kvt_looks looks;
	u32 hurry[KVT_WAITQS];
	struct llist_head garbage;
	struct work_struct work;
	struct delayed_work tick;
	struct workqueue_struct *reclaim_wq;
	struct workqueue_struct *look_wq;
	struct workqueue_struct *up_wq[KVT_TIERS + 1][2];
	struct workqueue_struct *async_wq;
	struct workqueue_struct *log_wq;
	struct kvt_scrub scrub;
	struct work_struct async_work;
	struct kvt_async_queue async[KVT_WAITQS];
	DECLARE_BITMAP(async_marked, KVT_WAITQS);
	atomic_t nr_async;
	struct kvt_clock clock;
	u32 watermark_low_percent;
	u32 watermark_high_percent;
	u32 reserve_percent, copies_percent;	/* see ops_put.c, kvt_copy.c */
	u32 reservation_timeout_ms;
	bool discard;	/* see kvt_mlog_trim() */
};

enum kvt_lease_kind {
	KVT_HELD_NONE = 0,
	KVT_HELD_LEASE = 1,
	KVT_HELD_RESERVATION = 2,
};

/**
 * struct kvt_lease - what one handle stands for; 16 bytes
 * @block: id
 * @gen:   generation of the block's entry: a reservation taken back and reused is
 *         told apart by it
 * @hgen:  generation of the handle
 * @kind_next: enum kvt_lease_kind in the low 2 bits; free records: next << 2
 */
struct kvt_lease {
	u32 block;
	u32 gen;
	u32 hgen;
	u32 kind_next;
};

struct kvt_arena {
	u32 tier;
	u32 region;	/* KVT_NO_REGION: none */
	bool coming;	/* a call is about to set the above */
};

/**
 * struct kvt_file - one open file of a data device
 * @lock:      lease table
 * @ns:        set once by NS_OPEN; then constant
 * @id:        in pool->ids, from 1
 * @rdonly:    never writes
 * @log_seen:  pool->log_lost when fsync told of it last. Meta lock
 * @fill_mapped: the fill view was mapped at some time
 * @leases:    table of @max_leases records, @nr_leases in use
 * @free:      first free record + 1, 0: none
 * @arena:     one for each group. Lock
 * @sessions:  NULL before the first. ns->session_lock; meta lock to change or to read
 *             without that
 * @pace:       of its calls that read; no lock
 * @async_lock: what follows
 * @running:   asynchronous calls that wait
 * @done:      completions to be read
 * @nr_async:  outstanding and unread together
 */
struct kvt_file {
	struct kvt_pool *pool;
	struct file *file;
	struct kvt_ns *ns;
	u32 id;
	bool rdonly;
	bool fill_mapped;
	u64 log_seen;

	struct mutex lock;
	struct kvt_lease *leases;
	u32 max_leases;
	u32 nr_leases;
	u32 free;
	struct kvt_arena arena[KVTIER_GROUPS_MAX];
	struct kvt_sessions *sessions;
	struct kvt_pace pace;

	spinlock_t async_lock;
	struct list_head running;
	struct list_head done;
	u32 nr_async;
	wait_queue_head_t async_wait;
};

/* kvt_main.c */
extern struct mutex kvt_registry_lock;
extern struct class kvt_class;
extern dev_t kvt_devt;
struct inode *kvt_inode_alloc(void);

/* kvt_pool.c */
int kvt_pool_create(u32 *id);
int kvt_pool_destroy(u32 id);
struct kvt_pool *kvt_pool_make(u32 *id);
int kvt_pool_show(struct kvt_pool *p);
int kvt_pool_publish(struct kvt_pool *p);
void kvt_pool_unmake(struct kvt_pool *p, bool shown);
bool kvt_pool_is_up(const u8 *uuid);
struct kvt_pool *kvt_pool_get(u32 id);
void kvt_pool_put(struct kvt_pool *p);
u32 kvt_pool_ids(u32 *ids, u32 max);
int kvt_pool_grow(struct kvt_pool *p, u32 entries);
void kvt_pool_top_up(struct kvt_pool *p, u32 entries);
void kvt_pool_size_index(struct kvt_pool *p, u64 blocks);
void kvt_pool_meta_add(struct kvt_pool *p, s64 bytes);
void kvt_defer_free(struct kvt_pool *p, void *mem);
void kvt_garbage_free(struct kvt_pool *p);
u32 kvt_now_ms(void);
u32 kvt_now_s(void);
void kvt_count(struct kvt_pool *p, struct kvt_ns *ns, enum kvt_count what, u64 n);
u64 kvt_count_read(struct kvt_counts __percpu *counts, enum kvt_count what);

/* Time since @then; a moment later than @now (noted by another CPU) counts as now. */
static inline u32 kvt_age_ms(u32 now, u32 then)
{
	return max((s32)(now - then), 0);
}

/* kvt_file.c */
extern const struct file_operations kvt_data_fops;
int kvt_lease_prepare(struct kvt_file *f, u32 nr);
u64 kvt_lease_add(struct kvt_file *f, u32 block, u32 gen, enum kvt_lease_kind kind);
struct kvt_lease *kvt_lease_find(struct kvt_file *f, u64 handle, enum kvt_lease_kind kind);
void kvt_lease_del(struct kvt_file *f, struct kvt_lease *l);

/* kvt_ioctl.c */
extern const struct file_operations kvt_ctl_fops;
long kvt_data_ioctl(struct file *file, unsigned int cmd, unsigned long arg);
u64 kvt_ops_mask(bool ctl);
u64 kvt_features(void);

/* kvt_ns.c */
int kvt_op_ns_open(struct kvt_file *f, void *arg);
void kvt_ns_close(struct kvt_file *f);
void kvt_ns_reap(struct kvt_pool *p);
void kvt_ns_for_each(struct kvt_pool *p, void (*fn)(struct kvt_ns *ns, void *data), void *data);
void kvt_ns_free_all(struct kvt_pool *p);
bool kvt_ns_sane(const struct kvt_nsdef *def);
u64 kvt_mem_capacity(struct kvt_pool *p);
u64 kvt_ns_min_bytes(struct kvt_pool *p, const struct kvt_ns *ns);
int kvt_ns_adopt(struct kvt_pool *p, u32 idx, const struct kvt_nsdef *def);
int kvt_ns_claim(struct kvt_pool *p, const struct kvtier_ns_claim *c);
struct kvt_mind *kvt_ns_mind_of(const struct kvt_policy *policy, u32 idx);
static inline struct kvt_ns *kvt_ns_of(struct kvt_pool *p, u32 ns_group)
{
	return xa_load(&p->ns, ns_group >> 4);
}

/* A namespace's blocks take more, or less. Meta lock held. */
static inline void kvt_ns_use(struct kvt_ns *ns, s64 bytes)
{
	ns->used_bytes += bytes;
	if (ns->budgets)
		kvt_budget_charge(ns, bytes);
}

/* kvt_assemble.c */
int kvt_assemble(struct kvtier_pool_assemble *a);
ssize_t kvt_assemble_show(char *buf);

/* kvt_tier.c */
int kvt_tier_attach(struct kvt_pool *p, const struct kvtier_tier_attach *a,
		    const struct kvtier_range *bad, u32 *id);
int kvt_tier_detach(struct kvt_pool *p, u32 id, u64 timeout_ns, bool discard);
int kvt_tier_drain(struct kvt_pool *p, u32 id, u64 timeout_ns);
void kvt_tier_free_all(struct kvt_pool *p);
int kvt_tier_check(struct kvt_pool *p, const struct kvtier_tier_attach *a);
int kvt_tier_adopt(struct kvt_pool *p, struct kvt_tier *t);
void kvt_tier_disown(struct kvt_pool *p, struct kvt_tier *t);
u32 kvt_tier_snapshot(struct kvt_pool *p, struct kvt_tier **t, bool mem_only);
u64 kvt_tier_used_bytes(struct kvt_tier *t);
u64 kvt_tier_retired_bytes(struct kvt_tier *t);

/* A tier by id, or NULL; holds as long as srcu is held or a block keeps it in use. */
static inline struct kvt_tier *kvt_tier_at(struct kvt_pool *p, u32 id)
{
	/* Pairs with kvt_tier_publish(): a tier that is seen is complete. */
	return smp_load_acquire(&p->tiers[id]);
}

/*
 * Whoever waits for memory of a caller's cgroup, or for who may be doing that, holds no srcu: tiers
 * wait for that. But for kernel threads, which have no limit, and who has tiers wait for himself.
 */
static inline void kvt_assert_lingering(struct kvt_pool *p)
{
	lockdep_assert(current->flags & PF_KTHREAD || !debug_lockdep_rcu_enabled() ||
		       !srcu_read_lock_held(&p->srcu) || lockdep_is_held(&p->tier_lock));
}

static inline void kvt_file_lock(struct kvt_file *f)
{
	kvt_assert_lingering(f->pool);
	mutex_lock(&f->lock);
}

/* kvt_store.c: state changes of blocks. Meta lock held unless said otherwise */
enum kvt_found {
	KVT_FOUND_NOT,
	KVT_FOUND_MEM,		/* in memory */
	KVT_FOUND_LIMIT,	/* in memory, and not leased: see kvt_fixed.c */
	KVT_FOUND_LOG,		/* on a block tier only, nobody moves it */
	KVT_FOUND_MOVING,	/* between places for a moment */
	KVT_FOUND_FILLING,
};
enum kvt_found kvt_block_find(struct kvt_pool *p, u32 ns_group, const u8 *key, bool lease,
			      u32 *id, u32 *gen);	/* no lock */
u32 kvt_block_find_locked(struct kvt_pool *p, u32 ns_group, const u8 *key);
void kvt_block_publish(struct kvt_pool *p, u32 id);
void kvt_block_unhash(struct kvt_pool *p, u32 id);
void kvt_block_reap(struct kvt_pool *p, u32 id);
void kvt_block_die(struct kvt_pool *p, u32 id);
void kvt_block_kill(struct kvt_pool *p, u32 id);
void kvt_block_lose(struct kvt_pool *p, u32 id, enum kvt_why why);
void kvt_block_unread(struct kvt_pool *p, u32 id, struct kvt_tier *t);
bool kvt_block_expired(struct kvt_pool *p, u32 id);
void kvt_block_mem_set(struct kvt_pool *p, u32 id, struct kvt_tier *t, u32 page);
u32 kvt_block_mem_alloc(struct kvt_pool *p, struct kvt_tier *t, struct kvt_ns *ns, u32 group,
			u32 region, u32 id);
u32 kvt_block_mem_beside(struct kvt_pool *p, struct kvt_tier *t, u32 id);
void kvt_block_mem_beside_counts(struct kvt_pool *p, struct kvt_tier *t, u32 id);
bool kvt_ns_guarded(struct kvt_pool *p, const struct kvt_tier *t, const struct kvt_hot *h,
		    const struct kvt_ns *asker, u64 leaving_bytes);
void kvt_block_mem_free(struct kvt_pool *p, u32 tier, u32 page, u32 ns_group);
bool kvt_block_log_free(struct kvt_pool *p, u32 id);
void kvt_parked_retry(struct kvt_pool *p);
void kvt_block_wake(struct kvt_pool *p, u32 id);	/* no lock */
void kvt_lease_drop(struct kvt_pool *p, u32 id);	/* takes the lock if needed */
static inline struct kvt_group *kvt_group_of(struct kvt_pool *p, u32 ns_group)
{
	return &kvt_ns_of(p, ns_group)->group[ns_group & 15];
}

/* Of a block that stays what it is. */
static inline u64 kvt_block_bytes(struct kvt_pool *p, u32 id)
{
	return kvt_group_of(p, kvt_hot(&p->table, id)->ns_group)->block_bytes;
}

/* A READY block came to a tier, or left it. Meta lock held. */
static inline void kvt_tier_count_block(struct kvt_pool *p, struct kvt_tier *t, u32 ns_group,
					int n)
{
	struct kvt_ns *ns = kvt_ns_of(p, ns_group);
	struct kvt_group *g = &ns->group[ns_group & 15];

	lockdep_assert_held(&p->meta_lock);
	t->nr_blocks += n;
	g->own[t->id].nr_blocks += n;
	if (!t->ops->is_mem)
		kvt_limit_count(ns, t, g->slot_pages << KVT_PAGE_SHIFT, n);
}
static inline wait_queue_head_t *kvt_block_wq(struct kvt_pool *p, u32 id)
{
	return &p->moved[id % KVT_WAITQS];
}

/* kvt_session.c: sessions of open files, and what their chains hold */
void kvt_sessions_release(struct kvt_file *f);
void kvt_hold_lost(struct kvt_pool *p, u32 id);		/* meta lock held */
bool kvt_holds_settle(struct kvt_pool *p);
void kvt_holds_wait(struct kvt_pool *p);

/* kvt_copy.c: blocks in memory with a copy on a block tier. Meta lock held but as noted */
bool kvt_copy_keep(struct kvt_pool *p, u32 id);
bool kvt_copy_wanted(struct kvt_pool *p, u32 id);
void kvt_copy_unmade(struct kvt_pool *p, u32 id);
void kvt_copy_made(struct kvt_pool *p, u32 id);
struct kvt_tier *kvt_copy_tier(struct kvt_pool *p, u32 id);
bool kvt_copy_free(struct kvt_pool *p, u32 id);
bool kvt_copy_drop(struct kvt_pool *p, u32 id);
void kvt_copy_stale(struct kvt_pool *p, u32 id);
void kvt_copy_lost(struct kvt_pool *p, u32 id);
void kvt_copy_used(struct kvt_pool *p, u32 id, struct kvt_tier *from);
bool kvt_copy_instead(struct kvt_pool *p, u32 id, bool moving);
bool kvt_copy_saves(struct kvt_pool *p, u32 id, bool moving);
bool kvt_copy_shed(struct kvt_tier *t, u32 seg);	/* no lock, may sleep */
void kvt_copy_shed_all(struct kvt_tier *t);		/* no lock, may sleep */

/* kvt_poison.c: bad pages of memory tiers */
bool kvt_poison_look(struct kvt_tier *t, u32 page, u32 nr);	/* meta lock held */
void kvt_poison_found(struct kvt_tier *t, u32 page, u32 nr);
bool kvt_poison_told(struct kvt_tier *t, u32 page, u32 nr);
void kvt_poison_unmap(struct kvt_tier *t, u32 page, u32 nr);
void kvt_poison_scan(struct kvt_tier *t);

/* kvt_faults.c */
void kvt_block_fault(struct kvt_pool *p, u32 id, struct kvt_tier *t, u32 addr,
		     int err);	/* meta lock held */
void kvt_segment_write_fault(struct kvt_pool *p, struct kvt_tier *t, u32 seg);

/* kvt_fill.c: giving up reservations */
bool kvt_filling_mine(struct kvt_pool *p, u32 id, u32 gen, u32 owner);	/* meta lock held */
bool kvt_filling_claim(struct kvt_pool *p, u32 id, u32 gen, u32 owner);	/* meta lock held */
u64 kvt_fill_revoke(struct kvt_pool *p, const u32 *ids, u32 nr);
void kvt_filling_abort(struct kvt_pool *p, const u32 *ids, u32 nr, bool mapped);
void kvt_fill_lost(struct kvt_pool *p, struct kvt_tier *t);
bool kvt_limbo_check(struct kvt_pool *p);
void kvt_limbo_add(struct kvt_pool *p, struct kvt_tier *t, u32 page,
		   u32 ns_group);	/* meta lock held */

/* kvt_move.c: moves of claimed (MOVING) blocks between any two tiers */
#define KVT_MOVE_BATCH	32

#define KVT_NO_PUT	0xff

/**
 * struct kvt_mv - one block on its way
 * @x:      transfer; @x.src and @x.dst are the tiers
 * @id:     block, MOVING set by the caller
 * @placed: @x.dst_addr is taken
 * @retry:  out: some tier had room, but memory for a table was short or somebody
 *          else was faster
 * @clean:  to where its copy is: nothing is placed, run or written
 * @asked:  the policy admitted it to a tier that it would displace something in
 * @gone:   it was not worth a place, and is not the caller's any more
 * @evicted: of these, that it has left the pool
 * @held:   its source is memory that somebody refers to: an engine that was given up
 * @leased: out: kvt_mv_finish() took a lease
 * @spare:  see kvt_faults.c: a device that cannot read it does not cost the block
 * @over:   out: tier at whose limit its namespace is, KVT_NO_TIER: none refused it for that
 * @coming: its bytes are part of @coming in its namespace's share of @x.dst
 * @keep:   to memory, and nobody waits for it: pieces of a tier that are to stay free. Else 0
 * @put:    to a block tier: index of its batch in struct kvt_mlog_puts
 * @carried: from block tier to block tier: see struct kvt_carry, as the next two
 * @waits:  written, and not known to be durable
 * @stray:  @x.dst_addr is to be given back, and nothing else
 * @beside: within a memory tier: @x.dst_addr does not count yet
 * @flying: to a zoned device: its bytes were submitted, and are not waited for yet
 */
struct kvt_mv {
	struct kvt_xfer x;
	u32 id;
	bool placed;
	bool retry;
	bool clean;
	bool asked;
	bool gone;
	bool evicted;
	bool held;
	bool leased;
	bool spare;
	bool carried;
	bool waits;
	bool stray;
	bool beside;
	bool flying;
	bool coming;
	u8 over;
	u8 put;
	u32 keep;
};

/* Has a move no place yet, and wants one. */
static inline bool kvt_mv_idle(const struct kvt_mv *mv)
{
	return !mv->placed && !mv->clean && !mv->gone;
}

/**
 * struct kvt_carry - moves between block tiers, see kvt_carry.c
 * @link:    pool->carries, while any of them waits. Meta lock, as all of this then
 * @nr_left: who refers to it: the one who makes the moves, and those that wait
 * @nr:      moves
 */
struct kvt_carry {
	struct list_head link;
	u32 nr_left;
	u32 nr;
	struct kvt_mv mv[] __counted_by(nr);
};

void kvt_mv_start(struct kvt_pool *p, struct kvt_mv *mv, u32 id);
bool kvt_mv_place_mem(struct kvt_pool *p, struct kvt_mv *mv, struct kvt_tier *t);
void kvt_mv_place_beside(struct kvt_pool *p, struct kvt_mv *mv);	/* meta lock held */
bool kvt_mv_place_clean(struct kvt_pool *p, struct kvt_mv *mv);
void kvt_mv_cancel(struct kvt_pool *p, struct kvt_mv *mv);
void kvt_mv_stays(struct kvt_pool *p, u32 id);	/* meta lock held */
void kvt_mv_wait_kill(struct kvt_pool *p, const struct kvt_mv *mv, unsigned long end);
void kvt_mv_run(struct kvt_mv *mv, u32 nr);
bool kvt_mv_finish(struct kvt_pool *p, struct kvt_mv *mv, bool lease);
void kvt_mv_account(struct kvt_pool *p, struct kvt_mv *mv);	/* meta lock held */
void kvt_demoted(struct kvt_pool *p, u32 id, struct kvt_tier *from, struct kvt_tier *to,
		 bool clean);

/* kvt_carry.c */
struct kvt_mlog_puts;
struct kvt_wlog_done;
struct kvt_carry *kvt_carry_alloc(u32 nr);
void kvt_carry_put(struct kvt_pool *p, struct kvt_carry *c);
u32 kvt_mv_write(struct kvt_pool *p, struct kvt_mlog_puts *puts, struct kvt_mv *mv, u32 nr,
		 struct kvt_carry *c);
void kvt_carry_settle(struct kvt_pool *p, struct kvt_tier *t,
		      const struct kvt_wlog_done *d);	/* meta lock held */
void kvt_carry_retry(struct kvt_pool *p);	/* meta lock held */

/* kvt_reclaim.c */
void kvt_reclaim_work(struct work_struct *work);
void kvt_reclaim_tick(struct work_struct *work);
void kvt_reclaim_kick(struct kvt_pool *p);
int kvt_room_wait(struct kvt_pool *p, struct kvt_want *w, u64 deadline_ns);
void kvt_room_wish(struct kvt_pool *p, const struct kvt_want *w);
void kvt_room_wake(struct kvt_pool *p);
void kvt_promote_later(struct kvt_pool *p, const u32 *ids, u32 nr);

/* kvt_demote.c */
bool kvt_tier_over(struct kvt_pool *p, struct kvt_tier *t, u32 percent);
bool kvt_tier_has_lower(struct kvt_pool *p, struct kvt_tier *t);
u32 kvt_demote(struct kvt_pool *p, struct kvt_tier *t, const u32 *ids, u32 nr, bool any_tier);
bool kvt_evict_claimed(struct kvt_pool *p, u32 id, enum kvt_why why);	/* meta lock held */
u32 kvt_evict_some(struct kvt_pool *p, struct kvt_tier *t, u32 max, const struct kvt_ns *asker);
u32 kvt_lower_some(struct kvt_pool *p, struct kvt_tier *t, u32 max);
u32 kvt_collect(struct kvt_pool *p, struct kvt_tier *t, bool leaf, u32 ns_group,
		const struct kvt_ns *asker, u32 *ids, u32 max);
u32 kvt_collect_own(struct kvt_pool *p, struct kvt_tier *t, bool leaf, u32 ns_group,
		    u32 spare, u32 steps, u32 *ids, u32 max);	/* kvt_own.c, as the next one */
u32 kvt_evict_own(struct kvt_pool *p, struct kvt_tier *t, u32 ns_group, enum kvt_why why, u32 max);

/* kvt_evacuate.c */
bool kvt_region_drain(struct kvt_pool *p, struct kvt_tier *t, struct kvt_region *reg);
bool kvt_evacuate_drained(struct kvt_pool *p, struct kvt_tier *t, u32 r,
			  const struct kvt_ns *asker);
bool kvt_evacuate_region(struct kvt_pool *p, struct kvt_tier *t, u32 r, bool keep);
bool kvt_compact(struct kvt_pool *p, struct kvt_tier *t, u32 pieces);
bool kvt_compact_own(struct kvt_pool *p, struct kvt_tier *t, u32 ns_group, struct kvt_mv *mv);
void kvt_region_retire(struct kvt_pool *p, struct kvt_tier *t);
bool kvt_arena_room(struct kvt_pool *p, struct kvt_tier *t, u32 r, u32 ns_group);

/* kvt_promote.c, see kvt_promote.h too; kvt_up.c */
bool kvt_block_settled(struct kvt_pool *p, u32 id, u32 gen);
int kvt_block_wait(struct kvt_pool *p, u32 id, u32 gen, u64 deadline_ns);
void kvt_promote_up(struct kvt_pool *p, const u32 *ids, u32 nr);

u64 kvt_meta_bytes(struct kvt_pool *p);	/* meta lock held */

/* kvt_mmap.c */
int kvt_mmap(struct file *file, struct vm_area_struct *vma);
static inline u64 kvt_fill_base(u32 file_id)
{
	return (u64)file_id << KVT_WINDOW_BITS;
}

static inline u64 kvt_window_offset(const struct kvt_tier *t, u32 page)
{
	return t->window_offset + ((u64)page << KVT_PAGE_SHIFT);
}

/* kvt_sysfs.c */
extern const struct attribute_group *kvt_pool_groups[];
extern const struct attribute_group *kvt_class_groups[];
void kvt_sysfs_hide(struct kobject *kobj);
int kvt_sysfs_tier_add(struct kvt_tier *t);
void kvt_sysfs_tier_del(struct kvt_tier *t);
int kvt_sysfs_ns_add(struct kvt_ns *ns);
void kvt_sysfs_ns_del(struct kvt_ns *ns);

static inline u32 kvt_slot_bytes(const struct kvt_group *g)
{
	return g->slot_pages << KVT_PAGE_SHIFT;
}

/* Absolute monotonic deadline for a user's timeout; ~0: never. */
static inline u64 kvt_deadline(u64 timeout_ns)
{
	u64 now = ktime_get_ns();

	return timeout_ns > ~0ull - now ? ~0ull : now + timeout_ns;
}

/* What is left until a deadline, in jiffies, for the wait_event family; 0: over. */
static inline long kvt_deadline_jiffies(u64 deadline_ns)
{
	u64 now = ktime_get_ns(), left;

	if (deadline_ns == ~0ull)
		return MAX_SCHEDULE_TIMEOUT;
	if (deadline_ns <= now)
		return 0;
	left = min_t(u64, deadline_ns - now, 3600ull * NSEC_PER_SEC * 24);
	return (long)nsecs_to_jiffies(left) + 1;
}

#endif /* KVT_INTERNAL_H */
