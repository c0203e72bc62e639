/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Writer of a member: what is written where, and what must be durable before what.
 *
 * It sits on a kvt_log, which knows which units are taken and live, and adds what
 * makes them findable after a crash: batches, lives, kills, summaries. It does no
 * I/O. The caller carries out what it is told and reports back; any number of writes
 * may be under way and end in any order.
 *
 *   put, ns, free     collect entries for the head's open batch
 *   close, build      the batch is complete: header and payload can go out
 *   written           the write is over; blocks that were not carried are there
 *   flush_start/done  around a flush of the device
 *   advance           what is durable now? Called until it has nothing more to tell;
 *                     carried blocks are at their new place when it tells
 *
 * Rules kept here, so that a crash at any moment loses nothing that was durable and
 * brings nothing back that was dead for good:
 *
 *   R1  A segment that died is reused only when its end is durable: a kill of all
 *       that is in it. Nor is it discarded before that. Where a block was carried
 *       from counts as live until the new copy is durable.
 *   R2  The end is one batch with all kills and namespace definitions that the
 *       segment still holds for others (of definitions, unless one that is no older is
 *       durable elsewhere): both become durable at once. What a batch held
 *       whose write failed is among them if it is there: if that batch was itself an
 *       end, it counts, and was the only one to hold it.
 *   R3  A footer is written when a flush has covered all batches of its segment.
 *   R4  A superblock is written when a flush has covered all that was written; the
 *       next one only when it is durable.
 *   R5  A batch is durable when a flush that was started after its write ended has
 *       ended, and the batches before it in its segment are durable: recovery walks
 *       from the first, and stops at one that is not whole.
 *   R6  Nothing is written before a superblock is durable that says that there may
 *       be something unsealed, and which lives and sequences may have been used.
 *
 * A *kill* says that the record at a unit of a segment's life is dead. Kills wait in
 * a ring of fixed size until some batch has room for them; they leave it when that
 * batch is durable. A kill that is lost in a crash revives a block that was evicted,
 * never one that was dropped: DROP waits for a *fence*.
 *
 * A *life* is a number that a segment gets when it is opened, never used before on
 * the member. Life 0 is none.
 *
 * Lock: all functions under the pool's meta lock. None sleeps.
 */
#ifndef KVT_WLOG_H
#define KVT_WLOG_H

#include "kvt_format.h"
#include "kvt_log.h"
#include "kvt_recover.h"

#define KVT_BATCH_BLOCKS	256u
#define KVT_BATCH_BYTES		(8u << 20)
#define KVT_WLOG_BATCHES	16u	/* open, or written and not durable */
#define KVT_WLOG_OPENS		4u	/* segments open, or sealed and without footer */
#define KVT_WLOG_FAULTS_MAX	3u	/* in one life of a segment, then it is worn */
#define KVT_WLOG_SEGS_MIN	6u	/* two open, two kept, one cleaned, one ending */
#define KVT_WLOG_LIFE_STEP	(1ULL << 32)
#define KVT_WLOG_SEQ_STEP	(1ULL << 40)

/* What a call wants to be done first; then it is to be called again. */
enum kvt_wlog_status {
	KVT_W_OK = 0,
	KVT_W_NONE,	/* there is nothing to do */
	KVT_W_CLOSE,	/* close the head's batch */
	KVT_W_SEGMENT,	/* kvt_wlog_open() a segment for the head */
	KVT_W_NS,	/* define the namespace with kvt_wlog_ns() */
	KVT_W_KILLS,	/* the ring of kills is full: have some written, and flush */
	KVT_W_BUSY,	/* wait for a write or flush under way */
	KVT_W_FLUSH,	/* flush the device */
	KVT_W_SUPER,	/* write a superblock, and flush */
	KVT_W_SPACE,	/* no segment can be had: end, clean or doom one */
	KVT_W_NEVER,	/* cannot be done at all */
};

struct kvt_wlog;

/**
 * struct kvt_wlog_cfg - limits, chosen once
 * @geo:        layout; must stay
 * @log:        empty, for @geo->nr_segs segments of @geo->seg_units; must stay
 * @seq:        the pool's sequence, shared by its members
 * @member:     no other writer of the pool has or had this number. Not 0
 * @batch_blocks: most blocks in a batch, up to KVT_BATCH_BLOCKS
 * @batch_bytes: most payload in a batch, unless one block has more
 * @max_blocks: most blocks in a segment
 * @max_ns:     most namespace definitions in a segment
 * @max_kills:  most kills in a segment. Namespaces and kills must fit one header
 * @ring:       most kills that wait, a power of two
 * @free_aim:   free segments below which dead ones are ended. Not before, because
 *              what they hold for others would have to be written anew each time.
 *              Less than a quarter of @max_kills
 * @trim:       segments are discarded before they are free again
 */
struct kvt_wlog_cfg {
	const struct kvt_geometry *geo;
	struct kvt_log *log;
	u64 *seq;
	u64 member;
	u32 batch_blocks;
	u32 batch_bytes;
	u32 max_blocks;
	u32 max_ns;
	u32 max_kills;
	u32 ring;
	u32 free_aim;
	bool trim;
};

/**
 * struct kvt_ns_home - where the newest definition of a namespace is, on one member
 * @member:  cfg.member of the writer that has filled this in; to others it says nothing
 * @life:    of the segment, 0: not known
 * @ordinal: of the batch
 * @first:   there is no definition in a segment of an earlier life, 0: not known
 * @seg:     segment
 *
 * A definition must not go before it is somewhere else. Each segment has one of each namespace
 * with blocks in it, so most need not be carried when a segment ends; and if all were, the
 * ends of two segments with many would need a new segment each.
 */
struct kvt_ns_home {
	u64 member;
	u64 life;
	u64 ordinal;
	u64 first;
	u32 seg;
};

/* Where a segment is on its way from EMPTY to FREE. */
enum kvt_wseg_phase {
	KVT_WSEG_NONE = 0,
	KVT_WSEG_ENDING,	/* its end is in a batch that is not durable */
	KVT_WSEG_TRIM,		/* its end is durable; it is to be discarded first */
};

/**
 * struct kvt_wseg - what the writer knows of a segment
 * @life:       of what is, or was last, written to it
 * @media_life: the newest that is durable: what recovery would find
 * @ended:      the life whose end is durable
 * @wait:       ENDING: ordinal of the batch
 * @doom:       number of the doom, 0: not doomed
 * @closing:    it is being looked through for what keeps it from being doomed. The caller's
 * @nr_entries: kills and namespaces in it, of batches that recovery will find
 * @nr_lost:    likewise, of batches that it may find: their write failed, but who knows
 * @nr_defs:    definitions among @nr_entries, about: of namespaces that have not ended
 * @nr_home:    of these, the newest ones, about: those that may have to be carried
 * @nr_kills:   kills among @nr_entries
 * @nr_light:   of these, about: those that do not count when it is to be ended
 * @nr_killed:  kills of its own records, wherever they are; at least that many
 * @fresh:      kvt_wlog.obsoleted when it was begun; 0 if a restart has found it
 * @phase:      enum kvt_wseg_phase
 * @unsealed:   left by a crash without a footer
 * @hopeless:   and it will not get one
 * @unread_ms:  when it could not be read for the first time, if it cannot; else 0. The caller's,
 *              as @no_end
 * @no_end:     it cannot be ended now: what it holds for others cannot be read, or is too much
 * @bad:        not to be used again
 * @worn:       the same, because of faults; until it is empty
 * @faults:     times that something in this life could not be read back, up to
 *              KVT_WLOG_FAULTS_MAX
 */
struct kvt_wseg {
	u64 life;
	u64 media_life;
	u64 ended;
	u64 wait;
	u64 doom;
	u32 nr_entries;
	u32 nr_lost;
	u32 nr_defs;
	u32 nr_home;
	u32 nr_kills;
	u32 nr_light;
	u32 nr_killed;
	u32 unread_ms;
	u64 fresh;
	u8 phase;
	bool closing;
	bool unsealed;
	bool hopeless;
	bool no_end;
	bool bad;
	bool worn;
	u8 faults;
};

/* What became of a record while its segment has no footer. */
enum kvt_wrec_mark {
	KVT_WREC_LIVE = 0,
	KVT_WREC_DEAD,		/* its kill is taken care of */
	KVT_WREC_OMIT,		/* never gets to the media */
	KVT_WREC_VOID,		/* is to be killed when its batch is durable */
};

struct kvt_wrec {
	struct kvt_rec rec;
	u8 mark;
};

enum kvt_wopen_state {
	KVT_WOPEN_FREE = 0,
	KVT_WOPEN_OPEN,
	KVT_WOPEN_FILL,		/* being collected again after a crash */
	KVT_WOPEN_SEALING,	/* waits for its batches */
	KVT_WOPEN_FOOTER,	/* footer being written */
	KVT_WOPEN_FOOTED,	/* waits for a flush */
	KVT_WOPEN_FAILED,	/* footer could not be written */
};

/**
 * struct kvt_wopen - a segment without a durable footer, and all its entries
 * @batch: index of its open batch, KVT_WLOG_BATCHES: none
 * @broken: a batch failed: no more go into it
 * @flush: flush that makes the footer durable, or, before, the batches found
 */
struct kvt_wopen {
	u8 state;
	bool broken;
	u32 seg;
	u32 head;
	u32 batch;
	u32 nr_batches;
	u32 nr_ns;
	u32 nr_blocks;
	u32 nr_kills;
	u32 ns_hint;
	u64 life;
	u64 flush;
	struct kvt_nsdef *ns;
	struct kvt_wrec *blocks;
	struct kvt_kill *kills;
};

enum kvt_wbatch_state {
	KVT_WBATCH_FREE = 0,
	KVT_WBATCH_OPEN,
	KVT_WBATCH_CLOSED,
	KVT_WBATCH_WRITTEN,
	KVT_WBATCH_FAILED,
	KVT_WBATCH_DURABLE,	/* or lost; kills of sources and voids are to come */
};

/* Where a block was carried from; gone when the new record, @rec, is durable. */
struct kvt_wsrc {
	struct kvt_wlog *log;
	u32 unit;
	u32 units;
	u32 rec;
};

/**
 * struct kvt_wbatch - a batch that is open, or not known to be durable
 * @lost:    it will not be found by recovery
 * @told:    kvt_wlog_advance() has reported it
 * @cut:     an end did not fit
 * @open:    index of its segment's kvt_wopen
 * @number:  in the segment
 * @used_bytes: of the header
 * @first_id: of its blocks in the segment's ids
 * @nr_src:  sources whose end is still to come
 * @nr_ends: segments that end with it
 * @drained: blocks looked at for VOID
 * @flush:   flush that covers it
 * @seq:     highest in it
 */
struct kvt_wbatch {
	u8 state;
	bool lost;
	bool told;
	bool cut;
	u32 open;
	u32 seg;
	u32 unit;
	u32 number;
	u32 header_units;
	u32 payload_units;
	u32 used_bytes;
	u32 first_ns;
	u32 nr_ns;
	u32 first_block;
	u32 nr_blocks;
	u32 first_kill;
	u32 nr_kills;
	u32 first_id;
	u32 nr_src;
	u32 nr_ends;
	u32 drained;
	u64 ordinal;
	u64 flush;
	u64 seq;
	struct kvt_wsrc *src;
};

/* A kill in the ring; @batch: ordinal, 0: pending, KVT_WKILL_DONE. */
struct kvt_wkill {
	struct kvt_kill kill;
	u64 batch;
};

#define KVT_WKILL_DONE		U64_MAX

/**
 * struct kvt_wlog - the writer
 * @ordinal:    of the newest batch
 * @next_life:  for the next segment opened
 * @life_limit: durable in the superblock, as @seq_limit; 0: nothing may be written
 * @head, @tail: of the ring: kills before @tail are durable
 * @take:       no kill before it is pending
 * @nr_pending: kills in no batch
 * @flush_started: number of the newest flush
 * @flush_done: all that was written before this flush was started is durable
 * @write_flush: flush that covers the last write that ended
 * @found_flush: flush that covers what recovery has read
 * @generation: of the newest superblock written
 * @super_before: of the one before it, which is durable
 * @super_burnt: generations used since, in writes that failed
 * @super_flush: flush that makes it durable
 * @nr_doomed:  segments doomed and not ended
 * @dooms:      number of the last doom
 * @nr_worn:    segments worn and not empty for good
 * @nr_trim:    segments that wait for kvt_wlog_trimmed()
 * @obsoleted:  kills that have become obsolete, at least, in whatever segments they are
 * @nr_lost:    batches that could not be made durable
 * @given_up:   see kvt_wlog_give_up()
 * @awaited:    others' batches wait for room in the ring: see kvt_wlog_wakes()
 * @nudged:     a batch, maybe another's, has begun to wait for that, or has taken the last
 *              block out of what is doomed: there may be work. The caller clears it
 */
struct kvt_wlog {
	struct kvt_wlog_cfg cfg;
	struct kvt_wseg *segs;
	struct kvt_wopen opens[KVT_WLOG_OPENS];
	struct kvt_wbatch batches[KVT_WLOG_BATCHES];
	u32 head_open[KVT_HEADS];
	u64 ordinal;
	u64 next_life;
	u64 life_limit;
	u64 seq_limit;
	struct kvt_wkill *ring;
	u64 head;
	u64 tail;
	u64 take;
	u32 nr_pending;
	u64 flush_started;
	u64 flush_done;
	u64 write_flush;
	u64 found_flush;
	u64 generation;
	u64 super_before;
	u64 super_burnt;
	u64 super_flush;
	u64 super_life;
	u64 super_seq;
	u8 super_state;
	bool super_dirty;
	u32 nr_doomed;
	u64 dooms;
	u32 nr_worn;
	u32 nr_trim;
	u64 obsoleted;
	u64 nr_lost;
	bool given_up;
	bool awaited;
	bool nudged;
};

/**
 * struct kvt_wlog_put - a block to be written
 * @rec:       all but unit, seq and sum
 * @id:        its id
 * @src_log:   it is carried: where its only durable copy is, NULL: nowhere
 * @src_unit:  likewise
 * @src_units: likewise
 */
struct kvt_wlog_put {
	const struct kvt_rec *rec;
	u32 id;
	struct kvt_wlog *src_log;
	u32 src_unit;
	u32 src_units;
};

/**
 * struct kvt_wlog_io - a batch to be written
 * @batch: handle, until it is durable
 * @seg:   where; @unit within it
 * @header_units: to be built by kvt_wlog_build(), then
 * @payload_units: of its blocks, at the addresses that kvt_wlog_put() gave
 */
struct kvt_wlog_io {
	u32 batch;
	u32 seg;
	u32 unit;
	u32 header_units;
	u32 payload_units;
};

/**
 * struct kvt_wlog_footer - a footer to be written
 * @handle: for kvt_wlog_footer_written()
 * @seg:    where
 * @fill:   units written so far; from here to @unit nothing is, but on zoned devices
 *          zeroes must be
 * @unit:   where summary and footer go, up to the end of the segment
 */
struct kvt_wlog_footer {
	u32 handle;
	u32 seg;
	u32 fill;
	u32 unit;
};

/**
 * struct kvt_wlog_done - a batch whose fate is known
 *
 * Its carried blocks are at their new addresses from this moment on, and where they
 * were is the writer's to give back; or, after an error, they are where they were,
 * and the caller gives back the new addresses with kvt_wlog_free().
 *
 * @seg:      where it is
 * @first_id: its blocks in the segment's ids; those not there any more included
 * @nr_ids:   likewise
 * @unit:     address of its payload: an id may have got another block since, even
 * @units:    one in the same segment, but not at these addresses
 * @err:      0: durable; -EIO: it could not be written, or will not be found again.
 *            Its kills wait again; namespaces are to be defined again by the caller
 */
struct kvt_wlog_done {
	u32 seg;
	u32 first_id;
	u32 nr_ids;
	u32 unit;
	u32 units;
	int err;
};

/**
 * struct kvt_wlog_fence - a moment; passed when what was dead then is so for good
 */
struct kvt_wlog_fence {
	u64 batch;
	u64 kill;
	u64 doom;
};

/* What kvt_wlog_work() finds to be done in the background. */
#define KVT_WORK_FOOTER		0x1u	/* kvt_wlog_footer() */
#define KVT_WORK_END		0x2u	/* a segment should be ended */
#define KVT_WORK_FLUSH		0x4u	/* something waits for a flush */
#define KVT_WORK_KILLS		0x8u	/* half of the ring is pending */
#define KVT_WORK_TRIM		0x10u	/* kvt_wlog_next_trim() has one */
#define KVT_WORK_PAYS		0x20u	/* ... ended, also if nobody waits for room: see kvt_wlog_end_pays() */

/* kvt_wlog.c */
size_t kvt_wlog_mem_bytes(const struct kvt_wlog_cfg *cfg);
int kvt_wlog_init(struct kvt_wlog *w, const struct kvt_wlog_cfg *cfg, void *mem);
enum kvt_wlog_status kvt_wlog_open(struct kvt_wlog *w, enum kvt_log_head head, u32 *ids,
				   u32 max_ids, bool urgent);
enum kvt_wlog_status kvt_wlog_put(struct kvt_wlog *w, enum kvt_log_head head,
				  const struct kvt_wlog_put *p, u32 *unit);
enum kvt_wlog_status kvt_wlog_ns(struct kvt_wlog *w, enum kvt_log_head head,
				 struct kvt_nsdef *def, struct kvt_ns_home *home, u32 stored);
void kvt_wlog_unhome(struct kvt_wlog *w, struct kvt_ns_home *home);
u64 kvt_wlog_first_life(const struct kvt_wlog *w);
void kvt_wlog_set_sum(struct kvt_wlog *w, u32 unit, u32 sum);
enum kvt_wlog_status kvt_wlog_start_kills(struct kvt_wlog *w, enum kvt_log_head head);
enum kvt_wlog_status kvt_wlog_close(struct kvt_wlog *w, enum kvt_log_head head,
				    struct kvt_wlog_io *io);
void kvt_wlog_build(struct kvt_wlog *w, u32 batch, void *header);
enum kvt_wlog_status kvt_wlog_seal(struct kvt_wlog *w, enum kvt_log_head head);
u32 kvt_wlog_footer_bytes(const struct kvt_wlog *w);
enum kvt_wlog_status kvt_wlog_footer(struct kvt_wlog *w, void *buf,
				     struct kvt_wlog_footer *io);

/* kvt_wlog_end.c */
void kvt_wlog_written(struct kvt_wlog *w, u32 batch, int err);
void kvt_wlog_footer_written(struct kvt_wlog *w, u32 handle, int err);
u64 kvt_wlog_flush_start(struct kvt_wlog *w);
void kvt_wlog_flush_done(struct kvt_wlog *w, u64 flush);
bool kvt_wlog_advance(struct kvt_wlog *w, struct kvt_wlog_done *d);
bool kvt_wlog_owes(const struct kvt_wlog *w);
bool kvt_wlog_wakes(struct kvt_wlog *w);
u32 kvt_wlog_work(const struct kvt_wlog *w);
enum kvt_wlog_status kvt_wlog_free(struct kvt_wlog *w, u32 unit, u32 units);
void kvt_wlog_unput(struct kvt_wlog *w, u32 unit, u32 units);
u32 kvt_wlog_kill_room(const struct kvt_wlog *w);
enum kvt_wlog_status kvt_wlog_kill(struct kvt_wlog *w, u32 seg, u32 unit, u64 life);
void kvt_wlog_fence(const struct kvt_wlog *w, struct kvt_wlog_fence *f);
bool kvt_wlog_fence_passed(const struct kvt_wlog *w, struct kvt_wlog_fence *f);
void kvt_wlog_sync(const struct kvt_wlog *w, struct kvt_wlog_fence *f);
void kvt_wlog_give_up(struct kvt_wlog *w);

/* kvt_wlog_seg.c */
bool kvt_wlog_may_end(const struct kvt_wlog *w, u32 seg);
u32 kvt_wlog_next_end(const struct kvt_wlog *w);
bool kvt_wlog_end_pays(const struct kvt_wlog *w);
bool kvt_wlog_empty_pays(const struct kvt_wlog *w, u32 seg);
bool kvt_wlog_end_urgent(const struct kvt_wlog *w, u32 seg);
bool kvt_wlog_stuck(const struct kvt_wlog *w);
bool kvt_wlog_holds(const struct kvt_wlog *w, u32 seg);
bool kvt_wlog_write_fault(struct kvt_wlog *w, u32 seg);
bool kvt_wlog_held_all(const struct kvt_wlog *w, u32 seg, const struct kvt_seg_found *f);
enum kvt_wlog_status kvt_wlog_end_start(struct kvt_wlog *w, u32 nr_kills, u32 nr_ns);
void kvt_wlog_end_kill(struct kvt_wlog *w, const struct kvt_kill *k);
bool kvt_wlog_ns_needed(const struct kvt_wlog *w, u32 seg, const struct kvt_nsdef *def);
enum kvt_wlog_status kvt_wlog_end(struct kvt_wlog *w, u32 seg);
u32 kvt_wlog_next_trim(const struct kvt_wlog *w);
void kvt_wlog_trimmed(struct kvt_wlog *w, u32 seg);
void kvt_wlog_doom(struct kvt_wlog *w, u32 seg);
bool kvt_wlog_fault(struct kvt_wlog *w, u32 seg);
void kvt_wlog_restore(struct kvt_wlog *w, u32 seg, const struct kvt_seg_found *f, u64 ended);
void kvt_wlog_restored(struct kvt_wlog *w, const struct kvt_super *s, u64 max_seq);
enum kvt_wlog_status kvt_wlog_refill(struct kvt_wlog *w, u32 seg, u32 *handle);
bool kvt_wlog_refill_block(struct kvt_wlog *w, u32 handle, const struct kvt_rec *r);
bool kvt_wlog_refill_ns(struct kvt_wlog *w, u32 handle, const struct kvt_nsdef *d);
bool kvt_wlog_refill_kill(struct kvt_wlog *w, u32 handle, const struct kvt_kill *k);
void kvt_wlog_refilled(struct kvt_wlog *w, u32 handle, u32 nr_batches, bool keep);
enum kvt_wlog_status kvt_wlog_super(struct kvt_wlog *w, struct kvt_super *s, bool clean,
				    u32 *slot);
void kvt_wlog_super_written(struct kvt_wlog *w, int err);
bool kvt_wlog_quiet(const struct kvt_wlog *w);
bool kvt_wlog_super_durable(const struct kvt_wlog *w);
u64 kvt_wlog_generation(const struct kvt_wlog *w);

/* Between these files */
struct kvt_wopen *kvt_wopen_of(struct kvt_wlog *w, u32 seg);
struct kvt_wrec *kvt_wrec_find(struct kvt_wopen *o, u32 unit);
struct kvt_wbatch *kvt_wbatch_of_rec(struct kvt_wlog *w, const struct kvt_wopen *o, u32 rec);
enum kvt_wlog_status kvt_wbatch_start(struct kvt_wlog *w, enum kvt_log_head head, u32 nr_ns,
				      u32 nr_blocks, u32 nr_kills, u32 units, bool urgent);
bool kvt_wbatch_add_kill(struct kvt_wlog *w, struct kvt_wbatch *b, const struct kvt_kill *k,
			 u32 max_kills);
bool kvt_wlog_kill_needed(const struct kvt_wlog *w, const struct kvt_kill *k);
bool kvt_wlog_kill_outlives(const struct kvt_wlog *w, u32 seg, const struct kvt_kill *k);
void kvt_wlog_ring_trim(struct kvt_wlog *w);
void kvt_wopen_break(struct kvt_wlog *w, struct kvt_wopen *o, bool first);

/**
 * kvt_wlog_durable_seq() - up to which ordinal all batches are durable
 * @w: writer
 */
static inline u64 kvt_wlog_durable_seq(const struct kvt_wlog *w)
{
	u64 seq = w->ordinal;
	u32 i;

	for (i = 0; i < KVT_WLOG_BATCHES; i++) {
		if (w->batches[i].state != KVT_WBATCH_FREE)
			seq = min(seq, w->batches[i].ordinal - 1);
	}
	return seq;
}

static inline struct kvt_wkill *kvt_wlog_ring_at(const struct kvt_wlog *w, u64 pos)
{
	return &w->ring[pos & (w->cfg.ring - 1)];
}

/* Would kvt_wlog_free() be heard now; false also if it might be, all the same. */
static inline bool kvt_wlog_may_free(const struct kvt_wlog *w, u32 unit)
{
	return w->given_up || w->head - w->tail < w->cfg.ring ||
	       w->segs[kvt_log_seg_of(w->cfg.log, unit)].doom;
}

/*
 * Is a kill in @seg not worth counting when that is to be ended: it is of its own records, or,
 * as they are few, an end.
 */
static inline bool kvt_wlog_kill_light(u32 seg, const struct kvt_kill *k)
{
	return k->seg == seg || k->unit == KVT_KILL_ALL;
}

/* Most kills in a segment, unless it begins with the end of another. */
static inline u32 kvt_wlog_usual_kills(const struct kvt_wlog *w)
{
	return w->cfg.max_kills - w->cfg.max_kills / 4;
}

bool kvt_wlog_homed(const struct kvt_wlog *w, u32 seg, const struct kvt_ns_home *home);

/* Highest life used so far: for @life_mark of a namespace that is gone. */
static inline u64 kvt_wlog_life_mark(const struct kvt_wlog *w)
{
	return w->next_life - 1;
}

#endif /* KVT_WLOG_H */
