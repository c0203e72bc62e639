// SPDX-License-Identifier: GPL-2.0
/*
 * What sysfs shows of a pool beyond its counters: settings, states, limits, whose it is, and what
 * is held. Commands that are refused leave all of it as it was.
 *
 * Only what was there before is compared: namespaces come with attempts and go in their own
 * time, and tiers that come are seen elsewhere.
 */
#include "abi_rows.h"
#include <glob.h>

#define FILES_MAX	96

static const char *const settings[] = {
	/* pool */
	"policy", "watermark_low_percent", "watermark_high_percent", "reserve_percent",
	"copies_percent", "cgroup_limits", "reservation_timeout_ms", "prefetch_max_bytes",
	"discard", "scrub_state", "uuid", "degraded", "unwiped",
	/* tier */
	"id", "type", "rank", "state", "device", "capacity_bytes", "quarantined_bytes",
	/* namespace */
	"owner_uid", "unclaimed", "mode", "quota_bytes", "cgroup", "min_bytes", "tier_limits",
	"tier_mins", "groups", "weight", "fixed_bytes", "fixed_limit_bytes", "tier_used_bytes",
	/* all of them */
	"used_bytes", "blocks",
};

struct abi_setting {
	char *path;
	char *value;
};

struct abi_settings {
	int nr;
	struct abi_setting file[FILES_MAX];
};

static char *value_of(const char *path)
{
	char buf[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof(buf) - 1);

	if (fd >= 0)
		close(fd);
	if (n < 0)
		return NULL;
	buf[n] = 0;
	return strdup(buf);
}

static bool is_setting(const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	size_t i;

	for (i = 0; i < KVT_ARRAY(settings); i++)
		if (!strcmp(name, settings[i]))
			return true;
	return false;
}

static bool note(struct abi_settings *s, const char *path)
{
	struct abi_setting *f = &s->file[s->nr];

	if (!is_setting(path))
		return true;
	if (s->nr == FILES_MAX)
		return false;
	f->value = value_of(path);
	/* A namespace that has just gone. */
	if (!f->value)
		return true;
	f->path = strdup(path);
	s->nr++;
	return f->path;
}

struct abi_settings *abi_settings_note(const struct kvt_pool *p)
{
	struct abi_settings *s = calloc(1, sizeof(*s));
	bool all = s;
	char path[96];
	glob_t found;
	size_t i;

	snprintf(path, sizeof(path), "/sys/class/kvtier/kvtier%u/{,tiers/*/,namespaces/*/}*",
		 p->id);
	if (glob(path, GLOB_BRACE | GLOB_NOSORT, NULL, &found)) {
		abi_settings_free(s);
		return NULL;
	}
	for (i = 0; all && i < found.gl_pathc; i++)
		all = note(s, found.gl_pathv[i]);
	globfree(&found);
	if (all && s->nr)
		return s;
	abi_settings_free(s);
	return NULL;
}

int abi_settings_changed(const struct abi_settings *s)
{
	int i, nr = 0;

	for (i = 0; i < s->nr; i++) {
		char *now = value_of(s->file[i].path);

		if (now && strcmp(now, s->file[i].value)) {
			fprintf(stderr, "# %s was\n%sand is now\n%s", s->file[i].path,
				s->file[i].value, now);
			nr++;
		}
		free(now);
	}
	return nr;
}

void abi_settings_free(struct abi_settings *s)
{
	int i;

	for (i = 0; s && i < s->nr; i++) {
		free(s->file[i].path);
		free(s->file[i].value);
	}
	free(s);
}
