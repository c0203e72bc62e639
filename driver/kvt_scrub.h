/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Scrubs of pools: see kvt_scrub.c.
 */
#ifndef KVT_SCRUB_H
#define KVT_SCRUB_H

#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

struct kvt_pool;

enum kvt_scrub_state {
	KVT_SCRUB_NEVER = 0,
	KVT_SCRUB_RUNNING,
	KVT_SCRUB_DONE,
	KVT_SCRUB_STOPPED,
	KVT_SCRUB_FAILED,	/* some of it could not be looked at */
};

/**
 * struct kvt_scrub - the last scrub of a pool, and the one that runs; see kvt_scrub.c
 * @lock:  who starts and stops
 * @work:  the scrub
 * @wait:  for its end, and its own waits
 * @stop:  it is to end
 * @state: enum kvt_scrub_state
 * @rate_bytes: most bytes in a second, 0: no limit
 * @total_bytes: that block tiers had when it began
 * @bytes: read. The work's, as what follows
 * @blocks: read
 * @read_errors: of these, that could not be read, and are misses now
 * @checksum_errors: that did not verify, likewise
 */
struct kvt_scrub {
	struct mutex lock;
	struct work_struct work;
	wait_queue_head_t wait;
	bool stop;
	u32 state;
	u64 rate_bytes;
	u64 total_bytes;
	u64 bytes;
	u64 blocks;
	u64 read_errors;
	u64 checksum_errors;
};

void kvt_scrub_init(struct kvt_scrub *s);
int kvt_scrub_start(struct kvt_pool *p, u64 rate_bytes);
int kvt_scrub_stop(struct kvt_pool *p);
void kvt_scrub_end(struct kvt_pool *p);
void kvt_scrub_work(struct work_struct *work);

#endif /* KVT_SCRUB_H */
