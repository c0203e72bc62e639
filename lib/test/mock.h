/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A stand-in for the kernel, behind the library's system call table.
 *
 * It is a small store that keeps the interface's contract as far as the library
 * and the tool can see it: bindings, chains, leases, reservations, both views
 * (real mappings of a real file). Its state lies in a file, so that processes
 * that name the same file see the same store. One thread at a time.
 */
#ifndef KVTIER_MOCK_H
#define KVTIER_MOCK_H

#include <stdint.h>

#define MOCK_FILL_OFFSET	(1ULL << 44)

/* Things a test sets or reads. */
struct mock_knobs {
	uint64_t window_bytes;		/* of every pool */
	uint64_t next_offset;		/* where the next slot goes */
	int fail_op;			/* this command fails ... */
	int fail_errno;			/* ... with this */
	int fail_maps;			/* so many file mappings fail */
	int failures;			/* injected so far */
	int nr_maps;			/* file mappings made */
	int nr_unmaps;
	int nr_open;			/* files open now */
	int deny_write;			/* devices open O_RDONLY only */
	int commit_pinned;		/* COMMIT answers PINNED */
	uint32_t missing;		/* members that POOL_ASSEMBLE is not given */
	const char *hold;		/* POOL_ASSEMBLE makes this file, and waits until it is gone */
};

extern struct mock_knobs mock;

/* Replaces the system calls; @path: the state file, or NULL for a fresh one of
 * this process. Ends the process when that is not possible.
 */
void mock_install(const char *path);

/* Leases and reservations held over all namespaces. */
unsigned int mock_leases(void);
unsigned int mock_reservations(void);

#endif /* KVTIER_MOCK_H */
