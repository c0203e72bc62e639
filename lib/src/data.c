// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Data commands that give no pointers.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include "internal.h"

static const struct kvtier_opts default_opts = KVTIER_OPTS_INIT;

int kvti_get_opts(const struct kvtier_opts *opts, struct kvtier_opts *out)
{
	int ret;

	if (!opts) {
		*out = default_opts;
		return 0;
	}
	if (opts->size == sizeof(*opts)) {
		*out = *opts;
	} else {
		ret = kvti_copy_params(out, sizeof(*out), opts, opts->size,
				       offsetof(struct kvtier_opts,
						user_data) +
				       sizeof(out->user_data));
		if (ret)
			return ret;
	}
	return out->reserved ? -EOPNOTSUPP : 0;
}

KVTI_EXPORT int kvtier_lookup(struct kvtier_ns *ns,
			      const struct kvtier_opts *opts,
			      const struct kvtier_key *keys, uint32_t nr,
			      struct kvtier_lookup_result *results,
			      uint64_t *cost_ns)
{
	struct kvtier_lookup cmd = { .size = sizeof(cmd) };
	struct kvtier_opts o;
	int ret;

	ret = kvti_get_opts(opts, &o);
	if (ret)
		return ret;
	cmd.flags = o.flags;
	cmd.group = o.group;
	cmd.nr = nr;
	cmd.keys = kvti_addr(keys);
	cmd.results = kvti_addr(results);
	cmd.request = o.request;
	ret = kvti_ioctl(ns->fd, KVTIER_OP_LOOKUP, &cmd);
	if (ret)
		return ret;
	if (cost_ns)
		*cost_ns = cmd.cost_ns;
	return (int)cmd.nr_prefix;
}

static int copy_cmd(struct kvtier_ns *ns, unsigned int op,
		    const struct kvtier_opts *opts, struct kvtier_copy *cmd)
{
	struct kvtier_opts o;
	int ret;

	ret = kvti_get_opts(opts, &o);
	if (ret)
		return ret;
	cmd->size = sizeof(*cmd);
	cmd->flags = o.flags;
	cmd->group = o.group;
	cmd->request = o.request;
	cmd->timeout_ns = o.timeout_ns;
	ret = kvti_ioctl(ns->fd, op, cmd);
	return ret ? ret : (int)cmd->nr_done;
}

KVTI_EXPORT int kvtier_read(struct kvtier_ns *ns,
			    const struct kvtier_opts *opts,
			    const struct kvtier_key *keys, uint32_t nr,
			    const struct kvtier_buf *bufs, int32_t *results)
{
	struct kvtier_copy cmd = {
		.nr = nr,
		.keys = kvti_addr(keys),
		.bufs = kvti_addr(bufs),
		.results = kvti_addr(results),
	};

	return copy_cmd(ns, KVTIER_OP_READ, opts, &cmd);
}

KVTI_EXPORT int kvtier_write(struct kvtier_ns *ns,
			     const struct kvtier_opts *opts,
			     const struct kvtier_key *keys,
			     const struct kvtier_key *parent, uint32_t nr,
			     const struct kvtier_buf *bufs, int32_t *results)
{
	struct kvtier_copy cmd = {
		.nr = nr,
		.keys = kvti_addr(keys),
		.parent = kvti_addr(parent),
		.bufs = kvti_addr(bufs),
		.results = kvti_addr(results),
	};

	return copy_cmd(ns, KVTIER_OP_WRITE, opts, &cmd);
}

KVTI_EXPORT int kvtier_prefetch(struct kvtier_ns *ns,
				const struct kvtier_opts *opts,
				const struct kvtier_key *keys, uint32_t nr)
{
	struct kvtier_prefetch cmd = { .size = sizeof(cmd) };
	struct kvtier_opts o;
	int ret;

	ret = kvti_get_opts(opts, &o);
	if (ret)
		return ret;
	cmd.flags = o.flags;
	cmd.group = o.group;
	cmd.nr = nr;
	cmd.keys = kvti_addr(keys);
	cmd.request = o.request;
	cmd.user_data = o.user_data;
	cmd.eventfd = o.eventfd;
	ret = kvti_ioctl(ns->fd, KVTIER_OP_PREFETCH, &cmd);
	return ret ? ret : (int)cmd.nr_started;
}

KVTI_EXPORT int kvtier_advise(struct kvtier_ns *ns,
			      const struct kvtier_opts *opts, uint32_t advice,
			      uint64_t value, const struct kvtier_key *keys,
			      uint32_t nr, int32_t *results)
{
	struct kvtier_advise cmd = { .size = sizeof(cmd) };
	struct kvtier_opts o;
	int ret;

	ret = kvti_get_opts(opts, &o);
	if (ret)
		return ret;
	cmd.flags = o.flags;
	cmd.group = o.group;
	cmd.nr = nr;
	cmd.keys = kvti_addr(keys);
	cmd.results = kvti_addr(results);
	cmd.advice = advice;
	cmd.value = value;
	ret = kvti_ioctl(ns->fd, KVTIER_OP_ADVISE, &cmd);
	return ret ? ret : (int)cmd.nr_done;
}

KVTI_EXPORT int kvtier_session(struct kvtier_ns *ns,
			       const struct kvtier_opts *opts,
			       uint64_t session, uint32_t state,
			       const struct kvtier_key *tip, uint64_t reuse_ns)
{
	struct kvtier_session cmd = {
		.size = sizeof(cmd),
		.state = state,
		.session = session,
		.reuse_ns = reuse_ns,
	};
	struct kvtier_opts o;
	int ret;

	ret = kvti_get_opts(opts, &o);
	if (ret)
		return ret;
	cmd.flags = o.flags;
	cmd.group = o.group;
	if (tip)
		memcpy(cmd.tip, tip, sizeof(cmd.tip));
	return kvti_ioctl(ns->fd, KVTIER_OP_SESSION, &cmd);
}

KVTI_EXPORT int kvtier_drop(struct kvtier_ns *ns,
			    const struct kvtier_opts *opts,
			    const struct kvtier_key *keys, uint32_t nr,
			    int32_t *results)
{
	struct kvtier_drop cmd = { .size = sizeof(cmd) };
	struct kvtier_opts o;
	int ret;

	ret = kvti_get_opts(opts, &o);
	if (ret)
		return ret;
	cmd.flags = o.flags;
	cmd.group = o.group;
	cmd.nr = nr;
	cmd.keys = kvti_addr(keys);
	cmd.results = kvti_addr(results);
	ret = kvti_ioctl(ns->fd, KVTIER_OP_DROP, &cmd);
	return ret ? ret : (int)cmd.nr_done;
}

KVTI_EXPORT int kvtier_iterate(struct kvtier_ns *ns, uint64_t *cursor,
			       struct kvtier_entry *entries, uint32_t nr)
{
	struct kvtier_iterate cmd = {
		.size = sizeof(cmd),
		.nr = nr,
		.cursor = *cursor,
		.entries = kvti_addr(entries),
	};
	int ret;

	ret = kvti_ioctl(ns->fd, KVTIER_OP_ITERATE, &cmd);
	if (ret)
		return ret;
	*cursor = cmd.cursor;
	return (int)cmd.nr;
}
