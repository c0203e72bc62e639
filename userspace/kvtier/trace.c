// SPDX-License-Identifier: GPL-2.0
/*
 * Trace reader: opening, format detection, CSV; JSON lines are in trace_json.c.
 *
 * The first line that is not blank decides: '{' means JSON lines, the header
 * means CSV, anything else is not a trace. State is sticky: after the end or an
 * error the reader does not go on.
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"
#include "trace_ids.h"
#include "trace_lines.h"
#include "trace_private.h"

struct trace {
	FILE *stream;
	struct trace_lines *lines;
	struct trace_json *json;	/* NULL: CSV */
	struct trace_parse parse;
	char *pending;			/* first JSON line, read to detect it */
	size_t pending_bytes;
	unsigned long line;		/* number of the line in hand */
	int state;			/* 1: going on; else what to return */
	char name[256];
	char error[640];
};

int trace_fail(struct trace_parse *p, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(p->error, sizeof(p->error), format, args);
	va_end(args);
	return -EINVAL;
}

int trace_fail_ids(struct trace_parse *p, int err)
{
	switch (err) {
	case -E2BIG:
		return trace_fail(p, "more than %u ids in one request",
				  TRACE_IDS_MAX);
	case -ERANGE:
		return trace_fail(p, "an id is too large, or a run goes backwards");
	default:
		return err;
	}
}

static int fail_line(struct trace *t, int err)
{
	const char *text = t->parse.error;

	switch (err) {
	case -EIO:
		text = "reading failed";
		break;
	case -EBADMSG:
		text = "compressed data is damaged or cut short";
		break;
	case -EMSGSIZE:
		text = "line too long";
		break;
	case -ENOMEM:
		text = "out of memory";
		break;
	}
	snprintf(t->error, sizeof(t->error), "%s: line %lu: %s", t->name, t->line,
		 text);
	t->state = err == -EBADMSG || err == -EMSGSIZE ? -EINVAL : err;
	return t->state;
}

/* The next line that is not blank: 1, 0 at the end or a negative errno. */
static int next_line(struct trace *t, char **line, size_t *bytes)
{
	int got;

	if (t->pending) {
		*line = t->pending;
		*bytes = t->pending_bytes;
		t->pending = NULL;
		return 1;
	}
	do {
		t->line++;
		got = trace_lines_next(t->lines, line, bytes);
		if (got < 0)
			return fail_line(t, got);
		if (got == 0) {
			t->state = 0;
			return 0;
		}
	} while ((*line)[strspn(*line, " \t")] == '\0' &&
		 strlen(*line) == *bytes);
	return 1;
}

/* Decimal digits up to one of @stops (or the end, if that may be); *at moves on. */
static bool parse_number(const char **at, const char *stops, bool end_may_be,
			 uint64_t *value)
{
	const char *s = *at;
	uint64_t v = 0;

	if (!isdigit((unsigned char)*s))
		return false;
	for (; isdigit((unsigned char)*s); s++) {
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
			return false;
	}
	if (*s ? !strchr(stops, *s) : !end_may_be)
		return false;
	*at = s;
	*value = v;
	return true;
}

static int parse_field(struct trace_parse *p, const char **at, const char *what,
		       uint64_t *value)
{
	if (!parse_number(at, ",", false, value))
		return trace_fail(p, "%s is not a number", what);
	(*at)++;
	return 0;
}

static int parse_ids(struct trace_parse *p, const char *s)
{
	while (true) {
		uint64_t first, last;
		int err;

		while (*s == ' ')
			s++;
		if (!*s)
			return 0;
		if (!parse_number(&s, " -", true, &first))
			return trace_fail(p, "ids: not a number or run at \"%.20s\"", s);
		last = first;
		if (*s == '-') {
			s++;
			if (!parse_number(&s, " ", true, &last))
				return trace_fail(p, "ids: bad end of a run at \"%.20s\"",
						  s);
		}
		err = trace_ids_add(&p->ids, first, last);
		if (err)
			return trace_fail_ids(p, err);
	}
}

static int parse_csv(struct trace_parse *p, const char *s, struct trace_request *r)
{
	uint64_t session;
	int err;

	err = parse_field(p, &s, "ts_ms", &r->ts_ms);
	if (!err)
		err = parse_field(p, &s, "input_len", &r->input_len);
	if (!err)
		err = parse_field(p, &s, "output_len", &r->output_len);
	if (err)
		return err;
	r->session = -1;
	if (!strncmp(s, "-1,", 3)) {
		s += 3;
	} else {
		err = parse_field(p, &s, "session", &session);
		if (err)
			return err;
		if (session > INT64_MAX)
			return trace_fail(p, "session is too large");
		r->session = (int64_t)session;
	}
	return parse_ids(p, s);
}

int trace_next(struct trace *t, struct trace_request *request)
{
	size_t bytes;
	char *line;
	int err;

	if (t->state != 1)
		return t->state;
	err = next_line(t, &line, &bytes);
	if (err <= 0)
		return err;
	memset(request, 0, sizeof(*request));
	trace_ids_reset(&t->parse.ids);
	if (strlen(line) != bytes)
		err = trace_fail(&t->parse, "there is a NUL byte in it");
	else if (t->json)
		err = trace_json_parse(t->json, &t->parse, line, bytes, request);
	else
		err = parse_csv(&t->parse, line, request);
	if (err)
		return fail_line(t, err);
	request->ids = t->parse.ids.ids;
	request->nr_ids = t->parse.ids.nr;
	request->line = t->line;
	return 1;
}

int trace_skip(struct trace *t)
{
	size_t bytes;
	char *line;

	return t->state != 1 ? t->state : next_line(t, &line, &bytes);
}

static int detect(struct trace *t)
{
	size_t bytes, blank;
	char *line;
	int got;

	t->state = 1;
	got = next_line(t, &line, &bytes);
	if (got < 0)
		return got;
	if (got == 0) {
		t->state = trace_fail(&t->parse, "empty");
		return fail_line(t, t->state);
	}
	if (!strcmp(line, TRACE_CSV_HEADER) && strlen(line) == bytes)
		return 0;
	blank = strspn(line, " \t");
	if (line[blank] != '{') {
		trace_fail(&t->parse, "neither the header \"%s\" nor a JSON object",
			   TRACE_CSV_HEADER);
		return fail_line(t, -EINVAL);
	}
	t->json = trace_json_new();
	if (!t->json)
		return fail_line(t, -ENOMEM);
	t->pending = line;
	t->pending_bytes = bytes;
	return 0;
}

int trace_open_stream(FILE *stream, const char *name, struct trace **trace)
{
	struct trace *t = calloc(1, sizeof(*t));

	*trace = t;
	if (!t) {
		fclose(stream);
		return -ENOMEM;
	}
	t->stream = stream;
	snprintf(t->name, sizeof(t->name), "%s", name);
	t->lines = trace_lines_new(stream, TRACE_LINE_BYTES_MAX);
	if (!t->lines)
		return fail_line(t, -ENOMEM);
	return detect(t);
}

int trace_open(const char *path, struct trace **trace)
{
	FILE *stream;
	int err;

	if (!strcmp(path, "-"))
		return trace_open_stream(stdin, "standard input", trace);
	stream = fopen(path, "re");
	if (stream)
		return trace_open_stream(stream, path, trace);
	err = -errno;
	*trace = calloc(1, sizeof(**trace));
	if (*trace) {
		(*trace)->state = err;
		snprintf((*trace)->error, sizeof((*trace)->error), "%s: %s", path,
			 strerror(-err));
	}
	return err;
}

const char *trace_error(const struct trace *t)
{
	return t ? t->error : "out of memory";
}

const char *trace_format(const struct trace *t)
{
	return t->json ? "json-lines" : "csv";
}

uint64_t trace_repeats(const struct trace *t)
{
	return t->parse.ids.repeats;
}

void trace_close(struct trace *t)
{
	if (!t)
		return;
	trace_json_free(t->json);
	trace_lines_free(t->lines);
	trace_ids_free(&t->parse.ids);
	if (t->stream && t->stream != stdin)
		fclose(t->stream);
	free(t);
}

void trace_key(uint64_t seed, uint64_t id, unsigned char *key)
{
	uint64_t base = trace_mix64(seed + 0x9e3779b97f4a7c15ULL);

	for (unsigned int lane = 0; lane < TRACE_KEY_BYTES / 8; lane++) {
		/* Lane 0 is a bijection of the id: no two ids share a key. */
		uint64_t word = trace_mix64(base + id + (uint64_t)lane *
					    0x632be59bd9b4e019ULL);

		for (unsigned int i = 0; i < 8; i++)
			key[lane * 8 + i] = (unsigned char)(word >> (8 * i));
	}
	key[TRACE_KEY_BYTES - 1] |= 0x80;	/* so that it is never all zero */
}
