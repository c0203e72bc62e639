// SPDX-License-Identifier: GPL-2.0
/*
 * Looking for members; see scan.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "scan.h"
#include "sysfs.h"

/* --- Looking --------------------------------------------------------------- */

static struct scan_member *add(struct scan *s, const char *path)
{
	struct scan_member *m;

	m = realloc(s->members, (s->nr + 1) * sizeof(*m));
	if (!m)
		return NULL;
	s->members = m;
	m = &s->members[s->nr++];
	memset(m, 0, sizeof(*m));
	if (!media_is_dax(path, m->dax))
		m->dax[0] = 0;
	if (m->dax[0] && !strchr(path, '/'))
		snprintf(m->path, sizeof(m->path), "%s/%s", media_dev_root(), m->dax);
	else
		snprintf(m->path, sizeof(m->path), "%s", path);
	return m;
}

static int look(struct scan_member *m)
{
	struct media_supers supers;
	struct media_dev d;
	int err;

	err = strlen(m->path) < SCAN_PATH_MAX - 1 ? media_open(&d, m->path, false) :
						    -ENAMETOOLONG;
	if (!err) {
		m->in_use = d.in_use;
		err = media_read_supers(&d.media, &supers);
		m->has_super = !supers.pick.err;
		m->super = supers.pick.super;
		media_close(&d);
	}
	/* Another driver than the one that lets us look. */
	if (m->dax[0] && err == -EBUSY)
		m->in_use = true;
	m->err = err;
	m->verdict = err ? SCAN_UNUSABLE : SCAN_GOOD;
	return err;
}

int scan_paths(struct scan *s, char **paths, int nr)
{
	struct scan_member *m;
	int i;

	for (i = 0; i < nr; i++) {
		m = add(s, paths[i]);
		if (!m)
			return -ENOMEM;
		m->named = true;
		look(m);
	}
	return 0;
}

static bool is_part_of_another(const char *name)
{
	struct sysfs_names holders;
	char dir[SYSFS_PATH_MAX];
	bool is;

	snprintf(dir, sizeof(dir), "class/block/%s/holders", name);
	if (sysfs_list(&holders, dir, ""))
		return false;
	is = holders.nr > 0;
	sysfs_free_names(&holders);
	return is;
}

static bool known(const struct scan *s, const char *path)
{
	char *a = realpath(path, NULL), *b;
	bool is = false;
	size_t i;

	for (i = 0; a && !is && i < s->nr; i++) {
		b = realpath(s->members[i].path, NULL);
		is = b && !strcmp(a, b);
		free(b);
	}
	free(a);
	return is;
}

/* Damaged ones are worth knowing, other people's devices are not. */
static bool worth_knowing(const struct scan_member *m, int err)
{
	if (m->dax[0] && (err == -EBUSY || err == -ENXIO))
		return true;
	return !err || err == -EUCLEAN || err == -EPROTONOSUPPORT || err == -ERANGE;
}

/* Of a device by its name in sysfs; false: too long. */
static bool path_of(const char *name, char path[static SCAN_PATH_MAX])
{
	char *slash;

	if (snprintf(path, SCAN_PATH_MAX, "%s/%s", media_dev_root(), name) >= SCAN_PATH_MAX)
		return false;
	/* The kernel's way to write a name with a slash in it. */
	while ((slash = strchr(path, '!')))
		*slash = '/';
	return true;
}

static int scan_path(struct scan *s, const char *name, bool *opened, bool *denied)
{
	char path[SCAN_PATH_MAX];
	struct scan_member *m;
	int err;

	if (!path_of(name, path) || known(s, path))
		return 0;
	m = add(s, path);
	if (!m)
		return -ENOMEM;
	err = look(m);
	*denied |= err == -EACCES || err == -EPERM;
	*opened |= err != -EACCES && err != -EPERM;
	if (!worth_knowing(m, err))
		s->nr--;
	return 0;
}

/* Whoever reads it waits until device-mapper lets it go on. Maybe it is a member. */
static int add_suspended(struct scan *s, const char *name)
{
	char path[SCAN_PATH_MAX];
	struct scan_member *m;

	if (!path_of(name, path) || known(s, path))
		return 0;
	m = add(s, path);
	if (!m)
		return -ENOMEM;
	m->verdict = SCAN_UNUSABLE;
	m->err = -EAGAIN;
	return 0;
}

static int scan_one(struct scan *s, const char *name, bool *opened, bool *denied)
{
	uint64_t sectors, suspended;

	if (sysfs_read_u64(&sectors, "class/block/%s/size", name) || !sectors ||
	    is_part_of_another(name))
		return 0;
	if (!sysfs_read_u64(&suspended, "class/block/%s/dm/suspended", name) && suspended)
		return add_suspended(s, name);
	return scan_path(s, name, opened, denied);
}

static int scan_dax(struct scan *s, const char *name, bool *opened, bool *denied)
{
	return media_dax_is_persistent(name) ? scan_path(s, name, opened, denied) : 0;
}

int scan_all(struct scan *s)
{
	bool opened = false, denied = false;
	struct sysfs_names list;
	size_t i;
	int ret;

	ret = sysfs_list(&list, "class/block", "");
	for (i = 0; !ret && i < list.nr; i++)
		ret = scan_one(s, list.names[i], &opened, &denied);
	sysfs_free_names(&list);
	if (!ret)
		ret = sysfs_list(&list, "bus/dax/devices", "dax");
	for (i = 0; !ret && i < list.nr; i++)
		ret = scan_dax(s, list.names[i], &opened, &denied);
	sysfs_free_names(&list);
	if (!ret && denied && !opened)
		ret = -EACCES;
	return ret;
}

void scan_free(struct scan *s)
{
	free(s->members);
	memset(s, 0, sizeof(*s));
}

/* --- Judging --------------------------------------------------------------- */

static bool same(const u8 *a, const u8 *b)
{
	return !memcmp(a, b, KVT_UUID_BYTES);
}

bool scan_same_pool(const struct scan_member *a, const struct scan_member *b)
{
	return a->has_super && b->has_super && same(a->super.pool, b->super.pool);
}

bool scan_is_first(const struct scan *s, size_t at)
{
	size_t i;

	for (i = 0; i < at; i++)
		if (scan_same_pool(&s->members[i], &s->members[at]))
			return false;
	return s->members[at].has_super;
}

static const struct kvt_member *lists(const struct kvt_super *s, const u8 *uuid)
{
	u32 i;

	for (i = 0; i < s->nr_members; i++)
		if (same(s->members[i].uuid, uuid))
			return &s->members[i];
	return NULL;
}

static bool has(const struct kvt_super *s, const u8 *uuid)
{
	const struct kvt_member *e = lists(s, uuid);

	return e && !kvt_member_past(e);
}

/* Has @y been written since @x has last heard of it. */
static bool later(const struct kvt_super *y, const struct kvt_super *x)
{
	const struct kvt_member *e = lists(x, y->geo.member);

	return !e || kvt_super_known(y) > e->generation;
}

static bool stale(const struct kvt_super *x, const struct kvt_super *y)
{
	const struct kvt_member *e = lists(y, x->geo.member);

	return e ? e->generation > kvt_super_known(x) : later(y, x);
}

/* Against all that can be read; verdicts must not depend on each other. */
void scan_judge(struct scan *s)
{
	size_t i, k;

	for (i = 0; i < s->nr; i++) {
		struct scan_member *m = &s->members[i];

		for (k = 0; k < s->nr && m->verdict != SCAN_UNUSABLE; k++) {
			const struct scan_member *o = &s->members[k];

			if (k == i || o->verdict == SCAN_UNUSABLE || !scan_same_pool(m, o))
				continue;
			if (same(m->super.geo.member, o->super.geo.member))
				m->verdict = SCAN_COPY;
			else if (m->verdict == SCAN_GOOD && stale(&m->super, &o->super))
				m->verdict = SCAN_STALE;
		}
	}
}

/* An old copy of a member is none. */
static bool is_there(const struct scan *s, const struct scan_member *of, const u8 *uuid)
{
	size_t i;

	for (i = 0; i < s->nr; i++)
		if (scan_same_pool(&s->members[i], of) &&
		    s->members[i].verdict != SCAN_UNUSABLE &&
		    s->members[i].verdict != SCAN_STALE &&
		    same(s->members[i].super.geo.member, uuid))
			return true;
	return false;
}

/* Does nobody that was written later than @x leave it out. */
static bool expected(const struct scan *s, const struct scan_member *x, const u8 *uuid)
{
	size_t i;

	for (i = 0; i < s->nr; i++) {
		const struct scan_member *o = &s->members[i];

		if (o == x || o->verdict != SCAN_GOOD || !scan_same_pool(o, x))
			continue;
		if (!has(&o->super, uuid) && later(&o->super, &x->super))
			return false;
	}
	return true;
}

static u32 add_missing(const struct scan *s, const struct scan_member *x,
		       struct scan_uuid *uuids, u32 nr)
{
	u32 i, k;

	for (i = 0; i < x->super.nr_members; i++) {
		const u8 *uuid = x->super.members[i].uuid;

		if (kvt_member_past(&x->super.members[i]) || is_there(s, x, uuid) ||
		    !expected(s, x, uuid))
			continue;
		for (k = 0; k < nr && !same(uuids[k].b, uuid); k++)
			;
		if (k < nr || nr == KVT_MEMBERS_MAX)
			continue;
		memcpy(uuids[nr++].b, uuid, KVT_UUID_BYTES);
	}
	return nr;
}

u32 scan_missing(const struct scan *s, size_t at, struct scan_uuid *uuids)
{
	size_t i;
	u32 nr = 0;

	for (i = 0; i < s->nr; i++)
		if (s->members[i].verdict == SCAN_GOOD &&
		    scan_same_pool(&s->members[i], &s->members[at]))
			nr = add_missing(s, &s->members[i], uuids, nr);
	return nr;
}

const char *scan_problem(const struct scan_member *m)
{
	switch (m->verdict) {
	case SCAN_GOOD:
		break;
	case SCAN_STALE:
		return "stale: the pool has run without it since, or it is an old copy";
	case SCAN_COPY:
		return "a copy: another device is the same member";
	case SCAN_UNUSABLE:
		if (m->dax[0] && m->err == -EBUSY)
			return "cannot be looked at: a driver other than device_dax has it";
		if (m->dax[0] && m->err == -ENXIO)
			return "cannot be looked at: no driver has it";
		return m->err == -EAGAIN ? "cannot be looked at: it is suspended" :
					   media_error_text(m->err);
	}
	return NULL;
}
