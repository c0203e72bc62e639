// SPDX-License-Identifier: GPL-2.0
/*
 * Lines out of a plain or zstd-compressed stream.
 *
 * Model: stream -> [zstd] -> text buffer -> line buffer. Compression is told by
 * the first four bytes. Invariants: no buffer grows past the line limit given;
 * the decompressor is held to windows of 2^27 bytes, so a small hostile file
 * cannot claim more; the end of input inside a compressed frame is an error,
 * not the end of the text.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "trace_lines.h"

#define TEXT_BYTES	(128u << 10)
#define WINDOW_LOG_MAX	27

struct trace_lines {
	FILE *stream;
	ZSTD_DStream *zstd;		/* NULL: plain */
	size_t zstd_hint;		/* 0 between frames */
	bool started;
	bool stream_end;

	unsigned char raw[TEXT_BYTES];	/* compressed input */
	ZSTD_inBuffer in;

	char text[TEXT_BYTES];
	size_t text_pos, text_len;

	char *line;
	size_t line_len, line_room, line_max;
};

struct trace_lines *trace_lines_new(FILE *stream, size_t max_bytes)
{
	struct trace_lines *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->stream = stream;
	l->line_max = max_bytes;
	l->in.src = l->raw;
	return l;
}

void trace_lines_free(struct trace_lines *l)
{
	if (!l)
		return;
	ZSTD_freeDStream(l->zstd);
	free(l->line);
	free(l);
}

static int read_stream(struct trace_lines *l, void *buf, size_t room, size_t *got)
{
	*got = fread(buf, 1, room, l->stream);
	if (*got < room) {
		if (ferror(l->stream))
			return -EIO;
		l->stream_end = true;
	}
	return 0;
}

/* Looks at the first bytes, which decide between zstd and plain text. */
static int start(struct trace_lines *l)
{
	static const unsigned char magic[4] = { 0x28, 0xb5, 0x2f, 0xfd };
	int err;

	l->started = true;
	err = read_stream(l, l->raw, sizeof(l->raw), &l->in.size);
	if (err)
		return err;
	if (l->in.size < sizeof(magic) || memcmp(l->raw, magic, sizeof(magic))) {
		memcpy(l->text, l->raw, l->in.size);
		l->text_len = l->in.size;
		return 0;
	}
	l->zstd = ZSTD_createDStream();
	if (!l->zstd)
		return -ENOMEM;
	ZSTD_DCtx_setParameter(l->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
	return 0;
}

/* Fills the empty text buffer from compressed input; may leave it empty. */
static int inflate(struct trace_lines *l)
{
	ZSTD_outBuffer out = { .dst = l->text, .size = sizeof(l->text) };
	int err;

	if (l->in.pos == l->in.size && !l->stream_end) {
		l->in.pos = 0;
		err = read_stream(l, l->raw, sizeof(l->raw), &l->in.size);
		if (err)
			return err;
	}
	/* At the very end there may be output left that did not fit before. */
	l->zstd_hint = ZSTD_decompressStream(l->zstd, &out, &l->in);
	if (ZSTD_isError(l->zstd_hint))
		return -EBADMSG;
	l->text_len = out.pos;
	return 0;
}

static bool at_end(const struct trace_lines *l)
{
	if (!l->stream_end)
		return false;
	return !l->zstd || (l->in.pos == l->in.size && !l->zstd_hint);
}

/* Returns 1 with text in the buffer, 0 at the end, or a negative errno. */
static int more_text(struct trace_lines *l)
{
	int err = l->started ? 0 : start(l);

	while (!err && l->text_pos == l->text_len) {
		if (at_end(l))
			return 0;
		l->text_pos = 0;
		l->text_len = 0;
		if (!l->zstd) {
			err = read_stream(l, l->text, sizeof(l->text), &l->text_len);
			continue;
		}
		err = inflate(l);
		if (!err && !l->text_len && l->stream_end &&
		    l->in.pos == l->in.size && l->zstd_hint)
			return -EBADMSG;
	}
	return err ? err : 1;
}

static int append(struct trace_lines *l, const char *text, size_t bytes)
{
	size_t need = l->line_len + bytes + 1;

	if (l->line_len + bytes > l->line_max)
		return -EMSGSIZE;
	if (need > l->line_room) {
		size_t room = l->line_room ? l->line_room : 4096;
		char *line;

		while (room < need)
			room *= 2;
		line = realloc(l->line, room);
		if (!line)
			return -ENOMEM;
		l->line = line;
		l->line_room = room;
	}
	memcpy(l->line + l->line_len, text, bytes);
	l->line_len += bytes;
	return 0;
}

int trace_lines_next(struct trace_lines *l, char **line, size_t *bytes)
{
	bool any = false, newline = false;
	int err;

	l->line_len = 0;
	while (!newline && (err = more_text(l)) == 1) {
		char *text = l->text + l->text_pos;
		size_t left = l->text_len - l->text_pos;
		char *end = memchr(text, '\n', left);
		size_t part = end ? (size_t)(end - text) : left;

		any = true;
		newline = end != NULL;
		err = append(l, text, part);
		if (err)
			return err;
		l->text_pos += part + newline;
	}
	if (!newline && err < 0)
		return err;
	if (!any)
		return 0;
	if (l->line_len && l->line[l->line_len - 1] == '\r')
		l->line_len--;
	l->line[l->line_len] = '\0';
	*line = l->line;
	*bytes = l->line_len;
	return 1;
}
