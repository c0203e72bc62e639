/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Random numbers that are the same on every machine: integers throughout, no
 * libm, no rand(3).
 */
#ifndef KVTIER_GEN_RNG_H
#define KVTIER_GEN_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct gen_rng {
	uint64_t state;
};

/* Streams of different (seed, stream) are independent of each other. */
void gen_rng_init(struct gen_rng *rng, uint64_t seed, uint64_t stream);

uint64_t gen_rng_next(struct gen_rng *rng);

/* Uniform in 0..n-1; @n > 0. */
uint64_t gen_rng_below(struct gen_rng *rng, uint64_t n);

/* True with a probability of @permille in 1000. */
bool gen_rng_chance(struct gen_rng *rng, unsigned int permille);

/**
 * gen_rng_lognormal - log-normal, roughly: twelve uniform draws make the normal
 * @median:    half of the values are below it
 * @sigma_q8:  standard deviation of the value's log2, in 1/256
 */
uint64_t gen_rng_lognormal(struct gen_rng *rng, uint64_t median,
			   unsigned int sigma_q8);

/* Exponential with mean @mean. */
uint64_t gen_rng_exponential(struct gen_rng *rng, uint64_t mean);

/* 0..n-1, rank r about proportional to 1/(r+1); @n > 0. */
uint64_t gen_rng_zipf(struct gen_rng *rng, uint64_t n);

#endif
