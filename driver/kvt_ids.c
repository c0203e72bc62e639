// SPDX-License-Identifier: GPL-2.0
/*
 * Numbers of which a pool has only so many: of open files and buffers, and of namespaces.
 *
 * One user does not take them all: nobody gets another one who would have more than he
 * leaves, so that what he takes is never more than what is there for the next one. The last
 * one goes to who has none. Users are told apart by the uid that opened the file. Who had
 * CAP_SYS_RESOURCE then is held to nothing but the number itself.
 *
 * Invariant: @nr is at least the sum over all users. Both are changed before a number is taken,
 * and after it was given back, so of several at a time some may be refused too early.
 *
 * Any context that may sleep, no lock.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/fs.h>

#include "kvt_ids.h"

void kvt_ids_init(struct kvt_ids *s)
{
	ida_init(&s->ida);
	atomic_set(&s->nr, 0);
	xa_init_flags(&s->uids, XA_FLAGS_ACCOUNT);
}

/* All numbers have been given back, or none was ever taken. */
void kvt_ids_destroy(struct kvt_ids *s)
{
	ida_destroy(&s->ida);
	xa_destroy(&s->uids);
}

/**
 * kvt_may_have_more() - does a user leave enough if he gets one more
 * @has:  what he has
 * @all:  what all have
 * @most: how many there are
 * @file: whose opener he is
 */
bool kvt_may_have_more(u32 has, u32 all, u32 most, struct file *file)
{
	u32 left = most - min(all, most);

	if (!left)
		return false;
	return !has || has < left - 1 ||
	       file_ns_capable(file, &init_user_ns, CAP_SYS_RESOURCE);
}

static u32 kvt_ids_of(const void *entry)
{
	return entry ? (u32)xa_to_value(entry) : 0;
}

/* A user has @has, if he still has what is in @entry; that is what he has now. */
static void *kvt_ids_set(struct kvt_ids *s, kuid_t uid, void *entry, u32 has)
{
	return xa_cmpxchg(&s->uids, __kuid_val(uid), entry, has ? xa_mk_value(has) : NULL,
			  GFP_KERNEL);
}

/* One less. Nothing is allocated for that. */
static void kvt_ids_less(struct kvt_ids *s, kuid_t uid)
{
	void *entry = xa_load(&s->uids, __kuid_val(uid)), *was;

	while ((was = kvt_ids_set(s, uid, entry, kvt_ids_of(entry) - 1)) != entry)
		entry = was;
	atomic_dec(&s->nr);
}

/* One more, if he may: 0, -ENOSPC or -ENOMEM. */
static int kvt_ids_more(struct kvt_ids *s, struct file *file, u32 most)
{
	kuid_t uid = file->f_cred->fsuid;
	void *entry = xa_load(&s->uids, __kuid_val(uid)), *was;
	int err = -ENOSPC;

	atomic_inc(&s->nr);
	while (kvt_may_have_more(kvt_ids_of(entry), (u32)atomic_read(&s->nr) - 1, most, file)) {
		was = kvt_ids_set(s, uid, entry, kvt_ids_of(entry) + 1);
		if (was == entry)
			return 0;
		err = xa_err(was);
		if (err)
			break;
		err = -ENOSPC;
		entry = was;
	}
	atomic_dec(&s->nr);
	return err;
}

/**
 * kvt_id_take() - a number for a file's opener
 * @s:    numbers
 * @file: open
 * @most: how many there are
 * Return: from 1 to @most, -ENOSPC: he may have no more, or there is none, or -ENOMEM.
 */
int kvt_id_take(struct kvt_ids *s, struct file *file, u32 most)
{
	int id, err = kvt_ids_more(s, file, most);

	if (err)
		return err;
	id = ida_alloc_range(&s->ida, 1, most, GFP_KERNEL);
	if (id < 0)
		kvt_ids_less(s, file->f_cred->fsuid);
	return id;
}

/**
 * kvt_id_give() - a number is free again
 * @s:   numbers
 * @uid: who has taken it
 * @id:  from kvt_id_take()
 */
void kvt_id_give(struct kvt_ids *s, kuid_t uid, u32 id)
{
	ida_free(&s->ida, id);
	kvt_ids_less(s, uid);
}
