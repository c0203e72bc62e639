/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Measuring the same work done by the block store and by its peers.
 *
 * A *work* handles env->blocks blocks, env->batch at a time; what it needs and
 * leaves is made and cleared outside the measured time. The clock is read twice
 * for all blocks of a sample, never for each. Under -icount a nanosecond is one
 * instruction, of whichever process and of the kernel.
 *
 * Every block read must carry the stamps it was written with.
 */
#ifndef KVT_BENCH_H
#define KVT_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <kvtier/libkvtier.h>

#define BLOCKS_MAX	256u
#define BLOCK_BYTES_MAX	(1u << 20)

/**
 * struct env - what works share
 * @icount:      nanoseconds are instructions, and idle time is worth knowing
 * @samples:     measured, after one that warms up
 * @block_bytes: size of each block
 * @blocks:      handled in a sample
 * @batch:       blocks in a call; divides @blocks
 * @keys:        names of the blocks, a chain
 * @src:         what is stored, one block; stamped for each
 * @dst:         where it is read to, one block
 * @ns:          namespace with a group of each size
 * @group:       the one of @block_bytes
 * @slots:       one call's results
 * @sock:        connection to Redis
 * @dir:         folder in tmpfs
 * @direct:      file opened with O_DIRECT, with all blocks one after another
 * @out:         where results go
 */
struct env {
	bool icount;
	unsigned int samples;
	size_t block_bytes;
	unsigned int blocks;
	unsigned int batch;
	struct kvtier_key keys[BLOCKS_MAX];
	uint8_t *src;
	uint8_t *dst;
	struct kvtier_ns *ns;
	uint32_t group;
	struct kvtier_slot slots[BLOCKS_MAX];
	int sock;
	const char *dir;
	int direct;
	FILE *out;
};

/**
 * struct work - something to measure
 * @who:    kvtier, redis, file...
 * @op:     what is done
 * @before: once for each sample, not measured; may be NULL
 * @run:    measured
 * @after:  as @before
 */
struct work {
	const char *who;
	const char *op;
	void (*before)(struct env *e);
	void (*run)(struct env *e);
	void (*after)(struct env *e);
};

/* measure.c */
void __attribute__((noreturn, format(printf, 1, 2))) die(const char *fmt, ...);
uint64_t now_ns(void);
void measure(struct env *e, const struct work *w);
void calibrate(struct env *e);
void stamp(struct env *e, uint8_t *block, unsigned int i);
void check_stamp(const struct env *e, const uint8_t *block, unsigned int i);

/* store.c */
void store_open(struct env *e, const char *identity);
void store_fill(struct env *e);
void store_drop(struct env *e);
void store_works(struct env *e);
void store_gets(struct env *e);
void store_nvme_works(struct env *e, const char *pool_sysfs);
void store_scale(struct env *e, uint32_t many);
void make_key(struct kvtier_key *key, uint64_t salt, uint64_t i);
void expect(const char *what, int got, unsigned int want);
uint32_t store_nvme_tier(const char *pool_sysfs);
void store_ballast(struct env *e);
void store_watermarks(const char *low, const char *high);

/* redis.c */
void redis_open(struct env *e, const char *path);
void redis_works(struct env *e);

/* file.c */
void file_works(struct env *e);
void direct_works(struct env *e, const char *path);

/* log.c, raw.c, survive.c */
void log_works(struct env *e, const char *pool_sysfs);
void raw_works(struct env *e, const char *path);
void survive_save(const char *path);
void survive_check(struct env *e, const char *path);

#endif /* KVT_BENCH_H */
