/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How namespaces are found: see kvt_names.c.
 */
#ifndef KVT_NAMES_H
#define KVT_NAMES_H

#include <linux/hashtable.h>
#include <linux/kvtier.h>
#include <linux/siphash.h>
#include <linux/types.h>
#include <linux/uidgid.h>

#include "core/kvt_format.h"

struct cred;
struct kvt_file;
struct kvt_ns;
struct kvt_pool;

#define KVT_NAMES_BITS	11

/**
 * struct kvt_names - a pool's namespaces by name
 * @key:    of the chains; random
 * @salt:   of secrets. Does not change once the pool is published
 * @salted: some namespace has it. conf_lock, as the next two
 * @odd:    namespaces whose secrets have another salt
 * @chains: all others
 */
struct kvt_names {
	siphash_key_t key;
	u8 salt[KVT_NS_SALT];
	bool salted;
	struct hlist_head odd;
	DECLARE_HASHTABLE(chains, KVT_NAMES_BITS);
};

/**
 * struct kvt_ns_args - what NS_OPEN asks for, in kernel memory
 * @group:        of kvtier_ns_open, as the next three
 * @identity:     zeroes behind its end
 * @secret:       zeroes if there is none
 * @identity_len: bytes
 * @has_secret:   it is not zero
 * @hash:         of the pool's salt and the secret, if there is one; else zeroes
 */
struct kvt_ns_args {
	struct kvtier_group group[KVTIER_GROUPS_MAX];
	u8 identity[KVTIER_IDENTITY_MAX];
	u8 secret[KVTIER_SECRET_BYTES];
	u32 identity_len;
	bool has_secret;
	u8 hash[KVT_NS_SECRET];
};

void kvt_names_init(struct kvt_names *names);
void kvt_names_hash(const struct kvt_names *names, struct kvt_ns_args *a);
void kvt_names_add(struct kvt_names *names, struct kvt_ns *ns);
void kvt_names_del(struct kvt_ns *ns);
bool kvt_ns_may(const struct kvt_ns *ns, const struct cred *cred, u32 want);
struct kvt_ns *kvt_names_find(struct kvt_file *f, kuid_t uid, u32 want,
			      const struct kvt_ns_args *a);

#endif /* KVT_NAMES_H */
