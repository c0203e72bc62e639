// SPDX-License-Identifier: GPL-2.0
/*
 * Reports of what went wrong: text on stderr, or a JSON object on stdout.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "cmd.h"

struct cmd_options opt;

/* What most often helps, where a command has nothing better to say. */
static const char *usual_hint(int err)
{
	switch (err) {
	case EPERM:
		return "this needs CAP_SYS_ADMIN: run it as root";
	case EACCES:
		return "run it as root, or as a member of group kvtier";
	case ENXIO:
		return "the pool is being destroyed";
	case ENOTTY:
	case E2BIG:
	case EOPNOTSUPP:
		return "the loaded kvtier module is older than this tool";
	case ENOMEM:
		return "the machine is short of memory";
	}
	return NULL;
}

static void report_json(int err, const char *name, const char *message,
			const char *hint)
{
	struct json_object *inner = json_object_new_object();
	struct json_object *obj = json_object_new_object();

	cmd_add_str(inner, "message", message);
	cmd_add_u64(inner, "errno", (uint64_t)err);
	cmd_add_str(inner, "name", name);
	if (hint && *hint)
		cmd_add_str(inner, "hint", hint);
	json_object_object_add(obj, "error", inner);
	cmd_print_json(stdout, obj);
	json_object_put(obj);
}

int cmd_fail(int err, const char *hint, const char *fmt, ...)
{
	char what[512], message[640];
	const char *name;
	va_list args;

	err = abs(err);
	name = err ? strerrorname_np(err) : NULL;
	if (!hint)
		hint = usual_hint(err);
	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	snprintf(message, sizeof(message), "%s%s%s", what, err ? ": " : "",
		 err ? strerror(err) : "");
	if (opt.json) {
		report_json(err, name ? name : "FAILED", message, hint);
		return EXIT_FAILED;
	}
	fflush(stdout);
	fprintf(stderr, "kvtier: %s\n", message);
	if (hint && *hint)
		fprintf(stderr, "  %s\n", hint);
	return EXIT_FAILED;
}

int cmd_usage(const char *fmt, ...)
{
	static const char hint[] = "see: kvtier help [OBJECT]";
	char message[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(message, sizeof(message), fmt, args);
	va_end(args);
	if (opt.json)
		report_json(EINVAL, "USAGE", message, hint);
	else
		fprintf(stderr, "kvtier: %s\n  %s\n", message, hint);
	return EXIT_USAGE;
}

void cmd_note(const char *fmt, ...)
{
	va_list args;

	if (opt.json)
		return;
	fputs("kvtier: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
}
