// SPDX-License-Identifier: GPL-2.0
/*
 * ARC (Megiddo and Modha, FAST 2003), with the names of its paper: T1 and T2 are
 * cached, used once and more often; B1 and B2 are the ghosts of what left them. The
 * target size of T1 follows the ghosts that are asked for.
 */
#include "sim_ref.h"

enum { OUT, T1, T2, B1, B2, LISTS };

struct arc {
	struct sim_links l;
	struct sim_list q[LISTS];
	u8 *on;
	u32 target;
};

static void arc_init(struct sim_ref *s)
{
	struct arc *a = sim_alloc(1, sizeof(*a));
	u32 i;

	a->l = sim_links_new(s->trace->nr_distinct);
	a->on = sim_alloc(s->trace->nr_distinct, 1);
	for (i = 0; i < LISTS; i++)
		sim_list_init(&a->q[i]);
	s->priv = a;
}

static void arc_exit(struct sim_ref *s)
{
	struct arc *a = s->priv;

	sim_links_free(&a->l);
	free(a->on);
	free(a);
}

static void arc_move(struct sim_ref *s, u32 id, u8 to)
{
	struct arc *a = s->priv;

	if (a->on[id] != OUT)
		sim_list_del(&a->l, &a->q[a->on[id]], id);
	a->on[id] = to;
	s->in[id] = to == T1 || to == T2;
	if (to != OUT)
		sim_list_push(&a->l, &a->q[to], id);
}

/* One block from T1 or T2 becomes a ghost. */
static void arc_replace(struct sim_ref *s, u32 id)
{
	struct arc *a = s->priv;
	u32 n = a->q[T1].count;

	if (n && (n > a->target || (a->on[id] == B2 && n == a->target)))
		arc_move(s, a->q[T1].tail, B1);
	else if (a->q[T2].count)
		arc_move(s, a->q[T2].tail, B2);
	else
		arc_move(s, a->q[T1].tail, B1);
}

static void arc_miss(struct sim_ref *s, u32 id)
{
	struct arc *a = s->priv;
	u32 l1 = a->q[T1].count + a->q[B1].count;
	u32 l2 = a->q[T2].count + a->q[B2].count;

	if (l1 == s->room) {
		if (a->q[T1].count < s->room) {
			arc_move(s, a->q[B1].tail, OUT);
			arc_replace(s, id);
		} else {
			arc_move(s, a->q[T1].tail, OUT);
		}
	} else if (l1 + l2 >= s->room) {
		if (l1 + l2 >= 2 * s->room)
			arc_move(s, a->q[B2].tail, OUT);
		if (a->q[T1].count + a->q[T2].count >= s->room)
			arc_replace(s, id);
	}
	arc_move(s, id, T1);
}

static void arc_access(struct sim_ref *s, u32 id)
{
	struct arc *a = s->priv;
	u32 step;

	switch (a->on[id]) {
	case T1:
	case T2:
		arc_move(s, id, T2);
		return;
	case B1:
		step = max(a->q[B2].count / a->q[B1].count, 1u);
		a->target = min(a->target + step, s->room);
		arc_replace(s, id);
		arc_move(s, id, T2);
		return;
	case B2:
		step = max(a->q[B1].count / a->q[B2].count, 1u);
		a->target -= min(a->target, step);
		arc_replace(s, id);
		arc_move(s, id, T2);
		return;
	default:
		arc_miss(s, id);
	}
}

const struct sim_ref_ops sim_arc = {
	.name = "arc", .tail_first = true,
	.init = arc_init, .access = arc_access, .exit = arc_exit,
};
