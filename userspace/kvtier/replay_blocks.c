// SPDX-License-Identifier: GPL-2.0
/*
 * Reading a prefix through the read view and storing the rest through the fill
 * view.
 *
 * A chain may be longer than memory has room to lease, so it is worked through in
 * windows. Giving a window back before the next one is taken keeps the meaning of
 * a prefix: a parent never leaves the pool before its children, and here a hit
 * counts only if every block before it was one.
 *
 * The tier of a hit is the one LOOKUP saw just before GET moved the block up, or,
 * for a block that came in between, the one GET found it in.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "replay_blocks.h"
#include "trace.h"

#define WINDOW_MAX	1024
#define RETRIES		20
#define RETRY_NS	5000000

/* The only writer of its counters; the parent reads them at any time. */
static void count(uint64_t *counter, uint64_t by)
{
	__atomic_store_n(counter, *counter + by, __ATOMIC_RELAXED);
}

static struct replay_counters *counters(struct replay_blocks *b)
{
	return &b->me->counters;
}

static void pause_ns(uint64_t ns)
{
	struct timespec ts = { .tv_nsec = (long)ns };

	nanosleep(&ts, NULL);
}

static struct kvtier_opts opts_of(const struct replay_blocks *b, uint32_t flags)
{
	struct kvtier_opts opts = KVTIER_OPTS_INIT;

	opts.flags = flags;
	opts.request = b->request;
	opts.timeout_ns = b->o->timeout_ns;
	return opts;
}

static void set_what(struct replay_blocks *b, const char *what)
{
	strncpy(b->what, what, sizeof(b->what) - 1);
}

/* Counts why a block could not be had or stored. */
static void count_refusal(struct replay_blocks *b, int status)
{
	struct replay_counters *c = counters(b);

	switch (status) {
	case KVTIER_ST_NOSPACE:
		count(&c->no_space, 1);
		break;
	case KVTIER_ST_QUOTA:
		count(&c->quota, 1);
		break;
	case KVTIER_ST_NOPARENT:
		count(&c->no_parent, 1);
		break;
	case KVTIER_ST_LIMIT:
		count(&c->limit, 1);
		break;
	case KVTIER_ST_PINNED:
		count(&c->pinned, 1);
		break;
	case KVTIER_ST_STALE:
		count(&c->stale, 1);
		break;
	case KVTIER_ST_IOERR:
		count(&c->io_errors, 1);
		break;
	case KVTIER_ST_PENDING:
	case KVTIER_ST_FILLING:
		count(&c->timeouts, 1);
		break;
	}
}

static void report_wrong(struct replay_blocks *b, size_t at, uint32_t tier,
			 const struct replay_wrong *what)
{
	uint32_t n = __atomic_fetch_add(&b->shared->nr_wrong, 1, __ATOMIC_RELAXED);
	struct replay_wrong_block *w;

	count(&counters(b)->wrong_blocks, 1);
	count(&counters(b)->wrong_bytes, what->wrong_bytes);
	if (n >= REPLAY_WRONG_MAX)
		return;
	w = &b->shared->wrong[n];
	w->id = b->ids[at];
	memcpy(w->key, b->keys[at].b, sizeof(w->key));
	w->tier = tier;
	w->proc = b->proc;
	w->what = *what;
}

/* Compares leased blocks with what they have to be. */
static void verify(struct replay_blocks *b, size_t at, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		const struct kvtier_slot *s = &b->slots[i];
		uint64_t start = replay_now_ns(), checked;
		struct replay_wrong wrong;

		if (!replay_data_verify(b->keys[at + i].b, s->ptr,
					b->o->block_bytes, b->o->verify_full,
					&checked, &wrong))
			report_wrong(b, at + i, s->tier, &wrong);
		replay_hist_add(&b->me->latency.read_block[s->tier % KVTIER_TIERS_MAX],
				replay_now_ns() - start, 1);
		count(&counters(b)->verified_bytes, checked);
		replay_seen_mark(b->seen, b->ids[at + i], b->proc);
	}
}

/*
 * Leases, verifies and gives back up to @nr blocks from @at on; waits for those
 * that have to come up first. Returns how many it was, less than @nr if the
 * prefix ends before or not all could be leased at once; 0: there is no more to be
 * had; *ns: time spent in the store.
 */
static int get_window(struct replay_blocks *b, size_t at, uint32_t nr, uint64_t *ns)
{
	struct kvtier_opts opts = opts_of(b, KVTIER_GET_WAIT);
	uint64_t start;
	int got, err;

	for (int try = 0;; try++) {
		set_what(b, "GET");
		start = replay_now_ns();
		got = kvtier_get(b->ns, &opts, b->keys + at, nr, b->slots);
		*ns += replay_now_ns() - start;
		if (got < 0)
			return got;
		if (got > 0)
			break;
		if (b->slots[0].status == KVTIER_ST_MISS ||
		    b->slots[0].status == KVTIER_ST_FILLING)
			return 0;
		count_refusal(b, b->slots[0].status);
		/* Room and leases come back when others are done reading. */
		if ((b->slots[0].status != KVTIER_ST_NOSPACE &&
		     b->slots[0].status != KVTIER_ST_LIMIT) || try == RETRIES)
			return 0;
		pause_ns(RETRY_NS);
	}
	verify(b, at, (uint32_t)got);
	set_what(b, "RELEASE");
	start = replay_now_ns();
	err = kvtier_release_slots(b->ns, b->slots, (uint32_t)got);
	*ns += replay_now_ns() - start;
	if (err < 0)
		return err;
	return err == got ? got : -ESTALE;
}

/* Files @got hits of a window under the tiers they were found in. */
static void count_hits(struct replay_blocks *b, uint32_t got, uint64_t get_ns)
{
	struct replay_counters *c = counters(b);
	uint32_t slowest = 0;

	for (uint32_t i = 0; i < got; i++) {
		bool known = b->found[i].status == KVTIER_ST_HIT;
		uint32_t tier = known ? b->found[i].tier : b->slots[i].tier;

		tier %= KVTIER_TIERS_MAX;
		count(&c->hits_by_tier[tier], 1);
		if (!i || b->tier_rank[tier] > b->tier_rank[slowest])
			slowest = tier;
	}
	/* Asked and answered together, so that rates over time make sense. */
	count(&c->asked, got);
	count(&c->hits, got);
	if (got)
		replay_hist_add(&b->me->latency.get_block[slowest], get_ns / got, got);
}

/* Whether a window of which @got of @nr were leased may be followed by more. */
static bool prefix_goes_on(const struct replay_blocks *b, int got, uint32_t nr)
{
	if (!got || (uint32_t)got == nr)
		return got != 0;
	return b->slots[got].status != KVTIER_ST_MISS &&
	       b->slots[got].status != KVTIER_ST_FILLING;
}

/* Reads the longest prefix there is; its length, or a negative errno. */
static int read_prefix(struct replay_blocks *b, size_t *prefix)
{
	struct kvtier_opts opts = opts_of(b, 0);
	uint64_t total_ns = 0;
	bool going = true;

	*prefix = 0;
	while (going && *prefix < b->nr) {
		size_t left = b->nr - *prefix;
		uint32_t nr = left < b->window ? (uint32_t)left : b->window;
		uint64_t start = replay_now_ns(), get_ns = 0;
		int got;

		set_what(b, "LOOKUP");
		got = kvtier_lookup(b->ns, &opts, b->keys + *prefix, nr, b->found, NULL);
		total_ns += replay_now_ns() - start;
		if (got < 0)
			return got;
		got = get_window(b, *prefix, nr, &get_ns);
		if (got < 0)
			return got;
		count_hits(b, (uint32_t)got, get_ns);
		total_ns += get_ns;
		*prefix += (size_t)got;
		going = prefix_goes_on(b, got, nr);
	}
	count(&counters(b)->asked, b->nr - *prefix);
	replay_hist_add(&b->me->latency.get_request, total_ns, 1);
	return 0;
}

/* Asks for the longest prefix there is, and leaves all where it is. */
static int ask_prefix(struct replay_blocks *b)
{
	struct kvtier_opts opts = opts_of(b, 0);
	uint64_t start = replay_now_ns();
	uint32_t nr = 1, got = 1;
	size_t prefix = 0;

	while (got == nr && prefix < b->nr) {
		size_t left = b->nr - prefix;
		int ret;

		nr = left < b->window ? (uint32_t)left : b->window;
		set_what(b, "LOOKUP");
		ret = kvtier_lookup(b->ns, &opts, b->keys + prefix, nr, b->found, NULL);
		if (ret < 0)
			return ret;
		got = (uint32_t)ret;
		for (uint32_t i = 0; i < got; i++)
			count(&counters(b)->hits_by_tier[b->found[i].tier % KVTIER_TIERS_MAX], 1);
		prefix += got;
	}
	count(&counters(b)->asked, b->nr);
	count(&counters(b)->hits, prefix);
	replay_hist_add(&b->me->latency.get_request, replay_now_ns() - start, 1);
	return 0;
}

static void fill(struct replay_blocks *b, size_t at, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (b->slots[i].status == KVTIER_ST_RESERVED)
			replay_data_fill(b->keys[at + i].b, b->slots[i].ptr,
					 b->o->block_bytes);
	}
}

/* Counts what became of an entry; whether what extends it can still be stored. */
static bool settle_entry(struct replay_blocks *b, size_t at, uint32_t i)
{
	struct replay_counters *c = counters(b);

	switch (b->slots[i].status) {
	case KVTIER_ST_DONE:
		count(&c->stored, 1);
		replay_seen_mark(b->seen, b->ids[at + i], b->proc);
		return true;
	case KVTIER_ST_EXISTS:
		count(&c->existing, 1);
		return true;
	default:
		count(&c->skipped, 1);
		count_refusal(b, b->slots[i].status);
		return false;
	}
}

/* Reads back what others had stored meanwhile. */
static int verify_existing(struct replay_blocks *b, size_t at, uint32_t nr,
			   const uint8_t *existing)
{
	for (uint32_t i = 0; i < nr;) {
		uint32_t run = 0;
		uint64_t ns = 0;
		int got;

		while (i + run < nr && existing[i + run])
			run++;
		if (!run) {
			i++;
			continue;
		}
		got = get_window(b, at + i, run, &ns);
		if (got < 0)
			return got;
		/* What is gone again was evicted. */
		i += got < (int)run ? run : (uint32_t)got;
	}
	return 0;
}

/*
 * Reserves up to @nr blocks from @at on; *usable: how many of them there is an
 * answer for. RESERVE waits for other fillers as long as the call has nothing
 * reserved, so what is still FILLING comes again, first in the next window.
 */
static int reserve_window(struct replay_blocks *b, size_t at, uint32_t nr,
			  uint32_t *usable, uint64_t *ns)
{
	struct kvtier_opts opts = opts_of(b, KVTIER_RESERVE_WAIT);
	uint64_t start = replay_now_ns();
	int reserved, err = 0;
	uint32_t n = 0;

	set_what(b, "RESERVE");
	reserved = kvtier_reserve(b->ns, &opts, b->keys + at,
				  at ? &b->keys[at - 1] : NULL, nr, b->slots);
	*ns += replay_now_ns() - start;
	if (reserved < 0)
		return reserved;
	while (n < nr && b->slots[n].status != KVTIER_ST_FILLING)
		n++;
	if (n < nr)
		err = kvtier_abort_slots(b->ns, b->slots + n, nr - n);
	*usable = n;
	return err < 0 ? err : 0;
}

/* Fills and publishes what is reserved among the first @nr slots. */
static int publish_window(struct replay_blocks *b, size_t at, uint32_t nr, uint64_t *ns)
{
	uint64_t start;
	int done;

	fill(b, at, nr);
	set_what(b, "COMMIT");
	start = replay_now_ns();
	done = kvtier_commit_slots(b->ns, 0, b->slots, nr);
	*ns += replay_now_ns() - start;
	return done;
}

/*
 * How many of a window are to be looked at: where there is no room beyond what has been stored of
 * it now, the rest comes again. It may have been as much as others make room for.
 */
static uint32_t settled(const struct replay_blocks *b, uint32_t nr)
{
	bool stored = false;
	uint32_t n = 0;

	for (; n < nr && (b->slots[n].status == KVTIER_ST_DONE ||
			  b->slots[n].status == KVTIER_ST_EXISTS); n++)
		stored |= b->slots[n].status == KVTIER_ST_DONE;
	return stored && n < nr && b->slots[n].status == KVTIER_ST_NOSPACE ? n : nr;
}

/*
 * Stores up to *nr blocks from @at on; *nr becomes how many are settled, *going
 * whether there is any point in going on behind them.
 */
static int store_window(struct replay_blocks *b, size_t at, uint32_t *nr, bool *going)
{
	uint8_t existing[WINDOW_MAX];
	uint32_t asked = 0;
	uint64_t ns = 0;
	int done, err;

	err = reserve_window(b, at, *nr, &asked, &ns);
	if (err)
		return err;
	*nr = asked;
	if (!asked) {
		/* Somebody fills the first of them for longer than we wait. */
		count(&counters(b)->timeouts, 1);
		*going = false;
		return 0;
	}
	done = publish_window(b, at, asked, &ns);
	if (done < 0)
		return done;
	if (done)
		replay_hist_add(&b->me->latency.put_block, ns / (uint64_t)done,
				(uint64_t)done);
	*nr = settled(b, asked);
	for (uint32_t i = 0; i < *nr; i++) {
		existing[i] = b->slots[i].status == KVTIER_ST_EXISTS;
		*going &= settle_entry(b, at, i);
	}
	/* Reservations that could not be committed. */
	set_what(b, "ABORT");
	err = kvtier_abort_slots(b->ns, b->slots, asked);
	return err < 0 ? err : verify_existing(b, at, *nr, existing);
}

static int store_rest(struct replay_blocks *b, size_t at)
{
	bool going = true;

	while (at < b->nr && going) {
		size_t left = b->nr - at;
		uint32_t nr = left < b->window ? (uint32_t)left : b->window;
		int err = store_window(b, at, &nr, &going);

		if (err)
			return err;
		at += nr;
	}
	count(&counters(b)->skipped, b->nr - at);
	return 0;
}

static int set_request(struct replay_blocks *b, uint64_t request, const uint64_t *ids,
		       size_t nr)
{
	if (nr > b->room) {
		struct kvtier_key *keys = realloc(b->keys, nr * sizeof(*keys));

		if (!keys)
			return -ENOMEM;
		b->keys = keys;
		b->room = nr;
	}
	for (size_t i = 0; i < nr; i++)
		trace_key(b->o->seed, ids[i], b->keys[i].b);
	b->request = request;
	b->ids = ids;
	b->nr = nr;
	return 0;
}

int replay_blocks_request(struct replay_blocks *b, uint64_t request,
			  const uint64_t *ids, size_t nr)
{
	size_t prefix;
	int err;

	set_what(b, "request");
	err = set_request(b, request, ids, nr);
	if (!err && nr && b->o->lookup_only) {
		err = ask_prefix(b);
	} else if (!err && nr) {
		err = read_prefix(b, &prefix);
		if (!err)
			err = store_rest(b, prefix);
	}
	if (err)
		return err;
	count(&counters(b)->requests, 1);
	return 0;
}

/* So many blocks that all processes together hold a quarter of memory at most. */
static int choose_window(struct replay_blocks *b)
{
	struct kvtier_tier_info tiers[KVTIER_TIERS_MAX] = { 0 };
	struct kvtier_query q = KVTIER_QUERY_INIT;
	uint64_t memory_bytes = 0, window, slot_bytes;
	int nr, err;

	q.tiers = (uintptr_t)tiers;
	q.nr_tiers = KVTIER_TIERS_MAX;
	err = kvtier_ns_query(b->ns, &q);
	if (err)
		return err;
	nr = (int)q.nr_tiers;
	for (int i = 0; i < nr; i++) {
		if (tiers[i].type != KVTIER_TIER_BDEV && tiers[i].type != KVTIER_TIER_PMEM)
			memory_bytes += tiers[i].capacity_bytes;
		b->tier_rank[tiers[i].id % KVTIER_TIERS_MAX] = (uint8_t)tiers[i].rank;
	}
	slot_bytes = (b->o->block_bytes + KVTIER_SLOT_ALIGN - 1) &
		     ~(uint64_t)(KVTIER_SLOT_ALIGN - 1);
	window = memory_bytes / slot_bytes / 4 / b->o->procs;
	if (window > q.batch_max)
		window = q.batch_max;
	if (window > q.leases_max / 2)
		window = q.leases_max / 2;
	if (window > WINDOW_MAX)
		window = WINDOW_MAX;
	b->window = window ? (uint32_t)window : 1;
	return 0;
}

int replay_blocks_init(struct replay_blocks *b)
{
	int err;

	set_what(b, "NS_OPEN");
	err = replay_open_ns(b->o, &b->ns);
	if (err)
		return err;
	set_what(b, "QUERY");
	err = choose_window(b);
	if (err)
		return err;
	b->slots = calloc(b->window, sizeof(*b->slots));
	b->found = calloc(b->window, sizeof(*b->found));
	return b->slots && b->found ? 0 : -ENOMEM;
}

void replay_blocks_close(struct replay_blocks *b)
{
	kvtier_ns_unref(b->ns);
	free(b->keys);
	free(b->slots);
	free(b->found);
}
