// SPDX-License-Identifier: GPL-2.0
/*
 * Sequences of calls: made, changed, put together, kept, written down.
 */
#include "fuzz.h"

#define CORPUS_MAX	2048

static struct fz_seq *corpus;
static int nr_corpus;
static __u32 nr_kept;

struct weight {
	__u8 op;
	__u8 weight;
	const char *name;
};

#define CMD(o, w)	{ KVTIER_OP_##o, w, #o }
#define DO(o, w)	{ FZ_##o, w, #o }

/* Those that take long are rare; control commands come as a part of the story instead. */
static const struct weight weights[] = {
	CMD(QUERY, 3), CMD(NS_OPEN, 3), CMD(LOOKUP, 8), CMD(GET, 16), CMD(RESERVE, 16),
	CMD(COMMIT, 14), CMD(ABORT, 5), CMD(RELEASE, 10), CMD(READ, 6), CMD(WRITE, 7),
	CMD(PREFETCH, 5), CMD(ADVISE, 6), CMD(DROP, 4), CMD(ITERATE, 4), CMD(STAT, 4),
	CMD(ARENA, 2), CMD(SESSION, 7), CMD(EVENTS, 1), CMD(EXPORT, 4), CMD(CTL_QUERY, 1),
	DO(CLOSE, 3), DO(DUP, 2), DO(MMAP, 3), DO(MUNMAP, 1), DO(MPROTECT, 1), DO(TOUCH, 8),
	DO(POLL, 2), DO(READ, 2), DO(BADCMD, 1), DO(SYSFS, 1),
};

/* Taken one time in CONTROL_RARE, then these. */
#define CONTROL_RARE	100
/* Sequences made of others keep them one time in so many. */
#define CONTROL_KEPT	20
static const struct weight controls[] = {
	CMD(POOL_CREATE, 6), CMD(POOL_DESTROY, 8), CMD(POOL_ASSEMBLE, 1), CMD(TIER_ATTACH, 6),
	CMD(TIER_DETACH, 4), CMD(TIER_DRAIN, 2), CMD(NS_CLAIM, 4), CMD(POOL_SCRUB, 4),
	DO(FORK, 2),
};

/* Every command there is, the reserved one left out. */
const __u8 fz_commands[] = {
	KVTIER_OP_QUERY, KVTIER_OP_NS_OPEN, KVTIER_OP_LOOKUP, KVTIER_OP_GET, KVTIER_OP_RESERVE,
	KVTIER_OP_COMMIT, KVTIER_OP_ABORT, KVTIER_OP_RELEASE, KVTIER_OP_READ, KVTIER_OP_WRITE,
	KVTIER_OP_PREFETCH, KVTIER_OP_ADVISE, KVTIER_OP_DROP, KVTIER_OP_ITERATE, KVTIER_OP_STAT,
	KVTIER_OP_ARENA, KVTIER_OP_SESSION, KVTIER_OP_EXPORT, KVTIER_OP_CTL_QUERY,
	KVTIER_OP_POOL_CREATE, KVTIER_OP_POOL_DESTROY, KVTIER_OP_POOL_ASSEMBLE,
	KVTIER_OP_TIER_ATTACH, KVTIER_OP_TIER_DETACH, KVTIER_OP_TIER_DRAIN, KVTIER_OP_NS_CLAIM,
	KVTIER_OP_POOL_SCRUB,
};

const int fz_nr_commands = KVT_ARRAY(fz_commands);

const char *fz_name(int op)
{
	size_t i;

	for (i = 0; i < KVT_ARRAY(weights); i++)
		if (weights[i].op == op)
			return weights[i].name;
	for (i = 0; i < KVT_ARRAY(controls); i++)
		if (controls[i].op == op)
			return controls[i].name;
	return "?";
}

static int pick(const struct weight *w, size_t nr, __u64 *state)
{
	__u32 sum = 0;
	size_t i;

	for (i = 0; i < nr; i++)
		sum += w[i].weight;
	sum = fz_below(state, sum);
	for (i = 0; sum >= w[i].weight; i++)
		sum -= w[i].weight;
	return w[i].op;
}

static void add_mut(struct fz_call *c, __u64 *state)
{
	struct fz_mut *m = &c->mut[c->nr_muts < FZ_MUTS ? c->nr_muts++ : fz_below(state, FZ_MUTS)];

	m->at = (__u16)fz_next(state);
	m->how = fz_below(state, FZ_NR_HOWS);
	m->value = (__u32)fz_next(state);
}

static void make_call(struct fz_call *c, __u64 *state)
{
	memset(c, 0, sizeof(*c));
	c->op = fz_one_in(state, CONTROL_RARE) ? pick(controls, KVT_ARRAY(controls), state) :
						 pick(weights, KVT_ARRAY(weights), state);
	c->slot = fz_one_in(state, 3) ? fz_below(state, FZ_SLOTS) : 0;
	c->thread = fz_below(state, FZ_THREADS);
	c->seed = (__u32)fz_next(state);
	while (fz_one_in(state, 5))
		add_mut(c, state);
}

static void make(struct fz_seq *s, __u64 *state)
{
	int i;

	s->nr = 4 + fz_below(state, FZ_LEN - 4);
	s->threaded = fz_one_in(state, 6);
	s->scribble = !s->threaded && fz_one_in(state, 12);
	for (i = 0; i < s->nr; i++)
		make_call(&s->call[i], state);
}

static void insert(struct fz_seq *s, int at, const struct fz_call *c)
{
	if (s->nr == FZ_LEN)
		s->nr--;
	memmove(&s->call[at + 1], &s->call[at], (s->nr - at) * sizeof(*c));
	s->call[at] = *c;
	s->nr++;
}

/* One change. */
static void change(struct fz_seq *s, __u64 *state)
{
	int at = fz_below(state, s->nr);
	struct fz_call c = s->call[at];

	switch (fz_below(state, 7)) {
	case 0:
		make_call(&c, state);
		insert(s, at, &c);
		break;
	case 1:
		if (s->nr > 1)
			memmove(&s->call[at], &s->call[at + 1], (--s->nr - at) * sizeof(c));
		break;
	case 2:
		s->call[at].seed = (__u32)fz_next(state);
		break;
	case 3:
	case 4:
		add_mut(&s->call[at], state);
		break;
	case 5:		/* the same again, later */
		insert(s, at + fz_below(state, s->nr - at), &c);
		break;
	default:
		s->call[at].slot = fz_below(state, FZ_SLOTS);
		s->threaded ^= fz_one_in(state, 4);
	}
}

static const struct fz_seq *any(__u64 *state)
{
	/* What was found lately leads further. */
	if (nr_corpus > 32 && fz_one_in(state, 2))
		return &corpus[(nr_kept - 1 - fz_below(state, 32)) % CORPUS_MAX];
	return &corpus[fz_below(state, nr_corpus)];
}

/* The beginning of one, then the end of another. */
static void join(struct fz_seq *s, __u64 *state)
{
	const struct fz_seq *a = any(state), *b = any(state);
	int head = 1 + fz_below(state, a->nr), tail = 1 + fz_below(state, b->nr);

	if (tail > FZ_LEN - head)
		tail = FZ_LEN - head;
	*s = *a;
	memcpy(&s->call[head], &b->call[b->nr - tail], tail * sizeof(b->call[0]));
	s->nr = head + tail;
}

static bool is_control(int op)
{
	size_t i;

	for (i = 0; i < KVT_ARRAY(controls); i++)
		if (controls[i].op == op)
			return true;
	return false;
}

/*
 * Control commands and forks take up to hundreds of times as long as others. What is worth
 * keeping has many of them, since each runs much code, and nearly all time would go there.
 */
static void thin_out(struct fz_seq *s, __u64 *state)
{
	int i, nr = 0;

	if (fz_one_in(state, CONTROL_KEPT))
		return;
	for (i = 0; i < s->nr; i++)
		if (!is_control(s->call[i].op))
			s->call[nr++] = s->call[i];
	s->nr = nr;
	if (!nr)
		make(s, state);
}

void fz_gen(struct fz_seq *s, __u64 *state)
{
	memset(s, 0, sizeof(*s));
	if (nr_corpus < 8 || fz_one_in(state, 5)) {
		make(s, state);
		return;
	}
	if (fz_one_in(state, 4))
		join(s, state);
	else
		*s = *any(state);
	do {
		change(s, state);
	} while (!fz_one_in(state, 3));
	thin_out(s, state);
}

void fz_keep(const struct fz_seq *s)
{
	if (!corpus)
		corpus = calloc(CORPUS_MAX, sizeof(*corpus));
	corpus[nr_kept++ % CORPUS_MAX] = *s;
	nr_corpus = nr_kept < CORPUS_MAX ? nr_kept : CORPUS_MAX;
}

int fz_corpus(void)
{
	return nr_corpus;
}

bool fz_gen_first(struct fz_seq *s, int i)
{
	/* Where a line is short, QUERY. */
	static const __u8 first[][8] = {
		{ KVTIER_OP_NS_OPEN, KVTIER_OP_QUERY, KVTIER_OP_RESERVE, FZ_TOUCH,
		  KVTIER_OP_COMMIT, KVTIER_OP_LOOKUP, KVTIER_OP_GET, KVTIER_OP_EXPORT },
		{ KVTIER_OP_WRITE, KVTIER_OP_GET, KVTIER_OP_EXPORT, KVTIER_OP_RELEASE,
		  KVTIER_OP_READ, KVTIER_OP_SESSION, KVTIER_OP_ADVISE, KVTIER_OP_PREFETCH },
		{ KVTIER_OP_ARENA, KVTIER_OP_RESERVE, KVTIER_OP_ABORT, KVTIER_OP_ITERATE,
		  KVTIER_OP_STAT, FZ_MMAP, FZ_TOUCH, KVTIER_OP_DROP },
		{ KVTIER_OP_CTL_QUERY, KVTIER_OP_POOL_CREATE, KVTIER_OP_TIER_ATTACH,
		  KVTIER_OP_TIER_DRAIN, KVTIER_OP_TIER_DETACH, KVTIER_OP_POOL_DESTROY },
		{ KVTIER_OP_POOL_ASSEMBLE, KVTIER_OP_NS_CLAIM, KVTIER_OP_POOL_SCRUB,
		  KVTIER_OP_POOL_DESTROY },
		{ FZ_MMAP, FZ_FORK, FZ_POLL, FZ_READ, FZ_MPROTECT, FZ_MUNMAP, FZ_DUP, FZ_CLOSE },
	};
	int rounds = 8, k;

	if (i >= (int)KVT_ARRAY(first) * rounds)
		return false;
	memset(s, 0, sizeof(*s));
	s->nr = KVT_ARRAY(first[0]);
	for (k = 0; k < s->nr; k++) {
		s->call[k].op = first[i / rounds][k];
		s->call[k].seed = i * s->nr + k;
	}
	return true;
}

void fz_print(const struct fz_seq *s, FILE *f)
{
	int i, m;

	fprintf(f, "seq %u %d %d\n", s->nr, s->threaded, s->scribble);
	for (i = 0; i < s->nr; i++) {
		const struct fz_call *c = &s->call[i];

		fprintf(f, "%u %u %u %u %u", c->op, c->slot, c->thread, c->seed, c->nr_muts);
		for (m = 0; m < c->nr_muts; m++)
			fprintf(f, " %u %u %u", c->mut[m].at, c->mut[m].how, c->mut[m].value);
		fprintf(f, " %s\n", fz_name(c->op));
	}
}

static int parse_call(struct fz_call *c, FILE *f)
{
	unsigned int op, slot, thread, seed, muts, at, how, value, m;

	if (fscanf(f, "%u %u %u %u %u", &op, &slot, &thread, &seed, &muts) != 5 ||
	    op >= FZ_NR_OPS || slot >= FZ_SLOTS || thread >= FZ_THREADS || muts > FZ_MUTS)
		return -EINVAL;
	c->op = op;
	c->slot = slot;
	c->thread = thread;
	c->seed = seed;
	c->nr_muts = muts;
	for (m = 0; m < muts; m++) {
		if (fscanf(f, "%u %u %u", &at, &how, &value) != 3)
			return -EINVAL;
		c->mut[m] = (struct fz_mut){ .at = at, .how = how, .value = value };
	}
	return fscanf(f, "%*s") == EOF ? -EINVAL : 0;
}

int fz_parse(struct fz_seq *s, FILE *f)
{
	unsigned int nr, threaded, scribble, i;

	memset(s, 0, sizeof(*s));
	if (fscanf(f, " seq %u %u %u", &nr, &threaded, &scribble) != 3 || nr > FZ_LEN)
		return -EINVAL;
	s->nr = nr;
	s->threaded = threaded;
	s->scribble = scribble;
	for (i = 0; i < nr; i++)
		if (parse_call(&s->call[i], f))
			return -EINVAL;
	return 0;
}
