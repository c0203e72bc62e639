// SPDX-License-Identifier: GPL-2.0
/*
 * Superblocks of a member; see media.h.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "media.h"

/* At one of two places, or the last of those in a zone. */
static int look_at(const struct media *m, u32 slot, struct kvt_super_pick *pick, void *block)
{
	u64 byte = (u64)slot * KVT_SUPER_TWIN_BYTE;
	int err;

	if (m->zone_bytes)
		return kvt_super_log_look(m->zone_bytes, slot, m->wp[slot], m->read, m->ctx,
					  block, pick);
	if (m->bytes < byte + KVT_SUPER_BYTES)
		return 0;
	err = m->read(m->ctx, byte, block, KVT_SUPER_BYTES);
	if (!err)
		kvt_super_pick_add(pick, slot, block);
	return err;
}

static enum media_super_state look(const struct media *m, u32 slot, struct media_supers *s,
				   void *block)
{
	struct kvt_super_pick one;

	kvt_super_pick_start(&one);
	if (look_at(m, slot, &one, block) || look_at(m, slot, &s->pick, block))
		return MEDIA_SUPER_IO;
	s->super[slot] = one.super;
	s->nr_torn[slot] = one.nr_torn;
	switch (one.err) {
	case 0:
		return MEDIA_SUPER_GOOD;
	case -EPROTONOSUPPORT:
		return MEDIA_SUPER_NEWER;
	case -EUCLEAN:
		return MEDIA_SUPER_TORN;
	default:
		return MEDIA_SUPER_NONE;
	}
}

enum media_zone media_zone_worst(const struct media *m, u64 byte, u64 len)
{
	enum media_zone worst = MEDIA_ZONE_GOOD;
	u64 zone, end;

	if (!m->zone_bytes || !m->zones)
		return worst;
	end = min(byte + len, m->bytes) / m->zone_bytes;
	for (zone = byte / m->zone_bytes; zone < end; zone++) {
		if (m->zones[zone] > worst)
			worst = m->zones[zone];
	}
	return worst;
}

/* Also: are the device's zones those of the member. */
static int check(const struct media *m, struct kvt_super *s)
{
	int err = kvt_super_check(s, m->bytes, m->write != NULL);

	if (!err && (s->geo.zone_bytes != m->zone_bytes || s->geo.zone_stride != m->zone_stride))
		err = -ERANGE;
	return err;
}

int media_read_supers(const struct media *m, struct media_supers *s)
{
	static u64 block[KVT_SUPER_BYTES / sizeof(u64)];
	bool io = false;
	u32 i;

	memset(s, 0, sizeof(*s));
	kvt_super_pick_start(&s->pick);
	for (i = 0; i < KVT_SUPER_SLOTS; i++) {
		s->state[i] = look(m, i, s, block);
		io |= s->state[i] == MEDIA_SUPER_IO;
	}
	s->err = s->pick.err;
	if (!s->err)
		s->err = check(m, &s->pick.super);
	else if (io)
		s->err = -EIO;
	return s->err;
}

const char *media_super_state_name(enum media_super_state state)
{
	static const char *const names[] = {
		[MEDIA_SUPER_GOOD] = "good",
		[MEDIA_SUPER_NONE] = "missing",
		[MEDIA_SUPER_TORN] = "damaged",
		[MEDIA_SUPER_NEWER] = "newer",
		[MEDIA_SUPER_IO] = "unreadable",
	};

	return names[state];
}

const char *media_error_text(int err)
{
	switch (err) {
	case -EMEDIUMTYPE:
		return "is not a member of a kvtier pool";
	case -EUCLEAN:
		return "is a member whose superblocks are both damaged";
	case -EPROTONOSUPPORT:
		return "is a member of a later version, or with features that this tool does not know";
	case -EROFS:
		return "is a member with features without which this tool cannot write to it";
	case -ERANGE:
		return "is a member with an impossible layout, or longer than the device";
	case -EIO:
		return "cannot be read";
	}
	return strerror(-err);
}

const char *media_uuid(const u8 *uuid, char text[static MEDIA_UUID_MAX])
{
	char *at = text;
	u32 i;

	for (i = 0; i < KVT_UUID_BYTES; i++)
		at += sprintf(at, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
			      uuid[i]);
	return text;
}

const char *media_state_name(u32 state)
{
	switch (state) {
	case KVT_STATE_CLEAN:
		return "clean";
	case KVT_STATE_DIRTY:
		return "dirty";
	}
	return "unknown";
}

const char *media_tier_name(const struct kvt_super *s, char text[static MEDIA_NAME_MAX])
{
	u32 i;

	for (i = 0; i < MEDIA_NAME_MAX - 1 && s->name[i]; i++)
		text[i] = islower(s->name[i]) || isdigit(s->name[i]) || s->name[i] == '_' ||
			  s->name[i] == '-' ? (char)s->name[i] : '?';
	text[i] = 0;
	return text;
}
