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
#define WAIT_NS		30000000000ull
#define TRIES		20u	/* when memory is short */

struct verify {
	struct oracle *o;
	struct kvtier_pool *pool;
	char **journals;
	int nr_journals;
};

/* What is read may leave the media. The journal of who made the namespace is told. */
static bool say_up(const struct verify *v, uint32_t ns)
{
	uint32_t at = ns % WORKERS_MAX;
	char line[LINE_MAX_BYTES];
	int fd, len;
	bool ok;

	if (v->nr_journals == 1)
		return true;
	fd = open(v->journals[at], O_WRONLY | O_APPEND | O_CLOEXEC);
	len = snprintf(line, sizeof(line), "G %u 0 %u\n", ns, ns_blocks(ns));
	ok = fd >= 0 && write(fd, line, len) == len;
	if (fd >= 0)
		close(fd);
	return ok;
}

static void check_block(const struct verify *v, struct kvtier_ns *h, uint32_t ns,
			const struct kvtier_entry *e)
{
	struct kvtier_opts o = KVTIER_OPTS_INIT;
	struct kvtier_key key, parent, none = { { 0 } };
	struct kvtier_slot slot;
	uint32_t of, index, tries = 0;
	int got;

	if (!read_key(e->key, &of, &index) || of != ns || e->group != group_of(index)) {
		oracle_error(v->o, "namespace %u has a block that is not its own", ns);
		return;
	}
	make_key(&parent, ns, index - 1);
	if (memcmp(e->parent, none.b, sizeof(none.b)) &&
	    (index % CHAIN == 0 || memcmp(e->parent, parent.b, sizeof(parent.b))))
		oracle_error(v->o, "block %u.%u has a wrong parent", ns, index);
	make_key(&key, ns, index);
	o.group = e->group;
	/* So that no read of another one pushes it out. */
	if (kvtier_advise(h, &o, KVTIER_ADV_PIN, 0, &key, 1, NULL) != 1)
		oracle_error(v->o, "block %u.%u cannot be pinned", ns, index);
	o.flags = KVTIER_GET_WAIT;
	o.timeout_ns = WAIT_NS;
	do {
		got = kvtier_get(h, &o, &key, 1, &slot);
	} while (!got && slot.status == KVTIER_ST_NOSPACE && tries++ < TRIES);
	if (got != 1) {
		oracle_error(v->o, "block %u.%u is listed and cannot be had: %s", ns, index,
			     kvtier_status_name(slot.status));
		return;
	}
	oracle_found(v->o, ns, index, slot.ptr);
	kvtier_release_slots(h, &slot, 1);
}

/* ITERATE may miss what moves while it goes on, so everything is listed before. */
static int check_blocks(const struct verify *v, struct kvtier_ns *h, uint32_t ns)
{
	struct kvtier_entry *all = NULL;
	uint64_t cursor = 0;
	int i, nr, sum = 0;

	do {
		all = realloc(all, (sum + PAGE) * sizeof(*all));
		if (!all)
			abort();
		nr = kvtier_iterate(h, &cursor, all + sum, PAGE);
		if (nr < 0)
			oracle_error(v->o, "iterate: %s", strerror(-nr));
		else
			sum += nr;
	} while (nr >= 0 && cursor);
	for (i = 0; i < sum; i++)
		check_block(v, h, ns, &all[i]);
	free(all);
	return sum;
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
	if (!say_up(v, ns))
		oracle_error(v->o, "the journal cannot be written");
	check_blocks(v, h, ns);
	kvtier_ns_unref(h);
}

int verify_pool(uint32_t pool, uint64_t blocks, char **journals, int nr)
{
	struct verify v = { .journals = journals, .nr_journals = nr };
	uint32_t ns;
	int i, err;
	bool ok;

	v.o = oracle_new();
	for (i = 0; i < nr; i++) {
		err = oracle_file(v.o, journals[i]);
		if (err) {
			printf("# %s: %s\n", journals[i], strerror(-err));
			return 1;
		}
	}
	err = kvtier_pool_open(pool, &v.pool);
	if (err) {
		printf("# pool %u: %s\n", pool, strerror(-err));
		return 1;
	}
	oracle_check_start(v.o);
	for (ns = 0; ns < v.o->nr_ns; ns++)
		if (v.o->ns[ns])
			check_ns(&v, ns);
	if (v.o->nr_found != blocks)
		oracle_error(v.o, "the pool was assembled with %llu blocks, and has %u",
			     (unsigned long long)blocks, v.o->nr_found);
	ok = oracle_check_end(v.o);
	printf("# %u blocks there, %u had to be, %u were dropped and are not\n", v.o->nr_found,
	       v.o->nr_must, v.o->nr_gone);
	kvtier_pool_unref(v.pool);
	oracle_free(v.o);
	return !ok;
}
