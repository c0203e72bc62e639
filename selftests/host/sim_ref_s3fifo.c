// SPDX-License-Identifier: GPL-2.0
/*
 * S3-FIFO (Yang et al., SOSP 2023): a small queue of a tenth, a main queue with two
 * bits of frequency, and ghosts, as many as the main queue has room for.
 */
#include "sim_ref.h"

enum { OUT, SMALL, MAIN, GHOST, LISTS };

struct s3 {
	struct sim_links l;
	struct sim_list q[LISTS];
	u8 *on, *freq;
	u32 room_small;
};

static void s3_init(struct sim_ref *s)
{
	struct s3 *a = sim_alloc(1, sizeof(*a));
	u32 i;

	a->l = sim_links_new(s->trace->nr_distinct);
	a->on = sim_alloc(s->trace->nr_distinct, 1);
	a->freq = sim_alloc(s->trace->nr_distinct, 1);
	a->room_small = max(s->room / 10, 1u);
	for (i = 0; i < LISTS; i++)
		sim_list_init(&a->q[i]);
	s->priv = a;
}

static void s3_exit(struct sim_ref *s)
{
	struct s3 *a = s->priv;

	sim_links_free(&a->l);
	free(a->on);
	free(a->freq);
	free(a);
}

static void s3_move(struct sim_ref *s, u32 id, u8 to)
{
	struct s3 *a = s->priv;

	if (a->on[id] != OUT)
		sim_list_del(&a->l, &a->q[a->on[id]], id);
	a->on[id] = to;
	s->in[id] = to == SMALL || to == MAIN;
	if (to != OUT)
		sim_list_push(&a->l, &a->q[to], id);
}

static void s3_evict_main(struct sim_ref *s)
{
	struct s3 *a = s->priv;

	for (;;) {
		u32 id = a->q[MAIN].tail;

		if (!a->freq[id]) {
			s3_move(s, id, OUT);
			return;
		}
		a->freq[id]--;
		s3_move(s, id, MAIN);
	}
}

/* The small queue's end leaves, or goes over to the main one. */
static void s3_evict_small(struct sim_ref *s)
{
	struct s3 *a = s->priv;
	u32 id = a->q[SMALL].tail;

	if (a->freq[id] > 1) {
		a->freq[id] = 0;
		s3_move(s, id, MAIN);
		return;
	}
	a->freq[id] = 0;
	s3_move(s, id, GHOST);
	if (a->q[GHOST].count > s->room - a->room_small)
		s3_move(s, a->q[GHOST].tail, OUT);
}

static void s3_room(struct sim_ref *s)
{
	struct s3 *a = s->priv;

	while (a->q[SMALL].count + a->q[MAIN].count >= s->room) {
		if (a->q[SMALL].count >= a->room_small || !a->q[MAIN].count)
			s3_evict_small(s);
		else
			s3_evict_main(s);
	}
}

static void s3_access(struct sim_ref *s, u32 id)
{
	struct s3 *a = s->priv;
	u8 to;

	if (s->in[id]) {
		a->freq[id] += a->freq[id] < 3;
		return;
	}
	to = a->on[id] == GHOST ? MAIN : SMALL;
	if (to == MAIN)
		s3_move(s, id, OUT);
	s3_room(s);
	a->freq[id] = 0;
	s3_move(s, id, to);
}

const struct sim_ref_ops sim_s3fifo = {
	.name = "s3fifo", .tail_first = true,
	.init = s3_init, .access = s3_access, .exit = s3_exit,
};
