/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Checking a member.
 *
 *   fsck_super.c   reads superblocks, and holds them against each other
 *   fsck_scan.c    reads segments, three times over: which life each has; which records
 *                  are dead; what is left
 *   fsck_check.c   holds what is left against itself: names, namespaces, chains, lives
 *   fsck_repair.c  changes the media so that what cannot be trusted is not used
 *   fsck_move.c    the same on zoned devices
 *   fsck_text.c    the vocabulary
 *   fsck.c         the command
 *
 * Nothing is believed. Work is bounded by the length of the device, memory by a bit
 * for each unit, an entry for each segment, one for each namespace, of which there may
 * be FSCK_NS_MAX, and one for each block that is alive, of which no unit has two.
 *
 * Problems have a fixed vocabulary, enum fsck_what. Records that recovery drops, and
 * segments without footer, are what a crash leaves: on a member that says "dirty" they
 * are *notes*, for the next assembly to deal with; on one that says "clean" they are
 * errors.
 *
 * Repair never makes up a record, and never makes one count that did not before:
 *
 *   - A damaged superblock is written anew from its twin.
 *   - A superblock that says what is not true ("clean", limits) is corrected: a member
 *     that is not clean goes through recovery, which drops what is to be dropped.
 *   - A segment whose first batch is damaged, but whose footer and summary verify, gets
 *     an empty first batch of the footer's life. That the footer's life was the last
 *     one must be certain: the member is clean, or what is left of the first batch
 *     names that life; and no kill says that it has ended. Without this the kills in
 *     it would be lost, and dropped blocks could come back.
 *   - A sealed segment with bytes that do not verify loses its footer, if all its
 *     batches can be walked: recovery reads and verifies all payloads then, drops
 *     what does not verify, and keeps what else the segment says, kills included.
 *     To end such a segment would be wrong: it may hold kills for others.
 *
 * On a zoned device nothing can be written over, so there a superblock is appended, as the
 * driver does it, and a segment is *moved*: what its summary has, and payloads that verify,
 * go to a free segment, under a life that was never used. With them goes a kill of all that
 * the old one has. All of it counts from the moment on at which the new segment has its
 * footer, none of it before. Namespaces that are gone, their blocks, and blocks that
 * are dead are left behind: what says so of them says it of their old place.
 *
 *   - Before the first is moved a superblock says how far lives are used. It says "clean"
 *     on as long as it has to be known that the member was: others than those that need
 *     it for that are moved before.
 *   - Segments whose first batch is damaged are read as if it had been mended, so that
 *     their kills are known before anything is moved. In a segment of one zone a footer is
 *     certain to be of the last life: a reset would have ended both.
 *   - Nothing is moved while there is a segment that cannot be read or trusted: what it says
 *     is dead would, in its new place, not be.
 */
#ifndef KVTIER_FSCK_H
#define KVTIER_FSCK_H

#include "media.h"

#define FSCK_NOWHERE	U32_MAX
#define FSCK_NS_MAX	KVT_RECOVER_NS_MAX	/* kept while it is not known which have blocks */

enum fsck_what {
	FSCK_SUPER_MISSING = 0,
	FSCK_SUPER_DAMAGED,
	FSCK_SUPER_UNREADABLE,
	FSCK_SUPER_NEWER,
	FSCK_SUPER_MISPLACED,
	FSCK_SUPER_ZONE_READONLY,
	FSCK_SUPER_ZONE_OFFLINE,
	FSCK_SUPER_DIFFERS,
	FSCK_SUPERS_DAMAGED,
	FSCK_LAYOUT,
	FSCK_SEG_ZONE_READONLY,
	FSCK_SEG_ZONE_OFFLINE,
	FSCK_SEG_UNREADABLE,
	FSCK_SEG_HEADLESS,
	FSCK_SEG_UNSEALED,
	FSCK_SEG_SUMMARY,
	FSCK_SEG_BATCHES,
	FSCK_LIFE_TWICE,
	FSCK_LIFE_LIMIT,
	FSCK_SEQ_LIMIT,
	FSCK_NS_LIMIT,
	FSCK_ENTRY,
	FSCK_KILL_LIFE,
	FSCK_REC_DAMAGED,
	FSCK_REC_UNKNOWN,
	FSCK_REC_RANGE,
	FSCK_PAYLOAD_TORN,
	FSCK_PAYLOAD_DAMAGED,
	FSCK_PAYLOAD_UNREADABLE,
	FSCK_NAME_TWICE,
	FSCK_NS_UNDEFINED,
	FSCK_NS_GONE,
	FSCK_NS_GROUP,
	FSCK_NS_MANY,
	FSCK_CHAIN_CYCLE,
	FSCK_NR,
};

enum fsck_severity {
	FSCK_NOTE,
	FSCK_ERROR,
};

/* How repair can help. */
enum fsck_fix {
	FSCK_FIX_NONE,
	FSCK_FIX_TWIN,
	FSCK_FIX_SUPER,
	FSCK_FIX_HEAD,
	FSCK_FIX_FOOT,
	FSCK_FIX_APPEND,
	FSCK_FIX_MOVE,
	FSCK_FIX_NR,
};

/* Why something that could be repaired is not. */
enum fsck_refused {
	FSCK_REFUSED_NOT = 0,
	FSCK_REFUSED_BLIND,
	FSCK_REFUSED_SEGMENT,
	FSCK_REFUSED_NUMBERS,
	FSCK_REFUSED_SUPER_IO,
	FSCK_REFUSED_SUPER_ZONE,
	FSCK_REFUSED_NR,
};

/**
 * struct fsck_problem - something found
 * @seg:    segment, or superblock; FSCK_NOWHERE: of the member as a whole
 * @unit:   within it, or FSCK_NOWHERE
 * @number: see fsck_text()
 */
struct fsck_problem {
	enum fsck_what what;
	enum fsck_severity severity;
	enum fsck_fix fix;
	u32 seg;
	u32 unit;
	u64 number;
};

/**
 * struct fsck_seg - what a segment turned out to be
 * @life:      0: free
 * @ended:     highest life of it that some kill calls dead as a whole
 * @foot_life: of the footer in a segment without first batch
 * @foot_good: its summary verifies
 * @state:     enum kvt_rc_state
 * @dead:      a kill calls @life dead
 * @foot_same: what is left of the first batch names @foot_life
 * @mended:    it has a first batch for who reads it, and is to be moved
 * @unread:    there is something in it that cannot be read
 * @locked:    and something that cannot be written
 * @fix:       enum fsck_fix: HEAD, FOOT or MOVE
 */
struct fsck_seg {
	u64 life;
	u64 ended;
	u64 foot_life;
	u8 state;
	bool dead;
	bool foot_good;
	bool foot_same;
	bool mended;
	bool unread;
	bool locked;
	u8 fix;
};

/* A block that is alive. @unit counts from the first segment. */
struct fsck_block {
	u8 key[KVT_KEY_BYTES];
	u8 parent[KVT_KEY_BYTES];
	u64 ns;
	u64 seq;
	u32 unit;
	u32 mark;
	u16 group;
};

/* A namespace, by its newest definition. */
struct fsck_ns {
	u64 id;
	u64 seq;
	u32 flags;
	u32 nr_groups;
};

struct fsck_count {
	u64 free;
	u64 sealed;
	u64 unsealed;
	u64 ended;
	u64 blocks;
	u64 bytes;
	u64 dead;
	u64 kills;
	u64 namespaces;
	u64 payloads;
};

/**
 * struct fsck - one check of one member
 * @media:    in
 * @payload:  in: verify the payloads of sealed segments, too
 * @report:   in: called for each problem; may be NULL
 * @progress: in: called after each segment of each pass; false: stop. May be NULL
 * @ctx:      in: theirs
 * @errors:   out, as the rest: errors reported
 * @fixable:  of them, those that fsck_repair() can do something about
 * @count:    what is on the member; @count.payloads: verified
 * @max_kill: highest life that some kill names
 * @nr_blind: segments of which it is not known what they say
 * @refused:  by fsck_repair(): what it does not do, the last reason
 */
struct fsck {
	const struct media *media;
	bool payload;
	void (*report)(void *ctx, const struct fsck_problem *p);
	bool (*progress)(void *ctx, u32 pass, u32 seg);
	void *ctx;

	struct media_supers supers;
	struct kvt_geometry geo;
	bool clean;
	u64 errors;
	u64 notes;
	u64 fixable;
	u64 found[FSCK_NR];
	bool fix[FSCK_FIX_NR];
	struct fsck_count count;
	u64 max_life;
	u64 max_seq;
	u64 max_ns;
	u64 max_kill;
	u32 nr_blind;
	enum fsck_refused refused;

	struct fsck_seg *segs;
	u8 *dead;		/* a bit for each unit */
	struct fsck_block *blocks;
	size_t nr_blocks;
	size_t room_blocks;
	struct fsck_ns *ns;
	size_t nr_ns;
	size_t room_ns;
	bool many_ns;		/* there are more than could be kept */
	u64 *named;		/* those with blocks, sorted; NULL: any counts */
	size_t nr_named;

	u32 pass;
	u32 nr_stray;		/* kills in the segment of lives that were never given out */
	u32 nr_told;		/* bad records of the segment that have been reported */
	int err;		/* of a callback */
	bool blind;		/* recovery is not to see footers */
	bool walks;		/* the segment's batches are all there */
	bool same;		/* and nothing that its footer leaves out */
	u32 nr_live;		/* blocks that recovery has found in the segment */
	u8 *buf;		/* recovery's */
	u8 *buf_count;		/* likewise, when it runs inside itself */
	u8 *piece;		/* KVT_SUM_BYTES */
	u8 *head;		/* a unit */
};

/**
 * fsck_run - check a member
 * @f: see there
 *
 * 0: what was found has been reported and counted, also if the superblocks were too
 * damaged for more. -errno: it could not be checked: EMEDIUMTYPE, EPROTONOSUPPORT, EIO
 * (superblocks), ENOMEM, ECANCELED.
 */
int fsck_run(struct fsck *f);
void fsck_fini(struct fsck *f);

/**
 * fsck_repair - put right what can be
 * @f:     after fsck_run() on a medium that can be written
 * @fixed: out: things done
 *
 * Ends with a flush. Then the member is to be checked again: there may be more to do.
 * 0 or -errno; 0 also with @f->refused.
 */
int fsck_repair(struct fsck *f, u64 *fixed);

void fsck_report(struct fsck *f, enum fsck_what what, enum fsck_fix fix, u32 seg, u32 unit,
		 u64 number);
/* 0: that is all there is to say; 1: go on with the segments; -errno. */
int fsck_read_supers(struct fsck *f);
void fsck_add_ns(struct fsck *f, const struct kvt_nsdef *d);
/* From now on those alone that have blocks. 0 or -ENOMEM. */
int fsck_again_ns(struct fsck *f);
/* Once all are known. NULL: it is nowhere defined. */
const struct fsck_ns *fsck_find_ns(const struct fsck *f, u64 id);
void fsck_check(struct fsck *f);
/* What recovery would read, if what can be mended were. 0 or -errno. */
int fsck_read(struct fsck *f, u64 byte, void *buf, u32 len);
/* Nothing in it counts: not of a life, nor of one that only its footer tells of. */
bool fsck_is_free(const struct fsck_seg *s);
/* All it says is which life the segment has. @unit: @f->geo.unit_bytes. */
void fsck_empty_batch(const struct fsck *f, u32 seg, u64 life, u8 *unit);
void fsck_correct_super(const struct fsck *f, struct kvt_super *s);

/* fsck_move.c: fsck_repair() on zoned devices */
int fsck_repair_zoned(struct fsck *f, u64 *fixed);

/* "payload-damaged" */
const char *fsck_name(enum fsck_what what);
/* A sentence, with "%N" where the problem's number is to be. */
const char *fsck_text(enum fsck_what what);
/* What repair does, or did. */
const char *fsck_fix_text(enum fsck_fix fix);
const char *fsck_refused_text(enum fsck_refused refused);
enum fsck_severity fsck_severity(enum fsck_what what, bool clean);

#endif /* KVTIER_FSCK_H */
