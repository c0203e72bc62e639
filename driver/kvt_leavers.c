// SPDX-License-Identifier: GPL-2.0
/*
 * Members that have left without being wiped: the device had gone, or took no writes.
 *
 * What is dropped after that is not known there. All other members name a leaver in their
 * superblocks as one of the past, so it is refused when it is assembled with any of them
 * (kvt_assemble_member.c). If there is no other member, nothing but this pool knows that
 * the leaver is of the past, and the leaver alone is a pool that is complete. So the pool
 * remembers it, and DROP does not promise what it cannot keep (kvt_mlog_sync.c), until
 *
 *   - another member has such a superblock, for as long as that one stays,
 *   - the device is attached again, which wipes it, or
 *   - the administrator says that it was wiped, or that it will not come back.
 *
 * Namespaces that had blocks there are concerned, and those that were made when not all was durable
 * there that is dead, or later: they may be the same ones anew, with the old one's blocks under the
 * same keys.
 */
#include <linux/slab.h>

#include "kvt_internal.h"
#include "kvt_mlog.h"

/**
 * kvt_leavers_init() - none yet
 * @p: pool, private
 */
void kvt_leavers_init(struct kvt_pool *p)
{
	INIT_LIST_HEAD(&p->leavers.list);
}

/* All of them, or the one with this name. */
static void kvt_leavers_take(struct kvt_pool *p, const u8 *uuid)
{
	struct kvt_leaver *l, *next;
	LIST_HEAD(gone);

	spin_lock(&p->meta_lock);
	list_for_each_entry_safe(l, next, &p->leavers.list, link) {
		if (uuid && memcmp(l->uuid, uuid, KVT_UUID_BYTES))
			continue;
		list_move(&l->link, &gone);
		p->leavers.nr--;
	}
	spin_unlock(&p->meta_lock);
	list_for_each_entry_safe(l, next, &gone, link)
		kfree(l);
}

/**
 * kvt_leavers_forget() - none of them can come back
 * @p: pool; no spinlock held
 */
void kvt_leavers_forget(struct kvt_pool *p)
{
	kvt_leavers_take(p, NULL);
}

/**
 * kvt_leaver_back() - a member is wiped
 * @p:    pool; no spinlock held
 * @uuid: its name; it need not be a leaver
 */
void kvt_leaver_back(struct kvt_pool *p, const u8 *uuid)
{
	kvt_leavers_take(p, uuid);
}

/**
 * kvt_leavers_concern() - may a member bring back blocks under a namespace's name
 * @ns: namespace
 * @t:  block tier; meta lock held
 */
bool kvt_leavers_concern(const struct kvt_ns *ns, const struct kvt_tier *t)
{
	return (ns->on_tiers & 1u << t->id) || ns->recalls[t->id] == t->mlog->cookie;
}

/* Meta lock held. */
static void kvt_leaver_mark(struct kvt_ns *ns, void *tier)
{
	if (kvt_leavers_concern(ns, tier))
		ns->on_tiers |= KVT_ON_LEAVER;
}

/**
 * kvt_leaver_add() - a member is about to be withdrawn from the pool
 * @t: block tier, after kvt_mlog_leave(); tier_lock held, sleeps
 *
 * If it was wiped, or is to be found again, there is nothing to remember. Before it is
 * withdrawn: there must be no moment at which nobody knows of it.
 */
void kvt_leaver_add(struct kvt_tier *t)
{
	struct kvt_pool *p = t->pool;
	struct kvt_mlog *m = t->mlog;
	struct kvt_leaver *l = NULL;

	spin_lock(&p->meta_lock);
	if (!m->kept && !m->wiped) {
		l = m->leaver;
		m->leaver = NULL;
		memcpy(l->uuid, m->geo.member, KVT_UUID_BYTES);
		list_add(&l->link, &p->leavers.list);
		p->leavers.nr++;
	}
	spin_unlock(&p->meta_lock);
	if (!l)
		return;
	kvt_ns_for_each(p, kvt_leaver_mark, t);
	pr_warn("kvtier%u: tier %s leaves without being wiped: attach its device again, or wipe it, before a pool is assembled from it\n",
		p->id, t->args.name);
}

/**
 * kvt_leaver_found() - another member tells of a leaver
 * @p:    pool that is being assembled; private
 * @uuid: the leaver's name
 * Return: 0 or -ENOMEM.
 */
int kvt_leaver_found(struct kvt_pool *p, const u8 *uuid)
{
	struct kvt_leaver *l;

	list_for_each_entry(l, &p->leavers.list, link) {
		if (!memcmp(l->uuid, uuid, KVT_UUID_BYTES))
			return 0;
	}
	l = kmalloc(sizeof(*l), GFP_KERNEL);
	if (!l)
		return -ENOMEM;
	memcpy(l->uuid, uuid, KVT_UUID_BYTES);
	spin_lock(&p->meta_lock);
	list_add_tail(&l->link, &p->leavers.list);
	p->leavers.nr++;
	spin_unlock(&p->meta_lock);
	return 0;
}

/**
 * kvt_leavers_fit() - is there room in a superblock to tell of all of them
 * @p: pool, meta lock held
 */
bool kvt_leavers_fit(struct kvt_pool *p)
{
	u32 nr = p->leavers.nr, i;

	for (i = 0; i < KVT_TIERS; i++)
		nr += p->tiers[i] && p->tiers[i]->mlog;
	return nr <= KVT_MEMBERS_MAX;
}

/**
 * kvt_leavers_check() - a member has gone: is there still one that knows of the leavers
 * @p: pool; tier_lock held
 */
void kvt_leavers_check(struct kvt_pool *p)
{
	bool told = false;
	u32 i, nr;

	spin_lock(&p->meta_lock);
	nr = p->leavers.nr;
	for (i = 0; i < KVT_TIERS; i++)
		told |= p->tiers[i] && p->tiers[i]->mlog && !p->tiers[i]->mlog->w.given_up;
	spin_unlock(&p->meta_lock);
	if (nr && !told)
		pr_warn("kvtier%u: no member is left that tells of the %u that left without being wiped: what was dropped may come back with them\n",
			p->id, nr);
}

/*
 * May the member come back with blocks of a namespace that has ended: if nothing is written to it
 * any more, and if not all is durable yet that is dead there, and it stops before that. *@coming:
 * kills are still to come from its batches, for whichever member.
 */
static bool kvt_leavers_recalls(const struct kvt_mlog *m, bool *coming)
{
	struct kvt_wlog_fence f;

	kvt_wlog_fence(&m->w, &f);
	*coming |= f.batch || kvt_wlog_owes(&m->w);
	return m->w.given_up || !kvt_wlog_fence_passed(&m->w, &f);
}

/* Of all members, or of those that recall. Whether kills are to come. Meta lock held. */
static bool kvt_leavers_note(struct kvt_pool *p, struct kvt_ns *ns, bool all)
{
	bool coming = p->nr_strays;
	u32 i;

	for (i = 0; i < KVT_TIERS; i++) {
		const struct kvt_mlog *m = p->tiers[i] ? p->tiers[i]->mlog : NULL;

		if (m && (kvt_leavers_recalls(m, &coming) || all))
			ns->recalls[i] = m->cookie;
	}
	return coming;
}

/**
 * kvt_leavers_ns_new() - a namespace has been made
 * @p:  pool
 * @ns: in pool->ns, without blocks
 *
 * There may have been one of the same identity, whose blocks would be this one's then.
 */
void kvt_leavers_ns_new(struct kvt_pool *p, struct kvt_ns *ns)
{
	spin_lock(&p->meta_lock);
	if (p->leavers.nr)
		ns->on_tiers |= KVT_ON_LEAVER;
	if (kvt_leavers_note(p, ns, false))
		kvt_leavers_note(p, ns, true);
	spin_unlock(&p->meta_lock);
}
