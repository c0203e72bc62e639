/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bad page frames that the kernel found by itself, see kvt_frames.c.
 */
#ifndef KVT_FRAMES_H
#define KVT_FRAMES_H

struct kvt_pool;

void kvt_frames_init(void);
void kvt_frames_exit(void);
void kvt_frames_begin(struct kvt_pool *p);
/* srcu held, may sleep; the worker's */
void kvt_frames_look(struct kvt_pool *p);

#endif /* KVT_FRAMES_H */
