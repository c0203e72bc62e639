/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a block holds: bytes that follow from its key, so that any process can
 * tell right ones from wrong ones without having seen the block before.
 */
#ifndef KVTIER_REPLAY_DATA_H
#define KVTIER_REPLAY_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes the block of @key (32 bytes) to @to. */
void replay_data_fill(const uint8_t *key, void *to, size_t bytes);

/**
 * struct replay_wrong - a block that is not what it should be
 * @offset_bytes: of the first wrong 8-byte word
 * @want, @got:   that word (its last bytes 0 where the block ends in it)
 * @wrong_bytes:  how many bytes differ, of those looked at
 */
struct replay_wrong {
	uint64_t offset_bytes;
	uint64_t want, got;
	uint64_t wrong_bytes;
};

/**
 * replay_data_verify - compares a block with what it should be
 * @full:    every byte; otherwise the first 64 bytes of each page, and all of
 *           the last page
 * @checked: out: bytes looked at
 * @wrong:   out, if something is wrong
 *
 * Returns whether all is right.
 */
bool replay_data_verify(const uint8_t *key, const void *block, size_t bytes,
			bool full, uint64_t *checked, struct replay_wrong *wrong);

#endif
