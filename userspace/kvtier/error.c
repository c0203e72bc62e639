// SPDX-License-Identifier: GPL-2.0
/*
 * Reports of what went wrong: text on stderr, or a JSON object on stdout. Text that
 * others have written may be in them.
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
	if (opt.error && !*opt.error) {
		*opt.error = obj;
		return;
	}
	cmd_print_json(stdout, obj);
	json_object_put(obj);
}

/* A message and what to do about it, on stderr. */
static void report_text(const char *message, const char *hint)
{
	fflush(stdout);
	fputs("kvtier: ", stderr);
	cmd_puts(stderr, message);
	fputc('\n', stderr);
	if (!hint || !*hint)
		return;
	fputs("  ", stderr);
	cmd_puts(stderr, hint);
	fputc('\n', stderr);
}

static int report(int err, const char *hint, const char *message)
{
	const char *name = err ? strerrorname_np(err) : NULL;

	if (!hint)
		hint = usual_hint(err);
	if (opt.json)
		report_json(err, name ? name : "FAILED", message, hint);
	else
		report_text(message, hint);
	return EXIT_FAILED;
}

int cmd_fail(int err, const char *hint, const char *fmt, ...)
{
	char what[512], message[640];
	va_list args;

	err = abs(err);
	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	snprintf(message, sizeof(message), "%s%s%s", what, err ? ": " : "",
		 err ? strerror(err) : "");
	return report(err, hint, message);
}

int cmd_fail_said(int err, const char *hint, const char *fmt, ...)
{
	char message[640];
	va_list args;

	va_start(args, fmt);
	vsnprintf(message, sizeof(message), fmt, args);
	va_end(args);
	return report(abs(err), hint, message);
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
		report_text(message, hint);
	return EXIT_USAGE;
}

void cmd_note(const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	report_text(text, NULL);
}
