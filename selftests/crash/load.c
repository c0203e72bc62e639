// SPDX-License-Identifier: GPL-2.0
/*
 * The load: chains are put, read, dropped and pushed down, namespaces come and go, fsync.
 *
 * Each worker is a process with namespaces of its own, so what it knows of its blocks is
 * exact, while all workers share pool, memory and devices. Whatever should not happen
 * below the pool's capacity ends the load: it would make the journal's promises wrong. In
 * the loose namespace the pool is asked each time what is left.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "crash.h"

#define CHURNS_MAX	4u	/* further namespaces open at a time */
#define WAIT_NS		30000000000ull
#define PAGE		256u

/*
 * A namespace that is open. @there: a loose block may be gone all the same; then @version is
 * what it was put as, 0: not known. @evicted: before all in it was pinned.
 */
struct space {
	struct kvtier_ns *h;
	uint32_t ns;
	uint32_t blocks;
	bool there[MAIN_BLOCKS];
	uint32_t version[LOOSE_BLOCKS];
	uint64_t evicted;
};

struct worker {
	const struct load_args *args;
	uint32_t id;
	uint64_t rng;
	int journal;
	struct oracle *o;
	struct kvtier_pool *pool;
	struct space main;
	struct space loose;
	struct space churn[CHURNS_MAX];
	uint32_t serial;
	uint64_t on_bdev;	/* bit n: tier n is a block tier */
};

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *fmt, ...)
{
	va_list args;

	printf("# load: ");
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	_exit(1);
}

/* A line of the journal; it is kept when this returns. */
static void __attribute__((format(printf, 2, 3))) say(struct worker *w, const char *fmt, ...)
{
	char line[LINE_MAX_BYTES + 2];
	va_list args;
	size_t len;

	va_start(args, fmt);
	len = vsnprintf(line, LINE_MAX_BYTES, fmt, args);
	va_end(args);
	if (len >= LINE_MAX_BYTES || !oracle_line(w->o, line))
		die("a bad line");
	if (w->args->dm) {
		if (dm_mark(w->args->dm, line))
			die("the log cannot be marked");
		return;
	}
	line[len++] = '\n';
	if (write(w->journal, line, len) != (ssize_t)len)
		die("the journal cannot be written");
}

static void check(int ret, uint32_t want, const char *what)
{
	if (ret != (int)want)
		die("%s: %d instead of %u", what, ret, want);
}

/* A prefix of a batch; memory may be short for a while, and nothing else. */
static void expect(int ret, uint32_t want, const struct kvtier_slot *slots, const char *what)
{
	if (ret < 0)
		die("%s: %s", what, strerror(-ret));
	if ((uint32_t)ret < want && slots[ret].status != KVTIER_ST_NOSPACE)
		die("%s: block %d of %u: %s", what, ret, want,
		    kvtier_status_name(slots[ret].status));
}

static struct kvtier_opts opts_of(uint32_t index)
{
	struct kvtier_opts o = KVTIER_OPTS_INIT;

	o.group = group_of(index);
	o.timeout_ns = WAIT_NS;
	return o;
}

static uint32_t pick(struct worker *w, uint32_t n)
{
	return random_below(&w->rng, n);
}

/* Keys of a chain from @index on; how many. */
static uint32_t chain_keys(struct kvtier_key *keys, const struct space *s, uint32_t index)
{
	uint32_t i, nr = CHAIN - index % CHAIN;

	for (i = 0; i < nr; i++)
		make_key(&keys[i], s->ns, index + i);
	return nr;
}

/* Blocks that are there, from the head of a chain on. */
static uint32_t chain_len(const struct space *s, uint32_t head)
{
	uint32_t i;

	for (i = 0; i < CHAIN && s->there[head + i]; i++)
		;
	return i;
}

static uint32_t pick_chain(struct worker *w, const struct space *s)
{
	return pick(w, s->blocks / CHAIN) * CHAIN;
}

/* How many were pinned, or -errno. */
static int try_pin(const struct space *s, uint32_t first, uint32_t nr)
{
	struct kvtier_opts o = opts_of(first);
	struct kvtier_key keys[CHAIN];

	chain_keys(keys, s, first);
	return kvtier_advise(s->h, &o, KVTIER_ADV_PIN, 0, keys, nr, NULL);
}

/* Else what is durable could be evicted, when the log is short of room for a while. */
static void pin(const struct space *s, uint32_t first, uint32_t nr)
{
	check(try_pin(s, first, nr), nr, "pin");
}

static void put(struct worker *w, struct space *s, uint32_t head)
{
	uint32_t first = head + chain_len(s, head), i, nr, version = w->o->version + 1;
	struct kvtier_opts o = opts_of(head);
	struct kvtier_key keys[CHAIN], parent;
	struct kvtier_slot slots[CHAIN];
	int got;

	if (first == head + CHAIN)
		return;
	nr = chain_keys(keys, s, first);
	make_key(&parent, s->ns, first - 1);
	say(w, "P %u %u %u %u", s->ns, first, nr, version);
	o.flags = KVTIER_RESERVE_WAIT;
	got = kvtier_reserve(s->h, &o, keys, first == head ? NULL : &parent, nr, slots);
	expect(got, nr, slots, "reserve");
	if (!got)
		return;
	for (i = 0; i < (uint32_t)got; i++)
		fill_block(slots[i].ptr, s->ns, first + i, version);
	check(kvtier_commit_slots(s->h, KVTIER_COMMIT_LEASE, slots, got), got, "commit");
	pin(s, first, got);
	check(kvtier_release_slots(s->h, slots, got), got, "release");
	for (i = 0; i < (uint32_t)got; i++)
		s->there[first + i] = true;
}

/* The end of a chain. */
static void drop(struct worker *w, struct space *s, uint32_t first, uint32_t nr)
{
	struct kvtier_opts o = opts_of(first);
	struct kvtier_key keys[CHAIN];

	chain_keys(keys, s, first);
	say(w, "D %u %u %u", s->ns, first, nr);
	check(kvtier_drop(s->h, &o, keys, nr, NULL), nr, "drop");
	say(w, "d %u %u %u", s->ns, first, nr);
	memset(s->there + first, 0, nr);
}

static void get(struct worker *w, struct space *s, uint32_t head, uint32_t nr)
{
	struct kvtier_opts o = opts_of(head);
	struct kvtier_key keys[CHAIN];
	struct kvtier_slot slots[CHAIN];
	uint32_t i;
	int got;

	chain_keys(keys, s, head);
	say(w, "G %u %u %u", s->ns, head, nr);
	o.flags = KVTIER_GET_WAIT;
	/* Until nothing is on its way any more: see prefetch(). */
	do {
		got = kvtier_get(s->h, &o, keys, nr, slots);
	} while (got >= 0 && (uint32_t)got < nr && slots[got].status == KVTIER_ST_PENDING &&
		 kvtier_release_slots(s->h, slots, got) == got);
	expect(got, nr, slots, "get");
	for (i = 0; i < (uint32_t)got; i++)
		if (block_version(slots[i].ptr, s->ns, head + i) !=
		    w->o->ns[s->ns][head + i].newest)
			die("wrong bytes in block %u.%u", s->ns, head + i);
	check(kvtier_release_slots(s->h, slots, got), got, "release");
}

static void cool(struct space *s, uint32_t head, uint32_t nr)
{
	struct kvtier_opts o = opts_of(head);
	struct kvtier_key keys[CHAIN];

	chain_keys(keys, s, head);
	check(kvtier_advise(s->h, &o, KVTIER_ADV_COLD, 0, keys, nr, NULL), nr, "advise");
}

/* Until it is done: what is on its way up may be durable now and not later. */
static void prefetch(struct worker *w, struct space *s, uint32_t head, uint32_t nr)
{
	struct kvtier_opts o = opts_of(head);
	struct kvtier_completion done;
	struct kvtier_key keys[CHAIN];

	chain_keys(keys, s, head);
	say(w, "G %u %u %u", s->ns, head, nr);
	o.flags = KVTIER_PREFETCH_NOTIFY;
	if (kvtier_prefetch(s->h, &o, keys, nr) < 0)
		die("prefetch");
	check(kvtier_completions(s->h, &done, 1, WAIT_NS / 1000000), 1, "completion");
}

/* Which blocks there are, which of them are durable, which on a block tier. */
static void look(struct worker *w, struct space *s, bool *there, bool *durable, bool *low)
{
	struct kvtier_entry e[PAGE];
	uint64_t cursor = 0;
	uint32_t ns, index;
	int i, nr;

	memset(there, 0, MAIN_BLOCKS);
	do {
		nr = kvtier_iterate(s->h, &cursor, e, PAGE);
		if (nr < 0)
			die("iterate: %s", strerror(-nr));
		for (i = 0; i < nr; i++) {
			if (!read_key(e[i].key, &ns, &index) || ns != s->ns)
				die("a block of a namespace with a foreign key");
			there[index] = true;
			/* The copy of a block in memory is given up at any time. */
			low[index] = w->on_bdev >> e[i].tier & 1;
			durable[index] = low[index] && e[i].flags & KVTIER_ENTRY_DURABLE;
		}
	} while (cursor);
}

/* Those of @which that are not known to be durable yet. */
static void say_durable(struct worker *w, const struct space *s, const bool *which)
{
	char list[LINE_MAX_BYTES];
	size_t len = 0;
	uint32_t i;

	for (i = 0; i < s->blocks; i++) {
		if (s->there[i] && which[i] && !w->o->ns[s->ns][i].must)
			len += snprintf(list + len, sizeof(list) - len, " %u", i);
		if (len && (len > sizeof(list) - 40 || i + 1 == s->blocks)) {
			say(w, "S %u%s", s->ns, list);
			len = 0;
		}
	}
}

static struct kvtier_stat stat_of(struct space *s)
{
	struct kvtier_stat st = KVTIER_STAT_INIT;

	if (kvtier_ns_stat(s->h, &st))
		die("stat");
	return st;
}

static void must_not_evict(struct space *s)
{
	struct kvtier_stat st = stat_of(s);

	if (st.evictions != s->evicted)
		die("%llu blocks were evicted or lost",
		    (unsigned long long)(st.evictions - s->evicted));
}

static void durable(struct worker *w, struct space *s, bool sync)
{
	bool there[MAIN_BLOCKS], durable[MAIN_BLOCKS] = { 0 }, low[MAIN_BLOCKS] = { 0 };
	uint32_t i;

	look(w, s, there, durable, low);
	must_not_evict(s);
	for (i = 0; i < s->blocks; i++)
		if (there[i] != s->there[i])
			die("block %u.%u has %s by itself", s->ns, i, there[i] ? "come" : "gone");
	if (sync && fsync(kvtier_ns_fd(s->h)))
		die("fsync: %s", strerror(errno));
	say_durable(w, s, sync ? low : durable);
	must_not_evict(s);
}

static void open_space(struct worker *w, struct space *s, uint32_t ns, uint32_t blocks,
		       uint32_t flags)
{
	int err;

	memset(s, 0, sizeof(*s));
	say(w, "O %u %llu", ns, (unsigned long long)ns_quota(ns));
	err = open_ns(w->pool, ns, flags, true, &s->h);
	if (err)
		die("namespace %u: %s", ns, strerror(-err));
	s->ns = ns;
	s->blocks = blocks;
}

/* --- blocks that may go at any time ------------------------------------------ */

static void forget(struct space *s, uint32_t first, uint32_t nr)
{
	memset(s->there + first, 0, nr);
	memset(s->version + first, 0, nr * sizeof(*s->version));
}

/* What is left of a chain, from its head on. What was seen to be gone is gone for good. */
static uint32_t loose_len(struct space *s, uint32_t head)
{
	struct kvtier_lookup_result found[CHAIN];
	struct kvtier_opts o = opts_of(head);
	struct kvtier_key keys[CHAIN];
	uint32_t i, nr = chain_keys(keys, s, head);
	int len = kvtier_lookup(s->h, &o, keys, nr, found, NULL);

	if (len < 0)
		die("lookup: %s", strerror(-len));
	for (i = 0; i < nr; i++) {
		if (found[i].status != KVTIER_ST_HIT)
			forget(s, head + i, 1);
		else if (!s->there[head + i])
			die("block %u.%u has come by itself", s->ns, head + i);
	}
	return len;
}

/* All of a chain from @first on, whatever is left of it. */
static void loose_drop(struct worker *w, struct space *s, uint32_t first)
{
	struct kvtier_opts o = opts_of(first);
	struct kvtier_key keys[CHAIN];
	uint32_t i, nr = chain_keys(keys, s, first);
	int32_t results[CHAIN];

	say(w, "D %u %u %u", s->ns, first, nr);
	if (kvtier_drop(s->h, &o, keys, nr, results) < 0)
		die("drop");
	for (i = 0; i < nr; i++)
		if (results[i] != KVTIER_ST_DONE && results[i] != KVTIER_ST_MISS)
			die("drop of block %u.%u: %s", s->ns, first + i,
			    kvtier_status_name(results[i]));
	say(w, "d %u %u %u", s->ns, first, nr);
	forget(s, first, nr);
}

/* Status of what ended a batch: there was no room, or the block has gone meanwhile. */
static void expect_loose(int ret, uint32_t want, const struct kvtier_slot *slots, const char *what)
{
	int status = ret >= 0 && (uint32_t)ret < want ? slots[ret].status : KVTIER_ST_MISS;

	if (ret < 0)
		die("loose %s: %s", what, strerror(-ret));
	if (status != KVTIER_ST_MISS && status != KVTIER_ST_NOSPACE && status != KVTIER_ST_QUOTA &&
	    status != KVTIER_ST_NOPARENT && status != KVTIER_ST_PENDING)
		die("loose %s: block %d of %u: %s", what, ret, want, kvtier_status_name(status));
}

static void loose_commit(struct space *s, uint32_t first, struct kvtier_slot *slots, uint32_t nr,
			 uint32_t version)
{
	uint32_t i;
	int done;

	for (i = 0; i < nr; i++)
		fill_block(slots[i].ptr, s->ns, first + i, version);
	done = kvtier_commit_slots(s->h, 0, slots, nr);
	if (done < 0)
		die("loose commit: %s", strerror(-done));
	/* If what is before them was lost, they are of no use. */
	if ((uint32_t)done < nr)
		check(kvtier_abort_slots(s->h, slots + done, nr - done), nr - done, "abort");
	for (i = 0; i < (uint32_t)done; i++) {
		s->there[first + i] = true;
		s->version[first + i] = version;
	}
}

static void loose_put(struct worker *w, struct space *s, uint32_t head)
{
	uint32_t first = head + loose_len(s, head), nr, i, version = w->o->version + 1;
	struct kvtier_opts o = opts_of(head);
	struct kvtier_key keys[CHAIN], parent;
	struct kvtier_slot slots[CHAIN];
	int got;

	if (first == head + CHAIN)
		return;
	nr = chain_keys(keys, s, first);
	/* What has lost its parent is in the way. */
	for (i = first; i < first + nr && !s->there[i]; i++)
		;
	if (i < first + nr)
		loose_drop(w, s, first);
	make_key(&parent, s->ns, first - 1);
	say(w, "P %u %u %u %u", s->ns, first, nr, version);
	o.flags = KVTIER_RESERVE_WAIT;
	got = kvtier_reserve(s->h, &o, keys, first == head ? NULL : &parent, nr, slots);
	expect_loose(got, nr, slots, "reserve");
	if (!got)
		return;
	if (ns_quota(s->ns) && stat_of(s).used_bytes > ns_quota(s->ns))
		die("namespace %u has more than its quota", s->ns);
	loose_commit(s, first, slots, got, version);
}

static void loose_get(struct worker *w, struct space *s, uint32_t head)
{
	struct kvtier_opts o = opts_of(head);
	struct kvtier_key keys[CHAIN];
	struct kvtier_slot slots[CHAIN];
	const struct ora_block *b;
	uint32_t i, nr = chain_keys(keys, s, head), version;
	int got;

	o.flags = KVTIER_GET_WAIT;
	got = kvtier_get(s->h, &o, keys, nr, slots);
	expect_loose(got, nr, slots, "get");
	for (i = 0; i < (uint32_t)got; i++) {
		version = block_version(slots[i].ptr, s->ns, head + i);
		b = &w->o->ns[s->ns][head + i];
		if (!version || version <= b->floor || version > b->newest ||
		    (s->version[head + i] && version != s->version[head + i]))
			die("block %u.%u is there as version %u", s->ns, head + i, version);
		s->version[head + i] = version;
	}
	check(kvtier_release_slots(s->h, slots, got), got, "release");
}

static void loose_cool(struct space *s, uint32_t head)
{
	struct kvtier_opts o = opts_of(head);
	struct kvtier_key keys[CHAIN];
	uint32_t nr = chain_keys(keys, s, head);

	if (kvtier_advise(s->h, &o, KVTIER_ADV_COLD, 0, keys, nr, NULL) < 0)
		die("advise");
}

static void loose_operate(struct worker *w)
{
	struct space *s = &w->loose;
	uint32_t what = pick(w, 100), head = pick_chain(w, s);

	if (what < 60)
		loose_put(w, s, head);
	else if (what < 70)
		loose_drop(w, s, head + pick(w, CHAIN));
	else if (what < 88)
		loose_get(w, s, head);
	else
		loose_cool(s, head);
}

/* --- whole namespaces -------------------------------------------------------- */

/* Its blocks go, and it with them. */
static void end_space(struct worker *w, struct space *s)
{
	uint32_t head, len;

	for (head = 0; head < s->blocks; head += CHAIN) {
		len = chain_len(s, head);
		if (len)
			drop(w, s, head, len);
	}
	kvtier_ns_unref(s->h);
	memset(s, 0, sizeof(*s));
}

static void churn(struct worker *w)
{
	struct space *s = &w->churn[pick(w, CHURNS_MAX)];

	if (s->h && pick(w, 2)) {
		end_space(w, s);
		return;
	}
	if (!s->h)
		open_space(w, s, ns_of(w->id, w->serial++), CHURN_BLOCKS,
			   KVTIER_NS_CREATE | KVTIER_NS_EXCL);
	put(w, s, pick_chain(w, s));
}

/* What is there. */
static void take_stock(struct worker *w, struct space *s)
{
	bool durable[MAIN_BLOCKS], low[MAIN_BLOCKS];
	uint32_t i;

	look(w, s, s->there, durable, low);
	/* Blocks whose parent is lost are of no use, and in the way. */
	for (i = 1; i < s->blocks; i++) {
		if (i % CHAIN && s->there[i] && !s->there[i - 1]) {
			uint32_t nr = 1;

			while ((i + nr) % CHAIN && s->there[i + nr])
				nr++;
			if (ns_loose(s->ns))
				loose_drop(w, s, i);
			else
				drop(w, s, i, nr);
		}
	}
}

/*
 * What an earlier crash has left is taken over: chains, and namespaces. Pins are forgotten by
 * then, so a pool with few segments free may have evicted some, and go on until all are pinned.
 */
static void take_over(struct worker *w, struct space *s)
{
	uint32_t i, left;
	uint64_t before;

	do {
		before = stat_of(s).evictions;
		take_stock(w, s);
		if (ns_loose(s->ns))
			return;
		left = 0;
		for (i = 0; i < s->blocks; i++)
			left += s->there[i] && try_pin(s, i, 1) != 1;
		s->evicted = stat_of(s).evictions;
	} while (s->evicted != before);
	if (left)
		die("%u blocks are there and cannot be pinned", left);
}

static void start(struct worker *w)
{
	uint32_t ns, at = 0;
	struct space *s;

	open_space(w, &w->main, ns_of(w->id, SERIAL_MAIN), w->args->blocks, KVTIER_NS_CREATE);
	take_over(w, &w->main);
	open_space(w, &w->loose, ns_of(w->id, SERIAL_LOOSE), LOOSE_BLOCKS, KVTIER_NS_CREATE);
	take_over(w, &w->loose);
	w->serial = SERIAL_CHURN;
	for (ns = ns_of(w->id, SERIAL_CHURN); ns < w->o->nr_ns; ns += WORKERS_MAX) {
		if (!w->o->ns[ns])
			continue;
		w->serial = ns / WORKERS_MAX + 1;
		s = &w->churn[at];
		if (open_ns(w->pool, ns, 0, true, &s->h))
			continue;
		s->ns = ns;
		s->blocks = CHURN_BLOCKS;
		take_over(w, s);
		at = (at + 1) % CHURNS_MAX;
		if (w->churn[at].h)
			end_space(w, &w->churn[at]);
	}
}

static void operate(struct worker *w)
{
	struct space *s = &w->main;
	uint32_t what = pick(w, 100), head, len, cut;

	if (pick(w, 4) == 0) {
		loose_operate(w);
		return;
	}
	if (w->churn[0].h && pick(w, 10) == 0)
		s = &w->churn[0];
	head = pick_chain(w, s);
	len = chain_len(s, head);
	if (what < 40 || !len) {
		put(w, s, head);
	} else if (what < 58) {
		cut = pick(w, 2) ? 0 : pick(w, len);
		drop(w, s, head + cut, len - cut);
	} else if (what < 68) {
		get(w, s, head, len);
	} else if (what < 71) {
		prefetch(w, s, head, len);
	} else if (what < 83) {
		cool(s, head, len);
	} else if (what < 91) {
		durable(w, s, false);
	} else if (what < 94) {
		durable(w, s, true);
	} else {
		churn(w);
	}
}

static void find_tiers(struct worker *w)
{
	struct kvtier_tier_info tiers[KVTIER_TIERS_MAX];
	int i, nr = kvtier_pool_tiers(w->pool, tiers);

	for (i = 0; i < nr; i++)
		if (tiers[i].type == KVTIER_TIER_BDEV)
			w->on_bdev |= 1ull << tiers[i].id;
	if (!w->on_bdev)
		die("the pool has no block tier");
}

static void __attribute__((noreturn)) work(const struct load_args *a, uint32_t id)
{
	static struct worker w;
	char path[256];
	uint32_t i;
	int err;

	w.args = a;
	w.id = id;
	w.rng = a->seed * WORKERS_MAX + id;
	w.o = oracle_new();
	if (a->journal) {
		snprintf(path, sizeof(path), "%s.%u", a->journal, id);
		err = oracle_file(w.o, path);
		if (err && err != -ENOENT)
			die("%s: %s", path, strerror(-err));
		w.journal = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
		if (w.journal < 0)
			die("%s: %s", path, strerror(errno));
	}
	err = kvtier_pool_open(a->pool, &w.pool);
	if (err)
		die("pool %u: %s", a->pool, strerror(-err));
	find_tiers(&w);
	start(&w);
	for (i = 0; !a->ops || i < a->ops; i++)
		operate(&w);
	durable(&w, &w.main, true);
	if (!stat_of(&w.loose).evictions)
		die("nothing of namespace %u was evicted", w.loose.ns);
	_exit(0);
}

int load_run(const struct load_args *a)
{
	int status, failed = 0;
	uint32_t i;

	fflush(stdout);
	for (i = 0; i < a->workers; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return 1;
		if (!pid)
			work(a, i);
	}
	/* One that fails ends the load. */
	while (!failed && wait(&status) > 0)
		failed = !WIFEXITED(status) || WEXITSTATUS(status);
	return failed;
}
