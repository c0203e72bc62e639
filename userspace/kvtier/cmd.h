/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What every command of the kvtier tool uses.
 *
 * A command is a row of a static table. It parses its own arguments, does its
 * work and hands *one* JSON object to cmd_emit(), which prints it as JSON or, by
 * a column table, as text: the two forms cannot drift apart. Whatever goes wrong
 * is reported through cmd_fail() or cmd_usage(), which print an error object in
 * JSON mode and give the exit status to return: 0 done, 1 failed, 2 usage.
 *
 * -j/--json, -p/--pretty and -v/--verbose are taken out of the command line
 * before a command sees it; they are in @opt.
 */
#ifndef KVTIER_CMD_H
#define KVTIER_CMD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <json-c/json.h>
#include <kvtier/libkvtier.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define EXIT_OK		0
#define EXIT_FAILED	1
#define EXIT_USAGE	2
/* fsck's is of bits, see kvtier-fsck(8); this one: it could not be done. */
#define EXIT_FSCK_OPERATION 8

struct cmd_options {
	bool json;	/* print JSON instead of text */
	bool pretty;	/* indent it; implies json */
	bool verbose;	/* library's log to stderr */
	struct json_object **error; /* an error goes there instead of being printed as JSON */
};

extern struct cmd_options opt;
extern int cmd_no_memory;	/* exit status when there is none left for the output */

/**
 * struct cmd_verb - one command
 * @name: verb; unambiguous prefixes are accepted
 * @args: synopsis after the verb, "" if there is nothing
 * @help: one line
 * @run:  argv[0] is the verb; returns an exit status
 */
struct cmd_verb {
	const char *name;
	const char *args;
	const char *help;
	int (*run)(int argc, char **argv);
};

/**
 * struct cmd_object - an object with verbs, or a command of one word
 * @verbs: ends with a row whose @name is NULL; NULL: @self is the command
 * @own_help: the command takes --help itself, and calls cmd_own_help()
 */
struct cmd_object {
	const char *name;
	const char *help;
	const struct cmd_verb *verbs;
	struct cmd_verb self;
	bool own_help;
};

extern const struct cmd_verb cxl_verbs[], pool_verbs[], tier_verbs[],
			      ns_verbs[];

int cmd_stat(int argc, char **argv);
int cmd_put(int argc, char **argv);
int cmd_get(int argc, char **argv);
int cmd_ls(int argc, char **argv);
int cmd_rm(int argc, char **argv);
int cmd_fsck(int argc, char **argv);
int cmd_dump(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_gen(int argc, char **argv);

/* What @command says of itself, in JSON beside its row of the table. Returns EXIT_OK. */
int cmd_own_help(const char *command, const char *usage);

/* --- Reporting ----------------------------------------------------------- */

/**
 * cmd_fail - report that the command failed
 * @err:  positive or negative errno, 0 if there is none
 * @hint: what to do about it, or NULL for the usual advice for @err, if any
 * @fmt:  what was tried
 *
 * Text (stderr): "kvtier: WHAT: strerror" and "  hint". JSON (stdout):
 * {"error":{"message","errno","name","hint"}}. Returns EXIT_FAILED.
 */
int cmd_fail(int err, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* As cmd_fail(), where @fmt says already what @err means. */
int cmd_fail_said(int err, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The command line is wrong: says why and where help is. Returns EXIT_USAGE. */
int cmd_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Something worth knowing, on stderr in JSON mode too: it is no part of the result. */
void cmd_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* --- Text ---------------------------------------------------------------- */

/*
 * What comes from media, traces and command lines is not printed as it is: it could tell
 * a terminal anything. Control characters, and bytes that are no UTF-8, become \xNN.
 */
void cmd_puts(FILE *file, const char *text);
/* Bytes that cmd_puts() would print. */
size_t cmd_puts_len(const char *text);
/* A JSON string, which has control characters of its own but must be UTF-8. */
struct json_object *cmd_string(const char *text);

/* --- Output -------------------------------------------------------------- */

enum cmd_format {
	CMD_TEXT,	/* as it is */
	CMD_COUNT,	/* number */
	CMD_BYTES,	/* 1.5G */
	CMD_NS,		/* 12.3us */
	CMD_PERCENT,	/* a double 0..1 as 12.3% */
};

/**
 * struct cmd_column - how a member of the object is shown in text
 * @key:    member; the table ends with a row whose @key is NULL
 * @title:  heading, or label
 */
struct cmd_column {
	const char *key;
	const char *title;
	enum cmd_format format;
};

/**
 * cmd_emit - print a command's result; takes over the reference to @obj
 * @cols: for the text form: an array is printed as a table, an object as lines
 *        of labels and values; members without a column are left out. NULL: text
 *        mode prints nothing
 */
void cmd_emit(struct json_object *obj, const struct cmd_column *cols);

/* An array member of a result that is shown as a table. */
struct cmd_table {
	const char *key;	/* the last row's is NULL */
	const struct cmd_column *cols;
};

/* As cmd_emit, followed by the tables of array members; empty ones are left out. */
void cmd_emit_nested(struct json_object *obj, const struct cmd_column *cols,
		     const struct cmd_table *tables);

/* As cmd_emit, on @file and without taking the reference. */
void cmd_print_text(FILE *file, struct json_object *obj,
		    const struct cmd_column *cols);
void cmd_print_json(FILE *file, struct json_object *obj);

#define CMD_HUMAN_MAX	32

/* "1.5G": at most four significant figures; exact powers have no fraction. */
const char *cmd_human_bytes(uint64_t bytes, char buf[static CMD_HUMAN_MAX]);
const char *cmd_human_ns(uint64_t ns, char buf[static CMD_HUMAN_MAX]);

/* json_object_object_add() for the types we have; they cannot fail (the tool
 * ends with a message when it is out of memory).
 */
void cmd_add_u64(struct json_object *obj, const char *key, uint64_t value);
void cmd_add_str(struct json_object *obj, const char *key, const char *value);
void cmd_add_double(struct json_object *obj, const char *key, double value);
void cmd_add_bool(struct json_object *obj, const char *key, bool value);
/* Takes over the reference to @value. */
void cmd_add(struct json_object *obj, const char *key,
	     struct json_object *value);
/* Appends @value, whose reference it takes over, to an array. */
void cmd_append(struct json_object *array, struct json_object *value);

/* --- Arguments ----------------------------------------------------------- */

/* 0 or -EINVAL / -ERANGE; nothing is written on failure. */

/* "4096", "64K", "2M", "1.5G", "1T"; also KiB, MiB, KB (1024 too). */
int cmd_parse_bytes(const char *text, uint64_t *bytes);
/* "250ms", "10s", "1m", "5us", "40ns"; a bare number is seconds. */
int cmd_parse_duration(const char *text, uint64_t *ns);
/* Decimal or 0x hex, whole string, at most @max. */
int cmd_parse_u64(const char *text, uint64_t max, uint64_t *value);
/* "3", "kvtier3" or "/dev/kvtier3". */
int cmd_parse_pool(const char *text, uint32_t *pool_id);
/* 64 hex digits. */
int cmd_parse_key(const char *text, struct kvtier_key *key);
/* SHA-256 of the string's bytes. */
void cmd_hash_key(const char *text, struct kvtier_key *key);
void cmd_format_key(const uint8_t *key, char hex[static 2 * KVTIER_KEY_BYTES + 1]);

/* --- Devices ------------------------------------------------------------- */

/* Open, or report why not and what to do: an exit status, EXIT_OK with a handle. */
int cmd_open_ctl(struct kvtier_ctl **ctl);
int cmd_open_pool(uint32_t pool_id, struct kvtier_pool **pool);

/* Ids of all pools, to be freed; their number or -errno (ENOENT: no module). */
int cmd_pool_ids(uint32_t **ids);

/**
 * cmd_pick_pool - the pool a command works on
 * @text: as typed, or NULL: the only pool there is
 *
 * Returns an exit status; reports when there is none, or more than one.
 */
int cmd_pick_pool(const char *text, uint32_t *pool_id);

#endif /* KVTIER_CMD_H */
