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
	const char *pool;		/* as typed, or NULL */
	unsigned char identity[KVTIER_IDENTITY_MAX];
	size_t identity_len;
	unsigned char secret[KVTIER_SECRET_BYTES];
	bool has_secret;
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

/* getopt_long values of the shared options. */
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
};

#define NS_OPTIONS							\
	{ "ns", required_argument, NULL, NS_OPT_NS },			\
	{ "ns-file", required_argument, NULL, NS_OPT_NS_FILE },		\
	{ "secret-file", required_argument, NULL, NS_OPT_SECRET },	\
	{ "group", required_argument, NULL, NS_OPT_GROUP },		\
	{ "block-bytes", required_argument, NULL, NS_OPT_BLOCK },	\
	{ "pool", required_argument, NULL, NS_OPT_POOL },		\
	{ "timeout", required_argument, NULL, NS_OPT_TIMEOUT },		\
	{ "key-text", required_argument, NULL, NS_OPT_KEY_TEXT }
#define NS_CREATE_OPTIONS						\
	{ "quota", required_argument, NULL, NS_OPT_QUOTA },		\
	{ "mode", required_argument, NULL, NS_OPT_MODE }

void ns_args_init(struct ns_args *args);
void ns_args_free(struct ns_args *args);

/* Takes one option; an exit status. Others are refused: @argv for the message. */
int ns_args_option(struct ns_args *args, int option, char **argv);
/* Adds a key given as hex digits. */
int ns_args_add_key(struct ns_args *args, const char *hex);

/**
 * ns_args_open - open the namespace
 * @flags: KVTIER_NS_RDONLY, KVTIER_NS_CREATE; CREATE only counts when block
 *         sizes were given
 *
 * Returns an exit status.
 */
int ns_args_open(const struct ns_args *args, uint32_t flags,
		 struct kvtier_ns **ns);

/* Size of the chosen group's blocks: as given, or from sysfs. */
int ns_args_block_bytes(const struct ns_args *args, struct kvtier_ns *ns,
			uint64_t *bytes);

#endif /* KVTIER_NS_ARGS_H */
