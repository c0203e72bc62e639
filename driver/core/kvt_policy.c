// SPDX-License-Identifier: GPL-2.0
/*
 * Table of policies, and LRU.
 *
 * LRU keeps each tier's blocks by last use. Clients' batches are touched from
 * the last key to the first, so a chain's tail is always older than its head and
 * the old end of the list consists of leaves. Only chunked use of a chain breaks
 * that; a block with children found at the old end is as warm as they are, and is
 * put where it should have been: just before its youngest child.
 */
#include "kvt_policy.h"
#include "kvt_chain.h"

static void lru_insert(struct kvt_policy *p, u32 tier, u32 id)
{
	kvt_list_add_head(p->table, &p->list[tier], id);
}

static void lru_remove(struct kvt_policy *p, u32 tier, u32 id)
{
	kvt_list_del(p->table, &p->list[tier], id);
}

static void lru_rotate(struct kvt_policy *p, u32 tier, u32 id)
{
	kvt_list_del(p->table, &p->list[tier], id);
	kvt_list_add_head(p->table, &p->list[tier], id);
}

static void lru_touch(struct kvt_policy *p, u32 tier, u32 id)
{
	kvt_cold(p->table, id)->touch_ms = p->now_ms;
	lru_rotate(p, tier, id);
}

static void lru_cool(struct kvt_policy *p, u32 tier, u32 id)
{
	kvt_list_del(p->table, &p->list[tier], id);
	kvt_list_add_tail(p->table, &p->list[tier], id);
}

/* A block with children at the old end: its place is next to the youngest. */
static void lru_settle(struct kvt_policy *p, u32 tier, u32 id)
{
	u32 child = kvt_cold(p->table, id)->first_child;
	const struct kvt_hot *h = kvt_hot(p->table, child);
	u32 ctl = kvt_ctl(h);

	if (kvt_ctl_state(ctl) != KVT_READY || kvt_block_tier(h, ctl) != tier) {
		/* In use, or on another tier: that is no measure here. */
		lru_rotate(p, tier, id);
		return;
	}
	kvt_list_del(p->table, &p->list[tier], id);
	kvt_list_add_before(p->table, &p->list[tier], id, child);
}

static u32 lru_next(struct kvt_policy *p, u32 tier, bool leaf, u32 *budget)
{
	struct kvt_list *l = &p->list[tier];
	u32 id;

	while (*budget) {
		id = l->tail;
		if (id == KVT_NIL)
			return KVT_NIL;
		(*budget)--;
		if (!leaf || kvt_ch_leaf(p->table, id))
			return id;
		lru_settle(p, tier, id);
	}
	return KVT_NIL;
}

const struct kvt_policy_ops kvt_policy_lru = {
	.name = "lru",
	.insert = lru_insert,
	.remove = lru_remove,
	.touch = lru_touch,
	.cool = lru_cool,
	.next = lru_next,
	.skip = lru_rotate,
};

static const struct kvt_policy_ops *const kvt_policies[] = {
	&kvt_policy_lru,
};

/**
 * kvt_policy_find() - policy by name
 * @name: not necessarily terminated
 * @len:  its length
 * Return: policy or NULL.
 */
const struct kvt_policy_ops *kvt_policy_find(const char *name, size_t len)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(kvt_policies); i++) {
		if (strlen(kvt_policies[i]->name) == len &&
		    !memcmp(kvt_policies[i]->name, name, len))
			return kvt_policies[i];
	}
	return NULL;
}

/* Policy number @i, or NULL past the last. */
const struct kvt_policy_ops *kvt_policy_at(u32 i)
{
	return i < ARRAY_SIZE(kvt_policies) ? kvt_policies[i] : NULL;
}

/**
 * kvt_policy_init() - start with empty lists
 * @p:     policy state
 * @ops:   which policy
 * @table: block entries
 */
void kvt_policy_init(struct kvt_policy *p, const struct kvt_policy_ops *ops,
		     struct kvt_table *table)
{
	memset(p, 0, sizeof(*p));
	p->ops = ops;
	p->table = table;
}
