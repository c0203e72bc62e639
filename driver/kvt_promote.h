/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Promotions: batches of blocks on their way up, and who runs them; see kvt_promote.c for the model.
 */
#ifndef KVT_PROMOTE_H
#define KVT_PROMOTE_H

#include <linux/types.h>

struct kvt_pool;
struct kvt_promo;

int kvt_promo_prepare(struct kvt_pool *p, u32 tier);
void kvt_promo_flush(struct kvt_pool *p);
void kvt_promo_end(struct kvt_pool *p);

struct kvt_promo *kvt_promo_alloc(struct kvt_pool *p, u32 max, bool ahead);
bool kvt_promo_add(struct kvt_promo *pr, u32 id, u32 gen);
u32 kvt_promo_nr(const struct kvt_promo *pr);
void kvt_promo_start(struct kvt_promo *pr);
void kvt_promo_hurry(struct kvt_pool *p, u32 id);
bool kvt_promo_done(const struct kvt_promo *pr);
int kvt_promo_wait(struct kvt_promo *pr, u64 deadline_ns);
int kvt_promo_error(const struct kvt_promo *pr, u32 id, u32 gen);
bool kvt_promo_has(const struct kvt_promo *pr, u32 id, u32 gen);
u32 kvt_promo_failed(const struct kvt_promo *pr);
void kvt_promo_put(struct kvt_promo *pr);

#endif
