/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Between the parts of the trace reader.
 */
#ifndef KVTIER_TRACE_PRIVATE_H
#define KVTIER_TRACE_PRIVATE_H

#include <stddef.h>

#include "trace.h"
#include "trace_ids.h"

/* What parsing one line leaves besides the request's numbers. */
struct trace_parse {
	struct trace_ids ids;
	char error[320];
};

/* Notes why the line is bad; returns -EINVAL. */
__attribute__((format(printf, 2, 3)))
int trace_fail(struct trace_parse *parse, const char *format, ...);

/* The same for an error of trace_ids_add(); returns what the caller should. */
int trace_fail_ids(struct trace_parse *parse, int err);

struct trace_json;

struct trace_json *trace_json_new(void);

/* Parses one line into the request, all but ids and line. 0 or negative errno. */
int trace_json_parse(struct trace_json *json, struct trace_parse *parse,
		     const char *line, size_t bytes,
		     struct trace_request *request);

void trace_json_free(struct trace_json *json);

#endif
