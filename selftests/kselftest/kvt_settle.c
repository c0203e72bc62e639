// SPDX-License-Identifier: GPL-2.0
/*
 * Waiting until nothing moves: tiers are balanced, cleaned and emptied in the background
 * while a test looks at them, so what it reads one after the other fits together only
 * when that is over.
 */
#include <dirent.h>

#include "kvt_test.h"

#define LOOK_MS		100
#define LOOKS		4	/* alike: for longer than the worker sleeps, which is 250 ms */
#define PATIENT_LOOKS	20	/* alike, while the worker has something to do but does not come to it */
#define LIMIT_MS	60000	/* what never ends does not end then; a log that is cleaned may take a minute */

struct look {
	struct kvtier_stat st;
	struct kvtier_tier_stat tiers[KVTIER_TIERS_MAX];
	int nr;
	long long log_bytes;
};

/* What is written beside blocks, which STAT does not tell. */
static long long written_beside(const struct kvt_pool *p)
{
	char path[64], name[300], buf[32];
	long long sum = 0;
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "/sys/class/kvtier/kvtier%u/tiers", p->id);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		snprintf(name, sizeof(name), "tiers/%s/log_bytes", e->d_name);
		if (e->d_name[0] != '.' && kvt_sysfs_read(p, name, buf, sizeof(buf)) > 0)
			sum += strtoll(buf, NULL, 10);
	}
	if (d)
		closedir(d);
	return sum;
}

/* Is there a tier that the worker is going to make room in. */
static bool work_is_left(const struct kvt_pool *p, const struct look *l)
{
	unsigned long long percent = 100;
	char buf[32];
	int i;

	if (kvt_sysfs_read(p, "watermark_high_percent", buf, sizeof(buf)) > 0)
		percent = strtoull(buf, NULL, 10);
	for (i = 0; i < l->nr; i++) {
		if (l->tiers[i].used_bytes * 100 > l->tiers[i].capacity_bytes * percent)
			return true;
	}
	return false;
}

static int look_at(const struct kvt_pool *p, int fd, struct look *l)
{
	memset(l, 0, sizeof(*l));
	l->nr = kvt_tier_stats(fd, &l->st, l->tiers);
	l->st.tiers = 0;
	l->st.lost_touches = 0;
	l->log_bytes = written_beside(p);
	return l->nr;
}

int kvt_kept_up(const struct kvt_pool *p)
{
	int fd = kvt_open(p);
	struct look l;
	bool over;

	if (fd < 0)
		return fd;
	over = KVT_UNTIL(LIMIT_MS, look_at(p, fd, &l) < 0 || !work_is_left(p, &l));
	close(fd);
	if (l.nr < 0)
		return l.nr;
	return over ? 0 : -ETIMEDOUT;
}

/* What changed last. */
static void tell_unrest(const struct look *a, const struct look *b)
{
	const __u64 *x = (const __u64 *)&a->st, *y = (const __u64 *)&b->st;
	size_t n;
	int i;

	fprintf(stderr, "# the pool does not come to rest\n");
	for (n = 0; n < sizeof(a->st) / sizeof(*x); n++) {
		if (x[n] != y[n])
			fprintf(stderr, "# word %zu of struct kvtier_stat is %llu and %llu\n", n, x[n],
				y[n]);
	}
	for (i = 0; i < b->nr; i++)
		fprintf(stderr, "# tier %u: %llu and %llu blocks, %llu and %llu of %llu bytes used\n",
			b->tiers[i].id, a->tiers[i].nr_blocks, b->tiers[i].nr_blocks,
			a->tiers[i].used_bytes, b->tiers[i].used_bytes,
			b->tiers[i].capacity_bytes);
	fprintf(stderr, "# beside blocks %lld and %lld bytes were written\n", a->log_bytes,
		b->log_bytes);
}

int kvt_settled(const struct kvt_pool *p, struct kvtier_stat *st, struct kvtier_tier_stat *tiers)
{
	struct look *l = calloc(4, sizeof(*l)), *changed = l + 2;
	int fd = kvt_open(p), same = 1, changes = 0, ret;
	bool now = false, over;

	ret = !l ? -ENOMEM : fd < 0 ? fd : look_at(p, fd, &l[0]);
	over = ret < 0 || KVT_UNTIL(LIMIT_MS, ({
		kvt_sleep_ms(LOOK_MS);
		now = !now;
		ret = look_at(p, fd, &l[now]);
		same = memcmp(&l[0], &l[1], sizeof(*l)) ? 1 : same + 1;
		if (same == 1) {
			changed[0] = l[!now];
			changed[1] = l[now];
			changes++;
		}
		ret < 0 || same >= PATIENT_LOOKS || (same >= LOOKS && !work_is_left(p, &l[now]));
	}));
	if (!over) {
		fprintf(stderr, "# %d changes seen, the last %d looks ago\n", changes, same);
		tell_unrest(&changed[0], &changed[1]);
		ret = -ETIMEDOUT;
	}
	if (ret >= 0) {
		*st = l[now].st;
		if (tiers)
			memcpy(tiers, l[now].tiers, sizeof(l[now].tiers));
	}
	if (fd >= 0)
		close(fd);
	free(l);
	return ret;
}
