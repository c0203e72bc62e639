// SPDX-License-Identifier: GPL-2.0
/*
 * Members of a pool to be assembled: opening them, and whether they belong together.
 *
 * Each superblock lists the members of the pool with the newest generation of theirs
 * that was durable then. All of them are written anew when that set changes. From
 * this follows, for members X and Y that were given:
 *
 *   Y lists X with a higher generation than X has       X is an old copy
 *   Y does not list X, and has been written since X     the pool has run without X
 *   has last heard of it
 *   some X lists M, no Y that was written since X       M is missing
 *   has last heard of it leaves it out
 *
 * And one that has left without knowing of it, because its device had gone, is listed by the
 * others as of the past: with a generation that nobody has. By these rules it is an old copy,
 * and nobody is stale because it does not know him. It is none that could be missing.
 *
 * What a repair without the pool makes of a superblock's own generation does not count there.
 *
 * A set that changed as power was lost, with some members told and some not, is
 * complete in the eyes of those that were told last.
 */
#include "kvt_assemble.h"
#include "tier_pmem.h"

#define KVT_AS_SEG_MIN		(2ULL << 20)	/* bounds memory for segments */
#define KVT_AS_SEG_MAX		(4ULL << 30)
#define KVT_AS_SEQ_APART	(1ULL << 56)

static const struct kvt_member *kvt_as_lists(const struct kvt_super *s, const u8 *uuid)
{
	u32 i;

	for (i = 0; i < s->nr_members; i++) {
		if (!memcmp(s->members[i].uuid, uuid, KVT_UUID_BYTES))
			return &s->members[i];
	}
	return NULL;
}

/* Is it a member for who wrote this. */
static bool kvt_as_has(const struct kvt_super *s, const u8 *uuid)
{
	const struct kvt_member *e = kvt_as_lists(s, uuid);

	return e && !kvt_member_past(e);
}

/* Has @y been written since @x has last heard of it. */
static bool kvt_as_later(const struct kvt_super *y, const struct kvt_super *x)
{
	const struct kvt_member *e = kvt_as_lists(x, y->geo.member);

	return !e || kvt_super_known(y) > e->generation;
}

static bool kvt_as_stale(const struct kvt_super *x, const struct kvt_super *y)
{
	const struct kvt_member *e = kvt_as_lists(y, x->geo.member);

	return e ? e->generation > kvt_super_known(x) : kvt_as_later(y, x);
}

static int kvt_as_pick(struct kvt_as_member *m, struct kvt_super_pick *pick, void *block)
{
	u32 i, nr_io = 0;

	kvt_super_pick_start(pick);
	for (i = 0; i < KVT_SUPER_SLOTS; i++)
		nr_io += !!kvt_mlog_look_super(m->tier, i, pick, block);
	if (pick->nr_torn)
		pr_warn("kvtier: %s: a superblock does not verify\n", m->dev.path);
	/* One of the pair is enough, but is the other one the newer? It cannot be known. */
	return nr_io ? -EIO : pick->err;
}

/* What it was made on; a copy of it may be on the other kind. */
static bool kvt_as_type_known(u32 type)
{
	return type == KVTIER_TIER_BDEV || type == KVTIER_TIER_PMEM;
}

static bool kvt_as_plausible(const struct kvt_super *s)
{
	return kvt_as_type_known(s->tier_type) && s->geo.seg_bytes >= KVT_AS_SEG_MIN &&
	       s->geo.seg_bytes <= KVT_AS_SEG_MAX && s->ns_limit < KVT_LIFE_MAX &&
	       s->nr_members && kvt_as_has(s, s->geo.member);
}

/* Is the device the one, or like the one, on which the member was made. */
static bool kvt_as_same_zones(const struct kvt_as_member *m)
{
	const struct kvt_geometry *s = &m->super.geo, *d = &m->tier->geo;

	return s->zone_bytes == d->zone_bytes && s->zone_stride == d->zone_stride;
}

/*
 * The next one goes where the number of its generation says. If this one is not where its own
 * says, that is over it, and if power is lost then neither may verify.
 */
static bool kvt_as_placed(const struct kvt_as_member *m)
{
	return m->super.geo.zone_bytes || m->super.generation % KVT_SUPER_SLOTS == m->slot;
}

static int kvt_as_read_super(struct kvt_as_member *m)
{
	struct kvt_super_pick *pick = kmalloc(sizeof(*pick), GFP_KERNEL);
	void *block = kmalloc(KVT_SUPER_BYTES, GFP_KERNEL);
	int err = -ENOMEM;

	if (!pick || !block)
		goto out;
	err = kvt_as_pick(m, pick, block);
	if (err)
		goto out;
	m->super = pick->super;
	m->slot = pick->slot;
	err = kvt_super_check(&m->super, m->tier->device_bytes, true);
	if (!err && (!kvt_as_plausible(&m->super) || !kvt_as_same_zones(m) ||
		     !kvt_as_placed(m)))
		err = -ERANGE;
out:
	kfree(pick);
	kfree(block);
	return err;
}

static void kvt_as_tell(struct kvt_as_member *m)
{
	const struct kvt_super *s = &m->super;

	m->dev.state = s->state == KVT_STATE_CLEAN ? KVTIER_MEMBER_CLEAN : KVTIER_MEMBER_DIRTY;
	m->dev.rank = s->rank;
	m->dev.generation = s->generation;
	memcpy(m->dev.member, s->geo.member, sizeof(m->dev.member));
	strscpy_pad(m->dev.name, s->name, sizeof(m->dev.name));
}

static int kvt_as_open(struct kvt_assembly *as, struct kvt_as_member *m)
{
	struct kvt_tier *t;
	bool pmem;
	int err;

	if (strnlen(m->dev.path, sizeof(m->dev.path)) == sizeof(m->dev.path))
		return -EINVAL;
	pmem = kvt_pmem_bound(m->dev.path);
	t = kzalloc(sizeof(*t), GFP_KERNEL);
	if (!t)
		return -ENOMEM;
	t->pool = as->p;
	t->args.type = pmem ? KVTIER_TIER_PMEM : KVTIER_TIER_BDEV;
	t->args.node = -1;
	strscpy(t->args.path, m->dev.path, sizeof(t->args.path));
	t->ops = pmem ? &kvt_tier_pmem_ops : &kvt_tier_bdev_ops;
	t->id = m - as->members;
	t->state = KVTIER_TIER_ATTACHING;
	err = t->ops->attach(t);
	if (err) {
		kfree(t);
		return err;
	}
	m->tier = t;
	err = kvt_as_read_super(m);
	if (!err)
		kvt_as_tell(m);
	return err;
}

/**
 * kvt_as_open_all() - open all devices and read their superblocks
 * @as: assembly with paths
 *
 * Return: 0, or the first device's error; each has its own.
 */
int kvt_as_open_all(struct kvt_assembly *as)
{
	int err = 0;
	u32 i;

	for (i = 0; i < as->nr_members; i++) {
		struct kvt_as_member *m = &as->members[i];

		m->dev.error = kvt_as_open(as, m);
		err = err ?: m->dev.error;
	}
	return err;
}

/*
 * Sequences are the pool's, and each restart goes on behind the highest limit: a forged one must
 * not take the numbers away from all.  No member gets that far ahead of another by itself.
 */
static bool kvt_as_too_far(const struct kvt_as_member *m, const struct kvt_as_member *o)
{
	return m->super.seq_limit > o->super.seq_limit + KVT_AS_SEQ_APART;
}

static int kvt_as_judge(const struct kvt_assembly *as, const struct kvt_as_member *m)
{
	const struct kvt_as_member *o;

	for (o = as->members; o < as->members + as->nr_members; o++) {
		if (o == m || o->dev.error)
			continue;
		if (memcmp(o->super.pool, m->super.pool, KVT_UUID_BYTES))
			return o < m ? -EXDEV : 0;
		if (!memcmp(o->super.geo.member, m->super.geo.member, KVT_UUID_BYTES)) {
			if (o < m)
				return -ENOTUNIQ;
			continue;
		}
		if (kvt_as_stale(&m->super, &o->super))
			return -ESTALE;
		if (kvt_as_too_far(m, o))
			return -ERANGE;
	}
	return 0;
}

/* Does nobody that was written later than @s leave this member of it out. */
static bool kvt_as_expected(const struct kvt_assembly *as, const struct kvt_super *s,
			    const u8 *uuid)
{
	u32 i;

	for (i = 0; i < as->nr_members; i++) {
		const struct kvt_super *o = &as->members[i].super;

		if (as->members[i].dev.error || o == s)
			continue;
		if (!kvt_as_has(o, uuid) && kvt_as_later(o, s))
			return false;
	}
	return true;
}

/* Was this member counted with one of the first @nr devices, or given. */
static bool kvt_as_counted(const struct kvt_assembly *as, u32 nr, const u8 *uuid)
{
	u32 i;

	for (i = 0; i < as->nr_members; i++) {
		const struct kvt_super *s = &as->members[i].super;

		if (as->members[i].dev.error)
			continue;
		if (!memcmp(s->geo.member, uuid, KVT_UUID_BYTES))
			return true;
		if (i < nr && kvt_as_has(s, uuid) && kvt_as_expected(as, s, uuid))
			return true;
	}
	return false;
}

static void kvt_as_count_members(struct kvt_assembly *as)
{
	struct kvtier_pool_assemble *out = as->out;
	u32 i, k;

	for (i = 0; i < as->nr_members; i++) {
		const struct kvt_super *s = &as->members[i].super;

		if (as->members[i].dev.error)
			continue;
		out->nr_found++;
		out->nr_members++;
		for (k = 0; k < s->nr_members; k++) {
			if (!kvt_member_past(&s->members[k]) &&
			    !kvt_as_counted(as, i, s->members[k].uuid) &&
			    kvt_as_expected(as, s, s->members[k].uuid))
				out->nr_members++;
		}
	}
}

/* Errors are found out for all of them first, so that one does not hide another. */
static int kvt_as_judge_all(struct kvt_assembly *as)
{
	int verdict[KVTIER_TIERS_MAX], err = 0;
	u32 i;

	for (i = 0; i < as->nr_members; i++)
		verdict[i] = as->members[i].dev.error ?: kvt_as_judge(as, &as->members[i]);
	for (i = 0; i < as->nr_members; i++) {
		as->members[i].dev.error = verdict[i];
		err = err ?: verdict[i];
	}
	return err;
}

/* Give the tier what its superblock says, and a place in the private pool. */
static int kvt_as_lay_out(struct kvt_assembly *as, struct kvt_as_member *m)
{
	const struct kvt_super *s = &m->super;
	struct kvt_tier *t = m->tier;
	int err;

	t->args.rank = s->rank;
	t->rank = s->rank;
	strscpy(t->args.name, s->name, sizeof(t->args.name));
	err = kvt_tier_check(as->p, &t->args);
	if (err)
		return err == -EINVAL ? -ERANGE : err;
	kvt_tier_set_geometry(t, &s->geo);
	err = kvt_tier_adopt(as->p, t);
	if (!err)
		kvt_mzone_found_super(t->mlog, m->slot);
	return err;
}

/* The pool goes on telling of those that have left. */
static int kvt_as_remember(struct kvt_assembly *as, const struct kvt_super *s)
{
	int err = 0;
	u32 i;

	for (i = 0; i < s->nr_members && !err; i++) {
		if (kvt_member_past(&s->members[i]))
			err = kvt_leaver_found(as->p, s->members[i].uuid);
	}
	return err;
}

/**
 * kvt_as_agree() - do the devices make up a pool
 * @as: assembly whose devices are open, with or without errors
 *
 * If so they become its tiers.
 * Return: 0; the first device's error; -EEXIST: the pool is, or comes, up; -ENOMEDIUM: members
 * are missing.
 */
int kvt_as_agree(struct kvt_assembly *as)
{
	struct kvtier_pool_assemble *out = as->out;
	int err = kvt_as_judge_all(as);
	u32 i;

	kvt_as_count_members(as);
	if (err)
		return err;
	err = kvt_as_reserve(as, as->members[0].super.pool);
	if (err)
		return err;
	memcpy(out->pool, as->members[0].super.pool, sizeof(out->pool));
	if (out->nr_found < out->nr_members && !(out->flags & KVTIER_ASSEMBLE_DEGRADED))
		return -ENOMEDIUM;
	for (i = 0; i < as->nr_members && !err; i++) {
		err = kvt_as_lay_out(as, &as->members[i]);
		as->members[i].dev.error = err;
		as->members[i].dev.tier_id = i;
		as->p->ns_limit = max(as->p->ns_limit, as->members[i].super.ns_limit);
		err = err ?: kvt_as_remember(as, &as->members[i].super);
	}
	return err;
}
