/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A reference for the small store, and operations to compare the two with.
 *
 * The reference knows names, not places: an array of names with state, parent
 * and tag, and an array of leases. Each operation is made on both; what the store
 * answers must be what the reference says. Where operations come from is the
 * caller's: a generator, or a fuzzer's bytes.
 */
#ifndef KVT_MODEL_H
#define KVT_MODEL_H

#include "mini.h"

#define MODEL_KEYS	72u
#define MODEL_NAMES	(MINI_OWNERS * MODEL_KEYS)
#define MODEL_HANDLES	96u
#define MODEL_OPS	20u
#define MODEL_BAD_PAGES	3u	/* in each tier: memory does not come back */

enum ref_state { REF_NONE, REF_FILLING, REF_READY };

/**
 * struct ref - what a name should be
 * @state:  of the name
 * @parent: name it extends, or MODEL_NAMES
 * @orphan: its parent was aborted or lost: it can never be committed
 * @bad:    its memory went bad while it was filled
 * @pinned: must not be evicted
 * @id:     block entry it had at reserve
 */
struct ref {
	enum ref_state state;
	u32 parent;
	bool orphan;
	bool bad;
	bool pinned;
	u32 id;
	u64 tag;
};

struct ref_handle {
	bool on;
	u32 name;
	u32 id;
	u32 tier;
	u32 page;
	u64 tag;
};

/**
 * struct model - both
 * @pick:  source of choices: a number below @n
 * @done:  how often each operation did something
 */
struct model {
	struct mini *m;
	struct ref ref[MODEL_NAMES];
	struct ref_handle handle[MODEL_HANDLES];
	u32 (*pick)(void *src, u32 n);
	void *src;
	u64 done[MODEL_OPS];
};

void model_init(struct model *x, u32 (*pick)(void *src, u32 n), void *src);
void model_fini(struct model *x);
void model_step(struct model *x);
void model_check(struct model *x);
const char *model_op_name(u32 op);

#endif /* KVT_MODEL_H */
