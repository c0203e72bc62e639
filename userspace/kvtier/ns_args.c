// SPDX-License-Identifier: GPL-2.0
/*
 * Arguments that commands on blocks share.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ns_args.h"
#include "sysfs.h"

#define TIMEOUT_NS	10000000000ULL

const struct option ns_long_options[] = {
	{ "ns", required_argument, NULL, NS_OPT_NS },
	{ "ns-file", required_argument, NULL, NS_OPT_NS_FILE },
	{ "secret-file", required_argument, NULL, NS_OPT_SECRET },
	{ "group", required_argument, NULL, NS_OPT_GROUP },
	{ "block-bytes", required_argument, NULL, NS_OPT_BLOCK },
	{ "pool", required_argument, NULL, NS_OPT_POOL },
	{ "timeout", required_argument, NULL, NS_OPT_TIMEOUT },
	{ "key-text", required_argument, NULL, NS_OPT_KEY_TEXT },
	{ "owner", required_argument, NULL, NS_OPT_OWNER },
	{ "quota", required_argument, NULL, NS_OPT_QUOTA },
	{ "mode", required_argument, NULL, NS_OPT_MODE },
	{ "all", no_argument, NULL, NS_OPT_ALL },
	{ "limit", required_argument, NULL, NS_OPT_LIMIT },
	{ "output", required_argument, NULL, NS_OPT_OUTPUT },
	{ "pad", no_argument, NULL, NS_OPT_PAD },
	{ "parent", required_argument, NULL, NS_OPT_PARENT },
	{ "parent-text", required_argument, NULL, NS_OPT_PARENT_TEXT },
	{ NULL, 0, NULL, 0 },
};

void ns_args_init(struct ns_args *args, bool creates)
{
	memset(args, 0, sizeof(*args));
	args->creates = creates;
	args->mode = 0600;
	args->timeout_ns = TIMEOUT_NS;
}

void ns_args_free(struct ns_args *args)
{
	explicit_bzero(args->secret, sizeof(args->secret));
	free(args->keys);
	args->keys = NULL;
}

/* The whole of a small file. */
static int read_small(const char *path, void *buf, size_t room, size_t *len)
{
	unsigned char more;
	size_t have = 0;
	ssize_t got;
	int fd, ret = 0;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return cmd_fail(errno, "", "%s", path);
	/* A pipe gives what was written so far. */
	do {
		got = have < room ? read(fd, (char *)buf + have, room - have) :
				    read(fd, &more, 1);
		have += got > 0 ? (size_t)got : 0;
	} while ((got > 0 && have <= room) || (got < 0 && errno == EINTR));
	if (got < 0)
		ret = cmd_fail(errno, "", "%s", path);
	else if (have > room)
		ret = cmd_fail(EFBIG, "", "%s: at most %zu bytes", path, room);
	*len = ret ? 0 : have;
	close(fd);
	return ret;
}

static int set_identity(struct ns_args *args, const char *text)
{
	args->identity_len = strlen(text);
	if (!args->identity_len || args->identity_len > KVTIER_IDENTITY_MAX)
		return cmd_usage("--ns: want 1 to %d characters",
				 KVTIER_IDENTITY_MAX);
	memcpy(args->identity, text, args->identity_len);
	return EXIT_OK;
}

static int set_identity_file(struct ns_args *args, const char *path)
{
	int status = read_small(path, args->identity, sizeof(args->identity),
				&args->identity_len);

	if (!status && !args->identity_len)
		return cmd_fail_said(EINVAL, "", "%s is empty: an identity has 1 to %d bytes",
				     path, KVTIER_IDENTITY_MAX);
	return status;
}

static int set_secret(struct ns_args *args, const char *path)
{
	size_t len = 0;
	int status = read_small(path, args->secret, sizeof(args->secret), &len);

	if (!status && len != sizeof(args->secret))
		return cmd_fail(EINVAL, "make one: head -c 32 /dev/urandom > FILE",
				"%s: a secret has %d bytes, not %zu", path,
				KVTIER_SECRET_BYTES, len);
	args->has_secret = !status;
	return status;
}

static int add_block_bytes(struct ns_args *args, const char *text)
{
	uint64_t bytes;

	if (cmd_parse_bytes(text, &bytes) || !bytes ||
	    bytes > KVTIER_BLOCK_BYTES_MAX)
		return cmd_usage("--block-bytes '%s' is not a size from 1 to 256M",
				 text);
	if (args->nr_groups == KVTIER_GROUPS_MAX)
		return cmd_usage("a namespace has at most %d groups",
				 KVTIER_GROUPS_MAX);
	args->block_bytes[args->nr_groups++] = bytes;
	return EXIT_OK;
}

static int set_mode(struct ns_args *args, const char *text)
{
	unsigned long mode;
	char *end;

	mode = strtoul(text, &end, 8);
	if (end == text || *end || mode > 0777)
		return cmd_usage("--mode '%s' is not an octal mode such as 0640",
				 text);
	args->mode = (uint32_t)mode;
	return EXIT_OK;
}

static int set_group(struct ns_args *args, const char *text)
{
	uint64_t group;

	if (cmd_parse_u64(text, KVTIER_GROUPS_MAX - 1, &group))
		return cmd_usage("--group '%s' is not a number from 0 to %d",
				 text, KVTIER_GROUPS_MAX - 1);
	args->group = (uint32_t)group;
	return EXIT_OK;
}

static int set_owner(struct ns_args *args, const char *text)
{
	uint64_t uid;

	if (cmd_parse_u64(text, UINT32_MAX - 1, &uid))
		return cmd_usage("--owner '%s' is not the number of a user", text);
	args->owner_uid = (uint32_t)uid;
	args->has_owner = true;
	return EXIT_OK;
}

static int add_key(struct ns_args *args, const struct kvtier_key *key)
{
	void *bigger = realloc(args->keys,
			       (args->nr_keys + 1) * sizeof(*args->keys));

	if (!bigger)
		return cmd_fail(ENOMEM, NULL, "keys");
	args->keys = bigger;
	args->keys[args->nr_keys++] = *key;
	return EXIT_OK;
}

int ns_args_add_key(struct ns_args *args, const char *hex)
{
	struct kvtier_key key;

	if (cmd_parse_key(hex, &key))
		return cmd_usage("'%s' is not a key: want 64 hex digits, or --key-text TEXT",
				 hex);
	return add_key(args, &key);
}

/* An option that this command does not take, or that none does. */
static int bad_option(int option, char **argv)
{
	const struct option *o;

	for (o = ns_long_options; o->name; o++) {
		if (o->val == option)
			return cmd_usage("%s takes no option '--%s'", argv[0], o->name);
	}
	return cmd_usage("%s: bad option '%s'", argv[0], argv[optind - 1]);
}

int ns_args_option(struct ns_args *args, int option, char **argv)
{
	struct kvtier_key key;

	switch (option) {
	case NS_OPT_NS:
		return set_identity(args, optarg);
	case NS_OPT_NS_FILE:
		return set_identity_file(args, optarg);
	case NS_OPT_SECRET:
		return set_secret(args, optarg);
	case NS_OPT_GROUP:
		return set_group(args, optarg);
	case NS_OPT_BLOCK:
		return add_block_bytes(args, optarg);
	case NS_OPT_QUOTA:
		if (!args->creates)
			break;
		if (cmd_parse_bytes(optarg, &args->quota_bytes))
			return cmd_usage("--quota '%s' is not a size", optarg);
		return EXIT_OK;
	case NS_OPT_MODE:
		if (!args->creates)
			break;
		return set_mode(args, optarg);
	case NS_OPT_OWNER:
		return set_owner(args, optarg);
	case NS_OPT_POOL:
		args->pool = optarg;
		return EXIT_OK;
	case NS_OPT_TIMEOUT:
		if (cmd_parse_duration(optarg, &args->timeout_ns))
			return cmd_usage("--timeout '%s' is not a time such as 500ms",
					 optarg);
		return EXIT_OK;
	case NS_OPT_KEY_TEXT:
		cmd_hash_key(optarg, &key);
		return add_key(args, &key);
	}
	return bad_option(option, argv);
}

static int report_open(int err, bool creates)
{
	const char *hint = NULL;

	if (err == -ENOENT)
		hint = creates ?
		       "to create it, say how large its blocks are: --block-bytes SIZE" :
		       "namespaces belong to the user who made them: is it another's (--owner, and its mode must allow it), or has it a secret? see: kvtier ns list";
	else if (err == -EINVAL)
		hint = "it exists with other block sizes: kvtier ns list";
	else if (err == -EACCES)
		hint = "the namespace's mode does not allow it";
	else if (err == -ENOSPC)
		hint = "the pool has as many namespaces as it can";
	return cmd_fail(err, hint, "opening the namespace");
}

int ns_args_open(const struct ns_args *args, uint32_t flags,
		 struct kvtier_ns **ns)
{
	struct kvtier_ns_params p = KVTIER_NS_PARAMS_INIT;
	struct kvtier_pool *pool;
	uint32_t pool_id;
	int ret, status;

	if (!args->identity_len)
		return cmd_usage("which namespace? --ns NAME");
	if (!args->nr_groups || args->has_owner)
		flags &= ~KVTIER_NS_CREATE;
	if (args->has_owner)
		flags |= KVTIER_NS_OWNER;
	p.flags = flags;
	p.owner_uid = args->owner_uid;
	p.identity = args->identity;
	p.identity_len = args->identity_len;
	p.secret = args->has_secret ? args->secret : NULL;
	p.block_bytes = args->block_bytes;
	p.nr_groups = args->nr_groups;
	p.mode = args->mode;
	p.quota_bytes = args->quota_bytes;
	status = cmd_pick_pool(args->pool, &pool_id);
	if (!status)
		status = cmd_open_pool(pool_id, &pool);
	if (status)
		return status;
	ret = kvtier_ns_open(pool, &p, ns);
	kvtier_pool_unref(pool);
	return ret ? report_open(ret, args->creates) : EXIT_OK;
}

/* The kernel lists the sizes in the order of the groups. */
static int sysfs_block_bytes(uint32_t pool_id, uint64_t ns_id, uint32_t group,
			     uint64_t *bytes)
{
	char text[512], *rest = text, *word = NULL;
	uint32_t i;
	int ret;

	ret = sysfs_read(text, sizeof(text),
			 "class/kvtier/kvtier%u/namespaces/%llu/groups",
			 pool_id, (unsigned long long)ns_id);
	if (ret)
		return ret;
	for (i = 0; i <= group; i++) {
		word = strsep(&rest, " ");
		if (!word || !*word)
			return -ENOENT;
	}
	return cmd_parse_u64(word, KVTIER_BLOCK_BYTES_MAX, bytes);
}

int ns_args_block_bytes(const struct ns_args *args, struct kvtier_ns *ns,
			uint64_t *bytes)
{
	struct kvtier_query q = KVTIER_QUERY_INIT;
	int ret;

	if (args->nr_groups) {
		if (args->group >= args->nr_groups)
			return cmd_usage("there is no group %u", args->group);
		*bytes = args->block_bytes[args->group];
		return EXIT_OK;
	}
	ret = kvtier_ns_query(ns, &q);
	if (!ret)
		ret = sysfs_block_bytes(q.pool_id, kvtier_ns_id(ns),
					args->group, bytes);
	if (ret)
		return cmd_fail(ret, "say it: --block-bytes SIZE",
				"block size of group %u", args->group);
	return EXIT_OK;
}
