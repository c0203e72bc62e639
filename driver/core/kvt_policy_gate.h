/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is worth a write to a block tier: see kvt_policy_gate.c.
 */
#ifndef KVT_POLICY_GATE_H
#define KVT_POLICY_GATE_H

#include "kvt_policy.h"

/* How far from a block that may have to be carried the end of its chain may be. */
#define KVT_GATE_DEEP	64u

bool kvt_gate_can_go(const struct kvt_policy *p, u32 id, bool leaf);
bool kvt_gate_admit(struct kvt_policy *p, u32 tier, u32 id, bool room);
bool kvt_gate_trades(const struct kvt_policy *p, u32 id, u32 least);
void kvt_gate_unadmit(struct kvt_policy *p, u32 id);
void kvt_gate_stored(struct kvt_mind *m, u32 hash);
void kvt_gate_asked(struct kvt_mind *m, u32 nr);
u32 kvt_gate_tip(const struct kvt_policy *p, u32 id, u32 *steps);
bool kvt_policy_above(const struct kvt_policy *p, u32 id);

#endif
