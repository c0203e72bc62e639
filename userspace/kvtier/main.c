// SPDX-License-Identifier: GPL-2.0
/*
 * kvtier: pools, tiers and blocks of the kvtier store, from the command line.
 *
 * Finds the row of the command tables that the command line names and runs it, or shows
 * rows: as text, or in JSON as an array with an object for each command.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include "cmd.h"

static int do_help(int argc, char **argv);
static int do_version(int argc, char **argv);

#define OBJECT(n, h, v)		{ .name = n, .help = h, .verbs = v }
#define COMMAND(n, a, h, r) \
	{ .name = n, .self = { .name = n, .args = a, .help = h, .run = r } }
/* Has so many options that it explains itself. */
#define BIG_COMMAND(n, a, h, r) \
	{ .name = n, .own_help = true, \
	  .self = { .name = n, .args = a, .help = h, .run = r } }

static const struct cmd_object objects[] = {
	OBJECT("cxl", "CXL memory: regions and their dax devices", cxl_verbs),
	OBJECT("pool", "block stores", pool_verbs),
	OBJECT("tier", "backing devices of a pool", tier_verbs),
	OBJECT("ns", "namespaces of a pool", ns_verbs),
	COMMAND("stat", "[POOL] [--watch SECONDS] [--count N]",
		"counters of a pool and its tiers", cmd_stat),
	COMMAND("put", "--ns NAME KEY [FILE] [--block-bytes SIZE] [--parent KEY] [--pad]",
		"store a block", cmd_put),
	COMMAND("get", "--ns NAME KEY [--output FILE] [--timeout TIME]",
		"fetch a block", cmd_get),
	COMMAND("ls", "--ns NAME [--limit N]", "list a namespace's blocks",
		cmd_ls),
	COMMAND("rm", "--ns NAME KEY... | --all", "forget blocks", cmd_rm),
	COMMAND("fsck", "DEVICE... [--repair] [--payload] [--notes]",
		"check members of a pool that is not assembled", cmd_fsck),
	COMMAND("dump", "DEVICE [--super] [--segments] [--batches] [--records] [--namespaces] [--kills] [--segment N]",
		"show what is on a member", cmd_dump),
	BIG_COMMAND("replay", "TRACE [OPTIONS]",
		    "run a request trace against a pool", cmd_replay),
	BIG_COMMAND("gen", "[OPTIONS]", "generate a request trace", cmd_gen),
	COMMAND("help", "[OBJECT]", "this text, or an object's commands",
		do_help),
	COMMAND("version", "", "versions of the tool and the kernel interface",
		do_version),
};

static void print_verb(FILE *file, const char *object,
		       const struct cmd_verb *verb)
{
	fprintf(file, "  kvtier %s%s%s%s%s\n      %s\n", object,
		*object ? " " : "", verb->name, *verb->args ? " " : "",
		verb->args, verb->help);
}

static struct json_object *verb_row(const char *object, const struct cmd_verb *verb)
{
	struct json_object *row = json_object_new_object();
	char command[64];

	snprintf(command, sizeof(command), "%s%s%s", object, *object ? " " : "", verb->name);
	cmd_add_str(row, "command", command);
	cmd_add_str(row, "arguments", verb->args);
	cmd_add_str(row, "help", verb->help);
	return row;
}

static void add_rows(struct json_object *rows, const struct cmd_object *object)
{
	const struct cmd_verb *verb;

	if (!object->verbs) {
		cmd_append(rows, verb_row("", &object->self));
		return;
	}
	for (verb = object->verbs; verb->name; verb++)
		cmd_append(rows, verb_row(object->name, verb));
}

static void show_verb_help(const char *object, const struct cmd_verb *verb)
{
	struct json_object *rows;

	if (!opt.json) {
		print_verb(stdout, object, verb);
		return;
	}
	rows = json_object_new_array();
	cmd_append(rows, verb_row(object, verb));
	cmd_emit(rows, NULL);
}

static void show_object_help(const struct cmd_object *object)
{
	struct json_object *rows;
	const struct cmd_verb *verb;

	if (opt.json) {
		rows = json_object_new_array();
		add_rows(rows, object);
		cmd_emit(rows, NULL);
		return;
	}
	if (!object->verbs) {
		print_verb(stdout, "", &object->self);
		return;
	}
	printf("kvtier %s: %s\n\n", object->name, object->help);
	for (verb = object->verbs; verb->name; verb++)
		print_verb(stdout, object->name, verb);
}

static void print_verb_names(FILE *file, const struct cmd_object *object)
{
	const struct cmd_verb *verb;

	for (verb = object->verbs; verb->name; verb++)
		fprintf(file, "%s%s", verb == object->verbs ? "" : "|",
			verb->name);
	fputc('\n', file);
}

static void print_help(FILE *file)
{
	size_t i;

	fputs("Usage: kvtier [-j|-p] [-v] OBJECT VERB [ARGUMENTS]\n"
	      "       kvtier [-j|-p] [-v] COMMAND [ARGUMENTS]\n\n"
	      "Objects:\n", file);
	for (i = 0; i < ARRAY_SIZE(objects); i++) {
		if (!objects[i].verbs)
			continue;
		fprintf(file, "  %-8s %-44s ", objects[i].name,
			objects[i].help);
		print_verb_names(file, &objects[i]);
	}
	fputs("\nCommands:\n", file);
	for (i = 0; i < ARRAY_SIZE(objects); i++)
		if (!objects[i].verbs)
			fprintf(file, "  %-8s %s\n", objects[i].name,
				objects[i].self.help);
	fputs("\nOptions:\n"
	      "  -j, --json     JSON output, errors and help too\n"
	      "  -p, --pretty   the same, indented\n"
	      "  -v, --verbose  say what the library does\n"
	      "\nSizes take a unit: 64K, 2M, 1.5G. Names may be shortened as\n"
	      "long as they are unambiguous. More: kvtier help OBJECT, kvtier(1).\n",
	      file);
}

static void show_help(void)
{
	struct json_object *rows;
	size_t i;

	if (!opt.json) {
		print_help(stdout);
		return;
	}
	rows = json_object_new_array();
	for (i = 0; i < ARRAY_SIZE(objects); i++)
		add_rows(rows, &objects[i]);
	cmd_emit(rows, NULL);
}

/* An exact name, or the only one that starts with @word; NULL after a report. */
static const struct cmd_object *find_object(const char *word)
{
	const struct cmd_object *found = NULL;
	size_t i, len = strlen(word);

	for (i = 0; i < ARRAY_SIZE(objects); i++) {
		if (strncmp(objects[i].name, word, len))
			continue;
		if (!objects[i].name[len])
			return &objects[i];
		if (found) {
			cmd_usage("'%s' is ambiguous: %s or %s?", word,
				  found->name, objects[i].name);
			return NULL;
		}
		found = &objects[i];
	}
	if (!found)
		cmd_usage("unknown command '%s'", word);
	return found;
}

static const struct cmd_verb *find_verb(const struct cmd_object *object,
					const char *word)
{
	const struct cmd_verb *verb, *found = NULL;
	size_t len = strlen(word);

	for (verb = object->verbs; verb->name; verb++) {
		if (strncmp(verb->name, word, len))
			continue;
		if (!verb->name[len])
			return verb;
		if (found) {
			cmd_usage("'%s %s' is ambiguous: %s or %s?",
				  object->name, word, found->name, verb->name);
			return NULL;
		}
		found = verb;
	}
	if (!found)
		cmd_usage("'%s' cannot '%s'", object->name, word);
	return found;
}

int cmd_own_help(const char *command, const char *usage)
{
	struct json_object *rows, *row;

	if (!opt.json) {
		fputs(usage, stdout);
		return EXIT_OK;
	}
	row = verb_row("", &find_object(command)->self);
	cmd_add_str(row, "usage", usage);
	rows = json_object_new_array();
	cmd_append(rows, row);
	cmd_emit(rows, NULL);
	return EXIT_OK;
}

static bool is_help(const char *word)
{
	return word && (!strcmp(word, "help") || !strcmp(word, "-h") ||
			!strcmp(word, "--help"));
}

static int do_help(int argc, char **argv)
{
	const struct cmd_object *object;

	if (argc > 2)
		return cmd_usage("help takes one object");
	if (argc < 2) {
		show_help();
		return EXIT_OK;
	}
	object = find_object(is_help(argv[1]) ? "help" : argv[1]);
	if (!object)
		return EXIT_USAGE;
	if (object->own_help) {
		char name[16], help[] = "--help", *args[] = { name, help, NULL };

		snprintf(name, sizeof(name), "%s", object->name);
		optind = 1;
		return object->self.run(2, args);
	}
	show_object_help(object);
	return EXIT_OK;
}

static int do_version(int argc, char **argv)
{
	static const struct cmd_column cols[] = {
		{ "version", "kvtier", CMD_TEXT },
		{ "library", "libkvtier", CMD_TEXT },
		{ "abi_revision", "interface revision", CMD_COUNT },
		{ "libcxl", "with libcxl", CMD_TEXT },
		{ "libndctl", "with libndctl", CMD_TEXT },
		{ NULL, NULL, CMD_TEXT },
	};
	struct json_object *obj;

	(void)argv;
	if (argc > 1)
		return cmd_usage("version takes no arguments");
	obj = json_object_new_object();
	cmd_add_str(obj, "version", KVTIER_VERSION);
	cmd_add_str(obj, "library", kvtier_version());
	cmd_add_u64(obj, "abi_revision", KVTIER_ABI_REVISION);
#ifdef HAVE_LIBCXL
	cmd_add_bool(obj, "libcxl", true);
#else
	cmd_add_bool(obj, "libcxl", false);
#endif
#ifdef HAVE_LIBNDCTL
	cmd_add_bool(obj, "libndctl", true);
#else
	cmd_add_bool(obj, "libndctl", false);
#endif
	cmd_emit(obj, cols);
	return EXIT_OK;
}

static bool take_global(const char *arg)
{
	if (!strcmp(arg, "-j") || !strcmp(arg, "--json")) {
		opt.json = true;
		return true;
	}
	if (!strcmp(arg, "-p") || !strcmp(arg, "--pretty")) {
		opt.json = true;
		opt.pretty = true;
		return true;
	}
	if (!strcmp(arg, "-v") || !strcmp(arg, "--verbose")) {
		opt.verbose = true;
		return true;
	}
	return false;
}

/* Global options may stand anywhere before "--"; they are taken out. */
static int take_globals(int argc, char **argv)
{
	int i, kept = 1;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--"))
			break;
		if (!take_global(argv[i]))
			argv[kept++] = argv[i];
	}
	while (i < argc)
		argv[kept++] = argv[i++];
	argv[kept] = NULL;
	return kept;
}

static int run(const struct cmd_object *object, int argc, char **argv)
{
	const struct cmd_verb *verb = &object->self;

	if (is_help(argv[1]) && !object->own_help) {
		show_object_help(object);
		return EXIT_OK;
	}
	if (object->verbs) {
		if (argc < 2)
			return cmd_usage("kvtier %s needs a verb",
					 object->name);
		verb = find_verb(object, argv[1]);
		if (!verb)
			return EXIT_USAGE;
		argc--;
		argv++;
		if (argc > 1 && (!strcmp(argv[1], "-h") ||
				 !strcmp(argv[1], "--help"))) {
			show_verb_help(object->name, verb);
			return EXIT_OK;
		}
	}
	/* Ready for the command's own getopt_long(), which must not print. */
	optind = 1;
	opterr = 0;
	return verb->run(argc, argv);
}

/* What was not printed is not known: not even fsck's "errors were corrected" is. */
static int end(int status, bool fsck)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	/* There is nowhere for JSON to go. */
	opt.json = false;
	cmd_fail(EIO, "", "writing the output");
	return fsck ? status | EXIT_FSCK_OPERATION : EXIT_FAILED;
}

int main(int argc, char **argv)
{
	const struct cmd_object *object;

	argc = take_globals(argc, argv);
	if (argc < 2) {
		if (opt.json)
			return cmd_usage("no command");
		print_help(stderr);
		return EXIT_USAGE;
	}
	if (is_help(argv[1]))
		return end(do_help(argc - 1, argv + 1), false);
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))
		return end(do_version(1, argv + 1), false);
	object = find_object(argv[1]);
	if (!object)
		return EXIT_USAGE;
	return end(run(object, argc - 1, argv + 1), object->self.run == cmd_fsck);
}
