/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which memory of a CXL region its devices know to be bad.
 */
#ifndef KVTIER_POISON_H
#define KVTIER_POISON_H

#include <stdbool.h>
#include <stddef.h>
#include <kvtier/libkvtier.h>

/**
 * struct poison_list - physical memory that is bad
 * @incomplete: a device knows of more than it can tell
 */
struct poison_list {
	struct kvtier_range *ranges;
	uint32_t nr;
	bool incomplete;
};

/**
 * struct poison_region - the region that is asked about
 * @start: its physical address
 * @ways: devices it is interleaved over, @granularity bytes at a time
 */
struct poison_region {
	const char *name;
	uint64_t start;
	uint64_t ways;
	uint64_t granularity;
};

/**
 * poison_of_dax - ask the devices of a dax device's region
 * @dax:  name; of a device that is no CXL region's, the list is empty
 * @what: out: at a failure, what it was about
 *
 * By the kernel's event cxl_poison, in an instance of tracefs of our own. 0 or -errno; to
 * be freed with poison_free() then.
 */
int poison_of_dax(const char *dax, struct poison_list *list, char *what, size_t room);
void poison_free(struct poison_list *list);

/* Take in what a line of the trace says. 0 or -ENOMEM, -E2BIG: there are too many. */
int poison_add_line(struct poison_list *list, const struct poison_region *region,
		    const char *line);

#endif /* KVTIER_POISON_H */
