/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Recovery: what is in a segment, from its bytes alone.
 *
 * Pure over a read callback. Each segment is looked at on its own, so any number
 * can be done at a time, each with a scratch buffer of its own:
 *
 *   first batch's header does not verify       FREE: nothing there counts. Or so it
 *                                              looks: with a footer whose life no kill
 *                                              has ended it is damaged, for the caller
 *                                              to find out
 *   footer verifies and has the same life      SEALED: its summary counts; the
 *                                              payloads were durable before it was
 *                                              written and are not read here
 *   else                                       UNSEALED: batches are walked as long
 *                                              as life, number and checksum fit, and
 *                                              each payload is read and verified
 *
 * A life begins with its first batch: as soon as that is overwritten, nothing of
 * the life counts, whatever footer still stands at the end. That is sound because a
 * segment is only written anew when all that was in it is dead for good.
 *
 * What comes out, for each batch or for the summary: namespaces, then blocks by
 * ascending unit, none overlapping, then kills. Which of it counts is said by what is
 * in other segments: kvt_life.h for those of the member, kvt_merge.h for all.
 *
 * What bad() reports with a payload that is wrong or cannot be read must be killed, or a
 * footer made later would vouch for it. The unit of what is bad otherwise may be wrong, or
 * another block's.
 *
 * Work is bounded by the segment's length, memory is the scratch buffer. No locks.
 */
#ifndef KVT_RECOVER_H
#define KVT_RECOVER_H

#include "kvt_format.h"

#define KVT_RECOVER_BUF_MIN	(KVT_HEADER_BYTES_MAX + KVT_SUM_BYTES)

/*
 * Blocks of more namespaces than that are not taken for true: a pool has a quarter of them,
 * and some that ended may have blocks after a crash.
 */
#define KVT_RECOVER_NS_MAX	(1u << 18)

/**
 * struct kvt_recover_sink - where entries go; all but @block may be NULL
 * @block: a block; @r is the callee's for the call only. Its unit is in @r->unit
 * @ns:    definition of a namespace
 * @kill:  a kill; checked for form only
 * @bad:   a record that is not to be used. With KVT_BAD_PAYLOAD or KVT_BAD_IO it is
 *         known to lie at @unit of that life, which is within the segment then
 */
struct kvt_recover_sink {
	void (*block)(void *ctx, u32 seg, u64 life, const struct kvt_rec *r);
	void (*ns)(void *ctx, u32 seg, const struct kvt_nsdef *d);
	void (*kill)(void *ctx, u32 seg, const struct kvt_kill *k);
	void (*bad)(void *ctx, u32 seg, u64 life, u32 unit, enum kvt_bad why);
};

/**
 * struct kvt_recover - how to recover segments of a member
 * @geo:       from the superblock, checked
 * @read:      @len bytes at @byte of the device into @buf; may sleep. 0 or -errno
 * @sink:      see there
 * @ctx:       for @read and @sink
 * @buf:       scratch; of one caller at a time
 * @buf_bytes: at least KVT_RECOVER_BUF_MIN. A summary longer than that is read twice
 * @entries_only: do not read payloads: to learn what kills are in a segment
 */
struct kvt_recover {
	const struct kvt_geometry *geo;
	int (*read)(void *ctx, u64 byte, void *buf, u32 len);
	const struct kvt_recover_sink *sink;
	void *ctx;
	u8 *buf;
	u32 buf_bytes;
	bool entries_only;
};

enum kvt_rc_state {
	KVT_RC_FREE = 0,
	KVT_RC_SEALED,
	KVT_RC_UNSEALED,
};

/**
 * struct kvt_seg_found - what a segment turned out to be
 * @state:    see above
 * @life:     of what is in it, 0: FREE
 * @max_seq:  highest sequence seen
 * @fill:     units that batches take
 * @nr_ns:    entries handed to the sink
 * @nr_blocks: likewise
 * @nr_kills: likewise
 * @nr_batches: of the walk, or as the footer says
 * @nr_io:    reads of headers, footer or summary that failed; with any the segment's
 *            contents are not known for certain and it should not be written again
 * @nr_bad:   records not used, by enum kvt_bad
 */
struct kvt_seg_found {
	enum kvt_rc_state state;
	u64 life;
	u64 max_seq;
	u32 fill;
	u32 nr_ns;
	u32 nr_blocks;
	u32 nr_kills;
	u32 nr_batches;
	u32 nr_io;
	u32 nr_bad[KVT_BAD_NR];
};

void kvt_recover_segment(const struct kvt_recover *r, u32 seg, struct kvt_seg_found *f);

#endif /* KVT_RECOVER_H */
