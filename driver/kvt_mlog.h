/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A block tier's log as it lies on its device: the member.
 *
 * core/kvt_wlog.h decides what is written where and what must be durable before
 * what; here it is carried out. One struct kvt_mlog for each block tier.
 *
 *   kvt_mlog.c       life of a member: limits, superblocks, start and stop
 *   kvt_mlog_io.c    batches, flushes, footers, and what follows from their end
 *   kvt_mlog_put.c   places for blocks: records, namespaces, opening segments
 *   kvt_mlog_work.c  in the background: ends of segments, kills, what waits for room
 *   kvt_mlog_doom.c  segments that are given up with what is in them
 *   kvt_mlog_sync.c  waiting: fsync, DROP
 *   kvt_mlog_zone.c  writing in order, on zoned devices
 *
 * Locks, outermost first: put_lock[DEMOTE], put_lock[CARRY], io_lock, meta lock. A
 * head has an open batch only while its put_lock is held, and who waits for anything
 * but these locks and his own I/O has no batch that is open or not written. Batches
 * are written under none of them; footers, superblocks, flushes and discards under
 * io_lock.
 * Nobody waits under the meta lock.
 *
 * A block that goes from one block tier to another, or is carried forward by the
 * cleaner, is *carried*: it is where it was, and MOVING, until the batch with its new
 * record is durable. All others are where they go as soon as that is written.
 *
 * A member that fails a flush, or whose tier FAILED, is *given up*: nothing is written
 * to it any more, nobody waits for it, and what is there is only read. The others say in
 * their superblocks that it is of the past: it does not know what is dropped from now on,
 * so it must not be assembled with them again.
 */
#ifndef KVT_MLOG_H
#define KVT_MLOG_H

#include <linux/mutex.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "core/kvt_wlog.h"
#include "core/kvt_zone.h"

#define KVT_MLOG_PUTS	6u	/* batches that one group of moves may be spread over */
#define KVT_MLOG_NS_MAX	256u	/* definitions in a segment */
#define KVT_MLOG_GONE	64u	/* namespaces whose end is not written yet */
#define KVT_NS_ID_STEP	1024u

struct kvt_mv;
struct kvt_ns;
struct kvt_pool;
struct kvt_tier;

/**
 * struct kvt_mlog - a member
 * @tier:     its tier
 * @w:        the writer. Meta lock
 * @wmem:     the writer's memory
 * @geo:      layout; constant, @w refers to it
 * @super:    superblock as last read or written. io_lock
 * @put_lock: for each head: who adds to its open batch
 * @io_lock:  footer, superblock, flush or discard: one at a time
 * @wait:     something has become durable, or room has come
 * @work:     background; on the pool's log_wq
 * @running:  @work may be queued. Meta lock
 * @cookie:   never two members with the same
 * @nr_wait:  who waits for what is dead to be so for good
 * @nr_errors: writes of the background that failed in a row
 * @ids_hint: room for ids in the next segment. Meta lock
 * @header_lock: @header
 * @header:   for a batch when there is no memory
 * @buf:      KVT_RECOVER_BUF_MIN, and room for kvt_mlog_read(). put_lock[CARRY], as the next three
 * @kills:    cfg.max_kills
 * @ns:       cfg.max_ns
 * @ns_idx:   for each of them, of the namespace in pool->ns; 0: there is none
 * @refill:   some segment may lack its footer since a crash. The background's
 * @unread:   some dead segments could not be read when they were to be ended. Meta lock, as
 *            the next four
 * @reread_at: jiffies from which that is tried again
 * @reread_delay: before the next attempt but one, in jiffies
 * @outage:   since a segment could not be read none could
 * @outage_at: jiffies when that began
 * @no_room:  kills have no segment. The background's, as the next
 * @no_room_at: jiffies since when
 * @tick_at:  jiffies before which kvt_mlog_tick() does not ask for that again. The pool's worker's
 * @probe_at: jiffies before which nothing is emptied, since the device could not be read. Meta lock,
 *            as the next
 * @probe_delay: that it was put off for, in jiffies; 0: it was not
 * @kept:     stopped so that it is found again
 * @wiping:   its superblocks are being wiped. Meta lock, as the next one
 * @wiped:    it has none any more
 * @lost:     given up: no member any more for the others. Meta lock, as the next three
 * @leaver:   for kvt_leaver_add()
 * @telling:  pool->leavers.tell when the newest superblock was made
 * @told:     ... when the newest durable one was made
 * @retire_at: jiffies before which worn segments are left alone. Meta lock, as @retire_delay
 * @retire_delay: after the next attempt in vain, in jiffies; 0: none was
 * @retire_seg: where to begin then. The pool's worker's
 * @gone:     namespaces that ended, and their kvt_ns_home's @first; @nr_gone of them. Meta lock
 * @turn:     NULL, or the device is zoned: for each segment the unit whose batch is to be
 *            written next. Meta lock; see kvt_mlog_zone.c, as for the next two
 * @zero:     zeroes
 * @nr_filling: footers whose segment is being filled up to them
 * @slog:     where superblocks go. io_lock
 */
struct kvt_mlog {
	struct kvt_tier *tier;
	struct kvt_wlog w;
	void *wmem;
	struct kvt_geometry geo;
	struct kvt_super super;
	struct mutex put_lock[KVT_HEADS];
	struct mutex io_lock;
	wait_queue_head_t wait;
	struct work_struct work;
	bool running;
	u64 cookie;
	atomic_t nr_wait;
	atomic_t nr_errors;
	u32 ids_hint;
	struct mutex header_lock;
	void *header;
	u8 *buf;
	struct kvt_kill *kills;
	struct kvt_nsdef *ns;
	u32 ns_idx[KVT_MLOG_NS_MAX];
	struct {
		u64 id;
		u64 first;
	} gone[KVT_MLOG_GONE];
	u32 nr_gone;
	u32 *turn;
	void *zero;
	atomic_t nr_filling;
	struct kvt_super_log slog;
	bool refill;
	bool unread;
	unsigned long reread_at;
	unsigned long reread_delay;
	bool outage;
	unsigned long outage_at;
	bool no_room;
	unsigned long no_room_at;
	unsigned long tick_at;
	unsigned long probe_at;
	unsigned long probe_delay;
	bool kept;
	bool wiping;
	bool wiped;
	bool lost;
	struct kvt_leaver *leaver;
	u32 telling;
	u32 told;
	unsigned long retire_at;
	unsigned long retire_delay;
	u32 retire_seg;
};

/**
 * struct kvt_mlog_puts - batches that a group of moves was placed in
 * @nr: how many; @b: they, closed, to be written by kvt_mlog_write()
 * @full: some had no place because no segment was free
 */
struct kvt_mlog_puts {
	u32 nr;
	bool full;
	struct {
		struct kvt_mlog *m;
		struct kvt_wlog_io io;
	} b[KVT_MLOG_PUTS];
};

/* kvt_mlog_io.c */
int kvt_mlog_rw(struct kvt_tier *t, u64 byte, void *buf, u32 len, bool write);
int kvt_mlog_read(struct kvt_tier *t, u64 byte, void *buf, u32 len);
int kvt_mlog_flush_dev(struct kvt_tier *t);
int kvt_mlog_write_header(struct kvt_mlog *m, const struct kvt_wlog_io *io);
void kvt_mlog_write_empty(struct kvt_mlog *m, const struct kvt_wlog_io *io);
bool kvt_mlog_progress(struct kvt_mlog *m);
bool kvt_mlog_flush_locked(struct kvt_mlog *m);
void kvt_mlog_advance(struct kvt_mlog *m);
void kvt_mlog_wake_others(struct kvt_mlog *m);	/* meta lock held */
void kvt_mlog_lose(struct kvt_mlog *m);	/* meta lock held */
void kvt_mlog_give_up(struct kvt_tier *t, const char *why);

/* kvt_mlog.c */
void kvt_tier_set_geometry(struct kvt_tier *t, const struct kvt_geometry *geo);
int kvt_mlog_alloc(struct kvt_tier *t, const struct kvt_geometry *geo);
int kvt_mlog_look_super(struct kvt_tier *t, u32 slot, struct kvt_super_pick *pick, void *block);
int kvt_mlog_check_free(struct kvt_tier *t);
int kvt_mlog_format(struct kvt_tier *t);
int kvt_mlog_start(struct kvt_tier *t);
void kvt_mlog_leave(struct kvt_tier *t);
void kvt_mlog_stop(struct kvt_tier *t, bool keep);
void kvt_mlog_free(struct kvt_tier *t);
int kvt_mlog_write_super(struct kvt_mlog *m, bool clean);
int kvt_mlog_update_supers(struct kvt_pool *p);

/* kvt_mlog_zone.c */
int kvt_mzone_alloc(struct kvt_mlog *m);
void kvt_mzone_free(struct kvt_mlog *m);
int kvt_mzone_fill(struct kvt_mlog *m, u32 seg, u32 from, u32 unit);
u32 kvt_mzone_first(struct kvt_mlog *m, u32 seg);
void kvt_mzone_finish(struct kvt_mlog *m, u32 seg);
void kvt_mzone_others(struct kvt_mlog *m);
void kvt_mzone_start(struct kvt_mlog *m);
void kvt_mzone_opened(struct kvt_mlog *m, u32 seg);
void kvt_mzone_prepare(struct kvt_mv *mv, u32 nr, u32 put);
int kvt_mzone_write(struct kvt_mlog *m, const struct kvt_wlog_io *io, struct kvt_mv *mv, u32 nr,
		    u32 put);
int kvt_mzone_look_super(struct kvt_tier *t, u32 zone, struct kvt_super_pick *pick, void *block);
void kvt_mzone_found_super(struct kvt_mlog *m, u32 zone);
int kvt_mzone_write_super(struct kvt_mlog *m, void *block);
int kvt_mzone_wipe(struct kvt_mlog *m, bool all);

/* kvt_assemble_refill.c */
bool kvt_mlog_refill(struct kvt_mlog *m);

/* kvt_mlog_put.c */
u32 kvt_mlog_place(struct kvt_tier *t, enum kvt_log_head head, struct kvt_mv *mv, u32 nr,
		   struct kvt_mlog_puts *puts);
bool kvt_mlog_open(struct kvt_mlog *m, enum kvt_log_head head, u32 units, bool urgent,
		   enum kvt_wlog_status *st);
void kvt_mlog_nsdef(const struct kvt_ns *ns, struct kvt_nsdef *d);

/* kvt_mlog_work.c */
void kvt_mlog_work(struct work_struct *work);
void kvt_mlog_kick(struct kvt_mlog *m);
bool kvt_mlog_end_one(struct kvt_mlog *m);
bool kvt_mlog_reap(struct kvt_mlog *m, bool need);
bool kvt_mlog_starved(const struct kvt_mlog *m);	/* meta lock held */
bool kvt_mlog_step(struct kvt_mlog *m, bool urgent);
bool kvt_mlog_end_seg(struct kvt_mlog *m, u32 seg);
void kvt_mlog_outage(struct kvt_mlog *m, bool failed);	/* meta lock held */
void kvt_mlog_tick(struct kvt_mlog *m);

/* kvt_mlog_doom.c */
bool kvt_mlog_doom(struct kvt_mlog *m, u32 seg);
bool kvt_mlog_dooms(struct kvt_mlog *m);
bool kvt_doom_spares(struct kvt_pool *p, u32 id);	/* meta lock held */
void kvt_doom_look(struct kvt_pool *p, u32 id);		/* meta lock held */

/* kvt_mlog_sync.c */
int kvt_mlog_fsync(struct kvt_pool *p, u64 *seen);
int kvt_mlog_fence(struct kvt_pool *p, struct kvt_ns *ns);
void kvt_mlog_ns_gone(struct kvt_pool *p, struct kvt_ns *ns);

#endif /* KVT_MLOG_H */
