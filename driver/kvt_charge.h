/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory tiers whose pages are charged to control groups: see kvt_charge.c.
 */
#ifndef KVT_CHARGE_H
#define KVT_CHARGE_H

#include <linux/types.h>

struct kvt_ns;
struct kvt_pool;
struct kvt_region;
struct kvt_tier;

int kvt_charge_init(void);
void kvt_charge_exit(void);

void kvt_charge_note(struct kvt_ns *ns);
void kvt_charge_forget(struct kvt_ns *ns);

/* May sleep. What they do of a tier that is not charged: nothing */
int kvt_charge_prepare(struct kvt_tier *t);
void kvt_charge_start(struct kvt_tier *t);
void kvt_charge_stop(struct kvt_tier *t);
void kvt_charge_end(struct kvt_tier *t);
int kvt_charge_region(struct kvt_tier *t, struct kvt_ns *ns, const struct kvt_region *reg);
bool kvt_charge_pays(struct kvt_tier *t, struct kvt_ns *ns, u32 pieces);
bool kvt_charge_fits(struct kvt_tier *t, struct kvt_ns *ns, u32 pieces);
void kvt_charge_vacate(struct kvt_tier *t, const struct kvt_region *reg);
bool kvt_charge_work(struct kvt_pool *p, struct kvt_tier *t);

#endif /* KVT_CHARGE_H */
