// SPDX-License-Identifier: GPL-2.0
/*
 * Random numbers that are the same on every machine.
 *
 * The generator is splitmix64. Distributions are computed in fixed point (q16:
 * 1/65536): errors of a few parts in a thousand do not matter for a workload,
 * another value on another machine would.
 */
#include "gen_rng.h"
#include "trace.h"

#define Q16	65536
#define LN2_Q16	45426

void gen_rng_init(struct gen_rng *rng, uint64_t seed, uint64_t stream)
{
	rng->state = trace_mix64(seed ^ trace_mix64(stream + 1));
}

uint64_t gen_rng_next(struct gen_rng *rng)
{
	rng->state += 0x9e3779b97f4a7c15ULL;
	return trace_mix64(rng->state);
}

uint64_t gen_rng_below(struct gen_rng *rng, uint64_t n)
{
	return (uint64_t)(((__uint128_t)gen_rng_next(rng) * n) >> 64);
}

bool gen_rng_chance(struct gen_rng *rng, unsigned int permille)
{
	return gen_rng_below(rng, 1000) < permille;
}

/* log2 of a q16 number >= 1, by squaring: each step gives one more bit. */
static uint32_t log2_q16(uint64_t x)
{
	unsigned int whole = 63 - (unsigned int)__builtin_clzll(x);
	uint64_t m = whole >= 31 ? x >> (whole - 31) : x << (31 - whole);
	uint32_t log = (whole - 16) << 16;

	/* m is in [2^31, 2^32): the mantissa in q31 */
	for (uint32_t bit = Q16 / 2; bit; bit >>= 1) {
		m = (m * m) >> 31;
		if (m >> 32) {
			m >>= 1;
			log |= bit;
		}
	}
	return log;
}

/* value * 2^(exponent/65536), saturating far above anything in use. */
static uint64_t scale_exp2(uint64_t value, int64_t exponent_q16)
{
	int64_t whole = exponent_q16 >> 16;
	uint64_t f = (uint64_t)(exponent_q16 & (Q16 - 1));
	/* 2^f on [0, 1): a cubic with an error below 4e-4 */
	uint64_t cubic = 14720 + ((f * 5229) >> 16);
	uint64_t p = Q16 + ((f * (45587 + ((f * cubic) >> 16))) >> 16);
	uint64_t scaled = (uint64_t)(((__uint128_t)value * p) >> 16);

	if (whole < 0)
		return whole <= -64 ? 0 : scaled >> -whole;
	if (whole > 40)
		whole = 40;
	return scaled << whole;
}

uint64_t gen_rng_lognormal(struct gen_rng *rng, uint64_t median,
			   unsigned int sigma_q8)
{
	int64_t normal = -6 * Q16;	/* sum of twelve uniforms: variance 1 */

	for (int i = 0; i < 3; i++) {
		uint64_t bits = gen_rng_next(rng);

		for (int j = 0; j < 4; j++, bits >>= 16)
			normal += (int64_t)(bits & 0xffff);
	}
	return scale_exp2(median, normal * (int64_t)sigma_q8 / 256);
}

uint64_t gen_rng_exponential(struct gen_rng *rng, uint64_t mean)
{
	/* -ln(u) for u = r / 2^32, r in 1..2^32 */
	uint64_t r = (gen_rng_next(rng) >> 32) + 1;
	uint64_t log2 = (32ULL << 16) - log2_q16(r << 16);
	uint64_t ln = (log2 * LN2_Q16) >> 16;

	return (uint64_t)(((__uint128_t)mean * ln) >> 16);
}

uint64_t gen_rng_zipf(struct gen_rng *rng, uint64_t n)
{
	/* A rank uniform in its logarithm: P(r) about log((r+2)/(r+1)). */
	uint64_t log = log2_q16((n + 1) << 16);
	uint64_t draw = gen_rng_below(rng, log);
	uint64_t rank = (scale_exp2(Q16, (int64_t)draw) >> 16) - 1;

	return rank < n ? rank : n - 1;
}
