/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the races share.
 */
#ifndef RACE_H
#define RACE_H

#include "kvt_env.h"

#define CHECK(cond)							\
do {									\
	if (!(cond))							\
		kvt_env_die(__FILE__, __LINE__, "does not hold: " #cond); \
} while (0)

static inline u32 race_random(u64 *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (u32)(*state >> 33);
}

int race_fix(u64 rounds);

#endif /* RACE_H */
