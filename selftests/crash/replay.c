// SPDX-License-Identifier: GPL-2.0
/*
 * States of a device after a crash, from a log of its writes.
 *
 * In the log a flush comes after the writes that were complete when it was started, and
 * marks where they were made. So at a moment between two flushes everything up to the
 * first one is on the device, what was written with FUA since, too, and of the other
 * writes up to that moment any part, in sectors. What an acknowledgement relies on has
 * been flushed before its mark; what a write is the consequence of is marked before it.
 * So the journal up to that moment holds for each such state.
 *
 * States are made one after the other in one file, and only what differs is written: what
 * is certain (@base) goes on, what is by chance is taken back, and so is all that the driver
 * has written to the device over the file, if it is the driver that judges.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "crash.h"
#include "../kselftest/kvt_medium.h"

#define SECTOR		512u
#define PIECE		(64u << 10)	/* compared at a time */
#define LIES		6u		/* flushes that a lying device has not done */
#define START		"start"		/* mark: the device is a member from here on */

struct replay {
	const struct replay_args *args;
	struct logwr log;
	struct oracle *o;
	FILE *journal;
	uint8_t *base;
	const uint8_t *map;	/* of the image */
	int fd;
	uint64_t rng;
	bool lying;
	uint64_t start;
	uint64_t done;		/* entries before are in @base */
	uint64_t marked;	/* ... and in the oracle */
	uint64_t nr_dropped;	/* writes, wholly or in part */
	uint64_t nr_must;
	uint64_t nr_gone;
	uint64_t nr_away;
	uint32_t nr_judged;
	uint32_t nr_whole;	/* of which nothing left that had to be there */
};

static bool is_mark(const struct logwr_entry *e, const char *text)
{
	return e->mark && e->mark_len == strlen(text) && !memcmp(e->mark, text, strlen(text));
}

static void store(struct replay *r, const void *from, uint64_t byte, uint64_t len)
{
	if (pwrite(r->fd, from, len, (off_t)byte) != (ssize_t)len) {
		perror("# image");
		exit(2);
	}
}

static bool fits(const struct replay *r, const struct logwr_entry *e)
{
	return e->byte <= r->args->bytes && e->len <= r->args->bytes - e->byte;
}

/* For good. A discard leaves what was there, or not. */
static void apply(struct replay *r, const struct logwr_entry *e)
{
	if (!e->len || e->mark)
		return;
	if (e->data)
		memcpy(r->base + e->byte, e->data, e->len);
	else if (e->discard && random_below(&r->rng, 2))
		memset(r->base + e->byte, 0, e->len);
	store(r, r->base + e->byte, e->byte, e->len);
}

/*
 * Some of it: all, nothing, or some sectors. @mood: 0: all of all writes, 1: nothing of
 * any, else mixed.
 */
static void apply_some(struct replay *r, const struct logwr_entry *e, uint32_t mood)
{
	uint32_t what = mood < 2 ? mood : random_below(&r->rng, 3);
	uint64_t at;

	if (!e->len || e->mark || !e->data)
		return;
	if (what == 0) {
		store(r, e->data, e->byte, e->len);
		return;
	}
	r->nr_dropped++;
	for (at = 0; what == 2 && at < e->len; at += SECTOR)
		if (random_below(&r->rng, 2))
			store(r, e->data + at, e->byte + at, SECTOR);
}

/*
 * Nearly all of it is the same. By words: what memcmp() is made of is slow where processors are
 * emulated.
 */
static bool differ(const void *a, const void *b, uint64_t len)
{
	const uint64_t *x = a, *y = b;
	uint64_t diff = 0, i;

	for (i = 0; i < len / sizeof(*x); i++)
		diff |= x[i] ^ y[i];
	return diff;
}

/*
 * What is not certain: entries from @from on were not, before @to. @driver: and what the
 * driver has written, which may be anywhere.
 */
static void take_back(struct replay *r, uint64_t from, uint64_t to, bool driver)
{
	const struct logwr_entry *e;
	uint64_t at, len;

	for (; !driver && from < to; from++) {
		e = &r->log.entries[from];
		if (e->len && !e->mark)
			store(r, r->base + e->byte, e->byte, e->len);
	}
	for (at = 0; driver && at < r->args->bytes; at += len) {
		len = r->args->bytes - at < PIECE ? r->args->bytes - at : PIECE;
		if (differ(r->map + at, r->base + at, len))
			store(r, r->base + at, at, len);
	}
}

static bool known(struct replay *r, uint64_t to)
{
	const struct logwr_entry *e;
	char line[LINE_MAX_BYTES + 1];

	for (; r->marked < to; r->marked++) {
		e = &r->log.entries[r->marked];
		if (!e->mark || r->marked <= r->start || e->mark_len > LINE_MAX_BYTES)
			continue;
		memcpy(line, e->mark, e->mark_len);
		line[e->mark_len] = 0;
		if (!strchr(line, ' '))
			continue;
		if (!oracle_line(r->o, line))
			return false;
		fprintf(r->journal, "%s\n", line);
	}
	return true;
}

/* --- what is wrong with a state ---------------------------------------------- */

static bool check_medium(struct replay *r, uint64_t *blocks)
{
	struct kvt_medium m;
	int err = kvt_medium_read(r->args->image, &m);
	uint32_t i, ns, index;

	oracle_check_start(r->o);
	if (err)
		oracle_error(r->o, "it is not a member any more: %s", strerror(-err));
	for (i = 0; i < m.nr_blocks; i++) {
		const struct kvt_medium_block *b = &m.blocks[i];
		void *bytes;

		if (!read_key(b->key, &ns, &index) || b->bytes != group_bytes[group_of(index)]) {
			oracle_error(r->o, "a block of nobody");
			continue;
		}
		if (!b->good)
			oracle_error(r->o, "block %u.%u does not verify", ns, index);
		bytes = malloc(b->bytes);
		if (bytes && pread(r->fd, bytes, b->bytes, (off_t)b->byte) == (ssize_t)b->bytes)
			oracle_found(r->o, ns, index, bytes);
		free(bytes);
	}
	*blocks = m.nr_blocks;
	kvt_medium_free(&m);
	return oracle_check_end(r->o);
}

/* What it says is shown only when it finds something. */
static bool check_fsck(const struct replay *r)
{
	char said[512], cmd[1200];
	int status;

	if (!r->args->tool)
		return true;
	snprintf(said, sizeof(said), "%s.fsck", r->args->image);
	snprintf(cmd, sizeof(cmd), "'%s' fsck --payload '%s' >'%s' 2>&1", r->args->tool,
		 r->args->image, said);
	fflush(stdout);
	status = system(cmd);
	if (!status)
		return true;
	snprintf(cmd, sizeof(cmd), "sed 's/^/# /' '%s'", said);
	if (system(cmd))
		printf("# %s\n", said);
	printf("# fsck ended with status %#x\n", status);
	return false;
}

/* --- states ------------------------------------------------------------------ */

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Moments: half of them just after something was acknowledged. */
static uint64_t *pick_moments(struct replay *r)
{
	uint64_t *at = calloc(r->args->points, sizeof(*at)), left = r->log.nr - r->start - 1;
	uint32_t i;

	if (!at)
		abort();
	for (i = 0; i < r->args->points; i++) {
		at[i] = r->start + 1 + next_random(&r->rng) % left;
		if (i % 2)
			continue;
		while (at[i] < r->log.nr && !(r->log.entries[at[i]].mark &&
					      strchr("Sd", r->log.entries[at[i]].mark[0])))
			at[i]++;
		at[i] += at[i] < r->log.nr;
	}
	qsort(at, r->args->points, sizeof(*at), by_number);
	return at;
}

/* The last flush before @at: one past it. Some more of them may be believed in vain. */
static uint64_t flushed(const struct replay *r, uint64_t at)
{
	uint64_t least = r->done > r->start ? r->done : r->start;
	uint32_t nr = r->lying ? LIES : 0;

	while (at > least && !(r->log.entries[at - 1].flush && !nr--))
		at--;
	return at;
}

/* A moment somewhat later, before the next flush, so that there is something to lose. */
static uint64_t later(struct replay *r, uint64_t at)
{
	uint64_t end = at;

	while (end < r->log.nr && !r->log.entries[end].flush)
		end++;
	return at + next_random(&r->rng) % (end - at + 1);
}

static void make_state(struct replay *r, uint64_t from, uint64_t to, uint32_t mood)
{
	const struct logwr_entry *e;
	uint64_t i;

	for (; r->done < from; r->done++)
		apply(r, &r->log.entries[r->done]);
	for (i = from; i < to; i++) {
		e = &r->log.entries[i];
		if (e->fua && !r->lying)
			store(r, e->data, e->byte, e->len);
		else
			apply_some(r, e, mood);
	}
}

/* The driver and the core have to find the same number of blocks: both say it. */
static bool judge(struct replay *r, uint32_t nr)
{
	uint64_t blocks = 0;
	bool ok;

	if (r->args->device)
		ok = assemble_state(r->args->device, r->o, &blocks);
	else
		ok = check_medium(r, &blocks) && check_fsck(r);
	printf("# state %u: %llu blocks\n", nr, (unsigned long long)blocks);
	r->nr_must += r->o->nr_must;
	r->nr_gone += r->o->nr_gone;
	r->nr_away += r->o->nr_away;
	r->nr_judged++;
	r->nr_whole += !r->o->nr_excused;
	return ok;
}

/* True: go on with the next one. */
static bool one_state(struct replay *r, uint64_t at, uint32_t nr)
{
	bool judged = r->args->only == KVT_NO_STATE && (nr + 1) % r->args->every == 0, ok;
	uint32_t mood = random_below(&r->rng, 6);
	uint64_t to = later(r, at), from = flushed(r, to);

	make_state(r, from, to, mood);
	ok = known(r, to) && (!judged || judge(r, nr));
	if (!ok || r->args->only == nr)
		printf("# state %u: entry %llu of %llu, from %llu on in part (mood %u)\n", nr,
		       (unsigned long long)to, (unsigned long long)r->log.nr,
		       (unsigned long long)from, mood);
	if (r->args->only == nr)
		return false;
	take_back(r, from, to, judged && r->args->device);
	return ok;
}

/* --- all of it --------------------------------------------------------------- */

/* The load has really done what the states are to be about. */
static bool worth_it(const struct replay *r)
{
	uint64_t i, flushes = 0, bytes = 0, marks[3] = { 0 };

	for (i = r->start; i < r->log.nr; i++) {
		const struct logwr_entry *e = &r->log.entries[i];

		flushes += e->flush;
		bytes += e->data ? e->len : 0;
		if (e->mark)
			marks[e->mark[0] == 'S' ? 0 : e->mark[0] == 'd' ? 1 : 2]++;
	}
	printf("# log: %llu entries, %llu flushes, %llu MiB; %llu times durable, %llu drops\n",
	       (unsigned long long)r->log.nr, (unsigned long long)flushes,
	       (unsigned long long)(bytes >> 20), (unsigned long long)marks[0], (unsigned long long)marks[1]);
	return flushes > 20 && bytes > r->args->bytes && marks[0] > 20 && marks[1] > 20;
}

static bool prepare(struct replay *r)
{
	char name[512];
	int err = logwr_open(&r->log, r->args->log);
	uint64_t i;

	if (err) {
		printf("# %s: not a log that has ended: %s\n", r->args->log, strerror(-err));
		return false;
	}
	for (i = 0; i < r->log.nr; i++) {
		if (is_mark(&r->log.entries[i], START))
			r->start = i;
		if (!fits(r, &r->log.entries[i]))
			r->start = 0;
	}
	snprintf(name, sizeof(name), "%s.journal", r->args->image);
	r->journal = fopen(name, "w");
	r->fd = open(r->args->image, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	r->base = calloc(1, r->args->bytes);
	if (r->fd >= 0 && !ftruncate(r->fd, (off_t)r->args->bytes))
		r->map = mmap(NULL, r->args->bytes, PROT_READ, MAP_SHARED, r->fd, 0);
	if (!r->start || !r->journal || !r->base || !r->map || r->map == MAP_FAILED) {
		printf("# no member in the log, or no room for an image\n");
		return false;
	}
	return worth_it(r);
}

/*
 * What the states have shown. One without anything to lose, or to find, shows nothing, and
 * little one of which blocks leave before they are looked for.
 */
static bool showed(const struct replay *r, uint32_t nr)
{
	printf("# %u states, %llu writes lost in part or whole; %u judged, %u with nothing excused; %llu times a block had to be there, %llu times it must not, %llu times it may have gone and had\n",
	       nr, (unsigned long long)r->nr_dropped, r->nr_judged, r->nr_whole,
	       (unsigned long long)r->nr_must, (unsigned long long)r->nr_gone,
	       (unsigned long long)r->nr_away);
	return r->nr_dropped >= r->args->points / 2 && r->nr_must && r->nr_gone && r->nr_away &&
	       r->nr_whole * 5 >= r->nr_judged * 4;
}

static void end(struct replay *r)
{
	munmap((void *)r->map, r->args->bytes);
	free(r->base);
	fclose(r->journal);
	close(r->fd);
	logwr_close(&r->log);
	oracle_free(r->o);
}

int replay_run(const struct replay_args *a)
{
	struct replay r = { .args = a, .rng = a->seed, .o = oracle_new() };
	uint64_t *at;
	bool ok = true;
	uint32_t i;

	r.lying = a->toothless && !strcmp(a->toothless, "flush");
	if (a->toothless && !r.lying && !medium_break(a->toothless)) {
		printf("# no check '%s'\n", a->toothless);
		return 2;
	}
	if (!prepare(&r))
		return 2;
	at = pick_moments(&r);
	for (i = 0; ok && i < a->points; i++)
		ok = one_state(&r, at[i], i);
	if (a->only != KVT_NO_STATE) {
		ok = a->only < i;
	} else if (!showed(&r, i) && ok) {
		printf("# the states do not show anything\n");
		ok = false;
	}
	free(at);
	end(&r);
	return !ok;
}
