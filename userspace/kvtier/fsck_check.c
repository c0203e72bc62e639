// SPDX-License-Identifier: GPL-2.0
/*
 * What is left of a member, held against itself; see fsck.h.
 *
 * By sorting and searching: names are chosen by others, and no hash has to be feared.
 */
#include <stdlib.h>
#include <string.h>
#include "fsck.h"

#define NONE	U32_MAX

static int by_u64(u64 a, u64 b)
{
	return a < b ? -1 : a > b;
}

/* --- Namespaces ------------------------------------------------------------ */

/* Newest first. */
static int by_ns(const void *a, const void *b)
{
	const struct fsck_ns *x = a, *y = b;
	int d = by_u64(x->id, y->id);

	return d ? d : by_u64(y->seq, x->seq);
}

/* One of each, the newest. */
static void sort_ns(struct fsck *f)
{
	size_t i, kept = 0;

	if (!f->nr_ns)
		return;
	qsort(f->ns, f->nr_ns, sizeof(*f->ns), by_ns);
	for (i = 0; i < f->nr_ns; i++) {
		if (!kept || f->ns[i].id != f->ns[kept - 1].id)
			f->ns[kept++] = f->ns[i];
	}
	f->nr_ns = kept;
}

/* False: no room, for one reason or another. */
static bool make_room(struct fsck *f)
{
	struct fsck_ns *ns;
	size_t room;

	if (f->nr_ns < f->room_ns)
		return true;
	/* Every segment defines them again. */
	sort_ns(f);
	if (f->nr_ns < f->room_ns / 2)
		return true;
	room = f->room_ns ? 2 * f->room_ns : 64;
	if (room > (f->named ? 4 : 1) * FSCK_NS_MAX)
		return false;
	ns = realloc(f->ns, room * sizeof(*ns));
	if (!ns) {
		f->err = -ENOMEM;
		return false;
	}
	f->ns = ns;
	f->room_ns = room;
	return true;
}

static int by_id(const void *a, const void *b)
{
	return by_u64(*(const u64 *)a, *(const u64 *)b);
}

/*
 * There may be any number of namespaces that have ended, and with them ends what is said
 * of them, some day. What blocks are of is less than that.
 */
int fsck_again_ns(struct fsck *f)
{
	size_t i;

	f->named = malloc((f->nr_blocks + 1) * sizeof(*f->named));
	if (!f->named)
		return -ENOMEM;
	for (i = 0; i < f->nr_blocks; i++)
		f->named[i] = f->blocks[i].ns;
	qsort(f->named, f->nr_blocks, sizeof(*f->named), by_id);
	for (i = 0; i < f->nr_blocks; i++) {
		if (!f->nr_named || f->named[i] != f->named[f->nr_named - 1])
			f->named[f->nr_named++] = f->named[i];
	}
	f->nr_ns = 0;
	f->many_ns = false;
	return 0;
}

void fsck_add_ns(struct fsck *f, const struct kvt_nsdef *d)
{
	/* They are all looked for again: to sort once more for each would take forever. */
	if (f->many_ns)
		return;
	if (f->named && !bsearch(&d->id, f->named, f->nr_named, sizeof(d->id), by_id))
		return;
	if (!make_room(f)) {
		f->many_ns = true;
		return;
	}
	f->ns[f->nr_ns++] = (struct fsck_ns) {
		.id = d->id,
		.seq = d->seq,
		.flags = d->flags,
		.nr_groups = d->nr_groups,
	};
}

const struct fsck_ns *fsck_find_ns(const struct fsck *f, u64 id)
{
	size_t low = 0, high = f->nr_ns, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (f->ns[mid].id == id)
			return &f->ns[mid];
		if (f->ns[mid].id < id)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

/* --- Blocks ---------------------------------------------------------------- */

static int by_name(const struct fsck_block *x, u64 ns, u16 group, const u8 *key)
{
	int d = by_u64(x->ns, ns);

	if (!d)
		d = by_u64(x->group, group);
	return d ? d : memcmp(x->key, key, sizeof(x->key));
}

/* Of those with one name the valid one comes first. */
static int by_block(const void *a, const void *b)
{
	const struct fsck_block *x = a, *y = b;
	int d = by_name(x, y->ns, y->group, y->key);

	if (!d)
		d = by_u64(y->seq, x->seq);
	return d ? d : by_u64(x->unit, y->unit);
}

static void report_block(struct fsck *f, enum fsck_what what, const struct fsck_block *b,
			 u64 number)
{
	fsck_report(f, what, FSCK_FIX_SUPER, b->unit / f->geo.seg_units,
		    b->unit % f->geo.seg_units, number);
}

/* False: recovery drops it. */
static bool check_block(struct fsck *f, const struct fsck_block *b,
			const struct fsck_block *last)
{
	const struct fsck_ns *ns;

	if (last && !by_name(last, b->ns, b->group, b->key)) {
		report_block(f, FSCK_NAME_TWICE, b, b->seq);
		return false;
	}
	ns = fsck_find_ns(f, b->ns);
	if (!ns && f->many_ns)
		return true;
	if (!ns)
		report_block(f, FSCK_NS_UNDEFINED, b, b->ns);
	else if (ns->flags & KVT_NSF_GONE)
		report_block(f, FSCK_NS_GONE, b, b->ns);
	else if (b->group >= ns->nr_groups)
		report_block(f, FSCK_NS_GROUP, b, b->group);
	else
		return true;
	return false;
}

/* Blocks are sorted by what they are of. */
static void check_many(struct fsck *f)
{
	size_t i, nr = 0;

	for (i = 0; i < f->nr_blocks; i++)
		nr += !i || f->blocks[i].ns != f->blocks[i - 1].ns;
	if (f->many_ns || nr > KVT_RECOVER_NS_MAX)
		fsck_report(f, FSCK_NS_MANY, FSCK_FIX_NONE, FSCK_NOWHERE, FSCK_NOWHERE,
			    KVT_RECOVER_NS_MAX);
}

static void check_blocks(struct fsck *f)
{
	size_t i, kept = 0;

	if (!f->nr_blocks)
		return;
	qsort(f->blocks, f->nr_blocks, sizeof(*f->blocks), by_block);
	for (i = 0; i < f->nr_blocks; i++) {
		if (check_block(f, &f->blocks[i], kept ? &f->blocks[kept - 1] : NULL))
			f->blocks[kept++] = f->blocks[i];
	}
	f->nr_blocks = kept;
	f->count.blocks = kept;
}

/* --- Chains ---------------------------------------------------------------- */

static u32 parent_of(const struct fsck *f, u32 at)
{
	static const u8 root[KVT_KEY_BYTES];
	const struct fsck_block *b = &f->blocks[at];
	size_t low = 0, high = f->nr_blocks, mid;
	int d;

	if (kvt_key_equal(b->parent, root))
		return NONE;
	while (low < high) {
		mid = low + (high - low) / 2;
		d = by_name(&f->blocks[mid], b->ns, b->group, b->parent);
		if (!d)
			return (u32)mid;
		if (d < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return NONE;
}

/* Each block is walked over once, and marked with where the walk began. */
static void check_chains(struct fsck *f)
{
	u32 i, at;

	for (i = 0; i < f->nr_blocks; i++) {
		for (at = i; at != NONE && !f->blocks[at].mark; at = parent_of(f, at))
			f->blocks[at].mark = i + 1;
		if (at != NONE && f->blocks[at].mark == i + 1)
			report_block(f, FSCK_CHAIN_CYCLE, &f->blocks[at], f->blocks[at].ns);
	}
}

/* --- Lives and limits ------------------------------------------------------ */

static void check_lives(struct fsck *f)
{
	u64 *lives = calloc(f->geo.nr_segs, sizeof(*lives));
	u32 i;

	if (!lives) {
		f->err = -ENOMEM;
		return;
	}
	for (i = 0; i < f->geo.nr_segs; i++)
		lives[i] = f->segs[i].life;
	qsort(lives, f->geo.nr_segs, sizeof(*lives), by_id);
	for (i = 1; i < f->geo.nr_segs; i++) {
		if (lives[i] && lives[i] == lives[i - 1])
			fsck_report(f, FSCK_LIFE_TWICE, FSCK_FIX_NONE, FSCK_NOWHERE,
				    FSCK_NOWHERE, lives[i]);
	}
	free(lives);
}

static void check_limit(struct fsck *f, enum fsck_what what, u64 seen, u64 limit)
{
	/* What no limit can be above cannot be put right. */
	enum fsck_fix fix = seen + 1 < KVT_LIMIT_MAX ? FSCK_FIX_SUPER : FSCK_FIX_NONE;

	if (seen && seen >= limit)
		fsck_report(f, what, fix, FSCK_NOWHERE, FSCK_NOWHERE, seen);
}

static void check_limits(struct fsck *f)
{
	const struct kvt_super *s = &f->supers.pick.super;

	check_limit(f, FSCK_LIFE_LIMIT, f->max_life, s->life_limit);
	check_limit(f, FSCK_SEQ_LIMIT, f->max_seq, s->seq_limit);
	check_limit(f, FSCK_NS_LIMIT, f->max_ns, s->ns_limit);
}

void fsck_check(struct fsck *f)
{
	size_t i;

	sort_ns(f);
	for (i = 0; i < f->nr_ns; i++)
		f->count.namespaces += !(f->ns[i].flags & KVT_NSF_GONE);
	check_blocks(f);
	check_many(f);
	check_chains(f);
	check_lives(f);
	check_limits(f);
}
