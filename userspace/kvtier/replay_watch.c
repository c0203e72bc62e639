// SPDX-License-Identifier: GPL-2.0
/*
 * Samples over time and the progress line.
 *
 * Kernel counters run since the pool began; everything shown is their difference
 * to the start of the replay.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "replay_watch.h"

#define INTERVAL_NS	250000000ULL	/* of samples, at first */
#define TTY_LINE_NS	250000000ULL
#define LOG_LINE_NS	3000000000ULL

void watch_sum(const struct replay_shared *shared, unsigned int procs,
	       struct replay_counters *sum)
{
	uint64_t *to = (uint64_t *)sum;

	memset(sum, 0, sizeof(*sum));
	for (unsigned int p = 0; p < procs; p++) {
		const uint64_t *from = (const uint64_t *)&shared->procs[p].counters;

		for (size_t i = 0; i < REPLAY_COUNTERS; i++)
			to[i] += __atomic_load_n(&from[i], __ATOMIC_RELAXED);
	}
}

static int by_rank(const void *a, const void *b)
{
	const struct watch_tier *x = a, *y = b;

	return (int)x->info.rank - (int)y->info.rank;
}

/* Counters of the pool, and the tiers' by id; without permission just zeroes. */
static int read_pool(struct replay_watch *w, struct kvtier_stat *st,
		     struct kvtier_tier_stat by_id[KVTIER_TIERS_MAX])
{
	struct kvtier_tier_stat tiers[KVTIER_TIERS_MAX];
	struct kvtier_stat fresh = KVTIER_STAT_INIT;
	int nr;

	memset(by_id, 0, sizeof(*by_id) * KVTIER_TIERS_MAX);
	*st = fresh;
	nr = kvtier_pool_stat(w->pool, st, tiers);
	w->pool_stat = nr >= 0;
	if (nr == -EPERM) {
		*st = fresh;
		return 0;
	}
	for (int i = 0; i < nr; i++)
		by_id[tiers[i].id % KVTIER_TIERS_MAX] = tiers[i];
	return nr < 0 ? nr : 0;
}

/* now - before, member by member; what is a level and no counter stays as it is. */
static struct kvtier_tier_stat tier_delta(const struct kvtier_tier_stat *now,
					  const struct kvtier_tier_stat *before)
{
	struct kvtier_tier_stat d = *now;

	d.hits -= before->hits;
	d.promotions_in -= before->promotions_in;
	d.promotions_out -= before->promotions_out;
	d.demotions_in -= before->demotions_in;
	d.demotions_out -= before->demotions_out;
	d.evictions -= before->evictions;
	d.read_bytes -= before->read_bytes;
	d.write_bytes -= before->write_bytes;
	d.dma_bytes -= before->dma_bytes;
	d.io_errors -= before->io_errors;
	return d;
}

/* Brings infos and counters of all tiers up to date. */
static int refresh(struct replay_watch *w)
{
	struct kvtier_tier_info infos[KVTIER_TIERS_MAX];
	struct kvtier_tier_stat stats[KVTIER_TIERS_MAX];
	int nr, err;

	nr = kvtier_pool_tiers(w->pool, infos);
	if (nr < 0)
		return nr;
	err = read_pool(w, &w->now, stats);
	if (err)
		return err;
	for (unsigned int t = 0; t < w->nr_tiers; t++) {
		struct watch_tier *tier = &w->tiers[t];

		for (int i = 0; i < nr; i++) {
			if (infos[i].id == tier->info.id)
				tier->info = infos[i];
		}
		tier->delta = tier_delta(&stats[tier->info.id % KVTIER_TIERS_MAX],
					 &tier->before);
	}
	return 0;
}

int watch_init(struct replay_watch *w, const struct replay_options *o,
	       const struct replay_survey *survey, const struct replay_shared *shared)
{
	struct kvtier_tier_info infos[KVTIER_TIERS_MAX];
	struct kvtier_tier_stat stats[KVTIER_TIERS_MAX];
	int nr, err;

	memset(w, 0, sizeof(*w));
	w->o = o;
	w->survey = survey;
	w->shared = shared;
	w->interval_ns = INTERVAL_NS;
	w->tty = isatty(STDERR_FILENO);
	err = kvtier_pool_open(o->pool_id, &w->pool);
	if (err)
		return err;
	nr = kvtier_pool_tiers(w->pool, infos);
	if (nr < 0)
		return nr;
	err = read_pool(w, &w->before, stats);
	if (err)
		return err;
	w->now = w->before;
	w->nr_tiers = (unsigned int)nr;
	for (int i = 0; i < nr; i++) {
		w->tiers[i].info = infos[i];
		w->tiers[i].before = stats[infos[i].id % KVTIER_TIERS_MAX];
	}
	qsort(w->tiers, w->nr_tiers, sizeof(w->tiers[0]), by_rank);
	return 0;
}

void watch_close(struct replay_watch *w)
{
	kvtier_pool_unref(w->pool);
}

static void thin_out(struct replay_watch *w)
{
	for (unsigned int i = 0; i < WATCH_SAMPLES_MAX / 2; i++)
		w->samples[i] = w->samples[2 * i + 1];
	w->nr_samples = WATCH_SAMPLES_MAX / 2;
	w->interval_ns *= 2;
}

static int take_sample(struct replay_watch *w, uint64_t now_ns)
{
	struct watch_sample *s;
	int err = refresh(w);

	if (err)
		return err;
	if (w->nr_samples == WATCH_SAMPLES_MAX)
		thin_out(w);
	s = &w->samples[w->nr_samples++];
	s->t_ns = now_ns - w->start_ns;
	watch_sum(w->shared, w->o->procs, &s->counters);
	for (unsigned int t = 0; t < w->nr_tiers; t++) {
		s->used_bytes[t] = w->tiers[t].info.used_bytes;
		s->promotions_in[t] = w->tiers[t].delta.promotions_in;
		s->demotions_in[t] = w->tiers[t].delta.demotions_in;
	}
	s->evictions = w->now.evictions - w->before.evictions;
	return 0;
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

/* One line: how far, how fast, hits by tier, what each tier holds. */
static void format_line(struct replay_watch *w, const struct replay_counters *c,
			double rate, char *line, size_t room)
{
	int n = snprintf(line, room, "%3.0f%%  %" PRIu64 " requests  %.1f/s  hit %.1f%%",
			 percent(c->requests, w->survey->requests), c->requests, rate,
			 percent(c->hits, c->asked));

	for (unsigned int t = 0; t < w->nr_tiers && n > 0 && (size_t)n < room; t++) {
		const struct kvtier_tier_info *i = &w->tiers[t].info;

		n += snprintf(line + n, room - (size_t)n,
			      "  %.12s %.1f%% (%.0f%% full)", i->name,
			      percent(c->hits_by_tier[i->id % KVTIER_TIERS_MAX], c->asked),
			      percent(i->used_bytes, i->capacity_bytes));
	}
	if (c->wrong_blocks && n > 0 && (size_t)n < room)
		snprintf(line + n, room - (size_t)n, "  WRONG %" PRIu64,
			 c->wrong_blocks);
}

/* A line that is longer than the terminal's cannot be drawn over. */
static int line_max(const struct replay_watch *w)
{
	struct winsize size;

	if (!w->tty || ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || size.ws_col < 2)
		return INT_MAX;
	return size.ws_col - 1;
}

static void print_line(struct replay_watch *w, uint64_t now_ns)
{
	struct replay_counters c;
	uint64_t ns = now_ns - (w->last_line_ns ? w->last_line_ns : w->start_ns);
	char line[512];
	double rate;

	watch_sum(w->shared, w->o->procs, &c);
	rate = ns ? (double)(c.requests - w->last_requests) * 1e9 / (double)ns : 0.0;
	format_line(w, &c, rate, line, sizeof(line));
	fprintf(stderr, w->tty ? "\r%.*s\033[K" : "%.*s\n", line_max(w), line);
	fflush(stderr);
	w->line_open = w->tty;
	w->last_line_ns = now_ns;
	w->last_requests = c.requests;
}

int watch_poll(struct replay_watch *w)
{
	uint64_t now = replay_now_ns();
	uint64_t line_ns = w->tty ? TTY_LINE_NS : LOG_LINE_NS;
	uint64_t last = w->nr_samples ? w->samples[w->nr_samples - 1].t_ns : 0;
	int err = 0;

	if (!w->start_ns)
		w->start_ns = now;
	if (!w->nr_samples || now - w->start_ns - last >= w->interval_ns)
		err = take_sample(w, now);
	if (!err && w->o->progress &&
	    now - (w->last_line_ns ? w->last_line_ns : w->start_ns) >= line_ns)
		print_line(w, now);
	return err;
}

int watch_finish(struct replay_watch *w)
{
	uint64_t now = replay_now_ns();
	int err = take_sample(w, now);

	if (!err && w->o->progress)
		print_line(w, now);
	if (w->line_open)
		fputc('\n', stderr);
	return err;
}
