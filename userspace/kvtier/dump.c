// SPDX-License-Identifier: GPL-2.0
/*
 * kvtier dump: what is on a member, as it is there.
 *
 * Each part is read and printed entry by entry, so memory does not depend on what is
 * on the device. In text an entry is a line of "KEY=VALUE", in JSON an object in the
 * array of its part. Nothing is judged; that is what fsck is for.
 *
 * Secrets are not shown, nor what they are checked by; of salts, enough to tell two.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include "cmd.h"
#include "media.h"

enum {
	PART_SUPER = 1,
	PART_SEGMENTS = 2,
	PART_BATCHES = 4,
	PART_RECORDS = 8,
	PART_NAMESPACES = 16,
	PART_KILLS = 32,
};

/**
 * struct dump - one run
 * @only:  segment, or U32_MAX for all
 * @part:  name of an entry of the part being printed
 * @first: nothing of it has been printed yet
 */
struct dump {
	struct media_dev dev;
	struct media_supers supers;
	struct kvt_geometry geo;
	unsigned int parts;
	u32 only;
	const char *part;
	bool first;
	u8 *buf;
};

/* --- Output ---------------------------------------------------------------- */

static void print_line(const struct dump *d, struct json_object *obj)
{
	struct json_object_iterator at = json_object_iter_begin(obj);
	struct json_object_iterator end = json_object_iter_end(obj);

	printf("%s", d->part);
	for (; !json_object_iter_equal(&at, &end); json_object_iter_next(&at))
		printf(" %s=%s", json_object_iter_peek_name(&at),
		       json_object_get_string(json_object_iter_peek_value(&at)));
	putchar('\n');
}

/* Takes over the reference. */
static void entry(struct dump *d, struct json_object *obj)
{
	if (opt.json) {
		printf("%s%s", d->first ? "" : ",", opt.pretty ? "\n" : "");
		fputs(json_object_to_json_string_ext(obj, JSON_C_TO_STRING_NOSLASHESCAPE |
						     (opt.pretty ? JSON_C_TO_STRING_SPACED : 0)),
		      stdout);
	} else {
		print_line(d, obj);
	}
	d->first = false;
	json_object_put(obj);
}

static void part_begin(struct dump *d, const char *array, const char *part)
{
	d->part = part;
	d->first = true;
	if (opt.json)
		printf(",%s\"%s\":[", opt.pretty ? "\n" : "", array);
}

static void part_end(const struct dump *d)
{
	(void)d;
	if (opt.json)
		putchar(']');
}

static void add_hex(struct json_object *obj, const char *key, const u8 *data, u32 len)
{
	char text[2 * KVT_NS_IDENTITY + 1];
	u32 i;

	for (i = 0; i < len; i++)
		sprintf(text + 2 * i, "%02x", data[i]);
	text[2 * len] = 0;
	cmd_add_str(obj, key, text);
}

static void add_hex32(struct json_object *obj, const char *key, u32 value)
{
	char text[9];

	snprintf(text, sizeof(text), "%08x", value);
	cmd_add_str(obj, key, text);
}

/* --- Superblocks ----------------------------------------------------------- */

static void add_members(struct json_object *obj, const struct kvt_super *s)
{
	struct json_object *array = json_object_new_array(), *m;
	char uuid[MEDIA_UUID_MAX];
	u32 i;

	for (i = 0; i < s->nr_members; i++) {
		m = json_object_new_object();
		cmd_add_str(m, "member_uuid", media_uuid(s->members[i].uuid, uuid));
		if (kvt_member_past(&s->members[i]))
			cmd_add(m, "past", json_object_new_boolean(true));
		else
			cmd_add_u64(m, "generation", s->members[i].generation);
		cmd_append(array, m);
	}
	cmd_add(obj, "members", array);
}

static void add_super(struct json_object *obj, const struct kvt_super *s)
{
	const struct kvt_geometry *g = &s->geo;
	char uuid[MEDIA_UUID_MAX], name[MEDIA_NAME_MAX];

	cmd_add_str(obj, "pool_uuid", media_uuid(s->pool, uuid));
	cmd_add_str(obj, "member_uuid", media_uuid(g->member, uuid));
	cmd_add_u64(obj, "generation", s->generation);
	cmd_add_str(obj, "state", media_state_name(s->state));
	cmd_add_u64(obj, "compat", s->compat);
	cmd_add_u64(obj, "ro_compat", s->ro_compat);
	cmd_add_u64(obj, "incompat", s->incompat);
	cmd_add_u64(obj, "device_bytes", s->device_bytes);
	cmd_add_u64(obj, "first_byte", g->first_byte);
	cmd_add_u64(obj, "segment_bytes", g->seg_bytes);
	cmd_add_u64(obj, "unit_bytes", g->unit_bytes);
	cmd_add_u64(obj, "nr_segments", g->nr_segs);
	if (g->zone_bytes) {
		cmd_add_u64(obj, "zone_bytes", g->zone_bytes);
		cmd_add_u64(obj, "zone_stride", g->zone_stride);
	}
	cmd_add_u64(obj, "life_limit", s->life_limit);
	cmd_add_u64(obj, "seq_limit", s->seq_limit);
	cmd_add_u64(obj, "namespace_limit", s->ns_limit);
	cmd_add_u64(obj, "created_ns", s->created_ns);
	cmd_add_u64(obj, "updated_ns", s->updated_ns);
	cmd_add_u64(obj, "tier_type", s->tier_type);
	cmd_add_u64(obj, "rank", s->rank);
	cmd_add_str(obj, "name", media_tier_name(s, name));
	add_members(obj, s);
}

static void dump_supers(struct dump *d)
{
	struct json_object *obj;
	u32 i;

	part_begin(d, "superblocks", "superblock");
	for (i = 0; i < KVT_SUPER_SLOTS; i++) {
		enum media_super_state state = d->supers.state[i];

		obj = json_object_new_object();
		cmd_add_u64(obj, "superblock", i);
		cmd_add_str(obj, "found", media_super_state_name(state));
		cmd_add_bool(obj, "valid", !d->supers.pick.err && d->supers.pick.slot == i);
		if (state == MEDIA_SUPER_GOOD || state == MEDIA_SUPER_NEWER)
			add_super(obj, &d->supers.super[i]);
		entry(d, obj);
	}
	part_end(d);
}

/* --- Segments and batches -------------------------------------------------- */

static int dump_read(void *ctx, u64 byte, void *buf, u32 len)
{
	struct dump *d = ctx;

	return d->dev.media.read(d->dev.media.ctx, byte, buf, len);
}

static void recover(struct dump *d, u32 seg, const struct kvt_recover_sink *sink,
		    struct kvt_seg_found *found)
{
	struct kvt_recover r = {
		.geo = &d->geo,
		.read = dump_read,
		.sink = sink,
		.ctx = d,
		.buf = d->buf,
		.buf_bytes = KVT_RECOVER_BUF_MIN,
		.entries_only = true,
	};

	kvt_recover_segment(&r, seg, found);
}

static void no_block(void *ctx, u32 seg, u64 life, const struct kvt_rec *r)
{
	(void)ctx;
	(void)seg;
	(void)life;
	(void)r;
}

static void add_footer(struct dump *d, struct json_object *obj, u32 seg)
{
	struct kvt_footer_info f;

	if (dump_read(d, kvt_geo_byte(&d->geo, seg, d->geo.seg_units - 1), d->buf,
		      KVT_UNIT_BYTES_MIN) ||
	    !kvt_footer_decode(&d->geo, seg, (const struct kvt_m_footer *)d->buf, &f))
		return;
	cmd_add_u64(obj, "footer_life", f.life);
	cmd_add_u64(obj, "summary_unit", f.sum_unit);
	cmd_add_u64(obj, "summary_bytes", f.sum_bytes);
}

static void dump_segment(struct dump *d, u32 seg)
{
	static const char *const states[] = {
		[KVT_RC_FREE] = "free",
		[KVT_RC_SEALED] = "sealed",
		[KVT_RC_UNSEALED] = "unsealed",
	};
	static const struct kvt_recover_sink sink = { .block = no_block };
	struct json_object *obj = json_object_new_object();
	struct kvt_seg_found found;

	recover(d, seg, &sink, &found);
	cmd_add_u64(obj, "segment", seg);
	cmd_add_u64(obj, "byte", kvt_geo_byte(&d->geo, seg, 0));
	cmd_add_str(obj, "state", states[found.state]);
	cmd_add_u64(obj, "life", found.life);
	cmd_add_u64(obj, "fill_units", found.fill);
	cmd_add_u64(obj, "batches", found.nr_batches);
	cmd_add_u64(obj, "namespaces", found.nr_ns);
	cmd_add_u64(obj, "blocks", found.nr_blocks);
	cmd_add_u64(obj, "kills", found.nr_kills);
	if (found.nr_io)
		cmd_add_u64(obj, "read_errors", found.nr_io);
	add_footer(d, obj, seg);
	entry(d, obj);
}

/* A header, all of it, at the buffer's start. */
static bool read_header(struct dump *d, u32 seg, u32 unit, struct kvt_batch_info *b)
{
	u64 byte = kvt_geo_byte(&d->geo, seg, unit);

	if (dump_read(d, byte, d->buf, KVT_UNIT_BYTES_MIN) ||
	    !kvt_batch_decode(&d->geo, seg, unit, d->buf, b))
		return false;
	return !dump_read(d, byte, d->buf, b->header_units * d->geo.unit_bytes) &&
	       kvt_batch_verify(&d->geo, d->buf, b);
}

static void dump_batches(struct dump *d, u32 seg)
{
	struct json_object *obj;
	struct kvt_batch_info b;
	u64 life = 0;
	u32 unit = 0, nr = 0;

	while (unit < d->geo.seg_units - 1 && read_header(d, seg, unit, &b)) {
		if (b.number != nr || (nr && b.life != life))
			break;
		life = b.life;
		obj = json_object_new_object();
		cmd_add_u64(obj, "segment", seg);
		cmd_add_u64(obj, "unit", unit);
		cmd_add_u64(obj, "byte", kvt_geo_byte(&d->geo, seg, unit));
		cmd_add_u64(obj, "number", b.number);
		cmd_add_u64(obj, "life", b.life);
		cmd_add_u64(obj, "seq", b.seq);
		cmd_add_u64(obj, "header_units", b.header_units);
		cmd_add_u64(obj, "payload_units", b.payload_units);
		cmd_add_u64(obj, "namespaces", b.nr_ns);
		cmd_add_u64(obj, "blocks", b.nr_blocks);
		cmd_add_u64(obj, "kills", b.nr_kills);
		entry(d, obj);
		unit += b.header_units + b.payload_units;
		nr++;
	}
}

/* --- Entries --------------------------------------------------------------- */

static void on_block(void *ctx, u32 seg, u64 life, const struct kvt_rec *r)
{
	static const u8 root[KVT_KEY_BYTES];
	struct json_object *obj = json_object_new_object();
	struct dump *d = ctx;

	cmd_add_u64(obj, "segment", seg);
	cmd_add_u64(obj, "unit", r->unit);
	cmd_add_u64(obj, "byte", kvt_geo_byte(&d->geo, seg, r->unit));
	cmd_add_u64(obj, "life", life);
	cmd_add_u64(obj, "seq", r->seq);
	cmd_add_u64(obj, "ns", r->ns);
	cmd_add_u64(obj, "group", r->group);
	cmd_add_u64(obj, "bytes", r->bytes);
	cmd_add_u64(obj, "stored_bytes", r->stored);
	cmd_add_u64(obj, "expiry_s", r->expiry_s);
	add_hex32(obj, "sum", r->sum);
	add_hex(obj, "key", r->key, KVT_KEY_BYTES);
	if (!kvt_key_equal(r->parent, root))
		add_hex(obj, "parent", r->parent, KVT_KEY_BYTES);
	entry(d, obj);
}

static void on_bad(void *ctx, u32 seg, u64 life, u32 unit, enum kvt_bad why)
{
	static const char *const names[KVT_BAD_NR] = {
		[KVT_BAD_CRC] = "damaged",
		[KVT_BAD_UNKNOWN] = "unknown",
		[KVT_BAD_RANGE] = "range",
	};
	struct json_object *obj = json_object_new_object();

	cmd_add_u64(obj, "segment", seg);
	cmd_add_u64(obj, "unit", unit);
	cmd_add_u64(obj, "life", life);
	cmd_add_str(obj, "bad", names[why] ? names[why] : "bad");
	entry(ctx, obj);
}

/* Identities are bytes; mostly they are a name. */
static void add_identity(struct json_object *obj, const struct kvt_nsdef *n)
{
	u32 i;

	for (i = 0; i < n->identity_len; i++)
		if (!isgraph(n->identity[i]) || n->identity[i] > 126)
			break;
	if (i == n->identity_len)
		cmd_add(obj, "identity",
			json_object_new_string_len((const char *)n->identity, (int)i));
	else
		add_hex(obj, "identity_hex", n->identity, n->identity_len);
}

static void on_ns(void *ctx, u32 seg, const struct kvt_nsdef *n)
{
	struct json_object *obj = json_object_new_object();
	struct json_object *groups = json_object_new_array();
	char mode[16];
	u32 i;

	snprintf(mode, sizeof(mode), "%04o", n->mode);
	cmd_add_u64(obj, "segment", seg);
	cmd_add_u64(obj, "ns", n->id);
	cmd_add_u64(obj, "seq", n->seq);
	cmd_add_u64(obj, "uid", n->uid);
	cmd_add_u64(obj, "gid", n->gid);
	cmd_add_str(obj, "mode", mode);
	cmd_add_u64(obj, "quota_bytes", n->quota_bytes);
	cmd_add_u64(obj, "min_bytes", n->min_bytes);
	for (i = 0; i < n->nr_groups; i++)
		cmd_append(groups, json_object_new_uint64(n->group_bytes[i]));
	cmd_add(obj, "block_bytes", groups);
	cmd_add_bool(obj, "secret", n->flags & KVT_NSF_SECRET);
	cmd_add_bool(obj, "gone", n->flags & KVT_NSF_GONE);
	if (n->flags & KVT_NSF_GONE) {
		cmd_add_u64(obj, "life_mark", n->life_mark);
		cmd_add_u64(obj, "life_first", n->life_first);
	}
	add_hex(obj, "salt_start", n->salt, 4);
	add_identity(obj, n);
	entry(ctx, obj);
}

static void on_kill(void *ctx, u32 seg, const struct kvt_kill *k)
{
	struct json_object *obj = json_object_new_object();

	cmd_add_u64(obj, "segment", seg);
	cmd_add_u64(obj, "dead_segment", k->seg);
	cmd_add_u64(obj, "dead_life", k->life);
	if (k->unit == KVT_KILL_ALL)
		cmd_add_str(obj, "dead_unit", "all");
	else
		cmd_add_u64(obj, "dead_unit", k->unit);
	entry(ctx, obj);
}

/* --- The whole ------------------------------------------------------------- */

static void dump_entries(struct dump *d, u32 seg)
{
	static const struct kvt_recover_sink blocks = { .block = on_block, .bad = on_bad };
	static const struct kvt_recover_sink ns = { .block = no_block, .ns = on_ns };
	static const struct kvt_recover_sink kills = { .block = no_block, .kill = on_kill };
	struct kvt_seg_found found;

	recover(d, seg, *d->part == 'r' ? &blocks : *d->part == 'n' ? &ns : &kills, &found);
}

static const struct part {
	unsigned int bit;
	const char *array;
	const char *name;
	void (*segment)(struct dump *d, u32 seg);
} parts[] = {
	{ PART_SEGMENTS, "segments", "segment", dump_segment },
	{ PART_BATCHES, "batches", "batch", dump_batches },
	{ PART_RECORDS, "records", "record", dump_entries },
	{ PART_NAMESPACES, "namespaces", "namespace", dump_entries },
	{ PART_KILLS, "kills", "kill", dump_entries },
};

static void dump_part(struct dump *d, const struct part *p)
{
	u32 seg;

	part_begin(d, p->array, p->name);
	for (seg = 0; seg < d->geo.nr_segs && !ferror(stdout); seg++)
		if (d->only == U32_MAX || d->only == seg)
			p->segment(d, seg);
	part_end(d);
}

static void print_member(const char *key, struct json_object *value)
{
	printf("\"%s\":%s", key, json_object_to_json_string_ext(value,
		JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(value);
}

static int dump_all(struct dump *d, const char *path)
{
	size_t i;

	if (opt.json) {
		putchar('{');
		print_member("device", cmd_string(path));
	}
	if (opt.json && d->supers.err) {
		putchar(',');
		print_member("problem", cmd_string(media_error_text(d->supers.err)));
	}
	if (d->parts & PART_SUPER)
		dump_supers(d);
	for (i = 0; i < ARRAY_SIZE(parts); i++)
		if (!d->supers.err && d->parts & parts[i].bit)
			dump_part(d, &parts[i]);
	if (opt.json)
		puts("}");
	return d->supers.err && d->parts != PART_SUPER ? EXIT_FAILED : EXIT_OK;
}

static int parse(int argc, char **argv, struct dump *d)
{
	static const struct option options[] = {
		{ "super", no_argument, NULL, PART_SUPER },
		{ "segments", no_argument, NULL, PART_SEGMENTS },
		{ "batches", no_argument, NULL, PART_BATCHES },
		{ "records", no_argument, NULL, PART_RECORDS },
		{ "namespaces", no_argument, NULL, PART_NAMESPACES },
		{ "kills", no_argument, NULL, PART_KILLS },
		{ "segment", required_argument, NULL, 's' },
		{ NULL, 0, NULL, 0 },
	};
	uint64_t seg;
	int c;

	d->only = U32_MAX;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == '?' || c == ':')
			return cmd_usage("dump: bad option '%s'", argv[optind - 1]);
		if (c != 's') {
			d->parts |= (unsigned int)c;
			continue;
		}
		if (cmd_parse_u64(optarg, U32_MAX - 1, &seg))
			return cmd_usage("--segment '%s' is not a number", optarg);
		d->only = (u32)seg;
	}
	if (optind != argc - 1)
		return cmd_usage("dump needs one device or image file");
	if (!d->parts)
		d->parts = d->only == U32_MAX ? PART_SUPER | PART_SEGMENTS :
			   PART_SEGMENTS | PART_BATCHES | PART_RECORDS | PART_NAMESPACES |
			   PART_KILLS;
	return EXIT_OK;
}

/*
 * Superblocks of what cannot be read any further are shown if they are asked for; that
 * the rest of what was asked for is not there is a failure.
 */
static int run(struct dump *d, const char *path)
{
	int err = media_read_supers(&d->dev.media, &d->supers);

	if (err && (err == -EMEDIUMTYPE || !(d->parts & PART_SUPER)))
		return cmd_fail(0, err == -EMEDIUMTYPE ? "" : "see: kvtier dump --super DEVICE",
				"%s %s", path, media_error_text(err));
	if (!err)
		d->geo = d->supers.pick.super.geo;
	else
		cmd_note("%s %s", path, media_error_text(err));
	if (!err && d->only != U32_MAX && d->only >= d->geo.nr_segs)
		return cmd_fail(ENOENT, NULL, "%s has %u segments", path, d->geo.nr_segs);
	if (d->dev.in_use)
		cmd_note("%s is in use: it may be changing", path);
	d->buf = malloc(KVT_RECOVER_BUF_MIN);
	if (!d->buf)
		return cmd_fail(ENOMEM, NULL, "dump");
	return dump_all(d, path);
}

int cmd_dump(int argc, char **argv)
{
	struct dump d = { 0 };
	int ret, status;

	status = parse(argc, argv, &d);
	if (status)
		return status;
	ret = media_open(&d.dev, argv[optind], false);
	if (ret)
		return cmd_fail(ret, ret == -EINVAL ? "it is neither a block device nor a file" :
				ret == -EBUSY ? "kvtier's driver keeps dax devices from being read: kvtier cxl unbind" :
				NULL, "%s", argv[optind]);
	status = run(&d, argv[optind]);
	free(d.buf);
	media_close(&d.dev);
	return status;
}
