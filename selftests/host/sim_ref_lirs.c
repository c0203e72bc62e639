// SPDX-License-Identifier: GPL-2.0
/*
 * LIRS (Jiang and Zhang, SIGMETRICS 2002): blocks with a short time between their last
 * two uses (LIR) keep 99 % of the room. Stack S orders by last use and ends in a LIR
 * block; queue Q has the cached others (HIR) in the order they go. Ghosts on the stack
 * are limited to twice the room.
 */
#include "sim_ref.h"

struct lirs {
	struct sim_links stack, queue;
	struct sim_list s, q;
	u8 *lir, *on_s, *on_q;
	u32 nr_lir, room_lir, nr_ghosts;
};

static void lirs_init(struct sim_ref *s)
{
	struct lirs *a = sim_alloc(1, sizeof(*a));
	u32 n = s->trace->nr_distinct;

	a->stack = sim_links_new(n);
	a->queue = sim_links_new(n);
	a->lir = sim_alloc(n, 1);
	a->on_s = sim_alloc(n, 1);
	a->on_q = sim_alloc(n, 1);
	a->room_lir = s->room - max(s->room / 100, 1u);
	sim_list_init(&a->s);
	sim_list_init(&a->q);
	s->priv = a;
}

static void lirs_exit(struct sim_ref *s)
{
	struct lirs *a = s->priv;

	sim_links_free(&a->stack);
	sim_links_free(&a->queue);
	free(a->lir);
	free(a->on_s);
	free(a->on_q);
	free(a);
}

static void s_drop(struct sim_ref *s, u32 id)
{
	struct lirs *a = s->priv;

	if (a->on_s[id])
		sim_list_del(&a->stack, &a->s, id);
	a->nr_ghosts -= a->on_s[id] && !s->in[id];
	a->on_s[id] = 0;
}

static void s_top(struct sim_ref *s, u32 id)
{
	struct lirs *a = s->priv;

	s_drop(s, id);
	sim_list_push(&a->stack, &a->s, id);
	a->on_s[id] = 1;
}

static void q_drop(struct lirs *a, u32 id)
{
	if (a->on_q[id])
		sim_list_del(&a->queue, &a->q, id);
	a->on_q[id] = 0;
}

static void q_last(struct lirs *a, u32 id)
{
	q_drop(a, id);
	sim_list_push(&a->queue, &a->q, id);
	a->on_q[id] = 1;
}

/* The stack ends in a LIR block. */
static void prune(struct sim_ref *s)
{
	struct lirs *a = s->priv;

	while (a->s.count && !a->lir[a->s.tail])
		s_drop(s, a->s.tail);
}

static void demote_oldest_lir(struct sim_ref *s)
{
	struct lirs *a = s->priv;
	u32 id = a->s.tail;

	a->lir[id] = 0;
	a->nr_lir--;
	s_drop(s, id);
	q_last(a, id);
	prune(s);
}

static void lirs_hit(struct sim_ref *s, u32 id)
{
	struct lirs *a = s->priv;
	bool was_on = a->on_s[id];

	s_top(s, id);
	if (a->lir[id]) {
		prune(s);
	} else if (was_on && a->room_lir) {
		a->lir[id] = 1;
		a->nr_lir++;
		q_drop(a, id);
		demote_oldest_lir(s);
	} else {
		q_last(a, id);
	}
}

static void lirs_evict(struct sim_ref *s)
{
	struct lirs *a = s->priv;
	u32 old;

	if (!a->q.count)
		demote_oldest_lir(s);
	old = a->q.tail;
	q_drop(a, old);
	s->in[old] = 0;
	s->nr_in--;
	a->nr_ghosts += a->on_s[old];
	/* The oldest ghosts go first; the search ends at the LIR block below. */
	if (a->nr_ghosts > 2 * s->room) {
		for (old = a->s.tail; s->in[old]; old = a->stack.prev[old])
			;
		s_drop(s, old);
	}
}

static void lirs_access(struct sim_ref *s, u32 id)
{
	struct lirs *a = s->priv;
	bool ghost = a->on_s[id] && !s->in[id];

	if (s->in[id]) {
		lirs_hit(s, id);
		return;
	}
	if (s->nr_in == s->room) {
		lirs_evict(s);
		ghost = a->on_s[id];
	}
	s_top(s, id);
	s->in[id] = 1;
	s->nr_in++;
	if (a->nr_lir < a->room_lir) {
		a->lir[id] = 1;
		a->nr_lir++;
	} else if (ghost && a->room_lir) {
		a->lir[id] = 1;
		a->nr_lir++;
		demote_oldest_lir(s);
	} else {
		q_last(a, id);
	}
}

const struct sim_ref_ops sim_lirs = {
	.name = "lirs", .tail_first = true,
	.init = lirs_init, .access = lirs_access, .exit = lirs_exit,
};
