// SPDX-License-Identifier: GPL-2.0
/*
 * From ioctl to operation: one table row for each command.
 *
 * A row gives the struct's size, how much of it is mandatory, which flags exist
 * and where its reserved field is; so the checks that every command needs are
 * made in one place and no handler sees a malformed struct. The handler works on
 * a kernel copy, which is copied back if it succeeded or answered EMSGSIZE. A file
 * descriptor that it answers begins to work after that: one that nobody was told of
 * would stay open.
 */
#include <linux/capability.h>
#include <linux/file.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/uaccess.h>

#include "ops.h"

#define KVT_ARG_MAX	512

/**
 * struct kvt_op - a command
 * @data:     handler of a data command
 * @fd:       of one that answers a file descriptor, instead
 * @ctl:      handler of a control command
 * @size:     sizeof its struct
 * @min_size: end of the last mandatory field
 * @flags:    known ones
 * @reserved: offset of a __u32 that must be 0, or 0
 * @unbound:  works before NS_OPEN
 * @anyone:   control: no capability needed
 * @report:   the struct is copied back whatever the result
 */
struct kvt_op {
	int (*data)(struct kvt_file *f, void *arg);
	int (*fd)(struct kvt_file *f, void *arg, struct kvt_newfd *new);
	int (*ctl)(void *arg);
	u16 size;
	u16 min_size;
	u32 flags;
	u16 reserved;
	bool unbound;
	bool anyone;
	bool report;
};

static int kvt_ctl_query(void *arg)
{
	struct kvtier_ctl_query *q = arg;
	u32 *ids = kmalloc_array(KVT_POOLS_MAX, sizeof(*ids), GFP_KERNEL);
	u32 room = q->nr_pools, nr;
	int err = 0;

	if (!ids)
		return -ENOMEM;
	nr = kvt_pool_ids(ids, KVT_POOLS_MAX);
	q->abi_revision = KVTIER_ABI_REVISION;
	q->features = kvt_features();
	q->ops = kvt_ops_mask(true);
	q->nr_pools = nr;
	if (q->pools && copy_to_user(u64_to_user_ptr(q->pools), ids,
				     min(room, nr) * sizeof(u32)))
		err = -EFAULT;
	kfree(ids);
	return err ?: q->pools && nr > room ? -EMSGSIZE : 0;
}

static int kvt_ctl_pool_create(void *arg)
{
	struct kvtier_pool_create *c = arg;

	return kvt_pool_create(&c->pool_id);
}

static int kvt_ctl_pool_destroy(void *arg)
{
	struct kvtier_pool_destroy *d = arg;

	return kvt_pool_destroy(d->pool_id);
}

static int kvt_ctl_pool_assemble(void *arg)
{
	return kvt_assemble(arg);
}

static int kvt_ctl_ns_claim(void *arg)
{
	struct kvtier_ns_claim *c = arg;
	struct kvt_pool *p = kvt_pool_get(c->pool_id);
	int err;

	if (!p)
		return -ENOENT;
	err = kvt_ns_claim(p, c);
	kvt_pool_put(p);
	return err;
}

static int kvt_ctl_pool_scrub(void *arg)
{
	struct kvtier_pool_scrub *c = arg;
	struct kvt_pool *p;
	int err;

	if ((c->flags & KVTIER_SCRUB_STOP) && c->rate_bytes)
		return -EINVAL;
	p = kvt_pool_get(c->pool_id);
	if (!p)
		return -ENOENT;
	err = c->flags & KVTIER_SCRUB_STOP ? kvt_scrub_stop(p) :
					     kvt_scrub_start(p, c->rate_bytes);
	kvt_pool_put(p);
	return err;
}

static int kvt_cmp_ranges(const void *a, const void *b)
{
	const struct kvtier_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* No address is in two of them, so that each page is looked at once; some may be empty. */
static void kvt_part_ranges(struct kvtier_range *range, u32 nr)
{
	u64 end = 0, last;
	u32 i;

	sort(range, nr, sizeof(*range), kvt_cmp_ranges, NULL);
	for (i = 0; i < nr; i++) {
		last = range[i].start + range[i].bytes;
		range[i].start = max(range[i].start, end);
		range[i].bytes = last - min(last, range[i].start);
		end = max(end, last);
	}
}

/*
 * The ranges of a TIER_ATTACH, checked and apart; NULL if there are none, or an ERR_PTR.
 */
static struct kvtier_range *kvt_copy_bad(const struct kvtier_tier_attach *a)
{
	struct kvtier_range *bad;
	u32 i;

	if (!a->nr_bad)
		return NULL;
	if (a->nr_bad > KVTIER_BAD_MAX)
		return ERR_PTR(-EINVAL);
	bad = vmemdup_array_user(u64_to_user_ptr(a->bad), a->nr_bad, sizeof(*bad));
	for (i = 0; !IS_ERR(bad) && i < a->nr_bad; i++) {
		if (bad[i].bytes && bad[i].start <= U64_MAX - bad[i].bytes)
			continue;
		kvfree(bad);
		return ERR_PTR(-EINVAL);
	}
	if (!IS_ERR(bad))
		kvt_part_ranges(bad, a->nr_bad);
	return bad;
}

static int kvt_ctl_tier_attach(void *arg)
{
	struct kvtier_tier_attach *a = arg;
	struct kvt_pool *p = kvt_pool_get(a->pool_id);
	struct kvtier_range *bad;
	int err;

	if (!p)
		return -ENOENT;
	bad = kvt_copy_bad(a);
	err = PTR_ERR_OR_ZERO(bad);
	if (!err)
		err = kvt_tier_attach(p, a, bad, &a->tier_id);
	kvt_pool_put(p);
	if (!IS_ERR(bad))
		kvfree(bad);
	return err;
}

static int kvt_ctl_tier_detach(void *arg)
{
	struct kvtier_tier_op *o = arg;
	struct kvt_pool *p = kvt_pool_get(o->pool_id);
	int err;

	if (!p)
		return -ENOENT;
	err = kvt_tier_detach(p, o->tier_id, o->timeout_ns,
			      o->flags & KVTIER_DETACH_DISCARD);
	kvt_pool_put(p);
	return err;
}

static int kvt_ctl_tier_drain(void *arg)
{
	struct kvtier_tier_op *o = arg;
	struct kvt_pool *p = kvt_pool_get(o->pool_id);
	int err;

	if (!p)
		return -ENOENT;
	err = kvt_tier_drain(p, o->tier_id, o->timeout_ns);
	kvt_pool_put(p);
	return err;
}

#define DATA(op, fn, str, last, ...)						\
	[KVTIER_OP_##op] = { .data = (fn), .size = sizeof(struct str),		\
			     .min_size = offsetofend(struct str, last), __VA_ARGS__ }
#define CTL(op, fn, str, last, ...)						\
	[KVTIER_OP_##op] = { .ctl = (fn), .size = sizeof(struct str),		\
			     .min_size = offsetofend(struct str, last), __VA_ARGS__ }
#define NEWFD(op, func, str, last, ...)						\
	[KVTIER_OP_##op] = { .fd = (func), .size = sizeof(struct str),		\
			     .min_size = offsetofend(struct str, last), __VA_ARGS__ }
#define RSV(str) .reserved = offsetof(struct str, __reserved)

static const struct kvt_op kvt_ops[] = {
	DATA(QUERY, kvt_op_query, kvtier_query, window_bytes, .unbound = true),
	DATA(NS_OPEN, kvt_op_ns_open, kvtier_ns_open, fill_bytes,
	     .flags = KVTIER_NS_FLAGS, .unbound = true),
	DATA(LOOKUP, kvt_op_lookup, kvtier_lookup, cost_ns, RSV(kvtier_lookup)),
	DATA(GET, kvt_op_get, kvtier_get, nr_prefix, .flags = KVTIER_GET_FLAGS),
	DATA(RESERVE, kvt_op_reserve, kvtier_reserve, nr_reserved,
	     .flags = KVTIER_RESERVE_FLAGS),
	DATA(COMMIT, kvt_op_commit, kvtier_commit, results,
	     .flags = KVTIER_COMMIT_FLAGS),
	DATA(ABORT, kvt_op_abort, kvtier_handles, handles),
	DATA(RELEASE, kvt_op_release, kvtier_handles, handles),
	DATA(READ, kvt_op_read, kvtier_copy, nr_done, RSV(kvtier_copy)),
	DATA(WRITE, kvt_op_write, kvtier_copy, nr_done, RSV(kvtier_copy)),
	DATA(PREFETCH, kvt_op_prefetch, kvtier_prefetch, nr_started,
	     .flags = KVTIER_PREFETCH_FLAGS),
	DATA(ADVISE, kvt_op_advise, kvtier_advise, value),
	DATA(DROP, kvt_op_drop, kvtier_drop, nr_done, RSV(kvtier_drop)),
	DATA(ITERATE, kvt_op_iterate, kvtier_iterate, entries, RSV(kvtier_iterate)),
	DATA(STAT, kvt_op_stat, kvtier_stat, meta_bytes_per_block,
	     .flags = KVTIER_STAT_FLAGS, RSV(kvtier_stat), .unbound = true),
	DATA(ARENA, kvt_op_arena, kvtier_arena, slot_bytes),
	DATA(SESSION, kvt_op_session, kvtier_session, reuse_ns),
#ifdef CONFIG_DMA_SHARED_BUFFER
	NEWFD(EXPORT, kvt_op_export, kvtier_export, bytes),
#endif
	CTL(CTL_QUERY, kvt_ctl_query, kvtier_ctl_query, ops, .anyone = true),
	CTL(POOL_CREATE, kvt_ctl_pool_create, kvtier_pool_create, pool_id,
	    RSV(kvtier_pool_create)),
	CTL(POOL_DESTROY, kvt_ctl_pool_destroy, kvtier_pool_destroy, pool_id,
	    RSV(kvtier_pool_destroy)),
	CTL(POOL_ASSEMBLE, kvt_ctl_pool_assemble, kvtier_pool_assemble, time_ns,
	    .flags = KVTIER_ASSEMBLE_FLAGS, .report = true),
	CTL(POOL_SCRUB, kvt_ctl_pool_scrub, kvtier_pool_scrub, rate_bytes,
	    .flags = KVTIER_SCRUB_FLAGS, RSV(kvtier_pool_scrub)),
	CTL(TIER_ATTACH, kvt_ctl_tier_attach, kvtier_tier_attach, tier_id,
	    .flags = KVTIER_ATTACH_FLAGS),
	CTL(TIER_DETACH, kvt_ctl_tier_detach, kvtier_tier_op, timeout_ns,
	    .flags = KVTIER_DETACH_FLAGS),
	CTL(TIER_DRAIN, kvt_ctl_tier_drain, kvtier_tier_op, timeout_ns),
	CTL(NS_CLAIM, kvt_ctl_ns_claim, kvtier_ns_claim, gid, RSV(kvtier_ns_claim)),
};

static bool kvt_op_there(const struct kvt_op *op, bool ctl)
{
	return ctl ? !!op->ctl : op->data || op->fd;
}

/**
 * kvt_ops_mask() - commands there are
 * @ctl: of the control device, else of a data device
 */
u64 kvt_ops_mask(bool ctl)
{
	u64 mask = 0;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(kvt_ops); i++) {
		if (kvt_op_there(&kvt_ops[i], ctl))
			mask |= BIT_ULL(i);
	}
	return mask;
}

u64 kvt_features(void)
{
	return KVTIER_FEAT_ASYNC | KVTIER_FEAT_ARENA | KVTIER_FEAT_DURABLE |
	       KVTIER_FEAT_SESSION |
	       (IS_ENABLED(CONFIG_DMA_SHARED_BUFFER) ? KVTIER_FEAT_EXPORT : 0) |
	       (kvt_xfer_has_dmaengine() ? KVTIER_FEAT_DMAENGINE : 0);
}

/* The row of a command, or an ERR_PTR. */
static const struct kvt_op *kvt_op_row(unsigned int cmd, bool ctl)
{
	u32 nr = _IOC_NR(cmd);
	const struct kvt_op *op;

	if (cmd != KVTIER_IOC(nr))
		return ERR_PTR(-ENOTTY);
	if (nr == KVTIER_OP_EVENTS ||
	    (nr == KVTIER_OP_EXPORT && !IS_ENABLED(CONFIG_DMA_SHARED_BUFFER)))
		return ERR_PTR(ctl ? -ENOTTY : -EOPNOTSUPP);
	if (nr >= ARRAY_SIZE(kvt_ops))
		return ERR_PTR(-ENOTTY);
	op = &kvt_ops[array_index_nospec(nr, ARRAY_SIZE(kvt_ops))];
	if (!kvt_op_there(op, ctl))
		return ERR_PTR(-ENOTTY);
	return op;
}

/* Copy the caller's struct in and check what is common to all commands. */
static int kvt_op_copy_in(const struct kvt_op *op, void *arg, void __user *uarg, u32 *usize)
{
	u32 *head = arg;
	int err;

	if (get_user(*usize, (u32 __user *)uarg))
		return -EFAULT;
	if (*usize < op->min_size || *usize > PAGE_SIZE)
		return *usize < op->min_size ? -EINVAL : -E2BIG;
	err = copy_struct_from_user(arg, op->size, uarg, *usize);
	if (err)
		return err;
	/* The caller may have changed it since. */
	head[0] = *usize;
	if (head[1] & ~op->flags)
		return -EOPNOTSUPP;
	if (op->reserved && *(u32 *)(arg + op->reserved))
		return -EOPNOTSUPP;
	return 0;
}

/* The caller knows of his new descriptor now, or never will. */
static void kvt_newfd_end(const struct kvt_newfd *new, bool told)
{
	if (!new->file)
		return;
	if (told) {
		fd_install(new->fd, new->file);
		return;
	}
	put_unused_fd(new->fd);
	fput(new->file);
}

static long kvt_op_call(const struct kvt_op *op, struct kvt_file *f, void __user *uarg)
{
	u64 arg[KVT_ARG_MAX / sizeof(u64)];
	struct kvt_newfd new = { 0 };
	bool told;
	u32 usize;
	int err;

	err = kvt_op_copy_in(op, arg, uarg, &usize);
	if (err)
		return err;
	if (op->fd)
		err = op->fd(f, arg, &new);
	else
		err = f ? op->data(f, arg) : op->ctl(arg);
	if (err && err != -EMSGSIZE && !op->report)
		return err;
	told = !copy_to_user(uarg, arg, min_t(u32, usize, op->size));
	kvt_newfd_end(&new, told);
	return told ? err : -EFAULT;
}

long kvt_data_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	const struct kvt_op *op = kvt_op_row(cmd, false);
	struct kvt_file *f = file->private_data;

	if (IS_ERR(op))
		return PTR_ERR(op);
	/* Pairs with the release in NS_OPEN: a bound file's namespace is complete. */
	if (!op->unbound && !smp_load_acquire(&f->ns))
		return -EBADFD;
	return kvt_op_call(op, f, (void __user *)arg);
}

static long kvt_ctl_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	const struct kvt_op *op = kvt_op_row(cmd, true);

	BUILD_BUG_ON(sizeof(struct kvtier_tier_attach) > KVT_ARG_MAX);
	if (IS_ERR(op))
		return PTR_ERR(op);
	if (!op->anyone && !capable(CAP_SYS_ADMIN))
		return -EPERM;
	return kvt_op_call(op, NULL, (void __user *)arg);
}

const struct file_operations kvt_ctl_fops = {
	.owner = THIS_MODULE,
	.open = nonseekable_open,
	.unlocked_ioctl = kvt_ctl_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};
