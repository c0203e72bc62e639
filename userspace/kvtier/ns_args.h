/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Arguments that commands on blocks share: which namespace, which group, which
 * keys.
 */
#ifndef KVTIER_NS_ARGS_H
#define KVTIER_NS_ARGS_H

#include <getopt.h>
#include "cmd.h"

struct ns_args {
	bool creates;
	const char *pool;		/* as typed, or NULL */
	unsigned char identity[KVTIER_IDENTITY_MAX];
	size_t identity_len;
	unsigned char secret[KVTIER_SECRET_BYTES];
	bool has_secret;
	bool has_owner;
	uint32_t owner_uid;
	uint32_t group;
	uint32_t nr_groups;
	uint64_t block_bytes[KVTIER_GROUPS_MAX];
	uint64_t quota_bytes;
	uint64_t timeout_ns;
	uint32_t mode;
	/* Keys, in the order given; to be freed by ns_args_free(). */
	uint32_t nr_keys;
	struct kvtier_key *keys;
};

/* getopt_long values of options. */
enum {
	NS_OPT_NS = 256,
	NS_OPT_NS_FILE,
	NS_OPT_SECRET,
	NS_OPT_GROUP,
	NS_OPT_BLOCK,
	NS_OPT_QUOTA,
	NS_OPT_MODE,
	NS_OPT_POOL,
	NS_OPT_TIMEOUT,
	NS_OPT_KEY_TEXT,
	NS_OPT_OWNER,
	/* Of single commands. */
	NS_OPT_ALL,
	NS_OPT_LIMIT,
	NS_OPT_OUTPUT,
	NS_OPT_PAD,
	NS_OPT_PARENT,
	NS_OPT_PARENT_TEXT,
};

/* All options of all these commands; ns_args_option() refuses those that are
 * neither shared nor taken by the command itself.
 */
extern const struct option ns_long_options[];

/* @creates: the command can create a namespace: quota and mode are options. */
void ns_args_init(struct ns_args *args, bool creates);
void ns_args_free(struct ns_args *args);

/* Takes one option; an exit status. Others are refused: @argv for the message. */
int ns_args_option(struct ns_args *args, int option, char **argv);
/* Adds a key given as hex digits. */
int ns_args_add_key(struct ns_args *args, const char *hex);

/**
 * ns_args_open - open the namespace
 * @flags: KVTIER_NS_RDONLY, KVTIER_NS_CREATE; CREATE only counts when block
 *         sizes were given, and no owner
 *
 * Returns an exit status.
 */
int ns_args_open(const struct ns_args *args, uint32_t flags,
		 struct kvtier_ns **ns);

/* Size of the chosen group's blocks: as given, or from sysfs. */
int ns_args_block_bytes(const struct ns_args *args, struct kvtier_ns *ns,
			uint64_t *bytes);

#endif /* KVTIER_NS_ARGS_H */
