// SPDX-License-Identifier: GPL-2.0
/*
 * The commands, one call each. Nothing is retried and nothing is interpreted.
 */
#include "kvt_test.h"

int kvt_ioctl(int fd, unsigned int op, void *arg)
{
	return ioctl(fd, KVTIER_IOC(op), arg) < 0 ? -errno : 0;
}

void kvt_ns_args(struct kvtier_ns_open *a, const char *identity, struct kvtier_group *groups,
		 __u32 nr_groups)
{
	memset(a, 0, sizeof(*a));
	a->size = sizeof(*a);
	a->flags = KVTIER_NS_CREATE;
	a->identity = KVT_U64(identity);
	a->identity_len = strlen(identity);
	a->groups = KVT_U64(groups);
	a->nr_groups = nr_groups;
	a->mode = 0600;
}

int kvt_lookup(int fd, __u32 group, const struct kvt_key *keys, __u32 nr,
	       struct kvtier_lookup_result *res)
{
	struct kvtier_lookup a = {
		.size = sizeof(a),
		.group = group,
		.nr = nr,
		.keys = KVT_U64(keys),
		.results = KVT_U64(res),
	};
	int err = kvt_ioctl(fd, KVTIER_OP_LOOKUP, &a);

	return err ? err : (int)a.nr_prefix;
}

int kvt_get(int fd, __u32 flags, __u32 group, const struct kvt_key *keys, __u32 nr,
	    struct kvtier_block_result *res, __u64 timeout_ns)
{
	struct kvtier_get a = {
		.size = sizeof(a),
		.flags = flags,
		.group = group,
		.nr = nr,
		.keys = KVT_U64(keys),
		.results = KVT_U64(res),
		.timeout_ns = timeout_ns,
		.eventfd = -1,
	};
	int err = kvt_ioctl(fd, KVTIER_OP_GET, &a);

	return err ? err : (int)a.nr_prefix;
}

int kvt_reserve(int fd, __u32 flags, __u32 group, const struct kvt_key *keys,
		const struct kvt_key *parent, __u32 nr, struct kvtier_block_result *res,
		__u64 timeout_ns)
{
	struct kvtier_reserve a = {
		.size = sizeof(a),
		.flags = flags,
		.group = group,
		.nr = nr,
		.keys = KVT_U64(keys),
		.parent = KVT_U64(parent),
		.results = KVT_U64(res),
		.timeout_ns = timeout_ns,
		.eventfd = -1,
	};
	int err = kvt_ioctl(fd, KVTIER_OP_RESERVE, &a);

	return err ? err : (int)a.nr_reserved;
}

int kvt_commit(int fd, __u32 flags, const __u64 *handles, __u32 nr,
	       struct kvtier_block_result *res)
{
	struct kvtier_commit a = {
		.size = sizeof(a),
		.flags = flags,
		.nr = nr,
		.handles = KVT_U64(handles),
		.results = KVT_U64(res),
	};
	int err = kvt_ioctl(fd, KVTIER_OP_COMMIT, &a);

	return err ? err : (int)a.nr_done;
}

static int handles_cmd(int fd, unsigned int op, const __u64 *handles, __u32 nr, __s32 *res)
{
	struct kvtier_handles a = {
		.size = sizeof(a),
		.nr = nr,
		.handles = KVT_U64(handles),
		.results = KVT_U64(res),
	};
	int err = kvt_ioctl(fd, op, &a);

	return err ? err : (int)a.nr_done;
}

int kvt_abort(int fd, const __u64 *handles, __u32 nr, __s32 *res)
{
	return handles_cmd(fd, KVTIER_OP_ABORT, handles, nr, res);
}

int kvt_release(int fd, const __u64 *handles, __u32 nr, __s32 *res)
{
	return handles_cmd(fd, KVTIER_OP_RELEASE, handles, nr, res);
}

static int copy_cmd(int fd, unsigned int op, __u32 group, const struct kvt_key *key,
		    const struct kvt_key *parent, const void *buf, __u64 bytes,
		    __u64 timeout_ns)
{
	struct kvtier_buf b = { .addr = KVT_U64(buf), .bytes = bytes };
	__s32 status = KVTIER_ST_SKIPPED;
	struct kvtier_copy a = {
		.size = sizeof(a),
		.group = group,
		.nr = 1,
		.keys = KVT_U64(key),
		.parent = KVT_U64(parent),
		.bufs = KVT_U64(&b),
		.results = KVT_U64(&status),
		.timeout_ns = timeout_ns,
	};
	int err = kvt_ioctl(fd, op, &a);

	return err ? KVT_ERR(-err) : status;
}

int kvt_read1(int fd, __u32 group, const struct kvt_key *key, void *buf, __u64 bytes,
	      __u64 timeout_ns)
{
	return copy_cmd(fd, KVTIER_OP_READ, group, key, NULL, buf, bytes, timeout_ns);
}

int kvt_write1(int fd, __u32 group, const struct kvt_key *key, const struct kvt_key *parent,
	       const void *buf, __u64 bytes, __u64 timeout_ns)
{
	return copy_cmd(fd, KVTIER_OP_WRITE, group, key, parent, buf, bytes, timeout_ns);
}

int kvt_prefetch(int fd, __u32 flags, __u32 group, const struct kvt_key *keys, __u32 nr,
		 __u64 user_data, int eventfd)
{
	struct kvtier_prefetch a = {
		.size = sizeof(a),
		.flags = flags,
		.group = group,
		.nr = nr,
		.keys = KVT_U64(keys),
		.user_data = user_data,
		.eventfd = eventfd,
	};
	int err = kvt_ioctl(fd, KVTIER_OP_PREFETCH, &a);

	return err ? err : (int)a.nr_started;
}

int kvt_advise(int fd, __u32 group, const struct kvt_key *keys, __u32 nr, __u32 advice,
	       __u64 value, __s32 *res)
{
	struct kvtier_advise a = {
		.size = sizeof(a),
		.group = group,
		.nr = nr,
		.keys = KVT_U64(keys),
		.results = KVT_U64(res),
		.advice = advice,
		.value = value,
	};
	int err = kvt_ioctl(fd, KVTIER_OP_ADVISE, &a);

	return err ? err : (int)a.nr_done;
}

int kvt_session(int fd, __u32 group, __u64 session, __u32 state, const struct kvt_key *tip,
		__u64 reuse_ns)
{
	struct kvtier_session a = {
		.size = sizeof(a),
		.group = group,
		.state = state,
		.session = session,
		.reuse_ns = reuse_ns,
	};

	if (tip)
		memcpy(a.tip, tip, sizeof(a.tip));
	return kvt_ioctl(fd, KVTIER_OP_SESSION, &a);
}

int kvt_drop(int fd, __u32 group, const struct kvt_key *keys, __u32 nr, __s32 *res)
{
	struct kvtier_drop a = {
		.size = sizeof(a),
		.group = group,
		.nr = nr,
		.keys = KVT_U64(keys),
		.results = KVT_U64(res),
	};
	int err = kvt_ioctl(fd, KVTIER_OP_DROP, &a);

	return err ? err : (int)a.nr_done;
}

int kvt_iterate_all(int fd, __u32 page, struct kvtier_entry **out)
{
	struct kvtier_iterate a = { .size = sizeof(a) };
	struct kvtier_entry *all = NULL, *bigger;
	int nr = 0, err;

	do {
		bigger = realloc(all, (nr + page) * sizeof(*all));
		if (!bigger) {
			free(all);
			return -ENOMEM;
		}
		all = bigger;
		a.nr = page;
		a.entries = KVT_U64(all + nr);
		err = kvt_ioctl(fd, KVTIER_OP_ITERATE, &a);
		if (!err && a.nr > page)
			err = -EOVERFLOW;
		if (err) {
			free(all);
			return err;
		}
		nr += a.nr;
	} while (a.cursor);
	*out = all;
	return nr;
}

int kvt_stat(int fd, __u32 flags, struct kvtier_stat *st)
{
	memset(st, 0, sizeof(*st));
	st->size = sizeof(*st);
	st->flags = flags;
	return kvt_ioctl(fd, KVTIER_OP_STAT, st);
}

int kvt_tier_stats(int fd, struct kvtier_stat *st, struct kvtier_tier_stat *tiers)
{
	int err;

	memset(st, 0, sizeof(*st));
	memset(tiers, 0, KVTIER_TIERS_MAX * sizeof(*tiers));
	st->size = sizeof(*st);
	st->flags = KVTIER_STAT_POOL;
	st->tiers = KVT_U64(tiers);
	st->nr_tiers = KVTIER_TIERS_MAX;
	err = kvt_ioctl(fd, KVTIER_OP_STAT, st);
	return err ? err : (int)st->nr_tiers;
}

__u64 kvt_tier_errors(int fd, int tier)
{
	struct kvtier_tier_stat tiers[KVTIER_TIERS_MAX];
	struct kvtier_stat st;
	int i, nr = kvt_tier_stats(fd, &st, tiers);

	for (i = 0; i < nr; i++)
		if ((int)tiers[i].id == tier)
			return tiers[i].io_errors;
	return 0;
}

int kvt_query(int fd, struct kvtier_query *q, struct kvtier_tier_info *tiers)
{
	int err;

	memset(q, 0, sizeof(*q));
	q->size = sizeof(*q);
	q->tiers = KVT_U64(tiers);
	q->nr_tiers = tiers ? KVTIER_TIERS_MAX : 0;
	err = kvt_ioctl(fd, KVTIER_OP_QUERY, q);
	return err ? err : (int)q->nr_tiers;
}
