// SPDX-License-Identifier: GPL-2.0
/*
 * How fast a member becomes a pool, and the memory that takes: bench_recover OUT.json
 *
 *   recover_media.c      the member: a million blocks in chains
 *   recover_assemble.c   what is done with it: its segments are read three times
 *   recover_merge.c      then namespaces, links, lists and the log's segments
 *   recover_check.c      all of what came out
 *
 * One thread; the media is memory, so this is what the processor has to do. Time is the
 * processor's as well, and the least of some rounds, each from nothing: the machine is not
 * ours alone, and most of the work is waiting for memory. What counts is blocks that are
 * there in the end, not records that were read.
 *
 * Memory is what is asked for, by what it is for: what the pool keeps, and what goes when
 * it is there.
 */
#include "recover_assemble.h"
#include <inttypes.h>

#define ROUNDS		5u
#define AIM_PER_S	1000000.0

void recover_check(struct assembly *as, const struct media_sum *want);

/**
 * struct round - what one has shown
 * @seconds: of processor time, all together
 * @steps:   of these, by step
 * @bytes:   of memory in the end, by use
 * @stays:   of these, the pool's
 * @goes:    of all other, at most at a time
 */
struct round {
	double seconds;
	double steps[STEPS];
	u64 bytes[USES];
	u64 stays;
	u64 goes;
};

static struct round measure(const struct media *m, const struct media_sum *want)
{
	struct assembly *as = assembly_new(m);
	struct round r = { 0 };
	double start = as_now_s();
	u32 i;

	assembly_run(as);
	r.seconds = as_now_s() - start;
	recover_check(as, want);
	memcpy(r.steps, as->seconds, sizeof(r.steps));
	memcpy(r.bytes, as->bytes, sizeof(r.bytes));
	for (i = 0; i < USE_STAYS; i++)
		r.stays += as->bytes[i];
	r.goes = as->most;
	assembly_delete(as);
	return r;
}

static int by_seconds(const void *a, const void *b)
{
	double x = ((const struct round *)a)->seconds, y = ((const struct round *)b)->seconds;

	return (x > y) - (x < y);
}

static void print_found(FILE *f, const struct media_sum *s)
{
	fprintf(f, "  \"blocks\": %u,\n  \"records\": %u,\n  \"with_parent\": %u,\n"
		"  \"parent_in_other_segment\": %u,\n  \"parent_read_later\": %u,\n",
		s->blocks, MEDIA_SEGS * MEDIA_RECS, s->links, s->away, s->later);
	fprintf(f, "  \"cycles\": %u,\n  \"dead\": %u,\n  \"superseded\": %u,\n"
		"  \"orphans\": %u,\n  \"segments\": %u,\n  \"namespaces\": %u,\n",
		s->cycles, s->dead, s->superseded, s->orphans, MEDIA_SEGS_ALL, MEDIA_NS);
}

static void print_uses(FILE *f, const char *name, const struct round *r, u32 from, u32 to)
{
	u32 i;

	fprintf(f, "  \"%s\": {", name);
	for (i = from; i < to; i++)
		fprintf(f, "%s \"%s\": %" PRIu64, i > from ? "," : "", use_names[i],
			r->bytes[i]);
	fprintf(f, " },\n");
}

static void print_bytes(FILE *f, const struct round *r, u32 blocks)
{
	print_uses(f, "stays_bytes", r, 0, USE_STAYS);
	print_uses(f, "goes_bytes", r, USE_STAYS, USE_ORDER);
	fprintf(f, "  \"stays_bytes_all\": %" PRIu64 ",\n  \"goes_bytes_at_most\": %" PRIu64
		",\n", r->stays, r->goes);
	fprintf(f, "  \"stays_bytes_per_block\": %.2f,\n  \"goes_bytes_per_block\": %.2f\n",
		(double)r->stays / blocks, (double)r->goes / blocks);
}

static void print_times(FILE *f, const struct round *rounds, u32 blocks)
{
	u32 i;

	fprintf(f, "  \"recovered_per_s\": %.0f,\n  \"rounds_per_s\": [",
		blocks / rounds[0].seconds);
	for (i = 0; i < ROUNDS; i++)
		fprintf(f, "%s %.0f", i ? "," : "", blocks / rounds[i].seconds);
	fprintf(f, " ],\n  \"seconds\": {");
	for (i = 0; i < STEPS; i++)
		fprintf(f, "%s \"%s\": %.3f", i ? "," : "", step_names[i], rounds[0].steps[i]);
	fprintf(f, " },\n");
}

static int print(const char *path, const struct round *rounds, const struct media_sum *s)
{
	FILE *f = fopen(path, "w");

	if (!f) {
		perror(path);
		return 1;
	}
	fprintf(f, "{\n");
	print_found(f, s);
	print_times(f, rounds, s->blocks);
	print_bytes(f, &rounds[0], s->blocks);
	fprintf(f, "}\n");
	fclose(f);
	return 0;
}

static void tell(const struct round *best, const struct media_sum *s)
{
	u32 i;

	printf("# recovery: %.0f blocks/s of %u; %u have a parent, %u of these in another segment\n",
	       s->blocks / best->seconds, s->blocks, s->links, s->away);
	printf("# seconds:");
	for (i = 0; i < STEPS; i++)
		printf(" %s %.3f", step_names[i], best->steps[i]);
	printf("\n# bytes a block: %.1f stay, %.1f go when all is there\n",
	       (double)best->stays / s->blocks, (double)best->goes / s->blocks);
}

int main(int argc, char **argv)
{
	struct media_sum sum = media_sum();
	struct round rounds[ROUNDS];
	struct media *media;
	bool any_rate, good;
	u32 i;

	any_rate = argc == 3 && !strcmp(argv[2], "--any-rate");
	if (argc != 2 && !any_rate) {
		fprintf(stderr, "usage: %s OUT.json [--any-rate]\n", argv[0]);
		return 2;
	}
	media = media_new();
	for (i = 0; i < ROUNDS; i++)
		rounds[i] = measure(media, &sum);
	free(media);
	qsort(rounds, ROUNDS, sizeof(rounds[0]), by_seconds);
	if (print(argv[1], rounds, &sum))
		return 1;
	tell(&rounds[0], &sum);
	/* A busy machine is as slow as it is: tests ask only whether all is right. */
	good = any_rate || sum.blocks / rounds[0].seconds >= AIM_PER_S;
	printf("%sok bench/recovery%s\n", good ? "" : "not ", any_rate ? "" : "_rate");
	return !good;
}
