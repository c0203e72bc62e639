// SPDX-License-Identifier: GPL-2.0
/*
 * A pool that has been assembled, against the journal: every block of every namespace is
 * read, and there are no others.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "crash.h"

#define PAGE		256u
#define BATCH		32u
#define WAIT_NS		30000000000ull
#define TRIES		20u	/* when memory is short */

struct verify {
	struct oracle *o;
	struct kvtier_pool *pool;
	uint32_t number;
	char **journals;
};

/* What is read may leave the media. The journal of who made the namespace is told. */
static bool say_up(const struct verify *v, uint32_t ns)
{
	uint32_t at = ns % WORKERS_MAX;
	char line[LINE_MAX_BYTES];
	int fd, len;
	bool ok;

	if (!v->journals)
		return true;
	fd = open(v->journals[at], O_WRONLY | O_APPEND | O_CLOEXEC);
	len = snprintf(line, sizeof(line), "G %u 0 %u\n", ns, ns_blocks(ns));
	ok = fd >= 0 && write(fd, line, len) == len;
	if (fd >= 0)
		close(fd);
	return ok;
}

/* Whose block it is; false: it is not one of that namespace, or not as it was put. */
static bool known_entry(const struct verify *v, uint32_t ns, const struct kvtier_entry *e,
			uint32_t *index)
{
	struct kvtier_key parent, none = { { 0 } };
	uint32_t of;

	if (!read_key(e->key, &of, index) || of != ns || e->group != group_of(*index)) {
		oracle_error(v->o, "namespace %u has a block that is not its own", ns);
		return false;
	}
	make_key(&parent, ns, *index - 1);
	if (memcmp(e->parent, none.b, sizeof(none.b)) &&
	    (*index % CHAIN == 0 || memcmp(e->parent, parent.b, sizeof(parent.b))))
		oracle_error(v->o, "block %u.%u has a wrong parent", ns, *index);
	return true;
}

/*
 * So that no read of another one pushes them out. Of loose ones there are more than may be
 * pinned.
 */
static void pin_some(const struct verify *v, struct kvtier_ns *h, uint32_t ns,
		     const struct kvtier_opts *o, const struct kvtier_key *keys, uint32_t nr)
{
	int32_t results[BATCH];
	uint32_t i;

	if (ns_loose(ns))
		return;
	if (kvtier_advise(h, o, KVTIER_ADV_PIN, 0, keys, nr, results) < 0) {
		oracle_error(v->o, "blocks of namespace %u cannot be pinned", ns);
		return;
	}
	for (i = 0; i < nr; i++)
		if (results[i] != KVTIER_ST_DONE && results[i] != KVTIER_ST_MISS)
			oracle_error(v->o, "a block of namespace %u cannot be pinned: %s", ns,
				     kvtier_status_name(results[i]));
}

/* Get blocks of one group, as many as can be had at a time. */
static void check_some(const struct verify *v, struct kvtier_ns *h, uint32_t ns,
		       const uint32_t *index, uint32_t nr)
{
	struct kvtier_opts o = KVTIER_OPTS_INIT;
	struct kvtier_slot slots[BATCH];
	struct kvtier_key keys[BATCH] = { 0 };
	uint32_t at, i, tries = 0;
	int got, status;

	for (i = 0; i < nr; i++)
		make_key(&keys[i], ns, index[i]);
	o.group = group_of(index[0]);
	pin_some(v, h, ns, &o, keys, nr);
	o.flags = KVTIER_GET_WAIT;
	o.timeout_ns = WAIT_NS;
	for (at = 0; at < nr; at += got) {
		got = kvtier_get(h, &o, keys + at, nr - at, slots);
		for (i = 0; got > 0 && i < (uint32_t)got; i++)
			oracle_found(v->o, ns, index[at + i], slots[i].ptr);
		if (got > 0)
			kvtier_release_slots(h, slots, got);
		status = got ? KVTIER_ST_HIT : slots[0].status;
		if (got > 0 || (status == KVTIER_ST_NOSPACE && tries++ < TRIES))
			continue;
		/* It may have had to go meanwhile, which is counted. */
		if (status != KVTIER_ST_MISS)
			oracle_error(v->o, "block %u.%u is listed and cannot be had: %s", ns,
				     index[at], got ? strerror(-got) : kvtier_status_name(status));
		got = 1;
	}
}

/* ITERATE may miss what moves while it goes on, so everything is listed before. */
static struct kvtier_entry *list_blocks(const struct verify *v, struct kvtier_ns *h, int *sum)
{
	struct kvtier_entry *all = NULL;
	uint64_t cursor = 0;
	int nr;

	*sum = 0;
	do {
		all = realloc(all, (*sum + PAGE) * sizeof(*all));
		if (!all)
			abort();
		nr = kvtier_iterate(h, &cursor, all + *sum, PAGE);
		if (nr < 0)
			oracle_error(v->o, "iterate: %s", strerror(-nr));
		else
			*sum += nr;
	} while (nr >= 0 && cursor);
	return all;
}

static void check_blocks(const struct verify *v, struct kvtier_ns *h, uint32_t ns)
{
	uint32_t index[NR_GROUPS][BATCH], nr[NR_GROUPS] = { 0 }, g, x;
	struct kvtier_entry *all;
	int i, sum;

	all = list_blocks(v, h, &sum);
	for (i = 0; i < sum; i++) {
		if (!known_entry(v, ns, &all[i], &x))
			continue;
		g = group_of(x);
		index[g][nr[g]++] = x;
		if (nr[g] < BATCH)
			continue;
		check_some(v, h, ns, index[g], BATCH);
		nr[g] = 0;
	}
	for (g = 0; g < NR_GROUPS; g++)
		if (nr[g])
			check_some(v, h, ns, index[g], nr[g]);
	free(all);
}

static void check_quota(const struct verify *v, struct kvtier_ns *h, uint32_t ns)
{
	unsigned long long quota;
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/kvtier/kvtier%u/namespaces/%llu/quota_bytes",
		 v->number, (unsigned long long)kvtier_ns_id(h));
	f = fopen(path, "r");
	if (!f || fscanf(f, "%llu", &quota) != 1)
		oracle_error(v->o, "%s: %s", path, strerror(errno));
	else if (quota != v->o->quota[ns])
		oracle_error(v->o, "namespace %u has a quota of %llu instead of %llu", ns, quota,
			     (unsigned long long)v->o->quota[ns]);
	if (f)
		fclose(f);
}

static void check_ns(const struct verify *v, uint32_t ns)
{
	struct kvtier_ns *h;
	int err = open_ns(v->pool, ns, 0, false, &h);

	if (!err) {
		oracle_error(v->o, "namespace %u opens with a wrong secret", ns);
		kvtier_ns_unref(h);
	}
	err = open_ns(v->pool, ns, 0, true, &h);
	if (err == -ENOENT)
		return;
	if (err) {
		oracle_error(v->o, "namespace %u: %s", ns, strerror(-err));
		return;
	}
	check_quota(v, h, ns);
	if (!say_up(v, ns))
		oracle_error(v->o, "the journal cannot be written");
	check_blocks(v, h, ns);
	kvtier_ns_unref(h);
}

/*
 * All that it came up with was found, but for what has left since: with few segments free
 * the driver begins to make room at once, and pins are forgotten by then.
 */
static void check_number(const struct verify *v, uint64_t blocks)
{
	struct kvtier_stat st = KVTIER_STAT_INIT;
	int err = kvtier_pool_stat(v->pool, &st, NULL);

	if (err < 0) {
		oracle_error(v->o, "stat: %s", strerror(-err));
		return;
	}
	v->o->nr_left = (uint32_t)st.evictions;
	if (v->o->nr_found > blocks || v->o->nr_found + st.evictions < blocks)
		oracle_error(v->o, "the pool was assembled with %llu blocks, and has %u; %llu were evicted",
			     (unsigned long long)blocks, v->o->nr_found,
			     (unsigned long long)st.evictions);
}

bool verify_blocks(uint32_t pool, uint64_t blocks, struct oracle *o, char **journals)
{
	struct verify v = { .o = o, .number = pool, .journals = journals };
	int err = kvtier_pool_open(pool, &v.pool);
	uint32_t ns;
	bool ok;

	if (err) {
		printf("# pool %u: %s\n", pool, strerror(-err));
		return false;
	}
	oracle_check_start(o);
	for (ns = 0; ns < o->nr_ns; ns++)
		if (o->ns[ns])
			check_ns(&v, ns);
	check_number(&v, blocks);
	ok = oracle_check_end(o);
	kvtier_pool_unref(v.pool);
	return ok;
}

int verify_pool(uint32_t pool, uint64_t blocks, char **journals, int nr)
{
	struct oracle *o = oracle_new();
	int i, err;
	bool ok;

	for (i = 0; i < nr; i++) {
		err = oracle_file(o, journals[i]);
		if (err) {
			printf("# %s: %s\n", journals[i], strerror(-err));
			return 1;
		}
	}
	ok = verify_blocks(pool, blocks, o, nr > 1 ? journals : NULL);
	printf("# %u blocks there, %u had to be, %u were dropped and are not, %u may have gone and have; %u left since\n",
	       o->nr_found, o->nr_must, o->nr_gone, o->nr_away, o->nr_left);
	oracle_free(o);
	return !ok;
}
