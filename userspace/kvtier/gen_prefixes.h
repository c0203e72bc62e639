/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Ids of blocks: which prefix is which number.
 *
 * A shared block is found by (parent, label): the same text after another prefix
 * is another block. Blocks nobody else can have just take the next number.
 */
#ifndef KVTIER_GEN_PREFIXES_H
#define KVTIER_GEN_PREFIXES_H

#include <stdint.h>

#define GEN_NO_PARENT	(~0ULL)

struct gen_prefixes;

/* NULL if there is no memory. */
struct gen_prefixes *gen_prefixes_new(void);

uint64_t gen_prefixes_new_id(struct gen_prefixes *prefixes);

/**
 * gen_prefixes_get - id of the block with text @label after @parent
 * @id: out; a new one if nobody asked for it before
 *
 * Returns 0 or -ENOMEM.
 */
int gen_prefixes_get(struct gen_prefixes *prefixes, uint64_t parent,
		     uint64_t label, uint64_t *id);

/* Ids given out; they are 0 up to this, exclusive. */
uint64_t gen_prefixes_nr_ids(const struct gen_prefixes *prefixes);

void gen_prefixes_free(struct gen_prefixes *prefixes);

#endif
