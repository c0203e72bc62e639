// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A pool by the path of its node: what a path means is settled when the pool is opened.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "internal.h"
#include "test_path.h"

#define BLOCK	(40 * 1024ULL)

static bool open_ns(struct kvtier_pool *pool)
{
	static const uint64_t sizes[] = { BLOCK };
	struct kvtier_ns_params p = KVTIER_NS_PARAMS_INIT;
	struct kvtier_ns *ns;

	p.flags = KVTIER_NS_CREATE;
	p.identity = "traveller";
	p.identity_len = strlen(p.identity);
	p.block_bytes = sizes;
	p.nr_groups = 1;
	if (kvtier_ns_open(pool, &p, &ns))
		return false;
	kvtier_ns_unref(ns);
	return true;
}

/* The node by a relative path in @dir, its namespace from elsewhere. */
static bool from_elsewhere(const char *dir)
{
	struct kvtier_pool *pool;
	bool ok;

	if (chdir(dir) || kvtier_pool_open_path("nothing", &pool) != -ENOENT ||
	    kvtier_pool_open_path("./kvtier0", &pool))
		return false;
	ok = !chdir("/") && open_ns(pool);
	kvtier_pool_unref(pool);
	return ok;
}

bool test_path_relative(void)
{
	char dir[] = "/tmp/kvtier-path.XXXXXX", node[64];
	int home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;
	bool ok;

	if (home < 0 || !mkdtemp(dir))
		return false;
	snprintf(node, sizeof(node), "%s/kvtier0", dir);
	fd = open(node, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	ok = fd >= 0 && from_elsewhere(dir);
	if (fd >= 0)
		close(fd);
	ok = !fchdir(home) && ok;
	close(home);
	unlink(node);
	rmdir(dir);
	return ok;
}
