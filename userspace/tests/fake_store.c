// SPDX-License-Identifier: GPL-2.0
/*
 * A stand-in for libkvtier and the kernel below it; see fake_store.h.
 *
 * One lock over everything, every search a linear one: it is there to be right.
 * A handle is the index of the entry plus one, with the owner checked.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <kvtier/libkvtier.h>

#include "fake_store.h"

enum state { FREE, FILLING, THERE };

struct entry {
	enum state state;
	uint8_t key[KVTIER_KEY_BYTES];
	uint32_t parent_plus_1;
	uint32_t children;
	uint32_t tier;
	uint32_t leases;
	pid_t owner;		/* FILLING */
	uint64_t used_at;
};

struct store {
	pthread_mutex_t lock;
	struct fake_config config;
	struct fake_totals totals;
	struct kvtier_stat stat;
	struct kvtier_tier_stat tiers[FAKE_TIERS];
	uint32_t used[FAKE_TIERS];
	uint64_t clock, reserves, gets, commits;
	uint32_t nr;
	uint8_t *bytes;
	struct entry entries[];
};

static struct store *store;
static size_t store_bytes;

void fake_store_reset(const struct fake_config *config)
{
	pthread_mutexattr_t attr;
	uint32_t nr = 0;

	if (store)
		munmap(store, store_bytes);
	for (int t = 0; t < FAKE_TIERS; t++)
		nr += config->blocks[t];
	store_bytes = sizeof(*store) + nr * (sizeof(struct entry) + config->block_bytes);
	store = mmap(NULL, store_bytes, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (store == MAP_FAILED)
		abort();
	store->config = *config;
	store->nr = nr;
	store->bytes = (uint8_t *)(store->entries + nr);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&store->lock, &attr);
}

static void enter(void)
{
	pthread_mutex_lock(&store->lock);
}

static void leave(void)
{
	pthread_mutex_unlock(&store->lock);
}

void fake_store_totals(struct fake_totals *totals)
{
	enter();
	*totals = store->totals;
	for (uint32_t i = 0; i < store->nr; i++) {
		totals->leases += store->entries[i].leases;
		totals->reservations += store->entries[i].state == FILLING;
	}
	leave();
}

static bool nth(uint32_t every, uint64_t *count, uint64_t *injected)
{
	bool hit = every && ++*count % every == 0;

	*injected += hit;
	return hit;
}

static void *bytes_of(const struct entry *e)
{
	return store->bytes + (size_t)(e - store->entries) * store->config.block_bytes;
}

static struct entry *find(const uint8_t *key)
{
	for (uint32_t i = 0; i < store->nr; i++) {
		struct entry *e = &store->entries[i];

		if (e->state != FREE && !memcmp(e->key, key, KVTIER_KEY_BYTES))
			return e;
	}
	return NULL;
}

static void drop_entry(struct entry *e)
{
	if (e->parent_plus_1)
		store->entries[e->parent_plus_1 - 1].children--;
	store->used[e->tier]--;
	memset(bytes_of(e), 0xdd, store->config.block_bytes);
	memset(e, 0, sizeof(*e));
}

/* Makes room for one block in a tier, pushing others down and out. */
static bool make_room(uint32_t tier)
{
	bool last = tier == FAKE_TIERS - 1;
	struct entry *victim = NULL;

	if (store->used[tier] < store->config.blocks[tier])
		return true;
	for (uint32_t i = 0; i < store->nr; i++) {
		struct entry *e = &store->entries[i];

		if (e->state != THERE || e->tier != tier || e->leases)
			continue;
		if (last && e->children)
			continue;
		if (!victim || e->used_at < victim->used_at)
			victim = e;
	}
	if (!victim)
		return false;
	if (last) {
		store->tiers[tier].evictions++;
		store->stat.evictions++;
		drop_entry(victim);
		return true;
	}
	if (!make_room(tier + 1))
		return false;
	victim->tier = tier + 1;
	store->used[tier]--;
	store->used[tier + 1]++;
	store->tiers[tier].demotions_out++;
	store->tiers[tier + 1].demotions_in++;
	store->stat.demotions++;
	return true;
}

static bool move_up(struct entry *e)
{
	bool room;

	if (e->tier < FAKE_TIERS - 1)
		return true;
	e->leases++;	/* so that making room does not take it */
	room = make_room(0);
	e->leases--;
	if (!room)
		return false;
	store->used[e->tier]--;
	store->tiers[e->tier].promotions_out++;
	store->tiers[0].promotions_in++;
	store->tiers[0].dma_bytes += store->config.block_bytes;
	store->stat.promotions++;
	e->tier = 0;
	store->used[0]++;
	return true;
}

/* --- Opening and counters -------------------------------------------------- */

struct kvtier_pool {
	int unused;
};

struct kvtier_ns {
	int unused;
};

static struct kvtier_pool the_pool;
static struct kvtier_ns the_ns;

int kvtier_pool_open(uint32_t pool_id, struct kvtier_pool **out)
{
	*out = &the_pool;
	return pool_id ? -ENOENT : 0;
}

void kvtier_pool_unref(struct kvtier_pool *pool)
{
	(void)pool;
}

int kvtier_ns_open(struct kvtier_pool *pool, const struct kvtier_ns_params *params,
		   struct kvtier_ns **out)
{
	(void)pool;
	*out = &the_ns;
	return params->block_bytes[0] == store->config.block_bytes ? 0 : -EINVAL;
}

/* What close(2) of the open file would do. */
void kvtier_ns_unref(struct kvtier_ns *ns)
{
	if (!ns)
		return;
	enter();
	for (uint32_t i = 0; i < store->nr; i++) {
		struct entry *e = &store->entries[i];

		if (e->state == FILLING && e->owner == getpid() && !e->children)
			drop_entry(e);
	}
	leave();
}

const char *kvtier_tier_type_name(uint32_t type)
{
	return type == KVTIER_TIER_BDEV ? "bdev" : "dram";
}

int kvtier_pool_tiers(struct kvtier_pool *pool, struct kvtier_tier_info *tiers)
{
	static const char * const names[FAKE_TIERS] = { "dram", "cxl", "nvme" };

	(void)pool;
	enter();
	memset(tiers, 0, FAKE_TIERS * sizeof(*tiers));
	for (uint32_t t = 0; t < FAKE_TIERS; t++) {
		tiers[t].id = t;
		tiers[t].rank = 10 * t;
		tiers[t].type = t == 2 ? KVTIER_TIER_BDEV : KVTIER_TIER_DRAM;
		tiers[t].state = KVTIER_TIER_ONLINE;
		tiers[t].capacity_bytes = store->config.blocks[t] *
					  store->config.block_bytes;
		tiers[t].used_bytes = store->used[t] * store->config.block_bytes;
		tiers[t].nr_blocks = store->used[t];
		strcpy(tiers[t].name, names[t]);
	}
	leave();
	return FAKE_TIERS;
}

int kvtier_ns_query(struct kvtier_ns *ns, struct kvtier_query *q)
{
	(void)ns;
	q->batch_max = KVTIER_BATCH_MAX;
	q->leases_max = 1 << 20;
	q->nr_tiers = (uint32_t)kvtier_pool_tiers(NULL,
				(struct kvtier_tier_info *)(uintptr_t)q->tiers);
	return 0;
}

int kvtier_pool_stat(struct kvtier_pool *pool, struct kvtier_stat *st,
		     struct kvtier_tier_stat *tiers)
{
	(void)pool;
	if (store->config.unprivileged)
		return -EPERM;
	enter();
	*st = store->stat;
	memcpy(tiers, store->tiers, sizeof(store->tiers));
	for (uint32_t t = 0; t < FAKE_TIERS; t++)
		tiers[t].id = t;
	leave();
	return FAKE_TIERS;
}

/* --- Data ------------------------------------------------------------------ */

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Waits, without the lock, until nobody fills the block; false: too long. */
static bool wait_for_filler(const uint8_t *key, uint64_t deadline_ms)
{
	store->totals.waits++;
	while (now_ms() < deadline_ms) {
		struct entry *e = find(key);

		if (!e || e->state != FILLING)
			return true;
		leave();
		usleep(200);
		enter();
	}
	return false;
}

int kvtier_lookup(struct kvtier_ns *ns, const struct kvtier_opts *opts,
		  const struct kvtier_key *keys, uint32_t nr,
		  struct kvtier_lookup_result *results, uint64_t *cost_ns)
{
	int prefix = 0;

	(void)ns;
	(void)opts;
	(void)cost_ns;
	enter();
	for (uint32_t i = 0; i < nr; i++) {
		const struct entry *e = find(keys[i].b);

		results[i].status = !e ? KVTIER_ST_MISS : e->state == THERE ?
				    KVTIER_ST_HIT : KVTIER_ST_FILLING;
		results[i].tier = e ? e->tier : 0;
		if (prefix == (int)i && results[i].status == KVTIER_ST_HIT)
			prefix++;
	}
	leave();
	return prefix;
}

static int lease_prefix(const struct kvtier_key *keys, uint32_t nr,
			struct kvtier_slot *slots)
{
	for (uint32_t i = 0; i < nr; i++) {
		struct entry *e = find(keys[i].b);

		if (e && e->state == FILLING) {
			slots[i].status = KVTIER_ST_FILLING;
			return (int)i;
		}
		slots[i].status = !e ? KVTIER_ST_MISS : KVTIER_ST_NOSPACE;
		if (!e || !move_up(e))
			return (int)i;
		e->leases++;
		e->used_at = ++store->clock;
		slots[i] = (struct kvtier_slot) {
			.status = KVTIER_ST_HIT,
			.tier = e->tier,
			.handle = (uint64_t)(e - store->entries) + 1,
			.ptr = bytes_of(e),
		};
	}
	return (int)nr;
}

int kvtier_get(struct kvtier_ns *ns, const struct kvtier_opts *opts,
	       const struct kvtier_key *keys, uint32_t nr, struct kvtier_slot *slots)
{
	static uint64_t partial;
	int got;

	(void)ns;
	(void)opts;
	for (uint32_t i = 0; i < nr; i++)
		slots[i] = (struct kvtier_slot) { .status = KVTIER_ST_SKIPPED };
	enter();
	if (nth(store->config.get_no_space_every, &store->gets,
		&store->totals.get_no_space)) {
		slots[0].status = KVTIER_ST_NOSPACE;
		leave();
		return 0;
	}
	if (nr > 1 && nth(store->config.partial_get_every, &partial,
			  &store->totals.partial_gets))
		nr = 1;
	got = lease_prefix(keys, nr, slots);
	leave();
	return got;
}

int kvtier_release_slots(struct kvtier_ns *ns, struct kvtier_slot *slots, uint32_t nr)
{
	int done = 0;

	(void)ns;
	enter();
	for (uint32_t i = 0; i < nr; i++) {
		struct entry *e = &store->entries[slots[i].handle - 1];

		if (slots[i].status != KVTIER_ST_HIT || !slots[i].handle)
			continue;
		if (!e->leases)
			abort();
		e->leases--;
		slots[i].handle = 0;
		done++;
	}
	leave();
	return done;
}

static void reserve_one(const uint8_t *key, const uint8_t *parent,
			bool wait, struct kvtier_slot *slot, uint64_t deadline_ms)
{
	struct entry *e = find(key), *up;

	if (wait && e && e->state == FILLING && e->owner != getpid() &&
	    wait_for_filler(key, deadline_ms))
		e = find(key);
	if (e) {
		slot->status = e->state == THERE ? KVTIER_ST_EXISTS : KVTIER_ST_FILLING;
		return;
	}
	up = parent ? find(parent) : NULL;
	if (parent && !up) {
		slot->status = KVTIER_ST_NOPARENT;
		return;
	}
	slot->status = KVTIER_ST_NOSPACE;
	if (nth(store->config.no_space_every, &store->reserves,
		&store->totals.no_space))
		return;
	if (up)
		up->children++;	/* and so it stays */
	if (!make_room(0)) {
		if (up)
			up->children--;
		return;
	}
	for (e = store->entries; e->state != FREE; e++)
		;
	e->state = FILLING;
	e->owner = getpid();
	e->tier = 0;
	e->parent_plus_1 = up ? (uint32_t)(up - store->entries) + 1 : 0;
	memcpy(e->key, key, KVTIER_KEY_BYTES);
	store->used[0]++;
	slot->status = KVTIER_ST_RESERVED;
	slot->handle = (uint64_t)(e - store->entries) + 1;
	slot->ptr = bytes_of(e);
}

int kvtier_reserve(struct kvtier_ns *ns, const struct kvtier_opts *opts,
		   const struct kvtier_key *keys, const struct kvtier_key *parents,
		   uint32_t nr, struct kvtier_slot *slots)
{
	uint64_t deadline_ms = now_ms() + opts->timeout_ns / 1000000;
	int reserved = 0;

	(void)ns;
	memset(slots, 0, nr * sizeof(*slots));
	enter();
	for (uint32_t i = 0; i < nr; i++) {
		reserve_one(keys[i].b, i ? keys[i - 1].b : parents ? parents->b : NULL,
			    !reserved, &slots[i], deadline_ms);
		reserved += slots[i].status == KVTIER_ST_RESERVED;
	}
	leave();
	return reserved;
}

static void publish(struct entry *e)
{
	static uint64_t corrupt;

	e->state = THERE;
	e->used_at = ++store->clock;
	store->totals.puts++;
	if (nth(store->config.corrupt_every, &corrupt, &store->totals.corrupted))
		((uint8_t *)bytes_of(e))[store->config.block_bytes / 2] ^= 0x40;
}

int kvtier_commit_slots(struct kvtier_ns *ns, uint32_t flags,
			struct kvtier_slot *slots, uint32_t nr)
{
	int done = 0;

	(void)ns;
	(void)flags;
	if (store->config.slow_commit)
		usleep(1000);
	enter();
	store->commits++;
	if (store->commits == store->config.kill_at) {
		store->totals.killed++;
		leave();
		raise(SIGKILL);
	}
	if (store->commits == store->config.refuse_at) {
		store->totals.refused++;
		leave();
		return -EIO;
	}
	for (uint32_t i = 0; i < nr; i++) {
		struct entry *e, *up;

		if (slots[i].status != KVTIER_ST_RESERVED)
			continue;
		e = &store->entries[slots[i].handle - 1];
		up = e->parent_plus_1 ? &store->entries[e->parent_plus_1 - 1] : NULL;
		if (up && up->state != THERE) {
			slots[i].status = KVTIER_ST_NOPARENT;
			continue;
		}
		publish(e);
		slots[i] = (struct kvtier_slot) { .status = KVTIER_ST_DONE };
		done++;
	}
	leave();
	return done;
}

int kvtier_abort_slots(struct kvtier_ns *ns, struct kvtier_slot *slots, uint32_t nr)
{
	int done = 0;

	(void)ns;
	enter();
	for (uint32_t i = nr; i-- > 0;) {
		if (!slots[i].handle)
			continue;
		drop_entry(&store->entries[slots[i].handle - 1]);
		slots[i].handle = 0;
		done++;
	}
	leave();
	return done;
}
