// SPDX-License-Identifier: GPL-2.0
/*
 * libFuzzer target: any bytes at all as a trace.
 *
 * The reader must end, keep its promises about what it hands out, and say why
 * when it refuses.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../kvtier/trace.h"

#define MUST(condition)		\
	do {			\
		if (!(condition)) \
			abort(); \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct trace_request r;
	struct trace *t;
	FILE *f;
	int got;

	if (!bytes)
		return 0;
	f = fmemopen((void *)(uintptr_t)data, bytes, "r");
	if (!f)
		return 0;
	got = trace_open_stream(f, "fuzz", &t);
	if (!got)
		got = 1;
	while (got == 1) {
		got = trace_next(t, &r);
		if (got != 1)
			break;
		MUST(r.nr_ids <= TRACE_IDS_MAX && r.session >= -1);
		for (size_t i = 0; i < r.nr_ids; i++)
			MUST(r.ids[i] < TRACE_ID_LIMIT);
	}
	MUST(got == 0 || strlen(trace_error(t)) > 0);
	MUST(trace_skip(t) == got);
	trace_close(t);
	return 0;
}
