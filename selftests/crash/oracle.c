// SPDX-License-Identifier: GPL-2.0
/*
 * The journal, read. See crash.h for its lines.
 *
 * The newest version is the only one that may be found: an older one was dropped, or was
 * not there after an earlier crash, and what recovery has not found does not come back. Of
 * a loose block older ones may, down to the one that was dropped: an eviction does not wait
 * for the media.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "crash.h"

#define SHOWN	10u

struct oracle *oracle_new(void)
{
	struct oracle *o = calloc(1, sizeof(*o));

	if (!o)
		abort();
	return o;
}

void oracle_free(struct oracle *o)
{
	uint32_t ns;

	for (ns = 0; ns < o->nr_ns; ns++)
		free(o->ns[ns]);
	free(o);
}

static bool add_ns(struct oracle *o, uint32_t ns, const char *quota)
{
	char *end;

	if (ns >= NS_MAX || *quota++ != ' ')
		return false;
	o->quota[ns] = strtoull(quota, &end, 10);
	if (end == quota || *end)
		return false;
	if (!o->ns[ns])
		o->ns[ns] = calloc(ns_blocks(ns), sizeof(*o->ns[ns]));
	if (!o->ns[ns])
		abort();
	if (ns >= o->nr_ns)
		o->nr_ns = ns + 1;
	return true;
}

static void set_blocks(struct oracle *o, char what, struct ora_block *b, uint32_t nr,
		       uint32_t version)
{
	uint32_t i;

	if (what == 'P' && version > o->version)
		o->version = version;
	for (i = 0; i < nr; i++) {
		b[i].must = 0;
		if (what == 'P')
			b[i].newest = version;
		else if (what == 'd')
			b[i].floor = b[i].newest;
	}
}

static bool durable(struct ora_block *b, uint32_t nr, const char *list)
{
	unsigned long index;
	char *end;

	for (; *list; list = end) {
		index = strtoul(list, &end, 10);
		if (end == list || index >= nr || !b[index].newest)
			return false;
		b[index].must = b[index].newest;
	}
	return true;
}

static bool read_line(struct oracle *o, const char *line)
{
	uint32_t ns, first, nr, version = 0;
	int at = 0, got;
	char what;

	if (sscanf(line, "%c %u%n", &what, &ns, &at) != 2)
		return false;
	if (what == 'O')
		return add_ns(o, ns, line + at);
	if (ns >= NS_MAX || !o->ns[ns])
		return false;
	if (what == 'S')
		return !ns_loose(ns) && durable(o->ns[ns], ns_blocks(ns), line + at);
	got = sscanf(line + at, " %u %u %u", &first, &nr, &version);
	if (got != (what == 'P' ? 3 : 2) || !memchr("PDdG", what, 4) ||
	    first >= ns_blocks(ns) || nr > ns_blocks(ns) - first)
		return false;
	set_blocks(o, what, o->ns[ns] + first, nr, version);
	return true;
}

bool oracle_line(struct oracle *o, const char *line)
{
	if (read_line(o, line))
		return true;
	printf("# not a line of a journal: '%s'\n", line);
	return false;
}

int oracle_file(struct oracle *o, const char *path)
{
	char line[LINE_MAX_BYTES + 2];
	FILE *f = fopen(path, "r");
	int err = 0;

	if (!f)
		return -errno;
	while (!err && fgets(line, sizeof(line), f)) {
		size_t len = strlen(line);

		/* The load was killed before it was told that the line is there. */
		if (line[len - 1] != '\n')
			break;
		line[len - 1] = 0;
		if (!oracle_line(o, line))
			err = -EBADMSG;
	}
	fclose(f);
	return err;
}

void oracle_error(struct oracle *o, const char *fmt, ...)
{
	va_list args;

	if (o->nr_errors++ >= SHOWN)
		return;
	printf("# ");
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
}

void oracle_check_start(struct oracle *o)
{
	uint32_t ns, i;

	o->nr_errors = 0;
	o->nr_found = 0;
	o->nr_must = 0;
	o->nr_gone = 0;
	o->nr_away = 0;
	o->nr_left = 0;
	o->nr_excused = 0;
	for (ns = 0; ns < o->nr_ns; ns++)
		for (i = 0; o->ns[ns] && i < ns_blocks(ns); i++)
			o->ns[ns][i].found = false;
}

void oracle_found(struct oracle *o, uint32_t ns, uint32_t index, const void *from)
{
	uint32_t version = block_version(from, ns, index);
	struct ora_block *b;

	o->nr_found++;
	if (ns >= NS_MAX || !o->ns[ns]) {
		oracle_error(o, "block %u of namespace %u, which was never made", index, ns);
		return;
	}
	b = &o->ns[ns][index];
	if (b->found)
		oracle_error(o, "block %u.%u is there twice", ns, index);
	b->found = true;
	if (!version)
		oracle_error(o, "block %u.%u has wrong bytes", ns, index);
	else if (version <= b->floor)
		oracle_error(o, "block %u.%u: version %u was dropped and comes back", ns, index,
			     version);
	else if (ns_loose(ns) ? version > b->newest : version != b->newest)
		oracle_error(o, "block %u.%u: version %u comes back, put last was %u", ns, index,
			     version, b->newest);
}

bool oracle_check_end(struct oracle *o)
{
	const struct ora_block *b;
	uint32_t ns, i;

	for (ns = 0; ns < o->nr_ns; ns++) {
		for (i = 0; o->ns[ns] && i < ns_blocks(ns); i++) {
			b = &o->ns[ns][i];
			o->nr_must += !!b->must;
			o->nr_gone += b->floor && b->floor == b->newest && !b->found;
			o->nr_away += ns_loose(ns) && b->floor != b->newest && !b->found;
			if (!b->must || b->found)
				continue;
			if (o->nr_excused < o->nr_left)
				o->nr_excused++;
			else
				oracle_error(o, "block %u.%u: version %u was durable and is lost",
					     ns, i, b->must);
		}
	}
	if (o->nr_errors > SHOWN)
		printf("# and %u more\n", o->nr_errors - SHOWN);
	return !o->nr_errors;
}
