/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Checking a member.
 *
 *   fsck_scan.c    reads superblocks and segments, three times over: which life each
 *                  segment has; which records are dead; what is left
 *   fsck_check.c   holds what is left against itself: names, namespaces, chains, lives
 *   fsck_repair.c  changes the media so that what cannot be trusted is not used
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
 * Repair never writes a record, and never makes one count that did not before:
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
 */
#ifndef KVTIER_FSCK_H
#define KVTIER_FSCK_H

#include "media.h"

#define FSCK_NOWHERE	U32_MAX
#define FSCK_NS_MAX	(1u << 20)

enum fsck_what {
	FSCK_SUPER_MISSING = 0,
	FSCK_SUPER_DAMAGED,
	FSCK_SUPER_UNREADABLE,
	FSCK_SUPER_NEWER,
	FSCK_SUPER_MISPLACED,
	FSCK_SUPER_DIFFERS,
	FSCK_SUPERS_DAMAGED,
	FSCK_LAYOUT,
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
	FSCK_FIX_NR,
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
 * @fix:       enum fsck_fix: HEAD or FOOT
 */
struct fsck_seg {
	u64 life;
	u64 ended;
	u64 foot_life;
	u8 state;
	bool dead;
	bool foot_good;
	bool foot_same;
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

	struct fsck_seg *segs;
	u8 *dead;		/* a bit for each unit */
	struct fsck_block *blocks;
	size_t nr_blocks;
	size_t room_blocks;
	struct fsck_ns *ns;
	size_t nr_ns;
	size_t room_ns;
	bool many_ns;		/* there are more than could be kept */

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
 * 0 or -errno.
 */
int fsck_repair(struct fsck *f, u64 *fixed);

void fsck_report(struct fsck *f, enum fsck_what what, enum fsck_fix fix, u32 seg, u32 unit,
		 u64 number);
void fsck_add_ns(struct fsck *f, const struct kvt_nsdef *d);
void fsck_check(struct fsck *f);

/* "payload-damaged" */
const char *fsck_name(enum fsck_what what);
/* A sentence, with "%N" where the problem's number is to be. */
const char *fsck_text(enum fsck_what what);
/* What repair does, or did. */
const char *fsck_fix_text(enum fsck_fix fix);
enum fsck_severity fsck_severity(enum fsck_what what, bool clean);

#endif /* KVTIER_FSCK_H */
