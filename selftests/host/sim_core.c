// SPDX-License-Identifier: GPL-2.0
/*
 * The module's own core at work on a trace: table, index, chains and policy of
 * driver/core, and what the driver does around them, without its concurrency.
 *
 * The model, which is what a comparison with the module has to reproduce:
 *
 *   Time        of a request is its time in the trace. One client, one namespace,
 *               one group; capacities are numbers of blocks. Slots of regions are
 *               not modelled: memory is never fragmented. Segments of the slowest
 *               tier's log are with @segment: see sim_log.h.
 *   Length      a request is cut to what all tiers can hold together: its longest
 *               prefix that could ever be there. The rest takes no part.
 *   GET         of the whole chain: blocks are hits up to the first that is not
 *               there. They are leased, which brings those on slower tiers to the
 *               fastest, head first (a promotion each; its tier counts as the one
 *               that served it). On RELEASE they are touched, tail first. All
 *               leases are gone before RESERVE.
 *   PUT         RESERVE and COMMIT of the others: inserted head first, then touched
 *               tail first, on the fastest tier. Then the policy is told of the
 *               request and its last block. Or, with @chunk, it is told of GET, and
 *               of each PUT of so many blocks, as calls of one client.
 *   Room        is made at the end of the request, fastest tier first: while a tier
 *               holds more blocks than it may, the policy's next block goes down,
 *               or out where nothing is below; only blocks without children go out.
 *               If all of the slowest tier have children on faster ones, a block
 *               without any goes from the tier above it instead, until one has none.
 *               So a request is in the fastest tier for a moment however large it
 *               is, and its own blocks stand in line with the others. With a log,
 *               room is made below after each block that goes down, and leaves of the
 *               log go before a segment with much in it is emptied.
 *   Hints       With @hints: after PUT, before room is made. A session goes on with the
 *               next request that has its last block but one (the last is often partly
 *               filled). If there is one, the policy gets a hint of the time to it; if
 *               not, the end of the chain that nothing else goes through is cooled.
 *   Copies      The slowest of several tiers is a block tier. When the policy wants
 *               the copy there kept at a promotion, it stays and counts against that
 *               tier's capacity; a demotion of its block writes nothing. The policy
 *               also says whether a block is worth being written; one that is not,
 *               and has no children, goes out instead.
 *
 *   Tenants     With @scan: after each request another client, of another namespace, stores
 *               a chain of so many blocks that nobody ever asks for, and with @lies says
 *               that each will be used. With @feign it also uses a chain of its own. The trace's namespace
 *               is guaranteed @guarantee blocks: as long as it has no more in memory, its
 *               blocks do not make room, as in the driver (kvt_ns_guarded()). Only the
 *               trace's hits are counted.
 *
 * Invariant: a block's parent is there as long as it is, so blocks present are
 * always a prefix of their chain.
 */
#include <time.h>

#include "kvt_chain.h"
#include "kvt_hint.h"
#include "kvt_index.h"
#include "kvt_policy.h"
#include "kvt_policy_gate.h"
#include "sim.h"
#include "sim_log.h"
#include "../../userspace/kvtier/trace.h"

#define LOOKS	1000	/* at the clock, to see what that takes */

/* Namespaces: whose trace it is, and who scans. */
enum sim_ns { SIM_NS_TRACE = 1, SIM_NS_SCAN = 2, SIM_NS_MAX };

/* A policy, which comes first, and what it has learned of each namespace. */
struct sim_policy {
	struct kvt_policy p;
	struct kvt_mind mind[SIM_NS_MAX];
};

/**
 * struct store - one simulated pool
 * @nr_keep: blocks whose fastest copy is on the tier
 * @nr_dup:  copies on the slowest tier of blocks that are on a faster one
 * @log:     of the slowest tier; NULL: not modelled
 * @moved:   by block id: promoted and not used since
 * @path:    ids of the request in hand
 * @own:     names in the chain that the other client asks for again
 * @nr_requests: numbers given
 * @ns:      whose call it is
 * @nr_mem:  by namespace: blocks in memory
 * @nr_scanned: requests of who scans
 * @look_ns: what the clock says of nothing
 */
struct store {
	const struct sim_config *c;
	struct sim_result *r;
	struct kvt_table table;
	struct kvt_index *index;
	struct kvt_policy *policy;
	struct sim_policy *minds;
	u32 nr_keep[SIM_TIERS_MAX];
	u32 nr_dup;
	struct sim_log *log;
	u8 *moved;
	u32 *path;
	u32 *own;
	u64 nr_requests;
	enum sim_ns ns;
	u32 nr_mem[SIM_NS_MAX];
	u32 nr_scanned;
	s64 look_ns;
};

static u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000000000u + (u64)ts.tv_nsec;
}

/* With @timed: what the policy takes, without what the two looks at the clock do. */
static u64 timed_begin(const struct store *st)
{
	return st->c->timed ? now_ns() : 0;
}

static void timed_end(struct store *st, u64 start_ns)
{
	if (start_ns)
		st->r->policy_ns += (s64)(now_ns() - start_ns) - st->look_ns;
}

/* What two looks at the clock with nothing between them say. */
static s64 look_ns(void)
{
	s64 sum = 0;
	u64 start;
	u32 i;

	for (i = 0; i < LOOKS; i++) {
		start = now_ns();
		sum += now_ns() - start;
	}
	return sum / LOOKS;
}

/* Some of what the policy does. */
#define TIMED(st, call)					\
	do {						\
		u64 start_ns = timed_begin(st);		\
							\
		call;					\
		timed_end(st, start_ns);		\
	} while (0)

/*
 * The policy's work. Functions of their own, with names that begin with "policy_", so
 * that its instructions can be counted, and nothing else: see policy_cost in run.sh.
 */
static noinline void policy_insert(struct store *st, u32 tier, u32 id)
{
	st->policy->ops->insert(st->policy, tier, id);
}

static noinline void policy_remove(struct store *st, u32 tier, u32 id)
{
	st->policy->ops->remove(st->policy, tier, id);
}

static noinline void policy_touch(struct store *st, u32 id)
{
	st->policy->ops->touch(st->policy, 0, id);
}

static noinline u32 policy_next(struct store *st, u32 tier, bool leaf, u32 *budget)
{
	return st->policy->ops->next(st->policy, tier, leaf, budget);
}

static noinline void policy_guarded(struct store *st, u32 tier, u32 id)
{
	kvt_policy_guarded(st->policy, tier, id);
}

static noinline void policy_request(struct store *st, u32 id)
{
	kvt_policy_request(st->policy, id);
}

static noinline void policy_call(struct store *st, const struct kvt_call *c)
{
	kvt_policy_call(st->policy, c);
}

static noinline bool policy_admit(struct store *st, u32 tier, u32 id, bool room)
{
	return kvt_policy_admit(st->policy, tier, id, room);
}

static u32 least_of(struct store *st, u32 tier, bool leaf, u32 *budget)
{
	u32 id;

	TIMED(st, id = policy_next(st, tier, leaf, budget));
	return id;
}

static bool admits(struct store *st, u32 tier, u32 id, bool room)
{
	bool yes;

	TIMED(st, yes = policy_admit(st, tier, id, room));
	return yes;
}

static struct kvt_mind *mind_of(const struct kvt_policy *p, u32 ns)
{
	return &((struct sim_policy *)p)->mind[ns];
}

static u32 ns_group_of(enum sim_ns ns)
{
	return (u32)ns << KVT_NS_SHIFT;
}

static u32 last_tier(const struct store *st)
{
	return st->c->nr_tiers - 1;
}

static bool is_mem(const struct store *st, u32 tier)
{
	return !tier || tier < last_tier(st);
}

static struct store *store_new(const struct sim_config *c, u32 len_max)
{
	struct store *st = sim_alloc(1, sizeof(*st));
	struct kvt_hash_seed seed;
	u32 i, chunks, all = len_max + c->feign + c->scan + 1;

	memset(&seed, 0x5a, sizeof(seed));
	seed.key.key[0] ^= c->seed;
	for (i = 0; i < c->nr_tiers; i++)
		all += c->blocks[i];
	chunks = DIV_ROUND_UP(all, KVT_CHUNK_BLOCKS);
	st->c = c;
	st->index = sim_alloc(1, sizeof(*st->index));
	st->minds = sim_alloc(1, sizeof(*st->minds));
	st->policy = &st->minds->p;
	st->ns = SIM_NS_TRACE;
	st->moved = sim_alloc(chunks, KVT_CHUNK_BLOCKS);
	st->path = sim_alloc(len_max, sizeof(u32));
	st->own = sim_alloc(c->feign + 1, sizeof(u32));
	if (c->segment && c->nr_tiers > 1)
		st->log = sim_log_new(c->log_blocks ?: c->blocks[c->nr_tiers - 1], c->segment);
	kvt_table_init(&st->table, sim_alloc(chunks, sizeof(void *)),
		       sim_alloc(chunks, sizeof(void *)), chunks);
	for (i = 0; i < chunks; i++)
		kvt_table_add_chunk(&st->table,
				    sim_alloc(KVT_CHUNK_BLOCKS, sizeof(struct kvt_hot)),
				    sim_alloc(KVT_CHUNK_BLOCKS, sizeof(struct kvt_cold)));
	kvt_ix_init(st->index, &st->table, &seed);
	for (i = 0; i < KVT_SHARDS; i++)
		kvt_ix_shard_init(&st->index->shards[i],
				  sim_alloc(KVT_SHARD_BUCKETS_MIN, sizeof(u32)),
				  KVT_SHARD_BUCKETS_MIN);
	return st;
}

static void store_free(struct store *st)
{
	u32 i;

	for (i = 0; i < st->table.nr_chunks; i++) {
		free(st->table.hot[i]);
		free(st->table.cold[i]);
	}
	for (i = 0; i < KVT_SHARDS; i++)
		free(st->index->shards[i].buckets);
	free(st->table.hot);
	free(st->table.cold);
	free(st->index);
	free(st->minds);
	free(st->moved);
	sim_log_delete(st->log);
	free(st->path);
	free(st->own);
	free(st);
}

/* DRAM of table, index and policy for each block that was ever there at a time. */
static double meta_bytes(const struct store *st)
{
	u64 bytes = sizeof(*st->index) + sizeof(*st->policy) +
		    (st->c->scan ? 2 : 1) * sizeof(struct kvt_mind);
	u32 i;

	for (i = 0; i < KVT_SHARDS; i++)
		bytes += (st->index->shards[i].mask + 1) * sizeof(u32);
	return (double)(sizeof(struct kvt_hot) + sizeof(struct kvt_cold)) +
	       (double)bytes / (st->table.nr_used + !st->table.nr_used);
}

static u32 find(struct store *st, const u8 *key)
{
	u32 ns_group = ns_group_of(st->ns), hash = kvt_ix_hash(st->index, ns_group, key), id;
	struct kvt_shard *s = kvt_ix_shard(st->index, hash);

	spin_lock(&s->lock);
	id = kvt_ix_find(st->index, s, hash, ns_group, key);
	spin_unlock(&s->lock);
	return id;
}

static u32 tier_of(const struct store *st, u32 id)
{
	const struct kvt_hot *h = kvt_hot(&st->table, id);

	return kvt_block_tier(h, kvt_ctl(h));
}

static void set_copies(struct store *st, u32 id, u32 set, u32 clear)
{
	kvt_ctl_update(kvt_hot(&st->table, id), 0, 0, clear, set);
}

/* A block's copy on the slowest tier. */
static bool has_copy(const struct store *st, u32 id)
{
	return kvt_ctl(kvt_hot(&st->table, id)) & KVT_CTL_LOG;
}

static void drop_copy(struct store *st, u32 id)
{
	set_copies(st, id, 0, KVT_CTL_LOG);
	if (st->log)
		sim_log_drop(st->log, &st->table, id);
}

/* One more, or less, in a namespace's memory. */
static void count_mem(struct store *st, u32 id, u32 tier, u32 by)
{
	if (is_mem(st, tier))
		st->nr_mem[kvt_hot(&st->table, id)->ns_group >> KVT_NS_SHIFT] += by;
}

/* The policy's view and the counts: the fastest copy is on another tier now. */
static void move(struct store *st, u32 id, u32 from, u32 to)
{
	struct kvt_hot *h = kvt_hot(&st->table, id);

	TIMED(st, policy_remove(st, from, id));
	st->nr_keep[from]--;
	count_mem(st, id, from, -1u);
	count_mem(st, id, to, 1);
	if (is_mem(st, to)) {
		h->mem_tier = (u8)to;
		set_copies(st, id, KVT_CTL_MEM, 0);
	} else {
		h->log_tier = (u8)to;
		set_copies(st, id, KVT_CTL_LOG, KVT_CTL_MEM);
	}
	st->nr_keep[to]++;
	TIMED(st, policy_insert(st, to, id));
}

static void promote(struct store *st, u32 id)
{
	u32 from = tier_of(st, id);

	if (!from)
		return;
	move(st, id, from, 0);
	st->r->promotions++;
	st->moved[id] = 1;
	if (!has_copy(st, id))
		return;
	if (is_mem(st, from))
		return;	/* the copy was counted before */
	if (!st->c->log_blocks &&
	    kvt_policy_keep_copy(st->policy, st->nr_dup, st->c->blocks[from], false))
		st->nr_dup++;
	else
		drop_copy(st, id);
}

/* The block leaves the pool. */
static void evict(struct store *st, u32 id)
{
	struct kvt_hot *h = kvt_hot(&st->table, id);
	struct kvt_shard *s = kvt_ix_shard(st->index, h->hash);
	u32 tier = tier_of(st, id);

	if (is_mem(st, tier) && has_copy(st, id))
		st->nr_dup--;
	if (has_copy(st, id))
		drop_copy(st, id);
	TIMED(st, policy_remove(st, tier, id));
	st->nr_keep[tier]--;
	count_mem(st, id, tier, -1u);
	spin_lock(&s->lock);
	kvt_ix_remove(st->index, s, id);
	spin_unlock(&s->lock);
	set_copies(st, id, KVT_DEAD, KVT_CTL_STATE | KVT_CTL_MEM | KVT_CTL_LOG);
	kvt_ch_unlink(&st->table, id);
	kvt_table_free(&st->table, id);
	st->r->evictions++;
}

/* As kvt_ns_guarded(). */
static bool guarded(const struct store *st, u32 id)
{
	return st->c->guarantee &&
	       kvt_hot(&st->table, id)->ns_group == ns_group_of(SIM_NS_TRACE) &&
	       st->nr_mem[SIM_NS_TRACE] <= st->c->guarantee;
}

/* The policy's next block of a tier that can go; it gets two looks at each. */
static u32 next_of(struct store *st, u32 tier, bool leaf)
{
	u32 budget = 2 * st->nr_keep[tier] + 16, id;

	while ((id = least_of(st, tier, leaf, &budget)) && is_mem(st, tier) &&
	       guarded(st, id))
		TIMED(st, policy_guarded(st, tier, id));
	kvt_policy_searched(st->policy);
	return id;
}

/* As kvt_log_may_refuse() of the driver. */
static bool may_refuse(const struct store *st, u32 id)
{
	u32 ctl = kvt_ctl(kvt_hot(&st->table, id));

	return (ctl & (KVT_CTL_LOG | KVT_CTL_MEM | KVT_CTL_STAYS)) == KVT_CTL_LOG &&
	       !kvt_policy_above(st->policy, id);
}

/* As kvt_chain_may_refuse(). */
static bool chain_may_refuse(const struct store *st, u32 tip, u32 id)
{
	const struct kvt_cold *c;

	for (; tip != id; tip = c->parent) {
		c = kvt_cold(&st->table, tip);
		if (c->sib_prev || c->sib_next || !may_refuse(st, tip))
			return false;
	}
	return may_refuse(st, id);
}

/*
 * What is not worth a write is not carried: like kvt_seg_refuse(), but for what comes before
 * it, which was carried a moment ago here.
 */
static bool let_go(void *ctx, u32 id)
{
	struct store *st = ctx;
	u32 steps = KVT_GATE_DEEP, up, tip = kvt_gate_tip(st->policy, id, &steps);

	if (tip == KVT_NIL || !chain_may_refuse(st, tip, id))
		return false;
	for (;; tip = up) {
		up = kvt_cold(&st->table, tip)->parent;
		evict(st, tip);
		if (tip == id)
			return true;
	}
}

/* As kvt_log_thin() of the driver: rather than carry much, let go what goes next anyway. */
static void thin_log(struct store *st)
{
	u32 last = last_tier(st), id = 1;

	while (id && sim_log_dense(st->log)) {
		id = next_of(st, last, true);
		if (id)
			evict(st, id);
	}
}

/* Write a block to the slowest tier. What is in the way there may have to move, or go. */
static void write_copy(struct store *st, u32 id)
{
	u64 carried, dropped;

	st->r->slow_writes++;
	if (!st->log)
		return;
	/* With room enough nothing has to, as in kvt_seg_sift() and kvt_log_dense(). */
	if (!st->c->log_blocks) {
		thin_log(st);
		st->log->let_go = let_go;
	}
	st->log->ctx = st;
	carried = st->log->nr_carried;
	dropped = st->log->nr_dropped;
	sim_log_put(st->log, &st->table, id);
	st->r->slow_writes += st->log->nr_carried - carried;
	st->r->carried += st->log->nr_carried - carried;
	st->nr_dup -= (u32)(st->log->nr_dropped - dropped);
}

/* Is a block that leaves @tier to go out rather than be written to the one below. */
static bool not_worth(struct store *st, u32 tier, u32 id)
{
	u32 to = tier + 1;
	bool room = st->nr_keep[to] + st->nr_dup < st->c->blocks[to] &&
		    !(st->log && !st->c->log_blocks && kvt_log_tight(&st->log->log));

	return !is_mem(st, to) && !has_copy(st, id) && !admits(st, to, id, room);
}

static void demote(struct store *st, u32 tier, u32 id)
{
	u32 to = tier + 1;

	if (not_worth(st, tier, id)) {
		evict(st, id);
		return;
	}
	if (!is_mem(st, to)) {
		if (has_copy(st, id))
			st->nr_dup--;
		else
			write_copy(st, id);
	}
	move(st, id, tier, to);
	st->r->demotions++;
	st->r->unread += st->moved[id];
	st->moved[id] = 0;
}

static bool over(const struct store *st, u32 tier)
{
	u32 used = st->nr_keep[tier];

	if (tier && tier == last_tier(st))
		used += st->nr_dup;
	return used > st->c->blocks[tier];
}

static void make_room(struct store *st, u32 tier)
{
	bool leaf = tier == last_tier(st);
	u32 id, from;

	while (over(st, tier)) {
		id = next_of(st, tier, leaf);
		for (from = tier; leaf && !id && from;)
			id = next_of(st, --from, true);
		if (!id)
			kvt_env_die(__FILE__, __LINE__, "nothing can go");
		if (leaf) {
			evict(st, id);
			continue;
		}
		demote(st, tier, id);
		/* It may have no room for more than the tier may hold, not even for a moment. */
		if (st->log && !st->c->log_blocks)
			make_room(st, tier + 1);
	}
}

/* Lease and touch what is there. Returns how many. */
static u32 get(struct store *st, const u32 *ids, u32 nr)
{
	u8 key[KVT_KEY_BYTES];
	u32 n, i;

	for (n = 0; n < nr; n++) {
		trace_key(st->ns, ids[n], key);
		st->path[n] = find(st, key);
		if (st->path[n] == KVT_NIL)
			break;
		st->r->hits++;
		st->r->hits_by_tier[tier_of(st, st->path[n])]++;
	}
	for (i = 0; i < n; i++) {
		st->moved[st->path[i]] = 0;
		promote(st, st->path[i]);
	}
	for (i = n; i-- > 0;)
		TIMED(st, policy_touch(st, st->path[i]));
	return n;
}

static void put_one(struct store *st, u32 i, u32 trace_id)
{
	u32 id = kvt_table_alloc(&st->table), nr;
	struct kvt_hot *h = kvt_hot(&st->table, id);
	struct kvt_shard *s;

	trace_key(st->ns, trace_id, h->key);
	h->ns_group = ns_group_of(st->ns);
	h->hash = kvt_ix_hash(st->index, h->ns_group, h->key);
	h->mem_tier = 0;
	atomic_set(&h->ctl, KVT_READY | KVT_CTL_MEM);
	if (i)
		kvt_ch_link(&st->table, id, st->path[i - 1]);
	kvt_cold(&st->table, id)->touch_ms = st->policy->now_ms;
	s = kvt_ix_shard(st->index, h->hash);
	spin_lock(&s->lock);
	kvt_ix_insert(st->index, s, id);
	if (kvt_ix_crowded(s)) {
		nr = 2 * (s->mask + 1);
		free(kvt_ix_resize(st->index, s, sim_alloc(nr, sizeof(u32)), nr));
	}
	spin_unlock(&s->lock);
	TIMED(st, policy_insert(st, 0, id));
	st->nr_keep[0]++;
	st->nr_mem[st->ns]++;
	st->path[i] = id;
	st->moved[id] = 0;
}

static void put(struct store *st, const u32 *ids, u32 from, u32 nr)
{
	u32 i;

	for (i = from; i < nr; i++)
		put_one(st, i, ids[i]);
	for (i = nr; i-- > from;)
		TIMED(st, policy_touch(st, st->path[i]));
}

/* GET has found @nr_hit; the rest is stored in pieces. */
static void put_calls(struct store *st, const u32 *ids, u32 nr_hit, u32 nr)
{
	struct kvt_call c = { .who = 1, .request = st->c->numbered ? ++st->nr_requests : 0 };
	u32 at, len;

	if (nr_hit) {
		c.tip = st->path[nr_hit - 1];
		c.nr = nr_hit;
		TIMED(st, policy_call(st, &c));
	}
	for (at = nr_hit; at < nr; at += len) {
		len = min(st->c->chunk, nr - at);
		put(st, ids, at, at + len);
		c.tip = st->path[at + len - 1];
		c.nr = len;
		TIMED(st, policy_call(st, &c));
	}
}

/* As SESSION says DONE: the end of a chain that is its own. */
static void hint_done(struct store *st, u32 nr)
{
	u32 i = nr;

	while (i && (i == nr ? kvt_ch_leaf(&st->table, st->path[i - 1]) :
			       !kvt_cold(&st->table, st->path[i])->sib_prev &&
			       !kvt_cold(&st->table, st->path[i])->sib_next))
		i--;
	for (; i < nr; i++)
		st->policy->ops->cool(st->policy, tier_of(st, st->path[i]), st->path[i]);
}

/* What the client of request @r says of its session. @next_ms: 0: it does not go on. */
static void hint(struct store *st, u32 r, u32 nr, u64 ts_ms, u64 next_ms)
{
	bool wrong = trace_mix64(r) % 100 < st->c->wrong;

	if (wrong)
		next_ms = next_ms ? 0 : ts_ms + 1000 * (1 + trace_mix64(r + 1) % 300);
	if (st->policy->ops->hint)
		st->policy->ops->hint(st->policy, st->path[nr - 1],
				      next_ms ? (u32)(next_ms - ts_ms) : KVT_HINT_NEVER);
	else if (!next_ms)
		hint_done(st, nr);
}

/* When each request's session goes on, by request; 0: it does not. */
static u64 *find_next(const struct sim_trace *t)
{
	u64 *next = sim_alloc(t->nr_requests, sizeof(*next));
	u64 *used = sim_alloc(t->nr_distinct, sizeof(*used));
	u32 r, i, len;

	for (r = t->nr_requests; r-- > 0;) {
		len = sim_request_len(t, r);
		if (len)
			next[r] = used[t->ids[t->first[r] + (len > 1 ? len - 2 : 0)]];
		for (i = t->first[r]; i < t->first[r + 1]; i++)
			used[t->ids[i]] = t->ts_ms[r];
	}
	free(used);
	return next;
}

/* What the other client says of the chain of @nr blocks that it has just used. */
static void lie(struct store *st, u32 nr)
{
	u64 random = trace_mix64(st->nr_scanned);
	u32 ms = st->c->lie_random ? (u32)(random >> (32 + random % 32)) : st->c->lie_ms, i;

	if (!st->c->lies)
		return;
	for (i = nr; st->c->lie_hot && i-- > 0;)
		st->policy->ops->warm(st->policy, tier_of(st, st->path[i]), st->path[i]);
	if (!st->c->lie_hot && st->policy->ops->hint)
		st->policy->ops->hint(st->policy, st->path[nr - 1], ms);
}

/* It uses something, for others to believe it. */
static void feign(struct store *st)
{
	struct kvt_call c = { .who = 2, .request = ++st->nr_scanned, .nr = 1 };
	struct sim_result keep = *st->r;
	u32 n, i;

	for (i = 0; i < st->c->feign; i++)
		st->own[i] = U32_MAX - i;
	n = get(st, st->own, st->c->feign);
	put(st, st->own, n, st->c->feign);
	c.tip = st->path[st->c->feign - 1];
	TIMED(st, policy_call(st, &c));
	if (st->c->feign_never && st->policy->ops->hint)
		st->policy->ops->hint(st->policy, c.tip, KVT_HINT_NEVER);
	else
		lie(st, st->c->feign);
	/* Only the trace's hits count. */
	st->r->hits = keep.hits;
	memcpy(st->r->hits_by_tier, keep.hits_by_tier, sizeof(keep.hits_by_tier));
}

/* The other client's request. */
static void scan(struct store *st)
{
	struct kvt_call c = { .who = 2, .nr = st->c->scan };
	u32 i;

	st->ns = SIM_NS_SCAN;
	if (st->c->feign)
		feign(st);
	c.request = ++st->nr_scanned;
	for (i = 0; i < st->c->scan; i++)
		put_one(st, i, st->nr_scanned * st->c->scan + i);
	for (i = st->c->scan; i-- > 0;)
		TIMED(st, policy_touch(st, st->path[i]));
	c.tip = st->path[st->c->scan - 1];
	TIMED(st, policy_call(st, &c));
	lie(st, st->c->scan);
	for (i = 0; i < st->c->nr_tiers; i++)
		make_room(st, i);
	st->ns = SIM_NS_TRACE;
}

static void request(struct store *st, const struct sim_trace *t, u32 r, const u64 *next_ms)
{
	u32 nr = sim_request_len(t, r), i, nr_hit, room = 0;
	const u32 *ids = t->ids + t->first[r];
	u64 ts_ms = t->ts_ms[r];

	for (i = 0; i < st->c->nr_tiers; i++)
		room += st->c->blocks[i];
	nr = min(nr, room);
	st->policy->now_ms = (u32)ts_ms;
	nr_hit = get(st, ids, nr);
	if (st->c->chunk) {
		put_calls(st, ids, nr_hit, nr);
	} else {
		put(st, ids, nr_hit, nr);
		TIMED(st, policy_request(st, st->path[nr - 1]));
	}
	if (next_ms)
		hint(st, r, nr, ts_ms, next_ms[r]);
	for (i = 0; i < st->c->nr_tiers; i++)
		make_room(st, i);
	if (st->c->scan)
		scan(st);
}

/* What the log counts as live is what the tier holds. */
static void check_log(const struct store *st)
{
	if (st->log && st->log->log.live_units != st->nr_keep[last_tier(st)] + st->nr_dup)
		kvt_env_die(__FILE__, __LINE__, "the log has lost count");
}

static const struct kvt_policy_ops *policy_of(const char *name)
{
	if (!strcmp(name, "default"))
		return kvt_policy_at(0);
	return kvt_policy_find(name, strlen(name));
}

int sim_core_run(const struct sim_trace *t, const struct sim_config *c,
		 struct sim_result *r)
{
	const struct kvt_policy_ops *ops = policy_of(c->policy);
	u32 i, len_max = max(max(1u, c->scan), c->feign);
	struct store *st;
	u64 start, *next_ms;

	if (!ops)
		return -ENOENT;
	for (i = 0; i < t->nr_requests; i++)
		len_max = max(len_max, sim_request_len(t, i));
	st = store_new(c, len_max);
	st->r = r;
	kvt_policy_init(st->policy, ops, &st->table);
	for (i = 0; i < SIM_NS_MAX; i++)
		kvt_mind_init(&st->minds->mind[i]);
	st->policy->mind_of = mind_of;
	st->policy->only = c->scan ? NULL : &st->minds->mind[SIM_NS_TRACE];
	next_ms = c->hints ? find_next(t) : NULL;
	st->look_ns = look_ns();
	start = now_ns();
	for (i = 0; i < t->nr_requests; i++)
		request(st, t, i, next_ms);
	r->ns = now_ns() - start;
	check_log(st);
	r->meta_bytes_per_block = meta_bytes(st);
	store_free(st);
	free(next_ms);
	return 0;
}
