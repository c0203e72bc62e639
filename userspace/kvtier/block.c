// SPDX-License-Identifier: GPL-2.0
/*
 * kvtier put|get: one block from the shell
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ns_args.h"

struct put {
	struct ns_args ns;
	bool pad;
	bool has_parent;
	struct kvtier_key parent;
	const char *file;
};

/* As much of @fd as there is, up to @room; -EFBIG if there is more. */
static ssize_t read_full(int fd, unsigned char *buf, size_t room)
{
	unsigned char more;
	size_t len = 0;
	ssize_t got;

	do {
		if (len < room)
			got = read(fd, buf + len, room - len);
		else
			got = read(fd, &more, 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got && len == room)
			return -EFBIG;
		len += (size_t)got;
	} while (got);
	return (ssize_t)len;
}

static int write_full(int fd, const void *buf, size_t len)
{
	const char *from = buf;
	ssize_t put;

	while (len) {
		put = write(fd, from, len);
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return -errno;
		from += put;
		len -= (size_t)put;
	}
	return 0;
}

static int load(const struct put *p, unsigned char *buf, uint64_t bytes)
{
	const char *name = p->file && strcmp(p->file, "-") ? p->file : NULL;
	int fd = STDIN_FILENO;
	ssize_t len;

	if (name)
		fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return cmd_fail(errno, "", "%s", name);
	len = read_full(fd, buf, bytes);
	if (name)
		close(fd);
	if (!name)
		name = "standard input";
	if (len == -EFBIG)
		return cmd_fail(EFBIG, "", "%s: a block of this group has %llu bytes",
				name, (unsigned long long)bytes);
	if (len < 0)
		return cmd_fail((int)len, "", "%s", name);
	if ((uint64_t)len < bytes && !p->pad)
		return cmd_fail(EINVAL, "fill it up with zeroes: --pad",
				"%s has %zd bytes, a block %llu", name, len,
				(unsigned long long)bytes);
	return EXIT_OK;
}

static int report_status(int32_t status, const char *what)
{
	static const struct {
		int32_t status;
		int err;
		const char *hint;
	} known[] = {
		{ KVTIER_ST_MISS, ENOENT, "it is not in the pool (any more)" },
		{ KVTIER_ST_FILLING, EAGAIN,
		  "another process is filling it right now" },
		{ KVTIER_ST_PENDING, ETIMEDOUT,
		  "it is on its way up: try again, or --timeout TIME" },
		{ KVTIER_ST_NOSPACE, ENOSPC,
		  "no memory became free in time: try again, or --timeout TIME" },
		{ KVTIER_ST_QUOTA, EDQUOT, "see: kvtier ns list" },
		{ KVTIER_ST_NOPARENT, ENOENT, "its parent is not in the pool" },
		{ KVTIER_ST_IOERR, EIO,
		  "its bytes could not be read back, or were not right" },
		{ KVTIER_ST_LIMIT, ENOSPC, "too many leases" },
		{ KVTIER_ST_CHILDREN, ENOTEMPTY,
		  "blocks that extend it must go first" },
		{ KVTIER_ST_BUSY, EBUSY, "somebody is filling it" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(known); i++)
		if (known[i].status == status)
			return cmd_fail(known[i].err, known[i].hint, "%s",
					what);
	return cmd_fail(0, "", "%s: %s", what, kvtier_status_name(status));
}

static int emit_block(const struct kvtier_key *key, int32_t status,
		      uint64_t bytes, const char *file)
{
	static const struct cmd_column cols[] = {
		{ "key", "key", CMD_TEXT },
		{ "status", "status", CMD_TEXT },
		{ NULL, NULL, CMD_TEXT },
	};
	char hex[2 * KVTIER_KEY_BYTES + 1];
	struct json_object *obj = json_object_new_object();

	cmd_format_key(key->b, hex);
	cmd_add_str(obj, "key", hex);
	cmd_add_str(obj, "status", kvtier_status_name(status));
	cmd_add_u64(obj, "bytes", bytes);
	if (file)
		cmd_add_str(obj, "file", file);
	cmd_emit(obj, cols);
	return EXIT_OK;
}

static int put_block(const struct put *p, struct kvtier_ns *ns)
{
	struct kvtier_opts opts = KVTIER_OPTS_INIT;
	struct kvtier_buf buf;
	int32_t result = 0;
	unsigned char *data;
	uint64_t bytes;
	int ret, status;

	status = ns_args_block_bytes(&p->ns, ns, &bytes);
	if (status)
		return status;
	data = calloc(1, bytes);
	if (!data)
		return cmd_fail(ENOMEM, NULL, "a block");
	status = load(p, data, bytes);
	if (status) {
		free(data);
		return status;
	}
	opts.group = p->ns.group;
	opts.timeout_ns = p->ns.timeout_ns;
	buf.addr = (uintptr_t)data;
	buf.bytes = bytes;
	ret = kvtier_write(ns, &opts, p->ns.keys,
			   p->has_parent ? &p->parent : NULL, 1, &buf, &result);
	free(data);
	if (ret < 0)
		return cmd_fail(ret, NULL, "storing the block");
	/* One copy: a block that is there already is as good as stored. */
	if (result != KVTIER_ST_DONE && result != KVTIER_ST_EXISTS)
		return report_status(result, "storing the block");
	return emit_block(p->ns.keys, result, bytes, NULL);
}

static int parse_put(int argc, char **argv, struct put *p)
{
	int o, status = EXIT_OK;

	while (!status &&
	       (o = getopt_long(argc, argv, "", ns_long_options, NULL)) != -1) {
		if (o == NS_OPT_PAD) {
			p->pad = true;
		} else if (o == NS_OPT_PARENT_TEXT) {
			cmd_hash_key(optarg, &p->parent);
			p->has_parent = true;
		} else if (o == NS_OPT_PARENT) {
			if (cmd_parse_key(optarg, &p->parent))
				return cmd_usage("--parent '%s': want 64 hex digits",
						 optarg);
			p->has_parent = true;
		} else {
			status = ns_args_option(&p->ns, o, argv);
		}
	}
	if (!status && !p->ns.nr_keys && optind < argc)
		status = ns_args_add_key(&p->ns, argv[optind++]);
	if (!status && p->ns.nr_keys != 1)
		return cmd_usage("put needs one key: 64 hex digits, or --key-text TEXT");
	if (!status && optind < argc)
		p->file = argv[optind++];
	if (!status && optind < argc)
		return cmd_usage("put: what is '%s'?", argv[optind]);
	return status;
}

int cmd_put(int argc, char **argv)
{
	struct kvtier_ns *ns = NULL;
	struct put p = { 0 };
	int status;

	ns_args_init(&p.ns, true);
	status = parse_put(argc, argv, &p);
	if (!status)
		status = ns_args_open(&p.ns, KVTIER_NS_CREATE, &ns);
	if (!status)
		status = put_block(&p, ns);
	kvtier_ns_unref(ns);
	ns_args_free(&p.ns);
	return status;
}

struct get {
	struct ns_args ns;
	const char *file;
};

static int store(const char *name, const void *data, uint64_t bytes)
{
	int ret, fd = STDOUT_FILENO;

	if (name)
		fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return cmd_fail(errno, "", "%s", name);
	ret = write_full(fd, data, bytes);
	if (name && close(fd) && !ret)
		ret = -errno;
	if (ret)
		return cmd_fail(ret, "", "writing %s",
				name ? name : "the block");
	return EXIT_OK;
}

static int get_block(const struct get *g, struct kvtier_ns *ns)
{
	struct kvtier_opts opts = KVTIER_OPTS_INIT;
	struct kvtier_slot slot;
	uint64_t bytes;
	int ret, status;

	status = ns_args_block_bytes(&g->ns, ns, &bytes);
	if (status)
		return status;
	opts.flags = KVTIER_GET_WAIT;
	opts.group = g->ns.group;
	opts.timeout_ns = g->ns.timeout_ns;
	ret = kvtier_get(ns, &opts, g->ns.keys, 1, &slot);
	if (ret < 0)
		return cmd_fail(ret, NULL, "fetching the block");
	if (!ret)
		return report_status(slot.status, "fetching the block");
	status = store(g->file, slot.ptr, bytes);
	kvtier_release_slots(ns, &slot, 1);
	if (status || !g->file)
		return status;
	return emit_block(g->ns.keys, KVTIER_ST_HIT, bytes, g->file);
}

static int parse_get(int argc, char **argv, struct get *g)
{
	int o, status = EXIT_OK;

	while (!status &&
	       (o = getopt_long(argc, argv, "o:", ns_long_options, NULL)) != -1) {
		if (o == 'o' || o == NS_OPT_OUTPUT)
			g->file = strcmp(optarg, "-") ? optarg : NULL;
		else
			status = ns_args_option(&g->ns, o, argv);
	}
	if (!status && !g->ns.nr_keys && optind < argc)
		status = ns_args_add_key(&g->ns, argv[optind++]);
	if (status)
		return status;
	if (g->ns.nr_keys != 1)
		return cmd_usage("get needs one key: 64 hex digits, or --key-text TEXT");
	if (optind < argc)
		return cmd_usage("get: what is '%s'?", argv[optind]);
	if (opt.json && !g->file)
		return cmd_usage("get: with JSON output the block must go to a file: --output FILE");
	return EXIT_OK;
}

int cmd_get(int argc, char **argv)
{
	struct kvtier_ns *ns = NULL;
	struct get g = { 0 };
	int status;

	ns_args_init(&g.ns, false);
	status = parse_get(argc, argv, &g);
	if (!status)
		status = ns_args_open(&g.ns, KVTIER_NS_RDONLY, &ns);
	if (!status)
		status = get_block(&g, ns);
	kvtier_ns_unref(ns);
	ns_args_free(&g.ns);
	return status;
}
