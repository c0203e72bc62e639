// SPDX-License-Identifier: GPL-2.0
/*
 * kvtier fsck: the command. What is checked and repaired is in fsck.h.
 *
 * Exit status as of fsck(8), the bits of all devices together.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include "cmd.h"
#include "fsck.h"

#define EXIT_FIXED	1
#define EXIT_LEFT	4
#define EXIT_FSCK_USAGE	16

#define SHOWN_MAX	100u	/* problems of a kind that are listed */
#define ROUNDS_MAX	4	/* of repairing and checking again */

struct fsck_options {
	bool repair;
	bool payload;
	bool verbose;
};

/* One device on its way through. */
struct run {
	const struct fsck_options *o;
	struct json_object *problems;
	u64 shown[FSCK_NR];
	u64 hidden;
	u64 hidden_errors;
};

/* The text with the number in it. */
static void describe(const struct fsck_problem *p, char *text, size_t room)
{
	const char *from = fsck_text(p->what), *at = strstr(from, "%N");

	if (at)
		snprintf(text, room, "%.*s%llu%s", (int)(at - from), from,
			 (unsigned long long)p->number, at + 2);
	else
		snprintf(text, room, "%s", from);
}

static bool of_super(enum fsck_what what)
{
	return what <= FSCK_SUPER_DIFFERS;
}

static void on_problem(void *ctx, const struct fsck_problem *p)
{
	struct run *r = ctx;
	struct json_object *obj;
	char text[256];

	if (r->shown[p->what]++ >= SHOWN_MAX) {
		r->hidden++;
		r->hidden_errors += p->severity == FSCK_ERROR;
		return;
	}
	describe(p, text, sizeof(text));
	obj = json_object_new_object();
	cmd_add_str(obj, "problem", fsck_name(p->what));
	cmd_add_str(obj, "severity", p->severity == FSCK_ERROR ? "error" : "note");
	if (p->seg != FSCK_NOWHERE)
		cmd_add_u64(obj, of_super(p->what) ? "superblock" : "segment", p->seg);
	if (p->unit != FSCK_NOWHERE)
		cmd_add_u64(obj, "unit", p->unit);
	cmd_add_str(obj, "text", text);
	if (p->fix)
		cmd_add_str(obj, "repair", fsck_fix_text(p->fix));
	cmd_append(r->problems, obj);
}

static void print_problem(struct json_object *obj, const char *fixes)
{
	const char *key = json_object_object_get(obj, "superblock") ? "superblock" : "segment";
	struct json_object *seg = json_object_object_get(obj, key);
	struct json_object *unit = json_object_object_get(obj, "unit");
	struct json_object *fix = json_object_object_get(obj, "repair");

	printf("  %s: ", json_object_get_string(json_object_object_get(obj, "severity")));
	if (seg)
		printf("%s %s", key, json_object_get_string(seg));
	if (unit)
		printf(", unit %s", json_object_get_string(unit));
	printf("%s%s (%s)\n", seg ? ": " : "",
	       json_object_get_string(json_object_object_get(obj, "text")),
	       json_object_get_string(json_object_object_get(obj, "problem")));
	if (fix)
		printf("    %s: %s\n", fixes, json_object_get_string(fix));
}

static struct json_object *counts_json(const struct fsck *f)
{
	struct json_object *obj = json_object_new_object();

	cmd_add_u64(obj, "segments", f->geo.nr_segs);
	cmd_add_u64(obj, "sealed", f->count.sealed);
	cmd_add_u64(obj, "unsealed", f->count.unsealed);
	cmd_add_u64(obj, "ended", f->count.ended);
	cmd_add_u64(obj, "free", f->count.free);
	cmd_add_u64(obj, "blocks", f->count.blocks);
	cmd_add_u64(obj, "bytes", f->count.bytes);
	cmd_add_u64(obj, "dead", f->count.dead);
	cmd_add_u64(obj, "kills", f->count.kills);
	cmd_add_u64(obj, "namespaces", f->count.namespaces);
	cmd_add_u64(obj, "payloads_verified", f->count.payloads);
	return obj;
}

static void add_member(struct json_object *obj, const struct fsck *f)
{
	const struct kvt_super *s = &f->supers.pick.super;
	char uuid[MEDIA_UUID_MAX], name[MEDIA_NAME_MAX];

	if (f->supers.pick.err)
		return;
	cmd_add_str(obj, "pool_uuid", media_uuid(s->pool, uuid));
	cmd_add_str(obj, "member_uuid", media_uuid(s->geo.member, uuid));
	cmd_add_str(obj, "name", media_tier_name(s, name));
	cmd_add_str(obj, "state", media_state_name(s->state));
	cmd_add_u64(obj, "generation", s->generation);
}

static void add_list(struct json_object *obj, const char *key, const char *key_hidden,
		     const char *key_errors, struct run *r)
{
	cmd_add(obj, key, r->problems);
	if (r->hidden)
		cmd_add_u64(obj, key_hidden, r->hidden);
	if (r->hidden_errors)
		cmd_add_u64(obj, key_errors, r->hidden_errors);
}

/* One check. 0 or -errno; the problems are in @r. */
static int check(struct media_dev *d, const struct fsck_options *o, struct run *r,
		 struct fsck *f)
{
	memset(r, 0, sizeof(*r));
	r->o = o;
	r->problems = json_object_new_array();
	memset(f, 0, sizeof(*f));
	f->media = &d->media;
	f->payload = o->payload;
	f->report = on_problem;
	f->ctx = r;
	return fsck_run(f);
}

/*
 * Checks, and repairs as long as that does something. The list is that of the first
 * check, the counts and what is left are those of the last.
 */
static int rounds(struct media_dev *d, const struct fsck_options *o, struct json_object *obj,
		  struct fsck *f, u64 *fixed)
{
	struct run r;
	u64 now = 0;
	u32 round;
	int ret;

	ret = check(d, o, &r, f);
	add_list(obj, "problems", "not_listed", "errors_not_listed", &r);
	for (round = 0; !ret && o->repair && f->fixable && round < ROUNDS_MAX; round++) {
		ret = fsck_repair(f, &now);
		*fixed += now;
		json_object_object_del(obj, "refused");
		if (f->refused)
			cmd_add_str(obj, "refused", fsck_refused_text(f->refused));
		if (ret || !now)
			break;
		fsck_fini(f);
		ret = check(d, o, &r, f);
		if (round) {
			json_object_object_del(obj, "left");
			json_object_object_del(obj, "left_not_listed");
			json_object_object_del(obj, "left_errors_not_listed");
		}
		add_list(obj, "left", "left_not_listed", "left_errors_not_listed", &r);
	}
	return ret;
}

static int operation_failed(struct json_object *obj, int ret, const char *path)
{
	char text[512], name[MEDIA_NAME_MAX];

	if (ret == -EBUSY && media_is_dax(path, name))
		snprintf(text, sizeof(text), "%s cannot be looked at unless the device_dax driver has it; take it from kvtier's: kvtier cxl unbind %s",
			 path, name);
	else if (ret == -EBUSY)
		snprintf(text, sizeof(text), "%s is in use: a pool, a mount or another check has it",
			 path);
	else if (ret == -EMEDIUMTYPE || ret == -EPROTONOSUPPORT || ret == -EROFS)
		snprintf(text, sizeof(text), "%s %s", path, media_error_text(ret));
	else if (ret == -EOPNOTSUPP)
		snprintf(text, sizeof(text), "%s has zones that are not all sequential and alike",
			 path);
	else if (ret == -EOVERFLOW || ret == -ETOOMANYREFS)
		snprintf(text, sizeof(text), "%s has as many zones partly written as it allows: finish or reset some that are not the pool's",
			 path);
	else if (ret == -ESTALE)
		snprintf(text, sizeof(text), "%s was replaced by something else while it was opened",
			 path);
	else if (ret == -EINVAL)
		snprintf(text, sizeof(text), "%s is neither a block device nor a file", path);
	else
		snprintf(text, sizeof(text), "%s: %s", path, strerror(-ret));
	cmd_add_str(obj, "failed", text);
	return EXIT_FSCK_OPERATION;
}

static int check_device(const char *path, const struct fsck_options *o, struct json_object *obj)
{
	struct media_dev d;
	struct fsck f = { 0 };
	int ret, status;
	u64 fixed = 0;

	cmd_add_str(obj, "device", path);
	ret = media_open(&d, path, o->repair);
	if (ret)
		return operation_failed(obj, ret, path);
	if (d.in_use)
		cmd_add_bool(obj, "in_use", true);
	ret = rounds(&d, o, obj, &f, &fixed);
	add_member(obj, &f);
	cmd_add_u64(obj, "errors", f.errors);
	cmd_add_u64(obj, "notes", f.notes);
	cmd_add_u64(obj, "repaired", fixed);
	cmd_add(obj, "counts", counts_json(&f));
	status = (fixed ? EXIT_FIXED : 0) | (f.errors ? EXIT_LEFT : 0);
	if (ret)
		status |= operation_failed(obj, ret, path);
	fsck_fini(&f);
	media_close(&d);
	return status;
}

static u64 number(struct json_object *obj, const char *key)
{
	return json_object_get_uint64(json_object_object_get(obj, key));
}

static void print_list(struct json_object *list, const char *fixes, bool notes)
{
	size_t i;

	for (i = 0; list && i < json_object_array_length(list); i++) {
		struct json_object *p = json_object_array_get_idx(list, i);

		if (notes || strcmp(json_object_get_string(
				    json_object_object_get(p, "severity")), "note"))
			print_problem(p, fixes);
	}
}

static void print_more(struct json_object *obj, const char *key)
{
	if (json_object_object_get_ex(obj, key, NULL))
		printf("  and %llu more\n", (unsigned long long)number(obj, key));
}

static const char *verdict(int status)
{
	if (status & EXIT_FSCK_OPERATION)
		return "could not be checked";
	if (status & EXIT_LEFT)
		return status & EXIT_FIXED ? "repaired, errors are left" : "has errors";
	return status & EXIT_FIXED ? "repaired" : "good";
}

static void print_device(struct json_object *obj, const struct fsck_options *o, int status)
{
	const char *device = json_object_get_string(json_object_object_get(obj, "device"));
	struct json_object *c = json_object_object_get(obj, "counts"), *left, *failed;
	struct json_object *refused = json_object_object_get(obj, "refused");
	/* With something refused it is not told here what was done. */
	const char *fixes = refused ? "repair" :
			    status & EXIT_FIXED ? "repaired" : "--repair would";

	print_list(json_object_object_get(obj, "problems"), fixes, o->verbose);
	print_more(obj, o->verbose ? "not_listed" : "errors_not_listed");
	if (json_object_object_get_ex(obj, "left", &left) && status & EXIT_LEFT) {
		printf("  left:\n");
		print_list(left, refused ? "repair" : "--repair would", false);
		print_more(obj, "left_errors_not_listed");
	}
	if (refused)
		printf("  not repaired: %s\n", json_object_get_string(refused));
	if (json_object_object_get_ex(obj, "failed", &failed))
		cmd_note("%s", json_object_get_string(failed));
	if (json_object_object_get_ex(obj, "in_use", NULL))
		cmd_note("%s is in use: what is found may not be so", device);
	cmd_puts(stdout, device);
	if (!c || !number(c, "segments")) {
		printf(": %s\n", verdict(status));
		return;
	}
	printf(": %s: %s, %llu segments (%llu sealed, %llu unsealed, %llu free), %llu blocks, %llu namespaces, %llu notes\n",
	       verdict(status),
	       json_object_get_string(json_object_object_get(obj, "state")),
	       (unsigned long long)number(c, "segments"),
	       (unsigned long long)number(c, "sealed"),
	       (unsigned long long)number(c, "unsealed"),
	       (unsigned long long)(number(c, "free") + number(c, "ended")),
	       (unsigned long long)number(c, "blocks"),
	       (unsigned long long)number(c, "namespaces"),
	       (unsigned long long)number(obj, "notes"));
}

static int parse(int argc, char **argv, struct fsck_options *o)
{
	static const struct option options[] = {
		{ "repair", no_argument, NULL, 'r' },
		{ "payload", no_argument, NULL, 'p' },
		{ "notes", no_argument, NULL, 'n' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'r':
			o->repair = true;
			break;
		case 'p':
			o->payload = true;
			break;
		case 'n':
			o->verbose = true;
			break;
		default:
			return cmd_usage("fsck: bad option '%s'", argv[optind - 1]);
		}
	}
	if (optind == argc)
		return cmd_usage("fsck needs a device or an image file");
	return EXIT_OK;
}

int cmd_fsck(int argc, char **argv)
{
	struct fsck_options o = { .verbose = opt.verbose };
	struct json_object *all, *obj;
	int status = 0, one, i;

	if (parse(argc, argv, &o))
		return EXIT_FSCK_USAGE;
	cmd_no_memory = EXIT_FSCK_OPERATION;
	all = json_object_new_array();
	for (i = optind; i < argc; i++) {
		obj = json_object_new_object();
		one = check_device(argv[i], &o, obj);
		cmd_add_u64(obj, "status", (uint64_t)one);
		status |= one;
		if (!opt.json)
			print_device(obj, &o, one);
		cmd_append(all, obj);
	}
	if (opt.json)
		cmd_print_json(stdout, all);
	json_object_put(all);
	return status;
}
