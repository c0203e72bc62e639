/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Writes generated requests in the trace format of trace.h.
 */
#ifndef KVTIER_GEN_CSV_H
#define KVTIER_GEN_CSV_H

#include <stdint.h>
#include <stdio.h>

#include "gen_workload.h"

/**
 * struct gen_limits - where the trace ends: at the first that is reached; 0: none
 * @requests: so many
 * @ms:       time of the trace
 * @blocks:   distinct blocks; the request that reaches it is the last
 */
struct gen_limits {
	uint64_t requests;
	uint64_t ms;
	uint64_t blocks;
};

/* What was written. */
struct gen_totals {
	uint64_t requests;
	uint64_t by_kind[GEN_KINDS];
	uint64_t accesses;	/* blocks of all requests */
	uint64_t blocks;	/* distinct */
	uint64_t span_ms;
};

/**
 * gen_csv_write - generates and writes a whole trace
 * @out: header and requests go here; not closed
 *
 * Returns 0, -ENOMEM or -EIO (see errno of the stream's last call).
 */
int gen_csv_write(FILE *out, const struct gen_params *params,
		  const struct gen_limits *limits, struct gen_totals *totals);

#endif
