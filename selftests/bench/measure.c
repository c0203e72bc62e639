// SPDX-License-Identifier: GPL-2.0
/*
 * Samples, medians and the clock's own cost.
 *
 * One JSON object a line is written for each work. The figures are time at work:
 * idle time, in which -icount lets the clock jump to the next timer, is written
 * beside. Nothing else is subtracted; the cost of the clock and of an empty system
 * call are entries of their own.
 *
 * Nothing may be said while instructions are counted: the virtual console's driver
 * spins until the host has read, and its instructions would count as ours.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "bench.h"

#define SAMPLES_MAX	32u
#define SAID_US		20000
#define LOOPS		2000000u	/* of two instructions each */

struct sample {
	uint64_t elapsed_ns;
	uint64_t idle_ns;
};

void die(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "bench: ");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Time all CPUs have slept; the only file that tells it to the nanosecond. */
static uint64_t idle_ns(void)
{
	FILE *f = fopen("/proc/timer_list", "r");
	unsigned long long ns;
	uint64_t sum = 0;
	char line[256];
	bool found = false;

	if (!f)
		die("/proc/timer_list: %s", strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, " .idle_sleeptime : %llu", &ns) != 1 &&
		    sscanf(line, " .iowait_sleeptime : %llu", &ns) != 1)
			continue;
		sum += ns;
		found = true;
	}
	fclose(f);
	if (!found)
		die("/proc/timer_list does not tell the idle time");
	return sum;
}

/* Both ends, so that a block that was cut short is noticed too. */
void stamp(struct env *e, uint8_t *block, unsigned int i)
{
	uint64_t v = 0x5eed000000000000u | (uint64_t)e->block_bytes << 12 | i;

	memcpy(block, &v, sizeof(v));
	memcpy(block + e->block_bytes - sizeof(v), &v, sizeof(v));
}

void check_stamp(const struct env *e, const uint8_t *block, unsigned int i)
{
	uint64_t v = 0x5eed000000000000u | (uint64_t)e->block_bytes << 12 | i;

	if (memcmp(block, &v, sizeof(v)) ||
	    memcmp(block + e->block_bytes - sizeof(v), &v, sizeof(v)))
		die("wrong bytes in block %u", i);
}

static int compare(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	return (x->elapsed_ns > y->elapsed_ns) - (x->elapsed_ns < y->elapsed_ns);
}

static struct sample take(struct env *e, const struct work *w)
{
	struct sample s;
	uint64_t idle, t;

	if (w->before)
		w->before(e);
	idle = e->icount ? idle_ns() : 0;
	t = now_ns();
	w->run(e);
	s.elapsed_ns = now_ns() - t;
	s.idle_ns = e->icount ? idle_ns() - idle : 0;
	if (w->after)
		w->after(e);
	return s;
}

/* For works that sleep the order by time at work may be another: sort by that. */
static void emit(struct env *e, const struct work *w, struct sample *s)
{
	unsigned int i, n = e->samples;
	double blocks = e->blocks;
	uint64_t idle = 0;

	for (i = 0; i < n; i++) {
		s[i].elapsed_ns -= s[i].idle_ns;
		idle += s[i].idle_ns;
	}
	qsort(s, n, sizeof(*s), compare);
	fprintf(e->out,
		"{\"who\": \"%s\", \"op\": \"%s\", \"block_bytes\": %zu, \"batch\": %u, \"blocks\": %u, "
		"\"samples\": %u, \"median\": %.1f, \"min\": %.1f, \"max\": %.1f, \"idle\": %.1f}\n",
		w->who, w->op, e->block_bytes, e->batch, e->blocks, n,
		(double)s[n / 2].elapsed_ns / blocks, (double)s[0].elapsed_ns / blocks,
		(double)s[n - 1].elapsed_ns / blocks, (double)idle / n / blocks);
	if (e->icount)
		return;
	fprintf(stderr, "%-6s %-8s %7zu x %3u %12.1f ns\n", w->who, w->op, e->block_bytes,
		e->batch, (double)s[n / 2].elapsed_ns / blocks);
	usleep(SAID_US);
}

/**
 * measure() - take samples of a work and write its line
 * @e: sizes are set
 * @w: the work
 */
void measure(struct env *e, const struct work *w)
{
	struct sample s[SAMPLES_MAX];
	unsigned int i;

	take(e, w);
	for (i = 0; i < e->samples; i++)
		s[i] = take(e, w);
	emit(e, w, s);
}

static void nothing(struct env *e)
{
	(void)e;
}

static void loops(struct env *e)
{
	unsigned long n = LOOPS;

	(void)e;
	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(n) : : "cc");
}

static void clocks(struct env *e)
{
	unsigned int i;

	for (i = 0; i < e->blocks; i++)
		now_ns();
}

static void syscalls(struct env *e)
{
	unsigned int i;

	for (i = 0; i < e->blocks; i++)
		syscall(SYS_getppid);
}

/**
 * calibrate() - what measuring itself costs, and whether the clock counts
 * @e: sizes are overwritten
 *
 * The loop's line is elapsed time for each instruction: 1.0 under -icount.
 */
void calibrate(struct env *e)
{
	static const struct work empty = { "clock", "empty", NULL, nothing, NULL };
	static const struct work loop = { "clock", "loop", NULL, loops, NULL };
	static const struct work clock = { "clock", "read", NULL, clocks, NULL };
	static const struct work call = { "clock", "syscall", NULL, syscalls, NULL };

	e->block_bytes = 0;
	e->batch = 1;
	e->blocks = 1;
	measure(e, &empty);
	e->blocks = 2 * LOOPS;
	measure(e, &loop);
	e->blocks = 10000;
	measure(e, &clock);
	measure(e, &call);
}
