// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A namespace: opening it, its life, what it tells about itself, completions.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "internal.h"

/* The size of the largest slot, so that mappings can overlap by as much. */
static uint64_t largest_slot(const struct kvtier_ns_params *p,
			     const struct kvtier_query *q)
{
	uint64_t largest = 0;
	uint32_t i;

	for (i = 0; i < p->nr_groups; i++)
		if (p->block_bytes[i] > largest)
			largest = p->block_bytes[i];
	if (!p->nr_groups)
		largest = q->block_bytes_max;
	return kvti_align_up(largest, KVTIER_SLOT_ALIGN);
}

static int bind_ns(int fd, const struct kvtier_ns_params *p,
		   struct kvtier_ns_open *cmd)
{
	struct kvtier_group groups[KVTIER_GROUPS_MAX];
	uint32_t i;

	if (p->nr_groups > KVTIER_GROUPS_MAX ||
	    p->identity_len > KVTIER_IDENTITY_MAX)
		return -EINVAL;
	memset(groups, 0, sizeof(groups));
	for (i = 0; i < p->nr_groups; i++)
		groups[i].block_bytes = p->block_bytes[i];
	memset(cmd, 0, sizeof(*cmd));
	cmd->size = sizeof(*cmd);
	cmd->flags = p->flags;
	cmd->identity_len = (uint32_t)p->identity_len;
	cmd->nr_groups = p->nr_groups;
	cmd->identity = kvti_addr(p->identity);
	cmd->secret = kvti_addr(p->secret);
	cmd->groups = p->nr_groups ? kvti_addr(groups) : 0;
	cmd->owner_uid = p->owner_uid;
	/* The rest says how to create it, and is nothing else's business. */
	if (p->flags & KVTIER_NS_CREATE) {
		cmd->mode = p->mode;
		cmd->quota_bytes = p->quota_bytes;
		cmd->min_bytes = p->min_bytes;
	}
	return kvti_ioctl(fd, KVTIER_OP_NS_OPEN, cmd);
}

static int ns_setup(struct kvtier_ns *ns, const struct kvtier_pool *pool,
		    const struct kvtier_ns_params *p)
{
	struct kvtier_query q = KVTIER_QUERY_INIT;
	struct kvtier_ns_open cmd;
	int ret;

	ret = kvti_query(ns->fd, &q);
	if (ret)
		return ret;
	ret = bind_ns(ns->fd, p, &cmd);
	if (ret)
		return ret;
	ns->id = cmd.ns_id;
	kvti_views_init(&ns->views, ns->fd, cmd.fill_offset);
	ns->views.log = pool->log;
	ns->views.chunk_bytes = pool->chunk_bytes;
	ns->views.slot_bytes_max = largest_slot(p, &q);
	atomic_init(&ns->views.window_bytes, q.window_bytes);
	return 0;
}

/* Not blocking in read(2): waiting for completions is done by poll(2), where
 * there is a timeout. The node's mode may let readers only read.
 */
static int open_device(const char *path, uint32_t ns_flags)
{
	int fd = kvti_open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);

	if (fd == -EACCES && (ns_flags & KVTIER_NS_RDONLY))
		fd = kvti_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd;
}

KVTI_EXPORT int kvtier_ns_open(struct kvtier_pool *pool,
			       const struct kvtier_ns_params *params,
			       struct kvtier_ns **out)
{
	struct kvtier_ns_params p;
	struct kvtier_ns *ns;
	int ret;

	ret = kvti_copy_params(&p, sizeof(p), params, params->size,
			       offsetof(struct kvtier_ns_params, min_bytes) +
			       sizeof(p.min_bytes));
	if (ret)
		return ret;
	if (p.owner_uid && !(p.flags & KVTIER_NS_OWNER))
		return -EOPNOTSUPP;
	ns = calloc(1, sizeof(*ns));
	if (!ns)
		return -ENOMEM;
	ret = open_device(pool->path, p.flags);
	if (ret < 0)
		goto free_ns;
	ns->fd = ret;
	ret = ns_setup(ns, pool, &p);
	if (ret)
		goto close_fd;
	atomic_init(&ns->refs, 1);
	*out = ns;
	return 0;

close_fd:
	kvti_sys.close(ns->fd);
free_ns:
	free(ns);
	return ret;
}

KVTI_EXPORT struct kvtier_ns *kvtier_ns_ref(struct kvtier_ns *ns)
{
	atomic_fetch_add(&ns->refs, 1);
	return ns;
}

KVTI_EXPORT void kvtier_ns_unref(struct kvtier_ns *ns)
{
	if (!ns || atomic_fetch_sub(&ns->refs, 1) != 1)
		return;
	/* Mappings hold the file too: with them gone, close() is the end. */
	kvti_views_fini(&ns->views);
	kvti_sys.close(ns->fd);
	free(ns);
}

KVTI_EXPORT uint64_t kvtier_ns_id(const struct kvtier_ns *ns)
{
	return ns->id;
}

KVTI_EXPORT int kvtier_ns_fd(const struct kvtier_ns *ns)
{
	return ns->fd;
}

KVTI_EXPORT int kvtier_ns_query(struct kvtier_ns *ns, struct kvtier_query *q)
{
	return kvti_query(ns->fd, q);
}

KVTI_EXPORT int kvtier_ns_stat(struct kvtier_ns *ns, struct kvtier_stat *st)
{
	st->flags = 0;
	st->tiers = 0;
	st->nr_tiers = 0;
	return kvti_ioctl(ns->fd, KVTIER_OP_STAT, st);
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* 0 when there may be something to read, -ETIMEDOUT, or -errno. */
static int wait_readable(int fd, int64_t deadline_ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	int64_t left = -1;
	int ret;

	if (deadline_ms >= 0) {
		left = deadline_ms - now_ms();
		if (left <= 0)
			return -ETIMEDOUT;
	}
	ret = kvti_sys.poll(&pfd, 1, (int)left);
	if (ret < 0)
		return -errno;
	if (ret && !(pfd.revents & POLLIN))
		return -ENXIO;
	return ret ? 0 : -ETIMEDOUT;
}

KVTI_EXPORT int kvtier_completions(struct kvtier_ns *ns,
				   struct kvtier_completion *out, uint32_t nr,
				   int timeout_ms)
{
	int64_t deadline_ms = timeout_ms < 0 ? -1 : now_ms() + timeout_ms;
	ssize_t bytes;
	int ret;

	if (!nr || nr > KVTIER_BATCH_MAX)
		return -EINVAL;
	/* Another thread may take what poll(2) promised: go round again. */
	for (;;) {
		bytes = kvti_sys.read(ns->fd, out, nr * sizeof(*out));
		if (bytes >= 0)
			return (int)((size_t)bytes / sizeof(*out));
		if (errno != EAGAIN)
			return -errno;
		ret = wait_readable(ns->fd, deadline_ms);
		if (ret == -ETIMEDOUT)
			return 0;
		if (ret)
			return ret;
	}
}
