// SPDX-License-Identifier: GPL-2.0
/*
 * Output of results: one JSON object, printed as it is or as text by a table of
 * columns.
 */
#include <stdlib.h>
#include <string.h>
#include "cmd.h"

/* Longest text that has to be put together for a cell. */
#define CELL_MAX	256

int cmd_no_memory = EXIT_FAILED;

static void __attribute__((noreturn)) out_of_memory(void)
{
	fputs("kvtier: out of memory\n", stderr);
	exit(cmd_no_memory);
}

void cmd_add(struct json_object *obj, const char *key,
	     struct json_object *value)
{
	if (!value || json_object_object_add(obj, key, value))
		out_of_memory();
}

void cmd_append(struct json_object *array, struct json_object *value)
{
	if (!value || json_object_array_add(array, value))
		out_of_memory();
}

void cmd_add_u64(struct json_object *obj, const char *key, uint64_t value)
{
	cmd_add(obj, key, json_object_new_uint64(value));
}

void cmd_add_str(struct json_object *obj, const char *key, const char *value)
{
	cmd_add(obj, key, cmd_string(value));
}

void cmd_add_double(struct json_object *obj, const char *key, double value)
{
	cmd_add(obj, key, json_object_new_double(value));
}

void cmd_add_bool(struct json_object *obj, const char *key, bool value)
{
	cmd_add(obj, key, json_object_new_boolean(value));
}

static const char *human(double value, double step, const char *const *units,
			 char buf[static CMD_HUMAN_MAX])
{
	/* Below what %.4g would round up to the next unit's 1. */
	while (value >= step * 0.99995 && units[1]) {
		value /= step;
		units++;
	}
	snprintf(buf, CMD_HUMAN_MAX, value < 9999.5 ? "%.4g%s" : "%.0f%s",
		 value, *units);
	return buf;
}

const char *cmd_human_bytes(uint64_t bytes, char buf[static CMD_HUMAN_MAX])
{
	static const char *const units[] = {
		"", "K", "M", "G", "T", "P", "E", NULL
	};

	return human((double)bytes, 1024, units, buf);
}

const char *cmd_human_ns(uint64_t ns, char buf[static CMD_HUMAN_MAX])
{
	static const char *const units[] = { "ns", "us", "ms", "s", NULL };

	return human((double)ns, 1000, units, buf);
}

void cmd_print_json(FILE *file, struct json_object *obj)
{
	int flags = opt.pretty ? JSON_C_TO_STRING_PRETTY |
				 JSON_C_TO_STRING_SPACED :
				 JSON_C_TO_STRING_PLAIN;

	fprintf(file, "%s\n", json_object_to_json_string_ext(obj,
		flags | JSON_C_TO_STRING_NOSLASHESCAPE));
}

/* "a,b"; what does not fit is left out, as it would break the table anyway. */
static const char *join(struct json_object *array, char buf[static CELL_MAX])
{
	size_t i, len = 0;

	buf[0] = 0;
	for (i = 0; i < json_object_array_length(array); i++) {
		const char *text = json_object_get_string(
			json_object_array_get_idx(array, i));
		size_t more = strlen(text);

		if (len + more + 2 > CELL_MAX)
			break;
		if (i)
			buf[len++] = ',';
		memcpy(buf + len, text, more + 1);
		len += more;
	}
	return len ? buf : "-";
}

/* The text of a cell; an own buffer is used where there has to be one. */
static const char *cell(struct json_object *value, enum cmd_format format,
			char buf[static CELL_MAX])
{
	if (!value)
		return "-";
	if (json_object_is_type(value, json_type_array))
		return join(value, buf);
	switch (format) {
	case CMD_BYTES:
		return cmd_human_bytes(json_object_get_uint64(value), buf);
	case CMD_NS:
		return cmd_human_ns(json_object_get_uint64(value), buf);
	case CMD_PERCENT:
		snprintf(buf, CMD_HUMAN_MAX, "%.1f%%",
			 100 * json_object_get_double(value));
		return buf;
	case CMD_COUNT:
	case CMD_TEXT:
		break;
	}
	if (json_object_is_type(value, json_type_boolean))
		return json_object_get_boolean(value) ? "yes" : "no";
	return json_object_get_string(value);
}

static const char *cell_of(struct json_object *row,
			   const struct cmd_column *col,
			   char buf[static CELL_MAX])
{
	return cell(json_object_object_get(row, col->key), col->format, buf);
}

static int width_of(struct json_object *rows, const struct cmd_column *col)
{
	size_t i, width = strlen(col->title);
	char buf[CELL_MAX];

	for (i = 0; i < json_object_array_length(rows); i++) {
		size_t len = cmd_puts_len(cell_of(json_object_array_get_idx(rows, i),
						  col, buf));

		if (len > width)
			width = len;
	}
	return (int)width;
}

static void print_cell(FILE *file, const char *text,
		       const struct cmd_column *col, int width)
{
	int blanks = width - (int)cmd_puts_len(text);
	bool left = col->format == CMD_TEXT;

	/* No blanks at the ends of lines. */
	if (blanks < 0 || (left && !col[1].key))
		blanks = 0;
	fprintf(file, "%*s", left ? 0 : blanks, "");
	cmd_puts(file, text);
	fprintf(file, "%*s%s", left ? blanks : 0, "", col[1].key ? "  " : "\n");
}

static void print_table(FILE *file, struct json_object *rows,
			const struct cmd_column *cols)
{
	const struct cmd_column *col;
	char buf[CELL_MAX];
	int widths[32];
	size_t i;

	for (col = cols; col->key; col++) {
		widths[col - cols] = width_of(rows, col);
		print_cell(file, col->title, col, widths[col - cols]);
	}
	for (i = 0; i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);

		for (col = cols; col->key; col++)
			print_cell(file, cell_of(row, col, buf), col,
				   widths[col - cols]);
	}
}

static void print_lines(FILE *file, struct json_object *obj,
			const struct cmd_column *cols)
{
	const struct cmd_column *col;
	char buf[CELL_MAX];
	size_t width = 0;

	for (col = cols; col->key; col++)
		if (strlen(col->title) > width)
			width = strlen(col->title);
	for (col = cols; col->key; col++) {
		if (!json_object_object_get_ex(obj, col->key, NULL))
			continue;
		fprintf(file, "%s:%*s ", col->title,
			(int)(width - strlen(col->title)), "");
		cmd_puts(file, cell_of(obj, col, buf));
		fputc('\n', file);
	}
}

void cmd_print_text(FILE *file, struct json_object *obj,
		    const struct cmd_column *cols)
{
	if (json_object_is_type(obj, json_type_array))
		print_table(file, obj, cols);
	else
		print_lines(file, obj, cols);
}

void cmd_emit_nested(struct json_object *obj, const struct cmd_column *cols,
		     const struct cmd_table *tables)
{
	struct json_object *rows;
	bool first = !cols;

	if (opt.json) {
		cmd_print_json(stdout, obj);
		json_object_put(obj);
		return;
	}
	if (cols)
		cmd_print_text(stdout, obj, cols);
	for (; tables && tables->key; tables++) {
		rows = json_object_object_get(obj, tables->key);
		if (!json_object_array_length(rows))
			continue;
		if (!first)
			fputc('\n', stdout);
		first = false;
		print_table(stdout, rows, tables->cols);
	}
	json_object_put(obj);
}

void cmd_emit(struct json_object *obj, const struct cmd_column *cols)
{
	cmd_emit_nested(obj, cols, NULL);
}
