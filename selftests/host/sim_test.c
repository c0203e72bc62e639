// SPDX-License-Identifier: GPL-2.0
/*
 * The simulator against a second, naive implementation, on many small random traces.
 *
 * The naive store has plain arrays, oldest block first, and does everything by search:
 * LRU of the core over one to three tiers by the model in sim_core.c, and LRU, FIFO
 * and MIN by their definition. All other policies are held to what is true of any.
 *
 * sim_test [[-]NAME] : tests whose name contains NAME, or, with "-", does not. SEED=N: that
 * trace first.
 */
#include "kvt_hint.h"
#include "kvt_policy_ask.h"
#include "sim.h"
#include "sim_ref.h"

#define ROUNDS		400
#define BLOCKS_MAX	160
#define REQUESTS_MAX	80
#define DEPTH_MAX	24

static u64 rng_state;

static u32 rnd(u32 below)
{
	rng_state += 0x9e3779b97f4a7c15ull;
	return (u32)(((rng_state ^ rng_state >> 29) * 0xbf58476d1ce4e5b9ull) >> 33) % below;
}

/* --- traces ------------------------------------------------------------------------ */

/* @parent: by id, + 1; 0: a root. */
struct small {
	struct sim_trace t;
	u32 parent[BLOCKS_MAX];
};

static u32 add_block(struct small *s, u32 parent)
{
	s->parent[s->t.nr_distinct] = parent;
	return s->t.nr_distinct++;
}

/* Appends the chain of block @tip, head first. */
static void add_request(struct small *s, u32 tip, u64 ts_ms)
{
	u32 chain[BLOCKS_MAX], n = 0, at;

	for (at = tip + 1; at; at = s->parent[at - 1])
		chain[n++] = at - 1;
	s->t.ts_ms[s->t.nr_requests] = ts_ms;
	s->t.first[s->t.nr_requests++] = s->t.nr_accesses;
	while (n)
		s->t.ids[s->t.nr_accesses++] = chain[--n];
	s->t.first[s->t.nr_requests] = s->t.nr_accesses;
}

static u32 depth_of(const struct small *s, u32 id)
{
	u32 n = 1;

	for (id = s->parent[id]; id; id = s->parent[id - 1])
		n++;
	return n;
}

/* A forest that grows, asked for at its ends and in between. */
static void small_new(struct small *s)
{
	u32 nr = 1 + rnd(REQUESTS_MAX), i, grow, tip;
	u64 ts_ms = rnd(1000);

	memset(s, 0, sizeof(*s));
	s->t.ts_ms = sim_alloc(nr, sizeof(u64));
	s->t.first = sim_alloc(nr + 1, sizeof(u32));
	s->t.ids = sim_alloc(nr, (DEPTH_MAX + 8) * sizeof(u32));
	for (i = 0; i < nr; i++) {
		ts_ms += rnd(4) ? rnd(100000) : 0;
		tip = s->t.nr_distinct && rnd(5) ? rnd(s->t.nr_distinct) : BLOCKS_MAX;
		grow = tip == BLOCKS_MAX ? 1 + rnd(6) : rnd(4);
		for (; grow && s->t.nr_distinct < BLOCKS_MAX; grow--) {
			if (tip != BLOCKS_MAX && depth_of(s, tip) >= DEPTH_MAX)
				break;
			tip = add_block(s, tip == BLOCKS_MAX ? 0 : tip + 1);
		}
		add_request(s, tip == BLOCKS_MAX ? 0 : tip, ts_ms);
	}
}

static u64 hits_of_all(const struct sim_trace *t)
{
	u8 seen[BLOCKS_MAX] = { 0 };
	u64 hits = 0;
	u32 i;

	for (i = 0; i < t->nr_accesses; i++) {
		hits += seen[t->ids[i]];
		seen[t->ids[i]] = 1;
	}
	return hits;
}

/* --- the naive store ----------------------------------------------------------------- */

/* @order: a tier's blocks, oldest first. @kids: a block's, the latest last. */
struct naive {
	const struct small *s;
	const struct sim_config *c;
	struct sim_result r;
	u32 order[SIM_TIERS_MAX][BLOCKS_MAX], nr[SIM_TIERS_MAX];
	u32 kids[BLOCKS_MAX][BLOCKS_MAX], nr_kids[BLOCKS_MAX];
	u32 tier[BLOCKS_MAX];	/* + 1; 0: not there */
};

static void array_put(u32 *a, u32 *n, u32 at, u32 v)
{
	memmove(a + at + 1, a + at, (*n - at) * sizeof(*a));
	a[at] = v;
	(*n)++;
}

static u32 array_find(const u32 *a, u32 n, u32 v)
{
	u32 i;

	for (i = 0; i < n && a[i] != v; i++)
		;
	return i;
}

static void array_cut(u32 *a, u32 *n, u32 v)
{
	u32 at = array_find(a, *n, v);

	(*n)--;
	memmove(a + at, a + at + 1, (*n - at) * sizeof(*a));
}

static void n_place(struct naive *v, u32 id, u32 tier, u32 at)
{
	if (v->tier[id])
		array_cut(v->order[v->tier[id] - 1], &v->nr[v->tier[id] - 1], id);
	v->tier[id] = tier + 1;
	array_put(v->order[tier], &v->nr[tier], min(at, v->nr[tier]), id);
}

static void n_evict(struct naive *v, u32 id)
{
	u32 t = v->tier[id] - 1, up = v->s->parent[id];

	array_cut(v->order[t], &v->nr[t], id);
	v->tier[id] = 0;
	if (up)
		array_cut(v->kids[up - 1], &v->nr_kids[up - 1], id);
	v->r.evictions++;
}

/* The oldest leaf of a tier; what is passed over goes to just after its latest child. */
static bool n_evict_one(struct naive *v, u32 t)
{
	u32 looks = 2 * v->nr[t] + 16, id, kid;

	while (looks-- && v->nr[t]) {
		id = v->order[t][0];
		if (!v->nr_kids[id]) {
			n_evict(v, id);
			return true;
		}
		kid = v->kids[id][v->nr_kids[id] - 1];
		if (v->tier[kid] != t + 1) {
			n_place(v, id, t, BLOCKS_MAX);
			continue;
		}
		array_cut(v->order[t], &v->nr[t], id);
		array_put(v->order[t], &v->nr[t], array_find(v->order[t], v->nr[t], kid) + 1, id);
	}
	return false;
}

static void n_room(struct naive *v)
{
	u32 t, from, last = v->c->nr_tiers - 1;

	for (t = 0; t <= last; t++) {
		while (v->nr[t] > v->c->blocks[t]) {
			if (t == last) {
				for (from = t; !n_evict_one(v, from);)
					from--;
				continue;
			}
			n_place(v, v->order[t][0], t + 1, BLOCKS_MAX);
			v->r.demotions++;
			v->r.slow_writes += t + 1 == last;
		}
	}
}

static void n_request(struct naive *v, const u32 *ids, u32 n)
{
	u32 hits, i, room = 0;

	for (i = 0; i < v->c->nr_tiers; i++)
		room += v->c->blocks[i];
	n = min(n, room);
	for (hits = 0; hits < n && v->tier[ids[hits]]; hits++) {
		v->r.hits++;
		v->r.hits_by_tier[v->tier[ids[hits]] - 1]++;
		v->r.promotions += v->tier[ids[hits]] > 1;
	}
	for (i = hits; i-- > 0;)
		n_place(v, ids[i], 0, BLOCKS_MAX);
	for (i = n; i-- > hits;)
		n_place(v, ids[i], 0, BLOCKS_MAX);
	for (i = hits; i < n; i++) {
		u32 up = v->s->parent[ids[i]];

		if (up)
			v->kids[up - 1][v->nr_kids[up - 1]++] = ids[i];
	}
	n_room(v);
}

static struct sim_result naive_run(const struct small *s, const struct sim_config *c)
{
	struct naive *v = sim_alloc(1, sizeof(*v));
	struct sim_result r;
	u32 i;

	v->s = s;
	v->c = c;
	for (i = 0; i < s->t.nr_requests; i++)
		n_request(v, s->t.ids + s->t.first[i], sim_request_len(&s->t, i));
	r = v->r;
	free(v);
	return r;
}

/* --- naive references ---------------------------------------------------------------- */

enum naive_kind { NAIVE_LRU, NAIVE_FIFO, NAIVE_MIN };

static u32 next_use(const struct sim_trace *t, u32 after, u32 id)
{
	u32 i;

	for (i = after + 1; i < t->nr_accesses && t->ids[i] != id; i++)
		;
	return i;
}

/* One access. @stamp: by id, 0: not in. */
static void ref_access(const struct sim_trace *t, enum naive_kind kind, u32 room, u32 at,
		       u32 clock, u32 *stamp)
{
	u32 id = t->ids[at], i, nr = 0, worst = BLOCKS_MAX, score, worst_score = 0;

	if (!stamp[id] || kind == NAIVE_LRU)
		stamp[id] = clock;
	for (i = 0; i < t->nr_distinct; i++) {
		if (!stamp[i])
			continue;
		nr++;
		/* A block never used again goes first, whichever of them. */
		score = kind == NAIVE_MIN ? next_use(t, at, i) : U32_MAX - stamp[i];
		if (worst == BLOCKS_MAX || score > worst_score) {
			worst = i;
			worst_score = score;
		}
	}
	if (nr > room)
		stamp[worst] = 0;
}

static u64 naive_ref(const struct small *s, u32 room, enum naive_kind kind, bool tail_first)
{
	u32 stamp[BLOCKS_MAX] = { 0 }, clock = 1, r, i, from, n, hits;
	u64 all = 0;

	for (r = 0; r < s->t.nr_requests; r++) {
		from = s->t.first[r];
		n = sim_request_len(&s->t, r);
		for (hits = 0; hits < n && stamp[s->t.ids[from + hits]]; hits++)
			;
		all += hits;
		for (i = 0; i < n; i++)
			ref_access(&s->t, kind, room, from + (tail_first ? n - 1 - i : i),
				   clock++, stamp);
	}
	return all;
}

/* --- tests ---------------------------------------------------------------------------- */

static u64 seed;
static u32 nr_bad;
static u64 nr_carried;

static void expect(bool ok, const char *what, u64 got, u64 want)
{
	if (ok)
		return;
	if (nr_bad++ < 10)
		printf("# seed %llu: %s: %llu, expected %llu\n", (unsigned long long)seed, what,
		       (unsigned long long)got, (unsigned long long)want);
}

static void expect_eq(const char *what, u64 got, u64 want)
{
	expect(got == want, what, got, want);
}

static void random_tiers(struct sim_config *c)
{
	u32 i;

	c->nr_tiers = 1 + rnd(SIM_TIERS_MAX);
	for (i = 0; i < c->nr_tiers; i++)
		c->blocks[i] = 1 + rnd(rnd(3) ? 12 : 60);
}

static void same(const struct sim_result *got, const struct sim_result *want)
{
	u32 i;

	expect_eq("hits", got->hits, want->hits);
	for (i = 0; i < SIM_TIERS_MAX; i++)
		expect_eq("hits of a tier", got->hits_by_tier[i], want->hits_by_tier[i]);
	expect_eq("promotions", got->promotions, want->promotions);
	expect_eq("demotions", got->demotions, want->demotions);
	expect_eq("slow writes", got->slow_writes, want->slow_writes);
	expect_eq("evictions", got->evictions, want->evictions);
}

static void test_lru_is_lru(const struct small *s)
{
	struct sim_config c = { .policy = "lru" };
	struct sim_result got = { 0 }, want;

	random_tiers(&c);
	want = naive_run(s, &c);
	expect_eq("runs", (u64)sim_core_run(&s->t, &c, &got), 0);
	same(&got, &want);
}

static void test_references(const struct small *s)
{
	static const struct {
		const char *name;
		enum naive_kind kind;
		bool tail_first;
	} known[] = {
		{ "lru-head", NAIVE_LRU, false }, { "lru-tail", NAIVE_LRU, true },
		{ "fifo", NAIVE_FIFO, false }, { "min", NAIVE_MIN, false },
	};
	struct sim_config c = { .nr_tiers = 1, .blocks = { 1 + rnd(40) } };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(known); i++) {
		struct sim_result got = { 0 };

		c.policy = known[i].name;
		expect_eq("runs", (u64)sim_ref_run(&s->t, &c, &got), 0);
		expect_eq(c.policy, got.hits,
			  naive_ref(s, c.blocks[0], known[i].kind, known[i].tail_first));
		/* Each of those blocks came, and there is room for so many. */
		expect(got.evictions + c.blocks[0] >= s->t.nr_distinct, "evictions", got.evictions,
		       s->t.nr_distinct - c.blocks[0]);
	}
}

/* With room for all, every policy has every hit. */
static void test_room_for_all(const struct small *s)
{
	static const char *const names[] = { "lru", "reuse", "default" };
	struct sim_config c = { .nr_tiers = 1, .blocks = { BLOCKS_MAX } };
	u64 want = hits_of_all(&s->t);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		struct sim_result got = { 0 };

		c.policy = names[i];
		expect_eq("runs", (u64)sim_core_run(&s->t, &c, &got), 0);
		expect_eq(c.policy, got.hits, want);
		expect_eq("evictions", got.evictions, 0);
	}
	for (i = 0; sim_ref_at(i); i++) {
		struct sim_result got = { 0 };

		c.policy = sim_ref_at(i)->name;
		expect_eq("runs", (u64)sim_ref_run(&s->t, &c, &got), 0);
		expect_eq(c.policy, got.hits, want);
		expect_eq("evictions", got.evictions, 0);
	}
}

/* What is true of any policy: sums, bounds, and the same again the second time. */
static void test_reuse_adds_up(const struct small *s)
{
	struct sim_config c = { .policy = "reuse" };
	struct sim_result a = { 0 }, b = { 0 };
	u64 by_tier = 0;
	u32 i;

	random_tiers(&c);
	expect_eq("runs", (u64)sim_core_run(&s->t, &c, &a), 0);
	expect_eq("runs", (u64)sim_core_run(&s->t, &c, &b), 0);
	same(&a, &b);
	for (i = 0; i < c.nr_tiers; i++)
		by_tier += a.hits_by_tier[i];
	expect_eq("hits of tiers", by_tier, a.hits);
	expect(a.hits <= hits_of_all(&s->t), "hits", a.hits, hits_of_all(&s->t));
	expect(a.slow_writes <= a.demotions, "writes", a.slow_writes, a.demotions);
	expect(a.promotions <= a.demotions, "promotions", a.promotions, a.demotions);
	expect_eq("one tier", c.nr_tiers == 1 ? a.demotions : 0, 0);
	expect(a.evictions <= s->t.nr_accesses - a.hits, "evictions", a.evictions,
	       s->t.nr_accesses - a.hits);
}

/*
 * A request is the same in one call or in many, with its number or without. Without, the
 * next one has to be a second away.
 */
static void test_calls_are_requests(const struct small *s)
{
	struct sim_config c = { .policy = "reuse" };
	struct sim_result whole = { 0 };
	u32 i, chunk = 1 + rnd(5);

	for (i = 0; i < s->t.nr_requests; i++)
		s->t.ts_ms[i] += i * (KVT_ASK_GAP_MS + 1ull);
	random_tiers(&c);
	expect_eq("runs", (u64)sim_core_run(&s->t, &c, &whole), 0);
	for (i = 0; i < 2; i++) {
		struct sim_result got = { 0 };

		c.chunk = chunk;
		c.numbered = i;
		expect_eq("runs", (u64)sim_core_run(&s->t, &c, &got), 0);
		same(&got, &whole);
	}
}

/*
 * So it is on long traces of long requests, where the sessions remembered do not have room and
 * several requests come at the same moment. In step: chunks of all sizes, with numbers.
 */
static void test_parts_are_requests(const struct small *s)
{
	static const char *const traces[] = { "gen:chat:400:3000", "gen:rag:400:3000" };
	static const u32 chunks[] = { 1, 7, 32, 64 };
	struct sim_config c = { .policy = "reuse", .nr_tiers = 2, .numbered = true };
	struct sim_result whole, got;
	struct sim_trace t;
	u32 i, k;

	(void)s;
	for (i = 0; seed == 1 && i < ARRAY_SIZE(traces); i++) {
		if (sim_trace_load(traces[i], &t)) {
			expect("loads", false, i, 0);
			return;
		}
		for (k = 0; k < t.nr_requests; k++)
			t.ts_ms[k] -= t.ts_ms[k] % 3000;
		c.blocks[0] = t.nr_distinct / 50;
		c.blocks[1] = t.nr_distinct / 12;
		for (k = 0; k <= ARRAY_SIZE(chunks); k++) {
			memset(&got, 0, sizeof(got));
			c.chunk = k ? chunks[k - 1] : 0;
			expect_eq("runs", (u64)sim_core_run(&t, &c, &got), 0);
			if (k)
				same(&got, &whole);
			else
				whole = got;
		}
		sim_trace_free(&t);
	}
}

/* Hints, right and wrong, change what stays and nothing of what is true of any policy. */
static void test_hints_add_up(const struct small *s)
{
	struct sim_config c = { .policy = rnd(2) ? "reuse" : "lru", .hints = true };
	struct sim_result a = { 0 }, b = { 0 };

	c.wrong = rnd(2) ? rnd(101) : 0;
	random_tiers(&c);
	expect_eq("runs", (u64)sim_core_run(&s->t, &c, &a), 0);
	expect_eq("runs", (u64)sim_core_run(&s->t, &c, &b), 0);
	same(&a, &b);
	expect(a.hits <= hits_of_all(&s->t), "hits", a.hits, hits_of_all(&s->t));
	expect(a.evictions <= s->t.nr_accesses - a.hits, "evictions", a.evictions,
	       s->t.nr_accesses - a.hits);
}

static u64 hits_with(const struct sim_trace *t, bool hints, u32 wrong)
{
	struct sim_config c = {
		.policy = "reuse", .nr_tiers = 1, .blocks = { t->nr_distinct / 20 },
		.hints = hints, .wrong = wrong,
	};
	struct sim_result r = { 0 };

	expect_eq("runs", (u64)sim_core_run(t, &c, &r), 0);
	return r.hits;
}

/* What clients know is worth having, also if one in five is wrong; all of them: no more. */
static void test_hints_help(const struct small *s)
{
	static const char *const traces[] = { "gen:chat:100:1500", "gen:agent:100:1500" };
	struct sim_trace t;
	u64 blind, wrong;
	u32 i;

	(void)s;
	for (i = 0; seed == 1 && i < ARRAY_SIZE(traces); i++) {
		expect_eq("loads", (u64)sim_trace_load(traces[i], &t), 0);
		blind = hits_with(&t, false, 0);
		wrong = hits_with(&t, true, 20);
		expect(wrong > blind + blind / 10, "with wrong hints", wrong, blind);
		expect(hits_with(&t, true, 0) > wrong, "with right ones", hits_with(&t, true, 0),
		       wrong);
		sim_trace_free(&t);
	}
}

static u64 hits_beside(const struct sim_trace *t, const struct sim_config *how)
{
	struct sim_config c = *how;
	struct sim_result r = { 0 };

	c.policy = "reuse";
	c.nr_tiers = 1;
	c.blocks[0] = t->nr_distinct / 20;
	c.scan = 64;
	expect_eq("runs", (u64)sim_core_run(t, &c, &r), 0);
	return r.hits;
}

/*
 * Who says of what nobody ever asks for that it will be used, or not, pushes out no more of others'
 * than who says nothing, whatever time he says, and nobody guarantees them anything: but for a
 * point. Also if they say what is true themselves (two points: that varies), and if he has something
 * that he does use, which is then as if he had said nothing.
 */
static void test_lies_hurt_nobody_else(const struct small *s)
{
	static const char *const traces[] = { "gen:chat:300:3000", "gen:rag:100:2000" };
	static const u32 lies_ms[] = {
		0, 1000, 5000, 20000, 60000, 3600000, KVT_HINT_NEVER, 1,
	};
	struct sim_config c = { 0 };
	struct sim_trace t;
	u64 blind, got;
	u32 i, k, how;

	(void)s;
	for (i = 0; seed == 1 && i < ARRAY_SIZE(traces); i++) {
		expect_eq("loads", (u64)sim_trace_load(traces[i], &t), 0);
		for (how = 0; how < 6; how++) {
			c = (struct sim_config){
				.hints = how & 1, .feign = how & 6 ? 2 : 0, .feign_never = how & 4,
			};
			if (i && c.hints)
				continue;
			blind = hits_beside(&t, &c);
			c.lies = true;
			/* And then that all of it is hot. */
			for (k = 0; k <= ARRAY_SIZE(lies_ms); k++) {
				c.lie_hot = k == ARRAY_SIZE(lies_ms);
				c.lie_ms = c.lie_hot ? 0 : lies_ms[k];
				c.lie_random = !c.lie_hot && !lies_ms[k];
				got = hits_beside(&t, &c);
				expect(got + t.nr_accesses / (c.hints ? 50 : 100) >= blind,
				       "beside lies", got, blind);
			}
		}
		sim_trace_free(&t);
	}
}

/*
 * With the slowest tier's space in segments: blocks that are carried are writes, and of no
 * other consequence than that room is made one block at a time.
 */
static void test_segments(const struct small *s)
{
	static const char *const names[] = { "lru", "reuse" };
	struct sim_config c = { .policy = names[rnd(2)], .segment = 2 + rnd(6) };
	struct sim_result got = { 0 };
	u64 by_tier = 0, moved;
	u32 i;

	do
		random_tiers(&c);
	while (c.nr_tiers == 1);
	expect_eq("runs", (u64)sim_core_run(&s->t, &c, &got), 0);
	for (i = 0; i < c.nr_tiers; i++)
		by_tier += got.hits_by_tier[i];
	expect_eq("hits of tiers", by_tier, got.hits);
	moved = got.slow_writes - got.carried;
	expect(moved <= got.demotions, "writes", moved, got.demotions);
	expect(got.hits <= hits_of_all(&s->t), "hits", got.hits, hits_of_all(&s->t));
	nr_carried += got.carried;
	/* Else none of this has been tried. */
	if (s->t.nr_requests && seed % ROUNDS == 0)
		expect(nr_carried > 0, "carried", nr_carried, 1);
}

#define SESSIONS	12u
#define TURNS		8u
#define TURN_BLOCKS	3u
#define ALL_BLOCKS	(SESSIONS * TURNS * TURN_BLOCKS)
#define ONCE_BLOCKS	40u
#define SPARE		100u	/* room for more than there is so far */
#define ROOM		(ALL_BLOCKS + TURNS * SESSIONS / 2 * ONCE_BLOCKS + SPARE)

/* A request for the first @nr blocks from @first on. */
static void add_run(struct sim_trace *t, u32 first, u32 nr, u64 *ts_ms)
{
	*ts_ms += 2000;
	t->ts_ms[t->nr_requests] = *ts_ms;
	while (nr--)
		t->ids[t->nr_accesses++] = first++;
	t->first[++t->nr_requests] = t->nr_accesses;
	t->nr_distinct = max(t->nr_distinct, first);
}

/* One more turn of all sessions; @once: blocks that are used once are from there on. */
static void add_turn(struct sim_trace *t, u32 turn, u32 *once, u64 *ts_ms)
{
	u32 s;

	for (s = 0; s < SESSIONS; s++) {
		add_run(t, s * (TURNS + 1) * TURN_BLOCKS, (turn + 1) * TURN_BLOCKS, ts_ms);
		if (once && s % 2) {
			add_run(t, *once, ONCE_BLOCKS, ts_ms);
			*once += ONCE_BLOCKS;
		}
	}
}

/*
 * Sessions, and now and then something long that nobody comes back to. Then one for more
 * than there is room for. Then it again, or the sessions' next turns. Hits of these.
 */
static u64 hits_after(const struct sim_config *c, bool again)
{
	u32 next = SESSIONS * (TURNS + 1) * TURN_BLOCKS, i, last;
	struct sim_trace t = {
		.ts_ms = sim_alloc(1000, sizeof(u64)), .first = sim_alloc(1000, sizeof(u32)),
		.ids = sim_alloc(100000, sizeof(u32)),
	};
	struct sim_result before = { 0 }, after = { 0 };
	u64 ts_ms = 1000000;

	for (i = 0; i < TURNS; i++)
		add_turn(&t, i, &next, &ts_ms);
	add_run(&t, next, 3 * ROOM, &ts_ms);
	last = t.nr_requests;
	if (again)
		add_run(&t, next, 3 * ROOM, &ts_ms);
	else
		add_turn(&t, TURNS, NULL, &ts_ms);
	expect_eq("runs", (u64)sim_core_run(&t, c, &after), 0);
	t.nr_requests = last;
	t.nr_accesses = t.first[last];
	expect_eq("runs", (u64)sim_core_run(&t, c, &before), 0);
	sim_trace_free(&t);
	return after.hits - before.hits;
}

/*
 * Of a request for more than there is room for stays what there is room for beside the
 * others, from its beginning, and they find all that they had. Under LRU they do not.
 */
static void test_too_large(const struct small *s)
{
	struct sim_config one = { .policy = "reuse", .nr_tiers = 1, .blocks = { ROOM } };
	struct sim_config two = {
		.policy = "reuse", .nr_tiers = 2, .blocks = { ROOM / 4, ROOM - ROOM / 4 },
	};
	u64 kept;

	(void)s;
	if (seed != 1)
		return;
	kept = hits_after(&one, true);
	expect(kept >= SPARE, "kept of it", kept, SPARE);
	expect(kept <= ROOM - ALL_BLOCKS, "kept of it", kept, ROOM - ALL_BLOCKS);
	expect_eq("of others", hits_after(&one, false), ALL_BLOCKS);
	kept = hits_after(&two, true);
	expect(kept >= SPARE, "kept of it", kept, SPARE);
	expect_eq("of others", hits_after(&two, false), ALL_BLOCKS);
	one.policy = "lru";
	expect(hits_after(&one, false) < ALL_BLOCKS / 2, "of others, lru", 1, 0);
}

static double ratio_with(const struct sim_trace *t, const char *policy, u32 guarantee, u32 more,
			 u32 scan, bool guarded)
{
	struct sim_config c = {
		.policy = policy, .nr_tiers = 1, .blocks = { guarantee + more }, .scan = scan,
		.guarantee = guarded ? guarantee : 0,
	};
	struct sim_result r = { 0 };

	expect_eq("runs", (u64)sim_core_run(t, &c, &r), 0);
	return (double)r.hits / t->nr_accesses;
}

/*
 * Who has a guarantee, and stays about within it, has as many hits beside one who scans as
 * with that much alone: at most a point fewer. Without the guarantee, under LRU, it has not;
 * with it, it has.
 */
static void test_tenants_are_isolated(const struct small *s)
{
	static const u32 parts[] = { 1000, 100, 20 };
	struct sim_trace t;
	double alone, beside;
	u32 i, k, room;

	(void)s;
	for (i = 0; seed == 1 && i < ARRAY_SIZE(parts); i++) {
		expect_eq("loads", (u64)sim_trace_load("gen:agent:24:2000", &t), 0);
		room = t.nr_distinct / parts[i];
		alone = ratio_with(&t, "reuse", room, 0, 0, false);
		for (k = 16; k <= 256; k *= 16) {
			beside = ratio_with(&t, "reuse", room, room / 5 + 1, k, true);
			expect(beside > alone - 0.01, "hits beside", (u64)(beside * 1000),
			       (u64)(alone * 1000));
		}
		if (i == ARRAY_SIZE(parts) - 1) {
			alone = ratio_with(&t, "lru", room, 0, 0, false);
			beside = ratio_with(&t, "lru", room, room / 5 + 1, 256, false);
			expect(beside < alone - 0.01, "lru, no guarantee", (u64)(beside * 1000),
			       (u64)(alone * 1000));
			beside = ratio_with(&t, "lru", room, room / 5 + 1, 256, true);
			expect(beside > alone - 0.01, "lru, guarantee", (u64)(beside * 1000),
			       (u64)(alone * 1000));
		}
		sim_trace_free(&t);
	}
}

static bool run(const char *name, void (*test)(const struct small *s), u64 first)
{
	struct small s;

	nr_bad = 0;
	for (seed = first; seed < first + ROUNDS; seed++) {
		rng_state = seed;
		small_new(&s);
		test(&s);
		sim_trace_free(&s.t);
	}
	printf("%s sim/%s\n", nr_bad ? "not ok" : "ok", name);
	return !nr_bad;
}

static bool is_asked(const char *name, const char *pattern)
{
	return !pattern || (*pattern == '-' ? !strstr(name, pattern + 1) : !!strstr(name, pattern));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*fn)(const struct small *s);
	} tests[] = {
		{ "lru_is_lru", test_lru_is_lru },
		{ "references", test_references },
		{ "room_for_all", test_room_for_all },
		{ "reuse_adds_up", test_reuse_adds_up },
		{ "calls_are_requests", test_calls_are_requests },
		{ "parts_are_requests", test_parts_are_requests },
		{ "segments", test_segments },
		{ "hints_add_up", test_hints_add_up },
		{ "hints_help", test_hints_help },
		{ "lies_hurt_nobody_else", test_lies_hurt_nobody_else },
		{ "too_large", test_too_large },
		{ "tenants_are_isolated", test_tenants_are_isolated },
	};
	const char *from = getenv("SEED");
	bool ok = true;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(tests); i++) {
		if (is_asked(tests[i].name, argc < 2 ? NULL : argv[1]))
			ok &= run(tests[i].name, tests[i].fn, from ? strtoull(from, NULL, 0) : 1);
	}
	return !ok;
}
