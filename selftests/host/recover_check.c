// SPDX-License-Identifier: GPL-2.0
/*
 * Is what was assembled what the member has: each block by its name, its place, its
 * parent, its children, its list and its segment, and nothing else. See
 * recover_media.h for what must be there.
 */
#include "recover_assemble.h"

#define MUST(cond)							\
do {									\
	if (!(cond))							\
		kvt_env_die(__FILE__, __LINE__, "recovered wrongly: " #cond); \
} while (0)

/* What the walks have come by. */
struct seen {
	u32 blocks;
	u32 links;
	u32 children;
	u32 listed;
	u32 placed;
};

static u32 find(struct assembly *as, u64 ns, const u8 *key)
{
	const struct kvt_as_ns *n = as_ns_find(as, ns);

	MUST(n);
	return as_find(as, kvt_ns_group(n->idx, 0), key);
}

static void check_parent(const struct assembly *as, u32 id, struct media_block b)
{
	u32 parent = kvt_cold(&as->table, id)->parent;
	struct media_block up;
	u8 key[KVT_KEY_BYTES];

	if (!media_up(b, &up) || media_dropped(up)) {
		MUST(parent == KVT_NIL);
		return;
	}
	/* Which link of a ring is cut does not matter; the sum of all tells that one is. */
	if (parent == KVT_NIL && media_ring(b.chain))
		return;
	MUST(parent != KVT_NIL);
	media_key(up, key);
	MUST(kvt_key_equal(kvt_hot(&as->table, parent)->key, key));
	MUST(kvt_hot(&as->table, parent)->ns_group == kvt_hot(&as->table, id)->ns_group);
	MUST(kvt_ch_depth(&as->table, id, 2 * MEDIA_CHAIN) < 2 * MEDIA_CHAIN);
}

static u32 count_children(const struct assembly *as, u32 id)
{
	u32 prev = KVT_NIL, nr = 0, at;

	for (at = kvt_cold(&as->table, id)->first_child; at != KVT_NIL; nr++) {
		const struct kvt_cold *c = kvt_cold(&as->table, at);

		MUST(c->parent == id && c->sib_prev == prev);
		prev = at;
		at = c->sib_next;
	}
	return nr;
}

/* A record of a chain is behind its name, unless it was dropped. */
static void check_chained(struct assembly *as, u32 seg, u32 pos, struct seen *seen)
{
	struct media_block b = media_block_at(seg, pos);
	const struct kvt_cold *c;
	const struct kvt_hot *h;
	struct kvt_rec r;
	u32 id;

	media_rec(seg, pos, &r);
	id = find(as, r.ns, r.key);
	if (media_dropped(b)) {
		MUST(id == KVT_NIL);
		return;
	}
	MUST(id != KVT_NIL);
	h = kvt_hot(&as->table, id);
	c = kvt_cold(&as->table, id);
	MUST(kvt_ctl(h) == (KVT_READY | KVT_CTL_LOG));
	MUST(h->log_unit == seg * MEDIA_SEG_UNITS + r.unit);
	MUST(c->csum == r.sum);
	seen->blocks++;
	seen->links += c->parent != KVT_NIL;
	MUST(c->parent != KVT_NIL || (c->sib_next == KVT_NIL && c->sib_prev == KVT_NIL));
	seen->children += count_children(as, id);
	check_parent(as, id, b);
}

/* Other records are behind no name. */
static void check_rest(struct assembly *as, u32 seg, u32 pos)
{
	struct kvt_rec r;
	u32 id;

	media_rec(seg, pos, &r);
	id = find(as, r.ns, r.key);
	if (pos < MEDIA_CHAINED + MEDIA_OLD)
		MUST(id != KVT_NIL && kvt_cold(&as->table, id)->csum != r.sum);
	else
		MUST(id == KVT_NIL);
}

static void check_lists(const struct assembly *as, struct seen *seen)
{
	u32 id, i;

	for (id = kvt_policy_first(&as->policy, 0); id != KVT_NIL;
	     id = kvt_policy_after(&as->policy, 0, id))
		seen->listed++;
	for (i = 0; i < KVT_LISTS; i++)
		seen->listed -= as->policy.list[0][i].count;
	MUST(!seen->listed);
	for (i = 0; i < KVT_LISTS; i++)
		seen->listed += as->policy.list[0][i].count;
}

static void check_segments(const struct assembly *as, struct seen *seen)
{
	u32 i, k;

	for (i = 0; i < MEDIA_SEGS_ALL; i++) {
		const struct kvt_seg *s = &as->log.segs[i];

		MUST(s->state == (i < MEDIA_SEGS ? KVT_SEG_SEALED : KVT_SEG_FREE));
		seen->placed += s->nr_ids;
		for (k = 0; k < s->nr_ids; k++)
			MUST(kvt_hot(&as->table, s->ids[k])->log_unit / MEDIA_SEG_UNITS == i);
	}
}

/**
 * recover_check() - compare
 * @as:   what was assembled
 * @want: what is on the member; dies unless all of it is there, and nothing else
 */
void recover_check(struct assembly *as, const struct media_sum *want)
{
	struct seen seen = { 0 };
	u32 seg, pos;

	for (seg = 0; seg < MEDIA_SEGS; seg++) {
		for (pos = 0; pos < MEDIA_CHAINED; pos++)
			check_chained(as, seg, pos, &seen);
		for (; pos < MEDIA_RECS; pos++)
			check_rest(as, seg, pos);
	}
	check_lists(as, &seen);
	check_segments(as, &seen);
	MUST(seen.blocks == want->blocks && as->found.blocks == want->blocks);
	MUST(as->table.nr_used == want->blocks && seen.listed == want->blocks);
	MUST(seen.placed == want->blocks);
	MUST(as->log.live_units == (u64)want->blocks * MEDIA_BLOCK_UNITS);
	MUST(seen.links == want->links && as->found.links == want->links);
	MUST(seen.children == want->links);
	MUST(as->found.cycles == want->cycles);
	MUST(as->found.dead == want->dead);
	MUST(as->found.superseded == want->superseded);
	MUST(as->found.orphans == want->orphans);
	MUST(as->nr_segments == MEDIA_SEGS);
}
