// SPDX-License-Identifier: GPL-2.0
/*
 * Reference policies: the frame, and those that are a list or two.
 *
 * A request's blocks that are in before it, up to the first that is not, are hits;
 * then the policy is shown the request. So a policy may drop a parent and keep its
 * children, and pays for it: that is what these policies would do to a prefix cache.
 */
#include <time.h>

#include "sim_ref.h"

static const struct sim_ref_ops *const refs[] = {
	&sim_lru_head, &sim_lru_tail, &sim_fifo, &sim_slru, &sim_arc, &sim_s3fifo,
	&sim_lirs, &sim_min,
};

const struct sim_ref_ops *sim_ref_at(u32 i)
{
	return i < ARRAY_SIZE(refs) ? refs[i] : NULL;
}

struct sim_links sim_links_new(u32 nr)
{
	return (struct sim_links){
		.next = sim_alloc(nr, sizeof(u32)), .prev = sim_alloc(nr, sizeof(u32)),
	};
}

void sim_links_free(struct sim_links *l)
{
	free(l->next);
	free(l->prev);
}

void sim_list_init(struct sim_list *q)
{
	*q = (struct sim_list){ .head = SIM_NIL, .tail = SIM_NIL };
}

/* At the head: the most recent end. */
void sim_list_push(struct sim_links *l, struct sim_list *q, u32 id)
{
	l->prev[id] = SIM_NIL;
	l->next[id] = q->head;
	if (q->head != SIM_NIL)
		l->prev[q->head] = id;
	else
		q->tail = id;
	q->head = id;
	q->count++;
}

void sim_list_del(struct sim_links *l, struct sim_list *q, u32 id)
{
	if (l->prev[id] != SIM_NIL)
		l->next[l->prev[id]] = l->next[id];
	else
		q->head = l->next[id];
	if (l->next[id] != SIM_NIL)
		l->prev[l->next[id]] = l->prev[id];
	else
		q->tail = l->prev[id];
	q->count--;
}

/* LRU and FIFO: one list. */
struct one {
	struct sim_links l;
	struct sim_list q;
};

static void one_init(struct sim_ref *s)
{
	struct one *o = sim_alloc(1, sizeof(*o));

	o->l = sim_links_new(s->trace->nr_distinct);
	sim_list_init(&o->q);
	s->priv = o;
}

static void one_exit(struct sim_ref *s)
{
	struct one *o = s->priv;

	sim_links_free(&o->l);
	free(o);
}

static void one_come(struct sim_ref *s, u32 id)
{
	struct one *o = s->priv;
	u32 old = o->q.tail;

	if (o->q.count == s->room) {
		sim_list_del(&o->l, &o->q, old);
		s->in[old] = 0;
	}
	sim_list_push(&o->l, &o->q, id);
	s->in[id] = 1;
}

static void lru_access(struct sim_ref *s, u32 id)
{
	struct one *o = s->priv;

	if (!s->in[id]) {
		one_come(s, id);
		return;
	}
	sim_list_del(&o->l, &o->q, id);
	sim_list_push(&o->l, &o->q, id);
}

static void fifo_access(struct sim_ref *s, u32 id)
{
	if (!s->in[id])
		one_come(s, id);
}

const struct sim_ref_ops sim_lru_head = {
	.name = "lru-head", .init = one_init, .access = lru_access, .exit = one_exit,
};

const struct sim_ref_ops sim_lru_tail = {
	.name = "lru-tail", .tail_first = true,
	.init = one_init, .access = lru_access, .exit = one_exit,
};

const struct sim_ref_ops sim_fifo = {
	.name = "fifo", .init = one_init, .access = fifo_access, .exit = one_exit,
};

/*
 * SLRU: a fifth on probation, the rest protected. A use promotes; what falls out of
 * the protected part is on probation again.
 */
struct slru {
	struct sim_links l;
	struct sim_list q[2];
	u8 *hot;
};

static void slru_init(struct sim_ref *s)
{
	struct slru *o = sim_alloc(1, sizeof(*o));

	o->l = sim_links_new(s->trace->nr_distinct);
	o->hot = sim_alloc(s->trace->nr_distinct, 1);
	sim_list_init(&o->q[0]);
	sim_list_init(&o->q[1]);
	s->priv = o;
}

static void slru_exit(struct sim_ref *s)
{
	struct slru *o = s->priv;

	sim_links_free(&o->l);
	free(o->hot);
	free(o);
}

static void slru_put(struct slru *o, u32 id, u8 hot)
{
	o->hot[id] = hot;
	sim_list_push(&o->l, &o->q[hot], id);
}

static void slru_access(struct sim_ref *s, u32 id)
{
	struct slru *o = s->priv;
	u32 old;

	if (s->in[id]) {
		sim_list_del(&o->l, &o->q[o->hot[id]], id);
		slru_put(o, id, 1);
		if (o->q[1].count > s->room - s->room / 5) {
			old = o->q[1].tail;
			sim_list_del(&o->l, &o->q[1], old);
			slru_put(o, old, 0);
		}
		return;
	}
	if (o->q[0].count + o->q[1].count == s->room) {
		old = o->q[0].count ? o->q[0].tail : o->q[1].tail;
		sim_list_del(&o->l, &o->q[o->hot[old]], old);
		s->in[old] = 0;
	}
	slru_put(o, id, 0);
	s->in[id] = 1;
}

const struct sim_ref_ops sim_slru = {
	.name = "slru", .tail_first = true,
	.init = slru_init, .access = slru_access, .exit = slru_exit,
};

static u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000000000u + (u64)ts.tv_nsec;
}

static void ref_request(struct sim_ref *s, const struct sim_ref_ops *ops, u32 from, u32 end,
			struct sim_result *r)
{
	const u32 *ids = s->trace->ids;
	u32 i, hits = 0;

	while (from + hits < end && s->in[ids[from + hits]])
		hits++;
	r->hits += hits;
	r->hits_by_tier[0] += hits;
	for (i = from; i < end; i++) {
		s->at = ops->tail_first ? end - 1 - (i - from) : i;
		r->evictions += !s->in[ids[s->at]];
		ops->access(s, ids[s->at]);
	}
	if (ops->end)
		ops->end(s);
}

static const struct sim_ref_ops *ref_find(const char *name)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(refs); i++) {
		if (!strcmp(refs[i]->name, name))
			return refs[i];
	}
	return NULL;
}

int sim_ref_run(const struct sim_trace *t, const struct sim_config *c,
		struct sim_result *r)
{
	const struct sim_ref_ops *ops = ref_find(c->policy);
	struct sim_ref s = { .trace = t, .room = c->blocks[0] };
	u64 start;
	u32 i;

	if (!ops)
		return -ENOENT;
	if (c->nr_tiers != 1)
		return -EINVAL;
	s.in = sim_alloc(t->nr_distinct, 1);
	ops->init(&s);
	start = now_ns();
	for (i = 0; i < t->nr_requests; i++)
		ref_request(&s, ops, t->first[i], t->first[i + 1], r);
	r->ns = now_ns() - start;
	/* All that came has left since, or did not enter, but for what is there. */
	for (i = 0; i < t->nr_distinct; i++)
		r->evictions -= !!s.in[i];
	ops->exit(&s);
	free(s.in);
	return 0;
}
