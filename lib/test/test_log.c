// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What the log function may count on: it can call the library, on the handle whose
 * call it is told of, too. A lock that is held then would be waited for without end, so
 * it is tried.
 */
#include <pthread.h>
#include <string.h>
#include "internal.h"
#include "mock.h"
#include "test_log.h"

#define BLOCK	(40 * 1024ULL)
#define HUGE	(2ULL << 20)

struct listener {
	struct kvtier_ns *ns;	/* NULL: not yet */
	unsigned int told;
	unsigned int locked;
};

static void listen(void *data, int level, const char *text)
{
	struct listener *l = data;

	(void)level;
	(void)text;
	if (!l->ns)
		return;
	l->told++;
	if (pthread_mutex_trylock(&l->ns->views.lock))
		l->locked++;
	else
		pthread_mutex_unlock(&l->ns->views.lock);
}

static bool open_listening(struct listener *l)
{
	static const uint64_t sizes[] = { BLOCK };
	struct kvtier_ns_params p = KVTIER_NS_PARAMS_INIT;
	struct kvtier_pool *pool = NULL;
	bool ok;

	p.flags = KVTIER_NS_CREATE;
	p.identity = "listener";
	p.identity_len = strlen(p.identity);
	p.block_bytes = sizes;
	p.nr_groups = 1;
	p.min_bytes = 4 * HUGE;
	if (kvtier_pool_open(0, &pool))
		return false;
	kvtier_pool_set_log(pool, listen, l);
	ok = !kvtier_ns_open(pool, &p, &l->ns);
	kvtier_pool_unref(pool);
	return ok;
}

static bool heard(struct listener *l, unsigned int nr)
{
	bool ok = l->told == nr && !l->locked;

	l->told = 0;
	return ok;
}

bool test_log_unlocked(void)
{
	struct kvtier_key key = { .b = { 1 } };
	struct kvtier_arena_view *arena;
	struct listener l = { .ns = NULL };
	struct kvtier_slot slot;
	bool ok = open_listening(&l);

	/* One mapping that fails, one for each view, and one for an arena. */
	mock.fail_maps = 1;
	ok = ok && kvtier_reserve(l.ns, NULL, &key, NULL, 1, &slot) < 0 && heard(&l, 1);
	ok = ok && kvtier_reserve(l.ns, NULL, &key, NULL, 1, &slot) == 1 && heard(&l, 1);
	ok = ok && kvtier_commit_slots(l.ns, 0, &slot, 1) == 1 && heard(&l, 0);
	ok = ok && kvtier_get(l.ns, NULL, &key, 1, &slot) == 1 && heard(&l, 1);
	ok = ok && !kvtier_arena_open(l.ns, 0, 10, &arena) && heard(&l, 1);
	kvtier_ns_unref(l.ns);
	return ok;
}
