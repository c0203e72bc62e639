/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bad page frames that the kernel found by itself, see kvt_frames.c.
 */
#ifndef KVT_FRAMES_H
#define KVT_FRAMES_H

#include <linux/types.h>

struct kvt_pool;

/**
 * struct kvt_frames - what a pool has seen to. Its worker's
 * @heard: frames told of so far
 * @tier:  while all pages are looked at: tier whose turn it is
 * @piece: and the next piece of it
 * @all:   all pages are looked at
 * @again: and once more after that
 */
struct kvt_frames {
	u32 heard;
	u32 tier;
	u32 piece;
	bool all;
	bool again;
};

void kvt_frames_init(void);
void kvt_frames_exit(void);
/* How many frames the kernel has told of. Any context. */
u32 kvt_frames_heard(void);
void kvt_frames_begin(struct kvt_pool *p);
/* srcu held, may sleep; the worker's */
void kvt_frames_look(struct kvt_pool *p);

#endif /* KVT_FRAMES_H */
