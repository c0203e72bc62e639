// SPDX-License-Identifier: GPL-2.0
/*
 * READ and WRITE: the copying forms, for callers that cannot map.
 *
 * Both are made of the other operations: READ leases a stretch of the chain,
 * copies, and gives the leases back; WRITE reserves a block that no open file may
 * write to, fills it and commits it. User memory is copied with leases held but
 * no locks, and waited for with nothing held that others may need.
 */
#include <linux/highmem.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "kvt_test.h"
#include "kvt_trace.h"
#include "ops.h"

#define KVT_COPY_WINDOW	16u	/* blocks leased at a time by READ */
#define KVT_WRITE_TRIES	4u	/* places that may go bad, or be taken back, under WRITE */

/* A page of a slot, to be given back with kunmap_local(), or NULL if it is bad. */
static void *kvt_copy_map(struct kvt_tier *t, u32 page)
{
	if (kvt_tier_page_bad(t, page)) {
		kvt_poison_found(t, page, 1);
		return NULL;
	}
	return kmap_local_page(t->ops->page(t, page));
}

/* What was copied while the device went away is not to be trusted. */
static int kvt_copy_end(const struct kvt_tier *t)
{
	return READ_ONCE(t->state) == KVTIER_TIER_FAILED ? -EIO : 0;
}

/* Copy of a page what there is. Bad memory ends the copy, as the user's does. */
static int kvt_copy_page_out(struct kvt_tier *t, u32 page, u64 uptr, size_t n)
{
	void *at = kvt_copy_map(t, page);
	struct iov_iter to;
	size_t done = 0;

	if (!at)
		return -EIO;
	iov_iter_ubuf(&to, ITER_DEST, u64_to_user_ptr(uptr), n);
	if (!kvt_test_copy_fails())
		done = _copy_mc_to_iter(at, n, &to);
	kunmap_local(at);
	if (done == n)
		return 0;
	return kvt_page_readable(t, page) ? -EFAULT : -EIO;
}

/* Copy a leased block's exact bytes out. */
static int kvt_copy_out(struct kvt_pool *p, u32 id, u64 bytes, u64 uptr)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);
	struct kvt_tier *t = p->tiers[h->mem_tier];
	u32 page = h->mem_page;
	u64 done;
	size_t n;
	int err;

	for (done = 0; done < bytes; done += n) {
		n = min_t(u64, bytes - done, PAGE_SIZE);
		err = kvt_copy_page_out(t, page++, uptr + done, n);
		if (err)
			return err;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return kvt_copy_end(t);
}

static int kvt_copy_bufs(struct kvtier_copy *a, struct kvt_batch *b, bool exact,
			 struct kvtier_buf **bufs)
{
	u32 i;

	*bufs = kvmalloc_array(a->nr, sizeof(**bufs), GFP_KERNEL_ACCOUNT);
	if (!*bufs)
		return -ENOMEM;
	if (copy_from_user(*bufs, u64_to_user_ptr(a->bufs), a->nr * sizeof(**bufs)))
		return -EFAULT;
	for (i = 0; i < a->nr; i++) {
		u64 n = (*bufs)[i].bytes;

		if (exact ? n != b->group->block_bytes : n < b->group->block_bytes)
			return -EINVAL;
	}
	return 0;
}

/*
 * Copy the leased blocks [first, end) out and give the leases back. @stop: at which it ended
 * before, if it did.
 */
static int kvt_read_window(struct kvt_batch *b, const struct kvtier_buf *bufs, u32 first,
			   u32 end, u32 *done, u32 *stop)
{
	struct kvt_pool *p = b->f->pool;
	int err = 0;
	u32 i;

	for (i = first; i < end; i++) {
		if (!err) {
			err = kvt_copy_out(p, b->id[i], b->group->block_bytes,
					   bufs[i].addr);
			if (err == -EFAULT)
				b->res[i].status = KVTIER_ST_FAULT;
			else if (err == -EIO)
				b->res[i].status = KVTIER_ST_IOERR;
			if (err)
				*stop = i;
			else
				(*done)++;
		} else {
			b->res[i].status = KVTIER_ST_SKIPPED;
		}
		kvt_lease_drop(p, b->id[i]);
	}
	return err;
}

/*
 * The bytes of a block in memory are lost. One on a tier that is just being lost is still to
 * be found there, and would be as long as that takes: it goes now.
 */
static void kvt_read_lost(struct kvt_batch *b, u32 i)
{
	struct kvt_pool *p = b->f->pool;
	u32 id = b->id[i], want = KVT_READY | KVT_CTL_MEM;
	struct kvt_hot *h = kvt_hot(&p->table, id);

	spin_lock(&p->meta_lock);
	if (h->gen == b->gen[i] &&
	    (kvt_ctl(h) & (KVT_CTL_STATE | KVT_CTL_MEM)) == want &&
	    p->tiers[h->mem_tier]->state == KVTIER_TIER_FAILED &&
	    !kvt_copy_saves(p, id, false))
		kvt_block_lose(p, id, KVT_WHY_LOST);
	spin_unlock(&p->meta_lock);
	kvt_block_wake(p, id);
}

static int kvt_read_all(struct kvt_batch *b, const struct kvtier_buf *bufs,
			struct kvtier_copy *a)
{
	struct kvt_getter g = { .b = b, .flags = KVTIER_GET_WAIT,
				.deadline_ns = kvt_deadline(a->timeout_ns) };
	struct kvt_pool *p = b->f->pool;
	u32 first, stop = 0, again = b->nr;
	struct kvt_use use;
	int err, err2, idx;
	bool more;

	do {
		first = g.at;
		g.end = min(b->nr, first + KVT_COPY_WINDOW);
		err = kvt_get_prefix(&g);
		if (g.promo)
			kvt_promo_put(g.promo);
		g.promo = NULL;
		idx = srcu_read_lock(&p->srcu);
		kvt_get_account(b, first, g.at - first, NULL);
		srcu_read_unlock(&p->srcu, idx);
		err2 = kvt_read_window(b, bufs, first, g.at, &a->nr_done, &stop);
		more = !err && !err2 && g.at == g.end && g.end < b->nr;
		/* What was lost in memory may be on a block tier, too. */
		if (!err && err2 == -EIO && stop != again) {
			kvt_read_lost(b, stop);
			again = stop;
			g.at = stop;
			g.err = 0;
			more = true;
		}
	} while (more);
	if (again < b->nr && g.at == again && b->res[again].status == KVTIER_ST_MISS)
		b->res[again].status = KVTIER_ST_IOERR;
	use = kvt_use_of(b, g.at, a->request);
	kvt_touch(p, b->id, 0, &use);
	for (first = g.end; first < b->nr; first++)
		b->res[first].status = KVTIER_ST_SKIPPED;
	if (g.at < b->nr && !err2) {
		kvt_count(p, b->f->ns, KVT_CNT_MISSES, 1);
		kvt_count(p, b->f->ns, KVT_CNT_UNREACHED, b->nr - g.at - 1);
	}
	return err ?: err2 == -EINTR ? -EINTR : 0;
}

static int kvt_copy_results(struct kvtier_copy *a, struct kvt_batch *b)
{
	s32 *st = (s32 *)b->keys;	/* not needed any more, and large enough */
	u32 i;

	for (i = 0; i < b->nr; i++)
		st[i] = b->res[i].status;
	return copy_to_user(u64_to_user_ptr(a->results), st, b->nr * sizeof(*st)) ? -EFAULT : 0;
}

/**
 * kvt_op_read() - READ
 * @f:   caller
 * @arg: struct kvtier_copy
 */
int kvt_op_read(struct kvt_file *f, void *arg)
{
	struct kvtier_copy *a = arg;
	struct kvtier_buf *bufs = NULL;
	struct kvt_batch b;
	int err;

	if (a->parent)
		return -EINVAL;
	err = kvt_batch_init(&b, f, a->group, a->nr, a->keys);
	if (err)
		return err;
	a->nr_done = 0;
	err = kvt_copy_bufs(a, &b, false, &bufs) ?: kvt_read_all(&b, bufs, a) ?:
	      kvt_copy_results(a, &b);
	kvfree(bufs);
	kvt_batch_free(&b);
	return err;
}

static bool kvt_write_claim(struct kvt_pool *p, u32 id, u32 gen)
{
	bool mine;

	spin_lock(&p->meta_lock);
	mine = kvt_filling_claim(p, id, gen, 0);
	spin_unlock(&p->meta_lock);
	return mine;
}

/*
 * Bring in user memory that was not there, which may take for ever: the reservation is
 * not claimed meanwhile, so it can expire, or go with its tier.
 * Return: 0 with it claimed again; -EFAULT; -ESTALE: it has been taken back.
 */
static int kvt_write_fault_in(struct kvt_pool *p, u32 id, u32 gen, u64 uptr, size_t n)
{
	size_t missing;

	kvt_ctl_update(kvt_hot(&p->table, id), 0, 0, KVT_CTL_MOVING, 0);
	missing = fault_in_readable(u64_to_user_ptr(uptr), n);
	if (!kvt_write_claim(p, id, gen))
		return -ESTALE;
	return missing ? -EFAULT : 0;
}

/*
 * Copy a block's exact bytes into its slot. The claim keeps slot and tier from going,
 * so user memory is not waited for with it.
 * Return: 0, -EFAULT, -EIO or -EINTR with the block claimed; -ESTALE: it has gone.
 */
static int kvt_write_copy(struct kvt_pool *p, u32 id, u32 gen, u64 bytes, u64 uptr)
{
	struct kvt_hot *h = kvt_hot(&p->table, id);
	struct kvt_tier *t = p->tiers[h->mem_tier];
	u32 page = h->mem_page;
	u64 done = 0;

	while (done < bytes) {
		size_t n = min_t(u64, bytes - done, PAGE_SIZE);
		void *at = kvt_copy_map(t, page);
		unsigned long left;
		int err;

		if (!at)
			return -EIO;
		pagefault_disable();
		left = copy_from_user(at, u64_to_user_ptr(uptr + done), n);
		pagefault_enable();
		kunmap_local(at);
		if (left) {
			err = kvt_write_fault_in(p, id, gen, uptr + done, n);
			if (err)
				return err;
		} else {
			done += n;
			page++;
		}
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	kvt_slot_pad(t, h->mem_page, bytes);
	return kvt_copy_end(t);
}

/* Fill and commit one block reserved for no file. */
static int kvt_write_fill(struct kvt_putter *w, u32 i, const struct kvtier_buf *buf)
{
	struct kvt_batch *b = w->b;
	struct kvt_pool *p = b->f->pool;
	u32 id = b->id[i];
	bool mine = true;
	int err;

	if (!kvt_write_claim(p, id, b->gen[i])) {
		b->res[i].status = KVTIER_ST_STALE;
		return 0;
	}
	/*
	 * The caller's memory may take for ever to answer. The claimed block keeps its
	 * tier, so nobody else has to wait for it.
	 */
	srcu_read_unlock(&p->srcu, w->idx);
	err = kvt_write_copy(p, id, b->gen[i], b->group->block_bytes, buf->addr);
	w->idx = srcu_read_lock(&p->srcu);
	if (!err) {
		spin_lock(&p->meta_lock);
		b->res[i].status = kvt_commit_locked(p, b->f->ns, id, false);
		if (b->res[i].status >= 0)
			kvt_session_grow(b->f, id);
		spin_unlock(&p->meta_lock);
		kvt_block_wake(p, id);
		if (b->res[i].status == KVTIER_ST_DONE)
			return 0;
		mine = kvt_write_claim(p, id, b->gen[i]);
	} else {
		mine = err != -ESTALE;
		b->res[i].status = err == -EIO || !mine ? KVTIER_ST_STALE : KVTIER_ST_FAULT;
	}
	if (mine)
		kvt_filling_abort(p, &id, 1, false);
	return err == -EINTR ? err : 0;
}

/* Store one block; if its memory goes bad meanwhile, in another place. */
static int kvt_write_one(struct kvt_putter *w, u32 i, const struct kvtier_buf *buf)
{
	struct kvt_batch *b = w->b;
	u32 tries = 0;
	int err;

	do {
		w->nr_reserved = 0;
		err = kvt_reserve_one(w, i);
		if (err || b->res[i].status != KVTIER_ST_RESERVED)
			break;
		err = kvt_write_fill(w, i, buf);
	} while (!err && b->res[i].status == KVTIER_ST_STALE && ++tries < KVT_WRITE_TRIES);
	return err;
}

static int kvt_write_all(struct kvt_putter *w, struct kvtier_copy *a,
			 const struct kvtier_buf *bufs)
{
	struct kvt_batch *b = w->b;
	struct kvt_pool *p = b->f->pool;
	struct kvt_use use = { 0 };
	int err = 0;
	u32 i;

	w->idx = srcu_read_lock(&p->srcu);
	for (i = 0; i < b->nr && !err; i++) {
		err = kvt_write_one(w, i, &bufs[i]);
		if (b->res[i].status != KVTIER_ST_DONE)
			continue;
		a->nr_done++;
		use = kvt_use_of(b, i + 1, a->request);
	}
	srcu_read_unlock(&p->srcu, w->idx);
	kvt_touch(p, b->id, 0, &use);
	kvt_reclaim_kick(p);
	return err;
}

/**
 * kvt_op_write() - WRITE
 * @f:   caller
 * @arg: struct kvtier_copy
 */
int kvt_op_write(struct kvt_file *f, void *arg)
{
	struct kvtier_copy *a = arg;
	struct kvt_putter w = { .flags = KVTIER_RESERVE_WAIT, .region = KVT_NO_REGION };
	struct kvtier_buf *bufs = NULL;
	struct kvt_batch b;
	int err;

	if (f->rdonly)
		return -EACCES;
	err = kvt_batch_init(&b, f, a->group, a->nr, a->keys);
	if (err)
		return err;
	w.b = &b;
	w.deadline_ns = kvt_deadline(a->timeout_ns);
	a->nr_done = 0;
	err = kvt_copy_bufs(a, &b, true, &bufs) ?: kvt_parents_copy(&w, a->parent) ?:
	      kvt_pool_grow(f->pool, 1);
	if (!err || err == -ENOSPC)
		err = kvt_write_all(&w, a, bufs) ?: kvt_copy_results(a, &b);
	kvfree(w.parents);
	kvfree(bufs);
	kvt_batch_free(&b);
	return err;
}
