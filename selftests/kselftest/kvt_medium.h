/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is on a block device, or a persistent dax device, that is, or was, a tier: read
 * from the device alone, with the driver's own decoder.
 */
#ifndef KVT_MEDIUM_H
#define KVT_MEDIUM_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct kvt_medium_block - a block that a restart would find
 * @key:    name
 * @parent: zeroes: none
 * @ns:     namespace
 * @seq:    of several with one name the highest counts
 * @byte:   where its payload is
 * @bytes:  its length
 * @seg:    segment
 * @good:   its payload verifies
 * @dead:   there is a kill for it, or a newer one
 */
struct kvt_medium_block {
	uint8_t key[32];
	uint8_t parent[32];
	uint64_t ns;
	uint64_t seq;
	uint64_t life;
	uint64_t byte;
	uint32_t bytes;
	uint32_t stored;
	uint32_t sum;
	uint32_t unit;
	uint32_t seg;
	bool good;
	bool dead;
};

/**
 * struct kvt_medium - a member as found
 * @clean:       the superblock says that it was left in order
 * @generation:  of the superblock
 * @nr_members:  that it tells of
 * @nr_segs:     segments; @nr_sealed with a footer, @nr_unsealed without one
 * @nr_bad:      records or reads that are not as they should be
 * @nr_ns:       namespaces that are defined
 * @nr_blocks:   in @blocks; those that are dead are left out
 */
struct kvt_medium {
	bool clean;
	uint64_t generation;
	uint32_t nr_members;
	uint32_t nr_segs;
	uint32_t nr_sealed;
	uint32_t nr_unsealed;
	uint32_t nr_bad;
	uint32_t nr_ns;
	uint32_t nr_blocks;
	struct kvt_medium_block *blocks;
};

/* 0 or -errno; -EMEDIUMTYPE: it is no member. A dax device is bound to device_dax. Freed by kvt_medium_free(). */
int kvt_medium_read(const char *path, struct kvt_medium *m);
void kvt_medium_free(struct kvt_medium *m);
/*
 * As a repair leaves a member that is in no pool: the superblock's generation is so much higher, and
 * the one in its table of members is not. 0 or -errno.
 */
int kvt_medium_raise(const char *path, uint32_t by);
/* How many members there are, as this one has it; -errno. */
int kvt_medium_members(const char *path);

/* The block of that name, or NULL. */
const struct kvt_medium_block *kvt_medium_find(const struct kvt_medium *m, const void *key);

/*
 * Definitions of 300,000 namespaces that have ended fill free segments of a member that is
 * in no pool. Behind them, in each, is a namespace that lives, with a block: copies of one
 * that the member has, with a digit from 0 on behind its identity. 0 or -errno.
 */
int kvt_medium_crowd(const char *path, uint32_t *nr_ended, uint32_t *nr_tails);

/*
 * One more segment, whose records all verify, of a member that is in no pool. They are made of a
 * block that the member has: three that are each other's parents, one behind these, and one
 * whose parent is nowhere; five that belong nowhere (no such namespace, no such group, another
 * length, no key, a namespace without groups); one that is there twice, with one sequence; one
 * of a namespace that was promised all there is. 0 or -errno.
 */
int kvt_medium_forge(const char *path);

#endif /* KVT_MEDIUM_H */
