// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A pool's data device, not bound to a namespace.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

KVTI_EXPORT int kvtier_pool_open_path(const char *path,
				      struct kvtier_pool **out)
{
	struct kvtier_pool *pool = calloc(1, sizeof(*pool));
	int ret = -ENOMEM;

	if (!pool)
		return ret;
	/*
	 * Namespaces open it once more, from wherever the process is by then. Who may not see
	 * where that is can open it from here only.
	 */
	pool->path = *path == '/' ? NULL : realpath(path, NULL);
	if (!pool->path)
		pool->path = strdup(path);
	if (!pool->path)
		goto free_pool;
	ret = kvti_open(path, O_RDWR | O_CLOEXEC);
	if (ret == -EACCES)
		ret = kvti_open(path, O_RDONLY | O_CLOEXEC);
	if (ret < 0)
		goto free_path;
	pool->fd = ret;
	pool->chunk_bytes = KVTI_CHUNK_BYTES;
	atomic_init(&pool->refs, 1);
	*out = pool;
	return 0;

free_path:
	free(pool->path);
free_pool:
	free(pool);
	return ret;
}

KVTI_EXPORT int kvtier_pool_open(uint32_t pool_id, struct kvtier_pool **out)
{
	char path[32];

	snprintf(path, sizeof(path), "/dev/kvtier%u", pool_id);
	return kvtier_pool_open_path(path, out);
}

KVTI_EXPORT struct kvtier_pool *kvtier_pool_ref(struct kvtier_pool *pool)
{
	atomic_fetch_add(&pool->refs, 1);
	return pool;
}

KVTI_EXPORT void kvtier_pool_unref(struct kvtier_pool *pool)
{
	if (!pool || atomic_fetch_sub(&pool->refs, 1) != 1)
		return;
	kvti_sys.close(pool->fd);
	free(pool->path);
	free(pool);
}

KVTI_EXPORT void kvtier_pool_set_log(struct kvtier_pool *pool,
				     kvtier_log_fn fn, void *data)
{
	pool->log.fn = fn;
	pool->log.data = data;
}

KVTI_EXPORT int kvtier_pool_set_map_chunk(struct kvtier_pool *pool,
					  uint64_t bytes)
{
	if (!bytes || bytes % KVTI_HUGE_BYTES || bytes > SIZE_MAX / 2)
		return -EINVAL;
	pool->chunk_bytes = bytes;
	return 0;
}

int kvti_query(int fd, struct kvtier_query *q)
{
	return kvti_ioctl(fd, KVTIER_OP_QUERY, q);
}

KVTI_EXPORT int kvtier_pool_query(struct kvtier_pool *pool,
				  struct kvtier_query *q)
{
	return kvti_query(pool->fd, q);
}

KVTI_EXPORT int kvtier_pool_tiers(struct kvtier_pool *pool,
				  struct kvtier_tier_info *tiers)
{
	struct kvtier_query q = KVTIER_QUERY_INIT;
	int ret;

	q.tiers = kvti_addr(tiers);
	q.nr_tiers = KVTIER_TIERS_MAX;
	ret = kvti_query(pool->fd, &q);
	return ret < 0 ? ret : (int)q.nr_tiers;
}

KVTI_EXPORT int kvtier_pool_stat(struct kvtier_pool *pool,
				 struct kvtier_stat *st,
				 struct kvtier_tier_stat *tiers)
{
	int ret;

	st->flags = KVTIER_STAT_POOL;
	st->tiers = kvti_addr(tiers);
	st->nr_tiers = tiers ? KVTIER_TIERS_MAX : 0;
	ret = kvti_ioctl(pool->fd, KVTIER_OP_STAT, st);
	if (ret < 0)
		return ret;
	return tiers ? (int)st->nr_tiers : 0;
}
