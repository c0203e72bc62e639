// SPDX-License-Identifier: GPL-2.0
/*
 * Life of a member: limits, superblocks, start and stop. See kvt_mlog.h.
 *
 *   alloc -> format (a new one) -> start -> ... -> stop -> free
 *
 * A superblock tells of all members of the pool. Who changes the set of members has
 * all of them written anew before he returns (kvt_mlog_update_supers()).
 */
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "kvt_internal.h"
#include "kvt_mlog.h"

#define KVT_MLOG_RING		4096u
#define KVT_MLOG_BLOCKS_MAX	65536u
#define KVT_MLOG_KILLS_MAX	8000u	/* with the namespaces they fit one header */
#define KVT_SUPER_TRIES		3u
#define KVT_STOP_TRIES		64u

static atomic64_t kvt_mlog_cookie;

/**
 * kvt_tier_set_geometry() - lay a block tier out
 * @t:   tier, attached by its backend and private to the caller
 * @geo: layout that fits the device
 */
void kvt_tier_set_geometry(struct kvt_tier *t, const struct kvt_geometry *geo)
{
	t->geo = *geo;
	t->unit_bytes = geo->unit_bytes;
	t->nr_segs = geo->nr_segs;
	t->seg_units = geo->seg_units;
	t->capacity_bytes = (u64)geo->nr_segs * geo->seg_bytes;
}

static void kvt_mlog_limits(struct kvt_tier *t, struct kvt_mlog *m, struct kvt_wlog_cfg *cfg)
{
	const struct kvt_geometry *g = &m->geo;

	*cfg = (struct kvt_wlog_cfg) {
		.geo = g,
		.log = &t->log,
		.seq = &t->pool->log_seq,
		/* A group of moves has no more, and its header takes room for as many. */
		.batch_blocks = KVT_MOVE_BATCH,
		.batch_bytes = KVT_BATCH_BYTES,
		.max_blocks = clamp(g->seg_units, KVT_BATCH_BLOCKS, KVT_MLOG_BLOCKS_MAX),
		.member = m->cookie,
		.max_ns = min(g->seg_units / 8, KVT_MLOG_NS_MAX),
		.max_kills = clamp(2 * g->seg_units, 256u, KVT_MLOG_KILLS_MAX),
		.ring = KVT_MLOG_RING,
		.free_aim = clamp(g->nr_segs / 8, 4u, 16u),
		.trim = t->discards,
	};
	/* A few large units: as much as a segment with nothing else has room for. */
	while (cfg->max_ns > 2 &&
	       2 * kvt_geo_units(g, sizeof(struct kvt_m_batch) +
				 kvt_entries_bytes(cfg->max_ns, 0, cfg->max_kills + 1)) + 1 >
	       g->seg_units)
		cfg->max_ns /= 2;
}

static int kvt_mlog_alloc_buffers(struct kvt_mlog *m, const struct kvt_wlog_cfg *cfg)
{
	m->wmem = kvzalloc(kvt_wlog_mem_bytes(cfg), GFP_KERNEL);
	m->header = kvmalloc(KVT_HEADER_BYTES_MAX, GFP_KERNEL);
	m->buf = kvmalloc(KVT_RECOVER_BUF_MIN + KVT_UNIT_BYTES_MIN, GFP_KERNEL);
	m->kills = kvmalloc_array(cfg->max_kills, sizeof(*m->kills), GFP_KERNEL);
	m->ns = kvmalloc_array(cfg->max_ns, sizeof(*m->ns), GFP_KERNEL);
	m->leaver = kzalloc(sizeof(*m->leaver), GFP_KERNEL);
	if (!m->wmem || !m->header || !m->buf || !m->kills || !m->ns || !m->leaver)
		return -ENOMEM;
	return kvt_mzone_alloc(m) ?: kvt_wlog_init(&m->w, cfg, m->wmem);
}

static void kvt_mlog_destroy(struct kvt_mlog *m)
{
	kvfree(m->wmem);
	kvfree(m->header);
	kvfree(m->buf);
	kvfree(m->kills);
	kvfree(m->ns);
	kfree(m->leaver);
	kvt_mzone_free(m);
	kfree(m);
}

/**
 * kvt_mlog_alloc() - give a block tier its writer
 * @t:   tier, private to the caller, its log initialised
 * @geo: layout; copied
 * Return: 0, -ENOMEM, or -EINVAL: nothing can be written in this layout. Nothing has
 * been read or written yet.
 */
int kvt_mlog_alloc(struct kvt_tier *t, const struct kvt_geometry *geo)
{
	struct kvt_mlog *m = kzalloc(sizeof(*m), GFP_KERNEL);
	struct kvt_wlog_cfg cfg;
	int err;

	if (!m)
		return -ENOMEM;
	m->tier = t;
	m->geo = *geo;
	m->cookie = atomic64_inc_return(&kvt_mlog_cookie);
	m->ids_hint = max(geo->seg_units / 16, 64u);
	/* One by one: they nest, and lockdep tells them apart by where they are made. */
	mutex_init(&m->put_lock[KVT_HEAD_DEMOTE]);
	mutex_init(&m->put_lock[KVT_HEAD_CARRY]);
	mutex_init(&m->io_lock);
	mutex_init(&m->header_lock);
	init_waitqueue_head(&m->wait);
	INIT_WORK(&m->work, kvt_mlog_work);
	kvt_mlog_limits(t, m, &cfg);
	err = kvt_mlog_alloc_buffers(m, &cfg);
	if (err) {
		kvt_mlog_destroy(m);
		return err;
	}
	/* The device may go from now on: kvt_tier_lost() looks at it. */
	spin_lock(&t->pool->meta_lock);
	t->mlog = m;
	if (t->state == KVTIER_TIER_FAILED)
		kvt_wlog_give_up(&m->w);
	spin_unlock(&t->pool->meta_lock);
	return 0;
}

/**
 * kvt_mlog_free() - the opposite of kvt_mlog_alloc()
 * @t: tier, its member stopped or never started
 */
void kvt_mlog_free(struct kvt_tier *t)
{
	if (t->mlog)
		kvt_mlog_destroy(t->mlog);
	t->mlog = NULL;
}

/*
 * Was it a member of this very pool, which is one no more: it was lost, or the pool was
 * assembled without it. What is on it can never be served again. A copy of one that is
 * a member is not, nor one whose tier still serves, and wipes it when it leaves.
 * tier_lock held.
 */
static bool kvt_mlog_was_ours(struct kvt_pool *p, const struct kvt_super_pick *pick)
{
	u32 i;

	lockdep_assert_held(&p->tier_lock);
	if (pick->err || memcmp(pick->super.pool, p->uuid, KVT_UUID_BYTES))
		return false;
	for (i = 0; i < KVT_TIERS; i++) {
		const struct kvt_tier *t = p->tiers[i];

		if (t && t->mlog &&
		    (!READ_ONCE(t->mlog->lost) || t->state != KVTIER_TIER_FAILED) &&
		    !memcmp(t->mlog->geo.member, pick->super.geo.member, KVT_UUID_BYTES))
			return false;
	}
	pr_info("kvtier%u: a former member of this pool comes back, empty\n", p->id);
	return true;
}

/**
 * kvt_mlog_look_super() - look at one of the places where a superblock may be
 * @t:     block tier, attached by its backend; sleeps
 * @slot:  which; of a zoned device: a zone of them
 * @pick:  what is found is added
 * @block: scratch, KVT_SUPER_BYTES
 * Return: 0 or -EIO.
 */
int kvt_mlog_look_super(struct kvt_tier *t, u32 slot, struct kvt_super_pick *pick, void *block)
{
	u64 byte = (u64)slot * KVT_SUPER_TWIN_BYTE;
	int err;

	if (t->zones)
		return kvt_mzone_look_super(t, slot, pick, block);
	if (byte + KVT_SUPER_BYTES > t->device_bytes)
		return 0;
	err = kvt_mlog_rw(t, byte, block, KVT_SUPER_BYTES, false);
	if (!err)
		kvt_super_pick_add(pick, slot, block);
	return err;
}

/**
 * kvt_mlog_check_free() - is the device nobody's
 * @t: tier, private to the caller; tier_lock held, sleeps
 * Return: 0: nobody's; 1: a former member of this pool; -EEXIST: it has a superblock,
 * however old; -EIO; -ENOMEM.
 */
int kvt_mlog_check_free(struct kvt_tier *t)
{
	void *block = kmalloc(KVT_SUPER_BYTES, GFP_KERNEL);
	struct kvt_super_pick *pick = kmalloc(sizeof(*pick), GFP_KERNEL);
	int err = block && pick ? 0 : -ENOMEM;
	u32 i;

	if (!err)
		kvt_super_pick_start(pick);
	for (i = 0; i < KVT_SUPER_SLOTS && !err; i++)
		err = kvt_mlog_look_super(t, i, pick, block);
	/* Damaged ones, and those of later versions, too. */
	if (!err && pick->err != -EMEDIUMTYPE)
		err = kvt_mlog_was_ours(t->pool, pick) ? 1 : -EEXIST;
	kfree(block);
	kfree(pick);
	return err;
}

/* @all: a zoned device is emptied besides. */
static int kvt_mlog_wipe(struct kvt_tier *t, bool all)
{
	void *block;
	int err;
	u32 i;

	if (t->zones)
		return kvt_mzone_wipe(t->mlog, all) ?: kvt_mlog_flush_dev(t);
	block = kzalloc(KVT_SUPER_BYTES, GFP_KERNEL);
	err = block ? 0 : -ENOMEM;

	/* Each that goes is one less to be found. */
	for (i = 0; block && i < KVT_SUPER_SLOTS; i++) {
		int ret = kvt_mlog_rw(t, (u64)i * KVT_SUPER_TWIN_BYTE, block, KVT_SUPER_BYTES,
				      true);

		err = err ?: ret;
	}
	kfree(block);
	return err ?: kvt_mlog_flush_dev(t);
}

/*
 * Wipe a device that may have been a member of this pool, and has left as it was: it is
 * none of those any more. tier_lock held.
 */
static int kvt_mlog_wipe_former(struct kvt_tier *t)
{
	struct kvt_super_pick *pick = kmalloc(sizeof(*pick), GFP_KERNEL);
	void *block = kmalloc(KVT_SUPER_BYTES, GFP_KERNEL);
	int err = pick && block ? 0 : -ENOMEM;
	bool ours = false;
	u32 i;

	if (!err) {
		kvt_super_pick_start(pick);
		/* What cannot be read is overwritten all the same. */
		for (i = 0; i < KVT_SUPER_SLOTS; i++)
			kvt_mlog_look_super(t, i, pick, block);
		ours = !pick->err && !memcmp(pick->super.pool, t->pool->uuid, KVT_UUID_BYTES);
		err = kvt_mlog_wipe(t, true);
	}
	if (!err && ours)
		kvt_leaver_back(t->pool, pick->super.geo.member);
	kfree(block);
	kfree(pick);
	return err;
}

/**
 * kvt_mlog_format() - make a device a new member
 * @t: tier with a writer, private to the caller; tier_lock held, sleeps
 *
 * What it was before is gone: its superblocks are wiped, and nothing in its segments
 * bears the name of the new member.
 * Return: 0, -EIO or -ENOMEM.
 */
int kvt_mlog_format(struct kvt_tier *t)
{
	struct kvt_mlog *m = t->mlog;
	struct kvt_super *s = &m->super;

	memset(s, 0, sizeof(*s));
	get_random_bytes(m->geo.member, sizeof(m->geo.member));
	t->geo = m->geo;
	s->geo = m->geo;
	memcpy(s->pool, t->pool->uuid, sizeof(s->pool));
	s->device_bytes = t->device_bytes;
	s->created_ns = ktime_get_real_ns();
	s->tier_type = t->args.type;
	s->rank = t->rank;
	strscpy(s->name, t->args.name, sizeof(s->name));
	return kvt_mlog_wipe_former(t);
}

static void kvt_mlog_member(struct kvt_super *s, const u8 *uuid, u64 generation)
{
	struct kvt_member *e = &s->members[s->nr_members];

	if (s->nr_members == KVT_MEMBERS_MAX)
		return;
	memcpy(e->uuid, uuid, KVT_UUID_BYTES);
	e->generation = generation;
	s->nr_members++;
}

/* Members that a device may be found of, and that are not to be used. Meta lock held. */
static void kvt_mlog_past(struct kvt_mlog *m)
{
	struct kvt_pool *p = m->tier->pool;
	struct kvt_super *s = &m->super;
	const struct kvt_leaver *l;
	u32 i;

	for (i = 0; i < KVT_TIERS; i++) {
		const struct kvt_tier *t = p->tiers[i];

		if (t && t->mlog && t->mlog != m && t->mlog->lost && !t->mlog->wiped)
			kvt_mlog_member(s, t->mlog->geo.member, KVT_GENERATION_PAST);
	}
	list_for_each_entry(l, &p->leavers.list, link)
		kvt_mlog_member(s, l->uuid, KVT_GENERATION_PAST);
}

/* The members as they are now; this one is the first. Meta lock held. */
static void kvt_mlog_members(struct kvt_mlog *m)
{
	struct kvt_pool *p = m->tier->pool;
	struct kvt_super *s = &m->super;
	u32 i;

	lockdep_assert_held(&p->meta_lock);
	memset(s->members, 0, sizeof(s->members));
	s->nr_members = 0;
	kvt_mlog_member(s, m->geo.member, s->generation);
	for (i = 0; i < KVT_TIERS; i++) {
		const struct kvt_tier *t = p->tiers[i];

		if (!t || !t->mlog || t->mlog == m || t->leaving || t->mlog->lost)
			continue;
		/* The one that is being written may get lost. */
		kvt_mlog_member(s, t->mlog->geo.member, kvt_wlog_generation(&t->mlog->w));
	}
	kvt_mlog_past(m);
}

/* One attempt. io_lock held. 1: flush first. */
static int kvt_mlog_try_super(struct kvt_mlog *m, void *block, bool clean)
{
	struct kvt_pool *p = m->tier->pool;
	enum kvt_wlog_status st;
	u32 slot;
	int err;

	lockdep_assert_held(&m->io_lock);
	spin_lock(&p->meta_lock);
	st = m->w.given_up ? KVT_W_NEVER : kvt_wlog_super(&m->w, &m->super, clean, &slot);
	if (!st) {
		m->super.ns_limit = p->ns_limit;
		m->telling = p->leavers.tell;
		kvt_mlog_members(m);
	}
	spin_unlock(&p->meta_lock);
	if (st == KVT_W_FLUSH)
		return 1;
	if (st)
		return -EBUSY;
	m->super.updated_ns = ktime_get_real_ns();
	kvt_super_encode(block, &m->super);
	err = m->turn ? kvt_mzone_write_super(m, block) :
	      kvt_mlog_rw(m->tier, (u64)slot * KVT_SUPER_TWIN_BYTE, block, KVT_SUPER_BYTES,
			  true);
	spin_lock(&p->meta_lock);
	kvt_wlog_super_written(&m->w, err);
	spin_unlock(&p->meta_lock);
	return err;
}

static void kvt_mlog_told(struct kvt_mlog *m)
{
	struct kvt_pool *p = m->tier->pool;

	spin_lock(&p->meta_lock);
	m->told = m->telling;
	spin_unlock(&p->meta_lock);
	wake_up_all(&p->log_wait);
}

/**
 * kvt_mlog_write_super() - write a superblock and make it durable
 * @m:     member; no spinlock and no io_lock held, sleeps
 * @clean: all is sealed and nothing will be written before the next one
 * Return: 0; -EBUSY: not everything is sealed, or it is given up; -EIO, and it is given
 * up then; -ENOMEM.
 */
int kvt_mlog_write_super(struct kvt_mlog *m, bool clean)
{
	void *block = kmalloc(KVT_SUPER_BYTES, GFP_KERNEL);
	u32 tries = KVT_SUPER_TRIES;
	int err;

	if (!block)
		return -ENOMEM;
	mutex_lock(&m->io_lock);
	do {
		err = kvt_mlog_try_super(m, block, clean);
		if (err == 1 && !kvt_mlog_flush_locked(m))
			err = -EIO;
	} while (err == 1 || (err == -EIO && --tries && !READ_ONCE(m->w.given_up)));
	if (!err && !kvt_mlog_flush_locked(m))
		err = -EIO;
	if (!err)
		kvt_mlog_told(m);
	mutex_unlock(&m->io_lock);
	kfree(block);
	if (err == -EIO)
		kvt_mlog_give_up(m->tier, "its superblock cannot be written");
	return err;
}

/**
 * kvt_mlog_start() - from here on blocks may be put
 * @t: tier with a writer, formatted or restored; sleeps
 *
 * A superblock that says so is durable when this returns.
 * Return: 0, -EIO or -ENOMEM.
 */
int kvt_mlog_start(struct kvt_tier *t)
{
	int err;

	kvt_mzone_others(t->mlog);
	err = kvt_mlog_write_super(t->mlog, false);
	if (err)
		return err == -EBUSY ? -EIO : err;
	kvt_mzone_start(t->mlog);
	spin_lock(&t->pool->meta_lock);
	t->mlog->running = true;
	spin_unlock(&t->pool->meta_lock);
	return 0;
}

/**
 * kvt_mlog_update_supers() - tell all members what has changed in the pool
 * @p: pool; srcu held or the set of tiers locked; sleeps
 *
 * One that cannot be written is given up, and is found to be out of date later.
 * Return: 0, or an error of one that is not given up and does not know: -ENOMEM.
 */
int kvt_mlog_update_supers(struct kvt_pool *p)
{
	struct kvt_tier *t[KVT_TIERS];
	u32 nr = kvt_tier_snapshot(p, t, false), i;
	int err = 0, ret;

	for (i = 0; i < nr; i++) {
		struct kvt_mlog *m = t[i]->mlog;

		if (!m || t[i]->leaving || t[i]->state == KVTIER_TIER_FAILED)
			continue;
		/* A superblock follows a flush with no write since: so no new ones now. */
		mutex_lock(&m->put_lock[KVT_HEAD_DEMOTE]);
		mutex_lock(&m->put_lock[KVT_HEAD_CARRY]);
		ret = kvt_mlog_write_super(m, false);
		mutex_unlock(&m->put_lock[KVT_HEAD_CARRY]);
		mutex_unlock(&m->put_lock[KVT_HEAD_DEMOTE]);
		if (ret && !READ_ONCE(m->w.given_up))
			err = ret;
	}
	return err;
}

/* Seal what is open: nothing is put any more. */
static void kvt_mlog_seal(struct kvt_mlog *m)
{
	struct kvt_pool *p = m->tier->pool;
	u32 head;

	spin_lock(&p->meta_lock);
	for (head = 0; head < KVT_HEADS; head++)
		kvt_wlog_seal(&m->w, head);
	spin_unlock(&p->meta_lock);
}

/* Until everything is sealed and every kill is written. Whether it is. */
static bool kvt_mlog_settle_all(struct kvt_mlog *m)
{
	struct kvt_pool *p = m->tier->pool;
	u32 tries;
	bool quiet = false;

	for (tries = 0; tries < KVT_STOP_TRIES && !quiet && !READ_ONCE(m->w.given_up); tries++) {
		while (kvt_mlog_step(m, true))
			;
		kvt_mlog_seal(m);
		kvt_mlog_progress(m);
		/* Somebody else may be at one. */
		wait_event(m->wait, !atomic_read(&m->nr_filling));
		spin_lock(&p->meta_lock);
		quiet = kvt_wlog_quiet(&m->w);
		spin_unlock(&p->meta_lock);
	}
	return quiet;
}

/**
 * kvt_mlog_leave() - a member that was emptied is one no more: wipe its superblocks
 * @t: block tier that nobody puts blocks to any more; sleeps
 *
 * Before it is withdrawn from the pool, because until then a DROP knows of it, and
 * waits. Also if it was given up: it may be writable enough for that. One that was
 * stopped to be kept, or whose device has gone, is left as it is; see kvt_leavers.c.
 */
void kvt_mlog_leave(struct kvt_tier *t)
{
	struct kvt_mlog *m = t->mlog;
	struct kvt_pool *p = t->pool;
	int err;

	spin_lock(&p->meta_lock);
	m->wiping = !m->kept && !m->wiped && t->state != KVTIER_TIER_FAILED;
	/* Nothing is to write another superblock after that. */
	if (m->wiping)
		kvt_wlog_give_up(&m->w);
	spin_unlock(&p->meta_lock);
	if (!m->wiping)
		return;
	mutex_lock(&m->io_lock);
	err = kvt_mlog_wipe(t, false);
	mutex_unlock(&m->io_lock);
	if (err)
		pr_warn("kvtier%u: tier %s: its superblocks cannot be wiped (%d)\n", p->id,
			t->args.name, err);
	spin_lock(&p->meta_lock);
	m->wiped = !err;
	m->wiping = false;
	/* A superblock of another that may name it still is no news of its leaving. */
	if (err && !m->lost)
		kvt_mlog_lose(m);
	spin_unlock(&p->meta_lock);
	if (!err)
		kvt_leaver_back(p, m->geo.member);
	wake_up_all(&p->log_wait);
}

/**
 * kvt_mlog_stop() - let a member go
 * @t:    tier that nobody puts blocks to any more; sleeps
 * @keep: it has blocks that are to be found again; else it is a member no more, and
 *        is wiped
 *
 * Cannot fail: what cannot be written is left as after a crash.
 */
void kvt_mlog_stop(struct kvt_tier *t, bool keep)
{
	struct kvt_mlog *m = t->mlog;
	bool failed;

	spin_lock(&t->pool->meta_lock);
	m->running = false;
	failed = t->state == KVTIER_TIER_FAILED || m->w.given_up;
	m->kept |= keep;
	spin_unlock(&t->pool->meta_lock);
	cancel_work_sync(&m->work);
	if (!failed && keep && kvt_mlog_settle_all(m))
		kvt_mlog_write_super(m, true);
	spin_lock(&t->pool->meta_lock);
	kvt_wlog_give_up(&m->w);
	spin_unlock(&t->pool->meta_lock);
	kvt_mlog_advance(m);
	if (!keep)
		kvt_mlog_leave(t);
}
