/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Lines out of a plain or zstd-compressed stream; see trace_lines.c.
 */
#ifndef KVTIER_TRACE_LINES_H
#define KVTIER_TRACE_LINES_H

#include <stddef.h>
#include <stdio.h>

struct trace_lines;

/**
 * trace_lines_new - starts reading
 * @stream:   input; stays the caller's
 * @max_bytes: longest line accepted, without its newline
 *
 * Returns NULL if there is no memory.
 */
struct trace_lines *trace_lines_new(FILE *stream, size_t max_bytes);

/**
 * trace_lines_next - the next line
 * @line:  out: NUL-terminated, without newline (and without the carriage return
 *         before it); good until the next call, may be written to
 * @bytes: out: its length
 *
 * Returns 1, 0 at the end, or a negative errno: EIO (reading failed), EBADMSG
 * (bad compressed data), EMSGSIZE (line too long), ENOMEM.
 */
int trace_lines_next(struct trace_lines *lines, char **line, size_t *bytes);

void trace_lines_free(struct trace_lines *lines);

#endif
