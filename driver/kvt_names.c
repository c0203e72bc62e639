// SPDX-License-Identifier: GPL-2.0
/*
 * How namespaces are found: by owner, identity and secret.
 *
 * Anybody who may open the pool may ask for namespaces as often as he likes, with guesses, too,
 * and others wait meanwhile. So it costs the same whatever there is: a chain of a hash table is
 * gone through, whose key nobody knows, so that nobody can choose who is in a chain with whom.
 * And nothing tells of what others have: of everything in a chain the rights are looked at first,
 * and what does not allow what is asked for is passed over whatever its name is.
 *
 * Of a secret only SHA-256 of it and of a salt is kept. All that are made in a pool have the pool's
 * salt, so that a call takes one of these sums, before it takes a lock, whether there is such a
 * namespace or not. A pool that was assembled goes on with the salt of what it has found. On media
 * of older pools each namespace has a salt of its own: those are in a list, one sum each.
 *
 * Invariant: a namespace is in a chain, or in the list, from before it can be found until before
 * it is freed; its owner, identity and secret do not change meanwhile.
 *
 * Lock: conf_lock.
 */
#include <linux/cred.h>
#include <linux/random.h>
#include <linux/string.h>
#include <crypto/sha2.h>
#include <crypto/utils.h>

#include "kvt_internal.h"

/* What a chain is found by. */
struct kvt_name {
	u32 uid;
	u32 identity_len;
	u8 hash[KVT_NS_SECRET];
	u8 identity[KVTIER_IDENTITY_MAX];
};

/**
 * kvt_names_init() - there are none yet
 * @names: zeroed
 */
void kvt_names_init(struct kvt_names *names)
{
	get_random_bytes(&names->key, sizeof(names->key));
	get_random_bytes(names->salt, sizeof(names->salt));
}

/* Only this is kept of a secret, here and on the media. */
static void kvt_secret_hash(const u8 *salt, const u8 *secret, u8 *hash)
{
	u8 both[KVT_NS_SALT + KVTIER_SECRET_BYTES];

	BUILD_BUG_ON(SHA256_DIGEST_SIZE != KVT_NS_SECRET);
	memcpy(both, salt, KVT_NS_SALT);
	memcpy(both + KVT_NS_SALT, secret, KVTIER_SECRET_BYTES);
	sha256(both, sizeof(both), hash);
	memzero_explicit(both, sizeof(both));
}

/**
 * kvt_names_hash() - make what a secret is known by
 * @names: of a published pool; no lock needed
 * @a:     @secret is set
 */
void kvt_names_hash(const struct kvt_names *names, struct kvt_ns_args *a)
{
	a->has_secret = memchr_inv(a->secret, 0, sizeof(a->secret));
	if (a->has_secret)
		kvt_secret_hash(names->salt, a->secret, a->hash);
}

static u64 kvt_name_tag(const struct kvt_names *names, kuid_t uid, const u8 *identity, u32 len,
			const u8 *hash)
{
	struct kvt_name name = { .uid = __kuid_val(uid), .identity_len = len };

	memcpy(name.hash, hash, sizeof(name.hash));
	memcpy(name.identity, identity, len);
	return siphash(&name, sizeof(name), &names->key);
}

/**
 * kvt_names_add() - a namespace can be found
 * @names: of its pool; conf_lock held
 * @ns:    in none
 */
void kvt_names_add(struct kvt_names *names, struct kvt_ns *ns)
{
	if (ns->has_secret && !names->salted) {
		/* What was made here has it from there, where it is read without a lock. */
		if (memcmp(names->salt, ns->salt, sizeof(names->salt)))
			memcpy(names->salt, ns->salt, sizeof(names->salt));
		names->salted = true;
	}
	if (ns->has_secret && memcmp(ns->salt, names->salt, sizeof(names->salt))) {
		hlist_add_head(&ns->named, &names->odd);
		return;
	}
	ns->tag = kvt_name_tag(names, ns->uid, ns->identity, ns->identity_len, ns->secret);
	hash_add(names->chains, &ns->named, ns->tag);
}

/**
 * kvt_names_del() - a namespace cannot be found any more
 * @ns: conf_lock of its pool held
 */
void kvt_names_del(struct kvt_ns *ns)
{
	hlist_del_init(&ns->named);
}

/* Is it one of his groups: in_egroup_p(), but of who opened the file. */
static bool kvt_cred_in_group(const struct cred *cred, kgid_t gid)
{
	const struct group_info *g = cred->group_info;
	int i;

	if (gid_eq(cred->fsgid, gid))
		return true;
	for (i = 0; i < g->ngroups; i++) {
		if (gid_eq(g->gid[i], gid))
			return true;
	}
	return false;
}

/**
 * kvt_ns_may() - do a namespace's owner and mode let somebody in, as those of a file
 * @ns:   namespace
 * @cred: his
 * @want: MAY_READ, MAY_WRITE
 */
bool kvt_ns_may(const struct kvt_ns *ns, const struct cred *cred, u32 want)
{
	u32 bits;

	if (uid_eq(cred->fsuid, ns->uid))
		bits = ns->mode >> 6;
	else if (kvt_cred_in_group(cred, ns->gid))
		bits = ns->mode >> 3;
	else
		bits = ns->mode;
	return (bits & want) == want;
}

/*
 * May it be found: what was found on media without a secret may be whoever's by now, see
 * NS_CLAIM, and others' namespaces are there for those only whom they let in.
 */
static bool kvt_name_shows(const struct kvt_ns *ns, const struct kvt_file *f, u32 want)
{
	const struct cred *cred = f->file->f_cred;

	if (ns->unclaimed && !file_ns_capable(f->file, &init_user_ns, CAP_SYS_ADMIN))
		return false;
	return uid_eq(ns->uid, cred->fsuid) || kvt_ns_may(ns, cred, want);
}

static bool kvt_name_is(const struct kvt_ns *ns, kuid_t uid, const struct kvt_ns_args *a)
{
	return uid_eq(ns->uid, uid) && ns->identity_len == a->identity_len &&
	       ns->has_secret == a->has_secret &&
	       !crypto_memneq(ns->identity, a->identity, a->identity_len);
}

/* One whose secret has a salt of its own. */
static bool kvt_name_knows(const struct kvt_ns *ns, const struct kvt_ns_args *a)
{
	u8 hash[KVT_NS_SECRET];
	bool same;

	kvt_secret_hash(ns->salt, a->secret, hash);
	same = !crypto_memneq(ns->secret, hash, sizeof(hash));
	memzero_explicit(hash, sizeof(hash));
	return same;
}

/**
 * kvt_names_find() - the namespace of that name, if it is there for a file's opener
 * @f:    file; conf_lock of its pool held
 * @uid:  owner
 * @want: MAY_READ, MAY_WRITE: what another owner's namespace has to allow to be found
 * @a:    identity, secret and what kvt_names_hash() makes of it
 *
 * There may be two: of a namespace that has ended, a crash may have left a definition, and
 * the one that took its place since has the blocks. The younger one is meant.
 * Return: namespace, or NULL.
 */
struct kvt_ns *kvt_names_find(struct kvt_file *f, kuid_t uid, u32 want,
			      const struct kvt_ns_args *a)
{
	struct kvt_names *names = &f->pool->names;
	struct kvt_ns *ns, *found = NULL;
	u64 tag;

	lockdep_assert_held(&f->pool->conf_lock);
	tag = kvt_name_tag(names, uid, a->identity, a->identity_len, a->hash);
	hash_for_each_possible(names->chains, ns, named, tag) {
		if (kvt_name_shows(ns, f, want) && ns->tag == tag && kvt_name_is(ns, uid, a) &&
		    !crypto_memneq(ns->secret, a->hash, sizeof(a->hash)) &&
		    (!found || ns->id > found->id))
			found = ns;
	}
	hlist_for_each_entry(ns, &names->odd, named) {
		if (kvt_name_shows(ns, f, want) && kvt_name_is(ns, uid, a) &&
		    kvt_name_knows(ns, a) && (!found || ns->id > found->id))
			found = ns;
	}
	return found;
}
