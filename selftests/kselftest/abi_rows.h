/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The table of commands: how to make a valid argument of each, and where in it the
 * things lie that every command must check alike.
 *
 * Every attempt runs on a new open file, and what it may have left behind is
 * cleared away through another one, so attempts do not depend on each other.
 */
#ifndef ABI_ROWS_H
#define ABI_ROWS_H

#include "kvt_test.h"

#define ABI_BLOCK_BYTES	4096
#define ABI_ARG_MAX	4096
#define ABI_PAGE	4096
#define ABI_NONE	(-1)

/* What a command that fails must leave as it was. */
struct abi_snap {
	struct kvtier_stat st;
	__u32 nr_pools;
	int nr_tiers;
	__u32 states;
	int nr_ns;
};

/**
 * struct abi - what the attempts share
 * @main:  keeps the namespace, clears up
 * @fd:    file of this attempt
 * @base:  a block that is there
 * @fresh: a block that is not there between attempts
 * @page:  two pages; what follows cannot be touched
 * @disk:  member of a pool that has ended; made when it is needed first
 * @member: argument
 * @snap:  after the last refusal; @seen: nothing was done since
 * @settings: at the beginning
 * @done:  something may not have been refused
 */
struct abi {
	struct kvt_pool pool;
	struct kvt_client main;
	int fd;
	struct kvt_key base;
	struct kvt_key fresh;
	char *page;
	struct kvt_disk disk;
	struct kvtier_assemble_device member;
	struct kvtier_group group;
	struct abi_snap snap;
	bool seen;
	bool done;
	struct abi_settings *settings;
	char payload[ABI_BLOCK_BYTES];
};

/**
 * struct abi_row - a command. Offsets are ABI_NONE if it has no such thing
 * @ctl:      of the control device
 * @unbound:  works before NS_OPEN
 * @min:      end of the mandatory part
 * @flags:    known ones
 * @reserved: offset of a word that must be zero
 * @nr:       offset of a count, 1..@nr_max
 * @group:    offset of a group number
 * @in, @in2: offsets of pointers read from
 * @out:      offset of a pointer written to; @out_optional: it may be 0
 * @prep:     make a valid argument, and what it needs to be there
 */
struct abi_row {
	const char *name;
	unsigned int op;
	bool ctl;
	bool unbound;
	__u32 size;
	__u32 min;
	__u32 flags;
	int reserved;
	int nr;
	__u32 nr_max;
	int group;
	int in;
	int in2;
	int out;
	bool out_optional;
	int (*prep)(struct abi *a, void *arg);
};

extern const struct abi_row abi_rows[];
extern const int abi_nr_rows;

#define EACH_ABI_ROW(row) \
	for (row = abi_rows; row < abi_rows + abi_nr_rows; row++)

/* A pool with one tier, one namespace and one block in it. */
int abi_open(struct abi *a);
/* Nothing may be left of closed files; then destroys the pool. */
int abi_close(struct abi *a);
/* @bound: bind the file first, if the command wants that. */
int abi_begin(struct abi *a, const struct abi_row *row, void *arg, bool bound);
void abi_end(struct abi *a, const struct abi_row *row);
int abi_call(struct abi *a, const struct abi_row *row, void *arg);

void abi_snap(struct abi *a, struct abi_snap *s);
bool abi_unchanged(const struct abi_snap *before, const struct abi_snap *after);
/* As abi_call(); -EUCLEAN when a refused command has changed something. */
int abi_call_refused(struct abi *a, const struct abi_row *row, void *arg);

/* NULL if that fails; the caller's to free. */
struct abi_settings *abi_settings_note(const struct kvt_pool *p);
/* How many are not as they were; says which. */
int abi_settings_changed(const struct abi_settings *s);
void abi_settings_free(struct abi_settings *s);

static inline __u32 *abi_word(void *arg, int offset)
{
	return (__u32 *)((char *)arg + offset);
}

static inline __u64 *abi_pointer(void *arg, int offset)
{
	return (__u64 *)((char *)arg + offset);
}

#endif /* ABI_ROWS_H */
