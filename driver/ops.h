/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the operations share: checked arguments, batches of keys, reservations.
 */
#ifndef KVT_OPS_H
#define KVT_OPS_H

#include "kvt_internal.h"

/* One function for each command; @arg is the kernel's copy of its struct */
int kvt_op_query(struct kvt_file *f, void *arg);
int kvt_op_lookup(struct kvt_file *f, void *arg);
int kvt_op_get(struct kvt_file *f, void *arg);
int kvt_op_reserve(struct kvt_file *f, void *arg);
int kvt_op_commit(struct kvt_file *f, void *arg);
int kvt_op_abort(struct kvt_file *f, void *arg);
int kvt_op_release(struct kvt_file *f, void *arg);
int kvt_op_read(struct kvt_file *f, void *arg);
int kvt_op_write(struct kvt_file *f, void *arg);
int kvt_op_prefetch(struct kvt_file *f, void *arg);
int kvt_op_advise(struct kvt_file *f, void *arg);
int kvt_op_drop(struct kvt_file *f, void *arg);
int kvt_op_iterate(struct kvt_file *f, void *arg);
int kvt_op_stat(struct kvt_file *f, void *arg);
int kvt_op_arena(struct kvt_file *f, void *arg);
int kvt_op_session(struct kvt_file *f, void *arg);

/**
 * struct kvt_newfd - a file descriptor that a command answers
 * @file: what it is of; NULL: there is none
 * @fd:   reserved for it; the caller of the handler installs it, or gives both back
 */
struct kvt_newfd {
	struct file *file;
	int fd;
};

int kvt_op_export(struct kvt_file *f, void *arg, struct kvt_newfd *new);


/* kvt_session.c: for these operations */
#define KVT_SESSIONS_PER_FILE	4096
int kvt_session_decode(struct kvt_file *f, u64 session, u32 *tip, u32 *gen);
int kvt_session_rest(struct kvt_file *f, u64 session, bool done, u32 *tip, u32 *gen);
void kvt_session_grow(struct kvt_file *f, u32 id);	/* meta lock held */

/**
 * struct kvt_batch - a batch of keys and what is found out about them
 * @f:        caller
 * @ns_group: name space of the keys
 * @nr:       keys
 * @keys:     @nr of them
 * @res:      results, zeroed
 * @id:       blocks
 * @gen:      their generations
 * @from:     tier where the block was found first, KVT_NO_TIER: where it is
 * @mem:      the allocation behind all the arrays
 */
struct kvt_batch {
	struct kvt_file *f;
	struct kvt_group *group;
	u32 ns_group;
	u32 nr;
	u8 (*keys)[KVT_KEY_BYTES];
	struct kvtier_block_result *res;
	u32 *id;
	u32 *gen;
	u8 *from;
	void *mem;
};

int kvt_batch_init(struct kvt_batch *b, struct kvt_file *f, u32 group, u32 nr, u64 keys);
void kvt_batch_free(struct kvt_batch *b);
int kvt_check_group(struct kvt_file *f, u32 group);
int kvt_check_nr(u32 nr);
int kvt_check_handles(u64 uptr, u32 nr);
int kvt_put_statuses(u64 uptr, const s32 *st, u32 nr);

/**
 * struct kvt_getter - leasing the longest prefix of a part of a batch
 * @b:        batch
 * @at:       next key that is not leased
 * @end:      end of the part
 * @flags:    KVTIER_GET_*
 * @deadline_ns: for WAIT
 * @promo:    out: started, not waited for
 * @err:      out: of a promotion that failed, or -EDQUOT, the namespace's limit: the key at
 *            @at is not to be had
 */
struct kvt_getter {
	struct kvt_batch *b;
	u32 at;
	u32 end;
	u32 flags;
	u64 deadline_ns;
	struct kvt_promo *promo;
	int err;
};

int kvt_get_prefix(struct kvt_getter *g);
void kvt_get_account(struct kvt_batch *b, u32 first, u32 nr, const struct kvt_use *use);

/* The call that used the first @nr blocks of a batch, the chain's. */
static inline struct kvt_use kvt_use_of(const struct kvt_batch *b, u32 nr, u64 request)
{
	struct kvt_use u = { .who = b->f->id, .request = kvt_request_of(request), .nr = nr };

	if (nr) {
		u.tip = b->id[nr - 1];
		u.gen = b->gen[nr - 1];
	}
	return u;
}

/**
 * struct kvt_putter - reserving blocks
 * @b:       batch
 * @flags:   KVTIER_RESERVE_*
 * @parents: one for each key, or only that of the first (see KVTIER_RESERVE_PARENTS);
 *           NULL: the first key is a root
 * @owner:   id of the open file that may write through its fill view; 0: none
 * @region:  arena's region in @tier, or KVT_NO_REGION
 * @deadline_ns: for WAIT
 * @nr_reserved: so far
 * @over_quota: nothing of the namespace's own could go
 * @request: kvt_request_of() the call
 * @length:  see kvt_reserve_length(); 0: not known yet
 * @idx:     srcu
 */
struct kvt_putter {
	struct kvt_batch *b;
	u32 flags;
	u8 (*parents)[KVT_KEY_BYTES];
	u32 owner;
	u32 region;
	u32 tier;
	u64 deadline_ns;
	u32 nr_reserved;
	bool over_quota;
	u32 request;
	u32 length;
	int idx;
};

int kvt_reserve_one(struct kvt_putter *w, u32 i);
int kvt_parents_copy(struct kvt_putter *w, u64 uptr);
s32 kvt_commit_locked(struct kvt_pool *p, struct kvt_ns *ns, u32 id, bool lease);
bool kvt_key_zero(const u8 *key);

#endif /* KVT_OPS_H */
