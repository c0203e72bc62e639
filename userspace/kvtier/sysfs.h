/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reading and writing sysfs. Paths are relative to its root, "/sys", which tests
 * move elsewhere with KVTIER_SYSFS in the environment. All return 0 or a count,
 * or a negative errno.
 */
#ifndef KVTIER_SYSFS_H
#define KVTIER_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYSFS_PATH_MAX	512
#define SYSFS_NAME_MAX	64

const char *sysfs_root(void);

bool sysfs_exists(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The file's first line. */
int sysfs_read(char *buf, size_t room, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* All of its lines. */
int sysfs_read_all(char *buf, size_t room, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* A decimal or 0x hex number. */
int sysfs_read_u64(uint64_t *value, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
int sysfs_write(const char *value, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The one place that writes; tests stand in for the kernel here. */
int sysfs_write_path(const char *path, const char *value);

/* Last part of where a link leads. */
int sysfs_link_name(char *buf, size_t room, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The whole, with all links resolved; absolute. */
int sysfs_resolve(char *buf, size_t room, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Names of a directory's entries, sorted as numbers sort. */
struct sysfs_names {
	size_t nr;
	char (*names)[SYSFS_NAME_MAX];
};

/* Entries that consist of @prefix and a digit followed by anything; "" for all.
 * A directory that is not there has none. Free with sysfs_free_names().
 */
int sysfs_list(struct sysfs_names *list, const char *dir, const char *prefix);
void sysfs_free_names(struct sysfs_names *list);

#endif /* KVTIER_SYSFS_H */
