// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The control device: pools and tiers.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

struct kvtier_ctl {
	atomic_uint refs;
	int fd;
	struct kvti_log log;
};

KVTI_EXPORT int kvtier_ctl_open(struct kvtier_ctl **out)
{
	struct kvtier_ctl *ctl = calloc(1, sizeof(*ctl));
	int fd;

	if (!ctl)
		return -ENOMEM;
	/* Queries are for any opener, whatever the node's mode lets him do. */
	fd = kvti_open("/dev/kvtier", O_RDWR | O_CLOEXEC);
	if (fd == -EACCES)
		fd = kvti_open("/dev/kvtier", O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		free(ctl);
		return fd;
	}
	ctl->fd = fd;
	atomic_init(&ctl->refs, 1);
	*out = ctl;
	return 0;
}

KVTI_EXPORT struct kvtier_ctl *kvtier_ctl_ref(struct kvtier_ctl *ctl)
{
	atomic_fetch_add(&ctl->refs, 1);
	return ctl;
}

KVTI_EXPORT void kvtier_ctl_unref(struct kvtier_ctl *ctl)
{
	if (!ctl || atomic_fetch_sub(&ctl->refs, 1) != 1)
		return;
	kvti_sys.close(ctl->fd);
	free(ctl);
}

KVTI_EXPORT void kvtier_ctl_set_log(struct kvtier_ctl *ctl, kvtier_log_fn fn,
				    void *data)
{
	ctl->log.fn = fn;
	ctl->log.data = data;
}

KVTI_EXPORT int kvtier_ctl_query(struct kvtier_ctl *ctl,
				 struct kvtier_ctl_query *q)
{
	return kvti_ioctl(ctl->fd, KVTIER_OP_CTL_QUERY, q);
}

KVTI_EXPORT int kvtier_ctl_pools(struct kvtier_ctl *ctl, uint32_t **ids)
{
	struct kvtier_ctl_query q = KVTIER_CTL_QUERY_INIT;
	uint32_t *array = NULL, *bigger;
	int ret;

	/* Pools may come between asking the number and fetching the ids. */
	while ((ret = kvtier_ctl_query(ctl, &q)) == -EMSGSIZE ||
	       (!ret && !array && q.nr_pools)) {
		bigger = realloc(array, q.nr_pools * sizeof(*array));
		if (!bigger) {
			ret = -ENOMEM;
			break;
		}
		array = bigger;
		q.pools = kvti_addr(array);
	}
	if (ret < 0) {
		free(array);
		return ret;
	}
	/* The last ones may have gone meanwhile. */
	if (!q.nr_pools) {
		free(array);
		array = NULL;
	}
	*ids = array;
	return (int)q.nr_pools;
}

KVTI_EXPORT int kvtier_ctl_pool_create(struct kvtier_ctl *ctl,
				       uint32_t *pool_id)
{
	struct kvtier_pool_create cmd = {
		.size = sizeof(cmd),
		.pool_id = *pool_id,
	};
	int ret = kvti_ioctl(ctl->fd, KVTIER_OP_POOL_CREATE, &cmd);

	if (!ret) {
		*pool_id = cmd.pool_id;
		kvti_logf(&ctl->log, KVTIER_LOG_INFO, "pool %u created",
			  cmd.pool_id);
	}
	return ret;
}

KVTI_EXPORT int kvtier_ctl_pool_destroy(struct kvtier_ctl *ctl,
					uint32_t pool_id)
{
	struct kvtier_pool_destroy cmd = {
		.size = sizeof(cmd),
		.pool_id = pool_id,
	};

	return kvti_ioctl(ctl->fd, KVTIER_OP_POOL_DESTROY, &cmd);
}

KVTI_EXPORT int kvtier_ctl_pool_assemble(struct kvtier_ctl *ctl,
					 struct kvtier_pool_assemble *a)
{
	int ret = kvti_ioctl(ctl->fd, KVTIER_OP_POOL_ASSEMBLE, a);

	if (!ret)
		kvti_logf(&ctl->log, KVTIER_LOG_INFO,
			  "pool %u assembled from %u of %u members",
			  a->pool_id, a->nr_found, a->nr_members);
	return ret;
}

KVTI_EXPORT int kvtier_ctl_ns_claim(struct kvtier_ctl *ctl, uint32_t pool_id,
				    uint64_t ns_id, uint32_t uid, uint32_t gid)
{
	struct kvtier_ns_claim cmd = {
		.size = sizeof(cmd),
		.pool_id = pool_id,
		.ns_id = ns_id,
		.uid = uid,
		.gid = gid,
	};

	return kvti_ioctl(ctl->fd, KVTIER_OP_NS_CLAIM, &cmd);
}

KVTI_EXPORT int kvtier_ctl_pool_scrub(struct kvtier_ctl *ctl, uint32_t pool_id,
				      uint32_t flags, uint64_t rate_bytes)
{
	struct kvtier_pool_scrub cmd = {
		.size = sizeof(cmd),
		.flags = flags,
		.pool_id = pool_id,
		.rate_bytes = rate_bytes,
	};

	return kvti_ioctl(ctl->fd, KVTIER_OP_POOL_SCRUB, &cmd);
}

static int copy_string(char *dst, size_t room, const char *src)
{
	size_t bytes = src ? strlen(src) : 0;

	if (bytes >= room)
		return -ENAMETOOLONG;
	memcpy(dst, src ? src : "", bytes + 1);
	return 0;
}

KVTI_EXPORT int kvtier_ctl_tier_attach(struct kvtier_ctl *ctl,
				       uint32_t pool_id,
				       const struct kvtier_tier_params *params,
				       uint32_t *tier_id)
{
	struct kvtier_tier_attach cmd = { .size = sizeof(cmd) };
	struct kvtier_tier_params p;
	int ret;

	ret = kvti_copy_params(&p, sizeof(p), params, params->size,
			       offsetof(struct kvtier_tier_params,
					segment_bytes) +
			       sizeof(p.segment_bytes));
	if (ret)
		return ret;
	cmd.flags = p.flags;
	cmd.pool_id = pool_id;
	cmd.type = p.type;
	cmd.rank = p.rank;
	cmd.node = p.node;
	cmd.capacity_bytes = p.capacity_bytes;
	cmd.segment_bytes = p.segment_bytes;
	cmd.bad = (uintptr_t)p.bad;
	cmd.nr_bad = p.nr_bad;
	ret = copy_string(cmd.name, sizeof(cmd.name), p.name);
	if (!ret)
		ret = copy_string(cmd.path, sizeof(cmd.path), p.path);
	if (!ret)
		ret = kvti_ioctl(ctl->fd, KVTIER_OP_TIER_ATTACH, &cmd);
	if (ret)
		return ret;
	kvti_logf(&ctl->log, KVTIER_LOG_INFO, "tier %s is number %u of pool %u",
		  cmd.name, cmd.tier_id, pool_id);
	if (tier_id)
		*tier_id = cmd.tier_id;
	return 0;
}

static int tier_op(struct kvtier_ctl *ctl, unsigned int op, uint32_t pool_id,
		   uint32_t tier_id, uint32_t flags, uint64_t timeout_ns)
{
	struct kvtier_tier_op cmd = {
		.size = sizeof(cmd),
		.flags = flags,
		.pool_id = pool_id,
		.tier_id = tier_id,
		.timeout_ns = timeout_ns,
	};

	return kvti_ioctl(ctl->fd, op, &cmd);
}

KVTI_EXPORT int kvtier_ctl_tier_detach(struct kvtier_ctl *ctl,
				       uint32_t pool_id, uint32_t tier_id,
				       uint32_t flags, uint64_t timeout_ns)
{
	return tier_op(ctl, KVTIER_OP_TIER_DETACH, pool_id, tier_id, flags,
		       timeout_ns);
}

KVTI_EXPORT int kvtier_ctl_tier_drain(struct kvtier_ctl *ctl, uint32_t pool_id,
				      uint32_t tier_id, uint64_t timeout_ns)
{
	return tier_op(ctl, KVTIER_OP_TIER_DRAIN, pool_id, tier_id, 0,
		       timeout_ns);
}
