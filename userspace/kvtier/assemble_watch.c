// SPDX-License-Identifier: GPL-2.0
/*
 * Progress of an assembly; see assemble_watch.h.
 *
 * sysfs has a line for each pool that is being assembled, by number, and which number is
 * ours is not known before the kernel has answered. So those that were at it before are
 * left out, and what is shown has the number of the pool that it is about.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "assemble_watch.h"
#include "cmd.h"
#include "sysfs.h"

#define FILE_MAX	4096	/* as much as sysfs gives */
#define LOOK_MS		300	/* what takes no longer shows nothing */

/* See Documentation/ABI: a pool, segments read, segments to be read. */
struct under_way {
	uint32_t id;
	uint64_t done, all;
};

/* The next line of @text, which is moved behind it; false: there is none. */
static bool next_line(const char **text, struct under_way *u)
{
	int len = 0;

	if (sscanf(*text, "%" SCNu32 " %" SCNu64 " %" SCNu64 "%n", &u->id, &u->done, &u->all,
		   &len) != 3 || u->id >= ASSEMBLE_WATCH_IDS)
		return false;
	*text += len;
	return true;
}

/* The one to be shown. Numbers of others that have ended are free again, maybe for us. */
static bool find(struct assemble_watch *w, struct under_way *found)
{
	bool seen[ASSEMBLE_WATCH_IDS] = { false }, any = false;
	char buf[FILE_MAX];
	const char *at = buf;
	struct under_way u;
	uint32_t i;

	if (sysfs_read_all(buf, sizeof(buf), "class/kvtier/assembling"))
		return false;
	while (next_line(&at, &u)) {
		seen[u.id] = true;
		if (any || w->others[u.id] || (w->id != KVTIER_POOL_ANY_ID && w->id != u.id))
			continue;
		*found = u;
		any = true;
	}
	for (i = 0; i < ASSEMBLE_WATCH_IDS; i++)
		w->others[i] &= seen[i];
	return any;
}

static void find_others(struct assemble_watch *w)
{
	char buf[FILE_MAX];
	const char *at = buf;
	struct under_way u;

	memset(w->others, 0, sizeof(w->others));
	if (sysfs_read_all(buf, sizeof(buf), "class/kvtier/assembling"))
		return;
	while (next_line(&at, &u))
		w->others[u.id] = true;
}

static void show(const struct under_way *u)
{
	fprintf(stderr, "\rkvtier: assembling pool %" PRIu32 ": ", u->id);
	if (!u->all)
		fputs("looking at its members", stderr);
	else if (u->done >= u->all)
		fputs("all is read, and put together", stderr);
	else
		fprintf(stderr, "%" PRIu64 " of %" PRIu64 " segments read, %" PRIu64 "%%",
			u->done, u->all, 100 * u->done / u->all);
	fputs("\033[K", stderr);
	fflush(stderr);
}

static void *watch(void *arg)
{
	struct assemble_watch *w = arg;
	struct pollfd stop = { .fd = w->stop, .events = POLLIN };
	struct under_way u;
	bool shown = false;
	int ret;

	while (!(ret = poll(&stop, 1, LOOK_MS)) || (ret < 0 && errno == EINTR)) {
		if (ret || !find(w, &u))
			continue;
		show(&u);
		shown = true;
	}
	if (shown) {
		fputs("\r\033[K", stderr);
		fflush(stderr);
	}
	return NULL;
}

void assemble_watch_begin(struct assemble_watch *w, uint32_t id)
{
	w->stop = -1;
	/* What the library says would end up on the same line. */
	if (opt.json || opt.verbose || !isatty(STDERR_FILENO))
		return;
	w->id = id;
	find_others(w);
	w->stop = eventfd(0, EFD_CLOEXEC);
	if (w->stop >= 0 && pthread_create(&w->thread, NULL, watch, w)) {
		close(w->stop);
		w->stop = -1;
	}
}

void assemble_watch_end(struct assemble_watch *w)
{
	if (w->stop < 0)
		return;
	eventfd_write(w->stop, 1);
	pthread_join(w->thread, NULL);
	close(w->stop);
}
