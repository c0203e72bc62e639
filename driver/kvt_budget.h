/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What control groups may have in a pool: see kvt_budget.c.
 */
#ifndef KVT_BUDGET_H
#define KVT_BUDGET_H

#include <linux/types.h>

#define KVT_BUDGETS		32	/* in a pool */
#define KVT_CGROUP_LEVELS	32	/* that are told apart */

struct kvt_ns;
struct kvt_pool;

/**
 * struct kvt_budget - what the namespaces of a cgroup may have in a pool; see kvt_budget.c
 * @cgroup:      its number, 0: none
 * @limit_bytes: most slot bytes
 * @used_bytes:  that they have
 */
struct kvt_budget {
	u64 cgroup;
	u64 limit_bytes;
	u64 used_bytes;
};

void kvt_budget_join(struct kvt_ns *ns);
void kvt_budget_charge(struct kvt_ns *ns, s64 bytes);	/* meta lock held */
bool kvt_budget_over(const struct kvt_ns *ns, u64 bytes);	/* meta lock held */
int kvt_budget_store(struct kvt_pool *p, const char *buf);
ssize_t kvt_budget_show(struct kvt_pool *p, char *buf);

#endif /* KVT_BUDGET_H */
