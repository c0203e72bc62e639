// SPDX-License-Identifier: GPL-2.0
/*
 * Writes generated requests; consecutive ids become runs.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "gen_csv.h"
#include "trace.h"

static void write_ids(FILE *out, const uint64_t *ids, size_t nr)
{
	for (size_t i = 0; i < nr;) {
		size_t end = i + 1;

		while (end < nr && ids[end] == ids[end - 1] + 1)
			end++;
		fprintf(out, "%s%" PRIu64, i ? " " : "", ids[i]);
		if (end > i + 1)
			fprintf(out, "-%" PRIu64, ids[end - 1]);
		i = end;
	}
}

static bool at_limit(const struct gen_limits *limits, const struct gen_totals *t)
{
	return (limits->requests && t->requests >= limits->requests) ||
	       (limits->blocks && t->blocks >= limits->blocks);
}

int gen_csv_write(FILE *out, const struct gen_params *params,
		  const struct gen_limits *limits, struct gen_totals *totals)
{
	struct gen *gen = gen_new(params);
	struct gen_request r;
	int err = 0;

	if (!gen)
		return -ENOMEM;
	memset(totals, 0, sizeof(*totals));
	fprintf(out, "%s\n", TRACE_CSV_HEADER);
	while (!at_limit(limits, totals)) {
		err = gen_next(gen, &r);
		if (err || (limits->ms && r.ts_ms >= limits->ms))
			break;
		fprintf(out, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",",
			r.ts_ms, r.input_len, r.output_len, r.session);
		write_ids(out, r.ids, r.nr_ids);
		fputc('\n', out);
		totals->requests++;
		totals->by_kind[r.kind]++;
		totals->accesses += r.nr_ids;
		totals->blocks = gen_blocks(gen);
		totals->span_ms = r.ts_ms;
		if (ferror(out)) {
			err = -EIO;
			break;
		}
	}
	gen_free(gen);
	if (!err && (fflush(out) || ferror(out)))
		err = -EIO;
	return err;
}
