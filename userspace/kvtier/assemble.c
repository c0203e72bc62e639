// SPDX-License-Identifier: GPL-2.0
/*
 * kvtier pool members|assemble: pools that are on block devices or persistent memory,
 * and bringing them up.
 *
 * What is found is judged before the kernel is asked, so that the report can name
 * members that are missing. Stale members are left out of an assembly: they would only
 * make it fail. The kernel has the last word.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "assemble_error.h"
#include "assemble_watch.h"
#include "cmd.h"
#include "media.h"
#include "pmem.h"
#include "pool_cmds.h"
#include "scan.h"
#include "show.h"
#include "spec.h"

struct options {
	uint32_t id;
	bool degraded;
	bool scan;
	const char *uuid;
	unsigned int nr_specs;
	struct tier_spec specs[KVTIER_TIERS_MAX];
};

/* --- Members --------------------------------------------------------------- */

static struct json_object *member_json(const struct scan_member *m)
{
	struct json_object *obj = json_object_new_object();
	char uuid[MEDIA_UUID_MAX], name[MEDIA_NAME_MAX];
	const struct kvt_super *s = &m->super;

	cmd_add_str(obj, "device", m->path);
	if (m->has_super) {
		cmd_add_str(obj, "pool_uuid", media_uuid(s->pool, uuid));
		cmd_add_str(obj, "member_uuid", media_uuid(s->geo.member, uuid));
		cmd_add_str(obj, "name", media_tier_name(s, name));
		cmd_add_u64(obj, "rank", s->rank);
		cmd_add_str(obj, "state", media_state_name(s->state));
		cmd_add_u64(obj, "generation", s->generation);
		cmd_add_u64(obj, "size_bytes", s->geo.seg_bytes * s->geo.nr_segs);
	}
	/* Of somebody else's it is not found out. */
	if (m->err != -EMEDIUMTYPE)
		cmd_add_bool(obj, "in_use", m->in_use);
	if (scan_problem(m))
		cmd_add_str(obj, "problem", scan_problem(m));
	return obj;
}

static struct json_object *missing_json(const struct scan *s, size_t at)
{
	struct json_object *array = json_object_new_array();
	struct scan_uuid uuids[KVT_MEMBERS_MAX];
	char uuid[MEDIA_UUID_MAX];
	u32 i, nr = scan_missing(s, at, uuids);

	for (i = 0; i < nr; i++)
		cmd_append(array, json_object_new_string(media_uuid(uuids[i].b, uuid)));
	return array;
}

static struct json_object *pool_json(const struct scan *s, size_t at)
{
	struct json_object *obj = json_object_new_object();
	struct json_object *members = json_object_new_array();
	struct json_object *missing = missing_json(s, at);
	char uuid[MEDIA_UUID_MAX];
	bool good = !json_object_array_length(missing);
	size_t i;

	for (i = 0; i < s->nr; i++) {
		if (!scan_same_pool(&s->members[i], &s->members[at]))
			continue;
		good &= s->members[i].verdict == SCAN_GOOD ||
			s->members[i].verdict == SCAN_STALE;
		cmd_append(members, member_json(&s->members[i]));
	}
	cmd_add_str(obj, "pool_uuid", media_uuid(s->members[at].super.pool, uuid));
	cmd_add_bool(obj, "complete", good);
	cmd_add(obj, "members", members);
	cmd_add(obj, "missing", missing);
	return obj;
}

static struct json_object *scan_json(const struct scan *s)
{
	struct json_object *obj = json_object_new_object();
	struct json_object *pools = json_object_new_array();
	struct json_object *other = json_object_new_array();
	size_t i;

	for (i = 0; i < s->nr; i++) {
		if (scan_is_first(s, i))
			cmd_append(pools, pool_json(s, i));
		else if (!s->members[i].has_super)
			cmd_append(other, member_json(&s->members[i]));
	}
	cmd_add(obj, "pools", pools);
	cmd_add(obj, "unusable", other);
	return obj;
}

static const char *text_of(struct json_object *obj, const char *key)
{
	return json_object_get_string(json_object_object_get(obj, key));
}

static void print_pool(struct json_object *pool)
{
	static const struct cmd_column cols[] = {
		{ "device", "DEVICE", CMD_TEXT },
		{ "name", "TIER", CMD_TEXT },
		{ "rank", "RANK", CMD_COUNT },
		{ "state", "STATE", CMD_TEXT },
		{ "generation", "GENERATION", CMD_COUNT },
		{ "size_bytes", "SIZE", CMD_BYTES },
		{ "in_use", "IN USE", CMD_TEXT },
		{ "problem", "PROBLEM", CMD_TEXT },
		{ NULL, NULL, CMD_TEXT },
	};
	struct json_object *missing = json_object_object_get(pool, "missing");
	size_t i;

	printf("pool %s: %s\n", text_of(pool, "pool_uuid"),
	       json_object_get_boolean(json_object_object_get(pool, "complete")) ?
	       "complete" : "not complete");
	cmd_print_text(stdout, json_object_object_get(pool, "members"), cols);
	for (i = 0; i < json_object_array_length(missing); i++)
		printf("missing: member %s\n",
		       json_object_get_string(json_object_array_get_idx(missing, i)));
}

static void print_scan(struct json_object *obj)
{
	struct json_object *pools = json_object_object_get(obj, "pools");
	struct json_object *other = json_object_object_get(obj, "unusable"), *m;
	size_t i;

	for (i = 0; i < json_object_array_length(pools); i++) {
		if (i)
			putchar('\n');
		print_pool(json_object_array_get_idx(pools, i));
	}
	for (i = 0; i < json_object_array_length(other); i++) {
		m = json_object_array_get_idx(other, i);
		cmd_puts(stdout, text_of(m, "device"));
		printf(" %s\n", text_of(m, "problem"));
	}
	if (!json_object_array_length(pools) && !json_object_array_length(other))
		cmd_note("no device is a member of a pool");
}

/* Devices that are named; all others too with @more, or if there are none. */
static int look(struct scan *s, int argc, char **argv, bool more)
{
	int ret = scan_paths(s, argv + optind, argc - optind);

	if (!ret && (more || optind == argc))
		ret = scan_all(s);
	scan_judge(s);
	if (!ret)
		return EXIT_OK;
	return cmd_fail(ret, ret == -EACCES ? "block devices can be read by root" : NULL,
			"looking for members");
}

/* What udev imports of a device: see 64-kvtier.rules. */
static int print_for_udev(const struct scan *s)
{
	const struct scan_member *m = s->members;
	char uuid[MEDIA_UUID_MAX], name[MEDIA_NAME_MAX];

	if (s->nr != 1)
		return cmd_usage("pool members --export needs one device");
	if (m->err)
		return EXIT_FAILED;
	printf("ID_FS_USAGE=raid\nID_FS_TYPE=kvtier_member\n");
	printf("ID_FS_UUID=%s\n", media_uuid(m->super.pool, uuid));
	printf("ID_FS_UUID_SUB=%s\n", media_uuid(m->super.geo.member, uuid));
	printf("ID_FS_LABEL=%s\n", media_tier_name(&m->super, name));
	return EXIT_OK;
}

int pool_members(int argc, char **argv)
{
	static const struct option options[] = {
		{ "export", no_argument, NULL, 'e' },
		{ NULL, 0, NULL, 0 },
	};
	struct scan s = { 0 };
	struct json_object *obj;
	bool exports = false;
	int o, status;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (o != 'e')
			return cmd_usage("pool members: bad option '%s'", argv[optind - 1]);
		exports = true;
	}
	if (exports && optind == argc)
		return cmd_usage("pool members --export needs one device");
	if (exports && opt.json)
		return cmd_usage("pool members --export is for udev: it has no JSON");
	status = look(&s, argc, argv, false);
	if (!status && exports) {
		status = print_for_udev(&s);
	} else if (!status) {
		obj = scan_json(&s);
		if (opt.json)
			cmd_print_json(stdout, obj);
		else
			print_scan(obj);
		json_object_put(obj);
	}
	scan_free(&s);
	return status;
}

/* --- Assembly -------------------------------------------------------------- */

/* Memory only: block devices are members, or are attached when the pool is there. */
static int add_spec(struct options *o, const char *text)
{
	struct spec_error error;

	if (o->nr_specs == KVTIER_TIERS_MAX)
		return cmd_usage("a pool has at most %d tiers", KVTIER_TIERS_MAX);
	if (spec_parse(text, &o->specs[o->nr_specs], &error))
		return cmd_usage("--tier '%s': %s", text, error.text);
	if (o->specs[o->nr_specs].params.type == KVTIER_TIER_BDEV ||
	    o->specs[o->nr_specs].params.type == KVTIER_TIER_PMEM)
		return cmd_usage("--tier '%s': members are found, and new persistent devices attached afterwards: kvtier tier attach",
				 text);
	o->nr_specs++;
	return EXIT_OK;
}

static int parse(int argc, char **argv, struct options *o)
{
	static const struct option options[] = {
		{ "id", required_argument, NULL, 'i' },
		{ "tier", required_argument, NULL, 't' },
		{ "degraded", no_argument, NULL, 'd' },
		{ "scan", no_argument, NULL, 's' },
		{ "uuid", required_argument, NULL, 'u' },
		{ NULL, 0, NULL, 0 },
	};
	uint64_t id;
	int c, status;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'i':
			if (cmd_parse_u64(optarg, 255, &id))
				return cmd_usage("--id '%s' is not a number from 0 to 255",
						 optarg);
			o->id = (uint32_t)id;
			break;
		case 't':
			status = add_spec(o, optarg);
			if (status)
				return status;
			break;
		case 'd':
			o->degraded = true;
			break;
		case 's':
			o->scan = true;
			break;
		case 'u':
			o->uuid = optarg;
			break;
		default:
			return cmd_usage("pool assemble: bad option '%s'", argv[optind - 1]);
		}
	}
	return EXIT_OK;
}

/* What is wrong with the devices that were named, one by one. */
static int check_named(const struct scan *s)
{
	const struct scan_member *first = NULL, *m;
	size_t i;

	for (i = 0; i < s->nr; i++) {
		m = &s->members[i];
		if (!m->named)
			continue;
		if (m->verdict != SCAN_GOOD)
			return assemble_fail_member(m);
		if (first && !scan_same_pool(first, m))
			return cmd_fail(EXDEV, "see: kvtier pool members",
					"%s and %s are of different pools", first->path, m->path);
		first = m;
	}
	return EXIT_OK;
}

/* Is it to be assembled: asked for, and not up. */
static bool wanted(const struct scan *s, size_t at, const struct options *o)
{
	const struct scan_member *first = &s->members[at], *m;
	bool any_named = false, named = false, idle = false;
	char uuid[MEDIA_UUID_MAX];

	if (!scan_is_first(s, at))
		return false;
	if (o->uuid && strcasecmp(media_uuid(first->super.pool, uuid), o->uuid))
		return false;
	for (m = s->members; m < s->members + s->nr; m++) {
		any_named |= m->named;
		if (!scan_same_pool(m, first))
			continue;
		named |= m->named;
		idle |= m->verdict == SCAN_GOOD && !m->in_use;
	}
	return any_named ? named : idle;
}

#define LIST_MAX	(KVT_MEMBERS_MAX * MEDIA_UUID_MAX)

/* Members that are missing, with blanks between them. How many. */
static u32 list_missing(const struct scan *s, size_t at, char list[static LIST_MAX])
{
	struct scan_uuid uuids[KVT_MEMBERS_MAX];
	char uuid[MEDIA_UUID_MAX];
	u32 i, nr = scan_missing(s, at, uuids);
	size_t len = 0;

	list[0] = 0;
	for (i = 0; i < nr; i++)
		len += (size_t)snprintf(list + len, LIST_MAX - len, "%s%s", i ? " " : "",
					media_uuid(uuids[i].b, uuid));
	return nr;
}

/* One that cannot be used may well be the one that is missed: not to be given up lightly. */
static int fail_missing(const struct scan *s, const char *uuid, u32 nr, const char *list)
{
	bool unusable = false;
	size_t i;

	for (i = 0; i < s->nr; i++)
		unusable |= s->members[i].verdict == SCAN_UNUSABLE;
	return cmd_fail(ENOMEDIUM, unusable ?
			"devices were found that cannot be used as they are, maybe these: kvtier pool members; to give up what is on them: --degraded" :
			"to give up what is on them: --degraded; to see what there is: kvtier pool members",
			"pool %s lacks %u of its members%s%s", uuid, nr, *list ? ": " : "", list);
}

static int report_missing(const struct scan *s, size_t at)
{
	char list[LIST_MAX], uuid[MEDIA_UUID_MAX];
	u32 nr = list_missing(s, at, list);

	return nr ? fail_missing(s, media_uuid(s->members[at].super.pool, uuid), nr, list) :
		    EXIT_OK;
}

/* Which they are is what we have found; how many, the kernel knows. */
static void note_degraded(const struct kvtier_pool_assemble *a, const struct scan *s, size_t at)
{
	char list[LIST_MAX];

	if (a->nr_found >= a->nr_members)
		return;
	list_missing(s, at, list);
	cmd_note("pool %u is degraded: %u of %u members; missing %s", a->pool_id, a->nr_found,
		 a->nr_members, *list ? list : "ones are not known by name");
	cmd_note("what was on these alone is lost to it, and they are stale from now on: they can come back as new, empty members (kvtier tier attach)");
}

/* A snapshot that is being made is no reason to give up what is on a member for good. */
static int check_suspended(const struct scan *s, size_t at)
{
	char list[LIST_MAX], uuid[MEDIA_UUID_MAX];
	const struct scan_member *m;

	if (!list_missing(s, at, list))
		return EXIT_OK;
	for (m = s->members; m < s->members + s->nr; m++)
		if (m->err == -EAGAIN)
			return cmd_fail(EAGAIN, "try again, or resume it (dmsetup resume); to do without: name the devices to use",
					"pool %s lacks %s, and %s, which is suspended, may be it",
					media_uuid(s->members[at].super.pool, uuid), list, m->path);
	return EXIT_OK;
}

/* Paths for the kernel, or an exit status after a report. */
static int choose(const struct scan *s, size_t at, const struct options *o,
		  struct kvtier_assemble_device *devices, uint32_t *nr)
{
	const struct scan_member *m;

	*nr = 0;
	for (m = s->members; m < s->members + s->nr; m++) {
		if (!scan_same_pool(m, &s->members[at]))
			continue;
		if (m->verdict == SCAN_COPY)
			return cmd_fail(ENOTUNIQ, "name the devices to use; see: kvtier pool members",
					"%s is %s", m->path, scan_problem(m));
		if (m->verdict != SCAN_GOOD) {
			cmd_note("%s is left out: %s", m->path, scan_problem(m));
			continue;
		}
		if (*nr == KVTIER_TIERS_MAX || strlen(m->path) >= sizeof(devices->path))
			return cmd_fail(ENAMETOOLONG, NULL, "%s", m->path);
		memset(&devices[*nr], 0, sizeof(*devices));
		/* The kernel knows dax devices by name. */
		strcpy(devices[(*nr)++].path, m->dax[0] ? m->dax : m->path);
	}
	return o->degraded ? check_suspended(s, at) : report_missing(s, at);
}

static bool is_persistent(const struct kvtier_assemble_device *d)
{
	return !strchr(d->path, '/') && media_dax_is_persistent(d->path);
}

static int bind_persistent(const struct kvtier_assemble_device *devices, uint32_t nr,
			   const struct pmem_hold *hold)
{
	int status = EXIT_OK;
	uint32_t i;
	bool took;

	for (i = 0; i < nr && !status; i++)
		if (is_persistent(&devices[i]))
			status = pmem_bind(hold, devices[i].path, &took);
	return status;
}

/* None of them was with our driver before: see pmem_release_idle(). */
static void return_persistent(const struct kvtier_assemble_device *devices, uint32_t nr,
			      const struct pmem_hold *hold)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		if (is_persistent(&devices[i]))
			pmem_give_back(hold, devices[i].path);
}

/* What the kernel says of a device is worth more than what it says of them all. */
static int report_failed(const struct kvtier_pool_assemble *a, const struct scan *s, size_t at,
			 int err)
{
	const struct kvtier_assemble_device *d = (const void *)(uintptr_t)a->devices;
	char uuid[MEDIA_UUID_MAX];
	uint32_t i;

	media_uuid(s->members[at].super.pool, uuid);
	for (i = 0; i < a->nr_devices; i++)
		if (d[i].error)
			return assemble_fail_device(d[i].error, uuid, d[i].path);
	if (err == -ENOMEDIUM)
		return fail_missing(s, uuid, a->nr_members - a->nr_found, "");
	return assemble_fail_pool(err, uuid);
}

static bool is_busy(const struct kvtier_pool_assemble *a)
{
	const struct kvtier_assemble_device *d = (const void *)(uintptr_t)a->devices;
	uint32_t i;

	for (i = 0; i < a->nr_devices; i++)
		if (d[i].error == -EBUSY)
			return true;
	return false;
}

/* All that is on the members is read meanwhile; not before the kernel has all of them. */
static int ask_kernel(struct kvtier_ctl *ctl, struct kvtier_pool_assemble *a)
{
	const struct kvtier_pool_assemble asked = *a;
	struct assemble_watch w;
	unsigned int tries = 0;
	int ret;

	assemble_watch_begin(&w, a->pool_id);
	do {
		*a = asked;
		ret = kvtier_ctl_pool_assemble(ctl, a);
	} while (ret == -EBUSY && is_busy(a) && media_busy_again(&tries));
	assemble_watch_end(&w);
	return ret;
}

/* As for pool create; if that fails the pool is shut down again, members unharmed. */
static int attach_memory(struct kvtier_ctl *ctl, uint32_t pool_id, struct options *o)
{
	struct kvtier_tier_info taken[KVTIER_TIERS_MAX];
	struct kvtier_pool *pool;
	struct spec_error error;
	int nr, status, ret;
	unsigned int i;

	if (!o->nr_specs)
		return EXIT_OK;
	status = cmd_open_pool(pool_id, &pool);
	if (status)
		return status;
	nr = kvtier_pool_tiers(pool, taken);
	kvtier_pool_unref(pool);
	if (nr < 0)
		status = cmd_fail(nr, NULL, "querying pool %u", pool_id);
	else if (spec_complete(o->specs, o->nr_specs, taken, (unsigned int)nr, &error))
		status = cmd_usage("%s", error.text);
	for (i = 0; !status && i < o->nr_specs; i++)
		status = spec_attach(ctl, pool_id, &o->specs[i]);
	if (!status)
		return EXIT_OK;
	ret = kvtier_ctl_pool_destroy(ctl, pool_id);
	if (ret)
		cmd_note("pool %u could not be shut down again: %s", pool_id, strerror(-ret));
	return status;
}

static struct json_object *result_json(const struct kvtier_pool_assemble *a, const char *uuid,
				       struct json_object *missing)
{
	struct json_object *obj = json_object_new_object();

	cmd_add_u64(obj, "pool", a->pool_id);
	cmd_add_str(obj, "pool_uuid", uuid);
	cmd_add_u64(obj, "nr_members", a->nr_members);
	cmd_add_u64(obj, "nr_found", a->nr_found);
	cmd_add(obj, "missing", missing);
	cmd_add_u64(obj, "blocks", a->nr_blocks);
	cmd_add_u64(obj, "namespaces", a->nr_namespaces);
	cmd_add_u64(obj, "unclaimed", a->nr_unclaimed);
	cmd_add_u64(obj, "dead", a->nr_dead);
	cmd_add_u64(obj, "superseded", a->nr_superseded);
	cmd_add_u64(obj, "orphans", a->nr_orphans);
	cmd_add_u64(obj, "expired", a->nr_expired);
	cmd_add_u64(obj, "bad_records", a->nr_bad_records);
	cmd_add_u64(obj, "bad_bytes", a->nr_bad_bytes);
	cmd_add_u64(obj, "bad_reads", a->nr_bad_reads);
	cmd_add_u64(obj, "cycles", a->nr_cycles);
	cmd_add_u64(obj, "segments", a->nr_segments);
	cmd_add_u64(obj, "unsealed", a->nr_unsealed);
	cmd_add_u64(obj, "time_ns", a->time_ns);
	return obj;
}

static int assemble(struct kvtier_ctl *ctl, const struct scan *s, size_t at,
		    struct options *o, const struct pmem_hold *hold,
		    struct json_object *results)
{
	struct kvtier_assemble_device devices[KVTIER_TIERS_MAX];
	struct kvtier_pool_assemble a = KVTIER_POOL_ASSEMBLE_INIT;
	char uuid[MEDIA_UUID_MAX];
	int ret, status;

	media_uuid(s->members[at].super.pool, uuid);
	status = choose(s, at, o, devices, &a.nr_devices);
	if (status)
		return status;
	status = bind_persistent(devices, a.nr_devices, hold);
	a.devices = (uintptr_t)devices;
	a.pool_id = o->id;
	a.flags = o->degraded ? KVTIER_ASSEMBLE_DEGRADED : 0;
	if (!status) {
		ret = ask_kernel(ctl, &a);
		/* Given up they are, whatever becomes of the pool. */
		if (!ret)
			note_degraded(&a, s, at);
		status = ret ? report_failed(&a, s, at, ret) : attach_memory(ctl, a.pool_id, o);
	}
	if (status) {
		return_persistent(devices, a.nr_devices, hold);
		return status;
	}
	if (a.nr_unclaimed)
		cmd_note("pool %u: %llu namespaces wait for their owners: kvtier ns claim",
			 a.pool_id, (unsigned long long)a.nr_unclaimed);
	cmd_append(results, result_json(&a, uuid, missing_json(s, at)));
	return EXIT_OK;
}

/* One after the other, up to the first that fails. */
static int assemble_each(struct kvtier_ctl *ctl, const struct scan *s, struct options *o,
			 const struct pmem_hold *hold, struct json_object *results)
{
	struct json_object *error = NULL;
	int status = EXIT_OK;
	size_t i;

	opt.error = &error;
	for (i = 0; !status && i < s->nr; i++)
		if (wanted(s, i, o))
			status = assemble(ctl, s, i, o, hold, results);
	opt.error = NULL;
	/* What is up has to be told, too: the array ends with what went wrong. */
	if (error)
		cmd_append(results, error);
	return status;
}

static int assemble_wanted(const struct scan *s, struct options *o, const struct pmem_hold *hold)
{
	static const struct cmd_column cols[] = {
		{ "pool", "POOL", CMD_COUNT },
		{ "pool_uuid", "UUID", CMD_TEXT },
		{ "nr_found", "MEMBERS", CMD_COUNT },
		{ "blocks", "BLOCKS", CMD_COUNT },
		{ "namespaces", "NAMESPACES", CMD_COUNT },
		{ "unclaimed", "UNCLAIMED", CMD_COUNT },
		{ "bad_records", "DAMAGED", CMD_COUNT },
		{ "time_ns", "TIME", CMD_NS },
		{ NULL, NULL, CMD_TEXT },
	};
	struct json_object *results;
	struct kvtier_ctl *ctl;
	size_t i, nr = 0;
	int status;

	for (i = 0; i < s->nr; i++)
		nr += wanted(s, i, o);
	if (!nr)
		return cmd_fail(ENOENT, "see: kvtier pool members, kvtier pool list",
				"there is no pool to assemble");
	if (nr > 1 && (o->id != KVTIER_POOL_ANY_ID || o->nr_specs))
		return cmd_usage("there are %zu pools: say which, with --uuid or a device", nr);
	status = cmd_open_ctl(&ctl);
	if (status)
		return status;
	results = json_object_new_array();
	status = assemble_each(ctl, s, o, hold, results);
	kvtier_ctl_unref(ctl);
	nr = json_object_array_length(results);
	if (status && opt.json && nr == 1) {
		cmd_emit(json_object_get(json_object_array_get_idx(results, 0)), NULL);
		json_object_put(results);
	} else if (nr) {
		cmd_emit(results, cols);
	} else {
		json_object_put(results);
	}
	return status;
}

/* Is there a persistent device to be moved? */
static bool any_dax(const struct scan *s)
{
	size_t i;

	for (i = 0; i < s->nr; i++)
		if (s->members[i].dax[0])
			return true;
	return false;
}

int pool_assemble(int argc, char **argv)
{
	struct options o = { .id = KVTIER_POOL_ANY_ID };
	struct pmem_hold hold = PMEM_HOLD_NONE;
	struct scan s = { 0 };
	unsigned int i;
	int status;

	status = parse(argc, argv, &o);
	for (i = 0; !status && i < o.nr_specs; i++)
		status = spec_check_device(&o.specs[i], false, NULL);
	if (!status && pmem_hold_begin(&hold, true))
		cmd_note("persistent dax devices cannot be kept from being moved meanwhile");
	pmem_release_idle(&hold);
	if (!status)
		status = look(&s, argc, argv, o.scan);
	/* Others need not wait for a pool that has none. */
	if (!any_dax(&s))
		pmem_hold_end(&hold);
	if (!status)
		status = check_named(&s);
	if (!status)
		status = assemble_wanted(&s, &o, &hold);
	pmem_hold_end(&hold);
	scan_free(&s);
	return status;
}
